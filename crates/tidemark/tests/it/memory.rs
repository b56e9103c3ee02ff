//! What others send without end, and the memory that the built binary takes for it. `docs/security.md` has the table that this prints.

use crate::common::Place;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;

/// The most that any of them may take, bytes.
const MOST_MEMORY: u64 = 300 << 20;

/// Starts a program, ends it after five minutes, and says how much memory it has had at its peak, in KiB: its own, or that of one that
/// it has started.
const MEASURE: &str = "
import os, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
late = threading.Timer(300, child.kill)
late.start()
words = child.stderr.read().decode(errors='replace')
_, status, usage = os.wait4(child.pid, 0)
late.cancel()
print(usage.ru_maxrss, os.waitstatus_to_exitcode(status))
print(words[-300:])
";

/// Runs the binary; gives its peak in bytes, its exit code, and the end of what it said of its failure.
fn measured(place: &Place, arguments: &[&str]) -> (u64, i32, String) {
    let tidemark = place.command(arguments);
    let mut command = Command::new("python3");
    command.args(["-c", MEASURE]).arg(tidemark.get_program()).args(tidemark.get_args());
    command.current_dir(place.directory.path());
    for (name, value) in tidemark.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (head, words) = text.split_once('\n').unwrap_or_else(|| {
        panic!("nothing was measured: {}", String::from_utf8_lossy(&output.stderr));
    });
    let (peak, code) = head.split_once(' ').unwrap();
    (peak.parse::<u64>().unwrap() << 10, code.parse().unwrap(), words.trim().to_owned())
}

/// What was measured, line by line.
#[derive(Default)]
struct Table(Vec<String>);

impl Table {
    fn add(&mut self, what: &str, (peak, code, words): (u64, i32, String)) {
        let line = format!("{what}: {} MB, exit {code}: {words}", peak / 1_000_000);
        println!("{line}");
        assert!(code >= 0, "it did not end by itself: {line}");
        assert!(!words.contains("panicked"), "{line}");
        if peak > MOST_MEMORY {
            self.0.push(line);
        }
    }

    fn end(self) {
        assert!(self.0.is_empty(), "more than {} MB: {:#?}", MOST_MEMORY / 1_000_000, self.0);
    }
}

fn list(part: &str, times: usize) -> String {
    format!("[{}{part}]", format!("{part},").repeat(times - 1))
}

/// Frames of Zstandard (RFC 8878) that say nothing but how often a byte comes: 128 KiB in four bytes each.
fn bomb(byte: u8, blocks: usize) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for block in 1..=blocks {
        let head = (128 << 10) << 3 | 1 << 1 | u32::from(block == blocks);
        frame.extend(&head.to_le_bytes()[..3]);
        frame.push(byte);
    }
    frame
}

/// A frame of blocks of 128 KiB as they are, with the window of `descriptor` (RFC 8878, 3.1.1.1.2).
fn raw(descriptor: u8, blocks: usize) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, descriptor];
    for block in 1..=blocks {
        let head = (128 << 10) << 3 | u32::from(block == blocks);
        frame.extend(&head.to_le_bytes()[..3]);
        frame.extend([b'x'; 128 << 10]);
    }
    frame
}

