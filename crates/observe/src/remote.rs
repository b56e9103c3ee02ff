//! A node elsewhere, on which `tidemark observe` runs: asked once a second, in a thread of its own.

use crate::http;
use crate::observer::{Glimpse, nanoseconds, next};
use crate::recorder::Recorder;
use crate::sample::Gaps;
use crate::stop::{Stop, lock};
use crate::wire::{Numbered, Page};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tidemark_measure::observation::Node;
use tidemark_measure::units;

/// The longest that one question may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the end waits for a thread; looking up a name may take longer than any question.
const PATIENCE_AT_END: Duration = Duration::from_secs(3);

/// The largest answer.
const ANSWER_MOST: usize = 8 << 20;

/// Samples of one answer, values of one sample, facts and gaps: more is not believed.
const SAMPLES_MOST: usize = 100;
const VALUES_MOST: usize = 20_000;
const SENTENCES_MOST: usize = 200;

/// The port of `tidemark observe`.
const PORT: u16 = 9750;

/// The thread that asks one node.
pub(crate) struct Remote {
    seen: Arc<Mutex<Seen>>,
    ended: Receiver<()>,
    url: String,
}

/// What was seen so far.
#[derive(Default)]
struct Seen {
    recorder: Recorder,
    name: String,
    facts: Vec<(String, String)>,
    gaps: Gaps,
    said: Vec<String>,
    /// Start of the other observer, and its newest sample that was taken.
    place: Option<(u64, u64)>,
    silent: Option<Silent>,
}

/// A time without answers.
struct Silent {
    from_ns: u64,
    why: String,
}

/// Where and as whom to ask.
struct Address {
    host: String,
    authorization: Option<String>,
}

/// Why a node gave no sample.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("{0} is no address of this form: http://host:9750")]
    Address(String),
    #[error("{}", plain(.0))]
    Socket(#[from] io::Error),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("it wants a token, and that it got was not the right one")]
    Token,
    #[error("its answer was not understood: {0}")]
    Json(#[from] serde_json::Error),
}

fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            format!("no answer within {} s", PATIENCE.as_secs())
        }
        _ => error.to_string(),
    }
}

impl Remote {
    pub(crate) fn start(url: &str, token: Option<&str>, start: Instant, stop: Stop) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (end, ended) = channel();
        thread::spawn({
            let (url, token, seen) = (url.to_owned(), token.map(str::to_owned), Arc::clone(&seen));
            move || {
                watch(&url, token.as_deref(), start, &stop, &seen);
                // Nobody may be waiting any more.
                let _gone = end.send(());
            }
        });
        Self { seen, ended, url: url.to_owned() }
    }

    /// What was seen last, unless the node is silent.
    pub(crate) fn latest(&self) -> Option<Glimpse> {
        let seen = lock(&self.seen);
        let name = if seen.name.is_empty() { &self.url } else { &seen.name };
        seen.silent.is_none().then(|| seen.recorder.glimpse(name)).flatten()
    }

    /// What was seen, once the flag that stops all threads is set.
    pub(crate) fn finish(self) -> Node {
        let late = self.ended.recv_timeout(PATIENCE_AT_END).is_err();
        let mut seen = std::mem::take(&mut *lock(&self.seen));
        if let Some(silent) = seen.silent.take() {
            seen.gaps.say(silent.sentence(&self.url, "its end"));
        }
        if late {
            seen.gaps.say(format!("{} was still being asked at the end of the run.", self.url));
        }
        if seen.recorder.full {
            seen.gaps.say(format!("{} sent more than is kept.", self.url));
        }
        let mut gaps = seen.gaps.sentences().to_vec();
        gaps.extend(seen.said);
        let name = if seen.name.is_empty() { self.url.clone() } else { seen.name };
        Node { name, generates: false, source: self.url, facts: seen.facts, gaps, ..seen.recorder.node() }
    }
}

impl Silent {
    fn sentence(&self, url: &str, until: &str) -> String {
        format!(
            "{url} did not answer from {} of the run to {until}: {}.",
            units::duration_ns(self.from_ns),
            self.why
        )
    }
}

fn watch(url: &str, token: Option<&str>, start: Instant, stop: &Stop, seen: &Mutex<Seen>) {
    let address = Address::parse(url, token);
    loop {
        // When the flag is set, the last second's sample is still wanted.
        let last = stop.sleep_until(next(start, Instant::now()));
        if last && lock(seen).silent.is_some() {
            return;
        }
        let place = lock(seen).place;
        let asked = Instant::now();
        let answer = match &address {
            Some(address) => ask(address, place),
            None => Err(AskError::Address(url.to_owned())),
        };
        let answered = Instant::now();
        let mut seen = lock(seen);
        match answer {
            Ok(page) => {
                let middle = nanoseconds((asked + (answered - asked) / 2).saturating_duration_since(start));
                seen.take(page, url, middle);
            }
            Err(error) => {
                let from_ns = nanoseconds(asked.saturating_duration_since(start));
                seen.silent.get_or_insert_with(|| Silent { from_ns, why: error.to_string() });
            }
        }
        if last {
            return;
        }
    }
}

