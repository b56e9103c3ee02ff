//! The lab's record, `lab.json`: what the lab is made of and how to reach it.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::home::Home;
use crate::layout::{Layout, Media};

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

/// What a lab is made of. It is fixed when the lab is created, but for the gateway's port and the limits of
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
    /// The gateway's port on 127.0.0.1.
    pub(super) gateway_port: u16,
    /// The devices below the OSDs; none in a plain layout, as in labs made before there were others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) media: Option<Media>,
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

    /// How many copies of each object are kept: two where there are two OSDs, so that writes are replicated
    /// for real.
    pub(super) fn copies(&self) -> usize {
        self.osds.min(2)
    }

    /// The gateway's S3 endpoint.
    pub(super) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.gateway_port)
    }

    /// Where Swift clients (TempAuth, v1) sign in.
    pub(super) fn swift_auth_url(&self) -> String {
        self.endpoint() + "/auth/v1.0"
    }
}

/// What is known about a lab.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) shape: Shape,
    /// None until the lab's creation has finished.
    pub(super) credentials: Option<Credentials>,
}

/// The record's form on disk: flat, so that a shell script finds `.endpoint` and `.access_key` at the top.
#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    complete: bool,
    endpoint: String,
    swift_auth_url: String,
    #[serde(flatten)]
    shape: Shape,
    #[serde(flatten)]
    credentials: Option<Credentials>,
}

impl Record {
    /// Reads the record; none if there is no lab.
    pub(super) fn load(home: &Home) -> Result<Option<Self>, LabError> {
        let path = home.record();
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LabError::file("read", path)(error)),
        };
        let bad = |why: String| LabError::BadRecord { path: path.clone(), why };
        // The parser's own message could quote a key.
        let parsed = serde_json::from_slice::<Written>(&text);
        let written = parsed.map_err(|error| {
            bad(format!("line {}, column {} is not as written", error.line(), error.column()))
        })?;
        if written.version != VERSION {
            return Err(bad(format!("it has version {} and not {VERSION}", written.version)));
        }
        // Without this a record with a key cut out would pass for an unfinished lab, and `up` would clear it.
        if written.complete != written.credentials.is_some() {
            return Err(bad("its keys are missing".into()));
        }
        Ok(Some(Self { shape: written.shape, credentials: written.credentials }))
    }

    /// Writes the record, readable by its owner only and never half.
    pub(super) fn save(&self, home: &Home) -> Result<(), LabError> {
        let path = home.record();
        let written = Written {
            version: VERSION,
            complete: self.credentials.is_some(),
            endpoint: self.shape.endpoint(),
            swift_auth_url: self.shape.swift_auth_url(),
            shape: self.shape.clone(),
            credentials: self.credentials.clone(),
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
            gateway_port: 27_480,
            media: None,
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
        assert!(Record::load(&home).unwrap().is_none());
        Record { shape: shape(), credentials: None }.save(&home).unwrap();
        assert_eq!(Record::load(&home).unwrap().unwrap().credentials, None);
        Record { shape: shape(), credentials: Some(credentials()) }.save(&home).unwrap();
        let record = Record::load(&home).unwrap().unwrap();
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
            let read = Record::load(&home).unwrap().unwrap().shape;
            assert_eq!((read.layout(), &read), (layout, &shape));
            assert_eq!(read.cache_osds().len(), if layout == Layout::Reference2 { 2 } else { 0 });
        }
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
            let error = Record::load(&home).unwrap_err();
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
