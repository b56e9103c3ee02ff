//! Block devices and files.
