//! A native cell in fio's words: one job file, and one fio process, for each client.
//!
//! The job mirrors the cell option by option, so that fio's numbers can stand beside Tidemark's own. What fio cannot
//! mirror is refused by name; what it can only mirror roughly (whole percents) is remarked.

mod ways;

use crate::document::KEYWORDS;
use crate::domain;
use rustix::io::Errno;
use std::ffi::OsString;
use std::fmt::Write as _;
use tidemark_block::job::{Action, FILL_BYTES, Job, Place, Volume};
use tidemark_load::engine::OpenError;
use tidemark_load::pacing::{Arrivals, Pacing, Rate};
use tidemark_load::source::SourcePlan;
use tidemark_load::work::Work;
use tidemark_measure::pick::Part;
use tidemark_measure::rng;
use tidemark_measure::think::Think;
use tidemark_plan::plan;
use tidemark_sandbox::Sandbox;
use ways::{Mix, percent};

/// One fio process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its job file.
    pub text: String,
    /// The sections that it runs; empty: all of them.
    pub sections: Vec<String>,
    /// What is added to its environment.
    pub environment: Vec<(String, OsString)>,
    /// Where the mirror is not exact, in whole sentences.
    pub remarks: Vec<String>,
    /// Where it may write.
    pub sandbox: Sandbox,
}

/// The processes that do what a native work would do: one per client; of a prefill, one per volume. They may write to the devices with the
/// numbers `devices`.
///
/// # Errors
/// When fio cannot do the same; names what.
pub fn processes(work: &plan::Work, job: &Job, devices: &[u64]) -> Result<Vec<Process>, OpenError> {
    if job.content.verify {
        return Err(cannot("verify reads", "set `verify: false`"));
    }
    if work.load.stop.steady.is_some() {
        return Err(cannot("wait for a steady state", "use `warm_up` instead"));
    }
    if work.load.stop.until_steady_ns.is_some() {
        return Err(cannot(
            "end when the load is steady",
            "leave `until_steady` out, or use the native engine",
        ));
    }
    match &work.load.source {
        SourcePlan::Scan { action, spaces, .. } => {
            if job.actions.get(usize::from(*action)) != Some(&Action::Write) {
                return Err(cannot("scan volumes except to write them", "use the native engine"));
            }
            let (low, high) = spaces.unwrap_or((1, 0));
            (low..=high).map(|space| fill(work, job, space, devices)).collect()
        }
        SourcePlan::Mix { choices, .. } => {
            let of = work.load.workers;
            let client = |index| {
                let part = Part { index, of };
                load(work, job, part, &Mix::of(choices, job, part)?, devices)
            };
            (0..of).map(client).collect()
        }
        SourcePlan::Rounds { .. } => Err(cannot("go through a list of actions", "use the native engine")),
    }
}

fn cannot(what: &str, remedy: &str) -> OpenError {
    OpenError(format!("fio cannot {what} as Tidemark does: {remedy}, or remove `engine: fio`"))
}

/// Options, one per line.
struct Options(String);

impl Options {
    fn section(&mut self, name: &str) {
        let _ = writeln!(self.0, "[{name}]");
    }

    fn set(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name}={value}");
    }
}

/// The job that fills one volume; a rest shorter than an operation of a prefill is a second job after it.
fn fill(work: &plan::Work, job: &Job, space: u64, devices: &[u64]) -> Result<Process, OpenError> {
    let volume = volume(job, space)?;
    let mut options = Options(String::new());
    let rest = volume.size % FILL_BYTES;
    let parts = [("fill", 0, volume.size - rest, FILL_BYTES), ("rest", volume.size - rest, rest, rest)];
    let mut environment = Vec::new();
    for (index, (name, offset, size, block)) in parts.into_iter().filter(|part| part.2 > 0).enumerate() {
        options.section(&format!("{name}-{space}"));
        if index > 0 {
            options.set("stonewall", 1);
        }
        environment = place(&mut options, job, volume)?;
        options.set("rw", "write");
        options.set("bs", block);
        options.set("offset", offset);
        options.set("size", size);
        options.set("iodepth", work.load.depth.max(1));
        options.set("end_fsync", 1);
        options.set("randseed", seed(&work.load, space));
        content(&mut options, job);
        latencies(&mut options);
    }
    let remarks =
        vec!["fio filled the volumes, one process per volume; it reports no latency of end_fsync.".into()];
    let sandbox = domain::of_volume(volume, true, true, devices);
    Ok(Process { text: options.0, sections: Vec::new(), environment, remarks, sandbox })
}

