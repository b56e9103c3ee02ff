//! The API and its description say the same: every operation is called.

use super::{DOCUMENT, DRIVER, OPERATOR, Server, VIEWER, tokens};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidemark_controller::api::Role;

/// The table at the top of the API's types: method, path, role.
fn table() -> Vec<(String, String, Option<Role>)> {
    let mut rows = Vec::new();
    for line in
        include_str!("../../../controller/src/api.rs").lines().filter(|line| line.starts_with("//! | `"))
    {
        let cells: Vec<&str> = line.trim_start_matches("//! |").split('|').map(str::trim).collect();
        let role = match cells[1] {
            "viewer" => Some(Role::Viewer),
            "operator" => Some(Role::Operator),
            "driver" => Some(Role::Driver),
            "none" => None,
            other => panic!("{other} in {line}"),
        };
        for quoted in cells[0].split('`').filter(|part| part.contains(" /")) {
            let (method, path) = quoted.split_once(' ').unwrap();
            let path = path.split('?').next().unwrap().replace("{name}.svg", "{file}");
            rows.push((method.to_lowercase(), format!("/api/v1{path}"), role));
        }
    }
    assert!(rows.len() > 20, "{rows:?}");
    rows
}

fn described(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |path: &String, item: &Value| {
        let item = item.as_object().unwrap().clone();
        let path = path.clone();
        let is_method = |(method, _): &(String, Value)| {
            ["get", "post", "put", "patch", "delete"].contains(&method.as_str())
        };
        item.into_iter().filter(is_method).map(move |(method, operation)| (method, path.clone(), operation))
    };
    paths.iter().flat_map(|(path, item)| methods(path, item)).collect()
}

