//! A controller and drivers as processes of the built binary.

use super::Place;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long anything may take before a test says that it hangs.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A process that is ended with its test, and what it said.
pub struct Process {
    pub child: Child,
    said: Arc<Mutex<String>>,
}

impl Process {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let pipes: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for pipe in pipes {
            let said = Arc::clone(&said);
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    *said.lock().unwrap() += &(line + "\n");
                }
            });
        }
        Self { child, said }
    }

    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits for a line that begins so, and gives the rest of it.
    pub fn wait_for(&self, start: &str) -> String {
        wait(&format!("`{start}`"), || {
            self.said().lines().find_map(|line| line.strip_prefix(start).map(str::to_owned))
        })
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until there is something.
pub fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// `tidemark serve` on a free port, and its drivers.
pub struct Controller<'a> {
    pub place: &'a Place,
    pub process: Process,
    pub url: String,
    /// Environment of its clients: token, whom to trust.
    pub access: Vec<(&'static str, String)>,
}

impl<'a> Controller<'a> {
    /// A controller without a driver of its own.
    pub fn start(place: &'a Place, more: &[&str]) -> Self {
        Self::at(place, "127.0.0.1:0", more)
    }

    pub fn at(place: &'a Place, listen: &str, more: &[&str]) -> Self {
        let words = [&["serve", "--listen", listen], more].concat();
        let process = Process::start(place.command(&words));
        let said = process.wait_for("serving ");
        let url = said.split("/;").next().unwrap().to_owned();
        Self { place, process, url, access: Vec::new() }
    }

    pub fn driver(&self, name: &str, more: &[&str]) -> Process {
        let words = [&["driver", "--join", &self.url, "--name", name], more].concat();
        Process::start(self.place.command(&words))
    }

    /// Waits until so many drivers are there.
    pub fn wait_for_drivers(&self, count: usize) {
        wait(&format!("{count} drivers"), || {
            let status = self.status();
            let drivers = status["drivers"].as_array().unwrap();
            (drivers.iter().filter(|driver| driver["state"] == "idle").count() == count).then_some(())
        });
    }

    pub fn status(&self) -> Value {
        self.json(&["status", "--json"])
    }

    /// What a client's command prints as JSON.
    pub fn json(&self, words: &[&str]) -> Value {
        let mut command = self.place.command(&[words, &["--controller", &self.url]].concat());
        let output = command.envs(self.access.iter().cloned()).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{words:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Submits a document and gives its number.
    pub fn submit(&self, document: &str, more: &[&str]) -> u64 {
        let path = self.place.write("submitted", document);
        let words = [&["submit", path.to_str().unwrap(), "--json"], more].concat();
        self.json(&words)["id"].as_u64().unwrap()
    }

    pub fn submission(&self, id: u64) -> Value {
        self.json(&["status", &id.to_string(), "--json"])
    }

    /// Waits until a submission has come to this state.
    pub fn wait_for_state(&self, id: u64, state: &str) -> Value {
        wait(&format!("w{id} {state}"), || {
            let submission = self.submission(id);
            let now = submission["state"].as_str().unwrap().to_owned();
            let over = ["completed", "failed", "cancelled", "interrupted"].contains(&now.as_str());
            assert!(now == state || !over, "w{id} is {now}: {submission}");
            (now == state).then_some(submission)
        })
    }

    /// Waits until a submission is over, however that came.
    pub fn wait_for_end(&self, id: u64) -> Value {
        wait(&format!("the end of w{id}"), || {
            let submission = self.submission(id);
            (!["queued", "running"].contains(&submission["state"].as_str().unwrap())).then_some(submission)
        })
    }

    /// The record of the run of a submission.
    pub fn run_of(&self, submission: &Value) -> super::Record {
        let run = submission["run"].as_u64().unwrap_or_else(|| panic!("no run: {submission}")).to_string();
        let output = self.place.tidemark(&["report", &run, "--format", "json"]);
        let value: Value =
            serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
        super::Record { code: output.code, value, stderr: output.stderr }
    }
}
