//! Plans for a comparison of the native engine with fio.

use crate::document::tests::{job, names, on_files, plan, registry, with_load};
use crate::job::IoEngine;
use tidemark_plan::cross_check;

#[test]
fn a_cross_check_alternates_engines() {
    let text = on_files(
        "",
        "- prepare: {}\n- load: {pattern: [read, write], block_size: 4KiB, for: 9s, repeats: 2}\n- cleanup: {}",
    );
    let checked = cross_check(plan(&text), &registry(), 3).unwrap();
    assert_eq!(
        names(&checked)[..8],
        [
            "prepare",
            "read 4KiB native #1",
            "read 4KiB fio #1",
            "read 4KiB fio #2",
            "read 4KiB native #2",
            "read 4KiB native #3",
            "read 4KiB fio #3",
            "write 4KiB native #1"
        ]
    );
    assert_eq!(checked.stages.len(), 1 + 2 * 3 * 2 + 1, "pairs take the place of repeats");
    let cell = checked.stages[3].cell.clone().unwrap();
    assert_eq!((cell.repeat, cell.repeats, cell.engine.as_str(), cell.axes.len()), (2, 3, "fio", 1));
    assert_eq!(job(&checked.stages[3].works[0]).io_engine, IoEngine::Fio);
    assert_eq!(job(&checked.stages[4].works[0]).io_engine, IoEngine::Native);
    for (index, stage) in checked.stages.iter().enumerate() {
        assert_eq!(stage.works[0].load.stream, [index as u64, 0]);
    }
    let single =
        cross_check(plan(&with_load("", "pattern: read, block_size: 4KiB, for: 9s")), &registry(), 1)
            .unwrap();
    assert_eq!(names(&single), ["load native #1", "load fio #1"]);
    assert_eq!(single.stages[0].cell.as_ref().unwrap().sweep, "load");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let refused = |text: &str| cross_check(plan(text), &registry(), 3).unwrap_err();
    let rest = "stages: [{load: {pattern: read, block_size: 4KiB, for: 9s}}]";
    let rbd = refused(&format!("name: t\ntarget: {{kind: rbd, size: 1GiB}}\n{rest}"));
    assert!(rbd.starts_with("The stage load is on RBD images, which only fio reaches"), "{rbd}");
    let verified =
        refused(&format!("content: {{verify: true}}\n{}", on_files("", "").replace("stages:", rest)));
    assert!(verified.contains("load verifies what it reads"), "{verified}");
    let nothing = refused(&on_files("", "- prepare: {}"));
    assert!(nothing.starts_with("No stage measures a single load"), "{nothing}");
    let trims = refused(&with_load("", "pattern: randtrim, block_size: 4KiB, for: 9s"));
    assert!(trims.contains("trims files"), "{trims}");
    assert!(
        cross_check(plan(&with_load("", "pattern: read, block_size: 4KiB, for: 9s")), &registry(), 0)
            .is_err()
    );
}
