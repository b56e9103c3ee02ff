//! Tables and the queries on them: whether tables are whole, what limited their making, whether answers are right, and whether it
//! was storage that was measured.

use super::Findings;
use crate::Severity;
use crate::context::{WorkContext, sum};
use crate::words::tables::{Layer, MadeBy, Tables as Found, WrongTable};
use tidemark_measure::record::{Answer, QueryUse};

/// One of two sides that takes this share of the time is what limited it.
const DOMINATES: f64 = 0.7;

/// Less time says nothing of what limited the making of tables; nanoseconds.
const MAKING_LEAST_NS: u64 = 1_000_000_000;

/// Data of fewer times what a memory can hold may have come from it.
const TIMES_MEMORY: u64 = 2;

/// The load generator's own share of the time of queries that is worth no word.
const OWN_GOOD: f64 = 0.01;

/// And that from which on it is worth a warning.
const OWN_MUCH: f64 = 0.05;

/// Whether tables that were made have the rows of their definition.
pub(super) fn rows(context: &WorkContext<'_>, out: &mut Findings) {
    let Some(made) = context.tables().and_then(|used| used.made.as_ref()) else { return };
    let wrong = made.tables.iter().filter_map(|table| {
        let expected = table.expected_rows.filter(|expected| *expected != table.rows)?;
        Some(WrongTable { table: table.name.clone(), rows: table.rows, expected })
    });
    let wrong: Vec<_> = wrong.collect();
    let unknown = made.tables.iter().filter(|table| table.expected_rows.is_none()).count() as u64;
    let is_wrong = !wrong.is_empty();
    let severity = match made.tables.len() as u64 {
        _ if is_wrong => Severity::Critical,
        tables if tables == unknown => Severity::Note,
        _ => Severity::Good,
    };
    let what = Found::Rows {
        tables: made.tables.len() as u64,
        rows: sum(made.tables.iter().map(|table| table.rows)),
        wrong,
        unknown,
    };
    out.add(context.finding(severity, what).invalidating(is_wrong));
}

/// Whether the making of tables was limited by those who generate and encode rows, or by storage.
pub(super) fn making(context: &WorkContext<'_>, out: &mut Findings) {
    let Some(made) = context.tables().and_then(|used| used.made.as_ref()) else { return };
    let generator_ns = made.generating_ns.saturating_add(made.encoding_ns);
    let all_ns = generator_ns.saturating_add(made.storing_ns);
    if all_ns < MAKING_LEAST_NS {
        return;
    }
    let by = match generator_ns as f64 / all_ns as f64 {
        most if most >= DOMINATES => MadeBy::Generator,
        little if little <= 1.0 - DOMINATES => MadeBy::Storage,
        _ => MadeBy::Neither,
    };
    let what = Found::Making {
        by,
        generating_ns: made.generating_ns,
        encoding_ns: made.encoding_ns,
        storing_ns: made.storing_ns,
    };
    // Numbers of a preparation are read for it, whether or not it measures.
    out.add(context.finding(Severity::Note, what));
}

/// How many answers were compared with what. One that differs has failed, which is said of the failure.
pub(super) fn answers(context: &WorkContext<'_>, out: &mut Findings) {
    let Some(used) = context.tables().filter(|used| !used.queries.is_empty()) else { return };
    let count =
        |answer| used.queries.iter().filter(|query| query.fault.is_none() && query.answer == answer).count();
    let [known, others, unchecked] =
        [Answer::Known, Answer::Others, Answer::NotChecked].map(|answer| count(answer) as u64);
    let wrong = used.queries.iter().filter(|query| query.answer == Answer::Differs).count() as u64;
    if known + others + unchecked + wrong == 0 {
        return;
    }
    let good = wrong == 0 && known + others > unchecked;
    let severity = if good { Severity::Good } else { Severity::Note };
    out.add(context.finding(severity, Found::Answers { known, others, unchecked, wrong }));
}

/// Whether what was read can have come from memory.
pub(super) fn memory(context: &WorkContext<'_>, out: &mut Findings) {
    let Some((used, data_bytes)) = context.tables().and_then(|used| Some((used, used.data_bytes?))) else {
        return;
    };
    if used.queries.is_empty() {
        return;
    }
    let warm = used.declared_cache == "warm";
    let mut unknown = Vec::new();
    for layer in &used.caches {
        match layer.bytes {
            // What was dropped had nothing of it.
            _ if layer.is_dropped => {}
            None => unknown.push(layer.layer.clone()),
            Some(bytes) if layer.holds_data && data_bytes < bytes.saturating_mul(TIMES_MEMORY) => {
                let severity = if warm { Severity::Note } else { Severity::Warning };
                let what = Found::Memory {
                    layer: Layer { layer: layer.layer.clone(), bytes },
                    data_bytes,
                    times: TIMES_MEMORY,
                    declared: used.declared_cache.clone(),
                };
                out.add(context.finding(severity, what));
            }
            Some(_) => {}
        }
    }
    if !unknown.is_empty() {
        out.add(context.finding(Severity::Note, Found::MemoryUnknown { layers: unknown }));
    }
}

