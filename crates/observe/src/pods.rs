//! Of which pod a process is: its control group has the pod's number, and the kubelet keeps the pod's logs in a directory with both number
//! and name. Nobody has to be asked.

use std::fs;
use std::path::Path;

/// Where the kubelet keeps logs: `NAMESPACE_POD_NUMBER`.
const LOGS: &str = "/var/log/pods";

/// The longest name of a pod (RFC 1123, subdomain).
const LONGEST: usize = 253;

/// The name of the pod that a process is in; `None` outside of pods, and where their logs cannot be read.
pub(crate) fn pod_of(pid: u32) -> Option<String> {
    let number = number(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)?;
    name(Path::new(LOGS), &number)
}

/// The pod's number in `/proc/PID/cgroup`: of `pod1b4e28ba-2fa1-...`, or of `kubepods-burstable-pod1b4e28ba_2fa1_....slice` where systemd keeps
/// the groups, in which hyphens are separators.
fn number(cgroup: &str) -> Option<String> {
    let groups = cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut parts = groups.flat_map(|path| path.split('/'));
    parts.find_map(|part| {
        let part = part.strip_suffix(".slice").unwrap_or(part);
        let (before, number) = part.rsplit_once("pod")?;
        let is_of_kubelet = before.is_empty() || (before.starts_with("kubepods") && before.ends_with('-'));
        let number = number.replace('_', "-");
        // A UUID, of pods of the node itself without hyphens.
        let digits = number.bytes().filter(u8::is_ascii_hexdigit).count();
        let is_number = digits == 32 && number.bytes().all(|one| one.is_ascii_hexdigit() || one == b'-');
        (is_of_kubelet && is_number).then_some(number)
    })
}

/// The name that goes with a number.
fn name(logs: &Path, number: &str) -> Option<String> {
    let entries = fs::read_dir(logs).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.into_iter().find_map(|name| {
        let mut parts = name.split('_');
        let (_, pod, own) = (parts.next()?, parts.next()?, parts.next()?);
        let is_plain = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || b"-.".contains(&one);
        let is_name = (1..=LONGEST).contains(&pod.len()) && pod.bytes().all(is_plain);
        (own == number && is_name && parts.next().is_none()).then(|| pod.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: &str = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

    #[test]
    fn the_number_of_a_pod_is_in_its_groups_of_either_kind() {
        let under = NUMBER.replace('-', "_");
        for text in [
            format!("4:memory:/kubepods/burstable/pod{NUMBER}/0a1b\n1:name=systemd:/user.slice\n"),
            format!(
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{under}.slice/cri-containerd-0a.scope\n"
            ),
            format!("0::/../../pod{NUMBER}/0a\n"),
        ] {
            assert_eq!(number(&text).as_deref(), Some(NUMBER), "{text}");
        }
        for text in [
            "0::/user.slice/podman-1.scope\n",
            "0::/system.slice/pod.service\n",
            "",
            "x",
            "1:a:/pod_____________________________________________é",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn the_name_is_that_of_the_directory_with_its_logs() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(name(&directory.path().join("missing"), NUMBER), None);
        for other in ["bench_pg-1_00000000-2fa1-11d2-883f-0016d3cca427", "odd", "a_b"] {
            fs::create_dir(directory.path().join(other)).unwrap();
        }
        assert_eq!(name(directory.path(), NUMBER), None);
        fs::create_dir(directory.path().join(format!("bench_pg-0_{NUMBER}"))).unwrap();
        assert_eq!(name(directory.path(), NUMBER).as_deref(), Some("pg-0"));
    }
}
