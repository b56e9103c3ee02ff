//! COSBench files, whole: what becomes of them, and what is said about those that are wrong.

use proptest::prelude::*;
use std::sync::Arc;
use tidemark_cosbench::Cosbench;
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Effect, Order, Size, SourcePlan};
use tidemark_load::stopping::Stop;
use tidemark_measure::axis::Axis;
use tidemark_measure::pick::{Bucket, Pick};
use tidemark_object::Objects;
use tidemark_object::job::{
    Content, Embedded, Emptied, Form, Job, Keeps, Mock, Naming, Place, S3, Swift, SwiftAuth, Target, Verb,
};
use tidemark_plan::diagnostic::{Diagnostic, Severity};
use tidemark_plan::document::{self, Read};
use tidemark_plan::plan::{OnFailure, Plan, Stage, Work, WorkKind};
use tidemark_plan::redact::redact;
use tidemark_plan::registry::{Changes, Format, Registry};
use tidemark_plan::selector::OPEN_END;
use tidemark_plan::yaml::Environment;

const FIVE_STAGES: &str = include_str!("../fixtures/five-stages.xml");
const EVERY_OPERATION: &str = include_str!("../fixtures/every-operation.xml");
const ARCHIVED: &str = include_str!("../fixtures/archived.xml");
const PLACEHOLDERS: &str = include_str!("../fixtures/placeholders.xml");

const SECOND: u64 = 1_000_000_000;

fn outcome(text: &str) -> Result<Read, Vec<Diagnostic>> {
    let registry = Registry::new(vec![Arc::new(Objects)], vec![Arc::new(Cosbench)]);
    document::read(text, &Environment::process(&registry))
}

fn read(text: &str) -> Read {
    outcome(text).unwrap_or_else(|remarks| panic!("refused: {remarks:#?}"))
}

fn plan(text: &str) -> Plan {
    read(text).plan
}

/// Line, column, severity and message of everything said about a text.
fn remarks(text: &str) -> Vec<(usize, usize, Severity, String)> {
    let list = outcome(text).map_or_else(|errors| errors, |read| read.warnings);
    let show = |remark: Diagnostic| {
        let (line, column) = remark.line_and_column(text);
        (line, column, remark.severity, remark.message)
    };
    list.into_iter().map(show).collect()
}

fn errors(text: &str) -> Vec<(usize, usize, String)> {
    let all = remarks(text).into_iter().filter(|(_, _, severity, _)| *severity == Severity::Error);
    all.map(|(line, column, _, message)| (line, column, message)).collect()
}

fn topics(plan: &Plan) -> Vec<&str> {
    plan.notes.iter().map(|note| note.topic.as_str()).collect()
}

fn job(work: &Work) -> &Job {
    Job::of(work).expect("COSBench's works are on objects")
}

fn s3(work: &Work) -> &S3 {
    match &job(work).target {
        Target::S3(s3) => s3,
        other => panic!("not S3: {other:?}"),
    }
}

fn choices(work: &Work) -> &[Choice] {
    match &work.load.source {
        SourcePlan::Mix { choices, pool: None, deck: false } => choices,
        other => panic!("not a mix without a pool: {other:?}"),
    }
}

fn names(stages: &[Stage]) -> Vec<&str> {
    stages.iter().map(|stage| stage.name.as_str()).collect()
}

fn kilobytes(number: u64) -> Size {
    Size { pick: Pick::Constant(number), unit: 1000 }
}

fn uniform(low: u64, high: u64) -> Pick {
    Pick::Uniform { low, high }
}

/// A workload of one stage around the given inside of it.
fn around(storage: &str, stage: &str) -> String {
    format!(
        "<workload name=\"w\">\n{storage}\n<workflow><workstage name=\"s\">\n{stage}\n</workstage></workflow></workload>"
    )
}

/// A workload of one operation.
fn operation(config: &str) -> String {
    around(
        "<storage type=\"none\"/>",
        &format!(
            "<work name=\"m\" workers=\"8\" runtime=\"10\"><operation type=\"read\" config=\"{config}\"/></work>"
        ),
    )
}

