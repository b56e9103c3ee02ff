//! Power, throughput, and both in one number (clause 5.4), of a run that is like TPC-H.

/// Queries and refresh functions of a power test.
const TIMES: usize = 24;

/// Of the longest query's time, another one counts at least this share (clause 5.4.1.4).
const LEAST: f64 = 1e-3;

/// The power at a scale: 3600 x scale over the geometric mean of the times of 22 queries and two refresh functions, in seconds.
/// `None` unless there are all of them, none of which is 0.
pub fn power(scale: f64, queries: &[f64], refreshes: &[f64]) -> Option<f64> {
    let longest = queries.iter().copied().fold(0.0, f64::max);
    let times: Vec<f64> =
        queries.iter().map(|time| time.max(longest * LEAST)).chain(refreshes.iter().copied()).collect();
    let complete = times.len() == TIMES && refreshes.len() == 2;
    geometric_mean(&times).filter(|_| complete).map(|mean| 3600.0 * scale / mean)
}

/// The throughput at a scale: queries of all streams per hour, times the scale. `seconds` is from the start of the first stream to
/// the end of the last, its update stream included.
pub fn throughput(scale: f64, streams: u32, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| f64::from(streams) * 22.0 * 3600.0 * scale / seconds)
}

/// Both in one number: their geometric mean.
pub fn composite(power: f64, throughput: f64) -> f64 {
    (power * throughput).sqrt()
}

/// The geometric mean; `None` of nothing, and where one is not above 0.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let known = !values.is_empty() && values.iter().all(|value| *value > 0.0);
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    known.then(|| (logarithms / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: Option<f64>, wanted: f64) -> bool {
        value.is_some_and(|value| (value / wanted - 1.0).abs() < 1e-9)
    }

    #[test]
    fn figures_follow_the_formulas() {
        // All of them take 2 s: 3600 x 10 / 2.
        assert!(near(power(10.0, &[2.0; 22], &[2.0; 2]), 18_000.0));
        assert_eq!(power(10.0, &[2.0; 21], &[2.0; 2]), None, "a query is missing");
        assert_eq!(power(10.0, &[2.0; 22], &[]), None, "without refresh functions there is no power");
        // One query is a hundred thousandth of the longest: it counts as a thousandth.
        let mut queries = [1.0; 22];
        queries[3] = 1e-5;
        assert!(near(power(1.0, &queries, &[1.0; 2]), 3600.0 / 1e-3f64.powf(1.0 / 24.0)));
        assert!(near(throughput(10.0, 3, 66.0), 36_000.0));
        assert!(near(Some(composite(4.0, 9.0)), 6.0));
        assert!(near(geometric_mean(&[1.0, 100.0]), 10.0));
        assert_eq!((geometric_mean(&[]), geometric_mean(&[1.0, 0.0])), (None, None));
    }
}
