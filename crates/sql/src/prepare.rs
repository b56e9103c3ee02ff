//! Databases made ready: asked what they are, guarded from being overwritten, filled only where they must be.

use crate::admin::{Admin, PATIENCE_NS};
use crate::counted::{Counted, Counts};
use crate::data::{DataSet, Found, Loader};
use crate::evidence::{self, Claim, Snapshot};
use crate::job::{Checks, Endpoint, Job, Purpose, Reads, Target};
use crate::preflight::{self, Needs};
use crate::server::Server;
use crate::sessions::Databases;
use crate::slot::Runnable;
use crate::workload::{self, Check};
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_block::counters::Counters;
use tidemark_measure::record::{Aborts, DataCheck, Note, Proof};
use tidemark_plan::engine::{Carrier, Prepared, Setup};
use tidemark_plan::plan::{Plan, Work};

/// A database in a stage.
struct Place {
    server: Arc<Server>,
    /// What it had counted before.
    before: Snapshot,
    /// Whether what is read there is to come from storage.
    reads_storage: bool,
}

/// The engine ready for one run.
pub(crate) struct Ready {
    servers: Vec<Arc<Server>>,
    /// Databases whose foreign tables the user has given up, by `--allow-destroy sql:DATABASE`.
    given_up: Vec<PathBuf>,
    counted: Arc<Counted>,
    /// The databases of the stage that is open.
    stage: Vec<Place>,
    /// What must hold in them when it is over.
    checks: Vec<(Arc<Server>, Check)>,
    devices: Option<Counters>,
}

impl Ready {
    /// Looks the plan's databases up and asks each what it is.
    pub(crate) fn prepare(plan: &Plan, setup: &mut Setup<'_>) -> Result<Self, String> {
        let given_up = setup.allow_destroy.to_vec();
        let (servers, stage, checks) = (Vec::new(), Vec::new(), Vec::new());
        let mut ready = Self { servers, given_up, counted: Arc::default(), stage, checks, devices: None };
        let works = || plan.stages.iter().flat_map(|stage| &stage.works);
        let jobs = || works().filter_map(|work| Some((work, Job::of(work)?)));
        for (_, job) in jobs() {
            if ready.servers.iter().any(|server| server.target == job.target) {
                continue;
            }
            let server = Server::resolve(&job.target).map_err(|error| error.to_string())?;
            let mut said = job.target.describe();
            if !setup.skip_preflight {
                let works = jobs().filter(|(_, other)| other.target == job.target);
                let needs =
                    works.map(|(work, other)| Needs::of(work, other)).collect::<Result<Vec<_>, _>>()?;
                said = preflight::ask(&server, Needs::most(&needs))?;
            }
            (setup.ready)(said);
            ready.servers.push(Arc::new(server));
        }
        Ok(ready)
    }

    fn server(&self, target: &Target) -> Result<&Arc<Server>, String> {
        let known = self.servers.iter().find(|server| server.target == *target);
        known.ok_or_else(|| format!("{} was not prepared", target.describe()))
    }

