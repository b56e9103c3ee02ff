//! Storage systems that keep whoever asks them: a cancelled run frees its driver, and Ctrl-C ends a command that waits for one.

use crate::common::Place;
use crate::common::fleet::{Controller, Process, wait};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A server on a free port that does the same with every connection, on a thread of its own.
struct Hostile {
    port: u16,
    /// Those that ever came.
    connections: Arc<AtomicUsize>,
}

impl Hostile {
    fn start(serve: fn(TcpStream)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { port, connections }
    }

    fn wait_for_a_connection(&self) {
        wait("a connection", || (self.connections.load(Ordering::Relaxed) > 0).then_some(()));
    }
}

/// Accepts, and sends nothing for as long as the client is there.
fn silent(mut stream: TcpStream) {
    while stream.read(&mut [0; 1 << 10]).is_ok_and(|length| length > 0) {}
}

/// A PostgreSQL that logs everybody in, and answers a statement with notices without end.
fn noticing(mut stream: TcpStream) {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut startup).unwrap();
    let mut greeting = b"R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0015.0\0".to_vec();
    greeting.extend(b"Z\0\0\0\x05I");
    stream.write_all(&greeting).unwrap();
    let notice = b"N\0\0\0\x13SNOTICE\0Mwait\0\0";
    while stream.write_all(notice).is_ok() {
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn postgres(port: u16) -> String {
    format!(
        "name: held\ntarget: {{kind: postgres, host: 127.0.0.1, port: {port}, user: a, database: b, tls: disable}}\nstages:\n\
         - load: {{workload: pgbench/tpcb-like, clients: 1, for: 1s}}\n"
    )
}

const MOCK: &str = "name: next\ntarget: {kind: mock, delay: 1ms}\nstages:\n- name: main\n  load: {workers: 2, for: 1s, containers: 1, \
                    operations: [{get: {objects: 9}}]}\n";

#[test]
fn a_cancelled_run_whose_server_goes_on_holds_up_no_other_one() {
    let server = Hostile::start(noticing);
    let place = Place::new();
    let controller = Controller::start(&place, &["--no-driver"]);
    let driver = controller.driver("d1", &[]);
    controller.wait_for_drivers(1);
    let held = controller.submit(&postgres(server.port), &[]);
    server.wait_for_a_connection();
    controller.json(&["cancel", &held.to_string(), "--json"]);
    let next = controller.submit(MOCK, &[]);
    // What is shown until the next one has been done.
    let (mut states, mut reasons) = (BTreeSet::new(), BTreeSet::new());
    wait("the next run", || {
        let status = controller.status();
        let shown = &status["drivers"][0];
        states.insert((shown["state"].as_str()?.to_owned(), shown["ending"]["submission"].as_u64()));
        let submission = controller.submission(next);
        reasons.insert(submission["reason"].as_str()?.to_owned());
        (submission["state"] == "completed").then_some(())
    });
    assert_eq!(controller.submission(held)["state"], "cancelled");
    assert!(states.contains(&("ending".to_owned(), Some(held))), "{states:?}");
    let why = format!("waiting for driver d1, which is still ending w{held}");
    assert!(reasons.iter().any(|reason| reason.starts_with(&why)), "{reasons:?}");
    // The server never let go: the run's process was killed.
    assert!(driver.said().contains("its process was killed"), "{}", driver.said());
    assert_eq!(controller.status()["drivers"][0]["state"], "idle");
}

/// The processes that a process has started.
fn started_by(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Behind the name in parentheses: state and parent (proc(5)).
        let found = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        found == Some(parent)
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

#[test]
fn a_stopped_run_process_is_killed_and_its_files_are_removed() {
    let place = Place::new();
    let controller = Controller::start(&place, &["--no-driver"]);
    let document = "name: stopped\ntarget: {kind: embedded, place: disk}\nstages:\n- init: {containers: 1}\n- name: main\n  \
                    load: {workers: 1, for: 600s, containers: 1, operations: [{put: {objects: 1-9, sizes: 1KiB}}]}\n";
    for more in [&[][..], &["--at-once"]] {
        let scratch = tempfile::tempdir().unwrap();
        let mut driver = controller.driver("d1", &["--allow-path", scratch.path().to_str().unwrap()]);
        controller.wait_for_drivers(1);
        let submitted = controller.submit(document, &[]);
        wait("the load", || {
            (controller.submission(submitted)["stage"].as_str()?.contains("main")).then_some(())
        });
        let left = || std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(left(), 1, "the run has its files here");
        let [run] = started_by(driver.child.id())[..] else { panic!("one process carries the run out") };
        let stopped = std::process::Command::new("kill").args(["-STOP", &run.to_string()]).status();
        assert!(stopped.unwrap().success());
        controller.json(&[&["cancel", &submitted.to_string(), "--json"], more].concat());
        controller.wait_for_state(submitted, "cancelled");
        controller.wait_for_drivers(1);
        // Its driver did that, and not the controller, which waits longer.
        let killed = "the run did not end within 15 s, so its process was killed";
        assert!(driver.said().contains(killed), "{more:?}: {}", driver.said());
        let record = controller.run_of(&controller.submission(submitted)).value.to_string();
        assert!(
            record.contains("it did not end within 15 s, so its process was killed"),
            "{more:?}: {record}"
        );
        assert_eq!(left(), 0, "{more:?}: its files went with it");
        driver.kill();
        wait("the seat of d1", || (controller.status()["drivers"][0]["state"] != "idle").then_some(()));
    }
}

/// Runs a document and interrupts it once when it has reached its server: its standard error and exit code.
fn interrupted(document: &str, server: &Hostile) -> (String, Option<i32>) {
    let place = Place::new();
    let path = place.write("held.yaml", document);
    let mut run = Process::start(place.command(&["run", path.to_str().unwrap()]));
    server.wait_for_a_connection();
    let pid = run.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = wait("its end", || run.child.try_wait().unwrap());
    (run.said(), status.code())
}

#[test]
fn one_interrupt_ends_a_command_that_waits_for_a_server() {
    let server = Hostile::start(silent);
    let port = server.port;
    let postgres = postgres(port);
    let mysql = postgres.replace("kind: postgres", "kind: mysql");
    let trino = format!(
        "name: held\ntarget: {{kind: trino, endpoint: 'http://127.0.0.1:{port}', bucket: lake, storage: {{kind: s3, endpoint: \
         'http://127.0.0.1:{port}', access_key: k, secret_key: s}}}}\nstages:\n- load: {{tables: tpch, scale: 0.01}}\n"
    );
    for (what, document) in [("PostgreSQL", postgres), ("MySQL", mysql), ("Trino", trino)] {
        let server = Hostile { port, connections: Arc::clone(&server.connections) };
        server.connections.store(0, Ordering::Relaxed);
        let (printed, code) = interrupted(&document, &server);
        assert!(
            printed.contains("stopping when the current step ends, in 15 s at the latest"),
            "{what}: {printed}"
        );
        assert!(printed.contains("stopped: the current step did not end within 15 s"), "{what}: {printed}");
        assert_eq!(code, Some(130), "{what}: {printed}");
    }
    // What has a shorter limit ends by that, and names it.
    let s3 = format!(
        "name: held\ntarget: {{kind: s3, endpoint: 'http://127.0.0.1:{port}', access_key: k, secret_key: s}}\nstages:\n\
         - init: {{containers: 1}}\n"
    );
    server.connections.store(0, Ordering::Relaxed);
    let (printed, code) = interrupted(&s3, &server);
    assert!(printed.contains("stopping when the current step ends"), "{printed}");
    assert!(printed.contains("no reply within the time allowed"), "{printed}");
    assert_ne!(code, Some(0), "{printed}");
}
