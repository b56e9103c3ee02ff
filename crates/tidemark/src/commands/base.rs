//! `tidemark kubernetes base`: what a team has in its cluster, as a directory that `kubectl apply -k` takes.
//!
//! Secrets are in a file apart, which is made once: the directory can be written again for another version or number of drivers.

use super::kubernetes::found_by;
use crate::cli::{Base, Part};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use tidemark_controller::api::Role;
use tidemark_operator::Install;
use tidemark_serve::{ControllerInCluster, DriversInCluster, OwnToken, SelfSigned};

/// The file with the secrets.
const ACCESS: &str = "access.yaml";

/// Between two manifests of a text.
const BETWEEN: &str = "\n---\n";

/// Writes the directory.
pub(super) fn base(arguments: &Base, terminal: Terminal) -> Result<Exit, Stop> {
    let Base { directory, parts, namespace, image, storage_class, nodes, .. } = arguments;
    let class = storage_class.as_deref();
    let path = directory.join(ACCESS);
    let kept = Access::kept(&path)?;
    let is_kept = kept.is_some();
    let access = kept.map_or_else(Access::made, Ok)?;
    let installed = ControllerInCluster {
        namespace,
        image,
        class,
        operator: &access.operator,
        driver: &access.driver,
        identity: &access.controller,
    };
    let (controllers, controller) = apart(&installed.manifests());
    let installed = nodes.install(namespace, image, &access.observe, &access.observers);
    let observers = tidemark_observe::manifests(installed).map_err(Stop::not_ready)?;
    let (observers_own, observers) = apart(&observers);
    let drivers = DriversInCluster {
        namespace,
        image,
        count: arguments.drivers,
        cpu: &arguments.cpu.to_string(),
        threads: arguments.cpu.thousandths().div_ceil(1000).clamp(1, 1024),
        memory: &arguments.memory.to_string(),
        volume: arguments.driver_volume.as_ref().map(ToString::to_string).as_deref(),
        class,
        fingerprint: &access.controller.fingerprint,
    }
    .manifest();
    let operator = tidemark_operator::manifests(Install { namespace, image, class });

    let listing = directory.join("kustomization.yaml");
    if let Ok(found) = fs::read_to_string(&listing)
        && !found.starts_with(include_str!("kustomization.yaml").lines().next().unwrap_or_default())
    {
        return Err(Stop::not_written(format!(
            "{} was not made by `tidemark kubernetes base`: name another directory, or remove the file",
            listing.display()
        )));
    }
    fs::create_dir_all(directory)
        .map_err(|error| Stop::not_written(format!("cannot make {}: {error}", directory.display())))?;
    write(&path, &format!("{controllers}{BETWEEN}{observers_own}\n"), 0o600)?;
    ignore(&directory.join(".gitignore"))?;
    let mut resources = String::new();
    for part in parts {
        let (name, manifests) = match part {
            Part::Controller => ("controller.yaml", &controller),
            Part::Drivers => ("drivers.yaml", &drivers),
            Part::Observers => ("observers.yaml", &observers),
            Part::Operator => ("operator.yaml", &operator),
        };
        write(&directory.join(name), &format!("{}\n", manifests.trim_end()), 0o644)?;
        let _ = writeln!(resources, "- {name}");
    }
    let listed = include_str!("kustomization.yaml").replace("{resources}\n", &resources);
    write(&listing, &listed, 0o644)?;

    let shown = directory.display();
    terminal.remark(&format!("kubectl apply -f {shown}/{ACCESS} && kubectl apply -k {shown}"));
    if is_kept {
        terminal.remark(&format!("tokens and certificates are those that were in {shown}/{ACCESS}"));
    }
    if parts.contains(&Part::Controller) {
        let trust = &access.controller.fingerprint;
        terminal.remark(&format!("the controller's certificate: TIDEMARK_TRUST=sha256:{trust}"));
    }
    if parts.contains(&Part::Observers) {
        let node = tidemark_observe::node("NODE", nodes.port, &access.observers.fingerprint);
        terminal.remark(&found_by(namespace, &node));
    }
    Ok(Exit::Done)
}

/// Tokens and certificates of a team.
// Not `Debug`: it holds secrets.
struct Access {
    operator: String,
    driver: String,
    observe: String,
    controller: SelfSigned,
    observers: SelfSigned,
}

