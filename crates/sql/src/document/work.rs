//! The works of a stage: the data set that is filled and dropped, and the load that is measured.

use super::instances;
use crate::admin::PATIENCE_NS;
use crate::data::DataSet;
use crate::dialect::Dialect;
use crate::instances::Instances;
use crate::job::{Checks, Isolation, Job, Program, Purpose, Reads, Role, Settings, Spec, Target};
use crate::workload::{self, Family, Names, Runnable, Terminals};
use std::sync::Arc;
use tidemark_keys::kinds::{Duration, Flag, Whole, Word};
use tidemark_keys::{Key, Mapping, Table};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::SourcePlan;
use tidemark_load::work::Work as Load;
use tidemark_plan::defaults;
use tidemark_plan::engine::WorkPlace;
use tidemark_plan::plan::{Label, OperationClass, Work, WorkKind};
use tidemark_plan::yaml::timing::{self, TIMING};
use tidemark_plan::yaml::{values, works};

/// The works on databases.
pub(crate) static KEYS: [&Mapping; 3] = [&PREPARE, &LOAD, &CLEANUP];

static PREPARE: Mapping = Mapping::new(
    "prepare",
    "Loads a workload's data set, unless it is there",
    &[&WORKLOAD, &LOADERS, &FRESH, &CHECKS],
)
.with(&[&OPTIONS]);
static LOAD: Mapping = Mapping::new(
    "load",
    "The measured load: transactions",
    &[&WORKLOAD, &CLIENTS, &CONNECTIONS, &INSTANCES, &CHECKS, &READS, &READS_FROM, &LEDGER],
)
.with(&[&OPTIONS, &TRANSACTIONS, &TIMING]);
static CLEANUP: Mapping =
    Mapping::new("cleanup", "Drops a workload's data set, if Tidemark made it", &[&WORKLOAD])
        .with(&[&OPTIONS]);

static WORKLOAD: Key<Names> =
    Key::new("workload", "Which workload", Names).required("write one such as pgbench/tpcb-like");
static CLIENTS: Key<Whole<u32>> = Key::new(
    "clients",
    "Clients, on each instance, each with one transaction at a time and, without `connections`, a connection of its own; with a \
     `rate`, which is that of all instances together, the limit of transactions in flight",
    Whole(1, defaults::MOST_WORKERS),
)
.otherwise("1; where they are terminals, as many as the workload has")
.also(&["threads", "workers", "concurrency"]);
static CONNECTIONS: Key<Whole<u32>> = Key::new(
    "connections",
    "Connections that all clients share, each for one transaction at a time: a client that pauses has none, and one that finds none \
     waits, which counts in its response time; every driver has one at least",
    Whole(1, defaults::MOST_WORKERS),
)
.otherwise("one for each client");
static INSTANCES: Key<Whole<u32>> = Key::new(
    "instances",
    "How many of the target's `instances` it runs on: the first ones",
    Whole(1, instances::MOST as u32),
)
.otherwise("all");
static LOADERS: Key<Whole<u32>> =
    Key::new("loaders", "Connections that load side by side, on each instance", Whole(1, 1000)).default("4");
static FRESH: Key<Flag> =
    Key::new("fresh", "Load it anew although it is there: earlier loads have changed it", Flag)
        .default("false");

static CHECKS: Key<Word<Checks>> = Key::new(
    "checks",
    "What is checked in the data when the work is over: `quick` leaves out what reads large tables as a whole",
    Word(&[("none", Checks::None), ("quick", Checks::Quick), ("all", Checks::All)]),
)
.default("quick");

static READS: Key<Word<Reads>> = Key::new(
    "reads",
    "Where what the load reads is to come from: with `storage`, the run is INVALID if it came from the database's memory or the \
     page cache",
    Word(&[("anywhere", Reads::Anywhere), ("storage", Reads::Storage)]),
)
.default("anywhere");

static READS_FROM: Key<Word<Role>> = Key::new(
    "reads_from",
    "Which servers it runs on: with `replicas`, its clients are on the target's `replicas` in turn, and all of its transactions must \
     change nothing",
    Word(&[("primary", Role::Primary), ("replicas", Role::Replica)]),
)
.default("primary");

