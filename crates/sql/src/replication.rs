//! How far replicas are behind their primary, measured by a marker row while a load is on.
//!
//! One observer writes a growing number into a row of its own on the primary, again and again, and looks for it on each
//! replica. A marker's lag is the time from the acknowledgement of its commit to the first read that shows it, or a later one:
//! all on this process's one clock, so that no server's clock matters. A replica is asked every [`POLL`] as long as it owes a
//! marker, and so often a lag may be too long, beside the round trip of the read itself. None of this is on the load's threads,
//! and none of it counts as the load's.

use crate::admin::Admin;
use crate::databases::ReplicaLag;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::instances::try_together;
use crate::ledger::unused_number;
use crate::server::Server;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidemark_measure::histogram::Histogram;

/// How often a marker is written.
const PERIOD: Duration = Duration::from_millis(250);

/// How often a replica is asked that owes a marker.
const POLL: Duration = Duration::from_millis(5);

/// How long one question may take, nanoseconds.
const ANSWER_NS: u64 = 5_000_000_000;

/// How long a server is left alone that could not be asked.
const PAUSE: Duration = Duration::from_millis(200);

/// When the load is over: for how long a replica may show nothing new, and how long it is waited for in all.
const STANDSTILL: Duration = Duration::from_secs(5);
const WAITED_MOST: Duration = Duration::from_secs(20);

/// How long replicas may take to have what was loaded on the primary, before a load that reads from them.
const CATCH_UP: Duration = Duration::from_secs(120);

/// Drops the markers' table.
pub(crate) const DROP: &str = "DROP TABLE IF EXISTS tidemark_replica_lag";

/// An observer that has its row, and has not begun.
pub(crate) struct Observer {
    primary: Arc<Server>,
    replicas: Vec<Arc<Server>>,
    /// Its row: no other observer has this number.
    row: i64,
}

impl Observer {
    /// Makes the markers' table on the primary, unless it is there, and a row in it.
    ///
    /// # Errors
    /// Why that could not be, and what to do.
    pub(crate) fn prepare(primary: &Arc<Server>, replicas: Vec<Arc<Server>>) -> Result<Self, String> {
        let row = unused_number();
        let mut admin = Admin::connect(primary)?;
        let made = create(&mut admin, primary.target.dialect).and_then(|()| {
            admin.run(&format!("INSERT INTO tidemark_replica_lag (observer, marker) VALUES ({row}, 0)"))
        });
        let refused = |failure: Failure| {
            let who = primary.target.describe();
            format!(
                "{who}: the table tidemark_replica_lag, by which the lag of replicas is measured, cannot be made: {failure}"
            )
        };
        made.map_err(refused)?;
        Ok(Self { primary: Arc::clone(primary), replicas, row })
    }

    /// Waits until all replicas have what the primary has had when this observer was prepared.
    ///
    /// # Errors
    /// Which have not, and what to do.
    pub(crate) fn wait_for_replicas(&self) -> Result<(), String> {
        let begun = Instant::now();
        let wait = |replica: &Arc<Server>| {
            let mut line = Line::new(Arc::clone(replica));
            loop {
                let shown = line.marker(self.row);
                if let Ok(Some(_)) = shown {
                    return Ok(());
                }
                if begun.elapsed() > CATCH_UP {
                    let why = shown.err().map(|why| format!(" ({why})")).unwrap_or_default();
                    return Err(format!(
                        "{} has not shown for {} s what was written on the primary{why}: the load reads from it; check that it \
                         follows this primary and that replication runs",
                        replica.target.describe(),
                        CATCH_UP.as_secs()
                    ));
                }
                line.pause();
            }
        };
        try_together(&self.replicas, wait).map(|_| ())
    }

    /// Begins to write markers and to look for them.
    pub(crate) fn begin(self) -> Observing {
        let (markers, row) = (Arc::new(Markers::default()), self.row);
        let writer = {
            let (markers, primary) = (Arc::clone(&markers), Arc::clone(&self.primary));
            std::thread::spawn(move || write(&markers, Line::new(primary), row))
        };
        let reader = |replica: &Arc<Server>| {
            let (markers, replica) = (Arc::clone(&markers), Arc::clone(replica));
            std::thread::spawn(move || look(&markers, Line::new(replica), row))
        };
        let readers = self.replicas.iter().map(reader).collect();
        Observing { observer: self, markers, writer: Some(writer), readers }
    }
}

/// Makes the markers' table, unless it is there.
fn create(admin: &mut Admin, dialect: Dialect) -> Result<(), Failure> {
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS tidemark_replica_lag (observer bigint NOT NULL, marker bigint NOT NULL, \
         PRIMARY KEY (observer)){}",
        dialect.storage(10)
    );
    // Two that make the same table at the same time get in each other's way once.
    admin.run(&sql).or_else(|_| admin.run(&sql))
}

/// An observer at work. It ends, without a result, with this.
pub(crate) struct Observing {
    observer: Observer,
    markers: Arc<Markers>,
    writer: Option<JoinHandle<()>>,
    readers: Vec<JoinHandle<ReplicaLag>>,
}

