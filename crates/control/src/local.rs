//! This process as the place where stages are carried out; a driver does its part of them with it too.

use crate::backend::{Backend, Opened, StagePlace};
use crate::event::{Event, EventSink};
use crate::execute::{ExecuteError, Options};
use crate::method::{self, Method};
use crate::targets::Targets;
use tidemark_measure::record::{Note, Proof, Run, Stage as Record};
use tidemark_plan::plan::{Plan, Stage};

/// This process.
#[derive(Default)]
pub struct LocalBackend {
    targets: Option<Targets>,
    method: Option<Method>,
}

impl LocalBackend {
    /// What was learned of the stage's volumes, after its load; `None` when it moved no blocks.
    pub fn proof(&mut self, mut remarks: Vec<String>) -> Option<Proof> {
        remarks.extend(self.targets.iter().flat_map(Targets::block_notes));
        self.method.take().map(|method| method.end(remarks))
    }
}

impl Backend for LocalBackend {
    fn prepare(
        &mut self,
        plan: &Plan,
        options: &Options,
        sink: &mut dyn EventSink,
    ) -> Result<Vec<String>, ExecuteError> {
        let targets = self.targets.insert(Targets::prepare(plan, options, sink)?);
        Ok(targets.descriptions())
    }

    fn open<'a>(
        &mut self,
        _place: StagePlace,
        stage: &'a Stage,
        notes: &mut Vec<Note>,
        sink: &mut dyn EventSink,
    ) -> Opened<'a> {
        if let Some(why) = method::already_filled(stage) {
            return Opened::Nothing(why);
        }
        for name in method::changed_since(stage) {
            let text = format!(
                "{name} does not hold Tidemark's content of this size and form: it is filled again. \
                 To check what it holds, run a verifying load without `prepare`."
            );
            sink.event(Event::Trouble(&text));
            notes.push(Note { topic: "refilled".into(), text });
        }
        let Some(targets) = &mut self.targets else { return Opened::Failed("no target was prepared".into()) };
        match targets.runners(stage) {
            Ok(runners) => {
                self.method = Method::begin(stage);
                Opened::Runners(runners)
            }
            Err(reason) => Opened::Failed(reason),
        }
    }

    fn close(&mut self, _stage: &Stage, remarks: Vec<String>, record: &mut Record) {
        record.proof = self.proof(remarks);
    }

    fn finish(&mut self, _run: &mut Run) {}
}
