//! A Ceph cluster of the lab that ends with its test, and its gateway for pods: it listens on 127.0.0.1, which they do not reach.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use tidemark_lab::{self as lab, Lab, LabOptions};

pub struct Ceph(pub Lab);

impl Ceph {
    pub fn up(directory: &Path) -> Self {
        Self(lab::up(&LabOptions::new(directory), &mut |_| {}).unwrap())
    }
}

impl Drop for Ceph {
    fn drop(&mut self) {
        let _ = lab::down(self.0.dir(), true, &mut |_| {});
    }
}

/// Passes on connections from `host`, on which pods reach this machine, and gives the address for them. It ends with the test.
pub fn forward(host: Ipv4Addr, endpoint: &str) -> String {
    let to = endpoint.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind((host, 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for from in listener.incoming() {
            let (from, to) = (from.unwrap(), TcpStream::connect(&to).unwrap());
            let ways = [(from.try_clone().unwrap(), to.try_clone().unwrap()), (to, from)];
            for (mut reads, mut writes) in ways {
                thread::spawn(move || {
                    let _broken = io::copy(&mut reads, &mut writes);
                    let _gone = writes.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    address
}
