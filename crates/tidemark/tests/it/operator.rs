//! The operator as a process at a real API server, with the rights that it asks for and no others. There is no node: load comes from the
//! operator's own process, and driver pods stay away.

use crate::common::cluster::{Cluster, EVALUATIONS, evaluation};
use crate::common::fleet::{Process, wait};
use serde_json::{Value, json};
use std::path::PathBuf;
use tidemark_apiserver::Failure;

/// An API server in which the operator is installed; it ends with the test.
struct Installed {
    cluster: Cluster,
    /// The operator's kubeconfig.
    account: PathBuf,
}

impl Installed {
    fn start() -> Self {
        let cluster = Cluster::server();
        cluster.install_operator();
        let account = cluster.account("tidemark-operator");
        Self { cluster, account }
    }

    fn operator(&self) -> Process {
        let data = self.cluster.place.path("data").display().to_string();
        let words = ["operator", "--dir", &data, "--advertise", "127.0.0.1"];
        let process = Process::start(self.cluster.command(Some(&self.account), &words));
        process.wait_for("watching the Evaluations of the namespace default");
        process
    }

    fn make(&self, name: &str, spec: &Value) -> Result<Value, Failure> {
        self.cluster.client.create(EVALUATIONS, &evaluation(name, spec))
    }

    fn change(&self, name: &str, spec: &Value) {
        self.cluster.client.merge(&format!("{EVALUATIONS}/{name}"), &json!({"spec": spec})).unwrap();
    }

    fn status(&self, name: &str) -> Value {
        self.cluster.client.ask("GET", &format!("{EVALUATIONS}/{name}"), None).unwrap()["status"].clone()
    }

    fn wait_for_phase(&self, name: &str, phase: &str) -> Value {
        wait(&format!("{name} {phase}"), || Some(self.status(name)).filter(|status| status["phase"] == phase))
    }

    /// The Jobs of drivers, with the names of what owns them.
    fn jobs(&self) -> Vec<(String, String)> {
        let jobs: Vec<Value> =
            self.cluster.client.list("/apis/batch/v1/namespaces/default/jobs", "").unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let owner = |job: &Value| text(&job["metadata"]["ownerReferences"][0]["name"]);
        jobs.iter().map(|job| (text(&job["metadata"]["name"]), owner(job))).collect()
    }

    /// The only evaluation of a store.
    fn evaluation(&self, store: &str) -> Value {
        let output = self.cluster.place.tidemark(&["report", "last", "--format", "json", "--store", store]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    }
}

/// Two arms, three repeats; `limits` are what the servers of the arms serve.
fn document(limits: [&str; 2]) -> String {
    let [whole, tenth] = limits;
    format!(
        "name: tenths\nseed: 3\narms:\n  - {{name: whole, target: {{kind: embedded, limit: '{whole}'}}}}\n  \
         - {{name: tenth, target: {{kind: embedded, limit: '{tenth}'}}}}\nloads:\n  - name: reads\n    stages:\n      \
         - init: {{containers: 1}}\n      - prepare: {{workers: 4, containers: 1, objects: 1-20, sizes: 1KiB}}\n      \
         - load: {{workers: 4, warm_up: 200ms, for: 2s, containers: 1, operations: [{{get: {{objects: 1-20}}}}]}}\n      \
         - cleanup: {{workers: 4, containers: 1, objects: 1-20}}\n      - dispose: {{containers: 1}}\nrepeats: 3\n"
    )
}

/// What has to be alike, whoever carried the evaluation out: the outcome, and each arm's repeats.
fn comparable(evaluation: &Value) -> Value {
    let assessment = &evaluation["assessment"];
    let cell = |cell: &Value| {
        json!([
            cell["arm"],
            cell["load"],
            cell["throughput"]["values"].as_array().unwrap().len(),
            cell["failed"]
        ])
    };
    let cells: Vec<Value> = assessment["cells"].as_array().unwrap().iter().map(cell).collect();
    json!({"outcome": assessment["outcome"], "cells": cells})
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_has_evaluations_carried_out_as_by_the_command_line_also_by_an_operator_that_is_killed() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let installed = Installed::start();
    let mut operator = installed.operator();

    // What the schema does not have is refused.
    let refused = installed.make("x", &json!({"document": "a", "drivers": {"cuont": 2}})).unwrap_err();
    assert!(refused.to_string().contains("spec.drivers.cuont"), "{refused}");
    let both = json!({"document": "a", "variables": [{"name": "A", "value": "1", "secretKeyRef": {"name": "b", "key": "c"}}]});
    let refused = installed.make("x", &both).unwrap_err();
    assert!(refused.to_string().contains("write either value or secretKeyRef"), "{refused}");

    // What is wrong with a document is said with its place, once; what is the operator's is not read.
    installed
        .make("wrong", &json!({"document": document(["200/s", "20/s"]).replace("warm_up", "wurm_up")}))
        .unwrap();
    let ready = installed.wait_for_phase("wrong", "Failed")["conditions"][0].clone();
    assert_eq!((&ready["status"], &ready["reason"]), (&"False".into(), &"Wrong".into()));
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("spec.document, line 11, column") && message.contains("wurm_up"), "{message}");
    let account = installed.account.to_str().unwrap();
    let foreign =
        format!("name: x\narms: [{{name: a, target: mock}}]\nloads: [{{name: l, document: {account}}}]\n");
    installed.make("foreign", &json!({"document": foreign})).unwrap();
    let message = installed.wait_for_phase("foreign", "Failed")["conditions"][0]["message"].to_string();
    assert!(message.contains("refers to nothing but its variables"), "{message}");

