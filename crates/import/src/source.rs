//! A file's text: bounded, and decompressed if need be.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// More than this is not read, compressed or not, bytes: results are smaller, logs of requests should be.
const LARGEST: u64 = 128 << 20;

/// The first bytes of a Zstandard frame (RFC 8878, 3.1.1).
const ZSTANDARD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The largest window of a Zstandard frame, bytes: twice that of all levels but `--ultra` and `--long`. It is memory besides the text.
const LARGEST_WINDOW: u64 = 16 << 20;

/// What some programs write before a text in UTF-8.
const MARK: char = '\u{feff}';

/// A file that was read.
pub(crate) struct Source {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What is in it.
    pub(crate) text: String,
    /// When it was last written, nanoseconds since 1970 UTC; 0 if that is not known.
    pub(crate) modified_unix_ns: u64,
}

impl Source {
    /// Reads the file that the user named, wherever it is.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        Self::of(path, File::open(path))
    }

    /// Reads a file that was found beside another: whoever made the archive may have made it a link to a file of the user's.
    pub(crate) fn found(path: &Path) -> Result<Self, String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::LOOP) => return Err("is a symbolic link: an archive holds its files itself".into()),
            Err(error) => return Err(format!("cannot be read: {error}")),
        };
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Self::of(path, Ok(file)),
            _ => Err("is not a regular file".into()),
        }
    }

    fn of(path: &Path, file: std::io::Result<File>) -> Result<Self, String> {
        let file = file.map_err(|error| format!("cannot be read: {error}"))?;
        let modified = file.metadata().ok().and_then(|metadata| metadata.modified().ok());
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_unix_ns = since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0);
        Self::of_bytes(path, file, modified_unix_ns)
    }

    /// A file with these bytes.
    pub(crate) fn of_bytes(path: &Path, mut bytes: impl Read, modified_unix_ns: u64) -> Result<Self, String> {
        let unreadable = |trouble: Trouble| trouble.sentence("cannot be read");
        let mut begin = Vec::new();
        more(&mut begin, bytes.by_ref().take(ZSTANDARD.len() as u64)).map_err(unreadable)?;
        let bytes = match begin == ZSTANDARD {
            true => decompressed(begin.as_slice().chain(bytes))?,
            false => {
                more(&mut begin, bytes).map_err(unreadable)?;
                begin
            }
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!("not UTF-8 text (byte {at}); convert it, or decompress it first")
        })?;
        let mut text = text;
        if text.starts_with(MARK) {
            text.replace_range(..MARK.len_utf8(), "");
        }
        Ok(Self { path: path.into(), text, modified_unix_ns })
    }

    /// Its name without the endings that say how it is written.
    pub(crate) fn stem(&self) -> String {
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut stem = name.as_str();
        for ending in [".zst", ".csv", ".tsv", ".json", ".txt"] {
            stem = stem.strip_suffix(ending).filter(|rest| !rest.is_empty()).unwrap_or(stem);
        }
        stem.to_owned()
    }
}

/// Where JSON begins in what a tool has printed: at the first brace of a line with nothing but words before it. Tables have
/// cells there.
pub(crate) fn begin_of_json(text: &str) -> Option<usize> {
    let mut at = 0;
    text.split_inclusive('\n').find_map(|line| {
        let begin = line.find('{').filter(|brace| !line[..*brace].contains([',', ';', '\t', '"']));
        let found = begin.map(|brace| at + brace);
        at += line.len();
        found
    })
}

/// Why bytes could not be had.
enum Trouble {
    TooMany,
    System(std::io::Error),
}

impl Trouble {
    fn sentence(&self, what: &str) -> String {
        match self {
            Trouble::TooMany => {
                format!("larger than {} MiB; import a part or an analysis of it", LARGEST >> 20)
            }
            Trouble::System(error) => format!("{what}: {error}"),
        }
    }
}

/// Adds what a reader gives.
fn more(bytes: &mut Vec<u8>, reader: impl Read) -> Result<(), Trouble> {
    let left = LARGEST - bytes.len() as u64;
    reader.take(left + 1).read_to_end(bytes).map_err(Trouble::System)?;
    if bytes.len() as u64 > LARGEST { Err(Trouble::TooMany) } else { Ok(()) }
}

