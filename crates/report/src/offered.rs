//! What load a work put on.

use crate::content::MOST_OPERATIONS;
use tidemark_measure::record::{EndpointKind, Work};
use tidemark_measure::units;

/// What load a work put on, as one sentence.
pub(crate) fn load(work: &Work) -> String {
    let window = units::duration_ns(work.window_end_ns.saturating_sub(work.window_start_ns));
    let workers = units::count(u64::from(work.workers));
    let plural = if work.workers == 1 { "" } else { "s" };
    let depth = work.sharing();
    let think = if work.think.is_none() { String::new() } else { format!(", think time {}", work.think) };
    let shown = work.operations.iter().take(if work.operations.len() > MOST_OPERATIONS {
        0
    } else {
        MOST_OPERATIONS
    });
    let mix: Vec<String> = shown
        .map(|operation| match work.operations.len() {
            1 => operation.label.clone(),
            _ => {
                format!("{} {}", units::percent(operation.weight / 100.0).replace(".00", ""), operation.label)
            }
        })
        .collect();
    let mix = match work.operations.len() {
        many if many > MOST_OPERATIONS => format!("{many} kinds of operations"),
        _ => mix.join(", "),
    };
    let of = |kind| work.endpoints.iter().filter(|one| one.kind == kind).count() as u64;
    let instances = match (of(EndpointKind::Instance), of(EndpointKind::Driver), u64::from(work.workers)) {
        (0 | 1, 0 | 1, _) => String::new(),
        (0 | 1, all, workers) if workers % all == 0 => {
            format!(", {} on each of {all} drivers", workers / all)
        }
        (0 | 1, all, _) => format!(" on {all} drivers"),
        (all, _, workers) if workers % all == 0 => format!(", {} on each of {all} instances", workers / all),
        (all, ..) => format!(" on {all} instances"),
    };
    match (work.offered_rate, work.planned.begun_per_s) {
        (Some(rate), _) => format!(
            "Open loop: {} offered{instances} for {window}, at most {} in flight; {mix}",
            units::rate(rate),
            units::count(work.slots())
        ),
        (None, Some(rate)) => {
            let steps: Vec<&str> = work.operations.iter().map(|operation| operation.label.as_str()).collect();
            format!(
                "Open loop: {} begun, at most {workers} at once{instances}, for {window}; each is {}",
                units::rate_in(rate, "sequences/s"),
                steps.join(", ")
            )
        }
        _ => format!("Closed loop: {workers} worker{plural}{depth}{think}{instances} for {window}; {mix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::record::{Operation, Planned};

    #[test]
    fn what_begins_at_fixed_times_is_no_closed_loop() {
        let step = |label: &str| Operation { label: label.into(), weight: 50.0, ..Operation::default() };
        let lives = |begun_per_s| Work {
            workers: 200,
            window_end_ns: 30_000_000_000,
            planned: Planned { begun_per_s, ..Planned::default() },
            operations: vec![step("claim"), step("bind")],
            ..Work::default()
        };
        let open = "Open loop: 2.00 sequences/s begun, at most 200 at once, for 30.0 s; each is claim, bind";
        assert_eq!(load(&lives(Some(2.0))), open);
        assert!(load(&lives(None)).starts_with("Closed loop: 200 workers for 30.0 s"));
    }
}
