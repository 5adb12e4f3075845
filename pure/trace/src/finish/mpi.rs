//! Calls of MPI: numbers become communicators, and units of views become places in files.
//!
//! The recorder writes down what the program said. Here the pointers of files are followed and each
//! access is laid over its view: what is in one piece becomes its offset, what is in several gets a
//! row for each.

use super::gather::Gathered;
use crate::datatype::{Flat, View};
use crate::spool::SHARED_POINTER;
use crate::{Event, Function, Header, Layer};
use iolab_vocab::{Extent, FileId};
use std::collections::BTreeMap;

/// Rows for the pieces of accesses, all together; accesses beyond keep their first offset only.
const PIECES_MAX: usize = 8 << 20;

/// `MPI_MODE_APPEND`: pointers begin at the end of the file.
const APPEND: i64 = 128;

/// Puts communicators into the header and into the rows.
pub(super) fn resolve(gathered: &mut Gathered, header: &mut Header) {
    let mut by_members: BTreeMap<Vec<u32>, i64> = BTreeMap::new();
    let mut by_number: BTreeMap<i64, i64> = BTreeMap::new();
    for (&number, text) in &gathered.texts {
        let Some(members) = text.strip_prefix("communicator") else { continue };
        let members: Option<Vec<u32>> =
            members.split_whitespace().map(|rank| rank.parse().ok()).collect();
        let Some(members) = members.filter(|members| !members.is_empty()) else { continue };
        let next = by_members.len() as i64;
        let index = *by_members.entry(members).or_insert(next);
        by_number.insert(i64::from(number), index);
    }
    let mut listed: Vec<_> = by_members.into_iter().collect();
    listed.sort_by_key(|(_, index)| *index);
    header.communicators = listed.into_iter().map(|(members, _)| members).collect();
    let index = |number: i64| by_number.get(&number).copied().unwrap_or(-1);
    for event in &mut gathered.events {
        match event.function.layer() {
            Layer::Mpi => event.fd = index(i64::from(event.fd)) as i32,
            Layer::Mpiio if event.function == Function::MPI_FILE_OPEN => {
                event.offset = index(event.offset);
            }
            _ => {}
        }
    }
}

/// A file as processes opened it together: its file, their communicator, for the how many-th time.
type Opening = (FileId, i64, u32);

/// Counts how often each process has opened a file with a communicator.
#[derive(Clone, Debug, Default)]
struct Openings(BTreeMap<(u32, FileId, i64), u32>);

impl Openings {
    fn next(&mut self, event: &Event, file: FileId) -> Opening {
        let count = self.0.entry((event.process, file, event.offset)).or_insert(0);
        *count += 1;
        (file, event.offset, *count)
    }
}

/// The pointer that all who opened a file together share.
#[derive(Clone, Debug, Default)]
struct Shared {
    /// In units.
    position: u64,
    /// By ordered call (`MPI_File_write_ordered`): what each rank moves in it, in bytes.
    ordered: Vec<BTreeMap<i32, u64>>,
    /// By ordered call: where it begins, once its first rank has come.
    starts: Vec<u64>,
}

impl Shared {
    /// Where a rank's part of an ordered call begins: behind those of the ranks before it, whoever came
    /// first.
    fn ordered_position(&mut self, call: usize, rank: i32, unit: u64) -> u64 {
        let Some(parts) = self.ordered.get(call) else { return self.position };
        if self.starts.len() <= call {
            let all = parts.values().sum::<u64>() / unit;
            self.starts.resize(call + 1, self.position);
            self.position = self.position.saturating_add(all);
        }
        let before: u64 = parts.range(..rank).map(|(_, bytes)| bytes).sum();
        self.starts[call].saturating_add(before / unit)
    }
}

fn is_ordered(event: &Event) -> bool {
    use Function as F;
    let all = [
        F::MPI_FILE_READ_ALL,
        F::MPI_FILE_WRITE_ALL,
        F::MPI_FILE_IREAD_ALL,
        F::MPI_FILE_IWRITE_ALL,
    ];
    event.offset == SHARED_POINTER && all.contains(&event.function)
}

/// What a process sees of a file it has open.
#[derive(Clone, Debug)]
struct Seen {
    opening: Opening,
    /// Ordered calls so far.
    ordered: usize,
    view: Result<View, String>,
    /// Bytes of the unit of the view.
    unit: u64,
    /// Where the process's own pointer is, in units.
    position: u64,
}

/// Follows the pointers of all open files. Takes rows in the order of time.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    open: BTreeMap<usize, Seen>,
    shared: BTreeMap<Opening, Shared>,
    openings: Openings,
    texts: BTreeMap<u32, String>,
    /// Rows of pieces, to be sorted in.
    pieces: Vec<Event>,
    unknown: BTreeMap<String, u64>,
    cut: u64,
    by_shared: u64,
}

impl Accesses {
    pub(super) fn new(texts: BTreeMap<u32, String>) -> Accesses {
        Accesses { texts, ..Accesses::default() }
    }

    /// Sees what each rank moves in ordered calls, before they are followed; `file_of` has the file of
    /// a row's number.
    pub(super) fn look_ahead(&mut self, events: &[Event], file_of: impl Fn(&Event) -> FileId) {
        let mut openings = Openings::default();
        let mut open: BTreeMap<FileId, (Opening, usize)> = BTreeMap::new();
        for event in events.iter().filter(|event| event.function.layer() == Layer::Mpiio) {
            if event.function == Function::MPI_FILE_OPEN {
                open.insert(event.file, (openings.next(event, file_of(event)), 0));
            }
            let Some((opening, calls)) = open.get_mut(&event.file) else { continue };
            if is_ordered(event) {
                let ordered = &mut self.shared.entry(*opening).or_default().ordered;
                ordered.resize_with(ordered.len().max(*calls + 1), BTreeMap::new);
                ordered[*calls].insert(event.rank, u64::try_from(event.result).unwrap_or(0));
                *calls += 1;
            }
        }
    }

