//! What a trace says about a run, made readable.
//!
//! [`Analysis`] watches the events of a trace go by once and keeps only what the report needs:
//! totals, access patterns, and findings with their remedies. [`Analysis::finish`] gives the
//! [`Report`], which serialises to JSON as it is. The rest writes:
//!
//! * `text`, `csv`: the report for people at a terminal and for spreadsheets;
//! * `chart`: figures as SVG, for pages and for files of their own;
//! * `bench`, `overlap`: results of the benchmarks, their tables and pictures, and what may be said of
//!   them, by the rules of `statistics` and `evidence`;
//! * `simulation`, `prediction`: what a simulated workload came to, and what is predicted of a recorded
//!   program, as text, as a document and as rows;
//! * `counted`: the report of a run of which only counters are known;
//! * `compare`: two runs, or several of each, held against each other;
//! * `advice`, `profile`: the stacks of strategies a trace gives reason for, what they would bring, and a
//!   choice as a file;
//! * `tune`: which of these run for real, and whether the winner may be recommended;
//! * `sweep`: the runs of a sweep as a table and as a picture;
//! * `parts`: where the time of calls on a simulated cluster went;
//! * `page`: one self-contained HTML file with sentences, tables, findings, charts and the timeline;
//! * `table`: a table as text, CSV and HTML;
//! * `markup`: what every page and picture needs.

pub mod advice;
mod analysis;
pub mod bench;
pub mod chart;
pub mod compare;
mod counted;
pub mod csv;
pub mod evidence;
mod facts;
mod findings;
mod frequent;
mod lane;
pub mod markup;
mod objects;
pub mod overlap;
pub mod page;
pub mod parts;
mod pattern;
pub mod prediction;
pub mod profile;
mod report;
mod sections;
pub mod simulation;
mod sizes;
pub mod statistics;
mod stream;
pub mod study;
pub mod sweep;
pub mod table;
pub mod text;
mod thousands;
mod timeline;
mod totals;
pub mod tune;

pub use analysis::Analysis;
pub use counted::{
    CountedFile, CountedReport, CountedSummary, HeatRow, ModuleRow, RankRow, counted_beside_trace,
    counted_csv, counted_page, counted_rule_names, counted_sections, counted_text,
};
pub use findings::{Confidence, Evidence, Finding, Remedy, Severity, rule_names};
pub use objects::{LevelRow, ObjectRow};
pub use pattern::{Pattern, SharedPattern};
pub use report::{Balance, FileRow, Lacks, LayerRow, PartRow, ProcessRow, Report, Summary};
pub use sections::{
    page as report_page, page_with as report_page_with, sections as report_sections,
};
pub use sizes::{SizeRange, Sizes};
pub use timeline::{Slice, Timeline};
