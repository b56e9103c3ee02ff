//! PostgreSQL's protocol against a server that follows a script.

use crate::failure::Failure;
use crate::job::{Endpoint, Target, Tls};
use crate::postgres::Connection;
use crate::server::Server;
use crate::statement::{Control, Statement, Statements};
use crate::testing::{Answer, Fake};
use crate::value::Value::{Bytes, Int, Null, Text};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::engine::Clock;
use tidemark_measure::fault::Fault;
use tidemark_reactor::Reactor;

const READ: usize = Control::COUNT;
const WRITE: usize = Control::COUNT + 1;

fn connect(fake: &Fake, pipeline: bool) -> (Rc<Reactor>, Connection) {
    let reactor = Reactor::new(Clock::starting_at(Instant::now()), 1_000_000_000).unwrap();
    let own = vec![Statement::new("SELECT $1"), Statement::new("UPDATE t SET a = $1, b = $2")];
    let statements = Arc::new(Statements::new("BEGIN", own));
    let server = fake.server();
    let opened = Connection::open(&reactor, &server, 0, &statements, pipeline);
    let connection = reactor.block_on(opened).unwrap();
    (reactor, connection)
}

#[test]
fn a_statement_is_prepared_with_its_first_execution_alone() {
    let fake = Fake::new(|_| Answer::Fine);
    let (reactor, mut connection) = connect(&fake, false);
    for _ in 0..2 {
        connection.add(READ, &[Int(7)]).unwrap();
        reactor.block_on(connection.run()).unwrap();
        assert_eq!(connection.rows(0).first().unwrap().number::<i64>(0), Ok(42));
    }
    assert_eq!(fake.messages(), ["PBES", "BES"]);
    assert_eq!(connection.version(), "15.3");
}

#[test]
fn unnamed_statements_are_prepared_each_time() {
    let mut fake = Fake::new(|_| Answer::Fine);
    fake.target.prepared = false;
    let (reactor, mut connection) = connect(&fake, false);
    for _ in 0..2 {
        connection.add(READ, &[Int(7)]).unwrap();
        reactor.block_on(connection.run()).unwrap();
    }
    assert_eq!(fake.messages(), ["PBES", "PBES"]);
}

#[test]
fn a_batch_is_one_round_trip_with_pipelining_and_several_without() {
    for (pipeline, messages) in [(true, vec!["PBEPBEBES"]), (false, vec!["PBES", "PBES", "BES"])] {
        let fake = Fake::new(|_| Answer::Fine);
        let (reactor, mut connection) = connect(&fake, pipeline);
        connection.add(READ, &[Null]).unwrap();
        connection.add(WRITE, &[Text("x"), Bytes(b"\0\xff")]).unwrap();
        connection.add(READ, &[Int(1)]).unwrap();
        reactor.block_on(connection.run()).unwrap();
        let affected: Vec<u64> = (0..4).map(|place| connection.rows(place).affected()).collect();
        assert_eq!(affected, [1, 1, 1, 0], "{pipeline}");
        assert_eq!(fake.messages(), messages);
    }
}

#[test]
fn what_the_server_skipped_is_prepared_again() {
    let mut round = 0;
    let fake = Fake::new(move |_| {
        round += 1;
        if round == 1 { Answer::Fails(0, "42P01") } else { Answer::Fine }
    });
    let (reactor, mut connection) = connect(&fake, true);
    connection.add(READ, &[Int(1)]).unwrap();
    connection.add(WRITE, &[Int(1), Int(2)]).unwrap();
    let failure = reactor.block_on(connection.run()).unwrap_err();
    assert_eq!((failure.fault, failure.lost), (Fault::Sql, false));
    assert_eq!(failure.to_string(), "42P01 it failed", "without the detail, which quotes values");
    connection.add(WRITE, &[Int(1), Int(2)]).unwrap();
    reactor.block_on(connection.run()).unwrap();
    assert_eq!(fake.messages(), ["PBEPBES", "PBES"]);
}

