//! The selector language: how a document selects containers, objects and sizes.
//!
//! Both formats share it. COSBench's forms: `c(n)`, `u(a,b)`, `u(a)`, `r(a,b)`, the older `a-b`, `s(a,b)`,
//! `h(low|high|weight,...)`. Ours: `zipf(a,b,exponent)`, `hotspot(a,b,share,weight)`, `latest(a,b,exponent)`,
//! and for sizes `lognormal(median,sigma,low,high)`. A size is any of them with a unit behind it,
//! `u(1,50)KB`, or plain bytes, `64KiB`. Case and blanks do not matter. All bounds are inclusive.

use std::ops::Range;
use tidemark_keys::Problem;
use tidemark_keys::diagnostic::Diagnostic;
use tidemark_load::source::Size;
use tidemark_measure::pick::{Bucket, Pick};
use tidemark_measure::units;

/// What an open end means: COSBench's numbers are 32-bit.
pub const OPEN_END: u64 = i32::MAX as u64;

/// Numbers beyond this are refused: exact in a float, and far from where sums of them could overflow.
const MOST: u64 = 1_000_000_000_000_000;

/// Buckets beyond this are refused: every worker keeps a copy of them.
const MOST_BUCKETS: usize = 4096;

/// YCSB's exponent, when a document gives none.
const EXPONENT: f64 = 0.99;

/// A selector that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SelectorError {
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to write instead.
    pub help: String,
    /// Where, as a range of bytes of the selector's text.
    pub span: Range<usize>,
}

impl From<SelectorError> for Problem {
    fn from(error: SelectorError) -> Self {
        Self { span: Some(error.span), ..Self::new(error.message, error.help) }
    }
}

impl SelectorError {
    /// The same as a remark on the document; `place` turns a range of the selector into one of the document.
    pub fn diagnostic(self, place: impl FnOnce(Range<usize>) -> Range<usize>) -> Diagnostic {
        Diagnostic::error(place(self.span), self.message, self.help)
    }
}

/// Reads a selector of container or object numbers, which start at 1.
///
/// # Errors
/// What is wrong, where in `text`, and what to write instead.
pub fn numbers(text: &str) -> Result<Pick, SelectorError> {
    let form = Form::read(text)?;
    if form.is_empty_range() {
        return form.error("is empty", "give a range that starts at 1, such as r(1,100)");
    }
    if form.name == "lognormal" {
        return form.error("is for sizes only", "use zipf(a,b), hotspot(a,b,0.1,0.9) or latest(a,b)");
    }
    if !form.rest.text.is_empty() {
        return form.rest.error("follows a selector of numbers, which have no unit", "remove it");
    }
    form.pick(1)
}

/// Reads the range that a special work covers: `r(a,b)` or `a-b`; `None` for `r(0,0)`. Other forms that name
/// a whole range (`c(n)`, `u(a,b)`, `s(a,b)`) are accepted, as in COSBench's guide, though not in its code.
///
/// # Errors
/// As [`numbers`]; also for what does not name a range with an end.
pub fn range(text: &str) -> Result<Option<(u64, u64)>, SelectorError> {
    let form = Form::read(text)?;
    if form.is_empty_range() {
        return Ok(None);
    }
    match numbers(text)? {
        Pick::Uniform { high: OPEN_END, .. } if form.arguments.len() == 1 => {
            form.error("has no end", "give the first and the last number, such as r(1,100)")
        }
        pick @ (Pick::Constant(_) | Pick::Uniform { .. } | Pick::Sequence { .. } | Pick::Shared { .. }) => {
            Ok(Some(pick.bounds()))
        }
        _ => form.error("does not name a range", "use r(first,last)"),
    }
}

