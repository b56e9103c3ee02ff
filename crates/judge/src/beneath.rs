//! What nodes did under each query: rates of samples, weighted by how long they cover an execution.
//!
//! Nodes are sampled about once a second, and know nothing of queries. So only an execution that ran alone has what they did to
//! itself, and only one of several samples is told apart from those before and after it: at each end, a part of a sample is of
//! others.

use crate::context::is_machine;
use serde::Serialize;
use std::collections::BTreeSet;
use tidemark_measure::observation::{Kind, Node, Series};
use tidemark_measure::record::{QueryUse, Run, Stage, TablesUse, Work};
use utoipa::ToSchema;

/// An execution that is shorter than so many of the samples that cover it cannot be told from its neighbours.
const SAMPLES_LEAST: u64 = 3;

/// A series that has no values for this share of an execution says nothing of it.
const COVERED_LEAST: f64 = 0.5;

/// Devices that only pass on what others do, or that are memory: what they move would count twice, or is no disk's.
const NO_DISKS: [&str; 6] = ["loop", "dm-", "md", "bcache", "zram", "ram"];

/// What nodes did under the queries of a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beneath<'a> {
    /// Each query that ran alone for long enough, in the order in which they first ended.
    pub queries: Vec<UnderQuery<'a>>,
    /// Executions that ran alone, and were too short to tell.
    pub too_short: u64,
    /// The nodes: those that generated no load, or else all.
    pub nodes: Vec<&'a str>,
}

/// What nodes did under a query: means over all of its executions that ran alone for long enough, weighted by their time.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = RunUnderQuery)]
pub struct UnderQuery<'a> {
    /// Its work.
    pub work: &'a str,
    /// Its name.
    pub query: &'a str,
    /// How many executions.
    pub executions: u64,
    /// How long each took, on average.
    pub took_ns: u64,
    /// The share of their processors that nodes used; null where that is not known.
    pub busy_ratio: Option<f64>,
    /// What their disks read: those that lie on no other.
    pub disk_read_bytes_per_s: Option<f64>,
    /// What they wrote.
    pub disk_written_bytes_per_s: Option<f64>,
    /// What gateways did; null where none was observed.
    pub gateways: Option<Gateways>,
    /// Bytes that an execution read, as Tidemark's own client counted them or else as its engine says; null where neither does.
    pub engine_read_bytes: Option<u64>,
}

/// What all observed gateways to object storage did, for each execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct Gateways {
    /// Objects, or ranges of them, that were read.
    pub reads: f64,
    /// Bytes of them.
    pub read_bytes: f64,
    /// Objects that were written.
    pub writes: f64,
    /// Bytes of them.
    pub written_bytes: f64,
}

impl UnderQuery<'_> {
    /// What gateways gave of every byte that the query read: less than 1 where something above them had some of it in memory.
    pub fn gateway_share(&self) -> Option<f64> {
        let read = self.engine_read_bytes.filter(|read| *read > 0)?;
        Some(self.gateways?.read_bytes / read as f64)
    }
}

/// What nodes did under the queries of a stage.
pub fn beneath<'a>(run: &'a Run, stage: &'a Stage) -> Beneath<'a> {
    let sampled = || run.nodes.iter().filter(|node| node.at_ns.len() > 1 && is_machine(node));
    let serving: Vec<&Node> = sampled().filter(|node| !node.generates).collect();
    let nodes = if serving.is_empty() { sampled().collect() } else { serving };
    let mut beneath =
        Beneath { nodes: nodes.iter().map(|node| node.name.as_str()).collect(), ..Beneath::default() };
    if nodes.is_empty() {
        return beneath;
    }
    let view = View { nodes, gateways: gateways(run) };
    for used in stage.proof.iter().flat_map(|proof| &proof.tables) {
        let Some(work) = stage.works.iter().find(|work| work.name == used.work && work.workers == 1) else {
            continue;
        };
        let alone =
            used.queries.iter().filter(|one| one.fault.is_none()).map(|one| (one, Span::of(work, one)));
        let alone = alone.filter(|(_, span)| {
            stage.works.iter().all(|other| std::ptr::eq(other, work) || !span.meets(other))
        });
        let (long, short): (Vec<_>, Vec<_>) = alone.partition(|(_, span)| view.tells_apart(*span));
        beneath.too_short += short.len() as u64;
        let mut known = BTreeSet::new();
        for query in long.iter().map(|(one, _)| one.query.as_str()).filter(|query| known.insert(*query)) {
            let of_query: Vec<_> = long.iter().filter(|(one, _)| one.query == query).copied().collect();
            beneath.queries.push(view.under(used, query, &of_query));
        }
    }
    beneath
}

