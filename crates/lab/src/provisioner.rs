//! The lab as a provisioner: a Ceph cluster, database servers, or both for each arm of an evaluation that has a `lab`; and
//! Trino, whose tables lie in the cluster.

mod standing;

use crate::options::MOST_GATEWAYS;
use crate::trino::{LEAST_HEAP, MOST_WORKERS};
use crate::{Database, DatabaseOptions, Databases, Lab, LabError, LabOptions, Layout, Trino, TrinoOptions};
use standing::Standing;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tidemark_keys::kinds::{Bytes, Flag, Text, Whole, Word};
use tidemark_keys::shapes::{Either, Map, Settings};
use tidemark_keys::tree::{Entry, Value};
use tidemark_keys::{AnyKey, Key, Mapping, Table};
use tidemark_measure::tuning::TakesEffect;
use tidemark_plan::plan::Observe;
use tidemark_plan::provisioner::{
    Health, Probe, Progress, ProvisionError, Provisioner, ProvisionerKind, Request, Variables,
};
use tidemark_plan::yaml::environment::Environment;

/// The key under which an arm asks for a lab: a layout, or a mapping with what it is made of.
static LAB: Key<Either<Word<Layout>, Map>> = Key::new(
    "lab",
    "What the lab starts for it: a cluster, database servers, or both; Trino on a cluster",
    Either(LAYOUTS, Map(&MAPPING)),
);
static MAPPING: Mapping = Mapping::new(
    "lab",
    "What the lab starts for an arm",
    &[&LAYOUT, &GATEWAYS, &FILESYSTEM, &COPIES, &POSTGRES, &MARIADB, &TRINO],
);
static LAYOUT: Key<Word<Layout>> =
    Key::new("layout", "Layout of a Ceph cluster", LAYOUTS).otherwise("no cluster");
static GATEWAYS: Key<Whole<u16>> = Key::new(
    "gateways",
    "RADOS gateways of the cluster, which serve the same buckets",
    Whole(1, MOST_GATEWAYS as u16),
)
.default("1");
static FILESYSTEM: Key<Flag> = Key::new(
    "filesystem",
    "Whether the cluster has a file system, on which databases of the arm then lie",
    Flag,
)
.default("false");
static COPIES: Key<Whole<u8>> =
    Key::new("copies", "Copies of each object in the cluster", Whole(1, 2)).default("2");
static POSTGRES: Key<Map> = Key::new("postgres", "PostgreSQL servers", Map(&SERVERS));
static MARIADB: Key<Map> = Key::new("mariadb", "MariaDB servers, instead", Map(&SERVERS));

static TRINO: Key<Map> =
    Key::new("trino", "Trino, with its tables in a bucket of the cluster", Map(&TRINO_CLUSTER));

static TRINO_CLUSTER: Mapping = Mapping::new("lab_trino", "A Trino cluster of the lab", &[&WORKERS, &HEAP]);
static WORKERS: Key<Whole<u16>> = Key::new(
    "workers",
    "Workers besides the coordinator, which works itself if there are none",
    Whole(0, MOST_WORKERS),
)
.default("0");
static HEAP: Key<Bytes> =
    Key::new("heap", "The most that the heap of each process may take", Bytes(LEAST_HEAP)).default("2GiB");

static SERVERS: Mapping = Mapping::new(
    "lab_servers",
    "Database servers of the lab",
    &[&INSTANCES, &ON, &SETTINGS, &POWER_CUT, &RESET],
);
static INSTANCES: Key<Whole<u16>> = Key::new("instances", "How many servers", Whole(1, 64)).default("1");
static ON: Key<Text> = Key::new("on", "Existing directory in which their data are to lie", Text)
    .otherwise("the cluster's file system, or the lab's directory")
    .expanded();
static SETTINGS: Key<Settings> =
    Key::new("settings", "Settings of the servers that differ from their defaults", Settings);
