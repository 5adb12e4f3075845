//! What processes do: the steps of their programs, one after the other.

use super::clients::{File, Process};
use super::{Happening, World};
use crate::marks::Mark;
use crate::names::{Asked, Question};
use crate::plan::{Access, NameCall, Program, Round, Step};
use crate::pointers::{MoveNumber, Setting};
use crate::shadow::{By, OpNumber, Scope};
use iolab_pattern::Nest;
use iolab_pfs::client::Call;
use iolab_pfs::{Code, Entry, Kind, OpenWish, Opened};
use iolab_vocab::Direction;
use std::sync::Arc;

/// What rank 0 tells the others of an open: nothing yet, or what came of it.
pub(super) type Bulletin = Option<Option<Opened>>;

/// One step of one process.
#[derive(Clone, Debug)]
pub(super) enum Todo {
    Open { slot: usize, path: Vec<u8>, wish: OpenWish, bulletin: usize },
    Adopt { slot: usize, bulletin: usize },
    Access { slot: usize, access: Access, collective: bool, waits: bool },
    SetAtomic { slot: usize, atomic: bool },
    Advance { slot: usize, by: u64 },
    Put { slot: usize, to: u64 },
    Agree { slot: usize },
    Sync { slot: usize },
    Size { slot: usize },
    Resize { slot: usize, bytes: u64 },
    Close { slot: usize },
    Name { call: NameCall },
}

/// What a call under way is for.
#[derive(Clone, Debug)]
pub(super) enum Doing {
    Open { bulletin: usize, asked: Asked },
    Adopt { slot: usize, bulletin: usize },
    Access { file: File, access: Access, op: Option<OpNumber> },
    SetAtomic,
    Advance { file: File, setting: Setting, number: MoveNumber },
    Put { file: File, slot: usize, to: u64 },
    Agree { file: File },
    Sync { file: File },
    Size { file: File },
    Resize { file: File, op: OpNumber },
    Close { file: File },
    Name { asked: Asked, call: NameCall },
}

impl World {
    /// Makes the processes of all programs.
    pub(super) fn enrol(&mut self) {
        for at in 0..self.plan.programs.len() {
            self.enrol_program(at);
        }
    }

    fn enrol_program(&mut self, at: usize) {
        let program = self.plan.programs[at].clone();
        let bulletins = self.bulletins.len();
        let (todos, count) = todos(&program, bulletins);
        self.bulletins.resize(bulletins + count, None);
        for (rank, todos) in todos.into_iter().enumerate() {
            let client = self.processes.len();
            let process = Process::new(
                &self.plan,
                (at, rank as u32, program.ranks),
                todos,
                self.recordings.is_some(),
            );
            self.processes.push(process);
            self.tell_client(client, iolab_pfs::client::Event::Woke);
            let delay = self.delay();
            self.later(delay, Happening::Goes { client });
        }
    }

    /// When all is over, somebody looks at everything.
    pub(super) fn audit(&mut self) {
        if self.defect.is_some() {
            return;
        }
        self.auditing = true;
        let call = NameCall::List(b"/".into(), Vec::new());
        let steps = vec![Step::Name { rank: 0, call }];
        let rounds = vec![Round { number: 0, steps }];
        self.plan.programs.push(Program { ranks: 1, rounds });
        self.enrol_program(self.plan.programs.len() - 1);
    }

    /// What there is to look at in a directory: directories, and files as long as they are.
    pub(super) fn look_further(
        &mut self,
        client: usize,
        directory: &[u8],
        entries: &[Entry],
        more: bool,
    ) {
        let mut todos = Vec::new();
        for entry in entries {
            let name = entry.name.as_slice();
            let path = match directory {
                b"/" => [b"/", name].concat(),
                directory => [directory, b"/", name].concat(),
            };
            if entry.attributes.kind == Kind::Directory {
                todos.push(Todo::Name { call: NameCall::List(path, Vec::new()) });
            } else {
                self.found.insert(entry.attributes.inode);
                todos.push(Todo::Name { call: NameCall::Look(path.clone()) });
                todos.extend(self.reading_of(path));
            }
        }
        if let (true, Some(last)) = (more, entries.last()) {
            let call = NameCall::List(directory.into(), last.name.clone());
            todos.push(Todo::Name { call });
        }
        self.processes[client].todos.extend(todos);
    }

