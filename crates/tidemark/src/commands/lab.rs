//! `tidemark lab up | status | env | cut | down | image | queries`.

use crate::cli::{AnyLab, Lab, LabTrino, LabUp, WhichLab};
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::Terminal;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use tidemark_control::event::StopRequest;
use tidemark_lab::{
    self as lab, Bucket, DaemonStatus, Database, DatabaseOptions, Databases, DatabasesStatus, Keys,
    Kubernetes, KubernetesOptions, KubernetesStatus, LabError, LabOptions, LabStatus, Storage, System, Trino,
    TrinoOptions, TrinoStatus,
};

/// Starts or stops the lab, or shows its state.
pub(crate) fn lab(command: &Lab, terminal: Terminal) -> Result<Exit, Stop> {
    let mut progress = |text: &str| terminal.remark(text);
    match command {
        Lab::Up(up) => {
            refuse_others(up)?;
            match up.system.database() {
                Some(database) => {
                    let options = database_options(up, database)?;
                    let databases = Databases::up(&options, &mut progress).map_err(Stop::not_ready)?;
                    show_databases(&Databases::status(databases.dir()).map_err(Stop::not_ready)?, terminal);
                }
                None if up.system == System::Trino => {
                    let trino = Trino::up(&trino_options(up)?, &mut progress).map_err(Stop::not_ready)?;
                    show_trino(&trino.status().map_err(Stop::not_ready)?, terminal);
                }
                None if up.system == System::Kubernetes => {
                    let kubernetes = Kubernetes::up(&kubernetes_options(up)?, &mut progress);
                    let kubernetes = kubernetes.map_err(Stop::not_ready)?;
                    show_kubernetes(&kubernetes.status().map_err(Stop::not_ready)?, terminal);
                }
                None => {
                    let lab = lab::up(&options(up)?, &mut progress).map_err(Stop::not_ready)?;
                    show(&lab.status().map_err(Stop::not_ready)?, lab.filesystem().as_deref(), terminal);
                }
            }
            Ok(Exit::Done)
        }
        Lab::Status { which, json } => status_of(which, *json, terminal),
        Lab::Env { which } => {
            let directory = directory(which)?;
            for (name, value) in variables(&directory).map_err(Stop::not_ready)? {
                // Addresses and keys of a server of the user's may have anything in them.
                terminal.print(&format!("export {name}='{}'", value.replace('\'', "'\\''")));
            }
            Ok(Exit::Done)
        }
        Lab::Cut { which } => {
            let databases = Databases::open(&directory(which)?).map_err(Stop::not_ready)?;
            databases.cut_power(&mut progress).map_err(Stop::not_ready)?;
            terminal
                .remark(&format!("the power was cut; `tidemark lab up {}` starts the servers", which.system));
            Ok(Exit::Done)
        }
        Lab::Down { which, keep } => {
            lab::down(&directory(which)?, !keep, &mut progress).map_err(Stop::not_ready)?;
            Ok(Exit::Done)
        }
        Lab::Image { archive, dir } => {
            let directory = usual_directory(System::Kubernetes, dir.as_ref())?;
            let kubernetes = Kubernetes::open(&directory).map_err(Stop::not_ready)?;
            terminal.print(kubernetes.import(archive).map_err(Stop::not_ready)?.trim_end());
            Ok(Exit::Done)
        }
        Lab::Queries { dir } => {
            let dir = dir.clone().map_or_else(|| lab::beside("queries").map_err(Stop::not_ready), Ok)?;
            let files = lab::queries::write(&dir, &mut progress).map_err(Stop::not_ready)?;
            terminal.remark(&format!(
                "{files} files; in a load: `tables: tpcds, query_files: {}`",
                dir.display()
            ));
            terminal.print(&dir.display().to_string());
            Ok(Exit::Done)
        }
        Lab::Disk { dir } => {
            let signals = Signals::listen();
            let is_over = || signals.stop_request() != StopRequest::None;
            lab::serve_disk(dir, &is_over).map_err(Stop::not_ready)?;
            Ok(Exit::Done)
        }
    }
}

