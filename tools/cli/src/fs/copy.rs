//! `iolab fs cp`: files into a file system, out of it, and within it.

use super::{PREFIX, Place, Standing, failure, files::found, name_of, shown};
use crate::failure::Failure;
use clap::Args;
use iolab_pfs::client::Call;
use iolab_pfs::{Kind, OpenWish};
use iolab_pfs_node::files::{self, OpenFile};
use iolab_pfs_node::{Client, NoMemory, plain};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const CHUNK_BYTES: usize = 4 << 20;

/// Copy files into a file system, out of it, or within it.
///
/// Names in the file system begin with `iolab:`, as in `iolab fs cp --dir DIR iolab:/run/out.dat .`
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The files, and then where they go.
    #[arg(required = true, num_args = 2..)]
    paths: Vec<PathBuf>,
}

/// A file, there or here.
#[derive(Clone)]
enum Name {
    Inside(Vec<u8>),
    Plain(PathBuf),
}

impl Name {
    fn of(path: &Path) -> Result<Name, Failure> {
        match path.as_os_str().as_bytes().starts_with(PREFIX) {
            true => Ok(Name::Inside(name_of(path)?)),
            false => Ok(Name::Plain(path.to_owned())),
        }
    }

    fn last(&self) -> Vec<u8> {
        match self {
            Name::Inside(path) => path.rsplit(|&it| it == b'/').next().unwrap_or_default().to_vec(),
            Name::Plain(path) => path.file_name().unwrap_or_default().as_bytes().to_vec(),
        }
    }

    fn is_directory(&self, client: &Client) -> Result<bool, Failure> {
        match self {
            Name::Plain(path) => Ok(path.is_dir()),
            Name::Inside(path) => {
                let found = files::look(client, path).map_err(|error| failure(path, error))?;
                Ok(found.is_some_and(|(it, _)| it.kind == Kind::Directory))
            }
        }
    }

    fn below(&self, name: Vec<u8>) -> Name {
        match self {
            Name::Inside(path) => Name::Inside(files::below(path, &name)),
            Name::Plain(path) => Name::Plain(path.join(std::ffi::OsString::from_vec(name))),
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let client = arguments.place.client()?;
    let (to, from) = arguments.paths.split_last().expect("there are two at least");
    let target = Name::of(to)?;
    let into = target.is_directory(&client)?;
    if from.len() > 1 && !into {
        return Err(Failure::new(format!("{} is no directory", to.display()))
            .hint("several files go into a directory that is there"));
    }
    let standing = Standing::of(&client);
    for path in from {
        let source = Name::of(path)?;
        let to = if into { target.below(source.last()) } else { target.clone() };
        copy(&client, &source, &to)?;
        if let Name::Inside(path) = &to {
            standing.iter().for_each(|it| it.came(path));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn copy(client: &Client, from: &Name, to: &Name) -> Result<(), Failure> {
    match (from, to) {
        (Name::Inside(from), Name::Plain(to)) => {
            found(client, from)?;
            plain::export_file(client, from, to).map(drop).map_err(|error| failure(from, error))
        }
        (Name::Plain(from), Name::Inside(to)) => bring(client, from, to),
        (Name::Inside(from), Name::Inside(to)) => copy_within(client, from, to),
        (Name::Plain(from), Name::Plain(_)) => Err(Failure::new(format!(
            "neither {} nor where it goes is in the file system",
            from.display()
        ))
        .hint("names in the file system begin with `iolab:`, as in iolab:/run/out.dat")),
    }
}

/// Brings a plain file in; one of that name is replaced.
pub(super) fn bring(client: &Client, from: &Path, to: &[u8]) -> Result<(), Failure> {
    if !from.is_file() {
        let what = if from.exists() { "it is no file" } else { "no such file" };
        return Err(Failure::new(format!("{}: {what}", from.display()))
            .hint("only plain files that are there can be brought in"));
    }
    let wrong = |error| failure(to, error);
    if files::look(client, to).map_err(wrong)?.is_some() {
        let call = Call::Remove { path: to.to_vec(), kind: Kind::File };
        client.call(call, &mut NoMemory).map_err(wrong)?;
    }
    plain::import_file(client, from, to).map(drop).map_err(wrong)
}

fn copy_within(client: &Client, from: &[u8], to: &[u8]) -> Result<(), Failure> {
    let (attributes, _) = found(client, from)?;
    if from == to {
        return Err(Failure::new(format!("{} is the same file twice", shown(from)))
            .hint("give the copy another name"));
    }
    let source =
        OpenFile::open(client, from, OpenWish::TO_READ).map_err(|error| failure(from, error))?;
    let wish = OpenWish { writes: true, creates: true, mode: attributes.mode, ..OpenWish::TO_READ };
    let target = OpenFile::open(client, to, wish).map_err(|error| failure(to, error))?;
    target.resize(0).map_err(|error| failure(to, error))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    loop {
        let bytes = source.read_at(at, &mut chunk).map_err(|error| failure(from, error))?;
        if bytes == 0 {
            break;
        }
        target.write_at(at, &chunk[..bytes]).map_err(|error| failure(to, error))?;
        at += bytes as u64;
    }
    target.close().map_err(|error| failure(to, error))?;
    source.close().map_err(|error| failure(from, error))
}
