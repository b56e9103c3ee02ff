//! The S3 side against the embedded server, which speaks the protocol by another's code.

use crate::support::{MS, PUT, Run, actions, naming, s3};
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer, Fault as Trouble, Operation as Asked};
use tidemark_load::engine::{Begin, Operation};
use tidemark_measure::fault::Fault;
use tidemark_object::content::DataSet;
use tidemark_object::job::{Emptied, Job, Keeps, S3, Target, Verb};
use tidemark_object::preflight::preflight;
use tidemark_plan::secret::Secret;

fn server() -> (EmbeddedServer, S3) {
    let options =
        EmbeddedOptions { buckets: vec!["box1".into()], minimum_part_bytes: 1, ..EmbeddedOptions::default() };
    let server = EmbeddedServer::start(options).unwrap();
    let target = s3(&server.endpoint(), server.access_key(), server.secret_key());
    (server, target)
}

const RANGE: Verb = Verb::GetRange { length: 10_000, object_bytes: 100_000 };
const PARTS: Verb = Verb::PutMultipart { part_bytes: 70_000, parallel: 3 };
const LIST: Verb = Verb::List { page: 2, all: true, by_object: false };
const FIRST_PAGE: Verb = Verb::List { page: 2, all: false, by_object: false };
const EMPTY: Verb = Verb::DeleteContainer { empty: Emptied::Always };

#[test]
fn every_verb_does_what_it_says_and_the_server_counts_the_same() {
    let (server, target) = server();
    let verbs = [
        Verb::CreateContainer { keeps: Keeps::Latest },
        PUT,
        Verb::Get,
        RANGE,
        Verb::Head,
        Verb::Delete,
        Verb::DeleteMany { count: 3 },
        Verb::Copy,
        LIST,
        FIRST_PAGE,
        Verb::PutTags,
        Verb::GetTags,
        PARTS,
        EMPTY,
        Verb::DeleteContainer { empty: Emptied::Never },
    ];
    let mut run = Run::s3(&target, &verbs, 1);
    run.well(&Verb::CreateContainer { keeps: Keeps::Latest }, 2, 0, 0);
    run.well(&Verb::CreateContainer { keeps: Keeps::Latest }, 2, 0, 0);
    for item in 1..=5 {
        assert_eq!(run.well(&PUT, 2, item, 100_000).bytes, 100_000);
    }
    let read = run.well(&Verb::Get, 2, 3, 0);
    assert_eq!((read.bytes, read.retries), (100_000, 0));
    assert!(read.first_byte.is_some());
    assert_eq!(run.well(&RANGE, 2, 4, 0).bytes, 10_000);
    run.well(&Verb::Head, 2, 5, 0);
    run.well(&Verb::Copy, 2, 5, 0);
    run.well(&Verb::PutTags, 2, 5, 0);
    assert!(run.well(&Verb::GetTags, 2, 5, 0).bytes > 0);
    let (all, first) = (run.well(&LIST, 2, 0, 0), run.well(&FIRST_PAGE, 2, 0, 0));
    assert!(all.bytes > 2 * first.bytes && first.bytes > 0, "three pages against one");
    run.well(&Verb::Delete, 2, 1, 0);
    assert_eq!(run.one(&Verb::Get, 2, 1, 0).fault, Some(Fault::NotFound));
    run.well(&Verb::DeleteMany { count: 3 }, 2, 1, 0);
    assert_eq!(run.one(&Verb::Head, 2, 2, 0).fault, Some(Fault::NotFound));
    assert_eq!(
        run.one(&Verb::DeleteContainer { empty: Emptied::Never }, 2, 0, 0).fault,
        Some(Fault::Conflict)
    );
    assert_eq!(run.well(&PARTS, 2, 9, 250_000).bytes, 250_000);
    assert_eq!(run.well(&Verb::Get, 2, 9, 0).bytes, 250_000);
    assert_eq!(run.well(&PARTS, 2, 10, 0).bytes, 0);
    run.well(&EMPTY, 2, 0, 0);
    run.well(&EMPTY, 2, 0, 0);
    run.well(&Verb::DeleteContainer { empty: Emptied::Never }, 2, 0, 0);
    let counts = server.statistics();
    let of = |asked| (counts.of(asked).requests, counts.of(asked).failed);
    assert_eq!(of(Asked::PutObject), (5, 0));
    assert_eq!(of(Asked::GetObject), (4, 1));
    assert_eq!(of(Asked::UploadPart), (5, 0));
    assert_eq!(of(Asked::CompleteMultipartUpload), (2, 0));
    assert_eq!((counts.buckets, counts.objects, counts.uploads), (1, 0, 0));
}

