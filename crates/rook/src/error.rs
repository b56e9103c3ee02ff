//! What went wrong between a layout and Kubernetes, in a sentence that says what to do.

use tidemark_apiserver::Failure;

/// Why a layout was not applied, does not get ready, or was not destroyed.
#[derive(Debug, thiserror::Error)]
pub enum RookError {
    /// There is no kubeconfig, or it cannot be used.
    #[error(
        "{0}: name a context of your kubeconfig with `--on kubernetes:CONTEXT`, or its file in KUBECONFIG"
    )]
    Config(String),
    /// The API server does not allow it.
    #[error("Kubernetes does not allow it: {0}; docs/rook.md lists the rights that are needed")]
    Forbidden(String),
    /// The API server refuses it.
    #[error("Kubernetes refuses to {doing}: {message}")]
    Refused {
        /// What was asked for.
        doing: String,
        /// Its reason.
        message: String,
    },
    /// The API server does not answer.
    #[error("the API server {server} does not answer: {why}")]
    Away {
        /// Its address.
        server: String,
        /// What happened.
        why: String,
    },
    /// What must be there before is not. Nothing was changed.
    #[error("nothing was changed, because this is missing:{}", lines(.0))]
    Missing(Vec<String>),
    /// Not everything is ready in time.
    #[error("not everything is ready after {after_s} s:{}", lines(.why))]
    NotReady {
        /// How long was waited; seconds.
        after_s: u64,
        /// What is not ready and what explains it.
        why: Vec<String>,
    },
    /// Others still use it. Nothing was changed.
    #[error("nothing was removed, because the layout is still in use; remove these first:{}", lines(.0))]
    InUse(Vec<String>),
    /// Devices would be wiped that were not named, or the other way round. Nothing was changed.
    #[error("nothing was removed: {0}")]
    Devices(String),
    /// Something is left.
    #[error("after {after_s} s this is still there; run the command again once what holds it up is gone:{}", lines(.what))]
    Left {
        /// How long was waited; seconds.
        after_s: u64,
        /// What is left, and what holds it up.
        what: Vec<String>,
    },
    /// The cluster is gone, and Rook has not wiped all of its devices in time.
    #[error(
        "the cluster is gone, and Rook has not wiped all of its devices after {after_s} s; once its Jobs (label rook-ceph-cleanup) are \
         complete, delete the claims of its OSDs (label ceph.rook.io/DeviceSet), then run the command again without --wipe-devices:{}",
        lines(.what)
    )]
    NotWiped {
        /// How long was waited; seconds.
        after_s: u64,
        /// How far it is, and what its Jobs say.
        what: Vec<String>,
    },
    /// The user does not wait any longer.
    #[error("stopped on request; what was begun goes on in the cluster")]
    Stopped,
}

fn lines(all: &[String]) -> String {
    all.iter().map(|one| format!("\n  {one}")).collect()
}

impl RookError {
    /// Of a request `doing` something at `server`.
    pub(crate) fn of(server: &str, doing: &str, failure: Failure) -> Self {
        let (is_forbidden, is_away) = (failure.is_forbidden(), failure.is_away());
        match failure {
            Failure::Status(_, message) if is_forbidden => Self::Forbidden(message),
            Failure::Status(401, _) => {
                Self::Config(format!("the API server {server} does not know this user"))
            }
            Failure::Status(_, why) if is_away => Self::Away { server: server.to_owned(), why },
            Failure::Status(_, message) => Self::Refused { doing: doing.to_owned(), message },
            Failure::Away(why) => Self::Away { server: server.to_owned(), why },
            Failure::Config(why) => Self::Config(why),
        }
    }
}
