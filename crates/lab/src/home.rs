//! The lab's directory: where each file lies, and who may work in it.
//!
//! Everything a lab writes is below this one directory, which only its owner can enter, or pass through to what is
//! open to the servers; and what the user wants elsewhere is behind links. A lab is recognised by its record, `lab.json`; a directory with files but without a record is left alone.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::daemon::Daemon;
use crate::error::LabError;

/// What systems are made of; creating one anew removes all of it. What may lie elsewhere, behind a link, is in `OUTSIDE`.
const SYSTEM: [&str; 18] = [
    "ceph.conf",
    "keyring",
    "monmap",
    "mon",
    "mgr",
    "mds",
    "osd",
    "rgw",
    "run",
    "crash",
    "mount",
    "conf",
    "sockets",
    "disk",
    "etcd",
    "certificates",
    "kubeconfig",
    "node",
];
/// The data of databases and of the disk below them: directories, or links to directories of the lab elsewhere.
const OUTSIDE: [&str; 3] = ["data", STORE, SAVED];
const STORE: &str = "store";
const SAVED: &str = "saved";
/// What remains of a system whose creation failed: the logs, to see why, and the lab's own files.
const LOGS: &str = "log";
const RECORD: &str = "lab.json";
const LOCK: &str = "lock";

/// The longest path of a UNIX socket, in bytes, less its closing zero.
const SOCKET_PATH_BYTES: usize = 107;
/// The longest name of a daemon's socket below the directory.
const LONGEST_SOCKET: &str = "/run/ceph-client.rgw.lab-15.asok";
/// Where files lie in memory.
const MEMORY: &str = "/dev/shm";
/// Characters that would end a value in ceph.conf, or be replaced in it.
const UNFIT_CHARACTERS: &[char] = &['#', ';', '$', '"', '\'', '\\', '[', ']', '=', ','];

/// The directory of a lab, as an absolute path without symbolic links, so that it is always spelt the same:
/// the command lines of daemons are compared with it.
#[derive(Clone, Debug)]
pub(super) struct Home {
    dir: PathBuf,
}

impl Home {
    /// The directory of an existing lab, finished or not.
    pub(super) fn find(dir: &Path) -> Result<Self, LabError> {
        let missing = || LabError::NoLab { dir: dir.to_owned() };
        let home = Self { dir: dir.canonicalize().map_err(|_| missing())? };
        if home.record().is_file() { Ok(home) } else { Err(missing()) }
    }

    /// The directory of a lab that may be about to be created: made if it is missing.
    pub(super) fn prepare(dir: &Path) -> Result<Self, LabError> {
        let dir = std::path::absolute(dir).map_err(LabError::file("find", dir))?;
        check_path(&dir)?;
        let create = LabError::file("create", &dir);
        // Only the lab's own directory is private: its servers may be other users.
        let parents = dir.parent().map_or(Ok(()), fs::create_dir_all);
        parents.and_then(|()| DirBuilder::new().recursive(true).mode(0o700).create(&dir)).map_err(create)?;
        let home = Self { dir: dir.canonicalize().map_err(LabError::file("find", &dir))? };
        check_path(&home.dir)?;
        if !home.record().is_file() {
            home.check_empty()?;
            home.make_private(&home.dir)?;
        }
        Ok(home)
    }

    fn check_empty(&self) -> Result<(), LabError> {
        for entry in fs::read_dir(&self.dir).map_err(LabError::file("read", &self.dir))? {
            let name = entry.map_err(LabError::file("read", &self.dir))?.file_name();
            if name != LOCK {
                let why = format!("it has files of its own ({}) and no {RECORD}", name.to_string_lossy());
                return Err(LabError::UnsuitableDirectory { dir: self.dir.clone(), why });
            }
        }
        Ok(())
    }

    fn make_private(&self, dir: &Path) -> Result<(), LabError> {
        fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(LabError::file("make private", dir))
    }

