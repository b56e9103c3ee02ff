//! Sections of a report as data: what an engine shows of its evidence. How they look in HTML and in Markdown is the report's affair.

/// Stands where there is no number.
pub const NONE: &str = "–";

/// What an engine shows of its evidence, under one heading.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its anchor on the page: `commits`.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What is in it, in order. Empty tables and charts, and headings of nothing, are left out.
    pub blocks: Vec<Block>,
    /// What the end of a run shows of it on a terminal.
    pub in_short: Option<Table>,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading of what follows, up to the next heading.
    Heading(String),
    /// What the columns or lines above are.
    Legend(String),
    /// A table.
    Table(Table),
    /// A table under its caption, folded on a page if it has more than so many rows.
    Folded(Table, usize),
    /// A chart of lines; pages have it, Markdown does not.
    Lines(Lines),
}

/// A chart of lines over whole numbers, such as the cycles of a table.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Its name in files: `query-time-by-cycle`.
    pub name: &'static str,
    /// Its title, shown above it.
    pub title: &'static str,
    /// What the numbers along the horizontal axis are: `cycle`.
    pub steps: &'static str,
    /// What its values are, and so their axis.
    pub unit: Unit,
    /// Its lines: a label, and values by step, ascending.
    pub lines: Vec<(String, Vec<(u32, f64)>)>,
}

/// What a number of a chart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// So many of something: `requests`.
    Count(&'static str),
}

/// A table whose first column names its rows.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it holds, for screen readers and for those who jump from table to table.
    pub caption: String,
    /// Its columns, from the left.
    pub columns: Vec<Column>,
    /// Its rows; each has a cell for every column.
    pub rows: Vec<Row>,
    /// Whether rows with the same first cell are a group, which names it once.
    pub is_grouped: bool,
    /// A class of its own for the page's style.
    pub class: Option<&'static str>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// Whether its cells are numbers, which are set flush right.
    pub is_number: bool,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Each with its lines: the value, and what is added below it in smaller type.
    pub cells: Vec<Vec<String>>,
    /// How it is set apart.
    pub tone: Tone,
}

/// How a row is set apart from others; its words must mean the same, for not everybody sees colour and weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Like any other.
    Plain,
    /// The sum of the rows above.
    Total,
    /// Something that must not be overlooked.
    Bad,
}

impl Table {
    /// A table without columns and rows.
    pub fn new(caption: impl Into<String>) -> Self {
        Self {
            caption: caption.into(),
            columns: Vec::new(),
            rows: Vec::new(),
            is_grouped: false,
            class: None,
        }
    }

    /// Adds columns of words.
    pub fn words<const N: usize>(mut self, titles: [&str; N]) -> Self {
        self.columns.extend(titles.map(|title| Column { title: title.into(), is_number: false }));
        self
    }

    /// Adds columns of numbers.
    pub fn numbers(mut self, titles: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns.extend(titles.into_iter().map(|title| Column { title: title.into(), is_number: true }));
        self
    }

    /// Adds a row.
    pub fn row(&mut self, tone: Tone, cells: Vec<String>) {
        self.lines(tone, cells.into_iter().map(|cell| vec![cell]).collect());
    }

    /// Adds a row whose cells have several lines. A line that begins with ✓ or ✕ has the colour of that mark.
    pub fn lines(&mut self, tone: Tone, cells: Vec<Vec<String>>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.caption);
        self.rows.push(Row { cells, tone });
    }

    /// Makes groups of the rows that follow each other and have the same first cell; the second cell names the row.
    pub fn grouped(mut self) -> Self {
        self.is_grouped = true;
        self
    }

    /// Gives it a class of its own.
    pub fn classed(mut self, class: &'static str) -> Self {
        self.class = Some(class);
        self
    }

    /// Leaves out a column that has the same in every row, the total aside.
    pub fn without_if_same(self, title: &str) -> Self {
        self.without_if(title, |cells| cells.iter().all(|cell| Some(cell) == cells.first()))
    }

    /// Leaves out a column that has this text in every row, the total aside.
    pub fn without_if_all(self, title: &str, text: &str) -> Self {
        self.without_if(title, |cells| cells.iter().all(|cell| matches!(cell, [only] if only == text)))
    }

    fn without_if(mut self, title: &str, is_idle: impl Fn(&[&[String]]) -> bool) -> Self {
        if let Some(index) = self.columns.iter().position(|column| column.title == title) {
            let rows = self.rows.iter().filter(|row| row.tone != Tone::Total);
            let cells: Vec<&[String]> = rows.map(|row| row.cells[index].as_slice()).collect();
            if is_idle(&cells) {
                self.columns.remove(index);
                self.rows.iter_mut().for_each(|row| drop(row.cells.remove(index)));
            }
        }
        self
    }

    /// Its headings and rows as plain texts; the lines of a cell are joined.
    pub fn texts(&self) -> Vec<Vec<String>> {
        self.rows_of(|lines| lines.join(", "))
    }

    /// The same with the first line of each cell only.
    pub fn first_lines(&self) -> Vec<Vec<String>> {
        self.rows_of(|lines| lines.first().cloned().unwrap_or_default())
    }

    fn rows_of(&self, cell: impl Fn(&[String]) -> String) -> Vec<Vec<String>> {
        let headings = self.columns.iter().map(|column| column.title.clone()).collect();
        let cells = |row: &Row| row.cells.iter().map(|lines| cell(lines)).collect();
        [headings].into_iter().chain(self.rows.iter().map(cells)).collect()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many rows it has.
    pub fn length(&self) -> usize {
        self.rows.len()
    }
}
