//! Output to the screen: the only place that handles colour and terminals.

use crate::cli::When;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tidemark_plan::diagnostic::{Diagnostic, Severity};
use tidemark_plan::redact;

/// Whether an output could not be written: a program that was told to write something has not done it then.
static UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// An output could not be written, which its user was told.
pub(crate) fn unwritten() {
    UNWRITTEN.store(true, Ordering::Relaxed);
}

/// Whether an output could not be written.
pub(crate) fn is_unwritten() -> bool {
    UNWRITTEN.load(Ordering::Relaxed)
}

/// The terminal's abilities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Whether standard output takes colour.
    pub(crate) colour_out: bool,
    /// Whether standard error takes colour.
    pub(crate) colour_err: bool,
    /// Whether progress may be drawn in place on standard error.
    pub(crate) live: bool,
    /// Whether standard output is a terminal: numbers look alike on both outputs of a command.
    unicode: bool,
}

impl Terminal {
    pub(crate) fn new(when: When) -> Self {
        let may = |is_terminal: bool| match when {
            When::Always => true,
            When::Never => false,
            When::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none(),
        };
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        Self { colour_out: may(out), colour_err: may(err), live: err, unicode: out }
    }

    /// Prints to standard output. A closed pipe (`| head`) is not an error; other failures are told once, see
    /// [`is_unwritten`].
    pub(crate) fn print(self, text: &str) {
        let mut out = std::io::stdout().lock();
        let text = text.trim_end_matches('\n');
        let text = self.styled(visible(text));
        let written = writeln!(out, "{text}").and_then(|()| out.flush());
        if let Err(error) = written.or_else(unless_closed)
            && !is_unwritten()
        {
            unwritten();
            self.remark(&format!("tidemark: cannot write to the standard output: {error}"));
        }
    }

    /// Prints one line to standard output, whatever names are in it: see [`one_line`].
    pub(crate) fn line(self, text: &str) {
        self.print(&one_line(text));
    }

    /// Prints a remark to standard error.
    pub(crate) fn remark(self, text: &str) {
        // Logs are read on terminals, too.
        let text = self.shown(text);
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// Prints a sentence of our own, with nothing of others in it, to standard error, from wherever there is no terminal at hand.
    pub(crate) fn note(text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{text}");
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
        let mark = mark();
        format!("{mark}{code}m{text}{mark}0m")
    }

    /// Text for a terminal: names come from documents and servers, and must not move its cursor, hide text, change its
    /// direction or its colours. Lines, tabulators and the styles of [`Terminal::paint`] stay.
    pub(crate) fn shown(self, text: &str) -> Cow<'_, str> {
        self.styled(visible(text))
    }

    /// Text with the codes of its styles. Where results go to a file or to another program, the signs of units that are
    /// not ASCII would disturb.
    fn styled(self, text: Cow<'_, str>) -> Cow<'_, str> {
        let text = match self.unicode || text.is_ascii() {
            true => text,
            false => text.replace('\u{202f}', ",").replace('µ', "u").into(),
        };
        match text.contains(mark()) {
            true => text.replace(mark(), "\x1b[").into(),
            false => text,
        }
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
            let mut group = Group::with_title(level.primary_title(visible(&diagnostic.message)));
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
                group = group.element(Level::HELP.message(visible(&diagnostic.help)));
            }
            // It has made control characters of the source visible, and has colours of its own.
            let _ = writeln!(std::io::stderr().lock(), "{}", renderer.render(&[group]));
        }
    }
}

/// Nobody reads any more.
fn unless_closed(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// What begins the code of a style until the text is shown. It is made of a number that this process draws, so that no
/// name from elsewhere can hold it.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| format!("\u{fdd0}{:016x}", RandomState::new().build_hasher().finish()))
}

/// Text without characters that act on a terminal, also where it goes into a file or to another program: people look at those
/// on terminals. Lines that end in CR LF, as those of CSV do, stay; escapes are JSON's, so that JSON stays what it says.
fn visible(text: &str) -> Cow<'_, str> {
    let acts = |one: char| {
        let turns =
            matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || (one.is_control() && !matches!(one, '\n' | '\t'))
    };
    if !text.contains(acts) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut left = text.chars().peekable();
    while let Some(one) = left.next() {
        let ends_line = one == '\r' && left.peek() == Some(&'\n');
        match acts(one) && !ends_line {
            true => _ = write!(shown, "\\u{:04x}", u32::from(one)),
            false => shown.push(one),
        }
    }
    shown.into()
}

/// A name within a line of its own: one with line breaks must not make lines that look like ours.
pub(crate) fn one_line(name: &str) -> Cow<'_, str> {
    let breaks = |one: char| one.is_control() || matches!(one, '\u{2028}' | '\u{2029}');
    if !name.contains(breaks) {
        return name.into();
    }
    let mut line = String::with_capacity(name.len() + 16);
    for one in name.chars() {
        match breaks(one) {
            true => line.extend(one.escape_default()),
            false => line.push(one),
        }
    }
    line.into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_command_a_terminal() {
        let plain = "main: 70 % read\n\tµs";
        assert!(matches!(visible(plain), Cow::Borrowed(text) if text == plain));
        assert_eq!(
            visible("a\x1b[2Jb\x07\r\u{9b}1m\u{202e}c"),
            "a\\u001b[2Jb\\u0007\\u000d\\u009b1m\\u202ec"
        );
        assert_eq!(visible("a,b\r\n\x1b,d\r\n"), "a,b\r\n\\u001b,d\r\n", "CSV keeps its lines");
        let json = r#"{"name":"a\u009bb"}"#;
        assert_eq!(visible("{\"name\":\"a\u{9b}b\"}"), json, "and JSON says the same");
        assert_eq!(one_line("a\nrun 1 completed\tx\u{2028}"), "a\\nrun 1 completed\\tx\\u{2028}");
        let terminal = Terminal { colour_out: true, colour_err: true, live: true, unicode: true };
        for style in [Style::Strong, Style::Faint, Style::Good, Style::Warning, Style::Bad] {
            let painted = terminal.paint(style, "x\x1b[8m");
            let shown = terminal.shown(&painted);
            assert!(
                shown.starts_with("\x1b[") && shown.ends_with("\x1b[0m"),
                "its own styles stay: {shown:?}"
            );
            assert!(shown.contains("x\\u001b[8m"), "{shown:?}");
        }
        // A name cannot end a style either, nor begin one.
        assert_eq!(terminal.shown("a\x1b[0mb\x1b[1;31m"), "a\\u001b[0mb\\u001b[1;31m");
    }

    #[test]
    fn numbers_look_alike_on_both_outputs() {
        let shown = |unicode| {
            let terminal = Terminal { colour_out: false, colour_err: false, live: true, unicode };
            terminal.shown("4\u{202f}339 op/s, 12.3 µs").into_owned()
        };
        assert_eq!([true, false].map(shown), ["4\u{202f}339 op/s, 12.3 µs", "4,339 op/s, 12.3 us"]);
    }
}
