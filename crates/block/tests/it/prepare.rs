//! The engine made ready for a run: volumes are guarded, filled once, and filled again when they were changed.

use crate::support::{Loop, Quiet, directory};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tidemark_block::job::Volume;
use tidemark_block::{Blocks, External, Image, OsdCounters, Program};
use tidemark_load::engine::{OpenError, Sessions};
use tidemark_load::thread_pool::{self, Result as Outcome, Watch};
use tidemark_measure::record::{Note, Proof};
use tidemark_plan::engine::{Carrier, Engine as _, Prepared, Process, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::{self, Environment};

/// Stands for fio and the cluster: says what it was asked for.
pub(crate) struct Other {
    asked: Mutex<Vec<String>>,
    image: Image,
    /// What is found in its place after so many answers.
    later: Option<(usize, Image)>,
}

impl Default for Other {
    fn default() -> Self {
        Self { asked: Mutex::default(), image: Image::Absent, later: None }
    }
}

impl Other {
    fn hear(&self, text: String) {
        self.asked.lock().unwrap().push(text);
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

struct Idle;

impl Process for Idle {
    fn run(&self, works: &[&Work], _watches: &mut [&mut dyn Watch]) -> Vec<Result<Outcome, OpenError>> {
        works.iter().map(|_| Ok(Outcome::default())).collect()
    }
}

impl External for Other {
    fn find(&self) -> Result<Program, String> {
        self.hear("find".into());
        Ok(Program { description: "the other program".into(), process: Box::new(|_| Arc::new(Idle)) })
    }

    fn find_image(&self, image: &Volume) -> Result<Image, String> {
        self.hear(format!("find {}", image.name()));
        let finds = self.asked().iter().filter(|asked| asked.starts_with("find ")).count();
        let later = self.later.as_ref().filter(|(answers, _)| finds > *answers);
        Ok(later.map_or(&self.image, |(_, image)| image).clone())
    }

    fn ensure_image(&self, image: &Volume) -> Result<(), String> {
        self.hear(format!("ensure {}", image.name()));
        Ok(())
    }

    fn mark_image(&self, image: &Volume) -> Result<(), String> {
        self.hear(format!("mark {}", image.name()));
        Ok(())
    }

    fn osd_counters(&self, images: &[Volume]) -> Result<OsdCounters, String> {
        self.hear(format!("count {} images", images.len()));
        Err("there are none".into())
    }

    fn removal(&self, images: &[Volume], allow: &[PathBuf]) -> Box<dyn Sessions> {
        self.hear(format!("remove {} images, allowed {allow:?}", images.len()));
        Box::new(Nothing)
    }
}

struct Nothing;

impl Sessions for Nothing {
    fn open(
        &self,
        _thread: tidemark_load::engine::ThreadContext,
    ) -> Result<Box<dyn tidemark_load::engine::Session>, OpenError> {
        Err(OpenError("nothing is run".into()))
    }
}

/// A run of a plan: the engine made ready, and what it told.
pub(crate) struct Run {
    plan: Plan,
    ready: Box<dyn Prepared>,
    told: Vec<String>,
    notes: Vec<Note>,
}

pub(crate) fn run(text: &str, other: &Arc<Other>) -> Result<Run, String> {
    run_allowing(text, other, &[])
}

pub(crate) fn run_allowing(text: &str, other: &Arc<Other>, allow_destroy: &[PathBuf]) -> Result<Run, String> {
    let blocks = Arc::new(Blocks::new(other.clone()));
    let registry = Registry::new(vec![blocks.clone()], vec![]);
    let (plan, _) = yaml::read(text, &Environment::process(&registry)).unwrap();
    let mut told = Vec::new();
    let mut setup = Setup {
        skip_preflight: false,
        allow_destroy,
        scratch: None,
        writer: 1,
        access: Default::default(),
        threads: None,
        ready: &mut |line| told.push(line),
    };
    let ready = blocks.prepare(&plan, &mut setup)?;
    Ok(Run { plan, ready, told, notes: Vec::new() })
}

fn stage<'a>(works: &'a [&'a Work]) -> StageWorks<'a> {
    StageWorks { index: 0, works, shares: &[] }
}

impl Run {
    /// Carries a stage out; gives why it had nothing to do, and its proof.
    pub(crate) fn stage(&mut self, index: usize) -> (Vec<Option<String>>, Option<Proof>) {
        self.stage_with(index, || {})
    }

    /// Why a stage cannot be opened.
    pub(crate) fn refusal(&mut self, index: usize) -> String {
        let works: Vec<&Work> = self.plan.stages[index].works.iter().collect();
        self.ready.open(stage(&works), &mut self.notes).err().expect("the stage was opened")
    }

    /// Carries a stage out, with what is done by others between its opening and its load.
    pub(crate) fn stage_with(
        &mut self,
        index: usize,
        others: impl FnOnce(),
    ) -> (Vec<Option<String>>, Option<Proof>) {
        let works: Vec<&Work> = self.plan.stages[index].works.iter().collect();
        let carriers = self.ready.open(stage(&works), &mut self.notes).unwrap();
        others();
        assert_eq!(carriers.iter().map(Carrier::works).sum::<usize>(), works.len());
        let carried = carriers.into_iter().zip(&works).map(|(carrier, work)| match carrier {
            Carrier::Sessions(sessions) => {
                thread_pool::run(&work.load, &*sessions, 1, &mut Quiet).unwrap();
                None
            }
            Carrier::Process(..) | Carrier::Helper(_) => None,
            Carrier::Done(why) => Some(why),
        });
        let done = carried.collect();
        (done, self.ready.close(&["a remark".to_owned()]))
    }
}

pub(crate) fn on_file(path: &Path, stages: &str) -> String {
    format!(
        "name: t\ntarget: {{kind: file, path: {}, size: 4MiB, direct: false}}\nstages:\n{stages}\n",
        path.display()
    )
}

#[test]
fn a_volume_is_filled_once_and_again_when_it_was_changed() {
    let directory = directory();
    let path = directory.path().join("volume");
    let (text, other) = (on_file(&path, "- prepare: {}"), Arc::new(Other::default()));
    let mut first = run(&text, &other).unwrap();
    assert!(first.told.len() == 1 && first.told[0].contains("volume"), "{:?}", first.told);
    let (done, proof) = first.stage(0);
    assert_eq!((done, first.notes.len()), (vec![None], 0));
    assert!(proof.unwrap().setup.contains(&"a remark".to_owned()));

    let mut second = run(&text, &other).unwrap();
    let (done, proof) = second.stage(0);
    let why = "the volume already holds Tidemark's content and was kept";
    assert_eq!(done, [Some(why.to_owned())]);
    assert!(proof.is_none(), "nothing was moved");

    // Of another form: it is ours to fill again.
    let text = text.replace("stages:", "content: {compressible: 50%}\nstages:");
    let mut third = run(&text, &other).unwrap();
    assert_eq!(third.stage(0).0, [None]);
    assert_eq!(third.notes.iter().map(|note| note.topic.as_str()).collect::<Vec<_>>(), ["refilled"]);
    assert_eq!(run(&text, &other).unwrap().stage(0).0, [Some(why.to_owned())], "it was filled again");
    assert_eq!(other.asked(), [] as [String; 0], "no other program is needed");
}

#[test]
fn what_somebody_put_into_or_behind_a_volume_of_ours_is_not_overwritten() {
    let directory = directory();
    let path = directory.path().join("volume");
    let (text, other) = (on_file(&path, "- prepare: {}\n- cleanup: {}"), Arc::new(Other::default()));
    run(&text, &other).unwrap().stage(0);
    assert!(run(&text, &other).is_ok());
    let open = || std::fs::File::options().write(true).open(&path).unwrap();
    for at in [3 << 20, 9 << 20] {
        std::thread::sleep(std::time::Duration::from_millis(20));
        open().write_all_at(b"a chapter of a thesis", at).unwrap();
        let refused = run(&text, &other).err().unwrap();
        assert!(refused.contains("--allow-destroy") && refused.contains("removed"), "{refused}");
        // Without the mark, as on file systems that keep none.
        let _ = rustix::fs::removexattr(&path, "user.tidemark");
        let refused = run(&text, &other).err().unwrap();
        assert!(refused.contains(&format!("at byte {at}")), "{refused}");
        open().set_len(4 << 20).unwrap();
        let mut allowed = run_allowing(&text, &other, std::slice::from_ref(&path)).unwrap();
        allowed.stage(0);
        assert!(run(&text, &other).is_ok(), "given up, and Tidemark's again");
    }
}

#[test]
fn a_run_that_was_killed_leaves_a_volume_that_can_be_filled_again() {
    let directory = directory();
    let path = directory.path().join("volume");
    let (text, other) = (on_file(&path, "- prepare: {}"), Arc::new(Other::default()));
    let mut killed = run(&text, &other).unwrap();
    let works: Vec<&Work> = killed.plan.stages[0].works.iter().collect();
    let Carrier::Sessions(sessions) = killed.ready.open(stage(&works), &mut killed.notes).unwrap().remove(0)
    else {
        panic!("it is filled");
    };
    thread_pool::run(&works[0].load, &*sessions, 1, &mut Quiet).unwrap();
    // Its end is never marked.
    assert!(run(&text, &other).is_ok());
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"a chapter of a thesis", 1 << 20).unwrap();
    assert!(run(&text, &other).err().unwrap().contains("at byte 1048576"));
}

#[test]
fn what_is_only_read_is_read_as_it_is_and_never_filled() {
    let directory = directory();
    let path = directory.path().join("thesis");
    std::fs::write(&path, vec![b'x'; 8 << 20]).unwrap();
    let other = Arc::new(Other::default());
    let reads = "- prepare: {}\n- load: {pattern: randread, block_size: 4KiB, total_operations: 8}";
    let mut reading = run(&on_file(&path, reads), &other).unwrap();
    assert!(reading.told[0].contains("did not write") && reading.told[0].contains("left as it is"));
    let (done, _) = reading.stage(0);
    assert!(done[0].as_ref().unwrap().contains("only read"), "{done:?}");
    assert_eq!(std::fs::read(&path).unwrap(), vec![b'x'; 8 << 20]);
    // What cannot be read in its place is not destroyed either, nor is that offered.
    let larger = on_file(&path, reads).replace("size: 4MiB", "size: 16MiB");
    let refused = run(&larger, &other).err().unwrap();
    assert!(refused.contains("8388608") && !refused.contains("--allow-destroy"), "{refused}");
    let verified = on_file(&path, reads).replace("stages:", "content: {verify: true}\nstages:");
    let refused = run(&verified, &other).err().unwrap();
    assert!(refused.contains("verif") && !refused.contains("--allow-destroy"), "{refused}");
    let written = on_file(&path, &reads.replace("randread", "randrw"));
    assert!(run(&written, &other).err().unwrap().contains("--allow-destroy"));
}

#[test]
fn what_is_not_ours_is_guarded_before_anything_runs() {
    let directory = directory();
    let path = directory.path().join("thesis");
    std::fs::write(&path, vec![b'x'; 8 << 20]).unwrap();
    let other = Arc::new(Other::default());
    let writes = "- prepare: {}\n- load: {pattern: write, block_size: 4KiB, total_operations: 8}";
    let refused = run(&on_file(&path, writes), &other).err().unwrap();
    assert!(refused.contains("--allow-destroy"), "{refused}");
    let reads = "- load: {pattern: read, block_size: 4KiB, total_operations: 8}";
    assert!(run(&on_file(&path, reads), &other).is_ok(), "reading harms nothing");
}

#[test]
fn images_are_the_other_programs_business() {
    let text = "name: t\ntarget: {kind: rbd, pool: p, image: i, count: 2, size: 4MiB}\nstages:\n- prepare: {}\n\
                - load: {pattern: read, block_size: 4KiB, for: 1s}\n- cleanup: {}\n";
    let other = Arc::new(Other::default());
    let mut run = run(text, &other).unwrap();
    assert_eq!(run.told, ["the other program", "2 RBD images, p/i-1 to p/i-2, through fio"]);
    assert_eq!(other.asked(), ["find", "find p/i-1", "find p/i-2"], "they are guarded before anything runs");
    other.asked.lock().unwrap().clear();
    let works: Vec<Vec<Work>> = run.plan.stages.iter().map(|stage| stage.works.clone()).collect();
    let carriers = works.iter().map(|works| {
        let carrier =
            run.ready.open(stage(&works.iter().collect::<Vec<_>>()), &mut run.notes).unwrap().remove(0);
        run.ready.close(&[]);
        carrier
    });
    let mut carriers = carriers.collect::<Vec<_>>().into_iter();
    assert!(matches!(carriers.next(), Some(Carrier::Process(1, _))));
    assert!(matches!(carriers.next(), Some(Carrier::Process(1, _))));
    assert!(matches!(carriers.next(), Some(Carrier::Sessions(_))));
    let asked = [
        "find p/i-1",
        "find p/i-2",
        "ensure p/i-1",
        "ensure p/i-2",
        "count 2 images",
        "mark p/i-1",
        "mark p/i-2",
        "count 2 images",
        "remove 2 images, allowed []",
    ];
    assert_eq!(other.asked(), asked, "what was written is marked, what was read is not");
}

#[test]
fn images_of_somebody_else_are_neither_overwritten_nor_removed_unasked() {
    let stages = |stages: &str| {
        format!("name: t\ntarget: {{kind: rbd, pool: p, image: i, size: 4MiB}}\nstages:\n{stages}")
    };
    let reads = "- load: {pattern: read, block_size: 4KiB, for: 1s}\n";
    let writes = "- load: {pattern: write, block_size: 4KiB, for: 1s}\n";
    let fills = "- prepare: {}\n";
    let removes = "- cleanup: {}\n";
    let foreign = Image::Foreign("it is an RBD image that Tidemark did not make".into());
    let allowed = [PathBuf::from("p/i-1")];
    for image in [foreign, Image::InUse("a client at 10.0.0.1 has it open".into())] {
        let other = Arc::new(Other { image, ..Other::default() });
        for text in [writes.to_owned(), removes.to_owned(), format!("{fills}{reads}{removes}")] {
            let refused = run(&stages(&text), &other).err().unwrap();
            assert!(refused.contains("p/i-1") && refused.contains("--allow-destroy p/i-1"), "{refused}");
            assert!(run_allowing(&stages(&text), &other, &allowed).is_ok());
        }
        assert!(run(&stages(reads), &other).is_ok(), "reading harms nothing");
    }
    let other = Arc::new(Other { image: Image::Foreign("it is somebody's".into()), ..Other::default() });
    let mut reading = run(&stages(&format!("{fills}{reads}")), &other).unwrap();
    assert!(reading.stage(0).0[0].as_ref().unwrap().contains("only read"));
    assert!(!other.asked().iter().any(|asked| asked.starts_with("ensure")), "nothing is filled");
    let blank = Arc::new(Other { image: Image::Blank, ..Other::default() });
    assert!(run(&stages(writes), &blank).is_ok());
    assert!(run(&stages(removes), &blank).err().unwrap().contains("--allow-destroy p/i-1"));
    // Made by somebody else after the run began.
    let foreign = Image::Foreign("it is somebody's".into());
    let late = Arc::new(Other { later: Some((1, foreign)), ..Other::default() });
    for text in [fills, writes, removes] {
        late.asked.lock().unwrap().clear();
        let refused = run(&stages(text), &late).unwrap().refusal(0);
        assert!(refused.contains("--allow-destroy p/i-1"), "{refused}");
    }
    let ours = Arc::new(Other { image: Image::Ours, ..Other::default() });
    assert!(run(&stages(&format!("{fills}{writes}{removes}")), &ours).is_ok());
}

#[test]
fn what_is_behind_a_loop_device_is_counted_too() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 32 << 20, 512) else { return };
    let stages = "- prepare: {}\n- load: {pattern: read, block_size: 1MiB, total_bytes: 32MiB}\n";
    let text = format!("name: t\ntarget: {{kind: device, path: {}}}\nstages:\n{stages}", disk.name());
    let mut run = run(&text, &Arc::new(Other::default())).unwrap();
    run.stage(0);
    let proof = run.stage(1).1.unwrap();
    let device = &proof.devices[0];
    assert!(device.read_bytes >= 32 << 20, "{device:?}");
    assert!(proof.own.is_none_or(|own| own.read_bytes >= 32 << 20), "{:?}", proof.own);
    let file = std::fs::canonicalize(&disk.file).unwrap().display().to_string();
    match &device.behind {
        Some(behind) => assert!(behind.file == file && !behind.device.is_empty(), "{behind:?}"),
        None => assert!(proof.unchecked.iter().any(|text| text.contains(&file)), "{:?}", proof.unchecked),
    }
}

#[test]
fn a_device_that_the_kernel_does_not_count_proves_nothing() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 4 << 20, 512) else { return };
    let stages = "- prepare: {}\n- load: {pattern: read, block_size: 1MiB, total_bytes: 4MiB}\n";
    let text = format!("name: t\ntarget: {{kind: device, path: {}}}\nstages:\n{stages}", disk.name());
    let mut run = run(&text, &Arc::new(Other::default())).unwrap();
    run.stage(0);
    disk.count("0");
    let proof = run.stage(1).1.unwrap();
    assert!(proof.devices.is_empty(), "{:?}", proof.devices);
    let switch = "queue/iostats to have them counted";
    assert!(proof.unchecked.iter().any(|text| text.contains(switch)), "{:?}", proof.unchecked);
}
