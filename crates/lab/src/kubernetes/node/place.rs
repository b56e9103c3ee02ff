//! Where a node lives: a view of the file system of its own, and control groups of its own.
//!
//! containerd, kubelet and the plugins for networks insist on certain directories. In the node's mount namespace those are the
//! lab's, and everything that they mount is seen there and nowhere else: two labs do not meet, nothing is written outside of the lab's
//! directory, and when the last process is gone, so are all mounts. kubelet would also set parameters of the kernel for the whole
//! machine; here it finds them set already. Nodes after the first one have a network of their own as well.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Network;
use super::groups::Groups;
use super::network::MOST_NODES;
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
    /// The network namespace, if it is not the machine's.
    network: Option<PathBuf>,
    /// What takes the number of a process of the node.
    members: PathBuf,
}

impl Place {
    /// Makes that of a node, unless it is there.
    pub(super) fn make(
        home: &Home,
        addresses: Network,
        number: usize,
        programs: &Programs,
    ) -> Result<Self, LabError> {
        let members = Groups::of_node(home, number).make()?;
        let parent = spaces(home);
        let (space, network) = match number {
            0 => (parent.join("mounts"), None),
            _ => (parent.join(format!("mounts-{number}")), Some(parent.join(format!("network-{number}")))),
        };
        if !mounts::is_mounted(&space) {
            home::make_directory(&parent)?;
            let run = |words: &[&OsStr]| programs.run("mount", words, COMMAND).map(drop);
            if !mounts::is_mounted(&parent) {
                run(&["--bind".as_ref(), parent.as_ref(), parent.as_ref()])?;
            }
            run(&["--make-private".as_ref(), parent.as_ref()])?;
            let pairs = prepare(home, number)?;
            let mut keep = Vec::new();
            for (kind, file) in spaces_of(&space, network.as_deref()) {
                fs::write(file, "").map_err(LabError::file("write", file))?;
                keep.push(joined(kind, file));
            }
            let words = ["--propagation=slave", "/bin/sh", "-ec", MOUNT, "sh"].map(Into::into);
            let paths = pairs.into_iter().flat_map(|(from, to)| [from.into_os_string(), to.into_os_string()]);
            let words: Vec<OsString> = keep.into_iter().chain(words).chain(paths).collect();
            let made = programs.run("unshare", &words, COMMAND).and_then(|_| match &network {
                Some(network) => addresses.connect(home, number, network, programs),
                None => Ok(()),
            });
            if let Err(error) = made {
                // Half of it must not be taken for all.
                for (_, file) in spaces_of(&space, network.as_deref()) {
                    mounts::release_below(file, programs)?;
                }
                return Err(error);
            }
        }
        Ok(Self { space, network, members })
    }

    /// A command that goes to the place, then becomes the program.
    pub(crate) fn entering(&self, programs: &Programs, program: &Path) -> Result<Command, LabError> {
        let spaces = spaces_of(&self.space, self.network.as_deref());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"echo $$ >"$0" && exec "$@""#]).arg(&self.members);
        command.arg(programs.path("nsenter")?);
        command.args(spaces.map(|(kind, file)| joined(kind, file))).arg(program);
        Ok(command)
    }
}

/// Kinds of namespaces and the files at which they are mounted.
fn spaces_of<'a>(
    mounts: &'a Path,
    network: Option<&'a Path>,
) -> impl Iterator<Item = (&'static str, &'a Path)> {
    std::iter::once(("--mount=", mounts)).chain(network.map(|network| ("--net=", network)))
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

/// Where namespaces are mounted. The directory itself is a mount, too: those of mounts can only be where others do not see it.
fn spaces(home: &Home) -> PathBuf {
    home.node().join("space")
}

/// Whether a path that the kernel tells of, as it is called in a node's place, is one that the kubelet of any of the lab's nodes has made.
pub(super) fn is_of_kubelets(home: &Home, path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix(KUBELET) else { return false };
    let mut kubelets = (0..MOST_NODES).map(|number| super::directory(home, number).join("kubelet"));
    kubelets.any(|kubelet| kubelet.join(rest).exists())
}

/// Removes the places of a lab with all that is mounted there, when nobody lives there any more.
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
fn prepare(home: &Home, number: usize) -> Result<Vec<(PathBuf, PathBuf)>, LabError> {
    let directory = super::directory(home, number);
    home::make_directory(&directory)?;
    let mut pairs = Vec::new();
    for (name, place) in DIRECTORIES {
        let (own, place) = (directory.join(name), PathBuf::from(place));
        if place == Path::new(RUNNING) {
            home::remove(&own)?;
        }
        home::make_directory(&own)?;
        fs::create_dir_all(&place).map_err(LabError::file("create", &place))?;
        pairs.push((own, place));
    }
    for (name, value) in PARAMETERS {
        let parameter = Path::new("/proc/sys").join(name);
        let own = directory.join("parameters").join(name.replace('/', "."));
        home::make_directory(&directory.join("parameters"))?;
        fs::write(&own, value).map_err(LabError::file("write", &own))?;
        pairs.push((own, parameter));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kubelet_of_any_node_has_made_is_the_labs() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::prepare(&place.path().join("lab")).unwrap();
        for number in [0, 1, MOST_NODES - 1] {
            let file = format!("plugins/of-{number}");
            let path = Path::new(KUBELET).join(&file);
            assert!(!is_of_kubelets(&home, &path), "of another lab");
            let kubelet = super::super::directory(&home, number).join("kubelet");
            fs::create_dir_all(kubelet.join("plugins")).unwrap();
            fs::write(kubelet.join(&file), "").unwrap();
            assert!(is_of_kubelets(&home, &path), "node {number}");
            assert!(!is_of_kubelets(&home, &Path::new("/srv").join(&file)));
        }
    }
}
