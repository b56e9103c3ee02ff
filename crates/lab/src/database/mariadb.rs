//! MariaDB, from the package `mariadb-server`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::HOST;
use super::record::Credentials;
use super::server::{CREATION, Server, Site};
use crate::command::{MARIADB, Package, Programs};
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::Home;

/// How long the list of settings may take.
const LIST: Duration = Duration::from_secs(30);

/// Settings that a report shows: whether a commit outlives a power failure, and what a comparison must not differ in.
const SHOWN: [&str; 8] = [
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "innodb_flush_method",
    "sync_binlog",
    "log_bin",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_page_size",
];

pub(super) struct Mariadb;

impl Server for Mariadb {
    fn name(&self) -> &'static str {
        "MariaDB"
    }

    fn package(&self) -> &'static Package {
        &MARIADB
    }

    fn user(&self) -> &'static str {
        "mysql"
    }

    fn daemon(&self, instance: usize) -> Daemon {
        Daemon::Mariadb(instance)
    }

    fn least_bytes(&self) -> u64 {
        256 << 20
    }

    fn socket(&self, home: &Home, instance: usize, _port: u16) -> PathBuf {
        home.sockets().join(format!("mariadb-{instance}.sock"))
    }

    fn known(&self, programs: &Programs) -> Result<Vec<String>, LabError> {
        let help = programs.run("mariadbd", &["--no-defaults", "--verbose", "--help"], LIST)?;
        Ok(listed(&help))
    }

    fn own(&self) -> &'static [&'static str] {
        &["bind-address", "port", "socket", "datadir", "pid-file", "user", "skip-networking"]
    }

    fn spelt(&self, name: &str) -> String {
        name.to_lowercase().replace('_', "-")
    }

    fn conf(&self, site: &Site, instance: usize) -> String {
        let Site { home, shape, .. } = site;
        let (data, port) = (home.data(instance), shape.ports[instance]);
        let socket = self.socket(home, instance, port);
        let mut text = format!(
            "# Written by `tidemark lab up`, anew each time: changes made here are lost.\n[mariadbd]\n\
             bind-address = {HOST}\nport = {port}\nsocket = {}\ndatadir = {}\npid-file = {}\n\
             # A server that begins removes temporary tables, and not only its own.\ntmpdir = {}\n\
             # No connection waits for a name server.\nskip-name-resolve\ncharacter-set-server = utf8mb4\n",
            socket.display(),
            data.display(),
            socket.with_extension("pid").display(),
            data.display(),
        );
        for (name, value) in &shape.settings {
            let _ = writeln!(text, "{name} = {}", quoted(value));
        }
        text
    }

    fn create(&self, site: &Site, instance: usize, credentials: &Credentials) -> Result<(), LabError> {
        let Site { home, programs, .. } = site;
        let Credentials { user, password, database } = credentials;
        let mut statements = format!("FLUSH PRIVILEGES;\nCREATE DATABASE {database};\n");
        for host in [HOST, "localhost"] {
            let _ = write!(
                statements,
                "CREATE USER '{user}'@'{host}' IDENTIFIED BY '{password}';\n\
                 GRANT ALL PRIVILEGES ON *.* TO '{user}'@'{host}' WITH GRANT OPTION;\n"
            );
        }
        site.with_secret(&statements, |secret| {
            let with = |option: &str, path: PathBuf| {
                let mut word = OsString::from(option);
                word.push(path);
                word
            };
            let arguments = [
                with("--defaults-file=", home.server_conf(self.daemon(instance))),
                with("--datadir=", home.data(instance)),
                with("--extra-file=", secret.to_owned()),
                "--skip-test-db".into(),
            ];
            programs
                .start_with("mariadb-install-db", &arguments, |command| site.as_server(command))?
                .finish(CREATION)
        })
        .map(drop)
    }

    fn client(
        &self,
        port: u16,
        credentials: &Credentials,
        sql: &str,
    ) -> (&'static str, Vec<String>, &'static str) {
        let Credentials { user, database, .. } = credentials;
        let port = port.to_string();
        let words = ["--no-defaults", "-N", "-B", "-h", HOST, "-P", &port, "-u", user, database, "-e", sql];
        ("mariadb", words.map(str::to_owned).to_vec(), "MYSQL_PWD")
    }

    fn facts(&self) -> String {
        let names: Vec<_> = SHOWN.iter().map(|name| format!("'{name}'")).collect();
        format!(
            "SELECT 'version', CONCAT('MariaDB ', VERSION()) UNION ALL \
             SELECT LOWER(VARIABLE_NAME), VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES \
             WHERE VARIABLE_NAME IN ({})",
            names.join(", ")
        )
    }

    fn in_effect(&self) -> &'static str {
        // Those of replication tell how far it is, not how it is set.
        "SELECT LOWER(VARIABLE_NAME), REPLACE(COALESCE(GLOBAL_VALUE, ''), '\\n', ' ') FROM information_schema.SYSTEM_VARIABLES \
         WHERE GLOBAL_VALUE IS NOT NULL AND VARIABLE_NAME NOT LIKE 'GTID%' ORDER BY VARIABLE_NAME"
    }
}

/// The names in the table of variables at the end of the server's help.
fn listed(help: &str) -> Vec<String> {
    let mut lines = help.lines().skip_while(|line| !line.starts_with("-----"));
    lines.next();
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// A value as an option file takes it.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_in_the_help() {
        let help = "Usage: mariadbd [OPTIONS]\n  --a  b\n\nVariables (--variable-name=value)\n\
                    and boolean options {FALSE|TRUE}  Value (after reading options)\n\
                    --------------------------------- -------------\n\
                    aria-block-size                   8192\nsync-binlog                       0\n\n\
                    To see what values a running server is using\n";
        assert_eq!(listed(help), ["aria-block-size", "sync-binlog"]);
        assert!(listed("").is_empty());
    }
}
