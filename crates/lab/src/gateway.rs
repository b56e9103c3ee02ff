//! The RADOS gateway: whether it answers, and the user who signs in to it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use serde::Deserialize;

use crate::cluster::{Cluster, parse};
use crate::error::LabError;
use crate::record::Credentials;

/// How long a gateway in good health may take to answer, with room for a machine under load.
const ANSWER: Duration = Duration::from_secs(2);

/// What is asked: the gateway's page for load balancers. It needs no user and, unlike a list of buckets, does
/// not show in the usage log that tests compare with.
const QUESTION: &[u8] = b"GET /swift/healthcheck HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";

/// The user that `up` creates.
const USER: &str = "tidemark";
const SWIFT_USER: &str = "tidemark:swift";

/// Whether something that speaks HTTP answers on the port.
pub(super) fn answers(port: u16) -> bool {
    ask(port).is_ok_and(|reply| &reply == b"HTTP/1.")
}

fn ask(port: u16) -> io::Result<[u8; 7]> {
    let mut stream = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    stream.write_all(QUESTION)?;
    let mut reply = [0; 7];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

/// The part of what `radosgw-admin` tells about a user that the lab reads.
#[derive(Deserialize)]
struct User {
    keys: Vec<S3Key>,
    swift_keys: Vec<SwiftKey>,
}

#[derive(Deserialize)]
struct S3Key {
    access_key: String,
    secret_key: String,
}

#[derive(Deserialize)]
struct SwiftKey {
    user: String,
    secret_key: String,
}

/// Creates the user and its Swift subuser. The gateway makes the keys, so that none shows on a command line.
pub(super) fn create_user(cluster: &Cluster) -> Result<Credentials, LabError> {
    cluster.radosgw_admin(&["user", "create", "--uid", USER, "--display-name", "Tidemark lab"])?;
    #[rustfmt::skip]
    let subuser = [
        "subuser", "create", "--uid", USER, "--subuser", SWIFT_USER, "--access", "full",
        "--key-type", "swift", "--gen-secret",
    ];
    credentials(&cluster.radosgw_admin(&subuser)?)
}

fn credentials(text: &str) -> Result<Credentials, LabError> {
    const COMMAND: &str = "radosgw-admin subuser create";
    let user: User = parse(COMMAND, text)?;
    let missing =
        |what| LabError::CommandOutput { command: COMMAND.into(), why: format!("it names no {what} key") };
    let s3 = user.keys.into_iter().next().ok_or_else(|| missing("S3"))?;
    let swift =
        user.swift_keys.into_iter().find(|key| key.user == SWIFT_USER).ok_or_else(|| missing("Swift"))?;
    Ok(Credentials {
        user: USER.into(),
        access_key: s3.access_key,
        secret_key: s3.secret_key,
        swift_user: swift.user,
        swift_key: swift.secret_key,
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that gives one answer.
    fn serve(answer: &'static [u8]) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; QUESTION.len()];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(answer).unwrap();
        });
        port
    }

    #[test]
    fn any_reply_in_http_is_an_answer_and_nothing_else_is() {
        assert!(answers(serve(b"HTTP/1.1 403 Forbidden\r\n\r\n")));
        assert!(!answers(serve(b"SSH-2.0-OpenSSH_9.2\r\n")));
        assert!(!answers(serve(b"")));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        assert!(!answers(port));
    }

    #[test]
    fn keys_are_read_from_what_radosgw_admin_says() {
        // As Ceph 16.2 writes it, shortened.
        let text = r#"{"user_id": "tidemark", "max_buckets": 1000,
            "subusers": [{"id": "tidemark:swift", "permissions": "full-control"}],
            "keys": [{"user": "tidemark", "access_key": "A", "secret_key": "S\/1"}],
            "swift_keys": [{"user": "tidemark:swift", "secret_key": "S2"}], "caps": []}"#;
        let found = credentials(text).unwrap();
        assert_eq!((found.access_key.as_str(), found.secret_key.as_str()), ("A", "S/1"));
        assert_eq!((found.swift_user.as_str(), found.swift_key.as_str()), ("tidemark:swift", "S2"));
        let error = credentials(
            r#"{"keys": [{"user": "u", "access_key": "A", "secret_key": "S"}], "swift_keys": []}"#,
        );
        assert!(error.unwrap_err().to_string().contains("it names no Swift key"));
    }
}
