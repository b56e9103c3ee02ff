//! The protocol of Ceph's admin sockets: a command in JSON that ends with a zero byte; its reply after four bytes with its length.

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit of one reply.
const PATIENCE: Duration = Duration::from_millis(500);

/// The largest reply: counters take tens of kilobytes.
const MOST: u32 = 16 << 20;

/// Why a daemon gave no counters.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error("its reply is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("its reply of {0} bytes is too long")]
    Long(u32),
}

/// Asks a daemon.
pub(crate) fn ask(path: &Path, command: &str) -> Result<Vec<u8>, AskError> {
    let until = Instant::now() + PATIENCE;
    let mut stream = open(path)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{{\"prefix\":\"{command}\"}}\0").as_bytes())?;
    let mut length = [0; 4];
    fill(&mut stream, &mut length, until)?;
    let length = u32::from_be_bytes(length);
    if length > MOST {
        return Err(AskError::Long(length));
    }
    let mut answer = vec![0; length as usize];
    fill(&mut stream, &mut answer, until)?;
    Ok(answer)
}

/// Connects without waiting; the standard library would wait for a daemon that does not accept.
fn open(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let descriptor = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&descriptor, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(descriptor);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn fill(stream: &mut UnixStream, buffer: &mut [u8], until: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_silent_daemon_times_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("osd.0.asok");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(matches!(ask(&path, "perf dump"), Err(AskError::Socket(_))), "it listens and never replies");
        drop(listener);
        assert!(matches!(ask(&path, "perf dump"), Err(AskError::Socket(_))), "nobody listens");
    }

    #[test]
    fn a_reply_has_a_size_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("osd.0.asok");
        let listener = UnixListener::bind(&path).unwrap();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&u32::MAX.to_be_bytes()).unwrap();
            stream
        });
        assert!(matches!(ask(&path, "perf dump"), Err(AskError::Long(u32::MAX))));
        drop(answering.join().unwrap());
    }
}
