//! Documents of thousands of stages: what a stage costs must not depend on how many there are, nor on the runs in the store.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Seconds that the program took.
pub(crate) struct Course {
    /// For a run of [`FEW`] stages, the median of three.
    pub(crate) few: f64,
    /// For runs of [`MANY`] stages, in the order in which they were added to one store.
    pub(crate) many: Vec<f64>,
    /// To list the runs of that store.
    pub(crate) list: f64,
    /// To write the report of the last one.
    pub(crate) report: f64,
}

pub(crate) const FEW: usize = 300;
pub(crate) const MANY: usize = 3_000;

/// Runs documents whose stages have one operation each, on no storage; `runs` of them with [`MANY`] stages.
pub(crate) fn run(tidemark: &Path, runs: usize) -> Result<Course, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let timed = |arguments: &[&str]| -> Result<f64, String> {
        let began = Instant::now();
        let output = Command::new(tidemark).args(arguments).stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        let took = began.elapsed().as_secs_f64();
        let trouble = || format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.status.success().then_some(took).ok_or_else(trouble)
    };
    for (name, stages) in [("few.xml", FEW), ("many.xml", MANY)] {
        std::fs::write(path(name), document(stages)).map_err(|error| error.to_string())?;
    }
    let (few, many, store) = (path("few.xml"), path("many.xml"), path("many.db"));
    let mut short: Vec<f64> = Vec::new();
    for _ in 0..3 {
        short.push(timed(&["run", &few, "--store", &path("few.db")])?);
    }
    short.sort_by(f64::total_cmp);
    let many: Result<Vec<f64>, String> =
        (0..runs.max(1)).map(|_| timed(&["run", &many, "--store", &store])).collect();
    Ok(Course {
        few: short[1],
        many: many?,
        list: timed(&["runs", "--store", &store])?,
        report: timed(&["report", "last", "--store", &store, "-o", &path("report.html")])?,
    })
}

fn document(stages: usize) -> String {
    let mut text = "<workload name=\"stages\"><storage type=\"none\"/><workflow>\n".to_owned();
    for stage in 0..stages {
        let _ = writeln!(
            text,
            "<workstage name=\"stage{stage}\"><work name=\"one\" workers=\"1\" totalOps=\"1\"><operation type=\"read\" \
             ratio=\"100\" config=\"containers=c(1);objects=c(1)\"/></work></workstage>"
        );
    }
    text + "</workflow></workload>\n"
}
