//! Networks: full links, full traffic shapers, losses.

use super::{AT_LIMIT, View};
use crate::words::limits::{Limit, Sending};
use crate::words::standing::Standing;
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;

/// Segments sent again out of a hundred that show a network with losses; a healthy one in a data centre has none.
const RETRANSMITTED: f64 = 0.01;

/// Connections refused and packets dropped per second that are worth telling.
const DROPS: f64 = 1.0;

/// The subject of the generator's own connections.
const OWN: &str = "connections";

/// Whether a link was full.
pub(super) fn link(view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (link, speed) in view.means(Kind::Network, "speed") {
        for (metric, sends) in [("rx_bytes", false), ("tx_bytes", true)] {
            let used = view.level(Kind::Network, link, metric);
            if speed > 0.0 && used >= AT_LIMIT * speed {
                let what = Limit::Link { link: link.to_owned(), sends, used, speed };
                findings.push(view.busy(Severity::Warning, what, of_load(view, sends, used)));
            }
        }
    }
    findings
}

/// Whether a traffic shaper let out all that it may: the link itself looks idle then.
pub(super) fn shaper(view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (link, rate) in view.means(Kind::Network, "shaper_rate") {
        let level = |metric| view.level(Kind::Network, link, metric);
        let used = level("shaped_bytes");
        if rate <= 0.0 || used < AT_LIMIT * rate {
            continue;
        }
        let (backlog, drops) = (level("shaper_backlog"), level("shaper_drops"));
        let what =
            Limit::Shaper { link: link.to_owned(), used, rate, backlog, drops, connections: sending(view) };
        findings.push(view.busy(Severity::Warning, what, of_load(view, true, used)));
    }
    findings
}

/// Whether what went over a link in one way was the load's. Servers send what the load reads; what they send each other is
/// for what it writes.
fn of_load(view: &View<'_>, sends: bool, used: f64) -> Standing {
    let load = match view.node.generates {
        true => view.load_bytes(sends),
        false => view.load_bytes(true) + view.load_bytes(false),
    };
    view.standing(Some(load / used))
}

/// The generator's own connections, where they were observed.
fn sending(view: &View<'_>) -> Option<Sending> {
    let level = |metric| view.level(Kind::Network, OWN, metric);
    let connections = view.mean(Kind::Network, OWN, "count").filter(|_| view.node.generates)?;
    Some(Sending {
        connections,
        sending: level("sending"),
        receiver_limited: level("receiver_limited"),
        buffer_limited: level("buffer_limited"),
    })
}

/// Whether packets or connections were lost: those of the load's own connections, or of anybody's on the node.
pub(super) fn losses(view: &View<'_>) -> Vec<Finding> {
    let level = |subject, metric| view.level(Kind::Network, subject, metric);
    let many = |number: f64| Some(number).filter(|number| *number >= DROPS);
    let again = |again: f64, all: f64| many(again).filter(|again| *again > RETRANSMITTED * all);
    let known = sending(view).is_some();
    let (all, own) = (level(OWN, "sent_segments"), level(OWN, "retransmitted_segments"));
    if let Some(own) = again(own, all).filter(|_| known) {
        let what = Limit::Losses {
            own: true,
            sent: all - own,
            sent_again: Some(own),
            dropped: None,
            not_accepted: None,
        };
        return vec![view.caused(what)];
    }
    let (sent, of_node) = (level("tcp", "sent_segments"), level("tcp", "retransmitted_segments"));
    let sent_again = again(of_node, sent + of_node);
    let (dropped, not_accepted) = (many(level("softnet", "dropped")), many(level("tcp", "listen_drops")));
    if [sent_again, dropped, not_accepted].iter().all(Option::is_none) {
        return Vec::new();
    }
    let what = Limit::Losses { own: false, sent, sent_again, dropped, not_accepted };
    let standing = if lost_nothing(view) { Standing::Others { share: 1.0 } } else { Standing::Unknown };
    vec![view.busy(Severity::Warning, what, standing)]
}

/// Whether losses on this node are others': the load's own connections were observed there, and lost nothing.
fn lost_nothing(view: &View<'_>) -> bool {
    sending(view).is_some() && view.level(Kind::Network, OWN, "retransmitted_segments") < DROPS
}
