//! Documents read, and what is wrong with them.

use super::operation;
use crate::Objects;
use crate::job::{self, Action, Content, Form, Job, Listing, Target, Verb};
use proptest::prelude::*;
use std::sync::Arc;
use tidemark_load::pacing::{Arrivals, Pacing};
use tidemark_load::source::{Division, Effect, PoolPlan, Size, SourcePlan};
use tidemark_measure::pick::Pick;
use tidemark_measure::think::Think;
use tidemark_plan::diagnostic::{Diagnostic, Severity};
use tidemark_plan::plan::{Drivers, OnFailure, OnLoss, Plan, Wanted, Work, WorkKind};
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::{self, Environment};

/// A document that uses nearly everything.
const FULL: &str = include_str!("full.yaml");

fn variable(name: &str) -> Option<String> {
    match name {
        "S3_ACCESS_KEY" => Some("AKIA".into()),
        "S3_SECRET_KEY" => Some("very-secret".into()),
        _ => None,
    }
}

fn file(path: &std::path::Path) -> std::io::Result<String> {
    match path.to_str() {
        Some("/run/secrets/swift") => Ok("from-file\n".into()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    }
}

fn nothing<T>(_: &std::path::Path) -> std::io::Result<T> {
    Err(std::io::ErrorKind::NotFound.into())
}

fn read(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let registry = Registry::new(vec![Arc::new(Objects)], vec![]);
    let (document, device_size) = (&nothing, &nothing);
    yaml::read(
        text,
        &Environment {
            registry: &registry,
            variable,
            file: &file,
            bound: &|_| None,
            document,
            device_size,
            waited_for: &|| true,
        },
    )
}

fn outcome(text: &str) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    read(text, &variable)
}

fn plan(text: &str) -> Plan {
    let (plan, warnings) = outcome(text).unwrap();
    assert_eq!(warnings, []);
    plan
}

/// All remarks as `line:column severity message | help`.
fn remarks(text: &str) -> Vec<String> {
    let remarks = match outcome(text) {
        Ok((_, warnings)) => warnings,
        Err(errors) => errors,
    };
    let print = |remark: &Diagnostic| {
        let (line, column) = remark.line_and_column(text);
        let severity = if remark.severity == Severity::Error { "error" } else { "warning" };
        format!("{line}:{column} {severity} {} | {}", remark.message, remark.help)
    };
    remarks.iter().map(print).collect()
}

/// A document with this load on a target that needs nothing.
fn with_load(load: &str) -> String {
    format!("name: t\ntarget: none\nstages:\n- load:\n    {}\n", load.replace('\n', "\n    "))
}

fn job(work: &Work) -> &Job {
    Job::of(work).unwrap()
}

#[test]
fn think_times_may_be_distributions() {
    let think = |text: &str| {
        let load =
            format!("for: 60s\nthink: {text}\noperations:\n- get: {{containers: 1-4, objects: 1-100}}");
        plan(&with_load(&load)).stages[0].works[0].load.pacing.think()
    };
    let ms = 1_000_000;
    for text in ["100ms", "c(100)ms", "C( 0.1 ) s"] {
        assert_eq!(think(text), Think::Constant { ns: 100 * ms }, "{text}");
    }
    assert_eq!(think("u(50, 150)ms"), Think::Uniform { low_ns: 50 * ms, high_ns: 150 * ms });
    assert_eq!(think("exp(1.5)s"), Think::Exponential { mean_ns: 1_500 * ms });
    let scan = "stages:\n- prepare: {containers: 1, objects: 1-9, sizes: 1KB, think: \"u(1,2)ms\"}\n";
    let scan = plan(&format!("name: x\ntarget: none\n{scan}"));
    let think = scan.stages[0].works[0].load.pacing.think();
    assert_eq!(think, Think::Uniform { low_ns: ms, high_ns: 2 * ms });
    let packed = serde_json::to_string(&scan.stages[0].works[0].load).unwrap();
    let load: tidemark_load::work::Work = serde_json::from_str(&packed).unwrap();
    assert_eq!(load, scan.stages[0].works[0].load);
}