#[test]
fn five_stages_become_the_plan_that_they_say() {
    let Read { plan, warnings, format } = read(FIVE_STAGES);
    assert_eq!((warnings, format), (vec![], "COSBench XML"));
    assert_eq!((plan.name.as_str(), plan.description.as_str()), ("4k-70-30", "4 KB, 70 % read, 30 % write"));
    assert_eq!(names(&plan.stages), ["init", "prepare", "main", "cleanup", "dispose"]);
    assert_eq!(plan.stages.iter().map(|stage| stage.pause_ns).collect::<Vec<_>>(), [0, 30 * SECOND, 0, 0, 0]);
    assert!(
        plan.stages.iter().all(|stage| stage.works.len() == 1 && stage.on_failure == OnFailure::Continue)
    );

    let works: Vec<&Work> = plan.stages.iter().map(|stage| &stage.works[0]).collect();
    assert_eq!(works.iter().map(|work| work.load.workers).collect::<Vec<_>>(), [1, 10, 32, 18, 18]);
    assert_eq!(
        works.iter().map(|work| work.kind).collect::<Vec<_>>(),
        [WorkKind::Init, WorkKind::Prepare, WorkKind::Normal, WorkKind::Cleanup, WorkKind::Dispose]
    );
    let afr: Vec<u32> = works.iter().map(|work| work.allowed_failures_per_million).collect();
    assert_eq!(afr, [0, 0, 200_000, 0, 0]);
    for (index, work) in works.iter().enumerate() {
        assert_eq!((work.load.seed, work.load.stream), (plan.seed, [index as u64, 0]));
        assert_eq!(work.load.pacing, Pacing::BACK_TO_BACK);
        assert_eq!(
            job(work).actions[0].naming,
            Naming { container_prefix: "tide".into(), ..Naming::default() }
        );
        let target = s3(work);
        assert_eq!(target.http.endpoints, ["http://192.168.10.7:8000"]);
        assert_eq!(target.http.timeout_ns, 60 * SECOND);
        assert_eq!((target.access_key.reveal(), target.secret_key.reveal()), ("AKIDEXAMPLE", "wJalr/+K7="));
        assert!(target.path_style, "an address has no bucket before it");
    }

    let scans = [
        (0, Verb::CreateContainer { keeps: Keeps::Latest }, None, 0, 1),
        (1, Verb::Put { chunked: false, if_absent: false }, Some((1, 500)), 4, 1000),
        (3, Verb::Clear { versions: false }, Some((1, 500)), 0, 1),
        (4, Verb::DeleteContainer { empty: Emptied::Never }, None, 0, 1),
    ];
    for (index, verb, items, number, unit) in scans {
        let bytes = Size { pick: Pick::Constant(number), unit };
        let source = SourcePlan::Scan { action: 0, spaces: Some((1, 100)), items, bytes };
        assert_eq!((&works[index].load.source, &job(works[index]).actions[0].verb), (&source, &verb));
        let stop = Stop { drain_ns: 60 * SECOND, give_up_ns: Some(120 * SECOND), ..Stop::default() };
        assert_eq!(works[index].load.stop, stop);
    }

    let main = works[2];
    assert_eq!(
        main.load.stop,
        Stop {
            warm_up_ns: 60 * SECOND,
            window_ns: Some(1200 * SECOND),
            ramp_down_ns: 10 * SECOND,
            drain_ns: 60 * SECOND,
            ..Stop::default()
        }
    );
    let choice = |action, weight, items, bytes| Choice {
        action,
        weight,
        spaces: uniform(1, 100),
        items,
        bytes,
        division: Division::None,
        effect: Effect::Free,
        order: Order::Picked,
        follow: None,
    };
    let nothing = Size { pick: Pick::Constant(0), unit: 1 };
    let expected =
        [choice(0, 70.0, uniform(1, 250), nothing), choice(1, 30.0, uniform(251, 500), kilobytes(4))];
    assert_eq!(choices(main), expected);
    assert_eq!(main.labels.iter().map(|label| label.label.as_str()).collect::<Vec<_>>(), ["read", "write"]);
    assert_eq!(main.labels[1].config, "cprefix=tide;containers=u(1,100);objects=u(251,500);sizes=c(4)KB");
    let samples: Vec<&str> = works.iter().map(|work| work.labels[0].class.name()).collect();
    assert_eq!(samples, ["init", "write", "read", "delete", "dispose"]);
    assert_eq!(topics(&plan), ["dispose", "content", "general"]);
    let general = &plan.notes[2].text;
    assert!(general.starts_with("8 differences are those of every COSBench file: "), "{general}");
}

#[test]
fn the_seed_comes_from_the_document_without_its_secrets() {
    let seed = plan(FIVE_STAGES).seed;
    assert_eq!(seed, plan(&FIVE_STAGES.replace("wJalr", "other")).seed);
    assert_eq!(seed, plan(&redact(FIVE_STAGES)).seed);
    assert_ne!(seed, plan(&FIVE_STAGES.replace("1200", "1201")).seed);
    assert_eq!(plan(EVERY_OPERATION).seed, 7);
}

