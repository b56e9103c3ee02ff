//! What storage sees of queries: a store that counts the requests that go through it.

use crate::tables::failure::Failure;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, coalesce_ranges,
};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tidemark_measure::record::{SizeCount, StorageUse};

/// Ranges that are this near to each other are read in one request, where a request costs more than the bytes between them:
/// what `object_store` does for S3.
const COALESCED: u64 = object_store::OBJECT_STORE_COALESCE_DEFAULT;

/// A store, and the requests that went through it. One stream of queries has one of its own, so that requests belong to the query
/// that the stream is at.
#[derive(Debug)]
pub(crate) struct Metered {
    inner: Arc<dyn ObjectStore>,
    /// Whether ranges that are near to each other are read together: over a network.
    coalesces: bool,
    counts: Arc<Mutex<Counts>>,
}

/// What has been counted since the last [`Metered::take`].
#[derive(Debug, Default)]
struct Counts {
    used: StorageUse,
    in_flight: u32,
    /// Since when there has been a request in flight.
    busy_since: Option<Instant>,
    /// The parts of files that were asked for, before near ones were put together.
    wanted: BTreeMap<Path, Vec<Range<u64>>>,
    /// Why the first of the requests that failed did so.
    failure: Option<Failure>,
}

/// What storage saw of a query.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The requests.
    pub(crate) used: StorageUse,
    /// The parts of files that were asked for.
    pub(crate) wanted: BTreeMap<Path, Vec<Range<u64>>>,
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request in flight; it has ended when this is dropped.
struct Request {
    counts: Arc<Mutex<Counts>>,
    began: Instant,
    ended: Option<bool>,
}

impl Request {
    fn begin(counts: &Arc<Mutex<Counts>>) -> Self {
        let began = Instant::now();
        let mut own = lock(counts);
        own.used.requests += 1;
        own.in_flight += 1;
        own.used.most_in_flight = own.used.most_in_flight.max(own.in_flight);
        own.busy_since.get_or_insert(began);
        drop(own);
        Self { counts: Arc::clone(counts), began, ended: None }
    }

    fn end<T>(mut self, result: Result<T>) -> Result<T> {
        self.ended = Some(result.is_ok());
        if let Err(error) = &result {
            lock(&self.counts).failure.get_or_insert_with(|| Failure::from(error));
        }
        result
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        let now = Instant::now();
        counts.used.waited_ns += now.duration_since(self.began).as_nanos() as u64;
        counts.used.failed += u64::from(self.ended == Some(false));
        counts.in_flight = counts.in_flight.saturating_sub(1);
        if counts.in_flight == 0
            && let Some(since) = counts.busy_since.take()
        {
            counts.used.busy_ns += now.duration_since(since).as_nanos() as u64;
        }
    }
}

impl Counts {
    fn read(&mut self, bytes: u64) {
        self.used.reads += 1;
        self.used.read_bytes += bytes;
        let up_to_bytes = bytes.max(1).next_power_of_two();
        match self.used.sizes.binary_search_by_key(&up_to_bytes, |size| size.up_to_bytes) {
            Ok(place) => self.used.sizes[place].reads += 1,
            Err(place) => self.used.sizes.insert(place, SizeCount { up_to_bytes, reads: 1 }),
        }
    }
}

impl Metered {
    /// A meter before a store.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, coalesces: bool) -> Self {
        Self { inner, coalesces, counts: Arc::default() }
    }

    /// What was counted since the last time, and begins anew.
    pub(crate) fn take(&self) -> Seen {
        let mut counts = lock(&self.counts);
        let now = Instant::now();
        if let Some(since) = counts.busy_since {
            // What a query has left behind in flight is the next one's from here on.
            counts.used.busy_ns += now.duration_since(since).as_nanos() as u64;
            counts.busy_since = Some(now);
        }
        let used = std::mem::take(&mut counts.used);
        counts.used.most_in_flight = counts.in_flight;
        counts.failure = None;
        Seen { used, wanted: std::mem::take(&mut counts.wanted) }
    }

    /// Why the first request that failed since then did so, if one did.
    pub(crate) fn failure(&self) -> Option<Failure> {
        lock(&self.counts).failure.clone()
    }

    fn want(&self, location: &Path, ranges: &[Range<u64>]) {
        lock(&self.counts).wanted.entry(location.clone()).or_default().extend_from_slice(ranges);
    }

    /// Reads one range in a request of its own.
    async fn read(&self, location: &Path, range: Range<u64>) -> Result<Bytes> {
        let options = GetOptions::new().with_range(Some(GetRange::Bounded(range)));
        self.whole(location, options).await.map(|(_, bytes)| bytes)
    }

    /// Sends a request, and takes all that it brings.
    async fn whole(&self, location: &Path, options: GetOptions) -> Result<(GetResult, Bytes)> {
        let request = Request::begin(&self.counts);
        let done = async {
            let got = self.inner.get_opts(location, options).await?;
            let (meta, range, attributes) = (got.meta.clone(), got.range.clone(), got.attributes.clone());
            let bytes = got.bytes().await?;
            let payload = GetResultPayload::Stream(stream::empty().boxed());
            Ok((GetResult { payload, meta, range, attributes }, bytes))
        };
        let done = request.end(done.await)?;
        lock(&self.counts).read(done.1.len() as u64);
        Ok(done)
    }
}

