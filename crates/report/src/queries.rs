//! Tables that were made, queries that ran on them, and what storage saw of both: the tables that HTML and Markdown share.

use crate::content::NONE;
use crate::table::{Table, Tone};
use tidemark_judge::ranking::{self, COUNT, Ranking};
use tidemark_judge::{Beneath, Gateways, UnderQuery};
use tidemark_measure::record::{Answer, Operation, QueryUse, Run, Stage, StorageUse, TablesUse, Work};
use tidemark_measure::units;

/// Queries whose time is explained, the longest of each work.
const EXPLAINED: usize = 5;

/// What the columns are, for those who read them.
pub(crate) const LEGEND: &str = "Times are medians over all streams and passes, to the last row of the answer. Requests and bytes are \
    those of one execution, the median, as they went to storage. Read / needed compares the bytes that were asked for with those of the \
    column chunks from which any were, each counted once: footers, repeated reads and gaps between ranges make it more than 1, reads of \
    single pages less. Rank is the place of a query, with all its parts, among those of its stage by the bytes read.";

/// What the comparison of rankings is, for those who read it.
pub(crate) const RANKINGS: &str = "Queries are ranked by the bytes that they read, the parts of a query together. The correlation is \
    Spearman's, of the queries that both have: 1 if their order is the same.";

/// The works on tables of a run, each with its stage.
pub(crate) fn works(run: &Run) -> impl Iterator<Item = (&Stage, &TablesUse)> {
    let tables = |stage: &'_ Stage| stage.proof.as_ref().map_or(&[][..], |proof| &proof.tables).len();
    let stages = run.stages.iter().filter(move |stage| tables(stage) > 0);
    stages.flat_map(|stage| {
        stage.proof.iter().flat_map(move |proof| proof.tables.iter().map(move |used| (stage, used)))
    })
}

/// Whether an operation is a query on tables all of whose executions are among those of [`query_rows`].
pub fn is_query(stage: &Stage, work: &Work, operation: &Operation) -> bool {
    let tables = stage.proof.iter().flat_map(|proof| &proof.tables);
    let mut listed = tables.filter(|used| used.work == work.name && used.unlisted == 0);
    listed.any(|used| used.queries.iter().any(|one| one.query == operation.label))
}

/// The queries on tables and what storage saw of them, as rows of texts below their headings, without the ranges of their times; none
/// of a run without any.
pub fn query_rows(run: &Run) -> Vec<Vec<String>> {
    let table = queries(run);
    if table.is_empty() { Vec::new() } else { table.first_lines() }
}

/// The work that a use of tables is of.
fn work_of<'a>(stage: &'a Stage, used: &TablesUse) -> Option<&'a Work> {
    stage.works.iter().find(|work| work.name == used.work)
}

/// How a work on tables is called.
fn name(stage: &Stage, used: &TablesUse) -> String {
    match stage.works.len() {
        0 | 1 => stage.id.clone(),
        _ => format!("{}, {}", stage.id, used.work),
    }
}

/// The tables that were made.
pub(crate) fn made(run: &Run) -> Table {
    let mut table = Table::new("Tables made")
        .words(["Stage", "Table"])
        .numbers(["Rows", "Expected", "Bytes", "Files", "Kept"]);
    for (stage, used) in works(run) {
        let Some(made) = &used.made else { continue };
        for one in &made.tables {
            let wrong = one.expected_rows.is_some_and(|expected| expected != one.rows);
            let expected = one.expected_rows.map_or(NONE.into(), units::count);
            let cells = [
                name(stage, used),
                one.name.clone(),
                units::count(one.rows),
                expected,
                units::bytes(one.bytes),
                units::count(one.files),
                units::count(one.kept_files),
            ];
            table.row(if wrong { Tone::Bad } else { Tone::Plain }, cells.to_vec());
        }
        let sum = |of: fn(&tidemark_measure::record::TableMade) -> u64| {
            made.tables.iter().map(of).fold(0, u64::saturating_add)
        };
        let cells = [
            name(stage, used),
            "all".into(),
            units::count(sum(|one| one.rows)),
            String::new(),
            units::bytes(sum(|one| one.bytes)),
            units::count(sum(|one| one.files)),
            units::count(sum(|one| one.kept_files)),
        ];
        table.row(Tone::Total, cells.to_vec());
    }
    table.without_if_all("Kept", "0").without_if_same("Stage")
}