/// Reads a selector of sizes: a form with a unit behind it, or bytes such as `64KiB`.
///
/// # Errors
/// As [`numbers`]; also for a unit that is missing or unknown, and for sizes beyond what 63 bits hold.
pub fn size(text: &str) -> Result<Size, SelectorError> {
    if !text.contains(['(', ')']) && !text.contains('-') {
        let bytes = units::parse_bytes(text).map_err(|error| SelectorError {
            message: error.message,
            help: error.advice,
            span: 0..text.len(),
        });
        return Ok(Size { pick: Pick::Constant(bytes?), unit: 1 });
    }
    let form = Form::read(text)?;
    let pick = form.pick(0)?;
    let unit = form.rest.unit()?;
    if pick.bounds().1.checked_mul(unit).is_none_or(|most| most > i64::MAX as u64) {
        return form.error("is larger than any object can be", "lower the bound or use a smaller unit");
    }
    Ok(Size { pick, unit })
}

/// The arguments that a constant ignores, as in `c(1,100)KB`, which is always 1 KB: often a uniform selector
/// was meant.
pub fn ignored(text: &str) -> Option<Range<usize>> {
    let form = Form::read(text).ok().filter(|form| form.name == "c")?;
    let (second, last) = (form.arguments.get(1)?, form.arguments.last()?);
    Some(second.at..last.span().end)
}

/// Prints a selector in the form that [`numbers`] reads (`LogNormal`: [`size`]).
pub fn print(pick: &Pick) -> String {
    match pick {
        Pick::Constant(value) => format!("c({value})"),
        Pick::Uniform { low, high } => format!("u({low},{high})"),
        Pick::Sequence { low, high } => format!("r({low},{high})"),
        Pick::Shared { low, high } => format!("s({low},{high})"),
        Pick::Weighted(buckets) => {
            let bucket = |bucket: &Bucket| format!("{}|{}|{}", bucket.low, bucket.high, bucket.weight);
            format!("h({})", buckets.iter().map(bucket).collect::<Vec<_>>().join(","))
        }
        Pick::Zipf { low, high, exponent } => format!("zipf({low},{high},{exponent})"),
        Pick::Hotspot { low, high, hot_share, hot_weight } => {
            format!("hotspot({low},{high},{hot_share},{hot_weight})")
        }
        Pick::Latest { low, high, exponent } => format!("latest({low},{high},{exponent})"),
        Pick::LogNormal { median, sigma, low, high } => format!("lognormal({median},{sigma},{low},{high})"),
    }
}

/// Prints a size in the form that [`size`] reads. A unit without a name is printed in bytes.
pub fn print_size(size: &Size) -> String {
    const NAMES: [&str; 9] = ["B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"];
    let named = NAMES.iter().find(|name| units::parse_bytes(&format!("1{name}")) == Ok(size.unit));
    let unit = named.map_or_else(|| format!(" x {} B", size.unit), |name| (*name).to_owned());
    format!("{}{unit}", print(&size.pick))
}

/// A selector taken apart: a name, arguments in brackets, and what follows. `a-b` is read as `r(a,b)`.
struct Form<'a> {
    name: String,
    arguments: Vec<Piece<'a>>,
    rest: Piece<'a>,
    whole: Piece<'a>,
}

