//! The best load within the service level, arm by arm, and what happens around it.

use super::cells::{Measured, is_unreached};
use super::service::Check;
use super::{Knee, Searched, words};
use crate::knee::{self, Answer, End, Seen, Side};
use tidemark_measure::axis::{Axis, Unit, Value};
use tidemark_measure::evaluation::{Evaluation, Load, Search, number_on};
use tidemark_measure::units;

/// Throughputs that differ by less than this share are equal, and by more where repeats vary more.
const NOISE_LEAST: f64 = 0.01;

/// Levels that contradict the others, at most as many as a sentence bears.
const CONTRADICTIONS_MOST: usize = 4;

/// One level of an arm under a load.
struct Point<'p, 'a> {
    /// Where it is on the axis of the knee.
    at: &'p Axis,
    level: f64,
    measured: &'p Measured<'a>,
}

impl Point<'_, '_> {
    fn throughput(&self) -> f64 {
        self.measured.cell.throughput.mean
    }

    fn side(&self) -> Side {
        match self.measured.cell.meets {
            Some(true) => Side::Within,
            Some(false) => Side::Outside,
            None => Side::Unclear,
        }
    }

    fn is_within(&self) -> bool {
        self.side() == Side::Within
    }

    fn runs(&self, side: Side) -> usize {
        self.measured.sides.iter().filter(|own| **own == side).count()
    }

    /// Whether its throughput is as good as that of the best, noise aside.
    fn equals(&self, best: &Point<'_, '_>) -> bool {
        let spread = |point: &Point<'_, '_>| point.measured.cell.throughput.variation;
        let noise = NOISE_LEAST.max(spread(self)).max(spread(best));
        self.throughput() >= best.throughput() * (1.0 - noise)
    }
}

/// Gives the levels of searches the sides that the search puts them on: all runs decide together where the knee is. A level
/// whose own runs all say the opposite is on neither side.
pub(super) fn settle(evaluation: &Evaluation, measured: &mut [Measured<'_>]) {
    for group in
        measured.chunk_by_mut(|one, other| one.load == other.load && one.cell.subject == other.cell.subject)
    {
        let Some(search) = group.first().and_then(|one| evaluation.loads[one.load].search.as_ref()) else {
            continue;
        };
        for arm in 0..evaluation.arms.len() {
            let (answer, _) = searched(search, group.iter().filter(|one| one.arm == arm));
            for one in group.iter_mut().filter(|one| one.arm == arm) {
                let level = number_on(&one.cell.level, &search.axis);
                one.cell.meets = match level {
                    Some(level) if answer.knee.is_some_and(|knee| level <= knee) => {
                        one.sides.contains(&Side::Within).then_some(true)
                    }
                    Some(level) if answer.beyond.is_some_and(|beyond| level >= beyond) => {
                        one.sides.contains(&Side::Outside).then_some(false)
                    }
                    _ => None,
                };
            }
        }
    }
}

/// What a search comes to that saw these cells, and the number of its runs.
fn searched<'m, 'a: 'm>(search: &Search, own: impl Iterator<Item = &'m Measured<'a>>) -> (Answer, usize) {
    let sights = |one: &'m Measured<'a>| {
        let level = number_on(&one.cell.level, &search.axis);
        level.into_iter().flat_map(|level| one.sides.iter().map(move |side| Seen { level, side: *side }))
    };
    let seen: Vec<Seen> = own.flat_map(sights).collect();
    (knee::answer(search, &seen), seen.len())
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
    let points = own.iter().map(|one| {
        let at = one.cell.level.iter().find(|own| own.name == axis)?;
        Some(Point { at, level: at.value.number()?, measured: one })
    });
    let mut points = points.collect::<Option<Vec<_>>>()?;
    points.sort_by(|left, right| left.level.total_cmp(&right.level));
    let judged = load.service_level.is_some() && points.iter().any(|point| !point.measured.sides.is_empty());
    let sides: Vec<Side> = points.iter().map(Point::side).collect();
    let below = if judged { knee::divide(&sides) } else { points.len() };
    let first_outside = (below..points.len()).find(|index| judged && sides[*index] == Side::Outside);
    let within = points[..below].iter().filter(|point| !judged || point.is_within()).collect::<Vec<_>>();
    // A search asks for the highest load, whatever it brings.
    let is_rate = |point: &Point<'_, '_>| point.at.value.unit() == Some(Unit::OperationsPerSecond);
    let open = |point: &Point<'_, '_>| is_rate(point) || point.measured.open;
    let given = judged && (load.search.is_some() || points.iter().any(open));
    let level = if given { within.last().copied() } else { lowest_best(&within) };
    let peak = highest(points.iter())?;
    let search = load.search.as_ref().filter(|_| judged).map(|search| {
        let (answer, runs) = searched(search, own.iter().copied());
        let most_runs = Some(search.runs).filter(|runs| *runs > 0);
        Searched { runs: runs as u64, most_runs, between: answer.between, end: answer.end }
    });
    let highest_within = within.last().copied().filter(|_| judged);
    let seen =
        Around { points: &points, below, level, within: highest_within, peak, search: search.as_ref() };
    Some(Knee {
        arm: own[0].cell.arm.clone(),
        load: own[0].cell.load.clone(),
        subject: own[0].cell.subject.clone(),
        service_level: if judged { service_level.to_owned() } else { String::new() },
        level: level.map(|point| point.level),
        throughput: level.map_or(0.0, Point::throughput),
        highest_within: seen.within.map(|point| point.level),
        next: first_outside.map(|index| points[index].level),
        search: search.clone(),
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

/// The one axis that differs between levels, if it is the only one and an intensity: a count or a rate.
fn varied(own: &[&Measured<'_>]) -> Option<String> {
    let first = &own.first()?.cell.level;
    let differs = |index: &usize| own.iter().any(|one| one.cell.level.get(*index) != first.get(*index));
    let same_length = own.iter().all(|one| one.cell.level.len() == first.len());
    let axes: Vec<usize> = (0..first.len()).filter(differs).collect();
    match axes.as_slice() {
        [one] if same_length => {
            let axis = &first[*one];
            let is_intensity = matches!(axis.value.unit()?, Unit::Count | Unit::OperationsPerSecond);
            is_intensity.then(|| axis.name.clone())
        }
        _ => None,
    }
}

/// The point with the highest throughput; the lowest level of several.
fn highest<'p, 'q, 'a: 'q>(
    points: impl DoubleEndedIterator<Item = &'q Point<'p, 'a>>,
) -> Option<&'q Point<'p, 'a>>
where
    'p: 'q,
{
    points.rev().max_by(|left, right| left.throughput().total_cmp(&right.throughput()))
}

/// The lowest level whose throughput is as good as the highest.
fn lowest_best<'p, 'q, 'a>(points: &[&'q Point<'p, 'a>]) -> Option<&'q Point<'p, 'a>> {
    let best = highest(points.iter().copied())?;
    points.iter().find(|point| point.equals(best)).copied()
}

/// A knee and what is around it, to be told of.
struct Around<'s, 'p, 'a> {
    points: &'s [Point<'p, 'a>],
    /// How many of them are below the knee, or at it.
    below: usize,
    level: Option<&'s Point<'p, 'a>>,
    within: Option<&'s Point<'p, 'a>>,
    peak: &'s Point<'p, 'a>,
    search: Option<&'s Searched>,
}

