//! Tests of the job-file reader.

use super::*;
use crate::JobFiles;
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

const TWO_STAGES: &str = "; two steps
[global]
ioengine=io_uring
direct=1
time_based
runtime=30
ramp_time=5s
filename=/tmp/a\\:b:/tmp/c # both
randrepeat=0

[fill]
rw=write
bs=1m

[mix]
stonewall
rw=randrw:8
rwmixread=70
numjobs=4
iodepth=16
fdatasync=32

[beside]
rw=randread
name=other
";

/// Without variables.
fn read(text: &str) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    super::read(text, &|_| None, &|| true)
}

fn errors(text: &str) -> Vec<(String, usize)> {
    let found = read(text).expect_err("it is refused");
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.map(|error| (error.message.clone(), error.line_and_column(text).0)).collect()
}

fn file(work: &Work) -> &FioFile {
    work.job.get().unwrap()
}

fn paths_of(work: &Work) -> Vec<PathBuf> {
    file(work).paths().cloned().collect()
}

#[test]
fn stonewalls_cut_stages_and_sections_are_works() {
    let registry = Registry::new(vec![], vec![Arc::new(JobFiles)]);
    let read = tidemark_plan::document::read(TWO_STAGES, &Environment::process(&registry)).unwrap();
    assert_eq!((read.format, read.warnings), ("fio job file", vec![]));
    let plan = read.plan;
    let names: Vec<_> = plan.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["fill", "mix, beside"]);
    let (fill, mix, beside) = (&plan.stages[0].works[0], &plan.stages[1].works[0], &plan.stages[1].works[1]);
    assert_eq!((beside.name.as_str(), file(beside).section.as_str()), ("other", "beside"));
    assert_eq!((mix.load.workers, mix.load.depth, fill.load.depth), (4, 16, 1));
    assert_eq!((mix.load.stop.window_ns, mix.load.stop.warm_up_ns), (Some(30_000_000_000), 5_000_000_000));
    assert_eq!(*file(mix).sections, ["mix", "beside"]);
    assert_eq!(file(mix).actions, [Action::Read, Action::Write, Action::Fdatasync]);
    assert_eq!(
        mix.labels.iter().map(|label| label.weight).collect::<Vec<_>>(),
        [70.0, 30.0, 0.0],
        "a sync has no share of the mix"
    );
    assert_eq!(paths_of(fill), [PathBuf::from("/tmp/a:b"), PathBuf::from("/tmp/c")]);
    assert_eq!(&*file(fill).text, TWO_STAGES, "the file is passed on unchanged");
    assert_eq!(plan.notes.len(), 1);
}

#[test]
fn variables_are_looked_up_where_a_number_is_needed() {
    let text = "[a]\nioengine=libaio\niodepth=${DEPTH}\nnumjobs=${JOBS}\nruntime=${SECONDS}s\n";
    let set = |name: &str| match name {
        "DEPTH" => Some("32".to_owned()),
        "JOBS" => Some("4".to_owned()),
        "SECONDS" => Some("20".to_owned()),
        _ => None,
    };
    let (plan, _) = super::read(text, &set, &|| true).unwrap();
    let load = &plan.stages[0].works[0].load;
    assert_eq!((load.depth, load.workers, load.stop.window_ns), (32, 4, Some(20_000_000_000)));
    assert_eq!(plan.stages[0].works[0].job.get::<FioFile>().unwrap().text.as_ref(), text);
    let unset = errors(text);
    assert_eq!(unset.iter().map(|(_, line)| *line).collect::<Vec<_>>(), [3, 4, 5]);
    assert!(unset[0].0.contains("DEPTH is not set"), "{unset:?}");
}

#[test]
fn an_engine_that_waits_has_one_operation_in_flight() {
    let (plan, _) = read("[a]\nioengine=psync\niodepth=32\n[b]\nioengine=libaio\niodepth=32\n").unwrap();
    let depths: Vec<u32> = plan.stages[0].works.iter().map(|work| work.load.depth).collect();
    assert_eq!(depths, [1, 32]);
}

