//! Executes a plan: targets made ready, stages in order, works side by side, seconds merged, events out.
//!
//! [`execute::execute`] is the way through: it takes a [`Plan`](tidemark_plan::plan::Plan) and gives a
//! [`Run`](tidemark_measure::record::Run). [`evaluate::evaluate`] carries out an evaluation, run by run. Everything that happens meanwhile is told to an
//! [`Audience`](audience::Audience); nothing here prints.

pub mod audience;
mod counters;
pub mod evaluate;
pub mod execute;
pub mod field;
pub mod here;
mod images;
mod keep;
mod method;
pub mod player;
pub mod provenance;
mod stage;
mod targets;
mod trigger;
