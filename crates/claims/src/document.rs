//! The keys of documents: the target, and the load.

use crate::job::{Job, Phase, Step, Target};
use tidemark_keys::kinds::{Bytes, Parsed, PositiveDuration, Rate, Whole, Word};
use tidemark_keys::shapes::OneOrList;
use tidemark_keys::{Key, Mapping, Problem, Table};
use tidemark_kubernetes::{IMAGE, IMAGE_NAME, LABEL, Quantity, SIZE, SUBDOMAIN};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::SourcePlan;
use tidemark_load::stopping::Stop;
use tidemark_load::work::Work as Load;
use tidemark_plan::defaults;
use tidemark_plan::engine::WorkPlace;
use tidemark_plan::plan::{Label, Work, WorkKind};
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::works;

/// The most lives of a load.
const MOST_LIVES: u32 = 100_000;
/// The most that live at once: each has a thread.
pub(crate) const MOST_AT_ONCE: u32 = 500;
/// How many live at once at a rate where nobody says it: what is due then waits, and the wait counts.
const AT_ONCE_AT_A_RATE: u32 = 200;

/// The kind of targets.
pub(crate) static CLAIMS: Mapping = Mapping::kind(
    "claims",
    "Volumes of a storage class of Kubernetes, whose life is measured: claimed, mounted, written, copied, deleted",
    &[&CLASS, &NAMESPACE, &CONTEXT, &IMAGE_KEY],
);

static CLASS: Key<Parsed<String>> =
    Key::new("class", "Storage class from which volumes are claimed", SUBDOMAIN)
        .required("write the name of a storage class, as `kubectl get storageclass` shows it")
        .example("fast");
static NAMESPACE: Key<Parsed<String>> =
    Key::new("namespace", "Namespace of the claims and pods, which must exist", LABEL)
        .otherwise("the kubeconfig's");
static CONTEXT: Key<Parsed<String>> = Key::new(
    "context",
    "Context of the kubeconfig, which is found as `kubectl` finds it",
    Parsed("name", |text| match text.is_empty() {
        false => Ok(text.to_owned()),
        true => {
            Err(Problem::new("the context is empty", "write a context of your kubeconfig, or remove the key"))
        }
    }),
)
.otherwise("the current one");
static IMAGE_KEY: Key<Parsed<String>> = Key::new(
    "image",
    "Image of the pods that write and read; `tidemark kubernetes image` makes one",
    IMAGE_NAME,
)
.otherwise("`tidemark:VERSION`");

/// The load.
pub(crate) static LOAD: Mapping = Mapping::new(
    "load",
    "The measured load: volumes live, from their claim to their deletion. Such a load ends by itself",
    &[&LIVES, &BEGIN, &AT_ONCE, &CLAIM_SIZE, &GROWN, &WRITE, &STEPS, &TIMEOUT],
);

/// The key that shows whose work it is.
pub(crate) static LIVES: Key<Whole<u32>> = Key::new("lives", "How many volumes live", Whole(1, MOST_LIVES))
    .required("write how many volumes live, as in `lives: 50`")
    .example("50");
static BEGIN: Key<Rate> = Key::new(
    "rate",
    "Lives are begun at fixed times, so many per time, from which the latency of the claim counts",
    Rate,
)
.otherwise("none: a life begins when one of the `at_once` has ended");
static AT_ONCE: Key<Whole<u32>> = Key::new(
    "at_once",
    "How many live at once; with a `rate`, at most: what is due then waits, and the wait counts",
    Whole(1, MOST_AT_ONCE),
)
.otherwise("1; with a `rate` 200");
static CLAIM_SIZE: Key<Parsed<Quantity>> =
    Key::new("size", "Size that is claimed, as Kubernetes writes it", SIZE).default("1Gi");
static GROWN: Key<Parsed<Quantity>> =
    Key::new("grown", "Size after `resize`, as Kubernetes writes it", SIZE).default("2Gi");
static WRITE: Key<Bytes> = Key::new(
    "write",
    "Bytes that the pod of each volume writes, syncs, and reads back; of each copy, all of them are read and compared",
    Bytes(1),
)
.default("4MiB");
static STEPS: Key<OneOrList<Word<Step>>> = Key::new(
    "steps",
    "What is done with each volume between its first write and its deletion, in this order; what the cluster lacks is left out, with a \
     sentence in the report. `restore` needs a `snapshot` before it",
    OneOrList(Word(&[
        ("resize", Step::Resize),
        ("snapshot", Step::Snapshot),
        ("restore", Step::Restore),
        ("clone", Step::Clone),
    ])),
)
.otherwise("nothing");
static TIMEOUT: Key<PositiveDuration> =
    Key::new("timeout", "How long each phase may take; it has failed after it", PositiveDuration)
        .default("120s");

