//! What is refused, and how records come back. Servers that run are tested in `tests/it/databases.rs`.

use std::ffi::OsString;
use std::fs;

use super::*;
use crate::command::tests::script;

/// A place for servers, beside a directory of programs that all fail but for the list of settings.
fn place() -> (tempfile::TempDir, DatabaseOptions) {
    let directory = tempfile::tempdir().unwrap();
    let programs = directory.path().join("programs");
    fs::create_dir(&programs).unwrap();
    script(
        &programs.join("postgres"),
        "#!/bin/sh\n[ \"$1\" = --describe-config ] && printf 'fsync\\tsighup\\nshared_buffers\\tpostmaster\\n'\n",
    );
    for name in ["initdb", "psql"] {
        script(
            &programs.join(name),
            "#!/bin/sh\necho 'initdb: error: invalid locale settings' >&2\nexit 1\n",
        );
    }
    script(&programs.join("getent"), "#!/bin/sh\necho postgres:x:$(id -u):$(id -g)::/:/bin/sh\n");
    let mut options = DatabaseOptions::new(Database::Postgres, directory.path().join("lab"));
    options.program_path = Some(programs.into());
    (directory, options)
}

fn refusal(options: &DatabaseOptions) -> LabError {
    Databases::up(options, &mut |_| {}).unwrap_err()
}

#[test]
fn missing_servers_come_with_their_package_and_nothing_is_made() {
    let (_directory, mut options) = place();
    for (database, package) in [(Database::Postgres, "postgresql"), (Database::Mariadb, "mariadb-server")] {
        options.database = database;
        options.program_path = Some(OsString::new());
        let error = refusal(&options).to_string();
        assert!(error.ends_with(&format!("install with `apt-get install -y {package}`")), "{error}");
    }
    assert!(!options.dir.exists());
}

#[test]
fn invalid_options_are_refused_before_servers_are_made() {
    let (directory, options) = place();
    let settings = vec![("fsynk".to_owned(), "off".to_owned())];
    let error = refusal(&DatabaseOptions { settings, ..options.clone() }).to_string();
    assert!(error.contains("`fsynk`") && error.contains("did you mean fsync?"), "{error}");
    assert!(!options.dir.exists());
    let error = refusal(&DatabaseOptions { instances: Some(65), ..options.clone() }).to_string();
    assert!(error.contains("from 1 to 64"), "{error}");
    let two_from_the_last = DatabaseOptions { instances: Some(2), port: Some(65535), ..options.clone() };
    assert!(matches!(refusal(&two_from_the_last), LabError::BadOption { value: 65535, .. }));
    let on = Some(directory.path().join("nowhere"));
    let error = refusal(&DatabaseOptions { on, ..options.clone() }).to_string();
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn a_creation_that_fails_says_why_and_is_recognised() {
    let (_directory, options) = place();
    let error = refusal(&options).to_string();
    assert!(error.contains("`initdb` failed") && error.contains("invalid locale settings"), "{error}");
    assert!(error.contains("LANG=C.UTF-8"), "{error}");
    let status = Databases::status(&options.dir).unwrap();
    assert!(!status.complete && !status.is_up() && status.answering == 0);
    assert!(matches!(Databases::open(&options.dir), Err(LabError::Unfinished { .. })));
    assert!(!options.dir.join("conf/secret").exists(), "the password is in the record only");
    let mut said = Vec::new();
    Databases::up(&options, &mut |text| said.push(text.to_owned())).unwrap_err();
    assert_eq!(said[0], "removing servers whose creation did not finish");
    crate::down(&options.dir, true, &mut |_| {}).unwrap();
    assert!(!options.dir.exists());
}

#[test]
fn a_directory_elsewhere_that_is_not_empty_is_left_alone() {
    let (directory, mut options) = place();
    let on = directory.path().join("on");
    fs::create_dir(&on).unwrap();
    options.on = Some(on.clone());
    let home = Home::prepare(&options.dir).unwrap();
    let taken = home.elsewhere(&on.canonicalize().unwrap(), "data");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("thesis.txt"), "years of work").unwrap();
    let error = refusal(&options).to_string();
    assert!(error.contains("it is not empty"), "{error}");
    crate::down(&options.dir, true, &mut |_| {}).unwrap();
    assert!(taken.join("thesis.txt").exists() && !options.dir.exists());
}

