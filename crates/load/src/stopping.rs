//! When a work is over: after a time, a number of operations, a number of bytes, whichever comes first.

use serde::{Deserialize, Serialize};

/// When a work is over. Times are nanoseconds; `None` means no such limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Workers start one after the other over this time (an open loop's rate rises over it); not measured.
    pub ramp_up_ns: u64,
    /// Full load before the window, not measured (COSBench's `rampup`).
    pub warm_up_ns: u64,
    /// After the warm-up: full load until throughput is steady, then the window. `None`: the window follows at once.
    pub steady: Option<Steady>,
    /// Length of the measured window.
    pub window_ns: Option<u64>,
    /// The window ends early, and with it the load, when its last five rounds of this length, whole seconds, are steady.
    pub until_steady_ns: Option<u64>,
    /// Full load after the window, not measured (COSBench's `rampdown`).
    pub ramp_down_ns: u64,
    /// Measured operations over all workers: exact.
    pub operations: Option<u64>,
    /// Bytes over all workers: the work ends with the operation that reaches them.
    pub bytes: Option<u64>,
    /// How long operations in flight may take after the end before they are abandoned.
    pub drain_ns: u64,
    /// The work is given up, and has failed, when no operation succeeded for this long.
    pub give_up_ns: Option<u64>,
}

/// How long a load runs before it is measured: until the SNIA's steady state over five rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steady {
    /// Length of a round, whole seconds, nanoseconds.
    pub round_ns: u64,
    /// Rounds after which the window begins anyway; at least 5.
    pub most_rounds: u32,
}

/// The phases of a work on its own clock, nanoseconds since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// The window begins: operations due from here on are measured; `u64::MAX` until the load is steady, where the
    /// stop rule waits for that.
    pub window_start: u64,
    /// The window ends; `u64::MAX` when a count or a volume ends it.
    pub window_end: u64,
    /// No operation is due from here on; `u64::MAX` likewise.
    pub load_end: u64,
}

impl Stop {
    /// The phases that this stop rule fixes in advance.
    pub fn phases(&self) -> Phases {
        if self.steady.is_some() {
            return Phases { window_start: u64::MAX, window_end: u64::MAX, load_end: u64::MAX };
        }
        self.phases_from(self.warm_ns())
    }

    /// When the load is at its full and warm, nanoseconds since the work's start.
    pub fn warm_ns(&self) -> u64 {
        self.ramp_up_ns.saturating_add(self.warm_up_ns)
    }

    /// The phases with a window that begins at `window_start`.
    pub fn phases_from(&self, window_start: u64) -> Phases {
        let window_end = self.window_ns.map_or(u64::MAX, |window| window_start.saturating_add(window));
        Phases { window_start, window_end, load_end: window_end.saturating_add(self.ramp_down_ns) }
    }
}
