//! The command line of controllers, drivers and their clients.

use clap::{Args, Subcommand, ValueEnum};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tidemark_measure::units::parse_duration_ns;
use tidemark_plan::yaml::values;

/// The port where nobody says another.
const PORT: u16 = 19088;

/// An address to listen on. What lacks a port is told how to write it.
fn listen(text: &str) -> Result<SocketAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    text.parse().map_err(|_| match (bare.parse::<IpAddr>(), text.parse::<u16>()) {
        (Ok(address), _) => format!("a port is missing: write {}", SocketAddr::new(address, PORT)),
        (_, Ok(port)) => {
            format!("an address is missing: write 127.0.0.1:{port}, or 0.0.0.0:{port} for all addresses")
        }
        _ => format!(
            "write an IP address and a port, such as 0.0.0.0:{PORT} for all addresses of this machine"
        ),
    })
}

/// A secret and the addresses to which it is bound.
fn binding(text: &str) -> Result<(String, Vec<String>), String> {
    let help = "write TIDEMARK_SECRET_KEY=http://10.0.0.1:8000, or the name of a file below --secrets instead of the variable's";
    let (name, addresses) = text.split_once('=').ok_or(help)?;
    let addresses: Result<Vec<String>, String> =
        addresses.split(',').map(|one| address(one.trim())).collect();
    match name.trim() {
        "" => Err(help.to_owned()),
        name => Ok((name.to_owned(), addresses?)),
    }
}

/// A period of time.
pub(super) fn period(text: &str) -> Result<Duration, String> {
    parse_duration_ns(text).map(Duration::from_nanos).map_err(|error| error.to_string())
}

fn address(text: &str) -> Result<String, String> {
    values::server(text).map_err(|problem| format!("{}: {}", problem.message, problem.help))
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Address to listen on; addresses other than loopback use TLS
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:19088", value_parser = listen)]
    pub(crate) listen: SocketAddr,
    /// Name of the controller [default: this host's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Do not start a driver on this host; use only drivers that join
    #[arg(long)]
    pub(crate) no_driver: bool,
    /// Name of the driver on this host
    #[arg(long, value_name = "NAME", default_value = "local", conflicts_with = "no_driver")]
    pub(crate) driver_name: String,
    /// Directory or device that documents may use on this host (volumes, embedded servers, files); repeatable
    #[arg(long, value_name = "PATH", conflicts_with = "no_driver")]
    pub(crate) allow_path: Vec<PathBuf>,
    /// Configuration of a Ceph cluster that documents may use on this host. It is code, because it names files to write and
    /// libraries to load: keep it outside of every --allow-path; repeatable
    #[arg(long, value_name = "FILE", conflicts_with = "no_driver")]
    pub(crate) allow_ceph_conf: Vec<PathBuf>,
    /// Load threads of the driver on this host [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Directory of secret files for `secret_key_file` and similar keys of documents
    #[arg(long, value_name = "DIR")]
    pub(crate) secrets: Option<PathBuf>,
    /// Addresses to which a `TIDEMARK_SECRET_` variable or a secret file may be sent, and no others:
    /// TIDEMARK_SECRET_KEY=http://10.0.0.1:8000,http://10.0.0.2:8000; repeatable
    #[arg(long, value_name = "NAME=ADDRESS,...", value_parser = binding)]
    pub(crate) bind_secret: Vec<(String, Vec<String>)>,
    /// Maximum number of waiting submissions
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) queue: usize,
    /// Directory of tokens that you have made, of 16 characters or more: files named `operator`, `viewer` and `driver` (for drivers of any
    /// name). They are read at the start and end with the controller, and no first token is printed
    #[arg(long, value_name = "DIR")]
    pub(crate) tokens: Option<PathBuf>,
    /// Use TLS on loopback, too, with tokens that `tidemark token` creates
    #[arg(long, conflicts_with = "insecure")]
    pub(crate) secure: bool,
    /// Let everyone on this machine in as an operator; drivers need a token all the same
    #[arg(long, conflicts_with_all = ["secure", "insecure", "tls_cert"])]
    pub(crate) open: bool,
    /// TLS certificate, PEM [default: generated at the first start]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Do without TLS and logins: everyone who reaches the address is an operator, and what browsers and scripts send travels
    /// unencrypted; drivers need a token all the same
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Another address of the console, such as a proxy's: https://bench.example.org; repeatable
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,
}

