//! A null S3 server: one thread, epoll, no storage. It answers every GET with the same body and every PUT with
//! 200, so that what is measured is the client.

use rustix::event::epoll;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How the server behaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sink {
    /// The body of every GET; when empty, that of the first PUT.
    pub(crate) body: Vec<u8>,
    /// Stop answering for `.1` every `.0`.
    pub(crate) freeze: Option<(Duration, Duration)>,
    /// Talk TLS, with a certificate that nobody vouches for.
    pub(crate) tls: bool,
}

enum Connection {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write_vectored(slices),
            Self::Tls(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// The keys of a server that talks TLS.
fn keys() -> io::Result<Arc<ServerConfig>> {
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(vec![own.cert.der().clone()], key));
    config.map(Arc::new).map_err(io::Error::other)
}

struct Peer {
    stream: Connection,
    head: Vec<u8>,
    /// Bytes of a request's body still to be thrown away.
    skip: usize,
    /// What could not be sent at once, and how much of it has been sent since.
    unsent: Vec<u8>,
    sent: usize,
    /// The body of the first PUT, while it is wanted.
    learned: Vec<u8>,
}

impl Sink {
    /// Serves until the process ends.
    pub(crate) fn serve(mut self, listener: &TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let epoll_fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let listening = u64::MAX;
        epoll::add(&epoll_fd, listener, epoll::EventData::new_u64(listening), epoll::EventFlags::IN)?;
        let keys = if self.tls { Some(keys()?) } else { None };
        let mut peers: HashMap<u64, Peer> = HashMap::new();
        let mut reply = self.get_reply();
        let mut learning = self.body.is_empty();
        let mut events = Vec::with_capacity(1024);
        let mut scratch = vec![0u8; 1 << 20];
        let mut next_freeze = self.freeze.map(|(every, _)| Instant::now() + every);
        loop {
            events.clear();
            let wait = rustix::time::Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            match epoll::wait(&epoll_fd, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let (Some(at), Some((every, length))) = (next_freeze, self.freeze)
                && Instant::now() >= at
            {
                std::thread::sleep(length);
                next_freeze = Some(at + every);
            }
            for event in &events {
                let key = event.data.u64();
                if key == listening {
                    while let Ok((stream, _)) = listener.accept() {
                        stream.set_nonblocking(true)?;
                        stream.set_nodelay(true)?;
                        let key = stream.as_raw_fd() as u64;
                        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
                        epoll::add(&epoll_fd, &stream, epoll::EventData::new_u64(key), flags)?;
                        let stream = match &keys {
                            None => Connection::Plain(stream),
                            Some(keys) => {
                                let connection = ServerConnection::new(Arc::clone(keys));
                                let connection = connection.map_err(io::Error::other)?;
                                Connection::Tls(Box::new(StreamOwned::new(connection, stream)))
                            }
                        };
                        let (head, unsent, learned) = (Vec::new(), Vec::new(), Vec::new());
                        peers.insert(key, Peer { stream, head, skip: 0, unsent, sent: 0, learned });
                    }
                } else if let Some(peer) = peers.get_mut(&key) {
                    if !peer.turn(&mut scratch, &reply, &self.body, learning).unwrap_or(false) {
                        peers.remove(&key);
                    } else if learning && peer.skip == 0 && !peer.learned.is_empty() {
                        (self.body, learning) = (std::mem::take(&mut peer.learned), false);
                        reply = self.get_reply();
                    }
                }
            }
        }
    }

    fn get_reply(&self) -> Vec<u8> {
        format!(
            "HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 12:00:00 GMT\r\nServer: sink\r\nContent-Type: \
             application/octet-stream\r\nAccept-Ranges: bytes\r\nETag: \"0123456789abcdef0123456789abcdef\"\r\n\
             Last-Modified: Fri, 20 Nov 2026 11:00:00 GMT\r\nx-amz-request-id: tx0000000000000000\r\n\
             x-amz-id-2: 0000000000000000\r\nContent-Length: {}\r\n\r\n",
            self.body.len()
        )
        .into_bytes()
    }
}

const PUT_REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nServer: sink\r\nETag: \"0123456789abcdef0123456789abcdef\"\r\n\
    x-amz-request-id: tx0000000000000000\r\nContent-Length: 0\r\n\r\n";

impl Peer {
    /// Reads what has come and answers it; false when the connection is over.
    fn turn(&mut self, scratch: &mut [u8], get_reply: &[u8], body: &[u8], learn: bool) -> io::Result<bool> {
        while self.sent < self.unsent.len() {
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.sent = 0;
        }
        // What TLS has encrypted and not yet sent.
        match self.stream.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        loop {
            let count = match self.stream.read(scratch) {
                Ok(0) => return Ok(false),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            };
            let mut rest = &scratch[..count];
            while !rest.is_empty() {
                let skipped = self.skip.min(rest.len());
                if learn {
                    self.learned.extend_from_slice(&rest[..skipped]);
                }
                self.skip -= skipped;
                rest = &rest[skipped..];
                if self.skip == 0 && skipped > 0 {
                    self.send(PUT_REPLY, &[])?;
                }
                if rest.is_empty() {
                    break;
                }
                let Some((put, length, used)) = self.head(rest) else {
                    self.head.extend_from_slice(rest);
                    break;
                };
                self.head.clear();
                rest = &rest[used..];
                match (put, length) {
                    (true, 0) => self.send(PUT_REPLY, &[])?,
                    (true, length) => self.skip = length,
                    (false, _) => self.send(get_reply, body)?,
                }
            }
            // TLS gives one record at a time: there may be more.
            if count < scratch.len() && matches!(self.stream, Connection::Plain(_)) {
                return Ok(true);
            }
        }
    }

    /// Parses a request's head out of what was kept and `rest`: whether it has a body to skip, its length, and
    /// how much of `rest` the head took.
    fn head(&self, rest: &[u8]) -> Option<(bool, usize, usize)> {
        let joined;
        let text = if self.head.is_empty() {
            rest
        } else {
            joined = [&self.head, rest].concat();
            &joined
        };
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(end) = request.parse(text).ok()? else { return None };
        let length = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok());
        let put = request.method != Some("GET");
        Some((put, length.unwrap_or(0), end - self.head.len()))
    }

    fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(head);
            self.unsent.extend_from_slice(body);
            return Ok(());
        }
        let mut sent = 0;
        while sent < head.len() + body.len() {
            let slices = [
                IoSlice::new(&head[sent.min(head.len())..]),
                IoSlice::new(&body[sent.saturating_sub(head.len())..]),
            ];
            match self.stream.write_vectored(&slices) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent.extend_from_slice(&head[sent.min(head.len())..]);
                    self.unsent.extend_from_slice(&body[sent.saturating_sub(head.len())..]);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
