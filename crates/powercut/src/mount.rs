//! The file system as the kernel sees it, through FUSE.

use crate::journal::{Access, Change, Made};
use crate::volume::{DIRTY_BYTES, Kind, Volume};
use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    SessionACL, TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// How long the kernel may believe what it was told: nobody else changes the file system.
const KNOWN: Duration = Duration::from_secs(3600);

/// The bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o7777;

/// A mounted file system. To drop it is to cut its power: what was not synced is gone.
#[derive(Debug)]
pub struct Mounted {
    volume: Arc<Mutex<Volume>>,
    session: Option<BackgroundSession>,
}

impl Mounted {
    /// Mounts the file system of a store, which is made if it is not there, on a directory. Where root mounts it, every
    /// user may use it, as permissions allow.
    ///
    /// # Errors
    /// A store that cannot be read, and a directory on which this user cannot mount.
    pub fn new(store: &Path, directory: &Path) -> io::Result<Self> {
        let volume = Arc::new(Mutex::new(Volume::open(store, DIRTY_BYTES)?));
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("tidemark-powercut".into()),
            MountOption::DefaultPermissions,
            MountOption::NoAtime,
            MountOption::NoDev,
            MountOption::NoSuid,
        ];
        if rustix::process::geteuid().is_root() {
            config.acl = SessionACL::All;
        }
        let served =
            Served { volume: Arc::clone(&volume), listings: Mutex::default(), next: AtomicU64::new(1) };
        let session = fuser::spawn_mount(served, directory, &config)?;
        Ok(Self { volume, session: Some(session) })
    }

    /// Whether the kernel has unmounted it.
    pub fn has_ended(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.guard.is_finished())
    }

    /// Unmounts it in an orderly way: nothing is lost.
    ///
    /// # Errors
    /// A store that cannot be written to.
    pub fn unmount(mut self) -> io::Result<()> {
        // This does not wait for the kernel to let go of it: another mount namespace, as of a container, may have a copy of
        // the mount for as long as it likes.
        drop(self.session.take());
        lock(&self.volume).sync_all()
    }
}

fn lock(volume: &Mutex<Volume>) -> MutexGuard<'_, Volume> {
    volume.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One listing of a directory: what it held when it was opened.
type Listing = Vec<(u64, FileType, OsString)>;

/// What answers the kernel.
struct Served {
    volume: Arc<Mutex<Volume>>,
    listings: Mutex<HashMap<u64, Listing>>,
    next: AtomicU64,
}

fn code(errno: rustix::io::Errno) -> Errno {
    Errno::from_i32(errno.raw_os_error())
}

/// What is wrong with the store is an I/O error to the kernel, unless the system has said what.
fn failed(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_i32)
}

fn type_of(kind: &Kind) -> FileType {
    match kind {
        Kind::File(_) => FileType::RegularFile,
        Kind::Directory { .. } => FileType::Directory,
        Kind::Link(_) => FileType::Symlink,
    }
}

/// Whether a write through a descriptor with these flags is to be durable when it returns.
fn is_synchronous(flags: OpenFlags) -> bool {
    // O_SYNC has the bit of O_DSYNC, too.
    OFlags::from_bits_retain(flags.0 as u32).intersects(OFlags::DSYNC)
}

