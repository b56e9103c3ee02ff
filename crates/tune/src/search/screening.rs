//! The first step of a search: which settings matter, and which values fail with whatever else is set.
//!
//! A run outside the service level has no value to tell effects by. It is left out, and a value that fails in all of its runs gets no
//! effect: the design is carried out again with one that works in its place, so that it does not hide what the others do.

use super::{Missing, SCREENING_SHARE, Search, baselines, mean};
use crate::conclusion::{End, Failing, Phase, Standing};
use crate::effects::{Effect, Effects, Verdict, effects};
use crate::goal::Goal;
use tidemark_judge::statistics::t_quantile;
use tidemark_measure::tuning::{Configuration, Domain, Objective};

/// What settings survive the screening: effects that chance would make less often than this.
const SURVIVES: f64 = 0.1;

/// At most so many.
pub(super) const SURVIVORS: usize = 6;

/// How often chance alone may make the best of all that was measured seem better than the baseline: seldom, for effects have been looked at
/// before, and what it seems is to be proven.
const BEATS: f64 = 0.01;

/// A value of which fewer runs failed is not said to fail always.
const FAILS: u32 = 3;

/// Of these, so many in which no other value is known to fail.
const FAILS_BY_ITSELF: u32 = 2;

impl Search<'_> {
    /// Carries the design out, as often as its share of the budget allows: the effects on each objective, none where the runs cannot tell
    /// settings apart. `None` if time was over before it was carried out once.
    pub(super) fn screen(
        &mut self,
        rows: Vec<Configuration>,
        pairs: u32,
    ) -> Result<Option<Vec<Effects>>, Missing> {
        self.measure(Phase::Screening, &rows, baselines(rows.len()).max(3))?;
        if self.is_cut_off {
            return Ok(None);
        }
        let (mut pass, mut screened) = (rows.clone(), rows);
        while !self.is_cut_off && self.find_failing(&screened) {
            pass = self.without_failing(&pass);
            let known = |configuration: &Configuration| self.standing(configuration).is_some();
            let new: Vec<_> = pass.iter().filter(|configuration| !known(configuration)).cloned().collect();
            if new.len() + baselines(new.len()) > self.left(pairs) {
                break;
            }
            self.measure(Phase::Screening, &new, baselines(new.len()))?;
            screened.extend(new);
        }
        let once = pass.len() + baselines(pass.len());
        let share = (SCREENING_SHARE * f64::from(self.problem.tuning.budget())) as usize;
        let times = share.saturating_sub(self.spent() as usize).min(self.left(pairs)) / once;
        self.repeat(&pass, times)?;
        let mut found = self.effects(&screened);
        let is_open = |effect: &Effect| effect.verdict == Verdict::CannotTell;
        let is_told = found.iter().any(Effects::shows_something)
            || self.unknown().next().is_some()
            || self.is_beaten()
            || !(found.is_empty() || found.iter().any(|found| found.effects.iter().any(is_open)));
        let more = self.left(pairs) / once;
        if !is_told && more > 0 {
            // That it cannot be told is no answer while there are runs left and nothing else to do with them.
            self.repeat(&pass, more)?;
            found = self.effects(&screened);
        }
        if let Some(first) = found.first() {
            self.conclusion.effects.clone_from(&first.effects);
            (self.conclusion.detectable, self.conclusion.curved) = (Some(first.detectable), first.curved);
        }
        if let Some(second) = found.get(1) {
            self.front.effects.clone_from(&second.effects);
            self.front.detectable = Some(second.detectable);
        }
        Ok(Some(found))
    }

    fn repeat(&mut self, pass: &[Configuration], times: usize) -> Result<(), Missing> {
        if times == 0 {
            return Ok(());
        }
        let again: Vec<_> = std::iter::repeat_n(pass, times).flatten().cloned().collect();
        self.measure(Phase::Screening, &again, times * baselines(pass.len()))
    }

    /// How the search ends with these effects, if nothing is left to be searched: nothing may matter, and nothing that was measured may be
    /// better than the baseline by more than chance explains.
    pub(super) fn end(&self, found: &[Effects]) -> Option<End> {
        let is_open = found.is_empty()
            || found.iter().any(Effects::shows_something)
            || self.unknown().next().is_some()
            || self.is_beaten();
        let all_equal = || {
            let all = found.iter().flat_map(|found| &found.effects);
            all.into_iter().all(|effect| effect.verdict == Verdict::Equal)
        };
        match is_open {
            true => None,
            false if all_equal() => Some(End::NothingMatters),
            false => Some(End::NothingShown),
        }
    }

    /// The settings that go on: the strongest of those whose effect is not likely to be chance; of two objectives, in turns. Where the ends
    /// of ranges do not tell what lies between them, the strongest in any case.
    pub(super) fn survivors(&self, found: &[Effects]) -> Vec<usize> {
        let is_hidden = !found.iter().any(Effects::shows_something) && self.is_beaten();
        let ranked = |found: &Effects| {
            let all = found.is_curved() || is_hidden;
            let mut strongest: Vec<Effect> = found.effects.clone();
            strongest.retain(|effect| all || effect.p.min(effect.suspected) < SURVIVES);
            strongest.sort_by(|one, other| other.score.abs().total_cmp(&one.score.abs()));
            strongest
        };
        let ranked: Vec<Vec<Effect>> = found.iter().map(ranked).collect();
        let most = ranked.iter().map(Vec::len).max().unwrap_or_default();
        let strongest = (0..most).flat_map(|rank| ranked.iter().filter_map(move |effects| effects.get(rank)));
        let all = 0..self.problem.tuning.space.settings.len();
        let untold = all.filter(|_| found.is_empty());
        let mut settings = Vec::new();
        for setting in strongest.map(|effect| effect.setting).chain(self.unknown()).chain(untold) {
            if !settings.contains(&setting) && settings.len() < SURVIVORS {
                settings.push(setting);
            }
        }
        settings
    }

    /// Ranges of which an end fails: what the values before it do is not known.
    fn unknown(&self) -> impl Iterator<Item = usize> {
        let settings = &self.problem.tuning.space.settings;
        let failing = self.conclusion.failing.iter().map(|failing| failing.setting);
        failing.filter(|setting| !matches!(settings[*setting].domain, Domain::Choice(_)))
    }

    /// Whether something that was measured is better than the baseline, by more than chance explains.
    fn is_beaten(&self) -> bool {
        let baseline = self.problem.tuning.space.baseline();
        (0..self.objectives()).any(|objective| self.rival(&baseline, Goal::Only(objective)).is_some())
    }

    /// The best that was measured, if it is better than a configuration by more than the noise makes the best of so many seem; of
    /// one that is outside the service level, in any case.
    pub(super) fn rival(&self, configuration: &Configuration, goal: Goal) -> Option<&Standing> {
        let known = |standing: &Standing| mean(&self.scores(standing, goal));
        let best = self.best_of(goal, &|_| true)?;
        let count = self.conclusion.standings.iter().filter(|standing| standing.is_eligible()).count();
        let Some(own) = self.standing(configuration).filter(|own| own.is_eligible()) else {
            return Some(best);
        };
        let (variance, freedom) = self.noise(goal)?;
        let t = t_quantile(1.0 - BEATS / count as f64, freedom)?;
        let runs = |standing: &Standing| 1.0 / standing.values.len() as f64;
        let unsure = (variance * (runs(own) + runs(best))).sqrt();
        (known(best) - known(own) > t * unsure.max(1e-9)).then_some(best)
    }

    /// Whether a configuration has a value that fails.
    pub(super) fn fails(&self, configuration: &Configuration) -> bool {
        self.conclusion.failing.iter().any(|failing| self.has(configuration, failing.setting, failing.value))
    }

    /// Whether a value means something in a configuration, and is in it.
    fn has(&self, configuration: &Configuration, setting: usize, value: f64) -> bool {
        configuration.0[setting] == value && self.problem.tuning.space.is_active(setting, configuration)
    }

    /// Looks for values that fail in all of their runs, in rows where nothing else is known to fail, while others of the same setting work;
    /// the one with the most such runs first. Whether there are new ones.
    fn find_failing(&mut self, screened: &[Configuration]) -> bool {
        let before = self.conclusion.failing.len();
        while let Some(failing) = self.next_failing(screened) {
            self.conclusion.failing.push(failing);
        }
        self.conclusion.failing.len() > before
    }

    fn next_failing(&self, screened: &[Configuration]) -> Option<Failing> {
        let space = &self.problem.tuning.space;
        let standings = &self.conclusion.standings;
        let values = |(setting, own): (usize, &tidemark_measure::tuning::Setting)| {
            own.levels().into_iter().map(move |value| (setting, value)).collect::<Vec<_>>()
        };
        let judged = |(setting, value): (usize, f64)| {
            let own = || standings.iter().filter(|one| self.has(&one.configuration, setting, value));
            let others = |one: &&Standing| !self.has(&one.configuration, setting, value);
            let works = |one: &Standing| one.is_eligible() && space.is_active(setting, &one.configuration);
            let runs: u32 = own().map(|one| one.outside).sum();
            let unexplained = own().filter(|one| screened.contains(&one.configuration));
            let unexplained = unexplained.filter(|one| !self.fails(&one.configuration));
            let unexplained: u32 = unexplained.map(|one| one.outside).sum();
            let fails = own().all(|one| one.values.is_empty())
                && standings.iter().filter(others).any(works)
                && runs >= FAILS
                && unexplained >= FAILS_BY_ITSELF;
            fails.then_some((unexplained, Failing { setting, value, runs }))
        };
        let mut all: Vec<(u32, Failing)> =
            space.settings.iter().enumerate().flat_map(values).filter_map(judged).collect();
        all.sort_by_key(|(unexplained, _)| std::cmp::Reverse(*unexplained));
        all.into_iter().next().map(|(_, failing)| failing)
    }

    /// Values that fail, with all runs that had them by now.
    pub(super) fn failing_by_now(&self) -> Vec<Failing> {
        let of = |failing: &Failing| {
            let own = self.conclusion.standings.iter();
            let own = own.filter(|one| self.has(&one.configuration, failing.setting, failing.value));
            Failing { runs: own.map(|one| one.outside).sum(), ..*failing }
        };
        self.conclusion.failing.iter().map(of).collect()
    }

    /// The same configurations without what fails, each once.
    fn without_failing(&self, pass: &[Configuration]) -> Vec<Configuration> {
        let mut all = Vec::new();
        for configuration in pass.iter().map(|configuration| self.working(configuration.clone())) {
            if !all.contains(&configuration) {
                all.push(configuration);
            }
        }
        all
    }

    /// A configuration with values that work in the place of those that fail: the baseline's if it works, or another end or word.
    pub(super) fn working(&self, mut configuration: Configuration) -> Configuration {
        let space = &self.problem.tuning.space;
        let is_within = self.standing(&space.baseline()).is_some_and(Standing::is_eligible);
        for Failing { setting, value, .. } in &self.conclusion.failing {
            if !self.has(&configuration, *setting, *value) {
                continue;
            }
            let own = &space.settings[*setting];
            let fails = |value: f64| {
                self.conclusion.failing.iter().any(|one| one.setting == *setting && one.value == value)
            };
            let others = own.levels().into_iter().filter(|value| !fails(*value));
            let baseline = Some(own.baseline).filter(|value| is_within && !fails(*value));
            if let Some(works) = baseline.into_iter().chain(others).next() {
                configuration.0[*setting] = works;
            }
        }
        space.settled(configuration)
    }

    /// The effects on each objective; none where the runs cannot tell settings apart.
    fn effects(&self, screened: &[Configuration]) -> Vec<Effects> {
        let all: Option<Vec<Effects>> =
            (0..self.objectives()).map(|objective| self.effects_on(objective, screened)).collect();
        all.unwrap_or_default()
    }

    fn effects_on(&self, objective: usize, screened: &[Configuration]) -> Option<Effects> {
        let goal = Goal::Only(objective);
        let mut all = Vec::new();
        let mut told: Vec<&Configuration> = Vec::new();
        for configuration in screened {
            if told.contains(&configuration) {
                continue;
            }
            told.push(configuration);
            // The baseline may be one of the design's rows: its other runs are of the same settings. Time may have been over before a row.
            let Some(standing) = self.standing(configuration) else { continue };
            let scores = self.scores(standing, goal);
            all.extend(scores.into_iter().map(|score| (configuration.clone(), score)));
        }
        let baseline = self.problem.tuning.space.baseline();
        let own = self.standing(&baseline).filter(|_| !told.contains(&&baseline));
        let own = own.map(|standing| self.scores(standing, goal)).unwrap_or_default();
        let tuning = self.problem.tuning;
        let less = self.is_less_better(objective);
        let price = tuning.price.as_ref().filter(|_| tuning.objectives()[objective] == Objective::Price);
        // What an hour costs is known, and not measured.
        let known = |configuration: &Configuration| {
            let hour = price.map_or(1.0, |price| price.of_hour(&tuning.space, configuration));
            if hour > 0.0 && hour.is_finite() { -hour.ln() } else { 0.0 }
        };
        effects(&tuning.space, &all, &own, &known, self.noise(goal), less, tuning.margin)
    }
}
