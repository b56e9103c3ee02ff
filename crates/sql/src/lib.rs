//! The SQL engine: transactions on databases, over connections that their thread owns.
//!
//! **A document names a workload and a database; the workload's tables are loaded once; its transactions are the operations
//! of the load.** A client is one connection with one transaction at a time. Everything in between (pacing, seconds, drivers,
//! levels, report) is the load core's, as for objects and blocks.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Databases`] | the engine as Tidemark sees it |
//! | `document` | the keys of documents: targets, works |
//! | [`job`] | a work on a database: target, workload, purpose, settings |
//! | [`instances`] | several databases that are loaded and run together |
//! | [`workload`] | what a workload is, and the list of them; each is one file below it |
//! | [`options`] | options that several workloads have |
//! | [`schema`], [`Bulk`] | tables, once for all dialects; rows on their way into one |
//! | `data` | the data set in the database: recognised, loaded in chunks, guarded, dropped |
//! | [`Transaction`], [`Statement`], [`Value`], [`Rows`] | what a workload's transactions are written with |
//! | `slot` | what is around a transaction: begin, commit, retries, reconnects |
//! | `sessions` | from a job to threads, slots and their connections |
//! | [`dialect`] | what databases write differently |
//! | `connection`, `postgres`, `mysql` | connections by protocol: the seam, PostgreSQL's, and MySQL's |
//! | `stream` | the bytes of a connection, whatever its protocol |
//! | `server` | where a database is: addresses, TLS |
//! | [`Failure`] | why something failed, and what that means for the transaction |
//! | `preflight`, `prepare`, `admin` | what is asked and done before the load |
//! | [`databases`] | the evidence: its data, rules, words, and sections of reports |
//! | `evidence`, `counted` | what a database counts, and how durable it is set; what its clients counted |
//! | `recorded` | executions of queries in streams, one by one |
//! | `plans` | what the planner makes of a load's statements |
//! | `ledger` | commits that clients know of, compared with what the database holds |
//! | `forecast`, `policy` | what works will do, and what they touch on this machine |
//!
//! # The way of a transaction
//!
//! The load core draws an operation: an action (which kind of transaction), the client's number, and 64 random bits from the
//! client's stream. It goes to a slot, whose loop (`slot`) is a future that is polled by hand: no channel, no task, no waker.
//! The loop begins the transaction, calls the workload's [`Transact::transact`](workload::Transact::transact) with a random
//! stream made of those 64 bits, and commits. A conflict is rolled back and done again with the same stream, so with the same
//! parameters. The latency of the operation is that of all attempts; the attempts are its retries. So the same seed gives the
//! same transactions, on however many threads and drivers, and whatever conflicts.
//!
//! A statement is a number: its place in [`Workload::statements`](workload::Workload::statements). The connection encodes it
//! into its buffer, sends, and reads the reply where it lies; results are parsed when they are asked for. Nothing allocates
//! once buffers have grown to what the workload needs.
//!
//! What is never done: a transaction whose `COMMIT` was lost with its connection is not tried again. It has failed as
//! [`Ambiguous`](tidemark_measure::fault::Fault::Ambiguous), because it may have been committed.
//!
//! # To add a workload
//!
//! One file in `workload/` and one line in [`workload::FAMILIES`]; `pgbench.rs` is the shortest example. It has
//! 0. a place for its keys in `docs/document.md`: `<!-- keys: NAME -->`, which `TIDEMARK_UPDATE=1` fills;
//! 1. a [`Family`](workload::Family): names, the mapping of its options (keys that other workloads have, too, stand in
//!    [`options`]), and how to read and open it;
//! 2. a type with [`Workload`](workload::Workload): tables, rows, statements, actions, checks, and the figures that users know
//!    it by. Rows are generated in *units*,
//!    each from its number alone, so that chunks can be loaded in any order, by anybody, and after an interruption: begin a unit
//!    with `Rng::new(SEED, &[table, unit])`. What must fit together in several tables (an order and its lines) uses the same
//!    stream for both. Options that change the rows belong into `data_options`; a change of the generator raises `version`;
//! 3. [`Transact`](workload::Transact): one `async` function. `operation.action` is the place in `actions`, `operation.space`
//!    the client's number from 1 (a terminal's home warehouse follows from it). All choices come from `rng`, and are made before
//!    or between statements, never from results' timing. Results: `transaction.query(ID, &[Int(7)]).await?.first()?.number(0)?`.
//!    Statements that do not need each other's results are `add`ed and then `run` together: with `pipeline: true` in one round
//!    trip, otherwise one after the other. Failures are passed on with `?`; the engine classes and retries them. A transaction
//!    that rolls back on purpose returns [`End::Rollback`](transaction::End::Rollback), which is a success. What is kept from
//!    transaction to transaction (buffers) is the slot's `State`.
//!
//! # To add a database
//!
//! - One that speaks PostgreSQL's protocol: a variant of [`Dialect`](dialect::Dialect), which the compiler then follows to
//!   every place that writes SQL, and a kind of target in `document/target.rs`.
//! - One with its own protocol: also a folder beside `postgres` with a `Connection` that has the methods of
//!   [`connection::Connection`](crate::connection), and one variant there. Statements come with `$1`, `$2` as placeholders: the
//!   connection rewrites them once, when it is made. Rows are handed out in PostgreSQL's layout ([`Rows`]), as text. Error
//!   codes become a [`Failure`] with its class: 1213 is a `Deadlock`, 1205 a `LockTimeout` (only the statement is rolled back, but
//!   the engine rolls back the transaction anyway). A protocol without pipelining sends one statement after the other in `run`.
//!   Bulk rows are encoded by [`Bulk`]: as a binary `COPY`, or as `INSERT` statements of many rows.
//! - What only some databases can do for the loader (locks, `CHECKPOINT`) is asked of the dialect in `data`; what one must be able
//!   to do before a load, in `preflight`; what one counts, in `evidence`.

mod admin;
mod bulk;
pub mod connection;
mod counted;
mod counterpart;
mod data;
pub mod databases;
pub mod dialect;
mod document;
mod engine;
mod evidence;
mod failure;
mod forecast;
pub mod instances;
pub mod job;
mod ledger;
pub mod mysql;
pub mod options;
mod plans;
mod policy;
pub mod postgres;
mod preflight;
mod prepare;
mod recorded;
mod replication;
pub mod rows;
pub mod schema;
mod server;
mod sessions;
mod slot;
pub mod statement;
mod stream;
#[cfg(test)]
mod testing;
pub mod transaction;
mod value;
pub mod workload;

pub use bulk::Bulk;
pub use counterpart::Equal;
pub use engine::Databases;
pub use failure::Failure;
pub use instances::Instances;
pub use rows::Rows;
pub use server::Server;
pub use statement::Statement;
pub use transaction::Transaction;
pub use value::Value;
