//! What each setting does: a linear model of the screening's scores, by least squares, with Student's intervals.
//!
//! A score is the logarithm of what the objective counts (its negative where less is better), so that an effect is a ratio. What the model
//! leaves over is the noise and whatever settings do together; both widen the intervals, so that nothing is claimed that either could have
//! made.

use nalgebra::{DMatrix, DVector};
use serde::Serialize;
use tidemark_judge::statistics::{t_quantile, two_sided};
use tidemark_measure::tuning::{Configuration, Domain, Space};

/// How often a screening is looked at, at most: once, and once more where something is suspected.
const LOOKS: f64 = 2.0;

/// What all intervals of a screening may miss together at one look, so that those of both miss 5 %.
const MISS: f64 = 0.05 / LOOKS;

/// A baseline that is this unlikely on straight lines between both ends is not on them: at half of the usual risk, for effects have
/// theirs beside it.
pub(crate) const CURVED: f64 = 0.05 / 2.0 / LOOKS;

/// A pivot of the design that is less than this of the largest that there can be is nothing but rounding.
const LEAST_PIVOT: f64 = 1e-7;

/// What one setting does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The setting's place in the space.
    pub setting: usize,
    /// The value that is left: the lower end of a range, or the baseline's word.
    pub from: f64,
    /// The value that is taken instead.
    pub to: f64,
    /// The objective with the latter, as a multiple of that with the former, the other settings being anything.
    pub ratio: f64,
    /// The ends of its interval; those of all effects hold at once with 95 %.
    pub interval: (f64, f64),
    /// Probability of an effect this large or larger if there were none; of this effect alone.
    pub p: f64,
    /// What it comes to.
    pub verdict: Verdict,
    /// The effect on the score.
    #[serde(skip)]
    pub(crate) score: f64,
    /// As `p`, by the noise of repeats alone: what settings do together does not widen it, so that it finds more, and is trusted less.
    #[serde(skip)]
    pub(crate) suspected: f64,
}

/// What an effect comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The value taken is better than the one left.
    Better,
    /// It is worse.
    Worse,
    /// They are equal within the margin: the setting does not matter.
    Equal,
    /// Neither: more runs would tell.
    CannotTell,
}

/// All effects of a screening.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effects {
    pub(crate) effects: Vec<Effect>,
    /// What is left over: its standard deviation.
    pub(crate) spread: f64,
    /// The smallest effect that four of five screenings like this one find, as a share.
    pub(crate) detectable: f64,
    /// Probability of a baseline as far from what the model expects of it, or further, if the objective changed in straight lines from one
    /// end to the other; `None` without runs of the baseline.
    pub(crate) curved: Option<f64>,
}

impl Effects {
    /// Whether a setting matters, by itself or between its ends.
    pub(crate) fn shows_something(&self) -> bool {
        let matters = |effect: &Effect| matches!(effect.verdict, Verdict::Better | Verdict::Worse);
        self.effects.iter().any(matters) || self.is_curved()
    }

    /// Whether the baseline is elsewhere than straight lines between the ends would have it.
    pub(crate) fn is_curved(&self) -> bool {
        self.curved.is_some_and(|p| p < CURVED)
    }
}

/// A value of a setting beside the one that is left.
struct Column {
    setting: usize,
    from: f64,
    to: f64,
}

