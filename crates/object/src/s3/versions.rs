//! Versions of objects: kept by a bucket, and deleted with their delete markers.

use super::request::{Request, content_md5};
use super::{Slot, xml};
use crate::client::Content;
use crate::emptying::Emptying;
use crate::failure::Failure;
use crate::operate::{Done, Intake, Task};
use crate::text::{decode, encode};
use tidemark_measure::fault::Fault;

/// Versions that are deleted in one request. The protocol allows 1000, but the RADOS gateway (16.2) takes longer than some
/// timeouts for a thousand versions of one object.
const VERSIONS_MOST: u32 = 100;

impl Slot {
    /// Has the bucket keep versions. A server that does not know the request may take it for another and report success, so
    /// it is asked.
    pub(super) async fn keep_versions(&mut self) -> Result<Done, Failure> {
        let document = xml::versioning();
        let digest = content_md5(&document);
        let header: [(&str, &[u8]); 1] = [("Content-MD5", digest.as_bytes())];
        let content = Content::Bytes(document.as_bytes());
        let request = Request::put(content, 0..document.len() as u64).query(b"versioning=").plain(&header);
        self.request(&request, &mut Intake::default()).await?;
        let mut intake = Intake::keeping();
        let reply = self.request(&Request::get().query(b"versioning="), &mut intake).await?;
        match xml::text_of(&intake.body, "Status").as_deref() {
            Some("Enabled") => Ok(Done::after(&reply, 0)),
            _ => {
                let text =
                    "the server took the request to keep versions, but the container does not keep them";
                Err(Failure::without_effect(Fault::Protocol, text))
            }
        }
    }

    /// Sees that the bucket locks versions: one that exists cannot be made to.
    pub(super) async fn has_locks(&mut self) -> Result<Done, Failure> {
        let mut intake = Intake::keeping();
        let asked = self.request(&Request::get().query(b"object-lock="), &mut intake).await;
        let enabled = xml::text_of(&intake.body, "ObjectLockEnabled").is_some_and(|text| text == "Enabled");
        match asked {
            Ok(reply) if enabled => Ok(Done::after(&reply, 0)),
            Err(failure) if !matches!(failure.fault, Fault::NotFound | Fault::ClientError) => Err(failure),
            _ => {
                let text = "the container has no object lock: it was there before, or the server ignores the request";
                Err(Failure::without_effect(Fault::Protocol, text))
            }
        }
    }

    /// Deletes all versions and delete markers of an object; one that has none is a success.
    pub(super) async fn clear_versions(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let mut name = Vec::new();
        task.action.names.push_object(&mut name, task.operation.item);
        let key = decode(&name);
        self.address.bucket();
        self.delete_versions(&encode(&key, false), Some(&key)).await?;
        Ok(Done::at(self.sender.now(), 0))
    }

    /// Deletes the versions and delete markers of all objects whose names begin with a percent-encoded prefix, or only those
    /// of `key`, which are the first of them.
    pub(super) async fn delete_versions(&mut self, prefix: &str, key: Option<&str>) -> Result<(), Failure> {
        let prefix = if prefix.is_empty() { String::new() } else { format!("&prefix={prefix}") };
        let query = format!("max-keys={VERSIONS_MOST}{prefix}&versions=");
        let mut emptying = Emptying::begin(self.limits, self.sender.now());
        let mut deleted = Vec::new();
        loop {
            // What was listed is deleted before the next listing: every one begins at the beginning.
            let mut intake = Intake::keeping();
            self.request(&Request::get().query(query.as_bytes()), &mut intake).await?;
            let Some((listed, more)) = xml::versions(&intake.body) else {
                return Err(Failure::in_doubt(Fault::Protocol, "the reply is no valid listing of versions"));
            };
            // One that ignores versions in deletions would have no end: each makes a delete marker more.
            if let Some(left) = listed.iter().find(|version| deleted.contains(*version)) {
                let text = format!(
                    "the server reported version {} of {} deleted, and still has it",
                    left.id, left.key
                );
                return Err(Failure::without_effect(Fault::Protocol, text));
            }
            let ours = listed.iter().filter(|version| key.is_none_or(|key| key == version.key));
            let ours: Vec<_> = ours.map(|version| (&*version.key, Some(&*version.id))).collect();
            emptying.page(ours.len(), self.sender.now())?;
            if !ours.is_empty() {
                self.delete_keys(ours.iter().copied()).await?;
            }
            if !more || ours.is_empty() || ours.len() < listed.len() {
                return Ok(());
            }
            deleted = listed;
        }
    }
}
