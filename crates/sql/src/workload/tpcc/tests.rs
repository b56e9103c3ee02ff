//! Population, draws and statements of the order entry.

use super::*;
use tidemark_measure::rng::Rng;

#[test]
fn names_and_numbers_are_drawn_as_specified() {
    let mut name = String::new();
    for (number, text) in [(0, "BARBARBAR"), (371, "PRICALLYOUGHT"), (999, "EINGEINGEING")] {
        draw::last_name(number, &mut name);
        assert_eq!(name, text);
    }
    let mut rng = Rng::new(1, &[]);
    let (mut customers, mut items, mut remote) = (vec![0u32; 3001], 0u32, 0u32);
    for _ in 0..200_000 {
        customers[draw::customer(&mut rng) as usize] += 1;
        assert!((1..=ITEMS).contains(&draw::item(&mut rng)) && draw::name_to_look_for(&mut rng) < 1000);
        items += u32::from(draw::percent(&mut rng, 1));
        remote += u32::from(draw::percent(&mut rng, 15));
    }
    assert_eq!(customers[0], 0);
    let hottest = *customers.iter().max().unwrap();
    assert!(hottest > 4 * 200_000 / 3000, "some customers are chosen far more often: {hottest}");
    assert!((1800..2200).contains(&items) && (29_000..31_000).contains(&remote), "{items} {remote}");
}

#[test]
fn every_statement_has_its_place() {
    let all = statements::all(Dialect::Postgres);
    assert_eq!(all.len(), statements::STOCK + 10);
    assert!(
        all[statements::LOW_STOCK].sql.contains("DISTINCT")
            && all[statements::STOCK + 9].sql.contains("s_dist_10")
    );
    assert!(all[statements::ADD_HISTORY].sql.starts_with("INSERT INTO history"));
    assert!(all[statements::DELIVER_TO_CUSTOMER].sql.contains("c_delivery_cnt"));
}

#[test]
fn rows_are_those_of_the_specification() {
    let tables = schema::tables(2);
    let rows: Vec<u64> = tables.iter().map(Table::rows).collect();
    assert_eq!(rows, [100_000, 2, 200_000, 20, 60_000, 60_000, 60_000, 18_000, 600_000]);
    // A district's customers, orders, new orders; a part of items and of stock.
    for (table, rows) in [(0, 1000), (1, 1), (2, 1000), (3, 1), (4, 3000), (5, 3000), (6, 3000), (7, 900)] {
        let mut bulk = Bulk::new(&tables[table], Dialect::Postgres);
        rows::generate(table, 3..4, &mut bulk);
        assert_eq!(bulk.rows(), rows, "{}", tables[table].name);
        let mut again = Bulk::new(&tables[table], Dialect::Postgres);
        rows::generate(table, 3..4, &mut again);
        assert!(bulk.bytes() == again.bytes(), "the rows of a unit are the same each time");
    }
}
