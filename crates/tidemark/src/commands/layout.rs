//! `tidemark layout`.

use super::document::{refused, text_of};
use crate::cli::{LayoutCommand, Site};
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::Terminal;
use std::path::Path;
use std::time::Duration;
use tidemark_control::event::StopRequest;
use tidemark_kubernetes::{Claimed, Layout, Manifest, Needs};
use tidemark_measure::units::{binary_bytes, count};
use tidemark_rook::{Applied, Change, Destroy, Device, Patience, Placed, RookError, State, Status, Which};

/// Shows a layout, prints its manifests, or puts it into effect.
pub(crate) fn layout(command: &LayoutCommand, terminal: Terminal) -> Result<Exit, Stop> {
    match command {
        LayoutCommand::Check { file } => show(&read(file, terminal)?, terminal),
        LayoutCommand::Render { file } => {
            let manifests = read(file, terminal)?.manifests();
            terminal.print(&tidemark_kubernetes::yaml(&manifests).map_err(Stop::not_ready)?);
        }
        LayoutCommand::Apply { site, wait, within } => {
            let placed = placed(site, "nothing was applied", terminal)?;
            print(&placed.apply().map_err(stopped)?, terminal);
            if *wait {
                wait_for(&placed, *within, terminal)?;
            }
        }
        LayoutCommand::Wait { site, within } => {
            wait_for(&placed(site, "nothing was waited for", terminal)?, *within, terminal)?;
        }
        LayoutCommand::Status { site, json } => {
            let status = placed(site, "nothing was compared", terminal)?.status().map_err(stopped)?;
            match json {
                true => terminal.print(&serde_json::to_string_pretty(&status).map_err(Stop::not_written)?),
                false => compare(&status, terminal),
            }
            return Ok(if status.is_as_wanted() { Exit::Done } else { Exit::Failed });
        }
        LayoutCommand::Destroy { site, wipe_devices, within } => {
            destroy(&placed(site, "nothing was removed", terminal)?, wipe_devices, *within, terminal)?;
        }
    }
    Ok(Exit::Done)
}

/// The layout at its cluster. Nothing is sent yet.
fn placed(site: &Site, outcome: &str, terminal: Terminal) -> Result<Placed, Stop> {
    let layout = read_for(&site.file, outcome, terminal)?;
    let context = site.on.as_ref().and_then(|place| place.context.as_deref());
    Placed::connect(layout, Which { context, ..Which::default() }).map_err(stopped)
}

/// What became of each resource, but for those that stayed as they were.
fn print(applied: &[Applied], terminal: Terminal) {
    let mut unchanged = 0;
    for Applied { resource, change } in applied {
        match change {
            Change::Created => terminal.line(&format!("{resource}: created")),
            Change::Changed => terminal.line(&format!("{resource}: changed")),
            Change::Unchanged => unchanged += 1,
        }
    }
    if unchanged > 0 {
        terminal.line(&format!("unchanged: {} of {}", count(unchanged), count(applied.len() as u64)));
    }
}

fn wait_for(placed: &Placed, within: Duration, terminal: Terminal) -> Result<(), Stop> {
    let signals = Signals::listen();
    let patience = Patience { most: within, stopped: &|| signals.stop_request() > StopRequest::None };
    placed.wait(patience, &mut |text| terminal.remark(text)).map_err(stopped)?;
    terminal.line(&format!("the layout {} is ready", placed.layout().name));
    Ok(())
}

fn destroy(placed: &Placed, wipe: &[Device], within: Duration, terminal: Terminal) -> Result<(), Stop> {
    let signals = Signals::listen();
    let patience = Patience { most: within, stopped: &|| signals.stop_request() > StopRequest::None };
    placed.destroy(&Destroy { wipe, patience }, &mut |text| terminal.remark(text)).map_err(stopped)?;
    terminal.line(&format!("the layout {} is removed", placed.layout().name));
    Ok(())
}