static LEDGER: Key<Flag> = Key::new(
    "ledger",
    "Keep a ledger of acknowledged commits, and look for each of them when the load is over, and after a restart of the server: \
     every transaction that writes has one more small update, and those of one statement get `BEGIN` and `COMMIT`",
    Flag,
)
.default("false");

/// The options of all workloads. Which of them a work may have, its workload decides.
static OPTIONS: Mapping =
    Mapping::new("workload_options", "Options of the workload", &[]).with(&workload::KEYS);

static TRANSACTIONS: Mapping = Mapping::new(
    "transactions",
    "How transactions are done",
    &[&ISOLATION, &TRIES, &BACK_OFF, &BACK_OFF_MOST, &SAVEPOINT, &PIPELINE],
);
static ISOLATION: Key<Word<Isolation>> = Key::new(
    "isolation",
    "Isolation of transactions",
    Word(&[
        ("read-committed", Isolation::ReadCommitted),
        ("repeatable-read", Isolation::RepeatableRead),
        ("serializable", Isolation::Serializable),
    ]),
)
.otherwise("the server's default");
static TRIES: Key<Whole<u32>> = Key::new(
    "tries",
    "How often a transaction that conflicts is done at most, with the same choices; its latency covers all of it",
    Whole(1, 1000),
)
.default("10")
.also(&["max_tries"]);
static BACK_OFF: Key<Duration> = Key::new(
    "back_off",
    "Longest pause before the second attempt, doubled before each further one; at least half of it is waited",
    Duration,
)
.default("1ms");
static BACK_OFF_MOST: Key<Duration> =
    Key::new("back_off_most", "Longest pause before an attempt", Duration).default("100ms");
static SAVEPOINT: Key<Flag> = Key::new(
    "savepoint",
    "Roll a conflict back to a savepoint at the transaction's beginning, as CockroachDB recommends",
    Flag,
)
.otherwise("`true` on `cockroach`, otherwise `false`");
static PIPELINE: Key<Flag> =
    Key::new("pipeline", "Send statements that do not need each other's results in one round trip", Flag)
        .default("false");

/// Reads a work; all random choices come from `seed`.
pub(crate) fn work(place: WorkPlace, mut table: Table<'_>, instances: &Instances, seed: u64) -> Option<Work> {
    if !KEYS.iter().any(|known| known.name == place.keyword) {
        let help = "remove it, or use `prepare`, `load` or `cleanup`";
        let message = format!("`{}` does not apply to databases", place.keyword);
        table.log().error(table.place(), message, help);
        return None;
    }
    let allowed = if place.kind == WorkKind::Normal { defaults::ALLOWED_FAILURES } else { 0 };
    let common = works::Common::read(&mut table, place.keyword, allowed);
    // Without it nobody knows which of the other keys apply.
    let (family, name) = table.get(&WORKLOAD)?;
    table.used_by(format!("the workload `{name}`"));
    let spec = Spec { name: name.to_owned(), options: (family.read)(name, &mut table) };
    let workload = match workload::open(&spec) {
        Ok(workload) => workload,
        Err(problem) => {
            table.log().error(table.place(), problem, "correct the options of the workload");
            return None;
        }
    };
    let doing = match place.kind {
        WorkKind::Normal => load(&mut table, instances, &workload, name),
        WorkKind::Prepare => fill(&mut table, instances, family, workload),
        _ => drop_data(&mut table, instances),
    };
    table.finish();
    let Doing { instances, workers, connections, purpose, settings, pacing, stop, source, labels } = doing;
    Some(Work {
        name: common.name,
        kind: place.kind,
        load: Load {
            workers,
            depth: 1,
            connections,
            pacing,
            stop,
            source,
            finale: None,
            copies: 1,
            actions: labels.len() as u16,
            seed,
            stream: place.stream,
        },
        job: tidemark_plan::job::Job::new(Job {
            instances,
            workload: spec,
            purpose,
            settings,
            program: Program::default(),
        }),
        labels,
        allowed_failures_per_million: common.allowed_failures,
        driver: common.driver,
    })
}