#[test]
fn reads_that_verify_are_actions_too() {
    let actions = |text: &str| {
        let plan = read(text).unwrap().0;
        let work = &plan.stages[0].works[0];
        (file(work).actions.clone(), file(work).reads_back)
    };
    let both = vec![Action::Write, Action::Read];
    assert_eq!(actions("[a]\nrw=write\nverify=crc32c\n"), (both, true));
    for text in ["[a]\nrw=write\n", "[a]\nrw=write\nverify=crc32c\ndo_verify=0\n"] {
        assert_eq!(actions(text), (vec![Action::Write], false), "{text}");
    }
    let mixed = actions("[a]\nrw=randrw\nverify=crc32c\n");
    assert_eq!(mixed, (vec![Action::Read, Action::Write], false));
}

#[test]
fn default_names_are_spelled_out() {
    let text = "[a]\ndirectory=/x\nnumjobs=2\n[b]\nioengine=null\n";
    let (plan, _) = read(text).unwrap();
    let works = &plan.stages[0].works;
    assert_eq!(paths_of(&works[0]), [PathBuf::from("/x/a.0.0"), PathBuf::from("/x/a.1.0")]);
    assert_eq!(paths_of(&works[1]), Vec::<PathBuf>::new(), "the null engine touches no file");
}

#[test]
fn jobs_that_fio_reports_as_one_are_one_work() {
    let text = "[global]\ngroup_reporting\nrw=read\n[a]\nnumjobs=2\n[b]\nrw=write\n[c]\nnew_group\n";
    let (plan, _) = read(text).unwrap();
    let works = &plan.stages[0].works;
    let told: Vec<_> = works.iter().map(|work| (work.name.as_str(), work.load.workers)).collect();
    assert_eq!(told, [("a", 3), ("c", 1)]);
    assert_eq!(file(&works[0]).actions, [Action::Read, Action::Write]);
}

#[test]
fn what_runs_programs_or_hides_devices_is_refused_where_it_stands() {
    let text = "[a]\nexec_prerun=rm -rf /\n[b]\nioengine=exec\n[c]\nioengine=external:/tmp/x.so\n";
    let lines: Vec<_> = errors(text).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, [2, 4, 6]);
    for text in [
        "[a]\ninclude other.fio\n",
        "[a]\nread_iolog=/tmp/log\n",
        "[a]\nmerge_blktrace_file=/tmp/log\n",
        "[a]\nrw=write\nfilename=${DEVICE}\n",
        "[a]\nsize=$pagesize'$(touch /tmp/x)'\n",
        "[a]\nunified_rw_reporting=1\n",
    ] {
        assert_eq!(errors(text).len(), 1, "{text}");
    }
    let set = |name: &str| (name == "DEVICE").then(|| "/dev/null".to_owned());
    let reading = super::read("[a]\nrw=read\nfilename=${DEVICE}\n", &set, &|| true).unwrap().0;
    assert_eq!(
        paths_of(&reading.stages[0].works[0]),
        [PathBuf::from("/dev/null")],
        "fio makes the same of it"
    );
    let image = |rw, cluster| {
        read(&format!("[a]\nioengine=rbd\npool=p\nrbdname=i\nrw={rw}\nclustername={cluster}\n")).is_ok()
    };
    assert_eq!(
        (image("write", "ceph"), image("write", "other"), image("read", "other")),
        (true, false, true)
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (text, message, line) in [
        ("[global]\nrw=read\n", "the file has no job section", 1),
        ("[a]\n\nrw=sideways\n", "fio has no `rw=sideways`", 3),
        ("rw=read\n[a]\n", "the option `rw` stands before the first section", 1),
        ("[a]\n[a]\n", "two sections are named `a`", 2),
        ("[a]\n[b]\nstonewall\nwait_for=a\n", "`wait_for=a` names no job of the same stage", 4),
        ("[a]\n[b\n", "`[b` is not a section header", 2),
    ] {
        assert!(errors(text).contains(&(message.to_owned(), line)), "{text}: {:?}", errors(text));
    }
}

#[test]
fn surprises_are_warned_of_once_for_all_jobs() {
    let (_, warnings) = read("[global]\nrw=randread\nruntime=5\n[a]\n[b]\n").unwrap();
    let told: Vec<_> = warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.iter().all(|message| message.starts_with("`a`, `b`: ")), "{told:?}");
}

