//! What the bytes of an object are, and whether bytes read are those written.
//!
//! The content of an object is a function of the data seed, the dials, the names, the object's numbers,
//! its size and the version (the time its write began). It is laid out in blocks of 4 KiB. Each block
//! opens with a stamp of 64 bytes that holds all of that and the block's number; the rest is cut from a
//! pool of pseudo-random bytes (`pool`), starting at a place that depends on the object. So a
//! write is a list of slices, with nothing copied or generated but the stamps, and verification is
//! comparison with the pool, at the speed of memory.
//!
//! - The bytes after a stamp do not depend on the version: a range that holds no stamp can be verified
//!   all the same. Stamps distinguish overwritten and old content, block by block.
//! - No two blocks are alike, so storage that deduplicates blocks of 4 KiB or more finds nothing (unless
//!   requested by `duplicate`: then that share of blocks, bare of stamps, is drawn from a set of
//!   64). Storage that looks for shorter or shifted repetition would find the pool again.
//! - The stamps are mostly zeroes to a compressor: about 1 % of "incompressible" content can be removed.
//!   A compressor whose window exceeds the pool (4 MiB) finds the pool again in larger objects.
//! - Objects of less than 64 bytes have no room for a stamp: their bytes are pseudo-random, of object and
//!   size, and stale content is not noticed in them. Those of less than 4 bytes say nothing.
//! - A range that holds no stamp shows wrong content, but not stale or misplaced content by name.
//! - Content that differs is wrong if it should have been Tidemark's: this run wrote the object, or a part of what
//!   was read is recognisably Tidemark's. Anything else is of unknown origin, and no fault of the storage.
//! - A copy that the server made (`-copy`) has the content of its source.

mod check;
mod pool;
mod stamp;
mod versions;

pub use check::{Check, Mismatch};

use crate::job::{Content, Form, Naming};
use md5::{Digest as _, Md5};
use pool::{Block, Pool};
use stamp::{Label, STAMP};
use std::io::IoSlice;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};
use tidemark_measure::rng::mix;
use tidemark_plan::policy::Access;
use versions::{End, Place, Versions};

/// Bytes of a block.
const BLOCK: usize = 4096;

/// Blocks of one [`Slices`]: 128 KiB, enough for the cost of a system call to vanish.
const WINDOW: usize = 32;

/// Most slices: two for each block, the caller's head, and a tail.
const SLICES: usize = 2 * WINDOW + 2;

/// Bytes of COSBench's `hashCheck` guard.
pub const GUARD: usize = 40;

static ZEROES: [u8; WINDOW * BLOCK] = [0; WINDOW * BLOCK];

/// What the works of a run share: the data seed, the pools made from it, and which versions were written.
pub struct DataSet {
    seed: u64,
    writer: u32,
    origin: Instant,
    origin_ns: u64,
    versions: Versions,
    pools: Mutex<Vec<([u64; 2], Arc<Pool>)>>,
    /// The sets of the run so far, each with the hash of its names.
    sets: Mutex<Vec<(u64, u64)>>,
    /// The files of this machine that may be uploaded and written.
    access: Access,
}

impl DataSet {
    /// A data set. `seed` must be the same in every run that reads data of another; `writer` distinguishes
    /// processes apart that write at the same time (24 bits are kept), and `followed` is how many keys
    /// stale content is looked for in (24 bytes each, at most; 0: none, which is right when no read verifies).
    pub fn new(seed: u64, writer: u32, followed: usize, access: Access) -> Arc<Self> {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Arc::new(Self {
            seed,
            writer: stamp::writer_number(writer),
            origin: Instant::now(),
            origin_ns: since_1970.as_nanos() as u64,
            versions: Versions::new(followed),
            pools: Mutex::default(),
            sets: Mutex::default(),
            access,
        })
    }

