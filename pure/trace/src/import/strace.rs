//! What `strace -f -T -ttt -o FILE COMMAND` wrote, as a trace.
//!
//! strace shows system calls without file positions, so the offsets of `read` and `write` are
//! inferred by following opens, seeks, `dup` and `fork`; the header says so. Its clock shows
//! microseconds. Calls that are not about files (sockets, pipes, memory) are counted as left out.

use super::ImportError;
use super::shared::{self, Files};
use super::strace_line::{Call, Saying, call, interrupted, number, parse, unquoted};
use crate::finish::{adopt, outer_first};
use crate::{
    Class, Clock, Event, Function, MOVED_SOURCE, MOVED_TARGET, Origin, ProcessEntry, Trace,
};
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeMap;

/// With `-e raw`, which shows every argument as a number.
const NO_PATH: &str = "calls whose path strace showed as an address (-e raw)";
const NO_FILE: &str = "descriptors of pipes, sockets, terminals and from before the start";

/// An open file description; copies of a descriptor share it.
struct Description {
    file: FileId,
    /// None when it cannot be told, as after opening an existing file to append.
    position: Option<i64>,
}

/// A thread by the number strace knows it by.
#[derive(Clone, Default)]
struct Task {
    process: u32,
    thread: u32,
    /// A call that has not returned: its text so far and when it began.
    pending: Option<(String, u64)>,
    has_ended: bool,
}

/// What threads of a process share.
#[derive(Clone, Default)]
struct Process {
    descriptors: BTreeMap<i32, usize>,
    closed_by_exec: Vec<i32>,
    directory: String,
    threads: u32,
}

#[derive(Default)]
struct Import {
    trace: Trace,
    tasks: BTreeMap<u32, Task>,
    processes: Vec<Process>,
    descriptions: Vec<Description>,
    files: Files,
    zero_ns: Option<u64>,
    /// Some call says how long it took.
    has_durations: bool,
}

/// Times of `-r` count from the call before, and begin at 0; no clock is that far off.
const FIRST_TIME_NS: u64 = 1_000_000 * 1_000_000_000;

/// What the header says of a trace without durations.
pub const NO_DURATIONS: &str =
    "that calls took no time, as strace ran without -T: times and shares of time mean nothing";

/// Reads the whole text of a trace of strace.
pub fn strace(text: &str) -> Result<Trace, ImportError> {
    let mut import = Import::default();
    let mut unreadable = 0;
    let mut begun = String::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if let Some(part) = interrupted(line) {
            begun.push_str(part);
            continue;
        }
        let whole = std::mem::take(&mut begun) + line;
        let parsed = parse(&whole)
            .filter(|parsed| import.zero_ns.is_some() || parsed.time_ns >= FIRST_TIME_NS);
        let Some(parsed) = parsed else {
            if import.zero_ns.is_none() {
                return Err(ImportError { line: index + 1, text: line.chars().take(80).collect() });
            }
            unreadable += 1;
            continue;
        };
        let zero = *import.zero_ns.get_or_insert(parsed.time_ns);
        let start = parsed.time_ns.saturating_sub(zero);
        import.line(parsed.pid, start, parsed.saying);
    }
    if import.zero_ns.is_none() {
        return Err(ImportError { line: 0, text: String::new() });
    }
    if unreadable > 0 {
        import.trace.header.losses.lost_calls.insert("unreadable lines".to_owned(), unreadable);
    }
    Ok(import.finish())
}

impl Import {
    fn finish(mut self) -> Trace {
        let pending = self.tasks.values().filter(|task| task.pending.is_some()).count() as u64;
        let header = &mut self.trace.header;
        if pending > 0 {
            header.losses.lost_calls.insert("calls without an end".to_owned(), pending);
        }
        header.origin = Origin::Imported;
        header.interposer = "strace".to_owned();
        header.clock = Clock {
            source: "strace".to_owned(),
            zero_unix_ns: self.zero_ns.unwrap_or(0),
            resolution_ns: 1_000,
            ..Clock::default()
        };
        if !self.has_durations {
            header.inferred.push(NO_DURATIONS.to_owned());
        }
        header.inferred.push("offsets of read and write, from the calls before them".to_owned());
        header.losses.unseen.push("calls of libraries (stdio) and stores through mmap".to_owned());
        let mut events = self.trace.events;
        outer_first(&mut events);
        adopt(&mut events);
        Trace { events, ..self.trace }
    }

