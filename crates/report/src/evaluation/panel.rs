//! Cells put together by load, and what stands for a load where there is room for one level only.

use tidemark_judge::evaluation::{Assessment, Cell, Comparison, Knee, Metric, compared_arms, shown};
use tidemark_measure::axis::{Axis, Value};
pub(super) use tidemark_measure::evaluation::level_label as level_words;
use tidemark_measure::evaluation::{Evaluation, Level, Load, number_on};
use tidemark_measure::record::{Run, Work};
use tidemark_measure::service_level::{Limit, Statistic};

/// Levels that are shown one by one in the main table, at most; of loads with more, one stands for all.
const FEW_LEVELS: usize = 3;

/// Everything that was measured of one load.
pub(super) struct Panel<'a> {
    /// Which one, from 1.
    pub(super) number: usize,
    /// The load's name, and what of it was measured, or empty.
    pub(super) load: &'a str,
    pub(super) subject: &'a str,
    /// The load in the record, if it is there.
    pub(super) record: Option<&'a Load>,
    /// Levels in the order in which they were assessed.
    pub(super) levels: Vec<&'a Level>,
    pub(super) cells: Vec<&'a Cell>,
    assessment: &'a Assessment,
    /// The arms in their order.
    arms: Vec<&'a str>,
}

/// Why a level stands for an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Best {
    /// There is no other.
    Only,
    /// It is the best within the service level.
    Within,
    /// It is the knee; no service level was asked for.
    Knee,
    /// It has the highest throughput.
    Peak,
    /// It has the highest throughput, but no level is within the service level.
    Outside,
}

impl Best {
    /// A few words for below the level.
    pub(super) fn words(self) -> &'static str {
        match self {
            Best::Only => "",
            Best::Within => "within the service level",
            Best::Knee => "the knee",
            Best::Peak => "highest throughput",
            Best::Outside => "✕ none is within the service level",
        }
    }
}

/// Levels of which only one axis differs, by that axis from low to high.
pub(super) struct Ladder<'a> {
    /// The axis: `workers`.
    pub(super) axis: &'a str,
    /// The values of all other axes: `block_size 4 KiB`, or empty.
    pub(super) others: String,
    /// Number, name and level.
    pub(super) steps: Vec<(f64, &'a Value, &'a Level)>,
}

/// All loads of an assessment, in its order.
pub(super) fn panels<'a>(evaluation: &'a Evaluation, assessment: &'a Assessment) -> Vec<Panel<'a>> {
    let mut panels: Vec<Panel<'a>> = Vec::new();
    let arms: Vec<&str> = compared_arms(evaluation).into_iter().map(|arm| arm.name.as_str()).collect();
    for cell in &assessment.cells {
        let same = |panel: &Panel<'_>| panel.load == cell.load && panel.subject == cell.subject;
        let index = panels.iter().position(same).unwrap_or_else(|| {
            panels.push(Panel {
                number: panels.len() + 1,
                load: &cell.load,
                subject: &cell.subject,
                record: evaluation.loads.iter().find(|load| load.name == cell.load),
                levels: Vec::new(),
                cells: Vec::new(),
                assessment,
                arms: arms.clone(),
            });
            panels.len() - 1
        });
        let panel = &mut panels[index];
        if !panel.levels.contains(&&cell.level) {
            panel.levels.push(&cell.level);
        }
        if !panel.arms.contains(&cell.arm.as_str()) {
            panel.arms.push(&cell.arm);
        }
        panel.cells.push(cell);
    }
    panels
}

impl<'a> Panel<'a> {
    /// The load's name, with what of it was measured.
    pub(super) fn title(&self) -> String {
        if self.subject.is_empty() { self.load.into() } else { format!("{}, {}", self.load, self.subject) }
    }

    /// The title with the level.
    pub(super) fn title_at(&self, level: &Level) -> String {
        let words = level_words(level);
        if words.is_empty() { self.title() } else { format!("{}, {words}", self.title()) }
    }

