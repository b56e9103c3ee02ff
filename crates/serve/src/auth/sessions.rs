//! The console's sessions: a random cookie stands for a token. They are kept in memory and end with the process. The codes of
//! login addresses are the same, but each is good once.

use crate::answer::ApiError;
use axum::http::StatusCode;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a session lasts.
pub(super) const LASTS: Duration = Duration::from_secs(12 * 3600);

/// Sessions at a time: of more, the oldest ends.
const MOST: usize = 1000;

/// Sessions of one token at a time: whoever logs in again and again ends only his own.
const MOST_OF_ONE: usize = 50;

/// All sessions.
#[derive(Default)]
pub(super) struct Sessions {
    /// By the digest of the cookie: looking one up takes no longer when more of it is right.
    open: Mutex<HashMap<[u8; 32], Session>>,
}

struct Session {
    /// Looked up anew each time, so that a revoked token ends its sessions.
    token: String,
    began: Instant,
}

impl Sessions {
    /// Begins one and returns what its cookie holds.
    pub(super) fn begin(&self, token: &str, now: Instant) -> Result<String, ApiError> {
        let mut random = [0u8; 32];
        getrandom::fill(&mut random).map_err(|error| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("no random numbers from the system: {error}"),
            )
        })?;
        let id = crate::tls::hex(&random);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, session| now.saturating_duration_since(session.began) < LASTS);
        let own = open.values().filter(|session| session.token == token).count();
        let ends = |session: &Session| own < MOST_OF_ONE || session.token == token;
        if own >= MOST_OF_ONE || open.len() >= MOST {
            let candidates = open.iter().filter(|(_, session)| ends(session));
            let oldest = candidates.min_by_key(|(_, session)| session.began).map(|(digest, _)| *digest);
            oldest.map(|oldest| open.remove(&oldest));
        }
        open.insert(digest(&id), Session { token: token.to_owned(), began: now });
        Ok(id)
    }

    /// The token that a cookie stands for.
    pub(super) fn token(&self, id: &str, now: Instant) -> Option<String> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let session = open.get(&digest(id))?;
        (now.saturating_duration_since(session.began) < LASTS).then(|| session.token.clone())
    }

    /// The token that a code stands for, which it does no more afterwards.
    pub(super) fn take(&self, id: &str, now: Instant) -> Option<String> {
        let token = self.token(id, now);
        self.end(id);
        token
    }

    /// Ends one.
    pub(super) fn end(&self, id: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest(id));
    }
}

fn digest(id: &str) -> [u8; 32] {
    Sha256::digest(id.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_logs_in_again_and_again_ends_only_his_own_sessions() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let olga = sessions.begin("olga's", now).unwrap();
        let first = sessions.begin("vera's", now).unwrap();
        for later in 1..=3 * MOST {
            sessions.begin("vera's", now + Duration::from_millis(later as u64)).unwrap();
        }
        assert_eq!(sessions.token(&olga, now).as_deref(), Some("olga's"));
        assert_eq!(sessions.token(&first, now), None);
        assert_eq!(sessions.open.lock().unwrap().len(), MOST_OF_ONE + 1);
    }
}