#[test]
fn secrets_do_not_get_into_labels_and_records() {
    let text = "[a]\nioengine=http\nhttp_pass=hunter2\nhttp_s3_key=sesame\n";
    let redacted = tidemark_plan::redact::redact(text);
    assert!(!redacted.contains("hunter2") && !redacted.contains("sesame"), "{redacted}");
    let (plan, _) = read(text).unwrap();
    let config = &plan.stages[0].works[0].labels[0].config;
    assert!(!config.contains("hunter2") && !config.contains("sesame"), "{config}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(?s).{0,200}", lines in proptest::collection::vec(
        prop_oneof![
            Just("[a]".to_owned()), Just("[global]".into()), Just("stonewall".into()), Just("[b]".into()),
            "(rw|bs|runtime|filename|numjobs|iodepth|rwmixread|directory|name)=.{0,12}", ".{0,12}",
        ], 0..20)) {
        let _ = read(&text);
        let text = lines.join("\n");
        if let Ok((plan, _)) = read(&text) {
            prop_assert!(plan.stages.iter().all(|stage| !stage.works.is_empty() && !stage.name.is_empty()));
        }
    }
}

#[test]
fn all_works_of_a_file_share_its_text() {
    let sections: String = (0..500).map(|job| format!("[job-{job}]\nrw=read\n")).collect();
    let (plan, _) = read(&sections).unwrap();
    let works = &plan.stages[0].works;
    assert_eq!(works.len(), 500);
    let first = file(&works[0]);
    assert!(works.iter().all(|work| Arc::ptr_eq(&file(work).text, &first.text)));
    assert!(works.iter().all(|work| Arc::ptr_eq(&file(work).sections, &first.sections)));
    let packed = serde_json::to_string(first).unwrap();
    assert_eq!(&serde_json::from_str::<FioFile>(&packed).unwrap(), first, "it travels as it did");
}

/// The files and devices of a job file's first work.
fn paths(text: &str) -> Vec<String> {
    let plan = read(text).unwrap().0;
    file(&plan.stages[0].works[0]).paths().map(|path| path.display().to_string()).collect()
}

#[test]
fn names_that_fio_takes_otherwise_are_refused() {
    for (text, words) in [
        ("[j]\ndirectory = /x\n", "the blank before the value"),
        ("[j]\ndirectory=\t/x\n", "the blank before the value"),
        ("[j]\ndirectory=:\nfilename=x\n", "colons alone"),
        ("[j]\nioengine=cpuio\ndirectory=:\nfilename=x\n", "colons alone"),
        ("[j]\nsize=1m\n[global]\nfilename=/x\n", "after the last job"),
    ] {
        let found = read(text).unwrap_err();
        assert!(found.iter().any(|one| one.message.contains(words)), "{text}: {found:?}");
    }
    assert!(read("[j]\nsize=1m\n[global]\nbs=4k\n").is_ok());
}

#[test]
fn files_are_those_that_fio_opens() {
    assert_eq!(paths("[j]\ndirectory=/data\nfilename=/x\nrw=write\n"), ["/data//x"]);
    assert_eq!(paths("[global]\nfilename=/a\n[j]\nfilename=/b:/c\nfilename=/d\n"), ["/a", "/b", "/c", "/d"]);
    assert_eq!(paths("[j]\nnr_files=2\n"), ["j.0.0", "j.0.1"]);
    assert_eq!(paths("[/dev/null]\nrw=write\n"), ["/dev/null"], "the section names a device");
    assert_eq!(paths("[globalx]\nfilename=/a\n[j]\n"), ["/a"]);
    for engine in ["aio", "linuxaio", "aiofoo", "psync:x", "a-later-one"] {
        assert_eq!(paths(&format!("[j]\nioengine={engine}\nfilename=/a\n")), ["/a"], "{engine}");
    }
    assert_eq!(paths("[j]\nioengine=null\nfilename=/a\n"), Vec::<String>::new());
    // What a section names is joined with the directory of that section, or with the one before it.
    assert_eq!(paths("[global]\nfilename=a\n[j]\ndirectory=/x\n"), ["a"]);
    assert_eq!(
        paths("[global]\nfilename=a\ndirectory=/x\n[j]\ndirectory=/y\nfilename=b\n"),
        ["/x/a", "/y/b"]
    );
    assert_eq!(paths("[global]\ndirectory=/x\n[j]\nfilename=b\n[global]\ndirectory=/y\n[k]\n"), ["/x/b"]);
    assert_eq!(paths("[j]\ndirectory=/x:/y\nfilename=a:b\n"), ["/x/a", "/x/b", "/y/a", "/y/b"]);
    assert_eq!(paths("[j]\nfilename=$jobname\n"), ["$jobname"], "fio puts no name in its place");
    let plan = read("[j]\nioengine=rbd:x\nrbdname=user-1\nrw=write\n").unwrap().0;
    assert_eq!(file(&plan.stages[0].works[0]).images.len(), 1);
    let plan = read("[j]\nioengine=nbd\nuri=nbd://127.0.0.1/disk\nrw=write\n").unwrap().0;
    assert_eq!(file(&plan.stages[0].works[0]).remote, ["nbd:nbd://127.0.0.1/disk"]);
}

