//! What a report says, apart from how it looks: the tables that HTML and Markdown share.

use crate::figures::interruption;
use crate::offered;
use crate::table::{Table, Tone};
use tidemark_judge::words::conduct::Conduct;
use tidemark_judge::{Finding, Judgement, Severity, Validity, What};
use tidemark_measure::histogram::{Histogram, PERCENTILES};
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Operation, Provenance, Run, Settling, Stage, State, Work};
use tidemark_measure::tally::Tally;
use tidemark_measure::units;

pub(crate) use tidemark_judge::section::NONE;

/// Examples of failures shown per work: the record holds the first few of each class.
const MOST_EXAMPLES: usize = 40;

/// Drivers that are named with what made the run.
const MOST_DRIVERS: usize = 20;

/// Gaps of the observation that are listed.
const MOST_GAPS: usize = 40;

/// Kinds of operations of a work that are shown one by one where it is told in short.
pub(crate) const MOST_OPERATIONS: usize = 12;

/// Stages that measure something: they have a section of their own. All others share one.
pub(crate) fn is_main(stage: &Stage) -> bool {
    stage.measures()
}

/// Main stages that have a section of their own: those of a sweep share its section.
pub(crate) fn has_section(stage: &Stage) -> bool {
    is_main(stage) && stage.cell.is_none()
}

/// Whether a stage did not do what it was to do, or some of its operations failed.
pub(crate) fn has_trouble(stage: &Stage) -> bool {
    stage.state != State::Completed
        || stage.works.iter().any(|work| failed(work) > 0 || !work.given_up.is_empty())
}

/// Operations of a work that failed.
pub(crate) fn failed(work: &Work) -> u64 {
    work.operations.iter().map(|operation| operation.tally.failed()).sum()
}

/// What a stage came to, as one sentence: also why.
pub(crate) fn outcome(stage: &Stage) -> String {
    let took = units::duration_ns(stage.ended_ns.saturating_sub(stage.started_ns));
    let reason = if stage.reason.is_empty() { String::new() } else { format!(": {}", stage.reason) };
    match stage.state {
        State::Waiting => format!("{} did not start{reason}", stage.id),
        State::Running => format!("{} was still running when this was written{reason}", stage.id),
        State::Completed => format!("{} completed in {took}{reason}", stage.id),
        State::Failed => format!("{} FAILED after {took}{reason}", stage.id),
        State::Interrupted => format!("{} was INTERRUPTED after {took}{reason}", stage.id),
    }
}

/// A finding's or a note's text as a sentence that begins.
pub(crate) fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The run's verdict at a summary: its state, its gravest findings and its validity.
pub(crate) struct Verdict {
    /// Each with whether it is bad, the bad ones first: `2 critical findings`, `COMPLETED`, `VALID`.
    pub(crate) words: Vec<(bool, String)>,
    /// What is bad, one sentence each.
    pub(crate) reasons: Vec<String>,
}

/// Puts together what is wrong with a run, each thing once.
pub(crate) fn verdict(run: &Run, judgement: &Judgement) -> Verdict {
    let troubled: Vec<&Stage> = run.stages.iter().filter(|stage| stage.state != State::Completed).collect();
    let mut reasons: Vec<String> = troubled.iter().map(|stage| format!("{}.", outcome(stage))).collect();
    let critical = judgement.findings.iter().filter(|finding| finding.severity == Severity::Critical).count();
    // That a stage failed is said with its outcome.
    let said = |finding: &Finding| {
        let failed = matches!(finding.what, What::Conduct(Conduct::StageFailed { .. }));
        failed && troubled.iter().any(|stage| !stage.reason.is_empty() && finding.concerns(stage))
    };
    let grave = judgement.findings.iter();
    let grave = grave.filter(|finding| finding.severity == Severity::Critical || finding.invalidates);
    reasons.extend(grave.filter(|finding| !said(finding)).map(|finding| format!("{}.", finding.sentence())));
    let mut words = match (run.state, troubled.len()) {
        (State::Completed, 0) => vec![(false, "COMPLETED".to_string())],
        (State::Completed, 1) => vec![(true, "1 STAGE DID NOT COMPLETE".into())],
        (State::Completed, count) => vec![(true, format!("{count} STAGES DID NOT COMPLETE"))],
        (state, _) => vec![(true, state.name().to_uppercase())],
    };
    match critical {
        0 => {}
        1 => words.push((true, "1 critical finding".into())),
        count => words.push((true, format!("{count} critical findings"))),
    }
    match &judgement.validity {
        // Of a run that was stopped, only a part was done: that nothing speaks against it is not what was asked for.
        Validity::Valid if run.state == State::Interrupted => {}
        Validity::Valid => words.push((false, "VALID".into())),
        Validity::Invalid(_) => words.insert(0, (true, "INVALID".into())),
    }
    words.sort_by_key(|(is_bad, _)| !is_bad);
    Verdict { words, reasons }
}

