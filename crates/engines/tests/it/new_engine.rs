//! A new engine needs nothing but itself: one that only sleeps, and lives in this test alone, is read, forecast, checked,
//! put under levels, run here and on drivers, judged by a rule of its own and reported with a section and a figure of its own,
//! without a change anywhere else.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use axum::extract::ws::WebSocketUpgrade;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidemark_control::evaluate::{self, EvaluationEvent, EvaluationSink, evaluate};
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{Options, Trust, execute};
use tidemark_fleet::fleet::{self, Presence};
use tidemark_fleet::link::{self, Join};
use tidemark_fleet::protocol::{Hello, VERSION};
use tidemark_fleet::{Fleet, driver};
use tidemark_judge::evidence::{self, Evidence, Kind};
use tidemark_judge::section::{self, Block, Lines, Section, Tone, Unit};
use tidemark_judge::words::phrase::{Phrase, count, phrase};
use tidemark_judge::{Facts, Findings, Severity, StageContext, What};
use tidemark_keys::kinds::{PositiveDuration, Whole};
use tidemark_keys::tree::Node;
use tidemark_keys::{Key, Mapping, Problem, Table};
use tidemark_load::engine::{
    Begin, Clock, Completion, OpenError, Operation, Outcome, Session, Sessions, ThreadContext, Tick,
};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Effect, Order, SourcePlan};
use tidemark_load::work::Work as Load;
use tidemark_measure::axis::Axis;
use tidemark_measure::pick::Pick;
use tidemark_measure::record::{self, Note, Proof, Provenance, Run, State};
use tidemark_plan::diagnostic::Diagnostic;
use tidemark_plan::document;
use tidemark_plan::engine::{
    Carrier, Engine, Placement, Prepared, ReadWork, Setup, StageWorks, Target, WorkPlace,
};
use tidemark_plan::evaluation::{self, Evaluation};
use tidemark_plan::forecast::{Action, Amount, Does, Forecaster, Remarks, forecast, operations};
use tidemark_plan::job::{Job, JobData};
use tidemark_plan::level::{LevelAxis, RATE};
use tidemark_plan::plan::{Label, OperationClass, Plan, Stage, Work, WorkKind};
use tidemark_plan::policy::Policy;
use tidemark_plan::registry::Registry;
use tidemark_plan::schema::{reference, schema};
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::scope::Scope;
use tidemark_plan::yaml::timing::{self, TIMING};
use tidemark_plan::yaml::works::Common;
use tidemark_plan::yaml::{Environment, values};
use tidemark_report::evaluation::Subject;

const DOCUMENT: &str = "name: naps\nseed: 7\ntarget: {kind: bed, nap: 2ms}\nstages:\n  \
                        - load: {sleepers: 4, total_operations: 200}\n";

const SLEEPS: Does = Does { code: "sleeps", counts: "nap", moves_bytes: false };

static BED: Mapping = Mapping::kind("bed", "A place to sleep", &[&NAP]);
static NAP: Key<PositiveDuration> = Key::new("nap", "How long a nap is", PositiveDuration).default("1ms");
static LOAD: Mapping = Mapping::new("load", "Sleeping", &[&SLEEPERS]).with(&[&TIMING]);
static SLEEPERS: Key<Whole<u32>> = Key::new("sleepers", "How many sleep", Whole(1, 100)).default("1");

static SLEEPERS_AXIS: LevelAxis = LevelAxis::count("sleepers", 100, "How many sleep");

/// Sleeps.
struct Sleep;

/// How long a nap is, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Nap(u64);

impl JobData for Nap {
    fn engine(&self) -> &'static str {
        "sleep"
    }
}

