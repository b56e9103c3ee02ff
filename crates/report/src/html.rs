//! One self-contained HTML file: no script, nothing fetched, readable on paper, in the dark, on a phone and
//! by a screen reader.

pub(crate) mod parts;

use crate::content;
use crate::drivers;
use crate::endpoints;
use crate::figures;
use crate::known;
use crate::losses;
use crate::queries;
use crate::sections;
use crate::sweep;
use crate::table::Forms as _;
use crate::text::{plain_name, utc};
use maud::{Markup, html};
use parts::{badge, card, charts, findings, list, maybe_folded, paragraph};
use tidemark_judge::sweep::{Sweep, sweeps};
use tidemark_judge::{Judgement, Severity, achievements};
use tidemark_measure::record::{Run, Stage, State, Work};
use tidemark_measure::units;

/// What all drawings together may weigh, in points of lines; a point takes about eight bytes.
const POINTS_IN_ALL: usize = 36_000;

/// Lines that the drawings of one operation consist of, bands and their edges included.
const LINES_PER_OPERATION: usize = 14;

/// Points of a line in the small charts of nodes.
const MOST_NODE_POINTS: usize = 160;

/// Main stages with sentences and cards in the summary; more of them are in its table only.
const MOST_CARDS: usize = 4;

/// Endpoints or instances of a work that are shown unfolded.
const MOST_ENDPOINTS: usize = 24;

/// Drivers whose table is shown unfolded.
const MOST_DRIVERS: usize = 20;

/// Stages whose proofs are shown unfolded.
const MOST_PROOFS: usize = 8;

/// The report of a run, with what was found about it.
pub fn html(run: &Run, judgement: &Judgement) -> String {
    let points = points_per_line(run);
    let sections = html! {
        (summary(run, judgement))
        @for (index, sweep) in sweeps(run).iter().enumerate() {
            (sweeping(run, index, sweep, judgement, points))
        }
        @for stage in run.stages.iter().filter(|stage| content::has_section(stage)) {
            section id=(anchor(stage)) class="stage" { (main_stage(run, stage, points)) } "\n"
        }
        (lost(run, points))
        (by_drivers(run, points))
        (nodes(run, points))
        (tables(run))
        @for section in &sections::of_run(run) { (sections::html(section, points)) }
        (proofs(run, judgement))
        (other_stages(run))
        (notes(run))
        (repeat(run))
    };
    parts::page(&run.name, &head(run), &contents(run), &sections, &run.provenance.tidemark)
}

fn head(run: &Run) -> Markup {
    let number = if run.id == 0 { String::new() } else { format!("Run {} · ", run.id) };
    let load_from = match (run.drivers.as_slice(), run.provenance.host.name.as_str()) {
        ([], "") => None,
        ([], host) => Some(format!("load from {host}")),
        ([driver], _) => Some(format!("load from the driver {}", driver.name)),
        (drivers, _) => Some(format!("load from {} drivers", drivers.len())),
    };
    let facts = [utc(run.started_unix_ns), format!("took {}", units::duration_ns(run.elapsed_ns))];
    let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).chain(load_from).collect();
    html! {
        @if !run.description.is_empty() { (paragraph("lede", &run.description)) }
        p class="meta" { (number) (facts.join(" · ")) } "\n"
        @for target in content::targets(run) { p class="meta" { "Target: " (target) } "\n" }
    }
}

/// Links to the sections: their ids and names.
fn contents(run: &Run) -> Vec<(String, String)> {
    let mut links = vec![("summary".to_string(), "Summary".to_string())];
    let sweeps = sweeps(run);
    let named = sweeps
        .iter()
        .enumerate()
        .map(|(index, sweep)| (sweep_anchor(index), format!("Sweep {}", sweep.name)));
    links.extend(named);
    for stage in run.stages.iter().filter(|stage| content::has_section(stage)) {
        links.push((anchor(stage), stage.id.clone()));
    }
    if !tidemark_judge::losses(run).is_empty() {
        links.push(("losses".into(), "Losses".into()));
    }
    if drivers::stages(run).next().is_some() {
        links.push(("drivers".into(), "Drivers".into()));
    }
    if !run.nodes.is_empty() {
        links.push(("nodes".into(), "Nodes".into()));
    }
    if queries::works(run).next().is_some() {
        links.push(("tables".into(), "Tables and queries".into()));
    }
    let own = sections::of_run(run).into_iter();
    links.extend(own.map(|section| (section.id.to_owned(), section.title.to_owned())));
    if run.stages.iter().any(|stage| stage.proof.is_some()) {
        links.push(("proof".into(), "Proof".into()));
    }
    links.extend(
        [("stages", "Other stages"), ("notes", "Notes"), ("repeat", "How to reproduce")]
            .map(|(id, name)| (id.into(), name.into())),
    );
    links
}

