//! Committers on stores in memory: some that are right, some that accept a condition and ignore it, some that do not tell.

use crate::iceberg::commit::{self, Change, Contents};
use crate::iceberg::conditions;
use crate::iceberg::files::{Files, Only, Version};
use crate::iceberg::history::{self, Acknowledged};
use crate::iceberg::load::{Books, Committers};
use crate::iceberg::manifest;
use crate::iceberg::metadata;
use crate::iceberg::model::Sums;
use crate::iceberg::records::DataContentType;
use crate::iceberg::rows;
use crate::iceberg::scan::{Question, Reader, Reply};
use crate::tables::tasks::Tasks as _;
use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use proptest::prelude::*;
use std::fmt;
use std::io::{Cursor, Read as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tidemark_iceberg::commits::{Condition, TableFile, TableHistory};
use tidemark_iceberg::job::{Commits, Protocol};
use tidemark_load::engine::{Clock, Operation};
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;
use tidemark_object::store::StoreError;

/// How often a store misbehaves, out of 256 conditional writes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manners {
    /// The condition is ignored.
    pub ignores: u8,
    /// The write is done, and its reply is lost.
    pub loses_reply: u8,
    /// The write is lost, and nothing is said.
    pub loses_request: u8,
}

/// A store in memory on which committers meet in an order that follows from a seed.
#[derive(Debug)]
pub(crate) struct Store {
    pub inner: InMemory,
    manners: Manners,
    rng: Mutex<Rng>,
    /// Conditional writes that replaced something.
    replaced: AtomicU64,
}

impl fmt::Display for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a store in memory")
    }
}

