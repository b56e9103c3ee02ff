//! The known name that a misspelled one was probably meant to be.

/// Longer names are not typing errors of a known one, and comparing them would cost time.
const LONGEST: usize = 40;

/// The known name nearest to `name`, if one is near enough to be meant: a letter in three may differ.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&name, &known.to_lowercase());
    let (distance, best) = known.into_iter().map(|known| (distance(known), known)).min()?;
    (distance <= name.chars().count() / 3).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["totalOps", "totalBytes", "runtime", "workers"];
        assert_eq!(nearest("totalops", known), Some("totalOps"));
        assert_eq!(nearest("worker", known), Some("workers"));
        assert_eq!(nearest("runtmie", known), Some("runtime"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), known), None);
        assert_eq!(nearest("", known), None);
    }
}
