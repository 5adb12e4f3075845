//! `iolab pack`: what is in a container of small files, and whether it is whole.

use crate::failure::Failure;
use crate::say::number_of;
use clap::{Args, Subcommand};
use iolab_pack::Packed;
use iolab_packs::{Pack, PackError, shown};
use iolab_vocab::format_bytes;
use serde_json::json;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Look into the containers in which `iolab run --apply defer-close:…` keeps small files.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Tell which files are in it.
    List {
        /// The container, `iolab-RUN-NODE.pack`.
        pack: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write the bytes of files in it to standard output.
    Cat {
        /// The container.
        pack: PathBuf,
        /// Files, as `list` calls them.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Read every record and tell whether all is whole.
    Check {
        /// The container.
        pack: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.what {
        What::List { pack, json } => list(&opened(pack, Pack::open)?, *json),
        What::Cat { pack, files } => {
            let read = opened(pack, Pack::open)?;
            files.iter().try_for_each(|file| cat(&read, pack, file))?;
            Ok(ExitCode::SUCCESS)
        }
        What::Check { pack, json } => check(&opened(pack, Pack::check)?, *json),
    }
}

fn opened(path: &Path, open: fn(&Path) -> Result<Pack, PackError>) -> Result<Pack, Failure> {
    open(path).map_err(|error| unread(path, &error))
}

/// A container that is none, or cannot be read.
pub(crate) fn unread(path: &Path, error: &PackError) -> Failure {
    let failure = Failure::new(format!("{}: {error}", path.display()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure.hint("name a file iolab-RUN-NODE.pack that is there"),
    }
}

fn list(pack: &Pack, as_json: bool) -> Result<ExitCode, Failure> {
    let files = &pack.contents().files;
    if as_json {
        let file = |(path, file): (&Vec<u8>, &Packed)| {
            json!({
                "path": String::from_utf8_lossy(path),
                "bytes": file.size,
                "mode": file.attributes.mode,
                "user": file.attributes.user,
                "group": file.attributes.group,
                "modified_s": file.attributes.modified.seconds,
                "modified_ns": file.attributes.modified.nanoseconds,
            })
        };
        let files: Vec<_> = files.iter().map(file).collect();
        say_line!("{}", json!({ "files": files, "damage": pack.damage() }));
    } else {
        for (path, file) in files {
            say_line!("{:04o} {:>10} {}", file.attributes.mode, file.size, shown(path));
        }
    }
    Ok(told(pack))
}

/// What is damaged is said, and is no success.
fn told(pack: &Pack) -> ExitCode {
    match pack.damage() {
        None => ExitCode::SUCCESS,
        Some(damage) => {
            eprintln!("iolab: warning: {damage}");
            ExitCode::FAILURE
        }
    }
}

fn cat(pack: &Pack, path: &Path, name: &Path) -> Result<(), Failure> {
    let Some(file) = pack.contents().files.get(name.as_os_str().as_bytes()) else {
        let message = format!("{}: there is no `{}` in it", path.display(), name.display());
        return Err(Failure::new(message).hint(format!("iolab pack list {}", path.display())));
    };
    let too_large = |_| Failure::new(format!("{}: it is too large", name.display()));
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(file.size as usize).map_err(too_large)?;
    bytes.resize(file.size as usize, 0);
    let read = pack.read(file, |offset, piece| -> Result<(), PackError> {
        bytes[offset as usize..][..piece.len()].copy_from_slice(piece);
        Ok(())
    });
    read.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    match io::stdout().write_all(&bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn check(pack: &Pack, as_json: bool) -> Result<ExitCode, Failure> {
    let (scanned, contents) = (&pack.scanned, pack.contents());
    if as_json {
        say_line!(
            "{}",
            json!({
                "run": format!("{:016x}", scanned.header.run),
                "node": scanned.header.node,
                "records": scanned.record_count,
                "files": contents.files.len(),
                "bytes": contents.bytes(),
                "sound_bytes": scanned.sound_bytes,
                "is_ended": scanned.end == iolab_pack::End::Whole,
                "damage": pack.damage(),
            })
        );
    } else {
        let end = match scanned.end {
            iolab_pack::End::Whole => "its run has ended it",
            iolab_pack::End::Open => "its run goes on, or was killed",
            iolab_pack::End::Damaged(_) => "it is damaged",
        };
        say_line!(
            "{} of {} on {}: {}, {} of {}",
            number_of(scanned.record_count, "record", "records"),
            format_args!("run {:016x}", scanned.header.run),
            scanned.header.node,
            end,
            number_of(contents.files.len() as u64, "file", "files"),
            format_bytes(contents.bytes())
        );
    }
    Ok(told(pack))
}
