//! Images of a Ceph cluster looked at, made, marked and removed with the `rbd` program.
//!
//! An image that Tidemark makes or writes to has a *mark* among its metadata: when it was last modified, and a hash of its
//! first MiB. Ceph notes modifications about once a minute (`rbd_mtime_update_interval`), so the hash finds what is put
//! on an image, a file system for instance, soon after Tidemark's last write.
//!
//! Keys stay in the cluster's keyring: nothing here reads or prints them.

use serde::Deserialize;
use std::io::Read as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tidemark_block::Image;
use tidemark_block::job::{Place, Rbd, Volume};
use tidemark_measure::rng::mix;

/// How long one call of `rbd` or `ceph` may take; removing a large image takes its time.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
const TIMEOUT_TO_REMOVE: Duration = Duration::from_secs(900);

/// The metadata of images that Tidemark made or wrote to.
const MARK: &str = "tidemark";

/// Bytes at the start of an image that its mark covers.
const HEAD: u64 = 1 << 20;

/// An image could not be made, checked or removed.
#[derive(Debug, thiserror::Error)]
pub enum RbdError {
    /// The program is not there.
    #[error(
        "the programs `rbd` and `ceph` are not installed: install the package `ceph-common` (apt install ceph-common)"
    )]
    Absent,
    /// The volume is no image.
    #[error("{0} is not an RBD image")]
    NoImage(String),
    /// An image of that name has another size.
    #[error(
        "the RBD image {name} has {actual} bytes, the document requires {wanted}: change the document's size, \
         remove the image (`rbd rm {name}`), or use another name"
    )]
    Size {
        /// Pool and image.
        name: String,
        /// Its size in bytes.
        actual: u64,
        /// The required size, bytes.
        wanted: u64,
    },
    /// An image is not to be removed.
    #[error("the RBD image {name} was kept: {reason}; to remove it, add `--allow-destroy {name}`")]
    Kept {
        /// Pool and image.
        name: String,
        /// Whose it is.
        reason: String,
    },
    /// Images that no common counters cover.
    #[error("{0}")]
    Mixed(&'static str),
    /// `rbd` or `ceph` failed.
    #[error("`{command}` failed: {stderr}")]
    Failed {
        /// The command without the program's options.
        command: String,
        /// What it said.
        stderr: String,
    },
}

/// What `rbd info` tells of an image, as far as it matters.
#[derive(Debug, Deserialize)]
struct Info {
    size: u64,
    /// The pool of its data, where that is another one than its own.
    #[serde(default)]
    data_pool: Option<String>,
    #[serde(default)]
    modify_timestamp: String,
    #[serde(default)]
    features: Vec<String>,
    #[serde(default)]
    snapshot_count: u64,
    #[serde(default)]
    parent: serde_json::Value,
}

/// What is there by the name of a volume's image.
///
/// # Errors
/// When the volume is no image, or the cluster does not answer.
pub fn find(volume: &Volume) -> Result<Image, RbdError> {
    let Some(info) = info(volume)? else { return Ok(Image::Absent) };
    if let Some(watcher) = watcher(volume)? {
        return Ok(Image::InUse(watcher));
    }
    let mark = call(volume, "image-meta", &["get"], &[MARK])?;
    if !mark.status.success() {
        let size = info.size;
        return Ok(match is_blank(volume, &info)? {
            true => Image::Blank,
            false => Image::Foreign(format!("it is an RBD image of {size} bytes that Tidemark did not make")),
        });
    }
    Ok(match String::from_utf8_lossy(&mark.stdout).trim() == mark_of(volume, &info)? {
        true => Image::Ours,
        false => Image::Foreign("it was written to after Tidemark's last run on it".into()),
    })
}

/// Ensures that a volume's image exists with its size. `true`: it was created, and marked.
///
/// # Errors
/// When the volume is no image, has another size, or the cluster does not do it.
pub fn ensure(volume: &Volume) -> Result<bool, RbdError> {
    if let Some(info) = info(volume)? {
        let (actual, wanted) = (info.size, volume.size);
        return match actual == wanted {
            true => Ok(false),
            false => Err(RbdError::Size { name: volume.name(), actual, wanted }),
        };
    }
    let size = format!("{}B", volume.size);
    succeed(volume, "create", &[], &["--size", &size])?;
    mark(volume)?;
    Ok(true)
}

/// Marks a volume's image as written to by Tidemark up to now.
///
/// # Errors
/// When the volume is no image, there is none, or the cluster does not do it.
pub fn mark(volume: &Volume) -> Result<(), RbdError> {
    let info = info(volume)?.ok_or_else(|| failed("info", volume, "there is no such image"))?;
    let mark = mark_of(volume, &info)?;
    succeed(volume, "image-meta", &["set"], &[MARK, &mark]).map(drop)
}

