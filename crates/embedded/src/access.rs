//! Authentication: one key pair, and requests without a signature if the options allow them.
//!
//! `s3s` checks signatures, their age (15 minutes either way, else `RequestTimeTooSkewed`) and payload hashes.

use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};

use crate::options::Credentials;

/// The one key pair.
pub(super) struct OnePair {
    access_key: String,
    secret_key: SecretKey,
}

impl From<&Credentials> for OnePair {
    fn from(credentials: &Credentials) -> Self {
        let secret_key = SecretKey::from(credentials.secret_key.as_str());
        Self { access_key: credentials.access_key.clone(), secret_key }
    }
}

#[async_trait::async_trait]
impl S3Auth for OnePair {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        if access_key == self.access_key {
            return Ok(self.secret_key.clone());
        }
        Err(s3_error!(InvalidAccessKeyId, "This server does not know the access key."))
    }
}

/// Accepts every request whose signature is valid or absent.
pub(super) struct Anybody;

#[async_trait::async_trait]
impl S3Access for Anybody {
    async fn check(&self, _context: &mut S3AccessContext<'_>) -> S3Result<()> {
        Ok(())
    }
}
