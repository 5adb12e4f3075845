//! Where values lie on an axis, and which ticks it gets.

use super::{Axis, Scale};

/// An axis with its range found, laid over pixels.
pub(super) struct Placed<'a> {
    axis: &'a Axis,
    low: f64,
    high: f64,
    /// Pixel of `low` and of `high`.
    pixels: (f64, f64),
}

impl<'a> Placed<'a> {
    /// The axis over these values. `rounded`: it ends at a tick, as the vertical one should; the
    /// horizontal one ends where the data does.
    pub(super) fn new(
        axis: &'a Axis,
        values: impl Iterator<Item = f64>,
        pixels: (f64, f64),
        rounded: bool,
    ) -> Self {
        let (low, high) = axis.range.unwrap_or_else(|| found_range(axis, values, rounded));
        let (low, high) = if high > low { (low, high) } else { (low, low + 1.0) };
        Placed { axis, low, high, pixels }
    }

    fn is_log(&self) -> bool {
        matches!(self.axis.scale, Scale::Log10 | Scale::Log2)
    }

    /// The pixel of a value; `None` for what a logarithmic axis cannot show.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.is_log() && value <= 0.0) {
            return None;
        }
        let share = match self.is_log() {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        Some(self.pixels.0 + share * (self.pixels.1 - self.pixels.0))
    }

    /// The pixel where bars and areas begin.
    pub(super) fn base(&self) -> f64 {
        match self.is_log() {
            true => self.pixels.0,
            false => self.place(0.0_f64.clamp(self.low, self.high)).unwrap_or(self.pixels.0),
        }
    }

    /// How many pixels a category has.
    pub(super) fn category_width(&self) -> f64 {
        (self.pixels.1 - self.pixels.0).abs() / (self.high - self.low)
    }

    /// Places and texts of at most about `count` ticks.
    pub(super) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let text = |value: f64| match &self.axis.scale {
            Scale::Categories(names) => names.get(value as usize).cloned().unwrap_or_default(),
            _ => self.axis.unit.format(value),
        };
        let places = |value| Some((self.place(value)?, text(value)));
        self.tick_values(count).into_iter().filter_map(places).collect()
    }

    fn tick_values(&self, count: usize) -> Vec<f64> {
        match &self.axis.scale {
            Scale::Linear => linear_ticks(self.low, self.high, count, self.axis.unit.is_binary()),
            Scale::Log10 => power_ticks(10.0, self.low, self.high, count),
            Scale::Log2 => power_ticks(2.0, self.low, self.high, count),
            Scale::Categories(names) => (0..names.len()).map(|at| at as f64).collect(),
        }
    }
}

fn found_range(axis: &Axis, values: impl Iterator<Item = f64>, rounded: bool) -> (f64, f64) {
    if let Scale::Categories(names) = &axis.scale {
        return (-0.5, names.len() as f64 - 0.5);
    }
    let is_log = axis.scale != Scale::Linear;
    let shown = values.filter(|value| value.is_finite() && (!is_log || *value > 0.0));
    let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    match (low <= high, &axis.scale) {
        (false, _) => (if is_log { 1.0 } else { 0.0 }, 10.0),
        (true, Scale::Log10) => (power_below(10.0, low), power_above(10.0, high, low)),
        (true, Scale::Log2) => (power_below(2.0, low), power_above(2.0, high, low)),
        (true, _) if !rounded => (low.min(0.0), high.max(0.0)),
        (true, _) => (low.min(0.0), rounded_up(high.max(0.0), axis.unit.is_binary())),
    }
}

fn power_below(base: f64, value: f64) -> f64 {
    base.powf(value.log(base).floor())
}

fn power_above(base: f64, value: f64, low: f64) -> f64 {
    base.powf(value.log(base).ceil().max(low.log(base).floor() + 1.0))
}

/// The end of a linear axis: the first tick at or above the largest value.
fn rounded_up(high: f64, binary: bool) -> f64 {
    let step = linear_step(high, 5, binary);
    match step > 0.0 {
        true => (high / step).ceil() * step,
        false => 1.0,
    }
}

/// A round step that gives about `count` ticks: 1, 2 or 5 times a power of ten, or for sizes a
/// power of two times one of them.
fn linear_step(span: f64, count: usize, binary: bool) -> f64 {
    let rough = span / count.max(1) as f64;
    if rough <= 0.0 {
        return 0.0;
    }
    let unit = if binary { 1024_f64.powf(rough.log(1024.0).floor()) } else { 1.0 };
    let decade = 10_f64.powf((rough / unit).log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * decade * unit >= rough * 0.999);
    factor.unwrap_or(10.0) * decade * unit
}

