//! Database servers: several of one kind, each with a data directory and a port of its own.

mod mariadb;
mod options;
mod postgres;
mod postgres_image;
mod power;
mod record;
mod saved;
mod server;
mod set;
mod settings;
mod start;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::account::Account;
use crate::daemon::{self, Daemon};
use crate::error::LabError;
use crate::home::Home;
use crate::provisioner::DATABASE_VARIABLES;
use crate::{DaemonState, DaemonStatus, state_of};
use crate::{mounts, programs};
use record::{Credentials, Shape};
use server::Site;

pub use options::DatabaseOptions;
pub use postgres_image::postgres_image;
pub use record::Database;

type Record = crate::record::Record<Shape>;

/// Where servers listen.
const HOST: &str = "127.0.0.1";

/// Completely created database servers, running or not.
#[derive(Clone, Debug)]
pub struct Databases {
    site: Site,
    credentials: Credentials,
    /// What the servers say of themselves; known while they run.
    facts: Vec<(String, String)>,
}

/// The state of database servers.
#[derive(Clone, Debug, Serialize)]
pub struct DatabasesStatus {
    /// The lab's directory.
    pub dir: PathBuf,
    /// What they are.
    pub database: Database,
    /// Whether they were created completely. If not, [`Databases::up`] creates them again.
    pub complete: bool,
    /// What they lie on and how they are set; see [`Databases::labels`].
    pub labels: Vec<(String, String)>,
    /// All daemons of the lab.
    pub daemons: Vec<DaemonStatus>,
    /// How many of the servers answer.
    pub answering: usize,
    /// Host and port of every server.
    pub endpoints: Vec<String>,
    /// Where the servers keep their data.
    pub data: PathBuf,
    /// The file with the endpoints and the password, `lab.json`, which only its owner can read.
    pub credentials_file: PathBuf,
}

impl DatabasesStatus {
    /// Whether every daemon runs and every server answers.
    pub fn is_up(&self) -> bool {
        let runs = |daemon: &DaemonStatus| daemon.state == DaemonState::Running;
        self.complete && self.answering == self.endpoints.len() && self.daemons.iter().all(runs)
    }
}

impl Databases {
    /// Brings servers up: creates them if there are none, otherwise starts those that are stopped. It returns when all
    /// of them answer. Servers that are already up are left as they are.
    ///
    /// `progress` gets a line as each step begins.
    ///
    /// # Errors
    /// Missing programs, unknown settings, unsuitable directories and ports, and servers that exit or do not become
    /// ready. After an error nothing that this call started is still running, and the logs are in `log` below the
    /// directory. The next call creates servers again whose creation failed.
    pub fn up(options: &DatabaseOptions, progress: &mut dyn FnMut(&str)) -> Result<Self, LabError> {
        let server = options.database.server();
        let programs = programs(options.program_path.as_ref());
        programs.check(server.package())?;
        let account = Account::of_package(server.user(), &programs)?;
        settings::check(options, &programs)?;
        let home = Home::prepare(&options.dir)?;
        let _lock = home.lock()?;
        let site =
            |shape| Site { home: home.clone(), shape, programs: programs.clone(), account: account.clone() };
        let (site, credentials) = match Record::load(&home)? {
            Some(Record { shape, credentials: Some(credentials) }) => {
                let shape = options.adapt(&home, &shape)?;
                Record { shape: shape.clone(), credentials: Some(credentials.clone()) }.save(&home)?;
                let site = site(shape);
                start::resume(&site, &credentials, progress)?;
                (site, credentials)
            }
            unfinished_or_none => {
                if unfinished_or_none.is_some() {
                    progress("removing servers whose creation did not finish");
                    daemon::stop(&home, &Daemon::noted(&home)?, progress)?;
                    mounts::release(&home, &programs)?;
                    home.clear_system()?;
                }
                let site = site(options.new_shape(&home)?);
                let mut record = Record { shape: site.shape.clone(), credentials: None };
                record.save(&home)?;
                let credentials = Credentials::random()?;
                start::create(&site, &credentials, progress)?;
                record.credentials = Some(credentials.clone());
                record.save(&home)?;
                (site, credentials)
            }
        };
        let mut databases = Self { site, credentials, facts: Vec::new() };
        databases.ask_facts()?;
        Ok(databases)
    }

    /// The servers in a directory, running or not.
    ///
    /// # Errors
    /// [`LabError::NoLab`], [`LabError::Unfinished`] and [`LabError::BadRecord`].
    pub fn open(dir: &Path) -> Result<Self, LabError> {
        let (home, Record { shape, credentials }) = find(dir)?;
        let credentials = credentials.ok_or_else(|| LabError::Unfinished { dir: home.dir().to_owned() })?;
        let site = Site::installed(home, shape)?;
        let mut databases = Self { site, credentials, facts: Vec::new() };
        if databases.answering() > 0 {
            databases.ask_facts()?;
        }
        Ok(databases)
    }

    /// The state of the servers in a directory. It changes nothing.
    ///
    /// # Errors
    /// [`LabError::NoLab`], and files that cannot be read. Stopped servers are not an error.
    pub fn status(dir: &Path) -> Result<DatabasesStatus, LabError> {
        let (home, record) = find(dir)?;
        let daemons = record.shape.daemons().into_iter().map(|daemon| state_of(&home, daemon));
        let daemons = daemons.collect::<Result<_, _>>()?;
        let open = record.credentials.is_some().then(|| Self::open(dir)).transpose()?;
        Ok(DatabasesStatus {
            database: record.shape.server,
            complete: open.is_some(),
            labels: open.as_ref().map_or_else(|| record.shape.labels(), Self::labels),
            answering: open.as_ref().map_or(0, Self::answering),
            daemons,
            endpoints: record.shape.endpoints(),
            data: home.all_data(),
            credentials_file: home.record(),
            dir: home.dir().to_owned(),
        })
    }

