//! Job files that stay where they may be, and ways out that there are none of.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use tidemark_plan::registry::Registry;

/// A place where plans may be, `in`, and one beside it, `out`, which holds a file.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        for directory in ["in", "in/below", "out"] {
            fs::create_dir(top.path().join(directory)).unwrap();
        }
        fs::write(top.path().join("out/key"), "secret").unwrap();
        symlink(top.path().join("out"), top.path().join("in/link")).unwrap();
        symlink(top.path().join("nowhere/yet"), top.path().join("in/dangling")).unwrap();
        Self(top)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn policy(&self) -> Policy {
        Policy { directories: vec![self.0.path().join("in")], ..Policy::default() }
    }
}

/// A job file with these lines after a `directory` within what is allowed.
fn job(lines: &str) -> String {
    format!("[global]\ndirectory=IN\ntime_based\nruntime=30\ndirect=1\n[j]\nrw=read\n{lines}\n")
}

/// The policy's result for a job file that the reader may refuse already.
fn says_of(machine: &Machine, text: &str) -> Result<(), String> {
    let text = text.replace("IN", &machine.path("in")).replace("OUT", &machine.path("out"));
    let good = job("").replace("IN", &machine.path("in"));
    let (mut plan, _) = document::read(&good, &|_| None, &|| true).unwrap();
    for work in plan.stages.iter_mut().flat_map(|stage| &mut stage.works) {
        let file: &mut FioFile = work.job.get_mut().unwrap();
        // A plan that was not made by this reader names no paths.
        (file.text, file.files) = (text.as_str().into(), Vec::new());
    }
    machine.policy().check(&plan, &Registry::new(vec![Arc::new(crate::Fio)], vec![]))
}

