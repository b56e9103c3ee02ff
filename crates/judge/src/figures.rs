//! The figures that users know a workload by, from what was counted.

use crate::evidence;
use tidemark_measure::record::{FigureOf, Operation, Run, Stage, Work};
use tidemark_measure::units;
use tidemark_tpc as tpc;

const MINUTE_NS: f64 = 60e9;

/// A figure of a stage's work.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure<'a> {
    /// The work's name.
    pub work: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it is, in a few words.
    pub about: &'a str,
    /// Its value.
    pub amount: Amount,
}

/// How much it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many per minute.
    PerMinute(f64),
    /// A share of the most that can be.
    Share(f64),
    /// A number that has no unit: the more, the better.
    Score(f64),
    /// A time of the work as a whole, nanoseconds.
    Span(u64),
    /// A time, and what it may be at most, nanoseconds.
    Time {
        /// What it is.
        ns: u64,
        /// Its limit, if there is one.
        limit_ns: Option<u64>,
    },
}

impl std::fmt::Display for Amount {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Amount::PerMinute(number) => formatter.write_str(&units::count(number.round() as u64)),
            Amount::Score(score) => formatter.write_str(&units::rate(*score).replace(" op/s", "")),
            Amount::Share(share) => formatter.write_str(&units::percent(*share)),
            Amount::Span(ns) | Amount::Time { ns, .. } => formatter.write_str(&units::duration_ns(*ns)),
        }
    }
}

/// The figures of a stage that are known: none of a work that measured nothing, none from a database that did not count. Some are
/// also of stages before it in its run.
pub fn figures<'a>(run: &Run, stage: &'a Stage) -> Vec<Figure<'a>> {
    let declared = stage.proof.iter().flat_map(|proof| &proof.figures);
    let known = declared.filter_map(|declared| {
        let work = stage.works.iter().find(|work| work.name == declared.work)?;
        let amount = amount(run, stage, work, &declared.of)?;
        Some(Figure { work: &work.name, name: &declared.name, about: &declared.about, amount })
    });
    known.collect()
}

fn amount(run: &Run, stage: &Stage, work: &Work, of: &FigureOf) -> Option<Amount> {
    let operation = |label: &str| work.operations.iter().find(|operation| operation.label == label);
    match of {
        FigureOf::PerMinute { operation: label } => {
            let window = work.window_end_ns.saturating_sub(work.window_start_ns);
            let rate = operation(label)?.throughput(work.window_seconds());
            (window > 0).then_some(Amount::PerMinute(rate * 60.0))
        }
        FigureOf::ShareOfMost { operation: label, most_milli_per_minute } => {
            let window = work.window_end_ns.saturating_sub(work.window_start_ns);
            let per_minute = operation(label)?.throughput(work.window_seconds()) * 60.0;
            let most = *most_milli_per_minute as f64 / 1e3;
            (window > 0 && most > 0.0).then_some(Amount::Share(per_minute / most))
        }
        FigureOf::Percentile { operation: label, percent, limit_ns } => {
            let response = &operation(label)?.tally.response;
            let ns = response.quantile(f64::from(*percent) / 100.0);
            (!response.is_empty()).then_some(Amount::Time { ns, limit_ns: *limit_ns })
        }
        FigureOf::GeometricMean => {
            let succeeded = work.operations.iter().all(|operation| operation.tally.failed() == 0);
            let means: Vec<f64> = work.operations.iter().filter_map(Operation::mean_ns).collect();
            Some(Amount::Span(tpc::figures::geometric_mean(&means).filter(|_| succeeded)? as u64))
        }
        FigureOf::TpchPower { scale_milli } => {
            let seconds =
                |label: &str| Some(operation(label).filter(|one| one.tally.failed() == 0)?.mean_ns()? / 1e9);
            let queries: Option<Vec<f64>> =
                (1..=tpc::QUERIES).map(|number| seconds(&format!("q{number}"))).collect();
            let refreshes = [seconds("rf1")?, seconds("rf2")?];
            tpc::figures::power(scale(*scale_milli), &queries?, &refreshes).map(Amount::Score)
        }
        FigureOf::TpchThroughput { scale_milli, streams } => {
            let succeeded = work.operations.iter().all(|operation| operation.tally.failed() == 0);
            let seconds = work.last_done_ns as f64 / 1e9;
            tpc::figures::throughput(scale(*scale_milli), *streams, seconds)
                .filter(|_| succeeded)
                .map(Amount::Score)
        }
        FigureOf::TpchComposite { scale_milli, streams } => {
            let of = FigureOf::TpchThroughput { scale_milli: *scale_milli, streams: *streams };
            let Some(Amount::Score(throughput)) = amount(run, stage, work, &of) else { return None };
            let before = run.stages.iter().take_while(|other| !std::ptr::eq(*other, stage));
            let power = before.filter_map(|before| power_of(run, before, *scale_milli)).last()?;
            Some(Amount::Score(tpc::figures::composite(power, throughput)))
        }
        FigureOf::Elapsed => (work.last_done_ns > 0).then_some(Amount::Span(work.last_done_ns)),
        FigureOf::CommitsPerMinute => {
            let commits = evidence::counted(stage.proof.as_ref()?)?;
            let begin = stage.works.iter().map(|work| work.started_ns).min()?;
            let end =
                stage.works.iter().map(|work| work.started_ns.saturating_add(work.last_done_ns)).max()?;
            let length = end.checked_sub(begin).filter(|length| *length > 0)?;
            Some(Amount::PerMinute(commits as f64 / length as f64 * MINUTE_NS))
        }
    }
}