    // Variables come from the resource and from Secrets, and secrets are not told.
    let s3 = "name: away\narms: [{name: a, target: {kind: s3, endpoints: ['${ENDPOINT}'], access_key: a, secret_key: '${KEY}'}}]\n\
        loads: [{name: l, stages: [{load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}}]}]\n";
    installed.make("unset", &json!({"document": s3})).unwrap();
    let message = installed.wait_for_phase("unset", "Failed")["conditions"][0]["message"].to_string();
    assert!(message.contains("ENDPOINT is not set; list it under `spec.variables`"), "{message}");
    let variables = json!([{"name": "ENDPOINT", "value": "http://127.0.0.1:1"}, {"name": "KEY", "secretKeyRef": {"name": "s3", "key": "key"}}]);
    installed.make("away", &json!({"document": s3, "variables": variables})).unwrap();
    let message = installed.wait_for_phase("away", "Waiting")["conditions"][0]["message"].to_string();
    assert!(message.contains("spec.variables: KEY: ") && message.contains("not found"), "{message}");
    // `hunter2` in base64.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "data": {"key": "aHVudGVyMg=="}});
    installed.cluster.client.create("/api/v1/namespaces/default/secrets", &secret).unwrap();
    let status = installed.wait_for_phase("away", "Failed").to_string();
    assert!(status.contains("connection refused by http://127.0.0.1:1"), "{status}");

    let made = installed.make("tenths", &json!({"document": document(["200/s", "20/s"])})).unwrap();
    // Kubernetes' times have whole seconds: of two in one second the name decides.
    installed.wait_for_phase("tenths", "Running");
    installed.make("later", &json!({"document": document(["100/s", "100/s"])})).unwrap();
    let before = wait("two runs", || {
        Some(installed.status("tenths")).filter(|status| status["runs"]["done"].as_u64() >= Some(2))
    });
    assert_eq!((&before["phase"], &before["runs"]["of"]), (&"Running".into(), &6.into()), "{before}");
    assert_eq!(
        installed.wait_for_phase("later", "Queued")["conditions"][0]["message"],
        "another Evaluation is carried out"
    );
    installed.change("later", &json!({"suspend": true}));
    installed.wait_for_phase("later", "Suspended");
    assert!(!operator.said().contains("hunter2"), "{}", operator.said());
    operator.kill();

    let mut operator = installed.operator();
    let after = installed.wait_for_phase("tenths", "Completed");
    assert_eq!(after["runs"]["progress"], "6/6", "{after}");
    assert!(after["verdict"].as_str().unwrap().contains("tenth is worse than whole"), "{after}");
    let directory = after["report"]["directory"].as_str().unwrap().to_owned();
    let evaluation = installed.evaluation(&format!("{directory}/results.db"));
    let mut places: Vec<_> = evaluation["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["member"]["arm"].to_string(), run["member"]["repeat"].as_u64()))
        .collect();
    assert_eq!(places.len(), 6, "{places:?}");
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 6, "none twice: {places:?}");
    let again = operator.said().lines().filter(|line| line.starts_with("tenths: run ")).count();
    assert!(again <= 4, "two were there: {}", operator.said());

    // It is what the command line makes of the document.
    let file = installed.cluster.place.write("tenths.yaml", &document(["200/s", "20/s"]));
    let output = installed.cluster.place.tidemark(&["run", file.to_str().unwrap()]);
    assert!([0, 4].contains(&output.code), "{}", output.stderr);
    let here = installed.evaluation(installed.cluster.place.path("results.db").to_str().unwrap());
    assert_eq!(comparable(&evaluation), comparable(&here));

    // The report is where its readers look for it.
    let map = installed
        .cluster
        .client
        .ask("GET", "/api/v1/namespaces/default/configmaps/tenths-report", None)
        .unwrap();
    assert_eq!(map["metadata"]["ownerReferences"][0]["uid"], made["metadata"]["uid"]);
    assert!(map["data"]["report.md"].as_str().unwrap().contains("tenth"));
    assert!(map["binaryData"]["report.html.gz"].is_string());

    // Drivers belong to their Evaluation. Those of an operator that is killed are removed by the next one, and those of an Evaluation that
    // is suspended.
    installed
        .make("pods", &json!({"document": document(["200/s", "20/s"]), "drivers": {"count": 2}}))
        .unwrap();
    let jobs = wait("a Job", || Some(installed.jobs()).filter(|jobs| !jobs.is_empty()));
    assert!(matches!(&jobs[..], [(_, owner)] if owner == "pods"), "{jobs:?}");
    operator.kill();
    let operator = installed.operator();
    operator.wait_for(&format!("removing the drivers {} of an operator before this one", jobs[0].0));
    wait("another Job", || Some(installed.jobs()).filter(|others| !others.is_empty() && *others != jobs));
    installed.change("pods", &json!({"suspend": true}));
    installed.wait_for_phase("pods", "Suspended");
    assert_eq!(installed.jobs(), []);

    // What is deleted leaves nothing; a ConfigMap goes with its owner where somebody collects garbage.
    assert!(PathBuf::from(&directory).exists());
    assert!(installed.cluster.client.delete(&format!("{EVALUATIONS}/tenths")).unwrap());
    wait("an empty volume", || (!PathBuf::from(&directory).exists()).then_some(()));
}