/// The state of the lab that is meant; of all that there are where none is named, one after the other.
fn status_of(which: &AnyLab, json: bool, terminal: Terminal) -> Result<Exit, Stop> {
    if which.system.is_some() || which.dir.is_some() {
        let system = which.system.unwrap_or(System::Ceph);
        return status(&usual_directory(system, which.dir.as_ref())?, json, terminal);
    }
    let usual = System::ALL.into_iter().map(|system| usual_directory(system, None));
    let usual = usual.collect::<Result<Vec<_>, _>>()?;
    let there: Vec<_> = usual.iter().filter(|directory| lab::system(directory).is_ok()).collect();
    let mut exit = Exit::Done;
    for (place, directory) in there.iter().enumerate() {
        if place > 0 && !json {
            terminal.print("");
        }
        if !matches!(status(directory, json, terminal)?, Exit::Done) {
            exit = Exit::NotReady;
        }
    }
    match there.is_empty() {
        // It says that there is none, and where it looked.
        true => status(&usual[0], json, terminal),
        false => Ok(exit),
    }
}

fn status(directory: &Path, json: bool, terminal: Terminal) -> Result<Exit, Stop> {
    let system = lab::system(directory).map_err(Stop::not_ready)?;
    let is_up = match system {
        System::Postgres | System::Mariadb => {
            let status = Databases::status(directory).map_err(Stop::not_ready)?;
            if json {
                print_json(&status, directory, terminal);
            } else {
                show_databases(&status, terminal);
            }
            status.is_up()
        }
        System::Trino => {
            let trino = Trino::open(directory).map_err(Stop::not_ready)?;
            let status = trino.status().map_err(Stop::not_ready)?;
            if json {
                print_json(&status, directory, terminal);
            } else {
                show_trino(&status, terminal);
            }
            status.is_up()
        }
        System::Kubernetes => {
            let kubernetes = Kubernetes::open(directory).map_err(Stop::not_ready)?;
            let status = kubernetes.status().map_err(Stop::not_ready)?;
            if json {
                print_json(&status, directory, terminal);
            } else {
                show_kubernetes(&status, terminal);
            }
            status.is_up()
        }
        System::Ceph => {
            let status = lab::status(directory).map_err(Stop::not_ready)?;
            let open = lab::Lab::open(directory).ok();
            if json {
                let credentials = open.map(|lab| lab.credentials().clone());
                terminal.print(&json!({"status": status, "credentials": credentials}).to_string());
            } else {
                show(&status, open.and_then(|lab| lab.filesystem()).as_deref(), terminal);
            }
            status.is_up()
        }
    };
    Ok(if is_up { Exit::Done } else { Exit::NotReady })
}

/// A status and the lab's variables, if it has been created.
fn print_json(status: &impl Serialize, directory: &Path, terminal: Terminal) {
    let variables = variables(directory).ok().map(|variables| {
        let entries = variables.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
        entries.collect::<serde_json::Map<_, _>>()
    });
    terminal.print(&json!({"status": status, "variables": variables}).to_string());
}

/// The variables of the lab in a directory.
fn variables(directory: &Path) -> Result<Vec<(&'static str, String)>, LabError> {
    Ok(match lab::system(directory)? {
        System::Postgres | System::Mariadb => Databases::open(directory)?.variables(),
        System::Trino => Trino::open(directory)?.variables(),
        System::Kubernetes => Kubernetes::open(directory)?.variables(),
        System::Ceph => lab::Lab::open(directory)?.variables(),
    })
}

/// The cluster of the command line.
fn options(up: &LabUp) -> Result<LabOptions, Stop> {
    Ok(LabOptions {
        gateways: up.gateways,
        gateway_port: up.port,
        layout: up.layout,
        slow_iops: up.slow_iops,
        slow_bandwidth: up.slow_bandwidth,
        metadata_bytes: up.metadata_size,
        cache_bytes: up.cache_size,
        filesystem: up.filesystem,
        copies: up.copies,
        ..LabOptions::new(usual_directory(up.system, up.dir.as_ref())?)
    })
}

