//! Whether the load generator did what it was asked to, or was itself the limit.

use super::phrase::{Phrase, count, decimal, duration, percent, phrase, rate};
use super::{Facts, drivers};
use serde::Serialize;
use tidemark_measure::record::Work;
use tidemark_measure::think::Think;
use tidemark_measure::units;

/// Drivers whose evidence is shown, at most.
const SHOWN_MOST: usize = 3;

/// How much of an open loop's rate was sent in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Reach {
    Reached,
    Nearly,
    Missed,
}

/// How much reserve the generator had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Reserve {
    Enough,
    /// In an open loop, where send lag is what counts.
    Little,
    Near,
    /// Its threads had time left, and had to wait for processors that others used.
    Pressed,
    None,
}

/// What was seen of the processors of a generator's machine over the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Processors {
    /// Share of all processors that was in use, whoever used them.
    pub busy: f64,
    /// Cores that the generator's process used.
    pub process: f64,
    /// Share of the time that the generator's threads were ready and without a processor, where that is known.
    pub waiting: Option<f64>,
    pub limit: f64,
    pub limit_busy: f64,
}

impl Processors {
    fn line(&self) -> String {
        let (busy, limit) = (units::percent(self.busy), units::percent(self.limit));
        let all = format!(
            "its machine's processors were {busy} in use; this process used {:.2} cores",
            self.process
        );
        match self.waiting {
            Some(waiting) => {
                let waiting = units::percent(waiting);
                format!(
                    "{all}; its threads were ready and without a processor {waiting} of the time (limit: {limit})"
                )
            }
            None => format!(
                "{all}; how long its threads waited is not known (limit: {})",
                units::percent(self.limit_busy)
            ),
        }
    }
}

/// How busy the threads of one process were over the window.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Busy {
    pub driver: Option<String>,
    pub mean: f64,
    pub most: f64,
    pub seconds: usize,
    pub seconds_full: usize,
    pub seconds_high: usize,
    pub full: f64,
    pub high: f64,
    pub threads: u32,
    pub cores: u32,
    pub processors: Option<Processors>,
}

impl Busy {
    fn lines(&self) -> Vec<String> {
        let who = self.driver.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let mut lines = vec![
            format!(
                "{who}threads on a processor: {} of the time on average, {} in the busiest second",
                units::percent(self.mean),
                units::percent(self.most)
            ),
            format!(
                "{who}seconds at {} or more: {} of {}; at {} or more: {}",
                units::percent(self.full),
                self.seconds_full,
                self.seconds,
                units::percent(self.high),
                self.seconds_high
            ),
            match self.threads {
                // A lost driver did not say.
                0 => format!("{who}processors: {}", self.cores),
                threads => format!("{who}threads in this stage: {threads}, processors: {}", self.cores),
            },
        ];
        lines.extend(self.processors.map(|seen| format!("{who}{}", seen.line())));
        lines
    }
}

/// Whose fault it is that operations were sent late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Fault {
    Nobody,
    Generator,
    Unknown,
}

/// Median, 99th percentile and largest of lag and service time, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Lag {
    pub lag_ns: [u64; 3],
    /// Of the lag, the time in which a worker was free; `None` if the record does not tell.
    pub own_ns: Option<[u64; 3]>,
    pub service_ns: [u64; 3],
    pub lanes: Lanes,
}

impl Lag {
    fn lines(&self) -> Vec<String> {
        let line = |(place, name): (usize, &str)| {
            let [lag, service] = [self.lag_ns[place], self.service_ns[place]].map(units::duration_ns);
            let lane = self.lanes.noun();
            let own =
                self.own_ns.map(|own| format!(" ({} with a {lane} free)", units::duration_ns(own[place])));
            format!("{name}: lag {lag}{}, service time {service}", own.unwrap_or_default())
        };
        ["median", "p99", "largest"].into_iter().enumerate().map(line).collect()
    }
}

/// Where the workers' time went, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct WorkersTime {
    pub in_operations_ns: f64,
    pub waiting_for_generator_ns: f64,
    /// Of workers that share connections: while all were in use.
    pub waiting_for_connection_ns: f64,
    /// From each worker's first operation to its last, added up.
    pub available_ns: f64,
    /// From the first operation of all to the last.
    pub elapsed_ns: f64,
    pub think: Think,
    pub lanes: Lanes,
}