    /// The lab's directory, absolute and without symbolic links.
    pub fn dir(&self) -> &Path {
        self.site.home.dir()
    }

    /// What they are.
    pub fn database(&self) -> Database {
        self.site.shape.server
    }

    /// How many servers there are.
    pub fn instances(&self) -> usize {
        self.site.shape.ports.len()
    }

    /// Every daemon of the lab, in the order of their start.
    pub fn daemons(&self) -> Vec<Daemon> {
        self.site.shape.daemons()
    }

    /// The process of a daemon, if it runs or is paused.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn pid(&self, daemon: Daemon) -> Result<Option<u32>, LabError> {
        Ok(daemon.find(&self.site.home)?.map(|process| process.pid()))
    }

    /// Names of the servers' processes. Servers of other labs have the same.
    pub fn process_names(&self) -> Vec<&'static str> {
        // The disk is served by this very program, which is observed anyway.
        let servers = self.daemons().into_iter().filter(|daemon| *daemon != Daemon::Disk);
        let mut names: Vec<_> = servers.map(Daemon::program).collect();
        names.dedup();
        names
    }

    /// What the servers lie on and how they are set, in words for a report; durability settings as the servers
    /// themselves say while they run.
    pub fn labels(&self) -> Vec<(String, String)> {
        let mut labels = self.site.shape.labels();
        labels.extend(self.facts.iter().cloned());
        labels
    }

    /// Shell variables with the servers' addresses and the role's password, as `tidemark lab env` prints them. Those of
    /// one value are the first server's; lists have one value for each server, with commas between them.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let Site { home, shape, .. } = &self.site;
        let sockets: Vec<_> = shape.sockets(home).iter().map(|socket| socket.display().to_string()).collect();
        let ports: Vec<_> = shape.ports.iter().map(u16::to_string).collect();
        let Credentials { user, password, database } = self.credentials.clone();
        let values = [
            HOST.to_owned(),
            ports.first().cloned().unwrap_or_default(),
            sockets.first().cloned().unwrap_or_default(),
            ports.join(","),
            sockets.join(","),
            shape.endpoints().join(","),
            user,
            password,
            database,
        ];
        DATABASE_VARIABLES.map(|(name, _)| name).into_iter().zip(values).collect()
    }

    /// The answer of one server to a statement in its own tool: columns with tabs, rows with line feeds between them.
    ///
    /// # Errors
    /// A server that does not answer, and a statement that fails.
    pub fn ask(&self, instance: usize, sql: &str) -> Result<String, LabError> {
        self.site.ask(instance, &self.credentials, sql)
    }

    fn answering(&self) -> usize {
        let answers = |instance: &usize| self.ask(*instance, "SELECT 1").is_ok();
        self.site.shape.instances().filter(answers).count()
    }

    /// Asks the first server for its version and durability; all have the same.
    fn ask_facts(&mut self) -> Result<(), LabError> {
        let server = self.site.shape.server.server();
        let answer = self.ask(0, &server.facts())?;
        let rows = answer.lines().filter_map(|line| line.split_once('\t'));
        self.facts = rows.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(())
    }

    /// Stops the servers in an orderly way. What they lie on stays mounted.
    ///
    /// # Errors
    /// [`LabError::Busy`], and a server that survives SIGKILL.
    pub fn stop(&self, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let _lock = self.site.home.lock()?;
        self.site.stop_servers(progress)
    }

    /// Starts the servers that do not run, and waits until they answer.
    ///
    /// # Errors
    /// As [`Databases::up`].
    pub fn start(&self, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let _lock = self.site.home.lock()?;
        start::resume(&self.site, &self.credentials, progress)
    }

    /// Kills the servers as by `kill -9`: they end at once, and what they have written is in the page cache.
    ///
    /// # Errors
    /// [`LabError::Busy`], and a server that survives SIGKILL.
    pub fn kill(&self, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let _lock = self.site.home.lock()?;
        power::kill_servers(&self.site, progress)
    }

    /// Cuts the power: the servers end at once, and what was not synced to the disk below them is gone. The disk is
    /// mounted again; [`Databases::start`] starts the servers.
    ///
    /// # Errors
    /// [`LabError::NoPowerCut`] if there is no such disk, [`LabError::Busy`], and daemons that survive SIGKILL.
    pub fn cut_power(&self, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let _lock = self.site.home.lock()?;
        power::cut(&self.site, progress)
    }

    /// Keeps a copy of all data, for [`Databases::restore`]. The servers are stopped for it and started again.
    ///
    /// # Errors
    /// [`LabError::Busy`], a disk that is full, and servers that do not start again.
    pub fn save(&self, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let _lock = self.site.home.lock()?;
        saved::save(&self.site, &self.credentials, progress)
    }

    /// Goes back to the copy; whether there is one.
    ///
    /// # Errors
    /// As [`Databases::save`].
    pub fn restore(&self, progress: &mut dyn FnMut(&str)) -> Result<bool, LabError> {
        let _lock = self.site.home.lock()?;
        saved::restore(&self.site, &self.credentials, progress)
    }
}

fn find(dir: &Path) -> Result<(Home, Record), LabError> {
    let home = Home::find(dir)?;
    let record = Record::load(&home)?.ok_or_else(|| LabError::NoLab { dir: dir.to_owned() })?;
    Ok((home, record))
}

#[cfg(test)]
mod tests;