/// Removes a volume's image if it is Tidemark's, or, with `allowed`, whosever it is; one that does not exist counts as
/// removed.
///
/// # Errors
/// When the volume is no image or somebody else's, or the cluster does not do it.
pub fn remove(volume: &Volume, allowed: bool) -> Result<(), RbdError> {
    let kept = |reason| Err(RbdError::Kept { name: volume.name(), reason });
    if !allowed {
        match find(volume)? {
            Image::Absent => return Ok(()),
            Image::Ours => {}
            Image::Blank => return kept("Tidemark did not make it".to_owned()),
            Image::Foreign(reason) | Image::InUse(reason) => return kept(reason),
        }
    }
    let removed = call(volume, "rm", &[], &["--no-progress"])?;
    match removed.status.success() || info(volume)?.is_none() {
        true => Ok(()),
        false => Err(failed("rm", volume, &words(&removed))),
    }
}

/// The pool that an image's data lie in.
///
/// # Errors
/// When the volume is no image, there is none, or the cluster does not answer.
pub(crate) fn data_pool(volume: &Volume) -> Result<String, RbdError> {
    let info = info(volume)?.ok_or_else(|| failed("info", volume, "there is no such image"))?;
    info.data_pool.map_or_else(|| image(volume).map(|rbd| rbd.pool.clone()), Ok)
}

/// What `rbd info` tells; `None`: there is no such image.
fn info(volume: &Volume) -> Result<Option<Info>, RbdError> {
    let info = call(volume, "info", &[], &["--format", "json"])?;
    match info.status.success() {
        true => parsed("info", volume, &info).map(Some),
        false if is_missing(&info, &image(volume)?.image) => Ok(None),
        false => Err(failed("info", volume, &words(&info))),
    }
}

/// Who has an image open, if anybody has.
fn watcher(volume: &Volume) -> Result<Option<String>, RbdError> {
    #[derive(Deserialize)]
    struct Status {
        watchers: Vec<Watcher>,
    }
    #[derive(Deserialize)]
    struct Watcher {
        address: String,
    }
    let output = succeed(volume, "status", &[], &["--format", "json"])?;
    let status: Status = parsed("status", volume, &output)?;
    let first = status.watchers.first();
    Ok(first.map(|watcher| format!("a client at {} has it open", watcher.address)))
}

/// Whether nobody ever wrote to an image. Without a map of its objects that takes too long to find out: then it is not.
fn is_blank(volume: &Volume, info: &Info) -> Result<bool, RbdError> {
    let is_mapped = info.features.iter().any(|feature| feature == "fast-diff");
    if !is_mapped || info.snapshot_count > 0 || !info.parent.is_null() {
        return Ok(false);
    }
    let output = succeed(volume, "diff", &[], &["--whole-object", "--format", "json"])?;
    let written: Vec<serde_json::Value> = parsed("diff", volume, &output)?;
    Ok(written.is_empty())
}

/// The mark that an image would have if it was written to by Tidemark last.
fn mark_of(volume: &Volume, info: &Info) -> Result<String, RbdError> {
    let head = head(volume, info.size.min(HEAD))?;
    let hash = head.chunks(8).fold(head.len() as u64, |hash, bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        mix(hash, &[u64::from_le_bytes(word)])
    });
    Ok(format!("modified {} UTC, head {hash:016x}", info.modify_timestamp))
}

/// The first bytes of an image. `rbd` knows only how to export all of it: it is ended when there is enough.
fn head(volume: &Volume, length: u64) -> Result<Vec<u8>, RbdError> {
    let fail = |error: std::io::Error| failed("export", volume, &error.to_string());
    let mut command = command(volume, "export", &[], &["--no-progress", "--path", "-"])?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(fail)?;
    let mut bytes = Vec::new();
    let read = child.stdout.take().map(|pipe| pipe.take(length).read_to_end(&mut bytes));
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().map_err(fail)?;
    match read {
        Some(Ok(all)) if all as u64 == length => Ok(bytes),
        Some(Err(error)) => Err(fail(error)),
        _ => Err(failed("export", volume, &format!("it gave {} of {length} bytes", bytes.len()))),
    }
}

pub(crate) fn image(volume: &Volume) -> Result<&Rbd, RbdError> {
    match &volume.place {
        Place::Rbd(rbd) => Ok(rbd),
        Place::File(_) | Place::Device(_) => Err(RbdError::NoImage(volume.name())),
    }
}