    /// The arms with their places, which are their colours: the same ones in all figures.
    pub(super) fn arms(&self) -> impl Iterator<Item = (usize, &'a str)> + '_ {
        self.arms.iter().copied().enumerate()
    }

    /// What was measured of an arm at a level.
    pub(super) fn cell(&self, arm: &str, level: &Level) -> Option<&'a Cell> {
        self.cells.iter().copied().find(|cell| cell.arm == arm && &cell.level == level)
    }

    /// How an arm compares with the baseline at a level.
    pub(super) fn comparison(&self, arm: &str, level: &Level, metric: Metric) -> Option<&'a Comparison> {
        self.assessment.comparisons.iter().find(|one| {
            one.arm == arm
                && one.load == self.load
                && one.subject == self.subject
                && &one.level == level
                && one.metric == metric
        })
    }

    /// The knees of its arms.
    pub(super) fn knees(&self) -> impl Iterator<Item = &'a Knee> + '_ {
        self.assessment.knees.iter().filter(|knee| knee.load == self.load && knee.subject == self.subject)
    }

    /// Whether a level is an arm's knee.
    pub(super) fn is_knee(&self, arm: &str, level: &Level) -> bool {
        self.knees().any(|knee| knee.arm == arm && is_at(knee, level))
    }

    /// The level that stands for an arm: its knee, or else that of the highest throughput; and why it does.
    pub(super) fn best(&self, arm: &str) -> Option<(&'a Level, Best)> {
        if let [only] = self.levels.as_slice() {
            return Some((*only, Best::Only));
        }
        let knee = self.knees().find(|knee| knee.arm == arm);
        let at_knee = self.levels.iter().find(|level| self.is_knee(arm, level));
        if let Some(level) = at_knee {
            let is_within = knee.is_some_and(|knee| !knee.service_level.is_empty());
            return Some((level, if is_within { Best::Within } else { Best::Knee }));
        }
        let measured = self.levels.iter().filter_map(|level| Some((*level, self.cell(arm, level)?)));
        let peak = measured.max_by(|one, other| one.1.throughput.mean.total_cmp(&other.1.throughput.mean))?;
        let is_outside = knee.is_some_and(|knee| !knee.service_level.is_empty() && knee.level.is_none());
        Some((peak.0, if is_outside { Best::Outside } else { Best::Peak }))
    }

    /// The level that stands for the load, as in the headline.
    pub(super) fn shown(&self) -> Option<&'a Level> {
        shown(&self.cells, &self.assessment.knees)
    }

    /// The levels that the main table shows.
    pub(super) fn main_levels(&self) -> Vec<&'a Level> {
        if self.levels.len() <= FEW_LEVELS { self.levels.clone() } else { self.shown().into_iter().collect() }
    }

    /// Its levels as ladders along the axis of numbers with the most values; none when nothing is varied.
    pub(super) fn ladders(&self) -> Vec<Ladder<'a>> {
        let Some(axis) = self.main_axis() else { return Vec::new() };
        let mut ladders: Vec<Ladder<'a>> = Vec::new();
        for level in &self.levels {
            let Some(Axis { value, .. }) = level.iter().find(|own| own.name == axis) else { continue };
            let Some(number) = value.number() else { continue };
            let others = level.iter().filter(|own| own.name != axis).map(Axis::label);
            let others = others.collect::<Vec<_>>().join(", ");
            let step = (number, value, *level);
            match ladders.iter_mut().find(|ladder| ladder.others == others) {
                Some(ladder) => ladder.steps.push(step),
                None => ladders.push(Ladder { axis, others, steps: vec![step] }),
            }
        }
        for ladder in &mut ladders {
            ladder.steps.sort_by(|left, right| left.0.total_cmp(&right.0));
        }
        ladders.retain(|ladder| ladder.steps.len() > 1);
        ladders
    }

    /// The axis that has numbers only and the most of them: at least two.
    fn main_axis(&self) -> Option<&'a str> {
        let first = self.levels.first()?;
        let values = |axis: &str| {
            let all = self.levels.iter().filter_map(|level| level.iter().find(|own| own.name == axis));
            let mut values: Vec<&Value> = all.map(|own| &own.value).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        let counted = first.iter().map(|own| (values(&own.name), own.name.as_str()));
        let numeric = counted
            .filter(|(values, _)| values.len() > 1 && values.iter().all(|value| value.number().is_some()));
        numeric.max_by_key(|(values, _)| values.len()).map(|(_, name)| name)
    }

    /// The condition of the service level that is drawn, and what it says.
    pub(super) fn limit(&self) -> Option<(&'a Limit, &'a str)> {
        let service_level = self.record?.service_level.as_ref()?;
        Some((service_level.limits.first()?, service_level.text.as_str()))
    }
}

