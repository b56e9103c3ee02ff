//! Kubeconfigs as `kubectl` reads them, or what a pod has instead: where an API server is, and who asks.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tidemark_keys::secret::Secret;

/// Where a pod finds who it is.
const OF_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// An API server, and who asks.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) server: String,
    /// Its authority, PEM; `None`: those that everybody trusts.
    pub(crate) authority: Option<Vec<u8>>,
    pub(crate) unverified: bool,
    pub(crate) namespace: String,
    user: User,
    /// Where relative paths of the user begin.
    directory: PathBuf,
}

/// How a request says who asks.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) token: Option<Secret>,
    /// Certificate and key, PEM.
    pub(crate) certificate: Option<(Vec<u8>, Secret)>,
    /// Name and password.
    pub(crate) password: Option<(String, Secret)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    current_context: Option<String>,
    #[serde(default)]
    contexts: Option<Vec<Named<Context>>>,
    #[serde(default)]
    clusters: Option<Vec<Named<Cluster>>>,
    #[serde(default)]
    users: Option<Vec<Named<User>>>,
}

/// Something with a name, under a key that says what it is.
#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "context", alias = "cluster", alias = "user")]
    what: Option<T>,
}

#[derive(Clone, Deserialize)]
struct Context {
    cluster: String,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    namespace: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    #[serde(default)]
    certificate_authority: Option<PathBuf>,
    #[serde(default)]
    certificate_authority_data: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: Option<bool>,
    #[serde(default)]
    tls_server_name: Option<IgnoredAny>,
    #[serde(default)]
    proxy_url: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<Secret>,
    token: Option<Secret>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    password: Option<Secret>,
    exec: Option<Exec>,
    #[serde(rename = "as")]
    another: Option<IgnoredAny>,
    auth_provider: Option<IgnoredAny>,
}

/// A program that gives credentials (`client.authentication.k8s.io`).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exec {
    command: String,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<Vec<Variable>>,
    api_version: String,
}

#[derive(Clone, Deserialize)]
struct Variable {
    name: String,
    value: String,
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// What such a program prints.
#[derive(Deserialize)]
struct ExecCredential {
    status: ExecStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExecStatus {
    token: Option<Secret>,
    client_certificate_data: Option<String>,
    client_key_data: Option<Secret>,
}

impl Access {
    /// That of a context, or of the current one, from this file; else from those that the variable KUBECONFIG names, else from
    /// `~/.kube/config`; in a pod without either, the pod's. Errors are clauses.
    pub(crate) fn find(file: Option<&Path>, context: Option<&str>) -> Result<Self, String> {
        if let Some(file) = file {
            return Self::read(&[file.to_owned()], context);
        }
        let variable = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
        let paths: Vec<PathBuf> = match &variable {
            Some(paths) => std::env::split_paths(paths).filter(|path| !path.as_os_str().is_empty()).collect(),
            None => {
                let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
                home.into_iter().filter(|path| path.is_file()).collect()
            }
        };
        if paths.is_empty() && context.is_none() {
            return Self::of_pod();
        }
        Self::read(&paths, context)
    }

    fn of_pod() -> Result<Self, String> {
        let variable = |name| std::env::var(name).map_err(|_| "there is no kubeconfig".to_owned());
        let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
        let directory = Path::new(OF_POD);
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        Ok(Self {
            server: format!("https://{host}:{port}"),
            authority: Some(read(&directory.join("ca.crt"))?),
            unverified: false,
            namespace: text(&read(&directory.join("namespace"))?),
            user: User { token_file: Some("token".into()), ..User::default() },
            directory: directory.to_owned(),
        })
    }

