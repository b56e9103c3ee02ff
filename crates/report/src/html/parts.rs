//! The small parts of the page.

use crate::content::{self, bandwidth, capital, percentile_of, succeeded};
use crate::figures::{Figure, STYLE as FIGURE_STYLE, interruption};
use crate::offered;
use crate::table::{Forms as _, Table};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use tidemark_judge::{Finding, Severity};
use tidemark_measure::record::{Note, Operation, Stage, State, Work};
use tidemark_measure::tally::Tally;
use tidemark_measure::units;

const STYLE: &str = include_str!("report.css");

/// Characters of the document that are shown; longer ones are in the JSON and in the store.
const MOST_OF_DOCUMENT: usize = 60_000;

/// Notes that are shown unfolded.
const MOST_NOTES: usize = 6;

/// Operations whose latencies a card shows one by one.
const MOST_LINES: usize = 4;

/// A page: what is reported, the facts below its name, links to the sections (their ids and names), and the sections.
pub(crate) fn page(
    name: &str,
    facts: &Markup,
    links: &[(String, String)],
    sections: &Markup,
    version: &str,
) -> String {
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (name) " · Tidemark report" }
                style { "\n" (PreEscaped(FIGURE_STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p class="brand" { "Tidemark " span { "storage benchmark report" } }
                    h1 { (name) }
                    (facts)
                    nav aria-label="Sections" {
                        @for (index, (id, name)) in links.iter().enumerate() {
                            @if index > 0 { " " }
                            a href={ "#" (id) } { (name) }
                        }
                    }
                }
                "\n"
                main { "\n" (sections) }
                footer {
                    p {
                        "Written by Tidemark " (version) ". Latencies are HdrHistograms with three significant digits; \
                         every percentile is read from merged counts. kB, MB and GB are powers of 1000."
                    }
                }
            }
        }
        "\n"
    };
    printable(page.into_string())
}

/// The text with U+FFFD in place of control characters, which HTML forbids and maud keeps.
fn printable(text: String) -> String {
    let is_forbidden = |letter: char| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r');
    if text.contains(is_forbidden) { text.replace(is_forbidden, "\u{fffd}") } else { text }
}

/// A document as it was written, folded.
pub(crate) fn document(text: &str) -> Markup {
    let shown: String = text.chars().take(MOST_OF_DOCUMENT).collect();
    html! {
        details {
            summary { "The document, secrets removed" }
            pre { code { (shown) } }
            @if shown.len() < text.len() {
                (paragraph("legend", "The document is cut off here; the JSON report has all of it."))
            }
        }
    }
}

/// A paragraph of plain text.
pub(crate) fn paragraph(class: &str, text: &str) -> Markup {
    html! { p class=[class_of(class)] { (text) } "\n" }
}

/// A list of plain texts.
pub(crate) fn list(class: &str, items: &[String]) -> Markup {
    html! { ul class=[class_of(class)] { @for item in items { li { (item) } } } "\n" }
}

