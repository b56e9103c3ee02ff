//! Evaluations read, their cells and plans, and what is wrong with them.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::{REGISTRY, process, read as read_document};
use proptest::prelude::*;
use std::path::PathBuf;
use tidemark_block::job::Job as BlockJob;
use tidemark_load::pacing::Pacing;
use tidemark_load::source::SourcePlan;
use tidemark_measure::axis::{Axis, Unit};
use tidemark_measure::evaluation::{Level, Search};
use tidemark_object::job::{Embedded, Job as ObjectJob, Place, Target};
use tidemark_plan::diagnostic::{Diagnostic, Severity};
use tidemark_plan::document::{self, Document};
use tidemark_plan::evaluation::{CellPlace, Evaluation, Levels, Order, is_evaluation, read};
use tidemark_plan::plan::{Plan, WorkKind};
use tidemark_plan::yaml::Environment;

/// An evaluation that uses nearly everything.
const FULL: &str = include_str!("../fixtures/full-evaluation.yaml");

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn outcome(text: &str) -> Result<(Evaluation, Vec<Diagnostic>), Vec<Diagnostic>> {
    outcome_with(text, &|_| None)
}

fn outcome_with(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Evaluation, Vec<Diagnostic>), Vec<Diagnostic>> {
    read(text, &directory(), &Environment { variable, ..process() })
}