/// The statistic of a cell that a limit is about, nanoseconds: of its operation if it names one. Without a limit the
/// 99th percentile.
pub(super) fn limited(cell: &Cell, limit: Option<&Limit>) -> Option<f64> {
    let statistic = limit.map_or(Statistic::Quantile(0.99), |limit| limit.statistic);
    let name = limit.map_or("", |limit| limit.operation.as_str());
    let own = cell.operations.iter().find(|operation| !name.is_empty() && operation.label == name);
    let estimate = match (statistic, own) {
        (Statistic::Mean, Some(own)) => own.mean_ns.as_ref(),
        (Statistic::Mean, None) => cell.mean_ns.as_ref(),
        (Statistic::Quantile(share), Some(own)) if is(share, 0.95) => own.p95_ns.as_ref(),
        (Statistic::Quantile(share), Some(own)) if is(share, 0.99) => own.p99_ns.as_ref(),
        (Statistic::Quantile(share), None) if is(share, 0.95) => cell.p95_ns.as_ref(),
        (Statistic::Quantile(share), None) if is(share, 0.99) => cell.p99_ns.as_ref(),
        (Statistic::Quantile(share), None) if is(share, 0.5) => cell.p50_ns.as_ref(),
        (Statistic::Quantile(share), _) => {
            return (!cell.response.is_empty()).then(|| cell.response.quantile(share) as f64);
        }
    };
    estimate.map(|estimate| estimate.mean)
}

/// What a limit's statistic is called: `p95`, `mean`.
pub(super) fn statistic(limit: Option<&Limit>) -> String {
    match limit.map(|limit| limit.statistic) {
        Some(Statistic::Mean) => "mean".into(),
        Some(Statistic::Quantile(share)) => crate::text::percentile_name(share),
        None => "p99".into(),
    }
}

fn is(share: f64, other: f64) -> bool {
    (share - other).abs() < 1e-9
}

fn is_at(knee: &Knee, level: &Level) -> bool {
    let own = number_on(level, &knee.axis);
    own.is_some() && own == knee.level
}

/// The run of a cell whose throughput is in the middle.
pub(super) fn representative<'a>(cell: &Cell, runs: &'a [Run]) -> Option<&'a Run> {
    let mut order: Vec<(f64, u64)> =
        cell.throughput.values.iter().copied().zip(cell.runs.iter().copied()).collect();
    order.sort_by(|left, right| left.0.total_cmp(&right.0));
    let chosen =
        order.get(order.len().saturating_sub(1) / 2).map(|(_, run)| *run).or(cell.runs.first().copied())?;
    runs.iter().find(|run| run.id == chosen)
}

