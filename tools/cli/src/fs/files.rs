//! `iolab fs ls`, `cat`, `mv`, `rm`, `mkdir`, `du`, `layout`: what is in a file system.

use super::{Place, Standing, failure, name_of, shown};
use crate::failure::Failure;
use clap::Args;
use iolab_pfs::client::Call;
use iolab_pfs::{Attributes, Kind, OpenWish};
use iolab_pfs_node::files::{self, OpenFile};
use iolab_pfs_node::{Client, NoMemory};
use iolab_vocab::format_bytes;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// What is read at a time to be shown.
const CHUNK_BYTES: usize = 4 << 20;

/// List the files of a file system.
#[derive(Args)]
pub(super) struct Ls {
    #[command(flatten)]
    place: Place,
    /// A directory or file. [default: everything]
    path: Option<PathBuf>,
    /// All directories below, too.
    #[arg(short, long)]
    recursive: bool,
}

/// Print files.
#[derive(Args)]
pub(super) struct Cat {
    #[command(flatten)]
    place: Place,
    /// The files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// Give a file or directory another name; a file of that name goes.
#[derive(Args)]
pub(super) struct Mv {
    #[command(flatten)]
    place: Place,
    /// The name so far.
    from: PathBuf,
    /// The name from now on.
    to: PathBuf,
}

/// Remove files, and with -r directories.
#[derive(Args)]
pub(super) struct Rm {
    #[command(flatten)]
    place: Place,
    /// Directories with all that is below, too.
    #[arg(short, long)]
    recursive: bool,
    /// What goes.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// Make directories.
#[derive(Args)]
pub(super) struct Mkdir {
    #[command(flatten)]
    place: Place,
    /// The directories above, too; those that are there are no error.
    #[arg(short, long)]
    parents: bool,
    /// Their names.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// Sum up the bytes below directories.
#[derive(Args)]
pub(super) struct Du {
    #[command(flatten)]
    place: Place,
    /// Directories or files. [default: everything]
    paths: Vec<PathBuf>,
}

/// Tell how files are partitioned, and which server has what of them.
#[derive(Args)]
pub(super) struct Layout {
    #[command(flatten)]
    place: Place,
    /// The files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// What a name stands for, and how long it is; one that is not there is a failure.
pub(super) fn found(client: &Client, path: &[u8]) -> Result<(Attributes, u64), Failure> {
    match files::look(client, path) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(Failure::new(format!("{}: no such file or directory", shown(path)))
            .hint("`iolab fs ls -r` lists what there is")),
        Err(error) => Err(failure(path, error)),
    }
}

/// Makes a call without memory.
pub(super) fn ask(client: &Client, path: &[u8], call: Call) -> Result<(), Failure> {
    client.call(call, &mut NoMemory).map(drop).map_err(|error| failure(path, error))
}

fn named(path: Option<&PathBuf>) -> Result<Vec<u8>, Failure> {
    path.map_or(Ok(b"/".to_vec()), |path| name_of(path))
}

pub(super) fn ls(arguments: &Ls) -> Result<ExitCode, Failure> {
    let client = arguments.place.client()?;
    let path = named(arguments.path.as_ref())?;
    let (attributes, _) = found(&client, &path)?;
    let listed = match (attributes.kind, arguments.recursive || arguments.path.is_none()) {
        (Kind::File, _) => vec![(path.clone(), attributes)],
        (Kind::Directory, true) => {
            files::walk(&client, &path).map_err(|error| failure(&path, error))?
        }
        (Kind::Directory, false) => {
            let entries = files::list(&client, &path).map_err(|error| failure(&path, error))?;
            let whole = |name: &[u8]| files::below(&path, name);
            entries.iter().map(|entry| (whole(&entry.name), entry.attributes)).collect()
        }
    };
    for (path, attributes) in listed {
        let (sign, bytes) = match attributes.kind {
            Kind::Directory => ("d", String::new()),
            // One that somebody removes meanwhile is not listed.
            Kind::File => match files::look(&client, &path) {
                Ok(None) => continue,
                Ok(Some((_, bytes))) => ("-", bytes.to_string()),
                Err(error) => return Err(failure(&path, error)),
            },
        };
        say_line!("{sign}{:04o} {bytes:>15} {}", attributes.mode & 0o7777, shown(&path));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn cat(arguments: &Cat) -> Result<ExitCode, Failure> {
    let client = arguments.place.client()?;
    let mut chunk = vec![0; CHUNK_BYTES];
    for path in &arguments.paths {
        let path = name_of(path)?;
        let wrong = |error| failure(&path, error);
        let file = OpenFile::open(&client, &path, OpenWish::TO_READ).map_err(wrong)?;
        let mut at = 0;
        loop {
            let bytes = file.read_at(at, &mut chunk).map_err(wrong)?;
            let written = io::stdout().write_all(&chunk[..bytes]);
            if bytes == 0 || is_closed(&written) {
                break;
            }
            written.map_err(|error| Failure::new(format!("standard output: {error}")))?;
            at += bytes as u64;
        }
        file.close().map_err(wrong)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A reader that has seen enough is no failure.
fn is_closed(written: &io::Result<()>) -> bool {
    written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

pub(super) fn mv(arguments: &Mv) -> Result<ExitCode, Failure> {
    let client = arguments.place.client()?;
    let (from, mut to) = (name_of(&arguments.from)?, name_of(&arguments.to)?);
    let (attributes, _) = found(&client, &from)?;
    let there = files::look(&client, &to).map_err(|error| failure(&to, error))?;
    if attributes.kind == Kind::File && there.is_some_and(|(it, _)| it.kind == Kind::Directory) {
        let name = from.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        to = files::below(&to, name);
    }
    let call = Call::Rename { from: from.clone(), to: to.clone() };
    ask(&client, &from, call)?;
    if let Some(standing) = Standing::of(&client) {
        let mut moved = vec![(to.clone(), attributes)];
        if attributes.kind == Kind::Directory {
            moved = files::walk(&client, &to).map_err(|error| failure(&to, error))?;
        }
        for (new, _) in moved.iter().filter(|(_, it)| it.kind == Kind::File) {
            standing.went(&[&from, &new[to.len()..]].concat());
            standing.came(new);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn rm(arguments: &Rm) -> Result<ExitCode, Failure> {
    let client = arguments.place.client()?;
    for path in &arguments.paths {
        let path = name_of(path)?;
        let (attributes, _) = found(&client, &path)?;
        if attributes.kind == Kind::Directory && !arguments.recursive {
            return Err(Failure::new(format!("{} is a directory", shown(&path)))
                .hint("`iolab fs rm -r` removes it with all that is below"));
        }
        remove(&client, &path, attributes.kind)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes a name with all that is below it, the lowest first.
fn remove(client: &Client, path: &[u8], kind: Kind) -> Result<(), Failure> {
    if kind == Kind::Directory {
        let below = files::walk(client, path).map_err(|error| failure(path, error))?;
        for (path, attributes) in below.iter().rev() {
            let call = Call::Remove { path: path.clone(), kind: attributes.kind };
            ask(client, path, call)?;
            Standing::of(client).iter().for_each(|it| it.went(path));
        }
        if path == b"/" {
            return Ok(());
        }
    }
    ask(client, path, Call::Remove { path: path.to_vec(), kind })?;
    Standing::of(client).iter().for_each(|it| it.went(path));
    Ok(())
}

pub(super) fn mkdir(arguments: &Mkdir) -> Result<ExitCode, Failure> {
    let client = arguments.place.client()?;
    for path in &arguments.paths {
        let path = name_of(path)?;
        if arguments.parents {
            let inner = files::below(&path, b"x");
            files::make_parents(&client, &inner).map_err(|error| failure(&path, error))?;
        } else {
            let call = Call::MakeDirectory { path: path.clone(), mode: 0o755 };
            ask(&client, &path, call)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn du(arguments: &Du) -> Result<ExitCode, Failure> {
    let client = arguments.place.client()?;
    let all = vec![PathBuf::from("/")];
    let paths = if arguments.paths.is_empty() { &all } else { &arguments.paths };
    for path in paths {
        let path = name_of(path)?;
        let (attributes, bytes) = found(&client, &path)?;
        let (mut files_count, mut sum) = (1, bytes);
        if attributes.kind == Kind::Directory {
            (files_count, sum) = (0, 0);
            let below = files::walk(&client, &path).map_err(|error| failure(&path, error))?;
            for (path, _) in below.iter().filter(|(_, it)| it.kind == Kind::File) {
                let found = files::look(&client, path).map_err(|error| failure(path, error))?;
                files_count += 1;
                sum += found.map_or(0, |(_, bytes)| bytes);
            }
        }
        let size = format_bytes(sum);
        let files = if files_count == 1 { "file" } else { "files" };
        say_line!("{sum:>15} {size:>12} {files_count:>7} {files:<5} {}", shown(&path));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn layout(arguments: &Layout) -> Result<ExitCode, Failure> {
    let client = arguments.place.client()?;
    for path in &arguments.paths {
        let path = name_of(path)?;
        let (attributes, bytes) = found(&client, &path)?;
        let Some(layout) = attributes.layout else {
            return Err(Failure::new(format!("{} is a directory", shown(&path)))
                .hint("only files are partitioned"));
        };
        say_line!("{} {layout} {bytes} bytes, inode {}", shown(&path), attributes.inode);
        for subfile in 0..layout.subfiles() {
            let server = layout.server_of(subfile, client.servers());
            let below = layout.bytes_below(subfile, bytes);
            say_line!("  subfile {subfile:<4} on server {server:<3} {below:>15} bytes");
        }
    }
    Ok(ExitCode::SUCCESS)
}
