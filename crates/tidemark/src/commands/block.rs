//! `tidemark block PATTERN PATH`: block load without writing a document. The document is written here, run like any
//! other, and kept with the run.

use super::{document, run};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::fmt::Write as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Patterns that have no block size of their own.
const PLAIN: [&str; 8] = ["read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim"];

/// Turns the command line into a document and runs it.
pub(crate) fn block(
    arguments: &cli::Block,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let text = write(arguments)?;
    if arguments.print {
        terminal.print(text.trim_end());
        return Ok(Exit::Done);
    }
    let source = document::parse("the command line".into(), text, terminal)?;
    let run = cli::Run {
        file: PathBuf::new(),
        seed: Some(arguments.seed),
        trigger_dir: None,
        cross_check: arguments.cross_check,
        run_commands: false,
        again: false,
        labs: None,
        running: arguments.running.clone(),
    };
    run::execute(source, &run, store, terminal)
}

/// The document for a command line.
fn write(arguments: &cli::Block) -> Result<String, Stop> {
    let devices = arguments.paths.iter().filter(|path| is_device(path)).count();
    if devices != 0 && devices != arguments.paths.len() {
        return Err(Stop::usage("the paths mix devices and files: use only one kind"));
    }
    let mut text = format!("name: {}\n", quoted(&format!("block {}", arguments.pattern)));
    let paths: Vec<_> = arguments.paths.iter().map(|path| quoted(&path.to_string_lossy())).collect();
    let _ = writeln!(text, "target:");
    let _ = writeln!(text, "  kind: {}", if devices > 0 { "device" } else { "file" });
    let _ = writeln!(text, "  paths: [{}]", paths.join(", "));
    // By default all of a device is used, and all of files that are there.
    let size = match &arguments.size {
        Some(size) => Some(quoted(size)),
        None if devices > 0 => None,
        None => Some(smallest(&arguments.paths).map_or("1GiB".into(), |bytes| bytes.to_string())),
    };
    if let Some(size) = size {
        let _ = writeln!(text, "  size: {size}");
    }
    let _ = writeln!(text, "  engine: {}", if arguments.fio { "fio" } else { "native" });
    let _ = writeln!(text, "  direct: {}", !arguments.buffered);
    if arguments.polled {
        let _ = writeln!(text, "  polled: true");
    }
    if arguments.verify {
        let _ = writeln!(text, "content: {{verify: true}}");
    }
    let _ = writeln!(text, "stages:");
    if !arguments.no_prepare {
        let _ = writeln!(text, "  - prepare: {{}}");
    }
    let _ = writeln!(text, "  - load:");
    let mut key = |name: &str, value: String| {
        let _ = writeln!(text, "      {name}: {value}");
    };
    // The stage is named by it in tables.
    if arguments.pattern.chars().all(|c| c.is_ascii_alphanumeric()) {
        key("name", quoted(&arguments.pattern));
    }
    key("pattern", axis(&arguments.pattern));
    // Profiles bring their own.
    let plain = arguments.pattern.split(',').any(|pattern| PLAIN.contains(&pattern.trim()));
    if let Some(size) = arguments.block_size.as_deref().or(plain.then_some("4KiB")) {
        key("block_size", axis(size));
    }
    key("depth", axis(&arguments.depth));
    key("clients", axis(&arguments.clients.clone().unwrap_or_else(|| arguments.paths.len().to_string())));
    let arrivals = arguments.arrivals.map(|arrivals| arrivals.name().to_owned());
    let given: [(&str, &Option<String>); 8] = [
        ("batch", &arguments.batch),
        ("reads", &arguments.reads),
        ("random", &arguments.random),
        ("rate", &arguments.rate),
        ("arrivals", &arrivals),
        ("steady", &arguments.steady),
        ("until_steady", &arguments.until_steady),
        ("fsync", &arguments.fsync),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            key(name, quoted(value));
        }
    }
    key("warm_up", quoted(&arguments.warm_up));
    key("for", quoted(&arguments.duration));
    if arguments.warm_cache {
        key("cache", "warm".into());
    }
    if arguments.repeats > 1 {
        key("repeats", arguments.repeats.to_string());
    }
    if arguments.cleanup {
        let _ = writeln!(text, "  - cleanup: {{}}");
    }
    Ok(text)
}

