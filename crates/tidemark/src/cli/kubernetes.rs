//! The command line of drivers on Kubernetes.

use super::Run;
use super::controller::period;
use clap::{Args, Subcommand, ValueEnum};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tidemark_kubernetes::{IMAGE, Quantity, class, image, namespace, processors, size};

/// `tidemark run`: what is run, and where.
#[derive(Args, Debug)]
pub(crate) struct RunOn {
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) on: On,
}

/// Where the load comes from, if not from this process.
#[derive(Args, Debug)]
#[command(next_help_heading = "On Kubernetes")]
pub(crate) struct On {
    /// Put the load on from pods: this process is their controller, makes them, and removes them at the end. The context is one of
    /// your kubeconfig [default: load comes from this process; context: the current one]
    #[arg(long, value_name = "kubernetes[:CONTEXT]", value_parser = cluster, conflicts_with_all = ["cross_check", "threads", "allow_destroy", "trigger_dir"])]
    pub(crate) on: Option<Place>,
    /// Number of driver pods [default: `drivers` of the document, or 1]
    #[arg(long, value_name = "N", requires = "on", value_parser = clap::value_parser!(u32).range(1..=360))]
    pub(crate) drivers: Option<u32>,
    /// Namespace of the pods [default: that of the document, or of the context]
    #[arg(long, value_name = "NAME", requires = "on", value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// Image of the drivers, see `tidemark kubernetes image` [default: that of the document, or tidemark:VERSION]
    #[arg(long, value_name = "NAME", requires = "on", value_parser = image)]
    pub(crate) image: Option<String>,
    /// Processors that each driver requests: 2, 500m [default: those of the document, or 1]
    #[arg(long, value_name = "QUANTITY", requires = "on", value_parser = processors)]
    pub(crate) cpu: Option<Quantity>,
    /// Memory of each driver: 2Gi [default: that of the document, or 1Gi]
    #[arg(long, value_name = "QUANTITY", requires = "on", value_parser = size)]
    pub(crate) memory: Option<Quantity>,
    /// Address of this machine that pods reach, and a port [default: the address from which this machine reaches the API server, and
    /// any free port]
    #[arg(long, value_name = "ADDRESS[:PORT]", requires = "on", value_parser = reached)]
    pub(crate) advertise: Option<Advertised>,
    /// Give up when not all drivers have joined within this time
    #[arg(long, value_name = "DURATION", requires = "on", default_value = "5m", value_parser = period)]
    pub(crate) wait: Duration,
    /// Print the manifests and do nothing else
    #[arg(long, requires = "on")]
    pub(crate) dry_run: bool,
}

/// A directory of other machines.
fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_plain =
        path.is_absolute() && !path.components().any(|part| part == std::path::Component::ParentDir);
    if is_plain { Ok(path) } else { Err("write an absolute path without `..`, such as /var/run/ceph".into()) }
}

/// A cluster, by a context of the kubeconfig; `None`: the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) context: Option<String>,
}

pub(super) fn cluster(text: &str) -> Result<Place, String> {
    match text.split_once(':') {
        None if text == "kubernetes" => Ok(Place { context: None }),
        Some(("kubernetes", context)) if !context.is_empty() => {
            Ok(Place { context: Some(context.to_owned()) })
        }
        _ => Err("write kubernetes, or kubernetes:CONTEXT with a context of your kubeconfig".to_owned()),
    }
}

/// Where pods reach this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advertised {
    /// A name or an IP address without brackets.
    pub(crate) host: String,
    /// The port; 0: any.
    pub(crate) port: u16,
}

impl Advertised {
    /// The address, if it is one and not a name.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

fn advertised(text: &str) -> Result<Advertised, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Advertised { host: address.ip().to_string(), port: address.port() });
    }
    if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok(Advertised { host: ip.to_string(), port: 0 });
    }
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_name = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '.');
    match port.parse() {
        Ok(port) if !host.is_empty() && host.chars().all(is_name) => {
            Ok(Advertised { host: host.to_owned(), port })
        }
        _ => Err("write an address of this machine, such as 10.0.0.5 or 10.0.0.5:19089".to_owned()),
    }
}

