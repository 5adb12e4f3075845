//! A program as a script of calls: small enough to read, exact enough to judge.

use iolab_report::{Analysis, Finding, Report};
use iolab_trace::{Event, FileEntry, Function, Header, Layer, ObjectEntry, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos};

/// Writes down what a program calls. Every call takes `call_ns`, with nothing in between.
pub(crate) struct Program {
    header: Header,
    events: Vec<Event>,
    clocks: Vec<u64>,
    process: usize,
    pub(crate) call_ns: u64,
}

#[allow(dead_code, reason = "each test file uses some")]
impl Program {
    pub(crate) fn new() -> Program {
        let mut program = Program {
            header: Header::default(),
            events: Vec::new(),
            clocks: Vec::new(),
            process: 0,
            call_ns: 1_000,
        };
        program.header.command = vec!["./program".to_owned()];
        program.start(-1);
        program
    }

    pub(crate) fn ranks(count: i32) -> Program {
        let mut program = Program::new();
        program.header.processes.clear();
        program.clocks.clear();
        (0..count).for_each(|rank| program.start(rank));
        program
    }

    pub(crate) fn processes(count: usize) -> Program {
        let mut program = Program::new();
        (1..count).for_each(|_| program.start(-1));
        program
    }

    fn start(&mut self, rank: i32) {
        let name = if rank < 0 { "program".to_owned() } else { format!("rank {rank}") };
        self.header.processes.push(ProcessEntry { name, rank, ..Default::default() });
        self.clocks.push(0);
    }

    /// The calls from here on are of that rank.
    pub(crate) fn on(&mut self, rank: usize) -> &mut Program {
        self.process = rank;
        self
    }

    pub(crate) fn computes(&mut self, ns: u64) -> &mut Program {
        self.clocks[self.process] += ns;
        self
    }

    fn file(&mut self, path: &str) -> FileId {
        let known = self.header.files.iter().position(|entry| entry.path == path);
        let index = known.unwrap_or_else(|| {
            self.header.files.push(FileEntry { path: path.to_owned(), ..Default::default() });
            self.header.files.len() - 1
        });
        FileId(index as u32)
    }

    /// One call; hands back its row.
    pub(crate) fn call(&mut self, path: &str, event: Event) -> i64 {
        let file = self.file(path);
        let start = self.clocks[self.process];
        let end = start + self.call_ns;
        if event.parent < 0 {
            self.clocks[self.process] = end;
        }
        let rank = self.header.processes[self.process].rank;
        let fd = file.0 as i32 + 3;
        let (start, end) = (Nanos(start), Nanos(end));
        let process = self.process as u32;
        self.events.push(Event { rank, process, file, fd, start, end, ..event });
        self.events.len() as i64 - 1
    }

    pub(crate) fn opens(&mut self, path: &str, flags: i64) -> &mut Program {
        self.call(path, Event { argument: flags, result: 3, ..Event::of(Function::OPEN) });
        self
    }

    pub(crate) fn closes(&mut self, path: &str) -> &mut Program {
        self.call(path, Event::of(Function::CLOSE));
        self
    }

    fn transfers(&mut self, function: Function, path: &str, offset: u64, length: u64) {
        let (offset, length) = (offset as i64, length as i64);
        self.call(path, Event { offset, length, result: length, ..Event::of(function) });
    }

    pub(crate) fn writes(&mut self, path: &str, offset: u64, length: u64) -> &mut Program {
        self.transfers(Function::WRITE, path, offset, length);
        self
    }

    pub(crate) fn reads(&mut self, path: &str, offset: u64, length: u64) -> &mut Program {
        self.transfers(Function::READ, path, offset, length);
        self
    }

    pub(crate) fn device_writes(&mut self, path: &str, offset: u64, length: u64) -> &mut Program {
        self.transfers(Function::DEVICE_WRITE, path, offset, length);
        self
    }

