//! What the controller knows, in the words of the API.

use crate::api::{self, DriverState, LiveNode, SubmissionState};
use crate::queue::Left;
use crate::state::{Entry, Request, State};
use tidemark_fleet::fleet::{Member, Presence};
use tidemark_store::Submission;

/// States and their names in the store.
const STATES: [(SubmissionState, &str); 6] = [
    (SubmissionState::Queued, "queued"),
    (SubmissionState::Running, "running"),
    (SubmissionState::Completed, "completed"),
    (SubmissionState::Failed, "failed"),
    (SubmissionState::Cancelled, "cancelled"),
    (SubmissionState::Interrupted, "interrupted"),
];

/// A state's name in the store.
pub(crate) fn state_name(state: SubmissionState) -> &'static str {
    STATES.iter().find(|(own, _)| *own == state).map_or("interrupted", |(_, name)| name)
}

fn state_of(name: &str) -> SubmissionState {
    STATES.iter().find(|(_, own)| *own == name).map_or(SubmissionState::Interrupted, |(state, _)| *state)
}

/// A submission that has ended. `unsaved`: whether its run is not in the store yet.
pub(crate) fn ended(stored: &Submission, unsaved: bool) -> api::Submission {
    let ms = |ns: u64| ns / 1_000_000;
    let request = Request::of(stored);
    let reason = match unsaved {
        true if stored.reason.is_empty() => "its result is not stored yet".into(),
        true => format!("{}; its result is not stored yet", stored.reason),
        false => stored.reason.clone(),
    };
    api::Submission {
        id: stored.id,
        name: stored.name.clone(),
        format: stored.format.clone(),
        by: stored.by.clone(),
        priority: stored.priority,
        state: state_of(&stored.state),
        reason,
        submitted_unix_ms: ms(stored.submitted_unix_ns),
        started_unix_ms: stored.started_unix_ns.map(ms),
        ended_unix_ms: stored.ended_unix_ns.map(ms),
        expected_ms: request.expected_ms,
        progress: None,
        stage: String::new(),
        drivers: request.drivers,
        run: stored.run,
        evaluation: stored.evaluation,
        valid: stored.valid,
        headline: stored.headline.clone(),
        rates: Vec::new(),
        operations: stored.operations.clone(),
    }
}

/// A submission that waits or goes on.
pub(crate) fn active(entry: &Entry) -> api::Submission {
    let own = ended(&entry.stored, false);
    let Some(running) = &entry.running else { return own };
    let (stage, progress) = running.live.progress();
    let reason = match running.cancelled {
        true => "being cancelled".into(),
        false => own.reason,
    };
    let (drivers, rates) = (running.drivers.clone(), running.live.rates());
    let evaluation = own.evaluation.or(running.live.evaluation());
    api::Submission { stage, progress, reason, drivers, rates, evaluation, ..own }
}

/// A driver; `submission` has it.
fn driver(member: &Member, submission: Option<u64>, left: Option<Left>) -> api::Driver {
    let hello = &member.hello;
    let ending = left.filter(|_| submission.is_none());
    api::Driver {
        name: hello.name.clone(),
        state: match (member.presence, submission) {
            (Presence::Gone, _) => DriverState::Gone,
            (Presence::Silent, _) => DriverState::Silent,
            (Presence::Present, Some(_)) => DriverState::Busy,
            (Presence::Present, None) if ending.is_some() => DriverState::Ending,
            (Presence::Present, None) => DriverState::Idle,
        },
        host: hello.host.clone(),
        address: member.address.clone(),
        version: hello.tidemark.clone(),
        utilization: member.utilization,
        clock_error_us: (member.clock_error_ns != u64::MAX).then_some(member.clock_error_ns as f64 / 1e3),
        silent_ms: member.silent.as_millis() as u64,
        joined_unix_ms: member.joined_unix_ms,
        submission,
        ending: ending
            .map(|Left { submission, seconds }| api::StillEnding { submission, ms: seconds * 1_000 }),
    }
}

/// All drivers by name.
pub(crate) fn drivers(members: &[Member], state: &State) -> Vec<api::Driver> {
    let holders = state.holders();
    let one = |member: &Member| {
        driver(member, holders.get(member.hello.name.as_str()).copied(), state.left(member))
    };
    members.iter().map(one).collect()
}

/// What a driver's host did.
pub(crate) fn node(member: &Member, unix_ms: u64) -> LiveNode {
    LiveNode { name: member.hello.name.clone(), generates: true, unix_ms, utilization: member.utilization }
}

/// Everything that the first page shows. `unsaved`: whether a submission's run is not in the store yet.
pub(crate) fn overview(
    state: &State,
    members: &[Member],
    troubles: Vec<String>,
    unsaved: impl Fn(u64) -> bool,
) -> api::Overview {
    let queue = state.waiting().iter().filter_map(|one| state.entries.get(&one.id)).map(active).collect();
    api::Overview {
        drivers: drivers(members, state),
        active: state.entries.values().filter(|entry| entry.running.is_some()).map(active).collect(),
        queue,
        recent: state.past.iter().map(|one| ended(&one.stored, unsaved(one.stored.id))).collect(),
        troubles,
    }
}

/// What of an overview is worth telling: that a driver has been silent for some milliseconds more is not.
pub(crate) fn essence(overview: &api::Overview) -> Vec<u8> {
    let mut essence = overview.clone();
    for driver in essence
        .drivers
        .iter_mut()
        .filter(|driver| !matches!(driver.state, DriverState::Silent | DriverState::Gone))
    {
        (driver.silent_ms, driver.clock_error_us) = (0, None);
    }
    serde_json::to_vec(&essence).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::member;

    #[test]
    fn a_clock_that_is_not_known_has_no_uncertainty() {
        let known = driver(&member("d1"), None, None);
        let unknown = driver(&Member { clock_error_ns: u64::MAX, ..member("d2") }, None, None);
        assert_eq!((known.clock_error_us, unknown.clock_error_us), (Some(5.0), None));
        assert!(serde_json::to_value(&unknown).unwrap()["clock_error_us"].is_null());
    }
}
