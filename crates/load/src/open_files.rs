//! The limit of open files: every connection is one, and the 1,024 that shells set by default are for programs that
//! use `select`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files and sockets that this process has open beside those of its load, with room to spare: program, store, report,
/// observers, a connection to a controller.
const USUAL: u64 = 128;

/// Files that each thread of a work has open for itself.
const PER_THREAD: u64 = 8;

/// A load needs more open files than this process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the load needs {needed} open files and sockets at once, and this process may have {limit}: raise the hard limit \
     (`ulimit -Hn {needed}` as root, `nofile` in /etc/security/limits.conf, LimitNOFILE= of a service), or use fewer \
     workers or more drivers"
)]
pub struct TooFew {
    /// How many are needed.
    pub needed: u64,
    /// How many there may be.
    pub limit: u64,
}

/// Raises the limit of this process as far as it may, and gives it; `None`: there is none.
pub fn limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum?;
    let raised = Rlimit { current: Some(most), ..limit };
    match limit.current {
        Some(current) if current < most && setrlimit(Resource::Nofile, raised).is_err() => Some(current),
        _ => Some(most),
    }
}

/// Whether a load on so many threads may have `files` open at once.
///
/// # Errors
/// When it may not: a sentence for people.
pub fn check(files: u64, threads: u32, limit: Option<u64>) -> Result<(), TooFew> {
    let needed = files.saturating_add(USUAL).saturating_add(u64::from(threads) * PER_THREAD);
    match limit {
        Some(limit) if limit < needed && files > 0 => Err(TooFew { needed, limit }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_in_numbers() {
        assert_eq!(check(2_000, 2, None), Ok(()));
        assert_eq!(check(2_000, 2, Some(4_096)), Ok(()));
        let refused = check(2_000, 2, Some(1_024)).unwrap_err();
        assert_eq!(refused, TooFew { needed: 2_144, limit: 1_024 });
        assert!(refused.to_string().contains("ulimit -Hn 2144"), "{refused}");
        assert_eq!(check(0, 1, Some(10)), Ok(()), "what opens nothing is refused nothing");
        assert!(check(u64::MAX, u32::MAX, Some(u64::MAX - 1)).is_err(), "no overflow");
    }

    #[test]
    fn the_soft_limit_is_the_hard_one_afterwards() {
        let limit = limit();
        assert_eq!(getrlimit(Resource::Nofile).current, limit);
    }
}
