//! Layouts as the storage of an arm: applied and waited for before its first run, destroyed after its last. Devices are never wiped.

use crate::destroy::Destroy;
use crate::error::RookError;
use crate::placed::Placed;
use crate::wait::Patience;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidemark_apiserver::Which;
use tidemark_keys::diagnostic::Severity;
use tidemark_keys::kinds::{PositiveDuration, Text};
use tidemark_keys::shapes::{Either, Map};
use tidemark_keys::tree::{Entry, Value};
use tidemark_keys::{AnyKey, Key, Mapping, Problem, Table};
use tidemark_kubernetes::{Deployment, Layout};
use tidemark_load::stop::StopRequest;
use tidemark_plan::provisioner::{
    Progress, ProvisionError, Provisioner, ProvisionerKind, Request, Trace, Variables,
};
use tidemark_plan::yaml::environment::Environment;

/// The key under which an arm asks for a layout: the file of its document, or a mapping with that.
static ROOK: Key<Either<Text, Map>> = Key::new(
    "rook",
    "Layout that is applied to a Kubernetes with Rook for it: the file of its document, relative to the evaluation's directory",
    Either(Text, Map(&MAPPING)),
);
static MAPPING: Mapping =
    Mapping::new("rook", "A layout that is applied for an arm", &[&LAYOUT, &CONTEXT, &KUBECONFIG, &WAIT]);
static LAYOUT: Key<Text> =
    Key::new("layout", "The file of its document", Text).required("write `layout: FILE`");
static CONTEXT: Key<Text> =
    Key::new("context", "Context of the kubeconfig", Text).otherwise("the current one");
static KUBECONFIG: Key<Text> =
    Key::new("kubeconfig", "Path of the kubeconfig", Text).otherwise("as for `kubectl`").expanded();
static WAIT: Key<PositiveDuration> =
    Key::new("wait", "For how long it is waited for until it is ready", PositiveDuration).default("30m");

/// How long the removal of a layout may take.
const REMOVAL: Duration = Duration::from_secs(15 * 60);

/// The note in the directory of an arm whose layout this evaluation has applied, and nobody else: server, namespace and layout, a line each.
const MARK: &str = "applied";

/// The variables that a layout brings, and stand-ins for their values while it is not there.
static VARIABLES: [(&str, &str); 8] = [
    ("TIDEMARK_ROOK_S3", "http://127.0.0.1:1"),
    ("TIDEMARK_ROOK_BUCKET", "bucket"),
    ("AWS_ACCESS_KEY_ID", "not-known-yet"),
    ("AWS_SECRET_ACCESS_KEY", "not-known-yet"),
    ("TIDEMARK_ROOK_NAMESPACE", "rook-ceph"),
    ("TIDEMARK_ROOK_BLOCK_CLASS", "block"),
    ("TIDEMARK_ROOK_FILE_CLASS", "files"),
    ("TIDEMARK_ROOK_BUCKET_CLASS", "objects"),
];

/// Layouts on Kubernetes as a kind of provisioner: `rook`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rook;

/// What an arm asks for.
#[derive(Clone)]
struct Wanted {
    layout: Layout,
    context: Option<String>,
    kubeconfig: Option<PathBuf>,
    wait: Duration,
}

impl ProvisionerKind for Rook {
    fn key(&self) -> &'static AnyKey {
        &ROOK
    }

    fn read<'a>(&self, arm: &Table<'a>, entry: &'a Entry, environment: &Environment<'_>) -> Option<Request> {
        let usual = Duration::from_nanos(WAIT.usual().unwrap_or_default());
        let wanted = match entry.node.value {
            Value::Map(_) => {
                let mut own = arm.below(&ROOK, entry).of(&MAPPING);
                let file = own.entry(&LAYOUT);
                let layout =
                    file.and_then(|file| own.scalar(&LAYOUT, &file.node, |file| read(file, environment)));
                if file.is_none() {
                    own.missing(&LAYOUT, "write `layout: FILE`");
                }
                let (context, kubeconfig) = (own.get(&CONTEXT), own.get(&KUBECONFIG).map(PathBuf::from));
                let wait = Duration::from_nanos(own.value(&WAIT));
                own.finish();
                Wanted { layout: layout?, context, kubeconfig, wait }
            }
            _ => {
                let layout = arm.scalar(&ROOK, &entry.node, |file| read(file, environment))?;
                Wanted { layout, context: None, kubeconfig: None, wait: usual }
            }
        };
        Some(Request::new(ROOK.name, wanted.layout.name.clone(), wanted))
    }

    fn variables(&self) -> &[(&'static str, &'static str)] {
        &VARIABLES
    }

    fn stand_in(&self, request: &Request, name: &str) -> Option<String> {
        let (_, usual) = VARIABLES.iter().find(|(known, _)| *known == name)?;
        let layout = &request.get::<Wanted>()?.layout;
        let known = classes(layout);
        match known.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => Some(value.clone()),
            None => (bucket(layout).is_some() && !name.ends_with("_CLASS")).then(|| (*usual).to_owned()),
        }
    }

    fn provisioner(
        &self,
        request: &Request,
        directory: &Path,
    ) -> Result<Box<dyn Provisioner>, ProvisionError> {
        let wanted = request.get::<Wanted>().cloned();
        let wanted = wanted.ok_or_else(|| ProvisionError::Failed("it asks for nothing".into()))?;
        let which = Which {
            context: wanted.context.as_deref(),
            kubeconfig: wanted.kubeconfig.as_deref(),
            namespace: None,
        };
        let placed = Placed::connect(wanted.layout.clone(), which).map_err(failed)?;
        Ok(Box::new(ArmLayout {
            placed,
            wait: wanted.wait,
            directory: directory.to_owned(),
            trace: None,
            variables: Variables::new(),
        }))
    }
}