static POWER_CUT: Key<Flag> = Key::new(
    "power_cut",
    "Whether they lie on a disk that loses what was not synced when its power is cut",
    Flag,
)
.default("false");
static RESET: Key<Word<Reset>> = Key::new(
    "reset",
    "Before each run: `restore` the data as they were before the first one, after `set_up`; `aged`: leave them as the run \
     before has left them",
    Word(&[("restore", Reset::Restore), ("aged", Reset::Aged)]),
)
.default("restore");

/// The layouts that arms may have.
const LAYOUTS: Word<Layout> = Word(&[
    ("plain", Layout::Plain),
    ("baseline", Layout::Baseline),
    ("reference-1", Layout::Reference1),
    ("reference-2", Layout::Reference2),
]);

/// What becomes of the data before each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reset {
    #[default]
    Restore,
    Aged,
}

impl Reset {
    fn label(self) -> &'static str {
        match self {
            Reset::Restore => "data restored before each run",
            Reset::Aged => "aged: each run finds what the one before has left",
        }
    }
}

/// The variables that a cluster brings, and stand-ins for their values while it is not up.
pub(crate) const VARIABLES: [(&str, &str); 8] = [
    ("AWS_ACCESS_KEY_ID", "not-known-yet"),
    ("AWS_SECRET_ACCESS_KEY", "not-known-yet"),
    ("TIDEMARK_LAB_S3", "http://127.0.0.1:1"),
    ("TIDEMARK_LAB_SWIFT", "http://127.0.0.1:1/auth/v1.0"),
    ("TIDEMARK_LAB_SWIFT_USER", "tidemark:swift"),
    ("TIDEMARK_LAB_SWIFT_KEY", "not-known-yet"),
    ("TIDEMARK_LAB_CEPH_CONF", "/nonexistent/ceph.conf"),
    ("TIDEMARK_LAB_GATEWAYS", "http://127.0.0.1:1"),
];

/// Those that database servers bring.
pub(crate) const DATABASE_VARIABLES: [(&str, &str); 9] = [
    ("TIDEMARK_LAB_HOST", "127.0.0.1"),
    ("TIDEMARK_LAB_PORT", "1"),
    ("TIDEMARK_LAB_SOCKET", "/nonexistent/socket"),
    ("TIDEMARK_LAB_PORTS", "1"),
    ("TIDEMARK_LAB_SOCKETS", "/nonexistent/socket"),
    ("TIDEMARK_LAB_ENDPOINTS", "127.0.0.1:1"),
    ("TIDEMARK_LAB_USER", "tidemark"),
    ("TIDEMARK_LAB_PASSWORD", "not-known-yet"),
    ("TIDEMARK_LAB_DATABASE", "tidemark"),
];

/// Those that a Trino cluster brings: the last ones are of the server that has its tables, which is the arm's cluster.
pub(crate) const TRINO_VARIABLES: [(&str, &str); 6] = [
    ("TIDEMARK_LAB_TRINO", "http://127.0.0.1:1"),
    ("TIDEMARK_LAB_CATALOG", "hive"),
    ("TIDEMARK_LAB_S3", "http://127.0.0.1:1"),
    ("TIDEMARK_LAB_BUCKET", "trino"),
    ("AWS_ACCESS_KEY_ID", "not-known-yet"),
    ("AWS_SECRET_ACCESS_KEY", "not-known-yet"),
];

/// All of them, each once.
static ALL_VARIABLES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let mut all: Vec<_> = VARIABLES.into_iter().chain(DATABASE_VARIABLES).collect();
    for (name, value) in TRINO_VARIABLES {
        if all.iter().all(|(known, _)| *known != name) {
            all.push((name, value));
        }
    }
    all
});

/// The bucket of a cluster in which Trino's tables lie.
const BUCKET: &str = "trino";

/// What the lab starts for each arm that has a `lab`.
#[derive(Clone, Copy, Debug)]
pub struct Labs;

