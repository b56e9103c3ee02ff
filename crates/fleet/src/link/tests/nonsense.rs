//! What no driver would say.

use super::*;
use crate::link::frame::Body;
use crate::protocol::{Second, Up};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// A driver by hand.
pub(super) struct Caller<'a> {
    host: &'a Host,
    socket: WebSocketStream<TcpStream>,
}

impl<'a> Caller<'a> {
    pub(super) fn new(host: &'a Host) -> Self {
        let socket = host.runtime.block_on(async {
            let mut request = format!("ws://{}{PATH}", host.address).into_client_request().unwrap();
            request.headers_mut().insert("authorization", "Bearer let me in".parse().unwrap());
            let tcp = TcpStream::connect(host.address).await.unwrap();
            let config = WebSocketConfig::default();
            client_async_with_config(request, tcp, Some(config)).await.unwrap().0
        });
        Self { host, socket }
    }

    /// A driver by hand that was let in.
    fn joined(host: &'a Host, hello: &Hello) -> Self {
        let mut caller = Self::new(host);
        caller.send_json(&serde_json::json!({ "hello": { "hello": hello, "resume": null } }));
        assert!(caller.next()["welcome"].is_object());
        let at = caller.next()["ping"]["at_ns"].clone();
        caller.send_json(
            &serde_json::json!({ "pong": { "at_ns": at, "received_ns": 1, "sent_ns": 1, "ack": 0 } }),
        );
        wait(|| host.presence(&hello.name) == Some(Presence::Present));
        caller
    }

    pub(super) fn send_json(&mut self, json: &serde_json::Value) {
        self.send(Message::text(json.to_string()));
    }

    fn send(&mut self, message: Message) {
        // A controller that has hung up already has said why.
        let _ = self.host.runtime.block_on(self.socket.send(message));
    }