impl Store {
    pub(crate) fn new(manners: Manners, seed: u64) -> Self {
        Self {
            inner: InMemory::new(),
            manners,
            rng: Mutex::new(Rng::new(seed, &[])),
            replaced: AtomicU64::new(0),
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.rng.lock().unwrap().below(bound)
    }

    /// Lets others go first, or not.
    async fn wait(&self) {
        for _ in 0..self.below(4) {
            tokio::task::yield_now().await;
        }
    }
}

fn unanswered(location: &Path) -> object_store::Error {
    let source = StoreError { fault: Fault::Timeout, words: format!("no reply to the write of {location}") };
    object_store::Error::Generic { store: "memory", source: Box::new(source) }
}

#[async_trait]
impl ObjectStore for Store {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.wait().await;
        if !matches!(options.mode, PutMode::Create) {
            return self.inner.put_opts(location, payload, options).await;
        }
        let draw = |often: u8| self.below(256) < u64::from(often);
        if draw(self.manners.loses_request) {
            return Err(unanswered(location));
        }
        let mode = if draw(self.manners.ignores) { PutMode::Overwrite } else { PutMode::Create };
        if mode == PutMode::Overwrite && self.inner.head(location).await.is_ok() {
            self.replaced.fetch_add(1, Ordering::Relaxed);
        }
        let done = self.inner.put_opts(location, payload, PutOptions { mode, ..options }).await;
        if done.is_ok() && draw(self.manners.loses_reply) {
            return Err(unanswered(location));
        }
        done
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.wait().await;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// What a load came to.
#[derive(Debug)]
struct Done {
    history: TableHistory,
    acknowledged: u64,
    failed: Vec<Fault>,
    replaced: u64,
}

const COMMITTERS: u32 = 3;
const EACH: u64 = 6;
const ROWS: u32 = 2;

/// A load of a few committers, each with a few commits.
fn load(manners: Manners, seed: u64, protocol: Protocol) -> Done {
    let store = Arc::new(Store::new(manners, seed));
    let opened: Arc<dyn ObjectStore> = Arc::clone(&store) as _;
    let files = Arc::new(Files::new(opened, Path::from("t"), "s3://b/t".into()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let first = Version { number: 1, metadata: metadata::first(files.location()).unwrap() };
        let content = serde_json::to_vec(&first.metadata).unwrap();
        store.inner.put(&Path::from("t/metadata/v1.metadata.json"), content.into()).await.unwrap();
        let first = Arc::new(first);
        let commits = Commits { rows: ROWS, protocol, checked: false };
        let books = Arc::new(Books::default());
        let committers =
            Committers::new(Arc::clone(&files), &commits, COMMITTERS, &first, Arc::clone(&books));
        let committers = Arc::new(committers);
        let clock = Clock::starting_at(Instant::now());
        let one = |slot: u32| {
            let committers = Arc::clone(&committers);
            tokio::spawn(async move {
                let mut faults = Vec::new();
                for number in 0..EACH {
                    let operation = Operation { random: number, ..Operation::default() };
                    faults
                        .extend(Arc::clone(&committers).begin(slot, operation, clock, 0).await.outcome.fault);
                }
                faults
            })
        };
        let tasks: Vec<_> = (0..COMMITTERS).map(one).collect();
        let mut failed = Vec::new();
        for task in tasks {
            failed.extend(task.await.unwrap());
        }
        let acknowledged = books.read().acknowledged.clone();
        let history = history::read(&files.apart(), &first, &acknowledged).await.unwrap();
        let acknowledged = acknowledged.len() as u64;
        Done { history, acknowledged, failed, replaced: store.replaced.load(Ordering::Relaxed) }
    })
}

fn patient() -> Protocol {
    Protocol { tries: 1000, back_off_ns: 0, back_off_most_ns: 0, snapshots: 4, manifests: 5 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn on_a_right_store_every_commit_is_there_once(seed: u64) {
        let done = load(Manners::default(), seed, patient());
        prop_assert_eq!(done.acknowledged, u64::from(COMMITTERS) * EACH);
        prop_assert!(done.history.is_whole(), "{:?}", done);
        prop_assert_eq!(done.history.found, done.acknowledged);
        prop_assert_eq!(done.history.rows, (done.acknowledged * u64::from(ROWS)) as i64);
        prop_assert_eq!(done.history.to_version - done.history.from_version, done.acknowledged);
        prop_assert_eq!(done.history.others, 0);
    }

    #[test]
    fn a_store_that_ignores_the_condition_is_found_out_whenever_it_did_harm(seed: u64, ignores in 1..=255u8) {
        let done = load(Manners { ignores, ..Manners::default() }, seed, patient());
        prop_assert_eq!(done.acknowledged, u64::from(COMMITTERS) * EACH);
        prop_assert_eq!(done.replaced == 0, done.history.is_whole(), "{:?}", done);
        prop_assert_eq!(done.history.found + done.history.missing, done.acknowledged);
        prop_assert_eq!(done.history.missing > 0, done.replaced > 0, "{:?}", done);
        prop_assert_eq!(done.history.missing_rows, done.history.missing * u64::from(ROWS));
    }

    #[test]
    fn a_store_that_does_not_tell_loses_nothing_and_doubles_nothing(
        seed: u64, loses_reply in 0..=120u8, loses_request in 0..=120u8
    ) {
        let done = load(Manners { loses_reply, loses_request, ignores: 0 }, seed, patient());
        prop_assert!(done.failed.is_empty(), "{:?}", done);
        prop_assert!(done.history.is_whole(), "{:?}", done);
        prop_assert_eq!((done.history.found, done.history.others), (u64::from(COMMITTERS) * EACH, 0));
        prop_assert_eq!(done.history.rows, (done.history.found * u64::from(ROWS)) as i64);
    }
}

#[test]
fn a_commit_that_may_not_be_tried_again_has_failed_and_what_is_not_known_is_said_so() {
    let once = Protocol { tries: 1, ..patient() };
    let raced = load(Manners::default(), 5, once.clone());
    assert!(
        !raced.failed.is_empty() && raced.failed.iter().all(|fault| *fault == Fault::Serialization),
        "{raced:?}"
    );
    assert!(raced.history.is_whole() && raced.history.others == 0, "{raced:?}");
    let unanswered = load(Manners { loses_reply: 255, ..Manners::default() }, 5, once);
    let ambiguous = unanswered.failed.iter().filter(|fault| **fault == Fault::Ambiguous).count() as u64;
    assert!(ambiguous > 0 && unanswered.history.others == ambiguous, "{unanswered:?}");
    assert!(unanswered.history.is_whole(), "nothing that was acknowledged is lost: {unanswered:?}");
}

#[tokio::test]
async fn the_condition_is_asked_for_and_leaves_nothing_behind() {
    for (ignores, found) in [(0, Condition::Heeded), (255, Condition::Ignored)] {
        // Which of 256 writes are meant, chance decides: the last one never is.
        let store = Arc::new(Store::new(Manners { ignores, ..Manners::default() }, 1));
        let files =
            Files::new(Arc::clone(&store) as Arc<dyn ObjectStore>, Path::from("t"), "s3://b/t".into());
        assert_eq!(conditions::ask(&files, 7).await, found);
        let left = futures_util::StreamExt::count(store.inner.list(None)).await;
        assert_eq!(left, 0);
    }
}

/// A table that was put through 3 cycles of appends, merges on read and compactions when the crate `iceberg` encoded tables; another
/// reader of Iceberg tables found 75 rows in it, whose amounts are 41 178 517.
const EARLIER: &[u8] = include_bytes!("earlier.zip");

#[tokio::test]
async fn a_table_of_an_earlier_version_is_read_and_gone_on_with() {
    let store = InMemory::new();
    let mut archive = zip::ZipArchive::new(Cursor::new(EARLIER)).unwrap();
    for place in 0..archive.len() {
        let mut file = archive.by_index(place).unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        let path = Path::from(format!("events/{}", file.name().unwrap()));
        store.put(&path, content.into()).await.unwrap();
    }
    let files = Files::new(Arc::new(store), Path::from("events"), "file:///lake/events".into());
    let before = files.newest(None).await.unwrap().unwrap();
    assert_eq!(before.number, 9);
    assert!(metadata::is_ours(&before.metadata) && before.metadata.location() == files.location());
    assert_eq!(history::orphans(&files, 9).await.unwrap(), 0, "every file belongs to one of its versions");
    let reader = Reader::new(&files, false).unwrap();
    let all = Question::Within(0..1_000);
    let asked = reader.ask(&files, &before, &all, Instant::now()).await.unwrap();
    assert_eq!(asked.reply, Reply::Sums(Sums { rows: 75, amount: 41_178_517 }));
    assert_eq!((asked.found.rows, asked.found.files, asked.found.delete_files), (75, 3, 1));
    let first = files.read_version(1).await.unwrap().unwrap();
    let found = history::read(&files, &first, &[]).await.unwrap();
    assert!(found.is_whole() && found.others == 8, "{found:?}");
    assert_eq!(found.rows, 80, "rows of data files, with the 5 that are deleted");

    // As many manifests as make it merge them, then more of its own.
    let (mut known, mut rng) = (Some(Arc::clone(&before)), Rng::new(1, &[]));
    let mut acknowledged = Vec::new();
    for number in 1..=5 {
        let content = rows::encode(&[rows::Row::new(1_000 + number, 1, &mut rng)]).unwrap();
        let path = files.data(&format!("{number}.parquet"));
        let (called, bytes) = (files.called(&path), content.len() as u64);
        let file = manifest::data_file(DataContentType::Data, called, 1, bytes).unwrap();
        files.write(TableFile::Data, &path, content.into(), Only::Always).await.unwrap();
        let change = Change::append(vec![file]).unwrap();
        let (_, done) = commit::commit(&files, &patient(), &mut known, &change, &mut rng).await;
        acknowledged.push(Acknowledged { commit: done.unwrap(), committer: 1, rows: 1 });
    }
    let after = known.unwrap();
    let asked = reader.ask(&files, &after, &all, Instant::now()).await.unwrap();
    assert_eq!(asked.reply, Reply::Sums(Sums { rows: 75, amount: 41_178_517 }), "what was there is there");
    let found = history::read(&files, &before, &acknowledged).await.unwrap();
    assert!(found.is_whole() && (found.found, found.rows, found.others) == (5, 5, 0), "{found:?}");
    let contents = Contents::of(&files, &after).await.unwrap();
    assert_eq!((contents.data.len(), contents.deletes.len()), (8, 1));
}
