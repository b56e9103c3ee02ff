//! Documents at rest: sealed, for they may contain secrets.
//!
//! The key lies beside the store. That keeps secrets out of copies and backups of the store; whoever can read this user's
//! files can read them all the same.

use crate::options::StartError;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes of a key (RFC 8439).
const KEY_LENGTH: usize = 32;

/// The first byte of what is sealed: how.
const VERSION: u8 = 1;

/// Seals documents and opens them.
pub(crate) struct Seal {
    key: LessSafeKey,
}

impl Seal {
    /// With the key beside the store; makes one if there is none.
    pub(crate) fn beside(store: &Path) -> Result<Self, StartError> {
        let path = key_path(store);
        let trouble = |what: &str, error: &dyn std::fmt::Display| {
            StartError(format!("key {} cannot be {what}: {error}", path.display()))
        };
        let key = match std::fs::read(&path) {
            Ok(key) => {
                let found = std::fs::metadata(&path).map_err(|error| trouble("read", &error))?;
                if found.mode() & 0o077 != 0 {
                    return Err(StartError(format!(
                        "{} is readable by other users, and it encrypts documents with secrets: `chmod 600` it, and \
                         change the secrets if it may have been read",
                        path.display()
                    )));
                }
                key
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_key(&path).map_err(|error| trouble("created", &error))?
            }
            Err(error) => return Err(trouble("read", &error)),
        };
        Self::new(&key).ok_or_else(|| {
            StartError(format!(
                "{} is not a key of {KEY_LENGTH} bytes: restore it from a backup, or remove it and resubmit everything \
                 in the queue",
                path.display()
            ))
        })
    }

    fn new(key: &[u8]) -> Option<Self> {
        Some(Self { key: LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).ok()?) })
    }

    /// Seals a document. Nonces are random: of 96 bits, which is safe for far more documents than a store holds.
    pub(crate) fn seal(&self, document: &str) -> Result<Vec<u8>, String> {
        let failed = |_| "cannot encrypt the document".to_owned();
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(failed)?;
        let mut content = document.as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(unique, Aad::from([VERSION]), &mut content).map_err(failed)?;
        Ok([&[VERSION][..], &nonce, &content].concat())
    }

    /// Opens what [`Seal::seal`] has sealed.
    pub(crate) fn open(&self, sealed: &[u8]) -> Result<String, String> {
        let failed =
            || "the document was encrypted with another key or is damaged: submit it again".to_owned();
        let (version, rest) = sealed.split_first().ok_or_else(failed)?;
        let (nonce, content) = rest.split_at_checked(NONCE_LEN).ok_or_else(failed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| failed())?;
        let mut content = content.to_vec();
        let opened =
            self.key.open_in_place(nonce, Aad::from([*version]), &mut content).map_err(|_| failed())?;
        String::from_utf8(opened.to_vec()).map_err(|_| failed())
    }
}

/// Only one controller is at a store, so that nobody else makes the key meanwhile.
fn make_key(path: &Path) -> io::Result<Vec<u8>> {
    let mut key = vec![0; KEY_LENGTH];
    SystemRandom::new().fill(&mut key).map_err(|_| io::Error::other("the system gives no random numbers"))?;
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(&key).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a key would be in the way of the next start.
        let _ = std::fs::remove_file(path);
    }
    written.map(|()| key)
}

/// `results.db.key`.
fn key_path(store: &Path) -> PathBuf {
    let mut name: OsString = store.as_os_str().to_owned();
    name.push(".key");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_sealed_opens_with_the_same_key_only() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("results.db");
        let text = "secret_key: hunter2 and more";
        let sealed = Seal::beside(&store).unwrap().seal(text).unwrap();
        assert!(!sealed.windows(7).any(|window| window == b"hunter2"));
        let again = Seal::beside(&store).unwrap();
        assert_eq!(again.open(&sealed).unwrap(), text);
        assert_ne!(again.seal(text).unwrap(), sealed, "no nonce is used twice");
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(again.open(&damaged).is_err(), "byte {at}");
            assert!(again.open(&sealed[..at]).is_err(), "the first {at} bytes");
        }
        let other = Seal::beside(&directory.path().join("other.db")).unwrap();
        assert!(other.open(&sealed).unwrap_err().contains("another key"));
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("results.db");
        Seal::beside(&store).unwrap();
        let path = key_path(&store);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Seal::beside(&store).err().unwrap().0.contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(Seal::beside(&store).err().unwrap().0.contains("is not a key"));
    }
}
