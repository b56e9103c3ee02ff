//! The protocol against servers that answer by a script: as Trino does, badly, and with malice.

use super::*;
use crate::tables::query::Rows;
use proptest::prelude::*;
use serde_json::json;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidemark_tpc::answer::Digest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// What a script does with a request.
enum Act {
    /// Sends these bytes, and keeps the connection.
    Send(Vec<u8>),
    /// Sends these bytes, and closes the connection.
    Close(Vec<u8>),
    /// Sends nothing more.
    Hang,
}

/// A server that answers by a script, and what it was asked.
struct Server {
    endpoint: String,
    asked: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// The script gets the first line of a request, without its version, and the server's own address.
    async fn start(script: impl Fn(&str, &str) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (asked, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (script, own) = (Arc::new(script), endpoint.clone());
        let (heard, counted) = (Arc::clone(&asked), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let (script, own, heard) = (Arc::clone(&script), own.clone(), Arc::clone(&heard));
                tokio::spawn(async move {
                    while let Some(request) = request(&mut stream).await {
                        let line = request
                            .lines()
                            .next()
                            .unwrap_or_default()
                            .trim_end_matches(" HTTP/1.1")
                            .to_owned();
                        heard.lock().unwrap().push(request);
                        match script(&line, &own) {
                            Act::Send(bytes) => {
                                if stream.write_all(&bytes).await.is_err() {
                                    return;
                                }
                            }
                            Act::Close(bytes) => {
                                let _ = stream.write_all(&bytes).await;
                                return;
                            }
                            Act::Hang => std::future::pending().await,
                        }
                    }
                });
            }
        });
        Self { endpoint, asked, connections }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The first lines of requests.
    fn lines(&self) -> Vec<String> {
        let line =
            |request: &String| request.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
        self.asked().iter().map(line).collect()
    }

    fn target(&self) -> Trino {
        Trino {
            endpoint: self.endpoint.clone(),
            user: "bench".into(),
            password: None,
            insecure: false,
            ca_file: None,
            catalog: "hive".into(),
        }
    }

    fn coordinator(&self) -> Arc<Coordinator> {
        Coordinator::new(Address::new(&self.target(), &[("x-trino-catalog", "hive")]).unwrap())
    }
}

/// A request with its body; none when the connection is closed.
async fn request(stream: &mut tokio::net::TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        let mut more = [0; 4096];
        match stream.read(&mut more).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&more[..count]),
        }
    }
}

