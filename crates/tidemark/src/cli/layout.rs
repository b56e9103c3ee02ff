//! The commands on layouts of Kubernetes.

use clap::Subcommand;
use std::path::PathBuf;

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
}
