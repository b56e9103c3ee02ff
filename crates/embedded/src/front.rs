//! The layer in front of the store: it counts every request and applies faults.

use std::pin::Pin;
use std::sync::Arc;

use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, EXPECT, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use s3s::service::S3Service;

use crate::body::{self, ReplyBody, RequestBody};
use crate::conditions::Unconditional;
use crate::fault::Seen;
use crate::faults::Faults;
use crate::operation::Operation;
use crate::plan::{Instead, Verdict};
use crate::statistics::Counters;

/// The service of every connection.
pub(super) struct Front {
    pub(super) s3: S3Service,
    pub(super) faults: Faults,
    pub(super) counters: Arc<Counters>,
}

/// Makes hyper close the connection without an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Hangup {
    /// A fault asked for it.
    #[error("the connection was closed on purpose")]
    Fault,
    /// `s3s` could not even answer with an error.
    #[error("the request could not be answered")]
    Failure(#[source] s3s::StdError),
}

/// How a connection calls the front; one pointer, as hyper wants a service per connection.
#[derive(Clone)]
pub(super) struct Desk(pub(super) Arc<Front>);

impl hyper::service::Service<Request<Incoming>> for Desk {
    type Response = Response<ReplyBody>;
    type Error = Hangup;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Hangup>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let front = Arc::clone(&self.0);
        Box::pin(async move { front.answer(request).await })
    }
}

impl Front {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<ReplyBody>, Hangup> {
        let (mut parts, incoming) = request.into_parts();
        let operation = Operation::of(&parts);
        self.counters.arrived(operation);
        let mut verdict = Verdict::default();
        if self.faults.armed() {
            let method = parts.method.as_str();
            verdict = self.faults.judge(&Seen { operation, method, path: parts.uri.path() });
            if !verdict.wait.is_zero() {
                tokio::time::sleep(verdict.wait).await;
            }
            self.faults.thaw().await;
        }
        match verdict.instead {
            Some(Instead::Disconnect) => {
                self.counters.disconnected(operation);
                return Err(Hangup::Fault);
            }
            Some(Instead::Answer(status, code)) => {
                if !hesitates(&parts) {
                    body::drain(incoming).await;
                }
                self.counters.failed(operation);
                return Ok(error(&parts.method, status, &code));
            }
            None => {}
        }
        if verdict.unconditional {
            parts.extensions.insert(Unconditional);
        }
        let hesitates = hesitates(&parts);
        let (body, meter) = if incoming.is_end_stream() {
            (s3s::Body::empty(), None)
        } else {
            let (body, meter) = RequestBody::new(incoming);
            (s3s::Body::http_body(body), Some(meter))
        };
        let result = self.s3.call(Request::from_parts(parts, body)).await;
        if let Some(meter) = meter.as_ref().filter(|meter| !hesitates || meter.bytes() > 0) {
            meter.drain().await;
        }
        if self.faults.armed() {
            self.faults.thaw().await;
        }
        let reply = result.map_err(|failure| Hangup::Failure(failure.into()))?;
        let succeeded = reply.status().as_u16() < 400;
        if succeeded {
            self.counters.succeeded(operation, meter.map_or(0, |meter| meter.bytes()));
        } else {
            self.counters.failed(operation);
        }
        let meter = succeeded.then(|| (Arc::clone(&self.counters), operation));
        Ok(reply.map(|inner| ReplyBody::new(inner, meter, verdict.truncate.filter(|_| succeeded))))
    }
}

/// Whether the client holds its body until the server asks for it (100-continue). Reading the body would ask for it.
fn hesitates(request: &Parts) -> bool {
    request.headers.contains_key(EXPECT)
}

/// An error as S3 words it; an answer to HEAD has no body.
fn error(method: &Method, status: StatusCode, code: &str) -> Response<ReplyBody> {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>A fault put in place on purpose.\
         </Message></Error>",
        code.replace('&', "&amp;").replace('<', "&lt;")
    );
    let body = if *method == Method::HEAD { s3s::Body::empty() } else { s3s::Body::from(text) };
    let mut response = Response::new(ReplyBody::new(body, None, None));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}
