//! Cycles of tables that change: whether answers are right, and what queries take as a table ages.

use super::record::{CycleUse, CyclesUse, QueriesTook, StepKind, TableState};
use super::words::{Compactions, Cycles as Found, Point, Trend};
use tidemark_judge::{Findings, Severity, What, WorkContext, statistics, sum};

/// A straight line through fewer cycles says nothing of a trend.
const TREND_LEAST: usize = 10;

/// How many answers were compared with what the table must contain. One that differs has failed, which is said of the failure.
pub(super) fn answers(context: &WorkContext<'_>, used: &CyclesUse, out: &mut Findings) {
    let (right, wrong) = used.answers();
    if right > 0 && wrong == 0 {
        let rows = used.cycles.iter().rev().find_map(|cycle| cycle.found).map_or(0, |found| found.rows);
        let cycles = used.measured().count() as u64;
        out.add(context.finding(Severity::Good, What::of_engine(Found::Answers { right, cycles, rows })));
    }
}

/// What the queries of the last cycle took beside those of the first.
pub(super) fn aged(context: &WorkContext<'_>, used: &CyclesUse, out: &mut Findings) {
    let all: Vec<(&CycleUse, QueriesTook, TableState)> = used.measured().collect();
    let ([first, .., last], [.., _]) = (&all[..], &all[..]) else { return };
    let what = Found::Aged {
        first: Box::new(point(first)),
        last: Box::new(point(last)),
        compact_every: used.compact_every,
        trend: trend(used, &all),
        compactions: compactions(used),
    };
    out.add(context.finding(Severity::Note, What::of_engine(what)));
}

fn point((cycle, took, found): &(&CycleUse, QueriesTook, TableState)) -> Point {
    let (ns, planning_ns, requests, read_bytes) = (took.ns, took.planning_ns, took.requests, took.read_bytes);
    Point { cycle: cycle.cycle, ns, planning_ns, requests, read_bytes, found: *found }
}

/// What each cycle adds to the time of its queries, where nothing is written together in between.
fn trend(used: &CyclesUse, all: &[(&CycleUse, QueriesTook, TableState)]) -> Option<Trend> {
    if used.compact_every.is_some() || all.len() < TREND_LEAST {
        return None;
    }
    let points: Vec<(f64, f64)> =
        all.iter().map(|(cycle, took, _)| (f64::from(cycle.cycle), took.ns as f64)).collect();
    let (each, low, high) = statistics::slope(&points)?;
    Some(Trend { cycles: all.len() as u64, each, low, high })
}

/// What queries took in the cycles that ended with a compaction, and in those after them.
fn compactions(used: &CyclesUse) -> Option<Compactions> {
    let pairs: Vec<(u64, u64)> = used
        .cycles
        .windows(2)
        .filter(|pair| pair[0].of(StepKind::Compact).is_some_and(|step| step.ok > 0))
        .filter_map(|pair| Some((pair[0].queries()?.ns, pair[1].queries()?.ns)))
        .collect();
    let count = pairs.len() as u64;
    let mean = |ns: u64| ns.checked_div(count);
    Some(Compactions {
        count,
        before_ns: mean(sum(pairs.iter().map(|(before, _)| *before)))?,
        after_ns: mean(sum(pairs.iter().map(|(_, after)| *after)))?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::CycleEvidence;
    use super::super::StepUse;
    use super::*;
    use tidemark_judge::evidence::{install, write};
    use tidemark_judge::{Finding, judge};
    use tidemark_measure::record::{Proof, Run};
    use tidemark_testing::runs::{healthy, work};

    const MS: u64 = 1_000_000;

    /// Cycles whose queries take 10 ms, and 2 ms more for each cycle since the last compaction.
    fn run(count: u32, compact_every: Option<u32>, change: impl FnOnce(&mut CyclesUse)) -> Run {
        let cycle = |number: u32| {
            let age = compact_every.map_or(number - 1, |every| (number - 1) % every);
            let query = StepUse {
                name: "scan".into(),
                kind: StepKind::Query,
                ok: 1,
                // Not quite a line: one without any noise has no interval.
                took_ns: (10 + 2 * u64::from(age)) * MS + u64::from(number % 2) * 1000,
                requests: 20 + u64::from(age) * 10,
                ..StepUse::default()
            };
            let mut steps = vec![query];
            if compact_every.is_some_and(|every| number.is_multiple_of(every)) {
                steps.push(StepUse { kind: StepKind::Compact, ok: 1, ..StepUse::default() });
            }
            let found = TableState { rows: 1_000 + u64::from(number) * 100, ..TableState::default() };
            CycleUse { cycle: number, found: Some(found), steps }
        };
        let mut used = CyclesUse {
            work: "w1".into(),
            table: "events".into(),
            compact_every,
            cycles: (1..=count).map(cycle).collect(),
            ..CyclesUse::default()
        };
        change(&mut used);
        let mut run = healthy();
        work(&mut run).operations[0].tally.retries = 0;
        install(&[&CycleEvidence]);
        let mut proof = Proof { direct: true, ..Proof::default() };
        write::<CycleEvidence>(&mut proof, &vec![used]);
        run.stages[0].proof = Some(proof);
        run
    }

    fn found(run: &Run, rule: &str) -> Option<Finding> {
        judge(run).findings.into_iter().find(|finding| finding.rule() == rule)
    }

    #[test]
    fn what_ages_is_told_against_the_first_cycle_with_an_interval_if_there_are_enough() {
        let aged = found(&run(12, None, |_| ()), "cycles-aged").unwrap();
        assert_eq!(
            aged.title(),
            "without compaction, the queries of cycle 12 took 3.2 times as long as those of cycle 1, with 6.5 times the requests over 2.0 \
             times the rows"
        );
        let evidence = aged.evidence().join("\n");
        assert!(evidence.contains("each cycle added 2.00 ms"), "{evidence}");
        let few = found(&run(5, None, |_| ()), "cycles-aged").unwrap().evidence().join("\n");
        assert!(!few.contains("each cycle added"), "{few}");
        assert!(found(&run(1, None, |_| ()), "cycles-aged").is_none(), "one cycle has nothing beside it");
    }

    #[test]
    fn what_a_compaction_brings_is_told_by_the_cycles_around_it() {
        let aged = found(&run(13, Some(4), |_| ()), "cycles-aged").unwrap();
        let evidence = aged.evidence().join("\n");
        assert!(aged.title().starts_with("with a compaction every 4 cycles"), "{}", aged.title());
        assert!(evidence.contains("3 compactions") && evidence.contains("16.0 ms"), "{evidence}");
        assert!(!evidence.contains("each cycle added"), "what is cut back is no line: {evidence}");
    }

    #[test]
    fn right_answers_are_evidence_and_none_is_claimed_beside_a_wrong_one() {
        let right = found(&run(3, None, |_| ()), "cycles-answers").unwrap();
        assert_eq!(right.severity, Severity::Good);
        assert_eq!(right.title(), "all 3 answers of 3 cycles were right");
        let wrong = run(3, None, |used| {
            (used.cycles[1].steps[0].failed, used.cycles[1].steps[0].wrong) = (1, 1);
        });
        assert!(found(&wrong, "cycles-answers").is_none());
        let aged = found(&wrong, "cycles-aged").unwrap();
        assert!(aged.title().contains("cycle 3"), "the others are still compared");
    }
}
