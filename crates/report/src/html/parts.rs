//! The small parts of the page.

use crate::content::{self, bandwidth, capital, quantile, succeeded};
use crate::figures::{Figure, STYLE as FIGURE_STYLE, interruption};
use crate::text::escape;
use tidemark_judge::{Finding, Severity};
use tidemark_measure::record::{Operation, Stage, State};
use tidemark_measure::tally::Tally;
use tidemark_measure::units;

const STYLE: &str = include_str!("report.css");

/// Characters of the document that are shown; longer ones are in the JSON and in the store.
const MOST_OF_DOCUMENT: usize = 60_000;

/// Notes that are shown unfolded.
const MOST_NOTES: usize = 6;

/// Operations whose latencies a card shows one by one.
const MOST_LINES: usize = 4;

/// Everything up to the name of what is reported, which is its heading.
pub(crate) fn top(name: &str) -> String {
    let name = escape(name);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{name} · Tidemark report</title>\n<style>\n{FIGURE_STYLE}{STYLE}</style></head>\n<body>\
         <header><p class=\"brand\">Tidemark <span>storage benchmark report</span></p><h1>{name}</h1>\n"
    )
}

/// Links to the sections: their ids and names.
pub(crate) fn contents(links: &[(String, String)]) -> String {
    let links: Vec<String> =
        links.iter().map(|(id, name)| format!("<a href=\"#{id}\">{}</a>", escape(name))).collect();
    format!("<nav aria-label=\"Sections\">{}</nav>", links.join(" "))
}

/// The end of the page.
pub(crate) fn bottom(version: &str) -> String {
    format!(
        "</main><footer><p>Written by Tidemark {}. Latencies are HdrHistograms with three significant digits; \
         every percentile is read from merged counts. kB, MB and GB are powers of 1000.</p></footer></body></html>\n",
        escape(version)
    )
}

/// A document as it was written, folded.
pub(crate) fn document(text: &str) -> String {
    let shown: String = text.chars().take(MOST_OF_DOCUMENT).collect();
    let cut = if shown.len() < text.len() {
        paragraph("legend", "The document is cut off here; the JSON report has all of it.")
    } else {
        String::new()
    };
    format!(
        "<details><summary>The document, secrets removed</summary><pre><code>{}</code></pre>{cut}</details>\n",
        escape(&shown)
    )
}

/// A paragraph of plain text.
pub(crate) fn paragraph(class: &str, text: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<p{class}>{}</p>\n", escape(text))
}

/// A list of plain texts.
pub(crate) fn list(class: &str, items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("<li>{}</li>", escape(item))).collect();
    format!("<ul class=\"{class}\">{items}</ul>\n")
}

/// The state of a stage as a word with a mark.
pub(crate) fn badge(state: State) -> String {
    let (class, mark) = match state {
        State::Completed => ("good", "✓"),
        State::Failed | State::Interrupted => ("bad", "✕"),
        State::Waiting | State::Running => ("open", "○"),
    };
    format!("<span class=\"badge {class}\">{mark} {}</span>", state.name())
}

/// A finding with its evidence.
pub(crate) fn finding(finding: &Finding) -> String {
    let (class, mark) = match finding.severity {
        Severity::Good => ("good", "✓"),
        Severity::Note => ("note", "i"),
        Severity::Warning => ("warning", "!"),
        Severity::Critical => ("critical", "✕"),
    };
    let mut text = format!(
        "<article class=\"finding {class}\"><h4><span class=\"mark\" aria-hidden=\"true\">{mark}</span> {}</h4>\
         <p class=\"place\">{} · {}</p>",
        escape(&capital(&finding.title())),
        escape(&capital(finding.severity.name())),
        escape(&finding.place())
    );
    let (detail, evidence) = (finding.detail(), finding.evidence());
    if !detail.is_empty() {
        text += &paragraph("", &detail);
    }
    if !evidence.is_empty() {
        text += &list("evidence", &evidence);
    }
    text + "</article>\n"
}

