//! `iolab fs status`: whether a file system is served, by whom and for whom, and what is in it.

use super::Place;
use super::launch::{caches, capacity, durability, policies};
use crate::failure::Failure;
use clap::Args;
use iolab_pfs::cache_manager::Counts;
use iolab_pfs_node::instance::{Description, serving};
use iolab_pfs_node::node;
use iolab_pfs_node::status::{connections, counts, damaged_pages, files};
use iolab_vocab::format_bytes;
use serde_json::json;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

/// Tell whether a file system is served, how it is made, and how much its servers hold.
///
/// The exit code is 0 if it is served, 3 if it is not.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// What a server has on its device.
pub(super) struct Held {
    subfiles: u64,
    bytes: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let directory = arguments.place.directory()?;
    let description = Description::read(&directory)?;
    let pid = serving(&directory)?;
    let directory = directory.canonicalize().unwrap_or(directory);
    // Servers that do not answer have no clients to tell of.
    let clients = pid.and_then(|_| connections(&directory).ok());
    let managers = clients.as_ref().and_then(|_| counts(&directory).ok()).unwrap_or_default();
    let files = clients.as_ref().and_then(|_| files(&directory).ok().flatten());
    let damaged = match &clients {
        Some(_) if description.sums => damaged_pages(&directory).unwrap_or_default(),
        _ => Vec::new(),
    };
    let damaged = |server: usize| damaged.get(server).copied().flatten();
    let clients = clients.unwrap_or_default();
    let held = held(&directory, &description);
    if arguments.json {
        let room = node::room(&directory).ok();
        let servers = held.iter().enumerate().map(|(server, it)| {
            let (subfiles, bytes) = (it.subfiles, it.bytes);
            json!({"subfiles": subfiles, "bytes": bytes, "damaged_pages": damaged(server)})
        });
        let told = json!({
            "directory": directory.to_string_lossy(),
            "uuid": description.uuid,
            "process": pid,
            "caches": description.caches,
            "cache_memory_bytes": description.cache_memory,
            "placement": description.placement.name,
            "replacement": description.replacement.name,
            "write_policy": description.write_policy.name,
            "cache_managers": managers.iter().map(manager_json).collect::<Vec<_>>(),
            "layout": description.layout.to_string(),
            "schedule": description.schedule.name,
            "durability": description.durability.name(),
            "sums": description.sums,
            "limit_bytes": description.capacity,
            "quota_bytes": description.quota,
            "quota_files": description.quota_files,
            "used_files": files,
            "used_bytes": used_bytes(&held),
            "free_bytes": room.map(|(free, _)| free),
            "capacity_bytes": room.map(|(_, all)| all),
            "servers": servers.collect::<Vec<_>>(),
            "clients": clients.iter().map(client_json).collect::<Vec<_>>(),
        });
        say_line!("{told:#}");
    } else {
        say_line!("directory   {}", directory.display());
        match pid {
            Some(pid) => say_line!("served      by process {pid}"),
            None => say_line!("served      by nobody; `iolab fs up --dir {}`", directory.display()),
        }
        if description.caches > 0 {
            say_line!("caches      {}", caches(&description));
            say_line!("policies    {}", policies(&description));
        }
        say_line!("layout      {}", description.layout);
        say_line!("schedule    {}", description.schedule.name);
        say_line!("durability  {}", durability(&description));
        say_line!("capacity    {}", capacity(&directory, &description, || used_bytes(&held)));
        if let Some(told) = files_told(files, description.quota_files) {
            say_line!("files       {told}");
        }
        for (server, Held { subfiles, bytes }) in held.iter().enumerate() {
            let size = format_bytes(*bytes);
            let told = told_of(damaged(server), &directory);
            say_line!("server {server:<4} {subfiles} subfiles, {size} on the device{told}");
        }
        for (index, counts) in managers.iter().enumerate() {
            say_line!("cache {index:<5} {}", manager(counts.as_ref()));
        }
        for (name, windows) in &clients {
            say_line!("client      {name}: {}", transport(windows));
        }
    }
    Ok(ExitCode::from(if pid.is_some() { 0 } else { 3 }))
}

