//! The file system on a cluster: its pools, and whether its metadata server is active.

use serde::Deserialize;

use crate::cluster::{Cluster, parse};
use crate::error::LabError;

/// The name of the file system.
const NAME: &str = "lab";
/// Its pools with their placement groups: names and directories, and the content of files.
const METADATA: (&str, &str) = ("fs.metadata", "8");
const DATA: (&str, &str) = ("fs.data", "32");

/// The part of `ceph mds stat --format json` that the lab reads.
#[derive(Deserialize)]
struct MdsStat {
    fsmap: FsMap,
}

#[derive(Deserialize)]
struct FsMap {
    filesystems: Vec<FileSystem>,
}

#[derive(Deserialize)]
struct FileSystem {
    mdsmap: MdsMap,
}

#[derive(Deserialize)]
struct MdsMap {
    info: std::collections::BTreeMap<String, Mds>,
}

#[derive(Deserialize)]
struct Mds {
    state: String,
}

/// Creates the pools and the file system.
pub(super) fn create(cluster: &Cluster) -> Result<(), LabError> {
    for (pool, groups) in [METADATA, DATA] {
        cluster.ceph(&["osd", "pool", "create", pool, groups])?;
    }
    cluster.ceph(&["fs", "new", NAME, METADATA.0, DATA.0]).map(drop)
}

/// Whether a metadata server is active. A monitor that does not answer at once counts as no.
pub(super) fn is_active(cluster: &Cluster) -> bool {
    const COMMAND: [&str; 4] = ["mds", "stat", "--format", "json"];
    let answer = cluster.ceph(&COMMAND).and_then(|text| parse::<MdsStat>("ceph mds stat", &text));
    answer.is_ok_and(|stat| stat.is_active())
}

impl MdsStat {
    fn is_active(&self) -> bool {
        let servers = self.fsmap.filesystems.iter().flat_map(|system| system.mdsmap.info.values());
        servers.into_iter().any(|server| server.state == "up:active")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_active_server_counts() {
        // As Ceph 16.2 writes it, shortened.
        let stat = |state: &str| {
            let text = format!(
                r#"{{"fsmap": {{"epoch": 5, "standbys": [], "filesystems": [{{"mdsmap": {{"max_mds": 1,
                "info": {{"gid_4150": {{"gid": 4150, "name": "lab", "rank": 0, "state": "{state}"}}}}}}}}]}}}}"#
            );
            parse::<MdsStat>("ceph mds stat", &text).unwrap().is_active()
        };
        assert!(stat("up:active"));
        assert!(!stat("up:creating") && !stat("up:replay"));
        let none = parse::<MdsStat>("ceph mds stat", r#"{"fsmap": {"filesystems": []}}"#).unwrap();
        assert!(!none.is_active());
    }
}
