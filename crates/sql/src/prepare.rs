//! Databases made ready: asked what they are, guarded from being overwritten, filled only where they must be.

use crate::admin::{Admin, PATIENCE_NS};
use crate::counted::{Counted, Counts};
use crate::counterpart::process::Counterpart;
use crate::counterpart::program;
use crate::data::{DataSet, Found, Loader};
use crate::databases::{Aborts, DataCheck, DatabaseEvidence, DatabaseUse, LedgerUse, Record, ReplicaLag};
use crate::evidence::{self, Claim, Snapshot};
use crate::instances::{Instances, summed_up, together, try_together};
use crate::job::{Checks, Endpoint, Job, Program, Purpose, Reads, Role, Target};
use crate::ledger;
use crate::plans::{self, Plans};
use crate::preflight::{self, Needs};
use crate::recorded::Recorded;
use crate::replication::{self, Observer, Observing};
use crate::server::Server;
use crate::sessions::Databases;
use crate::slot::{Route, Runnable};
use crate::workload::{self, Check};
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_block::counters::Counters;
use tidemark_measure::counts::FaultCounts;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{DeclaredFigure, Note, Proof};
use tidemark_plan::engine::{Carrier, Prepared, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Work};

/// A database in a stage.
struct Place {
    server: Arc<Server>,
    /// What it had counted before.
    before: Snapshot,
    /// Whether what is read there is to come from storage.
    reads_storage: bool,
    /// What the planner made of the load's statements before.
    plans: Plans,
    /// Whether other databases of the stage are on the same server.
    shares_server: bool,
    /// What measures the lag of its replicas, if it has any.
    observing: Option<Observing>,
}

impl Place {
    /// What the database says when the stage is over, beside what its clients counted: the ledger, if they kept one, and what it
    /// counted itself.
    fn told(
        &self,
        counts: &Counts,
        replicas: Vec<ReplicaLag>,
    ) -> (Option<LedgerUse>, Result<DatabaseUse, String>) {
        let (server, accounts) = (&self.server, &counts.accounts);
        // It waits for a server that is down: what follows finds it up again.
        let ledger = (!accounts.is_empty()).then(|| ledger::compare(server, accounts.clone()));
        let claim = Claim {
            acknowledged: counts.acknowledged,
            reads_storage: self.reads_storage,
            shares_server: self.shares_server,
        };
        let used = Admin::connect(server).and_then(|mut admin| {
            let used = evidence::used(&mut admin, &server.target, &self.before, &claim);
            used.map_err(|failure| format!("{}: {failure}", server.target.describe()))
        });
        let used = used.map(|used| {
            let after = plans::read(server, self.plans.keys()).plans;
            DatabaseUse { plans: plans::compared(&self.plans, &after), replicas, ..used }
        });
        (ledger, used)
    }
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
    /// What its loads are known by.
    figures: Vec<DeclaredFigure>,
    /// The loads of which each execution is recorded.
    recorded: Vec<Recorded>,
    devices: Option<Counters>,
    /// The other programs that do loads of the plan.
    programs: Vec<program::Found>,
}