fn class_of(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

/// The state of a stage as a word with a mark.
pub(crate) fn badge(state: State) -> Markup {
    let (class, mark) = match state {
        State::Completed => ("good", "✓"),
        State::Failed | State::Interrupted => ("bad", "✕"),
        State::Waiting | State::Running => ("open", "○"),
    };
    html! { span class={ "badge " (class) } { (mark) " " (state.name()) } }
}

/// A finding with its evidence.
pub(crate) fn finding(finding: &Finding) -> Markup {
    let (class, mark) = match finding.severity {
        Severity::Good => ("good", "✓"),
        Severity::Note => ("note", "i"),
        Severity::Warning => ("warning", "!"),
        Severity::Critical => ("critical", "✕"),
    };
    let (detail, evidence) = (finding.detail(), finding.evidence());
    html! {
        article class={ "finding " (class) } {
            h4 { span class="mark" aria-hidden="true" { (mark) } " " (capital(&finding.title())) }
            p class="place" { (capital(finding.severity.name())) " · " (finding.place()) }
            @if !detail.is_empty() { (paragraph("", &detail)) }
            @if !evidence.is_empty() { (list("evidence", &evidence)) }
        }
        "\n"
    }
}

/// Problems in full, then notes, then checks that passed.
pub(crate) fn findings(all: &[Finding]) -> Markup {
    let of = |severities: &[Severity]| -> Vec<&Finding> {
        all.iter().filter(|finding| severities.contains(&finding.severity)).collect()
    };
    let problems = of(&[Severity::Critical, Severity::Warning]);
    let (notes, good) = (of(&[Severity::Note]), of(&[Severity::Good]));
    html! {
        @if !problems.is_empty() {
            h3 { "Problems" }
            div class="findings" { @for one in problems { (finding(one)) } }
        }
        @if notes.len() > MOST_NOTES {
            (folded("Notes", &notes))
        } @else if !notes.is_empty() {
            h3 { "Notes" }
            div class="findings side" { @for one in notes { (finding(one)) } }
        }
        @if !good.is_empty() { (folded("Checks that passed", &good)) }
    }
}

/// Findings behind a line that says how many they are.
pub(crate) fn folded(title: &str, findings: &[&Finding]) -> Markup {
    html! {
        details {
            summary { (title) ": " (findings.len()) }
            div class="findings side" { @for one in findings { (finding(one)) } }
        }
        "\n"
    }
}

/// A table, behind a line with its length if it is longer than `most` rows.
pub(crate) fn maybe_folded(title: &str, table: &Table, most: usize) -> Markup {
    html! {
        @if table.length() <= most {
            (table.html())
        } @else {
            details { summary { (title) ": " (table.length()) " rows" } (table.html()) } "\n"
        }
    }
}

/// Notes as a list of their topics.
pub(crate) fn definitions(notes: &[Note]) -> Markup {
    html! {
        dl { @for note in notes { dt { (note.topic) } dd { (note.text) } "\n" } }
    }
}

/// Figures side by side, or below each other where one has the page's width; the id of each begins with `id`.
pub(crate) fn charts(id: &str, figures: &[Figure]) -> Markup {
    html! {
        div class="charts" {
            @for figure in figures {
                figure class=[figure.has_whole_width().then_some("wide")] {
                    figcaption { (figure.title) }
                    (PreEscaped(figure.inline(&format!("{id}-{}", figure.name))))
                }
                "\n"
            }
        }
        "\n"
    }
}

/// A figure that has the whole width.
pub(crate) fn wide_chart(id: &str, figure: &Figure) -> Markup {
    html! {
        figure class="wide" { (PreEscaped(figure.inline(&format!("{id}-{}", figure.name)))) }
        "\n"
    }
}

/// The key figures of a main stage.
pub(crate) fn card(stage: &Stage) -> Markup {
    let mut sum = Tally::default();
    let (mut rate, mut bytes) = (0.0, 0.0);
    for (work, operation) in content::operations(stage) {
        sum.add(&operation.tally);
        rate += operation.throughput(work.window_seconds());
        bytes += operation.bandwidth(work.window_seconds());
    }
    let longest = stage
        .works
        .iter()
        .max_by_key(|work| work.longest_gap.map_or(0, |longest_gap| longest_gap.length_ns()));
    let loads: Vec<String> = stage.works.iter().map(offered::load).collect();
    let failed = format!("{} failed", units::count(sum.failed()));
    html! {
        div class="card" {
            p class="name" { strong { (stage.id) } " " (badge(stage.state)) }
            (paragraph("load", &loads.join(". ")))
            dl class="tiles" {
                (tile("Throughput", &[units::rate(rate)], false))
                (tile("Bandwidth", &[bandwidth(bytes)], false))
                (tile("Median response", &latencies(stage, &sum, 0.5), false))
                (tile("99 % of them within", &latencies(stage, &sum, 0.99), false))
                (tile("Succeeded", &[succeeded(&sum), failed], sum.failed() > 0))
                @if let Some(work) = longest {
                    (tile("Longest without success", &without_success(work), interruption(work).is_some()))
                }
            }
        }
        "\n"
    }
}

/// The longest time without a success, and of how long when that is an interruption.
fn without_success(work: &Work) -> Vec<String> {
    let mut lines = vec![content::longest_silence(work)];
    if let Some(longest_gap) = work.longest_gap.filter(|_| interruption(work).is_some()) {
        let load = work.window_end_ns.max(longest_gap.to_ns).max(1);
        lines.push(format!("of {}", units::duration_ns(load)));
    }
    lines
}

/// A percentile of all operations together, and below it of each, or of the slowest where there are many.
fn latencies(stage: &Stage, sum: &Tally, fraction: f64) -> Vec<String> {
    let operations: Vec<&Operation> = content::operations(stage).map(|(_, operation)| operation).collect();
    if let [only] = operations.as_slice() {
        return vec![percentile_of(only, fraction)];
    }
    let line = |operation: &Operation| format!("{} {}", operation.label, percentile_of(operation, fraction));
    let mut lines = vec![content::percentile(&sum.response, fraction)];
    if operations.len() <= MOST_LINES {
        lines.extend(operations.iter().map(|operation| line(operation)));
    } else {
        let order = |operation: &&&Operation| operation.quantile_ns(fraction).unwrap_or(0.0) as u64;
        lines
            .extend(operations.iter().max_by_key(order).map(|slowest| format!("slowest: {}", line(slowest))));
    }
    lines
}

/// A number with its name; lines after the first say more about it, in smaller type.
fn tile(name: &str, lines: &[String], is_bad: bool) -> Markup {
    html! {
        div class=[is_bad.then_some("bad")] {
            dt { (name) }
            @for (index, line) in lines.iter().enumerate() {
                dd class=[(index > 0).then_some("more")] { (line) }
            }
        }
    }
}
