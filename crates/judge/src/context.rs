//! One work of a run, with the sums that several rules need.

use crate::evidence::{Nature, Opened};
use crate::{Finding, Severity, What};
use tidemark_measure::counts::FaultCounts;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::observation::{Kind, Node};
use tidemark_measure::record::{
    LongestGap, Operation, Proof, Run, Second, Share, ShareSecond, Stage, State, TablesUse, Work,
};

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Whether a node is a machine, with resources of its own: daemons that were asked through their cluster are on nodes that nobody sees there.
pub(crate) fn is_machine(node: &Node) -> bool {
    let only_ceph = !node.series.is_empty() && node.series.iter().all(|series| series.kind == Kind::Ceph);
    !node.facts.is_empty() || !only_ceph
}

/// One stage of a run that was started and has a proof, as the rules see it.
pub struct StageContext<'a> {
    /// The run.
    pub run: &'a Run,
    /// The stage.
    pub stage: &'a Stage,
    /// What was counted around it.
    pub proof: &'a Proof,
    /// Whether any of its works measures something.
    pub measures: bool,
    /// Whether other programs than the load's did its I/O.
    pub is_io_elsewhere: bool,
}

impl<'a> StageContext<'a> {
    /// A stage that was started, with its proof and the evidence of its engines.
    pub(crate) fn new(run: &'a Run, stage: &'a Stage, proof: &'a Proof, opened: &[Box<dyn Opened>]) -> Self {
        let is_io_elsewhere = opened.iter().any(|data| data.is_io_elsewhere());
        Self { run, stage, proof, measures: stage.measures(), is_io_elsewhere }
    }

    /// How many operations of the stage succeeded.
    pub fn succeeded(&self) -> u64 {
        sum(self.stage.works.iter().flat_map(|work| &work.operations).map(|operation| operation.tally.ok))
    }

    /// How long its longest load lasted, nanoseconds.
    pub fn lasted_ns(&self) -> u64 {
        self.stage.works.iter().map(|work| work.last_done_ns).max().unwrap_or(0)
    }

    /// The longest time in which nothing succeeded in one of its works that measure.
    pub fn longest_gap(&self) -> Option<LongestGap> {
        let measuring = self.stage.works.iter().filter(|work| work.kind.measures());
        measuring.filter_map(|work| work.longest_gap).max_by_key(LongestGap::length_ns)
    }

    /// A finding about the stage.
    pub fn about(&self, severity: Severity, what: impl Into<What>) -> Finding {
        Finding::about_stage(self.stage, severity, what)
    }
}

/// One work of a run, as the rules see it.
pub struct WorkContext<'a> {
    /// The run.
    pub run: &'a Run,
    /// The stage.
    pub stage: &'a Stage,
    /// The work.
    pub work: &'a Work,
    /// Of what kind it is.
    pub nature: Nature,
    /// Successes of all its operations.
    pub ok: u64,
    /// Failures of all its operations, by class.
    pub faults: FaultCounts,
    /// Response times of all its successes.
    pub response: Histogram,
    /// Latencies of all its failures.
    pub failure: Histogram,
}

impl<'a> WorkContext<'a> {
    pub(crate) fn new(run: &'a Run, stage: &'a Stage, work: &'a Work) -> Self {
        let mut context = Self {
            run,
            stage,
            work,
            nature: Nature::default(),
            ok: 0,
            faults: FaultCounts::default(),
            response: Histogram::new(),
            failure: Histogram::new(),
        };
        for tally in work.operations.iter().map(|operation| &operation.tally) {
            context.ok = context.ok.saturating_add(tally.ok);
            context.faults.add(&tally.faults);
            context.response.add(&tally.response);
            context.failure.add(&tally.failure);
        }
        context
    }

    /// Every work of a run that was started, in order.
    pub(crate) fn all(run: &'a Run) -> impl Iterator<Item = WorkContext<'a>> {
        let started = run.stages.iter().filter(|stage| stage.state != State::Waiting);
        started.flat_map(move |stage| stage.works.iter().map(move |work| WorkContext::new(run, stage, work)))
    }

    /// The tables that the work made, or the queries that it ran; `None` of any other work.
    pub(crate) fn tables(&self) -> Option<&'a TablesUse> {
        let proof = self.stage.proof.as_ref()?;
        proof.tables.iter().find(|used| used.work == self.work.name)
    }

    /// Whether the work is there to measure something, rather than to make what others need or to clean up.
    pub fn measures(&self) -> bool {
        self.work.kind.measures()
    }

