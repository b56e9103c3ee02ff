//! One work of a stage on its drivers: their seconds merged as they come, decisions sent back to all of them.

use crate::board::{Board, News, Started};
use crate::deal::Seats;
use crate::protocol::{Down, Order};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_control::player::{Elsewhere, Reporter};
use tidemark_load::crew::{self, Ending, Watch as _, Wish};
use tidemark_load::engine::OpenError;
use tidemark_load::merge::{Decision, Merge};
use tidemark_measure::record::{Share, ShareSecond};
use tidemark_measure::wire::Glance;
use tidemark_plan::plan::{OnLoss, Work};

/// From the decision that a load is steady to the window: time for it to reach every driver.
const WINDOW_AHEAD: Duration = Duration::from_millis(300);

/// Where a work hears of its drivers.
pub(crate) type Route = Receiver<News>;

/// Which work, on whom.
pub(crate) struct Line {
    pub(crate) stage: u32,
    pub(crate) work: u32,
    pub(crate) seats: Vec<Seats>,
    pub(crate) on_loss: OnLoss,
    pub(crate) started: Started,
}

/// A work on drivers.
pub(crate) struct Remote {
    pub(crate) board: Arc<Board>,
    pub(crate) line: Line,
    pub(crate) heard: Route,
}

/// What is known of one driver's share.
struct Source {
    share: Share,
    open: bool,
}

impl Elsewhere for Remote {
    fn follow(&self, work: &Work, reporter: &mut Reporter<'_>) -> Result<crew::Result, OpenError> {
        reporter.started(self.line.started.since_run_ns);
        let mut merge = Merge::new(&work.load, self.line.seats.len() as u32);
        let mut sources: Vec<_> = self.line.seats.iter().map(|seats| self.source(*seats)).collect();
        let mut endings: Vec<Ending> = Vec::new();
        let (mut trouble, mut loss, mut told) = (None, String::new(), Wish::GoOn);
        while sources.iter().any(|source| source.open) {
            let news = match self.heard.recv_timeout(Duration::from_millis(50)) {
                Ok(news) => Some(news),
                Err(RecvTimeoutError::Timeout) => None,
                // The board is kept by this very work.
                Err(RecvTimeoutError::Disconnected) => break,
            };
            match news {
                Some(News::Second(driver, bytes)) => {
                    let Some(index) = self.index_of(driver) else { continue };
                    match merge.take_encoded(index as u32, &bytes) {
                        Ok(glance) => {
                            sources[index].add(&glance);
                            reporter.share(&self.board.name(driver), glance);
                        }
                        Err(error) => {
                            self.board.give_up(driver, &format!("what it sent is damaged: {error}"));
                        }
                    }
                }
                Some(News::Ended(driver, ending)) => {
                    let Some(index) = self.index_of(driver) else { continue };
                    match ending {
                        Ok(ending) => {
                            sources[index].end(&ending, self.correction(driver), &self.line.started);
                            endings.push(*ending);
                        }
                        Err(reason) => {
                            trouble.get_or_insert(format!("driver {}: {reason}", self.board.name(driver)));
                            self.order(Order::Finish);
                        }
                    }
                    sources[index].open = false;
                    merge.gone(index as u32);
                }
                Some(News::Over(driver)) => {
                    let Some(index) = self.index_of(driver) else { continue };
                    sources[index].open = false;
                    merge.gone(index as u32);
                }
                Some(News::Away(driver)) => {
                    self.tell(reporter, driver, "cannot be heard; if it comes back in time, nothing is lost");
                }
                Some(News::Back(driver)) => self.tell(reporter, driver, "is back; nothing was lost"),
                Some(News::Lost(driver, reason)) => {
                    self.tell(reporter, driver, &format!("is lost: {reason}"));
                    if let Some(index) = self.index_of(driver) {
                        sources[index].open = false;
                        merge.gone(index as u32);
                        loss = format!("driver {} was lost: {reason}", self.board.name(driver));
                        if does_each_once(work) {
                            trouble
                                .get_or_insert(format!("{loss}, and with it operations that had to be done"));
                        }
                    }
                    if self.line.on_loss == OnLoss::Stop {
                        loss = format!("driver {} was lost: {reason}", self.board.name(driver));
                        trouble.get_or_insert(loss.clone());
                        merge.ended_early(self.since_start());
                        self.order(Order::Finish);
                    }
                }
                None => {}
            }
            merge.emit(reporter);
            match merge.decision() {
                Some(Decision::OpenWindow) => self.open_window(&mut merge),
                Some(Decision::GiveUp) => self.order(Order::Finish),
                None => {}
            }
            let wish = reporter.wish();
            if wish != told {
                merge.ended_early(self.since_start());
                self.order(if wish == Wish::Stop { Order::Stop } else { Order::Finish });
                told = wish;
            }
        }
        merge.flush(reporter);
        self.board.keep_shares(sources.into_iter().map(|source| source.share).collect());
        let mut result = merge.result(endings);
        if let Some(trouble) = trouble {
            // What was measured is kept with the reason.
            result.given_up = trouble;
        } else if !loss.is_empty() {
            result.remarks.push(format!("The load went on without a driver: {loss}."));
        }
        // The drivers end early for losses too, which is not the user's doing.
        result.interrupted = told != Wish::GoOn;
        Ok(result)
    }
}