    fn carrier(&self, work: &Work, notes: &mut Vec<Note>) -> Result<Carrier, String> {
        let job = Job::of(work).ok_or("its job is not one on databases")?;
        let server = self.server(&job.target)?;
        let (family, _) = workload::find(&job.workload.name).ok_or("its workload is unknown here")?;
        let workload = workload::open(&job.workload)?;
        let data = DataSet::new(family.name, Arc::clone(&workload), job.target.dialect);
        let mut admin = Admin::connect(server)?;
        let refused = |failure: crate::failure::Failure| format!("{}: {failure}", job.target.describe());
        let found = data.find(&mut admin).map_err(refused)?;
        let sessions = |workload: Arc<dyn Runnable>, server: &Arc<Server>| {
            let sessions = Databases::new(workload, Arc::clone(server), &job.settings, &self.counted);
            Carrier::Sessions(Box::new(sessions))
        };
        let of_user = |texts: &[String], admin: &mut Admin| {
            texts.iter().try_for_each(|sql| admin.run(sql)).map_err(refused)?;
            Ok(Carrier::Done(match texts.len() {
                0 => "the workload has no tables of its own".into(),
                count => format!("{count} texts of SQL were run"),
            }))
        };
        match job.purpose {
            Purpose::Fill { .. } if data.tables().is_empty() => of_user(workload.setup(), &mut admin),
            Purpose::Drop if data.tables().is_empty() => of_user(workload.teardown(), &mut admin),
            Purpose::Fill { fresh } => {
                self.guard(&found, &data, &job.target, &mut admin)?;
                if let (Found::Complete { loads }, false) = (&found, fresh) {
                    return Ok(Carrier::Done(kept(&data, *loads)));
                }
                if let Found::Other { options } = &found {
                    let text = format!(
                        "the data set {} was made with other options ({options}): it is dropped and loaded anew",
                        data.name
                    );
                    notes.push(Note { topic: "reloaded".into(), text });
                }
                data.create(&mut admin, fresh).map_err(refused)?;
                let target = Target { timeout_ns: PATIENCE_NS, ..job.target.clone() };
                let server = Arc::new(Server::resolve(&target).map_err(|error| error.to_string())?);
                Ok(sessions(Arc::new(Loader(data)), &server))
            }
            Purpose::Load => {
                must_be_there(&found, &data, &job.target)?;
                if workload.actions().iter().any(|action| action.writes) {
                    data.age(&mut admin).map_err(refused)?;
                }
                Ok(sessions(workload, server))
            }
            Purpose::Drop => match found {
                Found::Nothing => Ok(Carrier::Done("there is no such data set".into())),
                Found::Foreign { .. } => {
                    self.guard(&found, &data, &job.target, &mut admin)?;
                    Ok(Carrier::Done("the tables that were given up are dropped".into()))
                }
                Found::Complete { .. } | Found::Partial | Found::Torn | Found::Other { .. } => {
                    data.drop(&mut admin).map_err(refused)?;
                    Ok(Carrier::Done(format!("the data set {} is dropped", data.name)))
                }
            },
        }
    }

    /// Refuses to touch tables that Tidemark did not make, unless the user has given them up.
    fn guard(&self, found: &Found, data: &DataSet, target: &Target, admin: &mut Admin) -> Result<(), String> {
        let Found::Foreign { tables } = found else { return Ok(()) };
        let given_up = format!("sql:{}", target.database);
        if !self.given_up.iter().any(|path| path.as_os_str() == given_up.as_str()) {
            return Err(format!(
                "the database {} has tables that Tidemark did not make ({}), and the data set {} needs their names: use another \
                 database, or allow that they are dropped with `--allow-destroy {given_up}`",
                target.database,
                tables.join(", "),
                data.name
            ));
        }
        tables.iter().try_for_each(|table| {
            admin
                .run(&format!("DROP TABLE {table}"))
                .map_err(|failure| format!("cannot drop {table}: {failure}"))
        })
    }
}

fn kept(data: &DataSet, loads: u64) -> String {
    match loads {
        0 => format!("the data set {} is there as it was loaded, and was kept", data.name),
        1 => format!("the data set {} is there and was kept; one load has changed it since", data.name),
        loads => {
            format!("the data set {} is there and was kept; {loads} loads have changed it since", data.name)
        }
    }
}

/// Refuses a load on a data set that is not there, or not whole.
fn must_be_there(found: &Found, data: &DataSet, target: &Target) -> Result<(), String> {
    let what = match found {
        Found::Complete { .. } => return Ok(()),
        Found::Nothing => "has no such tables".to_owned(),
        Found::Partial => "has only a part of it: its load was interrupted".to_owned(),
        Found::Torn => "has only some of its tables: making or dropping it was interrupted".to_owned(),
        Found::Other { options } => format!("has one that was made with other options: {options}"),
        Found::Foreign { .. } => "has tables of these names that Tidemark did not load".to_owned(),
    };
    Err(format!(
        "the load needs the data set {}, and the database {} {what}; load it first: `- prepare: {{workload: ..., ...}}` with \
         the same options",
        data.name, target.database
    ))
}

