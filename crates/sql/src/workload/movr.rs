//! MovR, the vehicle sharing of CockroachDB's `workload movr`: users who ride vehicles in nine cities. CockroachDB's program has
//! one worker whatever is asked of it; here every client is one, and keeps the rides that it started.
//!
//! The references between tables are not declared as foreign keys, as CockroachDB's are, so that writes cost less here: the checks
//! hold the data against them.

mod rows;

use super::{Action, Check, Family, Transact, Workload};
use crate::bulk::Bulk;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::options::{self, ROWS, Rows};
use crate::schema::Table;
use crate::statement::{Statement, StatementId};
use crate::transaction::{End, Transaction};
use crate::value::Value::{Decimal, Float, Text};
use rows::{CITIES, Id, Words};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use tidemark_keys::kinds::Share;
use tidemark_keys::{Key, Mapping, Table as Keys};
use tidemark_load::engine::Operation;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// The family.
pub(crate) static FAMILY: Family = Family {
    name: "movr",
    workloads: &[("movr", "Vehicle sharing: mostly reads of a city's vehicles, as CockroachDB's `movr`")],
    keys: &KEYS,
    read,
    open: |_, options| Ok(Arc::new(Movr { options: Options::deserialize(options)? })),
};

static KEYS: Mapping = Mapping::new(
    "movr",
    "Options of `movr`",
    &[&NUM_USERS, &NUM_VEHICLES, &NUM_RIDES, &NUM_HISTORIES, &NUM_PROMO_CODES, &READ_PERCENT],
);

static NUM_USERS: Key<Rows> =
    Key::new("num_users", "Users that are loaded, at least one in each of the nine cities", ROWS)
        .default("50");
static NUM_VEHICLES: Key<Rows> =
    Key::new("num_vehicles", "Vehicles that are loaded, at least one in each city", ROWS).default("15");
static NUM_RIDES: Key<Rows> =
    Key::new("num_rides", "Rides that are loaded, at least one in each city", ROWS).default("500");
static NUM_HISTORIES: Key<Rows> =
    Key::new("num_histories", "Locations of rides that are loaded", ROWS).default("1000");
static NUM_PROMO_CODES: Key<Rows> =
    Key::new("num_promo_codes", "Promotion codes that are loaded", ROWS).default("1000");
static READ_PERCENT: Key<Share> =
    Key::new("read_percent", "Share of reads; CockroachDB's is fixed", Share).default("95%");

/// How many rows are loaded, and the share of reads.
#[derive(Serialize, Deserialize)]
struct Options {
    users: u64,
    vehicles: u64,
    rides: u64,
    histories: u64,
    promo_codes: u64,
    reads: f64,
}

fn read(_workload: &str, keys: &mut Keys<'_>) -> serde_json::Value {
    let in_cities = |keys: &mut Keys<'_>, key: &'static Key<Rows>| {
        let rows = keys.value(key);
        if rows < CITIES.len() as u64 {
            let message = format!("`{}: {rows}` leaves cities without any", key.name);
            keys.log().error(keys.place(), message, "write at least 9: one for each city");
        }
        rows
    };
    options::pack(&Options {
        users: in_cities(keys, &NUM_USERS),
        vehicles: in_cities(keys, &NUM_VEHICLES),
        rides: in_cities(keys, &NUM_RIDES),
        histories: keys.value(&NUM_HISTORIES),
        promo_codes: keys.value(&NUM_PROMO_CODES),
        reads: keys.value(&READ_PERCENT),
    })
}

struct Movr {
    options: Options,
}

/// The operations beside reads, each with how often it is done per hundred of CockroachDB's rounds that do not read: a round sends
/// the locations of the rides under way, and does one of the others.
const WRITES: [(Write, f64); 7] = [
    (Write::UpdateActiveRides, 100.0),
    (Write::CreatePromoCode, 3.0),
    (Write::ApplyPromoCode, 10.0),
    (Write::AddUser, 30.0),
    (Write::AddVehicle, 10.0),
    (Write::StartRide, 40.0),
    (Write::EndRide, 7.0),
];

/// An operation that writes.
#[derive(Clone, Copy)]
enum Write {
    UpdateActiveRides,
    CreatePromoCode,
    ApplyPromoCode,
    AddUser,
    AddVehicle,
    StartRide,
    EndRide,
}

