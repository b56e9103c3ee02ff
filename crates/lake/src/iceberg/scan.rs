//! Queries on a version of a table, by DataFusion on the files that the version names.

use crate::iceberg::commit::Contents;
use crate::iceberg::deletes::{self, Deleted};
use crate::iceberg::files::{Files, Version};
use crate::iceberg::model::Sums;
use crate::iceberg::records::DataFile;
use crate::iceberg::rows;
use crate::tables::failure::Failure;
use crate::tables::meter::Metered;
use async_trait::async_trait;
use datafusion::arrow::array::AsArray as _;
use datafusion::arrow::datatypes::{Int32Type, Int64Type, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result as QueryResult};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures_util::stream::StreamExt as _;
use object_store::ObjectStore;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_iceberg::cycles::TableState;
use tidemark_measure::fault::Fault;

/// The name that the session knows the store by.
const PLACE: &str = "table://files";

/// The name that queries know the table by.
const TABLE: &str = "rows";

/// Bytes at the end of a file that are read at first: its footer, and of a small file all of it.
const FOOTER: usize = 64 << 10;

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Rows and amounts of each category.
    Totals,
    /// Rows and amounts of those with these numbers.
    Within(Range<u64>),
    /// All rows.
    All,
}

/// What it is to bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Of each category.
    Totals(BTreeMap<i32, Sums>),
    /// Of some rows.
    Sums(Sums),
    /// How many rows, and the sum of their hashes.
    Rows(u64, u64),
}

/// What a query brought, and took.
#[derive(Debug)]
pub(crate) struct Asked {
    pub reply: Reply,
    /// The table that it found.
    pub found: TableState,
    /// Time until it was known which files to read, and how.
    pub planning: Duration,
    /// Time that went into looking at its answer.
    pub own: Duration,
}

/// What queries run in.
pub(crate) struct Reader {
    session: SessionContext,
    meter: Arc<Metered>,
}

/// A version of a table as the query engine sees it.
#[derive(Debug)]
struct Snapshot {
    files: Vec<PartitionedFile>,
}

impl Question {
    fn sql(&self) -> String {
        match self {
            Question::Totals => {
                format!("SELECT category, count(*), sum(amount) FROM {TABLE} GROUP BY category")
            }
            Question::Within(Range { start, end }) => {
                format!(
                    "SELECT count(*), coalesce(sum(amount), 0) FROM {TABLE} WHERE id >= {start} AND id < {end}"
                )
            }
            Question::All => format!("SELECT * FROM {TABLE}"),
        }
    }

    fn nothing(&self) -> Reply {
        match self {
            Question::Totals => Reply::Totals(BTreeMap::new()),
            Question::Within(_) => Reply::Sums(Sums::default()),
            Question::All => Reply::Rows(0, 0),
        }
    }
}

impl Reply {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let numbers = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        let sums = |from: usize, row: usize| Sums {
            rows: numbers(from).value(row) as u64,
            amount: numbers(from + 1).value(row),
        };
        match self {
            Reply::Totals(all) => {
                let category = batch.column(0).as_primitive::<Int32Type>();
                let twice =
                    (0..batch.num_rows()).any(|row| all.insert(category.value(row), sums(1, row)).is_some());
                if twice {
                    return Err(Failure::new(Fault::WrongAnswer, "a category is in the answer twice"));
                }
            }
            Reply::Sums(all) if batch.num_rows() > 0 => *all = sums(0, 0),
            Reply::Sums(_) => {}
            Reply::Rows(rows, checksum) => {
                *rows += batch.num_rows() as u64;
                *checksum = checksum.wrapping_add(rows::checksum(batch)?);
            }
        }
        Ok(())
    }

    /// Why it is not what it must be, if so.
    pub(crate) fn differs(&self, expected: &Reply) -> Option<String> {
        match (self, expected) {
            _ if self == expected => None,
            (Reply::Rows(own, _), Reply::Rows(other, _)) if own == other => {
                Some(format!("the checksum of its {own} rows is not that of the rows that were committed"))
            }
            (Reply::Rows(own, _), Reply::Rows(other, _)) => {
                Some(format!("it has {own} rows instead of {other}"))
            }
            (Reply::Sums(own), Reply::Sums(other)) => Some(format!(
                "it counts {} rows with an amount of {} instead of {} with {}",
                own.rows, own.amount, other.rows, other.amount
            )),
            (Reply::Totals(own), Reply::Totals(other)) => {
                let category = own.keys().chain(other.keys()).find(|key| own.get(key) != other.get(key))?;
                let [own, other] = [own, other].map(|one| one.get(category).copied().unwrap_or_default());
                Some(format!(
                    "in category {category} it counts {} rows with an amount of {} instead of {} with {}",
                    own.rows, own.amount, other.rows, other.amount
                ))
            }
            _ => Some("it is of another query".into()),
        }
    }
}

