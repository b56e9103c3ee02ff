//! The engines, document formats and provisioners that Tidemark has: the one list to which the next one is added.

use std::sync::Arc;
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
            Arc::new(tidemark_analytics::Analytics),
            Arc::new(tidemark_iceberg::Iceberg),
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