impl Ready {
    /// Looks the plan's databases up and asks each what it is.
    pub(crate) fn prepare(plan: &Plan, setup: &mut Setup<'_>) -> Result<Self, String> {
        let given_up = setup.allow_destroy.to_vec();
        let mut ready = Self {
            servers: Vec::new(),
            given_up,
            counted: Arc::default(),
            stage: Vec::new(),
            checks: Vec::new(),
            figures: Vec::new(),
            recorded: Vec::new(),
            devices: None,
            programs: Vec::new(),
        };
        // Asked for first: what is missing on this machine is soon said.
        for job in plan.stages.iter().flat_map(|stage| &stage.works).filter_map(Job::of) {
            let is_known = |found: &program::Found| found.program == job.program;
            if job.program != Program::Tidemark && !ready.programs.iter().any(is_known) {
                let found = program::find(job.program)?;
                (setup.ready)(found.description());
                ready.programs.push(found);
            }
        }
        // Each database in its role, and what loads need of it at most.
        let mut wanted: Vec<(Target, Role, Needs)> = Vec::new();
        for work in plan.stages.iter().flat_map(|stage| &stage.works) {
            let Some(job) = Job::of(work) else { continue };
            let needs = Needs::of(work, job)?;
            let serving = job.serving();
            for (target, role) in job.servers() {
                let serves = serving.iter().any(|one| *one == target);
                let needs = if serves { needs } else { Needs::default() };
                match wanted.iter_mut().find(|(known, as_what, _)| (known, *as_what) == (&target, role)) {
                    Some((_, _, most)) => *most = Needs::most(&[*most, needs]),
                    None => wanted.push((target, role, Needs::most(&[needs]))),
                }
            }
        }
        let look_up = |(target, role, needs): &(Target, Role, Needs)| {
            let server = Server::resolve(target).map_err(|error| error.to_string())?;
            let said = match setup.skip_preflight {
                true => target.describe(),
                false => preflight::ask(&server, *role, *needs)?,
            };
            Ok((Arc::new(server), said))
        };
        for (server, said) in try_together(&wanted, look_up)? {
            (setup.ready)(said);
            ready.servers.push(server);
        }
        Ok(ready)
    }

    fn server(&self, target: &Target) -> Result<Arc<Server>, String> {
        let known = self.servers.iter().find(|server| server.target == *target).cloned();
        known.ok_or_else(|| format!("{} was not prepared", target.describe()))
    }

    fn servers(&self, instances: &Instances) -> Result<Vec<Arc<Server>>, String> {
        instances.iter().map(|target| self.server(target)).collect()
    }

    /// What is to measure the lag of these servers' replicas while the loads of these works are on. Where one of them reads from
    /// replicas, they have then what is on the primary by now.
    fn observers(&self, jobs: &[&Job], servers: &[Arc<Server>]) -> Result<Vec<Option<Observer>>, String> {
        let observer = |server: &Arc<Server>| {
            let here = |job: &&&Job| job.instances.iter().any(|one| *one == server.target);
            let mut loads = jobs.iter().filter(|job| job.purpose == Purpose::Load).filter(here).peekable();
            if server.target.replicas.is_empty() || loads.peek().is_none() {
                return Ok(None);
            }
            let replicas = server.target.replicas().map(|target| self.server(&target));
            let observer = Observer::prepare(server, replicas.collect::<Result<_, _>>()?)?;
            if loads.any(|job| job.settings.reads_from == Role::Replica) {
                observer.wait_for_replicas()?;
            }
            Ok(Some(observer))
        };
        servers.iter().map(observer).collect()
    }

    fn carrier(&mut self, work: &Work, notes: &mut Vec<Note>) -> Result<Carrier, String> {
        let job = Job::of(work).ok_or("its job is not one on databases")?;
        let servers = self.servers(&job.instances)?;
        let (family, _) = workload::find(&job.workload.name).ok_or("its workload is unknown here")?;
        let workload = workload::open(&job.workload)?;
        let data = DataSet::new(family.name, Arc::clone(&workload), job.instances.first().dialect);
        let made = try_together(&servers, |server| self.make_ready(job, &data, &*workload, server))?;
        let sessions = |workload: Arc<dyn Runnable>, instances: &Instances, servers, route| {
            Databases::new(workload, instances, servers, route, &job.settings, &self.counted)
        };
        let (mut left, mut said) = (false, Vec::new());
        for one in made {
            match one {
                Made::Done(what) => said.push(what),
                Made::Left(note) => {
                    left = true;
                    notes.extend(note.map(|text| Note { topic: "reloaded".into(), text }));
                }
            }
        }
        Ok(match job.purpose {
            Purpose::Load if job.program != Program::Tidemark => {
                let found = self.programs.iter().find(|found| found.program == job.program).cloned();
                let found = found.ok_or_else(|| format!("{} was not prepared", job.program.name()))?;
                Carrier::Process(1, Arc::new(Counterpart::new(found, work, job, &self.counted)?))
            }
            Purpose::Load => {
                let serving = job.serving();
                let recorded = Recorded::of(work, job, family.name, &*workload);
                let executions = recorded.as_ref().map(|recorded| Arc::clone(&recorded.executions));
                let sessions = sessions(workload, &serving, self.servers(&serving)?, Route::BySlot);
                self.recorded.extend(recorded);
                Carrier::Sessions(Box::new(sessions.recording(executions)))
            }
            _ if !left => Carrier::Done(summed_up(&job.instances.names(), &said)),
            // What is in some of the databases already, the loader finds there.
            _ => {
                let patient = |server: &Arc<Server>| {
                    let target = Target { timeout_ns: PATIENCE_NS, ..server.target.clone() };
                    Server::resolve(&target).map(Arc::new).map_err(|error| error.to_string())
                };
                let servers = servers.iter().map(patient).collect::<Result<_, _>>()?;
                let sessions = sessions(Arc::new(Loader(data)), &job.instances, servers, Route::BySpace);
                Carrier::Sessions(Box::new(sessions))
            }
        })
    }

