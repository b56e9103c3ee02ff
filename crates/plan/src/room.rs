//! How much a document may grow to while it is read: a short text can ask for very much.

use crate::plan::Work;
use std::cell::Cell;
use std::io::{self, Write};

/// Works of a plan beyond this are refused, bytes of JSON: as they travel to every driver.
pub const MOST: usize = 32 << 20;

/// What the works of a plan may still grow to.
#[derive(Debug)]
pub struct Room(Cell<usize>);

impl Default for Room {
    fn default() -> Self {
        Self(Cell::new(MOST))
    }
}

impl Room {
    /// Takes the room that a work needs; false if there is not enough, and then there is none for any other.
    pub fn take(&self, work: &Work) -> bool {
        let taken = weight(work, self.0.get());
        self.0.set(taken.map_or(0, |taken| self.0.get() - taken));
        taken.is_some()
    }

    /// Whether there is room for so many works like this one.
    pub fn has(&self, work: &Work, count: usize) -> bool {
        count == 0 || weight(work, self.0.get() / count).is_some()
    }
}

/// How long a work is as it travels; `None` if it is longer than `most`.
fn weight(work: &Work, most: usize) -> Option<usize> {
    let mut scale = Scale { left: most };
    serde_json::to_writer(&mut scale, work).ok()?;
    Some(most - scale.left)
}

/// Counts what is written, up to a limit.
struct Scale {
    left: usize,
}

impl Write for Scale {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
