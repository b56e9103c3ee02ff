//! Files and directories opened where a plan may be, at the moment of their use.
//!
//! A path that was checked before may lead elsewhere when it is opened: somebody put a link in its way. So what a plan from the
//! network names is looked up once more and opened by `openat2` (Linux 5.6), which follows no link and does not leave the
//! directory. Names that a load makes are opened so whoever sent the plan.

use super::Policy;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// How often something is opened again while others rename directories on its way.
const TRIES: usize = 16;

/// Which files of this machine a run may open.
#[derive(Clone, Debug, Default)]
pub struct Access(Option<Arc<Policy>>);

impl Access {
    /// All that this process may: the plan is its user's own.
    pub fn own() -> Self {
        Self(None)
    }

    /// What a policy allows.
    pub fn within(policy: Policy) -> Self {
        Self(Some(Arc::new(policy)))
    }

    /// Opens a file or device.
    ///
    /// # Errors
    /// The operating system's; and when the path leads beyond what is allowed, or through a link that was not there when it
    /// was looked up.
    pub fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        let Some((root, rest)) = self.place(path)? else {
            return Ok(rustix::fs::open(path, flags | OFlags::CLOEXEC, mode)?.into());
        };
        if rest.as_os_str().is_empty() {
            return Ok(without_links(CWD, &root, flags, mode, ResolveFlags::empty())?.into());
        }
        Ok(beneath(&top(&root)?, &rest, flags, mode)?.into())
    }

    /// Opens a directory, which is made if it is not there.
    ///
    /// # Errors
    /// As [`Access::open`].
    pub fn directory(&self, path: &Path) -> io::Result<Directory> {
        let Some((root, rest)) = self.place(path)? else {
            std::fs::create_dir_all(path)?;
            let found = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
            return Ok(Directory { found, path: path.to_owned() });
        };
        let top = Directory { found: top(&root)?, path: root };
        if rest.as_os_str().is_empty() {
            return Ok(Directory { path: path.to_owned(), ..top });
        }
        top.make(&rest)?;
        Ok(Directory { found: beneath(&top.found, &rest, DIRECTORY, Mode::empty())?, path: path.to_owned() })
    }

    /// The allowed directory that a path lies below, without links, and the rest; `None`: all are allowed.
    fn place(&self, path: &Path) -> io::Result<Option<(PathBuf, PathBuf)>> {
        let Some(policy) = &self.0 else { return Ok(None) };
        let refused = |why| io::Error::new(io::ErrorKind::PermissionDenied, why);
        policy.place("the run", path).map(Some).map_err(refused)
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn top(root: &Path) -> io::Result<OwnedFd> {
    without_links(CWD, root, DIRECTORY, Mode::empty(), ResolveFlags::empty())
}

fn beneath(directory: &OwnedFd, name: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    without_links(directory, name, flags, mode, ResolveFlags::BENEATH)
}

fn without_links(
    directory: impl AsFd,
    name: &Path,
    flags: OFlags,
    mode: Mode,
    more: ResolveFlags,
) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | more;
    // `openat2` takes no mode where nothing is created.
    let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
    let mut tries = 0;
    loop {
        tries += 1;
        match openat2(&directory, name, flags | OFlags::CLOEXEC, mode, resolve) {
            Err(Errno::AGAIN) if tries < TRIES => {}
            Err(Errno::LOOP) => {
                return Err(io::Error::other("there is a symbolic link on the way, which is not followed"));
            }
            opened => return Ok(opened?),
        }
    }
}

/// A directory whose files a load reads or writes by names of its own.
#[derive(Debug)]
pub struct Directory {
    found: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file below it; no link is followed.
    ///
    /// # Errors
    /// The operating system's; and when the name leads out of the directory or through a link.
    pub fn open(&self, name: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        Ok(beneath(&self.found, name, flags, mode)?.into())
    }