#[test]
fn every_operation_of_the_union_dialect_is_understood() {
    let Read { plan, warnings, .. } = read(EVERY_OPERATION);
    let warnings: Vec<&str> = warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(warnings, Vec::<&str>::new());
    assert_eq!(
        names(&plan.stages),
        ["multi-create-containers", "multi", "main", "delay", "end", "end-delete-containers"]
    );

    let multi = &plan.stages[1];
    assert_eq!(multi.trigger.as_deref(), Some("prepare.sh(1,2)"));
    assert_eq!(job(&multi.works[0]).actions[0].verb, Verb::PutMultipart { part_bytes: 8 << 20, parallel: 1 });
    assert_eq!(multi.works[0].labels[0].class.name(), "mwrite");
    let create = &plan.stages[0].works[0];
    assert_eq!(
        (create.kind, &job(create).actions[0].verb),
        (WorkKind::Init, &Verb::CreateContainer { keeps: Keeps::Latest })
    );
    let delete = &plan.stages[5].works[0];
    assert_eq!(job(delete).actions[0].verb, Verb::DeleteContainer { empty: Emptied::Never });
    assert_eq!((plan.stages[3].works.len(), plan.stages[3].pause_ns), (0, 5 * SECOND));

    let mix = &plan.stages[2].works[0];
    let labels: Vec<&str> = mix.labels.iter().map(|label| label.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "1-read",
            "2-read",
            "write",
            "mwrite",
            "delete",
            "look",
            "list",
            "restore",
            "filewrite",
            "mfilewrite",
            "localwrite"
        ]
    );
    let verbs: Vec<Verb> = job(mix).actions.iter().map(|action| action.verb.clone()).collect();
    let expected = [
        Verb::Get,
        Verb::Get,
        Verb::Put { chunked: true, if_absent: false },
        Verb::PutMultipart { part_bytes: 8 << 20, parallel: 1 },
        Verb::Delete,
        Verb::Head,
        Verb::List { page: 1000, all: false, by_object: false },
        Verb::Restore { days: 3 },
        Verb::PutFile { directory: "/data/in".into(), part_bytes: None },
        Verb::PutFile { directory: "/data/in".into(), part_bytes: Some(8 << 20) },
        Verb::WriteLocal { directory: "/data/out".into() },
    ];
    assert_eq!(verbs, expected);
    let divisions: Vec<Division> = choices(mix).iter().map(|choice| choice.division).collect();
    assert_eq!(divisions[..3], [Division::Items, Division::Spaces, Division::Items]);
    assert_eq!(divisions[8], Division::None, "the number of files is not known here");
    let buckets = [(1, 10, 5), (11, 20, 15)].map(|(low, high, weight)| Bucket { low, high, weight });
    assert_eq!(choices(mix)[2].bytes, Size { pick: Pick::Weighted(buckets.to_vec()), unit: 1000 });
    assert_eq!(choices(mix)[8].items, Pick::Shared { low: 1, high: OPEN_END });
    assert_eq!(choices(mix)[9].items, uniform(1, OPEN_END));

    let hashed = Content { form: Form::Hashed, verify: true };
    let contents: Vec<Content> = job(mix).actions.iter().map(|action| action.content).collect();
    assert_eq!((contents[0], contents[1]), (hashed, Content::default()));
    assert_eq!(contents[10], Content { form: Form::Zero, verify: false });
    let naming = Naming {
        container: None,
        container_prefix: "all".into(),
        container_suffix: "-x".into(),
        object_prefix: "o".into(),
        object_suffix: String::new(),
        existing: None,
    };
    assert_eq!(job(mix).actions[0].naming, naming);

    assert_eq!((mix.driver.as_deref(), mix.allowed_failures_per_million), (Some("driver2"), 0));
    assert_eq!((mix.load.stop.operations, mix.load.stop.window_ns), (Some(10), None));
    assert_eq!(mix.load.stop.give_up_ns, Some(60 * SECOND));
    let target = s3(mix);
    assert_eq!(target.http.endpoints, ["https://s3.example.org:9443"]);
    assert_eq!(target.http.timeout_ns, (5 + 16) * SECOND, "16 MiB at a megabyte per second on top");
    assert_eq!((target.http.retries, target.http.insecure, target.path_style), (2, true, true));
    assert_eq!((target.region.as_str(), target.storage_class.as_deref()), ("eu-1", Some("GLACIER")));

    let beside = &plan.stages[2].works[1];
    assert_eq!(job(beside).target, Target::Mock(Mock { size: 64000, delay_ns: 5_000_000, errors: 0.25 }));
    assert_eq!((beside.load.stop.bytes, beside.load.stream), (Some(1_000_000), [2, 1]));
    assert_eq!(choices(beside)[0].items, uniform(5, OPEN_END));

    let topics = topics(&plan);
    for topic in [
        "binary-units",
        "hashcheck",
        "retry",
        "connections",
        "timeout",
        "create-containers",
        "delete-containers",
        "delay",
        "trigger",
        "list",
        "weights",
        "shared-sequence",
        "total-operations",
        "general",
    ] {
        assert!(topics.contains(&topic), "{topic} is missing among {topics:?}");
    }
    for topic in ["deletes", "constant", "pairs"] {
        assert!(!topics.contains(&topic), "{topic} does not apply");
    }
    let order = |topic: &str| topics.iter().position(|one| *one == topic);
    assert!(
        order("binary-units") < order("weights") && order("weights") < order("connections"),
        "{topics:?}"
    );
    assert_eq!(topics.last(), Some(&"general"));
}

