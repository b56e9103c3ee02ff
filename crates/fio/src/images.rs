//! Removing images of a Ceph cluster: the one thing that a cleanup does to them.

use crate::rbd;
use tidemark_block::job::Volume;
use tidemark_load::engine::{
    Begin, Clock, Completion, OpenError, Operation, Outcome, Session, Sessions, ThreadContext, Tick,
};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Example;

/// Failures that are kept word for word.
const EXAMPLES: usize = 3;

/// The images, and whether each may be removed whosever it is; space k is the k-th.
pub(crate) struct Images(pub(crate) Vec<(Volume, bool)>);

impl Sessions for Images {
    fn open(&self, thread: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        Ok(Box::new(Removal { images: self.0.clone(), clock: thread.clock, examples: Vec::new() }))
    }
}

struct Removal {
    images: Vec<(Volume, bool)>,
    clock: Clock,
    examples: Vec<Example>,
}

impl Session for Removal {
    fn begin(&mut self, _lane: u32, operation: &Operation, _sent: Tick) -> Begin {
        let image = self.images.get((operation.space as usize).wrapping_sub(1));
        let outcome = match image.map(|(volume, allowed)| rbd::remove(volume, *allowed)) {
            Some(Ok(())) => Outcome::success(0),
            Some(Err(error)) => {
                if self.examples.len() < EXAMPLES {
                    self.examples.push(Example { fault: Fault::Local, text: error.to_string() });
                }
                Outcome::failure(Fault::Local)
            }
            None => Outcome::failure(Fault::NotFound),
        };
        Begin::Done(self.clock.now(), outcome)
    }

    fn reap(&mut self, until: Tick, _ended: &mut Vec<Completion>) {
        let left = until.saturating_sub(self.clock.now());
        std::thread::sleep(std::time::Duration::from_nanos(left));
    }

    fn abandon(&mut self) {}

    fn examples(&mut self) -> Vec<Example> {
        std::mem::take(&mut self.examples)
    }
}
