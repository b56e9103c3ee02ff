//! fio's job files that came over the network: only options that are known to run no program and to name no file, and
//! files where they may lie.
//!
//! The list is of what is allowed, so that options of a later fio are refused until they are reviewed. It holds the
//! options of fio 3.33 (HOWTO, "Job file parameters") without those that run programs or load code (`exec_prerun`,
//! `exec_postrun`, `profile`, the engines `exec` and `external`), read or write other files (`read_iolog`, `write_iolog`,
//! `write_*_log`, `opendir`, `merge_blktrace_file`, `replay_*`, `verify_state_load`, `verify_dump`, `error_dump`), and
//! change the machine (`ioscheduler`, `cgroup`, `uid`, `gid`).

use crate::document;
use crate::document::ini::{self, GLOBAL, LONGEST_LINE, Section, Setting};
use crate::file::FioFile;
use std::path::Path;
use tidemark_plan::diagnostic::Severity;
use tidemark_plan::policy::Policy;

/// Engines that work on the files and devices that a job names, or on nothing.
const ENGINES: [&str; 22] = [
    "psync",
    "sync",
    "vsync",
    "pvsync",
    "pvsync2",
    "io_uring",
    "io_uring_cmd",
    "libaio",
    "posixaio",
    "mmap",
    "splice",
    "sg",
    "mtd",
    "falloc",
    "ftruncate",
    "filecreate",
    "filestat",
    "filedelete",
    "libpmem",
    "dev-dax",
    "null",
    "cpuio",
];

/// Engines that speak to others over the network.
const NETWORK: [&str; 4] = ["net", "netsplice", "nbd", "rdma"];

/// Engines that use Ceph's configuration and keys.
const CEPH: [&str; 2] = ["rbd", "rados"];

/// Options whose values are numbers, switches and words: whatever they say, they touch nothing else.
#[rustfmt::skip]
const HARMLESS: [&str; 214] = [
    "kb_base", "unit_base", "description", "loops", "numjobs", "runtime", "timeout", "time_based", "startdelay",
    "ramp_time", "clocksource", "gtod_reduce", "gtod_cpu", "unique_filename", "lockfile", "nrfiles", "nr_files",
    "openfiles", "file_service_type", "create_serialize", "create_fsync", "create_on_open", "create_only",
    "allow_file_create", "allow_mounted_write", "pre_read", "unlink", "unlink_each_loop", "zonemode", "zonerange",
    "zonesize", "zonecapacity", "zoneskip", "read_beyond_wp", "max_open_zones", "job_max_open_zones",
    "ignore_zone_limits", "zone_reset_threshold", "zone_reset_frequency", "direct", "atomic", "buffered", "readwrite",
    "rw", "rw_sequencer", "unified_rw_reporting", "randrepeat", "allrandrepeat", "randseed", "fallocate",
    "fadvise_hint", "write_hint", "offset", "fileoffset", "offset_align", "offset_increment", "number_ios", "fsync",
    "fdatasync", "write_barrier", "sync_file_range", "overwrite", "end_fsync", "fsync_on_close", "rwmixread",
    "rwmixwrite", "random_distribution", "percentage_random", "norandommap", "softrandommap", "random_generator",
    "blocksize", "bs", "blocksize_range", "bsrange", "bssplit", "blocksize_unaligned", "bs_unaligned",
    "bs_is_seq_rand", "blockalign", "ba", "zero_buffers", "refill_buffers", "scramble_buffers",
    "buffer_compress_percentage", "buffer_compress_chunk", "buffer_pattern", "dedupe_percentage", "dedupe_mode",
    "dedupe_working_set_percentage", "dedupe_global", "invalidate", "sync", "iomem_align", "mem_align",
    "hugepage-size", "lockmem", "size", "io_size", "io_limit", "filesize", "file_append", "fill_device", "fill_fs",
    "cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_bssplit", "fixedbufs", "nonvectored", "force_async",
    "registerfiles", "sqthread_poll", "sqthread_poll_cpu", "cmd_type", "hipri", "hipri_percentage", "uncached",
    "nowait", "userspace_reap", "cpuload", "cpuchunks", "cpumode", "exit_on_io_done", "thp", "port", "hostname",
    "interface", "ttl", "nodelay", "listen", "pingpong", "window_size", "mss", "verb", "bindname",
    "busy_poll", "touch_objects", "skip_bad", "stat_type", "readfua", "writefua",
    "sg_write_mode", "stream_id", "iodepth", "iodepth_batch_submit", "iodepth_batch", "iodepth_batch_complete_min",
    "iodepth_batch_complete", "iodepth_batch_complete_max", "iodepth_low", "serialize_overlap", "io_submit_mode",
    "thinktime", "thinktime_spin", "thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime", "rate", "rate_min",
    "ratemin", "rate_iops", "rate_iops_min", "rate_process", "rate_ignore_thinktime", "rate_cycle", "ratecycle",
    "latency_target", "latency_window", "latency_percentile", "latency_run", "max_latency", "thread", "wait_for",
    "nice", "prio", "prioclass", "cpus_allowed", "cpus_allowed_policy", "cpumask", "numa_cpu_nodes", "numa_mem_policy",
    "flow_id", "flow", "flow_sleep", "stonewall", "wait_for_previous", "exitall", "exit_what", "exitall_on_error",
    "verify_only", "do_verify", "verify", "verify_offset", "verify_interval", "verify_pattern", "verify_fatal",
    "verify_async", "verify_async_cpus", "verify_backlog", "verify_backlog_batch", "verifysort", "trim_percentage",
    "trim_verify_zero", "trim_backlog", "trim_backlog_batch", "experimental_verify", "group_reporting", "new_group",
    "stats", "disk_util", "disable_lat", "disable_clat", "disable_slat",
];