#[test]
fn archived_files_are_accepted_as_they_are() {
    let Read { plan, warnings, .. } = read(ARCHIVED);
    assert_eq!(warnings, []);
    assert_eq!(names(&plan.stages), ["init", "prepare", "main"]);
    let source = |stage: usize| plan.stages[stage].works[0].load.source.clone();
    let nothing = Size { pick: Pick::Constant(0), unit: 1 };
    assert_eq!(source(0), SourcePlan::Scan { action: 0, spaces: Some((1, 32)), items: None, bytes: nothing });
    let bytes = kilobytes(64);
    assert_eq!(source(1), SourcePlan::Scan { action: 0, spaces: Some((1, 32)), items: Some((1, 50)), bytes });
    assert_eq!(plan.stages[1].works[0].load.stop.operations, None);
    assert_eq!(plan.stages[2].works[0].allowed_failures_per_million, 200_000);
}

#[test]
fn placeholders_and_a_refused_storage_are_reported_together() {
    let found = errors(PLACEHOLDERS);
    let at: Vec<(usize, usize)> = found.iter().map(|(line, column, _)| (*line, *column)).collect();
    assert_eq!(at, [(3, 18), (3, 46)]);
    assert_eq!(found[0].2, "storage type `librados` is not supported");
    assert_eq!(
        found[1].2,
        "the file is a template with placeholders at 3 places: `<accesskey>`, `<secretkey>`, `<endpoint>`"
    );
}

#[test]
fn a_template_is_told_once() {
    let stage = "<workstage name=\"s\"><storage type=\"s3\" config=\"accesskey=<accesskey>;secretkey=<secretkey>;endpoint=<endpoint>\"/>\
                 <work name=\"m\" workers=\"{{ workers }}\" runtime=\"${RUNTIME}\"><operation type=\"read\" ratio=\"<ratio>\" \
                 config=\"containers=r(1,@CONTAINERS@);objects=u(1,100)\"/></work></workstage>\n";
    let text = format!("<workload name=\"w\"><workflow>\n{}</workflow></workload>", stage.repeat(90));
    let found = errors(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].2.starts_with("the file is a template with placeholders at 630 places: `<accesskey>`"),
        "{found:?}"
    );
    let registry = Registry::default();
    let target = tidemark_plan::engine::Target::new("object", Target::Nothing);
    let changes = Changes { target: Some(target), ..Changes::default() };
    let placed = around(
        "<storage type=\"s3\" config=\"accesskey=<accesskey>\"/>",
        "<work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/>",
    );
    let read = Cosbench.read(&placed, &Environment::process(&registry), changes);
    assert!(read.is_ok(), "those of a target that is replaced do not matter: {read:?}");
}

#[test]
fn variables_that_are_not_set_are_told_once() {
    let stage = "<workstage name=\"s\"><storage type=\"s3\" config=\"accesskey=a;secretkey=${TIDEMARK_UNSET};endpoint=http://h\"/>\
                 <work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/></workstage>\n";
    let text = format!("<workload name=\"w\"><workflow>\n{}</workflow></workload>", stage.repeat(9));
    let found = errors(&text);
    let unset = found.iter().filter(|(_, _, message)| message.contains("TIDEMARK_UNSET is not set"));
    assert_eq!(unset.count(), 1, "{found:?}");
}