#[test]
fn a_short_document_is_enough() {
    let plan = plan(&with_load("for: 60s\noperations:\n- get: {containers: 1-4, objects: 1-100}"));
    let work = &plan.stages[0].works[0];
    assert_eq!((work.name.as_str(), work.load.workers, work.kind), ("load", 1, WorkKind::Normal));
    assert_eq!(work.load.stop.window_ns, Some(60_000_000_000));
    assert_eq!(work.load.pacing, Pacing::BACK_TO_BACK);
    assert_eq!(work.load.stop.give_up_ns, None, "an outage within a timed load is a result");
    assert_eq!(plan.stages[0].on_failure, OnFailure::Stop);
    assert_eq!(job(work).target, Target::Nothing);
    let SourcePlan::Mix { choices, pool: None, deck: false } = &work.load.source else { panic!() };
    assert_eq!(choices[0].items, Pick::Uniform { low: 1, high: 100 });
}

#[test]
fn what_is_not_given_is_derived() {
    let one = with_load("for: 60s\noperations: [{get: {containers: 1, objects: 1}}]");
    let other = one.replace("60s", "61s");
    assert_eq!(plan(&one).seed, plan(&one).seed);
    assert_ne!(plan(&one).seed, plan(&other).seed);
    let timeout = one.replace("target: none", "target: {kind: s3, endpoint: 'http://h', timeout: 2m}");
    let stop = plan(&timeout.replace("for: 60s", "total_operations: 1")).stages[0].works[0].load.stop;
    assert_eq!((stop.drain_ns, stop.give_up_ns), (120_000_000_000, Some(240_000_000_000)));
    assert_eq!(plan(&format!("seed: 42\n{one}")).stages[0].works[0].load.seed, 42);
}

/// COSBench files and command lines take the latter.
#[test]
fn the_defaults_of_keys_are_those_of_jobs() {
    let of = |target: &str| {
        let text = with_load("for: 1s\noperations: [{get: {containers: 1, objects: 1}}]");
        let plan = plan(&text.replace("target: none", &format!("target: {target}")));
        job(&plan.stages[0].works[0]).target.clone()
    };
    let Target::S3(s3) = of("{kind: s3, endpoint: 'http://h'}") else { panic!() };
    assert_eq!(s3.http, job::Http { endpoints: vec!["http://h".into()], ..job::Http::default() });
    let Target::S3(s3) = of("{kind: s3, endpoints: 'http://a:1,http://b:2'}") else { panic!() };
    assert_eq!(s3.http.endpoints, ["http://a:1", "http://b:2"], "as a variable brings them");
    assert_eq!(of("{kind: mock}"), of("mock"));
    assert_eq!(of("{kind: embedded}"), of("embedded"));
}

