//! Evidence that only one engine knows: what a [`Kind`] of it is, and what all kinds do with a record.
//!
//! An engine writes what it found out about a stage into the record under a key of its own ([`write`]). What comes of it is decided by
//! the engine's [`Evidence`] alone: how the data of several parts and drivers become one, which rules judge them, in which words, and
//! what reports show. Nothing else in Tidemark looks into them.
//!
//! Which kinds there are is a property of the program, as its engines are: the registry that has an engine [adds](install) its kinds.
//! A record with data of a kind that the program does not have is not VALID: nobody judged them.

use crate::context::{StageContext, WorkContext};
use crate::rules::Findings;
use crate::section::Section;
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use std::sync::{PoisonError, RwLock};
use tidemark_measure::record::{self, Proof, Run, Stage};

/// What one engine knows about its evidence.
pub trait Evidence: Send + Sync + 'static {
    /// What the engine writes for a stage.
    type Data: Serialize + DeserializeOwned;

    /// The key of the data in records. Records keep it: it must not change.
    const KEY: &'static str;

    /// Whether the I/O under the load is that of other programs than the load's, such as a database's server: then it is not known how they
    /// do it, and what devices see beyond the load's own process is no foreign traffic.
    const IO_ELSEWHERE: bool = false;

    /// Adds the data of another part of the same stage: of another engine's works, or of another driver.
    fn join(data: &mut Self::Data, other: Self::Data);

    /// Of what kind a work is.
    fn nature(_data: &Self::Data, _work: &str) -> Nature {
        Nature::default()
    }

    /// Judges the stage as a whole.
    fn judge_stage(_stage: &StageContext<'_>, _data: &Self::Data, _out: &mut Findings) {}

    /// Judges one work of the stage.
    fn judge_work(_work: &WorkContext<'_>, _data: &Self::Data, _out: &mut Findings) {}

    /// How much the system under the load has counted as done, of all that it does for the stage: commits. For figures per minute.
    fn counted(_data: &Self::Data) -> Option<u64> {
        None
    }

    /// Settings of the system under the load, by which arms of an evaluation may differ.
    fn settings(_data: &Self::Data) -> Vec<Setting> {
        Vec::new()
    }

    /// What reports show of all stages with such data.
    fn sections(_run: &Run, _stages: &[(&Stage, Self::Data)]) -> Vec<Section> {
        Vec::new()
    }
}

/// A setting of a system under load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name: `fsync`.
    pub name: String,
    /// Its value, as the system prints it.
    pub value: String,
    /// Whether what was acknowledged survives a crash with it; `None`: it decides something else.
    pub durable: Option<bool>,
}

/// What rules for all works need to know about a work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nature {
    /// Its operations differ from each other by orders of magnitude, as queries and files do: no time is usual, and what carries them
    /// out is as busy as it can be.
    pub uneven: bool,
    /// Its workers do something of their own between operations, which no load was promised for.
    pub works_between: bool,
    /// Its attempts are counted by its own evidence: they are no trouble of the storage.
    pub counts_attempts: bool,
}

impl Nature {
    fn or(self, other: Self) -> Self {
        Self {
            uneven: self.uneven || other.uneven,
            works_between: self.works_between || other.works_between,
            counts_attempts: self.counts_attempts || other.counts_attempts,
        }
    }
}

/// An [`Evidence`] whose data may be of any type.
pub trait Kind: Send + Sync {
    /// The key of its data.
    fn key(&self) -> &'static str;

    /// Makes one of the data of two parts of a stage.
    ///
    /// # Errors
    /// When one of them is not of this kind's form.
    fn join(&self, one: &Value, other: &Value) -> Result<Value, serde_json::Error>;

    /// Reads the data of a stage.
    ///
    /// # Errors
    /// When they are not of this kind's form.
    fn open(&self, data: &Value) -> Result<Box<dyn Opened>, serde_json::Error>;

    /// What reports show of a run. Data of another form are left out.
    fn sections(&self, run: &Run) -> Vec<Section>;
}

