//! An answer in a few numbers, so that two can be compared, whichever engines gave them.
//!
//! Engines differ in the order of rows that a query leaves open, in the digits of a quotient, and in how they write a number. A
//! digest has the number of rows and a sum over each column: of numbers their sum, of anything else a sum of hashes. Two agree when
//! rows and hashes are equal and sums of numbers differ by less than a millionth of what was added up, and by what an engine that cuts
//! quotients off after some digits can have left out.

use std::fmt;
use tidemark_measure::rng;

/// How much two sums may differ, as a share of the sum of magnitudes.
const TOLERANCE: f64 = 1e-6;

/// Numbers with so many decimals or more may be quotients that were cut off: amounts of money have two, their products four.
const CUT_OFF: usize = 6;

/// An answer as a few numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Digest {
    rows: u64,
    columns: Vec<Column>,
}

/// A column of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Column {
    /// Cells that are null.
    nulls: u64,
    /// Cells that are numbers; the others are texts.
    numbers: u64,
    /// Their sum.
    sum: f64,
    /// The sum of their magnitudes: what the tolerance is a share of.
    magnitude: f64,
    /// The most by which its sum can be too small or too large, because quotients were cut off; not kept with known answers.
    cut_off: f64,
    /// A sum of hashes of the texts.
    hash: u64,
}

impl Digest {
    /// Adds a row: each cell as text, or null.
    pub fn add<'a>(&mut self, row: impl Iterator<Item = Option<&'a str>>) {
        self.rows += 1;
        for (place, cell) in row.enumerate() {
            if self.columns.len() <= place {
                self.columns.resize(place + 1, Column::default());
            }
            self.columns[place].add(cell);
        }
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether another one is of the same answer.
    ///
    /// # Errors
    /// A clause that says in what they differ.
    pub fn agrees(&self, known: &Digest) -> Result<(), String> {
        if self.rows != known.rows {
            return Err(format!("it has {} rows instead of {}", self.rows, known.rows));
        }
        if self.columns.len() != known.columns.len() {
            return Err(format!("it has {} columns instead of {}", self.columns.len(), known.columns.len()));
        }
        for (place, (own, other)) in self.columns.iter().zip(&known.columns).enumerate() {
            own.agrees(other).map_err(|why| format!("in column {}, {why}", place + 1))?;
        }
        Ok(())
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split_whitespace();
        let rows = parts.next()?.parse().ok()?;
        Some(Self { rows, columns: parts.map(Column::read).collect::<Option<_>>()? })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.rows)?;
        for Column { nulls, numbers, sum, magnitude, hash, .. } in &self.columns {
            write!(formatter, " {nulls}/{numbers}/{sum:.9e}/{magnitude:.9e}/{hash:016x}")?;
        }
        Ok(())
    }
}

impl Column {
    fn add(&mut self, cell: Option<&str>) {
        // Types of fixed length are filled with blanks.
        let Some(cell) = cell.map(str::trim_end) else {
            self.nulls += 1;
            return;
        };
        match number(cell) {
            Some(number) => {
                self.numbers += 1;
                self.sum += number;
                self.magnitude += number.abs();
                self.cut_off += last_place(cell);
            }
            None => {
                let hash = spelling(cell).bytes().fold(0, |hash, byte| rng::mix(hash, &[u64::from(byte)]));
                self.hash = self.hash.wrapping_add(hash);
            }
        }
    }

    fn agrees(&self, known: &Column) -> Result<(), String> {
        if self.nulls != known.nulls {
            return Err(format!("{} values are null instead of {}", self.nulls, known.nulls));
        }
        if self.numbers != known.numbers || self.hash != known.hash {
            return Err("values differ".into());
        }
        let most = TOLERANCE * self.magnitude.max(known.magnitude) + self.cut_off.max(known.cut_off);
        match (self.sum - known.sum).abs() <= most {
            true => Ok(()),
            false => Err(format!("the sum is {} instead of {}", self.sum, known.sum)),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let mut next = || parts.next();
        Some(Self {
            nulls: next()?.parse().ok()?,
            numbers: next()?.parse().ok()?,
            sum: next()?.parse().ok()?,
            magnitude: next()?.parse().ok()?,
            hash: u64::from_str_radix(next()?, 16).ok()?,
            cut_off: 0.0,
        })
    }
}

/// A number, as any engine writes it. A date or a telephone number is none.
fn number(cell: &str) -> Option<f64> {
    let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    let begins = digits.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || byte == b'.');
    cell.parse().ok().filter(|number: &f64| begins && number.is_finite())
}

