//! What people and scripts do.

use super::{DOCUMENT, OPERATOR, PASSING, REVOKED, Server, VIEWER, tokens};
use crate::Security;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidemark_measure::kind::OperationClass;
use tidemark_measure::record::{Proof, Second, SecondOfOperation};

#[test]
fn cosbenchs_scripts_get_cosbenchs_replies() {
    let server = Server::start(Security::Open);
    for prefix in ["/controller", ""] {
        let ask = |method: &str, action: &str| server.ask(method, &format!("{prefix}/cli/{action}.action"));
        let upload = |document: &str| {
            let body = format!(
                "--b\r\nContent-Disposition: form-data; name=\"config\"; filename=\"x.xml\"\r\n\
                 Content-Type: application/xml\r\n\r\n{document}\r\n--b--\r\n"
            );
            ask("POST", "submit").body("multipart/form-data; boundary=b", body.as_bytes()).send()
        };
        let accepted = upload(DOCUMENT);
        assert_eq!(accepted.status, 200);
        let id = accepted
            .text
            .strip_prefix("Accepted with ID: ")
            .unwrap_or_else(|| panic!("{}", accepted.text))
            .to_owned();
        assert!(id.starts_with('w'), "{id}");
        assert!(accepted.header("content-type").starts_with("text/plain"));
        let wrong = upload("<nothing/>");
        assert!(wrong.status == 200 && !wrong.text.contains("Accepted"), "{}", wrong.text);
        let index = ask("GET", "index").send().text;
        assert!(index.starts_with("Drivers:\nTotal: 0 drivers\n\nActive Workloads:\n"), "{index}");
        assert!(
            index.contains(&format!("{id}\t")) && index.ends_with("Total: 1 active workloads\n"),
            "{index}"
        );
        let form = |action: &str, form: &str| {
            ask("POST", action).body("application/x-www-form-urlencoded", form.as_bytes()).send().text
        };
        let told = form("workload", &format!("id={id}"));
        let fields: Vec<&str> = told.trim_end().split('\t').collect();
        assert_eq!((fields[0], fields[2]), (id.as_str(), "QUEUING"), "{told}");
        assert!(form("cancel", &format!("id={id}")).ends_with("\tCANCELLED\n"));
        assert_eq!(form("workload", "id=w999"), "Not Found");
        assert_eq!(form("workload", "id="), "Bad Request");
        assert_eq!(form("cancel", "other=1"), "Bad Request");
        assert_eq!(
            ask("POST", "config").body("multipart/form-data; boundary=b", b"--b--\r\n").send().text,
            "Bad Request"
        );
    }
    let locked = Server::start(tokens());
    let ask = |query: &str| locked.ask("POST", &format!("/cli/cancel.action?{query}")).send().status;
    assert_eq!(ask("id=w1"), 401);
    assert_eq!(ask(&format!("id=w1&username=vera&password={VIEWER}")), 403);
    assert_eq!(ask(&format!("id=w1&username=olga&password={OPERATOR}")), 200);
}

#[test]
fn events_begin_with_the_overview_and_follow_what_happens() {
    let server = Server::start(Security::Open);
    let mut stream = server.connect();
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nhost: {}\r\n\r\n", server.address()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut next = || {
        let name = lines.by_ref().find_map(|line| line.strip_prefix("event: ").map(str::to_owned))?;
        let data = lines.by_ref().find_map(|line| line.strip_prefix("data: ").map(str::to_owned))?;
        Some((name, serde_json::from_str::<serde_json::Value>(&data).unwrap()))
    };
    let (name, first) = next().unwrap();
    assert_eq!((name.as_str(), first["queue"].as_array().unwrap().len()), ("overview", 0));
    assert_eq!(server.post("/api/v1/submissions", &json!({"document": DOCUMENT})).status, 201);
    let found = std::iter::from_fn(&mut next)
        .find(|(_, data)| data["queue"].as_array().is_some_and(|queue| !queue.is_empty()));
    assert_eq!(found.unwrap().0, "overview");
    let began = Instant::now();
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(60), "a reader of events held up the end");
    while next().is_some() {}
}