    /// What reads a whole file.
    fn reading_of(&mut self, path: Vec<u8>) -> Vec<Todo> {
        let wish = OpenWish::TO_READ;
        let to = 2 * crate::views::FILE_BYTES_MAX;
        let access = Access { writes: false, view: Arc::new(Nest::WHOLE_FILE), from: 0, to };
        let (slot, bulletin) = (0, self.bulletins.len());
        self.bulletins.push(None);
        vec![
            Todo::Open { slot, path, wish, bulletin },
            Todo::Adopt { slot, bulletin },
            Todo::Size { slot },
            Todo::Access { slot, access, collective: false, waits: true },
            Todo::Close { slot },
        ]
    }

    pub(super) fn programs_are_over(&self) -> bool {
        self.processes.iter().all(Process::is_over)
    }

    /// Who waits for what.
    pub(super) fn waiting(&self) -> String {
        let mut words = Vec::new();
        for (at, process) in self.processes.iter().enumerate().filter(|(_, one)| !one.is_over()) {
            let calls: Vec<String> = process
                .calls
                .values()
                .map(|pending| format!("{:.40}", format!("{:?}", pending.doing)))
                .collect();
            let next = format!("{:.80}", format!("{:?}", process.todos.get(process.next)));
            words.push(format!(
                "process {at} (rank {}) waits for {calls:?} before {next}",
                process.rank
            ));
        }
        words.join("; ")
    }

    /// A process does its next steps, until it has to wait.
    pub(super) fn go_on(&mut self, client: usize) {
        while self.defect.is_none() {
            let process = &self.processes[client];
            let Some(todo) = process.todos.get(process.next).cloned() else {
                if process.is_over() {
                    self.leave(client);
                }
                return;
            };
            let overlaps = matches!(todo, Todo::Access { .. });
            let free = process.calls.is_empty()
                || (overlaps && !process.blocked && process.calls.len() < 3);
            if !process.alive || !free || self.begin_step(client, &todo).is_none() {
                return;
            }
        }
    }

    /// Begins a step, or passes over it; `None` if it has to wait.
    fn begin_step(&mut self, client: usize, todo: &Todo) -> Option<()> {
        if let Todo::Adopt { bulletin, .. } = todo {
            self.bulletins[*bulletin]?;
        }
        self.processes[client].next += 1;
        self.processes[client].blocked = !matches!(todo, Todo::Access { waits: false, .. });
        match todo.clone() {
            Todo::Open { slot, path, wish, bulletin } => {
                self.open(client, slot, path, wish, bulletin);
            }
            Todo::Adopt { slot, bulletin } => self.adopt(client, slot, bulletin),
            Todo::Name { call } => {
                let asked = self.names.asked(Question::Name(call.clone()));
                self.call(client, call.to_call(), Doing::Name { asked, call }, None);
            }
            Todo::Access { slot, access, collective, .. } => {
                let file = self.file_in(client, slot);
                if let Some(file) = file {
                    self.access(client, (slot, file), access, collective);
                }
            }
            Todo::SetAtomic { slot, .. }
            | Todo::Advance { slot, .. }
            | Todo::Put { slot, .. }
            | Todo::Agree { slot }
            | Todo::Sync { slot }
            | Todo::Size { slot }
            | Todo::Resize { slot, .. }
            | Todo::Close { slot } => {
                if let Some(file) = self.file_in(client, slot) {
                    self.with_file(client, (slot, file), todo);
                }
            }
        }
        Some(())
    }

    fn file_in(&self, client: usize, slot: usize) -> Option<File> {
        self.processes[client].files[slot].clone()
    }

