//! What a running program leaves behind: 64-byte records in chunks in spool files, readable up to
//! the last completed call whatever happens to the program.
//!
//! This module is the byte-exact truth about the layout (`docs/format/spool.md` is its text). The
//! preloaded library writes it through shared mappings, the launcher drains it while the program
//! runs, `finish` turns it into a trace. A spool directory holds
//!
//! * `control`: one page shared by every process of the run,
//! * `process-PID-N`: one file per process image: a header of one chunk, then chunks of records,
//! * `drained`: chunks that the launcher has taken out to be used again,
//! * `launch.json`: what the launcher knew (command, directory, environment, mounts).
//!
//! Little-endian throughout.

mod compact;
mod image;

pub use compact::{
    Drained, DrainedChunk, encode_drained, encode_head, encode_records, take_drained,
};
pub use image::Image;

use crate::Function;
use std::ffi::CStr;

/// Version of this layout; a reader refuses any other.
pub const SPOOL_VERSION: u32 = 2;
/// First bytes of `control`.
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"IOLABCTL");
/// First bytes of a process file.
pub const PROCESS_MAGIC: u64 = u64::from_le_bytes(*b"IOLABSPL");
/// First bytes of a chunk.
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"IOCK");
/// Size of a chunk and of the header of a process file. 64 KiB stays in the second-level cache
/// while the launcher hands the same few chunks back.
pub const CHUNK_BYTES: usize = 64 << 10;
/// Size of a record, and of the head of a chunk.
pub const RECORD_BYTES: usize = 64;
/// Records in a chunk; slot 0 is its head.
pub const CHUNK_RECORDS: usize = CHUNK_BYTES / RECORD_BYTES - 1;
/// Size of `control`.
pub const CONTROL_BYTES: usize = 4096;

/// Variables that matter to I/O and parallel launchers, by the beginning of their name: a trace keeps them.
pub const VARIABLES: [&str; 16] = [
    "OMP_",
    "OMPI_",
    "PMI_",
    "PMIX_",
    "MPICH_",
    "SLURM_",
    "ROMIO_",
    "UCX_",
    "HDF5_",
    "NETCDF_",
    "TMPDIR",
    "HOSTNAME",
    "LUSTRE_",
    "IOLAB_",
    "PALS_",
    "PBS_JOBID",
];

/// One record. `tag` is written last and makes it valid: it equals the tag of the chunk, which
/// changes each time the chunk is used again.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Clock reading before the call.
    pub start: u64,
    /// Clock reading after it.
    pub end: u64,
    /// As in an `Event`; -1 where the call uses the file position.
    pub offset: i64,
    /// As in an `Event`.
    pub length: i64,
    /// As in an `Event`; for a copy or rename the number of the other name.
    pub argument: i64,
    /// As in an `Event`.
    pub result: i64,
    /// Number of the open file description or of a name; unique in the run, 0 for none.
    pub number: u32,
    /// Descriptor, -1 for none.
    pub fd: i32,
    /// Code of the function, with `BELOW` set for calls that strategies made; or `TEXT`.
    pub function: u16,
    /// Number of the thread in its process.
    pub thread: u16,
    /// Validity.
    pub tag: u32,
}

/// Set in `function` for a call that came out below the strategies.
pub const BELOW: u16 = 0x8000;
/// `function` of a record that carries part of a name: `start` … `result` are 48 bytes of text,
/// `number` is the name's number, `fd` holds the part's index and, from bit 16, its length.
pub const TEXT: u16 = 0x7fff;
/// `offset` of a record that counts calls, where calls of other functions lie between them.
pub const MIXED: i64 = -2;
/// From this bit on, `argument` of a record that counts seeks holds their number.
pub const COUNT_SHIFT: u32 = crate::event::COUNT_SHIFT;
/// `offset` of a record of MPI-IO at the pointer that all who opened the file share; that at a
/// process's own pointer has -1.
pub const SHARED_POINTER: i64 = -2;
/// First byte of a name that is no path: a communicator (`communicator 0 1 …`, ranks of the whole
/// program) or a view (`view ETYPE FILETYPE`, in the grammar of [`crate::datatype`]).
pub const NO_PATH: u8 = 0;
/// Bytes of a name in one record.
pub const TEXT_BYTES: usize = 48;

