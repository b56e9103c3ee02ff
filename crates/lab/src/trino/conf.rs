//! The settings of a Trino cluster: for each process the arguments of Java and a file of its own; catalogs and plugins
//! are the same for all.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::record::Shape;
use super::storage::{Bucket, Keys};
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::{Home, make_directory, remove, write_private};
use tidemark_trino::{CATALOG, GENERATORS};

/// What all files begin with.
const HEAD: &str = "# Written by `tidemark lab up`, anew each time: changes made here are lost.\n";

/// Writes all settings. What is the same already is not touched: processes that run may still read it.
pub(super) fn write(home: &Home, shape: &Shape, keys: &Keys, server: &Path) -> Result<(), LabError> {
    let (catalogs, plugins) = (catalogs(home), plugins(home));
    for directory in [&home.run(), &home.logs(), &home.confs(), &catalogs, &plugins] {
        make_directory(directory)?;
    }
    // Of the many plugins, those are loaded that have a catalog here; both have the connector's name.
    for plugin in [CATALOG].into_iter().chain(GENERATORS) {
        let (link, target) = (plugins.join(plugin), server.join("plugin").join(plugin));
        if fs::read_link(&link).ok().as_ref() != Some(&target) {
            remove(&link)?;
            symlink(&target, &link).map_err(LabError::file("link", &link))?;
        }
        let text = if plugin == CATALOG { hive(shape, keys) } else { tidemark_trino::generator(plugin) };
        write_private(&catalogs.join(format!("{plugin}.properties")), &(HEAD.to_owned() + &text))?;
    }
    for (number, (daemon, port)) in shape.nodes().into_iter().enumerate() {
        let data = home.data(number);
        make_directory(&data.join("tmp"))?;
        let own = HEAD.to_owned() + &node(home, shape, daemon, port);
        write_private(&settings(home, daemon), &own)?;
        write_private(&home.server_conf(daemon), &java(home, shape, daemon, &data, server))?;
    }
    Ok(())
}

fn catalogs(home: &Home) -> PathBuf {
    home.confs().join("catalog")
}

fn plugins(home: &Home) -> PathBuf {
    home.confs().join("plugin")
}

/// The settings of one process.
fn settings(home: &Home, daemon: Daemon) -> PathBuf {
    home.confs().join(format!("{daemon}.properties"))
}

fn node(home: &Home, shape: &Shape, daemon: Daemon, port: u16) -> String {
    let (plugins, catalogs) = (plugins(home), catalogs(home));
    let (port, works) = (port.to_string(), (shape.workers() == 0).to_string());
    let endpoint = shape.endpoint();
    let mut settings = vec![
        ("coordinator", if daemon == Daemon::Coordinator { "true" } else { "false" }),
        ("http-server.http.port", &port),
        ("discovery.uri", &endpoint),
    ];
    settings.extend(
        (daemon == Daemon::Coordinator).then_some(("node-scheduler.include-coordinator", works.as_str())),
    );
    let (plugins, catalogs) = (plugins.to_string_lossy(), catalogs.to_string_lossy());
    settings.extend([("plugin.dir", plugins.as_ref()), ("catalog.config-dir", catalogs.as_ref())]);
    tidemark_trino::properties(&settings)
}

fn hive(shape: &Shape, keys: &Keys) -> String {
    let Bucket { s3, region, bucket } = &shape.bucket;
    let (access_key, secret_key) = (keys.access_key.as_str(), keys.secret_key.as_str());
    let bucket = tidemark_trino::Bucket { endpoint: s3, region, name: bucket, access_key, secret_key };
    tidemark_trino::hive(bucket)
}

