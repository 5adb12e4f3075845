//! Results to bytes: what iolab found out, made readable.
//!
//! * `chart`: figures as SVG, for pages and for files of their own;
//! * `page`: one self-contained HTML file with sentences, tables, findings, charts and the timeline.

pub mod chart;
pub mod page;