impl Around<'_, '_, '_> {
    fn at(&self, point: &Point<'_, '_>) -> String {
        words::load_level(point.at)
    }

    /// With a service level: the knee, the highest level within, the first outside, the peak, and what comes after.
    fn story_within(&self, text: &str, outside: Option<&Point<'_, '_>>) -> Vec<String> {
        let named =
            if text.is_empty() { "the service level".into() } else { format!("the service level ({text})") };
        let Some(level) = self.level else {
            let even = match self.points.first() {
                Some(first) if first.side() == Side::Outside => {
                    format!(
                        "Even the lowest load is outside {named}, {}: {}.",
                        self.at(first),
                        outside_words(first)
                    )
                }
                Some(first) => format!(
                    "Even of the lowest load, {}, nobody can tell whether it is within {named}.",
                    self.at(first)
                ),
                None => String::new(),
            };
            let peak =
                format!("The peak is {} at {}.", units::rate(self.peak.throughput()), self.at(self.peak));
            return [vec![even], self.search_words(), self.contradictions(), vec![peak]].concat();
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
                Some(format!(
                    "The first load outside is {}: {}, {rate}.",
                    self.at(point),
                    outside_words(point)
                ))
            }
            // A search says itself why it ended.
            None if self.search.is_some() => None,
            None if self.points.iter().all(Point::is_within) => {
                Some("All measured loads are within it: the limit is higher.".into())
            }
            None => Some("No higher load is known to be outside.".into()),
        };
        let first = [Some(best), higher, outside].into_iter().flatten().collect();
        let last = [self.peak_elsewhere(level), self.beyond(level)].into_iter().flatten().collect();
        [first, self.search_words(), self.contradictions(), last].concat()
    }

    /// What a search did, how sure it is, and why it ended.
    fn search_words(&self) -> Vec<String> {
        let Some(search) = self.search else { return Vec::new() };
        // Of whole numbers the knee is between two of them.
        let level = |value: f64, whole: fn(f64) -> f64| match self.points.first() {
            Some(Point { at: Axis { name, value: Value::Number { unit, .. } }, .. }) => {
                let number = if *unit == Unit::Count { whole(value) } else { value };
                words::load_level(&Axis { name: name.clone(), value: Value::Number { number, unit: *unit } })
            }
            _ => units::count(value as u64),
        };
        let runs = match search.runs {
            1 => "one run".to_owned(),
            runs => format!("{} runs", units::count(runs)),
        };
        let between = || {
            let (low, high) = search.between;
            format!("between {} and {}", level(low, f64::floor), level(high, f64::ceil))
        };
        let on_sides = || {
            let count = |point: &Point<'_, '_>, side, word: &str| {
                format!(
                    "{} was {word} in {} of {} runs",
                    self.at(point),
                    point.runs(side),
                    point.measured.sides.len()
                )
            };
            let within = self.within.map(|point| count(point, Side::Within, "within"));
            let outside = self.points[self.below..].iter().find(|point| point.side() == Side::Outside);
            let outside = outside.map(|point| count(point, Side::Outside, "outside"));
            within.into_iter().chain(outside).collect::<Vec<_>>().join(", ")
        };
        let sentence = match search.end {
            End::Found => {
                format!("After {runs} the limit is {} with 95 % probability: {}.", between(), on_sides())
            }
            End::Top => {
                format!("After {runs} even the highest load of the search is within: the limit is higher.")
            }
            End::Bottom => format!("After {runs} the limit is below the lowest load of the search."),
            End::Unclear(from) => format!(
                "The search ended after {runs} because nobody can tell from {} on: what limited these runs was not the \
                 storage alone (their findings say what did). To look further, use more load generators or processors.",
                level(from, f64::round)
            ),
            End::Budget => format!(
                "The search used up its {runs} before it could tell more exactly: the limit is {} with 95 % probability. \
                 Longer runs vary less; `runs` allows more of them.",
                between()
            ),
            End::Open => format!(
                "The search was not finished: after {runs} the limit is {} with 95 % probability.",
                between()
            ),
        };
        vec![sentence]
    }

    /// Levels and runs that are not where the others say that they should be.
    fn contradictions(&self) -> Vec<String> {
        let (below, above) = self.points.split_at(self.below);
        if self.search.is_some() {
            let odd = |point: &Point<'_, '_>, side, word: &str| {
                let (count, all) = (point.runs(side), point.measured.sides.len());
                (count > 0).then(|| format!("{} was {word} in {count} of {all} runs", self.at(point)))
            };
            let odd: Vec<String> = (below.iter().filter_map(|point| odd(point, Side::Outside, "outside")))
                .chain(above.iter().filter_map(|point| odd(point, Side::Within, "within")))
                .collect();
            let more = odd.len().saturating_sub(CONTRADICTIONS_MOST);
            let mut told = odd;
            told.truncate(CONTRADICTIONS_MOST);
            told.extend((more > 0).then(|| format!("and so on at {more} more")));
            return match told.is_empty() {
                true => Vec::new(),
                false => vec![format!("Runs that contradict the others: {}.", told.join("; "))],
            };
        }
        let place = |point: &Point<'_, '_>| format!("{} ({})", self.at(point), outside_words(point));
        let outside: Vec<String> =
            below.iter().filter(|point| point.side() == Side::Outside).map(place).collect();
        let met: Vec<String> = above
            .iter()
            .filter(|point| point.is_within())
            .map(|point| {
                format!(
                    "{}{}",
                    self.at(point),
                    limits(point).map(|text| format!(" ({text})")).unwrap_or_default()
                )
            })
            .collect();
        let advice = "measure again, with more repeats, before relying on it";
        let mut said = Vec::new();
        if !outside.is_empty() {
            said.push(format!(
                "The levels contradict each other: outside although higher loads are within: {}; {advice}.",
                outside.join("; ")
            ));
        }
        if !met.is_empty() {
            said.push(format!(
                "The levels contradict each other: within although lower loads are outside: {}; {advice}.",
                met.join("; ")
            ));
        }
        let unclear =
            |point: &&Point<'_, '_>| point.side() == Side::Unclear && !point.measured.sides.is_empty();
        let unclear: Vec<String> =
            self.points.iter().filter(unclear).map(|point| unclear_words(&self.at(point), point)).collect();
        if !unclear.is_empty() {
            said.push(format!("Whether these loads are within cannot be told: {}.", unclear.join("; ")));
        }
        said
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
            "less was done than requested, and a queue grew".into()
        }
        _ => "its response times are unknown".into(),
    }
}

/// Why nobody can tell on which side a level is: `400 op/s offered (2 of 3 runs within, p95 20.0 ms to 300 ms of 60.0 ms allowed)`.
fn unclear_words(at: &str, point: &Point<'_, '_>) -> String {
    let all = point.measured.sides.len();
    let spread = tightest(point).map(|check| {
        let (low, high) = check.range();
        let [low, high, limit] = [low, high, check.limit].map(words::duration);
        format!(", {} {low} to {high} of {limit} allowed", check.name)
    });
    let spread = spread.unwrap_or_default();
    match point.runs(Side::Unclear) {
        0 => format!("{at} ({} of {all} runs within{spread})", point.runs(Side::Within)),
        count => format!(
            "{at} (in {count} of {all} runs something other than the storage was the limit, or response times are unknown)"
        ),
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
