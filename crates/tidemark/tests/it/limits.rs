//! What limited the load, where that is known because it was built: six limits, and four neighbours that are none.
//!
//! What is asserted is what is named, never how long anything took: on a machine that others use as well a limit may go
//! unnamed for being theirs, and that is said, but nothing else may be named instead.

use crate::common::fleet::Process;
use crate::common::loops::Loop;
use crate::common::{Output, Place, Record};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidemark_embedded::{
    Credentials, EmbeddedOptions, EmbeddedServer, Fault, Operation, Place as ServerPlace,
};

/// How a child of this test is told what to serve: `address`, `directory`, `rate`, `delay_ms`, `sink`.
const SERVES: &str = "TIDEMARK_TEST_SERVES";

/// The name of the test that is such a child, and the argument by which its process is observed.
const SERVER: &str = "limits::serves";

/// What control groups of this test are called.
fn tag() -> String {
    format!("tidemark-limits-{}", std::process::id())
}

/// What a child does: it serves objects, or swallows bytes, until its input ends. Otherwise no test.
#[test]
#[ignore = "the server of the other tests"]
fn serves() {
    let Ok(text) = std::env::var(SERVES) else { return };
    let of = |name: &str| text.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let address = of("address").unwrap_or("127.0.0.1:0");
    if of("sink").is_some() {
        let listener = TcpListener::bind(address).unwrap();
        println!("\nserving {}", listener.local_addr().unwrap());
        for mut peer in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || std::io::copy(&mut peer, &mut std::io::sink()));
        }
    }
    let place = of("directory")
        .map_or(ServerPlace::Memory, |path| ServerPlace::Directory { path: path.into(), durable: false });
    let keys = Credentials { access_key: "limits".into(), secret_key: "limits-secret".into() };
    let options = EmbeddedOptions {
        address: address.parse().unwrap(),
        place,
        credentials: Some(keys),
        ..EmbeddedOptions::default()
    };
    let server = EmbeddedServer::start(options).unwrap();
    if let Some(rate) = of("rate") {
        server.faults().limit_rate(Some(rate.parse().unwrap()));
    }
    if let Some(delay) = of("delay_ms") {
        let delay = Duration::from_millis(delay.parse().unwrap());
        server.faults().add(Fault::delay(delay).on(Operation::GetObject));
    }
    println!("\nserving {}", server.endpoint());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// A control group of version 1, taken away with this value.
struct Group(PathBuf);

impl Group {
    /// `None` where there is no such controller.
    fn new(controller: &str, settings: &[(&str, &str)]) -> Option<Self> {
        let path = PathBuf::from("/sys/fs/cgroup").join(controller).join(tag());
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        for (file, value) in settings {
            fs::write(group.0.join(file), value).ok()?;
        }
        Some(group)
    }

    /// The same command within the group.
    fn holding(&self, command: &Command) -> Command {
        let mut within = Command::new("sh");
        within.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        wrapped(within, command)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended, and the kernel may need a moment to see that.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("{} is left behind", self.0.display());
    }
}

/// A command that begins with another one, and keeps its own surroundings.
fn wrapped(mut outer: Command, inner: &Command) -> Command {
    outer.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    if let Some(directory) = inner.get_current_dir() {
        outer.current_dir(directory);
    }
    outer
}

/// A server of objects that is a process of its own, so that it can be observed and held back.
struct Server {
    process: Process,
    endpoint: String,
}

impl Server {
    fn command(what: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", SERVER]).env(SERVES, what);
        command
    }

    fn start(mut command: Command) -> Self {
        let process = Process::start({
            command.stdin(Stdio::piped());
            command
        });
        let endpoint = process.wait_for("serving ");
        Self { process, endpoint }
    }

    fn of(what: &str) -> Self {
        Self::start(Self::command(what))
    }