/// The samples of a node that cover a part of a time: the place of each, how much it covers, and of how much it is. A sample is
/// of the time since the one before.
fn samples(node: &Node, span: Span) -> impl Iterator<Item = (usize, u64, u64)> {
    let first = node.at_ns.partition_point(|at| *at <= span.from_ns).max(1);
    let times = node.at_ns.get(first - 1..).unwrap_or_default().windows(2).zip(first..);
    let times = times.take_while(move |(times, _)| times[0] < span.to_ns);
    times.map(move |(times, place)| {
        let shared = times[1].min(span.to_ns).saturating_sub(times[0].max(span.from_ns));
        (place, shared, times[1].saturating_sub(times[0]))
    })
}

/// A time on the run's clock.
#[derive(Clone, Copy)]
struct Span {
    from_ns: u64,
    to_ns: u64,
}

impl Span {
    fn of(work: &Work, execution: &QueryUse) -> Self {
        let from_ns = work.started_ns.saturating_add(execution.began_ns);
        Self { from_ns, to_ns: from_ns.saturating_add(execution.took_ns) }
    }

    fn length_ns(self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Whether a work was at it meanwhile.
    fn meets(self, work: &Work) -> bool {
        work.started_ns < self.to_ns && work.started_ns.saturating_add(work.last_done_ns) > self.from_ns
    }
}

/// The nodes, and the gateways on any of them.
struct View<'a> {
    nodes: Vec<&'a Node>,
    gateways: Vec<(&'a Node, &'a str)>,
}

/// The gateways of all nodes: one that two observers saw is one.
fn gateways(run: &Run) -> Vec<(&Node, &str)> {
    let all = run.nodes.iter().flat_map(|node| {
        node.all(Kind::Ceph, "get_bytes").map(move |series| (node, series.subject.as_str()))
    });
    let mut known = BTreeSet::new();
    all.filter(|(_, gateway)| known.insert(*gateway)).collect()
}

impl<'a> View<'a> {
    /// Whether a time is long beside the samples that cover it, on every node.
    fn tells_apart(&self, span: Span) -> bool {
        self.nodes.iter().all(|node| {
            let longest = samples(node, span).map(|(.., whole)| whole).max();
            longest.is_some_and(|longest| span.length_ns() >= longest.saturating_mul(SAMPLES_LEAST))
        })
    }

