//! A layout and the Kubernetes that it is for.

use crate::error::RookError;
use crate::kinds::{KINDS, Kind, Object};
use serde_json::Value;
use tidemark_apiserver::{Client, Failure, Which};
use tidemark_kubernetes::{Layout, MANAGED_BY, NAMESPACE};

/// The label that says of which layout a resource is.
pub(crate) const INSTANCE: &str = "app.kubernetes.io/instance";

/// A layout and the Kubernetes that it is for.
pub struct Placed {
    pub(crate) client: Client,
    pub(crate) layout: Layout,
}

impl Placed {
    /// A layout at the cluster that is meant. Nothing is sent yet.
    ///
    /// # Errors
    /// [`RookError::Config`].
    pub fn connect(layout: Layout, which: Which<'_>) -> Result<Self, RookError> {
        let client = Client::connect(Which { namespace: Some(&layout.namespace), ..which });
        Ok(Self { client: client.map_err(RookError::Config)?, layout })
    }

    /// The address of the API server.
    pub(crate) fn server(&self) -> &str {
        self.client.server()
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The resources that the document asks for, in an order in which each finds what it refers to.
    pub(crate) fn wanted(&self) -> Result<Vec<Object>, RookError> {
        let object = |manifest: &tidemark_kubernetes::Manifest| {
            let kind = Kind::of(manifest.kind).ok_or_else(|| unreadable(manifest.kind))?;
            let value = serde_json::to_value(manifest).map_err(|_| unreadable(manifest.kind))?;
            Ok(Object { kind, value })
        };
        self.layout.manifests().iter().map(object).collect()
    }

    /// The resources of the layout that there are, by label.
    pub(crate) fn found(&self) -> Result<Vec<Object>, RookError> {
        let Layout { name, namespace, .. } = &self.layout;
        let labels = format!(
            "{}%3D{},{INSTANCE}%3D{name},{}%3D{namespace}",
            MANAGED_BY.0,
            MANAGED_BY.1,
            NAMESPACE.replace('/', "%2F")
        );
        let mut all = Vec::new();
        for kind in &KINDS {
            let listed = self.list(&kind.path(&self.layout.namespace), &format!("labelSelector={labels}"))?;
            all.extend(listed.into_iter().map(|value| Object { kind, value }));
        }
        Ok(all)
    }

    /// Whether a resource of that name is this layout's.
    pub(crate) fn is_ours(&self, value: &Value) -> bool {
        let labels = &value["metadata"]["labels"];
        labels[MANAGED_BY.0] == MANAGED_BY.1
            && labels[INSTANCE] == *self.layout.name
            && labels[NAMESPACE] == *self.layout.namespace
    }

    /// What there is at a path; `None`: nothing.
    pub(crate) fn get(&self, path: &str) -> Result<Option<Value>, RookError> {
        match self.client.ask("GET", path, None) {
            Ok(value) => Ok(Some(value)),
            Err(failure) if failure.is_missing() => Ok(None),
            Err(failure) => Err(self.error(&format!("show {path}"), failure)),
        }
    }

    /// The objects at the path of a kind; none where the kind is not known.
    pub(crate) fn list(&self, path: &str, query: &str) -> Result<Vec<Value>, RookError> {
        match self.client.list(path, query) {
            Ok(all) => Ok(all),
            Err(failure) if failure.is_missing() => Ok(Vec::new()),
            Err(failure) => Err(self.error(&format!("list {path}"), failure)),
        }
    }

    pub(crate) fn error(&self, doing: &str, failure: Failure) -> RookError {
        RookError::of(self.server(), doing, failure)
    }
}

fn unreadable(kind: &str) -> RookError {
    RookError::Refused {
        doing: format!("take a {kind}"),
        message: "it is no resource of a layout".to_owned(),
    }
}