    /// Makes one database ready for a work, or does what the work is for where that is not done by a load.
    fn make_ready(
        &self,
        job: &Job,
        data: &DataSet,
        workload: &dyn Runnable,
        server: &Server,
    ) -> Result<Made, String> {
        let target = &server.target;
        let mut admin = Admin::connect(server)?;
        let refused = |failure: crate::failure::Failure| format!("{}: {failure}", target.describe());
        let of_user = |texts: &[String], admin: &mut Admin| {
            texts.iter().try_for_each(|sql| admin.run(sql)).map_err(refused)?;
            Ok(Made::Done(match texts.len() {
                0 => "the workload has no tables of its own".into(),
                count => format!("{count} texts of SQL were run"),
            }))
        };
        if job.purpose == Purpose::Drop && !target.replicas.is_empty() {
            admin.run(replication::DROP).map_err(refused)?;
        }
        match job.purpose {
            Purpose::Fill { .. } if data.tables().is_empty() => {
                return of_user(workload.setup(), &mut admin);
            }
            Purpose::Drop if data.tables().is_empty() => return of_user(workload.teardown(), &mut admin),
            _ => {}
        }
        let found = data.find(&mut admin).map_err(refused)?;
        match job.purpose {
            Purpose::Fill { fresh } => {
                let found = match data.strangers(&mut admin).map_err(refused)? {
                    tables if tables.is_empty() => found,
                    tables => Found::Foreign { tables },
                };
                self.guard(&found, data, target, &mut admin)?;
                if let (Found::Complete { loads }, false) = (&found, fresh) {
                    return Ok(Made::Done(kept(data, *loads)));
                }
                let other = match &found {
                    Found::Other { options } => Some(format!(
                        "{}: the data set {} was made with other options ({options}): it is dropped and loaded anew",
                        target.describe(),
                        data.name
                    )),
                    _ => None,
                };
                data.create(&mut admin, fresh).map_err(refused)?;
                Ok(Made::Left(other))
            }
            Purpose::Load => {
                must_be_there(&found, data, target)?;
                data.make_routines(&mut admin).map_err(|failure| match failure.fault {
                    Fault::Denied => format!(
                        "{}: the routines of `mode: routines` cannot be made: {failure}; {} to the user, or use `mode: statements`",
                        target.describe(),
                        target.dialect.routine_privileges()
                    ),
                    _ => refused(failure),
                })?;
                if job.settings.ledger {
                    ledger::create(&mut admin, target.dialect).map_err(|failure| {
                        let who = target.describe();
                        format!("{who}: the ledger's table tidemark_ledger cannot be made: {failure}")
                    })?;
                }
                if workload.actions().iter().any(|action| action.writes) {
                    data.age(&mut admin).map_err(refused)?;
                }
                Ok(Made::Left(None))
            }
            Purpose::Drop => Ok(Made::Done(match found {
                Found::Nothing => "there is no such data set".into(),
                Found::Foreign { .. } => {
                    self.guard(&found, data, target, &mut admin)?;
                    "the tables that were given up are dropped".into()
                }
                Found::Complete { .. } | Found::Partial | Found::Torn | Found::Other { .. } => {
                    data.drop(&mut admin).map_err(refused)?;
                    format!("the data set {} is dropped", data.name)
                }
            })),
        }
    }