impl Record {
    /// Whether it holds part of a name instead of a call.
    pub const fn is_text(&self) -> bool {
        self.function == TEXT
    }

    /// What was called.
    pub const fn called(&self) -> Function {
        Function(self.function & !BELOW)
    }

    /// How many calls it stands for.
    pub const fn calls(&self) -> u64 {
        match crate::event::counted(self.called(), self.argument) {
            Some(count) => count,
            None => 1,
        }
    }

    /// The six words a call's data and a name's text share.
    const fn words(&self) -> [u64; 6] {
        [
            self.start,
            self.end,
            self.offset as u64,
            self.length as u64,
            self.argument as u64,
            self.result as u64,
        ]
    }

    /// The part of a name that record number `part` carries; `None` past the end of the name.
    pub fn of_text(number: u32, name: &[u8], part: usize) -> Option<Record> {
        let rest = name.get(part * TEXT_BYTES..)?;
        let length = rest.len().min(TEXT_BYTES);
        if length == 0 && part > 0 {
            return None;
        }
        let mut text = [0; TEXT_BYTES];
        for (to, from) in text.iter_mut().zip(rest) {
            *to = *from;
        }
        let fd = part as i32 | (length as i32) << 16;
        Some(Record { number, fd, function: TEXT, ..Record::of_words(&text) })
    }

    fn of_words(bytes: &[u8; TEXT_BYTES]) -> Record {
        let mut words = [0; 6];
        for (index, word) in words.iter_mut().enumerate() {
            *word = read_u64(bytes, index * 8);
        }
        let [start, end, offset, length, argument, result] = words;
        Record {
            start,
            end,
            offset: offset as i64,
            length: length as i64,
            argument: argument as i64,
            result: result as i64,
            ..Record::default()
        }
    }

    /// Index and text of the part of a name.
    pub fn text(&self) -> (usize, Vec<u8>) {
        let mut bytes: Vec<u8> = self.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate((self.fd >> 16) as usize);
        ((self.fd & 0xffff) as usize, bytes)
    }

    /// Reads the record in slot `slot` of a chunk, if it is valid under `tag`.
    pub fn read(chunk: &[u8], slot: usize, tag: u32) -> Option<Record> {
        let bytes = chunk.get(slot * RECORD_BYTES..(slot + 1) * RECORD_BYTES)?;
        if read_u32(bytes, 60) != tag {
            return None;
        }
        let mut words = [0; TEXT_BYTES];
        words.copy_from_slice(&bytes[..TEXT_BYTES]);
        Some(Record {
            number: read_u32(bytes, 48),
            fd: read_u32(bytes, 52) as i32,
            function: read_u32(bytes, 56) as u16,
            thread: (read_u32(bytes, 56) >> 16) as u16,
            tag,
            ..Record::of_words(&words)
        })
    }
}

/// A little-endian word; 0 where the bytes end early.
pub fn read_u32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

/// A little-endian double word; 0 where the bytes end early.
pub fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from(read_u32(bytes, at)) | u64::from(read_u32(bytes, at + 4)) << 32
}

/// How a library beside the recorder's reaches it in the same process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Door {
    /// Reads the clock of the recording.
    pub now: extern "C" fn() -> u64,
    /// A number, unique in the run.
    pub number: extern "C" fn() -> u32,
    /// Says what a number stands for: address and length of the text.
    pub name: extern "C" fn(u32, *const u8, usize),
    /// Keeps a record; thread and tag are filled in.
    pub push: extern "C" fn(&Record),
    /// Counts a call that is left out, by the index of its reason.
    pub left_out: extern "C" fn(usize),
}

