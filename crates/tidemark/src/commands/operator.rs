//! `tidemark operator`: carries out the Evaluations of a namespace, as `tidemark run` does a document.

use super::assessment::{Judged, failed};
use super::document::NO_BUCKET;
use super::driver_pods::{Lent, Wish, no_bucket, refused, sketches, wanted, with_drivers};
use super::outcome::{command_line, open_store};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::Terminal;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidemark_control::backend::BackendFactory;
use tidemark_control::evaluate::{self, Evaluated, EvaluationEvent, EvaluationSink, Options};
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{self, Trust};
use tidemark_control::local::Local;
use tidemark_control::provenance;
use tidemark_control::witness::Witness;
use tidemark_judge::evaluation::assess;
use tidemark_kubernetes::{Owner, Pods, processors, size};
use tidemark_measure::record::{Note, Provenance, State};
use tidemark_operator::{Carrier, Drivers, Follow, GROUP, Outcome, Task};
use tidemark_plan::diagnostic::{Code, Diagnostic, Severity};
use tidemark_plan::evaluation::{self, Evaluation};
use tidemark_plan::plan::Plan;
use tidemark_plan::policy::{Access, Policy};
use tidemark_plan::redact;
use tidemark_plan::yaml::{Environment, claims_bucket};
use tidemark_pods::{Cluster, PodsError, Which};

/// How long what an operator left behind that was killed may take to go.
const REMOVAL: Duration = Duration::from_secs(120);

/// Watches until a signal.
pub(crate) fn operator(arguments: &cli::Operator, terminal: Terminal) -> Result<Exit, Stop> {
    let which = || Which {
        context: arguments.context.as_deref(),
        namespace: arguments.namespace.as_deref(),
        kubeconfig: None,
    };
    let client = tidemark_apiserver::Client::connect(which()).map_err(Stop::not_ready)?;
    let cluster = Cluster::connect(which()).map_err(refused)?;
    let _alone = alone(&arguments.dir)?;
    tidemark_load::open_files::limit();
    let worker = Worker { cluster, arguments: arguments.clone() };
    worker.clear(&|text| terminal.remark(text)).map_err(Stop::not_ready)?;
    let signals = Signals::listen();
    terminal.remark(&format!("watching the Evaluations of the namespace {}", client.namespace()));
    let carrier: Arc<dyn Carrier> = Arc::new(worker);
    let is_ended = || signals.stop_request() > StopRequest::None;
    let say = Arc::new(move |text: &str| terminal.remark(text));
    tidemark_operator::operate(&Arc::new(client), &carrier, &arguments.dir, &is_ended, say)
        .map_err(Stop::not_ready)?;
    Ok(Exit::Done)
}

/// Keeps a second operator from the same directory as long as the file lives.
fn alone(directory: &Path) -> Result<std::fs::File, Stop> {
    let path = directory.join("operator.lock");
    let wrong = |error: io::Error| Stop::not_ready(format!("cannot use {}: {error}", path.display()));
    std::fs::create_dir_all(directory).map_err(wrong)?;
    let file = std::fs::File::create(&path).map_err(wrong)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::Error(error)) => Err(wrong(error)),
        Err(std::fs::TryLockError::WouldBlock) => {
            let message =
                format!("another operator uses {}: give each a --dir of its own", directory.display());
            Err(Stop::not_ready(message))
        }
    }
}

struct Worker {
    cluster: Cluster,
    arguments: cli::Operator,
}

/// Who watches the pods that put the load on, and what reports say of them; `None`: this process does it.
type Watched = Option<(Arc<dyn Witness>, Note)>;

impl Worker {
    /// Removes the drivers of an operator that was killed. Whoever calls carries nothing out.
    fn clear(&self, say: &dyn Fn(&str)) -> Result<(), PodsError> {
        for found in self.cluster.runs()?.into_iter().filter(|found| found.evaluation.is_some()) {
            say(&format!("removing the drivers {} of an operator before this one", found.run));
            self.cluster.remove(found.made, &found.run, REMOVAL)?;
        }
        Ok(())
    }

