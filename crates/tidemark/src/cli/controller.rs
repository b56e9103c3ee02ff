//! The command line of controllers, drivers, and those who talk to them.

use clap::{Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Address to listen on. Off loopback, TLS and tokens are on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:19088")]
    pub(crate) listen: SocketAddr,
    /// The controller's name [default: this host's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Start no driver here: load comes only from drivers that join
    #[arg(long)]
    pub(crate) no_driver: bool,
    /// Name of the driver that is started here
    #[arg(long, value_name = "NAME", default_value = "local", conflicts_with = "no_driver")]
    pub(crate) driver_name: String,
    /// Directory or device that documents may use on this machine: volumes, embedded servers, files; several times for several
    #[arg(long, value_name = "PATH", conflicts_with = "no_driver")]
    pub(crate) allow_path: Vec<PathBuf>,
    /// Generator threads of the driver that is started here [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Directory of files with secrets that documents may refer to with `secret_key_file` and the like
    #[arg(long, value_name = "DIR")]
    pub(crate) secrets: Option<PathBuf>,
    /// Submissions that may wait
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) queue: usize,
    /// TLS and tokens on loopback too
    #[arg(long, conflicts_with = "insecure")]
    pub(crate) secure: bool,
    /// Certificate for TLS, PEM [default: one that is made at the first start]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Neither TLS nor tokens, whoever may reach the address: everybody is an operator
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Other address under which browsers reach the console, of a proxy in front of it: https://bench.example.org
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,
}

/// How a controller is reached.
#[derive(Args, Clone, Debug)]
pub(crate) struct Reach {
    /// Token; better in the environment or a file than on a command line
    #[arg(long, env = "TIDEMARK_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// File with the token
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,
    /// Whom to believe that it is the controller: `system`, a PEM file, or the fingerprint that `tidemark serve` prints
    #[arg(long, value_name = "system|FILE|sha256:HEX", env = "TIDEMARK_TRUST", default_value = "system")]
    pub(crate) trust: String,
}

#[derive(Args, Debug)]
pub(crate) struct Driver {
    /// Address of the controller
    #[arg(long, value_name = "URL", env = "TIDEMARK_CONTROLLER")]
    pub(crate) join: String,
    /// The driver's name, unique among those of the controller [default: this host's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Directory or device that documents may use on this machine: volumes, embedded servers, files; several times for several
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_path: Vec<PathBuf>,
    /// Generator threads of a work [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// End when standard input is closed: started by a controller
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
    /// Print JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Submit {
    /// The document: Tidemark YAML, COSBench XML or a fio job file; `-` for standard input
    pub(crate) file: PathBuf,
    /// Higher ones begin first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-100..=100))]
    pub(crate) priority: i32,
    /// Drivers to run on, by name, separated by commas [default: as the document says, or all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) drivers: Vec<String>,
    /// So many drivers, whichever are free
    #[arg(long, value_name = "N", conflicts_with = "drivers", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) driver_count: Option<u32>,
    /// Seed to use instead of the document's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Begin the load without asking the target first
    #[arg(long)]
    pub(crate) skip_preflight: bool,
    /// Follow it to its end, and end with its result
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Args, Debug)]
pub(crate) struct Status {
    /// A submission; none: drivers, what goes on, and what waits
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The submission
    pub(crate) id: String,
    /// Stop at once and clean nothing up
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
    /// Make a token and print it; it cannot be shown again
    Add {
        /// Whose it is, or what for
        name: String,
        /// What it allows
        #[arg(long)]
        role: TokenRole,
    },
    /// List the tokens' names
    List,
    /// Make a token void
    Revoke {
        /// Its name
        name: String,
    },
}

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenRole {
    /// To look
    Viewer,
    /// To look, submit, cancel, re-order and delete
    Operator,
    /// To join as a driver
    Driver,
}