/// Every main stage in a line per operation.
pub(crate) fn at_a_glance(run: &Run) -> Table {
    let mut table = Table::new("Main stages at a glance")
        .words(["Stage", "State", "Work", "Operation"])
        .numbers(["Throughput", "Bandwidth", "p50", "p99", "Failed", "Succeeded", "Longest without success"]);
    for stage in run.stages.iter().filter(|stage| has_section(stage)) {
        for work in stage.works.iter().filter(|work| work.operations.len() > MOST_OPERATIONS) {
            let mut sum = Operation { label: "all".into(), ..Operation::default() };
            work.operations.iter().for_each(|operation| sum.tally.add(&operation.tally));
            let (tally, window) = (&sum.tally, work.window_seconds());
            let bad = stage.state != State::Completed || tally.failed() > 0;
            let mut cells =
                vec![stage.id.clone(), stage.state.name().into(), work.name.clone(), sum.label.clone()];
            cells.extend([units::rate(sum.throughput(window)), bandwidth(sum.bandwidth(window))]);
            cells.extend([0.5, 0.99].map(|fraction| percentile_of(&sum, fraction)));
            cells.extend([units::count(tally.failed()), succeeded(tally), longest_silence(work)]);
            table.row(if bad { Tone::Bad } else { Tone::Plain }, cells);
        }
        let few = |(work, _): &(&Work, &Operation)| work.operations.len() <= MOST_OPERATIONS;
        for (work, operation) in operations(stage).filter(few) {
            let (tally, window) = (&operation.tally, work.window_seconds());
            let bad = stage.state != State::Completed || tally.failed() > 0 || interruption(work).is_some();
            let mut cells = vec![stage.id.clone(), stage.state.name().into(), work.name.clone()];
            cells.push(operation.label.clone());
            cells.extend([units::rate(operation.throughput(window)), bandwidth(operation.bandwidth(window))]);
            cells.extend([0.5, 0.99].map(|fraction| percentile_of(operation, fraction)));
            cells.extend([units::count(tally.failed()), succeeded(tally), longest_silence(work)]);
            table.row(if bad { Tone::Bad } else { Tone::Plain }, cells);
        }
    }
    table.without_if_same("Work").without_if_same("State")
}

/// COSBench's General Report of one stage, with its names.
pub(crate) fn general_report(stage: &Stage) -> Table {
    let mut table = Table::new(format!("General report of {}", stage.id))
        .words(["Op-Type", "Work"])
        .numbers([
            "Op-Count",
            "Failed",
            "Byte-Count",
            "Avg-ResTime",
            "Avg to first byte",
            "Throughput",
            "Bandwidth",
        ])
        .numbers(["Succ-Ratio"]);
    for (work, operation) in operations(stage) {
        let (tally, window) = (&operation.tally, work.window_seconds());
        let tone = if tally.failed() > 0 { Tone::Bad } else { Tone::Plain };
        table.row(
            tone,
            vec![
                operation.label.clone(),
                work.name.clone(),
                counted(operation, tally.ok, units::count),
                units::count(tally.failed()),
                counted(operation, tally.bytes, units::bytes),
                mean_of(operation),
                mean(&tally.first_byte),
                units::rate(operation.throughput(window)),
                bandwidth(operation.bandwidth(window)),
                succeeded(tally),
            ],
        );
    }
    if operations(stage).count() > 1 {
        table.row(Tone::Total, total(stage));
    }
    let knows_first_byte = operations(stage).any(|(_, operation)| !operation.tally.first_byte.is_empty());
    let table = table.without_if_same("Work");
    if knows_first_byte { table } else { table.without_if_same("Avg to first byte") }
}

