//! What a database is asked before anything is loaded: whether it can be used, and by so many clients.

use crate::admin::{Admin, Limits};
use crate::dialect::Dialect;
use crate::job::{Job, Role, Target};
use crate::server::Server;
use crate::workload;
use std::time::Duration;
use tidemark_load::budget::Budget;
use tidemark_load::deadline::Deadline;
use tidemark_load::work::Share;
use tidemark_plan::plan::Work;

/// How long a pool may take to find a connection to the server. One that has a single connection has none.
const POOL_PATIENCE_NS: u64 = 5_000_000_000;

/// How long all questions may take together. They are answered from memory, so a server that takes longer is busy, locked or hostile.
const ALL: Duration = Duration::from_secs(60);

/// What works need of a database's limits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// Connections.
    clients: u64,
    /// Prepared statements, if every connection comes to use all of its workload's.
    statements: u64,
}

impl Needs {
    /// Those of a work, of each of its instances.
    ///
    /// # Errors
    /// When its workload cannot be opened.
    pub(crate) fn of(work: &Work, job: &Job) -> Result<Self, String> {
        let workload = workload::open(&job.workload)?;
        // What a server does when there are too many is what a load of connections looks for.
        let clients = match workload.keeps_connections() {
            true => {
                u64::from(work.load.slots(Share::whole(&work.load)).1).div_ceil(job.serving().count() as u64)
            }
            false => 1,
        };
        let target = job.instances.first();
        let each = workload.statements(target.dialect).len() as u64;
        Ok(Self { clients, statements: if target.prepared { clients * each } else { 0 } })
    }

    /// The most of each, among works that do not run at the same time.
    pub(crate) fn most(all: &[Self]) -> Self {
        let most = |of: fn(&Self) -> u64| all.iter().map(of).max().unwrap_or(0);
        Self { clients: most(|one| one.clients).max(1), statements: most(|one| one.statements) }
    }
}

/// Asks a database whether it can be used in its role by so many clients; gives a line on what it is.
///
/// # Errors
/// Why it cannot, and what to do.
pub(crate) fn ask(server: &Server, role: Role, needs: Needs) -> Result<String, String> {
    let limits = Limits { deadline: Deadline::after(ALL), budget: Budget::preflight() };
    let mut admin = Admin::within(server, limits.clone())?;
    let found = match server.target.dialect {
        Dialect::Postgres | Dialect::Cockroach => postgres(server, &mut admin, needs),
        Dialect::Mysql => mysql(&server.target, &mut admin, needs),
    };
    let found = within(&server.target, &limits, found)?;
    within(&server.target, &limits, has_role(&server.target, role, &mut admin))?;
    Ok(match role {
        Role::Primary => found,
        Role::Replica => format!("{found}, a replica"),
    })
}

/// The answers, unless a limit is exceeded: they may be incomplete then.
fn within<T>(target: &Target, limits: &Limits, asked: Result<T, String>) -> Result<T, String> {
    limits.budget.check().map_err(|exceeded| format!("{}: {exceeded}", target.describe()))?;
    match limits.deadline.has_passed() {
        true => Err(format!(
            "{} did not answer all preflight queries within {} s: look for locks, and for what keeps it busy",
            target.describe(),
            limits.deadline.most().as_secs()
        )),
        false => asked,
    }
}

/// Whether a server is what the document says that it is.
fn has_role(target: &Target, role: Role, admin: &mut Admin) -> Result<(), String> {
    let (place, is_mysql) = (target.describe(), target.dialect == Dialect::Mysql);
    // Servers before PostgreSQL 14 do not say it unasked, and a pool in front of one does not pass it on.
    let recovers = target.dialect == Dialect::Postgres
        && admin.value("SELECT pg_is_in_recovery()").is_ok_and(|said| said.as_deref() == Some("t"));
    match (role, recovers || admin.connection().is_standby()) {
        (Role::Primary, false) | (Role::Replica, true) => Ok(()),
        (Role::Primary, true) => {
            let (what, or) = match is_mysql {
                true => ("accepts no writes (read_only is on)", ", or set read_only = OFF"),
                false => ("is a standby, which accepts no writes", ""),
            };
            Err(format!(
                "{place} {what}: name the primary there, and this one under the target's `replicas`{or}"
            ))
        }
        // A replica there may take writes all the same. To be asked what it follows, it wants a privilege.
        (Role::Replica, false) if is_mysql => match admin.query("SHOW REPLICA STATUS") {
            Ok(rows) if !rows.is_empty() => Ok(()),
            Ok(_) => Err(format!(
                "{place} is named among the `replicas`, and it follows no other server (SHOW REPLICA STATUS is empty) and accepts \
                 writes: name a replica there"
            )),
            Err(failure) => Err(format!(
                "{place} is named among the `replicas`, accepts writes, and does not tell whether it follows another server \
                 ({failure}): name a replica there; let it be read_only, or grant the user REPLICA MONITOR (MariaDB) or \
                 REPLICATION CLIENT (MySQL)"
            )),
        },
        (Role::Replica, false) => Err(format!(
            "{place} is named among the `replicas`, and it is no standby (pg_is_in_recovery() is false): name a standby there"
        )),
    }
}