#[test]
fn the_full_document_gives_what_it_says() {
    let plan = plan(FULL);
    assert_eq!(plan.stages.len(), 7);
    let names: Vec<_> = plan.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["init", "fill", "settle", "main", "extras", "cleanup", "dispose"]);
    let Target::S3(s3) = &job(&plan.stages[0].works[0]).target else { panic!() };
    assert_eq!((s3.access_key.reveal(), s3.secret_key.reveal()), ("AKIA", "very-secret"));
    assert_eq!(s3.http.endpoints, ["http://10.0.0.1:8000", "https://10.0.0.2"]);
    assert_eq!((s3.http.timeout_ns, s3.http.retries, s3.http.no_keep_alive), (5_000_000_000, 2, true));
    assert!(s3.http.insecure && !s3.path_style && s3.sign_payload);

    let fill = &plan.stages[1].works;
    assert_eq!(fill.len(), 2);
    assert_eq!((fill[0].load.workers, fill[0].load.stream, fill[1].load.stream), (8, [1, 0], [1, 1]));
    assert_eq!(fill[1].name, "prepare-2");
    assert_eq!(
        fill[0].load.source,
        SourcePlan::Scan {
            action: 0,
            spaces: Some((1, 4)),
            items: Some((1, 1000)),
            bytes: Size { pick: Pick::Constant(65_536), unit: 1 },
        }
    );
    assert_eq!(job(&fill[1]).actions[0].verb, Verb::PutMultipart { part_bytes: 8 << 20, parallel: 4 });
    assert_eq!((plan.stages[2].works.len(), plan.stages[2].pause_ns), (0, 10_000_000_000));

    let main = &plan.stages[3].works[0];
    assert_eq!((main.load.actions, main.allowed_failures_per_million), (4, 5_000));
    let Pacing::Open { rate, arrivals: Arrivals::Poisson } = &main.load.pacing else { panic!() };
    assert_eq!(rate.points, [(0, 100.0), (30_000_000_000, 2000.0)]);
    let SourcePlan::Mix { choices, pool, .. } = &main.load.source else { panic!() };
    assert_eq!(*pool, Some(PoolPlan { spaces: (1, 4), items: (1, 2000), existing: Some((1, 1000)) }));
    let effects: Vec<_> = choices.iter().map(|choice| choice.effect).collect();
    assert_eq!(effects, [Effect::Uses, Effect::Makes, Effect::Removes, Effect::Free]);
    let labels: Vec<_> = main.labels.iter().map(|label| (label.label.as_str(), label.weight)).collect();
    assert_eq!(labels, [("get", 60.0), ("put", 25.0), ("delete", 10.0), ("listing", 5.0)]);
    let Action { naming, content, .. } = &job(main).actions[0];
    assert_eq!((naming.container_prefix.as_str(), naming.object_suffix.as_str()), ("web-", ".jpg"));
    let form = Form::Seeded { compressible: 0.3, duplicate: 0.1 };
    assert_eq!(*content, Content { form, verify: true });

    let extras = &plan.stages[4].works[0];
    let Target::Swift(swift) = &job(extras).target else { panic!() };
    let job::SwiftAuth::TempAuth { key, .. } = &swift.auth else { panic!() };
    assert_eq!(key.reveal(), "from-file");
    let verbs: Vec<_> = job(extras).actions.iter().map(|action| action.verb.clone()).collect();
    assert_eq!(verbs[0], Verb::GetRange { length: 4096, object_bytes: 65_536 });
    assert_eq!(verbs[1], Verb::Put { chunked: false, if_absent: true });
    assert_eq!(verbs[2], Verb::DeleteMany { count: 100 });
    assert_eq!(verbs[3], Verb::List { page: 100, all: true, by_object: true });
    assert_eq!(verbs[4], Verb::PutFile { directory: "/data".into(), part_bytes: None });
    let labels: Vec<_> = extras.labels.iter().map(|label| label.label.as_str()).collect();
    assert_eq!(labels[5..7], ["1-head", "2-head"]);
    let SourcePlan::Mix { choices, .. } = &extras.load.source else { panic!() };
    assert_eq!(choices[0].division, Division::Items);
    assert_eq!(choices[0].items, Pick::Zipf { low: 1, high: 1000, exponent: 1.1 });
    assert_eq!(plan.stages[4].on_failure, OnFailure::Continue);
}

#[test]
fn every_verb_can_be_reached() {
    for (key, _) in &operation::VERBS {
        let name = key.name;
        let settings = "containers: 1-2, objects: 1-2";
        let settings = match name {
            "put" => format!("{settings}, sizes: 1KB"),
            "write_local" => format!("{settings}, sizes: 1KB, directory: /tmp/x"),
            "put_file" => format!("{settings}, directory: /tmp/x"),
            "put_retention" => format!("{settings}, validity: 1h"),
            "list" | "create_container" | "delete_container" => "containers: 1-2".into(),
            _ => settings.into(),
        };
        let plan = plan(&with_load(&format!("for: 1s\noperations: [{{{name}: {{{settings}}}}}]")));
        assert_eq!(plan.stages[0].works[0].labels[0].kind, name);
    }
}

