//! How runs and seconds are written into the file's blobs: as JSON, deflated.
//!
//! Histograms are in it in their V2 encoding, in base 64, which deflate takes back: a binary form of its own saves
//! a fifth at a 2-operation load of 1 000 or 50 000 op/s, which does not pay for its code.

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// The largest blob that is inflated, bytes: far above what any run makes, so that a damaged file cannot take
/// all memory.
const INFLATED_MOST: u64 = 1 << 30;

/// Writes a record into a blob.
pub(crate) fn encode(record: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&serde_json::to_vec(record)?)?;
    encoder.finish()
}

/// Reads a record from a blob.
pub(crate) fn decode<T: DeserializeOwned>(blob: &[u8]) -> io::Result<T> {
    let mut bytes = Vec::new();
    DeflateDecoder::new(blob).take(INFLATED_MOST).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{any_interval, interval, same_interval};
    use proptest::prelude::*;
    use tidemark_measure::record::Run;
    use tidemark_measure::tally::Interval;

    #[test]
    fn damage_is_reported() {
        let whole = encode(&interval(3)).unwrap();
        assert!(decode::<Interval>(&whole).is_ok());
        assert!(decode::<Interval>(&whole[..whole.len() / 2]).is_err());
        assert!(decode::<Interval>(b"").is_err());
        assert!(decode::<Run>(&encode(&"a text").unwrap()).is_err());
    }

    #[test]
    fn records_of_older_versions_stay_readable() {
        let old = encode(&serde_json::json!({ "name": "old", "stages": [{ "works": [{ "workers": 4 }] }] }))
            .unwrap();
        let run: Run = decode(&old).unwrap();
        assert_eq!((run.name.as_str(), run.stages[0].works[0].workers), ("old", 4));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn seconds_come_back(interval in any_interval()) {
            let back = decode(&encode(&interval).unwrap()).unwrap();
            prop_assert!(same_interval(&back, &interval), "{:?} {:?}", back, interval);
        }

        #[test]
        fn no_blob_is_read_with_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (decode::<Interval>(&bytes), decode::<Run>(&bytes));
        }
    }
}
