//! Statements over Trino's client protocol (Trino documentation, "Trino client REST API"): the first request gives the
//! address of the next, until one gives none.

use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use tidemark_measure::line::one_line;

/// How long a request may take: the coordinator itself answers within a second, with nothing if it has nothing yet.
const REQUEST: Duration = Duration::from_secs(30);
/// How long a request about nodes may take: whoever waits for them asks again, and may want to stop.
const LOOK: Duration = Duration::from_secs(5);
/// How long to wait when the coordinator has too much to do.
const PAUSE: Duration = Duration::from_millis(100);

/// Most bytes of all replies to a statement, and most characters of what they say of a failure.
const MOST_BYTES: usize = 32 << 20;
const WORDS: usize = 500;

/// How long the coordinator may take to name its nodes.
const NODES: Duration = Duration::from_secs(30);

/// What a statement gives.
#[derive(Debug, PartialEq)]
pub struct Given {
    /// Trino's own name for the statement, under which its tables about queries have it.
    pub id: String,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
}

/// One answer of the coordinator.
#[derive(Deserialize)]
struct Answer {
    id: String,
    #[serde(rename = "nextUri")]
    next: Option<String>,
    #[serde(default)]
    data: Vec<Vec<Value>>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

/// Carries out a statement at a coordinator, within the time given.
///
/// # Errors
/// What went wrong, in words.
pub fn ask(endpoint: &str, sql: &str, limit: Duration) -> Result<Given, String> {
    ask_with(endpoint, sql, limit, REQUEST)
}

/// The same, with how long each request may take.
fn ask_with(endpoint: &str, sql: &str, limit: Duration, request: Duration) -> Result<Given, String> {
    // No proxy of the environment stands before a server that we have started, and a busy one is asked again.
    let settings = ureq::Agent::config_builder().proxy(None).http_status_as_error(false);
    let agent: ureq::Agent = settings.timeout_global(Some(request)).build().into();
    let deadline = Instant::now() + limit;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut next = None;
    loop {
        if Instant::now() > deadline {
            if let Some(next) = &next {
                // It would go on for minutes without anybody who waits for it.
                let _ = agent.delete(next).header("X-Trino-User", "tidemark").call();
            }
            return Err(format!("it did not end within {} s", limit.as_secs()));
        }
        let response = match &next {
            None => {
                agent.post(format!("{endpoint}/v1/statement")).header("X-Trino-User", "tidemark").send(sql)
            }
            Some(next) => agent.get(next).header("X-Trino-User", "tidemark").call(),
        };
        let mut response = response.map_err(|error| error.to_string())?;
        match response.status().as_u16() {
            200 => {}
            // The protocol: ask again after 50 to 100 ms.
            429 | 502..=504 => {
                thread::sleep(PAUSE);
                continue;
            }
            other => return Err(format!("the server answered with HTTP status {other}")),
        }
        let text = response.body_mut().read_to_string().map_err(|error| error.to_string())?;
        bytes += text.len();
        if bytes > MOST_BYTES {
            return Err(format!("the rows of a statement are larger than {} MiB", MOST_BYTES >> 20));
        }
        let answer: Answer = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if let Some(error) = answer.error {
            return Err(one_line(&error.message, WORDS));
        }
        rows.extend(answer.data);
        match answer.next {
            None => return Ok(Given { id: answer.id, rows }),
            address => next = address,
        }
    }
}

/// The names of the nodes that the coordinator calls active. It answers by itself, whatever becomes of the others: any
/// more to do, such as to sort, could be given to one that has just died.
///
/// # Errors
/// What went wrong, in words.
pub fn active(endpoint: &str) -> Result<Vec<String>, String> {
    names(endpoint, "SELECT node_id FROM system.runtime.nodes WHERE state = 'active'", LOOK)
}

/// The names of the nodes that are given work: those that had a part in a query over a table with splits for all. A node is
/// active for some seconds before the coordinator gives it any, and queries fail if none has it.
///
/// # Errors
/// What went wrong, in words.
pub fn working(endpoint: &str) -> Result<Vec<String>, String> {
    let id = ask_with(endpoint, "SELECT count(*) FROM tpch.tiny.orders", NODES, LOOK)?.id;
    names(endpoint, &format!("SELECT node_id FROM system.runtime.tasks WHERE query_id = '{id}'"), LOOK)
}

/// The coordinator's version.
///
/// # Errors
/// What went wrong, in words.
pub fn version(endpoint: &str) -> Result<String, String> {
    let sql = "SELECT node_version FROM system.runtime.nodes WHERE coordinator";
    let versions = names(endpoint, sql, REQUEST)?;
    versions.into_iter().next().ok_or_else(|| "the coordinator does not name itself".to_owned())
}

/// The names in the first column of a statement's rows, each once, in order.
fn names(endpoint: &str, sql: &str, request: Duration) -> Result<Vec<String>, String> {
    let rows = ask_with(endpoint, sql, NODES, request)?.rows;
    let mut names: Vec<_> = rows.iter().filter_map(|row| row.first()?.as_str()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;

    /// A server that gives these answers to one request each, and the requests' first lines.
    fn serve(answers: Vec<(u16, Value)>) -> (String, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let address = endpoint.clone();
        let serving = thread::spawn(move || {
            let answer = |(status, body): (u16, Value)| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
                reader.read_line(&mut first).unwrap();
                while line != "\r\n" {
                    line.clear();
                    reader.read_line(&mut line).unwrap();
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                }
                reader.read_exact(&mut vec![0; length]).unwrap();
                let body = body.to_string().replace("SERVER", &address);
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
                stream.write_all((head + &body).as_bytes()).unwrap();
                first.trim_end().to_owned()
            };
            answers.into_iter().map(answer).collect()
        });
        (endpoint, serving)
    }

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn the_rows_of_all_answers_are_one_result() {
        let (endpoint, serving) = serve(vec![
            (200, json!({"id": "q", "nextUri": "SERVER/v1/a"})),
            (503, json!({})),
            (200, json!({"id": "q", "nextUri": "SERVER/v1/b", "data": [[1, "x"]]})),
            (200, json!({"id": "q", "data": [[2, null]]})),
        ]);
        let rows = vec![vec![json!(1), json!("x")], vec![json!(2), Value::Null]];
        assert_eq!(ask(&endpoint, "SELECT 1", LIMIT).unwrap(), Given { id: "q".into(), rows });
        let asked = serving.join().unwrap();
        let expected =
            ["POST /v1/statement HTTP/1.1", "GET /v1/a HTTP/1.1", "GET /v1/a HTTP/1.1", "GET /v1/b HTTP/1.1"];
        assert_eq!(asked, expected);
    }

    #[test]
    fn a_failure_is_told_in_the_server_s_words() {
        for (status, answer, words) in [
            (
                200,
                json!({"id": "q", "error": {"message": "Table 'x' does not exist"}}),
                "Table 'x' does not exist",
            ),
            (401, json!({}), "status 401"),
            (200, json!([]), "invalid"),
        ] {
            let (endpoint, serving) = serve(vec![(status, answer)]);
            let error = ask(&endpoint, "SELECT 1", LIMIT).unwrap_err();
            assert!(error.contains(words), "{error}");
            serving.join().unwrap();
        }
        assert!(ask("http://127.0.0.1:1", "SELECT 1", LIMIT).is_err());
    }
}
