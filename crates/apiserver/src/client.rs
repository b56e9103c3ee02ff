//! Requests to an API server, and what it answers.

use crate::exec::{self, Ran};
use crate::kubeconfig::{Access, Credentials};
use crate::watch::Watch;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::{IpAddr, ToSocketAddrs as _, UdpSocket};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tidemark_keys::secret::Secret;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer that is read, bytes: a namespace may have many events.
const LONGEST: u64 = 256 << 20;

/// The longest reason of a refusal, characters: a message may quote the whole object.
const LONGEST_REASON: usize = 2_000;

/// What objects are marked with, and what owns the fields that are applied (`managedFields`).
const MANAGER: &str = "fieldManager=tidemark&fieldValidation=Strict";

/// Why there is no good answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The API server refuses: the HTTP status, and its reason.
    #[error("{1}")]
    Status(u16, String),
    /// There is no answer, and why.
    #[error("the API server does not answer: {0}")]
    Away(String),
    /// Nobody could be asked: what is wrong with the kubeconfig.
    #[error("{0}")]
    Config(String),
}

impl Failure {
    /// Of an answer with a status that is not one of success.
    pub(crate) fn refused(status: u16, body: &[u8]) -> Self {
        let said: Status = serde_json::from_slice(body).unwrap_or_default();
        let message = match said.message.char_indices().nth(LONGEST_REASON) {
            _ if said.message.is_empty() => format!("status {status}"),
            Some((end, _)) => format!("{} ...", &said.message[..end]),
            None => said.message,
        };
        Self::Status(status, message)
    }

    /// Whether what was asked for is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Status(404, _))
    }

    /// Whether a later attempt may go better.
    pub fn is_passing(&self) -> bool {
        self.is_away() || matches!(self, Self::Status(409, _))
    }

    /// Whether nothing is said of what was asked for: there is no answer, or one of a server in trouble.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Status(429 | 500.., _))
    }

    /// Whether this user has no right to what was asked for. A quota that is used up has the same status, and other words.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Status(403, message) if message.contains(" cannot "))
    }
}

/// Which cluster, and which namespace of it: what is `None` is as for `kubectl`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Which<'a> {
    /// The kubeconfig.
    pub kubeconfig: Option<&'a Path>,
    /// The context in it.
    pub context: Option<&'a str>,
    /// The namespace.
    pub namespace: Option<&'a str>,
}

/// A client of an API server, for one namespace where paths do not name another. Threads may share it.
pub struct Client {
    access: Access,
    namespace: String,
    /// How it is asked now: credentials may become old.
    session: RwLock<Arc<Session>>,
}

struct Session {
    agent: ureq::Agent,
    authorization: Option<Secret>,
    /// Certificate and key, PEM.
    certificate: Option<(Vec<u8>, Secret)>,
}

/// The reason that an API server gives.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
}

/// A list of objects.
#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
    #[serde(default)]
    metadata: ListMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    resource_version: String,
}

impl Client {
    /// A client of the cluster that is meant. In a pod without a kubeconfig it is the pod's. Nothing is sent yet.
    ///
    /// # Errors
    /// What is wrong with the kubeconfig or its certificates.
    pub fn connect(which: Which<'_>) -> Result<Self, String> {
        let access = Access::find(which.kubeconfig, which.context)?;
        let namespace = which.namespace.unwrap_or(&access.namespace).to_owned();
        let session = RwLock::new(Arc::new(Session::begin(&access)?));
        Ok(Self { access, namespace, session })
    }

    /// The address of the API server.
    pub fn server(&self) -> &str {
        &self.access.server
    }