/// What an arm asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    cluster: Option<Cluster>,
    servers: Option<Servers>,
    trino: Option<Query>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cluster {
    layout: Layout,
    gateways: usize,
    filesystem: bool,
    /// Where it is not the usual.
    copies: Option<usize>,
}

/// A Trino cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Query {
    workers: usize,
    heap_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Servers {
    database: Database,
    instances: usize,
    on: Option<PathBuf>,
    settings: Vec<(String, String)>,
    power_cut: bool,
    reset: Reset,
}

impl Wanted {
    /// What it is, for reports: `baseline, 3 gateways, file system, 1 copy, PostgreSQL`, `baseline, Trino with 2 workers`.
    fn label(&self) -> String {
        let mut parts = Vec::new();
        if let Some(cluster) = &self.cluster {
            parts.push(cluster.layout.name().to_owned());
            parts.extend((cluster.gateways > 1).then(|| format!("{} gateways", cluster.gateways)));
            parts.extend(cluster.filesystem.then(|| "file system".to_owned()));
            parts.extend(
                cluster
                    .copies
                    .map(|copies| if copies == 1 { "1 copy".into() } else { format!("{copies} copies") }),
            );
        }
        if let Some(servers) = &self.servers {
            let name = servers.database.name();
            parts.push(if servers.instances == 1 {
                name.to_owned()
            } else {
                format!("{} {name}", servers.instances)
            });
        }
        parts.extend(self.trino.map(|trino| match trino.workers {
            0 => "Trino".to_owned(),
            1 => "Trino with 1 worker".to_owned(),
            several => format!("Trino with {several} workers"),
        }));
        parts.join(", ")
    }
}

fn wanted(own: &mut Table<'_>) -> Option<Wanted> {
    let layout = own.get(&LAYOUT);
    let (gateways, filesystem, copies) = (own.value(&GATEWAYS), own.value(&FILESYSTEM), own.get(&COPIES));
    let servers = match own.contradiction(&POSTGRES, &MARIADB, "an arm has servers of one kind") {
        true => None,
        false => {
            let postgres = own.table(&POSTGRES).and_then(|table| servers(Database::Postgres, table));
            let mariadb = own.table(&MARIADB).and_then(|table| servers(Database::Mariadb, table));
            postgres.or(mariadb)
        }
    };
    let trino = own.table(&TRINO).map(trino);
    if layout.is_none() {
        own.meaningless(&[&TRINO], "its tables lie in a cluster, and there is none without a `layout`");
        own.meaningless(&[&GATEWAYS, &FILESYSTEM, &COPIES], "there is no cluster without a `layout`");
        let others = [own.has(&POSTGRES), own.has(&MARIADB), own.has(&TRINO)];
        if !others.contains(&true) && !own.has(&LAYOUT) {
            own.missing(
                &LAYOUT,
                "write one of plain, baseline, reference-1, reference-2, or `postgres` or `mariadb`",
            );
        }
    }
    let cluster = layout.map(|layout| Cluster {
        layout,
        gateways: gateways.into(),
        filesystem,
        copies: copies.map(usize::from),
    });
    let trino = trino.filter(|_| cluster.is_some());
    (cluster.is_some() || servers.is_some()).then_some(Wanted { cluster, servers, trino })
}

fn trino(table: Table<'_>) -> Query {
    let mut own = table.of(&TRINO_CLUSTER);
    let query = Query { workers: own.value(&WORKERS).into(), heap_bytes: own.value(&HEAP) };
    own.finish();
    query
}

fn servers(database: Database, table: Table<'_>) -> Option<Servers> {
    let mut own = table.of(&SERVERS);
    let instances = own.value(&INSTANCES);
    let on = own.get(&ON).map(PathBuf::from);
    let settings = own.settings(&SETTINGS);
    let (power_cut, reset) = (own.value(&POWER_CUT), own.value(&RESET));
    own.finish();
    Some(Servers { database, instances: instances.into(), on, settings, power_cut, reset })
}

