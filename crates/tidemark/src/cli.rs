//! The command line's shape. Help texts live here, next to what they describe.

mod controller;
mod kubernetes;
mod lab;
mod layout;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use controller::{Cancel, Driver, Reach, Remote, Serve, Status, Submit, Token, TokenRole, Watch};
pub(crate) use kubernetes::{
    Advertised, Base, ImageOf, KubernetesCommand, ObserveNodes, On, Operator, Part, Place, ProbeDoing, RunOn,
    VolumeProbe,
};
pub(crate) use lab::{AnyLab, Lab, LabTrino, LabUp, WhichLab};
pub(crate) use layout::{LayoutCommand, Site};
use std::path::PathBuf;
use tidemark_judge::compare::margin;

const EXIT_CODES: &str = "\
Exit codes:
  0    done; the numbers are valid
  1    done, but a stage failed or there is a critical finding
  2    the command line or the document is wrong
  3    not started: the target, the lab or the result store is not ready
  4    done, but the run is INVALID: do not trust its numbers
  9    an output could not be written: the standard output, a report or an archive
  130  stopped by the user; what was measured is stored

Exit codes of `tidemark compare`:
  0    no significant difference (with --margin: equal within it, or not worse by more; with --gate: or better)
  4    a side is INVALID
  5    the second result is better than the first
  6    the second result is worse, in part or everywhere
  7    nothing to compare: too few repeats, or nothing in common
  8    inconclusive (with --margin): too few repeats to tell";

/// Find your storage's high-water mark.
///
/// Tidemark generates storage load, proves that the numbers are real, and writes a report.
#[derive(Debug, Parser)]
#[command(name = "tidemark", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Result store to use instead of the default one
    #[arg(long, global = true, value_name = "FILE", env = "TIDEMARK_STORE")]
    pub(crate) store: Option<PathBuf>,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
}

/// When to use features of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a document: a workload (Tidemark YAML, COSBench XML, fio job file) or an evaluation
    Run(Box<RunOn>),
    /// Search for better settings of an evaluation with `tune`, and prove them
    Tune(Box<Tune>),
    /// Show what a document will do and require, without running it
    Check(Check),
    /// Run an object load without a document
    Object(Box<Object>),
    /// Run a block load on files or devices without a document
    Block(Box<Block>),
    /// Write the report of a stored run or evaluation
    Report(Report),
    /// List stored evaluations and runs
    Runs(Runs),
    /// Compare two stored runs or evaluations: better, worse, equal within a margin, or which difference would not be seen
    Compare(Compare),
    /// Import results of other tools: COSBench, fio, warp, elbencho, sysbench, pgbench, HammerDB, tables
    Import(Import),
    /// Observe this node during a load from another node, and serve the samples
    Observe(Observe),
    /// Run a controller: a queue, drivers, an API and a web console
    Serve(Box<Serve>),
    /// Run a load driver for a controller
    Driver(Box<Driver>),
    /// Submit a document to a controller
    Submit(Box<Submit>),
    /// Show the state of a controller or of a submission
    Status(Status),
    /// Cancel a submission
    Cancel(Cancel),
    /// Follow a submission to its end
    Watch(Watch),
    /// Print an address that logs a browser in to a controller, once
    Login(Remote),
    /// Create, list and revoke tokens of the controller on this machine
    #[command(subcommand)]
    Token(Token),
    /// Print the JSON Schema of documents, for editors
    Schema,
    /// Start and remove a storage system on this machine, for trials
    #[command(subcommand)]
    Lab(Lab),
    /// Show, render, apply and destroy layouts of a Ceph cluster on Kubernetes, for Rook
    #[command(subcommand)]
    Layout(LayoutCommand),
    /// Make the image of pods on Kubernetes, install what stays there, and remove what runs have left (see `tidemark run --on kubernetes`)
    #[command(subcommand)]
    Kubernetes(KubernetesCommand),
    /// Carry out the Evaluations of a namespace of Kubernetes, as they are applied there
    Operator(Operator),
    /// Write to a volume or read what was written, in a pod of a load on volumes
    #[command(hide = true)]
    VolumeProbe(VolumeProbe),
    /// Carry out a run for the driver that has started this process
    #[command(hide = true)]
    RunPart,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages to a directory
    Man {
        /// The directory; created if missing
        directory: PathBuf,
    },
}

