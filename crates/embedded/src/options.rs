//! The options of an embedded server: its address, its storage and its credentials.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::error::EmbeddedError;

/// The size below which S3 refuses every part of a multipart upload but the last: 5 MiB.
pub const S3_MINIMUM_PART_BYTES: u64 = 5 * 1024 * 1024;

/// The options of an [`EmbeddedServer`](crate::EmbeddedServer); `Default` is a private server in memory.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// Where to listen; port 0 takes a free port. Default: `127.0.0.1:0`.
    pub address: SocketAddr,
    /// Threads that serve requests, at least 1. Default: 1.
    pub threads: usize,
    /// Where objects live. Default: memory.
    pub place: Place,
    /// The only accepted key pair. Default: a random pair, generated at start.
    pub credentials: Option<Credentials>,
    /// Also answer requests without a signature; those with one are still checked. Default: no.
    pub anonymous: bool,
    /// Buckets that exist from the start. Default: none.
    pub buckets: Vec<String>,
    /// The least size in bytes of each part of a multipart upload but the last.
    /// Default: [`S3_MINIMUM_PART_BYTES`]; tests with small parts lower it.
    pub minimum_part_bytes: u64,
    /// The seed of every fault that strikes by chance. Default: 1.
    pub fault_seed: u64,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            threads: 1,
            place: Place::Memory,
            credentials: None,
            anonymous: false,
            buckets: Vec::new(),
            minimum_part_bytes: S3_MINIMUM_PART_BYTES,
            fault_seed: 1,
        }
    }
}

/// Where the objects of an embedded server live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the memory of this process; gone when the server stops.
    Memory,
    /// In a directory of its own, one file per object; found again at the next start.
    Directory {
        /// The directory: new, empty, or left by an earlier server.
        path: PathBuf,
        /// Whether a write is answered only after `fsync` of the file and its directory.
        durable: bool,
    },
}

/// An access key and its secret. `Debug` never shows the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The public half, sent with every signed request.
    pub access_key: String,
    /// The secret half, never sent.
    pub secret_key: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Draws a new random pair in the shape AWS uses: 20 and 40 characters.
    ///
    /// # Errors
    /// [`EmbeddedError::Randomness`] when `/dev/urandom` cannot be read.
    pub fn random() -> Result<Self, EmbeddedError> {
        // 32 letters divide 256 evenly, so every letter is equally likely.
        const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let mut noise = [0_u8; 56];
        File::open("/dev/urandom")
            .and_then(|mut urandom| urandom.read_exact(&mut noise))
            .map_err(EmbeddedError::Randomness)?;
        let letters = |bytes: &[u8]| -> String {
            bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
        };
        let (public, secret) = noise.split_at(16);
        Ok(Self { access_key: format!("TIDE{}", letters(public)), secret_key: letters(secret) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_credentials_differ_and_debug_hides_the_secret() {
        let (one, other) = (Credentials::random().unwrap(), Credentials::random().unwrap());
        assert_ne!(one, other);
        assert_eq!((one.access_key.len(), one.secret_key.len()), (20, 40));
        let options = EmbeddedOptions { credentials: Some(one.clone()), ..EmbeddedOptions::default() };
        let shown = format!("{options:?}");
        assert!(shown.contains(&one.access_key) && !shown.contains(&one.secret_key));
    }
}
