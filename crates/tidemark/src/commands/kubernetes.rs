//! `tidemark run --on kubernetes` and `tidemark kubernetes`: this process is the controller of driver pods.

use super::document::Source;
use super::outcome::{self, Means};
use super::run;
use crate::cli::{Advertised, KubernetesCommand, On, Place, RunOn};
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::Terminal;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidemark_control::event::StopRequest;
use tidemark_fleet::fleet::Presence;
use tidemark_fleet::{Fleet, backend, fleet};
use tidemark_kubernetes::{Drivers, MOST_PODS, Pods, Reach, run_name};
use tidemark_measure::record::Note;
use tidemark_plan::plan::{Plan, Wanted};
use tidemark_plan::secret::Secret;
use tidemark_pods::{Cluster, Found, PodsError, Running, Waiting, Which};
use tidemark_serve::{DriverServer, ServeError};

/// How long what a run left behind may take to go.
const REMOVAL: Duration = Duration::from_secs(120);

/// What stands in a dry run for what is made anew for every run.
const MADE: &str = "(made for each run)";

/// Runs a workload on pods, or prints what they would be made of.
pub(super) fn run(
    source: Source,
    arguments: &RunOn,
    place: &Place,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let (mut plan, origin) = run::prepare(source, &arguments.run)?;
    let on = &arguments.on;
    let (pods, count) = pods(&plan, on)?;
    if on.dry_run {
        return print(&plan, &pods, count, terminal);
    }
    let cluster = connect(place.context.as_deref(), pods.namespace.as_deref())?;
    let name = run_name(&plan.name, &mark());
    let drivers = Drivers { run: &name, namespace: Some(cluster.namespace()), count, pods: &pods };
    let names = drivers.names();
    let fleet = Fleet::new(fleet::Options {
        name: name.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        silent_after: Duration::from_secs(2),
        gone_after: Duration::from_secs(30),
    });
    tidemark_load::open_files::limit();
    let (server, url) = listen(&fleet, &cluster, on.advertise.as_ref(), &name)?;
    let reach = Reach {
        url,
        trust: format!("sha256:{}", server.fingerprint()),
        token: Secret::new(server.token().reveal()),
    };
    let signals = Signals::listen();
    plan.notes.push(Note { topic: "kubernetes".into(), text: described(&drivers) });
    let say = |text: &str| {
        if !arguments.run.running.quiet {
            terminal.remark(text);
        }
    };
    say(&format!(
        "run {name}: driver pods in the namespace {}: {count}; they join at {}",
        cluster.namespace(),
        reach.url
    ));
    let running = cluster.start(&drivers, &reach).map_err(refused)?;
    let joined = || {
        let present = |name: &&String| {
            let members = fleet.members();
            members.iter().any(|member| member.hello.name == **name && member.presence == Presence::Present)
        };
        names.iter().filter(present).count() as u32
    };
    let waiting = Waiting {
        joined: &joined,
        stopped: &|| signals.stop_request() > StopRequest::None,
        most: on.wait,
        url: &reach.url,
    };
    let done = match running.wait(&waiting, &mut |news| say(news)) {
        Err(PodsError::Stopped) => {
            Err(Stop { exit: Exit::Interrupted, message: PodsError::Stopped.to_string() })
        }
        Err(error) => Err(refused(error)),
        Ok(()) => {
            let backends = backend::on(Arc::clone(&fleet), names.clone());
            let means = Means { backends, signals };
            outcome::execute(&plan, origin, &arguments.run.running, means, store, terminal)
        }
    };
    say("removing the driver pods");
    remove(running, &mut |text| terminal.remark(text));
    done
}