#[test]
fn payloads_are_signed_in_one_piece_or_in_chunks_and_conditions_hold() {
    let (_server, mut target) = server();
    let chunked = Verb::Put { chunked: true, if_absent: false };
    let if_absent = Verb::Put { chunked: false, if_absent: true };
    let verbs = [PUT, chunked.clone(), if_absent.clone(), Verb::Get, Verb::Delete, PARTS];
    for (item, signed) in [(1, false), (2, true)] {
        target.sign_payload = signed;
        target.session_token = None;
        let mut run = Run::s3(&target, &verbs, 1);
        for bytes in [0, 1, 4096, 200_000] {
            for verb in [&PUT, &chunked, &PARTS] {
                assert_eq!(run.well(verb, 1, item, bytes).bytes, bytes);
                assert_eq!(run.well(&Verb::Get, 1, item, 0).bytes, bytes, "{verb:?}");
            }
        }
        assert_eq!(run.one(&if_absent, 1, item, 10).fault, Some(Fault::Precondition));
        run.well(&Verb::Delete, 1, item, 0);
        run.well(&if_absent, 1, item, 10);
    }
}

#[test]
fn files_are_uploaded_by_their_numbers() {
    let (server, target) = server();
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("b c.bin"), vec![7; 300_000]).unwrap();
    std::fs::write(place.path().join("a.txt"), b"hello").unwrap();
    let directory = place.path().to_path_buf();
    let whole = Verb::PutFile { directory: directory.clone(), part_bytes: None };
    let parts = Verb::PutFile { directory, part_bytes: Some(100_000) };
    let mut run = Run::s3(&target, &[whole.clone(), parts.clone(), LIST], 1);
    assert_eq!(run.well(&whole, 1, 1, 0).bytes, 5);
    assert_eq!(run.well(&whole, 1, 2, 0).bytes, 300_000);
    assert_eq!(run.well(&parts, 1, 2, 0).bytes, 300_000);
    assert_eq!((server.statistics().objects, server.statistics().object_bytes), (2, 300_005));
}

#[test]
fn content_that_is_not_what_was_written_is_told() {
    let (server, target) = server();
    let data = DataSet::new(7, 1, 1000, Default::default());
    let mut run = Run::sharing(&data, Target::S3(target), actions(&[PUT, Verb::Get]), 1);
    run.well(&PUT, 1, 1, 50_000);
    server.faults().corrupt("box1", "o1", 30_000).unwrap();
    assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::WrongContent));
    let told = run.examples();
    assert!(told[0].text.contains("box1/o1") && told[0].text.contains("30000"), "{told:?}");
}

