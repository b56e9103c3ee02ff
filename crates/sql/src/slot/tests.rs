//! What is around a transaction, against a server that follows a script.

use crate::counted::Counted;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::instances::Instances;
use crate::job::Settings;
use crate::sessions::Databases;
use crate::slot::{Route, own_number};
use crate::statement::Statement;
use crate::testing::{Answer, Fake};
use crate::transaction::{End, Transaction};
use crate::value::Value::Int;
use crate::workload::{Action, Transact, Workload};
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::engine::{Begin, Clock, Operation, Outcome, Session, Sessions as _, ThreadContext};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::EndpointKind;
use tidemark_measure::rng::Rng;

/// One update with a random parameter, in a transaction or alone; or one that rolls back on purpose.
struct One;

const ALONE: u16 = 1;
const ROLLED_BACK: u16 = 2;
const TWICE_ALONE: u16 = 3;

impl Workload for One {
    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        vec![Statement::new("UPDATE t SET a = $1")]
    }

    fn actions(&self) -> Vec<Action> {
        vec![
            Action::transaction("one", 1.0),
            Action::statement("alone"),
            Action::transaction("back", 1.0),
            Action::statement("twice"),
        ]
    }
}

impl Transact for One {
    type State = ();

    fn state(&self) {}

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        rng: &mut Rng,
        _state: &mut (),
    ) -> Result<End, Failure> {
        transaction.add(0, &[Int(rng.below(1000) as i64)])?;
        if operation.action == TWICE_ALONE {
            transaction.add(0, &[Int(rng.below(1000) as i64)])?;
        }
        transaction.run().await?;
        Ok(if operation.action == ROLLED_BACK { End::Rollback } else { End::Commit })
    }
}

/// Does one operation after the other on one slot, against a script; gives the outcomes, and the aborts.
fn outcomes(fake: &Fake, settings: &Settings, actions: &[u16]) -> (Vec<Outcome>, Vec<(Fault, u64)>) {
    let counted: Arc<Counted> = Arc::default();
    let outcomes = counting(fake, settings, actions, &counted);
    (outcomes, counted.take().values().flat_map(|counts| counts.aborts.iter()).collect())
}

/// The same; what was counted goes where it does in a stage.
fn counting(fake: &Fake, settings: &Settings, actions: &[u16], counted: &Arc<Counted>) -> Vec<Outcome> {
    let (instances, servers) = (fake.target.clone().into(), vec![fake.server()]);
    let databases = Databases::new(Arc::new(One), &instances, servers, Route::BySlot, settings, counted);
    let clock = Clock::starting_at(Instant::now());
    let context = ThreadContext { clock, thread: 0, first_slot: 0, slots: 1, largest: 0, seed: 1 };
    let mut session = databases.open(context).unwrap();
    let one =
        |action: &u16| one(&mut *session, &Operation { action: *action, random: 5, ..Operation::default() });
    actions.iter().map(one).collect()
}

fn one(session: &mut dyn Session, operation: &Operation) -> Outcome {
    match session.begin(0, operation, 0) {
        Begin::Done(_, outcome) => outcome,
        Begin::Started => {
            let mut ended = Vec::new();
            while ended.is_empty() {
                session.reap(u64::MAX / 2, &mut ended);
            }
            ended[0].outcome
        }
    }
}

/// A script that answers the n-th round trip with a statement of this beginning in its own way.
fn when(
    beginning: &'static str,
    answers: impl Fn(usize) -> Answer + Send + 'static,
) -> impl FnMut(&[String]) -> Answer + Send {
    let mut count = 0;
    move |statements| match statements.iter().any(|statement| statement.starts_with(beginning)) {
        true => {
            count += 1;
            answers(count)
        }
        false => Answer::Fine,
    }
}

fn quick() -> Settings {
    Settings { back_off_ns: 1, tries: 3, ..Settings::default() }
}

#[test]
fn a_transaction_is_begun_and_committed_or_rolled_back_on_purpose() {
    let fake = Fake::new(|_| Answer::Fine);
    let (outcomes, _) = outcomes(&fake, &quick(), &[0, ALONE, ROLLED_BACK]);
    assert!(outcomes.iter().all(|outcome| outcome.fault.is_none()), "{outcomes:?}");
    let update = "UPDATE t SET a = $1";
    assert_eq!(fake.statements(), ["BEGIN", update, "COMMIT", update, "BEGIN", update, "ROLLBACK"]);
    let piped = Fake::new(|_| Answer::Fine);
    let settings = Settings { pipeline: true, ..quick() };
    self::outcomes(&piped, &settings, &[0]);
    assert_eq!(piped.messages(), ["PBEPBES", "PBES"], "BEGIN goes with the first statement");
    let apart = Fake::new(|_| Answer::Fine);
    self::outcomes(&apart, &settings, &[TWICE_ALONE]);
    assert_eq!(apart.messages(), ["PBES", "BES"], "one Sync would make one transaction of both");
}