    /// The files of this machine that may be uploaded and written.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// The content of the objects that an action writes or reads.
    pub fn plan(self: &Arc<Self>, content: &Content, naming: &Naming) -> ContentPlan {
        let (compressible, duplicate) = match content.form {
            Form::Seeded { compressible, duplicate } => (compressible, duplicate),
            Form::Zero | Form::Hashed => (0.0, 0.0),
        };
        let dials = [compressible.to_bits(), duplicate.to_bits()];
        let shape = match content.form {
            Form::Seeded { .. } => Shape::Seeded(self.pool(dials)),
            Form::Hashed => Shape::Hashed(self.pool(dials)),
            Form::Zero => Shape::Zero,
        };
        let source = naming.object_suffix.trim_end_matches(COPY);
        let named = named(naming, source);
        let set = |named| mix(self.seed, &[dials[0], dials[1], named]);
        let plain = Twin { set: set(named), tracked: set(self::named(naming, &naming.object_suffix)) };
        let own = if content.form == Form::Hashed { plain.hashed() } else { plain };
        let kin = {
            let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
            if !sets.contains(&(own.set, named)) {
                sets.push((own.set, named));
            }
            sets.as_slice().into()
        };
        ContentPlan { data: Arc::clone(self), shape, plain, own, named, kin, verify: content.verify }
    }

    /// The pool for these dials, made if there is none yet.
    fn pool(&self, dials: [u64; 2]) -> Arc<Pool> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pool)) = pools.iter().find(|(made, _)| *made == dials) {
            return Arc::clone(pool);
        }
        let [compressible, duplicate] = dials.map(f64::from_bits);
        let pool = Arc::new(Pool::new(mix(self.seed, &dials), compressible, duplicate));
        pools.push((dials, Arc::clone(&pool)));
        pool
    }

    /// Nanoseconds since 1970 by a clock that is never set back.
    fn now_ns(&self) -> u64 {
        self.origin_ns.saturating_add(self.origin.elapsed().as_nanos() as u64)
    }
}

/// What a copy's name ends in.
pub(crate) const COPY: &str = "-copy";

/// A hash of how objects are called.
fn named(naming: &Naming, object_suffix: &str) -> u64 {
    let container = naming.container.as_ref().unwrap_or(&naming.container_prefix);
    let names = [container, &naming.container_suffix, &naming.object_prefix, object_suffix];
    names.iter().fold(0, |hash, name| {
        let bytes = name.bytes().fold(name.len() as u64, |hash, byte| mix(hash, &[u64::from(byte)]));
        mix(hash, &[bytes])
    })
}

/// The objects of one form, of all that are called alike.
#[derive(Clone, Copy)]
struct Twin {
    /// What their content comes from. Copies have that of their sources.
    set: u64,
    /// What their writes are followed by: a copy is an object of its own.
    tracked: u64,
}

impl Twin {
    /// The same objects with hashes.
    fn hashed(self) -> Self {
        let hashed = |set| mix(set, &[u64::from_le_bytes(*b"hashed\0\0")]);
        Self { set: hashed(self.set), tracked: hashed(self.tracked) }
    }

    /// One number for an object; it decides where in the pool its content begins.
    #[inline]
    fn hash(self, key: Key) -> u64 {
        mix(self.set, &[key.space, key.item])
    }

    /// One number for an object, by which its writes are followed.
    #[inline]
    fn tracked(self, key: Key) -> u64 {
        mix(self.tracked, &[key.space, key.item])
    }
}

/// Whose content carries a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kin {
    /// It is of these objects.
    Own,
    /// Of objects that are called so, in another form.
    OtherForm,
    /// Of this run's objects that are called otherwise.
    OtherName,
    /// Of another seed, or of names or forms that this run has not used yet.
    Unknown,
}

/// Which object: the numbers of its container and of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Container number.
    pub space: u64,
    /// Object number.
    pub item: u64,
}

/// The content of an action's objects. Nothing here allocates.
pub struct ContentPlan {
    data: Arc<DataSet>,
    shape: Shape,
    /// The objects without hashes.
    plain: Twin,
    /// The objects in the form that is written.
    own: Twin,
    named: u64,
    /// The sets that the run had when this plan was made.
    kin: Box<[(u64, u64)]>,
    verify: bool,
}

/// What the bytes are.
enum Shape {
    Seeded(Arc<Pool>),
    Hashed(Arc<Pool>),
    Zero,
}

/// A write (or deletion) of one object, from its beginning to its end. To drop it leaves its fate open:
/// it may take effect at any time.
#[derive(Clone, Copy, Debug)]
#[must_use = "tell the plan how the write ended"]
pub struct Write {
    place: Place,
    version: u64,
    end: End,
}

impl ContentPlan {
    /// Whether reads are to be verified.
    pub fn verifies(&self) -> bool {
        self.verify
    }

