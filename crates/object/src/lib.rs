//! The object engine: S3 and OpenStack Swift over our own HTTP/1.1 client.
