//! A statement costs no allocation once its connection has warmed up.
//!
//! The allocator counts the whole process, so this program holds one test.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::engine::Clock;
use tidemark_reactor::Reactor;
use tidemark_sql::Value::{Int, Text};
use tidemark_sql::connection::Connection;
use tidemark_sql::dialect::Dialect;
use tidemark_sql::job::{Endpoint, Settings, Target, Tls};
use tidemark_sql::statement::{Control, Statements};
use tidemark_sql::{Server, Statement};
use tidemark_testing::plain_mysql::PlainMysql;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Accepts one session and answers everything that ends in a Sync with one row of one column.
fn serve(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    let length = stream.read(&mut buffer).unwrap();
    assert!(length > 8);
    stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").unwrap();
    let mut first = true;
    let mut filled = 0;
    loop {
        let Ok(length) = stream.read(&mut buffer[filled..]) else { return };
        if length == 0 {
            return;
        }
        filled += length;
        if !buffer[..filled].ends_with(b"S\0\0\0\x04") {
            continue;
        }
        filled = 0;
        let prepared: &[u8] = if std::mem::take(&mut first) { b"1\0\0\0\x04" } else { b"" };
        stream.write_all(prepared).unwrap();
        stream
            .write_all(b"2\0\0\0\x04D\0\0\0\x0c\0\x01\0\0\0\x0242C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I")
            .unwrap();
    }
}

#[test]
fn a_statement_allocates_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    assert_eq!(allocations(Dialect::Postgres, port, true), 0);
    server.join().unwrap();
    // Prepared, and as texts.
    let server = PlainMysql::start();
    for prepared in [true, false] {
        assert_eq!(allocations(Dialect::Mysql, server.port(), prepared), 0, "prepared: {prepared}");
    }
}

/// What is allocated for a thousand statements after a hundred others, by the client and by the server.
fn allocations(dialect: Dialect, port: u16, prepared: bool) -> usize {
    let target = Target {
        dialect,
        endpoints: vec![Endpoint::Tcp("127.0.0.1".into(), port)],
        replicas: Vec::new(),
        user: "u".into(),
        password: None,
        database: "d".into(),
        tls: Tls::Disable,
        ca_file: None,
        timeout_ns: 20_000_000_000,
        prepared,
    };
    let reactor = Reactor::new(Clock::starting_at(Instant::now()), 1_000_000_000).unwrap();
    let statements = Arc::new(Statements::new("BEGIN", vec![Statement::new("SELECT $1, $2")]));
    let place = Server::resolve(&target).unwrap();
    let settings = Settings { pipeline: false, ..Settings::default() };
    reactor.block_on(async {
        let mut connection = Connection::open(&reactor, &place, 0, &statements, &settings).await.unwrap();
        let mut run = async |times: u32| {
            for number in 0..times {
                connection.add(Control::COUNT, &[Int(number.into()), Text("abc")]).unwrap();
                connection.run().await.unwrap();
                let answer: i64 = connection.rows(0).first().unwrap().number(0).unwrap();
                assert_eq!(answer, 42);
            }
        };
        run(100).await;
        let region = Region::new(ALLOCATOR);
        run(1000).await;
        region.change().allocations
    })
}
