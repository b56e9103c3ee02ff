//! The lab's record, `lab.json`: what the lab is made of and how to reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::ops::Range;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::Home;
use crate::layout::{Layout, Media};
use crate::system::System;

/// The version of the record's form.
const VERSION: u32 = 1;

/// How clients sign in to the gateway. Debug output hides the keys.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// The gateway's user, as `radosgw-admin --uid` takes it.
    pub user: String,
    /// The S3 access key.
    pub access_key: String,
    /// The S3 secret key.
    pub secret_key: String,
    /// The Swift user, written `account:user`.
    pub swift_user: String,
    /// The Swift user's key.
    pub swift_key: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("user", &self.user)
            .field("swift_user", &self.swift_user)
            .finish_non_exhaustive()
    }
}

/// What a lab is made of. It is fixed when the lab is created, but for the gateways' ports and the limits of
/// slow devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    /// Ceph's name for the cluster.
    pub(super) fsid: String,
    /// How many OSDs keep data. Those of a cache come on top.
    pub(super) osds: usize,
    /// The size of each data OSD's store, in bytes.
    pub(super) osd_bytes: u64,
    /// The monitor's port on 127.0.0.1.
    pub(super) monitor_port: u16,
    /// The gateways' ports on 127.0.0.1. Labs made before there could be several have a number.
    #[serde(alias = "gateway_port", deserialize_with = "one_or_several")]
    pub(super) gateway_ports: Vec<u16>,
    /// The devices below the OSDs; none in a plain layout, as in labs made before there were others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) media: Option<Media>,
    /// Whether there is a file system, mounted in the lab's directory.
    #[serde(default)]
    pub(super) filesystem: bool,
    /// How many copies of each object are kept, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) copies: Option<usize>,
}

impl Shape {
    /// What the storage lies on.
    pub(super) fn layout(&self) -> Layout {
        self.media.as_ref().map_or(Layout::Plain, |media| media.layout)
    }

    /// The numbers of the OSDs that the cache consists of: they follow those of the data OSDs.
    pub(super) fn cache_osds(&self) -> Range<usize> {
        self.osds..self.osds + self.media.as_ref().map_or(0, Media::cache_osds)
    }

    /// How many OSDs there are, those of a cache included.
    pub(super) fn all_osds(&self) -> usize {
        self.cache_osds().end
    }
    /// How many copies of each object are kept: unless asked otherwise, two where there are two OSDs, so that writes
    /// are replicated for real.
    pub(super) fn copies(&self) -> usize {
        self.copies.unwrap_or(2).min(self.osds)
    }

    /// All daemons of the cluster, in the order of their start.
    pub(super) fn daemons(&self) -> Vec<Daemon> {
        Daemon::all(self.all_osds(), self.gateway_ports.len(), self.filesystem)
    }

    /// The gateways and their ports.
    pub(super) fn gateways(&self) -> impl Iterator<Item = (Daemon, u16)> {
        self.gateway_ports.iter().enumerate().map(|(number, port)| (Daemon::Gateway(number), *port))
    }

    /// The gateways' S3 endpoints.
    pub(super) fn endpoints(&self) -> Vec<String> {
        self.gateway_ports.iter().map(|port| endpoint(*port)).collect()
    }

    /// The first gateway's.
    pub(super) fn endpoint(&self) -> String {
        endpoint(self.gateway_ports.first().copied().unwrap_or_default())
    }

    /// Where Swift clients (TempAuth, v1) sign in.
    pub(super) fn swift_auth_url(&self) -> String {
        self.endpoint() + "/auth/v1.0"
    }
}

/// The S3 endpoint of a gateway.
pub(super) fn endpoint(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u16>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Ports {
        One(u16),
        Several(Vec<u16>),
    }
    match Ports::deserialize(deserializer)? {
        Ports::One(port) => Ok(vec![port]),
        Ports::Several(ports) if ports.is_empty() => Err(D::Error::invalid_length(0, &"at least one port")),
        Ports::Several(ports) => Ok(ports),
    }
}

/// What a lab of some system is made of.
pub(super) trait Made: Clone + Serialize + DeserializeOwned {
    /// How clients sign in to it.
    type Credentials: Clone + Serialize + DeserializeOwned;

    /// What is asked for, in words, by whoever looks for such a lab.
    const ASKED: &'static str;

