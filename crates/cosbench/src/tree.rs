//! XML to a tree in which everything has its place in the document.
//!
//! What COSBench files need and no more: elements and attributes. Hostile input is harmless: depth and number
//! of attributes are bounded, and a document type, where entities are declared, is refused.

use super::config;
use super::remarks::{Remarks, shown};
use super::template;
use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError, SyntaxError};
use quick_xml::events::attributes::AttrError;
use quick_xml::events::{BytesStart, Event};
use std::collections::HashSet;
use std::ops::Range;
use tidemark_keys::Outside;
use tidemark_keys::outside::ONLY_IN_SECRETS;
use tidemark_keys::secret::{Binding, Secret, is_secret_variable};
use tidemark_plan::diagnostic::{Code, Diagnostic};

/// COSBench files are five deep.
const DEEPEST: usize = 64;

/// COSBench elements have at most fifteen.
const MOST_ATTRIBUTES: usize = 64;

/// Bytes of the longest reference to a character: `&#x10ffff;` and some leading zeroes.
const LONGEST_REFERENCE: usize = 16;

/// An element.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: String,
    /// Where its name stands in its start tag.
    pub(super) span: Range<usize>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// The value of an attribute, if present and not blank.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        let attribute = self.attributes.iter().find(|attribute| attribute.name == name)?;
        Some(&attribute.value).filter(|value| !value.text.trim().is_empty())
    }

    /// Sets an attribute; it stands where the old one does, or the element.
    pub(super) fn set(&mut self, name: &str, text: &str) {
        let value = |span: Range<usize>| Value {
            text: text.to_owned(),
            span,
            steps: Vec::new(),
            unfilled: Vec::new(),
            filled: Vec::new(),
        };
        match self.attributes.iter_mut().find(|attribute| attribute.name == name) {
            Some(known) => known.value = value(known.value.span.clone()),
            None => {
                let (name, span) = (name.to_owned(), self.span.clone());
                self.attributes.push(Attribute { name, span: span.clone(), value: value(span) });
            }
        }
    }

    /// Replaces `${NAME}` by environment variables in the configs of targets: `storage` and `auth`.
    pub(super) fn expand(&mut self, outside: &Outside<'_>, remarks: &mut Remarks) {
        self.expand_telling(outside, &mut HashSet::new(), remarks);
    }

    /// As [`Element::expand`]; what is wrong with a variable is told once.
    fn expand_telling(&mut self, outside: &Outside<'_>, told: &mut HashSet<String>, remarks: &mut Remarks) {
        if matches!(self.name.as_str(), "storage" | "auth") {
            let configs = self.attributes.iter_mut().filter(|attribute| attribute.name == "config");
            configs
                .filter(|one| one.value.text.contains("${"))
                .for_each(|one| one.value.expand(outside, told, remarks));
        }
        self.children.iter_mut().for_each(|child| child.expand_telling(outside, told, remarks));
    }

    /// The last child of a name.
    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().rfind(|child| child.name == name)
    }
}

/// An attribute.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    /// Where its name stands.
    pub(super) span: Range<usize>,
    pub(super) value: Value,
}

/// An attribute's value, references such as `&amp;` resolved.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) text: String,
    /// Where the value stands in the document, without its quotes.
    pub(super) span: Range<usize>,
    /// Before and after every reference: offsets in `text` and in the document.
    steps: Vec<(usize, usize)>,
    /// Offsets in `text` at which the value of a variable is missing.
    pub(super) unfilled: Vec<usize>,
    /// The values of variables in `text`.
    filled: Vec<Filled>,
}

/// The value of a variable.
#[derive(Debug)]
struct Filled {
    /// Where it stands.
    place: Range<usize>,
    variable: String,
    /// Where it may be sent, if it is bound.
    binding: Option<Binding>,
}

impl Value {
    fn empty(span: Range<usize>) -> Self {
        Self { text: String::new(), span, steps: Vec::new(), unfilled: Vec::new(), filled: Vec::new() }
    }

    /// A part of it as the document has it: variables stand by their names.
    pub(super) fn written(&self, part: Range<usize>) -> String {
        let (mut written, mut at) = (String::new(), part.start);
        for Filled { place, variable, .. } in self.within(&part) {
            written += &self.text[at..place.start];
            written += &format!("${{{variable}}}");
            at = place.end.min(part.end);
        }
        written + &self.text[at..part.end]
    }

