//! MySQL's protocol against a real MariaDB.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::engine::Clock;
use tidemark_measure::fault::Fault;
use tidemark_plan::secret::Secret;
use tidemark_reactor::Reactor;
use tidemark_sql::Value::{Bytes, Decimal, Float, Int, Null, Text, Time};
use tidemark_sql::dialect::Dialect;
use tidemark_sql::job::{Endpoint, Isolation, Settings, Target, Tls};
use tidemark_sql::mysql::Connection;
use tidemark_sql::statement::{Control, Statements};
use tidemark_sql::{Failure, Server, Statement};
use tidemark_testing::mariadb::Mariadb;

const OWN: usize = Control::COUNT;

fn target(server: &Mariadb) -> Target {
    Target {
        dialect: Dialect::Mysql,
        endpoints: vec![Endpoint::Tcp("127.0.0.1".into(), server.port())],
        replicas: Vec::new(),
        user: "bench".into(),
        password: Some(Secret::new("bench")),
        database: "bench".into(),
        tls: Tls::Prefer,
        ca_file: None,
        timeout_ns: 60_000_000_000,
        prepared: true,
    }
}

struct Client {
    reactor: Rc<Reactor>,
    connection: Connection,
}

impl Client {
    fn try_open(target: &Target, own: &[&str], settings: &Settings) -> Result<Self, Failure> {
        let reactor = Reactor::new(Clock::starting_at(Instant::now()), 1_000_000_000).unwrap();
        let statements =
            Arc::new(Statements::new("BEGIN", own.iter().map(|sql| Statement::new(*sql)).collect()));
        let place = Server::resolve(target).unwrap();
        let opened = reactor.block_on(Connection::open(&reactor, &place, 0, &statements, settings));
        opened.map(|connection| Self { reactor, connection })
    }

    fn open(target: &Target, own: &[&str]) -> Self {
        Self::try_open(target, own, &Settings::default()).unwrap()
    }