    /// Takes the lab for a command that changes it, until the lock is dropped.
    pub(super) fn lock(&self) -> Result<Lock, LabError> {
        let path = self.dir.join(LOCK);
        let file = File::create(&path).map_err(LabError::file("create", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(LabError::Busy { dir: self.dir.clone() }),
            Err(TryLockError::Error(source)) => Err(LabError::File { action: "lock", path, source }),
        }
    }

    /// Makes the directories of a cluster.
    pub(super) fn lay_out(&self) -> Result<(), LabError> {
        for name in ["mon", "mgr", "mds", "osd", "rgw", "run", "crash", LOGS] {
            make_directory(&self.dir.join(name))?;
        }
        Ok(())
    }

    /// Removes the system, what of it lies elsewhere included, and leaves logs and record. No daemon may be running,
    /// and nothing may be mounted.
    pub(super) fn clear_system(&self) -> Result<(), LabError> {
        for name in OUTSIDE {
            let link = self.dir.join(name);
            if let Ok(target) = fs::read_link(&link)
                && self.is_ours_elsewhere(&target)
            {
                remove(&target)?;
            }
            remove(&link)?;
        }
        SYSTEM.into_iter().try_for_each(|name| remove(&self.dir.join(name)))
    }

    /// The lab's own directory in a directory elsewhere: named after the lab, so that no two share one.
    pub(super) fn elsewhere(&self, parent: &Path, name: &str) -> PathBuf {
        parent.join(format!("tidemark-{name}-{:016x}", self.hash()))
    }

    fn is_ours_elsewhere(&self, target: &Path) -> bool {
        OUTSIDE
            .iter()
            .any(|name| target.parent().is_some_and(|parent| self.elsewhere(parent, name) == target))
    }

    /// Removes everything that a lab wrote, and the directory if nothing else is in it.
    pub(super) fn purge(&self) -> Result<(), LabError> {
        self.clear_system()?;
        for name in [LOGS, RECORD, LOCK] {
            remove(&self.dir.join(name))?;
        }
        match fs::remove_dir(&self.dir) {
            Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => {
                Err(LabError::file("remove", &self.dir)(error))
            }
            _ => Ok(()),
        }
    }

    /// The directory itself.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The lab's own record.
    pub(super) fn record(&self) -> PathBuf {
        self.dir.join(RECORD)
    }

    /// The settings that every program of Ceph is pointed at.
    pub(super) fn ceph_conf(&self) -> PathBuf {
        self.dir.join("ceph.conf")
    }

    /// The keys of all daemons and of the administrator.
    pub(super) fn keyring(&self) -> PathBuf {
        self.dir.join("keyring")
    }

    /// The first map of monitors.
    pub(super) fn monmap(&self) -> PathBuf {
        self.dir.join("monmap")
    }

    /// The directory of all OSDs' data.
    pub(super) fn osds(&self) -> PathBuf {
        self.dir.join("osd")
    }

    /// The data of one OSD.
    pub(super) fn osd(&self, id: usize) -> PathBuf {
        self.osds().join(id.to_string())
    }

    /// Where the cluster's file system is mounted.
    pub(super) fn mount(&self) -> PathBuf {
        self.dir.join("mount")
    }

    /// The directory of all databases' data, or a link to it.
    pub(super) fn all_data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The data of one database server.
    pub(super) fn data(&self, number: usize) -> PathBuf {
        self.all_data().join(number.to_string())
    }

    /// A copy of all databases' data, to go back to, or a link to it.
    pub(super) fn saved(&self) -> PathBuf {
        self.dir.join(SAVED)
    }

    /// Where the disk that loses its power is mounted.
    pub(super) fn disk(&self) -> PathBuf {
        self.dir.join("disk")
    }

    /// What such a disk holds, or a link to it.
    pub(super) fn store(&self) -> PathBuf {
        self.dir.join(STORE)
    }

    /// The directory of all servers' sockets.
    pub(super) fn sockets(&self) -> PathBuf {
        self.dir.join("sockets")
    }

    /// The directory of all servers' settings.
    pub(super) fn confs(&self) -> PathBuf {
        self.dir.join("conf")
    }

    /// The data of etcd.
    pub(super) fn etcd(&self) -> PathBuf {
        self.dir.join("etcd")
    }

    /// The certificates and keys of an API server, its store and its clients.
    pub(super) fn certificates(&self) -> PathBuf {
        self.dir.join("certificates")
    }

    /// What `kubectl` must know.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// What a node of Kubernetes keeps: images, containers, volumes.
    pub(super) fn node(&self) -> PathBuf {
        self.dir.join("node")
    }

    /// The settings of a server.
    pub(super) fn server_conf(&self, daemon: Daemon) -> PathBuf {
        self.confs().join(format!("{daemon}.conf"))
    }

    /// The lab's name outside of its directory: the directory's path, percent-encoded (RFC 3986) as far as it
    /// must be for a file's name. No two labs share one, and no record is needed to find it.
    pub(super) fn mark(&self) -> String {
        let path = self.dir.to_string_lossy();
        format!("tidemark{}", path.replace('%', "%25").replace('/', "%2F"))
    }

    /// The same for what takes at most 15 characters, such as a network interface.
    pub(super) fn short_mark(&self) -> String {
        format!("tm-{:012x}", self.hash() & 0xffff_ffff_ffff)
    }

    /// A number that is the same for the same directory.
    pub(super) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.dir.hash(&mut hasher);
        hasher.finish()
    }