/// What a work does.
struct Doing {
    instances: Instances,
    workers: u32,
    connections: Option<u32>,
    purpose: Purpose,
    settings: Settings,
    pacing: Pacing,
    stop: tidemark_load::stopping::Stop,
    source: SourcePlan,
    labels: Vec<Label>,
}

fn load(table: &mut Table<'_>, all: &Instances, workload: &Arc<dyn Runnable>, name: &str) -> Doing {
    let instances = instances_of(table, all);
    if let Some((orders, rounds)) = workload.orders() {
        return streams(table, instances, workload, name, orders, rounds);
    }
    let terminals = workload.terminals().map_or(1, |terminals| terminals.count);
    let each = table.get(&CLIENTS).unwrap_or(terminals.clamp(1, defaults::MOST_WORKERS));
    if let Some(entry) = table.entry(&CLIENTS).filter(|_| terminals != each && workload.terminals().is_some())
    {
        let message =
            format!("{each} clients are not the {terminals} terminals that {name} has at this size");
        let help = "remove `clients`; with others, the figures that compare it with the most that can be mean nothing";
        table.log().warning(&entry.key_span, message, help);
    }
    let workers = of_all(table, &CLIENTS, each, &instances);
    let target = instances.first();
    if target.dialect == Dialect::Mysql {
        // There a conflict has ended the transaction, with its savepoints; and each statement waits for its reply.
        for key in [&PIPELINE, &SAVEPOINT] {
            if let Some(entry) = table.entry(key) {
                let message = format!("`{}` does not apply to MySQL and MariaDB", key.name);
                table.log().error(&entry.key_span, message, "remove it");
            }
        }
    }
    let settings = Settings {
        isolation: table.get(&ISOLATION),
        tries: table.value(&TRIES),
        back_off_ns: table.value(&BACK_OFF),
        back_off_most_ns: table.value(&BACK_OFF_MOST),
        savepoint: table.get(&SAVEPOINT).unwrap_or(target.dialect.retries_by_savepoint()),
        pipeline: table.value(&PIPELINE),
        checks: table.value(&CHECKS),
        reads: table.value(&READS),
        reads_from: table.value(&READS_FROM),
        ledger: table.value(&LEDGER),
    };
    let actions = workload.actions();
    if settings.reads_from == Role::Replica {
        may_read_from_replicas(table, target, &actions, settings.isolation);
    }
    if actions.is_empty() {
        let help = "write `transactions: [{name: ..., statements: [...]}]`";
        table.log().error(table.place(), "the load has no `transactions`", help);
    }
    if workload.routines(target.dialect).is_some_and(|routines| routines.is_empty()) {
        let message = format!("{name} has no routines for {}", target.dialect.name());
        table.log().error(table.place(), message, "remove `mode: routines`");
    }
    // They commit by themselves: an entry of the ledger would not be in the same transaction.
    let calls = target.dialect == Dialect::Mysql && workload.routines(target.dialect).is_some();
    if let Some(entry) = table.entry(&LEDGER).filter(|_| settings.ledger && calls) {
        let message = "`ledger` does not go with routines of MySQL and MariaDB, which commit by themselves";
        table.log().error(&entry.key_span, message, "remove `ledger`, or `mode: routines`");
    }
    let total: f64 = actions.iter().map(|action| action.weight).sum();
    let label = |action: &workload::Action| Label {
        label: action.label.clone(),
        kind: action.label.clone(),
        class: match action.writes {
            true => OperationClass::named("transaction"),
            false => OperationClass::Read,
        },
        verifies: false,
        weight: action.weight / total * 100.0,
        config: config(name, &settings),
    };
    let choices = actions.iter().enumerate();
    let choices = choices.map(|(number, action)| workload::choice(action, number as u16, workers)).collect();
    let pacing = pacing(table, &**workload, name);
    let connections = connections(table, &**workload, name, workers, &instances, &pacing);
    let stop = timing::ends(table, instances.first().timeout_ns);
    let labels = actions.iter().map(label).collect();
    let source = SourcePlan::Mix { choices, pool: None, deck: workload.draws_from_a_deck() };
    Doing { instances, workers, connections, purpose: Purpose::Load, settings, pacing, stop, source, labels }
}