#[test]
fn unknown_keys_are_errors_that_name_the_nearest() {
    let text = with_load("for: 60s\nworker: 4\noperations:\n- get: {containers: 1, objects: 1, colour: red}");
    assert_eq!(
        remarks(&text),
        [
            "6:5 error `worker` is not a key of `load` | did you mean `workers`?",
            "8:40 error `colour` is not a key of the operation `get` | valid keys: range, name, weight, containers, \
             division, naming, content, objects",
        ]
    );
    let own = with_load("x-own: {any: thing}\nfor: 1s\noperations: [{get: {containers: 1, objects: 1}}]");
    assert_eq!(remarks(&own), Vec::<String>::new(), "keys of the author's own, for anchors");
}

#[test]
fn errors_point_at_the_value_and_say_what_to_write() {
    let get = "- get: {containers: 1, objects: 1}";
    let table = [
        ("for: 60\noperations:\nGET", "5:10 error `for`: '60' has no unit of time"),
        ("operations:\nGET", "4:3 error `load` has no `for` | set its length"),
        ("for: 1s", "4:3 error `load` has no `operations`"),
        ("for: 1s\nworkers: many\noperations:\nGET", "6:14 error `workers`: 'many' is not a whole number"),
        ("for: 1s\nworkers: 0\noperations:\nGET", "6:14 error `workers`: 0 is out of range"),
        (
            "for: 1s\nrate: 5/s\nthink: 1s\noperations:\nGET",
            "6:5 error `think` and `rate` exclude each other",
        ),
        (
            "for: 1s\nthink: u(50,150)\noperations:\nGET",
            "6:12 error `think`: 'u(50,150)' has no unit of time",
        ),
        (
            "for: 1s\nthink: u(9,5)ms\noperations:\nGET",
            "6:12 error `think`: 'u(9,5)ms' ends before it begins",
        ),
        ("for: 1s\nthink: exp(0)ms\noperations:\nGET", "6:12 error `think`: 'exp(0)ms' has a mean of zero"),
        (
            "for: 1s\nthink: zipf(1,9)ms\noperations:\nGET",
            "6:12 error `think`: 'zipf(1,9)ms' is not a think time",
        ),
        ("for: 1s\nthink: u(a,9)ms\noperations:\nGET", "6:12 error `think`: 'ams' is not a duration"),
        ("for: 1s\narrivals: poisson\noperations:\nGET", "6:5 error `arrivals` does not apply here"),
        ("for: 1s\nrate: 100MB/s\noperations:\nGET", "6:11 error `rate`: '100MB/s' is a rate of bytes"),
        ("for: 1s\nrate: 0/s\noperations:\nGET", "6:5 error `rate` is never above zero"),
        ("for: 1s\noperations: 1000", "6:17 error '1000' is not an operation with settings"),
        (
            "for: 1s\noperations: [{gte: {}}]",
            "6:19 error `gte` is not a known operation | did you mean `get`?",
        ),
        ("for: 1s\noperations: [{get: {containers: 1}}]", "6:19 error the operation `get` has no `objects`"),
        (
            "for: 1s\noperations: [{get: {containers: 1, objects: 'r(9,1)'}}]",
            "6:49 error `objects`: the range goes down, from 9 to 1",
        ),
        (
            "for: 1s\noperations: [{get: {containers: 1, objects: 'zipf(1,5,-2)'}}]",
            "error `objects`: `-2` is not a number above 0",
        ),
        (
            "for: 1s\noperations: [{get: {containers: 1, objects: zipf(1,5)}}]",
            "6:49 error `objects`: 'zipf(1' has no closing bracket | inside {} and [] a comma ends a value",
        ),
        (
            "for: 1s\noperations: [{put: {containers: 1, objects: 1, sizes: 64k}}]",
            "6:59 error `sizes`: '64k' may mean KB (decimal) or KiB (binary) | write KB or KiB",
        ),
        (
            "for: 1s\npool: {objects: 1-9, containers: 1}\noperations:\n- get: {}",
            "6:5 error the pool is empty and no operation fills it",
        ),
        (
            "for: 1s\nnaming: {container: b}\noperations: [{get: {containers: 1-2, objects: 1}}]",
            "error there is only one container, which has the number 1, not 1 to 2 | write `containers: 1`",
        ),
        (
            "for: 1s\ncontent: {fill: zero, compressible: 30%}\noperations:\nGET",
            "6:27 error `compressible` does not apply here: they require `fill: seeded`",
        ),
        (
            "for: 1s\ncontent: {fill: zero, verify: true}\noperations:\nGET",
            "6:5 error zeroes cannot be verified",
        ),
    ];
    for (load, expected) in table {
        let found = remarks(&with_load(&load.replace("GET", get)));
        assert!(found.iter().any(|remark| remark.contains(expected)), "{expected}\n{found:#?}");
    }
}