/// What there is against what the document says.
fn compare(status: &Status, terminal: Terminal) {
    for part in &status.resources {
        let standing = &part.standing;
        let mark = match standing.state {
            State::Ready => "ready",
            State::NotReady => "not ready",
            State::Missing => "missing",
        };
        terminal.line(&format!("  {mark:11}{}: {}", standing.resource, standing.text));
        part.drift.iter().for_each(|one| terminal.line(&format!("  {:11}  {one}", "differs")));
        if let Some(why) = &part.refused {
            terminal.line(&format!("  {:11}  the document cannot be applied to it: {why}", "differs"));
        }
    }
    for other in &status.others {
        terminal
            .line(&format!("  {:11}{other}: it is of the layout, and the document does not name it", "more"));
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is what becomes of an error")]
fn stopped(error: RookError) -> Stop {
    let exit = match &error {
        RookError::Stopped => Exit::Interrupted,
        RookError::NotReady { .. } | RookError::Left { .. } | RookError::NotWiped { .. } => Exit::Failed,
        _ => Exit::NotReady,
    };
    Stop { exit, message: error.to_string() }
}

/// Reads and validates a layout. Warnings are shown, errors end the command.
fn read(file: &Path, terminal: Terminal) -> Result<Layout, Stop> {
    read_for(file, "nothing was rendered", terminal)
}

/// The same; `outcome` says what has not become of it.
fn read_for(file: &Path, outcome: &str, terminal: Terminal) -> Result<Layout, Stop> {
    let (path, text) = text_of(file)?;
    match tidemark_kubernetes::read(&text) {
        Ok((layout, warnings)) => {
            terminal.diagnose(&path, &text, &warnings);
            Ok(layout)
        }
        Err(remarks) => Err(refused(&path, &text, &remarks, outcome, terminal)),
    }
}

fn show(layout: &Layout, terminal: Terminal) {
    let mut line = |name: &str, value: &str| terminal.line(&format!("  {name:12}{value}"));
    let place = format!("{} in the namespace {}", layout.name, layout.namespace);
    let needs = layout.needs();
    match &needs {
        Some(needs) => {
            let osds = format!("{} OSDs on {} nodes", count(needs.osds()), needs.nodes);
            line("cluster", &format!("{place}: {osds}"));
            takes(needs, &mut line);
        }
        None => line("cluster", &format!("{place}: imported")),
    }
    let manifests = layout.manifests();
    for kind in kinds(&manifests) {
        let names: Vec<_> = manifests.iter().filter(|one| one.kind == kind).map(Manifest::name).collect();
        // Volumes of devices are as many as OSDs.
        let named = if names.len() > 8 { count(names.len() as u64) } else { names.join(", ") };
        line("renders", &format!("{kind} {named}"));
    }
    line("needs", &format!("Rook's operator in the namespace {}", layout.operator_namespace));
    line("needs", &format!("the namespace {}", layout.namespace));
    if needs.is_none() {
        line("needs", "the keys that Rook's import-external-cluster.sh puts into that namespace");
    }
    for class in needs.iter().flat_map(|needs| &needs.classes) {
        line("needs", &format!("the storage class {class}"));
    }
    line("needs", "the resource definitions of Rook and of the external-snapshotter");
}

/// What the OSDs take.
fn takes(needs: &Needs, line: &mut impl FnMut(&str, &str)) {
    for Claimed { part, class, size, devices } in &needs.claimed {
        let all = binary_bytes(size.units().saturating_mul(needs.osds()));
        let made =
            if devices.is_empty() { String::new() } else { format!(", made of {}", devices.join(" ")) };
        line(part, &format!("{size} for each OSD, {all} in all, of the class {class}{made}"));
    }
    let per_node = u64::from(needs.osds_per_node);
    let processors = needs.cpu.thousandths().saturating_mul(per_node) as f64 / 1000.0;
    let memory = binary_bytes(needs.memory.units().saturating_mul(per_node));
    line("each OSD", &format!("{} processors, {}", needs.cpu, needs.memory));
    line("each node", &format!("{per_node} OSDs: {processors} processors, {memory}"));
}

/// The kinds of manifests, each once, in the order of their first.
fn kinds(manifests: &[Manifest]) -> Vec<&'static str> {
    let mut kinds: Vec<&'static str> = Vec::new();
    for manifest in manifests {
        if !kinds.contains(&manifest.kind) {
            kinds.push(manifest.kind);
        }
    }
    kinds
}