/// The most locations that are sent at once, and the most rides that a client keeps.
const MOST_LOCATIONS: usize = 10;
const MOST_RIDES: usize = 100;

const VEHICLES: StatementId = 0;
const LOCATION: StatementId = 1;
const NEW_CODE: StatementId = 2;
const ANY_USER: StatementId = 3;
const ANY_VEHICLE: StatementId = 4;
const ANY_CODE: StatementId = 5;
const USES: StatementId = 6;
const USE: StatementId = 7;
const NEW_USER: StatementId = 8;
const NEW_VEHICLE: StatementId = 9;
const NEW_RIDE: StatementId = 10;
const END_RIDE: StatementId = 11;

/// The row of a city whose id is the next after a random one: no query counts rows to choose one of them.
fn any_of(table: &str) -> String {
    format!(
        "SELECT coalesce((SELECT id FROM {table} WHERE city = $1 AND id > $2 ORDER BY id LIMIT 1), \
         (SELECT min(id) FROM {table} WHERE city = $1))"
    )
}

impl Workload for Movr {
    fn tables(&self) -> Vec<Table> {
        self.options.tables()
    }

    fn generate(&self, table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        self.options.generate(table, units, bulk);
    }

    fn version(&self) -> u32 {
        1
    }

    fn data_options(&self) -> serde_json::Value {
        let Options { users, vehicles, rides, histories, promo_codes, .. } = self.options;
        serde_json::json!([users, vehicles, rides, histories, promo_codes])
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let all = [
            "SELECT city, id FROM vehicles WHERE city = $1".to_owned(),
            // Of a ride whose start was not committed after all, there is no location.
            "INSERT INTO vehicle_location_histories (city, ride_id, timestamp, lat, lon) \
             SELECT city, id, CURRENT_TIMESTAMP(6), $3, $4 FROM rides WHERE city = $1 AND id = $2"
                .to_owned(),
            "INSERT INTO promo_codes (code, description, creation_time, expiration_time, rules) \
             VALUES ($1, $2, CURRENT_TIMESTAMP(6), CURRENT_TIMESTAMP(6), $3)"
                .to_owned(),
            any_of("users"),
            any_of("vehicles"),
            "SELECT coalesce((SELECT code FROM promo_codes WHERE code > $1 ORDER BY code LIMIT 1), \
             (SELECT min(code) FROM promo_codes))"
                .to_owned(),
            "SELECT count(*) FROM user_promo_codes WHERE city = $1 AND user_id = $2 AND code = $3".to_owned(),
            // Another client may have been faster.
            dialect.insert_if_new("user_promo_codes", &["city", "user_id", "code"]),
            "INSERT INTO users (city, id, name, address, credit_card) VALUES ($1, $2, $3, $4, $5)".to_owned(),
            "INSERT INTO vehicles (city, id, type, owner_id, creation_time, status, current_location, ext) \
             VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP(6), 'available', $5, $6)"
                .to_owned(),
            "INSERT INTO rides (city, id, vehicle_city, rider_id, vehicle_id, start_address, start_time, revenue) \
             VALUES ($1, $2, $1, $3, $4, $5, CURRENT_TIMESTAMP(6), $6)"
                .to_owned(),
            "UPDATE rides SET end_address = $3, end_time = CURRENT_TIMESTAMP(6) WHERE city = $1 AND id = $2".to_owned(),
        ];
        all.map(Statement::new).to_vec()
    }

    fn actions(&self) -> Vec<Action> {
        let reads = self.options.reads.clamp(0.0, 1.0);
        let read = Action::statement("read-vehicles").reading().weight(reads);
        let all: f64 = WRITES.iter().map(|(_, each_hundred)| each_hundred).sum();
        // The statements of the usual case: a client without a ride starts one first, and a code is used once.
        let write = |(write, each_hundred): (Write, f64)| {
            let action = match write {
                Write::UpdateActiveRides => Action::transaction("update-active-rides", MOST_LOCATIONS as f64),
                Write::CreatePromoCode => Action::statement("create-promo-code"),
                Write::ApplyPromoCode => Action::transaction("apply-promo-code", 4.0),
                Write::AddUser => Action::statement("add-user"),
                Write::AddVehicle => Action::transaction("add-vehicle", 2.0),
                Write::StartRide => Action::transaction("start-ride", 3.0),
                Write::EndRide => Action::transaction("end-ride", 1.0),
            };
            action.weight((1.0 - reads) * each_hundred / all)
        };
        let actions = std::iter::once(read).chain(WRITES.map(write));
        actions.filter(|action| action.weight > 0.0).collect()
    }

