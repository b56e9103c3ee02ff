//! Texts of others within lines of our own.

use std::borrow::Cow;

/// Ends a text that was cut.
const CUT: char = '…';

/// A text of somebody else as one line of at most so many characters, so that it can neither pass for lines of our own nor command a
/// terminal.
pub fn one_line(text: &str, most: usize) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::new();
    let mut left = most;
    for part in text.split(breaks).map(str::trim).filter(|part| !part.is_empty()) {
        if left > 0 && !line.is_empty() {
            line.push(' ');
            left -= 1;
        }
        let mut letters = part.chars();
        line.extend(letters.by_ref().take(left));
        if letters.next().is_some() {
            line.push(CUT);
            break;
        }
        left -= part.chars().count();
    }
    line
}

/// A word for a shell's command line, in quotes where it needs them.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-:=+@%,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("'{}'", text.replace('\'', "'\\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn breaks_become_blanks_and_what_is_too_long_is_cut() {
        assert_eq!(one_line("no\r\nVALID  fake \u{1b}[2J\u{2028}more", 300), "no VALID  fake [2J more");
        assert_eq!(one_line("abc\ndef", 7), "abc def");
        assert_eq!(one_line("abc\ndef", 6), "abc de…");
        assert_eq!(one_line("abc\n\n", 3), "abc");
        assert_eq!(one_line("abc\nd", 3), "abc…");
        assert_eq!(one_line(" \n", 3), "");
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_cut_them() {
        assert_eq!(shell_word("/tmp/a-1.dat"), "/tmp/a-1.dat");
        assert_eq!(shell_word("/tmp/my swap"), "'/tmp/my swap'");
        assert_eq!(shell_word("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(shell_word(""), "''");
    }

    proptest! {
        #[test]
        fn any_text_is_one_line_of_bounded_length(text in "(?s).{0,60}", most in 1usize..50) {
            let line = one_line(&text, most);
            prop_assert!(!line.contains(char::is_control) && line.chars().count() <= most + 1, "{line}");
        }
    }
}