fn evaluation(text: &str) -> Evaluation {
    let (evaluation, warnings) = outcome(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    assert_eq!(warnings, []);
    evaluation
}

fn plan(evaluation: &Evaluation, arm: usize, load: usize, level: &Level, repeat: u32) -> Plan {
    let environment = Environment { variable: &|_| None, ..process() };
    let planned = evaluation.sketch(arm, load, level, repeat, &environment);
    planned.unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// All remarks as `line:column severity message | help`.
fn remarks(text: &str) -> Vec<String> {
    let remarks = outcome(text).map_or_else(|errors| errors, |(_, warnings)| warnings);
    let print = |remark: &Diagnostic| {
        let (line, column) = remark.line_and_column(text);
        let severity = if remark.severity == Severity::Error { "error" } else { "warning" };
        format!("{line}:{column} {severity} {} | {}", remark.message, remark.help)
    };
    remarks.iter().map(print).collect()
}

/// Two arms and one load in place, with more top-level keys.
fn short(more: &str) -> String {
    format!(
        "name: t\narms:\n- {{name: a, target: none}}\n- {{name: b, target: embedded}}\nloads:\n- name: l\n  \
         stages:\n  - load: {{for: 1s, operations: [{{get: {{containers: 1, objects: 1}}}}]}}\n{more}\n"
    )
}

fn level(pairs: &[(&str, &str)]) -> Level {
    pairs.iter().map(|(axis, value)| Axis::of_words(*axis, value)).collect()
}

fn normal(plan: &Plan) -> &tidemark_plan::plan::Work {
    let mut works = plan.stages.iter().flat_map(|stage| &stage.works);
    works.find(|work| work.kind == WorkKind::Normal).unwrap()
}

#[test]
fn a_short_evaluation_is_enough() {
    let found = evaluation(&short(""));
    assert_eq!((found.repeats, found.order, found.loads.len()), (1, Order::Interleaved, 1));
    assert_eq!(found.loads[0].levels, Levels::Listed(vec![vec![]]));
    let targets: Vec<_> = (0..2)
        .map(|arm| normal(&plan(&found, arm, 0, &vec![], 1)).job.get::<ObjectJob>().unwrap().target.clone())
        .collect();
    let embedded = Target::Embedded(Embedded { place: Place::Memory, limit: None, durable: false });
    assert_eq!(targets, [Target::Nothing, embedded]);
    assert_eq!(plan(&found, 0, 0, &vec![], 1).name, "l");
}

#[test]
fn the_full_evaluation_gives_what_it_says() {
    let found = evaluation(FULL);
    let names: Vec<_> = found.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["disk", "lab-a", "own"]);
    let asked: Vec<_> = found.arms[1].requests.iter().map(|one| (one.key(), one.label())).collect();
    assert_eq!(asked, [("lab", "reference-1")]);
    assert!(found.arms[2].has_commands() && !found.arms[0].has_commands());
    assert_eq!(found.arms[2].set_up, ["./up.sh", "echo NAME=value"]);
    assert_eq!(found.arms[2].observe.processes, ["postgres", "ceph-osd"]);
    assert_eq!(found.arms[0].observe.nodes, ["http://10.0.0.2:9750"]);
    let settings = &found.arms[2].settings;
    assert!(settings.contains(&("MEDIUM".into(), "nvme".into())), "{settings:?}");
    assert!(!format!("{settings:?}").contains("very-secret"), "{settings:?}");
    assert_eq!(found.arms[0].settings[0], ("target".into(), "embedded, place disk".into()));
    let kinds: Vec<_> =
        found.loads.iter().map(|load| (load.name.as_str(), load.levels.known().len())).collect();
    assert_eq!(kinds, [("xml", 2), ("in-place", 4), ("volumes", 2), ("knee", 2), ("job", 1), ("apart", 1)]);
    assert_eq!(found.loads[1].service_level.as_ref().unwrap().to_string(), "p95 <= 1s");
    assert_eq!(found.loads[0].service_level.as_ref().unwrap().limits[0].base_ns, 200_000_000);
    let Levels::Searched(search) = &found.loads[3].levels else { panic!() };
    let unit = Unit::OperationsPerSecond;
    let expected = Search { axis: "rate".into(), unit, from: 100.0, to: 20_000.0, within: 0.1, runs: 40 };
    assert_eq!(*search, expected);
    let topics: Vec<_> = found.notes.iter().map(|note| note.topic.as_str()).collect();
    assert_eq!(topics, ["fio", "set-up"]);
    let observe = plan(&found, 2, 5, &vec![], 1).observe;
    assert_eq!(observe.ceph_sockets, [PathBuf::from("/var/run/ceph")]);
    assert_eq!(observe.processes, ["swift", "postgres", "ceph-osd"], "document, arm and evaluation");
}

#[test]
fn levels_reach_every_kind_of_document() {
    let found = evaluation(FULL);
    let of = |load, pairs: &[(&str, &str)]| plan(&found, 0, load, &level(pairs), 1);
    let xml = of(0, &[("workers", "10")]);
    assert_eq!(normal(&xml).load.workers, 10);
    assert_eq!(xml.stages[0].works[0].load.workers, 1, "only the load that is measured");
    let rate = of(0, &[("rate", "50/s")]);
    let Pacing::Open { rate, .. } = &normal(&rate).load.pacing else { panic!() };
    assert_eq!(rate.points, [(0, 50.0)]);
    let both = of(1, &[("workers", "7"), ("rate", "100/s")]);
    assert_eq!(normal(&both).load.workers, 7);
    assert!(matches!(normal(&both).load.pacing, Pacing::Open { .. }));
    let block = plan(&found, 2, 2, &level(&[("depth", "8")]), 1);
    assert_eq!((normal(&block).load.depth, normal(&block).load.workers), (8, 2));
    let Levels::Listed(levels) = &found.loads[1].levels else { panic!() };
    assert_eq!(levels[1], level(&[("rate", "10/s"), ("workers", "20")]), "the last axis varies fastest");
}

#[test]
fn totals_and_divisions_of_a_cosbench_file_follow_its_level() {
    let found = evaluation(FULL);
    let xml = plan(&found, 0, 0, &level(&[("workers", "8")]), 1);
    let totals: Vec<_> = xml.notes.iter().filter(|note| note.topic.starts_with("total")).collect();
    assert!(totals.iter().any(|note| note.text.contains("8 workers")), "{totals:?}");
}

#[test]
fn the_arms_target_takes_the_place_of_a_cosbench_storage() {
    let found = evaluation(FULL);
    let xml = plan(&found, 0, 0, &vec![], 1);
    for work in xml.stages.iter().flat_map(|stage| &stage.works) {
        let target = &work.job.get::<ObjectJob>().unwrap().target;
        assert_eq!(
            *target,
            Target::Embedded(Embedded { place: Place::Disk(None), limit: None, durable: false })
        );
    }
    let SourcePlan::Mix { choices, .. } = &normal(&xml).load.source else { panic!() };
    assert_eq!(
        choices[0].bytes.pick,
        tidemark_measure::pick::Pick::Constant(1000),
        "ranges of the storage stay"
    );
}

#[test]
fn an_arm_lends_the_target_of_the_right_kind() {
    let text = short("levels: {}")
        .replace("target: embedded", "target: [{kind: file, path: /mnt/a, size: 1GiB}, embedded]");
    let block = "loads:\n- {name: b, stages: [{load: {for: 1s, pattern: read, block_size: 4KiB}}]}\n";
    let arms = text.replace("target: none", "target: [mock, {kind: file, path: /mnt/b, size: 1GiB}]");
    let found = evaluation(&arms.replace("loads:\n", block));
    let path =
        |arm| normal(&plan(&found, arm, 0, &vec![], 1)).job.get::<BlockJob>().unwrap().volumes[0].name();
    assert_eq!([path(0), path(1)], ["/mnt/b", "/mnt/a"]);
    let object = plan(&found, 1, 1, &vec![], 1);
    assert!(matches!(normal(&object).job.get::<ObjectJob>().unwrap().target, Target::Embedded(_)));
    let missing = remarks(&text.replace("loads:\n", block)).join("\n");
    assert!(
        missing.contains("6:3 error neither the load nor the arm `a` has a `target` for volumes"),
        "{missing}"
    );
    let wrong =
        remarks(&arms.replace("levels: {}", "levels: {workers: 4}").replace("loads:\n", block)).join("\n");
    assert!(
        wrong.contains(
            "10:19 error the level's `workers` (4) does not apply to loads on volumes | loads on volumes take `clients`, `depth` or `rate`"
        ),
        "{wrong}"
    );
}

#[test]
fn seeds_are_of_the_repeat_and_the_same_for_all_arms() {
    let found = evaluation(FULL);
    let seed = |arm, load, repeat| plan(&found, arm, load, &vec![], repeat).seed;
    assert_eq!([seed(0, 0, 1), seed(0, 1, 1), seed(1, 1, 1)], [found.seed_of(1); 3]);
    assert_ne!(seed(0, 0, 1), seed(0, 0, 2));
    let work = plan(&found, 0, 1, &vec![], 2).stages[0].works[0].load.seed;
    assert_eq!(work, found.seed_of(2));
    let one = evaluation(&short(""));
    assert_eq!(one.seed, evaluation(&short("repeats: 3")).seed, "of the name alone");
}

#[test]
fn orders_are_as_documented() {
    let of = |order: &str| {
        let text = short(&format!("levels: {{workers: [1, 2]}}\nrepeats: 2\norder: {order}"));
        let found = evaluation(&text);
        let cells = found.cells();
        assert_eq!(cells.len(), 8);
        let number = |cell: &CellPlace| cell.level[0].value.number().unwrap() as usize - 1;
        cells.iter().map(|cell| (cell.repeat, number(cell), cell.arm)).collect::<Vec<_>>()
    };
    let expected = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1), (2, 0, 1), (2, 0, 0), (2, 1, 1), (2, 1, 0)];
    assert_eq!(of("interleaved"), expected);
    let blocks = of("blocks");
    assert_eq!(blocks[..4], [(1, 0, 0), (1, 1, 0), (2, 0, 0), (2, 1, 0)]);
    let random = of("random");
    assert_eq!(random, of("random"));
    let mut sorted = random.clone();
    sorted.sort_unstable();
    let mut all = expected.to_vec();
    all.sort_unstable();
    assert_eq!(sorted, all);
}

