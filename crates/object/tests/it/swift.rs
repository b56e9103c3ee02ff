//! The Swift side against a small server of the tests' own.

use crate::support::swift::{Server, target};
use crate::support::{PUT, Run, actions};
use tidemark_load::engine::{Begin, Operation};
use tidemark_measure::fault::Fault;
use tidemark_object::conditions::heeded;
use tidemark_object::content::DataSet;
use tidemark_object::job::{Emptied, Job, Keeps, Swift, SwiftAuth, Target, Verb};
use tidemark_object::preflight::preflight;
use tidemark_object::sessions;
use tidemark_plan::secret::Secret;

fn run(target: &Swift, verbs: &[Verb], slots: u32) -> Run {
    Run::of(Target::Swift(target.clone()), actions(verbs), slots)
}

fn check(target: &Swift, container: Option<u64>) -> Result<String, String> {
    let job = Job { target: Target::Swift(target.clone()), actions: actions(&[Verb::Get]) };
    preflight(&job, container).map_err(|error| error.to_string())
}

const CREATE: Verb = Verb::CreateContainer { keeps: Keeps::Latest };
const EMPTY: Verb = Verb::DeleteContainer { empty: Emptied::Always };

#[test]
fn every_verb_does_its_work() {
    let server = Server::start();
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("a file"), b"0123456789").unwrap();
    let directory = files.path().to_path_buf();
    let chunked = Verb::Put { chunked: true, if_absent: false };
    let if_absent = Verb::Put { chunked: false, if_absent: true };
    let range = Verb::GetRange { length: 4096, object_bytes: 100_000 };
    let list = Verb::List { page: 2, all: true, by_object: false };
    let parts = Verb::PutMultipart { part_bytes: 40_000, parallel: 3 };
    let many = Verb::DeleteMany { count: 3 };
    let file = Verb::PutFile { directory: directory.clone(), part_bytes: None };
    let file_parts = Verb::PutFile { directory, part_bytes: Some(4) };
    let verbs = [
        CREATE,
        PUT,
        Verb::Get,
        Verb::Head,
        Verb::Copy,
        Verb::PutTags,
        Verb::GetTags,
        Verb::Delete,
        EMPTY,
        chunked.clone(),
        if_absent.clone(),
        range.clone(),
        list.clone(),
        parts.clone(),
        many.clone(),
        file.clone(),
        file_parts.clone(),
    ];
    let mut run = run(&server.temp_auth(), &verbs, 1);
    run.well(&CREATE, 1, 0, 0);
    run.well(&CREATE, 1, 0, 0);
    assert_eq!(run.well(&PUT, 1, 7, 100_000).bytes, 100_000);
    let read = run.well(&Verb::Get, 1, 7, 0);
    assert!(read.bytes == 100_000 && read.first_byte.is_some());
    assert_eq!(run.well(&range, 1, 7, 0).bytes, 4096);
    run.well(&Verb::Head, 1, 7, 0);
    run.well(&Verb::Copy, 1, 7, 0);
    assert_eq!(run.well(&PUT, 1, 8, 0).bytes, 0);
    assert_eq!(run.well(&chunked, 1, 9, 200_000).bytes, 200_000);
    assert_eq!(run.well(&Verb::Get, 1, 9, 0).bytes, 200_000, "chunks, verified");
    assert_eq!(run.well(&list, 1, 0, 0).bytes, "o7\no7-copy\no8\no9\n".len() as u64);
    run.well(&Verb::PutTags, 1, 7, 0);
    run.well(&Verb::GetTags, 1, 7, 0);
    assert_eq!(run.well(&parts, 1, 10, 100_001).bytes, 100_001);
    assert_eq!(run.well(&Verb::Get, 1, 10, 0).bytes, 100_001, "segments, verified");
    for file in [file, file_parts] {
        assert_eq!(run.well(&file, 1, 1, 0).bytes, 10);
        assert_eq!(server.state.lock().unwrap().objects["box1/a file"], b"0123456789");
    }
    assert_eq!(run.one(&if_absent, 1, 7, 10).fault, Some(Fault::Precondition));
    run.well(&Verb::Delete, 1, 10, 0);
    assert_eq!(run.one(&Verb::Delete, 1, 10, 0).fault, Some(Fault::NotFound));
    run.well(&many, 1, 7, 0);
    assert!(!server.state.lock().unwrap().objects.contains_key("box1/o9"));
    run.well(&EMPTY, 1, 0, 0);
    run.well(&EMPTY, 1, 0, 0);
    let state = server.state.lock().unwrap();
    assert!(state.containers.is_empty() && state.objects.is_empty());
    let words: Vec<_> = run.examples().into_iter().map(|example| example.text).collect();
    assert_eq!(words, ["put box1/o7: 412", "delete box1/o10: 404 Not Found"]);
}

