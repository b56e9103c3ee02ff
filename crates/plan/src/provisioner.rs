//! What brings the storage of an arm up before its first run and takes it down after its last.
//!
//! A kind of provisioner is one [`ProvisionerKind`], listed in the program's [`Registry`](crate::registry::Registry). It
//! declares in one place the key by which an arm asks for it, what may stand there, and the variables that it brings. To
//! everybody else what an arm asks for is an opaque [`Request`]; whatever carries an evaluation out hands it back to its
//! kind, and gets a [`Provisioner`] for that arm.

use crate::plan::Observe;
use crate::yaml::environment::Environment;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tidemark_keys::tree::Entry;
use tidemark_keys::{AnyKey, Table};
use tidemark_load::stop::StopRequest;
use tidemark_measure::in_effect::InEffect;
use tidemark_measure::tuning::TakesEffect;

mod trace;

pub use trace::Trace;

/// Variables of an arm, for `${NAME}` in its loads' documents; value by name. Values may be secrets.
pub type Variables = BTreeMap<String, String>;

/// One kind of provisioner.
pub trait ProvisionerKind: Send + Sync {
    /// The key under which an arm asks for it, and what may stand there: `lab`.
    fn key(&self) -> &'static AnyKey;

    /// Reads what stands under its key in `arm`. `None` after an error.
    fn read<'a>(&self, arm: &Table<'a>, entry: &'a Entry, environment: &Environment<'_>) -> Option<Request>;

    /// The variables that it brings, and stand-ins for their values: with these, documents are checked before anything is up.
    fn variables(&self) -> &[(&'static str, &'static str)];

    /// The stand-in for the value of a variable that it brings, as far as it depends on what is asked for; `None` if it brings no
    /// such variable.
    fn stand_in(&self, _request: &Request, name: &str) -> Option<String> {
        let known = self.variables().iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| (*value).to_owned())
    }

    /// A provisioner for the arm of a request of this kind. Nothing is brought up yet. All that it writes goes into
    /// `directory`, which is for this arm alone; what is there was left behind by an earlier start.
    ///
    /// # Errors
    /// What the arm asks for that cannot be had.
    fn provisioner(
        &self,
        request: &Request,
        directory: &Path,
    ) -> Result<Box<dyn Provisioner>, ProvisionError>;

    /// What it takes until another value is in effect that stands below its key, under these keys.
    fn takes_effect(&self, _path: &[&str]) -> TakesEffect {
        TakesEffect::Rebuild
    }

    /// The storage that a user has running, as a provisioner: what is there already brings its variables at once,
    /// [`up`](Provisioner::up) puts the settings of the request into effect on it, and nothing of it is ever taken down. It is where
    /// its own command has put it, or in `directory`.
    ///
    /// # Errors
    /// There is none, it is not what the request asks for, or there are none of this kind.
    fn standing(
        &self,
        _request: &Request,
        _directory: Option<&Path>,
    ) -> Result<Box<dyn Provisioner>, ProvisionError> {
        let why = format!("a `{}` is made for one evaluation alone", self.key().name);
        Err(ProvisionError::Failed(why))
    }
}

/// Brings the storage of one arm up and takes it down. An arm may have several provisioners: each gets the variables of
/// those before it, and they are taken down in the opposite order.
///
/// Calls come in this order: [`up`](Self::up), [`wait`](Self::wait), then what it has brought ([`variables`](Self::variables),
/// [`labels`](Self::labels), [`observe`](Self::observe)); [`reset`](Self::reset) before every run; [`down`](Self::down) at
/// the end, if `up` succeeded. After `down`, `up` may come again.
pub trait Provisioner {
    /// Starts the storage.
    ///
    /// # Errors
    /// Why it could not be started. Nothing that this call has started runs any more.
    fn up(&mut self, variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError>;

    /// Waits until the storage can take load. Provisioners whose `up` has done so already leave this out.
    ///
    /// # Errors
    /// Why it did not get ready. It is taken down next.
    fn wait(&mut self, _progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        Ok(())
    }

    /// The variables that it brings: addresses, keys.
    fn variables(&self) -> Variables;

    /// What the storage is, for reports; name and value, never a secret. One with the name of the kind's key replaces the
    /// request's label.
    fn labels(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What to observe of it while a load is on.
    fn observe(&self) -> Observe {
        Observe::default()
    }

    /// Becomes what another request of its kind asks for, while it is up. The two differ only in what takes effect by
    /// [`TakesEffect::Restart`] or less.
    ///
    /// # Errors
    /// What it cannot become; it is taken down next.
    fn change_to(&mut self, _request: &Request, _progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        Ok(())
    }

    /// The settings that are in effect now, as the storage itself says them; none where nothing says it. Never a secret.
    ///
    /// # Errors
    /// Storage that does not answer.
    fn in_effect(
        &mut self,
        _variables: &Variables,
        _progress: &mut dyn Progress,
    ) -> Result<InEffect, ProvisionError> {
        Ok(InEffect::default())
    }

    /// What asks it, while a load is on, whether it is well; `None` if nothing can.
    fn probe(&self, _variables: &Variables) -> Option<Probe> {
        None
    }

    /// Makes it the same before every run.
    ///
    /// # Errors
    /// Why it could not be reset; the evaluation ends.
    fn reset(&mut self, _variables: &Variables, _progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        Ok(())
    }

    /// Waits until it has recovered from a run.
    ///
    /// # Errors
    /// Why it could not recover.
    fn recover(
        &mut self,
        _variables: &Variables,
        _progress: &mut dyn Progress,
    ) -> Result<(), ProvisionError> {
        Ok(())
    }

    /// Stops the storage and removes all that `up` made.
    ///
    /// # Errors
    /// What is still there, and why.
    fn down(&mut self, variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError>;
}

/// Whether storage is well; what is worse is greater.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// It is.
    Well,
    /// It is not, and why: what is measured now says nothing of its settings but that they do not work.
    Ill(String),
    /// Data may be lost, and why: nothing more is tried.
    AtRisk(String),
}

/// Asks storage again and again, while a load is on, whether it is well. It runs in a thread of its own.
pub type Probe = Box<dyn FnMut() -> Health + Send>;

/// Shows what a provisioner does, and tells it when to stop.
pub trait Progress {
    /// One line about a step, or of a command's output.
    fn line(&mut self, text: &str);

    /// What the user wants; asked several times a second.
    fn stop_request(&mut self) -> StopRequest;
}

/// Why a provisioner did not do what it was asked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvisionError {
    /// It failed: what happened and what to do, never a secret.
    #[error("{0}")]
    Failed(String),
    /// The user stopped it.
    #[error("stopped on request")]
    Stopped,
}

/// What an arm asks of a kind of provisioner, as that kind has read it.
#[derive(Clone)]
pub struct Request {
    key: &'static str,
    label: String,
    data: Arc<dyn Any + Send + Sync>,
}

impl Request {
    /// A request of the kind with this key. The label says what is asked for, for reports: `baseline`; never a secret.
    pub fn new<T: Any + Send + Sync>(key: &'static str, label: impl Into<String>, data: T) -> Self {
        Self { key, label: label.into(), data: Arc::new(data) }
    }

    /// The key of its kind.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// What is asked for, for reports.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The request as its kind sees it; `None` if it is of another kind.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.data.downcast_ref()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its data may hold secrets.
        write!(formatter, "Request({} {})", self.key, self.label)
    }
}
