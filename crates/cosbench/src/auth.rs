//! `<auth>`: how to get a token.

use super::config::{Entry, Settings, Vocabulary};
use super::remarks::{Remarks, shown};
use super::storage::address;
use super::tree::Element;
use tidemark_keys::nearest::nearest;
use tidemark_object::job::SwiftAuth;

/// What an `<auth>` means.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Auth {
    /// Nothing to do.
    None,
    /// A Swift token.
    Swift(SwiftAuth),
}

const KINDS: [&str; 5] = ["none", "mock", "swauth", "tempauth", "keystone"];

const SWAUTH_KEYS: [&str; 9] =
    ["auth_url", "url", "username", "password", "key", "timeout", "retry", "caching", "logging"];

const KEYSTONE_KEYS: [&str; 18] = [
    "auth_url",
    "url",
    "username",
    "password",
    "tenant_id",
    "tenant_name",
    "tenname",
    "project",
    "project_name",
    "project_domain",
    "user_domain",
    "usertoken",
    "service",
    "region",
    "timeout",
    "retry",
    "caching",
    "logging",
];

/// Resolves an `<auth>`; `None` after an error.
pub(super) fn resolve(auth: Option<&Element>, remarks: &mut Remarks) -> Option<Auth> {
    let Some(auth) = auth else { return Some(Auth::None) };
    let kind = auth.value("type").map_or("none".to_owned(), |kind| kind.text.trim().to_ascii_lowercase());
    let read = |keys: &'static [&'static str], owner: &'static str, remarks: &mut Remarks| {
        Settings::default().within(auth, Vocabulary { keys, owner }, remarks)
    };
    match kind.as_str() {
        "none" => Some(Auth::None),
        "mock" => {
            read(&["token", "delay", "retry", "caching", "logging"], "auth `mock`", remarks);
            Some(Auth::None)
        }
        "swauth" | "tempauth" => swauth(auth, &read(&SWAUTH_KEYS, "auth `swauth`", remarks), remarks),
        "keystone" | "keystonev2" | "keystone_v2" | "keystonev3" | "keystone_v3" => {
            let settings = read(&KEYSTONE_KEYS, "auth `keystone`", remarks);
            keystone(auth, &settings, kind.ends_with('3'), remarks)
        }
        other => {
            refuse(auth, other, remarks);
            None
        }
    }
}

fn refuse(auth: &Element, kind: &str, remarks: &mut Remarks) {
    let span = auth.value("type").map_or(auth.span.clone(), |value| value.span.clone());
    if matches!(kind, "httpauth" | "basic" | "digest") {
        let help = "use the storage's S3 keys, or `swauth` or `keystone` with Swift";
        let message = format!(
            "auth type `{kind}` is not supported: only CDMI storage uses it, and Tidemark does not support CDMI"
        );
        return remarks.error(span, message, help);
    }
    let help = match nearest(kind, KINDS) {
        Some(near) => format!("did you mean `{near}`? Valid types: {}", KINDS.join(", ")),
        None => format!("valid types: {}", KINDS.join(", ")),
    };
    remarks.error(span, format!("auth type {} is unknown", shown(kind)), help);
}

/// The entry under the first of the keys that is present; an error when none is.
fn required<'s, 'a>(
    auth: &Element,
    settings: &'s Settings<'a>,
    keys: &[&str],
    remarks: &mut Remarks,
) -> Option<&'s Entry<'a>> {
    if let Some(entry) = settings.find(keys) {
        return Some(entry);
    }
    if !settings.mentions(keys) || settings.is_blank(keys) {
        let help = format!("add {}=... to the config of `auth`", keys[0]);
        remarks.error(auth.span.clone(), format!("`auth` has no `{}`", keys[0]), help);
    }
    None
}

fn text(entry: &Entry<'_>) -> String {
    entry.value.to_owned()
}

fn url(settings: &Settings<'_>, default: &str, remarks: &mut Remarks) -> Option<String> {
    match settings.find(&["auth_url", "url"]) {
        Some(entry) => address(entry, true, remarks),
        None => Some(default.to_owned()),
    }
}

fn swauth(auth: &Element, settings: &Settings<'_>, remarks: &mut Remarks) -> Option<Auth> {
    let url = url(settings, "http://127.0.0.1:8080/auth/v1.0", remarks);
    let user = required(auth, settings, &["username"], remarks).map(text);
    let key = required(auth, settings, &["password", "key"], remarks).map(Entry::secret);
    Some(Auth::Swift(SwiftAuth::TempAuth { url: url?, user: user?, key: key? }))
}

/// Whether the document selects version 3: by its type, by a domain, or by the address.
fn keystone(auth: &Element, settings: &Settings<'_>, version_3: bool, remarks: &mut Remarks) -> Option<Auth> {
    let url = url(settings, "http://127.0.0.1:5000/v2.0", remarks);
    if let Some(entry) = settings.find(&["usertoken"]).filter(|_| settings.find(&["password"]).is_none()) {
        let help = "set username= and password=; or remove `auth`, and set token= and storage_url= in the storage's config";
        remarks.error(entry.key_span(), "`usertoken` is not supported", help);
    }
    let user = required(auth, settings, &["username"], remarks).map(text);
    let password = required(auth, settings, &["password"], remarks).map(Entry::secret);
    let project = required(
        auth,
        settings,
        &["tenant_name", "tenname", "project", "project_name", "tenant_id"],
        remarks,
    )
    .map(text);
    let service = settings.text(&["service"], "swift");
    let region = settings.find(&["region"]).map(|entry| entry.value.to_owned());
    let (url, user, password, project) = (url?, user?, password?, project?);
    let version_3 = version_3
        || settings.find(&["project_domain", "user_domain"]).is_some()
        || url.split('/').any(|part| part == "v3");
    Some(Auth::Swift(match version_3 {
        true => SwiftAuth::KeystoneV3 {
            url,
            user,
            password,
            user_domain: settings.text(&["user_domain"], "Default"),
            project,
            project_domain: settings.text(&["project_domain"], "Default"),
            service,
            region,
        },
        false => SwiftAuth::KeystoneV2 { url, user, password, tenant: project, service, region },
    }))
}