    fn under(&self, used: &'a TablesUse, query: &'a str, executions: &[(&QueryUse, Span)]) -> UnderQuery<'a> {
        let spans: Vec<Span> = executions.iter().map(|(_, span)| *span).collect();
        let count = executions.len() as u64;
        let took_ns = spans.iter().map(|span| span.length_ns()).fold(0, u64::saturating_add) / count.max(1);
        let disks = |metric| {
            let all = self
                .nodes
                .iter()
                .flat_map(|node| disks(node, metric).map(|series| mean(node, series, &spans)));
            sum(all)
        };
        let seconds = took_ns as f64 / 1e9;
        let of_gateways = |metric| {
            let all = self
                .gateways
                .iter()
                .map(|(node, gateway)| mean(node, node.find(Kind::Ceph, gateway, metric)?, &spans));
            Some(sum(all)? * seconds)
        };
        let read = executions
            .iter()
            .map(|(one, _)| one.storage.as_ref().map(|seen| seen.read_bytes).or(one.engine_read_bytes));
        let read = read.collect::<Option<Vec<u64>>>();
        UnderQuery {
            work: &used.work,
            query,
            executions: count,
            took_ns,
            busy_ratio: self.busy(&spans),
            disk_read_bytes_per_s: disks("read_bytes"),
            disk_written_bytes_per_s: disks("write_bytes"),
            gateways: of_gateways("get_bytes").map(|read_bytes| Gateways {
                reads: of_gateways("get").unwrap_or(0.0),
                read_bytes,
                writes: of_gateways("put").unwrap_or(0.0),
                written_bytes: of_gateways("put_bytes").unwrap_or(0.0),
            }),
            engine_read_bytes: read.map(|read| read.into_iter().fold(0, u64::saturating_add) / count.max(1)),
        }
    }

    /// The share of all processors that was used: of nodes that do not all say how many they have, each counts the same.
    fn busy(&self, spans: &[Span]) -> Option<f64> {
        let of_node = |node: &&Node| {
            let busy = mean(node, node.find(Kind::Cpu, "all", "busy")?, spans)?;
            let fact = node.facts.iter().find(|(name, _)| name == "processors");
            let processors =
                fact.and_then(|(_, value)| value.parse().ok()).filter(|count: &f64| *count >= 1.0);
            Some((busy, processors))
        };
        let nodes = self.nodes.iter().map(of_node).collect::<Option<Vec<_>>>()?;
        let same = nodes.iter().any(|(_, processors)| processors.is_none());
        let weighted = nodes.iter().map(|(busy, processors)| {
            let weight = if same { 1.0 } else { processors.unwrap_or(1.0) };
            (busy * weight, weight)
        });
        let (sum, weights) =
            weighted.fold((0.0, 0.0), |(sum, weights), (busy, weight)| (sum + busy, weights + weight));
        (weights > 0.0).then(|| sum / weights)
    }
}

/// A metric of the disks of a node that are not parts of each other.
fn disks<'a>(node: &'a Node, metric: &'a str) -> impl Iterator<Item = &'a Series> {
    node.all(Kind::Disk, metric)
        .filter(|series| !NO_DISKS.iter().any(|no_disk| series.subject.starts_with(no_disk)))
}

/// The sum of all; `None` where there are none, or one of them is not known.
fn sum(all: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let all = all.collect::<Option<Vec<f64>>>()?;
    (!all.is_empty()).then(|| all.into_iter().sum())
}