#[test]
fn containers_are_emptied_one_by_one_where_there_is_no_bulk_deletion() {
    let server = Server::start();
    server.state.lock().unwrap().no_bulk = true;
    let full = Verb::DeleteContainer { empty: Emptied::Never };
    let mut run = run(&server.temp_auth(), &[CREATE, PUT, EMPTY, full.clone()], 1);
    run.well(&CREATE, 1, 0, 0);
    for item in 1..4 {
        run.well(&PUT, 1, item, 10);
    }
    assert_eq!(run.one(&full, 1, 0, 0).fault, Some(Fault::Conflict));
    assert_eq!(server.state.lock().unwrap().containers.len(), 1, "it stays, with all that is in it");
    run.well(&EMPTY, 1, 0, 0);
    let state = server.state.lock().unwrap();
    assert!(state.containers.is_empty());
    assert_eq!(state.lines("POST").len(), 1, "asked once for a bulk deletion");
}

#[test]
fn an_expired_token_is_renewed_once_and_counted_as_a_retry() {
    let server = Server::start();
    let mut run = run(&server.temp_auth(), &[CREATE, PUT, Verb::Get], 8);
    run.well(&CREATE, 1, 0, 0);
    run.well(&PUT, 1, 1, 1000);
    server.state.lock().unwrap().token_left = Some(0);
    let read = Operation { action: 2, space: 1, item: 1, ..Operation::default() };
    for slot in 0..8 {
        assert_eq!(run.session.begin(slot, &read, run.clock.now()), Begin::Started);
    }
    let ended = run.wait(8);
    assert!(ended.iter().all(|end| end.outcome.bytes == 1000 && end.outcome.retries == 1), "{ended:?}");
    assert_eq!(server.state.lock().unwrap().logins, 2);

    let mut state = server.state.lock().unwrap();
    (state.token_left, state.locked) = (Some(0), true);
    drop(state);
    assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::Denied));
    server.state.lock().unwrap().locked = false;
    run.well(&Verb::Get, 1, 1, 0);
}

#[test]
fn both_keystones_let_in() {
    let server = Server::start();
    let (user, password) = ("me".to_owned(), Secret::new("testing"));
    let (service, region) = ("swift".to_owned(), Some("r".to_owned()));
    let v2 = SwiftAuth::KeystoneV2 {
        url: format!("{}/v2.0", server.url),
        user: user.clone(),
        password: password.clone(),
        tenant: "t".into(),
        service: service.clone(),
        region: region.clone(),
    };
    let v3 = SwiftAuth::KeystoneV3 {
        url: server.url.clone(),
        user,
        password,
        user_domain: "default".into(),
        project: "p".into(),
        project_domain: "default".into(),
        service,
        region,
    };
    for auth in [v2, v3] {
        let target = target(auth);
        assert_eq!(check(&target, None), Ok(String::new()));
        run(&target, &[CREATE], 1).well(&CREATE, 1, 0, 0);
    }
}

#[test]
fn a_given_token_goes_to_the_endpoints_given() {
    let server = Server::start();
    server.state.lock().unwrap().logins = 1;
    let storage_url = "http://nowhere.invalid:1/v1/AUTH_test";
    let auth = |token| SwiftAuth::Token { token: Secret::new(token), storage_url: storage_url.into() };
    let mut target = target(auth("token1"));
    target.http.endpoints = vec![server.url.clone()];
    target.policy = Some("gold".into());
    check(&target, None).unwrap();
    run(&target, &[CREATE], 1).well(&CREATE, 1, 0, 0);
    assert!(server.state.lock().unwrap().seen.last().unwrap().contains(&"X-Storage-Policy: gold".to_owned()));
    target.auth = auth("wrong");
    assert_eq!(run(&target, &[CREATE], 1).one(&CREATE, 1, 0, 0).fault, Some(Fault::Denied));
    let error = check(&target, None).unwrap_err();
    assert!(error.contains("rejects the token"), "{error}");
}

