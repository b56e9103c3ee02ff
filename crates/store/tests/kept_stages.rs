//! What it costs to keep a stage of a run in progress does not depend on how many stages the run has.
//!
//! The allocator counts the whole process, so this program holds one test.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use tidemark_measure::record::{Operation, Run, Stage, State, Work};
use tidemark_store::Store;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that are allocated while all stages of a run are kept, each at its beginning and at its end.
fn cost(stages: usize) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("results.db")).unwrap();
    let stage = |number: usize| Stage {
        name: format!("stage {number}"),
        works: vec![Work { operations: vec![Operation::default(); 2], ..Work::default() }],
        ..Stage::default()
    };
    let mut run = Run { state: State::Running, stages: (0..stages).map(stage).collect(), ..Run::default() };
    let id = store.begin(&run).unwrap();
    let region = Region::new(ALLOCATOR);
    for place in 0..stages {
        for state in [State::Running, State::Completed] {
            run.stages[place].state = state;
            store.keep(id, &run, place).unwrap();
        }
    }
    let bytes = region.change().bytes_allocated as f64;
    assert!(store.load(id).unwrap().stages.iter().all(|stage| stage.state == State::Completed));
    bytes
}

#[test]
fn keeping_all_stages_of_a_run_costs_ten_times_as_much_for_ten_times_as_many() {
    let (few, many) = (cost(30), cost(300));
    assert!((5.0..15.0).contains(&(many / few)), "{few} and {many} bytes");
}
