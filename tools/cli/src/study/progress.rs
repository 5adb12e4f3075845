//! What a person watching a study sees, on stderr: a line per step, a bar for the runs.

use indicatif::{ProgressBar, ProgressStyle};

/// The steps and runs of a study as they go by.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { bar: ProgressBar::hidden() }
    }

    /// A step begins.
    pub(crate) fn step(&self, text: &str) {
        self.bar.suspend(|| eprintln!("study: {text}"));
    }

    /// So many runs come now.
    pub(crate) fn begin_runs(&mut self, count: usize) {
        self.bar = ProgressBar::new(count as u64);
        if let Ok(style) = ProgressStyle::with_template("study: [{bar:30}] run {pos}/{len} {msg}") {
            self.bar.set_style(style);
        }
    }

    /// The next run is of this kind.
    pub(crate) fn run(&self, label: &str) {
        self.bar.set_message(label.to_owned());
        self.bar.inc(1);
    }

    /// The runs are over.
    pub(crate) fn end_runs(&self) {
        self.bar.finish_and_clear();
    }
}
