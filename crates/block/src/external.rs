//! The program that carries out what the native engine does not.

use crate::job::Volume;
use std::path::PathBuf;
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

    /// What is there by an image's name.
    ///
    /// # Errors
    /// A sentence that says why that cannot be told, and what to do.
    fn find_image(&self, image: &Volume) -> Result<Image, String>;

    /// Sees to it that an image is there with its size; one that it makes is marked as Tidemark's.
    ///
    /// # Errors
    /// A sentence that says why it is not, and what to do.
    fn ensure_image(&self, image: &Volume) -> Result<(), String>;

    /// Marks an image as written to by Tidemark up to now, and by nobody else.
    ///
    /// # Errors
    /// A sentence that says why it could not be marked, and what that means.
    fn mark_image(&self, image: &Volume) -> Result<(), String>;

    /// Sessions that remove images, those that are not Tidemark's only if `allow` names them; space k is the k-th.
    fn removal(&self, images: &[Volume], allow: &[PathBuf]) -> Box<dyn Sessions>;
}

/// What is there by the name of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// Nothing.
    Absent,
    /// An image that nobody has written to, and that Tidemark did not make.
    Blank,
    /// An image that Tidemark made or wrote to, and nobody else since.
    Ours,
    /// An image that may hold data of somebody else's, and why that is to be thought.
    Foreign(String),
    /// An image that somebody has open, and who.
    InUse(String),
}

/// A program that was found.
pub struct Program {
    /// What it is and where, for people.
    pub description: String,
    /// Carries out one work on volumes.
    pub process: Arc<dyn Process>,
}
