//! The program that carries out what the native engine does not.

use crate::job::Volume;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_load::engine::Sessions;
use tidemark_measure::record::OsdUse;
use tidemark_plan::engine::Process;

/// Another way to put load on volumes: fio, which also reaches images of a Ceph cluster.
pub trait External: Send + Sync {
    /// Finds the program on this machine.
    ///
    /// # Errors
    /// A sentence that says why it cannot be used, and what to do.
    fn find(&self) -> Result<Program, String>;

    /// What is there by an image's name.
    ///
    /// # Errors
    /// A sentence that says why that cannot be told, and what to do.
    fn find_image(&self, image: &Volume) -> Result<Image, String>;

    /// Sees to it that an image is there with its size; one that it makes is marked as Tidemark's.
    ///
    /// # Errors
    /// A sentence that says why it is not, and what to do.
    fn ensure_image(&self, image: &Volume) -> Result<(), String>;

    /// Marks an image as written to by Tidemark up to now, and by nobody else.
    ///
    /// # Errors
    /// A sentence that says why it could not be marked, and what that means.
    fn mark_image(&self, image: &Volume) -> Result<(), String>;

    /// What the OSDs of the cluster of these images have counted by now.
    ///
    /// # Errors
    /// A sentence that says why they could not be asked.
    fn osd_counters(&self, images: &[Volume]) -> Result<OsdCounters, String>;

    /// Sessions that remove images, those that are not Tidemark's only if `allow` names them; space k is the k-th.
    fn removal(&self, images: &[Volume], allow: &[PathBuf]) -> Box<dyn Sessions>;
}

/// What is there by the name of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// Nothing.
    Absent,
    /// An image that nobody has written to, and that Tidemark did not make.
    Blank,
    /// An image that Tidemark made or wrote to, and nobody else since.
    Ours,
    /// An image that may hold data of somebody else's, and why that is to be thought.
    Foreign(String),
    /// An image that somebody has open, and who.
    InUse(String),
}

/// What the OSDs of a cluster have counted since each was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OsdCounters {
    /// Copies that the images' pool keeps of everything; 0 where it keeps none (erasure coding).
    pub copies: u32,
    /// OSD by OSD, by number.
    pub osds: BTreeMap<u32, OsdBytes>,
}

/// What one OSD has counted, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OsdBytes {
    /// Read from its device.
    pub from_device: u64,
    /// Read from its own cache.
    pub from_cache: u64,
    /// Given to it to write.
    pub written: u64,
}

impl OsdCounters {
    /// What was counted since `before`.
    ///
    /// # Errors
    /// A sentence, when there are other OSDs than before or one was started anew.
    pub fn since(&self, before: &Self) -> Result<OsdUse, String> {
        let mut used = OsdUse { osds: self.osds.len() as u32, copies: self.copies, ..OsdUse::default() };
        if !self.osds.keys().eq(before.osds.keys()) || self.copies != before.copies {
            return Err("the OSDs or the pool's copies changed during the load".into());
        }
        for ((number, after), before) in self.osds.iter().zip(before.osds.values()) {
            let more = |after: u64, before: u64| {
                after.checked_sub(before).ok_or_else(|| format!("osd.{number} was restarted during the load"))
            };
            used.device_read_bytes += more(after.from_device, before.from_device)?;
            used.cache_read_bytes += more(after.from_cache, before.from_cache)?;
            used.written_bytes += more(after.written, before.written)?;
        }
        Ok(used)
    }
}

/// A program that was found.
pub struct Program {
    /// What it is and where, for people.
    pub description: String,
    /// Makes of it what carries out one work on volumes, and writes to no devices but those with these numbers (`st_rdev`).
    pub process: Box<dyn FnOnce(Vec<u64>) -> Arc<dyn Process>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_osds_counted_meanwhile_is_added_up_unless_one_began_anew() {
        let counters = |of: &[(u32, u64)]| OsdCounters {
            copies: 2,
            osds: of
                .iter()
                .map(|(number, bytes)| {
                    let bytes = OsdBytes { from_device: *bytes, from_cache: bytes / 2, written: bytes * 2 };
                    (*number, bytes)
                })
                .collect(),
        };
        let before = counters(&[(0, 10), (3, 20)]);
        let used = counters(&[(0, 30), (3, 60)]).since(&before).unwrap();
        let expected =
            OsdUse { osds: 2, copies: 2, device_read_bytes: 60, cache_read_bytes: 30, written_bytes: 120 };
        assert_eq!(used, expected);
        assert!(counters(&[(0, 30), (3, 6)]).since(&before).unwrap_err().contains("osd.3 was restarted"));
        assert!(counters(&[(0, 30)]).since(&before).unwrap_err().contains("changed"));
    }
}
