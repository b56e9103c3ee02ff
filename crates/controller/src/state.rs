//! What the controller knows of submissions: those that wait, those that run, those that ended lately. Data only.

use crate::api::SubmissionState;
use crate::live::Live;
use crate::queue::{self, Assignment, Driver, Left, Requirements, Waiting};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tidemark_fleet::fleet::{Member, Presence};
use tidemark_measure::record::Run;
use tidemark_plan::plan::Wanted;
use tidemark_store::Submission;

/// Submissions that ended and stand on the first page.
pub(crate) const RECENT: usize = 20;

/// What was asked for beside the document, and what it takes to decide when it begins: stored as JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Request {
    pub(crate) drivers: Vec<String>,
    pub(crate) driver_count: Option<u32>,
    pub(crate) seed: Option<u64>,
    pub(crate) skip_preflight: bool,
    /// As [`Requirements`].
    pub(crate) wanted: Wanted,
    pub(crate) pinned: Vec<String>,
    pub(crate) expected_ms: Option<u64>,
}

impl Request {
    pub(crate) fn of(submission: &Submission) -> Self {
        serde_json::from_str(&submission.request).unwrap_or_default()
    }

    pub(crate) fn requirements(&self) -> Requirements {
        Requirements { wanted: self.wanted.clone(), pinned: self.pinned.iter().cloned().collect() }
    }
}

/// A submission that waits or goes on.
pub(crate) struct Entry {
    pub(crate) stored: Submission,
    pub(crate) request: Request,
    /// Once it goes on.
    pub(crate) running: Option<Running>,
}

/// What a submission that goes on has.
pub(crate) struct Running {
    pub(crate) drivers: Vec<String>,
    pub(crate) live: Arc<Live>,
    pub(crate) cancelled: bool,
}

/// A submission that ended while this controller was there, or shortly before.
pub(crate) struct Ended {
    pub(crate) stored: Submission,
    pub(crate) live: Option<Arc<Live>>,
}

/// How a submission ended.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) state: SubmissionState,
    pub(crate) reason: String,
    pub(crate) run: Option<u64>,
    pub(crate) evaluation: Option<u64>,
    pub(crate) valid: Option<bool>,
    pub(crate) headline: String,
    /// A run that the store does not have, or not whole.
    pub(crate) unstored: Option<Box<Run>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) ending: bool,
    pub(crate) entries: BTreeMap<u64, Entry>,
    /// The newest first.
    pub(crate) past: VecDeque<Ended>,
    /// The submission that had a driver last, by the driver's name.
    pub(crate) last: BTreeMap<String, u64>,
}

impl State {
    /// What waits, in its order.
    pub(crate) fn waiting(&self) -> Vec<Waiting> {
        let waits = self.entries.values().filter(|entry| entry.running.is_none());
        let one = |entry: &Entry| Waiting {
            id: entry.stored.id,
            priority: entry.stored.priority,
            position: entry.stored.position,
            requirements: entry.request.requirements(),
        };
        let mut waiting: Vec<Waiting> = waits.map(one).collect();
        queue::sort(&mut waiting);
        waiting
    }

    /// Who has which driver.
    pub(crate) fn holders(&self) -> BTreeMap<&str, u64> {
        let running =
            self.entries.values().filter_map(|entry| Some((entry.stored.id, entry.running.as_ref()?)));
        running
            .flat_map(|(id, running)| running.drivers.iter().map(move |name| (name.as_str(), id)))
            .collect()
    }

    /// What a driver still ends.
    pub(crate) fn left(&self, member: &Member) -> Option<Left> {
        let ending = member.ending?;
        let submission = self.last.get(&member.hello.name).copied();
        Some(Left { submission, seconds: ending.since.elapsed().as_secs() })
    }

    pub(crate) fn drivers(&self, members: &[Member]) -> BTreeMap<String, Driver> {
        let holders = self.holders();
        let there = members.iter().filter(|member| member.presence != Presence::Gone);
        let driver = |member: &Member| {
            let assignment = match holders.get(member.hello.name.as_str()) {
                Some(id) => Assignment::Submission(*id),
                None if member.run.is_some() => Assignment::Releasing,
                None => self.left(member).map_or(Assignment::Free, Assignment::Ending),
            };
            let answers = member.presence == Presence::Present;
            (member.hello.name.clone(), Driver { answers, assignment })
        };
        there.map(driver).collect()
    }

    /// Runs of submissions that ended were stored.
    pub(crate) fn number(&mut self, stored: &[(u64, u64)]) {
        for (id, run) in stored {
            self.past
                .iter_mut()
                .filter(|past| past.stored.id == *id)
                .for_each(|past| past.stored.run = Some(*run));
        }
    }

    pub(crate) fn remember(&mut self, stored: Submission, live: Option<Arc<Live>>) {
        self.past.push_front(Ended { stored, live });
        self.past.truncate(RECENT);
    }
}
