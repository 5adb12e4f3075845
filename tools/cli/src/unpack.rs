//! `iolab unpack`: real files of those in a container.

use crate::failure::Failure;
use crate::packed::{LEFT, unpacked};
use crate::say::number_of;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make real files of those that `iolab run --apply defer-close:…` keeps in a container.
///
/// A file that is there already is left as it is; one that is another one is named and not overwritten, and the container
/// stays. It may be repeated, and killed. When all files are there, the container is removed.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The containers, `iolab-RUN-NODE.pack`.
    #[arg(required = true)]
    packs: Vec<PathBuf>,
    /// Make the files below this directory; else where the container lies.
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut is_whole = true;
    for pack in &arguments.packs {
        match unpacked(pack, arguments.directory.as_deref()) {
            Some(files) => {
                let files = number_of(files, "file", "files");
                eprintln!("iolab: {}: {files} unpacked", pack.display());
            }
            None => is_whole = false,
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(LEFT) })
}