/// What carries a work's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Lanes {
    pub workers: u32,
    /// Operations of each worker in flight at once.
    pub depth: u32,
    /// Connections that all workers share.
    pub connections: Option<u32>,
}

impl Lanes {
    /// Those of a work.
    pub fn of(work: &Work) -> Self {
        Self { workers: work.workers, depth: work.depth, connections: work.connections }
    }

    /// What an operation needs one of to be sent.
    fn noun(self) -> &'static str {
        if self.connections.is_some() { "connection" } else { "worker" }
    }

    /// How many operations they carry at once.
    fn count(self) -> u64 {
        let own = u64::from(self.workers) * u64::from(self.depth.max(1));
        self.connections.map_or(own, u64::from)
    }
}

/// `4 workers`, `128 (4 workers x depth 32)`, or `4 connections (40 workers)`.
impl std::fmt::Display for Lanes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = |number: u32, noun: &str| {
            let plural = if number == 1 { "" } else { "s" };
            format!("{number} {noun}{plural}")
        };
        let workers = counted(self.workers, "worker");
        match (self.connections, self.depth) {
            (Some(connections), _) => write!(formatter, "{} ({workers})", counted(connections, "connection")),
            (None, 0 | 1) => formatter.write_str(&workers),
            (None, depth) => {
                let all = u64::from(self.workers) * u64::from(depth);
                write!(formatter, "{all} ({workers} x depth {depth})")
            }
        }
    }
}

impl WorkersTime {
    fn in_flight(&self) -> f64 {
        self.in_operations_ns / self.elapsed_ns.max(1.0)
    }

    /// The share of the workers' time that went into waiting for the generator.
    pub(crate) fn waiting(&self) -> f64 {
        self.waiting_for_generator_ns / self.available_ns
    }

    fn lines(&self) -> Vec<String> {
        let seconds = |ns: f64| format!("{:.3} s", ns / 1e9);
        let (busy, waiting) = (self.in_operations_ns, self.waiting_for_generator_ns);
        let mut lines = vec![
            format!("time in operations, all latencies added up: {}", seconds(busy)),
            format!("time ready but waiting for the generator: {}", seconds(waiting)),
        ];
        if self.lanes.connections.is_some() {
            lines.push(format!(
                "time waiting for a free connection: {}",
                seconds(self.waiting_for_connection_ns)
            ));
        }
        if !self.think.is_none() {
            let waiting = waiting + self.waiting_for_connection_ns;
            let pausing = seconds((self.available_ns - busy - waiting).max(0.0));
            lines.push(format!("time pausing (think time {}): {pausing}", self.think));
        }
        lines.push(format!(
            "time of the workers, from the first operation of each to its last: {}",
            seconds(self.available_ns)
        ));
        lines.push(format!(
            "mean in flight: {} / {} = {:.2} of {}",
            seconds(busy),
            seconds(self.elapsed_ns),
            self.in_flight(),
            self.lanes
        ));
        lines
    }
}

/// What there is to say of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Generator {
    OfferedRate {
        reach: Reach,
        offered: f64,
        done: f64,
        due: u64,
        backlog: u64,
        unsent: u64,
        all_workers_waited: bool,
    },
    SendLag {
        lag: Lag,
        fault: Fault,
        limit_ns: u64,
        limit: f64,
        limit_invalid: f64,
    },
    WorkersExhausted {
        lag: Lag,
    },
    /// The processes that are meant, of so many.
    Reserve {
        reserve: Reserve,
        busy: Vec<Busy>,
        of: usize,
    },
    Agree {
        time: WorkersTime,
    },
    Contradiction {
        time: WorkersTime,
    },
    Slow {
        time: WorkersTime,
    },
    /// Workers waited, in less time than it takes to tell why.
    TooShort {
        time: WorkersTime,
        least_ns: f64,
    },
    QueueNotFull {
        time: WorkersTime,
    },
}

impl Generator {
    fn drivers(busy: &[Busy]) -> String {
        let names: Vec<&str> = busy.iter().filter_map(|one| one.driver.as_deref()).collect();
        if names.is_empty() { String::new() } else { format!(" on {}", drivers::named(&names)) }
    }
}

