//! The steps of a search, as a function of what was seen.

mod proof;
mod screening;

use crate::conclusion::{Conclusion, End, Front, Outcome, Phase, Problem, Seen, Standing, Trial};
use crate::design;
use crate::effects::Effects;
use crate::front::{Known, front};
use crate::gaussian::{Belief, Mean};
use crate::goal::{Goal, Scores, WEIGHTS};
use tidemark_measure::rng::Rng;
use tidemark_measure::tuning::{Configuration, Space, TakesEffect};

/// The least pairs of runs of a proof.
const PAIRS_LEAST: u32 = 5;

/// The most.
const PAIRS_MOST: u32 = 30;

/// One in so many runs is a pair of the proof's: a quarter of the budget is kept for it.
const PAIR_SHARE: u32 = 8;

/// How much of the budget the screening may take, with repeats of the design; its smallest design may always be carried out once.
const SCREENING_SHARE: f64 = 0.4;

/// One run of the baseline for so many others, at least, and at least three in the screening.
const BASELINE_SHARE: usize = 4;

/// How much of what is left after the screening, without the proof's, halving takes.
const HALVING_SHARE: f64 = 0.4;

/// Halving begins with at least so many configurations, if there are runs for them.
const FIELD_LEAST: usize = 4;

/// And with at most so many.
const FIELD_MOST: usize = 32;

/// A mean that is so many standard errors below the best cannot win: with both of two runs, one in a thousand such is wrong.
const CANNOT_WIN: f64 = 3.0;

/// Points that refining looks at before it chooses where to measure.
const LOOKED_AT: usize = 300;

/// New points of a round of refining.
const ROUND: usize = 3;

/// Refining is over when the best of them promises less than this.
const PROMISES: f64 = 0.002;

/// More different configurations are never tried: an evaluation has no more arms.
const MOST_CONFIGURATIONS: usize = 96;

/// Repeats of the proof begin here, so that no run of the search has had their seeds.
const UNSEEN: u32 = 10_001;

/// The fewest runs that a search over so many settings can do with: the screening once, and the shortest proof.
pub fn least_runs(settings: usize) -> u32 {
    let rows = design::rows(settings);
    (rows + baselines(rows).max(3)) as u32 + 2 * PAIRS_LEAST
}

/// How many pairs of runs a proof has at most, with so many runs in all.
fn pairs(runs: u32) -> u32 {
    (runs / PAIR_SHARE).clamp(PAIRS_LEAST, PAIRS_MOST)
}

/// How many runs are kept for the proof.
pub(crate) fn kept(runs: u32) -> u32 {
    2 * pairs(runs)
}

/// How many runs of the baseline stand among so many others.
fn baselines(others: usize) -> usize {
    others.div_ceil(BASELINE_SHARE)
}

/// What is known, and what to measure next, in this order; nothing when the search is over. Runs that the search did not ask for are
/// ignored; the same runs give the same answer, in whatever order.
pub fn look(problem: Problem<'_>, seen: &[Seen]) -> (Conclusion, Vec<Trial>) {
    let mut search = Search {
        problem,
        seen,
        conclusion: Conclusion::default(),
        front: Front::default(),
        rounds: 0,
        is_cut_off: false,
    };
    let next = match search.go() {
        Ok(end) => {
            search.conclusion.end = Some(end);
            Vec::new()
        }
        Err(Missing(trials)) => trials,
    };
    search.conclusion.noise = search.spread_of(0);
    search.conclusion.failing = search.failing_by_now();
    if problem.tuning.second.is_some() {
        let (points, noise) = (search.points(), search.spread_of(1));
        search.conclusion.front = Some(Front { points, noise, ..search.front });
    }
    (search.conclusion, next)
}

/// Runs without which it does not go on.
struct Missing(Vec<Trial>);

/// A search that goes as far as what was seen allows.
struct Search<'a> {
    problem: Problem<'a>,
    seen: &'a [Seen],
    conclusion: Conclusion,
    /// What there is besides with two objectives.
    front: Front,
    /// How often something was asked for: names streams of random numbers.
    rounds: u64,
    /// Whether time was over in the middle of what was asked for.
    is_cut_off: bool,
}

