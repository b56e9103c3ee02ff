//! What is wrong with a document, where, and what to do about it.

use std::ops::Range;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It runs; the user may be surprised.
    Warning,
    /// It cannot run.
    Error,
}

/// One remark on a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
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
        Self { severity: Severity::Error, message: message.into(), help: help.into(), span }
    }

    /// A warning at `span`.
    pub fn warning(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, message: message.into(), help: help.into(), span }
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
