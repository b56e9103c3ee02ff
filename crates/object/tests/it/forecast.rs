//! Forecasts of whole documents on objects, with exact numbers.

use std::sync::Arc;
use tidemark_measure::units;
use tidemark_object::Objects;
use tidemark_plan::forecast::{self, Action, Amount, Forecast};
use tidemark_plan::plan::Plan;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::{self, Environment};

fn registry() -> Registry {
    Registry::new(vec![Arc::new(Objects)], vec![])
}

fn plan(text: &str) -> Plan {
    let registry = registry();
    let variable = |_: &str| Some("http://10.0.0.1".to_owned());
    let file = |_: &std::path::Path| Ok("x".to_owned());
    let environment = Environment { variable: &variable, file: &file, ..Environment::process(&registry) };
    let read = yaml::read(text, &environment);
    read.unwrap_or_else(|errors| panic!("{errors:#?}")).0
}

fn forecast(plan: &Plan) -> Forecast {
    forecast::forecast(plan, &registry())
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
    let notes = |text: &str| forecast(&plan(text)).notes;
    let pins: Vec<_> = notes(text).into_iter().filter(|note| note.topic == "drivers").collect();
    assert_eq!(pins.len(), 1);
    assert!(pins[0].text.starts_with("works are pinned to d1:"), "{}", pins[0].text);
    assert!(notes(&text.replace(", driver: d1", "")).iter().all(|note| note.topic != "drivers"));
}

#[test]
fn the_whitepaper_s_workload_in_numbers() {
    let forecast = forecast(&plan(include_str!("../../../../examples/whitepaper-4k.yaml")));
    let action = |stage: usize, index: usize| forecast.stages[stage].works[0].actions[index].clone();
    let is = |action: Action, does, operations, count, held, bytes| {
        assert_eq!(
            (action.does.code, action.operations, action.count, action.held, action.bytes),
            (does, operations, count, held, bytes)
        );
    };
    use Amount::{Exactly, Open, UpTo};
    let (all, half) = (Exactly(50_000 * SMALL), UpTo(25_000 * SMALL));
    is(action(0, 0), "creates_containers", Exactly(100), Exactly(100), Open, Exactly(0));
    is(action(1, 0), "writes_objects", Exactly(50_000), Exactly(50_000), all, all);
    is(action(2, 0), "reads_objects", Open, UpTo(25_000), half, Open);
    is(action(2, 1), "writes_objects", Open, UpTo(25_000), half, Open);
    is(action(3, 0), "deletes_objects", Exactly(50_000), Exactly(50_000), all, all);
    is(action(4, 0), "deletes_containers", Exactly(100), Exactly(100), Open, Exactly(0));
    assert_eq!(forecast.stages[2].time.planned_ns, 1_200_000_000_000);
    assert_eq!(forecast.stages[2].time.describe(), "20 m 00 s");
    assert_eq!(forecast.stages[1].time.describe(), "until 50\u{202f}000 objects are written");
    assert_eq!((forecast.time.planned_ns, forecast.time.until.len()), (1_200_000_000_000, 4));
    assert_eq!((forecast.workers, forecast.connections), (32, 32));
    assert_eq!(forecast.stored_bytes, 200_000_000);
    assert_eq!(forecast.notes, [], "there is nothing odd about it");
}

/// The actions of a load on ten objects of 15 MB.
fn on_ten(load: &str) -> Vec<Action> {
    let forecast = stages(&format!(
        "- init: {{containers: 1}}\n- prepare: {{containers: 1, objects: 1-10, sizes: 15MB}}\n- load: {{containers: 1, {load}}}\n\
         - dispose: {{containers: 1, empty: true}}\n"
    ));
    forecast.stages[2].works[0].actions.clone()
}