    fn with_file(&mut self, client: usize, (slot, file): (usize, File), todo: &Todo) {
        let number = file.number;
        match *todo {
            Todo::SetAtomic { atomic, .. } => {
                let scope = if atomic { Scope::File } else { Scope::Block };
                self.processes[client].files[slot] = Some(File { scope, ..file });
                let what = Call::SetAtomic { file: number, atomic };
                self.call(client, what, Doing::SetAtomic, None);
            }
            Todo::Advance { by, .. } => {
                let (setting, from) = file.pointer;
                let what = Call::Advance { file: number, setting, from, by };
                let (tick, setting) = (self.tick(), (file.bulletin, setting));
                let number = self.pointers.begins(setting, from, by, tick);
                self.call(client, what, Doing::Advance { file, setting, number }, None);
            }
            Todo::Put { to, .. } => {
                let what = Call::Agree { file: number, result: Code::OK };
                let collective = self.come_to_collective(client, slot);
                self.call(client, what, Doing::Put { file, slot, to }, collective);
            }
            Todo::Agree { .. } => {
                let what = Call::Agree { file: number, result: Code::OK };
                let collective = self.come_to_collective(client, slot);
                self.call(client, what, Doing::Agree { file }, collective);
            }
            Todo::Close { .. } => {
                let collective = self.come_to_collective(client, slot);
                self.processes[client].files[slot] = None;
                self.call(client, Call::Close { file: number }, Doing::Close { file }, collective);
            }
            Todo::Sync { .. } => {
                self.call(client, Call::Sync { file: number }, Doing::Sync { file }, None);
            }
            Todo::Size { .. } => {
                self.call(client, Call::Size { file: number }, Doing::Size { file }, None);
            }
            Todo::Resize { bytes, .. } => {
                let tick = self.tick();
                let op = self.shadow.resize(file.key(), bytes, client, tick);
                let what = Call::Resize { file: number, bytes };
                self.call(client, what, Doing::Resize { file, op }, None);
            }
            _ => {}
        }
    }

    fn open(&mut self, client: usize, slot: usize, path: Vec<u8>, wish: OpenWish, bulletin: usize) {
        if self.processes[client].files[slot].is_some() {
            return self.post(bulletin, None);
        }
        let (creates, exclusive) = (wish.creates, wish.exclusive);
        let asked = self.names.asked(Question::Open { path: path.clone(), creates, exclusive });
        self.call(client, Call::Open { path, wish }, Doing::Open { bulletin, asked }, None);
    }

    /// Rank 0 tells the others what came of an open.
    pub(super) fn post(&mut self, bulletin: usize, opened: Option<Opened>) {
        self.bulletins[bulletin].get_or_insert(opened);
        for client in 0..self.processes.len() {
            let delay = self.delay();
            self.later(delay, Happening::Goes { client });
        }
    }

    fn adopt(&mut self, client: usize, slot: usize, bulletin: usize) {
        let Some(Some(opened)) = self.bulletins[bulletin] else { return };
        let Process { rank, size, .. } = self.processes[client];
        if self.processes[client].files[slot].is_some() {
            return;
        }
        let collective = self.come_to(client, bulletin, 0);
        let what = Call::Adopt { opened, rank, size };
        self.call(client, what, Doing::Adopt { slot, bulletin }, Some(collective));
    }

    fn access(
        &mut self,
        client: usize,
        (slot, file): (usize, File),
        mut access: Access,
        is_collective: bool,
    ) {
        let collective = if is_collective { self.come_to_collective(client, slot) } else { None };
        let mut op = None;
        let mut memory = vec![0xEE; (access.to - access.from) as usize];
        if access.writes {
            let tick = self.tick();
            let places = access.places(access.to);
            let by = By { process: client, scope: file.scope };
            match self.shadow.write(file.key(), &places, by, tick) {
                Some((number, values)) => (op, memory) = (Some(number), values),
                None => (access.to, memory) = (access.from, Vec::new()),
            }
        }
        if let (Some(key), Some(op)) = (collective, op) {
            let entry = self.collectives.entry(key).or_default();
            entry.writes.push((file.opened.inode, op));
        }
        let Access { writes, view, from, to } = access.clone();
        let direction = if writes { Direction::Write } else { Direction::Read };
        let what = Call::Access {
            file: file.number,
            direction,
            view,
            from,
            to,
            collective: is_collective,
        };
        self.call_with(client, what, Doing::Access { file, access, op }, collective, memory);
    }

    fn call(&mut self, client: usize, what: Call, doing: Doing, collective: Option<(usize, u64)>) {
        self.call_with(client, what, doing, collective, Vec::new());
    }

