//! The directory of an instance: what it is, who runs it, and where its parties listen.
//!
//! ```text
//! DIR/instance.toml       what was chosen when it was made
//! DIR/lock                locked by the process that runs it, whose number it holds
//! DIR/bound               locked by it, too, where it ends with a run
//! DIR/runs                locked by the runs on it
//! DIR/metadata.socket, DIR/server-K.socket, DIR/cache-K.socket
//! DIR/metadata/           journal of names
//! DIR/server-K/data/      subfiles
//! DIR/server-K/sums/      sums of their pages, if they are kept
//! DIR/*/unsynced          a sync has failed here: what the kernel has may not be on the device
//! DIR/events.at           link to where events of machines are recorded, if they are
//! ```

use crate::device_sync::sync_directory;
use crate::launch::Life;
use crate::tape;
use iolab_pfs::cache_manager::{self, MEMORY_MIN};
use iolab_pfs::configuration::Durability;
use iolab_pfs::io_server::Limit;
use iolab_pfs::{Layout, Party};
use iolab_policy::placement::catalog as placement;
use iolab_policy::replacement::catalog as replacement;
use iolab_policy::schedule::catalog as schedule;
use iolab_policy::write_policy::catalog as write_policy;
use iolab_vocab::{Refusal, format_bytes};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The format of directories that this version writes and reads.
const FORMAT: u32 = 1;
/// Servers of an instance at most: each is a thread with a directory on this host.
pub const SERVERS_MAX: u32 = 64;
/// Cache managers of an instance at most: each is a thread with memory of its own.
pub const CACHES_MAX: u32 = 64;
/// The least that each server may use: a stripe of the usual size, and some.
const CAPACITY_MIN: u64 = 1 << 20;
/// Servers of a new instance if nobody asks for another number.
const SERVERS: u32 = 4;
/// What is in [`SocketAddrUnix`] at most, the terminating zero not counted.
const ADDRESS_BYTES_MAX: usize = 107;

/// What was chosen when an instance was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Tells it from all others.
    pub uuid: String,
    /// How many I/O servers it has.
    pub servers: u32,
    /// How many cache managers it has; they keep nothing when they end, so that may change.
    pub caches: u32,
    /// Bytes of blocks that each of them keeps at most.
    pub cache_memory: u64,
    /// Which cache manager has which blocks; may change as their number.
    pub placement: &'static placement::Row,
    /// Which block leaves the memory of one when that is full.
    pub replacement: &'static replacement::Row,
    /// When they bring to servers what was written.
    pub write_policy: &'static write_policy::Row,
    /// How files are partitioned that ask for nothing else.
    pub layout: Layout,
    /// In which order clients come to its servers.
    pub schedule: &'static schedule::Row,
    /// What a sync makes of what was written.
    pub durability: Durability,
    /// Whether its servers keep sums of what was written, so that they can tell what their devices have changed.
    pub sums: bool,
    /// Bytes of their devices that its servers may use together, in equal shares; if nothing is said, all.
    pub capacity: Option<u64>,
    /// The same as what its user may use: told otherwise to who meets it.
    pub quota: Option<u64>,
    /// Files and directories that its user may have; if nothing is said, as many as its manager can.
    pub quota_files: Option<u64>,
    /// Bytes of records after which the journal of names begins anew; if nothing is said, the usual number.
    pub journal: Option<u64>,
    /// When it was made: seconds since 1970.
    pub created: u64,
}

/// What somebody wishes of an instance; what is left open is as it was, or as usual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    /// I/O servers.
    pub servers: Option<u32>,
    /// Cache managers.
    pub caches: Option<u32>,
    /// Memory of each cache manager, in bytes.
    pub cache_memory: Option<u64>,
    /// Which cache manager has which blocks.
    pub placement: Option<String>,
    /// Which block leaves a full cache manager.
    pub replacement: Option<String>,
    /// When cache managers bring to servers what was written.
    pub write_policy: Option<String>,
    /// Partition of files.
    pub layout: Option<String>,
    /// In which order clients come to the servers; what is in files does not depend on it.
    pub schedule: Option<String>,
    /// Class of durability, by its name.
    pub durability: Option<String>,
    /// Whether servers keep sums.
    pub sums: Option<bool>,
    /// Bytes that its servers may use together; 0: all there are.
    pub capacity: Option<u64>,
    /// Bytes that its user may use; 0: all there are.
    pub quota: Option<u64>,
    /// Files and directories that its user may have; 0: as many as its manager can.
    pub quota_files: Option<u64>,
    /// Bytes of records after which the journal of names begins anew; 0: as many as usual.
    pub journal: Option<u64>,
    /// Memory that clients and servers share, in bytes, while it is served this time.
    pub window_memory: Option<u64>,
    /// Where the events of all machines are recorded while it is served this time.
    pub events: Option<PathBuf>,
}

