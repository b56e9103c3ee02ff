//! Driver pods whose controller is this process: what they are, made once, joined, used, removed.

use super::document::{Evaluation, NO_BUCKET, Source};
use super::outcome::{self, Means};
use super::{evaluate, run};
use crate::cli::{Advertised, On, Place, RunOn};
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::Terminal;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_control::backend::BackendFactory;
use tidemark_control::event::StopRequest;
use tidemark_control::witness::{Nodes, Witness};
use tidemark_fleet::fleet::Presence;
use tidemark_fleet::{Fleet, backend, fleet};
use tidemark_kubernetes::{Drivers, MOST_PODS, Manifest, Mode, Owner, Pods, Reach, run_name};
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Note, Run};
use tidemark_plan::evaluation::Arm;
use tidemark_plan::plan::{Plan, Wanted};
use tidemark_plan::secret::Secret;
use tidemark_plan::yaml::Environment;
use tidemark_pods::{Bucket, Cluster, Observers, PodsError, Running, Waiting, Watcher, Which};
use tidemark_serve::{DriverServer, ServeError};

/// What stands in a dry run for what is made anew for every run.
const MADE: &str = "(made for each run)";

/// The drivers of a run or of an evaluation, which is one run to Kubernetes.
pub(super) struct Wish<'a> {
    /// The document's name.
    pub(super) name: &'a str,
    pub(super) pods: &'a Pods,
    pub(super) count: u32,
    /// Where pods reach this process; `None`: at the address from which it reaches the API server.
    pub(super) advertise: Option<&'a Advertised>,
    /// How long all of them may take to join.
    pub(super) wait: Duration,
    /// What takes them along when it is deleted.
    pub(super) owner: Option<Owner>,
}

/// What a run has of its driver pods.
pub(super) struct Lent {
    pub(super) backends: Arc<dyn BackendFactory>,
    /// Who watches them.
    pub(super) witness: Arc<dyn Witness>,
    /// For reports.
    pub(super) note: Note,
    /// The bucket that was claimed.
    bucket: Option<Bucket>,
}

/// Makes driver pods, waits until all have joined, lends them to `body`, and removes them.
///
/// # Errors
/// They are refused, or do not come: nothing of them is left then, or the message says what is.
pub(super) fn with_drivers<T>(
    cluster: &Cluster,
    wish: &Wish<'_>,
    is_stopped: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&str),
    body: impl FnOnce(Lent) -> T,
) -> Result<T, Stop> {
    let name = run_name(wish.name, &mark());
    let drivers = Drivers {
        run: &name,
        namespace: Some(cluster.namespace()),
        count: wish.count,
        pods: wish.pods,
        owner: wish.owner.clone(),
    };
    let names = drivers.names();
    let fleet = Fleet::new(fleet::Options {
        name: name.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        silent_after: Duration::from_secs(2),
        gone_after: Duration::from_secs(30),
    });
    tidemark_load::open_files::limit();
    let (server, url) = listen(&fleet, cluster, wish.advertise, &name)?;
    let reach = Reach {
        url,
        trust: format!("sha256:{}", server.fingerprint()),
        token: Secret::new(server.token().reveal()),
    };
    say(&format!(
        "run {name}: driver pods in the namespace {}: {}; they join at {}",
        cluster.namespace(),
        wish.count,
        reach.url
    ));
    let running = cluster.start(&drivers, &reach).map_err(refused)?;
    let watcher = cluster.watch(&name, wish.pods);
    let joined = || {
        let present = |name: &&String| {
            let members = fleet.members();
            members.iter().any(|member| member.hello.name == **name && member.presence == Presence::Present)
        };
        names.iter().filter(present).count() as u32
    };
    let waiting = Waiting { joined: &joined, stopped: is_stopped, most: wish.wait, at: &reach.url };
    let joined = running.wait(&waiting, say).and_then(|()| {
        if wish.pods.bucket_class.is_none() {
            return Ok(None);
        }
        say("all drivers have joined; waiting for the bucket that the run claims");
        running.bucket(&waiting).map(Some)
    });
    let done = match joined {
        Err(PodsError::Stopped) => {
            Err(Stop { exit: Exit::Interrupted, message: PodsError::Stopped.to_string() })
        }
        Err(error) => Err(refused(error)),
        Ok(bucket) => {
            let note = Note { topic: "kubernetes".into(), text: described(&drivers) };
            let backends = backend::on(Arc::clone(&fleet), names.clone());
            Ok(body(Lent { backends, witness: Arc::new(PodWitness(watcher)), note, bucket }))
        }
    };
    say("removing the driver pods");
    remove(running, say);
    done
}

/// What the records of runs say of their pods.
#[derive(Debug)]
struct PodWitness(Watcher);

impl Witness for PodWitness {
    fn nodes(&self) -> Nodes {
        let Observers { ready, missing } = self.0.observers();
        let missing =
            missing.into_iter().map(|(name, why)| Node { name, gaps: vec![why], ..Node::default() });
        Nodes { observed: ready, missing: missing.collect(), ceph: self.0.ceph() }
    }

