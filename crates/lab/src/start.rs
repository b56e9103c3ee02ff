//! Bringing a cluster up: creating one, or starting what is missing of one that was created before.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, State};
use crate::command::Running;
use crate::config::ceph_conf;
use crate::daemon::{Daemon, Under};
use crate::error::LabError;
use crate::home::{let_pass, make_directory};
use crate::media::{self, Contents};
use crate::record::Credentials;
use crate::throttle::Throttle;
use crate::watch::{PAUSE, Watch};
use crate::{filesystem, gateway, mounts, ports, tier};

/// How long tools that work on files alone may take.
const FILES: Duration = Duration::from_secs(60);
/// How long formatting one OSD may take; it takes 2 s on an idle disk.
const FORMAT: Duration = Duration::from_secs(180);
/// How long the monitor may take to listen.
const MONITOR: Duration = Duration::from_secs(60);
/// How long the cluster may take to serve all of its data.
const SERVING: Duration = Duration::from_secs(180);
/// How long the gateway may take to answer once the cluster serves.
const GATEWAY: Duration = Duration::from_secs(120);
/// How long the metadata server may take to be active, and its client to mount.
const METADATA: Duration = Duration::from_secs(120);
/// How long a cluster that serves is given to become clean and healthy.
const SETTLING: Duration = Duration::from_secs(20);

/// Pools with their placement groups and what they are for. The gateway would create its own on first use;
/// made beforehand, no request has to wait for that, and the pools of data are spread more evenly than 8
/// groups allow.
const POOLS: [(&str, &str, &str); 8] = [
    (".rgw.root", "8", "rgw"),
    ("default.rgw.log", "8", "rgw"),
    ("default.rgw.control", "8", "rgw"),
    ("default.rgw.meta", "8", "rgw"),
    ("default.rgw.buckets.index", "8", "rgw"),
    ("default.rgw.buckets.non-ec", "8", "rgw"),
    ("default.rgw.buckets.data", "32", "rgw"),
    ("rbd", "32", "rbd"),
];

/// Creates the cluster in its empty home and starts it. If that fails, nothing is left running, and no
/// device.
pub(super) fn create(cluster: &Cluster, progress: &mut dyn FnMut(&str)) -> Result<Credentials, LabError> {
    let mut startup = Startup::new(cluster, progress, Contents::Discard);
    let result = startup.create();
    startup.conclude(result)
}

/// Starts what does not run of a cluster created before. If that fails, what it started is stopped again.
pub(super) fn resume(cluster: &Cluster, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let mut startup = Startup::new(cluster, progress, Contents::Keep);
    let result = startup.resume();
    startup.conclude(result)
}

/// Starts a gateway, which must not be running, and waits for its answer.
pub(super) fn start_gateway(
    cluster: &Cluster,
    gateway: Daemon,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let mut startup = Startup::new(cluster, progress, Contents::Keep);
    let result = startup.start(gateway).and_then(|()| startup.await_gateway(gateway));
    startup.conclude(result)
}

/// One start, while it lasts.
struct Startup<'a> {
    cluster: &'a Cluster,
    watch: Watch<'a>,
    /// What OSDs run in, if their devices are limited.
    group: Option<Throttle>,
    /// What becomes of the files in memory if the start fails.
    if_failed: Contents,
}

/// Where one OSD keeps its data.
struct OsdStore {
    id: usize,
    /// The directory of its small files.
    data: PathBuf,
    /// The size of its store, in bytes, if that is to be a file in `data` that grows as it is written to.
    /// Otherwise its devices are there already.
    block_bytes: Option<u64>,
}

impl<'a> Startup<'a> {
    fn new(cluster: &'a Cluster, progress: &'a mut dyn FnMut(&str), if_failed: Contents) -> Self {
        let watch = Watch::new(&cluster.home, &cluster.programs, progress);
        Self { cluster, watch, group: None, if_failed }
    }

    /// Stops what was started if the start failed.
    fn conclude<T>(self, result: Result<T, LabError>) -> Result<T, LabError> {
        let Self { cluster: Cluster { home, programs, .. }, watch, if_failed, .. } = self;
        watch.conclude(result, || {
            mounts::release(home, programs).and_then(|()| media::release(home, programs, if_failed))
        })
    }

