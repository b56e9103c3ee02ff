//! The layouts of the lab, for real: where its parts lie, what its slow devices do, and that nothing of it
//! stays behind.

use crate::common::{Down, say};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tidemark_lab::{self as lab, Daemon, Lab, LabDevice, LabError, LabOptions, Layout};

/// The limits of these labs: writes in a second, and bytes in a second in each direction.
const WRITES: u32 = 120;
const BANDWIDTH: u64 = 30_000_000;

/// A header without which the gateway takes no signed request.
const UNSIGNED: &str = "x-amz-content-sha256: UNSIGNED-PAYLOAD";

/// The lab, brought up; `None` where this machine cannot have the layout (no root, no loop devices, no control groups), which is
/// said.
fn up(options: &LabOptions) -> Option<Lab> {
    match lab::up(options, &mut say) {
        Err(error @ LabError::LayoutImpossible { .. }) => {
            tidemark_testing::skip(error);
            None
        }
        up => Some(up.unwrap()),
    }
}

fn options(directory: &Path, layout: Layout) -> LabOptions {
    LabOptions {
        layout: Some(layout),
        slow_iops: Some(WRITES),
        slow_bandwidth: Some(BANDWIDTH),
        ..LabOptions::new(directory.join("lab"))
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{program} failed: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn rados(lab: &Lab, arguments: &[&str]) -> String {
    let conf = lab.ceph_conf();
    run("rados", &[&["-c", conf.to_str().unwrap()], arguments].concat())
}

fn rbd(lab: &Lab, arguments: &[&str]) -> String {
    let conf = lab.ceph_conf();
    run("rbd", &[&["-c", conf.to_str().unwrap()], arguments].concat())
}

/// What the kernel has counted on a device (Documentation/block/stat.rst): writes as they were asked for,
/// before neighbours were merged and without flushes, and bytes written.
fn written(device: &Path) -> (u64, u64) {
    let name = device.file_name().unwrap().to_str().unwrap();
    let text = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    (numbers[4] + numbers[5], numbers[6] * 512)
}

fn slow_devices(lab: &Lab) -> Vec<LabDevice> {
    lab.devices().into_iter().filter(|device| device.is_slow).collect()
}

fn written_on_slow(lab: &Lab) -> Vec<(u64, u64)> {
    slow_devices(lab).iter().map(|device| written(&device.path)).collect()
}

/// Loop devices, files in memory and control groups whose names tell that they are of a directory's lab.
fn left_behind(directory: &Path) -> Vec<PathBuf> {
    let directory = directory.to_str().unwrap();
    let encoded = directory.replace('/', "%2F");
    let mut left = Vec::new();
    for place in ["/dev/shm", "/sys/fs/cgroup", "/sys/fs/cgroup/blkio", "/sys/fs/cgroup/unified"] {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        left.extend(
            entries.map(|entry| entry.path()).filter(|path| path.to_str().unwrap().contains(&encoded)),
        );
    }
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if file.contains(directory) || file.contains(&encoded) {
            left.push(entry.path());
        }
    }
    left
}

/// What the cluster knows of an OSD's devices.
fn metadata(lab: &Lab, osd: usize) -> Value {
    serde_json::from_str(&lab.ceph(&["osd", "metadata", &osd.to_string()]).unwrap()).unwrap()
}

/// Where BlueStore says its parts are.
fn parts_are_in_place(lab: &Lab) {
    let has_fast_metadata = lab.layout() != Layout::Baseline;
    for osd in 0..2 {
        let metadata = metadata(lab, osd);
        let dedicated = if has_fast_metadata { "1" } else { "0" };
        assert_eq!(metadata["bluefs_dedicated_db"], dedicated, "{metadata}");
        assert_eq!(metadata["bluefs_dedicated_wal"], dedicated, "{metadata}");
        assert_eq!(metadata["rotational"], "0", "{metadata}");
        for (part, key) in [
            ("block", "bluestore_bdev_dev_node"),
            ("block.db", "bluefs_db_dev_node"),
            ("block.wal", "bluefs_wal_dev_node"),
        ] {
            let device = lab.devices().into_iter().find(|device| device.osd == osd && device.part == part);
            assert_eq!(device.is_some(), part == "block" || has_fast_metadata);
            if let Some(device) = device {
                assert_eq!(metadata[key], device.path.to_str().unwrap(), "{metadata}");
            }
        }
    }
}

/// Every OSD is in the control group, and no other daemon is.
fn osds_are_in_the_group(lab: &Lab) {
    let members = fs::read_to_string(lab.control_group().unwrap().join("cgroup.procs")).unwrap();
    let mut members: Vec<u32> = members.lines().map(|line| line.parse().unwrap()).collect();
    let osds = lab.daemons().into_iter().filter(|daemon| matches!(daemon, Daemon::Osd(_)));
    let mut expected: Vec<_> = osds.map(|osd| lab.pid(osd).unwrap().unwrap()).collect();
    members.sort_unstable();
    expected.sort_unstable();
    assert_eq!(members, expected);
}

/// Many small writes to the slow pool itself: whatever the client does, the devices do no more than they may.
fn slow_devices_are_slow(lab: &Lab) {
    lab.ceph(&["osd", "pool", "create", "slow-test"]).unwrap();
    lab.ceph(&["osd", "pool", "application", "enable", "slow-test", "test"]).unwrap();
    let (before, begun) = (written_on_slow(lab), Instant::now());
    rados(lab, &["-p", "slow-test", "bench", "8", "write", "-b", "4096", "-t", "32", "--no-cleanup"]);
    let (seconds, after) = (begun.elapsed().as_secs_f64(), written_on_slow(lab));
    for ((first, _), (last, _)) in before.iter().zip(&after) {
        let (writes, allowed) = ((last - first) as f64, seconds * f64::from(WRITES));
        eprintln!("{writes} writes in {seconds:.1} s on a device that may do {allowed:.0}");
        // The kernel settles accounts in slices of a tenth of a second, and lets a little through at the
        // start.
        assert!(writes < allowed * 1.15 + 20.0, "{writes} writes, and {allowed} are allowed");
        assert!(writes > allowed * 0.3, "the device was not loaded: {writes} of {allowed}");
    }
    let (before, begun) = (written_on_slow(lab), Instant::now());
    rados(lab, &["-p", "slow-test", "bench", "8", "write", "-b", "4194304", "-t", "4", "--no-cleanup"]);
    let (seconds, after) = (begun.elapsed().as_secs_f64(), written_on_slow(lab));
    for ((_, first), (_, last)) in before.iter().zip(&after) {
        let (bytes, allowed) = ((last - first) as f64, seconds * BANDWIDTH as f64);
        eprintln!("{bytes} bytes in {seconds:.1} s on a device that may write {allowed:.0}");
        assert!(bytes < allowed * 1.15 + 2e6, "{bytes} bytes, and {allowed} are allowed");
        assert!(bytes > allowed * 0.3, "the device was not loaded: {bytes} of {allowed}");
    }
}

/// What is written into a volume is read from it again.
fn a_volume_holds_its_data(lab: &Lab, directory: &Path) {
    let (source, copy) = (directory.join("source"), directory.join("copy"));
    let data: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&source, &data).unwrap();
    rbd(lab, &["import", "--no-progress", source.to_str().unwrap(), "rbd/volume"]);
    rbd(lab, &["export", "--no-progress", "rbd/volume", copy.to_str().unwrap()]);
    assert!(fs::read(&copy).unwrap() == data, "the volume has other data");
    fs::remove_file(copy).unwrap();
}

