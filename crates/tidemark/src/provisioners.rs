//! What brings the arms of an evaluation up: the list of the kinds that this program has.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_control::provisioner::commands::ShellCommands;
use tidemark_control::provisioner::{
    self, Progress, ProvisionError, Provisioner, ProvisionerFactory, Variables,
};
use tidemark_lab::{Lab, LabOptions, Layout};
use tidemark_plan::evaluation::Arm;
use tidemark_plan::plan::Observe;

/// Every kind: labs, whose directories are made in `labs`, and shell commands if the operator allows them.
pub(crate) fn provisioners(labs: PathBuf, run_commands: bool) -> Vec<Arc<dyn ProvisionerFactory>> {
    let mut kinds: Vec<Arc<dyn ProvisionerFactory>> = vec![Arc::new(Labs { directory: labs })];
    if run_commands {
        kinds.push(Arc::new(ShellCommands));
    }
    kinds
}

/// A Ceph cluster for each arm that has a `lab`.
#[derive(Debug)]
struct Labs {
    directory: PathBuf,
}

impl ProvisionerFactory for Labs {
    fn need(&self) -> &'static str {
        provisioner::LAB
    }

    fn provisioner(&self, evaluation: &str, arm: &Arm) -> Result<Box<dyn Provisioner>, ProvisionError> {
        let wanted = arm.lab.as_ref().map_or("", |lab| &lab.layout);
        let layout = wanted.parse().map_err(|error| ProvisionError::Failed(format!("{error}")))?;
        let directory = self.directory.join(file_name(evaluation)).join(file_name(&arm.name));
        Ok(Box::new(ArmLab { directory, layout, lab: None }))
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
        let lab = tidemark_lab::up(&options, &mut |text| progress.line(text))
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
    tidemark_lab::down(directory, true, &mut |text| progress.line(text))
        .map_err(|error| ProvisionError::Failed(format!("the lab could not be taken down: {error}")))
}

/// A name for a directory: what is not a letter or digit becomes a hyphen.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    name.chars().map(plain).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_commands_are_among_the_kinds_only_if_allowed() {
        let needs = |run_commands| -> Vec<&str> {
            let kinds = provisioners(PathBuf::new(), run_commands);
            kinds.iter().map(|kind| kind.need()).collect()
        };
        assert_eq!(needs(false), ["lab"]);
        assert_eq!(needs(true), ["lab", "commands"]);
    }

    #[test]
    fn a_lab_of_no_known_layout_is_refused() {
        let arm =
            Arm { lab: Some(tidemark_plan::evaluation::Lab { layout: "golden".into() }), ..Arm::default() };
        let refused = Labs { directory: PathBuf::new() }.provisioner("e", &arm).map(drop).unwrap_err();
        assert!(refused.to_string().contains("golden"), "{refused}");
    }

    #[test]
    fn directories_have_plain_names() {
        assert_eq!(file_name("../a b/ü"), "---a-b--");
    }
}
