//! Who is let in, with which session, and who is there.

use super::*;
use crate::protocol::{Down, Up};
use tidemark_measure::host::Utilization;

#[test]
fn a_driver_that_the_controller_gave_up_begins_a_new_session() {
    let host = Host::new(options());
    let link = host.driver("d1", host.address);
    let heard = host.claim("d1", 3);
    let (sender, _) = crossbeam_channel::unbounded();
    let refused = host.fleet.claim("d1", 4, 0, sender).unwrap_err();
    assert_eq!(refused.to_string(), "driver d1 already works for run 3");
    host.fleet.give_up("d1");
    assert!(
        matches!(next(&link), FromController::SessionLost(reason) if reason.contains("gave this driver up"))
    );
    assert!(matches!(next(&link), FromController::Joined { anew: true, .. }));
    link.send(Up::Prepared { run: 3, targets: Vec::new(), holdings: Vec::new() });
    assert!(link.settle(TIMEOUT));
    wait(|| host.presence("d1") == Some(Presence::Present));
    assert_eq!(host.member("d1").unwrap().run, Some(3));
    assert!(heard.try_recv().is_err(), "the run hears of a driver that it gave up");
    host.fleet.release_from("d1", 4);
    assert_eq!(host.member("d1").unwrap().run, Some(3));
    host.fleet.release_from("d1", 3);
    let heard = host.claim("d1", 5);
    link.send(Up::Prepared { run: 5, targets: Vec::new(), holdings: Vec::new() });
    assert!(
        matches!(heard.recv_timeout(TIMEOUT), Ok((7, FromDriver::Message(up))) if matches!(*up, Up::Prepared { run: 5, .. }))
    );
}

#[test]
fn a_controller_that_does_not_know_the_session_begins_a_new_one() {
    let host = Host::new(options());
    let network = Network::new(&host);
    let link = host.driver("d1", network.address);
    link.send(Up::Prepared { run: 3, targets: Vec::new(), holdings: Vec::new() });
    assert!(link.settle(TIMEOUT));
    // Another controller answers at the same address from now on.
    let other = Host::new(options());
    *network.state.target.lock().unwrap() = other.address;
    network.cut();
    assert!(matches!(next(&link), FromController::Disconnected));
    assert!(matches!(next(&link), FromController::SessionLost(reason) if reason.contains("restarted")));
    assert!(matches!(next(&link), FromController::Joined { anew: true, .. }));
    wait(|| other.presence("d1") == Some(Presence::Present));
    let heard = other.claim("d1", 1);
    link.send(Up::Prepared { run: 1, targets: Vec::new(), holdings: Vec::new() });
    assert!(
        matches!(heard.recv_timeout(TIMEOUT), Ok((7, FromDriver::Message(up))) if matches!(*up, Up::Prepared { run: 1, .. }))
    );
}

#[test]
fn a_driver_of_another_version_or_without_a_name_is_refused() {
    let host = Host::new(options());
    let refusal = |hello: Hello| {
        let link = join(to(host.address), hello).unwrap();
        match next(&link) {
            FromController::Refused(reason) => reason,
            other => panic!("{other:?}"),
        }
    };
    let version = refusal(Hello { tidemark: "1.2.4".into(), ..hello("d1") });
    assert!(
        version.contains("1.2.3") && version.contains("1.2.4") && version.contains("same version"),
        "{version}"
    );
    let protocol = refusal(Hello { protocol: VERSION + 1, ..hello("d1") });
    assert!(protocol.contains("same version"), "{protocol}");
    assert!(refusal(hello("")).contains("--name"));
    let odd_names =
        ["a\nb", "d1\u{200b}", "d\u{2028}1", "\u{202e}1d", "d1 ", "d*", "/../d1", "..", "d\u{430}", "d/1"];
    for name in odd_names {
        assert!(refusal(hello(name)).contains("--name"), "{name:?}");
    }
    let mut odd = hello("d1");
    odd.host.name = "\u{1b}]0;x\u{7}".into();
    assert!(refusal(odd).contains("printable"));
    assert!(refusal(hello(&"x".repeat(200))).contains("--name"));
    assert!(host.fleet.members().is_empty());
    // Those of hosts, of pods and of users are good, and what describes a machine is cut.
    for name in ["node-1.rack_2.example.org", "tidemark-drivers-0", "olga@bench:2", &"x".repeat(128)] {
        let mut good = hello(name);
        (good.host.kernel, good.host.cpu) = ("Linux\n6.1".into(), "x".repeat(10_000));
        let link = join(to(host.address), good).unwrap();
        assert!(matches!(next(&link), FromController::Joined { .. }), "{name}");
        let member = host.fleet.members().into_iter().find(|member| member.hello.name == name).unwrap();
        assert_eq!(
            (member.hello.host.kernel.as_str(), member.hello.host.cpu.chars().count()),
            ("Linux 6.1", 129)
        );
    }
}

