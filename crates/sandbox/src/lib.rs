//! Programs that the kernel lets write only where a guard has looked.
//!
//! A program such as fio opens what it takes its options to mean, and a guard examines what *we* take them to mean. Where the two
//! differ, data that nobody examined is written over. A [`Sandbox`] closes that gap: the program runs in a Landlock domain
//! (`landlock(7)`), in which every path that is not listed is refused with `EACCES`, whatever led the program there. Reading stays free,
//! but for devices: a driver may take a command that writes from a descriptor that is open for reading.
//!
//! What may be written is listed by open descriptors, not by paths: a rule is for the very file that was examined. If a path leads to
//! another one by the time the program opens it, that one is not listed.

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus,
};
use rustix::fs::FileType;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

/// What decides about files of devices.
const DEVICES: &str = "/dev";

/// Devices in which nothing is stored: programs read and write them as they like.
const HARMLESS: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/fd",
];

/// The rights that make a kernel refuse writes at all: the first version of Landlock (Linux 5.13).
const LEAST: ABI = ABI::V1;

/// The latest rights that are used where the kernel has them: truncation by path (6.2) and control of devices (6.10).
const MOST: ABI = ABI::V5;

/// Where a program may write. All else it may read, but for devices.
#[derive(Clone, Debug, Default)]
pub struct Sandbox(Vec<Grant>);

/// Something that the program may use.
#[derive(Clone, Debug)]
struct Grant {
    /// Its name, for messages.
    path: PathBuf,
    /// Open, if only to tell which it is (`O_PATH`).
    found: Arc<OwnedFd>,
    what: What,
}

/// What may be done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    WriteFile,
    WriteDevice,
    Read,
    MakeFiles,
}

/// A program could not be started in its sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The kernel has no Landlock, or something forbids it.
    #[error(
        "this kernel cannot keep programs from writing elsewhere (Landlock, Linux 5.13 or later, is missing or forbidden): {0}"
    )]
    Unsupported(String),
    /// A path that the program may write to cannot be opened.
    #[error("{} cannot be given to the program: {reason}", path.display())]
    Path {
        /// Which path.
        path: PathBuf,
        /// What the system replied.
        reason: String,
    },
    /// The program cannot be started.
    #[error(transparent)]
    Start(#[from] io::Error),
}

/// Whether a path is a device in which nothing is stored, such as `/dev/null`.
pub fn is_harmless(path: &Path) -> bool {
    let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    HARMLESS.iter().any(|harmless| whole.starts_with(harmless))
}

impl Sandbox {
    /// A file that the program may write to. If it is a device, it is as good as not listed.
    pub fn file(&mut self, path: impl Into<PathBuf>, found: Arc<OwnedFd>) {
        self.0.push(Grant { path: path.into(), found, what: What::WriteFile });
    }

    /// A device that the program may write to and control. The descriptor tells the device's file, not what is behind it: whoever opens it
    /// for reading keeps a loop device from being detached meanwhile.
    pub fn device(&mut self, path: impl Into<PathBuf>, found: Arc<OwnedFd>) {
        self.0.push(Grant { path: path.into(), found, what: What::WriteDevice });
    }

    /// A directory below which the program may make, write and remove files and make directories, whatever is there already.
    pub fn directory(&mut self, path: impl Into<PathBuf>, found: Arc<OwnedFd>) {
        self.0.push(Grant { path: path.into(), found, what: What::MakeFiles });
    }

    /// A file or device that the program may read; a device it may ask for its properties, too.
    pub fn read(&mut self, path: impl Into<PathBuf>, found: Arc<OwnedFd>) {
        self.0.push(Grant { path: path.into(), found, what: What::Read });
    }

    /// Whether the kernel of this machine can keep programs in.
    ///
    /// # Errors
    /// It cannot, with the system's reason.
    pub fn is_supported() -> Result<(), SandboxError> {
        handled().and_then(Ruleset::create).map(drop).map_err(|error| unsupported(&error))
    }

