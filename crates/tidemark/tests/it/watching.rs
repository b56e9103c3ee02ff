//! Submissions followed from the command line: they end as the same run does here, and go on when nobody looks.

use crate::common::fleet::{Controller, Process, wait};
use crate::common::{Place, whitepaper};
use std::process::Command;

#[test]
fn a_submission_that_is_followed_ends_like_a_run() {
    let place = Place::new();
    let controller = Controller::start(&place, &[]);
    controller.wait_for_drivers(1);
    let mock = |settings: &str| {
        let storage = format!("<storage type=\"mock\" config=\"delay=1;{settings}\"/>");
        whitepaper(r#"<auth type="mock"/>"#, &storage, 2)
    };
    let nobody = "<storage type=\"s3\" config=\"accesskey=a;secretkey=b;endpoint=http://127.0.0.1:9\"/>";
    let documents = [
        ("well.xml", mock("errors=0"), 0),
        ("failures.xml", mock("errors=0.3"), 1),
        ("nobody.xml", whitepaper("", nobody, 2), 3),
    ];
    for (name, document, code) in documents {
        let path = place.write(name, &document);
        let path = path.to_str().unwrap();
        let here = place.tidemark(&["run", path, "--quiet"]);
        assert_eq!(here.code, code, "{name}: {}{}", here.stdout, here.stderr);
        let words = ["submit", path, "--watch", "--controller", &controller.url];
        let there = place.command(&words).envs(controller.access.iter().cloned()).output().unwrap();
        let said = String::from_utf8_lossy(&[there.stdout, there.stderr].concat()).into_owned();
        assert_eq!(there.status.code(), Some(code), "{name}: {said}");
    }
}

#[test]
fn who_stops_looking_is_told_that_the_run_goes_on() {
    let place = Place::new();
    let controller = Controller::start(&place, &["--no-driver"]);
    let path = place.write("w.xml", &whitepaper("", "<storage type=\"none\"/>", 2));
    let words = ["submit", path.to_str().unwrap(), "--watch", "--controller", &controller.url];
    let mut command = place.command(&words);
    let mut looking = Process::start({
        command.envs(controller.access.iter().cloned());
        command
    });
    // The place in the queue is told when it looks on.
    looking.wait_for("w1: waiting");
    let pid = looking.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ended = wait("the end of the command", || looking.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(130));
    looking.wait_for("w1 goes on without this command");
    assert_eq!(controller.submission(1)["state"], "queued");
}
