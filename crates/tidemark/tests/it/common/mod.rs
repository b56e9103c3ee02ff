//! Drives the built binary, and reads what it says.
#![allow(unreachable_pub, reason = "all of the program may use it")]

pub mod cluster;
pub mod existing;
pub mod fleet;
pub mod gateway;
pub mod loops;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A private place for documents, the result store and reports.
pub struct Place {
    pub directory: TempDir,
}

/// What a run of the binary left.
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Place {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        command.args(arguments).current_dir(self.directory.path()).env("NO_COLOR", "1");
        command.env("TIDEMARK_STORE", self.path("results.db")).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", self.path("state"));
        for name in [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_REGION",
            "TIDEMARK_LAB_DIR",
            "TIDEMARK_TOKEN",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// Runs the binary to its end.
    pub fn tidemark(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap().into()
    }

    /// Starts the binary and leaves it running.
    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a document with `--json` and gives the record of the run.
    pub fn run(&self, document: &Path) -> Record {
        let output = self.tidemark(&["run", document.to_str().unwrap(), "--json"]);
        Record::from(&output)
    }
}

/// The record of a run, as `--json` prints it.
pub struct Record {
    pub code: i32,
    pub value: Value,
    pub stderr: String,
}

impl Record {
    pub fn from(output: &Output) -> Self {
        let last = output.stdout.lines().last().unwrap_or_else(|| panic!("no output; {}", output.stderr));
        let event: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}"));
        assert_eq!(event["event"], "run", "{last}");
        Self { code: output.code, value: event["run"].clone(), stderr: output.stderr.clone() }
    }

    pub fn state(&self) -> &str {
        self.value["state"].as_str().unwrap()
    }

    /// The stage of this name.
    pub fn stage(&self, name: &str) -> &Value {
        let stages = self.value["stages"].as_array().unwrap();
        stages.iter().find(|stage| stage["name"] == name).unwrap_or_else(|| panic!("no stage {name}"))
    }

    /// The operation of this label in the stage's first work.
    pub fn operation(&self, stage: &str, label: &str) -> &Value {
        let operations = self.stage(stage)["works"][0]["operations"].as_array().unwrap();
        operations
            .iter()
            .find(|one| one["label"] == label)
            .unwrap_or_else(|| panic!("no {label}: {operations:?}"))
    }

    /// Sum of a count over all operations of a kind of sample, in all stages.
    pub fn sum(&self, sample: &str, field: &str) -> u64 {
        let stages = self.value["stages"].as_array().unwrap().iter();
        let works = stages.flat_map(|stage| stage["works"].as_array().unwrap());
        let operations = works.flat_map(|work| work["operations"].as_array().unwrap());
        operations.filter(|one| one["sample"] == sample).map(|one| one[field].as_u64().unwrap()).sum()
    }

    /// Findings of this rule.
    pub fn findings(&self, rule: &str) -> Vec<&Value> {
        let findings = self.value["findings"].as_array().unwrap();
        findings.iter().filter(|finding| finding["rule"] == rule).collect()
    }
}

/// The whitepaper's 4 KB workload (70 % read, 30 % write; init, prepare, main, cleanup, dispose), scaled down.
pub fn whitepaper(auth: &str, storage: &str, seconds: u32) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<workload name="whitepaper-4k" description="4 KB, 70/30, scaled down">
  {auth}
  {storage}
  <workflow>
    <workstage name="init"><work type="init" workers="1" config="cprefix=wp;containers=r(1,4)"/></workstage>
    <workstage name="prepare"><work type="prepare" workers="10"
      config="cprefix=wp;containers=r(1,4);objects=r(1,50);sizes=c(4)KB"/></workstage>
    <workstage name="main"><work name="main" workers="32" runtime="{seconds}">
      <operation type="read" ratio="70" config="cprefix=wp;containers=u(1,4);objects=u(1,25)"/>
      <operation type="write" ratio="30" config="cprefix=wp;containers=u(1,4);objects=u(26,50);sizes=c(4)KB"/>
    </work></workstage>
    <workstage name="cleanup"><work type="cleanup" workers="18" config="cprefix=wp;containers=r(1,4);objects=r(1,50)"/></workstage>
    <workstage name="dispose"><work type="dispose" workers="18" config="cprefix=wp;containers=r(1,4)"/></workstage>
  </workflow>
</workload>
"#
    )
}