/// A part of a selector without the blanks around it, and where it stands.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Form<'a> {
    fn read(text: &'a str) -> Result<Self, SelectorError> {
        let whole = Piece::new(text, 0);
        let Some((name, after)) = whole.split_once('(') else {
            return Self::read_dashed(whole);
        };
        let Some((inside, rest)) = after.split_once(')') else {
            return whole.error("has no closing `)`", "close the bracket, as in r(1,100)");
        };
        let arguments = inside.split(',');
        Ok(Self { name: name.text.to_ascii_lowercase(), arguments, rest, whole })
    }

    fn read_dashed(whole: Piece<'a>) -> Result<Self, SelectorError> {
        let Some((low, after)) = whole.split_once('-') else {
            return whole.error(
                "is not a selector",
                "write a range such as r(1,100), or c(5) for number 5 alone; also u(a,b), s(a,b), \
                    h(low|high|weight,...), zipf(a,b)",
            );
        };
        let digits = after.text.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.text.len());
        let (high, rest) = (after.part(0..digits), after.part(digits..after.text.len()));
        Ok(Self { name: "r".into(), arguments: vec![low, high], rest, whole })
    }

    fn error<T>(&self, message: &str, help: &str) -> Result<T, SelectorError> {
        self.whole.error(message, help)
    }

    /// `r(0,0)` and `0-0`: COSBench's way to say "none".
    fn is_empty_range(&self) -> bool {
        self.name == "r" && self.arguments.len() == 2 && self.arguments.iter().all(|piece| piece.text == "0")
    }

    fn pick(&self, lowest: u64) -> Result<Pick, SelectorError> {
        let bounds = || self.bounds(0, lowest);
        match self.name.as_str() {
            "c" => self.arguments[0].number(lowest).map(Pick::Constant),
            "u" if self.arguments.len() == 1 => {
                Ok(Pick::Uniform { low: self.arguments[0].number(lowest)?, high: OPEN_END })
            }
            "u" => self
                .count(2..=2, "u(first,last)")
                .and_then(|()| bounds())
                .map(|(low, high)| Pick::Uniform { low, high }),
            "r" => self
                .count(2..=2, "r(first,last)")
                .and_then(|()| bounds())
                .map(|(low, high)| Pick::Sequence { low, high }),
            "s" => self
                .count(2..=2, "s(first,last)")
                .and_then(|()| bounds())
                .map(|(low, high)| Pick::Shared { low, high }),
            "h" => self.buckets(lowest).map(Pick::Weighted),
            "zipf" => {
                self.count(2..=3, "zipf(first,last,0.99)")?;
                let ((low, high), exponent) = (bounds()?, self.exponent()?);
                Ok(Pick::Zipf { low, high, exponent })
            }
            "latest" => {
                self.count(2..=3, "latest(first,last,0.99)")?;
                let ((low, high), exponent) = (bounds()?, self.exponent()?);
                Ok(Pick::Latest { low, high, exponent })
            }
            "hotspot" => {
                self.count(4..=4, "hotspot(first,last,0.1,0.9)")?;
                let (low, high) = bounds()?;
                let (hot_share, hot_weight) = (self.arguments[2].share()?, self.arguments[3].share()?);
                Ok(Pick::Hotspot { low, high, hot_share, hot_weight })
            }
            "lognormal" => {
                self.count(4..=4, "lognormal(median,sigma,low,high)")?;
                let (median, sigma) = (self.arguments[0].positive()?, self.arguments[1].positive()?);
                let (low, high) = self.bounds(2, lowest)?;
                Ok(Pick::LogNormal { median, sigma, low, high })
            }
            _ => self.error(
                "is not a known selector",
                "the forms are c(n), u(a,b), r(a,b), s(a,b), h(low|high|weight,...), zipf(a,b), \
                    hotspot(a,b,0.1,0.9), latest(a,b); for sizes also lognormal(median,sigma,low,high)",
            ),
        }
    }

    fn count(&self, expected: std::ops::RangeInclusive<usize>, example: &str) -> Result<(), SelectorError> {
        if expected.contains(&self.arguments.len()) {
            return Ok(());
        }
        let found = self.arguments.len();
        self.error(
            &format!("has {found} argument{}", if found == 1 { "" } else { "s" }),
            &format!("write {example}"),
        )
    }

    /// The bounds that stand at the `first` and the following argument.
    fn bounds(&self, first: usize, lowest: u64) -> Result<(u64, u64), SelectorError> {
        let (low, high) = (self.arguments[first], self.arguments[first + 1]);
        ordered(low, low.number(lowest)?, high.number(lowest)?)
    }

    fn exponent(&self) -> Result<f64, SelectorError> {
        self.arguments.get(2).map_or(Ok(EXPONENT), Piece::positive)
    }

    fn buckets(&self, lowest: u64) -> Result<Vec<Bucket>, SelectorError> {
        if self.arguments.len() > MOST_BUCKETS {
            return self.error("has too many ranges", &format!("use at most {MOST_BUCKETS}"));
        }
        let bucket = |piece: &Piece<'a>| {
            let parts = piece.split('|');
            let &[low, high, weight] = parts.as_slice() else {
                return piece.error(
                    "is not a weighted range",
                    "write low|high|weight, or low||weight for an open end",
                );
            };
            let last = if high.text.is_empty() { OPEN_END } else { high.number(lowest)? };
            let (low, high) = ordered(*piece, low.number(lowest)?, last)?;
            Ok(Bucket { low, high, weight: weight.number(1)? })
        };
        self.arguments.iter().map(bucket).collect()
    }
}