/// Servers that were created and do not run.
fn stopped(options: &DatabaseOptions) -> Shape {
    let home = Home::prepare(&options.dir).unwrap();
    let shape = Shape {
        server: Database::Postgres,
        ports: vec![25_432, 25_433],
        on: None,
        settings: [("fsync".to_owned(), "on".to_owned())].into(),
        power_cut: true,
    };
    let credentials =
        Credentials { user: "tidemark".into(), password: "SECRET".into(), database: "tidemark".into() };
    Record { shape: shape.clone(), credentials: Some(credentials) }.save(&home).unwrap();
    shape
}

#[test]
fn stopped_servers_have_a_status_and_variables_and_hide_the_password() {
    let (_directory, options) = place();
    let shape = stopped(&options);
    assert_eq!(crate::system(&options.dir).unwrap(), crate::System::Postgres);
    let status = Databases::status(&options.dir).unwrap();
    assert!(status.complete && !status.is_up());
    let names: Vec<_> = status.daemons.iter().map(|found| found.daemon.to_string()).collect();
    assert_eq!(names, ["disk", "postgres-0", "postgres-1"]);
    assert_eq!(status.endpoints, ["127.0.0.1:25432", "127.0.0.1:25433"]);
    assert!(!serde_json::to_string(&status).unwrap().contains("SECRET"));
    let record = fs::read_to_string(options.dir.join("lab.json")).unwrap();
    assert!(
        record.contains("\"password\": \"SECRET\"") && record.contains("\"system\": \"postgres\""),
        "{record}"
    );
    let databases = Databases::open(&options.dir).unwrap();
    assert_eq!(databases.site.shape, shape);
    assert!(!format!("{databases:?}").contains("SECRET"));
    let variables: std::collections::BTreeMap<_, _> = databases.variables().into_iter().collect();
    assert_eq!(variables["TIDEMARK_LAB_PORTS"], "25432,25433");
    assert!(variables["TIDEMARK_LAB_SOCKET"].ends_with("/sockets/.s.PGSQL.25432"));
    assert_eq!(databases.labels()[2], ("settings".to_owned(), "fsync=on".to_owned()));
    let error = databases.ask(2, "SELECT 1").unwrap_err().to_string();
    assert_eq!(error, "there is no server 2: the lab has 2, from 0");
    assert!(matches!(crate::status(&options.dir), Err(LabError::OtherSystem { asked: "ceph", .. })));
}

#[test]
fn settings_and_ports_may_change_and_servers_may_not() {
    let (_directory, options) = place();
    let shape = stopped(&options);
    let home = Home::find(&options.dir).unwrap();
    let settings =
        vec![("fsync".to_owned(), "off".to_owned()), ("shared_buffers".to_owned(), "1GB".to_owned())];
    let wanted = DatabaseOptions { settings, port: Some(7000), ..options.clone() };
    let adapted = wanted.adapt(&home, &shape).unwrap();
    assert_eq!(adapted.ports, [7000, 7001]);
    assert_eq!((&*adapted.settings["fsync"], &*adapted.settings["shared_buffers"]), ("off", "1GB"));
    let more = DatabaseOptions { instances: Some(4), ..options.clone() };
    let error = more.adapt(&home, &shape).unwrap_err().to_string();
    assert!(error.contains("has the number of servers 2, not 4"), "{error}");
    let other = DatabaseOptions { database: Database::Mariadb, ..options };
    let error = other.adapt(&home, &shape).unwrap_err().to_string();
    assert!(error.contains("has databases of PostgreSQL, not MariaDB"), "{error}");
}
