//! Events of I/O: what is opened, closed, moved and changed.

use super::calls::{Calls, descriptor};
use super::definitions::Definitions;
use super::region;
use super::text::{self, Fields, has, leading_number, number, reference};
use crate::open_flags::{APPEND, TRUNCATE};
use crate::{CallView, Class, Event, Function, Layer};
use iolab_vocab::Nanos;

/// An access that has begun.
pub(super) struct Operation {
    pub row: usize,
    lane: usize,
    description: usize,
    /// Its row is its own, and ends with it.
    is_own: bool,
    /// It goes on where the last access ended.
    is_following: bool,
}

/// That an operation was called off.
const ECANCELED: i64 = 125;

/// Numbers of `open`'s flags as traces have them (those of x86-64).
const ACCESS: [(&str, i64, i64); 4] =
    [("READ_ONLY", 0, 2), ("WRITE_ONLY", 0o1, 4), ("READ_WRITE", 0o2, 8), ("EXECUTE_ONLY", 0, 2)];

/// Flags of creation and of status, for POSIX and for MPI-IO.
const FLAGS: [(&str, i64, i64); 11] = [
    ("CREATE", 0o100, 1),
    ("TRUNCATE", 0o1000, 0),
    ("DIRECTORY", 0o200000, 0),
    ("EXCLUSIVE", 0o200, 64),
    ("CLOSE_ON_EXEC", 0o2000000, 0),
    ("APPEND", 0o2000, 128),
    ("NON_BLOCKING", 0o4000, 0),
    ("SYNC", 0o4010000, 0),
    ("DATA_SYNC", 0o10000, 0),
    ("AVOID_CACHING", 0o40000, 0),
    ("DELETE_ON_CLOSE", 0, 16),
];

fn flags(access: &str, sets: [&str; 2]) -> (i64, i64) {
    let access = ACCESS.iter().find(|row| row.0 == access).map_or((0, 0), |row| (row.1, row.2));
    let set = FLAGS.iter().filter(|row| sets.iter().any(|flags| has(flags, row.0)));
    set.fold(access, |(posix, mpi), row| (posix | row.1, mpi | row.2))
}

/// As a field of a row.
fn amount(value: Option<u64>) -> i64 {
    value.map_or(-1, |value| i64::try_from(value).unwrap_or(i64::MAX))
}

/// The offset that the attributes of an operation tell.
fn offset(definitions: &Definitions, added: &str) -> Option<i64> {
    added.split("), (").find_map(|attribute| {
        let mut parts = attribute.rsplitn(3, "; ");
        let value = parts.next()?;
        let name = parts.nth(1)?;
        let is_offset = definitions.offset_attributes.contains(&reference(name)?);
        let (value, _) = leading_number(value)?;
        i64::try_from(value).ok().filter(|_| is_offset)
    })
}

impl Calls {
    pub(super) fn operate(
        &mut self,
        definitions: &Definitions,
        lane: usize,
        now: Nanos,
        event: &text::Event,
    ) {
        let said = event.said;
        if event.kind == "IO_DELETE_FILE" {
            return self.delete(definitions, lane, now, said);
        }
        let [first] =
            said.split([if event.kind == "IO_DUPLICATE_HANDLE" { "Old Handle" } else { "Handle" }]);
        // What follows the name is numbers and words: the name's own reference is the last one before them.
        let before = match event.kind {
            "IO_DUPLICATE_HANDLE" => first.rsplit_once(", New Handle: ").map_or(first, |it| it.0),
            _ => first,
        };
        let Some(handle) = reference(before) else {
            return self.leave_out("operations on nothing");
        };
        let Some(layer) = definitions.layer_of_handle(handle) else {
            return self.leave_out_of(definitions, handle);
        };
        let at = At { lane, now, handle, layer };
        match event.kind {
            "IO_CREATE_HANDLE" => self.create(definitions, at, said),
            "IO_DESTROY_HANDLE" => self.destroy(definitions, at),
            "IO_DUPLICATE_HANDLE" => self.duplicate(definitions, at, said),
            "IO_SEEK" => self.seek(definitions, at, said),
            "IO_CHANGE_FLAGS" => {
                self.change(definitions, at, |class| matches!(class, Class::Control));
            }
            "IO_ACQUIRE_LOCK" | "IO_RELEASE_LOCK" | "IO_TRY_LOCK" => {
                self.change(definitions, at, |class| class == Class::Lock);
            }
            "IO_OPERATION_BEGIN" => self.begin_operation(definitions, at, said, event.added),
            "IO_OPERATION_COMPLETE" => {
                let [_, bytes, matching] = said.split(["Handle", "Bytes Result", "Matching Id"]);
                self.end_operation(at, matching, amount(number(bytes)).max(0));
            }
            "IO_OPERATION_CANCELLED" => {
                self.end_operation(at, said.value("Matching Id"), -ECANCELED);
            }
            // That it was issued or asked after changes no row.
            _ => {}
        }
    }

