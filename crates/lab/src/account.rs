//! The user that database servers run as: that of their package where we are root, whom they refuse; else ourselves.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::command::Programs;
use crate::daemon::Under;
use crate::error::LabError;

/// How long looking up a user may take.
const LOOK_UP: Duration = Duration::from_secs(30);

/// A user of this machine.
#[derive(Clone, Debug)]
pub(super) struct Account {
    name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// The user of a package; none if we are not root and run everything as ourselves.
    pub(super) fn of_package(name: &'static str, programs: &Programs) -> Result<Option<Self>, LabError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let failed = |_| LabError::NoUser { name };
        let line = programs.run("getent", &["passwd", name], LOOK_UP).map_err(failed)?;
        read(&line).map(Some).ok_or(LabError::NoUser { name })
    }

    /// What a daemon runs as.
    pub(super) fn under(account: Option<&Self>) -> Under<'_> {
        account.map_or(Under::Us, Under::Account)
    }

    /// Makes a command run as this user.
    pub(super) fn become_in(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives the user a file or directory.
    pub(super) fn own(&self, path: &Path) -> Result<(), LabError> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(LabError::file("change the owner of", path))
    }

    /// Fails if the user may not pass through a directory above a path, as through the home of root.
    pub(super) fn check_reach(&self, path: &Path) -> Result<(), LabError> {
        for directory in path.ancestors().skip(1) {
            let Ok(data) = fs::metadata(directory) else { continue };
            let place = if data.uid() == self.uid {
                0o100
            } else if data.gid() == self.gid {
                0o010
            } else {
                0o001
            };
            if data.permissions().mode() & place == 0 {
                return Err(LabError::UnsuitableDirectory {
                    dir: path.to_owned(),
                    why: format!(
                        "its servers run as the user {}, who may not enter {}",
                        self.name,
                        directory.display()
                    ),
                });
            }
        }
        Ok(())
    }
}

/// A line of `/etc/passwd` (passwd(5)).
fn read(line: &str) -> Option<Account> {
    let mut fields = line.trim_end().split(':');
    let name = fields.next()?.to_owned();
    let (_, uid, gid) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Account { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_the_servers_may_not_enter_is_named() {
        let account =
            read("postgres:x:54321:54322:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash\n")
                .unwrap();
        assert_eq!((account.uid, account.gid), (54321, 54322));
        assert!(read("postgres:x:a:1:").is_none() && read("").is_none());
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let inside = directory.path().join("lab/data");
        let error = account.check_reach(&inside).unwrap_err().to_string();
        let named = format!("the user postgres, who may not enter {}", directory.path().display());
        assert!(error.contains(&named) && error.contains("choose another directory"), "{error}");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).unwrap();
        account.check_reach(&inside).unwrap();
    }
}
