//! Hosts and origins.

use super::origin::Gate;
use axum::http::{Request, request::Parts};

fn gate(open: bool) -> Gate {
    Gate::new("127.0.0.1:19088".parse().unwrap(), open, false, vec!["https://Bench.example.org/".into()])
}

fn request(method: &str, headers: &[(&str, &str)]) -> Parts {
    let mut builder = Request::builder().method(method).uri("/api/v1/info");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

#[test]
fn an_open_server_answers_to_this_machine_only() {
    for host in ["localhost:19088", "127.0.0.1:19088", "[::1]:19088", "LOCALHOST:19088"] {
        assert!(gate(true).check(&request("GET", &[("host", host)])).is_ok(), "{host}");
    }
    for host in
        ["evil.example:19088", "localhost", "localhost:1", "127.0.0.1.evil.example:19088", "[::1]", ""]
    {
        assert!(gate(true).check(&request("GET", &[("host", host)])).is_err(), "{host}");
    }
    assert!(gate(true).check(&request("GET", &[])).is_err());
}

#[test]
fn other_sites_are_refused() {
    let host = ("host", "localhost:19088");
    for (origin, is_ours) in [
        ("http://localhost:19088", true),
        ("https://bench.example.org", true),
        ("https://localhost:19088", false),
        ("http://localhost:8080", false),
        ("null", false),
    ] {
        let asked = |method| gate(true).check(&request(method, &[host, ("origin", origin)])).is_ok();
        assert_eq!((asked("GET"), asked("POST")), (is_ours, is_ours), "{origin}");
    }
}

#[test]
fn with_tokens_only_what_no_page_can_send_is_not_asked_where_it_comes_from() {
    let headers = [("host", "h:1"), ("origin", "http://evil.example")];
    let with_token = [headers[0], headers[1], ("authorization", "Bearer x")];
    let with_password = [headers[0], headers[1], ("authorization", "Basic eDp4")];
    assert!(gate(false).check(&request("GET", &headers)).is_ok());
    assert!(gate(false).check(&request("POST", &headers)).is_err());
    assert!(gate(false).check(&request("DELETE", &headers)).is_err());
    assert!(gate(false).check(&request("POST", &with_password)).is_err());
    assert!(gate(false).check(&request("POST", &with_token)).is_ok());
}

#[test]
fn a_browser_that_names_no_origin_may_say_that_another_site_asks() {
    let (host, password) = (("host", "localhost:19088"), ("authorization", "Basic eDp4"));
    for (from, is_fine) in [
        ("cross-site", false),
        ("same-site", false),
        ("\u{ff}", false),
        ("same-origin", true),
        ("none", true),
    ] {
        let asks = |open, method, headers: &[_]| gate(open).check(&request(method, headers)).is_ok();
        let from = ("sec-fetch-site", from);
        assert_eq!(asks(false, "POST", &[host, password, from]), is_fine, "{from:?}");
        assert_eq!(asks(true, "POST", &[host, from]), is_fine, "{from:?}");
        assert!(asks(true, "GET", &[host, from]), "a link: {from:?}");
        assert!(asks(false, "POST", &[host, ("authorization", "Bearer x"), from]), "{from:?}");
        let own = ("origin", "https://bench.example.org");
        assert!(asks(true, "POST", &[host, own, from]), "a proxy: {from:?}");
    }
}

#[test]
fn an_open_server_on_a_network_answers_to_no_name_that_somebody_made_up() {
    let origins = vec!["https://bench.example.org".into()];
    let gate = Gate::new("10.0.0.1:19088".parse().unwrap(), true, false, origins);
    let answers = |host: &str| gate.check(&request("GET", &[("host", host)])).is_ok();
    let own = crate::tls::host_name().unwrap();
    for host in
        ["10.0.0.1:19088", "[2001:db8::1]:19088", "10.9.9.9", "localhost:1", "bench.example.org", &own]
    {
        assert!(answers(host), "{host}");
    }
    for host in
        ["evil.example:19088", "evil.example", "10.0.0.1.evil.example:19088", "bench.example.org:81", ""]
    {
        assert!(!answers(host), "{host}");
    }
    assert!(gate.check(&request("GET", &[])).is_err());
}