/// How fast tables were made, and how they were written: a sentence for each work that made any.
pub(crate) fn making(run: &Run) -> Vec<String> {
    let told = works(run).filter_map(|(stage, used)| {
        let made = used.made.as_ref()?;
        let seconds = work_of(stage, used)?.last_done_ns as f64 / 1e9;
        let kept: u64 = made.tables.iter().map(|one| one.kept_files).sum();
        let what = format!("{}: {} scale {}, {}", name(stage, used), used.set, used.scale, made.layout);
        if kept > 0 || seconds <= 0.0 {
            return Some(format!("{what}; {kept} files were there already."));
        }
        let (rows, bytes) = made
            .tables
            .iter()
            .fold((0.0, 0.0), |(rows, bytes), one| (rows + one.rows as f64, bytes + one.bytes as f64));
        let speed = format!(
            "{} rows/s, {}/s",
            units::count((rows / seconds) as u64),
            units::bytes((bytes / seconds) as u64)
        );
        Some(format!("{what}; made in {}: {speed}.", units::duration_ns((seconds * 1e9) as u64)))
    });
    told.collect()
}

/// All executions of a query by a work.
struct Executions<'a> {
    query: &'a str,
    all: Vec<&'a QueryUse>,
}

/// The queries of a work in the order of their names, numbers in them by value.
fn executions(used: &TablesUse) -> Vec<Executions<'_>> {
    let mut queries: Vec<Executions<'_>> = Vec::new();
    for one in &used.queries {
        match queries.iter_mut().find(|known| known.query == one.query) {
            Some(known) => known.all.push(one),
            None => queries.push(Executions { query: &one.query, all: vec![one] }),
        }
    }
    queries.sort_by_key(|one| natural(one.query));
    queries
}

/// A name as people order it: `q2` before `q10`.
fn natural(name: &str) -> (String, u64, String) {
    let digits = name.find(|letter: char| letter.is_ascii_digit()).unwrap_or(name.len());
    let (word, rest) = name.split_at(digits);
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    (word.to_owned(), rest[..end].parse().unwrap_or(0), rest[end..].to_owned())
}

fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

