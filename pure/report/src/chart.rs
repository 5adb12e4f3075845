//! Charts as SVG: lines, steps, areas, bars, points with error bars, on linear and logarithmic axes
//! with units. Pure text, no script, light and dark; the same drawing stands in a page or in a file.
//!
//! ```
//! use iolab_report::chart::{Axis, Chart, Mark, Series, Unit};
//!
//! let chart = Chart::new("Throughput", Axis::log2("request size", Unit::Bytes), Axis::linear("throughput", Unit::BytesPerSecond))
//!     .with(Series::new("measured", Mark::Line, [(512.0, 4.0e8), (4096.0, 1.9e9)]))
//!     .with(Series::new("predicted", Mark::Points, []).point_with_error(512.0, 4.1e8, 3.9e8, 4.4e8));
//! assert!(chart.svg().starts_with("<svg"));
//! ```

mod draw;
mod scale;
mod unit;

pub use draw::STYLE;
pub use unit::Unit;

/// A chart; nothing is drawn until `svg` or `figure` is asked for.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Sentence under it, may be empty.
    pub caption: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn, the first one at the back.
    pub series: Vec<Series>,
    /// Width and height of the drawing, in pixels at its natural size.
    pub size: (u32, u32),
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What is measured along it; the unit stands at the ticks.
    pub label: String,
    /// How ticks are written.
    pub unit: Unit,
    /// How values become places.
    pub scale: Scale,
    /// Shown range; found from the data where not given. Linear axes found so begin at 0.
    pub range: Option<(f64, f64)>,
}

/// How values become places on an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal factors, ticks at powers of 10. Values must be above 0; others are left out.
    Log10,
    /// Equal factors, ticks at powers of 2.
    Log2,
    /// Names instead of numbers: the value 0 is the first.
    Categories(Vec<String>),
}

/// Values of one kind.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub label: String,
    /// How it is drawn.
    pub mark: Mark,
    /// The values.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through the points.
    Line,
    /// A line that stays at each value until the next one.
    Steps,
    /// Steps, filled down to the axis.
    Area,
    /// Dots, with error bars where given.
    Points,
    /// Bars beside each other per value of x.
    Bars,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Place on the vertical axis.
    pub y: f64,
    /// Ends of its error bar.
    pub error: Option<(f64, f64)>,
}

impl Chart {
    /// A chart without data.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Chart {
        let (title, caption) = (title.into(), String::new());
        Chart { title, caption, x, y, series: Vec::new(), size: (480, 270) }
    }

    /// The chart with one more series.
    pub fn with(mut self, series: Series) -> Chart {
        self.series.push(series);
        self
    }

    /// The chart with a sentence under it.
    pub fn caption(mut self, caption: impl Into<String>) -> Chart {
        self.caption = caption.into();
        self
    }

    /// The chart at another natural size.
    pub fn size(mut self, width: u32, height: u32) -> Chart {
        self.size = (width, height);
        self
    }
}

impl Axis {
    fn of(label: &str, unit: Unit, scale: Scale) -> Axis {
        Axis { label: label.to_owned(), unit, scale, range: None }
    }

    /// Equal steps.
    pub fn linear(label: &str, unit: Unit) -> Axis {
        Axis::of(label, unit, Scale::Linear)
    }

    /// Equal factors, ticks at powers of 10.
    pub fn log10(label: &str, unit: Unit) -> Axis {
        Axis::of(label, unit, Scale::Log10)
    }

    /// Equal factors, ticks at powers of 2; for sizes.
    pub fn log2(label: &str, unit: Unit) -> Axis {
        Axis::of(label, unit, Scale::Log2)
    }

    /// Names.
    pub fn categories(label: &str, names: impl IntoIterator<Item = impl Into<String>>) -> Axis {
        let names = names.into_iter().map(Into::into).collect();
        Axis::of(label, Unit::Plain, Scale::Categories(names))
    }

    /// The axis with a fixed range.
    pub fn range(mut self, low: f64, high: f64) -> Axis {
        self.range = Some((low, high));
        self
    }
}

impl Series {
    /// A series of `(x, y)` values.
    pub fn new(
        label: impl Into<String>,
        mark: Mark,
        values: impl IntoIterator<Item = (f64, f64)>,
    ) -> Series {
        let point = |(x, y)| Point { x, y, error: None };
        Series { label: label.into(), mark, points: values.into_iter().map(point).collect() }
    }

    /// The series with one more value and its error bar from `low` to `high`.
    pub fn point_with_error(mut self, x: f64, y: f64, low: f64, high: f64) -> Series {
        self.points.push(Point { x, y, error: Some((low, high)) });
        self
    }
}