/// The mean of a series over some times, each sample weighted by how much of them it covers.
fn mean(node: &Node, series: &Series, spans: &[Span]) -> Option<f64> {
    let (mut sum, mut covered) = (0.0, 0.0);
    for (place, shared, _) in spans.iter().flat_map(|span| samples(node, *span)) {
        if let Some(value) = series.values.get(place).filter(|value| value.is_finite()) {
            (sum, covered) = (sum + shared as f64 * f64::from(*value), covered + shared as f64);
        }
    }
    let whole = spans.iter().map(|span| span.length_ns()).fold(0, u64::saturating_add) as f64;
    (covered > 0.0 && covered >= COVERED_LEAST * whole).then(|| sum / covered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::fault::Fault;
    use tidemark_measure::record::{Proof, StorageUse};

    const S: u64 = 1_000_000_000;

    fn series(kind: Kind, subject: &str, metric: &str, values: &[f32]) -> Series {
        Series { kind, subject: subject.into(), metric: metric.into(), values: values.to_vec() }
    }

    /// A node sampled once a second, at the end of each.
    fn node(name: &str, series: Vec<Series>) -> Node {
        let samples = series.iter().map(|series| series.values.len()).max().unwrap_or(0) as u64;
        Node {
            name: name.into(),
            facts: vec![("kernel".into(), "6.1".into())],
            at_ns: (0..samples).map(|second| second * S).collect(),
            series,
            ..Node::default()
        }
    }

    fn query(query: &str, began_ns: u64, took_ns: u64) -> QueryUse {
        QueryUse { query: query.into(), stream: 1, began_ns, took_ns, ..QueryUse::default() }
    }

    /// A run whose only stage began with it.
    fn run(queries: Vec<QueryUse>, nodes: Vec<Node>) -> Run {
        let work = Work { name: "power".into(), workers: 1, last_done_ns: 100 * S, ..Work::default() };
        let used = TablesUse { work: "power".into(), queries, ..TablesUse::default() };
        let proof = Proof { tables: vec![used], ..Proof::default() };
        let stage = Stage { works: vec![work], proof: Some(proof), ..Stage::default() };
        Run { stages: vec![stage], nodes, ..Run::default() }
    }

    fn of(run: &Run) -> Beneath<'_> {
        beneath(run, &run.stages[0])
    }

    #[test]
    fn samples_count_by_the_time_that_they_cover() {
        let busy = series(Kind::Cpu, "all", "busy", &[f32::NAN, 0.2, 0.4, 0.6, 0.8, 1.0, 0.0]);
        // Half of the second sample, all of the third and fourth, half of the fifth.
        let run = run(vec![query("q1", S + S / 2, 3 * S)], vec![node("a", vec![busy])]);
        let found = of(&run);
        assert_eq!((found.queries.len(), found.too_short, &found.nodes[..]), (1, 0, &["a"][..]));
        let busy = found.queries[0].busy_ratio.unwrap();
        assert!((busy - (0.4 / 2.0 + 0.6 + 0.8 + 1.0 / 2.0) / 3.0).abs() < 1e-6, "{busy}");
        assert_eq!((found.queries[0].gateways, found.queries[0].disk_read_bytes_per_s), (None, None));
    }

    #[test]
    fn gateways_are_rates_times_time_and_one_that_two_saw_is_one() {
        let gateway = |name: &str, bytes| {
            ["get", "get_bytes", "put", "put_bytes"].map(|metric| {
                let value = if metric == "get_bytes" { bytes } else { 2.0 };
                series(Kind::Ceph, name, metric, &[value; 20])
            })
        };
        let own = Node { generates: true, ..node("own", gateway("client.rgw.a", 7.0).to_vec()) };
        let nodes = vec![
            node(
                "s1",
                gateway("client.rgw.a", 100.0).into_iter().chain(gateway("client.rgw.b", 50.0)).collect(),
            ),
            node("s2", gateway("client.rgw.b", 50.0).to_vec()),
            own,
        ];
        let mut one = query("q1", 4 * S, 4 * S);
        one.engine_read_bytes = Some(1200);
        let run = run(vec![one], nodes);
        let found = of(&run);
        let gateways = found.queries[0].gateways.unwrap();
        let expected = Gateways { reads: 16.0, read_bytes: 600.0, writes: 16.0, written_bytes: 16.0 };
        assert_eq!((gateways, found.nodes), (expected, vec!["s1", "s2"]));
        assert_eq!(found.queries[0].gateway_share(), Some(0.5));
    }

    #[test]
    fn disks_add_up_without_those_that_lie_on_others_and_processors_by_their_number() {
        let facts = |count: &str| vec![("processors".to_owned(), count.to_owned())];
        let disk = |name: &str, value| series(Kind::Disk, name, "read_bytes", &[value; 9]);
        let busy = |value| series(Kind::Cpu, "all", "busy", &[value; 9]);
        let (one, other) = (
            vec![busy(1.0), disk("sda", 5.0), disk("loop3", 5.0), disk("dm-0", 5.0)],
            vec![busy(0.0), disk("nvme0n1", 6.0)],
        );
        let nodes = vec![
            Node { facts: facts("6"), ..node("a", one) },
            Node { facts: facts("2"), ..node("b", other) },
        ];
        let mut run = run(vec![query("q1", S, 4 * S)], nodes);
        assert_eq!(of(&run).queries[0].disk_read_bytes_per_s, Some(11.0));
        assert_eq!(of(&run).queries[0].busy_ratio, Some(0.75));
        run.nodes[1].facts.clear();
        assert_eq!(of(&run).queries[0].busy_ratio, Some(0.5), "of one node nobody knows");
    }

    #[test]
    fn executions_of_a_query_are_one_mean_by_their_time() {
        let read = series(
            Kind::Disk,
            "sda",
            "read_bytes",
            &[0.0, 10.0, 10.0, 10.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0],
        );
        let seen = |read_bytes| Some(StorageUse { read_bytes, ..StorageUse::default() });
        let mut queries = vec![query("q1", 0, 3 * S), query("q1", 3 * S, 6 * S), query("q2", 0, S)];
        (queries[0].storage, queries[1].storage) = (seen(100), seen(300));
        let run = run(queries, vec![node("a", vec![read])]);
        let found = of(&run);
        let [one] = &found.queries[..] else { panic!("{found:?}") };
        assert_eq!((one.executions, one.took_ns, one.engine_read_bytes), (2, 4 * S + S / 2, Some(200)));
        assert!((one.disk_read_bytes_per_s.unwrap() - (3.0 * 10.0 + 6.0 * 20.0) / 9.0).abs() < 1e-9);
        assert_eq!(found.too_short, 1, "of a second nobody can tell");
    }

    #[test]
    fn only_what_ran_alone_and_well_has_the_nodes_to_itself() {
        let nodes = || vec![node("a", vec![series(Kind::Cpu, "all", "busy", &[0.5; 40])])];
        let two = || vec![query("q1", S, 5 * S), query("q2", 10 * S, 5 * S)];
        let count = |run: &Run| (of(run).queries.len(), of(run).too_short);
        assert_eq!(count(&run(two(), nodes())), (2, 0));
        let mut beside = run(two(), nodes());
        let other =
            Work { name: "other".into(), started_ns: 12 * S, last_done_ns: S, workers: 1, ..Work::default() };
        beside.stages[0].works.push(other);
        assert_eq!(count(&beside), (1, 0), "another work was at it");
        let mut streams = run(two(), nodes());
        streams.stages[0].works[0].workers = 2;
        assert_eq!(count(&streams), (0, 0));
        let mut failed = run(two(), nodes());
        failed.stages[0].proof.as_mut().unwrap().tables[0].queries[0].fault = Some(Fault::Timeout);
        assert_eq!(count(&failed), (1, 0));
        assert_eq!(count(&run(two(), Vec::new())), (0, 0), "nobody looked");
    }

    #[test]
    fn a_long_pause_between_samples_tells_nothing_of_what_ran_in_it() {
        let mut late = node("a", vec![series(Kind::Cpu, "all", "busy", &[0.5; 12])]);
        // Nobody looked from the fourth to the ninth second.
        late.at_ns.drain(5..9);
        late.series[0].values.truncate(late.at_ns.len());
        let of_all = run(vec![query("q1", 0, 3 * S), query("q2", 3 * S, 4 * S)], vec![late]);
        let names: Vec<_> = of(&of_all).queries.iter().map(|under| under.query).collect();
        assert_eq!((names, of(&of_all).too_short), (vec!["q1"], 1));
    }

    #[test]
    fn what_was_not_sampled_for_most_of_the_time_is_not_known() {
        let gaps = |known: usize| {
            let mut values = vec![f32::NAN; 9];
            values[2..2 + known].fill(0.5);
            run(vec![query("q1", S, 6 * S)], vec![node("a", vec![series(Kind::Cpu, "all", "busy", &values)])])
        };
        assert_eq!(of(&gaps(2)).queries[0].busy_ratio, None);
        assert_eq!(of(&gaps(3)).queries[0].busy_ratio, Some(0.5));
        let odd = run(
            vec![query("q1", u64::MAX, u64::MAX)],
            vec![node("a", vec![series(Kind::Cpu, "all", "busy", &[0.5; 9])])],
        );
        assert!(of(&odd).queries.is_empty(), "beyond all clocks");
    }
}
