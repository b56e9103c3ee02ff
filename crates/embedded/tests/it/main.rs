//! The embedded server, asked over the wire by a client that signs with AWS's own signer.

#![allow(clippy::unwrap_used, reason = "a test ends where its client or server does")]

mod client;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use client::{Client, between};
use md5::{Digest as _, Md5};
use tidemark_embedded::{
    EmbeddedError, EmbeddedOptions, EmbeddedServer, Fault, Operation, OperationStatistics, Place,
};

fn options() -> EmbeddedOptions {
    EmbeddedOptions { buckets: vec!["bench".into()], minimum_part_bytes: 4, ..EmbeddedOptions::default() }
}

fn start(options: EmbeddedOptions) -> (EmbeddedServer, Client) {
    let server = EmbeddedServer::start(options).unwrap();
    let client = Client::of(&server);
    (server, client)
}

fn on_disk(directory: &tempfile::TempDir) -> EmbeddedOptions {
    let place = Place::Directory { path: directory.path().join("store"), durable: true };
    EmbeddedOptions { place, ..options() }
}

/// Runs a test against a server in memory and against one on disk: both must behave the same.
async fn everywhere<F: Future<Output = ()>>(test: impl Fn(Arc<EmbeddedServer>, Client) -> F) {
    let directory = tempfile::tempdir().unwrap();
    for options in [options(), on_disk(&directory)] {
        let (server, client) = start(options);
        let server = Arc::new(server);
        test(Arc::clone(&server), client).await;
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn md5(body: &[u8]) -> String {
    Md5::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A body in which no two chunks are alike.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

#[tokio::test]
async fn an_object_makes_the_round_trip_with_all_its_headers() {
    everywhere(|_server, client| async move {
        // Longer than a chunk of the disk backend, so that it is written and read in several steps.
        let body = pattern(1_500_001);
        let put = client
            .put("/bench/dir/key")
            .header("content-type", "text/x-test")
            .header("cache-control", "no-store")
            .header("x-amz-meta-Colour", "blue")
            .header("x-amz-storage-class", "STANDARD_IA")
            .header("x-amz-tagging", "a=1&b=2")
            .body(body.clone())
            .send()
            .await;
        assert_eq!((put.status, put.header("etag")), (200, format!("\"{}\"", md5(&body))));
        for answer in [client.get("/bench/dir/key").send().await, client.head("/bench/dir/key").send().await]
        {
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("etag"), format!("\"{}\"", md5(&body)));
            assert_eq!(answer.header("content-length"), "1500001");
            assert_eq!(answer.header("content-type"), "text/x-test");
            assert_eq!(answer.header("cache-control"), "no-store");
            assert_eq!(answer.header("x-amz-meta-colour"), "blue");
            assert_eq!(answer.header("x-amz-storage-class"), "STANDARD_IA");
            assert!(!answer.header("last-modified").is_empty());
            assert!(answer.body.is_empty() || answer.body == body);
        }
        assert_eq!(client.get("/bench/dir/key").send().await.header("x-amz-tagging-count"), "2");
        assert_eq!(client.delete("/bench/dir/key").send().await.status, 204);
        assert_eq!(client.delete("/bench/dir/key").send().await.status, 204, "deleting nothing is no error");
        assert_eq!(client.get("/bench/dir/key").send().await.error(), (404, "NoSuchKey".into()));
        assert_eq!(client.head("/bench/dir/key").send().await.status, 404);
        assert_eq!(client.get("/nowhere/key").send().await.error(), (404, "NoSuchBucket".into()));
        assert_eq!(client.put("/nowhere/key").body(body).send().await.error(), (404, "NoSuchBucket".into()));
    })
    .await;
}

#[tokio::test]
async fn any_key_and_any_size_can_be_stored() {
    everywhere(|_server, client| async move {
        let long = format!("/bench/{}", "long/".repeat(200));
        for path in [
            "/bench/../up",
            "/bench/a%20b%2Bc%25",
            "/bench/%D0%BA%D0%BB%D1%8E%D1%87",
            "/bench/~.object",
            &long,
        ] {
            for size in [0, 1, 5] {
                assert_eq!(client.put(path).body(pattern(size)).send().await.status, 200, "{path}");
                let got = client.get(path).send().await;
                assert_eq!((got.status, got.body), (200, pattern(size)), "{path}");
            }
        }
        let statistics = client.list("/bench?list-type=2").await;
        assert_eq!(statistics.len(), 5);
    })
    .await;
}

#[tokio::test]
async fn ranges_are_answered_with_206_or_416() {
    everywhere(|_server, client| async move {
        let body = pattern(700_000);
        client.put("/bench/key").body(body.clone()).send().await;
        for (range, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=10-300009", 10..300_010),
            ("bytes=699990-", 699_990..700_000),
            ("bytes=-5", 699_995..700_000),
            ("bytes=5-9999999", 5..700_000),
        ] {
            let part = client.get("/bench/key").header("range", range).send().await;
            assert_eq!(part.status, 206);
            let content_range = format!("bytes {}-{}/700000", expected.start, expected.end - 1);
            assert_eq!(part.header("content-range"), content_range);
            assert!(part.body == body[expected], "{range}");
        }
        let past = client.get("/bench/key").header("range", "bytes=700000-").send().await;
        assert_eq!(past.error(), (416, "InvalidRange".into()));
    })
    .await;
}

#[tokio::test]
async fn conditions_of_writes_are_accepted_and_ignored_on_demand() {
    everywhere(|server, client| async move {
        let create = |body: &'static str| client.put("/bench/key").header("if-none-match", "*").body(body);
        assert_eq!(create("one").send().await.status, 200);
        let id = server.faults().add(Fault::ignore_conditions().on(Operation::PutObject));
        assert_eq!(create("two").send().await.status, 200);
        assert_eq!(
            client.put("/bench/key").header("if-match", "\"wrong\"").body("three").send().await.status,
            200
        );
        assert_eq!(
            (client.get("/bench/key").send().await.body.as_slice(), server.faults().struck(id)),
            (&b"three"[..], 2)
        );
        server.faults().clear();
        assert_eq!(create("four").send().await.status, 412);
    })
    .await;
}

#[tokio::test]
async fn conditions_decide_over_reads_and_writes() {
    everywhere(|_server, client| async move {
        let create = || client.put("/bench/key").header("if-none-match", "*").body("one");
        let etag = create().send().await.header("etag");
        assert_eq!(create().send().await.error(), (412, "PreconditionFailed".into()));
        let replace = |etag: &str| client.put("/bench/key").header("if-match", etag).body("two");
        assert_eq!(replace("\"wrong\"").send().await.error(), (412, "PreconditionFailed".into()));
        assert_eq!(client.get("/bench/key").send().await.body, b"one");
        assert_eq!(replace(&etag).send().await.status, 200);
        assert_eq!(replace(&etag).send().await.status, 412);
        let absent = client.put("/bench/none").header("if-match", &etag).body("x").send().await;
        assert_eq!(absent.error(), (404, "NoSuchKey".into()));

        let now = client.get("/bench/key").send().await;
        let get = |name, value: &str| client.get("/bench/key").header(name, value);
        assert_eq!(get("if-match", &etag).send().await.status, 412);
        assert_eq!(get("if-match", &now.header("etag")).send().await.body, b"two");
        assert_eq!(get("if-none-match", &etag).send().await.status, 200);
        assert_eq!(get("if-unmodified-since", "Mon, 01 Jan 2001 00:00:00 GMT").send().await.status, 412);
        let unchanged = get("if-modified-since", &now.header("last-modified")).send().await;
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
        let unchanged = get("if-none-match", &now.header("etag")).send().await;
        assert_eq!((unchanged.status, unchanged.header("etag")), (304, now.header("etag")));
    })
    .await;
}

#[tokio::test]
async fn a_304_leaves_the_connection_usable() {
    let (server, client) = start(options());
    client.put("/bench/key").body("body").send().await;
    let etag = client.head("/bench/key").send().await.header("etag");
    let opened = server.statistics().connections;
    let mut connection = client.connect().await;
    for _ in 0..3 {
        let unchanged =
            client.get("/bench/key").header("if-none-match", &etag).send_on(&mut connection).await;
        assert_eq!(unchanged.status, 304);
        assert_eq!(client.get("/bench/key").send_on(&mut connection).await.body, b"body");
        assert_eq!(client.get("/bench/none").send_on(&mut connection).await.status, 404);
        assert_eq!(client.head("/bench/none").send_on(&mut connection).await.status, 404);
        let refused = client.put("/nowhere/key").body(pattern(3_000_000)).send_on(&mut connection).await;
        assert_eq!(refused.status, 404, "an unwanted body is read, so the connection lives on");
    }
    assert_eq!(server.statistics().connections, opened + 1);
}

#[tokio::test]
async fn a_refused_request_does_not_ask_for_its_body() {
    let (_server, client) = start(options());
    let put = |path: &str| client.put(path).header("expect", "100-continue").body("hello");
    assert_eq!(put("/bench/key").send().await.status, 200);
    assert_eq!(put("/nowhere/key").send().await.error(), (404, "NoSuchBucket".into()));
}

#[tokio::test]
async fn damaged_bodies_are_refused() {
    everywhere(|server, client| async move {
        let put = || client.put("/bench/key").body("hello");
        assert_eq!(put().header("content-md5", "XUFAKrxLKna5cZ2REBfFkg==").send().await.status, 200);
        let wrong = put().header("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==").send().await;
        assert_eq!(wrong.error(), (400, "BadDigest".into()));
        let malformed = put().header("content-md5", "hello").send().await;
        assert_eq!(malformed.error(), (400, "InvalidDigest".into()));
        let wrong = put().header("x-amz-checksum-crc32", "AAAAAA==").send().await;
        assert_eq!(wrong.error(), (400, "BadDigest".into()));
        let swapped = put().swap_body_after_signing("jello").send().await;
        assert_eq!(swapped.error(), (400, "XAmzContentSHA256Mismatch".into()));
        assert_eq!(client.get("/bench/key").send().await.body, b"hello");
        assert_eq!(server.statistics().objects, 1);
    })
    .await;
}

#[tokio::test]
async fn aws_chunked_bodies_are_unpacked_and_their_trailer_is_checked() {
    let (_server, client) = start(options());
    let put = |crc: &str| {
        let framed = format!("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:{crc}\r\n\r\n");
        client
            .put("/bench/key")
            .header("content-encoding", "aws-chunked")
            .header("x-amz-decoded-content-length", "5")
            .header("x-amz-trailer", "x-amz-checksum-crc32")
            .streaming_unsigned(framed)
    };
    assert_eq!(put("NhCmhg==").send().await.status, 200);
    let got = client.get("/bench/key").send().await;
    assert_eq!((got.body.as_slice(), got.header("content-encoding")), (&b"hello"[..], String::new()));
    assert_eq!(put("AAAAAA==").send().await.error(), (400, "BadDigest".into()));
}

#[tokio::test]
async fn a_multipart_upload_becomes_one_object() {
    everywhere(|server, client| async move {
        let begun = client.post("/bench/big?uploads").header("content-type", "text/parts").send().await;
        let id = between(&begun.text(), "<UploadId>", "</UploadId>");
        let parts = [pattern(400_000), vec![7; 5], b"x".to_vec()];
        let mut list = String::new();
        for (number, part) in (1..).zip(&parts) {
            let path = format!("/bench/big?partNumber={number}&uploadId={id}");
            let sent = client.put(&path).body(part.clone()).send().await;
            assert_eq!(sent.header("etag"), format!("\"{}\"", md5(part)));
            let etag = md5(part);
            list += &format!("<Part><PartNumber>{number}</PartNumber><ETag>\"{etag}\"</ETag></Part>");
        }
        let listed = client.get(&format!("/bench/big?uploadId={id}&max-parts=2")).send().await.text();
        assert_eq!(listed.matches("<Part>").count(), 2);
        assert_eq!(between(&listed, "<NextPartNumberMarker>", "</NextPartNumberMarker>"), "2");
        let rest = client.get(&format!("/bench/big?uploadId={id}&part-number-marker=2")).send().await.text();
        assert!(rest.matches("<Part>").count() == 1 && rest.contains("<IsTruncated>false"));
        assert!(client.get("/bench?uploads").send().await.text().contains(&id));
        assert_eq!(server.statistics().uploads, 1);
        assert_eq!(client.get("/bench/big").send().await.status, 404, "nothing is visible before the end");

        let path = format!("/bench/big?uploadId={id}");
        let complete = |list: &str| {
            let xml = format!("<CompleteMultipartUpload>{list}</CompleteMultipartUpload>");
            client.post(&path).body(xml)
        };
        let mut backwards: Vec<&str> = list.split_inclusive("</Part>").collect();
        backwards.reverse();
        assert_eq!(complete(&backwards.concat()).send().await.error(), (400, "InvalidPartOrder".into()));
        let other = list.replacen("<PartNumber>3", "<PartNumber>4", 1);
        assert_eq!(complete(&other).send().await.error(), (400, "InvalidPart".into()));
        let done = complete(&list).send().await;
        let digests: Vec<u8> = parts.iter().flat_map(|part| Md5::digest(part).to_vec()).collect();
        assert_eq!(done.status, 200);
        assert!(done.text().contains(&format!("{}-3", md5(&digests))), "{}", done.text());
        let got = client.get("/bench/big").send().await;
        assert!(got.body == parts.concat() && got.header("content-type") == "text/parts");
        assert_eq!(got.header("etag"), format!("\"{}-3\"", md5(&digests)));
        assert_eq!(complete(&list).send().await.error(), (404, "NoSuchUpload".into()));
        assert_eq!(server.statistics().uploads, 0);
    })
    .await;
}

#[tokio::test]
async fn small_parts_are_refused_and_uploads_can_be_aborted() {
    everywhere(|server, client| async move {
        let begun = client.post("/bench/big?uploads").send().await;
        let id = between(&begun.text(), "<UploadId>", "</UploadId>");
        let mut list = String::new();
        for number in [1, 2] {
            let sent =
                client.put(&format!("/bench/big?partNumber={number}&uploadId={id}")).body("abc").send().await;
            list += &format!(
                "<Part><PartNumber>{number}</PartNumber><ETag>{}</ETag></Part>",
                sent.header("etag")
            );
        }
        let path = format!("/bench/big?uploadId={id}");
        let xml = format!("<CompleteMultipartUpload>{list}</CompleteMultipartUpload>");
        assert_eq!(client.post(&path).body(xml).send().await.error(), (400, "EntityTooSmall".into()));
        assert_eq!(client.delete(&path).send().await.status, 204);
        assert_eq!(client.delete(&path).send().await.error(), (404, "NoSuchUpload".into()));
        let late = client.put(&format!("/bench/big?partNumber=3&uploadId={id}")).body("abc").send().await;
        assert_eq!(late.error(), (404, "NoSuchUpload".into()));
        assert_eq!((server.statistics().uploads, server.statistics().objects), (0, 0));
    })
    .await;
}

#[tokio::test]
async fn objects_and_ranges_of_them_are_copied() {
    everywhere(|_server, client| async move {
        client
            .put("/bench/from")
            .header("x-amz-meta-a", "1")
            .header("x-amz-tagging", "t=1")
            .body("0123456789")
            .send()
            .await;
        let copy = |to: &str| client.put(to).header("x-amz-copy-source", "/bench/from");
        let done = copy("/bench/to").send().await;
        assert!(done.status == 200 && done.text().contains(&md5(b"0123456789")), "{}", done.text());
        let got = client.get("/bench/to").send().await;
        assert_eq!((got.body.as_slice(), got.header("x-amz-meta-a")), (&b"0123456789"[..], "1".into()));
        assert_eq!(got.header("x-amz-tagging-count"), "1");
        copy("/bench/to")
            .header("x-amz-metadata-directive", "REPLACE")
            .header("x-amz-meta-b", "2")
            .send()
            .await;
        let got = client.get("/bench/to").send().await;
        assert_eq!((got.header("x-amz-meta-a"), got.header("x-amz-meta-b")), (String::new(), "2".into()));
        assert_eq!(copy("/bench/from").send().await.error(), (400, "InvalidRequest".into()));
        assert_eq!(copy("/bench/to").header("x-amz-copy-source-if-match", "\"no\"").send().await.status, 412);
        let absent = client.put("/bench/to").header("x-amz-copy-source", "/bench/none").send().await;
        assert_eq!(absent.error(), (404, "NoSuchKey".into()));

        let begun = client.post("/bench/big?uploads").send().await;
        let id = between(&begun.text(), "<UploadId>", "</UploadId>");
        let part = copy(&format!("/bench/big?partNumber=1&uploadId={id}"));
        let part = part.header("x-amz-copy-source-range", "bytes=2-5").send().await;
        assert!(part.text().contains(&md5(b"2345")), "{}", part.text());
    })
    .await;
}

#[tokio::test]
async fn listings_are_paged_sorted_and_rolled_up() {
    everywhere(|_server, client| async move {
        for i in 0..7 {
            client.put(&format!("/bench/a/{i}")).body("x").send().await;
            client.put(&format!("/bench/b/{i}")).body("x").send().await;
        }
        client.put("/bench/plain%20key").body("four").send().await;
        let mut keys: Vec<String> =
            ["a", "b"].iter().flat_map(|d| (0..7).map(move |i| format!("{d}/{i}"))).collect();
        keys.push("plain key".into());

        // Version 2, three at a time, by continuation token.
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("/bench?list-type=2&max-keys=3{token}")).send().await.text();
            let names = client::all(&page, "<Key>", "</Key>");
            assert_eq!(between(&page, "<KeyCount>", "</KeyCount>"), names.len().to_string());
            seen.extend(names);
            if page.contains("<IsTruncated>false") {
                break;
            }
            let next = between(&page, "<NextContinuationToken>", "</NextContinuationToken>");
            token = format!("&continuation-token={next}");
        }
        assert_eq!(seen, keys);

        // Version 1, by marker, with URL encoding.
        let page = client.get("/bench?marker=b%2F5&encoding-type=url").send().await.text();
        assert_eq!(client::all(&page, "<Key>", "</Key>"), ["b/6", "plain%20key"]);
        let page = client.get("/bench?max-keys=4").send().await.text();
        assert_eq!(between(&page, "<NextMarker>", "</NextMarker>"), "a/3");

        let page = client.get("/bench?list-type=2&delimiter=%2F&max-keys=2").send().await.text();
        assert_eq!(client::all(&page, "<CommonPrefixes><Prefix>", "</Prefix>"), ["a/", "b/"]);
        let token = between(&page, "<NextContinuationToken>", "</NextContinuationToken>");
        let page =
            client.get(&format!("/bench?list-type=2&delimiter=%2F&continuation-token={token}")).send().await;
        assert_eq!(client::all(&page.text(), "<Key>", "</Key>"), ["plain key"]);
        assert!(page.text().contains("<Size>4</Size>") && page.text().contains(&md5(b"four")));

        assert_eq!(client.list("/bench?list-type=2&prefix=b%2F&start-after=b%2F4").await, ["b/5", "b/6"]);
        assert_eq!(client.list("/bench?list-type=2&max-keys=0").await, [""; 0]);
        assert_eq!(client.get("/nowhere?list-type=2").send().await.error(), (404, "NoSuchBucket".into()));
        let bad = client.get("/bench?list-type=2&continuation-token=%21").send().await;
        assert_eq!(bad.error(), (400, "InvalidArgument".into()));
    })
    .await;
}

