//! One self-contained HTML file: no script, nothing fetched, readable on paper, in the dark, on a phone and
//! by a screen reader.

pub(crate) mod parts;

use crate::content;
use crate::drivers;
use crate::figures;
use crate::sweep;
use crate::text::{escape, plain_name, utc};
use parts::{badge, card, charts, findings, list, paragraph};
use tidemark_judge::sweep::{Sweep, sweeps};
use tidemark_judge::{Judgement, Severity, achievements};
use tidemark_measure::record::{Run, Stage, State};
use tidemark_measure::units;

/// What all drawings together may weigh, in points of lines; a point takes about eight bytes.
const POINTS_IN_ALL: usize = 36_000;

/// Lines that the drawings of one operation consist of, bands and their edges included.
const LINES_PER_OPERATION: usize = 14;

/// Points of a line in the small charts of nodes.
const MOST_NODE_POINTS: usize = 160;

/// Main stages with sentences and cards in the summary; more of them are in its table only.
const MOST_CARDS: usize = 4;

/// Drivers whose table is shown unfolded.
const MOST_DRIVERS: usize = 20;

/// Stages whose proofs are shown unfolded.
const MOST_PROOFS: usize = 8;

/// The report of a run, with what was found about it.
pub fn html(run: &Run, judgement: &Judgement) -> String {
    let mut page = head(run);
    page += &summary(run, judgement);
    let points = points_per_line(run);
    for (index, sweep) in sweeps(run).iter().enumerate() {
        page += &sweeping(index, sweep, judgement, points);
    }
    for stage in run.stages.iter().filter(|stage| content::has_section(stage)) {
        page += &format!(
            "<section id=\"{}\" class=\"stage\">{}</section>\n",
            anchor(stage),
            main_stage(stage, points)
        );
    }
    page += &by_drivers(run, points);
    page += &nodes(run, points);
    page += &proofs(run, judgement);
    page += &other_stages(run);
    page += &notes(run);
    page += &repeat(run);
    page + &parts::bottom(&run.provenance.tidemark)
}

fn head(run: &Run) -> String {
    let number = if run.id == 0 { String::new() } else { format!("Run {} · ", run.id) };
    let load_from = match (run.drivers.as_slice(), run.provenance.host.as_str()) {
        ([], "") => None,
        ([], host) => Some(format!("load from {host}")),
        ([driver], _) => Some(format!("load from the driver {}", driver.name)),
        (drivers, _) => Some(format!("load from {} drivers", drivers.len())),
    };
    let facts = [utc(run.started_unix_ns), format!("took {}", units::duration_ns(run.elapsed_ns))];
    let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).chain(load_from).collect();
    let mut page = parts::top(&run.name);
    if !run.description.is_empty() {
        page += &format!("<p class=\"lede\">{}</p>\n", escape(&run.description));
    }
    page += &format!("<p class=\"meta\">{number}{}</p>\n", escape(&facts.join(" · ")));
    for target in &run.provenance.targets {
        page += &format!("<p class=\"meta\">Target: {}</p>\n", escape(target));
    }
    page + &contents(run) + "</header>\n<main>\n"
}

/// Links to the sections.
fn contents(run: &Run) -> String {
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
    if drivers::stages(run).next().is_some() {
        links.push(("drivers".into(), "Drivers".into()));
    }
    if !run.nodes.is_empty() {
        links.push(("nodes".into(), "Nodes".into()));
    }
    if run.stages.iter().any(|stage| stage.proof.is_some()) {
        links.push(("proof".into(), "Proof".into()));
    }
    links.extend(
        [("stages", "Other stages"), ("notes", "Notes"), ("repeat", "Repeat it")]
            .map(|(id, name)| (id.into(), name.into())),
    );
    parts::contents(&links)
}

fn sweep_anchor(index: usize) -> String {
    format!("sweep-{}", index + 1)
}

fn anchor(stage: &Stage) -> String {
    format!("stage-{}", plain_name(&stage.id))
}

/// The run in plain words: verdict, what was achieved, what was found.
fn summary(run: &Run, judgement: &Judgement) -> String {
    let mut text = String::from("<section id=\"summary\"><h2>Summary</h2>\n");
    text += &verdict(run, judgement);
    let main: Vec<&Stage> = run.stages.iter().filter(|stage| content::has_section(stage)).collect();
    if main.len() <= MOST_CARDS {
        text += &achievements(run).iter().map(|sentence| paragraph("say", sentence)).collect::<String>();
        text += &main.iter().map(|stage| card(stage)).collect::<String>();
    }
    if main.len() > 1 || main.iter().any(|stage| stage.works.len() > 1) {
        text += &content::at_a_glance(run).html();
    }
    text += &findings(&judgement.findings);
    text + "</section>\n"
}