impl fmt::Display for Metered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

#[async_trait]
impl ObjectStore for Metered {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let request = Request::begin(&self.counts);
        request.end(self.inner.put_opts(location, payload, options).await)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if options.head {
            let request = Request::begin(&self.counts);
            return request.end(self.inner.get_opts(location, options).await);
        }
        let (got, bytes) = self.whole(location, options).await?;
        self.want(location, std::slice::from_ref(&got.range));
        let payload = GetResultPayload::Stream(stream::once(async { Ok(bytes) }).boxed());
        Ok(GetResult { payload, ..got })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.want(location, ranges);
        if self.coalesces {
            return coalesce_ranges(ranges, |range| self.read(location, range), COALESCED).await;
        }
        // One request of this interface is as many reads of the file, one after the other.
        let request = Request::begin(&self.counts);
        let read = request.end(self.inner.get_ranges(location, ranges).await)?;
        let mut counts = lock(&self.counts);
        counts.used.requests += (read.len() as u64).saturating_sub(1);
        read.iter().for_each(|bytes| counts.read(bytes.len() as u64));
        Ok(read)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        lock(&self.counts).used.requests += 1;
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let request = Request::begin(&self.counts);
        request.end(self.inner.list_with_delimiter(prefix).await)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt as _;
    use object_store::memory::InMemory;
    use tidemark_measure::fault::Fault;

    async fn metered(coalesces: bool) -> (Metered, Path) {
        let (store, path) = (Arc::new(InMemory::new()), Path::from("a"));
        store.put(&path, vec![7; 8 << 20].into()).await.unwrap();
        (Metered::new(store, coalesces), path)
    }

    #[tokio::test]
    async fn near_ranges_are_one_request_over_a_network_and_each_its_own_in_a_file() {
        let ranges = [0..10, 20..30, 4 << 20..5 << 20];
        for (coalesces, reads, bytes) in [(true, 2, 30 + (1 << 20)), (false, 3, 20 + (1 << 20))] {
            let (metered, path) = metered(coalesces).await;
            let got = metered.get_ranges(&path, &ranges).await.unwrap();
            assert_eq!(got.iter().map(Bytes::len).collect::<Vec<_>>(), [10, 10, 1 << 20]);
            let seen = metered.take();
            assert_eq!((seen.used.reads, seen.used.requests, seen.used.read_bytes), (reads, reads, bytes));
            assert_eq!(seen.wanted[&path], ranges, "what was wanted is known apart from what was sent");
            assert_eq!(seen.used.sizes.last(), Some(&SizeCount { up_to_bytes: 1 << 20, reads: 1 }));
            assert_eq!(metered.take().used, StorageUse::default(), "nothing is counted twice");
        }
    }

    #[tokio::test]
    async fn what_fails_is_counted_and_a_request_given_up_is_not_in_flight_for_ever() {
        let (metered, path) = metered(true).await;
        assert!(metered.head(&Path::from("none")).await.is_err());
        drop(Request::begin(&metered.counts));
        metered.get_range(&path, 0..5).await.unwrap();
        assert_eq!(metered.failure().map(|failure| failure.fault), Some(Fault::NotFound));
        let seen = metered.take().used;
        assert_eq!(metered.failure(), None);
        assert_eq!((seen.requests, seen.failed, seen.reads, seen.most_in_flight), (3, 1, 1, 1));
        assert!(seen.busy_ns > 0 && seen.waited_ns >= seen.busy_ns);
    }
}
