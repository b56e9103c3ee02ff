//! The tables of MovR and what is in them.

use super::Options;
use crate::bulk::Bulk;
use crate::schema::{Column, Index, Kind, Table};
use crate::value::Value::{Decimal, Float, Text, Time};
use std::fmt::Write as _;
use std::ops::Range;
use tidemark_measure::rng::Rng;

/// The cities: what each table but `promo_codes` is cut by.
pub(super) const CITIES: [&str; 9] = [
    "amsterdam",
    "boston",
    "los angeles",
    "new york",
    "paris",
    "rome",
    "san francisco",
    "seattle",
    "washington dc",
];

const SEED: u64 = 0x6d6f_7672;

/// When everything that is loaded happened, or began to, microseconds since 1970: 2019-01-01.
const BEGAN: i64 = 1_546_300_800_000_000;
const MINUTE: i64 = 60_000_000;

/// What a promotion code is worth.
pub(super) const RULES: &str = r#"{"type": "percent_discount", "value": "10%"}"#;

const USERS: usize = 0;
const VEHICLES: usize = 1;
const RIDES: usize = 2;
const HISTORIES: usize = 3;

/// The key of a row: a UUID of version 4 as text, of which nothing is allocated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Id([u8; 36]);

impl Id {
    /// A random one.
    pub(super) fn random(rng: &mut Rng) -> Self {
        let mut bits = u128::from(rng.bits()) << 64 | u128::from(rng.bits());
        bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        let mut text = [b'-'; 36];
        let digits = text.iter_mut().enumerate().filter(|(place, _)| ![8, 13, 18, 23].contains(place));
        for (number, (_, digit)) in digits.enumerate() {
            *digit = b"0123456789abcdef"[(bits >> (124 - 4 * number)) as usize & 0xf];
        }
        Self(text)
    }

    /// That of a row that is loaded.
    fn of(table: usize, unit: u64) -> Self {
        Self::random(&mut Rng::new(SEED, &[table as u64, unit]))
    }

    /// A copy of what a query gave; shorter ones end with blanks.
    pub(super) fn copied(text: &str) -> Self {
        let mut own = [b' '; 36];
        own.iter_mut().zip(text.bytes()).for_each(|(own, byte)| *own = byte);
        Self(own)
    }

    /// Its text.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default().trim_end()
    }
}

/// Texts, written into buffers that are kept.
#[derive(Default)]
pub(super) struct Words([String; 3]);

const FIRST: [&str; 16] = [
    "Ada", "Boris", "Chen", "Dana", "Emil", "Fatima", "Greta", "Hugo", "Iris", "Jamal", "Kira", "Luca",
    "Mina", "Noor", "Olga", "Pedro",
];
const LAST: [&str; 16] = [
    "Adler", "Brandt", "Costa", "Dupont", "Endo", "Fischer", "Garcia", "Hansen", "Ivanov", "Jensen",
    "Kowalski", "Lopez", "Moreau", "Novak", "Olsen", "Petrov",
];
const STREETS: [&str; 16] = [
    "Acacia", "Beech", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel", "Ivy", "Juniper", "Larch",
    "Maple", "Oak", "Pine", "Rowan", "Willow",
];

fn one<'a>(of: &[&'a str], rng: &mut Rng) -> &'a str {
    of[rng.below(of.len() as u64) as usize]
}

fn push_address(text: &mut String, rng: &mut Rng) {
    text.clear();
    let (number, street, flat) = (rng.below(99_999) + 1, one(&STREETS, rng), rng.below(99) + 1);
    // Writing to memory does not fail.
    let _ = write!(text, "{number} {street} Street Apt. {flat}");
}

impl Words {
    /// Name, address and credit card of a user.
    pub(super) fn user(&mut self, rng: &mut Rng) -> (&str, &str, &str) {
        let [name, address, card] = &mut self.0;
        name.clear();
        let _ = write!(name, "{} {}", one(&FIRST, rng), one(&LAST, rng));
        push_address(address, rng);
        card.clear();
        let _ = write!(card, "{:010}", rng.below(10_000_000_000));
        (name, address, card)
    }

