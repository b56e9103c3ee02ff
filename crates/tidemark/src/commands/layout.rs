//! `tidemark layout check | render`.

use super::document::{refused, text_of};
use crate::cli::LayoutCommand;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::path::Path;
use tidemark_kubernetes::{Claimed, Layout, Manifest, Needs};
use tidemark_measure::units::{binary_bytes, count};

/// Shows a layout, or prints its manifests.
pub(crate) fn layout(command: &LayoutCommand, terminal: Terminal) -> Result<Exit, Stop> {
    match command {
        LayoutCommand::Check { file } => show(&read(file, terminal)?, terminal),
        LayoutCommand::Render { file } => {
            let manifests = read(file, terminal)?.manifests();
            terminal.print(&tidemark_kubernetes::yaml(&manifests).map_err(Stop::not_ready)?);
        }
    }
    Ok(Exit::Done)
}

/// Reads and validates a layout. Warnings are shown, errors end the command.
fn read(file: &Path, terminal: Terminal) -> Result<Layout, Stop> {
    let (path, text) = text_of(file)?;
    match tidemark_kubernetes::read(&text) {
        Ok((layout, warnings)) => {
            terminal.diagnose(&path, &text, &warnings);
            Ok(layout)
        }
        Err(remarks) => Err(refused(&path, &text, &remarks, "nothing was rendered", terminal)),
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