/// Results that are small on disk, or would be large in memory.
fn results() -> Vec<(&'static str, Vec<u8>)> {
    let warp_header = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\tduration_ns\n";
    let mut log = warp_header.to_owned();
    for row in 0..300_000 {
        let (day, hour, minute, second) = (row / 86_400 + 1, row / 3_600 % 24, row / 60 % 60, row % 60);
        let at = format!("2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
        let _ = writeln!(log, "{row}\t{row}\tGET\tclient{row}\t1\t1\thttp://a\tf\t\t{at}\t{at}\t{at}\t1");
    }
    let mut options = String::new();
    for option in 0..900_000 {
        let _ = write!(options, "\"{option}\":0,");
    }
    let name = "A".repeat(4_000);
    vec![
        ("fio: a million jobs", format!("{{\"jobs\":{}}}", list("{}", 1_000_000)).into_bytes()),
        ("fio: 190,000 jobs", format!("{{\"jobs\":{}}}", list("{}", 190_000)).into_bytes()),
        (
            "fio: 900,000 options",
            format!("{{\"jobs\":[{{}}],\"global options\":{{{options}\"x\":0}}}}").into_bytes(),
        ),
        ("fio: nested a million times", format!("{{\"jobs\":{}", "[".repeat(1_000_000)).into_bytes()),
        ("fio: 500 jobs with long names", {
            let job = format!(
                "{{\"jobname\":\"{name}\",\"read\":{{\"total_ios\":10,\"io_bytes\":40960,\"runtime\":1000,\"iops\":10,\
                 \"clat_ns\":{{\"N\":10,\"max\":1000,\"mean\":1000,\"bins\":{{\"1000\":10}}}}}}}}"
            );
            format!("{{\"fio version\":\"fio-3.33\",\"jobs\":{}}}", list(&job, 500)).into_bytes()
        }),
        ("warp: 190,000 operations", format!("{{\"operations\":{}}}", list("{}", 190_000)).into_bytes()),
        ("warp: a log of 300,000 clients", log.into_bytes()),
        (
            "elbencho: 990,000 values",
            format!("{{\"phase_type\":\"READ\",\"config\":{}}}", list("0", 990_000)).into_bytes(),
        ),
        ("a table of a million columns", {
            let columns: String = (0..1_000_000).fold("workers,op/s".to_owned(), |mut row, column| {
                let _ = write!(row, ",c{column}");
                row
            });
            format!("{columns}\n1,2\n").into_bytes()
        }),
        ("a table of a million rows", format!("workers,op/s\n{}", "1,2\n".repeat(1_000_000)).into_bytes()),
        ("commas alone, 16 MB", vec![b','; 16 << 20]),
        ("one line, 100 MB", vec![b'x'; 100_000_000]),
        ("Zstandard: 128 MiB in 4 kB", bomb(b'x', 1_024)),
        ("Zstandard: 4 GiB in 130 kB", bomb(b'x', 32_768)),
        ("Zstandard: 134 MB as they are, a window of 16 MiB", raw(14 << 3, 1_020)),
        ("Zstandard: 134 MB as they are, a window of 128 MiB", raw(17 << 3, 1_020)),
        ("NUL, 120 MB", vec![0; 120_000_000]),
    ]
}

#[test]
#[ignore = "needs python3"]
fn imports_take_bounded_memory_whatever_the_file() {
    tidemark_testing::needs!(&["python3"]);
    let (place, mut table) = (Place::new(), Table::default());
    for (what, bytes) in results() {
        let path = place.path("result");
        std::fs::write(&path, bytes).unwrap();
        table.add(what, measured(&place, &["import", path.to_str().unwrap()]));
    }
    let archive = place.path("w1-x");
    std::fs::create_dir(&archive).unwrap();
    let works = "<work name=\"w\" workers=\"1\" runtime=\"1\"/>".repeat(180_000);
    let document = format!(
        "<workload name=\"x\"><workflow><workstage name=\"s\">{works}</workstage></workflow></workload>"
    );
    std::fs::write(archive.join("workload-config.xml"), document).unwrap();
    let header = "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,\
                  99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status\n";
    let row = "s1-main,read,read,10,40960,10,9,20,20,30,30,50,210,1,4096,100%,completed,running @ 2016-11-20 18:00:08\n";
    std::fs::write(archive.join("w1-x.csv"), format!("{header}{}", row.repeat(20_000))).unwrap();
    table.add("COSBench: 180,000 works", measured(&place, &["import", archive.to_str().unwrap()]));
    table.end();
}

/// Serves whatever connects, each on a thread of its own, which ends with its connection.
fn serve(answer: impl Fn(TcpStream) -> std::io::Result<()> + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            std::thread::spawn(move || stream.and_then(answer));
        }
    });
    port
}

/// Waits for something, and leaves it.
fn hear(stream: &mut TcpStream) -> std::io::Result<()> {
    match stream.read(&mut [0; 64 << 10])? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Sends the same for as long as somebody takes it.
fn endless(mut stream: TcpStream, part: &[u8]) -> std::io::Result<()> {
    let many = part.repeat((64 << 10) / part.len() + 1);
    loop {
        stream.write_all(&many)?;
    }
}

/// A server of PostgreSQL's protocol that answers its first question with this, without end.
fn postgres(answer: &'static [u8]) -> u16 {
    serve(move |mut stream| {
        hear(&mut stream)?;
        stream.write_all(b"R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0015.3\0Z\0\0\0\x05I")?;
        hear(&mut stream)?;
        endless(stream, answer)
    })
}

/// The same of MySQL's: packets with these payloads, and then one of `answer` after the other.
fn mysql(begin: &'static [&'static [u8]], answer: &'static [u8]) -> u16 {
    serve(move |mut stream| {
        let packet = |number: usize, payload: &[u8]| {
            let [low, middle, high, ..] = payload.len().to_le_bytes();
            [&[low, middle, high, number as u8], payload].concat()
        };
        let greeting = [
            &b"\x0a8.0.40\0\x07\0\0\x0012345678\0\xff\xf7\x2d\x02\0\x3f\x01\x15"[..],
            &[0; 10],
            b"901234567890\0mysql_native_password\0",
        ];
        stream.write_all(&packet(0, &greeting.concat()))?;
        hear(&mut stream)?;
        stream.write_all(&packet(2, b"\0\0\0\x02\0\0\0"))?;
        hear(&mut stream)?;
        for (number, payload) in (1..).zip(begin) {
            stream.write_all(&packet(number, payload))?;
        }
        // Numbers of packets begin anew after 255.
        let begun = begin.len() + 1;
        let round: Vec<u8> = (begun..begun + 256).flat_map(|number| packet(number, answer)).collect();
        endless(stream, &round)
    })
}

