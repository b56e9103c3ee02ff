//! What a plan that came over the network may touch on the machine that carries it out: the files, directories and devices
//! below the paths that its owner names, Ceph configurations that its owner lists, and no program.
//!
//! A plan is data; without a policy, anyone who may submit one could have a driver overwrite any file, or read
//! one and send it to a server of his own.

mod access;
mod place;

pub use access::{Access, Directory};

use crate::plan::Plan;
use crate::registry::Registry;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where librbd and librados look for the configuration of a cluster.
const CEPH: &str = "/etc/ceph";

/// The cluster that they look for where nobody names another.
const CLUSTER: &str = "ceph";

/// What plans may touch on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Directories; all that is below them may be read, written and removed. Also single files and devices.
    pub directories: Vec<PathBuf>,
    /// Configurations of Ceph clusters that may be used. Such a file is code: it names files to write and libraries to load.
    /// None of them may lie below one of the directories, where a document could write it.
    pub ceph_confs: Vec<PathBuf>,
}

impl Policy {
    /// Whether a plan stays within what is allowed. Symbolic links are followed as they are now, as far as a path
    /// exists.
    ///
    /// # Errors
    /// A sentence without a full stop that names the first thing that is not allowed, where it stands, and what to do.
    pub fn check(&self, plan: &Plan, registry: &Registry) -> Result<(), String> {
        if plan.trigger.is_some() {
            return Err(no_scripts("the plan"));
        }
        for path in &plan.observe.ceph_sockets {
            self.allow("`observe`", path)?;
        }
        for stage in &plan.stages {
            if stage.trigger.is_some() {
                return Err(no_scripts(&format!("the stage `{}`", stage.name)));
            }
            for work in &stage.works {
                let who = format!("the work `{}` of the stage `{}`", work.name, stage.name);
                registry.engine_of(work)?.check_policy(self, &who, work)?;
            }
        }
        Ok(())
    }

    /// Whether a configuration of a Ceph cluster, and the keys that it names, may be used; `None`: Ceph's own.
    ///
    /// # Errors
    /// As [`Policy::check`].
    pub fn ceph(&self, who: &str, conf: Option<&Path>) -> Result<(), String> {
        let usual = Self::ceph_conf_of(CLUSTER);
        let conf = conf.unwrap_or(&usual);
        let shown = conf.display();
        let real =
            place::real(conf).map_err(|why| format!("{who} names {shown}, {why}: write an absolute path"))?;
        if self.below(&real).is_some() {
            return Err(format!(
                "{who} would use the Ceph configuration {shown}, which lies below an --allow-path, where documents can write \
                 it: a configuration names files to write and libraries to load; keep it elsewhere"
            ));
        }
        let is_known =
            self.ceph_confs.iter().any(|known| place::real(known).is_ok_and(|known| known == real));
        match is_known && real.is_file() {
            true => Ok(()),
            false => Err(format!(
                "{who} would use the Ceph configuration {shown}, which this driver does not allow: start the driver with \
                 --allow-ceph-conf {shown}, if the file is there"
            )),
        }
    }

    /// Where Ceph's programs look for the configuration of a cluster.
    pub fn ceph_conf_of(cluster: &str) -> PathBuf {
        Path::new(CEPH).join(format!("{cluster}.conf"))
    }

    /// Whether a name of a Ceph client, cluster, pool or image is nothing but a name: configurations put some of them into
    /// paths, and programs take a dash for an option.
    ///
    /// # Errors
    /// As [`Policy::check`].
    pub fn ceph_name(&self, who: &str, name: &str) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:+".contains(c);
        match name.chars().all(is_plain) && !name.starts_with(['-', '.']) && !name.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{who} names `{}` in a Ceph cluster: submitted plans may use letters, digits and - _ . @ : + there, and \
                 neither begin with a dash nor with a dot",
                name.escape_default()
            )),
        }
    }

    /// What of it contradicts itself, in a sentence without a full stop.
    pub fn contradiction(&self) -> Option<String> {
        let real = |conf: &PathBuf| place::real(conf).unwrap_or_else(|_| conf.clone());
        let conf = self.ceph_confs.iter().find(|conf| self.below(&real(conf)).is_some())?;
        Some(format!(
            "--allow-ceph-conf {} lies below an --allow-path, where documents can write it: keep it elsewhere, or allow other \
             paths",
            conf.display()
        ))
    }

    /// Whether a submitted plan may touch a path.
    ///
    /// # Errors
    /// As [`Policy::check`].
    pub fn allow(&self, who: &str, path: &Path) -> Result<(), String> {
        self.place(who, path).map(drop)
    }

    /// The allowed directory that a path lies below, without links, and the rest of it.
    fn place(&self, who: &str, path: &Path) -> Result<(PathBuf, PathBuf), String> {
        let shown = path.display();
        let real =
            place::real(path).map_err(|why| format!("{who} names {shown}, {why}: write an absolute path"))?;
        if let Some(found) = self.below(&real) {
            return Ok(found);
        }
        let leads = if real == path { String::new() } else { format!(" (which is {})", real.display()) };
        let directory = real.parent().unwrap_or(&real).display();
        Err(format!(
            "{who} would use {shown}{leads}, which this driver does not allow: use another path, or start the \
             driver with --allow-path {directory}"
        ))
    }

    /// The allowed directory that a path without links lies below, and the rest of it.
    fn below(&self, real: &Path) -> Option<(PathBuf, PathBuf)> {
        let mut allowed = self.directories.iter().filter_map(|directory| place::real(directory).ok());
        allowed.find_map(|directory| {
            let rest = real.strip_prefix(&directory).ok()?.to_owned();
            Some((directory, rest))
        })
    }
}

fn no_scripts(what: &str) -> String {
    format!("{what} has a trigger, and submitted plans cannot run scripts: remove `trigger`")
}