/// Reads the mapping under `target`; `None` after an error that leaves nothing to go on with.
pub(crate) fn target(table: &mut Table<'_>) -> Option<Target> {
    let (context, namespace) = (table.get(&CONTEXT), table.get(&NAMESPACE));
    let image = table.get(&IMAGE_KEY).unwrap_or_else(|| IMAGE.to_owned());
    Some(Target { context, namespace, class: table.get(&CLASS)?, image })
}

/// Reads a work.
pub(crate) fn work(
    place: WorkPlace,
    mut table: Table<'_>,
    target: &Target,
    context: &Context<'_>,
) -> Option<Work> {
    if place.keyword != LOAD.name {
        let message = format!("`{}` does not apply to the life of volumes", place.keyword);
        table.log().error(
            table.place(),
            message,
            "remove it, or use `load`: each life ends with the volume's deletion",
        );
        return None;
    }
    let common = works::Common::read(&mut table, place.keyword, defaults::ALLOWED_FAILURES);
    let lives = table.get(&LIVES);
    let rate = table.get(&BEGIN);
    let default = if rate.is_some() { AT_ONCE_AT_A_RATE } else { 1 };
    let at_once = table.get(&AT_ONCE).unwrap_or(default);
    let size = table.get(&CLAIM_SIZE).or_else(|| CLAIM_SIZE.usual())?;
    let grown = table.get(&GROWN).or_else(|| GROWN.usual())?;
    let (bytes, steps, timeout_ns) = (table.value(&WRITE), table.all(&STEPS), table.value(&TIMEOUT));
    let entry = table.entry(&STEPS);
    if let Some(entry) = entry {
        let place_of = |step| steps.iter().position(|one| *one == step);
        let twice = (1..steps.len()).any(|last| steps[..last].contains(&steps[last]));
        if twice {
            table.log().error(&entry.key_span, "a step is named twice", "name each step once");
        }
        if let Some(restore) = place_of(Step::Restore)
            && place_of(Step::Snapshot).is_none_or(|snapshot| snapshot > restore)
        {
            let help = "write `snapshot` before `restore`";
            table.log().error(&entry.key_span, "there is no snapshot to restore", help);
        }
        if steps.contains(&Step::Resize) && grown.units() <= size.units() {
            let help = "write a larger size in `grown`: volumes cannot be made smaller";
            table.log().error(&entry.key_span, "the size after `resize` is not larger", help);
        }
        if place_of(Step::Resize).is_some_and(|resize| resize > 0) {
            let help = "write `resize` first: a copy must be as large as what it is of";
            table.log().error(&entry.key_span, "`resize` stands behind other steps", help);
        }
    }
    table.finish();
    let job = Job {
        target: target.clone(),
        lives: lives?,
        rate,
        size: size.to_string(),
        grown: grown.to_string(),
        bytes,
        steps,
        timeout_ns,
        seed: context.seed,
    };
    let phases = job.phases();
    let config = |phase: &Phase| match phase {
        Phase::Claim => match rate {
            Some(rate) => format!("size={};lives={};rate={rate}/s", job.size, job.lives),
            None => format!("size={};lives={}", job.size, job.lives),
        },
        Phase::Resize => format!("size={}", job.grown),
        phase if phase.verifies() => format!("bytes={bytes}"),
        _ => String::new(),
    };
    let label = |phase: &Phase| Label {
        label: phase.name().to_owned(),
        kind: phase.name().to_owned(),
        class: phase.class(),
        verifies: phase.verifies(),
        weight: 100.0 / phases.len() as f64,
        config: config(phase),
    };
    let labels: Vec<Label> = phases.iter().map(label).collect();
    let actions = labels.len() as u16;
    Some(Work {
        name: common.name,
        kind: WorkKind::Normal,
        load: Load {
            workers: at_once.min(job.lives),
            depth: 1,
            connections: None,
            pacing: Pacing::BACK_TO_BACK,
            stop: Stop::default(),
            source: SourcePlan::Rounds { orders: vec![(0..actions).collect()], rounds: job.lives },
            finale: None,
            copies: 1,
            actions,
            seed: context.seed,
            stream: place.stream,
        },
        job: tidemark_plan::job::Job::new(job),
        labels,
        allowed_failures_per_million: common.allowed_failures,
        driver: common.driver,
    })
}
