//! `tidemark kubernetes`: the image of driver pods, what is installed, and what runs have left.

use super::base;
use super::driver_pods::refused;
use crate::cli::{ImageOf, KubernetesCommand, ObserveNodes};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::path::Path;
use std::time::Duration;
use tidemark_apiserver::{Client, Which};
use tidemark_claims::leftovers;
use tidemark_lab::image::Image;
use tidemark_operator::{Install, manifests};
use tidemark_pods::{Cluster, Found, Made};
use tidemark_serve::SelfSigned;

/// How long what a run left behind may take to go.
const REMOVAL: Duration = Duration::from_secs(120);

/// `tidemark kubernetes`.
pub(crate) fn kubernetes(command: &KubernetesCommand, terminal: Terminal) -> Result<Exit, Stop> {
    match command {
        KubernetesCommand::Image { of, output, name } => {
            image(*of, output, name.as_deref().unwrap_or(of.name()), terminal)
        }
        KubernetesCommand::Manifests { namespace, image, storage_class } => {
            let install = Install { namespace, image, class: storage_class.as_deref() };
            terminal.print(&manifests(install));
            Ok(Exit::Done)
        }
        KubernetesCommand::Base(arguments) => base::base(arguments, terminal),
        KubernetesCommand::Observers { namespace, image, nodes, token } => {
            let identity = SelfSigned::once().map_err(Stop::not_ready)?;
            let install = nodes.install(namespace, image, token, &identity);
            terminal.print(&tidemark_observe::manifests(install).map_err(Stop::usage)?);
            let node = tidemark_observe::node("NODE", nodes.port, &identity.fingerprint);
            let found = found_by(namespace, &node);
            terminal.remark(&format!(
                "{found}; and the command that runs them has the token in TIDEMARK_OBSERVE_TOKEN"
            ));
            Ok(Exit::Done)
        }
        KubernetesCommand::Clean { runs, all, context, namespace } => {
            let which =
                Which { context: context.as_deref(), namespace: namespace.as_deref(), kubeconfig: None };
            clean(which, runs, *all, terminal)
        }
    }
}

impl ObserveNodes {
    /// How observers with these options are installed.
    pub(super) fn install<'a>(
        &'a self,
        namespace: &'a str,
        image: &'a str,
        token: &'a str,
        identity: &'a SelfSigned,
    ) -> tidemark_observe::Install<'a> {
        tidemark_observe::Install {
            namespace,
            image,
            port: self.port,
            processes: &self.processes,
            ceph_sockets: &self.ceph_sockets,
            token,
            certificate: &identity.certificate,
            key: &identity.key,
            fingerprint: &identity.fingerprint,
        }
    }
}

fn image(of: ImageOf, output: &Path, name: &str, terminal: Terminal) -> Result<Exit, Stop> {
    let image = match of {
        ImageOf::Driver => driver_image(name)?,
        ImageOf::Postgres => tidemark_lab::postgres_image(&full_name(name)).map_err(Stop::not_ready)?,
        ImageOf::Trino => {
            let mut progress = |text: &str| terminal.remark(text);
            tidemark_lab::trino_image(&full_name(name), &mut progress).map_err(Stop::not_ready)?
        }
    };
    image.write(output).map_err(Stop::not_written)?;
    terminal
        .remark(&format!("{name} is in {}; for a node: ctr -n k8s.io images import FILE", output.display()));
    Ok(Exit::Done)
}

/// This program, and the one for loads on tables, if it is beside it.
fn driver_image(name: &str) -> Result<Image, Stop> {
    let program = std::env::current_exe()
        .map_err(|error| Stop::not_ready(format!("cannot find this program: {error}")))?;
    let mut image = Image::new(full_name(name)).entrypoint(&["/tidemark"]).user("65532:65532");
    image.program(&program, "/tidemark").map_err(Stop::not_ready)?;
    let lake = program.with_file_name(tidemark_engines::LAKE);
    if lake.is_file() {
        image.program(&lake, format!("/{}", tidemark_engines::LAKE)).map_err(Stop::not_ready)?;
    }
    Ok(image)
}

/// The name of an image with its registry, as containerd keeps it.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        None => format!("docker.io/library/{name}"),
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
    }
}

/// A run that has left something, or still goes on.
struct Left {
    name: String,
    /// Whether it is known to have ended.
    is_over: bool,
    what: What,
    /// What to say of it where it stays.
    stays: String,
}

/// What a run has made.
enum What {
    Pods(Made),
    Volumes,
}

