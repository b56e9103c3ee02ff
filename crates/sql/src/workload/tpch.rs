//! Decision support after TPC-H: eight tables, 22 queries in streams, and two refresh functions. Not the TPC's benchmark, whose
//! results are audited.
//!
//! Rows are those of the TPC's generator. The refresh functions insert the orders of a thousandth of the data set under keys that the
//! generator leaves free, with their lines, and delete them again: so the data set is afterwards what it was, and serves the next run.
//! (The specification deletes old orders instead, and needs new data after every run.)

mod rows;
mod schema;

use super::{Action, Family, Figure, Told, Transact, Workload};
use crate::bulk::Bulk;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::options;
use crate::schema::Table;
use crate::statement::Statement;
use crate::transaction::{End, Transaction};
use crate::value::Value::Int;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use tidemark_keys::kinds::{Flag, Parsed, Whole};
use tidemark_keys::{Key, Mapping, Problem};
use tidemark_load::engine::Operation;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Answer, FigureOf};
use tidemark_measure::rng::Rng;
use tidemark_tpc::answer::Digest;
use tidemark_tpc::{QUERIES, answers, orders, parameters, queries};

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "tpch",
    workloads: &[("tpch", "Decision support: 22 queries in streams, after TPC-H")],
    keys: &KEYS,
    read: |_, keys| {
        options::pack(&Options {
            scale_milli: keys.value(&SCALE),
            streams: keys.value(&STREAMS),
            passes: keys.value(&PASSES),
            refresh: keys.value(&REFRESH),
        })
    },
    open: |_, options| Ok(Arc::new(Tpch { options: Options::deserialize(options)? })),
};

static KEYS: Mapping =
    Mapping::new("tpch", "Options of decision support", &[&SCALE, &STREAMS, &PASSES, &REFRESH]);
static SCALE: Key<Parsed<u64>> = Key::new(
    "scale",
    "Scale factor: 1 is about a gigabyte of rows",
    Parsed("number from 0.001 to 1000", scale),
)
.default("1");
static STREAMS: Key<Whole<u32>> = Key::new(
    "streams",
    "Streams of queries side by side: one is the power test, several are the throughput test",
    Whole(1, 1000),
)
.default("1");
static PASSES: Key<Whole<u32>> =
    Key::new("passes", "How often each stream goes through its queries", Whole(1, 1_000_000)).default("1");
static REFRESH: Key<Flag> = Key::new(
    "refresh",
    "Run the refresh functions: before and after the queries of one stream, or beside several in a stream of their own, as often as \
     there are streams",
    Flag,
)
.default("false");

fn scale(text: &str) -> Result<u64, Problem> {
    let wrong = || {
        Problem::new(format!("'{text}' is no scale factor"), "write a number from 0.001 to 1000, such as 1")
    };
    let milli = text.trim().parse::<f64>().map_err(|_| wrong())? * 1e3;
    let whole = milli.round();
    if !(1.0..=1e6).contains(&whole) || (milli - whole).abs() > 1e-6 {
        return Err(wrong());
    }
    Ok(whole as u64)
}

#[derive(Serialize, Deserialize)]
struct Options {
    scale_milli: u64,
    streams: u32,
    passes: u32,
    refresh: bool,
}

struct Tpch {
    options: Options,
}

/// The statements behind the queries.
const DELETE_LINES: usize = QUERIES as usize;
const DELETE_ORDERS: usize = DELETE_LINES + 1;

/// The actions behind the queries.
const INSERTS: u16 = QUERIES as u16;
const DELETES: u16 = INSERTS + 1;

impl Tpch {
    fn factor(&self) -> f64 {
        self.options.scale_milli as f64 / 1e3
    }

    /// Adds up the rows of an answer, and holds it against the known one.
    fn compare(&self, query: u8, rows: &crate::rows::Rows<'_>) -> Result<Answer, Failure> {
        // With other orders in the tables, answers are others.
        let Some(known) = answers::known(query, self.options.scale_milli).filter(|_| !self.options.refresh)
        else {
            return Ok(Answer::NotChecked);
        };
        let mut answer = Digest::default();
        for row in rows.iter() {
            let cells = (0..row.columns()).map(|column| row.get(column)).collect::<Result<Vec<_>, _>>()?;
            answer.add(cells.into_iter());
        }
        answer.agrees(&known).map(|()| Answer::Known).map_err(|why| {
            Failure::new(
                Fault::WrongAnswer,
                format!("the answer to query {query} is not the known one: {why}"),
            )
        })
    }
}

impl Workload for Tpch {
    fn tables(&self) -> Vec<Table> {
        schema::tables(self.factor())
    }

    fn generate(&self, table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        rows::generate(self.factor(), table, units, bulk);
    }

    fn data_options(&self) -> serde_json::Value {
        serde_json::json!({"scale_milli": self.options.scale_milli})
    }

    fn statements(&self, _: Dialect) -> Vec<Statement> {
        let text = |number| {
            let parameters = parameters::qualification(number, self.factor());
            queries::query(number, &parameters, queries::Dialect::Standard).unwrap_or_default()
        };
        let delete = |table: &str, key: &str| {
            format!("DELETE FROM {table} WHERE {key} BETWEEN $1 AND $2 AND {key} % 32 >= {}", rows::FREE)
        };
        let deletes = [delete("lineitem", "l_orderkey"), delete("orders", "o_orderkey")];
        (1..=QUERIES).map(text).chain(deletes).map(Statement::new).collect()
    }

