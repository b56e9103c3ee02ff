//! Responses of HTTP/1.1, decoded from pieces of any length: no socket, no clock, no allocation per response.
//!
//! RFC 9112 where it is strict about framing, and no more lenient than curl or hyper where it is not: what
//! ends a body decides whether an operation was whole, so a doubtful end is an error and not a success.

mod chunked;

use chunked::Chunked;
use std::mem::MaybeUninit;

/// Longest head of a response, and longest trailer, in bytes.
pub const HEAD_MOST: usize = 64 << 10;

/// Most header lines of a head.
const HEADERS_MOST: usize = 128;

/// Why bytes are not a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not a status line and header lines.
    #[error("the reply does not begin with a valid HTTP/1.1 head")]
    Head,
    /// The head does not end.
    #[error("the reply's head is longer than 64 KiB or has more than 128 lines")]
    Long,
    /// More than one length, or one that is no number.
    #[error("the reply's Content-Length is not one number")]
    Length,
    /// An encoding that was not requested.
    #[error("the reply has a Transfer-Encoding other than chunked")]
    Encoding,
    /// A chunk without a valid size, or without an end.
    #[error("the reply's chunked encoding is damaged")]
    Chunk,
    /// 101.
    #[error("the server switched protocols without a request")]
    Switched,
}

/// What a decoder finds, as it finds it.
pub trait Sink {
    /// The head of the final response.
    fn head(&mut self, head: &Head<'_>);
    /// The next bytes of its body; never empty.
    fn body(&mut self, piece: &[u8]);
}

/// The head of a response.
pub struct Head<'a> {
    /// The status code.
    pub status: u16,
    headers: &'a [httparse::Header<'a>],
}

impl<'a> Head<'a> {
    /// The value of the first header of this name, whatever its case, if it is text.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    }
}

/// How far a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    /// Bytes left.
    Fixed(u64),
    Chunked(Chunked),
    UntilClose,
    Whole,
}

/// Decodes one response after the other.
pub struct Decoder {
    state: State,
    /// Whether the request was a HEAD, whose reply has no body, whatever its head.
    to_head: bool,
    reusable: bool,
    /// The beginning of a head that was split.
    held: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { state: State::Whole, to_head: false, reusable: false, held: Vec::new() }
    }
}

impl Decoder {
    /// Begins the next response. `to_head`: the request was a HEAD.
    #[inline]
    pub fn begin(&mut self, to_head: bool) {
        self.state = State::Head;
        self.to_head = to_head;
        self.reusable = true;
        self.held.clear();
    }

    /// Takes bytes; gives how many it used: fewer only when the response is whole.
    ///
    /// # Errors
    /// When they cannot be part of a response.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Malformed> {
        let mut used = 0;
        while used < bytes.len() && self.state != State::Whole {
            let rest = &bytes[used..];
            used += match &mut self.state {
                State::Head => self.feed_head(rest, sink)?,
                State::Fixed(left) => {
                    let length = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    sink.body(&rest[..length]);
                    *left -= length as u64;
                    if *left == 0 {
                        self.state = State::Whole;
                    }
                    length
                }
                State::Chunked(chunked) => {
                    let length = chunked.feed(rest, sink)?;
                    if chunked.is_whole() {
                        self.state = State::Whole;
                    }
                    length
                }
                State::UntilClose => {
                    sink.body(rest);
                    rest.len()
                }
                State::Whole => 0,
            };
        }
        Ok(used)
    }

    /// The peer has closed its side; false when the response is not whole.
    pub fn end(&mut self) -> bool {
        if self.state == State::UntilClose {
            self.state = State::Whole;
        }
        self.reusable = false;
        self.state == State::Whole
    }

    /// Whether the final head has been seen.
    #[inline]
    pub fn has_head(&self) -> bool {
        self.state != State::Head
    }

    /// Whether anything of the response has been seen.
    pub fn has_begun(&self) -> bool {
        self.has_head() || !self.held.is_empty()
    }

    /// Whether the response is whole.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.state == State::Whole
    }

    /// Whether the connection may be used for another request after this response.
    #[inline]
    pub fn is_reusable(&self) -> bool {
        self.reusable
    }

    #[inline]
    fn feed_head(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Malformed> {
        if self.held.is_empty() {
            if let Some(length) = self.parse_head(bytes, sink)? {
                return Ok(length);
            }
            self.held.extend_from_slice(bytes);
            return self.check_held(bytes.len());
        }
        let before = self.held.len();
        self.held.extend_from_slice(bytes);
        // Only the end of a line can complete a head.
        if !bytes.contains(&b'\n') {
            return self.check_held(bytes.len());
        }
        let held = std::mem::take(&mut self.held);
        let parsed = self.parse_head(&held, sink);
        self.held = held;
        match parsed? {
            Some(length) => {
                self.held.clear();
                Ok(length - before)
            }
            None => self.check_held(bytes.len()),
        }
    }

    fn check_held(&self, used: usize) -> Result<usize, Malformed> {
        if self.held.len() > HEAD_MOST { Err(Malformed::Long) } else { Ok(used) }
    }

    /// Parses a head, if it is all there, and decides how its body ends; gives the head's length.
    #[inline]
    fn parse_head(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<Option<usize>, Malformed> {
        let mut lines = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; HEADERS_MOST];
        let mut response = httparse::Response::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let length = match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut lines) {
            Ok(httparse::Status::Complete(length)) if length <= HEAD_MOST => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Malformed::Long),
            Err(_) => return Err(Malformed::Head),
        };
        let (Some(status), Some(minor)) = (response.code, response.version) else {
            return Err(Malformed::Head);
        };
        match status {
            101 => return Err(Malformed::Switched),
            // Informational: the final response follows.
            100..200 => return Ok(Some(length)),
            200..1000 => {}
            _ => return Err(Malformed::Head),
        }
        let framing = Framing::read(response.headers, minor)?;
        self.reusable = framing.keep_alive;
        self.state = if self.to_head || status == 204 || status == 304 {
            State::Whole
        } else if framing.chunked {
            State::Chunked(Chunked::default())
        } else {
            match framing.length {
                Some(0) => State::Whole,
                Some(length) => State::Fixed(length),
                None => {
                    self.reusable = false;
                    State::UntilClose
                }
            }
        };
        sink.head(&Head { status, headers: response.headers });
        Ok(Some(length))
    }
}

