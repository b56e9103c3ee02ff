//! MySQL's protocol against a server that follows a script.

use super::Connection;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::job::{Endpoint, Settings, Target, Tls};
use crate::server::Server;
use crate::statement::{Control, Statement, Statements};
use crate::value::Value::Int;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tidemark_load::engine::Clock;
use tidemark_measure::fault::Fault;
use tidemark_reactor::Reactor;

const WRITE: usize = Control::COUNT;

/// What a server of a script asks of who logs in, and how it answers executions.
#[derive(Clone, Default)]
struct Script {
    /// Its usual way to authenticate.
    plugin: &'static str,
    /// Those of its capabilities from 1 << 16 to 1 << 23 that it does not have.
    lacks: u8,
    /// What it says to the first proof, and to what follows.
    login: Vec<Vec<u8>>,
    /// Errors of the first executions of statements.
    refusals: Vec<(u16, &'static str)>,
}

/// What a client said: the way it chose, its proof, and what it sent after that until it was let in; then commands.
#[derive(Debug, Default)]
struct Said {
    plugin: String,
    logins: Vec<Vec<u8>>,
    commands: Vec<(u8, Vec<u8>)>,
}

const OK: [u8; 7] = [0, 1, 0, 2, 0, 0, 0];

fn read(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn write(stream: &mut TcpStream, number: &mut u8, payload: &[u8]) -> std::io::Result<()> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    let packet = [&[a, b, c, *number], payload].concat();
    *number = number.wrapping_add(1);
    stream.write_all(&packet)
}

fn greeting(plugin: &str, lacks: u8) -> Vec<u8> {
    let mut payload = b"\x0a8.0.36\0\x07\0\0\x0012345678\0".to_vec();
    // No TLS, and definitions and rows end with a packet of their own.
    payload.extend([0xfe, 0xf7, 45, 2, 0, !lacks, 0x80, 21]);
    payload.extend([0; 10]);
    payload.extend(b"901234567890\0");
    payload.extend(plugin.bytes());
    payload.push(0);
    payload
}

fn refusal(code: u16, state: &str, words: &str) -> Vec<u8> {
    [&[0xff][..], &code.to_le_bytes(), b"#", state.as_bytes(), words.as_bytes()].concat()
}

fn serve(mut stream: TcpStream, script: &Script, said: &Mutex<Said>) -> std::io::Result<()> {
    let mut number = 0;
    write(&mut stream, &mut number, &greeting(script.plugin, script.lacks))?;
    let hello = read(&mut stream)?;
    // Behind 32 bytes: the user, the counted proof, the database, the plugin.
    let rest = &hello[32 + b"u\0".len()..];
    let (proof, rest) = (&rest[1..=usize::from(rest[0])], &rest[1 + usize::from(rest[0])..]);
    let names: Vec<_> = rest.split(|byte| *byte == 0).collect();
    {
        let mut said = said.lock().unwrap();
        said.plugin = String::from_utf8_lossy(names[1]).into_owned();
        said.logins.push(proof.to_vec());
    }
    number = 2;
    for reply in &script.login {
        write(&mut stream, &mut number, reply)?;
        match reply.as_slice() {
            [0xff, ..] => return Ok(()),
            // It wants to hear more.
            [0xfe, ..] | [1, 4] => {
                let more = read(&mut stream)?;
                said.lock().unwrap().logins.push(more);
                number = number.wrapping_add(1);
            }
            _ => {}
        }
    }
    write(&mut stream, &mut number, &OK)?;
    let (mut prepared, mut refusals) = (0u32, script.refusals.iter());
    loop {
        let command = read(&mut stream)?;
        let (kind, body) = (command[0], command[1..].to_vec());
        said.lock().unwrap().commands.push((kind, body.clone()));
        let mut number = 1;
        let mut reply = |payload: &[u8]| write(&mut stream, &mut number, payload);
        match kind {
            super::PREPARE => {
                prepared += 1;
                let head = [&[0][..], &prepared.to_le_bytes(), &[0, 0, 1, 0, 0, 0, 0]].concat();
                reply(&head)?;
                reply(&[0; 20])?;
                reply(&[0xfe, 0, 0, 2, 0])?;
            }
            super::EXECUTE => match refusals.next() {
                Some((code, state)) => reply(&refusal(*code, state, "not now"))?,
                None => reply(&OK)?,
            },
            // What sets a session up ends with a question.
            super::QUERY if body.starts_with(b"SET") => {
                reply(&[0, 0, 0, 0x0a, 0, 0, 0])?;
                reply(&[1])?;
                reply(&[12, 63, 0, 1, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0])?;
                reply(&[0xfe, 0, 0, 2, 0])?;
                reply(&[1, b'0'])?;
                reply(&[0xfe, 0, 0, 2, 0])?;
            }
            super::QUERY => reply(&OK)?,
            _ => return Ok(()),
        }
    }
}

struct Opened {
    reactor: Rc<Reactor>,
    connection: Result<Connection, Failure>,
    said: Arc<Mutex<Said>>,
}

fn connect(script: Script) -> Opened {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let said: Arc<Mutex<Said>> = Arc::default();
    let kept = Arc::clone(&said);
    std::thread::spawn(move || {
        // The end of a connection is the end of its thread.
        let _ = listener.accept().and_then(|(stream, _)| serve(stream, &script, &kept));
    });
    let target = Target {
        dialect: Dialect::Mysql,
        endpoints: vec![Endpoint::Tcp("127.0.0.1".into(), port)],
        replicas: Vec::new(),
        user: "u".into(),
        password: Some("open sesame".to_owned().into()),
        database: "d".into(),
        tls: Tls::Prefer,
        ca_file: None,
        timeout_ns: 20_000_000_000,
        prepared: true,
    };
    let reactor = Reactor::new(Clock::starting_at(Instant::now()), target.timeout_ns).unwrap();
    let statements = Arc::new(Statements::new("BEGIN", vec![Statement::new("UPDATE t SET a = $1")]));
    let server = Server::resolve(&target).unwrap();
    let settings = Settings::default();
    let connection = reactor.block_on(Connection::open(&reactor, &server, 0, &statements, &settings));
    Opened { reactor, connection, said }
}

fn switch(plugin: &str) -> Vec<u8> {
    [&[0xfe], plugin.as_bytes(), b"\x0012345678901234567890\0"].concat()
}

#[test]
fn users_prove_their_passwords_in_the_way_that_the_server_wants() {
    let (native, sha2) = (super::startup::SHA1, super::startup::SHA256);
    // A proof of 32 bytes, which the server knows.
    let opened = connect(Script { plugin: sha2, login: vec![vec![1, 3]], ..Script::default() });
    assert_eq!(opened.connection.unwrap().version(), "8.0.36");
    let said = opened.said.lock().unwrap();
    assert_eq!((said.plugin.as_str(), said.logins[0].len()), (sha2, 32));
    // The server's usual way is not this user's.
    let opened = connect(Script { plugin: sha2, login: vec![switch(native)], ..Script::default() });
    assert!(opened.connection.is_ok());
    assert_eq!(opened.said.lock().unwrap().logins.iter().map(Vec::len).collect::<Vec<_>>(), [32, 20]);
    // A usual way that Tidemark lacks may be another than this user's.
    let opened =
        connect(Script { plugin: "dialog", login: vec![switch(sha2), vec![1, 3]], ..Script::default() });
    assert!(opened.connection.is_ok());
    let said = opened.said.lock().unwrap();
    assert_eq!((said.plugin.as_str(), said.logins[0].len()), (native, 20), "no empty proof");
}

#[test]
fn what_a_server_must_not_have_it_does_not_get() {
    let sha2 = super::startup::SHA256;
    for (login, expected) in [
        // It does not know the proof, and the connection is not encrypted.
        (vec![vec![1, 4]], "the server wants the password itself, which is only sent over TLS"),
        (vec![switch("mysql_clear_password")], "the server wants the password itself"),
        (vec![switch("client_ed25519")], "a way to authenticate that Tidemark lacks (client_ed25519)"),
        (vec![refusal(1045, "28000", "Access denied for user 'u'")], "1045 Access denied"),
    ] {
        let opened = connect(Script { plugin: sha2, login, ..Script::default() });
        let failure = opened.connection.err().unwrap();
        assert!(failure.to_string().contains(expected) && failure.fault == Fault::Denied, "{failure}");
        let said = opened.said.lock().unwrap();
        let secret = said.logins.iter().any(|sent| sent.windows(4).any(|part| part == b"open"));
        assert!(!secret && said.commands.is_empty(), "{said:?}");
    }
}

#[test]
fn a_server_that_lacks_something_is_refused_by_the_name_of_that() {
    // CLIENT_MULTI_STATEMENTS and CLIENT_PLUGIN_AUTH.
    let opened = connect(Script { lacks: 1 | 1 << 3, ..Script::default() });
    let failure = opened.connection.err().unwrap();
    let expected = "the server (version 8.0.36) does not offer CLIENT_PLUGIN_AUTH, CLIENT_MULTI_STATEMENTS: ";
    assert!(failure.to_string().contains(expected), "{failure}");
}

#[test]
fn a_statement_that_the_server_has_forgotten_is_prepared_again() {
    for (code, prepared_again) in [(1243, true), (1615, true), (1205, false)] {
        let script =
            Script { plugin: "mysql_native_password", refusals: vec![(code, "HY000")], ..Script::default() };
        let opened = connect(script);
        let mut connection = opened.connection.unwrap();
        let mut run = || {
            connection.add(WRITE, &[Int(7)]).unwrap();
            opened.reactor.block_on(connection.run())
        };
        assert!(run().is_err());
        run().unwrap();
        run().unwrap();
        let said = opened.said.lock().unwrap();
        let executed = |(kind, body): &(u8, Vec<u8>)| (*kind == super::EXECUTE).then(|| body[0]);
        let executed: Vec<u8> = said.commands.iter().filter_map(executed).collect();
        assert_eq!(executed, if prepared_again { [1, 2, 2] } else { [1, 1, 1] }, "{code}");
    }
}