/// How to run and what to write; the same for documents and one-liners.
#[derive(Args, Clone, Debug)]
pub(crate) struct Running {
    /// Threads that generate load [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Print events and the result as JSON Lines on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not print progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Path of the HTML report [default: beside the result store]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Do not write a report
    #[arg(long, conflicts_with = "report")]
    pub(crate) no_report: bool,
    /// Do not store the run in the result store
    #[arg(long)]
    pub(crate) no_store: bool,
    /// Also write COSBench's archive files, with its exact headers
    #[arg(long, value_name = "DIR")]
    pub(crate) cosbench_archive: Option<PathBuf>,
    /// Start the load without checking the target first
    #[arg(long)]
    pub(crate) skip_preflight: bool,
    /// What may be destroyed even if it holds data that is not Tidemark's: a device, file or RBD image (`pool/image`),
    /// exactly as in the document; or a bucket to delete, as s3://NAME or swift://NAME (a final `*` stands for the rest of
    /// the name)
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_destroy: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The document; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Seed of random choices, instead of the document's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Directory of scripts that the document's triggers may run [default: none run]
    #[arg(long, value_name = "DIR")]
    pub(crate) trigger_dir: Option<PathBuf>,
    /// Alternate every load with another program that does the same, and report whether they agree: native block loads with
    /// fio, loads of pgbench's and sysbench's workloads on databases with pgbench and sysbench
    #[arg(long, value_name = "PAIRS", num_args = 0..=1, default_missing_value = "3",
        require_equals = true, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) cross_check: Option<u32>,
    /// Allow the shell commands of an evaluation (set_up, reset, tear_down, show, health) to run
    #[arg(long)]
    pub(crate) run_commands: bool,
    /// Measure an evaluation again, rather than continue an earlier start
    #[arg(long)]
    pub(crate) again: bool,
    /// Directory for the labs of an evaluation's arms [default: TIDEMARK_LAB_DIR, or ~/.local/state/tidemark/lab, plus `-arms`]
    #[arg(long, value_name = "DIR")]
    pub(crate) labs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) running: Running,
}

#[derive(Args, Debug)]
pub(crate) struct Tune {
    #[command(flatten)]
    pub(crate) run: Run,
    /// Show what would be tried first, without running anything
    #[arg(long, conflicts_with_all = ["apply", "undo"])]
    pub(crate) dry_run: bool,
    /// Put the better settings into effect, from the file that a search has written: on the lab that runs, and with the arm's
    /// set_up and reset commands
    #[arg(long, value_name = "SETTINGS", conflicts_with = "undo")]
    pub(crate) apply: Option<PathBuf>,
    /// Put the settings from before into effect again, and compare all that is in effect with what was before --apply
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) undo: Option<PathBuf>,
    /// Directory of the lab that gets the settings [default: that of `tidemark lab up`]
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// The document; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Print the forecast as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// How much repeats of an evaluation vary (their standard deviation), to tell which differences would be found [default: as
    /// earlier runs of the same cells did]
    #[arg(long, value_name = "SHARE", value_parser = margin, allow_hyphen_values = true)]
    pub(crate) noise: Option<f64>,
}

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// A run such as `12`, an evaluation such as `e3`, or `last`
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Format of the report
    #[arg(long, short, default_value = "html")]
    pub(crate) format: Format,
    /// File or directory to write [default: HTML, SVG and PNG: named after the run; others: standard output]
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One self-contained page
    Html,
    /// Markdown
    Md,
    /// Every figure as an SVG file, in a directory
    Svg,
    /// Every figure as a PNG file, in a directory
    Png,
    /// One row per operation (evaluations: per cell), in base units
    Csv,
    /// One row per operation and second, in base units
    SeriesCsv,
    /// Everything, for programs
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    /// The baseline: a run (`12`, `last`), several repeats (`12,14,16`), an evaluation (`e3`) or one of its arms (`e3/disk`, `last/disk`)
    pub(crate) baseline: String,
    /// The result to compare with the baseline
    pub(crate) other: String,
    /// Also exit 0 when better, so CI fails only on regressions
    #[arg(long)]
    pub(crate) gate: bool,
    /// Share within which results count as equal, such as `5%`: exit 0 when equal or not worse by more, 6 when worse by more,
    /// 8 when the repeats are too few to tell
    #[arg(long, value_name = "SHARE", value_parser = margin, allow_hyphen_values = true)]
    pub(crate) margin: Option<f64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Import {
    /// COSBench archive directory, fio JSON, warp or elbencho result, output of sysbench, pgbench or HammerDB, or CSV table with one row per level
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Format of the result [default: detected]
    #[arg(long, short)]
    pub(crate) format: Option<ImportFormat>,
    /// Name of the result [default: the file's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Service level for the rows of a table, such as `p95 <= 200ms + size / 1MBps`
    #[arg(long, value_name = "CONDITIONS")]
    pub(crate) service_level: Option<String>,
    /// Bytes per operation, for a table without sizes, such as 128KB
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Results that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// COSBench's archive directory, or a CSV of it
    Cosbench,
    /// fio's JSON, with or without latency bins
    Fio,
    /// warp's analysis
    Warp,
    /// elbencho's CSV or JSON
    Elbencho,
    /// sysbench's output
    Sysbench,
    /// pgbench's output, or its log of transactions
    Pgbench,
    /// HammerDB's test results or times of procedures
    Hammerdb,
    /// A table with a row per level
    Table,
}

