//! The report of an evaluation as one self-contained HTML file.

use super::panel::{Panel, panels};
use super::{Subject, drawings, tables};
use crate::content;
use crate::html::parts::{
    bottom, charts, contents, document, finding, findings, folded, list, paragraph, top,
};
use crate::table::Table;
use crate::text::{escape, utc};
use tidemark_judge::evaluation::Bottleneck;

/// Rows of a table that is shown unfolded.
const MOST_ROWS: usize = 24;

/// Rows of a table of levels that is shown unfolded: four arms at ten levels.
const MOST_LEVELS: usize = 40;

/// Bytes of an answer from which on it is set smaller.
const LONG_ANSWER: usize = 360;

/// Bottlenecks of an arm under a load that are shown unfolded: the likeliest.
const MOST_BOTTLENECKS: usize = 2;

/// The report of an evaluation.
pub fn html(subject: &Subject<'_>) -> String {
    let panels = panels(subject.evaluation, subject.assessment);
    let sections = [
        ("verdict", "Verdict", verdict(subject)),
        ("comparison", "Loads and arms", comparison(&panels)),
        ("levels", "Levels and knees", levels(&panels)),
        ("latencies", "Response times", latencies(&panels, subject)),
        ("bottlenecks", "Bottlenecks", bottlenecks(subject)),
        ("nodes", "Nodes", nodes(&panels, subject)),
        ("findings", "Findings", all_findings(subject, &panels)),
        ("proofs", "Proofs", proofs(subject, &panels)),
        ("arms", "Arms and loads", arms(subject)),
        ("runs", "All runs", runs(subject)),
        ("repeat", "How to reproduce", repeat(subject)),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|(_, _, text)| !text.is_empty()).collect();
    let links: Vec<(String, String)> =
        sections.iter().map(|(id, name, _)| ((*id).to_owned(), (*name).to_owned())).collect();
    let mut page = head(subject) + &contents(&links) + "</header>\n<main>\n";
    for (id, name, text) in sections {
        page += &format!("<section id=\"{id}\"><h2>{name}</h2>\n{text}</section>\n");
    }
    page + &bottom(&subject.evaluation.provenance.tidemark)
}

fn head(subject: &Subject<'_>) -> String {
    let evaluation = subject.evaluation;
    let mut page = top(&evaluation.name);
    if !evaluation.description.is_empty() {
        page += &paragraph("lede", &evaluation.description);
    }
    let number = if evaluation.id == 0 { String::new() } else { format!("Evaluation {} · ", evaluation.id) };
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let shape = [
        plural(evaluation.arms.len(), "arm"),
        plural(evaluation.loads.len(), "load"),
        plural(evaluation.repeats as usize, "repeat"),
        plural(subject.runs.len(), "run"),
    ];
    let started = utc(evaluation.started_unix_ns);
    let started = if started.is_empty() { started } else { format!(" · {started}") };
    page += &paragraph("meta", &format!("{number}{}{started}", shape.join(", ")));
    page
}

/// The answer, and how far it can be trusted.
fn verdict(subject: &Subject<'_>) -> String {
    let badges = tables::badges(subject);
    let is = |wanted| badges.iter().any(|(is_good, _)| *is_good == wanted);
    let class = if is(Some(false)) {
        "bad"
    } else if is(None) {
        "open"
    } else {
        "good"
    };
    let words = badges.iter().map(|(is_good, word)| {
        let (class, mark) = match is_good {
            Some(true) => ("good", "✓"),
            Some(false) => ("bad", "✕"),
            None => ("open", "≈"),
        };
        format!("<span class=\"{class}\">{mark} {}</span> ", escape(word))
    });
    let mut text =
        format!("<div class=\"verdict {class}\"><p class=\"word\">{}</p>", words.collect::<String>());
    let all = &subject.assessment.verdict;
    let (answer, more) = all.split_at(all.len().min(subject.assessment.headline));
    let long = answer.iter().map(String::len).sum::<usize>() > LONG_ANSWER;
    let class = if long { "answer long" } else { "answer" };
    text += &answer.iter().map(|line| paragraph(class, line)).collect::<String>();
    text += &more.iter().map(|sentence| paragraph("more", sentence)).collect::<String>();
    text += "</div>\n";
    let reasons = subject.assessment.validity.sentences();
    if !reasons.is_empty() {
        let reasons: Vec<String> = reasons.iter().map(|reason| format!("{reason}.")).collect();
        text += "<h3>Why the numbers are INVALID</h3>\n";
        text += &list("reasons", &reasons);
    }
    if !subject.evaluation.missing.is_empty() {
        text += "<h3>Missing measurements</h3>\n";
        text += &list("reasons", &subject.evaluation.missing);
    }
    text
}

