//! The controller as a whole: documents go in, runs come out. Plans are carried out in this process.

use crate::api::{Cancel, Change, CheckRequest, Live, Submission, SubmissionState, Submit};
use crate::controller::{Controller, Options, Refusal, Secrets};
use crate::executor::Executor;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidemark_control::execute;
use tidemark_fleet::fleet::{Member, Presence};
use tidemark_fleet::protocol::Hello;
use tidemark_measure::host::{Host, Utilization};
use tidemark_measure::record::State;

/// Nothing here takes so long, however busy the machine is.
const LONG: Duration = Duration::from_secs(120);

pub(crate) fn member(name: &str) -> Member {
    Member {
        hello: Hello {
            name: name.into(),
            host: Host { name: format!("host-of-{name}"), cores: 2, ..Host::default() },
            ..Hello::default()
        },
        address: "127.0.0.1:1".into(),
        presence: Presence::Present,
        utilization: Utilization { cpu_busy: 0.5, ..Utilization::default() },
        clock_offset_ns: 0,
        clock_error_ns: 5_000,
        silent: Duration::ZERO,
        joined_unix_ms: 1,
        run: None,
        ending: None,
    }
}

/// In this process, on drivers that are only names.
fn work(names: &[&str]) -> Executor {
    let members: Vec<Member> = names.iter().map(|name| member(name)).collect();
    let options = |task: &crate::executor::Task| execute::Options {
        threads: Some(1),
        skip_preflight: task.skip_preflight,
        scratch: task.scratch.clone(),
        ..execute::Options::local(tidemark_engines::registry())
    };
    Executor {
        members: Arc::new(move || members.clone()),
        retry: Duration::from_millis(200),
        ..Executor::with(options, tidemark_engines::registry())
    }
}

fn options(directory: &Path) -> Options {
    Options {
        name: "test".into(),
        version: "0.0.0".into(),
        registry: tidemark_engines::registry(),
        store: directory.join("results.db"),
        secrets: Secrets::default(),
        queue_most: 5,
    }
}

fn start(directory: &Path, names: &[&str]) -> Arc<Controller> {
    Controller::start_with(options(directory), work(names)).unwrap()
}

fn new(names: &[&str]) -> (TempDir, Arc<Controller>) {
    let directory = tempfile::tempdir().unwrap();
    let controller = start(directory.path(), names);
    (directory, controller)
}

/// A load on nothing, of so many seconds.
fn document(name: &str, seconds: u32) -> String {
    format!(
        "name: {name}\ntarget: {{kind: mock, delay: 1ms}}\nstages:\n- {{name: main, load: {{for: {seconds}s, workers: 2, containers: 1, \
         operations: [{{get: {{objects: 10}}}}]}}}}\n"
    )
}

fn submit(document: String) -> Submit {
    Submit { document, ..Submit::default() }
}

fn on(document: String, drivers: &[&str]) -> Submit {
    Submit { drivers: drivers.iter().map(|name| (*name).to_owned()).collect(), ..submit(document) }
}

