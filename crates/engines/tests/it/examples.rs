//! The examples of the reference and of `examples/` are documents.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use std::path::Path;
use tidemark_plan::document::{self, Document};
use tidemark_plan::yaml::Environment;

/// Everything between lines with three backquotes in the reference, which holds one document per block.
#[test]
fn the_examples_of_the_reference_are_documents() {
    let reference = include_str!("../../../../docs/document.md");
    let blocks: Vec<_> =
        reference.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty());
    let registry = tidemark_engines::registry();
    let environment = Environment {
        variable: &|_| Some("http://10.0.0.1".to_owned()),
        file: &|_| Ok("from a file".to_owned()),
        bound: &|_| None,
        device_size: &|_| Ok(2 << 30),
        ..Environment::process(&registry)
    };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for block in blocks {
        let read = document::open(block, &directory, &environment);
        let warnings = match read.unwrap_or_else(|errors| panic!("{block}\n{errors:#?}")) {
            Document::Workload(read) => read.warnings,
            Document::Evaluation(_, warnings) => warnings,
        };
        assert_eq!(warnings, [], "{block}");
    }
}

#[test]
fn the_examples_of_block_storage_databases_and_tables_are_documents() {
    let registry = tidemark_engines::registry();
    let environment = Environment {
        variable: &|name| {
            Some(
                if name.contains("LAB_CATALOG") || name.contains("BUCKET") { "lake" } else { "http://mine" }
                    .to_owned(),
            )
        },
        document: &|_| Ok("SELECT 1".to_owned()),
        ..Environment::process(&registry)
    };
    for (name, text) in [
        ("block-sequential", include_str!("../../../../examples/block-sequential.yaml")),
        ("block-qct-rbd", include_str!("../../../../examples/block-qct-rbd.yaml")),
        ("block-oltp", include_str!("../../../../examples/block-oltp.yaml")),
        ("postgres-oltp", include_str!("../../../../examples/postgres-oltp.yaml")),
        ("mariadb-oltp", include_str!("../../../../examples/mariadb-oltp.yaml")),
        ("tpch-lake", include_str!("../../../../examples/tpch-lake.yaml")),
        ("tpcds-lake", include_str!("../../../../examples/tpcds-lake.yaml")),
        ("tpch-postgres", include_str!("../../../../examples/tpch-postgres.yaml")),
        ("iceberg-commits", include_str!("../../../../examples/iceberg-commits.yaml")),
        ("iceberg-cycles", include_str!("../../../../examples/iceberg-cycles.yaml")),
        ("tpcds-trino", include_str!("../../../../examples/tpcds-trino.yaml")),
    ] {
        let read = document::read(text, &environment);
        let read = read.unwrap_or_else(|errors| panic!("{name}: {errors:#?}"));
        assert_eq!((read.plan.name.as_str(), read.warnings), (name, vec![]));
    }
}

#[test]
fn evaluations_that_bring_their_own_systems_up_are_documents() {
    let registry = tidemark_engines::registry();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["cockroachdb-set", "gateways", "portworx-sysbench", "postgres-many", "tpcc-virtual-users"] {
        let text = std::fs::read_to_string(directory.join(format!("{name}.yaml"))).unwrap();
        let read = document::open(&text, &directory, &Environment::process(&registry));
        match read.unwrap_or_else(|errors| panic!("{name}: {errors:#?}")) {
            Document::Evaluation(evaluation, warnings) => {
                assert_eq!((evaluation.name.as_str(), warnings), (name, vec![]));
            }
            Document::Workload(_) => panic!("{name} is no evaluation"),
        }
    }
}