    fn try_carry_out(&self, task: &Task, follow: &dyn Follow) -> Result<Outcome, Outcome> {
        let failed = |error: &dyn std::fmt::Display| Outcome::Failed(error.to_string());
        let registry = tidemark_engines::registry();
        let variable = |name: &str| task.variables.get(name).map(|value| value.reveal().to_owned());
        // The volume has the results of others, and the pod a token of Kubernetes.
        let refuse = |_: &Path| {
            let why = "an Evaluation refers to nothing but its variables: write the text into its document, secrets into `variables`";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        };
        let size = |_: &Path| Err(io::Error::other("an operator does not look at devices: give a `size`"));
        let environment = Environment {
            variable: &variable,
            file: &refuse,
            document: &refuse,
            device_size: &size,
            ..Environment::process(&registry)
        };
        let text = &task.spec.document;
        if claims_bucket(text) {
            return Err(Outcome::Wrong(NO_BUCKET.to_owned()));
        }
        let read = evaluation::read(text, Path::new(""), &environment);
        let (document, _) = read.map_err(|wrong| Outcome::Wrong(sentences(text, &wrong)))?;
        nothing_of_this_machine(&document).map_err(Outcome::Wrong)?;
        let plans = sketches(&document, &environment).map_err(Outcome::Wrong)?;
        self.clear(&|said| follow.say(said)).map_err(|error| match error {
            PodsError::Away { .. } => Outcome::Later("Away", error.to_string()),
            error => failed(&error),
        })?;
        let Some(drivers) = &task.spec.drivers else {
            let policy = Policy::default();
            plans.iter().try_for_each(|plan| policy.check(plan, &registry)).map_err(|why| {
                Outcome::Wrong(format!(
                    "{why}; an operator's own process has no path for loads, `spec.drivers` may have volumes"
                ))
            })?;
            return self.measure(document, task, (Arc::new(Local), None), &environment, follow);
        };
        let mut on = self.on(drivers).map_err(Outcome::Wrong)?;
        let named = plans.iter().filter_map(|plan| Some(&plan.drivers.pods.as_ref()?.image));
        if on.image.is_none() && named.into_iter().all(|image| *image == Pods::default().image) {
            on.image = Some(self.arguments.image.clone());
        }
        let (pods, count) = wanted(&plans, &on).map_err(|stop| Outcome::Wrong(stop.message))?;
        no_bucket(&pods).map_err(|stop| Outcome::Wrong(stop.message))?;
        if pods.namespace.as_deref().is_some_and(|namespace| namespace != self.cluster.namespace()) {
            return Err(Outcome::Wrong(
                "drivers are in the namespace of their Evaluation: remove `namespace`".to_owned(),
            ));
        }
        let owner =
            Owner { api_version: GROUP, kind: "Evaluation", name: task.name.clone(), uid: task.uid.clone() };
        let wish = Wish {
            name: &task.name,
            pods: &pods,
            count,
            advertise: on.advertise.as_ref(),
            wait: on.wait,
            owner: Some(owner),
        };
        let is_stopped = || follow.is_stopped();
        let measured = with_drivers(
            &self.cluster,
            &wish,
            &is_stopped,
            &mut |said| follow.say(said),
            |Lent { backends, witness, note, .. }| {
                self.measure(document, task, (backends, Some((witness, note))), &environment, follow)
            },
        );
        measured.map_err(|Stop { exit, message }| match exit {
            Exit::Interrupted => Outcome::Stopped,
            _ => Outcome::Failed(message),
        })?
    }

    fn measure(
        &self,
        mut document: Evaluation,
        task: &Task,
        (backends, watched): (Arc<dyn BackendFactory>, Watched),
        environment: &Environment<'_>,
        follow: &dyn Follow,
    ) -> Result<Outcome, Outcome> {
        let (witness, note) = watched.unzip();
        document.notes.extend(note);
        std::fs::create_dir_all(&task.directory)
            .map_err(|error| Outcome::Failed(format!("cannot use {}: {error}", task.directory.display())))?;
        let mut store = open_store(Some(task.directory.join("results.db")))
            .map_err(|stop| Outcome::Failed(stop.message))?;
        let provenance = Provenance {
            command: command_line(),
            path: format!("Evaluation {}/{}", self.cluster.namespace(), task.name),
            format: "Tidemark evaluation".into(),
            document: redact::redact(&task.spec.document),
            ..provenance::of_this_machine(env!("CARGO_PKG_VERSION"))
        };
        let run = execute::Options {
            scratch: Some(PathBuf::from(&task.directory)),
            access: Access::within(Policy::default()),
            witness,
            ..execute::Options::new(environment.registry.clone(), backends, Trust::Network)
        };
        let mut sink = Sink { follow, done: 0, of: None };
        let evaluated = evaluate::evaluate(
            &document,
            provenance,
            &Options::new(run),
            environment,
            Some(&mut store),
            &mut sink,
        );
        let Evaluated { evaluation, runs, trouble, .. } =
            evaluated.map_err(|error| Outcome::Failed(error.to_string()))?;
        if evaluation.state == State::Interrupted {
            return Ok(Outcome::Stopped);
        }
        let assessment = assess(&evaluation, &runs);
        let mut troubles: Vec<String> = trouble.iter().map(ToString::to_string).collect();
        if let Err(error) =
            store.keep_evaluation(&evaluation, Some(&tidemark_control::listing::of_evaluation(&assessment)))
        {
            troubles.push(format!("the verdict could not be stored: {error}"));
        }
        let judged = Judged { evaluation: &evaluation, assessment: &assessment, runs: &runs };
        if failed(&judged) {
            troubles.push("a run failed, or something critical was found: see the report".to_owned());
        }
        let (html, markdown) = (judged.html(Some(&store)), judged.markdown());
        for (name, text) in [("report.html", &html), ("report.md", &markdown)] {
            if let Err(error) = std::fs::write(task.directory.join(name), text) {
                troubles.push(format!("{name} could not be written: {error}"));
            }
        }
        Ok(Outcome::Completed(Box::new(tidemark_operator::Result {
            runs: runs.len() as u64,
            verdict: assessment.verdict.join(" "),
            invalid: if assessment.validity.is_valid() {
                Vec::new()
            } else {
                assessment.validity.sentences()
            },
            trouble: troubles.join("; "),
            html,
            markdown,
        })))
    }