impl Remote {
    fn source(&self, seats: Seats) -> Source {
        let share = Share {
            driver: seats.driver as u32,
            work: self.line.work,
            first_worker: seats.first,
            workers: seats.count,
            ..Share::default()
        };
        Source { share, open: !self.board.is_lost(seats.driver) }
    }

    fn index_of(&self, driver: usize) -> Option<usize> {
        self.line.seats.iter().position(|seats| seats.driver == driver)
    }

    fn since_start(&self) -> u64 {
        Instant::now().saturating_duration_since(self.line.started.at).as_nanos() as u64
    }

    /// Tells the user of a driver; once, though every work of the stage hears of it.
    fn tell(&self, reporter: &mut Reporter<'_>, driver: usize, what: &str) {
        if self.line.work == 0 {
            reporter.trouble(format!("driver {} {what}", self.board.name(driver)));
        }
    }

    fn order(&self, order: Order) {
        for seats in &self.line.seats {
            self.order_one(seats.driver, order);
        }
    }

    fn order_one(&self, driver: usize, order: Order) {
        let (run, stage, work) = (self.board.run, self.line.stage, Some(self.line.work));
        if !self.board.is_lost(driver) {
            self.board.send(driver, Down::Order { run, stage, work, order });
        }
    }

    fn open_window(&self, merge: &mut Merge) {
        let at = Instant::now() + WINDOW_AHEAD;
        let since_start = at.saturating_duration_since(self.line.started.at).as_nanos() as u64;
        merge.window_opened(since_start);
        // The drivers' clocks as they were taken to be at the start: the window is as far from it on all of them.
        let clock = self.board.clock_of(at);
        for seats in &self.line.seats {
            let at_ns = clock.saturating_add(self.line.started.offsets[seats.driver]).max(0) as u64;
            self.order_one(seats.driver, Order::Window { at_ns });
        }
    }

    /// By how much a driver's clock was further ahead at the start than is known now, nanoseconds: so much later did
    /// it start than it was to.
    fn correction(&self, driver: usize) -> i64 {
        self.line.started.offsets[driver].saturating_sub(self.board.offsets()[driver])
    }
}

impl Source {
    fn add(&mut self, glance: &Glance) {
        self.share.ok += glance.ok;
        self.share.failed += glance.failed;
        self.share.bytes += glance.bytes;
        self.share.series.push(ShareSecond {
            index: glance.index,
            ok: glance.ok,
            failed: glance.failed,
            bytes: glance.bytes,
            p50_ns: glance.p50_ns,
            p99_ns: glance.p99_ns,
            busy: glance.busy,
        });
    }

    fn end(&mut self, ending: &Ending, correction_ns: i64, started: &Started) {
        self.share.complete = true;
        self.share.threads = ending.whole.as_ref().map_or(ending.threads, |whole| whole.threads);
        self.share.first_sent_ns = ending
            .first_sent_ns
            .map(|first| started.since_run_ns.saturating_add(first).saturating_add_signed(correction_ns));
    }
}

/// Whether a work has to do each of its operations once, so that what a driver did not do is missing.
fn does_each_once(work: &Work) -> bool {
    work.load.source.operations().is_some() || work.load.stop.operations.is_some()
}
