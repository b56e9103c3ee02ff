//! Executes a plan: targets made ready, stages in order, works side by side, seconds merged, events out.
//!
//! [`execute::execute`] is the way through: it takes a [`Plan`](tidemark_plan::plan::Plan) and gives a
//! [`Run`](tidemark_measure::record::Run). [`evaluate::evaluate`] carries out an evaluation, run by run. Everything that happens meanwhile goes to an
//! [`EventSink`](event::EventSink); nothing here prints.

pub mod backend;
mod commands;
pub mod evaluate;
pub mod event;
pub mod execute;
pub mod listing;
pub mod local;
pub mod provenance;
mod run_writer;
pub mod runner;
mod stage;
mod trigger;
pub mod witness;