impl Engine for Sleep {
    fn name(&self) -> &'static str {
        "sleep"
    }

    fn subject(&self) -> &'static str {
        "beds"
    }

    fn targets(&self) -> Vec<&'static Mapping> {
        vec![&BED]
    }

    fn work_keys(&self) -> Vec<&'static Mapping> {
        vec![&LOAD]
    }

    fn target(&self, _kind: &str, table: &mut Table<'_>, _: &Environment<'_>) -> Option<Target> {
        Some(Target::new("sleep", Nap(table.value(&NAP))))
    }

    fn bare_target(&self, _kind: &str) -> Result<Target, Problem> {
        Ok(Target::new("sleep", Nap(1_000_000)))
    }

    fn claims(&self, keyword: &str, node: &Node) -> bool {
        keyword == "load" && node.entry("sleepers").is_some()
    }

    fn axes(&self) -> Vec<&'static LevelAxis> {
        vec![&SLEEPERS_AXIS, &RATE]
    }

    fn works(
        &self,
        place: WorkPlace,
        mut table: Table<'_>,
        target: &Target,
        _scope: &Scope<'_>,
        context: &Context<'_>,
    ) -> Vec<ReadWork> {
        let Some(nap) = target.get::<Nap>() else { return Vec::new() };
        let workers = table.value(&SLEEPERS);
        let Common { name, allowed_failures, driver } = Common::read(&mut table, place.keyword, 0);
        let (pacing, stop) = (timing::pacing(&mut table), timing::ends(&mut table, nap.0));
        table.finish();
        let choice = Choice {
            action: 0,
            weight: 1.0,
            spaces: Pick::Constant(1),
            items: Pick::Constant(1),
            bytes: values::constant(0),
            division: Division::None,
            effect: Effect::Free,
            order: Order::Picked,
            follow: None,
        };
        let load = Load {
            workers,
            depth: 1,
            connections: None,
            pacing,
            stop,
            source: SourcePlan::Mix { choices: vec![choice], pool: None, deck: false },
            finale: None,
            copies: 1,
            actions: 1,
            seed: context.seed,
            stream: place.stream,
        };
        let label = Label {
            label: "nap".into(),
            kind: "nap".into(),
            class: OperationClass::named("nap"),
            verifies: false,
            weight: 100.0,
            config: format!("nap={} ns", nap.0),
        };
        let work = Work {
            name,
            kind: WorkKind::Normal,
            load,
            job: Job::new(nap.clone()),
            labels: vec![label],
            allowed_failures_per_million: allowed_failures,
            driver,
        };
        vec![ReadWork { work, point: None }]
    }

    fn unpack(&self, data: &serde_json::Value) -> Result<Job, serde_json::Error> {
        Ok(Job::new(Nap::deserialize(data)?))
    }

    fn evidence(&self) -> Vec<&'static dyn Kind> {
        vec![&Slept]
    }

    fn forecast(&self) -> Box<dyn Forecaster> {
        Box::new(Dream)
    }

    fn check_policy(&self, policy: &Policy, who: &str, _work: &Work) -> Result<(), String> {
        match policy.directories.is_empty() {
            true => Ok(()),
            false => Err(format!("{who} does not sleep among files")),
        }
    }

    fn placement(&self, _work: &Work) -> Placement {
        Placement::Divisible
    }

    fn prepare(&self, _plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        (setup.ready)("a bed".into());
        Ok(Box::new(Made))
    }
}

/// What naps come to.
struct Dream;

impl Forecaster for Dream {
    fn stage(&mut self, _stage: &Stage, works: &[&Work], remarks: &mut Remarks) -> Vec<Vec<Action>> {
        remarks.add("sleep", "nothing is stored".into());
        let action = |work: &&Work| {
            let operations = operations(&work.load);
            vec![Action {
                label: "nap".into(),
                ratio: 100.0,
                does: SLEEPS,
                names: String::new(),
                operations,
                count: operations,
                held: Amount::Open,
                bytes: Amount::Exactly(0),
            }]
        };
        works.iter().map(action).collect()
    }

    fn until(&self, _work: &Work) -> Option<String> {
        None
    }
}

/// A bed that is made.
struct Made;

impl Prepared for Made {
    fn open(&mut self, stage: StageWorks<'_>, _notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let works = stage.works;
        let carrier = |work: &&Work| {
            let nap = work.job.get::<Nap>().ok_or("a job of another engine")?;
            Ok(Carrier::Sessions(Box::new(Beds(nap.0))))
        };
        works.iter().map(carrier).collect()
    }

    fn close(&mut self, _remarks: &[String]) -> Option<Proof> {
        let mut proof = Proof::default();
        evidence::write::<Slept>(&mut proof, &Nights { beds: 1, nights: vec![(1, 8), (2, 6)] });
        Some(proof)
    }
}

