//! Queries by DataFusion, in streams.
//!
//! Each stream has a session and a metered store of its own: what goes through the store belongs to the query that the stream is
//! at. Memory is shared by all streams.

use crate::answers::{self, Answers};
use crate::books::Books;
use crate::failure::Failure;
use crate::job::{Queries, Target};
use crate::lake::{File, Lake};
use crate::meter::{Metered, Seen};
use crate::tasks::{Doing, Ended, Tasks};
use datafusion::arrow::record_batch::RecordBatch;
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
use std::time::{Duration, Instant};
use tidemark_load::engine::{Clock, Operation, Outcome, Tick};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Answer, QueryUse};
use tidemark_measure::rng::Rng;
use tidemark_measure::units;
use tidemark_tpc::answer::Digest;
use url::Url;

/// Where the session finds the tables: a name for the store that it is given.
const PLACE: &str = "tables://lake/";

/// What runs the queries of a load.
pub(crate) struct Runner {
    queries: Queries,
    streams: Vec<Stream>,
    chunks: Chunks,
    answers: Answers,
    books: Arc<Books>,
    /// Called before each query, where the cache is to be cold.
    cool: Option<Box<dyn Fn() + Send + Sync>>,
    scale: f64,
}

/// A stream: it runs one query at a time.
struct Stream {
    session: SessionContext,
    meter: Arc<Metered>,
}

/// Where the column chunks of each file are: from, to; in order.
type Chunks = HashMap<Path, Vec<(u64, u64)>>;

/// What a query brought.
struct Ran {
    rows: u64,
    first_row_ns: Option<u64>,
    answer: Answer,
    /// Time that went into the comparison of its answer.
    own_ns: u64,
}

impl Runner {
    /// Makes as many streams ready. `files` are those of all tables.
    pub(crate) async fn open(
        target: &Target,
        queries: &Queries,
        lake: &Lake,
        files: &[File],
        streams: u32,
        coalesces: bool,
        books: Arc<Books>,
    ) -> Result<Self, Failure> {
        let memory: Arc<dyn MemoryPool> = match target.memory {
            Some(bytes) => Arc::new(FairSpillPool::new(usize::try_from(bytes).unwrap_or(usize::MAX))),
            None => Arc::new(UnboundedMemoryPool::default()),
        };
        let mut opened = Vec::with_capacity(streams as usize);
        for _ in 0..streams {
            opened.push(Stream::open(target, lake, coalesces, &memory).await?);
        }
        Ok(Self {
            queries: queries.clone(),
            streams: opened,
            chunks: files.iter().map(|file| (file.path.clone(), chunks(file))).collect(),
            answers: Answers::new(&lake.data, queries),
            books,
            cool: None,
            scale: lake.data.scale(),
        })
    }

    /// The same, which calls this before each query.
    pub(crate) fn cooled(self, cool: impl Fn() + Send + Sync + 'static) -> Self {
        Self { cool: Some(Box::new(cool)), ..self }
    }

    async fn ran(
        &self,
        stream: &Stream,
        operation: &Operation,
        clock: Clock,
        sent: Tick,
    ) -> Result<Ended, Failure> {
        let unknown = || Failure::new(Fault::Local, "the load has no such query");
        let query = self.queries.list.get(usize::from(operation.action)).ok_or_else(unknown)?;
        let mut rng = Rng::new(operation.random, &[]);
        let sql = crate::texts::sql(query, self.queries.random.then_some(&mut rng), self.scale)?;
        if let Some(cool) = &self.cool {
            cool();
        }
        stream.meter.take();
        let began = Instant::now();
        let limit = Duration::from_nanos(self.queries.timeout_ns);
        let ran = match tokio::time::timeout(limit, self.run(stream, operation.action, &sql)).await {
            Ok(ran) => ran,
            Err(_) => {
                let limit = units::duration_ns(self.queries.timeout_ns);
                Err(Failure::new(Fault::Timeout, format!("it took longer than its `timeout` of {limit}")))
            }
        };
        let all_ns = began.elapsed().as_nanos() as u64;
        let Seen { mut used, wanted } = stream.meter.take();
        used.needed_bytes = self.needed(&wanted);
        let mut done = QueryUse {
            query: query.name.clone(),
            stream: u32::try_from(operation.space).unwrap_or(u32::MAX),
            pass: u32::try_from(operation.item + 1).unwrap_or(u32::MAX),
            began_ns: sent,
            took_ns: all_ns,
            storage: Some(used),
            ..QueryUse::default()
        };
        let end = match ran {
            Ok(ran) => {
                done.took_ns = all_ns.saturating_sub(ran.own_ns);
                self.books.spent(ran.own_ns);
                (done.rows, done.first_row_ns, done.answer) = (ran.rows, ran.first_row_ns, ran.answer);
                Ok(())
            }
            Err(failure) => {
                if failure.fault == Fault::WrongAnswer {
                    done.answer = Answer::Differs;
                }
                done.fault = Some(failure.fault);
                Err(failure.of(&query.name))
            }
        };
        let bytes = done.storage.as_ref().map_or(0, |used| used.read_bytes);
        let first_byte = done.first_row_ns.map(|ns| sent + ns);
        let took = done.took_ns;
        self.books.ran(done);
        end?;
        // What the comparison of its answer took is none of the query's time.
        let done = clock.now().min(sent + took.max(1));
        Ok(Ended {
            outcome: Outcome { first_byte, ..Outcome::success(bytes) },
            done: Some(done),
            example: None,
        })
    }