#[test]
fn a_conflict_is_done_again_and_counted_until_tries_are_used_up() {
    let fake =
        Fake::new(when("UPDATE", |count| if count < 3 { Answer::Fails(0, "40001") } else { Answer::Fine }));
    let (ended, aborts) = outcomes(&fake, &quick(), &[0]);
    assert_eq!((ended[0].fault, ended[0].retries), (None, 2));
    assert_eq!(aborts, [(Fault::Serialization, 2)]);
    assert_eq!(fake.statements().iter().filter(|statement| *statement == "ROLLBACK").count(), 2);

    let fake = Fake::new(when("UPDATE", |_| Answer::Fails(0, "40P01")));
    let (ended, aborts) = outcomes(&fake, &quick(), &[0]);
    assert_eq!((ended[0].fault, ended[0].retries), (Some(Fault::Deadlock), 2));
    assert_eq!(aborts, [(Fault::Deadlock, 2)], "the last one is the failure");

    let fake = Fake::new(when("UPDATE", |_| Answer::Fails(0, "23505")));
    let (ended, aborts) = outcomes(&fake, &quick(), &[0, 0]);
    assert_eq!((ended[0].fault, ended[0].retries), (Some(Fault::Constraint), 0));
    assert!(aborts.is_empty(), "what is no conflict is not tried again");
    assert_eq!(fake.statements().iter().filter(|statement| *statement == "BEGIN").count(), 2);
}

#[test]
fn what_was_lost_in_its_commit_is_never_done_again() {
    let fake = Fake::new(when("COMMIT", |count| if count == 1 { Answer::Close } else { Answer::Fine }));
    let (ended, aborts) = outcomes(&fake, &quick(), &[0, 0]);
    assert_eq!((ended[0].fault, ended[0].retries), (Some(Fault::Ambiguous), 0));
    assert_eq!(ended[1].fault, None, "the next one has a new connection");
    assert!(aborts.is_empty());
    assert_eq!(fake.statements().iter().filter(|statement| statement.starts_with("UPDATE")).count(), 2);
    let alone = Fake::new(when("UPDATE", |count| if count == 1 { Answer::Close } else { Answer::Fine }));
    let (ended, _) = outcomes(&alone, &quick(), &[ALONE]);
    assert_eq!(ended[0].fault, Some(Fault::Ambiguous), "a statement alone is its own commit");
    let before = Fake::new(when("UPDATE", |count| if count == 1 { Answer::Close } else { Answer::Fine }));
    let (ended, _) = outcomes(&before, &quick(), &[0]);
    assert_eq!(ended[0].fault, Some(Fault::Reset), "before COMMIT nothing can have happened");
}

#[test]
fn a_refused_commit_is_done_again_and_needs_no_rollback() {
    let fake =
        Fake::new(when("COMMIT", |count| if count == 1 { Answer::Fails(0, "40001") } else { Answer::Fine }));
    let (ended, aborts) = outcomes(&fake, &quick(), &[0]);
    assert_eq!((ended[0].fault, ended[0].retries), (None, 1));
    assert_eq!(aborts, [(Fault::Serialization, 1)]);
    let update = "UPDATE t SET a = $1";
    assert_eq!(fake.statements(), ["BEGIN", update, "COMMIT", "BEGIN", update, "COMMIT"]);
}

#[test]
fn a_commit_that_rolled_back_is_no_success() {
    // Its first statement fails; that the COMMIT only rolls back is in its tag.
    let fake = Fake::new(|statements| match statements {
        [only] if only == "COMMIT" => Answer::Raw(b"2\0\0\0\x04C\0\0\0\x0dROLLBACK\0Z\0\0\0\x05I".to_vec()),
        _ => Answer::Fine,
    });
    let (ended, _) = outcomes(&fake, &quick(), &[0]);
    assert_eq!(ended[0].fault, Some(Fault::Sql));
}

