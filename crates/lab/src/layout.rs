//! The layouts of a lab: which parts of the storage lie on slow devices and which on fast ones.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the storage of a lab lies on.
///
/// All but [`Layout::Plain`] are arms of one comparison, that of baseline, metadata on a fast device, and a
/// cache on a fast device: same daemons, same data devices, same settings; only the fast devices differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Layout {
    /// Files of the lab's directory, as fast as they are. It needs no root.
    #[default]
    #[serde(rename = "plain")]
    Plain,
    /// Everything of BlueStore (data, RocksDB's metadata, write-ahead log) on slow devices.
    #[serde(rename = "baseline")]
    Baseline,
    /// Data on slow devices; metadata and write-ahead log on fast ones.
    #[serde(rename = "reference-1")]
    Reference1,
    /// As [`Layout::Reference1`], and a cache on fast devices in front of the data.
    #[serde(rename = "reference-2")]
    Reference2,
}

impl Layout {
    /// Every layout, in the order of what they add.
    pub const ALL: [Layout; 4] = [Layout::Plain, Layout::Baseline, Layout::Reference1, Layout::Reference2];

    /// Its name: `plain`, `baseline`, `reference-1` or `reference-2`.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Plain => "plain",
            Layout::Baseline => "baseline",
            Layout::Reference1 => "reference-1",
            Layout::Reference2 => "reference-2",
        }
    }

    /// Whether metadata and write-ahead log have fast devices of their own.
    pub(super) fn has_fast_metadata(self) -> bool {
        matches!(self, Layout::Reference1 | Layout::Reference2)
    }

    /// Whether there is a cache in front of the data.
    pub(super) fn has_cache(self) -> bool {
        self == Layout::Reference2
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A name that no layout has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a layout; choose plain, baseline, reference-1 or reference-2")]
pub struct UnknownLayout {
    name: String,
}

impl FromStr for Layout {
    type Err = UnknownLayout;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Layout::ALL.into_iter().find(|layout| layout.name() == text);
        known.ok_or_else(|| UnknownLayout { name: text.to_owned() })
    }
}

/// The devices of a lab whose layout is not plain. The limits may change from one start to the next, the rest
/// is fixed when the lab is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Media {
    /// Never [`Layout::Plain`].
    pub(super) layout: Layout,
    /// What one slow device does at most.
    pub(super) limits: Limits,
    /// The size of each data OSD's `block.db`, and also of its `block.wal`, in bytes.
    pub(super) metadata_bytes: u64,
    /// The size of each cache OSD's device, in bytes.
    pub(super) cache_bytes: u64,
}

/// What one slow device does at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Limits {
    /// Writes in a second; a flush counts as one.
    pub(super) iops: u32,
    /// Bytes that are read in a second and, apart from them, bytes that are written.
    pub(super) bandwidth: u64,
}

impl Limits {
    /// How many reads an SSD does while it does one write, when it is written to for long.
    const READS_PER_WRITE: u32 = 4;

    /// Reads in a second.
    pub(super) fn read_iops(&self) -> u32 {
        self.iops.saturating_mul(Self::READS_PER_WRITE)
    }
}

impl Media {
    /// How many OSDs the cache consists of: two, because it keeps two copies like the data behind it.
    pub(super) fn cache_osds(&self) -> usize {
        if self.layout.has_cache() { 2 } else { 0 }
    }

    /// What the fast devices of the lab take of memory at most, in bytes.
    pub(super) fn fast_bytes(&self, data_osds: usize) -> u64 {
        let metadata = if self.layout.has_fast_metadata() { 2 * self.metadata_bytes } else { 0 };
        metadata * data_osds as u64 + self.cache_bytes * self.cache_osds() as u64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn media(layout: Layout) -> Media {
        let limits = Limits { iops: 150, bandwidth: 40_000_000 };
        Media { layout, limits, metadata_bytes: 512 << 20, cache_bytes: 1 << 30 }
    }

    #[test]
    fn a_layout_is_read_and_recorded_by_its_name() {
        for layout in Layout::ALL {
            assert_eq!(layout.to_string().parse(), Ok(layout));
            assert_eq!(serde_json::to_value(layout).unwrap(), layout.name());
        }
        let error = "reference".parse::<Layout>().unwrap_err().to_string();
        assert!(error.starts_with("'reference' is not a layout; choose plain, "), "{error}");
    }

    #[test]
    fn memory_is_taken_for_what_is_fast() {
        assert_eq!(media(Layout::Baseline).fast_bytes(3), 0);
        assert_eq!(media(Layout::Reference1).fast_bytes(3), 3 << 30);
        assert_eq!(media(Layout::Reference2).fast_bytes(2), 4 << 30);
    }
}