    fn line(&mut self, pid: u32, start: u64, saying: Saying) {
        let pid = match pid {
            0 => self.only_one(),
            _ => pid,
        };
        self.name_first(pid, matches!(saying, Saying::Resumed(_)));
        self.task(pid);
        match saying {
            Saying::Notice => {}
            Saying::Ended => self.task(pid).has_ended = true,
            Saying::Finished(call) => self.call(pid, start, &call),
            Saying::Unfinished(begun) => {
                self.task(pid).pending = Some((begun.to_owned(), start));
            }
            Saying::Resumed(rest) => {
                let Some((begun, start)) = self.task(pid).pending.take() else { return };
                let whole = begun + rest;
                if let Some(call) = call(&whole) {
                    self.call(pid, start, &call);
                }
            }
        }
    }

    /// Where strace has only one to follow, and does not say where to (`-o`), it leaves out the number.
    fn only_one(&self) -> u32 {
        let mut living = self.tasks.iter().filter(|(_, task)| !task.has_ended);
        match (living.next(), living.next()) {
            (Some((&pid, _)), None) => pid,
            _ => 0,
        }
    }

    /// The number of the first one is told only when it has a child. A number that nobody has heard of is the child's
    /// while the first one has not come back from making it, and else its own.
    fn name_first(&mut self, pid: u32, comes_back: bool) {
        let is_inside = self.tasks.get(&0).is_none_or(|first| first.pending.is_some());
        if self.tasks.contains_key(&pid) || is_inside && !comes_back {
            return;
        }
        let Some(first) = self.tasks.remove(&0) else { return };
        let own = first.process as usize;
        self.tasks.insert(pid, first);
        for (index, entry) in self.trace.header.processes.iter_mut().enumerate() {
            match (index == own, entry.parent_pid) {
                (true, _) => entry.pid = pid,
                (false, 0) => entry.parent_pid = pid,
                _ => {}
            }
        }
        let entry = &mut self.trace.header.processes[own];
        if entry.name == process_name(0) {
            entry.name = process_name(pid);
        }
    }

    /// The task of that number; one that was never announced is a child of whoever is forking.
    fn task(&mut self, pid: u32) -> &mut Task {
        if !self.tasks.contains_key(&pid) {
            let forking = self.tasks.iter().find(|(_, task)| {
                task.pending.as_ref().is_some_and(|(text, _)| is_fork(name_of(text)))
            });
            let parent = forking.map(|(&parent, task)| {
                let text = task.pending.as_ref().map_or("", |(text, _)| text.as_str());
                (parent, text.contains("CLONE_THREAD"))
            });
            match parent {
                Some((parent, is_thread)) => self.child(parent, pid, is_thread),
                None => self.new_process(pid, 0, Process::default()),
            }
        }
        self.tasks.entry(pid).or_default()
    }

    fn child(&mut self, parent: u32, pid: u32, is_thread: bool) {
        if self.tasks.contains_key(&pid) {
            return;
        }
        let process = self.tasks[&parent].process;
        let state = &mut self.processes[process as usize];
        if is_thread {
            state.threads += 1;
            let task = Task { process, thread: state.threads, ..Task::default() };
            self.tasks.insert(pid, task);
        } else {
            let copy = Process { threads: 0, ..state.clone() };
            self.new_process(pid, parent, copy);
        }
    }

    fn new_process(&mut self, pid: u32, parent_pid: u32, state: Process) {
        let process = self.processes.len() as u32;
        self.processes.push(state);
        self.tasks.insert(pid, Task { process, ..Task::default() });
        let name = process_name(pid);
        let entry = ProcessEntry { name, pid, parent_pid, rank: -1, ..ProcessEntry::default() };
        self.trace.header.processes.push(entry);
    }