impl ProvisionerKind for Labs {
    fn key(&self) -> &'static AnyKey {
        &LAB
    }

    fn read<'a>(&self, arm: &Table<'a>, entry: &'a Entry, _: &Environment<'_>) -> Option<Request> {
        let wanted = match entry.node.value {
            Value::Map(_) => {
                let mut own = arm.below(&LAB, entry).of(&MAPPING);
                let wanted = wanted(&mut own);
                own.finish();
                wanted
            }
            _ => {
                let layout = arm.one(&LAB, &LAYOUTS, &entry.node)?;
                let cluster = Some(Cluster { layout, gateways: 1, filesystem: false, copies: None });
                Some(Wanted { cluster, servers: None, trino: None })
            }
        }?;
        Some(Request::new(LAB.name, wanted.label(), wanted))
    }

    fn variables(&self) -> &[(&'static str, &'static str)] {
        &ALL_VARIABLES
    }

    fn stand_in(&self, request: &Request, name: &str) -> Option<String> {
        let (_, one) = ALL_VARIABLES.iter().find(|(known, _)| *known == name)?;
        let wanted = request.get::<Wanted>();
        let instances =
            wanted.and_then(|wanted| wanted.servers.as_ref()).map_or(1, |servers| servers.instances);
        let gateways = wanted.and_then(|wanted| wanted.cluster).map_or(1, |cluster| cluster.gateways);
        // What is of all servers has as many parts: a load may be for some of them.
        let all = |count: usize, each: &dyn Fn(usize) -> String| {
            (1..=count).map(each).collect::<Vec<_>>().join(",")
        };
        Some(match name {
            "TIDEMARK_LAB_PORTS" => all(instances, &|number| number.to_string()),
            "TIDEMARK_LAB_SOCKETS" => all(instances, &|number| format!("{one}-{number}")),
            "TIDEMARK_LAB_ENDPOINTS" => all(instances, &|number| format!("127.0.0.1:{number}")),
            "TIDEMARK_LAB_GATEWAYS" => all(gateways, &|number| format!("http://127.0.0.1:{number}")),
            _ => (*one).to_owned(),
        })
    }

    fn provisioner(
        &self,
        request: &Request,
        directory: &Path,
    ) -> Result<Box<dyn Provisioner>, ProvisionError> {
        let asked = request.get::<Wanted>().cloned();
        let wanted = asked.ok_or_else(|| ProvisionError::Failed("it asks for nothing".into()))?;
        // The names of sockets must fit: a cluster alone has no directory of its own below.
        let cluster_directory = match (&wanted.servers, wanted.trino) {
            (None, None) => directory.to_owned(),
            _ => directory.join("ceph"),
        };
        Ok(Box::new(ArmLab {
            cluster_directory,
            servers_directory: directory.join("db"),
            trino_directory: directory.join("trino"),
            wanted,
            cluster: None,
            servers: None,
            trino: None,
            is_saved: false,
        }))
    }

    fn takes_effect(&self, path: &[&str]) -> TakesEffect {
        match path {
            // The servers are stopped and started; their data stay.
            [servers, settings, _]
                if [POSTGRES.name, MARIADB.name].contains(servers) && *settings == SETTINGS.name =>
            {
                TakesEffect::Restart
            }
            _ => TakesEffect::Rebuild,
        }
    }

    fn standing(
        &self,
        request: &Request,
        directory: Option<&Path>,
    ) -> Result<Box<dyn Provisioner>, ProvisionError> {
        let asked = request.get::<Wanted>().cloned();
        let wanted = asked.ok_or_else(|| ProvisionError::Failed("it asks for nothing".into()))?;
        Ok(Box::new(Standing::open(wanted, directory)?))
    }
}

