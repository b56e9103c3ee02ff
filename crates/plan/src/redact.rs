//! Documents without their secrets: what is stored and shown.
//!
//! What a parser takes for the value of a secret is hidden, however it is spelled. What no parser reads, comments and texts
//! that are malformed, is searched for what looks like a secret; where the end of a value is in doubt, more is hidden, not
//! less.

#[cfg(test)]
mod tests;
mod xml;
mod yaml;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
pub use tidemark_keys::secret::is_secret;

/// What stands for a secret.
const HIDDEN: &str = "***";

/// What stands for one that YAML would take for an alias without quotes.
const HIDDEN_QUOTED: &str = "\"***\"";

/// Where a secret stands, and what takes its place.
type Hidden = (Range<usize>, &'static str);

/// A malformed text may show more secrets once others are hidden; each time there are fewer. Rounds.
const MOST_ROUNDS: usize = 8;

/// The document with the values of secrets replaced by `***` (in YAML `"***"` where no quotes stood):
/// passwords, secret keys, tokens, and in addresses the password of `user:password@` or a `token@`. An access key's name is not a
/// secret and stays. Everything else is kept byte for byte; redacting twice changes nothing more.
pub fn redact(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for _ in 0..MOST_ROUNDS {
        let hidden = secrets(&text);
        if hidden.is_empty() {
            break;
        }
        text = replaced(&text, &hidden).into();
    }
    text.into_owned()
}

fn replaced(text: &str, hidden: &[Hidden]) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, replacement) in hidden {
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

/// The variables that a document puts into its secrets.
pub(crate) fn variables(text: &str) -> HashSet<String> {
    let places = places(text);
    let values = places.iter().flat_map(|(range, _)| text[range.clone()].split("${").skip(1));
    values.filter_map(|after| Some(after.split_once('}')?.0.to_owned())).collect()
}

/// Where secrets and references to them stand; they may overlap.
fn places(text: &str) -> Vec<Hidden> {
    let (parsed, keys) = match () {
        () if is_xml(text) => (xml::secrets(text), Vec::new()),
        () if is_ini(text) => (options(text), Vec::new()),
        () => yaml::secrets(text),
    };
    let looks = searched(text, &keys);
    let is_apart = |(range, _): &Hidden| {
        let overlaps = |(known, _): &Hidden| known.start < range.end && range.start < known.end;
        // Sorted by their ends as by their starts: they do not overlap.
        let from = parsed.partition_point(|(known, _)| known.end <= range.start);
        !parsed[from..].first().is_some_and(overlaps)
    };
    let looks = looks.into_iter().filter(is_apart);
    let mut hidden: Vec<Hidden> = looks.collect();
    hidden.extend(parsed.iter().cloned());
    hidden
}

/// Where secrets stand that are not hidden yet, in order and without overlap, and what takes their place.
fn secrets(text: &str) -> Vec<Hidden> {
    let mut hidden = places(text);
    hidden.sort_by_key(|hidden| (hidden.0.start, std::cmp::Reverse(hidden.0.end)));
    let mut at = 0;
    hidden.retain(|(range, _)| {
        // A reference to the environment reveals nothing, and is needed to repeat the run.
        let value = &text[range.clone()];
        let is_reference = value.starts_with("${") && value.find('}') == Some(value.len() - 1);
        let is_hidden = value.trim_matches('"').bytes().all(|byte| byte == b'*');
        let kept = range.start >= at && !range.is_empty() && !is_reference && !is_hidden;
        at = if kept { range.end } else { at };
        kept
    });
    hidden
}

/// Whether something in a text looks like a secret.
fn has_secrets(text: &str) -> bool {
    !searched(text, &[]).is_empty()
}

/// What looks like a secret; the values of the `parsed` keys are known.
fn searched(text: &str, parsed: &[Range<usize>]) -> Vec<Hidden> {
    let (aliases, hidden) = (HashSet::new(), Vec::new());
    let mut scan = Scan { text, xml: is_xml(text), parsed, quote: None, aliases, hidden };
    scan.keys();
    scan.anchors();
    scan.addresses();
    scan.hidden
}

/// Whether a text is meant as XML: it begins with `<`.
pub fn is_xml(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

/// Whether a text is meant as a fio job file: its first line that is not blank or a comment is a section.
fn is_ini(text: &str) -> bool {
    let said = |line: &str| line.split([';', '#']).next().unwrap_or_default().trim().to_owned();
    let first = text.trim_start_matches('\u{feff}').lines().map(said).find(|line| !line.is_empty());
    first.is_some_and(|line| line.starts_with('[') && line.ends_with(']'))
}

/// The secrets of a fio job file: options with their values to the ends of their lines.
fn options(text: &str) -> Vec<Hidden> {
    let (mut hidden, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        if let Some((name, value)) = line.split_once('=').filter(|(name, _)| is_secret(name.trim())) {
            let start = at + name.len() + 1 + value.len() - value.trim_start().len();
            hidden.push((start..at + line.trim_end().len().max(start - at), HIDDEN));
        }
        at += line.len();
    }
    hidden
}

struct Scan<'a> {
    text: &'a str,
    xml: bool,
    /// Where keys stand whose values need not be looked for.
    parsed: &'a [Range<usize>],
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
        let before = self.parsed.partition_point(|place| place.start <= start);
        let is_parsed = before > 0 && self.parsed[before - 1].end >= end;
        if self.xml || is_parsed || self.byte(sign) != Some(b':') || !(spaced || quoted) {
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

    /// Hides the password of every `scheme://user:password@host`, and a name without one: it may be a token.
    fn addresses(&mut self) {
        let text = self.text;
        let over = |c: char| c.is_whitespace() || "/?#\"<>".contains(c) || (self.xml && c == ';');
        for (at, mark) in text.match_indices("://") {
            let start = at + mark.len();
            let authority = &text[start..];
            let authority = &authority[..authority.find(over).unwrap_or(authority.len())];
            let user = authority.rfind('@').map(|at| &authority[..at]);
            if let Some(user) = user {
                let name = user.find(':').map_or(0, |colon| colon + 1);
                self.hidden.push((start + name..start + user.len(), HIDDEN));
            }
        }
    }
}
