//! How browsers are let in, and with what: sessions, login addresses, tickets.

use super::{Answer, OPERATOR, Server, VIEWER, tokens};
use crate::Security;
use serde_json::{Value, json};

/// Logs in with this, and gives the session's key.
fn key(server: &Server, login: &Value) -> Option<String> {
    let answer = server.ask("POST", "/api/v1/session").json(login).send();
    assert!(answer.header("set-cookie").is_empty(), "{answer:?}");
    (answer.status == 200).then(|| answer.json()["key"].as_str().unwrap().to_owned())
}

/// Who somebody with this key or token is; none if it opens nothing.
fn who(server: &Server, shown: &str) -> Option<Value> {
    let answer = server.ask("GET", "/api/v1/info").token(shown).send();
    (answer.status == 200).then(|| answer.json()["user"].clone())
}

#[test]
fn a_session_stands_for_its_token_and_ends() {
    let server = Server::start(tokens());
    let log_in = |token: &str| server.ask("POST", "/api/v1/session").json(&json!({"token": token})).send();
    assert_eq!([log_in("guess").status, log_in(super::DRIVER).status], [401, 403]);
    let login = log_in(VIEWER);
    assert_eq!((login.status, &login.json()["owner"]["user"]), (200, &json!("vera")));
    assert!(login.header("set-cookie").is_empty() && !login.text.contains(VIEWER), "{login:?}");
    let session = login.json()["key"].as_str().unwrap().to_owned();
    let other = key(&server, &json!({"token": VIEWER})).unwrap();
    let info = server.ask("GET", "/api/v1/info").token(&session).send();
    assert_eq!((info.status, &info.json()["role"]), (200, &json!("viewer")));
    let log_out = || server.ask("DELETE", "/api/v1/session");
    assert_eq!(log_out().send().status, 204, "whoever shows no session ends none");
    assert_eq!(who(&server, &session), Some(json!("vera")));
    assert_eq!(log_out().token(&session).send().status, 204);
    assert_eq!(who(&server, &session), None, "it has ended at the controller");
    assert_eq!(who(&server, &other), Some(json!("vera")), "and no other one");
}

#[test]
fn sessions_that_have_ended_are_no_guesses() {
    let limits = crate::Limits { wrong_tokens_per_minute: 1.0, ..super::generous() };
    let server = Server::limited(tokens(), limits);
    let ended = format!("session-{}", "0".repeat(64));
    let info = |shown: &str| server.ask("GET", "/api/v1/info").token(shown).send().status;
    assert_eq!([(); 5].map(|()| info(&ended)), [401; 5]);
    // Only what looks like a key is one.
    assert_eq!(["session-1", "session-2"].map(info), [401, 429]);
}

#[test]
fn a_cookie_is_worth_nothing() {
    let server = Server::start(tokens());
    let session = key(&server, &json!({"token": OPERATOR})).unwrap();
    let secret = session.strip_prefix("session-").unwrap();
    for name in [format!("tidemark-{}", server.address().port()), "tidemark".into()] {
        for value in [&session, secret, OPERATOR] {
            let cookie = format!("{name}={value}");
            assert_eq!(server.ask("GET", "/api/v1/info").header("cookie", &cookie).send().status, 401);
            assert_eq!(
                server.ask("DELETE", "/api/v1/session").header("cookie", &cookie).send().status,
                204,
                "nobody was logged in"
            );
        }
        // Nor does one that somebody else has set stand in the way.
        let asked = server.ask("GET", "/api/v1/info").header("cookie", &format!("{name}=x")).token(&session);
        assert_eq!(asked.send().status, 200);
    }
}

#[test]
fn a_page_of_another_origin_logs_nobody_in_or_out() {
    let server = Server::start(tokens());
    let session = key(&server, &json!({"token": VIEWER})).unwrap();
    // The port is part of the origin.
    let origin = format!("http://127.0.0.1:{}", server.address().port() ^ 1);
    let from = |method: &str, path: &str| server.ask(method, path).header("origin", &origin);
    for path in ["/api/v1/session", "/api/v1/session/owner"] {
        assert_eq!(from("POST", path).json(&json!({"token": OPERATOR})).send().status, 403);
    }
    assert_eq!(from("DELETE", "/api/v1/session").send().status, 403);
    assert_eq!(from("OPTIONS", "/api/v1/session").send().header("access-control-allow-origin"), "");
    assert_eq!(who(&server, &session), Some(json!("vera")));
}

#[test]
fn a_login_address_is_good_once_and_its_user_is_known() {
    let server = Server::start(tokens());
    let code = |url: &str| url.split_once("/login?code=").unwrap().1.to_owned();
    let first = code(server.ready.login.as_ref().unwrap());
    let by_code = |code: &str| key(&server, &json!({"code": code}));
    let owner = |code: &str| server.ask("POST", "/api/v1/session/owner").json(&json!({"code": code})).send();
    // However often it is opened or asked about, it is not used up.
    for method in ["HEAD", "GET"] {
        server.ask(method, &format!("/login?code={first}")).send();
    }
    for _ in 0..2 {
        assert_eq!(owner(&first).json(), json!({"user": "owner", "role": "operator"}));
    }
    assert_eq!(who(&server, &first), None, "a code is no token");
    let session = by_code(&first).unwrap();
    assert_eq!(who(&server, &session), Some(json!("owner")));
    assert_eq!(by_code(&first), None, "it is used up");
    assert_eq!((owner(&first).status, by_code("guess"), by_code("")), (401, None, None));

    assert_eq!(server.ask("POST", "/login").send().status, 401);
    assert_eq!(server.ask("POST", "/login").token(super::DRIVER).send().status, 403);
    let code = server.ask("POST", "/login").token(VIEWER).send().json();
    let session = by_code(code.as_str().unwrap()).unwrap();
    assert_eq!(who(&server, &session), Some(json!("vera")), "whoever asked for it");
}