fn the_volume_is_still_there(lab: &Lab, directory: &Path) {
    let copy = directory.join("copy");
    rbd(lab, &["export", "--no-progress", "rbd/volume", copy.to_str().unwrap()]);
    assert!(
        fs::read(&copy).unwrap() == fs::read(directory.join("source")).unwrap(),
        "the volume has other data"
    );
}

/// What is put by S3 is got by S3; curl makes the signatures.
fn the_gateway_stores_objects(lab: &Lab, directory: &Path) {
    let keys = lab.credentials();
    let user = format!("{}:{}", keys.access_key, keys.secret_key);
    let sign =
        ["-sS", "--fail-with-body", "--aws-sigv4", "aws:amz:default:s3", "--user", &user, "-H", UNSIGNED];
    let bucket = format!("{}/harbour", lab.endpoint());
    let object = format!("{bucket}/boat");
    let file = directory.join("boat");
    fs::write(&file, "afloat").unwrap();
    run("curl", &[&sign[..], &["-X", "PUT", &bucket]].concat());
    run("curl", &[&sign[..], &["-T", file.to_str().unwrap(), &object]].concat());
    assert_eq!(run("curl", &[&sign[..], &[&object]].concat()), "afloat");
}

/// The life of a lab of one layout, with what is the same in all of them.
fn lives_and_dies(layout: Layout, more: impl Fn(&Lab)) {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path(), layout);
    let _down = Down(options.dir.clone());
    let begun = Instant::now();
    let Some(lab) = up(&options) else { return };
    eprintln!("{layout} up in {:?}", begun.elapsed());
    assert_eq!(lab.layout(), layout);
    assert!(lab.status().unwrap().health.is_some_and(|health| health.is_ok()));
    for (name, value) in lab.labels() {
        eprintln!("  {name}: {value}");
    }
    parts_are_in_place(&lab);
    osds_are_in_the_group(&lab);
    assert!(lab.admin_sockets().join("ceph-osd.0.asok").exists());
    the_gateway_stores_objects(&lab, directory.path());
    a_volume_holds_its_data(&lab, directory.path());
    more(&lab);
    slow_devices_are_slow(&lab);

    let again = lab::up(&LabOptions::new(&options.dir), &mut say).unwrap();
    assert_eq!(again.labels(), lab.labels(), "what runs is left as it is");
    let other = LabOptions { layout: Some(Layout::Plain), ..options.clone() };
    let error = lab::up(&other, &mut say).unwrap_err().to_string();
    assert!(error.contains(&format!("the layout {layout}, not plain")), "{error}");

    lab::down(&options.dir, false, &mut say).unwrap();
    let left = left_behind(directory.path());
    assert!(left.iter().all(|path| path.starts_with("/dev/shm")), "only data in memory are kept: {left:?}");
    assert_eq!(left.is_empty(), layout == Layout::Baseline, "{left:?}");
    lab::up(&LabOptions::new(&options.dir), &mut say).unwrap();
    the_volume_is_still_there(&lab, directory.path());
    osds_are_in_the_group(&lab);

    lab::down(&options.dir, true, &mut say).unwrap();
    assert_eq!(left_behind(directory.path()), Vec::<PathBuf>::new());
    assert!(!options.dir.exists());
}

