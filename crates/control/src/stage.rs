//! One stage: concurrent works, each with its own thread pool, their seconds reported in one place.

use crate::event::{Event, EventSink, StopRequest};
use crate::run_writer::RunWriter;
use crate::runner::{Runner, StageContext, Update, WorkResult};
use crossbeam_channel::bounded;
use std::time::{Duration, Instant};
use tidemark_load::engine::OpenError;
use tidemark_load::stop::SharedStopRequest;
use tidemark_load::thread_pool;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Operation, Planned, Stage, State, Work};
use tidemark_measure::tally::Tally;
use tidemark_observe::Observer;
use tidemark_plan::plan;

/// How often event sinks receive the nodes' state.
const NODES_EVERY: Duration = Duration::from_secs(1);

/// Where a stage stands in its run.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) run_start: Instant,
    /// The stop request at the stage's start: only a stronger one ends it.
    pub(crate) asked: StopRequest,
}

/// Runs a stage's works to their end. Gives what their engines remark.
pub(crate) fn run(
    place: Place,
    runners: &[Runner<'_>],
    threads: u32,
    record: &mut Stage,
    observer: &Observer,
    sink: &mut dyn EventSink,
    writer: &mut RunWriter<'_>,
) -> Vec<String> {
    let mut nodes_told = Instant::now();
    let stop_request = SharedStopRequest::default();
    let (updates_in, updates) = bounded::<(usize, Update)>(64);
    std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for runner in runners {
            let context = StageContext {
                run_start: place.run_start,
                threads,
                updates: updates_in.clone(),
                stop_request: &stop_request,
            };
            handles.push(scope.spawn(move || runner.run(&context)));
        }
        drop(updates_in);
        loop {
            stop_request.raise(of_stage(sink.stop_request(), place.asked));
            if nodes_told.elapsed() >= NODES_EVERY {
                nodes_told = Instant::now();
                sink.event(Event::Nodes(&observer.latest()));
            }
            match updates.recv_timeout(Duration::from_millis(50)) {
                Ok((work, Update::Share { driver, name, second })) => {
                    writer.share(place.index, work, driver, second);
                    let (stage, driver, summary) = (place.index, name.as_str(), &second);
                    sink.event(Event::DriverSecond { stage, work, driver, summary });
                }
                Ok((work, Update::SecondSoFar(interval, missing))) => {
                    let (stage, interval, missing) = (place.index, &*interval, missing.as_slice());
                    sink.event(Event::SecondSoFar { stage, work, interval, missing });
                }
                Ok((_, Update::Trouble(text))) => sink.event(Event::Trouble(&text)),
                Ok((_, Update::Driver(name, news))) => sink.event(Event::Driver { driver: &name, news }),
                Ok((work, Update::Second(interval))) => {
                    sink.event(Event::Second { stage: place.index, work, interval: &interval });
                    writer.second(place.index, work, &interval, sink);
                }
                Err(crossbeam_channel::RecvTimeoutError::Timeout) => {}
                Err(crossbeam_channel::RecvTimeoutError::Disconnected) => break,
            }
        }
        let (mut interrupted, mut done, mut reasons) = (false, Vec::new(), Vec::new());
        let mut remarks: Vec<String> = Vec::new();
        for (handle, runner) in handles.into_iter().zip(runners) {
            let crashed = |_| {
                let works = runner.works().iter().copied();
                let gone = works.map(|(place, plan)| WorkResult {
                    place,
                    plan,
                    started_ns: 0,
                    result: Err(OpenError("it crashed; please report this as a bug".into())),
                    series: Vec::new(),
                });
                gone.collect()
            };
            for result in handle.join().unwrap_or_else(crashed) {
                let (place, plan) = (result.place, result.plan);
                let ended = record_work(result);
                interrupted |= ended.interrupted;
                remarks.extend(ended.remarks);
                // What the user ended early may well fall short, and what had nothing to do has done it.
                let nothing = runner.nothing().unwrap_or_default();
                let trouble = ended.trouble.or_else(|| match ended.interrupted || !nothing.is_empty() {
                    true => None,
                    false => shortfall(plan, &ended.work),
                });
                if record.reason.is_empty() && !nothing.is_empty() {
                    record.reason = format!("work `{}`: {nothing}", plan.name);
                }
                reasons.extend(trouble.map(|trouble| format!("work `{}`: {trouble}", plan.name)));
                done.push((place, ended.work));
            }
        }
        done.sort_by_key(|(place, _)| *place);
        record.works = done.into_iter().map(|(_, work)| work).collect();
        if !reasons.is_empty() {
            record.state = State::Failed;
            record.reason = reasons.join("; ");
        } else if interrupted {
            record.state = State::Interrupted;
            record.reason = "stopped early by the user".into();
        }
        remarks
    })
}

