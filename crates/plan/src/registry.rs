//! The engines, formats of documents and provisioners that a program knows: an explicit list, made in one place.

use crate::engine::{Engine, Target};
use crate::level::LevelAxis;
use crate::plan::{Plan, Work};
use crate::provisioner::ProvisionerKind;
use crate::yaml::environment::Environment;
use std::fmt;
use std::sync::Arc;
use tidemark_keys::diagnostic::Diagnostic;
use tidemark_keys::shapes::Map;
use tidemark_keys::tree::Node;
use tidemark_keys::{Key, Mapping};
use tidemark_measure::axis::Axis;

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

    /// What levels can set in its loads.
    fn axes(&self) -> Vec<&'static LevelAxis> {
        Vec::new()
    }

    /// The engine whose targets an arm can lend to it.
    fn engine(&self) -> &'static str;
}

/// What an evaluation changes in a document.
#[derive(Clone, Default)]
pub struct Changes<'a> {
    /// The seed.
    pub seed: Option<u64>,
    /// The load intensity, on axes of the format.
    pub level: &'a [Axis],
    /// The target that replaces all targets of the document.
    pub target: Option<Target>,
}

/// The engines, formats and provisioners that a program knows.
#[derive(Clone, Default)]
pub struct Registry {
    engines: Arc<[Arc<dyn Engine>]>,
    formats: Arc<[Arc<dyn Format>]>,
    provisioners: Arc<[Arc<dyn ProvisionerKind>]>,
}

impl Registry {
    /// These engines and formats, no others, and no provisioners. The program [has](tidemark_judge::evidence) the engines' kinds of
    /// evidence from then on.
    pub fn new(engines: Vec<Arc<dyn Engine>>, formats: Vec<Arc<dyn Format>>) -> Self {
        engines.iter().for_each(|engine| tidemark_judge::evidence::install(&engine.evidence()));
        Self { engines: engines.into(), formats: formats.into(), provisioners: Arc::default() }
    }

    /// The same with these provisioners. An arm that has several is brought up in this order.
    pub fn with_provisioners(self, provisioners: Vec<Arc<dyn ProvisionerKind>>) -> Self {
        Self { provisioners: provisioners.into(), ..self }
    }

    /// All kinds of provisioners.
    pub fn provisioners(&self) -> impl Iterator<Item = &dyn ProvisionerKind> {
        self.provisioners.iter().map(|kind| &**kind)
    }

    /// The kind of provisioner with this key.
    pub fn provisioner(&self, key: &str) -> Option<&dyn ProvisionerKind> {
        self.provisioners().find(|kind| kind.key().name == key)
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

    /// All kinds of targets, each with its engine.
    pub fn targets(&self) -> Vec<(&'static Mapping, &dyn Engine)> {
        let of = |engine| Engine::targets(engine).into_iter().map(move |kind| (kind, engine));
        self.engines().flat_map(of).collect()
    }

    /// Keys that hold for all below.
    pub fn sections(&self) -> impl Iterator<Item = &'static Key<Map>> {
        let mut sections: Vec<&'static Key<Map>> = Vec::new();
        for key in self.engines().flat_map(Engine::sections) {
            if !sections.iter().any(|known| known.name == key.name) {
                sections.push(key);
            }
        }
        sections.into_iter()
    }

    /// The engine that a work is meant for, as its keys show; `node` is what stands under `keyword`.
    pub fn claimant(&self, keyword: &str, node: &Node) -> Option<&dyn Engine> {
        self.engines().find(|engine| engine.claims(keyword, node))
    }

    /// What levels can set, in loads of any engine or format.
    pub fn axes(&self) -> Vec<&'static LevelAxis> {
        let mut axes: Vec<&'static LevelAxis> = Vec::new();
        let of_formats = self.formats.iter().flat_map(|format| format.axes());
        for axis in self.engines().flat_map(Engine::axes).chain(of_formats) {
            if !axes.iter().any(|known| known.name() == axis.name()) {
                axes.push(axis);
            }
        }
        axes
    }

    /// The format of a text; `None` if it is Tidemark's YAML.
    pub fn format_of(&self, text: &str) -> Option<Arc<dyn Format>> {
        self.formats.iter().find(|format| format.recognizes(text)).cloned()
    }

    /// Makes of a plan what the driver of this name carries out.
    ///
    /// # Errors
    /// A sentence without a full stop, when the driver's name cannot stand where the document has it.
    pub fn localize(&self, plan: &mut Plan, driver: &str) -> Result<(), String> {
        let mut works = plan.stages.iter_mut().flat_map(|stage| &mut stage.works);
        works.try_for_each(|work| self.engine_of(work)?.localize(work, driver))
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