#[test]
fn job_files_have_no_way_out() {
    let machine = Machine::new();
    for good in [
        "",
        "bs=4k\nnumjobs=4\niodepth=16\nioengine=libaio\nsize=1g",
        "filename=a:below/b",
        "filename=IN/a:IN/below/b",
        "mem=malloc\nverify=crc32c\nverify_pattern=0xff\nbuffer_pattern=\"abc\"",
        "ioengine=net\nhostname=10.0.0.1\nport=80\nprotocol=tcp",
        "filename_format=$jobname.$jobnum",
        "filename_format=$jobname.$jobnum.$filenum",
    ] {
        assert_eq!(says_of(&machine, &job(good)), Ok(()), "{good}");
    }
    for bad in [
        "exec_prerun=id",
        "exec_postrun=id",
        "ioengine=exec\nprogram=/bin/id",
        "ioengine=external:/tmp/x.so",
        "ioengine=/tmp/x.so",
        "ioengine=libhdfs",
        "include OUT/key",
        "include=OUT/key",
        "include\tOUT/key",
        "includeOUT/key",
        "profile=tiobench",
        "read_iolog=OUT/key",
        "write_iolog=OUT/key",
        "write_bw_log=OUT/x",
        "write_lat_log",
        "write_hist_log=x",
        "write_iops_log=x",
        "merge_blktrace_file=OUT/x",
        "replay_redirect=OUT/key",
        "opendir=OUT",
        "verify_state_load=1",
        "verify_dump=1",
        "aux-path=OUT",
        "cgroup=x",
        "ioscheduler=none",
        "uid=0",
        "mem=mmap:OUT/x",
        "iomem=mmaphuge:OUT/x",
        "filename=OUT/key",
        "filename=a:OUT/key",
        "filename=../out/key",
        "filename=link/key",
        "filename=dangling",
        "filename=a\\:OUT/key",
        "filename=${HOME}",
        "directory=OUT",
        "directory=IN:OUT",
        "directory=",
        "filename_format=../../x.$jobnum",
        "name=../x",
        "donorname=OUT/key",
        "buffer_pattern='OUT/key'",
        "verify_pattern='OUT/key'",
        "size=$pagesize*4",
        "description=${AWS_SECRET_ACCESS_KEY}",
        "ioengine=net\nprotocol=unix\nhostname=OUT/x",
        "ioengine=nbd\nuri=nbd+unix:///?socket=OUT/x",
        "ioengine=rbd\npool=p\nrbdname=i\nclientname=admin",
        "ioengine=rados\nconf=OUT/key",
        "something_new=1",
        "filename_format=$clientuid.$jobnum",
        "filename_format=$jobname$x",
        "filename_format=$$jobnum",
        "name=$jobname",
        "name=$clientuid",
        "filename=$jobname",
        "directory=IN/$clientuid",
        "filename=\u{a0}IN/a",
        "filename=IN/a\u{2003}",
        "directory=\u{2003}IN",
        "filename_format=a\u{a0}",
        "filename=IN/a\0b",
        "filename=IN/a:\u{b}b",
        "\u{a0}filename=OUT/key",
        "[\u{a0}j2]\nrw=read",
        "[$clientuid]\nrw=read",
        "ioengine=rados\nconf=IN/ceph.conf",
        "ioengine=rbd\npool=p\nrbdname=i\nclustername=../../IN/x",
        "clustername=other",
        "clientname=../../x",
        "clientname=$cluster",
        "pool=-x",
        "rbdname=i@s/../x",
        "[../x]\nrw=read",
        "[global2]\ndirectory=OUT",
    ] {
        let refused = says_of(&machine, &job(bad)).expect_err(bad);
        assert!(refused.starts_with("the work `j` of the stage `j`"), "{refused}");
    }
    let long = job(&format!("description={}exec_prerun=id", "x".repeat(8191 - 12)));
    assert!(
        says_of(&machine, &long).unwrap_err().contains("line 8 of the fio job file is longer"),
        "fio cuts lines"
    );
    let nowhere = "[j]\nrw=read\nsize=1m\n";
    assert!(says_of(&machine, nowhere).unwrap_err().contains("names no place for its files"));
    assert_eq!(says_of(&machine, "[j]\nioengine=null\nrw=read\nsize=1m\n"), Ok(()));
    let later = "[global]\nfilename=a\n[j]\ndirectory=IN\nrw=read\n";
    assert!(says_of(&machine, later).is_err(), "fio resolves it where it was started");
}

/// Every option that the installed fio has is either allowed here or refused: the list has no slips of the pen.
#[test]
fn every_allowed_option_is_one_of_fios() {
    let Ok(output) = std::process::Command::new("fio").arg("--cmdhelp=all").output() else { return };
    let known = String::from_utf8_lossy(&output.stdout).into_owned();
    let known: Vec<&str> = known.lines().filter_map(|line| line.split(':').next()).map(str::trim).collect();
    for forbidden in ["exec_prerun", "read_iolog", "write_bw_log", "profile", "opendir", "cgroup"] {
        assert!(known.contains(&forbidden), "{forbidden}");
        assert!(!is_harmless(forbidden), "{forbidden}");
    }
    let named = ["name", "filename", "directory", "filename_format", "ioengine", "mem"];
    let forbidden = [
        "opendir",
        "verify_dump",
        "verify_state_",
        "write_",
        "read_iolog",
        "replay_",
        "merge_blktrace_",
        "exec_",
        "ioscheduler",
        "log_",
        "error_dump",
        "profile",
        "cgroup",
        "uid",
        "gid",
    ];
    let left_out =
        known.iter().filter(|name| !name.is_empty() && !is_harmless(name) && !named.contains(name));
    let strange: Vec<_> =
        left_out.filter(|name| !forbidden.iter().any(|start| name.starts_with(start))).collect();
    let version = std::process::Command::new("fio").arg("--version").output().unwrap().stdout;
    assert!(strange.is_empty() || !version.starts_with(b"fio-3.33"), "{strange:?}");
}
