//! A MariaDB server of a test's own: in a private directory, on a Unix socket and a free port of 127.0.0.1, from the
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
    "bind-address=127.0.0.1",
    "skip-name-resolve",
    "innodb-buffer-pool-size=64M",
    "innodb-log-file-size=96M",
    "max-connections=60",
];

/// How data directories are made.
const CREATION: &[&str] = &["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"];

/// What is done in each before it is used.
const USERS: &[&str] = &[
    "CREATE DATABASE bench",
    "CREATE USER bench@'127.0.0.1' IDENTIFIED BY 'bench'",
    "CREATE USER bench@localhost IDENTIFIED BY 'bench'",
    "GRANT ALL PRIVILEGES ON *.* TO bench@'127.0.0.1', bench@localhost",
];

/// The server; it ends, and its directory goes, with this.
pub struct Mariadb {
    directory: PathBuf,
    port: u16,
    settings: Vec<String>,
    server: Option<Child>,
}

impl Mariadb {
    /// Makes a data directory and starts its server; `None`, as [`crate::skip`], where there is no MariaDB. It has the database
    /// `bench`, and the users `root`, who needs no password, on its Unix socket and `bench` with the password `bench` on both.
    ///
    /// # Panics
    /// When it cannot be made or does not start.
    #[track_caller]
    pub fn start(settings: &[&str]) -> Option<Self> {
        if !crate::has(crate::MARIADB) {
            return None;
        }
        // The path of a Unix socket is short.
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = listener.expect("a free port").port();
        let directory = std::env::temp_dir().join(format!("tidemark-my-{port}"));
        let settings = SETTINGS.iter().chain(settings).map(ToString::to_string).collect();
        let mut server = Self { directory, port, settings, server: None };
        std::fs::create_dir_all(&server.directory).expect("a directory for the server");
        if crate::is_root() {
            let owned = Command::new("chown").arg("mysql").arg(&server.directory).status();
            assert!(owned.is_ok_and(|status| status.success()), "the user `mysql` is needed");
        }
        let program = crate::found("mariadbd").unwrap_or_default();
        let options = [CREATION, SETTINGS, USERS].concat();
        let template = Template { name: "mariadb", program: &program, options: &options };
        let data = server.data_directory();
        template.lay_out(&data, || server.make());
        server.restart();
        Some(server)
    }

    /// Makes its data directory, with the database and the users.
    fn make(&mut self) {
        let mut make = Command::new("mariadb-install-db");
        // A server that begins removes temporary tables in there, and not only its own.
        make.env("TMPDIR", &self.directory).args(CREATION);
        if crate::is_root() {
            make.arg("--user=mysql");
        }
        make.arg(format!("--datadir={}", self.data_directory().display())).stdin(Stdio::null());
        let made = make.output().expect("mariadb-install-db starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // Without the settings of the test, which are not every server's.
        let settings = SETTINGS.iter().map(ToString::to_string).collect();
        let own = std::mem::replace(&mut self.settings, settings);
        self.restart();
        USERS.iter().for_each(|sql| drop(self.sql(sql)));
        self.sql("SHUTDOWN");
        let ended = self.server.take().and_then(|mut server| server.wait().ok());
        assert!(ended.is_some_and(|status| status.success()), "the server ends: {}", self.log());
        self.settings = own;
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Its own directory, which it can read: for certificates.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts it again after [`Mariadb::kill`], and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn restart(&mut self) {
        let log = std::fs::File::create(self.directory.join("log")).expect("a file for the log");
        let mut command = Command::new("mariadbd");
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.data_directory().display()))
            .arg(format!("--tmpdir={}", self.directory.display()))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--pid-file={}", self.directory.join("pid").display()))
            .arg(format!("--port={}", self.port));
        if crate::is_root() {
            command.arg("--user=mysql");
        }
        command.args(self.settings.iter().map(|setting| format!("--{setting}")));
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.server = Some(command.spawn().expect("mariadbd starts"));
        let begun = Instant::now();
        while self.try_sql("", "SELECT 1").is_none() {
            assert!(begun.elapsed() < PATIENCE, "the server does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Restarts it with one more setting.
    ///
    /// # Panics
    /// As [`Mariadb::restart`].
    pub fn restart_with(&mut self, setting: &str) {
        self.settings.push(setting.to_owned());
        self.kill();
        self.restart();
    }

    /// Kills it (SIGKILL), as a crash would end it.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    fn try_sql(&self, database: &str, sql: &str) -> Option<String> {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "-NB", "-u", "root", "-S"])
            .arg(self.socket())
            .args(["-D", database, "-e", sql])
            .stdin(Stdio::null())
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().replace('\t', "|"))
    }

    /// What SQL gives in the database `bench`: columns with `|` between them, rows with line breaks.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        let database = if self.data_directory().join("bench").is_dir() { "bench" } else { "" };
        self.try_sql(database, sql).unwrap_or_else(|| panic!("this SQL fails: {sql}"))
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