    fn actions(&self) -> Vec<Action> {
        let query = |number| Action::statement(format!("q{number}")).reading();
        let refresh = ["rf1", "rf2"].into_iter().filter(|_| self.options.refresh);
        let refresh = refresh.map(|label| Action::transaction(label, 2.0));
        (1..=QUERIES).map(query).chain(refresh).collect()
    }

    fn orders(&self) -> Option<(Vec<Vec<u16>>, u32)> {
        let Options { streams, refresh, passes, .. } = self.options;
        let queries = |stream| orders::order(u16::from(QUERIES), stream);
        let all = match (streams, refresh) {
            (1, true) => vec![[vec![INSERTS], queries(0), vec![DELETES]].concat()],
            // The first order is that of the power test.
            (1, false) => vec![queries(0)],
            (streams, refresh) => {
                let updates = refresh.then(|| [INSERTS, DELETES].repeat(streams as usize));
                (1..=streams).map(queries).chain(updates).collect()
            }
        };
        Some((all, passes))
    }

    fn scale(&self) -> Option<String> {
        Some(self.factor().to_string())
    }

    fn figures(&self) -> Vec<Figure> {
        let Options { scale_milli, streams, refresh, passes } = self.options;
        let elapsed = Figure {
            name: "All queries",
            about: "from the start of the first to the end of the last, of all streams",
            of: FigureOf::Elapsed,
        };
        let mean = Figure {
            name: "Geometric mean",
            about: "of the queries' mean times",
            of: FigureOf::GeometricMean,
        };
        let own = match (refresh && passes == 1, streams) {
            (false, _) => vec![mean],
            (true, 1) => vec![Figure {
                name: "TPC-H-like power",
                about: "3600 x scale / geometric mean of the times of 22 queries and two refresh functions",
                of: FigureOf::TpchPower { scale_milli },
            }],
            (true, streams) => vec![
                Figure {
                    name: "TPC-H-like throughput",
                    about: "queries of all streams per hour, x scale",
                    of: FigureOf::TpchThroughput { scale_milli, streams },
                },
                Figure {
                    name: "TPC-H-like QphH",
                    about: "the geometric mean of power and throughput on the same tables",
                    of: FigureOf::TpchComposite { scale_milli, streams },
                },
            ],
        };
        [elapsed].into_iter().chain(own).collect()
    }
}

impl Transact for Tpch {
    type State = Told;

    fn state(&self) -> Told {
        Told::default()
    }

    fn told(&self, state: &Told) -> Told {
        *state
    }

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        _: &mut Rng,
        told: &mut Told,
    ) -> Result<End, Failure> {
        *told = Told::default();
        match operation.action {
            INSERTS => {
                let [orders, lines] = schema::refreshed(self.factor());
                let [mut order, mut line] =
                    [&orders, &lines].map(|table| Bulk::new(table, transaction.dialect()));
                rows::refresh(self.factor(), operation.space, &mut order, &mut line);
                for bulk in [order, line] {
                    let taken = transaction.load(&bulk).await?;
                    if taken != bulk.rows() {
                        let text = format!("the database took {taken} of {} rows", bulk.rows());
                        return Err(Failure::new(Fault::ShortTransfer, text));
                    }
                }
            }
            DELETES => {
                let (low, high) = rows::keys(self.factor(), operation.space);
                for statement in [DELETE_LINES, DELETE_ORDERS] {
                    transaction.execute(statement, &[Int(low), Int(high)]).await?;
                }
            }
            query => {
                let rows = transaction.query(usize::from(query), &[]).await?;
                told.rows = rows.count();
                let compared = self.compare(query as u8 + 1, &rows);
                told.answer = match &compared {
                    Ok(answer) => *answer,
                    Err(failure) if failure.fault == Fault::WrongAnswer => Answer::Differs,
                    Err(_) => Answer::NotChecked,
                };
                compared?;
            }
        }
        Ok(End::Commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tpch(streams: u32, refresh: bool) -> Tpch {
        Tpch { options: Options { scale_milli: 10, streams, passes: 1, refresh } }
    }

    #[test]
    fn streams_have_all_queries_and_the_refresh_functions_their_place() {
        let (power, _) = tpch(1, true).orders().unwrap();
        assert_eq!((power.len(), power[0].len()), (1, 24));
        assert_eq!((power[0][0], power[0][23]), (INSERTS, DELETES));
        let (throughput, _) = tpch(3, true).orders().unwrap();
        assert_eq!(throughput.iter().map(Vec::len).collect::<Vec<_>>(), [22, 22, 22, 6]);
        assert_eq!(tpch(3, false).orders().unwrap().0.len(), 3);
        assert_ne!(throughput[0], power[0][1..23], "no stream has the order of the power test");
    }

    #[test]
    fn scale_factors_have_three_decimal_places() {
        assert_eq!(
            (scale("0.001").ok(), scale("1").ok(), scale("300").ok()),
            (Some(1), Some(1000), Some(300_000))
        );
        for wrong in ["0", "-1", "1001", "0.0001", "x", "NaN", "1e99"] {
            assert!(scale(wrong).is_err(), "{wrong}");
        }
    }
}
