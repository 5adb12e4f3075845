//! `iolab unpack`: real files of those in a container.

use crate::failure::{Failure, LEFT};
use crate::pack::unread;
use crate::packed::unpacked;
use crate::say::number_of;
use clap::Args;
use iolab_packs::begun_ns;
use std::cmp::Reverse;
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
    let (mut is_whole, mut unreadable) = (true, Vec::new());
    let mut packs: Vec<&PathBuf> = arguments.packs.iter().collect();
    // Of two files of one name the newer one counts, as for a run that reads through.
    packs.sort_by_key(|pack| Reverse(begun_ns(pack)));
    for pack in packs {
        match unpacked(pack, arguments.directory.as_deref()) {
            Ok(Some(files)) => {
                let files = number_of(files, "file", "files");
                eprintln!("iolab: {}: {files} unpacked", pack.display());
            }
            Ok(None) => is_whole = false,
            Err(error) => unreadable.push((pack, error)),
        }
    }
    // The others are unpacked all the same.
    if let Some((last, before)) = unreadable.split_last() {
        for (pack, error) in before {
            eprintln!("error: {}: {error}", pack.display());
        }
        return Err(unread(last.0, &last.1));
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(LEFT) })
}
