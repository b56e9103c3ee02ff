//! What HammerDB prints, read.

use super::*;

const TEXT: &str = include_str!("../samples/hammerdb.txt");
const TIMING: &str = include_str!("../samples/hammerdb-timing.json");

#[test]
fn a_test_result_is_new_orders_per_minute() {
    let found: Vec<Found> = results(TEXT).collect();
    let [one] = found.as_slice() else { panic!("{}", found.len()) };
    assert_eq!((one.clients, one.elapsed_ns, one.operations[0].tally.ok), (4, 300_000_000_000, 12_345 * 5));
    assert_eq!(one.operations[0].reported.as_ref().unwrap().throughput, Some(12_345.0 / 60.0));
    assert!(one.notes[0].1.contains("28401"), "{}", one.notes[0].1);
}

#[test]
fn a_job_s_result_is_found_in_its_json_and_its_length_is_not_made_up() {
    let json = "[\n\"65F0\",\n\"3 Active Virtual Users configured\",\n\"TEST RESULT : System achieved 600 NOPM from 1400 MariaDB TPM\"\n]";
    let found: Vec<Found> = results(json).collect();
    assert_eq!((found.len(), found[0].clients, found[0].operations[0].tally.ok), (1, 3, 600));
    assert!(found[0].notes[0].1.contains("not in this file"));
}

#[test]
fn times_are_the_same_of_text_and_of_json() {
    let (text, json) = (timing_of_text(TEXT), timing_of_json(TIMING).unwrap());
    assert_eq!((text.0, text.1.len()), (420_203_000_000, 2));
    assert_eq!(text.0, json.0);
    for (one, other) in text.1.iter().zip(&json.1) {
        assert_eq!((&one.kind, one.tally.ok), (&other.kind, other.tally.ok));
        let (one, other) = (one.reported.as_ref().unwrap(), other.reported.as_ref().unwrap());
        assert_eq!((&one.percentiles, one.mean_ns), (&other.percentiles, other.mean_ns));
        assert_eq!(one.percentiles.len(), 4);
    }
    assert_eq!(text.1[0].kind, "neword");
}
