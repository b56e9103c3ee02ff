//! Tokens that end with a server: those that it makes at its start for its own user and its own driver, and those that it was given.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use std::fmt;
use tidemark_controller::api::Role;

/// Shorter tokens that somebody thought of can be guessed, characters.
const SHORTEST: usize = 16;

/// A token of one start of a server. It stands in no store.
#[derive(Clone)]
pub struct OwnToken {
    text: String,
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Whether somebody else made it, and knows it already.
    pub(crate) is_given: bool,
}

impl OwnToken {
    /// Makes one. A driver's is for drivers of this name, or for all whose names begin with what stands before a final `*`.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(name: &str, role: Role) -> Result<Self, getrandom::Error> {
        let mut random = [0; 32];
        getrandom::fill(&mut random)?;
        Ok(Self { text: BASE64_URL_SAFE_NO_PAD.encode(random), name: name.to_owned(), role, is_given: false })
    }

    /// One that whoever runs the server has made; `None` if it has less than 16 characters, and can be guessed.
    pub fn given(text: &str, name: &str, role: Role) -> Option<Self> {
        let is_long = text.chars().count() >= SHORTEST;
        is_long.then(|| Self { text: text.to_owned(), name: name.to_owned(), role, is_given: true })
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