#[test]
fn throttling_and_failures_are_classed_and_retried_when_asked() {
    let (server, mut target) = server();
    let mut run = Run::s3(&target, &[PUT, Verb::Get], 1);
    run.well(&PUT, 1, 1, 4096);
    server.faults().add(Trouble::slow_down().first(1));
    assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::Throttled));
    server.faults().add(Trouble::answer(500, "InternalError").first(1));
    assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::ServerError));
    server.faults().add(Trouble::truncate(1000).first(1));
    assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::Reset));
    server.faults().add(Trouble::disconnect().first(1));
    assert_eq!(run.one(&PUT, 1, 1, 4096).fault, Some(Fault::Reset));
    run.well(&Verb::Get, 1, 1, 0);
    let told: Vec<String> = run.examples().into_iter().map(|example| example.text).collect();
    assert!(told[0].contains("box1/o1: 503 SlowDown"), "{told:?}");
    assert!(told.iter().any(|text| text.contains("closed after 1000 bytes")), "{told:?}");

    target.http.retries = 3;
    let mut run = Run::s3(&target, &[PUT, Verb::Get], 1);
    server.faults().add(Trouble::slow_down().first(2));
    let began = run.clock.now();
    let outcome = run.well(&Verb::Get, 1, 1, 0);
    assert_eq!(outcome.retries, 2);
    assert!(run.clock.now() - began >= 3 * MS, "two pauses, of 1 and 2 ms");
    server.faults().clear();
    server.faults().add(Trouble::slow_down());
    let outcome = run.one(&Verb::Get, 1, 1, 0);
    assert_eq!((outcome.fault, outcome.retries), (Some(Fault::Throttled), 3));
}

#[test]
fn a_failed_part_fails_the_upload_and_leaves_nothing_behind() {
    let (server, target) = server();
    let mut run = Run::s3(&target, &[PARTS], 1);
    server.faults().add(Trouble::answer(500, "InternalError").on(Asked::UploadPart).nth(2));
    assert_eq!(run.one(&PARTS, 1, 1, 500_000).fault, Some(Fault::ServerError));
    let counts = server.statistics();
    assert_eq!((counts.objects, counts.uploads, counts.of(Asked::AbortMultipartUpload).requests), (0, 0, 1));
    run.well(&PARTS, 1, 1, 500_000);
}

#[test]
fn many_lanes_work_side_by_side() {
    let (server, target) = server();
    let mut run = Run::s3(&target, &[PUT, Verb::Get], 50);
    for action in 0..2 {
        for slot in 0..50 {
            let operation = Operation { action, space: 1, item: u64::from(slot), bytes: 20_000, random: 0 };
            assert_eq!(run.session.begin(slot, &operation, run.clock.now()), Begin::Started);
        }
        let ended = run.wait(50);
        assert!(ended.iter().all(|end| end.outcome.fault.is_none() && end.outcome.bytes == 20_000));
    }
    assert_eq!(server.statistics().of(Asked::GetObject).requests, 50);
}

#[test]
fn preflight_says_what_is_wrong_in_one_sentence() {
    let (server, target) = server();
    let check = |target: S3, bucket: Option<u64>| {
        let job = Job { target: Target::S3(target), actions: actions(&[PUT]) };
        preflight(&job, bucket).map_err(|error| error.to_string())
    };
    assert!(check(target.clone(), None).is_ok());
    assert!(check(target.clone(), Some(1)).is_ok());
    let told = |target: S3, bucket, words: &[&str]| {
        let error = check(target, bucket).unwrap_err();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
        assert!(!error.contains(server.secret_key()), "{error}");
    };
    told(target.clone(), Some(9), &["bucket 'box9'", "init stage"]);
    told(S3 { secret_key: Secret::new("wrong"), ..target.clone() }, None, &["secret key"]);
    told(S3 { access_key: "NOBODY".into(), ..target.clone() }, None, &["rejects the access key"]);
    let mut nowhere = target.clone();
    nowhere.http.endpoints = vec!["http://127.0.0.1:1".into()];
    told(nowhere.clone(), None, &["connection refused by http://127.0.0.1:1"]);
    nowhere.http.endpoints = vec!["http://no-such-host.invalid".into()];
    told(nowhere.clone(), None, &["cannot resolve"]);
    nowhere.http.endpoints = vec![server.endpoint().replace("http:", "https:")];
    nowhere.http.insecure = true;
    told(nowhere, None, &["https://", "TLS", "http://"]);
    assert_eq!(naming().container_prefix, "box");
}