/// What sleepers found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Nights {
    /// Beds that were slept in; each driver has its own.
    beds: u64,
    /// The hours that each night had.
    nights: Vec<(u32, u64)>,
}

/// How evidence of sleep is joined, judged and shown.
struct Slept;

impl Evidence for Slept {
    type Data = Nights;

    const KEY: &'static str = "slept";

    fn join(data: &mut Nights, other: Nights) {
        data.beds += other.beds;
    }

    fn judge_stage(stage: &StageContext<'_>, data: &Nights, out: &mut Findings) {
        out.add(stage.about(Severity::Good, What::of_engine(Rest { beds: data.beds })));
    }

    fn sections(_run: &Run, stages: &[(&record::Stage, Nights)]) -> Vec<Section> {
        let mut table = section::Table::new("Nights").words(["Stage"]).numbers(["Beds"]);
        for (stage, nights) in stages {
            table.row(Tone::Plain, vec![stage.id.clone(), nights.beds.to_string()]);
        }
        let line = |(stage, nights): &(&record::Stage, Nights)| {
            let points = nights.nights.iter().map(|(night, hours)| (*night, *hours as f64));
            (stage.id.clone(), points.collect())
        };
        let lines = Lines {
            name: "hours-by-night",
            title: "Hours by night",
            steps: "night",
            unit: Unit::Count("hours"),
            lines: stages.iter().map(line).collect(),
        };
        vec![Section {
            id: "nights",
            title: "Nights",
            blocks: vec![Block::Lines(lines), Block::Table(table)],
            in_short: None,
        }]
    }
}

/// That somebody slept.
#[derive(Debug, Serialize)]
struct Rest {
    beds: u64,
}

impl Facts for Rest {
    fn rule(&self) -> &'static str {
        "rested"
    }

    fn title(&self) -> Phrase {
        phrase!["sleepers rested in ", count(self.beds), " beds"]
    }

    fn detail(&self) -> String {
        String::new()
    }

    fn evidence(&self) -> Vec<String> {
        Vec::new()
    }

    fn proves(&self) -> bool {
        true
    }
}

struct Beds(u64);

impl Sessions for Beds {
    fn open(&self, thread: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        Ok(Box::new(Sleeper { nap_ns: self.0, clock: thread.clock, asleep: VecDeque::new() }))
    }
}

struct Sleeper {
    nap_ns: u64,
    clock: Clock,
    /// Slots, and when they wake.
    asleep: VecDeque<(u32, Tick)>,
}

impl Session for Sleeper {
    fn begin(&mut self, slot: u32, _operation: &Operation, sent: Tick) -> Begin {
        self.asleep.push_back((slot, sent + self.nap_ns));
        Begin::Started
    }

    fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>) {
        let next = self.asleep.front().map_or(until, |(_, wakes)| (*wakes).min(until));
        std::thread::sleep(Duration::from_nanos(next.saturating_sub(self.clock.now())));
        while let Some((slot, _)) = self.asleep.pop_front_if(|(_, wakes)| *wakes <= self.clock.now()) {
            ended.push(Completion { slot, done: self.clock.now(), outcome: Outcome::success(0) });
        }
    }

    fn abandon(&mut self) {
        self.asleep.iter_mut().for_each(|(_, wakes)| *wakes = 0);
    }
}

/// The engine in one line; the list of the product is not touched.
fn registry() -> Registry {
    Registry::new(vec![Arc::new(Sleep)], Vec::new())
}

fn plan() -> Plan {
    let registry = registry();
    document::read(DOCUMENT, &Environment::process(&registry)).unwrap().plan
}

struct Quiet;

impl EvaluationSink for Quiet {
    fn event(&mut self, _event: EvaluationEvent<'_>) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }

    fn sink<'a>(&'a mut self, _plan: &Plan) -> Box<dyn EventSink + 'a> {
        Box::new(Quiet)
    }
}

