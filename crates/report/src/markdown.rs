//! The report as Markdown, for a pull request or a wiki: the same words and tables as in HTML, no figures.

use crate::content;
use crate::drivers;
use crate::endpoints;
use crate::html::repeat_sentence;
use crate::known;
use crate::losses;
use crate::queries;
use crate::sections;
use crate::sweep;
use crate::table::{Forms as _, Table, fenced, markdown as plain};
use crate::text::utc;
use tidemark_judge::sweep::sweeps;
use tidemark_judge::{Finding, Judgement, Loss, Severity, achievements};
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Run, Stage};
use tidemark_measure::units;

/// The report of a run, with what was found about it, in GitHub's Markdown.
pub fn markdown(run: &Run, judgement: &Judgement) -> String {
    let mut text = format!("# {}\n\n", plain(&run.name));
    if !run.description.is_empty() {
        text += &format!("{}\n\n", plain(&run.description));
    }
    let targets = plain(&content::targets(run).join("; "));
    text +=
        &format!("{}, took {}. {targets}\n\n", utc(run.started_unix_ns), units::duration_ns(run.elapsed_ns));
    text += &summary(run, judgement);
    for sweep in &sweeps(run) {
        text += &format!("## Sweep {}\n\n{}\n\n", plain(sweep.name), plain(&sweep::about(sweep)));
        text += &sweep::points(sweep, judgement).markdown();
        text += "The HTML, CSV and JSON reports have each of its stages.\n\n";
    }
    for stage in run.stages.iter().filter(|stage| content::has_section(stage)) {
        text += &main_stage(run, stage);
    }
    let lost = tidemark_judge::losses(run);
    if !lost.is_empty() {
        text += &format!("## Losses\n\n{}{}\n\n", phases(&lost), plain(losses::LEGEND));
    }
    text += &nodes(run.nodes.iter());
    if drivers::stages(run).next().is_some() {
        let told = |stage| drivers::table(run, stage).markdown();
        let tables: String = drivers::stages(run).map(told).collect();
        text += &format!("## Drivers\n\n{tables}{}\n\n", plain(drivers::LEGEND));
    }
    if queries::works(run).next().is_some() {
        text += "## Tables and queries\n\n";
        text += &table(&queries::queries(run), "");
        text += &format!("{}\n\n", plain(queries::LEGEND));
        text += &queries::explained(run).iter().map(|one| format!("- {}\n", plain(one))).collect::<String>();
        text += "\n";
        if let Some((under, legend)) = queries::beneath(run) {
            text +=
                &format!("### What nodes did under each query\n\n{}{}\n\n", under.markdown(), plain(&legend));
        }
        let rankings = queries::rankings(run);
        if !rankings.is_empty() {
            text += &format!("{}{}\n\n", rankings.markdown(), plain(queries::RANKINGS));
        }
        for more in [queries::sizes(run), queries::caches(run)] {
            text += &table(&more, "");
        }
        text += &queries::making(run).iter().map(|one| format!("{}\n\n", plain(one))).collect::<String>();
        text += &table(&queries::made(run), "");
    }
    text += &sections::of_run(run).iter().map(sections::markdown).collect::<String>();
    let proofs = sweep::proofs(run, judgement);
    if !proofs.is_empty() {
        text += "## Proof\n\n";
        text +=
            &sweep::proof_notes(run).iter().map(|note| format!("{}\n\n", plain(note))).collect::<String>();
        text += &proofs.markdown();
    }
    text += "## Other stages\n\n";
    text += &table(&content::other_stages(run), "None.");
    for stage in run.stages.iter().filter(|stage| !content::is_main(stage) && content::has_trouble(stage)) {
        text += &format!(
            "### {}\n\n**{}.**\n\n{}",
            plain(&stage.id),
            plain(&content::outcome(stage)),
            failures(stage)
        );
    }
    text += "## Compatibility notes\n\n";
    for note in &run.notes {
        text += &format!("- **{}**: {}\n", plain(&note.topic), plain(&note.text));
    }
    text += if run.notes.is_empty() { "None.\n\n" } else { "\n" };
    text + &repeat(run)
}

/// What the load saw of losses, and their phases.
pub(crate) fn phases(lost: &[Loss]) -> String {
    let service: String = losses::service(lost).iter().map(|one| format!("- {}\n", plain(one))).collect();
    format!("{service}\n{}", losses::table(lost).markdown())
}

