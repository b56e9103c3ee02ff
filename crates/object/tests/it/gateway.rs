//! Both protocols against a real RADOS gateway: a Ceph cluster is made for it on this machine, which takes about
//! a minute. `cargo test -p tidemark-object --test it gateway -- --ignored`

use crate::support::{PUT, Run, actions};
use tidemark_lab::{self as lab, Lab, LabOptions};
use tidemark_measure::fault::Fault;
use tidemark_object::conditions::heeded;
use tidemark_object::job::{Emptied, Encryption, Job, Keeps, Retention, S3, Swift, SwiftAuth, Target, Verb};
use tidemark_object::preflight::preflight;
use tidemark_plan::secret::Secret;

/// A cluster that ends with the test.
struct Cluster {
    lab: Lab,
    _dir: tempfile::TempDir,
}

impl Cluster {
    fn up() -> Self {
        let dir = tempfile::Builder::new().prefix("tidemark-object-lab").tempdir().unwrap();
        let lab = lab::up(&LabOptions::new(dir.path()), &mut |text| println!("{text}")).unwrap();
        Self { lab, _dir: dir }
    }

    fn swift(&self) -> Swift {
        let credentials = self.lab.credentials();
        crate::support::swift::target(SwiftAuth::TempAuth {
            url: self.lab.swift_auth_url(),
            user: credentials.swift_user.clone(),
            key: Secret::new(&credentials.swift_key),
        })
    }
}

impl Cluster {
    fn s3(&self) -> S3 {
        let credentials = self.lab.credentials();
        crate::support::s3(&self.lab.endpoint(), &credentials.access_key, &credentials.secret_key)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = lab::down(self.lab.dir(), false, &mut |text| println!("{text}"));
    }
}

/// One cluster serves them all: each leaves it as it was, but for the last.
#[test]
#[ignore = "makes a Ceph cluster; `make test` runs it"]
fn verbs_work_on_a_real_gateway() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let cluster = Cluster::up();
    swift_verbs_work(&cluster);
    s3_verbs_work(&cluster);
    it_keeps_versions_and_none_are_left(&cluster);
    it_locks_objects_and_lets_them_go(&cluster);
    it_encrypts_and_is_named_where_it_does_not(&cluster);
}

