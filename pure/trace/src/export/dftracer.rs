//! Lines as DFTracer writes them (`.pfw`): an event a line, names of files and hosts behind numbers (as since 2024).
//!
//! It knows calls of POSIX and of streams, named by their symbols, in microseconds. Other layers, and rows that no
//! symbol was called for, are left out and counted. Whoever reads it derives file positions anew; where the trace has
//! one it stands there.

use super::{path_of, quoted};
use crate::open_flags::{APPEND, TRUNCATE};
use crate::{Class, Event, Header, Layer};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Writes the lines of all processes into one file; tells how many rows were left out.
pub fn dftracer(
    header: &Header,
    events: impl IntoIterator<Item = Event>,
    mut sink: impl Write,
) -> io::Result<u64> {
    let mut lines = Lines { pids: pids(header), hosts: BTreeMap::new(), id: 0, sink: &mut sink };
    lines.sink.write_all(b"[\n")?;
    lines.facts(header)?;
    let mut left_out = 0;
    for event in events {
        match symbol(&event) {
            Some(name) => lines.call(header, name, &event)?,
            None => left_out += 1,
        }
    }
    lines.ends(header)?;
    lines.sink.write_all(b"]\n")?;
    Ok(left_out)
}

/// The name of a call there, and its category.
fn symbol(event: &Event) -> Option<(&'static str, &'static str)> {
    let row = event.function.row()?;
    let category = match row.layer {
        Layer::Posix => "POSIX",
        Layer::Stdio => "STDIO",
        _ => return None,
    };
    let symbol = row.symbols.first().or(row.by_hand.first()).copied();
    // Of functions that are several by an argument: `fcntl(F_SETLK)`.
    let whole = || row.name.split_once('(').map(|(name, _)| name);
    symbol.or_else(whole).map(|name| (name, category))
}

/// Of each process its number; one that has none, or that of another, gets one that no process has.
fn pids(header: &Header) -> Vec<u32> {
    let mut taken: BTreeSet<u32> = BTreeSet::new();
    let mut free = header.processes.iter().map(|it| it.pid).max().unwrap_or(0);
    let pid_of = |pid: u32| match pid != 0 && taken.insert(pid) {
        true => pid,
        false => {
            free = free.saturating_add(1);
            free
        }
    };
    header.processes.iter().map(|process| process.pid).map(pid_of).collect()
}

struct Lines<'a, W> {
    pids: Vec<u32>,
    /// Of each host its number.
    hosts: BTreeMap<&'a str, u64>,
    id: u64,
    sink: W,
}

impl<'a, W: Write> Lines<'a, W> {
    /// Names of hosts, files and commands, ranks, and where each process began.
    fn facts(&mut self, header: &'a Header) -> io::Result<()> {
        for (process, &pid) in header.processes.iter().zip(&self.pids.clone()) {
            let next = self.hosts.len() as u64 + 1;
            if !self.hosts.contains_key(process.host.as_str()) {
                self.hosts.insert(&process.host, next);
                self.fact("HH", pid, &process.host, &next.to_string())?;
            }
        }
        let first = self.pids.first().copied().unwrap_or(1);
        for (index, file) in header.files.iter().enumerate() {
            self.fact("FH", first, &file.path, &(index + 1).to_string())?;
        }
        for (index, process) in header.processes.iter().enumerate() {
            let pid = self.pids[index];
            let command = (index + 1).to_string();
            self.fact("SH", pid, &process.command.join(" "), &command)?;
            if process.rank >= 0 {
                self.fact("PR", pid, "rank", &quoted(&process.rank.to_string()))?;
            }
            let parent = process.parent_pid;
            let more = format!(",\"cmd_hash\":{command},\"ppid\":{parent},\"version\":100005");
            self.mark(header, "start", index, process.start_ns, &more)?;
        }
        Ok(())
    }

    /// Where each process ended that was not cut off.
    fn ends(&mut self, header: &Header) -> io::Result<()> {
        for (index, process) in header.processes.iter().enumerate() {
            if process.ending != "cut" {
                self.mark(header, "end", index, process.end_ns, "")?;
            }
        }
        Ok(())
    }

    fn fact(&mut self, kind: &str, pid: u32, name: &str, value: &str) -> io::Result<()> {
        let id = self.next_id();
        writeln!(
            self.sink,
            "{{\"id\":{id},\"name\":\"{kind}\",\"cat\":\"dftracer\",\"pid\":{pid},\"tid\":{pid},\"ph\":\"M\",\"args\":{{\"name\":{},\"value\":{value}}}}}",
            quoted(name)
        )
    }

