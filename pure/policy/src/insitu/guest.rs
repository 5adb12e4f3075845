//! A recorded process as its strategies would have seen it: events of a trace in, calls on stacks
//! out. Replay and the simulator drive their stacks by this; the preloaded library follows the
//! same rules on the live program, and the conformance test holds the two against each other.
//!
//! # The rules
//!
//! A description is *staged* when this process opened it, on a regular file whose path a strategy
//! chooses, no file of a parallel runtime (`super::runtimes`), not `O_SYNC`, `O_DSYNC`, `O_DIRECT` or `O_PATH`. All staged descriptions of one file
//! (inode) of one process share one stack. Everything else is carried out as it is.
//!
//! | the program … | the stacks hear |
//! |---|---|
//! | opens a file | `Flush` on its stack before, `Open` after |
//! | reads, writes, seeks, `fsync`, `fdatasync`, `ftruncate`, `fallocate` | that call |
//! | closes the last descriptor of a description (also by `dup2` over it) | `Close` before |
//! | closes another one | `Flush` before |
//! | reads or seeks by a descriptor of that file which is not staged | `Flush` before |
//! | writes by one, opens one for writing, truncates by path | the same as for a map |
//! | stats, renames, links, unlinks, `sync_file_range`, sets times, mode, owner or extended attributes | `Flush` before, on that file |
//! | locks or unlocks anything (that is how programs say that others may look), `sync`, `syncfs`, posix_spawn, system, vfork, exit | `Flush` before, on every file |
//! | locks or unlocks a range, which may count from the position | after that `Settle` for each description of that file |
//! | maps, copies in the kernel, changes status flags, takes a lease, watches, sends over a socket, uses asynchronous I/O, `ioctl` unless below | `Settle` for each description of that file before; then the file is *released*: its calls pass until it is opened anew |
//! | `ioctl` that only asks ([`Request`]) | `Flush` before, for `FIONREAD` `Settle`, for marks of the descriptor nothing |
//! | forks, clones, executes | the same as for a map, for every file |
//! | vforks, spawns, `system`, `popen`, `wordexp` | the same for files with a description opened without `O_CLOEXEC` |
//!
//! A driver feeds `Flush` only to a stack that holds bytes; answers to `Flush`, `Settle`, `Open`
//! and `Close` go to nobody (a failure to flush is remembered by the strategy and reported by the
//! next write, sync or close).

use super::{Access, At, Call, Handle, StrategySpec, Whence};
use iolab_trace::{Class, Event, Function, Layer};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

/// Flags of `open` on Linux (x86-64 and AArch64 agree on these, but for `O_DIRECT`), as stored in
/// traces; pure code has no system headers to take them from.
pub mod open_flags {
    /// Access mode mask: 0 read, 1 write, 2 both.
    pub const ACCESS_MODE: i64 = 0o3;
    /// Create if missing.
    pub const CREATE: i64 = 0o100;
    /// Only create.
    pub const EXCLUSIVE: i64 = 0o200;
    /// Cut to zero length.
    pub const TRUNCATE: i64 = 0o1000;
    /// Every write at the end.
    pub const APPEND: i64 = 0o2000;
    /// `O_DSYNC`.
    pub const DATA_SYNC: i64 = 0o10000;
    /// `O_DIRECT` on x86-64.
    pub const DIRECT: i64 = 0o40000;
    /// `O_DIRECTORY` on x86-64.
    pub const DIRECTORY: i64 = 0o200000;
    /// Closed on exec.
    pub const CLOSE_ON_EXEC: i64 = 0o2000000;
    /// The part of `O_SYNC` beyond `O_DSYNC`.
    pub const SYNC: i64 = 0o4000000;
    /// No data access at all.
    pub const PATH: i64 = 0o10000000;
    /// Unnamed temporary file (includes `O_DIRECTORY`).
    pub const TEMPORARY: i64 = 0o20000000;
}

