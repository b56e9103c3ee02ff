//! Storage that keeps nothing.

use async_trait::async_trait;
use futures_util::stream::{BoxStream, StreamExt as _, empty};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use std::fmt;

/// It takes everything, and has nothing.
#[derive(Debug)]
pub(crate) struct Void;

const TAKEN: PutResult = PutResult { e_tag: None, version: None };

fn nothing<T>() -> Result<T> {
    Err(Error::NotSupported { source: "a null store has nothing".into() })
}

impl fmt::Display for Void {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("null store")
    }
}

#[async_trait]
impl ObjectStore for Void {
    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Ok(TAKEN)
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Void))
    }

    async fn get_opts(&self, _: &Path, _: GetOptions) -> Result<GetResult> {
        nothing()
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        locations
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        empty().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        nothing()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        nothing()
    }
}

#[async_trait]
impl MultipartUpload for Void {
    fn put_part(&mut self, _: PutPayload) -> UploadPart {
        Box::pin(async { Ok(()) })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        Ok(TAKEN)
    }

    async fn abort(&mut self) -> Result<()> {
        Ok(())
    }
}
