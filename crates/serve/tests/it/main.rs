//! Where the drivers of one run join: with its token, under its names, and nobody else.
#![allow(clippy::unwrap_used, reason = "a failed test may panic")]

use std::sync::Arc;
use std::time::Duration;
use tidemark_fleet::fleet::{self, Fleet};
use tidemark_fleet::link::client::join;
use tidemark_fleet::link::{FromController, Join, Link};
use tidemark_fleet::protocol::{Hello, VERSION};
use tidemark_serve::DriverServer;

/// Long enough for any machine.
const LONG: Duration = Duration::from_secs(60);

/// What a driver hears first that is more than that it has to try again.
fn answer(link: &Link) -> FromController {
    loop {
        match link.incoming.recv_timeout(LONG).unwrap() {
            FromController::Unreachable(_) => {}
            heard => return heard,
        }
    }
}

#[test]
fn drivers_of_the_run_join_and_nobody_else() {
    let fleet = Fleet::new(fleet::Options {
        name: "run".into(),
        version: "1.2.3".into(),
        silent_after: Duration::from_secs(20),
        gone_after: LONG,
    });
    let server = DriverServer::start(Arc::clone(&fleet), "127.0.0.1:0".parse().unwrap(), "run-*").unwrap();
    let other = DriverServer::start(Arc::clone(&fleet), "127.0.0.1:0".parse().unwrap(), "run-*").unwrap();
    assert_ne!(server.fingerprint(), other.fingerprint());
    let as_driver = |name: &str, token: &str, fingerprint: &str| {
        let to = Join {
            url: format!("https://{}", server.address()),
            token: Some(token.into()),
            trust: format!("sha256:{fingerprint}").parse().unwrap(),
        };
        let hello = Hello {
            protocol: VERSION,
            tidemark: "1.2.3".into(),
            name: name.into(),
            instance: 7,
            ..Hello::default()
        };
        join(to, hello).unwrap()
    };
    let token = server.token().reveal();
    let own = as_driver("run-0", token, server.fingerprint());
    assert!(matches!(answer(&own), FromController::Joined { name, .. } if name == "run"));
    let names: Vec<_> = fleet.members().into_iter().map(|member| member.hello.name).collect();
    assert_eq!(names, ["run-0"]);
    for (name, token, fingerprint) in [
        ("run-1", other.token().reveal(), server.fingerprint()),
        ("run-1", "", server.fingerprint()),
        ("else-1", token, server.fingerprint()),
        ("run-1", token, other.fingerprint()),
    ] {
        let link = as_driver(name, token, fingerprint);
        let heard = answer(&link);
        assert!(matches!(heard, FromController::Refused(_)), "{name}: {heard:?}");
    }
}