    /// A process is through with its program, and ends.
    fn leave(&mut self, client: usize) {
        let buffers = self.processes[client].buffers.len();
        if buffers > 0 {
            return self.fail(format!("{buffers} buffers of client {client} are left"));
        }
        self.die(client);
    }

    /// A client is no more: nobody hears what its calls come to.
    pub(super) fn die(&mut self, client: usize) {
        if !self.processes[client].alive {
            return;
        }
        let calls = self.processes[client].end();
        if !calls.is_empty() {
            self.meet(Mark::DiedInCall);
        }
        for pending in calls {
            match pending.doing {
                Doing::Open { bulletin, asked } => {
                    self.names.unheard(asked);
                    self.post(bulletin, None);
                }
                Doing::Name { asked, .. } => self.names.unheard(asked),
                _ => {}
            }
        }
        // The others of its group do not wait for what it would have opened.
        let opens = self.processes[client].todos.iter().filter_map(|todo| match todo {
            Todo::Open { bulletin, .. } => Some(*bulletin),
            _ => None,
        });
        for bulletin in opens.collect::<Vec<_>>() {
            if self.bulletins[bulletin].is_none() {
                self.post(bulletin, None);
            }
        }
        self.break_all(super::Node::Client(client));
    }
}

impl Access {
    /// Where in the file its bytes lie, up to byte `to` of the view.
    pub(super) fn places(&self, to: u64) -> Vec<u32> {
        let place = |y| self.view.at(y).expect("accesses lie in their views") as u32;
        (self.from..to).map(place).collect()
    }
}

impl NameCall {
    fn to_call(&self) -> Call {
        match self.clone() {
            NameCall::Look(path) => Call::Look { path },
            NameCall::MakeDirectory(path) => Call::MakeDirectory { path, mode: 0o755 },
            NameCall::Remove(path, kind) => Call::Remove { path, kind },
            NameCall::Rename(from, to) => Call::Rename { from, to },
            NameCall::List(path, after) => Call::List { path, after },
        }
    }
}

/// What each rank of a program does, and how many opens there are.
fn todos(program: &Program, bulletins: usize) -> (Vec<Vec<Todo>>, usize) {
    let mut all: Vec<Vec<Todo>> = vec![Vec::new(); program.ranks as usize];
    let mut opens = 0;
    for step in program.rounds.iter().flat_map(|round| &round.steps) {
        let mut everybody = |todo: &dyn Fn(usize) -> Todo| {
            all.iter_mut().enumerate().for_each(|(rank, todos)| todos.push(todo(rank)));
        };
        match step.clone() {
            Step::Open { slot, path, wish } => {
                let bulletin = bulletins + opens;
                opens += 1;
                all[0].push(Todo::Open { slot, path, wish, bulletin });
                all.iter_mut().for_each(|todos| todos.push(Todo::Adopt { slot, bulletin }));
            }
            Step::Collective { slot, ranks, waits } => everybody(&|rank| Todo::Access {
                slot,
                access: ranks[rank].clone(),
                collective: true,
                waits,
            }),
            Step::SetAtomic { slot, atomic } => everybody(&|_| Todo::SetAtomic { slot, atomic }),
            Step::Advance { slot, rank, by } => all[rank as usize].push(Todo::Advance { slot, by }),
            Step::Put { slot, to } => everybody(&|_| Todo::Put { slot, to }),
            Step::Agree { slot } => everybody(&|_| Todo::Agree { slot }),
            Step::Sync { slot } => everybody(&|_| Todo::Sync { slot }),
            Step::Close { slot } => everybody(&|_| Todo::Close { slot }),
            Step::Access { slot, rank, access, waits } => {
                let collective = false;
                all[rank as usize].push(Todo::Access { slot, access, collective, waits });
            }
            Step::Size { slot, rank } => all[rank as usize].push(Todo::Size { slot }),
            Step::Resize { slot, rank, bytes } => {
                all[rank as usize].push(Todo::Resize { slot, bytes });
            }
            Step::Name { rank, call } => all[rank as usize].push(Todo::Name { call }),
        }
    }
    (all, opens)
}