/// What drivers are, by the document and the command line, and how many.
fn pods(plan: &Plan, on: &On) -> Result<(Pods, u32), Stop> {
    let count = match &plan.drivers.wanted {
        Wanted::All => 1,
        Wanted::Count(count) => *count,
        Wanted::Named(_) => {
            return Err(Stop::usage(
                "the document names its drivers, and pods have names of their own: write a number in `drivers`",
            ));
        }
    };
    let count = on.drivers.unwrap_or(count);
    if count > MOST_PODS {
        return Err(Stop::usage(format!("{count} drivers are more than {MOST_PODS} pods")));
    }
    let mut works = plan.stages.iter().flat_map(|stage| &stage.works);
    if let Some(work) = works.find(|work| work.driver.is_some()) {
        let name = &work.name;
        return Err(Stop::usage(format!(
            "work `{name}` is pinned to a driver, and pods have names of their own: remove `driver`"
        )));
    }
    let mut pods = plan.drivers.pods.clone().unwrap_or_default();
    pods.namespace = on.namespace.clone().or(pods.namespace);
    pods.image = on.image.clone().unwrap_or(pods.image);
    pods.cpu = on.cpu.clone().unwrap_or(pods.cpu);
    pods.memory = on.memory.clone().unwrap_or(pods.memory);
    Ok((pods, count))
}

/// The manifests, without what is made anew for every run.
fn print(plan: &Plan, pods: &Pods, count: u32, terminal: Terminal) -> Result<Exit, Stop> {
    let name = run_name(&plan.name, "00000");
    let drivers = Drivers { run: &name, namespace: pods.namespace.as_deref(), count, pods };
    let reach = Reach { url: MADE.into(), trust: MADE.into(), token: MADE.into() };
    let manifests = [drivers.job(), drivers.secret(&reach, None)];
    terminal.print(&tidemark_kubernetes::yaml(&manifests).map_err(Stop::not_ready)?);
    Ok(Exit::Done)
}

/// Listens where pods reach this process, and the address at which they do.
fn listen(
    fleet: &Arc<Fleet>,
    cluster: &Cluster,
    advertised: Option<&Advertised>,
    run: &str,
) -> Result<(DriverServer, String), Stop> {
    let advertised = match advertised {
        Some(advertised) => advertised.clone(),
        None => {
            let ip = cluster.own_address().map_err(refused)?;
            if ip.is_loopback() {
                return Err(Stop::not_ready(
                    "the API server is on this machine, and pods do not reach 127.0.0.1: name an address of this machine that they \
                     reach with --advertise, such as that of the bridge of their network",
                ));
            }
            Advertised { host: ip.to_string(), port: 0 }
        }
    };
    let names = format!("{run}-*");
    let at =
        |ip: IpAddr| DriverServer::start(Arc::clone(fleet), SocketAddr::new(ip, advertised.port), &names);
    let everywhere = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let server = match advertised.ip() {
        None => at(everywhere),
        Some(ip) => match at(ip) {
            // It is that of something before this machine, which passes connections on.
            Err(ServeError::Listen { source, .. }) if source.kind() == ErrorKind::AddrNotAvailable => {
                at(everywhere)
            }
            server => server,
        },
    };
    let server = server.map_err(Stop::not_ready)?;
    let port = server.address().port();
    let url = match advertised.ip() {
        Some(ip) => format!("https://{}", SocketAddr::new(ip, port)),
        None => format!("https://{}:{port}", advertised.host),
    };
    Ok((server, url))
}

/// What tells a run from others of the same name.
fn mark() -> String {
    format!("{:05x}", RandomState::new().build_hasher().finish() & 0xf_ffff)
}

/// For the report: where the load came from.
fn described(drivers: &Drivers<'_>) -> String {
    let Pods { image, cpu, memory, volume, .. } = drivers.pods;
    let namespace = drivers.namespace.unwrap_or_default();
    let mut text = format!(
        "Driver pods of the image {image} in the namespace {namespace} of Kubernetes: {}, with {cpu} CPU and {memory} of memory each",
        drivers.count
    );
    if let Some(volume) = volume {
        text += &format!(", and {} of the storage class {} at {}", volume.size, volume.class, volume.path);
    }
    text + "."
}

/// Removes the pods of a run, and says what is known of those that have ended, and what is left.
fn remove(running: Running<'_>, say: &mut dyn FnMut(&str)) {
    running.ended().iter().for_each(|ended| say(ended));
    if let Err(left) = running.remove() {
        say(&format!("tidemark: {left}"));
    }
}

