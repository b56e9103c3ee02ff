//! The last step of a search: what seems best is set up afresh and measured beside the baseline. Of two objectives, that is the best by each,
//! the ends of the front.

use super::{Missing, PAIRS_LEAST, Search, UNSEEN, mean};
use crate::conclusion::{Compared, End, Extreme, Outcome, Phase, Proof, Standing, Trial};
use crate::effects::{Effect, Verdict};
use crate::gaussian::Belief;
use crate::goal::Goal;
use tidemark_judge::statistics::{Difference, SIGNIFICANT, detectable_in_pairs};
use tidemark_measure::tuning::Configuration;

/// What all changes may be believed to bring together that are not made, as a share: nobody wants a setting for less.
const WORTH: f64 = 0.01;

/// An effect that chance makes less often is more likely to be one than not.
const LIKELY: f64 = 0.5;

/// The values of both objectives in a run of the proof; `None` of one that was outside the service level or failed.
type Measured = Option<[f64; 2]>;

impl Search<'_> {
    /// Has the best of each objective proved with so many pairs of runs in all.
    pub(super) fn decide(&mut self, survivors: &[usize], pairs: u32) -> Result<End, Missing> {
        if self.objectives() == 1 {
            let end = self.prove_best(0, survivors, 0, pairs)?;
            return Ok(end.unwrap_or(End::CannotTell));
        }
        let mut used = 0;
        for objective in 0..2 {
            (self.conclusion.winner, self.conclusion.proof) = (None, None);
            // Where both can be proven, the first leaves enough for the second.
            let most = match objective {
                0 if pairs >= 2 * PAIRS_LEAST => pairs.div_ceil(2),
                _ => pairs - used,
            };
            let end = self.prove_best(objective, survivors, used, most)?;
            let (winner, proof) = (self.conclusion.winner.take(), self.conclusion.proof.take());
            // Where both ends are the same settings, one proof is enough.
            let is_new = proof.is_some() && !self.front.ends.iter().any(|known| known.winner == winner);
            if let Some(proof) = proof.as_ref().filter(|_| is_new) {
                used += proof.compared.winner.len() as u32 + proof.winner_outside;
            }
            self.front.ends.push(Extreme { objective, end, winner, proof });
        }
        let ends = &self.front.ends;
        let told = ends.iter().find(|one| one.end == Some(End::Better)).or(ends.first());
        let told = told.cloned();
        let end = told.as_ref().and_then(|told| told.end);
        (self.conclusion.winner, self.conclusion.proof) =
            told.map(|told| (told.winner, told.proof)).unwrap_or_default();
        Ok(end.unwrap_or(End::CannotTell))
    }

    /// Names the best by an objective, and has it proved with at most so many pairs, numbered from here on; `None` if they are too few.
    fn prove_best(
        &mut self,
        objective: usize,
        survivors: &[usize],
        from: u32,
        pairs: u32,
    ) -> Result<Option<End>, Missing> {
        let (baseline, goal) = (self.problem.tuning.space.baseline(), Goal::Only(objective));
        let Some((winner, gain)) = self.candidate(objective, survivors) else {
            return Ok(Some(End::NothingWithin));
        };
        let baseline_is_within = self.standing(&baseline).is_some_and(Standing::is_eligible);
        if winner == baseline || (baseline_is_within && gain <= 0.0) {
            return Ok(Some(End::NothingBetter));
        }
        self.conclusion.winner = Some(winner.clone());
        let proven = self.front.ends.iter().find(|known| known.winner.as_ref() == Some(&winner));
        let proof = match proven.and_then(|known| known.proof.clone()) {
            Some(Proof { compared, other: Some(other), winner_outside, baseline_outside }) => {
                Proof { compared: other, other: Some(compared), winner_outside, baseline_outside }
            }
            _ if pairs < PAIRS_LEAST => return Ok(None),
            _ => {
                let spread = self.some_noise(goal).sqrt();
                // Half of what it seems to be: of many that were looked at, the best seems better than it is.
                let needed = (PAIRS_LEAST..pairs).find(|runs| {
                    detectable_in_pairs(*runs, spread, self.miss())
                        .is_some_and(|least| least < gain.exp_m1() / 2.0)
                });
                self.prove(objective, &winner, from, needed.unwrap_or(pairs))?
            }
        };
        let end = proof.end(self.is_less_better(objective));
        self.conclusion.proof = Some(proof);
        Ok(Some(end))
    }

    /// What is to be proven by an objective, and how much better than the baseline it seems; the baseline where nothing does, `None` where
    /// nothing is within the service level.
    fn candidate(&self, objective: usize, survivors: &[usize]) -> Option<(Configuration, f64)> {
        let space = &self.problem.tuning.space;
        let (baseline, goal) = (space.baseline(), Goal::Only(objective));
        let known = |standing: &Standing| mean(&self.scores(standing, goal));
        let own = self.standing(&baseline).map(known).filter(|own| own.is_finite());
        let with_gain = |standing: &Standing| {
            (standing.configuration.clone(), known(standing) - own.unwrap_or(f64::NEG_INFINITY))
        };
        let believed = self.belief(space, survivors, goal).and_then(|belief| {
            let best = self.without_ballast(&belief, survivors, self.best(&belief)?);
            let gain = belief.at(&best).0 - belief.at(&baseline).0;
            Some((best, gain))
        });
        let measured = || {
            let is_of_them = |standing: &Standing| self.is_of(survivors, &standing.configuration);
            self.best_of(goal, &is_of_them).map(with_gain)
        };
        let found = believed.or_else(measured);
        let is_better = found.as_ref().is_some_and(|(winner, gain)| *winner != baseline && *gain > 0.0);
        if let Some(promised) = (!is_better).then(|| self.promised(objective)).flatten() {
            return Some(promised);
        }
        // What the screening put together may be better than all that the search, which left other settings alone, has found.
        let best = found.as_ref().map_or(&baseline, |(winner, _)| winner);
        self.rival(best, goal).map(with_gain).or(found)
    }

    /// The same settings, with the baseline's value of those that are believed to bring nothing.
    fn without_ballast(
        &self,
        belief: &Belief<'_>,
        survivors: &[usize],
        best: Configuration,
    ) -> Configuration {
        let space = &self.problem.tuning.space;
        let home = self.working(space.baseline());
        let least = belief.at(&best).0 - WORTH;
        // The weakest first.
        survivors.iter().rev().fold(best, |best, setting| {
            let mut without = best.clone();
            without.0[*setting] = home.0[*setting];
            let without = space.settled(without);
            if belief.at(&without).0 >= least { without } else { best }
        })
    }

    /// What the screening promises of the settings that matter, and how much more than the baseline, where no runs were left to measure it
    /// before the proof. Where none is shown to matter, of those that are more likely to do something than not.
    fn promised(&self, objective: usize) -> Option<(Configuration, f64)> {
        let space = &self.problem.tuning.space;
        let effects = match objective {
            0 => &self.conclusion.effects,
            _ => &self.front.effects,
        };
        let is_shown = |effect: &Effect| matches!(effect.verdict, Verdict::Better | Verdict::Worse);
        let is_any_shown = effects.iter().any(is_shown);
        let matters = |effect: &&Effect| if is_any_shown { is_shown(effect) } else { effect.p < LIKELY };
        let home = self.working(space.baseline());
        let mut promised = home.clone();
        for setting in 0..space.settings.len() {
            let own = effects.iter().filter(matters).filter(|effect| effect.setting == setting);
            // Of a choice among several words, the best.
            let best = own.max_by(|one, other| one.score.total_cmp(&other.score));
            if let Some(best) = best {
                promised.0[setting] = if best.score > 0.0 { best.to } else { best.from };
            }
        }
        let promised = space.settled(promised);
        let is_new = promised != home && !(is_any_shown && self.standing(&promised).is_some());
        // How much is not known: a baseline between the ends has a part of it. All pairs are used.
        is_new.then_some((promised, f64::MIN_POSITIVE))
    }

    /// What each interval of the proof may miss, so that all of them miss 5 % together: two ends by two objectives are four.
    fn miss(&self) -> f64 {
        SIGNIFICANT / self.objectives().pow(2) as f64
    }

    /// Measures the winner and the baseline in turns, and compares them pair by pair: a machine that drifts from one pair to the next makes
    /// both alike.
    fn prove(
        &mut self,
        objective: usize,
        winner: &Configuration,
        from: u32,
        pairs: u32,
    ) -> Result<Proof, Missing> {
        let baseline = self.problem.tuning.space.baseline();
        let numbers = from..from + pairs;
        let mut trials = Vec::new();
        for pair in numbers.clone() {
            let trial = |configuration: &Configuration| Trial {
                phase: Phase::Proof,
                configuration: configuration.clone(),
                repeat: UNSEEN + pair,
            };
            // Each in front as often as the other: what drifts hits both alike.
            match pair % 2 {
                0 => trials.extend([trial(&baseline), trial(winner)]),
                _ => trials.extend([trial(winner), trial(&baseline)]),
            }
        }
        let outcomes = self.seen(trials)?;
        let values = |configuration: &Configuration, pair: u32| -> Measured {
            let is_own =
                |trial: &Trial| trial.configuration == *configuration && trial.repeat == UNSEEN + pair;
            outcomes.iter().find(|(trial, _)| is_own(trial)).and_then(|(_, outcome)| match outcome {
                Outcome::Value(value) => Some([*value, 1.0]),
                Outcome::Values(value, second) => Some([*value, *second]),
                Outcome::Outside => None,
            })
        };
        let both: Vec<_> = numbers.map(|pair| (values(winner, pair), values(&baseline, pair))).collect();
        let outside = |side: fn(&(Measured, Measured)) -> Measured| {
            both.iter().filter(|pair| side(pair).is_none()).count() as u32
        };
        Ok(Proof {
            compared: self.compared(&both, objective),
            other: (self.objectives() > 1).then(|| self.compared(&both, 1 - objective)),
            winner_outside: outside(|(own, _)| *own),
            baseline_outside: outside(|(_, other)| *other),
        })
    }

    /// Pairs of the winner and the baseline by one objective.
    fn compared(&self, both: &[(Measured, Measured)], objective: usize) -> Compared {
        let pair = |(own, other): &(Measured, Measured)| {
            Some((own.as_ref()?[objective], other.as_ref()?[objective]))
        };
        let difference = Difference::paired(&both.iter().filter_map(pair).collect::<Vec<_>>());
        Compared {
            winner: both.iter().filter_map(|(own, _)| Some(own.as_ref()?[objective])).collect(),
            baseline: both.iter().filter_map(|(_, other)| Some(other.as_ref()?[objective])).collect(),
            ratio: difference.map(|difference| difference.ratio()),
            interval: difference.and_then(|difference| difference.interval(self.miss())),
            p: difference.and_then(|difference| difference.p()),
        }
    }
}
