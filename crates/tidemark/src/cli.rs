//! The command line's shape. Help texts live here, next to what they describe.

mod controller;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use controller::{Cancel, Driver, Reach, Remote, Serve, Status, Submit, Token, TokenRole, Watch};
use std::path::PathBuf;
use tidemark_lab::Layout;
use tidemark_measure::units::parse_bytes;

const EXIT_CODES: &str = "\
Exit codes:
  0    done; the numbers stand
  1    done, but a stage failed or something critical was found
  2    the command line or the document is wrong
  3    could not begin: the target, the lab or the result store is not as needed
  4    done, but the run is INVALID: its numbers are not what they seem
  130  ended by the user; what was measured is kept

`tidemark compare` ends with
  0    no significant difference (with --gate also: better)
  4    a side is INVALID
  5    the second is better than the first
  6    the second is worse, somewhere or everywhere
  7    nothing could be compared: too few repeats, or nothing in common";

/// Find your storage's high-water mark.
///
/// Tidemark puts load on storage, proves that the numbers are real, and hands over a report.
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

/// When to do something that suits a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a document: a workload (Tidemark YAML, COSBench XML, fio) or an evaluation of several arms
    Run(Run),
    /// Say what a document will do and need, without doing it
    Check(Check),
    /// Put object load on a target without writing a document
    Object(Box<Object>),
    /// Put block load on files or devices without writing a document
    Block(Box<Block>),
    /// Write the report of a stored run or evaluation
    Report(Report),
    /// List stored evaluations and runs
    Runs(Runs),
    /// Compare two stored runs or evaluations: better, worse, or no significant difference
    Compare(Compare),
    /// Take results of other tools into the store: COSBench, fio, warp, elbencho, tables
    Import(Import),
    /// Observe this node while load is put on it from another, and serve what is seen
    Observe(Observe),
    /// Serve as a controller: a queue, drivers, an API and a web console
    Serve(Box<Serve>),
    /// Put load on as a controller says
    Driver(Box<Driver>),
    /// Give a document to a controller
    Submit(Box<Submit>),
    /// Show what a controller does, or how a submission stands
    Status(Status),
    /// Cancel a submission
    Cancel(Cancel),
    /// Follow a submission to its end
    Watch(Watch),
    /// Make, list and revoke the tokens of a controller on this machine
    #[command(subcommand)]
    Token(Token),
    /// Print the JSON Schema of documents, for editors
    Schema,
    /// Bring real storage up and down on this machine, to try things on
    #[command(subcommand)]
    Lab(Lab),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages to a directory
    Man {
        /// The directory; it is made if need be
        directory: PathBuf,
    },
}

/// How a run goes on and what it leaves behind; the same for documents and one-liners.
#[derive(Args, Clone, Debug)]
pub(crate) struct Running {
    /// Threads that generate load [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Print events and the result as lines of JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Write the HTML report here [default: beside the result store]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write no report
    #[arg(long, conflicts_with = "report")]
    pub(crate) no_report: bool,
    /// Do not keep the run in the result store
    #[arg(long)]
    pub(crate) no_store: bool,
    /// Also write the archive files that COSBench would have written, with its exact headers
    #[arg(long, value_name = "DIR")]
    pub(crate) cosbench_archive: Option<PathBuf>,
    /// Begin the load without asking the target first
    #[arg(long)]
    pub(crate) skip_preflight: bool,
    /// Device or file, exactly as the document names it, whose content may be destroyed although it is not Tidemark's
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_destroy: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The document; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Where random choices come from, instead of what the document says
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Directory that the document's triggers may run scripts from [default: they do not run]
    #[arg(long, value_name = "DIR")]
    pub(crate) trigger_dir: Option<PathBuf>,
    /// Run every native block load of the document beside fio, alternately, and say whether they agree
    #[arg(long, value_name = "PAIRS", num_args = 0..=1, default_missing_value = "3",
        require_equals = true, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) cross_check: Option<u32>,
    /// Let the shell commands of an evaluation (set_up, reset, tear_down) run
    #[arg(long)]
    pub(crate) run_commands: bool,
    /// Measure an evaluation anew, rather than go on where an earlier start ended
    #[arg(long)]
    pub(crate) again: bool,
    /// Directory below which the labs of an evaluation's arms live [default: TIDEMARK_LAB_DIR, or ~/.local/state/tidemark/lab, and `-arms`]
    #[arg(long, value_name = "DIR")]
    pub(crate) labs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) running: Running,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// The document; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Print the forecast as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// A run's number, an evaluation's such as `e3`, or `last`
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// What to write
    #[arg(long, short, default_value = "html")]
    pub(crate) format: Format,
    /// Where to [default: for HTML, SVG and PNG named after the run; standard output otherwise]
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

