//! A client of a controller, over HTTP: one request at a time, or a stream of events.

use crate::cli::{Reach, Remote};
use crate::exit::{Exit, Stop};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tidemark_controller::api;
use tidemark_fleet::link::access::Access;
use tidemark_fleet::link::proof::{self, Unproven};
use tidemark_fleet::link::{Trust, client_config};
use tidemark_plan::secret::Secret;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

/// Time limit of a controller's reply.
const PATIENCE: Duration = Duration::from_secs(30);

/// Replies larger than this are not read, bytes.
const LARGEST: usize = 256 << 20;

/// Why a request to a controller failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It cannot be reached, or cannot reply at the moment: a retry may succeed.
    Away(Stop),
    /// It rejected the request, or its reply cannot be read.
    Refused(Stop),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Away(stop) | Failure::Refused(stop) => stop,
        }
    }
}

/// The token that the command line gives, if any.
pub(crate) fn token(reach: &Reach) -> Result<Option<Secret>, Stop> {
    let Some(path) = &reach.token_file else {
        return Ok(reach.token.clone().filter(|token| !token.is_empty()).map(Secret::new));
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::usage(format!("cannot read the token file {}: {error}", path.display())))?;
    Ok(Some(Secret::new(text.trim())))
}

/// How the command line says to verify the controller's certificate.
pub(crate) fn trust(reach: &Reach) -> Result<Trust, Stop> {
    reach
        .trust
        .parse()
        .map_err(|error| Stop::usage(format!("--trust: {error}; `tidemark serve` prints them")))
}

/// Where the API has this path.
fn api(path: &str) -> String {
    format!("/api/v1{path}")
}

/// A controller.
pub(crate) struct Controller {
    url: Url,
    token: Option<Secret>,
    trust: Trust,
    /// Whether to speak to a controller that has no way to prove itself.
    insecure: bool,
    runtime: tokio::runtime::Runtime,
}

impl Controller {
    /// The controller that the command line names.
    pub(crate) fn of(remote: &Remote) -> Result<Self, Stop> {
        let url = Url::parse(&remote.controller).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
        let url = url.ok_or_else(|| {
            Stop::usage(format!(
                "{} is not a controller's address: write https://host:port",
                remote.controller
            ))
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Stop::not_ready(format!("cannot create connections: {error}")))?;
        if remote.insecure && url.scheme() == "https" {
            return Err(Stop::usage(
                "--insecure is for http://: with https://, the certificate identifies the controller",
            ));
        }
        let (token, trust) = (token(&remote.reach)?, trust(&remote.reach)?);
        Ok(Self { url, token, trust, insecure: remote.insecure, runtime })
    }

    /// Sends a GET and reads the reply.
    pub(crate) fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.call(Method::GET, &api(path), None)
    }

