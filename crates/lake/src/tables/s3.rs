//! A bucket as the query engine sees it, over Tidemark's own S3 client.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use object_store::path::Path;
use object_store::{
    Attributes, CopyMode, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart,
};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tidemark_measure::fault::Fault;
use tidemark_object::store::{Ask, Only, Part, Store, StoreError};

/// Deletions that are on their way at once.
const DELETIONS: usize = 16;

/// A bucket.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    store: Arc<Store>,
    name: String,
}

impl Bucket {
    pub(crate) fn new(store: Store, name: &str) -> Self {
        Self { store: Arc::new(store), name: name.to_owned() }
    }

    /// Its client, which counts the requests at each endpoint.
    pub(crate) fn client(&self) -> &Arc<Store> {
        &self.store
    }

    /// Makes it, unless it is there and ours.
    pub(crate) async fn create(&self) -> Result<(), StoreError> {
        self.store.ask(Ask::Create).await.map(drop)
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "bucket {}", self.name)
    }
}

fn error(location: &Path, error: StoreError) -> Error {
    let (path, fault, source) = (location.to_string(), error.fault, Box::new(error));
    match fault {
        Fault::NotFound => Error::NotFound { path, source },
        Fault::Precondition => Error::Precondition { path, source },
        _ => Error::Generic { store: "S3", source },
    }
}

fn unsupported(what: &str) -> Error {
    Error::NotSupported { source: format!("{what} is not supported").into() }
}

/// An object; when it was changed, nobody here asks.
fn meta(location: &Path, size: u64, e_tag: Option<String>) -> ObjectMeta {
    ObjectMeta { location: location.clone(), last_modified: Default::default(), size, e_tag, version: None }
}

fn content(payload: PutPayload) -> Bytes {
    payload.into()
}

