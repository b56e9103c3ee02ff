//! What is answered when something cannot be done.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::time::Duration;
use tidemark_controller::api::Trouble;
use tidemark_controller::controller::Refusal;
use tidemark_store::StoreError;

/// An answer that says what went wrong.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) trouble: Trouble,
    /// When to try again.
    pub(crate) after: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, trouble: Trouble { message: message.into(), problems: Vec::new() }, after: None }
    }

    /// The request is malformed.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// There is no such thing.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// It cannot be done now.
    pub(crate) fn unavailable(message: String) -> Self {
        Self { after: Some(Duration::from_secs(5)), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// Later.
    pub(crate) fn too_many(message: impl Into<String>, after: Duration) -> Self {
        Self { after: Some(after), ..Self::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Missing(message) => Self::missing(message),
            Refusal::Conflict(message) => Self::new(StatusCode::CONFLICT, message),
            Refusal::Bad(message) => Self::malformed(message),
            Refusal::Document(message, problems) => Self {
                status: StatusCode::UNPROCESSABLE_ENTITY,
                trouble: Trouble { message, problems },
                after: None,
            },
            Refusal::Unavailable(message) => Self::unavailable(message),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        // The store's own words for these name its file, which is nobody's business here.
        let (status, message) = match &error {
            StoreError::NoSuchRun { id, .. } => (StatusCode::NOT_FOUND, format!("no run {id}")),
            StoreError::NoSuchEvaluation { id, .. } => (StatusCode::NOT_FOUND, format!("no evaluation {id}")),
            StoreError::StillRunning { .. } => (StatusCode::CONFLICT, error.to_string()),
            _ => return Self::unavailable(error.to_string()),
        };
        Self::new(status, message)
    }
}

/// The address exists, but not with this method.
pub(crate) async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this address does not support that method")
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.trouble)).into_response();
        if let Some(after) = self.after {
            let seconds = after.as_secs_f64().ceil().max(1.0) as u64;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
