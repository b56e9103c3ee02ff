//! The pure core of Tidemark: what can be computed without a clock, a socket or a file.
//!
//! | module | what it holds |
//! |---|---|
//! | [`units`] | bytes, durations, rates and counts: parsed, printed, never mixed up |
//! | [`json`] | JSON of others, weighed before it is read |
//! | [`line`] | texts of others within lines of our own |
//! | [`kind`] | what works and operations are |
//! | [`axis`] | what a sweep varies: names and values with units |
//! | [`rng`] | the seeded random stream that every choice comes from |
//! | [`pick`] | distributions and selectors over whole numbers, and how workers share them |
//! | [`rate`] | rates of operations over time |
//! | [`think`] | how long workers pause between operations |
//! | [`verification`] | whether content was compared with what had been written, and if not, why |
//! | [`counts`] | how often each class of something occurred |
//! | [`fault`] | the closed list of ways in which an operation can fail |
//! | [`histogram`] | HdrHistograms of nanoseconds: recorded, merged, stored |
//! | [`tally`] | one operation's numbers over any span of time, and one second of them |
//! | [`wire`] | one second of load as a few kilobytes, for the way from a driver to its controller |
//! | [`steady`] | steady state by the SNIA's rule |
//! | [`service_level`] | what latency a load may have to count |
//! | [`host`] | machines: what they are, and how busy they are |
//! | [`observation`] | what nodes did while a load was on |
//! | [`evaluation`] | the record of an evaluation: arms, loads, levels |
//! | [`in_effect`] | what a system says of its own settings, and how that has changed |
//! | [`tuning`] | settings, their values, and the record of a search for better ones |
//! | [`record`] | what a run leaves behind, for the store, the judge and the report |

pub mod axis;
pub mod counts;
pub mod evaluation;
pub mod fault;
pub mod histogram;
pub mod host;
pub mod in_effect;
pub mod json;
pub mod kind;
pub mod line;
pub mod observation;
pub mod pick;
pub mod rate;
pub mod record;
pub mod rng;
pub mod service_level;
pub mod steady;
pub mod tally;
pub mod think;
pub mod tuning;
pub mod units;
pub mod verification;
pub mod wire;