fn swift_verbs_work(cluster: &Cluster) {
    let target = cluster.swift();
    let job = |target: &Swift| Job { target: Target::Swift(target.clone()), actions: actions(&[Verb::Get]) };
    println!("server: {:?}", preflight(&job(&target), None));
    let missing = preflight(&job(&target), Some(1)).unwrap_err().to_string();
    assert!(missing.contains("'box1' does not exist"), "{missing}");
    let mut wrong = target.clone();
    let SwiftAuth::TempAuth { key, .. } = &mut wrong.auth else { unreachable!("made above") };
    *key = Secret::new("wrong");
    let refused = preflight(&job(&wrong), None).unwrap_err().to_string();
    assert!(refused.contains("rejected user") && refused.contains("key"), "{refused}");

    let create = Verb::CreateContainer { keeps: Keeps::Latest };
    let empty = Verb::DeleteContainer { empty: Emptied::Always };
    let full = Verb::DeleteContainer { empty: Emptied::Never };
    let chunked = Verb::Put { chunked: true, if_absent: false };
    let range = Verb::GetRange { length: 10_000, object_bytes: 100_000 };
    let list = Verb::List { page: 2, all: true, by_object: false };
    let by_object = Verb::List { page: 100, all: false, by_object: true };
    let parts = Verb::PutMultipart { part_bytes: 5 << 20, parallel: 3 };
    let many = Verb::DeleteMany { count: 3 };
    let verbs = [
        create.clone(),
        PUT,
        Verb::Get,
        Verb::Head,
        Verb::Copy,
        Verb::PutTags,
        Verb::GetTags,
        Verb::Delete,
        empty.clone(),
        full.clone(),
        chunked.clone(),
        range.clone(),
        list.clone(),
        by_object.clone(),
        parts.clone(),
        many.clone(),
    ];
    let mut run = Run::of(Target::Swift(target.clone()), actions(&verbs), 1);
    run.well(&create, 1, 0, 0);
    run.well(&create, 1, 0, 0);
    let absent = Verb::Put { chunked: false, if_absent: true };
    let conditional = Job { target: Target::Swift(target.clone()), actions: actions(&[absent]) };
    let ignored = heeded(&conditional, 1).unwrap_err().to_string();
    assert!(ignored.contains("ignores `If-None-Match: *`"), "the gateway's Swift: {ignored}");
    for (item, size) in [(1, 0), (2, 1), (3, 63), (4, 4096), (5, 100_000), (6, 3 << 20)] {
        assert_eq!(run.well(&PUT, 1, item, size).bytes, size);
        assert_eq!(run.well(&Verb::Get, 1, item, 0).bytes, size);
        run.well(&Verb::Head, 1, item, 0);
    }
    assert_eq!(run.well(&range, 1, 5, 0).bytes, 10_000);
    run.well(&chunked, 1, 7, 300_000);
    assert_eq!(run.well(&Verb::Get, 1, 7, 0).bytes, 300_000);
    run.well(&Verb::Copy, 1, 7, 0);
    run.well(&Verb::PutTags, 1, 7, 0);
    run.well(&Verb::GetTags, 1, 7, 0);
    // The gateway ends no page with a line break.
    assert_eq!(run.well(&list, 1, 0, 0).bytes, "o1.o2o3.o4o5.o6o7.o7-copy".len() as u64);
    assert_eq!(run.well(&by_object, 1, 7, 0).bytes, "o7.o7-copy".len() as u64);
    run.well(&parts, 1, 8, (12 << 20) + 5);
    assert_eq!(run.well(&Verb::Get, 1, 8, 0).bytes, (12 << 20) + 5);
    run.well(&many, 1, 1, 0);
    assert_eq!(run.one(&Verb::Get, 1, 2, 0).fault, Some(Fault::NotFound));
    assert_eq!(run.one(&full, 1, 0, 0).fault, Some(Fault::Conflict));
    run.well(&Verb::Delete, 1, 4, 0);
    assert_eq!(run.one(&Verb::Delete, 1, 4, 0).fault, Some(Fault::NotFound));
    assert_eq!(run.one(&PUT, 9, 1, 10).fault, Some(Fault::NotFound));
    run.well(&empty, 1, 0, 0);
    run.well(&empty, 1, 0, 0);
    for example in run.examples() {
        println!("{:?}: {}", example.fault, example.text);
    }
}

