//! Measures Tidemark itself beside its peers, in one run, so that ratios mean something on a noisy machine.
//!
//! `make bench` runs it. The server is a child process pinned to the first processor, the client another one
//! pinned to the second; clients alternate, and medians of the rounds are compared.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod null;
mod sink;

fn main() {
    for _ in 0..3 {
        println!("{:?} {:?}", null::ours(), null::fio());
    }
}
