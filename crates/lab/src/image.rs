//! Images for pods, made of files of this machine without any engine: the archive of an OCI image layout, as
//! `tidemark lab image` and containerd's own `ctr images import` take it.
//!
//! The same files give the same archive to the byte: entries are sorted, have no times and belong to root, and the only layer
//! is not compressed. The form is that of the [OCI image specification](https://github.com/opencontainers/image-spec), 1.1.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use crate::command::Programs;
use crate::error::LabError;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Under which name containerd keeps an image that it imports.
const NAME: &str = "io.containerd.image.name";
/// How long it may take to find the libraries of a program.
const LIBRARIES: Duration = Duration::from_secs(30);

/// An image that is put together.
#[derive(Clone, Debug)]
pub struct Image {
    name: String,
    /// By their paths in the image, without the first `/`.
    entries: BTreeMap<PathBuf, Entry>,
    settings: Settings,
}

#[derive(Clone, Debug, Default)]
struct Settings {
    entrypoint: Vec<String>,
    user: Option<String>,
    environment: Vec<String>,
}

#[derive(Clone, Debug)]
struct Entry {
    mode: u32,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Directory,
    Link(PathBuf),
    Text(String),
    File(PathBuf),
}

impl Image {
    /// An image without files, under its full name, such as `example.org/tools:1`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), entries: BTreeMap::new(), settings: Settings::default() }
    }

    /// What a container runs unless its pod says otherwise: a program and its first arguments.
    #[must_use]
    pub fn entrypoint(mut self, words: &[&str]) -> Self {
        self.settings.entrypoint = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Who runs it, as `USER` or `USER:GROUP`, by name or number; root without it. Names must be in the image's `/etc/passwd`.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.settings.user = Some(user.to_owned());
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.settings.environment.push(format!("{name}={value}"));
        self
    }

    /// Adds an empty directory, with its mode.
    pub fn directory(&mut self, at: impl AsRef<Path>, mode: u32) {
        self.add(at.as_ref(), mode, Content::Directory);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, at: impl AsRef<Path>, to: impl Into<PathBuf>) {
        self.add(at.as_ref(), 0o777, Content::Link(to.into()));
    }

    /// Adds a file with a text.
    pub fn text(&mut self, at: impl AsRef<Path>, mode: u32, text: impl Into<String>) {
        self.add(at.as_ref(), mode, Content::Text(text.into()));
    }

    /// Adds a file of this machine, or a directory with all that it holds; modes and links stay as they are there. Sockets, pipes and
    /// devices are left out.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn tree(&mut self, from: &Path, at: impl AsRef<Path>) -> Result<(), LabError> {
        let at = at.as_ref();
        let failed = |source| LabError::File { action: "read", path: from.to_owned(), source };
        let data = from.symlink_metadata().map_err(failed)?;
        let mode = data.permissions().mode() & 0o7777;
        if data.is_symlink() {
            self.link(at, fs::read_link(from).map_err(failed)?);
        } else if data.is_file() {
            self.add(at, mode, Content::File(from.to_owned()));
        } else if data.is_dir() {
            self.directory(at, mode);
            for entry in fs::read_dir(from).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                self.tree(&from.join(&name), at.join(&name))?;
            }
        }
        Ok(())
    }

    /// Adds a program of this machine, and the libraries that it is linked with where its loader looks for them.
    ///
    /// # Errors
    /// A program that cannot be read, and libraries that this machine lacks.
    pub fn program(&mut self, from: &Path, at: impl AsRef<Path>) -> Result<(), LabError> {
        let real = from.canonicalize().map_err(LabError::file("find", from))?;
        for library in libraries(&real)? {
            let file = library.canonicalize().map_err(LabError::file("find", &library))?;
            self.tree(&file, &library)?;
        }
        self.tree(&real, at)
    }

    fn add(&mut self, at: &Path, mode: u32, content: Content) {
        let inside = at.components().filter(|part| matches!(part, Component::Normal(_)));
        let path: PathBuf = inside.collect();
        for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            let entry = Entry { mode: 0o755, content: Content::Directory };
            self.entries.entry(parent.to_owned()).or_insert(entry);
        }
        if !path.as_os_str().is_empty() {
            self.entries.insert(path, Entry { mode, content });
        }
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// Files that cannot be read or written.
    pub fn write(&self, archive: &Path) -> Result<(), LabError> {
        let file = File::create(archive).map_err(LabError::file("create", archive))?;
        self.pack(file).map_err(LabError::file("write", archive))
    }

    fn pack(&self, archive: impl Write) -> io::Result<()> {
        let mut layer = tempfile::tempfile()?;
        let packed = self.pack_layer(&layer)?;
        layer.rewind()?;
        let config = text(&json!({
            "architecture": architecture(),
            "os": "linux",
            "config": self.settings.json(),
            "rootfs": {"type": "layers", "diff_ids": [packed.digest]},
        }));
        let manifest = text(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": Blob::of(&config).json(CONFIG),
            "layers": [packed.json(LAYER)],
        }));
        let mut entry = Blob::of(&manifest).json(MANIFEST);
        entry["annotations"] = json!({NAME: self.name});
        let index = text(&json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}));

        let mut out = Builder::new(archive);
        append(&mut out, Path::new("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        append(&mut out, Path::new("index.json"), &index)?;
        append(&mut out, &Blob::of(&manifest).path(), &manifest)?;
        append(&mut out, &Blob::of(&config).path(), &config)?;
        out.append_data(&mut header(EntryType::Regular, 0o644, packed.bytes), packed.path(), layer)?;
        out.into_inner()?.flush()
    }

    fn pack_layer(&self, file: &File) -> io::Result<Blob> {
        let mut layer = Builder::new(Hashing { to: file, hash: Sha256::new(), bytes: 0 });
        for (path, Entry { mode, content }) in &self.entries {
            match content {
                Content::Directory => {
                    layer.append_data(&mut header(EntryType::Directory, *mode, 0), path, io::empty())?;
                }
                Content::Link(to) => {
                    layer.append_link(&mut header(EntryType::Symlink, *mode, 0), path, to)?;
                }
                Content::Text(text) => {
                    let mut header = header(EntryType::Regular, *mode, text.len() as u64);
                    layer.append_data(&mut header, path, text.as_bytes())?;
                }
                Content::File(from) => {
                    let failed = |error: io::Error| {
                        io::Error::new(error.kind(), format!("{}: {error}", from.display()))
                    };
                    let file = File::open(from).map_err(failed)?;
                    let bytes = file.metadata().map_err(failed)?.len();
                    // One that grows meanwhile must not spoil what comes after it.
                    layer.append_data(
                        &mut header(EntryType::Regular, *mode, bytes),
                        path,
                        file.take(bytes),
                    )?;
                }
            }
        }
        let Hashing { hash, bytes, .. } = layer.into_inner()?;
        Ok(Blob { digest: digest(hash), bytes })
    }
}

