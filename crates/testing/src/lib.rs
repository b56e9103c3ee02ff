//! What the tests of several crates share: what becomes of a test that does not find what it needs.
//!
//! On a developer's machine such a test says so and passes. Where `CI` is `true` it fails, so that a machine that lost its
//! loop devices or Ceph cannot pass for one on which everything was tested.

pub mod mariadb;
pub mod plain_mysql;
pub mod postgres;
pub mod runs;
mod template;

use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;

/// The daemons of a lab and their tools.
pub const CEPH: &[&str] = &["ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "ceph", "rados", "rbd"];

/// What database servers of the lab need.
pub const POSTGRES: &[&str] = &["psql", "pg_ctlcluster"];
/// See [`POSTGRES`].
pub const MARIADB: &[&str] = &["mariadb-install-db", "mariadb"];
/// What fetches Trino. It also needs a Java that the tests' set-up cannot install.
pub const TRINO: &[&str] = &["mvn", "tar"];
/// The store of Kubernetes' API server, which is built with a Go that the tests' set-up cannot install.
pub const KUBERNETES: &[&str] = &["etcd", "go"];
/// What runs pods on a node of Kubernetes.
pub const KUBERNETES_NODE: &[&str] = &["etcd", "go", "containerd", "runc"];
/// The daemons of a file system on a lab's cluster.
pub const CEPH_FILESYSTEM: &[&str] = &["ceph-mds", "ceph-fuse"];

/// Says that a test, or the rest of it, cannot be done here, and why: `no loop device can be made (root is needed)`.
///
/// # Panics
/// Where `CI` is `true`.
#[track_caller]
pub fn skip(reason: impl Display) {
    if let Some(failure) = verdict(&reason.to_string(), std::env::var("CI").ok().as_deref()) {
        panic!("{failure}");
    }
    // Not `eprintln`: what a test that passes prints is not shown.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
}

/// Whether all these programs can be found; says which cannot, as [`skip`] does.
///
/// # Panics
/// Where one cannot be found and `CI` is `true`.
#[track_caller]
pub fn has(programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().copied().filter(|program| found(program).is_none()).collect();
    if !missing.is_empty() {
        skip(format_args!("{} cannot be found; `make setup` installs it", missing.join(", ")));
    }
    missing.is_empty()
}

/// Where a program is.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|program| program.is_file())
}

/// Ends a test here that needs programs which cannot be found: `needs!(&["fio"])`. See [`has`].
#[macro_export]
macro_rules! needs {
    ($programs:expr) => {
        if !$crate::has($programs) {
            return;
        }
    };
}

/// Whether the tests run as root: servers that refuse to then run as a user of theirs.
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// What a test fails with that lacks something, given the value of `CI`.
fn verdict(reason: &str, ci: Option<&str>) -> Option<String> {
    (ci == Some("true")).then(|| format!("cannot be tested here, and CI=true: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_fails_in_continuous_integration_only() {
        assert_eq!(verdict("no disk", None), None);
        assert_eq!(verdict("no disk", Some("false")), None);
        assert!(verdict("no disk", Some("true")).is_some_and(|text| text.contains("no disk")));
        assert!(has(&["sh"]) && has(&[]));
    }
}