fn linear_ticks(low: f64, high: f64, count: usize, binary: bool) -> Vec<f64> {
    let step = linear_step(high - low, count, binary);
    let first = (low / step).ceil() as i64;
    let last = (high / step * (1.0 + 1e-9)).floor() as i64;
    (first..=last.min(first + 100)).map(|at| at as f64 * step).collect()
}

fn power_ticks(base: f64, low: f64, high: f64, count: usize) -> Vec<f64> {
    let first = (low.log(base) - 1e-9).ceil() as i32;
    let last = (high.log(base) + 1e-9).floor() as i32;
    let every = ((last - first) as usize / count.max(1) + 1) as i32;
    (first..=last).step_by(every as usize).map(|power| base.powi(power)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    #[test]
    fn ticks_of_a_linear_axis_are_round_and_within_it() {
        assert_eq!(linear_ticks(0.0, 10.0, 5, false), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let mebi = 1048576.0;
        assert_eq!(linear_ticks(0.0, 4.0 * mebi, 4, true)[1], mebi);
    }

    #[test]
    fn a_wide_logarithmic_axis_leaves_ticks_out_instead_of_crowding() {
        assert_eq!(power_ticks(10.0, 1.0, 1e4, 10).len(), 5);
        assert!(power_ticks(2.0, 1.0, 1_073_741_824.0, 8).len() <= 9);
    }

    #[test]
    fn values_a_logarithmic_axis_cannot_show_are_left_out() {
        let axis = Axis::log10("x", Unit::Plain);
        let placed = Placed::new(&axis, [0.0, 1.0, 100.0].into_iter(), (0.0, 100.0), true);
        assert_eq!(placed.place(0.0), None);
        assert_eq!(placed.place(10.0), Some(50.0));
    }

    #[test]
    fn an_axis_without_data_or_with_one_value_still_has_a_range() {
        for values in [vec![], vec![3.0], vec![0.0, 0.0], vec![f64::NAN]] {
            for axis in [Axis::linear("x", Unit::Bytes), Axis::log2("x", Unit::Bytes)] {
                let placed = Placed::new(&axis, values.iter().copied(), (0.0, 100.0), false);
                assert!(placed.high > placed.low, "{values:?} {axis:?}");
                assert!(!placed.ticks(5).is_empty());
            }
        }
    }

    #[test]
    fn a_linear_axis_ends_at_a_tick_and_may_begin_anywhere() {
        let axis = Axis::linear("x", Unit::Plain);
        let pixels = (100.0, 0.0);
        let placed = Placed::new(&axis, [1.0, 7.0].into_iter(), pixels, true);
        assert_eq!((placed.low, placed.high), (0.0, 8.0));
        let wanted = [(100.0, "0"), (75.0, "2"), (50.0, "4"), (25.0, "6"), (0.0, "8")];
        assert_eq!(placed.ticks(5), wanted.map(|(at, text)| (at, text.to_owned())));
        let placed = Placed::new(&axis, [1.0, 7.0].into_iter(), pixels, false);
        assert_eq!((placed.low, placed.high), (0.0, 7.0), "where the data does");

        let cut = axis.clone().range(10.0, 20.0);
        let placed = Placed::new(&cut, [].into_iter(), (0.0, 100.0), true);
        assert_eq!(
            [10.0, 15.0, 20.0].map(|value| placed.place(value)),
            [0.0, 50.0, 100.0].map(Some)
        );
        assert_eq!(placed.base(), 0.0, "bars begin where the axis does");
        let below = axis.range(-10.0, 10.0);
        assert_eq!(Placed::new(&below, [].into_iter(), (0.0, 100.0), true).base(), 50.0);
    }

    #[test]
    fn names_stand_in_the_middle_of_their_part_of_the_axis() {
        let axis = Axis::categories("x", ["a", "b"]);
        let placed = Placed::new(&axis, [].into_iter(), (0.0, 100.0), false);
        assert_eq!(placed.ticks(7), [(25.0, "a".to_owned()), (75.0, "b".to_owned())]);
        assert_eq!(placed.category_width(), 50.0);
    }

    #[test]
    fn logarithmic_axes_end_at_powers() {
        let range = |axis: Axis, values: &[f64]| {
            let placed = Placed::new(&axis, values.iter().copied(), (0.0, 1.0), true);
            (placed.low, placed.high)
        };
        assert_eq!(range(Axis::log2("x", Unit::Bytes), &[3.0, 5.0]), (2.0, 8.0));
        assert_eq!(range(Axis::log10("x", Unit::Plain), &[20.0, 2000.0]), (10.0, 10_000.0));
        assert_eq!(range(Axis::log2("x", Unit::Bytes), &[4.0]), (4.0, 8.0));
    }
}
