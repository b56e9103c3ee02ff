//! scratch
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        println!("=== {path}");
        let started = std::time::Instant::now();
        let read = tidemark_plan::document::read(&text);
        let show = |list: &[tidemark_plan::diagnostic::Diagnostic]| {
            for d in list.iter().take(25) {
                let (l, c) = d.line_and_column(&text);
                println!("{:?} {l}:{c} [{}] {} -- {}", d.severity, &text[d.span.clone()].chars().take(40).collect::<String>(), d.message, d.help);
            }
        };
        match read {
            Ok(read) => {
                show(&read.warnings);
                if std::env::var("DUMP").is_ok() { println!("{:#?}", read.plan); }
                for n in &read.plan.notes { println!("  note {}: {}", n.topic, n.text); }
                println!("ok: {} stages, seed {}", read.plan.stages.len(), read.plan.seed);
                let f = tidemark_plan::forecast::forecast(&read.plan);
                for n in &f.notes { println!("  forecast {}: {}", n.topic, n.text); }
            }
            Err(list) => { show(&list); println!("refused: {} remarks", list.len()); }
        }
        println!("{:?}", started.elapsed());
    }
}
