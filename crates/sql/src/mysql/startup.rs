//! The beginning of a connection: TLS, who connects, and the proof of it.

use super::Connection;
use super::packet::{self, malformed};
use crate::failure::{Failure, words};
use crate::job::{Endpoint, Target, Tls};
use crate::server::Server;
use bytes::{BufMut as _, BytesMut};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tidemark_measure::fault::Fault;

/// What both sides can do (MySQL Source Code Documentation, *Capabilities Flags*).
mod can {
    /// Statements count the rows that they found, not only those that they changed: as everywhere else.
    pub(super) const FOUND_ROWS: u32 = 1 << 1;
    pub(super) const LONG_PASSWORD: u32 = 1;
    pub(super) const LONG_FLAG: u32 = 1 << 2;
    pub(super) const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(super) const PROTOCOL_41: u32 = 1 << 9;
    pub(super) const TLS: u32 = 1 << 11;
    pub(super) const TRANSACTIONS: u32 = 1 << 13;
    pub(super) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(super) const MULTI_STATEMENTS: u32 = 1 << 16;
    pub(super) const MULTI_RESULTS: u32 = 1 << 17;
    pub(super) const PS_MULTI_RESULTS: u32 = 1 << 18;
    pub(super) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(super) const CONNECT_ATTRIBUTES: u32 = 1 << 20;
    pub(super) const COUNTED_PROOF: u32 = 1 << 21;
    pub(super) const DEPRECATE_EOF: u32 = 1 << 24;

    /// Without these there is no session; every server since MySQL 5.7 and MariaDB 10.2 has them.
    pub(super) const NEEDED: u32 =
        PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH | MULTI_STATEMENTS | MULTI_RESULTS;
    /// These are used where the server has them.
    pub(super) const WANTED: u32 = FOUND_ROWS
        | LONG_PASSWORD
        | LONG_FLAG
        | TRANSACTIONS
        | PS_MULTI_RESULTS
        | CONNECT_ATTRIBUTES
        | COUNTED_PROOF
        | DEPRECATE_EOF;

    /// The names of those that are needed.
    pub(super) const NAMES: [(u32, &str); 5] = [
        (PROTOCOL_41, "CLIENT_PROTOCOL_41"),
        (SECURE_CONNECTION, "CLIENT_SECURE_CONNECTION"),
        (PLUGIN_AUTH, "CLIENT_PLUGIN_AUTH"),
        (MULTI_STATEMENTS, "CLIENT_MULTI_STATEMENTS"),
        (MULTI_RESULTS, "CLIENT_MULTI_RESULTS"),
    ];
}

/// `utf8mb4_general_ci`, which all servers know.
const CHARACTERS: u8 = 45;

/// What a server says first.
#[derive(Debug, PartialEq, Eq)]
struct Greeting {
    version: String,
    capabilities: u32,
    nonce: Vec<u8>,
    plugin: String,
}

impl Greeting {
    fn read(payload: &[u8]) -> Option<Self> {
        let (version, rest) = packet::text(payload.strip_prefix(&[10])?)?;
        // Behind the version: the thread's number, the nonce's first part and a zero.
        let (nonce, rest) = rest.get(4..)?.split_at_checked(8)?;
        let low = packet::little(rest.get(1..3)?) as u32;
        let high = packet::little(rest.get(6..8)?) as u32;
        let capabilities = low | high << 16;
        let mut nonce = nonce.to_vec();
        let length = usize::from(*rest.get(8)?).saturating_sub(8).max(13);
        // Behind ten bytes of nothing: the nonce's second part, and a zero.
        let rest = rest.get(19..)?;
        let (second, rest) = rest.split_at_checked(length.min(rest.len()))?;
        nonce.extend(second.iter().take(12));
        let plugin = packet::text(rest).map_or(rest, |(plugin, _)| plugin);
        // MariaDB says this before its own version, for clients that believe in no version above 5.
        let version = words(&String::from_utf8_lossy(version));
        Some(Self {
            version: version.strip_prefix("5.5.5-").unwrap_or(&version).to_owned(),
            capabilities,
            nonce,
            plugin: String::from_utf8_lossy(plugin).into_owned(),
        })
    }
}