    /// Whether the user or a signal ended the stage early.
    pub fn interrupted(&self) -> bool {
        self.stage.state == State::Interrupted
    }

    /// Failures of all operations.
    pub fn failed(&self) -> u64 {
        self.faults.total()
    }

    /// Operations that ended, well or not.
    pub fn total(&self) -> u64 {
        self.ok.saturating_add(self.failed())
    }

    /// Length of the window, nanoseconds.
    pub fn window_ns(&self) -> u64 {
        self.work.window_end_ns.saturating_sub(self.work.window_start_ns)
    }

    /// What each driver did of the work; none where there were no drivers.
    pub(crate) fn shares(&self) -> impl Iterator<Item = &'a Share> + use<'a> {
        let (stage, work) = (self.stage, self.work);
        let own = move |share: &&Share| {
            stage.works.get(share.work as usize).is_some_and(|other| std::ptr::eq(other, work))
        };
        stage.shares.iter().filter(own)
    }

    /// Whether all that was done of the work is known: no driver was lost with a part of it.
    pub(crate) fn is_whole(&self) -> bool {
        self.shares().all(|share| share.complete)
    }

    /// The median response time, nanoseconds.
    pub fn median_ns(&self) -> u64 {
        self.response.quantile(0.5)
    }

    /// The seconds that lie wholly in the window.
    pub(crate) fn whole_seconds(&self) -> impl Iterator<Item = &'a Second> {
        let work = self.work;
        work.series.iter().filter(|second| work.measures_second(second.index))
    }

    /// The seconds of a driver's share that lie wholly in the window.
    pub(crate) fn seconds_of(&self, share: &'a Share) -> impl Iterator<Item = &'a ShareSecond> + use<'a> {
        let work = self.work;
        share.series.iter().filter(|second| work.measures_second(second.index))
    }

    /// The seconds that a span of the work's clock touches.
    pub(crate) fn seconds_touching(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = &'a Second> {
        self.work.series.iter().filter(move |second| {
            let from = u64::from(second.index) * SECOND_NS;
            from < to_ns && from + SECOND_NS > from_ns
        })
    }

    /// When the last measured operation that moves data ended, since the work's start: the sync after the load is
    /// no part of the load.
    pub(crate) fn last_measured_ns(&self) -> u64 {
        let moves = |index: u16| {
            self.work.operations.get(usize::from(index)).is_none_or(|one| one.class.moves_data())
        };
        let counts = self.work.workers_counts.iter().filter(|count| moves(count.operation));
        let last = counts.map(|count| count.last_done_ns).max();
        last.filter(|last| *last > 0).unwrap_or(self.work.last_done_ns)
    }

    /// The operations that sync, rather than move data.
    pub(crate) fn syncs(&self) -> impl Iterator<Item = &'a Operation> {
        self.work.operations.iter().filter(|operation| !operation.class.moves_data())
    }

    /// A finding about this work.
    pub fn finding(&self, severity: Severity, what: impl Into<What>) -> Finding {
        Finding {
            stage: Some(stage_label(self.stage)),
            work: Some(self.work.name.clone()),
            ..Finding::about_run(severity, what)
        }
    }
}

/// How findings name a stage: by its id, or by its name where it has none.
pub(crate) fn stage_label(stage: &Stage) -> String {
    if stage.id.is_empty() { stage.name.clone() } else { stage.id.clone() }
}

/// Adds counts up. A damaged record gives the largest number rather than a crash.
pub fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Successes of one second, over all operations.
pub(crate) fn ok_in(second: &Second) -> u64 {
    sum(second.operations.iter().map(|operation| operation.ok))
}

/// Failures of one second, over all operations.
pub(crate) fn failed_in(second: &Second) -> u64 {
    sum(second.operations.iter().map(|operation| operation.failed))
}

impl Finding {
    /// A finding about the whole run.
    pub fn about_run(severity: Severity, what: impl Into<What>) -> Self {
        Self {
            severity,
            what: what.into(),
            each: Vec::new(),
            in_runs: None,
            stage: None,
            work: None,
            stages: Vec::new(),
            invalidates: false,
        }
    }

    /// A finding about a whole stage.
    pub fn about_stage(stage: &Stage, severity: Severity, what: impl Into<What>) -> Self {
        Self { stage: Some(stage_label(stage)), ..Self::about_run(severity, what) }
    }

    /// Says that the run's numbers are not what they seem, if what it was found in measures something.
    pub fn invalidating(mut self, measures: bool) -> Self {
        self.invalidates = measures;
        self
    }
}