impl Seen {
    /// Takes an answer; `middle` is the moment between question and answer on this node's clock.
    fn take(&mut self, page: Page, url: &str, middle: u64) {
        if let Some(silent) = self.silent.take() {
            self.gaps.say(silent.sentence(url, &units::duration_ns(middle)));
        }
        let same = self.place.is_some_and(|(started, _)| started == page.started_unix_ns);
        let mut newest = self.place.filter(|_| same).map_or(0, |(_, number)| number);
        for Numbered { number, age_ns, values, .. } in page.samples.into_iter().take(SAMPLES_MOST) {
            let at = middle.checked_sub(age_ns);
            let later = at.filter(|at| self.recorder.last_ns().is_none_or(|last| *at > last));
            // What was before the run's start, or was taken already, is not part of it.
            if let Some(at) = later.filter(|_| number > newest && values.len() <= VALUES_MOST) {
                let finite = values.into_iter().filter(|value| value.value.is_finite()).collect();
                self.recorder.record(at, finite);
            }
            newest = newest.max(number);
        }
        self.place = Some((page.started_unix_ns, newest));
        let short = |text: &String| text.len() <= 1000;
        self.name = Some(page.name).filter(short).unwrap_or_default();
        self.facts = page
            .facts
            .into_iter()
            .filter(|(name, value)| short(name) && short(value))
            .take(SENTENCES_MOST)
            .collect();
        self.said = page.gaps.into_iter().filter(short).take(SENTENCES_MOST).collect();
    }
}

impl Address {
    fn parse(url: &str, token: Option<&str>) -> Option<Self> {
        let host = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]%".contains(letter);
        if host.is_empty() || !host.chars().all(plain) {
            return None;
        }
        // The colons of an IPv6 address are within brackets.
        let port = host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
        let host = if port { host.to_owned() } else { format!("{host}:{PORT}") };
        let visible = |token: &&str| token.bytes().all(|byte| byte.is_ascii_graphic());
        Some(Self {
            host,
            authorization: token.filter(visible).map(|token| format!("Authorization: Bearer {token}\r\n")),
        })
    }
}

fn ask(address: &Address, place: Option<(u64, u64)>) -> Result<Page, AskError> {
    let Address { host, authorization } = address;
    let until = Instant::now() + PATIENCE;
    let socket =
        host.to_socket_addrs()?.next().ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
    let mut stream = TcpStream::connect_timeout(&socket, PATIENCE)?;
    let query = place.map_or(String::new(), |(started, number)| format!("?started={started}&after={number}"));
    let authorization = authorization.as_deref().unwrap_or_default();
    let question =
        format!("GET /samples{query} HTTP/1.1\r\nHost: {host}\r\n{authorization}Connection: close\r\n\r\n");
    http::write(&mut stream, question.as_bytes(), until)?;
    match http::read_reply(&mut stream, ANSWER_MOST, until)? {
        (200, body) => Ok(serde_json::from_slice(&body)?),
        (401, _) => Err(AskError::Token),
        (status, _) => Err(AskError::Status(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Value;
    use tidemark_measure::observation::Kind;

    fn page(started_unix_ns: u64, samples: &[(u64, u64)]) -> Page {
        let values =
            vec![Value { kind: Kind::Cpu, subject: "all".into(), metric: "busy".into(), value: 0.5 }];
        let sample = |&(number, age_ns)| Numbered { number, age_ns, seconds: 1.0, values: values.clone() };
        let samples = samples.iter().map(sample).collect();
        Page { name: "b".into(), started_unix_ns, samples, ..Page::default() }
    }

    #[test]
    fn samples_are_put_on_this_nodes_clock_and_taken_once() {
        let mut seen = Seen::default();
        seen.take(page(1, &[(7, 500)]), "b", 200);
        assert_eq!(seen.recorder.last_ns(), None, "it was taken before the start");
        seen.take(page(1, &[(7, 900), (8, 300)]), "b", 1200);
        seen.take(page(1, &[(8, 1300), (9, 300)]), "b", 2200);
        seen.take(page(2, &[(1, 100)]), "b", 3200);
        assert_eq!(seen.recorder.node().at_ns, [900, 1900, 3100], "the observer there was started anew");
        assert_eq!(seen.place, Some((2, 1)));
    }

    #[test]
    fn addresses_have_a_host_and_perhaps_a_port() {
        let host = |url| Address::parse(url, None).map(|address| address.host);
        assert_eq!(host("http://10.0.0.2:9000/").unwrap(), "10.0.0.2:9000");
        assert_eq!(host("storage-1").unwrap(), "storage-1:9750");
        assert_eq!(host("http://[::1]").unwrap(), "[::1]:9750");
        assert_eq!(host("http://a\r\nx"), None);
        assert_eq!(host("https://a/b"), None);
        assert_eq!(Address::parse("a", Some("x\r\ny")).unwrap().authorization, None);
    }

    #[test]
    fn a_node_that_does_not_answer_is_a_gap() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let stop = Stop::default();
        let remote = Remote::start(&format!("http://{free}"), None, Instant::now(), stop.clone());
        stop.set();
        let node = remote.finish();
        assert!(node.at_ns.is_empty() && node.name == format!("http://{free}"));
        assert!(node.gaps[0].contains("did not answer from"), "{:?}", node.gaps);
    }
}