/// The data of a stage, read.
pub trait Opened {
    /// See [`Evidence::nature`].
    fn nature(&self, work: &str) -> Nature;
    /// See [`Evidence::IO_ELSEWHERE`].
    fn is_io_elsewhere(&self) -> bool;
    /// See [`Evidence::counted`].
    fn counted(&self) -> Option<u64>;
    /// See [`Evidence::settings`].
    fn settings(&self) -> Vec<Setting>;
    /// See [`Evidence::judge_stage`].
    fn judge_stage(&self, stage: &StageContext<'_>, out: &mut Findings);
    /// See [`Evidence::judge_work`].
    fn judge_work(&self, work: &WorkContext<'_>, out: &mut Findings);
}

struct Typed<E: Evidence>(E::Data);

impl<E: Evidence> Opened for Typed<E> {
    fn nature(&self, work: &str) -> Nature {
        E::nature(&self.0, work)
    }

    fn is_io_elsewhere(&self) -> bool {
        E::IO_ELSEWHERE
    }

    fn counted(&self) -> Option<u64> {
        E::counted(&self.0)
    }

    fn settings(&self) -> Vec<Setting> {
        E::settings(&self.0)
    }

    fn judge_stage(&self, stage: &StageContext<'_>, out: &mut Findings) {
        E::judge_stage(stage, &self.0, out);
    }

    fn judge_work(&self, work: &WorkContext<'_>, out: &mut Findings) {
        E::judge_work(work, &self.0, out);
    }
}

impl<E: Evidence> Kind for E {
    fn key(&self) -> &'static str {
        E::KEY
    }

    fn join(&self, one: &Value, other: &Value) -> Result<Value, serde_json::Error> {
        let mut data = E::Data::deserialize(one)?;
        E::join(&mut data, E::Data::deserialize(other)?);
        serde_json::to_value(data)
    }

    fn open(&self, data: &Value) -> Result<Box<dyn Opened>, serde_json::Error> {
        Ok(Box::new(Typed::<E>(E::Data::deserialize(data)?)))
    }

    fn sections(&self, run: &Run) -> Vec<Section> {
        let stages: Vec<(&Stage, E::Data)> =
            run.stages.iter().filter_map(|stage| Some((stage, read::<E>(stage)?))).collect();
        if stages.is_empty() { Vec::new() } else { E::sections(run, &stages) }
    }
}

/// The data of a stage; `None` where it has none, or of another form.
pub fn read<E: Evidence>(stage: &Stage) -> Option<E::Data> {
    let evidence = &stage.proof.as_ref()?.evidence;
    evidence.iter().any(|(key, _)| key == E::KEY).then(|| evidence.get(E::KEY)?.ok()).flatten()
}

/// Writes data into a proof. What cannot be written is named there as not checked.
pub fn write<E: Evidence>(proof: &mut Proof, data: &E::Data) {
    match serde_json::to_value(data) {
        Ok(data) => proof.evidence.insert(E::KEY, data),
        Err(error) => proof.unchecked.push(format!("The evidence `{}` was not kept: {error}.", E::KEY)),
    }
}

/// The kinds that this program has.
static KINDS: RwLock<Vec<&'static dyn Kind>> = RwLock::new(Vec::new());

/// Adds kinds to those that this program has. A registry of engines does it for its engines; that one is there already does no harm.
pub fn install(kinds: &[&'static dyn Kind]) {
    let mut known = KINDS.write().unwrap_or_else(PoisonError::into_inner);
    for kind in kinds {
        if known.iter().all(|other| other.key() != kind.key()) {
            known.push(*kind);
        }
    }
}

/// The kinds that this program has, in the order of its engines.
fn kinds() -> Vec<&'static dyn Kind> {
    KINDS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds the data of another part of the same stage. Of two that their kind cannot join, or that have no kind here, the first is kept,
/// and the key of the other is given.
pub fn join(evidence: &mut record::Evidence, other: record::Evidence) -> Vec<String> {
    let kinds = kinds();
    let mut lost = Vec::new();
    for (key, data) in other {
        let Some(known) = evidence.value(&key).cloned() else {
            evidence.insert(key, data);
            continue;
        };
        let kind = kinds.iter().find(|kind| kind.key() == key);
        match kind.map(|kind| kind.join(&known, &data)) {
            Some(Ok(joined)) => evidence.insert(key, joined),
            Some(Err(_)) | None if known == data => {}
            Some(Err(_)) | None => lost.push(key),
        }
    }
    lost
}

/// A sentence about keys whose data could not be [joined](join); `None` where there are none.
pub fn not_joined(keys: &[String]) -> Option<String> {
    let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    (!names.is_empty()).then(|| {
        format!("Only a part of the evidence {} was kept: its parts do not fit together.", names.join(", "))
    })
}

/// What all kinds show of a run.
pub fn sections(run: &Run) -> Vec<Section> {
    kinds().iter().flat_map(|kind| kind.sections(run)).collect()
}

/// The data of a stage, read by their kinds, and the keys of those that could not be.
pub(crate) fn open(proof: &Proof) -> (Vec<Box<dyn Opened>>, Vec<String>) {
    let kinds = kinds();
    let (mut opened, mut unread) = (Vec::new(), Vec::new());
    for (key, data) in proof.evidence.iter() {
        match kinds.iter().find(|kind| kind.key() == key).map(|kind| kind.open(data)) {
            Some(Ok(data)) => opened.push(data),
            Some(Err(_)) | None => unread.push(key.to_owned()),
        }
    }
    (opened, unread)
}

/// Of what kind a work is, by all data of its stage.
pub(crate) fn nature(opened: &[Box<dyn Opened>], work: &str) -> Nature {
    opened.iter().map(|data| data.nature(work)).fold(Nature::default(), Nature::or)
}

/// How much the systems under a stage have counted as done; `None` where there is none, or one did not count.
pub(crate) fn counted(proof: &Proof) -> Option<u64> {
    open(proof).0.iter().find_map(|data| data.counted())
}

/// Whether the I/O under a stage is that of other programs than the load's.
pub fn is_io_elsewhere(proof: &Proof) -> bool {
    open(proof).0.iter().any(|data| data.is_io_elsewhere())
}

/// The settings of the systems under a stage.
pub(crate) fn settings(proof: &Proof) -> Vec<Setting> {
    open(proof).0.iter().flat_map(|data| data.settings()).collect()
}