    fn tell(&self, run_start: Instant, run: &mut Run) {
        (run.happenings, run.unwatched) = self.0.seen(run_start);
    }
}

/// `tidemark run --on kubernetes` of a workload: runs it on pods, or prints what they would be made of.
pub(super) fn run(
    source: Source,
    arguments: &RunOn,
    place: &Place,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let (plan, origin) = run::prepare(source.clone(), &arguments.run)?;
    let name = plan.name.clone();
    let wanted = wanted(std::slice::from_ref(&plan), &arguments.on)?;
    on_pods(&name, &wanted, Vec::new(), arguments, place, terminal, |means, note, bucket| {
        let (mut plan, origin) = match bucket {
            Some(bucket) => run::prepare(source.in_bucket(&bucket, terminal)?, &arguments.run)?,
            None => (plan, origin),
        };
        plan.notes.push(note);
        outcome::execute(&plan, origin, &arguments.run.running, means, store, terminal)
    })
}

/// The same of an evaluation: all of its runs are on the same pods.
pub(super) fn evaluate(
    mut source: Evaluation,
    arguments: &RunOn,
    place: &Place,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let registry = tidemark_engines::registry();
    let plans = sketches(&source.evaluation, &Environment::process(&registry)).map_err(Stop::usage)?;
    let wanted = wanted(&plans, &arguments.on)?;
    no_bucket(&wanted.0)?;
    let name = source.evaluation.name.clone();
    let of_arm = |arm: &Arm| {
        arm.requests.iter().flat_map(|one| tidemark_pods::manifests(one, &arm.name)).collect::<Vec<_>>()
    };
    let of_arms = source.evaluation.arms.iter().flat_map(of_arm).collect();
    on_pods(&name, &wanted, of_arms, arguments, place, terminal, |means, note, _| {
        source.evaluation.notes.push(note);
        evaluate::execute(source, &arguments.run, means, store, terminal)
    })
}

/// Carries a document out on the pods that the command line asks for. A dry run prints what they are made of, and `others` before.
fn on_pods(
    name: &str,
    (pods, count): &(Pods, u32),
    others: Vec<Manifest>,
    arguments: &RunOn,
    place: &Place,
    terminal: Terminal,
    body: impl FnOnce(Means, Note, Option<Bucket>) -> Result<Exit, Stop>,
) -> Result<Exit, Stop> {
    let on = &arguments.on;
    if on.dry_run {
        return print(name, pods, *count, others, terminal);
    }
    let cluster = connect(place.context.as_deref(), pods.namespace.as_deref())?;
    let signals = Signals::listen();
    // Pods are removed at the end.
    signals.finish_steps();
    let (advertise, wait) = (on.advertise.as_ref(), on.wait);
    let wish = Wish { name, pods, count: *count, advertise, wait, owner: None };
    let is_stopped = || signals.stop_request() > StopRequest::None;
    let mut say = |text: &str| {
        if !arguments.run.running.quiet {
            terminal.remark(text);
        }
    };
    with_drivers(&cluster, &wish, &is_stopped, &mut say, |Lent { backends, witness, note, bucket }| {
        body(Means { backends, signals: signals.clone(), witness: Some(witness) }, note, bucket)
    })?
}

/// The plans of an evaluation's loads on each arm, with stand-ins for what is not known yet. Errors are sentences.
pub(super) fn sketches(
    evaluation: &tidemark_plan::evaluation::Evaluation,
    environment: &Environment<'_>,
) -> Result<Vec<Plan>, String> {
    let mut plans = Vec::new();
    for arm in 0..evaluation.arms.len() {
        for (load, about) in evaluation.loads.iter().enumerate() {
            let level = about.levels.known().into_iter().next().unwrap_or_default();
            let plan = evaluation.sketch(arm, load, &level, 1, environment).map_err(|diagnostics| {
                let first = diagnostics.into_iter().next();
                let message = first.map(|first| first.message).unwrap_or_default();
                format!("load `{}` on arm `{}`: {message}", about.name, evaluation.arms[arm].name)
            })?;
            plans.push(plan);
        }
    }
    Ok(plans)
}