/// What a report is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One self-contained page
    Html,
    /// Markdown
    Md,
    /// Every figure as an SVG file, into a directory
    Svg,
    /// Every figure as a PNG file, into a directory
    Png,
    /// One row per operation, base units; of an evaluation, one per cell
    Csv,
    /// One row per operation and second, base units
    SeriesCsv,
    /// Everything, for machines
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    /// The baseline: a run (`12`, `last`), several that are repeats of each other (`12,14,16`), an evaluation (`e3`) or one arm of it (`e3/disk`)
    pub(crate) baseline: String,
    /// What is compared with it
    pub(crate) other: String,
    /// End with 0 when it is better, too: a gate that only what is worse does not pass
    #[arg(long)]
    pub(crate) gate: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Import {
    /// An archive directory of COSBench, a JSON of fio, results of warp or elbencho, or a CSV table with a row per level
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What it is [default: found out by looking]
    #[arg(long, short)]
    pub(crate) format: Option<ImportFormat>,
    /// Its name [default: that of the file]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// What the latencies of a table must stay within to count, such as `p95 <= 200ms + size / 1MBps`
    #[arg(long, value_name = "CONDITIONS")]
    pub(crate) service_level: Option<String>,
    /// Bytes of an operation, where a table does not say, such as 128KB
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Print as JSON
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
    /// A table with a row per level
    Table,
}

