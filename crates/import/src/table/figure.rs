//! Numbers as people write them: `1,383.30`, `1.383,30`, `4 693.97`, `99.5%`.

use crate::number::quantity;

/// Reads numbers of one table.
pub(super) struct Figures {
    /// Whether a comma is a decimal one unless something else speaks against it: cells are not divided by commas.
    comma: bool,
}

impl Figures {
    /// Numbers of a table whose cells are divided by this.
    pub(super) fn new(delimiter: char) -> Self {
        Self { comma: delimiter != ',' }
    }

    /// A number that is not negative.
    pub(super) fn read(&self, text: &str) -> Result<f64, String> {
        let bare: String = text.trim().trim_end_matches('%').chars().filter(|c| !c.is_whitespace()).collect();
        let plain = match (bare.rfind('.'), bare.rfind(',')) {
            (_, None) => bare,
            (Some(point), Some(comma)) if comma > point => bare.replace('.', "").replace(',', "."),
            (Some(_), Some(_)) => bare.replace(',', ""),
            (None, Some(_)) if !in_thousands(&bare) => bare.replace(',', "."),
            (None, Some(_)) if self.comma => {
                let (point, whole) = (bare.replace(',', "."), bare.replace(',', ""));
                return Err(format!("`{text}` may mean {whole} or {point}; write it unambiguously"));
            }
            (None, Some(_)) => bare.replace(',', ""),
        };
        quantity(&plain).ok_or_else(|| format!("`{text}` is not a number of 0 or more"))
    }
}

/// Whether every comma stands where one divides thousands.
fn in_thousands(text: &str) -> bool {
    let mut groups = text.split(',');
    let first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()));
    first && groups.all(|group| group.len() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_write_them() {
        let (commas, semicolons) = (Figures::new(','), Figures::new(';'));
        for (text, number) in [
            ("1,383.30", 1_383.3),
            ("1.383,30", 1_383.3),
            ("4 693.97", 4_693.97),
            ("99.5%", 99.5),
            ("20,5", 20.5),
            ("1e3", 1_000.0),
        ] {
            assert_eq!((commas.read(text), semicolons.read(text)), (Ok(number), Ok(number)), "{text}");
        }
        assert_eq!(commas.read("1,383"), Ok(1_383.0));
        assert!(semicolons.read("1,383").unwrap_err().contains("1383 or 1.383"));
        for text in ["", "-1", "x", "1,2,3", "1.2.3", "inf"] {
            assert!(commas.read(text).is_err() && semicolons.read(text).is_err(), "{text}");
        }
    }
}
