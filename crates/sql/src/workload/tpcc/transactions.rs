//! The five transactions, clauses 2.4 to 2.8, as statements from the client. All choices are drawn before the first statement.

use super::draw::{between, customer, item, last_name, name_to_look_for, percent};
use super::statements::{
    ADD_HISTORY, ADD_LINE, ADD_NEW_ORDER, ADD_ORDER, AMOUNT_OF_LINES, CUSTOMER_BY_ID, CUSTOMER_DISCOUNT,
    CUSTOMER_OF_ORDER, CUSTOMERS_BY_NAME, DELIVER_LINES, DELIVER_ORDER, DELIVER_TO_CUSTOMER, DISTRICT_NAME,
    DISTRICT_OF_ORDER, ITEM, LAST_ORDER, LAST_ORDER_NUMBER, LINES, LOW_STOCK, NEXT_ORDER, OLDEST_NEW_ORDER,
    PAY_BAD_CUSTOMER, PAY_CUSTOMER, PAY_DISTRICT, PAY_WAREHOUSE, REMOVE_NEW_ORDER, STOCK, TAKE_STOCK,
    WAREHOUSE_NAME, WAREHOUSE_TAX,
};
use super::{DISTRICTS, ITEMS, routines};
use crate::failure::Failure;
use crate::rows::Rows;
use crate::transaction::{End, Transaction};
use crate::value::Value::{self, Decimal, Int, Text};
use std::fmt::Write as _;
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// Most lines of an order.
const LINES_MOST: usize = 15;

/// What a slot keeps from transaction to transaction.
pub(crate) struct Buffers {
    lines: [Line; LINES_MOST],
    text: String,
}

impl Default for Buffers {
    fn default() -> Self {
        Self { lines: Default::default(), text: String::with_capacity(600) }
    }
}

/// A line of an order.
#[derive(Default)]
struct Line {
    item: i64,
    supply: i64,
    quantity: i64,
    /// In hundredths.
    amount: i64,
    info: String,
}

/// Where a transaction is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Its warehouse, from 1.
    pub(super) home: u64,
    /// How many there are.
    pub(super) warehouses: u64,
    /// The district of its terminal, if it has one.
    pub(super) own_district: Option<u64>,
    /// Whether it is a call of a routine, with the same choices.
    pub(super) calls: bool,
}

impl Place {
    /// Another warehouse in so many of a hundred cases, if there is another.
    fn perhaps_remote(self, rng: &mut Rng, share: u64) -> u64 {
        let (leaves, other) = (percent(rng, share), between(rng, 1, self.warehouses.max(2) - 1));
        match leaves && self.warehouses > 1 {
            true => other + u64::from(other >= self.home),
            false => self.home,
        }
    }
}

/// How a customer is looked for: by last name in 60 of a hundred cases (clauses 2.5.1.2, 2.6.1.2).
#[derive(Clone, Copy)]
enum Who {
    Number(u64),
    Name(u64),
}

impl Who {
    fn draw(rng: &mut Rng) -> Self {
        match percent(rng, 60) {
            true => Self::Name(name_to_look_for(rng)),
            false => Self::Number(customer(rng)),
        }
    }

    /// The number and the name, one of which is null.
    fn values(self, text: &mut String) -> [Value<'_>; 2] {
        match self {
            Self::Number(number) => [Int(number as i64), Value::Null],
            Self::Name(number) => {
                last_name(number, text);
                [Value::Null, Text(text)]
            }
        }
    }

    fn add(
        self,
        transaction: &mut Transaction<'_>,
        warehouse: u64,
        district: u64,
        text: &mut String,
    ) -> Result<(), Failure> {
        let (warehouse, district) = (Int(warehouse as i64), Int(district as i64));
        match self {
            Self::Number(number) => {
                transaction.add(CUSTOMER_BY_ID, &[warehouse, district, Int(number as i64)])
            }
            Self::Name(number) => {
                last_name(number, text);
                transaction.add(CUSTOMERS_BY_NAME, &[warehouse, district, Text(text)])
            }
        }
    }
}

