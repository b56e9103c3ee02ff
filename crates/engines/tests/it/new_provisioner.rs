//! A new kind of provisioner needs nothing but itself: a shed with a server in it, which lives in this test alone, is read,
//! in the schema, checked before it is up, brought up for an arm, measured, reported and taken down without a change
//! anywhere else.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tidemark_control::evaluate::{EvaluationEvent, EvaluationSink, Options, evaluate};
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};
use tidemark_keys::kinds::Word;
use tidemark_keys::shapes::Map;
use tidemark_keys::tree::Entry;
use tidemark_keys::{AnyKey, Key, Mapping, Table};
use tidemark_measure::record::{Provenance, State};
use tidemark_plan::diagnostic::Diagnostic;
use tidemark_plan::evaluation::{self, Evaluation};
use tidemark_plan::plan::Plan;
use tidemark_plan::provisioner::{
    Progress, ProvisionError, Provisioner, ProvisionerKind, Request, Variables,
};
use tidemark_plan::registry::Registry;
use tidemark_plan::schema::schema;
use tidemark_plan::yaml::Environment;

const DOCUMENT: &str = "name: sheds\nseed: 7\narms:\n- {name: a, shed: {colour: red}}\n- {name: b, shed: {colour: green}}\n\
                        loads:\n- name: puts\n  \
                        target: {kind: s3, endpoint: '${SHED}', access_key: '${SHED_KEY}', secret_key: '${SHED_SECRET}'}\n  \
                        stages:\n  - init: {containers: 1}\n  \
                        - load: {total_operations: 20, containers: 1, operations: [{put: {objects: 1-20, sizes: 1KB}}]}\n";

static SHED: Key<Map> = Key::new("shed", "The shed of an arm", Map(&MAPPING));
static MAPPING: Mapping = Mapping::new("shed", "A shed with a server in it", &[&COLOUR]);
static COLOUR: Key<Word<&str>> =
    Key::new("colour", "Its colour", Word(&[("red", "red"), ("green", "green")])).required("add its colour");

/// Sheds, and what was done with them.
#[derive(Clone, Default)]
struct Sheds(Arc<Mutex<Vec<String>>>);

impl ProvisionerKind for Sheds {
    fn key(&self) -> &'static AnyKey {
        &SHED
    }

    fn read<'a>(&self, arm: &Table<'a>, entry: &'a Entry, _: &Environment<'_>) -> Option<Request> {
        let mut own = arm.below(&SHED, entry).of(&MAPPING);
        let colour = own.get(&COLOUR);
        own.finish();
        Some(Request::new("shed", colour?, colour?))
    }

    fn variables(&self) -> &[(&'static str, &'static str)] {
        &[("SHED", "http://127.0.0.1:1"), ("SHED_KEY", "unknown"), ("SHED_SECRET", "unknown")]
    }

    fn provisioner(
        &self,
        request: &Request,
        directory: &Path,
    ) -> Result<Box<dyn Provisioner>, ProvisionError> {
        let colour = request.get::<&str>().ok_or(ProvisionError::Failed("no colour".into()))?;
        self.0.lock().unwrap().push(format!("{colour} in {}", directory.display()));
        Ok(Box::new(Shed { colour, calls: self.clone(), server: None }))
    }
}

/// The shed of an arm.
struct Shed {
    colour: &'static str,
    calls: Sheds,
    server: Option<EmbeddedServer>,
}

impl Shed {
    fn note(&self, call: &str) {
        self.calls.0.lock().unwrap().push(format!("{} {call}", self.colour));
    }
}

impl Provisioner for Shed {
    fn up(&mut self, _: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        self.note("up");
        progress.line("the door is open");
        let failed = |error| ProvisionError::Failed(format!("{error}"));
        self.server = Some(EmbeddedServer::start(EmbeddedOptions::default()).map_err(failed)?);
        Ok(())
    }

    fn variables(&self) -> Variables {
        let server = self.server.iter();
        let variables = server.flat_map(|server| {
            [
                ("SHED", server.endpoint()),
                ("SHED_KEY", server.access_key().into()),
                ("SHED_SECRET", server.secret_key().into()),
            ]
        });
        variables.map(|(name, value): (&str, String)| (name.to_owned(), value)).collect()
    }

    fn labels(&self) -> Vec<(String, String)> {
        vec![("shed".into(), format!("{}, wooden", self.colour))]
    }

    fn down(&mut self, _: &Variables, _: &mut dyn Progress) -> Result<(), ProvisionError> {
        self.note("down");
        self.server = None;
        Ok(())
    }
}

