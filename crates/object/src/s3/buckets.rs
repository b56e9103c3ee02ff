//! Buckets: made, listed, emptied, deleted.

use super::request::{Request, content_md5};
use super::{Slot, refusal, xml};
use crate::client::{Content, Reply};
use crate::emptying::Emptying;
use crate::existing::{Lists, Page};
use crate::failure::Failure;
use crate::job::{Emptied, Keeps};
use crate::operate::{Done, Intake, Task, not_empty};
use crate::text::{decode, encode};
use tidemark_measure::fault::Fault;

/// How often a server may list the same objects although they were deleted: listings may lag behind, but not for ever.
const LISTED_AGAIN: u32 = 10;

/// Objects that one listing or one deletion may name at most, by the protocol.
const KEYS_MOST: u32 = 1000;

impl Slot {
    /// Makes the bucket; one that exists and is ours is a success. One that keeps versions is made to, and one that locks them must be new.
    pub(super) async fn make_bucket(&mut self, keeps: Keeps) -> Result<Done, Failure> {
        let constraint = match self.sender.target().region.as_str() {
            "" | "us-east-1" => String::new(),
            region => xml::location(region),
        };
        let lock: [(&str, &[u8]); 1] = [("x-amz-bucket-object-lock-enabled", b"true")];
        let signed = if keeps == Keeps::Locked { &lock[..] } else { &[] };
        let content = Content::Bytes(constraint.as_bytes());
        let request = Request::put(content, 0..constraint.len() as u64).signed(signed);
        let mut intake = Intake::default();
        let now = self.sender.now();
        let reply =
            self.sender.exchange(&mut self.clients[0], &self.address, &request, &mut intake, now).await?;
        let ours = || xml::error(&intake.body).is_some_and(|error| error.code == "BucketAlreadyOwnedByYou");
        let made = match reply.status {
            200..300 => Done::after(&reply, 0),
            409 if ours() => Done::after(&reply, 0),
            status => return Err(refusal::failure(status, &intake.body)),
        };
        match keeps {
            Keeps::Latest => Ok(made),
            Keeps::Versions => self.keep_versions().await,
            Keeps::Locked => self.has_locks().await,
        }
    }

    /// Deletes the bucket, and all that is in it first if it is to be emptied; one that does not exist is a success.
    pub(super) async fn delete_bucket(&mut self, task: &Task<'_>, empty: &Emptied) -> Result<Done, Failure> {
        let name = task.container();
        let empty = empty.covers(&name);
        let gone = |failure: &Failure| failure.fault == Fault::NotFound;
        if empty {
            match self.empty_bucket().await {
                Err(failure) if gone(&failure) => {
                    return Ok(Done::at(self.sender.now(), 0));
                }
                emptied => emptied?,
            }
        }
        let mut intake = Intake::default();
        match self.request(&Request::delete(), &mut intake).await {
            Err(failure) if gone(&failure) => Ok(Done::at(self.sender.now(), 0)),
            Err(failure) if failure.fault == Fault::Conflict && !empty => {
                Err(not_empty(&failure, "s3", &name))
            }
            deleted => deleted.map(|reply| Done::after(&reply, task.operation.bytes)),
        }
    }

    /// Deletes all objects of the bucket with all their versions, and aborts its uploads.
    async fn empty_bucket(&mut self) -> Result<(), Failure> {
        let mut emptying = Emptying::begin(self.limits, self.sender.now());
        let (mut before, mut again) = (Vec::new(), 0);
        loop {
            // What was listed is deleted before the next listing: every one begins at the beginning.
            let mut intake = Intake::keeping();
            let query = listing("", KEYS_MOST, None);
            self.request(&Request::get().query(query.as_bytes()), &mut intake).await?;
            let Some(keys) = xml::keys(&intake.body) else {
                return Err(Failure::in_doubt(Fault::Protocol, "the listing is not valid XML"));
            };
            if keys.is_empty() {
                break;
            }
            again = if keys == before { again + 1 } else { 0 };
            if again == LISTED_AGAIN {
                let text = format!("the server reported object {} deleted, and still lists it", keys[0]);
                return Err(Failure::without_effect(Fault::Protocol, text));
            }
            emptying.page(keys.len(), self.sender.now())?;
            self.delete_keys(keys.iter().map(|key| (key.as_str(), None))).await?;
            before = keys;
        }
        match self.delete_versions("", None).await {
            Err(failure) if knows_no_versions(&failure) => {}
            deleted => deleted?,
        }
        let mut intake = Intake::keeping();
        match self.request(&Request::get().query(b"uploads="), &mut intake).await {
            // Not every server has uploads to list.
            Err(failure) if matches!(failure.fault, Fault::ClientError | Fault::ServerError) => return Ok(()),
            listed => listed?,
        };
        for (key, upload) in xml::uploads(&intake.body) {
            let (key, query) = (encode(&key, true), format!("uploadId={}", encode(&upload, false)));
            self.address.object(|out| out.extend_from_slice(key.as_bytes()));
            let aborted =
                self.request(&Request::delete().query(query.as_bytes()), &mut Intake::default()).await;
            self.address.bucket();
            match aborted {
                Err(failure) if failure.fault != Fault::NotFound => return Err(failure),
                _ => {}
            }
        }
        Ok(())
    }

