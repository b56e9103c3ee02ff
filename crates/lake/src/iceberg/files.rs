//! The files of one table: where they are, and every request for them counted by what it was for.

use crate::iceberg::table::TableMetadata;
use crate::tables::failure::Failure;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tidemark_iceberg::commits::{FileRequests, TableFile};
use tidemark_measure::fault::Fault;

/// Kinds of files, in the order in which a commit needs them.
const KINDS: [TableFile; 6] = [
    TableFile::Data,
    TableFile::Deletes,
    TableFile::Manifest,
    TableFile::ManifestList,
    TableFile::Metadata,
    TableFile::VersionHint,
];

/// The files of a table.
#[derive(Debug)]
pub(crate) struct Files {
    store: Arc<dyn ObjectStore>,
    /// Where they are in the store.
    root: Path,
    /// The same as the table's files name each other: `s3://bucket/events`.
    location: String,
    counts: Mutex<[FileRequests; KINDS.len()]>,
}

/// When a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Only {
    /// In any case.
    Always,
    /// If there is none of this name.
    IfAbsent,
}

/// A version of a table, by its number.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub number: u64,
    pub metadata: TableMetadata,
}

impl Files {
    /// Those of the table at `root`, which its files call `location`.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, root: Path, location: String) -> Self {
        let counts = Mutex::new(KINDS.map(|file| FileRequests { file, ..FileRequests::default() }));
        Self { store, root, location, counts }
    }

    /// The same, whose requests count apart.
    pub(crate) fn apart(&self) -> Self {
        Self::new(Arc::clone(&self.store), self.root.clone(), self.location.clone())
    }

    /// What the table's files call its place.
    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> Vec<FileRequests> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().filter(|count| count.all() > 0).copied().collect()
    }

    /// Counts requests that were sent apart from these.
    pub(crate) fn absorb(&self, others: &[FileRequests]) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for other in others {
            counts.iter_mut().filter(|own| own.file == other.file).for_each(|own| own.add(other));
        }
    }

    /// What reads and writes them.
    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// A file below `data`.
    pub(crate) fn data(&self, name: &str) -> Path {
        self.root.clone().join("data").join(name)
    }

    /// A file below `metadata`.
    pub(crate) fn metadata(&self, name: &str) -> Path {
        self.root.clone().join("metadata").join(name)
    }

    /// The file of a version.
    pub(crate) fn version(&self, number: u64) -> Path {
        self.metadata(&format!("v{number}.metadata.json"))
    }

    /// The file that says where to begin looking.
    pub(crate) fn hint(&self) -> Path {
        self.metadata("version-hint.text")
    }

    /// What the table's files call a file of it.
    pub(crate) fn called(&self, path: &Path) -> String {
        let below = path.as_ref().strip_prefix(self.root.as_ref()).unwrap_or(path.as_ref());
        format!("{}/{}", self.location, below.trim_start_matches('/'))
    }

    /// What the file of a version is called.
    pub(crate) fn called_version(&self, number: u64) -> String {
        self.called(&self.version(number))
    }

    /// The file that the table's files call so.
    pub(crate) fn named(&self, name: &str) -> Result<Path, Failure> {
        let below = name.strip_prefix(&self.location).and_then(|rest| rest.strip_prefix('/'));
        let path = below.and_then(|below| Path::parse(format!("{}/{below}", self.root)).ok());
        path.ok_or_else(|| {
            Failure::new(Fault::WrongContent, format!("{name} is no file of {}", self.location))
        })
    }

    /// Sends a request, and counts it.
    async fn counted<T>(
        &self,
        file: TableFile,
        request: impl Future<Output = object_store::Result<T>>,
        count: impl FnOnce(&mut FileRequests, Option<&T>),
    ) -> Result<T, Failure> {
        let began = Instant::now();
        let done = request.await.map_err(Failure::from);
        let waited_ns = began.elapsed().as_nanos() as u64;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = counts.iter_mut().find(|own| own.file == file) {
            own.waited_ns += waited_ns;
            // What was asked and denied is an answer.
            let answered = |failure: &Failure| is_lost(failure) || failure.fault == Fault::NotFound;
            own.failed += u64::from(done.as_ref().err().is_some_and(|failure| !answered(failure)));
            count(own, done.as_ref().ok());
        }
        done
    }

    pub(crate) async fn read(&self, file: TableFile, path: &Path) -> Result<Bytes, Failure> {
        let request = async { self.store.get(path).await?.bytes().await };
        let count = |own: &mut FileRequests, read: Option<&Bytes>| {
            own.reads += 1;
            own.read_bytes += read.map_or(0, |bytes| bytes.len() as u64);
        };
        self.counted(file, request, count).await
    }

    pub(crate) async fn write(
        &self,
        file: TableFile,
        path: &Path,
        content: Bytes,
        only: Only,
    ) -> Result<(), Failure> {
        let mode = match only {
            Only::Always => PutMode::Overwrite,
            Only::IfAbsent => PutMode::Create,
        };
        let bytes = content.len() as u64;
        let request = self.store.put_opts(path, content.into(), PutOptions { mode, ..PutOptions::default() });
        let count = |own: &mut FileRequests, _: Option<&_>| {
            own.writes += 1;
            own.written_bytes += bytes;
        };
        self.counted(file, request, count).await.map(drop)
    }

    pub(crate) async fn delete(&self, file: TableFile, path: &Path) -> Result<(), Failure> {
        self.counted(file, self.store.delete(path), |own, _| own.deletes += 1).await
    }

    async fn has(&self, file: TableFile, path: &Path) -> Result<bool, Failure> {
        let found = self.counted(file, self.store.head(path), |own, _| own.probes += 1).await;
        match found {
            Ok(_) => Ok(true),
            Err(failure) if failure.fault == Fault::NotFound => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// A version, if it is there.
    pub(crate) async fn read_version(&self, number: u64) -> Result<Option<Version>, Failure> {
        let path = self.version(number);
        let bytes = match self.read(TableFile::Metadata, &path).await {
            Err(failure) if failure.fault == Fault::NotFound => return Ok(None),
            read => read?,
        };
        let metadata = serde_json::from_slice(&bytes);
        let metadata = metadata.map_err(|error| {
            Failure::new(Fault::WrongContent, format!("{path} is no metadata of a table: {error}"))
        })?;
        Ok(Some(Version { number, metadata }))
    }

    /// Makes a version, if nobody has.
    pub(crate) async fn write_version(&self, version: &Version) -> Result<(), Failure> {
        let content = serde_json::to_vec(&version.metadata);
        let content = content.map_err(|error| Failure::new(Fault::Local, error.to_string()))?;
        self.write(TableFile::Metadata, &self.version(version.number), content.into(), Only::IfAbsent).await
    }

    /// Tells others where to begin looking. It is a hint: whoever finds an old one goes on from there.
    pub(crate) async fn write_hint(&self, number: u64) -> Result<(), Failure> {
        let content = Bytes::from(number.to_string());
        self.write(TableFile::VersionHint, &self.hint(), content, Only::Always).await
    }

    /// Where to begin looking; 1 where nothing says.
    async fn read_hint(&self) -> Result<u64, Failure> {
        match self.read(TableFile::VersionHint, &self.hint()).await {
            Ok(bytes) => {
                Ok(str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1))
            }
            Err(failure) if failure.fault == Fault::NotFound => Ok(1),
            Err(failure) => Err(failure),
        }
    }

    /// The newest version, which is `known` or later: from the hint on, one after the other, as tables in Hadoop's file system are
    /// looked through. `None`: there is no table.
    pub(crate) async fn newest(&self, known: Option<&Arc<Version>>) -> Result<Option<Arc<Version>>, Failure> {
        let least = known.map_or(1, |known| known.number);
        let number = self.last_after(self.read_hint().await?.max(least)).await?;
        match known {
            Some(known) if known.number == number => Ok(Some(Arc::clone(known))),
            _ => Ok(self.read_version(number).await?.map(Arc::new)),
        }
    }

    /// The last version after this one without a gap.
    pub(crate) async fn last_after(&self, mut number: u64) -> Result<u64, Failure> {
        while self.has(TableFile::Metadata, &self.version(number + 1)).await? {
            number += 1;
        }
        Ok(number)
    }

    /// All files in the table's directory, or below a part of it.
    pub(crate) fn list(&self, part: Option<&str>) -> BoxStream<'static, Result<ObjectMeta, Failure>> {
        let prefix = part.map_or_else(|| self.root.clone(), |part| self.root.clone().join(part));
        self.store.list(Some(&prefix)).map_err(Failure::from).boxed()
    }

    /// Removes all files of the table, and gives their number.
    pub(crate) async fn remove(&self) -> Result<u64, Failure> {
        let found: Vec<ObjectMeta> = self.list(None).try_collect().await?;
        let count = found.len() as u64;
        let paths = futures_util::stream::iter(found.into_iter().map(|meta| Ok(meta.location))).boxed();
        self.store.delete_stream(paths).try_for_each(|_| std::future::ready(Ok(()))).await?;
        Ok(count)
    }
}

