//! What lists show of a run: what was asked for in a few words, and its course as a small line.

use crate::context::WorkContext;
use crate::evaluation::{BestCell, totals};
use crate::verdict::share;
use std::collections::BTreeMap;
use tidemark_measure::record::{Run, Second};
use tidemark_measure::units;

/// Points of a course: as many as a small drawing can show.
const POINTS: usize = 48;

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// What was asked for: `70 % read / 30 % write, 32 workers`, that of the first work that measures; how many others there are. Of a
/// sweep, the cell that its figures are of: `randread, 4 KiB, the best of 12 cells`.
pub fn load(run: &Run) -> String {
    if let Some(BestCell { name, of }) = totals(run).cell {
        return format!("{name}{}the best of {of} cells", if name.is_empty() { "" } else { ", " });
    }
    let measuring = WorkContext::all(run).any(|context| context.measures());
    let mut works = WorkContext::all(run).filter(|context| context.measures() || !measuring);
    let Some(first) = works.next() else { return String::new() };
    let work = first.work;
    let mix: Vec<_> =
        work.operations.iter().map(|operation| share(operation, work.operations.len())).collect();
    let workers = match (work.workers, work.offered_rate) {
        (_, Some(rate)) => format!(", {} offered", units::rate(rate)),
        (0, None) => String::new(),
        (1, None) => ", 1 worker".into(),
        (workers, None) => format!(", {} workers", units::count(workers.into())),
    };
    let depth = work.sharing();
    let more = match works.count() {
        0 => String::new(),
        1 => " and 1 more work".into(),
        more => format!(" and {} more works", units::count(more as u64)),
    };
    format!("{}{workers}{depth}{more}", mix.join(" / "))
}

/// Successful operations per second over the windows of the works that measure: the mean of each of some equal parts. Seconds
/// that a window begins or ends in count only where it has no whole one: a part of a second looks like a collapse.
pub fn shape(run: &Run) -> Vec<f32> {
    let mut seconds: BTreeMap<u64, u64> = BTreeMap::new();
    for context in WorkContext::all(run).filter(WorkContext::measures) {
        let work = context.work;
        let begun = (context.stage.started_ns + work.started_ns) / SECOND;
        let whole = |second: &&Second| {
            let at = u64::from(second.index) * SECOND;
            at >= work.window_start_ns && at + SECOND <= work.window_end_ns
        };
        let none = !work.series.iter().any(|second| whole(&second));
        for second in work.series.iter().filter(|second| none || whole(second)) {
            let ok: u64 = second.operations.iter().map(|operation| operation.ok).sum();
            *seconds.entry(begun + u64::from(second.index)).or_default() += ok;
        }
    }
    let (Some(first), Some(last)) = (seconds.keys().next(), seconds.keys().next_back()) else {
        return Vec::new();
    };
    let (first, length) = (*first, (last - first + 1) as usize);
    let points = length.min(POINTS);
    let mut shape = vec![(0.0f64, 0.0f64); points];
    for (at, ok) in &seconds {
        let point = &mut shape[(at - first) as usize * points / length];
        *point = (point.0 + *ok as f64, point.1 + 1.0);
    }
    shape.iter().map(|(ok, seconds)| if *seconds > 0.0 { (ok / seconds) as f32 } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{healthy, work};
    use tidemark_measure::record::SecondOfOperation;

    #[test]
    fn a_load_is_told_in_a_few_words() {
        let mut run = healthy();
        let told = load(&run);
        assert!(told.contains("read") && told.ends_with("workers"), "{told}");
        work(&mut run).workers = 1;
        assert!(load(&run).ends_with(", 1 worker"), "{}", load(&run));
        assert_eq!(load(&Run::default()), "");
    }

    #[test]
    fn a_course_has_the_mean_of_each_part() {
        let mut run = healthy();
        let second = |index: u32| Second {
            index,
            operations: vec![SecondOfOperation {
                ok: if index < 48 { 10 } else { 30 },
                ..SecondOfOperation::default()
            }],
            ..Second::default()
        };
        (work(&mut run).window_start_ns, work(&mut run).window_end_ns) = (0, 96 * SECOND);
        work(&mut run).series = (0..96).map(second).collect();
        let shape = shape(&run);
        assert_eq!((shape.len(), shape[0], shape[47]), (48, 10.0, 30.0));
        work(&mut run).series = (0..3).map(second).collect();
        assert_eq!(super::shape(&run), [10.0; 3]);
        assert_eq!(super::shape(&Run::default()), [0.0; 0]);
    }

    #[test]
    fn a_course_is_that_of_the_whole_seconds_in_the_window() {
        let mut run = healthy();
        let second = |(index, ok): (u32, u64)| Second {
            index,
            operations: vec![SecondOfOperation { ok, ..SecondOfOperation::default() }],
            ..Second::default()
        };
        // A warm-up of two seconds, a window of three, and what was in flight at its end.
        let seconds = [0, 0, 40, 41, 42, 1];
        work(&mut run).series = (0..).zip(seconds).map(second).collect();
        (work(&mut run).window_start_ns, work(&mut run).window_end_ns) = (2 * SECOND, 5 * SECOND);
        assert_eq!(shape(&run), [40.0, 41.0, 42.0]);
        (work(&mut run).window_start_ns, work(&mut run).window_end_ns) =
            (2 * SECOND, 2 * SECOND + SECOND / 2);
        assert_eq!(shape(&run).len(), 6, "a window without a whole second");
    }
}
