//! What pgbench and sysbench are told: the same database, the same transactions, as many connections.

use super::Equal;
use super::program::Found;
use crate::dialect::Dialect;
use crate::job::{Endpoint, Job, Program, Target, Tls};
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

/// A command line but for its time, and what is in its environment: a password is there, and nowhere else.
pub(crate) struct Invocation {
    found: Found,
    before: Vec<String>,
    /// sysbench's command comes last.
    behind: &'static [&'static str],
    environment: Vec<(&'static str, String)>,
    /// Threads of the program.
    pub(crate) threads: u32,
}

impl Invocation {
    /// For a load of so many clients.
    pub(crate) fn new(found: Found, equal: &Equal, job: &Job, clients: u32) -> Self {
        let target = job.instances.first();
        let mut environment = vec![("LC_ALL", "C".to_owned())];
        if target.dialect == Dialect::Postgres {
            let mode = match target.tls {
                Tls::Disable => "disable",
                Tls::Prefer => "prefer",
                Tls::Require => "require",
                Tls::Verify => "verify-full",
            };
            environment.push(("PGSSLMODE", mode.into()));
            let file = target.ca_file.as_ref().map(|path| path.display().to_string());
            environment.extend(file.map(|path| ("PGSSLROOTCERT", path)));
        }
        let variable = if target.dialect == Dialect::Postgres { "PGPASSWORD" } else { "MYSQL_PWD" };
        environment.extend(target.password.as_ref().map(|password| (variable, password.reveal().to_owned())));
        let mut invocation = Self { found, before: Vec::new(), behind: &[], environment, threads: clients };
        match equal.program {
            Program::Sysbench => invocation.sysbench(equal, target, clients),
            _ => invocation.pgbench(equal, target, clients, job.settings.tries),
        }
        invocation
    }

    fn pgbench(&mut self, equal: &Equal, target: &Target, clients: u32, tries: u32) {
        let processors = available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
        self.threads = clients.min(processors);
        let mut arguments = words("-n -M prepared -P 1");
        arguments.extend(equal.arguments.iter().cloned());
        arguments.extend([format!("-c{clients}"), format!("-j{}", self.threads)]);
        // Earlier versions give up a client at its first conflict.
        if self.found.major().is_some_and(|major| major >= 15) {
            arguments.push(format!("--max-tries={tries}"));
        }
        let (host, port) = place(target);
        arguments.extend(["-h".into(), host, "-p".into(), port, "-U".into(), target.user.clone()]);
        // What stands in the arguments may be read as settings of the connection.
        self.environment.push(("PGDATABASE", target.database.clone()));
        self.before = arguments;
    }

    fn sysbench(&mut self, equal: &Equal, target: &Target, clients: u32) {
        let mut arguments = equal.arguments.clone();
        let (host, port) = place(target);
        let driver = if target.dialect == Dialect::Mysql { "mysql" } else { "pgsql" };
        arguments.push(format!("--db-driver={driver}"));
        match (&target.endpoints[..], target.dialect) {
            ([Endpoint::Unix(_)], Dialect::Mysql) => arguments.push(format!("--mysql-socket={host}")),
            _ => arguments.extend([format!("--{driver}-host={host}"), format!("--{driver}-port={port}")]),
        }
        arguments.push(format!("--{driver}-user={}", target.user));
        arguments.push(format!("--{driver}-db={}", target.database));
        arguments.push(format!("--threads={clients}"));
        arguments.extend(words("--events=0 --report-interval=1 --db-ps-mode=auto"));
        self.before = arguments;
        self.behind = &["run"];
    }

    /// The whole command line for a run of so many seconds.
    pub(crate) fn arguments(&self, seconds: u64) -> Vec<String> {
        let time = match self.found.program {
            Program::Sysbench => format!("--time={seconds}"),
            _ => format!("-T{seconds}"),
        };
        let behind = self.behind.iter().map(ToString::to_string);
        self.before.iter().cloned().chain([time]).chain(behind).collect()
    }

    /// The command of a run of so many seconds. Nothing of the user's environment says where the database is.
    pub(crate) fn command(&self, seconds: u64) -> Command {
        let mut command = Command::new(&self.found.path);
        let is_of_client = |name: &str| name.starts_with("PG") || name.starts_with("MYSQL_");
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_of_client) {
                command.env_remove(name);
            }
        }
        command
            .args(self.arguments(seconds))
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What runs.
    pub(crate) fn found(&self) -> &Found {
        &self.found
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

/// Host and port as the programs want them: of PostgreSQL's sockets, the directory and the port in the socket's name.
fn place(target: &Target) -> (String, String) {
    match target.endpoints.first() {
        Some(Endpoint::Tcp(host, port)) => (host.clone(), port.to_string()),
        Some(Endpoint::Unix(path)) if target.dialect == Dialect::Postgres => {
            let directory = path.parent().unwrap_or(path).display().to_string();
            let port = path.extension().unwrap_or_default().to_string_lossy();
            (directory, port.into_owned())
        }
        Some(Endpoint::Unix(path)) => (path.display().to_string(), String::new()),
        None => Default::default(),
    }
}
