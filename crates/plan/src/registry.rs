//! The engines and the formats of documents that a program knows: an explicit list, made in one place by the binary.

use crate::diagnostic::Diagnostic;
use crate::engine::{Engine, Target};
use crate::plan::{Plan, Work};
use crate::yaml::environment::Environment;
use std::fmt;
use std::sync::Arc;

/// A format of documents beside Tidemark's own YAML: what other tools' users have.
pub trait Format: Send + Sync {
    /// Its name for people: `COSBench XML`.
    fn name(&self) -> &'static str;

    /// Whether a text is of this format.
    fn recognizes(&self, text: &str) -> bool;

    /// Reads a document with what an evaluation changes in it. With the plan come warnings.
    ///
    /// # Errors
    /// All errors and warnings, in document order.
    fn read(
        &self,
        text: &str,
        environment: &Environment<'_>,
        changes: Changes<'_>,
    ) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>>;

    /// What messages call an evaluation's load in this format if it runs unchanged and takes neither levels nor targets;
    /// `None` if it takes them.
    fn fixed(&self) -> Option<&'static str> {
        None
    }

    /// The engine whose targets an arm can lend to it.
    fn engine(&self) -> &'static str;
}

/// What an evaluation changes in a document.
#[derive(Clone, Default)]
pub struct Changes<'a> {
    /// The seed.
    pub seed: Option<u64>,
    /// The load intensity.
    pub level: &'a [(String, String)],
    /// The target that replaces all targets of the document.
    pub target: Option<Target>,
}

/// The engines and formats that a program knows.
#[derive(Clone, Default)]
pub struct Registry {
    engines: Arc<[Arc<dyn Engine>]>,
    formats: Arc<[Arc<dyn Format>]>,
}

impl Registry {
    /// These engines and formats, and no others.
    pub fn new(engines: Vec<Arc<dyn Engine>>, formats: Vec<Arc<dyn Format>>) -> Self {
        Self { engines: engines.into(), formats: formats.into() }
    }

    /// All engines.
    pub fn engines(&self) -> impl Iterator<Item = &dyn Engine> {
        self.engines.iter().map(|engine| &**engine)
    }

    /// The engine of this name.
    pub fn engine(&self, name: &str) -> Option<&dyn Engine> {
        self.engines().find(|engine| engine.name() == name)
    }

    /// The engine of a work.
    ///
    /// # Errors
    /// A sentence without a full stop, when this program has no such engine.
    pub fn engine_of(&self, work: &Work) -> Result<&dyn Engine, String> {
        let name = work.job.engine();
        self.engine(name).ok_or_else(|| {
            format!("the work `{}` needs the engine `{name}`, which this program lacks", work.name)
        })
    }

    /// How many files and sockets these works have open at once in a process that carries all of them out.
    pub fn open_files<'w>(&self, works: impl IntoIterator<Item = &'w Work>) -> u64 {
        let files = |work: &Work| self.engine(work.job.engine()).map_or(0, |engine| engine.open_files(work));
        works.into_iter().map(files).fold(0, u64::saturating_add)
    }

    /// The engine that puts load on targets of this kind, and the kind as it spells it.
    pub fn engine_for(&self, kind: &str) -> Option<(&dyn Engine, &'static str)> {
        self.engines().find_map(|engine| {
            let known = engine.targets().iter().find(|known| known.eq_ignore_ascii_case(kind))?;
            Some((engine, *known))
        })
    }

    /// All kinds of targets, as documents call them.
    pub fn targets(&self) -> Vec<&'static str> {
        self.engines().flat_map(Engine::targets).copied().collect()
    }

    /// The kinds of targets that need no settings.
    pub fn bare_targets(&self) -> Vec<&'static str> {
        let bare = |engine: &dyn Engine, kind: &&'static str| engine.bare_target(kind).is_ok();
        let kinds =
            self.engines().flat_map(|engine| engine.targets().iter().map(move |kind| (engine, *kind)));
        kinds.filter(|(engine, kind)| bare(*engine, kind)).map(|(_, kind)| kind).collect()
    }

    /// Keys that hold for all below.
    pub fn sections(&self) -> impl Iterator<Item = &'static str> {
        let mut sections: Vec<&'static str> = Vec::new();
        for key in self.engines().flat_map(Engine::sections) {
            if !sections.contains(key) {
                sections.push(key);
            }
        }
        sections.into_iter()
    }

    /// A target to read a document on with after an error.
    pub fn stand_in_target(&self) -> Option<Target> {
        self.engines().find_map(Engine::stand_in_target)
    }

    /// The format of a text; `None` if it is Tidemark's YAML.
    pub fn format_of(&self, text: &str) -> Option<Arc<dyn Format>> {
        self.formats.iter().find(|format| format.recognizes(text)).cloned()
    }

    /// Unpacks all jobs of a plan that has travelled.
    ///
    /// # Errors
    /// A sentence without a full stop, when an engine is missing or does not understand its data.
    pub fn unpack(&self, plan: &mut Plan) -> Result<(), String> {
        for work in plan.stages.iter_mut().flat_map(|stage| &mut stage.works) {
            let Some(packed) = work.job.packed() else { continue };
            let unpacked = self.engine_of(work)?.unpack(&packed.data);
            work.job =
                unpacked.map_err(|error| format!("the work `{}` cannot be read: {error}", work.name))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.engines().map(Engine::name)).finish()
    }
}