    /// Starts a program inside: it, and whatever it starts, is refused all other writes for as long as it runs. This process is not
    /// restricted.
    ///
    /// # Errors
    /// The kernel cannot do that, a path is not accessible, or the program cannot be started. Without the sandbox it is not started.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, SandboxError> {
        let domain = self.domain()?;
        // A domain holds for the thread that enters it, and for what that thread starts. So one is made for this.
        std::thread::scope(|scope| {
            let inside = || {
                let status = domain.restrict_self().map_err(|error| unsupported(&error))?;
                match status.ruleset {
                    RulesetStatus::NotEnforced => Err(SandboxError::Unsupported("it is not enforced".into())),
                    _ => Ok(command.spawn()?),
                }
            };
            let thread = std::thread::Builder::new().name("sandbox".into()).spawn_scoped(scope, inside)?;
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that starts it has failed").into()))
        })
    }

    /// The same for a program whose command line is our own: where the kernel cannot keep it in, it is started without.
    ///
    /// # Errors
    /// A path is not accessible, or the program cannot be started.
    pub fn spawn_where_supported(&self, command: &mut Command) -> Result<Child, SandboxError> {
        match Self::is_supported() {
            Ok(()) => self.spawn(command),
            Err(_) => Ok(command.spawn()?),
        }
    }

    /// The rules for the kernel.
    fn domain(&self) -> Result<RulesetCreated, SandboxError> {
        let mut domain = handled().and_then(Ruleset::create).map_err(|error| unsupported(&error))?;
        let harmless: Vec<PathBuf> = HARMLESS.iter().map(PathBuf::from).collect();
        for (paths, access) in
            [(top_levels(), AccessFs::ReadFile.into()), (harmless, What::WriteFile.access())]
        {
            for path in paths {
                // What cannot be opened, such as a mount that is broken, the program cannot open either.
                let Ok(found) = PathFd::new(&path) else { continue };
                domain = allow(domain, &path, found.as_fd(), access)?;
            }
        }
        for Grant { path, found, what } in &self.0 {
            let kind = kind(path, found.as_fd())?;
            let is_device = matches!(kind, FileType::BlockDevice | FileType::CharacterDevice);
            if !is_device || *what != What::WriteFile {
                domain = allow(domain, path, found.as_fd(), what.access())?;
            }
        }
        Ok(domain)
    }
}

impl What {
    fn access(self) -> BitFlags<AccessFs> {
        match self {
            What::WriteFile | What::WriteDevice => write() & AccessFs::from_file(MOST) | AccessFs::ReadFile,
            What::Read => AccessFs::ReadFile | AccessFs::IoctlDev,
            What::MakeFiles => {
                AccessFs::ReadFile
                    | AccessFs::WriteFile
                    | AccessFs::Truncate
                    | AccessFs::RemoveFile
                    | AccessFs::MakeReg
                    | AccessFs::MakeDir
            }
        }
    }
}

/// Adds what is open with what may be done there.
fn allow(
    domain: RulesetCreated,
    path: &Path,
    found: BorrowedFd<'_>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, SandboxError> {
    let is_directory = kind(path, found)? == FileType::Directory;
    let access = if is_directory { access } else { access & AccessFs::from_file(MOST) };
    domain.add_rule(PathBeneath::new(found, access)).map_err(|error| refused(path, &error))
}

fn kind(path: &Path, found: BorrowedFd<'_>) -> Result<FileType, SandboxError> {
    let found = rustix::fs::fstat(found).map_err(|error| refused(path, &error))?;
    Ok(FileType::from_raw_mode(found.st_mode))
}

fn refused(path: &Path, reason: &dyn std::fmt::Display) -> SandboxError {
    SandboxError::Path { path: path.to_owned(), reason: reason.to_string() }
}

/// All rights that change something.
fn write() -> BitFlags<AccessFs> {
    AccessFs::from_write(MOST)
}

/// The rules' frame: without rules, nothing may be written, and no file read.
fn handled() -> Result<Ruleset, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(LEAST) | AccessFs::ReadFile)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(write())
}

/// What lies directly below `/`, but for the devices.
fn top_levels() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path != Path::new(DEVICES)).collect()
}

fn unsupported(error: &RulesetError) -> SandboxError {
    SandboxError::Unsupported(error.to_string())
}

#[cfg(test)]
mod tests;