#[derive(Args, Debug)]
pub(crate) struct Observe {
    /// Address to listen on; serves /metrics (OpenMetrics) and /samples (for Tidemark), with TLS unless it is loopback
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9750")]
    pub(crate) listen: std::net::SocketAddr,
    /// Token that clients must send, at least 16 characters; required for addresses other than loopback
    #[arg(long, env = "TIDEMARK_OBSERVE_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// TLS certificate, PEM [default: generated at the first start]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Do without TLS: samples and the token travel unencrypted
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) insecure: bool,
    /// Process to observe, such as ceph-osd; repeatable
    #[arg(long = "process", value_name = "NAME")]
    pub(crate) processes: Vec<String>,
    /// Directory with admin sockets of Ceph daemons, such as /var/run/ceph; repeatable
    #[arg(long = "ceph-sockets", value_name = "DIR")]
    pub(crate) ceph_sockets: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Runs {
    /// Also list the single runs of evaluations
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// When the operations of an open loop are due.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrivals {
    /// At equal distances
    Constant,
    /// At random, as from many independent users
    Poisson,
}

impl Arrivals {
    /// The word in documents.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Arrivals::Constant => "constant",
            Arrivals::Poisson => "poisson",
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Object {
    /// The operations
    pub(crate) verb: ObjectVerb,
    /// `http://host:port`, repeatable; `embedded` for the server inside Tidemark
    #[arg(long, required = true, value_name = "URL")]
    pub(crate) endpoint: Vec<String>,
    /// Access key
    #[arg(long, env = "AWS_ACCESS_KEY_ID", default_value = "", hide_env_values = true)]
    pub(crate) access_key: String,
    /// Secret key; prefer the environment variable to the command line
    #[arg(
        long,
        env = "AWS_SECRET_ACCESS_KEY",
        default_value = "",
        hide_env_values = true,
        hide_default_value = true
    )]
    pub(crate) secret_key: String,
    /// Session token
    #[arg(long, env = "AWS_SESSION_TOKEN", hide_env_values = true)]
    pub(crate) session_token: Option<String>,
    /// Region in signatures
    #[arg(long, env = "AWS_REGION", default_value = "us-east-1")]
    pub(crate) region: String,
    /// Address buckets by host name rather than by path
    #[arg(long)]
    pub(crate) virtual_host: bool,
    /// Accept any TLS certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Size of the objects: `4KiB`, `u(1,64)KB`, `lognormal(64,1.5,1,10000)KB`
    #[arg(long, default_value = "4KiB")]
    pub(crate) size: String,
    /// Objects per container
    #[arg(long, default_value_t = 1000)]
    pub(crate) objects: u64,
    /// Containers (buckets)
    #[arg(long, default_value_t = 1)]
    pub(crate) containers: u64,
    /// Prefix of the containers' names
    #[arg(long, default_value = "tidemark-")]
    pub(crate) prefix: String,
    /// Logical clients
    #[arg(long, short, default_value_t = 32)]
    pub(crate) workers: u32,
    /// Operations per second in an open loop, such as `2000/s` [default: closed loop]
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// When the operations of an open loop are due: evenly, or at random as from many independent users
    #[arg(long, requires = "rate", value_name = "HOW")]
    pub(crate) arrivals: Option<Arrivals>,
    /// Length of the measured window
    #[arg(long = "for", value_name = "TIME", default_value = "30s")]
    pub(crate) duration: String,
    /// Load before the measured window
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) warm_up: String,
    /// End the window early, when its last five rounds of this length are steady by the SNIA's rule
    #[arg(long, value_name = "TIME")]
    pub(crate) until_steady: Option<String>,
    /// Share of reads in `mixed`, in percent
    #[arg(long, default_value_t = 70.0, value_name = "PERCENT")]
    pub(crate) reads: f64,
    /// Verify the content of every read
    #[arg(long)]
    pub(crate) verify: bool,
    /// Keep containers and objects at the end
    #[arg(long)]
    pub(crate) keep: bool,
    /// Seed of random choices
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) running: Running,
}