#[test]
fn the_only_container_may_have_any_name() {
    let load = "for: 1s\nnaming: {container: my.bucket}\noperations: [{get: {containers: 1, objects: 1-9}}]";
    let plan = plan(&with_load(load));
    let names = crate::operate::Names::new(&job(&plan.stages[0].works[0]).actions[0].naming);
    let mut name = Vec::new();
    names.push_container(&mut name, 1);
    names.push_object(&mut name, 7);
    assert_eq!(String::from_utf8(name).unwrap(), "my.bucketmyobjects7");
}

#[test]
fn whoever_names_a_part_around_the_number_has_no_whole_name_from_above() {
    let load = "for: 1s\nnaming: {container_prefix: other}\noperations: [{get: {containers: 1, objects: 1}}]";
    let text = with_load(load).replacen("stages:", "naming: {container: whole}\nstages:", 1);
    let naming = job(&plan(&text).stages[0].works[0]).actions[0].naming.clone();
    assert_eq!((naming.container, naming.container_prefix.as_str()), (None, "other"));
}

#[test]
fn targets_are_checked_before_they_are_needed() {
    let rest = "stages: [{init: {containers: 1}}]";
    let s3 = |settings: &str| format!("name: t\ntarget: {{kind: s3, {settings}}}\n{rest}");
    let table = [
        (format!("name: t\n{rest}"), "1:1 error the document has no `target`"),
        (format!("name: t\ntarget: s3\n{rest}"), "2:9 error `target`: the target 's3' needs settings"),
        (
            format!("name: t\ntarget: emmbedded\n{rest}"),
            "2:9 error `target`: 'emmbedded' is unknown | did you mean embedded?",
        ),
        (s3("access_key: a, secret_key: b"), "2:1 error `target` has no `endpoint`"),
        (s3("endpoint: 10.0.0.1:8000"), "2:30 error `endpoint`: '10.0.0.1:8000' is not an HTTP address"),
        (
            s3("endpoint: http://h/bucket"),
            "2:30 error `endpoint`: 'http://h/bucket' has more than a host and a port",
        ),
        (s3("endpoint: http://me:pw@h"), "2:30 error `endpoint`: the address holds credentials"),
        (s3("endpoint: http://h, access_key: a"), "2:1 error `target` has no `secret_key`"),
        (
            s3("endpoint: http://h, encryption: {kind: sse-c, key: hunter2}"),
            "2:40 error the key of SSE-C is not 32 bytes in base64",
        ),
        (
            s3("endpoint: http://h, access_key: '<accesskey>', secret_key: b"),
            "2:52 error `access_key`: the value is a placeholder",
        ),
        (
            s3("endpoint: http://h, access_key: a, secret_key: '${NOWHERE}'"),
            "2:67 error `secret_key`: the environment variable NOWHERE is not set | set it before the run",
        ),
        (
            s3("endpoint: http://h, access_key: a, secret_key_file: /nowhere"),
            "error `secret_key_file`: /nowhere cannot be read: entity not found",
        ),
        (
            s3("endpoint: http://h, access_key: a, secret_key: b, secret_key_file: /nowhere"),
            "error `secret_key` and `secret_key_file` exclude each other",
        ),
        (format!("name: t\ntarget: {{kind: swift}}\n{rest}"), "2:1 error `target` has no `auth`"),
    ];
    for (text, expected) in table {
        let found = remarks(&text);
        assert!(found.iter().any(|remark| remark.contains(expected)), "{expected}\n{found:#?}");
    }
}

