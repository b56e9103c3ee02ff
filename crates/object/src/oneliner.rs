//! A plan from a command line: `tidemark object get --endpoint URL --size 4KiB --workers 32 --for 60s`.
//!
//! The stages are those that a person would write: make the containers, fill them when there is something to
//! read, put the load on, delete what was made.

use crate::job::{Action, Content, Emptied, Form, Job, Keeps, Naming, Target, Verb};
use tidemark_load::pacing::{Arrivals, Pacing, Rate};
use tidemark_load::source::{Choice, Division, Effect, Order, PoolPlan, Size, SourcePlan};
use tidemark_load::stopping::Stop;
use tidemark_load::work::Work as Load;
use tidemark_measure::pick::Pick;
use tidemark_plan::defaults;
use tidemark_plan::plan::{Drivers, Label, Observe, OnFailure, OperationClass, Plan, Stage, Work, WorkKind};
use tidemark_plan::selector;

/// What the load does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    /// Reads.
    Get,
    /// Writes.
    Put,
    /// Reads headers.
    Head,
    /// Deletes, and writes again, in equal shares.
    Delete,
    /// Lists containers.
    List,
    /// Reads and writes: the share of reads, above 0 and below 1.
    Mixed(f64),
}

/// The settings of a command line. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct OneLiner {
    /// What the load does.
    pub mix: Mix,
    /// The target.
    pub target: Target,
    /// Sizes of objects.
    pub size: Size,
    /// Containers.
    pub containers: u64,
    /// Objects in each container.
    pub objects: u64,
    /// Logical clients.
    pub workers: u32,
    /// Operations per second of an open loop; `None`: a closed loop.
    pub rate: Option<f64>,
    /// How the due times of an open loop spread.
    pub arrivals: Arrivals,
    /// Length of the measured window.
    pub window_ns: u64,
    /// Length of the rounds, whole seconds, that end the window when five of them are steady, nanoseconds.
    pub until_steady_ns: Option<u64>,
    /// Load before the window.
    pub warm_up_ns: u64,
    /// Verify what is read.
    pub verify: bool,
    /// Leave containers and objects where they are.
    pub keep: bool,
    /// Where random choices come from.
    pub seed: u64,
    /// Prefix of the containers' names.
    pub prefix: String,
}

/// An invalid command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OneLinerError(String);

impl OneLiner {
    /// The plan of it.
    ///
    /// # Errors
    /// For counts and times of zero, a share outside 0 to 1, and numbers that no machine can mean.
    pub fn plan(&self) -> Result<Plan, OneLinerError> {
        self.check()?;
        let mut stages = vec![self.scan(WorkKind::Init)];
        if !matches!(self.mix, Mix::Put) {
            stages.push(self.scan(WorkKind::Prepare));
        }
        stages.push(self.stage("main", self.load()));
        if !self.keep {
            stages.extend([self.scan(WorkKind::Cleanup), self.scan(WorkKind::Dispose)]);
        }
        for (index, stage) in stages.iter_mut().enumerate() {
            stage.works.iter_mut().for_each(|work| work.load.stream = [index as u64, 0]);
        }
        let name = format!("object-{}", self.name());
        let (description, notes) = (String::new(), Vec::new());
        Ok(Plan {
            name,
            description,
            seed: self.seed,
            trigger: None,
            stages,
            notes,
            observe: Observe::default(),
            drivers: Drivers::default(),
        })
    }