/// A server of HTTP that answers with this, and with more without end.
fn http(begin: &'static [u8], part: &'static [u8]) -> u16 {
    serve(move |mut stream| {
        hear(&mut stream)?;
        stream.write_all(begin)?;
        endless(stream, part)
    })
}

/// A Trino whose replies to statements have these rows, and name where there are more.
fn trino(rows: String) -> u16 {
    let rows: Arc<str> = rows.into();
    serve(move |mut stream| {
        let address = stream.local_addr()?;
        loop {
            let mut request = [0; 64 << 10];
            let length = stream.read(&mut request)?;
            if length == 0 {
                return Ok(());
            }
            let body = match request.starts_with(b"GET /v1/info") {
                true => "{\"nodeVersion\":{\"version\":\"470\"},\"coordinator\":true,\"starting\":false}"
                    .to_owned(),
                false => {
                    let next = format!("http://{address}/v1/statement/executing/q/y/1");
                    format!("{{\"id\":\"q\",\"nextUri\":\"{next}\",\"data\":{rows}}}")
                }
            };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes())?;
        }
    })
}

/// Definition of a column of numbers.
const COLUMN: &[u8] = b"\0\0\0\0\0\0\x0c\x3f\0\x0b\0\0\0\x03\0\0\0\0\0";

#[test]
#[ignore = "needs python3"]
fn servers_take_bounded_memory_whatever_they_send() {
    tidemark_testing::needs!(&["python3"]);
    let (place, mut table) = (Place::new(), Table::default());
    let run = |document: String| {
        let path = place.write("run.yaml", &document);
        measured(&place, &["run", path.to_str().unwrap()])
    };
    let database = |kind: &str, port: u16| {
        format!(
            "name: endless\ntarget: {{kind: {kind}, host: 127.0.0.1, port: {port}, user: u, password: p, database: d, tls: disable}}\n\
             stages:\n- load: {{workload: pgbench/tpcb-like, clients: 1, for: 1s}}\n"
        )
    };
    let of_postgres: [(&str, &[u8]); 4] = [
        ("PostgreSQL: rows", b"D\0\0\0\x0b\0\x01\0\0\0\x011"),
        ("PostgreSQL: rows of no columns", b"D\0\0\0\x06\0\0"),
        ("PostgreSQL: empty answers", b"I\0\0\0\x04"),
        ("PostgreSQL: a message of 1 GB", b"D\x40\0\0\0"),
    ];
    for (what, answer) in of_postgres {
        table.add(what, run(database("postgres", postgres(answer))));
    }
    let mut of_mysql = |what: &str, begin: &'static [&'static [u8]], answer: &'static [u8]| {
        table.add(what, run(database("mysql", mysql(begin, answer))));
    };
    of_mysql("MySQL: rows", &[b"\x01", COLUMN], b"\x011");
    of_mysql("MySQL: empty rows", &[b"\x01", COLUMN], b"\x00");
    of_mysql("MySQL: columns", &[b"\xfc\xff\x0f"], COLUMN);
    of_mysql("MySQL: results", &[], b"\0\0\0\x0a\0\0\0");
    let object = |port: u16| {
        format!(
            "name: endless\ntarget: {{kind: s3, endpoint: 'http://127.0.0.1:{port}', access_key: a, secret_key: b, timeout: 5s}}\nstages:\n\
             - load: {{existing: {{container: c}}, workers: 1, total_operations: 1, operations: [get: {{}}]}}\n"
        )
    };
    let page = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<ListBucketResult>";
    let key = b"<Contents><Key>k</Key><Size>1</Size></Contents>";
    table.add("S3: a page of a listing", run(object(http(page, key))));
    table.add("S3: a head", run(object(http(b"HTTP/1.1 200 OK\r\nX: ", b"x"))));
    let tables = |port: u16| {
        format!(
            "name: endless\ntarget: {{kind: trino, endpoint: 'http://127.0.0.1:{port}', storage: {{kind: s3, endpoint: \
             'http://127.0.0.1:9', access_key: a, secret_key: b}}}}\nstages:\n- load: {{tables: tpch, scale: 0.01}}\n"
        )
    };
    table.add("Trino: rows", run(tables(trino(list("[\"1234567890\"]", 500_000)))));
    table.add("Trino: columns", run(tables(trino(format!("[{}]", list("1", 5_000_000))))));
    table.end();
}