/// The number of the customer that was looked for, and whether its credit is bad; of several of a name the one in the
/// middle, rounded up (clause 2.5.2.2).
fn found(rows: Rows<'_>) -> Result<(i64, bool), Failure> {
    let missing = || Failure::new(Fault::NotFound, "a customer that must be there is not");
    let middle = rows.count().checked_sub(1).ok_or_else(missing)? / 2;
    let row = rows.iter().nth(middle as usize).ok_or_else(missing)?;
    Ok((row.number(0)?, row.text(1)? == "BC"))
}

/// Sees that a statement of the last batch changed one row.
fn changed_one(transaction: &Transaction<'_>, place: usize, what: &str) -> Result<(), Failure> {
    match transaction.rows(place).affected() {
        1 => Ok(()),
        rows => {
            Err(Failure::new(Fault::NotFound, format!("{what}: {rows} rows were changed instead of one")))
        }
    }
}

/// An order's choices; its lines are in the buffers.
struct Order {
    district: u64,
    buyer: u64,
    /// How many lines it has, with one of an item that does not exist.
    count: usize,
    is_wrong: bool,
}

impl Order {
    fn draw(place: Place, end: End, rng: &mut Rng, lines: &mut [Line; LINES_MOST]) -> Self {
        let (district, buyer) = (between(rng, 1, DISTRICTS), customer(rng));
        let (count, is_wrong) = (between(rng, 5, 15) as usize, end == End::Rollback);
        let lines = &mut lines[..count];
        for line in &mut *lines {
            line.item = item(rng) as i64;
            line.supply = place.perhaps_remote(rng, 1) as i64;
            line.quantity = between(rng, 1, 10) as i64;
        }
        if is_wrong {
            lines[count - 1].item = ITEMS as i64 + 1;
        }
        // Everybody locks stock in the same order, so that orders wait for each other instead of being deadlocked.
        lines.sort_unstable_by_key(|line| (line.item, line.supply));
        Self { district, buyer, count, is_wrong }
    }
}

/// Clause 2.4. One that is to be rolled back has an item that does not exist, which shows when all the others have been written.
pub(super) async fn new_order(
    transaction: &mut Transaction<'_>,
    place: Place,
    end: End,
    rng: &mut Rng,
    buffers: &mut Buffers,
) -> Result<End, Failure> {
    let Order { district: number, buyer, count, is_wrong } = Order::draw(place, end, rng, &mut buffers.lines);
    let home = Int(place.home as i64);
    let (district, buyer) = (Int(number as i64), Int(buyer as i64));
    let lines = &mut buffers.lines[..count];
    if place.calls {
        let text = &mut buffers.text;
        text.clear();
        let mut list = |value: fn(&Line) -> i64| {
            let begin = text.len();
            let mut separator = '{';
            for line in &*lines {
                // Writing to memory does not fail.
                let _ = write!(text, "{separator}{}", value(line));
                separator = ',';
            }
            text.push('}');
            begin..text.len()
        };
        let (items, supplies, quantities) =
            (list(|line| line.item), list(|line| line.supply), list(|line| line.quantity));
        let parameters =
            [home, district, buyer, Text(&text[items]), Text(&text[supplies]), Text(&text[quantities])];
        return match routines::call(transaction, routines::NEW_ORDER, &parameters).await? {
            ended if ended == end => Ok(end),
            _ => Err(Failure::new(Fault::BrokenInvariant, "an order did not end as its items demand")),
        };
    }
    let all_local = lines.iter().all(|line| line.supply == place.home as i64);

    transaction.add(WAREHOUSE_TAX, &[home])?;
    transaction.add(DISTRICT_OF_ORDER, &[home, district])?;
    transaction.add(NEXT_ORDER, &[home, district])?;
    transaction.add(CUSTOMER_DISCOUNT, &[home, district, buyer])?;
    for line in &*lines {
        transaction.add(ITEM, &[Int(line.item)])?;
        transaction.add(STOCK + number as usize - 1, &[Int(line.supply), Int(line.item)])?;
    }
    transaction.run().await?;
    let order = Int(transaction.rows(1).first()?.number(0)?);
    changed_one(transaction, 2, "the district's next order")?;
    let count = if is_wrong { count - 1 } else { count };
    for (place, line) in lines[..count].iter_mut().enumerate() {
        let price = transaction.rows(4 + 2 * place).first()?.decimal(0, 2)?;
        line.amount = price * line.quantity;
        line.info.clear();
        line.info.push_str(transaction.rows(5 + 2 * place).first()?.text(0)?);
    }
    if is_wrong && transaction.rows(4 + 2 * count).count() > 0 {
        return Err(Failure::new(Fault::BrokenInvariant, "an item that must not exist does"));
    }

    transaction.add(
        ADD_ORDER,
        &[order, district, home, buyer, Int(lines.len() as i64), Int(i64::from(all_local))],
    )?;
    transaction.add(ADD_NEW_ORDER, &[order, district, home])?;
    for (line, place_in_order) in lines[..count].iter().zip(1..) {
        let is_remote = i64::from(line.supply != place.home as i64);
        let (item, supply, quantity) = (Int(line.item), Int(line.supply), Int(line.quantity));
        transaction.add(TAKE_STOCK, &[quantity, Int(is_remote), supply, item])?;
        let amount = Decimal(line.amount, 2);
        let row =
            [order, district, home, Int(place_in_order), item, supply, quantity, amount, Text(&line.info)];
        transaction.add(ADD_LINE, &row)?;
    }
    transaction.run().await?;
    for place in 0..count {
        changed_one(transaction, 2 + 2 * place, "the stock of an item")?;
    }
    Ok(end)
}