/// The verdict in a box that is red as soon as anything in it is bad.
fn verdict(run: &Run, judgement: &Judgement) -> String {
    let verdict = content::verdict(run, judgement);
    let class = if verdict.words.iter().any(|(is_bad, _)| *is_bad) { "bad" } else { "good" };
    let words: String = verdict
        .words
        .iter()
        .map(|(is_bad, word)| {
            let (class, mark) = if *is_bad { ("bad", "✕") } else { ("good", "✓") };
            format!("<span class=\"{class}\">{mark} {word}</span> ")
        })
        .collect();
    let warnings = judgement.findings.iter().filter(|finding| finding.severity == Severity::Warning).count();
    let reasons = match (verdict.reasons.is_empty(), class, warnings) {
        (false, _, _) => list("reasons", &verdict.reasons),
        (true, "bad", _) => String::new(),
        (true, _, 0) => paragraph("", "The checks found no problem with these numbers."),
        (true, _, 1) => paragraph("", "1 warning, see below."),
        (true, _, warnings) => paragraph("", &format!("{warnings} warnings, see below.")),
    };
    format!("<div class=\"verdict {class}\"><p class=\"word\">{words}</p>{reasons}</div>\n")
}

/// A sweep: its figures, all its points, and its stages one by one.
fn sweeping(index: usize, sweep: &Sweep<'_>, judgement: &Judgement, points: usize) -> String {
    let id = sweep_anchor(index);
    let mut text = format!("<section id=\"{id}\" class=\"stage\"><h2>Sweep {}</h2>\n", escape(sweep.name));
    text += &paragraph("", &sweep::about(sweep));
    let drawn = figures::of_sweep(sweep);
    if !drawn.is_empty() {
        text += &charts(&id, &drawn);
        text += "<p class=\"legend\">Dots are means over the repeats, bars reach from the lowest to the highest of them.</p>\n";
    }
    text += &sweep::points(sweep, judgement).html();
    let stages: Vec<&Stage> = sweep.points.iter().flat_map(|point| point.stages.iter().copied()).collect();
    let each = stages
        .iter()
        .map(|stage| format!("<div id=\"{}\">{}</div>\n", anchor(stage), main_stage(stage, points)));
    text += &format!(
        "<details class=\"each\"><summary>Its stages one by one: {}</summary>{}</details>\n",
        stages.len(),
        each.collect::<String>()
    );
    text + "</section>\n"
}

/// What each driver did, in every stage that measures; folded when there is much of it.
fn by_drivers(run: &Run, points: usize) -> String {
    let stages: Vec<&Stage> = drivers::stages(run).collect();
    if stages.is_empty() {
        return String::new();
    }
    let mut text = String::from("<section id=\"drivers\" class=\"stage\"><h2>Drivers</h2>\n");
    for stage in &stages {
        let table = drivers::table(run, stage);
        let fold =
            |what: String, inner: String| format!("<details><summary>{what}</summary>{inner}</details>\n");
        let told = match table.length() {
            0..=MOST_DRIVERS => table.html(),
            length => fold(format!("Driver by driver: {length}"), table.html()),
        };
        let drawn = figures::throughput_of_drivers(run, stage, points);
        let charts =
            drawn.map(|figure| charts(&format!("drivers-{}", anchor(stage)), &[figure])).unwrap_or_default();
        text += &match stages.len() {
            1 => told + &charts,
            2..=MOST_CARDS => format!("<h3>{}</h3>\n{told}{charts}", escape(&stage.id)),
            _ => fold(escape(&stage.id), told + &charts),
        };
    }
    text + &paragraph("legend", drivers::LEGEND) + "</section>\n"
}

/// What the nodes did: during the only main stage, or from the run's start to its end.
fn nodes(run: &Run, points: usize) -> String {
    if run.nodes.is_empty() {
        return String::new();
    }
    let mut main = run.stages.iter().enumerate().filter(|(_, stage)| content::is_main(stage));
    let only = match (main.next(), main.next()) {
        (Some((index, _)), None) => Some(index),
        _ => None,
    };
    let mut text = String::from("<section id=\"nodes\"><h2>Nodes</h2>\n");
    text += &charts("observed", &figures::timelines(run, only, points.min(MOST_NODE_POINTS)));
    let gaps = content::gaps(run.nodes.iter());
    if !gaps.is_empty() {
        text += &format!("<h3>Not observed</h3>\n{}", list("", &gaps));
    }
    text + "</section>\n"
}

/// What the devices saw of the load; folded when there is much of it.
fn proofs(run: &Run, judgement: &Judgement) -> String {
    let table = sweep::proofs(run, judgement);
    if table.is_empty() {
        return String::new();
    }
    let mut text = String::from("<section id=\"proof\"><h2>Proof</h2>\n");
    text += &paragraph(
        "",
        "Bytes that the load reports, compared with the kernel's counters of the devices under its volumes, from the start to the end of each stage.",
    );
    text += &sweep::proof_notes(run).iter().map(|note| paragraph("", note)).collect::<String>();
    text += &match table.length() {
        0..=MOST_PROOFS => table.html(),
        length => format!("<details><summary>Stage by stage: {length}</summary>{}</details>\n", table.html()),
    };
    text + "</section>\n"
}