/// The sum of a stage's operations. Its mean response time is that of all successes together.
fn total(stage: &Stage) -> Vec<String> {
    let mut sum = Tally::default();
    let (mut throughput, mut bytes_per_second) = (0.0, 0.0);
    for (work, operation) in operations(stage) {
        sum.add(&operation.tally);
        throughput += operation.throughput(work.window_seconds());
        bytes_per_second += operation.bandwidth(work.window_seconds());
    }
    vec![
        "all".into(),
        String::new(),
        units::count(sum.ok),
        units::count(sum.failed()),
        units::bytes(sum.bytes),
        mean(&sum.response),
        mean(&sum.first_byte),
        units::rate(throughput),
        bandwidth(bytes_per_second),
        succeeded(&sum),
    ]
}

/// True percentiles of a stage: response, and where they are not the same, service, lag and first byte.
pub(crate) fn percentiles(stage: &Stage) -> Table {
    let titles = PERCENTILES.map(crate::text::percentile_name);
    let mut table = Table::new(format!("Percentiles of {}", stage.id))
        .words(["Operation", "Work", "Time"])
        .numbers(["Operations"])
        .numbers(titles);
    for (work, operation) in operations(stage) {
        let tally = &operation.tally;
        let mut rows = vec![("response", &tally.response)];
        if work.offered_rate.is_some() {
            rows.extend([("service", tally.service()), ("sent late by", &tally.lag)]);
            rows.extend(tally.own_lag().map(|own| ("late with a worker free", own)));
        }
        rows.push(("to first byte", &tally.first_byte));
        if operation.reported.as_ref().is_some_and(|said| !said.percentiles.is_empty())
            && tally.response.is_empty()
        {
            let mut cells = vec![operation.label.clone(), work.name.clone(), "response".into()];
            cells.push(counted(operation, tally.ok, units::count));
            cells.extend(PERCENTILES.map(|fraction| percentile_of(operation, fraction)));
            table.row(Tone::Plain, cells);
        }
        let is_query = crate::queries::is_query(stage, work, operation);
        // Of queries that ran too rarely for more than a median, other tables tell as much.
        let is_told = |histogram: &Histogram| match is_query {
            true => shown_percentile(histogram, 0.95).is_some(),
            false => !histogram.is_empty(),
        };
        for (name, histogram) in rows.into_iter().filter(|(_, histogram)| is_told(histogram)) {
            let mut cells = vec![operation.label.clone(), work.name.clone(), name.into()];
            cells.push(units::count(histogram.count()));
            cells.extend(PERCENTILES.map(|fraction| percentile(histogram, fraction)));
            table.row(Tone::Plain, cells);
        }
    }
    table.without_if_same("Work")
}

/// What stands where [`percentiles`] has nothing, and how.
pub(crate) fn no_percentiles(stage: &Stage) -> (Tone, &'static str) {
    let mut done =
        operations(stage).filter(|(work, one)| one.throughput(work.window_seconds()) > 0.0).peekable();
    if done.peek().is_none() {
        (Tone::Bad, "No operation succeeded: there are no response times.")
    } else if done.all(|(work, one)| crate::queries::is_query(stage, work, one)) {
        (
            Tone::Plain,
            "Each query ran too few times for percentiles. Its times are under \"Tables and queries\".",
        )
    } else {
        (Tone::Plain, "The tool that measured it reports no percentiles.")
    }
}

/// Failures of a stage by class.
pub(crate) fn failures(stage: &Stage) -> Table {
    let mut table = Table::new(format!("Failures of {} by class", stage.id))
        .words(["Operation", "Work", "Class", "What happened"])
        .numbers(["Failed", "Share of operations"]);
    for (work, operation) in operations(stage) {
        let total = operation.tally.total();
        for (fault, count) in operation.tally.faults.iter() {
            let mut cells = vec![operation.label.clone(), work.name.clone(), fault.name().into()];
            cells.extend([fault.sentence().into(), units::count(count)]);
            cells.push(units::percent(count as f64 / total.max(1) as f64));
            table.row(Tone::Plain, cells);
        }
    }
    table.without_if_same("Work")
}