/// The power that a stage found at a scale, if it was to.
fn power_of(run: &Run, stage: &Stage, scale_milli: u64) -> Option<f64> {
    let wanted = FigureOf::TpchPower { scale_milli };
    let declared = stage.proof.as_ref()?.figures.iter().find(|declared| declared.of == wanted)?;
    let work = stage.works.iter().find(|work| work.name == declared.work)?;
    match amount(run, stage, work, &wanted) {
        Some(Amount::Score(power)) => Some(power),
        _ => None,
    }
}

fn scale(milli: u64) -> f64 {
    milli as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{System, proof_of};
    use tidemark_measure::record::{DeclaredFigure, Proof};

    #[test]
    fn queries_are_known_by_their_geometric_mean_unless_one_failed() {
        let operation = |ms: u64| {
            let mut operation = Operation::default();
            operation.tally.ok = 1;
            operation.tally.response.record(ms * 1_000_000);
            operation
        };
        let work =
            Work { operations: vec![operation(1), operation(100)], last_done_ns: 7, ..Work::default() };
        let declared = |of| DeclaredFigure { of, ..DeclaredFigure::default() };
        let figures_of = vec![declared(FigureOf::GeometricMean), declared(FigureOf::Elapsed)];
        let proof = Proof { figures: figures_of, ..Proof::default() };
        let mut stage = Stage { works: vec![work], proof: Some(proof), ..Stage::default() };
        let amounts = |stage: &Stage| {
            figures(&Run::default(), stage).iter().map(|figure| figure.amount).collect::<Vec<_>>()
        };
        let [Amount::Span(mean), Amount::Span(7)] = amounts(&stage)[..] else {
            panic!("{:?}", amounts(&stage))
        };
        assert!((9_980_000..10_020_000).contains(&mean), "{mean}");
        let faults = &mut stage.works[0].operations[1].tally.faults;
        faults.count(tidemark_measure::fault::Fault::Timeout);
        assert_eq!(amounts(&stage), [Amount::Span(7)]);
    }

    #[test]
    fn power_and_throughput_of_one_run_make_one_number() {
        let operation = |label: String| {
            let mut operation = Operation { label, ..Operation::default() };
            operation.tally.ok = 1;
            operation.tally.response.record(2_000_000_000);
            operation
        };
        let labels = (1..=22).map(|number| format!("q{number}")).chain(["rf1".into(), "rf2".into()]);
        let operations: Vec<_> = labels.map(operation).collect();
        let stage = |figures: Vec<FigureOf>, last_done_ns| {
            let declared = |of| DeclaredFigure { of, ..DeclaredFigure::default() };
            let proof = Proof { figures: figures.into_iter().map(declared).collect(), ..Proof::default() };
            let work = Work { operations: operations.clone(), last_done_ns, ..Work::default() };
            Stage { works: vec![work], proof: Some(proof), ..Stage::default() }
        };
        let power = stage(vec![FigureOf::TpchPower { scale_milli: 10_000 }], 1);
        let of = |scale_milli| FigureOf::TpchComposite { scale_milli, streams: 3 };
        // 3 x 22 x 3600 x 10 / 66 s = 36,000; 3600 x 10 / 2 s = 18,000.
        let both = stage(vec![of(10_000), of(1_000)], 66_000_000_000);
        let mut run = Run { stages: vec![power, both], ..Run::default() };
        let scores =
            |run: &Run| figures(run, &run.stages[1]).iter().map(|figure| figure.amount).collect::<Vec<_>>();
        let [Amount::Score(score)] = scores(&run)[..] else {
            panic!("only of its own scale: {:?}", scores(&run))
        };
        assert!((score / (18_000.0_f64 * 36_000.0).sqrt() - 1.0).abs() < 1e-3, "{score}");
        run.stages[0].works[0].operations.pop();
        assert_eq!(scores(&run), [], "without a refresh function there is no power");
    }

    #[test]
    fn figures_follow_from_what_was_counted() {
        let mut orders = Operation { label: "new-order".into(), ..Operation::default() };
        orders.tally.ok = 300;
        (1..=10).for_each(|ms| orders.tally.response.record(ms * 1_000_000));
        let work = Work {
            name: "load".into(),
            operations: vec![orders],
            window_start_ns: 10_000_000_000,
            window_end_ns: 40_000_000_000,
            last_done_ns: 60_000_000_000,
            ..Work::default()
        };
        let counting = |counted| proof_of(&System { counted, ..System::default() });
        let operation = || "new-order".to_owned();
        let ofs = [
            FigureOf::PerMinute { operation: operation() },
            FigureOf::CommitsPerMinute,
            FigureOf::Percentile { operation: operation(), percent: 90, limit_ns: Some(5) },
            FigureOf::PerMinute { operation: "unknown".into() },
        ];
        let figures_of =
            ofs.map(|of| DeclaredFigure { work: "load".into(), of, ..DeclaredFigure::default() });
        let proof = Proof { figures: figures_of.to_vec(), ..counting(Some(1000)) };
        let mut stage = Stage { works: vec![work], proof: Some(proof), ..Stage::default() };
        let amounts = |stage: &Stage| {
            figures(&Run::default(), stage).iter().map(|figure| figure.amount).collect::<Vec<_>>()
        };
        let known = amounts(&stage);
        assert_eq!(known[..2], [Amount::PerMinute(600.0), Amount::PerMinute(1000.0)]);
        let Amount::Time { ns, limit_ns: Some(5) } = known[2] else { panic!("{known:?}") };
        assert!((8_900_000..9_200_000).contains(&ns) && known.len() == 3, "{known:?}");

        // One that did not count: its commits are not known.
        stage.proof.as_mut().unwrap().evidence = counting(None).evidence;
        assert_eq!(amounts(&stage).len(), 2);
        // A work that the figures are not of.
        stage.works[0].name = "other".into();
        assert_eq!(amounts(&stage), []);
    }
}
