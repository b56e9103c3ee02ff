//! What a controller on loopback leaves for the command line and the drivers of its own user: two tokens, in a file that
//! nobody else reads.
//!
//! The tokens are made at each start and end with it, so a file that outlives its controller opens nothing. They are sent only to who
//! proves that it knows them ([`super::proof`]): somebody else may have taken the controller's port by now. A file is found by the
//! address that a connection has in fact reached: a name such as `localhost` may lead elsewhere.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tidemark_plan::secret::Secret;

/// Tokens for the user who runs a controller.
#[derive(Clone, Debug)]
pub struct Access {
    /// For people; none where they need none.
    pub operator: Option<Secret>,
    /// For drivers of any name.
    pub driver: Secret,
}

/// The file with the tokens. It is removed with this.
#[derive(Debug)]
pub struct Left {
    path: PathBuf,
    text: String,
}

impl Drop for Left {
    fn drop(&mut self) {
        // Another controller may have left its own there by now.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Access {
    /// Leaves the tokens for whoever reaches `address` on this machine as the same user.
    ///
    /// # Errors
    /// When there is no place for the file: neither `XDG_STATE_HOME` nor `HOME` is set, or it cannot be written.
    pub fn leave(&self, address: SocketAddr) -> io::Result<Left> {
        let directory = directory().ok_or_else(|| io::Error::other("HOME is not set"))?;
        self.leave_in(&directory, address)
    }

    /// What a controller of this user has left that listens at `address` of this machine; nothing for other machines.
    pub fn find(address: SocketAddr) -> Option<Self> {
        Self::find_in(&directory()?, address)
    }

    fn leave_in(&self, directory: &Path, address: SocketAddr) -> io::Result<Left> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(address.to_string());
        let mut text = format!("driver {}\n", self.driver.reveal());
        if let Some(operator) = &self.operator {
            text += &format!("operator {}\n", operator.reveal());
        }
        let new = directory.join(format!("{address}.new"));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, &path)?;
        Ok(Left { path, text })
    }

    fn find_in(directory: &Path, address: SocketAddr) -> Option<Self> {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        if !address.ip().is_loopback() {
            return None;
        }
        let text = fs::read_to_string(directory.join(address.to_string())).ok()?;
        let token = |role: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(own, _)| *own == role).map(|(_, token)| Secret::new(token))
        };
        Some(Self { operator: token("operator"), driver: token("driver")? })
    }
}

/// Where the files are, apart for each machine: a home may be shared by several.
fn directory() -> Option<PathBuf> {
    let path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let state = path("XDG_STATE_HOME").or_else(|| path("HOME").map(|home| home.join(".local/state")))?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Some(state.join("tidemark/controllers").join(host.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn access(number: u8) -> Access {
        let secret = |role: &str| Secret::new(format!("tm_{role}_{number}"));
        Access { operator: Some(secret("o")), driver: secret("d") }
    }

    #[test]
    fn tokens_are_left_for_the_same_user_and_address_only_and_end_with_their_controller() {
        let state = tempfile::tempdir().unwrap();
        let directory = state.path().join("a/b");
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let here = at("127.0.0.1:19088");
        let first = access(1).leave_in(&directory, here).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&first.path), mode(&directory)), (0o600, 0o700));
        let found =
            |address| Access::find_in(&directory, address).map(|found| found.driver.reveal().to_owned());
        assert_eq!(found(here).as_deref(), Some("tm_d_1"));
        assert_eq!(found(at("[::ffff:127.0.0.1]:19088")).as_deref(), Some("tm_d_1"));
        for other in ["[::1]:19088", "127.0.0.2:19088", "127.0.0.1:19089", "10.0.0.1:19088"] {
            assert_eq!(found(at(other)), None, "{other} may be somebody else's");
        }
        let second = access(2).leave_in(&directory, here).unwrap();
        drop(first);
        assert_eq!(found(here).as_deref(), Some("tm_d_2"), "it is another controller's by now");
        drop(second);
        assert_eq!(found(here), None);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        assert!(!format!("{:?}", access(3)).contains("tm_"));
    }
}