#[tokio::test]
async fn buckets_come_and_go_when_empty() {
    everywhere(|server, client| async move {
        assert_eq!(client.put("/second").send().await.status, 200);
        assert_eq!(client.put("/second").send().await.error(), (409, "BucketAlreadyOwnedByYou".into()));
        assert_eq!(client.put("/No_Bucket").send().await.error(), (400, "InvalidBucketName".into()));
        assert_eq!(client.head("/second").send().await.status, 200);
        assert_eq!(client.head("/third").send().await.status, 404);
        assert_eq!(
            client::all(&client.get("/").send().await.text(), "<Name>", "</Name>"),
            ["bench", "second"]
        );
        assert_eq!(client.get("/second?location").send().await.status, 200);
        for key in ["a", "b", "c"] {
            client.put(&format!("/second/{key}")).body("x").send().await;
        }
        assert_eq!(client.delete("/second").send().await.error(), (409, "BucketNotEmpty".into()));
        let xml = |keys: &[&str]| {
            let keys: String = keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
            format!("<Delete>{keys}</Delete>")
        };
        let deleted = client.post("/second?delete").body(xml(&["a", "b", "none"])).send().await.text();
        assert_eq!(client::all(&deleted, "<Key>", "</Key>"), ["a", "b", "none"]);
        assert_eq!(client.list("/second?list-type=2").await, ["c"]);
        assert_eq!(server.statistics().objects, 1);
        client.delete("/second/c").send().await;
        assert_eq!(client.delete("/second").send().await.status, 204);
        assert_eq!(client.delete("/second").send().await.error(), (404, "NoSuchBucket".into()));
        assert_eq!(server.statistics().buckets, 1);
    })
    .await;
}

