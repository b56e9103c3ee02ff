//! What the parts of a lab are, in words for a report: nothing emulated passes for the real thing.

use std::fs;
use std::path::Path;

use tidemark_measure::units::{binary_bytes, bytes, count};

use crate::config::CACHE_BYTES;
use crate::layout::{Layout, Limits, Media};
use crate::record::Shape;
use crate::tier;

/// Block caches of Linux, with the names of their kernel modules.
const BLOCK_CACHES: [(&str, &str); 3] =
    [("dm-cache", "dm-cache"), ("bcache", "bcache"), ("Open-CAS", "cas_cache")];

/// The parts of a lab and what each of them is.
pub(super) fn labels(shape: &Shape) -> Vec<(String, String)> {
    let copies = shape.copies();
    let mut labels = vec![("layout", shape.layout().to_string())];
    match &shape.media {
        None => labels.extend([
            (
                "data",
                format!("{} OSDs on files of {}, not limited", shape.osds, binary_bytes(shape.osd_bytes)),
            ),
            ("metadata and WAL", "in the same files as the data".to_owned()),
            ("cache", "none".to_owned()),
        ]),
        Some(media) => labels.extend([
            ("data", data(shape, media.limits)),
            ("metadata and WAL", metadata(media)),
            ("cache", cache(media, Path::new("/"))),
            ("memory", memory()),
        ]),
    }
    let places = if copies == 1 { "" } else { ", on different OSDs of one machine" };
    labels.push(("copies", format!("{copies} of each object{places}")));
    let gateways = match shape.gateway_ports.len() {
        1 => "1".to_owned(),
        several => format!("{several}, of one zone, on one machine"),
    };
    labels.push(("gateways", gateways));
    if shape.filesystem {
        labels.push(("file system", "CephFS, mounted by ceph-fuse".to_owned()));
    }
    labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn data(shape: &Shape, limits: Limits) -> String {
    let (reads, writes) = (count(limits.read_iops().into()), count(limits.iops.into()));
    let bandwidth = bytes(limits.bandwidth);
    format!(
        "{} OSDs, each on a loop device limited to {reads} reads and {writes} writes per second and to \
         {bandwidth}/s in each direction; a flush counts as a write (emulates a slow SSD)",
        shape.osds
    )
}

fn metadata(media: &Media) -> String {
    if !media.layout.has_fast_metadata() {
        return "on the data devices".into();
    }
    let size = binary_bytes(media.metadata_bytes);
    format!(
        "block.db and block.wal of each data OSD, {size} each, on loop devices in memory, not limited \
         (emulates a fast device)"
    )
}

fn cache(media: &Media, root: &Path) -> String {
    if media.layout != Layout::Reference2 {
        return "none".into();
    }
    let (osds, size) = (media.cache_osds(), binary_bytes(media.cache_bytes));
    format!(
        "emulated: a Ceph cache tier (writeback) on {osds} OSDs in memory of {size} each stands for \
         Open-CAS; up to {} of each cached pool; {}",
        binary_bytes(tier::bytes_for_each(media)),
        found(root)
    )
}

/// Which block caches this machine has; the lab uses none of them.
fn found(root: &Path) -> String {
    let known: Vec<_> = BLOCK_CACHES
        .into_iter()
        .filter(|(_, module)| has_module(root, module))
        .map(|(name, _)| name)
        .collect();
    match &known[..] {
        [] => "this kernel has no dm-cache, bcache or Open-CAS".into(),
        known => format!("this kernel has {}, which the lab does not use", known.join(", ")),
    }
}

/// Whether the running kernel has a module: in use, built in, or ready to be loaded.
fn has_module(root: &Path, module: &str) -> bool {
    let release = fs::read_to_string(root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
    let modules = root.join("lib/modules").join(release.trim());
    let file = format!("/{module}.ko");
    let is_listed = |list| fs::read_to_string(modules.join(list)).is_ok_and(|text| text.contains(&file));
    root.join("sys/module").join(module.replace('-', "_")).exists()
        || ["modules.builtin", "modules.dep"].into_iter().any(is_listed)
}

fn memory() -> String {
    format!(
        "{} of BlueStore's cache for each OSD, none of it for data; RocksDB reads its device directly; \
         no cache in librbd: the same in baseline, reference-1 and reference-2, so that memory does not \
         hide the devices",
        binary_bytes(CACHE_BYTES)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::media;
    use crate::record::tests::shape;

    fn label(layout: Layout, name: &str) -> String {
        let media = (layout != Layout::Plain).then(|| media(layout));
        let labels = labels(&Shape { osds: 2, media, ..shape() });
        labels.into_iter().find(|(found, _)| found == name).unwrap().1
    }

    #[test]
    fn each_layout_says_what_it_is() {
        assert_eq!(label(Layout::Plain, "data"), "2 OSDs on files of 10.0 GiB, not limited");
        for layout in [Layout::Baseline, Layout::Reference1, Layout::Reference2] {
            assert_eq!(label(layout, "layout"), layout.name());
            let data = label(layout, "data");
            assert!(
                data.starts_with("2 OSDs, each on a loop device limited to 600 reads and 150 writes"),
                "{data}"
            );
            assert!(data.contains("40.0 MB/s") && data.contains("emulates"), "{data}");
        }
        assert_eq!(label(Layout::Baseline, "metadata and WAL"), "on the data devices");
        assert!(label(Layout::Reference1, "metadata and WAL").contains("emulates a fast device"));
        assert_eq!(
            (label(Layout::Reference1, "cache"), label(Layout::Plain, "gateways")),
            ("none".into(), "1".into())
        );
        assert!(label(Layout::Reference2, "cache").starts_with("emulated: a Ceph cache tier"));
    }

    #[test]
    fn block_caches_of_the_kernel_are_named_wherever_they_are() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.1.0\n");
        assert_eq!(found(root.path()), "this kernel has no dm-cache, bcache or Open-CAS");
        write(
            "lib/modules/6.1.0/modules.dep",
            "kernel/drivers/md/dm-cache.ko.xz: kernel/drivers/md/dm-mod.ko.xz",
        );
        write("sys/module/cas_cache/version", "22");
        assert_eq!(found(root.path()), "this kernel has dm-cache, Open-CAS, which the lab does not use");
    }
}
