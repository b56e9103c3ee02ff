//! Documents to a validated plan.
//!
//! [`read`](document::read) takes a document's text, detects its format by its content, and
//! gives a [`Plan`](plan::Plan) or [`Diagnostic`](diagnostic::Diagnostic)s that point at the line. [`forecast`] predicts what a plan will do and
//! need before anything runs.

pub mod block;
pub mod cosbench;
mod defaults;
pub mod diagnostic;
pub mod document;
pub mod evaluation;
pub mod fiofile;
pub mod forecast;
mod nearest;
pub mod object;
pub mod oneliner;
pub mod plan;
pub mod policy;
pub mod redact;
pub mod schema;
pub mod secret;
pub mod selector;
pub mod yaml;