/// Brings a fresh connection to the point where the server is ready for statements.
pub(super) async fn start(
    connection: &mut Connection,
    server: &Server,
    endpoint: usize,
) -> Result<(), Failure> {
    let target = &server.target;
    let payload = connection.packet().await?;
    let payload = &connection.stream.input[payload];
    if payload.first() == Some(&0xff) {
        return Err(Failure { lost: true, ..packet::failure(payload) });
    }
    let greeting = Greeting::read(payload).ok_or_else(malformed)?;
    if greeting.capabilities & can::NEEDED != can::NEEDED {
        let lacks = |(flag, _): &&(u32, &str)| greeting.capabilities & flag == 0;
        let names: Vec<&str> = can::NAMES.iter().filter(lacks).map(|(_, name)| *name).collect();
        let text = format!(
            "the server (version {}) does not offer {}: MySQL 8 or MariaDB 10.6 is needed; look for a proxy in between",
            greeting.version,
            names.join(", ")
        );
        return Err(Failure::lost(Fault::Protocol, text));
    }
    let mut capabilities = can::NEEDED | can::CONNECT_WITH_DB | greeting.capabilities & can::WANTED;
    let mut secret = matches!(target.endpoints[endpoint], Endpoint::Unix(_));
    if let Some(tls) = server.tls(endpoint) {
        if greeting.capabilities & can::TLS != 0 {
            capabilities |= can::TLS;
            let mut request = BytesMut::new();
            head(capabilities, &mut request);
            connection.say(&request).await?;
            if !connection.stream.unread().is_empty() {
                let text = "the server sent data before TLS began: somebody may be in between";
                return Err(Failure::malformed(text));
            }
            connection.stream.transport.start_tls(tls).await?;
            secret = true;
        } else if target.tls != Tls::Prefer {
            let text = "the server does not offer TLS: set ssl_cert and ssl_key there, or set `tls: disable`";
            return Err(Failure::lost(Fault::Tls, text));
        }
    }
    connection.has_eof = capabilities & can::DEPRECATE_EOF == 0;
    connection.version = greeting.version;
    // A server whose usual way Tidemark lacks says which one this user needs when it is told of another.
    let nonce = greeting.nonce;
    let plugin = if greeting.plugin == SHA256 { SHA256.to_owned() } else { SHA1.to_owned() };
    let proof = proof(&plugin, &nonce, target)?;
    let mut hello = BytesMut::new();
    head(capabilities, &mut hello);
    hello.put_slice(target.user.as_bytes());
    hello.put_u8(0);
    match capabilities & can::COUNTED_PROOF {
        0 => {
            hello.put_u8(proof.len() as u8);
            hello.put_slice(&proof);
        }
        _ => packet::put_counted(&mut hello, &proof),
    }
    for name in [&target.database, &plugin] {
        hello.put_slice(name.as_bytes());
        hello.put_u8(0);
    }
    if capabilities & can::CONNECT_ATTRIBUTES != 0 {
        let mut attributes = BytesMut::new();
        packet::put_counted(&mut attributes, b"program_name");
        packet::put_counted(&mut attributes, b"tidemark");
        packet::put_counted(&mut hello, &attributes);
    }
    connection.say(&hello).await?;
    authenticate(connection, target, plugin, secret).await
}

/// What a client's first packet begins with, and all that a request for TLS is.
fn head(capabilities: u32, out: &mut BytesMut) {
    out.put_u32_le(capabilities);
    // The longest packet that we would take; servers look at their own setting.
    out.put_u32_le(1 << 30);
    out.put_u8(CHARACTERS);
    out.put_bytes(0, 23);
}

