//! One fault: what it does, to which requests, and on which occasions.

use std::time::Duration;

use hyper::StatusCode;

use crate::operation::Operation;

/// One way to misbehave: what happens, to which requests, and how often.
///
/// Create it with one of the first four functions and narrow it with the others; otherwise it strikes every request.
///
/// `Fault::slow_down().on(Operation::PutObject).with_probability(0.01)` throttles one write in a hundred, and
/// `Fault::truncate(100).on(Operation::GetObject).nth(3)` breaks the third read.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub(super) effect: Effect,
    operation: Option<Operation>,
    method: Option<String>,
    key_prefix: Option<String>,
    pub(super) when: When,
}

impl Fault {
    fn new(effect: Effect) -> Self {
        Self { effect, operation: None, method: None, key_prefix: None, when: When::Always }
    }

    /// Answers with this HTTP status and S3 error code instead of doing what was asked.
    ///
    /// A status outside 400 to 599 is not an error; 500 is sent instead.
    #[must_use]
    pub fn answer(status: u16, code: &str) -> Self {
        let status = StatusCode::from_u16(status).ok().filter(|s| s.is_client_error() || s.is_server_error());
        Self::new(Effect::Answer {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code: code.to_owned(),
        })
    }

    /// Answers 503 SlowDown, which is how S3 throttles.
    #[must_use]
    pub fn slow_down() -> Self {
        Self::answer(503, "SlowDown")
    }

    /// Waits this long before doing what was asked. Several delays that strike one request add up.
    #[must_use]
    pub fn delay(delay: Duration) -> Self {
        Self::new(Effect::Delay(delay))
    }

    /// Sends at most this many bytes of a successful answer's body, then closes the connection, while the header
    /// still announces all of it. Bodies that are no longer than this are sent whole.
    #[must_use]
    pub fn truncate(bytes: u64) -> Self {
        Self::new(Effect::Truncate(bytes))
    }

    /// Closes the connection without an answer and without doing what was asked.
    #[must_use]
    pub fn disconnect() -> Self {
        Self::new(Effect::Disconnect)
    }

    /// Accepts the conditions of a PUT of a whole object, `If-Match` and `If-None-Match`, and ignores them, as some stores do.
    #[must_use]
    pub fn ignore_conditions() -> Self {
        Self::new(Effect::IgnoreConditions)
    }

    /// Strikes only this operation.
    #[must_use]
    pub fn on(mut self, operation: Operation) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Strikes only this HTTP method, such as `PUT`.
    #[must_use]
    pub fn on_method(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Strikes only requests whose path, as sent and without the first slash, begins like this: `bucket/prefix`.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        self.key_prefix = Some(prefix.to_owned());
        self
    }

    /// Strikes only the `n`-th matching request, counted from 1.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        self.when = When::Nth(n);
        self
    }

    /// Strikes only the first `n` matching requests.
    #[must_use]
    pub fn first(mut self, n: u64) -> Self {
        self.when = When::First(n);
        self
    }

    /// Strikes every `n`-th matching request: the `n`-th, the `2n`-th and so on.
    #[must_use]
    pub fn every(mut self, n: u64) -> Self {
        self.when = When::Every(n);
        self
    }

    /// Strikes each matching request with this probability, 0 to 1. The draws come from the server's fault seed, in
    /// the order in which requests arrive.
    #[must_use]
    pub fn with_probability(mut self, probability: f64) -> Self {
        self.when = When::Chance(probability);
        self
    }

    /// Whether the fault matches this request, regardless of counts and chance.
    pub(super) fn matches(&self, request: &Seen<'_>) -> bool {
        self.operation.is_none_or(|operation| operation == request.operation)
            && self.method.as_deref().is_none_or(|method| method == request.method)
            && self
                .key_prefix
                .as_deref()
                .is_none_or(|prefix| request.path.trim_start_matches('/').starts_with(prefix))
    }
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    Answer { status: StatusCode, code: String },
    Delay(Duration),
    Truncate(u64),
    Disconnect,
    IgnoreConditions,
}

/// Which of the requests that match strike, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum When {
    Always,
    Nth(u64),
    First(u64),
    Every(u64),
    Chance(f64),
}

/// The properties of a request that faults match.
pub(super) struct Seen<'a> {
    pub(super) operation: Operation,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
}
