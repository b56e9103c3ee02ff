//! Tests of the mirror of a native cell in fio's words.

use super::*;
use tidemark_block::job::{Cache, Content, IoEngine, Rbd};
use tidemark_load::source::{Choice, Division, Effect, Follow, Order, Size};
use tidemark_load::stopping::{Steady, Stop};
use tidemark_load::work::Finale;
use tidemark_measure::pick::{Bucket, Pick};
use tidemark_plan::plan::WorkKind;

const BLOCKS: u64 = 1024;

fn job(volumes: u64, actions: Vec<Action>) -> Job {
    let volume =
        |number| Volume { place: Place::File(format!("/data/v:{number}").into()), size: BLOCKS * 4096 };
    Job {
        volumes: (1..=volumes).map(volume).collect(),
        unit: 4096,
        io_engine: IoEngine::Fio,
        direct: true,
        polled: false,
        batch: Some(1),
        cache: Cache::Cold,
        content: Content::default(),
        journal: None,
        reuse: false,
        per_driver: false,
        actions,
    }
}

fn choice(action: u16, weight: f64, order: Order) -> Choice {
    Choice {
        action,
        weight,
        spaces: Pick::Uniform { low: 1, high: 2 },
        items: Pick::Uniform { low: 0, high: BLOCKS - 1 },
        bytes: Size { pick: Pick::Constant(4096), unit: 1 },
        division: Division::Spaces,
        effect: Effect::Free,
        order,
        follow: None,
    }
}

fn work(job: &Job, clients: u32, source: SourcePlan) -> plan::Work {
    plan::Work {
        name: "load".into(),
        kind: WorkKind::Normal,
        load: Work {
            workers: clients,
            depth: 8,
            connections: None,
            pacing: Pacing::BACK_TO_BACK,
            stop: Stop { warm_up_ns: 2_000_000_000, window_ns: Some(30_000_000_000), ..Stop::default() },
            source,
            finale: None,
            copies: 1,
            actions: job.actions.len() as u16,
            seed: 7,
            stream: [1, 0],
        },
        job: tidemark_plan::job::Job::new(job.clone()),
        labels: Vec::new(),
        allowed_failures_per_million: 0,
        driver: None,
    }
}

fn mix(choices: Vec<Choice>) -> SourcePlan {
    SourcePlan::Mix { choices, pool: None, deck: false }
}

const SEQUENTIAL: Order = Order::Consecutive { unit: 4096 };

fn option<'t>(process: &'t Process, name: &str) -> Option<&'t str> {
    let options = process.text.lines().filter_map(|line| line.split_once('='));
    options.filter(|(own, _)| *own == name).map(|(_, value)| value).next_back()
}

fn refusal(work: &plan::Work, job: &Job) -> String {
    processes(work, job, &[]).expect_err("it is refused").to_string()
}

#[test]
fn every_client_gets_its_volume_and_its_seed() {
    let job = job(2, vec![Action::Read]);
    let made = processes(&work(&job, 2, mix(vec![choice(0, 1.0, Order::Picked)])), &job, &[]).unwrap();
    assert_eq!(made.len(), 2);
    let both = |name| made.iter().map(|process| option(process, name)).collect::<Vec<_>>();
    assert_eq!(both("filename"), [Some("/data/v\\:1"), Some("/data/v\\:2")]);
    assert_ne!(both("randseed")[0], both("randseed")[1]);
    for (name, value) in [
        ("ioengine", "io_uring"),
        ("fixedbufs", "1"),
        ("registerfiles", "1"),
        ("direct", "1"),
        ("rw", "randread"),
        ("bs", "4096"),
        ("iodepth", "8"),
        ("offset", "0"),
        ("size", "4194304"),
        ("norandommap", "1"),
        ("randrepeat", "0"),
        ("time_based", "1"),
        ("runtime", "30000ms"),
        ("ramp_time", "2000ms"),
        ("allow_file_create", "0"),
        ("lat_percentiles", "1"),
    ] {
        assert_eq!(both(name), [Some(value); 2], "{name}");
    }
    assert!(made.iter().all(|process| process.remarks.is_empty()));
}