/// The lab of one arm.
struct ArmLab {
    cluster_directory: PathBuf,
    servers_directory: PathBuf,
    trino_directory: PathBuf,
    wanted: Wanted,
    /// The cluster while it is up.
    cluster: Option<Lab>,
    /// The servers while they are up.
    servers: Option<Databases>,
    /// Trino while it is up.
    trino: Option<Trino>,
    /// Whether there is a copy of their data of this start.
    is_saved: bool,
}

impl ArmLab {
    fn cluster_up(&mut self, wanted: Cluster, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let options = LabOptions {
            layout: Some(wanted.layout),
            gateways: Some(wanted.gateways),
            filesystem: wanted.filesystem,
            copies: wanted.copies,
            ..LabOptions::new(self.cluster_directory.clone())
        };
        // A cluster that an earlier start has left behind is used if it is as wanted.
        if let Ok(lab) = Lab::open(&self.cluster_directory)
            && !lab.is_as(&options)
        {
            remove(&self.cluster_directory, progress)?;
        }
        self.cluster = Some(crate::up(&options, &mut |text| progress.line(text)).map_err(not_up)?);
        Ok(())
    }

    fn servers_up(&mut self, wanted: &Servers, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        // Servers that an earlier start has left behind have data of that start.
        remove(&self.servers_directory, progress)?;
        let mounted = self.cluster.as_ref().and_then(Lab::filesystem);
        let options = DatabaseOptions {
            instances: Some(wanted.instances),
            on: wanted.on.clone().or(mounted),
            settings: wanted.settings.clone(),
            power_cut: wanted.power_cut,
            ..DatabaseOptions::new(wanted.database, self.servers_directory.clone())
        };
        self.servers = Some(Databases::up(&options, &mut |text| progress.line(text)).map_err(not_up)?);
        self.is_saved = false;
        Ok(())
    }

    fn trino_up(&mut self, wanted: Query, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let Some(storage) = self.cluster.as_ref().map(|lab| lab.storage(BUCKET)) else { return Ok(()) };
        // One that an earlier start has left behind may be of another cluster.
        remove(&self.trino_directory, progress)?;
        let options = TrinoOptions {
            workers: Some(wanted.workers),
            heap_bytes: Some(wanted.heap_bytes),
            ..TrinoOptions::new(self.trino_directory.clone(), storage)
        };
        self.trino = Some(Trino::up(&options, &mut |text| progress.line(text)).map_err(not_up)?);
        Ok(())
    }

    /// Brings up what comes after the cluster.
    fn rest_up(&mut self, wanted: &Wanted, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        if let Some(servers) = &wanted.servers {
            self.servers_up(servers, progress)?;
        }
        wanted.trino.map_or(Ok(()), |trino| self.trino_up(trino, progress))
    }
}

impl Provisioner for ArmLab {
    fn up(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let wanted = self.wanted.clone();
        if let Some(cluster) = wanted.cluster {
            self.cluster_up(cluster, progress)?;
        }
        let up = self.rest_up(&wanted, progress);
        if up.is_err() && self.cluster.is_some() {
            (self.trino, self.servers, self.cluster) = (None, None, None);
            for directory in [&self.trino_directory, &self.servers_directory, &self.cluster_directory] {
                // What failed first is what is reported.
                let _ = remove(directory, progress);
            }
        }
        up
    }

