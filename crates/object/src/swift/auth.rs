//! How a token and the account's URL are got: what is sent, and what comes back. No socket.

use crate::job::SwiftAuth;
use serde::Deserialize;
use serde_json::json;
use tidemark_load::engine::OpenError;
use tidemark_plan::secret::Secret;

/// What authentication gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Goes into `X-Auth-Token`.
    pub(crate) token: Secret,
    /// The account's URL.
    pub(crate) storage_url: String,
}

/// A request for a token.
pub(crate) struct Login {
    /// Where to.
    pub(crate) url: String,
    /// `GET` or `POST`.
    pub(crate) method: &'static str,
    /// Header lines.
    pub(crate) headers: Vec<(&'static str, Secret)>,
    /// JSON, or nothing.
    pub(crate) body: Secret,
}

/// A reply to it, as far as it matters.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: u16,
    /// `X-Auth-Token` or `X-Subject-Token`.
    pub(crate) token: Option<Secret>,
    /// `X-Storage-Url`.
    pub(crate) storage_url: Option<String>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

/// What to send for a token; `None` when it was given in advance.
pub(crate) fn login(auth: &SwiftAuth) -> Option<Login> {
    let post = |url: String, body: serde_json::Value| Login {
        url,
        method: "POST",
        headers: vec![("Content-Type", Secret::new("application/json"))],
        body: Secret::new(body.to_string()),
    };
    match auth {
        SwiftAuth::Token { .. } => None,
        SwiftAuth::TempAuth { url, user, key } => Some(Login {
            url: url.clone(),
            method: "GET",
            headers: vec![("X-Auth-User", Secret::new(user)), ("X-Auth-Key", key.clone())],
            body: Secret::default(),
        }),
        SwiftAuth::KeystoneV2 { url, user, password, tenant, .. } => {
            let credentials = json!({ "username": user, "password": password.reveal() });
            let body = json!({ "auth": { "tenantName": tenant, "passwordCredentials": credentials } });
            Some(post(tokens_url(url, "/v2.0", "/tokens"), body))
        }
        SwiftAuth::KeystoneV3 { url, user, password, user_domain, project, project_domain, .. } => {
            let user = json!({ "name": user, "domain": domain(user_domain), "password": password.reveal() });
            let scope = json!({ "project": { "name": project, "domain": domain(project_domain) } });
            let identity = json!({ "methods": ["password"], "password": { "user": user } });
            let body = json!({ "auth": { "identity": identity, "scope": scope } });
            Some(post(tokens_url(url, "/v3", "/auth/tokens"), body))
        }
    }
}

/// Where tokens are made: the URL in the document may be the server's, the version's or the whole.
fn tokens_url(url: &str, version: &str, path: &str) -> String {
    let url = url.trim_end_matches('/');
    if url.ends_with("/tokens") {
        url.to_owned()
    } else if url.ends_with(version) {
        format!("{url}{path}")
    } else {
        format!("{url}{version}{path}")
    }
}

/// A domain by name; `default` is the id of the initial domain everywhere.
fn domain(text: &str) -> serde_json::Value {
    if text == "default" { json!({ "id": text }) } else { json!({ "name": text }) }
}

/// What a reply grants.
///
/// # Errors
/// Why it grants nothing, in one sentence.
pub(crate) fn granted(auth: &SwiftAuth, url: &str, reply: Reply) -> Result<Grant, OpenError> {
    let refused = |why: String| Err(OpenError(why));
    match reply.status {
        200..300 => {}
        401 | 403 => return refused(denied(auth, url)),
        404 => {
            return refused(format!(
                "{url} does not issue tokens (404): check the path of the authentication URL"
            ));
        }
        status => {
            return refused(format!(
                "authentication at {url} failed with status {status}{}: check the server's log",
                said(&reply.body)
            ));
        }
    }
    let (token, storage_url) = match auth {
        SwiftAuth::Token { token, storage_url } => (Some(token.clone()), Some(storage_url.clone())),
        SwiftAuth::TempAuth { .. } => (reply.token, reply.storage_url),
        SwiftAuth::KeystoneV2 { service, region, .. } => {
            let Access { access } = read(url, &reply.body)?;
            let found = account_url(&access.service_catalog, service, region.as_deref())?;
            (access.token.map(|token| token.id), Some(found))
        }
        SwiftAuth::KeystoneV3 { service, region, .. } => {
            let Token { token } = read(url, &reply.body)?;
            (reply.token, Some(account_url(&token.catalog, service, region.as_deref())?))
        }
    };
    // It will stand in a header.
    let fits =
        |token: &Secret| !token.is_empty() && token.reveal().bytes().all(|byte| byte.is_ascii_graphic());
    match (token, storage_url) {
        (Some(token), Some(storage_url)) if fits(&token) => Ok(Grant { token, storage_url }),
        _ => refused(format!(
            "{url} returned {} without a token and a storage URL: it is not an authentication service of the \
             kind given",
            reply.status
        )),
    }
}

/// Why a user was turned away.
fn denied(auth: &SwiftAuth, url: &str) -> String {
    match auth {
        SwiftAuth::Token { .. } => format!("{url} rejected the token: get a new one"),
        SwiftAuth::TempAuth { user, .. } => {
            format!("{url} rejected user '{user}': check the user name (account:user) and the key")
        }
        SwiftAuth::KeystoneV2 { user, tenant, .. } => format!(
            "{url} rejected user '{user}' in tenant '{tenant}': check the user name, the password and the tenant"
        ),
        SwiftAuth::KeystoneV3 { user, user_domain, project, project_domain, .. } => format!(
            "{url} rejected user '{user}' (domain '{user_domain}') in project '{project}' (domain \
             '{project_domain}'): check the names, the domains and the password"
        ),
    }
}

/// The beginning of a server's text, in brackets.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(200)]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { text } else { format!(" ({text})") }
}

