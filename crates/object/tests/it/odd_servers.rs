//! The client against servers that are odd, broken, slow or gone: what is whole is taken, what is not is classed.

use crate::support::{MS, PUT, Run, actions, s3};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidemark_load::engine::{Begin, Operation};
use tidemark_measure::fault::Fault;
use tidemark_object::conditions::heeded;
use tidemark_object::job::{Action, Content, Emptied, Encryption, Form, Job, Keeps, S3, Target, Verb};
use tidemark_object::preflight::preflight;

/// Serves each connection with `serve`, which gets its number; gives the address.
fn server(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (serve, stream) = (Arc::clone(&serve), stream.unwrap());
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || serve(stream, number));
        }
    });
    address
}

/// Reads a request without a body; `None`: the connection ended.
fn request(stream: &mut impl Read) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Answers every request with these bytes.
fn always(reply: &'static [u8]) -> SocketAddr {
    server(move |mut stream, _| while request(&mut stream).is_some() && stream.write_all(reply).is_ok() {})
}

fn target(address: SocketAddr) -> S3 {
    s3(&format!("http://{address}"), "KEY", "SECRET")
}

/// Verbs whose reads do not verify: the content here is anything.
fn unverified(verbs: &[Verb]) -> Vec<Action> {
    let content = Content { form: Form::Zero, verify: false };
    actions(verbs).into_iter().map(|action| Action { content, ..action }).collect()
}

fn run(target: S3) -> Run {
    Run::of(Target::S3(target), unverified(&[Verb::Get, PUT, Verb::Head, RANGE]), 1)
}

const RANGE: Verb = Verb::GetRange { length: 100, object_bytes: 100 };
const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn replies_of_every_framing_and_in_every_cut_are_whole() {
    let replies: [&'static [u8]; 5] = [
        HELLO,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nX: y\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\ncontent-length:   5  \r\n\r\nhello",
    ];
    for (number, reply) in replies.into_iter().enumerate() {
        let closes = number == 2 || number == 3;
        let address = server(move |mut stream, _| {
            let mut cut = 1;
            while request(&mut stream).is_some() {
                let (left, right) = reply.split_at(cut.min(reply.len()));
                stream.write_all(left).unwrap();
                std::thread::sleep(Duration::from_millis(1));
                stream.write_all(right).unwrap();
                if closes {
                    return;
                }
                cut += 3;
            }
        });
        let mut run = run(target(address));
        for _ in 0..reply.len() / 3 {
            assert_eq!(run.well(&Verb::Get, 1, 1, 0).bytes, 5, "reply {number}");
        }
    }
}

#[test]
fn what_is_not_whole_or_not_http_is_classed() {
    let cases: [(&'static [u8], Fault, &str); 7] = [
        (b"", Fault::Reset, "closed without a reply"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", Fault::Reset, "inside the reply's head"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", Fault::Reset, "after 5 bytes"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            Fault::Reset,
            "after 5 bytes",
        ),
        (b"220 mail.example.org ESMTP\r\n", Fault::Protocol, "valid HTTP/1.1 head"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", Fault::NotFound, "404"),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", Fault::ClientError, "302"),
    ];
    for (reply, fault, words) in cases {
        let address = server(move |mut stream, _| {
            request(&mut stream);
            stream.write_all(reply).unwrap();
        });
        let mut run = run(target(address));
        assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(fault), "{words}");
        let told = run.examples();
        assert!(told[0].text.contains("b") && told[0].text.contains(words), "{told:?}");
        assert!(!told[0].text.contains("SECRET"));
    }
}

#[test]
fn a_connection_closed_while_idle_is_made_anew_without_a_failure() {
    let address = server(|mut stream, _| {
        request(&mut stream);
        stream.write_all(HELLO).unwrap();
    });
    let mut run = run(target(address));
    for _ in 0..5 {
        run.well(&Verb::Get, 1, 1, 0);
        // The server's close must have arrived, which a reap takes note of.
        std::thread::sleep(Duration::from_millis(5));
        run.session.reap(0, &mut Vec::new());
    }
}

#[test]
fn a_slow_server_times_out_and_a_late_reply_does_not_go_to_the_next_operation() {
    let (answer, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let address = server(move |mut stream, number| {
        while request(&mut stream).is_some() {
            let reply: &[u8] = if number == 0 {
                let _ = wait.lock().unwrap().recv();
                b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate"
            } else {
                HELLO
            };
            let _ = stream.write_all(reply);
        }
    });
    let mut target = target(address);
    target.http.timeout_ns = 60 * MS;
    let mut run = run(target);
    let began = run.clock.now();
    assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::Timeout));
    assert!(run.clock.now() - began >= 60 * MS);
    answer.send(()).unwrap();
    // The next one has the same limit, which a busy machine may miss.
    let next = (0..20).map(|_| run.one(&Verb::Get, 1, 1, 0)).find(|outcome| outcome.fault.is_none()).unwrap();
    assert_eq!(next.bytes, 5);
}