impl<'a> Executions<'a> {
    fn done(&self) -> impl Iterator<Item = &'a QueryUse> {
        self.all.iter().copied().filter(|one| one.fault.is_none())
    }

    fn time_ns(&self) -> Option<u64> {
        median(self.done().map(|one| one.took_ns))
    }

    /// The median of something that storage saw.
    fn seen(&self, of: impl Fn(&StorageUse) -> Option<u64>) -> Option<u64> {
        let seen: Option<Vec<u64>> = self.done().map(|one| of(one.storage.as_ref()?)).collect();
        median(seen?.into_iter())
    }

    fn answers(&self) -> String {
        let count = |answer| self.all.iter().filter(|one| one.answer == answer).count();
        let all = self.all.len();
        let told = [
            (count(Answer::Differs), "differs"),
            (count(Answer::Known), "as known"),
            (count(Answer::Others), "as the first"),
            (count(Answer::NotChecked), "not compared"),
        ];
        let told = told.into_iter().filter(|(count, _)| *count > 0);
        let words =
            told.map(|(count, word)| if count == all { word.to_owned() } else { format!("{count} {word}") });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// What there is in numbers of each query; a column of which nothing is known is left out.
const NUMBERS: [&str; 14] = [
    "Executions",
    "Failed",
    "Time",
    "First row",
    "Rows",
    "Requests",
    "Bytes read",
    "Rank",
    "Read / needed",
    "Most in flight",
    "Queued",
    "Planning",
    "Execution",
    "Engine read",
];

/// The queries of each work, and what storage saw of them.
pub(crate) fn queries(run: &Run) -> Table {
    let mut table = Table::new("Queries").words(["Stage", "Query"]).numbers(NUMBERS).words(["Answer"]);
    let rankings = ranking::rankings(run);
    for (stage, used) in works(run).filter(|(_, used)| !used.queries.is_empty()) {
        let ranking = rankings.iter().find(|ranking| std::ptr::eq(ranking.used, used));
        for one in executions(used) {
            let failed = one.all.len() - one.done().count();
            let time = |ns: Option<u64>| ns.map_or(NONE.into(), units::duration_ns);
            let count = |number: Option<u64>| number.map_or(NONE.into(), units::count);
            let first = one.done().map(|one| one.first_row_ns).collect::<Option<Vec<_>>>();
            let told = |of: fn(&QueryUse) -> Option<u64>| {
                let known: Option<Vec<u64>> = one.done().map(of).collect();
                known.and_then(|known| median(known.into_iter()))
            };
            let read = one.seen(|seen| Some(seen.read_bytes));
            let needed = one.seen(|seen| seen.needed_bytes).filter(|needed| *needed > 0);
            let ratio = read.zip(needed).map(|(read, needed)| format!("{:.2}", read as f64 / needed as f64));
            let range =
                match (one.done().map(|one| one.took_ns).min(), one.done().map(|one| one.took_ns).max()) {
                    (Some(least), Some(most)) if one.all.len() > 1 => {
                        Some(format!("{} to {}", units::duration_ns(least), units::duration_ns(most)))
                    }
                    _ => None,
                };
            let cells = vec![
                vec![name(stage, used)],
                vec![one.query.to_owned()],
                vec![units::count(one.all.len() as u64)],
                vec![units::count(failed as u64)],
                [time(one.time_ns())].into_iter().chain(range).collect(),
                vec![time(first.and_then(|first| median(first.into_iter())))],
                vec![count(median(one.done().map(|one| one.rows)))],
                vec![count(one.seen(|seen| Some(seen.requests)))],
                vec![read.map_or(NONE.into(), units::bytes)],
                vec![count(ranking.and_then(|ranking| ranking.place(one.query)).map(|place| place as u64))],
                vec![ratio.unwrap_or(NONE.into())],
                vec![count(one.seen(|seen| Some(seen.most_in_flight.into())))],
                vec![time(told(|one| one.queued_ns))],
                vec![time(told(|one| one.planning_ns))],
                vec![time(told(|one| one.execution_ns))],
                vec![told(|one| one.engine_read_bytes).map_or(NONE.into(), units::bytes)],
                vec![one.answers()],
            ];
            let bad = failed > 0 || one.all.iter().any(|one| one.answer == Answer::Differs);
            table.lines(if bad { Tone::Bad } else { Tone::Plain }, cells);
        }
    }
    let table = NUMBERS.into_iter().fold(table, |table, title| table.without_if_all(title, NONE));
    let table = table.without_if_all("Failed", "0").without_if_same("Executions");
    match works(run).filter(|(_, used)| !used.queries.is_empty()).count() {
        0 | 1 => table.without_if_same("Stage"),
        _ => table.grouped(),
    }
}

/// How far the rankings of the works by bytes read agree, with each other and with the sets on file.
pub(crate) fn rankings(run: &Run) -> Table {
    let mut table = Table::new("Rankings by bytes read, compared").words(["Ranking", "And"]).numbers([
        "Queries",
        "Rank correlation",
        MOST_READ,
    ]);
    let rankings = ranking::rankings(run);
    let told = |ranking: &Ranking<'_>| {
        format!("{}, {} scale {}", name(ranking.stage, ranking.used), ranking.used.set, ranking.used.scale)
    };
    let shared = |shared: usize| format!("{shared} of {COUNT}");
    for (place, one) in rankings.iter().enumerate() {
        if let Some((set, most)) = one.on_file() {
            let scale = set.scale_milli as f64 / 1e3;
            let file = format!("the set on file: {}, scale {scale}", set.engine);
            let cells = [told(one), file, units::count(one.queries.len() as u64), NONE.into(), shared(most)];
            table.row(Tone::Plain, cells.to_vec());
        }
        for other in rankings.iter().skip(place + 1).filter(|other| other.used.set == one.used.set) {
            let agreement = one.agreement(other);
            let correlation = agreement.correlation.map_or(NONE.into(), |number| format!("{number:.4}"));
            let most = agreement.most_read_in_both.map_or(NONE.into(), shared);
            let cells = [told(one), told(other), units::count(agreement.queries as u64), correlation, most];
            table.row(Tone::Plain, cells.to_vec());
        }
    }
    table.without_if_all("Rank correlation", NONE).without_if_all(MOST_READ, NONE)
}

