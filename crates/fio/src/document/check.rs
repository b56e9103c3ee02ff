//! What Tidemark must know of jobs and cannot.

use super::ini::{Section, Setting};
use super::job::{BUFFERS, Job};
use super::{KNOWN_VARIABLES, Placed, values};
use std::ops::Range;
use tidemark_block::job::Action;
use tidemark_plan::diagnostic::Diagnostic;

/// The name of a Ceph cluster that needs no other name.
const USUAL_CLUSTER: &str = "ceph";

/// The name of a job, after which fio names files and what it reports.
pub(super) fn name(section: &Section<'_>, found: &mut Vec<Diagnostic>) {
    if section.name.contains('$') || section.name.chars().any(char::is_control) {
        found.push(Diagnostic::error(
            section.span.clone(),
            format!(
                "the name of the section [{}] has a `$` or a control character",
                section.name.escape_debug()
            ),
            "give it another name: fio names files after it, and replaces what begins with `$`",
        ));
    }
}

/// Finds what Tidemark must know of a job and cannot.
pub(super) fn job(job: &Job<'_>, span: &Range<usize>, found: &mut Vec<Diagnostic>) {
    let directions = job.directions();
    if directions.is_none() {
        let span = job.setting(&["rw", "readwrite"]).map_or(span.clone(), |setting| setting.span.clone());
        found.push(Diagnostic::error(
            span,
            format!("fio has no `rw={}`", job.pattern()),
            "use read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite or randtrimwrite",
        ));
    }
    if job.on(&["stats"]) == Some(false) {
        found.push(Diagnostic::error(
            span.clone(),
            format!("fio reports nothing for `{}`: it sets `stats=0`", job.section),
            "remove `stats`, so that all load is reported",
        ));
    }
    let writes = directions.is_some_and(|all| all.iter().any(|(action, _)| *action != Action::Read));
    let is_guarded = |setting: &Setting<'_>| match setting.name {
        // fio lays out files that are missing for a job that reads, too.
        "filename_format" => job.on_files(),
        "filename" | "directory" => writes && job.on_files(),
        "rbdname" | "pool" => writes && job.engine() == "rbd",
        name => BUFFERS.contains(&name),
    };
    let places = ["filename", "directory", "filename_format", "rbdname", "pool", "mem", "iomem"];
    let mut named = places.iter().filter_map(|name| job.setting(&[name]));
    let is_taken = |setting: &&Setting<'_>| {
        setting.value.contains("${") && values::is_set(setting, job.variables) && is_guarded(setting)
    };
    if let Some(setting) = named.find(is_taken) {
        found.push(Diagnostic::error(
            setting.span.clone(),
            format!("`{}` of `{}` is taken from the environment", setting.name, job.section),
            "write it out: Tidemark guards the devices and images that a document names",
        ));
    }
    let elsewhere = job.setting(&["clustername"]).filter(|setting| setting.value != USUAL_CLUSTER);
    if let Some(setting) = elsewhere.filter(|_| writes && job.engine() == "rbd") {
        found.push(Diagnostic::error(
            setting.span.clone(),
            format!("`clustername` of `{}` is another cluster than the one that Tidemark asks for its images", job.section),
            "remove it; where the cluster has a configuration of its own, set CEPH_CONF to that file for the run",
        ));
    }
    let mut named = places.iter().filter_map(|name| job.setting(&[name]));
    if let Some(setting) = named.find(|setting| hides_name(setting) && is_guarded(setting)) {
        found.push(Diagnostic::error(
            setting.span.clone(),
            format!(
                "`{}` of `{}` has a `$` that is none of fio's $jobname, $jobnum and $filenum in `filename_format`",
                setting.name, job.section
            ),
            "write the name out: Tidemark guards the devices and images that a document names",
        ));
    }
}

/// Whether fio may replace a part of the name in a setting.
fn hides_name(setting: &Setting<'_>) -> bool {
    let plain = match setting.name {
        "filename_format" => {
            KNOWN_VARIABLES.iter().fold(setting.value.to_owned(), |rest, known| rest.replace(known, ""))
        }
        _ => setting.value.to_owned(),
    };
    plain.contains('$') && !plain.contains("${")
}

/// Files named in a `[global]` section after the last job: no job has them, and fio does not open them.
pub(super) fn shared(sections: &[Section<'_>], found: &mut Vec<Diagnostic>) {
    let last = sections.iter().rposition(|section| !section.is_global()).map_or(0, |last| last + 1);
    let mut idle = sections[last..].iter().flat_map(|section| &section.options);
    if let Some(setting) = idle.find(|setting| setting.name == "filename") {
        found.push(Diagnostic::error(
            setting.span.clone(),
            "`filename` is in a `[global]` section after the last job, so no job has it",
            "move the section before the jobs that it is for",
        ));
    }
}

/// `wait_for` must name a job of the same stage: every stage is a fio process of its own.
pub(super) fn waits(stages: &[Vec<&Placed<'_>>], found: &mut Vec<Diagnostic>) {
    for stage in stages {
        for placed in stage {
            let Some(setting) = placed.job.setting(&["wait_for"]) else { continue };
            if !stage.iter().any(|other| other.job.shown() == setting.value) {
                found.push(Diagnostic::error(
                    setting.span.clone(),
                    format!("`wait_for={}` names no job of the same stage", setting.value),
                    "remove `wait_for`; `stonewall` makes a job wait for all jobs before it",
                ));
            }
        }
    }
}