    fn checks(&self) -> Vec<Check> {
        let check =
            |holds: &str, broken_rows: String| Check { holds: holds.into(), broken_rows, scans: true };
        // The rows of a table that refer to one which is not there.
        let refers = |holds: &str, table: &str, column: &str, to: &str| {
            let rows = format!(
                "SELECT 1 FROM {table} t LEFT JOIN {to} r ON r.city = t.city AND r.id = t.{column} WHERE r.id IS NULL"
            );
            check(holds, rows)
        };
        let Options { users, vehicles, rides, histories, promo_codes, .. } = self.options;
        let loaded = [
            ("users", users),
            ("vehicles", vehicles),
            ("rides", rides),
            ("vehicle_location_histories", histories),
            ("promo_codes", promo_codes),
        ];
        let fewer = loaded.map(|(table, rows)| format!("(SELECT count(*) FROM {table}) < {rows}"));
        let code = "SELECT 1 FROM user_promo_codes u LEFT JOIN promo_codes c ON c.code = u.code WHERE c.code IS NULL";
        vec![
            check(
                "no row that was loaded is missing",
                format!("SELECT 1 FROM (SELECT 1 AS one) single WHERE {}", fewer.join(" OR ")),
            ),
            refers("each vehicle's owner is a user of its city", "vehicles", "owner_id", "users"),
            refers("each ride's rider is a user of its city", "rides", "rider_id", "users"),
            refers("each ride's vehicle is one of its city", "rides", "vehicle_id", "vehicles"),
            refers("each location is a ride's", "vehicle_location_histories", "ride_id", "rides"),
            refers("each use of a promotion code is a user's", "user_promo_codes", "user_id", "users"),
            check(
                "each ride's vehicle city is its city",
                "SELECT 1 FROM rides WHERE vehicle_city <> city".into(),
            ),
            check("each promotion code that was used was issued", code.into()),
        ]
    }
}

/// A ride that a client started and has not ended.
struct Ride {
    city: &'static str,
    id: Id,
}

/// What a slot keeps: the rides under way, and how to take back what the last attempt changed of them.
struct State {
    rides: Vec<Ride>,
    words: Words,
    /// The number that the choices of the last attempt began with: an attempt that is made again has the same.
    attempt: u64,
    began: Option<Id>,
    ended: Option<(usize, Ride)>,
}

impl State {
    /// Begins an attempt. One that is made again finds the rides as the first did.
    fn begin(&mut self, rng: &Rng) {
        let attempt = rng.clone().bits();
        let (began, ended) = (self.began.take(), self.ended.take());
        if attempt == self.attempt {
            if let Some((place, ride)) = ended {
                self.rides.push(ride);
                let last = self.rides.len() - 1;
                self.rides.swap(place, last);
            }
            if began.is_some_and(|id| self.rides.last().is_some_and(|last| last.id == id)) {
                self.rides.pop();
            }
        }
        self.attempt = attempt;
    }
}

impl Transact for Movr {
    type State = State;

    fn state(&self) -> State {
        State {
            rides: Vec::with_capacity(MOST_RIDES),
            words: Words::default(),
            attempt: 0,
            began: None,
            ended: None,
        }
    }