/// What is wrong in full; what is worth knowing; what was checked and found good.
pub(crate) fn findings(all: &[Finding]) -> String {
    let of = |severities: &[Severity]| -> Vec<String> {
        let chosen = all.iter().filter(|finding| severities.contains(&finding.severity));
        chosen.map(finding).collect()
    };
    let mut text = String::new();
    let wrong = of(&[Severity::Critical, Severity::Warning]);
    if !wrong.is_empty() {
        text += &format!("<h3>Problems</h3>\n<div class=\"findings\">{}</div>\n", wrong.concat());
    }
    let notes = of(&[Severity::Note]);
    if (1..=MOST_NOTES).contains(&notes.len()) {
        text += &format!("<h3>Notes</h3>\n<div class=\"findings side\">{}</div>\n", notes.concat());
    } else if !notes.is_empty() {
        text += &folded("Notes", &notes);
    }
    let good = of(&[Severity::Good]);
    if !good.is_empty() {
        text += &folded("Checks that passed", &good);
    }
    text
}

/// Findings behind a line that says how many they are.
pub(crate) fn folded(title: &str, findings: &[String]) -> String {
    format!(
        "<details><summary>{title}: {}</summary><div class=\"findings side\">{}</div></details>\n",
        findings.len(),
        findings.concat()
    )
}

/// Figures side by side; the id of each begins with `id`.
pub(crate) fn charts(id: &str, figures: &[Figure]) -> String {
    let draw = |figure: &Figure| {
        let id = format!("{id}-{}", figure.name);
        format!("<figure><figcaption>{}</figcaption>{}</figure>\n", escape(&figure.title), figure.inline(&id))
    };
    format!("<div class=\"charts\">{}</div>\n", figures.iter().map(draw).collect::<String>())
}

/// The key figures of a main stage.
pub(crate) fn card(stage: &Stage) -> String {
    let mut sum = Tally::default();
    let (mut rate, mut bytes) = (0.0, 0.0);
    for (work, operation) in content::operations(stage) {
        sum.add(&operation.tally);
        rate += operation.throughput(work.window_seconds());
        bytes += operation.bandwidth(work.window_seconds());
    }
    let silent = stage
        .works
        .iter()
        .max_by_key(|work| work.longest_gap.map_or(0, |longest_gap| longest_gap.length_ns()));
    let loads: Vec<String> = stage.works.iter().map(content::load).collect();
    let mut text = format!(
        "<div class=\"card\"><p class=\"name\"><strong>{}</strong> {}</p>{}<dl class=\"tiles\">",
        escape(&stage.id),
        badge(stage.state),
        paragraph("load", &loads.join(". "))
    );
    text += &tile("Throughput", &[units::rate(rate)], false);
    text += &tile("Bandwidth", &[bandwidth(bytes)], false);
    text += &tile("Median response", &latencies(stage, 0.5), false);
    text += &tile("99 % of them within", &latencies(stage, 0.99), false);
    let failed = format!("{} failed", units::count(sum.failed()));
    text += &tile("Succeeded", &[succeeded(&sum), failed], sum.failed() > 0);
    if let Some(work) = silent {
        let mut lines = vec![content::longest_silence(work)];
        if let Some(longest_gap) = work.longest_gap.filter(|_| interruption(work).is_some()) {
            let load = work.window_end_ns.max(longest_gap.to_ns).max(1);
            lines.push(format!("of {}", units::duration_ns(load)));
        }
        text += &tile("Longest without success", &lines, interruption(work).is_some());
    }
    text + "</dl></div>\n"
}

/// A percentile of each operation, or of the slowest when there are many.
fn latencies(stage: &Stage, fraction: f64) -> Vec<String> {
    let operations: Vec<&Operation> = content::operations(stage).map(|(_, operation)| operation).collect();
    let line = |label: &str, operation: &Operation| match operations.len() {
        1 => quantile(operation, fraction),
        _ => format!("{} {label}", quantile(operation, fraction)),
    };
    if operations.len() <= MOST_LINES {
        return operations.iter().map(|operation| line(&operation.label, operation)).collect();
    }
    let order = |operation: &&&Operation| operation.quantile_ns(fraction).unwrap_or(0.0) as u64;
    let slowest = operations.iter().max_by_key(order);
    slowest
        .map(|operation| line(&format!("{}, the slowest", operation.label), operation))
        .into_iter()
        .collect()
}

fn tile(name: &str, lines: &[String], is_bad: bool) -> String {
    let class = if is_bad { " class=\"bad\"" } else { "" };
    let lines: String = lines.iter().map(|line| format!("<dd>{}</dd>", escape(line))).collect();
    format!("<div{class}><dt>{name}</dt>{lines}</div>")
}
