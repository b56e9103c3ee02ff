//! Names of Kubernetes: labels of DNS for what we name, subdomains for what others have named.

use std::net::IpAddr;
use tidemark_keys::Problem;
use tidemark_keys::kinds::Parsed;

/// The longest label.
const LONGEST_LABEL: usize = 63;
/// The longest subdomain.
const LONGEST_SUBDOMAIN: usize = 253;
/// The longest name of a node up to its first dot, so that names of claims made of it are labels, too: Rook appends up to 19 characters.
pub(crate) const LONGEST_HOST: usize = 44;

/// A label: lower-case letters, digits and hyphens.
pub const LABEL: Parsed<String> = Parsed("name", |text| match is_label(text) {
    true => Ok(text.to_owned()),
    false => Err(Problem::new(
        format!("'{text}' is not a name that Kubernetes allows here"),
        format!(
            "write 1 to {LONGEST_LABEL} lower-case letters, digits and hyphens, with a letter first and no hyphen last"
        ),
    )),
});

/// Labels with dots between them: names of nodes and of classes.
pub const SUBDOMAIN: Parsed<String> = Parsed("name", |text| match is_subdomain(text) {
    true => Ok(text.to_owned()),
    false => Err(Problem::new(
        format!("'{text}' is not a name that Kubernetes allows here"),
        "write lower-case letters, digits, hyphens and dots, as `kubectl get` shows the name",
    )),
});

/// The name that somebody gave to a pool or a file system of Ceph's, which may be more than a label.
pub(crate) const OF_CEPH: Parsed<String> = Parsed("name", |text| {
    let is_plain = |one: u8| one.is_ascii_alphanumeric() || matches!(one, b'.' | b'_' | b'-');
    match !text.is_empty() && text.len() <= LONGEST_SUBDOMAIN && text.bytes().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("'{text}' is not a name of Ceph's"),
            "write letters, digits, dots, underscores and hyphens, as `ceph osd pool ls` or `ceph fs ls` shows the name",
        )),
    }
});

/// What Rook's own Secrets and ConfigMaps begin with; a claim makes one of each, of its own name.
const OF_ROOK: &str = "rook-";

/// A label that is also a bucket's name.
pub(crate) const BUCKET: Parsed<String> = Parsed("name", |text| {
    if text.starts_with(OF_ROOK) {
        let message =
            format!("'{text}' may be the name of a Secret of Rook's, and the claim would make one, too");
        return Err(Problem::new(message, format!("choose a name that does not begin with {OF_ROOK}")));
    }
    match is_label(text) && text.len() >= 3 {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("'{text}' is not a name for a bucket and its claim"),
            "write 3 to 63 lower-case letters, digits and hyphens, with a letter first and no hyphen last",
        )),
    }
});

/// The address of a server: an IP address, or a name.
pub(crate) const ADDRESS: Parsed<String> =
    Parsed("address", |text| match text.parse::<IpAddr>().is_ok() || is_subdomain(text) {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("'{text}' is not an address"),
            "write an IP address or a name, without scheme and port",
        )),
    });

/// The path of a block device.
pub(crate) const DEVICE: Parsed<String> = Parsed("path of a device", |text| {
    let is_plain = !text.contains("//") && !text.split('/').any(|part| matches!(part, "." | ".."));
    let names_one = text.strip_prefix("/dev/").is_some_and(|rest| !rest.is_empty() && !rest.ends_with('/'));
    match is_plain && names_one && !text.contains(char::is_whitespace) {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("'{text}' is not the path of a device"),
            "write it in full, such as /dev/nvme0n1p1",
        )),
    }
});

/// The path of a directory on the nodes.
pub(crate) const DIRECTORY: Parsed<String> = Parsed("path", |text| {
    let is_plain = !text.contains("//") && !text.split('/').any(|part| matches!(part, "." | ".."));
    match is_plain && text.starts_with('/') && text.len() > 1 {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("'{text}' is not the path of a directory"),
            "write it in full, such as /var/lib/rook",
        )),
    }
});

