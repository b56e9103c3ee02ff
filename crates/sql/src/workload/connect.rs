//! Connections themselves: each operation opens one, with TLS and authentication, and closes it. What a storm of clients does
//! to a server, or to a pool in front of it.

use super::{Action, Family, Runnable, Workload};
use crate::dialect::Dialect;
use crate::slot::Slot;
use crate::statement::Statement;
use std::sync::Arc;
use tidemark_keys::Mapping;
use tidemark_reactor::{Mailbox, Task};

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "connect",
    workloads: &[("connect", "Opens a connection, with TLS and authentication, and closes it")],
    keys: &KEYS,
    read: |_, _| serde_json::Value::Null,
    open: |_, _| Ok(Arc::new(Connect)),
};

static KEYS: Mapping = Mapping::new("connect", "Options of `connect`: none", &[]);

struct Connect;

impl Workload for Connect {
    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        Vec::new()
    }

    fn actions(&self) -> Vec<Action> {
        vec![Action { statements: 0.0, ..Action::statement("connect").reading() }]
    }

    fn keeps_connections(&self) -> bool {
        false
    }
}

impl Runnable for Connect {
    fn run(self: Arc<Self>, mut slot: Slot, mailbox: Mailbox) -> Task {
        Box::pin(async move {
            loop {
                let (operation, _) = mailbox.next().await;
                let (at, outcome) = slot.visit(&operation).await;
                mailbox.complete(at, outcome);
            }
        })
    }
}