/// What was measured of each setting beside the value that is left: of a range the other end, of a choice each other word.
fn columns(space: &Space, screened: &[(Configuration, f64)]) -> Vec<Column> {
    let of = |(setting, own): (usize, &tidemark_measure::tuning::Setting)| {
        let active = screened.iter().filter(|(one, _)| space.is_active(setting, one));
        let mut values: Vec<f64> = active.map(|(one, _)| one.0[setting]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        if let Domain::Choice(_) = own.domain {
            let measured = std::mem::take(&mut values);
            values = own.levels().into_iter().filter(|level| measured.contains(level)).collect();
        }
        let from = values.first().copied();
        let others = values.into_iter().skip(1);
        others.filter_map(move |to| Some(Column { setting, from: from?, to })).collect::<Vec<_>>()
    };
    space.settings.iter().enumerate().flat_map(of).collect()
}

/// A configuration as the model sees it: one, then for each column how far the setting is from the value left to the one taken.
fn row(space: &Space, columns: &[Column], configuration: &Configuration) -> Vec<f64> {
    let place = |column: &Column| {
        let (setting, value) = (&space.settings[column.setting], configuration.0[column.setting]);
        let place = |value: f64| setting.place(value);
        match &setting.domain {
            _ if !space.is_active(column.setting, configuration) => 0.0,
            Domain::Choice(_) => f64::from(u8::from(value == column.to)),
            _ => (place(value) - place(column.from)) / (place(column.to) - place(column.from)),
        }
    };
    std::iter::once(1.0).chain(columns.iter().map(place)).collect()
}

/// What is known of a column's effect beforehand: its mean over what was measured.
fn known_effect(
    space: &Space,
    screened: &[(Configuration, f64)],
    column: &Column,
    known: &dyn Fn(&Configuration) -> f64,
) -> f64 {
    let with = |configuration: &Configuration, value: f64| {
        let mut configuration = configuration.clone();
        configuration.0[column.setting] = value;
        known(&space.settled(configuration))
    };
    let active = screened.iter().filter(|(one, _)| space.is_active(column.setting, one));
    let all: Vec<f64> = active.map(|(one, _)| with(one, column.to) - with(one, column.from)).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

/// The effects on these scores; `known` is the part of a score that its settings alone tell, such as that of a price; `noise` is the
/// variance of repeats and its degrees of freedom, `less` where less of the objective is better. `None` where the runs cannot tell settings
/// apart.
pub(crate) fn effects(
    space: &Space,
    screened: &[(Configuration, f64)],
    baseline: &[f64],
    known: &dyn Fn(&Configuration) -> f64,
    noise: Option<(f64, f64)>,
    less: bool,
    margin: f64,
) -> Option<Effects> {
    let columns = columns(space, screened);
    if columns.is_empty() {
        return None;
    }
    let (count, width) = (screened.len(), columns.len() + 1);
    let freedom = count.checked_sub(width).filter(|freedom| *freedom > 0)? as f64;
    let rows = screened.iter().flat_map(|(configuration, _)| row(space, &columns, configuration));
    let design = DMatrix::from_row_iterator(count, width, rows);
    let scores = DVector::from_iterator(count, screened.iter().map(|(one, score)| score - known(one)));
    let root = (design.transpose() * &design).cholesky()?;
    // Columns that are sums of others, but for rounding, are no columns.
    if root.l_dirty().diagonal().min() < LEAST_PIVOT * (count as f64).sqrt() {
        return None;
    }
    let inverse = root.inverse();
    let weights = &inverse * design.transpose() * &scores;
    let left_over = &scores - &design * &weights;
    // What is left of equal scores is nothing but rounding.
    let spread = (left_over.norm_squared() / freedom).sqrt().max(1e-6);
    let t = t_quantile(1.0 - MISS / 2.0 / columns.len() as f64, freedom)?;
    let power = t_quantile(0.8, freedom)?;
    let sign = if less { -1.0 } else { 1.0 };
    let mut widest = 0.0f64;
    let mut effects = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let score = weights[index + 1] + known_effect(space, screened, column, known);
        let error = spread * inverse[(index + 1, index + 1)].sqrt();
        widest = widest.max(error);
        let (low, high) = (score - t * error, score + t * error);
        let verdict = match () {
            () if low > 0.0 => Verdict::Better,
            () if high < 0.0 => Verdict::Worse,
            () if low > -margin.ln_1p() && high < margin.ln_1p() => Verdict::Equal,
            () => Verdict::CannotTell,
        };
        let ends = [(sign * low).exp(), (sign * high).exp()];
        effects.push(Effect {
            setting: column.setting,
            from: column.from,
            to: column.to,
            ratio: (sign * score).exp(),
            interval: (ends[0].min(ends[1]), ends[0].max(ends[1])),
            p: two_sided(score / error, freedom)?,
            verdict,
            score,
            suspected: noise
                .and_then(|(variance, freedom)| {
                    two_sided(score / (error * variance.sqrt() / spread), freedom)
                })
                .unwrap_or(1.0),
        });
    }
    let own = DVector::from_vec(row(space, &columns, &space.baseline()));
    let curved = || {
        let mean = baseline.iter().sum::<f64>() / baseline.len() as f64 - known(&space.baseline());
        let unsure = own.dot(&(&inverse * &own)) + 1.0 / baseline.len() as f64;
        two_sided((mean - own.dot(&weights)) / (spread * unsure.sqrt()), freedom)
    };
    Some(Effects {
        effects,
        spread,
        detectable: ((t + power) * widest).exp_m1(),
        curved: (!baseline.is_empty()).then(curved).flatten(),
    })
}
