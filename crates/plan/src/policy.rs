//! What a plan that came over the network may touch on the machine that carries it out: the files, directories and devices
//! below the paths that its owner names, and no program.
//!
//! A plan is data; without a policy, anyone who may submit one could have a driver overwrite any file, or read
//! one and send it to a server of his own.

mod place;

use crate::plan::Plan;
use crate::registry::Registry;
use std::path::{Path, PathBuf};

/// Where librbd and librados look for a cluster and its keys without a configuration.
const CEPH: &str = "/etc/ceph";

/// What plans may touch on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Directories; all that is below them may be read, written and removed. Also single files and devices.
    pub directories: Vec<PathBuf>,
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

    /// Whether Ceph's own configuration and keys may be used.
    ///
    /// # Errors
    /// As [`Policy::check`].
    pub fn ceph(&self, who: &str) -> Result<(), String> {
        self.allow(who, Path::new(CEPH))
    }

    /// Whether a submitted plan may touch a path.
    ///
    /// # Errors
    /// As [`Policy::check`].
    pub fn allow(&self, who: &str, path: &Path) -> Result<(), String> {
        let shown = path.display();
        let real =
            place::real(path).map_err(|why| format!("{who} names {shown}, {why}: write an absolute path"))?;
        let allowed = self.directories.iter().filter_map(|directory| place::real(directory).ok());
        if allowed.into_iter().any(|directory| real.starts_with(directory)) {
            return Ok(());
        }
        let leads = if real == path { String::new() } else { format!(" (which is {})", real.display()) };
        let directory = real.parent().unwrap_or(&real).display();
        Err(format!(
            "{who} would use {shown}{leads}, which this driver does not allow: use another path, or start the \
             driver with --allow-path {directory}"
        ))
    }
}

fn no_scripts(what: &str) -> String {
    format!("{what} has a trigger, and submitted plans cannot run scripts: remove `trigger`")
}
