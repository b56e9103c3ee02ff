//! What runs works: a crew of our own threads for one work, or a fio process for one or several.

use crossbeam_channel::Sender;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;
use tidemark_fio::Fio;
use tidemark_load::crew::{self, Watch, Wish};
use tidemark_load::engine::{Engine, OpenError};
use tidemark_measure::record::Second;
use tidemark_measure::tally::Interval;
use tidemark_plan::plan;

/// Works ready to run.
pub(crate) enum Player<'a> {
    /// One work, on threads of our own.
    Crew(&'a plan::Work, Box<dyn Engine>),
    /// Works that share a run of fio.
    Fio(Vec<&'a plan::Work>, Arc<Fio>),
}

/// How one work ended.
pub(crate) struct Played<'a> {
    pub(crate) plan: &'a plan::Work,
    /// When it started, nanoseconds since the run's start.
    pub(crate) started_ns: u64,
    pub(crate) result: Result<crew::Result, OpenError>,
    pub(crate) series: Vec<Second>,
}

/// Where seconds are told, and the user's word comes from.
pub(crate) struct Line<'a> {
    pub(crate) run_start: Instant,
    pub(crate) threads: u32,
    pub(crate) seconds: Sender<(usize, Box<Interval>)>,
    pub(crate) wish: &'a AtomicU8,
}

impl<'a> Player<'a> {
    /// The works, in the stage's order.
    pub(crate) fn works(&self) -> Vec<&'a plan::Work> {
        match self {
            Player::Crew(work, _) => vec![*work],
            Player::Fio(works, _) => works.clone(),
        }
    }

    /// Runs them to their end; `first` is the number of the first of them in the stage.
    pub(crate) fn play(&self, first: usize, line: &Line<'_>) -> Vec<Played<'a>> {
        let started_ns = line.run_start.elapsed().as_nanos() as u64;
        let works = self.works();
        let reporter = |index| Reporter {
            work: first + index,
            seconds: line.seconds.clone(),
            wish: line.wish,
            series: Vec::new(),
        };
        let mut reporters: Vec<_> = (0..works.len()).map(reporter).collect();
        let results: Vec<Result<crew::Result, OpenError>> = match self {
            Player::Crew(work, engine) => {
                vec![crew::run(&work.load, &**engine, line.threads, &mut reporters[0])]
            }
            Player::Fio(works, fio) => {
                let mut watches: Vec<&mut dyn Watch> =
                    reporters.iter_mut().map(|reporter| reporter as &mut dyn Watch).collect();
                match tidemark_fio::run(fio, works, &mut watches) {
                    Ok(results) => results.into_iter().map(Ok).collect(),
                    Err(error) => works.iter().map(|_| Err(OpenError(error.to_string()))).collect(),
                }
            }
        };
        works
            .into_iter()
            .zip(results)
            .zip(reporters)
            .map(|((plan, result), reporter)| Played { plan, started_ns, result, series: reporter.series })
            .collect()
    }
}

/// Carries one work's seconds to the place where they are told.
struct Reporter<'a> {
    work: usize,
    seconds: Sender<(usize, Box<Interval>)>,
    wish: &'a AtomicU8,
    series: Vec<Second>,
}

impl Watch for Reporter<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.series.push(Second::from(interval));
        // Nobody listens any more only when the stage has been torn down.
        let _ = self.seconds.send((self.work, Box::new(interval.clone())));
    }

    fn wish(&mut self) -> Wish {
        match self.wish.load(Ordering::Relaxed) {
            0 => Wish::GoOn,
            1 => Wish::Finish,
            _ => Wish::Stop,
        }
    }
}
