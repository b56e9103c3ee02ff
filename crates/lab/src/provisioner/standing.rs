//! The labs that `tidemark lab up` has started, as what settings are applied to.

use super::{Cluster, Servers, Wanted, probe};
use crate::{Databases, Lab, LabError, LabOptions, System, usual_dir};
use std::path::{Path, PathBuf};
use tidemark_measure::in_effect::InEffect;
use tidemark_plan::provisioner::{Probe, Progress, ProvisionError, Provisioner, Variables};

/// Labs that run, as far as an arm asks for them.
pub(super) struct Standing {
    cluster: Option<Lab>,
    servers: Option<(Databases, Servers)>,
}

impl Standing {
    /// Finds them: the cluster or the servers in the directory given, the others in their usual ones.
    ///
    /// # Errors
    /// Those that are not there, do not answer, or are not what the arm asks for.
    pub(super) fn open(wanted: Wanted, directory: Option<&Path>) -> Result<Self, ProvisionError> {
        if wanted.trino.is_some() {
            return Err(ProvisionError::Failed("settings of Trino cannot be applied".into()));
        }
        let servers_directory = directory.filter(|_| wanted.servers.is_some());
        let cluster_directory = directory.filter(|_| wanted.servers.is_none());
        let cluster = wanted.cluster.map(|cluster| find_cluster(cluster, cluster_directory)).transpose()?;
        let servers = wanted.servers.map(|servers| {
            let found = find_servers(&servers, servers_directory)?;
            Ok::<_, ProvisionError>((found, servers))
        });
        Ok(Self { cluster, servers: servers.transpose()? })
    }
}

/// The directory given, or the usual one of a system.
fn place(system: System, given: Option<&Path>) -> Result<PathBuf, ProvisionError> {
    given.map_or_else(|| usual_dir(system), |given| Ok(given.to_owned())).map_err(failed)
}

fn find_cluster(wanted: Cluster, given: Option<&Path>) -> Result<Lab, ProvisionError> {
    let directory = place(System::Ceph, given)?;
    let lab = Lab::open(&directory).map_err(|error| missing("ceph", &error))?;
    let options = LabOptions {
        layout: Some(wanted.layout),
        gateways: Some(wanted.gateways),
        filesystem: wanted.filesystem,
        copies: wanted.copies,
        ..LabOptions::new(directory.clone())
    };
    match (lab.is_as(&options), lab.status().map_err(failed)?.is_up()) {
        (true, true) => Ok(lab),
        (false, _) => Err(ProvisionError::Failed(format!(
            "the cluster in {} is not of the layout that the arm asks for",
            directory.display()
        ))),
        (_, false) => Err(down("ceph", &directory)),
    }
}

fn find_servers(wanted: &Servers, given: Option<&Path>) -> Result<Databases, ProvisionError> {
    let system = wanted.database.system();
    let directory = place(system, given)?;
    let servers = Databases::open(&directory).map_err(|error| missing(system.name(), &error))?;
    if servers.database() != wanted.database {
        return Err(ProvisionError::Failed(format!(
            "the servers in {} are of {}, and the arm asks for {}",
            directory.display(),
            servers.database().name(),
            wanted.database.name()
        )));
    }
    match Databases::status(&directory).map_err(failed)?.is_up() {
        true => Ok(servers),
        false => Err(down(system.name(), &directory)),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: LabError) -> ProvisionError {
    ProvisionError::Failed(error.to_string())
}

fn missing(system: &str, error: &LabError) -> ProvisionError {
    ProvisionError::Failed(format!(
        "an arm's own lab is gone after the search; they are applied to the one of `tidemark lab up {system}`: {error}"
    ))
}

fn down(system: &str, directory: &Path) -> ProvisionError {
    ProvisionError::Failed(format!(
        "the lab in {} is not up: `tidemark lab up {system}` starts it",
        directory.display()
    ))
}

impl Provisioner for Standing {
    fn up(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let Some((servers, wanted)) = &mut self.servers else { return Ok(()) };
        servers.set(&wanted.settings, &mut |text| progress.line(text)).map_err(failed)
    }

    fn variables(&self) -> Variables {
        let cluster = self.cluster.iter().flat_map(Lab::variables);
        let servers = self.servers.iter().flat_map(|(servers, _)| servers.variables());
        cluster.chain(servers).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn in_effect(
        &mut self,
        _variables: &Variables,
        _progress: &mut dyn Progress,
    ) -> Result<InEffect, ProvisionError> {
        let cluster = self.cluster.as_ref().map(Lab::in_effect).transpose().map_err(failed)?;
        let servers =
            self.servers.as_ref().map(|(servers, _)| servers.in_effect()).transpose().map_err(failed)?;
        let mut all = InEffect::default();
        let found = cluster.into_iter().chain(servers).flat_map(|one| one.0);
        found.for_each(|(name, said)| all.add(&name, said));
        Ok(all)
    }

    fn probe(&self, _variables: &Variables) -> Option<Probe> {
        Some(probe(self.cluster.clone(), self.servers.as_ref().map(|(servers, _)| servers.clone())))
    }

    /// Nothing: it is the user's.
    fn down(&mut self, _variables: &Variables, _progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        Ok(())
    }
}