#[derive(Args, Debug)]
pub(crate) struct Observe {
    /// Where to serve: /metrics in OpenMetrics, /samples for a Tidemark that puts the load on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9750")]
    pub(crate) listen: std::net::SocketAddr,
    /// Token that clients must show; needed for every address beyond this host
    #[arg(long, env = "TIDEMARK_OBSERVE_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Name of a process to observe, such as ceph-osd; several times for several
    #[arg(long = "process", value_name = "NAME")]
    pub(crate) processes: Vec<String>,
    /// Directory with admin sockets of Ceph daemons, such as /var/run/ceph
    #[arg(long = "ceph-sockets", value_name = "DIR")]
    pub(crate) ceph_sockets: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Runs {
    /// Also list the runs of evaluations, one by one
    #[arg(long)]
    pub(crate) all: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Bring a system up
    Up(LabUp),
    /// Say what runs, and how to reach it
    Status {
        /// The lab's directory [default: TIDEMARK_LAB_DIR, or ~/.local/state/tidemark/lab]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Print as JSON, credentials included
        #[arg(long)]
        json: bool,
    },
    /// Print shell commands that export its addresses and keys: `eval "$(tidemark lab env)"`
    Env {
        /// The lab's directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Take it down
    Down {
        /// The lab's directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Keep its data, so that `up` finds it again
        #[arg(long)]
        keep: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct LabUp {
    /// Which system
    pub(crate) system: System,
    /// The lab's directory [default: TIDEMARK_LAB_DIR, or ~/.local/state/tidemark/lab]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Port of the gateway [default: a free one]
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// What the storage lies on: plain (files), baseline (slow devices), reference-1 (metadata and WAL on fast ones) or
    /// reference-2 (and a cache in front of the data); all but plain need root [default: plain, or as it is]
    #[arg(long)]
    pub(crate) layout: Option<Layout>,
    /// Writes that each slow device does in a second; it does four times as many reads [default: 150]
    #[arg(long, value_name = "WRITES")]
    pub(crate) slow_iops: Option<u32>,
    /// Bytes that each slow device reads, and writes, in a second [default: 40MB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) slow_bandwidth: Option<u64>,
    /// Size of each data OSD's metadata device, and of its WAL device, in memory [default: 512MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) metadata_size: Option<u64>,
    /// Size of each of the two cache OSDs, in memory [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) cache_size: Option<u64>,
}

/// What the lab can bring up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// Ceph: a monitor, a manager, three OSDs and a RADOS gateway with an S3 and a Swift user
    Ceph,
}

#[derive(Args, Debug)]
pub(crate) struct Object {
    /// What to do
    pub(crate) verb: ObjectVerb,
    /// `http://host:port`, several times for several; `embedded` for the server inside Tidemark
    #[arg(long, required = true, value_name = "URL")]
    pub(crate) endpoint: Vec<String>,
    /// Access key
    #[arg(long, env = "AWS_ACCESS_KEY_ID", default_value = "", hide_env_values = true)]
    pub(crate) access_key: String,
    /// Secret key; better given by the environment than on the command line
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
    /// Region that signatures name
    #[arg(long, env = "AWS_REGION", default_value = "us-east-1")]
    pub(crate) region: String,
    /// Address buckets by host name rather than by path
    #[arg(long)]
    pub(crate) virtual_host: bool,
    /// Accept any TLS certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Size of an object: `4KiB`, `u(1,64)KB`, `lognormal(64,1.5,1,10000)KB`
    #[arg(long, default_value = "4KiB")]
    pub(crate) size: String,
    /// Objects in each container
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
    /// Offer this many operations a second (an open loop), e.g. `2000/s` [default: closed loop]
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// How long to measure
    #[arg(long = "for", value_name = "TIME", default_value = "30s")]
    pub(crate) duration: String,
    /// Load before the measured window
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) warm_up: String,
    /// Share of reads in `mixed`, in percent
    #[arg(long, default_value_t = 70.0, value_name = "PERCENT")]
    pub(crate) reads: f64,
    /// Verify the content of every read
    #[arg(long)]
    pub(crate) verify: bool,
    /// Leave containers and objects where they are
    #[arg(long)]
    pub(crate) keep: bool,
    /// Where random choices come from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) running: Running,
}

/// What the one-liner does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectVerb {
    /// Read objects prepared for it
    Get,
    /// Write objects
    Put,
    /// Read headers
    Head,
    /// Delete objects prepared for it, and write them again, in equal shares
    Delete,
    /// List containers
    List,
    /// Read some and write others
    Mixed,
}

#[derive(Args, Debug)]
pub(crate) struct Block {
    /// read, write, randread, randwrite, rw, randrw, trim, randtrim; oltp, olap, video, vdi, iot; qct. With commas: each of them
    pub(crate) pattern: String,
    /// Files (made if need be) or devices; each client has one of its own
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Size of each [default: 1GiB of files, all of devices]
    #[arg(long)]
    pub(crate) size: Option<String>,
    /// Block size, such as 4KiB; with commas: each of them [default: 4KiB, or the profile's]
    #[arg(long, short, value_name = "SIZE")]
    pub(crate) block_size: Option<String>,
    /// Operations of a client in flight at once; with commas: each of them
    #[arg(long, short, default_value = "32")]
    pub(crate) depth: String,
    /// Clients; with commas: each of them [default: one for each path]
    #[arg(long, short)]
    pub(crate) clients: Option<String>,
    /// Operations submitted and completed together; fio's default is 1 [default: whatever is ready]
    #[arg(long)]
    pub(crate) batch: Option<String>,
    /// Share of reads in rw, randrw and profiles, such as 70%
    #[arg(long)]
    pub(crate) reads: Option<String>,
    /// Share of operations at random offsets in profiles
    #[arg(long)]
    pub(crate) random: Option<String>,
    /// Offer this many operations a second (an open loop), e.g. `2000/s` [default: closed loop]
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// An fsync after every so many writes
    #[arg(long, value_name = "N")]
    pub(crate) fsync: Option<String>,
    /// How long to measure
    #[arg(long = "for", value_name = "TIME", default_value = "30s")]
    pub(crate) duration: String,
    /// Load before the measured window
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) warm_up: String,
    /// Go on until five rounds of this length are steady by the SNIA's rule, then measure
    #[arg(long, value_name = "TIME")]
    pub(crate) steady: Option<String>,
    /// Do everything so many times
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) repeats: u32,
    /// Go through the page cache rather than around it
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Leave the page cache as it is, and let reads come from it
    #[arg(long)]
    pub(crate) warm_cache: bool,
    /// Poll for completions; the device must offer it
    #[arg(long)]
    pub(crate) polled: bool,
    /// Check every read against what was written
    #[arg(long)]
    pub(crate) verify: bool,
    /// Let fio issue the operations
    #[arg(long)]
    pub(crate) fio: bool,
    /// Run beside fio, alternately, and say whether the two agree
    #[arg(long, value_name = "PAIRS", num_args = 0..=1, default_missing_value = "3",
        require_equals = true, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) cross_check: Option<u32>,
    /// Do not fill the volumes first
    #[arg(long)]
    pub(crate) no_prepare: bool,
    /// Remove the files at the end
    #[arg(long)]
    pub(crate) cleanup: bool,
    /// Print the document that this makes, and run nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Where random choices come from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) running: Running,
}