    async fn transact(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        rng: &mut Rng,
        state: &mut State,
    ) -> Result<End, Failure> {
        state.begin(rng);
        let city = CITIES[rng.below(CITIES.len() as u64) as usize];
        let (action, words) = (usize::from(operation.action), &mut state.words);
        // Without reads, the writes are the first actions.
        let write = match self.options.reads > 0.0 {
            true if action == 0 => {
                transaction.query(VEHICLES, &[Text(city)]).await?;
                return Ok(End::Commit);
            }
            true => action - 1,
            false => action,
        };
        match WRITES[write].0 {
            Write::UpdateActiveRides => {
                start_the_first(transaction, city, rng, state).await?;
                for ride in state.rides.iter().rev().take(MOST_LOCATIONS) {
                    let place = [Float(rng.unit() * 180.0 - 90.0), Float(rng.unit() * 360.0 - 180.0)];
                    transaction
                        .add(LOCATION, &[Text(ride.city), Text(ride.id.text()), place[0], place[1]])?;
                }
                transaction.run().await?;
            }
            Write::CreatePromoCode => {
                let (code, about) = (words.code(rng), words.description(rng));
                transaction.execute(NEW_CODE, &[Text(code.text()), Text(about), Text(rows::RULES)]).await?;
            }
            Write::ApplyPromoCode => {
                let user = any(transaction, ANY_USER, city, rng).await?;
                let next = Id::random(rng);
                let code =
                    Id::copied(transaction.query(ANY_CODE, &[Text(next.text())]).await?.first()?.text(0)?);
                let own = [Text(city), Text(user.text()), Text(code.text())];
                let uses: u64 = transaction.query(USES, &own).await?.first()?.number(0)?;
                if uses == 0 {
                    transaction.execute(USE, &own).await?;
                }
            }
            Write::AddUser => {
                let id = Id::random(rng);
                let (name, address, card) = words.user(rng);
                let user = [Text(city), Text(id.text()), Text(name), Text(address), Text(card)];
                transaction.execute(NEW_USER, &user).await?;
            }
            Write::AddVehicle => {
                let (owner, id) = (any(transaction, ANY_USER, city, rng).await?, Id::random(rng));
                let (kind, ext) = rows::vehicle(rng);
                let place = Text(words.address(rng));
                let vehicle = [Text(city), Text(id.text()), Text(kind), Text(owner.text()), place, Text(ext)];
                transaction.execute(NEW_VEHICLE, &vehicle).await?;
            }
            Write::StartRide => start(transaction, city, rng, state).await?,
            Write::EndRide => {
                start_the_first(transaction, city, rng, state).await?;
                let place = rng.below(state.rides.len() as u64) as usize;
                let ride = &state.rides[place];
                let address = Text(state.words.address(rng));
                let own = [Text(ride.city), Text(ride.id.text()), address];
                transaction.execute(END_RIDE, &own).await?;
                state.ended = Some((place, state.rides.swap_remove(place)));
            }
        }
        Ok(End::Commit)
    }
}

/// Any row of a city.
async fn any(
    transaction: &mut Transaction<'_>,
    statement: StatementId,
    city: &str,
    rng: &mut Rng,
) -> Result<Id, Failure> {
    let next = Id::random(rng);
    let rows = transaction.query(statement, &[Text(city), Text(next.text())]).await?;
    let found = rows.first()?.get(0)?;
    found
        .map(Id::copied)
        .ok_or_else(|| Failure::new(Fault::NotFound, format!("{city} has no users or vehicles")))
}

/// Starts a ride if the client has none, so that there is one to work on.
async fn start_the_first(
    transaction: &mut Transaction<'_>,
    city: &'static str,
    rng: &mut Rng,
    state: &mut State,
) -> Result<(), Failure> {
    match state.rides.is_empty() {
        true => start(transaction, city, rng, state).await,
        false => Ok(()),
    }
}

async fn start(
    transaction: &mut Transaction<'_>,
    city: &'static str,
    rng: &mut Rng,
    state: &mut State,
) -> Result<(), Failure> {
    let rider = any(transaction, ANY_USER, city, rng).await?;
    let vehicle = any(transaction, ANY_VEHICLE, city, rng).await?;
    let (id, revenue) = (Id::random(rng), Decimal(rng.below(10_000) as i64, 2));
    let (rider, vehicle, address) =
        (Text(rider.text()), Text(vehicle.text()), Text(state.words.address(rng)));
    transaction.execute(NEW_RIDE, &[Text(city), Text(id.text()), rider, vehicle, address, revenue]).await?;
    if state.rides.len() == MOST_RIDES {
        state.rides.remove(0);
    }
    state.rides.push(Ride { city, id });
    state.began = Some(id);
    Ok(())
}
