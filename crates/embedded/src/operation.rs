//! Which S3 operation a request asks for, read from its method, path, query and headers.

use hyper::http::request::Parts;
use hyper::{Method, Uri};

macro_rules! operations {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// An S3 operation, named as in the S3 API reference.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Operation { $($(#[doc = $doc])+ $name,)+ }

        impl Operation {
            /// Every operation, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The name in the S3 API reference, such as `PutObject`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

operations! {
    /// The names of all buckets.
    ListBuckets,
    /// A new bucket.
    CreateBucket,
    /// Whether a bucket exists.
    HeadBucket,
    /// The end of an empty bucket.
    DeleteBucket,
    /// One page of keys, first version of the call.
    ListObjects,
    /// One page of keys, second version of the call.
    ListObjectsV2,
    /// A whole object, stored.
    PutObject,
    /// An object or a range of it.
    GetObject,
    /// An object's headers.
    HeadObject,
    /// One object, removed.
    DeleteObject,
    /// Up to 1000 objects, removed.
    DeleteObjects,
    /// An object, copied inside the store.
    CopyObject,
    /// The start of a multipart upload.
    CreateMultipartUpload,
    /// One part, sent.
    UploadPart,
    /// One part, copied from an object.
    UploadPartCopy,
    /// The parts, joined into an object.
    CompleteMultipartUpload,
    /// The parts, discarded.
    AbortMultipartUpload,
    /// The parts sent so far.
    ListParts,
    /// The uploads that have neither been completed nor aborted.
    ListMultipartUploads,
    /// An object's tags, replaced.
    PutObjectTagging,
    /// An object's tags.
    GetObjectTagging,
    /// An object's tags, removed.
    DeleteObjectTagging,
    /// Anything else.
    Other,
}

impl Operation {
    /// The operation a path-style request asks for.
    ///
    /// This repeats what `s3s` decides later, because faults and counters come before it and must also see
    /// requests that it refuses.
    pub(super) fn of(request: &Parts) -> Self {
        let path = request.uri.path().trim_start_matches('/');
        match path.split_once('/') {
            None if path.is_empty() => match request.method {
                Method::GET => Self::ListBuckets,
                _ => Self::Other,
            },
            None | Some((_, "")) => Self::of_bucket(&request.method, &request.uri),
            Some(_) => Self::of_object(request),
        }
    }

    fn of_bucket(method: &Method, uri: &Uri) -> Self {
        match *method {
            Method::GET if asks(uri, "uploads") => Self::ListMultipartUploads,
            Method::GET if asks(uri, "list-type=2") => Self::ListObjectsV2,
            Method::GET if BUCKET_SETTINGS.iter().any(|setting| asks(uri, setting)) => Self::Other,
            Method::GET => Self::ListObjects,
            Method::PUT if BUCKET_SETTINGS.iter().any(|setting| asks(uri, setting)) => Self::Other,
            Method::PUT => Self::CreateBucket,
            Method::HEAD => Self::HeadBucket,
            Method::DELETE if BUCKET_SETTINGS.iter().any(|setting| asks(uri, setting)) => Self::Other,
            Method::DELETE => Self::DeleteBucket,
            Method::POST if asks(uri, "delete") => Self::DeleteObjects,
            _ => Self::Other,
        }
    }

    fn of_object(request: &Parts) -> Self {
        let uri = &request.uri;
        let copies = || request.headers.contains_key("x-amz-copy-source");
        // Plain requests must be cheap, so a missing query ends the search early.
        let plain = uri.query().is_none();
        match request.method {
            Method::GET if plain => Self::GetObject,
            Method::GET if asks(uri, "tagging") => Self::GetObjectTagging,
            Method::GET if asks(uri, "uploadId") => Self::ListParts,
            Method::GET if OBJECT_SETTINGS.iter().any(|setting| asks(uri, setting)) => Self::Other,
            Method::GET => Self::GetObject,
            Method::HEAD => Self::HeadObject,
            Method::PUT if asks(uri, "tagging") => Self::PutObjectTagging,
            Method::PUT if asks(uri, "uploadId") && copies() => Self::UploadPartCopy,
            Method::PUT if asks(uri, "uploadId") => Self::UploadPart,
            Method::PUT if OBJECT_SETTINGS.iter().any(|setting| asks(uri, setting)) => Self::Other,
            Method::PUT if copies() => Self::CopyObject,
            Method::PUT => Self::PutObject,
            Method::DELETE if asks(uri, "tagging") => Self::DeleteObjectTagging,
            Method::DELETE if asks(uri, "uploadId") => Self::AbortMultipartUpload,
            Method::DELETE => Self::DeleteObject,
            Method::POST if asks(uri, "uploads") => Self::CreateMultipartUpload,
            Method::POST if asks(uri, "uploadId") => Self::CompleteMultipartUpload,
            _ => Self::Other,
        }
    }
}

/// Queries that turn a request on a bucket into one about a setting this server does not have.
const BUCKET_SETTINGS: &[&str] = &[
    "location",
    "acl",
    "policy",
    "cors",
    "lifecycle",
    "versioning",
    "versions",
    "tagging",
    "encryption",
    "website",
    "notification",
    "replication",
    "logging",
    "object-lock",
    "policyStatus",
    "publicAccessBlock",
    "ownershipControls",
    "requestPayment",
    "accelerate",
    "analytics",
    "inventory",
    "metrics",
    "session",
];

/// The same for objects.
const OBJECT_SETTINGS: &[&str] = &["acl", "attributes", "legal-hold", "retention", "torrent"];

/// Whether the query has this field (`name`) or exactly this field and value (`name=value`).
fn asks(uri: &Uri, field: &str) -> bool {
    uri.query().is_some_and(|query| {
        query.split('&').any(|part| {
            part.strip_prefix(field)
                .is_some_and(|rest| rest.is_empty() || (rest.starts_with('=') && !field.contains('=')))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(method: &str, uri: &str) -> Operation {
        let (parts, ()) = hyper::Request::builder().method(method).uri(uri).body(()).unwrap().into_parts();
        Operation::of(&parts)
    }

    #[test]
    fn requests_are_distinguished() {
        for (method, uri, expected) in [
            ("GET", "/", Operation::ListBuckets),
            ("PUT", "/b", Operation::CreateBucket),
            ("PUT", "/b/", Operation::CreateBucket),
            ("GET", "/b?location", Operation::Other),
            ("GET", "/b?list-type=2&prefix=a", Operation::ListObjectsV2),
            ("GET", "/b?prefix=uploads", Operation::ListObjects),
            ("GET", "/b?uploads", Operation::ListMultipartUploads),
            ("POST", "/b?delete", Operation::DeleteObjects),
            ("POST", "/b?delete=", Operation::DeleteObjects),
            ("GET", "/b/k/with/slashes", Operation::GetObject),
            ("GET", "/b/k?versionId=null", Operation::GetObject),
            ("PUT", "/b/k?partNumber=1&uploadId=u", Operation::UploadPart),
            ("GET", "/b/k?uploadId=u", Operation::ListParts),
            ("POST", "/b/k?uploads", Operation::CreateMultipartUpload),
            ("POST", "/b/k?uploadId=u", Operation::CompleteMultipartUpload),
            ("DELETE", "/b/k?uploadId=u", Operation::AbortMultipartUpload),
            ("DELETE", "/b/k?tagging", Operation::DeleteObjectTagging),
            ("PATCH", "/b/k", Operation::Other),
        ] {
            assert_eq!(operation(method, uri), expected, "{method} {uri}");
        }
    }

    #[test]
    fn copies_are_distinguished_from_puts() {
        for (uri, expected) in
            [("/b/k", Operation::CopyObject), ("/b/k?partNumber=1&uploadId=u", Operation::UploadPartCopy)]
        {
            let request = hyper::Request::put(uri).header("x-amz-copy-source", "/b/other").body(()).unwrap();
            assert_eq!(Operation::of(&request.into_parts().0), expected);
        }
    }
}
