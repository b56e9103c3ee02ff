//! Job files that write to an RBD image of somebody else's in ways that a reader may not see: each is refused, and fio itself does it.

use crate::common::Place;
use crate::rbd::Cluster;
use std::path::Path;
use std::process::Command;

/// Where the image is named, of jobs whose other options stand for `OPTIONS`; `USER` is the image, `OWN` one that nobody has.
const PLACES: [&str; 17] = [
    "[job]\nOPTIONSpool=rbd\nrbdname=USER\nclientname=admin\n",
    "[global]\nOPTIONSpool=rbd\nrbdname=USER\nclientname=admin\n[job]\n",
    "[job]\nOPTIONSpool=rbd\nrbdname=OWN\nrbdname=USER\nclientname=admin\n",
    "[global]\nOPTIONSrbdname=OWN\nclientname=admin\npool=rbd\n[job]\nrbdname=USER\n",
    "[global]\nOPTIONSrbdname=USER\nclientname=admin\npool=rbd\n[job]\npool=rbd\n",
    "[global]\nOPTIONSpool=rbd\nrbdname=OWN\nclientname=admin\n[global]\nrbdname=USER\n[job]\n",
    "[global]\nOPTIONSpool=rbd\nrbdname=OWN\nclientname=admin\n[globalx]\nrbdname=USER\n[job]\n",
    "[job]\nOPTIONSpool=none\npool=rbd\nrbdname=USER\nclientname=nobody\nclientname=admin\n",
    "[job]\nOPTIONSpool = rbd\n\trbdname\t=\tUSER  ; a comment\nclientname =admin\n",
    "[job]\r\nOPTIONSpool=rbd\r\nrbdname=USER\r\nclientname=admin\r\n",
    "[job]\nOPTIONSpool=rbd\nrbdname=USER\nclientname=admin\nclustername=ceph\n",
    "[first]\nioengine=null\nsize=4k\nrw=read\n[job]\nstonewall\nOPTIONSpool=rbd\nrbdname=USER\nclientname=admin\n",
    "[global]\nOPTIONSpool=rbd\nclientname=admin\n[own]\nrbdname=OWN\nrw=read\n[job]\nstonewall\nrbdname=USER\n",
    "[job]\nOPTIONSpool=rbd\nrbdname=USER\nclientname=admin\nname=OWN\ndirectory=/tmp\n",
    "[job]\nOPTIONSpool=rbd\nrbdname=${TIDEMARK_TEST_IMAGE}\nclientname=admin\n",
    "[job]\nOPTIONSpool=${TIDEMARK_TEST_POOL}\nrbdname=USER\nclientname=${TIDEMARK_TEST_CLIENT}\n",
    "[job]\nOPTIONSinclude INCLUDED\n",
];

const ENGINES: [&str; 4] =
    ["ioengine=rbd\n", "ioengine=rbd:x\n", "ioengine=psync\nioengine=rbd\n", "ioengine=rbd:\nthread\n"];

const DIRECTIONS: [&str; 7] = [
    "rw=write\n",
    "readwrite=randwrite\n",
    "rw=randrw\nrwmixwrite=0\nrwmixread=0\n",
    "rw=rw\nrwmixread=100\nrwmixwrite=100\n",
    "rw=read\nrw=write:4k\n",
    "rw=trimwrite\n",
    "rw=readwrite:2\nverify=crc32c\n",
];

/// Job files of each place.
const EACH: usize = 3;

/// Another pattern in each file, so that what one has written shows after those before it.
fn job_files(included: &Path) -> Vec<String> {
    let options = |index: usize| {
        let (engine, direction) = (ENGINES[index % ENGINES.len()], DIRECTIONS[index % DIRECTIONS.len()]);
        format!("{engine}{direction}bs=4k\nsize=64k\nio_size=32k\nbuffer_pattern=0x{:02x}\n", index + 1)
    };
    let all = PLACES.iter().flat_map(|place| [place; EACH]).enumerate();
    all.map(|(index, place)| {
        let text = place.replace("OPTIONS", &options(index)).replace("USER", "user-1");
        text.replace("OWN", "own-1").replace("INCLUDED", included.to_str().unwrap())
    })
    .collect()
}

/// The variables that the files have, and Ceph's configuration.
fn prepare<'a>(command: &'a mut Command, cluster: &Cluster) -> &'a mut Command {
    command.env("CEPH_CONF", &cluster.conf).env("TIDEMARK_TEST_IMAGE", "user-1");
    command.env("TIDEMARK_TEST_POOL", "rbd").env("TIDEMARK_TEST_CLIENT", "admin")
}

#[test]
#[ignore = "needs the Ceph packages and fio; `make test` runs it"]
fn no_spelling_of_a_job_file_writes_to_an_image_of_somebody_else_s() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    tidemark_testing::needs!(&["fio"]);
    let place = Place::new();
    let cluster = Cluster::new(&place);
    let import = place.path("import");
    std::fs::write(&import, vec![b'x'; 1 << 20]).unwrap();
    cluster.rbd(&["import", "--no-progress", import.to_str().unwrap(), "rbd/user-1"]);
    // Its owner has an image that Tidemark may write to: a guard that looks at that one lets the file pass.
    cluster.rbd(&["create", "--size", "1M", "rbd/own-1"]);
    let content = || {
        let path = place.path("exported");
        let _ = std::fs::remove_file(&path);
        cluster.rbd(&["export", "--no-progress", "rbd/user-1", path.to_str().unwrap()]);
        std::fs::read(path).unwrap()
    };
    let before = content();
    let included = place.write("included.fio", "pool=rbd\nrbdname=user-1\nclientname=admin\n");
    let files: Vec<_> = job_files(&included)
        .into_iter()
        .enumerate()
        .map(|(index, text)| (place.write(&format!("{index}.fio"), &text), text))
        .collect();
    assert!(files.len() >= 50);
    for (file, text) in &files {
        let mut command = place.command(&["run", file.to_str().unwrap(), "--no-report"]);
        let output = prepare(&mut command, &cluster).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "accepted:\n{text}");
        assert!(content() == before, "written over by\n{text}\n{printed}");
        let is_guarded = printed.contains("--allow-destroy rbd/user-1");
        let is_unreadable =
            printed.contains("is taken from the environment") || printed.contains("`include`");
        assert!(is_guarded || is_unreadable, "{printed}\n{text}");
    }
    // Without Tidemark the same files do it: what is tested is its guard.
    let mut last = before;
    let mut would_have = 0;
    for (file, _) in &files {
        let mut command = Command::new("fio");
        command.arg(file).current_dir(place.directory.path());
        let _ = prepare(&mut command, &cluster).output().unwrap();
        let now = content();
        would_have += usize::from(now != last);
        last = now;
    }
    println!("{} job files; {would_have} would have written over the image", files.len());
    assert!(would_have > files.len() / 2, "{would_have} of {} would have written over it", files.len());
}
