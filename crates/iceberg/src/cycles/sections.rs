//! Cycles of tables that change, in reports.

use super::record::{CycleUse, CyclesUse, QueriesTook, StepKind, StepUse};
use tidemark_judge::section::{Block, Lines, NONE, Section, Table, Tone, Unit};
use tidemark_measure::record::Stage;
use tidemark_measure::units;

/// What the columns are, for those who read them.
const LEGEND: &str = "Queries find the table as it is after the cycle's appends and merge, and before its compaction. Their time, \
    requests and bytes are sums over the queries of a cycle, with what it takes to find out which files to read; planning is that part of \
    their time, with the query's plan. Times of appends, merges and compactions are those of whole operations: rows made or read, files \
    written, and the commit with all its attempts.";

/// Cycles that are shown unfolded.
const MOST_CYCLES: usize = 48;

/// Each work, with how it is called.
type Works<'a> = [(String, &'a CyclesUse)];

/// The section of a run's cycles.
pub(super) fn section(stages: &[(&Stage, Vec<CyclesUse>)]) -> Section {
    let works: Vec<(String, &CyclesUse)> =
        stages.iter().flat_map(|(stage, all)| all.iter().map(|used| (name(stage, used), used))).collect();
    let time = by_cycle(&works, |took| took.ns);
    let requests = by_cycle(&works, |took| took.requests);
    let blocks = vec![
        Block::Lines(Lines {
            name: "query-time-by-cycle",
            title: "Time of the queries by cycle",
            steps: "cycle",
            unit: Unit::Time,
            lines: time,
        }),
        Block::Lines(Lines {
            name: "requests-by-cycle",
            title: "Requests of the queries by cycle",
            steps: "cycle",
            unit: Unit::Count("requests"),
            lines: requests,
        }),
        Block::Folded(cycles(&works), MOST_CYCLES),
        Block::Legend(LEGEND.into()),
        Block::Heading("Queries in the first and in the last cycle".into()),
        Block::Table(queries(&works)),
    ];
    Section { id: "cycles", title: "Cycles of tables", blocks, in_short: None }
}

fn name(stage: &Stage, used: &CyclesUse) -> String {
    match stage.works.len() {
        0 | 1 => stage.name.clone(),
        _ => format!("{}, {}", stage.name, used.work),
    }
}

/// A line for each work, over the cycles whose queries all succeeded.
fn by_cycle(works: &Works<'_>, of: fn(QueriesTook) -> u64) -> Vec<(String, Vec<(u32, f64)>)> {
    let line = |(label, used): &(String, &CyclesUse)| {
        let points = used.measured().map(|(cycle, took, _)| (cycle.cycle, of(took) as f64));
        (label.clone(), points.collect())
    };
    works.iter().map(line).collect()
}

fn mean(step: Option<&StepUse>) -> String {
    step.and_then(|step| step.took_ns.checked_div(step.ok)).map_or(NONE.into(), units::duration_ns)
}

/// How often it is the first; nothing of nothing.
fn ratio(value: u64, first: u64) -> String {
    if first == 0 { NONE.into() } else { format!("{:.2}", value as f64 / first as f64) }
}

/// Every cycle: what its queries found and took, and what else was done.
fn cycles(works: &Works<'_>) -> Table {
    let mut table = Table::new("Cycles of tables").words(["Stage"]).numbers([
        "Cycle",
        "Rows",
        "Data files",
        "Files of deletes",
        "Manifests",
        "Size",
        "Query time",
        "Time / first",
        "Planning",
        "Requests",
        "Requests / first",
        "Bytes read",
        "Append",
        "Merge",
        "Compaction",
        "Attempts / commit",
        "Failed",
    ]);
    for (name, used) in works {
        let first = used.measured().next().map(|(_, took, _)| took);
        for cycle in used.cycles.iter().filter(|cycle| cycle.cycle > 0) {
            let found = cycle.found.as_ref();
            let took = cycle.queries();
            let failed: u64 = cycle.steps.iter().map(|step| step.failed).sum();
            let against = |of: fn(&QueriesTook) -> u64| match (&took, &first) {
                (Some(own), Some(first)) => ratio(of(own), of(first)),
                _ => NONE.into(),
            };
            let planning = took.filter(|took| took.ns > 0);
            let cells = vec![
                name.clone(),
                units::count(cycle.cycle.into()),
                found.map_or(NONE.into(), |found| units::count(found.rows)),
                found.map_or(NONE.into(), |found| units::count(found.files)),
                found.map_or(NONE.into(), |found| units::count(found.delete_files)),
                found.map_or(NONE.into(), |found| units::count(found.manifests)),
                found.map_or(NONE.into(), |found| units::bytes(found.bytes)),
                took.map_or(NONE.into(), |took| units::duration_ns(took.ns)),
                against(|took| took.ns),
                planning.map_or(NONE.into(), |took| units::percent(took.planning_ns as f64 / took.ns as f64)),
                took.map_or(NONE.into(), |took| units::count(took.requests)),
                against(|took| took.requests),
                took.map_or(NONE.into(), |took| units::bytes(took.read_bytes)),
                mean(cycle.of(StepKind::Ingest)),
                mean(cycle.of(StepKind::Merge)),
                mean(cycle.of(StepKind::Compact)),
                attempts(cycle),
                units::count(failed),
            ];
            table.row(if failed > 0 { Tone::Bad } else { Tone::Plain }, cells);
        }
    }
    let table = table.without_if_same("Stage").without_if_all("Files of deletes", "0");
    let table = table.without_if_all("Merge", NONE).without_if_all("Compaction", NONE);
    table.without_if_all("Attempts / commit", "1.00").without_if_all("Failed", "0")
}

