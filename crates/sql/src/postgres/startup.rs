//! The beginning of a connection: TLS, who connects, and the proof of it.

use super::Connection;
use super::message::{self, Message};
use crate::failure::{Failure, words};
use crate::job::Tls;
use crate::server::Server;
use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use tidemark_measure::fault::Fault;

/// Brings a fresh connection to the point where the server is ready for statements.
pub(super) async fn start(
    connection: &mut Connection,
    server: &Server,
    endpoint: usize,
) -> Result<(), Failure> {
    let target = &server.target;
    if let Some(tls) = server.tls(endpoint) {
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        send(connection, &request).await?;
        match first_byte(connection).await? {
            b'S' => connection.stream.transport.start_tls(tls).await?,
            b'N' if target.tls == Tls::Prefer => {}
            b'N' => {
                let text = "the server does not offer TLS: enable ssl there, or set `tls: disable`";
                return Err(Failure::lost(Fault::Tls, text));
            }
            // A server that is too busy to fork answers with an error.
            b'E' => {
                return Err(Failure::lost(Fault::Overloaded, "the server refused the connection at once"));
            }
            _ => return Err(Failure::malformed("the server's answer to a request for TLS makes no sense")),
        }
    }
    let parameters = [
        ("user", target.user.as_str()),
        ("database", target.database.as_str()),
        ("application_name", "tidemark"),
        ("client_encoding", "UTF8"),
    ];
    let mut hello = BytesMut::new();
    let unsound = |_| Failure::lost(Fault::Denied, "the user or the database has a zero byte in its name");
    frontend::startup_message(parameters, &mut hello).map_err(unsound)?;
    send(connection, &hello).await?;
    let password = target.password.as_ref().map(|password| password.reveal().as_bytes());
    authenticate(connection, target.user.as_bytes(), password).await?;
    loop {
        let message = next(connection).await?;
        let body = message.body(&connection.stream.input);
        match message.kind {
            b'Z' => return Ok(()),
            b'S' => {
                let pair = message::text(body).and_then(|(name, rest)| Some((name, message::text(rest)?.0)));
                match pair {
                    Some(("server_version", version)) => connection.version = words(version),
                    Some(("in_hot_standby", standby)) => connection.standby = standby == "on",
                    _ => {}
                }
            }
            b'E' => return Err(Failure { lost: true, ..message::failure(body) }),
            b'K' => {
                let number = body.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
                connection.process = number.unwrap_or_default();
            }
            b'N' => {}
            _ => return Err(Failure::malformed("the server did not begin the session as it must")),
        }
    }
}

/// Proves who we are, in the way that the server asks for.
async fn authenticate(
    connection: &mut Connection,
    user: &[u8],
    password: Option<&[u8]>,
) -> Result<(), Failure> {
    let needed = || {
        let text =
            "the server asks for a password, and the target has none: set `password` or `password_file`";
        Failure::lost(Fault::Denied, text)
    };
    let unsound = |_| Failure::lost(Fault::Denied, "the password has a zero byte in it");
    let mut scram: Option<ScramSha256> = None;
    loop {
        let message = next(connection).await?;
        let body = message.body(&connection.stream.input);
        match message.kind {
            b'R' => {}
            b'N' => continue,
            b'E' => return Err(Failure { lost: true, ..message::failure(body) }),
            _ => return Err(Failure::malformed("the server did not ask for a proof as it must")),
        }
        let (code, data) = body.split_at_checked(4).ok_or_else(malformed)?;
        let mut reply = BytesMut::new();
        match code {
            [0, 0, 0, 0] => return Ok(()),
            [0, 0, 0, 3] => {
                frontend::password_message(password.ok_or_else(needed)?, &mut reply).map_err(unsound)?;
            }
            [0, 0, 0, 5] => {
                let salt = data.try_into().map_err(|_| malformed())?;
                let hash = md5_hash(user, password.ok_or_else(needed)?, salt);
                frontend::password_message(hash.as_bytes(), &mut reply).map_err(unsound)?;
            }
            [0, 0, 0, 10] => {
                let offered = data.split(|byte| *byte == 0);
                if !offered.into_iter().any(|name| name == SCRAM_SHA_256.as_bytes()) {
                    let text =
                        "the server offers no way to authenticate that Tidemark knows: allow scram-sha-256";
                    return Err(Failure::lost(Fault::Denied, text));
                }
                let begun = ScramSha256::new(password.ok_or_else(needed)?, ChannelBinding::unsupported());
                frontend::sasl_initial_response(SCRAM_SHA_256, begun.message(), &mut reply)
                    .map_err(unsound)?;
                scram = Some(begun);
            }
            [0, 0, 0, 11] => {
                let begun = scram.as_mut().ok_or_else(malformed)?;
                begun.update(data).map_err(|_| malformed())?;
                frontend::sasl_response(begun.message(), &mut reply).map_err(unsound)?;
            }
            [0, 0, 0, 12] => {
                // The server proves that it knows the password, too.
                let wrong =
                    |_| Failure::lost(Fault::Denied, "the server could not prove that it knows the password");
                scram.as_mut().ok_or_else(malformed)?.finish(data).map_err(wrong)?;
                continue;
            }
            _ => {
                let text = "the server asks for a way to authenticate that Tidemark lacks (Kerberos, GSSAPI, SSPI): allow \
                            scram-sha-256 for this user in pg_hba.conf";
                return Err(Failure::lost(Fault::Denied, text));
            }
        }
        send(connection, &reply).await?;
    }
}

fn malformed() -> Failure {
    Failure::malformed("the server's demand for a proof makes no sense")
}

async fn send(connection: &mut Connection, bytes: &[u8]) -> Result<(), Failure> {
    connection.begin_batch();
    connection.over = true;
    connection.stream.out.extend_from_slice(bytes);
    let end = connection.stream.out.len();
    connection.send(end).await
}

/// The next message, waiting for it.
async fn next(connection: &mut Connection) -> Result<Message, Failure> {
    loop {
        if let Some(message) = connection.next_message()? {
            return Ok(message);
        }
        connection.stream.more().await?;
    }
}

/// A byte that is no message.
async fn first_byte(connection: &mut Connection) -> Result<u8, Failure> {
    while connection.stream.unread().is_empty() {
        connection.stream.more().await?;
    }
    let byte = connection.stream.unread()[0];
    connection.stream.read += 1;
    // What is in plain text behind it did not come from the server that TLS will prove (CVE-2021-23222).
    if byte == b'S' && !connection.stream.unread().is_empty() {
        return Err(Failure::malformed("the server sent data before TLS began: somebody may be in between"));
    }
    Ok(byte)
}
