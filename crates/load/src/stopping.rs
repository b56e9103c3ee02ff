//! When a work is over: after a time, a number of operations, a number of bytes, whichever comes first.

/// When a work is over. Times are nanoseconds; `None` means no such limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// Workers start one after the other over this time (an open loop's rate rises over it); not measured.
    pub ramp_up_ns: u64,
    /// Full load before the window, not measured (COSBench's `rampup`).
    pub warm_up_ns: u64,
    /// Length of the measured window.
    pub window_ns: Option<u64>,
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