#[test]
fn mixes_orders_and_sizes_are_shares_in_percent() {
    let job = job(1, vec![Action::Read, Action::Write, Action::Fdatasync]);
    let one = |choice: Choice| Choice { spaces: Pick::Constant(1), division: Division::None, ..choice };
    let bucket = |bytes, weight| Bucket { low: bytes, high: bytes, weight };
    let sizes = Size { pick: Pick::Weighted(vec![bucket(4096, 1), bucket(65536, 3)]), unit: 1 };
    let choices = vec![
        one(choice(0, 28.0, Order::Picked)),
        one(choice(0, 42.0, SEQUENTIAL)),
        Choice {
            bytes: sizes,
            follow: Some(Follow { action: 2, every: 8 }),
            ..one(choice(1, 30.0, Order::Picked))
        },
    ];
    let made = processes(&work(&job, 1, mix(choices.clone())), &job, &[]).unwrap().remove(0);
    assert_eq!(option(&made, "rw"), Some("randrw"));
    assert_eq!(option(&made, "rwmixread"), Some("70"));
    assert_eq!(option(&made, "percentage_random"), Some("40,100,100"));
    assert_eq!(option(&made, "bssplit"), Some("4096/100,4096/25:65536/75,4096/100"));
    assert_eq!(option(&made, "fdatasync"), Some("8"));
    let thirds = vec![one(choice(0, 2.0, Order::Picked)), one(choice(1, 1.0, Order::Picked))];
    let made = processes(&work(&job, 1, mix(thirds)), &job, &[]).unwrap().remove(0);
    assert_eq!((option(&made, "rwmixread"), made.remarks.len()), (Some("67"), 1), "rounding is remarked");
}

#[test]
fn sequential_clients_of_a_shared_volume_have_a_part_each() {
    let job = job(1, vec![Action::Write]);
    let own = Choice { spaces: Pick::Constant(1), division: Division::Items, ..choice(0, 1.0, SEQUENTIAL) };
    let mut work = work(&job, 2, mix(vec![own]));
    work.load.finale = Some(Finale { action: 0, spaces: (1, 1) });
    assert!(refusal(&work, &job).contains("end with anything but a sync"));
    work.load.finale = None;
    let made = processes(&work, &job, &[]).unwrap();
    let parts: Vec<_> =
        made.iter().map(|process| (option(process, "offset"), option(process, "size"))).collect();
    assert_eq!(parts, [(Some("0"), Some("2097152")), (Some("2097152"), Some("2097152"))]);
    assert_eq!(option(&made[0], "rw"), Some("write"));
}

#[test]
fn images_go_through_librbd() {
    let mut job = job(1, vec![Action::Read]);
    let rbd = Rbd {
        conf: Some("/lab/ceph.conf".into()),
        user: "admin".into(),
        pool: "p".into(),
        image: "i".into(),
    };
    job.volumes[0].place = Place::Rbd(rbd);
    let one = Choice { spaces: Pick::Constant(1), division: Division::None, ..choice(0, 1.0, Order::Picked) };
    let made = processes(&work(&job, 1, mix(vec![one])), &job, &[]).unwrap().remove(0);
    for (name, value) in [
        ("ioengine", Some("rbd")),
        ("clientname", Some("admin")),
        ("pool", Some("p")),
        ("rbdname", Some("i")),
    ] {
        assert_eq!(option(&made, name), value);
    }
    assert_eq!(option(&made, "fixedbufs"), None);
    assert_eq!(made.environment, [("CEPH_CONF".to_owned(), "/lab/ceph.conf".into())]);
}

#[test]
fn a_prefill_writes_every_byte_of_every_volume_once() {
    let mut job = job(2, vec![Action::Write]);
    job.volumes[1].size = 2 * FILL_BYTES + 4096;
    job.content.compressible = 0.5;
    let bytes = Size { pick: Pick::Constant(FILL_BYTES), unit: 1 };
    let scan = SourcePlan::Scan { action: 0, spaces: Some((1, 2)), items: Some((0, 2)), bytes };
    let made = processes(&work(&job, 5, scan), &job, &[]).unwrap();
    assert_eq!(made.len(), 2, "one process for each volume, however many clients");
    assert_eq!((option(&made[0], "size"), option(&made[0], "time_based")), (Some("4194304"), None));
    assert_eq!(
        (option(&made[0], "end_fsync"), option(&made[0], "buffer_compress_percentage")),
        (Some("1"), Some("50"))
    );
    assert!(made[1].text.contains("size=2097152\n") && made[1].text.contains("offset=2097152\n"));
    assert_eq!((option(&made[1], "bs"), option(&made[1], "stonewall")), (Some("4096"), Some("1")));
}

