//! A server that speaks MySQL's protocol and costs next to nothing: for tests that count what a client allocates.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The server's nonce.
const NONCE: &[u8; 20] = b"12345678901234567890";

/// All that Tidemark uses, but TLS.
const CAPABILITIES: u32 = 0x013f_f7ff;

const MORE_RESULTS: u16 = 0x0008;

/// The server. Its thread, and those of its connections, end with the test.
pub struct PlainMysql {
    port: u16,
}

impl PlainMysql {
    /// Serves any number of connections: everybody may connect, a `SELECT` gives one row with the number 42, and all other
    /// statements succeed. A statement allocates nothing here.
    ///
    /// # Panics
    /// When there is no free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a port").port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // The end of a connection is the end of its thread.
                std::thread::spawn(move || stream.and_then(serve));
            }
        });
        Self { port }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// What is replied to a packet, and what the connection is in.
#[derive(Default)]
struct Reply {
    bytes: Vec<u8>,
    number: u8,
    /// Whether the session has begun, so that packets are commands.
    has_begun: bool,
    is_over: bool,
    status: u16,
    /// Of each prepared statement, whether it gives rows.
    prepared: Vec<bool>,
}

impl Reply {
    /// A packet with this payload.
    fn packet(&mut self, payload: &[u8]) {
        self.number = self.number.wrapping_add(1);
        let head = (payload.len() as u32 | u32::from(self.number) << 24).to_le_bytes();
        self.bytes.extend(head);
        self.bytes.extend(payload);
    }

    /// Success. The session has begun with it, at the latest.
    fn ok(&mut self) {
        self.end(0x00, self.status);
        self.has_begun = true;
    }

    fn end(&mut self, kind: u8, status: u16) {
        let [low, high] = status.to_le_bytes();
        self.packet(&[kind, 0, 0, low, high, 0, 0]);
    }

    /// The definition of a column of numbers, or of nothing in particular.
    fn column(&mut self) {
        // Six empty names; then their own length, character set, width, type, flags, decimals, and two of nothing.
        self.packet(b"\0\0\0\0\0\0\x0c\x3f\0\x0b\0\0\0\x03\0\0\0\0\0");
    }

    /// One row of one column of numbers.
    fn row(&mut self, row: &[u8]) {
        self.packet(&[1]);
        self.column();
        self.packet(row);
        self.end(0xfe, self.status);
    }

    fn answer(&mut self, packet: &[u8]) {
        let Some((command, rest)) = packet.split_first().filter(|_| self.has_begun) else {
            return self.ok();
        };
        match command {
            0x01 => self.is_over = true,
            0x03 if rest.starts_with(b"SET SESSION sql_mode") => {
                self.end(0x00, self.status | MORE_RESULTS);
                self.row(b"\x010");
            }
            0x03 if rest.starts_with(b"SELECT") => self.row(b"\x0242"),
            0x03 => {
                match rest {
                    b"BEGIN" => self.status = 1,
                    b"COMMIT" | b"ROLLBACK" => self.status = 0,
                    _ => {}
                }
                self.ok();
            }
            0x16 => {
                let parameters = rest.iter().filter(|byte| **byte == b'?').count() as u8;
                self.prepared.push(rest.starts_with(b"SELECT"));
                self.packet(&[0, self.prepared.len() as u8, 0, 0, 0, 0, 0, parameters, 0, 0, 0, 0]);
                (0..parameters).for_each(|_| self.column());
            }
            0x17 => match rest.first().and_then(|id| self.prepared.get(usize::from(*id).wrapping_sub(1))) {
                Some(true) => self.row(b"\0\0\x2a\0\0\0"),
                _ => self.ok(),
            },
            _ => self.is_over = true,
        }
    }
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reply = Reply { number: u8::MAX, ..Reply::default() };
    let [a, b, c, d] = CAPABILITIES.to_le_bytes();
    let greeting = [
        b"\x0a8.0.36\0\x07\0\0\0",
        &NONCE[..8],
        &[0, a, b, 45, 2, 0, c, d, 21],
        &[0; 10],
        &NONCE[8..],
        b"\0mysql_native_password\0",
    ];
    reply.packet(&greeting.concat());
    let mut packet = Vec::new();
    loop {
        stream.write_all(&reply.bytes)?;
        reply.bytes.clear();
        if reply.is_over {
            return Ok(());
        }
        let mut head = [0; 4];
        stream.read_exact(&mut head)?;
        reply.number = head[3];
        packet.resize((u32::from_le_bytes(head) & 0x00ff_ffff) as usize, 0);
        stream.read_exact(&mut packet)?;
        reply.answer(&packet);
    }
}