/// A value, or a list of them where the command line has commas.
fn axis(text: &str) -> String {
    let values: Vec<_> = text.split(',').map(|value| quoted(value.trim())).collect();
    if values.len() == 1 { values.into_iter().collect() } else { format!("[{}]", values.join(", ")) }
}

/// A text as YAML: unquoted where it is plain, otherwise in JSON's quotes, which YAML accepts.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-%".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with(['-', '%']) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

/// The size of the smallest of some files in whole blocks of 4 KiB, if all of them are there and hold that much.
fn smallest(paths: &[PathBuf]) -> Option<u64> {
    let sizes: Result<Vec<u64>, _> =
        paths.iter().map(|path| std::fs::metadata(path).map(|found| found.len())).collect();
    sizes.ok()?.into_iter().min().map(|bytes| bytes / 4096 * 4096).filter(|bytes| *bytes > 0)
}

fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn written(words: &[&str]) -> String {
        let all = ["tidemark", "block"].iter().chain(words);
        match cli::Cli::parse_from(all).command {
            cli::Command::Block(arguments) => write(&arguments).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_that_are_there_are_used_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str, bytes: usize| {
            let path = directory.path().join(name);
            std::fs::write(&path, vec![0; bytes]).unwrap();
            path.to_string_lossy().into_owned()
        };
        let (large, small, tiny) = (path("large", 1 << 20), path("small", 12_345), path("tiny", 100));
        assert!(written(&["randread", &large, &small]).contains("  size: 12288\n"));
        assert!(written(&["randread", &large, "--size", "8KiB"]).contains("  size: 8KiB\n"));
        for other in [tiny.as_str(), "/nonexistent/new"] {
            assert!(written(&["randread", &large, other]).contains("  size: 1GiB\n"));
        }
    }

    #[test]
    fn commas_make_axes_and_odd_paths_are_quoted() {
        let text = written(&["read,write", "/data/a b: c", "--block-size", "4KiB,1MiB", "--repeats", "3"]);
        assert!(text.contains("  paths: [\"/data/a b: c\"]\n  size: 1GiB\n"), "{text}");
        assert!(text.contains("      pattern: [read, write]\n      block_size: [4KiB, 1MiB]\n"), "{text}");
        assert!(text.contains("      repeats: 3\n"), "{text}");
    }

    #[test]
    fn the_document_reads_back() {
        for words in [
            &["randread", "/data/a", "/data/b", "--size", "64MiB", "--cleanup", "--warm-cache", "--buffered"]
                [..],
            &[
                "oltp",
                "/data/a",
                "--rate",
                "500/s",
                "--arrivals",
                "poisson",
                "--depth",
                "1,32",
                "--fsync",
                "32",
                "--steady",
                "5s",
                "--until-steady",
                "5s",
            ],
            &["randrw", "/data/a", "--reads", "70%", "--batch", "4", "--verify", "--no-prepare"],
        ] {
            let text = written(words);
            let read = tidemark_plan::document::read(
                &text,
                &tidemark_plan::yaml::Environment::process(&tidemark_engines::registry()),
            );
            assert!(read.is_ok(), "{text}\n{:?}", read.unwrap_err());
            assert_eq!(read.unwrap().warnings, [], "{text}");
        }
    }

    #[test]
    fn arrivals_and_the_pattern_s_name_are_written() {
        let text = written(&["randread", "/data/a", "--rate", "500/s", "--arrivals", "poisson"]);
        assert!(text.contains("      name: randread\n      pattern: randread\n"), "{text}");
        assert!(text.contains("      arrivals: poisson\n"), "{text}");
        assert!(!written(&["read,write", "/data/a"]).contains("      name:"));
    }
}