/// How to reach a controller.
#[derive(Args, Clone, Debug)]
pub(crate) struct Reach {
    /// Token; prefer the environment variable or a file to the command line [default: that of your own controller on this machine]
    #[arg(long, env = "TIDEMARK_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// File with the token
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,
    /// How to verify the controller's certificate: `system`, a PEM file, or the fingerprint that `tidemark serve` prints
    #[arg(long, value_name = "system|FILE|sha256:HEX", env = "TIDEMARK_TRUST", default_value = "system")]
    pub(crate) trust: String,
}

#[derive(Args, Debug)]
pub(crate) struct Driver {
    /// Address of the controller
    #[arg(long, value_name = "URL", env = "TIDEMARK_CONTROLLER")]
    pub(crate) join: String,
    /// Name of the driver, unique among the controller's drivers, and the one that its token is for [default: this host's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Name of this host in reports, where it calls itself otherwise, as in a container [default: this host's]
    #[arg(long, value_name = "NAME", env = "TIDEMARK_NODE")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Directory or device that documents may use on this host (volumes, embedded servers, files); repeatable
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_path: Vec<PathBuf>,
    /// Configuration of a Ceph cluster that documents may use on this host. It is code, because it names files to write and
    /// libraries to load: keep it outside of every --allow-path; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) allow_ceph_conf: Vec<PathBuf>,
    /// Load threads of a work [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// End when the controller has been away for this long [default: keep trying; a driver that found its token on this machine ends
    /// with the controller, with exit code 3]
    #[arg(long, value_name = "DURATION", value_parser = period)]
    pub(crate) leave_after: Option<Duration>,
    /// Stop when standard input closes: started by a controller
    #[arg(long, hide = true)]
    pub(crate) embedded: bool,
}

/// Which controller.
#[derive(Args, Clone, Debug)]
pub(crate) struct Remote {
    /// Address of the controller
    #[arg(long, value_name = "URL", env = "TIDEMARK_CONTROLLER", default_value = "http://127.0.0.1:19088")]
    pub(crate) controller: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Connect to an http:// address although no token proves who listens there: for a controller that lets everyone in. Whoever
    /// listens receives the documents that you submit
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Submit {
    /// The document: Tidemark YAML, COSBench XML or a fio job file; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Priority: higher ones start first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-100..=100))]
    pub(crate) priority: i32,
    /// Drivers to run on, separated by commas [default: the document's, or all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) drivers: Vec<String>,
    /// Number of drivers to run on, whichever are free
    #[arg(long, value_name = "N", conflicts_with = "drivers", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) driver_count: Option<u32>,
    /// Seed to use instead of the document's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Start the load without checking the target first
    #[arg(long)]
    pub(crate) skip_preflight: bool,
    /// Follow the submission to its end, and exit with its result
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Args, Debug)]
pub(crate) struct Status {
    /// A submission [default: drivers, running and waiting submissions]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The submission
    pub(crate) id: String,
    /// Stop immediately, without cleanup
    #[arg(long)]
    pub(crate) at_once: bool,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Args, Debug)]
pub(crate) struct Watch {
    /// The submission
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Create a token and print it; it cannot be shown again
    Add {
        /// Name of the token: its user; of a driver's, the driver's name, or the beginning of several followed by `*`
        name: String,
        /// Role of the token
        #[arg(long)]
        role: TokenRole,
    },
    /// List the tokens
    List,
    /// Revoke a token
    Revoke {
        /// Name of the token
        name: String,
    },
}

/// The role of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenRole {
    /// View
    Viewer,
    /// View, submit, cancel, re-order and delete
    Operator,
    /// Join as a driver
    Driver,
}
