//! The S3 interface that `s3s` calls, one line per operation. What an operation does is in the module of its subject.

use std::sync::Arc;

use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result};

use crate::store::Store;
use crate::{buckets, listing, multipart, objects, tagging};

/// Answers S3 operations out of a store.
pub(super) struct Service {
    pub(super) store: Arc<Store>,
    pub(super) minimum_part_bytes: u64,
}

/// An operation's answer with nothing but its output.
type Answer<T> = S3Result<S3Response<T>>;

#[async_trait::async_trait]
impl S3 for Service {
    async fn list_buckets(&self, request: S3Request<ListBucketsInput>) -> Answer<ListBucketsOutput> {
        Ok(S3Response::new(buckets::list(&self.store, request.input)))
    }

    async fn create_bucket(&self, request: S3Request<CreateBucketInput>) -> Answer<CreateBucketOutput> {
        buckets::create(&self.store, request.input).await.map(S3Response::new)
    }

    async fn head_bucket(&self, request: S3Request<HeadBucketInput>) -> Answer<HeadBucketOutput> {
        buckets::head(&self.store, &request.input).map(S3Response::new)
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> Answer<GetBucketLocationOutput> {
        buckets::location(&self.store, &request.input).map(S3Response::new)
    }

    async fn delete_bucket(&self, request: S3Request<DeleteBucketInput>) -> Answer<DeleteBucketOutput> {
        buckets::delete(&self.store, request.input).await.map(S3Response::new)
    }

    async fn list_objects(&self, request: S3Request<ListObjectsInput>) -> Answer<ListObjectsOutput> {
        listing::list_objects(&self.store, request.input).map(S3Response::new)
    }

    async fn list_objects_v2(&self, request: S3Request<ListObjectsV2Input>) -> Answer<ListObjectsV2Output> {
        listing::list_objects_v2(&self.store, request.input).map(S3Response::new)
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> Answer<PutObjectOutput> {
        objects::put(&self.store, request).await.map(S3Response::new)
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> Answer<GetObjectOutput> {
        objects::get(&self.store, request.input).await.map(S3Response::new)
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> Answer<HeadObjectOutput> {
        objects::head(&self.store, &request.input).map(S3Response::new)
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> Answer<DeleteObjectOutput> {
        objects::delete(&self.store, request.input).await.map(S3Response::new)
    }

    async fn delete_objects(&self, request: S3Request<DeleteObjectsInput>) -> Answer<DeleteObjectsOutput> {
        objects::delete_many(&self.store, request.input).await.map(S3Response::new)
    }

    async fn copy_object(&self, request: S3Request<CopyObjectInput>) -> Answer<CopyObjectOutput> {
        objects::copy(&self.store, request.input).await.map(S3Response::new)
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> Answer<CreateMultipartUploadOutput> {
        multipart::begin(&self.store, request.input).map(S3Response::new)
    }

    async fn upload_part(&self, request: S3Request<UploadPartInput>) -> Answer<UploadPartOutput> {
        multipart::upload_part(&self.store, request).await.map(S3Response::new)
    }

    async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> Answer<UploadPartCopyOutput> {
        multipart::copy_part(&self.store, request.input).await.map(S3Response::new)
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> Answer<CompleteMultipartUploadOutput> {
        multipart::complete(&self.store, request.input, self.minimum_part_bytes).await.map(S3Response::new)
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> Answer<AbortMultipartUploadOutput> {
        multipart::abort(&self.store, request.input).await.map(S3Response::new)
    }

    async fn list_parts(&self, request: S3Request<ListPartsInput>) -> Answer<ListPartsOutput> {
        multipart::list_parts(&self.store, request.input).map(S3Response::new)
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> Answer<ListMultipartUploadsOutput> {
        multipart::list_uploads(&self.store, request.input).map(S3Response::new)
    }

    async fn put_object_tagging(
        &self,
        request: S3Request<PutObjectTaggingInput>,
    ) -> Answer<PutObjectTaggingOutput> {
        tagging::put(&self.store, request.input).await.map(S3Response::new)
    }

    async fn get_object_tagging(
        &self,
        request: S3Request<GetObjectTaggingInput>,
    ) -> Answer<GetObjectTaggingOutput> {
        tagging::get(&self.store, &request.input).map(S3Response::new)
    }

    async fn delete_object_tagging(
        &self,
        request: S3Request<DeleteObjectTaggingInput>,
    ) -> Answer<DeleteObjectTaggingOutput> {
        tagging::delete(&self.store, request.input).await.map(S3Response::new)
    }
}
