//! What users know the order entry by. The metric of the TPC is no such figure: its results are audited and published.

use super::{DELIVERY, Figure, LABELS, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL};
use tidemark_measure::record::FigureOf;

const SECOND_NS: u64 = 1_000_000_000;

/// The limits of clause 5.2.5.7 for the 90th percentile, seconds.
const LIMITS: [(u16, &str, u64); 5] = [
    (NEW_ORDER, "New-Order p90", 5),
    (PAYMENT, "Payment p90", 5),
    (ORDER_STATUS, "Order-Status p90", 5),
    (DELIVERY, "Delivery p90", 5),
    (STOCK_LEVEL, "Stock-Level p90", 20),
];

/// The most new orders per minute and warehouse, thousandths, with the pauses of clause 5.2.5.7: ten terminals, in the mix of clause
/// 5.2.3 with the fewest other transactions, for which the database takes no time. With the deck they are 12,605 at most.
const MOST_NEW_ORDERS_MILLI: u64 = 12_860;

/// Those of a load on so many warehouses; `wait` is its pauses, in thousandths of the specification's.
pub(super) fn all(warehouses: u32, wait: Option<u32>) -> Vec<Figure> {
    let label = |action: u16| LABELS[usize::from(action)].to_owned();
    let throughput = [
        Figure {
            name: "NOPM",
            about: "new orders committed per minute of the window, as HammerDB counts them",
            of: FigureOf::PerMinute { operation: label(NEW_ORDER) },
        },
        Figure {
            name: "Database TPM",
            about: "commits per minute of the whole load, from the database's own counters, whoever caused them; not \
                    comparable between kinds of databases",
            of: FigureOf::CommitsPerMinute,
        },
    ];
    let limits = LIMITS.map(|(action, name, seconds)| Figure {
        name,
        about: "response time; the specification's limit is information here",
        of: FigureOf::Percentile {
            operation: label(action),
            percent: 90,
            limit_ns: Some(seconds * SECOND_NS),
        },
    });
    let efficiency = wait.map(|wait| Figure {
        name: "Efficiency",
        about: "NOPM against 12.86 for each warehouse, divided by `wait`: the most that terminals can enter; with this mix, 98 % at most",
        of: FigureOf::ShareOfMost {
            operation: label(NEW_ORDER),
            most_milli_per_minute: MOST_NEW_ORDERS_MILLI * u64::from(warehouses) * 1000 / u64::from(wait.max(1)),
        },
    });
    throughput.into_iter().chain(efficiency).chain(limits).collect()
}