    /// Refuses to touch tables that Tidemark did not make, unless the user has given them up.
    fn guard(&self, found: &Found, data: &DataSet, target: &Target, admin: &mut Admin) -> Result<(), String> {
        let Found::Foreign { tables } = found else { return Ok(()) };
        let given_up = format!("sql:{}", target.database);
        if !self.given_up.iter().any(|path| path.as_os_str() == given_up.as_str()) {
            return Err(format!(
                "{} has tables that Tidemark did not make ({}), and the data set {} needs their names: use another \
                 database, or allow that they are dropped with `--allow-destroy {given_up}`",
                target.describe(),
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

/// What came of making a database ready.
enum Made {
    /// All is done, and what that was.
    Done(String),
    /// The load does the rest; what the user is to know.
    Left(Option<String>),
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
        "the load needs the data set {}, and {} {what}; load it first: `- prepare: {{workload: ..., ...}}` with \
         the same options",
        data.name,
        target.describe()
    ))
}

impl Prepared for Ready {
    fn open(&mut self, stage: StageWorks<'_>, notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let works = stage.works;
        self.counted.take();
        self.recorded.clear();
        let mut open = |work: &&Work| {
            self.carrier(work, notes).map_err(|error| format!("work `{}`: {error}", work.name))
        };
        let carriers = works.iter().map(&mut open).collect::<Result<_, _>>()?;
        let mut servers: Vec<Arc<Server>> = Vec::new();
        let mut checks: Vec<(Arc<Server>, Check)> = Vec::new();
        for job in works.iter().filter_map(|work| Job::of(work)) {
            let wanted = |check: &Check| match job.settings.checks {
                _ if job.purpose == Purpose::Drop => false,
                Checks::None => false,
                Checks::Quick => !check.scans,
                Checks::All => true,
            };
            let all = workload::open(&job.workload)?.checks();
            for server in self.servers(&job.instances)? {
                let wanted = all.iter().filter(|check| wanted(check));
                wanted.for_each(|check| demand(&mut checks, &server, check.clone()));
            }
            for server in self.servers(&job.instances)?.into_iter().chain(self.servers(&job.serving())?) {
                if !servers.iter().any(|known| Arc::ptr_eq(known, &server)) {
                    servers.push(server);
                }
            }
        }
        self.figures = works.iter().map(|work| figures(work)).collect::<Result<Vec<_>, _>>()?.concat();
        let jobs: Vec<&Job> = works.iter().filter_map(|work| Job::of(work)).collect();
        let mut observers = self.observers(&jobs, &servers)?;
        let look = |server: &Arc<Server>| {
            let here =
                || jobs.iter().copied().filter(|job| job.serving().iter().any(|one| *one == server.target));
            let mut admin = Admin::connect(server)?;
            let directory = directory_here(&server.target, &mut admin);
            let reads_storage = here().any(|job| job.settings.reads == Reads::Storage);
            let plans = plans_of(server, here())?;
            if !plans.is_empty() {
                // What it cost to ask for them is counted when that session has ended.
                evidence::wait_for_the_last(&mut admin, server.target.dialect);
            }
            let before = Snapshot::read(&mut admin, server.target.dialect);
            let at = |other: &&Arc<Server>| other.target.endpoints == server.target.endpoints;
            let shares_server = servers.iter().filter(at).count() > 1;
            let server = Arc::clone(server);
            Ok((directory, Place { server, before, reads_storage, plans, shares_server, observing: None }))
        };
        let (directories, mut stage): (Vec<_>, Vec<_>) = try_together(&servers, look)?.into_iter().unzip();
        for (place, observer) in stage.iter_mut().zip(&mut observers) {
            place.observing = observer.take().map(Observer::begin);
        }
        let directories: Vec<PathBuf> = directories.into_iter().flatten().collect();
        self.stage = stage;
        self.checks = checks;
        self.devices = (!directories.is_empty()).then(|| Counters::read(&directories));
        Ok(carriers)
    }

    fn close(&mut self, remarks: &[String]) -> Option<Proof> {
        let counted = self.counted.take();
        let mut all = FaultCounts::default();
        counted.values().for_each(|counts| all.add(&counts.aborts));
        let aborts = all.iter().map(|(fault, count)| Aborts { fault, count }).collect();
        let mut proof = Proof { setup: remarks.to_vec(), direct: true, ..Proof::default() };
        let mut record = Record { aborts, ..Record::default() };
        let mut stage = std::mem::take(&mut self.stage);
        // What observers do is done before the counters are read.
        let end = |place: &mut Place| place.observing.take().map(Observing::end).unwrap_or_default();
        let lags: Vec<_> = stage.iter_mut().map(end).collect();
        let told = together(&stage.into_iter().zip(lags).collect::<Vec<_>>(), |(place, lags)| {
            let counts = counted.get(&place.server.target.describe());
            place.told(counts.unwrap_or(&Counts::default()), lags.clone())
        });
        for (ledger, used) in told {
            record.ledgers.extend(ledger);
            match used {
                Ok(used) => record.servers.push(used),
                Err(why) => {
                    proof.unchecked.push(format!("What the database counted could not be read: {why}."));
                }
            }
        }
        if let Some(counted) = self.devices.take().map(Counters::since) {
            proof.devices = counted.devices;
            proof.unchecked.extend(counted.unchecked);
        }
        record.checks = together(&std::mem::take(&mut self.checks), |(server, check)| made(server, check));
        proof.figures = std::mem::take(&mut self.figures);
        let recorded = std::mem::take(&mut self.recorded);
        proof.tables = recorded.iter().map(|recorded| recorded.used(&record.servers)).collect();
        tidemark_judge::evidence::write::<DatabaseEvidence>(&mut proof, &record);
        Some(proof)
    }
}

/// The figures that a load is known by.
fn figures(work: &Work) -> Result<Vec<DeclaredFigure>, String> {
    let Some(job) = Job::of(work).filter(|job| job.purpose == Purpose::Load) else { return Ok(Vec::new()) };
    let declared = workload::open(&job.workload)?.figures().into_iter().map(|figure| DeclaredFigure {
        work: work.name.clone(),
        name: figure.name.to_owned(),
        about: figure.about.to_owned(),
        of: figure.of,
    });
    Ok(declared.collect())
}

/// What the planner of a server makes of the statements of these loads.
///
/// # Errors
/// When it refuses one that is used, of a load all of whose statements can be planned: others may make what these need.
fn plans_of<'a>(server: &Server, jobs: impl Iterator<Item = &'a Job>) -> Result<Plans, String> {
    let (mut all, mut used) = (Vec::new(), Vec::new());
    for job in jobs.filter(|job| job.purpose == Purpose::Load) {
        let workload = workload::open(&job.workload)?;
        let statements: Vec<_> =
            workload.statements(server.target.dialect).into_iter().map(|statement| statement.sql).collect();
        if workload.uses_all_statements() && statements.iter().all(|sql| plans::can_be_planned(sql)) {
            used.extend(statements.iter().cloned());
        }
        all.extend(statements);
    }
    let planned = plans::read(server, all.iter());
    match planned.wrong.iter().find(|(sql, _)| used.contains(sql)) {
        None => Ok(planned.plans),
        Some((sql, failure)) => Err(format!(
            "{} refuses the statement `{sql}`: {failure}; correct it, or prepare first what it needs",
            server.target.describe()
        )),
    }
}

/// Adds a check on a server, once.
fn demand(checks: &mut Vec<(Arc<Server>, Check)>, server: &Arc<Server>, check: Check) {
    if !checks.iter().any(|(at, known)| Arc::ptr_eq(at, server) && *known == check) {
        checks.push((Arc::clone(server), check));
    }
}

/// Makes a check.
fn made(server: &Server, check: &Check) -> DataCheck {
    let broken = Admin::connect(server).ok().and_then(|mut admin| {
        let sql = format!("SELECT count(*) FROM ({}) broken", check.broken_rows);
        admin.value(&sql).ok()?.and_then(|count| count.parse().ok())
    });
    DataCheck { server: server.target.describe(), holds: check.holds.clone(), broken }
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