/// Reads the document of a layout.
fn read(file: &str, environment: &Environment<'_>) -> Result<Layout, Problem> {
    let text = (environment.document)(Path::new(file)).map_err(|error| {
        Problem::new(
            format!("{file} cannot be read: {error}"),
            "paths are relative to the evaluation's directory",
        )
    })?;
    tidemark_kubernetes::read(&text).map(|(layout, _)| layout).map_err(|remarks| {
        let first = remarks.iter().find(|remark| remark.severity == Severity::Error);
        let said = first.map_or_else(String::new, |first| {
            let (line, column) = first.line_and_column(&text);
            format!(", line {line}, column {column}: {}", first.message)
        });
        Problem::new(format!("{file}{said}"), format!("`tidemark layout check {file}` says all of it"))
    })
}

/// The variables that the document of a layout says.
fn classes(layout: &Layout) -> Vec<(&'static str, String)> {
    let first = [
        ("TIDEMARK_ROOK_BLOCK_CLASS", layout.pools.first().map(|pool| &pool.class)),
        ("TIDEMARK_ROOK_FILE_CLASS", layout.file_systems.first().map(|system| &system.class)),
        ("TIDEMARK_ROOK_BUCKET_CLASS", layout.object_stores.first().map(|store| &store.class)),
        ("TIDEMARK_ROOK_NAMESPACE", Some(&layout.namespace)),
    ];
    first.into_iter().filter_map(|(name, value)| Some((name, value?.clone()))).collect()
}

/// The bucket whose address and keys an arm gets: the first.
fn bucket(layout: &Layout) -> Option<&str> {
    layout.object_stores.iter().flat_map(|store| &store.buckets).next().map(String::as_str)
}

/// The layout of one arm.
struct ArmLayout {
    placed: Placed,
    wait: Duration,
    directory: PathBuf,
    /// Says that this evaluation has applied it; open while it may be there.
    trace: Option<Trace>,
    variables: Variables,
}

impl ArmLayout {
    /// What is noted of it.
    fn note(&self) -> String {
        let Layout { name, namespace, .. } = self.placed.layout();
        format!("{}\n{namespace}\n{name}\n", self.placed.server())
    }

    /// A layout that somebody else has applied is not ours to take down at the end.
    fn is_free(&self, trace: &Trace) -> Result<(), ProvisionError> {
        match trace.read()? {
            Some(noted) if noted == self.note() => return Ok(()),
            Some(noted) => {
                return Err(ProvisionError::Failed(format!(
                    "an earlier start of this evaluation has left another layout, and would not remove it (server, namespace, layout: {}): \
                     run `tidemark layout destroy` with its document, then remove {}",
                    noted.lines().collect::<Vec<_>>().join(", "),
                    self.directory.join(MARK).display()
                )));
            }
            None => {}
        }
        let there = self.placed.found().map_err(failed)?;
        match there.first() {
            None => Ok(()),
            Some(first) => Err(ProvisionError::Failed(format!(
                "the layout {} is there already ({}), and the evaluation would destroy it at its end: run `tidemark layout destroy` \
                 first, or give the arm's layout another name and namespace",
                self.placed.layout().name,
                first.title()
            ))),
        }
    }

    fn destroy(&mut self, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        // It is bounded, and a user who has stopped the evaluation wants it as well.
        let patience = Patience { most: REMOVAL, stopped: &|| false };
        let destroyed =
            self.placed.destroy(&Destroy { wipe: &[], patience }, &mut |text| progress.line(text));
        destroyed.map_err(failed)?;
        if let Some(trace) = self.trace.take() {
            trace.forget();
        }
        Ok(())
    }

