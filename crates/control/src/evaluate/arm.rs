//! One arm of an evaluation: its provisioners, whether they are up, and the variables that they have brought.

use super::{EvaluationEvent, EvaluationSink, Options};
use crate::commands::Commands;
use crate::event::StopRequest;
use crate::execute::ExecuteError;
use std::path::Path;
use std::time::{Duration, Instant};
use tidemark_measure::in_effect::{InEffect, Said};
use tidemark_measure::tuning::TakesEffect;
use tidemark_plan::evaluation::Arm as Document;
use tidemark_plan::plan::Observe;
use tidemark_plan::provisioner::{Probe, Progress, ProvisionError, Provisioner, Request, Variables};
use tidemark_plan::redact::is_secret;
use tidemark_plan::registry::Registry;

/// An arm, up or not.
pub(super) struct Arm {
    name: String,
    /// The variables that the document gives it.
    environment: Variables,
    /// What it asks of its provisioners but for its commands, in their order.
    requests: Vec<Request>,
    /// In the order in which they are brought up.
    provisioners: Vec<Box<dyn Provisioner>>,
    /// Whether the last of them is its shell commands.
    has_commands: bool,
    /// How many of them are up, from the first.
    running: usize,
    /// Whether all of them are up and the arm can take load.
    is_up: bool,
    variables: Variables,
}