impl Reader {
    /// For the files of a table; `coalesces` says whether parts of a file that are near to each other are read together.
    pub(crate) fn new(files: &Files, coalesces: bool) -> Result<Self, Failure> {
        let meter = Arc::new(Metered::new(files.store(), coalesces));
        let session = SessionContext::new_with_config(SessionConfig::new().with_information_schema(false));
        let place = ObjectStoreUrl::parse(PLACE)?;
        let store: Arc<dyn ObjectStore> = Arc::clone(&meter) as _;
        session.runtime_env().register_object_store(place.as_ref(), store);
        Ok(Self { session, meter })
    }

    /// What went through the store on behalf of queries since the last time.
    pub(crate) fn meter(&self) -> &Metered {
        &self.meter
    }

    /// Asks a version of the table. What its manifests and deletes take is counted by `files`, what its rows take by the meter.
    pub(crate) async fn ask(
        &self,
        files: &Files,
        version: &Version,
        question: &Question,
        began: Instant,
    ) -> Result<Asked, Failure> {
        let contents = Contents::of(files, version).await?;
        let deleted = deletes::read(files, &contents).await?;
        let (snapshot, found) = snapshot(files, &contents, &deleted)?;
        // The table of the query before goes.
        drop(self.session.deregister_table(TABLE)?);
        self.session.register_table(TABLE, Arc::new(snapshot))?;
        let plan = self.session.sql(&question.sql()).await?.create_physical_plan().await?;
        let planning = began.elapsed();
        let mut batches = execute_stream(plan, self.session.task_ctx())?;
        let (mut reply, mut own) = (question.nothing(), Duration::ZERO);
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            let looked = Instant::now();
            reply.add(&batch)?;
            own += looked.elapsed();
        }
        Ok(Asked { reply, found, planning, own })
    }
}

/// The files of a version as they are to be read, and how many of what they are.
fn snapshot(
    files: &Files,
    contents: &Contents,
    deleted: &Deleted,
) -> Result<(Snapshot, TableState), Failure> {
    let mut found = TableState {
        files: contents.data.len() as u64,
        delete_files: contents.deletes.len() as u64,
        manifests: contents.manifests,
        bytes: contents.all().map(DataFile::file_size_in_bytes).fold(0, u64::saturating_add),
        rows: 0,
    };
    let mut all = Vec::with_capacity(contents.data.len());
    for file in &contents.data {
        let path = files.named(file.file_path())?;
        let mut read = PartitionedFile::new(path.to_string(), file.file_size_in_bytes());
        found.rows = found.rows.saturating_add(file.record_count());
        if let Some(places) = deleted.get(file.file_path()) {
            found.rows = found.rows.saturating_sub(places.len() as u64);
            read =
                read.with_extension(ParquetRowSelection::new(rows::selection(file.record_count(), places)));
        }
        all.push(read);
    }
    Ok((Snapshot { files: all }, found))
}

#[async_trait]
impl TableProvider for Snapshot {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&rows::COLUMNS)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let mut source = ParquetSource::new(self.schema()).with_metadata_size_hint(FOOTER);
        if let Some(filter) = conjunction(filters.to_vec()) {
            let columns = DFSchema::try_from(self.schema())?;
            source = source.with_predicate(state.create_physical_expr(filter, &columns)?);
        }
        let groups =
            FileGroup::new(self.files.clone()).split_files(state.config().target_partitions().max(1));
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::parse(PLACE)?, Arc::new(source))
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> QueryResult<Vec<TableProviderFilterPushDown>> {
        // Files and parts of them without such rows are left out; the others are looked at row by row.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
