//! What is too much, too slow, or not what it says.

use super::{OPERATOR, Server, VIEWER, generous, tokens};
use crate::{Limits, Security};
use serde_json::json;
use std::io::{ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

#[test]
fn bodies_are_refused_for_what_is_wrong_with_them() {
    let server = Server::limited(tokens(), Limits { body: Duration::from_millis(700), ..generous() });
    let post =
        |kind: &str, body: &[u8]| server.ask("POST", "/api/v1/check").token(OPERATOR).body(kind, body).send();
    assert_eq!(post("text/plain", b"{}").status, 415);
    assert_eq!(post("application/json", b"{\"document\": ").status, 400);
    assert_eq!(post("application/json", b"\xff\xfe").status, 400);
    assert_eq!(post("application/json", b"{\"document\": 7}").status, 422);
    assert_eq!(post("application/json", "[".repeat(100_000).as_bytes()).status, 422);
    let largest = json!({"document": "\n".repeat(1 << 20)}).to_string();
    assert_eq!(post("application/json; charset=utf-8", largest.as_bytes()).status, 200);
    let larger = json!({"document": "x".repeat((1 << 20) + 1)}).to_string();
    assert_eq!(post("application/json", larger.as_bytes()).status, 413);
    let wrong = post("application/json", b"{\n  \"surprise\": 1}");
    assert!(wrong.json()["message"].as_str().unwrap().contains("line 2 column"), "{}", wrong.text);
    // A body that is announced and does not come.
    let slow = server.raw(&format!(
        "POST /api/v1/check HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {OPERATOR}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{"
    ));
    assert!(slow.starts_with("HTTP/1.1 408"), "{slow}");
    // One that is far too large is refused before it has come.
    let huge = server.raw(&format!(
        "POST /api/v1/check HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {OPERATOR}\r\ncontent-type: application/json\r\n\
         content-length: 3000000000\r\nconnection: close\r\n\r\n"
    ));
    assert!(huge.starts_with("HTTP/1.1 413"), "{huge}");
}

#[test]
fn whoever_may_only_look_learns_nothing_of_secrets() {
    let server = Server::start(tokens());
    let check = |token: &str, secret: &str| {
        let document = format!(
            "name: x\ntarget: {{kind: s3, endpoint: 'http://127.0.0.1:1', access_key: a, {secret}}}\n\
             stages: [{{load: {{for: 1s, containers: 1, operations: [{{get: {{objects: 1}}}}]}}}}]\n"
        );
        let body = json!({"document": document}).to_string();
        server.ask("POST", "/api/v1/check").token(token).body("application/json", body.as_bytes()).send().text
    };
    for secret in ["secret_key: '${TIDEMARK_SECRET_NOBODY_SET}'", "secret_key_file: nobody-wrote-it"] {
        let (operator, viewer) = (check(OPERATOR, secret), check(VIEWER, secret));
        assert!(operator.contains("not set") || operator.contains("cannot be read"), "{operator}");
        assert!(!viewer.contains("not set") && !viewer.contains("cannot be read"), "{viewer}");
        assert!(viewer.contains("\"ok\":true"), "{viewer}");
    }
}

#[test]
fn a_caller_who_asks_too_often_is_told_when_to_come_again() {
    let server =
        Server::limited(tokens(), Limits { requests_per_second: 0.01, requests_at_once: 5.0, ..generous() });
    let statuses: Vec<u16> = (0..6).map(|_| server.get("/api/v1/info").status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    assert!(server.get("/api/v1/info").header("retry-after").parse::<u64>().unwrap() > 1);
    // Another caller is not affected.
    assert_eq!(server.ask("GET", "/api/v1/info").token(super::VIEWER).send().status, 200);
}

#[test]
fn a_head_that_does_not_come_ends_the_connection() {
    let server = Server::limited(tokens(), Limits { head: Duration::from_millis(300), ..generous() });
    let mut slow = server.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nhost:").unwrap();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    assert_eq!(server.get("/api/v1/info").status, 200);
}

#[test]
fn connections_that_only_wait_keep_nobody_out() {
    let limits = Limits { connections: 64, head: Duration::from_secs(600), ..generous() };
    let server = Server::limited(tokens(), limits);
    let mut held: Vec<_> = (0..200).map(|_| server.connect()).collect();
    // Some of them have begun to say something.
    held.iter_mut().step_by(2).for_each(|held| drop(held.write_all(b"GET / HTTP/1.1\r\nhost:")));
    for _ in 0..10 {
        assert_eq!(server.get("/api/v1/info").status, 200);
    }
    // The oldest have ended.
    assert_eq!(held[0].read(&mut [0; 16]).unwrap_or(0), 0, "it is still there");
}

#[test]
fn a_reader_who_takes_nothing_is_let_go() {
    let server =
        Server::limited(Security::Open, Limits { stalled: Duration::from_millis(500), ..generous() });
    let mut reader = server.connect();
    reader.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let request = format!("GET /api/v1/openapi.json HTTP/1.1\r\nhost: {}\r\n\r\n", server.address());
    let deadline = Instant::now() + Duration::from_secs(120);
    // It asks again and again, until the server gives it up.
    loop {
        match reader.write(request.as_bytes()) {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        assert!(Instant::now() < deadline, "it is still connected");
    }
    assert_eq!(server.get("/api/v1/info").status, 200);
}

#[test]
fn readers_of_events_are_counted_while_they_are_there() {
    let server = Server::start(Security::Open);
    let mut reader = server.connect();
    write!(reader, "GET /api/v1/events HTTP/1.1\r\nhost: {}\r\n\r\n", server.address()).unwrap();
    let until = |wanted: &str| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !server.get("/metrics").text.lines().any(|line| line == wanted) {
            assert!(Instant::now() < deadline, "{wanted} does not come");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("tidemark_event_readers 1");
    drop(reader);
    until("tidemark_event_readers 0");
}
