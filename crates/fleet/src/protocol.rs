//! The messages between controller and driver. Both have the same version: the link refuses others.
//!
//! Times are nanoseconds on the driver's monotonic clock (since its process began); the controller, which has measured
//! how far that clock is ahead of its own, translates. Seconds of load do not travel as [`Up`]: they are binary, see
//! [`Second`].

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidemark_load::stop::StopRequest;
use tidemark_load::thread_pool::Ending;
use tidemark_measure::host::Host;
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Note, Proof};
use tidemark_plan::engine::Holding;
use tidemark_plan::plan::Plan;

/// The version of the protocol: drivers with another are refused.
pub const VERSION: u32 = 5;

/// Who joins: a driver's first message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// [`VERSION`].
    pub protocol: u32,
    /// Tidemark's version.
    pub tidemark: String,
    /// The driver's name: unique among the drivers of a controller.
    pub name: String,
    /// A random number of this driver process.
    pub instance: u64,
    /// What tells the machine's kernel from all others, whatever container a process is in; empty where that is not known.
    pub machine: String,
    /// Its machine.
    #[serde(flatten)]
    pub host: Host,
}

/// Which workers of a work a driver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which work of the stage.
    pub work: u32,
    /// Its first worker within the work.
    pub first: u32,
    /// How many, at least 1.
    pub count: u32,
}

/// A plan as it travels: serialized once, whatever the number of drivers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PackedPlan(Box<RawValue>);

impl PackedPlan {
    /// Packs a plan.
    ///
    /// # Errors
    /// When it cannot be serialized: one sentence.
    pub fn new(plan: &Plan) -> Result<Self, String> {
        let packed = serde_json::value::to_raw_value(plan).map(Self);
        packed.map_err(|error| format!("the plan could not be serialized: {error}"))
    }

    /// The name of the plan, which is not read as a whole; empty where it has none.
    pub fn name(&self) -> String {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        serde_json::from_str::<Named>(self.0.get()).map(|named| named.name).unwrap_or_default()
    }

    /// The plan.
    ///
    /// # Errors
    /// When it is none: one sentence.
    pub fn unpack(&self) -> Result<Plan, String> {
        serde_json::from_str(self.0.get()).map_err(|error| format!("the plan could not be read: {error}"))
    }
}

impl PartialEq for PackedPlan {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// A message from the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Down {
    /// Get everything ready for a run: answered by [`Up::Prepared`] or [`Up::Refused`].
    Prepare {
        /// A number of the controller's choice, never used twice.
        run: u64,
        /// The driver's name, after which a document may name what each driver has of its own.
        driver: String,
        /// The whole plan.
        plan: PackedPlan,
        /// Stage and work of whatever is on other drivers' machines: this driver neither prepares nor runs it.
        elsewhere: Vec<(u32, u32)>,
        /// The most files and sockets that this driver's part has open at once, as long as no other driver is lost.
        open_files: u64,
        /// Marks the data that this driver writes: a different number for every driver of the run.
        writer: u32,
        /// Whether to skip the check of the targets.
        skip_preflight: bool,
        /// The load ends when the controller cannot be reached for so long, nanoseconds.
        lost_after_ns: u64,
    },
    /// Open the sessions of a stage's works: answered by [`Up::Ready`].
    Open {
        /// Which run.
        run: u64,
        /// Which stage.
        stage: u32,
        /// This driver's part of it.
        parts: Vec<Part>,
    },
    /// Start the load of the open stage.
    Start {
        /// Which run.
        run: u64,
        /// Which stage.
        stage: u32,
        /// When.
        at_ns: u64,
    },
    /// An order for a load in progress. Later orders override earlier ones, but a stop cannot be revoked.
    Order {
        /// Which run.
        run: u64,
        /// Which stage.
        stage: u32,
        /// Which work; `None` for all.
        work: Option<u32>,
        /// The order.
        order: Order,
    },
    /// Whoever leads the run can be reached: sent again and again by a driver to the process that carries a run out for it, which
    /// ends its load when it hears nothing for longer than `lost_after_ns` of [`Down::Prepare`].
    Watched {
        /// Which run.
        run: u64,
    },
    /// Release a run: stop whatever still runs; answered by [`Up::Released`].
    Release {
        /// Which run.
        run: u64,
    },
}

/// An order for a load in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The load is steady: the window opens.
    Window {
        /// When.
        at_ns: u64,
    },
    /// End the load early.
    End(StopRequest),
}

/// A message from a driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Up {
    /// The run can begin.
    Prepared {
        /// Which.
        run: u64,
        /// One line per distinct target.
        targets: Vec<String>,
        /// What the plan uses there that other drivers must not use as well.
        holdings: Vec<Holding>,
    },
    /// The run cannot begin here, or go on: one clear sentence with the remedy, never a secret.
    Refused {
        /// Which.
        run: u64,
        /// Why.
        reason: String,
    },
    /// The sessions of the stage are open, or will not be.
    Ready {
        /// Which run.
        run: u64,
        /// Which stage.
        stage: u32,
        /// The outcome.
        opened: Opened,
        /// What the user should know.
        notes: Vec<Note>,
        /// Works among others that have been done already, and why.
        done: Vec<(u32, String)>,
    },
    /// A work has ended here.
    Ended {
        /// Which run.
        run: u64,
        /// Which stage.
        stage: u32,
        /// Which work.
        work: u32,
        /// Its ending, or why there is none.
        ending: Result<Box<Ending>, String>,
    },
    /// All works of the stage have ended here.
    StageEnded {
        /// Which run.
        run: u64,
        /// Which stage.
        stage: u32,
        /// The proof of its numbers, if it used block storage.
        proof: Option<Box<Proof>>,
    },
    /// The driver's user is ending it: it will not come back.
    Leaving,
    /// The run is released.
    Released {
        /// Which.
        run: u64,
        /// What was observed of this driver's node; times since the start of the run here, `origin_ns`.
        nodes: Vec<Node>,
        /// When the run began here.
        origin_ns: u64,
    },
}

/// The outcome of opening a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opened {
    /// It can start.
    Ready,
    /// There is nothing to do, and why.
    Nothing(String),
    /// It cannot start, and why.
    Failed(String),
}

/// One second of a work's load on a driver. It travels as a binary message: run, stage and work, little endian, then
/// the interval in the encoding of `tidemark_measure::wire`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Second {
    /// Which run.
    pub run: u64,
    /// Which stage.
    pub stage: u32,
    /// Which work.
    pub work: u32,
    /// The interval.
    pub interval: Vec<u8>,
}