/// The symbol that opens the door: takes [`DOOR_VERSION`] and the bit of a layer ([`layer`]), gives null
/// where calls of that are not recorded.
pub const DOOR_NAME: &CStr = c"iolab_recorder_door";
/// Changes with [`Door`].
pub const DOOR_VERSION: u32 = 2;

/// Bits of the control page's word of layers.
#[allow(missing_docs, reason = "each is the layer of that name")]
pub mod layer {
    pub const POSIX: u32 = 0;
    pub const STDIO: u32 = 1;
    /// Calls below the strategies.
    pub const BELOW: u32 = 2;
    pub const MPI: u32 = 3;
    pub const HDF5: u32 = 4;
    pub const NETCDF: u32 = 5;
}

/// Head of a chunk, slot 0.
#[allow(missing_docs, reason = "offsets of the fields of that name")]
pub mod chunk {
    pub const MAGIC: usize = 0;
    /// What makes a record of this use of the chunk valid: never 0, larger for later uses.
    pub const TAG: usize = 8;
    /// Byte within the chunk where the next record goes; kept only by a thread that ended.
    pub const NEXT: usize = 12;
}

/// States of a chunk, one byte each in the head of the process file.
#[allow(missing_docs, reason = "each says it")]
pub mod state {
    /// Not part of the file yet.
    pub const ABSENT: u8 = 0;
    /// Nothing in it that is not drained.
    pub const FREE: u8 = 1;
    /// A thread is writing it.
    pub const OWNED: u8 = 2;
    /// Every slot is given out.
    pub const FULL: u8 = 3;
    /// Its thread ended; another may go on writing at `NEXT`.
    pub const LEFT: u8 = 4;
}

/// Fields of `control`. Counters are atomic.
#[allow(missing_docs, reason = "offsets of the fields of that name")]
pub mod control {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    /// 0 time-stamp counter, 1 `CLOCK_MONOTONIC`.
    pub const CLOCK: usize = 12;
    /// The number the next description or name gets.
    pub const NUMBER: usize = 16;
    /// Not 0: record nothing any more, count losses: 1 at the limit, 2 for a full disk.
    pub const STOP: usize = 20;
    /// Bytes of all process files.
    pub const USED: usize = 24;
    /// They and the drained bytes stay below this.
    pub const LIMIT: usize = 32;
    /// 0 stop when full, 1 overwrite the oldest.
    pub const RING: usize = 40;
    /// Bit 0 POSIX, bit 1 stdio, bit 2 below the strategies, bit 3 MPI.
    pub const LAYERS: usize = 44;
    /// Three words: counter, monotonic ns, Unix ns, read together when the run started.
    pub const CALIBRATION: usize = 48;
    /// The same, renewed by the launcher while it drains.
    pub const LATEST: usize = 72;
    /// Bytes of the file `drained`.
    pub const DRAINED: usize = 96;
    /// Number of process files ever made.
    pub const PROCESSES: usize = 104;
    /// Bits by `Unseen`.
    pub const UNSEEN: usize = 108;
    /// Size every process file is given when it is made; only what is used has room behind it.
    pub const PROCESS_BYTES: usize = 112;
    /// Files `spare-N` ever made by the launcher, for processes that may not make large files.
    pub const SPARES: usize = 120;
    /// Spares that were taken (atomic).
    pub const SPARES_TAKEN: usize = 124;
    /// Sixteen counters by `Lost`.
    pub const LOST: usize = 128;
    /// Thirty-two counters by `LeftOut`.
    pub const LEFT_OUT: usize = 256;
    /// Calls on a stream that get records of their own before they are counted; all ones: every call.
    pub const STREAM_ROWS: usize = 512;
    /// How far the Unix time of the calibration is from the right one at most, as the system states it: 1 more
    /// than that in nanoseconds; 0 where it states nothing or its clock is not synchronised.
    pub const UNIX_BOUND: usize = 520;

