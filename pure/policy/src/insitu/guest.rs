//! A recorded process as its strategies would have seen it: events of a trace in, calls on stacks
//! out. Replay and the simulator drive their stacks by this; the preloaded library follows the
//! same rules on the live program, and the conformance test holds the two against each other.
//!
//! Which call does what is the table of [`super::rules`]. Beside it, opening tells the stack `Open`
//! afterwards, and opening for writing with `O_SYNC` releases the file; closing the last descriptor
//! of a description (also by `dup2` over it) tells it `Close` before, closing another one `Flush`.
//!
//! A driver feeds `Flush` only to a stack that holds bytes; answers to `Flush`, `Settle`, `Open`
//! and `Close` go to nobody (a failure to flush is remembered by the strategy and reported by the
//! next write, sync or close).

use super::classes::Layer as Heard;
use super::rules::{Act, Detail, Effect, Files, Rule, effect};
use super::{Access, At, Call, Handle, StrategySpec, Whence};
use iolab_trace::{Class, Event, Function, Layer};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

pub use iolab_trace::open_flags;

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
    /// Another process has been at the file: what the stack held is out, and the file may be of another
    /// length now ([`Stack::drained`](super::Stack::drained)).
    Drained {
        /// Which.
        stack: StackId,
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
    /// It holds or keeps bytes, so the file must be nobody else's.
    owns: bool,
}