#[test]
fn an_address_that_another_site_may_have_opened_asks_first() {
    let server = Server::start(tokens());
    let open = |from: Option<&str>| {
        let asked = server.ask("GET", "/login?code=x&more");
        from.into_iter().fold(asked, |asked, from| asked.header("sec-fetch-site", from)).send()
    };
    for alone in ["none", "same-origin"] {
        let page = open(Some(alone));
        assert_eq!((page.status, page.header("location")), (200, ""), "{alone}");
    }
    // A page on another port of this host is of the same site.
    for led in [Some("cross-site"), Some("same-site"), Some("odd"), None] {
        let page = open(led);
        assert_eq!((page.status, page.header("location")), (303, "/login/confirm?code=x&more"), "{led:?}");
    }
    let asks = server.ask("GET", "/login/confirm?code=x").send();
    assert_eq!((asks.status, asks.header("location")), (200, ""));
}

#[test]
fn a_ticket_is_good_once_for_one_address_and_no_longer_than_its_session() {
    let server = Server::start(tokens());
    let run = server.keep_run();
    let session = key(&server, &json!({"token": VIEWER})).unwrap();
    let report = format!("/api/v1/runs/{run}/report?format=csv");
    let ticket = |address: &str| {
        let asked = server.ask("POST", "/api/v1/tickets").token(&session).json(&json!({"address": address}));
        asked.send().json()["address"].as_str().unwrap().to_owned()
    };
    let get = |address: &str| server.ask("GET", address).send();
    let with = ticket(&report);
    assert!(with.starts_with(&format!("{report}&ticket=")), "{with}");
    let first = get(&with);
    assert_eq!(first.status, 200, "{}", first.text);
    assert!(first.header("content-disposition").contains("attachment"));
    assert_eq!(get(&with).status, 401, "twice");

    let other = |address: &str, to: &str| address.replace(&report, to);
    for to in [
        "/api/v1/audit?",
        &format!("/api/v1/runs/{run}/report?format=json"),
        &format!("/api/v1/runs/{run}/report?format=csv&format=json"),
        &format!("/api/v1/runs/{run}"),
    ] {
        let with = ticket(&report);
        assert_eq!(get(&other(&with, to)).status, 401, "{to}");
        assert_eq!(get(&with).status, 401, "it was tried elsewhere");
    }
    assert_eq!(get(&report).status, 401);
    assert_eq!(get(&format!("{report}&ticket=")).status, 401);
    let guess = format!("{report}&ticket={}", "0".repeat(64));
    assert_eq!(get(&guess).status, 401);

    // It changes nothing, and a viewer's opens nothing that the viewer could not.
    let address = format!("/api/v1/runs/{run}");
    assert_eq!(server.ask("DELETE", &ticket(&address)).send().status, 401);
    assert_eq!(get(&ticket("/api/v1/audit")).status, 403);
    assert_eq!(get(&ticket(&address)).status, 200);

    let left = ticket(&report);
    assert_eq!(server.ask("DELETE", "/api/v1/session").token(&session).send().status, 204);
    assert_eq!(get(&left).status, 401, "its session has ended");
    assert_eq!(server.ask("POST", "/api/v1/tickets").json(&json!({"address": report})).send().status, 401);
}

#[test]
fn where_nobody_logs_in_there_are_no_sessions() {
    let server = Server::start(Security::Open);
    let refused = |path: &str, body: &Value| server.ask("POST", path).json(body).send().status;
    assert_eq!(refused("/api/v1/session", &json!({"token": OPERATOR})), 409);
    assert_eq!(refused("/api/v1/session/owner", &json!({"code": "x"})), 409);
    assert_eq!(refused("/api/v1/tickets", &json!({"address": "/api/v1/info"})), 409);
    assert_eq!(server.ask("POST", "/login").send().status, 409);
}

#[test]
fn pages_run_no_scripts_of_others_and_are_framed_by_nobody() {
    let server = Server::start(tokens());
    let run = server.keep_run();
    let policy = |answer: &Answer| {
        let text = answer.header("content-security-policy").to_owned();
        let parts = text.split(';').map(|part| part.trim().to_owned());
        parts.collect::<Vec<_>>()
    };
    for path in ["/", "/login", "/login/confirm", "/runs/1"] {
        let page = server.ask("GET", path).header("sec-fetch-site", "none").send();
        let policy = policy(&page);
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.iter().any(|own| own == part), "{path}: {part} in {policy:?}");
        }
        assert_eq!(page.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(page.header("referrer-policy"), "no-referrer", "{path}");
    }
    let report = server.get(&format!("/api/v1/runs/{run}/report"));
    let policy = policy(&report);
    for part in ["default-src 'none'", "sandbox allow-popups", "frame-ancestors 'self'"] {
        assert!(policy.iter().any(|own| own == part), "{part} in {policy:?}");
    }
}
