//! fio's job files: read as far as Tidemark must know what runs, and run by fio as they stand.
//!
//! What an option means stays fio's business, and so do keywords. Read are sections, stages (cut by `stonewall`),
//! directions, jobs, depths, times (with the `${VARIABLES}` in them) and the files, devices and images that are named.

mod advice;
mod check;
pub(crate) mod ini;
mod job;
mod names;
#[cfg(test)]
mod tests;
mod values;

use crate::file::{FioFile, Use, together};
use ini::{MOST_REMARKS, Section, Setting};
use job::Job;
pub(crate) use job::Variables;
pub use job::waits_for_each;
use names::Names;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use tidemark_block::job::Action;
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Effect, Order, Size, SourcePlan};
use tidemark_load::stopping::Stop;
use tidemark_load::work::Work as Load;
use tidemark_measure::pick::Pick;
use tidemark_measure::record::Note;
use tidemark_measure::units;
use tidemark_plan::defaults;
use tidemark_plan::diagnostic::{Diagnostic, Severity};
use tidemark_plan::job::Job as AnyJob;
use tidemark_plan::plan::{Drivers, Label, Observe, OnFailure, OperationClass, Plan, Stage, Work, WorkKind};
use tidemark_plan::redact::is_secret;
use tidemark_plan::yaml::environment;

/// Names longer than this are cut: a plan of many stages is named after the first of them.
const LONGEST_NAME: usize = 80;

/// Jobs of a file beyond this are taken for a mistake: each has a process or thread of fio's own.
const MOST_JOBS: usize = 1_000;

/// A file's length times its jobs, bytes: a `[global]` option holds for every job, and drivers get the whole file with each.
const MOST_TEXT: usize = 32 << 20;

/// The variables of fio in formats of file names that Tidemark knows.
pub(crate) const KNOWN_VARIABLES: [&str; 3] = ["$jobname", "$jobnum", "$filenum"];

pub(crate) use values::KEYWORDS;

/// Whether a text is a fio job file: its first line that is not blank or a comment is a `[section]` header.
pub(crate) fn is_fio(text: &str) -> bool {
    ini::begins_with_section(text)
}

/// Reads a fio job file: the plan and warnings.
///
/// # Errors
/// All errors and warnings; at least one is an error.
pub(crate) fn read(
    text: &str,
    variables: &Variables<'_>,
    waited_for: &dyn Fn() -> bool,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut found = Vec::new();
    let sections = ini::sections(text, &mut found);
    if let Some(too_much) = too_much(text, &sections) {
        return Err(vec![too_much]);
    }
    let global: Vec<&Setting<'_>> =
        sections.iter().filter(|section| section.is_global()).flat_map(|section| &section.options).collect();
    let Some(jobs) = jobs(&sections, &global, variables, waited_for, &mut found) else {
        return Err(vec![environment::given_up()]);
    };
    check::shared(&sections, &mut found);
    advice::warn(&jobs.iter().map(|job| (&job.job, job.span.clone())).collect::<Vec<_>>(), &mut found);
    let stages = cut(&jobs);
    check::waits(&stages, &mut found);
    if jobs.is_empty() && found.is_empty() {
        let help = "add a section for each job, `[name]`, with its options: `rw=`, `filename=`, `bs=`";
        found.push(Diagnostic::error(0..0, "the file has no job section", help));
    }
    let (seed, shared) = (defaults::seed_of(text), Arc::from(text));
    let stages: Vec<Stage> = stages
        .iter()
        .enumerate()
        .map(|(index, jobs)| stage(&shared, seed, index, jobs, &mut found))
        .collect();
    let failed = found.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    // Errors first: they are what keeps the file from running.
    found.sort_by_key(|diagnostic| (std::cmp::Reverse(diagnostic.severity), diagnostic.span.start));
    found.truncate(MOST_REMARKS);
    found.sort_by_key(|diagnostic| diagnostic.span.start);
    if failed {
        return Err(found);
    }
    let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
    let plan = Plan {
        name: shortened(&names.join(", ")),
        description: String::new(),
        seed,
        trigger: None,
        stages,
        notes: vec![Note {
            topic: "fio".into(),
            text: "The job file runs unchanged in fio; Tidemark imports its latency bins.".into(),
        }],
        observe: Observe::default(),
        drivers: Drivers::default(),
    };
    Ok((plan, found))
}

