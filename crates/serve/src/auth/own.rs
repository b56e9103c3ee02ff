//! Tokens that a server makes at its start and that end with it: for its own user and its own driver.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use std::fmt;
use tidemark_controller::api::Role;

/// A token of one start of a server. It stands in no store.
#[derive(Clone)]
pub struct OwnToken {
    text: String,
    pub(crate) name: String,
    pub(crate) role: Role,
}

impl OwnToken {
    /// Makes one. A driver's is for drivers of this name, or for all whose names begin with what stands before a final `*`.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(name: &str, role: Role) -> Result<Self, getrandom::Error> {
        let mut random = [0; 32];
        getrandom::fill(&mut random)?;
        Ok(Self { text: BASE64_URL_SAFE_NO_PAD.encode(random), name: name.to_owned(), role })
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for OwnToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OwnToken({}, {:?})", self.name, self.role)
    }
}
