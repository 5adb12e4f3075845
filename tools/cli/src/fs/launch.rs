//! `iolab fs up`, `stop`, and the process between them.

use super::Place;
use super::status::{held, used_bytes};
use crate::failure::Failure;
use clap::Args;
use iolab_pfs::configuration::Durability;
use iolab_pfs::io_server::Limit;
use iolab_pfs_node::instance::{Description, Instance, Wish};
use iolab_pfs_node::launch::{self, Life, Started};
use iolab_pfs_node::node;
use iolab_policy::placement::Rule;
use iolab_policy::write_policy::catalog::Answer;
use iolab_vocab::{format_bytes, parse_bytes};
use std::env;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What a new file system is to be like.
#[derive(Args)]
pub(super) struct Shape {
    /// I/O servers. [default: 4, or as many as the directory has]
    #[arg(long, value_name = "N")]
    pub(super) servers: Option<u32>,
    /// Cache managers: they keep blocks in memory between programs and servers. [default: as many as the
    /// directory had last, 0 in a new one]
    #[arg(long, value_name = "N")]
    pub(super) caches: Option<u32>,
    /// Memory of each cache manager. [default: 256 MiB, or what the directory has]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    cache_memory: Option<u64>,
    /// Which cache manager has which blocks: `modulo`, `at-servers`, `rendezvous`, `local` or `cruel`. [default:
    /// `modulo`, or what the directory has]
    #[arg(long, value_name = "NAME")]
    placement: Option<String>,
    /// Which block leaves a full cache manager: `lru`, `two-queue`, `clock`, `fifo` or `cruel`. [default: `lru`, or what
    /// the directory has]
    #[arg(long, value_name = "NAME")]
    replacement: Option<String>,
    /// When cache managers bring to servers what was written: `delayed`, `through`, `on-sync` or `cruel`. [default:
    /// `delayed`, or what the directory has]
    #[arg(long, value_name = "NAME")]
    write_policy: Option<String>,
    /// How files are partitioned: `stripe:unit=256k,count=4`, or `one`.
    #[arg(long, value_name = "LAYOUT")]
    pub(super) layout: Option<String>,
    /// In which order clients come to the servers: `rotate`, `in-order`, `random` or `cruel`. [default:
    /// `rotate`, or what the directory has]
    #[arg(long, value_name = "NAME")]
    pub(super) schedule: Option<String>,
    /// What `MPI_File_sync` and a close after writing promise: `process`, data outlives the servers; `device`,
    /// it outlives a power cut; `none`, nothing. [default: `process`, or what the directory has]
    #[arg(long, value_name = "CLASS")]
    pub(super) durability: Option<String>,
    /// Keep a sum of each page that was written, so that what a device has changed is told as an error by whoever reads
    /// it: `on` or `off`. [default: `on` for a new directory of class `device`, or what the directory has]
    #[arg(long, value_name = "ON", value_parser = is_on)]
    sums: Option<bool>,
    /// What its servers may use of their devices together, in equal shares; 0 for all. [default: all, or what the
    /// directory has]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    capacity: Option<u64>,
    /// What its user may use of them, told as a quota to who meets it; 0 for all. [default: all, or what the directory
    /// has]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    quota: Option<u64>,
    /// Files and directories that its user may have, told as a quota to who meets it; 0 for as many as the manager's
    /// memory holds. [default: those, or what the directory has]
    #[arg(long, value_name = "N")]
    quota_files: Option<u64>,
    /// How much the journal of names grows before it begins anew with what there is then; 0 for as usual.
    /// [default: 64m, or what the directory has]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    journal: Option<u64>,
    /// Memory that payload goes through instead of sockets, of all clients together; 0 for none.
    /// [default: an eighth of this host's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    window_memory: Option<u64>,
    /// Record what all machines are told and what they want, a file for each party and life, for `iolab fs
    /// replay`.
    #[arg(long, value_name = "DIR")]
    events: Option<PathBuf>,
}

/// `on` or `off`.
fn is_on(word: &str) -> Result<bool, String> {
    match word {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("it is `on` or `off`".to_owned()),
    }
}

impl Shape {
    pub(super) fn wish(&self) -> Wish {
        Wish {
            servers: self.servers,
            caches: self.caches,
            cache_memory: self.cache_memory,
            placement: self.placement.clone(),
            replacement: self.replacement.clone(),
            write_policy: self.write_policy.clone(),
            layout: self.layout.clone(),
            schedule: self.schedule.clone(),
            durability: self.durability.clone(),
            sums: self.sums,
            capacity: self.capacity,
            quota: self.quota,
            quota_files: self.quota_files,
            journal: self.journal,
            window_memory: self.window_memory,
            events: self.events.clone(),
        }
    }
}

/// Start a file system in a directory, or recover the one that is there.
///
/// It goes on until `iolab fs stop`. What was answered, with cache managers what was synced or closed,
/// outlives the servers' processes; with `--durability device`, what was synced or closed outlives a power cut.
#[derive(Args)]
pub(super) struct Up {
    /// Its directory, which is made if it is not there.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    shape: Shape,
}

/// End the servers of a file system; its files stay in its directory.
#[derive(Args)]
pub(super) struct Stop {
    #[command(flatten)]
    place: Place,
}

