//! The account that all slots of an engine share: its token, and how it is renewed when it expires.

use super::auth::{self, Grant, Login};
use crate::client::{Answer, Body, Client};
use crate::endpoint::{Endpoint, Resolver};
use crate::failure::Failure;
use crate::http::{Head, Sink};
use crate::job::{Http, SwiftAuth};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidemark_load::engine::OpenError;
use tidemark_measure::fault::Fault;
use tidemark_plan::secret::Secret;
use tidemark_reactor::Reactor;

/// How often a slot looks whether another one has renewed the token.
const LOOK_NS: u64 = 5_000_000;

/// Most of an authentication reply's body: catalogues are long, but not without end.
const BODY_MOST: usize = 4 << 20;

/// An account, and who may use it.
pub(crate) struct Account {
    door: Door,
    grant: Mutex<Arc<Grant>>,
    /// How often the token was renewed: what a slot compares before every operation.
    generation: AtomicU64,
    /// How often renewal ended, well or not.
    tries: AtomicU64,
    renewing: AtomicBool,
}

/// Why no token was got.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The server was not reached, or did not answer properly.
    Failed {
        /// Where.
        url: String,
        /// How.
        failure: Failure,
    },
    /// It answered, or the settings are wrong.
    Told(OpenError),
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        Self::Told(error)
    }
}

impl Account {
    /// Logs in.
    ///
    /// # Errors
    /// Why that did not succeed.
    pub(crate) async fn log_in(
        auth: &SwiftAuth,
        http: &Http,
        reactor: &Rc<Reactor>,
    ) -> Result<Self, Refusal> {
        let door = Door::find(auth, http)?;
        let grant = door.ask(reactor).await?;
        Ok(Self {
            door,
            grant: Mutex::new(Arc::new(grant)),
            generation: AtomicU64::new(0),
            tries: AtomicU64::new(0),
            renewing: AtomicBool::new(false),
        })
    }

    /// The number of the present token.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The present token.
    pub(crate) fn grant(&self) -> Arc<Grant> {
        Arc::clone(&self.grant.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gets a new token in place of number `seen`, unless that was done already; one slot does it, the others wait.
    /// False: there is none to be had.
    pub(crate) async fn renew(&self, seen: u64, reactor: &Rc<Reactor>) -> bool {
        if self.door.login.is_none() {
            return false;
        }
        let tries = self.tries.load(Ordering::Acquire);
        while self.generation() == seen && self.tries.load(Ordering::Acquire) == tries {
            let Some(_turn) = Turn::take(self) else {
                reactor.sleep_until(reactor.now() + LOOK_NS).await;
                continue;
            };
            if self.generation() == seen
                && let Ok(grant) = self.door.ask(reactor).await
            {
                *self.grant.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(grant);
                self.generation.fetch_add(1, Ordering::AcqRel);
            }
        }
        self.generation() != seen
    }
}

/// The right to renew; it is given back even when the slot is given up.
struct Turn<'a>(&'a Account);

impl<'a> Turn<'a> {
    fn take(account: &'a Account) -> Option<Self> {
        let taken = account.renewing.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed);
        // Made only when taken: to drop one gives the turn back.
        taken.is_ok().then(|| Self(account))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.tries.fetch_add(1, Ordering::AcqRel);
        self.0.renewing.store(false, Ordering::Release);
    }
}

/// Where and how to request tokens.
struct Door {
    auth: SwiftAuth,
    http: Http,
    /// The request and its server; `None`: the token was given.
    login: Option<(Login, Arc<Endpoint>)>,
}

impl Door {
    fn find(auth: &SwiftAuth, http: &Http) -> Result<Self, OpenError> {
        let find = |login: Login| {
            let endpoint = Resolver::new(http).resolve(&login.url)?;
            let breaks = |value: &Secret| value.reveal().bytes().any(|byte| byte.is_ascii_control());
            match login.headers.iter().find(|(_, value)| breaks(value)) {
                Some((name, _)) => {
                    Err(OpenError(format!("the value for {name} contains a line break: remove it")))
                }
                None => Ok((login, endpoint)),
            }
        };
        Ok(Self { auth: auth.clone(), http: http.clone(), login: auth::login(auth).map(find).transpose()? })
    }

    /// Asks for a token.
    async fn ask(&self, reactor: &Rc<Reactor>) -> Result<Grant, Refusal> {
        let Some((login, endpoint)) = &self.login else {
            return Ok(auth::granted(
                &self.auth,
                "the document",
                auth::Reply { status: 200, ..Default::default() },
            )?);
        };
        let failed = |failure| Refusal::Failed { url: login.url.clone(), failure };
        let mut client = Client::new(reactor, endpoint, &self.http);
        let out = client.connect(reactor.now()).await.map_err(failed)?;
        let path = if endpoint.base.is_empty() { "/" } else { &endpoint.base };
        let opening = format!("{} {path} HTTP/1.1\r\nHost: {}\r\n", login.method, endpoint.host);
        out.extend_from_slice(opening.as_bytes());
        for (name, value) in &login.headers {
            out.extend_from_slice(format!("{name}: {}\r\n", value.reveal()).as_bytes());
        }
        out.extend_from_slice(b"Accept: application/json\r\n");
        let bytes = login.body.reveal().as_bytes();
        let mut body = if bytes.is_empty() { Body::none() } else { Body::bytes(bytes) };
        let mut reply = Listen::default();
        client.exchange(&mut body, Answer::Whole, &mut reply).await.map_err(failed)?;
        if reply.0.body.len() >= BODY_MOST {
            return Err(failed(Failure::without_effect(Fault::Protocol, "the reply is longer than 4 MiB")));
        }
        Ok(auth::granted(&self.auth, &login.url, reply.0)?)
    }
}

/// Takes in an authentication reply.
#[derive(Default)]
struct Listen(auth::Reply);

impl Sink for Listen {
    fn head(&mut self, head: &Head<'_>) {
        self.0.status = head.status;
        let token = ["X-Subject-Token", "X-Auth-Token", "X-Storage-Token"]
            .into_iter()
            .find_map(|name| head.get(name));
        self.0.token = token.map(Secret::new);
        self.0.storage_url = head.get("X-Storage-Url").map(str::to_owned);
    }

    fn body(&mut self, piece: &[u8]) {
        let room = BODY_MOST.saturating_sub(self.0.body.len());
        self.0.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }
}
