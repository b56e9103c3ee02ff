//! Takes the console's files, as `make console` leaves them, into the binary: compressed, each with its tag.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let source = variable("CARGO_MANIFEST_DIR").join("../../console");
    let (console, out) = (source.join("dist"), variable("OUT_DIR"));
    // A watched path that is not there would have this run at every build: the directory above tells when it has come.
    let watched = if console.is_dir() { &console } else { &source };
    println!("cargo:rerun-if-changed={}", watched.display());
    println!("cargo:rerun-if-changed=build.rs");
    let mut table = String::from("&[\n");
    let files = walkdir::WalkDir::new(&console).sort_by_file_name().into_iter().filter_map(Result::ok);
    for (index, file) in files.filter(|entry| entry.file_type().is_file()).enumerate() {
        let content = fs::read(file.path())?;
        let packed = out.join(format!("console-{index}.gz"));
        fs::write(&packed, compressed(&content)?)?;
        let digest = Sha256::digest(&content);
        let tag: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let address = address(file.path(), &console);
        let _ = writeln!(
            table,
            "    File {{ address: {address:?}, tag: \"\\\"{tag}\\\"\", gzip: include_bytes!({:?}) }},",
            packed.display().to_string()
        );
    }
    table.push(']');
    fs::write(out.join("console.rs"), table)
}

/// `/assets/index-B4x2.js`.
fn address(file: &Path, root: &Path) -> String {
    let parts = file.strip_prefix(root).unwrap_or(file).components();
    parts.map(|part| format!("/{}", part.as_os_str().to_string_lossy())).collect()
}

fn compressed(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}