impl Facts for Generator {
    fn rule(&self) -> &'static str {
        match self {
            Generator::OfferedRate { .. } => "offered-rate",
            Generator::SendLag { .. } => "send-lag",
            Generator::WorkersExhausted { .. } => "workers-exhausted",
            Generator::Reserve { .. } => "generator-busy",
            Generator::Agree { .. } | Generator::Contradiction { .. } => "littles-law",
            Generator::Slow { .. } => "generator-slow",
            Generator::TooShort { .. } => "too-short",
            Generator::QueueNotFull { .. } => "queue-not-full",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Generator::OfferedRate { reach, offered, due, backlog, .. } => {
                let sent = percent(due.saturating_sub(*backlog) as f64 / (*due).max(1) as f64);
                let offered = rate(*offered);
                match reach {
                    Reach::Reached => phrase!["the offered rate of ", offered, " was reached"],
                    Reach::Nearly => phrase![
                        "the offered rate of ",
                        offered,
                        " was nearly reached: ",
                        sent,
                        " was sent in time"
                    ],
                    Reach::Missed => phrase![
                        "the offered rate of ",
                        offered,
                        " was not reached: only ",
                        sent,
                        " was sent in time"
                    ],
                }
            }
            Generator::SendLag { lag, fault: Fault::Nobody, .. } => {
                phrase!["operations were sent on time: p99 send lag ", duration(lag.lag_ns[1])]
            }
            Generator::SendLag { lag, fault, .. } => {
                let (who, p99) = match lag.own_ns {
                    Some(own) if *fault == Fault::Generator => ("the load generator was late", own[1]),
                    _ => ("operations were sent late", lag.lag_ns[1]),
                };
                let share = p99 as f64 / lag.service_ns[1].max(1) as f64;
                phrase![
                    who,
                    ": p99 send lag ",
                    duration(p99),
                    " is ",
                    percent(share),
                    " of the p99 service time"
                ]
            }
            Generator::WorkersExhausted { lag } => {
                let lane = lag.lanes.noun();
                phrase!["operations waited for a free ", lane, ": p99 send lag ", duration(lag.lag_ns[1])]
            }
            Generator::Reserve { reserve, busy, of } => match (reserve, busy.as_slice()) {
                (Reserve::Enough, [Busy { driver: Some(name), mean, .. }, ..]) => {
                    let of = count(*of as u64);
                    phrase![
                        "all ",
                        of,
                        " drivers had reserve: the busiest, ",
                        name,
                        ", was ",
                        percent(*mean),
                        " busy on average"
                    ]
                }
                (Reserve::Enough, all) => {
                    let mean = all.first().map_or(0.0, |one| one.mean);
                    phrase!["the load generator had reserve: ", percent(mean), " busy on average"]
                }
                (Reserve::Little, all) => {
                    phrase!["the load generator had little reserve", Self::drivers(all)]
                }
                (Reserve::Pressed, all) => {
                    let busiest = all.iter().filter_map(|one| one.processors).map(|seen| seen.busy);
                    let most = percent(busiest.fold(0.0, f64::max));
                    phrase![
                        "the load generator had to wait for processors",
                        Self::drivers(all),
                        ": its machine was ",
                        most,
                        " busy"
                    ]
                }
                (Reserve::Near, all) => phrase!["the load generator was near its limit", Self::drivers(all)],
                (Reserve::None, all) => phrase!["the load generator was the bottleneck", Self::drivers(all)],
            },
            Generator::Agree { .. } => phrase!["throughput, latency and concurrency agree (Little's law)"],
            Generator::Contradiction { .. } => {
                phrase!["the numbers contradict each other: more operations in flight than workers allow"]
            }
            Generator::Slow { time } => {
                phrase!["workers waited ", percent(time.waiting()), " of their time for the load generator"]
            }
            Generator::TooShort { .. } => {
                phrase!["the work was too short to tell whether the load generator kept up"]
            }
            Generator::QueueNotFull { time } => {
                phrase![
                    "only ",
                    decimal(time.in_flight()),
                    " of ",
                    count(time.lanes.count()),
                    " operations were in flight on average"
                ]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Generator::OfferedRate { reach: Reach::Reached, .. }
            | Generator::SendLag { fault: Fault::Nobody, .. }
            | Generator::Reserve { reserve: Reserve::Enough | Reserve::Little, .. }
            | Generator::Agree { .. } => "",
            Generator::OfferedRate { all_workers_waited: true, .. } => {
                "All workers were waiting for replies: the storage does not sustain this rate, or the work needs more workers. Response times grow with the backlog, and so with the length of the run."
            }
            Generator::OfferedRate { .. } => {
                "Workers were free: the load generator did not keep up. Response times grow with the backlog, and so with the length of the run."
            }
            Generator::SendLag { fault: Fault::Unknown, .. } => {
                "This record does not tell whether they waited for a free worker, which is the storage's doing, or for the load generator."
            }
            Generator::SendLag { lag: Lag { lanes: Lanes { connections: Some(_), .. }, .. }, .. } => {
                "Connections were free meanwhile: part of the response times is the generator's own. Use more threads, or a machine that does nothing else (a local server competes for its processors)."
            }
            Generator::SendLag { .. } => {
                "Workers were free meanwhile: part of the response times is the generator's own. Use more threads, or a machine that does nothing else (an embedded or local server competes for its processors)."
            }
            Generator::WorkersExhausted { lag: Lag { lanes: Lanes { connections: Some(_), .. }, .. } } => {
                "All connections were in use: the database was slow, or there are too few of them. Response times include that wait, service times do not."
            }
            Generator::WorkersExhausted { .. } => {
                "No worker was free: the storage made them wait. Response times include that wait, service times do not."
            }
            Generator::Reserve { reserve: Reserve::Pressed, .. } => {
                "Other programs on its machine, or a server in the same process, used the processors. Part of the response times is the load generator's own waiting, and so a closed loop put on less load than the storage would have taken. Measure from a machine that does nothing else."
            }
            Generator::Reserve { .. } => {
                "These numbers show the generator's limit, not the storage's. Use more threads, or a larger machine."
            }
            Generator::Contradiction { .. } => "This is a bug in Tidemark, not in the storage: please report it with this record.",
            Generator::Slow { .. } => {
                "The storage was idle in that time: the load was lighter than the number of workers promises. Use more threads, or a machine that does nothing else."
            }
            Generator::TooShort { least_ns, .. } => {
                return format!(
                    "One pause of the operating system's scheduler can do this. Measure for at least {}.",
                    units::duration_ns(*least_ns as u64)
                );
            }
            Generator::QueueNotFull { .. } => {
                "The load was lighter than its depth promises. Large batches cause that, and so do pauses between operations."
            }
        }
        .into()
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Generator::OfferedRate { reach, offered, done, due, backlog, unsent, .. } => {
                let mut lines = vec![format!(
                    "due in the window: {}, of which not sent by its end: {}; 1 - {backlog} / {due} = {}",
                    units::count(*due),
                    units::count(*backlog),
                    units::percent(due.saturating_sub(*backlog) as f64 / (*due).max(1) as f64)
                )];
                if *reach != Reach::Reached {
                    lines.push(format!(
                        "offered {}, succeeded within the window {}",
                        units::rate(*offered),
                        units::rate(*done)
                    ));
                    lines.push(format!("never sent: {}", units::count(*unsent)));
                }
                lines
            }
            Generator::SendLag { lag, fault: Fault::Nobody, .. } => lag.lines(),
            Generator::SendLag { lag, limit_ns, limit, limit_invalid, .. } => {
                let limits = format!(
                    "limits: {} and {} of the service time; invalid from {}",
                    units::duration_ns(*limit_ns),
                    units::percent(*limit),
                    units::percent(*limit_invalid)
                );
                lag.lines().into_iter().chain([limits]).collect()
            }
            Generator::WorkersExhausted { lag } => {
                lag.lines().into_iter().chain([format!("in flight at most: {}", lag.lanes)]).collect()
            }
            Generator::Reserve { busy, .. } => busy.iter().take(SHOWN_MOST).flat_map(Busy::lines).collect(),
            Generator::Agree { time }
            | Generator::Contradiction { time }
            | Generator::Slow { time }
            | Generator::QueueNotFull { time } => time.lines(),
            Generator::TooShort { time, .. } => {
                let waiting = format!("workers waited {} of their time", units::percent(time.waiting()));
                std::iter::once(waiting).chain(time.lines()).collect()
            }
        }
    }
}
