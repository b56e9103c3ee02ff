//! Volumes that every driver has for itself.

use super::{Nobody, job, outcome, remarks};
use crate::Blocks;
use crate::job::Volume;
use std::sync::Arc;
use tidemark_plan::engine::{Engine as _, Placement};

#[test]
fn each_driver_has_volumes_named_after_it() {
    let text = "name: t\ntarget: {kind: file, path: '/d/{driver}/f', count: 2, size: 8KiB, per_driver: true, journal: '/j/{driver}'}\n\
                stages: [{prepare: {}}, {load: {pattern: read, block_size: 4KiB, for: 1s}}, {cleanup: {}}]";
    let mut plan = outcome(text).unwrap().0;
    let blocks = Blocks::new(Arc::new(Nobody));
    for work in plan.stages.iter_mut().flat_map(|stage| &mut stage.works) {
        assert_eq!(blocks.placement(work), Placement::EachDriver);
        blocks.localize(work, "d1").unwrap();
        assert_eq!(
            job(work).volumes.iter().map(Volume::name).collect::<Vec<_>>(),
            ["/d/d1/f-1", "/d/d1/f-2"]
        );
        assert_eq!(job(work).journal.as_deref(), Some("/j/d1".as_ref()));
        assert!(blocks.localize(work, "../d1").is_ok(), "its name is filled in already");
    }
}

#[test]
fn names_of_volumes_say_whose_they_are() {
    let on = |target: &str| remarks(&format!("name: t\ntarget: {target}\nstages: [{{prepare: {{}}}}]"));
    for (target, expected) in [
        (
            "{kind: file, path: '/d/f-{driver}', size: 1GiB}",
            "2:1 error `{driver}` stands for a driver's name, but the volumes are not those of each driver | add `per_driver: true`",
        ),
        (
            "{kind: rbd, size: 1GiB, per_driver: true}",
            "2:33 error the image rbd/tidemark-1 is one and the same for all drivers | put `{driver}` into `image`",
        ),
        (
            "{kind: device, path: /dev/one, per_driver: true}",
            "2:1 error `target` has no `size` | write how much of each device to use",
        ),
    ] {
        let found = on(target);
        assert!(found.iter().any(|remark| remark.contains(expected)), "{target}: {found:?}");
    }
}
