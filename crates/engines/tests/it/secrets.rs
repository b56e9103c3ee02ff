//! Documents that try to have a secret of their reader's machine shown to them.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::REGISTRY;
use std::path::Path;
use tidemark_plan::document::{self, Document};
use tidemark_plan::forecast::forecast;
use tidemark_plan::yaml::Environment;

/// The value of every variable, and the content of every file.
const VALUE: &str = "hunter2-0123";

/// All that a document's author is told, and all that is printed of what was made of it.
fn told(text: &str) -> (bool, String) {
    let environment = Environment {
        registry: &REGISTRY,
        variable: &|_| Some(VALUE.to_owned()),
        file: &|_| Ok(VALUE.to_owned()),
        bound: &|_| None,
        document: &|_| Err(std::io::ErrorKind::NotFound.into()),
        device_size: &|_| Err(std::io::ErrorKind::NotFound.into()),
        waited_for: &|| true,
    };
    match document::open(text, Path::new("/nonexistent"), &environment) {
        Err(remarks) => (false, format!("{remarks:?}")),
        Ok(Document::Workload(read)) => {
            let said = format!("{:?} {:?} {:?}", read.warnings, forecast(&read.plan, &REGISTRY), read.plan);
            (true, said)
        }
        Ok(Document::Evaluation(evaluation, warnings)) => {
            let plan = |load: usize| {
                let level = evaluation.loads[load].levels.known().into_iter().next().unwrap_or_default();
                evaluation.sketch(0, load, &level, 1, &environment)
            };
            let plans: Vec<_> = (0..evaluation.loads.len()).map(plan).collect();
            let settings: Vec<_> = evaluation.arms.iter().map(|arm| &arm.settings).collect();
            (plans.iter().all(Result::is_ok), format!("{warnings:?} {plans:?} {settings:?}"))
        }
    }
}

fn object(target: &str) -> String {
    format!(
        "name: t\ntarget: {target}\nstages:\n- load: {{for: 60s, containers: 1, objects: 1, sizes: 1KB, operations: [get: {{}}]}}\n"
    )
}

fn block(target: &str) -> String {
    format!("name: t\ntarget: {target}\nstages:\n- load: {{pattern: randread, block_size: 4KiB, for: 60s}}\n")
}

fn cosbench(storage: &str, auth: &str) -> String {
    format!(
        "<workload name=\"w\"><auth {auth}/><storage {storage}/><workflow><workstage name=\"m\"><work name=\"w\" workers=\"1\" \
         runtime=\"60\"><operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=c(1)\"/></work></workstage>\
         </workflow></workload>"
    )
}

fn fio(line: &str) -> String {
    format!("[j]\nrw=read\ntime_based\nruntime=30\ndirect=1\nfilename=/tmp/x\n{line}\n")
}

