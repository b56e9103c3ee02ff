//! Whose token is this? The answer is kept for a few seconds.

use super::own::OwnToken;
use crate::answer::ApiError;
use axum::http::StatusCode;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidemark_controller::api::Role;

/// How long an answer is good: after so long a revoked token is of no use any more.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// Answers that are kept at most.
const MOST_KEPT: usize = 1024;

/// Longest token that is looked at, bytes.
const LONGEST: usize = 512;

/// Knows all tokens.
pub trait Tokens: Send + Sync + 'static {
    /// The name and the role of a token; `None` if there is no such token, or it was revoked. May block. An error is a sentence.
    fn owner(&self, token: &str) -> Result<Option<(String, Role)>, String>;
}

type Owner = Option<(String, Role)>;

/// Asks, and remembers.
pub(super) struct Lookup {
    tokens: Arc<dyn Tokens>,
    /// The server's own, by their digests.
    own: HashMap<[u8; 32], (String, Role)>,
    /// By the tokens' digests: nobody who sees this memory knows a token.
    known: Mutex<HashMap<[u8; 32], (Instant, Owner)>>,
}

impl Lookup {
    pub(super) fn new(tokens: Arc<dyn Tokens>, own: &[OwnToken]) -> Self {
        let digested = |one: &OwnToken| (digest(one.reveal()), (one.name.clone(), one.role));
        Self { tokens, own: own.iter().map(digested).collect(), known: Mutex::default() }
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
        if let Some(owner) = self.remembered(&digest) {
            return Ok(owner);
        }
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
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        known.insert(digest, (Instant::now(), owner.clone()));
        Ok(owner)
    }

    fn remembered(&self, digest: &[u8; 32]) -> Option<Owner> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(digest).filter(|(at, _)| at.elapsed() < GOOD_FOR).map(|(_, owner)| owner.clone())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
