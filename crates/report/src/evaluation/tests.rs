//! Evaluations in every form of report.

use super::*;
use crate::sample::{self, Shape};
use tidemark_judge::evaluation::assess;
use tidemark_judge::words::conduct::Conduct;
use tidemark_judge::{Finding, Severity};
use tidemark_measure::record::{Happened, Happening};

const NASTY: &str = "</title></svg><script>alert(1)</script><img src=x>\"'&|`\u{0}\u{1b}[31m\r\n# h";

struct Sample {
    evaluation: Evaluation,
    assessment: Assessment,
    runs: Vec<Run>,
    heat: Vec<Heat>,
}

impl Sample {
    fn of(shape: &Shape) -> Self {
        let (evaluation, runs) = sample::evaluation(shape);
        Self::new(evaluation, runs)
    }

    fn new(evaluation: Evaluation, runs: Vec<Run>) -> Self {
        let assessment = assess(&evaluation, &runs);
        let heat = sample::heat(&wants_heat(&evaluation, &assessment, &runs), &runs);
        Self { evaluation, assessment, runs, heat }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            evaluation: &self.evaluation,
            assessment: &self.assessment,
            runs: &self.runs,
            heat: &self.heat,
        }
    }
}

fn small() -> Shape {
    Shape { seconds: 4, levels: 5, ..sample::usual() }
}

/// 200 runs and ten billion operations.
fn large() -> Shape {
    Shape { arms: 2, levels: 10, repeats: 5, seconds: 60, times: 700 }
}

