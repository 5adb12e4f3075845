//! Which call of MPI an element of a trace file is, and where its arguments stand in a row.

use super::xml::Element;
use super::{HdtraceError, Lane};
use crate::{CallView, Class, Event, Function, Partner};
use iolab_vocab::{Extent, FileId};

/// The names HDTrace uses, without `MPI_`. Blocking and non-blocking variants that differ in
/// nothing a trace could show are the same function here; so are the vector collectives.
const NAMES: &[(&str, Function)] = &[
    ("Init", Function::MPI_INIT),
    ("Init_thread", Function::MPI_INIT),
    ("Finalize", Function::MPI_FINALIZE),
    ("Send", Function::MPI_SEND),
    ("Bsend", Function::MPI_SEND),
    ("Ssend", Function::MPI_SEND),
    ("Rsend", Function::MPI_SEND),
    ("Isend", Function::MPI_ISEND),
    ("Ibsend", Function::MPI_ISEND),
    ("Issend", Function::MPI_ISEND),
    ("Irsend", Function::MPI_ISEND),
    ("Recv", Function::MPI_RECV),
    ("Irecv", Function::MPI_IRECV),
    ("Sendrecv", Function::MPI_SENDRECV),
    ("Sendrecv_replace", Function::MPI_SENDRECV),
    ("Wait", Function::MPI_WAIT),
    ("Waitall", Function::MPI_WAIT),
    ("Barrier", Function::MPI_BARRIER),
    ("Bcast", Function::MPI_BCAST),
    ("Reduce", Function::MPI_REDUCE),
    ("Allreduce", Function::MPI_ALLREDUCE),
    ("Gather", Function::MPI_GATHER),
    ("Gatherv", Function::MPI_GATHER),
    ("Scatter", Function::MPI_SCATTER),
    ("Scatterv", Function::MPI_SCATTER),
    ("Allgather", Function::MPI_ALLGATHER),
    ("Allgatherv", Function::MPI_ALLGATHER),
    ("Alltoall", Function::MPI_ALLTOALL),
    ("File_open", Function::MPI_FILE_OPEN),
    ("File_close", Function::MPI_FILE_CLOSE),
    ("File_read", Function::MPI_FILE_READ),
    ("File_read_at", Function::MPI_FILE_READ),
    ("File_read_all", Function::MPI_FILE_READ_ALL),
    ("File_read_at_all", Function::MPI_FILE_READ_ALL),
    ("File_iread", Function::MPI_FILE_IREAD),
    ("File_iread_at", Function::MPI_FILE_IREAD),
    ("File_write", Function::MPI_FILE_WRITE),
    ("File_write_at", Function::MPI_FILE_WRITE),
    ("File_write_all", Function::MPI_FILE_WRITE_ALL),
    ("File_write_at_all", Function::MPI_FILE_WRITE_ALL),
    ("File_iwrite", Function::MPI_FILE_IWRITE),
    ("File_iwrite_at", Function::MPI_FILE_IWRITE),
    ("File_set_view", Function::MPI_FILE_SET_VIEW),
    ("File_sync", Function::MPI_FILE_SYNC),
    ("File_set_size", Function::MPI_FILE_SET_SIZE),
    ("File_preallocate", Function::MPI_FILE_PREALLOCATE),
    ("File_seek", Function::MPI_FILE_SEEK),
];

