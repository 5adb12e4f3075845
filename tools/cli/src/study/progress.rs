//! What a person watching a study sees, on stderr: a line per step, a bar for the runs.

use indicatif::{ProgressBar, ProgressStyle};
use iolab_study::Watcher;

/// The steps and runs of a study as they go by.
pub(crate) struct Progress {
    name: &'static str,
    bar: ProgressBar,
}

impl Progress {
    /// Lines begin with the name of the command.
    pub(crate) fn new(name: &'static str) -> Progress {
        Progress { name, bar: ProgressBar::hidden() }
    }
}

impl Watcher for Progress {
    fn step(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{}: {text}", self.name));
    }

    fn begin_runs(&mut self, count: usize) {
        self.bar = ProgressBar::new(count as u64);
        if let Ok(style) = ProgressStyle::with_template(&format!(
            "{}: [{{bar:30}}] run {{pos}}/{{len}} {{msg}}",
            self.name
        )) {
            self.bar.set_style(style);
        }
    }

    fn run(&self, label: &str) {
        self.bar.set_message(label.to_owned());
        self.bar.inc(1);
    }

    fn end_runs(&self) {
        self.bar.finish_and_clear();
    }
}