/// The file of arguments of the program `java`.
fn java(home: &Home, shape: &Shape, daemon: Daemon, data: &Path, server: &Path) -> String {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let arguments = [
        format!("-Xmx{}", shape.heap_bytes),
        "-XX:+UseG1GC".into(),
        "-XX:+ExitOnOutOfMemoryError".into(),
        // Trino compiles a class for each part of a query.
        "-XX:ReservedCodeCacheSize=512M".into(),
        "-Djdk.nio.maxCachedBufferSize=2000000".into(),
        // Nothing is left in the machine's directory for temporary files, whatever ends the process.
        "-XX:-UsePerfData".into(),
        "-XX:+DisableAttachMechanism".into(),
        format!("-XX:ErrorFile={}", path(&home.logs().join(format!("{daemon}-crash.log")))),
        format!("-Djava.io.tmpdir={}", path(&data.join("tmp"))),
        // Its libraries use both, and Java would warn of it.
        "--enable-native-access=ALL-UNNAMED".into(),
        "--sun-misc-unsafe-memory-access=allow".into(),
        "-Dfile.encoding=UTF-8".into(),
        "-Dnode.environment=tidemark".into(),
        format!("-Dnode.id={daemon}"),
        format!("-Dnode.data-dir={}", path(data)),
        "-Dnode.bind-ip=127.0.0.1".into(),
        "-Dnode.internal-address=127.0.0.1".into(),
        format!("-Dconfig={}", path(&settings(home, daemon))),
        "--class-path".into(),
        path(&server.join("lib/*")),
        "io.trino.server.TrinoServer".into(),
    ];
    arguments.iter().fold(String::new(), |text, argument| text + &quoted(argument) + "\n")
}

/// A word as java's file of arguments takes it.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn shape(workers: u16) -> Shape {
        Shape {
            ports: (28_480..=28_480 + workers).collect(),
            heap_bytes: 1 << 30,
            jdk: "/usr/lib/jvm/25".into(),
            bucket: Bucket {
                s3: "http://127.0.0.1:27480".into(),
                region: "us-east-1".into(),
                bucket: "trino".into(),
            },
        }
    }

    fn keys() -> Keys {
        Keys { access_key: "A".into(), secret_key: "SECRET\\1".into() }
    }

    #[test]
    fn the_coordinator_works_only_where_nobody_else_does() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::prepare(directory.path()).unwrap();
        for (workers, works) in [(0, "true"), (2, "false")] {
            write(&home, &shape(workers), &keys(), Path::new("/cache/server")).unwrap();
            let text = fs::read_to_string(settings(&home, Daemon::Coordinator)).unwrap();
            assert!(text.contains("coordinator=true\nhttp-server.http.port=28480\n"), "{text}");
            assert!(text.contains(&format!("include-coordinator={works}\n")), "{text}");
        }
        let text = fs::read_to_string(settings(&home, Daemon::Worker(2))).unwrap();
        assert!(text.contains("coordinator=false\nhttp-server.http.port=28482\n"), "{text}");
        assert!(
            text.contains("discovery.uri=http://127.0.0.1:28480\n") && !text.contains("include"),
            "{text}"
        );
        let text = fs::read_to_string(home.server_conf(Daemon::Worker(2))).unwrap();
        assert!(text.contains("\"-Dnode.id=worker-2\"\n") && text.contains("\"-Xmx1073741824\"\n"), "{text}");
        let link = fs::read_link(plugins(&home).join("tpch")).unwrap();
        assert_eq!(link, Path::new("/cache/server/plugin/tpch"));
    }

    #[test]
    fn only_the_owner_reads_the_keys_and_they_are_in_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::prepare(directory.path()).unwrap();
        write(&home, &shape(1), &keys(), Path::new("/cache/server")).unwrap();
        let with_keys = catalogs(&home).join("hive.properties");
        let mut files: Vec<PathBuf> = Vec::new();
        for directory in [home.confs(), catalogs(&home)] {
            let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
            files.extend(entries.filter(|path| path.is_file()));
        }
        assert_eq!(files.len(), 7, "{files:?}");
        for file in files {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(text.contains("SECRET"), file == with_keys, "{file:?}");
        }
        let text = fs::read_to_string(with_keys).unwrap();
        assert!(text.contains("s3.aws-secret-key=SECRET\\\\1\n"), "{text}");
        assert!(text.contains("hive.metastore.catalog.dir=s3://trino/meta\n"), "{text}");
    }

    #[test]
    fn no_word_ends_its_quotes() {
        assert_eq!(quoted(r#"/a "b"\c"#), r#""/a \"b\"\\c""#);
    }
}
