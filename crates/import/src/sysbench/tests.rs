//! What sysbench prints, read.

use super::*;

const PLAIN: &str = include_str!("../samples/sysbench.txt");
const HISTOGRAM: &str = include_str!("../samples/sysbench-histogram.txt");

#[test]
fn the_figures_are_sysbench_s_own_with_its_one_percentile() {
    let found = run(PLAIN).unwrap();
    let operation = &found.operations[0];
    let said = operation.reported.as_ref().unwrap();
    assert_eq!((operation.tally.ok, operation.tally.failed(), found.clients), (7216, 0, 4));
    assert_eq!(found.elapsed_ns, 5_007_300_000);
    assert_eq!(said.mean_ns, Some(2_770_000.0));
    assert_eq!(said.percentiles, [(0.95, 4_820_000.0), (1.0, 21_910_000.0)]);
    assert!((said.throughput.unwrap() - 1441.0).abs() < 1.0);
    let told = |topic: &str| found.notes.iter().find(|(name, _)| *name == topic).unwrap().1.clone();
    assert!(told("sysbench-percentiles").contains("the 95th"));
    assert!(told("sysbench-errors").contains("ignored 4 errors"));
    assert_eq!(found.seconds.values().map(|second| second.ok).sum::<u64>(), 2868 + 2942);
    assert_eq!(found.seconds.len(), 4);
}

#[test]
fn percentiles_of_the_histogram_agree_with_the_printed_one() {
    let found = run(HISTOGRAM).unwrap();
    let said = found.operations[0].reported.as_ref().unwrap();
    let at = |share| said.percentiles.iter().find(|(one, _)| *one == share).unwrap().1;
    assert!((at(0.99) / 5_880_000.0 - 1.0).abs() < 0.02, "{said:?}");
    assert_eq!(at(1.0), 25_940_000.0);
    assert!(at(0.5) < at(0.95) && at(0.95) < at(0.99));
}

#[test]
fn runs_behind_each_other_are_runs_of_their_own() {
    let sweep =
        format!("sysbench 1.0.20 (using system LuaJIT)\n\nCreating table 'sbtest1'...\n{PLAIN}{HISTOGRAM}");
    assert_eq!(parts(&sweep).len(), 2);
    assert!(run("sysbench 1.0.20\nGeneral statistics:\n").err().unwrap().contains("transactions:"));
}
