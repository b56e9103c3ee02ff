//! The lab as a provisioner: a Ceph cluster for each arm of an evaluation that has a `lab`.

use crate::{Lab, LabOptions, Layout};
use std::path::{Path, PathBuf};
use tidemark_keys::kinds::Word;
use tidemark_keys::shapes::{Either, Map};
use tidemark_keys::tree::{Entry, Value};
use tidemark_keys::{AnyKey, Key, Mapping, Table};
use tidemark_plan::plan::Observe;
use tidemark_plan::provisioner::{
    Progress, ProvisionError, Provisioner, ProvisionerKind, Request, Variables,
};
use tidemark_plan::yaml::environment::Environment;

/// The key under which an arm asks for a lab: a layout, or a mapping with one.
static LAB: Key<Either<Word<Layout>, Map>> =
    Key::new("lab", "Cluster that the lab starts for it", Either(LAYOUTS, Map(&MAPPING)));
static MAPPING: Mapping = Mapping::new("lab", "A cluster of the lab", &[&LAYOUT]);
static LAYOUT: Key<Word<Layout>> =
    Key::new("layout", "Its layout", LAYOUTS).required("write one of baseline, reference-1, reference-2");

/// The layouts that arms may have: what is compared must be known, which a lab on files is not.
const LAYOUTS: Word<Layout> = Word(&[
    ("baseline", Layout::Baseline),
    ("reference-1", Layout::Reference1),
    ("reference-2", Layout::Reference2),
]);

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
    fn key(&self) -> &'static AnyKey {
        &LAB
    }

    fn read<'a>(&self, arm: &Table<'a>, entry: &'a Entry, _: &Environment<'_>) -> Option<Request> {
        let layout = match entry.node.value {
            Value::Map(_) => {
                let mut own = arm.below(&LAB, entry).of(&MAPPING);
                let layout = own.get(&LAYOUT);
                own.finish();
                layout
            }
            _ => arm.one(&LAB, &LAYOUTS, &entry.node),
        }?;
        Some(Request::new(LAB.name, layout.name(), layout))
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
