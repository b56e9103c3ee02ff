//! The least that a request can cost: the same requests, made once, sent and answered over and over on one thread with
//! epoll. It signs, draws, checks and records nothing, so what it costs is the kernel's share, and the floor for any client.

use crate::processor::Time;
use rustix::event::epoll;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What a client process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// `127.0.0.1:port`.
    pub(crate) address: String,
    /// Bytes of a PUT's body; a GET otherwise.
    pub(crate) put: Option<usize>,
    /// Connections, each with a request in flight.
    pub(crate) connections: usize,
    /// For how long.
    pub(crate) seconds: f64,
}

/// What it cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) requests: u64,
    pub(crate) time: Time,
}

impl Cost {
    /// Microseconds of processor time per request.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.time.total_us() / self.requests.max(1) as f64
    }
}

/// Does `task` in this process.
pub(crate) fn run(task: &Task) -> Result<Cost, String> {
    exchange(task).map_err(|error| error.to_string())
}

/// As long as the head of a signed request: what is sent is to be the same.
fn head(task: &Task) -> Vec<u8> {
    let (method, length) = match task.put {
        Some(bytes) => ("PUT", format!("Content-Length: {bytes}\r\n")),
        None => ("GET", String::new()),
    };
    let signature = "x".repeat(230);
    format!(
        "{method} /mycontainers1/myobjects1 HTTP/1.1\r\nHost: {}\r\n{length}x-amz-date: 20261120T120000Z\r\n\
         x-amz-content-sha256: UNSIGNED-PAYLOAD\r\nAuthorization: AWS4-HMAC-SHA256 {signature}\r\n\r\n",
        task.address
    )
    .into_bytes()
}

fn exchange(task: &Task) -> io::Result<Cost> {
    let (head, body) = (head(task), vec![b'x'; task.put.unwrap_or(0)]);
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut streams = Vec::new();
    let mut reply_bytes = 0;
    let mut scratch = vec![0; 1 << 20];
    for index in 0..task.connections {
        let mut stream = TcpStream::connect(&task.address)?;
        stream.set_nodelay(true)?;
        // All replies are as long as the first one, for which a pause is long enough.
        send(&mut stream, &head, &body)?;
        stream.set_read_timeout(Some(Duration::from_millis(if index == 0 { 300 } else { 5_000 })))?;
        let mut read = 0;
        while index == 0 || read < reply_bytes {
            match stream.read(&mut scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => read += count,
                Err(error) if index == 0 && error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        reply_bytes = read;
        stream.set_nonblocking(true)?;
        epoll::add(&poll, &stream, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
        streams.push((stream, 0));
    }
    let (before, began) = (Time::own().unwrap_or_default(), Instant::now());
    for (stream, _) in &mut streams {
        send(stream, &head, &body)?;
    }
    let mut requests = 0;
    let mut events = Vec::with_capacity(1024);
    while began.elapsed().as_secs_f64() < task.seconds {
        events.clear();
        let wait = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&wait))?;
        for event in &events {
            let (stream, read) = &mut streams[event.data.u64() as usize];
            match stream.read(&mut scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => *read += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if *read >= reply_bytes {
                (*read, requests) = (0, requests + 1);
                send(stream, &head, &body)?;
            }
        }
    }
    Ok(Cost { requests, time: Time::own().unwrap_or_default() - before })
}

/// Sends a request, which fits into the socket's buffer.
fn send(stream: &mut TcpStream, head: &[u8], body: &[u8]) -> io::Result<()> {
    match stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])? {
        sent if sent == head.len() + body.len() => Ok(()),
        _ => Err(io::Error::other("a request did not fit into the socket's buffer")),
    }
}
