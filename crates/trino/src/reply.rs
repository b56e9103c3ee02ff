//! What a coordinator replies to a statement: a part of its answer, how it is getting on, and where to ask for more.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use tidemark_measure::fault::Fault;
use tidemark_measure::line::one_line;
use tidemark_measure::record::QueryUse;
use tidemark_measure::units;

/// Most characters of what a coordinator says that are quoted.
const WORDS: usize = 500;

/// Most columns of a row: a reply of nothing but columns would take many times its length in memory.
const COLUMNS_MOST: usize = 10_000;

/// A reply, whose rows are still text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply<'a> {
    /// Where to ask for more, while there is more.
    pub next_uri: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    /// Why the query failed, if it did.
    pub error: Option<QueryError>,
    /// How the query is getting on.
    #[serde(default)]
    pub stats: Stats,
}

/// Why a query failed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryError {
    message: String,
    /// Such as `TABLE_NOT_FOUND`.
    error_name: String,
    /// One of four: `USER_ERROR`, `INTERNAL_ERROR`, `INSUFFICIENT_RESOURCES`, `EXTERNAL`.
    error_type: String,
}

/// How a query is getting on. Older servers say less.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stats {
    queued_time_millis: Option<u64>,
    analysis_time_millis: Option<u64>,
    planning_time_millis: Option<u64>,
    elapsed_time_millis: Option<u64>,
    physical_input_bytes: Option<u64>,
    physical_input_time_millis: Option<u64>,
    /// Bytes that it has written.
    pub physical_written_bytes: Option<u64>,
}

/// A cell as text; null is none.
type Cell<'a> = Option<Cow<'a, str>>;

impl<'a> Reply<'a> {
    /// Reads the body of a reply.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(body: &'a [u8]) -> Result<Self, String> {
        serde_json::from_slice(body).map_err(|error| error.to_string())
    }

    /// Whether there are rows in it.
    pub fn has_rows(&self) -> bool {
        self.data.is_some_and(|data| !matches!(data.get(), "null" | "[]"))
    }

    /// Gives each of its rows.
    ///
    /// # Errors
    /// Why its data are no rows.
    pub fn rows(&self, row: impl FnMut(&[Cell<'a>])) -> Result<(), String> {
        let Some(data) = self.data.filter(|_| self.has_rows()) else { return Ok(()) };
        let mut text = serde_json::Deserializer::from_str(data.get());
        text.deserialize_seq(Rows(row)).map_err(|error| error.to_string())
    }
}

struct Rows<F>(F);

impl<'de, F: FnMut(&[Cell<'de>])> Visitor<'de> for Rows<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element::<OneRow<'de>>()? {
            let cells: Result<Vec<_>, _> = row.0.into_iter().map(cell).collect();
            (self.0)(&cells.map_err(A::Error::custom)?);
        }
        Ok(())
    }
}

/// The cells of a row.
struct OneRow<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for OneRow<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Cells)
    }
}

struct Cells;

impl<'de> Visitor<'de> for Cells {
    type Value = OneRow<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a row")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<OneRow<'de>, A::Error> {
        let mut row = Vec::new();
        while let Some(cell) = cells.next_element()? {
            if row.len() == COLUMNS_MOST {
                return Err(A::Error::custom(format!(
                    "a row has more than {} columns",
                    units::count(COLUMNS_MOST as u64)
                )));
            }
            row.push(cell);
        }
        Ok(OneRow(row))
    }
}

/// A cell as it is written, whatever its type; of a text, what it says.
fn cell(value: &RawValue) -> Result<Cell<'_>, serde_json::Error> {
    let text = value.get();
    Ok(match text.strip_prefix('"') {
        None if text == "null" => None,
        None => Some(text.into()),
        Some(_) if text.contains('\\') => Some(serde_json::from_str::<String>(text)?.into()),
        Some(rest) => Some(rest.strip_suffix('"').unwrap_or(rest).into()),
    })
}

impl Stats {
    /// Completes the record of a query. What a query of several statements took is what all of them took.
    pub fn add_to(&self, query: &mut QueryUse) {
        let ns = |millis: u64| millis.saturating_mul(1_000_000);
        let add = |to: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *to = Some(to.unwrap_or(0).saturating_add(more));
            }
        };
        let planning = self
            .planning_time_millis
            .map(|planning| planning.saturating_add(self.analysis_time_millis.unwrap_or(0)));
        let execution = self.elapsed_time_millis.zip(self.queued_time_millis).zip(planning);
        let execution = execution
            .map(|((elapsed, queued), planning)| elapsed.saturating_sub(queued).saturating_sub(planning));
        add(&mut query.queued_ns, self.queued_time_millis.map(ns));
        add(&mut query.planning_ns, planning.map(ns));
        add(&mut query.execution_ns, execution.map(ns));
        add(&mut query.engine_read_bytes, self.physical_input_bytes);
        add(&mut query.engine_read_ns, self.physical_input_time_millis.map(ns));
    }
}

impl QueryError {
    /// What it says.
    pub fn words(&self) -> String {
        // Statements and plans stand behind the first line.
        let first = |text: &str| one_line(text.lines().next().unwrap_or_default(), WORDS);
        let (name, message) = (first(&self.error_name), first(&self.message));
        match self.class() {
            _ if self.is_killed() => format!("the query was killed: {message} ({name})"),
            Fault::Overloaded => format!("the cluster has too little for the query: {message} ({name})"),
            _ => format!("{message} ({name})"),
        }
    }

    fn is_killed(&self) -> bool {
        matches!(
            self.error_name.as_str(),
            "USER_CANCELED"
                | "ADMINISTRATIVELY_KILLED"
                | "ADMINISTRATIVELY_PREEMPTED"
                | "ABANDONED_QUERY"
                | "ABANDONED_TASK"
        )
    }

    /// Its class. Names are those of `StandardErrorCode` of Trino's SPI, and of `HiveErrorCode` of its Hive connector.
    pub fn class(&self) -> Fault {
        match (self.error_name.as_str(), self.error_type.as_str()) {
            _ if self.is_killed() => Fault::Unavailable,
            ("PERMISSION_DENIED", _) => Fault::Denied,
            ("EXCEEDED_TIME_LIMIT", _) => Fault::Timeout,
            (
                "SERVER_STARTING_UP"
                | "SERVER_SHUTTING_DOWN"
                | "NO_NODES_AVAILABLE"
                | "REMOTE_HOST_GONE"
                | "PAGE_TRANSPORT_ERROR"
                | "PAGE_TRANSPORT_TIMEOUT"
                | "TOO_MANY_REQUESTS_FAILED",
                _,
            ) => Fault::Unavailable,
            ("HIVE_BAD_DATA" | "HIVE_PARTITION_SCHEMA_MISMATCH", _) => Fault::WrongContent,
            (_, "INSUFFICIENT_RESOURCES") => Fault::Overloaded,
            (_, "EXTERNAL") => Fault::Io,
            (_, "USER_ERROR") => Fault::Sql,
            _ => Fault::ServerError,
        }
    }
}
