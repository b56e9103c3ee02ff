//! What is inside and what is not, with shells that try.

use super::*;
use std::process::Stdio;

/// A shell that does this inside; whether it could, and its words.
fn shell(sandbox: &Sandbox, line: &str) -> (bool, String) {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = sandbox.spawn(&mut command).unwrap().wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

fn found(path: &Path) -> Arc<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    Arc::new(open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap())
}

#[test]
fn only_what_is_listed_is_written() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for name in ["listed", "foreign"] {
        std::fs::write(path(name), "before").unwrap();
    }
    std::fs::create_dir(path("scratch")).unwrap();
    let mut sandbox = Sandbox::default();
    sandbox.file(path("listed"), found(&path("listed")));
    sandbox.directory(path("scratch"), found(&path("scratch")));
    let at = place.path().display();
    assert_eq!(
        shell(&sandbox, &format!("echo after > {at}/listed; echo x > {at}/scratch/new; rm {at}/scratch/new"))
            .1,
        ""
    );
    assert_eq!(std::fs::read_to_string(path("listed")).unwrap(), "after\n");
    let attempts = [
        "echo after > AT/foreign",
        "echo after >> AT/foreign",
        "truncate -s 0 AT/foreign",
        "rm AT/foreign",
        "mv AT/foreign AT/scratch/taken",
        "ln AT/foreign AT/scratch/link && echo after > AT/scratch/link",
        "ln -s AT/foreign AT/scratch/symlink && echo after > AT/scratch/symlink",
        "cd AT/scratch && echo after > ../foreign",
        "echo new > AT/new",
        "mkdir AT/directory",
        "mv AT/listed AT/foreign",
        // What is started inside stays inside.
        "setsid sh -c 'echo after > AT/foreign'",
    ];
    for attempt in attempts {
        let (done, said) = shell(&sandbox, &attempt.replace("AT", &at.to_string()));
        assert!(!done, "{attempt}: {said}");
        assert_eq!(std::fs::read_to_string(path("foreign")).unwrap(), "before", "{attempt}");
    }
    assert!(!path("new").exists() && !path("directory").exists());
    assert_eq!(shell(&sandbox, &format!("cat {at}/foreign")), (true, "before".into()), "reading is free");
}

#[test]
fn a_rule_is_for_the_file_that_was_found_and_not_for_its_path() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for name in ["plain", "foreign", "made"] {
        std::fs::write(path(name), "before").unwrap();
    }
    std::os::unix::fs::symlink(path("plain"), path("link")).unwrap();
    let mut sandbox = Sandbox::default();
    for name in ["link", "made"] {
        sandbox.file(path(name), found(&path(name)));
    }
    let writes = |name: &str| shell(&sandbox, &format!("echo after > {}", path(name).display())).0;
    assert!(writes("link") && writes("made"));
    assert_eq!(std::fs::read_to_string(path("plain")).unwrap(), "after\n");
    // The link is moved, and somebody makes a file of their own in place of the other.
    std::fs::remove_file(path("link")).unwrap();
    std::os::unix::fs::symlink(path("foreign"), path("link")).unwrap();
    std::fs::rename(path("made"), path("old")).unwrap();
    std::fs::write(path("made"), "before").unwrap();
    assert!(!writes("link") && !writes("made"));
    assert!(["foreign", "made"].iter().all(|name| std::fs::read_to_string(path(name)).unwrap() == "before"));
    assert!(writes("plain") && writes("old"), "it is the same file by any name");
}

#[test]
fn this_process_is_not_restricted() {
    let place = tempfile::tempdir().unwrap();
    assert!(!shell(&Sandbox::default(), &format!("echo x > {}/inside", place.path().display())).0);
    std::fs::write(place.path().join("outside"), "x").unwrap();
}

#[test]
fn programs_have_what_they_need() {
    let (done, said) = shell(
        &Sandbox::default(),
        "echo x > /dev/null && head -c 4 /dev/urandom > /dev/null && cat /proc/self/stat /etc/passwd > /dev/null",
    );
    assert!(done, "{said}");
}

#[test]
fn a_program_that_is_missing_is_an_error_of_the_start() {
    let error = Sandbox::default().spawn(&mut Command::new("/nonexistent/program")).unwrap_err();
    assert!(matches!(error, SandboxError::Start(_)), "{error}");
}
