//! How the server proves itself over plain HTTP.

use super::{OPERATOR, Server, tokens};
use std::io::{Read as _, Write as _};
use tidemark_fleet::link::proof::{CERTIFICATE, Key, PATH, PROOF, Unproven, prove};
use tidemark_plan::secret::Secret;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

const NONCE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The head of what the server answers to whoever names a token so, line by line.
fn answer(server: &Server, id: &str, nonce: &str) -> Vec<String> {
    let mut stream = server.connect();
    let host = server.address();
    write!(
        stream,
        "GET {PATH} HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: TLS/1.3\r\ntidemark-token-id: {id}\r\n\
         tidemark-nonce: {nonce}\r\n\r\n"
    )
    .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap().lines().map(str::to_owned).collect()
}

fn value(head: &[String], name: &str) -> String {
    let lines = || head.iter().filter_map(|line| line.split_once(": "));
    lines().find(|(own, _)| *own == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
}

#[test]
fn a_token_that_does_not_exist_is_answered_like_one_that_does() {
    let server = Server::start(tokens());
    let (known, unknown) = (Key::of(OPERATOR), Key::of("nobody's token"));
    let [right, wrong] = [&known, &unknown].map(|key| answer(&server, &key.id(), NONCE));
    assert_eq!(right[0], "HTTP/1.1 101 Switching Protocols");
    let form = |head: &[String]| {
        let names = head.iter().filter(|line| !line.starts_with(PROOF) && !line.starts_with("date"));
        (names.cloned().collect::<Vec<_>>(), value(head, PROOF).len())
    };
    assert_eq!(form(&right), form(&wrong));
    let fingerprint = value(&right, CERTIFICATE);
    assert_eq!(value(&right, PROOF), known.proof(NONCE, &fingerprint));
    assert_ne!(value(&wrong, PROOF), unknown.proof(NONCE, &fingerprint));
    // Nobody is kept out by those who ask for tokens that do not exist.
    let guesses = [false; 3].map(|_| server.connect());
    for mut guess in &guesses {
        let id = unknown.id();
        write!(guess, "GET {PATH} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: TLS/1.3\r\ntidemark-token-id: {id}\r\n")
            .unwrap();
        write!(guess, "tidemark-nonce: {NONCE}\r\n\r\n").unwrap();
    }
    assert_eq!(value(&answer(&server, &known.id(), NONCE), PROOF), known.proof(NONCE, &fingerprint));
    for (id, nonce) in [("", NONCE), (NONCE, ""), (NONCE, "x"), (&NONCE[1..], NONCE)] {
        assert!(answer(&server, id, nonce)[0].contains(" 400 "), "{id} {nonce}");
    }
    assert_eq!(server.ask("GET", PATH).send().status, 426);
}

/// Asks over a connection that is proven what only an operator may know.
async fn ask<S: AsyncRead + AsyncWrite + Unpin>(stream: S, token: &str) -> Result<String, Unproven> {
    let mut stream = prove(stream, "localhost", PATH, &Secret::new(token)).await?;
    let request = format!(
        "GET /api/v1/info HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    // Servers that end need not say good-bye.
    let _ = stream.read_to_string(&mut text).await;
    Ok(text)
}

#[test]
fn whoever_carries_the_bytes_neither_reads_nor_changes_them() {
    let server = Server::start(tokens());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let direct = TcpStream::connect(server.address()).await.unwrap();
        let answer = ask(direct, OPERATOR).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"olga\""), "{answer}");
        let wrong = ask(TcpStream::connect(server.address()).await.unwrap(), "nobody's token").await;
        assert_eq!(wrong.unwrap_err(), Unproven::Other("it does not know the token".into()));

        let through = async |spoiled: Option<usize>| {
            let (client, relay) = tokio::io::duplex(64 << 10);
            let there = TcpStream::connect(server.address()).await.unwrap();
            let carrying = tokio::spawn(carry(relay, there, spoiled));
            let answer = ask(client, OPERATOR).await;
            let [up, down] = carrying.await.unwrap();
            (answer.is_ok_and(|answer| answer.contains("\"olga\"")), up, down)
        };
        let (whole, up, down) = through(None).await;
        assert!(whole);
        for bytes in [&up, &down] {
            assert!(!bytes.windows(OPERATOR.len()).any(|part| part == OPERATOR.as_bytes()));
            assert!(!bytes.windows(4).any(|part| part == b"olga"));
        }
        let after = |text: &str| {
            let text = text.as_bytes();
            down.windows(text.len()).position(|part| part == text).unwrap() + text.len()
        };
        // The certificate, the proof, the server's random number, and what is encrypted.
        let [certificate, proof] = [CERTIFICATE, PROOF].map(|name| after(&format!("{name}: ")));
        let handshake = after("\r\n\r\n");
        for at in [certificate, proof, handshake + 20, handshake + 300] {
            assert!(!through(Some(at)).await.0, "byte {at} was changed");
        }
    });
}

/// Carries bytes both ways, and changes one that comes from the server. Returns what the client sent, and what the server did.
async fn carry(client: tokio::io::DuplexStream, server: TcpStream, spoiled: Option<usize>) -> [Vec<u8>; 2] {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = from_client.read(&mut part).await {
            all.extend_from_slice(&part[..count]);
            if to_server.write_all(&part[..count]).await.is_err() {
                break;
            }
        }
        let _ = to_server.shutdown().await;
        all
    };
    let down = async {
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = from_server.read(&mut part).await {
            let before = all.len();
            all.extend_from_slice(&part[..count]);
            if let Some(at) = spoiled.and_then(|at| at.checked_sub(before)).filter(|at| *at < count) {
                part[at] ^= 1;
            }
            if to_client.write_all(&part[..count]).await.is_err() {
                break;
            }
        }
        let _ = to_client.shutdown().await;
        all
    };
    tokio::join!(up, down).into()
}
