//! Forecasts of block storage, with exact numbers.

use super::*;
use crate::document::tests::{plan, registry};
use tidemark_plan::forecast::{Forecast, forecast};

fn of_text(text: &str) -> Forecast {
    forecast(&plan(text), &registry())
}

fn topics(forecast: &Forecast) -> Vec<&str> {
    forecast.notes.iter().map(|note| note.topic.as_str()).collect()
}

/// Stages on a file of 1 GiB; `target` are more of its keys.
fn on_volumes(target: &str, stages: &str) -> Forecast {
    of_text(&format!("name: t\ntarget: {{kind: file, path: /f, size: 1GiB{target}}}\nstages:\n{stages}"))
}

#[test]
fn block_plans_in_numbers() {
    let text = "- prepare: {reuse: false}\n- precondition: {passes: 3}\n\
                - load: {pattern: randrw, block_size: 4KiB, depth: 8, for: 60s, fsync: 4}\n\
                - load: {pattern: read, block_size: 1MiB, total_operations: 10}\n- cleanup: {}\n";
    let forecast = on_volumes(", count: 2", text);
    use Amount::{Exactly, Open};
    const GIB: u64 = 1 << 30;
    let found = |stage: usize| {
        let each = |action: &Action| (action.label.clone(), action.does, action.operations, action.bytes);
        forecast.stages[stage].works[0].actions.iter().map(each).collect::<Vec<_>>()
    };
    let action = |label: &str, does, operations, bytes| (label.to_owned(), does, operations, bytes);
    let sync = action("fsync", SYNCS, Exactly(2), Exactly(0));
    let write = |operations, bytes| action("write", WRITES, operations, bytes);
    assert_eq!(found(0), [write(Exactly(2048), Exactly(2 * GIB)), sync.clone()]);
    assert_eq!(found(1), [write(Open, Exactly(6 * GIB)), sync]);
    let read = action("read", READS, Open, Open);
    assert_eq!(found(2), [read, write(Open, Open), action("fsync", SYNCS, Open, Exactly(0))]);
    assert_eq!(found(3), [action("read", READS, Exactly(10), Exactly(10 << 20))]);
    assert_eq!(found(4), [action("remove", REMOVES, Exactly(2), Exactly(2 * GIB))]);
    assert_eq!((forecast.volume_bytes, forecast.stored_bytes, forecast.connections), (2 * GIB, 0, 0));
    let times: Vec<_> = forecast.stages.iter().map(|stage| stage.time.describe()).collect();
    assert_eq!(
        times,
        [
            "until 2.15 GB are written",
            "until 6.44 GB are moved",
            "1 m 00 s",
            "until 10 operations are done",
            "until 2 volumes are removed"
        ]
    );
    assert_eq!(topics(&forecast), [""; 0], "there is nothing odd about it");
}

#[test]
fn what_block_load_will_find_is_told_in_advance() {
    let load = |pattern: &str| format!("- load: {{pattern: {pattern}, block_size: 4KiB, for: 9s}}\n");
    let with =
        |stages: &str| topics(&on_volumes("", stages)).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (fill, clean) = ("- prepare: {}\n", "- cleanup: {}\n");
    assert_eq!(with(&format!("{fill}{}{clean}", load("read"))), [""; 0]);
    assert_eq!(with(&format!("{}{clean}", load("randrw"))), ["read-of-unfilled"]);
    assert_eq!(with(&format!("{}{clean}", load("write"))), ["write-of-unfilled"]);
    assert_eq!(with(&format!("{fill}{}{}{clean}", load("trim"), load("read"))), ["read-of-unfilled"]);
    assert_eq!(with(&format!("{fill}{clean}{}", load("read"))), ["read-of-unfilled"]);
    assert_eq!(with(&format!("{fill}{}", load("read"))), ["volumes-left"]);
    assert_eq!(with(&format!("{fill}{}{clean}", load("read").replace("9s", "4s"))), ["short-window"]);
    let sweep = load("[read, write]").replace("for", "repeats: 50, for");
    let swept = on_volumes("", &format!("{sweep}{clean}"));
    assert_eq!(topics(&swept), ["read-of-unfilled", "write-of-unfilled"], "once for all points");
    assert!(
        swept.notes[0].text.starts_with("load reads /f, which no earlier stage fills"),
        "{:?}",
        swept.notes
    );
    let device =
        format!("name: t\ntarget: {{kind: device, path: /dev/x, size: 1GiB}}\nstages:\n{}", load("rw"));
    assert_eq!(topics(&of_text(&device)), ["destroys-content"], "a device has content");
}

#[test]
fn memory_and_time_of_block_load() {
    let memory = |content: &str, depth: u32| {
        let load = format!(
            "- load: {{pattern: read, block_size: 1MiB, depth: {depth}, for: 9s, steady: 5s, content: {{{content}}}}}"
        );
        on_volumes("", &load)
    };
    assert_eq!(memory("verify: false", 9).memory_bytes - memory("verify: false", 1).memory_bytes, 8 << 20);
    assert_eq!(memory("verify: true", 1).memory_bytes - memory("verify: false", 1).memory_bytes, 12 << 18);
    let time = memory("verify: false", 1).time;
    assert_eq!((time.planned_ns, time.at_most), ((25 * 5 + 9) * 1_000_000_000, true));
    let counted =
        on_volumes("", "- load: {pattern: read, block_size: 4KiB, total_operations: 5, repeats: 500}");
    assert_eq!(
        counted.time.describe(),
        "until 5 operations are done, 5 operations are done and 498 more conditions"
    );
}

#[test]
fn the_block_examples_are_what_they_say() {
    let of = of_text;
    let sequential = of(include_str!("../../../../examples/block-sequential.yaml"));
    assert_eq!((sequential.stages.len(), sequential.volume_bytes), (2 + 2 * 5 * 3, 8 << 30));
    let qct = of(include_str!("../../../../examples/block-qct-rbd.yaml"));
    assert_eq!((qct.stages.len(), qct.volume_bytes, qct.workers), (2 + 4 * 4, 4 << 30, 8));
    let oltp = of(include_str!("../../../../examples/block-oltp.yaml"));
    assert_eq!(oltp.stages.len(), 3);
    for forecast in [sequential, qct, oltp] {
        assert_eq!(topics(&forecast), [""; 0], "{}", forecast.name);
    }
}
