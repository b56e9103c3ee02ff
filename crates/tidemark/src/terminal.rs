//! Output to the screen: the only place that handles colour and terminals.

use crate::cli::When;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::io::{IsTerminal, Write};
use tidemark_plan::diagnostic::{Diagnostic, Severity};
use tidemark_plan::redact;

/// The terminal's abilities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Whether standard output takes colour.
    pub(crate) colour_out: bool,
    /// Whether standard error takes colour.
    pub(crate) colour_err: bool,
    /// Whether progress may be drawn in place on standard error.
    pub(crate) live: bool,
    /// Whether standard output is a terminal, which shows more than ASCII.
    unicode_out: bool,
}

impl Terminal {
    pub(crate) fn new(when: When) -> Self {
        let may = |is_terminal: bool| match when {
            When::Always => true,
            When::Never => false,
            When::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none(),
        };
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        Self { colour_out: may(out), colour_err: may(err), live: err, unicode_out: out }
    }

    /// Prints to standard output. A closed pipe (`| head`) is not an error.
    pub(crate) fn print(self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{}", plain(text.trim_end_matches('\n'), self.unicode_out));
    }

    /// Prints a remark to standard error.
    pub(crate) fn remark(self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{}", plain(text, self.live));
    }

    /// Text in a style, where output takes colour.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if !self.colour_out {
            return text.to_owned();
        }
        let code = match style {
            Style::Strong => "1",
            Style::Faint => "2",
            Style::Good => "32",
            Style::Warning => "33",
            Style::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Shows a document's errors and warnings on standard error, with places and advice.
    pub(crate) fn diagnose(self, path: &str, text: &str, diagnostics: &[Diagnostic]) {
        // Excerpts must not show secrets.
        let text = &redact::mask(text);
        let renderer = if self.colour_err { Renderer::styled() } else { Renderer::plain() };
        for diagnostic in diagnostics {
            let level = match diagnostic.severity {
                Severity::Error => Level::ERROR,
                Severity::Warning => Level::WARNING,
            };
            let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()));
            // A point in the text is shown as the character there; 0..0 means the whole document.
            let mut span = diagnostic.span.clone();
            if span.is_empty() && span.start > 0 {
                span.start = (0..text.len())
                    .rev()
                    .find(|at| *at <= span.start && text.is_char_boundary(*at))
                    .unwrap_or(0);
                span.end = span.start + text[span.start..].chars().next().map_or(0, char::len_utf8);
            }
            if !span.is_empty() && span.end <= text.len() {
                let place = AnnotationKind::Primary.span(span);
                group = group.element(Snippet::source(text.as_str()).path(path).annotation(place));
            }
            if !diagnostic.help.is_empty() {
                group = group.element(Level::HELP.message(diagnostic.help.as_str()));
            }
            self.remark(&renderer.render(&[group]));
        }
    }
}

/// Outside a terminal, non-ASCII characters of units would disturb other programs.
fn plain(text: &str, unicode: bool) -> std::borrow::Cow<'_, str> {
    if unicode || text.is_ascii() {
        return text.into();
    }
    text.replace('\u{202f}', ",").replace('µ', "u").into()
}

/// Styles of text. Colour is never the only sign: the words carry the meaning, too.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    Strong,
    Faint,
    Good,
    Warning,
    Bad,
}
