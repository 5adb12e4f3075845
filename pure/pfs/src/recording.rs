//! What a machine was told and what it wanted, row by row: the recording of one life of a party, byte exact
//! in `docs/format/pfs-events.md`. Fed to a fresh machine, the events must give the same actions, whoever
//! drove the machine that was recorded.
//!
//! Promises: what was recorded is read as it was; of bytes that end within a row all rows before it are
//! read; whatever the bytes are, there are rows or a refusal. Payload is in none of them, as machines have
//! none. Costs: a branch for each step where nobody records; else an encoding of event and actions.

mod coded;

use crate::cache_manager::{self, CacheManager};
use crate::client::{self, Client};
use crate::codec::{Reader, Sink, Wrong};
use crate::io_server::{self, IoServer};
use crate::metadata::{self, Metadata};
use coded::{Coded, Source, Views, Writer};
use iolab_policy::Machine;
use iolab_vocab::{Nanos, Refusal};
use std::fmt::Debug;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The first bytes of a recording.
const MAGIC: &[u8; 8] = b"iolabev\n";
/// The version of the format that is written and read here.
const VERSION: u16 = 7;
/// Magic number, version, and which machine it is.
const HEADER_BYTES: usize = 8 + 2 + 2;
/// In front of each row: its bytes and their sum.
const FRAME_BYTES: usize = 4 + 4;

/// A machine that can be recorded, and made again from what it was made from.
pub trait Recordable:
    Machine<Event: Coded + Clone + Debug, Action: Coded + PartialEq + Debug>
{
    /// Which machine it is, in a recording.
    const NUMBER: u16;
    /// What one is made from.
    type Origin: Coded;

    /// A machine in a new life.
    fn made(origin: Self::Origin) -> Result<Self, Refusal>
    where
        Self: Sized;
}

impl Recordable for Client {
    const NUMBER: u16 = 1;
    type Origin = client::Settings;

    fn made(settings: client::Settings) -> Result<Client, Refusal> {
        Ok(Client::new(settings))
    }
}

impl Recordable for IoServer {
    const NUMBER: u16 = 2;
    type Origin = io_server::Settings;

    fn made(settings: io_server::Settings) -> Result<IoServer, Refusal> {
        Ok(IoServer::new(settings))
    }
}

impl Recordable for CacheManager {
    const NUMBER: u16 = 3;
    type Origin = cache_manager::Settings;

    fn made(settings: cache_manager::Settings) -> Result<CacheManager, Refusal> {
        Ok(CacheManager::new(settings))
    }
}

impl Recordable for Metadata {
    const NUMBER: u16 = 4;
    /// With the records of its journal.
    type Origin = (metadata::Settings, Vec<Vec<u8>>);

    fn made((settings, records): Self::Origin) -> Result<Metadata, Refusal> {
        Metadata::recover(settings, records.iter().map(Vec::as_slice))
    }
}

/// A machine whose steps are recorded, if anybody wants that.
#[derive(Debug)]
pub struct Recorded<M> {
    machine: M,
    rows: Option<Writer>,
}

impl<M: Recordable> Recorded<M> {
    /// A machine in a new life; what it was made from, if it is to be recorded.
    pub fn of(machine: M, origin: Option<&M::Origin>) -> Recorded<M> {
        let rows = origin.map(|origin| {
            let mut rows = Writer::default();
            rows.out.extend(MAGIC);
            rows.out.u16(VERSION);
            rows.out.u16(M::NUMBER);
            rows.row(|rows| origin.put(rows));
            rows
        });
        Recorded { machine, rows }
    }

    /// It is recorded no longer.
    pub fn silence(&mut self) {
        self.rows = None;
    }

    /// The bytes of the recording since they were taken last.
    pub fn take(&mut self) -> Vec<u8> {
        self.rows.as_mut().map(|rows| std::mem::take(&mut rows.out)).unwrap_or_default()
    }
}

impl<M> Deref for Recorded<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}

impl<M: Recordable> Machine for Recorded<M> {
    type Event = M::Event;
    type Action = M::Action;

    fn step(&mut self, now: Nanos, event: M::Event, out: &mut Vec<M::Action>) {
        let Some(rows) = &mut self.rows else { return self.machine.step(now, event, out) };
        let (machine, from) = (&mut self.machine, out.len());
        rows.row(|rows| {
            now.put(rows);
            event.put(rows);
            machine.step(now, event, out);
            let actions = &out[from..];
            rows.out.count(actions.len());
            actions.iter().for_each(|action| action.put(rows));
        });
    }
}

impl Writer {
    /// Puts a frame around what is written.
    fn row(&mut self, fields: impl FnOnce(&mut Writer)) {
        let start = self.out.len();
        self.out.extend([0; FRAME_BYTES]);
        fields(self);
        let (frame, row) = self.out[start..].split_at_mut(FRAME_BYTES);
        let bytes = u32::try_from(row.len()).expect("a row is a few messages");
        frame[..4].copy_from_slice(&bytes.to_le_bytes());
        frame[4..].copy_from_slice(&crc32c::crc32c(row).to_le_bytes());
    }
}

/// What came of feeding recorded events to a fresh machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Rows that were replayed; all that there are, if nothing differs.
    pub rows: u64,
    /// Actions in them.
    pub actions: u64,
    /// Bytes of a row that was not finished, as its party or its device ended.
    pub torn_bytes: u64,
    /// What the machine has done otherwise.
    pub difference: Option<Difference>,
}