/// The database servers of the command line.
fn database_options(up: &LabUp, database: Database) -> Result<DatabaseOptions, Stop> {
    Ok(DatabaseOptions {
        instances: up.instances,
        on: up.on.clone(),
        port: up.port,
        settings: up.set.clone(),
        power_cut: up.power_cut,
        ..DatabaseOptions::new(database, usual_directory(up.system, up.dir.as_ref())?)
    })
}

/// Trino of the command line.
fn trino_options(up: &LabUp) -> Result<TrinoOptions, Stop> {
    let directory = usual_directory(up.system, up.dir.as_ref())?;
    Ok(TrinoOptions {
        workers: up.trino.workers,
        port: up.port,
        heap_bytes: up.trino.heap,
        jdk: up.trino.jdk.clone(),
        ..TrinoOptions::new(directory, storage(&up.trino)?)
    })
}

/// Kubernetes of the command line.
fn kubernetes_options(up: &LabUp) -> Result<KubernetesOptions, Stop> {
    let directory = usual_directory(up.system, up.dir.as_ref())?;
    let nodes = up.nodes.map_or(0, usize::from);
    Ok(KubernetesOptions {
        port: up.port,
        node: up.node,
        nodes,
        csi: up.csi,
        ..KubernetesOptions::new(directory)
    })
}

/// Where Trino's tables are to lie: on the server named, or on the lab's cluster.
fn storage(asked: &LabTrino) -> Result<Storage, Stop> {
    let bucket = asked.bucket.clone().unwrap_or_else(|| "trino".to_owned());
    let Some(s3) = &asked.s3 else {
        let directory = usual_directory(System::Ceph, None)?;
        let lab = lab::Lab::open(&directory).map_err(|error| match error {
            LabError::NoLab { dir } => Stop::not_ready(format!(
                "there is no Ceph cluster for Trino's tables in {}; start one with `tidemark lab up ceph`, or name an S3 server \
                 with --s3",
                dir.display()
            )),
            other => Stop::not_ready(other),
        })?;
        return Ok(lab.storage(bucket));
    };
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let key = |name: &str| variable(name).ok_or_else(|| Stop::usage(format!("--s3 needs keys: set {name}")));
    let region = variable("AWS_REGION").unwrap_or_else(|| "us-east-1".to_owned());
    Ok(Storage {
        bucket: Bucket { s3: s3.clone(), region, bucket },
        keys: Keys { access_key: key("AWS_ACCESS_KEY_ID")?, secret_key: key("AWS_SECRET_ACCESS_KEY")? },
    })
}

/// Refuses options of other systems.
fn refuse_others(up: &LabUp) -> Result<(), Stop> {
    const CEPH: &[System] = &[System::Ceph];
    const SERVERS: &[System] = &[System::Postgres, System::Mariadb];
    const TRINO: &[System] = &[System::Trino];
    const KUBERNETES: &[System] = &[System::Kubernetes];
    let options = [
        (CEPH, "--gateways", up.gateways.is_some()),
        (CEPH, "--layout", up.layout.is_some()),
        (CEPH, "--slow-iops", up.slow_iops.is_some()),
        (CEPH, "--slow-bandwidth", up.slow_bandwidth.is_some()),
        (CEPH, "--metadata-size", up.metadata_size.is_some()),
        (CEPH, "--cache-size", up.cache_size.is_some()),
        (CEPH, "--filesystem", up.filesystem),
        (CEPH, "--copies", up.copies.is_some()),
        (SERVERS, "--instances", up.instances.is_some()),
        (SERVERS, "--on", up.on.is_some()),
        (SERVERS, "--set", !up.set.is_empty()),
        (SERVERS, "--power-cut", up.power_cut),
        (KUBERNETES, "--node", up.node),
        (KUBERNETES, "--nodes", up.nodes.is_some()),
        (KUBERNETES, "--csi", up.csi),
        (TRINO, "--workers", up.trino.workers.is_some()),
        (TRINO, "--heap", up.trino.heap.is_some()),
        (TRINO, "--jdk", up.trino.jdk.is_some()),
        (TRINO, "--s3", up.trino.s3.is_some()),
        (TRINO, "--bucket", up.trino.bucket.is_some()),
    ];
    let (asked, is_foreign) = (up.system, |systems: &[System]| !systems.contains(&up.system));
    match options.into_iter().find(|(systems, _, is_given)| *is_given && is_foreign(systems)) {
        Some((systems, option, _)) => {
            let names = systems.iter().map(|system| system.name()).collect::<Vec<_>>().join(" or ");
            Err(Stop::usage(format!("{option} has no meaning for {asked}; it is an option of {names}")))
        }
        None => Ok(()),
    }
}