    /// The directory of the files that lie in memory.
    pub(super) fn memory(&self) -> PathBuf {
        Path::new(MEMORY).join(self.mark())
    }

    /// The directory of pid files and sockets.
    pub(super) fn run(&self) -> PathBuf {
        self.dir.join("run")
    }

    /// The pid file of a daemon.
    pub(super) fn pid_file(&self, daemon: Daemon) -> PathBuf {
        self.run().join(format!("{daemon}.pid"))
    }

    /// The directory of all logs.
    pub(super) fn logs(&self) -> PathBuf {
        self.dir.join(LOGS)
    }

    /// The log of a daemon, as ceph.conf names it.
    pub(super) fn log(&self, daemon: Daemon) -> PathBuf {
        self.logs().join(format!("{daemon}.log"))
    }

    /// The standard streams of a daemon: errors that its detailed log would hide.
    pub(super) fn errors(&self, daemon: Daemon) -> PathBuf {
        match daemon {
            // These have no log besides.
            Daemon::Mount
            | Daemon::Disk
            | Daemon::Postgres(_)
            | Daemon::Mariadb(_)
            | Daemon::Coordinator
            | Daemon::Worker(_)
            | Daemon::Etcd
            | Daemon::ApiServer
            | Daemon::ControllerManager
            | Daemon::Scheduler
            | Daemon::Containerd(_)
            | Daemon::Kubelet(_)
            | Daemon::Volumes
            | Daemon::Csi(_) => self.log(daemon),
            _ => self.logs().join(format!("{daemon}.err")),
        }
    }
}

/// The right to change a lab.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would not do: another thread of ours that is just starting a program may hold a
        // copy of it for an instant, and with it the lock.
        let _ = self.0.unlock();
    }
}

/// Fails if less than `needed_bytes` are free for users in a directory.
pub(super) fn check_space(dir: &Path, needed_bytes: u64) -> Result<(), LabError> {
    let failed = |errno: rustix::io::Errno| LabError::file("measure", dir)(errno.into());
    let system = rustix::fs::statvfs(dir).map_err(failed)?;
    let free_bytes = system.f_bavail.saturating_mul(system.f_frsize);
    if free_bytes >= needed_bytes {
        return Ok(());
    }
    Err(LabError::NoSpace { dir: dir.to_owned(), free_bytes, needed_bytes })
}

/// Makes one private directory, unless it is there.
pub(super) fn make_directory(path: &Path) -> Result<(), LabError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(LabError::file("create", path))
}

/// Where files that can be fetched again are kept, for all labs of a user: from the variables `XDG_CACHE_HOME` and `HOME`.
pub(super) fn cache_directory(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, LabError> {
    let path = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("tidemark")).ok_or(LabError::NoCache)
}

/// Where the lab of root lives when nobody says otherwise: servers that run as other users cannot enter root's home.
const OF_ROOT: &str = "/var/lib";