    fn call(&mut self, pid: u32, start: u64, call: &Call) {
        self.has_durations |= call.took_ns.is_some();
        let Some(result) = call.result else { return };
        if is_fork(call.name) && result > 0 {
            let is_thread = call.arguments.iter().any(|text| text.contains("CLONE_THREAD"));
            self.child(pid, result as u32, is_thread);
        }
        if call.name == "execve" && result == 0 {
            self.exec(pid, call);
        }
        if call.name == "chdir" && result == 0 {
            let path = call.arguments.first().and_then(|path| unquoted(path)).unwrap_or_default();
            let process = self.tasks[&pid].process;
            let directory =
                self.absolute(&Event { process, ..Event::of(Function::CHDIR) }, None, &path);
            self.processes[process as usize].directory = directory;
        }
        self.follow_descriptors(self.tasks[&pid].process, call, result);
        let known = function(call);
        let Some(function) = known.filter(|f| f.class() != Class::Process) else {
            return if known.is_none() {
                self.leave_out(call.name)
            };
        };
        let Task { process, thread, .. } = self.tasks[&pid];
        let event = Event {
            process,
            thread,
            start: Nanos(start),
            end: Nanos(start + call.took_ns.unwrap_or(0)),
            result,
            ..Event::of(function)
        };
        match self.filled(event, call) {
            Some(event) => self.trace.events.push(event),
            None if hides_path(function, call, result) => {
                *self.trace.header.losses.lost_calls.entry(NO_PATH.to_owned()).or_default() += 1;
            }
            None => self.leave_out(NO_FILE),
        }
        if function.class() == Class::Dup {
            self.copied_descriptor(process, call, result);
        }
    }

    /// What closes descriptors, or has them closed when another program begins, and is no row itself.
    fn follow_descriptors(&mut self, process: u32, call: &Call, result: i64) {
        let text = |index: usize| call.arguments.get(index).copied().unwrap_or("");
        let Process { descriptors, closed_by_exec, .. } = &mut self.processes[process as usize];
        match (call.name, descriptor(text(0))) {
            _ if result < 0 => {}
            ("fcntl", Some(fd)) if text(1) == "F_SETFD" => {
                closed_by_exec.retain(|&other| other != fd);
                if text(2).contains("FD_CLOEXEC") {
                    closed_by_exec.push(fd);
                }
            }
            ("close_range", Some(first)) if !text(2).contains("CLOEXEC") => {
                let last =
                    number(text(1)).map_or(i32::MAX, |last| last.min(i32::MAX.into()) as i32);
                descriptors.retain(|fd, _| !(first..=last).contains(fd));
            }
            _ => {}
        }
    }

    /// The number stands for what was copied from now on, and for nothing known where that is not known.
    fn copied_descriptor(&mut self, process: u32, call: &Call, result: i64) {
        if result < 0 {
            return;
        }
        let (from, to) = (call.arguments.first().and_then(|fd| descriptor(fd)), result as i32);
        let Process { descriptors, closed_by_exec, .. } = &mut self.processes[process as usize];
        match from.and_then(|from| descriptors.get(&from).copied()) {
            Some(description) => descriptors.insert(to, description),
            None => descriptors.remove(&to),
        };
        if from != Some(to) {
            closed_by_exec.retain(|&other| other != to);
        }
        if call.arguments.iter().any(|argument| argument.contains("CLOEXEC")) {
            closed_by_exec.push(to);
        }
    }

    fn leave_out(&mut self, rule: &str) {
        shared::leave_out(&mut self.trace.header, rule, 1);
    }

    fn exec(&mut self, pid: u32, call: &Call) {
        let process = self.tasks[&pid].process as usize;
        let state = &mut self.processes[process];
        for fd in std::mem::take(&mut state.closed_by_exec) {
            state.descriptors.remove(&fd);
        }
        let entry = &mut self.trace.header.processes[process];
        let words =
            call.arguments.get(1).and_then(|list| list.strip_prefix('[')?.strip_suffix(']'));
        entry.command = words.unwrap_or("").split(", ").filter_map(unquoted).collect();
        if let Some(program) = call.arguments.first().and_then(|path| unquoted(path)) {
            entry.name = program.rsplit('/').next().unwrap_or_default().to_owned();
        }
        if self.trace.header.command.is_empty() {
            self.trace.header.command = self.trace.header.processes[process].command.clone();
        }
    }

