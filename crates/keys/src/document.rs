//! A document while it is read.

use crate::diagnostic::{Diagnostic, Severity};
use crate::outside::Outside;
use std::cell::RefCell;
use std::ops::Range;

/// The limit of remarks: nobody reads more.
const MOST_REMARKS: usize = 100;

/// Remarks beyond this are not even kept: a hostile document could cause millions.
const MOST_KEPT: usize = 10 * MOST_REMARKS;

/// A document while it is read: what all of its tables share.
pub struct Document<'a> {
    /// Its text.
    pub text: &'a str,
    /// What its values refer to.
    pub outside: Outside<'a>,
    /// The remarks on it.
    pub log: Log,
}

impl<'a> Document<'a> {
    /// A document that nobody has read yet.
    pub fn new(text: &'a str, outside: Outside<'a>) -> Self {
        Self { text, outside, log: Log::default() }
    }
}

/// The remarks on a document, shared by everything that reads it.
#[derive(Default)]
pub struct Log(RefCell<Vec<Diagnostic>>);

impl Log {
    /// Adds a remark.
    pub fn push(&self, remark: Diagnostic) {
        let mut all = self.0.borrow_mut();
        let is_error = |known: &Diagnostic| known.severity == Severity::Error;
        // One error is always among them: it keeps the document from running.
        let has_room = all.len() < MOST_KEPT || (is_error(&remark) && !all.iter().any(is_error));
        if has_room {
            all.push(remark);
        }
    }

    /// Adds an error.
    pub fn error(&self, span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::error(span.clone(), message, help));
    }

    /// Adds a warning.
    pub fn warning(&self, span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::warning(span.clone(), message, help));
    }

    /// Whether there are more remarks than are shown.
    pub(crate) fn is_long(&self) -> bool {
        self.0.borrow().len() > MOST_REMARKS
    }

    /// All remarks in the order of the text, and whether one of them is an error.
    pub fn close(self) -> (Vec<Diagnostic>, bool) {
        let mut all = self.0.into_inner();
        let was_full = all.len() >= MOST_KEPT;
        all.sort_by_key(|remark| remark.span.start);
        // What is given once and inherited is read several times.
        all.dedup();
        let refused = all.iter().any(|remark| remark.severity == Severity::Error);
        if all.len() > MOST_REMARKS {
            // Errors first: they are what keeps the document from running.
            all.sort_by_key(|remark| std::cmp::Reverse(remark.severity));
            let least = if was_full { "at least " } else { "" };
            let more = all.len() - MOST_REMARKS;
            all.truncate(MOST_REMARKS);
            all.push(Diagnostic::warning(
                0..0,
                format!("{least}{more} more remarks are not shown"),
                "fix these first",
            ));
        }
        (all, refused)
    }
}
