//! Documents without their secrets: what is stored and shown.
//!
//! It works on the text, not on what a parser made of it, so that a document that cannot be read can be
//! shown too. Where a text is so malformed that the end of a value is in doubt, more is hidden, not less.

use std::collections::HashSet;
use std::ops::Range;

/// What stands for a secret.
const HIDDEN: &str = "***";

/// What stands for one that YAML would take for an alias without quotes.
const HIDDEN_QUOTED: &str = "\"***\"";

/// The document with the values of secrets replaced by `***` (in YAML `"***"` where no quotes stood):
/// passwords, secret keys, tokens, and the password of `user:password@` in addresses. An access key's name is not a
/// secret and stays. Everything else is kept byte for byte; redacting twice changes nothing more.
pub fn redact(text: &str) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, replacement) in secrets(text) {
        out.push_str(&text[at..range.start]);
        out.push_str(replacement);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The document with every character of a secret replaced by stars, as many as it has bytes: places within the text
/// stay what they were, for remarks that point at it.
pub fn mask(text: &str) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, _) in secrets(text) {
        out.push_str(&text[at..range.start]);
        let stars = text[range.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { '*' });
        out.extend(stars);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Where secrets stand, in order and without overlap, and what takes their place.
fn secrets(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut scan = Scan { text, xml: is_xml(text), quote: None, aliases: HashSet::new(), hidden: Vec::new() };
    scan.keys();
    scan.anchors();
    scan.addresses();
    let mut hidden = scan.hidden;
    hidden.sort_by_key(|hidden| (hidden.0.start, std::cmp::Reverse(hidden.0.end)));
    let mut at = 0;
    hidden.retain(|(range, _)| {
        // A reference to the environment reveals nothing, and is needed to repeat the run.
        let value = &text[range.clone()];
        let is_reference = value.starts_with("${") && value.find('}') == Some(value.len() - 1);
        let kept = range.start >= at && !range.is_empty() && !is_reference;
        at = if kept { range.end } else { at };
        kept
    });
    hidden
}

/// Whether a text is meant as XML: it begins with `<`.
pub fn is_xml(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

/// Whether the value of a key of this name is a secret. Misspelled names count, too.
pub fn is_secret(key: &str) -> bool {
    if key.len() > 40 {
        return false;
    }
    if is_secret_variable(key) {
        return true;
    }
    let key: String = key.chars().filter(|c| !matches!(c, '_' | '-')).collect::<String>().to_lowercase();
    let near =
        |name: &str| key.len().abs_diff(name.len()) <= 2 && strsim::damerau_levenshtein(&key, name) <= 2;
    ["secret", "password", "passwd", "passphrase"].iter().any(|part| key.contains(part))
        || ["token", "apikey", "privatekey", "jsonkey"].iter().any(|end| key.ends_with(end))
        || key == "key"
        // fio's http engine.
        || matches!(key.as_str(), "httppass" | "https3key")
        || near("secretkey")
        || near("password")
}

/// Whether an environment variable holds a secret by its name: `LAB_SWIFT_KEY`, `DB_PASS`. An access key is a name.
fn is_secret_variable(name: &str) -> bool {
    let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let ends = ["_KEY", "_PASS", "_PWD", "_CREDENTIALS", "_SECRETS"];
    name.bytes().all(upper) && ends.iter().any(|end| name.ends_with(end)) && !name.ends_with("ACCESS_KEY")
}

struct Scan<'a> {
    text: &'a str,
    xml: bool,
    /// The quote of the XML attribute that the scan is in.
    quote: Option<u8>,
    /// YAML aliases that stand where a secret should.
    aliases: HashSet<&'a str>,
    hidden: Vec<(Range<usize>, &'static str)>,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

impl<'a> Scan<'a> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The first place from `at` on whose byte is not `wanted`.
    fn skip(&self, at: usize, wanted: impl Fn(u8) -> bool) -> usize {
        let bytes = &self.text.as_bytes()[at..];
        at + bytes.iter().position(|byte| !wanted(*byte)).unwrap_or(bytes.len())
    }

    fn blanks(&self, at: usize) -> usize {
        self.skip(at, |byte| byte == b' ' || byte == b'\t')
    }

    fn line_end(&self, at: usize) -> usize {
        self.skip(at, |byte| byte != b'\n' && byte != b'\r')
    }

    fn hide(&mut self, range: Range<usize>, replacement: &'static str) -> usize {
        let end = range.end;
        self.hidden.push((range, replacement));
        end
    }

    /// Finds every `key=value` and, outside XML, every `key: value` whose key names a secret.
    fn keys(&mut self) {
        let mut at = 0;
        while let Some(byte) = self.byte(at) {
            if !is_name(byte) {
                self.follow_quotes(at, byte);
                at += 1;
                continue;
            }
            let end = self.skip(at, is_name);
            at = match is_secret(&self.text[at..end]) {
                true => self.assigned(end).or_else(|| self.mapped(at, end)).unwrap_or(end),
                false => end,
            };
        }
    }

    /// Keeps track of which quote the scan is in: it opens after `=` and a comment's end closes all.
    fn follow_quotes(&mut self, at: usize, byte: u8) {
        if self.quote == Some(byte) || self.text.as_bytes()[at..].starts_with(b"-->") {
            self.quote = None;
        } else if self.xml && self.quote.is_none() && matches!(byte, b'"' | b'\'') {
            let before = self.text.as_bytes()[..at].trim_ascii_end();
            self.quote = (before.last() == Some(&b'=')).then_some(byte);
        }
    }

    /// Hides the value of `key=value` whose key ends at `end`; gives the place after it.
    fn assigned(&mut self, end: usize) -> Option<usize> {
        let sign = self.blanks(end);
        if self.byte(sign) != Some(b'=') {
            return None;
        }
        let start = match self.quote {
            Some(_) => self.skip(sign + 1, |byte| byte.is_ascii_whitespace()),
            None => self.blanks(sign + 1),
        };
        let Some(quote) = self.byte(start).filter(|byte| matches!(byte, b'"' | b'\'')) else {
            return Some(self.hide_entry(start));
        };
        match self.quote {
            Some(_) if self.quote == Some(quote) => Some(start),
            Some(_) => Some(self.hide_entry(start)),
            None => {
                let close = self.skip(start + 1, |byte| byte != quote);
                let close = if close == self.text.len() { self.line_end(start) } else { close };
                Some((self.hide(start + 1..close, HIDDEN) + 1).min(self.text.len()))
            }
        }
    }

    /// Hides an entry of `a=b;c=d` from its value's start on. In an attribute it ends with `;`, the line or
    /// the attribute; elsewhere also with a blank.
    fn hide_entry(&mut self, start: usize) -> usize {
        let mut end = start;
        while let Some(byte) = self.byte(end) {
            let over = match byte {
                b';' => !self.ends_entity(end),
                b'\n' | b'\r' => true,
                _ if self.quote.is_some() => self.quote == Some(byte),
                _ => matches!(byte, b'"' | b' ' | b'\t') || (byte == b'<' && end > start),
            };
            if over {
                break;
            }
            end += 1;
        }
        let value = self.text[start..end].trim_end();
        self.hide(start..start + value.len(), HIDDEN);
        end
    }

    /// Whether the `;` at `at` belongs to a reference such as `&amp;`.
    fn ends_entity(&self, at: usize) -> bool {
        let reference = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
        let before = &self.text.as_bytes()[..at];
        let length = before.iter().rev().take(10).take_while(|byte| reference(byte)).count();
        length > 0 && at > length && before[at - length - 1] == b'&'
    }

    /// Hides the value of YAML's `key: value`; gives the place after it.
    fn mapped(&mut self, start: usize, end: usize) -> Option<usize> {
        let quoted = start > 0
            && self.byte(start - 1) == self.byte(end)
            && matches!(self.byte(end), Some(b'"' | b'\''));
        let sign = self.blanks(end + usize::from(quoted));
        let spaced = self.byte(sign + 1).is_none_or(|byte| byte.is_ascii_whitespace());
        if self.xml || self.byte(sign) != Some(b':') || !(spaced || quoted) {
            return None;
        }
        let key = start - usize::from(quoted);
        let before = self.text[..key].trim_end();
        let flow = before.ends_with(['{', ',']) && !before.is_empty();
        self.hide_scalar(key, sign + 1, flow)
    }

    /// Hides the YAML scalar that follows `after`; `key` is where the key or anchor it belongs to begins.
    fn hide_scalar(&mut self, key: usize, after: usize, flow: bool) -> Option<usize> {
        let start = match flow {
            true => self.skip(after, |byte| byte.is_ascii_whitespace()),
            false => self.blanks(after),
        };
        match self.byte(start) {
            Some(quote @ (b'"' | b'\'')) => {
                let close = self.closing(start + 1, quote);
                Some((self.hide(start + 1..close, HIDDEN) + 1).min(self.text.len()))
            }
            Some(b'{' | b'[') => None,
            Some(b'*') if self.byte(start + 1).is_some_and(is_name) => {
                let end = self.skip(start + 1, is_name);
                self.aliases.insert(&self.text[start + 1..end]);
                Some(end)
            }
            _ if flow => {
                let end = self.skip(start, |byte| !matches!(byte, b',' | b'}' | b']' | b'\n' | b'\r'));
                let value = self.text[start..end].trim_end().len();
                Some(self.hide(start..start + value, HIDDEN_QUOTED))
            }
            _ => Some(self.hide_block(key, start)),
        }
    }

    /// Hides a scalar without quotes: the rest of its line, and the lines that follow and are indented more.
    fn hide_block(&mut self, key: usize, start: usize) -> usize {
        let line = self.line_end(start);
        let first = &self.text[start..line];
        let header =
            first.starts_with(['|', '>']) && first[1..].starts_with(|c: char| "+-0123456789 \t#".contains(c));
        let literal = header || matches!(first, "|" | ">");
        let comment = match first.starts_with(['&', '!']) {
            true => None,
            false if first.starts_with('#') => Some(0),
            false => first.find(" #"),
        };
        let value = first[..comment.unwrap_or(first.len())].trim_end();
        let last = self.deeper(key, line);
        match (literal, value.is_empty(), last) {
            (false, false, None) => self.hide(start..start + value.len(), HIDDEN_QUOTED),
            (false, false, Some(last)) => self.hide(start..last, HIDDEN_QUOTED),
            (_, _, Some(last)) => {
                let content = self.skip(line, |byte| byte.is_ascii_whitespace());
                self.hide(content..last, if literal { HIDDEN } else { HIDDEN_QUOTED })
            }
            (_, _, None) => line,
        }
    }

    /// The end of the last of the lines after `line_end` that are indented more than the key is.
    fn deeper(&self, key: usize, line_end: usize) -> Option<usize> {
        let column = key - self.text[..key].rfind('\n').map_or(0, |at| at + 1);
        let (mut at, mut last) = (line_end, None);
        while at < self.text.len() {
            let line = self.skip(at, |byte| byte == b'\r');
            let line = if self.byte(line) == Some(b'\n') { line + 1 } else { line };
            let content = self.blanks(line);
            at = self.line_end(content);
            if content == at && at < self.text.len() {
                continue;
            }
            if content - line <= column || content == at {
                break;
            }
            last = Some(at);
        }
        last
    }

    /// Where the quoted scalar that begins at `at` ends.
    fn closing(&self, mut at: usize, quote: u8) -> usize {
        let start = at;
        while let Some(byte) = self.byte(at) {
            match byte {
                b'\\' if quote == b'"' => at += 2,
                _ if byte != quote => at += 1,
                _ if quote == b'\'' && self.byte(at + 1) == Some(quote) => at += 2,
                _ => return at,
            }
        }
        self.line_end(start)
    }

    /// Hides what the aliases that stand for secrets refer to.
    fn anchors(&mut self) {
        let aliases = std::mem::take(&mut self.aliases);
        let (mut at, mut line) = (0, 0);
        while let Some(byte) = self.byte(at).filter(|_| !aliases.is_empty()) {
            at += 1;
            if byte == b'\n' {
                line = at;
            } else if byte == b'&' {
                let after = self.skip(at, is_name);
                let spaced = self.byte(after).is_some_and(|byte| byte.is_ascii_whitespace());
                if spaced && aliases.contains(&self.text[at..after]) {
                    at = self.hide_scalar(self.blanks(line), after, false).unwrap_or(after);
                }
            }
        }
    }

    /// Hides the password of every `scheme://user:password@host`.
    fn addresses(&mut self) {
        let text = self.text;
        let over = |c: char| c.is_whitespace() || "/?#\"<>".contains(c) || (self.xml && c == ';');
        for (at, mark) in text.match_indices("://") {
            let start = at + mark.len();
            let authority = &text[start..];
            let authority = &authority[..authority.find(over).unwrap_or(authority.len())];
            let user = authority.rfind('@').map(|at| &authority[..at]);
            if let Some((name, password)) = user.and_then(|user| user.split_once(':')) {
                let password_start = start + name.len() + 1;
                self.hidden.push((password_start..password_start + password.len(), HIDDEN));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{mask, redact};
    use proptest::prelude::*;

    #[test]
    fn references_to_the_environment_stay() {
        for text in ["<s config=\"secretkey=${KEY};endpoint=http://h\"/>", "target:\n  secret_key: ${KEY}\n"]
        {
            assert_eq!(redact(text), text);
        }
        assert!(!redact("<s config=\"secretkey=${KEY}tail;e=1\"/>").contains("tail"));
    }

    #[test]
    fn a_mask_hides_and_keeps_every_place() {
        let text = "<storage config=\"accesskey=AK;secretkey=sömething;endpoint=http://h\"/>\n";
        let masked = mask(text);
        assert!(!masked.contains("mething") && masked.contains("accesskey=AK"), "{masked}");
        assert_eq!((masked.len(), masked.find("endpoint")), (text.len(), text.find("endpoint")));
    }

    #[test]
    fn secrets_of_xml_are_hidden_and_the_rest_is_kept() {
        let table = [
            (
                r#"<s config="accesskey=AK;secretkey=S+/=;endpoint=http://h" />"#,
                r#"<s config="accesskey=AK;secretkey=***;endpoint=http://h" />"#,
            ),
            (r#"<s config="secretkey=;endpoint=x"/>"#, r#"<s config="secretkey=;endpoint=x"/>"#),
            (
                r#"<s config="accesskey=a;secretkey=" /><w name="n"/>"#,
                r#"<s config="accesskey=a;secretkey=" /><w name="n"/>"#,
            ),
            (r#"<s config='secretKey=a"b;x=1'/>"#, r#"<s config='secretKey=***;x=1'/>"#),
            (r#"<s config="password=a'b c;x=1"/>"#, r#"<s config="password=***;x=1"/>"#),
            (r#"<s config="secretkey=a&amp;b;x=1"/>"#, r#"<s config="secretkey=***;x=1"/>"#),
            (
                "<s config=\"a=1;\n  password = pw ;\n b=2\"/>",
                "<s config=\"a=1;\n  password = *** ;\n b=2\"/>",
            ),
            (r#"<a password="p=" name="x"/>"#, r#"<a password="***" name="x"/>"#),
            (
                r#"<!-- <a config="token=AUTH_x;y=1" /> don't --><b config="usertoken=t"/>"#,
                r#"<!-- <a config="token=***;y=1" /> don't --><b config="usertoken=***"/>"#,
            ),
            (
                r#"<s config="secretkey=<scretkey>;proxyhost=<p>"/>"#,
                r#"<s config="secretkey=***;proxyhost=<p>"/>"#,
            ),
            (
                r#"<s config="scretkey=typo;url=http://u:pw@h:80/x"/>"#,
                r#"<s config="scretkey=***;url=http://u:***@h:80/x"/>"#,
            ),
            (r#"<s config="secretkey=never closed"#, r#"<s config="secretkey=***"#),
            (
                "<s name=\"x config=\"accesskey=A;secretkey=S;y=1\" />",
                "<s name=\"x config=\"accesskey=A;secretkey=***;y=1\" />",
            ),
            (r#"<a config="username=test:tester;key=k"/>"#, r#"<a config="username=test:tester;key=***"/>"#),
        ];
        for (text, expected) in table {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn secrets_of_yaml_are_hidden_and_the_rest_is_kept() {
        let table = [
            ("secret_key: abc # why\nregion: r\n", "secret_key: \"***\" # why\nregion: r\n"),
            (
                "s3: {access_key: AK, secret_key: a b, region: r}",
                "s3: {access_key: AK, secret_key: \"***\", region: r}",
            ),
            ("{\"password\":\"a\\\"b\",\"x\":1}", "{\"password\":\"***\",\"x\":1}"),
            ("password: 'it''s'\nx: 1", "password: '***'\nx: 1"),
            ("a:\n  password: |\n    line 1\n\n    line 2\n  b: 1\n", "a:\n  password: |\n    ***\n  b: 1\n"),
            ("a:\n  password:\n    deep\n  b: 1\n", "a:\n  password:\n    \"***\"\n  b: 1\n"),
            ("a:\n  password: one\n    two\n  b: 1\n", "a:\n  password: \"***\"\n  b: 1\n"),
            ("- token: t\n  x: 1\n", "- token: \"***\"\n  x: 1\n"),
            ("p: &pw abc\npassword: *pw\nq: &pwd 1", "p: &pw \"***\"\npassword: *pw\nq: &pwd 1"),
            ("password: !abc\n", "password: \"***\"\n"),
            ("url: postgres://u:p;w@h/db", "url: postgres://u:***@h/db"),
            ("endpoint: http://h:80, http://u:p@i:80", "endpoint: http://h:80, http://u:***@i:80"),
            ("config: \"accesskey=A;secretkey=S;x=1\"", "config: \"accesskey=A;secretkey=***;x=1\""),
            ("password:\r\nnext: 1\r\n", "password:\r\nnext: 1\r\n"),
            ("password: \"never closed\nnext: 1", "password: \"***\nnext: 1"),
        ];
        for (text, expected) in table {
            assert_eq!(redact(text), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_redacted_once_and_for_all(
            text in "(<?[a-z]{0,3}|secretkey|password|token|key|[=:;\"'&*|>#@/<{},\n\r\t -]|&amp;|://|-->|é|\\PC){0,24}"
        ) {
            let once = redact(&text);
            prop_assert_eq!(redact(&once), once);
        }

        #[test]
        fn no_secret_of_a_well_formed_attribute_is_left(
            secret in "[A-Za-z0-9+/=' .,:@{}#*!-]{1,30}", before in "[a-z]{1,8}", after in "[a-z]{1,8}"
        ) {
            let secret = format!("Q{secret}Z");
            let text = format!("<s a=\"{before}\" config=\"x={before};secretkey={secret};y={after}\"/>");
            let expected = format!("<s a=\"{before}\" config=\"x={before};secretkey=***;y={after}\"/>");
            prop_assert_eq!(redact(&text), expected);
        }
    }
}