#[test]
fn a_dead_server_is_asked_ten_times_a_second_and_not_more() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut run = run(target(address));
    let began = run.clock.now();
    for _ in 0..4 {
        assert_eq!(run.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::Refused));
    }
    assert!(run.clock.now() - began >= 300 * MS, "three waits of 100 ms");
    assert!(run.examples()[0].text.contains("connection refused"));
}

#[test]
fn a_refusal_before_the_body_is_sent_is_heard() {
    const REFUSED: &[u8] = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 54\r\n\r\n<Error><Code>AccessDenied</Code><Message/></Error>    ";
    let address = server(|mut stream, _| {
        request(&mut stream);
        stream.write_all(REFUSED).unwrap();
        // Most of the body is never read: the client must not wait to send it.
        std::thread::sleep(Duration::from_millis(500));
    });
    let mut run = run(target(address));
    let outcome = run.one(&PUT, 1, 1, 64 << 20);
    assert_eq!((outcome.fault, outcome.bytes), (Some(Fault::Denied), 0), "{:?}", run.examples());
}

#[test]
fn an_acknowledgement_of_what_was_not_sent_is_no_success() {
    let address = server(|mut stream, _| {
        request(&mut stream);
        stream.write_all(HELLO).unwrap();
        std::thread::sleep(Duration::from_millis(500));
    });
    assert_eq!(run(target(address)).one(&PUT, 1, 1, 64 << 20).fault, Some(Fault::Protocol));
}