fn ids(page: &str) -> Vec<&str> {
    page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_page_opens_with_the_verdict_and_has_every_section() {
    let sample = Sample::of(&small());
    let page = html(&sample.subject());
    let first = sample.assessment.verdict[0].as_str();
    let answer = page.find(&crate::text::escape(first)).unwrap();
    assert!(answer < page.find("<h2>Loads and arms").unwrap(), "the verdict comes first");
    for section in [
        "verdict",
        "comparison",
        "levels",
        "latencies",
        "bottlenecks",
        "nodes",
        "findings",
        "proofs",
        "arms",
        "runs",
        "repeat",
    ] {
        assert!(page.contains(&format!("<section id=\"{section}\">")), "{section}");
        assert!(page.contains(&format!("href=\"#{section}\"")), "{section}");
    }
    for outside in ["<link", "<script", "@import", "url(", "src=", "href=\"http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let mut all = ids(&page);
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "every id is unique");
    assert_eq!(page.matches("<details").count(), page.matches("</details>").count());
    assert_eq!(page.matches("<svg").count(), page.matches("role=\"img\"").count());
}

#[test]
fn the_first_page_has_the_best_load_of_every_arm_and_its_limit() {
    let mut sample = Sample::of(&small());
    let (severity, what) = (Severity::Note, Conduct::Interrupted {}.into());
    let finding = Finding {
        severity,
        what,
        each: Vec::new(),
        in_runs: None,
        stage: None,
        work: None,
        stages: Vec::new(),
        invalidates: false,
    };
    let (arm, load) = ("baseline".into(), "random-write".into());
    sample.assessment.bottlenecks.insert(0, tidemark_judge::evaluation::Bottleneck { arm, load, finding });
    let page = html(&sample.subject());
    let summary = &page[page.find("<section id=\"verdict\">").unwrap()..];
    let summary = &summary[..summary.find("</section>").unwrap()];
    let table = &summary[summary.find("aria-label=\"What it comes to\"").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    for knee in &sample.assessment.knees {
        let level = format!("{} {}", knee.axis, knee.level.unwrap());
        assert!(
            table.contains(&format!("<td>{level}<small>within the service level</small></td>")),
            "{table}"
        );
        assert!(table.contains(&tidemark_measure::units::rate(knee.throughput)), "{table}");
    }
    let limit = &sample.assessment.bottlenecks[0];
    assert!(
        table.contains(&crate::text::escape(&crate::content::capital(&limit.finding.title()))),
        "{table}"
    );
    assert_eq!(table.matches("the baseline</td>").count(), 2, "{table}");
    // What follows the headline is there, but folded.
    let more = sample.assessment.verdict.last().unwrap();
    let details = &summary[summary.find("<details><summary>The verdict in detail").unwrap()..];
    assert!(details.contains(&crate::text::escape(more)), "{details}");
}

#[test]
fn where_no_level_is_within_the_service_level_the_first_page_says_so() {
    let mut sample = Sample::of(&small());
    for knee in &mut sample.assessment.knees {
        knee.level = None;
    }
    let page = html(&sample.subject());
    assert!(page.contains("<small class=\"bad\">✕ none is within the service level</small>"), "{page}");
}

#[test]
fn what_nodes_did_is_folded() {
    let page = html(&Sample::of(&small()).subject());
    let nodes = &page[page.find("<section id=\"nodes\">").unwrap()..];
    let nodes = &nodes[..nodes.find("</section>").unwrap()];
    let open = nodes.find("<details").unwrap();
    assert!(nodes.find("<figure").unwrap() > open, "no figure is shown unfolded");
}

#[test]
fn runs_in_which_something_was_lost_have_its_phases() {
    let (evaluation, mut runs) = sample::evaluation(&small());
    assert!(!markdown(&Sample::new(evaluation.clone(), runs.clone()).subject()).contains("## Losses"));
    let at = |at_ns, what| Happening { at_ns, what, object: "pod bench/db-0".into(), ..Happening::default() };
    runs[1].happenings = vec![at(5, Happened::PodDeleted), at(8, Happened::PodGone)];
    let sample = Sample::new(evaluation, runs);
    let run = format!("Run {}", sample.runs[1].id);
    let text = markdown(&sample.subject());
    let (_, losses) = text.split_once("## Losses").unwrap();
    assert!(losses.contains(&format!("### {run}\n\n- Pod bench/db-0 was deleted")), "{losses}");
    let page = html(&sample.subject());
    let losses = &page[page.find("<section id=\"losses\">").unwrap()..];
    assert!(losses.contains(&format!("<h3>{run}</h3>")) && losses.contains("pod bench/db-0"));
}

#[test]
fn arms_are_columns_and_say_how_they_compare() {
    let sample = Sample::of(&small());
    let page = html(&sample.subject());
    let table = &page[page.find("aria-label=\"Loads and arms\"").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    assert!(table.contains("<th scope=\"col\" class=\"n\">baseline</th>"), "{table}");
    assert!(table.contains("<small class=\"good\">✓ better: ×"), "{table}");
    assert!(table.contains("<small>± "), "{table}");
    // Of the load with five levels one is shown.
    assert_eq!(table.matches("scope=\"rowgroup\"").count(), 2, "{table}");
    assert!(page.contains("<summary>Arms at every level</summary>"));
}

#[test]
fn figures_have_names_of_their_own_and_words() {
    let sample = Sample::of(&small());
    let figures = figures(&sample.subject());
    let mut names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    for wanted in [
        "throughput",
        "throughput-normalised",
        "p99-normalised",
        "load-2-latency-by-throughput-1",
        "load-2-throughput-by-level-1",
        "load-1-percentiles",
        "load-1-heat-1",
        "load-2-arm-3-node-1",
    ] {
        assert!(names.contains(&wanted), "{wanted} in {names:?}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "every name is unique");
    assert!(figures.iter().all(|figure| !figure.description.is_empty() && !figure.title.is_empty()));
    let curve = figures.iter().find(|figure| figure.name == "load-2-latency-by-throughput-1").unwrap();
    assert!(curve.description.contains("The service level is p95"), "{}", curve.description);
    let image = crate::figures::png(curve, 800).unwrap();
    assert!(image.starts_with(b"\x89PNG") && image.len() > 5_000, "{}", image.len());
}

#[test]
fn heat_maps_are_wanted_of_one_run_for_each_arm_and_load() {
    let sample = Sample::of(&small());
    assert_eq!(sample.heat.len(), 6);
    for heat in &sample.heat {
        let run = sample.runs.iter().find(|run| run.id == heat.run).unwrap();
        assert_eq!(run.stages[heat.stage].works[heat.work].kind, tidemark_measure::kind::WorkKind::Normal);
    }
}

#[test]
fn a_large_evaluation_is_a_small_file() {
    let sample = Sample::of(&large());
    assert_eq!(sample.runs.len(), 200);
    let total: u64 = sample.assessment.cells.iter().map(|cell| cell.total).sum();
    assert!(total > 10_000_000_000, "{total}");
    assert!(sample.runs[0].nodes.iter().map(|node| node.series.len()).sum::<usize>() > 90);
    let page = html(&sample.subject());
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert!(page.len() > 300_000, "the figures are there: {}", page.len());
}

#[test]
#[ignore = "prints time and memory; run it alone with --release"]
fn measures_a_large_report() {
    let memory = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let of = |name: &str| {
            status.lines().find(|line| line.starts_with(name)).map(|line| line[6..].trim().to_owned())
        };
        format!("now {:?}, at most {:?}", of("VmRSS:"), of("VmHWM:"))
    };
    let (evaluation, runs) = sample::evaluation(&large());
    println!("the runs: {}", memory());
    let start = std::time::Instant::now();
    let assessment = assess(&evaluation, &runs);
    println!("assessed after {:?}: {}", start.elapsed(), memory());
    let heat = sample::heat(&wants_heat(&evaluation, &assessment, &runs), &runs);
    let subject = Subject { evaluation: &evaluation, assessment: &assessment, runs: &runs, heat: &heat };
    let start = std::time::Instant::now();
    let page = html(&subject);
    println!("HTML of {} bytes after {:?}: {}", page.len(), start.elapsed(), memory());
    let start = std::time::Instant::now();
    let lengths = [markdown(&subject), csv(&subject), json(&subject)].map(|text| text.len());
    println!("Markdown, CSV and JSON of {lengths:?} bytes after {:?}", start.elapsed());
    let start = std::time::Instant::now();
    let drawn = figures(&subject);
    let images = drawn.iter().map(|figure| crate::figures::png(figure, 1_128).unwrap().len());
    println!("{} figures, {} bytes of PNG after {:?}", drawn.len(), images.sum::<usize>(), start.elapsed());
}

#[test]
fn text_from_documents_is_never_markup() {
    let (mut evaluation, mut runs) = sample::evaluation(&small());
    let text = || NASTY.to_string();
    (evaluation.name, evaluation.description) = (text(), text());
    (evaluation.missing, evaluation.order) = (vec![text()], text());
    (evaluation.provenance.command, evaluation.provenance.document) = (text(), text());
    let arm = evaluation.arms[0].name.clone();
    let load = evaluation.loads[1].name.clone();
    evaluation.arms[0].name = text();
    evaluation.arms[0].settings = vec![(text(), text())];
    (evaluation.loads[1].name, evaluation.loads[1].description) = (text(), text());
    for axis in evaluation.loads[1].levels.iter_mut().flatten() {
        axis.name = text();
    }
    for run in &mut runs {
        let member = run.member.as_mut().unwrap();
        if member.arm == arm {
            member.arm = text();
        }
        if member.load == load {
            member.load = text();
            member.level.iter_mut().for_each(|axis| axis.name = text());
        }
        for node in &mut run.nodes {
            (node.name, node.gaps) = (text(), vec![text()]);
            node.series.iter_mut().take(3).for_each(|series| series.subject = text());
        }
        for operation in
            run.stages.iter_mut().flat_map(|stage| &mut stage.works).flat_map(|work| &mut work.operations)
        {
            operation.label = text();
        }
    }
    let mut sample = Sample::new(evaluation, runs);
    sample.assessment.findings.push(Finding {
        severity: Severity::Critical,
        what: Conduct::StageFailed { reason: text() }.into(),
        each: Vec::new(),
        in_runs: None,
        stage: Some(text()),
        work: Some(text()),
        stages: Vec::new(),
        invalidates: false,
    });
    let page = html(&sample.subject());
    for markup in ["<script", "<img", "\u{1b}", "\u{0}"] {
        assert!(!page.contains(markup), "{markup:?} at {:?}", page.find(markup));
    }
    for figure in figures(&sample.subject()) {
        let text = figure.standalone();
        assert!(!text.contains("<script") && text.matches("</svg>").count() == 1, "{}", figure.name);
        assert!(crate::figures::png(&figure, 100).is_ok(), "{}", figure.name);
    }
    let text = markdown(&sample.subject());
    let outside: String = text.split("\n```").step_by(2).collect();
    assert!(!outside.contains("<script") && !outside.contains("\n# h"), "{outside}");
    serde_json::from_str::<serde_json::Value>(&json(&sample.subject())).unwrap();
}

#[test]
fn nothing_at_all_is_reported_too() {
    let sample = Sample::new(Evaluation::default(), Vec::new());
    let page = html(&sample.subject());
    assert!(page.contains("Nothing was measured.") && !page.contains("NaN"));
    assert!(figures(&sample.subject()).is_empty());
    assert_eq!(csv(&sample.subject()).lines().count(), 1);
    assert!(!markdown(&sample.subject()).is_empty() && !json(&sample.subject()).is_empty());
    // An evaluation that was stopped before its first run had ended.
    let (mut evaluation, mut runs) = sample::evaluation(&small());
    runs.truncate(1);
    runs[0].stages.clear();
    evaluation.state = tidemark_measure::record::State::Interrupted;
    let sample = Sample::new(evaluation, runs);
    assert!(html(&sample.subject()).contains("✕ INTERRUPTED"));
    assert!(!markdown(&sample.subject()).is_empty());
}

#[test]
fn one_arm_without_a_baseline_has_numbers_and_levels() {
    let sample = Sample::of(&Shape { arms: 1, repeats: 1, ..small() });
    let page = html(&sample.subject());
    assert!(
        page.contains("<th scope=\"col\" class=\"n\">baseline</th>")
            && page.contains("<small>one value</small>")
    );
    assert!(
        !page.contains("Compared with the baseline") && page.contains("Response time against throughput")
    );
}

#[test]
fn rows_of_csv_are_cells() {
    let sample = Sample::of(&small());
    let text = csv(&sample.subject());
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + sample.assessment.cells.len());
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let column = |name: &str| rows[0].iter().position(|header| *header == name).unwrap();
    let cell = &sample.assessment.cells[1];
    assert_eq!(rows[2][column("arm")], cell.arm);
    assert_eq!(rows[2][column("p99_ns")], cell.p99_ns.as_ref().unwrap().mean.to_string());
    assert_eq!(rows[2][column("throughput_outcome")], "better");
    let value: serde_json::Value = serde_json::from_str(&json(&sample.subject())).unwrap();
    assert_eq!(value["assessment"]["cells"][1]["arm"].as_str(), Some(cell.arm.as_str()));
    assert_eq!(value["distributions"][1]["count"].as_u64(), Some(cell.response.count()));
    assert_eq!(value["runs"].as_array().unwrap().len(), sample.runs.len());
}
