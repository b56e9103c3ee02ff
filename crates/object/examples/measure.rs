//! Temporary: measure serve PORT | run ENDPOINT VERB WORKERS SECONDS [RATE]
use rustix::event::epoll;
use rustix::net;
use std::collections::HashMap;
use std::sync::Arc;
use tidemark_load::crew::{self, Watch, Wish};
use tidemark_load::pacing::{Arrivals, Pacing, Rate};
use tidemark_load::source::*;
use tidemark_load::stopping::Stop;
use tidemark_load::work::Work;
use tidemark_measure::pick::Pick;
use tidemark_measure::tally::Interval;
use tidemark_object::content::DataSet;
use tidemark_object::engine::engine;
use tidemark_plan::object::*;
use tidemark_plan::secret::Secret;

fn cpu() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

fn store(port: u16) {
    use std::io::{Read, Write};
    let l = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let map: Arc<std::sync::RwLock<HashMap<String, Arc<Vec<u8>>>>> = Arc::default();
    for c in l.incoming() {
        let mut c = c.unwrap();
        c.set_nodelay(true).unwrap();
        let map = map.clone();
        std::thread::spawn(move || {
            let mut buf = vec![0u8; 1 << 21];
            let mut have = 0;
            loop {
                let end = loop {
                    if let Some(e) = buf[..have].windows(4).position(|w| w == b"\r\n\r\n") {
                        break e + 4;
                    }
                    match c.read(&mut buf[have..]) {
                        Ok(n) if n > 0 => have += n,
                        _ => return,
                    }
                };
                let text = String::from_utf8_lossy(&buf[..end]).into_owned();
                let path = text.split(' ').nth(1).unwrap().to_owned();
                if text.starts_with("PUT") {
                    let at = text.find("Content-Length: ").unwrap() + 16;
                    let len: usize = text[at..].split('\r').next().unwrap().parse().unwrap();
                    while have < end + len {
                        have += c.read(&mut buf[have..]).unwrap();
                    }
                    map.write().unwrap().insert(path, Arc::new(buf[end..end + len].to_vec()));
                    c.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                } else {
                    let body = map.read().unwrap()[&path].clone();
                    c.write_all(
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(),
                    )
                    .unwrap();
                    c.write_all(&body).unwrap();
                }
                have = 0;
            }
        });
    }
}

fn serve(port: u16) {
    let l = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    net::listen(&l, 16384).unwrap();
    l.set_nonblocking(true).unwrap();
    let ep = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&ep, &l, epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN).unwrap();
    let size: usize = std::env::args().nth(3).and_then(|a| a.parse().ok()).unwrap_or(4096);
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: null\r\nDate: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Type: application/octet-stream\r\nETag: \"0123456789abcdef0123456789abcdef\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\nx-amz-request-id: tx000000000000000000001\r\nAccept-Ranges: bytes\r\nConnection: keep-alive\r\nContent-Length: {size}\r\n\r\n"
    );
    let mut get = head.into_bytes();
    get.extend(std::iter::repeat_n(b'x', size));
    let put = b"HTTP/1.1 200 OK\r\nServer: null\r\nDate: Wed, 21 Oct 2015 07:28:00 GMT\r\nETag: \"0123456789abcdef0123456789abcdef\"\r\nx-amz-request-id: tx000000000000000000001\r\nConnection: keep-alive\r\nAccept-Ranges: bytes\r\nX-A: b\r\nContent-Length: 0\r\n\r\n".to_vec();
    let mut conns: HashMap<u64, (std::os::fd::OwnedFd, usize, Vec<u8>)> = HashMap::new();
    let mut id = 0u64;
    let mut events = Vec::with_capacity(256);
    let mut buf = vec![0u8; 1 << 20];
    loop {
        events.clear();
        epoll::wait(&ep, rustix::buffer::spare_capacity(&mut events), None).ok();
        for e in events.iter() {
            let d = e.data.u64();
            if d == u64::MAX {
                while let Ok(fd) = net::accept_with(&l, net::SocketFlags::NONBLOCK) {
                    net::sockopt::set_tcp_nodelay(&fd, true).unwrap();
                    epoll::add(&ep, &fd, epoll::EventData::new_u64(id), epoll::EventFlags::IN).unwrap();
                    conns.insert(id, (fd, 0, Vec::new()));
                    id += 1;
                }
                continue;
            }
            let c = conns.get_mut(&d).unwrap();
            match net::recv(&c.0, &mut buf[..], net::RecvFlags::empty()) {
                Ok((_, 0)) => {
                    conns.remove(&d);
                }
                Ok((_, n)) => {
                    let mut done = None;
                    if c.1 > 0 {
                        c.1 -= n.min(c.1);
                        if c.1 == 0 {
                            done = Some(true);
                        }
                    } else {
                        let data = &buf[..n];
                        let end = data.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
                        if data.starts_with(b"PUT") {
                            let text = std::str::from_utf8(&data[..end]).unwrap();
                            let at = text.find("Content-Length: ").unwrap() + 16;
                            let len: usize = text[at..].split('\r').next().unwrap().parse().unwrap();
                            let left = len - (n - end);
                            if left == 0 {
                                done = Some(true);
                            } else {
                                c.1 = left;
                            }
                        } else {
                            done = Some(false);
                        }
                    }
                    if let Some(is_put) = done {
                        let reply = if is_put { &put } else { &get };
                        let mut sent = 0;
                        while sent < reply.len() {
                            match net::send(&c.0, &reply[sent..], net::SendFlags::NOSIGNAL) {
                                Ok(n) => sent += n,
                                Err(rustix::io::Errno::AGAIN) => {
                                    std::thread::yield_now();
                                }
                                Err(_) => break,
                            }
                        }
                    }
                }
                Err(_) => {}
            }
        }
    }
}