/// How a head defines the end of its body and of the connection.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    chunked: bool,
    keep_alive: bool,
}

impl Framing {
    #[inline]
    fn read(headers: &[httparse::Header<'_>], minor: u8) -> Result<Self, Malformed> {
        let mut framing = Framing { keep_alive: minor == 1, ..Framing::default() };
        for header in headers {
            // The length of the name rules nearly all of them out.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let length = number(header.value)?;
                    if framing.length.is_some_and(|known| known != length) {
                        return Err(Malformed::Length);
                    }
                    framing.length = Some(length);
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    if framing.chunked || !header.value.eq_ignore_ascii_case(b"chunked") {
                        return Err(Malformed::Encoding);
                    }
                    framing.chunked = true;
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for word in header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                        if word.eq_ignore_ascii_case(b"close") {
                            framing.keep_alive = false;
                        } else if word.eq_ignore_ascii_case(b"keep-alive") && minor == 0 {
                            framing.keep_alive = true;
                        }
                    }
                }
                _ => {}
            }
        }
        // Two lengths, or chunks from a server of HTTP/1.0, are what smuggling is made of: the chunks count, and
        // the connection ends (RFC 9112, 6.1 and 6.3).
        if framing.chunked && (framing.length.is_some() || minor == 0) {
            framing.keep_alive = false;
        }
        Ok(framing)
    }
}

/// A Content-Length: digits only.
#[inline]
fn number(value: &[u8]) -> Result<u64, Malformed> {
    if value.is_empty() {
        return Err(Malformed::Length);
    }
    value.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        let larger = number.checked_mul(10).and_then(|number| number.checked_add(u64::from(digit)));
        larger.filter(|_| digit <= 9).ok_or(Malformed::Length)
    })
}

/// A response read whole, as tests and the fuzzer see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the connection may be used again.
    pub reusable: bool,
    /// Bytes of the input that belong to the response.
    pub used: usize,
}

impl Sink for Parsed {
    fn head(&mut self, head: &Head<'_>) {
        self.status = head.status;
    }

    fn body(&mut self, piece: &[u8]) {
        self.body.extend_from_slice(piece);
    }
}

/// Reads one response from `pieces`, after which the peer closes; `None` when it is not whole by then.
///
/// # Errors
/// When the bytes are not a response.
pub fn parse<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    to_head: bool,
) -> Result<Option<Parsed>, Malformed> {
    let (mut decoder, mut parsed) = (Decoder::default(), Parsed::default());
    decoder.begin(to_head);
    for piece in pieces {
        parsed.used += decoder.feed(piece, &mut parsed)?;
        if decoder.is_whole() {
            parsed.reusable = decoder.is_reusable();
            return Ok(Some(parsed));
        }
    }
    let whole = decoder.end();
    parsed.reusable = decoder.is_reusable();
    Ok(whole.then_some(parsed))
}

#[cfg(test)]
mod tests;
