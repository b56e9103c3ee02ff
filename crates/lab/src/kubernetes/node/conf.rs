//! The settings of the node's daemons.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::groups::Groups;
use super::{BASE_IMAGE, Network, directory, name, socket};
use crate::command::Programs;
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::{self, Home};
use crate::kubernetes::conf::{identity, lines, pem};

/// Where distributions have the plugins of the container network interface.
const PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];
/// How many volumes are made at a time. Each takes a second or more, most of it waiting.
const VOLUMES: usize = 16;

/// Writes the settings of a daemon that is about to be started.
pub(super) fn write(
    home: &Home,
    network: Network,
    programs: &Programs,
    daemon: Daemon,
) -> Result<(), LabError> {
    let text = match daemon {
        Daemon::ControllerManager => controller_manager(home),
        Daemon::Scheduler => {
            let identity = identity(home, "scheduler");
            lines(&[("kubeconfig", identity), ("leader-elect", "false".into()), ("secure-port", "0".into())])
        }
        Daemon::Kubelet(number) => kubelet(home, network, number)?,
        Daemon::Containerd(number) => containerd(home, network, number, programs)?,
        Daemon::Csi(csi) => super::csi::settings(home, csi),
        _ => volumes(home, network)?,
    };
    home::write_private(&home.server_conf(daemon), &text)
}

fn controller_manager(home: &Home) -> String {
    lines(&[
        ("kubeconfig", identity(home, "controller-manager")),
        ("leader-elect", "false".into()),
        // Nobody asks it anything.
        ("secure-port", "0".into()),
        ("use-service-account-credentials", "true".into()),
        ("service-account-private-key-file", pem(home, "accounts.key")),
        ("root-ca-file", pem(home, "ca.crt")),
    ])
}

fn kubelet(home: &Home, network: Network, number: usize) -> Result<String, LabError> {
    let resolver = home.confs().join("resolv.conf");
    // There is no name service for pods.
    home::write_private(&resolver, "")?;
    let endpoint = format!("unix://{}", socket(home, number).display());
    let (identity_name, address) = (super::client(number), network.node(number));
    let settings = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pem(home, "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pem(home, &format!("{identity_name}.crt")),
        "tlsPrivateKeyFile": pem(home, &format!("{identity_name}.key")),
        "containerRuntimeEndpoint": endpoint,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", Groups::of_node(home, number).name()),
        "failCgroupV1": false,
        "failSwapOn": false,
        "resolvConf": resolver,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "makeIPTablesUtilChains": false,
        // It may lack the right to be spared when memory runs out.
        "oomScoreAdj": 0,
        "maxPods": 500,
        // Images cannot be pulled again, and the disk is not the lab's alone.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%"},
    });
    Ok(lines(&[
        ("config", file(home, &format!("{}.json", Daemon::Kubelet(number)), &settings)?),
        ("kubeconfig", identity(home, &identity_name)),
        ("hostname-override", name(number)),
        ("node-ip", address.to_string()),
    ]))
}

fn volumes(home: &Home, network: Network) -> Result<String, LabError> {
    let of_node = |number| json!({"node": name(number), "paths": [directory(home, number).join("volumes")]});
    let paths = json!({
        "nodePathMap": (0..network.nodes()).map(of_node).collect::<Vec<_>>(),
        "setupCommand": "/bin/make-volume",
        "teardownCommand": "/bin/remove-volume",
    });
    let helper = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "volume"},
        "spec": {
            // It needs no network, and starts sooner without one.
            "hostNetwork": true,
            "automountServiceAccountToken": false,
            "containers": [{"name": "helper-pod", "image": BASE_IMAGE, "imagePullPolicy": "Never"}],
        },
    });
    let options = lines(&[
        ("config", file(home, "volumes.json", &paths)?),
        ("helper-pod-file", file(home, "volume-helper.json", &helper)?),
        ("helper-image", BASE_IMAGE.into()),
        ("kubeconfig", home.kubeconfig().display().to_string()),
        ("namespace", "kube-system".into()),
        ("service-account-name", "default".into()),
        ("worker-threads", VOLUMES.to_string()),
    ]);
    Ok(format!("start\n{options}"))
}

fn containerd(home: &Home, network: Network, number: usize, programs: &Programs) -> Result<String, LabError> {
    let networks = directory(home, number).join("network-plugins");
    home::make_directory(&networks)?;
    home::write_private(&networks.join("lab.conflist"), &network.plugins(home, number).to_string())?;
    let runtime = "plugins.'io.containerd.grpc.v1.cri'";
    Ok(format!(
        "version = 2\nroot = '{root}'\n\
         disabled_plugins = ['io.containerd.internal.v1.opt', 'io.containerd.snapshotter.v1.aufs', \
         'io.containerd.snapshotter.v1.btrfs', 'io.containerd.snapshotter.v1.devmapper', 'io.containerd.snapshotter.v1.zfs']\n\
         [grpc]\naddress = '{socket}'\n\
         [{runtime}]\nsandbox_image = '{BASE_IMAGE}'\nrestrict_oom_score_adj = true\nnetns_mounts_under_state_dir = true\n\
         [{runtime}.cni]\nbin_dir = '{plugins}'\nconf_dir = '{networks}'\n\
         [{runtime}.containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\n\
         [{runtime}.containerd.runtimes.runc.options]\nBinaryName = '{runc}'\n",
        root = directory(home, number).join("containerd").display(),
        socket = socket(home, number).display(),
        plugins = plugins()?.display(),
        networks = networks.display(),
        runc = programs.path("runc")?.display(),
    ))
}

/// The directory of the plugins for networks.
pub(super) fn plugins() -> Result<PathBuf, LabError> {
    let found = PLUGINS.map(PathBuf::from).into_iter().find(|directory| directory.join("bridge").is_file());
    found.ok_or(LabError::MissingPrograms {
        names: vec!["the network plugin `bridge`"],
        install: crate::command::NODE.install,
    })
}

/// Writes a file of settings and returns its path.
fn file(home: &Home, name: &str, content: &Value) -> Result<String, LabError> {
    let path = home.confs().join(name);
    home::write_private(&path, &content.to_string())?;
    Ok(path.display().to_string())
}
