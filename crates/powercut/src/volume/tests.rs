//! What a cut leaves, against a model that keeps whole contents and whole trees.

use super::*;
use proptest::prelude::*;

const ACCESS: Access = Access { mode: 0o600, uid: 7, gid: 8 };

/// A path of at most two parts: directories `d0`.., files `f0`.. in the root or in one of them.
type Place = (Option<u8>, u8);

#[derive(Clone, Debug)]
enum Step {
    Create(Place),
    MakeDirectory(u8),
    RemoveDirectory(u8),
    RenameDirectory(u8, u8),
    Link(Place, Place),
    Remove(Place),
    Rename(Place, Place),
    Chmod(Place, u32),
    Write(Place, u64, u8, usize),
    Resize(Place, u64),
    Zero(Place, u64, u64),
    Sync(Place),
    SyncDirectory(Option<u8>),
    /// The process ends as it should.
    Unmount,
}

fn place() -> impl Strategy<Value = Place> {
    (prop::option::of(0..2_u8), 0..3_u8)
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..20_000_u64;
    prop_oneof![
        4 => place().prop_map(Step::Create),
        2 => (0..2_u8).prop_map(Step::MakeDirectory),
        1 => (0..2_u8).prop_map(Step::RemoveDirectory),
        1 => (0..2_u8, 0..2_u8).prop_map(|(from, to)| Step::RenameDirectory(from, to)),
        1 => (place(), place()).prop_map(|(from, to)| Step::Link(from, to)),
        2 => place().prop_map(Step::Remove),
        2 => (place(), place()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (place(), 0..0o1000_u32).prop_map(|(place, mode)| Step::Chmod(place, mode)),
        8 => (place(), at.clone(), 1_u8.., 1..9000_usize)
            .prop_map(|(place, at, byte, length)| Step::Write(place, at, byte, length)),
        2 => (place(), at.clone()).prop_map(|(place, size)| Step::Resize(place, size)),
        2 => (place(), at.clone(), at).prop_map(|(place, at, length)| Step::Zero(place, at, length)),
        5 => place().prop_map(Step::Sync),
        2 => prop::option::of(0..2_u8).prop_map(Step::SyncDirectory),
        1 => Just(Step::Unmount),
    ]
}

/// What a path leads to: a file by its number, or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    File(u64),
    Directory,
}

/// Paths and modes of a whole tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tree {
    paths: BTreeMap<String, Thing>,
    modes: BTreeMap<u64, u32>,
}

/// What is there, and what is durable, as whole trees and contents.
#[derive(Default)]
struct Model {
    now: Tree,
    durable: Tree,
    contents: BTreeMap<u64, Vec<u8>>,
    durable_contents: BTreeMap<u64, Vec<u8>>,
    touched: BTreeSet<u64>,
}

fn path(place: Place) -> String {
    match place {
        (Some(directory), file) => format!("d{directory}/f{file}"),
        (None, file) => format!("f{file}"),
    }
}

fn find(volume: &Volume, path: &str) -> Result<u64, Errno> {
    path.split('/')
        .filter(|part| !part.is_empty())
        .try_fold(ROOT, |node, part| volume.look_up(node, part.as_bytes()))
}

fn parts(volume: &Volume, path: &str) -> Result<(u64, Name), Errno> {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((find(volume, parent)?, name.as_bytes().to_vec()))
}

impl Model {
    fn sync_names(&mut self) {
        self.durable = self.now.clone();
        self.touched.clear();
    }

    fn sync(&mut self, file: u64) {
        self.durable_contents.insert(file, self.contents[&file].clone());
        if self.touched.contains(&file) {
            self.sync_names();
        }
    }

    fn file(&self, place: Place) -> Option<u64> {
        match self.now.paths.get(&path(place)) {
            Some(Thing::File(file)) => Some(*file),
            _ => None,
        }
    }