/// The servers of a file system: what `up` and `run` start.
#[derive(Args)]
pub(super) struct NodeArguments {
    #[arg(long)]
    dir: PathBuf,
    #[command(flatten)]
    shape: Shape,
    /// End when standard input does.
    #[arg(long)]
    bound: bool,
}

pub(super) fn up(arguments: &Up) -> Result<ExitCode, Failure> {
    let started = start(&arguments.dir, &arguments.shape.wish(), Life::Detached)?;
    let description = Description::read(&arguments.dir)?;
    let directory = arguments.dir.canonicalize().unwrap_or_else(|_| arguments.dir.clone());
    say_line!("ready       {} (process {})", directory.display(), started.pid());
    say_line!("servers     {}", description.servers);
    if description.caches > 0 {
        say_line!("caches      {}", caches(&description));
        say_line!("policies    {}", policies(&description));
    }
    say_line!("layout      {}", description.layout);
    say_line!("schedule    {}", description.schedule.name);
    say_line!("durability  {}", durability(&description));
    say_line!(
        "capacity    {}",
        capacity(&directory, &description, || used_bytes(&held(&directory, &description)))
    );
    Ok(ExitCode::SUCCESS)
}

pub(super) fn stop(arguments: &Stop) -> Result<ExitCode, Failure> {
    let directory = arguments.place.directory()?;
    let pid = launch::stop(&directory)?;
    say_line!("stopped     {} (process {pid})", directory.display());
    Ok(ExitCode::SUCCESS)
}

/// How many cache managers there are, and the memory of each.
pub(super) fn caches(description: &Description) -> String {
    format!("{}, with {} each", description.caches, format_bytes(description.cache_memory))
}

/// How cache managers share blocks, replace them, and bring them to servers.
pub(super) fn policies(description: &Description) -> String {
    let Description { placement, replacement, write_policy, .. } = description;
    let names = (placement.name, replacement.name, write_policy.name);
    format!("placement {}, replacement {}, write policy {}", names.0, names.1, names.2)
}

/// What the class promises.
pub(super) fn durability(description: &Description) -> String {
    let is_through = description.write_policy.answer == Answer::Saved;
    let is_cached = description.caches > 0 && !matches!(description.placement.rule, Rule::Nobody);
    let what = match (description.durability, is_cached && !is_through) {
        (Durability::Device, _) => "what is synced or closed outlives a power cut",
        (Durability::Process, false) => "what is answered outlives the servers, not a power cut",
        (Durability::Process, true) => {
            "what is synced or closed outlives the servers, not a power cut"
        }
        (Durability::None, _) => "a sync is over at once, and nothing is promised",
    };
    let sums = if description.sums { "; what devices change is told" } else { "" };
    format!("{}: {what}{sums}", description.durability)
}

/// Room on the device of a directory, and what the servers may use of it; `used` is asked where that is limited.
pub(super) fn capacity(
    directory: &Path,
    description: &Description,
    used: impl FnOnce() -> u64,
) -> String {
    let device = match node::room(directory) {
        Ok((free, all)) => format!("{} free of {}", format_bytes(free), format_bytes(all)),
        Err(error) => format!("unknown: {error}"),
    };
    let (what, bytes) = match description.limit() {
        None => return device,
        Some(Limit::Capacity(bytes)) => ("", bytes),
        Some(Limit::Quota(bytes)) => ("a quota of ", bytes),
    };
    format!("{} of {what}{} used; device: {device}", format_bytes(used()), format_bytes(bytes))
}

/// Starts the servers of a directory by this very program.
pub(super) fn start(directory: &Path, wish: &Wish, life: Life) -> Result<Started, Failure> {
    let program = env::current_exe().map_err(|error| Failure::new(format!("iolab: {error}")))?;
    let mut command = Command::new(program);
    command.args(["fs", "node"]).env_remove("IOLAB_FS").env_remove("IOLAB_FS_FILES");
    Ok(launch::start(&mut command, directory, wish, life)?)
}

pub(super) fn node(arguments: &NodeArguments) -> Result<ExitCode, Failure> {
    let signals = node::Signals::block();
    let life = if arguments.bound { Life::Bound } else { Life::Detached };
    let taken = Instance::take_for(&arguments.dir, &arguments.shape.wish(), life);
    let begun = taken.and_then(|instance| {
        let log = instance.directory.join("node.log");
        Ok((node::Node::start(instance)?, log))
    });
    let said = launch::announcement(&begun.as_ref().map(|_| ()).map_err(Clone::clone));
    let heard = io::stdout().write_all(said.as_bytes()).and_then(|()| io::stdout().flush());
    let Ok((node, log)) = begun else { return Ok(ExitCode::FAILURE) };
    heard.map_err(|error| Failure::new(format!("nobody hears that the servers run: {error}")))?;
    node::leave(&log).map_err(|error| Failure::new(format!("{}: {error}", log.display())))?;
    if arguments.bound {
        std::thread::spawn(end_with_input);
    }
    signals.wait();
    Ok(if node.stop() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits until whoever started this process is gone, and ends it as a signal does.
fn end_with_input() {
    let mut byte = [0];
    while io::stdin().read(&mut byte).is_ok_and(|bytes| bytes > 0) {}
    node::Signals::send();
}