fn postgres(server: &Server, admin: &mut Admin, needs: Needs) -> Result<String, String> {
    let target = &server.target;
    let version = admin.connection().version().to_owned();
    let major: u32 = version.split(['.', ' ']).next().and_then(|number| number.parse().ok()).unwrap_or(0);
    if (1..13).contains(&major) {
        return Err(format!("{} has version {version}: use PostgreSQL 13 or later", target.describe()));
    }
    if target.dialect == Dialect::Postgres && target.prepared && forgets_statements(server, admin) {
        return Err(format!(
            "{} is reached through a pool whose transactions find no statements that were prepared before (PgBouncer in \
             transaction mode, before 1.21 or with max_prepared_statements = 0): set `prepared: false` in the target",
            target.describe()
        ));
    }
    let allowed = admin.value(
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int \
         - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())",
    );
    // A pool in front of the server has limits of its own; it is asked by connecting.
    if let Ok(Some(free)) = allowed
        && let Ok(free) = free.parse::<i64>()
        && target.prepared
    {
        enough(target, free, needs)?;
    }
    Ok(format!("{}, version {version}", target.describe()))
}

/// Whether a pool is in between that gives each transaction any connection to the server, so that what was prepared on one is
/// unknown on the next. It is tried: while another client holds the connection on which a statement was prepared.
fn forgets_statements(server: &Server, admin: &mut Admin) -> bool {
    let own = admin.connection().process().map(|process| process.to_string());
    if admin.value("SELECT pg_backend_pid()").is_ok_and(|serving| serving == own) {
        return false;
    }
    let (Ok(mut client), Ok(mut other)) = (admin.another(server), admin.another(server)) else {
        return false;
    };
    // Unknown, or there already because of somebody else.
    let is_proof = |failure: crate::failure::Failure| {
        failure.code.is_some_and(|code| [*b"26000", *b"42P05"].contains(&code))
    };
    client.run_prepared(POOL_PATIENCE_NS).is_err_and(is_proof)
        || (other.query("BEGIN; SELECT 1").is_ok()
            && client.run_prepared(POOL_PATIENCE_NS).is_err_and(is_proof))
}

/// Whether there are as many connections as are needed.
fn enough(target: &Target, free: i64, needs: Needs) -> Result<(), String> {
    if free < needs.clients as i64 {
        return Err(format!(
            "{} has {free} connections left, and the load needs {}: use fewer clients, raise max_connections, or put a pool in \
             front of it",
            target.describe(),
            needs.clients
        ));
    }
    Ok(())
}

fn mysql(target: &Target, admin: &mut Admin, needs: Needs) -> Result<String, String> {
    let place = target.describe();
    let refused = |failure: crate::failure::Failure| format!("{place}: {failure}");
    let version = admin.value("SELECT version()").map_err(refused)?.unwrap_or_default();
    if let Some(least) = too_old(&version) {
        return Err(format!("{place} has version {version}: use {least} or later"));
    }
    let mut number = |sql: &str, column: usize| {
        let row = admin.query(sql).ok()?.into_iter().next()?;
        row.into_iter().nth(column)??.parse::<i64>().ok()
    };
    if number(
        "SELECT count(*) FROM information_schema.engines WHERE engine = 'InnoDB' AND support IN ('YES', 'DEFAULT')",
        0,
    ) == Some(0)
    {
        return Err(format!("{place} has no InnoDB, in which tables are made: start it with InnoDB"));
    }
    let status = |name: &str| format!("SHOW GLOBAL STATUS LIKE '{name}'");
    // One of those that are connected is this one, which goes.
    let connected = number(&status("Threads_connected"), 1).unwrap_or(1) - 1;
    if let Some(most) = number("SELECT @@global.max_connections", 0) {
        enough(target, most - connected, needs)?;
    }
    let mut said = format!("{place}, version {version}");
    let prepared = number(&status("Prepared_stmt_count"), 1).unwrap_or(0);
    // Not all statements of a workload are used by every load on it, so this is no reason to refuse.
    if let Some(most) = number("SELECT @@global.max_prepared_stmt_count", 0)
        && most - prepared < needs.statements as i64
    {
        said += &format!(
            "; it has {} prepared statements left (max_prepared_stmt_count), and the load may need {}: if it fails, raise it, or set \
             `prepared: false`",
            most - prepared,
            needs.statements
        );
    }
    Ok(said)
}

