//! Statements, from their text to their last row. One that is given up, the cluster is told to give up too.
//!
//! The protocol is that of Trino's *Client REST API*: the text is posted to `/v1/statement`; each reply has a part of the answer, and
//! names where to ask for the next one. A coordinator that has nothing new answers after a second, so nobody has to wait here.

use super::http::{Address, Ask, Connection};
use crate::tables::failure::Failure;
use bytes::Bytes;
use hyper::Method;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidemark_load::budget::Budget;
use tidemark_measure::fault::Fault;
use tidemark_measure::units;
use tidemark_trino::Reply;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Where statements are posted.
const STATEMENT: &str = "/v1/statement";

/// Time limit of telling a cluster that a statement is given up.
const CANCEL: Duration = Duration::from_secs(5);

/// Time limit, most rows, most bytes in memory and most bytes of all replies of a [question](Coordinator::answer): whoever asks one expects
/// less by far.
const QUESTION: Duration = Duration::from_secs(120);
const MOST_ROWS: usize = 100_000;
const MOST_BYTES: usize = 64 << 20;
const MOST_RECEIVED: u64 = 128 << 20;

/// What a cell takes in memory beside its text, bytes.
const PER_CELL: usize = 40;

/// A coordinator, and what it is to give up.
pub(crate) struct Coordinator {
    pub address: Address,
    cancelling: Mutex<Vec<JoinHandle<()>>>,
}

/// A statement that has not ended.
struct Open<'a> {
    coordinator: &'a Arc<Coordinator>,
    /// Where it goes on.
    next: Option<String>,
}

/// A row of a small answer; null is none.
pub(crate) type Row = Vec<Option<String>>;

impl Coordinator {
    pub(crate) fn new(address: Address) -> Arc<Self> {
        Arc::new(Self { address, cancelling: Mutex::default() })
    }

    /// Runs a statement, and gives each reply to `take`, which says if one makes no sense.
    pub(crate) async fn run(
        self: &Arc<Self>,
        connection: &mut Connection,
        sql: &str,
        mut take: impl FnMut(&Reply<'_>) -> Result<(), String> + Send,
    ) -> Result<(), Failure> {
        let post = Ask {
            method: Method::POST,
            path: STATEMENT,
            body: Bytes::copy_from_slice(sql.as_bytes()),
            again: false,
        };
        let mut open = Open { coordinator: self, next: None };
        let mut body = self.address.ask(connection, post).await?;
        let mut before = None;
        while let Some(next) = self.look(&body, &mut open, &mut take)? {
            // Each part of an answer has an address of its own: whoever is sent in a circle would ask for ever.
            if before.as_ref() == Some(&next) {
                let words = "its reply is invalid: `nextUri` is the address that was just requested";
                return Err(self.address.failed(Fault::Protocol, words));
            }
            before = Some(next.clone());
            body = self.address.ask(connection, Ask::get(&next)).await?;
        }
        Ok(())
    }

    /// Looks at a reply: gives where there is more.
    fn look(
        &self,
        body: &[u8],
        open: &mut Open<'_>,
        take: &mut impl FnMut(&Reply<'_>) -> Result<(), String>,
    ) -> Result<Option<String>, Failure> {
        let nonsense =
            |why: String| self.address.failed(Fault::Protocol, &format!("its reply makes no sense: {why}"));
        let reply = Reply::read(body).map_err(nonsense)?;
        let next = reply.next_uri.as_deref().map(|uri| self.address.own(uri)).transpose()?;
        open.next.clone_from(&next);
        take(&reply).map_err(nonsense)?;
        match &reply.error {
            Some(error) => {
                open.next = None;
                Err(self.address.failed(error.class(), &error.words()))
            }
            None => Ok(next),
        }
    }

    /// The rows of a small answer.
    pub(crate) async fn answer(self: &Arc<Self>, sql: &str) -> Result<Vec<Row>, Failure> {
        self.answer_within(sql, &Budget::of(MOST_RECEIVED)).await
    }

    /// The same as a part of an undertaking that may be sent so much.
    pub(crate) async fn answer_within(
        self: &Arc<Self>,
        sql: &str,
        budget: &Budget,
    ) -> Result<Vec<Row>, Failure> {
        let (mut rows, mut bytes): (Vec<Row>, usize) = (Vec::new(), 0);
        let mut connection = Connection::within(budget);
        let running = self.run(&mut connection, sql, |reply| {
            reply.rows(|row| {
                bytes += row
                    .iter()
                    .map(|cell| PER_CELL + cell.as_ref().map_or(0, |cell| cell.len()))
                    .sum::<usize>();
                if rows.len() <= MOST_ROWS && bytes <= MOST_BYTES {
                    rows.push(row.iter().map(|cell| cell.as_ref().map(ToString::to_string)).collect());
                }
            })?;
            match rows.len() > MOST_ROWS || bytes > MOST_BYTES {
                true => Err(format!(
                    "more than {} rows or {} MiB",
                    units::count(MOST_ROWS as u64),
                    MOST_BYTES >> 20
                )),
                false => Ok(()),
            }
        });
        match timeout(QUESTION, running).await {
            Ok(ran) => ran.map(|()| rows),
            Err(_) => {
                let words = format!("it did not answer within {} s", QUESTION.as_secs());
                Err(self.address.failed(Fault::Timeout, &words))
            }
        }
    }

    /// Runs a statement without an answer that counts.
    pub(crate) async fn execute(self: &Arc<Self>, sql: &str) -> Result<(), Failure> {
        self.answer(sql).await.map(drop)
    }

    /// Waits until the cluster has been told of all statements that were given up.
    pub(crate) async fn settle(&self) {
        let cancelling = std::mem::take(&mut *self.lock());
        for one in cancelling {
            // It has a limit of its own.
            let _ = one.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.cancelling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let (Some(next), Ok(runtime)) = (self.next.take(), Handle::try_current()) else { return };
        let coordinator = Arc::clone(self.coordinator);
        let cancelling = runtime.spawn(async move {
            let delete = Ask { method: Method::DELETE, path: &next, body: Bytes::new(), again: true };
            // If it is not told, it gives up a statement by itself, minutes after nobody asks for more.
            let _ = timeout(CANCEL, coordinator.address.ask(&mut Connection::default(), delete)).await;
        });
        let mut all = self.coordinator.lock();
        all.retain(|one| !one.is_finished());
        all.push(cancelling);
    }
}