#[test]
fn with_a_savepoint_a_conflict_keeps_its_place() {
    let settings = Settings { savepoint: true, ..quick() };
    let fake =
        Fake::new(when("RELEASE", |count| if count == 1 { Answer::Fails(0, "40001") } else { Answer::Fine }));
    let (ended, aborts) = outcomes(&fake, &settings, &[0]);
    assert_eq!((ended[0].fault, ended[0].retries), (None, 1));
    assert_eq!(aborts, [(Fault::Serialization, 1)]);
    let words: Vec<String> =
        fake.statements().iter().map(|text| text.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "BEGIN",
        "SAVEPOINT cockroach_restart",
        "UPDATE t",
        "RELEASE SAVEPOINT",
        "ROLLBACK TO",
        "UPDATE t",
        "RELEASE SAVEPOINT",
        "COMMIT",
    ];
    assert_eq!(words, expected);

    let ambiguous = Fake::new(when("RELEASE", |_| Answer::Fails(0, "XX000")));
    let (ended, _) = outcomes(&ambiguous, &settings, &[0]);
    assert_eq!((ended[0].fault, ended[0].retries), (Some(Fault::Ambiguous), 0));

    let hopeless = Fake::new(when("UPDATE", |_| Answer::Fails(0, "40001")));
    let (ended, _) = outcomes(&hopeless, &settings, &[0]);
    assert_eq!((ended[0].fault, ended[0].retries), (Some(Fault::Serialization), 2));
    assert_eq!(hopeless.statements().last().unwrap(), "ROLLBACK", "what is given up is ended");
}

#[test]
fn clients_stay_with_their_instance_and_loaders_go_where_their_chunk_is() {
    let fakes = [Fake::new(|_| Answer::Fine), Fake::new(|_| Answer::Fine)];
    let done = || {
        fakes.each_ref().map(|fake| fake.statements().iter().filter(|sql| sql.starts_with("UPDATE")).count())
    };
    let instances = Instances::new(fakes[0].target.clone(), vec![fakes[1].target.clone()]);
    let clock = Clock::starting_at(Instant::now());
    let context = ThreadContext { clock, thread: 0, first_slot: 1, slots: 1, largest: 0, seed: 1 };
    let open = |route| {
        let servers = fakes.iter().map(Fake::server).collect();
        let settings = Settings::default();
        Databases::new(Arc::new(One), &instances, servers, route, &settings, &Arc::default())
    };
    let at = |space| Operation { action: ALONE, space, ..Operation::default() };
    let load = open(Route::BySlot);
    assert_eq!((load.endpoints(), load.endpoint_kind()), (instances.names(), EndpointKind::Instance));
    let mut session = load.open(context).unwrap();
    for space in [2, 1, 4] {
        assert_eq!(one(&mut *session, &at(space)).fault, None);
    }
    assert_eq!(done(), [0, 3], "the slot is the work's second");
    let loader = open(Route::BySpace);
    assert!(loader.endpoints().is_empty());
    let mut session = loader.open(context).unwrap();
    for space in [1, 1, 2, 1] {
        assert_eq!(one(&mut *session, &at(space)).fault, None);
    }
    assert_eq!(done(), [3, 4]);
}

#[test]
fn a_ledger_is_read_before_the_first_transaction_and_marked_with_each_commit() {
    let fake = Fake::new(|_| Answer::Fine);
    let settings = Settings { ledger: true, ..quick() };
    let (ended, _) = outcomes(&fake, &settings, &[0, ALONE, ROLLED_BACK]);
    assert!(ended.iter().all(|outcome| outcome.fault.is_none()), "{ended:?}");
    let words: Vec<String> =
        fake.statements().iter().map(|text| text.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    let done = ["BEGIN", "UPDATE t", "UPDATE tidemark_ledger", "COMMIT"];
    let expected =
        ["SELECT commits"].into_iter().chain(done).chain(done).chain(["BEGIN", "UPDATE t", "ROLLBACK"]);
    assert_eq!(words, expected.collect::<Vec<_>>());
    assert_eq!(
        fake.messages().iter().filter(|one| *one == "PBEPBES").count(),
        1,
        "mark and commit go together"
    );
}

#[test]
fn what_was_lost_in_its_commit_is_looked_for_in_the_ledger() {
    let fake = Fake::new(when("COMMIT", |count| if count == 1 { Answer::Close } else { Answer::Fine }));
    let settings = Settings { ledger: true, ..quick() };
    let counted: Arc<Counted> = Arc::default();
    counting(&fake, &settings, &[0, 0], &counted);
    let reads = fake.statements().iter().filter(|text| text.starts_with("SELECT commits")).count();
    assert_eq!(reads, 2, "on each connection");
    assert_eq!(counted.take().values().map(|counts| counts.accounts.len()).sum::<usize>(), 1);
}

#[test]
fn every_instance_has_a_first_client_and_a_last() {
    let of_instance = |instance: u64| {
        let clients = (1..=12u64).filter(move |client| (client - 1) % 3 == instance);
        clients.map(|client| own_number(client, 3)).collect::<Vec<_>>()
    };
    assert_eq!([0, 1, 2].map(of_instance), [[1, 2, 3, 4]; 3]);
}
