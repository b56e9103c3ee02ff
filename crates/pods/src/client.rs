//! Requests to an API server, and what it answers.

use crate::kubeconfig::{Access, Credentials};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tidemark_keys::secret::Secret;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer that is read, bytes: a namespace may have many events.
const LONGEST: u64 = 256 << 20;

/// Why there is no good answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The API server refuses: the HTTP status, and its reason.
    Status(u16, String),
    /// There is no answer, and why.
    Away(String),
    /// Nobody could be asked: what is wrong with the kubeconfig.
    Config(String),
}

impl Failure {
    /// Whether what was asked for is not there.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Status(404, _))
    }

    /// Whether a later attempt may go better.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Status(code, _) => *code >= 500 || matches!(code, 409 | 429),
            Self::Away(_) => true,
            Self::Config(_) => false,
        }
    }
}

/// A client of an API server.
pub(crate) struct Client {
    access: Access,
    /// How it is asked now: credentials may become old.
    session: RefCell<Session>,
}

struct Session {
    agent: ureq::Agent,
    authorization: Option<Secret>,
}

/// The reason that an API server gives.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
}

impl Client {
    pub(crate) fn new(access: Access) -> Result<Self, String> {
        let session = RefCell::new(Session::begin(&access)?);
        Ok(Self { access, session })
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Asks: a method, a path with its query, and perhaps an object.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        match self.session.borrow().ask(&self.access.server, method, path, body) {
            // A token lasts minutes with some clusters, and a run may be longer.
            Err(Failure::Status(401, _)) => {}
            answer => return answer,
        }
        let renewed = Session::begin(&self.access).map_err(Failure::Config)?;
        *self.session.borrow_mut() = renewed;
        self.session.borrow().ask(&self.access.server, method, path, body)
    }
}

impl Session {
    fn begin(access: &Access) -> Result<Self, String> {
        let Credentials { token, certificate, password } = access.credentials()?;
        let wrong =
            |error: ureq::Error| format!("the certificates of the kubeconfig cannot be used: {error}");
        let mut tls = TlsConfig::builder().disable_verification(access.unverified);
        if let Some(authority) = &access.authority {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(certificates(authority).map_err(wrong)?)));
        }
        if let Some((chain, key)) = certificate {
            let key = PrivateKey::from_pem(key.reveal().as_bytes()).map_err(wrong)?;
            tls =
                tls.client_cert(Some(ClientCert::new_with_certs(&certificates(&chain).map_err(wrong)?, key)));
        }
        let settings = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .tls_config(tls.build());
        let basic = |(name, password): (String, Secret)| {
            format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{}", password.reveal())))
        };
        let bearer = token.map(|token| format!("Bearer {}", token.reveal()));
        let authorization = bearer.or_else(|| password.map(basic)).map(Secret::new);
        Ok(Self { agent: settings.build().into(), authorization })
    }

    fn ask(&self, server: &str, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let away = |error: ureq::Error| Failure::Away(error.to_string());
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{server}{path}"))
            .header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization.reveal());
        }
        if body.is_some() {
            request = request.header("Content-Type", "application/json");
        }
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(text).map_err(|error| Failure::Config(error.to_string()))?;
        let mut response = self.agent.run(request).map_err(away)?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(LONGEST).read_to_string().map_err(away)?;
        if !(200..300).contains(&status) {
            let said: Status = serde_json::from_str(&text).unwrap_or_default();
            let message = if said.message.is_empty() { format!("status {status}") } else { said.message };
            return Err(Failure::Status(status, message));
        }
        serde_json::from_str(&text).map_err(|error| Failure::Away(format!("it answers no JSON: {error}")))
    }
}

/// All certificates of a PEM text.
fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, ureq::Error> {
    let items = parse_pem(pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    items.collect()
}