fn s3_verbs_work(cluster: &Cluster) {
    let target = cluster.s3();
    let check = |target: S3, bucket| {
        let job = Job { target: Target::S3(target), actions: actions(&[Verb::Get]) };
        preflight(&job, bucket).map_err(|error| error.to_string())
    };
    println!("server: {:?}", check(target.clone(), None));
    let missing = check(target.clone(), Some(1)).unwrap_err();
    assert!(missing.contains("'box1' does not exist"), "{missing}");
    let secret = check(S3 { secret_key: Secret::new("wrong"), ..target.clone() }, None).unwrap_err();
    assert!(secret.contains("check the secret key"), "{secret}");
    let key = check(S3 { access_key: "NOBODY".into(), ..target.clone() }, None).unwrap_err();
    assert!(key.contains("rejects the access key"), "{key}");

    let create = Verb::CreateContainer { keeps: Keeps::Latest };
    let empty = Verb::DeleteContainer { empty: Emptied::Always };
    let full = Verb::DeleteContainer { empty: Emptied::Never };
    let chunked = Verb::Put { chunked: true, if_absent: false };
    let absent = Verb::Put { chunked: false, if_absent: true };
    let range = Verb::GetRange { length: 10_000, object_bytes: 100_000 };
    let list = Verb::List { page: 2, all: true, by_object: false };
    let page = Verb::List { page: 2, all: false, by_object: false };
    let parts = Verb::PutMultipart { part_bytes: 5 << 20, parallel: 3 };
    let many = Verb::DeleteMany { count: 3 };
    let verbs = [
        create.clone(),
        PUT,
        Verb::Get,
        Verb::Head,
        Verb::Copy,
        Verb::PutTags,
        Verb::GetTags,
        Verb::Delete,
        empty.clone(),
        full.clone(),
        chunked.clone(),
        absent.clone(),
        range.clone(),
        list.clone(),
        page.clone(),
        parts.clone(),
        many.clone(),
    ];
    for sign_payload in [false, true] {
        let mut run = Run::s3(&S3 { sign_payload, ..target.clone() }, &verbs, 1);
        run.well(&create, 1, 0, 0);
        run.well(&create, 1, 0, 0);
        let job = Job { target: Target::S3(target.clone()), actions: actions(std::slice::from_ref(&absent)) };
        assert!(heeded(&job, 1).unwrap(), "the gateway's S3 heeds conditions");
        for (item, size) in [(1, 0), (2, 1), (3, 63), (4, 4096), (5, 100_000), (6, 3 << 20)] {
            assert_eq!(run.well(&PUT, 1, item, size).bytes, size);
            assert_eq!(run.well(&Verb::Get, 1, item, 0).bytes, size);
            run.well(&Verb::Head, 1, item, 0);
        }
        assert_eq!(run.well(&range, 1, 5, 0).bytes, 10_000);
        for size in [10, 65_536, 300_000, 0] {
            run.well(&chunked, 1, 7, size);
            assert_eq!(run.well(&Verb::Get, 1, 7, 0).bytes, size);
        }
        assert_eq!(run.one(&absent, 1, 7, 10).fault, Some(Fault::Precondition));
        run.well(&Verb::Copy, 1, 7, 0);
        run.well(&Verb::PutTags, 1, 7, 0);
        assert!(run.well(&Verb::GetTags, 1, 7, 0).bytes > 0);
        assert!(run.well(&list, 1, 0, 0).bytes > 3 * run.well(&page, 1, 0, 0).bytes);
        run.well(&parts, 1, 8, (12 << 20) + 5);
        assert_eq!(run.well(&Verb::Get, 1, 8, 0).bytes, (12 << 20) + 5);
        run.well(&many, 1, 1, 0);
        assert_eq!(run.one(&Verb::Get, 1, 2, 0).fault, Some(Fault::NotFound));
        assert_eq!(run.one(&full, 1, 0, 0).fault, Some(Fault::Conflict));
        run.well(&Verb::Delete, 1, 4, 0);
        assert_eq!(run.one(&PUT, 9, 1, 10).fault, Some(Fault::NotFound));
        run.well(&empty, 1, 0, 0);
        run.well(&empty, 1, 0, 0);
        for example in run.examples() {
            println!("{:?}: {}", example.fault, example.text);
        }
    }
}

/// 32 bytes in base64, and others.
const KEY: &str = "dGlkZW1hcmsncyBrZXkgb2YgdGVzdHMsIG5vdCBhIG8=";
const OTHER_KEY: &str = "dGlkZW1hcmsncyBrZXkgb2YgdGVzdHMsIGFub3RoZXI=";