#[tokio::test]
async fn tags_are_kept_replaced_and_removed() {
    everywhere(|_server, client| async move {
        client.put("/bench/key").header("x-amz-tagging", "old=1").body("body").send().await;
        let etag = client.head("/bench/key").send().await.header("etag");
        let tags = || async {
            client::all(&client.get("/bench/key?tagging").send().await.text(), "<Key>", "</Key>")
        };
        assert_eq!(tags().await, ["old"]);
        let xml = "<Tagging><TagSet><Tag><Key>new</Key><Value>2</Value></Tag></TagSet></Tagging>";
        assert_eq!(client.put("/bench/key?tagging").body(xml).send().await.status, 200);
        assert_eq!(tags().await, ["new"]);
        assert_eq!(client.delete("/bench/key?tagging").send().await.status, 204);
        assert_eq!(tags().await, [""; 0]);
        let got = client.get("/bench/key").send().await;
        assert_eq!((got.body.as_slice(), got.header("etag")), (&b"body"[..], etag));
        assert_eq!(client.get("/bench/none?tagging").send().await.error(), (404, "NoSuchKey".into()));
    })
    .await;
}

#[tokio::test]
async fn only_the_right_key_is_accepted() {
    let (server, client) = start(options());
    let stranger = Client::with_keys(&server, "STRANGER", server.secret_key());
    assert_eq!(stranger.get("/").send().await.error(), (403, "InvalidAccessKeyId".into()));
    let forger = Client::with_keys(&server, server.access_key(), "guess");
    assert_eq!(forger.get("/").send().await.error(), (403, "SignatureDoesNotMatch".into()));
    let refused = forger.put("/bench/key").body(pattern(3_000_000)).send().await;
    assert_eq!(refused.error(), (403, "SignatureDoesNotMatch".into()));
    assert_eq!(client.get("/").unsigned().send().await.error(), (403, "AccessDenied".into()));
    for minutes in [-16, 16] {
        let skewed = client.get("/").minutes_off(minutes).send().await;
        assert_eq!(skewed.error(), (403, "RequestTimeTooSkewed".into()));
    }
    assert_eq!(client.get("/").minutes_off(-14).send().await.status, 200);
    assert_eq!(server.statistics().objects, 0);
    assert!(!format!("{server:?}").contains(server.secret_key()));
}

