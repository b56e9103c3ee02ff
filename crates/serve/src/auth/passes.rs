//! Secrets that stand for a token for a while: sessions of the console, codes of login addresses, and tickets. They are kept in
//! memory and end with the process.

use crate::answer::ApiError;
use axum::http::StatusCode;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Secrets of one kind at a time: of more, the oldest ends.
const MOST: usize = 1000;

/// Secrets of one kind and one holder at a time: whoever asks for more and more ends only their own.
const MOST_OF_ONE: usize = 50;

type Digest = [u8; 32];

/// All secrets of one kind.
pub(super) struct Passes {
    lasts: Duration,
    /// By the digest of the secret: looking one up takes no longer when more of it is right.
    open: Mutex<HashMap<Digest, Pass>>,
}

struct Pass {
    /// The token, or the key of the session, that it stands for. It is looked up each time: whatever ends it ends this, too.
    holder: String,
    /// The only thing that it is good for.
    scope: String,
    began: Instant,
}

impl Passes {
    pub(super) fn lasting(lasts: Duration) -> Self {
        Self { lasts, open: Mutex::default() }
    }

    /// Makes one, and returns the secret.
    pub(super) fn begin(&self, holder: &str, scope: &str, now: Instant) -> Result<String, ApiError> {
        let mut random = [0u8; 32];
        getrandom::fill(&mut random).map_err(|error| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("no random numbers from the system: {error}"),
            )
        })?;
        let secret = crate::tls::hex(&random);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, pass| self.is_good(pass, now));
        let own = open.values().filter(|pass| pass.holder == holder).count();
        let ends = |pass: &Pass| own < MOST_OF_ONE || pass.holder == holder;
        if own >= MOST_OF_ONE || open.len() >= MOST {
            let candidates = open.iter().filter(|(_, pass)| ends(pass));
            let oldest = candidates.min_by_key(|(_, pass)| pass.began).map(|(digest, _)| *digest);
            oldest.map(|oldest| open.remove(&oldest));
        }
        open.insert(digest(&secret), Pass { holder: holder.to_owned(), scope: scope.to_owned(), began: now });
        Ok(secret)
    }

    /// What a secret stands for.
    pub(super) fn holder(&self, secret: &str, now: Instant) -> Option<String> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&digest(secret)).filter(|pass| self.is_good(pass, now)).map(|pass| pass.holder.clone())
    }

    /// What a secret stands for, if this is what it is good for. Either way it is used up.
    pub(super) fn take(&self, secret: &str, scope: &str, now: Instant) -> Option<String> {
        let pass = self.remove(secret)?;
        (self.is_good(&pass, now) && pass.scope == scope).then_some(pass.holder)
    }

    /// Ends the one with this secret.
    pub(super) fn end(&self, secret: &str) {
        self.remove(secret);
    }

    fn remove(&self, secret: &str) -> Option<Pass> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest(secret))
    }

    fn is_good(&self, pass: &Pass, now: Instant) -> bool {
        now.saturating_duration_since(pass.began) < self.lasts
    }
}

fn digest(secret: &str) -> Digest {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_secs(60);

    #[test]
    fn whoever_asks_for_more_and_more_ends_only_their_own() {
        let (passes, now) = (Passes::lasting(LASTS), Instant::now());
        let olga = passes.begin("olga's", "", now).unwrap();
        let first = passes.begin("vera's", "", now).unwrap();
        for later in 1..=3 * MOST {
            passes.begin("vera's", "", now + Duration::from_millis(later as u64)).unwrap();
        }
        assert_eq!(passes.holder(&olga, now).as_deref(), Some("olga's"));
        assert_eq!(passes.holder(&first, now), None);
        assert_eq!(passes.open.lock().unwrap().len(), MOST_OF_ONE + 1);
    }

    #[test]
    fn what_is_taken_is_good_once_for_its_scope_and_in_time() {
        let (passes, now) = (Passes::lasting(LASTS), Instant::now());
        let make = || passes.begin("olga's", "/a", now).unwrap();
        let once = make();
        assert_eq!(passes.take(&once, "/a", now).as_deref(), Some("olga's"));
        assert_eq!(passes.take(&once, "/a", now), None, "twice");
        let elsewhere = make();
        assert_eq!(passes.take(&elsewhere, "/b", now), None, "for another scope");
        assert_eq!(passes.take(&elsewhere, "/a", now), None, "after it was tried elsewhere");
        assert_eq!(passes.take(&make(), "/a", now + LASTS), None, "later");
        assert_eq!(passes.holder(&make(), now + LASTS), None, "later");
    }
}
