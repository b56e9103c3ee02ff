//! The console's files, from within this binary.

use crate::answer::ApiError;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use std::io::Read as _;

/// A file of the console.
struct File {
    /// `/assets/index-B4x2.js`.
    address: &'static str,
    /// As the header `ETag` has it.
    tag: &'static str,
    /// Its content, compressed.
    gzip: &'static [u8],
}

/// All of them, put here by `build.rs`; none if the console was not built.
static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// What the console may do: what comes from here, and styles that its charts set on their elements.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Shown when the console was not built.
const UNBUILT: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>Tidemark</title>\
    <h1>Tidemark controller</h1><p>This binary was built without the console. In the source tree, <code>make console</code> and \
    then <code>make build</code> put it in.</p><p>The API works: <a href=\"/api/v1/openapi.json\">its description</a>.</p></html>";

/// A page or file of the console. Addresses without an ending are the console's own pages: it finds out itself which.
pub(crate) fn page(request: &Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let message = "this address does not support that method";
        let mut response = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message).into_response();
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
        return response;
    }
    let path = request.uri().path();
    let is_page = !path.rsplit('/').next().unwrap_or_default().contains('.');
    let found = |address: &str| FILES.iter().find(|file| file.address == address);
    match found(path).or_else(|| found("/index.html").filter(|_| is_page)) {
        Some(file) => answer(file, request),
        None if is_page => guarded(Html(UNBUILT).into_response()),
        None => ApiError::missing(format!("not found: {path}")).into_response(),
    }
}

fn answer(file: &File, request: &Request) -> Response {
    let says = |name, text: &str| {
        let values = request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(','))
            .any(|part| part.trim().trim_start_matches("W/").starts_with(text))
    };
    let mut response = match says(header::IF_NONE_MATCH, file.tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false if says(header::ACCEPT_ENCODING, "gzip") => {
            let mut response = Response::new(Body::from(file.gzip));
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        false => Response::new(Body::from(plain(file))),
    };
    let headers = response.headers_mut();
    // Vite puts a digest of the content into the names of what lies there: a new content has a new name.
    let kept =
        if file.address.starts_with("/assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    for (name, value) in [
        (header::ETAG, file.tag),
        (header::CACHE_CONTROL, kept),
        (header::CONTENT_TYPE, kind(file.address)),
        (header::VARY, "accept-encoding"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    guarded(response)
}

fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        // A page of another origin that opened this one has no hold of its window.
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn plain(file: &File) -> Vec<u8> {
    let mut content = Vec::new();
    // It was compressed when this binary was built.
    let _ = flate2::read::GzDecoder::new(file.gzip).read_to_end(&mut content);
    content
}

fn kind(address: &str) -> &'static str {
    match address.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
}
