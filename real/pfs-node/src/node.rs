//! All roles of an instance in one process: a thread for each I/O server and each cache manager, one for the
//! metadata manager.

use crate::cache::Cache;
use crate::device_sync::sync_directory;
use crate::instance::{self, Instance, Place};
use crate::journal_file::JournalFile;
use crate::lost::Lost;
use crate::manager::Manager;
use crate::peers::listen;
use crate::remark::remark;
use crate::room::{Promises, Used};
use crate::running::thread_name;
use crate::server::Server;
use crate::subfiles::Subfiles;
use crate::sums::Sums;
use crate::tape;
use crate::window::Budget;
use crate::worker::Bell;
use iolab_pfs::cache_manager;
use iolab_pfs::configuration::Durability;
use iolab_pfs::io_server::Limit;
use iolab_pfs::metadata::Settings;
use iolab_pfs::session::Welcome;
use iolab_pfs::{Incarnation, Party};
use iolab_vocab::Refusal;
use rustix::fd::OwnedFd;
use rustix::process::{Resource, Rlimit};
use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread::JoinHandle;

/// The servers of an instance, which run until this value is dropped.
#[derive(Debug)]
pub struct Node {
    instance: Instance,
    stop: Bell,
    threads: Vec<JoinHandle<bool>>,
    /// Those of cache managers end first: servers take what they still have.
    stop_caches: Vec<Bell>,
    caches: Vec<JoinHandle<bool>>,
}

impl Node {
    /// Starts the servers of an instance. When this returns, they can be connected to.
    pub fn start(instance: Instance) -> Result<Node, Refusal> {
        raise_limit();
        let stop = Bell::new().map_err(|error| failed("a server", &error))?;
        let (threads, stop_caches, caches) = (Vec::new(), Vec::new(), Vec::new());
        let mut node = Node { instance, stop, threads, stop_caches, caches };
        let instance::Description { servers, caches, cache_memory, durability, .. } =
            node.instance.description;
        let instance::Description { placement, replacement, write_policy, .. } =
            node.instance.description;
        let windows = Budget::of(node.instance.window_memory);
        let promises = Promises::default();
        let events = tape::place(&node.instance.directory);
        for server in 0..servers {
            let device = Subfiles::at(&node.instance.data(server), servers);
            let named = |error: io::Error| failed(&format!("I/O server {server}"), &error);
            let mut device = device.map_err(named)?;
            match node.instance.description.sums {
                true => {
                    let is_for_device = durability == Durability::Device;
                    let sums = Sums::at(&node.instance.sums(server), is_for_device);
                    device.keep_sums(sums.map_err(named)?);
                }
                // Nobody would strike out what is written over.
                false => forget_sums(&node.instance.sums(server)).map_err(named)?,
            }
            if durability == Durability::Device {
                let synced = node.instance.sync_names_of(server);
                synced.map_err(|error| failed(&format!("I/O server {server}"), &error))?;
            }
            let lost = Lost::begin(&node.instance.server(server), &node.instance.data(server));
            let device = (device, durability, lost.map_err(named)?);
            // Each server has an equal share.
            let used = |limit: Limit| {
                let used = Used::below(&node.instance.data(server));
                used.map(|used| (limit.shared(servers), used))
            };
            let limit = node.instance.description.limit().map(used).transpose();
            let limit = limit.map_err(|error| failed(&format!("I/O server {server}"), &error))?;
            let limit = (limit, promises.clone());
            let (stop, windows) = (node.stop.clone(), windows.clone());
            let events = events.clone();
            let thread =
                node.serve(Party::Server(server), stop, move |door, _, welcome, stop| {
                    let events = events.as_deref();
                    Server::new(device, limit, door, welcome, windows, events)?.run(stop)?;
                    Ok(())
                })?;
            node.threads.push(thread);
        }
        for index in 0..caches {
            let stop = Bell::new().map_err(|error| failed("a cache manager", &error))?;
            node.stop_caches.push(stop.clone());
            let usual = cache_manager::Settings::usual(index, caches, servers);
            let settings = cache_manager::Settings {
                memory: cache_memory,
                placement,
                replacement,
                write_policy,
                ..usual
            };
            let (party, events) = (Party::Cache(index), events.clone());
            let thread = node.serve(party, stop, move |door, place, welcome, stop| {
                Cache::new(settings, door, place, welcome, events.as_deref())?.run(stop)
            })?;
            node.caches.push(thread);
        }
        // The manager comes last: who reaches it, reaches all others.
        let description = &node.instance.description;
        let usual = Settings::usual(servers);
        let journal_bytes = description.journal.unwrap_or(usual.journal_bytes);
        let (layout, files_quota) = (description.layout, description.quota_files);
        let settings = Settings { caches, layout, journal_bytes, files_quota, ..usual };
        let uuid = u128::from_str_radix(&description.uuid, 16).map_err(|_| {
            Refusal::new(
                format!("instance.toml: `{}` is no uuid", description.uuid),
                "take the directory as `iolab fs up` left it",
            )
        })?;
        let incarnation = instance::random() as u64;
        let recovered = JournalFile::open(
            &node.instance.journal(),
            uuid,
            incarnation,
            settings,
            events.as_deref(),
        )?;
        if durability == Durability::Device {
            recovered.0.sync().map_err(|error| failed("metadata manager", &error))?;
        }
        let stop = node.stop.clone();
        let thread = node.serve(Party::Metadata, stop, move |door, place, welcome, stop| {
            Manager::new((recovered, durability), door, place, welcome)?.run(stop)?;
            Ok(())
        })?;
        node.threads.push(thread);
        Ok(node)
    }