    /// A part of it as a secret.
    pub(super) fn secret(&self, part: Range<usize>) -> Secret {
        let bindings = self.within(&part).filter_map(|filled| filled.binding.clone());
        Secret::new(&self.text[part.clone()]).bound(bindings.reduce(Binding::and))
    }

    fn within(&self, part: &Range<usize>) -> impl Iterator<Item = &Filled> {
        self.filled.iter().filter(|filled| part.contains(&filled.place.start))
    }

    /// Where a range of `text` stands in the document.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        self.offset(range.start)..self.offset(range.end)
    }

    fn offset(&self, at: usize) -> usize {
        let before = self.steps.partition_point(|(text, _)| *text <= at);
        let (text, document) = before.checked_sub(1).map_or((0, self.span.start), |step| self.steps[step]);
        document + (at - text)
    }

    fn new(raw: &str, start: usize, name: &str, remarks: &mut Remarks) -> Self {
        let mut value = Self::empty(start..start + raw.len());
        let mut rest = raw;
        while let Some(reference) = rest.find('&') {
            value.push(&rest[..reference]);
            let at = start + raw.len() - rest.len() + reference;
            let longest = rest.as_bytes()[reference..].iter().take(LONGEST_REFERENCE);
            let end = longest.clone().position(|byte| *byte == b';').map(|end| reference + end + 1);
            let known = end.and_then(|end| Some((character(&rest[reference + 1..end - 1])?, end)));
            let Some((character, end)) = known else {
                let message = format!("the value of `{name}` contains a `&` that does not begin a reference");
                remarks.error(at..at + 1, message, "write `&amp;` for the character itself");
                value.push(&rest[reference..reference + 1]);
                rest = &rest[reference + 1..];
                continue;
            };
            value.steps.push((value.text.len(), at));
            value.text.push(character);
            value.steps.push((value.text.len(), start + raw.len() - rest.len() + end));
            rest = &rest[end..];
        }
        value.push(rest);
        report_brackets(raw, start, name, remarks);
        value
    }

    /// Replaces every `${NAME}` by the variable's value; places after it stay right.
    fn expand(&mut self, outside: &Outside<'_>, told: &mut HashSet<String>, remarks: &mut Remarks) {
        let old = std::mem::replace(self, Self::empty(self.span.clone()));
        let mut at = 0;
        while let Some(start) = old.text[at..].find("${").map(|found| at + found) {
            let Some(end) = old.text[start..].find('}').map(|found| start + found + 1) else { break };
            self.copy(&old, at..start);
            let (name, place) = (&old.text[start + 2..end - 1], old.place(start..end));
            self.steps.push((self.text.len(), place.start));
            let filled = self.text.len();
            let problem = match (outside.variable)(name) {
                _ if is_secret_variable(name) && !config::holds_secret(&old.text, start) => Some((
                    format!("the environment variable {name} holds a secret, as its name says"),
                    ONLY_IN_SECRETS.to_owned(),
                    Code::Other,
                )),
                Some(value) if value.contains(';') => Some((
                    format!("the environment variable {name} contains a `;`"),
                    "change the value: a config separates its entries with `;`".to_owned(),
                    Code::Other,
                )),
                Some(value) if !value.is_empty() => {
                    self.text.push_str(&value);
                    None
                }
                _ => Some((
                    format!("the environment variable {name} is not set"),
                    format!("set it before the run: export {name}=..."),
                    Code::UnsetVariable(name.to_owned()),
                )),
            };
            match problem.is_some() {
                true => self.unfilled.push(filled),
                false => self.filled.push(Filled {
                    place: filled..self.text.len(),
                    variable: name.to_owned(),
                    binding: outside.binding(name),
                }),
            }
            if let Some((message, help, code)) = problem
                && told.insert(name.to_owned())
            {
                remarks.push(Diagnostic::error(place.clone(), message, help).about(code));
            }
            self.steps.push((self.text.len(), place.end));
            at = end;
        }
        self.copy(&old, at..old.text.len());
    }

    fn copy(&mut self, old: &Self, range: Range<usize>) {
        let inside = old.steps.iter().filter(|(text, _)| range.contains(text));
        let shifted = inside.map(|(text, document)| (text - range.start + self.text.len(), *document));
        self.steps.extend(shifted.collect::<Vec<_>>());
        self.text.push_str(&old.text[range]);
    }

    /// Line breaks in attributes count as blanks (XML 1.0, 3.3.3).
    fn push(&mut self, raw: &str) {
        self.text.extend(raw.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }));
    }
}

/// The character that a reference stands for; only the five that XML defines and those by number.
fn character(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "apos" => Some('\''),
        "quot" => Some('"'),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?).filter(|c| !c.is_control() || c.is_whitespace())
        }
    }
}

