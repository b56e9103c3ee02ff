//! Volumes of drivers: each driver prepares, loads, proves and removes its own, and the numbers add up.

use crate::common::fleet::{Controller, Process, wait};
use crate::common::{Place, Record};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// A place on the file system that the checkout lies on: temporary directories may be in memory.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn document(path: &Path, target: &str, more: &str, stages: &str) -> String {
    format!(
        "name: volumes\nseed: 7\n{more}target: {{kind: file, path: '{}', size: 32MiB, per_driver: true{target}}}\nstages:\n{stages}",
        path.display()
    )
}

/// Fills, writes and reads so many in all, and removes.
const COUNTED: &str = "- prepare: {}\n\
    - name: write\n  load: {pattern: randwrite, block_size: 4KiB, depth: 4, total_operations: 4000}\n\
    - name: read\n  load: {pattern: randread, block_size: 4KiB, clients: 2, total_operations: 20001}\n\
    - cleanup: {}\n";

fn drivers(controller: &Controller<'_>, disk: &Path, names: &[&str]) -> Vec<Process> {
    let allow = ["--allow-path", disk.to_str().unwrap()];
    let started = names.iter().map(|name| controller.driver(name, &allow)).collect();
    controller.wait_for_drivers(names.len());
    started
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no {key}: {value}"))
}

fn sum(values: &[Value], key: &str) -> u64 {
    values.iter().map(|value| value[key].as_u64().unwrap()).sum()
}

