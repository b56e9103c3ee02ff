//! The life of real database servers, from their creation to their end.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tidemark_lab::{self as lab, Database, DatabaseOptions, Databases, LabError, LabOptions, Layout};

/// A directory that servers of another user may pass through, as a temporary one may not. What is up in it is stopped when
/// the test ends, however it ends.
struct Place(tempfile::TempDir, Vec<PathBuf>);

impl Place {
    fn new(labs: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let labs = labs.iter().map(|name| directory.path().join(name)).collect();
        Self(directory, labs)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for lab in &self.1 {
            if let Err(error) = lab::down(lab, true, &mut say) {
                eprintln!("{error}");
            }
        }
    }
}

fn say(text: &str) {
    eprintln!("  {text}");
}

fn label(databases: &Databases, name: &str) -> String {
    databases.labels().into_iter().find(|(found, _)| found == name).unwrap_or_default().1
}

/// Servers of a kind: a setting with a value that is not the default, as the servers say it, and one that relaxes
/// durability.
struct Kind {
    database: Database,
    buffers: (&'static str, &'static str, &'static str),
    /// Another value of that.
    other: &'static str,
    durability: (&'static str, &'static str, &'static str),
    count: &'static str,
}

const POSTGRES: Kind = Kind {
    database: Database::Postgres,
    buffers: ("shared_buffers", "24MB", "24MB"),
    other: "32MB",
    durability: ("fsync", "on", "off"),
    count: "SELECT count(*) FROM t",
};

const MARIADB: Kind = Kind {
    database: Database::Mariadb,
    buffers: ("innodb_buffer_pool_size", "24M", "25165824"),
    other: "32M",
    durability: ("innodb_flush_log_at_trx_commit", "1", "0"),
    count: "SELECT COUNT(*) FROM t",
};

fn live_and_die(kind: &Kind) {
    let place = Place::new(&["lab"]);
    let on = place.path("on");
    fs::create_dir(&on).unwrap();
    let (name, value, shown) = kind.buffers;
    let mut options = DatabaseOptions {
        instances: Some(2),
        on: Some(on.clone()),
        settings: vec![(name.into(), value.into())],
        ..DatabaseOptions::new(kind.database, place.path("lab"))
    };
    let databases = Databases::up(&options, &mut say).unwrap();
    let status = Databases::status(databases.dir()).unwrap();
    assert!(status.is_up() && status.answering == 2, "{status:?}");
    assert_eq!(label(&databases, name), shown);
    assert_eq!(label(&databases, kind.durability.0).to_lowercase(), kind.durability.1);
    assert!(label(&databases, "version").starts_with(kind.database.name()));
    let record = fs::metadata(&status.credentials_file).unwrap();
    assert_eq!(record.permissions().mode() & 0o777, 0o600);
    // Not as root, where we are root.
    for daemon in databases.daemons() {
        let pid = databases.pid(daemon).unwrap().unwrap();
        let owner = fs::metadata(format!("/proc/{pid}")).unwrap().uid();
        assert!(owner != 0 || !rustix::process::geteuid().is_root(), "{daemon} runs as root");
    }
    assert_eq!(fs::read_dir(&on).unwrap().count(), 1, "the data lie where they are to");

    // Each server has its own data, and they can be taken back.
    databases.ask(0, "CREATE TABLE t (id INTEGER PRIMARY KEY)").unwrap();
    databases.ask(0, "INSERT INTO t VALUES (1)").unwrap();
    assert!(databases.ask(1, kind.count).is_err());
    assert!(!databases.restore(&mut say).unwrap(), "there is no copy yet");
    databases.save(&mut say).unwrap();
    databases.ask(0, "INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(databases.ask(0, kind.count).unwrap().trim(), "2");
    assert!(databases.restore(&mut say).unwrap());
    assert_eq!(databases.ask(0, kind.count).unwrap().trim(), "1");

    // What was committed outlives a kill.
    databases.ask(0, "INSERT INTO t VALUES (3)").unwrap();
    databases.kill(&mut say).unwrap();
    assert!(!Databases::status(databases.dir()).unwrap().is_up());
    databases.start(&mut say).unwrap();
    assert_eq!(databases.ask(0, kind.count).unwrap().trim(), "2");
    assert!(matches!(databases.cut_power(&mut say), Err(LabError::NoPowerCut { .. })));

    // Settings are changed and taken back while the servers are up; those that they do not start with change nothing.
    let mut databases = databases;
    let mut set = |name: &str, value: &str| databases.set(&[(name.to_owned(), value.to_owned())], &mut say);
    let before = Databases::open(&options.dir).unwrap().in_effect().unwrap();
    assert!(before.len() > 200 && before.0.keys().any(|name| name.starts_with("server 1: ")), "{before:?}");
    set(name, kind.other).unwrap();
    let now = Databases::open(&options.dir).unwrap().in_effect().unwrap();
    let changed: Vec<_> = now.changes_since(&before).into_iter().map(|change| change.name).collect();
    assert!(changed.contains(&format!("server 0: {name}")) && changed.contains(&format!("server 1: {name}")));
    assert!(set(name, "many").is_err());
    assert!(matches!(set("no_such_setting", "1"), Err(LabError::BadSetting { .. })));
    assert_eq!(Databases::open(&options.dir).unwrap().in_effect().unwrap(), now);
    set(name, value).unwrap();
    assert_eq!(Databases::open(&options.dir).unwrap().in_effect().unwrap(), before);
    assert_eq!(databases.ask(0, kind.count).unwrap().trim(), "2", "the data stay");

    // Other settings need another start.
    let (name, _, relaxed) = kind.durability;
    options.settings = vec![(name.into(), relaxed.into())];
    assert!(matches!(Databases::up(&options, &mut say), Err(LabError::Running { .. })));
    lab::down(&options.dir, false, &mut say).unwrap();
    let again = Databases::up(&options, &mut say).unwrap();
    assert_eq!(label(&again, name).to_lowercase(), relaxed);
    assert_eq!(label(&again, kind.buffers.0), shown, "what was set before still is");
    assert_eq!(again.ask(0, kind.count).unwrap().trim(), "2");
    lab::down(&options.dir, true, &mut say).unwrap();
    assert!(!options.dir.exists());
    assert_eq!(fs::read_dir(&on).unwrap().count(), 0, "nothing is left elsewhere");
}

#[test]
#[ignore = "needs PostgreSQL; run by make test"]
fn postgresql_servers_are_created_used_and_removed() {
    tidemark_testing::needs!(tidemark_testing::POSTGRES);
    live_and_die(&POSTGRES);
}

#[test]
#[ignore = "needs MariaDB; run by make test"]
fn mariadb_servers_are_created_used_and_removed() {
    tidemark_testing::needs!(tidemark_testing::MARIADB);
    live_and_die(&MARIADB);
}

#[test]
#[ignore = "needs PostgreSQL; run by make test"]
fn servers_that_cannot_start_say_why() {
    tidemark_testing::needs!(tidemark_testing::POSTGRES);
    let place = Place::new(&["lab"]);
    let options = DatabaseOptions::new(Database::Postgres, place.path("lab"));
    let with = |name: &str, value: &str| DatabaseOptions {
        settings: vec![(name.to_owned(), value.to_owned())],
        ..options.clone()
    };
    let refusal = |options: &DatabaseOptions| Databases::up(options, &mut say).unwrap_err().to_string();
    let error = refusal(&with("shared_bufers", "1GB"));
    assert!(error.contains("did you mean shared_buffers?"), "{error}");
    let error = refusal(&with("shared_buffers", "many"));
    assert!(error.contains("invalid value for parameter \"shared_buffers\""), "{error}");
    let error = refusal(&with("shared_buffers", "100TB"));
    assert!(error.contains("shared_buffers"), "{error}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let error = refusal(&DatabaseOptions { port: Some(port), ..options.clone() });
    assert!(
        error.contains(&format!("ss -ltnp 'sport = {port}'")) && error.contains("another port"),
        "{error}"
    );
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o700)).unwrap();
        let error = refusal(&options);
        assert!(error.contains("the user postgres, who may not enter"), "{error}");
        fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o711)).unwrap();
    }
    assert!(Databases::status(&options.dir).unwrap().daemons.iter().all(|daemon| daemon.pid.is_none()));
}

