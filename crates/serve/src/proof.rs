//! Where clients have the server prove itself before they send anything else: see [`tidemark_fleet::link::proof`].
//!
//! Anybody may ask, and nobody learns anything: a token that does not exist is answered like one that does. An answer costs a look into
//! memory. Tokens that were made meanwhile are read from the store at most once a second, however many ask for one that is not there.

use crate::answer::ApiError;
use crate::auth::{OwnToken, Tokens};
use crate::listener::{Connected, speak};
use crate::options::{Limits, ServeError};
use crate::tls::Identity;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidemark_fleet::link::proof::{self, Key};
use tokio::sync::{Mutex as TurnMutex, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

/// How often the store is asked for tokens that are not known yet, at most.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Proves that this server knows a token.
pub(crate) struct Prover {
    /// A certificate of this start.
    identity: Identity,
    tokens: Arc<dyn Tokens>,
    /// Keys by the names of their tokens.
    known: Mutex<HashMap<String, Key>>,
    /// When the store was read last. Whoever holds it reads.
    read: TurnMutex<Option<Instant>>,
    /// The key of all tokens that do not exist.
    nobody: Key,
}

/// What a request for a proof meets.
struct Door {
    prover: Prover,
    router: Router,
    limits: Limits,
    stop: watch::Receiver<bool>,
}

impl Prover {
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new(tokens: Arc<dyn Tokens>, own: &[OwnToken]) -> Result<Self, ServeError> {
        let mut random = [0; 32];
        getrandom::fill(&mut random)
            .map_err(|error| ServeError::Made { what: "a key", reason: error.to_string() })?;
        let known = own.iter().map(|token| Key::of(token.reveal())).map(|key| (key.id(), key)).collect();
        Ok(Self {
            identity: Identity::made_once()?,
            tokens,
            known: Mutex::new(known),
            read: TurnMutex::default(),
            nobody: Key::from_digest(random),
        })
    }

    /// The addresses of `router`, and one that leads to them over TLS after a proof.
    pub(crate) fn beside(self, router: Router, limits: &Limits, stop: watch::Receiver<bool>) -> Router {
        let door = Door { prover: self, router: router.clone(), limits: limits.clone(), stop };
        router.merge(Router::new().route(proof::PATH, get(upgrade)).with_state(Arc::new(door)))
    }

    /// The key of a token, or one that nobody has.
    async fn key(&self, id: &str) -> Result<Key, ApiError> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let asked = Instant::now();
        if let Some(key) = known() {
            return Ok(key);
        }
        let mut read = self.read.lock().await;
        if read.is_none_or(|read| read < asked) {
            if let Some(before) = *read {
                sleep_until(before + READ_EVERY).await;
            }
            let at = Instant::now();
            let tokens = self.tokens.clone();
            let digests = tokio::task::spawn_blocking(move || tokens.digests()).await;
            let digests = digests.unwrap_or_else(|_| Err("the tokens could not be looked up".into()));
            let digests =
                digests.map_err(|message| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message))?;
            let keys = digests.into_iter().map(Key::from_digest).map(|key| (key.id(), key));
            self.known.lock().unwrap_or_else(PoisonError::into_inner).extend(keys);
            *read = Some(at);
        }
        Ok(known().unwrap_or_else(|| self.nobody.clone()))
    }
}

/// Proves itself, and goes on over TLS.
async fn upgrade(State(door): State<Arc<Door>>, mut request: Request) -> Result<Response, ApiError> {
    let bad = |message: &str| ApiError::new(StatusCode::BAD_REQUEST, message);
    let headers = request.headers();
    let wanted = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    if !wanted.is_some_and(|wanted| wanted.eq_ignore_ascii_case(proof::PROTOCOL)) {
        let refused = ApiError::new(StatusCode::UPGRADE_REQUIRED, "ask for an upgrade to TLS/1.3 here");
        let upgrade = [(header::UPGRADE, HeaderValue::from_static(proof::PROTOCOL))];
        return Ok((upgrade, refused).into_response());
    }
    let (Some(id), Some(nonce)) = (digits(headers, proof::TOKEN), digits(headers, proof::NONCE)) else {
        return Err(bad("the token's id and a nonce must be 64 hexadecimal digits each"));
    };
    let proven = door.prover.key(id).await?.proof(nonce, door.prover.identity.fingerprint());
    let connected = request.extensions().get::<Connected>().cloned();
    let connected = connected.ok_or_else(|| bad("the connection has no address"))?;
    let upgraded = hyper::upgrade::on(&mut request);
    let after = door.clone();
    tokio::spawn(async move {
        let place = connected.place.clone();
        let serving = async {
            let Ok(stream) = upgraded.await else { return };
            let acceptor = TlsAcceptor::from(after.prover.identity.config());
            let accepted = timeout(after.limits.handshake, acceptor.accept(TokioIo::new(stream))).await;
            if let Ok(Ok(stream)) = accepted {
                speak(stream, connected, after.router.clone(), &after.limits, after.stop.clone()).await;
            }
        };
        tokio::select! {
            () = serving => {}
            () = place.taken() => {}
        }
    });
    let headers = [
        (header::CONNECTION, "upgrade"),
        (header::UPGRADE, proof::PROTOCOL),
        (HeaderName::from_static(proof::CERTIFICATE), door.prover.identity.fingerprint()),
        (HeaderName::from_static(proof::PROOF), proven.as_str()),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

/// A header of 64 hexadecimal digits.
fn digits<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let text = headers.get(name)?.to_str().ok()?;
    (text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tidemark_controller::api::Role;

    /// A store without tokens that counts how often it is read.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Tokens for Counted {
        fn owner(&self, _: &str) -> Result<Option<(String, Role)>, String> {
            Ok(None)
        }

        fn digests(&self) -> Result<Vec<[u8; 32]>, String> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn whoever_asks_together_shares_a_look_into_the_store() {
        let tokens = Arc::new(Counted::default());
        let prover = Prover::new(tokens.clone(), &[]).unwrap();
        let nobody = prover.nobody.id();
        let asked = (0..50).map(|number| {
            let (prover, id) = (&prover, format!("{number:064}"));
            async move { prover.key(&id).await.map(|key| key.id()).unwrap_or_default() }
        });
        let keys = futures_util::future::join_all(asked).await;
        assert!(keys.iter().all(|key| *key == nobody));
        // The first one begins to read at once, and all others have asked before the second reading, a second later.
        assert_eq!(tokens.0.load(Ordering::Relaxed), 2);
    }
}
