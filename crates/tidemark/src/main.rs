//! Tidemark: find your storage's high-water mark.
fn main() {}