/// What drivers are, by the document's plans and the command line, and how many.
pub(super) fn wanted(plans: &[Plan], on: &On) -> Result<(Pods, u32), Stop> {
    let counted = |plan: &Plan| match &plan.drivers.wanted {
        Wanted::All => Ok(1),
        Wanted::Count(count) => Ok(*count),
        Wanted::Named(_) => Err(Stop::usage(
            "the document names its drivers, and pods have names of their own: write a number in `drivers`",
        )),
    };
    let counts = plans.iter().map(counted).collect::<Result<Vec<_>, _>>()?;
    let first = counts.first().copied().unwrap_or(1);
    if on.drivers.is_none()
        && let Some(other) = counts.iter().find(|other| **other != first)
    {
        return Err(Stop::usage(format!(
            "one load wants {first} drivers and another {other}, and all runs are on the same pods: write `drivers` once, at the top of \
             the evaluation, or use --drivers"
        )));
    }
    let count = on.drivers.unwrap_or(first);
    if count > MOST_PODS {
        return Err(Stop::usage(format!("{count} drivers are more than {MOST_PODS} pods")));
    }
    let mut works = plans.iter().flat_map(|plan| &plan.stages).flat_map(|stage| &stage.works);
    if let Some(work) = works.find(|work| work.driver.is_some()) {
        let name = &work.name;
        return Err(Stop::usage(format!(
            "work `{name}` is pinned to a driver, and pods have names of their own: remove `driver`"
        )));
    }
    let mut pods = plans.first().and_then(|plan| plan.drivers.pods.clone()).unwrap_or_default();
    if plans.iter().any(|plan| plan.drivers.pods.clone().unwrap_or_default() != pods) {
        return Err(Stop::usage(
            "the loads want different pods, and all runs are on the same ones: write `drivers` once, at the top of the evaluation",
        ));
    }
    pods.namespace = on.namespace.clone().or(pods.namespace);
    pods.image = on.image.clone().unwrap_or(pods.image);
    pods.cpu = on.cpu.clone().unwrap_or(pods.cpu);
    pods.memory = on.memory.clone().unwrap_or(pods.memory);
    Ok((pods, count))
}

/// Refuses what the loads of an evaluation ask for.
pub(super) fn no_bucket(pods: &Pods) -> Result<(), Stop> {
    match pods.bucket_class {
        None => Ok(()),
        Some(_) => Err(Stop::usage(NO_BUCKET)),
    }
}

/// The manifests, without what is made anew for every run.
fn print(
    name: &str,
    pods: &Pods,
    count: u32,
    mut manifests: Vec<Manifest>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let name = run_name(name, "00000");
    let drivers = Drivers { run: &name, namespace: pods.namespace.as_deref(), count, pods, owner: None };
    let reach = Reach { url: MADE.into(), trust: MADE.into(), token: MADE.into() };
    manifests.extend([drivers.job(), drivers.secret(&reach, None)]);
    manifests.extend(drivers.bucket(None));
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
    let Pods { image, cpu, memory, volume, bucket_class, .. } = drivers.pods;
    let namespace = drivers.namespace.unwrap_or_default();
    let mut text = format!(
        "Driver pods of the image {image} in the namespace {namespace} of Kubernetes: {}, with {cpu} CPU and {memory} of memory each",
        drivers.count
    );
    if let Some(volume) = volume {
        let what = match volume.mode {
            Mode::Filesystem => "",
            Mode::Block => "a block device of ",
        };
        text +=
            &format!(", and {what}{} of the storage class {} at {}", volume.size, volume.class, volume.path);
    }
    if let Some(class) = bucket_class {
        text += &format!("; a bucket of the storage class {class}");
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

pub(super) fn connect(context: Option<&str>, namespace: Option<&str>) -> Result<Cluster, Stop> {
    Cluster::connect(Which { context, namespace, kubeconfig: None }).map_err(refused)
}

pub(super) fn refused(error: PodsError) -> Stop {
    Stop::not_ready(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(drivers: &str) -> Plan {
        let text = format!(
            "name: x\ntarget: mock\n{drivers}stages: [{{load: {{for: 1s, containers: 1, operations: [{{get: {{objects: 1}}}}]}}}}]\n"
        );
        let registry = tidemark_engines::registry();
        tidemark_plan::document::read(&text, &Environment::process(&registry)).unwrap().plan
    }

    #[test]
    fn all_loads_of_an_evaluation_are_on_the_same_pods() {
        let asked = |drivers| On {
            on: None,
            drivers,
            namespace: None,
            image: None,
            cpu: None,
            memory: None,
            advertise: None,
            wait: Duration::ZERO,
            dry_run: false,
        };
        let [none, two, three] = ["", "drivers: 2\n", "drivers: 3\n"].map(plan);
        let large = plan("drivers: {use: 2, kubernetes: {memory: 2Gi}}\n");
        let count = |plans: &[Plan], drivers| wanted(plans, &asked(drivers)).map(|(_, count)| count);
        assert_eq!(count(std::slice::from_ref(&none), None).unwrap(), 1);
        assert_eq!(count(&[two.clone(), two.clone()], None).unwrap(), 2);
        let refused = count(&[two.clone(), three.clone()], None).unwrap_err().message;
        assert!(refused.contains("one load wants 2 drivers and another 3"), "{refused}");
        assert_eq!(count(&[two.clone(), three], Some(4)).unwrap(), 4, "the command line decides");
        let refused = count(&[two, large], None).unwrap_err().message;
        assert!(refused.contains("different pods"), "{refused}");
    }
}