fn documents() -> Vec<String> {
    let s3 = |key: &str| object(&format!("{{kind: s3, endpoint: 'http://h', {key}}}"));
    let swift = |auth: &str| object(&format!("{{kind: swift, auth: {{{auth}}}}}"));
    let v3 = |key: &str| {
        swift(&format!("kind: keystone-v3, url: 'http://h/v3', user: u, project: p, password: w, {key}"))
    };
    let mut all = vec![
        object("{kind: s3, endpoint: 'SECRET'}"),
        object("{kind: s3, endpoint: 'http://SECRET'}"),
        object("{kind: s3, endpoint: 'http://SECRET/path'}"),
        object("{kind: s3, endpoints: ['http://h', 'ftp://SECRET']}"),
        s3("region: 'SECRET'"),
        s3("ca_file: '/SECRET'"),
        s3("encryption: {kind: sse-kms, key_id: 'SECRET'}"),
        s3("encryption: {kind: sse-c, key: 'SECRET'}"),
        s3("encryption: {kind: sse-c, key_file: '/SECRET'}"),
        s3("access_key: a, secret_key_file: '/SECRET'"),
        s3("access_key_file: '/x/SECRET', secret_key: b"),
        swift("kind: tempauth, url: 'SECRET', user: u, key: k"),
        swift("kind: tempauth, url: 'http://h/SECRET?', user: u, key: k"),
        swift("kind: tempauth, url: 'http://h', user: 'SECRET', key: k"),
        swift("kind: token, token: t, storage_url: 'x-SECRET'"),
        swift("kind: keystone-v2, url: 'http://h', user: u, password: w, tenant: 'SECRET'"),
        v3("user_domain: 'SECRET'"),
        v3("project_domain: 'SECRET'"),
        v3("region: 'SECRET'"),
        block("{kind: file, path: 'SECRET', size: 1GiB}"),
        block("{kind: file, path: '/dev/SECRET', size: 1GiB}"),
        block("{kind: file, path: '/SECRET/', size: 1GiB}"),
        block("{kind: file, paths: ['/SECRET', '/SECRET'], size: 1GiB}"),
        block("{kind: file, path: /tmp/x, journal: '/SECRET', size: 1GiB}"),
        block("{kind: device, path: 'SECRET'}"),
        block("{kind: device, path: '/dev/SECRET'}"),
        block("{kind: rbd, pool: p, image: 'SECRET', size: 1GiB}"),
        block("{kind: rbd, pool: 'SECRET', image: i, size: 1GiB}"),
        block("{kind: rbd, pool: p, image: i, conf: '/SECRET', size: 1GiB}"),
        block("{kind: rbd, pool: p, image: i, user: 'SECRET', size: 1GiB}"),
        "name: e\narms: [{name: a, target: {kind: s3, endpoint: 'SECRET'}}, {name: b, environment: {TIDEMARK_SECRET_X: 'http://x'}}]\n\
         loads: [{name: l, stages: [{load: {for: 60s, containers: 1, objects: 1, sizes: 1KB, operations: [get: {}]}}]}]\n"
            .to_owned(),
        "name: e\narms: [{name: a, target: {kind: file, path: '/SECRET/', size: 1GiB}}]\n\
         loads: [{name: l, stages: [{load: {for: 60s, pattern: randread, block_size: 4KiB}}]}]\n"
            .to_owned(),
    ];
    for config in [
        "accesskey=a;secretkey=b;endpoint=SECRET",
        "accesskey=a;secretkey=b;endpoint=http://h;timeout=SECRET",
        "accesskey=a;secretkey=b;endpoint=http://h;no_verify_ssl=SECRET",
        "accesskey=a;secretkey=b;endpoint=http://h;region=SECRET",
        "accesskey=a;secretkey=b;endpoint=http://h;storage_class=SECRET",
        "accesskey=a;secretkey=b;endpoint=http://h;SECRET=1",
        "accesskey=a;secretkey=b;endpoint=http://h;SECRET",
        "accesskey=a;secretkey=b;SECRETendpoint=http://h",
    ] {
        all.push(cosbench(&format!("type=\"s3\" config=\"{config}\""), "type=\"none\""));
    }
    for config in [
        "username=SECRET;password=p;auth_url=http://h",
        "username=u;password=p;auth_url=SECRET",
        "username=u;password=p;auth_url=http://h/SECRET?",
        "username=u;password=p;auth_url=http://h;tenant_name=SECRET",
        "username=u;password=p;auth_url=http://h;timeout=SECRET",
    ] {
        for kind in ["swauth", "keystone"] {
            all.push(cosbench("type=\"swift\"", &format!("type=\"{kind}\" config=\"{config}\"")));
        }
    }
    for config in ["size=SECRET", "delay=SECRET", "errors=SECRET"] {
        all.push(cosbench(&format!("type=\"mock\" config=\"{config}\""), "type=\"none\""));
    }
    for line in
        ["numjobs=SECRET", "iodepth=SECRET", "runtime=SECRET", "description=SECRET", "rw=SECRET", "SECRET=1"]
    {
        all.push(fio(line));
    }
    all
}

#[test]
fn no_document_is_told_a_secret() {
    let names = ["TIDEMARK_SECRET_X", "AWS_SECRET_ACCESS_KEY", "DB_PASS"];
    for document in documents() {
        for name in names {
            let text =
                document.replace("SECRET'", "${NAME}'").replace("SECRET", "${NAME}").replace("NAME", name);
            // An arm sets a variable of that name itself.
            let text = text.replace(&format!("TIDEMARK_${{{name}}}_X"), "TIDEMARK_SECRET_X");
            let (_, said) = told(&text);
            assert!(!said.contains("hunter2"), "{text}\n{said}");
        }
    }
}

#[test]
fn what_a_variable_stands_for_is_not_quoted() {
    // A device is told by its name: it is looked for under it.
    for document in documents().iter().filter(|text| !text.contains("kind: device")) {
        let text = document.replace("SECRET", "${PLAIN}");
        if let (false, said) = told(&text) {
            assert!(!said.contains("hunter2"), "{text}\n{said}");
        }
    }
}