    /// Says of what kind operations were that no row is kept of.
    fn leave_out_of(&mut self, definitions: &Definitions, handle: u64) {
        let rule = format!("operations of {}", definitions.paradigm_name(handle));
        self.leave_out(&rule);
    }

    /// The row of the call around, or one of its own.
    fn row(&mut self, at: At, fits: impl Fn(Class) -> bool, own: Function) -> (usize, bool) {
        if let Some(row) = self.fitting_on(at.lane, at.handle, at.layer, fits) {
            return (row, false);
        }
        self.noticed.outside = true;
        (self.push(at.lane, at.now, own), true)
    }

    fn create(&mut self, definitions: &Definitions, at: At, said: Fields) {
        let [_, access, creation, status] =
            said.split(["Handle", "Access Mode", "Creation Flags", "Status Flags"]);
        let (posix, mpi) = flags(access, [creation, status]);
        let own = match at.layer {
            Layer::Stdio => Function::FOPEN,
            Layer::Mpiio => Function::MPI_FILE_OPEN,
            _ => Function::OPEN,
        };
        let (row, _) = self.row(at, |class| class == Class::Open, own);
        let process = self.rows[row].process;
        let is_told = posix & (APPEND | TRUNCATE) != APPEND;
        let description = self.opened(definitions, process, at.handle, is_told.then_some(0));
        self.touch(row, at.handle, description);
        let event = self.rows[row];
        let mut event = Event { argument: posix, result: event.fd.into(), ..event };
        if at.layer == Layer::Mpiio {
            let id = definitions.handles.get(&at.handle).and_then(|handle| handle.communicator);
            let communicator = self.communicator(definitions, id);
            let view = CallView::Open { communicator, size_bytes: -1, mode: mpi };
            event = view.on(event.function, event);
        }
        self.rows[row] = event;
    }

    fn destroy(&mut self, definitions: &Definitions, at: At) {
        let own = match at.layer {
            Layer::Stdio => Function::FCLOSE,
            Layer::Mpiio => Function::MPI_FILE_CLOSE,
            _ => Function::CLOSE,
        };
        let (row, _) = self.row(at, |class| class == Class::Close, own);
        let process = self.rows[row].process;
        let description = self.description(definitions, process, at.handle);
        self.touch(row, at.handle, description);
        self.open.remove(&(process, at.handle));
    }

    fn duplicate(&mut self, definitions: &Definitions, at: At, said: Fields) {
        let [old, _] = said.split(["New Handle", "Status Flags"]);
        let Some(new) = reference(old) else { return self.leave_out("operations on nothing") };
        // `fdopen` opens a stream on a descriptor, `fcntl` gives another one.
        let fits = |class| matches!(class, Class::Dup | Class::Open | Class::Control);
        let (row, _) = self.row(at, fits, Function::DUP);
        if self.rows[row].function == Function::FCNTL_SETFL {
            self.rows[row].function = Function::FCNTL_DUPFD;
        }
        let process = self.rows[row].process;
        let description = self.description(definitions, process, at.handle);
        self.touch(row, at.handle, description);
        // Both have one position; each has a descriptor.
        self.open.insert((process, new), description);
        self.rows[row].result = descriptor(new).into();
    }

    fn seek(&mut self, definitions: &Definitions, at: At, said: Fields) {
        let [_, asked, whence, reached] =
            said.split(["Handle", "Offset Request", "Whence", "Offset Result"]);
        let own = match at.layer {
            Layer::Stdio => Function::FSEEK,
            Layer::Mpiio => Function::MPI_FILE_SEEK,
            _ => Function::LSEEK,
        };
        let (row, _) = self.row(at, |class| class == Class::Seek, own);
        let description = self.description(definitions, self.rows[row].process, at.handle);
        self.touch(row, at.handle, description);
        let whences = ["FROM_START", "FROM_CURRENT", "FROM_END", "DATA", "HOLE"];
        let whence = whences.iter().position(|name| *name == whence);
        let reached = number(reached).and_then(|reached| i64::try_from(reached).ok());
        let event = &mut self.rows[row];
        event.offset = asked.trim().parse().unwrap_or(-1);
        event.argument = whence.map_or(-1, |whence| whence as i64);
        event.result = reached.unwrap_or(0);
        self.descriptions[description].position = reached;
    }

    fn change(&mut self, definitions: &Definitions, at: At, fits: impl Fn(Class) -> bool) {
        match self.fitting_on(at.lane, at.handle, at.layer, fits) {
            Some(row) => {
                let description = self.description(definitions, self.rows[row].process, at.handle);
                self.touch(row, at.handle, description);
            }
            None => self.leave_out("changes of open files"),
        }
    }