    /// Carries a step out on both; they must agree on whether it can be.
    fn step(&mut self, volume: &mut Volume, step: &Step) -> io::Result<()> {
        let there = |path: String| parts(volume, &path);
        let parent_is_there = |place: &Place| {
            place.0.is_none_or(|directory| self.now.paths.contains_key(&format!("d{directory}")))
        };
        match step {
            Step::Create(place) => {
                let made = there(path(*place))
                    .and_then(|(parent, name)| volume.make(parent, &name, Made::File, ACCESS));
                let expected = parent_is_there(place) && self.file(*place).is_none();
                assert_eq!(made.is_ok(), expected);
                if let Ok(file) = made {
                    self.now.paths.insert(path(*place), Thing::File(file));
                    self.now.modes.insert(file, ACCESS.mode);
                    self.contents.insert(file, Vec::new());
                    self.touched.insert(file);
                }
            }
            Step::MakeDirectory(number) => {
                let name = format!("d{number}");
                let made = volume.make(ROOT, name.as_bytes(), Made::Directory, ACCESS);
                assert_eq!(made.is_ok(), !self.now.paths.contains_key(&name));
                self.now.paths.insert(name, Thing::Directory);
            }
            Step::RemoveDirectory(number) => {
                let name = format!("d{number}");
                let removed = volume.change(Change::Remove { parent: ROOT, name: name.clone().into() });
                let within = format!("{name}/");
                let is_empty = !self.now.paths.keys().any(|path| path.starts_with(&within));
                assert_eq!(removed.is_ok(), is_empty && self.now.paths.remove(&name).is_some());
            }
            Step::RenameDirectory(from, to) => {
                let (old, new) = (format!("d{from}"), format!("d{to}"));
                let change =
                    Change::Rename { from: (ROOT, old.clone().into()), to: (ROOT, new.clone().into()) };
                let moved = volume.change(change);
                let within = |name: &str| format!("{name}/");
                let is_free = !self.now.paths.keys().any(|path| path.starts_with(&within(&new)));
                let expected = self.now.paths.contains_key(&old) && (old == new || is_free);
                assert_eq!(moved.is_ok(), expected, "{step:?}");
                if expected && old != new {
                    let all = std::mem::take(&mut self.now.paths);
                    let paths = all.into_iter().filter(|(path, _)| *path != new).map(|(path, thing)| {
                        let is_within = path == old || path.starts_with(&within(&old));
                        (if is_within { path.replacen(&old, &new, 1) } else { path }, thing)
                    });
                    self.now.paths = paths.collect();
                }
            }
            Step::Link(from, to) => {
                let linked = find(volume, &path(*from)).and_then(|node| {
                    let (parent, name) = parts(volume, &path(*to))?;
                    volume.change(Change::Link { node, parent, name })
                });
                let expected = self.file(*from).filter(|_| parent_is_there(to) && self.file(*to).is_none());
                assert_eq!(linked.is_ok(), expected.is_some());
                if let Some(file) = expected {
                    self.now.paths.insert(path(*to), Thing::File(file));
                    self.touched.insert(file);
                }
            }
            Step::Remove(place) => {
                let removed = there(path(*place))
                    .and_then(|(parent, name)| volume.change(Change::Remove { parent, name }));
                let file = self.file(*place);
                assert_eq!(removed.is_ok(), file.is_some());
                self.now.paths.remove(&path(*place));
                self.touched.extend(file);
            }
            Step::Rename(from, to) => {
                let moved = there(path(*from)).and_then(|from| {
                    let to = parts(volume, &path(*to))?;
                    volume.change(Change::Rename { from, to })
                });
                let (file, replaced) = (self.file(*from).filter(|_| parent_is_there(to)), self.file(*to));
                assert_eq!(moved.is_ok(), file.is_some());
                // Two names of one file: nothing happens (rename(2)).
                if let Some(file) = file.filter(|file| replaced != Some(*file)) {
                    self.now.paths.remove(&path(*from));
                    self.now.paths.insert(path(*to), Thing::File(file));
                    self.touched.insert(file);
                    self.touched.extend(replaced);
                }
            }
            Step::Chmod(place, mode) => {
                if let Some(node) = self.file(*place) {
                    let access = Access { mode: *mode, ..ACCESS };
                    volume.change(Change::Access { node, access }).unwrap();
                    self.now.modes.insert(node, *mode);
                    self.touched.insert(node);
                }
            }
            Step::Write(place, at, byte, length) => {
                if let Some(file) = self.file(*place) {
                    volume.write(file, *at, &vec![*byte; *length])?;
                    let content = self.contents.get_mut(&file).unwrap();
                    let end = *at as usize + length;
                    content.resize(content.len().max(end), 0);
                    content[*at as usize..end].fill(*byte);
                }
            }
            Step::Resize(place, size) => {
                if let Some(file) = self.file(*place) {
                    volume.resize(file, *size)?;
                    self.contents.get_mut(&file).unwrap().resize(*size as usize, 0);
                }
            }
            Step::Zero(place, at, length) => {
                if let Some(file) = self.file(*place) {
                    volume.zero(file, *at, *length)?;
                    let content = self.contents.get_mut(&file).unwrap();
                    let end = content.len().min((at + length) as usize);
                    if let Some(part) = content.get_mut(*at as usize..end) {
                        part.fill(0);
                    }
                }
            }
            Step::Sync(place) => {
                if let Some(file) = self.file(*place) {
                    volume.sync(file)?;
                    self.sync(file);
                }
            }
            Step::SyncDirectory(directory) => {
                let name = directory.map_or(String::new(), |number| format!("d{number}"));
                if let Ok(node) = find(volume, &name) {
                    volume.sync(node)?;
                    self.sync_names();
                }
            }
            Step::Unmount => {
                volume.sync_all()?;
                self.durable_contents = self.contents.clone();
                self.sync_names();
            }
        }
        Ok(())
    }
}

