//! The texts of queries, and their known answers.

use crate::tables::failure::Failure;
use tidemark_analytics::job::{Data, Query};
use tidemark_analytics::sets::Set;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;
use tidemark_tpc::answer::Digest;
use tidemark_tpc::queries::Dialect;
use tidemark_tpc::{answers, ds, parameters, queries};

/// The number of a query of TPC-H.
fn number(query: &Query) -> Option<u8> {
    let number = query.name.strip_prefix('q')?.parse().ok()?;
    query.sql.is_none().then_some(number)
}

/// The text of a query; its parameters are drawn, or those of the set's definition.
pub(crate) fn sql(
    query: &Query,
    rng: Option<&mut Rng>,
    scale: f64,
    dialect: Dialect,
) -> Result<String, Failure> {
    if let Some(sql) = &query.sql {
        return Ok(sql.clone());
    }
    let text = number(query).and_then(|number| {
        let parameters = match rng {
            Some(rng) => parameters::random(number, scale, rng),
            None => parameters::qualification(number, scale),
        };
        queries::query(number, &parameters, dialect)
    });
    text.ok_or_else(|| Failure::new(Fault::Local, format!("there is no query {}", query.name)))
}

/// What another engine answered to a query with the parameters of the set's definition, if that is known of its text at this scale.
pub(crate) fn answer(data: &Data, query: &Query) -> Option<Digest> {
    match data.set {
        Set::Tpch => answers::known(number(query)?, data.scale_milli),
        // The text is looked at, for it is whatever is in the user's file.
        Set::Tpcds => ds::answers::known(&query.name, query.sql.as_deref()?, data.scale_milli),
    }
}