impl Observing {
    /// The load is over: writes no more, and waits a while for what replicas still owe. Gives the lag of each.
    pub(crate) fn end(mut self) -> Vec<ReplicaLag> {
        self.markers.change(|state| state.over = Some(Instant::now()));
        let writer = self.writer.take().map(JoinHandle::join);
        debug_assert!(!matches!(writer, Some(Err(_))), "the writer panicked");
        let readers = std::mem::take(&mut self.readers);
        let lags = readers.into_iter().filter_map(|reader| reader.join().ok()).collect();
        // What cannot be tidied up is a row that nobody reads.
        if let Ok(mut admin) = Admin::connect(&self.observer.primary) {
            let row = self.observer.row;
            let _ = admin.run(&format!("DELETE FROM tidemark_replica_lag WHERE observer = {row}"));
        }
        lags
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        self.markers.change(|state| {
            state.over = Some(Instant::now());
            state.abandoned = true;
        });
    }
}

/// Markers of an observer, for its threads.
#[derive(Default)]
struct Markers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Those whose commit was acknowledged, in order, and when it was.
    acknowledged: Vec<(i64, Instant)>,
    /// Since when no more are written.
    over: Option<Instant>,
    /// Nobody wants to know any more.
    abandoned: bool,
}

impl Markers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Waits for a time, or until the load is over; whether it is.
    fn is_over_within(&self, time: Duration) -> bool {
        let goes_on = |state: &mut State| state.over.is_none();
        let waited = self.changed.wait_timeout_while(self.state(), time, goes_on);
        waited.unwrap_or_else(PoisonError::into_inner).0.over.is_some()
    }

    /// Waits until there are more than so many markers, and says since when no more are written; `None`: there will not be.
    fn more_than(&self, count: usize) -> Option<Option<Instant>> {
        let lacks = |state: &mut State| state.over.is_none() && state.acknowledged.len() <= count;
        let state = self.changed.wait_while(self.state(), lacks).unwrap_or_else(PoisonError::into_inner);
        (state.acknowledged.len() > count && !state.abandoned).then_some(state.over)
    }
}

/// Writes markers until the load is over. One that could not be written, or whose acknowledgement was lost, is none.
fn write(markers: &Markers, mut line: Line, row: i64) {
    for number in 1.. {
        let due = Instant::now() + PERIOD;
        let sql = format!("UPDATE tidemark_replica_lag SET marker = {number} WHERE observer = {row}");
        if line.ask(|admin| admin.run(&sql)).is_ok() {
            let now = Instant::now();
            markers.change(|state| state.acknowledged.push((number, now)));
        }
        if markers.is_over_within(due.saturating_duration_since(Instant::now())) {
            return;
        }
    }
}

/// Looks for markers on a replica until the load is over and it owes none, or does not come on.
fn look(markers: &Markers, mut line: Line, row: i64) -> ReplicaLag {
    let mut lags = Histogram::new();
    // How many it has shown, and when the last one.
    let (mut shown, mut came_on) = (0, Instant::now());
    while let Some(over) = markers.more_than(shown) {
        if over.is_some_and(|over| over.elapsed() > WAITED_MOST || over.max(came_on).elapsed() > STANDSTILL) {
            break;
        }
        let marker = line.marker(row);
        let now = Instant::now();
        let state = markers.state();
        let newly = |number: i64| matches!(marker, Ok(Some(marker)) if number <= marker);
        let newly = state.acknowledged[shown..].iter().take_while(|(number, _)| newly(*number));
        for (_, acknowledged) in newly {
            // One may be seen before its acknowledgement is.
            lags.record(
                now.saturating_duration_since(*acknowledged).as_nanos().try_into().unwrap_or(u64::MAX),
            );
            (shown, came_on) = (shown + 1, now);
        }
        let owes = state.acknowledged.len() > shown;
        drop(state);
        if owes {
            line.pause();
        }
    }
    let state = markers.state();
    let owed = &state.acknowledged[shown..];
    let waited = owed.first().map_or(Duration::ZERO, |(_, acknowledged)| acknowledged.elapsed());
    ReplicaLag {
        server: line.server.target.describe(),
        markers: state.acknowledged.len() as u64,
        unseen: owed.len() as u64,
        waited_ns: waited.as_nanos().try_into().unwrap_or(u64::MAX),
        mean_ns: lags.mean() as u64,
        p50_ns: lags.quantile(0.5),
        p99_ns: lags.quantile(0.99),
        max_ns: lags.max(),
        poll_ns: POLL.as_nanos() as u64,
    }
}

/// A server that is asked again and again, on a connection that is made again when it is lost.
struct Line {
    server: Arc<Server>,
    admin: Option<Admin>,
}

impl Line {
    fn new(server: Arc<Server>) -> Self {
        Self { server, admin: None }
    }

    fn ask<T>(&mut self, question: impl FnOnce(&mut Admin) -> Result<T, Failure>) -> Result<T, String> {
        let admin = match &mut self.admin {
            Some(admin) => admin,
            none => {
                let mut admin = Admin::connect(&self.server)?;
                admin.set_timeout(ANSWER_NS);
                none.insert(admin)
            }
        };
        let answer = question(admin);
        if answer.as_ref().is_err_and(|failure| failure.lost) {
            self.admin = None;
        }
        answer.map_err(|failure| failure.to_string())
    }

    /// Waits before the next question.
    fn pause(&self) {
        std::thread::sleep(if self.admin.is_some() { POLL } else { PAUSE });
    }

    /// The marker in an observer's row; nothing where the row is not there yet.
    fn marker(&mut self, row: i64) -> Result<Option<i64>, String> {
        let sql = format!("SELECT marker FROM tidemark_replica_lag WHERE observer = {row}");
        self.ask(|admin| admin.value(&sql)).map(|marker| marker.and_then(|text| text.parse().ok()))
    }
}
