//! A small S3 client for tests: hyper for HTTP, AWS's own signer for signatures.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4::SigningParams;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tidemark_embedded::EmbeddedServer;

/// One connection.
pub(crate) type Connection = SendRequest<Full<Bytes>>;

/// A key pair and where to use it.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    access_key: String,
    secret_key: String,
}

/// A request in the making.
pub(crate) struct Ask {
    client: Client,
    request: hyper::http::request::Builder,
    body: Bytes,
    signed_body: Option<Bytes>,
    payload: Payload,
    minutes_off: i64,
}

#[derive(Clone, Copy, PartialEq)]
enum Payload {
    Hashed,
    StreamingUnsigned,
    Unsigned,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// An answer that broke off, or did not come.
#[derive(Debug, Default)]
pub(crate) struct Broken {
    /// The bytes its header promised.
    pub(crate) promised: Option<usize>,
    /// The bytes of its body that came.
    pub(crate) received: usize,
}

impl Client {
    pub(crate) fn of(server: &EmbeddedServer) -> Self {
        Self::with_keys(server, server.access_key(), server.secret_key())
    }

    pub(crate) fn with_keys(server: &EmbeddedServer, access_key: &str, secret_key: &str) -> Self {
        Self { address: server.address(), access_key: access_key.into(), secret_key: secret_key.into() }
    }

    fn ask(&self, method: &str, path: &str) -> Ask {
        let uri = format!("http://{}{path}", self.address);
        let request = hyper::Request::builder().method(method).uri(uri);
        let (body, payload) = (Bytes::new(), Payload::Hashed);
        Ask { client: self.clone(), request, body, signed_body: None, payload, minutes_off: 0 }
    }

    pub(crate) fn get(&self, path: &str) -> Ask {
        self.ask("GET", path)
    }

    pub(crate) fn head(&self, path: &str) -> Ask {
        self.ask("HEAD", path)
    }

    pub(crate) fn put(&self, path: &str) -> Ask {
        self.ask("PUT", path)
    }

    pub(crate) fn post(&self, path: &str) -> Ask {
        self.ask("POST", path)
    }

    pub(crate) fn delete(&self, path: &str) -> Ask {
        self.ask("DELETE", path)
    }

    /// The keys on one page of a listing.
    pub(crate) async fn list(&self, path: &str) -> Vec<String> {
        all(&self.get(path).send().await.text(), "<Key>", "</Key>")
    }

    pub(crate) async fn connect(&self) -> Connection {
        let stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }
}

impl Ask {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends another body than the one that was signed.
    pub(crate) fn swap_body_after_signing(mut self, body: &'static str) -> Self {
        self.signed_body = Some(std::mem::replace(&mut self.body, body.into()));
        self
    }

    /// Sends a body framed as aws-chunked, without signatures of its chunks.
    pub(crate) fn streaming_unsigned(mut self, framed: String) -> Self {
        self.payload = Payload::StreamingUnsigned;
        self.body(framed)
    }

    pub(crate) fn unsigned(mut self) -> Self {
        self.payload = Payload::Unsigned;
        self
    }

    /// Signs with a clock that is wrong.
    pub(crate) fn minutes_off(mut self, minutes: i64) -> Self {
        self.minutes_off = minutes;
        self
    }

    fn signed(self) -> hyper::Request<Full<Bytes>> {
        let Self { client, request, body, signed_body, payload, minutes_off } = self;
        let mut request =
            request.header("host", client.address.to_string()).body(Full::new(body.clone())).unwrap();
        if payload == Payload::Unsigned {
            return request;
        }
        let identity = Credentials::new(client.access_key, client.secret_key, None, None, "test").into();
        let mut settings = SigningSettings::default();
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let off = Duration::from_secs(60 * minutes_off.unsigned_abs());
        let time = if minutes_off < 0 { SystemTime::now() - off } else { SystemTime::now() + off };
        let parameters = SigningParams::builder().identity(&identity).region("us-east-1").name("s3");
        let parameters = parameters.time(time).settings(settings).build().unwrap().into();
        let hashed = signed_body.unwrap_or(body);
        let signable = match payload {
            Payload::StreamingUnsigned => SignableBody::StreamingUnsignedPayloadTrailer,
            _ => SignableBody::Bytes(&hashed),
        };
        let (method, uri) = (request.method().to_string(), request.uri().to_string());
        let headers = request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
        let signable = SignableRequest::new(&method, uri, headers, signable).unwrap();
        let (instructions, _) = sign(signable, &parameters).unwrap().into_parts();
        instructions.apply_to_request_http1x(&mut request);
        request
    }

    /// Sends it over a connection of its own.
    pub(crate) async fn send(self) -> Answer {
        self.try_send().await.unwrap()
    }

    pub(crate) async fn send_on(self, connection: &mut Connection) -> Answer {
        self.try_send_on(connection).await.unwrap()
    }

    pub(crate) async fn try_send(self) -> Result<Answer, Broken> {
        let mut connection = self.client.connect().await;
        self.try_send_on(&mut connection).await
    }

    async fn try_send_on(self, connection: &mut Connection) -> Result<Answer, Broken> {
        let mut request = self.signed();
        let path = request.uri().path_and_query().unwrap().as_str().parse().unwrap();
        *request.uri_mut() = path;
        connection.ready().await.map_err(|_| Broken::default())?;
        let response = connection.send_request(request).await.map_err(|_| Broken::default())?;
        let (parts, mut incoming) = response.into_parts();
        let length =
            parts.headers.get("content-length").and_then(|length| length.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|_| Broken { promised: length, received: body.len() })?;
            body.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        }
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }
}

impl Answer {
    /// A header's value, empty when it is missing.
    pub(crate) fn header(&self, name: &str) -> String {
        self.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The status and the error code; the code is empty without an error.
    pub(crate) fn error(&self) -> (u16, String) {
        let code = if self.status < 300 { String::new() } else { between(&self.text(), "<Code>", "</Code>") };
        (self.status, code)
    }
}

/// The text between the first `open` and the next `close`.
pub(crate) fn between(text: &str, open: &str, close: &str) -> String {
    all(text, open, close).into_iter().next().unwrap_or_else(|| panic!("no {open} in {text}"))
}

/// Every text between an `open` and the next `close`.
pub(crate) fn all(text: &str, open: &str, close: &str) -> Vec<String> {
    text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap_or_default().to_owned()).collect()
}