/// Which nodes were observed, and what was not. Nothing of a run that had no node but its own.
pub(crate) fn nodes<'a>(nodes: impl Iterator<Item = &'a Node> + Clone) -> String {
    let gaps = content::gaps(nodes.clone());
    let observed = content::observed(nodes);
    if observed.len() < 2 && gaps.is_empty() {
        return String::new();
    }
    let observed = if observed.is_empty() { "none".to_owned() } else { observed.join(", ") };
    let mut text = format!("## Nodes\n\nObserved: {}.\n\n", plain(&observed));
    if !gaps.is_empty() {
        let told: String = gaps.iter().map(|gap| format!("- {}\n", plain(gap))).collect();
        text += &format!("Not observed:\n\n{told}\n");
    }
    text
}

fn summary(run: &Run, judgement: &Judgement) -> String {
    let mut text = String::from("## Summary\n\n");
    let verdict = content::verdict(run, judgement);
    let words =
        verdict.words.iter().map(|(is_bad, word)| format!("{} {word}", if *is_bad { "✕" } else { "✓" }));
    text += &format!("**{}**\n\n", words.collect::<Vec<_>>().join(" · "));
    for reason in &verdict.reasons {
        text += &format!("- **{}**\n", plain(reason));
    }
    text += if verdict.reasons.is_empty() { "" } else { "\n" };
    for sentence in achievements(run) {
        text += &format!("{}\n\n", plain(&sentence));
    }
    let instead = if sweeps(run).is_empty() { "Nothing was measured." } else { "" };
    text += &table(&content::at_a_glance(run), instead);
    text += &judgement.findings.iter().map(finding).collect::<String>();
    text + "\n"
}

/// A finding with its evidence; one that is good is a line.
pub(crate) fn finding(finding: &Finding) -> String {
    let detail = finding.detail();
    let mut text = format!(
        "- **{}** ({}, {}){}{}\n",
        plain(&content::capital(&finding.title())),
        finding.severity.name(),
        plain(&finding.place()),
        if detail.is_empty() { "" } else { ". " },
        plain(&detail)
    );
    if finding.severity > Severity::Good {
        text += &finding.evidence().iter().map(|line| format!("  - {}\n", plain(line))).collect::<String>();
    }
    text
}

pub(crate) fn main_stage(run: &Run, stage: &Stage) -> String {
    let mut text = format!("## {} ({})\n\n", plain(&stage.id), stage.state.name());
    text += "### General report\n\n";
    text += &table(&content::general_report(stage), "There were no operations.");
    text += &table(&known::table(run, stage), "");
    text += "### Response times\n\n";
    text += &table(&content::percentiles(stage), content::no_percentiles(stage).1);
    for work in endpoints::works(stage) {
        text += &table(&endpoints::table(stage, work), "");
        text +=
            &endpoints::shared(stage, work).map(|words| format!("{}\n\n", plain(&words))).unwrap_or_default();
    }
    text += "### Failures\n\n";
    text += &failures(stage);
    text += "### Course of the load\n\n";
    text + &stage.works.iter().map(|work| content::conduct(stage, work).markdown()).collect::<String>()
}

fn failures(stage: &Stage) -> String {
    let mut text = table(&content::failures(stage), "No operation failed.");
    text += &table(&content::failure_times(stage), "");
    let examples = content::examples(stage);
    if !examples.is_empty() {
        text += &examples.iter().map(|example| format!("- {}\n", plain(example))).collect::<String>();
        text += "\n";
    }
    text
}

fn repeat(run: &Run) -> String {
    let source = &run.provenance;
    let mut text = format!("## How to reproduce\n\n{}\n\n", plain(&repeat_sentence(run)));
    if !source.command.is_empty() {
        text += &format!("{}\n", fenced("sh", &source.command));
    }
    text += &content::provenance(run).markdown();
    if !source.document.is_empty() {
        let language = if source.document.trim_start().starts_with('<') { "xml" } else { "yaml" };
        text += &fenced(language, &source.document);
    }
    text
}

fn table(table: &Table, instead: &str) -> String {
    match (table.is_empty(), instead) {
        (false, _) => table.markdown(),
        (true, "") => String::new(),
        (true, words) => format!("{words}\n\n"),
    }
}
