//! What the lab must know of a kind of database server.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::record::{Credentials, Shape};
use crate::account::Account;
use crate::command::{Package, Programs};
use crate::daemon::{self, Daemon};
use crate::error::LabError;
use crate::home::Home;

/// How long making a data directory may take, on a slow disk too.
pub(super) const CREATION: Duration = Duration::from_secs(300);
/// How long a server may take to answer one statement.
const ANSWER: Duration = Duration::from_secs(60);

/// A kind of database server.
pub(super) trait Server: Sync {
    /// Its name as people write it.
    fn name(&self) -> &'static str;

    /// Its programs.
    fn package(&self) -> &'static Package;

    /// The user that its package makes.
    fn user(&self) -> &'static str;

    /// The daemon of a number.
    fn daemon(&self, instance: usize) -> Daemon;

    /// The space that an empty server takes, in bytes.
    fn least_bytes(&self) -> u64;

    /// Its socket.
    fn socket(&self, home: &Home, instance: usize, port: u16) -> PathBuf;

    /// The names of all settings that it knows, from the server itself.
    fn known(&self, programs: &Programs) -> Result<Vec<String>, LabError>;

    /// Settings that the lab makes itself.
    fn own(&self) -> &'static [&'static str];

    /// How a setting's name is written in the list of those known.
    fn spelt(&self, name: &str) -> String;

    /// The text of its configuration.
    fn conf(&self, site: &Site, instance: usize) -> String;

    /// Makes the data directory, which is there and empty, with the role and its database.
    fn create(&self, site: &Site, instance: usize, credentials: &Credentials) -> Result<(), LabError>;

    /// Clears away what a killed server has left that would keep it from starting.
    fn clear_away(&self, _home: &Home, _instance: usize, _port: u16) -> Result<(), LabError> {
        Ok(())
    }

    /// The client that carries out one statement: its program, its arguments, and the variable for the password.
    fn client(
        &self,
        port: u16,
        credentials: &Credentials,
        sql: &str,
    ) -> (&'static str, Vec<String>, &'static str);

    /// A statement that tells version and durability: rows of name and value.
    fn facts(&self) -> String;

    /// A statement that tells all settings that can be set, as they are in effect: rows of name and value. Secrets are left out.
    fn in_effect(&self) -> &'static str;
}

/// Where servers are, and the programs to run them with.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) home: Home,
    pub(super) shape: Shape,
    pub(super) programs: Programs,
    pub(super) account: Option<Account>,
}

impl Site {
    /// With the programs that are installed.
    pub(super) fn installed(home: Home, shape: Shape) -> Result<Self, LabError> {
        let programs = Programs::installed();
        let account = Account::of_package(shape.server.server().user(), &programs)?;
        Ok(Self { home, shape, programs, account })
    }

    /// The answer of a server to one statement.
    pub(super) fn ask(
        &self,
        instance: usize,
        credentials: &Credentials,
        sql: &str,
    ) -> Result<String, LabError> {
        let Some(port) = self.shape.ports.get(instance) else {
            return Err(LabError::NoInstance { instance, instances: self.shape.ports.len() });
        };
        let (program, arguments, secret) = self.shape.server.server().client(*port, credentials, sql);
        let with_password = |command: &mut Command| {
            command.env(secret, &credentials.password);
        };
        self.programs.start_with(program, &arguments, with_password)?.finish(ANSWER)
    }

    /// Makes a command run as the servers do.
    pub(super) fn as_server(&self, command: &mut Command) {
        if let Some(account) = &self.account {
            account.become_in(command);
        }
    }

    /// Gives a file to the servers.
    pub(super) fn give(&self, path: &Path) -> Result<(), LabError> {
        self.account.as_ref().map_or(Ok(()), |account| account.own(path))
    }

    /// Runs something with a file that only the servers can read, and that is gone afterwards.
    pub(super) fn with_secret<T>(
        &self,
        text: &str,
        run: impl FnOnce(&Path) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let path = self.home.confs().join("secret");
        // What an earlier start has left behind is of another owner.
        let _ = fs::remove_file(&path);
        let write = || {
            let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(text.as_bytes())
        };
        write().map_err(LabError::file("write", &path))?;
        let result = self.give(&path).and_then(|()| run(&path));
        let removed = fs::remove_file(&path).map_err(LabError::file("remove", &path));
        result.and_then(|value| removed.map(|()| value))
    }

    /// Stops the servers in an orderly way.
    pub(super) fn stop_servers(&self, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let servers: Vec<_> =
            self.shape.daemons().into_iter().filter(|daemon| *daemon != Daemon::Disk).collect();
        daemon::stop(&self.home, &servers, progress)
    }
}
