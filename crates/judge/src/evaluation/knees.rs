//! The best load within the service level, arm by arm, and what happens around it.

use super::cells::{Measured, is_unreached, number};
use super::service::Check;
use super::{Knee, words};
use tidemark_measure::evaluation::{Evaluation, Load};
use tidemark_measure::units;

/// The axes that are load intensities.
const AXES: [&str; 4] = ["workers", "rate", "depth", "clients"];

/// Throughputs that differ by less than this share are equal, and by more where repeats vary more.
const NOISE_LEAST: f64 = 0.01;

/// One level of an arm under a load.
struct Point<'p, 'a> {
    level: f64,
    measured: &'p Measured<'a>,
}

impl Point<'_, '_> {
    fn throughput(&self) -> f64 {
        self.measured.cell.throughput.mean
    }

    fn within(&self) -> bool {
        self.measured.cell.meets == Some(true)
    }

    /// Whether its throughput is as good as that of the best, noise aside.
    fn equals(&self, best: &Point<'_, '_>) -> bool {
        let spread = |point: &Point<'_, '_>| point.measured.cell.throughput.variation;
        let noise = NOISE_LEAST.max(spread(self)).max(spread(best));
        self.throughput() >= best.throughput() * (1.0 - noise)
    }
}

/// The knees of all arms under all loads whose levels vary in one intensity, in the order of loads, subjects and arms.
pub(super) fn find(evaluation: &Evaluation, measured: &[Measured<'_>]) -> Vec<Knee> {
    let mut knees = Vec::new();
    for group in
        measured.chunk_by(|one, other| one.load == other.load && one.cell.subject == other.cell.subject)
    {
        for arm in 0..evaluation.arms.len() {
            let own: Vec<_> = group.iter().filter(|one| one.arm == arm).collect();
            knees.extend(own.first().and_then(|one| knee(&evaluation.loads[one.load], &own)));
        }
    }
    knees
}

fn knee(load: &Load, own: &[&Measured<'_>]) -> Option<Knee> {
    // A search may end at its first level.
    let axis = varied(own).or_else(|| Some(load.search.as_ref()?.axis.clone()))?;
    let service_level = load.service_level.as_ref().map_or("", |level| &level.text);
    let value = |one: &Measured<'_>| {
        let (name, value) = one.cell.level.iter().find(|(name, _)| *name == axis)?;
        number(name, value)
    };
    let points = own.iter().map(|one| Some(Point { level: value(one)?, measured: one }));
    let mut points = points.collect::<Option<Vec<_>>>()?;
    points.sort_by(|left, right| left.level.total_cmp(&right.level));
    let judged = points.iter().any(|point| point.measured.cell.meets.is_some());
    let first_outside = points.iter().position(|point| !point.within()).filter(|_| judged);
    let within = if judged { &points[..first_outside.unwrap_or(points.len())] } else { &points[..] };
    // A search asks for the highest load, whatever it brings.
    let given =
        judged && (load.search.is_some() || axis == "rate" || points.iter().any(|point| point.measured.open));
    let level = if given { within.last() } else { lowest_best(within) };
    let peak = highest(&points)?;
    let seen = Around { axis: &axis, points: &points, level, within: within.last().filter(|_| judged), peak };
    Some(Knee {
        arm: own[0].cell.arm.clone(),
        load: own[0].cell.load.clone(),
        subject: own[0].cell.subject.clone(),
        service_level: if judged { service_level.to_owned() } else { String::new() },
        level: level.map(|point| point.level),
        throughput: level.map_or(0.0, Point::throughput),
        highest_within: seen.within.map(|point| point.level),
        next: first_outside.map(|index| points[index].level),
        peak: (peak.level, peak.throughput()),
        levels: points.len(),
        story: if judged {
            seen.story_within(service_level, first_outside.map(|index| &points[index]))
        } else {
            seen.story_alone()
        },
        axis,
    })
}

/// The one axis that differs between levels, if it is an intensity and the only one.
fn varied(own: &[&Measured<'_>]) -> Option<String> {
    let first = &own.first()?.cell.level;
    let differs = |index: &usize| own.iter().any(|one| one.cell.level.get(*index) != first.get(*index));
    let same_length = own.iter().all(|one| one.cell.level.len() == first.len());
    let axes: Vec<usize> = (0..first.len()).filter(differs).collect();
    match axes.as_slice() {
        [one] if same_length => Some(first[*one].0.clone()).filter(|name| AXES.contains(&name.as_str())),
        _ => None,
    }
}

/// The point with the highest throughput; the lowest level of several.
fn highest<'p, 'q, 'a>(points: &'q [Point<'p, 'a>]) -> Option<&'q Point<'p, 'a>> {
    points.iter().rev().max_by(|left, right| left.throughput().total_cmp(&right.throughput()))
}