/// The heading of how many of the queries that read most are the same.
const MOST_READ: &str = "Most read in both";

/// The longest queries of each work, each in a few sentences: what storage saw of it, or else what its engine says, and what nodes did.
pub(crate) fn explained(run: &Run) -> Vec<String> {
    let mut sentences = Vec::new();
    for (stage, used) in works(run) {
        let beneath = tidemark_judge::beneath(run, stage);
        let mut longest: Vec<_> =
            executions(used).into_iter().filter_map(|one| Some((one.time_ns()?, one))).collect();
        longest.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (time_ns, one) in longest.into_iter().take(EXPLAINED) {
            let of_median = one.done().find(|one| one.took_ns == time_ns);
            let under =
                beneath.queries.iter().find(|under| (under.work, under.query) == (&used.work, one.query));
            let told = of_median.and_then(|one| as_seen(one).or_else(|| as_told(one)));
            let facts: Vec<String> = told.into_iter().chain(under.and_then(as_observed)).collect();
            if facts.is_empty() {
                continue;
            }
            let what = format!("{} {}", name(stage, used), one.query);
            sentences.push(format!("{what} took {}. {}", units::duration_ns(time_ns), facts.join(" ")));
        }
    }
    sentences
}

/// What storage saw of an execution, if it saw anything.
fn as_seen(execution: &QueryUse) -> Option<String> {
    let seen = execution.storage.as_ref().filter(|seen| seen.requests > 0)?;
    let busy = (seen.busy_ns as f64 / execution.took_ns.max(1) as f64).min(1.0);
    let left = execution.took_ns.saturating_sub(seen.busy_ns);
    let average = units::duration_ns(seen.waited_ns / seen.requests.max(1));
    let requests = match seen.requests {
        1 => format!("1 request of {average}"),
        many => format!(
            "{} requests of {average} on average, at most {} at once",
            units::count(many),
            units::count(seen.most_in_flight.into())
        ),
    };
    Some(format!(
        "Storage had a request of it in flight for {} of that time: {requests}, {} read; for {} it had none: storage held up none \
         of that.",
        units::percent(busy),
        units::bytes(seen.read_bytes),
        units::duration_ns(left)
    ))
}

/// What nodes did under a query, if anything is known of it.
fn as_observed(under: &UnderQuery<'_>) -> Option<String> {
    let mut facts = Vec::new();
    facts.extend(under.busy_ratio.map(|busy| format!("processors were {} busy", units::percent(busy))));
    let disks = under.disk_read_bytes_per_s.zip(under.disk_written_bytes_per_s);
    facts.extend(
        disks.map(|(read, written)| {
            format!("disks read {} and wrote {}", per_second(read), per_second(written))
        }),
    );
    facts.extend(under.gateways.map(|gateways| {
        let share = under
            .gateway_share()
            .map_or(String::new(), |share| format!(", {} of what the query read", units::percent(share)));
        format!(
            "gateways gave {} in {} reads{share}",
            units::bytes(gateways.read_bytes as u64),
            whole(gateways.reads)
        )
    }));
    (!facts.is_empty()).then(|| format!("Meanwhile {}.", facts.join("; ")))
}

fn per_second(bytes: f64) -> String {
    format!("{}/s", units::bytes(bytes as u64))
}

fn whole(number: f64) -> String {
    units::count(number.round() as u64)
}

