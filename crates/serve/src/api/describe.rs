//! What the description says of all operations; the rest stands at each handler.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContactBuilder, Content, InfoBuilder, OpenApi, Ref, RefOr, ResponseBuilder, Schema, SecurityRequirement,
};

/// Error replies that every operation may give.
const ANY: [(&str, &str); 5] = [
    ("400", "The request is malformed"),
    ("403", "The caller's role does not allow this, or the request came from another site's page"),
    ("429", "Too many requests or too many invalid tokens: see Retry-After"),
    ("500", "Internal error"),
    ("503", "The store is unavailable, or the controller is overloaded or shutting down: see Retry-After"),
];

/// Descriptions of success where the handler has none.
const DONE: [(&str, &str); 3] = [("200", "The reply"), ("201", "Created"), ("204", "Done")];

/// What callers send: here a property may be left out. Every other schema describes a reply.
const REQUESTS: [&str; 6] = ["Cancel", "Change", "CheckRequest", "Login", "Submit", "TicketFor"];

/// Error replies of operations with a body.
const WITH_BODY: [(&str, &str); 4] = [
    ("408", "The body did not arrive in time"),
    ("413", "The body is too large"),
    ("415", "The body has the wrong content type"),
    ("422", "The body does not match the schema, or the document has errors"),
];

/// Completes what was gathered from the handlers.
pub(super) fn complete(mut api: OpenApi, version: &str) -> OpenApi {
    api.info = InfoBuilder::new()
        .title("Tidemark controller")
        .version(version)
        .description(Some(
            "Submit workloads, follow them live, read and compare results. Error replies are `Trouble`. Requests need a token \
             unless the controller runs without authentication on its own machine.",
        ))
        .contact(Some(ContactBuilder::new().name(Some("Tidemark")).build()))
        .license(Some(utoipa::openapi::LicenseBuilder::new().name("Apache-2.0").build()))
        .build();
    let components = api.components.get_or_insert_default();
    for (name, schema) in &mut components.schemas {
        if !REQUESTS.contains(&name.as_str()) {
            require_everything(schema);
        }
    }
    components.add_security_scheme(
        "token",
        SecurityScheme::Http(
            HttpBuilder::new()
                .scheme(HttpAuthScheme::Bearer)
                .description(Some("A token, or the key of a session"))
                .build(),
        ),
    );
    api.security = Some(vec![SecurityRequirement::new("token", [""; 0])]);
    api.paths.paths.values_mut().flat_map(operations).for_each(complete_operation);
    api
}

/// Marks every property as required: a reply always has all of them, and those without a value are null.
fn require_everything(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => object.required = object.properties.keys().cloned().collect(),
        // What has the properties of others besides its own.
        RefOr::T(Schema::AllOf(all)) => all.items.iter_mut().for_each(require_everything),
        _ => {}
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete].into_iter().flatten()
}

fn complete_operation(operation: &mut Operation) {
    let with_body = if operation.request_body.is_some() { &WITH_BODY[..] } else { &[] };
    for (status, description) in ANY.iter().chain(with_body) {
        add_error(operation, status, description);
    }
    for (status, response) in &mut operation.responses.responses {
        if let (Some((_, usual)), RefOr::T(response)) = (DONE.iter().find(|(own, _)| own == status), response)
            && response.description.is_empty()
        {
            response.description = (*usual).into();
        }
    }
    let nobody = SecurityRequirement::default();
    if operation.security.as_ref().is_none_or(|security| !security.contains(&nobody)) {
        add_error(operation, "401", "The token is missing or invalid");
    }
}

/// Adds an error reply, unless the handler describes that status itself.
fn add_error(operation: &mut Operation, status: &str, description: &str) {
    let trouble = Content::new(Some(RefOr::Ref(Ref::from_schema_name("Trouble"))));
    let response = ResponseBuilder::new().description(description).content("application/json", trouble);
    operation.responses.responses.entry(status.into()).or_insert_with(|| response.build().into());
}