fn wait(controller: &Controller, id: u64, until: impl Fn(&Submission) -> bool) -> Submission {
    let start = Instant::now();
    loop {
        let now = controller.submission(id).unwrap();
        if until(&now) {
            return now;
        }
        assert!(start.elapsed() < LONG, "{now:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ended(one: &Submission) -> bool {
    !matches!(one.state, SubmissionState::Queued | SubmissionState::Running)
}

fn running(one: &Submission) -> bool {
    one.state == SubmissionState::Running
}

/// Waits until a second of load was seen.
fn under_load(controller: &Controller, id: u64) {
    let start = Instant::now();
    while controller.live(id).unwrap().seconds.is_empty() {
        assert!(start.elapsed() < LONG);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_document_is_submitted_run_and_kept() {
    let (_directory, controller) = new(&["d1"]);
    let mut events = controller.events();
    let text = "name: embedded\ntarget: {kind: embedded}\nstages:\n\
                - {name: init, init: {containers: 1}}\n\
                - {name: fill, prepare: {containers: 1, objects: 1-20, sizes: 1KB}}\n\
                - {name: main, load: {for: 2s, workers: 2, containers: 1, operations: [{get: {objects: 1-20}}]}}\n";
    let first = controller.submit(submit(text.into()), "anna", None).unwrap();
    assert_eq!((first.id, first.name.as_str(), first.by.as_str()), (1, "embedded", "anna"));
    let done = wait(&controller, first.id, ended);
    assert_eq!(done.state, SubmissionState::Completed, "{}", done.reason);
    assert!(done.valid.is_some() && !done.headline.is_empty(), "{done:?}");
    let store = controller.store().unwrap();
    let run = store.load(done.run.unwrap()).unwrap();
    assert_eq!((run.name.as_str(), run.state), ("embedded", State::Completed));
    assert!(run.provenance.command.contains("w1 by anna"), "{}", run.provenance.command);
    assert!(run.provenance.document.contains("kind: embedded"));
    assert_eq!(store.matrix(10, None).unwrap().iter().filter(|row| row.stage == "s3-main").count(), 1);
    assert_eq!(store.submissions_of_runs(0..=u64::MAX).unwrap().get(&run.id), Some(&first.id));
    let overview = controller.overview();
    assert_eq!((overview.active.len(), overview.queue.len(), overview.recent.len()), (0, 0, 1));
    let live = controller.live(first.id).unwrap();
    assert!(
        live.stages.iter().all(|stage| stage.state == State::Completed) && live.run == done.run,
        "{live:?}"
    );
    let mut kinds = Vec::new();
    while let Ok(event) = events.try_recv() {
        kinds.push(match event.live {
            Live::Ended(_) => "ended",
            Live::Stages(_) => "stages",
            Live::Second(_) => "second",
            Live::Nodes(_) => "nodes",
            Live::Overview(_) => "overview",
            Live::Trouble(_) | Live::Missed(_) | Live::Mark(_) | Live::Board(_) => "other",
        });
    }
    for kind in ["stages", "second", "nodes", "overview", "ended"] {
        assert!(kinds.contains(&kind), "{kind} is missing in {kinds:?}");
    }
    controller.shut_down();
}

#[test]
fn secrets_are_neither_shown_nor_stored_in_clear() {
    let (directory, controller) = new(&[]);
    let text = "name: x\ntarget: {kind: s3, endpoint: 'http://127.0.0.1:1', access_key: AKIA, secret_key: hunter2hunter2}\n\
                stages: [{load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}}]\n";
    let own = controller.submit(submit(text.into()), "anna", None).unwrap();
    assert!(own.reason.starts_with("waiting"), "{}", own.reason);
    let shown = controller.document(own.id).unwrap();
    assert!(shown.contains("endpoint") && !shown.contains("hunter2"), "{shown}");
    let again = controller.resubmit(own.id, "ben").unwrap();
    assert_eq!((again.by.as_str(), again.name.as_str()), ("ben", "x"));
    controller.shut_down();
    drop(controller);
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"), "{}", path.display());
    }
}

#[test]
fn an_edited_document_gets_its_secrets_back_from_its_owner_only() {
    let (_directory, controller) = new(&[]);
    let text = "name: x\ntarget:\n  kind: s3\n  endpoint: 'http://127.0.0.1:1'\n  access_key: AKIA\n  secret_key: hunter2hunter2\n\
                stages: [{load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}}]\n";
    let own = controller.submit(submit(text.into()), "anna", None).unwrap();
    let edited = controller.document(own.id).unwrap().replace("name: x", "name: y");
    assert!(!edited.contains("hunter2"), "{edited}");
    let from = |document: &str| Submit { from: Some(own.id), ..submit(document.to_owned()) };
    let next = controller.submit(from(&edited), "anna", None).unwrap();
    assert_eq!(next.name, "y");
    let (sealed, _) = controller.store().unwrap().submitted_document(next.id).unwrap();
    assert!(!sealed.is_empty() && controller.resubmit(next.id, "anna").is_ok());
    let elsewhere = edited.replace("127.0.0.1:1", "127.0.0.1:2");
    for by in ["ben", ""] {
        let refused = controller.submit(from(&elsewhere), by, None).unwrap_err();
        assert!(matches!(&refused, Refusal::Document(_, problems) if problems[0].line == 6), "{refused:?}");
        let request = CheckRequest { document: elsewhere.clone(), from: Some(own.id) };
        let check = controller.check(&request, by, true).unwrap();
        assert!(!check.ok && check.problems[0].line == 6, "{check:?}");
        let own_secret = elsewhere.replace("\"***\"", "another");
        assert!(controller.submit(from(&own_secret), by, None).is_ok());
    }
    controller.shut_down();
}

#[test]
fn what_waits_and_what_goes_on_can_be_cancelled() {
    let (_directory, controller) = new(&["d1"]);
    let active = controller.submit(submit(document("long", 600)), "anna", None).unwrap();
    let waiting = controller.submit(submit(document("next", 600)), "anna", None).unwrap();
    under_load(&controller, active.id);
    let next = wait(&controller, waiting.id, |one| one.reason.contains("w1"));
    assert_eq!(next.reason, "waiting for w1 to release 1 driver");
    let cancelled = controller.cancel(waiting.id, &Cancel::default()).unwrap();
    assert_eq!(cancelled.state, SubmissionState::Cancelled);
    controller.cancel(active.id, &Cancel::default()).unwrap();
    let done = wait(&controller, active.id, ended);
    assert_eq!(done.state, SubmissionState::Cancelled);
    let run = controller.store().unwrap().load(done.run.unwrap()).unwrap();
    assert_eq!(run.state, State::Interrupted);
    assert!(run.stages[0].works[0].operations[0].tally.ok > 0, "what was measured is kept");
    assert!(matches!(controller.cancel(active.id, &Cancel::default()), Err(Refusal::Conflict(_))));
    assert!(matches!(controller.cancel(99, &Cancel::default()), Err(Refusal::Missing(_))));
    let again = controller.submit(submit(document("long", 600)), "anna", None).unwrap();
    wait(&controller, again.id, running);
    controller.cancel(again.id, &Cancel { at_once: true }).unwrap();
    assert_eq!(wait(&controller, again.id, ended).state, SubmissionState::Cancelled);
    controller.shut_down();
}

#[test]
fn several_go_on_at_once_on_drivers_of_their_own() {
    let (_directory, controller) = new(&["d1", "d2", "d3"]);
    let first = controller.submit(on(document("a", 600), &["d2"]), "anna", None).unwrap();
    let second = controller
        .submit(Submit { driver_count: Some(2), ..submit(document("b", 600)) }, "anna", None)
        .unwrap();
    assert_eq!(wait(&controller, first.id, running).drivers, ["d2"]);
    assert_eq!(wait(&controller, second.id, running).drivers, ["d1", "d3"]);
    let holders: Vec<_> = controller.drivers().iter().map(|driver| driver.submission).collect();
    assert_eq!(holders, [Some(second.id), Some(first.id), Some(second.id)]);
    let all = controller.submit(submit(document("c", 600)), "anna", None).unwrap();
    let reason = wait(&controller, all.id, |one| one.reason.contains("release")).reason;
    assert_eq!(reason, "waiting for w1 and w2 to release 3 drivers");
    controller.shut_down();
    for id in [first.id, second.id] {
        let done = controller.submission(id).unwrap();
        assert_eq!(done.state, SubmissionState::Interrupted);
        assert!(done.reason.contains("run ") && done.run.is_some(), "{}", done.reason);
    }
    assert_eq!(controller.submission(all.id).unwrap().state, SubmissionState::Queued);
    assert!(matches!(
        controller.submit(submit(document("d", 1)), "anna", None),
        Err(Refusal::Unavailable(_))
    ));
}

#[test]
fn a_restart_keeps_queue_and_history() {
    let directory = tempfile::tempdir().unwrap();
    let controller = start(directory.path(), &["d1"]);
    let done = controller.submit(submit(document("done", 1)), "anna", None).unwrap();
    wait(&controller, done.id, ended);
    let names = ["a", "b", "c"];
    let ids =
        names.map(|name| controller.submit(on(document(name, 1), &["d9"]), "anna", Some(name)).unwrap().id);
    controller.change(ids[2], &Change { before: Some(ids[0]), ..Change::default() }).unwrap();
    controller.change(ids[1], &Change { priority: Some(7), ..Change::default() }).unwrap();
    let order =
        |controller: &Controller| controller.overview().queue.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(order(&controller), [ids[1], ids[2], ids[0]]);
    controller.shut_down();
    drop(controller);

    let controller = start(directory.path(), &["d9"]);
    assert_eq!(controller.overview().recent.iter().map(|one| one.id).collect::<Vec<_>>(), [done.id]);
    for id in ids {
        assert_eq!(wait(&controller, id, ended).state, SubmissionState::Completed);
    }
    let began = |id| controller.submission(id).unwrap().started_unix_ms.unwrap();
    assert!(began(ids[1]) <= began(ids[2]) && began(ids[2]) <= began(ids[0]), "in their order");
    let again = controller.submit(on(document("a", 1), &["d9"]), "anna", Some("a")).unwrap();
    assert_eq!(again.id, ids[0], "the key is known over the restart");
    controller.shut_down();
}

/// What a killed controller leaves behind.
#[test]
fn what_went_on_when_the_controller_died_is_interrupted_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let controller = start(directory.path(), &["d1"]);
    let own = controller.submit(submit(document("killed", 600)), "anna", None).unwrap();
    under_load(&controller, own.id);
    let run = wait(&controller, own.id, |one| one.run.is_some()).run.unwrap();
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("results.db");
    let sql = rusqlite::Connection::open(directory.path().join("results.db")).unwrap();
    // What is told is stored right after it.
    while sql.query_row("SELECT count(*) FROM seconds", [], |row| row.get::<_, i64>(0)).unwrap() < 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    sql.execute("VACUUM INTO ?", [path.to_str().unwrap()]).unwrap();
    std::fs::copy(directory.path().join("results.db.key"), copy.path().join("results.db.key")).unwrap();
    let sql = rusqlite::Connection::open(&path).unwrap();
    sql.execute("UPDATE runs SET owner = 'another-boot 1 1'", []).unwrap();
    drop(sql);

    let second = start(copy.path(), &[]);
    let left = second.submission(own.id).unwrap();
    assert_eq!((left.state, left.run), (SubmissionState::Interrupted, Some(run)));
    assert_eq!(
        left.reason,
        format!("the controller stopped during the run; partial results are in run {run}")
    );
    let kept = second.store().unwrap().load(run).unwrap();
    assert_eq!(kept.state, State::Interrupted);
    assert!(kept.stages[0].works[0].operations[0].tally.ok > 0);
    assert!(!second.store().unwrap().matrix(1, None).unwrap().is_empty(), "it is in the matrix");
    second.shut_down();
    controller.shut_down();
}

#[test]
fn a_second_controller_on_the_same_store_is_refused() {
    let (directory, controller) = new(&[]);
    controller.found_at("https://10.0.0.1:19088");
    let refused = Controller::start_with(options(directory.path()), work(&[])).err().unwrap();
    assert!(refused.0.contains("at https://10.0.0.1:19088"), "{refused}");
    controller.shut_down();
    drop(controller);
    Controller::start_with(options(directory.path()), work(&[])).unwrap();
}

#[test]
fn values_out_of_range_are_refused() {
    let (_directory, controller) = new(&[]);
    let text = document("x", 1);
    let refused = |submit: Submit, key: Option<&str>| controller.submit(submit, "anna", key).unwrap_err();
    for wrong in [
        Submit { priority: 101, ..submit(text.clone()) },
        Submit { driver_count: Some(0), ..submit(text.clone()) },
        Submit { driver_count: Some(1), ..on(text.clone(), &["d1"]) },
        on(text.clone(), &[""]),
        on(text.clone(), &["x".repeat(300).as_str()]),
    ] {
        assert!(matches!(refused(wrong.clone(), None), Refusal::Bad(_)), "{wrong:?}");
    }
    assert!(matches!(refused(submit(text.clone()), Some("")), Refusal::Bad(_)));
    let Refusal::Document(_, problems) = refused(submit(document("x", 1).replace("workers", "wokers")), None)
    else {
        panic!("it is wrong")
    };
    assert!(problems.iter().any(|problem| !problem.warning && problem.line > 0), "{problems:?}");
    assert!(matches!(refused(submit("x".repeat(2 << 20)), None), Refusal::Document(..)));
    for _ in 0..5 {
        controller.submit(submit(text.clone()), "anna", None).unwrap();
    }
    assert!(matches!(refused(submit(text), None), Refusal::Unavailable(_)), "the queue is full");
    assert!(matches!(controller.change(99, &Change::default()), Err(Refusal::Missing(_))));
    let wrong = Change { priority: Some(-101), ..Change::default() };
    assert!(matches!(controller.change(1, &wrong), Err(Refusal::Bad(_))));
    let wrong = Change { before: Some(99), ..Change::default() };
    assert!(matches!(controller.change(1, &wrong), Err(Refusal::Conflict(_))));
    controller.shut_down();
}

#[test]
fn a_key_makes_one_submission_however_often_it_is_sent() {
    let (_directory, controller) = new(&[]);
    let ids: Vec<u64> = std::thread::scope(|scope| {
        let one = || controller.submit(submit(document("x", 1)), "anna", Some("key")).unwrap().id;
        let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let other = controller.submit(submit(document("x", 1)), "ben", Some("key")).unwrap();
    assert_ne!(other.id, ids[0], "keys are each submitter's own");
    assert_eq!(controller.submissions(None, 10, None).unwrap().len(), 2);
    controller.shut_down();
}

#[test]
fn lists_have_what_waits_goes_on_and_ended() {
    let (_directory, controller) = new(&["d1"]);
    let done = controller.submit(submit(document("done", 1)), "anna", None).unwrap();
    wait(&controller, done.id, ended);
    let active = controller.submit(submit(document("running", 600)), "anna", None).unwrap();
    wait(&controller, active.id, running);
    let waiting = controller.submit(submit(document("waiting", 1)), "anna", None).unwrap();
    let ids = |state, limit, before| {
        controller.submissions(state, limit, before).unwrap().iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, 10, None), [waiting.id, active.id, done.id]);
    assert_eq!(ids(None, 1, Some(waiting.id)), [active.id]);
    assert_eq!(ids(Some(SubmissionState::Running), 10, None), [active.id]);
    assert_eq!(ids(Some(SubmissionState::Completed), 10, None), [done.id]);
    assert_eq!(ids(Some(SubmissionState::Failed), 10, None), Vec::<u64>::new());
    controller.shut_down();
}

/// The store is made to fail by triggers that refuse every change: what a full disk does to it.
fn store_fails(directory: &Path, fails: bool) {
    let sql = rusqlite::Connection::open(directory.join("results.db")).unwrap();
    sql.busy_timeout(LONG).unwrap();
    for table in ["runs", "seconds", "submissions", "audit"] {
        for what in ["INSERT", "UPDATE"] {
            let statement = match fails {
                true => format!(
                    "CREATE TRIGGER no_{what}_{table} BEFORE {what} ON {table} BEGIN SELECT RAISE(FAIL, 'no'); END"
                ),
                false => format!("DROP TRIGGER no_{what}_{table}"),
            };
            sql.execute_batch(&statement).unwrap();
        }
    }
}

#[test]
fn a_store_that_cannot_be_written_costs_no_measurement() {
    let (directory, controller) = new(&["d1"]);
    let own = controller.submit(submit(document("kept", 6)), "anna", None).unwrap();
    under_load(&controller, own.id);
    store_fails(directory.path(), true);
    let done = wait(&controller, own.id, ended);
    assert_eq!(done.state, SubmissionState::Completed, "the run went on");
    assert!(done.reason.contains("not stored yet"), "{}", done.reason);
    assert!(
        controller.troubles().iter().any(|trouble| trouble.contains("w1")),
        "{:?}",
        controller.troubles()
    );
    let live = controller.live(own.id).unwrap();
    assert!(live.troubles.iter().any(|trouble| trouble.contains("without the result store")), "{live:?}");
    let refused = controller.submit(submit(document("later", 1)), "anna", None);
    assert!(matches!(refused, Err(Refusal::Unavailable(_))), "{refused:?}");
    controller.audit("anna", "127.0.0.1", "submit", "w1");
    store_fails(directory.path(), false);
    let done = wait(&controller, own.id, |one| !one.reason.contains("not stored yet"));
    let run = controller.store().unwrap().load(done.run.unwrap()).unwrap();
    assert_eq!(run.state, State::Completed);
    assert!(run.stages[0].works[0].operations[0].tally.ok > 0);
    assert_eq!(controller.overview().recent[0].run, done.run);
    assert!(controller.troubles().is_empty(), "{:?}", controller.troubles());
    let entries = controller.store().unwrap().audit(10, None).unwrap();
    assert_eq!(entries[0].detail, "w1");
    controller.shut_down();
}

#[test]
fn what_fails_or_crashes_says_so_and_lets_go_of_its_drivers() {
    let directory = tempfile::tempdir().unwrap();
    let inner = work(&["d1"]);
    let execute = inner.execute.clone();
    let work = Executor {
        execute: Arc::new(move |plan, task, store, sink| match plan.name.as_str() {
            "crash" => panic!("for the test"),
            "refuse" => Err("driver d1: the target does not answer".into()),
            _ => execute(plan, task, store, sink),
        }),
        ..inner
    };
    let controller = Controller::start_with(options(directory.path()), work).unwrap();
    let end = |name: &str| {
        let own = controller.submit(submit(document(name, 1)), "anna", None).unwrap();
        wait(&controller, own.id, ended)
    };
    let crashed = end("crash");
    assert_eq!(crashed.state, SubmissionState::Failed);
    assert!(crashed.reason.contains("report this as a bug"), "{}", crashed.reason);
    let refused = end("refuse");
    assert_eq!(
        (refused.state, refused.reason.as_str()),
        (SubmissionState::Failed, "driver d1: the target does not answer")
    );
    assert_eq!(end("fine").state, SubmissionState::Completed);
    controller.shut_down();
}

#[test]
fn an_evaluation_is_carried_out_and_judged() {
    let (_directory, controller) = new(&["d1"]);
    let text = "name: arms\narms: [{name: a}, {name: b}]\nrepeats: 2\nloads:\n  - name: l\n    target: {kind: mock, delay: 1ms}\n    \
                stages: [{load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}}]\n";
    let own = controller.submit(submit(text.into()), "anna", None).unwrap();
    assert_eq!(own.format, "Tidemark evaluation");
    assert_eq!(own.expected_ms, Some(4_000));
    let done = wait(&controller, own.id, ended);
    assert_eq!(done.state, SubmissionState::Completed, "{}", done.reason);
    assert!(done.valid.is_some() && !done.headline.is_empty(), "{done:?}");
    let store = controller.store().unwrap();
    let evaluation = done.evaluation.unwrap();
    assert_eq!(store.evaluation(evaluation).unwrap().state, State::Completed);
    assert_eq!(store.runs_of(evaluation).unwrap().len(), 4);
    controller.shut_down();
}

#[test]
fn a_burst_of_submissions_is_carried_out_in_turn() {
    let (_directory, controller) = new(&["d1"]);
    let ids: Vec<u64> = (0..4)
        .map(|n| controller.submit(submit(document(&format!("n{n}"), 1)), "anna", None).unwrap().id)
        .collect();
    let done: Vec<Submission> = ids.iter().map(|id| wait(&controller, *id, ended)).collect();
    assert!(done.iter().all(|one| one.state == SubmissionState::Completed), "{done:?}");
    for pair in done.windows(2) {
        assert!(pair[0].ended_unix_ms <= pair[1].started_unix_ms, "one driver, one at a time: {pair:?}");
    }
    controller.shut_down();
}