/// How long failed operations took: they are in no other latency.
pub(crate) fn failure_times(stage: &Stage) -> Table {
    let fractions = [0.5, 0.9, 0.99, 1.0];
    let mut table = Table::new(format!("Duration of failed operations of {}", stage.id))
        .words(["Operation", "Work"])
        .numbers(["Failed", "mean"])
        .numbers(fractions.map(crate::text::percentile_name));
    for (work, operation) in operations(stage).filter(|(_, operation)| !operation.tally.failure.is_empty()) {
        let histogram = &operation.tally.failure;
        let mut cells = vec![operation.label.clone(), work.name.clone()];
        cells.extend([units::count(histogram.count()), mean(histogram)]);
        cells.extend(fractions.map(|fraction| percentile(histogram, fraction)));
        table.row(Tone::Plain, cells);
    }
    table.without_if_same("Work")
}

/// The first failures of a stage, word for word.
pub(crate) fn examples(stage: &Stage) -> Vec<String> {
    let texts = |work: &Work| -> Vec<String> {
        let shown = work.examples.iter().take(MOST_EXAMPLES);
        shown.map(|example| format!("{}: {}", example.fault.name(), example.text)).collect()
    };
    stage.works.iter().flat_map(texts).collect()
}

/// How a work went, fact by fact; those that say that nothing was amiss are left out.
pub(crate) fn conduct(stage: &Stage, work: &Work) -> Table {
    let mut table =
        Table::new(format!("Course of work {} of {}", work.name, stage.id)).words(["Fact", "Value"]);
    let mut fact = |tone, name: &str, value: String| table.row(tone, vec![name.into(), value]);
    if !work.given_up.is_empty() {
        fact(Tone::Bad, "Given up", work.given_up.clone());
    }
    fact(Tone::Plain, "Load", offered::load(work));
    let tone = if interruption(work).is_some() { Tone::Bad } else { Tone::Plain };
    fact(tone, "Longest time without a success", silence_sentence(work));
    let oldest = work.series.iter().max_by_key(|second| second.oldest_in_flight_ns);
    if let Some(stuck) = oldest.filter(|second| second.oldest_in_flight_ns > 0) {
        let age = units::duration_ns(stuck.oldest_in_flight_ns);
        let (count, when) = (units::count(u64::from(stuck.in_flight)), u64::from(stuck.index) + 1);
        fact(
            tone,
            "Oldest operation in flight",
            format!("at most {age} (at {when} s, with {count} in flight)"),
        );
    }
    if let Some(workers) = workers(work) {
        fact(Tone::Plain, "Workers", workers);
    }
    let sum = |value: fn(&Tally) -> u64| {
        work.operations.iter().map(|operation| value(&operation.tally)).sum::<u64>()
    };
    let counts = [
        ("Retries", sum(|tally| tally.retries), "the response times include them"),
        (
            "Due before the window, ended in it",
            sum(|tally| tally.early),
            "in the throughput, not in the response times",
        ),
        ("Ended after the window", sum(|tally| tally.late), "in the response times, not in the throughput"),
        (
            "Due and never sent",
            work.unsent,
            match work.connections {
                Some(_) => "they waited for a connection when the load ended",
                None => "the load fell behind its schedule",
            },
        ),
        ("Planned but never started", work.undone, "the work was abandoned"),
        ("Planned, and nothing is known of them", work.unknown, "the process that ran them was lost"),
    ];
    for (name, count, meaning) in counts.into_iter().filter(|(_, count, _)| *count > 0) {
        fact(Tone::Plain, name, format!("{} ({meaning})", units::count(count)));
    }
    for operation in work.operations.iter().filter(|one| one.verifies && one.tally.ok > 0) {
        fact(Tone::Plain, &format!("Content of {}", operation.label), verification(&operation.tally));
    }
    if work.allowed_failures_per_million > 0 {
        let allowed = units::count(u64::from(work.allowed_failures_per_million));
        fact(Tone::Plain, "Allowed failures", format!("{allowed} per million operations"));
    }
    let rounds = |settling: &Settling| {
        let rates: Vec<String> = settling.rounds.iter().map(|rate| units::rate(*rate)).collect();
        let (count, length) = (rates.len(), units::duration_ns(settling.round_ns));
        format!("after {count} rounds of {length}: {}", rates.join(", "))
    };
    if let Some(settling) = &work.settling {
        let (tone, outcome) =
            if settling.steady { (Tone::Plain, "steady") } else { (Tone::Bad, "not steady") };
        fact(tone, "Before the window", format!("{outcome} {}", rounds(settling)));
    }
    if let Some(window) = &work.window_rounds {
        let (tone, outcome) = match window.steady {
            true => (Tone::Plain, "ended early, because it was steady"),
            false => (Tone::Bad, "not steady within its time,"),
        };
        fact(tone, "End of the window", format!("{outcome} {}", rounds(window)));
    }
    fact(Tone::Plain, "Load generator", generator(work));
    for (operations, config) in settings(work) {
        fact(Tone::Plain, &format!("Settings of {operations}"), config.to_owned());
    }
    table
}