/// What makes a file too large to be read on, before anything is made of its sections.
fn too_much(text: &str, sections: &[Section<'_>]) -> Option<Diagnostic> {
    let mut jobs = sections.iter().filter(|section| !section.is_global());
    let count = jobs.clone().count();
    let refuse = |at: &Section<'_>, message: String| {
        Some(Diagnostic::error(at.span.clone(), message, "split it into several files"))
    };
    if let Some(first) = jobs.nth(MOST_JOBS) {
        let (count, most) = (units::count(count as u64), units::count(MOST_JOBS as u64));
        return refuse(first, format!("the file has {count} job sections; the limit is {most}"));
    }
    let whole = text.len().saturating_mul(count);
    let first = sections.first().filter(|_| whole > MOST_TEXT)?;
    let (length, most) = (units::bytes(text.len() as u64), units::bytes(MOST_TEXT as u64));
    refuse(
        first,
        format!(
            "the file has {count} jobs and {length}, which together exceed {most}: drivers get the whole file with each job"
        ),
    )
}

/// A job and where it stands.
struct Placed<'a> {
    job: Job<'a>,
    span: Range<usize>,
    /// The files and devices that it works on.
    files: Vec<Use>,
    /// Whether it waits for all jobs before it.
    waits: bool,
    /// Whether fio adds its numbers to those of the job before it.
    joins: bool,
}

/// The jobs with all options that hold for them, refusing what must not run; `global` are the options of all `[global]`
/// sections. `None`: nobody waits for them any more.
fn jobs<'a>(
    sections: &'a [Section<'a>],
    global: &'a [&'a Setting<'a>],
    variables: &'a Variables<'a>,
    waited_for: &dyn Fn() -> bool,
    found: &mut Vec<Diagnostic>,
) -> Option<Vec<Placed<'a>>> {
    let (mut above, mut jobs, mut seen) = (0, Vec::new(), HashSet::new());
    let mut shared = Names::default();
    for section in sections {
        for setting in &section.options {
            let before = found.len();
            advice::refuse(setting, found);
            // One mistake is one error.
            if found.len() == before {
                values::check(setting, variables, found);
            }
        }
        if section.is_global() {
            above += section.options.len();
            shared = shared.after(&section.options, variables);
            continue;
        }
        if !waited_for() {
            return None;
        }
        if found.len() >= MOST_REMARKS {
            break;
        }
        if !seen.insert(section.name) {
            found.push(Diagnostic::error(
                section.span.clone(),
                format!("two sections are named `{}`", section.name),
                "use unique names: results are listed by name",
            ));
            continue;
        }
        check::name(section, found);
        let names = shared.after(&section.options, variables);
        let job =
            Job { section: section.name, global: &global[..above], own: &section.options, variables, names };
        check::job(&job, &section.span, found);
        let files = job.uses().unwrap_or_else(|wrong| {
            let message = format!("`{}` {wrong}", shortened(job.section));
            found.push(Diagnostic::error(
                section.span.clone(),
                message,
                "name fewer files, and shorter ones",
            ));
            Vec::new()
        });
        let waits = job.on(&["stonewall", "wait_for_previous"]) == Some(true);
        let joins = job.on(&["group_reporting"]) == Some(true) && job.on(&["new_group"]) != Some(true);
        jobs.push(Placed { job, span: section.span.clone(), files, waits, joins });
    }
    Some(jobs)
}

/// Jobs that run side by side.
fn cut<'p, 'a>(jobs: &'p [Placed<'a>]) -> Vec<Vec<&'p Placed<'a>>> {
    let mut stages: Vec<Vec<&Placed<'_>>> = Vec::new();
    for job in jobs {
        match stages.last_mut() {
            Some(stage) if !job.waits => stage.push(job),
            _ => stages.push(vec![job]),
        }
    }
    stages
}

