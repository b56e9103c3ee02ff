//! The initial population, clause 4.3.3.1.

use super::draw::{between, digits, last_name, name_to_load, percent, text};
use super::schema::{CUSTOMER, DISTRICT, HISTORY, ITEM, ITEMS_PER_UNIT, NEW_ORDERS, ORDER, STOCK, WAREHOUSE};
use super::{CUSTOMERS, DISTRICTS, FIRST_NEW, ITEMS, ORDERS};
use crate::bulk::Bulk;
use crate::value::Value::{self, Decimal, Int, Null, Text, Time};
use std::ops::Range;
use tidemark_measure::rng::Rng;

const SEED: u64 = 0x7470_6363;

/// When all that is loaded happened: 2026-01-01. Rows depend on nothing but the options.
const LOADED_AT: Value<'static> = Time(1_767_225_600_000_000);

/// Adds the rows of some units of a table.
pub(super) fn generate(table: usize, units: Range<u64>, bulk: &mut Bulk<'_>) {
    let mut words = Words::default();
    for unit in units {
        let rng = &mut Rng::new(SEED, &[table as u64, unit]);
        let district = District { warehouse: unit / DISTRICTS + 1, number: unit % DISTRICTS + 1 };
        match table {
            ITEM => items(unit, rng, &mut words, bulk),
            WAREHOUSE => warehouse(unit + 1, rng, &mut words, bulk),
            STOCK => stock(unit, rng, &mut words, bulk),
            DISTRICT => one_district(district, rng, &mut words, bulk),
            CUSTOMER => customers(district, rng, &mut words, bulk),
            HISTORY => history(district, rng, &mut words, bulk),
            ORDER => orders(district, unit, rng, bulk),
            NEW_ORDERS => {
                for order in FIRST_NEW..=ORDERS {
                    bulk.row(&[int(order), int(district.number), int(district.warehouse)]);
                }
            }
            _ => lines(district, unit, rng, &mut words, bulk),
        }
    }
}

#[derive(Clone, Copy)]
struct District {
    warehouse: u64,
    number: u64,
}

/// Texts of a row on their way.
#[derive(Default)]
struct Words {
    all: [String; 12],
}

fn int(number: u64) -> Value<'static> {
    Int(number as i64)
}

/// Two streets, a city, a state, a postcode (clause 4.3.2.7), from the second text on.
fn address(rng: &mut Rng, words: &mut Words) {
    for place in 1..4 {
        text(rng, 10, 20, &mut words.all[place]);
    }
    text(rng, 2, 2, &mut words.all[4]);
    digits(rng, 4, &mut words.all[5]);
    words.all[5].push_str("11111");
}

/// A text of 26 to 50 characters, of which one in ten says `ORIGINAL`.
fn data(rng: &mut Rng, out: &mut String) {
    text(rng, 26, 50, out);
    if percent(rng, 10) {
        let at = rng.below(out.len() as u64 - 7) as usize;
        out.replace_range(at..at + 8, "ORIGINAL");
    }
}

fn items(unit: u64, rng: &mut Rng, words: &mut Words, bulk: &mut Bulk<'_>) {
    for number in unit * ITEMS_PER_UNIT + 1..=(unit + 1) * ITEMS_PER_UNIT {
        let (image, price) = (between(rng, 1, 10_000), between(rng, 100, 10_000) as i64);
        let [name, about, ..] = &mut words.all;
        text(rng, 14, 24, name);
        data(rng, about);
        bulk.row(&[int(number), int(image), Text(name), Decimal(price, 2), Text(about)]);
    }
}

fn warehouse(number: u64, rng: &mut Rng, words: &mut Words, bulk: &mut Bulk<'_>) {
    text(rng, 6, 10, &mut words.all[0]);
    address(rng, words);
    let tax = Decimal(rng.below(2001) as i64, 4);
    let [name, street, more, city, state, zip, ..] = &words.all;
    let address = [Text(name), Text(street), Text(more), Text(city), Text(state), Text(zip)];
    let [name, street, more, city, state, zip] = address;
    bulk.row(&[int(number), name, street, more, city, state, zip, tax, Decimal(30_000_000, 2)]);
}