#[test]
fn stages_are_checked() {
    let stage = |stage: &str| remarks(&format!("name: t\ntarget: none\nstages:\n- {stage}\n")).join("\n");
    assert!(stage("{name: x}").contains("4:3 error the stage does nothing"));
    let both = stage("{init: {containers: 1}, dispose: {containers: 1}}");
    assert!(both.contains("4:27 error the stage has both `init` and `dispose`"), "{both}");
    assert!(
        stage("{works: [{int: {containers: 1}}]}")
            .contains("`int` is not a known kind of work | did you mean `init`?")
    );
    assert!(stage("{init: {containers: u(1)}}").contains("`containers`: `u(1)` has no end"));
    assert!(stage("{init: 5}").contains("`init` is not a mapping"));
    assert!(stage("[1]").contains("a stage is not a mapping"));
    assert!(remarks("stages: 5").join("\n").contains("1:1 error the document has no `name`"));
    assert!(remarks("").join("\n").contains("the document has no `stages`"));
}

#[test]
fn a_flood_of_remarks_is_cut_and_errors_come_first() {
    let dry =
        "- load: {for: 1s, pool: {containers: 1, objects: 1-9, existing: 1-9}, operations: [{delete: {}}]}\n";
    let found = remarks(&format!("name: t\ntarget: none\nstages:\n{}- {{pause: -1}}\n", dry.repeat(150)));
    assert_eq!(found.len(), 101);
    assert!(found[0].contains("error `pause`"), "{}", found[0]);
    assert!(found[100].contains("51 more remarks are not shown"), "{}", found[100]);
}

#[test]
fn secrets_are_in_no_remark_and_no_debug_output() {
    let text = FULL.replace("region: eu-1", "region: ''\n  retries: -1");
    let errors = outcome(&text).unwrap_err();
    assert!(!format!("{errors:?}").contains("very-secret"));
    assert!(!format!("{:?}", plan(FULL)).contains("very-secret"));
}

#[test]
fn drivers_are_said_shortly_or_in_full() {
    let with = |drivers: &str| {
        format!("{drivers}{}", with_load("for: 60s\noperations: [{get: {containers: 1, objects: 1}}]"))
    };
    let named = |names: &[&str]| Wanted::Named(names.iter().map(|name| (*name).to_owned()).collect());
    for (text, wanted) in [
        ("", Wanted::All),
        ("drivers: all\n", Wanted::All),
        ("drivers: 4\n", Wanted::Count(4)),
        ("drivers: [d1, 2]\n", named(&["d1", "2"])),
        ("drivers: {use: 3}\n", Wanted::Count(3)),
        ("drivers: {on_loss: stop}\n", Wanted::All),
    ] {
        assert_eq!(plan(&with(text)).drivers, Drivers { wanted, ..Drivers::default() }, "{text}");
    }
    let full = Drivers {
        wanted: named(&["d1", "d2"]),
        on_loss: OnLoss::Continue,
        lost_after_ns: 30_000_000_000,
        pods: None,
    };
    assert_eq!(plan(FULL).drivers, full);
    for (text, remark) in [
        (
            "drivers: 0\n",
            "1:10 error `drivers`: 0 is out of range | write all, a number of drivers up to 10000, or a list \
                          of names: [d1, d2]",
        ),
        (
            "drivers: some\n",
            "1:10 error `drivers`: 'some' is not a whole number | write all, a number of drivers up to \
                             10000, or a list of names: [d1, d2]",
        ),
        ("drivers: []\n", "1:1 error `drivers` lists no drivers | write names, or all"),
        ("drivers: {use: [a, a]}\n", "1:11 error `use` lists a twice | list each driver once"),
        (
            "drivers: {lost_after: 1s}\n",
            "1:23 error `lost_after`: '1s' is out of range | write a duration from 2s to 1h",
        ),
        (
            "drivers: {on_los: stop}\n",
            "1:11 error `on_los` is not a key of `drivers` | did you mean `on_loss`?",
        ),
    ] {
        assert_eq!(remarks(&with(text)), [remark], "{text}");
    }
    let pinned = with("drivers: [d1]\n").replace("for: 60s", "for: 60s\n    driver: d9");
    assert_eq!(
        remarks(&pinned),
        [
            "1:1 error a work is pinned to the driver d9, which is not in `drivers` | add d9 to the list, or change the \
          work's `driver`"
        ]
    );
    assert_eq!(plan(&pinned.replace("[d1]", "[d1, d9]")).stages[0].works[0].driver.as_deref(), Some("d9"));
}

