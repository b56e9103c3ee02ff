//! What each endpoint or instance of a work did over time.

use super::chart::{COLOURS, Stroke};
use super::figure::Figure;
use super::scale::Scale;
use super::series::{Point, seconds, thin, whole_seconds};
use super::{highest, over_time};
use crate::endpoints::{title, unit};
use tidemark_measure::record::{EndpointUse, Work};
use tidemark_measure::units;

/// Lines that can be told apart. Of more, those are drawn that did most and least.
const MOST_LINES: usize = COLOURS;

/// Successes per second of each endpoint or instance; `None` where there is only one, or nothing to draw.
pub(super) fn throughput_of_endpoints(work: &Work, most_points: usize) -> Option<Figure> {
    let all = &work.endpoints;
    if all.len() < 2 || all.iter().all(|one| one.ok_by_second.is_empty()) {
        return None;
    }
    let mut drawn: Vec<&EndpointUse> = all.iter().collect();
    if drawn.len() > MOST_LINES {
        drawn.sort_by_key(|one| one.ok);
        drawn.drain(MOST_LINES / 2..all.len() - MOST_LINES.div_ceil(2));
    }
    let same = all_begin_with(all);
    let lines: Vec<_> =
        drawn.iter().map(|one| (one.endpoint[same..].to_owned(), points(work, one))).collect();
    let scale = Scale::from_zero(highest(&lines)?);
    let mut chart = over_time(work, scale, scale.number_ticks(4), unit(work));
    for (index, (name, points)) in lines.iter().enumerate() {
        chart.line(&thin(points, most_points), index, Stroke::Own, name);
    }
    let words = match all.len() - drawn.len() {
        0 => describe(work),
        _ => format!("{} Lines are drawn of those that did least and most.", describe(work)),
    };
    let title = format!("Throughput of each {} over time", title(work).trim_end_matches('s').to_lowercase());
    Some(chart.finish("endpoints", &title, &words))
}

/// Length of what all names begin with, up to a mark such as `:`: beside a line there is room only for what tells them apart.
fn all_begin_with(all: &[EndpointUse]) -> usize {
    let Some((first, others)) = all.split_first() else { return 0 };
    let same = |other: &EndpointUse| {
        let pairs = first.endpoint.bytes().zip(other.endpoint.bytes());
        pairs.take_while(|(one, other)| one == other).count()
    };
    let shortest = others.iter().map(same).min().unwrap_or(0);
    let mark = |byte: &u8| byte.is_ascii_punctuation();
    first.endpoint.as_bytes()[..shortest].iter().rposition(mark).map_or(0, |place| place + 1)
}

/// Rates of the seconds of the window; where it begins or ends within one, of that part.
fn points(work: &Work, one: &EndpointUse) -> Vec<Point> {
    let (start, end) = (seconds(work.window_start_ns), seconds(work.window_end_ns));
    let point = |index: u32| {
        let (from, to) = (start.max(f64::from(index)), end.min(f64::from(index) + 1.0));
        let count = one.ok_by_second.get(index as usize).copied().unwrap_or(0);
        (to - from >= 0.2).then(|| ((from + to) / 2.0, Some(count as f64 / (to - from))))
    };
    (0..whole_seconds(work)).filter_map(point).collect()
}

/// Who did most and who did least, in the mean of the window.
fn describe(work: &Work) -> String {
    let rate = |one: &EndpointUse| one.throughput(work.window_seconds());
    let by_rate = |one: &&EndpointUse, other: &&EndpointUse| rate(one).total_cmp(&rate(other));
    let (Some(least), Some(most)) =
        (work.endpoints.iter().min_by(by_rate), work.endpoints.iter().max_by(by_rate))
    else {
        return String::new();
    };
    format!(
        "{} {}; on average between {} ({}) and {} ({}).",
        work.endpoints.len(),
        title(work).to_lowercase(),
        units::rate_in(rate(least), unit(work)),
        least.endpoint,
        units::rate_in(rate(most), unit(work)),
        most.endpoint
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn what_all_names_have_in_common_is_left_out() {
        let of = |names: &[&str]| {
            let named = |name: &&str| EndpointUse { endpoint: (*name).into(), ..EndpointUse::default() };
            all_begin_with(&names.iter().map(named).collect::<Vec<_>>())
        };
        assert_eq!(of(&["10.0.0.1:5432", "10.0.0.1:5433"]), "10.0.0.1:".len());
        assert_eq!(of(&["h:5432/a", "h:5432/b"]), "h:5432/".len());
        assert_eq!(of(&["one", "other"]), 0);
        assert_eq!(of(&["ä:1", "ä:2"]), "ä:".len());
    }

    #[test]
    fn each_has_a_line_and_of_many_the_extremes_have_one() {
        let drawn = |count: u64| {
            let mut run = sample::healthy(10);
            let work = &mut run.stages[2].works[0];
            let use_of = |number: u64| EndpointUse {
                endpoint: format!("e-{}", number + 1000),
                ok: number * 10,
                ok_by_second: vec![number; 10],
                ..EndpointUse::default()
            };
            work.endpoints = (1..=count).map(use_of).collect();
            throughput_of_endpoints(work, 100).map(|figure| (figure.description.clone(), figure.inline("f")))
        };
        let (words, lines) = drawn(3).unwrap();
        assert!(words.starts_with("3 endpoints; on average between"), "{words}");
        assert_eq!(lines.matches("class=\"name").count(), 3);
        let (words, lines) = drawn(40).unwrap();
        assert_eq!(lines.matches("class=\"name").count(), MOST_LINES);
        assert!(
            lines.contains("1001<") && lines.contains("1040<") && words.ends_with("least and most."),
            "{words}"
        );
        assert!(drawn(1).is_none());
    }
}