/// The settings of a work's operations, and which operations have them.
fn settings(work: &Work) -> Vec<(String, &str)> {
    let mut settings: Vec<(Vec<&str>, &str)> = Vec::new();
    for one in work.operations.iter().filter(|one| !one.config.is_empty()) {
        match settings.iter_mut().find(|(_, config)| *config == one.config) {
            Some((labels, _)) => labels.push(&one.label),
            None => settings.push((vec![&one.label], &one.config)),
        }
    }
    let named = |labels: Vec<&str>| match labels[..] {
        [first, _, _, .., last] => format!("{first} to {last}, {} operations", labels.len()),
        _ => labels.join(" and "),
    };
    settings.into_iter().map(|(labels, config)| (named(labels), config)).collect()
}

/// How many of an operation's successes were verified, and why the others were not.
fn verification(tally: &Tally) -> String {
    let of = units::count(tally.ok);
    let reasons =
        tally.unchecked.iter().map(|(why, count)| format!("; {} not: {}", units::count(count), why.clause()));
    let placed = match tally.placed {
        0 => String::new(),
        placed => format!(
            "; {} of them in their place only: of which write they must be is unknown",
            units::count(placed)
        ),
    };
    format!("{} of {of} verified{placed}{}", units::count(tally.verified), reasons.collect::<String>())
}

fn generator(work: &Work) -> String {
    let seconds = work.series.iter().filter(|second| work.measures_second(second.index));
    let busiest = seconds.map(|second| second.busy).fold(0.0, f64::max);
    let threads = match work.threads {
        // A run whose process died does not know them.
        0 => None,
        1 => Some("1 thread".to_owned()),
        more => Some(format!("{more} threads")),
    };
    let busy = (busiest > 0.0)
        .then(|| format!("at most {:.0} % busy in any second of the window", (busiest * 100.0).min(999.0)));
    let facts: Vec<String> = threads.into_iter().chain(busy).collect();
    if facts.is_empty() { "not known: its process ended before the run did".into() } else { facts.join(", ") }
}

/// When the first and the last worker were done, and how evenly they worked.
fn workers(work: &Work) -> Option<String> {
    let mut each = std::collections::BTreeMap::<u32, u64>::new();
    for count in &work.workers_counts {
        let operations = each.entry(count.worker).or_default();
        *operations = operations.saturating_add(count.ok).saturating_add(count.failed);
    }
    let (first, last) = work.workers_done_ns()?;
    let [first, last] = [first, last].map(units::moment_ns);
    let (fewest, most) = (units::count(*each.values().min()?), units::count(*each.values().max()?));
    let operations = if fewest == most { fewest } else { format!("{fewest} to {most}") };
    Some(format!("first done after {first}, last after {last}; each did {operations} operations"))
}

/// The longest time without a success in a few words, for a cell.
pub(crate) fn longest_silence(work: &Work) -> String {
    work.longest_gap.map_or(NONE.into(), |longest_gap| units::duration_ns(longest_gap.length_ns()))
}