    /// Runs the statements of a query, one after the other.
    async fn run(&self, stream: &Stream, query: u16, sql: &str) -> Result<Ran, Failure> {
        let began = Instant::now();
        let (mut answer, mut first_row_ns, mut own) = (Digest::default(), None, Duration::ZERO);
        let only_reads =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        for statement in statements(sql)? {
            let state = stream.session.state();
            let plan = state.statement_to_plan(statement).await?;
            only_reads.verify_plan(&plan)?;
            let plan = state.create_physical_plan(&plan).await?;
            let mut batches = execute_stream(plan, state.task_ctx())?;
            while let Some(batch) = batches.next().await {
                let batch: RecordBatch = batch?;
                if batch.num_rows() == 0 {
                    continue;
                }
                first_row_ns.get_or_insert_with(|| began.elapsed().as_nanos() as u64);
                let looked = Instant::now();
                answers::add(&mut answer, &batch)?;
                own += looked.elapsed();
            }
        }
        let looked = Instant::now();
        let rows = answer.rows();
        let answer = self.answers.compare(query, answer)?;
        own += looked.elapsed();
        Ok(Ran { rows, first_row_ns, answer, own_ns: own.as_nanos() as u64 })
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

impl Tasks for Runner {
    fn begin(self: Arc<Self>, slot: u32, operation: Operation, clock: Clock, sent: Tick) -> Doing {
        Box::pin(async move {
            let Some(stream) = self.streams.get(slot as usize) else {
                return Failure::new(Fault::Local, "the load has no such stream").ended();
            };
            self.ran(stream, &operation, clock, sent).await.unwrap_or_else(Failure::ended)
        })
    }
}

impl Stream {
    async fn open(
        target: &Target,
        lake: &Lake,
        coalesces: bool,
        memory: &Arc<dyn MemoryPool>,
    ) -> Result<Self, Failure> {
        let meter = Arc::new(Metered::new(Arc::clone(&lake.store), coalesces));
        let mut runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(memory));
        if !target.metadata_cache {
            runtime = runtime.with_metadata_cache_limit(0);
        }
        let runtime = runtime.build_arc()?;
        let local = Url::parse("file:///").map_err(|error| Failure::new(Fault::Local, error.to_string()))?;
        // A query reads its tables and nothing else of this machine.
        runtime.deregister_object_store(&local)?;
        let place = Url::parse(PLACE).map_err(|error| Failure::new(Fault::Local, error.to_string()))?;
        let store: Arc<dyn ObjectStore> = Arc::clone(&meter) as _;
        runtime.register_object_store(&place, store);
        let mut config = SessionConfig::new().with_information_schema(false);
        if let Some(threads) = target.threads {
            config = config.with_target_partitions(threads as usize);
        }
        config.options_mut().sql_parser.dialect = Dialect::PostgreSQL;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .build();
        let session = SessionContext::new_with_state(state);
        for table in lake.data.set.tables() {
            let path = format!("{PLACE}{}/", lake.table(table));
            session.register_parquet(table.name, path, ParquetReadOptions::default()).await?;
        }
        Ok(Self { session, meter })
    }
}

fn statements(sql: &str) -> Result<VecDeque<Statement>, Failure> {
    Ok(DFParserBuilder::new(sql).build()?.parse_statements()?)
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
