//! A mount for one command only: in a mount namespace of its own the directories are covered by
//! themselves, seen through strategies. Nobody outside sees anything, and it is gone with the last
//! process of the command.
//!
//! Two processes: the *server* stays outside, where the directories are what they were, and serves
//! ([`serve`]); the launcher goes inside ([`enter`]) and starts the command there. The launcher mounts,
//! because a namespace's mounts are made in it, and hands the device over; both speak over a socket:
//! the server says `r` when it has opened the directories, and after each device that came `k`.
//!
//! Another user than root makes a user namespace as well, which knows no users and groups but the
//! launcher's own; the kernel writes to no file of one it does not know. So all files show as the
//! launcher's own there, and what it may do with them the source decides.

use crate::forgetting;
use crate::members::Packed;
use crate::refusal::{MountError, device, directory, of_mounting};
use crate::session::{Source, configuration, counted, prepare};
use fuser::{Session, SessionACL};
use iolab_host::eprintln;
use iolab_host::recording::Teller;
use iolab_policy::insitu::{StrategySpec, Totals};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fmt, fs, thread};

const READY: u8 = b'r';
const KEPT: u8 = b'k';

/// Why a command does not get its own view.
#[derive(Debug)]
pub enum NamespaceError {
    /// The system makes no namespace.
    Namespace(io::Error),
    /// There is no mount in it.
    Mount(MountError),
    /// The server has ended; it has said why.
    Server,
    /// The launcher has; it has said why.
    Launcher,
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamespaceError::Namespace(error) => {
                write!(f, "the system makes no namespace for the command: {error}")
            }
            NamespaceError::Mount(error) => error.fmt(f),
            NamespaceError::Server => write!(f, "the server of the command's files has ended"),
            NamespaceError::Launcher => write!(f, "the launcher of the command has ended"),
        }
    }
}

impl std::error::Error for NamespaceError {}