/// Goes on until the server believes who we are. A server may ask once for another way to prove it, once for the proof in full, and
/// say once that it knows the proof (MySQL manual, "Authentication Phase"): one that asks again would keep us for ever.
async fn authenticate(
    connection: &mut Connection,
    target: &Target,
    mut plugin: String,
    secret: bool,
) -> Result<(), Failure> {
    let (mut switched, mut known, mut asked) = (false, false, false);
    loop {
        let payload = connection.packet().await?;
        let payload = &connection.stream.input[payload];
        let again = match payload {
            [0xfe, _, ..] => std::mem::replace(&mut switched, true),
            [0x01, 0x03] => std::mem::replace(&mut known, true),
            [0x01, 0x04] => std::mem::replace(&mut asked, true),
            _ => false,
        };
        if again {
            return Err(Failure::malformed("the server repeats a step of authentication"));
        }
        match payload {
            [0x00, ..] => return Ok(()),
            [0xff, ..] => return Err(Failure { lost: true, ..packet::failure(payload) }),
            // Another way to prove it, with a nonce of its own.
            [0xfe, rest @ ..] if !rest.is_empty() => {
                let (name, data) = packet::text(rest).unwrap_or((rest, &[]));
                plugin = String::from_utf8_lossy(name).into_owned();
                let nonce = data.strip_suffix(&[0]).unwrap_or(data);
                let reply = match plugin.as_str() {
                    "mysql_clear_password" => plain(target, secret)?,
                    plugin => proof(plugin, nonce, target)?,
                };
                connection.say(&reply).await?;
            }
            // `caching_sha2_password` knows this proof; an OK follows.
            [0x01, 0x03] if plugin == SHA256 => {}
            // It has not seen the password since it began, and wants to.
            [0x01, 0x04] if plugin == SHA256 => {
                let reply = plain(target, secret)?;
                connection.say(&reply).await?;
            }
            _ => return Err(malformed()),
        }
    }
}

pub(super) const SHA1: &str = "mysql_native_password";
pub(super) const SHA256: &str = "caching_sha2_password";

/// The proof that we know the password, which does not tell it.
fn proof(plugin: &str, nonce: &[u8], target: &Target) -> Result<Vec<u8>, Failure> {
    let password = target.password.as_ref().map(|password| password.reveal().as_bytes()).unwrap_or_default();
    match plugin {
        SHA1 | SHA256 if password.is_empty() => Ok(Vec::new()),
        // SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password)))
        SHA1 => {
            let hash = Sha1::digest(password);
            let mask = Sha1::new().chain_update(nonce).chain_update(Sha1::digest(hash)).finalize();
            Ok(hash.iter().zip(mask).map(|(a, b)| a ^ b).collect())
        }
        // SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce)
        SHA256 => {
            let hash = Sha256::digest(password);
            let mask =
                Sha256::new().chain_update(Sha256::digest(Sha256::digest(password))).chain_update(nonce);
            Ok(hash.iter().zip(mask.finalize()).map(|(a, b)| a ^ b).collect())
        }
        other => {
            let text = format!(
                "the server asks for a way to authenticate that Tidemark lacks ({}): make the user with {SHA256} or {SHA1}",
                words(other)
            );
            Err(Failure::lost(Fault::Denied, text))
        }
    }
}

/// The password itself: only over TLS, or on this machine.
fn plain(target: &Target, secret: bool) -> Result<Vec<u8>, Failure> {
    if !secret {
        let text = "the server wants the password itself, which is only sent over TLS: set `tls: require` or `tls: verify-full`";
        return Err(Failure::lost(Fault::Denied, text));
    }
    let password = target.password.as_ref().map(|password| password.reveal().as_bytes()).unwrap_or_default();
    Ok([password, &[0]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_greeting_of_mariadb_is_read() {
        let mut payload = vec![10];
        payload.extend(b"5.5.5-10.11.6-MariaDB\0");
        payload.extend([7, 0, 0, 0]);
        payload.extend(b"12345678\0");
        payload.extend([0xfe, 0xf7, 45, 2, 0, 0xff, 0x81, 21]);
        payload.extend([0; 10]);
        payload.extend(b"901234567890\0mysql_native_password\0");
        let greeting = Greeting::read(&payload).unwrap();
        let expected = Greeting {
            version: "10.11.6-MariaDB".into(),
            capabilities: 0x81ff_f7fe,
            nonce: b"12345678901234567890".to_vec(),
            plugin: SHA1.into(),
        };
        assert_eq!(greeting, expected);
        for length in 0..payload.len() {
            let _ = Greeting::read(&payload[..length]);
        }
    }

    proptest! {
        #[test]
        fn no_greeting_makes_it_panic(bytes: Vec<u8>) {
            let _ = Greeting::read(&[&[10][..], &bytes].concat());
        }
    }
}