struct Seen;
impl Watch for Seen {
    fn interval(&mut self, _: &Interval) {}
    fn wish(&mut self) -> Wish {
        Wish::GoOn
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "store" {
        return store(args[2].parse().unwrap());
    }
    if args[1] == "serve" {
        return serve(args[2].parse().unwrap());
    }
    let (verb, bytes) = match args[3].as_str() {
        "get" => (Verb::Get, 0),
        "put" => (Verb::Put { chunked: false, if_absent: false }, 4096),
        "bput" => (Verb::Put { chunked: false, if_absent: false }, 1 << 20),
        "vget" | "uget" => (Verb::Get, 0),
        "null" => (Verb::Get, 0),
        other => panic!("{other}"),
    };
    let workers: u32 = args[4].parse().unwrap();
    let seconds: u64 = args[5].parse().unwrap();
    let rate: Option<f64> = args.get(6).map(|r| r.parse().unwrap());
    let s3 = S3 {
        http: Http { endpoints: vec![args[2].clone()], ..Http::default() },
        access_key: "AKIAIOSFODNN7EXAMPLE".into(),
        secret_key: Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        session_token: None,
        region: "us-east-1".into(),
        path_style: true,
        sign_payload: false,
        storage_class: None,
    };
    let target = if args[3] == "null" { Target::Nothing } else { Target::S3(s3) };
    let job = Job {
        target,
        actions: vec![Action { verb, naming: Naming::default(), content: Content::default() }],
    };
    let data = DataSet::new(1, 1, 0);
    let engine = engine(&job, &data).unwrap();
    let pick = |high| Pick::Uniform { low: 1, high };
    let work = Work {
        workers,
        pacing: match rate {
            None => Pacing::Closed { think_ns: 0 },
            Some(r) => Pacing::Open { rate: Rate::constant(r), arrivals: Arrivals::Constant },
        },
        stop: Stop {
            ramp_up_ns: 0,
            warm_up_ns: 500_000_000,
            window_ns: Some(seconds * 1_000_000_000),
            ramp_down_ns: 0,
            operations: None,
            bytes: None,
            drain_ns: 1_000_000_000,
            give_up_ns: None,
        },
        source: SourcePlan::Mix {
            choices: vec![Choice {
                action: 0,
                weight: 1.0,
                spaces: pick(if ["vget", "uget", "bput"].contains(&args[3].as_str()) { 1 } else { 32 }),
                items: pick(if ["vget", "uget", "bput"].contains(&args[3].as_str()) { 8 } else { 100_000 }),
                bytes: Size { pick: Pick::Constant(bytes), unit: 1 },
                division: Division::None,
                effect: Effect::Free,
            }],
            pool: None,
        },
        actions: 1,
        seed: 1,
        stream: [0, 0],
    };
    let before = cpu();
    let began = std::time::Instant::now();
    let result = crew::run(&work, engine.as_ref(), 1, &mut Seen).unwrap();
    let (used, wall) = (cpu() - before, began.elapsed().as_secs_f64());
    let tally = &result.tallies[0];
    let total = tally.ok as f64 / seconds as f64 * (seconds as f64 + 0.5);
    println!(
        "{} workers {workers}: {:.0} op/s failed {} cpu/op {:.3} us (busy {:.2}) p50 {} p99 {} lag p50 {} p99 {}",
        args[3],
        tally.ok as f64 / seconds as f64,
        tally.failed(),
        used * 1e6 / total,
        used / wall,
        tally.response.quantile(0.5),
        tally.response.quantile(0.99),
        tally.lag.quantile(0.5),
        tally.lag.quantile(0.99)
    );
    for e in result.examples {
        println!("{:?}", e);
    }
    let _ = Arc::strong_count(&data);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|l| l.starts_with("VmHWM")).unwrap());
}