fn it_encrypts_and_is_named_where_it_does_not(cluster: &Cluster) {
    let range = Verb::GetRange { length: 10_000, object_bytes: 100_000 };
    let parts = Verb::PutMultipart { part_bytes: 5 << 20, parallel: 3 };
    let chunked = Verb::Put { chunked: true, if_absent: false };
    let verbs = [
        Verb::CreateContainer { keeps: Keeps::Latest },
        PUT,
        chunked,
        Verb::Get,
        range.clone(),
        Verb::Head,
        parts.clone(),
        Verb::Copy,
    ];
    let run = |encryption| Run::s3(&S3 { encryption, ..cluster.s3() }, &verbs, 1);
    let customer = |key: &str| Some(Encryption::Customer { key: Some(key.into()) });
    run(None).well(&Verb::CreateContainer { keeps: Keeps::Latest }, 1, 0, 0);
    // What the server itself says of an object.
    let mode = |item: u64| {
        let object = format!("--object=o{item}");
        let told = cluster.lab.radosgw_admin(&["object", "stat", "--bucket=box1", &object]).unwrap();
        let attributes: serde_json::Value = serde_json::from_str(&told).unwrap();
        attributes["attrs"]["user.rgw.crypt.mode"]
            .as_str()
            .unwrap_or("plain")
            .trim_end_matches('\0')
            .to_owned()
    };
    let kms = Some(Encryption::Kms { key_id: Some("lab".into()) });
    for (first, encryption, expected) in
        [(10, None, "plain"), (20, customer(KEY), "SSE-C-AES256"), (30, kms, "SSE-KMS")]
    {
        let mut run = run(encryption);
        run.well(&PUT, 1, first, 100_000);
        run.well(&verbs[2], 1, first + 1, 300_000);
        run.well(&parts, 1, first + 2, (12 << 20) + 5);
        assert_eq!(run.well(&range, 1, first, 0).bytes, 10_000);
        for (item, size) in [(first, 100_000), (first + 1, 300_000), (first + 2, (12 << 20) + 5)] {
            run.well(&Verb::Head, 1, item, 0);
            assert_eq!(run.well(&Verb::Get, 1, item, 0).bytes, size);
            assert_eq!(mode(item), expected, "o{item}");
        }
        println!("{expected}: copy: {:?}", run.one(&Verb::Copy, 1, first, 0).fault);
    }
    // Without the key, or with another, the object cannot be read.
    assert_eq!(run(None).one(&Verb::Get, 1, 20, 0).fault, Some(Fault::ClientError));
    let fault = run(customer(OTHER_KEY)).one(&Verb::Get, 1, 20, 0).fault;
    assert!(matches!(fault, Some(Fault::Denied | Fault::ClientError)), "{fault:?}");
    // This gateway takes the header of SSE-S3 and does nothing: 17.2 is the first that knows it.
    let mut ignored = run(Some(Encryption::Server));
    let fault = ignored.one(&PUT, 1, 40, 100_000).fault;
    println!("SSE-S3: {fault:?}, {}", mode(40));
    assert_eq!(fault.is_some(), mode(40) == "plain");
    for example in ignored.examples() {
        println!("{:?}: {}", example.fault, example.text);
    }
}