impl Wish {
    fn schedule(&self) -> Result<Option<&'static schedule::Row>, Refusal> {
        self.schedule.as_deref().map(schedule::find).transpose()
    }

    fn placement(&self) -> Result<Option<&'static placement::Row>, Refusal> {
        self.placement.as_deref().map(placement::find).transpose()
    }

    fn replacement(&self) -> Result<Option<&'static replacement::Row>, Refusal> {
        self.replacement.as_deref().map(replacement::find).transpose()
    }

    fn write_policy(&self) -> Result<Option<&'static write_policy::Row>, Refusal> {
        self.write_policy.as_deref().map(write_policy::find).transpose()
    }

    fn durability(&self) -> Result<Option<Durability>, Refusal> {
        let found = |name: &str| {
            Durability::find(name).ok_or_else(|| {
                Refusal::new(
                    format!("`{name}` is no class of durability"),
                    "give --durability process, device or none",
                )
            })
        };
        self.durability.as_deref().map(found).transpose()
    }
}

/// `instance.toml`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    format: u32,
    uuid: String,
    servers: u32,
    #[serde(default, skip_serializing_if = "is_none")]
    caches: u32,
    #[serde(default = "usual_cache_memory", skip_serializing_if = "is_usual_cache_memory")]
    cache_memory: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    placement: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replacement: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_policy: Option<String>,
    layout: String,
    #[serde(default = "usual_schedule")]
    schedule: String,
    #[serde(default = "usual_durability")]
    durability: String,
    #[serde(default, skip_serializing_if = "is_without")]
    sums: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capacity: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quota: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quota_files: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    journal: Option<u64>,
    created: u64,
}

/// A number that is wished, where 0 takes away what was found; else that.
fn said(wished: Option<u64>, found: Option<u64>) -> Option<u64> {
    wished.map_or(found, |number| (number > 0).then_some(number))
}

/// Of an instance that does not say it.
fn usual_schedule() -> String {
    schedule::USUAL.name.to_owned()
}

/// The same.
fn usual_durability() -> String {
    Durability::default().name().to_owned()
}

/// Of an instance that does not say it.
fn usual_cache_memory() -> u64 {
    cache_manager::Settings::usual(0, 1, 1).memory
}

fn is_usual_cache_memory(bytes: &u64) -> bool {
    *bytes == usual_cache_memory()
}

/// A name, if it is not the usual one.
fn unusual(name: &str, usual: &str) -> Option<String> {
    (name != usual).then(|| name.to_owned())
}

/// An instance without cache managers does not mention them.
fn is_none(caches: &u32) -> bool {
    *caches == 0
}

/// One without sums does not mention them: older versions, which would not keep those that are there up to date,
/// refuse one that does.
fn is_without(sums: &bool) -> bool {
    !sums
}