/// One unit of the last place of a number that may have been cut off there; otherwise 0.
fn last_place(cell: &str) -> f64 {
    match cell.split_once('.') {
        Some((_, decimals))
            if decimals.len() >= CUT_OFF && decimals.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            10f64.powi(-i32::try_from(decimals.len()).unwrap_or(i32::MAX))
        }
        _ => 0.0,
    }
}

/// What a quotient by 0 has one spelling for: engines have `NaN` and `nan`, `inf` and `Infinity`.
fn spelling(cell: &str) -> &str {
    match cell.parse::<f64>() {
        Ok(number) if number.is_nan() => "NaN",
        Ok(number) if number.is_infinite() && number > 0.0 => "inf",
        Ok(number) if number.is_infinite() => "-inf",
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digest(rows: &[&[Option<&str>]]) -> Digest {
        let mut digest = Digest::default();
        rows.iter().for_each(|row| digest.add(row.iter().copied()));
        digest
    }

    #[test]
    fn order_blanks_and_notations_do_not_matter_and_everything_else_does() {
        let known = digest(&[
            &[Some("BRAZIL"), Some("1.50"), None],
            &[Some("PERU"), Some("2e3"), Some("1994-01-01")],
        ]);
        let same = digest(&[
            &[Some("PERU"), Some("2000"), Some("1994-01-01")],
            &[Some("BRAZIL   "), Some("1.5000001"), None],
        ]);
        assert_eq!(same.agrees(&known), Ok(()));
        let odd = digest(&[&[Some("nan")], &[Some("Infinity")], &[Some("-inf")]]);
        assert_eq!(odd.agrees(&digest(&[&[Some("inf")], &[Some("NaN")], &[Some("-Infinity")]])), Ok(()));
        assert!(odd.agrees(&digest(&[&[Some("inf")], &[Some("NaN")], &[Some("Infinity")]])).is_err());
        let others: [&[&[Option<&str>]]; 5] = [
            &[&[Some("BRAZIL"), Some("1.50"), None]],
            &[&[Some("BRAZIL"), Some("1.50"), None], &[Some("PERU"), Some("2001"), Some("1994-01-01")]],
            &[&[Some("BRAZIL"), Some("1.50"), None], &[Some("CHINA"), Some("2000"), Some("1994-01-01")]],
            &[&[Some("BRAZIL"), Some("1.50"), Some("0")], &[Some("PERU"), Some("2000"), Some("1994-01-01")]],
            &[&[Some("BRAZIL"), Some("1.50"), None], &[Some("PERU"), Some("2000"), Some("1994-01-02")]],
        ];
        for other in others {
            assert!(digest(other).agrees(&known).is_err(), "{other:?}");
        }
        let sums = digest(&[&[Some("100.5")], &[Some("-99.5")]]);
        assert!(
            digest(&[&[Some("100.6")], &[Some("-99.5")]]).agrees(&sums).is_err(),
            "a tenth of two hundred"
        );
    }

    #[test]
    fn quotients_may_be_cut_off_and_amounts_may_not() {
        let known = digest(&[&[Some("0.0499876543")], &[Some("0.0500009999")]]);
        let answer = |one, other| digest(&[&[Some(one)], &[Some(other)]]);
        assert_eq!(answer("0.049987", "0.050000").agrees(&known), Ok(()));
        assert!(answer("0.049984", "0.050000").agrees(&known).is_err());
        assert!(answer("0.0499", "0.0500").agrees(&known).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(rows in proptest::collection::vec(
            proptest::collection::vec(proptest::option::of("[a-z0-9.-]{0,9}"), 3), 0..20)) {
            let mut digest = Digest::default();
            for row in &rows {
                digest.add(row.iter().map(Option::as_deref));
            }
            let read = Digest::read(&digest.to_string()).unwrap();
            prop_assert_eq!(read.agrees(&digest), Ok(()));
            prop_assert_eq!(digest.agrees(&read), Ok(()));
        }
    }
}