    /// Deletes `count` objects from the task's on, in one request.
    pub(super) async fn delete_numbered(&mut self, task: &Task<'_>, count: u32) -> Result<Done, Failure> {
        let names = &task.action.names;
        let mut keys = Vec::with_capacity(count as usize);
        for item in task.operation.item..task.operation.item.saturating_add(u64::from(count)) {
            let mut name = Vec::new();
            names.push_object(&mut name, item);
            keys.push(decode(&name));
        }
        let reply = self.delete_keys(keys.iter().map(|key| (key.as_str(), None))).await?;
        Ok(Done::after(&reply, 0))
    }

    /// Deletes objects by name, or some of their versions, in one request.
    pub(super) async fn delete_keys<'k>(
        &mut self,
        keys: impl Iterator<Item = (&'k str, Option<&'k str>)>,
    ) -> Result<Reply, Failure> {
        let mut keys = keys.peekable();
        let of_versions = keys.peek().is_some_and(|(_, version)| version.is_some());
        let document = xml::deletion(keys);
        let digest = content_md5(&document);
        let header: [(&str, &[u8]); 1] = [("Content-MD5", digest.as_bytes())];
        let content = Content::Bytes(document.as_bytes());
        // Ours are deleted although they are locked, as far as that can be: servers without locks do not look at it.
        let bypass: [(&str, &[u8]); 1] = [("x-amz-bypass-governance-retention", b"true")];
        let request = Request::post(content, 0..document.len() as u64).query(b"delete=").plain(&header);
        let request = if of_versions { request.signed(&bypass) } else { request };
        let mut intake = Intake::keeping();
        let reply = self.request(&request, &mut intake).await?;
        match xml::error(&intake.body) {
            // An object that is not there is as good as deleted.
            Some(error) if !matches!(error.code.as_str(), "NoSuchKey" | "NoSuchVersion") => {
                Err(refusal::of_key(&error))
            }
            _ => Ok(reply),
        }
    }

    /// Lists the bucket: the first page, or all of them. What is listed is not looked at.
    pub(super) async fn list(
        &mut self,
        task: &Task<'_>,
        page: u32,
        all: bool,
        by_object: bool,
    ) -> Result<Done, Failure> {
        let names = &task.action.names;
        let mut prefix = Vec::new();
        if by_object {
            names.push_object(&mut prefix, task.operation.item);
        } else {
            prefix.extend_from_slice(names.object_prefix().as_bytes());
        }
        let prefix = encode(&decode(&prefix), false);
        let (mut token, mut first_byte, mut bytes) = (None, None, 0);
        loop {
            let query = listing(&prefix, page, token.as_deref());
            let mut intake = if all { Intake::keeping() } else { Intake::default() };
            let reply = self.request(&Request::get().query(query.as_bytes()), &mut intake).await?;
            let read = Done::reading(&reply);
            first_byte = first_byte.or(read.first_byte);
            bytes += read.bytes;
            let next = xml::next_page(&intake.body);
            if next.is_none() {
                return Ok(Done { first_byte, ..Done::at(read.at, bytes) });
            }
            // Whoever is sent in a circle would ask for ever.
            if next == token {
                let text = "the listing continues with the token that was sent";
                return Err(Failure::without_effect(Fault::Protocol, text));
            }
            token = next;
        }
    }

    /// Sends one request, begun now, on the slot's own connection.
    pub(super) async fn request(
        &mut self,
        request: &Request<'_>,
        intake: &mut Intake<'_>,
    ) -> Result<Reply, Failure> {
        let now = self.sender.now();
        self.sender.send(&mut self.clients[0], &self.address, request, intake, now).await
    }
}

