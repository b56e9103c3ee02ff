//! Turns a stored run or evaluation into HTML, Markdown, CSV, JSON, SVG, PNG and a COSBench archive.
//!
//! Everything but [`cosbench_archive`] is a pure function from a [`Run`](tidemark_measure::record::Run) and the
//! [`Judgement`](tidemark_judge::Judgement) about it to text.
//!
//! | module | what it holds |
//! |---|---|
//! | [`figures`] | figures as SVG and PNG, for the report, for files and for the console |
//! | `content` | what a report says: the tables that HTML and Markdown share |
//! | `offered` | what load a work put on, as a sentence |
//! | `sections` | what engines show of their own evidence |
//! | `drivers`, `losses` | the tables about drivers and what was lost |
//! | `sweep` | the tables about sweeps and proofs |
//! | `html`, `markdown` | how it looks |
//! | [`evaluation`] | the report of an evaluation, in all these forms |
//! | `csv`, `json` | the same numbers for machines |
//! | `cosbench` | the archive directory of a COSBench controller |

mod content;
mod cosbench;
mod csv;
mod drivers;
mod endpoints;
pub mod evaluation;
pub mod figures;
mod html;
mod json;
mod known;
mod losses;
mod markdown;
mod offered;
mod queries;
#[cfg(test)]
mod sample;
mod sections;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
mod text;

pub use crate::csv::{csv, csv_series};
pub use content::{percentile_of, shown_percentile};
pub use cosbench::{ArchiveError, cosbench_archive, log};
pub use html::html;
pub use json::{RunRecord, json};
pub use markdown::markdown;
pub use queries::{is_query, query_rows};
pub use sections::in_short;
