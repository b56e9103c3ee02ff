//! Tables that were made and queried: a power run, and three streams side by side.

use super::{SECOND, provenance};
use tidemark_measure::kind::{OperationClass, WorkKind};
use tidemark_measure::observation::{Kind, Node, Series};
use tidemark_measure::record::{
    Answer, CacheLayer, Operation, Proof, QueryUse, Run, SizeCount, Stage, State, StorageUse, TableMade,
    TablesMade, TablesUse, Work,
};
use tidemark_measure::tally::Tally;

/// Queries of a tenth of a second to more than two; the last one is the longest, and waits for storage for half of it.
pub(crate) fn queries() -> Run {
    let mut stages = vec![made()];
    for (number, (name, streams)) in [("power", 1), ("throughput", 3)].into_iter().enumerate() {
        stages.push(ran(number + 2, name, streams));
    }
    let started_ns = |place: usize| 10 * SECOND + place as u64 * 60 * SECOND;
    for (place, stage) in stages.iter_mut().enumerate().skip(1) {
        (stage.started_ns, stage.ended_ns) = (started_ns(place), started_ns(place) + 60 * SECOND);
        stage.works.iter_mut().for_each(|work| work.started_ns = stage.started_ns);
    }
    Run {
        id: 41,
        name: "TPC-H-like on a bucket".into(),
        started_unix_ns: 1_795_197_600 * SECOND,
        elapsed_ns: 190 * SECOND,
        state: State::Completed,
        provenance: provenance(),
        stages,
        nodes: vec![node()],
        ..Run::default()
    }
}

/// A node with a gateway, which gives 40 MB in each second, and its disk, sampled twice a second.
fn node() -> Node {
    let at_ns: Vec<u64> = (0..380).map(|half| half * SECOND / 2).collect();
    let series = |kind, subject: &str, metric: &str, value: f32| Series {
        kind,
        subject: subject.into(),
        metric: metric.into(),
        values: vec![value; at_ns.len()],
    };
    let series = vec![
        series(Kind::Cpu, "all", "busy", 0.4),
        series(Kind::Disk, "sda", "read_bytes", 70e6),
        series(Kind::Disk, "sda", "write_bytes", 1e6),
        series(Kind::Ceph, "client.rgw.a", "get", 120.0),
        series(Kind::Ceph, "client.rgw.a", "get_bytes", 40e6),
        series(Kind::Ceph, "client.rgw.a", "put", 0.0),
        series(Kind::Ceph, "client.rgw.a", "put_bytes", 0.0),
    ];
    let facts = vec![("processors".into(), "8".into())];
    Node { name: "storage-1".into(), at_ns, series, facts, ..Node::default() }
}

fn tables(work: &str) -> TablesUse {
    TablesUse {
        work: work.into(),
        set: "tpch".into(),
        scale: "1".into(),
        engine: "DataFusion 55.2.0".into(),
        storage: "S3 at http://10.0.0.1:8000, bucket lake".into(),
        ..TablesUse::default()
    }
}

fn stage(number: usize, name: &str, work: Work, used: TablesUse) -> Stage {
    Stage {
        id: format!("s{number}-{name}"),
        name: name.into(),
        state: State::Completed,
        ended_ns: 10 * SECOND,
        works: vec![work],
        proof: Some(Proof { tables: vec![used], direct: true, ..Proof::default() }),
        ..Stage::default()
    }
}

fn made() -> Stage {
    let table = |name: &str, rows, bytes| TableMade {
        name: name.into(),
        rows,
        expected_rows: Some(rows),
        bytes,
        files: 2,
        kept_files: 0,
    };
    let made = TablesMade {
        layout: "Parquet, zstd, row groups of 1,000,000 rows, page index, files of about 134 MB".into(),
        tables: vec![table("orders", 1_500_000, 55_000_000), table("lineitem", 6_001_215, 205_000_000)],
        generating_ns: 6 * SECOND,
        encoding_ns: 11 * SECOND,
        storing_ns: 2 * SECOND,
    };
    let work = Work {
        name: "prepare".into(),
        kind: WorkKind::Prepare,
        workers: 2,
        last_done_ns: 10 * SECOND,
        window_end_ns: 10 * SECOND,
        ..Work::default()
    };
    stage(1, "prepare", work, TablesUse { made: Some(made), ..tables("prepare") })
}

fn ran(number: usize, name: &str, streams: u32) -> Stage {
    let mut used = tables(name);
    let mut operations: Vec<Operation> = Vec::new();
    let mut end = 0;
    for stream in 1..=streams {
        let mut began_ns = 0;
        for place in 0..22 {
            let query = (place * u64::from(stream)) % 22 + 1;
            let query = if streams == 1 { place + 1 } else { query };
            let took_ns = (query * SECOND / 10) * u64::from(streams.min(2));
            let (reads, read_bytes) = (query * 12, query * 5_000_000);
            let storage = StorageUse {
                requests: reads + 2,
                reads,
                read_bytes,
                needed_bytes: Some(query * 4_000_000),
                most_in_flight: 8,
                busy_ns: took_ns / 2,
                waited_ns: took_ns * 3,
                failed: 0,
                sizes: vec![
                    SizeCount { up_to_bytes: 64 << 10, reads: reads / 3 },
                    SizeCount { up_to_bytes: 1 << 20, reads: reads - reads / 3 },
                ],
            };
            used.queries.push(QueryUse {
                query: format!("q{query}"),
                stream,
                pass: 1,
                began_ns,
                took_ns,
                first_row_ns: Some(took_ns * 9 / 10),
                rows: query * 4,
                answer: Answer::Known,
                storage: Some(storage),
                ..QueryUse::default()
            });
            let label = format!("q{query}");
            if !operations.iter().any(|one| one.label == label) {
                let class = OperationClass::Read;
                operations.push(Operation {
                    label: label.clone(),
                    kind: label.clone(),
                    class,
                    weight: 100.0 / 22.0,
                    ..Operation::default()
                });
            }
            if let Some(operation) = operations.iter_mut().find(|one| one.label == label) {
                let tally: &mut Tally = &mut operation.tally;
                tally.ok += 1;
                tally.bytes += read_bytes;
                tally.response.record(took_ns);
            }
            began_ns += took_ns;
        }
        end = end.max(began_ns);
    }
    used.data_bytes = Some(324_000_000);
    used.own_cpu_ns = Some(end / 2_000);
    used.caches = vec![CacheLayer {
        layer: "memory of the S3 server, and of what is behind it".into(),
        bytes: None,
        state: "not known".into(),
        is_dropped: false,
        holds_data: true,
    }];
    let work = Work {
        name: name.into(),
        workers: streams,
        operations,
        window_end_ns: end,
        last_done_ns: end,
        ..Work::default()
    };
    stage(number, name, work, used)
}