    fn create(&mut self) -> Result<Credentials, LabError> {
        self.say("creating a cluster");
        self.cluster.home.lay_out()?;
        self.write_conf()?;
        self.group = media::create(self.cluster)?;
        self.make_keys()?;
        self.make_monitor()?;
        self.start(Daemon::Monitor)?;
        self.await_monitor()?;
        self.start(Daemon::Manager)?;
        self.make_osds()?;
        for id in 0..self.cluster.shape.all_osds() {
            self.start(Daemon::Osd(id))?;
        }
        self.await_serving()?;
        if self.cluster.shape.filesystem {
            self.start(Daemon::Metadata)?;
        }
        self.start_gateways()?;
        self.mount()?;
        self.say("creating the user");
        let credentials = gateway::create_user(self.cluster)?;
        self.await_settled();
        Ok(credentials)
    }

    fn resume(&mut self) -> Result<(), LabError> {
        self.cluster.home.lay_out()?;
        self.write_conf()?;
        self.group = media::attach(self.cluster)?;
        let mut missing = Vec::new();
        for daemon in self.cluster.shape.daemons() {
            match daemon.find(&self.cluster.home)? {
                Some(process) => self.watch.keep(daemon, process)?,
                None => missing.push(daemon),
            }
        }
        // Before anything is started, because it would have to be stopped again.
        missing.iter().try_for_each(|daemon| self.check_port(*daemon))?;
        if missing.contains(&Daemon::Monitor) {
            self.start(Daemon::Monitor)?;
        }
        self.await_monitor()?;
        self.report_dead(&missing)?;
        let later = |daemon: &Daemon| !matches!(daemon, Daemon::Monitor | Daemon::Mount);
        for daemon in missing.iter().copied().filter(later) {
            self.start(daemon)?;
        }
        self.await_serving()?;
        self.await_gateways()?;
        if missing.contains(&Daemon::Mount) {
            self.mount()?;
        }
        self.await_settled();
        Ok(())
    }

    /// Tells the monitor which daemons are certainly dead; after a crash it may not know. Clients would look
    /// for a dead manager, dead OSDs would count as up, and the cluster would wait 16 s for them to give up
    /// their right to answer reads.
    fn report_dead(&self, missing: &[Daemon]) -> Result<(), LabError> {
        if missing.contains(&Daemon::Manager) {
            self.cluster.ceph(&["mgr", "fail", "lab"])?;
        }
        let osd = |daemon: &Daemon| if let Daemon::Osd(id) = daemon { Some(id.to_string()) } else { None };
        let ids: Vec<_> = missing.iter().filter_map(osd).collect();
        if !ids.is_empty() {
            let ids = ids.iter().map(String::as_str);
            let words: Vec<_> = ["osd", "down"].into_iter().chain(ids).chain(["--definitely-dead"]).collect();
            self.cluster.ceph(&words)?;
        }
        Ok(())
    }

    fn say(&mut self, text: &str) {
        self.watch.say(text);
    }

    /// Starts a daemon and watches it from now on.
    fn start(&mut self, daemon: Daemon) -> Result<(), LabError> {
        self.check_port(daemon)?;
        let under = match &self.group {
            Some(group) if matches!(daemon, Daemon::Osd(_)) => Under::Group(group),
            _ => Under::Us,
        };
        self.watch.start(daemon, under)
    }

    fn check_port(&self, daemon: Daemon) -> Result<(), LabError> {
        match daemon {
            Daemon::Monitor => ports::check(daemon, self.cluster.shape.monitor_port),
            // The others take any free port from 6800 to 7300, or none.
            _ => self.port_of(daemon).map_or(Ok(()), |port| ports::check(daemon, port)),
        }
    }

    fn write_conf(&self) -> Result<(), LabError> {
        let Cluster { home, shape, .. } = self.cluster;
        let path = home.ceph_conf();
        fs::write(&path, ceph_conf(home, shape)).map_err(LabError::file("write", path))
    }

    /// Makes the keys of all daemons and of the administrator; the monitor takes them over when it is made.
    fn make_keys(&self) -> Result<(), LabError> {
        let all = "allow *";
        self.make_key("mon.", &[("mon", all)])?;
        self.make_key("client.admin", &[("mon", all), ("osd", all), ("mgr", all), ("mds", all)])?;
        self.make_key("mgr.lab", &[("mon", "allow profile mgr"), ("osd", all), ("mds", all)])?;
        for id in 0..self.cluster.shape.all_osds() {
            let profile = "allow profile osd";
            self.make_key(&Daemon::Osd(id).to_string(), &[("mon", profile), ("mgr", profile), ("osd", all)])?;
        }
        if self.cluster.shape.filesystem {
            let capabilities = [
                ("mon", "allow profile mds"),
                ("osd", "allow rwx"),
                ("mgr", "allow profile mds"),
                ("mds", "allow *"),
            ];
            self.make_key(&Daemon::Metadata.to_string(), &capabilities)?;
        }
        let capabilities = [("mon", "allow rw"), ("osd", "allow rwx"), ("mgr", "allow rw")];
        self.cluster
            .shape
            .gateways()
            .try_for_each(|(gateway, _)| self.make_key(&gateway.to_string(), &capabilities))
    }