    pub(super) fn next(&mut self) -> serde_json::Value {
        loop {
            let message =
                self.host.runtime.block_on(async { tokio::time::timeout(TIMEOUT, self.socket.next()).await });
            if let Message::Text(text) = message.unwrap().expect("a word").expect("a word") {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// Why the controller ended it.
    fn end(&mut self, how: &str) -> String {
        loop {
            let word = self.next();
            if let Some(reason) = word[how]["reason"].as_str() {
                return reason.to_owned();
            }
            assert!(word["ping"].is_object(), "{word}");
        }
    }
}

#[test]
fn a_first_word_that_is_none_is_refused() {
    let host = Host::new(options());
    let words = [
        Message::text("hello?"),
        Message::text("{}"),
        Message::text(r#"{"ping":{"at_ns":1,"ack":0}}"#),
        Message::binary(vec![0; 100]),
        Message::text(format!(
            r#"{{"hello":{{"hello":{{"name":"{}"}},"resume":null}}}}"#,
            "x".repeat(100_000)
        )),
        Message::text("[".repeat(60_000)),
    ];
    for word in words {
        let mut caller = Caller::new(&host);
        caller.send(word);
        assert!(caller.end("refused").contains("same version"));
    }
    assert!(host.fleet.members().is_empty());
}

#[test]
fn nonsense_ends_the_session_with_a_reason_for_both_sides() {
    let said = |number: u64, ack: u64, body: serde_json::Value| {
        Message::text(
            serde_json::json!({ "message": { "number": number, "ack": ack, "body": body } }).to_string(),
        )
    };
    let body =
        || serde_json::to_value(Up::Prepared { run: 1, targets: Vec::new(), holdings: Vec::new() }).unwrap();
    let words = [
        (Message::text("?"), "cannot be read"),
        (Message::text("[".repeat(100_000)), "cannot be read"),
        (
            Message::text(r#"{"welcome":{"controller":"me","session":"x","resumed":null}}"#),
            "only controllers send",
        ),
        (Message::text(r#"{"utilization":{"utilization":{"cpu_busy":"very"}}}"#), "cannot be read"),
        (said(1, 0, serde_json::json!({ "sing": 1 })), "cannot be read"),
        (said(7, 0, body()), "message 7 after message 0"),
        (said(u64::MAX, 0, body()), "after message 0"),
        (said(1, 5, body()), "acknowledged message 5"),
        (Message::binary(vec![0; 31]), "without its header"),
        (Message::binary(Bytes::new()), "without its header"),
        (Message::binary(vec![0; SECOND_MOST + 1]), "maximum is 4 MiB"),
        (Message::binary(vec![0; MESSAGE_MOST + 1]), "cannot be read"),
    ];
    for (word, expected) in words {
        // A busy machine takes its time over the largest of them: nobody may pass for silent meanwhile.
        let host = Host::new(Options { silent_after: TIMEOUT, ..options() });
        let mut caller = Caller::joined(&host, &hello("d1"));
        let heard = host.claim("d1", 3);
        caller.send(word);
        let Ok((7, FromDriver::Gone(reason))) = heard.recv_timeout(TIMEOUT) else {
            panic!("{expected}: not gone")
        };
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(caller.end("void"), reason);
        assert_ne!(host.presence("d1"), Some(Presence::Present));
    }
}

#[test]
fn replays_are_dropped_and_wild_clocks_do_no_harm() {
    let host = Host::new(options());
    let mut caller = Caller::joined(&host, &hello("d1"));
    let heard = host.claim("d1", 3);
    let second = |run| Second { run, stage: 0, work: 0, interval: vec![1] };
    for number in [1, 2, 1, 2, 0, 3] {
        let packet = Body::second(second(number)).unwrap().numbered(number, 0);
        let crate::link::frame::Packet::Binary(bytes) = packet else { panic!("a second is binary") };
        caller.send(Message::Binary(bytes));
    }
    for at in [i64::MIN, -1, 0, i64::MAX] {
        caller.send_json(&serde_json::json!({ "pong": { "at_ns": at, "received_ns": i64::MAX, "sent_ns": i64::MIN, "ack": 0 } }));
        caller.send_json(&serde_json::json!({ "pong": { "at_ns": at, "received_ns": i64::MIN, "sent_ns": i64::MAX, "ack": 0 } }));
    }
    for run in 1..=3 {
        let Ok((7, FromDriver::Second(heard))) = heard.recv_timeout(TIMEOUT) else {
            panic!("no second {run}")
        };
        assert_eq!(heard, second(run));
    }
    host.fleet.members();
    assert!(heard.try_recv().is_err());
}

#[test]
fn a_session_is_not_resumed_without_its_secret() {
    let host = Host::new(options());
    let link = host.driver("d1", host.address);
    let heard = host.claim("d1", 3);
    let resume = serde_json::json!({ "session": "0".repeat(32), "received": 0 });
    let mut thief = Caller::new(&host);
    thief.send_json(&serde_json::json!({ "hello": { "hello": hello("d1"), "resume": resume } }));
    assert!(thief.end("refused").contains("already joined"));
    link.send(Up::Prepared { run: 1, targets: Vec::new(), holdings: Vec::new() });
    assert!(matches!(heard.recv_timeout(TIMEOUT), Ok((7, FromDriver::Message(_)))));
}

#[test]
fn a_rehearsal_takes_what_drivers_say_and_stops_at_nonsense() {
    let hello =
        serde_json::to_vec(&serde_json::json!({"hello": {"hello": hello("d1"), "resume": null}})).unwrap();
    let pong = br#"{"pong":{"at_ns":1,"received_ns":2,"sent_ns":3,"ack":0}}"#;
    let prepared =
        br#"{"message":{"number":1,"ack":0,"body":{"prepared":{"run":1,"targets":[],"holdings":[]}}}}"#;
    assert_eq!(rehearse([(true, &pong[..]), (true, prepared), (true, prepared), (true, pong)]), 4);
    assert_eq!(rehearse([(true, &pong[..]), (true, b"{"), (true, pong)]), 1);
    assert_eq!(rehearse([(false, &[0xff; 3][..])]), 0);
    assert_eq!(rehearse([(true, &hello[..])]), 0, "it has introduced itself already");
}