#[test]
fn what_a_variable_leaves_empty_is_not_called_missing() {
    let text = "<workload name=\"w\"><auth type=\"swauth\" \
        config=\"username=${TIDEMARK_UNSET};password=${TIDEMARK_UNSET_2};auth_url=http://${TIDEMARK_UNSET_3}/a\"/>\n\
        <storage type=\"swift\"/><workflow><workstage name=\"s\"><work type=\"init\" workers=\"1\" \
        config=\"containers=r(1,2)\"/></workstage></workflow></workload>";
    let found: Vec<_> = errors(text).into_iter().map(|(_, _, message)| message).collect();
    let unset =
        ["", "_2", "_3"].map(|number| format!("the environment variable TIDEMARK_UNSET{number} is not set"));
    assert_eq!(found, unset);
}

#[test]
fn works_without_a_storage_are_told() {
    let init = "<work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/>";
    let warned = |text: &str| remarks(text).into_iter().map(|(_, _, _, message)| message).collect::<Vec<_>>();
    assert_eq!(
        warned(&around("", init)),
        ["work `init` has no `storage`: it goes to `none`, which does nothing and succeeds"]
    );
    let three = warned(&around("", &init.repeat(3)));
    assert_eq!(three.len(), 1, "{three:?}");
    assert!(three[0].starts_with("work `init` and 2 more have no `storage`"), "{three:?}");
    assert_eq!(warned(&around("<storage type=\"none\"/>", init)), [""; 0]);
}

#[test]
fn stages_that_are_added_do_not_shift_the_numbers_of_others() {
    let ids: Vec<String> =
        plan(EVERY_OPERATION).stages.iter().enumerate().map(|(index, stage)| stage.id(index)).collect();
    assert_eq!(
        ids,
        [
            "s1-multi-create-containers",
            "s1-multi",
            "s2-main",
            "s3-delay",
            "s4-end",
            "s4-end-delete-containers"
        ]
    );
}

#[test]
fn kinds_of_storage_that_are_not_spoken_are_refused_with_advice() {
    for kind in [
        "ampli",
        "cdmi",
        "cdmi_swift",
        "sproxyd",
        "librados",
        "gcs",
        "ecs",
        "openio",
        "manta",
        "hcp",
        "hcpcs",
        "oss",
    ] {
        let text = around(
            &format!("<storage type=\"{kind}\"/>"),
            "<work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/>",
        );
        let remarks = outcome(&text).unwrap_err();
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(remarks[0].message.contains(kind) && !remarks[0].help.is_empty(), "{remarks:?}");
    }
    let init = "<work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/>";
    assert_eq!(
        errors(&around("<storage type=\"swfit\"/>", init))[0],
        (2, 16, "storage type `swfit` is unknown".into())
    );
    let http = "<auth type=\"httpauth\" config=\"username=a;password=b\"/>";
    assert!(errors(&around(http, init))[0].2.starts_with("auth type `httpauth` is not supported"));
}

#[test]
fn swift_gets_its_token_in_every_way() {
    let target = |adapters: &str| {
        let text = around(adapters, "<work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/>");
        match job(&plan(&text).stages[0].works[0]).target.clone() {
            Target::Swift(Swift { auth, policy, .. }) => (auth, policy),
            other => panic!("not Swift: {other:?}"),
        }
    };
    let (auth, policy) = target(
        "<auth type=\"swauth\" config=\"username=test:tester;password=pw;url=http://h:8080/auth/v1.0\"/><storage type=\"swift\" config=\"policy=gold\"/>",
    );
    assert_eq!(policy.as_deref(), Some("gold"));
    let SwiftAuth::TempAuth { url, user, key } = auth else { panic!("{auth:?}") };
    assert_eq!((url.as_str(), user.as_str(), key.reveal()), ("http://h:8080/auth/v1.0", "test:tester", "pw"));

    let keystone = "username=u;password=p;tenant_name=t;service=swift service";
    let (auth, _) = target(&format!(
        "<auth type=\"keystone\" config=\"{keystone};auth_url=http://h:5000/v2.0;region=r\"/><storage type=\"swift\"/>"
    ));
    let SwiftAuth::KeystoneV2 { tenant, service, region, .. } = auth else { panic!("{auth:?}") };
    assert_eq!((tenant.as_str(), service.as_str(), region.as_deref()), ("t", "swift service", Some("r")));

    for third in
        ["auth_url=http://h:5000/v3", "auth_url=http://h:5000;user_domain=Default;project_domain=Default"]
    {
        let (auth, _) = target(&format!(
            "<auth type=\"keystone\" config=\"{keystone};{third}\"/><storage type=\"swift\"/>"
        ));
        let SwiftAuth::KeystoneV3 { project, user_domain, .. } = auth else { panic!("{auth:?}") };
        assert_eq!((project.as_str(), user_domain.as_str()), ("t", "Default"));
    }

    let (auth, _) =
        target("<storage type=\"swift\" config=\"token=AUTH_tk;storage_url=http://h:8080/v1/AUTH_test\"/>");
    let SwiftAuth::Token { token, storage_url } = auth else { panic!("{auth:?}") };
    assert_eq!((token.reveal(), storage_url.as_str()), ("AUTH_tk", "http://h:8080/v1/AUTH_test"));
}