impl Access {
    /// What open flags say about a description.
    pub fn from_flags(flags: i64) -> Access {
        let mode = flags & open_flags::ACCESS_MODE;
        let raw = open_flags::DATA_SYNC | open_flags::SYNC | open_flags::DIRECT | open_flags::PATH;
        Access {
            read: mode == 0 || mode == 2,
            write: mode == 1 || mode == 2,
            append: flags & open_flags::APPEND != 0,
            synchronous: flags & raw != 0,
        }
    }
}

/// One stack of one process, numbered in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// What a driver does for one event, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make a stack of the strategies that choose this file.
    Begin {
        /// Its name from now on.
        stack: StackId,
        /// The file it serves.
        file: FileId,
    },
    /// Feed this call to the stack.
    Stage {
        /// Which stack.
        stack: StackId,
        /// Which description.
        handle: Handle,
        /// Which call.
        call: Call,
        /// Whether it is the program's own call, so that its answer is the program's result.
        own: bool,
    },
    /// Carry the event out as it was recorded.
    Native,
    /// The stack serves nobody any more.
    End {
        /// Which.
        stack: StackId,
    },
}

#[derive(Clone, Copy, Debug)]
struct Description {
    stack: StackId,
    descriptors: u32,
    close_on_exec: bool,
}

#[derive(Clone, Debug)]
struct Staged {
    file: FileId,
    handles: Vec<Handle>,
    released: bool,
}

/// The staged descriptions of one process.
#[derive(Clone, Debug, Default)]
pub struct Guest {
    specs: Vec<StrategySpec>,
    descriptors: BTreeMap<i32, Handle>,
    descriptions: BTreeMap<Handle, Description>,
    stacks: BTreeMap<StackId, Staged>,
    next_handle: u32,
    next_stack: u32,
}

impl Guest {
    /// A process at its start, under these strategies, top first. A child after fork starts anew:
    /// what it inherits passes.
    pub fn new(specs: &[StrategySpec]) -> Guest {
        Guest { specs: specs.to_vec(), ..Guest::default() }
    }

