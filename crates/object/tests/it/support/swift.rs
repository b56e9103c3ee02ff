//! A small Swift server with TempAuth and both Keystones, in the tests' own process.

use super::{MS, PATIENCE_NS};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use tidemark_object::job::{Http, Swift, SwiftAuth};
use tidemark_object::text::decode;
use tidemark_plan::secret::Secret;

/// A small Swift with TempAuth and both Keystones, in this process.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) state: Arc<Mutex<State>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) containers: BTreeSet<String>,
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
    /// Header lines of every request, the request line first.
    pub(crate) seen: Vec<Vec<String>>,
    pub(crate) logins: u32,
    /// Requests that the present token is still good for.
    pub(crate) token_left: Option<u32>,
    /// Whether logins are refused.
    pub(crate) locked: bool,
    pub(crate) no_bulk: bool,
    /// Whether conditions of writes are ignored, as the RADOS gateway does.
    pub(crate) unconditional: bool,
    /// Answers to the next requests on objects, instead of what is right.
    pub(crate) instead: Vec<(u16, &'static str)>,
}

impl State {
    fn token(&self) -> String {
        format!("token{}", self.logins)
    }

    pub(crate) fn lines(&self, start: &str) -> Vec<&str> {
        self.seen.iter().map(|head| head[0].as_str()).filter(|line| line.starts_with(start)).collect()
    }
}

struct Asked {
    method: String,
    path: String,
    query: String,
    head: Vec<String>,
    body: Vec<u8>,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = self.query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(found, _)| *found == name).map(|(_, value)| decode(value.as_bytes()))
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let (own_state, own_url) = (Arc::clone(&state), url.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (state, url) = (Arc::clone(&own_state), own_url.clone());
                std::thread::spawn(move || converse(stream.unwrap(), &state, &url));
            }
        });
        Self { url, state }
    }

    pub(crate) fn temp_auth(&self) -> Swift {
        let url = format!("{}/auth/v1.0", self.url);
        target(SwiftAuth::TempAuth { url, user: "test:tester".into(), key: Secret::new("testing") })
    }
}

/// A Swift target with quick retries, none unless asked for.
pub(crate) fn target(auth: SwiftAuth) -> Swift {
    let http = Http { timeout_ns: PATIENCE_NS, back_off_ns: MS, back_off_most_ns: 4 * MS, ..Http::default() };
    Swift { http, auth, policy: None }
}

/// Serves one connection.
fn converse(mut stream: TcpStream, state: &Mutex<State>, url: &str) {
    let mut bytes = Vec::new();
    while let Some(asked) = receive(&mut stream, &mut bytes) {
        let (status, headers, body) = answer(&asked, &mut state.lock().unwrap(), url);
        let mut reply = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| reply += &format!("{name}: {value}\r\n"));
        reply += "\r\n";
        let body = if asked.method == "HEAD" { &[][..] } else { &body };
        if stream.write_all(&[reply.as_bytes(), body].concat()).is_err() {
            return;
        }
    }
}

fn receive(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Asked> {
    let mut more = |bytes: &mut Vec<u8>| {
        let mut piece = [0; 65536];
        let length = stream.read(&mut piece).unwrap_or(0);
        bytes.extend_from_slice(&piece[..length]);
        (length > 0).then_some(())
    };
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|window| window == what);
    while find(bytes, b"\r\n\r\n").is_none() {
        more(bytes)?;
    }
    let end = find(bytes, b"\r\n\r\n").unwrap();
    let head: Vec<String> = String::from_utf8_lossy(&bytes[..end]).lines().map(str::to_owned).collect();
    bytes.drain(..end + 4);
    let mut words = head[0].split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (decode(path.as_bytes()), query.to_owned());
    let mut asked = Asked { method, path, query, head, body: Vec::new() };
    if let Some(length) = asked.header("Content-Length").map(|value| value.parse().unwrap()) {
        while bytes.len() < length {
            more(bytes)?;
        }
        asked.body = bytes.drain(..length).collect();
    } else if asked.header("Transfer-Encoding") == Some("chunked") {
        loop {
            while find(bytes, b"\r\n").is_none() {
                more(bytes)?;
            }
            let end = find(bytes, b"\r\n").unwrap();
            let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
            while bytes.len() < end + 2 + length + 2 {
                more(bytes)?;
            }
            asked.body.extend_from_slice(&bytes[end + 2..end + 2 + length]);
            bytes.drain(..end + 2 + length + 2);
            if length == 0 {
                break;
            }
        }
    }
    Some(asked)
}