#[test]
fn other_targets_and_ranged_reads() {
    let init = "<work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/>";
    let target = |storage: &str| job(&plan(&around(storage, init)).stages[0].works[0]).target.clone();
    assert_eq!(target(""), Target::Nothing);
    assert_eq!(target("<storage type=\"none\"/>"), Target::Nothing);
    assert_eq!(
        target("<storage type=\"mock\"/>"),
        Target::Mock(Mock { size: 1000, delay_ns: 10_000_000, errors: 0.0 })
    );
    assert_eq!(
        target("<storage type=\"embedded\"/>"),
        Target::Embedded(Embedded { place: Place::Memory, limit: None, durable: false })
    );
    assert_eq!(
        target("<storage type=\"embedded\" config=\"place=disk;directory=/d\"/>"),
        Target::Embedded(Embedded { place: Place::Disk(Some("/d".into())), limit: None, durable: false })
    );
    let camel = "<storage type=\"s3\" config=\"accessKey=a;secretKey=s;endpoint=http://s3.local;pathStyleAccess=true;signerOverride=AWS4SignerType;insecure=true\"/>";
    let Target::S3(camel) = target(camel) else { panic!() };
    assert_eq!((camel.access_key.reveal(), camel.secret_key.reveal()), ("a", "s"));
    assert!(camel.path_style && camel.http.insecure);

    let storage = "<storage type=\"sio\" config=\"accesskey=a;secretkey=s;endpoint=http://s3.local;is_range_request=true;file_length=15000000;chunk_length=5000000\"/>";
    let read = "<work name=\"m\" workers=\"1\" totalOps=\"5\"><operation type=\"read\" config=\"containers=c(1);objects=r(1,5)\"/></work>";
    let work = &plan(&around(storage, read)).stages[0].works[0];
    assert_eq!(job(work).actions[0].verb, Verb::GetRange { length: 5_000_000, object_bytes: 15_000_000 });
    assert_eq!(choices(work)[0].bytes, Size { pick: Pick::Constant(5_000_000), unit: 1 });
}

