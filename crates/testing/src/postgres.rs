//! A PostgreSQL server of a test's own: in a private directory, on a Unix socket and a free port of 127.0.0.1, from the
//! distribution's package.

use crate::template::Template;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Settings of every server; those of a test come behind them.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "shared_buffers=32MB",
    "max_connections=60",
    "shared_preload_libraries=pg_stat_statements",
    "pg_stat_statements.max=10000",
    "track_io_timing=on",
];

/// How clusters are made.
const CREATION: &[&str] =
    &["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale"];

/// The server; it ends, and its directory goes, with this.
pub struct Postgres {
    directory: PathBuf,
    programs: PathBuf,
    port: u16,
    settings: Vec<String>,
    server: Option<Child>,
}

/// Where the distribution keeps PostgreSQL's programs.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions
        .flatten()
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").is_file())
        .collect();
    found.sort();
    found.pop()
}

impl Postgres {
    /// Makes a cluster and starts its server; `None`, as [`crate::skip`], where there is no PostgreSQL. Its superuser is
    /// `postgres`, who needs no password.
    ///
    /// # Panics
    /// When it cannot be made or does not start.
    #[track_caller]
    pub fn start(settings: &[&str]) -> Option<Self> {
        let mut server = Self::new(settings)?;
        let template =
            Template { name: "postgresql", program: &server.programs.join("postgres"), options: CREATION };
        template.lay_out(&server.data(), || {
            let made = server.command("initdb").args(CREATION).arg("-D").arg(server.data()).output();
            let made = made.expect("initdb starts");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        });
        server.restart();
        Some(server)
    }

    /// Makes a standby that follows this server by streaming, and starts it.
    ///
    /// # Panics
    /// When it cannot be made or does not start.
    #[track_caller]
    pub fn standby(&self, settings: &[&str]) -> Self {
        let mut standby = Self::new(settings).expect("this server is here");
        let made = self
            .command("pg_basebackup")
            .args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "-U", "postgres", "-h"])
            .arg(&self.directory)
            .args(["-p", &self.port.to_string(), "-D"])
            .arg(standby.data())
            .output()
            .expect("pg_basebackup starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        standby.restart();
        standby
    }

    /// A server without data, in a directory of its own.
    #[track_caller]
    fn new(settings: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            crate::skip("PostgreSQL cannot be found; `make setup` installs it");
            return None;
        };
        // The path of a Unix socket is short.
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let directory = std::env::temp_dir().join(format!("tidemark-pg-{port}"));
        let server = Self {
            directory,
            programs,
            port,
            settings: SETTINGS.iter().chain(settings).map(ToString::to_string).collect(),
            server: None,
        };
        std::fs::create_dir_all(&server.directory).expect("a directory for the server");
        if crate::is_root() {
            let owned = Command::new("chown").arg("postgres").arg(&server.directory).status();
            assert!(owned.is_ok_and(|status| status.success()), "the user `postgres` is needed");
        }
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// A program of PostgreSQL, as the user `postgres`: the server refuses to run as root.
    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = match crate::is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(path);
                command
            }
            false => Command::new(path),
        };
        command.current_dir("/").stdin(Stdio::null());
        command
    }

    /// The directory of its Unix socket.
    pub fn socket_directory(&self) -> &Path {
        &self.directory
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.data()
    }

    /// Starts it again after [`Postgres::kill`], and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn restart(&mut self) {
        let begun = Instant::now();
        self.spawn();
        while self.try_sql("SELECT 1").is_none() {
            let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "the server does not answer: {log}");
            std::thread::sleep(Duration::from_millis(50));
            // It does not start before all processes of the one that was killed have noticed.
            if log.contains("still in use")
                && self.server.as_mut().is_some_and(|own| own.try_wait().is_ok_and(|ended| ended.is_some()))
            {
                self.spawn();
            }
        }
    }

    fn spawn(&mut self) {
        let log = std::fs::File::create(self.directory.join("log")).expect("a file for the log");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string(), "-k"]).arg(&self.directory);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        self.server = Some(command.stdout(Stdio::null()).stderr(log).spawn().expect("postgres starts"));
    }

    /// Kills it (SIGKILL), as a crash would end it.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    fn try_sql(&self, sql: &str) -> Option<String> {
        let output = self
            .command("psql")
            .args(["-XAtq", "-U", "postgres", "-d", "postgres", "-p", &self.port.to_string(), "-h"])
            .arg(&self.directory)
            .args(["-c", sql])
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// What SQL gives in the database `postgres`: columns with `|` between them, rows with line breaks.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap_or_else(|| panic!("this SQL fails: {sql}"))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
