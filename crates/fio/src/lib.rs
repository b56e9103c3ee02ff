//! Runs the user's fio.
