//! What pgbench prints and logs, read.

use super::*;

const TEXT: &str = include_str!("../samples/pgbench.txt");
const LOG: &str = include_str!("../samples/pgbench-log.txt");

#[test]
fn a_result_has_a_mean_and_no_percentiles() {
    let found = run(TEXT).unwrap();
    let operation = &found.operations[0];
    let said = operation.reported.as_ref().unwrap();
    assert_eq!((operation.tally.ok, operation.tally.failed(), found.clients), (15_212, 0, 4));
    assert_eq!((said.mean_ns, said.throughput), (Some(1_568_000.0), Some(2_537.961_816)));
    assert!(said.percentiles.is_empty());
    assert!(found.notes[0].1.contains("0.716 ms"), "{:?}", found.notes);
    assert_eq!(found.seconds.len(), 6);
    assert_eq!(found.seconds.values().map(|second| second.ok).sum::<u64>(), 5385 + 5202 + 4621);
    assert_eq!(found.seconds[&0].mean_ns, 1_470_000);
}

#[test]
fn results_behind_each_other_are_runs_of_their_own() {
    assert_eq!(parts(&format!("{TEXT}{TEXT}")).len(), 2);
    assert!(run("transaction type: x\nscaling factor: 1\n").err().unwrap().contains("not whole"));
}

#[test]
fn the_log_has_every_transaction() {
    let found = log(LOG).unwrap();
    let tally = &found.operations[0].tally;
    assert_eq!((tally.ok, tally.response.count(), found.clients), (40, 40, 4));
    let failed = log("0 1 5690 0 1795431419 124881\n1 1 failed 0 1795431419 125482\n").unwrap();
    assert_eq!((failed.operations[0].tally.ok, failed.operations[0].tally.failed()), (1, 1));
    assert!(is_log(LOG) && !is_log(TEXT) && !is_log("1795431419 100 5 5 5 5\n"));
    assert!(log("0 1 5690 0 1795431419 124881\nx\n").err().unwrap().contains("line 2"));
}

#[test]
fn the_rate_of_a_run_with_failures_is_that_of_the_others() {
    let text = "pgbench (15.18)\nduration: 3 s\nnumber of transactions actually processed: 6962\n\
                number of failed transactions: 5840 (45.618%)\ntps = 2320.684459 (without initial connection time)\n";
    let found = run(text).unwrap();
    assert_eq!((found.operations[0].tally.ok, found.operations[0].tally.failed()), (6962, 5840));
    assert_eq!(found.elapsed_ns / 1_000_000, 2_999, "3 s were asked for");
}