/// Attempts of a cycle's commits on average.
fn attempts(cycle: &CycleUse) -> String {
    let commits = || cycle.steps.iter().filter(|step| step.attempts > 0);
    let (attempts, count) =
        commits().fold((0, 0), |(attempts, count), step| (attempts + step.attempts, count + step.ok));
    if count == 0 { NONE.into() } else { format!("{:.2}", attempts as f64 / count as f64) }
}

/// Each query in the first cycle and in the last one.
fn queries(works: &Works<'_>) -> Table {
    let mut table =
        Table::new("Queries in the first and in the last cycle").words(["Stage", "Query"]).numbers([
            "First",
            "Last",
            "Time / first",
            "Planning, first",
            "Planning, last",
            "Requests, first",
            "Requests, last",
            "Bytes read, first",
            "Bytes read, last",
        ]);
    for (name, used) in works {
        let measured: Vec<&CycleUse> = used.measured().map(|(cycle, ..)| cycle).collect();
        let ([first, .., last], [.., _]) = (&measured[..], &measured[..]) else { continue };
        for query in first.steps.iter().filter(|step| step.kind == StepKind::Query) {
            let Some(later) = last.steps.iter().find(|step| step.name == query.name) else { continue };
            let share = |step: &StepUse| match step.took_ns {
                0 => NONE.into(),
                ns => units::percent(step.planning_ns as f64 / ns as f64),
            };
            let cells = vec![
                name.clone(),
                query.name.clone(),
                units::duration_ns(query.took_ns),
                units::duration_ns(later.took_ns),
                ratio(later.took_ns, query.took_ns),
                share(query),
                share(later),
                units::count(query.requests),
                units::count(later.requests),
                units::bytes(query.read_bytes),
                units::bytes(later.read_bytes),
            ];
            table.row(Tone::Plain, cells);
        }
    }
    table.without_if_same("Stage")
}

#[cfg(test)]
mod tests {
    use super::super::TableState;
    use super::*;

    fn used() -> CyclesUse {
        let step = |name: &str, kind, ms: u64, failed| StepUse {
            name: name.into(),
            kind,
            ok: 2,
            failed,
            took_ns: ms * 1_000_000,
            planning_ns: ms * 250_000,
            requests: ms,
            attempts: if kind == StepKind::Query { 0 } else { 3 },
            ..StepUse::default()
        };
        let cycle = |cycle: u32, ms| CycleUse {
            cycle,
            found: Some(TableState { files: 10 * u64::from(cycle), ..TableState::default() }),
            steps: vec![
                step("ingest", StepKind::Ingest, 8, u64::from(cycle == 2)),
                step("scan", StepKind::Query, ms, 0),
            ],
        };
        let cycles = vec![CycleUse::default(), cycle(1, 10), cycle(2, 25)];
        CyclesUse { work: "w1".into(), table: "events".into(), cycles, ..CyclesUse::default() }
    }

    #[test]
    fn every_cycle_is_compared_with_the_first() {
        let used = used();
        let works = [("s1".to_owned(), &used)];
        let rows = cycles(&works).texts();
        let of = |row: usize, title: &str| {
            rows[row][rows[0].iter().position(|heading| heading == title).unwrap()].clone()
        };
        assert_eq!(
            [of(1, "Time / first"), of(2, "Time / first"), of(2, "Planning")],
            ["1.00", "2.50", "25.00 %"]
        );
        assert_eq!([of(2, "Append"), of(2, "Attempts / commit"), of(2, "Failed")], ["4.00 ms", "1.50", "1"]);
        assert_eq!(rows.len(), 3, "what came before the first is none");
        assert!(!rows[0].iter().any(|title| title == "Merge" || title == "Files of deletes"));
        assert_eq!(queries(&works).texts()[1][..4], ["scan", "10.0 ms", "25.0 ms", "2.50"]);
    }

    #[test]
    fn each_work_has_a_line_and_failed_cycles_have_no_point() {
        let mut used = used();
        used.cycles.push(CycleUse { cycle: 3, ..used.cycles[1].clone() });
        used.cycles[2].steps[1].failed = 1;
        let works = [("<never>".to_owned(), &used), ("every 5".to_owned(), &used)];
        let lines = by_cycle(&works, |took| took.ns);
        assert_eq!(lines.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(), ["<never>", "every 5"]);
        assert_eq!(lines[0].1, [(1, 10e6), (3, 10e6)]);
    }
}