fn comparison(panels: &[Panel<'_>]) -> String {
    if panels.is_empty() {
        return paragraph("alarm", "Nothing was measured.");
    }
    let mut text = tables::main(panels).html();
    text += "<p class=\"legend\">Means over the repeats; ± is half of the 95 % confidence interval (Student's t) as a share of the \
             mean. × is the multiple of the baseline's. Better and worse are said where the difference is significant \
             (Welch's test, corrected for the number of comparisons by Holm's method).</p>\n";
    let normalised = drawings::normalised(panels);
    if !normalised.is_empty() {
        text += "<h3>Compared with the baseline</h3>\n";
        text += &named(&normalised);
    }
    text += "<h3>Measurements</h3>\n";
    text += &named(&drawings::raw(panels));
    text += "<p class=\"legend\">Whiskers are 95 % confidence intervals. Of a load with more than three levels the knee of the \
             baseline stands for all, or the highest level.</p>\n";
    let operations = tables::operations(panels);
    if !operations.is_empty() {
        text += &maybe_folded("Operation by operation", &operations, MOST_ROWS);
    }
    if let Some(table) = tables::every_level(panels) {
        text += &format!("<details><summary>Arms at every level</summary>{}</details>\n", table.html());
    }
    text
}

/// Figures whose names are ids.
fn named(figures: &[crate::figures::Figure]) -> String {
    charts("figure", figures)
}

fn levels(panels: &[Panel<'_>]) -> String {
    let mut text = String::new();
    for panel in panels.iter().filter(|panel| panel.levels.len() > 1) {
        text += &format!("<h3>{}</h3>\n", escape(&panel.title()));
        if let Some(level) = panel.record.and_then(|load| load.service_level.as_ref()) {
            text += &paragraph("legend", &format!("Service level: {}", level.text));
        }
        let stories: Vec<String> =
            panel.knees().map(|knee| format!("{}: {}", knee.arm, knee.story.join(" "))).collect();
        if !stories.is_empty() {
            text += &list("", &stories);
        }
        text += &named(&drawings::curves(panel));
        text += &tables::levels(panel)
            .map_or(String::new(), |table| maybe_folded("All levels", &table, MOST_LEVELS));
    }
    text
}

fn latencies(panels: &[Panel<'_>], subject: &Subject<'_>) -> String {
    let mut text = String::new();
    for panel in panels {
        let curves: Vec<_> = drawings::percentiles(panel).into_iter().collect();
        let maps = drawings::heat(panel, subject);
        if curves.is_empty() && maps.is_empty() {
            continue;
        }
        text += &format!("<h3>{}</h3>\n", escape(&panel.title()));
        text += &named(&[curves, maps].concat());
    }
    if !text.is_empty() {
        text += "<p class=\"legend\">Percentiles are read from the merged histograms of all repeats.</p>\n";
    }
    text
}

fn bottlenecks(subject: &Subject<'_>) -> String {
    let mut text = String::new();
    for arm in &subject.evaluation.arms {
        for load in &subject.evaluation.loads {
            let own: Vec<&Bottleneck> = subject
                .assessment
                .bottlenecks
                .iter()
                .filter(|one| one.arm == arm.name && one.load == load.name)
                .collect();
            if own.is_empty() {
                continue;
            }
            text += &format!("<h3>{} under {}</h3>\n", escape(&arm.name), escape(&load.name));
            let (first, rest) = own.split_at(own.len().min(MOST_BOTTLENECKS));
            let shown: String = first.iter().map(|one| finding(&one.finding)).collect();
            text += &format!("<div class=\"findings side\">{shown}</div>\n");
            if !rest.is_empty() {
                let rest: Vec<String> = rest.iter().map(|one| finding(&one.finding)).collect();
                text += &folded("Less likely", &rest);
            }
        }
    }
    match (text.is_empty(), subject.runs.iter().any(|run| !run.nodes.is_empty())) {
        (false, _) => text,
        (true, true) => paragraph("", "No rule found a resource at its limit."),
        (true, false) => paragraph(
            "",
            "No node was observed: what limited the arms cannot be said beyond the load generator's own part.",
        ),
    }
}

fn nodes(panels: &[Panel<'_>], subject: &Subject<'_>) -> String {
    let mut text = String::new();
    for (title, nodes) in drawings::observed(panels, subject) {
        text += &format!("<h3>{}</h3>\n", escape(&title));
        text += &nodes.iter().map(|figures| named(figures)).collect::<String>();
    }
    let gaps = content::gaps(subject.runs.iter().flat_map(|run| &run.nodes));
    if !gaps.is_empty() {
        text += &format!("<h3>Not observed</h3>\n{}", list("", &gaps));
    }
    text
}

fn all_findings(subject: &Subject<'_>, panels: &[Panel<'_>]) -> String {
    let mut text = findings(&subject.assessment.findings);
    if text.is_empty() {
        text += &paragraph("", "None.");
    }
    let table = tables::comparisons(subject, panels);
    if !table.is_empty() {
        text += &format!(
            "<h3>Comparisons and their tests</h3>\n{}",
            maybe_folded("All comparisons", &table, MOST_ROWS)
        );
        text += "<p class=\"legend\">Effect: the difference in pooled standard deviations (Hedges' g). p: the probability of a \
                 difference as large if there were none (Welch's test on logarithms), corrected by Holm's method; below 0.05 a \
                 difference counts as significant.</p>\n";
    }
    text
}

fn proofs(subject: &Subject<'_>, panels: &[Panel<'_>]) -> String {
    let table = tables::proofs(subject, panels);
    if table.is_empty() {
        return String::new();
    }
    paragraph(
        "",
        "Bytes that the kernel counted for the devices under the volumes as a share of those that the load says to have moved, from the lowest to the highest of all runs.",
    ) + &table.html()
}

fn arms(subject: &Subject<'_>) -> String {
    let arms = tables::arms(subject);
    let arms = if arms.is_empty() { String::new() } else { arms.html() };
    arms + &tables::loads(subject).html()
}

fn runs(subject: &Subject<'_>) -> String {
    let table = tables::runs(subject);
    if table.is_empty() { paragraph("", "None.") } else { maybe_folded("All runs", &table, MOST_ROWS) }
}

fn repeat(subject: &Subject<'_>) -> String {
    let source = &subject.evaluation.provenance;
    let (words, command) = tables::again(subject);
    let mut text = paragraph("", &words);
    let commands = [source.command.as_str(), command.as_str()];
    for command in commands.iter().filter(|command| !command.is_empty()) {
        text += &format!("<pre><code>{}</code></pre>\n", escape(command));
    }
    text += &tables::provenance(subject).html();
    if !subject.evaluation.notes.is_empty() {
        text += "<h3>Notes on the document</h3>\n<dl>";
        for note in &subject.evaluation.notes {
            text += &format!("<dt>{}</dt><dd>{}</dd>\n", escape(&note.topic), escape(&note.text));
        }
        text += "</dl>";
    }
    if !source.document.is_empty() {
        text += &document(&source.document);
    }
    text
}

/// A table behind a line with its length when it is long.
fn maybe_folded(title: &str, table: &Table, most: usize) -> String {
    match table.length() {
        rows if rows <= most => table.html(),
        rows => {
            format!("<details><summary>{}: {rows} rows</summary>{}</details>\n", escape(title), table.html())
        }
    }
}