#[test]
fn mistakes_are_reported_where_they_are() {
    let storage = |config: &str| {
        let init = "<work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/>";
        around(
            &format!("<storage type=\"s3\" config=\"accesskey=a;secretkey=s;endpoint=http://h;{config}\"/>"),
            init,
        )
    };
    let normal = |attributes: &str| {
        let operation = "<operation type=\"read\" config=\"containers=c(1);objects=c(1)\"/>";
        around("", &format!("<work {attributes}>{operation}</work>"))
    };
    let table = [
        (operation("containers=u(1,32);objects=u(50,1)"), 4, "50", "the range goes down, from 50 to 1"),
        (operation("containers=u(1,32)"), 4, "operation", "`read` has no `objects`"),
        (operation("containers=q(1);objects=c(1)"), 4, "q(1)", "`q(1)` is not a known selector"),
        (normal("name=\"m\" workers=\"0\" runtime=\"1\""), 4, "0", "`workers` is 0, out of range"),
        (
            normal("name=\"m\" workers=\"1\" runtime=\"30s\""),
            4,
            "30s",
            "`runtime` is not a whole number: `30s`",
        ),
        (normal("name=\"m\" workers=\"1\""), 4, "work", "the work has no end condition"),
        (normal("workers=\"1\" runtime=\"1\""), 4, "work", "`work` has no `name`"),
        (normal("name=\"m\" runtime=\"1\""), 4, "work", "`work` has no `workers`"),
        (
            normal("name=\"m\" workers=\"1\" runtime=\"1\" division=\"objects\""),
            4,
            "objects",
            "division `objects` is unknown",
        ),
        (
            normal("name=\"m\" workers=\"1\" runtime=\"1\" type=\"prepair\""),
            4,
            "prepair",
            "work type `prepair` is unknown",
        ),
        (
            normal("name=\"m\" workers=\"1\" runtime=\"1\" afr=\"1000001\""),
            4,
            "1000001",
            "`afr` is 1000001, out of range",
        ),
        (storage("proxyhost=p"), 2, "proxyhost", "`proxyhost`: proxies are not supported"),
        (storage("timeout=soon"), 2, "soon", "`timeout` is not a whole number: `soon`"),
        (
            storage("path_style_access=maybe"),
            2,
            "maybe",
            "`path_style_access` is neither true nor false: `maybe`",
        ),
        (
            storage("is_range_request=true"),
            2,
            "storage",
            "`is_range_request` requires `file_length` and a `chunk_length` no larger than it",
        ),
        (around("", "<wrok/>"), 4, "wrok", "`wrok` is not allowed in `workstage`"),
        (around("", ""), 3, "workstage", "stage `s` has no `work`"),
        ("<workload name=\"w\"/>".into(), 1, "workload", "the workload has no `workstage`"),
        ("<worklod/>".into(), 1, "worklod", "the root element is `worklod`"),
        (
            FIVE_STAGES.replace("ratio=\"30\"", "ratio=\"20\""),
            13,
            "work",
            "the ratios of work `main` add up to 90",
        ),
        (FIVE_STAGES.replace("</work>", ""), 17, "<", "found `</workstage>` instead of `</work>`"),
        (
            FIVE_STAGES.replace("name=\"main\" workers", "name=\"main workers"),
            13,
            "\"",
            "this quote, or one before it on the line, is not closed",
        ),
        (
            FIVE_STAGES.replace("endpoint=192", "endpoint=ftp://192"),
            4,
            "ftp://192.168.10.7:8000",
            "`endpoint` is not an address: its scheme is neither http nor https",
        ),
    ];
    for (text, line, at, message) in table {
        let remarks = outcome(&text).unwrap_err();
        let found = remarks.iter().find(|remark| remark.message == message);
        let found = found.unwrap_or_else(|| panic!("{message} is missing: {remarks:#?}"));
        assert_eq!((found.line_and_column(&text).0, &text[found.span.clone()]), (line, at), "{message}");
        assert!(!found.help.is_empty(), "{message} has no advice");
    }
}

#[test]
fn an_evaluation_changes_seed_level_and_target() {
    let registry = Registry::default();
    let read = |changes: Changes<'_>| Cosbench.read(FIVE_STAGES, &Environment::process(&registry), changes);
    let normal = |plan: &Plan| {
        let mut works = plan.stages.iter().flat_map(|stage| &stage.works);
        works.find(|work| work.kind == WorkKind::Normal).cloned().unwrap()
    };
    let level = [Axis::count("workers", 3), Axis::rate("rate", 500.0)];
    let target = tidemark_plan::engine::Target::new("object", Target::Nothing);
    let (changed, _) = read(Changes { seed: Some(11), level: &level, target: Some(target) }).unwrap();
    let work = normal(&changed);
    assert_eq!((changed.seed, work.load.seed, work.load.workers), (11, 11, 3));
    assert!(matches!(&work.load.pacing, Pacing::Open { rate, .. } if rate.at(0) == 500.0));
    let mut works = changed.stages.iter().flat_map(|stage| &stage.works);
    assert!(works.all(|work| job(work).target == Target::Nothing));
    assert_eq!(Cosbench.axes().iter().map(|axis| axis.name()).collect::<Vec<_>>(), ["workers", "rate"]);
    let (plain, _) = read(Changes::default()).unwrap();
    assert_eq!(normal(&plain).load.pacing, Pacing::BACK_TO_BACK);
    assert_ne!(normal(&plain).load.workers, 3);
}

#[test]
fn slips_are_warned_about_with_the_nearest_name() {
    let text = FIVE_STAGES
        .replace("runtime=", "totalops=\"5\" runtime=")
        .replace("objects=u(1,250)", "object=5;objects=u(1,250)");
    let warnings = read(&text).warnings;
    let found: Vec<_> = warnings
        .iter()
        .map(|warning| (warning.line_and_column(&text), warning.message.as_str(), warning.help.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (
                (13, 50),
                "`totalops` is not an attribute of `work` and is ignored",
                "did you mean `totalOps`? Names are case-sensitive"
            ),
            (
                (14, 71),
                "`object` is not a key of an operation and is ignored",
                "did you mean `objects`? Keys are case-sensitive"
            ),
        ]
    );
    let warned = |text: &str| {
        remarks(text).into_iter().map(|(_, _, severity, message)| (severity, message)).collect::<Vec<_>>()
    };
    let constant = operation("containers=c(1,5);objects=c(1)");
    assert_eq!(
        warned(&constant),
        [(Severity::Warning, "arguments of `c` after the first number are ignored".into())]
    );
    assert!(topics(&plan(&constant)).contains(&"constant"));
    let idle = operation("containers=c(1);objects=u(1,5)").replace("runtime", "division=\"object\" runtime");
    assert_eq!(warned(&idle), [(Severity::Warning, "8 workers share 5 objects: some are idle".into())]);
}