/// The first version that can be used, if this one is older: `10.11.19-MariaDB-log` is MariaDB's, `8.0.36` MySQL's.
fn too_old(version: &str) -> Option<&'static str> {
    let mut parts = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let own = (parts.next()?, parts.next().unwrap_or(0));
    let (least, name) = match version.contains("MariaDB") {
        true => ((10, 6), "MariaDB 10.6"),
        false => ((8, 0), "MySQL 8.0"),
    };
    (own < least).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Endpoint, Tls};
    use crate::testing::{Answer, Fake};
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn versions_tell_the_product_and_its_age() {
        for (version, expected) in [
            ("10.11.19-MariaDB-0+deb12u1-log", None),
            ("11.4.2-MariaDB", None),
            ("10.5.27-MariaDB", Some("MariaDB 10.6")),
            ("8.0.36", None),
            ("9.1.0-1", None),
            ("5.7.44-log", Some("MySQL 8.0")),
            ("unknown", None),
        ] {
            assert_eq!(too_old(version), expected, "{version}");
        }
    }

    /// Greets each client, and follows a script from then on.
    fn serve(dialect: Dialect, talk: fn(TcpStream) -> std::io::Result<()>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || talk(stream));
            }
        });
        let endpoints = vec![Endpoint::Tcp("127.0.0.1".into(), port)];
        let fake = Fake::new(|_| Answer::Fine).target;
        Server::resolve(&Target { dialect, endpoints, tls: Tls::Disable, ..fake }).unwrap()
    }

    /// Waits for something, and leaves it.
    fn hear(stream: &mut TcpStream) -> std::io::Result<()> {
        match stream.read(&mut [0; 64 << 10])? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Answers each question with 30 MiB that mean nothing.
    fn postgres_at_length(mut stream: TcpStream) -> std::io::Result<()> {
        hear(&mut stream)?;
        stream.write_all(b"R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0015.3\0Z\0\0\0\x05I")?;
        let notices = b"N\0\0\0\x13SNOTICE\0Mwait\0\0".repeat((30 << 20) / 20);
        loop {
            hear(&mut stream)?;
            stream.write_all(&notices)?;
            stream.write_all(b"C\0\0\0\x0dSELECT 0\0Z\0\0\0\x05I")?;
        }
    }

    /// Answers each question with 15 MiB that mean nothing.
    fn mysql_at_length(mut stream: TcpStream) -> std::io::Result<()> {
        let packet = |number: u8, payload: &[u8]| {
            let [low, middle, high, ..] = payload.len().to_le_bytes();
            [&[low, middle, high, number][..], payload].concat()
        };
        // No TLS, and definitions and rows end with a packet of their own.
        let greeting = [
            &b"\x0a8.0.40\0\x07\0\0\x0012345678\0\xfe\xf7\x2d\x02\0\xff\x80\x15"[..],
            &[0; 10],
            b"901234567890\0mysql_native_password\0",
        ];
        stream.write_all(&packet(0, &greeting.concat()))?;
        hear(&mut stream)?;
        stream.write_all(&packet(2, b"\0\0\0\x02\0\0\0"))?;
        hear(&mut stream)?;
        // What sets a session up ends with a question, which has one row.
        let session: [&[u8]; 6] = [
            b"\0\0\0\x0a\0\0\0",
            b"\x01",
            b"\x0c\x3f\0\x01\0\0\0\xfd\0\0\0\0\0",
            b"\xfe\0\0\x02\0",
            b"\x010",
            b"\xfe\0\0\x02\0",
        ];
        for (number, payload) in (1..).zip(session) {
            stream.write_all(&packet(number, payload))?;
        }
        let done = packet(1, &[&b"\0\0\0\x02\0\0\0"[..], &vec![b'x'; 15 << 20]].concat());
        loop {
            hear(&mut stream)?;
            stream.write_all(&done)?;
        }
    }

    #[test]
    fn what_a_server_replies_to_all_questions_has_one_limit() {
        for (dialect, talk) in [
            (Dialect::Postgres, postgres_at_length as fn(TcpStream) -> std::io::Result<()>),
            (Dialect::Mysql, mysql_at_length),
        ] {
            let refusal = ask(&serve(dialect, talk), Role::Primary, Needs::default()).unwrap_err();
            assert!(refusal.contains(": its replies add up to more than 64 MiB: "), "{refusal}");
        }
    }

    #[test]
    fn works_that_follow_each_other_need_no_more_than_the_largest() {
        let needs = [Needs { clients: 3, statements: 50 }, Needs { clients: 8, statements: 20 }];
        let most = Needs::most(&needs);
        assert_eq!((most.clients, most.statements, Needs::most(&[]).clients), (8, 50, 1));
    }
}