#[test]
fn every_operation_of_the_table_is_described_and_no_other() {
    let document: Value = serde_json::from_slice(&crate::api::description("1")).unwrap();
    let own: BTreeSet<_> = described(&document).into_iter().map(|(method, path, _)| (method, path)).collect();
    let promised: BTreeSet<_> = table().into_iter().map(|(method, path, _)| (method, path)).collect();
    assert_eq!(own, promised);
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn every_reference_in_the_description_leads_somewhere() {
    let document: Value = serde_json::from_slice(&crate::api::description("1")).unwrap();
    let text = document.to_string();
    let references: BTreeSet<&str> =
        text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(references.len() > 20);
    for reference in references {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
}

/// The description as a file, from which the console's types are made.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

#[test]
fn the_file_is_the_description() {
    let document: Value =
        serde_json::from_slice(&crate::api::description(env!("CARGO_PKG_VERSION"))).unwrap();
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    if std::env::var_os("TIDEMARK_UPDATE").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    let stored = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        stored == text,
        "crates/serve/openapi.json is stale: run this test with TIDEMARK_UPDATE=1, then `npm run types` in console/"
    );
}

#[test]
fn every_operation_has_an_id_of_its_own_and_every_answer_a_description() {
    let document: Value = serde_json::from_slice(&crate::api::description("1")).unwrap();
    let mut ids = BTreeSet::new();
    for (method, path, operation) in described(&document) {
        let id = operation["operationId"].as_str().unwrap().to_owned();
        assert!(ids.insert(id), "{method} {path}: {}", operation["operationId"]);
        for (status, response) in operation["responses"].as_object().unwrap() {
            assert_ne!(response["description"].as_str().unwrap_or_default(), "", "{method} {path} {status}");
        }
    }
}

/// The JSON of an answer is what the description's schema of that name says.
fn assert_fits(document: &Value, name: &str, answer: &Value) {
    let mut schema = json!({"$ref": format!("#/components/schemas/{name}")});
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(answer).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{name}: {errors:?}");
}

#[test]
fn a_stored_run_and_the_lists_fit_their_schemas() {
    let server = Server::start(tokens());
    server.keep_run();
    let submitted = server.post("/api/v1/submissions", &json!({"document": DOCUMENT})).json();
    let document = server.ask("GET", "/api/v1/openapi.json").send().json();
    assert_fits(&document, "Submission", &submitted);
    let get = |path: &str| server.get(&format!("/api/v1{path}")).json();
    let run = get("/runs/1");
    assert!(run["stages"][0]["works"][0]["operations"][0]["ok"].as_u64() > Some(0), "{run}");
    assert_fits(&document, "RunRecord", &run);
    assert_fits(&document, "Info", &get("/info"));
    assert_fits(&document, "Overview", &get("/overview"));
    assert_fits(&document, "TargetForm", &get("/targets")[0]);
    assert_fits(&document, "RunRow", &get("/runs")[0]);
    assert_fits(&document, "MatrixRow", &get("/matrix")[0]);
    assert_fits(&document, "Comparison", &get("/compare?a=1&b=1"));
    server.keep_run();
    let compared = get("/compare?a=1&b=2");
    assert!(compared["operations"][0]["a"]["runs"][0]["run"] == 1, "{compared}");
    assert_fits(&document, "Comparison", &compared);
    let without = |field: &str| {
        let mut run = run.clone();
        run["provenance"].as_object_mut().unwrap().remove(field);
        std::panic::catch_unwind(|| assert_fits(&document, "RunRecord", &run)).is_err()
    };
    assert!(without("seed"), "a reply without a required field has to be noticed");
}

/// A body that an operation takes.
fn body(path: &str) -> Value {
    match path.rsplit('/').next().unwrap() {
        "session" | "owner" => json!({"token": OPERATOR}),
        "tickets" => json!({"address": "/api/v1/info"}),
        "submissions" | "check" => json!({"document": DOCUMENT}),
        "cancel" => json!({"at_once": true}),
        "remark" => json!({"note": "after the upgrade", "tags": ["nightly"]}),
        _ => json!({"priority": 3}),
    }
}

/// The path with numbers of things that are there, and the query that it cannot do without.
fn filled(path: &str, id: u64) -> String {
    let query = if path.ends_with("/compare") { "?a=1&b=1" } else { "" };
    path.replace("{id}", &id.to_string()).replace("{file}", "nothing.svg") + query
}

#[test]
fn every_operation_answers_as_described() {
    let server = Server::start(tokens());
    server.keep_run();
    assert_eq!(server.post("/api/v1/submissions", &json!({"document": DOCUMENT})).status, 201);
    let document = server.ask("GET", "/api/v1/openapi.json").send().json();
    let roles = table();
    // Deleting comes last: the others want the run.
    let (last, first): (Vec<_>, Vec<_>) = described(&document)
        .into_iter()
        .partition(|(method, path, _)| method == "delete" || path.ends_with("/cancel"));
    for (method, path, operation) in first.into_iter().chain(last) {
        let role = roles.iter().find(|row| row.0 == method && row.1 == path).unwrap().2;
        let call = |path: &str, token: Option<&str>, body: Option<Value>| {
            let mut asked = server.ask(&method.to_uppercase(), path);
            if let Some(token) = token {
                asked = asked.token(token);
            }
            if let Some(body) = body {
                asked = asked.json(&body);
            }
            // A stream of events has no end: what matters is how it begins.
            let is_stream = path.starts_with("/api/v1/events");
            let answer = if is_stream { beginning(&server, &asked) } else { asked.send() };
            let place = format!("{method} {path}: {} {}", answer.status, answer.text);
            let responses = &operation["responses"][answer.status.to_string()];
            assert!(responses.is_object(), "not described: {place}");
            let kind = answer.header("content-type").split(';').next().unwrap_or_default();
            let kinds =
                responses["content"].as_object().map(|kinds| kinds.keys().cloned().collect::<Vec<_>>());
            let kinds = kinds.unwrap_or_default();
            assert_eq!(kinds.is_empty(), kind.is_empty(), "{kinds:?}, {kind}: {place}");
            assert!(kind.is_empty() || kinds.iter().any(|own| own == kind), "{kinds:?}, {kind}: {place}");
            if answer.status >= 400 {
                assert!(!answer.json()["message"].as_str().unwrap().is_empty(), "{place}");
            }
            answer.status
        };
        let with_body = operation["requestBody"].is_object().then(|| body(&path));
        let good = filled(&path, 1);
        let token = match role {
            Some(Role::Driver) => DRIVER,
            _ => OPERATOR,
        };
        if role.is_some() {
            assert_eq!(call(&good, None, with_body.clone()), 401, "{method} {path}");
            assert_eq!(call(&good, Some("wrong"), with_body.clone()), 401, "{method} {path}");
            let other = if role == Some(Role::Viewer) { DRIVER } else { VIEWER };
            assert_eq!(call(&good, Some(other), with_body.clone()), 403, "{method} {path}");
        }
        if path.contains("{id}") {
            assert_eq!(
                call(&filled(&path, 4_000_000), Some(token), with_body.clone()),
                404,
                "{method} {path}"
            );
            assert_eq!(
                call(&path.replace("{id}", "x").replace("{file}", "x"), Some(token), with_body.clone()),
                400
            );
            assert!(
                call(
                    &path.replace("{id}", "18446744073709551615").replace("{file}", "x"),
                    Some(token),
                    with_body.clone()
                ) == 404
            );
        }
        if operation["parameters"].to_string().contains("\"limit\"") {
            for limit in ["0", "1001", "-1", "x"] {
                assert_eq!(call(&format!("{path}?limit={limit}"), Some(token), None), 400);
            }
            assert_eq!(
                call(&format!("{path}?limit=1000&before=18446744073709551615"), Some(token), None),
                200
            );
        }
        if with_body.is_some() {
            assert_eq!(call(&good, Some(token), Some(json!({"surprise": [1]}))), 422, "{method} {path}");
        }
        let status = call(&good, Some(token), with_body);
        let wanted: &[u16] = match path.as_str() {
            "/api/v1/link" => &[400, 426],
            // There is no evaluation, and no figure of that name.
            "/api/v1/evaluations/{id}/report" | "/api/v1/runs/{id}/figures/{file}" => &[404],
            _ => &[200, 201, 204],
        };
        assert!(wanted.contains(&status), "{method} {path}: {status}");
    }
}

/// The beginning of an answer that goes on for ever.
fn beginning(server: &Server, asked: &super::TestRequest) -> super::Answer {
    use std::io::{BufRead as _, BufReader, Write as _};
    let path = asked.url.strip_prefix(&server.ready.url()).unwrap().to_owned();
    let mut request = format!("GET /{path} HTTP/1.1\r\nhost: {}\r\n", server.address());
    asked.headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
    let mut stream = server.connect();
    write!(stream, "{request}connection: close\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.by_ref().take_while(|line| !line.is_empty());
    let headers: Vec<_> = headers
        .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let text = if status == 200 { String::new() } else { lines.collect() };
    super::Answer { status, headers, text }
}

#[test]
fn what_is_not_there_is_said_in_the_same_way() {
    let server = Server::start(tokens());
    let missing = server.get("/api/v1/nothing");
    assert_eq!((missing.status, missing.header("content-type")), (404, "application/json"));
    assert!(missing.json()["message"].as_str().unwrap().contains("/api/v1/nothing"));
    let method = server.ask("PUT", "/api/v1/runs").token(OPERATOR).send();
    assert_eq!(method.status, 405);
    assert!(method.header("allow").contains("GET"), "{method:?}");
    assert!(method.json()["message"].is_string());
}

/// The targets as a file, for the console's mock and tests.
const TARGETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../console/mock/targets.json");

#[test]
fn the_file_is_what_the_engines_declare() {
    let server = Server::start(tokens());
    let targets = server.get("/api/v1/targets").json();
    // A line for each target: written by a program, read by programs.
    let lines: Vec<String> = targets.as_array().unwrap().iter().map(Value::to_string).collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    if std::env::var_os("TIDEMARK_UPDATE").is_some() {
        return std::fs::write(TARGETS, &text).unwrap();
    }
    let stored = std::fs::read_to_string(TARGETS).unwrap_or_default();
    assert!(stored == text, "console/mock/targets.json is stale: run this test with TIDEMARK_UPDATE=1");
}
