//! Loads that need more open files than the machine allows are refused before anything has run.

use crate::common::fleet::Controller;
use crate::common::{Output, Place};
use std::process::Command;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};

fn document(server: &EmbeddedServer, workers: u32) -> String {
    let (endpoint, key, secret) = (server.endpoint(), server.access_key(), server.secret_key());
    format!(
        "name: many\ntarget: {{kind: s3, endpoints: [{endpoint}], access_key: {key}, secret_key: {secret}}}\nstages:\n\
         - init: {{containers: 1}}\n- load: {{workers: {workers}, total_operations: {workers}, operations: \
         [put: {{containers: 1, objects: 1-9, sizes: 100B}}]}}\n- dispose: {{containers: 1, empty: true}}\n"
    )
}

/// The binary in a shell that has set its limits.
fn limited(place: &Place, limits: &str, arguments: &[&str]) -> Command {
    let plain = place.command(arguments);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")]).arg(plain.get_program());
    command.args(plain.get_args()).current_dir(place.directory.path());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn output(mut command: Command) -> Output {
    let output = command.output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_load_with_too_few_open_files_is_refused_and_a_low_soft_limit_is_raised() {
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let file = place.write("many.yaml", &document(&server, 600));
    let file = file.to_str().unwrap();
    for arguments in [&["run", file, "--json"][..], &["check", file]] {
        let refused = output(limited(&place, "ulimit -n 512", arguments));
        assert_eq!(refused.code, 3, "{}", refused.stderr);
        for words in ["this process may have 512", "ulimit -Hn", "fewer workers"] {
            assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
        }
    }
    assert_eq!(server.statistics().buckets, 0, "nothing has run");
    let raised = output(limited(&place, "ulimit -Sn 256", &["run", file, "--json"]));
    let record = crate::common::Record::from(&raised);
    assert_eq!((record.state(), record.sum("write", "ok")), ("completed", 600), "{}", raised.stderr);
}

#[test]
fn a_driver_with_too_few_open_files_refuses_its_part() {
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let controller = Controller::start(&place, &["--no-driver"]);
    let join = ["driver", "--join", &controller.url, "--name", "small"];
    let _small = crate::common::fleet::Process::start(limited(&place, "ulimit -n 512", &join));
    controller.wait_for_drivers(1);
    let submit = |workers: u32| {
        let file = place.write("many.yaml", &document(&server, workers));
        output(place.command(&["submit", file.to_str().unwrap(), "--watch", "--controller", &controller.url]))
    };
    let refused = submit(600);
    let said = refused.stdout + &refused.stderr;
    assert!(refused.code != 0 && said.contains("driver small: the load needs"), "{said}");
    assert_eq!(server.statistics().buckets, 0, "nothing has run");
    let done = submit(300);
    let said = done.stdout + &done.stderr;
    assert!(said.contains("all 300 operations succeeded"), "{said}");
}
