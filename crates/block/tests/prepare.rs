//! The engine made ready for a run: volumes are guarded, filled once, and filled again when they were changed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use support::{Quiet, directory};
use tidemark_block::job::Volume;
use tidemark_block::{Blocks, External, Program};
use tidemark_load::engine::{OpenError, Sessions};
use tidemark_load::thread_pool::{self, Result as Outcome, Watch};
use tidemark_measure::record::{Note, Proof};
use tidemark_plan::engine::{Carrier, Engine as _, Prepared, Process, Setup};
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::{self, Environment};

/// Stands for fio: says what it was asked for.
#[derive(Default)]
struct Other(Mutex<Vec<String>>);

struct Idle;

impl Process for Idle {
    fn run(&self, works: &[&Work], _watches: &mut [&mut dyn Watch]) -> Vec<Result<Outcome, OpenError>> {
        works.iter().map(|_| Ok(Outcome::default())).collect()
    }
}

impl External for Other {
    fn find(&self) -> Result<Program, String> {
        self.0.lock().unwrap().push("find".into());
        Ok(Program { description: "the other program".into(), process: Arc::new(Idle) })
    }

    fn ensure_image(&self, image: &Volume) -> Result<(), String> {
        self.0.lock().unwrap().push(format!("ensure {}", image.name()));
        Ok(())
    }

    fn removal(&self, images: &[Volume]) -> Box<dyn Sessions> {
        self.0.lock().unwrap().push(format!("remove {} images", images.len()));
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
struct Run {
    plan: Plan,
    ready: Box<dyn Prepared>,
    told: Vec<String>,
    notes: Vec<Note>,
}

fn run(text: &str, other: &Arc<Other>) -> Result<Run, String> {
    let blocks = Arc::new(Blocks::new(other.clone()));
    let registry = Registry::new(vec![blocks.clone()], vec![]);
    let (plan, _) = yaml::read(text, &Environment::process(&registry)).unwrap();
    let mut told = Vec::new();
    let mut setup = Setup {
        skip_preflight: false,
        allow_destroy: &[],
        scratch: None,
        writer: 1,
        ready: &mut |line| told.push(line),
    };
    let ready = blocks.prepare(&plan, &mut setup)?;
    Ok(Run { plan, ready, told, notes: Vec::new() })
}

impl Run {
    /// Carries a stage out; gives why it had nothing to do, and its proof.
    fn stage(&mut self, index: usize) -> (Vec<Option<String>>, Option<Proof>) {
        let works: Vec<&Work> = self.plan.stages[index].works.iter().collect();
        let carriers = self.ready.open(&works, &mut self.notes).unwrap();
        assert_eq!(carriers.iter().map(Carrier::works).sum::<usize>(), works.len());
        let carried = carriers.into_iter().zip(&works).map(|(carrier, work)| match carrier {
            Carrier::Sessions(sessions) => {
                thread_pool::run(&work.load, &*sessions, 1, &mut Quiet).unwrap();
                None
            }
            Carrier::Process(..) => None,
            Carrier::Done(why) => Some(why),
        });
        let done = carried.collect();
        (done, self.ready.close(&["a remark".to_owned()]))
    }
}

fn on_file(path: &Path, stages: &str) -> String {
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
    let why = "1 volumes already hold Tidemark's content and were kept";
    assert_eq!(done, [Some(why.to_owned())]);
    assert!(proof.is_none(), "nothing was moved");

    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[7; 4096], (4 << 20) - 4096).unwrap();
    let mut third = run(&text, &other).unwrap();
    assert_eq!(third.stage(0).0, [None]);
    assert_eq!(third.notes.iter().map(|note| note.topic.as_str()).collect::<Vec<_>>(), ["refilled"]);
    assert_eq!(run(&text, &other).unwrap().stage(0).0, [Some(why.to_owned())], "it was filled again");
    assert_eq!(*other.0.lock().unwrap(), [] as [String; 0], "no other program is needed");
}

#[test]
fn what_is_not_ours_is_guarded_before_anything_runs() {
    let directory = directory();
    let path = directory.path().join("thesis");
    std::fs::write(&path, vec![b'x'; 8 << 20]).unwrap();
    let other = Arc::new(Other::default());
    let refused = run(&on_file(&path, "- prepare: {}"), &other).err().unwrap();
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
    let works: Vec<Vec<Work>> = run.plan.stages.iter().map(|stage| stage.works.clone()).collect();
    let mut carriers = works
        .iter()
        .map(|works| run.ready.open(&works.iter().collect::<Vec<_>>(), &mut run.notes).unwrap().remove(0));
    assert!(matches!(carriers.next(), Some(Carrier::Process(1, _))));
    assert!(matches!(carriers.next(), Some(Carrier::Process(1, _))));
    assert!(matches!(carriers.next(), Some(Carrier::Sessions(_))));
    assert_eq!(*other.0.lock().unwrap(), ["find", "ensure p/i-1", "ensure p/i-2", "remove 2 images"]);
}