#[test]
fn secrets_are_what_variables_with_secrets_are_for() {
    let secret = "${TIDEMARK_SECRET_X}";
    for text in [
        object(&format!(
            "{{kind: s3, endpoint: 'http://h', access_key: '{secret}', secret_key: '{secret}'}}"
        )),
        object(&format!(
            "{{kind: s3, endpoint: 'http://h', access_key: a, secret_key: 'x{secret}', session_token: '{secret}'}}"
        )),
        object("{kind: s3, endpoint: 'http://h', access_key_file: /a, secret_key_file: /b}"),
        object(&format!(
            "{{kind: swift, auth: {{kind: tempauth, url: 'http://h', user: u, key: '{secret}'}}}}"
        )),
        object(&format!(
            "{{kind: swift, auth: {{kind: token, storage_url: 'http://h', token: '{secret}'}}}}"
        )),
        cosbench(
            &format!("type=\"s3\" config=\"accesskey={secret};secretkey={secret};endpoint=http://h\""),
            "type=\"none\"",
        ),
        cosbench(
            "type=\"swift\"",
            &format!("type=\"swauth\" config=\"username=u; password = {secret};auth_url=http://h\""),
        ),
    ] {
        let (good, said) = told(&text);
        assert!(good, "{text}\n{said}");
        assert!(!said.contains("hunter2"), "{text}\n{said}");
    }
}

#[test]
fn an_arms_own_variable_is_not_shown_if_it_is_put_into_a_secret() {
    let text = "name: e\narms: [{name: a, environment: {MINE: hunter2, SHOWN: nvme}, target: {kind: s3, endpoint: 'http://h', \
                access_key: a, secret_key: '${MINE}'}}]\n\
                loads: [{name: l, stages: [{load: {for: 60s, containers: 1, objects: 1, sizes: 1KB, operations: [get: {}]}}]}]\n";
    let (good, said) = told(text);
    assert!(good && said.contains("nvme") && !said.contains("hunter2"), "{said}");
    let stored = tidemark_plan::redact::redact(text);
    assert!(stored.contains("nvme") && !stored.contains("hunter2"), "{stored}");
}

#[test]
fn a_secret_that_is_bound_goes_to_no_other_server() {
    let environment = Environment {
        registry: &REGISTRY,
        variable: &|_| Some(VALUE.to_owned()),
        file: &|_| Ok(VALUE.to_owned()),
        bound: &|_| Some(vec!["http://10.0.0.1:8000".to_owned()]),
        document: &|_| Err(std::io::ErrorKind::NotFound.into()),
        device_size: &|_| Err(std::io::ErrorKind::NotFound.into()),
        waited_for: &|| true,
    };
    let secret = "${TIDEMARK_SECRET_X}";
    let s3 = |key: &str, endpoint: &str| object(&format!("{{kind: s3, endpoint: '{endpoint}', {key}}}"));
    let swift =
        |auth: &str, endpoint: &str| object(&format!("{{kind: swift, {auth}, endpoint: '{endpoint}'}}"));
    let tempauth =
        |url: &str| format!("auth: {{kind: tempauth, url: '{url}/auth', user: u, key: '{secret}'}}");
    let token = |url: &str| format!("auth: {{kind: token, storage_url: '{url}/v1', token_file: /t}}");
    let xml = |endpoint: &str| {
        cosbench(
            &format!("type=\"s3\" config=\"accesskey=a;secretkey={secret};endpoint={endpoint}\""),
            "type=\"none\"",
        )
    };
    let evaluation = |endpoint: &str| {
        format!(
            "name: e\narms: [{{name: a, target: {{kind: s3, endpoint: '{endpoint}', access_key: a, secret_key: '{secret}'}}}}]\n\
             loads: [{{name: l, stages: [{{load: {{for: 60s, containers: 1, objects: 1, sizes: 1KB, operations: [get: {{}}]}}}}]}}]\n"
        )
    };
    let (own, other) = ("http://10.0.0.1:8000", "http://10.0.0.66:8000");
    let said = |text: &str| match document::open(text, Path::new("/nonexistent"), &environment) {
        Ok(Document::Evaluation(evaluation, _)) => {
            let plan = evaluation.sketch(0, 0, &Default::default(), 1, &environment);
            plan.map(drop).map_err(|remarks| format!("{remarks:?}"))
        }
        other => other.map(drop).map_err(|remarks| format!("{remarks:?}")),
    };
    let keys = [
        format!("access_key: a, secret_key: '{secret}'"),
        format!("access_key: '{secret}', secret_key: b"),
        "access_key: a, secret_key_file: /k".to_owned(),
        format!("access_key: a, secret_key: b, session_token: '{secret}'"),
    ];
    let mut pairs: Vec<(String, String)> = keys.iter().map(|key| (s3(key, own), s3(key, other))).collect();
    pairs.push((swift(&tempauth(own), own), swift(&tempauth(other), own)));
    pairs.push((swift(&tempauth(own), own), swift(&tempauth(own), other)));
    pairs.push((swift(&token(own), own), swift(&token(other), own)));
    pairs.push((xml(own), xml(other)));
    pairs.push((evaluation(own), evaluation(other)));
    for (good, bad) in pairs {
        assert_eq!(said(&good), Ok(()), "{good}");
        let refused = said(&bad).expect_err(&bad);
        assert!(
            refused.contains("bound to other addresses than") && !refused.contains("hunter2"),
            "{refused}"
        );
    }
}
