//! Secrets, as documents are read into them: see [`tidemark_keys::secret`].

pub use tidemark_keys::secret::{Binding, Secret};
