//! Keeps a run in the store while it is in progress. Trouble with the store never stops a run: the data stays in
//! memory and is still shown and exported.

use crate::event::{Event, EventSink};
use crate::listing;
use tidemark_measure::record::{Run, ShareSecond};
use tidemark_measure::tally::Interval;
use tidemark_store::{DriverSecond, Store};

/// The store, or what is left of it.
pub(crate) struct RunWriter<'a> {
    store: Option<&'a mut Store>,
    id: u64,
    /// What drivers did in seconds that are not complete yet: stage, work, and that.
    shares: Vec<(usize, usize, DriverSecond)>,
}

impl<'a> RunWriter<'a> {
    /// Begins to keep `run`, and gives it its number.
    pub(crate) fn begin(store: Option<&'a mut Store>, run: &mut Run, sink: &mut dyn EventSink) -> Self {
        let mut writer = Self { store, id: 0, shares: Vec::new() };
        if let Some(store) = &mut writer.store {
            match store.begin(run) {
                Ok(id) => (writer.id, run.id) = (id, id),
                Err(error) => writer.give_up(&error.to_string(), sink),
            }
        }
        writer
    }

    /// What a driver did in a second of a work: it is kept with the second, which follows.
    pub(crate) fn share(&mut self, stage: usize, work: usize, driver: u32, second: ShareSecond) {
        if self.store.is_some() {
            self.shares.push((stage, work, DriverSecond { driver, second }));
        }
    }

    /// Keeps one second of a work.
    pub(crate) fn second(
        &mut self,
        stage: usize,
        work: usize,
        interval: &Interval,
        sink: &mut dyn EventSink,
    ) {
        let Some(store) = &mut self.store else { return };
        let belongs = |(of, to, share): &mut (usize, usize, DriverSecond)| {
            // One of an earlier stage or second came too late to count there.
            (*of, *to) < (stage, work)
                || ((*of, *to) == (stage, work) && share.second.index <= interval.index)
        };
        let due = self.shares.extract_if(.., belongs);
        let shares: Vec<_> =
            due.filter(|(of, to, _)| (*of, *to) == (stage, work)).map(|(.., share)| share).collect();
        let kept = store.append(self.id, stage, work, std::slice::from_ref(interval), &shares);
        if let Err(error) = kept {
            self.give_up(&error.to_string(), sink);
        }
    }

    /// Stores what is known so far of a stage: if this process dies, the stages that have ended are complete.
    pub(crate) fn progress(&mut self, run: &Run, stage: usize, sink: &mut dyn EventSink) {
        let Some(store) = &mut self.store else { return };
        if let Err(error) = store.keep(self.id, run, stage) {
            self.give_up(&error.to_string(), sink);
        }
    }

    /// Keeps the finished run; false when it is not in the store.
    pub(crate) fn finish(mut self, run: &Run, sink: &mut dyn EventSink) -> bool {
        let Some(store) = &mut self.store else { return false };
        match store.finish(self.id, run, &listing::of_run(run)) {
            Ok(()) => true,
            Err(error) => {
                self.give_up(&error.to_string(), sink);
                false
            }
        }
    }

    fn give_up(&mut self, reason: &str, sink: &mut dyn EventSink) {
        let text = format!("the run continues without the result store: {reason}");
        sink.event(Event::Trouble(&text));
        self.store = None;
    }
}