    /// From these files, of which the first that says something has the last word, as for `kubectl`.
    fn read(paths: &[PathBuf], context: Option<&str>) -> Result<Self, String> {
        let mut files = Vec::new();
        // Those that are not there say nothing, unless none is.
        for path in paths.iter().filter(|path| path.exists() || paths.len() == 1) {
            let content = text(&read(path)?);
            // A parser would quote what it does not understand, which may be a key.
            let file: File = serde_saphyr::from_str(&content)
                .map_err(|_| format!("{} is not a kubeconfig", path.display()))?;
            files.push((path.parent().unwrap_or(Path::new("")).to_owned(), file));
        }
        let current = files.iter().filter_map(|(_, file)| file.current_context.as_deref());
        let name = context.or_else(|| current.into_iter().find(|name| !name.is_empty()));
        let name = name.ok_or("the kubeconfig has no current context")?;
        let (_, chosen) = find(&files, |file| file.contexts.as_ref(), name)
            .ok_or_else(|| format!("the kubeconfig has no context {name}{}", others(&files)))?;
        let (of_cluster, cluster) = find(&files, |file| file.clusters.as_ref(), &chosen.cluster)
            .ok_or_else(|| format!("the kubeconfig has no cluster {}", chosen.cluster))?;
        let (directory, user) = match &chosen.user {
            None => (PathBuf::new(), User::default()),
            Some(user) => find(&files, |file| file.users.as_ref(), user)
                .ok_or_else(|| format!("the kubeconfig has no user {user}"))?,
        };
        // To leave one out would be to ask as somebody else, or elsewhere.
        let unsupported = [
            ("tls-server-name", cluster.tls_server_name.is_some()),
            ("proxy-url", cluster.proxy_url.is_some()),
            ("as", user.another.is_some()),
            ("auth-provider", user.auth_provider.is_some()),
        ];
        if let Some((key, _)) = unsupported.into_iter().find(|(_, is_there)| *is_there) {
            return Err(format!("the context {name} has `{key}`, which Tidemark does not support"));
        }
        let has_user = |url: url::Url| !url.username().is_empty() || url.password().is_some();
        if url::Url::parse(&cluster.server).is_ok_and(has_user) {
            return Err(format!(
                "the server of the context {name} has a user in its address: give the user its `username` and `password`"
            ));
        }
        let authority = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
            (Some(data), _) => Some(decoded(data, "certificate-authority-data")?),
            (None, Some(file)) => Some(read(&of_cluster.join(file))?),
            (None, None) => None,
        };
        Ok(Self {
            server: cluster.server.trim_end_matches('/').to_owned(),
            authority,
            unverified: cluster.insecure_skip_tls_verify.unwrap_or(false),
            namespace: chosen.namespace.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".into()),
            user,
            directory,
        })
    }

