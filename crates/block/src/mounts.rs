//! What is mounted, as the kernel lists it, and the files that an overlay (overlayfs) shows under other names.

use crate::identity::Identity;
use rustix::fs::{makedev, statfs};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// `OVERLAYFS_SUPER_MAGIC` of `linux/magic.h`.
const OVERLAY: i64 = 0x794c_7630;

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The number of the file system's device, or one of the file system's own.
    pub(crate) device: u64,
    /// Where it is mounted.
    pub(crate) place: PathBuf,
    /// The file system's type.
    kind: String,
    /// What is mounted, as it was named when it was.
    named: PathBuf,
    /// The file system's options, comma-separated; an overlay has its layers there.
    options: String,
}

/// The mounts of a text of `/proc/self/mountinfo`.
pub(crate) fn read(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (fields, rest) = line.split_once(" - ")?;
        let (mut fields, mut rest) = (fields.split(' ').skip(2), rest.split(' '));
        Some(Mount {
            device: device_number(fields.next()?)?,
            place: unescaped(fields.nth(1)?),
            kind: rest.next()?.to_owned(),
            named: unescaped(rest.next()?),
            options: rest.next().unwrap_or("").to_owned(),
        })
    };
    text.lines().filter_map(mount).collect()
}

/// `8:1` as a device number.
pub(crate) fn device_number(text: &str) -> Option<u64> {
    let (high, low) = text.split_once(':')?;
    Some(makedev(high.parse().ok()?, low.parse().ok()?))
}

/// A path as the kernel's lists write it: blanks and backslashes are octal (`\040`).
pub(crate) fn unescaped(text: &str) -> PathBuf {
    let (mut bytes, mut path) = (text.as_bytes(), Vec::with_capacity(text.len()));
    while let Some((first, rest)) = bytes.split_first() {
        let octal = rest.get(..3).filter(|_| *first == b'\\').and_then(|digits| str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                bytes = &rest[3..];
            }
            None => {
                path.push(*first);
                bytes = rest;
            }
        }
    }
    OsString::from_vec(path).into()
}

impl Mount {
    /// The file or device that is mounted, if its name still leads there.
    pub(crate) fn source(&self) -> Option<Identity> {
        self.named.is_absolute().then(|| Identity::of(&self.named))?.filter(Identity::exists)
    }

    /// The directories of an overlay's layers, from the top; `None` where one of them is not named from the root.
    fn layers(&self) -> Option<Vec<PathBuf>> {
        let of =
            |name: &'static str| self.options.split(',').filter_map(move |option| option.strip_prefix(name));
        // Two colons stand before layers that hold only data.
        let lower =
            of("lowerdir=").flat_map(|all| all.split(':')).chain(of("lowerdir+=")).chain(of("datadir+="));
        let all = of("upperdir=").chain(lower).filter(|layer| !layer.is_empty()).map(unescaped);
        let all: Vec<PathBuf> = all.collect();
        (!all.is_empty() && all.iter().all(|layer| layer.is_absolute())).then_some(all)
    }
}

/// A file, and what it is below an overlay.
#[derive(Debug)]
pub(crate) struct Layered {
    /// What it is to those who open it by its name.
    identity: Identity,
    below: Below,
}

/// Where the data of a file are.
#[derive(Debug, PartialEq, Eq)]
enum Below {
    /// In itself: it is on no overlay.
    Itself,
    /// In this file of a layer.
    Layer(Identity),
    /// In a layer that cannot be reached from here.
    Unknown,
}

impl Layered {
    /// Of the file at a path, of which `identity` is known.
    pub(crate) fn new(identity: Identity, path: &Path, mounts: &[Mount]) -> Self {
        let is_overlaid = |path: &Path| statfs(path).is_ok_and(|found| found.f_type == OVERLAY);
        let below = if is_overlaid(path) { layer(path, mounts) } else { Below::Itself };
        Self { identity, below }
    }

    /// Whether both have the same data, or may have as far as is known: an overlay whose layers cannot be reached shows most files
    /// under the numbers that they have there.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let real = |one: &Self| match &one.below {
            Below::Layer(identity) => identity.clone(),
            Below::Itself | Below::Unknown => one.identity.clone(),
        };
        let (Identity::File { inode, .. }, Identity::File { inode: others, .. }) = (real(self), real(other))
        else {
            return self.identity == other.identity;
        };
        let is_unknown = self.below == Below::Unknown || other.below == Below::Unknown;
        self.identity == other.identity || real(self) == real(other) || (is_unknown && inode == others)
    }
}

/// The file of a layer that an overlay shows at a path.
fn layer(path: &Path, mounts: &[Mount]) -> Below {
    let Ok(whole) = path.canonicalize() else { return Below::Unknown };
    // The last of those that are mounted at the same place is on top.
    let covering = mounts.iter().filter(|mount| whole.starts_with(&mount.place));
    let mount = covering.max_by_key(|mount| mount.place.as_os_str().as_bytes().len());
    let Some(mount) = mount.filter(|mount| mount.kind == "overlay") else { return Below::Unknown };
    let (Some(layers), Ok(rest)) = (mount.layers(), whole.strip_prefix(&mount.place)) else {
        return Below::Unknown;
    };
    let found = layers.iter().filter_map(|layer| Identity::of(&layer.join(rest))).find(Identity::exists);
    found.map_or(Below::Unknown, Below::Layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_blanks_and_options() {
        let text = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                    43 27 0:39 / /e\\040mnt ro - erofs /an\\040image\\134x ro,acl\n\
                    47 27 0:40 / /m rw - overlay overlay rw,lowerdir=/l:/k::/d,upperdir=/u\\040u,workdir=/w\n\
                    48 27 0:41 / /n rw - overlay overlay rw,lowerdir=l,upperdir=/u\nodd\n";
        let all = read(text);
        let places: Vec<_> = all.iter().map(|mount| mount.place.to_str().unwrap()).collect();
        assert_eq!(places, ["/", "/e mnt", "/m", "/n"]);
        assert_eq!((all[0].device, all[1].device), (makedev(8, 1), makedev(0, 39)));
        assert_eq!(all[1].named, Path::new("/an image\\x"));
        assert_eq!(all[2].layers(), Some(["/u u", "/l", "/k", "/d"].map(PathBuf::from).to_vec()));
        assert_eq!(all[3].layers(), None, "a layer that nobody can find from here");
        assert_eq!(device_number("x"), None);
        for (text, path) in [("a\\04", "a\\04"), ("\\", "\\"), ("\\999", "\\999"), ("\\040\\011", " \t")] {
            assert_eq!(unescaped(text), Path::new(path));
        }
    }

    #[test]
    fn a_file_whose_layer_is_unknown_may_be_any_of_its_number() {
        let of = |device, inode, below| Layered { identity: Identity::File { device, inode }, below };
        let real = of(1, 7, Below::Itself);
        assert!(real.is_same(&of(1, 7, Below::Itself)) && !real.is_same(&of(2, 7, Below::Itself)));
        assert!(real.is_same(&of(2, 7, Below::Unknown)) && of(2, 7, Below::Unknown).is_same(&real));
        assert!(!real.is_same(&of(2, 8, Below::Unknown)));
        let layer = |inode| Below::Layer(Identity::File { device: 1, inode });
        assert!(real.is_same(&of(2, 8, layer(7))) && !real.is_same(&of(2, 7, layer(8))));
        let device = Layered { identity: Identity::Device(7), below: Below::Itself };
        assert!(!device.is_same(&real) && !real.is_same(&device));
    }
}
