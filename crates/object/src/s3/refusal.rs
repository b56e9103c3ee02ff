//! A server's error replies, and what they mean.

use super::xml;
use crate::failure::Failure;
use crate::secrets::cut;
use std::borrow::Cow;
use tidemark_measure::fault::Fault;

/// Longest message of a server that is passed on.
const MESSAGE_MOST: usize = 300;

/// The failure that a status outside 2xx and the body that came with it are.
#[cold]
pub(crate) fn failure(status: u16, body: &[u8]) -> Failure {
    let Some(error) = xml::error(body) else {
        // A HEAD has no body, and proxies have their own.
        return Failure::status(status, format!("{status}{}", advice_on_status(status)));
    };
    let refused = Failure::status(status, words(status, &error));
    Failure { fault: fault_of_code(&error.code).unwrap_or(refused.fault), ..refused }
}

/// The error that a reply with status 200 may hold: such replies begin before the request has ended.
///
/// # Errors
/// The error in it.
pub(crate) fn hidden(body: &[u8]) -> Result<(), Failure> {
    match xml::error(body) {
        None => Ok(()),
        Some(error) => {
            let fault = fault_of_code(&error.code).unwrap_or(Fault::ServerError);
            Err(Failure::in_doubt(fault, words(200, &error)))
        }
    }
}

/// One of the errors of a multi-object deletion.
pub(crate) fn of_key(error: &xml::Error) -> Failure {
    let fault = fault_of_code(&error.code).unwrap_or(Fault::ClientError);
    Failure::in_doubt(fault, words(200, error))
}

/// `404 NoSuchKey: The specified key does not exist`.
fn words(status: u16, error: &xml::Error) -> String {
    let message = error.message.trim().trim_end_matches('.');
    let advice = advice_on_code(&error.code);
    let colon = if message.is_empty() { "" } else { ": " };
    format!("{status} {}{colon}{}{advice}", error.code, cut(message, MESSAGE_MOST))
}

/// The class of an error code, where the status does not say it.
fn fault_of_code(code: &str) -> Option<Fault> {
    Some(match code {
        "SlowDown"
        | "ServiceUnavailable"
        | "TooManyRequests"
        | "RequestLimitExceeded"
        | "BandwidthLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "SlowDownRead"
        | "SlowDownWrite" => Fault::Throttled,
        "RequestTimeTooSkewed"
        | "SignatureDoesNotMatch"
        | "InvalidAccessKeyId"
        | "AccessDenied"
        | "ExpiredToken"
        | "InvalidToken"
        | "AuthorizationHeaderMalformed"
        | "RequestExpired" => Fault::Denied,
        "NoSuchKey" | "NoSuchBucket" | "NoSuchUpload" => Fault::NotFound,
        "RequestTimeout" => Fault::Timeout,
        "InternalError" => Fault::ServerError,
        "PreconditionFailed" => Fault::Precondition,
        _ => return None,
    })
}

/// What to do about an error code, if there is advice.
fn advice_on_code(code: &str) -> &'static str {
    match code {
        "InvalidAccessKeyId" => " (is the access key right?)",
        "SignatureDoesNotMatch" => " (is the secret key right?)",
        "AuthorizationHeaderMalformed" => " (is the region right?)",
        "RequestTimeTooSkewed" => " (set this machine's clock, or the server's)",
        "ExpiredToken" | "InvalidToken" => " (get a new session token)",
        "PermanentRedirect" | "TemporaryRedirect" => " (use the region and endpoint of the bucket)",
        "BucketAlreadyExists" => " (it belongs to someone else: choose another name)",
        _ => "",
    }
}

fn advice_on_status(status: u16) -> Cow<'static, str> {
    match status {
        301 | 307 => " (use the region and endpoint of the bucket)".into(),
        403 => " (check the keys and their permissions)".into(),
        _ => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_more_than_statuses() {
        let body = |code: &str| {
            format!(
                "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>It is &lt;so&gt;.</Message></Error>"
            )
        };
        let cases = [
            (404, "NoSuchKey", Fault::NotFound, "404 NoSuchKey: It is <so>"),
            (503, "SlowDown", Fault::Throttled, "503 SlowDown: It is <so>"),
            (400, "RequestTimeout", Fault::Timeout, "400 RequestTimeout: It is <so>"),
            (400, "EntityTooSmall", Fault::ClientError, "400 EntityTooSmall: It is <so>"),
            (
                403,
                "SignatureDoesNotMatch",
                Fault::Denied,
                "403 SignatureDoesNotMatch: It is <so> (is the secret key right?)",
            ),
        ];
        for (status, code, fault, text) in cases {
            let failure = failure(status, body(code).as_bytes());
            assert_eq!((failure.fault, failure.text.as_ref()), (fault, text));
        }
        assert_eq!(failure(502, b"<html>Bad gateway</html>").text, "502");
        let lost = hidden(body("InternalError").as_bytes()).unwrap_err();
        assert!(lost.is_retryable() && lost.in_doubt);
        assert_eq!(hidden(b"<CopyObjectResult><ETag>x</ETag></CopyObjectResult>"), Ok(()));
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let body = format!("<Error><Code>X</Code><Message>{}</Message></Error>", "ü".repeat(1000));
        assert_eq!(failure(400, body.as_bytes()).text.chars().count(), "400 X: ".len() + MESSAGE_MOST + 1);
    }
}
