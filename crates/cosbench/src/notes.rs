//! Compatibility notes: where Tidemark differs from the COSBench that a file was written for.
//!
//! Only notes that apply to the plan are made. What the plan does not show any more (a misspelled key that
//! was understood, a setting that is ignored) is noted where it is read.

use super::remarks::{Differs, Remarks};
use tidemark_load::source::{Choice, Division, Size, SourcePlan};
use tidemark_measure::pick::Pick;
use tidemark_object::job::{Action, Form, Job, Target, Verb};
use tidemark_plan::plan::{Plan, Work, WorkKind};

/// Notes what applies to a plan.
pub(super) fn describe(plan: &Plan, remarks: &mut Remarks) {
    plan.stages.iter().flat_map(|stage| &stage.works).for_each(|work| describe_work(work, remarks));
    if plan.stages.iter().any(|stage| stage.works.is_empty()) {
        remarks.note(
            Differs::Conduct,
            "delay",
            "A stage that only waits succeeds in Tidemark; COSBench fails at its end \
            (NullPointerException) and reports the whole workload as terminated.",
        );
    }
    if plan.trigger.is_some() || plan.stages.iter().any(|stage| stage.trigger.is_some()) {
        remarks.note(
            Differs::Conduct,
            "trigger",
            "Triggers are shell scripts that a workload file names; Tidemark runs them \
            only if the operator allows a directory of scripts.",
        );
    }
    remarks.general("Tidemark never sets the clock of a machine, as COSBench's drivers do");
}

fn describe_work(work: &Work, remarks: &mut Remarks) {
    let Some(Job { target, actions }) = Job::of(work) else { return };
    let swift = matches!(target, Target::Swift(_));
    totals(work, remarks);
    if work.kind == WorkKind::Normal {
        measurements(work, remarks);
    }
    actions.iter().for_each(|action| describe_action(action, target, remarks));
    if swift && actions.iter().any(|action| action.verb == Verb::Delete) {
        remarks.note(
            Differs::Figures,
            "deletes",
            "COSBench's Swift adapter counts every response to a delete as a success; \
            Tidemark does so only if the object existed and is gone.",
        );
    }
    match &work.load.source {
        SourcePlan::Mix { choices, .. } => choices.iter().for_each(|choice| describe_choice(choice, remarks)),
        SourcePlan::Scan { bytes, .. } => describe_size(bytes, remarks),
        SourcePlan::Rounds { .. } => {}
    }
    if let Target::S3(s3) = target {
        remarks.general(
            "refused connections, time-outs and 404 are failures, which COSBench's S3 adapter counts as successes",
        );
        if s3.http.retries == 0 {
            remarks.general(
                "every request is sent once unless the storage's config sets `retry=`, while COSBench's AWS SDK \
                 repeats failed ones unseen",
            );
        }
    }
}

fn totals(work: &Work, remarks: &mut Remarks) {
    let workers = u64::from(work.load.workers);
    if workers > 1 {
        remarks.general(
            "throughput is all work divided by the time it took, while COSBench adds up the workers' own rates, which is \
             too much when they do not end together",
        );
    }
    match work.load.stop.operations {
        Some(operations) if operations < workers => remarks.note(
            Differs::Data,
            "total-operations",
            format!(
                "totalOps={operations} is less than the {workers} workers: Tidemark does exactly {operations} \
                operations; COSBench divides to 0 for each worker, reads that as no limit and never \
                ends."
            ),
        ),
        Some(operations) if operations % workers != 0 => remarks.note(
            Differs::Data,
            "total-operations",
            format!(
                "totalOps={operations} is exact in Tidemark; COSBench gives each of {workers} workers {} and \
                does {}.",
                operations / workers,
                operations / workers * workers
            ),
        ),
        _ => {}
    }
}

fn measurements(work: &Work, remarks: &mut Remarks) {
    remarks.general(
        "percentiles are exact to three digits, while COSBench's are the upper edges of steps of 10 ms",
    );
    remarks
        .general("Avg-ProcTime is the time to the first byte, while COSBench's is something else for writes");
    if work.load.stop.window_ns.is_some() {
        remarks.general(
            "operations in flight at the end are waited for and counted, while COSBench drops them, the slowest among \
             them",
        );
    }
}