/// The lowest level whose throughput is as good as the highest.
fn lowest_best<'p, 'q, 'a>(points: &'q [Point<'p, 'a>]) -> Option<&'q Point<'p, 'a>> {
    let best = highest(points)?;
    points.iter().find(|point| point.equals(best))
}

/// A knee and what is around it, to be told of.
struct Around<'s, 'p, 'a> {
    axis: &'s str,
    points: &'s [Point<'p, 'a>],
    level: Option<&'s Point<'p, 'a>>,
    within: Option<&'s Point<'p, 'a>>,
    peak: &'s Point<'p, 'a>,
}

impl Around<'_, '_, '_> {
    fn at(&self, point: &Point<'_, '_>) -> String {
        words::load_level(self.axis, point.level)
    }

    /// With a service level: the knee, the highest level within, the first outside, the peak, and what comes after.
    fn story_within(&self, text: &str, outside: Option<&Point<'_, '_>>) -> Vec<String> {
        let named =
            if text.is_empty() { "the service level".into() } else { format!("the service level ({text})") };
        let Some(level) = self.level else {
            let lowest =
                self.points.first().map(|point| format!("{}: {}", self.at(point), outside_words(point)));
            let even = format!("Even the lowest load is outside {named}, {}.", lowest.unwrap_or_default());
            let peak =
                format!("The peak is {} at {}.", units::rate(self.peak.throughput()), self.at(self.peak));
            return vec![even, peak];
        };
        let is_peak = if level.level == self.peak.level { "; no level has more throughput" } else { "" };
        let is_highest = self.within.is_some_and(|within| within.level == level.level);
        let word = if is_highest { "highest" } else { "best" };
        let best = format!(
            "The {word} load within {named} is {}: {}{}{is_peak}.",
            self.at(level),
            units::rate(level.throughput()),
            limits(level).map(|text| format!(", {text}")).unwrap_or_default()
        );
        let higher = self.within.filter(|within| within.level > level.level).map(|within| {
            format!(
                "The service level is met up to {}, with {}: {}{}.",
                self.at(within),
                more_or_less(within.throughput() / level.throughput()),
                units::rate(within.throughput()),
                limits(within).map(|text| format!(", {text}")).unwrap_or_default()
            )
        });
        let outside = match outside {
            Some(point) => {
                let rate = units::rate(point.throughput());
                format!("The first load outside is {}: {}, {rate}.", self.at(point), outside_words(point))
            }
            None => "No load that was measured is outside: the limit lies higher.".into(),
        };
        let story = [Some(best), higher, Some(outside), self.peak_elsewhere(level), self.beyond(level)];
        story.into_iter().flatten().collect()
    }

    /// Without one: where throughput stops growing, and what comes after.
    fn story_alone(&self) -> Vec<String> {
        let (Some(level), Some(last)) = (self.level, self.points.last()) else { return Vec::new() };
        let latency = latency(level).map(|(name, ns)| format!(", {name} {}", words::duration(ns)));
        let figures = format!("{}{}", units::rate(level.throughput()), latency.unwrap_or_default());
        let first = if level.level < last.level {
            format!("Throughput no longer grows after {}: {figures}.", self.at(level))
        } else {
            format!("Throughput still grows at the highest load, {}: {figures}.", self.at(level))
        };
        [Some(first), self.peak_elsewhere(level), self.beyond(level)].into_iter().flatten().collect()
    }

    /// Where the peak is, if it is not at the knee.
    fn peak_elsewhere(&self, level: &Point<'_, '_>) -> Option<String> {
        let (peak, rate) = (self.peak, units::rate(self.peak.throughput()));
        (peak.level != level.level).then(|| {
            let more = more_or_less(peak.throughput() / level.throughput());
            let repeated = |point: &Point<'_, '_>| point.measured.cell.throughput.values.len() > 1;
            let noise = match level.equals(peak) {
                false => "",
                true if repeated(level) || repeated(peak) => ", which is within the noise",
                true => ", which single runs cannot tell from noise",
            };
            format!("The peak is {rate} at {}: {more} than at {}{noise}.", self.at(peak), self.at(level))
        })
    }

    /// From the knee, or the peak if that is higher up, to the highest load.
    fn beyond(&self, level: &Point<'_, '_>) -> Option<String> {
        let from = if self.peak.level > level.level { self.peak } else { level };
        let last = self.points.last().filter(|last| last.level > from.level)?;
        let change = last.throughput() / from.throughput() - 1.0;
        let course = match change {
            much if much <= -NOISE_LEAST => format!("falls by {} to", units::percent(-much)),
            much if much >= NOISE_LEAST => format!("grows by {} to", units::percent(much)),
            _ => "stays at".into(),
        };
        let latency = latency(from).zip(latency(last)).filter(|((one, _), (other, _))| one == other);
        let latency = latency.map(|((name, before), (_, after))| {
            let verb = if after >= before { "grows" } else { "falls" };
            let times =
                if before > 0.0 { format!(", {} x", words::ratio(after / before)) } else { String::new() };
            format!(
                ", while {name} {verb} from {} to {}{times}",
                words::duration(before),
                words::duration(after)
            )
        });
        Some(format!(
            "From {} to {} throughput {course} {}{}.",
            self.at(from),
            self.at(last),
            units::rate(last.throughput()),
            latency.unwrap_or_default()
        ))
    }
}