    fn make_key(&self, entity: &str, capabilities: &[(&str, &str)]) -> Result<(), LabError> {
        let keyring = self.cluster.home.keyring();
        let path = keyring.to_string_lossy();
        let mut arguments = vec![&*path, "--name", entity, "--gen-key"];
        if !keyring.exists() {
            arguments.push("--create-keyring"); // with mode 0600
        }
        for (daemon, may) in capabilities {
            arguments.extend(["--cap", daemon, may]);
        }
        self.cluster.programs.run("ceph-authtool", &arguments, FILES).map(drop)
    }

    fn make_monitor(&self) -> Result<(), LabError> {
        let Cluster { home, shape, programs } = self.cluster;
        let (conf, monmap, keyring) = (home.ceph_conf(), home.monmap(), home.keyring());
        let (conf, monmap, keyring) =
            (conf.to_string_lossy(), monmap.to_string_lossy(), keyring.to_string_lossy());
        let address = format!("[v2:127.0.0.1:{}]", shape.monitor_port);
        let map = [&*monmap, "--create", "--fsid", &shape.fsid, "--addv", "lab", &address];
        programs.run("monmaptool", &map, FILES)?;
        let make = ["-c", &conf, "-i", "lab", "--mkfs", "--monmap", &monmap, "--keyring", &keyring];
        programs.run("ceph-mon", &make, FILES).map(drop)
    }

    /// Formats all OSDs at once, and creates the pools meanwhile: both mostly wait for the disk.
    fn make_osds(&mut self) -> Result<(), LabError> {
        let Cluster { home, shape, .. } = self.cluster;
        self.say(&match &shape.media {
            None => format!("formatting {} OSDs of {} bytes", shape.osds, shape.osd_bytes),
            Some(media) => format!("formatting {} OSDs in the layout {}", shape.all_osds(), media.layout),
        });
        if shape.layout().has_cache() {
            tier::prepare(self.cluster)?;
        }
        let mut formatting = Vec::new();
        for id in 0..shape.all_osds() {
            let block_bytes = shape.media.is_none().then_some(shape.osd_bytes);
            let store = OsdStore { id, data: home.osd(id), block_bytes };
            formatting.push(self.format_osd(&store)?);
        }
        for (pool, groups, application) in POOLS {
            self.cluster.ceph(&["osd", "pool", "create", pool, groups])?;
            self.cluster.ceph(&["osd", "pool", "application", "enable", pool, application])?;
        }
        if shape.filesystem {
            filesystem::create(self.cluster)?;
        }
        if let Some(media) = shape.media.as_ref().filter(|media| media.layout.has_cache()) {
            tier::set_up(self.cluster, media)?;
        }
        formatting.into_iter().try_for_each(|running| running.finish(FORMAT).map(drop))
    }

    /// Announces one OSD to the cluster and begins to format its store.
    fn format_osd(&self, store: &OsdStore) -> Result<Running, LabError> {
        let Cluster { home, programs, .. } = self.cluster;
        let (id, uuid) = (store.id.to_string(), uuid()?);
        make_directory(&store.data)?;
        self.cluster.ceph(&["osd", "new", &uuid, &id])?;
        let (conf, data) = (home.ceph_conf(), &store.data);
        let (conf, data) = (conf.to_string_lossy(), data.to_string_lossy());
        let size = store.block_bytes.map(|bytes| format!("--bluestore-block-size={bytes}"));
        #[rustfmt::skip]
        let mut format = vec![
            "-c", &*conf, "-i", &id, "--mkfs", "--osd-uuid", &uuid, "--osd-data", &*data,
        ];
        if let Some(size) = &size {
            format.extend(["--bluestore-block-create=true", size]);
        }
        programs.start("ceph-osd", &format)
    }