/// An image whose version is fixed: by a tag, or by a digest.
pub(crate) const IMAGE: Parsed<String> = Parsed("image with its tag", |text| {
    let help =
        "write its tag or digest, as in quay.io/ceph/ceph:v20.2.4: what is compared must be the same Ceph";
    let (name, digest) = text.split_once('@').map_or((text, None), |(name, digest)| (name, Some(digest)));
    // A colon before the last slash belongs to a port.
    let file = name.rsplit('/').next().unwrap_or(name);
    let tag = file.split_once(':').map(|(_, tag)| tag);
    let is_fixed = match (digest, tag) {
        (Some(digest), _) => digest.strip_prefix("sha256:").is_some_and(is_sha256),
        (None, Some(tag)) => !tag.is_empty() && tag != "latest",
        (None, None) => false,
    };
    let is_plain = !file.is_empty() && !file.starts_with(':') && !text.contains(char::is_whitespace);
    match is_fixed && is_plain {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(format!("'{text}' does not say which version it is"), help)),
    }
});

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|one| one.is_ascii_hexdigit())
}

/// Whether a text is a label that begins with a letter, as the strictest of Kubernetes' names (those of services) must.
fn is_label(text: &str) -> bool {
    text.len() <= LONGEST_LABEL && text.starts_with(|one: char| one.is_ascii_lowercase()) && is_part(text)
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= LONGEST_SUBDOMAIN && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let is_letter = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit();
    let ends_well = |one: Option<u8>| one.is_some_and(is_letter);
    text.bytes().all(|one| is_letter(one) || one == b'-')
        && ends_well(text.bytes().next())
        && ends_well(text.bytes().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_keys::Kind as _;

    #[test]
    fn names_are_those_that_an_api_server_takes() {
        let long = "a".repeat(LONGEST_LABEL + 1);
        for name in ["", "-a", "a-", "A", "a_b", "a.b", "1a", "ä", &long] {
            assert!(LABEL.read(name).is_err(), "{name}");
        }
        assert!(["a", "a-1", &long[1..]].into_iter().all(|name| LABEL.read(name).is_ok()));
        assert!(
            ["node-1", "10.0.0.1", "node1.example.org"].into_iter().all(|name| SUBDOMAIN.read(name).is_ok())
        );
        assert!(["", ".", "a..b", "a.-b", "Node"].into_iter().all(|name| SUBDOMAIN.read(name).is_err()));
        assert!(BUCKET.read("ab").is_err() && BUCKET.read("abc").is_ok());
        assert!(BUCKET.read("rook-ceph-mon").is_err(), "Rook has a Secret of that name");
        assert!(["replicapool", "cephfs_data", ".mgr"].into_iter().all(|name| OF_CEPH.read(name).is_ok()));
        assert!(["", "a b", "µ", "a/b"].into_iter().all(|name| OF_CEPH.read(name).is_err()));
    }

    #[test]
    fn devices_and_directories_are_whole_paths() {
        assert!(
            ["/dev/sdb", "/dev/disk/by-id/x", "/dev/cas1-1p1"]
                .into_iter()
                .all(|path| DEVICE.read(path).is_ok())
        );
        for path in
            ["sdb", "/dev/", "/dev", "/etc/passwd", "/dev/../etc/passwd", "/dev//sdb", "/dev/s b", "/dev/x/"]
        {
            assert!(DEVICE.read(path).is_err(), "{path}");
        }
        assert!(DIRECTORY.read("/var/lib/rook").is_ok());
        assert!(["/", "rook", "/var/../etc", ""].into_iter().all(|path| DIRECTORY.read(path).is_err()));
    }

    #[test]
    fn an_image_says_its_version() {
        let digest = format!("ceph@sha256:{}", "0a".repeat(32));
        for image in ["quay.io/ceph/ceph:v20.2.4", "registry:5000/ceph:v19", &digest] {
            assert!(IMAGE.read(image).is_ok(), "{image}");
        }
        for image in
            ["quay.io/ceph/ceph", "ceph:latest", "registry:5000/ceph", "ceph:", "ceph@sha256:0a", ":v1", ""]
        {
            assert!(IMAGE.read(image).is_err(), "{image}");
        }
    }
}
