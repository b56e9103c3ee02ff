//! Forecasts of whole documents, with exact numbers.

use super::*;
use crate::yaml;

fn plan(text: &str) -> Plan {
    let variable = |_: &str| Some("http://10.0.0.1".to_owned());
    let file = |_: &std::path::Path| Ok("x".to_owned());
    yaml::read_in(
        text,
        &yaml::Environment { variable: &variable, file: &file, ..yaml::Environment::process() },
    )
    .unwrap()
    .0
}

fn stages(stages: &str) -> Forecast {
    forecast(&plan(&format!("name: t\ntarget: embedded\nstages:\n{stages}")))
}

fn topics(forecast: &Forecast) -> Vec<&str> {
    forecast.notes.iter().map(|note| note.topic.as_str()).collect()
}

const SMALL: u64 = 4_000;

#[test]
fn pins_are_told_to_whoever_has_no_drivers() {
    let text = "name: t\ntarget: none\nstages:\n- init: {containers: 1-2, driver: d1}\n- dispose: {containers: 1-2, driver: \
                d1}\n";
    let notes = |text: &str| forecast(&yaml::read(text).unwrap().0).notes;
    let pins: Vec<_> = notes(text).into_iter().filter(|note| note.topic == "drivers").collect();
    assert_eq!(pins.len(), 1);
    assert!(pins[0].text.starts_with("works are pinned to d1:"), "{}", pins[0].text);
    assert!(notes(&text.replace(", driver: d1", "")).iter().all(|note| note.topic != "drivers"));
}

#[test]
fn the_whitepaper_s_workload_in_numbers() {
    let forecast = forecast(&plan(include_str!("../../../../examples/whitepaper-4k.yaml")));
    let action = |stage: usize, index: usize| forecast.stages[stage].works[0].actions[index].clone();
    let is = |action: Action, does, operations, count, bytes| {
        assert_eq!(
            (action.does, action.operations, action.count, action.bytes),
            (does, operations, count, bytes)
        );
    };
    use Amount::{Exactly, Open, UpTo};
    is(action(0, 0), Does::CreatesContainers, Exactly(100), Exactly(100), Exactly(0));
    is(action(1, 0), Does::WritesObjects, Exactly(50_000), Exactly(50_000), Exactly(50_000 * SMALL));
    is(action(2, 0), Does::ReadsObjects, Open, UpTo(25_000), UpTo(25_000 * SMALL));
    is(action(2, 1), Does::WritesObjects, Open, UpTo(25_000), UpTo(25_000 * SMALL));
    is(action(3, 0), Does::DeletesObjects, Exactly(50_000), Exactly(50_000), Exactly(50_000 * SMALL));
    is(action(4, 0), Does::DeletesContainers, Exactly(100), Exactly(100), Exactly(0));
    assert_eq!(forecast.stages[2].time.planned_ns, 1_200_000_000_000);
    assert_eq!(forecast.stages[2].time.describe(), "20 m 00 s");
    assert_eq!(forecast.stages[1].time.describe(), "until all 50\u{202f}000 objects are written");
    assert_eq!((forecast.time.planned_ns, forecast.time.until.len()), (1_200_000_000_000, 4));
    assert_eq!((forecast.workers, forecast.connections), (32, 32));
    assert_eq!(forecast.stored_bytes, 200_000_000);
    assert_eq!(forecast.notes, [], "there is nothing odd about it");
}

#[test]
fn reads_of_what_is_not_there_are_told_apart() {
    let read = |objects: &str, load: &str| {
        stages(&format!(
            "- init: {{containers: 1-2}}\n- prepare: {{containers: 1-2, objects: 1-10, sizes: 1KB}}\n\
             - load: {{for: 1s, containers: 1-2, operations: [get: {{objects: {objects}}}{load}]}}\n\
             - cleanup: {{containers: 1-2, objects: 1-99}}\n- dispose: {{containers: 1-2}}\n"
        ))
    };
    assert_eq!(topics(&read("1-10", "")), [""; 0]);
    let unwritten = read("1-20", "");
    assert_eq!(topics(&unwritten), ["read-of-unwritten"]);
    assert!(unwritten.notes[0].text.contains("myobjects11 to myobjects20"), "{:?}", unwritten.notes);
    assert_eq!(topics(&read("1-20", ", put: {objects: 11-20, sizes: 1KB}")), ["read-before-write"]);
}