#[test]
fn a_reader_of_events_is_sent_away_when_it_may_not_look_on() {
    let server = Server::start(tokens());
    let login = server.ask("POST", "/api/v1/session").json(&json!({"token": VIEWER})).send();
    let key = login.json()["key"].as_str().unwrap().to_owned();
    let listen = |header: &str| {
        let mut stream = server.connect();
        let host = server.address();
        write!(stream, "GET /api/v1/events HTTP/1.1\r\nhost: {host}\r\n{header}\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while !line.starts_with("event: overview") {
            line.clear();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "{header}");
        }
        lines
    };
    let by_session = listen(&format!("authorization: Bearer {key}"));
    let by_token = listen(&format!("authorization: Bearer {PASSING}"));
    let stays = listen(&format!("authorization: Bearer {VIEWER}"));
    assert_eq!(server.ask("DELETE", "/api/v1/session").token(&key).send().status, 204);
    REVOKED.store(true, Ordering::Relaxed);
    for mut lines in [by_session, by_token] {
        // An end, not the minute after which a silent stream is given up here.
        let mut rest = Vec::new();
        lines.read_to_end(&mut rest).unwrap();
    }
    stays.get_ref().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut stays = stays;
    let left = std::iter::from_fn(|| stays.read_until(b'\n', &mut Vec::new()).ok()).find(|read| *read == 0);
    assert_eq!(left, None, "the other one still listens");
}

#[test]
fn a_submission_is_looked_at_changed_and_cancelled() {
    let server = Server::start(tokens());
    let submitted = server.post("/api/v1/submissions", &json!({"document": DOCUMENT}));
    assert_eq!(submitted.status, 201, "{}", submitted.text);
    let id = submitted.json()["id"].as_u64().unwrap();
    let path = format!("/api/v1/submissions/{id}");
    assert_eq!(submitted.json()["by"], "olga");
    assert_eq!(server.get(&path).json()["state"], "queued");
    assert!(server.get(&format!("{path}/document")).header("content-type").starts_with("text/plain"));
    assert_eq!(
        server.get(&format!("{path}/live")).json()["stages"].as_array().map(Vec::is_empty),
        Some(true)
    );
    assert_eq!(server.ask("PATCH", &path).token(OPERATOR).json(&json!({"priority": 5})).send().status, 200);
    // Without a body: the usual way.
    let cancelled = server.ask("POST", &format!("{path}/cancel")).token(OPERATOR).send();
    assert_eq!((cancelled.status, &cancelled.json()["state"]), (200, &json!("cancelled")));
    assert_eq!(server.ask("POST", &format!("{path}/resubmit")).token(OPERATOR).send().status, 201);
    let wrong = server.post("/api/v1/submissions", &json!({"document": "stages: ["}));
    assert_eq!(wrong.status, 422);
    assert!(wrong.json()["problems"][0]["line"].as_u64().unwrap() >= 1, "{}", wrong.text);
}