fn stage(
    text: &Arc<str>,
    seed: u64,
    index: usize,
    jobs: &[&Placed<'_>],
    found: &mut Vec<Diagnostic>,
) -> Stage {
    let sections: Arc<[String]> = jobs.iter().map(|placed| placed.job.section.to_owned()).collect();
    let mut groups: Vec<Vec<&Placed<'_>>> = Vec::new();
    for placed in jobs {
        match groups.last_mut() {
            Some(group) if placed.joins => group.push(placed),
            _ => groups.push(vec![placed]),
        }
    }
    let works: Vec<Work> = groups
        .iter()
        .enumerate()
        .map(|(number, group)| work(text, seed, [index as u64, number as u64], &sections, group))
        .collect();
    let mut names = HashSet::new();
    for (work, group) in works.iter().zip(&groups) {
        if !names.insert(&work.name) {
            found.push(Diagnostic::error(
                group[0].span.clone(),
                format!("two concurrent jobs are named `{}`", work.name),
                "use unique `name`s: results are listed by name",
            ));
        }
    }
    Stage {
        name: shortened(&sections.join(", ")),
        works,
        pause_ns: 0,
        trigger: None,
        number: None,
        on_failure: OnFailure::Stop,
        cell: None,
    }
}

/// The work of a section, or of several that fio reports as one (`group_reporting`) under the first one's name.
fn work(
    text: &Arc<str>,
    seed: u64,
    stream: [u64; 2],
    sections: &Arc<[String]>,
    group: &[&Placed<'_>],
) -> Work {
    let first = &group[0].job;
    let all = || group.iter().map(|placed| &placed.job);
    let mut labels: Vec<(Action, f64, String)> = Vec::new();
    for job in all() {
        let directions = job.directions().unwrap_or_default().into_iter().filter(|(_, share)| *share > 0.0);
        let reads_back = job.reads_back().then_some((Action::Read, 0.0));
        for (action, share) in directions.chain(reads_back).chain(job.sync().map(|sync| (sync, 0.0))) {
            if !labels.iter().any(|(known, ..)| *known == action) {
                labels.push((action, share, options(job)));
            }
        }
    }
    labels.sort_by_key(|(action, ..)| matches!(action, Action::Fsync | Action::Fdatasync));
    let actions: Vec<Action> = labels.iter().map(|(action, ..)| *action).collect();
    let count = |job: &Job<'_>, names: &[&str]| job.number(names).unwrap_or(1).clamp(1, u64::from(u32::MAX));
    let workers =
        all().map(|job| count(job, &["numjobs"])).sum::<u64>().min(u64::from(defaults::MOST_WORKERS));
    let longest = |names: &[&str]| all().filter_map(|job| job.time_ns(names)).max().filter(|time| *time > 0);
    Work {
        name: first.shown().to_owned(),
        kind: WorkKind::Normal,
        load: Load {
            workers: workers as u32,
            depth: all().map(Job::depth).max().unwrap_or(1).clamp(1, u64::from(u32::MAX)) as u32,
            connections: None,
            pacing: Pacing::BACK_TO_BACK,
            stop: Stop {
                warm_up_ns: longest(&["ramp_time"]).unwrap_or(0),
                window_ns: longest(&["runtime", "timeout"]),
                drain_ns: defaults::DRAIN_NS,
                ..Stop::default()
            },
            source: source(first, &labels),
            finale: None,
            copies: 1,
            actions: labels.len() as u16,
            seed,
            stream,
        },
        job: AnyJob::new(FioFile {
            text: text.clone(),
            sections: sections.clone(),
            section: first.section.to_owned(),
            actions,
            direct: all().all(|job| job.on(&["direct"]) == Some(true)),
            files: together(group.iter().flat_map(|placed| placed.files.iter().cloned())),
            buffers: distinct(all().filter_map(Job::buffers)),
            reads_back: all().any(Job::verifies_afterwards),
            syncs_ranges: all().any(|job| job.value(&["sync_file_range"]).is_some()),
            images: distinct(all().filter_map(Job::image)),
            elsewhere: distinct(all().filter(|job| !job.on_files()).flat_map(Job::named)),
            logs: distinct(all().flat_map(Job::logs)),
            remote: distinct(all().filter_map(Job::remote)),
        }),
        labels: labels.into_iter().map(label).collect(),
        allowed_failures_per_million: 0,
        driver: None,
    }
}

/// What the load core would do in its place: for those who look at a plan. fio makes its own choices.
fn source(job: &Job<'_>, labels: &[(Action, f64, String)]) -> SourcePlan {
    let moves = |action: &Action| matches!(action, Action::Read | Action::Write | Action::Trim);
    let choice = |(index, (_, weight, _)): (usize, &(Action, f64, String))| Choice {
        action: index as u16,
        weight: *weight,
        spaces: Pick::Constant(1),
        items: Pick::Constant(0),
        bytes: Size { pick: Pick::Constant(job.block_bytes()), unit: 1 },
        division: Division::None,
        effect: Effect::Free,
        order: Order::Picked,
        follow: None,
    };
    let drawn = labels.iter().enumerate().filter(|(_, (action, share, _))| moves(action) && *share > 0.0);
    let choices = drawn.map(choice).collect();
    SourcePlan::Mix { choices, pool: None, deck: false }
}

fn label((action, weight, config): (Action, f64, String)) -> Label {
    let name = action.name().to_owned();
    let class = OperationClass::named(&name);
    Label { label: name.clone(), kind: name, class, verifies: false, weight, config }
}

/// Each once, in the order of the first.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

/// A job's options on one line, secrets left out.
fn options(job: &Job<'_>) -> String {
    let shown = |setting: &Setting<'_>| match (setting.value, is_secret(setting.name)) {
        ("", _) => setting.name.to_owned(),
        (_, true) => format!("{}=***", setting.name),
        (value, false) => format!("{}={value}", setting.name),
    };
    job.settings().map(shown).collect::<Vec<_>>().join(" ")
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    name.chars().take(LONGEST_NAME - 1).chain(['…']).collect()
}
