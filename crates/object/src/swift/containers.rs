//! What is done to containers: made, listed, emptied, deleted; and the deletion of many objects.

use super::link::Request;
use super::{Slot, container_path};
use crate::client::Body;
use crate::emptying::Emptying;
use crate::existing::{Lists, Page};
use crate::failure::Failure;
use crate::job::Emptied;
use crate::operate::{Done, Intake, Task, not_empty};
use crate::text::{encode, push_decimal};
use serde::Deserialize;
use std::sync::Arc;
use tidemark_measure::fault::Fault;

/// Names per request when a container is emptied; also the limit of one bulk deletion.
const PAGE: u32 = 1000;

/// How often a container is emptied anew when it is not empty yet: listings lag behind deletions.
const ROUNDS: u32 = 5;

impl Slot {
    pub(super) async fn create_container(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let target = Arc::clone(&self.target);
        let header = target.policy.as_ref().map(|policy| ("X-Storage-Policy", policy.as_bytes()));
        let request = Request::new("PUT", |out| container_path(task, out)).headers(header.as_slice());
        let reply = self.send_body(task.now, &request, &mut Body::bytes(&[]), &mut Intake::default()).await?;
        Ok(Done::after(&reply, 0))
    }

    /// Deletes the container, and all that is in it first if it is to be emptied; one that does not exist is a success.
    pub(super) async fn delete_container(
        &mut self,
        task: &Task<'_>,
        empty: &Emptied,
    ) -> Result<Done, Failure> {
        let name = task.container();
        let empty = empty.covers(&name);
        let mut rounds = if empty { ROUNDS } else { 0 };
        let mut emptying = Emptying::begin(self.limits, self.now());
        loop {
            if rounds > 0 {
                match self.empty_container(task, &mut emptying).await {
                    Err(failure) if failure.fault == Fault::NotFound => {}
                    emptied => emptied?,
                }
            }
            let request = Request::new("DELETE", |out| container_path(task, out));
            let now = self.now();
            match self.send(now, &request, &mut Intake::default()).await {
                Ok(reply) => return Ok(Done::after(&reply, 0)),
                Err(failure) if failure.fault == Fault::NotFound => {
                    let at = self.now();
                    return Ok(Done::at(at, 0));
                }
                Err(failure) if failure.fault == Fault::Conflict && rounds > 1 => rounds -= 1,
                Err(failure) if failure.fault == Fault::Conflict && !empty => {
                    return Err(not_empty(&failure, "swift", &name));
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn empty_container(&mut self, task: &Task<'_>, emptying: &mut Emptying) -> Result<(), Failure> {
        let mut marker = String::new();
        loop {
            let mut intake = Intake::keeping();
            let now = self.now();
            let request = Request::new("GET", |out| listing_path(task, PAGE, "", &marker, out));
            self.send(now, &request, &mut intake).await?;
            let page = String::from_utf8_lossy(&intake.body).into_owned();
            let names: Vec<String> = page.lines().map(|name| encode(name, true)).collect();
            let Some(last) = names.last() else { return Ok(()) };
            marker.clone_from(last);
            emptying.page(names.len(), self.now())?;
            self.delete_all(task, &names).await?;
        }
    }

    /// Deletes `count` objects, numbered from the task's own on.
    pub(super) async fn delete_numbered(&mut self, task: &Task<'_>, count: u32) -> Result<Done, Failure> {
        let first = task.operation.item;
        let name = |item| {
            let mut name = Vec::new();
            task.action.names.push_object(&mut name, item);
            String::from_utf8_lossy(&name).into_owned()
        };
        let names: Vec<_> = (first..first.saturating_add(u64::from(count))).map(name).collect();
        for names in names.chunks(PAGE as usize) {
            self.delete_all(task, names).await?;
        }
        Ok(Done::at(self.now(), 0))
    }

    /// Deletes objects by their encoded names; those that do not exist are no failure.
    async fn delete_all(&mut self, task: &Task<'_>, names: &[String]) -> Result<(), Failure> {
        if self.bulk != Some(false) {
            match self.delete_in_bulk(task, names).await {
                Err(failure) if self.bulk.is_none() && says_no_bulk(&failure) => self.bulk = Some(false),
                deleted => {
                    self.bulk = Some(true);
                    return deleted;
                }
            }
        }
        for name in names {
            let now = self.now();
            let request = Request::new("DELETE", |out| {
                container_path(task, out);
                out.push(b'/');
                out.extend_from_slice(name.as_bytes());
            });
            match self.send(now, &request, &mut Intake::default()).await {
                Err(failure) if failure.fault != Fault::NotFound => return Err(failure),
                _ => {}
            }
        }
        Ok(())
    }

    async fn delete_in_bulk(&mut self, task: &Task<'_>, names: &[String]) -> Result<(), Failure> {
        let mut list = Vec::new();
        for name in names {
            // Without the slash before the container: the gateway takes it for a part of the name.
            let start = list.len();
            container_path(task, &mut list);
            list.remove(start);
            list.push(b'/');
            list.extend_from_slice(name.as_bytes());
            list.push(b'\n');
        }
        let headers: [(&str, &[u8]); 2] = [("Content-Type", b"text/plain"), ("Accept", b"application/json")];
        let request = Request::new("POST", |out| out.extend_from_slice(b"?bulk-delete")).headers(&headers);
        let mut intake = Intake::keeping();
        let now = self.now();
        self.send_body(now, &request, &mut Body::bytes(&list), &mut intake).await?;
        judge_bulk(&intake.body)
    }

    pub(super) async fn list(
        &mut self,
        task: &Task<'_>,
        page: u32,
        all: bool,
        by_object: bool,
    ) -> Result<Done, Failure> {
        let mut prefix = Vec::new();
        if by_object {
            task.action.names.push_object(&mut prefix, task.operation.item);
        } else {
            prefix.extend_from_slice(task.action.names.object_prefix().as_bytes());
        }
        let prefix = String::from_utf8_lossy(&prefix).replace('/', "%2F");
        let (mut bytes, mut first_byte, mut marker, mut now) = (0, None, String::new(), task.now);
        loop {
            let mut intake = Intake::keeping();
            let request = Request::new("GET", |out| listing_path(task, page, &prefix, &marker, out));
            let reply = self.send(now, &request, &mut intake).await?;
            bytes += reply.received;
            first_byte = first_byte.or(Done::reading(&reply).first_byte);
            let last = intake.body.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
            if !all || last.is_empty() {
                return Ok(Done { first_byte, ..Done::at(reply.done, bytes) });
            }
            marker = encode(&String::from_utf8_lossy(last), false);
            now = reply.done;
        }
    }
}

impl Lists for Slot {
    async fn page(
        &mut self,
        container: &str,
        prefix: &str,
        most: u64,
        after: Option<&str>,
    ) -> Result<Page, Failure> {
        #[derive(Deserialize)]
        struct Entry {
            name: String,
            bytes: u64,
        }
        let path = format!(
            "/{}?format=json&limit={}&prefix={}&marker={}",
            encode(container, false),
            most.min(u64::from(PAGE)),
            encode(prefix, false),
            encode(after.unwrap_or_default(), false)
        );
        let mut intake = Intake::keeping();
        let now = self.now();
        let request = Request::new("GET", |out| out.extend_from_slice(path.as_bytes()));
        self.send(now, &request, &mut intake).await?;
        let body = intake.body.trim_ascii();
        // An empty listing may come as 204, without a body.
        let entries = if body.is_empty() { Ok(Vec::new()) } else { serde_json::from_slice(body) };
        let entries: Vec<Entry> =
            entries.map_err(|_| Failure::in_doubt(Fault::Protocol, "the listing is not valid JSON"))?;
        let next = entries.last().map(|last| last.name.clone());
        Ok(Page { objects: entries.into_iter().map(|one| (one.name, one.bytes)).collect(), next })
    }
}

fn listing_path(task: &Task<'_>, page: u32, prefix: &str, marker: &str, out: &mut Vec<u8>) {
    container_path(task, out);
    out.extend_from_slice(b"?format=plain&limit=");
    push_decimal(out, u64::from(page));
    for (name, value) in [("&prefix=", prefix), ("&marker=", marker)] {
        if !value.is_empty() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(value.as_bytes());
        }
    }
}

/// Whether a refusal means that the server has no bulk deletion, or not at this place.
fn says_no_bulk(failure: &Failure) -> bool {
    matches!(failure.fault, Fault::ClientError | Fault::NotFound | Fault::Precondition | Fault::Denied)
        || failure.status == Some(501)
}

/// What a bulk deletion did: its status is always 200, the truth is in the body.
fn judge_bulk(body: &[u8]) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Told {
        #[serde(rename = "Response Status")]
        status: String,
        #[serde(default, rename = "Errors")]
        errors: Vec<(String, String)>,
    }
    let Ok(told) = serde_json::from_slice::<Told>(body.trim_ascii()) else {
        return Err(Failure::in_doubt(Fault::Protocol, "cannot read the reply to a bulk deletion"));
    };
    let failed = |text: &str| {
        let status = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
        Failure { in_doubt: true, ..Failure::status(status, format!("bulk deletion: {text}")) }
    };
    match told.errors.iter().find(|(_, status)| !status.starts_with("404")) {
        Some((name, status)) => Err(failed(&format!("{status} {name}"))),
        None if told.status.starts_with('2') || !told.errors.is_empty() => Ok(()),
        None => Err(failed(&told.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::DataSet;
    use crate::emptying::Limits;
    use crate::job::{Action, Content, Form, Http, Naming, Swift, SwiftAuth, Verb};
    use crate::operate::Prepared;
    use crate::swift::enter;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;
    use tidemark_load::engine::{Clock, Operation};
    use tidemark_reactor::Reactor;

    /// Reports every deletion done, and answers any other request of one connection with five new names.
    fn serve(listener: &TcpListener, lists: &AtomicUsize) -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        loop {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte)?;
                head.push(byte[0]);
            }
            // The body of a deletion is read as the beginning of the next request.
            let body = match String::from_utf8_lossy(&head).contains("POST ") {
                true => "{\"Response Status\": \"200 OK\", \"Errors\": []}".to_owned(),
                false => {
                    let number = lists.fetch_add(1, Ordering::Relaxed);
                    (0..5).map(|name| format!("{number}-{name}\n")).collect()
                }
            };
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
        }
    }

    #[test]
    fn a_container_that_lists_new_objects_for_ever_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let lists = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lists);
        std::thread::spawn(move || serve(&listener, &counted));
        let auth = SwiftAuth::Token { token: "t".into(), storage_url: format!("{url}/v1/a") };
        let target = Arc::new(Swift { auth, http: Http::default(), policy: None });
        let reactor = Reactor::new(Clock::starting_at(Instant::now()), target.http.timeout_ns).unwrap();
        let (account, places) = enter(&target).unwrap();
        let mut slot = Slot::new(&target, &Arc::new(account), &places[0], &reactor);
        slot.limits = Limits { objects: 10, ..Limits::default() };
        let verb = Verb::DeleteContainer { empty: Emptied::Always };
        let content = Content { form: Form::Zero, verify: false };
        let action = Action { verb, naming: Naming::default(), content };
        let actions = Prepared::all(&[action], &DataSet::new(0, 0, 0, Default::default())).unwrap();
        let task = Task::untracked(&actions[0], Operation::default(), reactor.now());
        let failure = reactor.block_on(slot.delete_container(&task, &Emptied::Always)).unwrap_err();
        assert!(failure.text.starts_with("after 10 deletions the server lists still more"), "{failure:?}");
        assert_eq!(lists.load(Ordering::Relaxed), 3, "two pages are deleted, the third is beyond the limit");
    }

    #[test]
    fn the_truth_of_a_bulk_deletion_is_in_its_body() {
        let judge = |status: &str, errors: &str| {
            let body =
                format!("{{\"Number Deleted\": 1, \"Response Status\": \"{status}\", \"Errors\": {errors}}}");
            judge_bulk(body.as_bytes()).map_err(|failure| failure.fault)
        };
        assert_eq!(judge("200 OK", "[]"), Ok(()));
        assert_eq!(judge("400 Bad Request", "[[\"/c/o\", \"404 Not Found\"]]"), Ok(()));
        assert_eq!(judge("400 Bad Request", "[[\"/c/o\", \"403 Forbidden\"]]"), Err(Fault::Denied));
        assert_eq!(judge("502 Bad Gateway", "[]"), Err(Fault::ServerError));
        assert_eq!(judge_bulk(b"<html>").map_err(|failure| failure.fault), Err(Fault::Protocol));
    }
}
