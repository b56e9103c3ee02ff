//! How requests to an account are written, and what its refusals say.

use super::Place;
use super::account::Account;
use crate::client::{Answer, Body, Client, Reply};
use crate::failure::Failure;
use crate::operate::Intake;
use crate::secrets::cut;
use std::cell::Cell;
use tidemark_load::engine::Tick;
use tidemark_measure::fault::Fault;

/// Most of a refusal's words that are passed on.
const WORDS_MOST: usize = 120;

/// One request: a method, what comes after the account's path, header lines.
pub(super) struct Request<'a, P> {
    method: &'static str,
    target: P,
    headers: &'a [(&'a str, &'a [u8])],
}

impl<'a, P: Fn(&mut Vec<u8>)> Request<'a, P> {
    /// A request; `target` appends the rest of its path, and a query.
    pub(super) fn new(method: &'static str, target: P) -> Self {
        Self { method, target, headers: &[] }
    }

    /// Header lines of its own.
    pub(super) fn headers(self, headers: &'a [(&'a str, &'a [u8])]) -> Self {
        Self { headers, ..self }
    }
}

/// What all of a slot's requests have in common.
pub(super) struct Link {
    /// The account's path.
    path: String,
    /// `Host: ...`, before the token.
    host: String,
    /// The header lines of every request.
    lines: Vec<u8>,
    /// The number of the token in them.
    generation: Option<u64>,
    /// A request was answered with 401.
    turned_away: Cell<bool>,
}

impl Link {
    pub(super) fn new(place: &Place) -> Self {
        let host = format!(" HTTP/1.1\r\nHost: {}\r\nUser-Agent: tidemark\r\n", place.endpoint.host);
        Self {
            path: place.path.clone(),
            host,
            lines: Vec::new(),
            generation: None,
            turned_away: Cell::new(false),
        }
    }

    /// Takes over the account's token, if it is another one than before.
    #[inline]
    pub(super) fn follow(&mut self, account: &Account) {
        let generation = account.generation();
        if self.generation != Some(generation) {
            let grant = account.grant();
            self.lines.clear();
            self.lines.extend_from_slice(self.host.as_bytes());
            self.lines.extend_from_slice(b"X-Auth-Token: ");
            self.lines.extend_from_slice(grant.token.reveal().as_bytes());
            self.lines.extend_from_slice(b"\r\n");
            self.generation = Some(generation);
        }
    }

    /// The number of the token in use.
    pub(super) fn generation(&self) -> u64 {
        self.generation.unwrap_or(0)
    }

    /// Whether a reply had status 401 since the last call.
    pub(super) fn take_turned_away(&self) -> bool {
        self.turned_away.take()
    }

    /// Sends a request; any status of 2xx is a success.
    #[inline]
    pub(super) async fn send<P: Fn(&mut Vec<u8>)>(
        &self,
        client: &mut Client,
        now: Tick,
        request: &Request<'_, P>,
        body: &mut Body<'_>,
        intake: &mut Intake<'_>,
    ) -> Result<Reply, Failure> {
        let out = client.connect(now).await?;
        out.extend_from_slice(request.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.path.as_bytes());
        (request.target)(out);
        out.extend_from_slice(&self.lines);
        for (name, value) in request.headers {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        let answer = if request.method == "HEAD" { Answer::HeadOnly } else { Answer::Whole };
        let reply = client.exchange(body, answer, intake).await?;
        if (200..300).contains(&reply.status) {
            return Ok(reply);
        }
        if reply.status == 401 {
            self.turned_away.set(true);
        }
        Err(refusal(reply.status, &intake.body))
    }
}

/// A refusal in words.
#[cold]
fn refusal(status: u16, body: &[u8]) -> Failure {
    let words = words(body);
    let failure = Failure::status(status, format!("{status} {words}").trim_end().to_owned());
    // With 503 Swift reports that too few of its servers responded; the gateway sends SlowDown for throttling.
    let failed = status == 503 && !words.contains("SlowDown");
    if failed { Failure { fault: Fault::ServerError, ..failure } } else { failure }
}

/// The beginning of a body's text, without markup.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let (mut words, mut in_tag) = (String::new(), false);
    for character in text.chars() {
        match character {
            '<' => {
                in_tag = true;
                words.push(' ');
            }
            '>' => in_tag = false,
            other if !in_tag => words.push(if other.is_control() { ' ' } else { other }),
            _ => {}
        }
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&words, WORDS_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_their_class_and_their_words() {
        let html = b"<html><h1>Not Found</h1><p>The resource could not be found.</p></html>";
        let missing = refusal(404, html);
        assert_eq!(missing.fault, Fault::NotFound);
        assert_eq!(missing.text, "404 Not Found The resource could not be found.");
        for (status, body, fault) in [
            (498, "", Fault::Throttled),
            (503, "{\"Code\":\"SlowDown\"}", Fault::Throttled),
            (503, "<h1>Service Unavailable</h1>", Fault::ServerError),
            (507, "", Fault::ServerError),
            (401, "", Fault::Denied),
        ] {
            assert_eq!(refusal(status, body.as_bytes()).fault, fault, "{status} {body}");
        }
        assert_eq!(refusal(507, b"").text, "507");
    }
}
