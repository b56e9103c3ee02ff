//! An edited document gets the values back that were hidden from its editor.
//!
//! Only whole lines are put back that stand in the text as they were shown: where a line was changed, nobody knows whether the
//! value still belongs there, and the editor has to write it again.

use crate::api::Problem;
use std::collections::HashMap;
use tidemark_plan::redact::redact;

/// What stands for a value that is hidden.
const HIDDEN: &str = "***";

/// The document `edited` with what was hidden in `original`; otherwise what is wrong with a line.
pub(crate) fn restore(edited: &str, original: &str) -> Result<String, Problem> {
    let shown = redact(original);
    let mut hidden: HashMap<&str, Vec<&str>> = HashMap::new();
    let aligned = shown.lines().count() == original.lines().count();
    for (shown, own) in shown.lines().zip(original.lines()).filter(|_| aligned) {
        if shown != own {
            hidden.entry(shown).or_default().push(own);
        }
    }
    let mut used: HashMap<&str, usize> = HashMap::new();
    let mut out = String::with_capacity(edited.len());
    for (index, line) in edited.split_inclusive('\n').enumerate() {
        let text = line.trim_end_matches(['\n', '\r']);
        let wrong = |what: &str| Err(problem(index, text, what));
        match hidden.get(text) {
            // Where lines look alike and hide different values, the order of all of them says which is which.
            Some(values) => {
                let place = used.entry(text).or_default();
                let alike = values.windows(2).all(|pair| pair[0] == pair[1]);
                let all = edited.lines().filter(|other| *other == text).count() == values.len();
                let Some(value) = values.get(*place).or(values.first()).filter(|_| alike || all) else {
                    return wrong("it is not clear which hidden value belongs here: write it again");
                };
                *place += 1;
                out.push_str(value);
                out.push_str(&line[text.len()..]);
            }
            None if text.contains(HIDDEN) => {
                return wrong(
                    "a value is hidden in this line, and the line was changed: write the value again",
                );
            }
            None => out.push_str(line),
        }
    }
    Ok(out)
}

/// The first line of a document with something hidden that is not in the original: who edited it may not have it back.
pub(crate) fn hidden_from(edited: &str, original: &str, what: &str) -> Option<Problem> {
    let hidden = |line: &str| line.contains(HIDDEN) && !original.lines().any(|own| own == line);
    let (index, text) = edited.lines().enumerate().find(|(_, line)| hidden(line))?;
    Some(problem(index, text, what))
}

fn problem(index: usize, text: &str, what: &str) -> Problem {
    Problem {
        general: false,
        warning: false,
        line: index as u32 + 1,
        column: 1,
        length: text.chars().count() as u32,
        message: what.into(),
        help: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: &str = "a:\n  access_key: id\n  secret_key: one\nb:\n  secret_key: two\n";

    #[test]
    fn unchanged_lines_get_their_values_back() {
        let shown = redact(ORIGINAL);
        assert!(!shown.contains("one"), "{shown}");
        assert_eq!(restore(&shown, ORIGINAL).unwrap(), ORIGINAL);
        let edited = shown.replace("access_key: id", "access_key: other");
        assert_eq!(restore(&edited, ORIGINAL).unwrap(), ORIGINAL.replace("id", "other"));
        assert_eq!(restore("x: 1", ORIGINAL).unwrap(), "x: 1");
    }

    #[test]
    fn what_is_not_clear_is_to_be_written_again() {
        let shown = redact(ORIGINAL);
        let moved = shown.replace("  secret_key", "    secret_key");
        assert_eq!(restore(&moved, ORIGINAL).unwrap_err().line, 3);
        let one_left = shown.replacen("  secret_key: \"***\"\n", "", 1);
        assert!(one_left != shown, "{shown}");
        assert!(restore(&one_left, ORIGINAL).unwrap_err().message.contains("not clear"));
        let line = "<storage config=\"accesskey=a;secretkey=b;endpoint=http://one\"/>\n";
        let other = redact(line).replace("one", "two");
        assert!(restore(&other, line).unwrap_err().message.contains("changed"));
    }
}
