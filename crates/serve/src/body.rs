//! What comes in: paths, queries and bodies, each with its limits, and in one voice when it is wrong.

use crate::answer::ApiError;
use crate::app::App;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Largest document that is taken, bytes.
pub(crate) const LARGEST_DOCUMENT: usize = 1 << 20;

/// Largest body: a document whose every byte is escaped as JSON escapes quotes and line ends, and what is around it.
pub(crate) const LARGEST_BODY: usize = 2 * LARGEST_DOCUMENT + (64 << 10);

/// Largest body of somebody who has shown no token yet, bytes.
const BRIEF: usize = 4 << 10;

/// Part of an address.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Self, ApiError> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0)).map_err(|error: PathRejection| {
            ApiError::malformed(format!("invalid path: {}", error.body_text()))
        })
    }
}

/// What follows the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|error: QueryRejection| {
            ApiError::malformed(format!("invalid query: {}", error.body_text()))
        })
    }
}

/// A body in JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(wrong_type("application/json"));
        }
        let bytes = collect(request.into_body(), app.limits.body, LARGEST_BODY).await?;
        parse(&bytes).map(Self)
    }
}

/// A short body in JSON, from anybody.
pub(crate) struct BriefJson<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for BriefJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(wrong_type("application/json"));
        }
        let bytes = collect(request.into_body(), app.limits.body, BRIEF).await?;
        parse(&bytes).map(Self)
    }
}

/// A body in JSON that may be left out.
pub(crate) struct JsonIfAny<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<App>> for JsonIfAny<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let bytes = collect(request.into_body(), app.limits.body, LARGEST_BODY).await?;
        match (bytes.is_empty(), is_json) {
            (true, _) => Ok(Self(T::default())),
            (false, true) => parse(&bytes).map(Self),
            (false, false) => Err(wrong_type("application/json")),
        }
    }
}

/// That the body has to be of another type.
pub(crate) fn wrong_type(wanted: &str) -> ApiError {
    let message = format!("the body must be {wanted}, with that Content-Type");
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
}

/// The media type of a body, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| kind == "application/json")
}

/// A whole body; refused if it is too large (bytes), or comes too slowly.
pub(crate) async fn collect(body: Body, patience: Duration, most: usize) -> Result<Bytes, ApiError> {
    let too_large = || {
        let message = format!("the body exceeds {most} bytes; documents can have up to {LARGEST_DOCUMENT}");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    // One that says beforehand that it is too large is not waited for.
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    match timeout(patience, axum::body::to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_large(&error) => Err(too_large()),
        Ok(Err(_)) => Err(ApiError::malformed("the body is incomplete or does not match its headers")),
        Err(_) => {
            let message = format!("the body did not arrive within {} s", patience.as_secs());
            Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(this) = cause {
        if this.to_string().contains("length limit exceeded") {
            return true;
        }
        cause = this.source();
    }
    false
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the body does not match the schema: {error}"),
        ),
        _ => ApiError::malformed(format!("the body is not JSON: {error}")),
    })
}

/// Refuses a document that is too large.
pub(crate) fn check_size(document: &str) -> Result<(), ApiError> {
    if document.len() <= LARGEST_DOCUMENT {
        return Ok(());
    }
    let message = format!("the document has {} bytes; the limit is {LARGEST_DOCUMENT}", document.len());
    Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message))
}
