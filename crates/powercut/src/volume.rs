//! The file system itself, apart from how it is mounted: nodes in memory, and what of them is in the store.

use crate::content::Content;
use crate::journal::{Access, Change, Journal, Made, Name};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The most that is kept in memory before some of it is written back, bytes.
pub const DIRTY_BYTES: u64 = 1 << 30;

/// The node of the root.
pub(crate) const ROOT: u64 = 1;

/// The longest name, bytes.
const LONGEST_NAME: usize = 255;

/// Mode of a new root: anyone may pass through it.
const ROOT_MODE: u32 = 0o711;

/// The file system.
#[derive(Debug)]
pub(crate) struct Volume {
    store: PathBuf,
    nodes: BTreeMap<u64, Node>,
    next: u64,
    journal: Journal,
    /// Changes that the journal does not have yet.
    pending: Vec<Change>,
    /// The nodes that they are about.
    touched: BTreeSet<u64>,
    /// Nodes without a name that nobody has open: their files go when the journal says so.
    gone: Vec<u64>,
    dirty: u64,
    most_dirty: u64,
}

/// A file, a directory or a symbolic link.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) access: Access,
    /// How many names it has.
    pub(crate) links: u32,
    pub(crate) modified: SystemTime,
    /// How often the kernel has it.
    held: u64,
    /// Its file in the store while it is in use.
    stored: Option<File>,
}

/// What a node is.
#[derive(Debug)]
pub(crate) enum Kind {
    File(Content),
    Directory { entries: BTreeMap<Name, u64>, parent: u64 },
    Link(Name),
}

impl Node {
    fn new(made: &Made, parent: u64, access: Access) -> Self {
        let kind = match made {
            Made::File => Kind::File(Content::default()),
            Made::Directory => Kind::Directory { entries: BTreeMap::new(), parent },
            Made::Link(target) => Kind::Link(target.clone()),
        };
        Self { kind, access, links: 1, modified: SystemTime::now(), held: 0, stored: None }
    }

    /// Its size, bytes.
    pub(crate) fn size(&self) -> u64 {
        match &self.kind {
            Kind::File(content) => content.size(),
            Kind::Directory { .. } => 4096,
            Kind::Link(target) => target.len() as u64,
        }
    }
}

impl Volume {
    /// The file system in a store, which is made if it is not there: as after a power cut.
    pub(crate) fn open(store: &Path, most_dirty: u64) -> io::Result<Self> {
        let contents = store.join("content");
        fs::create_dir_all(&contents)?;
        let root = Access {
            mode: ROOT_MODE,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        };
        let path = store.join("names");
        let changes = Journal::read(&path)?;
        let mut nodes = BTreeMap::from([(ROOT, Node::new(&Made::Directory, ROOT, root))]);
        let mut next = ROOT + 1;
        for change in &changes {
            if let Change::Make { node, .. } = change {
                next = next.max(node + 1);
            }
            apply(&mut nodes, change)
                .map_err(|_| io::Error::other("the journal of names contradicts itself"))?;
        }
        nodes.retain(|_, node| node.links > 0);
        let journal = Journal::renew(&path, &whole(&nodes))?;
        let mut volume = Self {
            store: store.to_owned(),
            nodes,
            next,
            journal,
            pending: Vec::new(),
            touched: BTreeSet::new(),
            gone: Vec::new(),
            dirty: 0,
            most_dirty,
        };
        volume.read_contents(&contents)?;
        Ok(volume)
    }