fn ordered(place: Piece<'_>, low: u64, high: u64) -> Result<(u64, u64), SelectorError> {
    if low > high {
        return Err(SelectorError {
            message: format!("the range goes down, from {low} to {high}"),
            help: format!("write the lower number first: {high},{low}"),
            span: place.span(),
        });
    }
    Ok((low, high))
}

impl<'a> Piece<'a> {
    fn new(text: &'a str, at: usize) -> Self {
        let start = text.len() - text.trim_start().len();
        Self { text: text.trim(), at: at + start }
    }

    fn part(&self, range: Range<usize>) -> Self {
        Self::new(&self.text[range.clone()], self.at + range.start)
    }

    fn span(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    fn split_once(&self, separator: char) -> Option<(Self, Self)> {
        let at = self.text.find(separator)?;
        Some((self.part(0..at), self.part(at + separator.len_utf8()..self.text.len())))
    }

    fn split(&self, separator: char) -> Vec<Self> {
        let mut at = self.at;
        let mut piece = |text: &'a str| {
            let own = Self::new(text, at);
            at += text.len() + separator.len_utf8();
            own
        };
        self.text.split(separator).map(&mut piece).collect()
    }

    fn error<T>(&self, message: &str, help: &str) -> Result<T, SelectorError> {
        let message = match self.text.is_empty() {
            true => message.to_owned(),
            false => format!("`{}` {message}", shown(self.text)),
        };
        Err(SelectorError { message, help: help.to_owned(), span: self.span() })
    }

    fn number(&self, lowest: u64) -> Result<u64, SelectorError> {
        if self.text.is_empty() {
            return self.error("a number is missing", "write whole numbers, as in r(1,100)");
        }
        if !self.text.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.error("is not a whole number", "write digits only, as in r(1,100)");
        }
        match self.text.parse::<u64>() {
            Ok(number) if number < lowest => {
                self.error(&format!("is below {lowest}"), &format!("numbers start at {lowest} here"))
            }
            Ok(number) if number <= MOST => Ok(number),
            _ => self.error("is too large", &format!("numbers go up to {MOST}")),
        }
    }

    fn decimal(&self) -> Option<f64> {
        let plain = self.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        self.text.parse::<f64>().ok().filter(|value| plain && value.is_finite())
    }

    fn positive(&self) -> Result<f64, SelectorError> {
        match self.decimal() {
            Some(value) if value > 0.0 => Ok(value),
            _ => self.error("is not a number above 0", "write a decimal number such as 0.99"),
        }
    }

    fn share(&self) -> Result<f64, SelectorError> {
        match self.decimal() {
            Some(value) if value <= 1.0 => Ok(value),
            _ => self.error("is not a share between 0 and 1", "write a decimal number such as 0.1"),
        }
    }

    /// Bytes in the unit that the piece names.
    fn unit(&self) -> Result<u64, SelectorError> {
        let known =
            "end the size with B, KB, MB, GB, TB (decimal) or KiB, MiB, GiB, TiB (binary), as in c(64)KB";
        if self.text.is_empty() {
            return self.error("the size has no unit", known);
        }
        let letters = self.text.bytes().all(|byte| byte.is_ascii_alphabetic());
        match letters.then(|| units::parse_bytes(&format!("1{}", self.text))) {
            Some(Ok(bytes)) => Ok(bytes),
            _ => self.error("is not a known unit of bytes", known),
        }
    }
}

