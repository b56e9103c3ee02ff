//! What a search goes by: one objective, or two of them put into one number.
//!
//! With two objectives the search takes turns between goals, as ParEGO does (Knowles, IEEE Transactions on Evolutionary Computation 10,
//! 2006): each objective alone leads to an end of the front, and weighted sums of how far both are behind the best, of which mostly the
//! larger part counts (the augmented Tchebycheff function), lead to what lies between them, also where the front bends inwards.

/// The score of a run by each objective: more is better. Of one objective the second is 0.
pub(crate) type Scores = [f64; 2];

/// How much the smaller part counts: enough that of two points that are as far behind in one objective the better one is better.
const SMALLER_PART: f64 = 0.05;

/// The weights of the first objective, between those that are only about one.
pub(crate) const WEIGHTS: [f64; 3] = [0.5, 0.25, 0.75];

/// A goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// The objective at this place.
    Only(usize),
    /// Both, with these weights.
    Both {
        /// Of each objective.
        weights: Scores,
        /// The best mean of each so far.
        best: Scores,
        /// How far the worst is behind it.
        range: Scores,
    },
}

impl Goal {
    /// Both objectives, the first with this weight, on the scale of these means; only the first where they have none.
    pub(crate) fn both(weight: f64, means: &[Scores]) -> Self {
        let of = |index: usize, start: f64, pick: fn(f64, f64) -> f64| {
            means.iter().map(|scores| scores[index]).fold(start, pick)
        };
        let best = [0, 1].map(|index| of(index, f64::NEG_INFINITY, f64::max));
        let worst = [0, 1].map(|index| of(index, f64::INFINITY, f64::min));
        let range = [best[0] - worst[0], best[1] - worst[1]];
        match range.iter().all(|range| *range > 0.0 && range.is_finite()) {
            true => Goal::Both { weights: [weight, 1.0 - weight], best, range },
            false => Goal::Only(0),
        }
    }

    /// The score of a run by this goal.
    pub(crate) fn score(&self, scores: Scores) -> f64 {
        match self {
            Goal::Only(objective) => scores[*objective],
            Goal::Both { weights, best, range } => {
                let behind = |index: usize| weights[index] * (best[index] - scores[index]) / range[index];
                let (one, other) = (behind(0), behind(1));
                -(one.max(other) + SMALLER_PART * (one + other))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_between_the_objectives_choose_points_between_the_ends_also_of_a_front_that_bends_inwards() {
        // The middle is behind a straight line between the ends: no weighted sum would ever choose it.
        let points: [Scores; 3] = [[1.0, 0.0], [0.4, 0.4], [0.0, 1.0]];
        let chosen = |goal: Goal| {
            (0..3)
                .max_by(|one, other| goal.score(points[*one]).total_cmp(&goal.score(points[*other])))
                .unwrap()
        };
        assert_eq!([Goal::Only(0), Goal::both(0.5, &points), Goal::Only(1)].map(chosen), [0, 1, 2]);
    }

    #[test]
    fn scales_of_objectives_do_not_matter() {
        let points: [Scores; 3] = [[1.0, 0.0], [0.6, 700.0], [0.0, 1000.0]];
        let goal = Goal::both(0.5, &points);
        assert!(
            goal.score(points[1]) > goal.score(points[0]) && goal.score(points[1]) > goal.score(points[2])
        );
        assert_eq!(Goal::both(0.5, &[[1.0, 2.0], [0.0, 2.0]]), Goal::Only(0), "all are alike in the second");
    }
}