/// The function of an element's name.
pub(in crate::import) fn function(name: &str) -> Option<Function> {
    NAMES.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// As a sending rank: anyone, in MPICH's numbers, which are those of HDTrace's time.
const ANY_SOURCE: i64 = -2;

/// The other side of a message; none for the null process.
fn partner(rank: i64, tag: i64) -> Option<Partner> {
    // Any tag is -1.
    let tag = u32::try_from(tag).ok();
    match rank {
        ANY_SOURCE => Some(Partner { rank: None, tag }),
        rank => u32::try_from(rank).ok().map(|rank| Partner { rank: Some(rank), tag }),
    }
}

impl Lane<'_> {
    /// Fills the arguments of a row from its element; the pieces of an access through a view, if
    /// there is more than one, go into `pieces`.
    pub(super) fn arguments(
        &mut self,
        event: Event,
        element: &Element,
        pieces: &mut Vec<Extent>,
    ) -> Result<Event, HdtraceError> {
        match event.function.class() {
            Class::Message if event.function == Function::MPI_WAIT => self.wait(event, element),
            Class::Message => self.message(event, element),
            Class::Collective => self.collective(event, element),
            Class::Open => self.open(event, element),
            Class::Read | Class::Write => self.transfer(event, element, pieces),
            Class::Process => Ok(event),
            _ => self.on_file(event, element),
        }
    }

    fn number(&self, element: &Element, name: &str) -> Result<i64, HdtraceError> {
        element.number(&self.file, name)
    }

    fn or(&self, element: &Element, name: &str, otherwise: i64) -> Result<i64, HdtraceError> {
        Ok(element.number_if(&self.file, name)?.unwrap_or(otherwise))
    }

    /// A size, place or count, which cannot be below zero.
    fn amount(&self, element: &Element, name: &str) -> Result<i64, HdtraceError> {
        match self.number(element, name)? {
            number if number < 0 => Err(element.wrong(&self.file, format!("{name} is negative"))),
            number => Ok(number),
        }
    }

    /// The first request stands in the row itself; for each further one comes a row that ends
    /// where the call does.
    fn wait(&mut self, event: Event, element: &Element) -> Result<Event, HdtraceError> {
        let mut requests = element.named("For").map(|request| self.number(request, "rid"));
        let first = requests.next().transpose()?.unwrap_or(-1);
        let others = requests.collect::<Result<Vec<_>, _>>()?;
        let another = |argument| Event { argument, start: event.end, ..event };
        self.waits.extend(others.into_iter().map(another));
        Ok(Event { argument: first, ..event })
    }

    fn message(&self, event: Event, element: &Element) -> Result<Event, HdtraceError> {
        let communicator = i64::from(self.communicator(element)?);
        let (mut to, mut from, mut bytes) = (None, None, 0);
        if element.attribute("toRank").is_some() {
            to = partner(self.number(element, "toRank")?, self.number(element, "toTag")?);
            let size = if element.attribute("size").is_some() { "size" } else { "sendSize" };
            bytes = self.amount(element, size)? as u64;
        }
        if element.attribute("fromRank").is_some() {
            from = partner(self.number(element, "fromRank")?, self.number(element, "fromTag")?);
        }
        let is_partnered = ["toRank", "fromRank"].map(|name| element.attribute(name).is_some());
        if is_partnered == [false; 2] {
            return Err(element.wrong(&self.file, "a message without a partner"));
        }
        let request = match event.function {
            Function::MPI_ISEND | Function::MPI_IRECV => element.number_if(&self.file, "rid")?,
            _ => None,
        };
        let view = CallView::Message { to, bytes, from, communicator, request };
        Ok(view.on(event.function, event))
    }

    fn collective(&self, event: Event, element: &Element) -> Result<Event, HdtraceError> {
        let size = if element.attribute("size").is_some() { "size" } else { "recvSize" };
        let has_size = element.attribute(size).is_some();
        let bytes = if has_size { Some(self.amount(element, size)? as u64) } else { None };
        let root = self.or(element, "rootRank", self.or(element, "root", -1)?)?;
        let root = u32::try_from(root).ok();
        let communicator = i64::from(self.communicator(element)?);
        Ok(CallView::Collective { root, bytes, communicator }.on(event.function, event))
    }

    fn open(&mut self, event: Event, element: &Element) -> Result<Event, HdtraceError> {
        let fid = self.number(element, "fid")?;
        let name = element.wanted(&self.file, "name")?;
        let (file, size) = self.names.find(name);
        self.opened.insert(fid, super::Opened { file, view: None });
        let offset = i64::from(self.communicator(element)?);
        let (fd, argument) = (fid as i32, self.or(element, "flags", -1)?);
        Ok(Event { file, fd, offset, length: size as i64, argument, result: fid, ..event })
    }

    /// Calls on an open file but for accesses.
    fn on_file(&mut self, event: Event, element: &Element) -> Result<Event, HdtraceError> {
        let fid = self.number(element, "fid")?;
        let event = Event { fd: fid as i32, file: self.opened_file(element, fid)?, ..event };
        Ok(match event.function {
            Function::MPI_FILE_SET_VIEW => self.set_view(event, element, fid)?,
            Function::MPI_FILE_SEEK => Event { offset: self.or(element, "offset", -1)?, ..event },
            Function::MPI_FILE_CLOSE => {
                self.opened.remove(&fid);
                event
            }
            _ => Event { length: self.or(element, "size", -1)?, ..event },
        })
    }

    fn opened_file(&self, element: &Element, fid: i64) -> Result<FileId, HdtraceError> {
        let opened = self.opened.get(&fid).map(|opened| opened.file);
        opened.ok_or_else(|| element.wrong(&self.file, format!("fid='{fid}' is not open here")))
    }

    fn set_view(
        &mut self,
        event: Event,
        element: &Element,
        fid: i64,
    ) -> Result<Event, HdtraceError> {
        let displacement = self.amount(element, "offset")?;
        let (etid, filetid) = (self.number(element, "etid")?, self.number(element, "filetid")?);
        let view = self
            .datatypes
            .flat(etid)
            .and_then(|etype| Ok((etype, self.datatypes.flat(filetid)?)))
            .and_then(|(etype, tile)| super::View::new(displacement as u64, &etype, tile))
            .map_err(|what| element.wrong(&self.file, what))?;
        if let Some(opened) = self.opened.get_mut(&fid) {
            opened.view = Some(view);
        }
        Ok(Event { offset: displacement, ..event })
    }

    fn transfer(
        &mut self,
        event: Event,
        element: &Element,
        pieces: &mut Vec<Extent>,
    ) -> Result<Event, HdtraceError> {
        let fid = self.number(element, "fid")?;
        let file = self.opened_file(element, fid)?;
        let (offset, size) = (self.amount(element, "offset")?, self.amount(element, "size")?);
        let argument = self.or(element, "rid", -1)?;
        let mut event = Event { file, fd: fid as i32, length: size, argument, ..event };
        (event.offset, event.result) = (offset, size);
        // Positions of the `at` calls count the view's units; others were recorded as the byte
        // offset in the file that the position came to.
        let is_position = element.name.contains("_at");
        if let Some(view) = self.opened.get(&fid).and_then(|opened| opened.view.as_ref()) {
            let (offset, size) = (offset as u64, size as u64);
            let extents = match is_position {
                true => view.at_position(offset, size),
                false => view.at_offset(offset, size),
            };
            let extents = extents.map_err(|what| element.wrong(&self.file, what))?;
            event.offset = extents.first().map_or(event.offset, |first| first.offset as i64);
            if extents.len() > 1 {
                *pieces = extents;
            }
        }
        Ok(event)
    }
}
