//! What runs works: a crew of our own threads for one work, a fio process for one or several, or drivers elsewhere.

use crossbeam_channel::Sender;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;
use tidemark_fio::Fio;
use tidemark_load::crew::{self, Ending, Lead, Watch, Wish};
use tidemark_load::engine::{Engine, OpenError};
use tidemark_load::work::Share;
use tidemark_measure::record::Second;
use tidemark_measure::tally::Interval;
use tidemark_measure::wire::Glance;
use tidemark_plan::plan;

/// Works ready to run.
pub enum Player<'a> {
    /// One work, on threads of our own.
    Crew(&'a plan::Work, Box<dyn Engine>),
    /// Works that share a run of fio.
    Fio(Vec<&'a plan::Work>, Arc<Fio>),
    /// One work, on drivers.
    Elsewhere(&'a plan::Work, Box<dyn Elsewhere>),
    /// One work that has nothing to do, and why.
    Nothing(&'a plan::Work, String),
}

/// A work that runs on drivers.
pub trait Elsewhere: Send + Sync {
    /// Follows it to its end.
    fn follow(&self, work: &plan::Work, reporter: &mut Reporter<'_>) -> Result<crew::Result, OpenError>;
}

/// How one work ended.
pub(crate) struct Played<'a> {
    pub(crate) plan: &'a plan::Work,
    /// When it started, nanoseconds since the run's start.
    pub(crate) started_ns: u64,
    pub(crate) result: Result<crew::Result, OpenError>,
    pub(crate) series: Vec<Second>,
}

/// Something that is told while a work runs.
pub(crate) enum Told {
    /// A second is complete.
    Second(Box<Interval>),
    /// What one driver did in a second.
    Share(String, Glance),
    /// What the user should know.
    Trouble(String),
}

/// Where things are told, and the user's word comes from.
pub(crate) struct Line<'a> {
    pub(crate) run_start: Instant,
    pub(crate) threads: u32,
    pub(crate) told: Sender<(usize, Told)>,
    pub(crate) wish: &'a AtomicU8,
}

impl<'a> Player<'a> {
    /// The works, in the stage's order.
    pub fn works(&self) -> Vec<&'a plan::Work> {
        match self {
            Player::Crew(work, _) | Player::Elsewhere(work, _) | Player::Nothing(work, _) => vec![*work],
            Player::Fio(works, _) => works.clone(),
        }
    }

    /// Runs them to their end; `first` is the number of the first of them in the stage.
    pub(crate) fn play(&self, first: usize, line: &Line<'_>) -> Vec<Played<'a>> {
        let started_ns = line.run_start.elapsed().as_nanos() as u64;
        let works = self.works();
        let reporter = |index| Reporter {
            work: first + index,
            told: line.told.clone(),
            wish: line.wish,
            series: Vec::new(),
            started_ns,
        };
        let mut reporters: Vec<_> = (0..works.len()).map(reporter).collect();
        let results: Vec<Result<crew::Result, OpenError>> = match self {
            Player::Crew(work, engine) => {
                vec![crew::run(&work.load, &**engine, line.threads, &mut reporters[0])]
            }
            Player::Fio(works, fio) => {
                let mut watches: Vec<&mut dyn Watch> =
                    reporters.iter_mut().map(|reporter| reporter as &mut dyn Watch).collect();
                run_fio(fio, works, &mut watches)
            }
            Player::Elsewhere(work, elsewhere) => vec![elsewhere.follow(work, &mut reporters[0])],
            Player::Nothing(..) => vec![Ok(crew::Result::default())],
        };
        works
            .into_iter()
            .zip(results)
            .zip(reporters)
            .map(|((plan, result), reporter)| {
                let Reporter { started_ns, series, .. } = reporter;
                Played { plan, started_ns, result, series }
            })
            .collect()
    }

    /// Runs this process's shares of the works, one lead for each: a driver's part of a stage.
    pub fn play_shares(
        &self,
        shares: &[Share],
        threads: u32,
        leads: &mut [&mut dyn Lead],
    ) -> Vec<Result<Ending, OpenError>> {
        match (self, shares, &mut *leads) {
            (Player::Crew(work, engine), [share], [lead]) => {
                vec![crew::run_share(&work.load, *share, &**engine, threads, &mut **lead)]
            }
            (Player::Fio(works, fio), _, leads) => {
                // fio starts its clients itself: all that can be done is to start it in time.
                let start = leads.first_mut().and_then(|lead| lead.start());
                let Some(start) = start else {
                    let ending = || Ok(Ending { interrupted: true, ..Ending::default() });
                    return works.iter().map(|_| ending()).collect();
                };
                std::thread::sleep(start.saturating_duration_since(Instant::now()));
                let mut followers: Vec<_> = leads.iter_mut().map(|lead| Follower(&mut **lead)).collect();
                let mut watches: Vec<&mut dyn Watch> =
                    followers.iter_mut().map(|follower| follower as &mut dyn Watch).collect();
                let whole =
                    |result: crew::Result| Ending { whole: Some(Box::new(result)), ..Ending::default() };
                run_fio(fio, works, &mut watches).into_iter().map(|result| result.map(whole)).collect()
            }
            _ => {
                let error = || {
                    Err(OpenError("works and shares do not fit together; please report this as a bug".into()))
                };
                self.works().iter().map(|_| error()).collect()
            }
        }
    }
}

fn run_fio(
    fio: &Fio,
    works: &[&plan::Work],
    watches: &mut [&mut dyn Watch],
) -> Vec<Result<crew::Result, OpenError>> {
    match tidemark_fio::run(fio, works, watches) {
        Ok(results) => results.into_iter().map(Ok).collect(),
        Err(error) => works.iter().map(|_| Err(OpenError(error.to_string()))).collect(),
    }
}

/// A commander's lead as a watch.
struct Follower<'a>(&'a mut dyn Lead);

impl Watch for Follower<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.0.interval(interval);
    }

    fn wish(&mut self) -> Wish {
        self.0.word().wish
    }
}

/// Carries one work's seconds to the place where they are told.
pub struct Reporter<'a> {
    work: usize,
    told: Sender<(usize, Told)>,
    wish: &'a AtomicU8,
    series: Vec<Second>,
    started_ns: u64,
}

impl Reporter<'_> {
    /// The work starts at another time than now, nanoseconds since the run's start.
    pub fn started(&mut self, since_run_ns: u64) {
        self.started_ns = since_run_ns;
    }

    /// Tells what one driver did in a second; before the second itself.
    pub fn share(&mut self, driver: &str, glance: Glance) {
        self.tell(Told::Share(driver.to_owned(), glance));
    }

    /// Tells the user something that does not stop the run.
    pub fn trouble(&mut self, text: String) {
        self.tell(Told::Trouble(text));
    }

    fn tell(&mut self, told: Told) {
        // Nobody listens any more only when the stage has been torn down.
        let _ = self.told.send((self.work, told));
    }
}

impl Watch for Reporter<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.series.push(Second::from(interval));
        self.tell(Told::Second(Box::new(interval.clone())));
    }

    fn wish(&mut self) -> Wish {
        match self.wish.load(Ordering::Relaxed) {
            0 => Wish::GoOn,
            1 => Wish::Finish,
            _ => Wish::Stop,
        }
    }
}