/// The first row in which a machine does not do what was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The row, from 0 on.
    pub row: u64,
    /// When it was.
    pub now: Nanos,
    /// What the machine was told.
    pub event: String,
    /// The place of the first action that differs.
    pub action: usize,
    /// What was recorded there, if anything.
    pub expected: Option<String>,
    /// What the machine wanted instead, if anything.
    pub got: Option<String>,
}

/// Feeds the events of a recording to a fresh machine, up to the first row in which it acts otherwise.
pub fn replay(recording: &[u8]) -> Result<Replayed, Refusal> {
    if !recording.starts_with(MAGIC) && !MAGIC.starts_with(recording) {
        return Refusal::refuse("it is no recording of events", RECORD_AGAIN);
    }
    let Some((header, rows)) = recording.split_at_checked(HEADER_BYTES) else {
        return Ok(Replayed { torn_bytes: recording.len() as u64, ..Replayed::default() });
    };
    let mut read = Reader::new(&header[MAGIC.len()..]);
    let (version, number) =
        read.u16().and_then(|version| Ok((version, read.u16()?))).map_err(wrong)?;
    if version != VERSION {
        return Refusal::refuse(
            format!("it has version {version}, and this iolab knows version {VERSION}"),
            "replay it with the iolab that recorded it",
        );
    }
    match number {
        Client::NUMBER => replay_of::<Client>(rows),
        IoServer::NUMBER => replay_of::<IoServer>(rows),
        CacheManager::NUMBER => replay_of::<CacheManager>(rows),
        Metadata::NUMBER => replay_of::<Metadata>(rows),
        other => Refusal::refuse(format!("there is no machine {other}"), RECORD_AGAIN),
    }
}

const RECORD_AGAIN: &str = "take the files as `--events DIR` left them, or record again";

fn wrong(why: Wrong) -> Refusal {
    Refusal::new(format!("it is damaged: {why}"), RECORD_AGAIN)
}

fn replay_of<M: Recordable>(bytes: &[u8]) -> Result<Replayed, Refusal> {
    let mut frames = Frames { bytes, at: 0 };
    let mut views = Views::default();
    let mut replayed = Replayed::default();
    let Some(first) = frames.next() else {
        return Ok(Replayed { torn_bytes: bytes.len() as u64, ..replayed });
    };
    let mut source = Source::new(first.map_err(wrong)?, &mut views);
    let origin = M::Origin::take(&mut source).map_err(wrong)?;
    let mut machine = M::made(origin)?;
    for row in frames.by_ref() {
        let of_row = |why| {
            let Refusal { message, hint } = wrong(why);
            Refusal { message: format!("row {}: {message}", replayed.rows), hint }
        };
        let row = row.map_err(of_row)?;
        let (now, event, expected) = row_of::<M>(row, &mut views).map_err(of_row)?;
        if let Some(difference) = step(&mut machine, (now, event), &expected) {
            replayed.difference = Some(Difference { row: replayed.rows, ..difference });
            return Ok(replayed);
        }
        replayed.rows += 1;
        replayed.actions += expected.len() as u64;
    }
    replayed.torn_bytes = (bytes.len() - frames.at) as u64;
    Ok(replayed)
}

type Row<M> = (Nanos, <M as Machine>::Event, Vec<<M as Machine>::Action>);

fn row_of<M: Recordable>(row: &[u8], views: &mut Views) -> Result<Row<M>, Wrong> {
    let mut source = Source::new(row, views);
    let row = (Nanos::take(&mut source)?, Coded::take(&mut source)?, Coded::take(&mut source)?);
    source.read.end()?;
    Ok(row)
}

/// Holds one step against what was recorded of it.
fn step<M: Recordable>(
    machine: &mut M,
    (now, event): (Nanos, M::Event),
    expected: &[M::Action],
) -> Option<Difference> {
    let mut got = Vec::new();
    let told = event.clone();
    let stepped = catch_unwind(AssertUnwindSafe(|| machine.step(now, told, &mut got)));
    let panicked = stepped.err().map(|_| "a panic".to_owned());
    if panicked.is_none() && got == expected {
        return None;
    }
    let same = got.iter().zip(expected).take_while(|(got, expected)| got == expected).count();
    let shown = |actions: &[M::Action]| actions.get(same).map(|action| format!("{action:?}"));
    Some(Difference {
        row: 0,
        now,
        event: format!("{event:?}"),
        action: same,
        expected: shown(expected),
        got: panicked.or_else(|| shown(&got)),
    })
}

/// The rows of a recording, each as its bytes; ends before one that is not whole.
struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<&'a [u8], Wrong>;

    fn next(&mut self) -> Option<Self::Item> {
        let (frame, rest) = self.bytes[self.at..].split_at_checked(FRAME_BYTES)?;
        let number = |at: usize| frame[at..at + 4].try_into().map(u32::from_le_bytes);
        let (Ok(bytes), Ok(sum)) = (number(0), number(4)) else { return None };
        let row = rest.get(..bytes as usize)?;
        if crc32c::crc32c(row) != sum {
            return Some(Err("the sum of the row is another one"));
        }
        self.at += FRAME_BYTES + row.len();
        Some(Ok(row))
    }
}
