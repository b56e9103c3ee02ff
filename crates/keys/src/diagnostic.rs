//! What is wrong with a document, where, and what to do about it.

use std::ops::Range;
use tidemark_measure::axis::Axis;
use tidemark_measure::record::Note;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It runs; the user may be surprised.
    Warning,
    /// It cannot run.
    Error,
}

/// What a diagnostic is about, as data, for code that depends on it: nothing reads its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// Nothing that any code asks for.
    #[default]
    Other,
    /// A key of a mapping, or its value.
    Key(String),
    /// An environment variable that is not set.
    UnsetVariable(String),
    /// The level that an evaluation sets, on this axis.
    Level(Axis),
}

/// One remark on a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub code: Code,
    /// What is wrong, in one sentence without a full stop; names the key.
    pub message: String,
    /// What to do about it, or empty.
    pub help: String,
    /// Where, as a range of bytes of the document's text; empty when it concerns the whole.
    pub span: Range<usize>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(Severity::Error, span, message.into(), help.into())
    }

    /// A warning at `span`.
    pub fn warning(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(Severity::Warning, span, message.into(), help.into())
    }

    fn new(severity: Severity, span: Range<usize>, message: String, help: String) -> Self {
        Self { severity, code: Code::Other, message, help, span }
    }

    /// The same, about something that code asks for.
    pub fn about(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// The same as a note on a run; `text` is the document's.
    pub fn note(&self, text: &str) -> Note {
        let (line, _) = self.line_and_column(text);
        let separator = if self.help.is_empty() { "" } else { "; " };
        Note { topic: format!("line {line}"), text: format!("{}{separator}{}", self.message, self.help) }
    }

    /// Line and column of its start within `text`, both from 1; columns count characters.
    pub fn line_and_column(&self, text: &str) -> (usize, usize) {
        let start =
            (0..=self.span.start.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}