    /// What stands there after `adjtimex`, by its answer and `maxerror`, in microseconds.
    pub fn unix_bound(state: i64, most_us: i64) -> u64 {
        // TIME_ERROR: not synchronised.
        const UNSURE: i64 = 5;
        match state {
            0..UNSURE => u64::try_from(most_us).unwrap_or(0).saturating_mul(1000).saturating_add(1),
            _ => 0,
        }
    }
}

/// How large a process file may get where all raw records of a run take no more than this.
pub fn process_file_bytes(limit_bytes: u64) -> u64 {
    let chunk = CHUNK_BYTES as u64;
    let all = limit_bytes.next_multiple_of(chunk) + 2 * chunk;
    all.min((process::CHUNKS_MAX as u64 + 1) * chunk)
}

/// Fields of the head of a process file.
#[allow(missing_docs, reason = "offsets of the fields of that name")]
pub mod process {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const CHUNK_BYTES: usize = 12;
    pub const PID: usize = 16;
    pub const PARENT: usize = 20;
    pub const RANK: usize = 24;
    /// Bits below.
    pub const FLAGS: usize = 28;
    /// Three words: counter, monotonic ns, Unix ns.
    pub const START: usize = 32;
    /// The same when it ended; 0 when it did not say.
    pub const END: usize = 56;
    /// Chunks that were ever claimed (atomic); some may be absent.
    pub const CHUNKS: usize = 80;
    /// Threads seen (atomic).
    pub const THREADS: usize = 84;
    /// Last tag given out (atomic).
    pub const TAG: usize = 88;
    /// Number of this file in the run.
    pub const INDEX: usize = 92;
    /// Ranks of its job; 0 when it has none or they are not known.
    pub const SIZE: usize = 96;
    /// Host name, NUL-padded.
    pub const HOST: usize = 512;
    pub const HOST_BYTES: usize = 256;
    /// Working directory at start, NUL-padded.
    pub const DIRECTORY: usize = 1024;
    pub const DIRECTORY_BYTES: usize = 4096;
    /// Path of the program, NUL-padded.
    pub const PROGRAM: usize = 5120;
    pub const PROGRAM_BYTES: usize = 4096;
    /// Command line, each argument ended by NUL, cut when too long.
    pub const COMMAND: usize = 9216;
    pub const COMMAND_BYTES: usize = 32_768;
    /// State of each chunk, one byte.
    pub const STATES: usize = 45_056;
    pub const CHUNKS_MAX: usize = 16_384;

    /// It told that it was ending.
    pub const ENDED: u32 = 1;
    /// Libc's entry points were overwritten, so its internal calls are seen.
    pub const PATCHED: u32 = 2;
    /// A copy of its parent that did not exec.
    pub const FORKED: u32 = 4;
}

const _: () = assert!(process::STATES + process::CHUNKS_MAX <= CHUNK_BYTES);

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $(#[doc = $text] $variant,)*
        }

        impl $name {
            /// All, by index.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// As written in the header of a trace.
            pub const fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The one of that index.
            pub fn from_index(index: usize) -> Option<$name> {
                $name::ALL.get(index).copied()
            }
        }
    };
}

reasons! {
    /// Why calls on a descriptor or path are not recorded, by rule.
    LeftOut {
        Pipe "pipe",
        Socket "socket",
        CharacterDevice "terminal or character device",
        BlockDevice "block device",
        Directory "directory",
        Anonymous "anonymous descriptor",
        Dev "/dev",
        Proc "/proc",
        Sys "/sys",
        Etc "/etc",
        Library "shared library or locale",
        Own "iolab's own files",
        OutOfTable "descriptor above 65535",
        BadDescriptor "not an open descriptor",
        NoFile "stream without a file",
        Exotic "MPI: one-sided, non-blocking collective, between two groups",
        FailedMpi "MPI: calls that failed",
    }
}

