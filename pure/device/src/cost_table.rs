//! Cost by request size, as measured: a piecewise-linear table.
//!
//! Between two measured sizes the cost is interpolated, beyond the last one the slope of the last
//! segment goes on (that slope is the reciprocal bandwidth), below the first one its cost stands.
//! A lookup is a binary search over some ten points.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Measured costs in nanoseconds by size in bytes, sizes strictly ascending, at least one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, f64)>", into = "Vec<(u64, f64)>")]
pub struct CostTable {
    points: Vec<(u64, f64)>,
}

/// Why points are no table.
#[derive(Clone, Debug, PartialEq)]
pub enum CostTableError {
    /// There is no point.
    Empty,
    /// The size does not exceed the one before it.
    Unordered(u64),
    /// The cost at this size is negative or no number.
    Impossible(u64, f64),
}

impl fmt::Display for CostTableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostTableError::Empty => write!(f, "a cost table needs at least one [bytes, ns] point"),
            CostTableError::Unordered(size) => {
                write!(f, "the sizes of a cost table must ascend, but {size} does not")
            }
            CostTableError::Impossible(size, cost) => {
                write!(f, "the cost at {size} bytes is {cost} ns; a cost is 0 or more")
            }
        }
    }
}

impl std::error::Error for CostTableError {}

impl CostTable {
    /// A table of these (bytes, nanoseconds) points.
    ///
    /// ```
    /// use iolab_device::CostTable;
    /// let table = CostTable::new(vec![(0, 100.0), (1000, 200.0)]).unwrap();
    /// assert_eq!(table.at(500), 150.0);
    /// assert_eq!(table.at(3000), 400.0);
    /// ```
    pub fn new(points: Vec<(u64, f64)>) -> Result<CostTable, CostTableError> {
        if points.is_empty() {
            return Err(CostTableError::Empty);
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            return Err(CostTableError::Unordered(pair[1].0));
        }
        if let Some(&(size, cost)) =
            points.iter().find(|(_, cost)| !cost.is_finite() || *cost < 0.0)
        {
            return Err(CostTableError::Impossible(size, cost));
        }
        Ok(CostTable { points })
    }

    /// The same cost whatever the size.
    pub fn constant(cost_ns: f64) -> CostTable {
        CostTable { points: vec![(0, cost_ns)] }
    }

    /// The cost of a request of that many bytes, in nanoseconds, never below 0.
    pub fn at(&self, bytes: u64) -> f64 {
        let above = self.points.partition_point(|(size, _)| *size <= bytes);
        let segment = match (above, self.points.len()) {
            (0, _) | (_, 1) => return self.points[0].1,
            (above, count) if above == count => (self.points[count - 2], self.points[count - 1]),
            (above, _) => (self.points[above - 1], self.points[above]),
        };
        let ((left, left_ns), (right, right_ns)) = segment;
        let slope = (right_ns - left_ns) / (right - left) as f64;
        (left_ns + slope * (bytes - left) as f64).max(0.0)
    }

    /// The points, in order of size.
    pub fn points(&self) -> &[(u64, f64)] {
        &self.points
    }
}

impl TryFrom<Vec<(u64, f64)>> for CostTable {
    type Error = CostTableError;

    fn try_from(points: Vec<(u64, f64)>) -> Result<CostTable, CostTableError> {
        CostTable::new(points)
    }
}

impl From<CostTable> for Vec<(u64, f64)> {
    fn from(table: CostTable) -> Vec<(u64, f64)> {
        table.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_interpolated_inside_and_extrapolated_above_the_measured_sizes() {
        let table = CostTable::new(vec![(64, 100.0), (128, 164.0), (1128, 264.0)]).unwrap();
        let costs: Vec<f64> = [0, 64, 96, 128, 628, 2128].map(|bytes| table.at(bytes)).to_vec();
        assert_eq!(costs, [100.0, 100.0, 132.0, 164.0, 214.0, 364.0]);
    }

    #[test]
    fn a_table_that_cannot_be_is_refused_with_the_offending_number() {
        assert_eq!(CostTable::new(vec![]), Err(CostTableError::Empty));
        assert_eq!(CostTable::new(vec![(8, 1.0), (8, 2.0)]), Err(CostTableError::Unordered(8)));
        assert_eq!(CostTable::new(vec![(8, -1.0)]), Err(CostTableError::Impossible(8, -1.0)));
    }
}