/// The job of one client.
fn load(work: &plan::Work, job: &Job, part: Part, mix: &Mix, devices: &[u64]) -> Result<Process, OpenError> {
    let volume = volume(job, mix.space)?;
    let (mut options, mut remarks) = (Options(String::new()), mix.remarks.clone());
    options.section(&format!("client-{}", part.index + 1));
    let environment = place(&mut options, job, volume)?;
    // A file that is not there or too short is never made up: it would read as zeroes that no device delivered.
    options.set("allow_file_create", 0);
    let offset = mix.items.0.saturating_mul(job.unit);
    let end = (mix.items.1 + 1).saturating_mul(job.unit).min(volume.size);
    options.set("offset", offset);
    options.set("size", end.saturating_sub(offset));
    mix.write(&mut options, job);
    let depth = work.load.depth.max(1);
    options.set("iodepth", depth);
    // Without a batch size the native engine submits what is ready and takes what has ended: fio is configured to do the same.
    let submit = job.batch.unwrap_or(depth).clamp(1, depth);
    options.set("iodepth_batch_submit", submit);
    options.set("iodepth_batch_complete_min", job.batch.unwrap_or(1).clamp(1, depth));
    options.set("iodepth_batch_complete_max", submit);
    options.set("norandommap", 1);
    options.set("randrepeat", 0);
    options.set("randseed", seed(&work.load, u64::from(part.index) + 1));
    stop(&mut options, &work.load, part)?;
    pacing(&mut options, &work.load, part, mix, &mut remarks)?;
    if let Some(finale) = &work.load.finale {
        match job.actions.get(usize::from(finale.action)) {
            Some(Action::Fsync | Action::Fdatasync) => options.set("end_fsync", 1),
            _ => return Err(cannot("end with anything but a sync", "remove it")),
        }
        remarks.push("fio syncs at the end of the run (end_fsync) and does not report the duration.".into());
    }
    content(&mut options, job);
    latencies(&mut options);
    let writes = job.actions.iter().any(|action| action.changes());
    let sandbox = domain::of_volume(volume, writes, false, devices);
    Ok(Process { text: options.0, sections: Vec::new(), environment, remarks, sandbox })
}

fn volume(job: &Job, space: u64) -> Result<&Volume, OpenError> {
    let index = (space as usize).wrapping_sub(1);
    job.volumes.get(index).ok_or_else(|| OpenError(format!("there is no volume {space}")))
}

/// The engine and where it works.
fn place(options: &mut Options, job: &Job, volume: &Volume) -> Result<Vec<(String, OsString)>, OpenError> {
    let mut environment = Vec::new();
    match &volume.place {
        Place::File(path) | Place::Device(path) => {
            options.set("ioengine", "io_uring");
            options.set("fixedbufs", 1);
            options.set("registerfiles", 1);
            if job.polled {
                options.set("hipri", 1);
            }
            let path = sayable(path.to_str().map(str::to_owned), &volume.name())?;
            options.set("filename", path.replace(':', "\\:"));
            options.set("fallocate", "none");
        }
        Place::Rbd(rbd) => {
            if job.polled {
                return Err(cannot("poll an RBD image", "remove `polled`"));
            }
            options.set("ioengine", "rbd");
            options.set("clientname", sayable(Some(rbd.user.clone()), &rbd.user)?);
            options.set("pool", sayable(Some(rbd.pool.clone()), &rbd.pool)?);
            options.set("rbdname", sayable(Some(rbd.image.clone()), &rbd.image)?);
            environment.extend(rbd.conf.iter().map(|conf| ("CEPH_CONF".to_owned(), conf.into())));
        }
    }
    options.set("direct", u8::from(job.direct));
    options.set("thread", 0);
    options.set("group_reporting", 1);
    Ok(environment)
}

/// A value that fio reads back unchanged: its job files cut lines at `;` and `#`, and fio replaces `${...}` and its keywords.
fn sayable(value: Option<String>, name: &str) -> Result<String, OpenError> {
    let fits = |value: &String| {
        !value.contains([';', '#', '\n', '\r', '\'', '"', '\\'])
            && !value.contains("${")
            && !KEYWORDS.iter().any(|keyword| value.contains(keyword))
            && value.trim() == value
    };
    value.filter(fits).ok_or_else(|| {
        OpenError(format!(
            "fio's job files cannot name `{name}`: use a name without spaces at its ends, ; # \" ' \\ ${{ $pagesize $mb_memory or $ncpus"
        ))
    })
}

