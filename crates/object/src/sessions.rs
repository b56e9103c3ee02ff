//! From a job to the sessions that do it.

use crate::content::DataSet;
use crate::job::{Job, Target};
use crate::mock::MockEngine;
use crate::s3::S3Engine;
use crate::swift::SwiftEngine;
use std::sync::Arc;
use tidemark_load::engine::{OpenError, Sessions};

/// Makes the sessions of an object work: looks its endpoints up, lists the files it uploads. `data` is what the
/// works of the run share.
///
/// # Errors
/// One clear sentence when that cannot be done.
pub fn open(job: &Job, data: &Arc<DataSet>) -> Result<Box<dyn Sessions>, OpenError> {
    match &job.target {
        Target::S3(target) => Ok(Box::new(S3Engine::new(target, &job.actions, data)?)),
        Target::Mock(mock) => Ok(Box::new(MockEngine::new(*mock, &job.actions))),
        Target::Nothing => Ok(Box::new(MockEngine::nothing(&job.actions))),
        Target::Swift(target) => Ok(Box::new(SwiftEngine::new(target, &job.actions, data)?)),
        Target::Embedded(_) => Err(OpenError("the embedded server has not been started".into())),
    }
}
