//! The commands on layouts of Kubernetes.

use super::Place;
use super::controller::period;
use super::kubernetes::cluster;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use tidemark_rook::Device;

#[derive(Debug, Subcommand)]
pub(crate) enum LayoutCommand {
    /// Show what a layout takes of its nodes, and what must be there before it is applied
    Check {
        /// The document; `-` reads standard input
        file: PathBuf,
    },
    /// Print the manifests of a layout, for `kubectl apply -f -`
    Render {
        /// The document; `-` reads standard input
        file: PathBuf,
    },
    /// Make the resources of a layout, or change them to what it says. What must be there before is checked first, and nothing is
    /// changed if anything is missing or refused
    Apply {
        #[command(flatten)]
        site: Site,
        /// Wait until all is ready, as `wait` does
        #[arg(long)]
        wait: bool,
        /// Give up waiting after this time
        #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = period, requires = "wait")]
        within: Duration,
    },
    /// Wait until all resources of a layout are ready, and print what changes. If they are not in time, print what explains it
    Wait {
        #[command(flatten)]
        site: Site,
        /// Give up after this time
        #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = period)]
        within: Duration,
    },
    /// Show what there is of a layout against what its document says. Exits with 0 if all is there, ready and as it says, else with 1
    Status {
        #[command(flatten)]
        site: Site,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a layout: its bucket claims with their buckets, its classes, pools and gateways with what is in them, its cluster.
    /// Nothing is removed while others claim from it. Devices are not wiped unless they are named
    Destroy {
        #[command(flatten)]
        site: Site,
        /// Have Rook wipe these devices, and its directory on the nodes. They must be exactly those of the layout's OSDs
        #[arg(long, value_name = "NODE:/dev/X", value_delimiter = ',')]
        wipe_devices: Vec<Device>,
        /// Give up after this time
        #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = period)]
        within: Duration,
    },
}

/// A layout, and the cluster that it is for.
#[derive(Args, Debug)]
pub(crate) struct Site {
    /// The document; `-` reads standard input
    pub(crate) file: PathBuf,
    /// The cluster, by a context of your kubeconfig [default: the current one]
    #[arg(long, value_name = "kubernetes:CONTEXT", value_parser = cluster)]
    pub(crate) on: Option<Place>,
}