    /// Whether such a lab runs the system.
    fn is_of(system: System) -> bool;

    /// The system.
    fn system(&self) -> System;

    /// Where clients find it, by names for shell scripts.
    fn addresses(&self) -> BTreeMap<&'static str, String>;
}

impl Made for Shape {
    type Credentials = Credentials;

    const ASKED: &'static str = "ceph";

    fn is_of(system: System) -> bool {
        system == System::Ceph
    }

    fn system(&self) -> System {
        System::Ceph
    }

    fn addresses(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([("endpoint", self.endpoint()), ("swift_auth_url", self.swift_auth_url())])
    }
}

/// What is known about a lab.
#[derive(Clone, Debug)]
pub(super) struct Record<S: Made = Shape> {
    pub(super) shape: S,
    /// None until the lab's creation has finished.
    pub(super) credentials: Option<S::Credentials>,
}

/// The record's form on disk: flat, so that a shell script finds `.endpoint` and `.access_key` at the top.
#[derive(Serialize)]
struct Written<'a, S: Made> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    addresses: BTreeMap<&'static str, String>,
    #[serde(flatten)]
    shape: &'a S,
    #[serde(flatten)]
    credentials: &'a Option<S::Credentials>,
}

/// What every record begins with.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    /// Labs made before there were others are clusters.
    #[serde(default = "System::ceph")]
    system: System,
    complete: bool,
}

/// What is read of a record besides.
#[derive(Deserialize)]
struct Body<S, C> {
    #[serde(flatten)]
    shape: S,
    #[serde(flatten)]
    credentials: Option<C>,
}

/// The system of the lab in a home; none if there is no lab.
pub(super) fn system(home: &Home) -> Result<Option<System>, LabError> {
    let Some(text) = text(home)? else { return Ok(None) };
    head(home, &text).map(|head| Some(head.system))
}

fn text(home: &Home) -> Result<Option<Vec<u8>>, LabError> {
    let path = home.record();
    match std::fs::read(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LabError::file("read", path)(error)),
    }
}

fn bad(home: &Home, why: String) -> LabError {
    LabError::BadRecord { path: home.record(), why }
}

fn parse<T: DeserializeOwned>(home: &Home, text: &[u8]) -> Result<T, LabError> {
    // The parser's own message could quote a key.
    serde_json::from_slice(text).map_err(|error| {
        bad(home, format!("line {}, column {} is not as written", error.line(), error.column()))
    })
}

fn head(home: &Home, text: &[u8]) -> Result<Head, LabError> {
    let head: Head = parse(home, text)?;
    match head.version {
        VERSION => Ok(head),
        other => Err(bad(home, format!("it has version {other} and not {VERSION}"))),
    }
}

impl<S: Made> Record<S> {
    /// Reads the record; none if there is no lab.
    pub(super) fn load(home: &Home) -> Result<Option<Self>, LabError> {
        let Some(text) = text(home)? else { return Ok(None) };
        let head = head(home, &text)?;
        if !S::is_of(head.system) {
            let (dir, has) = (home.dir().to_owned(), head.system);
            return Err(LabError::OtherSystem { dir, has, asked: S::ASKED });
        }
        let Body { shape, credentials } = parse::<Body<S, S::Credentials>>(home, &text)?;
        // Without this a record with a key cut out would pass for an unfinished lab, and `up` would clear it.
        if head.complete != credentials.is_some() {
            return Err(bad(home, "its keys are missing".into()));
        }
        Ok(Some(Self { shape, credentials }))
    }

    /// Writes the record, readable by its owner only and never half.
    pub(super) fn save(&self, home: &Home) -> Result<(), LabError> {
        let path = home.record();
        let complete = self.credentials.is_some();
        let written = Written {
            head: Head { version: VERSION, system: self.shape.system(), complete },
            addresses: self.shape.addresses(),
            shape: &self.shape,
            credentials: &self.credentials,
        };
        let save = || {
            let mut file = tempfile::NamedTempFile::new_in(home.dir())?; // made with mode 0600
            serde_json::to_writer_pretty(&mut file, &written)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(std::io::Error::from)
        };
        save().map_err(LabError::file("write", &path))?;
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::layout::tests::media;

    pub(crate) fn shape() -> Shape {
        Shape {
            fsid: "5fd7b2e4-0000-4000-8000-000000000000".into(),
            osds: 3,
            osd_bytes: 10 << 30,
            monitor_port: 23_300,
            gateway_ports: vec![27_480],
            media: None,
            filesystem: false,
            copies: None,
        }
    }

    fn credentials() -> Credentials {
        Credentials {
            user: "tidemark".into(),
            access_key: "PUBLIC-PART".into(),
            secret_key: "SECRET-1".into(),
            swift_user: "tidemark:swift".into(),
            swift_key: "SECRET-2".into(),
        }
    }

    fn home() -> (tempfile::TempDir, Home) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::prepare(directory.path()).unwrap();
        (directory, home)
    }

