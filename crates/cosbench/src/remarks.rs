//! What is collected while a document is read: diagnostics and compatibility notes.

use std::ops::Range;
use tidemark_measure::record::{GENERAL, Note};
use tidemark_plan::diagnostic::{Diagnostic, Severity};

/// The limit of remarks: nobody reads more, and a hostile document could cause millions.
const MOST: usize = 500;

/// What a note says differs from COSBench: what matters more to whoever runs the file comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Differs {
    /// What is deleted, and what stays.
    Deleted,
    /// What is written.
    Data,
    /// What the figures mean.
    Figures,
    /// How the file is carried out.
    Conduct,
}

/// The remarks on a document. The same remark is kept once: a storage that five stages inherit is
/// read five times and reported once.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    list: Vec<Diagnostic>,
    failed: bool,
    notes: Vec<(Differs, Note)>,
    /// Clauses on what differs for every file.
    general: Vec<&'static str>,
}

impl Remarks {
    pub(super) fn push(&mut self, remark: Diagnostic) {
        let first_error = remark.severity == Severity::Error && !self.failed;
        self.failed |= first_error;
        if first_error || (!self.full() && !self.list.contains(&remark)) {
            self.list.push(remark);
        }
    }

    pub(super) fn error(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::error(span, message, help));
    }

    pub(super) fn warning(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Diagnostic::warning(span, message, help));
    }

    /// Whether further remarks are dropped.
    pub(super) fn full(&self) -> bool {
        self.list.len() >= MOST
    }

    /// Whether there was an error, listed or not.
    pub(super) fn failed(&self) -> bool {
        self.failed
    }

    /// Keeps a compatibility note; one of each topic is enough.
    pub(super) fn note(&mut self, differs: Differs, topic: &str, text: impl Into<String>) {
        if self.notes.iter().all(|(_, note)| note.topic != topic) {
            self.notes.push((differs, Note { topic: topic.to_owned(), text: text.into() }));
        }
    }

    /// Keeps a clause on a difference that this file has no part in: all of them make one note.
    pub(super) fn general(&mut self, clause: &'static str) {
        if !self.general.contains(&clause) {
            self.general.push(clause);
        }
    }

    /// The notes so far, what matters most first, which leave the list.
    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.sort_by_key(|(differs, _)| *differs);
        let mut notes: Vec<Note> = notes.into_iter().map(|(_, note)| note).collect();
        let general = std::mem::take(&mut self.general);
        if !general.is_empty() {
            let (count, clauses) = (general.len(), general.join("; "));
            let text = format!("{count} differences are those of every COSBench file: {clauses}.");
            notes.push(Note { topic: GENERAL.to_owned(), text });
        }
        notes
    }

    /// All diagnostics, in the order of the document.
    pub(super) fn sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|remark| remark.span.start);
        self.list
    }
}

/// A text of the document, short enough for a message.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("`{}...`", &text[..at]),
        None => format!("`{text}`"),
    }
}
