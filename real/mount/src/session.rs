//! A mount from beginning to end.
//!
//! It ends when it is unmounted, or when it is told to ([`Mounted::end`]): then nothing is held any
//! more, no new program finds it, and those that have files open are served until they close them.

use crate::file_system::Requests;
use crate::forgetting;
use crate::members::Packed;
use crate::open::Hosted;
use crate::refusal::{MountError, check, of_mounting};
use fuser::{Config, MountOption, Session, SessionACL};
use iolab_host::recording::Teller;
use iolab_host::{can_clone_fuse_device, eprintln};
use iolab_policy::insitu::{StrategySpec, Totals};
use nix::mount::{MntFlags, umount2};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

/// What is mounted where.
pub struct Settings {
    /// The directory whose files are served.
    pub source: PathBuf,
    /// Where they are seen.
    pub mountpoint: PathBuf,
    /// Strategies for them, top first.
    pub strategies: Vec<StrategySpec>,
    /// Nothing can be changed.
    pub is_read_only: bool,
}

/// A directory whose files are served, and how.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    /// Nothing can be changed.
    pub(crate) is_read_only: bool,
    /// Nothing is said of what merely passes.
    pub(crate) is_quiet: bool,
}

/// Strategies that wait (`throttle`), or are for several processes, keep a thread for as long.
const THREADS_THAT_WAIT: usize = 16;

/// A mount that goes on.
pub struct Mounted {
    hosted: Arc<Hosted>,
    mountpoint: PathBuf,
    session: JoinHandle<io::Result<()>>,
}

/// Mounts, and serves in threads of this process; `ended` is called when it is over.
///
/// # Errors
/// Names what is in the way.
pub fn mount(settings: Settings, ended: fn()) -> Result<Mounted, MountError> {
    let (source, mountpoint) = check(&settings.source, &settings.mountpoint)?;
    let mut names = vec![mountpoint.clone()];
    names.extend(std::path::absolute(&settings.mountpoint));
    let served = Source { path: &source, is_read_only: settings.is_read_only, is_quiet: false };
    let (hosted, requests) = prepare(served, names, &settings.strategies, None, None)?;
    let mut config = configuration(&settings.strategies);
    config.mount_options = vec![
        MountOption::FSName(source.to_string_lossy().into_owned()),
        MountOption::Subtype("iolab".to_owned()),
        MountOption::DefaultPermissions,
    ];
    if settings.is_read_only {
        config.mount_options.push(MountOption::RO);
    }
    let session = Session::new(requests, &mountpoint, &config).map_err(of_mounting)?;
    forgetting::begin(&hosted, session.notifier());
    let session = std::thread::spawn(move || {
        let outcome = session.run();
        ended();
        outcome
    });
    Ok(Mounted { hosted, mountpoint, session })
}

/// What serves a source as it is seen at a place of these names, by users who are all one where `own` says so;
/// `teller` is told of calls.
pub(crate) fn prepare(
    source: Source<'_>,
    seen_at: Vec<PathBuf>,
    strategies: &[StrategySpec],
    own: Option<(u32, u32)>,
    teller: Option<Arc<Teller>>,
) -> Result<(Arc<Hosted>, Requests), MountError> {
    allow_many_files();
    rustix::process::umask(rustix::fs::Mode::empty());
    let hosted = Hosted::new(source, seen_at, strategies.to_vec(), own, teller)
        .map_err(|error| MountError::Source(source.path.to_owned(), error.into()))?;
    let hosted = Arc::new(hosted);
    Ok((hosted.clone(), Requests(hosted)))
}

/// How requests are taken.
pub(crate) fn configuration(strategies: &[StrategySpec]) -> Config {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let waits = strategies.iter().any(|spec| spec.needs_mount() || spec.build().reads_clock());
    let is_root = rustix::process::geteuid().is_root();
    let mut config = Config::default();
    config.acl = if is_root { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(if waits { cores.max(THREADS_THAT_WAIT) } else { cores.max(2) });
    config.clone_fd = can_clone_fuse_device();
    config
}

/// Each file that the kernel knows takes a descriptor.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

impl Mounted {
    /// Where files are seen.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// What is held goes out, calls pass from now on, and the mount is taken away from all who do not
    /// use it. How many files are open still?
    pub fn end(&self) -> usize {
        let open = self.hosted.end();
        if umount2(&self.mountpoint, MntFlags::MNT_DETACH).is_err() {
            // The system lets only root unmount; the helper's word counts for its owner.
            let helper = Command::new("fusermount3").arg("-uz").arg(&self.mountpoint).output();
            if helper.is_err() {
                eprintln!("iolab: warning: umount {} by hand", self.mountpoint.display());
            }
        }
        open
    }

    /// Waits for the end. What strategies that count have counted is the answer, and what became of small files.
    ///
    /// # Errors
    /// What the session says.
    pub fn wait(self) -> io::Result<(Totals, Option<Packed>)> {
        match self.session.join() {
            Ok(outcome) => outcome.map(|()| (counted(&self.hosted), self.hosted.packed())),
            Err(_) => Err(io::Error::other("a thread of the mount panicked")),
        }
    }
}

/// What was counted by the time nobody has a file open any more.
pub(crate) fn counted(hosted: &Hosted) -> Totals {
    hosted.end();
    hosted.counted.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