fn reply(status: &str, head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[allow(clippy::needless_pass_by_value, reason = "tests build values in place")]
fn ok(body: serde_json::Value) -> Act {
    Act::Send(reply("200 OK", "", &body.to_string()))
}

/// What a query comes to, and its record.
async fn run(server: &Server, sql: &str) -> (Result<Rows, Failure>, QueryUse) {
    let streams = streams(&server.coordinator(), 1);
    let mut rows = Rows::new();
    let ran = streams[0].run(sql, &mut rows).await;
    let mut used = QueryUse::default();
    streams[0].complete(&mut used);
    (ran.map(|()| rows), used)
}

async fn fails(server: &Server) -> Failure {
    match run(server, "SELECT 1").await.0 {
        Ok(_) => panic!("it did not fail"),
        Err(failure) => failure,
    }
}

fn pages(line: &str, own: &str) -> Act {
    let stats = |queued: u64, elapsed: u64, bytes: u64| {
        json!({
            "state": "RUNNING", "queuedTimeMillis": queued, "analysisTimeMillis": 1, "planningTimeMillis": 2,
            "elapsedTimeMillis": elapsed, "physicalInputBytes": bytes, "physicalInputTimeMillis": 9
        })
    };
    match line {
        "POST /v1/statement" => ok(
            json!({"id": "q", "nextUri": format!("{own}/v1/statement/queued/q/a/1"), "stats": stats(1, 1, 0)}),
        ),
        "GET /v1/statement/queued/q/a/1" => ok(
            json!({"id": "q", "nextUri": format!("{own}/v1/statement/executing/q/b/0?x=1"), "stats": stats(4, 5, 0), "columns": [{"name": "a"}]}),
        ),
        "GET /v1/statement/executing/q/b/0?x=1" => ok(json!({
            "id": "q", "nextUri": format!("{own}/v1/statement/executing/q/b/1"), "stats": stats(5, 50, 1),
            "data": [[1, "a\"b", null], [2, "c  ", 1.50]], "columns": [{"name": "a"}]
        })),
        "GET /v1/statement/executing/q/b/1" => {
            ok(json!({"id": "q", "stats": stats(5, 100, 4096), "data": [[-3, "", true]]}))
        }
        _ => Act::Send(reply("404 Not Found", "", "")),
    }
}

#[tokio::test]
async fn an_answer_of_several_replies_is_put_together() {
    let server = Server::start(pages).await;
    let (rows, used) = run(&server, "SELECT 'a;b'").await;
    let mut known = Digest::default();
    known.add([Some("1"), Some("a\"b"), None].into_iter());
    known.add([Some("2"), Some("c"), Some("1.5")].into_iter());
    known.add([Some("-3"), Some(""), Some("true")].into_iter());
    assert_eq!(rows.unwrap().answer().agrees(&known), Ok(()));
    assert_eq!(server.lines().len(), 4, "{:?}", server.lines());
    assert_eq!(server.connections.load(Ordering::Relaxed), 1, "one connection for all of them");
    let post = &server.asked()[0];
    for part in
        ["x-trino-user: bench", "x-trino-source: tidemark", "x-trino-catalog: hive", "\r\n\r\nSELECT 'a;b'"]
    {
        assert!(post.contains(part), "{post}");
    }
    assert!(!post.contains("authorization"), "there is no password");
    let ms = 1_000_000;
    assert_eq!(
        (used.queued_ns, used.planning_ns, used.execution_ns),
        (Some(5 * ms), Some(3 * ms), Some(92 * ms))
    );
    assert_eq!((used.engine_read_bytes, used.engine_read_ns), (Some(4096), Some(9 * ms)));
    assert_eq!(used.storage, None, "nobody saw it");
}

#[tokio::test]
async fn statements_run_one_after_the_other_and_their_times_add_up() {
    let server = Server::start(pages).await;
    let (rows, used) = run(&server, "SELECT 1; SELECT 2;").await;
    assert_eq!(rows.unwrap().answer().rows(), 6);
    let posts: Vec<_> = server.asked().into_iter().filter(|request| request.starts_with("POST")).collect();
    assert!(
        posts.len() == 2 && posts[0].ends_with("SELECT 1") && posts[1].ends_with("SELECT 2"),
        "{posts:?}"
    );
    assert_eq!(used.engine_read_bytes, Some(8192));
    assert_eq!(
        run(&server, "SELECT 1; DROP TABLE x").await.0.err().map(|failure| failure.fault),
        Some(Fault::Sql)
    );
    assert_eq!(server.lines().iter().filter(|line| line.starts_with("POST")).count(), 2, "nothing was sent");
}

#[tokio::test]
async fn failures_of_queries_have_the_class_of_their_cause() {
    for (name, kind, fault, words) in [
        ("SYNTAX_ERROR", "USER_ERROR", Fault::Sql, "SYNTAX_ERROR"),
        ("TABLE_NOT_FOUND", "USER_ERROR", Fault::Sql, "why"),
        ("PERMISSION_DENIED", "USER_ERROR", Fault::Denied, "why"),
        ("EXCEEDED_LOCAL_MEMORY_LIMIT", "INSUFFICIENT_RESOURCES", Fault::Overloaded, "too little"),
        ("QUERY_QUEUE_FULL", "INSUFFICIENT_RESOURCES", Fault::Overloaded, "too little"),
        ("EXCEEDED_TIME_LIMIT", "INSUFFICIENT_RESOURCES", Fault::Timeout, "why"),
        ("NO_NODES_AVAILABLE", "INSUFFICIENT_RESOURCES", Fault::Unavailable, "why"),
        ("ADMINISTRATIVELY_KILLED", "USER_ERROR", Fault::Unavailable, "was killed"),
        ("USER_CANCELED", "USER_ERROR", Fault::Unavailable, "was killed"),
        ("HIVE_BAD_DATA", "EXTERNAL", Fault::WrongContent, "why"),
        ("HIVE_FILESYSTEM_ERROR", "EXTERNAL", Fault::Io, "why"),
        ("GENERIC_INTERNAL_ERROR", "INTERNAL_ERROR", Fault::ServerError, "why"),
        ("", "", Fault::ServerError, ""),
    ] {
        let server = Server::start(move |_, _| {
            ok(json!({"id": "q", "error": {"message": "why\nat line 2", "errorName": name, "errorType": kind}}))
        })
        .await;
        let failure = fails(&server).await;
        assert_eq!(failure.fault, fault, "{name}");
        assert!(failure.words.contains(words) && failure.words.contains(&server.endpoint), "{failure}");
        assert!(!failure.words.contains("line 2"), "{failure}");
        assert_eq!(server.lines().len(), 1, "what has failed is not cancelled");
    }
}

#[tokio::test]
async fn a_query_goes_on_at_the_same_server_only() {
    let other = Server::start(pages).await;
    for elsewhere in [
        other.endpoint.clone(),
        "http://127.0.0.1:9".into(),
        "https://OWN".into(),
        "http://u:p@OWN".into(),
        "not an address".into(),
    ] {
        let server = Server::start(move |_, own| {
            let place = elsewhere.replace("OWN", own.trim_start_matches("http://"));
            ok(json!({"id": "q", "nextUri": format!("{place}/v1/statement/queued/q/a/1")}))
        })
        .await;
        let failure = fails(&server).await;
        assert_eq!(failure.fault, Fault::Protocol, "{failure}");
        assert!(failure.words.contains("process-forwarded"), "{failure}");
    }
    assert!(other.asked().is_empty());
    let server = Server::start(|_, _| {
        Act::Send(reply("307 Temporary Redirect", "Location: http://127.0.0.1:9/\r\n", ""))
    })
    .await;
    let failure = fails(&server).await;
    assert_eq!(failure.fault, Fault::ClientError);
    assert!(failure.words.contains("redirect to http://127.0.0.1:9/"), "{failure}");
}

#[tokio::test]
async fn what_is_given_up_is_cancelled() {
    let server = Server::start(|line, own| match line {
        "POST /v1/statement" => {
            ok(json!({"id": "q", "nextUri": format!("{own}/v1/statement/executing/q/b/7")}))
        }
        "GET /v1/statement/executing/q/b/7" => Act::Hang,
        _ => Act::Send(reply("204 No Content", "", "")),
    })
    .await;
    let coordinator = server.coordinator();
    let streams = streams(&coordinator, 1);
    {
        let mut rows = Rows::new();
        let mut running = std::pin::pin!(streams[0].run("SELECT 1", &mut rows));
        // Until the reply hangs.
        while server.lines().len() < 2 {
            let soon = tokio::time::timeout(std::time::Duration::from_millis(5), &mut running).await;
            assert!(soon.is_err(), "it hangs");
        }
    }
    coordinator.settle().await;
    assert_eq!(server.lines()[2..], ["DELETE /v1/statement/executing/q/b/7"]);
}

#[tokio::test]
async fn a_server_that_goes_on_without_getting_on_is_given_up() {
    // It asks for more time than a request has in all: nobody waits for that.
    let busy =
        Server::start(|_, _| Act::Send(reply("429 Too Many Requests", "Retry-After: 60\r\n", ""))).await;
    let failure = fails(&busy).await;
    assert_eq!((failure.fault, busy.lines().len()), (Fault::Throttled, 1), "{failure}");
    assert!(failure.words.contains("asks for a pause of 60 s; a request may take 60 s in all"), "{failure}");
    // An answer whose next address is its own.
    let circle =
        |_: &str, own: &str| ok(json!({"id": "q", "nextUri": format!("{own}/v1/statement/executing/q/b/1")}));
    let circling = Server::start(circle).await;
    let failure = fails(&circling).await;
    assert_eq!(failure.fault, Fault::Protocol, "{failure}");
    assert!(failure.words.contains("is the address that was just requested"), "{failure}");
    let asked = circling.lines().iter().filter(|line| line.starts_with("GET")).count();
    assert_eq!(asked, 1, "it is not asked twice");
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_a_broken_one_once() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let server = Server::start(move |line, own| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Act::Send(reply("503 Service Unavailable", "", "busy")),
        1 => Act::Send(reply("429 Too Many Requests", "Retry-After: 0\r\n", "")),
        // The connection breaks where a request may be repeated.
        2 => ok(json!({"id": "q", "nextUri": format!("{own}/v1/statement/queued/q/a/1")})),
        3 => Act::Close(Vec::new()),
        4 => {
            assert_eq!(line, "GET /v1/statement/queued/q/a/1");
            ok(json!({"id": "q", "data": [[1]]}))
        }
        _ => Act::Close(Vec::new()),
    })
    .await;
    assert_eq!(run(&server, "SELECT 1").await.0.unwrap().answer().rows(), 1);
    assert_eq!(server.lines().iter().filter(|line| line.starts_with("POST")).count(), 3);
    let failure = fails(&server).await;
    assert_eq!(
        (failure.fault, tries.load(Ordering::Relaxed)),
        (Fault::Reset, 6),
        "a statement is not posted twice"
    );
    let gone = Server::start(|_, _| Act::Send(reply("404 Not Found", "", "no such query"))).await;
    let failure = fails(&gone).await;
    assert_eq!(failure.fault, Fault::Unavailable);
    assert!(failure.words.contains("no such query") && failure.words.contains("restarted"), "{failure}");
    let denied = Server::start(|_, _| Act::Send(reply("401 Unauthorized", "", ""))).await;
    assert_eq!(fails(&denied).await.fault, Fault::Denied);
}