    /// What tells the cluster from others as far as is known: the address of its API server, and the certificates that it is trusted by.
    pub fn identity(&self) -> String {
        let authority = self.access.authority.as_deref().unwrap_or_default();
        format!("{}\n{}", self.server(), String::from_utf8_lossy(authority))
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The path of a kind's objects in the namespace: `group` is `api/v1` or such as `apis/batch/v1`, `kind` such as `pods`.
    pub fn path(&self, group: &str, kind: &str) -> String {
        format!("/{group}/namespaces/{}/{kind}", self.namespace)
    }

    /// The address of this machine from which it reaches the API server.
    ///
    /// # Errors
    /// [`Failure::Config`] and [`Failure::Away`]: there is no way there.
    pub fn own_address(&self) -> Result<IpAddr, Failure> {
        let server = self.server();
        let url = url::Url::parse(server).ok();
        let place = url.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
        let (host, port) =
            place.ok_or_else(|| Failure::Config(format!("{server} is not the address of a server")))?;
        let away = |error: std::io::Error| Failure::Away(error.to_string());
        let none = || std::io::Error::other(format!("{host} has no address"));
        let mut addresses = (host.trim_matches(['[', ']']), port).to_socket_addrs().map_err(away)?;
        let address = addresses.next().ok_or_else(none).map_err(away)?;
        let any = if address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        // A datagram socket is connected without a packet: the system only looks up the route.
        let socket = UdpSocket::bind(any).map_err(away)?;
        socket.connect(address).map_err(away)?;
        Ok(socket.local_addr().map_err(away)?.ip())
    }

    /// Asks: a method, a path with its query, and perhaps an object.
    ///
    /// # Errors
    /// [`Failure`], also for a status that is not one of success.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        parsed(&self.send(method, path, "application/json", body)?)
    }

    /// Makes an object at the path of its kind. A field that is not known is an error.
    ///
    /// # Errors
    /// [`Failure`]; status 409 if there is one of that name.
    pub fn create(&self, path: &str, object: &Value) -> Result<Value, Failure> {
        self.ask("POST", &format!("{path}?{MANAGER}"), Some(object))
    }