/// The condition that is closest to its limit, or furthest beyond.
fn tightest<'c>(point: &'c Point<'_, '_>) -> Option<&'c Check> {
    let checks = point.measured.checks.iter();
    checks.max_by(|left, right| left.use_of_limit().total_cmp(&right.use_of_limit()))
}

/// `p95 107 ms of 325 ms allowed`.
fn limits(point: &Point<'_, '_>) -> Option<String> {
    tightest(point).map(|check| {
        let [value, limit] = [check.value, check.limit].map(words::duration);
        format!("{} {value} of {limit} allowed", check.name)
    })
}

/// Why a point is outside.
fn outside_words(point: &Point<'_, '_>) -> String {
    let cell = &point.measured.cell;
    let beyond = tightest(point).is_some_and(|check| check.value > check.limit);
    match limits(point) {
        Some(limits) if beyond => limits,
        _ if point.measured.faults.iter().any(|finding| is_unreached(finding)) => {
            "the rate was not reached".into()
        }
        _ if cell.failed > 0 => {
            format!("{} of {} operations failed", units::count(cell.failed), units::count(cell.total))
        }
        _ if point.measured.open && !point.measured.checks.is_empty() => {
            "less was done than was asked for, and a queue grew".into()
        }
        _ => "its response times are not known".into(),
    }
}

/// The response time that is told of: that of the service level, or else the highest percentile that is known.
fn latency(point: &Point<'_, '_>) -> Option<(String, f64)> {
    let cell = &point.measured.cell;
    let known = [("p99", &cell.p99_ns), ("p95", &cell.p95_ns), ("mean", &cell.mean_ns)];
    let known = || known.into_iter().find_map(|(name, one)| Some((name.to_owned(), one.as_ref()?.mean)));
    tightest(point).map(|check| (check.name.clone(), check.value)).or_else(known)
}

/// `0.43 % less throughput`.
fn more_or_less(ratio: f64) -> String {
    let (share, word) = if ratio < 1.0 { (1.0 - ratio, "less") } else { (ratio - 1.0, "more") };
    format!("{} {word} throughput", units::percent(share))
}
