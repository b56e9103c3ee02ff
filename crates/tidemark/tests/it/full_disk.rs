//! A controller whose disk is full while a run goes on: nothing hangs, the run ends with its numbers, and its result gets
//! into the store when there is room again.

use crate::common::Place;
use crate::common::fleet::{Controller, wait};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A small file system of its own. Taken away with this value.
struct Disk(PathBuf);

impl Disk {
    /// `None` where that is not allowed.
    fn mount(path: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&path).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(&path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(path))
    }

    /// Writes until there is no room.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("fill");
        let mut file = std::fs::File::create(&path).unwrap();
        for size in [64 << 10, 1] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// Five operations on nothing: each second of them takes some space.
fn document(seconds: u32) -> String {
    format!(
        "name: full\nseed: 7\ntarget: {{kind: mock, delay: 2ms}}\nstages:\n- name: main\n  load:\n    workers: 8\n    for: {seconds}s\n    \
         containers: 1-4\n    operations:\n    - get: {{objects: 1-40, weight: 30}}\n    - put: {{objects: 1-40, sizes: 4KiB, weight: 30}}\n    \
         - list: {{weight: 10}}\n    - head: {{objects: 1-40, weight: 10}}\n    - delete: {{objects: 1-40, weight: 20}}\n"
    )
}

fn troubles(controller: &Controller<'_>) -> String {
    controller.status()["troubles"].to_string()
}

#[test]
#[ignore = "needs root for a small file system of its own; `make test` runs it"]
fn a_full_disk_costs_no_measurement() {
    let place = Place::new();
    let Some(disk) = Disk::mount(place.path("disk")) else {
        return tidemark_testing::skip("only root can mount a small file system");
    };
    let store = |path: &Path| path.join("results.db").display().to_string();
    let at = store(&disk.0);
    let mut controller = Controller::start(&place, &["--store", &at]);
    controller.wait_for_drivers(1);
    let id = controller.submit(&document(20), &[]);
    wait("load", || (controller.submission(id)["stage"].as_str()?.ends_with("main")).then_some(()));
    std::thread::sleep(Duration::from_secs(4));
    let filled = disk.fill();
    assert!(troubles(&controller).contains("free for the result store"), "{}", troubles(&controller));

    // What would be new is refused at once, and what is the matter is said.
    let path = place.write("another", &document(1));
    let words = ["submit", path.to_str().unwrap(), "--controller", &controller.url];
    let refused = place.tidemark(&words);
    assert_eq!(refused.code, 3, "{}", refused.stdout);
    assert!(refused.stderr.contains("no space left"), "{}", refused.stderr);
    assert!(troubles(&controller).contains("cannot write to the result store"), "{}", troubles(&controller));

    // The run ends as if nothing had happened; its result is in memory.
    let ended = controller.wait_for_state(id, "completed");
    assert!(ended["reason"].as_str().unwrap().contains("not stored yet"), "{ended}");
    assert!(troubles(&controller).contains(&format!("w{id}")), "{}", troubles(&controller));
    assert!(controller.process.child.try_wait().unwrap().is_none());

    // With room again it gets into the store by itself, whole.
    std::fs::remove_file(filled).unwrap();
    wait("no troubles", || (troubles(&controller) == "[]").then_some(()));
    let run = controller.submission(id)["run"].as_u64().unwrap().to_string();
    let report = place.tidemark(&["report", &run, "--format", "json", "--store", &at]);
    let record: serde_json::Value =
        serde_json::from_str(&report.stdout).unwrap_or_else(|_| panic!("{}", report.stderr));
    assert_eq!(record["state"], "completed");
    let work = &record["stages"][0]["works"][0];
    assert_eq!(work["operations"].as_array().unwrap().len(), 5, "{work}");
    assert!(work["operations"].as_array().unwrap().iter().all(|one| one["ok"].as_u64() > Some(0)), "{work}");
    let again = controller.submit(&document(1), &[]);
    controller.wait_for_state(again, "completed");
    controller.process.kill();
}