    /// Begins a write of an object: once for an operation, before its first attempt is sent.
    pub fn write(&self, key: Key) -> Write {
        self.begin(key, End::Wrote)
    }

    /// Begins the deletion of an object, likewise.
    pub fn delete(&self, key: Key) -> Write {
        self.begin(key, End::Deleted)
    }

    fn begin(&self, key: Key, end: End) -> Write {
        // In this order: a write that begins after another has ended must have a later version.
        let place = self.data.versions.begin(self.own.tracked(key));
        Write { place, version: self.data.now_ns(), end }
    }

    /// A version for content that goes elsewhere than into the storage.
    pub fn untracked(&self) -> Write {
        Write { place: None, version: self.data.now_ns(), end: End::Wrote }
    }

    /// The server acknowledged the write.
    pub fn acknowledge(&self, write: Write) {
        self.data.versions.end(write.place, write.version, write.end);
    }

    /// The write certainly had no effect: it was not sent, or the server refused it (a status of 4xx).
    pub fn withdraw(&self, write: Write) {
        self.data.versions.end(write.place, write.version, End::Nothing);
    }

    /// The bytes of an object of `size` bytes. With form `Hashed` this computes an MD5 over them.
    pub fn payload(&self, key: Key, write: Write, size: u64) -> Payload<'_> {
        let label = Label {
            set: self.own.set,
            space: key.space,
            item: key.item,
            version: write.version,
            size,
            writer: self.data.writer,
        };
        let pool = match &self.shape {
            Shape::Seeded(pool) | Shape::Hashed(pool) => Some(pool.as_ref()),
            Shape::Zero => None,
        };
        let base = label.base();
        let mut payload = Payload {
            pool,
            object: self.own.hash(key),
            label,
            base,
            tail: [0; STAMP + GUARD],
            tail_from: size,
        };
        match self.shape {
            // No room for a stamp before the guard.
            Shape::Hashed(_) if (GUARD as u64 + 1..(STAMP + GUARD) as u64).contains(&size) => {
                payload.tail_from = 0;
                let body = size as usize - GUARD;
                payload.tail[..STAMP].copy_from_slice(&short(payload.object, size));
                let guard = guard(Md5::digest(&payload.tail[..body]).into());
                payload.tail[body..size as usize].copy_from_slice(&guard);
            }
            Shape::Hashed(_) if size > GUARD as u64 => {
                payload.tail_from = size - GUARD as u64;
                let guard = guard(payload.md5(0..payload.tail_from));
                payload.tail[..GUARD].copy_from_slice(&guard);
            }
            Shape::Seeded(_) | Shape::Hashed(_) if size < STAMP as u64 => {
                payload.tail_from = 0;
                payload.tail[..STAMP].copy_from_slice(&short(payload.object, size));
            }
            _ => {}
        }
        payload
    }

    /// Begins the check of a read: of the whole object, or of a range of its bytes. Must be called before
    /// the request is sent, for every attempt anew. When reads are not verified, the check finds nothing.
    pub fn check(&self, key: Key, range: Option<Range<u64>>) -> Check<'_> {
        Check::new(self, key, range)
    }

    /// Whose content carries a stamp of this set.
    fn kin(&self, set: u64) -> Kin {
        if set == self.own.set || set == self.plain.set {
            return Kin::Own;
        }
        match self.kin.iter().find(|(known, _)| *known == set) {
            Some((_, named)) if *named == self.named => Kin::OtherForm,
            Some(_) => Kin::OtherName,
            None if set == self.plain.hashed().set => Kin::OtherForm,
            None => Kin::Unknown,
        }
    }
}

/// The bytes of one object.
#[derive(Clone)]
pub struct Payload<'a> {
    /// `None`: zeroes.
    pool: Option<&'a Pool>,
    object: u64,
    label: Label,
    base: u64,
    /// The bytes from `tail_from` on: a guard, or the whole of a short object.
    tail: [u8; STAMP + GUARD],
    tail_from: u64,
}