/// All frames of a Zstandard file, which is never in memory itself.
fn decompressed(compressed: impl Read) -> Result<Vec<u8>, String> {
    const BROKEN: &str =
        "cannot be decompressed; check it with `zstd -t`, or decompress it with `zstd -d` first";
    let broken = |trouble: Trouble| trouble.sentence(BROKEN);
    let mut compressed = BufReader::new(compressed.take(LARGEST + 1));
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(LARGEST_WINDOW);
    let mut all = Vec::new();
    while !compressed.fill_buf().map_err(|error| broken(Trouble::System(error)))?.is_empty() {
        let frame = StreamingDecoder::new_with_decoder(&mut compressed, &mut decoder).map_err(|error| {
            match error {
                FrameDecoderError::WindowSizeTooBig { .. } => format!(
                    "compressed with a window of more than {} MiB; decompress it with `zstd -d --long=31` first",
                    LARGEST_WINDOW >> 20
                ),
                error => format!("{BROKEN}: {error}"),
            }
        })?;
        more(&mut all, frame).map_err(broken)?;
    }
    match compressed.get_ref().limit() {
        0 => Err(broken(Trouble::TooMany)),
        _ => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf 'hello\n' | zstd -19`, twice, one behind the other.
    const FRAME: [u8; 19] = [
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0x31, 0x00, 0x00, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x0a, 0x53, 0x88,
        0xbd, 0x91,
    ];

    #[test]
    fn frames_are_decompressed_one_after_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("two.csv.zst");
        std::fs::write(&path, [FRAME, FRAME].concat()).unwrap();
        let source = Source::read(&path).unwrap();
        assert_eq!((source.text.as_str(), source.stem().as_str()), ("hello\nhello\n", "two"));
        assert!(source.modified_unix_ns > 0);
    }

    #[test]
    fn what_was_found_is_read_only_where_it_is_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), "text").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        assert_eq!(Source::found(&path("file")).unwrap().text, "text");
        assert_eq!(Source::read(&path("link")).unwrap().text, "text", "the user named it");
        assert!(Source::found(&path("link")).err().unwrap().contains("symbolic link"));
        assert!(Source::found(directory.path()).err().unwrap().contains("not a regular file"));
    }

    #[test]
    fn what_is_no_text_is_refused_with_a_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let refusal = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Source::read(&path).err().unwrap()
        };
        assert!(refusal(&[b'a', 0xff]).contains("byte 1"));
        assert!(refusal(&FRAME[..12]).contains("zstd -d"));
        assert!(refusal(&ZSTANDARD).contains("zstd -d"));
        assert!(Source::read(&directory.path().join("none")).err().unwrap().contains("cannot be read"));
    }

    #[test]
    fn endless_input_is_refused() {
        assert!(matches!(more(&mut Vec::new(), std::io::repeat(b'a')), Err(Trouble::TooMany)));
    }

    /// A frame of one raw block, with the window of `descriptor` (RFC 8878, 3.1.1.1.2).
    fn raw(descriptor: u8) -> [u8; 11] {
        [0x28, 0xb5, 0x2f, 0xfd, 0x00, descriptor, 0x11, 0x00, 0x00, b'h', b'i']
    }

    #[test]
    fn windows_that_take_more_memory_than_texts_are_refused() {
        let read = |frame: &[u8]| Source::of_bytes(Path::new("x.zst"), frame, 0).map(|source| source.text);
        let (at_the_limit, above) = (raw(14 << 3), raw(14 << 3 | 1));
        assert_eq!(read(&at_the_limit).unwrap(), "hi");
        let refusal = read(&above).unwrap_err();
        assert!(refusal.contains("16 MiB") && refusal.contains("--long"), "{refusal}");
        // The second frame counts, too.
        assert!(read(&[at_the_limit, above].concat()).unwrap_err().contains("16 MiB"));
        assert_eq!(read(&[at_the_limit, at_the_limit].concat()).unwrap(), "hihi");
    }
}
