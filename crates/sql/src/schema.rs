//! Tables, described once for all dialects.

/// A table of a data set. Its rows are generated in *units*: groups of rows that are made together, numbered from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, in the order in which rows are generated.
    pub columns: Vec<Column>,
    /// The columns of its primary key; may be empty.
    pub key: Vec<&'static str>,
    /// Whether the key is made when the rows are in, which is faster.
    pub key_after_load: bool,
    /// Indexes that are made when the rows are in.
    pub indexes: Vec<Index>,
    /// How full its pages are when it is loaded, percent.
    pub fill_factor: u8,
    /// How many units it has; 0: it begins empty.
    pub units: u64,
    /// Rows of a unit, on average.
    pub rows_per_unit: f64,
    /// Bytes of a row as the database stores it, about.
    pub row_bytes: u64,
}

impl Table {
    /// A table of rows that are units of their own.
    pub fn new(name: impl Into<String>, columns: Vec<Column>, rows: u64) -> Self {
        Self {
            name: name.into(),
            columns,
            key: Vec::new(),
            key_after_load: true,
            indexes: Vec::new(),
            fill_factor: 100,
            units: rows,
            rows_per_unit: 1.0,
            row_bytes: 100,
        }
    }

    /// How many rows it has when it is loaded, about.
    pub fn rows(&self) -> u64 {
        (self.units as f64 * self.rows_per_unit).round() as u64
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may be null.
    pub nullable: bool,
    /// What it holds where nothing is given, as SQL.
    pub default: Option<&'static str>,
    /// Whether the database numbers rows that come without a value, from the highest on.
    pub counted: bool,
}

impl Column {
    /// A column that is never null.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: false, default: None, counted: false }
    }

    /// The same, perhaps null.
    pub const fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// The same, numbered by the database.
    pub const fn counted(mut self) -> Self {
        self.counted = true;
        self
    }

    /// The same with a default.
    pub const fn default(mut self, sql: &'static str) -> Self {
        self.default = Some(sql);
        self
    }
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 32 bits.
    Int,
    /// 64 bits.
    BigInt,
    /// Exactly so many characters, padded with blanks.
    Char(u32),
    /// At most so many characters.
    Varchar(u32),
    /// Any text.
    Text,
    /// Digits in all, and those behind the point.
    Decimal(u8, u8),
    /// 64 bits, binary.
    Float,
    /// A day.
    Date,
    /// Microseconds, without a zone.
    Time,
    /// Bytes.
    Bytes,
}

/// An index.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<&'static str>,
    /// Whether it is unique.
    pub unique: bool,
}