#[test]
fn a_large_body_goes_through_a_slow_reader_whole() {
    let (tell, told) = channel();
    let address = server(move |mut stream, _| {
        while let Some(head) = request(&mut stream) {
            let length = head.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap();
            let mut body = vec![1; length.parse().unwrap()];
            for piece in body.chunks_mut(300_000) {
                stream.read_exact(piece).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            tell.send(body.iter().all(|byte| *byte == 0)).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    });
    let mut run = run(target(address));
    assert_eq!(run.well(&PUT, 1, 1, 20_000_000).bytes, 20_000_000);
    assert!(told.recv().unwrap());
}

#[test]
fn what_is_abandoned_closes_its_connection_and_the_lane_goes_on() {
    let address = server(|mut stream, number| {
        while request(&mut stream).is_some() {
            if number > 0 {
                stream.write_all(HELLO).unwrap();
            }
        }
    });
    let mut run = run(target(address));
    let operation = Operation { action: 0, space: 1, item: 1, bytes: 0, random: 0 };
    assert_eq!(run.session.begin(0, &operation, run.clock.now()), Begin::Started);
    run.session.reap(run.clock.now() + 20 * MS, &mut Vec::new());
    run.session.abandon();
    let ended = run.wait(1);
    assert_eq!(ended[0].outcome.fault, Some(Fault::Abandoned));
    run.well(&Verb::Get, 1, 1, 0);
}

#[test]
fn ranges_must_be_what_was_asked_for() {
    let ignored = always(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(run(target(ignored)).one(&RANGE, 1, 1, 0).fault, Some(Fault::Protocol));
    let short = always(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(run(target(short)).one(&RANGE, 1, 1, 0).fault, Some(Fault::ShortTransfer));
}

/// A server that sends every head it gets to the test, and answers with a greeting.
fn listening() -> (SocketAddr, Receiver<String>) {
    let (tell, told) = channel();
    let address = server(move |mut stream, _| {
        while let Some(head) = request(&mut stream) {
            let _ = tell.send(head);
            let _ = stream.write_all(HELLO);
        }
    });
    (address, told)
}

#[test]
fn requests_say_what_they_should() {
    let (address, told) = listening();
    let mut target = target(address);
    target.path_style = false;
    target.storage_class = Some("STANDARD_IA".into());
    target.http.no_keep_alive = true;
    let mut run = run(target.clone());
    run.well(&Verb::Get, 1, 2, 0);
    let get = told.recv().unwrap();
    assert!(get.starts_with("GET /o2 HTTP/1.1\r\nHost: box1."), "{get}");
    assert!(get.contains("\r\nConnection: close\r\n") && !get.contains("storage-class"), "{get}");
    run.well(&PUT, 1, 2, 0);
    let put = told.recv().unwrap();
    assert!(
        put.contains("x-amz-storage-class: STANDARD_IA\r\n") && put.contains(";x-amz-storage-class"),
        "{put}"
    );
    assert!(put.contains("Content-Length: 0\r\n") && !put.contains("SECRET"), "{put}");
    target.access_key = "".into();
    Run::of(Target::S3(target), unverified(&[Verb::Head]), 1).well(&Verb::Head, 1, 2, 0);
    assert!(!told.recv().unwrap().contains("Authorization"));
}

/// 32 bytes in base64.
const KEY: &str = "dGlkZW1hcmsncyBrZXkgb2YgdGVzdHMsIG5vdCBhIG8=";

const COPY: Verb = Verb::Copy;

#[test]
fn a_server_that_does_not_confirm_encryption_is_named() {
    let kms = Encryption::Kms { key_id: Some("lab".into()) };
    let customer = Encryption::Customer { key: Some(KEY.into()) };
    let asks = "x-amz-server-side-encryption: ";
    for (encryption, wanted, reads) in [
        (Encryption::Server, format!("{asks}AES256\r\n"), false),
        (kms, format!("{asks}aws:kms\r\nx-amz-server-side-encryption-aws-kms-key-id: lab\r\n"), false),
        (customer, format!("x-amz-server-side-encryption-customer-key: {KEY}\r\n"), true),
    ] {
        let (address, told) = listening();
        let mut target = target(address);
        target.encryption = Some(encryption);
        target.storage_class = Some("STANDARD_IA".into());
        let verbs = [PUT, Verb::Get, Verb::Head, COPY, Verb::Delete];
        let mut run = Run::of(Target::S3(target), unverified(&verbs), 1);
        for verb in &verbs {
            let fault = run.one(verb, 1, 2, 0).fault;
            let head = told.recv().unwrap();
            let asked = matches!(verb, &PUT | Verb::Copy) || reads && *verb != Verb::Delete;
            assert_eq!(head.contains(&wanted), asked, "{verb:?}: {head}");
            assert_eq!(fault, asked.then_some(Fault::Protocol), "{verb:?}");
            assert_eq!(head.contains("x-amz-copy-source-server-side"), reads && *verb == COPY, "{head}");
            let names = head.split("SignedHeaders=").nth(1).unwrap().split(',').next().unwrap();
            let names: Vec<&str> = names.split(';').collect();
            assert!(names.is_sorted() && names.iter().any(|name| name.contains("encryption")) == asked);
        }
        let said = run.examples().remove(0).text;
        assert!(
            said.contains(&format!(
                "http://{address} reports success, but its reply does not hold `x-amz-server-side-"
            )),
            "{said}"
        );
    }
}

#[test]
fn a_key_of_encryption_that_a_server_repeats_is_masked() {
    let address = server(|mut stream, _| {
        while let Some(head) = request(&mut stream) {
            let key = head.split("customer-key: ").nth(1).and_then(|rest| rest.split('\r').next()).unwrap();
            let body = format!("<Error><Code>X</Code><Message>not {key} again</Message></Error>");
            let reply = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    let mut target = target(address);
    target.encryption = Some(Encryption::Customer { key: Some(KEY.into()) });
    let mut run = run(target.clone());
    assert_eq!(run.one(&PUT, 1, 1, 0).fault, Some(Fault::ClientError));
    let said = run.examples().remove(0).text;
    assert!(said.ends_with("400 X: not *** again"), "{said}");
    assert!(!format!("{target:?}").contains(KEY));
}

/// Answers every deletion with success, and everything else with this listing; counts what it is asked.
fn listing(body: &'static str) -> (SocketAddr, Arc<Mutex<usize>>) {
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    let address = server(move |mut stream, _| {
        while let Some(head) = request(&mut stream) {
            *counted.lock().unwrap() += 1;
            // The body of a request is read as the beginning of the next.
            let body = if head.starts_with("POST ") || head.contains(">POST ") { "" } else { body };
            let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            if stream.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    });
    (address, asked)
}

#[test]
fn a_listing_that_does_not_get_on_is_a_failure() {
    let same = "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>";
    let (address, asked) = listing(same);
    let empties = Verb::DeleteContainer { empty: Emptied::Always };
    let mut run = Run::of(Target::S3(target(address)), unverified(std::slice::from_ref(&empties)), 1);
    assert_eq!(run.one(&empties, 1, 0, 0).fault, Some(Fault::Protocol));
    assert!(run.examples()[0].text.contains("the server reported object a deleted, and still lists it"));
    assert_eq!(*asked.lock().unwrap(), 21, "11 listings, 10 deletions");

    let circle = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>";
    let (address, asked) = listing(circle);
    let lists = Verb::List { page: 10, all: true, by_object: false };
    let mut run = Run::of(Target::S3(target(address)), unverified(std::slice::from_ref(&lists)), 1);
    assert_eq!(run.one(&lists, 1, 0, 0).fault, Some(Fault::Protocol));
    assert!(run.examples()[0].text.contains("the listing continues with the token that was sent"));
    assert_eq!(*asked.lock().unwrap(), 2);
}

#[test]
fn a_container_that_keeps_no_versions_although_it_was_to_is_a_failure() {
    let (address, told) = listening();
    let versioned = Verb::CreateContainer { keeps: Keeps::Versions };
    let mut run = Run::of(Target::S3(target(address)), unverified(std::slice::from_ref(&versioned)), 1);
    assert_eq!(run.one(&versioned, 1, 0, 0).fault, Some(Fault::Protocol));
    let asked: Vec<String> = told.try_iter().collect();
    let [made, _, status] = &asked[..] else { panic!("{asked:#?}") };
    assert!(made.starts_with("PUT /box1 HTTP"), "{made}");
    // After the body of the request before, which this server does not read.
    assert!(
        status.contains("<Status>Enabled</Status></VersioningConfiguration>GET /box1?versioning= "),
        "{status}"
    );
}

#[test]
fn lanes_take_turns_over_the_endpoints() {
    let servers = [listening(), listening()];
    let mut target = target(servers[0].0);
    target.http.endpoints.push(format!("http://{}", servers[1].0));
    let mut run = Run::of(Target::S3(target), unverified(&[Verb::Get]), 4);
    for slot in 0..4 {
        let operation = Operation { action: 0, space: 1, item: u64::from(slot), bytes: 0, random: 0 };
        assert_eq!(run.perform(slot, &operation).outcome.fault, None);
    }
    for (number, (_, told)) in servers.iter().enumerate() {
        let heads: Vec<String> = told.try_iter().collect();
        assert_eq!(heads.len(), 2);
        assert!(heads[0].starts_with(&format!("GET /box1/o{number} ")), "{}", heads[0]);
    }
}

#[test]
fn preflight_knows_what_is_no_s3_server_and_a_clock_that_is_off() {
    let told = |reply: &'static [u8]| {
        let job = Job { target: Target::S3(target(always(reply))), actions: actions(&[PUT]) };
        preflight(&job, None).unwrap_err().to_string()
    };
    let page = told(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>");
    assert!(page.contains("not as an S3 server"), "{page}");
    assert!(told(b"SSH-2.0-OpenSSH\r\n\r\n").contains("did not speak HTTP"));
    let old = told(
        b"HTTP/1.1 403 Forbidden\r\nDate: Thu, 01 Jan 2015 00:00:00 GMT\r\nContent-Length: 49\r\n\r\n\
          <Error><Code>RequestTimeTooSkewed</Code></Error> ",
    );
    assert!(old.contains("ahead of") && old.contains(" d ") && old.contains("clock"), "{old}");
    let torn = S3 { access_key: "KEY\n".into(), ..target(always(HELLO)) };
    let job = Job { target: Target::S3(torn), actions: actions(&[PUT]) };
    assert!(preflight(&job, None).unwrap_err().to_string().contains("line break"));
    let region = told(
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 83\r\n\r\n\
          <Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error> ",
    );
    assert!(region.contains("us-east-1") && region.contains("eu-west-1"), "{region}");
}

#[test]
fn what_all_endpoints_reply_before_a_load_has_one_limit() {
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    let long = server(move |mut stream, _| {
        while request(&mut stream).is_some() {
            *counted.lock().unwrap() += 1;
            let list = b"<ListAllMyBucketsResult></ListAllMyBucketsResult>";
            let body = [&list[..], &vec![b' '; 30 << 20]].concat();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).is_err() {
                return;
            }
        }
    });
    let mut target = target(long);
    target.http.endpoints = vec![format!("http://{long}"); 4];
    let job = Job { target: Target::S3(target), actions: actions(&[PUT]) };
    let refusal = preflight(&job, None).unwrap_err().to_string();
    assert!(refusal.contains("its replies add up to more than 64 MiB"), "{refusal}");
    assert_eq!(*asked.lock().unwrap(), 3, "two replies are within the limit, the third is not");
}

#[test]
fn what_a_server_says_is_told_without_secrets() {
    let echo = |body: &str| {
        let reply = format!(
            "HTTP/1.1 403 Forbidden\r\nServer: SECRET\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        always(String::leak(reply).as_bytes())
    };
    let body = "<Error><Code>AccessDenied</Code><Message>SECRET and 53 U0VDUkVU are not SESSION%2BTOKEN</Message></Error>";
    let target = S3 { session_token: Some("SESSION+TOKEN".into()), ..target(echo(body)) };
    let mut run = run(target.clone());
    assert_eq!(run.one(&Verb::Get, 1, 2, 0).fault, Some(Fault::Denied));
    let told = run.examples()[0].text.clone();
    assert!(told.contains("403 AccessDenied: *** and 53 *** are not ***"), "{told}");
    let job = Job { target: Target::S3(target), actions: actions(&[PUT]) };
    let said = match preflight(&job, None) {
        Ok(said) => said,
        Err(error) => error.to_string(),
    };
    assert!(!said.contains("SECRET") && !said.contains("SESSION"), "{said}");
}

mod tls {
    use super::*;
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    /// A server with a certificate of its own making; gives its address and the certificate's PEM.
    fn serve() -> (SocketAddr, String) {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        let address = server(move |stream, _| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            while let Some(head) = request(&mut stream) {
                let mut body = vec![0; if head.starts_with("PUT") { 1_000_000 } else { 0 }];
                stream.read_exact(&mut body).unwrap();
                if head.starts_with("GET") {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").unwrap();
                    stream.write_all(&vec![0; 1_000_000]).unwrap();
                } else {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
            }
        });
        (address, own.cert.pem())
    }

    fn over_tls(address: SocketAddr) -> S3 {
        s3(&format!("https://localhost:{}", address.port()), "KEY", "SECRET")
    }

    #[test]
    fn a_trusted_or_any_certificate_is_taken_and_large_bodies_pass() {
        let (address, pem) = serve();
        let place = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(place.path(), pem).unwrap();
        let (mut trusting, mut careless) = (over_tls(address), over_tls(address));
        trusting.http.ca_file = Some(place.path().to_path_buf());
        careless.http.insecure = true;
        for target in [trusting, careless] {
            let mut run = run(target);
            for _ in 0..3 {
                assert_eq!(run.well(&PUT, 1, 1, 1_000_000).bytes, 1_000_000);
                assert_eq!(run.well(&Verb::Get, 1, 1, 0).bytes, 1_000_000);
                run.well(&Verb::Head, 1, 1, 0);
            }
        }
    }

    #[test]
    fn an_unknown_certificate_and_a_server_without_tls_are_tls_failures() {
        let (address, _) = serve();
        let (_, other) = serve();
        let place = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(place.path(), other).unwrap();
        let mut target = over_tls(address);
        target.http.ca_file = Some(place.path().to_path_buf());
        let mut suspicious = run(target.clone());
        assert_eq!(suspicious.one(&Verb::Get, 1, 1, 0).fault, Some(Fault::Tls));
        assert!(suspicious.examples()[0].text.contains("certificate"));
        let job = Job { target: Target::S3(target), actions: actions(&[PUT]) };
        let told = preflight(&job, None).unwrap_err().to_string();
        assert!(told.contains("ca_file") && told.contains("insecure"), "{told}");
        let mut plain = over_tls(always(HELLO));
        plain.http.insecure = true;
        plain.http.timeout_ns = 1000 * MS;
        let fault = run(plain).one(&Verb::Get, 1, 1, 0).fault;
        assert!(matches!(fault, Some(Fault::Tls | Fault::Timeout)), "{fault:?}");
    }
}

#[test]
fn an_s3_server_that_ignores_conditions_is_found_out_and_one_that_knows_none_is_left_to_the_load() {
    let if_absent = Verb::Put { chunked: false, if_absent: true };
    let heeds = |address| {
        heeded(
            &Job { target: Target::S3(target(address)), actions: actions(std::slice::from_ref(&if_absent)) },
            1,
        )
    };
    let told = heeds(always(HELLO)).unwrap_err().to_string();
    assert!(told.contains("ignores `If-None-Match: *`") && told.contains("remove `if_absent`"), "{told}");
    let answering = |to_conditional: &'static [u8]| {
        server(move |mut stream, _| {
            while let Some(head) = request(&mut stream) {
                let reply = if head.contains("If-None-Match: *") { to_conditional } else { HELLO };
                stream.write_all(reply).unwrap();
            }
        })
    };
    let heeding = answering(b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n");
    assert!(heeds(heeding).unwrap());
    let unable = answering(b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n");
    assert!(!heeds(unable).unwrap(), "its operations will fail and say why");
}