#[tokio::test]
async fn an_anonymous_server_still_checks_signatures_it_is_given() {
    let (server, client) = start(EmbeddedOptions { anonymous: true, ..options() });
    assert_eq!(client.put("/bench/key").body("x").unsigned().send().await.status, 200);
    assert_eq!(client.get("/bench/key").unsigned().send().await.body, b"x");
    assert_eq!(client.get("/bench/key").send().await.body, b"x");
    let forger = Client::with_keys(&server, server.access_key(), "guess");
    assert_eq!(forger.get("/bench/key").send().await.status, 403);
}

#[tokio::test]
async fn counters_agree_with_the_client() {
    let (server, client) = start(options());
    let mut connection = client.connect().await;
    for i in 0..10_usize {
        client.put(&format!("/bench/{i}")).body(pattern(100 * i)).send_on(&mut connection).await;
    }
    for i in 0..12 {
        client.get(&format!("/bench/{i}")).send_on(&mut connection).await;
    }
    client.head("/bench/3").send_on(&mut connection).await;
    client.delete("/bench/9").send_on(&mut connection).await;
    let counts = |requests, succeeded, failed, bytes_in, bytes_out| OperationStatistics {
        requests,
        succeeded,
        failed,
        bytes_in,
        bytes_out,
        ..OperationStatistics::default()
    };
    let statistics = server.statistics();
    assert_eq!(statistics.of(Operation::PutObject), counts(10, 10, 0, 4500, 0));
    assert_eq!(statistics.of(Operation::GetObject), counts(12, 10, 2, 0, 4500));
    assert_eq!(statistics.of(Operation::HeadObject), counts(1, 1, 0, 0, 0));
    assert_eq!(statistics.of(Operation::DeleteObject), counts(1, 1, 0, 0, 0));
    assert_eq!(statistics.of(Operation::ListObjects), OperationStatistics::default());
    assert_eq!(statistics.total(), counts(24, 22, 2, 4500, 4500));
    assert_eq!((statistics.connections, statistics.objects, statistics.object_bytes), (1, 9, 3600));
    assert_eq!(server.shutdown(), statistics);
}

