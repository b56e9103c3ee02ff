//! Secrets: usable, never printable.

use serde::{Deserialize, Serialize};

/// A password, key or token. It never shows in debug output and has no `Display`.
///
/// It is serialized for one purpose: a plan on its way to a driver. What is kept and shown is made of `tidemark-measure`, which
/// does not know this type.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if self.is_empty() { "Secret(none)" } else { "Secret(hidden)" })
    }
}