    /// The address and the keys of the first bucket, from the Secret and the ConfigMap of its claim.
    fn bucket(&self) -> Result<Variables, RookError> {
        let layout = self.placed.layout();
        let Some(bucket) = bucket(layout) else { return Ok(Variables::new()) };
        let path = |kind: &str| format!("/api/v1/namespaces/{}/{kind}/{bucket}", layout.namespace);
        let (secret, config) = (self.placed.get(&path("secrets"))?, self.placed.get(&path("configmaps"))?);
        let (secret, config) = (secret.unwrap_or_default(), config.unwrap_or_default());
        let key = |name: &str| {
            let encoded = secret["data"][name].as_str()?;
            String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()
        };
        let text = |name: &str| config["data"][name].as_str().map(str::to_owned);
        let port = text("BUCKET_PORT").and_then(|port| port.parse().ok());
        let address = text("BUCKET_HOST").map(|host| address(&host, port));
        let all = [
            ("TIDEMARK_ROOK_S3", address),
            ("TIDEMARK_ROOK_BUCKET", text("BUCKET_NAME")),
            ("AWS_ACCESS_KEY_ID", key("AWS_ACCESS_KEY_ID")),
            ("AWS_SECRET_ACCESS_KEY", key("AWS_SECRET_ACCESS_KEY")),
        ];
        let missing = all.iter().find(|(_, value)| value.is_none()).map(|(name, _)| *name);
        if let Some(missing) = missing {
            return Err(RookError::Refused {
                doing: format!("say what {missing} is"),
                message: format!(
                    "the Secret {bucket} or the ConfigMap {bucket} of the ObjectBucketClaim does not have it"
                ),
            });
        }
        Ok(all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
    }
}

/// The address of a gateway; by its port, over TLS.
fn address(host: &str, port: Option<u16>) -> String {
    match port {
        None => format!("http://{host}"),
        Some(port @ (443 | 8443)) => format!("https://{host}:{port}"),
        Some(port) => format!("http://{host}:{port}"),
    }
}

impl Provisioner for ArmLayout {
    fn up(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let trace = Trace::open(&self.directory, MARK)?;
        self.is_free(&trace)?;
        trace.write(&self.note())?;
        self.trace = Some(trace);
        match self.placed.apply() {
            Ok(applied) => {
                let name = &self.placed.layout().name;
                progress.line(&format!("the layout {name} is applied: {} resources", applied.len()));
                Ok(())
            }
            Err(error) => {
                // What failed first is what is reported.
                let _ = self.destroy(progress);
                Err(failed(error))
            }
        }
    }

    fn wait(&mut self, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let progress = RefCell::new(progress);
        let stopped = || {
            // It is borrowed while a line is shown, and then nobody asks.
            progress.try_borrow_mut().is_ok_and(|mut progress| progress.stop_request() > StopRequest::None)
        };
        let patience = Patience { most: self.wait, stopped: &stopped };
        self.placed.wait(patience, &mut |text| progress.borrow_mut().line(text)).map_err(failed)?;
        self.variables = self.bucket().map_err(failed)?;
        let said = classes(self.placed.layout());
        self.variables.extend(said.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(())
    }

    fn variables(&self) -> Variables {
        self.variables.clone()
    }

    fn labels(&self) -> Vec<(String, String)> {
        let layout = self.placed.layout();
        let mut all = vec![("namespace".to_owned(), layout.namespace.clone())];
        if let Deployment::Internal(cluster) = &layout.deployment {
            let osds = format!(
                "{} on each of {} nodes, {} processors and {} each",
                cluster.osds_per_node,
                cluster.nodes.len(),
                cluster.cpu,
                cluster.memory
            );
            all.extend([("OSDs".to_owned(), osds), ("Ceph".to_owned(), cluster.image.clone())]);
            all.extend(cluster.parts().map(|(part, template)| {
                (part.to_owned(), format!("{} of the class {}", template.size, template.class))
            }));
        }
        all
    }

    fn down(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        self.variables.clear();
        self.destroy(progress)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: RookError) -> ProvisionError {
    match error {
        RookError::Stopped => ProvisionError::Stopped,
        error => ProvisionError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_layout_does_not_offer_has_no_stand_in() {
        let text = "name: far\nlayout: external\npools:\n- {name: rbd, class: fast}\n";
        let layout = tidemark_kubernetes::read(text).unwrap().0;
        let wanted = Wanted { layout, context: None, kubeconfig: None, wait: Duration::ZERO };
        let request = Request::new(ROOK.name, "far", wanted);
        let of = |name: &str| Rook.stand_in(&request, name);
        assert_eq!(of("TIDEMARK_ROOK_BLOCK_CLASS").as_deref(), Some("fast"));
        assert_eq!(of("TIDEMARK_ROOK_NAMESPACE").as_deref(), Some("rook-ceph"));
        for none in [
            "TIDEMARK_ROOK_FILE_CLASS",
            "TIDEMARK_ROOK_BUCKET_CLASS",
            "TIDEMARK_ROOK_S3",
            "AWS_ACCESS_KEY_ID",
            "X",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn gateways_are_reached_as_their_port_says() {
        assert_eq!(address("rgw.svc", Some(80)), "http://rgw.svc:80");
        assert_eq!(address("rgw.svc", Some(443)), "https://rgw.svc:443");
        assert_eq!(address("rgw.svc", None), "http://rgw.svc");
    }
}