#[tokio::test]
async fn faults_answer_instead_of_the_store() {
    let (server, client) = start(options());
    let faults = server.faults();
    client.put("/bench/key").body("x").send().await;

    let broken = faults.add(Fault::answer(404, "NoSuchBucket").on_method("PUT"));
    let refused = client.put("/bench/other").body(pattern(3_000_000)).send().await;
    assert_eq!(refused.error(), (404, "NoSuchBucket".into()));
    assert_eq!(client.get("/bench/key").send().await.status, 200);
    assert_eq!(faults.struck(broken), 1);
    faults.remove(broken);
    assert_eq!(client.put("/bench/other").body("x").send().await.status, 200);

    faults.add(Fault::slow_down().on(Operation::GetObject).nth(2));
    let statuses = [(); 3].map(|()| client.get("/bench/key").send());
    let mut seen = Vec::new();
    for status in statuses {
        seen.push(status.await.error());
    }
    assert_eq!(seen, [(200, String::new()), (503, "SlowDown".into()), (200, String::new())]);
    assert_eq!(server.statistics().of(Operation::GetObject).failed, 1);
    faults.clear();

    let sometimes = faults.add(Fault::slow_down().on(Operation::HeadObject).with_probability(0.5));
    let mut failed = 0;
    for _ in 0..100 {
        failed += u64::from(client.head("/bench/key").send().await.status == 503);
    }
    assert!((1..100).contains(&failed));
    assert_eq!(
        (faults.struck(sometimes), server.statistics().of(Operation::HeadObject).failed),
        (failed, failed)
    );
}

