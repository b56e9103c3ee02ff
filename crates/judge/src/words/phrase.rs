//! Titles as pieces: words, and quantities with what they measure. Many of a kind are told in one, with ranges.

use crate::Finding;
use tidemark_measure::units;

/// What a quantity measures, and so how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// How many.
    Count,
    /// Nanoseconds.
    Duration,
    /// Per second.
    Rate,
    /// A share.
    Percent,
    /// How far the interval of a mean reaches to each side, as a share of it.
    PlusMinus,
    /// A share in whole percent: never nothing and never all unless it is.
    WholePercent,
    /// With one decimal.
    Decimal,
    /// Processor cores.
    Cores,
    /// Bytes, decimal units.
    Bytes,
    /// Bytes of a block, binary units.
    Block,
}

/// A number in a title.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity(f64, Measure);

impl Quantity {
    fn print(self) -> String {
        let Quantity(value, measure) = self;
        match measure {
            Measure::Count => units::count(value as u64),
            Measure::Duration => units::duration_ns(value as u64),
            Measure::Rate => units::rate(value),
            Measure::Percent => units::percent(value),
            Measure::PlusMinus => crate::evaluation::plus_minus(value),
            Measure::WholePercent => whole_percent(value),
            Measure::Decimal => format!("{value:.1}"),
            Measure::Cores => format!("{value:.2}"),
            Measure::Bytes => units::bytes(value as u64),
            Measure::Block => units::binary_bytes(value as u64),
        }
    }
}

/// A count.
pub fn count(count: u64) -> Quantity {
    Quantity(count as f64, Measure::Count)
}

/// A time, nanoseconds.
pub fn duration(ns: u64) -> Quantity {
    Quantity(ns as f64, Measure::Duration)
}

/// Something per second.
pub fn rate(per_second: f64) -> Quantity {
    Quantity(per_second, Measure::Rate)
}

/// How far the interval of a mean reaches to each side, as a share of it.
pub fn plus_minus(half_width: f64) -> Quantity {
    Quantity(half_width, Measure::PlusMinus)
}

/// A share, in percent.
pub fn percent(share: f64) -> Quantity {
    Quantity(share, Measure::Percent)
}

/// A share in whole percent: never nothing and never all unless it is.
pub fn share(share: f64) -> Quantity {
    Quantity(share, Measure::WholePercent)
}

/// A number with one decimal.
pub fn decimal(value: f64) -> Quantity {
    Quantity(value, Measure::Decimal)
}

/// Processor cores.
pub fn cores(cores: f64) -> Quantity {
    Quantity(cores, Measure::Cores)
}

/// Bytes, in decimal units.
pub fn bytes(bytes: f64) -> Quantity {
    Quantity(bytes, Measure::Bytes)
}

/// Bytes of a block, in binary units.
pub fn block(bytes: u64) -> Quantity {
    Quantity(bytes as f64, Measure::Block)
}

/// A share in whole percent; never nothing and never all unless it is.
pub fn whole_percent(share: f64) -> String {
    match share {
        none if none.is_nan() || none <= 0.0 => "0 %".into(),
        little if little < 0.01 => "under 1 %".into(),
        most if most > 0.99 && most < 1.0 => "over 99 %".into(),
        share => format!("{:.0} %", share * 100.0),
    }
}

/// A part of a title.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Words.
    Words(String),
    /// A quantity.
    Number(Quantity),
}

impl From<&str> for Piece {
    fn from(words: &str) -> Self {
        Piece::Words(words.to_owned())
    }
}

impl From<String> for Piece {
    fn from(words: String) -> Self {
        Piece::Words(words)
    }
}

impl From<&String> for Piece {
    fn from(words: &String) -> Self {
        Piece::Words(words.clone())
    }
}

impl From<Quantity> for Piece {
    fn from(quantity: Quantity) -> Self {
        Piece::Number(quantity)
    }
}

/// A title.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phrase(pub Vec<Piece>);

/// Pieces in a row: `phrase!["all ", count(8), " answers were right"]`.
#[macro_export]
macro_rules! phrase {
    ($($piece:expr),* $(,)?) => { $crate::words::phrase::Phrase(vec![$($crate::words::phrase::Piece::from($piece)),*]) };
}
pub use crate::phrase;

/// What makes findings alike: everything but their quantities.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Alike {
    rule: &'static str,
    pieces: Vec<Result<String, Measure>>,
}

impl Alike {
    pub(crate) fn of(finding: &Finding) -> Self {
        let gap = |piece: Piece| match piece {
            Piece::Words(words) => Ok(words),
            Piece::Number(Quantity(_, measure)) => Err(measure),
        };
        Self { rule: finding.rule(), pieces: finding.what.title().0.into_iter().map(gap).collect() }
    }
}

/// Alike titles in one: quantities that differ become their range.
pub(crate) fn merged(all: &[Phrase]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let piece = |(place, piece): (usize, &Piece)| match piece {
        Piece::Words(words) => words.clone(),
        Piece::Number(own) => {
            let numbers = all.iter().filter_map(|phrase| match phrase.0.get(place) {
                Some(Piece::Number(Quantity(value, _))) => Some(*value),
                _ => None,
            });
            let (low, high) =
                numbers.fold((own.0, own.0), |(low, high), value| (low.min(value), high.max(value)));
            let [low, high] = [low, high].map(|value| Quantity(value, own.1).print());
            if low == high { low } else { format!("{low} to {high}") }
        }
    };
    first.0.iter().enumerate().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_titles_are_one_with_the_range_of_their_quantities() {
        let busy = |share: f64, of: u64| phrase!["busy ", percent(share), ": ", count(of), " of ", count(4)];
        assert_eq!(
            merged(&[busy(0.1, 1), busy(0.3, 2), busy(0.09, 1)]),
            "busy 9.00 % to 30.00 %: 1 to 2 of 4"
        );
        let took = |ns| phrase!["took ", duration(ns)];
        assert_eq!(merged(&[took(9_000_000), took(1_000_000_000)]), "took 9.00 ms to 1.00 s");
    }

    #[test]
    fn whole_percents_are_honest_at_both_ends() {
        assert_eq!(
            [0.0, 0.001, 0.5, 0.999, 1.0, 1.02].map(whole_percent),
            ["0 %", "under 1 %", "50 %", "over 99 %", "100 %", "102 %"]
        );
    }
}