#[tokio::test]
async fn garbage_is_a_failure_of_its_query() {
    let valid = json!({"id": "q", "data": [[1]]}).to_string();
    let half = reply("200 OK", "", &valid);
    let scripts: Vec<(Vec<u8>, Fault)> = vec![
        (reply("200 OK", "", "<html>"), Fault::Protocol),
        (reply("200 OK", "", "\u{0}"), Fault::Protocol),
        (reply("200 OK", "", ""), Fault::Protocol),
        (reply("200 OK", "", "{\"data\": {\"a\": 1}}"), Fault::Protocol),
        (reply("200 OK", "", "{\"data\": [1]}"), Fault::Protocol),
        (reply("200 OK", "", "{\"data\": [[\"\\ud800\"]]}"), Fault::Protocol),
        (reply("200 OK", "", "{\"nextUri\": 7}"), Fault::Protocol),
        (reply("200 OK", "", &"[".repeat(100_000)), Fault::Protocol),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), Fault::Protocol),
        (format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200_000)).into_bytes(), Fault::Protocol),
        (half[..half.len() - 3].to_vec(), Fault::Reset),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_vec(), Fault::Reset),
        (Vec::new(), Fault::Reset),
    ];
    for (bytes, fault) in scripts {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let server = Server::start(move |_, _| Act::Close(bytes.clone())).await;
        let failure = fails(&server).await;
        assert_eq!(failure.fault, fault, "{shown}: {failure}");
    }
}

