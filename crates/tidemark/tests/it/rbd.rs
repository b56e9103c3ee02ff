//! The built binary on RBD volumes of a real Ceph cluster, through fio.

use crate::common::fleet::Controller;
use crate::common::{Place, Record};
use std::path::{Path, PathBuf};
use std::process::Command;
use tidemark_lab::{self as lab, LabOptions};

/// A cluster of its own, removed at the end.
pub(crate) struct Cluster {
    directory: PathBuf,
    pub(crate) conf: PathBuf,
}

impl Cluster {
    pub(crate) fn new(place: &Place) -> Self {
        let directory = place.path("lab");
        let lab = lab::up(&LabOptions::new(&directory), &mut |text| eprintln!("{text}")).unwrap();
        Self { conf: lab.ceph_conf(), directory }
    }

    /// What `rbd` prints.
    pub(crate) fn rbd(&self, arguments: &[&str]) -> String {
        let output = Command::new("rbd").arg("--conf").arg(&self.conf).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The first bytes of what an image holds.
    fn head(&self, place: &Place, image: &str) -> Vec<u8> {
        let path = place.path("exported");
        let _ = std::fs::remove_file(&path);
        self.rbd(&["export", "--no-progress", image, path.to_str().unwrap()]);
        std::fs::read(path).unwrap()[..4096].to_vec()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = lab::down(&self.directory, true, &mut |_| {});
    }
}

fn document(conf: &Path, stages: &str) -> String {
    format!(
        "name: rbd\ntarget: {{kind: rbd, conf: \"{}\", image: disk, size: 64MiB}}\nstages:\n{stages}",
        conf.display()
    )
}

#[test]
#[ignore = "needs the Ceph packages and fio; `make test` runs it"]
fn clients_on_volumes_of_their_own() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let place = Place::new();
    let cluster = Cluster::new(&place);
    let text = format!(
        "name: rbd\ntarget: {{kind: rbd, conf: \"{}\", count: 2, size: 64MiB}}\nstages:\n  - prepare: {{}}\n  \
         - load: {{pattern: [read, randwrite], block_size: 128KiB, clients: [1, 2], depth: 4, for: 2s}}\n  \
         - cleanup: {{}}\n",
        cluster.conf.display()
    );
    let output = place.tidemark(&["run", place.write("rbd.yaml", &text).to_str().unwrap(), "--json"]);
    let record = Record::from(&output);
    let left = cluster.rbd(&["ls", "rbd"]);
    assert_eq!(record.state(), "completed", "{}", output.stderr);
    assert_eq!(record.sum("write", "failed") + record.sum("read", "failed"), 0);
    let stages = record.value["stages"].as_array().unwrap();
    let totals: Vec<u64> = stages
        .iter()
        .filter(|stage| !stage["cell"].is_null())
        .map(|stage| stage["works"][0]["operations"][0]["ok"].as_u64().unwrap())
        .collect();
    assert_eq!(totals.len(), 4);
    assert!(totals.iter().all(|total| *total > 10), "{totals:?}");
    assert_eq!(left, "", "the clean-up removes the images");
    // What the OSDs counted proves what fio claims to have written, copy by copy.
    let written: Vec<_> =
        stages.iter().filter(|stage| stage["cell"]["axes"].to_string().contains("randwrite")).collect();
    assert!(!written.is_empty(), "{stages:?}");
    for stage in written {
        let osds = &stage["proof"]["osds"];
        let number = |key: &str| osds[key].as_u64().unwrap_or_else(|| panic!("{key} of {}", stage["proof"]));
        let claimed: u64 = stage["works"][0]["operations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|operation| operation["bytes"].as_u64().unwrap())
            .sum();
        assert!(number("copies") > 0 && number("osds") > 0);
        assert!(number("written_bytes") / number("copies") >= claimed / 10 * 9, "{osds} of {claimed}");
    }
}

#[test]
#[ignore = "needs the Ceph packages and fio; `make test` runs it"]
fn each_driver_has_an_image_of_its_own() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let place = Place::new();
    let cluster = Cluster::new(&place);
    let controller = Controller::start(&place, &["--no-driver"]);
    let conf = cluster.conf.to_str().unwrap();
    let _drivers = ["a", "b"].map(|name| controller.driver(name, &["--allow-ceph-conf", conf]));
    controller.wait_for_drivers(2);
    let run = |stages: &str| {
        let text = format!(
            "name: rbd\ntarget: {{kind: rbd, conf: \"{conf}\", image: 'disk-{{driver}}', size: 32MiB, per_driver: true}}\nstages:\n{stages}"
        );
        controller.run_of(&controller.wait_for_state(controller.submit(&text, &[]), "completed"))
    };
    let record = run("  - prepare: {}\n  \
         - name: main\n    load: {pattern: randwrite, block_size: 16KiB, depth: 4, total_operations: 2001}\n");
    let images = cluster.rbd(&["ls", "rbd"]);
    assert_eq!(images.lines().collect::<Vec<_>>(), ["disk-a-1", "disk-b-1"]);
    let work = &record.stage("main")["works"][0];
    let counts = |key: &str| -> Vec<u64> {
        let all = work["endpoints"].as_array().unwrap_or_else(|| panic!("no endpoints: {work}"));
        all.iter().map(|one| one[key].as_u64().unwrap()).collect()
    };
    assert_eq!(
        (record.operation("main", "write")["ok"].as_u64(), work["workers"].as_u64()),
        (Some(2001), Some(2))
    );
    assert_eq!((counts("ok").iter().sum::<u64>(), counts("ok").len()), (2001, 2), "{work}");
    // They count for the whole cluster, and whoever ended last has seen what both wrote.
    let osds = &record.stage("main")["proof"]["osds"];
    let number = |key: &str| osds[key].as_u64().unwrap_or_else(|| panic!("no {key}: {osds}"));
    assert!(number("written_bytes") / number("copies") >= 2001 * (16 << 10) / 10 * 9, "{osds}");
    run("  - cleanup: {}\n");
    assert_eq!(cluster.rbd(&["ls", "rbd"]), "", "each removes its own");
}

