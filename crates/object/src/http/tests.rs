//! Odd framings, every split, and what hyper makes of the same bytes.

use super::*;
use proptest::prelude::*;

fn whole(text: &str) -> Option<Parsed> {
    parse([text.as_bytes()], false).unwrap()
}

/// Reads `bytes` in one piece, byte by byte, and cut in two at every place: always the same.
fn read_in_every_way(bytes: &[u8], to_head: bool) -> Result<Option<Parsed>, Malformed> {
    let expected = parse([bytes], to_head);
    assert_eq!(parse(bytes.chunks(1), to_head), expected, "byte by byte");
    for cut in 0..=bytes.len() {
        let (left, right) = bytes.split_at(cut);
        assert_eq!(parse([left, right], to_head), expected, "cut at {cut}");
    }
    expected
}

/// (name, bytes, to a HEAD, what is read).
type Case = (&'static str, &'static str, bool, Result<Option<(u16, &'static str, bool, usize)>, Malformed>);

/// Odd and plain framings; `used` is counted from the end: bytes that are not part of the response.
fn cases() -> Vec<Case> {
    let fine = |status, body, reusable, beyond| Ok(Some((status, body, reusable, beyond)));
    vec![
        ("plain", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, fine(200, "hello", true, 0)),
        ("no reason", "HTTP/1.1 200\r\ncontent-length:5\r\n\r\nhello", false, fine(200, "hello", true, 0)),
        ("empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, fine(200, "", true, 0)),
        ("beyond", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", false, fine(200, "he", true, 3)),
        ("short", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", false, Ok(None)),
        ("to a HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", true, fine(200, "", true, 0)),
        (
            "chunked HEAD",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            true,
            fine(200, "", true, 0),
        ),
        ("204", "HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\n", false, fine(204, "", true, 0)),
        ("304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\n", false, fine(304, "", true, 0)),
        (
            "close",
            "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx",
            false,
            fine(200, "x", false, 0),
        ),
        (
            "close in a list",
            "HTTP/1.1 200 OK\r\nConnection: foo, close\r\nContent-Length: 1\r\n\r\nx",
            false,
            fine(200, "x", false, 0),
        ),
        ("until close", "HTTP/1.1 200 OK\r\n\r\nhello", false, fine(200, "hello", false, 0)),
        ("1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false, fine(200, "x", false, 0)),
        (
            "1.0 kept alive",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
            false,
            fine(200, "x", true, 0),
        ),
        (
            "100 first",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            false,
            fine(200, "x", true, 0),
        ),
        (
            "chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n",
            false,
            fine(200, "hello!", true, 0),
        ),
        (
            "chunked with trailers",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\nA \r\n0123456789\r\n000\r\nX: y\r\nZ:\r\n\r\nmore",
            false,
            fine(200, "0123456789", true, 4),
        ),
        (
            "chunked and a length",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            false,
            fine(200, "x", false, 0),
        ),
        (
            "chunks cut off",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
            false,
            Ok(None),
        ),
        (
            "chunk too long",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
            false,
            Err(Malformed::Chunk),
        ),
        (
            "chunk without a size",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello",
            false,
            Err(Malformed::Chunk),
        ),
        (
            "chunk size overflow",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
            false,
            Err(Malformed::Chunk),
        ),
        (
            "same length twice",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
            false,
            fine(200, "x", true, 0),
        ),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
            false,
            Err(Malformed::Length),
        ),
        ("negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", false, Err(Malformed::Length)),
        (
            "huge length",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            false,
            Err(Malformed::Length),
        ),
        (
            "gzip",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            false,
            Err(Malformed::Encoding),
        ),
        (
            "switched",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            false,
            Err(Malformed::Switched),
        ),
        ("not HTTP", "SSH-2.0-OpenSSH_9.2p1 Debian\r\n", false, Err(Malformed::Head)),
        ("HTTP/2", "HTTP/2 200\r\n\r\n", false, Err(Malformed::Head)),
        ("nothing", "", false, Ok(None)),
        ("half a head", "HTTP/1.1 200 OK\r\nContent-Le", false, Ok(None)),
    ]
}

#[test]
fn odd_framings_are_read_the_same_however_they_are_cut() {
    for (name, text, to_head, expected) in cases() {
        let read = read_in_every_way(text.as_bytes(), to_head);
        let expected = expected.map(|response| {
            response.map(|(status, body, reusable, beyond)| Parsed {
                status,
                body: body.as_bytes().to_vec(),
                reusable,
                used: text.len() - beyond,
            })
        });
        assert_eq!(read, expected, "{name}");
    }
}

#[test]
fn a_head_without_end_is_refused() {
    let mut endless = b"HTTP/1.1 200 OK\r\n".to_vec();
    endless.extend(b"X: y\r\n".repeat(20_000));
    assert_eq!(parse([&endless[..]], false), Err(Malformed::Long));
    let mut long = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
    long.extend([b'a'; HEAD_MOST]);
    assert_eq!(parse(long.chunks(1000), false), Err(Malformed::Long));
    let mut trailers = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n".to_vec();
    trailers.extend(b"X: y\r\n".repeat(20_000));
    assert_eq!(parse([&trailers[..]], false), Err(Malformed::Chunk));
}

#[test]
fn one_decoder_reads_responses_one_after_the_other() {
    let (mut decoder, mut parsed) = (Decoder::default(), Parsed::default());
    for status in [200, 404, 206] {
        decoder.begin(false);
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 1\r\n\r\nx");
        let (left, right) = text.as_bytes().split_at(20);
        assert_eq!(decoder.feed(left, &mut parsed), Ok(20));
        assert!(decoder.has_begun() && !decoder.has_head());
        assert_eq!(decoder.feed(right, &mut parsed), Ok(right.len()));
        assert!(decoder.is_whole() && decoder.is_reusable());
        assert_eq!(parsed.status, status);
    }
    assert_eq!(parsed.body, b"xxx");
    assert!(whole("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap().body.is_empty());
}

/// What hyper's client makes of a response followed by the end of the connection.
fn hyper_reads(bytes: &[u8], to_head: bool) -> Option<(u16, Vec<u8>)> {
    use http_body_util::{BodyExt as _, Empty};
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let bytes = bytes.to_vec();
    runtime.block_on(async move {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake::<_, Empty<bytes::Bytes>>(TokioIo::new(near))
                .await
                .unwrap();
        tokio::task::LocalSet::new()
            .run_until(async move {
                tokio::task::spawn_local(connection);
                tokio::task::spawn_local(async move {
                    let mut request = [0; 1024];
                    let _ = far.read(&mut request).await;
                    let _ = far.write_all(&bytes).await;
                });
                let method = if to_head { "HEAD" } else { "GET" };
                let request = hyper::Request::builder().method(method).uri("/").body(Empty::new()).unwrap();
                let response = sender.send_request(request).await.ok()?;
                let status = response.status().as_u16();
                let body = response.into_body().collect().await.ok()?;
                Some((status, body.to_bytes().to_vec()))
            })
            .await
    })
}

#[test]
fn hyper_reads_the_same() {
    // But for one: hyper hands an unasked 101 over as a response.
    for (name, text, to_head, _) in cases().into_iter().filter(|case| case.0 != "switched") {
        let ours = parse([text.as_bytes()], to_head).ok().flatten();
        let ours = ours.map(|parsed| (parsed.status, parsed.body));
        assert_eq!(ours, hyper_reads(text.as_bytes(), to_head), "{name}");
    }
}

/// A response of random framing, and what it says.
fn response() -> impl Strategy<Value = (Vec<u8>, Parsed)> {
    let chunks = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5);
    (200u16..600, chunks, any::<(bool, bool, bool)>()).prop_map(
        |(status, chunks, (chunked, close, padded))| {
            let status = if [204, 304].contains(&status) { 200 } else { status };
            let body = chunks.concat();
            let mut bytes = format!("HTTP/1.1 {status} Some reason\r\nServer: x\r\n").into_bytes();
            if close {
                bytes.extend_from_slice(b"connection: close\r\n");
            }
            if padded {
                bytes.extend_from_slice(b"X-Padding:    \t spaces \t \r\n");
            }
            if chunked {
                bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in &chunks {
                    bytes.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            } else {
                bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                bytes.extend_from_slice(&body);
            }
            let used = bytes.len();
            (bytes, Parsed { status, body, reusable: !close, used })
        },
    )
}

proptest! {
    #[test]
    fn responses_of_any_framing_are_read_back((bytes, expected) in response()) {
        let read = read_in_every_way(&bytes, false).unwrap();
        prop_assert_eq!(read, Some(expected));
    }

    #[test]
    fn noise_is_refused_or_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300), begins in any::<bool>(), to_head in any::<bool>(),
    ) {
        let mut noise = if begins { b"HTTP/1.1 200 OK\r\n".to_vec() } else { Vec::new() };
        noise.extend(bytes);
        let in_one = parse([&noise[..]], to_head);
        // Which error is seen first may depend on the cut; whether there is one may not.
        prop_assert_eq!(parse(noise.chunks(1), to_head).ok().flatten(), in_one.ok().flatten());
    }
}
