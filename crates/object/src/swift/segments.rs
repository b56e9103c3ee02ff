//! Uploads in parts: static large objects.

use super::link::Request;
use super::{Slot, container_path};
use crate::client::{Body, Client, Content};
use crate::failure::Failure;
use crate::operate::{Done, Intake, Task, in_parallel};
use crate::text::decode;
use std::cell::RefCell;
use std::rc::Rc;
use tidemark_measure::fault::Fault;

/// Most segments that a manifest may name, as Swift comes.
const SEGMENTS_MOST: u64 = 1000;

/// A segment that was written: its ETag and its size.
type Written = Option<(String, u64)>;

impl Slot {
    /// Writes `bytes` of content in segments of `part_bytes`, up to `parallel` at once, and then the manifest.
    pub(super) async fn upload(
        &mut self,
        task: &Task<'_>,
        name: &[u8],
        content: Content<'_>,
        bytes: u64,
        part_bytes: u64,
        parallel: u32,
    ) -> Result<Done, Failure> {
        let part_bytes = part_bytes.max(1);
        let count = bytes.div_ceil(part_bytes).max(1);
        if count > SEGMENTS_MOST {
            let text = format!(
                "{count} segments exceed the limit of a manifest ({SEGMENTS_MOST}): use larger parts"
            );
            return Err(Failure::without_effect(Fault::Local, text));
        }
        self.link.follow(&self.account);
        let written: RefCell<Vec<Written>> = RefCell::new(vec![None; count as usize]);
        let (link, reactor) = (&self.link, Rc::clone(self.clients[0].reactor()));
        let workers = u64::from(parallel).clamp(1, count) as usize;
        while self.clients.len() < workers {
            let another = Client::new(&reactor, self.clients[0].endpoint(), &self.target.http);
            self.clients.push(another);
        }
        in_parallel(&mut self.clients[..workers], count, async |client: &mut Client, part| {
            let range = part * part_bytes..bytes.min((part + 1) * part_bytes);
            let size = range.end - range.start;
            let request = Request::new("PUT", |out| segment_path(task, name, part, out));
            let mut intake = Intake::default().wanting("ETag");
            let mut body = Body::content(content, range);
            link.send(client, reactor.now(), &request, &mut body, &mut intake).await?;
            let etag = intake.header.unwrap_or_default().trim_matches('"').to_owned();
            written.borrow_mut()[part as usize] = Some((etag, size));
            Ok(())
        })
        .await?;
        let manifest = manifest(task, name, &written.into_inner());
        let request = Request::new("PUT", |out| {
            container_path(task, out);
            out.push(b'/');
            out.extend_from_slice(name);
            out.extend_from_slice(b"?multipart-manifest=put");
        });
        let mut body = Body::bytes(manifest.as_bytes());
        let reply = self.send_body(reactor.now(), &request, &mut body, &mut Intake::default()).await?;
        Ok(Done::after(&reply, bytes))
    }
}

fn segment_path(task: &Task<'_>, name: &[u8], part: u64, out: &mut Vec<u8>) {
    container_path(task, out);
    out.push(b'/');
    out.extend_from_slice(name);
    out.extend_from_slice(format!("/slo/{part:06}").as_bytes());
}

/// The manifest: JSON, with the names percent-encoded no more.
fn manifest(task: &Task<'_>, name: &[u8], written: &[Written]) -> String {
    let mut path = Vec::new();
    let entries = (0u64..).zip(written).filter_map(|(part, segment)| {
        let (etag, size) = segment.as_ref()?;
        path.clear();
        segment_path(task, name, part, &mut path);
        let path = decode(&path);
        Some(serde_json::json!({ "path": path, "etag": etag, "size_bytes": size }))
    });
    serde_json::Value::from_iter(entries).to_string()
}
