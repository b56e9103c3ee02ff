//! The report of an evaluation as one self-contained HTML file.

use super::panel::{Panel, panels};
use super::{Subject, drawings, tables, tuning};
use crate::content;
use crate::figures::Figure;
use crate::html::parts::{
    charts, definitions, document, finding, findings, folded, list, maybe_folded, page, paragraph,
};
use crate::losses;
use crate::table::Forms as _;
use crate::text::utc;
use maud::{Markup, html};
use tidemark_judge::Finding;
use tidemark_judge::evaluation::Bottleneck;
use tidemark_measure::evaluation::{Arm, Load};

/// Rows of a table that is shown unfolded.
const MOST_ROWS: usize = 24;

/// Rows of a table of levels that is shown unfolded: four arms at ten levels.
const MOST_LEVELS: usize = 40;

/// Bytes of an answer from which on it is set smaller.
const LONG_ANSWER: usize = 360;

/// Bottlenecks of an arm under a load that are shown unfolded: the likeliest.
const MOST_BOTTLENECKS: usize = 1;

/// The report of an evaluation.
pub fn html(subject: &Subject<'_>) -> String {
    let panels = panels(subject.evaluation, subject.assessment);
    let sections = [
        ("verdict", "Summary", verdict(subject, &panels)),
        ("settings", "Settings", tuning::section(subject)),
        ("comparison", "Loads and arms", comparison(&panels, subject)),
        ("levels", "Levels and knees", levels(&panels)),
        ("latencies", "Response times", latencies(&panels, subject)),
        ("bottlenecks", "Bottlenecks", bottlenecks(subject)),
        ("nodes", "Nodes", nodes(&panels, subject)),
        ("losses", "Losses", lost(subject)),
        ("findings", "Findings", all_findings(subject, &panels)),
        ("proofs", "Proofs", proofs(subject, &panels)),
        ("arms", "Arms and loads", arms(subject)),
        ("runs", "All runs", runs(subject)),
        ("repeat", "How to reproduce", repeat(subject)),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|(_, _, content)| !content.0.is_empty()).collect();
    let links: Vec<(String, String)> =
        sections.iter().map(|(id, name, _)| ((*id).to_owned(), (*name).to_owned())).collect();
    let sections = html! {
        @for (id, name, content) in &sections {
            section id=(id) { h2 { (name) } "\n" (content) } "\n"
        }
    };
    let evaluation = subject.evaluation;
    page(&evaluation.name, &head(subject), &links, &sections, &evaluation.provenance.tidemark)
}

fn head(subject: &Subject<'_>) -> Markup {
    let evaluation = subject.evaluation;
    let number = if evaluation.id == 0 { String::new() } else { format!("Evaluation {} · ", evaluation.id) };
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let shape = [
        plural(evaluation.arms.len(), "arm"),
        plural(evaluation.loads.len(), "load"),
        plural(evaluation.repeats as usize, "repeat"),
        plural(subject.runs.len(), "run"),
    ];
    let started = utc(evaluation.started_unix_ns);
    html! {
        @if !evaluation.description.is_empty() { (paragraph("lede", &evaluation.description)) }
        p class="meta" { (number) (shape.join(", ")) @if !started.is_empty() { " · " (started) } } "\n"
    }
}

/// The answer, how far it can be trusted, and the numbers that it comes to: on paper, the first page.
fn verdict(subject: &Subject<'_>, panels: &[Panel<'_>]) -> Markup {
    let badges = tables::badges(subject);
    let is = |wanted| badges.iter().any(|(is_good, _)| *is_good == wanted);
    let class = if is(Some(false)) {
        "bad"
    } else if is(None) {
        "open"
    } else {
        "good"
    };
    let all = &subject.assessment.verdict;
    let (answer, more) = all.split_at(all.len().min(subject.assessment.headline));
    let is_long = answer.iter().map(String::len).sum::<usize>() > LONG_ANSWER;
    let reasons = subject.assessment.validity.sentences();
    html! {
        div class={ "verdict " (class) } {
            p class="word" {
                @for (is_good, word) in &badges {
                    @let (class, mark) = match is_good {
                        Some(true) => ("good", "✓"),
                        Some(false) => ("bad", "✕"),
                        None => ("open", "≈"),
                    };
                    span class=(class) { (mark) " " (word) } " "
                }
            }
            @for line in answer { (paragraph(if is_long { "answer long" } else { "answer" }, line)) }
        }
        "\n"
        @if !panels.is_empty() { (tables::answers(panels, subject).html()) }
        @if !more.is_empty() {
            details { summary { "The verdict in detail" } (list("", more)) } "\n"
        }
        @if !reasons.is_empty() {
            h3 { "Why the numbers are INVALID" } "\n"
            (list("reasons", &reasons.iter().map(|reason| format!("{reason}.")).collect::<Vec<_>>()))
        }
        @if !subject.evaluation.missing.is_empty() {
            h3 { "Missing measurements" } "\n"
            (list("reasons", &subject.evaluation.missing))
        }
    }
}