    fn run(
        &mut self,
        number: usize,
        values: &[tidemark_sql::Value<'_>],
    ) -> Result<Vec<Option<String>>, Failure> {
        self.connection.add(number, values)?;
        self.reactor.block_on(self.connection.run())?;
        let Ok(row) = self.connection.rows(0).first() else { return Ok(Vec::new()) };
        (0..row.columns()).map(|column| row.get(column).map(|text| text.map(str::to_owned))).collect()
    }

    fn simple(&mut self, sql: &str) -> Result<(), Failure> {
        self.reactor.block_on(self.connection.simple(sql))
    }
}

#[test]
fn values_of_all_types_come_back_prepared_or_not() {
    let Some(server) = Mariadb::start(&[]) else { return };
    server.sql(
        "CREATE TABLE t (i int, b bigint, c char(4), v varchar(20), x longtext, d decimal(12,2), f double, \
         t datetime(6), y longblob) CHARACTER SET utf8mb4",
    );
    let own = [
        "INSERT INTO t (b, i, c, v, x, d, f, t, y) VALUES ($2, $1, $3, $4, $5, $6, $7, $8, $9)",
        "SELECT * FROM t WHERE i = $1",
    ];
    let long = "ü'\\\"\u{1f600}".repeat(5000);
    for (number, prepared) in [(1, true), (2, false)] {
        let target = Target { prepared, ..target(&server) };
        let mut client = Client::open(&target, &own);
        let values = [
            Int(number),
            Int(i64::MIN),
            Text("ab"),
            Text("it's \\ '' $1"),
            Text(&long),
            Decimal(-1_234_567, 2),
            Float(1.5),
            Time(1_700_000_000_123_456),
            Bytes(b"plain"),
        ];
        client.run(OWN, &values).unwrap();
        assert_eq!(client.connection.rows(0).affected(), 1);
        let row = client.run(OWN + 1, &[Int(number)]).unwrap();
        let expected = [
            &number.to_string(),
            "-9223372036854775808",
            "ab",
            "it's \\ '' $1",
            &long,
            "-12345.67",
            "1.5",
            "2023-11-14 22:13:20.123456",
            "plain",
        ];
        let expected: Vec<_> = expected.iter().map(|text| Some((*text).to_owned())).collect();
        assert_eq!(row, expected, "prepared: {prepared}");
        let nulls = [Int(number + 10), Null, Null, Null, Null, Null, Null, Null, Null];
        client.run(OWN, &nulls).unwrap();
        let row = client.run(OWN + 1, &[Int(number + 10)]).unwrap();
        assert_eq!(row[1..], vec![None; 8]);
    }
    assert_eq!(server.sql("SELECT hex(y), count(*) FROM t WHERE y IS NOT NULL GROUP BY y"), "706C61696E|2");
}

#[test]
fn a_session_is_what_was_asked_for() {
    let Some(server) = Mariadb::start(&[]) else { return };
    let socket = Target { endpoints: vec![Endpoint::Unix(server.socket())], ..target(&server) };
    let settings = Settings { isolation: Some(Isolation::ReadCommitted), ..Settings::default() };
    let mut client = Client::try_open(&socket, &[], &settings).unwrap();
    client.simple("SELECT @@tx_isolation, @@autocommit, @@sql_mode; SELECT 7").unwrap();
    let row = client.connection.rows(0).first().unwrap();
    let shown: Vec<&str> = (0..3).map(|column| row.text(column).unwrap()).collect();
    assert_eq!(shown, ["READ-COMMITTED", "1", "NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES"]);
    assert_eq!(client.connection.rows(1).first().unwrap().number::<u64>(0), Ok(7));
    assert!(client.connection.version().starts_with("10."), "{}", client.connection.version());
    assert!(!client.connection.is_standby());
    server.sql("SET GLOBAL read_only = 1");
    assert!(Client::open(&target(&server), &[]).connection.is_standby());
    server.sql("INSTALL SONAME 'auth_ed25519'; CREATE USER nobody@127.0.0.1; CREATE USER other@127.0.0.1 IDENTIFIED VIA ed25519 USING PASSWORD('x')");
    for (user, password, said) in [
        ("bench", Some("no"), "Access denied"),
        ("bench", None, "Access denied"),
        ("nobody", None, "Access denied for user 'nobody'@'127.0.0.1' to database"),
        ("other", Some("x"), "client_ed25519"),
    ] {
        let password = password.map(Secret::new);
        let target = Target { user: user.into(), password, ..target(&server) };
        let failure = Client::try_open(&target, &[], &Settings::default()).err().unwrap();
        assert_eq!(failure.fault, Fault::Denied, "{failure}");
        assert!(failure.to_string().contains(said), "{failure}");
    }
    let target = Target { tls: Tls::Require, ..target(&server) };
    let failure = Client::try_open(&target, &[], &Settings::default()).err().unwrap();
    assert_eq!(failure.fault, Fault::Tls, "{failure}");
}

#[test]
fn tls_is_spoken_where_the_server_can() {
    let Some(mut server) = Mariadb::start(&[]) else { return };
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, both) = (server.directory().join("cert.pem"), server.directory().join("both.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&both, certified.cert.pem() + &certified.signing_key.serialize_pem()).unwrap();
    server.restart_with(&format!("ssl-cert={}", both.display()));
    server.sql("ALTER USER bench@127.0.0.1 REQUIRE SSL");
    for tls in [Tls::Prefer, Tls::Require, Tls::Verify] {
        let target = Target { tls, ca_file: Some(certificate.clone()), ..target(&server) };
        let mut client = Client::open(&target, &[]);
        client.simple("SHOW STATUS LIKE 'Ssl_version'").unwrap();
        assert!(client.connection.rows(0).first().unwrap().text(1).unwrap().starts_with("TLS"));
    }
    let target = Target { tls: Tls::Disable, ..target(&server) };
    let failure = Client::try_open(&target, &[], &Settings::default()).err().unwrap();
    assert_eq!(failure.fault, Fault::Denied, "{failure}");
}

#[test]
fn conflicts_are_told_apart_and_lost_connections_are_lost() {
    let Some(server) = Mariadb::start(&["innodb-lock-wait-timeout=1"]) else { return };
    server.sql("CREATE TABLE t (i int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 0), (2, 0)");
    let own = ["UPDATE t SET b = b + 1 WHERE i = $1", "INSERT INTO t VALUES ($1, 0)"];
    let (mut one, mut two) = (Client::open(&target(&server), &own), Client::open(&target(&server), &own));
    let (begin, commit) = (Control::Begin.number(), Control::Commit.number());
    one.run(begin, &[]).unwrap();
    assert!(one.connection.is_in_transaction());
    one.run(OWN, &[Int(1)]).unwrap();
    let failure = two.run(OWN, &[Int(1)]).unwrap_err();
    assert_eq!((failure.fault, failure.lost), (Fault::LockTimeout, false), "{failure}");
    two.run(begin, &[]).unwrap();
    two.run(OWN, &[Int(2)]).unwrap();
    // Both wait for each other, whoever is first, and one of them loses.
    let lost = std::thread::scope(|scope| {
        let target = target(&server);
        let (sent, held) = std::sync::mpsc::channel();
        let other = scope.spawn(move || {
            let mut three = Client::open(&target, &own);
            three
                .simple("SET SESSION innodb_lock_wait_timeout = 30; BEGIN; INSERT INTO t VALUES (3, 0)")
                .unwrap();
            sent.send(()).unwrap();
            three.run(OWN, &[Int(2)]).err()
        });
        held.recv().unwrap();
        two.simple("SET SESSION innodb_lock_wait_timeout = 30").unwrap();
        let own = two.run(OWN, &[Int(3)]).err();
        two.run(commit, &[]).unwrap();
        [own, other.join().unwrap()].map(|failure| failure.map(|failure| failure.fault))
    });
    assert!(lost == [Some(Fault::Deadlock), None] || lost == [None, Some(Fault::Deadlock)], "{lost:?}");
    let failure = one.run(OWN + 1, &[Int(1)]).unwrap_err();
    assert_eq!((failure.fault, failure.is_retryable()), (Fault::Constraint, false), "{failure}");
    one.run(commit, &[]).unwrap();
    assert!(one.connection.has_committed() && !one.connection.is_in_transaction());
    let failure = one.run(OWN, &[]).unwrap_err();
    assert_eq!(failure.to_string(), "a statement has no value for its parameter $1");
    one.run(OWN, &[Int(1)]).unwrap();
    one.simple("SELECT connection_id()").unwrap();
    let id = one.connection.rows(0).first().unwrap().text(0).unwrap().to_owned();
    server.sql(&format!("KILL {id}"));
    let failure = one.run(OWN, &[Int(1)]).unwrap_err();
    assert!(failure.lost && !failure.is_retryable(), "{failure}");
}

#[test]
fn many_rows_come_whole() {
    let Some(server) = Mariadb::start(&[]) else { return };
    let own = ["SELECT seq, repeat('x', $1) FROM seq_1_to_20000"];
    for prepared in [true, false] {
        let mut client = Client::open(&Target { prepared, ..target(&server) }, &own);
        client.run(OWN, &[Int(300)]).unwrap();
        let rows = client.connection.rows(0);
        assert_eq!(rows.count(), 20_000);
        let right = |(place, row): (usize, tidemark_sql::rows::Row<'_>)| {
            row.number::<usize>(0) == Ok(place + 1) && row.text(1).is_ok_and(|text| text.len() == 300)
        };
        assert!(rows.iter().enumerate().all(right));
    }
}