impl Arm {
    /// An arm that is not up yet: its provisioners come first, its shell commands last. What they keep is in a directory of this name below
    /// the evaluation's.
    ///
    /// # Errors
    /// What it asks for that cannot be had here.
    pub(super) fn new(
        evaluation: &str,
        name: &str,
        document: &Document,
        options: &Options,
        registry: &Registry,
    ) -> Result<Self, ExecuteError> {
        let directory = options.directory.as_ref();
        let directory = directory.map(|all| all.join(file_name(evaluation)).join(file_name(name)));
        let requests = document.requests.iter();
        let mut provisioners = requests
            .map(|request| provisioner(request, directory.as_deref(), registry))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| ExecuteError(format!("arm `{}`: {error}", document.name)))?;
        provisioners.extend(commands(document, options)?);
        Ok(Self::of(document, provisioners))
    }

    /// The arm on storage that runs already, and that nobody takes down: it is there, and its variables are known.
    ///
    /// # Errors
    /// Storage that is not there, or not what the arm asks for.
    pub(super) fn standing(
        document: &Document,
        options: &Options,
        registry: &Registry,
    ) -> Result<Self, ExecuteError> {
        let directory = options.standing.as_deref();
        let standing = |request: &Request| match registry.provisioner(request.key()) {
            Some(kind) => kind.standing(request, directory),
            None => Err(unknown(request.key())),
        };
        let found = document.requests.iter().map(standing).collect::<Result<Vec<_>, _>>();
        let mut provisioners =
            found.map_err(|error| ExecuteError(format!("the settings cannot be applied: {error}")))?;
        provisioners.extend(commands(document, options)?);
        let mut arm = Self::of(document, provisioners);
        arm.variables = arm.environment.clone();
        arm.provisioners.iter().for_each(|one| arm.variables.extend(one.variables()));
        Ok(arm)
    }

    /// The settings that are in effect, as its storage and its `show` commands say; `None` when the user stopped it.
    pub(super) fn in_effect(
        &mut self,
        sink: &mut dyn EvaluationSink,
    ) -> Result<Option<InEffect>, ExecuteError> {
        let (mut progress, mut all) = (Lines(sink), InEffect::default());
        for provisioner in &mut self.provisioners {
            let said = match provisioner.in_effect(&self.variables, &mut progress) {
                Ok(said) => said,
                Err(ProvisionError::Stopped) => return Ok(None),
                Err(ProvisionError::Failed(error)) => return Err(ExecuteError(error)),
            };
            for (name, said) in said.0 {
                all.add(&name, if is_secret(&name) { Said::Secret } else { said });
            }
        }
        Ok(Some(all))
    }

    /// What asks its storage whether it is well while a load is on.
    pub(super) fn probes(&self) -> Vec<Probe> {
        self.provisioners.iter().filter_map(|provisioner| provisioner.probe(&self.variables)).collect()
    }

    fn of(document: &Document, provisioners: Vec<Box<dyn Provisioner>>) -> Self {
        Self {
            name: document.name.clone(),
            environment: document.environment.iter().cloned().collect(),
            requests: document.requests.clone(),
            has_commands: document.has_commands(),
            provisioners,
            running: 0,
            is_up: false,
            variables: Variables::new(),
        }
    }

    /// Whether the arm can take load.
    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Brings the arm up; false when the user stopped it. What is up by then, [`Arm::take_down`] takes down.
    pub(super) fn set_up(&mut self, sink: &mut dyn EvaluationSink) -> Result<bool, ExecuteError> {
        let mut progress = Lines(sink);
        if self.running == 0 {
            self.variables = self.environment.clone();
        }
        for provisioner in self.provisioners.iter_mut().skip(self.running) {
            let mut up = provisioner.up(&self.variables, &mut progress);
            if up.is_ok() {
                self.running += 1;
                up = provisioner.wait(&mut progress);
            }
            if !ended(&self.name, up)? {
                return Ok(false);
            }
            self.variables.extend(provisioner.variables());
        }
        self.is_up = true;
        Ok(true)
    }

    /// Takes over what another arm has up: all of it, if a run is enough for what differs to take effect; without its commands, and with
    /// what is below them changed, if that is; nothing, and the other is taken down, if everything has to be brought up again. The other
    /// is down afterwards.
    ///
    /// # Errors
    /// What could not be taken down or changed.
    pub(super) fn take_over(
        &mut self,
        other: &mut Self,
        change: TakesEffect,
        sink: &mut dyn EvaluationSink,
    ) -> Result<(), ExecuteError> {
        match change {
            TakesEffect::Rebuild => return other.take_down(sink),
            TakesEffect::Restart => other.take_down_from(self.commands_at(), sink)?,
            TakesEffect::Run => {}
        }
        // Its own are as new, and the same but for what was said.
        std::mem::swap(&mut self.provisioners, &mut other.provisioners);
        (self.running, self.is_up) = (std::mem::take(&mut other.running), std::mem::take(&mut other.is_up));
        self.variables = std::mem::take(&mut other.variables);
        self.variables.extend(self.environment.clone());
        if change == TakesEffect::Restart {
            let mut progress = Lines(sink);
            for (provisioner, request) in self.provisioners[..self.running].iter_mut().zip(&self.requests) {
                if !ended(&self.name, provisioner.change_to(request, &mut progress))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// From where on its provisioners are shell commands: they come last.
    fn commands_at(&self) -> usize {
        self.provisioners.len() - usize::from(self.has_commands)
    }

    /// Makes the arm the same before each of its runs; false when the user stopped it.
    pub(super) fn reset(&mut self, sink: &mut dyn EvaluationSink) -> Result<bool, ExecuteError> {
        let mut progress = Lines(sink);
        for provisioner in &mut self.provisioners {
            if !ended(&self.name, provisioner.reset(&self.variables, &mut progress))? {
                return Ok(false);
            }
            self.variables.extend(provisioner.variables());
        }
        Ok(true)
    }

    /// Waits until its storage has recovered from a run, and says how long that took: at most so long.
    pub(super) fn recover(&mut self, most: Duration, sink: &mut dyn EvaluationSink) -> Recovered {
        let began = Instant::now();
        let mut progress = Patience { lines: Lines(sink), until: began + most };
        for provisioner in &mut self.provisioners {
            match provisioner.recover(&self.variables, &mut progress) {
                Ok(()) => {}
                Err(ProvisionError::Failed(error)) => return Recovered::Failed(error),
                Err(ProvisionError::Stopped) if progress.is_over() => {
                    return Recovered::After(began.elapsed());
                }
                Err(ProvisionError::Stopped) => return Recovered::Stopped,
            }
        }
        Recovered::After(began.elapsed())
    }

    /// Takes down what is up, the last first, whatever goes wrong with one of them; gives the first error.
    pub(super) fn take_down(&mut self, sink: &mut dyn EvaluationSink) -> Result<(), ExecuteError> {
        self.take_down_from(0, sink)
    }

    /// The same of those from a place on.
    fn take_down_from(&mut self, place: usize, sink: &mut dyn EvaluationSink) -> Result<(), ExecuteError> {
        self.is_up = false;
        let left = self.running.min(place);
        let running = std::mem::replace(&mut self.running, left);
        let (mut progress, mut first) = (Lines(sink), Ok(()));
        for provisioner in self.provisioners[left..running].iter_mut().rev() {
            let down = ended(&self.name, provisioner.down(&self.variables, &mut progress));
            first = first.and(down.map(drop));
        }
        first
    }

    /// Whether anything of it is up.
    pub(super) fn is_running(&self) -> bool {
        self.running > 0 || self.is_up
    }

    /// What its storage is; name and value.
    pub(super) fn labels(&self) -> Vec<(String, String)> {
        self.provisioners.iter().flat_map(|provisioner| provisioner.labels()).collect()
    }

    /// A variable for its loads' documents.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    /// What to observe of its storage.
    pub(super) fn observe(&self) -> Observe {
        let mut all = Observe::default();
        self.provisioners.iter().for_each(|provisioner| all.join(&provisioner.observe()));
        all
    }
}

/// Whether a provisioner has done what it was asked; false when the user stopped it.
fn ended(arm: &str, done: Result<(), ProvisionError>) -> Result<bool, ExecuteError> {
    match done {
        Ok(()) => Ok(true),
        Err(ProvisionError::Stopped) => Ok(false),
        Err(ProvisionError::Failed(error)) => Err(ExecuteError(format!("arm `{arm}`: {error}"))),
    }
}

/// What brings up what an arm asks for.
fn provisioner(
    request: &Request,
    directory: Option<&Path>,
    registry: &Registry,
) -> Result<Box<dyn Provisioner>, ProvisionError> {
    let key = request.key();
    let (Some(kind), Some(directory)) = (registry.provisioner(key), directory) else {
        return Err(unknown(key));
    };
    kind.provisioner(request, directory)
}

/// What cannot be brought up here.
fn unknown(key: &str) -> ProvisionError {
    ProvisionError::Failed(format!("`{key}` is available only with `tidemark run` on this machine"))
}

/// Its shell commands, if it has some.
fn commands(document: &Document, options: &Options) -> Result<Option<Box<dyn Provisioner>>, ExecuteError> {
    match (document.has_commands(), options.run_commands) {
        (false, _) => Ok(None),
        (true, true) => Ok(Some(Box::new(Commands::new(document)))),
        (true, false) => Err(ExecuteError(
            "the document has shell commands: review them with `tidemark check`, then add --run-commands"
                .into(),
        )),
    }
}

/// The longest name of a directory: sockets lie below it, and their paths are short.
const LONGEST: usize = 40;

/// A name for a directory. What is not a letter, digit or underscore becomes a hyphen; a name that is not kept whole ends with its hash (FNV-1a, 32 bits),
/// so that no two are alike.
fn file_name(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.len() <= LONGEST && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let plain = name.chars().map(|letter| if is_plain(letter) { letter } else { '-' });
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{}-{hash:08x}", plain.take(LONGEST - 9).collect::<String>())
}

/// How storage has recovered from a run.
#[derive(Debug)]
pub(super) enum Recovered {
    /// It took so long, or was given up after it.
    After(Duration),
    /// It could not.
    Failed(String),
    /// The user stopped it.
    Stopped,
}

/// Ends what takes too long.
struct Patience<'a> {
    lines: Lines<'a>,
    until: Instant,
}

impl Patience<'_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

impl Progress for Patience<'_> {
    fn line(&mut self, text: &str) {
        self.lines.line(text);
    }

    fn stop_request(&mut self) -> StopRequest {
        if self.is_over() { StopRequest::Stop } else { self.lines.stop_request() }
    }
}