#[tokio::test]
async fn faults_break_connections_and_bodies() {
    everywhere(|server, client| async move {
        let faults = server.faults();
        client.put("/bench/key").body(pattern(1_000_000)).send().await;
        client.put("/bench/short").body("short").send().await;

        faults.add(Fault::disconnect().on(Operation::DeleteObject));
        assert!(client.delete("/bench/key").try_send().await.is_err());
        assert_eq!(server.statistics().of(Operation::DeleteObject).disconnected, 1);
        assert_eq!(client.head("/bench/key").send().await.status, 200, "what was asked is not done");

        faults.add(Fault::truncate(1000).on(Operation::GetObject));
        let cut = client.get("/bench/key").try_send().await.unwrap_err();
        assert_eq!((cut.promised, cut.received), (Some(1_000_000), 1000));
        assert_eq!(client.get("/bench/short").send().await.body, b"short");
        faults.clear();
        assert!(client.get("/bench/key").send().await.body == pattern(1_000_000));

        let etag = client.head("/bench/key").send().await.header("etag");
        faults.corrupt("bench", "key", 999_999).unwrap();
        let damaged = client.get("/bench/key").send().await;
        assert_eq!((damaged.status, damaged.header("etag")), (200, etag));
        let pairs = damaged.body.iter().zip(pattern(1_000_000)).enumerate();
        let differing: Vec<usize> = pairs.filter(|(_, (got, put))| *got != put).map(|(i, _)| i).collect();
        assert_eq!(differing, [999_999]);
        assert!(matches!(faults.corrupt("bench", "none", 0), Err(EmbeddedError::NoSuchObject { .. })));
        assert!(matches!(faults.corrupt("bench", "short", 5), Err(EmbeddedError::PastEnd { size: 5, .. })));
    })
    .await;
}

