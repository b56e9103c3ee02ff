//! The kernel's netlink protocol, as much of it as asking for a table takes (netlink(7), Documentation/userspace-api/netlink).

use rustix::io;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::time::Duration;

/// The kernel answers at once, or not at all.
const PATIENCE: Duration = Duration::from_millis(500);

/// The largest message that the kernel sends in a table.
const ROOM: usize = 64 << 10;

/// Length of a message's header.
const HEADER: usize = 16;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;

/// Kinds of messages that end a table: `NLMSG_ERROR`, `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// Asks for a table and passes the content of its rows on, at most so many.
pub(crate) fn table(
    protocol: Option<Protocol>,
    kind: u16,
    request: &[u8],
    most: usize,
    mut row: impl FnMut(&[u8]),
) -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    let length = u32::try_from(HEADER + request.len()).unwrap_or(u32::MAX);
    let mut message = Vec::with_capacity(HEADER + request.len());
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(DUMP.to_ne_bytes());
    // A number of ours and a port of ours: the kernel repeats the one and sets the other.
    message.extend([0; 8]);
    message.extend(request);
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut buffer = vec![0; ROOM];
    let mut left = most;
    loop {
        let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if length == 0 {
            return Ok(());
        }
        for (kind, content) in messages(&buffer[..length]) {
            match kind {
                DONE => return Ok(()),
                ERROR => {
                    let code = number(content, 0).unwrap_or(0).cast_signed();
                    return Err(io::Errno::from_raw_os_error(code.wrapping_neg()));
                }
                _ if left == 0 => return Ok(()),
                _ => row(content),
            }
            left -= 1;
        }
    }
}

/// The messages in what was received: kind and content.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = number(bytes, 0)? as usize;
        let kind = short(bytes, 4)?;
        let content = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

/// The attributes behind the fixed part of a message, or within an attribute: kind and content.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(short(bytes, 0)?);
        // The two highest bits say how the content is to be read.
        let kind = short(bytes, 2)? & 0x3fff;
        let content = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

/// The content of the first attribute of a kind.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(other, _)| *other == kind).map(|(_, content)| content)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Four bytes at a place.
pub(crate) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Eight bytes at a place.
pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_and_attributes_are_told_apart() {
        let mut bytes = Vec::new();
        for (kind, content) in [(20u16, &[1u8, 2, 3, 4, 5][..]), (DONE, &[])] {
            bytes.extend(((HEADER + content.len()) as u32).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(content);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let found: Vec<_> = messages(&bytes).collect();
        assert_eq!(found, [(20, &[1u8, 2, 3, 4, 5][..]), (DONE, &[][..])]);
        let mut bytes = Vec::new();
        for (kind, content) in [(1u16, &b"tbf\0"[..]), (0x8002, &[9; 3])] {
            bytes.extend(((4 + content.len()) as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(content);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        assert_eq!((attribute(&bytes, 1), attribute(&bytes, 2)), (Some(&b"tbf\0"[..]), Some(&[9u8; 3][..])));
        assert_eq!(attribute(&bytes, 3), None);
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&bytes).count() <= bytes.len());
            prop_assert!(attributes(&bytes).count() <= bytes.len());
        }
    }
}