    /// Tells, and reads the reply.
    pub(crate) fn tell<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::Refused(Stop::usage(error)))?;
        self.call(Method::POST, &api(path), Some(body))
    }

    /// An address that logs a browser in, once, as whoever asks.
    pub(crate) fn login(&self) -> Result<Url, Failure> {
        let code: String = self.call(Method::POST, "/login", None)?;
        let mut url = self.url.clone();
        url.set_path("/login");
        url.query_pairs_mut().clear().append_pair("code", &code);
        Ok(url)
    }

    fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<T, Failure> {
        let exchange = async {
            let response = self.send(method, path, body).await?;
            let collected = http_body_util::Limited::new(response.into_body(), LARGEST).collect().await;
            collected.map(http_body_util::Collected::to_bytes).map_err(|error| self.away(&error.to_string()))
        };
        let bytes = self.runtime.block_on(self.within_patience(exchange))??;
        serde_json::from_slice(&bytes)
            .map_err(|error| self.refused(&format!("its reply does not match this version: {error}")))
    }

    async fn within_patience<T>(&self, answer: impl Future<Output = T>) -> Result<T, Failure> {
        let answered = tokio::time::timeout(PATIENCE, answer).await;
        answered.map_err(|_| self.away(&format!("no reply within {} s", PATIENCE.as_secs())))
    }

    /// Reads events (name, JSON) until `event` returns false or the stream ends.
    pub(crate) fn events(
        &self,
        path: &str,
        mut event: impl FnMut(&str, &str) -> bool,
    ) -> Result<(), Failure> {
        self.runtime.block_on(async {
            let mut body = self.within_patience(self.send(Method::GET, &api(path), None)).await??.into_body();
            let (mut pending, mut name, mut data) = (Vec::new(), String::new(), String::new());
            // An idle controller sends a keep-alive every few seconds.
            while let Some(frame) = self.within_patience(body.frame()).await? {
                let frame = frame.map_err(|error| self.away(&error.to_string()))?;
                pending.extend_from_slice(frame.data_ref().map_or(&[][..], |bytes| bytes));
                while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = pending.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line);
                    let line = line.trim_end_matches(['\r', '\n']);
                    if line.is_empty() {
                        if !data.is_empty() && !event(&name, &data) {
                            return Ok(());
                        }
                        (name, data) = (String::new(), String::new());
                    } else if let Some(value) = line.strip_prefix("event:") {
                        name = value.trim_start().to_owned();
                    } else if let Some(value) = line.strip_prefix("data:") {
                        data += value.strip_prefix(' ').unwrap_or(value);
                    }
                }
            }
            Ok(())
        })
    }

    /// Sends a request, slower if the controller requires that; returns a successful reply.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Response<Incoming>, Failure> {
        loop {
            let response = self.attempt(method.clone(), path, body.clone()).await?;
            if response.status().is_success() {
                return Ok(response);
            }
            if response.status() != StatusCode::TOO_MANY_REQUESTS {
                return Err(self.refusal(response).await);
            }
            let after =
                response.headers().get("retry-after").and_then(|after| after.to_str().ok()?.parse().ok());
            tokio::time::sleep(Duration::from_secs(after.unwrap_or(1).max(1))).await;
        }
    }

    /// Sends a request once.
    async fn attempt(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Response<Incoming>, Failure> {
        let host = self.url.host_str().unwrap_or_default().to_owned();
        let port = self.url.port_or_known_default().unwrap_or(443);
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let connect = TcpStream::connect((bare.as_str(), port));
        let nobody = |error| self.away(&format!("{error}; check that `tidemark serve` is running there"));
        let stream = self.within_patience(connect).await?.map_err(nobody)?;
        let authority = format!("{host}:{port}");
        let request = |token: Option<&Secret>| {
            let mut request = Request::builder().method(method).uri(path).header("host", &authority);
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {}", token.reveal()));
            }
            if body.is_some() {
                request = request.header("content-type", "application/json");
            }
            request
                .body(Full::new(Bytes::from(body.unwrap_or_default())))
                .map_err(|_| Failure::Refused(Stop::usage("the token has invalid characters")))
        };
        if self.url.scheme() == "https" {
            let config = client_config(&self.trust).map_err(|error| Failure::Refused(Stop::usage(error)))?;
            let name = ServerName::try_from(bare).map_err(|error| self.refused(&error.to_string()))?;
            let connected = TlsConnector::from(config).connect(name, stream).await;
            let stream = connected.map_err(|error| self.no_tls(&error))?;
            return self.exchange(TokioIo::new(stream), request(self.token.as_ref())?).await;
        }
        let left = if self.token.is_none() { stream.peer_addr().ok().and_then(Access::find) } else { None };
        let own = self.token.as_ref().or(left.as_ref().and_then(|left| left.operator.as_ref()));
        match own.or(left.as_ref().map(|left| &left.driver)) {
            Some(known) => {
                let stream = proof::prove(stream, &authority, proof::PATH, known).await;
                let stream = stream.map_err(|unproven| self.unproven(unproven))?;
                self.exchange(TokioIo::new(stream), request(own)?).await
            }
            None if self.insecure => self.exchange(TokioIo::new(stream), request(None)?).await,
            None => Err(self.refused(
                "without a token it cannot prove that it is one, so nothing was sent: set --token-file or TIDEMARK_TOKEN (who runs it can create a token \
                 with `tidemark token add NAME --role operator`); if it lets everyone in, and you trust all who may listen there, \
                 add --insecure",
            )),
        }
    }

    fn unproven(&self, unproven: Unproven) -> Failure {
        match unproven {
            Unproven::Away(reason) => self.away(&reason),
            Unproven::Other(reason) => Failure::Refused(Stop::not_ready(match &self.token {
                Some(_) => format!(
                    "what listens at {} did not prove that it knows your token ({reason}), and was sent nothing: either the token in \
                     --token-file, --token or TIDEMARK_TOKEN is none of that controller's, or another program has taken the address",
                    self.url
                ),
                None => format!(
                    "what listens at {} did not prove that it is the controller that left its token for you ({reason}), and was sent \
                     nothing: that controller was killed, and another program has taken the address; start `tidemark serve` again, at \
                     another address if need be",
                    self.url
                ),
            })),
        }
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Failure>
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let trouble = |error: hyper::Error| match error.is_parse() {
            true => {
                self.refused("the server did not speak HTTP; with TLS, the address must begin with https://")
            }
            false => self.away(&error.to_string()),
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(stream).await.map_err(trouble)?;
        // Its errors come out of the request as well.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(trouble)
    }

    /// The controller's rejection.
    async fn refusal(&self, response: Response<Incoming>) -> Failure {
        let status = response.status();
        let bytes = http_body_util::Limited::new(response.into_body(), LARGEST).collect().await;
        let bytes = bytes.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let said: api::Trouble = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut message = match said.message.as_str() {
            "" => format!("the controller at {} returned {status}", self.url),
            said => said.to_owned(),
        };
        for problem in said.problems {
            let kind = if problem.warning { "warning" } else { "error" };
            // A problem of the whole document has no place.
            let place = match problem.line {
                0 => String::new(),
                line => format!("{line}:{} ", problem.column),
            };
            message += &format!("\n  {place}{kind}: {}", problem.message);
            if !problem.help.is_empty() {
                message += &format!(" ({})", problem.help);
            }
        }
        if status == StatusCode::UNAUTHORIZED {
            message = match self.token {
                None => format!(
                    "the controller at {} requires a token: set --token-file or TIDEMARK_TOKEN; who runs it can create one with \
                     `tidemark token add NAME --role operator`",
                    self.url
                ),
                Some(_) => format!("{message}; check the token in --token-file, --token or TIDEMARK_TOKEN"),
            };
        }
        let exit = match status {
            StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::CONFLICT
            | StatusCode::UNPROCESSABLE_ENTITY => Exit::Usage,
            _ => Exit::NotReady,
        };
        match status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                Failure::Away(Stop { exit, message })
            }
            _ => Failure::Refused(Stop { exit, message }),
        }
    }

    fn no_tls(&self, error: &std::io::Error) -> Failure {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(rustls::Error::InvalidMessage(_)) => {
                self.refused("the server did not speak TLS; without TLS, the address must begin with http://")
            }
            Some(_) => {
                self.refused(&format!("{error}; set --trust to the fingerprint that `tidemark serve` prints"))
            }
            None => self.away(&error.to_string()),
        }
    }

    fn away(&self, what: &str) -> Failure {
        Failure::Away(self.trouble(what))
    }

    fn refused(&self, what: &str) -> Failure {
        Failure::Refused(self.trouble(what))
    }

    fn trouble(&self, what: &str) -> Stop {
        Stop::not_ready(format!("the controller at {}: {}", self.url, tidemark_tls::words(what)))
    }
}
