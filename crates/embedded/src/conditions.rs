//! Conditional requests: If-Match, If-None-Match and their relatives (RFC 9110, section 13, as S3 applies it).

use std::time::{SystemTime, UNIX_EPOCH};

use s3s::dto::{ETag, ETagCondition, Timestamp};
use s3s::header::{ETAG, LAST_MODIFIED};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use crate::catalogue::{Details, Object};

/// Marks a write whose conditions a fault has the server ignore.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unconditional;

/// The conditions of a read, or of the source of a copy.
pub(super) struct Read<'a> {
    pub(super) if_match: Option<&'a ETagCondition>,
    pub(super) if_none_match: Option<&'a ETagCondition>,
    pub(super) if_modified_since: Option<&'a Timestamp>,
    pub(super) if_unmodified_since: Option<&'a Timestamp>,
}

/// Why a read is not answered with the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The client's copy is still current.
    NotModified,
    /// The object is not the one the client means.
    PreconditionFailed,
}

impl Read<'_> {
    /// Evaluates the conditions in the order of RFC 9110, section 13.2.2: a date counts only without its ETag relative.
    fn weigh(&self, details: &Details) -> Result<(), Refusal> {
        let modified = whole_seconds(details.modified);
        let expected = match (self.if_match, self.if_unmodified_since) {
            (Some(condition), _) => matches(condition, &details.etag),
            (None, Some(date)) => modified <= *date,
            (None, None) => true,
        };
        if !expected {
            return Err(Refusal::PreconditionFailed);
        }
        let current = match (self.if_none_match, self.if_modified_since) {
            (Some(condition), _) => matches(condition, &details.etag),
            (None, Some(date)) => modified <= *date,
            (None, None) => false,
        };
        if current { Err(Refusal::NotModified) } else { Ok(()) }
    }

    /// Refuses a read: 412 when the object is not the one meant, 304 when the client has it.
    pub(super) fn check_read(&self, details: &Details) -> S3Result<()> {
        match self.weigh(details) {
            Ok(()) => Ok(()),
            Err(Refusal::PreconditionFailed) => Err(precondition_failed()),
            Err(Refusal::NotModified) => {
                let mut unchanged = S3Error::new(S3ErrorCode::NotModified);
                // A 304 carries the headers a cache needs to know its copy by.
                let headers =
                    [(ETAG, format!("\"{}\"", details.etag)), (LAST_MODIFIED, http_date(details.modified))];
                let headers =
                    headers.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?)));
                unchanged.set_headers(headers.collect());
                Err(unchanged)
            }
        }
    }

    /// Refuses a copy: always 412.
    pub(super) fn check_copy(&self, source: &Details) -> S3Result<()> {
        self.weigh(source).map_err(|_| precondition_failed())
    }
}

/// Refuses a write that must not replace what exists: 412, or 404 when If-Match meets no object.
pub(super) fn check_write(
    existing: Option<&Object>,
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> S3Result<()> {
    match if_none_match {
        Some(ETagCondition::Any) if existing.is_some() => return Err(precondition_failed()),
        Some(ETagCondition::ETag(_)) => {
            return Err(s3_error!(NotImplemented, "If-None-Match of a write takes only `*`, as in S3."));
        }
        _ => {}
    }
    match (if_match, existing) {
        (Some(_), None) => Err(s3_error!(NoSuchKey, "There is no object for If-Match to match.")),
        (Some(condition), Some(object)) if !matches(condition, &object.details.etag) => {
            Err(precondition_failed())
        }
        _ => Ok(()),
    }
}

fn matches(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(ETag::Strong(value) | ETag::Weak(value)) => value == etag,
    }
}

fn precondition_failed() -> S3Error {
    s3_error!(PreconditionFailed, "At least one of the preconditions you gave does not hold.")
}

/// A time as an HTTP date can say it.
fn whole_seconds(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    (UNIX_EPOCH + std::time::Duration::from_secs(since.as_secs())).into()
}

fn http_date(time: SystemTime) -> String {
    let mut date = Vec::new();
    // Formatting into memory fails only for years that no clock shows; the header is then left out.
    let _ = Timestamp::from(time).format(s3s::dto::TimestampFormat::HttpDate, &mut date);
    String::from_utf8(date).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::catalogue::Attributes;

    #[test]
    fn etags_come_before_dates() {
        let modified = UNIX_EPOCH + Duration::from_millis(10_500);
        let details =
            Details { etag: "e".into(), modified, attributes: Attributes::default(), tags: Vec::new() };
        let (same, other) =
            (ETagCondition::ETag(ETag::Strong("e".into())), ETagCondition::ETag(ETag::Weak("x".into())));
        let at = |seconds| Timestamp::from(UNIX_EPOCH + Duration::from_secs(seconds));
        let (before, exactly) = (at(9), at(10));
        let read = |m, n, since, unless| {
            Read { if_match: m, if_none_match: n, if_modified_since: since, if_unmodified_since: unless }
                .weigh(&details)
        };
        assert_eq!(read(None, None, None, None), Ok(()));
        assert_eq!(read(Some(&same), None, None, Some(&before)), Ok(()));
        assert_eq!(read(Some(&other), None, None, None), Err(Refusal::PreconditionFailed));
        assert_eq!(read(None, None, None, Some(&before)), Err(Refusal::PreconditionFailed));
        assert_eq!(read(None, None, None, Some(&exactly)), Ok(()));
        assert_eq!(read(None, Some(&same), None, None), Err(Refusal::NotModified));
        assert_eq!(read(None, Some(&other), Some(&exactly), None), Ok(()));
        assert_eq!(read(None, None, Some(&exactly), None), Err(Refusal::NotModified));
        assert_eq!(read(None, None, Some(&before), None), Ok(()));
    }
}