impl NamespaceError {
    /// A way out.
    pub fn hint(&self) -> Option<String> {
        match self {
            NamespaceError::Namespace(_) => Some(
                "user namespaces may be forbidden (sysctl user.max_user_namespaces, \
                 kernel.apparmor_restrict_unprivileged_userns; containers): run it as root with \
                 CAP_SYS_ADMIN, or with --via preload"
                    .to_owned(),
            ),
            NamespaceError::Mount(error) => error.hint(),
            NamespaceError::Server | NamespaceError::Launcher => None,
        }
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> NamespaceError {
    move |error| NamespaceError::Mount(MountError::System(what, error))
}

/// The directories as the system calls them, each once, and none inside another one.
///
/// # Errors
/// When one is not there or cannot be covered.
pub fn outermost(directories: &[PathBuf]) -> Result<Vec<PathBuf>, MountError> {
    let named = directories.iter().map(|it| directory(it, MountError::Source));
    let mut all: Vec<PathBuf> = named.collect::<Result<_, _>>()?;
    all.sort();
    let mut outer: Vec<PathBuf> = Vec::new();
    for one in all {
        if !outer.iter().any(|known| one.starts_with(known)) {
            outer.push(one);
        }
    }
    let system_own = ["/proc", "/sys", "/dev"].map(Path::new);
    let is_covered = |it: &&PathBuf| {
        it.as_path() == Path::new("/") || system_own.iter().any(|own| it.starts_with(own))
    };
    let is_memory =
        |it: &&PathBuf| it.starts_with("/dev/shm") && it.as_path() != Path::new("/dev/shm");
    match outer.iter().find(|it| is_covered(it) && !is_memory(it)) {
        Some(one) => Err(MountError::Own(one.clone())),
        None => Ok(outer),
    }
}

/// Serves directories to the launcher at the other end, in threads of this process; `teller` is told of calls.
/// `is_quiet`: nothing is said of what merely passes.
///
/// # Errors
/// Names what is in the way.
pub fn serve(
    mut launcher: UnixStream,
    directories: &[PathBuf],
    strategies: &[StrategySpec],
    teller: Option<Teller>,
    is_quiet: bool,
) -> Result<Served, NamespaceError> {
    let teller = teller.map(Arc::new);
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let own = (!user.is_root()).then(|| (user.as_raw(), group.as_raw()));
    let prepared: Vec<_> = directories
        .iter()
        .map(|place| {
            let source = Source { path: place, is_read_only: false, is_quiet };
            prepare(source, vec![place.clone()], strategies, own, teller.clone())
        })
        .collect::<Result<_, _>>()
        .map_err(NamespaceError::Mount)?;
    launcher.write_all(&[READY]).map_err(|_| NamespaceError::Launcher)?;
    let mut served = Served { hosted: Vec::new(), sessions: Vec::new() };
    for (hosted, requests) in prepared {
        let device = receive(&launcher).map_err(|_| NamespaceError::Launcher)?;
        let mut config = configuration(strategies);
        // The kernel asks no others than those in the namespace; another user's device cannot be
        // opened a second time from outside.
        config.acl = SessionACL::All;
        config.clone_fd &= user.is_root();
        let session = Session::from_fd(requests, device, config.acl, config)
            .map_err(|error| NamespaceError::Mount(of_mounting(error)))?;
        forgetting::begin(&hosted, session.notifier());
        served.sessions.push(thread::spawn(move || session.run()));
        served.hosted.push(hosted);
        launcher.write_all(&[KEPT]).map_err(|_| NamespaceError::Launcher)?;
    }
    Ok(served)
}

/// Directories that are being served.
pub struct Served {
    hosted: Vec<Arc<crate::open::Hosted>>,
    sessions: Vec<thread::JoinHandle<io::Result<()>>>,
}

/// Who can have held bytes written out.
pub struct Release(Vec<Arc<crate::open::Hosted>>);

impl Release {
    /// What is held goes out, and calls pass from now on.
    pub fn release(&self) {
        self.0.iter().for_each(|hosted| {
            hosted.end();
        });
    }

    /// All that was told of calls so far is in the recording.
    pub fn tell_all(&self) {
        self.0.iter().for_each(|hosted| hosted.tell_all());
    }
}

impl Served {
    /// For whoever hears signals.
    pub fn release(&self) -> Release {
        Release(self.hosted.clone())
    }

    /// Waits until the last process of the command has gone. What strategies that count have counted is
    /// the answer, and what became of small files, by directory.
    pub fn wait(self) -> (Totals, Vec<Packed>) {
        for session in self.sessions {
            // The mount is gone with its namespace, which is no error.
            if let Ok(Err(error)) = session.join() {
                eprintln!("iolab: ERROR: the command's files were not served to its end: {error}");
            }
        }
        let mut totals = Totals::default();
        self.hosted.iter().for_each(|hosted| {
            totals.merge(&counted(hosted));
            hosted.tell_the_end();
        });
        let packed = self.hosted.iter().filter_map(|hosted| hosted.packed());
        (totals, packed.collect())
    }
}

/// Puts this process, which must have one thread, and all it starts into a namespace where the
/// directories are seen through the server's strategies.
///
/// # Errors
/// Names what is in the way.
pub fn enter(mut server: &UnixStream, directories: &[PathBuf]) -> Result<(), NamespaceError> {
    hear(&mut server, READY)?;
    device().map_err(NamespaceError::Mount)?;
    let here = env::current_dir();
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let namespace = |errno: nix::Error| NamespaceError::Namespace(errno.into());
    if user.is_root() {
        unshare(CloneFlags::CLONE_NEWNS).map_err(namespace)?;
    } else {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).map_err(namespace)?;
        let (user, group) = (user.as_raw(), group.as_raw());
        let map = |file: &str, line: String| {
            fs::write(format!("/proc/self/{file}"), line).map_err(NamespaceError::Namespace)
        };
        map("setgroups", "deny".to_owned())?;
        map("uid_map", format!("{user} {user} 1"))?;
        map("gid_map", format!("{group} {group} 1"))?;
    }
    let nothing: Option<&str> = None;
    let apart = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount(nothing, "/", nothing, apart, nothing).map_err(namespace)?;
    for place in directories {
        cover(server, place)?;
        hear(&mut server, KEPT)?;
    }
    // What this process calls its directory may be covered by now.
    match here {
        Ok(here) => env::set_current_dir(here).map_err(system("the working directory")),
        Err(_) => Ok(()),
    }
}

/// Mounts over a directory and hands the device to the server.
fn cover(server: &UnixStream, place: &Path) -> Result<(), NamespaceError> {
    let of_mounting = |error: io::Error| NamespaceError::Mount(of_mounting(error));
    let device = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| of_mounting(error.into()))?;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // In a user namespace the source itself knows best what its user may do.
    let checks = if user.is_root() { ",default_permissions" } else { "" };
    let data = format!(
        "fd={},rootmode=40000,user_id={},group_id={},allow_other{checks}",
        device.as_raw_fd(),
        user.as_raw(),
        group.as_raw()
    );
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some(place), place, Some("fuse.iolab"), flags, Some(data.as_str()))
        .map_err(|error| of_mounting(error.into()))?;
    send(server, &device).map_err(system("the server"))
}

fn hear(server: &mut &UnixStream, word: u8) -> Result<(), NamespaceError> {
    let mut said = [0];
    match server.read(&mut said) {
        Ok(1) if said[0] == word => Ok(()),
        _ => Err(NamespaceError::Server),
    }
}

fn send(to: &UnixStream, device: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let devices = [device.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&devices));
    sendmsg(to, &[IoSlice::new(b"d")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(from: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(from, &mut [IoSliceMut::new(&mut word)], &mut control, flags)?;
    let devices = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut devices) => devices.next(),
        _ => None,
    });
    devices.last().ok_or_else(|| io::Error::other("it has ended"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_covered_once_from_the_outermost() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(root.join("ab")).unwrap();
        let named = ["a/b", "ab", "a", "a/../ab"].map(|name| root.join(name));
        assert_eq!(outermost(&named).unwrap(), [root.join("a"), root.join("ab")]);
    }

    #[test]
    fn the_systems_own_directories_are_refused() {
        for own in ["/", "/proc/self", "/sys", "/dev"] {
            let refused = outermost(&[PathBuf::from(own)]).unwrap_err();
            assert!(matches!(refused, MountError::Own(_)), "{own}: {refused}");
        }
    }

    #[test]
    fn a_device_travels_over_the_socket() {
        let (one, other) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(b"sent").unwrap();
        send(&one, &OwnedFd::from(file)).unwrap();
        let came = receive(&other).unwrap();
        assert_eq!(rustix::fs::fstat(&came).unwrap().st_size, 4);
    }
}
