//! Multipart uploads: begun, their parts sent in parallel, completed; aborted when a part fails.

use super::encryption::Concern;
use super::request::{Address, Request};
use super::{Slot, refusal, xml};
use crate::client::{Client, Content, Reply};
use crate::failure::Failure;
use crate::operate::{Done, Intake, Task, in_parallel};
use crate::text::encode;
use std::cell::RefCell;
use tidemark_measure::fault::Fault;

/// Most parts of an upload, by the protocol.
const PARTS_MOST: u64 = 10_000;

impl Slot {
    /// Uploads content of `bytes` bytes to the slot's address in parts.
    pub(super) async fn upload(
        &mut self,
        task: &Task<'_>,
        content: Content<'_>,
        bytes: u64,
        part_bytes: u64,
        parallel: u32,
    ) -> Result<Done, Failure> {
        let part_bytes = part_bytes.max(1);
        // An empty object is an upload of one empty part.
        let parts = bytes.div_ceil(part_bytes).max(1);
        if parts > PARTS_MOST {
            let text = format!("{parts} parts of {part_bytes} bytes: the limit is 10,000; use larger parts");
            return Err(Failure::without_effect(Fault::Local, text));
        }
        let mut intake = Intake::keeping();
        let begin = Request::post(Content::Bytes(&[]), 0..0).query(b"uploads=").that(Concern::Writes);
        self.send(task, &begin, &mut intake).await?;
        let Some(upload) = xml::text_of(&intake.body, "UploadId").filter(|upload| !upload.is_empty()) else {
            return Err(Failure::in_doubt(Fault::Protocol, "the reply to a new upload has no UploadId"));
        };
        let upload = encode(&upload, false);
        let sent = self.send_parts((content, bytes), part_bytes, parts, parallel, &upload).await;
        let completed = match sent {
            Ok(tags) => self.complete(&upload, &tags).await,
            Err(failure) => Err(failure),
        };
        match completed {
            Ok(reply) => Ok(Done::after(&reply, bytes)),
            Err(failure) => {
                // Parts left behind cost space; whether this succeeds changes nothing about the failure.
                let query = format!("uploadId={upload}");
                let abort = Request::delete().query(query.as_bytes());
                let (client, now) = (&mut self.clients[0], self.sender.now());
                let _ = self.sender.send(client, &self.address, &abort, &mut Intake::default(), now).await;
                Err(failure)
            }
        }
    }

    /// Sends the parts; gives their entity tags.
    async fn send_parts(
        &mut self,
        (content, bytes): (Content<'_>, u64),
        part_bytes: u64,
        parts: u64,
        parallel: u32,
        upload: &str,
    ) -> Result<Vec<String>, Failure> {
        let slots = u64::from(parallel.max(1)).min(parts) as usize;
        while self.clients.len() < slots {
            let another = Client::new(
                self.clients[0].reactor(),
                self.clients[0].endpoint(),
                &self.sender.target().http,
            );
            self.clients.push(another);
        }
        let tags = RefCell::new(vec![String::new(); parts as usize]);
        let (sender, address): (_, &Address) = (&self.sender, &self.address);
        let send = async |client: &mut Client, part: u64| {
            let range = part * part_bytes..bytes.min((part + 1) * part_bytes);
            let query = format!("partNumber={}&uploadId={upload}", part + 1);
            let request = Request::put(content, range).query(query.as_bytes()).that(Concern::Continues);
            let mut intake = Intake::default().wanting("etag");
            sender.send(client, address, &request, &mut intake, sender.now()).await?;
            match intake.header.take() {
                Some(tag) => {
                    tags.borrow_mut()[part as usize] = tag;
                    Ok(())
                }
                None => Err(Failure::in_doubt(Fault::Protocol, "the reply to a part has no ETag")),
            }
        };
        in_parallel(&mut self.clients[..slots], parts, send).await?;
        Ok(tags.into_inner())
    }

    /// Makes an object of the parts.
    async fn complete(&mut self, upload: &str, tags: &[String]) -> Result<Reply, Failure> {
        let document = xml::completion(tags);
        let query = format!("uploadId={upload}");
        let content = Content::Bytes(document.as_bytes());
        let request = Request::post(content, 0..document.len() as u64).query(query.as_bytes());
        let mut intake = Intake::keeping();
        let (client, now) = (&mut self.clients[0], self.sender.now());
        let reply = self.sender.send(client, &self.address, &request, &mut intake, now).await?;
        refusal::hidden(&intake.body)?;
        Ok(reply)
    }
}