/// Whether a write on a condition failed because the condition did not hold.
pub(crate) fn is_lost(failure: &Failure) -> bool {
    failure.fault == Fault::Precondition
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use object_store::memory::InMemory;

    pub(crate) fn files(store: Arc<dyn ObjectStore>) -> Files {
        Files::new(store, Path::from("lake/t"), "s3://b/lake/t".into())
    }

    #[tokio::test]
    async fn files_are_found_by_the_names_that_tables_give_them() {
        let files = files(Arc::new(InMemory::new()));
        let path = files.data("1.parquet");
        assert_eq!(files.called(&path), "s3://b/lake/t/data/1.parquet");
        assert_eq!(files.named("s3://b/lake/t/data/1.parquet").unwrap(), path);
        for foreign in ["s3://b/lake/tt/data/1.parquet", "s3://c/lake/t/x", "x"] {
            assert_eq!(files.named(foreign).unwrap_err().fault, Fault::WrongContent, "{foreign}");
        }
        let whole = Files::new(Arc::new(InMemory::new()), Path::from("t"), "file:///lake/t".into());
        assert_eq!(whole.named("file:///lake/t/metadata/x").unwrap(), whole.metadata("x"));
    }

    #[tokio::test]
    async fn the_newest_version_is_found_with_and_without_a_hint() {
        let files = files(Arc::new(InMemory::new()));
        assert!(files.newest(None).await.unwrap().is_none());
        let metadata = crate::iceberg::metadata::first(files.location()).unwrap();
        for number in 1..=4 {
            files.write_version(&Version { number, metadata: metadata.clone() }).await.unwrap();
        }
        assert_eq!(files.newest(None).await.unwrap().map(|found| found.number), Some(4), "without a hint");
        files.write_hint(3).await.unwrap();
        let found = files.newest(None).await.unwrap().unwrap();
        assert_eq!(found.number, 4, "with an old one");
        let before = files.requests();
        assert_eq!(files.newest(Some(&found)).await.unwrap().map(|found| found.number), Some(4));
        let reads = |requests: &[FileRequests]| {
            requests.iter().find(|one| one.file == TableFile::Metadata).map(|one| one.reads)
        };
        assert_eq!(reads(&before), reads(&files.requests()), "what is known is not read again");
        let again = files.write_version(&Version { number: 4, metadata }).await.unwrap_err();
        assert!(is_lost(&again), "{again:?}");
        assert!(files.requests().iter().all(|one| one.failed == 0), "answers are no failures");
    }
}
