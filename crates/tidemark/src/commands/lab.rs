//! `tidemark lab up | status | env | cut | down | queries`.

use crate::cli::{AnyLab, Lab, LabUp, WhichLab};
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::Terminal;
use serde_json::json;
use std::path::{Path, PathBuf};
use tidemark_control::event::StopRequest;
use tidemark_lab::{
    self as lab, DaemonStatus, DatabaseOptions, Databases, DatabasesStatus, LabOptions, LabStatus, System,
};

/// Starts or stops the lab, or shows its state.
pub(crate) fn lab(command: &Lab, terminal: Terminal) -> Result<Exit, Stop> {
    let mut progress = |text: &str| terminal.remark(text);
    match command {
        Lab::Up(up) => match up.system.database() {
            Some(_) => {
                let options = database_options(up)?;
                let databases = Databases::up(&options, &mut progress).map_err(Stop::not_ready)?;
                show_databases(&Databases::status(databases.dir()).map_err(Stop::not_ready)?, terminal);
                Ok(Exit::Done)
            }
            None => {
                let lab = lab::up(&options(up)?, &mut progress).map_err(Stop::not_ready)?;
                show(&lab.status().map_err(Stop::not_ready)?, lab.filesystem().as_deref(), terminal);
                Ok(Exit::Done)
            }
        },
        Lab::Status { which, json } => status_of(which, *json, terminal),
        Lab::Env { which } => {
            let directory = directory(which)?;
            let variables = match lab::system(&directory).map_err(Stop::not_ready)?.database() {
                Some(_) => Databases::open(&directory).map(|databases| databases.variables()),
                None => lab::Lab::open(&directory).map(|lab| lab.variables()),
            };
            // Keys are letters and digits, addresses have no quotes: plain single quotes are enough.
            for (name, value) in variables.map_err(Stop::not_ready)? {
                terminal.print(&format!("export {name}='{value}'"));
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
        Lab::Queries { dir } => {
            let dir = dir.clone().map_or_else(|| beside_the_lab("queries"), Ok)?;
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
    let is_up = match lab::system(directory).map_err(Stop::not_ready)?.database() {
        Some(_) => {
            let status = Databases::status(directory).map_err(Stop::not_ready)?;
            if json {
                let variables = Databases::open(directory).ok().map(|databases| databases.variables());
                let variables: Option<serde_json::Map<_, _>> = variables.map(|variables| {
                    variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
                });
                terminal.print(&json!({"status": status, "variables": variables}).to_string());
            } else {
                show_databases(&status, terminal);
            }
            status.is_up()
        }
        None => {
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

/// The cluster of the command line.
fn options(up: &LabUp) -> Result<LabOptions, Stop> {
    let of_servers = [
        ("--instances", up.instances.is_some()),
        ("--on", up.on.is_some()),
        ("--set", !up.set.is_empty()),
        ("--power-cut", up.power_cut),
    ];
    refuse(up.system, &of_servers, "postgres or mariadb")?;
    Ok(LabOptions {
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
fn database_options(up: &LabUp) -> Result<DatabaseOptions, Stop> {
    let of_ceph = [
        ("--layout", up.layout.is_some()),
        ("--slow-iops", up.slow_iops.is_some()),
        ("--slow-bandwidth", up.slow_bandwidth.is_some()),
        ("--metadata-size", up.metadata_size.is_some()),
        ("--cache-size", up.cache_size.is_some()),
        ("--filesystem", up.filesystem),
        ("--copies", up.copies.is_some()),
    ];
    refuse(up.system, &of_ceph, "ceph")?;
    let database = up.system.database().ok_or_else(|| Stop::usage("no such database"))?;
    Ok(DatabaseOptions {
        instances: up.instances,
        on: up.on.clone(),
        port: up.port,
        settings: up.set.clone(),
        power_cut: up.power_cut,
        ..DatabaseOptions::new(database, usual_directory(up.system, up.dir.as_ref())?)
    })
}

/// Refuses options of another system.
fn refuse(system: System, options: &[(&str, bool)], other: &str) -> Result<(), Stop> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(Stop::usage(format!("{option} has no meaning for {system}; it is an option of {other}")))
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
    match system {
        System::Ceph => lab::default_dir().map_err(Stop::not_ready),
        other => beside_the_lab(&other.to_string()),
    }
}

/// The directory beside the usual one that has this in its name.
fn beside_the_lab(what: &str) -> Result<PathBuf, Stop> {
    let usual = lab::default_dir().map_err(Stop::not_ready)?;
    let mut name = usual.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{what}"));
    Ok(usual.with_file_name(name))
}

fn show_daemons(daemons: &[DaemonStatus], labels: &[(String, String)], terminal: Terminal) {
    for daemon in daemons {
        let pid = daemon.pid.map_or(String::new(), |pid| format!("process {pid}"));
        let state = serde_json::to_value(daemon.state).unwrap_or_default();
        let state = state.as_str().unwrap_or_default().to_owned();
        terminal.print(&format!("{:12} {state:8} {pid}", daemon.daemon.to_string()));
    }
    for (name, value) in labels {
        terminal.print(&format!("{name:12} {value}"));
    }
}

fn show_databases(status: &DatabasesStatus, terminal: Terminal) {
    show_daemons(&status.daemons, &status.labels, terminal);
    terminal.print(&format!("answering    {} of {}", status.answering, status.endpoints.len()));
    terminal.print(&format!("endpoints    {}", status.endpoints.join(", ")));
    terminal.print(&format!("directory    {}", status.data.display()));
    terminal.print(&format!("keys         {}", status.credentials_file.display()));
}

fn show(status: &LabStatus, filesystem: Option<&Path>, terminal: Terminal) {
    show_daemons(&status.daemons, &status.labels, terminal);
    match &status.health {
        Some(health) => {
            terminal.print(&format!("health       {} {}", health.status, health.problems.join("; ")));
        }
        None => terminal.print("health       unknown: the monitor does not respond"),
    }
    terminal.print(&format!("S3           {}", status.endpoint));
    terminal.print(&format!("Swift        {}", status.swift_auth_url));
    if let Some(directory) = filesystem {
        terminal.print(&format!("files        {}", directory.display()));
    }
    terminal.print(&format!("keys         {}", status.credentials_file.display()));
}