fn it_keeps_versions_and_none_are_left(cluster: &Cluster) {
    let versioned = Verb::CreateContainer { keeps: Keeps::Versions };
    let plain = Verb::CreateContainer { keeps: Keeps::Latest };
    let clear = Verb::Clear { versions: true };
    let marking = Verb::Clear { versions: false };
    let empty = Verb::DeleteContainer { empty: Emptied::Always };
    let verbs = [
        versioned.clone(),
        plain.clone(),
        PUT,
        Verb::Get,
        Verb::Delete,
        clear.clone(),
        marking.clone(),
        empty.clone(),
    ];
    let mut run = Run::s3(&cluster.s3(), &verbs, 1);
    // All entries of the bucket's index as the server itself tells them: objects, versions, delete markers.
    let entries = |bucket: &str| {
        let told = cluster.lab.radosgw_admin(&["bucket", "list", &format!("--bucket={bucket}")]).unwrap();
        let told: Vec<serde_json::Value> = serde_json::from_str(&told).unwrap();
        let mut names: Vec<_> = told.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    run.well(&versioned, 1, 0, 0);
    run.well(&versioned, 1, 0, 0);
    for item in [1, 1, 1, 10, 2, 2] {
        run.well(&PUT, 1, item, 1000);
    }
    run.well(&Verb::Delete, 1, 1, 0);
    assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::NotFound));
    assert_eq!(entries("box1"), ["o1", "o1", "o1", "o1", "o10", "o2", "o2"], "with a marker");
    run.well(&clear, 1, 1, 0);
    run.well(&clear, 1, 1, 0);
    assert_eq!(entries("box1"), ["o10", "o2", "o2"], "only those of the object");
    run.well(&marking, 1, 2, 0);
    assert_eq!(entries("box1"), ["o10", "o2", "o2", "o2"]);
    run.well(&empty, 1, 0, 0);
    let gone = cluster.lab.radosgw_admin(&["bucket", "stats", "--bucket=box1"]);
    assert!(gone.is_err(), "{gone:?}");
    // A bucket without versions, and more than a page of them.
    run.well(&plain, 2, 0, 0);
    for item in [1, 10, 1] {
        run.well(&PUT, 2, item, 1000);
    }
    run.well(&clear, 2, 1, 0);
    assert_eq!(entries("box2"), ["o10"]);
    run.well(&versioned, 2, 0, 0);
    for _ in 0..150 {
        run.well(&PUT, 2, 1, 0);
    }
    run.well(&clear, 2, 1, 0);
    assert_eq!(entries("box2"), ["o10"]);
    run.well(&empty, 2, 0, 0);
}

fn it_locks_objects_and_lets_them_go(cluster: &Cluster) {
    let create = |keeps| Verb::CreateContainer { keeps };
    let lock = |mode, validity_s| Verb::PutRetention { mode, validity_s };
    let governed = lock(Retention::Governance, 3600);
    let compliant = lock(Retention::Compliance, 20);
    let clear = Verb::Clear { versions: true };
    let empty = Verb::DeleteContainer { empty: Emptied::Always };
    let verbs = [
        create(Keeps::Locked),
        create(Keeps::Latest),
        PUT,
        governed.clone(),
        compliant.clone(),
        Verb::GetRetention,
        clear.clone(),
        empty.clone(),
    ];
    let mut run = Run::s3(&cluster.s3(), &verbs, 1);
    run.well(&create(Keeps::Locked), 1, 0, 0);
    run.well(&create(Keeps::Locked), 1, 0, 0);
    for item in [1, 2, 3] {
        run.well(&PUT, 1, item, 1000);
    }
    // One that has no lock says so.
    assert!(run.one(&Verb::GetRetention, 1, 1, 0).fault.is_some());
    run.well(&governed, 1, 1, 0);
    run.well(&compliant, 1, 2, 0);
    let locks = [1, 2].map(|item| run.well(&Verb::GetRetention, 1, item, 0).bytes);
    assert!(locks.iter().all(|bytes| *bytes > 0), "{locks:?}");
    run.well(&clear, 1, 1, 0);
    run.well(&clear, 1, 3, 0);
    // Nobody may, before its time.
    assert!(run.one(&clear, 1, 2, 0).fault.is_some(), "it is locked under compliance");
    // A container that is there cannot learn it.
    run.well(&create(Keeps::Latest), 2, 0, 0);
    assert_eq!(run.one(&create(Keeps::Locked), 2, 0, 0).fault, Some(Fault::Protocol));
    run.well(&PUT, 2, 1, 10);
    assert!(run.one(&governed, 2, 1, 0).fault.is_some());
    // Its time passes.
    let begun = std::time::Instant::now();
    while run.one(&clear, 1, 2, 0).fault.is_some() {
        assert!(begun.elapsed().as_secs() < 300, "its lock does not end: {:?}", run.examples());
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    run.well(&empty, 1, 0, 0);
    run.well(&empty, 2, 0, 0);
    for example in run.examples() {
        println!("{:?}: {}", example.fault, example.text);
    }
}