fn directory(which: &WhichLab) -> Result<PathBuf, Stop> {
    usual_directory(which.system, which.dir.as_ref())
}

/// The directory given, or the usual one of a system: databases are beside the cluster.
fn usual_directory(system: System, given: Option<&PathBuf>) -> Result<PathBuf, Stop> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    lab::usual_dir(system).map_err(Stop::not_ready)
}

fn show_daemons(daemons: &[DaemonStatus], labels: &[(String, String)], terminal: Terminal) {
    for daemon in daemons {
        let pid = daemon.pid.map_or(String::new(), |pid| format!("process {pid}"));
        let state = serde_json::to_value(daemon.state).unwrap_or_default();
        let state = state.as_str().unwrap_or_default().to_owned();
        line(&daemon.daemon.to_string(), &format!("{state:8} {pid}"), terminal);
    }
    for (name, value) in labels {
        line(name, value, terminal);
    }
}

/// A line of a lab's state: what it is about, and what there is to say. The longest name is that of Kubernetes' controller manager.
fn line(name: &str, value: &str, terminal: Terminal) {
    terminal.print(&format!("{name:23} {value}"));
}

fn show_databases(status: &DatabasesStatus, terminal: Terminal) {
    show_daemons(&status.daemons, &status.labels, terminal);
    line("answering", &format!("{} of {}", status.answering, status.endpoints.len()), terminal);
    line("endpoints", &status.endpoints.join(", "), terminal);
    line("directory", &status.data.display().to_string(), terminal);
    line("keys", &status.credentials_file.display().to_string(), terminal);
}

fn show_trino(status: &TrinoStatus, terminal: Terminal) {
    show_daemons(&status.daemons, &status.labels, terminal);
    match &status.active {
        Some(active) => line("active", &active.join(", "), terminal),
        None => line("active", "unknown: the coordinator does not respond", terminal),
    }
    line("endpoint", &status.endpoint, terminal);
    line("catalog", status.catalog, terminal);
    line("keys", &status.credentials_file.display().to_string(), terminal);
}

fn show_kubernetes(status: &KubernetesStatus, terminal: Terminal) {
    show_daemons(&status.daemons, &status.labels, terminal);
    let words = |is_ready| if is_ready { "ready" } else { "not ready" };
    line("API server", words(status.is_ready), terminal);
    if let Some(is_ready) = status.node_is_ready {
        line("node", words(is_ready), terminal);
    }
    line("endpoint", &status.endpoint, terminal);
    line("kubeconfig", &status.kubeconfig.display().to_string(), terminal);
}

fn show(status: &LabStatus, filesystem: Option<&Path>, terminal: Terminal) {
    show_daemons(&status.daemons, &status.labels, terminal);
    match &status.health {
        Some(health) => {
            line("health", &format!("{} {}", health.status, health.problems.join("; ")), terminal);
        }
        None => line("health", "unknown: the monitor does not respond", terminal),
    }
    for gateway in &status.gateways {
        let silent = if gateway.answers { "" } else { ": no answer" };
        line("S3", &format!("{}{silent}", gateway.endpoint), terminal);
    }
    line("Swift", &status.swift_auth_url, terminal);
    if let Some(directory) = filesystem {
        line("files", &directory.display().to_string(), terminal);
    }
    line("keys", &status.credentials_file.display().to_string(), terminal);
}
