//! Queries and tables by a Trino cluster, over its HTTP protocol.
//!
//! | module | what it holds |
//! |---|---|
//! | `http` | requests to the coordinator, within limits |
//! | `statement` | statements, from their text to their last row |
//! | `sql` | the statements of a query |
//! | `catalog` | tables registered, recognised, dropped |
//! | `generate` | tables that Trino makes |

mod catalog;
mod generate;
mod http;
mod sql;
mod statement;

pub(crate) use catalog::Schema;
pub(crate) use generate::{Generator, files, made};
pub(crate) use statement::Coordinator;

use crate::tables::failure::Failure;
use crate::tables::query::{Rows, Stream};
use async_trait::async_trait;
use http::{Address, Ask, Connection};
use serde::Deserialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_analytics::job::{Compression, Data, Storage, Target, Trino};
use tidemark_load::budget::Budget;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::QueryUse;
use tidemark_trino::Stats;

/// What a server says of itself at `/v1/info`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    node_version: Version,
    #[serde(default)]
    coordinator: bool,
    #[serde(default)]
    starting: bool,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

/// Whether a cluster can be used: gives its name and version. What is in the way is said in a sentence.
pub(crate) async fn check(trino: &Trino) -> Result<String, String> {
    let (address, budget) = (Address::new(trino, &[])?, Budget::preflight());
    let told = |failure: Failure| failure.to_string();
    let body = address.ask(&mut Connection::within(&budget), Ask::get("/v1/info")).await.map_err(told)?;
    let wrong = |words: &str| address.failed(Fault::Protocol, words).to_string();
    let info: Info = serde_json::from_slice(&body).map_err(|_| {
        wrong("whatever answers there is no Trino: name the coordinator's address as the `endpoint`")
    })?;
    if !info.coordinator {
        return Err(wrong("it is a worker: name the coordinator's address as the `endpoint`"));
    }
    if info.starting {
        return Err(wrong("it is still starting: wait until its /v1/info says `\"starting\":false`"));
    }
    let version: String = info.node_version.version.chars().take(40).collect();
    let coordinator = Coordinator::new(Address::new(trino, &[])?);
    let sql = "SELECT catalog_name, connector_name FROM system.metadata.catalogs ORDER BY 1";
    let catalogs = coordinator.answer_within(sql, &budget).await.map_err(told)?;
    let cell = |row: &[Option<String>], place: usize| row.get(place).cloned().flatten().unwrap_or_default();
    match catalogs.iter().find(|row| cell(row, 0) == trino.catalog) {
        None => {
            let names: Vec<_> = catalogs.iter().map(|row| cell(row, 0)).collect();
            Err(wrong(&format!(
                "it has no catalog `{}`, only {}: name one of its Hive connector under `catalog`",
                trino.catalog,
                names.join(", ")
            )))
        }
        Some(row) if cell(row, 1) != "hive" => Err(wrong(&format!(
            "its catalog `{}` is of the connector {}: tables in Parquet files are registered with the Hive connector, so name a \
             catalog with connector.name=hive",
            trino.catalog,
            cell(row, 1)
        ))),
        Some(_) => Ok(format!("Trino {version}")),
    }
}

/// The tables of a set in the catalog of a target; `None` of another kind of target. Tables that it makes are compressed so.
pub(crate) fn schema(
    target: &Target,
    data: &Data,
    compression: Option<Compression>,
) -> Result<Option<Schema>, String> {
    let (Some(trino), Storage::Objects { bucket, prefix, .. }) = (target.trino(), &target.storage) else {
        return Ok(None);
    };
    let root =
        [bucket, prefix].into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("/");
    let name = catalog::schema_of(data);
    let session = compression.map(|compression| {
        format!("{}.compression_codec={}", trino.catalog, compression.name().to_uppercase())
    });
    let mut headers = vec![
        ("x-trino-catalog", trino.catalog.as_str()),
        ("x-trino-schema", &name),
        // Otherwise times would be those of where the coordinator is.
        ("x-trino-time-zone", "UTC"),
    ];
    headers.extend(session.as_deref().map(|session| ("x-trino-session", session)));
    Ok(Some(Schema {
        coordinator: Coordinator::new(Address::new(trino, &headers)?),
        catalog: trino.catalog.clone(),
        data: data.clone(),
        place: format!("s3://{root}/{}", data.name()),
    }))
}

/// A stream of queries.
struct Client {
    coordinator: Arc<Coordinator>,
    connection: tokio::sync::Mutex<Connection>,
    /// What Trino says of each statement of the query that ran last.
    told: Mutex<Vec<Stats>>,
}

/// Makes as many streams ready.
pub(crate) fn streams(coordinator: &Arc<Coordinator>, count: u32) -> Vec<Box<dyn Stream>> {
    let stream = |_| -> Box<dyn Stream> {
        Box::new(Client {
            coordinator: Arc::clone(coordinator),
            connection: tokio::sync::Mutex::default(),
            told: Mutex::default(),
        })
    };
    (0..count).map(stream).collect()
}

impl Client {
    fn told(&self) -> MutexGuard<'_, Vec<Stats>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Stream for Client {
    async fn run(&self, sql: &str, rows: &mut Rows) -> Result<(), Failure> {
        self.told().clear();
        let mut connection = self.connection.lock().await;
        for statement in sql::statements(sql)? {
            self.told().push(Stats::default());
            let running = self.coordinator.run(&mut connection, statement, |reply| {
                if let Some(told) = self.told().last_mut() {
                    *told = reply.stats;
                }
                match reply.has_rows() {
                    true => rows.add(|answer| reply.rows(|row| answer.add(row.iter().map(Option::as_deref)))),
                    false => Ok(()),
                }
            });
            running.await?;
        }
        Ok(())
    }

    fn complete(&self, used: &mut QueryUse) {
        self.told().iter().for_each(|told| told.add_to(used));
    }
}

#[cfg(test)]
mod tests;