#[test]
fn a_connection_that_ends_or_makes_no_sense_is_lost() {
    let outcome = |answer: fn() -> Answer| -> Failure {
        let fake = Fake::new(move |_| answer());
        let (reactor, mut connection) = connect(&fake, false);
        connection.add(READ, &[Int(1)]).unwrap();
        reactor.block_on(connection.run()).unwrap_err()
    };
    let closed = outcome(|| Answer::Close);
    assert_eq!((closed.fault, closed.lost), (Fault::Reset, true));
    for bytes in [&b"Z\0\0\0\x01"[..], b"C\xff\xff\xff\xff", b"?\0\0\0\x04", b"Z\0\0\0\x05I"] {
        static BYTES: std::sync::Mutex<Vec<u8>> = std::sync::Mutex::new(Vec::new());
        *BYTES.lock().unwrap() = bytes.to_vec();
        let wrong = outcome(|| Answer::Raw(BYTES.lock().unwrap().clone()));
        assert_eq!((wrong.fault, wrong.lost), (Fault::Protocol, true), "{bytes:?}");
    }
    let fatal = b"E\0\0\0\x27SFATAL\0VFATAL\0C57P01\0Mterminating\0\0".to_vec();
    assert_eq!(fatal.len(), 0x28);
    static FATAL: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    FATAL.get_or_init(|| fatal);
    let ended = outcome(|| Answer::Raw([FATAL.get().unwrap().as_slice(), b"Z\0\0\0\x05I"].concat()));
    assert_eq!((ended.fault, ended.lost), (Fault::Unavailable, true));
}

#[test]
fn half_a_message_is_never_sent() {
    let fake = Fake::new(|_| Answer::Fine);
    let reactor = Reactor::new(Clock::starting_at(Instant::now()), 1_000_000_000).unwrap();
    let own = vec![Statement::new("SELECT $1"), Statement::new("SELECT 'a\0b'")];
    let (statements, server) = (Arc::new(Statements::new("BEGIN", own)), fake.server());
    let mut connection =
        reactor.block_on(Connection::open(&reactor, &server, 0, &statements, false)).unwrap();
    let refused = connection.add(Control::COUNT + 1, &[]).unwrap_err();
    assert_eq!((refused.fault, refused.lost), (Fault::Sql, false));
    connection.add(READ, &[Int(1)]).unwrap();
    reactor.block_on(connection.run()).unwrap();
    assert_eq!(fake.messages(), ["PBES"]);
}

/// A server without TLS that asks for the password itself: what it got. Nothing where the client left before.
fn ask_for_password(mut stream: TcpStream) -> Option<String> {
    let mut read = |head: usize| {
        let mut bytes = vec![0; head + 4];
        stream.read_exact(&mut bytes).ok()?;
        let length = u32::from_be_bytes(bytes[head..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body).ok()?;
        Some((stream.try_clone().unwrap(), body))
    };
    let (mut back, body) = read(0)?;
    // A request for TLS (protocol: SSLRequest).
    if body == 80_877_103_u32.to_be_bytes() {
        back.write_all(b"N").ok()?;
        read(0)?;
    }
    back.write_all(b"R\0\0\0\x08\0\0\0\x03").ok()?;
    let (mut back, password) = read(1)?;
    let _ = back.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I");
    Some(String::from_utf8(password).unwrap())
}

#[test]
fn a_password_goes_as_the_server_asks_unless_the_target_demands_more() {
    let fake = Fake::new(|_| Answer::Fine);
    for (tls, goes) in
        [(Tls::Disable, true), (Tls::Prefer, true), (Tls::Require, false), (Tls::Verify, false)]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = std::thread::spawn(move || ask_for_password(listener.accept().unwrap().0));
        let endpoints = vec![Endpoint::Tcp("127.0.0.1".into(), port)];
        let target = Target { endpoints, tls, password: Some("hunter2".into()), ..fake.target.clone() };
        let reactor = Reactor::new(Clock::starting_at(Instant::now()), target.timeout_ns).unwrap();
        let statements = Arc::new(Statements::new("BEGIN", Vec::new()));
        let server = Server::resolve(&target).unwrap();
        let opened = reactor.block_on(Connection::open(&reactor, &server, 0, &statements, true)).map(drop);
        assert_eq!(opened.is_ok(), goes, "{tls:?}: {opened:?}");
        assert_eq!(got.join().unwrap().as_deref(), goes.then_some("hunter2\0"), "{tls:?}");
    }
}