impl Search<'_> {
    fn go(&mut self) -> Result<End, Missing> {
        let space = &self.problem.tuning.space;
        let tuning = self.problem.tuning;
        let budget = tuning.budget();
        let most = (SCREENING_SHARE * f64::from(budget)) as usize * BASELINE_SHARE / (BASELINE_SHARE + 1);
        let rows = design::screening(space, most.min(MOST_CONFIGURATIONS));
        let is_short = budget < least_runs(space.settings.len());
        if tuning.time_ns.is_some() && (tuning.affords.is_none() || is_short) {
            // How many runs its time is enough for is told by what a change takes.
            let baseline = space.baseline();
            let other = rows.iter().rev().find(|row| **row != baseline).cloned();
            self.ask(Phase::Screening, std::iter::once(baseline).chain(other).collect())?;
        }
        if is_short {
            return Ok(End::NoTime);
        }
        let pairs = pairs(budget);
        let Some(found) = self.screen(rows, pairs)? else { return Ok(End::NoTime) };
        if !self.conclusion.standings.iter().any(Standing::is_eligible) {
            return Ok(End::NothingWithin);
        }
        match self.end(&found) {
            None => {}
            // Many small effects may be one that is told. No run has anything better to do.
            Some(End::NothingShown) => {
                let end = self.decide(&[], self.most_pairs(pairs))?;
                return Ok(if end == End::Better { end } else { End::NothingShown });
            }
            Some(end) => return Ok(end),
        }
        let survivors = self.survivors(&found);
        self.halve(&survivors, &found, pairs)?;
        self.refine(&survivors, pairs)?;
        if self.has_searched() {
            self.conclusion.searched.clone_from(&survivors);
        }
        self.decide(&survivors, self.most_pairs(pairs))
    }

    /// As many pairs as there are runs left for, and these at least.
    fn most_pairs(&self, pairs: u32) -> u32 {
        ((self.left(0) / 2) as u32).clamp(pairs, PAIRS_MOST)
    }

    /// Runs that were done.
    fn spent(&self) -> u32 {
        self.conclusion.runs.iter().map(|(_, runs)| runs).sum()
    }

    /// Runs that are left for searching.
    fn left(&self, pairs: u32) -> usize {
        if self.is_cut_off {
            return 0;
        }
        self.problem.tuning.budget().saturating_sub(self.spent() + 2 * pairs) as usize
    }

    /// Has these configurations measured once each, and the baseline so often in between. Those of equal values of settings that are
    /// built anew stand together. What only takes a restart does not: a machine that drifts would look like its effect.
    fn measure(
        &mut self,
        phase: Phase,
        configurations: &[Configuration],
        baselines: usize,
    ) -> Result<(), Missing> {
        let space = &self.problem.tuning.space;
        self.rounds += 1;
        let mut rng = Rng::new(self.problem.seed, &[self.rounds]);
        let mut order: Vec<(Vec<u64>, u64, &Configuration)> = configurations
            .iter()
            .map(|configuration| (costly(space, configuration), rng.bits(), configuration))
            .collect();
        // Groups, too, are in random order.
        let group = |costly: &[u64]| Rng::new(self.problem.seed, &[&[self.rounds], costly].concat()).bits();
        order.sort_by_cached_key(|(costly, random, _)| (group(costly), costly.clone(), *random));
        let mut batch: Vec<Configuration> = order.into_iter().map(|(_, _, one)| one.clone()).collect();
        let others = batch.len();
        for index in (0..baselines).rev() {
            let place = if baselines > 1 { index * others / (baselines - 1) } else { others / 2 };
            batch.insert(place, space.baseline());
        }
        self.ask(phase, batch)
    }

    /// Asks for one more run of each of these, in this order.
    fn ask(&mut self, phase: Phase, batch: Vec<Configuration>) -> Result<(), Missing> {
        let mut counts: Vec<(Configuration, u32)> = self
            .conclusion
            .standings
            .iter()
            .map(|standing| (standing.configuration.clone(), standing.runs() as u32))
            .collect();
        let mut trials = Vec::new();
        for configuration in batch {
            let known = counts.iter_mut().find(|(known, _)| *known == configuration);
            let repeat = match known {
                Some((_, count)) => {
                    *count += 1;
                    *count
                }
                None => {
                    counts.push((configuration.clone(), 1));
                    1
                }
            };
            trials.push(Trial { phase, configuration, repeat });
        }
        for (trial, outcome) in self.seen(trials)? {
            let standings = &mut self.conclusion.standings;
            let known = standings.iter().position(|known| known.configuration == trial.configuration);
            let index = known.unwrap_or_else(|| {
                let configuration = trial.configuration.clone();
                standings.push(Standing {
                    configuration,
                    phase,
                    values: Vec::new(),
                    seconds: Vec::new(),
                    outside: 0,
                });
                standings.len() - 1
            });
            match outcome {
                Outcome::Value(value) => standings[index].values.push(value),
                Outcome::Values(value, second) => {
                    standings[index].values.push(value);
                    standings[index].seconds.push(second);
                }
                Outcome::Outside => standings[index].outside += 1,
            }
        }
        Ok(())
    }

    /// What came of these runs; those that are missing, if some are.
    fn seen(&mut self, trials: Vec<Trial>) -> Result<Vec<(Trial, Outcome)>, Missing> {
        let is_proof = |phase| phase == Phase::Proof;
        let known = |trial: &Trial| {
            let same = |seen: &&Seen| {
                is_proof(seen.trial.phase) == is_proof(trial.phase)
                    && (seen.trial.repeat == trial.repeat || seen.trial.repeat == 0)
                    && seen.trial.configuration == trial.configuration
            };
            self.seen.iter().find(same).map(|seen| self.sound(seen.outcome))
        };
        let outcomes: Vec<Option<Outcome>> = trials.iter().map(known).collect();
        let phase = trials.first().map(|trial| trial.phase);
        let done = outcomes.iter().flatten().count() as u32;
        if let Some(phase) = phase {
            match self.conclusion.runs.iter_mut().find(|(own, _)| *own == phase) {
                Some((_, runs)) => *runs += done,
                None => self.conclusion.runs.push((phase, done)),
            }
        }
        let pairs: Vec<(Trial, Option<Outcome>)> = trials.into_iter().zip(outcomes).collect();
        let is_missing = pairs.iter().any(|(_, outcome)| outcome.is_none());
        if is_missing && self.problem.tuning.is_closed && phase != Some(Phase::Proof) {
            self.is_cut_off = true;
        } else if is_missing {
            let missing = pairs.into_iter().filter(|(_, outcome)| outcome.is_none());
            return Err(Missing(missing.map(|(trial, _)| trial).collect()));
        }
        Ok(pairs.into_iter().filter_map(|(trial, outcome)| Some((trial, outcome?))).collect())
    }

    /// An outcome that has what was asked for, or the worst.
    fn sound(&self, outcome: Outcome) -> Outcome {
        let is_sound = |value: f64| value > 0.0 && value.is_finite();
        match (outcome, self.problem.tuning.second) {
            (Outcome::Value(value), None) if is_sound(value) => outcome,
            (Outcome::Values(value, second), Some(_)) if is_sound(value) && is_sound(second) => outcome,
            _ => Outcome::Outside,
        }
    }

    /// How many objectives there are.
    fn objectives(&self) -> usize {
        1 + usize::from(self.problem.tuning.second.is_some())
    }

    /// Whether less of an objective is better.
    fn is_less_better(&self, objective: usize) -> bool {
        let tuning = self.problem.tuning;
        let second = tuning.second.unwrap_or(tuning.objective);
        [tuning.objective, second][objective].is_less_better()
    }

    /// What a search goes by, in turns: with two objectives, each alone and both together.
    fn goals(&self) -> Vec<Goal> {
        if self.objectives() == 1 {
            return vec![Goal::Only(0)];
        }
        let eligible = self.conclusion.standings.iter().filter(|standing| standing.is_eligible());
        let means: Vec<Scores> = eligible
            .map(|standing| [0, 1].map(|objective| mean(&self.scores(standing, Goal::Only(objective)))))
            .collect();
        let between = WEIGHTS.map(|weight| Goal::both(weight, &means));
        [Goal::Only(0), Goal::Only(1)].into_iter().chain(between).collect()
    }

    /// Values of a run as a score by a goal: more is better.
    fn score(&self, values: [f64; 2], goal: Goal) -> f64 {
        let of = |objective: usize| {
            let score = values[objective].ln();
            if self.is_less_better(objective) { -score } else { score }
        };
        goal.score([of(0), of(1)])
    }

    /// The scores of a configuration's runs within the service level.
    fn scores(&self, standing: &Standing, goal: Goal) -> Vec<f64> {
        standing.both().map(|values| self.score(values, goal)).collect()
    }

    /// The same, and the worst that was seen of any for each run outside: to steer the search away from there, and to claim nothing.
    fn penalised(&self, standing: &Standing, goal: Goal) -> Vec<f64> {
        let all = self.conclusion.standings.iter().flat_map(|standing| self.scores(standing, goal));
        let worst = all.fold(f64::INFINITY, f64::min);
        let outside = std::iter::repeat_n(worst, standing.outside as usize);
        self.scores(standing, goal).into_iter().chain(outside).collect()
    }

    /// The best within the service level of those that fit, by a goal.
    fn best_of(&self, goal: Goal, fits: &dyn Fn(&Standing) -> bool) -> Option<&Standing> {
        let eligible = self.conclusion.standings.iter().filter(|one| one.is_eligible() && fits(one));
        let known = |standing: &Standing| mean(&self.scores(standing, goal));
        eligible.max_by(|one, other| known(one).total_cmp(&known(other)))
    }

    /// A configuration with the baseline's values of all settings but these, or with what works instead.
    fn only(&self, settings: &[usize], mut configuration: Configuration) -> Configuration {
        let space = &self.problem.tuning.space;
        let home = self.working(space.baseline());
        for (index, value) in home.0.into_iter().enumerate() {
            if !settings.contains(&index) {
                configuration.0[index] = value;
            }
        }
        space.settled(configuration)
    }

    /// Whether anything was measured between the screening and the proof.
    fn has_searched(&self) -> bool {
        let of_search = |phase: Phase| matches!(phase, Phase::Halving | Phase::Refining);
        self.conclusion.runs.iter().any(|(phase, runs)| of_search(*phase) && *runs > 0)
    }

    /// Whether a configuration is one of these.
    fn is_of(&self, settings: &[usize], configuration: &Configuration) -> bool {
        self.only(settings, configuration.clone()) == *configuration
    }

    fn standing(&self, configuration: &Configuration) -> Option<&Standing> {
        self.conclusion.standings.iter().find(|standing| standing.configuration == *configuration)
    }

    /// The variance of single runs of the same settings, of the scores within the service level, and its degrees of freedom.
    fn noise(&self, goal: Goal) -> Option<(f64, f64)> {
        let (mut squares, mut freedom) = (0.0, 0.0);
        for standing in &self.conclusion.standings {
            let scores: Vec<f64> = standing.both().map(|values| self.score(values, goal)).collect();
            let mean = mean(&scores);
            squares += scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>();
            freedom += scores.len().saturating_sub(1) as f64;
        }
        (freedom > 0.0).then(|| (squares / freedom, freedom))
    }

    /// How much runs with the same settings vary in an objective: a standard deviation, as a share.
    fn spread_of(&self, objective: usize) -> Option<f64> {
        self.noise(Goal::Only(objective)).map(|(variance, _)| variance.sqrt().exp_m1())
    }

    /// The noise, for those who need some: what the screening leaves over where nothing was repeated.
    fn some_noise(&self, goal: Goal) -> f64 {
        self.noise(goal).map_or(1e-3, |(variance, _)| variance).max(1e-8)
    }

    /// Where everything that was measured stands beside the front.
    fn points(&self) -> Vec<crate::front::Point> {
        let eligible = self.conclusion.standings.iter().filter(|standing| standing.is_eligible());
        let known = eligible.map(|standing| Known {
            configuration: standing.configuration.clone(),
            runs: standing.values.len(),
            means: [0, 1].map(|objective| mean(&self.scores(standing, Goal::Only(objective)))),
        });
        let noise = [0, 1].map(|objective| self.noise(Goal::Only(objective)));
        front(&known.collect::<Vec<_>>(), noise, [0, 1].map(|objective| self.is_less_better(objective)))
    }

    /// Successive halving (Karnin, Koren and Somekh, ICML 2013) of settings spread over those that survived.
    fn halve(&mut self, survivors: &[usize], found: &[Effects], pairs: u32) -> Result<(), Missing> {
        let left = self.left(pairs) as f64;
        // All once, half of them again, a quarter twice: two runs for each, and a quarter more for the baseline.
        let count = ((HALVING_SHARE * left / 2.5) as usize).clamp(FIELD_LEAST, FIELD_MOST);
        if count as f64 * 2.5 > left {
            return Ok(());
        }
        let mut field = self.spread(survivors, found, count);
        let mut times = 1;
        let mut first = true;
        while field.len() > 1 {
            let batch: Vec<_> = std::iter::repeat_n(field.clone(), times).flatten().collect();
            let baselines = baselines(batch.len());
            if batch.len() + baselines > self.left(pairs) {
                break;
            }
            self.measure(Phase::Halving, &batch, baselines)?;
            field = self.better_half(&field);
            times = if first { 1 } else { times * 2 };
            first = false;
            if field.len() <= 2 {
                break;
            }
        }
        Ok(())
    }

    /// So many configurations of the survivors: those that the screening promises most of, and the rest a Latin hypercube (McKay, Beckman
    /// and Conover, Technometrics 21, 1979).
    fn spread(&self, survivors: &[usize], found: &[Effects], count: usize) -> Vec<Configuration> {
        let space = &self.problem.tuning.space;
        let mut field: Vec<Configuration> = Vec::new();
        for found in found {
            let mut promised = space.baseline();
            for setting in survivors {
                let own = found.effects.iter().filter(|effect| effect.setting == *setting);
                let Some(best) = own.max_by(|one, other| one.score.total_cmp(&other.score)) else { continue };
                promised.0[*setting] = if best.score > 0.0 { best.to } else { best.from };
            }
            field.push(space.settled(promised));
        }
        // And the best that was measured, with the baseline's values of what does not go on.
        let best = self.goals().into_iter().filter_map(|goal| self.best_of(goal, &|_| true));
        field.extend(best.map(|best| self.only(survivors, best.configuration.clone())));
        let baseline = space.baseline();
        let mut known = Vec::new();
        field.retain(|configuration| {
            let is_new = !known.contains(configuration) && *configuration != baseline;
            known.push(configuration.clone());
            is_new && !self.fails(configuration)
        });
        field.truncate(count);
        let mut rng = Rng::new(self.problem.seed, &[0, 1]);
        let mut columns: Vec<Vec<usize>> = Vec::new();
        for _ in survivors {
            let mut column: Vec<usize> = (0..count).collect();
            for last in (1..count).rev() {
                column.swap(last, rng.below(last as u64 + 1) as usize);
            }
            columns.push(column);
        }
        for row in 0..count {
            let place = |(setting, column): (&usize, &Vec<usize>)| {
                (*setting, (column[row] as f64 + rng.unit()) / count as f64)
            };
            let places: Vec<(usize, f64)> = survivors.iter().zip(&columns).map(place).collect();
            let configuration = self.working(space.at(&places));
            if !field.contains(&configuration) && configuration != baseline && field.len() < count {
                field.push(configuration);
            }
        }
        field
    }

    /// The better half, without those that cannot win any more; with several goals, each in turn takes the best that is left.
    fn better_half(&self, field: &[Configuration]) -> Vec<Configuration> {
        let half = field.len().div_ceil(2);
        let goals = self.goals();
        let mut rankings: Vec<_> = goals.iter().map(|goal| self.ranked(field, *goal).into_iter()).collect();
        let mut better: Vec<Configuration> = Vec::new();
        let mut is_over = false;
        while !is_over && better.len() < half {
            is_over = true;
            for ranking in &mut rankings {
                let next = ranking.find(|configuration| !better.contains(configuration));
                is_over &= next.is_none();
                better.extend(next.filter(|_| better.len() < half));
            }
        }
        better
    }

    /// Those that may win by a goal, the best first.
    fn ranked(&self, field: &[Configuration], goal: Goal) -> Vec<Configuration> {
        let noise = self.some_noise(goal);
        let known = |configuration: &Configuration| {
            let standing = self.standing(configuration)?;
            let scores = self.penalised(standing, goal);
            standing
                .is_eligible()
                .then(|| (configuration.clone(), mean(&scores), noise / scores.len() as f64))
        };
        let mut known: Vec<(Configuration, f64, f64)> = field.iter().filter_map(known).collect();
        known.sort_by(|one, other| other.1.total_cmp(&one.1));
        let best = known.first().map(|(_, mean, error)| (*mean, *error));
        let may_win = |own: &(Configuration, f64, f64)| {
            best.is_none_or(|(mean, error)| mean - own.1 <= CANNOT_WIN * (error + own.2).sqrt())
        };
        known.into_iter().filter(may_win).map(|(configuration, ..)| configuration).collect()
    }

    /// Measures where the belief promises most, in rounds, and what seems best again; each round by the next goal.
    fn refine(&mut self, survivors: &[usize], pairs: u32) -> Result<(), Missing> {
        let space = &self.problem.tuning.space;
        // Rounds in a row that promised nothing: over when no goal promises anything.
        let (mut turn, mut idle) = (0, 0);
        while self.left(pairs) >= ROUND + 2 && self.conclusion.standings.len() + ROUND <= MOST_CONFIGURATIONS
        {
            let goals = self.goals();
            let goal = goals[turn % goals.len()];
            turn += 1;
            let Some(belief) = self.belief(space, survivors, goal) else { break };
            let Some(best) = self.best(&belief) else { break };
            let most = belief.at(&best).0;
            let mut batch = vec![best];
            let mut supposing = Some(belief);
            let mut promises = f64::INFINITY;
            while let (Some(belief), true) = (supposing.take(), batch.len() <= ROUND) {
                let Some((next, promised)) = self.promising(&belief, survivors, most, &batch) else { break };
                if batch.len() == 1 {
                    promises = promised;
                }
                supposing = belief.supposing(next.clone());
                batch.push(next);
            }
            if batch.len() == 1 || promises < PROMISES {
                idle += 1;
                if idle == goals.len() {
                    break;
                }
                continue;
            }
            idle = 0;
            self.measure(Phase::Refining, &batch, 1)?;
        }
        Ok(())
    }

    /// What is believed of all that differs in the survivors only.
    fn belief<'s>(&self, space: &'s Space, survivors: &'s [usize], goal: Goal) -> Option<Belief<'s>> {
        let is_of_them = |standing: &&Standing| self.is_of(survivors, &standing.configuration);
        let known = |standing: &Standing| {
            let scores = self.penalised(standing, goal);
            let (configuration, runs) = (standing.configuration.clone(), scores.len());
            Mean { configuration, score: mean(&scores), runs }
        };
        let means = self.conclusion.standings.iter().filter(is_of_them).map(known);
        let means: Vec<Mean> = means.filter(|mean| mean.score.is_finite()).collect();
        Belief::new(space, survivors, means, self.some_noise(goal))
    }

    /// The configuration of those measured that is believed to be best: what is unsure counts against it.
    fn best(&self, belief: &Belief<'_>) -> Option<Configuration> {
        let sure = |configuration: &Configuration| {
            let (mean, unsure) = belief.at(configuration);
            mean - unsure
        };
        let eligible = belief
            .measured()
            .filter(|configuration| self.standing(configuration).is_some_and(Standing::is_eligible));
        eligible.max_by(|one, other| sure(one).total_cmp(&sure(other))).cloned()
    }

    /// Where the expected improvement over the best mean (Mockus, 1975; Jones, Schonlau and Welch, Journal of Global Optimization 13,
    /// 1998) is largest, among points all over and points near the best; and that improvement.
    fn promising(
        &self,
        belief: &Belief<'_>,
        survivors: &[usize],
        goal: f64,
        taken: &[Configuration],
    ) -> Option<(Configuration, f64)> {
        let space = &self.problem.tuning.space;
        let mut rng = Rng::new(self.problem.seed, &[1, self.rounds, taken.len() as u64]);
        let best = taken.first()?;
        let mut found: Option<(Configuration, f64)> = None;
        for point in 0..LOOKED_AT {
            let is_near = point % 3 == 0;
            let places: Vec<(usize, f64)> = survivors
                .iter()
                .map(|index| {
                    let random = rng.unit();
                    let near = space.place(*index, best) + 0.2 * (random - 0.5);
                    let stays = is_near && rng.below(3) == 0;
                    let place = match is_near {
                        true if stays => space.place(*index, best),
                        true => near,
                        false => random,
                    };
                    (*index, place)
                })
                .collect();
            let configuration = self.working(space.at(&places));
            if taken.contains(&configuration) || self.standing(&configuration).is_some() {
                continue;
            }
            let (mean, unsure) = belief.at(&configuration);
            let promised = improvement(mean - goal, unsure);
            if found.as_ref().is_none_or(|(_, most)| promised > *most) {
                found = Some((configuration, promised));
            }
        }
        found
    }
}

/// The values of what is built anew, as bits.
fn costly(space: &Space, configuration: &Configuration) -> Vec<u64> {
    let pairs = space.settings.iter().zip(&configuration.0);
    let own = pairs.filter(|(setting, _)| setting.takes_effect == TakesEffect::Rebuild);
    own.map(|(_, value)| value.to_bits()).collect()
}

/// The mean of some scores; not a number of none.
fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

/// How much better than nothing something is expected to be that is believed to be so much better, give or take.
fn improvement(better: f64, unsure: f64) -> f64 {
    if unsure <= 0.0 {
        return better.max(0.0);
    }
    let z = better / unsure;
    let density = (-0.5 * z.powi(2)).exp() / std::f64::consts::TAU.sqrt();
    better * normal(z) + unsure * density
}

/// The distribution function of the normal distribution.
fn normal(z: f64) -> f64 {
    // Student's with so much freedom is it, to six digits.
    let tail = tidemark_judge::statistics::two_sided(z, 1e7).unwrap_or(1.0) / 2.0;
    if z > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests;