/// What lies in a directory.
fn left(disk: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(disk).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn counts(record: &Record) -> [u64; 2] {
    [record.operation("write", "write"), record.operation("read", "read")]
        .map(|one| one["ok"].as_u64().unwrap())
}

#[test]
fn one_two_and_four_drivers_do_the_same_in_all_each_on_its_own_volume() {
    let disk = on_disk();
    let verified = "content: {verify: true}\n";
    let text = document(&disk.path().join("volume-{driver}"), "", verified, COUNTED);
    let place = Place::new();
    let alone = place.run(&place.write("alone.yaml", &text));
    assert_eq!((alone.state(), counts(&alone)), ("completed", [4000, 20001]), "{}", alone.stderr);
    assert!(alone.value["provenance"].to_string().contains("volume-local"), "{}", alone.value["provenance"]);
    assert!(left(disk.path()).is_empty());

    for count in [1, 2, 4] {
        let place = Place::new();
        let controller = Controller::start(&place, &["--no-driver"]);
        let names = &["a", "b", "c", "d"][..count];
        let _drivers = drivers(&controller, disk.path(), names);
        let record =
            controller.run_of(&controller.wait_for_state(controller.submit(&text, &[]), "completed"));
        assert_eq!(counts(&record), [4000, 20001], "{count}");
        assert_eq!(
            record.operation("prepare", "write")["ok"].as_u64(),
            Some(32 * count as u64),
            "every volume is filled"
        );
        assert_eq!(record.operation("read", "read")["failed"].as_u64(), Some(0));
        assert!(left(disk.path()).is_empty(), "every driver removes its own: {:?}", left(disk.path()));

        let read = record.stage("read");
        let (shares, endpoints) = (list(read, "shares"), list(&read["works"][0], "endpoints"));
        assert_eq!(
            (shares.len(), sum(shares, "workers"), sum(shares, "ok")),
            (count, 2 * count as u64, 20001)
        );
        assert_eq!(
            read["works"][0]["workers"].as_u64(),
            Some(2 * count as u64),
            "two clients of each driver"
        );
        assert!(shares.iter().all(|share| share["complete"] == true && share["workers"] == 2), "{shares:?}");
        let reads = sum(shares, "read_bytes");
        assert_eq!(reads, 20001 * 4096, "{shares:?}");
        // The spread over drivers is one only of several.
        let spread: Vec<&str> = endpoints.iter().map(|one| one["endpoint"].as_str().unwrap()).collect();
        assert_eq!(spread, if count > 1 { names } else { &[] });
        if count > 1 {
            assert_eq!(sum(endpoints, "ok"), 20001);
            assert!(endpoints.iter().all(|one| one["kind"] == "driver"), "{endpoints:?}");
            let html = place.tidemark(&["report", &record.value["id"].to_string(), "--format", "md"]);
            assert!(html.stdout.contains("Throughput of a driver: least"), "{}", html.stdout);
        }
        let devices = list(&record.stage("prepare")["proof"], "devices");
        if devices.is_empty() {
            tidemark_testing::skip(format_args!(
                "no device counts what happens under {}",
                disk.path().display()
            ));
            continue;
        }
        assert_eq!(devices.len(), 1, "one machine's device counts once: {devices:?}");
        assert_eq!(list(&devices[0], "volumes").len(), count);
        let own = list(&record.stage("prepare")["proof"], "drivers");
        assert_eq!(own.len(), if count > 1 { count } else { 0 });
        assert!(own.iter().all(|one| one["written_bytes"].as_u64().unwrap() >= 32 << 20), "{own:?}");
        assert_eq!(record.findings("drivers-proven").is_empty(), count == 1, "{}", record.value["findings"]);
    }
}

#[test]
fn a_rate_is_that_of_all_drivers_and_clients_are_those_of_each() {
    let (place, disk) = (Place::new(), on_disk());
    let controller = Controller::start(&place, &["--no-driver"]);
    let _drivers = drivers(&controller, disk.path(), &["a", "b", "c"]);
    let stages = "- prepare: {}\n- name: main\n  load: {pattern: randread, block_size: 4KiB, depth: 8, rate: 600/s, for: 2s}\n- cleanup: {}\n";
    let text = document(&disk.path().join("{driver}.volume"), "", "", stages);
    let record = controller.run_of(&controller.wait_for_state(controller.submit(&text, &[]), "completed"));
    let work = &record.stage("main")["works"][0];
    assert_eq!(work["offered_per_s"].as_f64(), Some(600.0), "{work}");
    assert_eq!(record.operation("main", "read")["ok"].as_u64(), Some(1200), "what was due in two seconds");
    let shares = list(record.stage("main"), "shares");
    assert!(shares.iter().all(|share| share["ok"] == 400), "{shares:?}");
}

#[test]
fn two_drivers_never_get_one_file_by_whatever_names() {
    let (place, disk) = (Place::new(), on_disk());
    let at = |name: &str| disk.path().join(name);
    std::fs::create_dir(at("dir-a")).unwrap();
    std::os::unix::fs::symlink(at("dir-a"), at("dir-b")).unwrap();
    std::fs::write(at("hard-a"), "").unwrap();
    std::fs::hard_link(at("hard-a"), at("hard-b")).unwrap();
    std::fs::write(at("soft-a"), "").unwrap();
    std::os::unix::fs::symlink(at("soft-a"), at("soft-b")).unwrap();
    let controller = Controller::start(&place, &["--no-driver"]);
    let _drivers = drivers(&controller, disk.path(), &["a", "b"]);
    for (path, named) in [
        ("same", "is one and the same for the drivers a and b"),
        ("dir-{driver}/volume", "dir-b/volume of driver b are one and the same"),
        ("hard-{driver}", "hard-b of driver b are one and the same"),
        ("soft-{driver}", "soft-b of driver b are one and the same"),
    ] {
        let submission =
            controller.wait_for_end(controller.submit(&document(&at(path), "", "", COUNTED), &[]));
        assert_eq!(submission["state"], "failed", "{path}: {submission}");
        let said = submission.to_string();
        assert!(said.contains(named) && said.contains("{driver}"), "{path}: {said}");
        assert!(!at("same").exists() && !at("dir-a/volume").exists(), "nothing was made");
        assert_eq!(std::fs::metadata(at("hard-a")).unwrap().len(), 0);
    }
    // What is only read may be read by both.
    let own = "- prepare: {}\n";
    let file = place.write("filled.yaml", &document(&at("shared"), "", "", own));
    assert_eq!(place.tidemark(&["run", file.to_str().unwrap()]).code, 0);
    let reads = "- name: read\n  load: {pattern: randread, block_size: 4KiB, total_operations: 100}\n";
    let record = controller.run_of(
        &controller
            .wait_for_state(controller.submit(&document(&at("shared"), "", "", reads), &[]), "completed"),
    );
    assert_eq!(record.operation("read", "read")["ok"].as_u64(), Some(100));
}

#[test]
fn a_driver_that_is_killed_leaves_its_volume_and_the_others_remove_theirs() {
    let (place, disk) = (Place::new(), on_disk());
    let controller = Controller::start(&place, &["--no-driver"]);
    let stages = "- prepare: {}\n- name: main\n  load: {pattern: randrw, block_size: 4KiB, rate: 200/s, for: 8s}\n- cleanup: {}\n";
    for on_loss in ["stop", "continue"] {
        let mut running = drivers(&controller, disk.path(), &["kept", "lost"]);
        let more = format!("drivers: {{on_loss: {on_loss}, lost_after: 2s}}\n");
        let id = controller.submit(&document(&disk.path().join("volume-{driver}"), "", &more, stages), &[]);
        wait("load", || (controller.submission(id)["stage"].as_str()?.ends_with("main")).then_some(()));
        std::thread::sleep(Duration::from_secs(3));
        running[1].kill();
        let record = controller.run_of(&controller.wait_for_end(id));
        let main = record.stage("main");
        match on_loss {
            "stop" => assert!(main["reason"].as_str().unwrap().contains("driver lost was lost"), "{main}"),
            _ => assert_eq!(
                (&main["state"], &record.value["valid"]),
                (&"completed".into(), &false.into()),
                "{main}"
            ),
        }
        assert!(!record.findings("driver-lost").is_empty(), "{}", record.value["findings"]);
        let shares = list(main, "shares");
        let complete: Vec<bool> = shares.iter().map(|share| share["complete"] == true).collect();
        assert_eq!(complete.len(), 2, "{shares:?}");
        assert!(!complete[1] && shares[0]["ok"].as_u64().unwrap() > 0, "{shares:?}");
        assert!(
            record.findings("endpoint-outage").is_empty(),
            "what it did after its last report is not known"
        );
        assert_eq!(left(disk.path()), ["volume-lost"], "{on_loss}");
        assert!(
            record.value["notes"].to_string().contains(&format!(
                "Driver lost is lost, so what it has of its own was not cleaned up: {}/volume-lost. ",
                disk.path().display()
            )),
            "{}",
            record.value["notes"]
        );
        std::fs::remove_file(disk.path().join("volume-lost")).unwrap();
        running[0].kill();
        controller.wait_for_drivers(0);
    }
}

#[test]
fn where_one_driver_cannot_clean_up_the_others_do() {
    let (place, disk) = (Place::new(), on_disk());
    let controller = Controller::start(&place, &["--no-driver"]);
    let _drivers = drivers(&controller, disk.path(), &["a", "b", "c"]);
    let path = disk.path().join("volume-{driver}");
    let filled = controller.submit(&document(&path, "", "", "- prepare: {}\n"), &[]);
    controller.wait_for_state(filled, "completed");
    // As a driver on another machine would that has the same file: what is only read is locked as well, since it is removed later.
    let held = std::fs::File::open(disk.path().join("volume-b")).unwrap();
    held.lock_shared().unwrap();
    let stages = "- name: main\n  load: {pattern: randread, block_size: 4KiB, total_operations: 30}\n- name: end\n  cleanup: {}\n";
    let record =
        controller.run_of(&controller.wait_for_end(controller.submit(&document(&path, "", "", stages), &[])));
    for stage in ["main", "end"] {
        let (state, reason) =
            (&record.stage(stage)["state"], record.stage(stage)["reason"].as_str().unwrap());
        assert_eq!(state, "failed", "{stage}");
        assert!(
            reason.starts_with("driver b: ") && reason.contains("volume-b is in use by another"),
            "{reason}"
        );
    }
    assert_eq!(left(disk.path()), ["volume-b"]);
    assert_eq!(record.operation("end", "remove")["ok"].as_u64(), Some(2));
    drop(held);
    let again = controller.submit(&document(&path, "", "", "- cleanup: {}\n"), &[]);
    controller.wait_for_state(again, "completed");
    assert!(left(disk.path()).is_empty());
}

#[test]
fn a_driver_s_name_that_leads_elsewhere_is_refused() {
    let (place, disk) = (Place::new(), on_disk());
    let controller = Controller::start(&place, &["--no-driver"]);
    let up = place.tidemark(&["driver", "--join", &controller.url, "--name", "../../up"]);
    assert_eq!(up.code, 3, "{}", up.stderr);
    assert!(up.stderr.contains("a driver needs a name of 1 to 128 letters"), "{}", up.stderr);
    let _drivers = drivers(&controller, disk.path(), &["a:b"]);
    let text = document(&disk.path().join("x{driver}"), "", "", COUNTED);
    let submission = controller.wait_for_end(controller.submit(&text, &[]));
    assert_eq!(submission["state"], "failed");
    assert!(submission.to_string().contains("cannot stand for"), "{submission}");
}

#[test]
#[ignore = "needs fio; `make test` runs it"]
fn fio_s_counts_of_two_drivers_add_up() {
    tidemark_testing::needs!(&["fio"]);
    let (place, disk) = (Place::new(), on_disk());
    let controller = Controller::start(&place, &["--no-driver"]);
    let _drivers = drivers(&controller, disk.path(), &["a", "b"]);
    let text = document(&disk.path().join("volume-{driver}"), ", engine: fio", "", COUNTED);
    let record = controller.run_of(&controller.wait_for_state(controller.submit(&text, &[]), "completed"));
    assert_eq!(counts(&record), [4000, 20001]);
    let work = &record.stage("read")["works"][0];
    let endpoints = list(work, "endpoints");
    assert_eq!((endpoints.len(), sum(endpoints, "ok")), (2, 20001), "{endpoints:?}");
    assert_eq!(list(record.stage("read"), "shares").len(), 2);
    assert!(left(disk.path()).is_empty());
}
