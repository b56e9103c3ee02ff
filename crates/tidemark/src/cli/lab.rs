//! The command line of the lab.

use clap::{Args, Subcommand};
use std::path::PathBuf;
use tidemark_lab::{Layout, System};
use tidemark_measure::units::parse_bytes;

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Start a storage system, database servers, a query engine or Kubernetes
    Up(Box<LabUp>),
    /// Show what is running and how to reach it
    Status {
        #[command(flatten)]
        which: AnyLab,
        /// Print JSON, including credentials
        #[arg(long)]
        json: bool,
    },
    /// Print shell commands that export addresses and keys: `eval "$(tidemark lab env)"`
    Env {
        #[command(flatten)]
        which: WhichLab,
    },
    /// Cut the power of database servers that were started with --power-cut: they end at once, and what they had not synced is gone
    Cut {
        #[command(flatten)]
        which: WhichLab,
    },
    /// Stop the system and delete its data
    Down {
        #[command(flatten)]
        which: WhichLab,
        /// Keep the data for the next `up`
        #[arg(long)]
        keep: bool,
    },
    /// Bring images to Kubernetes' node from an archive: an OCI layout, or what `docker save` writes
    Image {
        /// The archive
        archive: PathBuf,
        /// The lab's directory [default: as for `up`]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Fetch the 99 queries of TPC-DS with Maven, for loads with `query_files`; their texts are the TPC's
    Queries {
        /// Where each gets a file [default: `lab-queries` beside the lab's directory]
        dir: Option<PathBuf>,
    },
    /// Serve the disk of a lab whose power can be cut
    #[command(hide = true)]
    Disk {
        /// The lab's directory
        dir: PathBuf,
    },
}

/// Which lab is meant.
#[derive(Args, Debug)]
pub(crate) struct WhichLab {
    /// The system: ceph, postgres, mariadb, trino or kubernetes
    #[arg(default_value = "ceph")]
    pub(crate) system: System,
    /// The lab's directory [default: TIDEMARK_LAB_DIR, or ~/.local/state/tidemark/lab (of root: /var/lib/tidemark/lab), with `-postgres`, `-mariadb`, `-trino` or `-kubernetes`]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Which lab is meant, or all.
#[derive(Args, Debug)]
pub(crate) struct AnyLab {
    /// The system: ceph, postgres, mariadb, trino or kubernetes [default: all that have a lab]
    pub(crate) system: Option<System>,
    /// The lab's directory [default: TIDEMARK_LAB_DIR, or ~/.local/state/tidemark/lab (of root: /var/lib/tidemark/lab), with `-postgres`, `-mariadb`, `-trino` or `-kubernetes`]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct LabUp {
    /// What to start: ceph (a monitor, a manager, three OSDs and RADOS gateways with an S3 and a Swift user), postgres, mariadb, trino (a query engine, with its tables in a bucket) or kubernetes (API server and etcd, for checking manifests; with --node, pods run)
    pub(crate) system: System,
    /// The lab's directory [default: TIDEMARK_LAB_DIR, or ~/.local/state/tidemark/lab (of root: /var/lib/tidemark/lab), with `-postgres`, `-mariadb`, `-trino` or `-kubernetes`]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Port of the first gateway or database server, of Trino's coordinator, or of Kubernetes' API server; the others have those after it [default: free ones]
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// ceph: how many gateways, which serve the same buckets [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) gateways: Option<usize>,
    /// postgres, mariadb: how many servers [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) instances: Option<usize>,
    /// postgres, mariadb: existing directory in which their data are to lie [default: the lab's directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) on: Option<PathBuf>,
    /// postgres, mariadb: a setting of the servers, such as shared_buffers=1GB; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// postgres, mariadb: put their data on a disk that loses what was not synced when `lab cut` cuts its power
    #[arg(long)]
    pub(crate) power_cut: bool,
    /// ceph: with a file system, mounted in the directory `mount` of the lab's
    #[arg(long)]
    pub(crate) filesystem: bool,
    /// ceph: copies of each object, 1 or 2 [default: 2]
    #[arg(long, value_name = "N")]
    pub(crate) copies: Option<usize>,
    /// Devices below the storage: plain (files), baseline (slow devices), reference-1 (metadata and WAL on fast ones) or
    /// reference-2 (and a cache in front of the data); all but plain require root [default: plain, or the existing layout]
    #[arg(long)]
    pub(crate) layout: Option<Layout>,
    /// Write IOPS of each slow device; its read IOPS are four times that [default: 150]
    #[arg(long, value_name = "WRITES")]
    pub(crate) slow_iops: Option<u32>,
    /// Read and write bandwidth of each slow device, per second [default: 40MB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) slow_bandwidth: Option<u64>,
    /// Size of each data OSD's metadata device, and of its WAL device, in memory [default: 512MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) metadata_size: Option<u64>,
    /// Size of each of the two cache OSDs, in memory [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) cache_size: Option<u64>,
    /// kubernetes: with a node, on which pods run with networks and volumes; requires root
    #[arg(long)]
    pub(crate) node: bool,
    /// kubernetes: with so many nodes, 1 to 8; those after the first have a network, files and processes of their own
    #[arg(long, value_name = "N", conflicts_with = "node", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) nodes: Option<u8>,
    /// kubernetes: with a node and a CSI driver, whose volumes (class `loop`) grow, have snapshots and are cloned
    #[arg(long, conflicts_with = "nodes")]
    pub(crate) csi: bool,
    #[command(flatten)]
    pub(crate) trino: LabTrino,
}

/// The query engine.
#[derive(Args, Debug)]
pub(crate) struct LabTrino {
    /// trino: workers besides the coordinator; without any, the coordinator works itself [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// trino: the most that the heap of each process may take [default: 2GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) heap: Option<u64>,
    /// trino: directory of a Java 24 or later [default: found by JAVA_HOME, PATH, or in /usr/lib/jvm]
    #[arg(long, value_name = "DIR")]
    pub(crate) jdk: Option<PathBuf>,
    /// trino: S3 server for its tables, with the keys of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY and the region of AWS_REGION
    /// [default: the gateway of the lab's ceph]
    #[arg(long, value_name = "URL")]
    pub(crate) s3: Option<String>,
    /// trino: bucket for its tables, made if it is missing [default: trino]
    #[arg(long, value_name = "NAME")]
    pub(crate) bucket: Option<String>,
}

/// A setting of a database server: `NAME=VALUE`.
fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write NAME=VALUE, as in shared_buffers=1GB".to_owned()),
    }
}