impl From<Found> for Left {
    fn from(found: Found) -> Self {
        let advice = match found.made {
            Made::Drivers => ", or wait until they end by themselves, 5 minutes after it",
            // They do not end by themselves.
            Made::Databases | Made::Trino => "",
        };
        let Found { run, active, count, made, since, .. } = found;
        let stays = format!(
            "{run} goes on: {active} of {count} {} since {since}; if its process is gone, name it{advice}",
            made.name()
        );
        Self { name: run, is_over: found.is_over, what: What::Pods(made), stays }
    }
}

impl From<leftovers::Left> for Left {
    fn from(left: leftovers::Left) -> Self {
        let stays =
            format!("{} may go on: volumes since {}; if its process is gone, name it", left.run, left.since);
        // Nothing in the cluster tells whether its process is still there.
        Self { name: left.run, is_over: false, what: What::Volumes, stays }
    }
}

/// Removes runs by name; else those that have ended, or all.
fn clean(which: Which<'_>, names: &[String], all: bool, terminal: Terminal) -> Result<Exit, Stop> {
    let cluster = Cluster::connect(which).map_err(refused)?;
    let client = Client::connect(which).map_err(Stop::not_ready)?;
    let pods = cluster.runs().map_err(refused)?;
    let volumes = leftovers::find(&client).map_err(Stop::not_ready)?;
    let found: Vec<Left> =
        pods.into_iter().map(Left::from).chain(volumes.into_iter().map(Left::from)).collect();
    let chosen = chosen(&found, names, all).map_err(|name| {
        let known: Vec<_> = found.iter().map(|one| one.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let namespace = cluster.namespace();
        Stop::not_ready(format!("there is no run `{name}` in the namespace {namespace}; there are: {known}"))
    })?;
    for one in &chosen {
        match one.what {
            What::Pods(made) => cluster.remove(made, &one.name, REMOVAL).map_err(refused)?,
            What::Volumes => leftovers::remove(&client, &one.name, REMOVAL).map_err(Stop::not_ready)?,
        }
        terminal.print(&format!("{} is removed", one.name));
    }
    if names.is_empty() && !all {
        for one in found.iter().filter(|one| !one.is_over) {
            terminal.print(&one.stays);
        }
    }
    if found.is_empty() {
        terminal.remark(&format!("nothing of a run is in the namespace {}", cluster.namespace()));
    }
    Ok(Exit::Done)
}

/// Which runs are to be removed. A name that is none of theirs is the error: it may be that of somebody else's Job and Secret.
fn chosen<'f>(found: &'f [Left], names: &[String], all: bool) -> Result<Vec<&'f Left>, String> {
    if names.is_empty() {
        return Ok(found.iter().filter(|one| all || one.is_over).collect());
    }
    let named = |name: &String| found.iter().find(|one| one.name == *name).ok_or_else(|| name.clone());
    names.iter().map(named).collect()
}

/// Who finds the observers in a namespace, and how others name a node's.
pub(super) fn found_by(namespace: &str, node: &str) -> String {
    format!(
        "runs --on kubernetes in the namespace {namespace} find the observers; other documents name each node by its address: observe: {{nodes: \
         [\"{node}\"]}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_the_names_that_containerd_looks_for() {
        assert_eq!(full_name("tidemark:1"), "docker.io/library/tidemark:1");
        assert_eq!(full_name("team/tidemark:1"), "docker.io/team/tidemark:1");
        for whole in ["registry:5000/tidemark:1", "quay.io/a/b:1", "localhost/b:1"] {
            assert_eq!(full_name(whole), whole);
        }
    }

    #[test]
    fn only_what_is_a_run_is_removed() {
        let run = |name: &str, active, is_over| {
            Left::from(Found {
                made: Made::Drivers,
                run: name.into(),
                active,
                count: 2,
                is_over,
                since: String::new(),
                evaluation: None,
            })
        };
        let volumes = leftovers::Left { run: "volumes".into(), since: String::new() };
        let found =
            [run("ended", 0, true), run("busy", 2, false), run("beginning", 0, false), Left::from(volumes)];
        let chosen = |names: &[&str], all| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&found, &names, all)
                .map(|runs| runs.iter().map(|one| one.name.clone()).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[], false).unwrap(), ["ended"]);
        assert_eq!(chosen(&[], true).unwrap(), ["ended", "busy", "beginning", "volumes"]);
        assert_eq!(chosen(&["busy"], false).unwrap(), ["busy"]);
        for others in ["", "postgres", "../secrets", "ended/x", "busy?"] {
            assert_eq!(chosen(&["ended", others], false), Err(others.to_owned()), "nothing is removed");
        }
    }
}