    /// Mounts the file system, if there is to be one, as soon as its metadata server is active.
    fn mount(&mut self) -> Result<(), LabError> {
        let Cluster { home, shape, programs } = self.cluster;
        if !shape.filesystem {
            return Ok(());
        }
        self.say("waiting for the file system");
        let is_active = || filesystem::is_active(self.cluster);
        self.watch.await_ready(Daemon::Metadata, METADATA, "is not active", is_active)?;
        // What a client that was killed has left behind.
        mounts::release(home, programs)?;
        let_pass(home.dir())?;
        make_directory(&home.mount())?;
        self.start(Daemon::Mount)?;
        let is_mounted = || mounts::is_mounted(&home.mount());
        self.watch.await_ready(Daemon::Mount, METADATA, "does not mount the file system", is_mounted)?;
        let_pass(&home.mount())
    }

    fn await_monitor(&mut self) -> Result<(), LabError> {
        let address = (Ipv4Addr::LOCALHOST, self.cluster.shape.monitor_port).into();
        let listens = || TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
        self.watch.await_ready(Daemon::Monitor, MONITOR, "does not listen", listens)
    }

    /// Starts all gateways; the first one makes the zone that all of them serve.
    fn start_gateways(&mut self) -> Result<(), LabError> {
        for (gateway, _) in self.cluster.shape.gateways() {
            self.start(gateway)?;
            if gateway == Daemon::Gateway(0) {
                self.await_gateway(gateway)?;
            }
        }
        self.await_gateways()
    }

    fn await_gateways(&mut self) -> Result<(), LabError> {
        self.cluster.shape.gateways().try_for_each(|(gateway, _)| self.await_gateway(gateway))
    }

    fn await_gateway(&mut self, gateway: Daemon) -> Result<(), LabError> {
        let Some(port) = self.port_of(gateway) else { return Ok(()) };
        if gateway::answers(port) {
            return Ok(());
        }
        self.say(&format!("waiting for {gateway} to answer"));
        match self.watch.await_ready(gateway, GATEWAY, "does not answer", || gateway::answers(port)) {
            Err(LabError::NotReady { seconds, .. }) => {
                // Seen once, on a cluster that served: a gateway that did not get as far as its answer, nobody knows why.
                self.say(&format!(
                    "{gateway} does not answer after {seconds} s ({}): starting it again",
                    self.state()
                ));
            }
            answered => return answered,
        }
        self.watch.stop(gateway)?;
        self.start(gateway)?;
        self.watch.await_ready(gateway, GATEWAY, "does not answer", || gateway::answers(port)).map_err(
            |error| match error {
                LabError::NotReady { daemon, seconds, lack, log, tail } => {
                    let lack = format!("{lack} at its second start ({})", self.state());
                    LabError::NotReady { daemon, seconds, lack, log, tail }
                }
                other => other,
            },
        )
    }

    /// What Ceph says of itself, or why it says nothing.
    fn state(&self) -> String {
        self.cluster.state().map_or_else(|error| error.to_string(), |state| state.to_string())
    }

    /// The port of a gateway.
    fn port_of(&self, gateway: Daemon) -> Option<u16> {
        self.cluster.shape.gateways().find(|(known, _)| *known == gateway).map(|(_, port)| port)
    }

    /// Waits until every OSD is up and every placement group takes reads and writes.
    fn await_serving(&mut self) -> Result<(), LabError> {
        self.say("waiting for the cluster to serve");
        let deadline = Instant::now() + SERVING;
        loop {
            self.watch.check_all_run()?;
            // A monitor that is busy with the start may fail to answer: that is worth another try.
            if self.cluster.state().as_ref().is_ok_and(State::is_serving) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let (state, logs) = (self.state(), self.cluster.home.logs());
                return Err(LabError::NotServing { seconds: SERVING.as_secs(), state, logs });
            }
            thread::sleep(PAUSE);
        }
    }

    /// Gives the cluster some time to become clean and healthy. If it needs more, as after a long absence of
    /// an OSD, or if it complains about something that does not keep it from serving, that is said and is no
    /// error.
    fn await_settled(&mut self) {
        let deadline = Instant::now() + SETTLING;
        let mut last = self.cluster.state();
        while !last.as_ref().is_ok_and(State::is_settled) {
            if Instant::now() > deadline {
                let state = last.map_or_else(|error| error.to_string(), |state| state.to_string());
                self.say(&format!("the cluster serves, but is not in full health: {state}"));
                return;
            }
            thread::sleep(PAUSE);
            last = self.cluster.state();
        }
    }
}

/// A new UUID, from the kernel.
pub(super) fn uuid() -> Result<String, LabError> {
    let path = "/proc/sys/kernel/random/uuid";
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(LabError::file("read", path))
}
