//! An operation of a single request allocates nothing once its slot is warm.
//!
//! The allocator counts the whole process, so this program holds one test, and its server allocates nothing either.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "one test uses a part of it")]
#[path = "it/support/mod.rs"]
mod support;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use support::{PUT, Run, s3};
use tidemark_load::engine::{Begin, Completion, Operation};
use tidemark_measure::fault::Fault;
use tidemark_object::job::{Encryption, Verb};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LANES: u32 = 8;
const OBJECT: usize = 4096;

/// Keeps the last object written, and answers every read with it.
fn serve(mut stream: TcpStream) {
    let (mut bytes, mut object) = ([0; 16_384], [0; OBJECT]);
    let mut have = 0;
    loop {
        let head = loop {
            if let Some(end) = bytes[..have].windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            match stream.read(&mut bytes[have..]) {
                Ok(length) if length > 0 => have += length,
                _ => return,
            }
        };
        let mut used = head;
        let sent = match bytes[0] {
            b'P' => {
                while have < head + OBJECT {
                    have += stream.read(&mut bytes[have..]).unwrap();
                }
                object.copy_from_slice(&bytes[head..head + OBJECT]);
                used += OBJECT;
                stream.write_all(b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\nx-amz-server-side-encryption-customer-algorithm: AES256\r\nContent-Length: 0\r\n\r\n")
            }
            b'D' => stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n"),
            b'H' => stream.write_all(b"HTTP/1.1 200 OK\r\nx-amz-server-side-encryption-customer-algorithm: AES256\r\nContent-Length: 4096\r\n\r\n"),
            _ if bytes[..head].windows(6).any(|window| window == b"Range:") => stream
                .write_all(b"HTTP/1.1 206 Partial Content\r\nx-amz-server-side-encryption-customer-algorithm: AES256\r\nContent-Length: 1024\r\n\r\n")
                .and_then(|()| stream.write_all(&object[..1024])),
            // In two pieces, so that a reply takes more than one read.
            _ => stream
                .write_all(b"HTTP/1.1 200 OK\r\nServer: test\r\nx-amz-server-side-encryption-customer-algorithm: AES256\r\nContent-Length: 4096\r\n\r\n")
                .and_then(|()| stream.write_all(&object)),
        };
        if sent.is_err() {
            return;
        }
        bytes.copy_within(used..have, 0);
        have -= used;
    }
}

/// Does `rounds` operations of an action on every slot; every slot has its own object.
fn perform(run: &mut Run, action: u16, rounds: u32, ended: &mut Vec<Completion>) -> Option<Fault> {
    let mut fault = None;
    for _ in 0..rounds {
        for slot in 0..LANES {
            let item = u64::from(slot);
            let operation = Operation { action, space: 1, item, bytes: OBJECT as u64, random: 0 };
            assert_eq!(run.session.begin(slot, &operation, run.clock.now()), Begin::Started);
        }
        ended.clear();
        while ended.len() < LANES as usize {
            run.session.reap(run.clock.now() + 1_000_000_000, ended);
        }
        fault = fault.or(ended.iter().find_map(|end| end.outcome.fault));
    }
    fault
}

#[test]
fn a_warm_lane_allocates_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || serve(stream));
        }
    });
    let verbs =
        [PUT, Verb::Get, Verb::GetRange { length: 1024, object_bytes: 1024 }, Verb::Head, Verb::Delete];
    let key = Some("dGlkZW1hcmsncyBrZXkgb2YgdGVzdHMsIG5vdCBhIG8=".into());
    let encrypted = Some(Encryption::Customer { key });
    for (path_style, encryption) in [(true, None), (false, None), (true, encrypted)] {
        let mut target = s3(&endpoint, "KEY", "SECRET");
        target.path_style = path_style;
        target.storage_class = encryption.as_ref().map(|_| "STANDARD".into());
        target.encryption = encryption;
        let mut run = Run::s3(&target, &verbs, LANES);
        let mut ended = Vec::with_capacity(LANES as usize);
        for action in 0..verbs.len() as u16 {
            assert_eq!(perform(&mut run, action, 20, &mut ended), None, "{:?}", run.session.examples());
        }
        for (action, verb) in verbs.iter().enumerate() {
            let region = Region::new(ALLOCATOR);
            let fault = perform(&mut run, action as u16, 200, &mut ended);
            let change = region.change();
            assert_eq!(fault, None);
            let counts = (change.allocations, change.reallocations);
            assert_eq!(counts, (0, 0), "{verb:?}: {} bytes", change.bytes_allocated);
        }
    }
}