#[tokio::test]
async fn a_frozen_server_answers_after_the_freeze() {
    let (server, client) = start(options());
    client.put("/bench/key").body("x").send().await;
    server.faults().freeze(Duration::from_secs(3600));
    let waiting = tokio::spawn(client.get("/bench/key").send());
    // The request has arrived and stays unanswered.
    while server.statistics().of(Operation::GetObject).requests == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    server.faults().clear();
    assert_eq!(waiting.await.unwrap().body, b"x");

    let begun = std::time::Instant::now();
    server.faults().freeze(Duration::from_millis(50));
    assert_eq!(client.get("/bench/key").send().await.status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(50));
    server.faults().add(Fault::delay(Duration::from_millis(50)));
    let begun = std::time::Instant::now();
    assert_eq!(client.get("/bench/key").send().await.status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(50));
    server.faults().clear();

    server.faults().limit_rate(Some(1000.0));
    let begun = std::time::Instant::now();
    let mut connection = client.connect().await;
    for _ in 0..60 {
        client.get("/bench/key").send_on(&mut connection).await;
    }
    assert!(begun.elapsed() >= Duration::from_millis(48), "60 requests at 1000/s, less 10 ms of credit");
}

#[tokio::test]
async fn a_server_stops_even_while_it_is_frozen() {
    let (server, client) = start(options());
    server.faults().freeze(Duration::from_secs(3600));
    let waiting = tokio::spawn(async move { client.get("/").try_send().await.is_err() });
    while server.statistics().of(Operation::ListBuckets).requests == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(server.shutdown().total().requests, 1);
    assert!(waiting.await.unwrap(), "its connections are closed");
}