impl Access {
    fn made() -> Result<Self, Stop> {
        let token = || match OwnToken::new("", Role::Viewer) {
            Ok(token) => Ok(token.reveal().to_owned()),
            Err(error) => {
                Err(Stop::not_ready(format!("cannot read random numbers from the system: {error}")))
            }
        };
        let identity = || SelfSigned::once().map_err(Stop::not_ready);
        Ok(Self {
            operator: token()?,
            driver: token()?,
            observe: token()?,
            controller: identity()?,
            observers: identity()?,
        })
    }

    /// What an earlier call has left, if there was one.
    fn kept(path: &Path) -> Result<Option<Self>, Stop> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| format!("{error}")),
        };
        text.and_then(|text| Self::read(&text)).map(Some).map_err(|reason| {
            Stop::not_ready(format!(
                "{}: {reason}; correct it, or remove it for new tokens and certificates",
                path.display()
            ))
        })
    }

    /// Errors are sentences that quote nothing.
    fn read(text: &str) -> Result<Self, String> {
        let mut secrets = BTreeMap::new();
        for manifest in text.split(BETWEEN) {
            let secret: KeptSecret =
                serde_saphyr::from_str(manifest).map_err(|_| "it holds something else than Secrets")?;
            secrets.insert(secret.metadata.name, secret.string_data);
        }
        let mut take = |secret: &str, key: &str| {
            let found = secrets.get_mut(secret).and_then(|data| data.remove(key));
            found.ok_or_else(|| format!("the Secret {secret} has no `{key}`"))
        };
        let (controller, observers) = ("tidemark-controller", "tidemark-observe");
        let mut identity = |secret| {
            let (certificate, key) = (take(secret, "tls.crt")?, take(secret, "tls.key")?);
            SelfSigned::kept(certificate, key)
                .ok_or_else(|| format!("`tls.crt` of the Secret {secret} is no certificate in PEM"))
        };
        Ok(Self {
            controller: identity(controller)?,
            observers: identity(observers)?,
            operator: take(controller, "operator")?,
            driver: take(controller, "driver")?,
            observe: take(observers, "token")?,
        })
    }
}

/// A Secret as it was written.
// Not `Debug`: it holds secrets.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptSecret {
    metadata: Named,
    string_data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// The Secrets of manifests, and all others.
fn apart(manifests: &str) -> (String, String) {
    let (secrets, others): (Vec<_>, Vec<_>) = manifests
        .trim_end()
        .split(BETWEEN)
        .partition(|manifest| manifest.lines().any(|line| line == "kind: Secret"));
    (secrets.join(BETWEEN), others.join(BETWEEN))
}

/// Keeps the file with secrets out of git, and whatever is kept out already.
fn ignore(path: &Path) -> Result<(), Stop> {
    let found = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => {
            text.map_err(|error| Stop::not_written(format!("cannot read {}: {error}", path.display())))?
        }
    };
    if found.lines().any(|line| line.trim() == ACCESS) {
        return Ok(());
    }
    let end = if found.is_empty() || found.ends_with('\n') { "" } else { "\n" };
    write(path, &format!("{found}{end}{ACCESS}\n"), 0o644)
}

/// Writes a file that is new, or that has changed.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), Stop> {
    if fs::read_to_string(path).is_ok_and(|is| is == text) {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Stop::not_written(format!("cannot write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_out_of_git_already_stays_out() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(".gitignore");
        ignore(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "access.yaml\n");
        fs::write(&path, "my-secrets/\n*.key").unwrap();
        for _ in 0..2 {
            ignore(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "my-secrets/\n*.key\naccess.yaml\n");
        }
    }

    #[test]
    fn secrets_are_told_from_what_others_may_see() {
        let text = "# x\nkind: Secret\na: 1\n---\nkind: Service\n---\nkind: Secret\nb: 2\n";
        assert_eq!(
            apart(text),
            ("# x\nkind: Secret\na: 1\n---\nkind: Secret\nb: 2".into(), "kind: Service".into())
        );
    }

    #[test]
    fn a_file_with_access_that_cannot_be_used_says_why_and_quotes_nothing() {
        let refused = |text: &str| Access::read(text).err().unwrap();
        assert_eq!(refused("hunter2"), "it holds something else than Secrets");
        let secret = "kind: Secret\nmetadata: {name: tidemark-controller}\nstringData: ";
        let refused = |data: &str| refused(&format!("{secret}{data}"));
        assert_eq!(refused("{tls.crt: hunter2}"), "the Secret tidemark-controller has no `tls.key`");
        assert_eq!(
            refused("{tls.crt: hunter2, tls.key: hunter2}"),
            "`tls.crt` of the Secret tidemark-controller is no certificate in PEM"
        );
    }
}