/// Whether `rbd` found the pool, and no image of this name in it. It ends with the same error number where it finds no pool, no
/// configuration or no cluster: only its words tell these apart.
fn is_missing(output: &Output, image: &str) -> bool {
    let exact = format!("rbd: error opening image {image}: (2) No such file or directory");
    let lines = String::from_utf8_lossy(&output.stderr);
    output.status.code() == Some(rustix::io::Errno::NOENT.raw_os_error())
        && lines.lines().any(|line| line.trim_end() == exact)
}

fn failed(verb: &str, volume: &Volume, stderr: &str) -> RbdError {
    RbdError::Failed { command: format!("rbd {verb} {}", volume.name()), stderr: stderr.to_owned() }
}

/// The last lines of its stderr: `rbd` prints the cause before the consequence.
pub(crate) fn words(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(4)..];
    if last.is_empty() { output.status.to_string() } else { last.join("; ") }
}

fn parsed<T: serde::de::DeserializeOwned>(
    verb: &str,
    volume: &Volume,
    output: &Output,
) -> Result<T, RbdError> {
    let read = serde_json::from_slice(&output.stdout);
    read.map_err(|error| failed(verb, volume, &format!("cannot read its output: {error}")))
}

/// The command for a verb, of which some have a second word, on a volume's image.
fn command(volume: &Volume, verb: &str, more: &[&str], options: &[&str]) -> Result<Command, RbdError> {
    let rbd = image(volume)?;
    let mut command = Command::new("rbd");
    if let Some(conf) = &rbd.conf {
        command.arg("--conf").arg(conf);
    }
    command.args(["--id", &rbd.user, verb]).args(more);
    command.args(["--pool", &rbd.pool, "--image", &rbd.image]).args(options);
    // Times are printed as those of the place where the program runs, and errors in its language.
    command.env("TZ", "UTC").env("LC_ALL", "C");
    Ok(command)
}

fn call(volume: &Volume, verb: &str, more: &[&str], options: &[&str]) -> Result<Output, RbdError> {
    let timeout = if verb == "rm" { TIMEOUT_TO_REMOVE } else { TIMEOUT };
    run(command(volume, verb, more, options)?, timeout).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => RbdError::Absent,
        _ => failed(verb, volume, &error.to_string()),
    })
}

/// A call that must succeed.
fn succeed(volume: &Volume, verb: &str, more: &[&str], options: &[&str]) -> Result<Output, RbdError> {
    let output = call(volume, verb, more, options)?;
    match output.status.success() {
        true => Ok(output),
        false => Err(failed(verb, volume, &words(&output))),
    }
}

/// Runs a program to its end, or kills it when that takes too long.
pub(crate) fn run(mut command: Command, timeout: Duration) -> std::io::Result<Output> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let gather = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before a failure is worth showing all the same.
            let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
            bytes
        })
    };
    let stdout = gather(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = gather(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let end = Instant::now() + timeout;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() >= end => {
                child.kill()?;
                child.wait()?;
                let message = format!("no answer within {} s: is the cluster up?", timeout.as_secs());
                return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, message));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let join = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    Ok(Output { status, stdout: join(stdout), stderr: join(stderr) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_no_images() {
        let volume = Volume { place: Place::File("/tmp/x".into()), size: 4096 };
        assert!(matches!(ensure(&volume), Err(RbdError::NoImage(_))));
        assert!(matches!(remove(&volume, false), Err(RbdError::NoImage(_))));
        assert!(matches!(find(&volume), Err(RbdError::NoImage(_))));
    }

    #[test]
    fn programs_that_hang_are_killed_and_others_are_heard() {
        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        let error = run(sleep, Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo out; echo one >&2; echo two >&2; exit 2"]);
        let output = run(shell, TIMEOUT).unwrap();
        assert_eq!((words(&output).as_str(), &output.stdout[..]), ("one; two", &b"out\n"[..]));
    }

    #[test]
    fn only_rbd_s_own_words_for_it_say_that_there_is_no_image() {
        let found = |words: &str, code: u8| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "echo \"$0\" >&2; exit $1", words, &code.to_string()]);
            is_missing(&run(shell, TIMEOUT).unwrap(), "i-1")
        };
        assert!(found("rbd: error opening image i-1: (2) No such file or directory", 2));
        for words in [
            "rbd: couldn't connect to the cluster!",
            "rbd: error opening pool 'p': (2) No such file or directory",
            "rbd: error opening image i-10: (2) No such file or directory",
            "",
        ] {
            assert!(!found(words, 2), "{words}");
        }
        assert!(!found("rbd: error opening image i-1: (2) No such file or directory", 1));
    }
}