#[test]
fn a_driver_without_the_token_is_refused_and_the_token_is_never_shown() {
    let host = Host::new(options());
    let options = Join { token: Some(Secret::new("open sesame")), ..to(host.address) };
    assert!(!format!("{options:?}").contains("sesame"));
    let link = join(options, hello("d1")).unwrap();
    let FromController::Refused(reason) = next(&link) else { panic!("not refused") };
    assert!(reason.contains("--token") && !reason.contains("sesame"), "{reason}");
    assert!(join(Join { token: Some(Secret::new("a\nb")), ..to(host.address) }, hello("d1")).is_err());
}

/// What somebody hears who wants to be `d1`.
fn as_d1(host: &Host, token: &str) -> (Link, FromController) {
    let link = join(Join { token: Some(Secret::new(token)), ..to(host.address) }, hello("d1")).unwrap();
    let heard = link.incoming.recv_timeout(TIMEOUT).unwrap();
    (link, heard)
}

#[test]
fn a_token_is_for_its_own_name() {
    let host = Host::new(options());
    let own = join(Join { token: Some(Secret::new("I am d1")), ..to(host.address) }, hello("d2")).unwrap();
    let FromController::Refused(reason) = next(&own) else { panic!("not refused") };
    assert!(reason.contains("`d1`") && reason.contains("tidemark token add"), "{reason}");
    assert!(host.fleet.members().is_empty());
    let (_link, heard) = as_d1(&host, "I am d1");
    assert!(matches!(heard, FromController::Joined { .. }), "{heard:?}");
}

#[test]
fn a_seat_is_kept_for_a_driver_that_is_cut_off_and_taken_over_by_its_token_only() {
    let host = Host::new(options());
    let network = Network::new(&host);
    let first =
        join(Join { token: Some(Secret::new("I am d1")), ..to(network.address) }, hello("d1")).unwrap();
    assert!(matches!(next(&first), FromController::Joined { .. }));
    wait(|| host.presence("d1") == Some(Presence::Present));
    let heard = host.claim("d1", 3);
    network.swallow(true);
    network.cut();
    assert!(matches!(heard.recv_timeout(TIMEOUT), Ok((7, FromDriver::Disconnected))));
    let (_stranger, told) = as_d1(&host, "let me in");
    assert!(
        matches!(&told, FromController::Unreachable(reason) if reason.contains("keeps its seat")),
        "{told:?}"
    );
    let (_again, told) = as_d1(&host, "I am d1");
    assert!(matches!(told, FromController::Joined { anew: false, .. }), "{told:?}");
    let gone = heard.recv_timeout(TIMEOUT);
    assert!(matches!(&gone, Ok((7, FromDriver::Gone(reason))) if reason == "it was restarted"), "{gone:?}");
}

