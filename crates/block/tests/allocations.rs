//! The hot path allocates nothing: not for a read, a verified read, a write, a trim or a sync.
//!
//! The allocator counts the whole process, so this program holds one test.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, clippy::print_stderr, reason = "one test uses a part of it")]
#[path = "it/support.rs"]
mod support;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use support::*;
use tidemark_block::job::{Action, Content, Job};
use tidemark_load::engine::{Begin, Completion};
use tidemark_measure::fault::Fault;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LANES: u32 = 16;

/// Does `rounds` operations of an action on every slot, each on blocks of its own.
fn perform(hand: &mut Hand, action: u16, rounds: u32, ended: &mut Vec<Completion>) -> Option<Fault> {
    let mut fault = None;
    for round in 0..rounds {
        for slot in 0..LANES {
            let item = u64::from(round * LANES + slot) % (SIZE / 4096);
            assert_eq!(hand.begin(slot, action, 1, item, 4096), Begin::Started);
        }
        ended.clear();
        while ended.len() < LANES as usize {
            hand.session.reap(hand.clock.now() + 1_000_000_000, ended);
        }
        fault = fault.or(ended.iter().find_map(|end| end.outcome.fault));
    }
    fault
}

#[test]
fn the_hot_path_allocates_nothing() {
    let directory = directory();
    let actions = [Action::Read, Action::Write, Action::Fdatasync, Action::Trim];
    for verify in [false, true] {
        let volume = file(&directory.path().join("volume"), SIZE);
        let content = Content { verify, ..Content::default() };
        let job = Job { content, ..job(&[volume], 4096, &actions) };
        let data = data();
        fill(&job, &data);
        let mut hand = hand(&job, &data, LANES, 4096);
        let mut ended = Vec::with_capacity(LANES as usize);
        for (action, name) in actions.iter().enumerate() {
            let rounds = if *name == Action::Fdatasync { 2 } else { 100 };
            perform(&mut hand, action as u16, 1, &mut ended);
            let region = Region::new(ALLOCATOR);
            let fault = perform(&mut hand, action as u16, rounds, &mut ended);
            let change = region.change();
            assert_eq!(fault, None);
            let counts = (change.allocations, change.reallocations);
            assert_eq!(counts, (0, 0), "{name:?}, verify {verify}: {} bytes", change.bytes_allocated);
        }
    }
}
