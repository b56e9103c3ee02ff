//! Writes the reports of sample runs, to look at: `cargo run --example sample_reports -- DIRECTORY`.

#[path = "../src/sample.rs"]
mod sample;

use std::path::Path;
use tidemark_report::evaluation as report;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("name a directory to write to")?;
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory)?;
    let runs = [
        ("healthy", sample::healthy(60)),
        ("outage", sample::outage()),
        ("invalid", sample::invalid()),
        ("matrix", sample::matrix()),
        ("all-failed", sample::all_failed()),
        ("long", sample::healthy(1200)),
        ("sweeps", sample::sweeps(60)),
        ("drivers-4", sample::by_drivers(4, 60)),
        ("drivers-16", sample::by_drivers(16, 60)),
        ("drivers-100", sample::by_drivers(100, 60)),
        ("queries", sample::queries()),
        ("empty", tidemark_measure::record::Run::default()),
    ];
    for (name, run) in runs {
        let judgement = tidemark_judge::judge(&run);
        let put = |extension: &str, text: String| {
            std::fs::write(directory.join(format!("{name}.{extension}")), text)
        };
        put("html", tidemark_report::html(&run, &judgement))?;
        put("md", tidemark_report::markdown(&run, &judgement))?;
        put("csv", tidemark_report::csv(&run))?;
        put("series.csv", tidemark_report::csv_series(&run))?;
        put("json", tidemark_report::json(&run, &judgement))?;
        for work in run.stages.iter().flat_map(|stage| &stage.works).filter(|work| work.kind.measures()) {
            for figure in tidemark_report::figures::all(work, tidemark_report::figures::MOST_POINTS) {
                put(&format!("{}.svg", figure.name), figure.standalone())?;
            }
        }
        for figure in tidemark_judge::sweep::sweeps(&run).iter().flat_map(tidemark_report::figures::of_sweep)
        {
            put(&format!("{}.svg", figure.name), figure.standalone())?;
        }
        tidemark_report::cosbench_archive(&run, &run.provenance.document, &directory.join("archive"))?;
    }
    evaluation(directory)
}

/// The reports of an evaluation, and its figures in both forms.
fn evaluation(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let (evaluation, runs) = sample::evaluation(&sample::usual());
    let assessment = tidemark_judge::evaluation::assess(&evaluation, &runs);
    let heat = sample::heat(&report::wants_heat(&evaluation, &assessment, &runs), &runs);
    let subject =
        report::Subject { evaluation: &evaluation, assessment: &assessment, runs: &runs, heat: &heat };
    let put = |extension: &str, text: String| {
        std::fs::write(directory.join(format!("evaluation.{extension}")), text)
    };
    put("html", report::html(&subject))?;
    put("md", report::markdown(&subject))?;
    put("csv", report::csv(&subject))?;
    put("json", report::json(&subject))?;
    for figure in report::figures(&subject) {
        put(&format!("{}.svg", figure.name), figure.standalone())?;
        let image = tidemark_report::figures::png(&figure, 1_128)?;
        std::fs::write(directory.join(format!("evaluation.{}.png", figure.name)), image)?;
    }
    Ok(())
}