    /// The drivers of a resource as options of the command line.
    fn on(&self, drivers: &Drivers) -> Result<cli::On, String> {
        let key = |key: &'static str| move |why| format!("spec.drivers.{key}: {why}");
        let Drivers { count, image, cpu, memory } = drivers;
        Ok(cli::On {
            on: None,
            drivers: *count,
            namespace: None,
            image: image.clone(),
            cpu: cpu.as_deref().map(processors).transpose().map_err(key("cpu"))?,
            memory: memory.as_deref().map(size).transpose().map_err(key("memory"))?,
            advertise: self.arguments.advertise.clone(),
            wait: self.arguments.wait,
            dry_run: false,
        })
    }
}

impl Carrier for Worker {
    fn carry_out(&self, task: &Task, follow: &dyn Follow) -> Outcome {
        self.try_carry_out(task, follow).unwrap_or_else(|outcome| outcome)
    }
}

/// What an evaluation may do only where its user sits.
fn nothing_of_this_machine(evaluation: &Evaluation) -> Result<(), String> {
    for arm in &evaluation.arms {
        let what = match (arm.has_commands(), arm.requests.first()) {
            (true, _) => "has shell commands".to_owned(),
            (false, Some(request)) => format!("has a `{}`", request.key()),
            (false, None) => continue,
        };
        return Err(format!(
            "arm `{}` {what}, and an operator sets nothing up: name what is there already, or use `tidemark run` where the arm is set up",
            arm.name
        ));
    }
    Ok(())
}

/// All errors with their places.
fn sentences(text: &str, diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error);
    let said = errors.map(|one| {
        let place = match one.span.start == 0 && one.span.end == 0 {
            true => "spec.document".to_owned(),
            false => {
                let (line, column) = one.line_and_column(text);
                format!("spec.document, line {line}, column {column}")
            }
        };
        let help = match one.code {
            Code::UnsetVariable(_) => "list it under `spec.variables`",
            _ => &one.help,
        };
        let separator = if help.is_empty() { "" } else { "; " };
        format!("{place}: {}{separator}{help}", one.message)
    });
    said.collect::<Vec<_>>().join("\n")
}

/// Passes on how far an evaluation is.
struct Sink<'a> {
    follow: &'a dyn Follow,
    done: u64,
    of: Option<u64>,
}

impl EvaluationSink for Sink<'_> {
    fn event(&mut self, event: EvaluationEvent<'_>) {
        match event {
            EvaluationEvent::Started { done, left } => {
                (self.done, self.of) = (done as u64, Some((done + left) as u64));
            }
            EvaluationEvent::RunStarted { number, of, .. } => {
                (self.done, self.of) = (number.saturating_sub(1) as u64, of.map(|of| of as u64));
            }
            EvaluationEvent::RunEnded(run) => {
                self.follow.say(&format!("run {}: {}", run.id, run.state.name()));
                self.done += 1;
            }
            _ => return,
        }
        self.follow.runs(self.done, self.of);
    }

    fn stop_request(&mut self) -> StopRequest {
        if self.follow.is_stopped() { StopRequest::Finish } else { StopRequest::None }
    }

    fn sink<'a>(&'a mut self, _plan: &Plan) -> Box<dyn EventSink + 'a> {
        Box::new(Silent(self.follow))
    }
}

/// What single seconds say is in the report.
struct Silent<'a>(&'a dyn Follow);

impl EventSink for Silent<'_> {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Trouble(text) = event {
            self.0.say(text);
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        if self.0.is_stopped() { StopRequest::Finish } else { StopRequest::None }
    }
}
