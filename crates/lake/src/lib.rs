//! What carries out loads on tables: tables of decision support and queries on them, and Iceberg tables that change.
//!
//! It is a program of its own, `tidemark-lake`, since the query engine takes most of the time that all of Tidemark takes to build, and
//! most of its memory. `tidemark` starts it as a driver of its own ([`tidemark_fleet::helper`]); documents are read there.
//!
//! | module | what it holds |
//! |---|---|
//! | [`registry`] | the engines that this program carries out |
//! | [`tables`] | tables in Parquet files: made, and queried by DataFusion or Trino |
//! | [`iceberg`] | tables that change: commits, cycles, and what the history says of them |

pub mod iceberg;
pub mod tables;

use std::sync::Arc;
use tidemark_plan::registry::Registry;

/// The engines whose works this program carries out.
pub fn registry() -> Registry {
    let tables = tidemark_analytics::Analytics::new(Arc::new(tables::Tables));
    let changing = tidemark_iceberg::Iceberg::new(Arc::new(iceberg::Changing));
    Registry::new(vec![Arc::new(tables), Arc::new(changing)], Vec::new())
}
