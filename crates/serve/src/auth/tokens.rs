//! Whose token is this? The answer is kept for a few seconds.

use super::own::OwnToken;
use crate::answer::ApiError;
use axum::http::StatusCode;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidemark_controller::api::Role;
use tokio::sync::Semaphore;

/// How long an answer is good: after so long a revoked token is of no use any more.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// Answers of each kind that are kept at most.
const MOST_KEPT: usize = 16_384;

/// Tokens of each kind that are looked up at a time, which takes a thread.
const AT_ONCE: usize = 4;

/// Longest token that is looked at, bytes.
const LONGEST: usize = 512;

/// Knows all tokens.
pub trait Tokens: Send + Sync + 'static {
    /// The name and the role of a token; `None` if there is no such token, or it was revoked. May block. An error is a sentence.
    fn owner(&self, token: &str) -> Result<Option<(String, Role)>, String>;

    /// The SHA-256 of every token, the revoked ones included. May block. An error is a sentence.
    fn digests(&self) -> Result<Vec<[u8; 32]>, String>;
}

type Owner = Option<(String, Role)>;

/// Tokens by their digests: nobody who sees this memory knows a token.
type Known = Mutex<HashMap<[u8; 32], (Instant, Owner)>>;

/// Tokens of one kind: those that were good when they were looked up last, or all others. However many wrong ones come, the good
/// ones are remembered, and are not looked up behind them.
struct Lane {
    known: Known,
    room: Semaphore,
}

impl Default for Lane {
    fn default() -> Self {
        Self { known: Mutex::default(), room: Semaphore::new(AT_ONCE) }
    }
}

impl Lane {
    fn find(&self, digest: &[u8; 32]) -> Option<(Instant, Owner)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned()
    }

    fn keep(&self, digest: [u8; 32], owner: Owner) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KEPT {
            known.retain(|_, (at, _)| at.elapsed() < GOOD_FOR);
        }
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        known.insert(digest, (Instant::now(), owner));
    }

    fn forget(&self, digest: &[u8; 32]) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(digest);
    }
}

/// Asks, and remembers.
pub(super) struct Lookup {
    tokens: Arc<dyn Tokens>,
    /// The server's own, by their digests.
    own: HashMap<[u8; 32], (String, Role)>,
    good: Lane,
    others: Lane,
}

impl Lookup {
    pub(super) fn new(tokens: Arc<dyn Tokens>, own: &[OwnToken]) -> Self {
        let digested = |one: &OwnToken| (digest(one.reveal()), (one.name.clone(), one.role));
        let own = own.iter().map(digested).collect();
        Self { tokens, own, good: Lane::default(), others: Lane::default() }
    }

    /// Whose token it is.
    pub(super) async fn owner(&self, token: &str) -> Result<Owner, ApiError> {
        if token.is_empty() || token.len() > LONGEST {
            return Ok(None);
        }
        let digest = digest(token);
        if let Some(own) = self.own.get(&digest) {
            return Ok(Some(own.clone()));
        }
        let was_good = self.good.find(&digest);
        let remembered = was_good.clone().or_else(|| self.others.find(&digest));
        if let Some((_, owner)) = remembered.filter(|(at, _)| at.elapsed() < GOOD_FOR) {
            return Ok(owner);
        }
        let lane = if was_good.is_some() { &self.good } else { &self.others };
        // Semaphores fail when they are closed, and these never are.
        let _room = lane.room.acquire().await.ok();
        let (tokens, token) = (self.tokens.clone(), token.to_owned());
        let owner = match tokio::task::spawn_blocking(move || tokens.owner(&token)).await {
            Ok(Ok(owner)) => owner,
            Ok(Err(message)) => return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)),
            Err(_) => {
                return Err(ApiError::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the token could not be looked up",
                ));
            }
        };
        match &owner {
            Some(_) => self.good.keep(digest, owner.clone()),
            None => {
                self.good.forget(&digest);
                self.others.keep(digest, None);
            }
        }
        Ok(owner)
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
