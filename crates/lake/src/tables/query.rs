//! Queries in streams, whatever answers them.

use crate::tables::answers::Answers;
use crate::tables::books::Books;
use crate::tables::failure::Failure;
use crate::tables::tasks::{Doing, Ended, Tasks};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_analytics::job::{Data, Queries};
use tidemark_load::engine::{Clock, Operation, Outcome, Tick};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Answer, QueryUse};
use tidemark_measure::rng::Rng;
use tidemark_measure::units;
use tidemark_tpc::answer::Digest;
use tidemark_tpc::queries::Dialect;

/// What answers the queries of one stream.
#[async_trait]
pub(crate) trait Stream: Send + Sync {
    /// Runs the statements of a query, one after the other, and adds the rows that they answer.
    async fn run(&self, sql: &str, rows: &mut Rows) -> Result<(), Failure>;

    /// Completes the record of the query that ran last, whether or not it came to its end.
    fn complete(&self, used: &mut QueryUse);
}

/// The rows of an answer, as they come.
pub(crate) struct Rows {
    began: Instant,
    answer: Digest,
    first_ns: Option<u64>,
    /// Time that went into looking at them.
    own: Duration,
}

/// What runs the queries of a load.
pub(crate) struct Runner {
    queries: Queries,
    dialect: Dialect,
    scale: f64,
    streams: Vec<Box<dyn Stream>>,
    answers: Answers,
    books: Arc<Books>,
    /// Called before each query, where the cache is to be cold.
    cool: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), answer: Digest::default(), first_ns: None, own: Duration::ZERO }
    }

    /// Adds rows that have just come, at least one.
    pub(crate) fn add<T>(&mut self, add: impl FnOnce(&mut Digest) -> T) -> T {
        let came = Instant::now();
        self.first_ns.get_or_insert_with(|| (came - self.began).as_nanos() as u64);
        let added = add(&mut self.answer);
        self.own += came.elapsed();
        added
    }

    /// What they are, in a few numbers.
    pub(crate) fn answer(&self) -> &Digest {
        &self.answer
    }
}

impl Runner {
    pub(crate) fn new(
        queries: &Queries,
        data: &Data,
        dialect: Dialect,
        streams: Vec<Box<dyn Stream>>,
        books: Arc<Books>,
    ) -> Self {
        Self {
            queries: queries.clone(),
            dialect,
            scale: data.scale(),
            streams,
            answers: Answers::new(data, queries),
            books,
            cool: None,
        }
    }

    /// The same, which calls this before each query.
    pub(crate) fn cooled(self, cool: impl Fn() + Send + Sync + 'static) -> Self {
        Self { cool: Some(Box::new(cool)), ..self }
    }

    async fn ran(
        &self,
        stream: &dyn Stream,
        operation: &Operation,
        clock: Clock,
        sent: Tick,
    ) -> Result<Ended, Failure> {
        let unknown = || Failure::new(Fault::Local, "the load has no such query");
        let query = self.queries.list.get(usize::from(operation.action)).ok_or_else(unknown)?;
        let mut rng = Rng::new(operation.random, &[]);
        let rng = self.queries.random.then_some(&mut rng);
        let sql = crate::tables::texts::sql(query, rng, self.scale, self.dialect)?;
        if let Some(cool) = &self.cool {
            cool();
        }
        let mut rows = Rows::new();
        let limit = Duration::from_nanos(self.queries.timeout_ns);
        let ran = tokio::time::timeout(limit, stream.run(&sql, &mut rows)).await;
        // A query that computes without a pause is looked at when it has ended, so the timer alone would let it pass.
        let ran = match ran {
            Ok(ran) if ran.is_err() || rows.began.elapsed().saturating_sub(rows.own) <= limit => ran,
            _ => {
                let limit = units::duration_ns(self.queries.timeout_ns);
                Err(Failure::new(Fault::Timeout, format!("it took longer than its `timeout` of {limit}")))
            }
        };
        let all_ns = rows.began.elapsed().as_nanos() as u64;
        let own_ns = rows.own.as_nanos() as u64;
        let compared = Instant::now();
        let count = rows.answer().rows();
        let answer = ran.and_then(|()| self.answers.compare(operation.action, rows.answer));
        self.books.spent(own_ns + compared.elapsed().as_nanos() as u64);
        let mut used = QueryUse {
            query: query.name.clone(),
            stream: u32::try_from(operation.space).unwrap_or(u32::MAX),
            pass: u32::try_from(operation.item + 1).unwrap_or(u32::MAX),
            began_ns: sent,
            // What the comparison of its answer took is none of the query's time.
            took_ns: all_ns.saturating_sub(own_ns),
            first_row_ns: rows.first_ns,
            rows: count,
            ..QueryUse::default()
        };
        stream.complete(&mut used);
        let failure = match answer {
            Ok(answer) => {
                used.answer = answer;
                None
            }
            Err(failure) => {
                if failure.fault == Fault::WrongAnswer {
                    used.answer = Answer::Differs;
                }
                used.fault = Some(failure.fault);
                Some(failure.of(&query.name))
            }
        };
        let bytes = used.storage.as_ref().map_or(0, |used| used.read_bytes);
        let first_byte = used.first_row_ns.map(|ns| sent + ns);
        let done = clock.now().min(sent + used.took_ns.max(1));
        self.books.ran(used);
        match failure {
            Some(failure) => Err(failure),
            None => Ok(Ended {
                outcome: Outcome { first_byte, ..Outcome::success(bytes) },
                done: Some(done),
                example: None,
            }),
        }
    }
}

impl Tasks for Runner {
    fn begin(self: Arc<Self>, slot: u32, operation: Operation, clock: Clock, sent: Tick) -> Doing {
        Box::pin(async move {
            let Some(stream) = self.streams.get(slot as usize) else {
                return Failure::new(Fault::Local, "the load has no such stream").ended();
            };
            self.ran(&**stream, &operation, clock, sent).await.unwrap_or_else(Failure::ended)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_analytics::job::{By, Query};
    use tidemark_analytics::sets::Set;

    /// Computes without a pause and answers one row.
    struct Computes(Duration);

    #[async_trait]
    impl Stream for Computes {
        async fn run(&self, _: &str, rows: &mut Rows) -> Result<(), Failure> {
            std::thread::sleep(self.0);
            rows.add(|digest| digest.add([Some("7")].into_iter()));
            Ok(())
        }

        fn complete(&self, _: &mut QueryUse) {}
    }

    #[tokio::test]
    async fn a_query_that_ends_after_its_limit_was_too_slow_even_if_no_timer_could_stop_it() {
        let data = Data { set: Set::Tpcds, scale_milli: 1, by: By::Tidemark };
        let limit = Duration::from_millis(20);
        let queries = Queries {
            list: vec![Query { name: "mine".into(), sql: Some("SELECT 1".into()) }],
            random: false,
            cache: None,
            timeout_ns: limit.as_nanos() as u64,
        };
        for (took, fault) in [(limit * 2, Some(Fault::Timeout)), (Duration::ZERO, None)] {
            let streams: Vec<Box<dyn Stream>> = vec![Box::new(Computes(took))];
            let runner = Runner::new(&queries, &data, Dialect::Standard, streams, Arc::default());
            let clock = Clock::starting_at(Instant::now());
            let ended = Arc::new(runner).begin(0, Operation::default(), clock, 0).await;
            assert_eq!(ended.outcome.fault, fault);
        }
    }
}
