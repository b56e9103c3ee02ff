//! An arm's shell commands. They run with all rights of this process, and so only if the operator allows it.

use crate::event::StopRequest;
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tidemark_measure::in_effect::InEffect;
use tidemark_plan::evaluation::Arm;
use tidemark_plan::provisioner::{Health, Probe, Progress, ProvisionError, Provisioner, Variables};
use tidemark_plan::redact::redact;

/// Lines of a failed command's output that its error shows.
const ERROR_LINES: usize = 5;

/// Lines on their way from a command that nobody has taken yet: one that prints faster than they are shown has to wait.
const LINES_WAITING: usize = 256;

/// A longer line is cut in pieces of so many bytes.
const LINE_MOST: u64 = 64 << 10;

/// How long a command may take to end after SIGTERM: what holds out longer is killed.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The exit status by which a `health` command says that data are at risk.
const AT_RISK: i32 = 3;

/// How long a `health` command may take: storage that does not answer for so long is ill.
const HEALTH: Duration = Duration::from_secs(30);

/// The commands of one arm.
#[derive(Debug)]
pub(crate) struct Commands {
    arm: String,
    set_up: Vec<String>,
    reset: Vec<String>,
    tear_down: Vec<String>,
    show: Vec<String>,
    health: Vec<String>,
    recover: Vec<String>,
    /// The variables that the commands have printed.
    printed: Variables,
}

impl Provisioner for Commands {
    fn up(&mut self, variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        self.printed.clear();
        self.run("set_up", &self.set_up.clone(), variables, progress)
    }

    fn variables(&self) -> Variables {
        self.printed.clone()
    }

    fn in_effect(
        &mut self,
        variables: &Variables,
        progress: &mut dyn Progress,
    ) -> Result<InEffect, ProvisionError> {
        let mut all = InEffect::default();
        for text in &self.show {
            let mut take = |line: &str| {
                let (name, value) = line.split_once(['=', '\t']).unwrap_or((line, ""));
                all.add(name.trim(), value.trim());
                true
            };
            let ended = run(text, &self.arm, &self.known(variables), progress, &mut take)?;
            ended.checked("show", text)?;
        }
        Ok(all)
    }

    fn probe(&self, variables: &Variables) -> Option<Probe> {
        if self.health.is_empty() {
            return None;
        }
        let (arm, commands, variables) = (self.arm.clone(), self.health.clone(), self.known(variables));
        Some(Box::new(move || {
            let asked = commands.iter().map(|text| health(text, &arm, &variables));
            asked.max().unwrap_or(Health::Well)
        }))
    }

    fn reset(&mut self, variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        self.run("reset", &self.reset.clone(), variables, progress)
    }

    fn recover(&mut self, variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        self.run("recover", &self.recover.clone(), variables, progress)
    }

    fn down(&mut self, variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        self.run("tear_down", &self.tear_down.clone(), variables, progress)
    }
}

impl Commands {
    pub(crate) fn new(arm: &Arm) -> Self {
        Self {
            arm: arm.name.clone(),
            set_up: arm.set_up.clone(),
            reset: arm.reset.clone(),
            tear_down: arm.tear_down.clone(),
            show: arm.show.clone(),
            health: arm.health.clone(),
            recover: arm.recover.clone(),
            printed: Variables::new(),
        }
    }

    /// Runs the commands under a key of the document, one after the other. Each has the variables that those before it
    /// have printed.
    fn run(
        &mut self,
        key: &str,
        commands: &[String],
        variables: &Variables,
        progress: &mut dyn Progress,
    ) -> Result<(), ProvisionError> {
        for text in commands {
            let mut found = Vec::new();
            let mut take = |line: &str| variable(line).map(|one| found.push(one)).is_some();
            run(text, &self.arm, &self.known(variables), progress, &mut take)?.checked(key, text)?;
            self.printed.extend(found);
        }
        Ok(())
    }

    /// These variables and those that its own commands have printed.
    fn known(&self, variables: &Variables) -> Variables {
        let mut all = variables.clone();
        all.extend(self.printed.clone());
        all
    }
}

/// How a command has ended.
struct Ended {
    status: ExitStatus,
    /// The last lines that it showed.
    last: Vec<String>,
}

impl Ended {
    /// # Errors
    /// A command that failed, with the key under which it stands and its last words.
    fn checked(self, key: &str, text: &str) -> Result<(), ProvisionError> {
        if self.status.success() {
            return Ok(());
        }
        let output = if self.last.is_empty() { "it printed nothing".into() } else { self.last.join("\n  ") };
        let failed = format!("{key}: `{}` failed ({}):\n  {output}", redact(text), self.status);
        Err(ProvisionError::Failed(failed))
    }
}

