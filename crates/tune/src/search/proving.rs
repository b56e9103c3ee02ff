//! The end of a search: the winner is named, measured afresh beside the baseline, and compared with it.

use super::{End, Missing, Outcome, PAIRS_LEAST, Phase, Proof, Search, Standing, Trial, UNSEEN};
use tidemark_judge::statistics::{Difference, SIGNIFICANT, detectable};
use tidemark_measure::tuning::Configuration;

impl Search<'_> {
    /// Names the winner, and has it proved.
    pub(super) fn decide(&mut self, survivors: &[usize], pairs: u32) -> Result<End, Missing> {
        let space = &self.problem.tuning.space;
        let baseline = space.baseline();
        let mean = |standing: &Standing| {
            let scores = self.scores(standing);
            scores.iter().sum::<f64>() / scores.len().max(1) as f64
        };
        let believed = self.belief(space, survivors).and_then(|belief| {
            let best = self.best(&belief)?;
            let gain = belief.at(&best).0 - belief.at(&baseline).0;
            Some((best, gain))
        });
        let own = self.standing(&baseline).map(mean);
        let measured = || {
            let eligible = self.conclusion.standings.iter().filter(|standing| standing.is_eligible());
            let best = eligible.max_by(|one, other| mean(one).total_cmp(&mean(other)))?;
            Some((best.configuration.clone(), mean(best) - own?))
        };
        let Some((winner, gain)) = believed.or_else(measured) else { return Ok(End::NothingWithin) };
        let baseline_is_within = self.standing(&baseline).is_some_and(Standing::is_eligible);
        if winner == baseline || (baseline_is_within && gain <= 0.0) {
            return Ok(End::NothingBetter);
        }
        self.conclusion.winner = Some(winner.clone());
        let spread = self.some_noise().sqrt();
        // Half of what it seems to be: of many that were looked at, the best seems better than it is.
        let needed = (PAIRS_LEAST..pairs).find(|runs| {
            detectable(*runs, 1, spread, SIGNIFICANT).is_some_and(|least| least < gain.exp_m1() / 2.0)
        });
        self.prove(&winner, needed.unwrap_or(pairs))
    }

    /// Measures the winner and the baseline in turns, and compares them.
    fn prove(&mut self, winner: &Configuration, pairs: u32) -> Result<End, Missing> {
        let baseline = self.problem.tuning.space.baseline();
        let mut trials = Vec::new();
        for pair in 0..pairs {
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
        let of = |configuration: &Configuration| {
            let own = outcomes.iter().filter(|(trial, _)| trial.configuration == *configuration);
            let values: Vec<f64> = own
                .filter_map(|(_, outcome)| match outcome {
                    Outcome::Value(value) => Some(*value),
                    Outcome::Outside => None,
                })
                .collect();
            let outside = pairs - values.len() as u32;
            (values, outside)
        };
        let ((winner, winner_outside), (baseline, baseline_outside)) = (of(winner), of(&baseline));
        let difference = Difference::between(&winner, &baseline);
        let proof = Proof {
            ratio: difference.map(|difference| difference.ratio()),
            interval: difference.and_then(|difference| difference.interval(SIGNIFICANT)),
            p: difference.and_then(|difference| difference.p()),
            winner,
            baseline,
            winner_outside,
            baseline_outside,
        };
        let end = self.verdict(&proof);
        self.conclusion.proof = Some(proof);
        Ok(end)
    }

    fn verdict(&self, proof: &Proof) -> End {
        if proof.winner_outside > 0 {
            return End::Outside;
        }
        // Within in all of its runs, where the baseline is in none.
        if proof.baseline.is_empty() {
            return End::Better;
        }
        let less = self.problem.tuning.objective.is_less_better();
        let better = |(low, high): (f64, f64)| match (low > 1.0, high < 1.0) {
            (true, _) => {
                if less {
                    End::Worse
                } else {
                    End::Better
                }
            }
            (_, true) => {
                if less {
                    End::Better
                } else {
                    End::Worse
                }
            }
            _ => End::CannotTell,
        };
        proof.interval.map_or(End::CannotTell, better)
    }
}