/// Clause 2.5.
pub(super) async fn payment(
    transaction: &mut Transaction<'_>,
    place: Place,
    rng: &mut Rng,
    buffers: &mut Buffers,
) -> Result<End, Failure> {
    let district = between(rng, 1, DISTRICTS);
    let payer_home = place.perhaps_remote(rng, 15);
    let elsewhere = between(rng, 1, DISTRICTS);
    let payer_district = if payer_home == place.home { district } else { elsewhere };
    let (who, cents) = (Who::draw(rng), between(rng, 100, 500_000) as i64);
    let (home, own, amount) = (Int(place.home as i64), Int(district as i64), Decimal(cents, 2));
    if place.calls {
        let (from, of) = (Int(payer_home as i64), Int(payer_district as i64));
        let [number, name] = who.values(&mut buffers.text);
        let parameters = [home, own, from, of, number, name, amount];
        return routines::call(transaction, routines::PAYMENT, &parameters).await;
    }

    transaction.add(PAY_WAREHOUSE, &[amount, home])?;
    transaction.add(WAREHOUSE_NAME, &[home])?;
    transaction.add(PAY_DISTRICT, &[amount, home, own])?;
    transaction.add(DISTRICT_NAME, &[home, own])?;
    who.add(transaction, payer_home, payer_district, &mut buffers.text)?;
    transaction.run().await?;
    changed_one(transaction, 0, "the warehouse's payments")?;
    changed_one(transaction, 2, "the district's payments")?;
    let (payer, is_bad) = found(transaction.rows(4))?;
    let text = &mut buffers.text;
    text.clear();
    text.push_str(transaction.rows(1).first()?.text(0)?);
    text.push_str("    ");
    text.push_str(transaction.rows(3).first()?.text(0)?);

    let (payer, from, of) = (Int(payer), Int(payer_home as i64), Int(payer_district as i64));
    transaction.add(ADD_HISTORY, &[payer, of, from, own, home, amount, Text(text)])?;
    if is_bad {
        let Int(number) = payer else { return Ok(End::Commit) };
        text.clear();
        // Writing to memory does not fail.
        let _ = write!(
            text,
            "{number} {payer_district} {payer_home} {district} {} {}.{:02} ",
            place.home,
            cents / 100,
            cents % 100
        );
        transaction.add(PAY_BAD_CUSTOMER, &[amount, from, of, payer, Text(text)])?;
    } else {
        transaction.add(PAY_CUSTOMER, &[amount, from, of, payer])?;
    }
    transaction.run().await?;
    changed_one(transaction, 1, "the customer's payments")?;
    Ok(End::Commit)
}

