//! Images of a Ceph cluster made and removed with the `rbd` program.
//!
//! Keys stay in the cluster's keyring: nothing here reads or prints them.

use serde::Deserialize;
use std::io::Read as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tidemark_block::job::{Place, Rbd, Volume};

/// How long one call of `rbd` may take; removing a large image takes its time.
const TIMEOUT: Duration = Duration::from_secs(60);
const TIMEOUT_TO_REMOVE: Duration = Duration::from_secs(900);

/// An image could not be made, checked or removed.
#[derive(Debug, thiserror::Error)]
pub enum RbdError {
    /// The program is not there.
    #[error(
        "the program `rbd` is not installed: install the package `ceph-common` (apt install ceph-common)"
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
    /// `rbd` failed.
    #[error("`{command}` failed: {stderr}")]
    Failed {
        /// The command without the program's options.
        command: String,
        /// What it stderr.
        stderr: String,
    },
}

/// Ensures that a volume's image exists with its size. `true`: it was created.
///
/// # Errors
/// When the volume is no image, has another size, or the cluster does not do it.
pub fn ensure(volume: &Volume) -> Result<bool, RbdError> {
    #[derive(Deserialize)]
    struct Info {
        size: u64,
    }
    let image = image(volume)?;
    let info = call(image, "info", &["--format", "json"])?;
    if info.status.success() {
        let read: Info = serde_json::from_slice(&info.stdout)
            .map_err(|error| failed("info", volume, &format!("cannot read its output: {error}")))?;
        let (actual, wanted) = (read.size, volume.size);
        return match actual == wanted {
            true => Ok(false),
            false => Err(RbdError::Size { name: volume.name(), actual, wanted }),
        };
    }
    // `rbd` ends with the error number: anything but "no such image" is trouble that `create` would hide.
    if !is_missing(&info) {
        return Err(failed("info", volume, &words(&info)));
    }
    let size = format!("{}B", volume.size);
    let made = call(image, "create", &["--size", &size])?;
    if made.status.success() { Ok(true) } else { Err(failed("create", volume, &words(&made))) }
}

/// Removes a volume's image; one that does not exist counts as removed.
///
/// # Errors
/// When the volume is no image, or the cluster does not do it.
pub fn remove(volume: &Volume) -> Result<(), RbdError> {
    let removed = call(image(volume)?, "rm", &["--no-progress"])?;
    match removed.status.success() || is_missing(&removed) {
        true => Ok(()),
        false => Err(failed("rm", volume, &words(&removed))),
    }
}

fn image(volume: &Volume) -> Result<&Rbd, RbdError> {
    match &volume.place {
        Place::Rbd(rbd) => Ok(rbd),
        Place::File(_) | Place::Device(_) => Err(RbdError::NoImage(volume.name())),
    }
}

fn is_missing(output: &Output) -> bool {
    output.status.code() == Some(rustix::io::Errno::NOENT.raw_os_error())
}

fn failed(verb: &str, volume: &Volume, stderr: &str) -> RbdError {
    RbdError::Failed { command: format!("rbd {verb} {}", volume.name()), stderr: stderr.to_owned() }
}

/// The last lines of its stderr: `rbd` prints the cause before the consequence.
fn words(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(4)..];
    if last.is_empty() { output.status.to_string() } else { last.join("; ") }
}

fn call(rbd: &Rbd, verb: &str, options: &[&str]) -> Result<Output, RbdError> {
    let mut command = Command::new("rbd");
    if let Some(conf) = &rbd.conf {
        command.arg("--conf").arg(conf);
    }
    command.args(["--id", &rbd.user, verb, "--pool", &rbd.pool, "--image", &rbd.image]).args(options);
    let timeout = if verb == "rm" { TIMEOUT_TO_REMOVE } else { TIMEOUT };
    run(command, timeout).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => RbdError::Absent,
        _ => RbdError::Failed {
            command: format!("rbd {verb} {}/{}", rbd.pool, rbd.image),
            stderr: error.to_string(),
        },
    })
}

/// Runs a program to its end, or kills it when that takes too long.
fn run(mut command: Command, timeout: Duration) -> std::io::Result<Output> {
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
        assert!(matches!(remove(&volume), Err(RbdError::NoImage(_))));
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
        assert!(is_missing(&output) && output.stdout == b"out\n");
        assert_eq!(words(&output), "one; two");
    }
}