fn comparison(panels: &[Panel<'_>], subject: &Subject<'_>) -> Markup {
    if panels.is_empty() {
        return paragraph("alarm", "Nothing was measured.");
    }
    let normalised = drawings::normalised(panels);
    let operations = tables::operations(panels);
    let overall = tables::overall(subject);
    let at_once = match subject.evaluation.tuning {
        Some(_) => "",
        None => " (all of them hold at once with 95 %)",
    };
    html! {
        (tables::main(panels).html())
        p class="legend" {
            "Means over the repeats; ± is half of the 95 % confidence interval of a mean (Student's t) as a share of it; \
             × is the multiple of the baseline's, a ratio of geometric means: where repeats vary, it differs a little from the \
             quotient of the means beside it. Better and worse are what an interval of the multiple without 1 says"
            (at_once) "; “cannot tell below 4 %” means that a smaller difference would not be seen."
        }
        @if !overall.is_empty() { h3 { "In the mean of all cells" } "\n" (overall.html()) }
        @if !normalised.is_empty() {
            h3 { "Compared with the baseline" } "\n"
            (named(&normalised))
        }
        h3 { "Measurements" } "\n"
        (named(&drawings::raw(panels)))
        p class="legend" {
            "Whiskers are 95 % confidence intervals. A load with more than three levels is shown at the baseline's \
             knee, or at its highest level."
        }
        @if !operations.is_empty() { (maybe_folded("Operation by operation", &operations, MOST_ROWS)) }
        @if let Some(table) = tables::every_level(panels) {
            details { summary { "Arms at every level" } (table.html()) } "\n"
        }
    }
}

/// Figures whose names are ids.
fn named(figures: &[Figure]) -> Markup {
    charts("figure", figures)
}

fn levels(panels: &[Panel<'_>]) -> Markup {
    html! {
        @for panel in panels.iter().filter(|panel| panel.levels.len() > 1) {
            @let stories: Vec<String> =
                panel.knees().map(|knee| format!("{}: {}", knee.arm, knee.story.join(" "))).collect();
            h3 { (panel.title()) } "\n"
            @if let Some(level) = panel.record.and_then(|load| load.service_level.as_ref()) {
                (paragraph("legend", &format!("Service level: {}", level.text)))
            }
            @if !stories.is_empty() { (list("", &stories)) }
            (named(&drawings::curves(panel)))
            @if let Some(table) = tables::levels(panel) { (maybe_folded("All levels", &table, MOST_LEVELS)) }
        }
    }
}

fn latencies(panels: &[Panel<'_>], subject: &Subject<'_>) -> Markup {
    let drawn = |panel| -> Vec<Figure> {
        drawings::percentiles(panel).into_iter().chain(drawings::heat(panel, subject)).collect()
    };
    let panels: Vec<_> =
        panels.iter().map(|panel| (panel, drawn(panel))).filter(|(_, figures)| !figures.is_empty()).collect();
    html! {
        @for (panel, figures) in &panels { h3 { (panel.title()) } "\n" (named(figures)) }
        @if !panels.is_empty() {
            p class="legend" { "Percentiles are read from the merged histograms of all repeats." }
        }
    }
}

fn bottlenecks(subject: &Subject<'_>) -> Markup {
    let (limits, others) = (&subject.assessment.bottlenecks, &subject.assessment.not_limits);
    if limits.is_empty() && others.is_empty() {
        return match subject.runs.iter().any(|run| !run.nodes.is_empty()) {
            true => paragraph("", "No resource is shown to be the limit."),
            false => paragraph(
                "",
                "No node was observed: only the load generator itself can be named as the limit.",
            ),
        };
    }
    html! {
        @for arm in &subject.evaluation.arms {
            @for load in &subject.evaluation.loads {
                @let [limits, others] = [limits, others].map(|all| of(all, arm, load));
                @if !limits.is_empty() || !others.is_empty() {
                    @let (likely, rest) = limits.split_at(limits.len().min(MOST_BOTTLENECKS));
                    h3 { (arm.name) " under " (load.name) } "\n"
                    @if limits.is_empty() { (paragraph("", "No resource is shown to be the limit.")) }
                    div class="findings side" { @for one in likely { (finding(one)) } }
                    @if !rest.is_empty() { (folded("Less likely", rest)) }
                    @if !others.is_empty() { (folded("Not the limit, or not to be told", &others)) }
                }
            }
        }
    }
}

/// What is said of an arm under a load.
fn of<'a>(all: &'a [Bottleneck], arm: &Arm, load: &Load) -> Vec<&'a Finding> {
    let own = all.iter().filter(|one| one.arm == arm.name && one.load == load.name);
    own.map(|one| &one.finding).collect()
}

fn nodes(panels: &[Panel<'_>], subject: &Subject<'_>) -> Markup {
    let gaps = content::gaps(subject.runs.iter().flat_map(|run| &run.nodes));
    html! {
        @for (title, nodes) in drawings::observed(panels, subject) {
            details {
                summary { (title) ": " (nodes.len()) @if nodes.len() == 1 { " node" } @else { " nodes" } }
                @for figures in &nodes { (named(figures)) }
            }
            "\n"
        }
        @if !gaps.is_empty() { h3 { "Not observed" } (list("", &gaps)) }
    }
}

/// What became of pods and nodes while runs went on.
fn lost(subject: &Subject<'_>) -> Markup {
    let all: Vec<_> = losses::of_runs(subject.runs).collect();
    html! {
        @for (run, lost) in &all {
            h3 { "Run " (run) } "\n"
            (list("", &losses::service(lost)))
            (maybe_folded("Phases", &losses::table(lost), MOST_ROWS))
        }
        @if !all.is_empty() { (paragraph("legend", losses::LEGEND)) }
    }
}

fn all_findings(subject: &Subject<'_>, panels: &[Panel<'_>]) -> Markup {
    let all = &subject.assessment.findings;
    let table = tables::comparisons(subject, panels);
    let (method, hold) = match subject.evaluation.tuning {
        Some(_) => (
            "Ratios are geometric means of those of pairs, measured one beside the other (Student's test of pairs, on logarithms).",
            "the interval of what was searched for holds with 95 %, all others at once with 95 % (Bonferroni)",
        ),
        None => (
            "Ratios are of geometric means over the repeats (Welch's test on logarithms).",
            "all intervals of this page hold at once with 95 % (Bonferroni; half of the 5 % for the means over cells, half for single cells)",
        ),
    };
    html! {
        @if all.is_empty() { (paragraph("", "None.")) } @else { (findings(all)) }
        @if !table.is_empty() {
            h3 { "Comparisons and their tests" } "\n"
            (maybe_folded("All comparisons", &table, MOST_ROWS))
            p class="legend" {
                (method) " Intervals, p and results are one procedure: " (hold) ", and p is below 0.05 exactly where the interval leaves 1 \
                 out. Seen from: the smallest difference that four of five such evaluations would find."
            }
        }
    }
}

fn proofs(subject: &Subject<'_>, panels: &[Panel<'_>]) -> Markup {
    let table = tables::proofs(subject, panels);
    html! {
        @if !table.is_empty() {
            p {
                "Bytes that the kernel counted on the devices under the volumes, as a share of the bytes that the load \
                 reports: the lowest to the highest of all runs."
            }
            (table.html())
        }
    }
}

fn arms(subject: &Subject<'_>) -> Markup {
    let arms = tables::arms(subject);
    html! {
        @if !arms.is_empty() { (arms.html()) }
        (tables::loads(subject).html())
    }
}

fn runs(subject: &Subject<'_>) -> Markup {
    let table = tables::runs(subject);
    if table.is_empty() { paragraph("", "None.") } else { maybe_folded("All runs", &table, MOST_ROWS) }
}

fn repeat(subject: &Subject<'_>) -> Markup {
    let source = &subject.evaluation.provenance;
    let (words, command) = tables::again(subject);
    let commands = [source.command.as_str(), command.as_str()];
    html! {
        (paragraph("", &words))
        @for command in commands.iter().filter(|command| !command.is_empty()) {
            pre { code { (command) } } "\n"
        }
        (tables::provenance(subject).html())
        @if !subject.evaluation.notes.is_empty() {
            h3 { "Notes on the document" } "\n"
            (definitions(&subject.evaluation.notes))
        }
        @if !source.document.is_empty() { (document(&source.document)) }
    }
}