#[test]
fn the_last_share_of_a_mix_counts_and_names_in_global_do_not() {
    let actions = |text: &str| {
        let plan = read(text).unwrap().0;
        file(&plan.stages[0].works[0]).actions.clone()
    };
    let both = [Action::Read, Action::Write];
    assert_eq!(actions("[j]\nrw=randrw\nrwmixwrite=0\nrwmixread=0\n"), [Action::Write]);
    assert_eq!(actions("[global]\nrwmixwrite=0\n[j]\nrw=randrw\nrwmixread=30\n"), both);
    assert_eq!(actions("[j]\nrw=randrw\nrwmixread=0\nrwmixwrite=0\n"), [Action::Read]);
    assert_eq!(actions("[j]\nrw=write\nverify=crc32c\nverify_backlog=32\n"), [Action::Write, Action::Read]);
    let name = |text: &str| read(text).unwrap().0.stages[0].works[0].name.clone();
    assert_eq!(name("[global]\nname=x\n[j]\n"), "j");
    assert_eq!(name("[j]\nname=own\n"), "own");
}

#[test]
fn what_fio_would_read_otherwise_is_refused() {
    let refused = |text: &str| {
        let found = read(text).unwrap_err();
        found.iter().map(|remark| remark.message.clone()).collect::<Vec<_>>().join("; ")
    };
    for option in ["ex${N}ec_prerun=id", "io${N}engine=nbd", "r${N}w=write", "open${N}dir=/etc"] {
        let words = refused(&format!("[j]\nfilename=/a\n{option}\n"));
        assert!(words.contains("has a variable in it"), "{words}");
    }
    let long = format!("[j]\nfilename=/a\n#{}exec_prerun=id\n", "A".repeat(8191));
    assert!(refused(&long).contains("longer than 4000 bytes"), "{}", refused(&long));
    for name in ["GLOBAL", "Global", "gLobalx"] {
        let words = refused(&format!("[{name}]\nioengine=null\n[j]\nfilename=/a\n"));
        assert!(words.contains("as a job"), "{words}");
    }
    assert!(refused("[j]\nfilename=/a\nwrite_iolog=/b\n").contains("would overwrite"));
    assert!(refused("[j]\nfilename=/a\nioscheduler=none\n").contains("would change this machine"));
}