/// A load whose clients are streams: each goes through an order of its own, and ends.
fn streams(
    table: &mut Table<'_>,
    instances: Instances,
    workload: &Arc<dyn Runnable>,
    name: &str,
    orders: Vec<Vec<u16>>,
    rounds: u32,
) -> Doing {
    table.meaningless(TIMING.keys, &format!("{name} ends when all its streams are through"));
    table.meaningless(&[&CLIENTS, &CONNECTIONS], &format!("{name} has a connection for each of its streams"));
    table.meaningless(&[&LEDGER, &READS_FROM], &format!("{name} has no use for it"));
    if instances.count() > 1 {
        let message = format!("{name} runs on one instance");
        table.log().error(table.place(), message, "name one database in the target");
    }
    let actions = workload.actions();
    let settings = Settings {
        isolation: table.get(&ISOLATION),
        checks: table.value(&CHECKS),
        reads: table.value(&READS),
        ..Settings::default()
    };
    let each = 100.0 / actions.len().max(1) as f64;
    let label = |action: &workload::Action| Label {
        label: action.label.clone(),
        kind: action.label.clone(),
        class: if action.writes { OperationClass::named("transaction") } else { OperationClass::Read },
        verifies: false,
        weight: each,
        config: config(name, &settings),
    };
    Doing {
        workers: u32::try_from(orders.len()).unwrap_or(u32::MAX),
        connections: None,
        purpose: Purpose::Load,
        pacing: Pacing::Closed { think: tidemark_measure::think::Think::Constant { ns: 0 } },
        stop: timing::stop(table, instances.first().timeout_ns, true),
        source: SourcePlan::Rounds { orders, rounds },
        labels: actions.iter().map(label).collect(),
        settings,
        instances,
    }
}

/// When transactions are due: as the document says, or as people at terminals would have it.
fn pacing(table: &mut Table<'_>, workload: &dyn Runnable, name: &str) -> Pacing {
    let asked = timing::pacing(table);
    let Some(Terminals { pauses, .. }) = workload.terminals() else { return asked };
    table.meaningless(
        &[&timing::THINK, &timing::RATE],
        &format!("the terminals of {name} have pauses of their own"),
    );
    let actions = workload.actions();
    let total: f64 = actions.iter().map(|action| action.weight).sum();
    let each = actions.iter().zip(&pauses);
    let weighted = each.map(|(action, pause)| action.weight * (pause.keying_ns + pause.think_mean_ns) as f64);
    Pacing::Terminals { mean_ns: (weighted.sum::<f64>() / total) as u64, pauses }
}

/// How many connections the clients share, if they do.
fn connections(
    table: &mut Table<'_>,
    workload: &dyn Runnable,
    name: &str,
    clients: u32,
    instances: &Instances,
    pacing: &Pacing,
) -> Option<u32> {
    let shared = table.get(&CONNECTIONS)?;
    let place = table.entry(&CONNECTIONS).map(|entry| entry.key_span.clone())?;
    let refuse = |message: String, help: &str| table.log().error(&place, message, help);
    if matches!(pacing, Pacing::Open { .. }) {
        let help = "remove it: `clients` is how many there are";
        refuse("with a `rate`, clients take connections as transactions are due".into(), help);
    }
    if !workload.keeps_connections() {
        refuse(format!("the clients of {name} keep no connections that they could share"), "remove it");
    }
    // A connection is one to one instance, and so are a client's tables.
    if instances.count() > 1 {
        refuse(
            "clients of several instances have connections of their own".into(),
            "remove it, or use one instance",
        );
    }
    if shared > clients {
        refuse(
            format!("{shared} connections are more than the {clients} clients that share them"),
            "write fewer",
        );
    }
    Some(shared)
}

