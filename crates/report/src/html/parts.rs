//! The small parts of the page.

use crate::content::{self, bandwidth, capital, percentile, succeeded};
use crate::figures::interruption;
use crate::text::escape;
use tidemark_judge::{Finding, Severity};
use tidemark_measure::record::{Stage, State};
use tidemark_measure::tally::Tally;
use tidemark_measure::units;

/// Operations whose latencies a card shows one by one.
const MOST_LINES: usize = 4;

/// A paragraph of plain text.
pub(super) fn paragraph(class: &str, text: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<p{class}>{}</p>\n", escape(text))
}

/// A list of plain texts.
pub(super) fn list(class: &str, items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("<li>{}</li>", escape(item))).collect();
    format!("<ul class=\"{class}\">{items}</ul>\n")
}

/// The state of a stage as a word with a mark.
pub(super) fn badge(state: State) -> String {
    let (class, mark) = match state {
        State::Completed => ("good", "✓"),
        State::Failed | State::Interrupted => ("bad", "✕"),
        State::Waiting | State::Running => ("open", "○"),
    };
    format!("<span class=\"badge {class}\">{mark} {}</span>", state.name())
}

/// A finding with its evidence.
pub(super) fn finding(finding: &Finding) -> String {
    let (class, mark) = match finding.severity {
        Severity::Good => ("good", "✓"),
        Severity::Note => ("note", "i"),
        Severity::Warning => ("warning", "!"),
        Severity::Critical => ("critical", "✕"),
    };
    let mut text = format!(
        "<article class=\"finding {class}\"><h4><span class=\"mark\" aria-hidden=\"true\">{mark}</span> {}</h4>\
         <p class=\"place\">{} · {}</p>",
        escape(&capital(&finding.title)),
        escape(&capital(finding.severity.name())),
        escape(&finding.place())
    );
    if !finding.detail.is_empty() {
        text += &paragraph("", &finding.detail);
    }
    if !finding.evidence.is_empty() {
        text += &list("evidence", &finding.evidence);
    }
    text + "</article>\n"
}

/// The key figures of a main stage.
pub(super) fn card(stage: &Stage) -> String {
    let mut sum = Tally::default();
    let (mut rate, mut bytes) = (0.0, 0.0);
    for (work, operation) in content::operations(stage) {
        sum.add(&operation.tally);
        rate += operation.throughput(work.window_seconds());
        bytes += operation.bandwidth(work.window_seconds());
    }
    let silent = stage.works.iter().max_by_key(|work| work.silence.map_or(0, |silence| silence.length_ns()));
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
        if let Some(silence) = work.silence.filter(|_| interruption(work).is_some()) {
            let load = work.window_end_ns.max(silence.to_ns).max(1);
            lines.push(format!("of {}", units::duration_ns(load)));
        }
        text += &tile("Longest without success", &lines, interruption(work).is_some());
    }
    text + "</dl></div>\n"
}

/// A percentile of each operation, or of the slowest when there are many.
fn latencies(stage: &Stage, fraction: f64) -> Vec<String> {
    let operations: Vec<_> = content::operations(stage).map(|(_, operation)| operation).collect();
    let line = |label: &str, tally: &Tally| match operations.len() {
        1 => percentile(&tally.response, fraction),
        _ => format!("{} {label}", percentile(&tally.response, fraction)),
    };
    if operations.len() <= MOST_LINES {
        return operations.iter().map(|operation| line(&operation.label, &operation.tally)).collect();
    }
    let slowest = operations.iter().max_by_key(|operation| operation.tally.response.quantile(fraction));
    slowest
        .map(|operation| line(&format!("{}, the slowest", operation.label), &operation.tally))
        .into_iter()
        .collect()
}

fn tile(name: &str, lines: &[String], is_bad: bool) -> String {
    let class = if is_bad { " class=\"bad\"" } else { "" };
    let lines: String = lines.iter().map(|line| format!("<dd>{}</dd>", escape(line))).collect();
    format!("<div{class}><dt>{name}</dt>{lines}</div>")
}