/// The one number that every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl Description {
    /// Reads what the instance in a directory is.
    pub fn read(directory: &Path) -> Result<Description, Refusal> {
        let path = directory.join("instance.toml");
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Refusal::new(
                format!(
                    "{} is no file system of iolab: it has no instance.toml",
                    directory.display()
                ),
                "name the directory that was given to `iolab fs up --dir DIR`",
            ),
            _ => unreadable(&path, &error),
        })?;
        Description::parse(&text).map_err(|refusal| Refusal {
            message: format!("{}: {}", path.display(), refusal.message),
            ..refusal
        })
    }

    fn parse(text: &str) -> Result<Description, Refusal> {
        let whole = "take the directory as `iolab fs up` left it";
        let wrong = |error: toml::de::Error| Refusal::new(error.message().to_owned(), whole);
        let Format { format } = toml::from_str(text).map_err(wrong)?;
        if format != FORMAT {
            return Refusal::refuse(
                format!("it has format {format}, and this iolab knows format {FORMAT}"),
                "use the iolab that made it, or another directory",
            );
        }
        let table: Table = toml::from_str(text).map_err(wrong)?;
        if !(1..=SERVERS_MAX).contains(&table.servers) {
            return Refusal::refuse(format!("{} servers", table.servers), whole);
        }
        if table.caches > CACHES_MAX {
            return Refusal::refuse(format!("{} cache managers", table.caches), whole);
        }
        if table.cache_memory < MEMORY_MIN {
            let memory = format_bytes(table.cache_memory);
            return Refusal::refuse(format!("cache managers with {memory} of memory"), whole);
        }
        let Some(durability) = Durability::find(&table.durability) else {
            let class = &table.durability;
            return Refusal::refuse(format!("`{class}` is no class of durability"), whole);
        };
        Ok(Description {
            layout: Layout::parse(&table.layout, table.servers)?,
            schedule: schedule::find(&table.schedule)?,
            durability,
            uuid: table.uuid,
            servers: table.servers,
            caches: table.caches,
            cache_memory: table.cache_memory,
            placement: table.placement.as_deref().map_or(Ok(placement::USUAL), placement::find)?,
            replacement: table
                .replacement
                .as_deref()
                .map_or(Ok(replacement::USUAL), replacement::find)?,
            write_policy: table
                .write_policy
                .as_deref()
                .map_or(Ok(write_policy::USUAL), write_policy::find)?,
            sums: table.sums,
            capacity: table.capacity,
            quota: table.quota,
            quota_files: table.quota_files,
            journal: table.journal,
            created: table.created,
        })
    }

    /// What its servers may use together, and whose limit that is: the narrower of both.
    pub fn limit(&self) -> Option<Limit> {
        match (self.capacity, self.quota) {
            (Some(capacity), Some(quota)) if capacity < quota => Some(Limit::Capacity(capacity)),
            (capacity, None) => capacity.map(Limit::Capacity),
            (_, Some(quota)) => Some(Limit::Quota(quota)),
        }
    }

    fn write(&self, directory: &Path) -> std::io::Result<()> {
        let table = Table {
            format: FORMAT,
            uuid: self.uuid.clone(),
            servers: self.servers,
            caches: self.caches,
            cache_memory: self.cache_memory,
            // What is usual is not mentioned, as in directories of before there were others.
            placement: unusual(self.placement.name, placement::USUAL.name),
            replacement: unusual(self.replacement.name, replacement::USUAL.name),
            write_policy: unusual(self.write_policy.name, write_policy::USUAL.name),
            layout: self.layout.to_string(),
            schedule: self.schedule.name.to_owned(),
            durability: self.durability.name().to_owned(),
            sums: self.sums,
            capacity: self.capacity,
            quota: self.quota,
            quota_files: self.quota_files,
            journal: self.journal,
            created: self.created,
        };
        let text = toml::to_string(&table).map_err(std::io::Error::other)?;
        let beside = directory.join("instance.toml.new");
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, directory.join("instance.toml"))?;
        sync_directory(directory)
    }

    fn new(wish: &Wish) -> Result<Description, Refusal> {
        let servers = wish.servers.unwrap_or(SERVERS);
        if !(1..=SERVERS_MAX).contains(&servers) {
            return Refusal::refuse(
                format!("an instance of {servers} servers"),
                format!("give --servers between 1 and {SERVERS_MAX}"),
            );
        }
        let caches = caches_of(wish)?.unwrap_or(0);
        check_policies(wish, caches)?;
        let cache_memory = cache_memory_of(wish)?.unwrap_or_else(usual_cache_memory);
        let layout = match &wish.layout {
            None => Layout::usual(servers),
            Some(text) => Layout::parse(text, servers)?,
        };
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let schedule = wish.schedule()?.unwrap_or(schedule::USUAL);
        let placement = wish.placement()?.unwrap_or(placement::USUAL);
        let replacement = wish.replacement()?.unwrap_or(replacement::USUAL);
        let write_policy = wish.write_policy()?.unwrap_or(write_policy::USUAL);
        let durability = wish.durability()?.unwrap_or_default();
        // Who wants data to outlive a power cut has a device that may change it.
        let sums = wish.sums.unwrap_or(durability == Durability::Device);
        let capacity = limit_of("capacity", wish.capacity, servers)?.flatten();
        let quota = limit_of("quota", wish.quota, servers)?.flatten();
        let uuid = format!("{:032x}", random());
        Ok(Description {
            uuid,
            servers,
            caches,
            cache_memory,
            placement,
            replacement,
            write_policy,
            layout,
            schedule,
            durability,
            sums,
            capacity,
            quota,
            quota_files: said(wish.quota_files, None),
            journal: said(wish.journal, None),
            created,
        })
    }

    /// Holds what is there against what is wished.
    fn check(&self, wish: &Wish, directory: &Path) -> Result<(), Refusal> {
        check_policies(wish, wish.caches.unwrap_or(self.caches))?;
        let place = directory.display();
        if let Some(servers) = wish.servers.filter(|&servers| servers != self.servers) {
            return Refusal::refuse(
                format!("{place} has {} servers, not {servers}", self.servers),
                "leave --servers out, or name another directory",
            );
        }
        let Some(text) = &wish.layout else { return Ok(()) };
        if Layout::parse(text, self.servers)? != self.layout {
            return Refusal::refuse(
                format!("files in {place} have the layout {}, not {text}", self.layout),
                "leave --layout out, or name another directory",
            );
        }
        Ok(())
    }
}