/// `<` has no place in a value unless it begins a placeholder: mostly a closing quote is missing.
fn report_brackets(raw: &str, start: usize, name: &str, remarks: &mut Remarks) {
    let stray = |(at, _): &(usize, &str)| template::first(&raw[*at..], true).is_none_or(|one| one.start != 0);
    if let Some((at, _)) = raw.match_indices('<').find(stray) {
        remarks.error(
            start + at..start + at + 1,
            format!("the value of `{name}` contains `<`"),
            format!("close the quote of `{name}` before it, or write `&lt;` for the character itself"),
        );
    }
}

/// Reads a document into its root element; `None` when it is so malformed that there is none.
pub(super) fn read(text: &str, remarks: &mut Remarks) -> Option<Element> {
    let body = text.trim_start_matches('\u{feff}');
    let mut builder = Builder { text, open: Vec::new(), root: None, remarks };
    let mut reader = Reader::from_str(body);
    let base = text.len() - body.len();
    loop {
        let start = base + reader.buffer_position() as usize;
        let event = reader.read_event();
        let span = start..base + reader.buffer_position() as usize;
        let going_on = match event {
            Ok(Event::Eof) => break,
            Ok(event) => builder.take(&event, span),
            Err(error) => {
                let at = base + reader.error_position() as usize;
                builder.refuse(&error, at);
                false
            }
        };
        if !going_on {
            return None;
        }
    }
    builder.finish()
}

struct Builder<'a> {
    text: &'a str,
    open: Vec<Element>,
    root: Option<Element>,
    remarks: &'a mut Remarks,
}

