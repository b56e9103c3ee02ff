//! What database servers are wanted, and how that fits with those that are there.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Database;
use super::record::Shape;
use crate::error::LabError;
use crate::home::Home;
use crate::ports;

/// The most servers that the ports and memory of one machine are meant for.
const MOST_INSTANCES: usize = 64;
/// What is wrong with a port that leaves no room for those after it.
const FIRST_PORT: &str = "the first server's port";

/// What database servers are wanted. What is `None` is as the existing servers have it, or as usual in new ones.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The lab's directory, made if it is missing.
    pub dir: PathBuf,
    /// What they are.
    pub database: Database,
    /// How many: 1 to 64, usually 1.
    pub instances: Option<usize>,
    /// An existing directory in which their data are to lie, usually the lab's own. A directory of the lab's is made
    /// in it.
    pub on: Option<PathBuf>,
    /// The port of the first one on 127.0.0.1; the others have those after it. Usually free ones are chosen, and kept.
    pub port: Option<u16>,
    /// Settings of the servers, by name. They may be changed by the next [`up`](super::Databases::up).
    pub settings: Vec<(String, String)>,
    /// Whether the data are to lie on a disk that loses what was not synced when its power is cut. Existing servers
    /// keep what they have if this is false.
    pub power_cut: bool,
    /// Where programs are looked for, in the form of the variable PATH, which it replaces.
    pub program_path: Option<OsString>,
}

impl DatabaseOptions {
    /// One server as usual, in the directory given.
    pub fn new(database: Database, dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            database,
            instances: None,
            on: None,
            port: None,
            settings: Vec::new(),
            power_cut: false,
            program_path: None,
        }
    }

    /// The shape of servers about to be created.
    pub(super) fn new_shape(&self, home: &Home) -> Result<Shape, LabError> {
        let instances = self.count(1)?;
        let server = self.database.server();
        let mut ports: Vec<u16> = Vec::new();
        for instance in 0..instances {
            ports.push(match self.port {
                Some(first) => ports::after(FIRST_PORT, first, instance)?,
                None => ports::choose(server.daemon(instance), home.dir(), &ports)?,
            });
        }
        let on = self.on.as_ref().map(|on| {
            let found = on.canonicalize().map_err(LabError::file("find", on))?;
            match found.is_dir() {
                true => Ok(found),
                false => Err(LabError::UnsuitableDirectory { dir: found, why: "it is no directory".into() }),
            }
        });
        Ok(Shape {
            server: self.database,
            ports,
            on: on.transpose()?,
            settings: self.settings.iter().cloned().collect(),
            power_cut: self.power_cut,
        })
    }

    /// The shape of existing servers, with the settings and ports asked for if none runs.
    pub(super) fn adapt(&self, home: &Home, shape: &Shape) -> Result<Shape, LabError> {
        let anew =
            "`tidemark lab down` removes them with their data, and then `tidemark lab up` makes others";
        let same = |option, has: String, asked: Option<String>, advice| match asked {
            Some(asked) if asked != has => {
                Err(LabError::Differs { dir: home.dir().to_owned(), option, has, asked, advice })
            }
            _ => Ok(()),
        };
        same("databases of", shape.server.name().into(), Some(self.database.name().into()), anew)?;
        let asked = self.instances.map(|_| self.count(1)).transpose()?;
        same(
            "the number of servers",
            shape.ports.len().to_string(),
            asked.map(|count| count.to_string()),
            anew,
        )?;
        let place = |on: &PathBuf| on.canonicalize().unwrap_or_else(|_| on.clone()).display().to_string();
        let has = shape.on.as_ref().map_or("the lab's directory".into(), place);
        same("its data in", has, self.on.as_ref().map(place), anew)?;
        let disk = |cut: bool| if cut { "can be cut" } else { "cannot be cut" }.to_owned();
        same("a disk whose power", disk(shape.power_cut), self.power_cut.then(|| disk(true)), anew)?;
        let mut wanted = shape.clone();
        wanted.settings.extend(self.settings.iter().cloned());
        if let Some(first) = self.port {
            for (instance, own) in wanted.ports.iter_mut().enumerate() {
                *own = ports::after(FIRST_PORT, first, instance)?;
            }
        }
        if wanted != *shape {
            for daemon in shape.daemons() {
                if daemon.find(home)?.is_some() {
                    return Err(LabError::Running { dir: home.dir().to_owned() });
                }
            }
        }
        Ok(wanted)
    }

    fn count(&self, usual: usize) -> Result<usize, LabError> {
        match self.instances.unwrap_or(usual) {
            count if (1..=MOST_INSTANCES).contains(&count) => Ok(count),
            count => {
                let (option, allowed) = ("the number of servers", "from 1 to 64");
                Err(LabError::BadOption { option, value: count as u64, allowed })
            }
        }
    }
}