#[test]
fn examples_are_documents() {
    for (name, text) in [
        ("whitepaper-4k", include_str!("../../../../examples/whitepaper-4k.yaml")),
        ("mixed-embedded", include_str!("../../../../examples/mixed-embedded.yaml")),
        ("open-loop", include_str!("../../../../examples/open-loop.yaml")),
    ] {
        let read = read(text, &|_| Some("http://10.0.0.1".to_owned()));
        let (plan, warnings) = read.unwrap_or_else(|errors| panic!("{name}: {errors:#?}"));
        assert_eq!((plan.name.as_str(), warnings), (name, vec![]));
    }
}

#[test]
fn rounds_that_end_a_window_are_whole_seconds_and_fit_into_it() {
    let text = |until: &str| {
        format!(
            "name: w\ntarget: embedded\nstages:\n- load: {{for: 60s, until_steady: {until}, containers: 1-2, operations: [list: {{}}]}}\n"
        )
    };
    assert_eq!(plan(&text("5s")).stages[0].works[0].load.stop.until_steady_ns, Some(5_000_000_000));
    assert!(remarks(&text("1500ms"))[0].contains("'1500ms' is not a whole number of seconds"));
    assert!(
        remarks(&text("12s"))[0].contains("warning the window is over before five rounds"),
        "{:?}",
        remarks(&text("12s"))
    );
}