/// How many files there are, and how many there may be.
fn files_told(used: Option<u64>, quota: Option<u64>) -> Option<String> {
    match (used, quota) {
        (None, None) => None,
        (None, Some(quota)) => Some(format!("a quota of {quota}")),
        (Some(used), None) => Some(used.to_string()),
        (Some(used), Some(quota)) => Some(format!("{used} of a quota of {quota}")),
    }
}

/// What a server has found damaged.
fn told_of(damaged: Option<u64>, directory: &Path) -> String {
    match damaged {
        None | Some(0) => String::new(),
        Some(pages) => format!(
            "; {pages} pages are damaged: `iolab fs check --dir {}` names the files once it is stopped",
            directory.display()
        ),
    }
}

fn client_json((name, windows): (&String, &Vec<u64>)) -> serde_json::Value {
    json!({"name": name, "window_bytes": windows})
}

fn manager_json(counts: &Option<Counts>) -> serde_json::Value {
    let Some(counts) = counts else { return serde_json::Value::Null };
    json!({
        "memory_bytes": counts.memory,
        "used_bytes": counts.used_bytes,
        "dirty_bytes": counts.unsaved_bytes,
        "granted_bytes": counts.granted_bytes,
        "reads": counts.reads,
        "hits": counts.hits(),
        "misses": counts.misses,
        "fetches": counts.fetches,
        "flushes": counts.flushes,
    })
}

/// What a cache manager has, and has done.
fn manager(counts: Option<&Counts>) -> String {
    let Some(counts) = counts else { return "does not answer".to_owned() };
    let (used, memory) = (format_bytes(counts.used_bytes), format_bytes(counts.memory));
    let dirty = match counts.unsaved_bytes {
        0 => String::new(),
        bytes => format!(", {} not at servers yet", format_bytes(bytes)),
    };
    let granted = match counts.granted_bytes {
        0 => String::new(),
        bytes => format!(", {} of the devices kept for it", format_bytes(bytes)),
    };
    let hits = counts.hits() as f64 / counts.reads.max(1) as f64 * 100.0;
    format!(
        "{used} of {memory}{dirty}{granted}; {} blocks read, {hits:.0} % of them at once; {} fetched, {} flushed",
        counts.reads, counts.fetches, counts.flushes
    )
}

/// How the payload of a client goes to the servers it is connected to.
fn transport(windows: &[u64]) -> String {
    let (bytes, all) = (windows.iter().sum::<u64>(), windows.len());
    match windows.iter().filter(|window| **window > 0).count() {
        0 => format!("sockets to {all} servers"),
        with if with == all => format!("windows of {} with {all} servers", format_bytes(bytes)),
        with => format!(
            "windows of {} with {with} of {all} servers, sockets to the others",
            format_bytes(bytes)
        ),
    }
}

/// What each server has on its device.
pub(super) fn held(directory: &Path, description: &Description) -> Vec<Held> {
    (0..description.servers).map(|server| held_by(directory, server)).collect()
}

/// What all servers have together.
pub(super) fn used_bytes(held: &[Held]) -> u64 {
    held.iter().map(|it| it.bytes).sum()
}

/// Counts the subfiles of a server, and what they take.
fn held_by(directory: &Path, server: u32) -> Held {
    let data = directory.join(format!("server-{server}")).join("data");
    let folders = fs::read_dir(data).into_iter().flatten().flatten();
    let files =
        folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.flat_map(|file| file.metadata()).fold(Held { subfiles: 0, bytes: 0 }, |sum, file| Held {
        subfiles: sum.subfiles + 1,
        bytes: sum.bytes + file.blocks() * 512,
    })
}
