//! The text of a fio job file cut into sections and options, each with its place.

use std::ops::Range;
use tidemark_plan::diagnostic::Diagnostic;

/// The section whose options hold for the sections after it.
pub(crate) const GLOBAL: &str = "global";

/// fio reads lines into a buffer and takes what goes beyond it for the next line, bytes. The shortest buffer of any version
/// has 4096.
pub(crate) const LONGEST_LINE: usize = 4000;

/// The limit of remarks: nobody reads more, and what has so many is not run.
pub(super) const MOST_REMARKS: usize = 100;

/// A section as it stands in the file.
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    pub(crate) span: Range<usize>,
    pub(crate) options: Vec<Setting<'a>>,
}

impl Section<'_> {
    /// Whether its options hold for the sections after it: fio takes every name that begins so for it.
    pub(crate) fn is_global(&self) -> bool {
        self.name.starts_with(GLOBAL)
    }

    /// Whether it looks like `[global]`, and fio takes it for a job.
    fn is_nearly_global(&self) -> bool {
        !self.is_global()
            && self.name.get(..GLOBAL.len()).is_some_and(|start| start.eq_ignore_ascii_case(GLOBAL))
    }
}

/// One `name=value`; a name alone has an empty value.
pub(crate) struct Setting<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
    pub(crate) span: Range<usize>,
}

/// The sections in the order of the text, `[global]` ones among them. fio cuts a line at the first `;` or `#`
/// wherever it stands.
pub(crate) fn sections<'a>(text: &'a str, found: &mut Vec<Diagnostic>) -> Vec<Section<'a>> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.len() > LONGEST_LINE && found.len() < MOST_REMARKS {
            found.push(Diagnostic::error(
                at..at,
                format!(
                    "the line is longer than {LONGEST_LINE} bytes: fio would take its end for another line"
                ),
                "split it into several options, or into several lines",
            ));
        }
        at += line.len();
    }
    for (span, line) in lines(text) {
        if found.len() >= MOST_REMARKS {
            break;
        }
        if let Some(rest) = line.strip_prefix('[') {
            match rest.strip_suffix(']').filter(|name| !name.is_empty()) {
                Some(name) => {
                    let section = Section { name, span, options: Vec::new() };
                    if section.is_nearly_global() {
                        found.push(Diagnostic::error(
                            section.span.clone(),
                            format!(
                                "fio reads `[{name}]` as a job: only `[global]` sets options for all jobs"
                            ),
                            "write `[global]`, or give the job another name",
                        ));
                    }
                    sections.push(section);
                }
                None => found.push(Diagnostic::error(
                    span,
                    format!("`{line}` is not a section header"),
                    "a section begins with its name in brackets: `[name]`",
                )),
            }
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let setting = Setting { name: trimmed(name), value: trimmed(value), span };
        if setting.name == "directory" && value.starts_with(BLANKS) {
            found.push(Diagnostic::error(
                setting.span.clone(),
                "fio takes the blank before the value of `directory` for a part of its name",
                "write it without blanks: `directory=/path`",
            ));
        }
        // fio replaces variables before it looks for the option, so that it may be any.
        if setting.name.contains('$') {
            found.push(Diagnostic::error(
                setting.span.clone(),
                format!("the name of the option `{}` has a variable in it", setting.name),
                "write the option's name out",
            ));
            continue;
        }
        // fio takes whatever begins so for an inclusion, with any one character between the word and the file's name.
        match (sections.last_mut(), line.starts_with("include")) {
            (_, true) => found.push(Diagnostic::error(
                setting.span,
                "`include` is not supported",
                "copy the options of the other file into this one",
            )),
            (Some(section), _) => section.options.push(setting),
            (None, _) => found.push(Diagnostic::error(
                setting.span,
                format!("the option `{}` stands before the first section", setting.name),
                "put it under `[global]` or under a job's section",
            )),
        }
    }
    sections
}

/// What separates words in C.
const BLANKS: [char; 6] = [' ', '\t', '\n', '\x0b', '\x0c', '\r'];

/// Without blanks around it: those of C, as fio knows no others. Whatever else looks like one is a part of the text.
fn trimmed(text: &str) -> &str {
    text.trim_matches(BLANKS)
}

/// Lines that are not empty once comments and surrounding blanks are removed.
fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let said = line.split([';', '#']).next().unwrap_or_default();
        let said = if start == 0 { said.trim_start_matches('\u{feff}') } else { said };
        let trimmed = trimmed(said);
        let from = start + (trimmed.as_ptr() as usize - line.as_ptr() as usize);
        (!trimmed.is_empty()).then(|| (from..from + trimmed.len(), trimmed))
    })
}

/// Whether a text is a fio job file: the first line that is not blank or a comment is a section header.
pub(crate) fn begins_with_section(text: &str) -> bool {
    lines(text).next().is_some_and(|(_, line)| line.starts_with('[') && line.ends_with(']'))
}