    fn variables(&self) -> Variables {
        let cluster = self.cluster.iter().flat_map(Lab::variables);
        let servers = self.servers.iter().flat_map(Databases::variables);
        let trino = self.trino.iter().flat_map(Trino::variables);
        cluster.chain(servers).chain(trino).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn labels(&self) -> Vec<(String, String)> {
        let mut labels = self.cluster.as_ref().map(Lab::labels).unwrap_or_default();
        // Both have data; those of the servers lie on those of the cluster.
        let servers = self.servers.as_ref().map(Databases::labels).unwrap_or_default();
        let renamed = |(name, value): (String, String)| {
            (if name == "data" { "database on".to_owned() } else { name }, value)
        };
        labels.extend(servers.into_iter().map(renamed));
        let reset = self.wanted.servers.as_ref().map(|servers| servers.reset.label());
        labels.extend(reset.map(|reset| ("reset".to_owned(), reset.to_owned())));
        labels.extend(self.trino.iter().flat_map(Trino::labels));
        labels
    }

    fn observe(&self) -> Observe {
        let mut observe = Observe::default();
        if let Some(lab) = &self.cluster {
            // Other labs may be up beside it: the daemons of this one have its configuration on their command lines.
            let conf = lab.ceph_conf().display().to_string();
            observe.processes.extend(lab.process_names().into_iter().map(|name| format!("{name} {conf}")));
            observe.ceph_sockets.push(lab.admin_sockets());
        }
        let servers = self.servers.iter().flat_map(Databases::process_names);
        observe.processes.extend(servers.map(str::to_owned));
        observe.processes.extend(self.trino.iter().flat_map(Trino::processes));
        observe
    }

    fn change_to(&mut self, request: &Request, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let Some(wanted) = request.get::<Wanted>() else { return Ok(()) };
        if let (Some(servers), Some(asked)) = (&mut self.servers, &wanted.servers) {
            let set = servers.set(&asked.settings, &mut |text| progress.line(text));
            set.map_err(|error| {
                ProvisionError::Failed(format!("the servers do not take the settings: {error}"))
            })?;
        }
        self.wanted = wanted.clone();
        Ok(())
    }

    fn probe(&self, _variables: &Variables) -> Option<Probe> {
        Some(probe(self.cluster.clone(), self.servers.clone()))
    }

    fn reset(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let (Some(servers), Some(wanted)) = (&self.servers, &self.wanted.servers) else { return Ok(()) };
        if wanted.reset == Reset::Aged {
            return Ok(());
        }
        let mut say = |text: &str| progress.line(text);
        let reset = match self.is_saved {
            true => servers.restore(&mut say).map(drop),
            false => servers.save(&mut say),
        };
        reset.map_err(|error| ProvisionError::Failed(format!("the servers could not be reset: {error}")))?;
        self.is_saved = true;
        Ok(())
    }

    fn down(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let mut remove_if = |is_there: bool, directory: &Path| match is_there {
            true => remove(directory, progress),
            false => Ok(()),
        };
        let trino = remove_if(self.trino.take().is_some(), &self.trino_directory);
        let servers = remove_if(self.servers.take().is_some(), &self.servers_directory);
        let cluster = remove_if(self.cluster.take().is_some(), &self.cluster_directory);
        if let Some(directory) = self.servers_directory.parent() {
            // If it is empty.
            let _ = std::fs::remove_dir(directory);
        }
        trino.and(servers).and(cluster)
    }
}

/// Asks a cluster and servers, as far as they are there, whether they are well.
fn probe(cluster: Option<Lab>, servers: Option<Databases>) -> Probe {
    Box::new(move || {
        let ill = [cluster.as_ref().and_then(Lab::ill), servers.as_ref().and_then(Databases::ill)];
        let said = |(why, at_risk)| if at_risk { Health::AtRisk(why) } else { Health::Ill(why) };
        ill.into_iter().flatten().map(said).max().unwrap_or(Health::Well)
    })
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn not_up(error: LabError) -> ProvisionError {
    ProvisionError::Failed(format!("the lab could not be brought up: {error}"))
}

/// Stops what is in a directory of the lab's, if anything is, and removes all that it wrote.
fn remove(directory: &Path, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
    if !directory.exists() {
        return Ok(());
    }
    crate::down(directory, true, &mut |text| progress.line(text))
        .map_err(|error| ProvisionError::Failed(format!("the lab could not be taken down: {error}")))
}

#[cfg(test)]
mod tests;