#[test]
fn stored_runs_are_listed_reported_compared_and_deleted() {
    let server = Server::start(tokens());
    let (first, second) = (server.keep_run(), server.keep_run());
    let rows = server.get("/api/v1/runs?name=tIN").json();
    assert_eq!(
        (rows.as_array().unwrap().len(), &rows[0]["id"], &rows[0]["operations"]),
        (2, &json!(second), &json!(200))
    );
    assert_eq!(server.get(&format!("/api/v1/runs?before={second}")).json()[0]["id"], json!(first));
    assert_eq!(server.get("/api/v1/runs?name=nothing").text, "[]");
    let report = server.get(&format!("/api/v1/runs/{first}/report"));
    assert!(
        report.text.starts_with("<!doctype html>") || report.text.starts_with("<!DOCTYPE html>"),
        "{}",
        &report.text[..60]
    );
    let policy = report.header("content-security-policy");
    assert!(
        policy.contains("default-src 'none'") && policy.contains("style-src 'unsafe-inline'"),
        "{policy}"
    );
    assert_eq!(report.header("x-content-type-options"), "nosniff");
    assert_eq!(report.header("x-frame-options"), "SAMEORIGIN");
    let again = server
        .ask("GET", &format!("/api/v1/runs/{first}/report"))
        .token(OPERATOR)
        .header("if-none-match", report.header("etag"))
        .send();
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    for (format, kind) in [
        ("md", "text/markdown"),
        ("csv", "text/csv"),
        ("series-csv", "text/csv"),
        ("json", "application/json"),
    ] {
        let report = server.get(&format!("/api/v1/runs/{first}/report?format={format}"));
        assert!(report.status == 200 && report.header("content-type").starts_with(kind), "{format}");
        assert!(report.header("content-disposition").contains("attachment"), "{format}");
    }
    assert_eq!(server.get(&format!("/api/v1/runs/{first}/report?format=pdf")).status, 400);
    assert_eq!(server.get(&format!("/api/v1/runs/{first}")).json()["name"], "Tiny");
    let figures = server.get(&format!("/api/v1/runs/{first}/figures")).json();
    let figures = figures.as_array().unwrap();
    assert!(!figures.is_empty());
    for figure in figures {
        assert_eq!((&figure["stage"], &figure["work"]), (&json!("s1-main"), &json!("main")), "{figure}");
        let name = figure["name"].as_str().unwrap();
        let drawn = server.get(&format!("/api/v1/runs/{first}/figures/{name}.svg"));
        assert_eq!((drawn.status, drawn.header("content-type")), (200, "image/svg+xml"), "{name}");
        assert!(drawn.text.starts_with("<svg"));
    }
    let matrix = server.get("/api/v1/matrix").json();
    assert_eq!(matrix.as_array().unwrap().len(), 4);
    assert_eq!(
        (&matrix[0]["operation"], matrix[0]["percentiles_us"].as_array().unwrap().len()),
        (&json!("read"), 9)
    );
    assert_eq!(
        (&matrix[0]["kind"], &matrix[0]["measures"], &matrix[0]["depth"]),
        (&json!("normal"), &json!(true), &json!(1))
    );
    let compared = server.get(&format!("/api/v1/compare?a={first}&b={second}")).json();
    let row = &compared["rows"][0];
    assert_eq!(
        (&compared["outcome"], &row["a"], &row["ratio"]),
        (&json!("not tested"), &row["b"], &json!(1.0)),
        "{compared}"
    );
    assert_eq!(server.get(&format!("/api/v1/compare?a={first},{first}&b={second}")).status, 400);
    assert_eq!(server.get("/api/v1/compare?a=1&b=x").status, 400);
    assert_eq!(server.ask("DELETE", &format!("/api/v1/runs/{first}")).token(OPERATOR).send().status, 204);
    assert_eq!(server.get(&format!("/api/v1/runs/{first}/report")).status, 404);
    assert_eq!(server.get("/api/v1/evaluations").text, "[]");
}