/// The tree and the contents of a volume. Files are numbered as the model numbers them, by node.
fn tree(volume: &mut Volume) -> (Tree, BTreeMap<u64, Vec<u8>>) {
    let (mut tree, mut contents) = (Tree::default(), BTreeMap::new());
    let mut open = vec![(String::new(), ROOT)];
    while let Some((path, directory)) = open.pop() {
        for (name, number) in volume.entries(directory).unwrap().0.clone() {
            let path = format!("{path}{}", String::from_utf8(name).unwrap());
            let node = volume.node(number).unwrap();
            if let Kind::Directory { .. } = node.kind {
                open.push((format!("{path}/"), number));
                tree.paths.insert(path, Thing::Directory);
                continue;
            }
            assert_eq!((node.access.uid, node.access.gid), (7, 8));
            tree.modes.insert(number, node.access.mode);
            tree.paths.insert(path, Thing::File(number));
            contents.insert(number, volume.read(number, 0, u64::MAX).unwrap());
        }
    }
    (tree, contents)
}

/// Only what belongs to files that a tree has.
fn of(tree: &Tree, contents: &BTreeMap<u64, Vec<u8>>) -> (Tree, BTreeMap<u64, Vec<u8>>) {
    let files: BTreeSet<u64> = tree
        .paths
        .values()
        .filter_map(|thing| if let Thing::File(file) = thing { Some(*file) } else { None })
        .collect();
    let modes = tree.modes.iter().filter(|(file, _)| files.contains(file)).map(|(file, mode)| (*file, *mode));
    let contents = files.iter().map(|file| (*file, contents.get(file).cloned().unwrap_or_default()));
    (Tree { paths: tree.paths.clone(), modes: modes.clone().collect() }, contents.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_cut_leaves_what_was_synced_and_nothing_else(
        rounds in prop::collection::vec(prop::collection::vec(step(), 1..25), 1..4),
    ) {
        let store = tempfile::tempdir().unwrap();
        let mut model = Model::default();
        for steps in rounds {
            let mut volume = Volume::open(store.path(), u64::MAX).unwrap();
            for step in &steps {
                model.step(&mut volume, step).unwrap();
                let (now, contents) = of(&model.now, &model.contents);
                let (found, read) = tree(&mut volume);
                prop_assert_eq!(&found, &now, "after {:?}", step);
                prop_assert!(read == contents, "after {:?}", step);
            }
            // The cut.
            drop(volume);
            let (durable, contents) = of(&model.durable, &model.durable_contents);
            let (found, read) = tree(&mut Volume::open(store.path(), u64::MAX).unwrap());
            prop_assert_eq!(&found, &durable);
            prop_assert!(read == contents);
            model.now = durable.clone();
            model.durable = durable;
            model.contents = contents.clone();
            model.durable_contents = contents;
            model.touched.clear();
        }
    }

    #[test]
    fn what_was_synced_outlives_pressure_too(steps in prop::collection::vec(step(), 1..60)) {
        // At most two pages in memory: everything is written back all the time, and only more may be left than was promised.
        let store = tempfile::tempdir().unwrap();
        let mut model = Model::default();
        let mut volume = Volume::open(store.path(), 8192).unwrap();
        for step in &steps {
            model.step(&mut volume, step).unwrap();
        }
        let (now, contents) = of(&model.now, &model.contents);
        let (found, read) = tree(&mut volume);
        prop_assert_eq!(found, now);
        prop_assert!(read == contents);
        drop(volume);
        let (durable, _) = of(&model.durable, &model.durable_contents);
        let (found, _) = tree(&mut Volume::open(store.path(), 8192).unwrap());
        prop_assert_eq!(found, durable);
    }
}

fn volume() -> (tempfile::TempDir, Volume) {
    let store = tempfile::tempdir().unwrap();
    let volume = Volume::open(store.path(), DIRTY_BYTES).unwrap();
    (store, volume)
}

#[test]
fn a_removed_file_is_readable_while_it_is_open_and_its_space_is_freed() {
    let (store, mut volume) = volume();
    let file = volume.make(ROOT, b"f", Made::File, ACCESS).unwrap();
    volume.hold(file);
    volume.write(file, 0, b"still here").unwrap();
    volume.sync(file).unwrap();
    volume.change(Change::Remove { parent: ROOT, name: b"f".to_vec() }).unwrap();
    volume.sync(ROOT).unwrap();
    assert_eq!(volume.read(file, 0, 100).unwrap(), b"still here");
    volume.forget(file, 1);
    assert!(volume.node(file).is_err());
    volume.sync(ROOT).unwrap();
    assert_eq!(fs::read_dir(store.path().join("content")).unwrap().count(), 0);
}

#[test]
fn a_directory_cannot_be_moved_below_itself() {
    let (_store, mut volume) = volume();
    let outer = volume.make(ROOT, b"a", Made::Directory, ACCESS).unwrap();
    let inner = volume.make(outer, b"b", Made::Directory, ACCESS).unwrap();
    let change = Change::Rename { from: (ROOT, b"a".to_vec()), to: (inner, b"c".to_vec()) };
    assert_eq!(volume.change(change), Err(Errno::INVAL));
    let long = vec![b'x'; 256];
    assert_eq!(volume.make(ROOT, &long, Made::File, ACCESS), Err(Errno::NAMETOOLONG));
}