impl EventSink for Quiet {
    fn event(&mut self, _event: Event<'_>) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

fn check(run: &Run, beds: u64) {
    assert_eq!(run.state, State::Completed, "{}", run.stages[0].reason);
    let targets = &run.provenance.targets;
    assert!(targets.iter().any(|target| target.contains("a bed")), "{targets:?}");
    let nap = &run.stages[0].works[0].operations[0];
    assert_eq!((nap.label.as_str(), nap.tally.ok, nap.tally.failed()), ("nap", 200, 0));
    assert!(nap.tally.response.quantile(0.0) >= 1_990_000, "a nap takes 2 ms");
    let judgement = tidemark_judge::judge(run);
    let page = tidemark_report::html(run, &judgement);
    assert!(page.contains("nap") && page.contains("bed"), "it is in the report");
    // Its evidence has its own rule, section and figure.
    assert_eq!(
        evidence::read::<Slept>(&run.stages[0]).unwrap().beds,
        beds,
        "what each driver found is joined"
    );
    let rested = judgement.findings.iter().find(|finding| finding.rule() == "rested").unwrap();
    assert_eq!(rested.title(), format!("sleepers rested in {beds} beds"));
    assert!(rested.what.is_evidence());
    let row = format!("<td class=\"n\">{beds}</td>");
    assert!(page.contains("<section id=\"nights\">") && page.contains(&row), "its section");
    assert!(page.contains("Hours by night") && page.contains("8 in night 1, 6 in night 2."), "its figure");
    assert!(tidemark_report::markdown(run, &judgement).contains("## Nights"));
}

#[test]
fn it_is_read_with_help_for_slips() {
    let registry = registry();
    let read = |text: &str| document::read(text, &Environment::process(&registry));
    assert_eq!(read(DOCUMENT).unwrap().plan.stages[0].works[0].load.workers, 4);
    let slip = read(&DOCUMENT.replace("sleepers", "sleeper")).unwrap_err();
    assert!(slip.iter().any(|found| found.help.contains("did you mean `sleepers`?")), "{slip:?}");
    let kind = read(&DOCUMENT.replace("bed", "bad")).unwrap_err();
    assert!(kind.iter().any(|found| found.help.contains("bed")), "{kind:?}");
    let schema = schema(&registry);
    assert!(schema["$defs"]["load"]["properties"]["sleepers"].is_object());
    let rows = reference(&registry).table("works on beds").unwrap_or_default().to_owned();
    assert!(rows.contains("| `sleepers` | 1 to 100 | `1` | How many sleep |"), "{rows}");
}

/// An evaluation of two beds with these levels.
fn levels(levels: &str) -> Result<Evaluation, Vec<Diagnostic>> {
    let text = format!(
        "name: naps\narms:\n- {{name: soft, target: {{kind: bed, nap: 1ms}}}}\n- {{name: hard, target: {{kind: bed, nap: 4ms}}}}\n\
         loads:\n- name: doze\n  stages: [{{load: {{sleepers: 1, total_operations: 40}}}}]\n{levels}\n"
    );
    let registry = registry();
    evaluation::read(&text, Path::new(""), &Environment::process(&registry)).map(|(read, _)| read)
}

#[test]
fn it_has_levels_of_its_own_and_common_ones() {
    let document = levels("levels: {sleepers: [1, 4]}").unwrap();
    let registry = registry();
    let environment = Environment::process(&registry);
    let options = Options { threads: Some(1), ..Options::local(registry.clone()) };
    let options = evaluate::Options::new(options);
    let done = evaluate(&document, Provenance::default(), &options, &environment, None, &mut Quiet).unwrap();
    let workers: Vec<u32> = done.runs.iter().map(|run| run.stages[0].works[0].workers).collect();
    assert_eq!(workers, [1, 1, 4, 4], "both arms at each level");
    let member = done.runs[2].member.as_ref().unwrap();
    assert_eq!((member.arm.as_str(), &member.level), ("soft", &vec![Axis::count("sleepers", 4)]));
    let assessment = tidemark_judge::evaluation::assess(&done.evaluation, &done.runs);
    assert_eq!(assessment.cells.len(), 4);
    let said = tidemark_report::evaluation::csv(&Subject {
        evaluation: &done.evaluation,
        assessment: &assessment,
        runs: &done.runs,
        heat: &[],
    });
    assert_eq!(said.matches("sleepers=4").count(), 2, "{said}");

    let paced = levels("levels: {rate: [1k/s, 2k/s]}").unwrap();
    let level = &paced.loads[0].levels.known()[1];
    let plan = paced.sketch(0, 0, level, 1, &environment).unwrap();
    assert!(
        matches!(&plan.stages[0].works[0].load.pacing, Pacing::Open { rate, .. } if rate.at(0) == 2000.0)
    );

    let said = |text: &str| {
        let errors = levels(text).unwrap_err();
        errors.into_iter().map(|error| format!("{} | {}", error.message, error.help)).collect::<Vec<_>>()
    };
    assert_eq!(
        said("levels: {sleepers: 101}"),
        ["`sleepers`: 101 is out of range | write a whole number from 1 to 100"]
    );
    assert!(said("levels: {workers: 4}")[0].starts_with("`workers` is not a key of `levels`"));
    let schema = schema(&registry);
    assert!(schema["$defs"]["levels"]["properties"]["sleepers"].is_object());
}

#[test]
fn it_is_forecast_and_checked() {
    let (plan, registry) = (plan(), registry());
    let forecast = forecast(&plan, &registry);
    assert_eq!(forecast.stages[0].works[0].actions[0].describe(), "sleeps 200 naps");
    assert_eq!(forecast.stages[0].works[0].actions[0].operations, Amount::Exactly(200));
    assert!(forecast.notes.iter().any(|note| note.text == "nothing is stored"));
    assert_eq!(Policy::default().check(&plan, &registry), Ok(()));
    let strict = Policy { directories: vec!["/data".into()], ..Policy::default() };
    assert!(strict.check(&plan, &registry).unwrap_err().contains("does not sleep among files"));
}

#[test]
fn it_is_run_here() {
    let options = Options { threads: Some(2), ..Options::local(registry()) };
    let executed = execute(&plan(), Provenance::default(), &options, None, &mut Quiet).unwrap();
    check(&executed.run, 1);
}

#[test]
fn it_is_run_on_drivers() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fleet = Fleet::new(fleet::Options {
        version: "1".into(),
        silent_after: Duration::from_secs(5),
        gone_after: Duration::from_secs(60),
        name: "controller".into(),
    });
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let served = Arc::clone(&fleet);
    let upgrade = |upgrade: WebSocketUpgrade| async move {
        let visitor = fleet::Visitor { address: "here".into(), token: "*".into() };
        let serve =
            |socket| async move { served.serve(socket, visitor, &link::Intake::default(), || ()).await };
        link::limits(upgrade).on_upgrade(serve)
    };
    let router = axum::Router::new().route(link::PATH, axum::routing::get(upgrade));
    runtime.spawn(async move { axum::serve(listener, router).await });
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for name in ["d1", "d2"] {
            let to = Join { url: format!("http://{address}"), token: None, trust: link::Trust::Any };
            let hello = Hello {
                protocol: VERSION,
                tidemark: "1".into(),
                name: name.into(),
                instance: name.len() as u64,
                ..Hello::default()
            };
            let link = link::join(to, hello).unwrap();
            let stop = &stop;
            scope.spawn(move || {
                let options = driver::Options {
                    registry: registry(),
                    policy: Some(Policy::default()),
                    threads: Some(1),
                    scratch: std::env::temp_dir(),
                    observes: true,
                    process: None,
                };
                driver::serve(link, &options, &|| stop.load(Ordering::Relaxed), &mut |_| {})
            });
        }
        let until = Instant::now() + Duration::from_secs(60);
        let present = || fleet.members().iter().filter(|one| one.presence == Presence::Present).count();
        while present() < 2 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let names = vec!["d1".to_owned(), "d2".to_owned()];
        let backends = tidemark_fleet::backend::on(Arc::clone(&fleet), names);
        let options = Options::new(registry(), backends, Trust::Network);
        let executed = execute(&plan(), Provenance::default(), &options, None, &mut Quiet);
        stop.store(true, Ordering::Relaxed);
        let run = executed.unwrap().run;
        check(&run, 2);
        let shares: Vec<u64> = run.stages[0].shares.iter().map(|share| share.ok).collect();
        assert_eq!(shares.iter().sum::<u64>(), 200, "{shares:?}");
        assert!(shares.iter().all(|ok| *ok > 0), "both drivers slept: {shares:?}");
    });
}