/// Clause 2.6.
pub(super) async fn order_status(
    transaction: &mut Transaction<'_>,
    place: Place,
    rng: &mut Rng,
    buffers: &mut Buffers,
) -> Result<End, Failure> {
    let (district, who) = (between(rng, 1, DISTRICTS), Who::draw(rng));
    if place.calls {
        let [number, name] = who.values(&mut buffers.text);
        let parameters = [Int(place.home as i64), Int(district as i64), number, name];
        return routines::call(transaction, routines::ORDER_STATUS, &parameters).await;
    }
    who.add(transaction, place.home, district, &mut buffers.text)?;
    transaction.run().await?;
    let (buyer, _) = found(transaction.rows(0))?;
    let (home, district) = (Int(place.home as i64), Int(district as i64));
    let order = transaction.query(LAST_ORDER, &[home, district, Int(buyer)]).await?.first()?.number(0)?;
    transaction.query(LINES, &[home, district, Int(order)]).await?.first()?;
    Ok(End::Commit)
}

/// Clause 2.7: the oldest undelivered order of each district.
pub(super) async fn delivery(
    transaction: &mut Transaction<'_>,
    place: Place,
    rng: &mut Rng,
) -> Result<End, Failure> {
    let (home, carrier) = (Int(place.home as i64), Int(between(rng, 1, 10) as i64));
    if place.calls {
        return routines::call(transaction, routines::DELIVERY, &[home, carrier]).await;
    }
    for number in 1..=DISTRICTS {
        let district = Int(number as i64);
        let oldest = transaction.query(OLDEST_NEW_ORDER, &[home, district]).await?;
        // A district may have none. For one that another delivery takes while this one waits for it, the next one is given.
        let Some(row) = oldest.iter().next() else { continue };
        let order = Int(row.number(0)?);
        transaction.add(REMOVE_NEW_ORDER, &[home, district, order])?;
        transaction.add(DELIVER_ORDER, &[carrier, home, district, order])?;
        // What it has changed, a transaction sees, however old its view of the others' changes is (InnoDB, REPEATABLE READ).
        transaction.add(CUSTOMER_OF_ORDER, &[home, district, order])?;
        transaction.add(DELIVER_LINES, &[home, district, order])?;
        transaction.add(AMOUNT_OF_LINES, &[home, district, order])?;
        transaction.run().await?;
        changed_one(transaction, 0, "a new order that is delivered")?;
        changed_one(transaction, 1, "an order that is delivered")?;
        let buyer = Int(transaction.rows(2).first()?.number(0)?);
        let amount = Decimal(transaction.rows(4).first()?.decimal(0, 2)?, 2);
        let paid = transaction.execute(DELIVER_TO_CUSTOMER, &[amount, home, district, buyer]).await?;
        if paid != 1 {
            return Err(Failure::new(Fault::NotFound, "the customer of an order is not there"));
        }
    }
    Ok(End::Commit)
}

/// Clause 2.8.
pub(super) async fn stock_level(
    transaction: &mut Transaction<'_>,
    place: Place,
    rng: &mut Rng,
) -> Result<End, Failure> {
    let any = between(rng, 1, DISTRICTS);
    let (home, district) = (Int(place.home as i64), Int(place.own_district.unwrap_or(any) as i64));
    let threshold = Int(between(rng, 10, 20) as i64);
    if place.calls {
        return routines::call(transaction, routines::STOCK_LEVEL, &[home, district, threshold]).await;
    }
    let next: i64 = transaction.query(LAST_ORDER_NUMBER, &[home, district]).await?.first()?.number(0)?;
    transaction.query(LOW_STOCK, &[home, district, Int(next - 20), Int(next), threshold]).await?.first()?;
    Ok(End::Commit)
}