    /// The event with the fields of its class; none when it is not about a file.
    fn filled(&mut self, event: Event, call: &Call) -> Option<Event> {
        let text = |index: usize| call.arguments.get(index).copied().unwrap_or("");
        match event.function.class() {
            Class::Open => self.opened(event, call),
            Class::Stat | Class::Unlink | Class::MakeDirectory | Class::RemoveDirectory
                if has_path(text(0), text(1)) =>
            {
                let file = self.path_argument(&event, call)?;
                Some(Event { file, ..event })
            }
            Class::Rename => {
                let file = self.path_argument(&event, call)?;
                let new = call.arguments.iter().rev().find_map(|argument| unquoted(argument))?;
                let new = self.absolute(&event, None, &new);
                let argument = i64::from(self.file(new).0);
                let function = event.function.renaming(renaming_flags(call));
                Some(Event { file, argument, function, ..event })
            }
            Class::Copy => self.copied(event, call),
            Class::Truncate | Class::Attribute if has_path(text(0), text(1)) => {
                let file = self.path_argument(&event, call)?;
                let is_cut = event.function.class() == Class::Truncate;
                let length = number(text(1)).filter(|_| is_cut).unwrap_or(event.length);
                Some(Event { file, length, ..event })
            }
            _ => self.on_descriptor(event, call),
        }
    }

    /// A transfer between two descriptors moves the positions of those whose place it is not told.
    fn copied(&mut self, event: Event, call: &Call) -> Option<Event> {
        let text = |index: usize| call.arguments.get(index).copied().unwrap_or("");
        let (source, offset, target, target_offset, length) = match event.function {
            Function::SENDFILE => (text(1), text(2), text(0), "NULL", text(3)),
            _ => (text(0), text(1), text(2), text(3), text(4)),
        };
        let (fd, target_fd) = (descriptor(source)?, descriptor(target));
        let opened = &self.processes[event.process as usize].descriptors;
        let (source, target) =
            (opened.get(&fd).copied(), target_fd.and_then(|fd| opened.get(&fd).copied()));
        source.or(target)?;
        let place = |id: Option<usize>| id.map(|id| self.descriptions[id].file);
        let (file, into) = (place(source), place(target));
        let moved = event.result.max(0);
        let mut step = |id: Option<usize>, offset: &str| {
            let position = &mut self.descriptions[id?].position;
            match from_pointer(offset) {
                None => {
                    let from = (*position)?;
                    *position = Some(from.saturating_add(moved));
                    Some(from)
                }
                told => told,
            }
        };
        let from = step(source, offset).unwrap_or(-1);
        let to = step(target, target_offset).unwrap_or(-1);
        let event = Event { fd, length: number(length).unwrap_or(-1), ..event };
        if moved > 0 {
            let moves = |offset: &str, bit| if from_pointer(offset).is_none() { bit } else { 0 };
            self.trace.events.push(Event {
                function: Function::COPY_TARGET,
                fd: target_fd.unwrap_or(-1),
                file: into.unwrap_or(FileId::NONE),
                offset: to,
                argument: moves(offset, MOVED_SOURCE) | moves(target_offset, MOVED_TARGET),
                ..event
            });
        }
        Some(Event {
            file: file.unwrap_or(FileId::NONE),
            offset: from,
            argument: into.map_or(-1, |file| i64::from(file.0)),
            ..event
        })
    }

    fn opened(&mut self, event: Event, call: &Call) -> Option<Event> {
        let file = self.path_argument(&event, call)?;
        let flags = flags_of_open(call);
        if event.result >= 0 {
            const APPEND_WITHOUT_TRUNCATE: i64 = 0o2000;
            let position = (flags & 0o3000 != APPEND_WITHOUT_TRUNCATE).then_some(0);
            let fd = event.result as i32;
            let state = &mut self.processes[event.process as usize];
            state.descriptors.insert(fd, self.descriptions.len());
            self.descriptions.push(Description { file, position });
            state.closed_by_exec.retain(|&other| other != fd);
            if flags & 0o2000000 != 0 {
                state.closed_by_exec.push(fd);
            }
        }
        let fd = if event.result >= 0 { event.result as i32 } else { -1 };
        Some(Event { file, fd, argument: flags, ..event })
    }

