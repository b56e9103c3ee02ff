//! Placeholders that somebody was to replace: `<accesskey>`, `{{ workers }}`, `${SIZE}`. However many there are, the file is
//! a template, and that is said once.

use super::remarks::Remarks;
use super::tree::Element;
use std::ops::Range;

/// The longest placeholder, bytes: what is longer is something else.
const LONGEST: usize = 60;

/// Placeholders beyond this are counted and not named.
const MOST_NAMED: usize = 12;

/// Placeholders beyond this are not even told apart.
const MOST_KEPT: usize = 500;

/// What placeholders are to be replaced with, by a part of their word; the first that fits is meant.
const MEANT: [(&str, &str); 7] = [
    ("secret", "your secret key"),
    ("scret", "your secret key"),
    ("access", "your access key"),
    ("endpoint", "the address of your storage, such as http://host:port"),
    ("user", "your user name"),
    ("pass", "your password"),
    ("url", "the address of the service"),
];

/// Reports the placeholders of a document, those of its targets only if they are `used`. Gives whether others than those of
/// targets are among them: what else is wrong cannot be told then.
pub(super) fn report(root: &Element, used: bool, remarks: &mut Remarks) -> bool {
    let mut found = Found::default();
    found.walk(root, used);
    let Some((_, first)) = found.words.first() else { return false };
    let named: Vec<String> =
        found.words.iter().take(MOST_NAMED).map(|(word, _)| format!("`{word}`")).collect();
    let more = found.words.len() - named.len();
    let least = if found.words.len() == MOST_KEPT { "at least " } else { "" };
    let and = if more > 0 { format!(" and {least}{more} more") } else { String::new() };
    let message = match (named.as_slice(), found.places) {
        ([only], 1) => format!("{only} is a placeholder, not a value"),
        ([only], places) => format!("{only} is a placeholder, not a value, at {places} places"),
        (named, places) => {
            format!("the file is a template with placeholders at {places} places: {}{and}", named.join(", "))
        }
    };
    let helps: Vec<String> = found.words.iter().take(MOST_NAMED).map(|(word, _)| help(word)).collect();
    remarks.error(first.clone(), message, helps.join("; "));
    found.beyond_targets
}

fn help(word: &str) -> String {
    let lower = word.to_lowercase();
    match MEANT.iter().find(|(part, _)| lower.contains(part)) {
        _ if lower.contains("proxy") => {
            format!("remove the setting of `{word}`: Tidemark connects directly, without a proxy")
        }
        Some((_, meant)) => format!("replace `{word}` with {meant}"),
        None => format!("replace `{word}` with a value of your own"),
    }
}

/// The first placeholder in a value of a target's config, or of anything else, where more forms of it are known.
pub(super) fn first(text: &str, of_target: bool) -> Option<Range<usize>> {
    let mut starts = text.char_indices().filter(|(_, c)| "<{$@%_".contains(*c));
    starts.find_map(|(at, _)| Some(at..at + length(&text[at..], of_target)?))
}

/// The bytes of the placeholder that a text begins with.
fn length(text: &str, of_target: bool) -> Option<usize> {
    const FORMS: [(&str, &str); 6] =
        [("<", ">"), ("{{", "}}"), ("${", "}"), ("@", "@"), ("%", "%"), ("__", "__")];
    let (open, close) = FORMS.into_iter().find(|(open, _)| text.starts_with(open))?;
    // Passwords may look like the others, and what is in `${}` there comes from the environment.
    if of_target && !matches!(open, "<" | "{{") {
        return None;
    }
    // No further than a placeholder reaches: a value of brackets alone is not searched again for each of them.
    let rest = &text[open.len()..];
    let reach = (0..=rest.len().min(LONGEST + close.len())).rev().find(|at| rest.is_char_boundary(*at))?;
    let (word, _) = rest[..reach].split_once(close)?;
    let plain = |c: char| c.is_alphanumeric() || "_-. :".contains(c);
    let inner = word.trim();
    let is_word = inner.starts_with(char::is_alphabetic) && inner.chars().all(plain);
    (is_word && word.len() <= LONGEST).then(|| open.len() + word.len() + close.len())
}

#[derive(Default)]
struct Found {
    /// Each as it is written, with its first place.
    words: Vec<(String, Range<usize>)>,
    places: usize,
    beyond_targets: bool,
}

impl Found {
    fn walk(&mut self, element: &Element, used: bool) {
        let of_target = matches!(element.name.as_str(), "storage" | "auth");
        let free = ["name", "description", "trigger"];
        let values = element.attributes.iter().filter(|one| of_target || !free.contains(&one.name.as_str()));
        for value in values.filter(|_| used || !of_target).map(|attribute| &attribute.value) {
            let mut at = 0;
            while let Some(place) = first(&value.text[at..], of_target) {
                let (start, end) = (at + place.start, at + place.end);
                self.add(&value.text[start..end], value.place(start..end));
                self.beyond_targets |= !of_target;
                at = end;
            }
        }
        element.children.iter().for_each(|child| self.walk(child, used));
    }

    fn add(&mut self, word: &str, place: Range<usize>) {
        self.places += 1;
        if self.words.len() < MOST_KEPT && self.words.iter().all(|(known, _)| known != word) {
            self.words.push((word.to_owned(), place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_have_many_forms_and_values_have_none() {
        for (text, written) in [
            ("a=<accesskey>;b", "<accesskey>"),
            ("r(1,{{ workers }})", "{{ workers }}"),
            ("${SIZE}", "${SIZE}"),
            ("c(@SIZE@)KB", "@SIZE@"),
            ("c(%size%)KB", "%size%"),
            ("u(1,__OBJECTS__)", "__OBJECTS__"),
        ] {
            assert_eq!(first(text, false).map(|place| &text[place]), Some(written));
        }
        for text in ["r(1,32)", "a<b", "50%", "me@host", "<>", "a_b", "{x}", "$5", "é{{"] {
            assert_eq!(first(text, false), None, "{text}");
        }
        let secret = "secretkey=a@bc@d%ef%g__H__${KEY}";
        assert_eq!(first(secret, true), None, "a password is not taken for one");
        assert!(first("<secretkey>", true).is_some() && first("{{ key }}", true).is_some());
    }

    #[test]
    fn help_says_what_is_meant() {
        for (word, meant) in [
            ("<yourAccessKeySecret>", "your secret key"),
            ("<accessKeySecret>", "your secret key"),
            ("<yourAccessKeyId>", "your access key"),
            ("<scretkey>", "your secret key"),
            ("{{ workers }}", "a value of your own"),
        ] {
            assert!(help(word).ends_with(meant), "{word}: {}", help(word));
        }
        assert!(help("<proxyport>").starts_with("remove"));
    }
}
