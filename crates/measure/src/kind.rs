//! What works and operations are, as data: the words in records, tables and COSBench's files are those of `name`.
//!
//! Records of before have the same words. One that this version does not know is kept as it is (operations) or called
//! [`WorkKind::Other`], never refused.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use utoipa::ToSchema;

/// What a work is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// Makes containers.
    Init,
    /// Makes objects, or fills volumes.
    Prepare,
    /// The load that is measured.
    #[default]
    Normal,
    /// Deletes objects.
    Cleanup,
    /// Deletes containers.
    Dispose,
    /// Only waits, in results of other tools.
    Delay,
    /// Something that this version does not know.
    Other,
}

impl WorkKind {
    const ALL: [WorkKind; 7] = [
        WorkKind::Init,
        WorkKind::Prepare,
        WorkKind::Normal,
        WorkKind::Cleanup,
        WorkKind::Dispose,
        WorkKind::Delay,
        WorkKind::Other,
    ];

    /// The word for tables, COSBench's.
    pub const fn name(self) -> &'static str {
        match self {
            WorkKind::Init => "init",
            WorkKind::Prepare => "prepare",
            WorkKind::Normal => "normal",
            WorkKind::Cleanup => "cleanup",
            WorkKind::Dispose => "dispose",
            WorkKind::Delay => "delay",
            WorkKind::Other => "other",
        }
    }

    /// The kind of this name; a work without one is a load.
    pub fn named(name: &str) -> Self {
        match name {
            "" => WorkKind::Normal,
            name => Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(WorkKind::Other),
        }
    }

    /// Whether it cleans up after others: such works still run after a failure or an interruption.
    pub const fn cleans(self) -> bool {
        matches!(self, WorkKind::Cleanup | WorkKind::Dispose)
    }

    /// Whether it is there to measure something, rather than to make what others need or to clean up.
    pub const fn measures(self) -> bool {
        matches!(self, WorkKind::Normal | WorkKind::Other)
    }
}

impl Serialize for WorkKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for WorkKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::named(&Cow::<str>::deserialize(deserializer)?))
    }
}

/// What an operation is counted as (COSBench's sample type): a `prepare` counts as a write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationClass {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Writes an object part by part.
    MultipartWrite,
    /// Writes objects from files.
    FileWrite,
    /// Writes objects from files, part by part.
    MultipartFileWrite,
    /// Writes files of this machine.
    LocalWrite,
    /// Gives blocks back.
    Trim,
    /// Sees to it that what was written is kept.
    Sync,
    /// The same for data alone, without what a file system knows of them.
    DataSync,
    /// Deletes objects.
    Delete,
    /// Lists objects.
    List,
    /// Asks for an object's properties.
    Head,
    /// Copies an object.
    Copy,
    /// Brings an object back from an archive.
    Restore,
    /// Writes an object's tags.
    PutTags,
    /// Reads an object's tags.
    GetTags,
    /// Locks an object.
    PutRetention,
    /// Reads an object's lock.
    GetRetention,
    /// Makes containers.
    Init,
    /// Deletes containers.
    Dispose,
    /// Anything else, by its name; empty where it is not known.
    Other(Box<str>),
}

/// The names of all classes that have one of their own.
const CLASSES: [(&str, OperationClass); 20] = [
    ("read", OperationClass::Read),
    ("write", OperationClass::Write),
    ("mwrite", OperationClass::MultipartWrite),
    ("filewrite", OperationClass::FileWrite),
    ("mfilewrite", OperationClass::MultipartFileWrite),
    ("localwrite", OperationClass::LocalWrite),
    ("trim", OperationClass::Trim),
    ("fsync", OperationClass::Sync),
    ("fdatasync", OperationClass::DataSync),
    ("delete", OperationClass::Delete),
    ("list", OperationClass::List),
    ("head", OperationClass::Head),
    ("copy", OperationClass::Copy),
    ("restore", OperationClass::Restore),
    ("put_tags", OperationClass::PutTags),
    ("get_tags", OperationClass::GetTags),
    ("put_retention", OperationClass::PutRetention),
    ("get_retention", OperationClass::GetRetention),
    ("init", OperationClass::Init),
    ("dispose", OperationClass::Dispose),
];

impl OperationClass {
    /// The word for tables, COSBench's where it has one.
    pub fn name(&self) -> &str {
        match self {
            OperationClass::Other(name) => name,
            known => CLASSES.iter().find(|(_, class)| class == known).map_or("", |(name, _)| name),
        }
    }

    /// The class of this name.
    pub fn named(name: &str) -> Self {
        let known = CLASSES.iter().find(|(known, _)| *known == name).map(|(_, class)| class.clone());
        known.unwrap_or_else(|| OperationClass::Other(name.into()))
    }

    /// Whether it does something to data, rather than see to it that what was done is kept.
    pub const fn moves_data(&self) -> bool {
        !matches!(self, OperationClass::Sync | OperationClass::DataSync)
    }
}

impl Default for OperationClass {
    fn default() -> Self {
        OperationClass::Other(Box::default())
    }
}

impl Serialize for OperationClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for OperationClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::named(&Cow::<str>::deserialize(deserializer)?))
    }
}

/// The state of the page cache that a document declares for the start of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// What the page cache holds of the volumes is dropped before the load, and reads must come from the device.
    #[default]
    Cold,
    /// Nothing is dropped: reads may come from memory, and that is what is measured.
    Warm,
}

impl Cache {
    /// The word for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Cache::Cold => "cold",
            Cache::Warm => "warm",
        }
    }

    /// Reads `cold` and `warm`; anything else is not known. Records of before have an empty word there.
    pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        let word = Option::<Cow<'_, str>>::deserialize(deserializer)?;
        Ok([Cache::Cold, Cache::Warm].into_iter().find(|state| Some(state.name()) == word.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: for<'de> Deserialize<'de>>(json: &str) -> T {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_words_of_old_records_are_kinds() {
        for kind in WorkKind::ALL {
            assert_eq!(read::<WorkKind>(&serde_json::to_string(&kind).unwrap()), kind);
        }
        assert_eq!(read::<WorkKind>(r#""normal""#), WorkKind::Normal);
        assert_eq!(read::<WorkKind>(r#""""#), WorkKind::Normal);
        assert_eq!(read::<WorkKind>(r#""tune""#), WorkKind::Other);
        assert!(!WorkKind::named("delay").measures() && WorkKind::Other.measures());
    }

    #[test]
    fn the_words_of_old_records_are_classes() {
        for (name, class) in CLASSES {
            assert_eq!((class.name(), OperationClass::named(name)), (name, class.clone()));
        }
        assert_eq!(read::<OperationClass>(r#""fsync""#), OperationClass::Sync);
        let unknown: OperationClass = read(r#""scrub""#);
        assert_eq!(serde_json::to_string(&unknown).unwrap(), r#""scrub""#, "an unknown word is kept");
        assert!(unknown.moves_data() && !OperationClass::DataSync.moves_data());
    }
}