    /// Makes the object at its own path, or changes it to what `object` says (server-side apply); with `dry`, only says what that would
    /// come to. Fields that others own become ours. A field that is not known is an error.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn apply(&self, path: &str, object: &Value, dry: bool) -> Result<Value, Failure> {
        let dry = if dry { "&dryRun=All" } else { "" };
        let path = format!("{path}?{MANAGER}&force=true{dry}");
        // JSON is YAML.
        parsed(&self.send("PATCH", &path, "application/apply-patch+yaml", Some(object))?)
    }

    /// Changes an object, or with `/status` behind its path its status, by a merge patch (RFC 7396).
    ///
    /// # Errors
    /// [`Failure`].
    pub fn merge(&self, path: &str, patch: &Value) -> Result<Value, Failure> {
        let path = format!("{path}?{MANAGER}");
        parsed(&self.send("PATCH", &path, "application/merge-patch+json", Some(patch))?)
    }

    /// Has an object deleted at its own path, and what it owns afterwards. Says whether there was one.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn delete(&self, path: &str) -> Result<bool, Failure> {
        // That would be all objects of the kind.
        if path.ends_with('/') {
            return Err(Failure::Config(format!("{path} names no object to delete")));
        }
        match self.ask("DELETE", &format!("{path}?propagationPolicy=Background"), None) {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_missing() => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// The objects at the path of a kind; `query` such as `labelSelector=a%3Db`, or empty.
    ///
    /// # Errors
    /// [`Failure`]; also if they do not have the fields of `T`.
    pub fn list<T: DeserializeOwned>(&self, path: &str, query: &str) -> Result<Vec<T>, Failure> {
        Ok(self.list_at(path, query)?.0)
    }

    /// The same, and the version from which on a [`watch`](Self::watch) misses nothing.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn list_at<T: DeserializeOwned>(&self, path: &str, query: &str) -> Result<(Vec<T>, String), Failure> {
        let text = self.send("GET", &format!("{path}?{query}"), "application/json", None)?;
        let list: List<T> = serde_json::from_str(&text)
            .map_err(|error| Failure::Away(format!("{path} cannot be read: {error}")))?;
        Ok((list.items, list.metadata.resource_version))
    }

    /// Watches the objects at the path of a kind from `version` on. The API server ends it after `seconds`.
    ///
    /// # Errors
    /// [`Failure`]; status 410 if the version is too old: list them again.
    pub fn watch<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
        version: &str,
        seconds: u32,
    ) -> Result<Watch<T>, Failure> {
        let and = if query.is_empty() { "" } else { "&" };
        let path = format!(
            "{path}?{query}{and}watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
        );
        let most = Duration::from_secs(seconds.into()) + PATIENCE;
        let body = self.renewed(|session| {
            session.request(self.server(), "GET", &path, ("application/json", None), most)
        })?;
        Ok(Watch::new(body.into_reader(), version))
    }

    /// Runs a command in the container of a pod to its end: `path` is the pod's own, `container` one of several. It may take `most`; one that
    /// takes longer is left to itself. Kubernetes 1.30 or later is needed.
    ///
    /// # Errors
    /// [`Failure`]; a command that fails is none.
    pub fn exec(
        &self,
        path: &str,
        container: Option<&str>,
        command: &[&str],
        most: Duration,
    ) -> Result<Ran, Failure> {
        let query = url::form_urlencoded::Serializer::new("stdout=true&stderr=true".to_owned())
            .extend_pairs(container.map(|name| ("container", name)))
            .extend_pairs(command.iter().map(|word| ("command", word)))
            .finish();
        let path = format!("{path}/exec?{query}");
        self.renewed(|session| {
            let tls = exec::tls(&self.access, session.certificate.as_ref())?;
            exec::run((self.server(), &path), session.authorization.as_ref(), tls, most)
        })
    }

    fn send(&self, method: &str, path: &str, kind: &str, body: Option<&Value>) -> Result<String, Failure> {
        let mut answer =
            self.renewed(|session| session.request(self.server(), method, path, (kind, body), PATIENCE))?;
        read(&mut answer)
    }

    /// Asks, and once more with new credentials if these are not taken any more.
    fn renewed<T>(&self, ask: impl Fn(&Session) -> Result<T, Failure>) -> Result<T, Failure> {
        let session = Arc::clone(&self.session.read().unwrap_or_else(PoisonError::into_inner));
        match ask(&session) {
            // A token lasts minutes with some clusters, and a run may be longer.
            Err(Failure::Status(401, _)) => {}
            answer => return answer,
        }
        let renewed = Arc::new(Session::begin(&self.access).map_err(Failure::Config)?);
        *self.session.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&renewed);
        ask(&renewed)
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
        if let Some((chain, key)) = &certificate {
            let key = PrivateKey::from_pem(key.reveal().as_bytes()).map_err(wrong)?;
            tls =
                tls.client_cert(Some(ClientCert::new_with_certs(&certificates(chain).map_err(wrong)?, key)));
        }
        let settings = ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls.build());
        let basic = |(name, password): (String, Secret)| {
            format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{}", password.reveal())))
        };
        let bearer = token.map(|token| format!("Bearer {}", token.reveal()));
        let authorization = bearer.or_else(|| password.map(basic)).map(Secret::new);
        Ok(Self { agent: settings.build().into(), authorization, certificate })
    }

    /// The body of a good answer. A request with its answer may take `most`.
    fn request(
        &self,
        server: &str,
        method: &str,
        path: &str,
        (kind, body): (&str, Option<&Value>),
        most: Duration,
    ) -> Result<ureq::Body, Failure> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{server}{path}"))
            .header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization.reveal());
        }
        if body.is_some() {
            request = request.header("Content-Type", kind);
        }
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(text).map_err(|error| Failure::Config(error.to_string()))?;
        let request = self.agent.configure_request(request).timeout_global(Some(most)).build();
        let response = self.agent.run(request).map_err(|error| Failure::Away(error.to_string()))?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        if (200..300).contains(&status) {
            return Ok(body);
        }
        Err(Failure::refused(status, read(&mut body)?.as_bytes()))
    }
}

fn parsed(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::Away(format!("it answers no JSON: {error}")))
}

fn read(body: &mut ureq::Body) -> Result<String, Failure> {
    let text = body.with_config().limit(LONGEST).read_to_string();
    text.map_err(|error| Failure::Away(error.to_string()))
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
