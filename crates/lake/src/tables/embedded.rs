//! Queries by the engine in this process, Apache DataFusion.
//!
//! Each stream has a session and a metered store of its own: what goes through the store belongs to the query that the stream is
//! at. Memory is shared by all streams.

use crate::tables::failure::Failure;
use crate::tables::lake::{File, Lake};
use crate::tables::meter::{Metered, Seen};
use crate::tables::query::{Rows, Stream};
use async_trait::async_trait;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::config::Dialect;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use futures_util::stream::StreamExt as _;
use object_store::ObjectStore;
use object_store::path::Path;
use parquet::file::metadata::RowGroupMetaData;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use tidemark_analytics::job::DataFusion;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::QueryUse;
use tidemark_tpc::answer::Digest;
use url::Url;

/// Its name and version.
pub(crate) const ENGINE: &str = "DataFusion 55.2.0";

/// Where the session finds the tables: a name for the store that it is given.
const PLACE: &str = "tables://lake/";

/// Where the column chunks of each file are: from, to; in order.
type Chunks = HashMap<Path, Vec<(u64, u64)>>;

/// A stream.
struct Session {
    context: SessionContext,
    meter: Arc<Metered>,
    chunks: Arc<Chunks>,
}

/// Makes as many streams ready. `files` are those of all tables; `coalesces` says whether reads that are near each other are put
/// together, as over a network.
pub(crate) async fn streams(
    engine: &DataFusion,
    lake: &Lake,
    files: &[File],
    count: u32,
    coalesces: bool,
) -> Result<Vec<Box<dyn Stream>>, Failure> {
    let memory: Arc<dyn MemoryPool> = match engine.memory {
        Some(bytes) => Arc::new(FairSpillPool::new(usize::try_from(bytes).unwrap_or(usize::MAX))),
        None => Arc::new(UnboundedMemoryPool::default()),
    };
    let chunks: Arc<Chunks> = Arc::new(files.iter().map(|file| (file.path.clone(), chunks(file))).collect());
    let mut streams: Vec<Box<dyn Stream>> = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let meter = Arc::new(Metered::new(Arc::clone(&lake.store), coalesces));
        let context = context(engine, lake, &meter, &memory).await?;
        streams.push(Box::new(Session { context, meter, chunks: Arc::clone(&chunks) }));
    }
    Ok(streams)
}

async fn context(
    engine: &DataFusion,
    lake: &Lake,
    meter: &Arc<Metered>,
    memory: &Arc<dyn MemoryPool>,
) -> Result<SessionContext, Failure> {
    let mut runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(memory));
    if !engine.metadata_cache {
        runtime = runtime.with_metadata_cache_limit(0);
    }
    let runtime = runtime.build_arc()?;
    let local = Url::parse("file:///").map_err(|error| Failure::new(Fault::Local, error.to_string()))?;
    // A query reads its tables and nothing else of this machine.
    runtime.deregister_object_store(&local)?;
    let place = Url::parse(PLACE).map_err(|error| Failure::new(Fault::Local, error.to_string()))?;
    let store: Arc<dyn ObjectStore> = Arc::clone(meter) as _;
    runtime.register_object_store(&place, store);
    let mut config = SessionConfig::new().with_information_schema(false);
    if let Some(threads) = engine.threads {
        config = config.with_target_partitions(threads as usize);
    }
    config.options_mut().sql_parser.dialect = Dialect::PostgreSQL;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .build();
    let context = SessionContext::new_with_state(state);
    for table in lake.data.set.tables() {
        let path = format!("{PLACE}{}/", lake.table(table));
        context.register_parquet(table.name, path, ParquetReadOptions::default()).await?;
    }
    Ok(context)
}

#[async_trait]
impl Stream for Session {
    async fn run(&self, sql: &str, rows: &mut Rows) -> Result<(), Failure> {
        self.meter.take();
        let ran = self.statements(sql, rows).await;
        ran.map_err(|failure| failure.or_of_storage(self.meter.failure()))
    }

    fn complete(&self, query: &mut QueryUse) {
        let Seen { mut used, wanted } = self.meter.take();
        used.needed_bytes = self.needed(&wanted);
        query.storage = Some(used);
    }
}

impl Session {
    /// Runs statements one after the other.
    async fn statements(&self, sql: &str, rows: &mut Rows) -> Result<(), Failure> {
        let only_reads =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        for statement in statements(sql)? {
            let state = self.context.state();
            let plan = state.statement_to_plan(statement).await?;
            only_reads.verify_plan(&plan)?;
            let plan = state.create_physical_plan(&plan).await?;
            let mut batches = execute_stream(plan, state.task_ctx())?;
            while let Some(batch) = batches.next().await {
                let batch: RecordBatch = batch?;
                if batch.num_rows() > 0 {
                    rows.add(|answer| add(answer, &batch))?;
                }
            }
        }
        Ok(())
    }

    /// Bytes of the column chunks that were read from, each once; `None` if something else was read.
    fn needed(&self, wanted: &BTreeMap<Path, Vec<Range<u64>>>) -> Option<u64> {
        let mut bytes = 0;
        for (path, ranges) in wanted {
            let chunks = self.chunks.get(path)?;
            let mut touched = vec![false; chunks.len()];
            for range in ranges {
                let first = chunks.partition_point(|(_, end)| *end <= range.start);
                for (place, (from, _)) in chunks.iter().enumerate().skip(first) {
                    if *from >= range.end {
                        break;
                    }
                    touched[place] = true;
                }
            }
            bytes += chunks
                .iter()
                .zip(touched)
                .filter(|(_, touched)| *touched)
                .map(|((from, end), _)| end - from)
                .sum::<u64>();
        }
        Some(bytes)
    }
}

fn statements(sql: &str) -> Result<VecDeque<Statement>, Failure> {
    let found = DFParserBuilder::new(sql).build()?.parse_statements()?;
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::new(Fault::Sql, "its text has no statement")),
    }
}

/// Where the column chunks of a file are.
fn chunks(file: &File) -> Vec<(u64, u64)> {
    let columns = file.footer.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let mut chunks: Vec<(u64, u64)> = columns
        .map(|column| {
            let (from, length) = column.byte_range();
            (from, from.saturating_add(length))
        })
        .collect();
    chunks.sort_unstable();
    chunks
}

/// Adds the rows of a batch to an answer.
fn add(answer: &mut Digest, batch: &RecordBatch) -> Result<(), Failure> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
    let columns = columns
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::new(Fault::Local, error.to_string()))?;
    for row in 0..batch.num_rows() {
        let cell = |(formatter, column): (&ArrayFormatter<'_>, &ArrayRef)| {
            (!column.is_null(row)).then(|| formatter.value(row).to_string())
        };
        let cells: Vec<Option<String>> = columns.iter().zip(batch.columns()).map(cell).collect();
        answer.add(cells.iter().map(Option::as_deref));
    }
    Ok(())
}