/// Where the lab lives when nobody says otherwise, from the variables `TIDEMARK_LAB_DIR`, `XDG_STATE_HOME`
/// and `HOME`.
pub(super) fn usual_directory(
    is_root: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, LabError> {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = path("TIDEMARK_LAB_DIR") {
        return Ok(dir);
    }
    // The XDG base directory specification: a relative path is invalid and is to be ignored.
    let state = path("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| is_root.then(|| PathBuf::from(OF_ROOT)));
    let state = state.or_else(|| path("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("tidemark/lab")).ok_or(LabError::NoDirectory)
}

/// Lets servers that run as another user pass through the lab's directory. Files with secrets are private themselves.
pub(super) fn let_pass(dir: &Path) -> Result<(), LabError> {
    fs::set_permissions(dir, Permissions::from_mode(0o711)).map_err(LabError::file("open", dir))
}

/// Fails if ceph.conf cannot hold the path, or if it is too long for the sockets below it.
fn check_path(dir: &Path) -> Result<(), LabError> {
    let unsuitable = |why: String| Err(LabError::UnsuitableDirectory { dir: dir.to_owned(), why });
    let Some(text) = dir.to_str() else { return unsuitable("its path is not UTF-8".into()) };
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || UNFIT_CHARACTERS.contains(&c)) {
        return unsuitable(
            "Ceph's configuration cannot hold a path with spaces or any of # ; $ \" ' \\ [ ] = ,".into(),
        );
    }
    let longest = SOCKET_PATH_BYTES - LONGEST_SOCKET.len();
    if text.len() > longest {
        return unsuitable(format!(
            "its path has {} bytes, and at most {longest} leave room for sockets",
            text.len()
        ));
    }
    Ok(())
}

/// Removes a file or a directory with all it holds; one that is not there is no error.
pub(super) fn remove(path: &Path) -> Result<(), LabError> {
    let removed = match path.symlink_metadata() {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(LabError::file("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Writes a file that only its owner can read; one that is the same already is not touched.
pub(super) fn write_private(path: &Path, text: &str) -> Result<(), LabError> {
    if fs::read_to_string(path).is_ok_and(|has| has == text) {
        return Ok(());
    }
    remove(path)?;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(LabError::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_directory_follows_the_environment() {
        let usual = |variables: &[(&str, &str)]| {
            let find =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            usual_directory(false, find)
        };
        let all = [("TIDEMARK_LAB_DIR", "/fast/lab"), ("XDG_STATE_HOME", "/state"), ("HOME", "/home/ann")];
        assert_eq!(usual(&all).unwrap(), Path::new("/fast/lab"));
        assert_eq!(usual(&all[1..]).unwrap(), Path::new("/state/tidemark/lab"));
        assert_eq!(usual(&all[2..]).unwrap(), Path::new("/home/ann/.local/state/tidemark/lab"));
        assert_eq!(
            usual(&[("XDG_STATE_HOME", "state"), ("HOME", "/home/ann")]).unwrap(),
            Path::new("/home/ann/.local/state/tidemark/lab")
        );
        assert!(usual(&[]).unwrap_err().to_string().contains("TIDEMARK_LAB_DIR"));
        let of_root = usual_directory(true, |name| (name == "HOME").then(|| "/root".into()));
        assert_eq!(of_root.unwrap(), Path::new("/var/lib/tidemark/lab"));
    }

    #[test]
    fn the_cache_follows_the_environment() {
        let cache = |variables: &[(&str, &str)]| {
            cache_directory(|name| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
            })
        };
        let all = [("XDG_CACHE_HOME", "/fast"), ("HOME", "/home/ann")];
        assert_eq!(cache(&all).unwrap(), Path::new("/fast/tidemark"));
        assert_eq!(cache(&all[1..]).unwrap(), Path::new("/home/ann/.cache/tidemark"));
        assert_eq!(
            cache(&[("XDG_CACHE_HOME", "fast"), ("HOME", "/home/ann")]).unwrap(),
            Path::new("/home/ann/.cache/tidemark")
        );
        assert!(cache(&[]).unwrap_err().to_string().contains("XDG_CACHE_HOME"));
    }

    #[test]
    fn a_directory_with_files_of_its_own_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("thesis.txt"), "years of work").unwrap();
        let error = Home::prepare(directory.path()).unwrap_err().to_string();
        assert!(error.contains("thesis.txt") && error.contains("choose another directory"), "{error}");
        assert!(matches!(Home::find(directory.path()), Err(LabError::NoLab { .. })));
    }

    #[test]
    fn a_new_directory_is_private_and_purging_spares_what_is_not_ours() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::prepare(&directory.path().join("a/lab")).unwrap();
        assert_eq!(home.dir().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(home.record(), "{}").unwrap();
        home.lay_out().unwrap();
        fs::write(home.dir().join("notes"), "mine").unwrap();
        home.purge().unwrap();
        let left: Vec<_> =
            fs::read_dir(home.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes"]);
    }

    #[test]
    fn paths_that_ceph_cannot_use_are_refused_before_anything_is_made() {
        for (path, why) in
            [("/tmp/my lab", "spaces"), ("/tmp/a;b", "spaces or any of"), ("/tmp/$HOME", "# ; $")]
        {
            let error = Home::prepare(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            assert!(!Path::new(path).exists());
        }
        let error = Home::prepare(Path::new(&format!("/tmp/{}", "x".repeat(74)))).unwrap_err().to_string();
        assert!(error.contains("its path has 79 bytes, and at most 75 leave room for sockets"), "{error}");
    }

    #[test]
    fn labs_have_names_of_their_own_outside_of_their_directories() {
        let mark = |dir: &str| Home { dir: dir.into() }.mark();
        assert_eq!(mark("/home/ann/lab"), "tidemark%2Fhome%2Fann%2Flab");
        assert_ne!(mark("/a/b"), mark("/a%2Fb"));
        assert!(!mark("/a/b").contains('/'));
    }

    #[test]
    fn only_one_command_works_in_a_lab_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::prepare(directory.path()).unwrap();
        let lock = home.lock().unwrap();
        assert!(matches!(home.lock(), Err(LabError::Busy { .. })));
        drop(lock);
        home.lock().unwrap();
    }
}