impl Builder<'_> {
    /// Takes one event of the document; returns whether to continue.
    fn take(&mut self, event: &Event<'_>, span: Range<usize>) -> bool {
        match event {
            Event::Start(tag) | Event::Empty(tag) if self.open.len() >= DEEPEST => {
                let message = format!("{} is nested more than {DEEPEST} deep", shown(tag.name().as_ref()));
                self.remarks.error(span, message, "a COSBench workload has five levels");
                return false;
            }
            Event::Start(tag) => {
                let element = self.element(tag, span);
                self.open.push(element);
            }
            Event::Empty(tag) => {
                let element = self.element(tag, span);
                return self.close(element);
            }
            Event::End(_) => {
                if let Some(element) = self.open.pop() {
                    return self.close(element);
                }
            }
            Event::DocType(_) => {
                let help =
                    "remove the line: workload files need no document type, and entities are not expanded";
                self.remarks.error(span, "a document type (`<!DOCTYPE`) is not accepted", help);
                return false;
            }
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => self.stray(span),
            _ => {}
        }
        true
    }

    fn close(&mut self, element: Element) -> bool {
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None if self.root.is_none() => self.root = Some(element),
            None => {
                let message = format!("the document has a second root element, {}", shown(&element.name));
                self.remarks.error(element.span, message, "a file holds one `workload`");
                return false;
            }
        }
        true
    }

    fn stray(&mut self, span: Range<usize>) {
        let found = &self.text[span.clone()];
        let start = span.start + found.len() - found.trim_start().len();
        let end = start + found.trim().len();
        if start < end {
            let help = "remove it, or put it into a comment: <!-- ... -->";
            self.remarks.warning(start..end, "text between elements is ignored", help);
        }
    }

    fn element(&mut self, tag: &BytesStart<'_>, span: Range<usize>) -> Element {
        let name = tag.name().as_ref().to_owned();
        let mut element = Element {
            span: span.start + 1..span.start + 1 + name.len(),
            name,
            attributes: Vec::new(),
            children: Vec::new(),
        };
        for found in tag.attributes() {
            let attribute = match found {
                Ok(attribute) => attribute,
                Err(error) => {
                    self.refuse_attribute(&error, span.start + 1, &element);
                    break;
                }
            };
            if element.attributes.len() == MOST_ATTRIBUTES {
                let message = format!("{} has more than {MOST_ATTRIBUTES} attributes", shown(&element.name));
                self.remarks.error(element.span.clone(), message, "");
                break;
            }
            let key = attribute.key.as_ref();
            let (at, start) = (self.place_of(key, &span), self.place_of(&attribute.value, &span));
            let value = Value::new(&attribute.value, start, key, self.remarks);
            element.attributes.push(Attribute { name: key.to_owned(), span: at..at + key.len(), value });
        }
        element
    }

    /// Where a part that the parser borrowed from the text stands in it.
    fn place_of(&self, part: &str, tag: &Range<usize>) -> usize {
        let at = part.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        let inside = at.checked_add(part.len()).is_some_and(|end| end <= self.text.len());
        if inside { at } else { tag.start }
    }

    fn refuse_attribute(&mut self, error: &AttrError, base: usize, element: &Element) {
        let (at, message, help) = match error {
            AttrError::ExpectedEq(at) => (at, "an attribute has no `=` and no value", "write name=\"value\""),
            AttrError::ExpectedValue(at) => (at, "an attribute has no value", "write name=\"value\""),
            AttrError::UnquotedValue(at) => {
                (at, "an attribute's value is not in quotes", "write name=\"value\"")
            }
            AttrError::ExpectedQuote(at, _) => {
                (at, "the quote of an attribute's value is not closed", "close it")
            }
            AttrError::Duplicated(at, _) => (at, "an attribute is given twice", "remove one of the two"),
        };
        let mut at = (base + at).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let end = at + self.text[at..].chars().next().map_or(0, char::len_utf8);
        self.remarks.error(at..end, format!("{message}, in `<{}>`", element.name), help);
    }

    fn refuse(&mut self, error: &Error, at: usize) {
        let end = (at + 1).min(self.text.len());
        let span = at.min(end)..end;
        match error {
            Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => {
                let (line, _) = self.open.last().map_or((0, 0), |open| {
                    Diagnostic::error(open.span.clone(), "", "").line_and_column(self.text)
                });
                let message = format!("found `</{found}>` instead of `</{expected}>`");
                self.remarks.error(span, message, format!("close the `<{expected}>` of line {line} first"));
            }
            Error::IllFormed(IllFormedError::UnmatchedEndTag(found)) => {
                self.remarks.error(
                    span,
                    format!("`</{found}>` has no start tag"),
                    "remove it, or add the start tag",
                );
            }
            Error::Syntax(
                SyntaxError::UnclosedDoubleQuotedAttributeValue
                | SyntaxError::UnclosedSingleQuotedAttributeValue,
            ) => {
                let quote = self.open_quote(at);
                let message = "this quote, or one before it on the line, is not closed";
                self.remarks.error(quote..quote + 1, message, "write name=\"value\" for every attribute");
            }
            Error::Syntax(error) => {
                self.remarks.error(span, format!("not well-formed XML: {error}"), "");
            }
            other => self.remarks.error(span, format!("not well-formed XML: {other}"), ""),
        }
    }

    /// In a tag that never ends because of its quotes: the first value that runs into the next tag.
    fn open_quote(&self, tag: usize) -> usize {
        let mut at = tag;
        while let Some(found) = self.text[at..].find('"') {
            let open = at + found;
            let value = &self.text[open + 1..];
            let value = &value[..value.find('"').unwrap_or(value.len())];
            let stray =
                |(at, _): (usize, &str)| template::first(&value[at..], true).is_none_or(|one| one.start != 0);
            if open + 1 + value.len() == self.text.len() || value.match_indices('<').any(stray) {
                return open;
            }
            at = open + value.len() + 2;
        }
        tag
    }

    fn finish(self) -> Option<Element> {
        if let Some(open) = self.open.last() {
            let message = format!("`<{}>` is never closed", open.name);
            self.remarks.error(open.span.clone(), message, format!("add `</{}>`", open.name));
            return None;
        }
        if self.root.is_none() {
            self.remarks.error(
                0..0,
                "the document has no element",
                "a COSBench file begins with `<workload name=\"...\">`",
            );
        }
        self.root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Option<Element>, Vec<(String, &str)>) {
        let mut remarks = Remarks::default();
        let root = read(text, &mut remarks);
        let list = remarks.sorted().into_iter();
        (root, list.map(|remark| (remark.message, &text[remark.span])).collect())
    }

    fn complaints(text: &str) -> Vec<(String, &str)> {
        parse(text).1
    }

    #[test]
    fn variables_are_put_in_and_places_stay_right() {
        let text = "<w><storage config='a=&amp;;key=${KEY};b=&lt;;u=${UNSET};z=1'/><x config='${KEY}'/></w>";
        let mut remarks = Remarks::default();
        let mut root = read(text, &mut remarks).unwrap();
        let outside = Outside {
            variable: &|name| (name == "KEY").then(|| "long secret".to_owned()),
            file: &|_| Ok(String::new()),
            bound: &|_| None,
        };
        root.expand(&outside, &mut remarks);
        let value = root.children[0].value("config").unwrap();
        assert_eq!(value.text, "a=&;key=long secret;b=<;u=;z=1");
        for part in ["a=", "z=1", ";b="] {
            let at = value.text.find(part).unwrap();
            assert_eq!(&text[value.place(at..at + part.len())], part);
        }
        assert_eq!(root.children[1].value("config").unwrap().text, "${KEY}", "only targets have secrets");
        let remarks = remarks.sorted();
        assert_eq!(remarks.len(), 1);
        assert_eq!(&text[remarks[0].span.clone()], "${UNSET}");
    }

    #[test]
    fn everything_knows_its_place() {
        let text = "\u{feff}<?xml version=\"1.0\"?>\n<a x = '1&amp;2&#x41;3'>\n <b/></a>\n";
        let (root, complaints) = parse(text);
        let root = root.unwrap();
        assert_eq!(complaints, []);
        assert_eq!(&text[root.span.clone()], "a");
        assert_eq!(&text[root.attributes[0].span.clone()], "x");
        let value = root.value("x").unwrap();
        assert_eq!(value.text, "1&2A3");
        for (part, place) in [
            (0..1, "1"),
            (1..2, "&amp;"),
            (2..3, "2"),
            (3..4, "&#x41;"),
            (4..5, "3"),
            (0..5, "1&amp;2&#x41;3"),
        ] {
            assert_eq!(&text[value.place(part)], place);
        }
        assert_eq!(&text[root.child("b").unwrap().span.clone()], "b");
    }

    #[test]
    fn placeholders_are_read_although_they_are_not_xml() {
        let text = "<s config=\"accesskey=<accesskey>;secretkey=<scretkey>;proxyport=<proxyport>\"/>";
        assert!(complaints(text).is_empty(), "{:?}", complaints(text));
    }

    #[test]
    fn malformed_documents_are_refused_at_the_place() {
        let table = [
            ("", "the document has no element", ""),
            ("<a><b></a>", "found `</a>` instead of `</b>`", "<"),
            ("<a></a></b>", "`</b>` has no start tag", "<"),
            ("<a><b>", "`<b>` is never closed", "b"),
            ("<a/><b/>", "the document has a second root element, `b`", "b"),
            ("<a x></a>", "an attribute has no `=` and no value, in `<a>`", "<"),
            ("<a x=1 />", "an attribute's value is not in quotes, in `<a>`", "1"),
            ("<a x=\"1\" x=\"2\"/>", "an attribute is given twice, in `<a>`", "x"),
            ("<a x=\"a&b\"/>", "the value of `x` contains a `&` that does not begin a reference", "&"),
            ("<a x=\"&evil;\"/>", "the value of `x` contains a `&` that does not begin a reference", "&"),
            (
                "<!DOCTYPE a [<!ENTITY e \"x\">]><a/>",
                "a document type (`<!DOCTYPE`) is not accepted",
                "<!DOCTYPE a [<!ENTITY e \"x\">]>",
            ),
            ("<a>stray</a>", "text between elements is ignored", "stray"),
        ];
        for (text, message, at) in table {
            let found = complaints(text);
            assert_eq!(found.first().map(|(message, _)| message.as_str()), Some(message), "{text}");
            if !message.contains("no `=`") {
                assert_eq!(found[0].1, at, "{text}");
            }
        }
    }

    #[test]
    fn a_missing_quote_is_found_where_it_is() {
        let text = "<a x=\"<p>\">\n <b name=\"x workers=\"1\">\n  <c name=\"y\"/>\n </b>\n</a>";
        let mut remarks = Remarks::default();
        assert!(read(text, &mut remarks).is_none());
        let found = remarks.sorted();
        assert_eq!(found.last().unwrap().message, "this quote, or one before it on the line, is not closed");
        assert_eq!(found.last().unwrap().line_and_column(text), (2, 23));
        let found = complaints("<a name=\"x>\n <b name=\"y\"/>\n</a>");
        assert_eq!(found[0].1, "\"");
        let found = complaints("<a n='x><b m='/></a>");
        assert_eq!(found[0].0, "the value of `n` contains `<`");
    }

    #[test]
    fn depth_and_attributes_are_bounded() {
        let deep = "<a>".repeat(65) + &"</a>".repeat(65);
        assert_eq!(complaints(&deep)[0].0, "`a` is nested more than 64 deep");
        let many: String = (0..65).map(|number| format!(" a{number}=\"\"")).collect();
        assert_eq!(complaints(&format!("<a{many}/>"))[0].0, "`a` has more than 64 attributes");
    }
}