    /// The strategies that choose a file, top first: what `Step::Begin` asks to build.
    pub fn chosen<'a>(
        specs: &'a [StrategySpec],
        path: &'a str,
    ) -> impl Iterator<Item = &'a StrategySpec> + 'a {
        let is_data = super::runtimes::owner_of(path).is_none();
        specs.iter().filter(move |spec| is_data && spec.selection.chooses(path))
    }

    /// The stack and description a descriptor is staged on, if it is.
    pub fn staged(&self, fd: i32) -> Option<(StackId, Handle)> {
        let handle = *self.descriptors.get(&fd)?;
        let stack = self.descriptions.get(&handle)?.stack;
        (!self.stacks[&stack].released).then_some((stack, handle))
    }

    /// What to do for `event`; `path` is the path of its file. Steps are appended to `out`, with
    /// exactly one `Native` or one own `Stage` among them. Events of layers above POSIX are not
    /// for this machine: their POSIX calls stand in the trace as well.
    pub fn step(&mut self, event: &Event, path: &str, out: &mut Vec<Step>) {
        assert_eq!(event.function.layer(), Layer::Posix, "{event:?} is no POSIX call");
        if event.result < 0 && !event.function.class().moves_data() {
            return out.push(Step::Native);
        }
        match event.function.class() {
            Class::Open => self.open(event, path, out),
            Class::Close => self.close(event, out),
            Class::Dup => self.dup(event, out),
            Class::Read | Class::Write | Class::Seek => self.transfer(event, out),
            Class::Sync => self.sync(event, out),
            Class::Truncate | Class::Allocate => self.resize(event, out),
            Class::Lock => {
                self.flush_all(out);
                if event.function != Function::FLOCK
                    && let Some(stack) = self.stack_of(event.file)
                {
                    self.settle(stack, out);
                }
                out.push(Step::Native);
            }
            Class::Control if event.function == Function::IOCTL => {
                self.request(event, out);
                out.push(Step::Native);
            }
            Class::Stat | Class::Rename | Class::Unlink | Class::Attribute => {
                self.flush_file(event.file, out);
                out.push(Step::Native);
                self.follow_name(event);
            }
            Class::Map | Class::Copy | Class::Control => {
                self.release_file(event.file, out);
                if event.function.class() == Class::Copy && event.argument >= 0 {
                    self.release_file(FileId(event.argument as u32), out);
                }
                out.push(Step::Native);
            }
            Class::Process => self.process(event, out),
            _ => out.push(Step::Native),
        }
    }

    /// An open file keeps its stack when its name changes or goes away; the old name is free for
    /// another file.
    fn follow_name(&mut self, event: &Event) {
        let name = match event.function.class() {
            Class::Rename if event.function == Function::LINK => return,
            Class::Rename if event.argument >= 0 => FileId(event.argument as u32),
            Class::Unlink => FileId::NONE,
            _ => return,
        };
        if name != FileId::NONE
            && let Some(replaced) = self.stack_of(name)
        {
            self.stacks.get_mut(&replaced).expect("just found").file = FileId::NONE;
        }
        if let Some(stack) = self.stack_of(event.file) {
            self.stacks.get_mut(&stack).expect("just found").file = name;
        }
    }

    fn open(&mut self, event: &Event, path: &str, out: &mut Vec<Step>) {
        self.flush_file(event.file, out);
        out.push(Step::Native);
        let access = Access::from_flags(event.argument);
        let inherited = event.function == Function::INHERITED;
        if access.synchronous && access.write {
            self.release_file(event.file, out);
        }
        let chosen = Guest::chosen(&self.specs, path).next().is_some();
        if inherited || access.synchronous || event.length < 0 || !chosen {
            return;
        }
        let handle = Handle(self.next_handle);
        let stack = match self.stack_of(event.file) {
            Some(stack) if self.stacks[&stack].released => return,
            Some(stack) => stack,
            None => self.begin(event.file, out),
        };
        self.next_handle += 1;
        let close_on_exec = event.argument & open_flags::CLOSE_ON_EXEC != 0;
        self.descriptors.insert(event.result as i32, handle);
        self.descriptions.insert(handle, Description { stack, descriptors: 1, close_on_exec });
        self.stacks.get_mut(&stack).expect("just found or begun").handles.push(handle);
        let call = Call::Open { access, file_bytes: event.length as u64, position: 0 };
        out.push(Step::Stage { stack, handle, call, own: false });
    }

    fn begin(&mut self, file: FileId, out: &mut Vec<Step>) -> StackId {
        let stack = StackId(self.next_stack);
        self.next_stack += 1;
        self.stacks.insert(stack, Staged { file, handles: Vec::new(), released: false });
        out.push(Step::Begin { stack, file });
        stack
    }

    fn stack_of(&self, file: FileId) -> Option<StackId> {
        file.index()?;
        self.stacks.iter().find(|(_, staged)| staged.file == file).map(|(&stack, _)| stack)
    }

    fn close(&mut self, event: &Event, out: &mut Vec<Step>) {
        let last = match event.function {
            Function::CLOSE_RANGE if event.argument >= 0 => event.argument as i32,
            _ => event.fd,
        };
        let closed: Vec<i32> =
            self.descriptors.range(event.fd..=last.max(event.fd)).map(|(&fd, _)| fd).collect();
        let mut ended = Vec::new();
        for fd in closed {
            self.drop_descriptor(fd, out, &mut ended);
        }
        out.push(Step::Native);
        out.extend(ended.into_iter().map(|stack| Step::End { stack }));
    }

    /// One descriptor goes away; stacks that serve nobody after it are added to `ended`.
    fn drop_descriptor(&mut self, fd: i32, out: &mut Vec<Step>, ended: &mut Vec<StackId>) {
        let Some(handle) = self.descriptors.remove(&fd) else { return };
        let description =
            self.descriptions.get_mut(&handle).expect("descriptors point at descriptions");
        description.descriptors -= 1;
        let (stack, is_last) = (description.stack, description.descriptors == 0);
        let staged = self.stacks.get_mut(&stack).expect("descriptions point at stacks");
        if !staged.released {
            let call = if is_last { Call::Close } else { Call::Flush };
            out.push(Step::Stage { stack, handle, call, own: false });
        }
        if is_last {
            self.descriptions.remove(&handle);
            staged.handles.retain(|&other| other != handle);
            if staged.handles.is_empty() {
                self.stacks.remove(&stack);
                ended.push(stack);
            }
        }
    }

    fn dup(&mut self, event: &Event, out: &mut Vec<Step>) {
        let new_fd = event.result as i32;
        let mut ended = Vec::new();
        if new_fd != event.fd {
            self.drop_descriptor(new_fd, out, &mut ended);
        }
        out.push(Step::Native);
        out.extend(ended.into_iter().map(|stack| Step::End { stack }));
        if let Some(&handle) = self.descriptors.get(&event.fd)
            && new_fd != event.fd
        {
            self.descriptors.insert(new_fd, handle);
            self.descriptions
                .get_mut(&handle)
                .expect("descriptors point at descriptions")
                .descriptors += 1;
        }
    }

    fn transfer(&mut self, event: &Event, out: &mut Vec<Step>) {
        if matches!(event.function, Function::AIO_READ | Function::AIO_WRITE) {
            self.release_file(event.file, out);
            return out.push(Step::Native);
        }
        let Some((stack, handle)) = self.staged(event.fd) else {
            match event.function.class() {
                Class::Write => self.release_file(event.file, out),
                _ => self.flush_file(event.file, out),
            }
            return out.push(Step::Native);
        };
        let at = match event.function.is_positioned() {
            true => At::Offset(event.offset.max(0) as u64),
            false => At::Position,
        };
        let length = event.length.max(0) as u64;
        let call = match event.function.class() {
            Class::Read => Call::Read { at, length },
            Class::Write => Call::Write { at, length },
            _ => Call::Seek { offset: event.offset, whence: Whence::from_number(event.argument) },
        };
        out.push(Step::Stage { stack, handle, call, own: true });
    }

    fn sync(&mut self, event: &Event, out: &mut Vec<Step>) {
        let data_only = event.function == Function::FDATASYNC;
        match (event.function, self.staged(event.fd)) {
            (Function::FSYNC | Function::FDATASYNC, Some((stack, handle))) => {
                out.push(Step::Stage { stack, handle, call: Call::Sync { data_only }, own: true });
            }
            (Function::SYNC | Function::SYNCFS, _) => {
                self.flush_all(out);
                out.push(Step::Native);
            }
            _ => {
                self.flush_file(event.file, out);
                out.push(Step::Native);
            }
        }
    }

    fn resize(&mut self, event: &Event, out: &mut Vec<Step>) {
        let Some((stack, handle)) = self.staged(event.fd) else {
            self.release_file(event.file, out);
            return out.push(Step::Native);
        };
        let length = event.length.max(0) as u64;
        let call = match event.function.class() {
            Class::Truncate => Call::Truncate { length },
            _ => Call::Allocate {
                mode: event.argument.max(0) as i32,
                offset: event.offset.max(0) as u64,
                length,
            },
        };
        out.push(Step::Stage { stack, handle, call, own: true });
    }

    fn process(&mut self, event: &Event, out: &mut Vec<Step>) {
        match event.function {
            Function::FORK | Function::CLONE | Function::EXEC => {
                for stack in self.stacks_with(|_| true) {
                    self.release(stack, out);
                }
            }
            Function::VFORK
            | Function::POSIX_SPAWN
            | Function::SYSTEM
            | Function::POPEN
            | Function::WORDEXP => {
                for stack in self.stacks_with(|description| !description.close_on_exec) {
                    self.release(stack, out);
                }
                self.flush_all(out);
            }
            Function::EXIT => self.flush_all(out),
            _ => {}
        }
        out.push(Step::Native);
    }

    /// Stacks with a description that satisfies `which`, in order.
    fn stacks_with(&self, which: impl Fn(&Description) -> bool) -> Vec<StackId> {
        let has = |staged: &Staged| staged.handles.iter().any(|h| which(&self.descriptions[h]));
        self.stacks.iter().filter(|(_, staged)| has(staged)).map(|(&stack, _)| stack).collect()
    }

    fn flush_all(&self, out: &mut Vec<Step>) {
        for (&stack, staged) in &self.stacks {
            self.flush(stack, staged, out);
        }
    }

    fn flush_file(&self, file: FileId, out: &mut Vec<Step>) {
        let Some(stack) = self.stack_of(file) else { return };
        self.flush(stack, &self.stacks[&stack], out);
    }

    fn flush(&self, stack: StackId, staged: &Staged, out: &mut Vec<Step>) {
        if !staged.released {
            out.push(Step::Stage {
                stack,
                handle: staged.handles[0],
                call: Call::Flush,
                own: false,
            });
        }
    }

    /// `ioctl`, whose request is the argument of the event.
    fn request(&mut self, event: &Event, out: &mut Vec<Step>) {
        let Some(stack) = self.stack_of(event.file) else { return };
        match Request::of(event.argument as u64) {
            Request::Nothing => {}
            Request::Looks => self.flush(stack, &self.stacks[&stack], out),
            Request::Counts => self.settle(stack, out),
            Request::Unknown => self.release(stack, out),
        }
    }

    fn settle(&self, stack: StackId, out: &mut Vec<Step>) {
        let staged = &self.stacks[&stack];
        if staged.released {
            return;
        }
        out.extend(staged.handles.iter().map(|&handle| Step::Stage {
            stack,
            handle,
            call: Call::Settle,
            own: false,
        }));
    }

    fn release_file(&mut self, file: FileId, out: &mut Vec<Step>) {
        if let Some(stack) = self.stack_of(file) {
            self.release(stack, out);
        }
    }

    fn release(&mut self, stack: StackId, out: &mut Vec<Step>) {
        self.settle(stack, out);
        self.stacks.get_mut(&stack).expect("a stack that exists").released = true;
    }
}