/// Runs a command in a shell. Of its standard output, lines that `take` takes are not shown: they may hold secrets.
fn run(
    text: &str,
    arm: &str,
    variables: &Variables,
    progress: &mut dyn Progress,
    take: &mut dyn FnMut(&str) -> bool,
) -> Result<Ended, ProvisionError> {
    let failed =
        |what: &str, error: std::io::Error| ProvisionError::Failed(format!("{what}`{text}`: {error}"));
    let mut command = Command::new("sh");
    command.args(["-c", text]).envs(variables).env("TIDEMARK_ARM", arm).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| failed("cannot start ", error))?;
    let (lines_in, lines_out) = bounded(LINES_WAITING);
    let outputs = [
        child.stdout.take().map(|output| send_lines(output, true, lines_in.clone())),
        child.stderr.take().map(|output| send_lines(output, false, lines_in)),
    ];
    let mut last = VecDeque::new();
    loop {
        match lines_out.recv_timeout(Duration::from_millis(100)) {
            Ok((line, is_output)) => {
                if !(is_output && take(&line)) {
                    progress.line(&line);
                    if last.len() == ERROR_LINES {
                        last.pop_front();
                    }
                    last.push_back(line);
                }
            }
            // Background processes that it has left may hold its outputs open.
            Err(RecvTimeoutError::Timeout) if child.try_wait().is_ok_and(|ended| ended.is_some()) => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if progress.stop_request() == StopRequest::Stop {
            end(&mut child);
            return Err(ProvisionError::Stopped);
        }
    }
    drop(outputs);
    let status = child.wait().map_err(|error| failed("", error))?;
    Ok(Ended { status, last: last.into() })
}

/// Ends a command and all that it has started: politely, and by force if that does not help.
fn end(child: &mut Child) {
    let Some(group) = Pid::from_raw(child.id() as i32) else { return };
    // It may have ended by itself.
    let _ = kill_process_group(group, Signal::TERM);
    let until = Instant::now() + END_WITHIN;
    while child.try_wait().is_ok_and(|ended| ended.is_none()) {
        if Instant::now() >= until {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a `health` command says: 0 well, 3 data at risk, anything else ill.
fn health(text: &str, arm: &str, variables: &Variables) -> Health {
    /// Shows nothing, and ends what takes too long.
    struct Patience(Instant);
    impl Progress for Patience {
        fn line(&mut self, _: &str) {}
        fn stop_request(&mut self) -> StopRequest {
            if self.0.elapsed() > HEALTH { StopRequest::Stop } else { StopRequest::None }
        }
    }
    let ended = run(text, arm, variables, &mut Patience(Instant::now()), &mut |_| false);
    let said = |last: &[String]| match last.last() {
        Some(line) => line.clone(),
        None => format!("`{}` failed and printed nothing", redact(text)),
    };
    match ended {
        Ok(ended) if ended.status.success() => Health::Well,
        Ok(ended) if ended.status.code() == Some(AT_RISK) => Health::AtRisk(said(&ended.last)),
        Ok(ended) => Health::Ill(said(&ended.last)),
        Err(ProvisionError::Stopped) => {
            Health::Ill(format!("`{}` did not end within {} s", redact(text), HEALTH.as_secs()))
        }
        Err(ProvisionError::Failed(error)) => Health::Ill(error),
    }
}

/// Reads an output in a thread of its own and sends its lines.
fn send_lines(
    output: impl Read + Send + 'static,
    is_output: bool,
    lines: Sender<(String, bool)>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        // Bytes that are not UTF-8 are replaced.
        while reader.by_ref().take(LINE_MOST).read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if lines.send((text, is_output)).is_err() {
                return;
            }
            line.clear();
        }
    })
}