#[test]
fn what_is_wrong_is_said_in_one_sentence_before_the_load() {
    let server = Server::start();
    let at = |url: String| {
        target(SwiftAuth::TempAuth { url, user: "test:tester".into(), key: Secret::new("testing") })
    };
    let says = |target: &Swift, container, words: [&str; 2]| {
        let error = check(target, container).unwrap_err();
        assert!(words.iter().all(|word| error.contains(word)) && !error.contains("testing"), "{error}");
    };
    says(&server.temp_auth(), Some(9), ["container 'box9' does not exist", "init stage"]);
    server.state.lock().unwrap().locked = true;
    says(&server.temp_auth(), None, ["rejected user 'test:tester'", "check"]);
    says(&at(format!("{}/wrong", server.url)), None, ["404", "check the path"]);
    says(&at("http://127.0.0.1:1/auth/v1.0".into()), None, ["connection refused", "127.0.0.1:1"]);
    says(&at("http://no-such-host.invalid/auth".into()), None, ["cannot resolve", "DNS"]);
    let job =
        Job { target: Target::Swift(server.temp_auth()), actions: actions(&[Verb::Restore { days: 1 }]) };
    let refused = sessions::open(&job, &DataSet::new(1, 1, 0, Default::default())).err().unwrap().to_string();
    assert!(refused.contains("restore"), "{refused}");
}

#[test]
fn damage_and_server_failures_are_told_apart() {
    let server = Server::start();
    let mut target = server.temp_auth();
    target.http.retries = 1;
    let mut run = run(&target, &[CREATE, PUT, Verb::Get], 1);
    run.well(&CREATE, 1, 0, 0);
    run.well(&PUT, 1, 1, 50_000);
    server.state.lock().unwrap().instead = vec![(503, "<h1>Service Unavailable</h1>")];
    assert_eq!(run.well(&Verb::Get, 1, 1, 0).retries, 1);
    for (status, fault) in [(498, Fault::Throttled), (507, Fault::ServerError), (503, Fault::ServerError)] {
        server.state.lock().unwrap().instead = vec![(status, ""); 2];
        assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(fault), "{status}");
    }
    let change = |change: &dyn Fn(&mut Vec<u8>)| {
        change(server.state.lock().unwrap().objects.get_mut("box1/o1").unwrap());
    };
    change(&|bytes| bytes[40_000] ^= 1);
    assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::WrongContent));
    change(&|bytes| bytes.truncate(30_000));
    assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::TruncatedContent));
}

#[test]
fn objects_are_written_to_files_too() {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let write = Verb::WriteLocal { directory: place.path().to_path_buf() };
    let mut run = run(&server.temp_auth(), std::slice::from_ref(&write), 1);
    assert_eq!(run.well(&write, 1, 2, 5000).bytes, 5000);
    assert_eq!(std::fs::read(place.path().join("box1/o2")).unwrap().len(), 5000);
}

#[test]
fn a_server_that_ignores_conditions_is_found_out() {
    let server = Server::start();
    let target = server.temp_auth();
    run(&target, &[CREATE], 1).well(&CREATE, 1, 0, 0);
    let if_absent = Verb::Put { chunked: false, if_absent: true };
    let job = Job { target: Target::Swift(target), actions: actions(&[PUT, if_absent]) };
    assert!(heeded(&job, 1).unwrap());
    assert!(!heeded(&job, 2).unwrap(), "without a container nothing is known");
    server.state.lock().unwrap().unconditional = true;
    let told = heeded(&job, 1).unwrap_err().to_string();
    assert!(told.contains(&server.url) && told.contains("ignores `If-None-Match: *`"), "{told}");
    let unconditional = Job { actions: actions(&[PUT]), ..job };
    assert!(heeded(&unconditional, 1).unwrap(), "it does not matter");
    assert!(server.state.lock().unwrap().objects.is_empty(), "nothing is left behind");
}
