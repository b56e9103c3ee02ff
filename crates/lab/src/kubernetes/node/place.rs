//! Where a node lives: a view of the file system of its own, and control groups of its own.
//!
//! containerd, kubelet and the plugins for networks insist on certain directories. In the node's mount namespace those are the
//! lab's, and everything that they mount is seen there and nowhere else: two labs do not meet, nothing is written outside of the lab's
//! directory, and when the last process is gone, so are all mounts. kubelet would also set parameters of the kernel for the whole
//! machine; here it finds them set already.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::groups::Groups;
use crate::command::Programs;
use crate::error::LabError;
use crate::home::{self, Home};
use crate::mounts;

/// Directories of the node, by their names in the lab's.
const DIRECTORIES: [(&str, &str); 5] = [
    ("kubelet", KUBELET),
    ("networks", "/var/lib/cni"),
    ("containers", RUNNING),
    ("pod-logs", "/var/log/pods"),
    ("container-logs", "/var/log/containers"),
];
/// Where kubelet has all that is its own.
const KUBELET: &str = "/var/lib/kubelet";
/// What containerd knows of running containers: nothing of it outlives them.
const RUNNING: &str = "/run/containerd";
/// What kubelet wants to read in `/proc/sys` (`setupKernelTunables` in its container manager). Parameters that it must not set for
/// the whole machine.
const PARAMETERS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];
/// How long making or leaving a namespace may take.
const COMMAND: Duration = Duration::from_secs(30);

/// Mounts one directory or file over another, pair by pair. What pods mount for all must be seen by the others, so the root is shared.
const MOUNT: &str = r#"mount --make-rshared /; while [ $# -gt 0 ]; do mount --bind "$1" "$2"; shift 2; done"#;

/// The place of a node.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The mount namespace.
    space: PathBuf,
    /// What takes the number of a process of the node.
    members: PathBuf,
}

impl Place {
    /// Makes it, unless it is there.
    pub(super) fn make(home: &Home, programs: &Programs) -> Result<Self, LabError> {
        let members = Groups::of(home).make()?;
        let parent = spaces(home);
        let space = parent.join("mounts");
        if !mounts::is_mounted(&space) {
            home::make_directory(&parent)?;
            let run = |words: &[&OsStr]| programs.run("mount", words, COMMAND).map(drop);
            if !mounts::is_mounted(&parent) {
                run(&["--bind".as_ref(), parent.as_ref(), parent.as_ref()])?;
            }
            run(&["--make-private".as_ref(), parent.as_ref()])?;
            fs::write(&space, "").map_err(LabError::file("write", &space))?;
            let pairs = prepare(home)?;
            let mut keep = OsString::from("--mount=");
            keep.push(&space);
            let words = ["--propagation=slave", "/bin/sh", "-ec", MOUNT, "sh"].map(Into::into);
            let paths = pairs.into_iter().flat_map(|(from, to)| [from.into_os_string(), to.into_os_string()]);
            let words: Vec<OsString> = std::iter::once(keep).chain(words).chain(paths).collect();
            if let Err(error) = programs.run("unshare", &words, COMMAND) {
                // Half of the mounts must not be taken for all.
                mounts::release_below(&parent, programs)?;
                return Err(error);
            }
        }
        Ok(Self { space, members })
    }

    /// A command that goes to the place, then becomes the program.
    pub(crate) fn entering(&self, programs: &Programs, program: &Path) -> Result<Command, LabError> {
        let mut space = OsString::from("--mount=");
        space.push(&self.space);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"echo $$ >"$0" && exec "$@""#]).arg(&self.members);
        command.arg(programs.path("nsenter")?).arg(space).arg(program);
        Ok(command)
    }
}

/// Where the namespace is mounted. The directory itself is a mount, too: a namespace can only be where others do not see it.
fn spaces(home: &Home) -> PathBuf {
    home.node().join("space")
}

/// What a path in the place that the kernel tells of is called outside, if it is one of kubelet's.
pub(super) fn of_kubelet(home: &Home, path: &Path) -> Option<PathBuf> {
    path.strip_prefix(KUBELET).ok().map(|rest| home.node().join("kubelet").join(rest))
}

/// Removes the place with all that is mounted there, when nobody lives there any more.
pub(super) fn remove(home: &Home, programs: &Programs) -> Result<(), LabError> {
    mounts::release_below(&spaces(home), programs)?;
    for (_, directory) in DIRECTORIES {
        // Empty, and nobody's: of all that have to be there for the mounts, those that nothing is kept in. A node of another
        // lab has its own mounted there, which would be undone.
        if !mounts::is_mounted_for_anybody(Path::new(directory)) {
            let _ = fs::remove_dir(directory);
        }
    }
    Ok(())
}

/// Makes what is mounted and what it is mounted on.
fn prepare(home: &Home) -> Result<Vec<(PathBuf, PathBuf)>, LabError> {
    let mut pairs = Vec::new();
    for (name, place) in DIRECTORIES {
        let (own, place) = (home.node().join(name), PathBuf::from(place));
        if place == Path::new(RUNNING) {
            home::remove(&own)?;
        }
        home::make_directory(&own)?;
        fs::create_dir_all(&place).map_err(LabError::file("create", &place))?;
        pairs.push((own, place));
    }
    for (name, value) in PARAMETERS {
        let parameter = Path::new("/proc/sys").join(name);
        let own = home.node().join("parameters").join(name.replace('/', "."));
        home::make_directory(&home.node().join("parameters"))?;
        fs::write(&own, value).map_err(LabError::file("write", &own))?;
        pairs.push((own, parameter));
    }
    Ok(pairs)
}
