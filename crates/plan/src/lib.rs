//! Documents to a validated plan.
//!
//! [`read`](document::read) takes a document's text, detects its format by its content, and gives a [`Plan`](plan::Plan) or
//! [`Diagnostic`](tidemark_keys::diagnostic::Diagnostic)s that point at the line. [`forecast`] predicts what a plan will do and need before
//! anything runs. What a work does is its [engine](engine::Engine)'s: the engines and formats that a program knows are in its
//! [`Registry`](registry::Registry).

pub mod content;
mod crosscheck;
pub mod defaults;
pub mod document;
pub mod engine;
pub mod evaluation;
pub mod forecast;
pub mod job;
pub mod level;
pub mod plan;
pub mod policy;
pub mod provisioner;
pub mod redact;
pub mod registry;
pub mod room;
pub mod schema;
pub mod secret;
pub mod selector;
pub mod yaml;

pub use crosscheck::cross_check;
pub use tidemark_keys::diagnostic;