    /// Opens the door of a party, and has it served by a thread until the bell rings.
    fn serve(
        &self,
        party: Party,
        stop: Bell,
        serve: impl FnOnce(OwnedFd, Place, Welcome, &Bell) -> io::Result<()> + Send + 'static,
    ) -> Result<JoinHandle<bool>, Refusal> {
        let name = party.to_string();
        let directory = &self.instance.directory;
        let opened = Place::of(directory).and_then(|place| {
            // The lock says that nobody else serves: a socket that is there is left over.
            match fs::remove_file(directory.join(instance::socket_name(party))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let door = listen(&place.address(party)?)?;
            Ok((place, door))
        });
        let (place, door) = opened.map_err(|error| failed(&name, &error))?;
        let welcome = Welcome {
            incarnation: Incarnation(instance::random() as u64),
            known: false,
            party,
            servers: self.instance.description.servers,
            caches: self.instance.description.caches,
            placement: self.instance.description.placement,
            write_policy: self.instance.description.write_policy,
        };
        let work = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| serve(door, place, welcome, &stop)));
            let problem = match ended {
                Ok(Ok(())) => return true,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "a defect of iolab".to_owned(),
            };
            remark(format_args!("{party} has ended: {problem}"));
            // Without one of its parties an instance only makes calls wait.
            Signals::send();
            false
        };
        let thread = std::thread::Builder::new().name(thread_name(party));
        thread.spawn(work).map_err(|error| failed(&name, &error))
    }

    /// The instance.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Ends the servers; whether all of them were well until then.
    pub fn stop(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        let mut well = true;
        self.stop_caches.iter().for_each(Bell::ring);
        for thread in self.caches.drain(..) {
            well &= thread.join().unwrap_or(false);
        }
        self.stop.ring();
        for thread in self.threads.drain(..) {
            well &= thread.join().unwrap_or(false);
        }
        let instance::Description { servers, caches, .. } = self.instance.description;
        for party in (0..servers).map(Party::Server).chain((0..caches).map(Party::Cache)) {
            let _ = fs::remove_file(self.instance.directory.join(instance::socket_name(party)));
        }
        let metadata = instance::socket_name(Party::Metadata);
        let _ = fs::remove_file(self.instance.directory.join(metadata));
        well
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end();
        }
    }
}

/// Removes the sums of a server that keeps none any more.
fn forget_sums(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| directory.parent().map_or(Ok(()), sync_directory)),
    }
}

fn failed(who: &str, error: &io::Error) -> Refusal {
    Refusal::new(
        format!("{who} could not be started: {error}"),
        "it needs a directory to write to, descriptors, and a thread",
    )
}

/// Takes as many descriptors as this process may have: each connection is two.
fn raise_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

/// Free bytes and all bytes of the device that a directory is on.
pub fn room(directory: &Path) -> io::Result<(u64, u64)> {
    let found = rustix::fs::statvfs(directory)?;
    Ok((found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize))
}

/// Signals that end a node, heard by one thread instead of interrupting all.
#[derive(Debug)]
pub struct Signals(libc::sigset_t);

impl Signals {
    /// From here on, in this thread and those it starts, they wait to be heard. A limit on the size of
    /// files becomes an error of the call that meets it.
    pub fn block() -> Signals {
        // SAFETY: plain structures of this thread, and a signal that is to have no effect.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            Signals(set)
        }
    }

    /// Waits for one.
    pub fn wait(&self) {
        let mut signal = 0;
        // SAFETY: waits for one of a set that was made in `block`.
        while unsafe { libc::sigwait(&self.0, &mut signal) } == libc::EINTR {}
    }

    /// Sends one to this process.
    pub fn send() {
        let this = rustix::process::getpid();
        let _ = rustix::process::kill_process(this, rustix::process::Signal::TERM);
    }
}

/// Lets go of the terminal and directory of whoever started this process; what it still has to say goes
/// to the end of a log.
pub fn leave(log: &Path) -> io::Result<()> {
    let log = File::options().create(true).append(true).open(log)?;
    let nothing = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nothing)?;
    rustix::stdio::dup2_stderr(log)?;
    std::env::set_current_dir("/")
}
