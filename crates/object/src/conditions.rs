//! Whether a storage heeds `If-None-Match: *`, found out before a load that relies on it.
//!
//! One that ignores the condition overwrites what is there and reports success: every operation of the load would count as
//! what it is not. Only a write shows, so this one makes an empty object of its own beside those of the load, writes it
//! again on the condition that it is not there, and deletes it.

use crate::content::DataSet;
use crate::job::{self, Action, Content, Form, Job, Naming, Target, Verb};
use crate::operate::{Prepared, Protocol, Task};
use crate::preflight::patient;
use crate::{s3, swift};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tidemark_load::budget::Budget;
use tidemark_load::engine::{Clock, OpenError, Operation};
use tidemark_measure::fault::Fault;
use tidemark_reactor::Reactor;

/// Whether a job writes on the condition that there is nothing yet.
pub(crate) fn relies_on_conditions(job: &Job) -> bool {
    job.actions.iter().any(is_conditional)
}

fn is_conditional(action: &Action) -> bool {
    matches!(action.verb, Verb::Put { if_absent: true, .. })
}

/// Whether all endpoints of a job's target are known to heed the condition. `container` is the number of a container that
/// the job uses; if it is not there yet, or nothing may be written to it, nothing is known.
///
/// # Errors
/// When an endpoint ignores the condition.
pub fn heeded(job: &Job, container: u64) -> Result<bool, OpenError> {
    let Some(conditional) = job.actions.iter().find(|action| is_conditional(action)) else { return Ok(true) };
    let naming = &conditional.naming;
    let naming =
        Naming { object_prefix: format!("{}tidemark-condition-", naming.object_prefix), ..naming.clone() };
    let put = |if_absent| Verb::Put { chunked: false, if_absent };
    let content = Content { form: Form::Zero, verify: false };
    let actions =
        [put(false), put(true), Verb::Delete].map(|verb| Action { verb, naming: naming.clone(), content });
    let actions = Prepared::all(&actions, &DataSet::new(0, 0, 0, Default::default()))?;
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let operation =
        Operation { space: container, item: since_1970.as_nanos() as u64, ..Operation::default() };
    let clock = Clock::starting_at(Instant::now());
    match &job.target {
        Target::S3(target) => {
            let target = Arc::new(job::S3 { http: patient(&target.http), ..target.clone() });
            let reactor = Reactor::within(clock, target.http.timeout_ns, &Budget::preflight())?;
            ask(s3::slots(&target, &reactor)?, &actions, operation, &reactor)
        }
        Target::Swift(target) => {
            let target = Arc::new(job::Swift { http: patient(&target.http), ..target.clone() });
            let reactor = Reactor::within(clock, target.http.timeout_ns, &Budget::preflight())?;
            ask(swift::slots(&target, &reactor)?, &actions, operation, &reactor)
        }
        Target::Mock(_) | Target::Nothing | Target::Embedded(_) => Ok(true),
    }
}

/// Asks every endpoint, each on an object of its own.
fn ask(
    slots: Vec<(String, impl Protocol)>,
    actions: &[Prepared],
    operation: Operation,
    reactor: &Rc<Reactor>,
) -> Result<bool, OpenError> {
    let mut all_known = true;
    for ((url, mut slot), number) in slots.into_iter().zip(0..) {
        let operation = Operation { item: operation.item.wrapping_add(number), ..operation };
        match reactor.block_on(heeds(&mut slot, actions, operation, reactor)) {
            Some(true) => {}
            None => all_known = false,
            Some(false) => {
                return Err(OpenError(format!(
                    "{url} ignores `If-None-Match: *`: it overwrote an object that was there, and reported success. \
                     Writes with `if_absent` would succeed without having been conditional: remove `if_absent`, or use a \
                     storage or an interface of it that knows the condition"
                )));
            }
        }
    }
    Ok(all_known)
}

/// Whether one endpoint does; `None` where that cannot be seen.
async fn heeds(
    slot: &mut impl Protocol,
    actions: &[Prepared],
    operation: Operation,
    reactor: &Reactor,
) -> Option<bool> {
    let [write, conditional, delete] = actions else { return None };
    slot.attempt(&Task::untracked(write, operation, reactor.now())).await.ok()?;
    let again = slot.attempt(&Task::untracked(conditional, operation, reactor.now())).await;
    // What cannot be deleted is an empty object whose name says where it comes from.
    let _ = slot.attempt(&Task::untracked(delete, operation, reactor.now())).await;
    match again {
        Ok(_) => Some(false),
        Err(failure) if matches!(failure.fault, Fault::Precondition | Fault::Conflict) => Some(true),
        Err(_) => None,
    }
}