    fn on_descriptor(&mut self, event: Event, call: &Call) -> Option<Event> {
        let fd = descriptor(call.arguments.first()?)?;
        let id = *self.processes[event.process as usize].descriptors.get(&fd)?;
        let number = |index: usize| call.arguments.get(index).and_then(|text| number(text));
        let file = self.descriptions[id].file;
        let event = Event { fd, file, ..event };
        let descriptors = &mut self.processes[event.process as usize].descriptors;
        Some(match event.function.class() {
            Class::Close => {
                descriptors.remove(&fd);
                event
            }
            Class::Dup => {
                let place = if event.function == Function::FCNTL_DUPFD { 2 } else { 1 };
                Event { argument: number(place).unwrap_or(-1), ..event }
            }
            Class::Read | Class::Write => self.transferred(event, call, id),
            Class::Seek => {
                if event.result >= 0 {
                    self.descriptions[id].position = Some(event.result);
                }
                let names = ["SEEK_SET", "SEEK_CUR", "SEEK_END"];
                let named = || names.iter().position(|name| call.arguments.get(2) == Some(name));
                let whence = number(2).or_else(|| named().map(|whence| whence as i64));
                let argument = whence.unwrap_or(-1);
                Event { offset: number(1).unwrap_or(-1), argument, ..event }
            }
            Class::Truncate => Event { length: number(1).unwrap_or(-1), ..event },
            Class::Allocate if event.function == Function::FALLOCATE => Event {
                offset: number(2).unwrap_or(-1),
                length: number(3).unwrap_or(-1),
                argument: number(1).unwrap_or(0),
                ..event
            },
            Class::Advise => {
                Event { offset: number(1).unwrap_or(-1), length: number(2).unwrap_or(-1), ..event }
            }
            _ => event,
        })
    }

    fn transferred(&mut self, event: Event, call: &Call, id: usize) -> Event {
        let number = |index: usize| call.arguments.get(index).and_then(|text| number(text));
        let is_vector = event.function.name().contains('v');
        // Of a vector only what moved is known.
        let length = if is_vector { event.result.max(0) } else { number(2).unwrap_or(-1) };
        let offset = if event.function.is_positioned() {
            number(3).unwrap_or(-1)
        } else {
            let position = &mut self.descriptions[id].position;
            let offset = position.unwrap_or(-1);
            *position = position.map(|position| position.saturating_add(event.result.max(0)));
            offset
        };
        Event { offset, length, ..event }
    }

    /// The first path among the arguments, made absolute.
    fn path_argument(&mut self, event: &Event, call: &Call) -> Option<FileId> {
        let index = call.arguments.iter().position(|argument| argument.starts_with('"'))?;
        let path = unquoted(call.arguments[index])?;
        let directory = index.checked_sub(1).and_then(|before| descriptor(call.arguments[before]));
        let path = self.absolute(event, directory, &path);
        Some(self.file(path))
    }

    fn absolute(&self, event: &Event, directory: Option<i32>, path: &str) -> String {
        if path.starts_with('/') {
            return path.to_owned();
        }
        let state = &self.processes[event.process as usize];
        let opened = directory.and_then(|fd| state.descriptors.get(&fd)).map(|&id| {
            let file = self.descriptions[id].file;
            self.trace.header.files[file.0 as usize].path.as_str()
        });
        let base = opened.unwrap_or(&state.directory);
        if base.is_empty() { path.to_owned() } else { format!("{base}/{path}") }
    }

    fn file(&mut self, path: String) -> FileId {
        self.files.id(&mut self.trace.header, path)
    }
}

fn process_name(pid: u32) -> String {
    format!("process {pid}")
}

/// Whether strace shows an address where a path belongs that the system could read.
fn hides_path(function: Function, call: &Call, result: i64) -> bool {
    const EFAULT: i64 = 14;
    let takes_path = function.row().is_some_and(|row| row.arguments.contains(&"path"));
    takes_path
        && result != -EFAULT
        && call.arguments.iter().any(|argument| argument.starts_with("0x"))
        && !call.arguments.iter().any(|argument| argument.starts_with('"'))
}