/// What nodes did under each query, with what that is for those who read it; `None` where no query had nodes to itself.
pub(crate) fn beneath(run: &Run) -> Option<(Table, String)> {
    let mut table = Table::new("What nodes did under each query").words(["Stage", "Query"]).numbers([
        "Executions",
        "Time",
        "Processors",
        "Disks read",
        "Disks wrote",
        "Gateway reads",
        "Gateway gave",
        "Gateway writes",
        "Gateway took",
        "Query read",
        GAVE,
    ]);
    let (mut nodes, mut too_short, mut has_gateways) = (Vec::new(), 0u64, false);
    for stage in &run.stages {
        let Beneath { queries, too_short: short, nodes: of } = tidemark_judge::beneath(run, stage);
        (nodes, too_short) = (of, too_short.saturating_add(short));
        let mut queries: Vec<_> = queries.into_iter().filter(|under| as_observed(under).is_some()).collect();
        queries.sort_by_key(|under| natural(under.query));
        for under in queries {
            has_gateways |= under.gateways.is_some();
            let used =
                works(run).find(|(other, used)| std::ptr::eq(*other, stage) && used.work == under.work);
            let told = |value: Option<f64>, tell: fn(f64) -> String| value.map_or(NONE.into(), tell);
            let gateways = |of: fn(Gateways) -> f64, tell| told(under.gateways.map(of), tell);
            let bytes = |bytes: f64| units::bytes(bytes as u64);
            let cells = vec![
                used.map_or_else(|| stage.id.clone(), |(stage, used)| name(stage, used)),
                under.query.to_owned(),
                units::count(under.executions),
                units::duration_ns(under.took_ns),
                told(under.busy_ratio, units::percent),
                told(under.disk_read_bytes_per_s, per_second),
                told(under.disk_written_bytes_per_s, per_second),
                gateways(|all| all.reads, whole),
                gateways(|all| all.read_bytes, bytes),
                gateways(|all| all.writes, whole),
                gateways(|all| all.written_bytes, bytes),
                under.engine_read_bytes.map_or(NONE.into(), units::bytes),
                told(under.gateway_share(), |share| format!("{share:.2}")),
            ];
            table.row(Tone::Plain, cells);
        }
    }
    if table.is_empty() {
        return None;
    }
    let mut legend = format!(
        "Of executions that ran alone, and for the time of three samples or more: means over the samples that cover them, each weighted by \
         how much of it does; at both ends, a part of a sample is of what ran before and after. Nodes: {}. Processors is the share of \
         theirs that was used, by whatever it was; disks are those that lie on no other, their bytes those of all.",
        nodes.join(", ")
    );
    if has_gateways {
        legend += " What gateways gave and took is their own count for one execution, whoever asked. Query read is what Tidemark's client \
                   counted, or else what the engine says that it read; gave / read is well below 1 where something above the gateways had a \
                   part of it in memory.";
    }
    match too_short {
        0 => {}
        1 => legend += " One execution was too short to tell.",
        short => legend += &format!(" {} executions were too short to tell.", units::count(short)),
    }
    let table =
        ["Processors", "Disks read", "Disks wrote", "Gateway reads", "Gateway gave", "Query read", GAVE]
            .into_iter()
            .fold(table, |table, title| table.without_if_all(title, NONE));
    // Queries write nothing, as a rule.
    let table = ["Gateway writes", "Gateway took"]
        .into_iter()
        .fold(table, |table, title| table.without_if_all(title, NONE).without_if_same(title));
    Some((table.without_if_same("Stage").without_if_same("Executions"), legend))
}

/// The heading of what gateways gave of every byte that a query read.
const GAVE: &str = "Gave / read";

/// What its engine says of an execution, if it says where the time went.
fn as_told(execution: &QueryUse) -> Option<String> {
    let time = |ns: Option<u64>| ns.map(units::duration_ns);
    let (queued, planned, executed) =
        (time(execution.queued_ns)?, time(execution.planning_ns)?, time(execution.execution_ns)?);
    let read = execution.engine_read_bytes.map(units::bytes).zip(time(execution.engine_read_ns));
    let read = read.map_or(String::new(), |(bytes, waited)| {
        format!(", in which it read {bytes} from storage and waited {waited} for them, summed over all its threads")
    });
    Some(format!(
        "Its engine says that it was queued for {queued}, planned for {planned} and executed for {executed}{read}."
    ))
}

