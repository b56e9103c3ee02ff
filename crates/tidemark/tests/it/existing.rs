//! The built binary on objects that were there before: listed once, read by all, and left as they are.

use crate::common::Place;
use crate::common::existing::{Bucket, alone_and_together, document, says};
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer, Operation};

#[test]
fn objects_of_another_client_are_listed_once_and_read_by_every_driver() {
    let (place, server) = (Place::new(), EmbeddedServer::start(EmbeddedOptions::default()).unwrap());
    let endpoint = server.endpoint();
    let bucket =
        Bucket { endpoint: &endpoint, access_key: server.access_key(), secret_key: server.secret_key() };
    bucket.fill(&place);
    let (before, listed) = (server.statistics(), bucket.listed());
    alone_and_together(&place, &bucket.target());
    let after = server.statistics();
    assert_eq!(after.objects, before.objects);
    for asked in [Operation::PutObject, Operation::DeleteObject, Operation::DeleteObjects] {
        assert_eq!(after.of(asked).requests, before.of(asked).requests, "{asked:?}");
    }
    assert_eq!(bucket.listed(), listed);

    let run = |existing: &str, rest: &str| {
        let path = place.write("other.yaml", &document(&bucket.target(), existing, rest));
        place.tidemark(&["run", path.to_str().unwrap()])
    };
    let read = "    total_operations: 9\n    operations: [get: {}]\n";
    let first = run("container: photos, prefix: in/, limit: 3", read);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let said = format!("{}{}", first.stdout, first.stderr);
    assert!(said.contains("the first 3 existing objects"), "the terminal says it: {said}");
    for (existing, rest, why) in [
        (
            "container: photos, prefix: none/",
            read,
            "has no objects that begin with 'none/': write them first",
        ),
        ("container: nowhere", read, "the container 'nowhere' does not exist"),
        (
            "container: photos",
            "    total_operations: 9\n    operations: [get: {objects: 1-18}]\n",
            "has objects 1 to 17, and `objects` goes beyond",
        ),
    ] {
        let gets = server.statistics().of(Operation::GetObject).requests;
        let refused = run(existing, rest);
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains(why), "{existing}: {}", refused.stderr);
        assert_eq!(server.statistics().of(Operation::GetObject).requests, gets, "no load has run");
    }
}

#[test]
fn a_listing_has_all_pages_and_ranges_lie_within_the_sizes_listed() {
    let (place, server) = (Place::new(), EmbeddedServer::start(EmbeddedOptions::default()).unwrap());
    let endpoint = server.endpoint();
    let bucket =
        Bucket { endpoint: &endpoint, access_key: server.access_key(), secret_key: server.secret_key() };
    let fill = format!(
        "name: fill\ntarget: {}\nnaming: {{container_prefix: box}}\nstages:\n- init: {{containers: 1-1}}\n\
         - prepare: {{containers: 1-1, objects: 1-2345, sizes: 'r(1,9)B', workers: 8}}\n",
        bucket.target()
    );
    assert_eq!(place.run(&place.write("fill.yaml", &fill)).code, 0);
    let ranges = "    total_operations: 2345\n    operations:\n    - get: {objects: 'r(1,2345)', range: {length: 4, object_size: 1000}}\n";
    let record =
        place.run(&place.write("ranges.yaml", &document(&bucket.target(), "container: box1", ranges)));
    let get = record.operation("main", "get");
    assert_eq!((&get["ok"], &get["failed"]), (&2345.into(), &0.into()), "{get}");
    says(&record, "2,345 existing objects");
}
