//! What went wrong between us and an API server, in a sentence that says what to do.

use tidemark_apiserver::Failure;

/// Why pods were not made, did not come, or were not removed.
#[derive(Debug, thiserror::Error)]
pub enum PodsError {
    /// There is no kubeconfig, or it cannot be used.
    #[error(
        "{0}: name a context of your kubeconfig with `--on kubernetes:CONTEXT`, or its file in KUBECONFIG"
    )]
    Config(String),
    /// The API server does not allow it.
    #[error("Kubernetes does not allow it: {0}; docs/kubernetes.md lists the rights that are needed")]
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
    /// Drivers do not come.
    #[error("{0}")]
    NotJoined(String),
    /// The user does not wait for them.
    #[error("stopped while the drivers were awaited")]
    Stopped,
    /// Something is left.
    #[error(
        "{what} could not be removed: {why}; remove it with `tidemark kubernetes clean {run} --namespace {namespace}`"
    )]
    Left {
        /// What is left.
        what: String,
        /// Why.
        why: String,
        /// The run's name.
        run: String,
        /// Its namespace.
        namespace: String,
    },
    /// Pods are to end, and nobody says that they have.
    #[error(
        "{pods} in the namespace {namespace}: deleted, but no node has said that they ended, as when a node is lost; they go when the node is \
         back or is removed from the cluster, or with `kubectl delete pod --force`"
    )]
    Ending {
        /// The pods, with their nodes.
        pods: String,
        /// Their namespace.
        namespace: String,
    },
}

/// Why a request failed; where its user has no right to it, with the rule of a Role in `namespace` that permits it.
pub(crate) fn why(failure: &Failure, namespace: &str, rule: &str) -> String {
    // Of a right that lacks only for upgraded connections, the API server does not say that the user cannot.
    match matches!(failure, Failure::Status(403, _)) {
        true => format!("{failure}; what permits it: Role in {namespace}: {{apiGroups: [\"\"], {rule}}}"),
        false => failure.to_string(),
    }
}

impl PodsError {
    /// The same, with what is left because its removal failed as well.
    pub(crate) fn and(self, removed: Result<(), Self>) -> Self {
        match removed {
            Err(Self::Left { what, why, run, namespace }) => {
                Self::Left { what: format!("{self}; then {what}"), why, run, namespace }
            }
            Err(Self::Ending { pods, namespace }) => {
                Self::Ending { pods: format!("{self}; then {pods}"), namespace }
            }
            _ => self,
        }
    }

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