    /// A document that loads it, and observes it.
    fn document(&self, objects: &str, load: &str) -> String {
        let own = std::env::current_exe().unwrap();
        let name = own.file_name().unwrap().to_str().unwrap();
        format!(
            "name: limits\nobserve: {{processes: ['{name} {SERVER}']}}\n\
             target: {{kind: s3, endpoints: ['{}'], access_key: limits, secret_key: limits-secret}}\n\
             stages:\n  - init: {{containers: 1}}\n  - prepare: {{containers: 1, {objects}, workers: 4}}\n  \
             - name: main\n    load: {{{load}, warm_up: 1s, for: 6s}}\n",
            self.endpoint
        )
    }

    /// The command that runs a load of reads against it.
    fn reads(&self, place: &Place, workers: u32) -> Command {
        let load = format!("workers: {workers}, containers: 1, operations: [{{get: {{objects: 1-20}}}}]");
        load_with(place, &self.document("objects: 1-20, sizes: 16KiB", &load))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill();
    }
}

fn load_with(place: &Place, document: &str) -> Command {
    let file = place.write("document.yaml", document);
    place.command(&["run", file.to_str().unwrap(), "--json"])
}

/// What a load ran into.
struct Told(Record);

impl Told {
    fn by(mut command: Command) -> Self {
        let output = command.output().unwrap();
        let output = Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        let record = Record::from(&output);
        assert_eq!(record.state(), "completed", "{}", output.stderr);
        let told = Self(record);
        for finding in told.0.value["findings"].as_array().unwrap() {
            eprintln!("{}: {} {}", finding["rule"], finding["title"], finding["evidence"]);
        }
        told
    }

    fn rules(&self, prefix: &str) -> Vec<&str> {
        let findings = self.0.value["findings"].as_array().unwrap();
        let rules = findings.iter().map(|finding| finding["rule"].as_str().unwrap());
        rules.filter(|rule| rule.starts_with(prefix)).collect()
    }

    /// The limits that are named; that nothing can be told is none.
    fn limits(&self) -> Vec<&str> {
        let mut rules = self.rules("limit-");
        rules.retain(|rule| *rule != "limit-unknown");
        rules
    }

    /// Sees that the first limit is this one.
    fn first_is(&self, rule: &str) {
        assert_eq!(self.limits().first(), Some(&rule), "{}", self.0.value["findings"]);
    }

    /// Sees that no resource is called the limit.
    fn names_nothing(&self) {
        assert!(self.limits().iter().all(|rule| *rule == "limit-latency"), "{}", self.0.value["findings"]);
    }

    /// Sees that the load waited for the service, or that others used up what it may have waited for. Where they use the
    /// processors for half of the time and more, but not so much that it is named, nothing can be said.
    fn says_something(&self) {
        let findings = self.0.value["findings"].as_array().unwrap();
        let busy = findings.iter().find(|finding| finding["rule"] == "generator-busy").unwrap();
        let used = busy["facts"][0]["busy"][0]["processors"]["busy"].as_f64().unwrap();
        let said = !self.limits().is_empty() || !self.rules("busy-").is_empty();
        assert!(said || used >= 0.5, "{used} {}", self.0.value["findings"]);
    }
}

/// Processes that are ended with this value.
struct Neighbours(Vec<Child>);

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A network namespace with a link to this one. Taken away with this value.
struct Net {
    tag: String,
    subnet: String,
}

impl Net {
    fn new() -> Option<Self> {
        let number = std::process::id() % 200;
        let net = Self { tag: format!("tl{number}"), subnet: format!("10.97.{number}") };
        let Self { tag, subnet } = &net;
        let steps = [
            format!("netns add {tag}"),
            format!("link add {tag}v type veth peer name eth0 netns {tag}"),
            format!("addr add {subnet}.1/24 dev {tag}v"),
            format!("link set {tag}v up"),
            format!("-n {tag} addr add {subnet}.2/24 dev eth0"),
            format!("-n {tag} link set eth0 up"),
            format!("-n {tag} link set lo up"),
        ];
        steps.iter().all(|step| call("ip", step)).then_some(net)
    }

