//! The report of an evaluation as GitHub's Markdown: the same words and tables as in HTML, no figures.

use super::panel::panels;
use super::{Subject, tables, tuning};
use crate::losses;
use crate::markdown::{finding, nodes, phases};
use crate::table::{Forms as _, Table, fenced, markdown as plain};
use crate::text::utc;
use tidemark_judge::Loss;

/// The report of an evaluation.
pub fn markdown(subject: &Subject<'_>) -> String {
    let (evaluation, assessment) = (subject.evaluation, subject.assessment);
    let panels = panels(evaluation, assessment);
    let mut text = format!("# {}\n\n", plain(&evaluation.name));
    if !evaluation.description.is_empty() {
        text += &format!("{}\n\n", plain(&evaluation.description));
    }
    text += &verdict(subject);
    text += &tuning::markdown(subject);
    text += &section("Loads and arms", &tables::main(&panels));
    let operations = tables::operations(&panels);
    if !operations.is_empty() {
        text += &section("Operation by operation", &operations);
    }
    for (panel, table) in panels.iter().filter_map(|panel| Some((panel, tables::levels(panel)?))) {
        text += &section(&format!("Levels of {}", panel.title()), &table);
        for knee in panel.knees() {
            text += &format!("- **{}**: {}\n", plain(&knee.arm), plain(&knee.story.join(" ")));
        }
        text += "\n";
    }
    let told = [
        ("Bottlenecks", &assessment.bottlenecks),
        ("Not the limit, or not to be told", &assessment.not_limits),
    ];
    for (title, all) in told.into_iter().filter(|(_, all)| !all.is_empty()) {
        text += &format!("## {title}\n\n");
        for one in all {
            text +=
                &format!("{} under {}:\n\n{}\n", plain(&one.arm), plain(&one.load), finding(&one.finding));
        }
    }
    if !assessment.findings.is_empty() {
        text += "## Findings\n\n";
        text += &assessment.findings.iter().map(finding).collect::<String>();
        text += "\n";
    }
    let lost: Vec<_> = losses::of_runs(subject.runs).collect();
    if !lost.is_empty() {
        let told = |(run, lost): &(u64, Vec<Loss>)| format!("### Run {run}\n\n{}", phases(lost));
        let all: String = lost.iter().map(told).collect();
        text += &format!("## Losses\n\n{all}{}\n\n", plain(losses::LEGEND));
    }
    text += &nodes(subject.runs.iter().flat_map(|run| &run.nodes));
    text += &section("In the mean of all cells", &tables::overall(subject));
    text += &section("Comparisons and their tests", &tables::comparisons(subject, &panels));
    text += &section("Proofs", &tables::proofs(subject, &panels));
    text += &section("Arms", &tables::arms(subject));
    text += &section("Loads", &tables::loads(subject));
    text += &section("All runs", &tables::runs(subject));
    text + &repeat(subject)
}

fn verdict(subject: &Subject<'_>) -> String {
    let words = tables::badges(subject).into_iter().map(|(is_good, word)| match is_good {
        Some(true) => format!("✓ {word}"),
        Some(false) => format!("✕ {word}"),
        None => format!("≈ {word}"),
    });
    let mut text = format!("**{}**\n\n", words.collect::<Vec<_>>().join(" · "));
    text += &subject
        .assessment
        .verdict
        .iter()
        .map(|sentence| format!("{}\n\n", plain(sentence)))
        .collect::<String>();
    let reasons = subject.assessment.validity.sentences();
    for line in reasons.iter().chain(&subject.evaluation.missing) {
        text += &format!("- **{}**\n", plain(line));
    }
    text + "\n"
}

/// A heading with its table; nothing when the table is empty.
fn section(title: &str, table: &Table) -> String {
    if table.is_empty() { String::new() } else { format!("## {}\n\n{}", plain(title), table.markdown()) }
}

fn repeat(subject: &Subject<'_>) -> String {
    let source = &subject.evaluation.provenance;
    let (words, command) = tables::again(subject);
    let mut text = format!("## How to reproduce\n\n{}\n\n", plain(&words));
    let commands: Vec<&str> = [source.command.as_str(), command.as_str()]
        .into_iter()
        .filter(|command| !command.is_empty())
        .collect();
    text += &format!("{}\n", fenced("sh", &commands.join("\n")));
    text += &format!("Started {}.\n\n", utc(subject.evaluation.started_unix_ns));
    text += &tables::provenance(subject).markdown();
    for note in &subject.evaluation.notes {
        text += &format!("- **{}**: {}\n", plain(&note.topic), plain(&note.text));
    }
    if !source.document.is_empty() {
        text += &format!("\n{}", fenced("yaml", &source.document));
    }
    text
}