/// Policies of cache managers are for those who have some.
fn check_policies(wish: &Wish, caches: u32) -> Result<(), Refusal> {
    let wished = [
        ("--placement", &wish.placement),
        ("--replacement", &wish.replacement),
        ("--write-policy", &wish.write_policy),
    ];
    for (option, name) in wished {
        if let (Some(name), 0) = (name, caches) {
            return Refusal::refuse(
                format!("{option} {name} without cache managers"),
                format!("give --caches N, too, or leave {option} out"),
            );
        }
    }
    Ok(())
}

/// How many cache managers are wished.
fn caches_of(wish: &Wish) -> Result<Option<u32>, Refusal> {
    match wish.caches {
        Some(caches) if caches > CACHES_MAX => Refusal::refuse(
            format!("an instance of {caches} cache managers"),
            format!("give --caches between 0 and {CACHES_MAX}"),
        ),
        caches => Ok(caches),
    }
}

/// How much memory is wished for each of them.
fn cache_memory_of(wish: &Wish) -> Result<Option<u64>, Refusal> {
    match wish.cache_memory {
        Some(bytes) if bytes < MEMORY_MIN => Refusal::refuse(
            format!("cache managers with {} of memory", format_bytes(bytes)),
            format!("give --cache-memory of {} or more", format_bytes(MEMORY_MIN)),
        ),
        bytes => Ok(bytes),
    }
}

/// How much its servers may use, if that is wished: a number, or all there is.
fn limit_of(name: &str, wished: Option<u64>, servers: u32) -> Result<Option<Option<u64>>, Refusal> {
    let least = u64::from(servers) * CAPACITY_MIN;
    match wished {
        None => Ok(None),
        Some(0) => Ok(Some(None)),
        Some(bytes) if bytes < least => Refusal::refuse(
            format!("a {name} of {} for {servers} servers", format_bytes(bytes)),
            format!(
                "give --{name} of {} or more, or --{name} 0 for all that their devices have",
                format_bytes(least)
            ),
        ),
        Some(bytes) => Ok(Some(Some(bytes))),
    }
}

/// An instance that this process runs, for as long as this value lives.
#[derive(Debug)]
pub struct Instance {
    /// Its directory, absolute.
    pub directory: PathBuf,
    /// What it is.
    pub description: Description,
    /// Memory that clients and servers share; if nothing is said, a part of the host's.
    pub window_memory: Option<u64>,
    _lock: File,
    /// Locked where the process ends with whoever started it.
    _bond: Option<File>,
}

impl Instance {
    /// Takes the instance in a directory, or makes one there if the directory is empty or not there yet.
    pub fn take(directory: &Path, wish: &Wish) -> Result<Instance, Refusal> {
        Instance::take_for(directory, wish, Life::Detached)
    }