impl Settings {
    fn json(&self) -> Value {
        let mut config = json!({"Entrypoint": self.entrypoint, "Env": self.environment});
        if let Some(user) = &self.user {
            config["User"] = json!(user);
        }
        config
    }
}

/// Something that is known by its hash.
struct Blob {
    /// `sha256:` and the hash.
    digest: String,
    bytes: u64,
}

impl Blob {
    fn of(content: &[u8]) -> Self {
        Self { digest: digest(Sha256::new_with_prefix(content)), bytes: content.len() as u64 }
    }

    fn json(&self, kind: &str) -> Value {
        json!({"mediaType": kind, "digest": self.digest, "size": self.bytes})
    }

    fn path(&self) -> PathBuf {
        Path::new("blobs").join(self.digest.replace(':', "/"))
    }
}

/// Hashes what is written through it.
struct Hashing<'a> {
    to: &'a File,
    hash: Sha256,
    bytes: u64,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn digest(hash: Sha256) -> String {
    hash.finalize().iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// An entry of root's without a time.
fn header(kind: EntryType, mode: u32, bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(bytes);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn append(out: &mut Builder<impl Write>, path: &Path, content: &[u8]) -> io::Result<()> {
    out.append_data(&mut header(EntryType::Regular, 0o644, content.len() as u64), path, content)
}

/// This machine's processors, as Go names them.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The libraries of a program, and its loader, where that looks for them. None, if it is linked statically or is a script.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, LabError> {
    let running = Programs::installed().start_with("ldd", &[program], |command| {
        command.env("LC_ALL", "C");
    })?;
    let said = match running.finish(LIBRARIES) {
        Ok(said) => said,
        Err(LabError::CommandFailed { said, .. }) if said.contains("not a dynamic executable") => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    said.lines().filter_map(|line| library(line, program).transpose()).collect()
}

/// What a line of `ldd` names: `libc.so.6 => /lib/libc.so.6 (0x7f...)`, `/lib64/ld-linux-x86-64.so.2 (0x7f...)`, or what the kernel has.
fn library(line: &str, program: &Path) -> Result<Option<PathBuf>, LabError> {
    let (name, found) = line.trim().split_once(" => ").unwrap_or(("", line.trim()));
    if found.starts_with("not found") {
        let why = format!("{name}, which it is linked with, is not on this machine");
        let source = io::Error::new(io::ErrorKind::NotFound, why);
        return Err(LabError::File { action: "pack", path: program.to_owned(), source });
    }
    let path = found.split(" (").next().unwrap_or(found);
    Ok(path.starts_with('/').then(|| PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths and contents of an archive.
    fn unpack(archive: &[u8]) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().into_owned(), content)
        });
        entries.collect()
    }

    fn packed(image: &Image) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.pack(&mut bytes).unwrap();
        bytes
    }

    fn example(place: &Path) -> Image {
        let share = place.join("share");
        fs::create_dir_all(share.join("deep")).unwrap();
        fs::write(share.join("deep/data"), "rows").unwrap();
        fs::set_permissions(share.join("deep/data"), fs::Permissions::from_mode(0o640)).unwrap();
        let mut image = Image::new("example.org/tools:1").entrypoint(&["/bin/run", "it"]).user("70:70");
        image = image.variable("HOME", "/data");
        image.text("/bin/run", 0o755, "#!/bin/sh\n");
        image.link("/bin/again", "run");
        image.directory("/data", 0o1777);
        image.tree(&share, "/usr/share/tools").unwrap();
        image
    }

    #[test]
    fn an_image_has_what_it_is_made_of_and_says_how_it_runs() {
        let place = tempfile::tempdir().unwrap();
        let files = unpack(&packed(&example(place.path())));
        let read = |path: &str| serde_json::from_slice::<Value>(&files[Path::new(path)]).unwrap();
        let blob = |digest: &Value| {
            let path = format!("blobs/{}", digest.as_str().unwrap().replace(':', "/"));
            let content = &files[Path::new(&path)];
            assert_eq!(digest, &json!(Blob::of(content).digest), "it is known by its hash");
            (path.clone(), content.clone())
        };
        let index = read("index.json");
        assert_eq!(index["manifests"][0]["annotations"][NAME], "example.org/tools:1");
        let manifest = read(&blob(&index["manifests"][0]["digest"]).0);
        let config = read(&blob(&manifest["config"]["digest"]).0);
        let expected = json!({"Entrypoint": ["/bin/run", "it"], "Env": ["HOME=/data"], "User": "70:70"});
        assert_eq!(config["config"], expected);
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        let layer = blob(&manifest["layers"][0]["digest"]).1;
        assert_eq!(manifest["layers"][0]["size"], layer.len());

        let mut archive = tar::Archive::new(layer.as_slice());
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 0));
            (entry.path().unwrap().display().to_string(), header.mode().unwrap())
        });
        let entries: Vec<_> = entries.collect();
        let has =
            |path: &str, mode| assert!(entries.contains(&(path.to_owned(), mode)), "{path}: {entries:?}");
        has("bin/run", 0o755);
        has("data", 0o1777);
        has("usr/share/tools/deep/data", 0o640);
        has("usr", 0o755);
        let place = |path: &str| entries.iter().position(|(entry, _)| entry == path);
        assert!(place("usr") < place("usr/share") && place("usr/share") < place("usr/share/tools"));
    }

    #[test]
    fn the_same_files_give_the_same_archive() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = packed(&example(one.path()));
        assert_eq!(first, packed(&example(other.path())), "whatever their place and time");
        let mut changed = example(one.path());
        changed.text("/bin/run", 0o755, "#!/bin/bash\n");
        assert_ne!(first, packed(&changed));
    }

    #[test]
    fn a_program_comes_with_its_libraries() {
        let mut image = Image::new("example.org/shell:1");
        image.program(Path::new("/bin/sh"), "/bin/sh").unwrap();
        let has = |part: &str| image.entries.keys().any(|path| path.to_string_lossy().contains(part));
        assert!(has("libc.so") || has("ld-musl"), "{:?}", image.entries.keys());
        assert!(matches!(image.entries[Path::new("bin/sh")].content, Content::File(_)));
        // A script has none.
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("run"), "#!/bin/sh\n").unwrap();
        image.program(&place.path().join("run"), "/run").unwrap();

        let known = |line| library(line, Path::new("/bin/psql"));
        assert_eq!(known("\tlinux-vdso.so.1 (0x00007ffd)").unwrap(), None);
        assert_eq!(known("\t/lib64/ld.so (0x7f)").unwrap(), Some("/lib64/ld.so".into()));
        assert_eq!(known("\tlibpq.so.5 => /lib/libpq.so.5 (0x7f)").unwrap(), Some("/lib/libpq.so.5".into()));
        let error = known("\tlibpq.so.5 => not found").unwrap_err().to_string();
        assert!(error.contains("/bin/psql") && error.contains("libpq.so.5"), "{error}");
    }
}