#[test]
fn a_random_order_is_not_always_the_same() {
    let text =
        short("levels: {workers: 1-2}").replace("levels: {workers: 1-2}", "repeats: 100\norder: random");
    let first: Vec<usize> = evaluation(&text).cells().chunks(2).map(|pair| pair[0].arm).collect();
    let ones = first.iter().sum::<usize>();
    assert!((30..=70).contains(&ones), "{ones} of 100 begin with the second arm");
}

#[test]
fn a_fingerprint_is_of_the_cell_and_of_nothing_else() {
    let prints = |text: &str| {
        let found = evaluation(text);
        let level = level(&[("workers", "5")]);
        let print = |arm, load| found.fingerprint(arm, load, &level, 1);
        [print(0, 0), print(0, 1), print(1, 0)]
    };
    let text = short("").replace("loads:\n", "loads:\n- {name: x, document: small.xml}\n");
    let before = prints(&text);
    assert!(before.iter().all(|print| print.len() == 32 && print.bytes().all(|b| b.is_ascii_hexdigit())));
    assert!(before[0] != before[1] && before[0] != before[2]);
    for same in [
        text.replace("name: t\n", "# a remark\nname:   t\ndescription: why\nobserve: {processes: x}\n"),
        text.replace("{name: a, target: none}", "{target: none, description: d, name: a}"),
        text.replace("name: l\n", "name: l\n  service_level: p95 <= 1s\n"),
        format!("{text}repeats: 7\norder: blocks\n"),
    ] {
        assert_eq!(prints(&same), before, "{same}");
    }
    let load = prints(&text.replace("for: 1s", "for: 2s"));
    assert_eq!([&load[0], &load[2]], [&before[0], &before[2]]);
    assert_ne!(load[1], before[1]);
    let arm = prints(&text.replace("target: embedded", "target: {kind: embedded, place: disk}"));
    assert_eq!([&arm[0], &arm[1]], [&before[0], &before[1]]);
    assert_ne!(arm[2], before[2]);
    let renamed = prints(&text.replace("name: b", "name: c"));
    assert_eq!([&renamed[0], &renamed[1]], [&before[0], &before[1]]);
    let seeded = prints(&format!("{text}seed: 9\n"));
    assert_ne!(seeded[0], before[0]);
    let found = evaluation(&text);
    let of = |pairs, repeat| found.fingerprint(0, 0, &level(pairs), repeat);
    assert_ne!(of(&[("workers", "5")], 1), of(&[("workers", "5")], 2));
    assert_ne!(of(&[("workers", "5")], 1), of(&[("workers", "50")], 1));
}

