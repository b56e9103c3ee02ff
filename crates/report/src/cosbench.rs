//! The archive directory that COSBench's controller writes, so that scripts which read one go on working.
//!
//! Files, headers and number formats are COSBench's (0.4.2 and 0.4.2.c4; `reference/object-storage.md` 1.6). The
//! numbers are true ones: percentiles are percentiles and not the upper edges of 10 ms classes, throughput is
//! work in the window divided by the window and not a sum of the workers' own rates, and a ratio is never
//! rounded up to 100 %. `workload.log` says so in the archive itself.

mod files;
mod format;

use crate::text::moment;
use jiff::tz::TimeZone;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tidemark_measure::record::Run;

/// The archive could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file or directory could not be made or written.
    #[error("cannot write '{path}': {source}; check that the directory is writable and has room")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What is there could not be read, so that the next run number is unknown.
    #[error("cannot read '{path}': {source}; check its permissions, or name another directory")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Writes a run into a COSBench archive, as the run after the last one there; the directory is made if need be.
///
/// `document` is the workload's document with its secrets redacted. Dates are in the system's time zone, as
/// COSBench's are.
pub fn cosbench_archive(run: &Run, document: &str, directory: &Path) -> Result<(), ArchiveError> {
    write(run, document, directory, &TimeZone::system())
}

/// What happened in a run, a line for each stage and kind of failure, with times in the system's time zone: the archive's
/// `workload.log`, without its remarks on COSBench's tables.
pub fn log(run: &Run) -> String {
    files::events(run, &TimeZone::system())
}

fn write(run: &Run, document: &str, directory: &Path, zone: &TimeZone) -> Result<(), ArchiveError> {
    make(directory, || std::fs::create_dir_all(directory))?;
    let (number, folder) = claim(run, directory)?;
    let id = format!("w{number}");
    let name = format!("{id}-{}", format::file_name(&run.name));
    let put = |file: &str, text: &str| {
        let path = folder.join(file);
        make(&path, || std::fs::write(&path, text))
    };
    put(&format!("{name}.csv"), &files::workload(run, zone))?;
    put(&format!("{name}-rt-histogram.csv"), &files::histogram(run))?;
    for stage in &run.stages {
        let stage_name = format::file_name(&stage.id);
        put(&format!("{stage_name}.csv"), &files::stage(run, stage, zone))?;
        put(&format!("{stage_name}-worker.csv"), &files::workers(stage))?;
    }
    let xml = document.trim_start().starts_with('<');
    put(if xml { "workload-config.xml" } else { "workload-config.yaml" }, document)?;
    put("workload.log", &files::log(run, zone))?;
    append(&directory.join("run-history.csv"), files::HISTORY_HEADER, &files::history(run, &id, zone))?;
    append(&directory.join("workloads.csv"), files::MATRIX_HEADER, &files::matrix(run, &id))?;
    let meta = directory.join(".meta");
    make(&meta, || std::fs::write(&meta, number.to_string()))
}

/// Takes the next run number by making its folder.
fn claim(run: &Run, directory: &Path) -> Result<(u64, PathBuf), ArchiveError> {
    let mut number = last_number(directory)?.saturating_add(1);
    loop {
        let folder = directory.join(format!("w{number}-{}", format::file_name(&run.name)));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok((number, folder)),
            // Another run took it just now.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < u64::MAX => {
                number += 1;
            }
            Err(source) => return Err(ArchiveError::Write { path: folder, source }),
        }
    }
}

/// The largest run number of which there is a trace: in `.meta`, or as a folder `w<number>-...`.
fn last_number(directory: &Path) -> Result<u64, ArchiveError> {
    let meta = std::fs::read(directory.join(".meta")).unwrap_or_default();
    let counted = String::from_utf8_lossy(&meta).trim().parse().unwrap_or(0);
    let unreadable = |source| ArchiveError::Read { path: directory.into(), source };
    let mut last = counted;
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let name = name.to_string_lossy();
        let digits = name.strip_prefix('w').and_then(|rest| rest.split('-').next());
        last = last.max(digits.and_then(|digits| digits.parse().ok()).unwrap_or(0));
    }
    Ok(last)
}

/// Appends to a file of the whole archive; a new one gets its header first.
fn append(path: &Path, header: &str, rows: &str) -> Result<(), ArchiveError> {
    make(path, || {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        let header = if file.metadata()?.len() == 0 { header } else { "" };
        file.write_all(format!("{header}{rows}").as_bytes())
    })
}

fn make(path: &Path, act: impl FnOnce() -> std::io::Result<()>) -> Result<(), ArchiveError> {
    act().map_err(|source| ArchiveError::Write { path: path.into(), source })
}

/// A moment of the run, as COSBench writes dates.
fn date(run: &Run, since_start_ns: u64, zone: &TimeZone) -> String {
    moment(run.started_unix_ns.saturating_add(since_start_ns), zone, "%Y-%m-%d %H:%M:%S")
}

#[cfg(test)]
mod tests;
