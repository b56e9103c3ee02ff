//! Signatures against published examples and against another implementation.

use super::*;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign as sign_aws,
};
use aws_sigv4::sign::v4;
use proptest::prelude::*;
use std::time::{Duration, SystemTime};

/// The example key of AWS's documentation.
const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
/// 2013-05-24T00:00:00Z, its time.
const THEN: u64 = 1_369_353_600;

fn signer(token: Option<&str>, region: &str) -> Signer {
    Signer::new(&KEY.into(), &Secret::new(SECRET), region, token.map(Secret::new).as_ref())
}

fn hash_of(bytes: &[u8]) -> PayloadHash {
    PayloadHash::Sha256(hexadecimal(&Sha256::digest(bytes).into()))
}

fn text(signature: Signature) -> String {
    String::from_utf8(signature.to_vec()).unwrap()
}

#[test]
fn dates_are_right() {
    let cases = [
        (0, b"19700101T000000Z"),
        (951_782_399, b"20000228T235959Z"),
        (951_868_799, b"20000229T235959Z"),
        (THEN, b"20130524T000000Z"),
        (4_107_542_399, b"21000228T235959Z"),
        (4_107_542_400, b"21000301T000000Z"),
    ];
    for (seconds, expected) in cases {
        assert_eq!(&stamp(seconds), expected, "{seconds}");
    }
}

/// "Example: GET Bucket Lifecycle" and "Example: Get Bucket (List Objects)" of the S3 API reference.
#[test]
fn published_signatures_are_reproduced() {
    let get = |query: &'static [u8]| Unsigned {
        method: "GET",
        path: b"/",
        query,
        host: b"examplebucket.s3.amazonaws.com",
        payload: hash_of(b""),
        headers: &[],
    };
    let mut signer = signer(None, "us-east-1");
    let lifecycle = signer.sign(THEN, &get(b"lifecycle="), &mut Vec::new());
    assert_eq!(text(lifecycle), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    let mut head = Vec::new();
    let list = signer.sign(THEN, &get(b"max-keys=2&prefix=J"), &mut head);
    assert_eq!(text(list), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    assert_eq!(
        String::from_utf8(head).unwrap(),
        "GET /?max-keys=2&prefix=J HTTP/1.1\r\nHost: examplebucket.s3.amazonaws.com\r\n\
         x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\n\
         x-amz-date: 20130524T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 \
         Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
         SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
         Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7\r\n"
    );
}

/// The chunks of "Transferring Payload in Multiple Chunks": 65 KiB of `a` in chunks of 64 KiB. Its seed
/// signature covers headers that we do not sign, so the chain begins with the published one.
#[test]
fn the_published_chain_of_chunks_is_reproduced() {
    let mut signer = signer(None, "us-east-1");
    let request = Unsigned {
        method: "PUT",
        path: b"/examplebucket/chunkObject.txt",
        query: b"",
        host: b"s3.amazonaws.com",
        payload: PayloadHash::Chunks,
        headers: &[],
    };
    signer.sign(THEN, &request, &mut Vec::new());
    let mut seed = [0; 64];
    seed.copy_from_slice(b"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9");
    let mut chain = signer.chain(seed);
    assert_eq!(chain.wire_length(66_560), Some(66_824));
    let content = [b'a'; 66_560];
    let expected = [
        (
            0..65_536,
            "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n",
        ),
        (
            65_536..66_560,
            "400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n",
        ),
        (
            66_560..66_560,
            "0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n",
        ),
    ];
    for (chunk, line) in expected {
        let mut out = Vec::new();
        chain.open(&Content::Bytes(&content), chunk, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), line);
    }
}