/// What an `ioctl` on a regular file means to the strategies that serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// It concerns the descriptor, or is no request of regular files (terminals).
    Nothing,
    /// It looks at the file below: its extents, its flags.
    Looks,
    /// It counts from the file position (`FIONREAD`).
    Counts,
    /// It may share or change bytes (`FICLONE`), or is not known here.
    Unknown,
}

impl Request {
    /// By its number on Linux (x86-64 and AArch64 agree on these).
    pub fn of(number: u64) -> Request {
        // The second argument of `ioctl` is an unsigned 32-bit word to the kernel.
        match number as u32 {
            // FIONCLEX, FIOCLEX, FIONBIO, FIOASYNC; TCGETS to TIOCGSERIAL, of terminals.
            0x5450..=0x5452 | 0x5421 | 0x5401..=0x541a | 0x541c..=0x5420 => Request::Nothing,
            0x541b => Request::Counts,
            // FS_IOC_FIEMAP, FIBMAP, FIGETBSZ, FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR,
            // FS_IOC_GETVERSION, FS_IOC_GETFSLABEL.
            0xc020_660b | 1 | 2 | 0x8008_6601 | 0x801c_581f | 0x8008_7601 | 0x8100_9431 => {
                Request::Looks
            }
            _ => Request::Unknown,
        }
    }
}

impl Whence {
    /// From the system's number (0, 1, 2; 3 and 4 look for data and holes).
    pub fn from_number(number: i64) -> Whence {
        match number {
            0 => Whence::Start,
            1 => Whence::Current,
            2 => Whence::End,
            other => Whence::Sparse(other as i32),
        }
    }

    /// The system's number.
    pub fn number(self) -> i32 {
        match self {
            Whence::Start => 0,
            Whence::Current => 1,
            Whence::End => 2,
            Whence::Sparse(number) => number,
        }
    }
}