/// A stage that measures: every table and figure that it has.
fn main_stage(stage: &Stage, points: usize) -> String {
    let mut text = format!("<h2>{} {}</h2>\n", escape(&stage.id), badge(stage.state));
    if stage.state != State::Completed {
        text += &paragraph("alarm", &format!("{}.", content::outcome(stage)));
    }
    text += "<h3>General report</h3>\n";
    text += &content::general_report(stage).html();
    text += "<p class=\"legend\">Throughput and bandwidth count what succeeded within the window, divided by its length. \
             Response times are those of successful operations; failures are listed below.</p>\n";
    text += "<h3>Response times</h3>\n";
    text += &percentiles(stage);
    text += &drawings(stage, points);
    text += "<h3>Failures</h3>\n";
    text += &failures(stage);
    text += "<h3>Course of the load</h3>\n";
    text + &stage.works.iter().map(|work| content::conduct(stage, work).html()).collect::<String>()
}

fn percentiles(stage: &Stage) -> String {
    let table = content::percentiles(stage);
    if table.is_empty() {
        let said = content::operations(stage)
            .any(|(work, operation)| operation.throughput(work.window_seconds()) > 0.0);
        return match said {
            true => paragraph("", "The tool that measured it reports no percentiles."),
            false => paragraph("alarm", "No operation succeeded: there are no response times."),
        };
    }
    table.html()
        + "<p class=\"legend\">p99: 99 % of the operations took at most this long. A dash stands where there are too \
             few operations to tell a percentile from the maximum.</p>\n"
}

fn drawings(stage: &Stage, points: usize) -> String {
    let mut text = String::new();
    for (number, work) in stage.works.iter().enumerate() {
        let drawn = figures::all(work, points);
        if drawn.is_empty() {
            continue;
        }
        let title = if stage.works.len() > 1 { format!(": {}", escape(&work.name)) } else { String::new() };
        text +=
            &format!("<h3>Charts{title}</h3>\n{}", charts(&format!("{}-{number}", anchor(stage)), &drawn));
    }
    text
}

fn failures(stage: &Stage) -> String {
    let classes = content::failures(stage);
    if classes.is_empty() {
        return paragraph("", "No operation failed.");
    }
    let times = content::failure_times(stage);
    let times = match times.is_empty() {
        true => String::new(),
        false => format!("<h4>How long they took, from due to done</h4>{}", times.html()),
    };
    let examples = content::examples(stage);
    let examples = match examples.is_empty() {
        true => String::new(),
        false => format!("<h4>The first of them, word for word</h4>{}", list("words", &examples)),
    };
    classes.html() + &times + &examples
}

fn other_stages(run: &Run) -> String {
    let table = content::other_stages(run);
    let mut text = String::from("<section id=\"stages\"><h2>Other stages</h2>\n");
    text += &if table.is_empty() { paragraph("", "None.") } else { table.html() };
    for stage in run.stages.iter().filter(|stage| !content::is_main(stage) && content::has_trouble(stage)) {
        text += &format!(
            "<h3>{}</h3>{}",
            escape(&stage.id),
            paragraph("alarm", &format!("{}.", content::outcome(stage)))
        );
        if stage.works.iter().any(|work| content::failed(work) > 0) {
            text += &failures(stage);
        }
    }
    text + "</section>\n"
}

fn notes(run: &Run) -> String {
    let mut text = String::from("<section id=\"notes\"><h2>Compatibility notes</h2>\n");
    if run.notes.is_empty() {
        text += &paragraph(
            "",
            "The document meant the same to Tidemark as to its author: there is nothing to note.",
        );
    } else {
        text += "<dl>";
        for note in &run.notes {
            text += &format!("<dt>{}</dt><dd>{}</dd>\n", escape(&note.topic), escape(&note.text));
        }
        text += "</dl>";
    }
    text + "</section>\n"
}

/// How to run it again, and what made it.
fn repeat(run: &Run) -> String {
    let source = &run.provenance;
    let mut text = String::from("<section id=\"repeat\"><h2>How to reproduce</h2>\n");
    text += &paragraph("", &repeat_sentence(run));
    if !source.command.is_empty() {
        text += &format!("<pre><code>{}</code></pre>\n", escape(&source.command));
    }
    text += &content::provenance(run).html();
    if !source.document.is_empty() {
        text += &parts::document(&source.document);
    }
    text + "</section>\n"
}

pub(crate) fn repeat_sentence(run: &Run) -> String {
    let document = match run.provenance.path.as_str() {
        "" => "This command".into(),
        path => format!("With the document below as {path}, its secrets put back, this command"),
    };
    format!(
        "{document} runs it again. The same document with seed {} makes the same choices: objects, sizes, order and mix.",
        run.provenance.seed
    )
}

/// How finely lines may be drawn, so that the file stays small however many there are.
fn points_per_line(run: &Run) -> usize {
    let main = run.stages.iter().filter(|stage| content::is_main(stage));
    let operations: usize = main.map(|stage| content::operations(stage).count()).sum();
    (POINTS_IN_ALL / (operations.max(1) * LINES_PER_OPERATION)).clamp(40, figures::MOST_POINTS)
}
