//! A power run: the 22 queries one after the other, by our engine or by DataFusion alone with the same settings.

use super::place::Place;
use super::watch::Watch;
use crate::documents;
use datafusion::common::config::Dialect;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures_util::stream::StreamExt as _;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tidemark_analytics::sets::Set;
use tidemark_measure::record::Answer;
use tidemark_tpc::{QUERIES, parameters, queries};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Power {
    place: Place,
    scale: f64,
    by: By,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum By {
    Us,
    DataFusion,
}

/// What it cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// How long each query took, seconds, in the order of their numbers.
    each_s: Vec<f64>,
    /// Rows of each one's answer.
    pub(crate) rows: Vec<u64>,
    /// From the start of the first to the end of the last.
    pub(crate) elapsed_s: f64,
    /// Processor time of the process, from the opening of the tables to the end.
    pub(crate) cpu_s: f64,
    /// What the driver had of it: threads that are not the query engine's, and looking at answers. 0 of DataFusion alone.
    pub(crate) driver_s: f64,
    /// Answers that are known and right.
    pub(crate) known: usize,
}

impl Cost {
    /// All queries' time.
    pub(crate) fn queries_s(&self) -> f64 {
        self.each_s.iter().sum()
    }
}

/// The threads of our query engine (`tidemark_lake`), by name.
const ENGINE: &str = "tables";

impl Power {
    pub(crate) fn new(place: &Place, scale: f64, by: By) -> Self {
        Self { place: place.clone(), scale, by }
    }

    fn document(&self, stage: &str) -> String {
        let (target, scale) = (self.place.target(), self.scale);
        format!(
            "name: bench\nseed: 1\ntarget: {target}\nstages:\n- {stage}: {{tables: tpch, scale: {scale}}}\n"
        )
    }
}

/// Makes the tables.
pub(crate) fn make(task: &Power) -> Result<(), String> {
    documents::run(tidemark_lake::registry(), &task.document("prepare"), None).map(drop)
}

/// The client process.
pub(crate) fn run(task: &Power) -> Result<Cost, String> {
    match task.by {
        By::Us => ours(task),
        By::DataFusion => alone(task),
    }
}

fn ours(task: &Power) -> Result<Cost, String> {
    let watch = Watch::start(ENGINE)?;
    let run = documents::run(tidemark_lake::registry(), &task.document("load"), None)?;
    let used = watch.end()?;
    let proof = run.stages.first().and_then(|stage| stage.proof.as_ref());
    let tables =
        proof.and_then(|proof| proof.tables.first()).ok_or("the run has no record of its queries")?;
    let mut ran: Vec<_> = tables.queries.iter().collect();
    if let Some(query) = ran.iter().find(|query| query.fault.is_some()) {
        return Err(format!("{} failed: {:?}", query.query, query.fault));
    }
    ran.sort_by_key(|query| query.began_ns);
    let ends = ran.iter().map(|query| query.began_ns + query.took_ns);
    let first = ran.first().map_or(0, |query| query.began_ns);
    let looking_s = tables.own_cpu_ns.unwrap_or(0) as f64 / 1e9;
    Ok(Cost {
        each_s: ran.iter().map(|query| query.took_ns as f64 / 1e9).collect(),
        rows: ran.iter().map(|query| query.rows).collect(),
        elapsed_s: ends.max().unwrap_or(0).saturating_sub(first) as f64 / 1e9,
        cpu_s: used.all_s,
        driver_s: used.others_s + looking_s,
        known: ran.iter().filter(|query| query.answer == Answer::Known).count(),
    })
}

fn alone(task: &Power) -> Result<Cost, String> {
    let watch = Watch::start(ENGINE)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name(ENGINE).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let own = task.clone();
    // On its threads, as our queries are.
    let done = runtime.block_on(runtime.spawn(async move { queries_of(&own).await }));
    let cost = done.map_err(|error| error.to_string())??;
    drop(runtime);
    Ok(Cost { cpu_s: watch.end()?.all_s, ..cost })
}

async fn queries_of(task: &Power) -> Result<Cost, String> {
    let told = |error: datafusion::error::DataFusionError| error.to_string();
    let context = context(task).await.map_err(told)?;
    let (began, mut cost) = (Instant::now(), Cost::default());
    for number in 1..=QUERIES {
        let parameters = parameters::qualification(number, task.scale);
        let sql = queries::query(number, &parameters, queries::Dialect::Standard)
            .ok_or("there is no such query")?;
        let (took, rows) = query(&context, &sql).await.map_err(|error| format!("q{number}: {error}"))?;
        cost.each_s.push(took.as_secs_f64());
        cost.rows.push(rows);
    }
    Ok(Cost { elapsed_s: began.elapsed().as_secs_f64(), ..cost })
}

async fn query(context: &SessionContext, sql: &str) -> datafusion::error::Result<(Duration, u64)> {
    let (began, mut rows) = (Instant::now(), 0);
    let state = context.state();
    let plan = state.create_physical_plan(&state.create_logical_plan(sql).await?).await?;
    let mut batches = execute_stream(plan, state.task_ctx())?;
    while let Some(batch) = batches.next().await {
        rows += batch?.num_rows() as u64;
    }
    Ok((began.elapsed(), rows))
}

/// A session with the settings of our engine's.
async fn context(task: &Power) -> datafusion::error::Result<SessionContext> {
    let wrong = |error: String| datafusion::error::DataFusionError::Configuration(error);
    let runtime = RuntimeEnvBuilder::new().build_arc()?;
    let url = ObjectStoreUrl::parse("tables://lake/")?;
    runtime.register_object_store(url.as_ref(), task.place.store().map_err(wrong)?);
    let mut config = SessionConfig::new().with_information_schema(false);
    config.options_mut().sql_parser.dialect = Dialect::PostgreSQL;
    let state = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime);
    let context = SessionContext::new_with_state(state.with_default_features().build());
    for table in Set::Tpch.tables() {
        let path = format!("{}tpch-{}/{}/", url.as_str(), task.scale, table.name);
        context.register_parquet(table.name, path, ParquetReadOptions::default()).await?;
    }
    Ok(context)
}