/// More of them, on what is measured and reported.
#[rustfmt::skip]
const REPORTING: [&str; 21] = [
    "steadystate", "ss", "steadystate_duration", "ss_dur", "steadystate_ramp_time", "ss_ramp", "disable_bw_measurement",
    "disable_bw", "slat_percentiles", "clat_percentiles", "lat_percentiles", "percentile_list", "significant_figures",
    "continue_on_error", "ignore_error", "block_error_percentiles", "bwavgtime", "iopsavgtime", "per_job_logs",
    "log_avg_msec", "log_unix_epoch",
];

/// Whether an option touches nothing else, whatever its value.
fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || REPORTING.contains(&name)
}

/// Whether a job file stays within what is allowed.
pub(crate) fn check(policy: &Policy, who: &str, file: &FioFile) -> Result<(), String> {
    if let Some(number) = file.text.lines().position(|line| line.len() > LONGEST_LINE) {
        let line = number + 1;
        return Err(format!(
            "{who}: line {line} of the fio job file is longer than {LONGEST_LINE} bytes: split it into several options"
        ));
    }
    // The plan may not have been made from this text by this reader.
    // Variables are refused below, whatever they stand for.
    if let Err(found) = document::read(&file.text, &|_| Some("1".into()), &|| true) {
        let error = found.iter().find(|remark| remark.severity == Severity::Error);
        let (message, help) = error.map_or(("it cannot be read", ""), |e| (&e.message, &e.help));
        return Err(format!("{who}: the fio job file is rejected: {message}: {help}"));
    }
    let (mut global, sections) = (InForce::default(), ini::sections(&file.text, &mut Vec::new()));
    for section in &sections {
        // fio takes every name that begins so for the global section.
        let begins = section.is_global();
        if begins && section.name.len() > GLOBAL.len() {
            return Err(format!("{who}: fio would take [{}] for [{GLOBAL}]: rename it", section.name));
        }
        let own = Reading { policy, who, section };
        own.options()?;
        let in_force = InForce {
            directory: own.value("directory").or(global.directory),
            filename: own.value("filename").or(global.filename),
            engine: own.value("ioengine").or(global.engine),
        };
        own.files(in_force.directory)?;
        match begins {
            true => global = in_force,
            false => own.somewhere(&in_force)?,
        }
    }
    file.paths().try_for_each(|path| policy.allow(who, path))
}

/// Whether a text has no blanks but spaces and no control characters: what fio makes of others differs from what they look
/// like.
fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || (c.is_whitespace() && c != ' '))
}

/// Whether a format of names has a `$` that is none of the [known](document::KNOWN_VARIABLES) variables.
fn has_other_variables(format: &str) -> bool {
    document::KNOWN_VARIABLES
        .iter()
        .fold(format.to_owned(), |rest, variable| rest.replace(variable, ""))
        .contains('$')
}

/// What decides where a section's files are: its own options, or those of the global sections before it.
#[derive(Clone, Copy, Default)]
struct InForce<'a> {
    directory: Option<&'a str>,
    filename: Option<&'a str>,
    engine: Option<&'a str>,
}

/// One section of a job file.
struct Reading<'a> {
    policy: &'a Policy,
    who: &'a str,
    section: &'a Section<'a>,
}

