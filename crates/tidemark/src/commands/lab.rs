//! `tidemark lab up | status | env | down`.

use crate::cli::{Lab, LabUp, System};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use serde_json::json;
use std::path::PathBuf;
use tidemark_lab::{self as lab, LabOptions, LabStatus};

/// Starts or stops the lab, or shows its state.
pub(crate) fn lab(command: &Lab, terminal: Terminal) -> Result<Exit, Stop> {
    let mut progress = |text: &str| terminal.remark(text);
    match command {
        Lab::Up(up) => {
            let options = options(up)?;
            let lab = lab::up(&options, &mut progress).map_err(Stop::not_ready)?;
            show(&lab.status().map_err(Stop::not_ready)?, terminal);
            Ok(Exit::Done)
        }
        Lab::Status { dir, json } => {
            let directory = directory(dir.as_ref())?;
            let status = lab::status(&directory).map_err(Stop::not_ready)?;
            if *json {
                let credentials = lab::Lab::open(&directory).ok().map(|lab| lab.credentials().clone());
                terminal.print(&json!({"status": status, "credentials": credentials}).to_string());
            } else {
                show(&status, terminal);
            }
            Ok(if status.is_up() { Exit::Done } else { Exit::NotReady })
        }
        Lab::Env { dir } => {
            let lab = lab::Lab::open(&directory(dir.as_ref())?).map_err(Stop::not_ready)?;
            // Keys are letters and digits, addresses have no quotes: plain single quotes are enough.
            for (name, value) in lab.variables() {
                terminal.print(&format!("export {name}='{value}'"));
            }
            Ok(Exit::Done)
        }
        Lab::Down { dir, keep } => {
            lab::down(&directory(dir.as_ref())?, !keep, &mut progress).map_err(Stop::not_ready)?;
            Ok(Exit::Done)
        }
    }
}

/// The lab of the command line.
fn options(up: &LabUp) -> Result<LabOptions, Stop> {
    let System::Ceph = up.system;
    Ok(LabOptions {
        gateway_port: up.port,
        layout: up.layout,
        slow_iops: up.slow_iops,
        slow_bandwidth: up.slow_bandwidth,
        metadata_bytes: up.metadata_size,
        cache_bytes: up.cache_size,
        ..LabOptions::new(directory(up.dir.as_ref())?)
    })
}

fn directory(given: Option<&PathBuf>) -> Result<PathBuf, Stop> {
    given.cloned().map_or_else(lab::default_dir, Ok).map_err(Stop::not_ready)
}

fn show(status: &LabStatus, terminal: Terminal) {
    for daemon in &status.daemons {
        let pid = daemon.pid.map_or(String::new(), |pid| format!("process {pid}"));
        let state = serde_json::to_value(daemon.state).unwrap_or_default();
        let state = state.as_str().unwrap_or_default().to_owned();
        terminal.print(&format!("{:12} {state:8} {pid}", daemon.daemon.to_string()));
    }
    for (name, value) in &status.labels {
        terminal.print(&format!("{name:12} {value}"));
    }
    match &status.health {
        Some(health) => {
            terminal.print(&format!("health       {} {}", health.status, health.problems.join("; ")));
        }
        None => terminal.print("health       unknown: the monitor does not respond"),
    }
    terminal.print(&format!("S3           {}", status.endpoint));
    terminal.print(&format!("Swift        {}", status.swift_auth_url));
    terminal.print(&format!("keys         {}", status.credentials_file.display()));
}
