//! What makes a cell what it is, in a few digits: when they differ, it is measured again.

use super::Evaluation;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use tidemark_measure::evaluation::Level;

/// Bytes of the digest that are kept: no two cells of all evaluations that are ever run will have the same.
const KEPT: usize = 16;

impl Evaluation {
    /// Of all that makes a cell what it is, a repeat's number included: hexadecimal digits. Descriptions, comments, the
    /// spacing and order of keys, secrets, service levels and what is observed are not part of it.
    pub fn fingerprint(&self, arm: usize, load: usize, level: &Level, repeat: u32) -> String {
        let mut digest = Sha256::new();
        // With its length before it, no part can be mistaken for another.
        let mut add = |part: &str| {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        };
        add("tidemark cell 1");
        add(self.documents.arm_definition(arm));
        add(self.documents.load_definition(load));
        // Without `drivers`, fingerprints are the same as before drivers existed.
        let drivers = self.documents.drivers_definition();
        if !drivers.is_empty() {
            add(&drivers);
        }
        // As the document writes it, which is what fingerprints had before levels were numbers.
        for axis in level {
            add(&axis.name);
            add(&self.documents.level_text(load, axis));
        }
        add(&format!("repeat {repeat} seed {}", self.seed_of(repeat)));
        let kept = digest.finalize().into_iter().take(KEPT);
        kept.fold(String::with_capacity(2 * KEPT), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
