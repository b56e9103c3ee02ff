//! Lives begun when they are due: at times fixed in advance, or as soon as a worker's last one is over.

use crate::books::{Books, Closed};
use crate::job::Job;
use crate::life::{Life, Shared};
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
use tidemark_plan::engine::Process;
use tidemark_plan::plan::Work;

/// How often it is looked whether a second is over, or the user ends the load.
const LOOK: Duration = Duration::from_millis(50);

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
        let next = AtomicU32::new(0);
        let workers = work.load.workers.min(shared.job.lives);
        let mut interrupted = false;
        std::thread::scope(|scope| -> Result<(), String> {
            let mut threads = Vec::new();
            for worker in 0..workers {
                let (shared, next) = (&shared, &next);
                let body = move || work_off(shared, next, worker, began);
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
        let lives = u64::from(shared.job.lives);
        let Closed { tallies, workers: counts, examples, last_done_ns } = shared.books.close();
        let ended: u64 = tallies.iter().map(tidemark_measure::tally::Tally::total).sum();
        Ok(Outcome {
            tallies,
            window_end_ns: last_done_ns,
            last_done_ns,
            workers: counts,
            examples,
            threads: workers,
            undone: if interrupted { (lives * of_life).saturating_sub(ended) } else { 0 },
            interrupted,
            ..Outcome::default()
        })
    }
}

/// Lives one life after the other until there is none left.
fn work_off(shared: &Shared, next: &AtomicU32, worker: u32, began: Instant) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= shared.job.lives || shared.known.is_over() {
            return;
        }
        let due = match shared.job.rate {
            None => Instant::now(),
            Some(rate) => {
                let due = began + Duration::from_secs_f64(f64::from(number) / rate);
                if shared.known.wait_until(due) {
                    return;
                }
                due
            }
        };
        shared.books.begins(number);
        Life::live(shared, number, worker, due);
        shared.books.ends(number);
    }
}
