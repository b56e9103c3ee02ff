//! The lab as a provisioner: a Ceph cluster for each arm of an evaluation that has a `lab`.

use crate::{Lab, LabOptions, Layout};
use serde_json::{Value as Schema, json};
use std::path::{Path, PathBuf};
use tidemark_plan::plan::Observe;
use tidemark_plan::provisioner::{
    Progress, ProvisionError, Provisioner, ProvisionerKind, Request, Variables,
};
use tidemark_plan::schema::{Mapping, values};
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::table::{Table, choose};
use tidemark_plan::yaml::tree::{Entry, Value};

/// The key under which an arm asks for a lab.
const KEY: &str = "lab";

/// The layouts that arms may have: what is compared must be known, which a lab on files is not.
const LAYOUTS: [Layout; 3] = [Layout::Baseline, Layout::Reference1, Layout::Reference2];

/// The variables that a lab brings, and stand-ins for their values while it is not up.
pub(crate) const VARIABLES: [(&str, &str); 7] = [
    ("AWS_ACCESS_KEY_ID", "not-known-yet"),
    ("AWS_SECRET_ACCESS_KEY", "not-known-yet"),
    ("TIDEMARK_LAB_S3", "http://127.0.0.1:1"),
    ("TIDEMARK_LAB_SWIFT", "http://127.0.0.1:1/auth/v1.0"),
    ("TIDEMARK_LAB_SWIFT_USER", "tidemark:swift"),
    ("TIDEMARK_LAB_SWIFT_KEY", "not-known-yet"),
    ("TIDEMARK_LAB_CEPH_CONF", "/nonexistent/ceph.conf"),
];

/// A Ceph cluster for each arm that has a `lab`.
#[derive(Clone, Copy, Debug)]
pub struct Labs;

impl ProvisionerKind for Labs {
    fn key(&self) -> &'static str {
        KEY
    }

    fn schema(&self) -> (Schema, Vec<Mapping>) {
        let names = || LAYOUTS.map(Layout::name);
        let layout = values::words("A layout of the lab", names());
        let value = json!({
            "description": "Cluster that the lab starts for it",
            "anyOf": [layout, values::refer(KEY, "A cluster of the lab")],
        });
        let keys = vec![("layout", values::words("Its layout", names()))];
        (value, vec![Mapping::new(KEY, "A cluster of the lab", keys).requires(&["layout"])])
    }

    fn read<'a>(&self, arm: &Table<'a>, entry: &'a Entry, _: &Environment<'_>) -> Option<Request> {
        let words = LAYOUTS.map(|layout| (layout.name(), layout));
        let layout = |text: &str| choose(text, &words);
        let layout = match entry.node.value {
            Value::Map(_) => {
                let mut own = arm.below("`lab`", entry);
                let names = LAYOUTS.map(Layout::name).join(", ");
                let layout = own.required("layout", &format!("write one of {names}"), layout);
                own.finish();
                layout
            }
            _ => arm.scalar(&entry.node, KEY, layout),
        }?;
        Some(Request::new(KEY, layout.name(), layout))
    }

    fn variables(&self) -> &[(&'static str, &'static str)] {
        &VARIABLES
    }

    fn provisioner(
        &self,
        request: &Request,
        directory: &Path,
    ) -> Result<Box<dyn Provisioner>, ProvisionError> {
        let asked = request.get::<Layout>().copied();
        let layout = asked.ok_or_else(|| ProvisionError::Failed("it asks for no layout".into()))?;
        Ok(Box::new(ArmLab { directory: directory.to_owned(), layout, lab: None }))
    }
}

/// The cluster of one arm.
struct ArmLab {
    directory: PathBuf,
    layout: Layout,
    /// The cluster while it is up.
    lab: Option<Lab>,
}

impl Provisioner for ArmLab {
    fn up(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        // A cluster that an earlier start has left behind is used if its layout is right.
        if Lab::open(&self.directory).is_ok_and(|lab| lab.layout() != self.layout) {
            remove(&self.directory, progress)?;
        }
        let options = LabOptions { layout: Some(self.layout), ..LabOptions::new(self.directory.clone()) };
        let lab = crate::up(&options, &mut |text| progress.line(text))
            .map_err(|error| ProvisionError::Failed(format!("the lab could not be brought up: {error}")))?;
        self.lab = Some(lab);
        Ok(())
    }

    fn variables(&self) -> Variables {
        let variables = self.lab.iter().flat_map(Lab::variables);
        variables.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn labels(&self) -> Vec<(String, String)> {
        self.lab.as_ref().map(Lab::labels).unwrap_or_default()
    }

    fn observe(&self) -> Observe {
        let Some(lab) = &self.lab else { return Observe::default() };
        // Other labs may be up beside it: the daemons of this one have its configuration on their command lines.
        let conf = lab.ceph_conf().display().to_string();
        let processes = lab.process_names().into_iter().map(|name| format!("{name} {conf}"));
        Observe {
            processes: processes.collect(),
            ceph_sockets: vec![lab.admin_sockets()],
            ..Observe::default()
        }
    }

    fn down(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        self.lab = None;
        remove(&self.directory, progress)
    }
}

/// Stops the cluster in a directory and removes all that it wrote.
fn remove(directory: &Path, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
    crate::down(directory, true, &mut |text| progress.line(text))
        .map_err(|error| ProvisionError::Failed(format!("the lab could not be taken down: {error}")))
}