    /// Follows a row of MPI-IO on the open file of that number.
    pub(super) fn follow(&mut self, event: &mut Event, number: usize) {
        match event.function {
            Function::MPI_FILE_OPEN => {
                let at_end = event.argument & APPEND != 0;
                let position = if at_end { event.length.max(0) as u64 } else { 0 };
                let opening = self.openings.next(event, event.file);
                let view = bytes(0);
                self.open.insert(number, Seen { opening, ordered: 0, view, unit: 1, position });
                let shared = self.shared.entry(opening).or_default();
                shared.position = shared.position.max(position);
            }
            Function::MPI_FILE_CLOSE => drop(self.open.remove(&number)),
            Function::MPI_FILE_SET_VIEW => self.set_view(event, number),
            Function::MPI_FILE_SEEK => self.seek(event, number),
            function if function.class().moves_data() => self.transfer(event, number),
            _ => {}
        }
    }

    fn set_view(&mut self, event: &mut Event, number: usize) {
        let text = u32::try_from(event.argument).ok().and_then(|at| self.texts.get(&at));
        event.argument = -1;
        let Some(seen) = self.open.get_mut(&number) else { return };
        let shared = self.shared.entry(seen.opening).or_default();
        let displacement = match event.offset {
            SHARED_POINTER => Some(shared.position.saturating_mul(seen.unit)),
            other => u64::try_from(other).ok(),
        };
        (seen.unit, seen.view) = match (text, displacement) {
            (Some(text), Some(displacement)) => view_of(text, displacement),
            _ => (1, Err("a view whose datatypes are lost".to_owned())),
        };
        (seen.position, shared.position) = (0, 0);
    }

    fn seek(&mut self, event: &mut Event, number: usize) {
        let position = u64::try_from(event.result).unwrap_or(0);
        let said = std::mem::replace(&mut event.length, -1);
        let Some(seen) = self.open.get_mut(&number) else { return };
        match said {
            SHARED_POINTER => self.shared.entry(seen.opening).or_default().position = position,
            _ => seen.position = position,
        }
    }

    fn transfer(&mut self, event: &mut Event, number: usize) {
        let bytes = u64::try_from(event.length).unwrap_or(0);
        let moved = u64::try_from(event.result).unwrap_or(0);
        let ordered = is_ordered(event);
        let said = std::mem::replace(&mut event.offset, -1);
        let Some(seen) = self.open.get_mut(&number) else {
            *self.unknown.entry("a file whose opening is lost".to_owned()).or_default() += 1;
            return;
        };
        let units = moved / seen.unit;
        let position = match said {
            SHARED_POINTER if ordered => {
                let shared = self.shared.entry(seen.opening).or_default();
                seen.ordered += 1;
                shared.ordered_position(seen.ordered - 1, event.rank, seen.unit)
            }
            SHARED_POINTER => {
                self.by_shared += 1;
                let shared = self.shared.entry(seen.opening).or_default();
                let position = shared.position;
                shared.position = position.saturating_add(units);
                position
            }
            0.. => said as u64,
            _ => {
                let position = seen.position;
                seen.position = position.saturating_add(units);
                position
            }
        };
        let extents = match &seen.view {
            Ok(view) => view.at_position(position, bytes),
            Err(why) => Err(why.clone()),
        };
        match extents {
            Ok(extents) => self.place(event, &extents),
            Err(why) => *self.unknown.entry(why).or_default() += 1,
        }
    }

    fn place(&mut self, event: &mut Event, extents: &[Extent]) {
        event.offset = extents.first().map_or(-1, |extent| extent.offset as i64);
        if extents.len() < 2 {
            return;
        }
        if self.pieces.len() + extents.len() > PIECES_MAX {
            self.cut += 1;
            return;
        }
        self.pieces.extend(extents.iter().map(|extent| Event {
            function: Function::VIEW_PIECE,
            offset: extent.offset as i64,
            length: extent.length as i64,
            argument: -1,
            result: 0,
            ..*event
        }));
    }

    /// The rows of pieces; what could not be followed goes into the header.
    pub(super) fn end(self, header: &mut Header) -> Vec<Event> {
        for (why, count) in self.unknown {
            header.inferred.push(format!("{count} accesses of MPI-IO have no offset: {why}"));
        }
        if self.cut > 0 {
            let text = "accesses of MPI-IO have the offset of their first piece only";
            header.inferred.push(format!("{} {text}", self.cut));
        }
        if self.by_shared > 0 {
            let text =
                "offsets of MPI-IO at shared pointers, taken in the order in which calls began";
            header.inferred.push(format!("{text} ({})", self.by_shared));
        }
        self.pieces
    }
}

/// The view of a file as bytes, from `displacement` on.
fn bytes(displacement: u64) -> Result<View, String> {
    let byte = Flat::parse("1")?;
    View::new(displacement, &byte, byte.clone())
}

/// Unit and view of a text `view ETYPE FILETYPE`.
fn view_of(text: &str, displacement: u64) -> (u64, Result<View, String>) {
    let mut words = text.split(' ').skip(1);
    let (Some(etype), Some(tile)) = (words.next(), words.next()) else {
        return (1, Err("a view without datatypes".to_owned()));
    };
    let etype = match Flat::parse(etype) {
        Ok(etype) => etype,
        Err(why) => return (1, Err(why)),
    };
    let view = Flat::parse(tile).and_then(|tile| View::new(displacement, &etype, tile));
    (etype.size().max(1), view)
}
