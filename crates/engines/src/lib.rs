//! The engines, document formats and provisioners that Tidemark has: the one list to which the next one is added.

use std::sync::Arc;
use tidemark_analytics::{Analytics, job as analytics};
use tidemark_fleet::helper::Program;
use tidemark_iceberg::{Iceberg, job as iceberg};
use tidemark_plan::registry::Registry;

/// All engines, formats and provisioners.
pub fn registry() -> Registry {
    let fio = Arc::new(tidemark_fio::Fio);
    Registry::new(
        vec![
            Arc::new(tidemark_object::Objects),
            Arc::new(tidemark_block::Blocks::new(fio.clone())),
            fio,
            Arc::new(tidemark_sql::Databases),
            Arc::new(Analytics::new(Arc::new(lake(analytics::ENGINE, "Loads on tables")))),
            Arc::new(Iceberg::new(Arc::new(lake(iceberg::ENGINE, "Loads on Iceberg tables")))),
            Arc::new(tidemark_claims::Claims),
        ],
        vec![Arc::new(tidemark_cosbench::Cosbench), Arc::new(tidemark_fio::JobFiles)],
    )
    .with_provisioners(vec![
        Arc::new(tidemark_lab::Labs),
        Arc::new(tidemark_rook::Rook),
        Arc::new(tidemark_pods::Arms),
    ])
}

/// The program that has the query engine: it carries out loads on tables.
pub const LAKE: &str = "tidemark-lake";

fn lake(engine: &'static str, purpose: &'static str) -> Program {
    Program { name: LAKE, engine, purpose }
}