fn sweep_anchor(index: usize) -> String {
    format!("sweep-{}", index + 1)
}

fn anchor(stage: &Stage) -> String {
    format!("stage-{}", plain_name(&stage.id))
}

/// The run in plain words: verdict, what was achieved, what was found.
fn summary(run: &Run, judgement: &Judgement) -> Markup {
    let main: Vec<&Stage> = run.stages.iter().filter(|stage| content::has_section(stage)).collect();
    html! {
        section id="summary" {
            h2 { "Summary" } "\n"
            (verdict(run, judgement))
            @if main.len() <= MOST_CARDS {
                @for sentence in achievements(run) { (paragraph("say", &sentence)) }
                @for stage in &main { (card(stage)) }
            }
            @if main.len() > 1 || main.iter().any(|stage| stage.works.len() > 1) {
                (content::at_a_glance(run).html())
            }
            (findings(&judgement.findings))
        }
        "\n"
    }
}

/// The verdict in a box that is red as soon as anything in it is bad.
fn verdict(run: &Run, judgement: &Judgement) -> Markup {
    let verdict = content::verdict(run, judgement);
    let class = if verdict.words.iter().any(|(is_bad, _)| *is_bad) { "bad" } else { "good" };
    let warnings = judgement.findings.iter().filter(|finding| finding.severity == Severity::Warning).count();
    html! {
        div class={ "verdict " (class) } {
            p class="word" {
                @for (is_bad, word) in &verdict.words {
                    @let (class, mark) = if *is_bad { ("bad", "✕") } else { ("good", "✓") };
                    span class=(class) { (mark) " " (word) } " "
                }
            }
            @if !verdict.reasons.is_empty() {
                (list("reasons", &verdict.reasons))
            } @else if class == "good" {
                @match warnings {
                    0 => (paragraph("", "The checks found no problem with these numbers.")),
                    1 => (paragraph("", "1 warning, see below.")),
                    _ => (paragraph("", &format!("{warnings} warnings, see below."))),
                }
            }
        }
        "\n"
    }
}

/// A sweep: its figures, all its points, and its stages one by one.
fn sweeping(run: &Run, index: usize, sweep: &Sweep<'_>, judgement: &Judgement, points: usize) -> Markup {
    let id = sweep_anchor(index);
    let drawn = figures::of_sweep(sweep);
    let stages: Vec<&Stage> = sweep.points.iter().flat_map(|point| point.stages.iter().copied()).collect();
    html! {
        section id=(id) class="stage" {
            h2 { "Sweep " (sweep.name) } "\n"
            (paragraph("", &sweep::about(sweep)))
            @if !drawn.is_empty() {
                (charts(&id, &drawn))
                p class="legend" {
                    "Dots are means over the repeats; bars span the lowest to the highest of them."
                }
            }
            (sweep::points(sweep, judgement).html())
            details class="each" {
                summary { "Stage by stage: " (stages.len()) }
                @for stage in stages { div id=(anchor(stage)) { (main_stage(run, stage, points)) } "\n" }
            }
        }
        "\n"
    }
}

/// What was lost and came back, on Kubernetes.
fn lost(run: &Run, points: usize) -> Markup {
    let found = tidemark_judge::losses(run);
    let stages = run.stages.iter().filter(|stage| content::is_main(stage));
    let drawn = |stage: &Stage| {
        let figure = figures::throughput_with_losses(stage, &found, points)?;
        Some(charts(&format!("losses-{}", anchor(stage)), &[figure]))
    };
    html! {
        @if !found.is_empty() {
            section id="losses" class="stage" {
                h2 { "Losses" } "\n"
                @for sentence in losses::service(&found) { p { (sentence) } "\n" }
                @for figure in stages.filter_map(drawn) { (figure) }
                (maybe_folded("Phases", &losses::table(&found), MOST_DRIVERS))
                (paragraph("legend", losses::LEGEND))
            }
            "\n"
        }
    }
}

