//! Options that several workloads have, under the names that users know from the tools which have them.

use serde::{Deserialize, Serialize};
use tidemark_keys::kinds::{Parsed, Whole, Word};
use tidemark_keys::{Key, Problem};
use tidemark_measure::pick::{Cursor, Part, Pick};
use tidemark_measure::rng::Rng;

/// The largest number of rows of a table that is treated as intended.
const MOST_ROWS: u64 = 1_000_000_000_000;

/// A number of rows, with `k`, `M`, `G` for thousands.
pub type Rows = Parsed<u64>;

/// The kind of a number of rows.
pub const ROWS: Rows = Parsed("number of rows such as `100000`, `100k`, `10M`", rows);

fn rows(text: &str) -> Result<u64, Problem> {
    let wrong = || {
        Problem::new(format!("'{text}' is no number of rows"), "write a number such as 100000, 100k or 10M")
    };
    let (digits, factor) = match text.strip_suffix(['k', 'K', 'M', 'm', 'G', 'g']) {
        None => (text, 1),
        Some(digits) => match text.as_bytes()[text.len() - 1].to_ascii_lowercase() {
            b'k' => (digits, 1_000),
            b'm' => (digits, 1_000_000),
            _ => (digits, 1_000_000_000),
        },
    };
    let rows = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)?;
    match rows {
        1..=MOST_ROWS => Ok(rows),
        _ => Err(Problem::new(format!("{text} rows are out of range"), "write a number from 1 to 1000G")),
    }
}

/// pgbench's `-s`.
pub(crate) static SCALE: Key<Whole<u64>> = Key::new(
    "scale",
    "Size of the data set: 100,000 accounts each, about 15 MB (pgbench `-s`)",
    Whole(1, 20_000),
)
.default("1");

/// Rows of the one table of a workload.
pub(crate) static ROWS_KEY: Key<Rows> =
    Key::new("rows", "Rows of the table", ROWS).otherwise("the workload's own");

/// Which rows are chosen.
pub(crate) static DISTRIBUTION: Key<Word<Distribution>> = Key::new(
    "distribution",
    "Which rows are chosen: `special` is sysbench 1.0's default, three in four from 1 % of the rows; `zipfian` is scattered \
     over the table",
    Word(&[
        ("uniform", Distribution::Uniform),
        ("zipfian", Distribution::Zipfian),
        ("special", Distribution::Special),
        ("gaussian", Distribution::Gaussian),
        ("pareto", Distribution::Pareto),
    ]),
)
.otherwise("`uniform`; of ycsb `zipfian`")
.also(&["rand_type", "requestdistribution"]);

/// How rows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All equally likely.
    Uniform,
    /// By rank, scattered.
    Zipfian,
    /// sysbench's: three quarters from a hot hundredth in the middle, the rest gaussian.
    Special,
    /// The mean of twelve uniform numbers.
    Gaussian,
    /// The 80/20 rule, from the first row on.
    Pareto,
}

/// One slot's choices of a number from 0 up to a bound.
pub struct Chooser {
    distribution: Distribution,
    bound: u64,
    cursor: Cursor,
}

impl Chooser {
    /// Chooses numbers below `bound`, which is above 0; `exponent` is that of a Zipf distribution.
    pub fn new(distribution: Distribution, bound: u64, exponent: f64) -> Self {
        let pick = match distribution {
            Distribution::Zipfian => Pick::Zipf { low: 0, high: bound - 1, exponent },
            _ => Pick::Uniform { low: 0, high: bound - 1 },
        };
        Self { distribution, bound, cursor: pick.cursor(Part::WHOLE) }
    }

    /// The next one.
    pub fn next(&mut self, rng: &mut Rng) -> u64 {
        let bound = self.bound;
        let gaussian = |rng: &mut Rng| (0..12).map(|_| rng.below(bound)).sum::<u64>() / 12;
        match self.distribution {
            Distribution::Uniform | Distribution::Zipfian => self.cursor.next(rng),
            Distribution::Gaussian => gaussian(rng),
            Distribution::Special if rng.below(4) == 0 => gaussian(rng),
            Distribution::Special => {
                let hot = (bound / 100).max(1);
                (bound / 2).saturating_sub(hot / 2) + rng.below(hot)
            }
            // With h = 0.2: a fifth of the rows has four fifths of the choices.
            Distribution::Pareto => {
                let power = 0.2_f64.ln() / 0.8_f64.ln();
                ((bound as f64 * rng.unit().powf(power)) as u64).min(bound - 1)
            }
        }
    }
}

/// Options in the form in which a plan carries them.
///
/// # Panics
/// Never: options are numbers and texts.
pub(crate) fn pack(options: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(options).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_rows_have_suffixes() {
        assert_eq!(rows("100k").ok(), Some(100_000));
        assert_eq!(rows("10M").ok(), Some(10_000_000));
        assert_eq!(rows("7").ok(), Some(7));
        for wrong in ["", "k", "0", "-1", "1.5M", "2000G", "10T"] {
            assert!(rows(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn distributions_are_what_they_are_called() {
        let shares = |distribution, within: &dyn Fn(u64) -> bool| {
            let (mut chooser, mut rng) = (Chooser::new(distribution, 10_000, 0.99), Rng::new(1, &[]));
            let hits = (0..20_000).filter(|_| within(chooser.next(&mut rng))).count();
            hits as f64 / 20_000.0
        };
        let near = |share: f64, expected: f64| (share - expected).abs() < 0.02;
        assert!(near(shares(Distribution::Uniform, &|row| row < 2_000), 0.2));
        assert!(near(shares(Distribution::Pareto, &|row| row < 2_000), 0.8));
        assert!(shares(Distribution::Special, &|row| (4_950..5_050).contains(&row)) > 0.75);
        assert!(shares(Distribution::Gaussian, &|row| (4_000..6_000).contains(&row)) > 0.7);
        assert!(shares(Distribution::Zipfian, &|row| row < 100) < 0.2, "hot rows are scattered");
        for distribution in [Distribution::Gaussian, Distribution::Pareto, Distribution::Special] {
            assert_eq!(shares(distribution, &|row| row >= 10_000), 0.0);
            let (mut one, mut rng) = (Chooser::new(distribution, 1, 0.99), Rng::new(1, &[]));
            assert_eq!(one.next(&mut rng), 0);
        }
    }
}