#[test]
fn operations_objects_and_bytes_are_told_apart() {
    use Amount::{About, Exactly, Open, UpTo};
    const MB: u64 = 1_000_000;
    let told = |load: &str| {
        let told = |one: &Action| (one.operations, one.count, one.held, one.bytes);
        on_ten(load).iter().map(told).collect::<Vec<_>>()
    };
    let (ten, all) = (UpTo(10), UpTo(150 * MB));
    let ranged =
        "total_operations: 10, operations: [get: {objects: 1-10, range: {length: 5MB, object_size: 15MB}}]";
    assert_eq!(told(ranged), [(Exactly(10), ten, all, Exactly(50 * MB))]);
    let many = "total_operations: 2, operations: [delete_many: {objects: 1-91, count: 10}]";
    assert_eq!(told(many), [(Exactly(2), UpTo(20), all, all)]);
    let often = "total_operations: 1000, operations: [get: {objects: 1-10}]";
    assert_eq!(told(often), [(Exactly(1_000), ten, all, Exactly(15_000 * MB))]);
    let mix = "total_operations: 100, operations: [get: {objects: 1-10, weight: 70}, put: {objects: 11-20, sizes: 1-3KB, weight: 30}]";
    assert_eq!(
        told(mix),
        [(About(70), ten, all, About(1_050 * MB)), (About(30), ten, UpTo(30_000), About(60_000))]
    );
    let beside = "for: 1s, operations: [get: {objects: 1-20}, put: {objects: 11-20, sizes: 1MB}]";
    assert_eq!(
        told(beside)[0],
        (Open, UpTo(20), UpTo(160 * MB), Open),
        "what the same stage writes is there, too"
    );
    let timed = "for: 1s, operations: [get: {objects: 1-10}]";
    assert_eq!(told(timed), [(Open, ten, all, Open)]);
    let bytes = "total_bytes: 1GB, operations: [get: {objects: 1-10}]";
    assert_eq!(told(bytes), [(Open, ten, all, About(1_000 * MB))]);
    let sizes = stages("- init: {containers: 1}\n- prepare: {containers: 1, objects: 1-10, sizes: 1-3KB}\n");
    let prepared = &sizes.stages[1].works[0].actions[0];
    assert_eq!((prepared.held, prepared.bytes), (About(20_000), About(20_000)));
    assert_eq!(sizes.stored_bytes, 30_000, "at most");
    assert!(sizes.notes[0].text.starts_with("up to 10 objects (30.0 kB) remain"), "{:?}", sizes.notes);
}

#[test]
fn every_verb_is_called_what_it_does() {
    for (verb, words) in [
        ("head", "reads headers of up to 5 objects, in 5 operations"),
        ("copy", "copies up to 5 objects, in 5 operations"),
        ("put_tags", "tags up to 5 objects, in 5 operations"),
        ("get_tags", "reads tags of up to 5 objects, in 5 operations"),
        ("restore", "restores up to 5 objects, in 5 operations"),
        ("get", "reads up to 5 objects (up to 75.0 MB), 75.0 MB, in 5 operations"),
    ] {
        let action = &on_ten(&format!("total_operations: 5, operations: [{verb}: {{objects: 1-10}}]"))[0];
        assert_eq!(action.describe(), words);
        assert_eq!(action.names, "mycontainers1: myobjects1 to myobjects10");
    }
    let copies = stages(
        "- init: {containers: 1}\n- prepare: {containers: 1, objects: 1-10, sizes: 1KB}\n\
         - load: {for: 1s, containers: 1, operations: [copy: {objects: 1-10}]}\n- cleanup: {containers: 1, objects: 1-10}\n",
    );
    assert!(copies.notes[0].text.contains("such as myobjects1-copy"), "{:?}", copies.notes);
}

#[test]
fn what_is_written_in_order_and_often_enough_is_there() {
    let read_after = |fill: &str| {
        let forecast = stages(&format!(
            "- init: {{containers: 1}}\n- load: {{workers: 3, containers: 1, {fill}}}\n\
             - load: {{for: 1s, containers: 1, operations: [get: {{objects: 1-10}}]}}\n- dispose: {{containers: 1, empty: true}}\n"
        ));
        topics(&forecast).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let put = |total: u32, objects: &str| {
        read_after(&format!(
            "total_operations: {total}, operations: [put: {{objects: '{objects}', sizes: 1KB}}]"
        ))
    };
    assert_eq!(put(10, "s(1,10)"), [""; 0]);
    assert_eq!(put(10, "r(1,10)"), [""; 0]);
    assert_eq!(put(9, "s(1,10)"), ["read-of-uncertain"]);
    assert_eq!(put(99, "u(1,10)"), ["read-of-uncertain"]);
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
    assert_eq!(with(2, "none") - with(1, "none"), 24 << 10);
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
    let load = |first: u64| {
        let all: Vec<_> = (first..first + 100).map(|index| format!("{{{}}}", operation(index))).collect();
        format!("- load: {{for: 1s, operations: [{}]}}\n", all.join(", "))
    };
    let hard = stages(&(0..9).map(|index| load(index * 100 + 1)).collect::<String>());
    assert_eq!(topics(&hard).first(), Some(&"too-complex"));
}

#[test]
fn times_beyond_all_bounds_are_no_reason_to_stop() {
    let forecast = stages(
        "- load: {containers: 1, objects: 1, for: 1s, warm_up: 18446744073s, ramp_down: 18446744073s, \
         operations: [get: {}]}\n",
    );
    assert_eq!(forecast.stages[0].works[0].actions[0].operations, Amount::Open);
}
