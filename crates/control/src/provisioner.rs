//! What brings the storage of an arm up before its first run and takes it down after its last.
//!
//! An evaluation knows only these traits. The binary lists the kinds of provisioners that it has; a kind that is not in
//! the list cannot be used by any document.

pub mod commands;

use crate::event::StopRequest;
use std::collections::BTreeMap;
use std::fmt;
use tidemark_plan::evaluation::Arm;
use tidemark_plan::plan::Observe;

/// The need of an arm that has a `lab`.
pub const LAB: &str = "lab";

/// The need of an arm that has shell commands (`set_up`, `reset`, `tear_down`).
pub const COMMANDS: &str = "commands";

/// Variables of an arm, for `${NAME}` in its loads' documents; value by name. Values may be secrets.
pub type Variables = BTreeMap<String, String>;

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

    /// What the storage is, for reports; name and value, never a secret.
    fn labels(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What to observe of it while a load is on.
    fn observe(&self) -> Observe {
        Observe::default()
    }

    /// Makes it the same before every run.
    ///
    /// # Errors
    /// Why it could not be reset; the evaluation ends.
    fn reset(&mut self, _variables: &Variables, _progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        Ok(())
    }

    /// Stops the storage and removes all that `up` made.
    ///
    /// # Errors
    /// What is still there, and why.
    fn down(&mut self, variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError>;
}

/// One kind of provisioner.
pub trait ProvisionerFactory: Send + Sync + fmt::Debug {
    /// The need of an arm that it meets: [`LAB`], [`COMMANDS`].
    fn need(&self) -> &'static str;

    /// A provisioner for an arm that has this need. Nothing is brought up yet.
    ///
    /// # Errors
    /// What the arm asks for that cannot be had.
    fn provisioner(&self, evaluation: &str, arm: &Arm) -> Result<Box<dyn Provisioner>, ProvisionError>;
}

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

/// What an arm needs brought up, in the order in which that happens.
pub(crate) fn needs(arm: &Arm) -> Vec<&'static str> {
    let needs = [(LAB, arm.lab.is_some()), (COMMANDS, arm.has_commands())];
    needs.into_iter().filter(|(_, is_needed)| *is_needed).map(|(need, _)| need).collect()
}
