//! All tables made and thrown away, by our maker and by tpchgen-cli, which has the same generator: on one processor, as one Parquet
//! file a table, zstd level 1, with page statistics, in row groups of about as many rows.

use super::void::Void;
use super::watch::Watch;
use crate::processor::Time;
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tidemark_analytics::job::{By, Compression, Data, Layout};
use tidemark_analytics::sets::Set;
use tidemark_lake::tables::make;

/// Rows of a row group, and its bytes before compression, by which tpchgen-cli goes: of lineitem as many.
const ROW_GROUP: (u64, &str) = (1_200_000, "78MB");

/// What it cost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// Rows of all tables, of whom they are known.
    pub(crate) rows: Option<f64>,
    /// Processor time of the process.
    pub(crate) cpu_s: f64,
}

/// Our client process.
pub(crate) fn generate(scale: &f64) -> Result<Generation, String> {
    let data = Data { set: Set::Tpch, scale_milli: (scale * 1e3).round() as u64, by: By::Tidemark };
    let layout = Layout {
        compression: Compression::Zstd,
        row_group_rows: ROW_GROUP.0,
        page_index: true,
        file_bytes: u64::MAX,
    };
    let watch = Watch::start("tables")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let rows = runtime.block_on(make::tables(Arc::new(Void), &data, &layout, 1));
    let rows = rows.map_err(|failure| failure.to_string())?;
    Ok(Generation { rows: Some(rows as f64), cpu_s: watch.end()?.all_s })
}

/// Its name and version; `None` where it is not installed.
pub(crate) fn version() -> Option<String> {
    let output = Command::new("tpchgen-cli").arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The same by tpchgen-cli.
pub(crate) fn tpchgen_cli(scale: f64) -> Result<Generation, String> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1", "tpchgen-cli", "parquet", "--quiet", "--stdout", "--num-threads", "1"]);
    command.args(["--compression", "ZSTD(1)", "--row-group-bytes", ROW_GROUP.1]);
    command.args(["--scale-factor", &scale.to_string()]).stdout(Stdio::null());
    let unknown = "the kernel does not say what processor time children had";
    let before = Time::of_children().ok_or(unknown)?;
    let status = command.status().map_err(|error| format!("tpchgen-cli: {error}"))?;
    if !status.success() {
        return Err(format!("tpchgen-cli ended with {status}"));
    }
    let used = Time::of_children().ok_or(unknown)? - before;
    Ok(Generation { rows: None, cpu_s: used.total_us() / 1e6 })
}