/// What each driver did, in every stage that measures; folded when there is much of it.
fn by_drivers(run: &Run, points: usize) -> Markup {
    let stages: Vec<&Stage> = drivers::stages(run).collect();
    let told = |stage| {
        let table = drivers::table(run, stage);
        let drawn = figures::throughput_of_drivers(run, stage, points);
        html! {
            (maybe_folded("Driver by driver", &table, MOST_DRIVERS))
            @if let Some(figure) = drawn { (charts(&format!("drivers-{}", anchor(stage)), &[figure])) }
        }
    };
    html! {
        @if !stages.is_empty() {
            section id="drivers" class="stage" {
                h2 { "Drivers" } "\n"
                @for stage in &stages {
                    @match stages.len() {
                        1 => (told(stage)),
                        2..=MOST_CARDS => { h3 { (stage.id) } (told(stage)) },
                        _ => details { summary { (stage.id) } (told(stage)) },
                    }
                }
                (paragraph("legend", drivers::LEGEND))
            }
            "\n"
        }
    }
}

/// What the nodes did: during the only main stage, or from the run's start to its end.
fn nodes(run: &Run, points: usize) -> Markup {
    let mut main = run.stages.iter().enumerate().filter(|(_, stage)| content::is_main(stage));
    let only = match (main.next(), main.next()) {
        (Some((index, _)), None) => Some(index),
        _ => None,
    };
    let gaps = content::gaps(run.nodes.iter());
    html! {
        @if !run.nodes.is_empty() {
            section id="nodes" {
                h2 { "Nodes" } "\n"
                (charts("observed", &figures::timelines(run, only, points.min(MOST_NODE_POINTS))))
                @if !gaps.is_empty() { h3 { "Not observed" } (list("", &gaps)) }
            }
            "\n"
        }
    }
}

/// Tables that were made, and the queries on them.
fn tables(run: &Run) -> Markup {
    let (ran, made, sizes, caches) =
        (queries::queries(run), queries::made(run), queries::sizes(run), queries::caches(run));
    let rankings = queries::rankings(run);
    html! {
        @if queries::works(run).next().is_some() {
            section id="tables" {
                h2 { "Tables and queries" } "\n"
                @for stage in &run.stages {
                    @for (work, figure) in figures::of_queries(stage) {
                        h3 { "Queries over time: " (stage.id) @if stage.works.len() > 1 { ", " (work) } } "\n"
                        (parts::wide_chart(&format!("{}-{work}", anchor(stage)), &figure))
                    }
                }
                @if !ran.is_empty() {
                    h3 { "Queries" } (ran.html()) (paragraph("legend", queries::LEGEND))
                }
                @let explained = queries::explained(run);
                @if !explained.is_empty() {
                    h3 { "The longest queries, and what was seen of them" }
                    ul { @for sentence in &explained { li { (sentence) } } }
                }
                @if let Some((under, legend)) = queries::beneath(run) {
                    h3 { "What nodes did under each query" } (under.html()) (paragraph("legend", &legend))
                }
                @if !rankings.is_empty() {
                    h3 { "Rankings by bytes read, compared" }
                    (rankings.html()) (paragraph("legend", queries::RANKINGS))
                }
                @if !sizes.is_empty() { h3 { "Reads by size" } (sizes.html()) }
                @if !caches.is_empty() { h3 { "Memory that may have held data" } (caches.html()) }
                @if !made.is_empty() {
                    h3 { "Tables made" }
                    @for sentence in queries::making(run) { (paragraph("", &sentence)) }
                    (made.html())
                }
            }
            "\n"
        }
    }
}

/// What the devices saw of the load; folded when there is much of it.
fn proofs(run: &Run, judgement: &Judgement) -> Markup {
    let table = sweep::proofs(run, judgement);
    html! {
        @if !table.is_empty() {
            section id="proof" {
                h2 { "Proof" } "\n"
                p {
                    "Bytes that the load reports, compared with the kernel's counters of the devices under its volumes, \
                     from the start to the end of each stage."
                }
                @for note in sweep::proof_notes(run) { (paragraph("", &note)) }
                (maybe_folded("Stage by stage", &table, MOST_PROOFS))
            }
            "\n"
        }
    }
}

/// A stage that measures: every table and figure that it has.
fn main_stage(run: &Run, stage: &Stage, points: usize) -> Markup {
    html! {
        h2 { (stage.id) " " (badge(stage.state)) } "\n"
        @if stage.state != State::Completed {
            (paragraph("alarm", &format!("{}.", content::outcome(stage))))
        }
        h3 { "General report" } "\n"
        (content::general_report(stage).html())
        p class="legend" {
            "Throughput and bandwidth count what succeeded within the window, divided by its length. \
             Response times are those of successful operations; failures are listed below."
        }
        @let known = known::table(run, stage);
        @if !known.is_empty() {
            h3 { "Figures of the workload" } "\n"
            (known.html())
        }
        h3 { "Response times" } "\n"
        (percentiles(stage))
        @for work in endpoints::works(stage) { (by_endpoint(stage, work)) }
        (drawings(stage, points))
        h3 { "Failures" } "\n"
        (failures(stage))
        h3 { "Course of the load" } "\n"
        @for work in &stage.works { (content::conduct(stage, work).html()) }
    }
}