fn name_of(text: &str) -> &str {
    text.split('(').next().unwrap_or("")
}

/// The flags of a renaming, as `renameat2` takes them.
fn renaming_flags(call: &Call) -> u32 {
    let has =
        |flag| call.arguments.last().is_some_and(|flags| flags.split('|').any(|it| it == flag));
    u32::from(has("RENAME_NOREPLACE")) | u32::from(has("RENAME_EXCHANGE")) << 1
}

fn is_fork(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "fork" | "vfork")
}

/// The function of the table for a system call; some have other names there.
fn function(call: &Call) -> Option<Function> {
    let name = match call.name {
        "fcntl" => return function_of_fcntl(call.arguments.get(1)?),
        "pread64" => "pread",
        "pwrite64" => "pwrite",
        "newfstatat" => "fstatat",
        "faccessat2" => "faccessat",
        "openat2" => "openat",
        "renameat2" => "renameat",
        "fadvise64" => "posix_fadvise",
        "execve" | "execveat" => "exec",
        "exit_group" => "exit",
        "clone" | "clone3" => "fork",
        name => name,
    };
    Function::from_name(name)
}

/// What a command of `fcntl` does, where the table has it.
fn function_of_fcntl(command: &str) -> Option<Function> {
    // With `-X raw` the number alone.
    match command.split_once("/* ").map_or(command, |(_, name)| name.trim_end_matches(" */")) {
        "F_DUPFD" | "F_DUPFD_CLOEXEC" | "0" | "0x406" => Some(Function::FCNTL_DUPFD),
        "F_SETFL" | "0x4" => Some(Function::FCNTL_SETFL),
        "F_SETLK" | "F_SETLKW" | "F_OFD_SETLK" | "F_OFD_SETLKW" => Some(Function::FCNTL_LOCK),
        "F_SETLEASE" => Some(Function::FCNTL_LEASE),
        _ => None,
    }
}

/// Whether a call names its file by a path: its first argument, or its second after a directory
/// (an empty one means the descriptor itself).
fn has_path(first: &str, second: &str) -> bool {
    first.starts_with('"') || (second.starts_with('"') && second != "\"\"")
}

/// `3` or `3</path>`.
fn descriptor(argument: &str) -> Option<i32> {
    number(argument).map(|fd| fd as i32)
}

/// What a pointer to a number points to, `[7]` or before the call of `[7] => [9]`; none of `NULL`.
fn from_pointer(text: &str) -> Option<i64> {
    number(text.strip_prefix('[')?.split(']').next()?)
}

/// The flags of a call that opens, which are where its name says, as number or by their names.
fn flags_of_open(call: &Call) -> i64 {
    let text = |index: usize| call.arguments.get(index).copied().unwrap_or("");
    let told = match call.name {
        "open" => text(1),
        "openat" => text(2),
        // `{flags=O_RDONLY, resolve=0}`
        "openat2" => {
            let flags = text(2).split_once("flags=").map_or("", |(_, rest)| rest);
            flags.split([',', '}']).next().unwrap_or("")
        }
        _ => return 0o1101,
    };
    number(told).unwrap_or_else(|| open_flags(told))
}

/// The numbers of open flags on Linux (x86-64); unknown names count nothing.
fn open_flags(text: &str) -> i64 {
    const FLAGS: [(&str, i64); 12] = [
        ("O_WRONLY", 0o1),
        ("O_RDWR", 0o2),
        ("O_CREAT", 0o100),
        ("O_EXCL", 0o200),
        ("O_TRUNC", 0o1000),
        ("O_APPEND", 0o2000),
        ("O_NONBLOCK", 0o4000),
        ("O_DSYNC", 0o10000),
        ("O_DIRECT", 0o40000),
        ("O_DIRECTORY", 0o200000),
        ("O_CLOEXEC", 0o2000000),
        ("O_SYNC", 0o4010000),
    ];
    let number = |name: &str| FLAGS.iter().find(|row| row.0 == name).map_or(0, |row| row.1);
    text.split('|').map(number).fold(0, |all, flag| all | flag)
}
