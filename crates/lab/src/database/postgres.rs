//! PostgreSQL, from the package `postgresql`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::HOST;
use super::record::Credentials;
use super::server::{CREATION, Server, Site};
use crate::command::{POSTGRES, Package, Programs};
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::Home;
use crate::process::is_zombie;

/// How long the list of settings may take.
const LIST: Duration = Duration::from_secs(30);

/// Settings that a report shows: whether a commit outlives a power failure, and what a comparison must not differ in.
const SHOWN: [&str; 9] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_level",
    "data_checksums",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
];

pub(super) struct Postgres;

impl Server for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn package(&self) -> &'static Package {
        &POSTGRES
    }

    fn user(&self) -> &'static str {
        "postgres"
    }

    fn daemon(&self, instance: usize) -> Daemon {
        Daemon::Postgres(instance)
    }

    fn least_bytes(&self) -> u64 {
        128 << 20
    }

    fn socket(&self, home: &Home, _instance: usize, port: u16) -> PathBuf {
        home.sockets().join(format!(".s.PGSQL.{port}"))
    }

    fn known(&self, programs: &Programs) -> Result<Vec<String>, LabError> {
        let list = programs.run("postgres", &["--describe-config"], LIST)?;
        Ok(list.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect())
    }

    fn own(&self) -> &'static [&'static str] {
        &["listen_addresses", "port", "unix_socket_directories", "data_directory", "config_file", "hba_file"]
    }

    fn spelt(&self, name: &str) -> String {
        name.to_lowercase()
    }

    fn conf(&self, site: &Site, instance: usize) -> String {
        let (sockets, port) = (site.home.sockets(), site.shape.ports[instance]);
        let mut text = format!(
            "# Written by `tidemark lab up`, anew each time: changes made here are lost.\n\
             listen_addresses = '{HOST}'\nport = {port}\nunix_socket_directories = {}\n",
            quoted(&sockets.to_string_lossy())
        );
        for (name, value) in &site.shape.settings {
            let _ = writeln!(text, "{name} = {}", quoted(value));
        }
        text
    }

    fn create(&self, site: &Site, instance: usize, credentials: &Credentials) -> Result<(), LabError> {
        let Site { home, programs, .. } = site;
        let data = home.data(instance);
        site.with_secret(&credentials.password, |secret| {
            let arguments = [
                "-D".into(),
                data.clone().into_os_string(),
                format!("--username={}", credentials.user).into(),
                format!("--pwfile={}", secret.display()).into(),
                "--auth=scram-sha-256".into(),
                "--encoding=UTF8".into(),
                // Of the C library itself: there whatever locales the machine has.
                "--locale=C.UTF-8".into(),
            ];
            programs.start_with("initdb", &arguments, |command| site.as_server(command))?.finish(CREATION)
        })?;
        // Without a server, so that nothing of it depends on ports.
        let statement = home.confs().join("create.sql");
        fs::write(&statement, format!("CREATE DATABASE {}\n", credentials.database))
            .map_err(LabError::file("write", &statement))?;
        let input = File::open(&statement).map_err(LabError::file("open", &statement))?;
        let conf = format!("config_file={}", home.server_conf(self.daemon(instance)).display());
        let arguments = [
            "--single".into(),
            "-D".into(),
            data.into_os_string(),
            "-c".into(),
            conf.into(),
            "postgres".into(),
        ];
        let prepare = |command: &mut Command| {
            site.as_server(command);
            command.stdin(input);
        };
        let arguments: [std::ffi::OsString; 6] = arguments;
        programs.start_with("postgres", &arguments, prepare)?.finish(CREATION).map(drop)
    }

    fn clear_away(&self, home: &Home, instance: usize, port: u16) -> Result<(), LabError> {
        // The server takes the process in these files for a running one as long as it has a number.
        let mut socket = self.socket(home, instance, port).into_os_string();
        socket.push(".lock");
        for path in [home.data(instance).join("postmaster.pid"), socket.into()] {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if text.lines().next().and_then(|line| line.trim().parse().ok()).is_some_and(is_zombie) {
                fs::remove_file(&path).map_err(LabError::file("remove", path))?;
            }
        }
        Ok(())
    }

    fn client(
        &self,
        port: u16,
        credentials: &Credentials,
        sql: &str,
    ) -> (&'static str, Vec<String>, &'static str) {
        let Credentials { user, database, .. } = credentials;
        let port = port.to_string();
        let words = [
            "-X",
            "-A",
            "-t",
            "-q",
            "-w",
            "-F",
            "\t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            HOST,
            "-p",
            &port,
            "-U",
            user,
            "-d",
            database,
            "-c",
            sql,
        ];
        ("psql", words.map(str::to_owned).to_vec(), "PGPASSWORD")
    }

    fn facts(&self) -> String {
        let names: Vec<_> = SHOWN.iter().map(|name| format!("'{name}'")).collect();
        format!(
            "SELECT 'version', 'PostgreSQL ' || current_setting('server_version') UNION ALL \
             SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({})",
            names.join(", ")
        )
    }

    fn in_effect(&self) -> &'static str {
        // `internal` ones cannot be set; the last ones are of this session, or may have a password in them.
        "SELECT name, translate(current_setting(name), E'\\n\\t', '  ') FROM pg_settings WHERE context <> 'internal' AND \
         name NOT IN ('application_name', 'transaction_isolation', 'transaction_read_only', 'transaction_deferrable', 'seed', \
         'primary_conninfo') ORDER BY name"
    }
}

/// A value as postgresql.conf takes it.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_ends_its_quotes() {
        assert_eq!(quoted("128MB"), "'128MB'");
        assert_eq!(quoted(r"a'b\'"), r"'a''b\\'''");
    }
}
