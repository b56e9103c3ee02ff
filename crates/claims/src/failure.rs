//! Why a phase failed: a class, and its words.

use tidemark_apiserver::Failure as Refusal;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Example;

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// What happened, to which object.
    pub(crate) words: String,
}

impl Failure {
    pub(crate) fn new(fault: Fault, words: impl Into<String>) -> Self {
        Self { fault, words: words.into() }
    }

    /// Of a request that was to do something.
    #[allow(clippy::needless_pass_by_value, reason = "for map_err")]
    pub(crate) fn of(doing: &str, refusal: Refusal) -> Self {
        let fault = match &refusal {
            Refusal::Status(403, words) if words.contains("exceeded quota") => Fault::Quota,
            Refusal::Status(401 | 403, _) => Fault::Denied,
            Refusal::Status(404, _) => Fault::NotFound,
            Refusal::Status(409, _) => Fault::Conflict,
            Refusal::Status(429, _) => Fault::Throttled,
            Refusal::Status(500.., _) => Fault::ServerError,
            Refusal::Status(..) => Fault::ClientError,
            Refusal::Away(_) => Fault::Unreachable,
            Refusal::Config(_) => Fault::Local,
        };
        Self::new(fault, format!("{doing}: {refusal}"))
    }

    pub(crate) fn example(&self) -> Example {
        Example { fault: self.fault, text: self.words.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_told_from_a_right_that_is_missing() {
        let of = |status, words: &str| Failure::of("claim r-1", Refusal::Status(status, words.into())).fault;
        let quota = "persistentvolumeclaims \"r-1\" is forbidden: exceeded quota: few, requested: 1";
        let right = "persistentvolumeclaims is forbidden: User \"u\" cannot create resource";
        assert_eq!((of(403, quota), of(403, right)), (Fault::Quota, Fault::Denied));
        assert_eq!((of(503, "busy"), of(422, "invalid")), (Fault::ServerError, Fault::ClientError));
    }
}
