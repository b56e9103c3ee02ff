//! Lives begun when they are due: at times fixed in advance, or as soon as a worker's last one is over.

use crate::books::{Books, Closed};
use crate::job::Job;
use crate::life::{Life, Over, Shared};
use crate::manifests::Owner;
use crate::survey::Survey;
use crate::watching::Watches;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tidemark_apiserver::Client;
use tidemark_load::engine::OpenError;
use tidemark_load::stop::StopRequest;
use tidemark_load::thread_pool::{Result as Outcome, Watch};
use tidemark_measure::tally::Tally;
use tidemark_plan::engine::Process;
use tidemark_plan::plan::Work;

/// How often it is looked whether a second is over, or the user ends the load.
const LOOK: Duration = Duration::from_millis(50);

/// So many lives that fail, and none that does not, are enough to know that this class gives no volumes: no more are begun.
const ENOUGH: u32 = 3;

/// The lives of a work.
pub(crate) struct Lives {
    pub(crate) client: Arc<Client>,
    pub(crate) survey: Survey,
    pub(crate) owner: Owner,
}

impl Process for Lives {
    fn run(&self, works: &[&Work], watches: &mut [&mut dyn Watch]) -> Vec<Result<Outcome, OpenError>> {
        let pairs = works.iter().zip(watches);
        pairs.map(|(work, watch)| self.one(work, &mut **watch).map_err(OpenError)).collect()
    }
}

impl Lives {
    fn one(&self, work: &Work, watch: &mut dyn Watch) -> Result<Outcome, String> {
        let job = Job::of(work).ok_or("its job is not one on volumes")?.clone();
        let (known, watches) = Watches::begin(&self.client, &self.owner.run, &self.survey)?;
        let Some(began) = watch.start() else {
            return Ok(Outcome { interrupted: true, ..Outcome::default() });
        };
        std::thread::sleep(began.saturating_duration_since(Instant::now()));
        let all_phases = job.phases();
        let of_life = self.survey.phases(&job).len() as u64;
        let shared = Shared {
            client: Arc::clone(&self.client),
            books: Books::new(began, all_phases, job.rate.is_some()),
            survey: self.survey.clone(),
            owner: self.owner.clone(),
            known: Arc::clone(&known),
            job,
        };
        let begun = Begun::default();
        let workers = work.load.workers.min(shared.job.lives);
        let mut interrupted = false;
        std::thread::scope(|scope| -> Result<(), String> {
            let mut threads = Vec::new();
            for worker in 0..workers {
                let (shared, begun) = (&shared, &begun);
                let body = move || work_off(shared, begun, worker, began);
                let thread =
                    std::thread::Builder::new().name(format!("life-{worker}")).spawn_scoped(scope, body);
                threads.push(thread.map_err(|error| {
                    known.end();
                    format!("cannot start a thread for a life: {error}")
                })?);
            }
            while threads.iter().any(|thread| !thread.is_finished()) {
                std::thread::sleep(LOOK);
                while let Some(second) = shared.books.next(false) {
                    watch.interval(&second);
                }
                if watch.stop_request() != StopRequest::None && !interrupted {
                    interrupted = true;
                    shared.known.end();
                }
            }
            Ok(())
        })?;
        while let Some(second) = shared.books.next(true) {
            watch.interval(&second);
        }
        drop(watches);
        let lives = shared.job.lives;
        let not_begun = lives.saturating_sub(begun.count.into_inner());
        let Closed { tallies, workers: counts, examples, last_done_ns } = shared.books.close();
        let ended: u64 = tallies.iter().map(Tally::total).sum();
        let given_up = match examples.first() {
            Some(why) if not_begun > 0 && !interrupted => {
                format!("no volume lived, and the first {ENOUGH} failed: {}", why.text)
            }
            _ => String::new(),
        };
        Ok(Outcome {
            tallies,
            window_end_ns: last_done_ns,
            last_done_ns,
            workers: counts,
            examples,
            threads: workers,
            undone: match interrupted {
                true => (u64::from(lives) * of_life).saturating_sub(ended),
                false => u64::from(not_begun) * of_life,
            },
            given_up,
            interrupted,
            ..Outcome::default()
        })
    }
}

/// How lives have gone so far.
#[derive(Default)]
struct Begun {
    /// The number of the next one.
    next: AtomicU32,
    count: AtomicU32,
    lived: AtomicU32,
    failed: AtomicU32,
}

impl Begun {
    /// Whether another one is worth its while.
    fn has_hope(&self) -> bool {
        self.lived.load(Ordering::Relaxed) > 0 || self.failed.load(Ordering::Relaxed) < ENOUGH
    }
}

/// Lives one life after the other until there is none left, or no hope.
fn work_off(shared: &Shared, begun: &Begun, worker: u32, began: Instant) {
    let goes_on = || !shared.known.is_over() && begun.has_hope();
    loop {
        let free = Instant::now();
        let number = begun.next.fetch_add(1, Ordering::Relaxed);
        if number >= shared.job.lives {
            return;
        }
        let due = match shared.job.rate {
            None => free,
            Some(rate) => began + Duration::from_secs_f64(f64::from(number) / rate),
        };
        while goes_on() && Instant::now() < due {
            std::thread::sleep(due.saturating_duration_since(Instant::now()).min(LOOK));
        }
        if !goes_on() {
            return;
        }
        begun.count.fetch_add(1, Ordering::Relaxed);
        shared.books.begins(number);
        let lived = Life::live(shared, number, worker, due, free);
        shared.books.ends(number);
        match lived {
            Ok(()) => begun.lived.fetch_add(1, Ordering::Relaxed),
            Err(Over::Failed) => begun.failed.fetch_add(1, Ordering::Relaxed),
            Err(Over::Stopped) => return,
        };
    }
}
