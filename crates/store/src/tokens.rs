//! Who may speak to a controller: tokens, of which only the hash is kept.
//!
//! A token has 256 random bits, too many to guess, so a fast hash without salt is enough. It is looked up by its
//! hash in an index; the time that takes may reveal the first bytes of the hash, but nothing of the token.

use crate::error::StoreError;
use crate::store::{Store, now_ns, signed};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rusqlite::{OptionalExtension as _, params};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The longest name of a token, characters.
const LONGEST_NAME: usize = 64;

/// How often the time of a token's last use is stored, nanoseconds: not every request may cost a write.
const USE_NOTED_EVERY_NS: u64 = 60_000_000_000;

/// What tokens allow: their roles.
const ROLES: [&str; 3] = ["viewer", "operator", "driver"];

/// What is known about a token; the token itself is not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    /// Its name, which says whose it is.
    pub name: String,
    /// What it allows: `viewer`, `operator` or `driver`.
    pub role: String,
    /// When it was made, nanoseconds since 1970 UTC.
    pub created_unix_ns: u64,
    /// When it was used last, to the minute.
    pub used_unix_ns: Option<u64>,
    /// When it was revoked, if it was.
    pub revoked_unix_ns: Option<u64>,
}

impl Store {
    /// Creates a token and returns it; it is stored nowhere. It begins with `tm_o_` for an operator, then 43 letters.
    ///
    /// # Errors
    /// The name is taken (names of revoked tokens stay taken, because the audit log has them), or the name or the role is
    /// invalid.
    pub fn add_token(&mut self, name: &str, role: &str) -> Result<String, StoreError> {
        let visible = |letter: char| !letter.is_control() && !letter.is_whitespace();
        if name.is_empty() || name.chars().count() > LONGEST_NAME || !name.chars().all(visible) {
            return Err(StoreError::Token(format!(
                "a token's name must have 1 to {LONGEST_NAME} characters and no spaces"
            )));
        }
        if !ROLES.contains(&role) {
            return Err(StoreError::Token(format!("a token's role must be one of {}", ROLES.join(", "))));
        }
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| {
            StoreError::Token(format!("cannot read random numbers from the system: {error}"))
        })?;
        let token = format!("tm_{}_{}", &role[..1], URL_SAFE_NO_PAD.encode(secret));
        let sql = "INSERT INTO tokens (name, role, hash, created_unix_ns) VALUES (?, ?, ?, ?)
                   ON CONFLICT (name) DO NOTHING";
        let values = params![name, role, hash(&token), signed(now_ns())];
        match self.connection.execute(sql, values).map_err(|error| self.trouble(error))? {
            0 => Err(StoreError::Token(format!("a token `{name}` already exists; use another name"))),
            _ => Ok(token),
        }
    }

    /// The owner of a token and what it allows: name and role. `None` for any other text, and for revoked tokens.
    pub fn token_of(&self, text: &str) -> Result<Option<(String, String)>, StoreError> {
        let sql = "SELECT name, role, used_unix_ns FROM tokens WHERE hash = ? AND revoked_unix_ns IS NULL";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?));
        let found: rusqlite::Result<Option<(String, String, _)>> = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row([hash(text)], read).optional());
        let Some((name, role, used)) = found.map_err(|error| self.trouble(error))? else { return Ok(None) };
        let now = now_ns();
        if used.is_none_or(|used| now.saturating_sub(used as u64) > USE_NOTED_EVERY_NS) {
            // A store that cannot be written must not lock its users out.
            let sql = "UPDATE tokens SET used_unix_ns = ? WHERE name = ?";
            let _ = self.connection.execute(sql, params![signed(now), name]);
        }
        Ok(Some((name, role)))
    }

    /// The SHA-256 of every token, the revoked ones included.
    pub fn token_digests(&self) -> Result<Vec<[u8; 32]>, StoreError> {
        self.rows("SELECT hash FROM tokens", [], |row| row.get(0))
    }

    /// All tokens by name, the revoked ones included.
    pub fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let sql =
            "SELECT name, role, created_unix_ns, used_unix_ns, revoked_unix_ns FROM tokens ORDER BY name";
        let maybe = |row: &rusqlite::Row<'_>, column| {
            row.get::<_, Option<i64>>(column).map(|number| number.map(|number| number as u64))
        };
        let token = |row: &rusqlite::Row<'_>| {
            Ok(Token {
                name: row.get(0)?,
                role: row.get(1)?,
                created_unix_ns: row.get::<_, i64>(2)? as u64,
                used_unix_ns: maybe(row, 3)?,
                revoked_unix_ns: maybe(row, 4)?,
            })
        };
        self.rows(sql, [], token)
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// There is no token of that name, or it is revoked already.
    pub fn revoke_token(&mut self, name: &str) -> Result<(), StoreError> {
        let sql = "UPDATE tokens SET revoked_unix_ns = ? WHERE name = ? AND revoked_unix_ns IS NULL";
        match self
            .connection
            .execute(sql, params![signed(now_ns()), name])
            .map_err(|error| self.trouble(error))?
        {
            0 => Err(StoreError::Token(format!("there is no token `{name}`, or it is already revoked"))),
            _ => Ok(()),
        }
    }
}

fn hash(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_works_until_it_is_revoked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.db");
        let mut store = Store::open(&path).unwrap();
        let token = store.add_token("anna", "operator").unwrap();
        assert!(token.starts_with("tm_o_") && token.len() == 5 + 43, "{}", token.len());
        assert_ne!(token, store.add_token("ben", "operator").unwrap());
        assert_eq!(store.token_of(&token).unwrap(), Some(("anna".into(), "operator".into())));
        for other in ["", "tm_o_", &token[..47], &format!("{token}A")] {
            assert_eq!(store.token_of(other).unwrap(), None);
        }
        let digest = |token: &str| <[u8; 32]>::from(Sha256::digest(token.as_bytes()));
        let digests = store.token_digests().unwrap();
        assert!(digests.len() == 2 && digests.contains(&digest(&token)), "{digests:?}");
        let listed = store.tokens().unwrap();
        assert_eq!(listed.iter().map(|token| token.name.as_str()).collect::<Vec<_>>(), ["anna", "ben"]);
        assert!(listed[0].used_unix_ns.is_some() && listed[1].used_unix_ns.is_none());
        store.revoke_token("anna").unwrap();
        assert_eq!(store.token_of(&token).unwrap(), None);
        assert!(store.revoke_token("anna").is_err() && store.revoke_token("carl").is_err());
        assert!(store.add_token("anna", "viewer").is_err(), "the audit log knows the first one");
        drop(store);
        let bytes = std::fs::read(&path).unwrap();
        assert!(
            !bytes.windows(43).any(|window| window == &token.as_bytes()[5..]),
            "the token itself is not kept"
        );
    }

    #[test]
    fn a_store_that_cannot_be_written_locks_nobody_out() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("results.db")).unwrap();
        let token = store.add_token("d1", "driver").unwrap();
        store.connection().pragma_update(None, "query_only", true).unwrap();
        assert_eq!(store.token_of(&token).unwrap(), Some(("d1".into(), "driver".into())));
    }

    #[test]
    fn invalid_names_and_roles_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("results.db")).unwrap();
        for (name, role) in
            [("", "viewer"), ("a b", "viewer"), ("a\n", "viewer"), ("a", "root"), (&"x".repeat(65), "driver")]
        {
            assert!(matches!(store.add_token(name, role), Err(StoreError::Token(_))), "{name} {role}");
        }
    }
}
