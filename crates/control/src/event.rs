//! Follows a run while it is in progress, and may stop it.

pub use tidemark_load::stop::{SharedStopRequest, StopRequest};
use tidemark_measure::record::{ShareSecond, Stage};
use tidemark_measure::tally::Interval;
pub use tidemark_observe::Glimpse;
use tidemark_plan::plan;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A target passed the check before the load; its description.
    Target(&'a str),
    /// Stage `index` begins.
    StageStarted {
        /// Which, from 0.
        index: usize,
        /// Its plan.
        stage: &'a plan::Stage,
    },
    /// A second of a work is complete.
    Second {
        /// Which stage.
        stage: usize,
        /// Which work of it.
        work: usize,
        /// The second, merged over all threads.
        interval: &'a Interval,
    },
    /// A second of a work that waits for drivers which are silent: what the others did. The whole second follows when they
    /// are back, or lost.
    SecondSoFar {
        /// Which stage.
        stage: usize,
        /// Which work of it.
        work: usize,
        /// What is known of the second.
        interval: &'a Interval,
        /// The drivers that are missing.
        missing: &'a [String],
    },
    /// What one driver did in a second of a work; the second itself follows.
    DriverSecond {
        /// Which stage.
        stage: usize,
        /// Which work of it.
        work: usize,
        /// The driver's name.
        driver: &'a str,
        /// What it did.
        summary: &'a ShareSecond,
    },
    /// What was seen last of the nodes that are observed; about once a second while a load is on.
    Nodes(&'a [Glimpse]),
    /// The stage waits before the next one begins (COSBench `closuredelay`).
    Pausing {
        /// How long, nanoseconds.
        pause_ns: u64,
    },
    /// Stage `index` has ended.
    StageEnded {
        /// Which, from 0.
        index: usize,
        /// What it left behind.
        stage: &'a Stage,
    },
    /// Something that the user should know and that does not stop the run.
    Trouble(&'a str),
    /// A driver of the run went away, came back or is lost; the words for it come as [`Event::Trouble`].
    Driver {
        /// The driver's name.
        driver: &'a str,
        /// What happened.
        news: DriverNews,
    },
}

/// What happened to a driver of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverNews {
    /// It cannot be reached, and may come back.
    Away,
    /// It is back, and nothing was lost.
    Back,
    /// It is given up: what it did since it was heard last is not in the results.
    Lost,
}

/// Follows a run.
pub trait EventSink {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);

    /// The user's stop request; polled several times a second.
    fn stop_request(&mut self) -> StopRequest;
}
