//! Drivers' connections through the whole server.

use super::{DRIVER, Server, tokens};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};
use tidemark_fleet::fleet::{FromDriver, Presence};
use tidemark_fleet::link::{self, FromController, Join, Trust};
use tidemark_fleet::protocol::{Hello, Up, VERSION};
use tidemark_measure::observation::Node;
use tidemark_plan::secret::Secret;

/// A driver that has joined.
fn joined(server: &Server) -> link::Link {
    let url = format!("http://{}", server.address());
    let join = Join { url, token: Some(Secret::new(DRIVER)), trust: Trust::System };
    let hello =
        Hello { protocol: VERSION, tidemark: "1".into(), name: "d1".into(), instance: 7, ..Hello::default() };
    let link = link::join(join, hello).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let is_there = || server.fleet.members().iter().any(|member| member.presence == Presence::Present);
    while !is_there() {
        assert!(Instant::now() < until, "it does not join");
        std::thread::sleep(Duration::from_millis(10));
    }
    link
}

#[test]
fn long_messages_of_drivers_arrive() {
    let server = Server::start(tokens());
    let link = joined(&server);
    let (events, heard) = crossbeam_channel::unbounded();
    server.fleet.claim("d1", 1, 0, events).unwrap();
    // Longer than one frame may be unless more was agreed on.
    let long = vec![Node { at_ns: vec![u64::MAX; 1_200_000], ..Node::default() }];
    link.send(Up::Released { run: 1, nodes: long.clone(), origin_ns: 0 });
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match heard.recv_deadline(until).expect("it does not arrive").1 {
            FromDriver::Message(up) => {
                assert!(matches!(*up, Up::Released { nodes, .. } if nodes == long));
                break;
            }
            FromDriver::Gone(reason) => panic!("{reason}"),
            _ => {}
        }
    }
    assert!(link.incoming.try_iter().all(|told| !matches!(told, FromController::SessionLost(_))));
}

#[test]
fn whoever_has_not_introduced_itself_is_not_listened_to_for_long() {
    let server = Server::start(tokens());
    let mut stranger = server.connect();
    write!(
        stranger,
        "GET /api/v1/link HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {DRIVER}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address()
    )
    .unwrap();
    let mut answer = [0; 12];
    stranger.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
    // Parts of a text that is never complete: 64 KiB each, masked with zeroes.
    let (mut part, all) = (vec![0x01, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], 512);
    part.extend(vec![b'x'; 64 << 10]);
    let sent = (0..all).take_while(|number| {
        part[0] = if *number == 0 { 0x01 } else { 0x00 };
        stranger.write_all(&part).is_ok()
    });
    let sent = sent.count();
    assert!(sent < all, "all of it was taken");
    drop(joined(&server));
}

#[test]
fn a_driver_that_was_let_in_takes_no_place_of_others() {
    let limits = crate::Limits { connections: 16, ..super::generous() };
    let server = Server::limited(tokens(), limits);
    let link = joined(&server);
    let idle: Vec<_> = (0..100).map(|_| server.connect()).collect();
    assert_eq!(server.get("/api/v1/info").status, 200);
    assert!(
        link.incoming.try_iter().all(|told| !matches!(told, FromController::Disconnected)),
        "it gave way"
    );
    drop(idle);
}