#[test]
fn a_fingerprint_follows_the_document_that_a_load_refers_to() {
    let directory = std::env::temp_dir().join(format!("tidemark-plan-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let text = "name: t\narms: [{name: a, target: none}]\nloads: [{name: l, document: x.yaml}]\n";
    let load = "name: x\nstages: [{load: {for: 1s, operations: [{get: {containers: 1, objects: 1}}]}}]\n";
    let print = |load: &str| {
        std::fs::write(directory.join("x.yaml"), load).unwrap();
        read(text, &directory, &process()).unwrap().0.fingerprint(0, 0, &vec![], 1)
    };
    let before = print(load);
    assert_eq!(print(&format!("# a remark\n{load}description: d\n")), before);
    assert_ne!(print(&load.replace("1s", "2s")), before);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn drivers_hold_for_all_loads_that_do_not_say_otherwise() {
    use tidemark_plan::plan::Wanted;
    let loads = "loads:\n- {name: own, drivers: 2, stages: [{init: {containers: 1}}]}\n- {name: plain, stages: [{init: \
                 {containers: 1}}]}\n- {name: xml, document: small.xml}\n- {name: fio, document: job.fio}\n";
    let text = |top: &str| format!("name: t\n{top}arms: [{{name: a, target: none}}]\n{loads}");
    let (with, without) = (outcome(&text("drivers: 3\n")).unwrap().0, outcome(&text("")).unwrap().0);
    let wanted = |evaluation: &Evaluation| -> Vec<Wanted> {
        (0..4).map(|load| plan(evaluation, 0, load, &vec![], 1).drivers.wanted).collect()
    };
    let three = || Wanted::Count(3);
    assert_eq!(wanted(&with), [Wanted::Count(2), three(), three(), three()]);
    assert_eq!(wanted(&without), [Wanted::Count(2), Wanted::All, Wanted::All, Wanted::All]);
    let print = |evaluation: &Evaluation| evaluation.fingerprint(0, 1, &vec![], 1);
    assert_ne!(print(&with), print(&without));
    let patient = outcome(&text("drivers: {use: all, lost_after: 60s}\n")).unwrap().0;
    assert_eq!(plan(&patient, 0, 2, &vec![], 1).drivers.lost_after_ns, 60_000_000_000);
}

#[test]
fn mistakes_point_at_their_place() {
    let table = [
        (short("repeat: 3"), "9:1 error `repeat` is not a key of the evaluation | did you mean `repeats`?"),
        (
            short("levels: {wokers: 5}"),
            "9:10 error `wokers` is not a key of `levels` | did you mean `workers`?",
        ),
        (short("levels: {workers: [5, 0]}"), "9:23 error `workers`: 0 is out of range"),
        (short("levels: {workers: [5, 5]}"), "9:23 error `workers`: 5 is in the list twice"),
        (short("levels: {rate: 100MB/s}"), "9:16 error `rate`: '100MB/s' is a rate of bytes"),
        (
            short("levels: {depth: 4}"),
            "9:17 error the level's `depth` (4) does not apply to loads on objects | loads on objects take `workers` or `rate`",
        ),
        (short("search: {workers: 1-9}"), "9:1 error a search requires a `service_level`"),
        (
            short("search: {workers: 9-1}\nservice_level: p95 <= 1s"),
            "9:19 error `workers`: '9-1' is not ascending",
        ),
        (short("search: {}\nservice_level: p95 <= 1s"), "9:1 error `search` has no axis"),
        (
            short("search: {workers: 1-9, rate: 1/s-2/s}\nservice_level: p95 <= 1s"),
            "9:1 error a search has one axis, not workers and rate",
        ),
        (
            short("search: {workers: 1-9}\nlevels: {workers: 1}"),
            "error `levels` and `search` exclude each other",
        ),
        (short("service_level: fast"), "9:16 error `service_level`: 'fast' has no `<=`"),
        (
            short("service_level: put p95 <= 1s"),
            "9:16 error `service_level`: the load `l` has no operation 'put' | choose from get",
        ),
        (short("order: sorted"), "9:8 error `order`: 'sorted' is unknown"),
        (short("observe: {node: x}"), "9:11 error `node` is not a key of `observe`"),
        (short("observe: {nodes: 'db:1'}"), "9:18 error `nodes`: 'db:1' is not an HTTP address"),
        (short("").replace("name: b", "name: a"), "4:10 error two arms are named `a`"),
        (
            short("").replace("target: embedded", "tagret: embedded"),
            "4:13 error `tagret` is not a key of an arm",
        ),
        (short("").replace("target: embedded", "target: emb"), "4:21 error `target`: 'emb' is unknown"),
        (
            short("").replace("target: embedded", "target: [none, embedded]"),
            "4:13 error an arm has two targets of one kind",
        ),
        (short("").replace("target: embedded", "lab: fast"), "4:18 error `lab`: 'fast' is unknown"),
        (
            short("").replace("target: embedded", "description: d"),
            "6:3 error neither the load nor the arm `b` has a `target` for objects",
        ),
        (
            short("").replace("target: embedded", "environment: {1A: x}"),
            "4:27 error `environment`: '1A' is not a valid variable name",
        ),
        (
            short("").replace("target: embedded", "target: {kind: s3, endpoint: '${NOWHERE}'}"),
            "error `endpoint`: the environment variable NOWHERE is not set | set it before the run: export \
             NOWHERE=...; found on the arm `b`",
        ),
        (short("").replace("name: l\n", "name: l\n  seed: 4\n"), "7:3 error `seed` is not a key of a load"),
        (short("").replace("for: 1s", "for: 1s, worker: 4"), "error `worker` is not a key of `load`"),
        (short("").replace("stages:\n", "stages: []\n  x:\n"), "error"),
    ];
    for (text, expected) in table {
        let found = remarks(&text);
        assert!(found.iter().any(|remark| remark.contains(expected)), "{expected}\n{found:#?}");
    }
    let all = remarks("arms: 5\nloads: []\n").join("\n");
    assert!(all.contains("the evaluation has no `name`") && all.contains("an arm is not a mapping"), "{all}");
    assert!(all.contains("the evaluation has no `loads`"), "{all}");
}

#[test]
fn mistakes_in_other_documents_are_told_where_they_are_named() {
    let with = |load: &str| {
        remarks(&format!("name: t\narms: [{{name: a, target: none}}]\nloads:\n- {load}\n")).join("\n")
    };
    let table = [
        ("{name: x, document: nowhere.xml}", "4:23 error `document`: "),
        (
            "{name: x, document: broken.yaml}",
            "4:23 error broken.yaml, line 5: `worker` is not a key of `load`",
        ),
        (
            "{name: x, document: plain.yaml, levels: {workers: 3, depth: 2}}",
            "plain.yaml, line 6: the level's `depth` (2) does not apply to loads on objects",
        ),
        (
            "{name: x, document: small.xml, levels: {clients: 3}}",
            "4:52 error small.xml: the level's `clients` (3) does not apply to COSBench XML files",
        ),
        (
            "{name: x, document: job.fio, levels: {depth: 3}}",
            "error a fio job file runs unchanged and cannot have levels",
        ),
        (
            "{name: x, document: small.xml, stages: []}",
            "`stages` does not apply here: the load's document sets it",
        ),
        ("{name: x}", "4:3 error a load has no `stages`"),
        ("{name: x, document: nested.yaml}", "nested.yaml is itself an evaluation"),
        ("{name: x, document: .}", "it is not a file of at most 8 MiB"),
    ];
    for (load, expected) in table {
        let found = with(load);
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn what_a_set_up_brings_is_not_missed_and_a_lab_has_stand_ins() {
    let text = short("").replace(
        "target: embedded",
        "set_up: ./up, target: {kind: s3, endpoint: 'http://${MY_HOST}:${MY_PORT}', access_key: '${K}', secret_key: '${S_KEY}'}",
    );
    let found = evaluation(&text);
    assert_eq!(found.notes.len(), 1);
    assert!(found.notes[0].text.contains("MY_HOST, MY_PORT, K, S_KEY are not set"), "{:?}", found.notes);
    let sketch = plan(&found, 1, 0, &vec![], 1);
    let Target::S3(s3) = &normal(&sketch).job.get::<ObjectJob>().unwrap().target else { panic!() };
    assert_eq!(s3.http.endpoints, ["http://127.0.0.1:1"]);
    let nothing = Environment { variable: &|_| None, ..process() };
    let errors = found.plan(1, 0, &vec![], 1, &nothing).unwrap_err();
    assert!(errors[0].message.contains("MY_HOST is not set"), "{errors:?}");
    let typo = text
        .replace("for: 1s", "fro: 1s")
        .replace("target: none", "set_up: x, target: {kind: s3, endpoint: '${E}'}");
    let found = remarks(&format!("{typo}service_level: p95 <= 1s"));
    assert!(found.iter().any(|remark| remark.contains("`fro` is not a key of `load`")), "{found:?}");
    let level = text.replace("target: none", "set_up: x, target: {kind: s3, endpoint: '${E}'}");
    let found = remarks(&format!("{level}service_level: put p95 <= 1s")).join("\n");
    assert!(found.contains("has no operation 'put'"), "{found}");
    let wrong = text.replace("access_key:", "acess_key:");
    assert!(remarks(&wrong).join("\n").contains("`acess_key` is not a key of `target`"));
    let lab = short("").replace(
        "target: embedded",
        "lab: baseline, target: {kind: s3, endpoint: '${TIDEMARK_LAB_S3}', access_key: '${AWS_ACCESS_KEY_ID}', \
         secret_key: '${AWS_SECRET_ACCESS_KEY}'}",
    );
    assert_eq!(evaluation(&lab).notes, []);
    let own = short("")
        .replace("target: embedded", "environment: {E: 'http://h:1'}, target: {kind: s3, endpoint: '${E}'}");
    evaluation(&own);
    let outside = short("").replace("target: embedded", "target: {kind: s3, endpoint: '${E}'}");
    assert!(outcome_with(&outside, &|name| (name == "E").then(|| "http://h:1".into())).is_ok());
}

#[test]
fn evaluations_are_told_from_workloads() {
    assert!(
        is_evaluation(FULL, &REGISTRY)
            && is_evaluation("arms: [\n", &REGISTRY)
            && is_evaluation("{\"arms\": []}", &REGISTRY)
    );
    for other in ["name: arms\n", "<workload name='arms'/>", "[arms]\nrw=read", "stages:\n- arms: 1\n", ""] {
        assert!(!is_evaluation(other, &REGISTRY), "{other}");
    }
    let Ok(Document::Evaluation(found, _)) = document::open(&short(""), &directory(), &process()) else {
        panic!()
    };
    assert_eq!(found.name, "t");
    let workload = std::fs::read_to_string(directory().join("plain.yaml")).unwrap();
    assert!(matches!(document::open(&workload, &directory(), &process()), Ok(Document::Workload(_))));
    let error = &read_document(&short("")).unwrap_err()[0];
    assert_eq!(error.message, "the document is an evaluation, not a workload");
    let broken = document::open("arms: [\n", &directory(), &process()).unwrap_err();
    assert!(broken[0].message.contains("not well-formed"), "{broken:?}");
}

#[test]
fn too_much_is_refused() {
    let many = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<String>();
    let arms = format!(
        "name: t\narms:\n{}loads: [{{name: l, document: small.xml}}]\n",
        many(101, &|number| format!("- {{name: a{number}, target: none}}\n"))
    );
    assert!(remarks(&arms).join("\n").contains("there are 101 arms, more than 100"));
    let loads = format!(
        "name: t\narms: [{{name: a, target: none}}]\nloads:\n{}",
        many(1001, &|number| format!("- {{name: l{number}, document: small.xml}}\n"))
    );
    assert!(remarks(&loads).join("\n").contains("there are 1001 loads, more than 1000"));
    let list = (1..=200).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let runs = remarks(&short(&format!("repeats: 1000\nlevels: {{workers: [{list}]}}"))).join("\n");
    assert!(runs.contains("the evaluation has 400\u{202f}000 runs; the limit is 100\u{202f}000"), "{runs}");
    let levels = remarks(&short(&format!("levels: {{workers: [{list}], clients: [{list}]}}"))).join("\n");
    assert!(levels.contains("the axes multiply to more than"), "{levels}");
}

#[test]
fn secrets_of_an_evaluation_are_redacted() {
    let redacted = tidemark_plan::redact::redact(FULL);
    assert!(!redacted.contains("very-secret"), "{redacted}");
    assert!(redacted.contains("MEDIUM: nvme") && redacted.contains("${TIDEMARK_LAB_S3}"));
    assert!(!format!("{:?}", plan(&evaluation(FULL), 2, 5, &vec![], 1)).contains("very-secret"));
}

#[test]
fn secrets_in_commands_and_variables_are_redacted() {
    let table = [
        ("set_up: export DB_PASSWORD=abc ./up", "set_up: export DB_PASSWORD=*** ./up"),
        ("set_up: [mysql --password=abc -u me]", "set_up: [mysql --password=*** -u me]"),
        ("environment: {STORE_KEY: abc, A: b}", "environment: {STORE_KEY: \"***\", A: b}"),
        ("environment:\n  API_TOKEN: abc\n", "environment:\n  API_TOKEN: \"***\"\n"),
        (
            "environment: {S3_ACCESS_KEY: abc, LAYOUT_KEYS: 3}",
            "environment: {S3_ACCESS_KEY: abc, LAYOUT_KEYS: 3}",
        ),
        ("environment: {URL: 'http://u:abc@h'}", "environment: {URL: 'http://u:***@h'}"),
    ];
    for (text, expected) in table {
        assert_eq!(tidemark_plan::redact::redact(text), expected);
    }
}

#[test]
fn examples_are_evaluations() {
    for (name, runs) in [("layouts-lab", 27), ("demo", 6), ("knee", 0), ("tpcc-virtual-users", 21)] {
        let text = std::fs::read_to_string(examples().join(format!("{name}.yaml"))).unwrap();
        let environment = Environment { variable: &|_| None, ..process() };
        let (found, warnings) =
            read(&text, &examples(), &environment).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
        assert_eq!((found.name.as_str(), found.cells().len(), warnings), (name, runs, vec![]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_evaluations_make_no_panic_and_point_inside(
        cut in 0usize..5000, length in 0usize..60, put in "[-:{}\\[\\]#&*!|>'\"%@`é\\n\\t a-z0-9.]{0,8}",
    ) {
        let floor = |at: usize| (0..=at.min(FULL.len())).rev().find(|at| FULL.is_char_boundary(*at)).unwrap();
        let (start, end) = (floor(cut % FULL.len()), floor(cut % FULL.len() + length));
        let text = format!("{}{put}{}", &FULL[..start], &FULL[end..]);
        let remarks = outcome(&text).map_or_else(|errors| errors, |(_, warnings)| warnings);
        for remark in remarks {
            prop_assert!(text.get(remark.span.clone()).is_some(), "{:?}", remark);
        }
    }
}

#[test]
fn levels_that_contradict_their_load_are_told_as_the_levels() {
    let think = short("levels: {rate: [500/s, 1k/s]}").replace("for: 1s", "for: 1s, think: 1ms");
    let found = remarks(&think);
    assert!(
        found.iter().any(|remark| remark
            .starts_with("9:24 error the level's `rate` (1k/s): `think` and `rate` exclude each other")),
        "{found:#?}"
    );
    let elsewhere = "name: t\narms: [{name: a, target: none}]\nloads:\n- {name: x, document: thinking.yaml, levels: {rate: 500/s}}\n";
    let found = remarks(elsewhere);
    assert!(
        found.iter().any(|remark| {
            remark.starts_with(
                "4:53 error thinking.yaml, line 3: the level's `rate` (500/s): `think` and `rate`",
            )
        }),
        "{found:#?}"
    );
}

#[test]
fn axes_of_the_same_name_are_the_same_for_all_engines() {
    let all = REGISTRY.axes();
    assert_eq!(
        all.iter().map(|axis| axis.name()).collect::<Vec<_>>(),
        ["workers", "rate", "clients", "depth", "instances", "streams", "committers", "at_once"]
    );
    for axis in REGISTRY.engines().flat_map(tidemark_plan::engine::Engine::axes) {
        let shared = all.iter().find(|known| known.name() == axis.name()).unwrap();
        assert_eq!(axis.values.shape.0, shared.values.shape.0, "{}", axis.name());
    }
}

/// Stored runs are found again by these: they were made when levels were text.
#[test]
fn fingerprints_of_levels_are_those_of_the_versions_before() {
    let found = evaluation(include_str!("../fixtures/golden.yaml"));
    let print = |load, level: &[(&str, &str)], repeat| {
        // As an older record has it.
        let stored = serde_json::to_string(level).unwrap();
        found.fingerprint(0, load, &serde_json::from_str(&stored).unwrap(), repeat)
    };
    for (load, level, repeat, expected) in [
        (0, &[("rate", "0.2k/s"), ("workers", "2")][..], 1, "8f1ff1ae5c41cba6daf13bc9f40d3b20"),
        (0, &[("rate", "6000/min"), ("workers", "2")], 1, "d7dc6e974c510325217de56b7df2ed88"),
        (1, &[("rate", "50/s")], 1, "ed1528d5e29ebb8bc0fb1cbb78f3f24d"),
        (1, &[("rate", "84.09/s")], 2, "abca0cc7acddd5fadd6c70e9b62a2be5"),
        (2, &[("workers", "3")], 2, "bb8e656c2c52053d2915f0322c3872c6"),
    ] {
        assert_eq!(print(load, level, repeat), expected, "{level:?}");
    }
}