#[test]
fn nobody_signs_nothing() {
    let mut signer = Signer::new(&Secret::default(), &Secret::default(), "us-east-1", None);
    let headers: &[(&str, &[u8])] = &[("x-amz-storage-class", b"STANDARD")];
    let request = Unsigned {
        method: "GET",
        path: b"/b/o",
        query: b"",
        host: b"h",
        payload: PayloadHash::Unsigned,
        headers,
    };
    let mut head = Vec::new();
    signer.sign(THEN, &request, &mut head);
    assert_eq!(head, b"GET /b/o HTTP/1.1\r\nHost: h\r\nx-amz-storage-class: STANDARD\r\n");
}

/// What the SDK's signer makes of a request.
fn aws_signs(request: &Unsigned<'_>, region: &str, token: Option<&str>, unix_s: u64) -> String {
    let identity = Credentials::new(KEY, SECRET, token.map(str::to_owned), None, "test").into();
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("s3")
        .time(SystemTime::UNIX_EPOCH + Duration::from_secs(unix_s))
        .settings(settings)
        .build()
        .unwrap();
    let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let query = if request.query.is_empty() { String::new() } else { format!("?{}", string(request.query)) };
    let url = format!("http://{}{}{query}", string(request.host), string(request.path));
    let headers: Vec<(&str, String)> =
        request.headers.iter().map(|(name, value)| (*name, string(value))).collect();
    let body = match &request.payload {
        PayloadHash::Unsigned => SignableBody::UnsignedPayload,
        PayloadHash::Sha256(digits) => SignableBody::Precomputed(string(digits)),
        PayloadHash::Chunks => SignableBody::Precomputed("STREAMING-AWS4-HMAC-SHA256-PAYLOAD".into()),
    };
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    let request = SignableRequest::new(request.method, url, headers, body).unwrap();
    sign_aws(request, &parameters.into()).unwrap().signature().to_owned()
}

proptest! {
    #[test]
    fn signatures_are_those_of_the_sdk(
        names in ("[ -~]{0,12}", "\\PC{0,12}"),
        query in prop::collection::btree_map("[a-z-]{1,8}", "[ -~]{0,9}", 0..4),
        payload in prop_oneof![
            Just(PayloadHash::Unsigned),
            Just(PayloadHash::Chunks),
            prop::collection::vec(any::<u8>(), 0..99).prop_map(|bytes| hash_of(&bytes)),
        ],
        copied in prop::option::of("[a-z0-9/%]{1,20}"),
        stored in prop::option::of("[A-Z_]{1,12}"),
        token in prop::option::of("[A-Za-z0-9/+=]{1,200}"),
        region in "[a-z]{2}-[a-z]{4,9}-[1-9]",
        times in prop::collection::vec(0u64..4_102_444_800, 1..4),
    ) {
        use crate::text::encode;
        let path = format!("/{}/{}", encode(&names.0, false), encode(&names.1, true));
        let pairs: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", encode(value, false))).collect();
        let query = pairs.join("&");
        let mut headers: Vec<(&str, &[u8])> = Vec::new();
        headers.extend(copied.as_ref().map(|value| ("x-amz-copy-source", value.as_bytes())));
        headers.extend(stored.as_ref().map(|value| ("x-amz-storage-class", value.as_bytes())));
        let request = Unsigned {
            method: "PUT",
            path: path.as_bytes(),
            query: query.as_bytes(),
            host: b"127.0.0.1:9000",
            payload,
            headers: &headers,
        };
        let mut signer = signer(token.as_deref(), &region);
        // Twice each: what is kept from the first must suit the second.
        for time in times.into_iter().flat_map(|time| [time, time]) {
            let plain = Unsigned { host: b"other", headers: &[], payload: PayloadHash::Unsigned, ..request };
            let own = signer.sign(time, &plain, &mut Vec::new());
            prop_assert_eq!(text(own), aws_signs(&plain, &region, token.as_deref(), time));
            let own = signer.sign(time, &request, &mut Vec::new());
            prop_assert_eq!(text(own), aws_signs(&request, &region, token.as_deref(), time));
        }
    }
}
