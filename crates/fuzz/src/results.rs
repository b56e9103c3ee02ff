//! Results of other tools, and what fio prints while it runs.

use crate::{SECRET, check_error, halves};
use std::path::{Component, Path};
use tidemark_fio::run::replay;
use tidemark_import::{Format, Imported, Options, import_bytes};
use tidemark_load::stop::StopRequest;
use tidemark_load::thread_pool::Watch;
use tidemark_measure::tally::Interval;
use tidemark_plan::document::read;
use tidemark_plan::plan::Work;

/// All formats, for what is not recognised.
const FORMATS: [Format; 8] = [
    Format::Cosbench,
    Format::Fio,
    Format::Warp,
    Format::Elbencho,
    Format::Sysbench,
    Format::Pgbench,
    Format::Hammerdb,
    Format::Table,
];

/// Where secrets are in results: options of fio, and command lines.
const SPELLINGS: [&str; 3] =
    ["\"http_s3_key\" : \"Hunter2Hunter2\"", " --secret-key=Hunter2Hunter2 ", " --s3secret Hunter2Hunter2 "];

/// What was read is judged, and its record holds no secret of the file.
fn check(imported: &Imported, text: &[u8]) {
    for run in &imported.runs {
        let _ = tidemark_judge::judge(run);
    }
    let times = |what: &str| text.windows(what.len()).filter(|part| *part == what.as_bytes()).count();
    // A table is kept as it is: nobody knows which of its columns is a secret.
    if imported.evaluation.is_none() && times(SECRET) == 1 && SPELLINGS.iter().any(|one| times(one) == 1) {
        let kept = serde_json::to_string(&imported.runs).unwrap_or_default();
        assert!(!kept.contains(SECRET), "{kept}");
    }
}

/// Any bytes are read as a file of a tool that is not known, and then as one of each.
pub fn import(bytes: &[u8]) -> bool {
    let one = |format| {
        let options = Options { format, object_bytes: Some(4096), ..Options::default() };
        import_bytes(Path::new("result"), bytes, &options)
    };
    match one(None) {
        Ok(imported) => {
            check(&imported, bytes);
            true
        }
        Err(error) => {
            // They may quote a cell, which nobody knows to be a secret.
            check_error(&error.to_string().replace(SECRET, ""));
            for format in FORMATS {
                let _ = one(Some(format)).map(|imported| check(&imported, bytes));
            }
            false
        }
    }
}

/// The parts between zero bytes are files of a COSBench archive: the first line is a name, and the rest what the file holds.
pub fn archive(bytes: &[u8]) -> bool {
    let Ok(place) = tempfile::tempdir() else { return false };
    for part in bytes.split(|byte| *byte == 0).take(10) {
        let (name, content) = halves(part, b'\n');
        let Ok(name) = str::from_utf8(name) else { continue };
        let path = Path::new(name);
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || path.components().count() > 2 {
            continue;
        }
        let path = place.path().join(path);
        // A name that no file can have is none.
        let _ = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(path, content));
    }
    match tidemark_import::import(place.path(), &Options::default()) {
        Ok(imported) => {
            imported.runs.iter().for_each(|run| drop(tidemark_judge::judge(run)));
            true
        }
        Err(error) => {
            check_error(&error.to_string());
            false
        }
    }
}

/// A job file whose jobs do all that fio reports of one.
const JOBS: &str = "[mix]\nfilename=/nonexistent/a\nrw=randrw\nrwmixread=70\nfdatasync=10\n\
    [check]\nfilename=/nonexistent/b\nrw=write\nverify=crc32c\nramp_time=1\nnumjobs=2\nnew_group\ngroup_reporting\n";

/// Any text is what fio prints while it runs jobs.
pub fn fio_report(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let registry = tidemark_engines::registry();
    let Ok(read) = read(JOBS, &crate::nothing(&registry)) else { return false };
    let works: Vec<&Work> = read.plan.stages.iter().flat_map(|stage| &stage.works).collect();
    let mut deaf: Vec<Deaf> = works.iter().map(|_| Deaf).collect();
    let mut watches: Vec<&mut dyn Watch> = deaf.iter_mut().map(|deaf| deaf as &mut dyn Watch).collect();
    match replay(&text, &works, &mut watches) {
        Ok(outcomes) => outcomes.iter().any(|outcome| outcome.tallies.iter().any(|tally| tally.ok > 0)),
        Err(error) => {
            check_error(&error.to_string());
            false
        }
    }
}

struct Deaf;

impl Watch for Deaf {
    fn interval(&mut self, _interval: &Interval) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}