    fn within(&self, command: &Command) -> Command {
        let mut outer = Command::new("ip");
        outer.args(["netns", "exec", &self.tag]);
        wrapped(outer, command)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        call("ip", &format!("netns del {}", self.tag));
        call("ip", &format!("link del {}v", self.tag));
    }
}

/// Whether a program did what it was told.
fn call(program: &str, words: &str) -> bool {
    let output = Command::new(program).args(words.split_whitespace()).output();
    output.is_ok_and(|output| output.status.success())
}

/// Ends a test here where something cannot be made.
macro_rules! made {
    ($what:expr, $name:literal) => {
        match $what {
            Some(made) => made,
            None => return tidemark_testing::skip(concat!($name, " cannot be made (root is needed)")),
        }
    };
}

/// Less than the share that a thread gets beside fifteen others on two processors: it binds on a busy machine too.
const QUOTA: &[(&str, &str)] = &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "8000")];

#[test]
#[ignore = "needs root and control groups; `make test` runs it"]
fn a_limit_that_was_built_the_generator_s_quota() {
    let group = made!(Group::new("cpu", QUOTA), "a control group");
    let (place, server) = (Place::new(), Server::of(""));
    let told = Told::by(group.holding(&server.reads(&place, 16)));
    told.first_is("limit-generator");
    assert_eq!(told.0.findings("limit-generator")[0]["invalidates"], true);
}

#[test]
#[ignore = "needs root and control groups; `make test` runs it"]
fn a_limit_that_was_built_the_server_s_processors() {
    let group = made!(Group::new("cpu", QUOTA), "a control group");
    let (place, server) = (Place::new(), Server::start(group.holding(&Server::command(""))));
    let told = Told::by(server.reads(&place, 8));
    told.first_is("limit-cgroup");
    drop(server);
}

#[test]
#[ignore = "needs root, loop devices and control groups; `make test` runs it"]
fn a_limit_that_was_built_a_throttled_disk() {
    let disk = made!(Loop::new(256 << 20), "a loop device");
    let limit = format!("{} 300", disk.number());
    let group =
        made!(Group::new("blkio", &[("blkio.throttle.write_iops_device", &limit)]), "a control group");
    let place = Place::new();
    let document = format!(
        "name: limits\ntarget: {{kind: device, path: {}}}\nstages:\n  \
         - load: {{pattern: randwrite, block_size: 4KiB, depth: 8, warm_up: 1s, for: 6s}}\n",
        disk.device
    );
    let mut load = load_with(&place, &document);
    load.args(["--allow-destroy", &disk.device]);
    Told::by(group.holding(&load)).first_is("limit-disk");
}

#[test]
#[ignore = "needs root and network namespaces; `make test` runs it"]
fn a_limit_that_was_built_a_slow_network() {
    let net = made!(Net::new(), "a network namespace");
    // 19 objects a second: so many an unoptimised server takes on a busy machine too.
    let slow = format!("-n {} qdisc add dev eth0 root tbf rate 40mbit burst 256kb latency 50ms", net.tag);
    if !call("tc", &slow) {
        return tidemark_testing::skip("the kernel has no traffic shaper");
    }
    let (place, server) = (Place::new(), Server::of(&format!("address={}.1:0", net.subnet)));
    let load = "workers: 8, containers: 1, operations: [{put: {objects: 1-64, sizes: 256KiB}}]";
    let told = Told::by(net.within(&load_with(&place, &server.document("objects: 1-2, sizes: 1KiB", load))));
    told.first_is("limit-network");
    let titles: Vec<_> =
        told.0.findings("limit-network").iter().map(|one| one["title"].to_string()).collect();
    assert!(titles[0].contains("traffic shaper of network link eth0"), "{titles:?}");
}

#[test]
#[ignore = "loads the machine; `make test` runs it"]
fn a_limit_that_was_built_a_lock_in_the_server() {
    let (place, server) = (Place::new(), Server::of("rate=150"));
    let told = Told::by(server.reads(&place, 8));
    told.names_nothing();
    told.says_something();
}