    /// The same for a process that lives so long: where it ends with whoever started it, others had better not count on
    /// it, and are told before they are told who it is.
    pub fn take_for(directory: &Path, wish: &Wish, life: Life) -> Result<Instance, Refusal> {
        let found = fs::symlink_metadata(directory.join("instance.toml")).is_ok();
        // What cannot be is said before anything is made.
        let new = if found { None } else { Some(Description::new(wish)?) };
        let directory = made(directory)?;
        if !found {
            check_empty(&directory)?;
        }
        let (lock, bond) = lock(&directory, life)?;
        let description = match new {
            None => {
                let found = Description::read(&directory)?;
                found.check(wish, &directory)?;
                let caches = caches_of(wish)?.unwrap_or(found.caches);
                let cache_memory = cache_memory_of(wish)?.unwrap_or(found.cache_memory);
                let schedule = wish.schedule()?.unwrap_or(found.schedule);
                let placement = wish.placement()?.unwrap_or(found.placement);
                let replacement = wish.replacement()?.unwrap_or(found.replacement);
                let write_policy = wish.write_policy()?.unwrap_or(found.write_policy);
                let durability = wish.durability()?.unwrap_or(found.durability);
                let limit = |name, bytes| limit_of(name, bytes, found.servers);
                let capacity = limit("capacity", wish.capacity)?.unwrap_or(found.capacity);
                let quota = limit("quota", wish.quota)?.unwrap_or(found.quota);
                let description = Description {
                    caches,
                    cache_memory,
                    placement,
                    replacement,
                    write_policy,
                    schedule,
                    durability,
                    sums: wish.sums.unwrap_or(found.sums),
                    capacity,
                    quota,
                    quota_files: said(wish.quota_files, found.quota_files),
                    journal: said(wish.journal, found.journal),
                    ..found.clone()
                };
                if description != found {
                    let written = description.write(&directory);
                    written.map_err(|error| unwritable(&directory, &error))?;
                }
                description
            }
            Some(description) => {
                let written = description.write(&directory);
                written.map_err(|error| unwritable(&directory, &error))?;
                description
            }
        };
        tape::record(&directory, wish.events.as_deref())?;
        let window_memory = wish.window_memory;
        Ok(Instance { directory, description, window_memory, _lock: lock, _bond: bond })
    }

    /// The directory of an I/O server's subfiles.
    pub fn data(&self, server: u32) -> PathBuf {
        data(&self.directory, server)
    }

    /// The directory of the sums of an I/O server's subfiles.
    pub fn sums(&self, server: u32) -> PathBuf {
        sums(&self.directory, server)
    }

    /// What an I/O server has.
    pub(crate) fn server(&self, server: u32) -> PathBuf {
        of_server(&self.directory, server)
    }

    /// Brings the names of the directories that lead to an I/O server's subfiles to the device.
    pub(crate) fn sync_names_of(&self, server: u32) -> std::io::Result<()> {
        let data = self.data(server);
        data.ancestors().take(3).try_for_each(sync_directory)
    }

    /// The journal of the metadata manager.
    pub fn journal(&self) -> PathBuf {
        journal(&self.directory)
    }
}

/// The directory of an I/O server's subfiles, in that of the instance.
pub(crate) fn data(directory: &Path, server: u32) -> PathBuf {
    of_server(directory, server).join("data")
}

/// What an I/O server has, in the directory of the instance.
fn of_server(directory: &Path, server: u32) -> PathBuf {
    directory.join(format!("server-{server}"))
}

/// The directory of the sums of an I/O server's subfiles, in that of the instance.
pub(crate) fn sums(directory: &Path, server: u32) -> PathBuf {
    of_server(directory, server).join("sums")
}

/// The journal of the metadata manager, in the directory of the instance.
pub(crate) fn journal(directory: &Path) -> PathBuf {
    directory.join("metadata").join("journal-1")
}

/// The directory, which is made if it is not there, as an absolute path.
fn made(directory: &Path) -> Result<PathBuf, Refusal> {
    match DirBuilder::new().mode(0o700).recursive(true).create(directory) {
        Ok(()) => {}
        Err(error) => return Err(unmade(directory, &error)),
    }
    let absolute = directory.canonicalize().map_err(|error| unreadable(directory, &error))?;
    let owner = fs::metadata(&absolute).map_err(|error| unreadable(directory, &error))?.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return Refusal::refuse(
            format!("{} belongs to user {owner}", directory.display()),
            "name a directory of your own",
        );
    }
    Ok(absolute)
}

/// Why a directory cannot be made.
fn unmade(directory: &Path, error: &std::io::Error) -> Refusal {
    let is_something_else = directory
        .ancestors()
        .find_map(|place| fs::symlink_metadata(place).ok().map(|_| place))
        .filter(|place| !place.is_dir());
    match is_something_else {
        Some(place) => Refusal::new(
            format!("{} is no directory", place.display()),
            "name a directory for the file system, or one that is not there yet",
        ),
        None => unwritable(directory, error),
    }
}

/// Refuses a directory with files of somebody else; those of an instance that was never finished count
/// as none.
fn check_empty(directory: &Path) -> Result<(), Refusal> {
    let entries = fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !["lock", "instance.toml.new", "node.log"].iter().any(|ours| name == *ours) {
            return Refusal::refuse(
                format!(
                    "{} is no file system of iolab, and not empty: it has `{}`",
                    directory.display(),
                    name.to_string_lossy()
                ),
                "name an empty directory, or one that is not there yet",
            );
        }
    }
    Ok(())
}

