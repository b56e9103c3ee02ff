//! The texts of queries.

use crate::failure::Failure;
use crate::job::Query;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// The text of a query; its parameters are drawn, or those of the set's definition.
pub(crate) fn sql(query: &Query, _rng: Option<&mut Rng>, _scale: f64) -> Result<String, Failure> {
    query.sql.clone().ok_or_else(|| Failure::new(Fault::Local, format!("there is no query {}", query.name)))
}
