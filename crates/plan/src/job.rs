//! What the operations of a work mean: data that only the work's engine understands.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::fmt;

/// An engine's own description of a work: its target and what its actions do.
pub trait JobData: Clone + PartialEq + fmt::Debug + Serialize + Send + Sync + 'static {
    /// The [name](crate::engine::Engine::name) of the engine that carries it out.
    fn engine(&self) -> &'static str;

    /// Whether no storage is behind it: its operations only pretend, and what is measured is the load generator.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Whether what serves it runs in the load generator's own process.
    fn is_in_process(&self) -> bool {
        false
    }

    /// How many sequences of its operations, such as lives of volumes, begin in a second at times fixed in advance; `None` where each begins
    /// when the worker's last one has ended, and where operations are no steps of sequences.
    fn begun_per_s(&self) -> Option<f64> {
        None
    }
}

/// The job of a work, whatever its engine.
///
/// Serialized it is `{engine, data}`. What is deserialized stays packed, because only the engine knows its form:
/// [`Registry::unpack`](crate::registry::Registry::unpack) unpacks all jobs of a plan.
pub struct Job(Box<dyn Erased>);

/// A job in the form in which it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Packed {
    pub(crate) engine: String,
    pub(crate) data: serde_json::Value,
}

trait Erased: Send + Sync {
    fn engine(&self) -> &str;
    fn is_simulated(&self) -> bool;
    fn is_in_process(&self) -> bool;
    fn begun_per_s(&self) -> Option<f64>;
    fn duplicate(&self) -> Box<dyn Erased>;
    fn equals(&self, other: &dyn Erased) -> bool;
    fn debug(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn pack(&self) -> Result<Packed, serde_json::Error>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: JobData> Erased for T {
    fn engine(&self) -> &str {
        JobData::engine(self)
    }

    fn is_simulated(&self) -> bool {
        JobData::is_simulated(self)
    }

    fn is_in_process(&self) -> bool {
        JobData::is_in_process(self)
    }

    fn begun_per_s(&self) -> Option<f64> {
        JobData::begun_per_s(self)
    }

    fn duplicate(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn Erased) -> bool {
        other.as_any().downcast_ref::<T>().is_some_and(|other| self == other)
    }

    fn debug(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }

    fn pack(&self) -> Result<Packed, serde_json::Error> {
        Ok(Packed { engine: JobData::engine(self).to_owned(), data: serde_json::to_value(self)? })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Erased for Packed {
    fn engine(&self) -> &str {
        &self.engine
    }

    fn is_simulated(&self) -> bool {
        false
    }

    fn is_in_process(&self) -> bool {
        false
    }

    fn begun_per_s(&self) -> Option<f64> {
        None
    }

    fn duplicate(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn Erased) -> bool {
        other.as_any().downcast_ref::<Packed>().is_some_and(|other| self == other)
    }

    fn debug(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its data may hold secrets.
        write!(formatter, "Packed({})", self.engine)
    }

    fn pack(&self) -> Result<Packed, serde_json::Error> {
        Ok(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Job {
    /// The job of an engine.
    pub fn new(data: impl JobData) -> Self {
        Self(Box::new(data))
    }

    /// The name of the engine that carries it out.
    pub fn engine(&self) -> &str {
        self.0.engine()
    }

    /// Whether no storage is behind it; of a job that is still packed nobody knows.
    pub fn is_simulated(&self) -> bool {
        self.0.is_simulated()
    }

    /// Whether what serves it runs in the load generator's own process; of a job that is still packed nobody knows.
    pub fn is_in_process(&self) -> bool {
        self.0.is_in_process()
    }

    /// As [`JobData::begun_per_s`]; of a job that is still packed nobody knows.
    pub fn begun_per_s(&self) -> Option<f64> {
        self.0.begun_per_s()
    }

    /// The job as its engine sees it; `None` if it is of another engine or still packed.
    pub fn get<T: JobData>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// As [`Job::get`], to change it.
    pub fn get_mut<T: JobData>(&mut self) -> Option<&mut T> {
        self.0.as_any_mut().downcast_mut()
    }

    /// Its data in the form in which it travels, if it is packed.
    pub(crate) fn packed(&self) -> Option<&Packed> {
        self.0.as_any().downcast_ref()
    }
}

impl Clone for Job {
    fn clone(&self) -> Self {
        Self(self.0.duplicate())
    }
}

impl PartialEq for Job {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(formatter)
    }
}

impl Serialize for Job {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.pack().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Job {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Packed::deserialize(deserializer).map(|packed| Self(Box::new(packed)))
    }
}