#[test]
#[ignore = "needs the Ceph packages and root; run by make test"]
fn baseline_has_everything_on_slow_devices() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    lives_and_dies(Layout::Baseline, |lab| {
        assert!(lab.devices().iter().all(|device| device.is_slow));
    });
}

#[test]
#[ignore = "needs the Ceph packages and root; run by make test"]
fn reference_1_has_its_metadata_on_fast_devices() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    lives_and_dies(Layout::Reference1, |lab| {
        assert_eq!(lab.devices().iter().filter(|device| !device.is_slow).count(), 4);
    });
}

#[test]
#[ignore = "needs the Ceph packages and root; run by make test"]
fn reference_2_takes_writes_into_its_cache() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    lives_and_dies(Layout::Reference2, |lab| {
        for pool in ["rbd", "default.rgw.buckets.data"] {
            let there = |pool: &str| rados(lab, &["-p", pool, "ls"]).lines().count();
            assert!(there(&format!("{pool}.cache")) > 0, "the cache of {pool} is empty");
        }
        rbd(lab, &["create", "--size", "16M", "rbd/other"]);
        let before = written_on_slow(lab);
        let bench = ["bench", "rbd/other", "--io-type", "write", "--io-size", "4096", "--io-pattern", "rand"];
        rbd(lab, &[&bench[..], &["--io-threads", "8", "--io-total", "8M"]].concat());
        for ((first, _), (last, _)) in before.iter().zip(written_on_slow(lab)) {
            let writes = last - first;
            eprintln!("{writes} of 2048 writes reached a slow device");
            assert!(writes < 200, "{writes} of 2048 writes reached a slow device");
        }
    });
}

#[test]
#[ignore = "needs the Ceph packages and root; run by make test"]
fn killed_daemons_are_cleared_and_missing_memory_files_are_named() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path(), Layout::Reference1);
    let _down = Down(options.dir.clone());
    let Some(lab) = up(&options) else { return };
    for daemon in lab.daemons() {
        let pid = lab.pid(daemon).unwrap().unwrap().to_string();
        run("kill", &["-KILL", &pid]);
        while lab.pid(daemon).unwrap().is_some() {
            sleep(Duration::from_millis(20));
        }
    }
    assert_eq!(left_behind(directory.path()).len(), 2 + 6, "group, memory and six devices");
    lab::down(&options.dir, false, &mut say).unwrap();
    let memory = left_behind(directory.path()).pop().unwrap();
    fs::remove_file(memory.join("osd.1.block.wal")).unwrap();
    let error = lab::up(&options, &mut say).unwrap_err();
    assert!(matches!(&error, LabError::DeviceLost { file } if file.ends_with("osd.1.block.wal")), "{error}");
    assert_eq!(
        left_behind(directory.path()),
        std::slice::from_ref(&memory),
        "a failed start undoes what it did"
    );
    lab::down(&options.dir, true, &mut say).unwrap();
    assert_eq!(left_behind(directory.path()), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "needs the Ceph packages and root; run by make test"]
fn a_creation_that_fails_leaves_no_device() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("ceph-osd.text");
    fs::write(&text, "#!/bin/sh\necho 'no disk today' >&2\nexit 9\n").unwrap();
    run("install", &[text.to_str().unwrap(), directory.path().join("ceph-osd").to_str().unwrap()]);
    let path = std::env::var_os("PATH").unwrap();
    let directories = std::iter::once(directory.path().to_owned()).chain(std::env::split_paths(&path));
    let mut options = options(directory.path(), Layout::Reference2);
    options.program_path = Some(std::env::join_paths(directories).unwrap());
    let _down = Down(options.dir.clone());
    let error = match lab::up(&options, &mut say).unwrap_err() {
        error @ LabError::LayoutImpossible { .. } => return tidemark_testing::skip(error),
        error => error.to_string(),
    };
    assert!(error.contains("no disk today"), "{error}");
    assert_eq!(left_behind(directory.path()), Vec::<PathBuf>::new());
}