fn stop(options: &mut Options, work: &Work, part: Part) -> Result<(), OpenError> {
    let stop = &work.stop;
    let milliseconds = |ns: u64| format!("{}ms", ns.div_ceil(1_000_000));
    if let Some(window) = stop.window_ns {
        options.set("time_based", 1);
        options.set("runtime", milliseconds(window));
    }
    let ramp = stop.ramp_up_ns.saturating_add(stop.warm_up_ns);
    if ramp > 0 {
        options.set("ramp_time", milliseconds(ramp));
    }
    if let Some(operations) = stop.operations {
        options.set("number_ios", part.share(operations).max(1));
    }
    if let Some(bytes) = stop.bytes {
        options.set("io_size", part.share(bytes).max(1));
    }
    match stop.window_ns.is_none() && stop.operations.is_none() && stop.bytes.is_none() {
        true => Err(OpenError("the load has no end: set `for`, `total_operations` or `total_bytes`".into())),
        false => Ok(()),
    }
}

fn pacing(
    options: &mut Options,
    work: &Work,
    part: Part,
    mix: &Mix,
    remarks: &mut Vec<String>,
) -> Result<(), OpenError> {
    match &work.pacing {
        Pacing::Closed { think } if think.is_none() => {}
        Pacing::Closed { .. } if work.depth > 1 => {
            return Err(cannot("think at a depth above 1", "use depth 1"));
        }
        Pacing::Closed { think: Think::Constant { ns } } => options.set("thinktime", ns.div_ceil(1_000)),
        Pacing::Closed { .. } | Pacing::Terminals { .. } => {
            return Err(cannot("draw think times at random", "use one duration, such as `think: 100ms`"));
        }
        Pacing::Open { rate, arrivals } => {
            let total = constant(rate)
                .ok_or_else(|| cannot("change its rate over time", "use one rate for the whole load"))?;
            let own = part.share(total.round() as u64);
            // fio paces every direction by itself; 0 is no limit.
            let paced =
                |share: f64| if share > 0.0 { (own as f64 * share).round().max(1.0) as u64 } else { 0 };
            let [read, write, trim] = mix.shares().map(paced);
            options.set("rate_iops", format!("{read},{write},{trim}"));
            if *arrivals == Arrivals::Poisson {
                options.set("rate_process", "poisson");
            }
            remarks.push(
                "fio paces the load itself (rate_iops): latencies count from submission, so they do not include \
                 the wait behind a slow operation."
                    .into(),
            );
        }
    }
    Ok(())
}

fn constant(rate: &Rate) -> Option<f64> {
    let (_, first) = *rate.points.first()?;
    rate.points.iter().all(|(_, other)| *other == first).then_some(first).filter(|rate| *rate >= 1.0)
}

fn content(options: &mut Options, job: &Job) {
    let compressible = percent(job.content.compressible);
    let duplicate = percent(job.content.duplicate);
    if compressible > 0 {
        options.set("buffer_compress_percentage", compressible);
    }
    if duplicate > 0 {
        options.set("dedupe_percentage", duplicate);
    }
    if compressible > 0 || duplicate > 0 {
        options.set("refill_buffers", 1);
    }
}

fn latencies(options: &mut Options) {
    options.set("lat_percentiles", 1);
    options.set("clat_percentiles", 1);
}

/// A seed of 32 bits for a client: the plan's choices, its own.
fn seed(work: &Work, client: u64) -> u64 {
    rng::mix(work.seed, &[work.stream[0], work.stream[1], client]) & u64::from(u32::MAX)
}

/// Checks that a load's files exist and are large enough: fio 3.33 deletes a file that is too short
/// when it reads from it, to lay it out anew.
///
/// # Errors
/// When one is not, with the remedy.
pub(crate) fn check_files(work: &plan::Work, job: &Job) -> Result<(), OpenError> {
    if matches!(work.load.source, SourcePlan::Scan { .. }) {
        return Ok(());
    }
    for volume in &job.volumes {
        let Place::File(path) = &volume.place else { continue };
        let reason = match std::fs::metadata(path) {
            Ok(metadata) if metadata.len() >= volume.size => continue,
            Ok(metadata) => format!("has {} bytes, but {} are required", metadata.len(), volume.size),
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => {
                "does not exist".into()
            }
            Err(error) => format!("cannot be read: {error}"),
        };
        return Err(OpenError(format!("{} {reason}: prefill it first", path.display())));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