#[async_trait]
impl ObjectStore for Bucket {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let (only, creates) = match options.mode {
            PutMode::Overwrite => (Only::Always, false),
            PutMode::Create => (Only::IfAbsent, true),
            PutMode::Update(version) => match version.e_tag {
                Some(tag) => (Only::IfMatch(tag), false),
                None => return Err(unsupported("an update without a tag")),
            },
        };
        let put = self.store.ask(Ask::Put(location.to_string(), content(payload), only)).await;
        match put {
            Ok(served) => Ok(PutResult { e_tag: served.tag, version: None }),
            Err(refused) if creates && refused.fault == Fault::Precondition => {
                Err(Error::AlreadyExists { path: location.to_string(), source: Box::new(refused) })
            }
            Err(refused) => Err(error(location, refused)),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begun = self.store.ask(Ask::Begin(location.to_string())).await;
        let id = begun.map_err(|refused| error(location, refused))?.id.unwrap_or_default();
        let (store, location) = (Arc::clone(&self.store), location.clone());
        Ok(Box::new(Upload { store, location, id, tags: Arc::default(), parts: 0 }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let key = location.to_string();
        let ask = match &options.range {
            _ if options.head => Ask::Head(key),
            None => Ask::Get(key, None),
            // An empty range cannot be asked for.
            Some(GetRange::Bounded(range)) if range.is_empty() => return Err(unsupported("an empty range")),
            Some(GetRange::Bounded(range)) => Ask::Get(key, Some(Part::Range(range.clone()))),
            Some(GetRange::Offset(first)) => Ask::Get(key, Some(Part::From(*first))),
            Some(GetRange::Suffix(bytes)) => Ask::Get(key, Some(Part::Last(*bytes))),
        };
        let served = self.store.ask(ask).await.map_err(|refused| error(location, refused))?;
        let meta = meta(location, served.size, served.tag);
        options.check_preconditions(&meta)?;
        let range = match options.head {
            true => 0..served.size,
            false => served.from..served.from + served.bytes.len() as u64,
        };
        let bytes = served.bytes;
        let payload = GetResultPayload::Stream(stream::once(async { Ok(bytes) }).boxed());
        Ok(GetResult { payload, meta, range, attributes: Attributes::default() })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        // What is put together is decided by who counts requests.
        let one = |range: &Range<u64>| {
            let ask = Ask::Get(location.to_string(), Some(Part::Range(range.clone())));
            async move { Ok(self.store.ask(ask).await.map_err(|refused| error(location, refused))?.bytes) }
        };
        futures_util::future::try_join_all(ranges.iter().map(one)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = Arc::clone(&self.store);
        let delete = move |location: Result<Path>| {
            let store = Arc::clone(&store);
            async move {
                let location = location?;
                let deleted = store.ask(Ask::Delete(location.to_string())).await;
                deleted.map_err(|refused| error(&location, refused))?;
                Ok(location)
            }
        };
        locations.map(delete).buffered(DELETIONS).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        // Prefixes are of whole names between slashes.
        let prefix = prefix
            .filter(|prefix| !prefix.as_ref().is_empty())
            .map_or(String::new(), |prefix| format!("{prefix}/"));
        let store = Arc::clone(&self.store);
        let page = move |next: Option<Option<String>>| {
            let (store, prefix) = (Arc::clone(&store), prefix.clone());
            async move {
                let Some(after) = next else { return Ok::<_, Error>(None) };
                let listed = store.ask(Ask::List(prefix.clone(), after)).await;
                let listed = listed.map_err(|refused| error(&Path::from(prefix), refused))?;
                let objects = listed.objects.into_iter().filter_map(|(key, size)| {
                    // Names that are none to the query engine are nobody's files.
                    Some(Ok(meta(&Path::parse(key).ok()?, size, None)))
                });
                let objects = stream::iter(objects.collect::<Vec<_>>());
                Ok(Some((objects, listed.id.map(Some))))
            }
        };
        let pages = stream::try_unfold(Some(None), page);
        futures_util::TryStreamExt::try_flatten(pages).boxed()
    }

    async fn list_with_delimiter(&self, _prefix: Option<&Path>) -> Result<ListResult> {
        Err(unsupported("a listing by directory"))
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, options: CopyOptions) -> Result<()> {
        let how = if options.mode == CopyMode::Create { " on a condition" } else { "" };
        Err(unsupported(&format!("a copy{how}")))
    }
}

/// An upload in parts.
#[derive(Debug)]
struct Upload {
    store: Arc<Store>,
    location: Path,
    id: String,
    /// The tags of parts that are there, by their places.
    tags: Arc<Mutex<Vec<String>>>,
    parts: u32,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts += 1;
        let (store, location, tags, number) =
            (Arc::clone(&self.store), self.location.clone(), Arc::clone(&self.tags), self.parts);
        let (key, upload, content) = (location.to_string(), self.id.clone(), content(data));
        Box::pin(async move {
            let sent = store.ask(Ask::Part { key, upload, number, content }).await;
            let tag = sent.map_err(|refused| error(&location, refused))?.tag.unwrap_or_default();
            let mut tags = tags.lock().unwrap_or_else(PoisonError::into_inner);
            let least = tags.len().max(number as usize);
            tags.resize(least, String::new());
            tags[number as usize - 1] = tag;
            Ok(())
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let tags = std::mem::take(&mut *self.tags.lock().unwrap_or_else(PoisonError::into_inner));
        let (key, upload) = (self.location.to_string(), self.id.clone());
        let done = self.store.ask(Ask::Complete { key, upload, tags }).await;
        let done = done.map_err(|refused| error(&self.location, refused))?;
        Ok(PutResult { e_tag: done.tag, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        let aborted = self.store.ask(Ask::Abort(self.location.to_string(), self.id.clone())).await;
        aborted.map(drop).map_err(|refused| error(&self.location, refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::TryStreamExt as _;
    use object_store::ObjectStoreExt as _;
    use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};
    use tidemark_measure::record::EndpointKind;
    use tidemark_object::job::{Http, REGION, S3};

    fn target(server: &EmbeddedServer, more: &[&str]) -> S3 {
        let own = server.endpoint();
        let endpoints = [own.as_str()].iter().chain(more).map(ToString::to_string).collect();
        S3 {
            http: Http { endpoints, timeout_ns: 5_000_000_000, ..Http::default() },
            access_key: server.access_key().into(),
            secret_key: tidemark_plan::secret::Secret::new(server.secret_key()),
            session_token: None,
            region: REGION.into(),
            path_style: true,
            sign_payload: true,
            storage_class: None,
            encryption: None,
        }
    }

    async fn bucket(server: &EmbeddedServer) -> Bucket {
        let bucket = Bucket::new(Store::open(&target(server, &[]), "lake", 4).unwrap(), "lake");
        bucket.create().await.unwrap();
        bucket.create().await.expect("ours already");
        bucket
    }

    #[tokio::test]
    async fn objects_come_back_whole_and_in_parts() {
        let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
        let bucket = bucket(&server).await;
        let path = Path::from("a b/ü+1%");
        let text: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
        bucket.put(&path, text.clone().into()).await.unwrap();
        assert_eq!(bucket.get(&path).await.unwrap().bytes().await.unwrap(), text);
        assert_eq!(bucket.head(&path).await.unwrap().size, 200_000);
        let ranges = bucket.get_ranges(&path, &[5..9, 100_000..100_010]).await.unwrap();
        assert_eq!(ranges, [&text[5..9], &text[100_000..100_010]]);
        let end = GetOptions::new().with_range(Some(GetRange::Suffix(3)));
        let end = bucket.get_opts(&path, end).await.unwrap();
        assert_eq!((end.range.clone(), end.meta.size), (199_997..200_000, 200_000));
        let mut upload = bucket.put_multipart(&Path::from("big")).await.unwrap();
        for part in [vec![1; 6 << 20], vec![2; 3]] {
            upload.put_part(part.into()).await.unwrap();
        }
        upload.complete().await.unwrap();
        assert_eq!(
            bucket.get_range(&Path::from("big"), (6 << 20) - 1..(6 << 20) + 2).await.unwrap()[..],
            [1, 2, 2]
        );
        let missing = bucket.get(&Path::from("none")).await.unwrap_err();
        assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
    }

    #[tokio::test]
    async fn listings_have_all_pages_and_conditions_hold() {
        let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
        let bucket = bucket(&server).await;
        for number in 0..1_205 {
            bucket.put(&Path::from(format!("many/{number}")), "x".into()).await.unwrap();
        }
        bucket.put(&Path::from("manyother"), "x".into()).await.unwrap();
        let listed: Vec<_> = bucket.list(Some(&Path::from("many"))).try_collect().await.unwrap();
        assert_eq!(listed.len(), 1_205, "and nothing whose name only begins so");
        let create = || PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let again = bucket.put_opts(&Path::from("manyother"), "y".into(), create()).await.unwrap_err();
        assert!(matches!(again, Error::AlreadyExists { .. }), "{again}");
        let all = listed.into_iter().map(|meta| Ok(meta.location));
        let deleted: Vec<_> =
            bucket.delete_stream(stream::iter(all.collect::<Vec<_>>()).boxed()).try_collect().await.unwrap();
        assert_eq!(deleted.len(), 1_205);
        let left: Vec<_> = bucket.list(None).try_collect().await.unwrap();
        assert_eq!(left.len(), 1);
    }

    #[tokio::test]
    async fn a_dead_endpoint_fails_its_own_requests_and_no_others() {
        let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
        bucket(&server).await.put(&Path::from("a"), "x".into()).await.unwrap();
        // Port 9 of this machine is nobody's.
        let store = Store::open(&target(&server, &["http://127.0.0.1:9"]), "lake", 2).unwrap();
        let asked: Vec<_> = (0..20).map(|_| store.ask(Ask::Get("a".into(), None))).collect();
        let done = futures_util::future::join_all(asked).await;
        let failed = done.iter().filter(|one| one.is_err()).count() as u64;
        let counts = store.take();
        let numbers: Vec<_> = counts.iter().map(|one| (one.ok, one.faults.of(Fault::Refused))).collect();
        assert_eq!(numbers, [(20 - failed, 0), (0, failed)]);
        assert!(failed > 0 && failed < 10, "one that refuses is waited for: {numbers:?}");
        assert_eq!((counts[0].response.count(), counts[0].bytes), (20 - failed, 20 - failed));
        assert!(counts[1].endpoint.ends_with("127.0.0.1:9") && counts[1].kind == EndpointKind::Shared);
        assert!(store.take().iter().all(|one| one.total() == 0), "nothing is counted twice");
        store.ask(Ask::Head("none".into())).await.unwrap_err();
        let refused = done.into_iter().find_map(std::result::Result::err).unwrap();
        assert_eq!(refused.fault, Fault::Refused);
        assert!(refused.words.contains("get lake/a at http://127.0.0.1:9"), "{refused}");
    }
}