/// How much of the queries' time the load generator took for itself.
pub(super) fn own_cost(context: &WorkContext<'_>, out: &mut Findings) {
    let Some((used, own_ns)) = context.tables().and_then(|used| Some((used, used.own_cpu_ns?))) else {
        return;
    };
    let queries_ns =
        sum(used.queries.iter().filter(|query| query.fault.is_none()).map(|query: &QueryUse| query.took_ns));
    if queries_ns == 0 {
        return;
    }
    let share = own_ns as f64 / queries_ns as f64;
    let severity = match share {
        much if much >= OWN_MUCH => Severity::Warning,
        some if some >= OWN_GOOD => Severity::Note,
        _ => Severity::Good,
    };
    out.add(context.finding(severity, Found::OwnCost { own_ns, queries_ns, share }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge;
    use crate::words::Facts as _;
    use tidemark_measure::fault::Fault;
    use tidemark_measure::kind::WorkKind;
    use tidemark_measure::record::{
        CacheLayer, Operation, Proof, Run, Stage, State, TableMade, TablesMade, TablesUse, Work,
    };

    const S: u64 = 1_000_000_000;

    /// A run of 22 queries, the last of which took minutes.
    fn run(change: impl FnOnce(&mut TablesUse)) -> Run {
        let (mut operations, mut queries, mut began_ns) = (Vec::new(), Vec::new(), 0);
        for number in 1..=22 {
            let took_ns = if number == 22 { 300 * S } else { S };
            let mut operation = Operation { label: format!("q{number}"), ..Operation::default() };
            operation.tally.ok = 1;
            operation.tally.response.record(took_ns);
            operations.push(operation);
            let query = QueryUse {
                query: format!("q{number}"),
                stream: 1,
                pass: 1,
                began_ns,
                took_ns,
                answer: Answer::Known,
                rows: 1,
                ..QueryUse::default()
            };
            queries.push(query);
            began_ns += took_ns;
        }
        let mut used =
            TablesUse { work: "power".into(), queries, own_cpu_ns: Some(S / 100), ..TablesUse::default() };
        change(&mut used);
        let work = Work {
            name: "power".into(),
            kind: if used.made.is_some() { WorkKind::Prepare } else { WorkKind::Normal },
            workers: 1,
            operations,
            window_end_ns: began_ns,
            last_done_ns: began_ns,
            longest_gap: Some(tidemark_measure::record::LongestGap { from_ns: 21 * S, to_ns: began_ns }),
            ..Work::default()
        };
        let proof = Proof { tables: vec![used], direct: true, ..Proof::default() };
        let stage = Stage {
            name: "power".into(),
            state: State::Completed,
            works: vec![work],
            proof: Some(proof),
            ..Stage::default()
        };
        Run { state: State::Completed, stages: vec![stage], ..Run::default() }
    }

    fn said(run: &Run) -> Vec<(Severity, &'static str)> {
        judge(run).findings.iter().map(|finding| (finding.severity, finding.rule())).collect()
    }

    #[test]
    fn queries_of_any_length_are_no_trouble() {
        let troubles: Vec<_> =
            said(&run(|_| ())).into_iter().filter(|(severity, _)| *severity > Severity::Note).collect();
        assert!(troubles.is_empty(), "{troubles:?}");
        assert!(judge(&run(|_| ())).validity.is_valid());
    }

    #[test]
    fn tables_without_their_rows_are_critical() {
        let made = |rows| TablesMade {
            tables: vec![TableMade {
                name: "orders".into(),
                rows,
                expected_rows: Some(15),
                ..TableMade::default()
            }],
            generating_ns: 8 * S,
            encoding_ns: S,
            storing_ns: S,
            ..TablesMade::default()
        };
        let whole = run(|used| {
            *used = TablesUse { work: "power".into(), made: Some(made(15)), ..TablesUse::default() }
        });
        assert!(judge(&whole).validity.is_valid());
        let short = run(|used| {
            *used = TablesUse { work: "power".into(), made: Some(made(14)), ..TablesUse::default() }
        });
        assert!(said(&short).contains(&(Severity::Critical, "rows-differ")), "{:?}", said(&short));
        assert!(!judge(&short).validity.is_valid());
    }

    #[test]
    fn tables_whose_rows_nobody_knows_are_not_called_whole() {
        let found = |unknown| Found::Rows { tables: 24, rows: 7, wrong: Vec::new(), unknown };
        assert_eq!(
            [0, 5, 24].map(|unknown| found(unknown).rule()),
            ["rows-whole", "rows-whole", "rows-unknown"]
        );
    }

    #[test]
    fn memory_is_named_only_where_it_can_hold_the_data_and_was_not_dropped() {
        let with = |bytes, is_dropped| {
            run(|used| {
                used.data_bytes = Some(100);
                used.caches = vec![CacheLayer {
                    layer: "page cache".into(),
                    bytes,
                    is_dropped,
                    holds_data: true,
                    state: String::new(),
                }];
            })
        };
        let has = |run: &Run, rule| said(run).iter().any(|(_, found)| *found == rule);
        assert!(has(&with(Some(51), false), "measured-memory"));
        assert!(!has(&with(Some(50), false), "measured-memory"), "twice as much");
        assert!(!has(&with(Some(51), true), "measured-memory"));
        assert!(has(&with(None, false), "memory-unknown"));
    }

    #[test]
    fn answers_that_nobody_compared_prove_nothing() {
        let unchecked =
            run(|used| used.queries.iter_mut().for_each(|query| query.answer = Answer::NotChecked));
        assert!(said(&unchecked).contains(&(Severity::Note, "answers")));
        assert!(said(&run(|_| ())).contains(&(Severity::Good, "answers")));
        let failed = run(|used| used.queries.iter_mut().for_each(|query| query.fault = Some(Fault::Timeout)));
        assert!(!said(&failed).iter().any(|(_, rule)| *rule == "answers"), "what failed has no answer");
    }

    #[test]
    fn the_generators_own_cost_is_a_share_of_the_queries() {
        let costs = |own_ns| run(|used| used.own_cpu_ns = Some(own_ns));
        assert!(said(&costs(S)).contains(&(Severity::Good, "own-cost")));
        assert!(said(&costs(20 * S)).contains(&(Severity::Warning, "own-cost")));
    }
}
