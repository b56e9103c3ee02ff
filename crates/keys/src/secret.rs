//! Secrets: usable, never printable; and the names by which they are known.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The variables that a controller keeps for submitted documents begin with this.
pub const PREFIX: &str = "TIDEMARK_SECRET_";

/// A password, key or token. It never shows in debug output and has no `Display`.
///
/// It is serialized for one purpose: a plan on its way to a driver. What is kept and shown is made of `tidemark-measure`, which
/// does not know this type.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret {
    text: String,
    /// What it was read from and the addresses to which it is bound, if it is bound.
    #[serde(skip)]
    bound: Option<Arc<Binding>>,
}

/// The addresses to which a secret may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The variable or file that holds the secret.
    pub name: String,
    /// Scheme, host and port of each: `https://10.0.0.1:8000`.
    pub addresses: Vec<String>,
}

impl Binding {
    /// That of a secret that is made of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (Self { name, mut addresses }, Self { name: other_name, addresses: others }) = (self, other);
        addresses.retain(|address| others.contains(address));
        Self { name: format!("{name} and {other_name}"), addresses }
    }
}

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), bound: None }
    }

    /// The same, which may be sent to some addresses only.
    #[must_use]
    pub fn bound(mut self, binding: Option<Binding>) -> Self {
        self.bound = binding.map(Arc::new);
        self
    }

    /// The addresses to which it is bound, if it is.
    pub fn binding(&self) -> Option<&Binding> {
        self.bound.as_deref()
    }

    /// The secret itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// The same secret is the same whatever it was read from.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Secret {}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_empty() { "Secret(none)" } else { "Secret(hidden)" })
    }
}

/// Whether the value of a key of this name is a secret. Misspelled names count, too.
pub fn is_secret(key: &str) -> bool {
    if is_upper_secret(key) {
        return true;
    }
    let key: String = key.chars().filter(|c| !matches!(c, '_' | '-')).collect::<String>().to_lowercase();
    let near =
        |name: &str| key.len().abs_diff(name.len()) <= 2 && strsim::damerau_levenshtein(&key, name) <= 2;
    ["secret", "password", "passwd", "passphrase"].iter().any(|part| key.contains(part))
        || ["token", "apikey", "privatekey", "jsonkey"].iter().any(|end| key.ends_with(end))
        || key == "key"
        // fio's http engine.
        || matches!(key.as_str(), "httppass" | "https3key")
        || near("secretkey")
        || near("password")
}

/// Whether a variable holds a secret, as its name says.
pub fn is_secret_variable(name: &str) -> bool {
    name.starts_with(PREFIX) || is_secret(name)
}

/// Names of variables such as `LAB_SWIFT_KEY` and `DB_PASS`. An access key is a name.
fn is_upper_secret(name: &str) -> bool {
    let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let ends = ["_KEY", "_PASS", "_PWD", "_CREDENTIALS", "_SECRETS"];
    name.bytes().all(upper) && ends.iter().any(|end| name.ends_with(end)) && !name.ends_with("ACCESS_KEY")
}