/// Hands a provisioner's lines on, and the user's wish to stop back.
struct Lines<'a>(&'a mut dyn EvaluationSink);

impl Progress for Lines<'_> {
    fn line(&mut self, text: &str) {
        self.0.event(EvaluationEvent::Output(text));
    }

    fn stop_request(&mut self) -> StopRequest {
        self.0.stop_request()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventSink;
    use crate::execute;
    use std::sync::{Arc, Mutex};
    use tidemark_plan::plan::Plan;

    struct Silent;

    impl EvaluationSink for Silent {
        fn event(&mut self, _: EvaluationEvent<'_>) {}
        fn stop_request(&mut self) -> StopRequest {
            StopRequest::None
        }
        fn sink<'a>(&'a mut self, _: &Plan) -> Box<dyn EventSink + 'a> {
            unreachable!("no run is started here")
        }
    }

    /// Notes its calls; the call named `fails` fails.
    #[derive(Clone, Debug)]
    struct Fake {
        key: &'static str,
        fails: &'static str,
        calls: Arc<Mutex<Vec<String>>>,
    }

    impl Fake {
        fn call(&self, what: &str, variables: &Variables) -> Result<(), ProvisionError> {
            let names: Vec<&str> = variables.keys().map(String::as_str).collect();
            self.calls.lock().unwrap().push(format!("{} {what} {}", self.key, names.join(",")));
            match what == self.fails {
                true => Err(ProvisionError::Failed("it broke".into())),
                false => Ok(()),
            }
        }
    }

    impl Provisioner for Fake {
        fn up(&mut self, variables: &Variables, _: &mut dyn Progress) -> Result<(), ProvisionError> {
            self.call("up", variables)
        }
        fn wait(&mut self, _: &mut dyn Progress) -> Result<(), ProvisionError> {
            self.call("wait", &Variables::new())
        }
        fn change_to(&mut self, _: &Request, _: &mut dyn Progress) -> Result<(), ProvisionError> {
            self.call("change", &Variables::new())
        }
        fn in_effect(
            &mut self,
            variables: &Variables,
            _: &mut dyn Progress,
        ) -> Result<InEffect, ProvisionError> {
            self.call("show", variables)?;
            let pair = |name: &str| (format!("{}_{name}", self.key), "1".into());
            Ok(InEffect([pair("cache"), pair("password")].into()))
        }
        fn variables(&self) -> Variables {
            Variables::from([(self.key.to_uppercase(), "1".to_owned())])
        }
        fn labels(&self) -> Vec<(String, String)> {
            vec![(self.key.into(), "label".into())]
        }
        fn observe(&self) -> Observe {
            Observe { processes: vec![self.key.into()], ..Observe::default() }
        }
        fn reset(&mut self, variables: &Variables, _: &mut dyn Progress) -> Result<(), ProvisionError> {
            self.call("reset", variables)
        }
        fn down(&mut self, variables: &Variables, _: &mut dyn Progress) -> Result<(), ProvisionError> {
            self.call("down", variables)
        }
    }

    fn document() -> Document {
        Document {
            name: "a".into(),
            requests: vec![Request::new("lab", "baseline", ())],
            environment: vec![("GIVEN".into(), "1".into())],
            ..Document::default()
        }
    }

    /// An arm with a lab and commands that fail at a call, and the calls of both.
    fn arm(fails: &'static str) -> (Arm, Arc<Mutex<Vec<String>>>) {
        let calls = Arc::default();
        let fake =
            |key, fails| -> Box<dyn Provisioner> { Box::new(Fake { key, fails, calls: Arc::clone(&calls) }) };
        (Arm::of(&document(), vec![fake("lab", ""), fake("commands", fails)]), calls)
    }

    #[test]
    fn provisioners_go_up_in_order_with_the_variables_before_them_and_down_in_reverse() {
        let (mut arm, calls) = arm("");
        assert!(arm.set_up(&mut Silent).unwrap() && arm.is_up());
        assert!(arm.reset(&mut Silent).unwrap());
        assert_eq!(arm.variable("LAB").as_deref(), Some("1"));
        assert_eq!(arm.labels().len(), 2);
        assert_eq!(arm.observe().processes, ["lab", "commands"]);
        arm.take_down(&mut Silent).unwrap();
        arm.take_down(&mut Silent).unwrap();
        let expected = [
            "lab up GIVEN",
            "lab wait ",
            "commands up GIVEN,LAB",
            "commands wait ",
            "lab reset COMMANDS,GIVEN,LAB",
            "commands reset COMMANDS,GIVEN,LAB",
            "commands down COMMANDS,GIVEN,LAB",
            "lab down COMMANDS,GIVEN,LAB",
        ];
        assert_eq!(*calls.lock().unwrap(), expected);
        assert!(!arm.is_up() && !arm.is_running());
    }

    #[test]
    fn only_what_came_up_is_taken_down() {
        for (fails, down) in [("up", ["lab down"].as_slice()), ("wait", &["commands down", "lab down"])] {
            let (mut arm, calls) = arm(fails);
            let error = arm.set_up(&mut Silent).unwrap_err().to_string();
            assert_eq!(error, "arm `a`: it broke");
            assert!(!arm.is_up() && arm.is_running());
            calls.lock().unwrap().clear();
            arm.take_down(&mut Silent).unwrap();
            let calls = calls.lock().unwrap();
            let names: Vec<&str> =
                calls.iter().filter_map(|call| call.rsplit_once(' ')).map(|two| two.0).collect();
            assert_eq!(names, down, "{fails}");
        }
    }

    #[test]
    fn an_arm_takes_over_what_need_not_be_brought_up_again() {
        let cases: [(TakesEffect, &[&str], &[&str]); 3] = [
            (TakesEffect::Run, &[], &[]),
            (TakesEffect::Restart, &["commands down", "lab change"], &["commands up", "commands wait"]),
            (
                TakesEffect::Rebuild,
                &["commands down", "lab down"],
                &["lab up", "lab wait", "commands up", "commands wait"],
            ),
        ];
        for (change, down, up) in cases {
            let calls = Arc::<Mutex<Vec<String>>>::default();
            let made = |value: &str| {
                let fake = |key| -> Box<dyn Provisioner> {
                    Box::new(Fake { key, fails: "", calls: Arc::clone(&calls) })
                };
                let environment = vec![("GIVEN".to_owned(), value.to_owned())];
                let document = Document { set_up: vec!["true".into()], environment, ..document() };
                Arm::of(&document, vec![fake("lab"), fake("commands")])
            };
            let (mut one, mut other) = (made("1"), made("2"));
            assert!(one.set_up(&mut Silent).unwrap());
            let names = || -> Vec<String> {
                let calls = std::mem::take(&mut *calls.lock().unwrap());
                calls.iter().filter_map(|call| call.rsplit_once(' ')).map(|two| two.0.to_owned()).collect()
            };
            names();
            other.take_over(&mut one, change, &mut Silent).unwrap();
            assert_eq!(names(), down, "{change:?}");
            assert!(!one.is_running() && other.is_up() == (change == TakesEffect::Run));
            if !other.is_up() {
                assert!(other.set_up(&mut Silent).unwrap());
            }
            assert_eq!(names(), up, "{change:?}");
            assert_eq!(other.variable("GIVEN").as_deref(), Some("2"), "{change:?}");
            assert_eq!(other.variable("LAB").as_deref(), Some("1"), "{change:?}");
            other.take_down(&mut Silent).unwrap();
            assert_eq!(names(), ["commands down", "lab down"], "{change:?}");
        }
    }

    #[test]
    fn what_is_in_effect_is_that_of_all_without_secrets() {
        let (mut arm, _) = arm("");
        assert!(arm.set_up(&mut Silent).unwrap());
        let found = arm.in_effect(&mut Silent).unwrap().unwrap();
        let said: Vec<_> = found.0.iter().map(|(name, value)| format!("{name} {value}")).collect();
        assert_eq!(
            said,
            ["commands_cache 1", "commands_password (a secret)", "lab_cache 1", "lab_password (a secret)"]
        );
    }

    #[test]
    fn an_error_of_one_does_not_keep_the_others_up() {
        let (mut arm, calls) = arm("down");
        arm.set_up(&mut Silent).unwrap();
        assert_eq!(arm.take_down(&mut Silent).unwrap_err().to_string(), "arm `a`: it broke");
        assert!(calls.lock().unwrap().last().unwrap().starts_with("lab down"));
    }

    #[test]
    fn what_cannot_be_had_is_named_before_anything_is_brought_up() {
        let refusal = |document: &Document, options: &Options| {
            Arm::new("e", "a", document, options, &Registry::default()).map(drop).unwrap_err().to_string()
        };
        let plain = || Options::new(execute::Options::local(Registry::default()));
        let options = Options { directory: Some("/nonexistent".into()), ..plain() };
        for options in [plain(), options] {
            let error = refusal(&document(), &options);
            assert_eq!(error, "arm `a`: `lab` is available only with `tidemark run` on this machine");
        }
        let commands = Document { requests: vec![], set_up: vec!["true".into()], ..document() };
        let error = refusal(&commands, &plain());
        assert!(error.contains("--run-commands"), "{error}");
        let allowed = Options { run_commands: true, ..plain() };
        assert!(Arm::new("e", "a", &commands, &allowed, &Registry::default()).is_ok());
    }

    #[test]
    fn directories_have_plain_names() {
        assert_eq!(file_name("internal_tuned-1"), "internal_tuned-1");
        let odd = file_name("../a b/ü");
        assert!(odd.starts_with("---a-b---") && odd.len() == 17, "{odd}");
        let [one, other] = ["1", "2"].map(|end| file_name(&format!("{}{end}", "x".repeat(40))));
        assert!(one != other && one.len() == LONGEST && other.len() == LONGEST, "{one} {other}");
        assert_ne!(file_name("a b"), file_name("a.b"));
    }
}