    /// Makes a directory below it, and those on the way.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn make(&self, name: &Path) -> io::Result<()> {
        let mut made = PathBuf::new();
        for part in name.components() {
            let Component::Normal(part) = part else {
                return Err(io::Error::other("the name leads out of the directory"));
            };
            let parent = match made.as_os_str().is_empty() {
                true => self.found.try_clone()?,
                false => beneath(&self.found, &made, DIRECTORY, Mode::empty())?,
            };
            match mkdirat(&parent, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => made.push(part),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The names of what is in it, without what leads elsewhere, in no order.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn names(&self) -> io::Result<Vec<std::ffi::OsString>> {
        use std::os::unix::ffi::OsStringExt as _;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.found)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(std::ffi::OsString::from_vec(name));
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    fn content(file: io::Result<File>) -> Result<String, String> {
        let mut text = String::new();
        file.and_then(|mut file| file.read_to_string(&mut text)).map_err(|error| error.to_string())?;
        Ok(text)
    }

    /// A directory `in` with a file, and one beside it, `out`, with a secret.
    fn machine() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        for directory in ["in", "in/below", "out"] {
            std::fs::create_dir(top.path().join(directory)).unwrap();
        }
        std::fs::write(top.path().join("in/below/file"), "open").unwrap();
        std::fs::write(top.path().join("out/file"), "hunter2").unwrap();
        top
    }

    #[test]
    fn a_link_that_was_put_in_after_the_check_is_not_followed() {
        let top = machine();
        let inside = top.path().join("in");
        let policy = Policy { directories: vec![inside.clone()], ..Policy::default() };
        let access = Access::within(policy.clone());
        let read = |path: &Path| content(access.open(path, OFlags::RDONLY, Mode::empty()));
        assert_eq!(read(&inside.join("below/file")).as_deref(), Ok("open"));
        // As between the check and the use: the place of the checked path is taken by a link.
        let (root, rest) = policy.place("it", &inside.join("below/file")).unwrap();
        std::fs::rename(inside.join("below"), inside.join("old")).unwrap();
        symlink(top.path().join("out"), inside.join("below")).unwrap();
        let root = super::top(&root).unwrap();
        let late = beneath(&root, &rest, OFlags::RDONLY, Mode::empty()).map(File::from);
        assert!(content(late).unwrap_err().contains("symbolic link"));
        assert!(read(&inside.join("below/file")).unwrap_err().contains("does not allow"));
        let new =
            access.open(&inside.join("below/new"), OFlags::RDWR | OFlags::CREATE, Mode::from_raw_mode(0o600));
        assert!(new.is_err() && !top.path().join("out/new").exists());
        assert!(
            access.directory(&inside.join("below/deep/er")).is_err() && !top.path().join("out/deep").exists()
        );
    }

    #[test]
    fn names_below_a_directory_follow_no_links_whoever_asks() {
        let top = machine();
        let inside = top.path().join("in");
        symlink(top.path().join("out"), inside.join("link")).unwrap();
        symlink(top.path().join("out/file"), inside.join("below/alias")).unwrap();
        for access in
            [Access::own(), Access::within(Policy { directories: vec![inside.clone()], ..Policy::default() })]
        {
            let directory = access.directory(&inside).unwrap();
            let open = |name: &str| content(directory.open(Path::new(name), OFlags::RDONLY, Mode::empty()));
            assert_eq!(open("below/file").as_deref(), Ok("open"));
            for name in ["link/file", "below/alias", "../out/file", "/etc/hostname"] {
                assert!(open(name).is_err(), "{name}");
            }
            assert!(directory.make(Path::new("link/new")).is_err() && !top.path().join("out/new").exists());
            assert!(directory.make(Path::new("../new")).is_err() && !top.path().join("new").exists());
            directory.make(Path::new("new/er")).unwrap();
            assert!(inside.join("new/er").is_dir());
            assert_eq!(access.directory(&inside.join("new")).unwrap().names().unwrap(), ["er"]);
        }
        let file = inside.join("below/file");
        let single = Access::within(Policy { directories: vec![file.clone()], ..Policy::default() });
        assert_eq!(content(single.open(&file, OFlags::RDONLY, Mode::empty())).as_deref(), Ok("open"));
    }
}