#[test]
fn a_name_is_taken_until_the_controller_gives_its_driver_up() {
    let host = Host::new(options());
    let network = Network::new(&host);
    let first = host.driver("d1", network.address);
    let heard = host.claim("d1", 3);
    let second = join(to(host.address), hello("d1")).unwrap();
    let FromController::Refused(reason) = next(&second) else { panic!("not refused") };
    assert_eq!(reason, "a driver named d1 has already joined from somewhere: give this one another --name");
    assert_eq!(host.presence("d1"), Some(Presence::Present));

    network.swallow(true);
    wait(|| host.presence("d1") == Some(Presence::Silent));
    // It waits, and is let in once the controller has given the first one up.
    let (third, told) = as_d1(&host, "let me in");
    assert!(
        matches!(&told, FromController::Unreachable(reason) if reason.contains("keeps its seat")),
        "{told:?}"
    );
    assert!(heard.try_iter().all(|(_, heard)| matches!(heard, FromDriver::Disconnected)));
    host.fleet.give_up("d1");
    assert!(matches!(next(&third), FromController::Joined { anew: false, .. }));
    wait(|| host.presence("d1") == Some(Presence::Present));
    network.swallow(false);
    network.cut();
    while !matches!(next(&first), FromController::Refused(_)) {}
    assert_eq!(host.fleet.members().len(), 1);
}

#[test]
fn a_driver_waits_for_a_controller_that_is_not_there_yet() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let link = join(to(address), hello("d1")).unwrap();
    let FromController::Unreachable(reason) = link.incoming.recv_timeout(TIMEOUT).unwrap() else {
        panic!("it does not say that it tries")
    };
    assert!(reason.contains(&address.to_string()), "{reason}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fleet = Fleet::new(options());
    let listener = runtime.block_on(TcpListener::bind(address)).unwrap();
    let router = router(&fleet);
    runtime.spawn(async move { axum::serve(listener, router).await });
    assert!(matches!(next(&link), FromController::Joined { anew: false, .. }));
}

#[test]
fn clocks_are_compared() {
    let host = Host::new(options());
    let link = host.driver("d1", host.address);
    let member = host.member("d1").unwrap();
    // One host, one clock: both count from when they were made. The link's time is somewhere between these two.
    let (before, fleet, after) = (link.now_ns(), host.fleet.clock_ns(), link.now_ns());
    let error = i64::try_from(member.clock_error_ns).unwrap();
    let known = member.clock_offset_ns - error..=member.clock_offset_ns + error;
    assert!(
        *known.start() <= after - fleet && before - fleet <= *known.end(),
        "{known:?}: {before} {fleet} {after}"
    );
    assert!(error > 0);
    let now = link.now_ns();
    assert!(link.instant_of(now) <= Instant::now());
    assert!(link.instant_of(now + 1_000_000_000_000) > Instant::now());
    link.instant_of(i64::MAX);
    link.instant_of(i64::MIN);
}

#[test]
fn health_is_the_latest() {
    let host = Host::new(options());
    let link = host.driver("d1", host.address);
    for busy in [0.25, 0.5] {
        link.utilization(Utilization { cpu_busy: busy, sent_per_s: f64::NAN, ..Utilization::default() });
    }
    wait(|| host.member("d1").unwrap().utilization.cpu_busy == 0.5);
}

#[test]
fn a_driver_that_ends_is_gone_and_forgotten_but_not_while_a_run_has_it() {
    let gone_after = Duration::from_millis(200);
    let host = Host::new(Options { gone_after, ..options() });
    let link = host.driver("d1", host.address);
    let heard = host.claim("d1", 3);
    drop(link);
    assert!(matches!(heard.recv_timeout(TIMEOUT), Ok((7, FromDriver::Disconnected))));
    std::thread::sleep(gone_after * 3);
    assert_eq!(host.presence("d1"), Some(Presence::Silent));
    let (sender, _) = crossbeam_channel::unbounded();
    host.fleet.release("d1");
    let refused = host.fleet.claim("d1", 4, 0, sender.clone()).unwrap_err().to_string();
    // It may be forgotten already.
    assert!(["driver d1 does not answer", "no driver is named d1"].contains(&refused.as_str()), "{refused}");
    let mut changes = host.fleet.changes();
    wait(|| host.presence("d1") != Some(Presence::Silent));
    host.runtime.block_on(async {
        while host.member("d1").is_some() {
            changes.changed().await.unwrap();
        }
    });
    assert_eq!(host.fleet.claim("d1", 4, 0, sender).unwrap_err().to_string(), "no driver is named d1");
    // Nothing comes of what is said to those who are not there.
    host.fleet.send("d1", Down::Release { run: 3 });
    host.fleet.release("d1");
    host.fleet.give_up("d1");
}