/// What a work did at each endpoint or on each instance: the sum is the work's own.
fn by_endpoint(stage: &Stage, work: &Work) -> Markup {
    html! {
        h3 { (endpoints::heading(work)) @if stage.works.len() > 1 { ": " (work.name) } } "\n"
        (maybe_folded("One by one", &endpoints::table(stage, work), MOST_ENDPOINTS))
        @if let Some(words) = endpoints::shared(stage, work) { (paragraph("", &words)) }
    }
}

fn percentiles(stage: &Stage) -> Markup {
    let table = content::percentiles(stage);
    if table.is_empty() {
        let (tone, words) = content::no_percentiles(stage);
        return paragraph(if tone == crate::table::Tone::Bad { "alarm" } else { "" }, words);
    }
    html! {
        (table.html())
        p class="legend" {
            "p99: 99 % of the operations took at most this long. A dash means that there are too few operations to tell \
             the percentile from the maximum."
        }
    }
}

fn drawings(stage: &Stage, points: usize) -> Markup {
    html! {
        @for (number, work) in stage.works.iter().enumerate() {
            @let drawn = figures::all(work, points);
            @if !drawn.is_empty() {
                h3 { "Charts" @if stage.works.len() > 1 { ": " (work.name) } }
                (charts(&format!("{}-{number}", anchor(stage)), &drawn))
            }
        }
    }
}

fn failures(stage: &Stage) -> Markup {
    let classes = content::failures(stage);
    if classes.is_empty() {
        return paragraph("", "No operation failed.");
    }
    let times = content::failure_times(stage);
    let examples = content::examples(stage);
    html! {
        (classes.html())
        @if !times.is_empty() { h4 { "Duration of failed operations, from due to done" } (times.html()) }
        @if !examples.is_empty() { h4 { "First examples, verbatim" } (list("words", &examples)) }
    }
}

fn other_stages(run: &Run) -> Markup {
    let table = content::other_stages(run);
    let troubled = run.stages.iter().filter(|stage| !content::is_main(stage) && content::has_trouble(stage));
    html! {
        section id="stages" {
            h2 { "Other stages" } "\n"
            @if table.is_empty() { (paragraph("", "None.")) } @else { (table.html()) }
            @for stage in troubled {
                h3 { (stage.id) }
                (paragraph("alarm", &format!("{}.", content::outcome(stage))))
                @if stage.works.iter().any(|work| content::failed(work) > 0) { (failures(stage)) }
            }
        }
        "\n"
    }
}

fn notes(run: &Run) -> Markup {
    html! {
        section id="notes" {
            h2 { "Compatibility notes" } "\n"
            @if run.notes.is_empty() {
                p { "None: Tidemark carries the document out exactly as it is written." }
            } @else {
                (parts::definitions(&run.notes))
            }
        }
        "\n"
    }
}

/// How to run it again, and what made it.
fn repeat(run: &Run) -> Markup {
    let source = &run.provenance;
    html! {
        section id="repeat" {
            h2 { "How to reproduce" } "\n"
            (paragraph("", &repeat_sentence(run)))
            @if !source.command.is_empty() { pre { code { (source.command) } } "\n" }
            (content::provenance(run).html())
            @if !source.document.is_empty() { (parts::document(&source.document)) }
        }
        "\n"
    }
}

pub(crate) fn repeat_sentence(run: &Run) -> String {
    let document = match run.provenance.path.as_str() {
        "" => "This command".into(),
        path => format!("Save the document below as {path} and fill in its secrets; this command then"),
    };
    format!(
        "{document} repeats the run. The same document with seed {} makes the same choices: objects, sizes, order and mix.",
        run.provenance.seed
    )
}

/// How finely lines may be drawn, so that the file stays small however many there are.
fn points_per_line(run: &Run) -> usize {
    let main = run.stages.iter().filter(|stage| content::is_main(stage));
    let operations: usize = main.map(|stage| content::operations(stage).count()).sum();
    (POINTS_IN_ALL / (operations.max(1) * LINES_PER_OPERATION)).clamp(40, figures::MOST_POINTS)
}
