//! scratch
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        let started = std::time::Instant::now();
        let r = tidemark_plan::redact::redact(&text);
        let t1 = started.elapsed();
        let started = std::time::Instant::now();
        let read = if path.ends_with("yaml") { Err(vec![]) } else { tidemark_plan::cosbench::read(&text) };
        println!("{path}: redact {t1:?} ({}) read {:?} {}", r.len(), started.elapsed(), match read { Ok(_) => "ok".to_string(), Err(e) => format!("{} remarks", e.len())});
    }
}