/// The variable that a line sets, if it does nothing else: `NAME=value`, `export NAME='value'`.
fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let first = name.chars().next()?;
    let is_name = (first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = quoted('\'').or_else(|| quoted('"')).unwrap_or(value);
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is shown; stops at once if it is to.
    #[derive(Default)]
    struct Screen {
        lines: Vec<String>,
        stop: bool,
    }

    impl Progress for Screen {
        fn line(&mut self, text: &str) {
            self.lines.push(text.to_owned());
        }
        fn stop_request(&mut self) -> StopRequest {
            if self.stop { StopRequest::Stop } else { StopRequest::None }
        }
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    fn run_in(text: &str, screen: &mut Screen) -> Result<Vec<(String, String)>, ProvisionError> {
        let mut found = Vec::new();
        let mut take = |line: &str| variable(line).map(|one| found.push(one)).is_some();
        run(text, "disk", &Variables::from([pair("GIVEN", "7")]), screen, &mut take)?
            .checked("set_up", text)?;
        Ok(found)
    }

    #[test]
    fn variables_are_taken_and_other_lines_told() {
        let mut screen = Screen::default();
        let text = "echo hello $GIVEN; echo \"export KEY='s3=cret'\"; echo PORT=80; echo not a=b; echo A=b >&2; echo $TIDEMARK_ARM";
        let printed = run_in(text, &mut screen).unwrap();
        assert_eq!(printed, [pair("KEY", "s3=cret"), pair("PORT", "80")]);
        screen.lines.sort();
        assert_eq!(screen.lines, ["A=b", "disk", "hello 7", "not a=b"]);
    }

    #[test]
    fn a_failure_has_its_last_words() {
        let error = run_in("echo one; echo two >&2; exit 3", &mut Screen::default()).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("two"), "{error}");
    }

    #[test]
    fn the_user_ends_it_and_background_processes_do_not_hold_it() {
        let mut stopping = Screen { stop: true, ..Screen::default() };
        assert_eq!(run_in("sleep 100", &mut stopping), Err(ProvisionError::Stopped));
        let mut screen = Screen::default();
        assert_eq!(run_in("sleep 3 & echo up", &mut screen), Ok(Vec::new()));
        assert_eq!(screen.lines, ["up"]);
    }

    #[test]
    fn what_ignores_a_polite_end_is_killed_with_all_that_it_has_started() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let text = format!("trap '' TERM; echo $$ > '{}'; while :; do sleep 1; done", file.display());
        /// Stops as soon as the command has begun.
        struct Begun(std::path::PathBuf);
        impl Progress for Begun {
            fn line(&mut self, _: &str) {}
            fn stop_request(&mut self) -> StopRequest {
                let begun = std::fs::read_to_string(&self.0).is_ok_and(|text| text.ends_with('\n'));
                if begun { StopRequest::Stop } else { StopRequest::None }
            }
        }
        let ended = run(&text, "disk", &Variables::new(), &mut Begun(file.clone()), &mut |_| false);
        assert_eq!(ended.err(), Some(ProvisionError::Stopped));
        let pid: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "it is still there");
    }

    #[test]
    fn of_much_output_the_last_lines_are_kept_and_long_ones_are_cut() {
        let text = "head -c 300000 /dev/zero | tr '\\0' x; echo; seq 1 9; exit 1";
        let mut screen = Screen::default();
        let error = run_in(text, &mut screen).unwrap_err().to_string();
        assert!(error.ends_with("5\n  6\n  7\n  8\n  9"), "{error}");
        assert!(screen.lines.iter().all(|line| line.len() as u64 <= LINE_MOST));
        assert_eq!(screen.lines.iter().map(|line| line.matches('x').count()).sum::<usize>(), 300_000);
    }

    #[test]
    fn a_command_sees_the_variables_of_those_before_it_and_a_failure_names_its_key() {
        let arm = Arm {
            name: "disk".into(),
            set_up: vec!["echo PORT=8$GIVEN".into(), "echo URL=http://$PORT".into()],
            reset: vec!["test $URL = http://87".into()],
            tear_down: vec!["false".into()],
            ..Arm::default()
        };
        let (given, mut screen) = (Variables::from([pair("GIVEN", "7")]), Screen::default());
        let mut commands = Commands::new(&arm);
        commands.up(&given, &mut screen).unwrap();
        assert_eq!(commands.variables(), Variables::from([pair("PORT", "87"), pair("URL", "http://87")]));
        commands.reset(&given, &mut screen).unwrap();
        let error = commands.down(&given, &mut screen).unwrap_err().to_string();
        assert!(error.starts_with("tear_down: `false` failed"), "{error}");
        commands.up(&Variables::new(), &mut screen).unwrap();
        assert_eq!(commands.variables()["PORT"], "8", "nothing is left of the time before");
    }

    #[test]
    fn what_is_in_effect_is_kept_word_for_word_and_not_shown() {
        let show = "echo 'cache = 8MB'; printf 'osd/x\\t1\\n'; echo pool a; echo pool a";
        let arm = Arm { name: "disk".into(), show: vec![show.into()], ..Arm::default() };
        let mut screen = Screen::default();
        let found = Commands::new(&arm).in_effect(&Variables::new(), &mut screen).unwrap();
        let said: Vec<_> = found.0.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        assert_eq!(said, ["cache:8MB", "osd/x:1", "pool a:", "pool a (2):"]);
        assert!(screen.lines.is_empty(), "{:?}", screen.lines);
        let broken = Arm { show: vec!["echo no >&2; false".into()], ..arm };
        let error = Commands::new(&broken).in_effect(&Variables::new(), &mut screen).unwrap_err().to_string();
        assert!(error.starts_with("show: ") && error.ends_with("no"), "{error}");
    }

    #[test]
    fn health_is_the_worst_that_a_command_says() {
        let said = |commands: &[&str]| {
            let health = commands.iter().map(|text| (*text).to_owned()).collect();
            let arm = Arm { name: "disk".into(), health, ..Arm::default() };
            let given = Variables::from([pair("GIVEN", "7")]);
            Commands::new(&arm).probe(&given).map(|mut probe| probe())
        };
        assert_eq!(said(&[]), None);
        assert_eq!(said(&["test $GIVEN = 7", "true"]), Some(Health::Well));
        let lost = "echo one copy left; exit 3";
        assert_eq!(said(&[lost, "echo slow; exit 1"]), Some(Health::AtRisk("one copy left".into())));
        assert_eq!(said(&["true", "echo slow >&2; exit 1"]), Some(Health::Ill("slow".into())));
    }
}