/// Where pods are told to connect to.
fn reached(text: &str) -> Result<Advertised, String> {
    let advertised = advertised(text)?;
    match advertised.ip() {
        Some(ip) if ip.is_unspecified() => {
            Err(format!("pods cannot connect to {ip}: name the address of this machine that they reach"))
        }
        _ => Ok(advertised),
    }
}

/// `tidemark operator`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Operator {
    /// Directory for the result stores and reports of Evaluations
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Namespace whose Evaluations are carried out [default: the context's, or the pod's]
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// Context of the kubeconfig [default: the current one, or the account of the pod]
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// Image of drivers, where neither their Evaluation nor its document names one
    #[arg(long, value_name = "NAME", default_value = IMAGE, value_parser = image)]
    pub(crate) image: String,
    /// Address of this process that driver pods reach, and a port [default: the address from which it reaches the API server, and any
    /// free port]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = reached)]
    pub(crate) advertise: Option<Advertised>,
    /// Give an Evaluation up when not all of its drivers have joined within this time
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = period)]
    pub(crate) wait: Duration,
}

/// What an image is of.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ImageOf {
    /// This program
    Driver,
    /// The PostgreSQL of this machine
    Postgres,
    /// Trino with the Java of this machine; fetched with Maven if `tidemark lab up trino` has not done so
    Trino,
}

impl ImageOf {
    /// The usual name of the image.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Driver => IMAGE,
            Self::Postgres => concat!("tidemark-postgres:", env!("CARGO_PKG_VERSION")),
            Self::Trino => concat!("tidemark-trino:", env!("CARGO_PKG_VERSION")),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum KubernetesCommand {
    /// Write an image for pods: an archive that containerd, Podman and Docker read, made without any of them. The same programs give
    /// the same bytes
    Image {
        /// What it is of: this program for drivers, this machine's PostgreSQL for database servers, or Trino
        #[arg(value_enum, default_value = "driver")]
        of: ImageOf,
        /// The archive
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
        /// Name of the image [default: tidemark:VERSION, tidemark-postgres:VERSION or tidemark-trino:VERSION]
        #[arg(long, value_parser = image)]
        name: Option<String>,
    },
    /// Print what `tidemark operator` needs in a cluster: the resource Evaluation, rights, a Deployment and a volume for results. For
    /// `kubectl apply -f -`
    Manifests {
        /// Namespace, which must exist
        #[arg(long, default_value = "default", value_parser = namespace)]
        namespace: String,
        /// Image of the operator and of its drivers, see `tidemark kubernetes image`
        #[arg(long, value_name = "NAME", default_value = IMAGE, value_parser = image)]
        image: String,
        /// Storage class of the volume [default: the cluster's]
        #[arg(long, value_name = "CLASS", value_parser = class)]
        storage_class: Option<String>,
    },
    /// Print what observes every node of a cluster: a DaemonSet of `tidemark observe`, and a Secret with its token and certificate, made
    /// anew each time. For `kubectl apply -f -`
    Observers {
        /// Namespace, which must exist and admit privileged pods
        #[arg(long, default_value = "default", value_parser = namespace)]
        namespace: String,
        /// Image of this program, see `tidemark kubernetes image`
        #[arg(long, value_name = "NAME", default_value = IMAGE, value_parser = image)]
        image: String,
        #[command(flatten)]
        nodes: ObserveNodes,
        /// Token that clients must send, at least 16 characters; `tidemark run` takes it from the same variable
        #[arg(long, env = "TIDEMARK_OBSERVE_TOKEN", hide_env_values = true)]
        token: String,
    },
    /// Write what a team needs in a cluster as a Kustomize base: a controller (`tidemark serve`) with its store on a volume, drivers that
    /// have joined it, observers of all nodes, and the operator. For `kubectl apply -k`
    Base(Box<Base>),
    /// Remove what runs have left behind whose process was killed
    Clean {
        /// Runs to remove, whether or not they still go on [default: those whose drivers have ended]
        runs: Vec<String>,
        /// Remove all runs of the namespace, whether or not they still go on
        #[arg(long, conflicts_with = "runs")]
        all: bool,
        /// Context of the kubeconfig [default: the current one]
        #[arg(long)]
        context: Option<String>,
        /// Namespace [default: the context's]
        #[arg(long, value_parser = namespace)]
        namespace: Option<String>,
    },
}

/// What observers look at, on every node.
#[derive(Args, Debug)]
pub(crate) struct ObserveNodes {
    /// Port of the observers on every node
    #[arg(long, default_value_t = 9750, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// Process to observe, such as ceph-osd or postgres, in pods and outside; repeatable
    #[arg(long = "process", value_name = "NAME")]
    pub(crate) processes: Vec<String>,
    /// Directory of the nodes with admin sockets of Ceph daemons; repeatable
    #[arg(long = "ceph-sockets", value_name = "DIR", value_parser = absolute)]
    pub(crate) ceph_sockets: Vec<PathBuf>,
}

/// What a team has in its cluster.
#[derive(Args, Debug)]
pub(crate) struct Base {
    /// The directory; created if missing. Tokens and certificates in its access.yaml are kept
    pub(crate) directory: PathBuf,
    /// Parts to write, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',', hide_default_value = true,
        default_values_t = [Part::Controller, Part::Drivers, Part::Observers, Part::Operator])]
    pub(crate) parts: Vec<Part>,
    /// Namespace, which must exist; with observers it must admit privileged pods
    #[arg(long, default_value = "default", value_parser = namespace)]
    pub(crate) namespace: String,
    /// Image of this program, see `tidemark kubernetes image`
    #[arg(long, value_name = "NAME", default_value = IMAGE, value_parser = image)]
    pub(crate) image: String,
    /// Storage class of all volumes [default: the cluster's]
    #[arg(long, value_name = "CLASS", value_parser = class)]
    pub(crate) storage_class: Option<String>,
    /// Number of drivers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=360))]
    pub(crate) drivers: u32,
    /// Processors that each driver requests: 2, 500m
    #[arg(long, value_name = "QUANTITY", default_value = "1", value_parser = processors)]
    pub(crate) cpu: Quantity,
    /// Memory of each driver
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi", value_parser = size)]
    pub(crate) memory: Quantity,
    /// Size of a volume of each driver, which documents use below /data [default: none]
    #[arg(long, value_name = "QUANTITY", value_parser = size)]
    pub(crate) driver_volume: Option<Quantity>,
    #[command(flatten)]
    pub(crate) nodes: ObserveNodes,
}