/// The operations of a one-liner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectVerb {
    /// Read prepared objects
    Get,
    /// Write objects
    Put,
    /// Read headers
    Head,
    /// Delete prepared objects and write them again, in equal shares
    Delete,
    /// List containers
    List,
    /// Read and write
    Mixed,
}

#[derive(Args, Debug)]
pub(crate) struct Block {
    /// read, write, randread, randwrite, rw, randrw, trim, randtrim; oltp, olap, video, vdi, iot; qct. Separate several by commas
    pub(crate) pattern: String,
    /// Files (created if missing) or devices, one per client
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Size of each file or device [default: all of devices and of files that exist, else 1GiB]
    #[arg(long)]
    pub(crate) size: Option<String>,
    /// Block size, such as 4KiB; separate several by commas [default: 4KiB, or the profile's]
    #[arg(long, short, value_name = "SIZE")]
    pub(crate) block_size: Option<String>,
    /// Operations in flight per client; separate several by commas
    #[arg(long, short, default_value = "32")]
    pub(crate) depth: String,
    /// Number of clients; separate several by commas [default: one per path]
    #[arg(long, short)]
    pub(crate) clients: Option<String>,
    /// Operations to submit and complete together; fio's default is 1 [default: whatever is ready]
    #[arg(long)]
    pub(crate) batch: Option<String>,
    /// Share of reads in rw, randrw and profiles, such as 70%
    #[arg(long)]
    pub(crate) reads: Option<String>,
    /// Share of operations at random offsets in profiles
    #[arg(long)]
    pub(crate) random: Option<String>,
    /// Operations per second in an open loop, such as `2000/s` [default: closed loop]
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// When the operations of an open loop are due: evenly, or at random as from many independent users
    #[arg(long, requires = "rate", value_name = "HOW")]
    pub(crate) arrivals: Option<Arrivals>,
    /// Fsync after this many writes
    #[arg(long, value_name = "N")]
    pub(crate) fsync: Option<String>,
    /// Length of the measured window
    #[arg(long = "for", value_name = "TIME", default_value = "30s")]
    pub(crate) duration: String,
    /// Load before the measured window
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) warm_up: String,
    /// Repeat rounds of this length until five are steady by the SNIA's rule, then measure
    #[arg(long, value_name = "TIME")]
    pub(crate) steady: Option<String>,
    /// End the window early, when its last five rounds of this length are steady by the SNIA's rule
    #[arg(long, value_name = "TIME")]
    pub(crate) until_steady: Option<String>,
    /// How many times to measure everything
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) repeats: u32,
    /// Use the page cache instead of direct I/O
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Keep the page cache, so that reads may come from it
    #[arg(long)]
    pub(crate) warm_cache: bool,
    /// Poll for completions; the device must support it
    #[arg(long)]
    pub(crate) polled: bool,
    /// Verify the content of every read
    #[arg(long)]
    pub(crate) verify: bool,
    /// Issue the operations with fio
    #[arg(long)]
    pub(crate) fio: bool,
    /// Alternate the load with fio, and report whether they agree
    #[arg(long, value_name = "PAIRS", num_args = 0..=1, default_missing_value = "3",
        require_equals = true, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) cross_check: Option<u32>,
    /// Do not fill the volumes first
    #[arg(long)]
    pub(crate) no_prepare: bool,
    /// Remove the files at the end
    #[arg(long)]
    pub(crate) cleanup: bool,
    /// Print the resulting document instead of running it
    #[arg(long)]
    pub(crate) print: bool,
    /// Seed of random choices
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) running: Running,
}