#[tokio::test]
async fn a_reply_without_end_is_cut_off() {
    let server = Server::start(|_, _| {
        let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let chunk = [&b"1000000\r\n"[..], &vec![b' '; 16 << 20], b"\r\n"].concat();
        bytes.extend(std::iter::repeat_n(chunk, 5).flatten());
        Act::Close(bytes)
    })
    .await;
    let failure = fails(&server).await;
    assert_eq!(failure.fault, Fault::Protocol);
    assert!(failure.words.contains("larger than 64 MiB"), "{failure}");
}

#[tokio::test]
async fn what_a_coordinator_replies_before_a_load_has_one_limit() {
    let parts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&parts);
    let server = Server::start(move |line, own| match line {
        "GET /v1/info" => ok(json!({"nodeVersion": {"version": "476"}, "coordinator": true})),
        line if line.starts_with("DELETE ") => Act::Send(reply("204 No Content", "", "")),
        _ => {
            // Each part is within the limit of a reply, and there is always another one.
            let next =
                format!("{own}/v1/statement/executing/q/b/{}", counted.fetch_add(1, Ordering::Relaxed));
            let part = json!({"id": "q", "nextUri": next}).to_string();
            Act::Send(reply("200 OK", "", &(" ".repeat(20 << 20) + &part)))
        }
    })
    .await;
    let refusal = check(&server.target()).await.unwrap_err();
    assert!(refusal.contains("its replies add up to more than 64 MiB"), "{refusal}");
    assert_eq!(parts.load(Ordering::Relaxed), 4, "three parts are within the limit, the fourth is not");
}