    /// A call of HDF5 or NetCDF on a dataset or variable or on the file, and what it writes (positive) or reads
    /// (negative) below; each call below takes as long as the one above has to itself.
    pub(crate) fn calls_on_object(
        &mut self,
        function: Function,
        of: (&str, Option<&str>),
        asked: u64,
        below: &[i64],
    ) -> &mut Program {
        self.calls_through(&[(function, asked)], of, below)
    }

    /// The same, with a call in each of several layers, the highest first, each inside of the one before.
    pub(crate) fn calls_through(
        &mut self,
        functions: &[(Function, u64)],
        (path, object): (&str, Option<&str>),
        below: &[i64],
    ) -> &mut Program {
        let call_ns = self.call_ns;
        let mut parent = -1;
        for (above, &(function, asked)) in functions.iter().enumerate() {
            let argument = object.map_or(-1, |name| self.object(function, path, name));
            let length = asked as i64;
            self.call_ns = call_ns * (functions.len() - above + below.len()) as u64;
            let event = Event { parent, argument, length, result: length, ..Event::of(function) };
            parent = self.call(path, event);
        }
        self.call_ns = call_ns;
        for &bytes in below {
            let function = if bytes < 0 { Function::PREAD } else { Function::PWRITE };
            let (length, offset) = (bytes.abs(), 0);
            let event = Event { parent, offset, length, result: length, ..Event::of(function) };
            self.call(path, event);
        }
        self
    }

    /// NetCDF closes a file, and HDF5 in it a dataset, which writes.
    pub(crate) fn closes_dataset(
        &mut self,
        path: &str,
        dataset: &str,
        below: &[i64],
    ) -> &mut Program {
        let closes = [(Function::NC_CLOSE, 0)];
        self.calls_through(&closes, (path, None), &[]);
        let parent = self.events.len() as i64 - 1;
        let first = self.events.len();
        self.calls_through(&[(Function::H5D_CLOSE, 0)], (path, Some(dataset)), below);
        self.events[first].parent = parent;
        self
    }

    /// The place in the header of an object that such a function is called on.
    fn object(&mut self, function: Function, path: &str, name: &str) -> i64 {
        let kind = if function.layer() == Layer::Netcdf { "variable" } else { "dataset" };
        let entry = ObjectEntry {
            file: self.file(path).0,
            kind: kind.to_owned(),
            path: name.to_owned(),
            element_bytes: 8,
            chunk: vec![128, 64],
        };
        let objects = &mut self.header.objects;
        let known = objects.iter().position(|it| *it == entry);
        known.unwrap_or_else(|| {
            objects.push(entry);
            objects.len() - 1
        }) as i64
    }

    pub(crate) fn seeks(&mut self, path: &str, offset: u64) -> &mut Program {
        let offset = offset as i64;
        self.call(
            path,
            Event { offset, argument: 0, result: offset, ..Event::of(Function::LSEEK) },
        );
        self
    }

    pub(crate) fn calls(&mut self, function: Function, path: &str) -> &mut Program {
        self.call(path, Event::of(function));
        self
    }

    pub(crate) fn fails(&mut self, function: Function, path: &str, errno: i64) -> &mut Program {
        self.call(path, Event { result: -errno, ..Event::of(function) });
        self
    }

    pub(crate) fn header(&mut self) -> &mut Header {
        &mut self.header
    }

    pub(crate) fn trace(&self) -> Trace {
        Trace { header: self.header.clone(), events: self.events.clone(), ..Trace::default() }
    }

    pub(crate) fn report(&self) -> Report {
        let mut analysis = Analysis::new(self.header.clone());
        self.events.iter().for_each(|event| analysis.observe(event));
        analysis.finish()
    }

    /// Names of the rules that found something, sorted.
    pub(crate) fn findings(&self) -> Vec<&'static str> {
        let mut rules: Vec<_> = self.report().findings.iter().map(|f| f.rule).collect();
        rules.sort_unstable();
        rules
    }

    pub(crate) fn finding(&self, rule: &str) -> Finding {
        let findings = self.report().findings;
        let found = findings.iter().find(|finding| finding.rule == rule).cloned();
        found.unwrap_or_else(|| panic!("no {rule} among {findings:#?}"))
    }
}