/// The work of a run that did most of what a cell measured: its stage and its place there.
pub(super) fn busiest_work(run: &Run, cell: &Cell) -> Option<(usize, usize)> {
    let belongs = |stage: &&(usize, &tidemark_measure::record::Stage)| {
        let (_, stage) = stage;
        let named = cell.subject.is_empty() || stage.name == cell.subject || stage.id == cell.subject;
        let axes =
            stage.cell.as_ref().is_none_or(|own| own.axes.iter().all(|axis| cell.level.contains(axis)));
        named && axes
    };
    let stages: Vec<_> = run.stages.iter().enumerate().collect();
    let named = stages.iter().filter(belongs);
    let works = named.flat_map(|(index, stage)| {
        stage.works.iter().enumerate().map(move |(number, work)| (*index, number, work))
    });
    let counted = works.filter(|(_, _, work)| work.kind.measures());
    let total =
        |work: &Work| work.operations.iter().fold(0u64, |sum, one| sum.saturating_add(one.tally.total()));
    counted.max_by_key(|(_, _, work)| total(work)).map(|(stage, number, _)| (stage, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Shape};
    use tidemark_judge::evaluation::assess;
    use tidemark_measure::histogram::Histogram;

    fn assessed() -> (Evaluation, Vec<Run>, Assessment) {
        let (evaluation, runs) = sample::evaluation(&Shape { seconds: 4, levels: 6, ..sample::usual() });
        let assessment = assess(&evaluation, &runs);
        (evaluation, runs, assessment)
    }

    #[test]
    fn the_knee_of_the_baseline_stands_for_a_load_with_many_levels() {
        let (evaluation, _, mut assessment) = assessed();
        let all = panels(&evaluation, &assessment);
        assert_eq!(all.iter().map(Panel::title).collect::<Vec<_>>(), ["small-objects", "random-write"]);
        assert_eq!(all[0].main_levels(), [&Level::new()]);
        assert!(all[0].ladders().is_empty());
        let knee = all[1].knees().find(|knee| knee.arm == "baseline").unwrap().level.unwrap();
        assert_eq!(all[1].shown().unwrap()[0].value.number(), Some(knee));
        assert_eq!(all[1].main_levels().len(), 1);
        assessment.knees.clear();
        let without = panels(&evaluation, &assessment);
        assert_eq!(level_words(without[1].shown().unwrap()), "workers 160", "the highest");
        // A level that an arm lacks does not stand for the load.
        assessment.cells.retain(|cell| cell.arm == "baseline" || level_words(&cell.level) != "workers 160");
        let lacking = panels(&evaluation, &assessment);
        assert_eq!(level_words(lacking[1].shown().unwrap()), "workers 80");
    }

    #[test]
    fn further_axes_make_ladders_of_their_own() {
        let (evaluation, _, mut assessment) = assessed();
        for (index, cell) in assessment.cells.iter_mut().filter(|cell| !cell.level.is_empty()).enumerate() {
            cell.level.push(Axis::bytes("block_size", if index % 6 < 3 { 4 << 10 } else { 1 << 20 }));
        }
        let all = panels(&evaluation, &assessment);
        let ladders = all[1].ladders();
        assert_eq!(ladders.len(), 2);
        assert!(
            ladders
                .iter()
                .all(|ladder| ladder.axis == "workers" && ladder.steps.is_sorted_by(|a, b| a.0 < b.0))
        );
        assert_eq!(ladders[1].others, "1 MiB");
    }

    #[test]
    fn a_limit_is_about_its_statistic_and_its_operation() {
        let (_, _, assessment) = assessed();
        let cell = &assessment.cells[0];
        let limit =
            |operation: &str, statistic| Limit { operation: operation.into(), statistic, ..Limit::default() };
        let p95 = limit("", Statistic::Quantile(0.95));
        assert_eq!(limited(cell, Some(&p95)), cell.p95_ns.as_ref().map(|estimate| estimate.mean));
        let read = limit("read", Statistic::Mean);
        let own = cell.operations.iter().find(|one| one.label == "read").unwrap();
        assert_eq!(limited(cell, Some(&read)), own.mean_ns.as_ref().map(|estimate| estimate.mean));
        let rare = limit("", Statistic::Quantile(0.999));
        assert_eq!(limited(cell, Some(&rare)), Some(cell.response.quantile(0.999) as f64));
        let imported = Cell { response: Histogram::new(), ..cell.clone() };
        assert_eq!(limited(&imported, Some(&rare)), None);
        assert_eq!((statistic(Some(&rare)).as_str(), statistic(None).as_str()), ("p99.9", "p99"));
    }

    #[test]
    fn the_run_in_the_middle_stands_for_its_cell() {
        let (_, runs, assessment) = assessed();
        let cell = &assessment.cells[0];
        let run = representative(cell, &runs).unwrap();
        let place = cell.runs.iter().position(|id| *id == run.id).unwrap();
        let mut values = cell.throughput.values.clone();
        values.sort_by(f64::total_cmp);
        assert_eq!(cell.throughput.values[place], values[1]);
        assert_eq!(busiest_work(run, cell), Some((1, 0)));
    }
}
