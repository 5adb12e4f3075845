//! What is known of the difference between two clocks: at some times at least so much, at others at most.

use super::Placement;

/// Disciplined clocks are slewed by 500 ppm at most (`adjtimex(2)`), each of the two.
const RATE_MOST: f64 = 1e-3;

/// Bounds on what has to be added to the second clock, by its own time.
#[derive(Clone, Debug, Default)]
pub(super) struct Corridor {
    lower: Vec<(i64, i64)>,
    upper: Vec<(i64, i64)>,
}

/// A straight line by its values at the two ends of a span.
type Line = (f64, f64);

impl Corridor {
    pub(super) fn at_least(&mut self, time: i64, value: i64) {
        self.lower.push((time, value));
    }

    pub(super) fn at_most(&mut self, time: i64, value: i64) {
        self.upper.push((time, value));
    }

    /// How far a clock that is right but for a constant has to be moved, where only one side is known.
    pub(super) fn least_move(&self) -> i64 {
        let lower = self.lower.iter().map(|(_, value)| *value).max().unwrap_or(i64::MIN);
        let upper = self.upper.iter().map(|(_, value)| *value).min().unwrap_or(i64::MAX);
        0.max(lower).min(upper)
    }

    /// The mean of the extreme lines through the corridor over a span, and how far from it they are;
    /// `None` where it is open on a side.
    pub(super) fn middle(&self, span: (i64, i64)) -> Option<Placement> {
        if self.lower.is_empty() || self.upper.is_empty() {
            return None;
        }
        let all = || self.lower.iter().chain(&self.upper);
        let first = all().map(|(time, _)| *time).fold(span.0, i64::min);
        let last = all().map(|(time, _)| *time).fold(span.1, i64::max).max(first + 1);
        let (slack, lines) = self.lines(first as f64, last as f64);
        let extremes = [
            extreme(&lines, |line| line.0),
            extreme(&lines, |line| -line.0),
            extreme(&lines, |line| line.1),
            extreme(&lines, |line| -line.1),
        ];
        let mean = |value: fn(&Line) -> f64| extremes.iter().map(value).sum::<f64>() / 4.0;
        let (at_first, at_last) = (mean(|line| line.0), mean(|line| line.1));
        let off = |line: &Line| (line.0 - at_first).abs().max((line.1 - at_last).abs());
        let bound = extremes.iter().map(off).fold(0.0, f64::max) + slack;
        let rate = (at_last - at_first) / (last - first) as f64;
        Some(Placement {
            offset_ns: at_first - rate * first as f64,
            rate,
            // Times are rounded when they are moved.
            bound_ns: Some(bound.ceil() as u64 + 2),
            by_precedence: true,
        })
    }

    /// The corners of the set of possible lines, and by how much the corridor had to be widened for there
    /// to be one.
    fn lines(&self, first: f64, last: f64) -> (f64, Vec<Line>) {
        let lines = self.within(first, last, 0.0);
        if !lines.is_empty() {
            return (0.0, lines);
        }
        let mut enough = 1.0;
        while self.within(first, last, enough).is_empty() && enough < 1e18 {
            enough *= 2.0;
        }
        let mut little = 0.0;
        while enough - little > 1.0 {
            let half = (enough + little) / 2.0;
            match self.within(first, last, half).is_empty() {
                true => little = half,
                false => enough = half,
            }
        }
        (enough, self.within(first, last, enough))
    }

    fn within(&self, first: f64, last: f64, slack: f64) -> Vec<Line> {
        let span = last - first;
        let most = RATE_MOST * span;
        let values = || self.lower.iter().chain(&self.upper).map(|(_, value)| *value as f64);
        let low = values().fold(f64::MAX, f64::min) - most - slack - 1.0;
        let high = values().fold(f64::MIN, f64::max) + most + slack + 1.0;
        let mut lines = vec![(low, low), (high, low), (high, high), (low, high)];
        lines = cut(&lines, |line| line.1 - line.0 + most);
        lines = cut(&lines, |line| line.0 - line.1 + most);
        let value_at =
            |line: &Line, time: i64| line.0 + (line.1 - line.0) * ((time as f64 - first) / span);
        for &(time, value) in &self.lower {
            lines = cut(&lines, |line| value_at(line, time) - value as f64 + slack);
        }
        for &(time, value) in &self.upper {
            lines = cut(&lines, |line| value as f64 + slack - value_at(line, time));
        }
        lines
    }
}

/// The line with the least value.
fn extreme(lines: &[Line], value: impl Fn(&Line) -> f64) -> Line {
    lines.iter().copied().min_by(|one, two| value(one).total_cmp(&value(two))).unwrap_or_default()
}

/// The part of a convex polygon where a linear function is not negative (Sutherland and Hodgman, 1974).
fn cut(corners: &[Line], room: impl Fn(&Line) -> f64) -> Vec<Line> {
    if corners.iter().all(|corner| room(corner) >= 0.0) {
        return corners.to_vec();
    }
    let mut left = Vec::with_capacity(corners.len() + 1);
    for (at, corner) in corners.iter().enumerate() {
        let next = &corners[(at + 1) % corners.len()];
        let (here, there) = (room(corner), room(next));
        if here >= 0.0 {
            left.push(*corner);
        }
        if (here >= 0.0) != (there >= 0.0) {
            let share = here / (here - there);
            let between = |one: f64, two: f64| one + (two - one) * share;
            left.push((between(corner.0, next.0), between(corner.1, next.1)));
        }
    }
    left
}