impl Served {
    fn volume(&self) -> MutexGuard<'_, Volume> {
        lock(&self.volume)
    }

    fn listings(&self) -> MutexGuard<'_, HashMap<u64, Listing>> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attributes(volume: &Volume, number: u64) -> Result<FileAttr, Errno> {
        let node = volume.node(number).map_err(code)?;
        let kind = type_of(&node.kind);
        Ok(FileAttr {
            ino: INodeNo(number),
            size: node.size(),
            blocks: node.size().div_ceil(512),
            atime: node.modified,
            mtime: node.modified,
            ctime: node.modified,
            crtime: node.modified,
            kind,
            perm: (node.access.mode & PERMISSIONS) as u16,
            nlink: if kind == FileType::Directory { 2 } else { node.links },
            uid: node.access.uid,
            gid: node.access.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// A new node that the kernel has from now on.
    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        made: Made,
        mode: u32,
    ) -> Result<FileAttr, Errno> {
        let mut volume = self.volume();
        let access = Access { mode: mode & PERMISSIONS, uid: request.uid(), gid: request.gid() };
        let number = volume.make(parent.0, name.as_bytes(), made, access).map_err(code)?;
        volume.hold(number);
        Self::attributes(&volume, number)
    }

    fn empty(reply: ReplyEmpty, done: Result<(), Errno>) {
        match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn entry(reply: ReplyEntry, found: Result<FileAttr, Errno>) {
        match found {
            Ok(attributes) => reply.entry(&KNOWN, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn change(&self, change: Change) -> Result<(), Errno> {
        self.volume().change(change).map_err(code)
    }

    fn allocate(&self, number: u64, offset: u64, length: u64, mode: i32) -> io::Result<()> {
        const KEEP: FallocateFlags = FallocateFlags::KEEP_SIZE;
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        let end = offset.checked_add(length).ok_or(rustix::io::Errno::FBIG)?;
        let mut volume = self.volume();
        let zeros = FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        if !KEEP.union(zeros).contains(mode) {
            return Err(rustix::io::Errno::OPNOTSUPP.into());
        }
        if !mode.contains(KEEP) && end > volume.node(number)?.size() {
            volume.resize(number, end)?;
        }
        match mode.intersects(zeros) {
            true => volume.zero(number, offset, length),
            // Space that was reserved is not kept apart.
            false => Ok(()),
        }
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut volume = self.volume();
        let found = volume.look_up(parent.0, name.as_bytes()).map_err(code);
        let found = found.and_then(|number| {
            volume.hold(number);
            Self::attributes(&volume, number)
        });
        Self::entry(reply, found);
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        self.volume().forget(number.0, times);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match Self::attributes(&self.volume(), number.0) {
            Ok(attributes) => reply.attr(&KNOWN, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut volume = self.volume();
        let mut set = || {
            let node = volume.node(number.0).map_err(code)?;
            let access = Access {
                mode: mode.map_or(node.access.mode, |mode| mode & PERMISSIONS),
                uid: uid.unwrap_or(node.access.uid),
                gid: gid.unwrap_or(node.access.gid),
            };
            if access != node.access {
                volume.change(Change::Access { node: number.0, access }).map_err(code)?;
            }
            if let Some(size) = size {
                volume.resize(number.0, size).map_err(|error| failed(&error))?;
            }
            if let Some(time) = modified {
                let time = match time {
                    TimeOrNow::SpecificTime(time) => time,
                    TimeOrNow::Now => SystemTime::now(),
                };
                volume.set_modified(number.0, time).map_err(code)?;
            }
            Self::attributes(&volume, number.0)
        };
        match set() {
            Ok(attributes) => reply.attr(&KNOWN, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.volume().node(number.0).map(|node| &node.kind) {
            Ok(Kind::Link(target)) => reply.data(target),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(code(error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let is_regular = rustix::fs::FileType::from_raw_mode(mode) == rustix::fs::FileType::RegularFile;
        match is_regular {
            true => Self::entry(reply, self.make(request, parent, name, Made::File, mode)),
            false => reply.error(Errno::EPERM),
        }
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        Self::entry(reply, self.make(request, parent, name, Made::Directory, mode));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let made = Made::Link(target.as_os_str().as_bytes().to_vec());
        Self::entry(reply, self.make(request, parent, name, made, 0o777));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        Self::empty(reply, self.change(Change::Remove { parent: parent.0, name: name.as_bytes().to_vec() }));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        Self::empty(reply, self.change(Change::Remove { parent: parent.0, name: name.as_bytes().to_vec() }));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mut volume = self.volume();
        let done = if flags == RenameFlags::RENAME_NOREPLACE
            && volume.look_up(new_parent.0, new_name.as_bytes()).is_ok()
        {
            Err(Errno::EEXIST)
        } else if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            Err(Errno::EINVAL)
        } else {
            let from = (parent.0, name.as_bytes().to_vec());
            let to = (new_parent.0, new_name.as_bytes().to_vec());
            volume.change(Change::Rename { from, to }).map_err(code)
        };
        Self::empty(reply, done);
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut volume = self.volume();
        let change = Change::Link { node: number.0, parent: parent.0, name: name.as_bytes().to_vec() };
        let linked = volume.change(change).map_err(code).and_then(|()| {
            volume.hold(number.0);
            Self::attributes(&volume, number.0)
        });
        Self::entry(reply, linked);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // The kernel's pages stay right: nobody else changes the files.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        match self.make(request, parent, name, Made::File, mode) {
            Ok(made) => {
                reply.created(&KNOWN, &made, Generation(0), FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.volume().read(number.0, offset, size.into()) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(failed(&error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut volume = self.volume();
        let written = volume.write(number.0, offset, bytes).and_then(|()| match is_synchronous(flags) {
            true => volume.sync(number.0),
            false => Ok(()),
        });
        match written {
            Ok(()) => reply.written(bytes.len() as u32),
            Err(error) => reply.error(failed(&error)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // close(2) makes nothing durable.
        reply.ok();
    }

    fn fsync(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        Self::empty(reply, self.volume().sync(number.0).map_err(|error| failed(&error)));
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let volume = self.volume();
        let (entries, parent) = match volume.entries(number.0) {
            Ok(found) => found,
            Err(error) => return reply.error(code(error)),
        };
        let mut listing = vec![
            (number.0, FileType::Directory, OsString::from(".")),
            (parent, FileType::Directory, OsString::from("..")),
        ];
        for (name, number) in entries {
            let kind = volume.node(*number).map_or(FileType::RegularFile, |node| type_of(&node.kind));
            listing.push((*number, kind, OsString::from_vec(name.clone())));
        }
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        self.listings().insert(handle, listing);
        reply.opened(FileHandle(handle), FopenFlags::empty());
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listings = self.listings();
        let Some(listing) = listings.get(&handle.0) else { return reply.error(Errno::EBADF) };
        let rest = listing.iter().enumerate().skip(usize::try_from(offset).unwrap_or(usize::MAX));
        for (index, (number, kind, name)) in rest {
            if reply.add(INodeNo(*number), index as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.listings().remove(&handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        Self::empty(reply, self.volume().sync(number.0).map_err(|error| failed(&error)));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match rustix::fs::statvfs(self.volume().store()) {
            Ok(found) => reply.statfs(
                found.f_blocks,
                found.f_bfree,
                found.f_bavail,
                found.f_files,
                found.f_ffree,
                found.f_bsize as u32,
                255,
                found.f_frsize as u32,
            ),
            Err(error) => reply.error(code(error)),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        Self::empty(reply, self.allocate(number.0, offset, length, mode).map_err(|error| failed(&error)));
    }

    fn lseek(&self, _: &Request, _: INodeNo, _: FileHandle, _: i64, _: i32, reply: ReplyLseek) {
        // The kernel then takes the whole file for data.
        reply.error(Errno::ENOSYS);
    }
}