/// Locks a directory for this process, and marks it as one that ends with whoever started it, if it does. Its number is
/// said last, so that who has found that knows the rest.
fn lock(directory: &Path, life: Life) -> Result<(File, Option<File>), Refusal> {
    let path = directory.join("lock");
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = opened.map_err(|error| unwritable(directory, &error))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(taken(directory, &mut file)),
        Err(error) => return Err(unwritable(&path, &error.into())),
    }
    file.set_len(0).map_err(|error| unwritable(&path, &error))?;
    let bond = (life == Life::Bound).then(|| bond(directory)).transpose()?;
    writeln!(file, "{}", std::process::id()).map_err(|error| unwritable(&path, &error))?;
    Ok((file, bond))
}

/// The mark of a process that ends with whoever started it.
fn bond(directory: &Path) -> Result<File, Refusal> {
    let path = directory.join(BOUND);
    let opened = File::options().write(true).create(true).truncate(false).open(&path);
    let locked = opened.and_then(|file| {
        // Who asks whether it is locked has it for a moment.
        rustix::fs::flock(&file, FlockOperation::LockShared)?;
        Ok(file)
    });
    locked.map_err(|error| unwritable(&path, &error))
}

fn taken(directory: &Path, lock: &mut File) -> Refusal {
    let mut text = String::new();
    let who = match lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok()) {
        Some(pid) => process(pid),
        None => "another process".to_owned(),
    };
    let place = directory.display();
    Refusal::new(
        format!("{place} is in use: {who} serves it"),
        format!("use it as it is, or end it with `iolab fs stop --dir {place}`"),
    )
}

fn process(pid: u32) -> String {
    format!("process {pid}")
}

/// The process that serves a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServingNode {
    /// Its number.
    pub pid: u32,
    /// Whether it ends with whoever started it.
    pub is_bound: bool,
}

/// What is locked by a node that ends with whoever started it.
const BOUND: &str = "bound";

/// Whether the node of a directory ends with whoever started it.
fn is_bound(directory: &Path) -> bool {
    let file = File::open(directory.join(BOUND));
    file.is_ok_and(|it| rustix::fs::flock(&it, FlockOperation::NonBlockingLockExclusive).is_err())
}

/// The process that serves a directory, if one does.
pub fn serving_node(directory: &Path) -> Result<Option<ServingNode>, Refusal> {
    let pid = serving(directory)?;
    Ok(pid.map(|pid| ServingNode { pid, is_bound: is_bound(directory) }))
}

/// How long who has locked a directory may take to say its number.
const SAYING: Duration = Duration::from_secs(1);

