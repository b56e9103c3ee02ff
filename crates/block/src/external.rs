//! The program that carries out what the native engine does not.

use crate::job::Volume;
use std::sync::Arc;
use tidemark_load::engine::Sessions;
use tidemark_plan::engine::Process;

/// Another way to put load on volumes: fio, which also reaches images of a Ceph cluster.
pub trait External: Send + Sync {
    /// Finds the program on this machine.
    ///
    /// # Errors
    /// A sentence that says why it cannot be used, and what to do.
    fn find(&self) -> Result<Program, String>;

    /// Sees to it that an image is there with its size.
    ///
    /// # Errors
    /// A sentence that says why it is not, and what to do.
    fn ensure_image(&self, image: &Volume) -> Result<(), String>;

    /// Sessions that remove images; space k is the k-th of them.
    fn removal(&self, images: &[Volume]) -> Box<dyn Sessions>;
}

/// A program that was found.
pub struct Program {
    /// What it is and where, for people.
    pub description: String,
    /// Carries out one work on volumes.
    pub process: Arc<dyn Process>,
}
