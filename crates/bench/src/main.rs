//! Measures Tidemark itself beside its peers.
fn main() {}
