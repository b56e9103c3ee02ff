//! Response times that are not the storage's: the network protocol's, or those of a generator that stood still.

use super::Findings;
use crate::Severity;
use crate::context::{SECOND_NS, WorkContext};
use crate::words::stalls::Stalls;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::Second;

/// Linux holds an acknowledgement back for 40 ms at least (TCP_DELACK_MIN); a small reply adds little to that.
const DELAYED_NS: (u64, u64) = (39_500_000, 50_000_000);

/// A share of the replies in that narrow range which no storage gives by chance.
const SHARE: f64 = 0.5;

/// Fewer replies than this say nothing about a distribution.
const LEAST: u64 = 20;

/// Whether most replies waited for a delayed acknowledgement: a server that sends a reply in two pieces without
/// TCP_NODELAY holds the second one back until the first is acknowledged (Nagle's algorithm, RFC 896), and the
/// receiver holds the acknowledgement back in the hope of data to send it with (RFC 1122, 4.2.3.2).
pub(super) fn delayed_acknowledgement(context: &WorkContext<'_>, out: &mut Findings) {
    // No TCP is between a load and the blocks of this machine.
    if context.stage.proof.is_some() {
        return;
    }
    for operation in &context.work.operations {
        let response: &Histogram = operation.tally.service();
        let (low, high) = DELAYED_NS;
        let within = response.count_up_to(high).saturating_sub(response.count_up_to(low));
        let share = within as f64 / response.count().max(1) as f64;
        if response.count() < LEAST || share < SHARE {
            continue;
        }
        let what = Stalls::DelayedAcknowledgement {
            operation: operation.label.clone(),
            within,
            replies: response.count(),
            low_ns: low,
            high_ns: high,
        };
        out.add(context.finding(Severity::Warning, what));
    }
}

/// A thread of the generator looks up twenty times a second; one that is so much late stood still, nanoseconds.
const STANDSTILL_NS: u64 = 1_000_000_000;

/// So much the largest response times are a generator's own, which is worth a remark; a busy machine does it, too.
const REMARKED_NS: u64 = 250_000_000;

/// Whether the generator stood still: stopped by a signal, swapped out, its virtual machine paused. Replies that came
/// meanwhile were noted when it went on, so that the pause looks like latency of the storage.
pub(super) fn standstill(context: &WorkContext<'_>, out: &mut Findings) {
    let end = context.work.window_end_ns;
    let within = |second: &&Second| u64::from(second.index) * SECOND_NS < end;
    let late: Vec<_> = context
        .work
        .series
        .iter()
        .filter(within)
        .filter(|second| second.stalled_ns >= REMARKED_NS)
        .map(|second| (second.index, second.stalled_ns))
        .collect();
    let Some(longest) = late.iter().map(|(_, stalled)| *stalled).max() else { return };
    // Block storage may hold a thread itself, in the system call that hands a request over.
    let excused = context.stage.proof.is_some() || !context.measures();
    let severity = match (longest >= STANDSTILL_NS, excused) {
        (false, _) => Severity::Note,
        (true, true) => Severity::Warning,
        (true, false) => Severity::Critical,
    };
    let what = Stalls::Standstill { longest_ns: longest, seconds: late };
    out.add(context.finding(severity, what).invalidating(severity == Severity::Critical));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, healthy, invalid_with, said, work};

    #[test]
    fn a_generator_that_stood_still_makes_no_latencies() {
        let with = |stalled_ns| {
            let mut run = healthy();
            work(&mut run).series[7].stalled_ns = stalled_ns;
            run
        };
        assert!(said(&with(200 * MS), "generator-standstill").is_none(), "a busy machine");
        let short = said(&with(400 * MS), "generator-standstill").unwrap();
        assert_eq!((short.severity, short.invalidates), (crate::Severity::Note, false));
        assert_eq!(short.title(), "the load generator stood still for 400 ms");
        assert!(invalid_with(&with(5_000 * MS), "the load generator stood still for 5.00 s"));
    }

    #[test]
    fn replies_at_forty_milliseconds_are_suspicious() {
        let with = |values: &[(u64, u64)]| {
            let mut run = healthy();
            let response = &mut work(&mut run).operations[0].tally.response;
            response.reset();
            values.iter().for_each(|(value, count)| response.record_many(*value, *count));
            said(&run, "delayed-acknowledgement").is_some()
        };
        assert!(with(&[(44 * MS, 600), (48 * MS, 200), (2 * MS, 200)]));
        assert!(
            !with(&[(44 * MS, 400), (20 * MS, 300), (80 * MS, 300)]),
            "a wide distribution is the storage's"
        );
        assert!(!with(&[(44 * MS, 19)]), "too few to say");
        assert!(!with(&[(10 * MS, 1000)]));
    }
}