/// The number of the process that serves a directory, if one does.
pub fn serving(directory: &Path) -> Result<Option<u32>, Refusal> {
    Description::read(directory)?;
    let path = directory.join("lock");
    let start = Instant::now();
    loop {
        let Some(said) = said_by_lock(&path)? else { return Ok(None) };
        // A number may be that of who served before, until the next one has said its own.
        let is_there = said.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
        if is_there || start.elapsed() >= SAYING {
            return said.map(Some).ok_or_else(|| {
                Refusal::new(
                    format!("{} does not say who serves the directory", path.display()),
                    "try again; a server writes its process number there when it starts",
                )
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What a lock that is held says of whose it is.
fn said_by_lock(path: &Path) -> Result<Option<Option<u32>>, Refusal> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| unreadable(path, &error))?,
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => return Ok(None),
        Err(Errno::WOULDBLOCK) => {}
        Err(error) => return Err(unreadable(path, &error.into())),
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| unreadable(path, &error))?;
    Ok(Some(text.trim().parse().ok().filter(|&pid: &u32| pid > 1 && pid <= i32::MAX as u32)))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::new(format!("{}: {error}", path.display()), "it must be a directory that you may read")
}

fn unwritable(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::new(
        format!("{}: {error}", path.display()),
        "name a directory where you may write, on a device with room",
    )
}

/// How the names of a party's files begin.
pub(crate) fn file_name(party: Party) -> String {
    match party {
        Party::Metadata => "metadata".to_owned(),
        Party::Server(index) => format!("server-{index}"),
        Party::Cache(index) => format!("cache-{index}"),
    }
}

/// The name of the socket where a party listens.
pub(crate) fn socket_name(party: Party) -> String {
    file_name(party) + ".socket"
}

/// A directory whose sockets can be named, however long its own name is.
#[derive(Debug)]
pub(crate) struct Place {
    directory: PathBuf,
    /// Where its own name is too long for an address, it is named by this descriptor.
    handle: Option<OwnedFd>,
}

impl Place {
    /// A place for addresses in `directory`, which is absolute.
    pub(crate) fn of(directory: &Path) -> std::io::Result<Place> {
        let longest = directory.as_os_str().len() + "/server-4294967295.socket".len();
        let handle = match longest > ADDRESS_BYTES_MAX {
            false => None,
            true => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                Some(rustix::fs::open(directory, flags, Mode::empty())?)
            }
        };
        Ok(Place { directory: directory.to_owned(), handle })
    }

    /// The address of a party.
    pub(crate) fn address(&self, party: Party) -> Result<SocketAddrUnix, Errno> {
        let name = socket_name(party);
        match &self.handle {
            None => SocketAddrUnix::new(self.directory.join(name).as_os_str().as_bytes()),
            Some(handle) => {
                SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", handle.as_raw_fd()))
            }
        }
    }
}

/// A number nobody else has.
pub(crate) fn random() -> u128 {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if filled != Ok(bytes.len()) {
        // Without the kernel's source: time and process number tell processes of a host apart.
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        return time << 32 | u128::from(std::process::id());
    }
    u128::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(result: Result<T, Refusal>, word: &str) {
        let refusal = result.err().expect("it is refused");
        assert!(refusal.message.contains(word), "{refusal}");
        assert!(!refusal.hint.is_empty());
    }

    #[test]
    fn an_instance_is_found_again_and_served_once() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("new/fs");
        let wish = Wish {
            servers: Some(3),
            layout: Some("stripe:unit=64k,count=2".into()),
            ..Wish::default()
        };
        let is_bound = || serving_node(&directory).map(|node| node.is_some_and(|it| it.is_bound));
        let bound = Instance::take_for(&directory, &wish, Life::Bound).unwrap();
        assert_eq!(is_bound(), Ok(true));
        drop(bound);
        let instance = Instance::take(&directory, &wish).unwrap();
        assert_eq!(serving(&directory), Ok(Some(std::process::id())));
        assert_eq!(is_bound(), Ok(false));
        refused(Instance::take(&directory, &wish), &process(std::process::id()));
        let description = instance.description.clone();
        drop(instance);
        assert_eq!(serving(&directory), Ok(None));
        let again = Instance::take(&directory, &Wish::default()).unwrap();
        assert_eq!(again.description, description);
        assert_eq!(Description::read(&directory), Ok(description));
    }

    #[test]
    fn who_asks_for_the_server_while_it_says_who_it_is_waits_for_that() {
        let directory = tempfile::tempdir().unwrap();
        drop(Instance::take(directory.path(), &Wish::default()).unwrap());
        // The number of nobody: there are fewer processes. It was left by who served before.
        for left in ["", "2147483647\n"] {
            let path = directory.path().join("lock");
            fs::write(&path, left).unwrap();
            let mut lock = File::options().write(true).open(&path).unwrap();
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
            let asked = std::thread::scope(|scope| {
                let asked = scope.spawn(|| serving_node(directory.path()));
                std::thread::sleep(Duration::from_millis(20));
                lock.set_len(0).unwrap();
                let _bond = bond(directory.path()).unwrap();
                writeln!(lock, "{}", std::process::id()).unwrap();
                asked.join().unwrap()
            });
            assert_eq!(asked, Ok(Some(ServingNode { pid: std::process::id(), is_bound: true })));
        }
    }

    #[test]
    fn the_schedule_of_an_instance_can_be_another_one_each_time_it_is_served() {
        let directory = tempfile::tempdir().unwrap();
        let taken = |schedule: Option<&str>| {
            let wish = Wish { schedule: schedule.map(str::to_owned), ..Wish::default() };
            Instance::take(directory.path(), &wish).map(|taken| taken.description.schedule.name)
        };
        assert_eq!(taken(None).unwrap(), "rotate");
        assert_eq!(taken(Some("in-order")).unwrap(), "in-order");
        assert_eq!(taken(None).unwrap(), "in-order");
        refused(taken(Some("diagonal")), "diagonal");
        let path = directory.path().join("instance.toml");
        let text = fs::read_to_string(&path).unwrap();
        let older: Vec<&str> = text.lines().filter(|line| !line.starts_with("schedule")).collect();
        fs::write(&path, older.join("\n")).unwrap();
        assert_eq!(taken(None).unwrap(), "rotate");
    }

    #[test]
    fn an_instance_keeps_its_class_of_durability_and_older_ones_have_the_usual() {
        let directory = tempfile::tempdir().unwrap();
        let taken = |class: Option<&str>| {
            let wish = Wish { durability: class.map(str::to_owned), ..Wish::default() };
            Instance::take(directory.path(), &wish).map(|taken| taken.description.durability)
        };
        assert_eq!(taken(Some("device")), Ok(Durability::Device));
        assert_eq!(taken(None), Ok(Durability::Device));
        assert_eq!(taken(Some("none")), Ok(Durability::None));
        refused(taken(Some("all")), "`all`");
        let path = directory.path().join("instance.toml");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("durability = \"none\"\n", "")).unwrap();
        assert_eq!(taken(None), Ok(Durability::Process));
    }

    #[test]
    fn sums_are_kept_for_devices_unless_somebody_says_otherwise_and_not_mentioned_where_there_are_none()
     {
        let taken = |class: Option<&str>, sums| {
            let directory = tempfile::tempdir().unwrap();
            let wish = Wish { durability: class.map(str::to_owned), sums, ..Wish::default() };
            drop(Instance::take(directory.path(), &wish).unwrap());
            let text = fs::read_to_string(directory.path().join("instance.toml")).unwrap();
            let again = Instance::take(directory.path(), &Wish::default()).unwrap();
            assert_eq!(again.description.sums, text.contains("sums = true"));
            again.description.sums
        };
        assert!(taken(Some("device"), None) && taken(None, Some(true)));
        assert!(!taken(None, None) && !taken(Some("device"), Some(false)));
    }

    #[test]
    fn the_memory_of_cache_managers_can_be_another_one_each_time_and_is_usual_where_none_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let taken = |cache_memory: Option<u64>| {
            let wish = Wish { cache_memory, ..Wish::default() };
            Instance::take(directory.path(), &wish).map(|taken| taken.description.cache_memory)
        };
        let text = || fs::read_to_string(directory.path().join("instance.toml")).unwrap();
        assert_eq!(taken(None).unwrap(), 256 << 20);
        assert!(!text().contains("cache_memory"), "older versions refuse what they do not know");
        refused(taken(Some(1 << 20)), "1 MiB");
        assert_eq!(taken(Some(64 << 20)).unwrap(), 64 << 20);
        assert_eq!(taken(None).unwrap(), 64 << 20);
        fs::write(directory.path().join("instance.toml"), text().replace("67108864", "7")).unwrap();
        refused(taken(None), "7 B");
    }

    #[test]
    fn other_directories_and_wishes_are_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let (path, usual) = (directory.path(), Wish::default());
        refused(Description::read(path), "no instance.toml");
        refused(Instance::take(path, &Wish { servers: Some(0), ..usual.clone() }), "0 servers");
        drop(Instance::take(path, &usual).unwrap());
        refused(Instance::take(path, &Wish { servers: Some(2), ..usual.clone() }), "has 4 servers");
        let layout = Wish { layout: Some("one".into()), ..usual.clone() };
        refused(Instance::take(path, &layout), "not one");
        fs::write(path.join("instance.toml"), "format = 7\nmuch = 1").unwrap();
        refused(Instance::take(path, &usual), "format 7");
        fs::remove_file(path.join("instance.toml")).unwrap();
        fs::write(path.join("mine"), "").unwrap();
        refused(Instance::take(path, &usual), "`mine`");
        fs::write(path.join("file"), "").unwrap();
        refused(Instance::take(&path.join("file"), &usual), "file is no directory");
        refused(Instance::take(&path.join("file/below"), &usual), "file is no directory");
        std::os::unix::fs::symlink("nowhere", path.join("link")).unwrap();
        refused(Instance::take(&path.join("link"), &usual), "link is no directory");
    }

    #[test]
    fn sockets_are_named_in_directories_with_long_names() {
        for name in ["short".to_owned(), "long".repeat(40)] {
            let directory = Path::new("/tmp").join(&name);
            let parent = tempfile::tempdir().unwrap();
            let directory = parent.path().join(directory.file_name().unwrap());
            fs::create_dir(&directory).unwrap();
            let place = Place::of(&directory).unwrap();
            assert!(place.address(Party::Server(u32::MAX)).is_ok(), "{name}");
        }
    }
}