/// What is asked of a stage: what was already asked for when it began does not end it (it is there to clean up),
/// anything beyond that does.
fn of_stage(asked_now: StopRequest, asked_before: StopRequest) -> StopRequest {
    match asked_now {
        StopRequest::Finish if asked_before >= StopRequest::Finish => StopRequest::None,
        now => now,
    }
}

struct Ended {
    work: Work,
    trouble: Option<String>,
    interrupted: bool,
    remarks: Vec<String>,
}

/// The record of a work that has not run: what is known of it beforehand.
pub(crate) fn planned(plan: &plan::Work) -> Work {
    let operations = plan.labels.iter().map(|label| Operation {
        label: label.label.clone(),
        kind: label.kind.clone(),
        class: label.class.clone(),
        verifies: label.verifies,
        weight: label.weight,
        config: label.config.clone(),
        tally: Tally::default(),
        reported: None,
    });
    let known = Planned { begun_per_s: plan.job.begun_per_s(), ..plan.load.planned() };
    let window = known.window_start_ns.unwrap_or(0)..known.window_end_ns.unwrap_or(0);
    Work {
        name: plan.name.clone(),
        kind: plan.kind,
        offered_rate: known.rate.as_ref().map(|rate| match window.is_empty() {
            true => rate.at(window.start),
            false => rate.mean_between(window.start, window.end),
        }),
        planned: known,
        workers: plan.load.workers,
        depth: plan.load.depth,
        connections: plan.load.connections,
        think: plan.load.pacing.think(),
        simulated: plan.job.is_simulated(),
        in_process: plan.job.is_in_process(),
        operations: operations.collect(),
        allowed_failures_per_million: plan.allowed_failures_per_million,
        ..Work::default()
    }
}

fn record_work(result: WorkResult<'_>) -> Ended {
    let WorkResult { plan, started_ns, result, series, .. } = result;
    let (result, trouble) = match result {
        Ok(result) => (result, None),
        Err(error) => (thread_pool::Result::default(), Some(error.to_string())),
    };
    let planned = planned(plan);
    let tallies = result.tallies.into_iter().chain(std::iter::repeat_with(Tally::default));
    // Runs of thousands of stages are kept in memory as a whole.
    let packed = tallies.map(|mut tally| {
        tally.pack();
        tally
    });
    let reported = result.reported.into_iter().map(Some).chain(std::iter::repeat(None));
    let operations = planned.operations.into_iter().zip(packed).zip(reported);
    let operations =
        operations.map(|((operation, tally), reported)| Operation { tally, reported, ..operation });
    let work = Work {
        operations: operations.collect(),
        threads: result.threads,
        offered_rate: result.offered_rate.or(planned.offered_rate),
        window_start_ns: result.window_start_ns,
        window_end_ns: result.window_end_ns,
        last_done_ns: result.last_done_ns,
        started_ns,
        series,
        longest_gap: result.longest_gap,
        unsent: result.unsent,
        undone: result.undone,
        unknown: result.unknown,
        examples: result.examples,
        workers_counts: result.workers,
        endpoints: result.endpoints,
        settling: result.settling,
        window_rounds: result.window_rounds,
        given_up: result.given_up,
        ..planned
    };
    Ended { work, trouble, interrupted: result.interrupted, remarks: result.remarks }
}

/// Why a work that ran to its end did not do what it was to do.
fn shortfall(plan: &plan::Work, work: &Work) -> Option<String> {
    let tallies = || work.operations.iter().map(|operation| &operation.tally);
    let (ok, failed) = (tallies().map(|t| t.ok).sum::<u64>(), tallies().map(Tally::failed).sum::<u64>());
    let asked_for_nothing = plan.load.source.operations() == Some(0);
    if !work.given_up.is_empty() {
        return Some(format!("given up: {}", work.given_up));
    }
    if ok == 0 && failed == 0 && !asked_for_nothing {
        return Some("no operation ended in the measured window".into());
    }
    if ok == 0 && failed > 0 {
        return Some(format!("none of {failed} operations succeeded"));
    }
    // No document allows these: the storage reported success, wrongly.
    let failed_by = |fault: Fault| tallies().map(|tally| tally.faults.of(fault)).sum::<u64>();
    let spoilt: u64 = Fault::CONTENT.into_iter().map(failed_by).sum();
    let told = match (spoilt, failed_by(Fault::WrongAnswer)) {
        (0, _) => None,
        (1, 1) => Some("1 answer was wrong".to_owned()),
        (all, answers) if all == answers => Some(format!("{all} answers were wrong")),
        (1, _) => Some("1 read returned wrong content".to_owned()),
        (all, _) => Some(format!("{all} reads returned wrong content")),
    };
    if let Some(told) = told {
        return Some(format!("{told}; none is allowed"));
    }
    let allowed = (ok + failed) as f64 * f64::from(plan.allowed_failures_per_million) / 1e6;
    if failed as f64 > allowed {
        let total = ok + failed;
        let per_million = plan.allowed_failures_per_million;
        return Some(format!("{failed} of {total} operations failed; {per_million} per million are allowed"));
    }
    None
}