#[test]
#[ignore = "needs the Ceph packages and fio; `make test` runs it"]
fn an_image_of_somebody_else_s_is_neither_overwritten_nor_removed_unasked() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let place = Place::new();
    let cluster = Cluster::new(&place);
    let data = vec![b'x'; 64 << 20];
    let image = |name: &str, bytes: &[u8]| {
        let file = place.path("import");
        std::fs::write(&file, bytes).unwrap();
        cluster.rbd(&["import", "--no-progress", file.to_str().unwrap(), name]);
    };
    let run = |stages: &str, more: &[&str]| {
        let file = place.write("rbd.yaml", &document(&cluster.conf, stages));
        place.tidemark(&[&["run", file.to_str().unwrap(), "--no-report"], more].concat())
    };
    let load = |pattern: &str| {
        format!("  - load: {{pattern: {pattern}, block_size: 64KiB, depth: 4, for: 1s, warm_up: 0s}}\n")
    };
    let (fill, remove) = ("  - prepare: {}\n", "  - cleanup: {}\n");
    let (write, read) = (load("randwrite"), load("randread"));

    image("rbd/disk-1", &data);
    for stages in
        [write.clone(), format!("{fill}{write}"), remove.to_owned(), format!("{fill}{read}{remove}")]
    {
        let refused = run(&stages, &[]);
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains("--allow-destroy rbd/disk-1"), "{}", refused.stderr);
    }
    // Of another size: neither made anew nor removed.
    let file = place.write(
        "other.yaml",
        &document(&cluster.conf, &format!("{fill}{write}{remove}")).replace("64MiB", "32MiB"),
    );
    let refused = place.tidemark(&["run", file.to_str().unwrap(), "--no-report"]);
    assert!(refused.stderr.contains("--allow-destroy rbd/disk-1"), "{}", refused.stderr);
    // Read, it is not filled.
    let reading = run(&format!("{fill}{read}"), &["--json"]);
    assert!(reading.stdout.contains("only read"), "{}", reading.stdout);
    assert_eq!(cluster.head(&place, "rbd/disk-1"), data[..4096]);

    // Given up, it is Tidemark's from then on.
    let allowed = run(&format!("{fill}{write}"), &["--allow-destroy", "rbd/disk-1", "--json"]);
    assert_eq!(Record::from(&allowed).state(), "completed", "{}", allowed.stderr);
    assert_ne!(cluster.head(&place, "rbd/disk-1"), data[..4096]);
    let again = run(&write, &["--json"]);
    assert_eq!(Record::from(&again).state(), "completed", "{}", again.stderr);
    // Until somebody else uses it.
    let job = "[a]\nioengine=rbd\nrbdname=disk-1\npool=rbd\nclientname=admin\nrw=write\nbs=64k\nio_size=64k\nthread\n";
    let script = place.write("foreign.fio", job);
    let output = Command::new("fio").arg(&script).env("CEPH_CONF", &cluster.conf).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for stages in [&write, remove] {
        let refused = run(stages, &[]);
        assert!(refused.stderr.contains("after Tidemark's last run"), "{}", refused.stderr);
    }
    // A job file is guarded alike.
    let mut command = place.command(&["run", script.to_str().unwrap(), "--no-report"]);
    let refused = command.env("CEPH_CONF", &cluster.conf).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("--allow-destroy rbd/disk-1"), "{text}");
    assert_eq!(cluster.rbd(&["ls", "rbd"]), "disk-1");

    // What Tidemark makes, it removes.
    let removed = run(remove, &["--allow-destroy", "rbd/disk-1"]);
    assert_eq!((removed.code, cluster.rbd(&["ls", "rbd"]).as_str()), (0, ""), "{}", removed.stderr);
    let all = run(&format!("{fill}{read}{remove}"), &["--json"]);
    assert_eq!(Record::from(&all).state(), "completed", "{}", all.stderr);
    assert_eq!(cluster.rbd(&["ls", "rbd"]), "");
}