#[test]
fn existing_objects_are_named_by_a_file_and_only_read() {
    let registry = Registry::new(vec![Arc::new(Objects)], vec![]);
    let names = |path: &std::path::Path| match path.to_str() {
        Some("keys.txt") => Ok("photos/a b.jpg\nphotos/c.jpg\n\n".to_owned()),
        Some("empty.txt") => Ok("\n".to_owned()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    let device_size = &nothing;
    let environment = Environment {
        registry: &registry,
        variable: &variable,
        file: &file,
        document: &names,
        device_size,
        bound: &|_| None,
        waited_for: &|| true,
    };
    let outcome = |keys: &str, operations: &str| {
        let text = format!(
            "name: w\ntarget: embedded\nstages:\n- load: {{for: 5s, existing: {{container: photos, keys: {keys}}}, operations: [{operations}]}}\n"
        );
        yaml::read(&text, &environment)
    };
    let (plan, _) = outcome("keys.txt", "get: {}, head: {objects: 2}, list: {}").unwrap();
    let job = Job::of(&plan.stages[0].works[0]).unwrap();
    let mut name = Vec::new();
    let names = crate::operate::Names::new(&job.actions[0].naming);
    names.push_container(&mut name, 1);
    name.push(b'/');
    names.push_object(&mut name, 1);
    assert_eq!(String::from_utf8(name).unwrap(), "photos/photos/a%20b.jpg");
    let SourcePlan::Mix { choices, .. } = &plan.stages[0].works[0].load.source else { panic!("no mix") };
    assert_eq!(choices[0].items, Pick::Uniform { low: 1, high: 2 });
    let error = |keys: &str, operations: &str| outcome(keys, operations).unwrap_err()[0].message.clone();
    assert_eq!(error("keys.txt", "delete: {}"), "objects that somebody else wrote are only read");
    assert_eq!(error("keys.txt", "put: {sizes: 1KB}"), "objects that somebody else wrote are only read");
    assert_eq!(
        error("keys.txt", "get: {objects: 1-3}"),
        "the names of objects have the numbers 1 to 2, not 1 to 3"
    );
    assert_eq!(error("empty.txt", "get: {}"), "empty.txt has no names of objects");
    assert_eq!(
        error("keys.txt, limit: 3", "get: {}"),
        "`limit` does not apply here: the names are in a file"
    );
    assert!(error("none.txt", "get: {}").starts_with("the names in none.txt cannot be read"));
}

#[test]
fn existing_objects_without_a_file_are_listed_later() {
    let load = |target: &str, existing: &str, operations: &str| {
        outcome(&format!(
            "name: w\ntarget: {target}\nstages:\n- load: {{for: 5s, existing: {{{existing}}}, operations: [{operations}]}}\n"
        ))
    };
    let s3 = "{kind: s3, endpoint: 'http://127.0.0.1:1', access_key: a, secret_key: b}";
    let (plan, _) =
        load(s3, "container: photos, prefix: 2024/, limit: 50", "get: {}, head: {objects: 1-50}").unwrap();
    let job = Job::of(&plan.stages[0].works[0]).unwrap();
    let existing = job.actions[0].naming.existing.clone().unwrap();
    assert_eq!(existing.listing, Some(Listing { prefix: "2024/".into(), limit: 50 }));
    assert!(existing.keys.is_empty() && !job.actions[0].content.verify);
    let error = |target: &str, existing: &str, operations: &str| {
        load(target, existing, operations).unwrap_err()[0].message.clone()
    };
    assert_eq!(
        error(s3, "container: p", "put: {sizes: 1KB}"),
        "objects that somebody else wrote are only read"
    );
    assert_eq!(
        error(s3, "container: p, limit: 50", "get: {objects: 1-51}"),
        "the names of objects have the numbers 1 to 50, not 1 to 51"
    );
    assert_eq!(
        error("embedded", "container: p", "get: {}"),
        "this target has nothing to list before the run"
    );
}

#[test]
fn the_settings_that_reports_show_leave_nothing_out() {
    let plan = plan(FULL);
    let settings = |stage: &str| -> Vec<String> {
        let stage = plan.stages.iter().find(|one| one.name == stage).unwrap();
        stage.works[0].labels.iter().map(|label| label.config.clone()).collect()
    };
    let [main, extras] = ["main", "extras"].map(settings);
    assert_eq!(main[0], "containers=u(1,4);objects=u(1,2000);pool=1-1000 exist;verify=true");
    assert!(main[1].ends_with(";pool=1-1000 exist"), "{main:?}");
    assert_eq!(
        extras[0],
        "containers=r(1,4);objects=zipf(1,1000,1.1);division=objects;range=4KiB of 64KiB;verify=true"
    );
    let ends = ["if_absent=true", "count=100", "page=100;all=true;by_object=true"];
    for (settings, end) in extras[1..].iter().zip(ends) {
        assert!(settings.ends_with(end), "{settings}");
    }
    assert!(extras[7].ends_with(";days=3"), "{extras:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_documents_make_no_panic_and_point_inside(
        cut in 0usize..5000, length in 0usize..60, put in "[-:{}\\[\\]#&*!|>'\"%@`é\\n\\t a-z0-9.]{0,8}",
    ) {
        let floor = |at: usize| (0..=at.min(FULL.len())).rev().find(|at| FULL.is_char_boundary(*at)).unwrap();
        let (start, end) = (floor(cut % FULL.len()), floor(cut % FULL.len() + length));
        let text = format!("{}{put}{}", &FULL[..start], &FULL[end..]);
        let remarks = match outcome(&text) {
            Ok((_, warnings)) => warnings,
            Err(errors) => errors,
        };
        for remark in remarks {
            prop_assert!(text.get(remark.span.clone()).is_some(), "{:?}", remark);
        }
    }
}