    #[test]
    fn a_record_comes_back_as_it_was_saved_and_only_its_owner_reads_it() {
        let (_directory, home) = home();
        assert!(Record::<Shape>::load(&home).unwrap().is_none());
        Record { shape: shape(), credentials: None }.save(&home).unwrap();
        assert_eq!(Record::<Shape>::load(&home).unwrap().unwrap().credentials, None);
        Record { shape: shape(), credentials: Some(credentials()) }.save(&home).unwrap();
        let record = Record::<Shape>::load(&home).unwrap().unwrap();
        assert_eq!(record.shape, shape());
        assert_eq!(record.credentials, Some(credentials()));
        assert_eq!(home.record().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(home.record()).unwrap()).unwrap();
        assert_eq!(json["endpoint"], "http://127.0.0.1:27480");
        assert_eq!(json["swift_auth_url"], "http://127.0.0.1:27480/auth/v1.0");
        assert_eq!(json["secret_key"], "SECRET-1");
    }

    #[test]
    fn the_devices_of_a_layout_are_recorded_and_a_record_without_any_is_plain() {
        let (_directory, home) = home();
        for layout in Layout::ALL {
            let media = (layout != Layout::Plain).then(|| media(layout));
            let shape = Shape { media, ..shape() };
            Record { shape: shape.clone(), credentials: None }.save(&home).unwrap();
            let text = std::fs::read_to_string(home.record()).unwrap();
            assert_eq!(text.contains("media"), layout != Layout::Plain, "{text}");
            let read = Record::<Shape>::load(&home).unwrap().unwrap().shape;
            assert_eq!((read.layout(), &read), (layout, &shape));
            assert_eq!(read.cache_osds().len(), if layout == Layout::Reference2 { 2 } else { 0 });
        }
    }

    #[test]
    fn a_record_of_a_lab_with_one_gateway_is_read_as_it_was_written_then() {
        let (_directory, home) = home();
        Record { shape: shape(), credentials: Some(credentials()) }.save(&home).unwrap();
        let text = std::fs::read_to_string(home.record()).unwrap();
        let (before, after) = text.split_once("\"gateway_ports\": [").unwrap();
        let after = after.split_once(']').unwrap().1;
        std::fs::write(home.record(), format!("{before}\"gateway_port\": 27480{after}")).unwrap();
        assert_eq!(Record::<Shape>::load(&home).unwrap().unwrap().shape, shape());
        std::fs::write(home.record(), format!("{before}\"gateway_ports\": []{after}")).unwrap();
        assert!(matches!(Record::<Shape>::load(&home), Err(LabError::BadRecord { .. })));
    }

    #[test]
    fn a_damaged_record_is_an_error_and_not_an_unfinished_lab() {
        let (_directory, home) = home();
        Record { shape: shape(), credentials: Some(credentials()) }.save(&home).unwrap();
        let whole = std::fs::read_to_string(home.record()).unwrap();
        for (from, to, why) in [
            ("\"secret_key\"", "\"other\"", "its keys are missing"),
            ("\"version\": 1", "\"version\": 2", "version 2"),
            ("\"osds\": 3", "\"osds\": \"SECRET-1\"", "is not as written"),
        ] {
            std::fs::write(home.record(), whole.replace(from, to)).unwrap();
            let error = Record::<Shape>::load(&home).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
        }
    }

    #[test]
    fn debug_output_hides_the_keys() {
        let text = format!("{:?}", Record { shape: shape(), credentials: Some(credentials()) });
        assert!(
            text.contains("tidemark:swift") && !text.contains("SECRET") && !text.contains("PUBLIC"),
            "{text}"
        );
    }
}