#[test]
fn what_stays_behind_is_counted() {
    let left = stages(
        "- init: {containers: 1-3}\n- prepare: {containers: 1-2, objects: 1-10, sizes: 1KB}\n\
         - load: {for: 1s, containers: 1-2, operations: [put: {objects: 5-20, sizes: 1KB}]}\n\
         - cleanup: {containers: 1-2, objects: 1-10}\n- dispose: {containers: 1-2}\n",
    );
    assert_eq!(topics(&left), ["containers-not-empty", "objects-left", "containers-left"]);
    assert!(left.notes[1].text.starts_with("up to 20 objects (20.0 kB) remain"), "{:?}", left.notes);
    assert!(left.notes[2].text.starts_with("mycontainers3 remain"), "{:?}", left.notes);
    let emptied = stages(
        "- init: {containers: 1-3}\n- prepare: {containers: 1-3, objects: 1-10, sizes: 1KB}\n\
         - dispose: {containers: 1-3, empty: true}\n",
    );
    assert_eq!(topics(&emptied), [""; 0]);
}

#[test]
fn a_pool_needs_only_what_it_takes_for_granted() {
    let pool = |existing: &str, rest: &str| {
        stages(&format!(
            "- init: {{containers: 1-2}}\n- prepare: {{containers: 1-2, objects: 1-10, sizes: 1KB}}\n\
             - load: {{for: 1s, containers: 1-2, objects: 1-100{existing}, operations: [get: {{}}, put: {{sizes: 1KB}}, delete: {{}}]}}\n\
             {rest}- cleanup: {{containers: 1-2, objects: 1-100}}\n- dispose: {{containers: 1-2}}\n"
        ))
    };
    assert_eq!(topics(&pool(", pool: {existing: 1-10}", "")), [""; 0]);
    assert_eq!(topics(&pool(", pool: {existing: 1-11}", "")), ["pool-of-unwritten"]);
    let without = pool("", "");
    assert_eq!(topics(&without), ["read-before-write", "deletes-without-pool"]);
    let later = "- load: {for: 1s, containers: 1-2, operations: [get: {objects: 1-10}]}\n";
    assert_eq!(topics(&pool(", pool: {existing: 1-10}", later)), ["read-of-uncertain"]);
}