#[test]
fn groups_are_compared_by_operation_within_a_margin_or_not_at_all() {
    let server = Server::start(tokens());
    let with = |label: &str, ok: u64| {
        let mut run = super::run();
        for operation in &mut run.stages[0].works[0].operations {
            operation.tally.ok = ok;
        }
        let second = |index, ok| Second {
            index,
            operations: vec![SecondOfOperation { ok, p99_ns: 5000, ..SecondOfOperation::default() }],
            ..Second::default()
        };
        // The first is of the warm-up, and the last is not whole.
        run.stages[0].works[0].window_start_ns = 1_000_000_000;
        run.stages[0].works[0].window_end_ns = 11_000_000_000;
        run.stages[0].works[0].series = vec![second(0, 0), second(1, ok), second(2, ok), second(11, 1)];
        run.stages[0].works[0].operations[1].label = label.into();
        run.stages[0].works[0].operations[1].class = OperationClass::named(label);
        server.keep(&run)
    };
    let a: Vec<u64> = [1000, 1010, 1005, 995].map(|ok| with("write", ok)).to_vec();
    let b: Vec<u64> = [1001, 1009, 1004, 996].map(|ok| with("delete", ok)).to_vec();
    let list = |ids: &[u64]| ids.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let compared =
        |more: &str| server.get(&format!("/api/v1/compare?a={}&b={}{more}", list(&a), list(&b))).json();
    let plain = compared("");
    assert_eq!((&plain["comparable"], &plain["margin"]), (&json!(true), &json!(null)), "{plain}");
    assert!(plain["outcome"].as_str().unwrap().starts_with("cannot tell"), "{plain}");
    let within = compared("&margin=50%25");
    assert_eq!(
        (&within["outcome"], &within["margin"]),
        (&json!("equal within the margin"), &json!(0.5)),
        "{within}"
    );
    let operations = within["operations"].as_array().unwrap();
    let named = |name: &str| operations.iter().find(|one| one["operation"] == name).unwrap();
    let (read, write, delete) = (named("read"), named("write"), named("delete"));
    assert_eq!((&write["b"], &delete["a"]), (&json!(null), &json!(null)));
    assert_eq!(read["a"]["ok"], json!(4010), "{read}");
    assert_eq!(read["a"]["throughput"], json!(100.25), "the mean of the runs");
    let curve = read["b"]["percentiles_us"].as_array().unwrap();
    assert!(curve.windows(2).all(|pair| pair[0][1].as_f64() <= pair[1][1].as_f64()), "{curve:?}");
    let seconds = json!([{"at": 1, "throughput": 1000.0, "p99_us": 5.0}, {"at": 2, "throughput": 1000.0, "p99_us": 5.0}]);
    assert_eq!(read["a"]["runs"][0], json!({"run": a[0], "seconds": seconds}));
    assert_eq!(server.get("/api/v1/compare?a=1&b=2&margin=lots").status, 400);
    // What differs in its name alone is the same: COSBench's words and ours.
    let named = |label: &str, on_volumes: bool| {
        let mut run = super::run();
        run.stages[0].works[0].operations[0].label = label.into();
        run.stages[0].works[0].operations.truncate(1);
        run.stages[0].proof = on_volumes.then(Proof::default);
        server.keep(&run)
    };
    let (cosbench, ours, volumes) = (named("read", false), named("get", false), named("read", true));
    let both = server.get(&format!("/api/v1/compare?a={cosbench}&b={ours}")).json();
    assert_eq!(
        (&both["comparable"], &both["operations"][0]["operation"]),
        (&json!(true), &json!("read / get"))
    );
    assert_eq!(both["operations"].as_array().unwrap().len(), 1, "{both}");
    // What differs in more than its name is not.
    let unlike = server.get(&format!("/api/v1/compare?a={cosbench}&b={volumes}")).json();
    assert_eq!(unlike["comparable"], json!(false), "{unlike}");
    // Nothing that both did: that is said, rather than two numbers put beside each other.
    let other = {
        let mut run = super::run();
        run.stages[0].works[0].operations.remove(0);
        run.stages[0].works[0].operations[0].label = "delete".into();
        run.stages[0].works[0].operations[0].class = OperationClass::Delete;
        server.keep(&run)
    };
    let nothing = server.get(&format!("/api/v1/compare?a={}&b={other}", a[0])).json();
    assert_eq!((&nothing["comparable"], &nothing["rows"]), (&json!(false), &json!([])), "{nothing}");
    let sentence = nothing["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("Nothing comparable: A measured read, write; B measured delete."),
        "{sentence}"
    );
}