    fn name(&self) -> &'static str {
        match self.mix {
            Mix::Get => "get",
            Mix::Put => "put",
            Mix::Head => "head",
            Mix::Delete => "delete",
            Mix::List => "list",
            Mix::Mixed(_) => "mixed",
        }
    }

    fn check(&self) -> Result<(), OneLinerError> {
        let refuse = |message: &str| Err(OneLinerError(message.to_owned()));
        // Numbers beyond this are refused in documents, too.
        let countable = 1..=1_000_000_000_000;
        if !countable.contains(&self.containers) || !countable.contains(&self.objects) {
            return refuse("the numbers of containers and objects must be from 1 to 1000000000000");
        }
        if !(1..=defaults::MOST_WORKERS).contains(&self.workers) {
            return refuse("the number of workers must be from 1 to 1000000");
        }
        if self.window_ns == 0 {
            return refuse("the duration must be longer than zero: use a time such as 60s");
        }
        if self.until_steady_ns.is_some_and(|round| round == 0 || !round.is_multiple_of(1_000_000_000)) {
            return refuse("rounds until the load is steady must take whole seconds, such as 5s");
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e9)) {
            return refuse("the rate must be above 0 and at most 1000M/s");
        }
        match self.mix {
            Mix::Mixed(reads) if !(reads > 0.0 && reads < 1.0) => refuse(
                "the share of reads in a mix must be above 0 % and below 100 %: otherwise use get or put",
            ),
            _ => Ok(()),
        }
    }

    fn stage(&self, name: &str, work: Work) -> Stage {
        Stage {
            name: name.to_owned(),
            works: vec![work],
            pause_ns: 0,
            trigger: None,
            number: None,
            on_failure: OnFailure::Stop,
            cell: None,
        }
    }

    /// A stage that goes once through all containers or objects, with as many workers as there is work for.
    fn scan(&self, kind: WorkKind) -> Stage {
        let (verb, on_objects, class) = match kind {
            WorkKind::Init => (Verb::CreateContainer { keeps: Keeps::Latest }, false, OperationClass::Init),
            WorkKind::Dispose => {
                (Verb::DeleteContainer { empty: Emptied::Never }, false, OperationClass::Dispose)
            }
            WorkKind::Cleanup => (Verb::Clear { versions: false }, true, OperationClass::Delete),
            _ => (PUT, true, OperationClass::Write),
        };
        let (spaces, items) = ((1, self.containers), on_objects.then_some((1, self.objects)));
        let zero = Size { pick: Pick::Constant(0), unit: 1 };
        let bytes = if kind == WorkKind::Prepare { self.size.clone() } else { zero };
        let source = SourcePlan::Scan { action: 0, spaces: Some(spaces), items, bytes };
        let most = source.operations().unwrap_or(1).min(u64::from(self.workers));
        let label = self.label(kind.name(), class, 100.0, on_objects, kind == WorkKind::Prepare);
        let stop = Stop { give_up_ns: Some(defaults::give_up_ns(self.target.attempt_ns())), ..self.stop() };
        let load = Load {
            depth: 1,
            connections: None,
            finale: None,
            copies: 1,
            workers: u32::try_from(most).unwrap_or(self.workers),
            pacing: Pacing::BACK_TO_BACK,
            stop,
            source,
            actions: 1,
            seed: self.seed,
            stream: [0, 0],
        };
        self.stage(kind.name(), self.work(kind.name(), kind, load, vec![verb], vec![label]))
    }

    fn load(&self) -> Work {
        let delete = (Verb::Delete, "delete", OperationClass::Delete, Effect::Removes);
        let get = (Verb::Get, "get", OperationClass::Read, Effect::Uses);
        let put = (PUT, "put", OperationClass::Write, Effect::Makes);
        let list = Verb::List { page: 1000, all: false, by_object: false };
        let ways = match self.mix {
            Mix::Get => vec![(get, 1.0)],
            Mix::Put => vec![(put, 1.0)],
            Mix::Head => vec![((Verb::Head, "head", OperationClass::Head, Effect::Uses), 1.0)],
            Mix::Delete => vec![(delete, 0.5), (put, 0.5)],
            Mix::List => vec![((list, "list", OperationClass::List, Effect::Free), 1.0)],
            Mix::Mixed(reads) => vec![(get, reads), (put, 1.0 - reads)],
        };
        let (mut choices, mut verbs, mut labels) = (vec![], vec![], vec![]);
        for (index, ((verb, kind, class, effect), weight)) in ways.into_iter().enumerate() {
            let (on_objects, sized) = (kind != "list", kind == "put");
            choices.push(Choice {
                action: index as u16,
                weight,
                spaces: all(self.containers),
                items: if on_objects { all(self.objects) } else { Pick::Constant(0) },
                bytes: if sized { self.size.clone() } else { Size { pick: Pick::Constant(0), unit: 1 } },
                division: Division::None,
                effect,
                order: Order::Picked,
                follow: None,
            });
            labels.push(self.label(kind, class, weight * 100.0, on_objects, sized));
            verbs.push(verb);
        }
        // Where workers change what others use, each uses only objects of its own, which exist.
        let pooled = matches!(self.mix, Mix::Delete) || (self.verify && matches!(self.mix, Mix::Mixed(_)));
        let (spaces, items) = ((1, self.containers), (1, self.objects));
        let pool = pooled.then_some(PoolPlan { spaces, items, existing: Some(items) });
        let pacing = match self.rate {
            Some(rate) => Pacing::Open { rate: Rate::constant(rate), arrivals: self.arrivals },
            None => Pacing::BACK_TO_BACK,
        };
        let stop = Stop {
            warm_up_ns: self.warm_up_ns,
            window_ns: Some(self.window_ns),
            until_steady_ns: self.until_steady_ns,
            ..self.stop()
        };
        let load = Load {
            depth: 1,
            connections: None,
            finale: None,
            copies: 1,
            workers: self.workers,
            pacing,
            stop,
            source: SourcePlan::Mix { choices, pool, deck: false },
            actions: verbs.len() as u16,
            seed: self.seed,
            stream: [0, 0],
        };
        self.work(self.name(), WorkKind::Normal, load, verbs, labels)
    }

    fn stop(&self) -> Stop {
        Stop { drain_ns: defaults::drain_ns(self.target.attempt_ns()), ..Stop::default() }
    }

    fn work(&self, name: &str, kind: WorkKind, load: Load, verbs: Vec<Verb>, labels: Vec<Label>) -> Work {
        let naming = Naming {
            container: None,
            container_prefix: self.prefix.clone(),
            container_suffix: String::new(),
            object_prefix: "object-".into(),
            object_suffix: String::new(),
            existing: None,
        };
        let form = Form::Seeded { compressible: 0.0, duplicate: 0.0 };
        let content = Content { form, verify: self.verify };
        let actions =
            verbs.into_iter().map(|verb| Action { verb, naming: naming.clone(), content }).collect();
        let normal = kind == WorkKind::Normal;
        Work {
            name: name.to_owned(),
            kind,
            load,
            job: tidemark_plan::job::Job::new(Job { target: self.target.clone(), actions }),
            labels,
            allowed_failures_per_million: if normal { defaults::ALLOWED_FAILURES } else { 0 },
            driver: None,
        }
    }

    fn label(&self, kind: &str, class: OperationClass, weight: f64, on_objects: bool, sized: bool) -> Label {
        let mut config = format!("containers={}", selector::print(&all(self.containers)));
        if on_objects {
            config += &format!(";objects={}", selector::print(&all(self.objects)));
        }
        if sized {
            config += &format!(";sizes={}", selector::print_size(&self.size));
        }
        let verifies = self.verify && class == OperationClass::Read;
        if verifies {
            config += ";verify=true";
        }
        Label { label: kind.to_owned(), kind: kind.to_owned(), class, verifies, weight, config }
    }
}