fn stock(unit: u64, rng: &mut Rng, words: &mut Words, bulk: &mut Bulk<'_>) {
    let per_warehouse = ITEMS / ITEMS_PER_UNIT;
    let (warehouse, part) = (unit / per_warehouse + 1, unit % per_warehouse);
    for item in part * ITEMS_PER_UNIT + 1..=(part + 1) * ITEMS_PER_UNIT {
        let quantity = between(rng, 10, 100);
        for place in 0..10 {
            text(rng, 24, 24, &mut words.all[place]);
        }
        data(rng, &mut words.all[10]);
        let mut row = [Int(0); 17];
        row[..3].copy_from_slice(&[int(item), int(warehouse), int(quantity)]);
        for (value, info) in row[3..13].iter_mut().zip(&words.all) {
            *value = Text(info);
        }
        row[16] = Text(&words.all[10]);
        bulk.row(&row);
    }
}

fn one_district(own: District, rng: &mut Rng, words: &mut Words, bulk: &mut Bulk<'_>) {
    text(rng, 6, 10, &mut words.all[0]);
    address(rng, words);
    let tax = Decimal(rng.below(2001) as i64, 4);
    let [name, street, more, city, state, zip, ..] = &words.all;
    bulk.row(&[
        int(own.number),
        int(own.warehouse),
        Text(name),
        Text(street),
        Text(more),
        Text(city),
        Text(state),
        Text(zip),
        tax,
        Decimal(3_000_000, 2),
        int(ORDERS + 1),
    ]);
}

fn customers(own: District, rng: &mut Rng, words: &mut Words, bulk: &mut Bulk<'_>) {
    for number in 1..=CUSTOMERS {
        // The first thousand have all names, so that every name is found.
        let name = if number <= 1000 { number - 1 } else { name_to_load(rng) };
        last_name(name, &mut words.all[0]);
        address(rng, words);
        text(rng, 8, 16, &mut words.all[6]);
        digits(rng, 16, &mut words.all[7]);
        text(rng, 300, 500, &mut words.all[8]);
        let credit = if percent(rng, 10) { "BC" } else { "GC" };
        let discount = Decimal(rng.below(5001) as i64, 4);
        let [last, street, more, city, state, zip, first, phone, about, ..] = &words.all;
        bulk.row(&[
            int(number),
            int(own.number),
            int(own.warehouse),
            Text(first),
            Text("OE"),
            Text(last),
            Text(street),
            Text(more),
            Text(city),
            Text(state),
            Text(zip),
            Text(phone),
            LOADED_AT,
            Text(credit),
            Decimal(5_000_000, 2),
            discount,
            Decimal(-1000, 2),
            Decimal(1000, 2),
            Int(1),
            Int(0),
            Text(about),
        ]);
    }
}

fn history(own: District, rng: &mut Rng, words: &mut Words, bulk: &mut Bulk<'_>) {
    let (district, warehouse) = (int(own.number), int(own.warehouse));
    for customer in 1..=CUSTOMERS {
        let about = &mut words.all[0];
        text(rng, 12, 24, about);
        let amount = Decimal(1000, 2);
        bulk.row(&[int(customer), district, warehouse, district, warehouse, LOADED_AT, amount, Text(about)]);
    }
}

/// How many lines a loaded order has: the same for the order and for its lines.
fn line_count(unit: u64, order: u64) -> u64 {
    between(&mut Rng::new(SEED, &[u64::MAX, unit, order]), 5, 15)
}

fn orders(own: District, unit: u64, rng: &mut Rng, bulk: &mut Bulk<'_>) {
    // Each customer has one order (clause 4.3.3.1: a permutation).
    let mut customers: Vec<u64> = (1..=CUSTOMERS).collect();
    for last in (1..customers.len()).rev() {
        customers.swap(last, rng.below(last as u64 + 1) as usize);
    }
    for (order, customer) in (1..=ORDERS).zip(customers) {
        let carrier = between(rng, 1, 10);
        bulk.row(&[
            int(order),
            int(own.number),
            int(own.warehouse),
            int(customer),
            LOADED_AT,
            if order < FIRST_NEW { int(carrier) } else { Null },
            int(line_count(unit, order)),
            Int(1),
        ]);
    }
}

fn lines(own: District, unit: u64, rng: &mut Rng, words: &mut Words, bulk: &mut Bulk<'_>) {
    for order in 1..=ORDERS {
        for number in 1..=line_count(unit, order) {
            let (item, amount) = (between(rng, 1, ITEMS), between(rng, 1, 999_999) as i64);
            let info = &mut words.all[0];
            text(rng, 24, 24, info);
            let is_delivered = order < FIRST_NEW;
            bulk.row(&[
                int(order),
                int(own.number),
                int(own.warehouse),
                int(number),
                int(item),
                int(own.warehouse),
                if is_delivered { LOADED_AT } else { Null },
                Int(5),
                Decimal(if is_delivered { 0 } else { amount }, 2),
                Text(info),
            ]);
        }
    }
}