impl<'a> Reading<'a> {
    /// The last value of an option, if it has one.
    fn value(&self, name: &str) -> Option<&'a str> {
        let settings = self.section.options.iter().rev();
        settings
            .filter(|setting| setting.name == name)
            .map(|setting| setting.value)
            .find(|value| !value.is_empty())
    }

    fn refuse(&self, setting: &Setting<'_>, why: &str) -> Result<(), String> {
        let (who, section) = (self.who, self.section.name);
        Err(format!("{who}: `{}={}` in [{section}] of the fio job file {why}", setting.name, setting.value))
    }

    /// Every option by itself.
    fn options(&self) -> Result<(), String> {
        if !is_plain(self.section.name) || self.section.name.contains('$') {
            return Err(format!(
                "{}: the section [{}] of the fio job file has a name with `$`, a control character or a blank other than a \
                 space: rename it",
                self.who,
                self.section.name.escape_default()
            ));
        }
        if self.section.name.contains('/') {
            return Err(format!(
                "{}: the section [{}] of the fio job file would name files elsewhere: remove `/` from its name",
                self.who, self.section.name
            ));
        }
        self.section.options.iter().try_for_each(|setting| self.option(setting))
    }

    fn option(&self, setting: &Setting<'_>) -> Result<(), String> {
        let value = setting.value;
        if !is_plain(setting.name) || !is_plain(value) {
            return Err(format!(
                "{}: `{}` in [{}] of the fio job file has a control character or a blank other than a space, which fio would \
                 take for a part of a name: remove it",
                self.who,
                setting.name.escape_default(),
                self.section.name
            ));
        }
        if value.contains("${") {
            return self
                .refuse(setting, "uses a variable of the driver's environment: write the value itself");
        }
        if value.contains('\'') {
            return self.refuse(
                setting,
                "has a single quote, which fio uses for file names and commands: remove it",
            );
        }
        if document::KEYWORDS.iter().any(|keyword| value.contains(keyword)) {
            return self.refuse(setting, "has a keyword that fio passes to a shell: write the number itself");
        }
        match setting.name {
            // Looked at together.
            "directory" | "filename" => Ok(()),
            "name" if value.contains('$') => self.refuse(setting, "names files with `$`: write the name itself"),
            "filename_format" if has_other_variables(value) => self.refuse(
                setting,
                "has a `$` that is neither of $jobname, $jobnum and $filenum: write the name itself",
            ),
            "name" | "filename_format" if value.contains('/') => {
                self.refuse(setting, "would name files elsewhere: remove `/`, and use `directory`")
            }
            "name" | "filename_format" => Ok(()),
            "mem" | "iomem" => match value.split_once(':') {
                Some((_, path)) => self.policy.allow(self.who, Path::new(path)),
                None => Ok(()),
            },
            "conf" => self.policy.ceph(self.who, Some(Path::new(value))),
            "clustername" => {
                self.policy.ceph_name(self.who, value)?;
                self.policy.ceph(self.who, Some(&Policy::ceph_conf_of(value)))
            }
            "clientname" | "pool" | "rbdname" => self.policy.ceph_name(self.who, value),
            "ioengine" if ENGINES.contains(&value) || NETWORK.contains(&value) => Ok(()),
            "ioengine" if CEPH.contains(&value) => self.policy.ceph(self.who, None),
            "ioengine" => self.refuse(
                setting,
                "is not an engine that a driver allows in submitted plans: use io_uring, libaio, psync or another one \
                 that works on files",
            ),
            "protocol" | "proto" if !value.eq_ignore_ascii_case("unix") => Ok(()),
            "uri" if value.starts_with("nbd://") => Ok(()),
            "protocol" | "proto" | "uri" => {
                self.refuse(setting, "would open a socket in the driver's file system: use an address")
            }
            "verify_state_save" if matches!(value, "0" | "false") => Ok(()),
            name if is_harmless(name) => Ok(()),
            _ => self.refuse(
                setting,
                "is not an option that a driver allows in submitted plans: remove it, or run the file with fio itself \
                 on that machine",
            ),
        }
    }

    /// The files that its options name, all of them, whatever fio makes of several.
    fn files(&self, directory: Option<&str>) -> Result<(), String> {
        for setting in &self.section.options {
            let is_filename = setting.name == "filename";
            if !is_filename && setting.name != "directory" {
                continue;
            }
            if setting.value.contains('$') {
                return self.refuse(setting, "has a `$`: write the path itself");
            }
            if setting.value.is_empty() || setting.value.contains('\\') {
                return self.refuse(setting, "is not a plain path: write an absolute path without `\\`");
            }
            for path in setting.value.split(':').map(Path::new) {
                match directory {
                    Some(directories) if is_filename && path.is_relative() => {
                        let mut places = directories.split(':').map(|place| Path::new(place).join(path));
                        places.try_for_each(|path| self.policy.allow(self.who, &path))?;
                    }
                    _ => self.policy.allow(self.who, path)?,
                }
            }
        }
        Ok(())
    }

    /// Whether a job names a place for its files: without one, fio creates them in its working directory.
    fn somewhere(&self, in_force: &InForce<'_>) -> Result<(), String> {
        let engine = in_force.engine.unwrap_or(ENGINES[0]);
        let without_files =
            ["null", "cpuio"].contains(&engine) || NETWORK.contains(&engine) || CEPH.contains(&engine);
        if without_files || in_force.directory.is_some() || in_force.filename.is_some() {
            return Ok(());
        }
        Err(format!(
            "{}: the job [{}] of the fio job file names no place for its files: add `directory` or `filename`",
            self.who, self.section.name
        ))
    }
}

#[cfg(test)]
mod tests;