#[test]
#[ignore = "needs root and control groups; `make test` runs it"]
fn a_limit_that_was_built_a_group_s_memory() {
    let group = made!(Group::new("memory", &[("memory.limit_in_bytes", "67108864")]), "a control group");
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let what = format!("directory={}", disk.path().join("objects").display());
    let (place, server) = (Place::new(), Server::start(group.holding(&Server::command(&what))));
    let load = "workers: 4, containers: 1, operations: [{get: {objects: 1-200}}]";
    let told = Told::by(load_with(&place, &server.document("objects: 1-200, sizes: 1MiB", load)));
    told.first_is("limit-memory");
    drop(server);
}

/// A load that waits for its server, and for nothing else.
fn beside_neighbours() -> Told {
    let (place, server) = (Place::new(), Server::of("delay_ms=50"));
    Told::by(server.reads(&place, 4))
}

#[test]
#[ignore = "needs root, loop devices, control groups and fio; `make test` runs it"]
fn an_innocent_neighbour_fio_on_another_disk() {
    tidemark_testing::needs!(&["fio"]);
    let slow = made!(Loop::new(256 << 20), "a loop device");
    let limit = format!("{} 200", slow.number());
    let group = made!(Group::new("blkio", &[("blkio.throttle.read_iops_device", &limit)]), "a control group");
    let disk = made!(Loop::over(slow), "a loop device");
    let mut fio = Command::new("fio");
    fio.args(["--name=neighbour", "--rw=randread", "--bs=64k", "--direct=1", "--iodepth=16", "--thread"])
        .args(["--ioengine=libaio", "--time_based", "--runtime=120"])
        .arg(format!("--filename={}", disk.device));
    let neighbours = Neighbours(vec![group.holding(&fio).stdout(Stdio::null()).spawn().unwrap()]);
    let told = beside_neighbours();
    drop(neighbours);
    told.names_nothing();
    assert!(!told.rules("busy-disk").is_empty(), "{}", told.0.value["findings"]);
}

#[test]
#[ignore = "loads the machine; `make test` runs it"]
fn an_innocent_neighbour_two_loops_of_low_priority() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let one = |_| Command::new("nice").args(["-n", "19", "sh", "-c", "while :; do :; done"]).spawn().unwrap();
    let neighbours = Neighbours((0..cores).map(one).collect());
    let told = beside_neighbours();
    told.names_nothing();
    assert_eq!(told.rules("busy-processor").len(), 1, "{}", told.0.value["findings"]);
    drop(neighbours);
}

#[test]
#[ignore = "needs root and network namespaces; `make test` runs it"]
fn an_innocent_neighbour_losses_of_others() {
    let net = made!(Net::new(), "a network namespace");
    let lossy = format!("qdisc add dev {}v root tbf rate 4mbit burst 4kb limit 6kb", net.tag);
    if !call("tc", &lossy) {
        return tidemark_testing::skip("the kernel has no traffic shaper");
    }
    let what = format!("sink=1 address={}.2:0", net.subnet);
    let sink = Server::start(net.within(&Server::command(&what)));
    let done = Arc::new(AtomicBool::new(false));
    let senders = (0..16).map(|_| {
        let (address, done) = (sink.endpoint.clone(), Arc::clone(&done));
        std::thread::spawn(move || {
            // Some do not even get through.
            let Ok(mut stream) = TcpStream::connect(address) else { return };
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            while !done.load(Ordering::Relaxed) {
                let _ = stream.write(&[0; 65536]);
            }
        })
    });
    let senders: Vec<_> = senders.collect();
    let told = beside_neighbours();
    told.names_nothing();
    assert!(!told.rules("busy-network").is_empty(), "{}", told.0.value["findings"]);
    done.store(true, Ordering::Relaxed);
    senders.into_iter().for_each(|sender| sender.join().unwrap());
}

#[test]
#[ignore = "loads the machine; `make test` runs it"]
fn an_innocent_neighbour_none() {
    let told = beside_neighbours();
    told.names_nothing();
    told.says_something();
}