reasons! {
    /// Why calls that should have been recorded were not.
    Lost {
        Limit "spool limit",
        Disk "no space for the spool",
        Overwritten "overwritten by newer calls (ring)",
        Setup "spool could not be set up",
        Address "no address space for the spool",
        FileSize "file size limit (ulimit -f) of the program and of iolab itself",
    }
}

reasons! {
    /// What was noticed but cannot be seen by hooks.
    Unseen {
        MappedStores "stores into mapped files",
        MappedLoads "loads from mapped files",
        IoUring "io_uring transfers",
        Aio "libaio transfers",
        RawCalls "raw system calls",
        Stdio "calls inside libc (its entry points could not be overwritten)",
        SpawnFailed "a program that did not load the library",
        Filtered "calls of a program after it filtered its system calls (seccomp)",
        ForeignLibc "a program of another C library (musl), started without iolab's library",
        OtherMachine "a program of 32 bits or for another processor, started without iolab's library",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(record: &Record) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            record.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(record.number.to_le_bytes());
        bytes.extend(record.fd.to_le_bytes());
        bytes.extend(record.function.to_le_bytes());
        bytes.extend(record.thread.to_le_bytes());
        bytes.extend(record.tag.to_le_bytes());
        bytes
    }

    #[test]
    fn the_structure_in_memory_is_the_record_in_the_document() {
        assert_eq!(size_of::<Record>(), RECORD_BYTES);
        assert_eq!(std::mem::offset_of!(Record, number), 48);
        assert_eq!(std::mem::offset_of!(Record, function), 56);
        assert_eq!(std::mem::offset_of!(Record, tag), 60);
    }

    #[test]
    fn a_record_is_read_back_and_one_of_an_earlier_use_of_the_chunk_is_not() {
        let record = Record {
            start: 1,
            end: 2,
            offset: -1,
            length: 64,
            argument: -1,
            result: -28,
            number: 7,
            fd: 3,
            function: Function::PWRITE.0 | BELOW,
            thread: 65_535,
            tag: 9,
        };
        let chunk = [bytes_of(&record), bytes_of(&record)].concat();
        assert_eq!(Record::read(&chunk, 1, 9), Some(record));
        assert_eq!(Record::read(&chunk, 1, 10), None);
        assert_eq!(Record::read(&chunk, 2, 9), None);
        assert_eq!(record.called(), Function::PWRITE);
    }

    #[test]
    fn only_a_clock_that_is_synchronised_states_how_right_it_is() {
        let stated = [(0, 16), (4, 0), (5, 16), (-1, 16), (0, -1)];
        let found = stated.map(|(state, most)| control::unix_bound(state, most));
        assert_eq!(found, [16_001, 1, 0, 0, 1]);
    }

    #[test]
    fn a_process_file_holds_what_a_run_may_take_in_whole_chunks() {
        let chunk = CHUNK_BYTES as u64;
        assert_eq!(process_file_bytes(3 * chunk), 5 * chunk);
        assert_eq!(process_file_bytes(3 * chunk + 1), 6 * chunk);
        assert_eq!(process_file_bytes(1 << 50), (process::CHUNKS_MAX as u64 + 1) * chunk);
    }

    #[test]
    fn a_long_name_is_the_sum_of_its_parts() {
        let name: Vec<u8> = (0..200).map(|i| b'a' + (i % 26)).collect();
        let parts: Vec<_> = (0..9).map_while(|i| Record::of_text(5, &name, i)).collect();
        assert_eq!(parts.len(), 5);
        let texts: Vec<_> = parts.iter().map(|part| part.text().1).collect();
        assert_eq!(texts.concat(), name);
        assert!(Record::of_text(5, b"", 0).is_some() && Record::of_text(5, b"", 1).is_none());
        assert!(Record::of_text(5, &name[..48], 1).is_none());
    }
}