#[test]
fn no_value_decides_that_fio_reads_otherwise() {
    let refused = |lines: &str| {
        let text = format!("[j]\nfilename=/a\nrw=read\n{lines}\n");
        let set = |name: &str| (name == "SET").then(|| "2".to_owned());
        let found = super::read(&text, &set, &|| true).map(drop).unwrap_err();
        let errors = found.iter().filter(|remark| remark.severity == Severity::Error);
        errors.map(|remark| remark.message.clone()).collect::<Vec<_>>().join("; ")
    };
    for line in [
        "ioengine=ex${NOPE}ec",
        "ioengine=n${NOPE}bd",
        "ioengine=r${SET}bd",
        "name=${SET}",
        "protocol=un${NOPE}ix",
        "nrfiles=0x2",
        "nr_files=1k",
        "numjobs=0x2",
        "numjobs=2*$ncpus",
        "iodepth=0x10",
        "rwmixread=0x64",
        "fsync=0x1",
        "fdatasync=1k",
        "fsync=4294967296",
        "verify_backlog=(1)",
        "size=0x100000",
        "filesize=(4*1024)",
        "runtime=10sec",
        "ramp_time=0x5",
        "stats=no",
        "group_reporting=0x0",
        "direct=true",
        "unlink=${NOPE}",
        "filename=/${NOPE}b",
        "filename=/b$ncpus",
        "directory=/${NOPE}",
        "filename_format=$jobname.$clientuid",
        "write_bw_log=/x/$pagesize",
    ] {
        let name = line.split('=').next().unwrap();
        let words = refused(line);
        assert!(words.contains(&format!("`{name}")), "{line}: {words}");
    }
    // In the [global] section, and where a later value takes its place, too.
    assert!(errors("[global]\nnumjobs=0x2\n[a]\nnumjobs=1\n[b]\n").iter().any(|(_, line)| *line == 2));
    assert!(refused("stats=00").contains("reports nothing"));
    let joined = read("[global]\nrw=read\ngroup_reporting=00\n[a]\n[b]\n").unwrap().0;
    assert_eq!(joined.stages[0].works.len(), 2, "00 is 0");
}

#[test]
fn names_of_sections_are_what_they_look_like() {
    for name in ["a$clientuid", "$jobname", "a\u{7}", "a\u{1b}[2J"] {
        let found = errors(&format!("[{name}]\ndirectory=/x\nrw=write\nsize=1m\n"));
        assert!(
            found.len() == 1 && found[0].0.contains("a `$` or a control character"),
            "{name:?}: {found:?}"
        );
        assert!(!found[0].0.contains(char::is_control), "{found:?}");
    }
    let twice = errors("[a]\nrw=read\n[a]\nrw=read\n");
    assert_eq!(twice, [("two sections are named `a`".to_owned(), 3)], "one mistake is one error");
}

#[test]
fn a_socket_of_somebody_else_is_asked_for() {
    let plan = read("[j]\nioengine=net\nprotocol=unix\nfilename=/run/x.sock\nrw=write\nsize=1m\n").unwrap().0;
    assert_eq!(file(&plan.stages[0].works[0]).remote, ["net:/run/x.sock"]);
    let plan = read("[j]\nioengine=net\nprotocol=tcp\nhostname=h\nport=1\nrw=write\nsize=1m\n").unwrap().0;
    assert_eq!(file(&plan.stages[0].works[0]).remote, Vec::<String>::new());
}

#[test]
fn what_is_done_to_each_file_is_known() {
    let uses = |text: &str| file(&read(text).unwrap().0.stages[0].works[0]).files.clone();
    let one = |text: &str| uses(text).remove(0);
    let plain = one("[j]\nfilename=/a\nrw=read\n");
    assert_eq!((plain.writes, plain.removes, plain.length), (false, false, 0));
    assert!(one("[j]\nfilename=/a\nrw=randrw\n").writes && one("[j]\nfilename=/a\nunlink\n").removes);
    for (options, length) in [
        ("size=1m", 1 << 20),
        ("size=1m\nfilesize=4k-8k", 4096),
        ("size=50%", 0),
        ("size=1m\nfilename=/b", 512 << 10),
        ("size=1m\ncreate_on_open=1", 0),
    ] {
        assert_eq!(one(&format!("[j]\nfilename=/a\n{options}\n")).length, length, "{options}");
    }
    // One that only reads keeps its file, whoever is reported with it.
    let both = uses("[global]\ngroup_reporting\n[a]\nrw=read\nfilename=/a\n[b]\nrw=write\nfilename=/b\n");
    assert_eq!(both.iter().map(|one| one.writes).collect::<Vec<_>>(), [false, true]);
    let logs = file(&read("[j]\nrw=read\nwrite_lat_log=/x\nwrite_iops_log\n").unwrap().0.stages[0].works[0])
        .logs
        .clone();
    let names: Vec<_> = logs.iter().flat_map(|log| log.paths(1)).collect();
    let expected = ["/x_lat.1.log", "/x_slat.1.log", "/x_clat.1.log", "j_iops.1.log"];
    assert_eq!(names, expected.map(PathBuf::from));
}
