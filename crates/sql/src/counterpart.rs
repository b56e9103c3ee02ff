//! A load as pgbench or sysbench does it, on the same database and the same data set, so that the two can be compared.
//!
//! Only what both do in the same way is compared: a closed loop without pauses, on one database, for a time. What the other program
//! is told is in `command`, where it is in `program`, and who starts and follows it is `process`.

pub(crate) mod command;
pub(crate) mod process;
pub(crate) mod program;

use crate::dialect::Dialect;
use crate::job::{Endpoint, Job, Program, Role, Tls};
use crate::workload;
use tidemark_load::pacing::Pacing;
use tidemark_plan::engine::Counterpart;
use tidemark_plan::plan::Work;

const SECOND_NS: u64 = 1_000_000_000;

/// How another program is told to do a workload's transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equal {
    /// The program.
    pub program: Program,
    /// Those of its arguments that say which transactions, on what.
    pub arguments: Vec<String>,
}

/// The same load by the program whose transactions it does.
pub(crate) fn counterpart(work: &Work) -> Counterpart {
    let Some(job) = Job::of(work).filter(|job| job.program == Program::Tidemark) else {
        return Counterpart::None;
    };
    match equal(work, job) {
        Err(why) => Counterpart::Refused(why),
        Ok(Equal { program, .. }) => {
            let mut work = work.clone();
            if let Some(job) = work.job.get_mut::<Job>() {
                job.program = program;
            }
            let engines = [Program::Tidemark, program].map(Program::name);
            Counterpart::Same { engines, work: Box::new(work) }
        }
    }
}

/// How another program does a load.
///
/// # Errors
/// Why none does the same: what stands behind the stage's name in a sentence.
fn equal(work: &Work, job: &Job) -> Result<Equal, String> {
    let name = &job.workload.name;
    let Some(equal) = workload::open(&job.workload)?.counterpart()? else {
        return Err(format!(
            "does {name}, which neither pgbench nor sysbench does; cross-check one of the workloads pgbench/... or sysbench/..."
        ));
    };
    let program = equal.program.name();
    let (target, stop, settings) = (job.instances.first(), &work.load.stop, &job.settings);
    let remove = |does: &str, key: &str| {
        Err(format!("{does}, which {program} does not; remove `{key}` for the cross-check."))
    };
    let is_whole = |ns: u64| ns.is_multiple_of(SECOND_NS);
    let over_tcp = target.endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Tcp(..)));
    match () {
        () if target.dialect == Dialect::Cockroach => {
            Err(format!("is on CockroachDB, whose conflicts {program} does not repeat; use `kind: postgres`, `mysql` or `mariadb`."))
        }
        () if equal.program == Program::Pgbench && target.dialect != Dialect::Postgres => {
            Err("does pgbench's transactions on MySQL or MariaDB, which pgbench cannot reach; use one of the workloads sysbench/...".into())
        }
        () if job.instances.count() > 1 => {
            Err(format!("runs on several instances, and {program} on one; write `instances: 1` for the cross-check."))
        }
        () if target.endpoints.len() > 1 => {
            Err(format!("connects to several endpoints, and {program} to one; name one for the cross-check."))
        }
        () if !target.prepared => {
            Err(format!("prepares its statements anew each time, which {program} does not; remove `prepared: false` for the cross-check."))
        }
        () if target.dialect == Dialect::Mysql && over_tcp && target.tls != Tls::Disable => {
            Err("may use TLS, which sysbench cannot do on MySQL without files of its own; set `tls: disable` in the target for the cross-check.".into())
        }
        () if matches!(work.load.pacing, Pacing::Open { .. }) => {
            remove("offers a fixed rate, and what is compared is a closed loop", "rate")
        }
        () if !work.load.pacing.think().is_none() => remove("pauses between transactions", "think"),
        () if stop.ramp_up_ns > 0 => remove("starts its clients one after the other", "ramp_up"),
        () if stop.ramp_down_ns > 0 => remove("goes on after its window", "ramp_down"),
        () if stop.steady.is_some() => remove("waits until throughput is steady", "steady"),
        () if stop.until_steady_ns.is_some() => remove("ends when throughput is steady", "until_steady"),
        () if stop.operations.is_some() || stop.bytes.is_some() || stop.window_ns.is_none() => {
            Err(format!("does not end by time alone, and {program} is given a time; write `for`, and no total, for the cross-check."))
        }
        () if !stop.window_ns.is_none_or(is_whole) || !is_whole(stop.warm_up_ns) => {
            Err(format!("is not as long as whole seconds, in which {program} is told its time; write `for` and `warm_up` in whole seconds."))
        }
        () if settings.isolation.is_some() => remove("sets the isolation of its transactions", "isolation"),
        () if settings.savepoint => remove("repeats conflicts from a savepoint", "savepoint"),
        () if settings.pipeline => remove("sends several statements in one round trip", "pipeline"),
        () if settings.reads_from == Role::Replica => remove("runs on replicas", "reads_from"),
        () if settings.ledger => remove("keeps a ledger of its commits", "ledger"),
        () if equal.program == Program::Sysbench && settings.tries == 1 => {
            Err("does not repeat conflicts, which sysbench always does; remove `tries: 1` for the cross-check.".into())
        }
        () => Ok(equal),
    }
}

#[cfg(test)]
mod tests;
