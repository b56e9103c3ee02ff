//! Drivers that come and go, for the audit log: what is different from the last look.

use std::collections::BTreeMap;
use tidemark_fleet::fleet::{Member, Presence};

/// What was seen at the last look.
#[derive(Default)]
pub(crate) struct PresenceLog(BTreeMap<String, Seen>);

struct Seen {
    joined_unix_ms: u64,
    gone: bool,
    /// Whether it worked for a run when it was last there.
    worked: bool,
}

/// Something that became of a driver.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it connects from, or did.
    pub(crate) address: String,
    /// `driver joined`, `driver lost` (a run had it) or `driver gone`.
    pub(crate) what: &'static str,
    /// Its name, and its host.
    pub(crate) detail: String,
}

impl PresenceLog {
    /// What is different now. A driver that is only silent is neither gone nor joined anew.
    pub(crate) fn changes(&mut self, members: &[Member]) -> Vec<Entry> {
        let mut entries = Vec::new();
        for member in members {
            let (name, host) = (&member.hello.name, &member.hello.host.name);
            let before = self.0.get(name).filter(|seen| !seen.gone);
            let gone = member.presence == Presence::Gone;
            let worked = match member.presence {
                Presence::Present => member.run.is_some(),
                Presence::Silent | Presence::Gone => before.is_some_and(|seen| seen.worked),
            };
            let mut note = |what| {
                let detail = format!("{name} on {host}");
                entries.push(Entry { address: member.address.clone(), what, detail });
            };
            let anew = before.is_none_or(|seen| seen.joined_unix_ms != member.joined_unix_ms);
            if let Some(seen) = before
                && (gone || anew)
            {
                note(if seen.worked { "driver lost" } else { "driver gone" });
            }
            if anew && !gone {
                note("driver joined");
            }
            self.0.insert(name.clone(), Seen { joined_unix_ms: member.joined_unix_ms, gone, worked });
        }
        // Those that are forgotten were gone before.
        self.0.retain(|name, seen| !seen.gone || members.iter().any(|member| member.hello.name == *name));
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::member;

    fn look(log: &mut PresenceLog, presence: Presence, joined: u64, run: Option<u64>) -> Vec<&'static str> {
        let one = Member { presence, joined_unix_ms: joined, run, ..member("d1") };
        log.changes(&[one]).into_iter().map(|entry| entry.what).collect()
    }

    #[test]
    fn who_comes_and_goes_is_noted_once() {
        let mut log = PresenceLog::default();
        assert_eq!(look(&mut log, Presence::Present, 1, None), ["driver joined"]);
        assert!(look(&mut log, Presence::Present, 1, Some(7)).is_empty());
        assert!(look(&mut log, Presence::Silent, 1, Some(7)).is_empty(), "it may come back");
        assert!(look(&mut log, Presence::Silent, 1, None).is_empty(), "its run has let it go");
        assert_eq!(look(&mut log, Presence::Gone, 1, None), ["driver lost"]);
        assert!(look(&mut log, Presence::Gone, 1, None).is_empty());
        assert_eq!(look(&mut log, Presence::Present, 2, None), ["driver joined"]);
        assert_eq!(look(&mut log, Presence::Present, 3, None), ["driver gone", "driver joined"]);
        assert_eq!(look(&mut log, Presence::Gone, 3, None), ["driver gone"]);
        assert!(log.changes(&[]).is_empty() && log.0.is_empty(), "it is forgotten");
    }
}