impl Prepared for Ready {
    fn open(&mut self, works: &[&Work], notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        self.counted.take();
        let open = |work: &&Work| {
            self.carrier(work, notes).map_err(|error| format!("work `{}`: {error}", work.name))
        };
        let carriers = works.iter().map(open).collect::<Result<_, _>>()?;
        let mut servers: Vec<Arc<Server>> = Vec::new();
        let mut checks: Vec<(Arc<Server>, Check)> = Vec::new();
        for job in works.iter().filter_map(|work| Job::of(work)) {
            let server = self.server(&job.target)?;
            if !servers.iter().any(|known| Arc::ptr_eq(known, server)) {
                servers.push(Arc::clone(server));
            }
            let wanted = |check: &Check| match job.settings.checks {
                _ if job.purpose == Purpose::Drop => false,
                Checks::None => false,
                Checks::Quick => !check.scans,
                Checks::All => true,
            };
            for check in workload::open(&job.workload)?.checks().into_iter().filter(wanted) {
                demand(&mut checks, server, check);
            }
        }
        let mut directories = Vec::new();
        self.stage.clear();
        for server in servers {
            let mut admin = Admin::connect(&server)?;
            directories.extend(directory_here(&server.target, &mut admin));
            let jobs = || works.iter().filter_map(|work| Job::of(work));
            let reads_storage =
                jobs().any(|job| job.target == server.target && job.settings.reads == Reads::Storage);
            self.stage.push(Place { server, before: Snapshot::read(&mut admin), reads_storage });
        }
        self.checks = checks;
        self.devices = (!directories.is_empty()).then(|| Counters::read(&directories));
        Ok(carriers)
    }

    fn close(&mut self, remarks: &[String]) -> Option<Proof> {
        let mut counted = self.counted.take();
        let mut all = Counts::default();
        counted.values().for_each(|counts| all.add(counts));
        let aborts = all.aborts.iter().map(|(fault, count)| Aborts { fault, count }).collect();
        let mut proof = Proof { setup: remarks.to_vec(), aborts, direct: true, ..Proof::default() };
        for Place { server, before, reads_storage } in self.stage.drain(..) {
            let target = &server.target;
            let counts = counted.remove(&target.describe()).unwrap_or_default();
            let claim = Claim { acknowledged: counts.acknowledged, reads_storage };
            let used = Admin::connect(&server).and_then(|mut admin| {
                let used = evidence::used(&mut admin, target, &before, &claim);
                used.map_err(|failure| format!("{}: {failure}", target.describe()))
            });
            match used {
                Ok(used) => proof.databases.push(used),
                Err(why) => {
                    proof.unchecked.push(format!("What the database counted could not be read: {why}."));
                }
            }
        }
        if let Some(counted) = self.devices.take().map(Counters::since) {
            proof.devices = counted.devices;
            proof.unchecked.extend(counted.unchecked);
        }
        proof.checks = self.checks.drain(..).map(|(server, check)| made(&server, check)).collect();
        Some(proof)
    }
}

/// Adds a check on a server, once.
fn demand(checks: &mut Vec<(Arc<Server>, Check)>, server: &Arc<Server>, check: Check) {
    if !checks.iter().any(|(at, known)| Arc::ptr_eq(at, server) && *known == check) {
        checks.push((Arc::clone(server), check));
    }
}

/// Makes a check.
fn made(server: &Server, check: Check) -> DataCheck {
    let broken = Admin::connect(server).ok().and_then(|mut admin| {
        let sql = format!("SELECT count(*) FROM ({}) broken", check.broken_rows);
        admin.value(&sql).ok()?.and_then(|count| count.parse().ok())
    });
    DataCheck { server: server.target.describe(), holds: check.holds, broken }
}

/// Where the database's files are, if it runs on this machine and says so to this user.
fn directory_here(target: &Target, admin: &mut Admin) -> Option<PathBuf> {
    let is_here = |endpoint: &Endpoint| match endpoint {
        Endpoint::Unix(_) => true,
        Endpoint::Tcp(host, _) => matches!(host.as_str(), "127.0.0.1" | "::1" | "localhost"),
    };
    if !target.endpoints.iter().all(is_here) {
        return None;
    }
    let directory = PathBuf::from(admin.value(target.dialect.data_directory()).ok()??);
    // A forwarded port is local, too, and its database is not.
    directory.exists().then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, Fake};

    #[test]
    fn each_server_has_its_own_checks_and_each_of_them_once() {
        let (one, other) = (Fake::new(|_| Answer::Fine).server(), Fake::new(|_| Answer::Fine).server());
        let check = Check { holds: "it holds".into(), broken_rows: "SELECT 1".into(), scans: false };
        let mut checks = Vec::new();
        [&one, &other, &one].into_iter().for_each(|server| demand(&mut checks, server, check.clone()));
        assert_eq!(checks.len(), 2);
    }
}
