//! `iolab simulate --show`: the platform drawn, as a tree of text or as a picture.

use super::arguments::Arguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::say;
use iolab_report::markup::document;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn run(arguments: &Arguments, form: &str) -> Result<ExitCode, Failure> {
    let platform = arguments.platform()?;
    if !platform.nodes.is_empty() {
        platform.check()?;
    }
    let drawn = match form {
        "svg" => document(platform.draw_svg()),
        "html" => document(platform.draw_html()),
        _ => platform.draw_text(),
    };
    match &arguments.output {
        Some(path) => {
            let platform = arguments.platform.iter().map(Path::new).collect::<Vec<_>>();
            Output::begin(path, "-o", &platform)?.write(drawn.as_bytes())?;
            eprintln!("wrote {}", path.display());
        }
        None => say::text(&drawn)?,
    }
    Ok(ExitCode::SUCCESS)
}