    fn mark(
        &mut self,
        header: &Header,
        name: &str,
        index: usize,
        time_ns: u64,
        more: &str,
    ) -> io::Result<()> {
        let (id, pid) = (self.next_id(), self.pids[index]);
        let host = self.hosts[header.processes[index].host.as_str()];
        let time = micros(header, time_ns);
        writeln!(
            self.sink,
            "{{\"id\":{id},\"name\":\"{name}\",\"cat\":\"dftracer\",\"pid\":{pid},\"tid\":{pid},\"ts\":{time},\"dur\":0,\"ph\":\"X\",\"args\":{{\"hhash\":{host}{more}}}}}"
        )
    }

    fn call(
        &mut self,
        header: &Header,
        (name, category): (&str, &str),
        event: &Event,
    ) -> io::Result<()> {
        let (id, pid) = (self.next_id(), self.pids[event.process as usize]);
        let host = self.hosts[header.processes[event.process as usize].host.as_str()];
        let start = micros(header, event.start.0);
        let took = micros(header, event.end.0).saturating_sub(start);
        let tid = u64::from(pid) + u64::from(event.thread);
        write!(
            self.sink,
            "{{\"id\":{id},\"name\":\"{name}\",\"cat\":\"{category}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{start},\"dur\":{took},\"ph\":\"X\",\"args\":{{\"hhash\":{host}"
        )?;
        if !path_of(header, event).is_empty() {
            write!(self.sink, ",\"fhash\":{}", event.file.0 + 1)?;
        }
        self.arguments(event)?;
        self.sink.write_all(b"}}\n")
    }

    fn arguments(&mut self, event: &Event) -> io::Result<()> {
        let is_stdio = event.function.layer() == Layer::Stdio;
        let moves = matches!(event.function.class(), Class::Read | Class::Write);
        let failed_or = |result: i64| result.max(-1);
        match event.function.class() {
            Class::Open if is_stdio => {
                write!(self.sink, ",\"mode\":\"{}\"", mode(event.argument))
            }
            Class::Open => {
                let (flags, result) = (event.argument, failed_or(event.result));
                match flags {
                    0.. => write!(self.sink, ",\"flags\":{flags},\"ret\":{result}"),
                    _ => write!(self.sink, ",\"ret\":{result}"),
                }
            }
            _ => {
                let fd = if is_stdio { -1 } else { i64::from(event.fd) };
                let size = if is_stdio && moves { 1 } else { -1 };
                let (count, length) = if moves { (event.length, -1) } else { (-1, event.length) };
                let is_map = event.function.class() == Class::Map;
                let flags = if is_map { event.argument >> 32 } else { -1 };
                let is_seek = event.function.class() == Class::Seek;
                let whence = if is_seek && !event.is_counted() { event.argument } else { -1 };
                let calls = if event.is_counted() { event.calls() as i64 } else { -1 };
                let named = [
                    ("fd", fd),
                    ("size", size),
                    ("count", count),
                    ("offset", event.offset),
                    ("length", length),
                    ("flags", flags),
                    ("whence", whence),
                    ("calls", calls),
                ];
                for (name, value) in named.iter().filter(|(_, value)| *value >= 0) {
                    write!(self.sink, ",\"{name}\":{value}")?;
                }
                if is_seek && event.offset < 0 {
                    write!(self.sink, ",\"offset\":{}", event.offset)?;
                }
                // The address of a mapping is not kept.
                if is_map {
                    Ok(())
                } else {
                    write!(self.sink, ",\"ret\":{}", failed_or(event.result))
                }
            }
        }
    }

    fn next_id(&mut self) -> u64 {
        self.id += 1;
        self.id
    }
}

/// Microseconds since 1970, as DFTracer has them; since time zero where that is not known.
fn micros(header: &Header, time_ns: u64) -> u64 {
    header.clock.zero_unix_ns / 1_000 + time_ns / 1_000
}

/// The mode of `fopen` that stands for flags of `open`.
fn mode(flags: i64) -> &'static str {
    const BOTH: i64 = 0o2;
    const WRITE: i64 = 0o1;
    match (flags & APPEND != 0, flags & BOTH != 0, flags & WRITE != 0) {
        _ if flags < 0 => "r",
        (true, true, _) => "a+",
        (true, false, _) => "a",
        (false, true, _) if flags & TRUNCATE != 0 => "w+",
        (false, true, _) => "r+",
        (false, false, true) => "w",
        (false, false, false) => "r",
    }
}