fn describe_action(action: &Action, target: &Target, remarks: &mut Remarks) {
    let s3 = matches!(target, Target::S3(_));
    let stores = !matches!(target, Target::Mock(_) | Target::Nothing);
    let seeded = stores && matches!(action.content.form, Form::Seeded { .. });
    match action.verb {
        Verb::Put { .. } | Verb::PutMultipart { .. } if seeded => {
            remarks.note(
                Differs::Data,
                "content",
                "Each object holds different seeded pseudo-random bytes; COSBench \
                repeats one block of 4 KiB of letters, which compresses and deduplicates to almost nothing.",
            );
        }
        Verb::List { .. } if s3 => {
            remarks.note(
                Differs::Figures,
                "list",
                "`list` sends a real request; COSBench's S3 adapter sends nothing \
                and counts a success.",
            );
        }
        Verb::DeleteContainer { .. } if s3 => {
            remarks.note(
                Differs::Deleted,
                "dispose",
                "A bucket that is not empty stays, with all that is in it, as with COSBench's S3 adapter; Tidemark counts \
                 that as a failure, COSBench only writes it to its log. `--allow-destroy s3://NAME` lets `dispose` empty \
                 the bucket first.",
            );
        }
        Verb::DeleteContainer { .. } if matches!(target, Target::Swift(_)) => {
            remarks.note(
                Differs::Deleted,
                "dispose",
                "A container that is not empty stays, with all that is in it, and that is a failure; COSBench's Swift adapter \
                 deletes whatever it holds, whoever wrote it. `--allow-destroy swift://NAME` lets `dispose` empty the \
                 container first.",
            );
        }
        _ => {}
    }
}

fn describe_choice(choice: &Choice, remarks: &mut Remarks) {
    describe_size(&choice.bytes, remarks);
    for pick in [&choice.spaces, &choice.items] {
        describe_pick(pick, remarks);
    }
    let spaces = sequence_length(&choice.spaces, choice.division == Division::Spaces);
    let items = sequence_length(&choice.items, choice.division == Division::Items);
    if let (Some(spaces), Some(items)) = (spaces, items) {
        let common = gcd(spaces, items);
        if common > 1 {
            remarks.note(
                Differs::Conduct,
                "pairs",
                format!(
                    "Two sequences advance together, as in COSBench: of {spaces} containers x \
                    {items} objects only {} pairs are used. Choose counts without a common divisor to \
                    reach all.",
                    u128::from(spaces) * u128::from(items) / u128::from(common)
                ),
            );
        }
    }
}

/// How many numbers a pick gives one after the other, if it does and its range is not cut.
fn sequence_length(pick: &Pick, divided: bool) -> Option<u64> {
    match pick {
        Pick::Shared { .. } => Some(pick.count()),
        Pick::Sequence { .. } if !divided => Some(pick.count()),
        _ => None,
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn describe_size(size: &Size, remarks: &mut Remarks) {
    describe_pick(&size.pick, remarks);
    if size.unit >= 1024 && size.unit.is_power_of_two() {
        remarks.note(
            Differs::Data,
            "binary-units",
            "KiB, MiB and GiB are powers of 1024 in Tidemark and in COSBench's sineio \
            fork; Intel's COSBench reads `c(64)KiB` as 64 bytes.",
        );
    }
}

fn describe_pick(pick: &Pick, remarks: &mut Remarks) {
    match pick {
        Pick::Weighted(_) => {
            remarks.note(
                Differs::Figures,
                "weights",
                "`h(...)` picks by exactly the weights given; COSBench is off by one \
                and favours the first range.",
            );
        }
        Pick::Shared { .. } => {
            remarks.note(
                Differs::Data,
                "shared-sequence",
                "`s(a,b)` is one sequence for all workers; in COSBench every \
                driver has its own, so that several drivers write the same objects.",
            );
        }
        _ => {}
    }
}
