//! Failures in words and classes: what the kernel returned, and what was wrong with content.

use crate::content::check::{Kind, Wrong};
use crate::data::DataSet;
use crate::volume::Opened;
use rustix::io::Errno;
use std::io;
use tidemark_measure::fault::Fault;
use tidemark_plan::block::Action;

/// The class of an error that the kernel returned.
pub(crate) fn class(error: Errno) -> Fault {
    match error {
        Errno::NOSPC | Errno::DQUOT => Fault::NoSpace,
        Errno::NODEV | Errno::NXIO | Errno::NOMEDIUM | Errno::STALE => Fault::Gone,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Fault::Denied,
        // The caller's fault, not the device's: it does not support the request.
        Errno::INVAL | Errno::OPNOTSUPP | Errno::NOMEM | Errno::FBIG => Fault::Local,
        _ => Fault::Io,
    }
}

/// An operation that the kernel refused or failed, in words.
pub(crate) fn refused(action: Action, volume: &Opened, offset: u64, length: u64, error: Errno) -> String {
    let advice = match error {
        Errno::INVAL => format!(
            ": offset, length and memory must match the device's alignment for direct I/O (offsets and lengths of {}, \
             memory of {} bytes)",
            volume.alignment.offset, volume.alignment.memory
        ),
        Errno::OPNOTSUPP => format!(": the device or file system does not support {}", action.name()),
        _ => String::new(),
    };
    format!("{}: {}{advice}", place(action, volume, offset, length), io::Error::from(error))
}

/// A transfer that moved less than requested, in words.
pub(crate) fn short(action: Action, volume: &Opened, offset: u64, length: u64, moved: u64) -> String {
    format!("{}: only {moved} bytes were moved", place(action, volume, offset, length))
}

/// Which operation on what, in words.
pub(crate) fn place(action: Action, volume: &Opened, offset: u64, length: u64) -> String {
    let path = volume.path.display();
    match action {
        Action::Read | Action::Write | Action::Trim => {
            format!("{} of {length} bytes at {offset} of {path}", action.name())
        }
        Action::Fsync | Action::Fdatasync | Action::Remove => format!("{} of {path}", action.name()),
    }
}

/// What was wrong with content. `come` is whether a second read of the sector showed what was expected, if
/// it was.
pub(crate) fn content(
    wrong: Wrong,
    volume: &Opened,
    others: &[Opened],
    come: Option<bool>,
    data: &DataSet,
) -> (Fault, String) {
    let found = |found: Option<u64>| match found {
        Some(generation) => data.when(generation),
        None => "a common block of an earlier write".to_owned(),
    };
    let (fault, what) = match wrong.kind {
        Kind::Older { found: old, expected } => {
            let (old, expected) = (found(old), data.when(expected));
            match come {
                Some(true) => (
                    Fault::StaleContent,
                    format!(
                        "stale: found {old} instead of {expected}, which was acknowledged and appeared on a second read"
                    ),
                ),
                _ => (
                    Fault::LostContent,
                    format!("lost: {expected} was acknowledged, but a second read also found {old}"),
                ),
            }
        }
        Kind::Torn { found: odd, expected } => (
            Fault::TornContent,
            format!("torn: one part is of {}, others are of {}", found(odd), data.when(expected)),
        ),
        Kind::Misplaced { volume: owner, at } => {
            let owner = match others.iter().find(|other| other.label.volume == owner) {
                Some(other) => other.path.display().to_string(),
                None => "another volume".to_owned(),
            };
            (Fault::MisplacedContent, format!("misplaced: this block belongs at byte {at} of {owner}"))
        }
        Kind::Zeroes => (
            Fault::WrongContent,
            "wrong: all zeroes; never written, or trimmed by another process".to_owned(),
        ),
        Kind::Damaged => {
            (Fault::WrongContent, "wrong: the stamp is intact, the bytes after it are damaged".to_owned())
        }
        Kind::Foreign => (Fault::WrongContent, "wrong: the stamp is damaged, or not Tidemark's".to_owned()),
    };
    (fault, format!("{} at byte {}: {what}", volume.path.display(), wrong.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_classes() {
        let classes = [
            (Errno::IO, Fault::Io),
            (Errno::NOSPC, Fault::NoSpace),
            (Errno::DQUOT, Fault::NoSpace),
            (Errno::NODEV, Fault::Gone),
            (Errno::STALE, Fault::Gone),
            (Errno::PERM, Fault::Denied),
            (Errno::INVAL, Fault::Local),
            (Errno::REMOTEIO, Fault::Io),
        ];
        for (error, fault) in classes {
            assert_eq!(class(error), fault, "{error:?}");
        }
    }
}
