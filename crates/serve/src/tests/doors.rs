//! Who is let in.

use super::{OPERATOR, Server, VIEWER, generous, tokens};
use crate::{Limits, Options, Security, ServeError, Tls};
use serde_json::json;
use std::io::Read as _;

#[test]
fn an_open_server_serves_its_own_machine_only() {
    let server = Server::start(Security::Open);
    let info = server.ask("GET", "/api/v1/info").send();
    assert_eq!((info.status, &info.json()["role"]), (200, &json!("operator")));
    let port = server.address().port();
    let host = |host: &str| {
        server.raw(&format!("GET /api/v1/info HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"))
    };
    assert!(host(&format!("localhost:{port}")).starts_with("HTTP/1.1 200"));
    assert!(host(&format!("rebound.example:{port}")).starts_with("HTTP/1.1 403"));
    let own = format!("http://127.0.0.1:{port}");
    assert_eq!(server.ask("GET", "/api/v1/info").header("origin", &own).send().status, 200);
    assert_eq!(server.ask("GET", "/api/v1/info").header("origin", "http://evil.example").send().status, 403);
}

#[test]
fn without_security_nothing_is_served_to_a_network() {
    for security in [Security::Open, tokens()] {
        let options = Options {
            listen: "0.0.0.0:0".parse().unwrap(),
            security,
            own: Vec::new(),
            allow_insecure: false,
            name: String::new(),
            version: String::new(),
            origins: Vec::new(),
            limits: Limits::default(),
        };
        assert!(matches!(options.check(), Err(ServeError::Insecure(..))));
        assert!(Options { allow_insecure: true, ..options.clone() }.check().is_ok());
        assert!(Options { listen: "[::1]:0".parse().unwrap(), ..options }.check().is_ok());
    }
}

#[test]
fn tokens_come_in_several_ways_and_only_cosbench_may_put_them_into_an_address() {
    let server = Server::start(tokens());
    let status = |path: &str, authorization: Option<&str>| {
        let asked = server.ask("GET", path);
        authorization
            .into_iter()
            .fold(asked, |asked, value| asked.header("authorization", value))
            .send()
            .status
    };
    // olga:operators-token
    let basic = "Basic b2xnYTpvcGVyYXRvcnMtdG9rZW4=";
    assert_eq!(status("/api/v1/info", Some(basic)), 200);
    assert_eq!(status("/controller/cli/index.action", Some(basic)), 200);
    assert_eq!(status(&format!("/cli/index.action?username=x&password={OPERATOR}"), None), 200);
    assert_eq!(status("/cli/index.action?username=x&password=wrong", None), 401);
    assert_eq!(status(&format!("/api/v1/info?username=x&password={OPERATOR}"), None), 401);
    for odd in ["Basic !!", "Bearer", "Digest x", "Basic Og"] {
        assert_eq!(status("/api/v1/info", Some(odd)), 401, "{odd}");
    }
}

#[test]
fn guessing_tokens_shuts_guesses_out_and_no_good_ones() {
    let server = Server::limited(tokens(), Limits { wrong_tokens_per_minute: 3.0, ..generous() });
    assert_eq!(Limits::default().wrong_tokens_per_minute, 10.0, "as docs/security.md has it");
    let guess = |token: &str| server.ask("GET", "/api/v1/info").token(token).send();
    assert_eq!(["a", "b", "c"].map(|token| guess(token).status), [401, 401, 401]);
    let refused = guess("d");
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
    let unclear = server.ask("GET", "/api/v1/info").header("authorization", "Nonsense").send();
    assert_eq!(unclear.status, 429, "what is no token at all counts, too");
    assert_eq!(guess(OPERATOR).status, 200, "whoever has a token is let in from the same address");
    assert_eq!(guess("e").status, 429);
}

#[test]
fn a_flood_of_nonsense_leaves_the_log_as_it_was() {
    let server = Server::start(tokens());
    for number in 0..300 {
        let value = if number % 2 == 0 { format!("Bearer {number}") } else { "Nonsense".into() };
        let status = server.ask("GET", "/api/v1/runs").header("authorization", &value).send().status;
        assert_eq!(status, 401);
    }
    let run = server.keep_run();
    assert_eq!(server.ask("DELETE", &format!("/api/v1/runs/{run}")).token(OPERATOR).send().status, 204);
    let noted = || server.get("/api/v1/audit").json().as_array().unwrap().clone();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while noted().iter().all(|row| row["what"] != "delete run") && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let refused = noted().iter().filter(|row| row["what"] == "refused").count();
    assert!((1..=20).contains(&refused), "one a minute: {refused}");
}

#[test]
fn refusals_and_deeds_are_noted() {
    let server = Server::start(tokens());
    server.ask("GET", "/api/v1/runs").token("a-wrong-token").send();
    server.ask("POST", "/api/v1/session").json(&json!({"token": "another-wrong-one"})).send();
    server.ask("POST", "/api/v1/session").json(&json!({"token": VIEWER})).send();
    let run = server.keep_run();
    assert_eq!(server.ask("DELETE", &format!("/api/v1/runs/{run}")).token(OPERATOR).send().status, 204);
    let noted = || server.get("/api/v1/audit").json().as_array().unwrap().clone();
    // They are written in their own time.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while noted().len() < 3 && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let rows = noted();
    let mut whats: Vec<_> = rows.iter().map(|row| row["what"].as_str().unwrap()).collect();
    whats.sort_unstable();
    assert_eq!(whats, ["delete run", "login", "refused"]);
    assert!(!format!("{rows:?}").contains("wrong"), "a secret was noted: {rows:?}");
    assert!(rows.iter().all(|row| row["address"] == "127.0.0.1"));
}

#[test]
fn tls_shows_the_certificate_whose_fingerprint_was_told_and_waits_for_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let tls = Some(Tls::SelfSigned { directory: directory.path().into() });
    let limits = Limits { handshake: std::time::Duration::from_millis(500), ..generous() };
    let server = Server::limited(Security::Tokens { tls }, limits);
    let told = server.ready.fingerprint.clone().unwrap();
    assert_eq!(told, crate::fingerprint(&directory.path().join("controller.crt")).unwrap());
    // Somebody who never shakes hands.
    let mut silent = server.connect();
    assert_eq!(server.get("/api/v1/info").status, 200);
    assert_eq!(silent.read(&mut [0; 16]).unwrap_or(0), 0, "the connection was not closed");
}

#[test]
fn an_open_server_takes_nobody_for_a_driver_without_a_token() {
    let server = Server::start(Security::Open);
    let link = |token: Option<&str>| {
        let asked = server.ask("GET", "/api/v1/link");
        token.into_iter().fold(asked, super::TestRequest::token).send().status
    };
    assert_eq!([link(None), link(Some("a-guess")), link(Some(OPERATOR))], [401, 401, 403]);
    assert_ne!([401, 403], [link(Some(super::DRIVER)); 2]);
    assert_eq!(server.ask("POST", "/login").send().status, 409, "nobody logs in here");
}