/// Whether a failure may mean that a server has no versions to list, or does not show them. Whether any were left, the
/// deletion of the bucket tells.
fn knows_no_versions(failure: &Failure) -> bool {
    matches!(failure.fault, Fault::ClientError | Fault::ServerError | Fault::Protocol | Fault::Denied)
}

impl Lists for Slot {
    async fn page(
        &mut self,
        bucket: &str,
        prefix: &str,
        most: u64,
        after: Option<&str>,
    ) -> Result<Page, Failure> {
        let name = encode(bucket, false);
        self.address.begin(&self.sender, &self.clients[0], |out| out.extend_from_slice(name.as_bytes()));
        let query = listing(&encode(prefix, false), most.min(u64::from(KEYS_MOST)) as u32, after);
        let mut intake = Intake::keeping();
        self.request(&Request::get().query(query.as_bytes()), &mut intake).await?;
        let objects = xml::objects(&intake.body)
            .ok_or_else(|| Failure::in_doubt(Fault::Protocol, "the listing is not valid XML"))?;
        Ok(Page { objects, next: xml::next_page(&intake.body) })
    }
}

/// The query of a listing: of names with a percent-encoded prefix, from where a page before it ended.
pub(super) fn listing(prefix: &str, most: u32, token: Option<&str>) -> String {
    let token =
        token.map_or_else(String::new, |token| format!("continuation-token={}&", encode(token, false)));
    let prefix = if prefix.is_empty() { String::new() } else { format!("&prefix={prefix}") };
    format!("{token}list-type=2&max-keys={most}{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emptying::Limits;
    use crate::job::{Http, S3};
    use crate::s3::slots;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;
    use tidemark_load::engine::Clock;
    use tidemark_reactor::Reactor;

    /// Reports every deletion done, and answers any other request with what `list` makes of its number.
    fn answer(mut stream: TcpStream, list: fn(usize) -> String, lists: &AtomicUsize) -> Option<()> {
        loop {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).ok()?;
                head.push(byte[0]);
            }
            // The body of a deletion is read as the beginning of the next request.
            let body = match String::from_utf8_lossy(&head).contains("POST ") {
                true => String::new(),
                false => list(lists.fetch_add(1, Ordering::Relaxed)),
            };
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
        }
    }

    /// A slot at a bucket of a server with such listings, which may list 10 objects; the number of its listings.
    fn slot(list: fn(usize) -> String) -> (Rc<Reactor>, Slot, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let lists = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lists);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(stream, list, &counted);
            }
        });
        let target = S3 {
            http: Http { endpoints: vec![url], ..Http::default() },
            access_key: "KEY".into(),
            secret_key: "SECRET".into(),
            session_token: None,
            region: "us-east-1".into(),
            path_style: true,
            sign_payload: false,
            storage_class: None,
            encryption: None,
        };
        let reactor = Reactor::new(Clock::starting_at(Instant::now()), target.http.timeout_ns).unwrap();
        let (_, mut slot) = slots(&Arc::new(target), &reactor).unwrap().remove(0);
        slot.limits = Limits { objects: 10, ..Limits::default() };
        slot.address.begin(&slot.sender, &slot.clients[0], |out| out.extend_from_slice(b"b"));
        (reactor, slot, lists)
    }

    #[test]
    fn a_bucket_that_lists_new_objects_for_ever_is_left() {
        let (reactor, mut slot, lists) = slot(|number| {
            let keys: String =
                (0..5).map(|key| format!("<Contents><Key>{number}-{key}</Key></Contents>")).collect();
            format!("<ListBucketResult>{keys}</ListBucketResult>")
        });
        let failure = reactor.block_on(slot.empty_bucket()).unwrap_err();
        assert!(failure.text.starts_with("after 10 deletions the server lists still more"), "{failure:?}");
        assert_eq!(lists.load(Ordering::Relaxed), 3, "two pages are deleted, the third is beyond the limit");
    }

    #[test]
    fn an_object_that_has_new_versions_for_ever_is_left() {
        let (reactor, mut slot, lists) = slot(|number| {
            let version = |id| format!("<Version><Key>k</Key><VersionId>{number}-{id}</VersionId></Version>");
            let versions: String = (0..5).map(version).collect();
            format!("<ListVersionsResult><IsTruncated>true</IsTruncated>{versions}</ListVersionsResult>")
        });
        let failure = reactor.block_on(slot.delete_versions("k", Some("k"))).unwrap_err();
        assert!(failure.text.starts_with("after 10 deletions the server lists still more"), "{failure:?}");
        assert_eq!(lists.load(Ordering::Relaxed), 3, "two pages are deleted, the third is beyond the limit");
    }
}