/// The same as a sentence that says when.
///
/// Of every second the first and the last success are known: a gap from one second into another is known exactly, one within a
/// second is not seen. A second is as much longer as a thread that ended it came late.
fn silence_sentence(work: &Work) -> String {
    let Some(longest_gap) = work.longest_gap else { return NONE.into() };
    let stalled = work.series.iter().map(|second| second.stalled_ns).max().unwrap_or(0);
    let unseen = stalled.saturating_add(1_000_000_000);
    if longest_gap.length_ns() < unseen {
        let (least, most) = (units::duration_ns(longest_gap.length_ns()), units::duration_ns(unseen));
        return format!("less than {most}; {least} or more");
    }
    let (length, from, to) = (
        units::duration_ns(longest_gap.length_ns()),
        units::moment_ns(longest_gap.from_ns),
        units::moment_ns(longest_gap.to_ns),
    );
    let load = work.window_end_ns.max(longest_gap.to_ns).max(1);
    let share = longest_gap.length_ns() as f64 / load as f64;
    let share = if share >= 0.01 { format!(", {:.0} % of the time", share * 100.0) } else { String::new() };
    format!("{length} (from {from} to {to} after the work's start{share})")
}

/// Stages that only prepare and clean up, and those without works.
pub(crate) fn other_stages(run: &Run) -> Table {
    let mut table = Table::new("Other stages").words(["Stage", "State", "Operation"]).numbers([
        "Workers",
        "Took",
        "Op-Count",
        "Failed",
        "Byte-Count",
        "Throughput",
        "p50",
        "p99",
        "max",
    ]);
    for stage in run.stages.iter().filter(|stage| !is_main(stage)) {
        let tone = if has_trouble(stage) { Tone::Bad } else { Tone::Plain };
        let took = units::duration_ns(stage.ended_ns.saturating_sub(stage.started_ns));
        let took = if stage.state == State::Waiting { NONE.to_string() } else { took };
        let start = || vec![stage.id.clone(), stage.state.name().to_string()];
        for (work, operation) in operations(stage) {
            let tally = &operation.tally;
            let mut cells = start();
            let several = stage.works.len() > 1 && work.name != operation.label;
            let work_name = if several { format!("{}: ", work.name) } else { String::new() };
            cells.push(format!("{work_name}{}", operation.label));
            cells.extend([
                units::count(u64::from(work.workers)),
                took.clone(),
                units::count(tally.ok),
                units::count(tally.failed()),
            ]);
            cells.extend([
                units::bytes(tally.bytes),
                units::rate(operation.throughput(work.window_seconds())),
            ]);
            cells.extend([0.5, 0.99, 1.0].map(|fraction| percentile_of(operation, fraction)));
            table.row(tone, cells);
        }
        if operations(stage).next().is_none() {
            let mut cells = start();
            cells.extend([NONE, NONE, took.as_str()].map(String::from));
            cells.extend(std::iter::repeat_n(NONE.to_string(), 7));
            table.row(tone, cells);
        }
    }
    table
}

/// What made the run.
pub(crate) fn provenance(run: &Run) -> Table {
    let number = if run.id == 0 { "not stored".into() } else { run.id.to_string() };
    let own = [
        ("Run", number),
        ("Started", crate::text::utc(run.started_unix_ns)),
        ("Took", units::duration_ns(run.elapsed_ns)),
    ];
    let mut table = made_by("What made this run", &run.provenance, own);
    if !run.drivers.is_empty() {
        let names: Vec<&str> =
            run.drivers.iter().take(MOST_DRIVERS).map(|driver| driver.name.as_str()).collect();
        let more = if run.drivers.len() > MOST_DRIVERS { ", ..." } else { "" };
        let told = format!("{}: {}{more}", units::count(run.drivers.len() as u64), names.join(", "));
        table.row(Tone::Plain, vec!["Drivers".into(), told]);
    }
    table
}

/// So many targets stand at the top of a report; drivers that have one each can be hundreds.
const MOST_TARGETS: usize = 8;

/// The first targets of a run, and how many more there are.
pub(crate) fn targets(run: &Run) -> Vec<String> {
    let all = &run.provenance.targets;
    let more = match all.len().saturating_sub(MOST_TARGETS) {
        0 => None,
        more => Some(format!("{} more, named under “How to reproduce”", units::count(more as u64))),
    };
    all.iter().take(MOST_TARGETS).cloned().chain(more).collect()
}

