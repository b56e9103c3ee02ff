//! Job files made ready.

use super::*;
use crate::document;
use std::path::PathBuf;

fn ready() -> Ready {
    // Nothing is run, so that any program does.
    Ready { program: Arc::new(Program::stand_in()), method: None }
}

fn plan(text: &str) -> Plan {
    document::read(text).unwrap().0
}

fn opened(ready: &mut Ready, works: &[&Work]) -> Vec<usize> {
    ready.open(works, &mut Vec::new()).unwrap().iter().map(Carrier::works).collect()
}

#[test]
fn jobs_of_one_file_share_a_process() {
    let one = plan("[a]\nioengine=null\n[b]\nioengine=null\n");
    let other = plan("[c]\nioengine=null\n");
    let (a, b, c) = (&one.stages[0].works[0], &one.stages[0].works[1], &other.stages[0].works[0]);
    assert_eq!(opened(&mut ready(), &[a, b]), [2]);
    assert_eq!(opened(&mut ready(), &[a, b, c]), [2, 1]);
    assert_eq!(opened(&mut ready(), &[a, c, b]), [1, 1, 1], "works keep their order");
}

#[test]
fn the_proof_names_what_is_counted_on_and_says_when_nothing_is() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("nowhere");
    let named = plan(&format!("[a]\nfilename={}\ndirect=1\n", path.display()));
    let mut ready = ready();
    opened(&mut ready, &[&named.stages[0].works[0]]);
    let proof = ready.close(&["a remark".to_owned()]).unwrap();
    assert!(
        proof.direct
            && proof.cache == Some(tidemark_measure::kind::Cache::Cold)
            && proof.setup == ["a remark"],
        "{proof:?}"
    );
    let volumes = proof.devices.iter().flat_map(|device| &device.volumes).chain(&proof.unchecked);
    assert!(volumes.into_iter().any(|text| text.contains("nowhere")), "{proof:?}");
    assert!(ready.close(&[]).is_none(), "a stage has one proof");

    let nothing = plan("[a]\nioengine=null\n");
    opened(&mut ready, &[&nothing.stages[0].works[0]]);
    let proof = ready.close(&[]).unwrap();
    assert!(!proof.direct && proof.unchecked[0].contains("names no file or device"), "{proof:?}");
}

#[test]
fn files_are_fios_own_business() {
    let file = FioFile {
        text: String::new(),
        sections: Vec::new(),
        section: "a".into(),
        actions: vec![tidemark_block::job::Action::Write],
        direct: false,
        paths: vec!["/dev/null".into(), "/nonexistent".into()],
    };
    assert_eq!(devices([&file].into_iter()), [], "neither is a block device");
}