/// Whether replicas can serve a load: the target must have some, and nothing may change data there.
fn may_read_from_replicas(
    table: &mut Table<'_>,
    target: &Target,
    actions: &[workload::Action],
    isolation: Option<Isolation>,
) {
    let Some(entry) = table.entry(&READS_FROM) else { return };
    let place = entry.key_span.clone();
    if target.replicas.is_empty() {
        let help = "name them in the target: `replicas: [host:port, ...]`";
        table.log().error(&place, "the load reads from replicas, and the target names none", help);
    }
    if let Some(writes) = actions.iter().find(|action| action.writes) {
        let message = format!(
            "replicas change nothing, and the load's transaction `{}` is not declared to be read-only",
            writes.label
        );
        let help = "choose a workload that only reads (your own SQL says `read_only: true`), and put what writes into a load of its \
                    own, beside it in the stage";
        table.log().error(&place, message, help);
    }
    // PostgreSQL documentation, *Hot Standby*, Caveats.
    if target.dialect == Dialect::Postgres && isolation == Some(Isolation::Serializable) {
        let message = "PostgreSQL's replicas have no serializable transactions";
        table.log().error(&place, message, "write `isolation: repeatable-read`");
    }
}

/// The instances that a load runs on.
fn instances_of(table: &mut Table<'_>, all: &Instances) -> Instances {
    let Some(wanted) = table.get(&INSTANCES) else { return all.clone() };
    if wanted as usize > all.count() {
        let message = format!("the load is to run on {wanted} instances, and the target has {}", all.count());
        let help = "write fewer, or name more under `instances` of the target";
        table.log().error(table.place(), message, help);
    }
    all.clone().at_most(wanted as usize)
}

/// How many connections there are on all instances, given how many there are on each.
fn of_all(table: &Table<'_>, key: &Key<Whole<u32>>, each: u32, instances: &Instances) -> u32 {
    let all = (each as usize).saturating_mul(instances.count());
    match u32::try_from(all) {
        Ok(all @ ..=defaults::MOST_WORKERS) => all,
        _ => {
            let message = format!("`{}` come to {all} on {} instances", key.name, instances.count());
            let help = format!("{} are possible: write fewer", defaults::MOST_WORKERS);
            table.log().error(table.place(), message, help);
            each
        }
    }
}

/// The settings as reports show them.
fn config(name: &str, settings: &Settings) -> String {
    let isolation = settings.isolation.map_or("default", Isolation::sql);
    let ledger = if settings.ledger { ";ledger=true" } else { "" };
    let from = if settings.reads_from == Role::Replica { ";reads_from=replicas" } else { "" };
    format!(
        "workload={name};isolation={isolation};tries={};pipeline={}{from}{ledger}",
        settings.tries, settings.pipeline
    )
}

fn fill(table: &mut Table<'_>, instances: &Instances, family: &Family, workload: Arc<dyn Runnable>) -> Doing {
    let data = DataSet::new(family.name, workload, instances.first().dialect);
    let purpose = Purpose::Fill { fresh: table.value(&FRESH) };
    let chunks = data.chunks().max(1);
    let each = table.value(&LOADERS).min(u32::try_from(chunks).unwrap_or(u32::MAX));
    let workers = of_all(table, &LOADERS, each, instances);
    let doing = scan(table, instances, workers, purpose, ("load", OperationClass::named("load")), chunks);
    Doing { settings: Settings { checks: table.value(&CHECKS), ..doing.settings }, ..doing }
}

fn drop_data(table: &mut Table<'_>, instances: &Instances) -> Doing {
    scan(table, instances, 1, Purpose::Drop, ("drop", OperationClass::Delete), 1)
}

/// A work that does so many things once on each instance.
fn scan(
    table: &mut Table<'_>,
    instances: &Instances,
    workers: u32,
    purpose: Purpose,
    (name, class): (&str, OperationClass),
    count: u64,
) -> Doing {
    let label = Label {
        label: name.to_owned(),
        kind: name.to_owned(),
        class,
        verifies: false,
        weight: 100.0,
        config: String::new(),
    };
    let items = Some((0, count - 1));
    Doing {
        instances: instances.clone(),
        workers,
        connections: None,
        purpose,
        settings: Settings::default(),
        pacing: Pacing::Closed { think: tidemark_measure::think::Think::Constant { ns: 0 } },
        stop: timing::stop(table, PATIENCE_NS, true),
        source: SourcePlan::Scan {
            action: 0,
            spaces: Some((1, instances.count() as u64)),
            items,
            bytes: values::constant(0),
        },
        labels: vec![label],
    }
}
