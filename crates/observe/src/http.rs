//! The little of HTTP/1.1 that observers need, with a limit on size and on time for whatever the other side does.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// The longest head of a request or reply.
const HEAD_MOST: usize = 8 << 10;

/// Header lines of one head.
const HEADERS_MOST: usize = 64;

/// How long, and how much of, what comes after an answer is read.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_MOST: usize = 64 << 10;

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// With its query.
    pub(crate) target: String,
    pub(crate) authorization: Option<String>,
}

/// Reads the head of a request. A body is not read: nothing that is answered has one.
pub(crate) fn read_request(stream: &mut TcpStream, until: Instant) -> io::Result<Request> {
    let mut head = Vec::new();
    let end = read_head(stream, &mut head, until)?;
    parse_request(&head[..end]).ok_or_else(|| ErrorKind::InvalidData.into())
}

fn parse_request(head: &[u8]) -> Option<Request> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MOST];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(head).ok()?.is_complete() {
        return None;
    }
    let header = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("authorization"));
    Some(Request {
        method: request.method?.to_owned(),
        target: request.path?.to_owned(),
        authorization: header.map(|header| String::from_utf8_lossy(header.value).into_owned()),
    })
}

/// Reads a reply to its end, where the other side closes or its length says: status and body.
pub(crate) fn read_reply(stream: &mut TcpStream, most: usize, until: Instant) -> io::Result<(u16, Vec<u8>)> {
    let mut text = Vec::new();
    let end = read_head(stream, &mut text, until)?;
    let (status, length) = parse_reply(&text[..end]).ok_or(ErrorKind::InvalidData)?;
    let mut body = text.split_off(end);
    while length.is_none_or(|length| body.len() < length) {
        if body.len() > most || length.is_some_and(|length| length > most) {
            return Err(io::Error::other(format!("its answer is longer than {most} bytes")));
        }
        if read_some(stream, &mut body, until)? == 0 {
            match length {
                Some(_) => return Err(ErrorKind::UnexpectedEof.into()),
                None => break,
            }
        }
    }
    body.truncate(length.unwrap_or(usize::MAX));
    Ok((status, body))
}

fn parse_reply(head: &[u8]) -> Option<(u16, Option<usize>)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MOST];
    let mut reply = httparse::Response::new(&mut headers);
    if !reply.parse(head).ok()?.is_complete() {
        return None;
    }
    let header = reply.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = match header {
        Some(header) => Some(std::str::from_utf8(header.value).ok()?.trim().parse().ok()?),
        None => None,
    };
    Some((reply.code?, length))
}

/// Reads until the empty line that ends a head; where it ends.
fn read_head(stream: &mut TcpStream, text: &mut Vec<u8>, until: Instant) -> io::Result<usize> {
    loop {
        if let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") {
            return Ok(end + 4);
        }
        if text.len() > HEAD_MOST {
            return Err(ErrorKind::InvalidData.into());
        }
        if read_some(stream, text, until)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
}

fn read_some(stream: &mut TcpStream, text: &mut Vec<u8>, until: Instant) -> io::Result<usize> {
    let mut buffer = [0; 4096];
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut buffer) {
            Ok(count) => {
                text.extend_from_slice(&buffer[..count]);
                return Ok(count);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
}

/// Writes everything, or gives up at a moment: who reads a byte a second gets no more than that.
pub(crate) fn write(stream: &mut TcpStream, mut text: &[u8], until: Instant) -> io::Result<()> {
    while !text.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(text) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => text = &text[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends a conversation. What the other side still sends is thrown away for a moment: closing on it would reset the
/// connection, and the answer could be lost.
pub(crate) fn close(stream: &mut TcpStream, until: Instant) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let until = until.min(Instant::now() + LINGER);
    let mut rest = Vec::new();
    while rest.len() < LINGER_MOST && read_some(stream, &mut rest, until)? > 0 {}
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn heads_are_read() {
        let request =
            parse_request(b"GET /samples?after=3 HTTP/1.1\r\nHost: a\r\nauthorization: Bearer x\r\n\r\n");
        let expected = Request {
            method: "GET".into(),
            target: "/samples?after=3".into(),
            authorization: Some("Bearer x".into()),
        };
        assert_eq!(request, Some(expected));
        assert_eq!(parse_reply(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"), Some((200, Some(12))));
        assert_eq!(parse_reply(b"HTTP/1.1 404 Not Found\r\n\r\n"), Some((404, None)));
        assert_eq!(parse_reply(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), None);
        assert_eq!(parse_request(b"\x16\x03\x01\r\n\r\n"), None);
    }

    proptest! {
        #[test]
        fn odd_heads_are_no_reason_to_panic(head in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (parse_request(&head), parse_reply(&head));
        }
    }
}
