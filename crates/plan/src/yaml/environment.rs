//! What a document refers to outside itself: environment variables, files that hold secrets, other documents, sizes of devices.
//!
//! Nothing else of the machine is touched while a document is read, whatever its format.

use crate::registry::Registry;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use tidemark_keys::Outside;
use tidemark_keys::diagnostic::Diagnostic;

/// A file with a secret is not larger than this; bytes.
const LARGEST_SECRET: u64 = 64 << 10;

/// A document that another one refers to is not larger than this; bytes.
const LARGEST_DOCUMENT: u64 = 8 << 20;

/// Where environment variables, secret files, documents and devices are looked up. What comes over a network is read with
/// one that refuses; its errors are shown to the document's author.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The engines and formats that the document may use.
    pub registry: &'a Registry,
    /// The value of an environment variable, if it is set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The content of a file.
    pub file: &'a dyn Fn(&Path) -> std::io::Result<String>,
    /// The addresses to which the value of a variable, or the content of a file, may be sent; `None`: to any.
    pub bound: &'a dyn Fn(&str) -> Option<Vec<String>>,
    /// The text of a document that another one refers to.
    pub document: &'a dyn Fn(&Path) -> std::io::Result<String>,
    /// The size of a block device, bytes.
    pub device_size: &'a dyn Fn(&Path) -> std::io::Result<u64>,
    /// Whether somebody still waits for the document: readers ask after each part, and end with [`given_up`] when nobody does.
    pub waited_for: &'a dyn Fn() -> bool,
}

/// What a reader says that ended because nobody waited for the document any more.
pub fn given_up() -> Diagnostic {
    Diagnostic::error(0..0, "reading the document took too long", "simplify it")
}

impl<'a> Environment<'a> {
    /// This process's environment and file system: the one place that reads them.
    pub fn process(registry: &'a Registry) -> Self {
        Self {
            registry,
            variable: &|name| std::env::var(name).ok(),
            file: &read_file,
            bound: &|_| None,
            document: &read_document,
            device_size: &device_size,
            waited_for: &|| true,
        }
    }
}

fn device_size(path: &Path) -> std::io::Result<u64> {
    // Asked before it is opened: opening a pipe waits for its other end.
    if !std::fs::metadata(path)?.file_type().is_block_device() {
        return Err(std::io::Error::other("it is not a block device"));
    }
    std::fs::File::open(path)?.seek(SeekFrom::End(0))
}

fn read_document(path: &Path) -> std::io::Result<String> {
    // Asked before it is opened, as above.
    let found = std::fs::metadata(path)?;
    match found.is_file() && found.len() <= LARGEST_DOCUMENT {
        true => std::fs::read_to_string(path),
        false => Err(std::io::Error::other("it is not a file of at most 8 MiB")),
    }
}

fn read_file(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut content = String::new();
    std::fs::File::open(path)?.take(LARGEST_SECRET).read_to_string(&mut content)?;
    Ok(content)
}

impl<'a> Environment<'a> {
    /// The part of it that single values refer to.
    pub fn outside(&self) -> Outside<'a> {
        Outside { variable: self.variable, file: self.file, bound: self.bound }
    }
}