#[tokio::test]
async fn a_server_that_is_away_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let server = Server { endpoint: endpoint.clone(), asked: Arc::default(), connections: Arc::default() };
    let failure = fails(&server).await;
    assert_eq!(failure.fault, Fault::Refused);
    assert!(
        failure.words.contains(&endpoint) && failure.words.contains("is the coordinator up"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_password_is_sent_and_never_shown() {
    let server = Server::start(|_, _| {
        Act::Send(reply("403 Forbidden", "", "no: Basic YmVuY2g6aHVudGVyMjI=, hunter22"))
    })
    .await;
    let target = Trino { password: Some("hunter22".into()), ..server.target() };
    let coordinator = Coordinator::new(Address::new(&target, &[]).unwrap());
    let failure = coordinator.answer("SELECT 1").await.unwrap_err();
    assert!(server.asked()[0].contains("authorization: Basic YmVuY2g6aHVudGVyMjI="), "{:?}", server.asked());
    assert_eq!(failure.fault, Fault::Denied);
    assert!(failure.words.contains("***") && !failure.words.contains("hunter22"), "{failure}");
    assert!(!failure.words.contains("YmVuY2g"), "{failure}");
}

#[tokio::test]
async fn only_a_coordinator_with_the_catalog_can_be_used() {
    let info = |version: &str, coordinator: bool, starting: bool| json!({"nodeVersion": {"version": version}, "coordinator": coordinator, "starting": starting});
    for (told, catalogs, words) in [
        (info("476", true, false), json!([["hive", "hive"], ["tpch", "tpch"]]), Ok("Trino 476")),
        (info("476", true, false), json!([["tpch", "tpch"]]), Err("no catalog `hive`, only tpch")),
        (info("476", true, false), json!([["hive", "iceberg"]]), Err("connector iceberg")),
        (info("476", true, true), json!([]), Err("still starting")),
        (info("476", false, false), json!([]), Err("it is a worker")),
        (json!({"name": "grafana"}), json!([]), Err("is no Trino")),
    ] {
        let server = Server::start(move |line, _| match line {
            "GET /v1/info" => ok(told.clone()),
            _ => ok(json!({"id": "q", "data": catalogs})),
        })
        .await;
        let checked = check(&server.target()).await;
        match words {
            Ok(name) => assert_eq!(checked.as_deref(), Ok(name)),
            Err(words) => {
                let said = checked.unwrap_err();
                assert!(said.contains(words) && said.contains(&server.endpoint), "{said}");
            }
        }
    }
}

#[tokio::test]
async fn certificates_are_checked_unless_any_will_do() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["127.0.0.1".into()]).unwrap().self_signed(&key).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate.pem()).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let body = json!({"id": "q", "data": [[7]]}).to_string();
            let _ = stream.write_all(&reply("200 OK", "", &body)).await;
        }
    });
    let target = |insecure, ca_file| Trino {
        endpoint: endpoint.clone(),
        user: "bench".into(),
        password: None,
        insecure,
        ca_file,
        catalog: "hive".into(),
    };
    for (insecure, trusted, fault) in
        [(true, None, None), (false, Some(file.path().to_owned()), None), (false, None, Some(Fault::Tls))]
    {
        // A machine may have no authorities at all.
        let Ok(address) = Address::new(&target(insecure, trusted), &[]) else { continue };
        let answer = Coordinator::new(address).answer("SELECT 7").await;
        match fault {
            None => assert_eq!(answer.unwrap(), [[Some("7".to_owned())]]),
            Some(fault) => {
                let failure = answer.unwrap_err();
                assert_eq!(failure.fault, fault);
                assert!(failure.words.contains("ca_file"), "{failure}");
            }
        }
    }
}

#[test]
fn every_table_has_a_schema_of_its_own_set() {
    let target = tidemark_analytics::job::Target {
        engine: tidemark_analytics::job::Engine::DataFusion(tidemark_analytics::job::DataFusion {
            threads: None,
            memory: None,
            metadata_cache: true,
        }),
        storage: Storage::Files { directory: "/x".into() },
        connections: 1,
    };
    let data = |set, by| Data { set, scale_milli: 1, by };
    use tidemark_analytics::job::By;
    use tidemark_analytics::sets::Set;
    let all = [
        (Set::Tpch, By::Tidemark),
        (Set::Tpch, By::Trino),
        (Set::Tpcds, By::Tidemark),
        (Set::Tpcds, By::Trino),
    ];
    let names: HashSet<_> = all.map(|(set, by)| catalog::schema_of(&data(set, by))).into();
    assert_eq!(names.len(), 4);
    assert!(
        schema(&target, &data(Set::Tpch, By::Tidemark), None).unwrap().is_none(),
        "only Trino has a catalog"
    );
}

proptest! {
    #[test]
    fn no_reply_is_a_surprise(body in "(?s)(\\{|\\}|\\[|\\]|\"|data|nextUri|error|stats|:|,|null|1|\\\\u12|.){0,60}") {
        if let Ok(reply) = tidemark_trino::Reply::read(body.as_bytes()) {
            let _ = reply.rows(|_| {});
        }
    }
}