#[test]
fn targets_tell_forms_which_works_they_can_have() {
    let server = Server::start(tokens());
    let targets = server.get("/api/v1/targets").json();
    let works = |kind: &str| {
        let targets = targets.as_array().unwrap();
        targets.iter().find(|target| target["form"]["name"] == kind).unwrap()["works"].clone()
    };
    let names = |kind: &str| {
        let works = works(kind);
        works
            .as_array()
            .unwrap()
            .iter()
            .map(|work| work["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("file"), ["prepare", "precondition", "load", "cleanup"]);
    assert_eq!(names("device"), ["prepare", "precondition", "load"], "a device cannot be removed");
    assert_eq!(names("swift"), ["init", "prepare", "load", "cleanup", "dispose"]);
    let load = works("rbd").as_array().unwrap().iter().find(|work| work["name"] == "load").unwrap().clone();
    let key = |name: &str| load["keys"].as_array().unwrap().iter().find(|key| key["name"] == name);
    let pattern = key("pattern").unwrap();
    assert_eq!((&pattern["list"], &pattern["required"]), (&json!(true), &json!(true)));
    assert!(pattern["choices"].as_array().unwrap().contains(&json!("randread")), "{pattern}");
    assert!(
        ["block_size", "depth", "clients", "for", "rate", "steady"].iter().all(|name| key(name).is_some())
    );
    let is_list = |name: &str| key(name).unwrap()["list"] == true;
    assert!(is_list("depth") && is_list("block_size"), "{load}");
    assert!(!is_list("rate"), "its list is of mappings");
    assert!(key("operations").is_none() && key("pool").is_none(), "these are mappings");
}

#[test]
fn the_console_is_served_to_browsers_and_only_what_is_there() {
    let server = Server::start(tokens());
    for path in ["/", "/runs/7", "/matrix"] {
        let page = server.ask("GET", path).send();
        assert!(
            page.status == 200 && page.header("content-type").starts_with("text/html"),
            "{path}: {page:?}"
        );
        assert!(page.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
    }
    assert_eq!(server.ask("GET", "/assets/nothing.js").send().status, 404);
    assert_eq!(server.ask("GET", "/../../etc/passwd.txt").send().status, 404);
    assert_eq!(server.ask("POST", "/").send().status, 405);
}

#[test]
fn the_history_has_runs_with_their_remarks_and_files() {
    let server = Server::start(tokens());
    let id = server.keep_run();
    let history: serde_json::Value = serde_json::from_str(&server.get("/api/v1/history").text).unwrap();
    assert_eq!((&history["total"], &history["rows"][0]["run"]), (&json!(1), &json!(id)));
    let remark = json!({"note": "after the upgrade", "tags": ["nightly"]});
    let path = format!("/api/v1/runs/{id}/remark");
    let put =
        |token: &str, remark: &serde_json::Value| server.ask("PUT", &path).token(token).json(remark).send();
    assert_eq!(put(VIEWER, &remark).status, 403);
    assert_eq!(put(OPERATOR, &remark).status, 200);
    assert_eq!(put(OPERATOR, &json!({"tags": ["a,b"]})).status, 400);
    assert_eq!(server.ask("PUT", "/api/v1/runs/99/remark").token(OPERATOR).json(&remark).send().status, 404);
    let kept: serde_json::Value = serde_json::from_str(&server.get(&path).text).unwrap();
    assert_eq!(kept, remark);
    let total = |query: &str| {
        let text = server.get(&format!("/api/v1/history?{query}")).text;
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["total"].clone()
    };
    assert_eq!(
        (total("tag=nightly"), total("tag=other"), total("text=upgrade")),
        (json!(1), json!(0), json!(1))
    );
    assert_eq!(server.get("/api/v1/history?limit=0").status, 400);
    assert_eq!(server.get("/api/v1/history?sort=nothing").status, 400);
    for (file, kind) in [("archive", "application/gzip"), ("document", "text/plain"), ("log", "text/plain")] {
        let answer = server.get(&format!("/api/v1/runs/{id}/{file}"));
        assert_eq!(answer.status, 200, "{file}");
        assert!(answer.header("content-type").starts_with(kind), "{file}");
        assert!(answer.header("content-disposition").starts_with("attachment"), "{file}");
        assert_eq!(server.get(&format!("/api/v1/runs/99/{file}")).status, 404, "{file}");
    }
}