fn read<'a, T: Deserialize<'a>>(url: &str, body: &'a [u8]) -> Result<T, OpenError> {
    serde_json::from_slice(body).map_err(|error| {
        OpenError(format!("the reply of {url} is not from a Keystone of the given version ({error})"))
    })
}

/// The account's URL out of the catalogue: of the service by type or name, in the region, for the public.
fn account_url(catalogue: &[Service], wanted: &str, region: Option<&str>) -> Result<String, OpenError> {
    let services: Vec<_> =
        catalogue.iter().filter(|service| service.kind == wanted || service.name == wanted).collect();
    if services.is_empty() {
        let mut known: Vec<_> =
            catalogue.iter().map(|service| format!("{} ({})", service.name, service.kind)).collect();
        known.sort();
        let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
        return Err(OpenError(format!(
            "the catalogue has no service named '{wanted}'; it has {known}: check the service's name and the user's \
             role in the project"
        )));
    }
    let endpoints = || services.iter().flat_map(|service| &service.endpoints);
    let fits =
        |endpoint: &&Endpoint| region.is_none_or(|region| endpoint.regions().any(|name| name == region));
    endpoints().filter(fits).find_map(|endpoint| endpoint.public()).map(str::to_owned).ok_or_else(|| {
        let mut regions: Vec<_> = endpoints().filter_map(|endpoint| endpoint.regions().next()).collect();
        regions.sort_unstable();
        regions.dedup();
        let place = region.map_or(String::new(), |region| format!(" in region '{region}'"));
        OpenError(format!(
            "service '{wanted}' has no public endpoint{place}; its regions are: {}",
            if regions.is_empty() { "none".to_owned() } else { regions.join(", ") }
        ))
    })
}

/// Keystone v2's reply.
#[derive(Deserialize)]
struct Access {
    access: AccessBody,
}

#[derive(Deserialize)]
struct AccessBody {
    token: Option<AccessToken>,
    #[serde(default, rename = "serviceCatalog")]
    service_catalog: Vec<Service>,
}

#[derive(Deserialize)]
struct AccessToken {
    #[serde(deserialize_with = "secret")]
    id: Secret,
}

fn secret<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// Keystone v3's reply; its token is in a header.
#[derive(Deserialize)]
struct Token {
    token: TokenBody,
}

#[derive(Deserialize)]
struct TokenBody {
    #[serde(default)]
    catalog: Vec<Service>,
}

/// An entry of either catalogue.
#[derive(Deserialize)]
struct Service {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    region: Option<String>,
    region_id: Option<String>,
    interface: Option<String>,
    url: Option<String>,
    #[serde(rename = "publicURL")]
    public_url: Option<String>,
}

impl Endpoint {
    fn regions(&self) -> impl Iterator<Item = &str> {
        [&self.region, &self.region_id].into_iter().flatten().map(String::as_str)
    }

