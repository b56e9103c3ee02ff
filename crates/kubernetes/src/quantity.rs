//! Kubernetes' quantities: `64Gi`, `500m`, `2`.

use serde::{Serialize, Serializer};
use std::fmt;
use tidemark_keys::Problem;
use tidemark_keys::kinds::Parsed;

/// An amount as Kubernetes writes it. It keeps its spelling, which is also how it displays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    text: String,
    /// Thousandths of what it counts.
    milli: u128,
}

/// Suffixes and what they stand for, in thousandths.
const SUFFIXES: [(&str, u128); 14] = [
    ("Ki", 1000 << 10),
    ("Mi", 1000 << 20),
    ("Gi", 1000 << 30),
    ("Ti", 1000 << 40),
    ("Pi", 1000 << 50),
    ("Ei", 1000 << 60),
    ("m", 1),
    ("k", 1_000_000),
    ("M", 1_000_000_000),
    ("G", 1_000_000_000_000),
    ("T", 1_000_000_000_000_000),
    ("P", 1_000_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000_000),
    ("", 1000),
];

/// The largest amount, thousandths: what a signed number of 64 bits holds, as in Kubernetes.
const MOST: u128 = (i64::MAX as u128) * 1000;

impl Quantity {
    /// So many of a unit that is one of Kubernetes' suffixes.
    pub(crate) fn whole(number: u32, suffix: &'static str) -> Self {
        let text = format!("{number}{suffix}");
        let milli = SUFFIXES.into_iter().find(|(name, _)| *name == suffix).map_or(1000, |(_, unit)| unit);
        Self { milli: milli * u128::from(number), text }
    }

    /// Reads a quantity: digits, perhaps a fraction, perhaps a suffix.
    fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(digits);
        let (_, unit) = SUFFIXES.into_iter().find(|(name, _)| *name == suffix)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let of_places = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let whole = whole.parse::<u128>().ok()?.checked_mul(unit)?;
        let part = fraction.parse::<u128>().ok()?.checked_mul(unit)?;
        let milli = whole.checked_add(part.checked_div(of_places)?)?;
        let is_exact = part.is_multiple_of(of_places) && milli > 0 && milli <= MOST;
        is_exact.then(|| Self { text: text.to_owned(), milli })
    }

    /// The whole units in it: bytes of a size. What is less than one is left out.
    pub fn units(&self) -> u64 {
        u64::try_from(self.milli / 1000).unwrap_or(u64::MAX)
    }

    /// Thousandths of what it counts: of a processor, where it counts those.
    pub fn thousandths(&self) -> u64 {
        u64::try_from(self.milli).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// A size in whole bytes.
pub const SIZE: Parsed<Quantity> = Parsed("size such as `64Gi`", |text| {
    let help = "write a number of bytes with a suffix of Kubernetes, such as 64Gi or 64G";
    let quantity = Quantity::parse(text).ok_or_else(|| not_one(text, help))?;
    match quantity.milli.is_multiple_of(1000) {
        true => Ok(quantity),
        // Kubernetes takes it, and rounds it up to a byte.
        false => {
            Err(Problem::new(format!("'{text}' is no whole number of bytes: `m` means thousandths"), help))
        }
    }
});

/// Processors, whole or in part.
pub(crate) const PROCESSORS: Parsed<Quantity> = Parsed("processors such as `6` or `500m`", |text| {
    let help = "write a number of processors, such as 6, 1.5 or 500m";
    let is_plain = text.trim_end_matches('m').bytes().all(|one| one.is_ascii_digit() || one == b'.');
    Quantity::parse(text).filter(|_| is_plain).ok_or_else(|| not_one(text, help))
});

fn not_one(text: &str, help: &str) -> Problem {
    Problem::new(format!("'{text}' is not a quantity"), help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_keys::Kind as _;

    #[test]
    fn sizes_are_those_of_kubernetes() {
        let bytes = |text: &str| SIZE.read(text).map(|size| size.units()).ok();
        for (text, expected) in [
            ("64Gi", 64 << 30),
            ("5G", 5_000_000_000),
            ("1.5Ti", 3 << 39),
            ("1048576", 1 << 20),
            ("2000m", 2),
            ("7Ei", 7 << 60),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for text in [
            "", "Gi", "64GiB", "64GB", "64 Gi", "-1Gi", "0", "0Gi", "1.", ".5Gi", "1e3", "8Ei", "64m",
            "0.3Ki", "1..2", "９",
        ] {
            assert_eq!(bytes(text), None, "{text}");
        }
        assert!(SIZE.read("64m").is_err_and(|problem| problem.message.contains("thousandths")));
    }

    #[test]
    fn processors_have_no_suffix_but_thousandths() {
        let milli = |text: &str| PROCESSORS.read(text).map(|cpu| cpu.thousandths()).ok();
        assert_eq!(["6", "1.5", "500m"].map(milli), [Some(6000), Some(1500), Some(500)]);
        assert_eq!(["6Gi", "2k", "0", "0.0001", "m", "6mm"].map(milli), [None; 6]);
    }
}