    fn delete(&mut self, definitions: &Definitions, lane: usize, now: Nanos, said: Fields) {
        let [paradigm, file] = said.split(["I/O Paradigm", "File"]);
        let Some(file) = reference(file) else {
            return self.leave_out("operations on nothing");
        };
        let layer = reference(paradigm).and_then(|paradigm| definitions.layer(paradigm));
        let own = match layer {
            Some(Layer::Posix) => Function::UNLINK,
            Some(Layer::Stdio) => Function::REMOVE,
            _ => return self.leave_out("deletions of MPI-IO and others"),
        };
        let found = self.fitting(lane, |function| function.class() == Class::Unlink);
        let row = found.unwrap_or_else(|| {
            self.noticed.outside = true;
            self.push(lane, now, own)
        });
        self.rows[row].file = self.file(definitions.file_path(file));
    }

    fn begin_operation(&mut self, definitions: &Definitions, at: At, said: Fields, added: &str) {
        let [_, mode, semantics, asked, matching] =
            said.split(["Handle", "Mode", "Operation Flags", "Bytes Request", "Matching Id"]);
        let told = offset(definitions, added);
        let own = own_function(at.layer, mode, semantics, told.is_some());
        let fits = |class| match mode {
            "READ" => class == Class::Read,
            "WRITE" => class == Class::Write,
            _ => matches!(class, Class::Sync | Class::Flush),
        };
        let (row, is_own) = self.row(at, fits, own);
        let process = self.rows[row].process;
        let description = self.description(definitions, process, at.handle);
        self.touch(row, at.handle, description);
        let function = self.rows[row].function;
        let moves = function.class().moves_data();
        // The pointer of MPI-IO counts in views that are not told.
        let is_following = moves && !function.is_positioned() && at.layer != Layer::Mpiio;
        let event = &mut self.rows[row];
        if moves {
            let asked = amount(number(asked));
            // Each part of a vector has events of its own.
            let is_first = event.length < 0;
            event.length = if is_first { asked } else { event.length.saturating_add(asked.max(0)) };
            if is_first {
                let position = self.descriptions[description].position.filter(|_| is_following);
                event.offset = told.or(position).unwrap_or(-1);
            }
        }
        if is_begun(function) && self.rows[row].argument < 0 {
            self.rows[row].argument = self.new_request(process);
        }
        let operation = Operation { row, lane: at.lane, description, is_own, is_following };
        let key = (process, at.handle, number(matching).unwrap_or(0));
        self.pending.entry(key).or_default().push(operation);
    }

    fn end_operation(&mut self, at: At, matching: &str, result: i64) {
        let process = self.lanes[at.lane].process;
        let key = (process, at.handle, number(matching).unwrap_or(0));
        let Some(begun) = self.pending.get_mut(&key) else {
            return self.leave_out("ends of operations that did not begin");
        };
        // Blocking operations of all threads may have the same number.
        let own = begun.iter().rposition(|operation| operation.lane == at.lane);
        let operation = begun.remove(own.unwrap_or(0));
        if begun.is_empty() {
            self.pending.remove(&key);
        }
        let event = &mut self.rows[operation.row];
        let moves = event.function.class().moves_data();
        match result {
            0.. if moves => event.result = event.result.saturating_add(result),
            0.. => {}
            _ => event.result = result,
        }
        if operation.is_own {
            event.end = at.now.max(event.start);
        }
        let (function, request) = (event.function, event.argument);
        if operation.is_following {
            let position = &mut self.descriptions[operation.description].position;
            *position = position.map(|position| position.saturating_add(result.max(0)));
        }
        if is_begun(function) && !self.is_in(at.lane, operation.row) {
            self.completed(at.lane, at.now, request);
        }
    }

    /// Whether a row is of the innermost call of a lane.
    fn is_in(&self, lane: usize, row: usize) -> bool {
        self.fitting(lane, |_| true) == Some(row)
    }
}

/// Where an operation happens.
#[derive(Clone, Copy)]
struct At {
    lane: usize,
    now: Nanos,
    handle: u64,
    layer: Layer,
}

/// Whether a call only begins, to be waited for by a request of MPI.
fn is_begun(function: Function) -> bool {
    matches!(
        function,
        Function::MPI_FILE_IREAD
            | Function::MPI_FILE_IREAD_ALL
            | Function::MPI_FILE_IWRITE
            | Function::MPI_FILE_IWRITE_ALL
    )
}

/// The function of an operation that no call is around.
fn own_function(layer: Layer, mode: &str, semantics: &str, is_positioned: bool) -> Function {
    match (layer, mode) {
        (Layer::Mpiio, "READ" | "WRITE") => {
            let (is_collective, is_begun) =
                (has(semantics, "COLLECTIVE"), has(semantics, "NON_BLOCKING"));
            region::of_mpiio(mode == "READ", is_collective, is_begun)
        }
        (Layer::Mpiio, _) => Function::MPI_FILE_SYNC,
        (Layer::Stdio, "READ") => Function::FREAD,
        (Layer::Stdio, "WRITE") => Function::FWRITE,
        (Layer::Stdio, _) => Function::FFLUSH,
        (_, "READ") if is_positioned => Function::PREAD,
        (_, "READ") => Function::READ,
        (_, "WRITE") if is_positioned => Function::PWRITE,
        (_, "WRITE") => Function::WRITE,
        _ => Function::FSYNC,
    }
}
