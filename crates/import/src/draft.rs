//! Parts of records, made of what other tools say.

use crate::Options;
use crate::source::Source;
use std::collections::BTreeMap;
use std::path::Path;
use tidemark_measure::counts::FaultCounts;
use tidemark_measure::fault::Fault;
use tidemark_measure::kind::OperationClass;
use tidemark_measure::record::{
    Example, Note, Operation, Provenance, Reported, Run, Second, SecondOfOperation, Stage, State, Work,
};
use tidemark_measure::tally::Tally;
use tidemark_measure::units;

/// What failures are counted as whose class no tool has recorded: most of theirs come from the server. A note of the
/// run states that it is unknown.
pub(crate) const UNCLASSIFIED: Fault = Fault::ServerError;

/// Seconds of a series beyond which a clock is wrong: a week.
pub(crate) const LONGEST_SERIES: u32 = 7 * 86_400;

/// A run without stages yet.
pub(crate) fn run(path: &Path, name: String, format: &str) -> Run {
    let provenance = Provenance {
        tidemark: env!("CARGO_PKG_VERSION").into(),
        path: path.display().to_string(),
        format: format.into(),
        ..Provenance::default()
    };
    Run { name, state: State::Completed, provenance, ..Run::default() }
}

/// The requested name, or the file's.
pub(crate) fn name(source: &Source, options: &Options) -> String {
    options.name.clone().unwrap_or_else(|| source.stem())
}

/// A remark.
pub(crate) fn note(topic: &str, text: impl Into<String>) -> Note {
    Note { topic: topic.into(), text: text.into() }
}

/// A stage that did what it was to do.
pub(crate) fn stage(number: usize, name: &str, started_ns: u64, ended_ns: u64, works: Vec<Work>) -> Stage {
    Stage {
        id: format!("s{number}-{name}"),
        name: name.into(),
        state: State::Completed,
        started_ns,
        ended_ns,
        works,
        ..Stage::default()
    }
}

/// A work that measured from its start to its end.
pub(crate) fn work(name: &str, workers: u64, window_ns: u64, operations: Vec<Operation>) -> Work {
    Work {
        name: name.into(),
        workers: u32::try_from(workers).unwrap_or(u32::MAX),
        depth: 1,
        window_end_ns: window_ns,
        last_done_ns: window_ns,
        operations,
        ..Work::default()
    }
}

/// An operation of a type, all of its work.
pub(crate) fn operation(kind: &str, tally: Tally, reported: Option<Reported>) -> Operation {
    let kind = kind.to_owned();
    Operation {
        label: kind.clone(),
        class: OperationClass::named(&kind),
        kind,
        weight: 100.0,
        tally,
        reported,
        ..Operation::default()
    }
}

/// Adds failures of a class.
pub(crate) fn fail(tally: &mut Tally, fault: Fault, count: u64) {
    tally.faults.add(&FaultCounts::from(vec![(fault, count)]));
}

/// Adds failures of which no more than the number is known, with what there is to say.
pub(crate) fn fail_somehow(tally: &mut Tally, count: u64, text: String, examples: &mut Vec<Example>) {
    if count > 0 {
        fail(tally, UNCLASSIFIED, count);
        examples.push(Example { fault: UNCLASSIFIED, text });
    }
}

/// Gives the run the state that its stages' states come to, and its length.
pub(crate) fn close(run: &mut Run) {
    let any = |state| run.stages.iter().any(|stage| stage.state == state);
    run.state = match () {
        () if any(State::Failed) => State::Failed,
        () if any(State::Interrupted) => State::Interrupted,
        () => State::Completed,
    };
    run.elapsed_ns = run.stages.iter().map(|stage| stage.ended_ns).max().unwrap_or(0).max(run.elapsed_ns);
    for stage in &mut run.stages {
        for work in &mut stage.works {
            work.started_ns = stage.started_ns;
        }
    }
}

/// More than this is no count, no number of bytes and no nanoseconds of a run: 64 PiB, two years. Sums of hundreds of such
/// numbers are still numbers.
const MOST: u64 = 1 << 56;

/// Refuses a run with numbers that cannot be, and with names that nobody gave.
pub(crate) fn check(run: &Run) -> Result<(), String> {
    let is_sane = |numbers: &[u64]| numbers.iter().all(|number| *number <= MOST);
    let named = |what: &str, name: &str| match name.len() {
        length if length > LONGEST_NAME => Err(format!(
            "a {what} has a name of {} bytes; the limit is {}: the file is damaged, or rename it",
            units::count(length as u64),
            units::count(LONGEST_NAME as u64)
        )),
        _ => Ok(()),
    };
    named("run", &run.name)?;
    for stage in &run.stages {
        named("stage", &stage.name)?;
        for work in &stage.works {
            named("work", &work.name)?;
            work.operations.iter().try_for_each(|operation| named("type of operation", &operation.label))?;
        }
        let mut sane = is_sane(&[stage.started_ns, stage.ended_ns]);
        for work in &stage.works {
            sane &= is_sane(&[work.window_start_ns, work.window_end_ns, work.last_done_ns, work.started_ns]);
            for Operation { tally, reported, .. } in &work.operations {
                sane &= is_sane(&[tally.ok, tally.bytes, tally.failed(), tally.response.count()]);
                sane &= reported.as_ref().is_none_or(can_be);
            }
            let seconds = work.series.iter().flat_map(|second| &second.operations);
            sane &= seconds
                .into_iter()
                .all(|one| is_sane(&[one.ok, one.failed, one.bytes, one.mean_ns, one.max_ns]));
        }
        if !sane {
            return Err(format!("stage {} has impossible numbers: the file is damaged", stage.id));
        }
    }
    match run.started_unix_ns > i64::MAX as u64 || run.elapsed_ns > MOST {
        true => Err("has an impossible time: the file is damaged".into()),
        false => Ok(()),
    }
}

