//! The cache of the layout `reference-2`: a Ceph cache tier on OSDs whose devices are in memory.
//!
//! Where the study had Open-CAS, a block cache below each OSD, this lab has a pool on fast OSDs in front of
//! the pool on slow ones: reads are answered and writes taken by it, and data reach the slow pool when they
//! are flushed. What is written is there twice, as behind it.

use crate::cluster::Cluster;
use crate::error::LabError;
use crate::layout::Media;

/// The part of the CRUSH map that the OSDs of the cache are in. Everybody else's rule takes from the root
/// `default`, so nothing but the cache comes to lie on them.
pub(super) const ROOT: &str = "fast";
/// Its only host; nothing in a CRUSH map may share a name.
pub(super) const HOST: &str = "memory";

/// The pools that have a cache in front of them. The gateway's other pools hold little but omap entries,
/// which are metadata and lie on the fast devices of `block.db`.
const CACHED: [&str; 2] = ["rbd", "default.rgw.buckets.data"];

/// The share of the cache's devices that each of those pools may fill, in percent: the rest is BlueStore's
/// own, and room for what comes in while the cache makes room.
const SHARE_PERCENT: u64 = 40;
/// The placement groups of each pool of the cache. Each group makes room for itself: few groups are filled
/// evenly by the 4 MiB objects of a volume, and many would throw out some of it while others have room.
const GROUPS: &str = "8";
/// The bytes that one object takes in the cache at least: 4 KiB of data and as much for what is known about
/// it.
const LEAST_OBJECT_BYTES: u64 = 8 << 10;

/// What each of the cached pools may keep in the cache, in bytes.
pub(super) fn bytes_for_each(media: &Media) -> u64 {
    // As many copies as OSDs: each OSD holds all of it.
    media.cache_bytes * SHARE_PERCENT / 100
}

/// Makes the part of the CRUSH map and the rule for it, before any OSD of the cache starts.
pub(super) fn prepare(cluster: &Cluster) -> Result<(), LabError> {
    cluster.ceph(&["osd", "crush", "add-bucket", ROOT, "root"])?;
    cluster.ceph(&["osd", "crush", "rule", "create-replicated", ROOT, ROOT, "osd"]).map(drop)
}

/// Puts the cache in front of the pools, which must be there. The cache's other settings are in ceph.conf.
pub(super) fn set_up(cluster: &Cluster, media: &Media) -> Result<(), LabError> {
    let bytes = bytes_for_each(media);
    let objects = bytes / LEAST_OBJECT_BYTES;
    for pool in CACHED {
        let cache = format!("{pool}.cache");
        cluster.ceph(&["osd", "pool", "create", &cache, GROUPS, GROUPS, "replicated", ROOT])?;
        cluster.ceph(&["osd", "tier", "add-cache", pool, &cache, &bytes.to_string()])?;
        cluster.ceph(&["osd", "pool", "set", &cache, "target_max_objects", &objects.to_string()])?;
        cluster.ceph(&["osd", "tier", "set-overlay", pool, &cache])?;
    }
    Ok(())
}