    fn public(&self) -> Option<&str> {
        let is_public = self.interface.as_deref() == Some("public");
        self.public_url.as_deref().or(self.url.as_deref().filter(|_| is_public))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(region: Option<&str>) -> SwiftAuth {
        SwiftAuth::KeystoneV2 {
            url: "http://k:5000/v2.0/".into(),
            user: "me".into(),
            password: Secret::new("hush"),
            tenant: "lab".into(),
            service: "swift".into(),
            region: region.map(str::to_owned),
        }
    }

    fn v3(service: &str) -> SwiftAuth {
        SwiftAuth::KeystoneV3 {
            url: "http://k:5000".into(),
            user: "me".into(),
            password: Secret::new("hush"),
            user_domain: "default".into(),
            project: "lab".into(),
            project_domain: "People".into(),
            service: service.into(),
            region: None,
        }
    }

    fn temp() -> SwiftAuth {
        SwiftAuth::TempAuth { url: "http://h/auth/v1.0".into(), user: "a:b".into(), key: Secret::new("hush") }
    }

    #[test]
    fn each_kind_asks_in_its_own_way() {
        let asked = login(&temp()).unwrap();
        assert_eq!((asked.method, asked.url.as_str()), ("GET", "http://h/auth/v1.0"));
        assert_eq!(asked.headers[1].1.reveal(), "hush");

        let asked = login(&v2(None)).unwrap();
        assert_eq!((asked.method, asked.url.as_str()), ("POST", "http://k:5000/v2.0/tokens"));
        let body: serde_json::Value = serde_json::from_str(asked.body.reveal()).unwrap();
        assert_eq!(body["auth"]["passwordCredentials"]["password"], "hush");

        let asked = login(&v3("swift")).unwrap();
        assert_eq!(asked.url, "http://k:5000/v3/auth/tokens");
        let body: serde_json::Value = serde_json::from_str(asked.body.reveal()).unwrap();
        assert_eq!(body["auth"]["identity"]["password"]["user"]["domain"], json!({ "id": "default" }));
        assert_eq!(body["auth"]["scope"]["project"]["domain"], json!({ "name": "People" }));
    }

    fn v2_reply() -> Reply {
        let endpoint =
            |region: &str| json!({ "region": region, "publicURL": format!("http://{region}/v1/A") });
        let swift = json!({ "type": "object-store", "name": "swift", "endpoints": [endpoint("north"), endpoint("south")] });
        let nova = json!({ "type": "compute", "name": "nova", "endpoints": [] });
        let body = json!({ "access": { "token": { "id": "T2" }, "serviceCatalog": [nova, swift] } });
        Reply { status: 200, body: body.to_string().into_bytes(), ..Reply::default() }
    }

    #[test]
    fn the_catalogue_is_searched_by_service_and_region() {
        let grant = |auth: &SwiftAuth, reply| granted(auth, "http://k", reply);
        let first = grant(&v2(None), v2_reply()).unwrap();
        assert_eq!((first.token.reveal(), first.storage_url.as_str()), ("T2", "http://north/v1/A"));
        assert_eq!(grant(&v2(Some("south")), v2_reply()).unwrap().storage_url, "http://south/v1/A");
        let error = grant(&v2(Some("west")), v2_reply()).unwrap_err().to_string();
        assert!(error.contains("'west'") && error.contains("north, south"), "{error}");

        let endpoint =
            |interface: &str| json!({ "interface": interface, "url": format!("http://{interface}/v1/A") });
        let swift = json!({ "type": "object-store", "name": "objects", "endpoints": [endpoint("admin"), endpoint("public")] });
        let body = json!({ "token": { "catalog": [swift] } }).to_string().into_bytes();
        let reply = |body: &Vec<u8>| Reply {
            status: 201,
            token: Some(Secret::new("T3")),
            body: body.clone(),
            ..Reply::default()
        };
        let third = grant(&v3("object-store"), reply(&body)).unwrap();
        assert_eq!((third.token.reveal(), third.storage_url.as_str()), ("T3", "http://public/v1/A"));
        let error = grant(&v3("swift"), reply(&body)).unwrap_err().to_string();
        assert!(error.contains("objects (object-store)"), "{error}");
    }

    #[test]
    fn refusals_are_one_clear_sentence_without_the_secret() {
        for auth in [temp(), v2(None), v3("swift")] {
            for status in [401, 404, 500, 200] {
                let reply = Reply { status, body: b"oh no".to_vec(), ..Reply::default() };
                let error = granted(&auth, "http://k", reply).unwrap_err().to_string();
                assert!(error.contains("http://k") && !error.contains("hush"), "{error}");
            }
        }
    }
}