impl Payload<'_> {
    /// Bytes of the object.
    pub fn size(&self) -> u64 {
        self.label.size
    }

    /// The slices of the content's bytes from `range.start` on: as many as fit a window, and not beyond
    /// `range.end`; `head`, if not empty, goes before them as a slice of its own. After a partial write,
    /// ask again from where it ended.
    pub fn slices<'s>(&'s self, head: &'s [u8], range: Range<u64>, window: &'s mut Window) -> Slices<'s> {
        let mut slices = Slices::default();
        slices.push(head);
        let end = range.end.min(self.size());
        let body_end = end.min(self.tail_from);
        let mut at = range.start;
        let first = at / BLOCK as u64;
        for (block, stamp) in (first..).zip(&mut window.0) {
            if self.pool.is_none() || block * BLOCK as u64 >= body_end {
                break;
            }
            *stamp = self.label.stamp(self.base, block);
        }
        for (block, stamp) in (first..).zip(&window.0) {
            if at >= body_end {
                break;
            }
            let (from, to) = part_of_block(block, at, body_end);
            match self.pool.map(|pool| pool.block(self.object, block)) {
                None => slices.push(&ZEROES[from..to]),
                Some(Block::Common(bytes)) => slices.push(&bytes[from..to]),
                Some(Block::Stamped(bytes)) => {
                    slices.push(&stamp[from.min(STAMP)..to.min(STAMP)]);
                    slices.push(&bytes[from.max(STAMP).min(to)..to]);
                }
            }
            at += (to - from) as u64;
        }
        if at >= self.tail_from && at < end {
            let (from, to) = ((at - self.tail_from) as usize, (end - self.tail_from) as usize);
            slices.push(&self.tail[from..to]);
        }
        slices
    }

    /// Calls `visit` with every piece of a range of the bytes, in order: for digests and files.
    pub fn each<E>(&self, range: Range<u64>, mut visit: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut window = Window::default();
        let mut at = range.start;
        while at < range.end.min(self.size()) {
            let slices = self.slices(&[], at..range.end, &mut window);
            slices.iter().try_for_each(|slice| visit(slice))?;
            at += slices.bytes();
        }
        Ok(())
    }

    /// The MD5 of a range of the bytes.
    pub fn md5(&self, range: Range<u64>) -> [u8; 16] {
        let mut digest = Md5::new();
        let Ok(()) = self.each(range, |piece| {
            digest.update(piece);
            Ok::<(), std::convert::Infallible>(())
        });
        digest.finalize().into()
    }
}

/// Room for the stamps of one [`Slices`]; one for each thread is enough.
pub struct Window([[u8; STAMP]; WINDOW]);

impl Default for Window {
    fn default() -> Self {
        Self([[0; STAMP]; WINDOW])
    }
}

/// Slices to send, in order.
pub struct Slices<'s> {
    slices: [IoSlice<'s>; SLICES],
    count: usize,
    bytes: u64,
}

impl Default for Slices<'_> {
    fn default() -> Self {
        Self { slices: [IoSlice::new(&[]); SLICES], count: 0, bytes: 0 }
    }
}

impl<'s> Slices<'s> {
    /// Bytes of all slices, the head included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn push(&mut self, slice: &'s [u8]) {
        if !slice.is_empty() {
            self.slices[self.count] = IoSlice::new(slice);
            self.count += 1;
            self.bytes += slice.len() as u64;
        }
    }
}

impl<'s> Deref for Slices<'s> {
    type Target = [IoSlice<'s>];

    fn deref(&self) -> &Self::Target {
        &self.slices[..self.count]
    }
}

/// COSBench's `hashCheck` guard around an MD5: `!!!!`, 32 hexadecimal digits, `!!!!`.
pub fn guard(md5: [u8; 16]) -> [u8; GUARD] {
    let mut guard = [b'!'; GUARD];
    for (place, byte) in guard[4..36].chunks_exact_mut(2).zip(md5) {
        let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
        place.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    guard
}

/// The bytes of an object too small for a stamp (the first `size` of these).
fn short(object: u64, size: u64) -> [u8; STAMP] {
    let mut bytes = [0; STAMP];
    for (place, number) in bytes.chunks_exact_mut(8).zip(0..) {
        place.copy_from_slice(&mix(object, &[size, number]).to_le_bytes());
    }
    bytes
}

/// Which bytes of a block lie from `at` (in the block) to `end`.
fn part_of_block(block: u64, at: u64, end: u64) -> (usize, usize) {
    let start = block * BLOCK as u64;
    ((at - start) as usize, (end - start).min(BLOCK as u64) as usize)
}

#[cfg(test)]
mod tests;