type Answered = (u16, Vec<(&'static str, String)>, Vec<u8>);

fn answer(asked: &Asked, state: &mut State, url: &str) -> Answered {
    state.seen.push(asked.head.clone());
    if !asked.path.starts_with("/v1/AUTH_test") {
        return log_in(asked, state, url);
    }
    let good =
        state.token_left.is_none_or(|left| left > 0) && asked.header("X-Auth-Token") == Some(&state.token());
    state.token_left = state.token_left.map(|left| left.saturating_sub(1));
    if !good {
        return (401, vec![], b"<h1>Unauthorized</h1>".to_vec());
    }
    let path = asked.path.trim_start_matches("/v1/AUTH_test").trim_start_matches('/');
    match path.split_once('/') {
        None if path.is_empty() => account(asked, state),
        None => container(asked, state, path),
        Some((name, _)) if !state.containers.contains(name) => (404, vec![], b"no container".to_vec()),
        Some(_) if !state.instead.is_empty() => {
            let (status, words) = state.instead.remove(0);
            (status, vec![], words.as_bytes().to_vec())
        }
        Some(_) => object(asked, state, path),
    }
}

fn log_in(asked: &Asked, state: &mut State, url: &str) -> Answered {
    let storage_url = format!("{url}/v1/AUTH_test");
    let body: serde_json::Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    let identity = &body["auth"]["identity"]["password"]["user"];
    let key = match asked.path.as_str() {
        "/auth/v1.0" => asked.header("X-Auth-Key"),
        "/v2.0/tokens" => body["auth"]["passwordCredentials"]["password"].as_str(),
        "/v3/auth/tokens" => identity["password"].as_str(),
        _ => return (404, vec![], vec![]),
    };
    if key != Some("testing") || state.locked {
        return (401, vec![], vec![]);
    }
    state.logins += 1;
    state.token_left = state.token_left.map(|_| 1000);
    let token = state.token();
    match asked.path.as_str() {
        "/auth/v1.0" => (200, vec![("X-Auth-Token", token), ("X-Storage-Url", storage_url)], vec![]),
        "/v2.0/tokens" => {
            let endpoint = json!({ "region": "r", "publicURL": storage_url });
            let service = json!({ "type": "object-store", "name": "swift", "endpoints": [endpoint] });
            let access = json!({ "token": { "id": token }, "serviceCatalog": [service] });
            (200, vec![], json!({ "access": access }).to_string().into_bytes())
        }
        _ => {
            let endpoint = json!({ "interface": "public", "region": "r", "url": storage_url });
            let service = json!({ "type": "object-store", "name": "swift", "endpoints": [endpoint] });
            let body = json!({ "token": { "catalog": [service] } }).to_string().into_bytes();
            (201, vec![("X-Subject-Token", token)], body)
        }
    }
}

fn account(asked: &Asked, state: &mut State) -> Answered {
    match asked.method.as_str() {
        "POST" if asked.parameter("bulk-delete").is_some() && !state.no_bulk => {
            let names = String::from_utf8(asked.body.clone()).unwrap();
            let names = names.lines().map(|name| decode(name.trim_start_matches('/').as_bytes()));
            let deleted = names.filter(|name| state.objects.remove(name).is_some()).count();
            let body = json!({ "Number Deleted": deleted, "Response Status": "200 OK", "Errors": [] });
            (200, vec![], body.to_string().into_bytes())
        }
        "HEAD" => (204, vec![], vec![]),
        _ => (405, vec![], vec![]),
    }
}

fn container(asked: &Asked, state: &mut State, name: &str) -> Answered {
    let inside = format!("{name}/");
    match asked.method.as_str() {
        "PUT" => (if state.containers.insert(name.to_owned()) { 201 } else { 202 }, vec![], vec![]),
        _ if !state.containers.contains(name) => (404, vec![], vec![]),
        "HEAD" => (204, vec![], vec![]),
        "DELETE" if state.objects.keys().any(|key| key.starts_with(&inside)) => (409, vec![], vec![]),
        "DELETE" => {
            state.containers.remove(name);
            (204, vec![], vec![])
        }
        "GET" => {
            let limit: usize = asked.parameter("limit").unwrap().parse().unwrap();
            let [prefix, marker] = ["prefix", "marker"].map(|name| asked.parameter(name).unwrap_or_default());
            let names = state.objects.keys().filter_map(|key| key.strip_prefix(&inside));
            let page = names.filter(|name| name.starts_with(&prefix) && **name > *marker).take(limit);
            let body: String = page.flat_map(|name| [name, "\n"]).collect();
            (if body.is_empty() { 204 } else { 200 }, vec![], body.into_bytes())
        }
        _ => (405, vec![], vec![]),
    }
}

fn object(asked: &Asked, state: &mut State, path: &str) -> Answered {
    let stored = state.objects.get(path).cloned();
    match (asked.method.as_str(), stored) {
        ("PUT", Some(_)) if asked.header("If-None-Match").is_some() && !state.unconditional => {
            (412, vec![], vec![])
        }
        ("PUT", _) => {
            let mut body = asked.body.clone();
            if let Some(source) = asked.header("X-Copy-From") {
                match state.objects.get(source.trim_start_matches('/')) {
                    Some(found) => body.clone_from(found),
                    None => return (404, vec![], vec![]),
                }
            }
            if asked.parameter("multipart-manifest").is_some() {
                let manifest: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
                body = Vec::new();
                for entry in manifest {
                    let segment = &state.objects[entry["path"].as_str().unwrap().trim_start_matches('/')];
                    assert_eq!(entry["size_bytes"], segment.len());
                    assert_eq!(entry["etag"], format!("{}", segment.len()));
                    body.extend_from_slice(segment);
                }
            }
            let etag = format!("\"{}\"", body.len());
            state.objects.insert(path.to_owned(), body);
            (201, vec![("ETag", etag)], vec![])
        }
        (_, None) => (404, vec![], b"<html><h1>Not Found</h1></html>".to_vec()),
        ("GET", Some(body)) => match asked.header("Range").and_then(|range| range.strip_prefix("bytes=")) {
            Some(range) => {
                let (start, end) = range.split_once('-').unwrap();
                let (start, end): (usize, usize) = (start.parse().unwrap(), end.parse().unwrap());
                (206, vec![], body[start..body.len().min(end + 1)].to_vec())
            }
            None => (200, vec![], body),
        },
        ("HEAD", Some(body)) => (200, vec![], body),
        ("POST", Some(_)) => (202, vec![], vec![]),
        ("DELETE", Some(_)) => {
            state.objects.remove(path);
            (204, vec![], vec![])
        }
        _ => (405, vec![], vec![]),
    }
}
