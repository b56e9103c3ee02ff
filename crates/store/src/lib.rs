//! The result store: one SQLite file, one writer.
