//! COSBench XML to a plan: the union of the dialects of Intel's COSBench 0.4.2, 0.4.2.c4 and sineio's 0.6.
//!
//! The text becomes a tree in which everything has its place ([`tree`]); the outer elements hand settings
//! inwards ([`workload`]), works and operations resolve against what they inherit ([`work`], [`operation`]),
//! storage and authentication become a target ([`storage`], [`auth`]). Where COSBench's behaviour was wrong,
//! Tidemark does the right thing and [`notes`] reports it.

mod auth;
mod config;
mod notes;
mod operation;
mod remarks;
mod storage;
mod template;
mod tree;
mod work;
mod workload;

use remarks::{Differs, Remarks};
use tidemark_load::pacing::{Arrivals, Pacing, Rate};
use tidemark_load::source::SourcePlan;
use tidemark_object::job::{ENGINE, Http, Job, Target, Verb};
use tidemark_plan::defaults;
use tidemark_plan::diagnostic::Diagnostic;
use tidemark_plan::level::{LevelAxis, RATE};
use tidemark_plan::plan::{Plan, Work, WorkKind};
use tidemark_plan::redact::{is_xml, redact};
use tidemark_plan::registry::{Changes, Format};
use tidemark_plan::selector::OPEN_END;
use tidemark_plan::yaml::Environment;
use workload::Reader;

/// COSBench's workload files. In the configs of `storage` and `auth`, `${NAME}` stands for an environment variable, so that
/// secrets need not be in the file.
#[derive(Clone, Copy, Debug)]
pub struct Cosbench;

impl Format for Cosbench {
    fn name(&self) -> &'static str {
        "COSBench XML"
    }

    fn recognizes(&self, text: &str) -> bool {
        is_xml(text)
    }

    fn read(
        &self,
        text: &str,
        environment: &Environment<'_>,
        changes: Changes<'_>,
    ) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
        let target = changes.target.as_ref().and_then(|target| target.get()).cloned();
        let mut reader = Reader::new(target, environment.waited_for);
        let Some(mut root) = tree::read(text, &mut reader.remarks) else {
            return Err(reader.remarks.sorted());
        };
        if template::report(&root, !reader.has_target(), &mut reader.remarks) {
            return Err(reader.remarks.sorted());
        }
        if !reader.has_target() {
            root.expand(&environment.outside(), &mut reader.remarks);
        }
        let level = |name: &str| changes.level.iter().find(|axis| axis.name == name)?.value.number();
        if let Some(workers) = level(WORKERS.name()) {
            work::set_workers(&mut root, workers as u32);
        }
        // Without the secrets: the seed is stored and shown, and the stored document gives the same one.
        let mut plan = reader.workload(&root, defaults::seed_of(&redact(text)));
        plan.seed = changes.seed.unwrap_or(plan.seed);
        let mut remarks = reader.remarks;
        if let Some(rate) = level(RATE.name()) {
            open(&mut plan, rate);
        }
        if remarks.failed() {
            return Err(remarks.sorted());
        }
        settle(&mut plan, &mut remarks);
        notes::describe(&plan, &mut remarks);
        plan.notes = remarks.take_notes();
        Ok((plan, remarks.sorted()))
    }

    fn axes(&self) -> Vec<&'static LevelAxis> {
        vec![&WORKERS, &RATE]
    }

    fn engine(&self) -> &'static str {
        ENGINE
    }
}

/// A level sets the workers of every normal work. With a [`RATE`] it becomes an open loop.
static WORKERS: LevelAxis =
    LevelAxis::count("workers", defaults::MOST_WORKERS, "Workers of every normal work");

/// Makes every normal work an open loop.
fn open(plan: &mut Plan, rate: f64) {
    let works = plan.stages.iter_mut().flat_map(|stage| &mut stage.works);
    for work in works.filter(|work| work.kind == WorkKind::Normal) {
        let rate = Rate { points: vec![(0, rate)] };
        work.load.pacing = Pacing::Open { rate, arrivals: Arrivals::Constant };
    }
}

/// Decides what depends on the whole document: random streams, and how long to wait for what.
fn settle(plan: &mut Plan, remarks: &mut Remarks) {
    let allowance_ns = transfer_allowance_ns(plan);
    for (stage_index, stage) in plan.stages.iter_mut().enumerate() {
        for (work_index, work) in stage.works.iter_mut().enumerate() {
            work.load.seed = plan.seed;
            work.load.stream = [stage_index as u64, work_index as u64];
            let timeout_ns = extend_timeout(work, allowance_ns, remarks);
            let stop = &mut work.load.stop;
            stop.drain_ns = defaults::DRAIN_NS.max(timeout_ns);
            let ends_by_itself = stop.window_ns.is_none();
            stop.give_up_ns = ends_by_itself.then(|| defaults::GIVE_UP_NS.max(timeout_ns.saturating_mul(2)));
        }
    }
}

/// Time that the transfer of the largest object of the document may take beyond the timeout, nanoseconds: a
/// second for every full megabyte (the least rate of the COSBench talk's service level), an hour at most.
fn transfer_allowance_ns(plan: &Plan) -> u64 {
    let works = plan.stages.iter().flat_map(|stage| &stage.works);
    let largest = works.map(largest_object).max().unwrap_or(0);
    (largest / 1_000_000).min(3600) * 1_000_000_000
}

fn largest_object(work: &Work) -> u64 {
    let Some(job) = Job::of(work) else { return 0 };
    let ranges = job.actions.iter().map(|action| match action.verb {
        Verb::GetRange { object_bytes, .. } => object_bytes,
        _ => 0,
    });
    let sizes = match &work.load.source {
        SourcePlan::Mix { choices, .. } => choices.iter().map(|choice| &choice.bytes).collect(),
        SourcePlan::Scan { bytes, .. } => vec![bytes],
        SourcePlan::Rounds { .. } => Vec::new(),
    };
    let closed = sizes.into_iter().filter(|size| size.pick.bounds().1 < OPEN_END);
    ranges.chain(closed.map(|size| size.pick.bounds().1.saturating_mul(size.unit))).max().unwrap_or(0)
}

/// COSBench's `timeout` limits silence on the wire, ours a whole attempt: large objects need longer. Gives
/// the timeout of one attempt.
fn extend_timeout(work: &mut Work, allowance_ns: u64, remarks: &mut Remarks) -> u64 {
    let Some(job) = work.job.get_mut::<Job>() else { return 0 };
    let http = match &mut job.target {
        Target::S3(s3) => &mut s3.http,
        Target::Swift(swift) => &mut swift.http,
        Target::Mock(_) | Target::Nothing | Target::Embedded(_) => {
            return Http::default().timeout_ns.saturating_add(allowance_ns);
        }
    };
    http.timeout_ns = http.timeout_ns.saturating_add(allowance_ns);
    if allowance_ns > 0 {
        let seconds = allowance_ns / 1_000_000_000;
        remarks.note(
            Differs::Figures,
            "timeout",
            format!(
                "COSBench's `timeout` limits how long a connection may be idle; in Tidemark it limits a \
                whole attempt, so {seconds} s are added for the largest object, 1 s per megabyte."
            ),
        );
    }
    http.timeout_ns
}