    /// What to show the API server, made anew where it may have become old. Errors are clauses.
    pub(crate) fn credentials(&self) -> Result<Credentials, String> {
        let user = &self.user;
        if let Some(exec) = &user.exec {
            return exec.run(&self.directory);
        }
        let file = |path: &Path| read(&self.directory.join(path));
        let certificate = match (&user.client_certificate_data, &user.client_certificate) {
            (Some(data), _) => Some(decoded(data, "client-certificate-data")?),
            (None, Some(path)) => Some(file(path)?),
            (None, None) => None,
        };
        let key = match (&user.client_key_data, &user.client_key) {
            (Some(data), _) => Some(text(&decoded(data.reveal(), "client-key-data")?)),
            (None, Some(path)) => Some(text(&file(path)?)),
            (None, None) => None,
        };
        let token = match (&user.token_file, &user.token) {
            (Some(path), _) => Some(Secret::new(text(&file(path)?))),
            (None, token) => token.clone(),
        };
        Ok(Credentials {
            token,
            certificate: certificate.zip(key.map(Secret::new)),
            password: user.username.clone().zip(user.password.clone()),
        })
    }
}

impl Exec {
    fn run(&self, directory: &Path) -> Result<Credentials, String> {
        let Self { command, args, env, api_version } = self;
        let info = serde_json::json!({
            "kind": "ExecCredential", "apiVersion": api_version, "spec": {"interactive": false}
        });
        // A name without a slash is looked for in PATH; another one is relative to the kubeconfig.
        let program = if command.contains('/') { directory.join(command) } else { command.into() };
        let variables = env.iter().flatten().map(|variable| (&variable.name, &variable.value));
        let run = Command::new(program)
            .args(args.iter().flatten())
            .envs(variables.collect::<BTreeMap<_, _>>())
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output();
        let output =
            run.map_err(|error| format!("{command}, which gives credentials, does not start: {error}"))?;
        if !output.status.success() {
            return Err(format!("{command}, which gives credentials, has failed ({})", output.status));
        }
        // What it prints is secret.
        let read = serde_json::from_slice(&output.stdout);
        let ExecCredential { status } =
            read.map_err(|_| format!("{command} does not print credentials as `ExecCredential`"))?;
        let key = status.client_key_data;
        Ok(Credentials {
            token: status.token,
            certificate: status.client_certificate_data.map(String::into_bytes).zip(key),
            password: None,
        })
    }
}

/// What has a name in the first file that has it, and the directory of that file.
fn find<T: Clone>(
    files: &[(PathBuf, File)],
    list: impl Fn(&File) -> Option<&Vec<Named<T>>>,
    name: &str,
) -> Option<(PathBuf, T)> {
    files.iter().find_map(|(directory, file)| {
        let named = list(file)?.iter().find(|named| named.name == name)?;
        Some((directory.clone(), named.what.clone()?))
    })
}

fn others(files: &[(PathBuf, File)]) -> String {
    let names: Vec<_> = files
        .iter()
        .filter_map(|(_, file)| file.contexts.as_ref())
        .flatten()
        .map(|one| one.name.as_str())
        .collect();
    if names.is_empty() { String::new() } else { format!(", only {}", names.join(", ")) }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn decoded(data: &str, key: &str) -> Result<Vec<u8>, String> {
    BASE64_STANDARD.decode(data.trim()).map_err(|_| format!("`{key}` of the kubeconfig is not base64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(directory: &Path, name: &str, content: &str) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    const FIRST: &str = "\
apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: c, user: u, namespace: bench}}
- {name: two, context: {cluster: d}}
clusters:
- {name: c, cluster: {server: 'https://10.0.0.1:6443/', certificate-authority: ca.pem}}
users:
- {name: u, user: {tokenFile: token}}
";

    #[test]
    fn files_are_read_as_kubectl_reads_them() {
        let place = tempfile::tempdir().unwrap();
        let first = written(place.path(), "first", FIRST);
        let second = "current-context: two\nclusters:\n- {name: c, cluster: {server: 'http://wrong'}}\n\
            - {name: d, cluster: {server: 'https://d', certificate-authority-data: aGVsbG8=}}\n";
        let second = written(place.path(), "second", second);
        written(place.path(), "ca.pem", "authority");
        written(place.path(), "token", "hunter2\n");
        let missing = place.path().join("missing");
        let access = Access::read(&[missing.clone(), first.clone(), second.clone()], None).unwrap();
        assert_eq!((access.server.as_str(), access.namespace.as_str()), ("https://10.0.0.1:6443", "bench"));
        assert_eq!(access.authority.as_deref(), Some(&b"authority"[..]));
        assert_eq!(access.credentials().unwrap().token.unwrap().reveal(), "hunter2");
        let other = Access::read(&[first.clone(), second], Some("two")).unwrap();
        assert_eq!((other.server.as_str(), other.namespace.as_str()), ("https://d", "default"));
        assert_eq!(other.authority.as_deref(), Some(&b"hello"[..]));
        let error = Access::read(&[first], Some("three")).unwrap_err();
        assert_eq!(error, "the kubeconfig has no context three, only one, two");
        assert!(Access::read(&[missing], None).unwrap_err().contains("missing"));
        assert!(!format!("{access:?}").contains("hunter2"));
    }

    #[test]
    fn a_program_gives_credentials() {
        let place = tempfile::tempdir().unwrap();
        let exec = "#!/bin/sh\ntest \"$A\" = 1 || exit 1\nprintf '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s\"}}' \"$1\"\n";
        let program = written(place.path(), "give", exec);
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = |value: &str| {
            FIRST.replace(
                "{tokenFile: token}",
                &format!(
                    "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: ./give, args: [t1], env: [{{name: A, value: '{value}'}}]}}}}"
                ),
            )
        };
        written(place.path(), "ca.pem", "authority");
        let credentials = |value: &str| {
            let path = written(place.path(), "config", &config(value));
            Access::read(&[path], None).unwrap().credentials()
        };
        assert_eq!(credentials("1").unwrap().token.unwrap().reveal(), "t1");
        assert!(credentials("2").unwrap_err().contains("has failed"));
    }

    #[test]
    fn what_is_wrong_is_not_quoted() {
        let place = tempfile::tempdir().unwrap();
        let path = written(place.path(), "config", "users: hunter2");
        let error = Access::read(&[path], None).unwrap_err();
        assert!(error.ends_with("is not a kubeconfig") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn what_would_be_left_out_is_refused_and_no_password_is_shown() {
        let place = tempfile::tempdir().unwrap();
        for (from, to, expected) in [
            ("{tokenFile: token}", "{tokenFile: token, as: limited}", "`as`"),
            ("{tokenFile: token}", "{auth-provider: {name: gcp}}", "`auth-provider`"),
            ("certificate-authority: ca.pem", "proxy-url: 'http://p'", "`proxy-url`"),
            ("certificate-authority: ca.pem", "tls-server-name: n", "`tls-server-name`"),
            ("https://10.0.0.1", "https://me:hunter2@10.0.0.1", "a user in its address"),
        ] {
            assert!(FIRST.contains(from));
            let path = written(place.path(), "config", &FIRST.replace(from, to));
            let error = Access::read(&[path], None).unwrap_err();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
    }
}