#[test]
#[ignore = "needs the Ceph packages with a file system, and PostgreSQL; run by make test"]
fn postgresql_lies_on_the_file_system_of_a_cluster() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    tidemark_testing::needs!(tidemark_testing::CEPH_FILESYSTEM);
    tidemark_testing::needs!(tidemark_testing::POSTGRES);
    // The servers first: their data are on the cluster.
    let place = Place::new(&["db", "ceph"]);
    let options = LabOptions {
        layout: Some(Layout::Plain),
        osds: Some(2),
        filesystem: true,
        copies: Some(1),
        ..LabOptions::new(place.path("ceph"))
    };
    let cluster = lab::up(&options, &mut say).unwrap();
    let mount = cluster.filesystem().unwrap();
    assert!(cluster.labels().contains(&("copies".into(), "1 of each object".into())));
    assert_eq!(pool_size(&cluster, "fs.data"), 1);
    let servers = DatabaseOptions {
        on: Some(mount.clone()),
        ..DatabaseOptions::new(Database::Postgres, place.path("db"))
    };
    let databases = Databases::up(&servers, &mut say).unwrap();
    databases.ask(0, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS id").unwrap();
    assert!(fs::read_dir(&mount).unwrap().count() > 0);
    databases.stop(&mut say).unwrap();

    // The cluster with all its data comes back, and the servers find theirs.
    lab::down(&options.dir, false, &mut say).unwrap();
    assert!(fs::read_dir(&mount).unwrap().next().is_none(), "it is not mounted");
    let other = LabOptions { copies: Some(2), ..options.clone() };
    assert!(matches!(lab::up(&other, &mut say), Err(LabError::Differs { .. })));
    lab::up(&options, &mut say).unwrap();
    let databases = Databases::up(&servers, &mut say).unwrap();
    assert_eq!(databases.ask(0, "SELECT count(*) FROM t").unwrap().trim(), "1000");
    lab::down(&servers.dir, true, &mut say).unwrap();
    assert!(fs::read_dir(&mount).unwrap().next().is_none(), "nothing is left on it");
    lab::down(&options.dir, true, &mut say).unwrap();
    assert!(!Path::new(&options.dir).exists());
}

fn pool_size(cluster: &lab::Lab, pool: &str) -> u64 {
    let answer = cluster.ceph(&["osd", "pool", "get", pool, "size", "--format", "json"]).unwrap();
    serde_json::from_str::<serde_json::Value>(&answer).unwrap()["size"].as_u64().unwrap()
}