#[test]
fn notes_tell_what_applies() {
    let normal = |attributes: &str, config: &str| {
        let operation = format!("<operation type=\"read\" config=\"{config}\"/>");
        plan(&around("", &format!("<work name=\"m\" {attributes}>{operation}</work>")))
    };
    let text = |plan: &Plan, topic: &str| {
        plan.notes.iter().find(|note| note.topic == topic).map(|note| note.text.clone()).unwrap_or_default()
    };
    let few = normal("workers=\"8\" totalOps=\"5\"", "containers=c(1);objects=c(1)");
    assert!(text(&few, "total-operations").contains("less than the 8 workers"));
    let rest = normal("workers=\"8\" totalOps=\"21\"", "containers=c(1);objects=c(1)");
    assert!(text(&rest, "total-operations").contains("gives each of 8 workers 2 and does 16"));
    let even = normal("workers=\"8\" totalOps=\"24\"", "containers=c(1);objects=c(1)");
    assert!(!topics(&even).contains(&"total-operations"));
    let pairs = normal("workers=\"1\" runtime=\"1\"", "containers=r(1,2);objects=r(1,10)");
    assert!(text(&pairs, "pairs").contains("of 2 containers x 10 objects only 10 pairs are used"));
    assert!(!text(&pairs, "general").contains("throughput"), "one worker's rate is the rate");
    let coprime = normal("workers=\"1\" runtime=\"1\"", "containers=r(1,3);objects=r(1,10)");
    assert!(!topics(&coprime).contains(&"pairs"));
}

#[test]
fn secrets_are_not_in_remarks_labels_or_debug_output() {
    let secret = "SeCrEtVaLuE";
    let text = FIVE_STAGES
        .replace("wJalr/+K7=", secret)
        .replace("4)KB", "4)XB")
        .replace("cprefix=tide", "cprefix=tide;password=SeCrEtVaLuE");
    let remarks = outcome(&text).unwrap_err();
    assert!(!format!("{remarks:?}").contains(secret));
    let plan = plan(&text.replace("4)XB", "4)KB"));
    assert!(!format!("{plan:?}").contains(secret));
    assert!(!redact(&text).contains(secret));
}

/// Changes a document at some places: bytes go, tokens come in.
fn mutated(text: &str, changes: &[(usize, usize, String)]) -> String {
    let mut text = text.to_owned();
    for (at, length, token) in changes {
        let floor =
            |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let start = floor(at % (text.len() + 1));
        let end = floor(start + length).max(start);
        text.replace_range(start..end, token);
    }
    text
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let remarks = match outcome(text) {
        Ok(read) => read.warnings,
        Err(remarks) => {
            prop_assert!(remarks.iter().any(|remark| remark.severity == Severity::Error));
            remarks
        }
    };
    for remark in remarks {
        prop_assert!(text.get(remark.span.clone()).is_some(), "{remark:?}");
        prop_assert!(!remark.message.is_empty() && !remark.message.ends_with('.'));
    }
    Ok(())
}

proptest! {
    #[test]
    fn arbitrary_text_does_no_harm(text in "\\PC{0,200}|<[a-z<>/=\"' ;&#()|,!\\[\\]-]{0,200}") {
        check(&text)?;
    }

    #[test]
    fn mutated_documents_do_no_harm(
        which in 0usize..4,
        changes in proptest::collection::vec(
            (0usize..6000, 0usize..40, "[<>\"'&;=/]{0,3}|&#x[0-9a-f]{1,5};|<!--|-->|<!\\[CDATA\\[|\\]\\]>|<work |é|[0-9]{1,20}|r\\(|,|\\PC{0,5}"), 1..6,
        )
    ) {
        let text = [FIVE_STAGES, EVERY_OPERATION, ARCHIVED, PLACEHOLDERS][which];
        check(&mutated(text, &changes))?;
    }
}