fn connect(context: Option<&str>, namespace: Option<&str>) -> Result<Cluster, Stop> {
    Cluster::connect(Which { context, namespace, kubeconfig: None }).map_err(refused)
}

fn refused(error: PodsError) -> Stop {
    Stop::not_ready(error)
}

/// `tidemark kubernetes`.
pub(crate) fn kubernetes(command: &KubernetesCommand, terminal: Terminal) -> Result<Exit, Stop> {
    match command {
        KubernetesCommand::Image { output, name } => image(output, name, terminal),
        KubernetesCommand::Clean { runs, all, context, namespace } => {
            let cluster = connect(context.as_deref(), namespace.as_deref())?;
            clean(&cluster, runs, *all, terminal)
        }
    }
}

fn image(output: &Path, name: &str, terminal: Terminal) -> Result<Exit, Stop> {
    let program = std::env::current_exe()
        .map_err(|error| Stop::not_ready(format!("cannot find this program: {error}")))?;
    let mut image =
        tidemark_lab::image::Image::new(full_name(name)).entrypoint(&["/tidemark"]).user("65532:65532");
    image.program(&program, "/tidemark").map_err(Stop::not_ready)?;
    image.write(output).map_err(Stop::not_written)?;
    terminal
        .remark(&format!("{name} is in {}; for a node: ctr -n k8s.io images import FILE", output.display()));
    Ok(Exit::Done)
}

/// The name of an image with its registry, as containerd keeps it.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        None => format!("docker.io/library/{name}"),
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
    }
}

/// Removes runs by name; else those that have ended, or all.
fn clean(cluster: &Cluster, names: &[String], all: bool, terminal: Terminal) -> Result<Exit, Stop> {
    let found = cluster.runs().map_err(refused)?;
    let chosen = chosen(&found, names, all).map_err(|name| {
        let known: Vec<_> = found.iter().map(|one| one.run.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let namespace = cluster.namespace();
        Stop::not_ready(format!("there is no run `{name}` in the namespace {namespace}; there are: {known}"))
    })?;
    for one in &chosen {
        cluster.remove(&one.run, REMOVAL).map_err(refused)?;
        terminal.print(&format!("{} is removed", one.run));
    }
    for one in found.iter().filter(|one| names.is_empty() && !chosen.contains(one)) {
        terminal.print(&format!(
            "{} goes on: {} of {} drivers since {}; if its process is gone, name it, or wait until they end by themselves, 5 minutes \
             after it",
            one.run, one.active, one.count, one.since
        ));
    }
    if found.is_empty() {
        terminal.remark(&format!("nothing of a run is in the namespace {}", cluster.namespace()));
    }
    Ok(Exit::Done)
}

/// Which runs are to be removed. A name that is none of theirs is the error: it may be that of somebody else's Job and Secret.
fn chosen<'f>(found: &'f [Found], names: &[String], all: bool) -> Result<Vec<&'f Found>, String> {
    if names.is_empty() {
        return Ok(found.iter().filter(|one| all || one.is_over).collect());
    }
    let named = |name: &String| found.iter().find(|one| one.run == *name).ok_or_else(|| name.clone());
    names.iter().map(named).collect()
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
        let run = |name: &str, active, is_over| Found {
            run: name.into(),
            active,
            count: 2,
            is_over,
            since: String::new(),
        };
        let found = [run("ended", 0, true), run("busy", 2, false), run("beginning", 0, false)];
        let chosen = |names: &[&str], all| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&found, &names, all).map(|runs| runs.iter().map(|one| one.run.clone()).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[], false).unwrap(), ["ended"]);
        assert_eq!(chosen(&[], true).unwrap(), ["ended", "busy", "beginning"]);
        assert_eq!(chosen(&["busy"], false).unwrap(), ["busy"]);
        for others in ["", "postgres", "../secrets", "ended/x", "busy?"] {
            assert_eq!(chosen(&["ended", others], false), Err(others.to_owned()), "nothing is removed");
        }
    }
}
