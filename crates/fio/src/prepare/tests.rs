//! Job files made ready.

use super::*;
use crate::document;
use std::path::PathBuf;
use tidemark_plan::plan::Work;

fn ready() -> Ready {
    // Nothing is run, so that any program does.
    Ready {
        program: Program::stand_in(),
        examined: Examined::default(),
        allow: Vec::new(),
        running: Running::default(),
        method: None,
    }
}

fn plan(text: &str) -> Plan {
    document::read(text, &|_| None, &|| true).unwrap().0
}

fn opened(ready: &mut Ready, works: &[&Work]) -> Vec<usize> {
    let stage = StageWorks { index: 0, works, shares: &[] };
    ready.open(stage, &mut Vec::new()).unwrap().iter().map(Carrier::works).collect()
}

#[test]
fn jobs_of_one_file_share_a_process() {
    let one = plan("[a]\nioengine=null\n[b]\nioengine=null\n");
    let other = plan("[c]\nioengine=null\n");
    let (a, b, c) = (&one.stages[0].works[0], &one.stages[0].works[1], &other.stages[0].works[0]);
    assert_eq!(opened(&mut ready(), &[a, b]), [2]);
    assert_eq!(opened(&mut ready(), &[a, b, c]), [2, 1]);
    assert_eq!(opened(&mut ready(), &[a, c, b]), [1, 1, 1], "works keep their order");
}

#[test]
fn the_proof_names_what_is_counted_on_and_says_when_nothing_is() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("nowhere");
    let named = plan(&format!("[a]\nfilename={}\ndirect=1\n", path.display()));
    let mut ready = ready();
    opened(&mut ready, &[&named.stages[0].works[0]]);
    let proof = ready.close(&["a remark".to_owned()]).unwrap();
    assert!(
        proof.direct
            && proof.cache == Some(tidemark_measure::kind::Cache::Cold)
            && proof.setup == ["a remark"],
        "{proof:?}"
    );
    let volumes = proof.devices.iter().flat_map(|device| &device.volumes).chain(&proof.unchecked);
    assert!(volumes.into_iter().any(|text| text.contains("nowhere")), "{proof:?}");
    assert!(ready.close(&[]).is_none(), "a stage has one proof");

    let nothing = plan("[a]\nioengine=null\n");
    opened(&mut ready, &[&nothing.stages[0].works[0]]);
    let proof = ready.close(&[]).unwrap();
    assert!(!proof.direct && proof.unchecked[0].contains("names no file or device"), "{proof:?}");
}

#[test]
fn files_are_fios_own_business_but_not_those_that_its_buffers_overwrite() {
    let directory = tempfile::tempdir().unwrap();
    let precious = directory.path().join("thesis");
    std::fs::write(&precious, "years of work").unwrap();
    let file = |text: &str| -> Plan { plan(&text.replace("FILE", precious.to_str().unwrap())) };
    let guarded = |plan: &Plan| {
        let files: Vec<&FioFile> = plan.stages[0].works.iter().filter_map(|work| work.job.get()).collect();
        let refused = |(volume, intent): (Volume, Intent)| guard::check(&volume, intent, &[]).is_err();
        super::guarded(&files).into_iter().map(refused).collect::<Vec<_>>()
    };
    assert_eq!(guarded(&file("[a]\nrw=write\nfilename=FILE\n")), [false; 0], "it is what the job is for");
    for option in ["mem=mmapshared:FILE", "iomem=mmap:FILE"] {
        let reading = file(&format!("[a]\nrw=read\nioengine=null\n{option}\n"));
        assert_eq!(guarded(&reading), [true], "{option}");
    }
    assert_eq!(guarded(&file("[a]\nrw=read\nioengine=null\nmem=shm\n")), [false; 0]);
    let hidden = document::read("[a]\nrw=read\nmem=mmap:${DISK}\n", &|_| None, &|| true).unwrap_err();
    assert!(hidden.iter().any(|found| found.message.contains("environment")), "{hidden:?}");
}

#[test]
fn images_of_job_files_are_guarded() {
    let text = "[global]\nioengine=rbd\nclientname=me\n[a]\nrw=randwrite\nrbdname=x\n[b]\nrw=read\nrbdname=y\npool=p\n";
    let plan = plan(text);
    let files: Vec<&FioFile> = plan.stages[0].works.iter().filter_map(|work| work.job.get()).collect();
    let named: Vec<_> =
        guarded(&files).iter().map(|(volume, intent)| (volume.name(), intent.writes)).collect();
    assert_eq!(named, [("rbd/x".to_owned(), true), ("p/y".to_owned(), false)]);
    assert!(document::read("[a]\nrw=write\nioengine=rbd\nrbdname=${IMAGE}\n", &|_| None, &|| true).is_err());
}

#[test]
fn without_a_sandbox_all_that_fio_writes_to_is_named_first() {
    let plan = plan("[a]\nfilename=/x/my file\nrw=write\nwrite_bw_log=/logs/x\nmem=mmap:/y\n");
    let files: Vec<&FioFile> = plan.stages[0].works.iter().filter_map(|work| work.job.get()).collect();
    let try_with = |allowed: &[&str]| {
        let allowed: Vec<PathBuf> = allowed.iter().map(PathBuf::from).collect();
        let reason = SandboxError::Unsupported("it is missing".into());
        unconfined(Program::stand_in(), &files, &allowed, &reason).map(drop)
    };
    let refused = try_with(&["/y"]).unwrap_err();
    assert!(refused.ends_with("--allow-destroy '/x/my file' --allow-destroy /logs/x_bw"), "{refused}");
    assert_eq!(try_with(&["/y", "/x/my file", "/logs/x_bw"]), Ok(()));
}