/// The staged descriptions of one process. Of others of its run it knows by [`super::Guests`].
#[derive(Clone, Debug, Default)]
pub struct Guest {
    specs: Vec<StrategySpec>,
    /// Another process of the run has the file open that is opened next.
    pub(super) is_shared: bool,
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
        let hears = |spec: &StrategySpec| spec.layer() == Heard::Posix;
        specs.iter().filter(move |spec| is_data && hears(spec) && spec.selection.chooses(path))
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
        let detail = Detail {
            is_staged: self.staged(event.fd).is_some(),
            request: event.argument as u64,
            has_flags: event.argument > 0,
            has_actions: event.length > 0,
        };
        let rules = match effect(event.function, detail) {
            Effect::Own => return self.own(event, out),
            Effect::Before(rules) => rules,
        };
        rules.iter().for_each(|&rule| self.carry_out(rule, event, out));
        match event.function.class() {
            Class::Open => self.open(event, path, out),
            Class::Close => self.close(event, out),
            Class::Dup => self.dup(event, out),
            _ => {
                out.push(Step::Native);
                self.follow_name(event);
            }
        }
    }

    fn carry_out(&mut self, (act, files): Rule, event: &Event, out: &mut Vec<Step>) {
        let stacks = match files {
            Files::Named => self.stack_of(event.file).into_iter().collect(),
            Files::Second => self.stack_of(event.second_file()).into_iter().collect(),
            Files::HandedOn => self.stacks_with(|description| !description.close_on_exec),
            Files::All => self.stacks_with(|_| true),
        };
        for stack in stacks {
            match act {
                Act::Flush => self.flush(stack, out),
                Act::Settle => self.settle(stack, out),
                Act::Release => self.release(stack, out),
            }
        }
    }

    /// An open file keeps its stack when its name changes or goes away; the old name is free for
    /// another file.
    pub(super) fn follow_name(&mut self, event: &Event) {
        let name = match event.function.class() {
            Class::Rename if event.function.keeps_name() => return,
            Class::Rename if event.argument >= 0 => event.second_file(),
            Class::Unlink => FileId::NONE,
            _ => return,
        };
        let (stack, replaced) = (self.stack_of(event.file), self.stack_of(name));
        // What was there is without a name now, or has the other one's.
        let left = if event.function.exchanges() { event.file } else { FileId::NONE };
        if let Some(replaced) = replaced.filter(|_| name != FileId::NONE) {
            self.stacks.get_mut(&replaced).expect("just found").file = left;
        }
        if let Some(stack) = stack {
            self.stacks.get_mut(&stack).expect("just found").file = name;
        }
    }

    fn open(&mut self, event: &Event, path: &str, out: &mut Vec<Step>) {
        out.push(Step::Native);
        let access = Access::from_flags(event.argument);
        let inherited = event.function == Function::INHERITED;
        if access.synchronous
            && access.write
            && let Some(stack) = self.stack_of(event.file)
        {
            self.release(stack, out);
        }
        let chosen = Guest::chosen(&self.specs, path).next().is_some();
        if inherited || access.synchronous || event.length < 0 || !chosen {
            return;
        }
        let handle = Handle(self.next_handle);
        let stack = match self.stack_of(event.file) {
            Some(stack) if self.stacks[&stack].released => return,
            Some(stack) => stack,
            None => {
                let owns = Guest::chosen(&self.specs, path).any(StrategySpec::owns_files);
                if owns && self.is_shared {
                    return;
                }
                self.begin(event.file, owns, out)
            }
        };
        self.next_handle += 1;
        let close_on_exec = event.argument & open_flags::CLOSE_ON_EXEC != 0;
        self.descriptors.insert(event.result as i32, handle);
        self.descriptions.insert(handle, Description { stack, descriptors: 1, close_on_exec });
        self.stacks.get_mut(&stack).expect("just found or begun").handles.push(handle);
        let call = Call::Open { access, file_bytes: event.length as u64, position: 0 };
        out.push(Step::Stage { stack, handle, call, own: false });
    }

    fn begin(&mut self, file: FileId, owns: bool, out: &mut Vec<Step>) -> StackId {
        let stack = StackId(self.next_stack);
        self.next_stack += 1;
        self.stacks.insert(stack, Staged { file, handles: Vec::new(), released: false, owns });
        out.push(Step::Begin { stack, file });
        stack
    }

    fn stack_of(&self, file: FileId) -> Option<StackId> {
        file.index()?;
        self.stacks.iter().find(|(_, staged)| staged.file == file).map(|(&stack, _)| stack)
    }

    fn close(&mut self, event: &Event, out: &mut Vec<Step>) {
        let closed = self.descriptors.range(event.closed_descriptors());
        let closed: Vec<i32> = closed.map(|(&fd, _)| fd).collect();
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

    /// A call of the program that the stack of its descriptor answers.
    fn own(&mut self, event: &Event, out: &mut Vec<Step>) {
        let (stack, handle) = self.staged(event.fd).expect("only staged descriptors have one");
        let at = match event.function.is_positioned() {
            true => At::Offset(event.offset.max(0) as u64),
            false => At::Position,
        };
        let length = event.length.max(0) as u64;
        let call = match event.function.class() {
            Class::Read => Call::Read { at, length },
            Class::Write => Call::Write { at, length },
            Class::Sync => Call::Sync { data_only: event.function == Function::FDATASYNC },
            Class::Truncate => Call::Truncate { length },
            Class::Allocate => Call::Allocate {
                mode: event.argument.max(0) as i32,
                offset: event.offset.max(0) as u64,
                length,
            },
            _ => Call::Seek { offset: event.offset, whence: Whence::from_number(event.argument) },
        };
        out.push(Step::Stage { stack, handle, call, own: true });
    }

    /// Stacks with a description that satisfies `which`, in order.
    fn stacks_with(&self, which: impl Fn(&Description) -> bool) -> Vec<StackId> {
        let has = |staged: &Staged| staged.handles.iter().any(|h| which(&self.descriptions[h]));
        self.stacks.iter().filter(|(_, staged)| has(staged)).map(|(&stack, _)| stack).collect()
    }

    fn flush(&self, stack: StackId, out: &mut Vec<Step>) {
        let staged = &self.stacks[&stack];
        if !staged.released {
            out.push(Step::Stage {
                stack,
                handle: staged.handles[0],
                call: Call::Flush,
                own: false,
            });
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

    /// The stack that holds or keeps bytes of a file, if there is one.
    fn owner_of(&self, file: FileId) -> Option<StackId> {
        let stack = self.stack_of(file)?;
        let staged = &self.stacks[&stack];
        (staged.owns && !staged.released).then_some(stack)
    }

    /// The process makes no call any more: what it holds goes out, whatever it left open.
    pub(super) fn finish(&self, out: &mut Vec<Step>) {
        self.stacks_with(|_| true).into_iter().for_each(|stack| self.flush(stack, out));
    }

    /// Another process uses a file: what is held of it goes out. Whether there is anybody to hold.
    pub(super) fn drain(&mut self, file: FileId, out: &mut Vec<Step>) -> bool {
        let owner = self.owner_of(file);
        if let Some(stack) = owner {
            self.flush(stack, out);
        }
        owner.is_some()
    }

    /// The process finds that another one has been at a file, or still `is_shared` with it.
    pub(super) fn drained(&mut self, file: FileId, is_shared: bool, out: &mut Vec<Step>) {
        if let Some(stack) = self.owner_of(file) {
            out.push(Step::Drained { stack });
            if is_shared {
                self.release(stack, out);
            }
        }
    }

    fn release(&mut self, stack: StackId, out: &mut Vec<Step>) {
        self.settle(stack, out);
        self.stacks.get_mut(&stack).expect("a stack that exists").released = true;
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