#[test]
fn odd_settings_are_remarked_on() {
    let within = |load: &str| {
        let forecast = stages(&format!(
            "- init: {{containers: 1-10}}\n- prepare: {{containers: 1-10, objects: 1-20, sizes: 1KB}}\n- load: {load}\n\
             - dispose: {{containers: 1-10, empty: true}}\n"
        ));
        topics(&forecast).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let get = "operations: [get: {containers: 1-10, objects: 1-20}]";
    assert_eq!(within(&format!("{{for: 1s, {get}}}")), [""; 0]);
    assert_eq!(within(&format!("{{total_operations: 5, give_up: never, {get}}}")), ["no-time-limit"]);
    assert_eq!(within(&format!("{{for: 1s, rate: 50k/s, workers: 49, {get}}}")), ["few-workers-for-rate"]);
    assert_eq!(within(&format!("{{for: 1s, rate: 50k/s, workers: 50, {get}}}")), [""; 0]);
    assert_eq!(within(&format!("{{for: 1s, workers: 30, division: objects, {get}}}")), ["idle-workers"]);
    let pooled = "{for: 1s, workers: 21, containers: 1-10, objects: 1-20, pool: {existing: 1-20}, operations: [get: {}]}";
    assert_eq!(within(pooled), ["idle-workers"]);
    let steps = "{for: 1s, operations: [get: {containers: 'r(1,10)', objects: 'r(1,20)'}]}";
    assert_eq!(within(steps), ["pairs-in-step"]);
    assert_eq!(within(&steps.replace("1,20", "1,19")), [""; 0], "10 and 19 have no common divisor");
    let put = |more: &str, settings: &str| {
        within(&format!(
            "{{for: 1s, workers: 2, {more}, operations: [put: {{containers: 1, objects: 1-9, {settings}}}]}}"
        ))
    };
    assert_eq!(put("content: {fill: hashed}", "sizes: 40B"), ["too-small-for-hash"]);
    assert_eq!(put("content: {verify: true}, division: objects", "sizes: 63B"), ["too-small-for-stamp"]);
    let verified = |read: &str, more: &str| {
        within(&format!(
            "{{for: 1s, workers: 2, containers: 1-10, content: {{verify: true}}{more}, \
             operations: [put: {{objects: 1-9, sizes: 1KB}}, get: {{objects: {read}}}]}}"
        ))
    };
    assert_eq!(verified("9-20", ""), ["overlapping-writes"]);
    assert_eq!(verified("10-20", ""), [""; 0]);
    assert_eq!(verified("9-20", ", division: objects"), [""; 0]);
    assert_eq!(put("name: x", "sizes: 1KB, if_absent: true"), ["conditional-writes"]);
    assert_eq!(put("name: x", "sizes: 8MiB, multipart: {part: 1MiB}"), ["small-parts"]);
    let idle = stages("- init: {containers: 1-3, workers: 5}\n- dispose: {containers: 1-3}\n");
    assert_eq!(topics(&idle), ["idle-workers"]);
    assert!(idle.notes[0].text.starts_with("2 of the 5 workers of init"), "{:?}", idle.notes);
}

#[test]
fn times_and_amounts_add_up() {
    let forecast = stages(
        "- works:\n  - load: {for: 10s, warm_up: 2s, total_bytes: 1GB, operations: [list: {containers: 1}]}\n  \
         - load: {for: 4s, operations: [list: {containers: 1}]}\n  pause: 3s\n\
         - load: {total_operations: 500, operations: [list: {containers: 1}]}\n",
    );
    let time = &forecast.stages[0].time;
    assert_eq!(
        (time.planned_ns, time.at_most, time.describe()),
        (15_000_000_000, true, "at most 15.0 s".into())
    );
    assert_eq!(forecast.stages[1].works[0].actions[0].operations, Amount::Exactly(500));
    assert_eq!(forecast.stages[1].time.describe(), "until 500 operations are done");
    assert_eq!(topics(&forecast), ["containers-not-made"]);
    assert_eq!(Amount::UpTo(5).describe(units::count), "up to 5");
}

#[test]
fn memory_grows_with_workers_and_with_what_is_kept_in_it() {
    let with = |workers: u32, target: &str| {
        let text = format!(
            "name: t\ntarget: {target}\nstages:\n- prepare: {{workers: {workers}, containers: 1-10, objects: 1-1000, sizes: 1MB}}"
        );
        forecast(&plan(&text)).memory_bytes
    };
    assert_eq!(with(2, "none") - with(1, "none"), WORKER_MEMORY);
    assert_eq!(with(1, "embedded") - with(1, "none"), 10_000_000_000);
    assert!(with(10_000, "none") < 400_000_000, "ten thousand workers have a budget of 400 MB");
}

#[test]
fn huge_plans_are_forecast_without_overflow_or_delay() {
    let text = "- prepare: {workers: 1000000, containers: 1-1000000000000, objects: 1-1000000000000, sizes: 1TB}\n\
                - load: {for: 100000h, operations: [get: {containers: u(1), objects: u(1)}]}\n";
    let forecast = stages(text);
    assert_eq!(forecast.stored_bytes, u64::MAX);
    let mut many = String::new();
    for index in 0..1_500 {
        many += &format!("- prepare: {{containers: {0}, objects: {0}, sizes: 1KB}}\n", index * 2 + 1);
    }
    assert_eq!(topics(&stages(&many)).first(), Some(&"too-complex"));
    let buckets =
        |from: u64| (0..60).map(|index| format!("{0}|{0}|1", from + index * 3)).collect::<Vec<_>>().join(",");
    let operation = |index: u64| {
        let (verb, size) = if index.is_multiple_of(2) { ("get", "") } else { ("put", ", sizes: 1KB") };
        format!("{verb}: {{containers: {index}-1500, objects: 'h({})'{size}}}", buckets(index + 1))
    };
    let all = (1..=900).map(operation).map(|text| format!("{{{text}}}")).collect::<Vec<_>>().join(", ");
    let hard = stages(&format!("- load: {{for: 1s, operations: [{all}]}}\n"));
    assert_eq!(topics(&hard).first(), Some(&"too-complex"));
}

#[test]
fn the_whitepaper_in_cosbench_s_dialect_is_forecast_the_same_way() {
    for text in [
        include_str!("../../../../examples/whitepaper-4k-s3.xml"),
        include_str!("../../../../examples/whitepaper-4k-swift.xml"),
    ] {
        let value = |name: &str| {
            let address = [("TIDEMARK_LAB_S3", "http://h:1"), ("TIDEMARK_LAB_SWIFT", "http://h:1/auth/v1.0")];
            let address = address.iter().find(|(known, _)| *known == name);
            Some(address.map_or("mine", |(_, value)| value).to_owned())
        };
        let environment =
            crate::yaml::Environment { variable: &value, ..crate::yaml::Environment::process() };
        let (plan, warnings) = crate::cosbench::read_in(text, &environment).unwrap();
        assert_eq!(warnings, []);
        let workers: Vec<_> = plan.stages.iter().map(|stage| stage.works[0].load.workers).collect();
        assert_eq!(workers, [1, 10, 32, 18, 18]);
        let forecast = forecast(&plan);
        let counts: Vec<_> = forecast.stages.iter().map(|stage| stage.works[0].actions[0].count).collect();
        let (few, all) = (Amount::Exactly(4), Amount::Exactly(400));
        assert_eq!(counts, [few, all, Amount::UpTo(200), all, few]);
        assert_eq!((forecast.stored_bytes, forecast.time.planned_ns), (400 * SMALL, 22_000_000_000));
        assert_eq!(topics(&forecast), ["idle-workers"], "18 workers delete 4 containers");
    }
}

/// Stages on a file of 1 GiB; `target` are more of its keys.
fn on_volumes(target: &str, stages: &str) -> Forecast {
    forecast(&plan(&format!(
        "name: t\ntarget: {{kind: file, path: /f, size: 1GiB{target}}}\nstages:\n{stages}"
    )))
}

#[test]
fn block_plans_in_numbers() {
    let text = "- prepare: {reuse: false}\n- precondition: {passes: 3}\n\
                - load: {pattern: randrw, block_size: 4KiB, depth: 8, for: 60s, fsync: 4}\n\
                - load: {pattern: read, block_size: 1MiB, total_operations: 10}\n- cleanup: {}\n";
    let forecast = on_volumes(", count: 2", text);
    use Amount::{Exactly, Open, UpTo};
    const GIB: u64 = 1 << 30;
    let found = |stage: usize| {
        let each = |action: &Action| (action.label.clone(), action.does, action.operations, action.bytes);
        forecast.stages[stage].works[0].actions.iter().map(each).collect::<Vec<_>>()
    };
    let action = |label: &str, does, operations, bytes| (label.to_owned(), does, operations, bytes);
    let sync = action("fsync", Does::SyncsVolumes, Exactly(2), Exactly(0));
    let write = |operations, bytes| action("write", Does::WritesBlocks, operations, bytes);
    assert_eq!(found(0), [write(Exactly(2048), Exactly(2 * GIB)), sync.clone()]);
    assert_eq!(found(1), [write(Open, Exactly(6 * GIB)), sync]);
    let read = action("read", Does::ReadsBlocks, Open, Open);
    assert_eq!(found(2), [read, write(Open, Open), action("fsync", Does::SyncsVolumes, Open, Exactly(0))]);
    assert_eq!(found(3), [action("read", Does::ReadsBlocks, Exactly(10), UpTo(10 << 20))]);
    assert_eq!(found(4), [action("remove", Does::RemovesVolumes, Exactly(2), Exactly(2 * GIB))]);
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
    assert_eq!(topics(&forecast(&plan(&device))), ["destroys-content"], "a device has content");
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
    let of = |text: &str| forecast(&plan(text));
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
