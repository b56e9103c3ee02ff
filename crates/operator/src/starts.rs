//! How often an Evaluation was begun without an end: one that takes its operator along, by using up its memory for example, must not do so
//! forever.

use crate::operator::Outcome;
use std::fs;
use std::path::{Path, PathBuf};

/// So many starts without an end are enough.
const MOST: u32 = 3;

/// The number of starts, in a file of the Evaluation's directory.
pub(crate) struct Starts(PathBuf);

impl Starts {
    pub(crate) fn of(directory: &Path) -> Self {
        Self(directory.join("starts"))
    }

    /// Counts one; what it comes to, if it is one too many.
    pub(crate) fn begin(&self) -> Option<Outcome> {
        let before = fs::read_to_string(&self.0).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if before >= MOST {
            // Once it has changed it may be begun again.
            self.forget();
            return Some(Outcome::Failed(format!(
                "the operator was killed {before} times while it carried this out, and no run was measured: give it more memory, or have the load come from drivers \
                 (`spec.drivers`)"
            )));
        }
        // Without a file nothing is counted, and whoever carries it out says why nothing can be written.
        let _ = self.0.parent().map(fs::create_dir_all);
        let _ = fs::write(&self.0, (before + 1).to_string());
        None
    }

    /// It has ended, or has come further.
    pub(crate) fn forget(&self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kills_its_operator_three_times_fails() {
        let directory = tempfile::tempdir().unwrap();
        let starts = Starts::of(&directory.path().join("one"));
        assert!(starts.begin().is_none());
        starts.forget();
        for _ in 0..MOST {
            assert!(starts.begin().is_none());
        }
        assert!(matches!(starts.begin(), Some(Outcome::Failed(why)) if why.contains("killed 3 times")));
        assert!(starts.begin().is_none(), "it has changed");
    }
}