    /// Finds the stored contents, and removes those of files that are not there any more.
    fn read_contents(&mut self, contents: &Path) -> io::Result<()> {
        for entry in fs::read_dir(contents)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let data = entry.metadata()?;
            match number.and_then(|number: u64| self.nodes.get_mut(&number)) {
                Some(Node { kind: Kind::File(content), modified, .. }) => {
                    *content = Content::stored(data.len());
                    *modified = data.modified()?;
                }
                _ => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    /// The directory of the store.
    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    /// A node.
    pub(crate) fn node(&self, number: u64) -> Result<&Node, Errno> {
        self.nodes.get(&number).ok_or(Errno::NOENT)
    }

    fn node_mut(&mut self, number: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&number).ok_or(Errno::NOENT)
    }

    /// The names in a directory, and the directory above it.
    pub(crate) fn entries(&self, directory: u64) -> Result<(&BTreeMap<Name, u64>, u64), Errno> {
        match &self.node(directory)?.kind {
            Kind::Directory { entries, parent } => Ok((entries, *parent)),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// The node under a name.
    pub(crate) fn look_up(&self, parent: u64, name: &[u8]) -> Result<u64, Errno> {
        self.entries(parent)?.0.get(name).copied().ok_or(Errno::NOENT)
    }

    /// The kernel has a node once more.
    pub(crate) fn hold(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.held += 1;
        }
    }

    /// The kernel has forgotten a node so often.
    pub(crate) fn forget(&mut self, number: u64, times: u64) {
        let Some(node) = self.nodes.get_mut(&number) else { return };
        node.held = node.held.saturating_sub(times);
        if node.held == 0 {
            node.stored = None;
            self.drop_if_gone(number);
        }
    }

    /// Removes a node from memory that has no name and that nobody has. Its stored file stays until the journal has its
    /// removal.
    fn drop_if_gone(&mut self, number: u64) {
        if self.nodes.get(&number).is_some_and(|node| node.links == 0 && node.held == 0)
            && let Some(node) = self.nodes.remove(&number)
        {
            if let Kind::File(content) = &node.kind {
                self.dirty -= content.dirty();
            }
            self.gone.push(number);
        }
    }

    /// Makes a node under a name.
    pub(crate) fn make(
        &mut self,
        parent: u64,
        name: &[u8],
        made: Made,
        access: Access,
    ) -> Result<u64, Errno> {
        let node = self.next;
        self.change(Change::Make { node, parent, name: name.to_vec(), made, access })?;
        self.next += 1;
        Ok(node)
    }

    /// Carries out a change of names or access.
    pub(crate) fn change(&mut self, change: Change) -> Result<(), Errno> {
        let affected = apply(&mut self.nodes, &change)?;
        self.pending.push(change);
        for number in affected {
            self.touched.insert(number);
            self.drop_if_gone(number);
        }
        Ok(())
    }

    /// Makes all names durable.
    pub(crate) fn sync_names(&mut self) -> io::Result<()> {
        self.journal.add(&self.pending)?;
        self.pending.clear();
        self.touched.clear();
        for number in std::mem::take(&mut self.gone) {
            match fs::remove_file(self.stored_path(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the content of a file durable, and all names if its own are not; of a directory, all names.
    pub(crate) fn sync(&mut self, number: u64) -> io::Result<()> {
        if let Kind::Directory { .. } = self.node(number)?.kind {
            return self.sync_names();
        }
        self.sync_content(number)?;
        match self.touched.contains(&number) {
            true => self.sync_names(),
            false => Ok(()),
        }
    }

    /// Makes everything durable.
    pub(crate) fn sync_all(&mut self) -> io::Result<()> {
        let files: Vec<u64> = self.nodes.keys().copied().collect();
        files.into_iter().try_for_each(|number| self.sync_content(number))?;
        self.sync_names()
    }

    fn sync_content(&mut self, number: u64) -> io::Result<()> {
        let is_synced = matches!(&self.node(number)?.kind, Kind::File(content) if !content.is_synced());
        if !is_synced {
            return Ok(());
        }
        self.with_content(number, true, |content, stored| match stored {
            Some(stored) => content.sync(stored),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn stored_path(&self, number: u64) -> PathBuf {
        self.store.join("content").join(number.to_string())
    }

    /// Does something with a file's content and its stored file, which is made on demand.
    fn with_content<T>(
        &mut self,
        number: u64,
        make: bool,
        work: impl FnOnce(&mut Content, Option<&File>) -> io::Result<T>,
    ) -> io::Result<T> {
        let path = self.stored_path(number);
        let node = self.node_mut(number)?;
        let Kind::File(content) = &mut node.kind else { return Err(Errno::ISDIR.into()) };
        if node.stored.is_none() {
            let opened = OpenOptions::new().read(true).write(true).create(make).truncate(false).open(path);
            node.stored = match opened {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                opened => Some(opened?),
            };
        }
        let before = content.dirty();
        let done = work(content, node.stored.as_ref());
        let after = content.dirty();
        if node.held == 0 {
            node.stored = None;
        }
        self.dirty = self.dirty - before + after;
        done
    }

    /// Reads from a file.
    pub(crate) fn read(&mut self, number: u64, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        self.with_content(number, false, |content, stored| content.read(stored, offset, length))
    }

    /// Writes to a file.
    pub(crate) fn write(&mut self, number: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.modify(number, |content, stored| content.write(stored, offset, bytes))
    }

    /// Makes a file as large as this.
    pub(crate) fn resize(&mut self, number: u64, size: u64) -> io::Result<()> {
        if size > i64::MAX as u64 {
            return Err(Errno::FBIG.into());
        }
        self.modify(number, |content, stored| content.resize(stored, size))
    }

    /// Makes a part of a file zeros.
    pub(crate) fn zero(&mut self, number: u64, offset: u64, length: u64) -> io::Result<()> {
        self.modify(number, |content, stored| content.zero(stored, offset, length))
    }

    fn modify(
        &mut self,
        number: u64,
        work: impl FnOnce(&mut Content, Option<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.with_content(number, false, work)?;
        self.node_mut(number)?.modified = SystemTime::now();
        if self.dirty > self.most_dirty {
            let dirty = |node: &Node| if let Kind::File(content) = &node.kind { content.dirty() } else { 0 };
            let largest = self.nodes.iter().max_by_key(|(_, node)| dirty(node)).map(|(number, _)| *number);
            return largest.map_or(Ok(()), |largest| self.sync_content(largest));
        }
        Ok(())
    }

    /// When a file was modified last, as its owner says. It is not promised to outlive a cut.
    pub(crate) fn set_modified(&mut self, number: u64, time: SystemTime) -> Result<(), Errno> {
        self.node_mut(number)?.modified = time;
        Ok(())
    }
}

/// All nodes as changes that make them: what a journal would begin with.
fn whole(nodes: &BTreeMap<u64, Node>) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Some(root) = nodes.get(&ROOT) {
        changes.push(Change::Access { node: ROOT, access: root.access });
    }
    let (mut directories, mut made) = (vec![ROOT], BTreeSet::new());
    while let Some(parent) = directories.pop() {
        let Some(Node { kind: Kind::Directory { entries, .. }, .. }) = nodes.get(&parent) else { continue };
        for (name, number) in entries {
            let (node, name) = (*number, name.clone());
            let Some(Node { kind, access, .. }) = nodes.get(number) else { continue };
            if !made.insert(node) {
                changes.push(Change::Link { node, parent, name });
                continue;
            }
            let made = match kind {
                Kind::File(_) => Made::File,
                Kind::Link(target) => Made::Link(target.clone()),
                Kind::Directory { .. } => {
                    directories.push(node);
                    Made::Directory
                }
            };
            changes.push(Change::Make { node, parent, name, made, access: *access });
        }
    }
    changes
}

/// Carries out a change, or says why it cannot be; returns the nodes that it is about.
fn apply(nodes: &mut BTreeMap<u64, Node>, change: &Change) -> Result<Vec<u64>, Errno> {
    match change {
        Change::Make { node, parent, name, made, access } => {
            is_free(nodes, *parent, name)?;
            nodes.insert(*node, Node::new(made, *parent, *access));
            insert(nodes, *parent, name, *node)?;
            Ok(vec![*node])
        }
        Change::Link { node, parent, name } => {
            is_free(nodes, *parent, name)?;
            let linked = nodes.get_mut(node).ok_or(Errno::NOENT)?;
            if !matches!(linked.kind, Kind::File(_)) {
                return Err(Errno::PERM);
            }
            linked.links += 1;
            insert(nodes, *parent, name, *node)?;
            Ok(vec![*node])
        }
        Change::Remove { parent, name } => {
            let node = *directory(nodes, *parent)?.get(name).ok_or(Errno::NOENT)?;
            if nodes.get(&node).is_some_and(has_entries) {
                return Err(Errno::NOTEMPTY);
            }
            directory(nodes, *parent)?.remove(name);
            unlink(nodes, node);
            Ok(vec![node])
        }
        Change::Rename { from, to } => rename(nodes, from, to),
        Change::Access { node, access } => {
            nodes.get_mut(node).ok_or(Errno::NOENT)?.access = *access;
            Ok(vec![*node])
        }
    }
}

fn rename(nodes: &mut BTreeMap<u64, Node>, from: &(u64, Name), to: &(u64, Name)) -> Result<Vec<u64>, Errno> {
    let node = *directory(nodes, from.0)?.get(&from.1).ok_or(Errno::NOENT)?;
    let is_directory = matches!(nodes.get(&node).ok_or(Errno::NOENT)?.kind, Kind::Directory { .. });
    check_name(&to.1)?;
    // No directory may come to lie below itself.
    let mut above = to.0;
    while is_directory && above != ROOT {
        if above == node {
            return Err(Errno::INVAL);
        }
        above = match &nodes.get(&above).ok_or(Errno::NOENT)?.kind {
            Kind::Directory { parent, .. } => *parent,
            _ => return Err(Errno::NOTDIR),
        };
    }
    let replaced = directory(nodes, to.0)?.get(&to.1).copied();
    if replaced == Some(node) {
        return Ok(Vec::new());
    }
    if let Some(other) = replaced.and_then(|other| nodes.get(&other)) {
        match (is_directory, matches!(other.kind, Kind::Directory { .. })) {
            (true, false) => return Err(Errno::NOTDIR),
            (false, true) => return Err(Errno::ISDIR),
            _ if has_entries(other) => return Err(Errno::NOTEMPTY),
            _ => {}
        }
    }
    directory(nodes, from.0)?.remove(&from.1);
    directory(nodes, to.0)?.insert(to.1.clone(), node);
    if let Some(Node { kind: Kind::Directory { parent, .. }, .. }) = nodes.get_mut(&node) {
        *parent = to.0;
    }
    let mut affected = vec![node];
    if let Some(replaced) = replaced {
        unlink(nodes, replaced);
        affected.push(replaced);
    }
    Ok(affected)
}

fn directory(nodes: &mut BTreeMap<u64, Node>, number: u64) -> Result<&mut BTreeMap<Name, u64>, Errno> {
    match nodes.get_mut(&number) {
        Some(Node { kind: Kind::Directory { entries, .. }, links: 1.., modified, .. }) => {
            *modified = SystemTime::now();
            Ok(entries)
        }
        Some(Node { kind: Kind::Directory { .. }, .. }) | None => Err(Errno::NOENT),
        Some(_) => Err(Errno::NOTDIR),
    }
}

fn is_free(nodes: &mut BTreeMap<u64, Node>, parent: u64, name: &[u8]) -> Result<(), Errno> {
    check_name(name)?;
    match directory(nodes, parent)?.contains_key(name) {
        true => Err(Errno::EXIST),
        false => Ok(()),
    }
}

fn check_name(name: &[u8]) -> Result<(), Errno> {
    if name.len() > LONGEST_NAME { Err(Errno::NAMETOOLONG) } else { Ok(()) }
}

fn insert(nodes: &mut BTreeMap<u64, Node>, parent: u64, name: &[u8], node: u64) -> Result<(), Errno> {
    directory(nodes, parent)?.insert(name.to_vec(), node);
    Ok(())
}

fn has_entries(node: &Node) -> bool {
    matches!(&node.kind, Kind::Directory { entries, .. } if !entries.is_empty())
}

fn unlink(nodes: &mut BTreeMap<u64, Node>, number: u64) {
    if let Some(node) = nodes.get_mut(&number) {
        node.links -= 1;
    }
}

#[cfg(test)]
mod tests;
