//! Rows on their way into a table in bulk.

use crate::schema::{Kind, Table};
use crate::value::Value;
use bytes::BufMut as _;

/// Microseconds from 1970 to 2000, where PostgreSQL's times begin.
const EPOCH_2000: i64 = 946_684_800_000_000;

/// The head of PostgreSQL's binary COPY format: signature, flags, no extension.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Rows of one table, encoded as the database takes them in bulk: PostgreSQL's binary `COPY` format. A dialect that loads in
/// another way encodes here and sends in its connection's `load`.
pub struct Bulk<'t> {
    table: &'t Table,
    bytes: Vec<u8>,
    rows: u64,
}

impl<'t> Bulk<'t> {
    /// No rows.
    pub fn new(table: &'t Table) -> Self {
        Self { table, bytes: HEAD.to_vec(), rows: 0 }
    }

    /// Adds a row: one value per column.
    ///
    /// # Panics
    /// When there are more or fewer values than columns: a defect of a workload.
    pub fn row(&mut self, values: &[Value<'_>]) {
        assert_eq!(values.len(), self.table.columns.len(), "a row of {} is incomplete", self.table.name);
        self.bytes.put_i16(values.len() as i16);
        for (value, column) in values.iter().zip(&self.table.columns) {
            if *value == Value::Null {
                self.bytes.put_i32(-1);
                continue;
            }
            let at = self.bytes.len();
            self.bytes.put_i32(0);
            self.value(*value, column.kind);
            let length = (self.bytes.len() - at - 4) as u32;
            self.bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        self.rows += 1;
    }

    fn value(&mut self, value: Value<'_>, kind: Kind) {
        match (value, kind) {
            (Value::Int(number), Kind::Int) => self.bytes.put_i32(number as i32),
            (Value::Int(number), Kind::BigInt) => self.bytes.put_i64(number),
            (Value::Int(number), Kind::Decimal(..)) => self.numeric(number, 0),
            (Value::Decimal(units, scale), Kind::Decimal(..)) => self.numeric(units, scale),
            (Value::Float(number), Kind::Float) => self.bytes.put_f64(number),
            (Value::Time(micros), Kind::Time) => self.bytes.put_i64(micros - EPOCH_2000),
            // Text, and bytes, are the same in both formats.
            (value, _) => value.push_text(&mut self.bytes),
        }
    }

    /// PostgreSQL's `numeric`: digits to the base 10000, the weight of the first, sign, digits behind the point.
    fn numeric(&mut self, units: i64, scale: u8) {
        let (mut left, mut digits) = (u128::from(units.unsigned_abs()), [0u16; 12]);
        // The point lies between groups of four digits.
        let padding = (4 - scale % 4) % 4;
        left *= 10u128.pow(padding.into());
        let behind = usize::from(scale.div_ceil(4));
        let mut count = 0;
        while left > 0 {
            digits[count] = (left % 10_000) as u16;
            left /= 10_000;
            count += 1;
        }
        let weight = count as i16 - behind as i16 - 1;
        let sent = digits[..count].iter().skip_while(|digit| **digit == 0).count();
        self.bytes.put_i16(sent as i16);
        self.bytes.put_i16(if count == 0 { 0 } else { weight });
        self.bytes.put_u16(if units < 0 { 0x4000 } else { 0 });
        self.bytes.put_i16(scale.into());
        for digit in digits[..count].iter().rev().take(sent) {
            self.bytes.put_u16(*digit);
        }
    }

    /// The statement that takes the rows.
    pub fn copy_statement(&self) -> String {
        let columns: Vec<&str> = self.table.columns.iter().map(|column| column.name).collect();
        format!("COPY {} ({}) FROM STDIN (FORMAT binary)", self.table.name, columns.join(", "))
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The rows, encoded. The format needs no trailer when `CopyDone` follows.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