/// Reads by size, for each work.
pub(crate) fn sizes(run: &Run) -> Table {
    let mut table =
        Table::new("Reads by size").words(["Stage"]).numbers(["Up to", "Reads", "Share of reads"]);
    for (stage, used) in works(run) {
        let mut sum = StorageUse::default();
        used.queries.iter().filter_map(|one| one.storage.as_ref()).for_each(|seen| sum.add(seen));
        for size in &sum.sizes {
            let share = units::percent(size.reads as f64 / sum.reads.max(1) as f64);
            let cells =
                [name(stage, used), units::binary_bytes(size.up_to_bytes), units::count(size.reads), share];
            table.row(Tone::Plain, cells.to_vec());
        }
    }
    table.without_if_same("Stage")
}

/// What may have kept data in memory, for each work that ran queries.
pub(crate) fn caches(run: &Run) -> Table {
    let mut table = Table::new("Memory that may have held data")
        .words(["Stage", "Layer", "State"])
        .numbers(["Can hold", "Data"]);
    for (stage, used) in works(run) {
        for layer in &used.caches {
            let bytes = |bytes: Option<u64>| bytes.map_or("not known".into(), units::bytes);
            let held = if layer.is_dropped && !layer.holds_data { NONE.into() } else { bytes(layer.bytes) };
            let cells =
                [name(stage, used), layer.layer.clone(), layer.state.clone(), held, bytes(used.data_bytes)];
            table.row(Tone::Plain, cells.to_vec());
        }
    }
    table.without_if_same("Stage")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use tidemark_measure::fault::Fault;

    #[test]
    fn queries_are_in_the_order_of_their_numbers_with_medians() {
        let rows = query_rows(&sample::queries());
        assert!(query_rows(&Run::default()).is_empty());
        let run = sample::queries();
        let operations = run.stages.iter().flat_map(|stage| {
            stage.works.iter().flat_map(move |work| work.operations.iter().map(move |one| (stage, work, one)))
        });
        let (listed, others): (Vec<_>, Vec<_>) =
            operations.partition(|(stage, work, one)| is_query(stage, work, one));
        let is_named_so = |one: &(&Stage, &Work, &Operation)| one.2.label.starts_with('q');
        assert!(!listed.is_empty() && listed.iter().all(is_named_so) && !others.iter().any(is_named_so));
        let column = |title: &str| rows[0].iter().position(|heading| heading == title).unwrap();
        let power: Vec<_> = rows[1..].iter().filter(|row| row[0].contains("power")).collect();
        let names: Vec<_> = power.iter().map(|row| row[column("Query")].as_str()).collect();
        assert_eq!(names[..3], ["q1", "q2", "q3"]);
        assert_eq!(names[9], "q10");
        assert_eq!(power[0][column("Answer")], "as known");
        assert_eq!(power[0][column("Read / needed")], "1.25");
        assert!(!rows[0].iter().any(|title| title == "Queued"), "no engine told of a queue");
    }

    #[test]
    fn rankings_are_compared_as_far_as_they_have_the_same_queries() {
        let mut run = sample::queries();
        let rows = rankings(&run).texts();
        assert_eq!(rows[0], ["Ranking", "And", "Queries", "Rank correlation"], "22 are fewer than 56");
        assert_eq!(rows[1..], [["s2-power, tpch scale 1", "s3-throughput, tpch scale 1", "22", "1.0000"]]);
        let column = |title: &str| queries(&run).texts()[0].iter().position(|heading| heading == title);
        let (rank, rows) = (column("Rank").unwrap(), queries(&run).texts());
        assert_eq!([rows[1][rank].as_str(), rows[22][rank].as_str()], ["22", "1"], "q22 reads most");
        let tables = run.stages.iter_mut().filter_map(|stage| stage.proof.as_mut());
        tables.flat_map(|proof| &mut proof.tables).for_each(|used| used.queries.truncate(2));
        assert!(rankings(&run).is_empty(), "of two queries there is nothing to say");
    }

    #[test]
    fn what_failed_stands_out_and_is_in_no_time() {
        let mut run = sample::queries();
        let used = run
            .stages
            .iter_mut()
            .filter_map(|stage| stage.proof.as_mut())
            .flat_map(|proof| &mut proof.tables);
        let failing = used.flat_map(|used| &mut used.queries).filter(|one| one.query == "q2");
        failing.for_each(|one| one.fault = Some(Fault::Timeout));
        let rows = queries(&run).texts();
        let column = |title: &str| rows[0].iter().position(|heading| heading == title).unwrap();
        let failed = rows.iter().find(|row| row[column("Query")] == "q2").unwrap();
        assert_eq!((failed[column("Failed")].as_str(), failed[column("Time")].as_str()), ("1", NONE));
        assert!(explained(&run).iter().all(|sentence| !sentence.contains(" q2 ")));
    }

    #[test]
    fn the_longest_are_explained_by_facts_alone() {
        let sentences = explained(&sample::queries());
        assert!(
            sentences[0].contains("q22") && sentences[0].contains("50.00 % of that time"),
            "{sentences:?}"
        );
        assert_eq!(sentences.iter().filter(|sentence| sentence.contains("power")).count(), EXPLAINED);
    }

    #[test]
    fn nodes_are_told_of_the_queries_that_had_them_to_themselves() {
        let mut run = sample::queries();
        let (table, legend) = beneath(&run).unwrap();
        let rows = table.texts();
        let headings = [
            "Query",
            "Time",
            "Processors",
            "Disks read",
            "Disks wrote",
            "Gateway reads",
            "Gateway gave",
            "Query read",
            GAVE,
        ];
        assert_eq!(rows[0], headings, "nothing was written, and one stream ran in one stage");
        let names: Vec<_> = rows[1..].iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names, ["q15", "q16", "q17", "q18", "q19", "q20", "q21", "q22"]);
        assert_eq!(
            rows[8],
            ["q22", "2.20 s", "40.00 %", "70.0 MB/s", "1.00 MB/s", "264", "88.0 MB", "110 MB", "0.80"]
        );
        assert!(
            legend.contains("Nodes: storage-1.") && legend.contains(" 14 executions were too short"),
            "{legend}"
        );
        let told = explained(&run);
        assert!(
            told[0].contains("Meanwhile processors were 40.00 % busy") && told[0].contains("80.00 % of what"),
            "{told:?}"
        );
        run.nodes.clear();
        assert!(beneath(&run).is_none());
    }

    #[test]
    fn what_only_the_engine_knows_is_told_as_its_word() {
        let mut run = sample::queries();
        let used = run.stages.iter_mut().filter_map(|stage| stage.proof.as_mut());
        for one in used.flat_map(|proof| &mut proof.tables).flat_map(|used| &mut used.queries) {
            one.storage = None;
            (one.queued_ns, one.planning_ns, one.execution_ns) =
                (Some(1_000_000), Some(2_000_000), Some(3_000_000));
            (one.engine_read_bytes, one.engine_read_ns) = (Some(4_000), Some(5_000_000));
        }
        let rows = queries(&run).texts();
        let column = |title: &str| rows[0].iter().position(|heading| heading == title).unwrap();
        assert_eq!(
            (rows[1][column("Execution")].as_str(), rows[1][column("Engine read")].as_str()),
            ("3.00 ms", "4.00 kB")
        );
        assert!(!rows[0].iter().any(|title| title == "Bytes read"), "nobody but the engine saw any");
        let told = explained(&run).concat();
        assert!(
            told.contains("Its engine says") && told.contains("read 4.00 kB") && !told.contains("in flight"),
            "{told}"
        );
    }

    #[test]
    fn tables_made_add_up() {
        let rows = made(&sample::queries()).texts();
        assert!(rows.iter().any(|row| row.contains(&"lineitem".to_owned())));
        assert!(making(&sample::queries())[0].contains("rows/s"), "{:?}", making(&sample::queries()));
    }
}