#[tokio::test]
async fn a_directory_keeps_its_objects_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = directory.path().join("store/buckets/bench");
    let (server, client) = start(on_disk(&directory));
    client
        .put("/bench/key")
        .header("x-amz-meta-a", "1")
        .header("x-amz-tagging", "t=1")
        .body("old")
        .send()
        .await;
    let older = files(&bucket).remove(0);
    let older_bytes = std::fs::read(&older).unwrap();
    client
        .put("/bench/key")
        .header("x-amz-meta-a", "2")
        .header("x-amz-tagging", "t=2")
        .body("new")
        .send()
        .await;
    client.put("/bench/tagged").body("kept").send().await;
    let xml = "<Tagging><TagSet><Tag><Key>late</Key><Value>2</Value></Tag></TagSet></Tagging>";
    client.put("/bench/tagged?tagging").body(xml).send().await;
    client.put("/bench/gone").body("x").send().await;
    client.delete("/bench/gone").send().await;
    client.put("/empty").send().await;
    client.post("/bench/unfinished?uploads").send().await;
    let before = client.get("/bench/key").send().await;
    drop(server);
    // What a crash leaves of an overwrite, of a write that was not durable, and of one that was not finished.
    std::fs::write(&older, older_bytes).unwrap();
    std::fs::write(bucket.join("torn.00000000000000ff.object"), b"half an obj").unwrap();
    std::fs::write(directory.path().join("store/staging/left"), b"half").unwrap();

    let (server, client) = start(on_disk(&directory));
    let after = client.get("/bench/key").send().await;
    assert_eq!((after.body.as_slice(), after.header("x-amz-meta-a")), (&b"new"[..], "2".into()));
    for header in ["etag", "last-modified", "x-amz-tagging-count"] {
        assert_eq!(after.header(header), before.header(header));
    }
    assert_eq!(client.list("/bench?list-type=2").await, ["key", "tagged"]);
    assert_eq!(
        client::all(&client.get("/bench/tagged?tagging").send().await.text(), "<Key>", "</Key>"),
        ["late"]
    );
    assert_eq!(client.head("/empty").send().await.status, 200);
    client.put("/bench/key").body("newer").send().await;
    let statistics = server.statistics();
    assert_eq!((statistics.buckets, statistics.objects, statistics.unreadable_files), (2, 2, 1));
    assert_eq!(statistics.object_bytes, 9);
    drop(server);

    let (_server, client) = start(on_disk(&directory));
    assert_eq!(client.get("/bench/key").send().await.body, b"newer", "new generations outrank those found");
    assert_eq!(files(&bucket).len(), 3, "one file per object, and the torn one");
}

#[tokio::test]
async fn a_reader_never_sees_a_mixture_of_two_writes() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, client) = start(EmbeddedOptions { threads: 2, ..on_disk(&directory) });
    client.put("/bench/key").body(vec![0; 300_000]).send().await;
    let writer = {
        let client = client.clone();
        tokio::spawn(async move {
            for i in 1..60_u8 {
                let body = vec![i; 300_000 + usize::from(i)];
                assert_eq!(client.put("/bench/key").body(body).send().await.status, 200);
            }
        })
    };
    while !writer.is_finished() {
        let got = client.get("/bench/key").send().await;
        assert_eq!(got.status, 200);
        assert_eq!(got.header("etag"), format!("\"{}\"", md5(&got.body)));
    }
    writer.await.unwrap();
}

#[test]
fn directories_in_use_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let first = EmbeddedServer::start(on_disk(&directory)).unwrap();
    let second = EmbeddedServer::start(on_disk(&directory)).unwrap_err();
    assert!(matches!(second, EmbeddedError::InUse { .. }), "{second}");
    drop(first);
    assert!(EmbeddedServer::start(on_disk(&directory)).is_ok());

    let foreign = tempfile::tempdir().unwrap();
    std::fs::write(foreign.path().join("thesis.txt"), "years of work").unwrap();
    let place = Place::Directory { path: foreign.path().to_owned(), durable: false };
    let refused = EmbeddedServer::start(EmbeddedOptions { place, ..options() }).unwrap_err();
    assert!(matches!(refused, EmbeddedError::Foreign { .. }), "{refused}");
}

#[test]
fn invalid_options_are_refused() {
    let none = EmbeddedServer::start(EmbeddedOptions { threads: 0, ..options() }).unwrap_err();
    assert!(matches!(none, EmbeddedError::Option { option: "threads", .. }));
    let buckets = vec!["../up".to_owned()];
    let name = EmbeddedServer::start(EmbeddedOptions { buckets, ..options() }).unwrap_err();
    assert!(name.to_string().contains("../up"), "{name}");
    let first = EmbeddedServer::start(options()).unwrap();
    let taken = EmbeddedServer::start(EmbeddedOptions { address: first.address(), ..options() }).unwrap_err();
    assert!(matches!(taken, EmbeddedError::Listen { .. }), "{taken}");
}