const PUT: Verb = Verb::Put { chunked: false, if_absent: false };

/// Numbers from 1 on, all equally likely.
fn all(count: u64) -> Pick {
    Pick::Uniform { low: 1, high: count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Objects;
    use crate::job::Embedded;
    use std::sync::Arc;
    use tidemark_measure::record::Note;
    use tidemark_plan::forecast::forecast;
    use tidemark_plan::registry::Registry;

    fn one(mix: Mix) -> OneLiner {
        OneLiner {
            mix,
            target: Target::Embedded(Embedded::default()),
            size: Size { pick: Pick::Constant(4096), unit: 1 },
            containers: 2,
            objects: 500,
            workers: 32,
            rate: None,
            arrivals: Arrivals::Constant,
            window_ns: 60_000_000_000,
            until_steady_ns: None,
            warm_up_ns: 2_000_000_000,
            verify: true,
            keep: false,
            seed: 7,
            prefix: "bench-".into(),
        }
    }

    fn remarks(plan: &Plan) -> Vec<Note> {
        forecast(plan, &Registry::new(vec![Arc::new(Objects)], vec![])).notes
    }

    #[test]
    fn every_mix_makes_a_plan_without_surprises() {
        for mix in [Mix::Get, Mix::Head, Mix::Delete, Mix::List, Mix::Mixed(0.7)] {
            let plan = one(mix).plan().unwrap();
            let names: Vec<_> = plan.stages.iter().map(|stage| stage.name.as_str()).collect();
            assert_eq!(names, ["init", "prepare", "main", "cleanup", "dispose"], "{mix:?}");
            assert_eq!(remarks(&plan), [], "{mix:?}");
            assert_eq!(plan.stages[0].works[0].load.workers, 2, "no more workers than containers");
            assert_eq!(plan.stages[3].works[0].load.stream, [3, 0]);
        }
        let plan = OneLiner { verify: false, ..one(Mix::Put) }.plan().unwrap();
        assert_eq!(plan.stages.len(), 4, "nothing is prepared for writes");
        assert_eq!(remarks(&plan), []);
    }

    #[test]
    fn what_is_asked_for_is_in_the_plan() {
        let asked =
            OneLiner { rate: Some(500.0), arrivals: Arrivals::Poisson, keep: true, ..one(Mix::Mixed(0.7)) };
        let plan = asked.plan().unwrap();
        assert_eq!(plan.stages.last().map(|stage| stage.name.as_str()), Some("main"));
        let work = &plan.stages[2].works[0];
        assert!(
            matches!(&work.load.pacing, Pacing::Open { rate, arrivals: Arrivals::Poisson } if rate.at(0) == 500.0)
        );
        assert_eq!(
            (work.load.stop.window_ns, work.load.stop.warm_up_ns),
            (Some(60_000_000_000), 2_000_000_000)
        );
        assert_eq!(
            (work.labels[0].label.as_str(), work.labels[1].config.as_str()),
            ("get", "containers=u(1,2);objects=u(1,500);sizes=c(4096)B")
        );
        assert!((work.labels[0].weight - 70.0).abs() < 1e-9);
        let job = Job::of(work).expect("one-liners are about objects");
        assert!(job.actions[0].content.verify);
        assert_eq!(job.actions[0].naming.container_prefix, "bench-");
    }

    #[test]
    fn nonsense_is_refused() {
        for wrong in [
            OneLiner { containers: 0, ..one(Mix::Get) },
            OneLiner { objects: u64::MAX, ..one(Mix::Get) },
            OneLiner { workers: 0, ..one(Mix::Get) },
            OneLiner { window_ns: 0, ..one(Mix::Get) },
            OneLiner { until_steady_ns: Some(1_500_000_000), ..one(Mix::Get) },
            OneLiner { rate: Some(f64::NAN), ..one(Mix::Get) },
            one(Mix::Mixed(1.0)),
        ] {
            assert!(wrong.plan().is_err(), "{wrong:?}");
        }
    }
}
