//! What verification adds to a read of 1 MiB in processor time of the client's thread: run by hand.
//! `cargo test --profile dist -p tidemark-object --test it verified_reads -- --ignored --nocapture`

use crate::support::{MS, Run, actions, naming, s3};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use tidemark_load::engine::{Begin, Operation};
use tidemark_object::content::{DataSet, Key};
use tidemark_object::job::{Content, Target, Verb};

const SIZE: u64 = 1 << 20;

/// Answers every request with the same object.
fn serve(mut stream: TcpStream, object: &[u8]) {
    let reply = [format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n").as_bytes(), object].concat();
    let mut asked = [0; 4096];
    while stream.read(&mut asked).is_ok_and(|length| length > 0) {
        if stream.write_all(&reply).is_err() {
            return;
        }
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
#[ignore = "a measurement"]
fn measures_verification() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let data = DataSet::new(7, 1, 0, Default::default());
    let plan = data.plan(&Content::default(), &naming());
    let key = Key { space: 1, item: 1 };
    let mut object = Vec::new();
    let payload = plan.payload(key, plan.write(key), SIZE);
    payload.each(0..SIZE, |piece| object.write_all(piece)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let object = object.clone();
            std::thread::spawn(move || serve(stream.unwrap(), &object));
        }
    });
    let target = s3(&endpoint, "key", "secret");
    let mut runs = [false, true].map(|verify| {
        let mut actions = actions(&[Verb::Get]);
        actions[0].content.verify = verify;
        Run::sharing(&data, Target::S3(target.clone()), actions, 8)
    });
    for round in 0..40 {
        let [plain, verified] = [0, 1].map(|index| {
            let run: &mut Run = &mut runs[index];
            let read = Operation { space: 1, item: 1, ..Operation::default() };
            let start = thread_cpu_ns();
            let (mut begun, mut ended) = (0, Vec::new());
            let mut idle: Vec<u32> = (0..8).collect();
            while begun < 400 {
                for slot in idle.drain(..) {
                    assert_eq!(run.session.begin(slot, &read, run.clock.now()), Begin::Started);
                    begun += 1;
                }
                run.session.reap(run.clock.now() + 1000 * MS, &mut ended);
                for end in ended.drain(..) {
                    assert_eq!(end.outcome.fault, None);
                    idle.push(end.slot);
                }
            }
            run.wait(8 - idle.len());
            (thread_cpu_ns() - start) / begun / 1000
        });
        println!(
            "round {round}: {plain} us plain, {verified} us verified: {:.2}",
            verified as f64 / plain as f64
        );
    }
}
