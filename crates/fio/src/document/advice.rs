//! What must not run, and what may surprise the author of a fio job file.

use super::ini::Setting;
use super::job::Job;
use super::values::KEYWORDS;
use std::ops::Range;
use tidemark_keys::secret::{is_secret, is_secret_variable};
use tidemark_plan::diagnostic::Diagnostic;

/// A window shorter than this measures the start more than the storage, nanoseconds.
const SHORT_NS: u64 = 10_000_000_000;

/// Refuses an option that would run programs, or that would hide what is written from the guard of devices.
pub(super) fn refuse(setting: &Setting<'_>, found: &mut Vec<Diagnostic>) {
    let mut refuse = |message: String, help: &str| {
        found.push(Diagnostic::error(setting.span.clone(), message, help));
    };
    let (name, value) = (setting.name, setting.value);
    if let Some(variable) = secret_variable(setting) {
        return refuse(
            format!(
                "`{}`: the environment variable {variable} holds a secret, as its name says",
                shown(name)
            ),
            "use it only for fio's own passwords and keys, such as `http_s3_key`; write other values out",
        );
    }
    match name {
        "exec_prerun" | "exec_postrun" => refuse(
            format!("`{name}` would run a shell command"),
            "documents only describe load: remove it and run the command yourself",
        ),
        "ioengine" if value == "exec" || value.starts_with("external:") || value.contains('/') => refuse(
            format!("`ioengine={value}` would run a program of its own"),
            "documents only describe load: use an engine that `fio --enghelp` lists, other than exec",
        ),
        "ioscheduler" | "cgroup" | "cgroup_weight" | "cgroup_nodelete" => refuse(
            format!("`{name}` would change this machine, and fio runs in a sandbox that cannot"),
            "apply the setting before the run, and remove the option",
        ),
        "write_iolog" => refuse(
            "`write_iolog` would overwrite the file that it names".into(),
            "remove it: Tidemark keeps fio's counts and latencies itself",
        ),
        "read_iolog" | "opendir" | "merge_blktrace_file" => refuse(
            format!("`{name}` names files outside this job file"),
            "Tidemark guards the devices that a document names: name files and devices with `filename`",
        ),
        "unified_rw_reporting" if !matches!(value, "0" | "none" | "both" | "2") => refuse(
            "`unified_rw_reporting` makes fio report reads and writes as one".into(),
            "remove it: Tidemark reports reads, writes and their sum",
        ),
        // fio hands such a value to a shell, in single quotes, to have it calculated.
        _ if value.contains('\'') && KEYWORDS.iter().any(|keyword| value.contains(keyword)) => {
            refuse(
                format!("`{name}` has a quote beside a keyword; fio would pass it to a shell"),
                "write the value without quotes",
            );
        }
        _ => {}
    }
}

/// A variable with a secret that stands where it would be shown: fio puts variables into names and values alike.
fn secret_variable<'a>(setting: &Setting<'a>) -> Option<&'a str> {
    let named = |text: &'a str| {
        let mut references = text.split("${").skip(1).filter_map(|after| after.split('}').next());
        references.find(|name| is_secret_variable(name))
    };
    let in_value = || if is_secret(setting.name) { None } else { named(setting.value) };
    named(setting.name).or_else(in_value)
}

/// A name, short enough for a message.
fn shown(name: &str) -> &str {
    name.char_indices().nth(60).map_or(name, |(at, _)| &name[..at])
}

/// Warns of what makes fio's numbers other than they seem; each remark once, for all jobs that it concerns.
pub(super) fn warn(jobs: &[(&Job<'_>, Range<usize>)], found: &mut Vec<Diagnostic>) {
    let mut once = |concerned: &dyn Fn(&Job<'_>) -> bool, message: &str, help: &str| {
        let named: Vec<_> = jobs.iter().filter(|(job, _)| concerned(job)).collect();
        if let Some((_, span)) = named.first() {
            let names: Vec<_> = named.iter().map(|(job, _)| format!("`{}`", job.section)).collect();
            found.push(Diagnostic::warning(span.clone(), format!("{}: {message}", names.join(", ")), help));
        }
    };
    once(
        &|job| job.time_ns(&["runtime", "timeout"]).is_some_and(|runtime| runtime > 0 && runtime < SHORT_NS),
        "`runtime` is shorter than 10 s",
        "measure for 30 s or more: caches, bursts and garbage collection need that long to show",
    );
    once(
        &|job| job.on(&["time_based"]) != Some(true),
        "no `time_based`: fio stops after one pass over its files",
        "add `time_based=1` and a `runtime`, so that every job is measured for the same time",
    );
    once(
        &|job| job.on_files() && job.on(&["direct"]) != Some(true) && job.on(&["buffered"]) != Some(false),
        "no `direct=1`: reads may come from the page cache and writes may stay in it",
        "add `direct=1` to measure storage rather than memory",
    );
    once(
        &|job| {
            job.pattern().starts_with("rand")
                && job.on(&["randrepeat", "allrandrepeat"]) != Some(false)
                && job.value(&["randseed"]).is_none()
        },
        "`randrepeat` is on by default: every run uses the same blocks in the same order",
        "add `randrepeat=0`, so that caches do not help repeated runs",
    );
}