/// What made something, and facts of its own.
pub(crate) fn made_by<const N: usize>(
    caption: &str,
    source: &Provenance,
    own: [(&'static str, String); N],
) -> Table {
    let mut table = Table::new(caption).words(["Fact", "Value"]);
    let host = &source.host;
    let memory = format!("{} of memory", units::binary_bytes(host.memory_bytes));
    let machine = [host.cpu.clone(), format!("{} processors", host.cores), memory].join(", ");
    let facts = [
        ("Document", [source.path.as_str(), source.format.as_str()].join(" ")),
        ("Seed", source.seed.to_string()),
        ("Targets", source.targets.join("; ")),
        ("Load generator", host.name.clone()),
        ("Kernel", host.kernel.clone()),
        ("Machine", if host.cpu.is_empty() { String::new() } else { machine }),
    ];
    let all = [("Tidemark", source.tidemark.clone())].into_iter().chain(own).chain(facts);
    for (name, value) in all.filter(|(_, value)| !value.trim().is_empty()) {
        table.row(Tone::Plain, vec![name.into(), value.trim().into()]);
    }
    table
}

/// The operations of a stage with their works.
pub(crate) fn operations(stage: &Stage) -> impl Iterator<Item = (&Work, &Operation)> {
    stage.works.iter().flat_map(|work| work.operations.iter().map(move |operation| (work, operation)))
}

/// Bytes per second.
pub(crate) fn bandwidth(bytes_per_second: f64) -> String {
    if bytes_per_second > 0.0 { format!("{}/s", units::bytes(bytes_per_second as u64)) } else { NONE.into() }
}

/// The share of successes, never rounded to all or nothing.
pub(crate) fn succeeded(tally: &Tally) -> String {
    tally.success_ratio().map_or(NONE.into(), units::percent)
}

/// The mean, or a dash.
pub(crate) fn mean(histogram: &Histogram) -> String {
    if histogram.is_empty() { NONE.into() } else { units::duration_ns(histogram.mean() as u64) }
}

/// A percentile, or a dash where there are too few values to tell it from the maximum.
pub(crate) fn percentile(histogram: &Histogram, fraction: f64) -> String {
    shown_percentile(histogram, fraction).map_or(NONE.into(), units::duration_ns)
}

/// A percentile in nanoseconds; `None` where there are too few values to tell it from the maximum, so that nothing shows it.
pub fn shown_percentile(histogram: &Histogram, fraction: f64) -> Option<u64> {
    let beyond = (1.0 - fraction) * histogram.count() as f64;
    // With 1000 values and p99.9, `beyond` is 1 up to the error of the subtraction.
    let is_shown = !histogram.is_empty() && (fraction >= 1.0 || beyond >= 0.999_999);
    is_shown.then(|| histogram.quantile(fraction))
}

/// A percentile of an operation's response times: from its histogram, or as the tool says that measured it.
pub fn percentile_of(operation: &Operation, fraction: f64) -> String {
    match operation.tally.response.is_empty() {
        false => percentile(&operation.tally.response, fraction),
        true => operation.quantile_ns(fraction).map_or(NONE.into(), |ns| units::duration_ns(ns as u64)),
    }
}

/// The mean of an operation's response times, or a dash where it is not known.
pub(crate) fn mean_of(operation: &Operation) -> String {
    operation.mean_ns().map_or(NONE.into(), |ns| units::duration_ns(ns as u64))
}

/// A count, or a dash where another tool measured and did not say it.
fn counted(operation: &Operation, count: u64, print: fn(u64) -> String) -> String {
    if count == 0 && operation.reported.is_some() { NONE.into() } else { print(count) }
}

/// Names of the nodes that were observed, each once: a machine may have been observed from more than one place.
pub(crate) fn observed<'a>(nodes: impl Iterator<Item = &'a Node>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for node in nodes.filter(|node| !node.at_ns.is_empty()) {
        if !names.contains(&node.name.as_str()) {
            names.push(node.name.as_str());
        }
    }
    names
}

/// What could not be observed, each thing once, with its node.
pub(crate) fn gaps<'a>(nodes: impl Iterator<Item = &'a Node>) -> Vec<String> {
    let mut gaps: Vec<String> = Vec::new();
    for node in nodes {
        for gap in &node.gaps {
            let gap = format!("{}: {gap}", node.name);
            if gaps.len() < MOST_GAPS && !gaps.contains(&gap) {
                gaps.push(gap);
            }
        }
    }
    gaps
}
