//! Axes: from values to places, and the ticks that people can read.

use tidemark_measure::units;

/// A tick: where it is, as a value, and what it says.
pub(crate) type Tick = (f64, String);

/// How values become places along an axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// From `low` to `high` in equal steps.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        Self { low, high: if high > low { high } else { low + 1.0 }, logarithmic: false }
    }

    /// From `low` to `high` by factors.
    pub(crate) fn between(low: f64, high: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        Self { low, high: if high > low { high } else { low * 2.0 }, logarithmic: true }
    }

    /// Values that grow by factors, with a little room at both ends.
    pub(crate) fn factors(lowest: f64, highest: f64) -> Self {
        let low = lowest.max(f64::MIN_POSITIVE);
        let room = (highest / low).max(1.0).powf(0.04).max(1.05);
        Self { low: low / room, high: highest.max(low) * room, logarithmic: true }
    }

    /// Values in equal steps, with a little room at both ends.
    pub(crate) fn steps_between(lowest: f64, highest: f64) -> Self {
        let room = (highest - lowest).abs() * 0.04;
        Self::linear(lowest - room, highest + room)
    }

    /// From 0 to a round number just above `highest`.
    pub(crate) fn from_zero(highest: f64) -> Self {
        let step = round_step(highest / 4.0);
        Self::linear(0.0, step * (highest / step * 1.001).ceil().max(1.0))
    }

    /// Latencies in nanoseconds by powers of ten, between round numbers around `lowest` and `highest`.
    pub(crate) fn latency(lowest: f64, highest: f64) -> Self {
        let (lowest, highest) = (lowest.max(1.0), highest.max(lowest).max(1.0));
        let (mut low, mut high) = (1.0, 1e14);
        for value in round_numbers() {
            low = if value <= lowest { value } else { low };
            high = if value >= highest && value < high { value } else { high };
        }
        if high <= low {
            high = low * 2.0;
        }
        Self { low, high, logarithmic: true }
    }

    /// Where a value is, 0 at the low and 1 at the high end; values outside are put at the end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }

    /// Ticks of a scale of [`Scale::latency`], about `most` of them.
    pub(crate) fn latency_ticks(&self, most: usize) -> Vec<Tick> {
        let inside = |value: &f64| *value >= self.low * 0.999 && *value <= self.high * 1.001;
        let all: Vec<f64> = round_numbers().filter(inside).collect();
        let decades: Vec<f64> = all.iter().copied().filter(|value| is_power_of_ten(*value)).collect();
        let chosen = if all.len() <= most || decades.len() < 2 { all } else { decades };
        let every = chosen.len().div_ceil(most.max(1)).max(1);
        chosen.into_iter().step_by(every).map(|value| (value, short_duration(value))).collect()
    }

    /// Round ticks of a linear scale, about `most` of them, as plain numbers.
    pub(crate) fn number_ticks(&self, most: usize) -> Vec<Tick> {
        let step = round_step((self.high - self.low) / most.max(1) as f64);
        self.steps(step).map(|value| (value, short_number(value, step))).collect()
    }

    /// Ticks of an axis of time in seconds, at steps that clocks have.
    pub(crate) fn time_ticks(&self, most: usize) -> Vec<Tick> {
        const STEPS: [f64; 19] = [
            0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0,
            900.0, 1800.0, 3600.0,
        ];
        let least = (self.high - self.low) / most.max(1) as f64;
        let longer = || 3600.0 * round_step(least / 3600.0).max(1.0);
        let step = STEPS.into_iter().find(|step| *step >= least).unwrap_or_else(longer);
        let label = |value: f64| match self.high {
            high if high <= 120.0 => short_number(value, step),
            high if high < 7200.0 => format!("{}:{:02}", value as u64 / 60, value as u64 % 60),
            _ => format!("{} h {:02}", value as u64 / 3600, value as u64 / 60 % 60),
        };
        self.steps(step).map(|value| (value, label(value))).collect()
    }

    fn steps(&self, step: f64) -> impl Iterator<Item = f64> {
        let first = (self.low / step).ceil();
        // A scale has a handful of ticks; the bound only guards against values beyond all reason.
        let count = (((self.high / step * (1.0 + 1e-9)).floor() - first).clamp(0.0, 50.0)) as u32;
        (0..=count).map(move |index| (first + f64::from(index)) * step)
    }
}

/// 1, 2 and 5 times the powers of ten, from 1 ns to over a day.
fn round_numbers() -> impl Iterator<Item = f64> {
    (0..14).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)))
}

fn is_power_of_ten(value: f64) -> bool {
    (value.log10() - value.log10().round()).abs() < 1e-9
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    if !(least > 0.0 && least.is_finite()) {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= least * 0.999_999)
        .unwrap_or(power * 10.0)
}

/// A number with as many decimals as the step between its neighbours needs: `0.25`, `1.5`, `12 000`, `3.5 M`.
fn short_number(value: f64, step: f64) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:.0e}");
    }
    if value >= 1e6 {
        return format!("{} M", short_number(value / 1e6, step / 1e6));
    }
    let decimals = (0..=6).find(|decimals| {
        let scaled = step * 10f64.powi(*decimals);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    });
    match decimals {
        Some(0) => units::count(value.round() as u64),
        decimals => format!("{value:.*}", decimals.unwrap_or(6) as usize),
    }
}

/// A round duration for a tick: `500 µs`, `2 ms`, `10 s`.
fn short_duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{value:.0} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round() {
        let rates = Scale::from_zero(11_350.0);
        assert_eq!(labels(rates.number_ticks(5)), ["0", "5\u{202f}000", "10\u{202f}000", "15\u{202f}000"]);
        assert_eq!(labels(Scale::from_zero(0.9).number_ticks(4)), ["0.00", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(labels(Scale::linear(0.0, 60.0).time_ticks(6)), ["0", "10", "20", "30", "40", "50", "60"]);
        assert_eq!(
            labels(Scale::linear(0.0, 1200.0).time_ticks(5)),
            ["0:00", "5:00", "10:00", "15:00", "20:00"]
        );
        assert_eq!(labels(Scale::latency(800_000.0, 42e6).latency_ticks(4)), ["1 ms", "10 ms"]);
        assert_eq!(labels(Scale::latency(1.1e6, 1.2e6).latency_ticks(4)), ["1 ms", "2 ms"]);
    }

    #[test]
    fn nothing_and_too_much_have_an_axis_too() {
        for highest in [0.0, f64::MIN_POSITIVE, 1e300, f64::INFINITY, f64::NAN, -5.0] {
            let scale = Scale::from_zero(highest);
            assert!(scale.number_ticks(5).len() <= 51);
            assert!((0.0..=1.0).contains(&scale.place(highest)), "{highest}");
            assert!((0.0..=1.0).contains(&Scale::latency(0.0, highest).place(highest)), "{highest}");
            assert!(Scale::linear(0.0, highest).time_ticks(5).len() <= 51);
        }
    }
}