#[test]
fn an_open_loop_is_divided_over_clients_and_directions() {
    let job = job(2, vec![Action::Read, Action::Write]);
    let choices = vec![choice(0, 75.0, Order::Picked), choice(1, 25.0, Order::Picked)];
    let mut work = work(&job, 2, mix(choices));
    work.load.pacing = Pacing::Open { rate: Rate::constant(800.0), arrivals: Arrivals::Poisson };
    let made = processes(&work, &job, &[]).unwrap();
    assert_eq!(option(&made[1], "rate_iops"), Some("300,100,0"));
    assert_eq!(option(&made[1], "rate_process"), Some("poisson"));
    assert!(made[1].remarks[0].contains("fio paces the load itself"));
    work.load.pacing =
        Pacing::Open { rate: Rate { points: vec![(0, 1.0), (9, 5.0)] }, arrivals: Arrivals::Constant };
    assert!(refusal(&work, &job).contains("change its rate over time"));
}

#[test]
fn what_cannot_be_mirrored_is_named() {
    let plain = job(2, vec![Action::Read]);
    let verified = Job { content: Content { verify: true, ..Content::default() }, ..plain.clone() };
    let load = work(&plain, 2, mix(vec![choice(0, 1.0, Order::Picked)]));
    assert!(refusal(&load, &verified).contains("verify"));
    let mut steady = load.clone();
    steady.load.stop.steady = Some(Steady { round_ns: 1_000_000_000, most_rounds: 25 });
    assert!(refusal(&steady, &plain).contains("steady state"));
    let hot = Pick::Hotspot { low: 0, high: BLOCKS - 1, hot_share: 0.1, hot_weight: 0.9 };
    let hot = Choice { items: hot, ..choice(0, 1.0, Order::Picked) };
    assert!(refusal(&work(&plain, 2, mix(vec![hot])), &plain).contains("choose offsets"));
    let zipf = Pick::Zipf { low: 0, high: BLOCKS - 1, exponent: 1.2 };
    let zipf = Choice { items: zipf, ..choice(0, 1.0, Order::Picked) };
    let made = processes(&work(&plain, 2, mix(vec![zipf])), &plain, &[]).unwrap();
    assert_eq!(option(&made[0], "random_distribution"), Some("zipf:1.2"));
    let endless = plan::Work { load: Work { stop: Stop::default(), ..load.load.clone() }, ..load.clone() };
    assert!(refusal(&endless, &plain).contains("no end"));
    assert!(refusal(&work(&plain, 1, load.load.source.clone()), &plain).contains("several volumes"));
    let mut odd = plain.clone();
    for path in ["/data/a#b", "/data/$ncpus", "/data/x$pagesize", "/data/${HOME}"] {
        odd.volumes[0].place = Place::File(path.into());
        assert!(refusal(&load, &odd).contains(&format!("cannot name `{path}`")), "{path}");
    }
}

#[test]
fn files_that_fio_would_delete_or_make_up_are_missed_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("v");
    let mut job = job(1, vec![Action::Read]);
    job.volumes[0].place = Place::File(path.clone());
    let load = work(&job, 1, mix(vec![choice(0, 1.0, Order::Picked)]));
    assert!(check_files(&load, &job).unwrap_err().to_string().contains("does not exist: prefill"));
    std::fs::write(&path, b"short").unwrap();
    assert!(check_files(&load, &job).unwrap_err().to_string().contains("has 5 bytes"));
    std::fs::File::options().write(true).open(&path).unwrap().set_len(BLOCKS * 4096).unwrap();
    check_files(&load, &job).unwrap();
}
