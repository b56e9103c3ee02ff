//! What the tests of this crate share: an engine's session, driven by hand.

pub(crate) mod swift;

use std::sync::Arc;
use std::time::Instant;
use tidemark_load::engine::{
    Begin, Clock, Completion, Operation, Outcome, Session, Sessions, ThreadContext, Tick,
};
use tidemark_measure::record::Example;
use tidemark_object::content::DataSet;
use tidemark_object::job::{Action, Content, Form, Http, Job, Naming, S3, Target, Verb};
use tidemark_object::sessions;
use tidemark_plan::secret::Secret;

pub(crate) const MS: u64 = 1_000_000;

/// How long a request may take, in ns: a limit that only keeps a test from hanging. A Ceph cluster on two busy processors takes
/// more than five seconds for some.
pub(crate) const PATIENCE_NS: u64 = 60_000 * MS;

/// An S3 target with one endpoint and quick retries, none unless asked for.
pub(crate) fn s3(endpoint: &str, access_key: &str, secret_key: &str) -> S3 {
    let http = Http {
        endpoints: vec![endpoint.into()],
        timeout_ns: PATIENCE_NS,
        back_off_ns: MS,
        back_off_most_ns: 4 * MS,
        ..Http::default()
    };
    S3 {
        http,
        access_key: access_key.into(),
        secret_key: Secret::new(secret_key),
        session_token: None,
        region: "us-east-1".into(),
        path_style: true,
        sign_payload: false,
        storage_class: None,
        encryption: None,
    }
}

/// Containers `box1`, `box2` ..., objects `o1`, `o2` ...
pub(crate) fn naming() -> Naming {
    Naming { container_prefix: "box".into(), object_prefix: "o".into(), ..Naming::default() }
}

/// Actions with these verbs, whose reads verify.
pub(crate) fn actions(verbs: &[Verb]) -> Vec<Action> {
    let content = Content { form: Form::Seeded { compressible: 0.0, duplicate: 0.0 }, verify: true };
    verbs.iter().map(|verb| Action { verb: verb.clone(), naming: naming(), content }).collect()
}

pub(crate) const PUT: Verb = Verb::Put { chunked: false, if_absent: false };

/// A session, and its clock.
pub(crate) struct Run {
    pub(crate) session: Box<dyn Session>,
    pub(crate) clock: Clock,
    verbs: Vec<Verb>,
    _engine: Box<dyn Sessions>,
}

impl Run {
    pub(crate) fn of(target: Target, actions: Vec<Action>, slots: u32) -> Self {
        Self::sharing(&DataSet::new(7, 1, 1000, Default::default()), target, actions, slots)
    }

    pub(crate) fn sharing(data: &Arc<DataSet>, target: Target, actions: Vec<Action>, slots: u32) -> Self {
        let verbs = actions.iter().map(|action| action.verb.clone()).collect();
        let engine = sessions::open(&Job { target, actions }, data).unwrap();
        let clock = Clock::starting_at(Instant::now());
        let session = engine
            .open(ThreadContext { clock, thread: 0, first_slot: 0, slots, largest: 1 << 20, seed: 7 })
            .unwrap();
        Self { session, clock, verbs, _engine: engine }
    }

    pub(crate) fn s3(target: &S3, verbs: &[Verb], slots: u32) -> Self {
        Self::of(Target::S3(target.clone()), actions(verbs), slots)
    }

    /// Does one operation on slot 0.
    pub(crate) fn one(&mut self, verb: &Verb, space: u64, item: u64, bytes: u64) -> Outcome {
        let action = self.verbs.iter().position(|known| known == verb).unwrap() as u16;
        self.perform(0, &Operation { action, space, item, bytes, random: item << 40 | 12345 }).outcome
    }

    pub(crate) fn perform(&mut self, slot: u32, operation: &Operation) -> Completion {
        match self.session.begin(slot, operation, self.clock.now()) {
            Begin::Done(done, outcome) => Completion { slot, done, outcome },
            Begin::Started => self.wait(1).remove(0),
        }
    }

    /// Waits for so many completions.
    pub(crate) fn wait(&mut self, count: usize) -> Vec<Completion> {
        let mut ended = Vec::new();
        let until: Tick = self.clock.now() + 2 * PATIENCE_NS;
        while ended.len() < count {
            self.session.reap(until, &mut ended);
            assert!(self.clock.now() < until, "{} of {count} operations ended", ended.len());
        }
        ended
    }

    pub(crate) fn examples(&mut self) -> Vec<Example> {
        self.session.examples()
    }

    /// Does one operation that must succeed.
    pub(crate) fn well(&mut self, verb: &Verb, space: u64, item: u64, bytes: u64) -> Outcome {
        let outcome = self.one(verb, space, item, bytes);
        assert_eq!(outcome.fault, None, "{verb:?}: {:?}", self.session.examples());
        outcome
    }
}
