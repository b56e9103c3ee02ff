//! A server for tests that follows a script.

use crate::dialect::Dialect;
use crate::job::{Endpoint, Target, Tls};
use crate::server::Server;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a script answers to one round trip.
pub(crate) enum Answer {
    /// All statements succeed.
    Fine,
    /// The statement at this place fails with this code; what is behind it is skipped.
    Fails(usize, &'static str),
    /// The connection is closed without an answer.
    Close,
    /// These bytes instead of messages.
    Raw(Vec<u8>),
}

/// Round trips: messages and statements.
type Said = Mutex<Vec<(String, Vec<String>)>>;

/// A server that answers as a script says, and keeps what it was asked: one text for every round trip, such as
/// `PBE PBE S` for its messages.
pub(crate) struct Fake {
    pub(crate) target: Target,
    said: Arc<Said>,
}

impl Fake {
    /// Serves any number of connections; `script` gets the statements of a round trip.
    pub(crate) fn new(script: impl FnMut(&[String]) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let said: Arc<Said> = Arc::default();
        let (kept, script) = (Arc::clone(&said), Arc::new(Mutex::new(script)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, script) = (Arc::clone(&kept), Arc::clone(&script));
                std::thread::spawn(move || {
                    let mut script = move |statements: &[String]| (script.lock().unwrap())(statements);
                    // The end of a connection is the end of its thread.
                    let _ = stream.and_then(|stream| serve(stream, &mut script, &kept));
                });
            }
        });
        let target = Target {
            dialect: Dialect::Postgres,
            endpoints: vec![Endpoint::Tcp("127.0.0.1".into(), port)],
            replicas: Vec::new(),
            user: "u".into(),
            password: None,
            database: "d".into(),
            tls: Tls::Prefer,
            ca_file: None,
            timeout_ns: 20_000_000_000,
            prepared: true,
        };
        Self { target, said }
    }

    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::new(Server::resolve(&self.target).unwrap())
    }

    /// The messages of each round trip so far.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.said.lock().unwrap().iter().map(|(messages, _)| messages.clone()).collect()
    }

    /// The statements of all round trips so far.
    pub(crate) fn statements(&self) -> Vec<String> {
        self.said.lock().unwrap().iter().flat_map(|(_, statements)| statements.clone()).collect()
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn read(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body)?;
    Ok((head[0], body))
}

fn start(stream: &mut TcpStream) -> std::io::Result<()> {
    loop {
        let mut head = [0; 4];
        stream.read_exact(&mut head)?;
        let mut body = vec![0; u32::from_be_bytes(head) as usize - 4];
        stream.read_exact(&mut body)?;
        if body == 80_877_103u32.to_be_bytes() {
            stream.write_all(b"N")?;
            continue;
        }
        let mut hello = message(b'R', &[0; 4]);
        hello.extend(message(b'S', b"server_version\x0015.3\0"));
        hello.extend(message(b'K', &[0; 8]));
        hello.extend(message(b'Z', b"I"));
        return stream.write_all(&hello);
    }
}

fn text(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), &bytes[(end + 1).min(bytes.len())..])
}

/// The tag of a completed statement.
fn tag(statement: &str) -> String {
    match statement.split(' ').next().unwrap_or("") {
        "INSERT" => "INSERT 0 1".into(),
        "UPDATE" => "UPDATE 1".into(),
        "SELECT" => "SELECT 1".into(),
        other => other.to_owned(),
    }
}

/// Whether a transaction is open after a statement that succeeded.
fn is_open_after(open: bool, statement: &str) -> bool {
    match statement {
        "COMMIT" | "ROLLBACK" => false,
        other => open || other.starts_with("BEGIN"),
    }
}

fn serve(
    mut stream: TcpStream,
    script: &mut dyn FnMut(&[String]) -> Answer,
    said: &Said,
) -> std::io::Result<()> {
    start(&mut stream)?;
    let mut prepared: HashMap<String, String> = HashMap::new();
    let (mut failed, mut open) = (false, false);
    loop {
        let (mut kinds, mut statements, mut answers) = (String::new(), Vec::new(), Vec::new());
        let mut bound = String::new();
        loop {
            let (kind, body) = read(&mut stream)?;
            kinds.push(char::from(kind));
            match kind {
                b'P' => {
                    let (name, rest) = text(&body);
                    prepared.insert(name, text(rest).0);
                    answers.push((statements.len(), message(b'1', &[])));
                }
                b'B' => {
                    let (_, rest) = text(&body);
                    bound = prepared.get(&text(rest).0).cloned().expect("bound statements are prepared");
                    answers.push((statements.len(), message(b'2', &[])));
                }
                b'E' => {
                    let mut answer = Vec::new();
                    if bound.starts_with("SELECT") {
                        answer.extend(message(b'D', b"\0\x01\0\0\0\x0242"));
                    }
                    // A failed transaction that is committed is rolled back, and only the tag says so.
                    let tag = if bound == "COMMIT" && failed { "ROLLBACK".into() } else { tag(&bound) };
                    answer.extend(message(b'C', format!("{tag}\0").as_bytes()));
                    answers.push((statements.len(), answer));
                    statements.push(bound.clone());
                }
                b'Q' => statements.push(text(&body).0),
                _ => {}
            }
            if matches!(kind, b'S' | b'Q') {
                break;
            }
            if kind == b'X' {
                return Ok(());
            }
        }
        said.lock().unwrap().push((kinds, statements.clone()));
        let mut reply = Vec::new();
        match script(&statements) {
            Answer::Close => return Ok(()),
            Answer::Raw(bytes) => reply = bytes,
            Answer::Fine => {
                failed = false;
                answers.into_iter().for_each(|(_, answer)| reply.extend(answer));
                open = statements.iter().fold(open, |open, statement| is_open_after(open, statement));
                reply.extend(message(b'Z', if open { b"T" } else { b"I" }));
            }
            Answer::Fails(place, code) => {
                failed = true;
                answers
                    .into_iter()
                    .filter(|(at, _)| *at < place)
                    .for_each(|(_, answer)| reply.extend(answer));
                let words = format!("SERROR\0VERROR\0C{code}\0Mit failed\0Dsecret detail\0\0");
                reply.extend(message(b'E', words.as_bytes()));
                // A refused COMMIT ends the transaction; anything else leaves it open, and failed.
                open =
                    statements[..place].iter().fold(open, |open, statement| is_open_after(open, statement))
                        && statements[place] != "COMMIT";
                reply.extend(message(b'Z', if open { b"E" } else { b"I" }));
            }
        }
        stream.write_all(&reply)?;
    }
}