    /// An address.
    pub(super) fn address(&mut self, rng: &mut Rng) -> &str {
        push_address(&mut self.0[0], rng);
        &self.0[0]
    }

    /// A new promotion code.
    pub(super) fn code(&self, rng: &mut Rng) -> Id {
        Id::random(rng)
    }

    /// What a promotion code is for.
    pub(super) fn description(&mut self, rng: &mut Rng) -> &str {
        let text = &mut self.0[1];
        text.clear();
        for _ in 0..12 {
            let _ = write!(text, "{} {} ", one(&STREETS, rng), one(&LAST, rng));
        }
        text
    }
}

/// The kind of a vehicle, and what else is known of it.
pub(super) fn vehicle(rng: &mut Rng) -> (&'static str, &'static str) {
    const ALL: [(&str, &str); 5] = [
        ("bike", r#"{"brand": "Kestrel", "color": "green"}"#),
        ("bike", r#"{"brand": "Merlin", "color": "blue"}"#),
        ("scooter", r#"{"color": "red"}"#),
        ("scooter", r#"{"color": "yellow"}"#),
        ("skateboard", r#"{"color": "black"}"#),
    ];
    ALL[rng.below(ALL.len() as u64) as usize]
}

/// The number of a row's city, of so many rows: the rows of a city are one behind the other.
fn city(unit: u64, rows: u64) -> u64 {
    (u128::from(unit) * CITIES.len() as u128 / u128::from(rows.max(1))) as u64
}

/// Any row of a city, of so many rows.
fn row_in(city: u64, rows: u64, rng: &mut Rng) -> u64 {
    let begin = |city: u64| (u128::from(city) * u128::from(rows)).div_ceil(CITIES.len() as u128) as u64;
    begin(city) + rng.below((begin(city + 1) - begin(city)).max(1))
}

impl Options {
    pub(super) fn tables(&self) -> Vec<Table> {
        let city = Column::new("city", Kind::Varchar(16));
        let id = |name| Column::new(name, Kind::Varchar(36));
        let text = |name| Column::new(name, Kind::Varchar(64)).nullable();
        let time = |name| Column::new(name, Kind::Time);
        let index = |name: &str, columns| Index { name: name.into(), columns, unique: false };
        let own = vec!["city", "id"];
        let users = vec![city, id("id"), text("name"), text("address"), text("credit_card")];
        let vehicles = vec![
            city,
            id("id"),
            text("type"),
            id("owner_id"),
            time("creation_time"),
            text("status"),
            text("current_location"),
            text("ext"),
        ];
        let rides = vec![
            city,
            id("id"),
            Column::new("vehicle_city", Kind::Varchar(16)),
            id("rider_id"),
            id("vehicle_id"),
            text("start_address"),
            text("end_address"),
            time("start_time"),
            time("end_time").nullable(),
            Column::new("revenue", Kind::Decimal(10, 2)),
        ];
        let histories = vec![
            city,
            id("ride_id"),
            time("timestamp"),
            Column::new("lat", Kind::Float),
            Column::new("lon", Kind::Float),
        ];
        let codes = vec![
            id("code"),
            Column::new("description", Kind::Text),
            time("creation_time"),
            time("expiration_time"),
            text("rules"),
        ];
        let uses = vec![
            city,
            id("user_id"),
            id("code"),
            time("timestamp").default("CURRENT_TIMESTAMP(6)"),
            Column::new("usage_count", Kind::Int).default("1"),
        ];
        let of_owner = vec![index("vehicles_owner", vec!["city", "owner_id"])];
        let of_ride = vec![
            index("rides_rider", vec!["city", "rider_id"]),
            index("rides_vehicle", vec!["vehicle_city", "vehicle_id"]),
        ];
        vec![
            Table { key: own.clone(), row_bytes: 140, ..Table::new("users", users, self.users) },
            Table {
                key: own.clone(),
                row_bytes: 210,
                indexes: of_owner,
                ..Table::new("vehicles", vehicles, self.vehicles)
            },
            Table { key: own, row_bytes: 250, indexes: of_ride, ..Table::new("rides", rides, self.rides) },
            Table {
                key: vec!["city", "ride_id", "timestamp"],
                row_bytes: 110,
                ..Table::new("vehicle_location_histories", histories, self.histories)
            },
            Table { key: vec!["code"], row_bytes: 300, ..Table::new("promo_codes", codes, self.promo_codes) },
            Table {
                key: vec!["city", "user_id", "code"],
                row_bytes: 150,
                ..Table::new("user_promo_codes", uses, 0)
            },
        ]
    }

    pub(super) fn generate(&self, table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
        let (mut words, mut more) = (Words::default(), Words::default());
        for unit in units {
            let id = Id::of(table, unit);
            // Not the stream that the id comes from.
            let rng = &mut Rng::new(SEED, &[table as u64, unit, 1]);
            let at = BEGAN + (unit as i64 % 500_000) * MINUTE;
            let place = |rows| {
                let number = city(unit, rows);
                (number, Text(CITIES[number as usize]))
            };
            match table {
                USERS => {
                    let (_, city) = place(self.users);
                    let (name, address, card) = words.user(rng);
                    bulk.row(&[city, Text(id.text()), Text(name), Text(address), Text(card)]);
                }
                VEHICLES => {
                    let (number, city) = place(self.vehicles);
                    let owner = Id::of(USERS, row_in(number, self.users, rng));
                    let (kind, ext) = vehicle(rng);
                    let status = one(&["available", "in_use", "lost"], rng);
                    let (id, kind, owner, status) =
                        (Text(id.text()), Text(kind), Text(owner.text()), Text(status));
                    bulk.row(&[city, id, kind, owner, Time(at), status, Text(words.address(rng)), Text(ext)]);
                }
                RIDES => {
                    let (number, city) = place(self.rides);
                    let rider = Id::of(USERS, row_in(number, self.users, rng));
                    let vehicle = Id::of(VEHICLES, row_in(number, self.vehicles, rng));
                    let (from, to) = (words.address(rng), more.address(rng));
                    let lasted = (rng.below(120) as i64 + 1) * MINUTE;
                    bulk.row(&[
                        city,
                        Text(id.text()),
                        city,
                        Text(rider.text()),
                        Text(vehicle.text()),
                        Text(from),
                        Text(to),
                        Time(at),
                        Time(at + lasted),
                        Decimal(rng.below(10_000) as i64, 2),
                    ]);
                }
                HISTORIES => {
                    let (ride, turn) = (unit % self.rides.max(1), unit / self.rides.max(1));
                    let (id, city) = (Id::of(RIDES, ride), CITIES[city(ride, self.rides) as usize]);
                    // The turn of its ride: no ride has two at a time.
                    let at = Time(BEGAN + turn as i64 * MINUTE);
                    let place = [Float(rng.unit() * 180.0 - 90.0), Float(rng.unit() * 360.0 - 180.0)];
                    bulk.row(&[Text(city), Text(id.text()), at, place[0], place[1]]);
                }
                _ => {
                    let about = words.description(rng);
                    let until = Time(at + 30 * 24 * 60 * MINUTE);
                    bulk.row(&[Text(id.text()), Text(about), Time(at), until, Text(RULES)]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_of_version_4_and_never_the_same() {
        let mut rng = Rng::new(1, &[]);
        let all: std::collections::HashSet<String> =
            (0..10_000).map(|_| Id::random(&mut rng).text().to_owned()).collect();
        assert_eq!(all.len(), 10_000);
        for id in all {
            let parts: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            assert!(&id[14..15] == "4" && "89ab".contains(&id[19..20]), "{id}");
        }
        assert_eq!(Id::copied("short").text(), "short");
    }

    #[test]
    fn what_refers_to_a_row_finds_it_in_its_city() {
        let mut rng = Rng::new(2, &[]);
        for rows in [9, 10, 15, 50, 1000, 10_007] {
            let cities: std::collections::BTreeSet<u64> = (0..rows).map(|unit| city(unit, rows)).collect();
            assert_eq!(cities.len(), CITIES.len(), "each city has one of {rows}");
            for number in 0..9 {
                for _ in 0..50 {
                    let row = row_in(number, rows, &mut rng);
                    assert_eq!((city(row, rows), row < rows), (number, true), "{row} of {rows}");
                }
            }
        }
    }
}