/// A text short enough for a message.
fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn uniform(low: u64, high: u64) -> Pick {
        Pick::Uniform { low, high }
    }

    #[test]
    fn the_forms_of_numbers() {
        let bucket = |low, high, weight| Bucket { low, high, weight };
        let table = [
            ("c(5)", Pick::Constant(5)),
            ("c(1,100)", Pick::Constant(1)),
            ("u(1,32)", uniform(1, 32)),
            (" U ( 1 , 32 ) ", uniform(1, 32)),
            ("u(7)", uniform(7, 2_147_483_647)),
            ("r(1,32)", Pick::Sequence { low: 1, high: 32 }),
            ("1-32", Pick::Sequence { low: 1, high: 32 }),
            (" 1 - 32 ", Pick::Sequence { low: 1, high: 32 }),
            ("s(51,100)", Pick::Shared { low: 51, high: 100 }),
            ("h(1|10|3,11||7)", Pick::Weighted(vec![bucket(1, 10, 3), bucket(11, OPEN_END, 7)])),
            ("zipf(1,1000)", Pick::Zipf { low: 1, high: 1000, exponent: 0.99 }),
            ("Zipf(1,1000,1.2)", Pick::Zipf { low: 1, high: 1000, exponent: 1.2 }),
            ("hotspot(1,9,0.1,0.9)", Pick::Hotspot { low: 1, high: 9, hot_share: 0.1, hot_weight: 0.9 }),
            ("latest(1,9)", Pick::Latest { low: 1, high: 9, exponent: 0.99 }),
        ];
        for (text, pick) in table {
            assert_eq!(numbers(text), Ok(pick), "{text}");
        }
    }

    #[test]
    fn the_forms_of_sizes() {
        let table = [
            ("c(64)KB", Pick::Constant(64), 1000),
            ("c(64) kb", Pick::Constant(64), 1000),
            ("c(0)B", Pick::Constant(0), 1),
            ("u(1,50)MB", uniform(1, 50), 1_000_000),
            ("c(64)KiB", Pick::Constant(64), 1024),
            ("r(1,3)GiB", Pick::Sequence { low: 1, high: 3 }, 1 << 30),
            ("1-50KB", Pick::Sequence { low: 1, high: 50 }, 1000),
            ("c(2)TB", Pick::Constant(2), 1_000_000_000_000),
            ("c(1,100)KB", Pick::Constant(1), 1000),
            ("64KiB", Pick::Constant(65536), 1),
            ("1.5MB", Pick::Constant(1_500_000), 1),
            (
                "lognormal(64,1.5,1,4096)KB",
                Pick::LogNormal { median: 64.0, sigma: 1.5, low: 1, high: 4096 },
                1000,
            ),
        ];
        for (text, pick, unit) in table {
            assert_eq!(size(text), Ok(Size { pick, unit }), "{text}");
        }
    }

    #[test]
    fn ranges_of_special_works() {
        for (text, expected) in [
            ("r(1,32)", Some((1, 32))),
            ("1-32", Some((1, 32))),
            ("r(0,0)", None),
            ("0-0", None),
            ("c(4)", Some((4, 4))),
            ("u(2,3)", Some((2, 3))),
        ] {
            assert_eq!(range(text), Ok(expected), "{text}");
        }
        assert_eq!(range("u(5)").unwrap_err().message, "`u(5)` has no end");
        assert!(range("zipf(1,9)").is_err());
    }

    #[test]
    fn errors_say_where() {
        let table: [(&str, &str, Range<usize>); 13] = [
            ("", "is not a selector", 0..0),
            ("x(1,2)", "`x(1,2)` is not a known selector", 0..6),
            ("r(1,32", "`r(1,32` has no closing `)`", 0..6),
            ("r(1,)", "a number is missing", 4..4),
            ("r(1, 3x2)", "`3x2` is not a whole number", 5..8),
            ("r(32,1)", "the range goes down, from 32 to 1", 2..4),
            ("r(0,5)", "`0` is below 1", 2..3),
            ("u(1,2,3)", "`u(1,2,3)` has 3 arguments", 0..8),
            ("h(1|2)", "`1|2` is not a weighted range", 2..5),
            ("h(1|2|0)", "`0` is below 1", 6..7),
            ("zipf(1,2,-1)", "`-1` is not a number above 0", 9..11),
            ("hotspot(1,2,0.1,9)", "`9` is not a share between 0 and 1", 16..17),
            ("r(1,2)KB", "`KB` follows a selector of numbers, which have no unit", 6..8),
        ];
        for (text, message, span) in table {
            let error = numbers(text).unwrap_err();
            assert_eq!((error.message.as_str(), error.span), (message, span), "{text}");
        }
        let error = size("c(64)").unwrap_err();
        assert_eq!((error.message.as_str(), error.span), ("the size has no unit", 5..5));
        let error = size("c(64)K").unwrap_err();
        assert_eq!((error.message.as_str(), error.span), ("`K` is not a known unit of bytes", 5..6));
        assert!(size("c(64)5KB").is_err());
        assert!(numbers("r(0,0)").unwrap_err().message.contains("is empty"));
        assert!(size("c(1000000000000000)TiB").is_err());
    }

    #[test]
    fn a_constant_ignores_what_follows_its_first_argument() {
        assert_eq!(ignored("c(1,100)KB"), Some(4..7));
        assert_eq!(ignored("c(1)KB"), None);
        assert_eq!(ignored("u(1,100)KB"), None);
    }

    fn any_pick(lowest: u64) -> impl Strategy<Value = Pick> {
        let bounds = (lowest..1000, 0u64..1_000_000).prop_map(|(low, more)| (low, low + more));
        let bucket =
            (bounds.clone(), 1u64..1000).prop_map(|((low, high), weight)| Bucket { low, high, weight });
        let exponent = 0.01f64..4.0;
        prop_oneof![
            (lowest..1_000_000).prop_map(Pick::Constant),
            bounds.clone().prop_map(|(low, high)| Pick::Uniform { low, high }),
            bounds.clone().prop_map(|(low, high)| Pick::Sequence { low, high }),
            bounds.clone().prop_map(|(low, high)| Pick::Shared { low, high }),
            proptest::collection::vec(bucket, 1..6).prop_map(Pick::Weighted),
            (bounds.clone(), exponent.clone()).prop_map(|((low, high), exponent)| Pick::Zipf {
                low,
                high,
                exponent
            }),
            (bounds.clone(), exponent).prop_map(|((low, high), exponent)| Pick::Latest {
                low,
                high,
                exponent
            }),
            (bounds, 0.0f64..=1.0, 0.0f64..=1.0).prop_map(|((low, high), hot_share, hot_weight)| {
                Pick::Hotspot { low, high, hot_share, hot_weight }
            }),
        ]
    }

    proptest! {
        #[test]
        fn numbers_survive_printing(pick in any_pick(1)) {
            prop_assert_eq!(numbers(&print(&pick)), Ok(pick));
        }

        #[test]
        fn sizes_survive_printing(pick in any_pick(0), unit in 0usize..9) {
            let unit = match unit { 0..5 => 1000u64.pow(unit as u32), _ => 1024u64.pow(unit as u32 - 4) };
            let size = Size { pick, unit };
            prop_assert_eq!(super::size(&print_size(&size)), Ok(size));
        }

        #[test]
        fn no_text_makes_it_panic_or_point_outside(text in "[a-z0-9(),|. -]{0,20}|\\PC{0,30}|[curshzipf]{1,4}\\(\\PC{0,20}\\)[KMGTiB]{0,3}") {
            let errors = [numbers(&text).err(), range(&text).err(), size(&text).err()];
            for error in errors.into_iter().flatten() {
                prop_assert!(text.get(error.span.clone()).is_some(), "{:?}", error);
            }
            let _ = ignored(&text);
        }
    }
}