/// What the product has, and sheds: one line.
fn registry(sheds: &Sheds) -> Registry {
    tidemark_engines::registry().with_provisioners(vec![Arc::new(sheds.clone())])
}

fn read(text: &str, registry: &Registry) -> Result<Evaluation, Vec<Diagnostic>> {
    evaluation::read(text, Path::new(""), &Environment::process(registry)).map(|(read, _)| read)
}

/// Keeps what provisioners say.
#[derive(Default)]
struct Screen(Vec<String>);

impl EvaluationSink for Screen {
    fn event(&mut self, event: EvaluationEvent<'_>) {
        if let EvaluationEvent::Output(line) = event {
            self.0.push(line.to_owned());
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }

    fn sink<'a>(&'a mut self, _: &Plan) -> Box<dyn EventSink + 'a> {
        Box::new(Screen::default())
    }
}

impl EventSink for Screen {
    fn event(&mut self, _: Event<'_>) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

#[test]
fn it_is_read_with_help_for_slips_before_anything_is_up() {
    let registry = registry(&Sheds::default());
    let document = read(DOCUMENT, &registry).unwrap();
    let asked = |arm: usize| (document.arms[arm].requests[0].key(), document.arms[arm].requests[0].label());
    assert_eq!([asked(0), asked(1)], [("shed", "red"), ("shed", "green")]);
    assert_eq!(document.arms[1].settings, [("shed".to_owned(), "green".to_owned())]);
    let environment = Environment { variable: &|_| None, ..Environment::process(&registry) };
    let level = document.loads[0].levels.known().remove(0);
    assert!(document.sketch(0, 0, &level, 1, &environment).is_ok(), "variables have stand-ins");
    assert!(document.plan(0, 0, &level, 1, &environment).is_err(), "and are not known yet");
    for (from, to, expected) in [
        ("shed: {colour: red}", "shet: {colour: red}", "did you mean `shed`?"),
        ("colour: red", "color: red", "did you mean `colour`?"),
        ("colour: red", "colour: rad", "did you mean red?"),
    ] {
        let errors = read(&DOCUMENT.replace(from, to), &registry).unwrap_err();
        assert!(errors.iter().any(|error| error.help.contains(expected)), "{to}: {errors:?}");
    }
    let schema = schema(&registry);
    assert!(schema["$defs"]["arm"]["properties"]["shed"].is_object());
    assert_eq!(schema["$defs"]["shed"]["properties"]["colour"]["anyOf"][0]["enum"], json!(["red", "green"]));
    assert!(read(DOCUMENT, &tidemark_engines::registry()).is_err(), "without the line there are no sheds");
}

#[test]
fn it_is_brought_up_measured_and_taken_down() {
    let sheds = Sheds::default();
    let registry = registry(&sheds);
    let (document, environment) = (read(DOCUMENT, &registry).unwrap(), Environment::process(&registry));
    let options = |directory: Option<&str>| Options {
        directory: directory.map(Into::into),
        ..Options::new(execute::Options { threads: Some(1), ..execute::Options::local(registry.clone()) })
    };
    let mut screen = Screen::default();
    let refused = evaluate(&document, Provenance::default(), &options(None), &environment, None, &mut screen);
    assert!(refused.unwrap_err().to_string().contains("arm `a`: `shed` is available only"));
    assert!(sheds.0.lock().unwrap().is_empty());

    let here = options(Some("/tmp/of-sheds"));
    let done = evaluate(&document, Provenance::default(), &here, &environment, None, &mut screen).unwrap();
    assert!(done.trouble.is_none() && done.evaluation.state == State::Completed);
    assert_eq!(screen.0, ["the door is open"; 2]);
    let calls = sheds.0.lock().unwrap().clone();
    let expected = [
        "red in /tmp/of-sheds/sheds/a",
        "green in /tmp/of-sheds/sheds/b",
        "red up",
        "green up",
        "red down",
        "green down",
    ];
    assert_eq!(calls, expected);
    for run in &done.runs {
        assert_eq!(run.stages[1].works[0].operations[0].tally.ok, 20, "{}", run.stages[1].reason);
    }
    let settings: Vec<_> = done.evaluation.arms.iter().map(|arm| arm.settings.clone()).collect();
    let of = |label: &str| vec![("shed".to_owned(), label.to_owned())];
    assert_eq!(settings, [of("red, wooden"), of("green, wooden")]);
}