fn can_be(reported: &Reported) -> bool {
    let single = [reported.throughput, reported.bandwidth, reported.mean_ns].into_iter().flatten();
    let mut all = single.chain(reported.percentiles.iter().map(|(_, ns)| *ns));
    all.all(|number| (0.0..=MOST as f64).contains(&number))
}

/// The longest name of anything that is imported, bytes.
const LONGEST_NAME: usize = 4096;

/// Parts of a result, each with its latencies, beyond which a file is not read: they take some 300 KiB of memory each.
const MOST_PARTS: usize = 500;

/// Refuses a file with more parts than anybody compares.
pub(crate) fn few_enough(what: &str, count: usize) -> Result<(), String> {
    match count > MOST_PARTS {
        true => {
            let count = units::count(count as u64);
            Err(format!("contains {count} {what}; the limit is {MOST_PARTS}: split it into several files"))
        }
        false => Ok(()),
    }
}

/// One operation second by second.
pub(crate) type Column = BTreeMap<u32, SecondOfOperation>;

/// The series of a work with these operations.
pub(crate) fn series(columns: &[Column]) -> Vec<Second> {
    let mut seconds: BTreeMap<u32, Second> = BTreeMap::new();
    for (place, column) in columns.iter().enumerate() {
        for (index, numbers) in column.range(..LONGEST_SERIES) {
            let second = seconds.entry(*index).or_insert_with(|| Second {
                index: *index,
                operations: vec![SecondOfOperation::default(); columns.len()],
                ..Second::default()
            });
            second.operations[place] = *numbers;
        }
    }
    seconds.into_values().collect()
}

/// Spreads counts over the seconds from one to another, evenly and without losing any.
pub(crate) fn spread(column: &mut Column, from: u32, to: u32, numbers: SecondOfOperation) {
    let to = to.min(LONGEST_SERIES);
    let length = u64::from(to.saturating_sub(from));
    let part = |all: u64, place: u64| {
        let upto = |place: u64| (u128::from(all) * u128::from(place) / u128::from(length.max(1))) as u64;
        upto(place + 1) - upto(place)
    };
    for (place, index) in (from..to).enumerate() {
        let place = place as u64;
        let second = column.entry(index).or_default();
        second.ok = second.ok.saturating_add(part(numbers.ok, place));
        second.failed = second.failed.saturating_add(part(numbers.failed, place));
        second.bytes = second.bytes.saturating_add(part(numbers.bytes, place));
        second.mean_ns = numbers.mean_ns;
    }
}

/// The longest command line that is kept, bytes.
const LONGEST_COMMAND: usize = 64 << 10;

/// A command line without the values of secrets.
pub(crate) fn command(text: &str) -> String {
    let is_secret = |name: &str| {
        let name = name.trim_matches(['"', '\'']).to_ascii_lowercase();
        name.starts_with('-')
            && ["secret", "password", "token", "cred"].iter().any(|part| name.contains(part))
    };
    let text = &text[..text.floor_char_boundary(LONGEST_COMMAND)];
    let (mut words, mut hide) = (Vec::new(), false);
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        words.push(match value {
            _ if hide => "***".to_owned(),
            Some(_) if is_secret(name) => format!("{name}=***"),
            _ => word.to_owned(),
        });
        hide = value.is_none() && !hide && is_secret(name);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_counts_are_spread() {
        let mut column = Column::new();
        let numbers =
            SecondOfOperation { ok: 17, bytes: 100, failed: 1, mean_ns: 5, ..SecondOfOperation::default() };
        spread(&mut column, 3, 8, numbers);
        spread(&mut column, 7, 8, numbers);
        assert_eq!(column.keys().copied().collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
        let sum = |part: fn(&SecondOfOperation) -> u64| column.values().map(part).sum::<u64>();
        assert_eq!((sum(|s| s.ok), sum(|s| s.bytes), sum(|s| s.failed)), (34, 200, 2));
        spread(&mut column, 0, u32::MAX, SecondOfOperation { ok: u64::MAX, ..numbers });
        assert_eq!(column.len(), LONGEST_SERIES as usize);
        assert_eq!(series(&[Column::new(), column]).len(), LONGEST_SERIES as usize);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let with = |ok, mean_ns| {
            let reported = Reported { mean_ns: Some(mean_ns), ..Reported::default() };
            let operation = operation("read", Tally { ok, ..Tally::default() }, Some(reported));
            let mut run = run(Path::new("x"), "x".into(), "x");
            run.stages.push(stage(1, "main", 0, 5, vec![work("main", 1, 5, vec![operation])]));
            close(&mut run);
            check(&run)
        };
        assert_eq!(with(MOST, 1.0), Ok(()));
        assert!(with(MOST + 1, 1.0).unwrap_err().contains("s1-main"));
        assert!(with(1, f64::NAN).is_err() && with(1, -1.0).is_err());
    }

    #[test]
    fn secrets_leave_command_lines() {
        assert_eq!(
            command("warp get --secret-key=abc --access-key=me --obj.size=1MB"),
            "warp get --secret-key=*** --access-key=me --obj.size=1MB"
        );
        assert_eq!(
            command("\"elbencho\" \"--s3secret\" \"abc\" \"-r\" "),
            "\"elbencho\" \"--s3secret\" *** \"-r\""
        );
    }
}