/// A part of what a team has in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// `tidemark serve`
    Controller,
    /// `tidemark driver`
    Drivers,
    /// `tidemark observe`
    Observers,
    /// `tidemark operator`
    Operator,
}

/// What the pods of a load on volumes run.
#[derive(Args, Debug)]
pub(crate) struct VolumeProbe {
    /// What to do
    pub(crate) doing: ProbeDoing,
    /// The volume's directory
    #[arg(long)]
    pub(crate) directory: PathBuf,
    /// How many bytes
    #[arg(long)]
    pub(crate) bytes: u64,
    /// What they follow from
    #[arg(long)]
    pub(crate) seed: u64,
}

/// What is done with a volume's content.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProbeDoing {
    /// It is written, synced and read back.
    Write,
    /// It is read.
    Read,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_a_user_writes() {
        let read = |text: &str| advertised(text).map(|read| (read.host, read.port));
        for (text, host, port) in [
            ("10.0.0.5", "10.0.0.5", 0),
            ("10.0.0.5:19089", "10.0.0.5", 19089),
            ("[fd00::5]:19089", "fd00::5", 19089),
            ("fd00::5", "fd00::5", 0),
            ("bench.example.org:19089", "bench.example.org", 19089),
        ] {
            assert_eq!(read(text), Ok((host.to_owned(), port)), "{text}");
        }
        for text in ["", ":1", "host:port", "https://host", "a b"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cluster_is_the_current_one_or_that_of_a_context() {
        assert_eq!(cluster("kubernetes"), Ok(Place { context: None }));
        let context = "arn:aws:eks:1:cluster/x";
        assert_eq!(
            cluster(&format!("kubernetes:{context}")),
            Ok(Place { context: Some(context.to_owned()) })
        );
        assert!(["", "kubernetes:", "k8s", "context"].into_iter().all(|text| cluster(text).is_err()));
    }
}
