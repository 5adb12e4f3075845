//! The frame of a Darshan log: a header with places and versions of regions, each of them streams of
//! zlib or bzip2 behind each other, one for each rank that wrote.
//!
//! Source: `darshan-log-format.h` of the formats 3.00 to 3.41.

use super::DarshanError;
use std::collections::BTreeMap;
use std::io::{self, Read};

/// What stands at byte 8, in the byte order of the machine that wrote.
const MAGIC: u64 = 6_567_223;

/// A larger run than any there was: a damaged log may say anything.
const MOST_PROCESSES: u64 = 1 << 21;

/// Bytes of names and of the command that are read at most.
const MOST_TEXT_BYTES: usize = 1 << 27;

/// What counted or traced the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Module {
    /// Counters of POSIX calls.
    Posix,
    /// Counters of MPI-IO calls.
    MpiIo,
    /// Counters of calls on streams.
    Stdio,
    /// Single POSIX accesses.
    DxtPosix,
    /// Single MPI-IO accesses.
    DxtMpiIo,
}

impl Module {
    /// Every one.
    pub(super) const ALL: [Module; 5] =
        [Module::Posix, Module::MpiIo, Module::Stdio, Module::DxtPosix, Module::DxtMpiIo];

    /// As Darshan calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Module::Posix => "POSIX",
            Module::MpiIo => "MPI-IO",
            Module::Stdio => "STDIO",
            Module::DxtPosix => "DXT_POSIX",
            Module::DxtMpiIo => "DXT_MPIIO",
        }
    }

    /// Its number; modules came in between over time.
    fn number(self, format: Format) -> usize {
        let later = match self {
            Module::Posix => return 1,
            Module::MpiIo => return 2,
            Module::Stdio => 0,
            Module::DxtPosix => 1,
            Module::DxtMpiIo => 2,
        };
        let stdio = match format.minor {
            ..20 => 7,
            20..41 => 8,
            _ => 9,
        };
        stdio + later
    }
}

/// Version 3.`minor` of the log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Format {
    minor: u32,
}

/// Where things stand in the header.
struct Layout {
    bytes: usize,
    partial: usize,
    names: usize,
    maps: usize,
    versions: usize,
    modules: usize,
}

impl Format {
    fn layout(self) -> Layout {
        match self.minor {
            41.. => Layout {
                bytes: 1328,
                partial: 24,
                names: 32,
                maps: 48,
                versions: 1072,
                modules: 64,
            },
            _ => {
                Layout { bytes: 360, partial: 20, names: 24, maps: 40, versions: 296, modules: 16 }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    Zlib,
    Bzip2,
    None,
}

/// Fixed-size fields in the byte order of the log.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    is_big: bool,
}

impl Fields<'_> {
    /// The word at a byte; 0 behind the end.
    pub(super) fn u64(&self, at: usize) -> u64 {
        let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk()) else { return 0 };
        if self.is_big { u64::from_be_bytes(*word) } else { u64::from_le_bytes(*word) }
    }

    /// The same with a sign.
    pub(super) fn i64(&self, at: usize) -> i64 {
        self.u64(at) as i64
    }

    /// The same as a floating point number.
    pub(super) fn f64(&self, at: usize) -> f64 {
        f64::from_bits(self.u64(at))
    }

    /// Text up to the first NUL.
    pub(super) fn text(&self, from: usize, to: usize) -> String {
        let bytes = self.bytes.get(from..to).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    fn u32(&self, at: usize) -> u32 {
        let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk()) else { return 0 };
        if self.is_big { u32::from_be_bytes(*word) } else { u32::from_le_bytes(*word) }
    }
}

/// What the log says of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Job {
    /// Unix time of its start, in nanoseconds.
    pub(super) start_ns: u64,
    /// From its start to its end.
    pub(super) took_ns: u64,
    /// Its processes.
    pub(super) processes: u64,
    /// Command line.
    pub(super) command: String,
    /// Mount points with the type of their file system.
    pub(super) mounts: BTreeMap<String, String>,
}

/// A log whose header was found good.
pub(super) struct Log<'a> {
    bytes: &'a [u8],
    is_big: bool,
    format: Format,
    compression: Compression,
    partial: u64,
    /// What the log says of the run.
    pub(super) job: Job,
    /// Names of files by their number.
    pub(super) names: BTreeMap<u64, String>,
}

/// Whether a file that begins so is a log of Darshan 3.
pub fn is_log_head(head: &[u8]) -> bool {
    let Some(magic) = head.get(8..16).and_then(|word| word.first_chunk()) else { return false };
    head.starts_with(b"3.")
        && (u64::from_le_bytes(*magic) == MAGIC || u64::from_be_bytes(*magic) == MAGIC)
}

impl<'a> Log<'a> {
    /// Reads header, job and names.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Log<'a>, DarshanError> {
        if !is_log_head(bytes) {
            return Err(match bytes {
                [0x1f, 0x8b, ..] | [b'B', b'Z', b'h', ..] => DarshanError::Packed,
                _ => DarshanError::NotALog,
            });
        }
        let is_big = bytes[8] == 0;
        let header = Fields { bytes, is_big };
        let version = header.text(0, 8);
        let minor = version.strip_prefix("3.").and_then(|minor| minor.parse().ok());
        let format = match minor {
            Some(minor @ 0..=41) => Format { minor },
            _ => return Err(DarshanError::Format(version)),
        };
        let layout = format.layout();
        if bytes.len() < layout.bytes {
            return Err(damaged("the header is cut"));
        }
        let compression = match bytes[16] {
            0 => Compression::Zlib,
            1 => Compression::Bzip2,
            2 => Compression::None,
            other => return Err(damaged(format!("no compression has the number {other}"))),
        };
        let partial = match format.minor {
            41.. => header.u64(layout.partial),
            _ => u64::from(header.u32(layout.partial)),
        };
        let (job, names) = (Job::default(), BTreeMap::new());
        let mut log = Log { bytes, is_big, format, compression, partial, job, names };
        for module in Module::ALL {
            log.region(module)?;
        }
        log.job = log.read_job()?;
        log.names = log.read_names()?;
        Ok(log)
    }

    /// The version of a module's records; none if the log has nothing of it.
    pub(super) fn version(&self, module: Module) -> Option<u32> {
        let (number, layout) = (module.number(self.format), self.format.layout());
        let header = Fields { bytes: self.bytes, is_big: self.is_big };
        let length = header.u64(layout.maps + 16 * number + 8);
        (length > 0).then(|| header.u32(layout.versions + 4 * number))
    }

    /// Whether Darshan's memory did not suffice for all that the module saw.
    pub(super) fn is_partial(&self, module: Module) -> bool {
        self.partial >> module.number(self.format) & 1 == 1
    }

    /// The records of a module, from the first one on.
    pub(super) fn records(&self, module: Module) -> Result<Stream<'a>, DarshanError> {
        let region = self.region(module)?;
        Ok(Stream::new(region, self.compression, self.is_big, module.name()))
    }

    fn region(&self, module: Module) -> Result<&'a [u8], DarshanError> {
        let layout = self.format.layout();
        let number = module.number(self.format);
        debug_assert!(number < layout.modules);
        self.at(layout.maps + 16 * number, module.name())
    }

    /// The region whose place and length stand at a byte of the header.
    fn at(&self, place: usize, name: &str) -> Result<&'a [u8], DarshanError> {
        let header = Fields { bytes: self.bytes, is_big: self.is_big };
        let (start, length) = (header.u64(place), header.u64(place + 8));
        if length == 0 {
            return Ok(&[]);
        }
        let end = start.checked_add(length).filter(|end| *end <= self.bytes.len() as u64);
        match end {
            Some(end) if start >= self.format.layout().bytes as u64 => {
                Ok(&self.bytes[start as usize..end as usize])
            }
            _ => Err(damaged(format!(
                "{name} lies at bytes {start} to {}, the file has {}",
                start.saturating_add(length),
                self.bytes.len()
            ))),
        }
    }

    /// The job lies between the header and whatever comes next.
    fn read_job(&self) -> Result<Job, DarshanError> {
        let layout = self.format.layout();
        let header = Fields { bytes: self.bytes, is_big: self.is_big };
        let places = (0..layout.modules).map(|number| layout.maps + 16 * number);
        let next = places
            .chain([layout.names])
            .filter(|place| header.u64(place + 8) > 0)
            .map(|place| header.u64(place))
            .min()
            .unwrap_or(self.bytes.len() as u64);
        let region = usize::try_from(next).ok().and_then(|next| self.bytes.get(layout.bytes..next));
        let region = region.ok_or_else(|| damaged("the job's record is cut"))?;
        let mut stream = Stream::new(region, self.compression, self.is_big, "the job's record");
        let has_nanos = self.format.minor >= 41;
        let fixed = if has_nanos { 7 * 8 } else { 5 * 8 } + 1024;
        let record = stream.all(MOST_TEXT_BYTES)?;
        if record.len() < fixed {
            return Err(damaged("the job's record is cut"));
        }
        let fields = Fields { bytes: &record, is_big: self.is_big };
        let seconds = |at| u64::try_from(fields.i64(at)).unwrap_or(0).saturating_mul(1_000_000_000);
        let (start_ns, end_ns, processes) = match has_nanos {
            true => (
                seconds(8).saturating_add(fields.u64(16) % 1_000_000_000),
                seconds(24).saturating_add(fields.u64(32) % 1_000_000_000),
                fields.u64(40),
            ),
            // Whole seconds: the last one had begun.
            false => (seconds(8), seconds(16).saturating_add(1_000_000_000), fields.u64(24)),
        };
        if !(1..=MOST_PROCESSES).contains(&processes) {
            return Err(damaged(format!("the job has {processes} processes")));
        }
        let text = fields.text(fixed, record.len());
        let mut lines = text.lines();
        let command = lines.next().unwrap_or_default().trim().to_owned();
        let mounts = lines.filter_map(|line| line.split_once('\t'));
        let mounts = mounts.map(|(kind, path)| (path.to_owned(), kind.to_owned())).collect();
        let took_ns = end_ns.saturating_sub(start_ns);
        Ok(Job { start_ns, took_ns, processes, command, mounts })
    }

    fn read_names(&self) -> Result<BTreeMap<u64, String>, DarshanError> {
        let region = self.at(self.format.layout().names, "the names of files")?;
        let mut stream = Stream::new(region, self.compression, self.is_big, "the names of files");
        let all = stream.all(MOST_TEXT_BYTES)?;
        let mut names = BTreeMap::new();
        let mut rest = &all[..];
        while rest.len() > 8 {
            let fields = Fields { bytes: rest, is_big: self.is_big };
            // Format 3.00 says how long a name is, later ones end it by NUL.
            let (start, length, gap) = match self.format.minor {
                0..10 => (12_usize, Some(fields.u32(8) as usize), 0),
                _ => (8, rest[8..].iter().position(|byte| *byte == 0), 1),
            };
            let name = length.and_then(|length| rest.get(start..start.checked_add(length)?));
            let Some(name) = name else { return Err(damaged("a file's name is cut")) };
            names.insert(fields.u64(0), String::from_utf8_lossy(name).into_owned());
            rest = &rest[start + name.len() + gap..];
        }
        Ok(names)
    }
}

/// A region, unpacked as far as it is read.
pub(super) struct Stream<'a> {
    decoder: Decoder<'a>,
    is_big: bool,
    name: &'static str,
    record: Vec<u8>,
}

enum Decoder<'a> {
    Zlib(flate2::bufread::ZlibDecoder<&'a [u8]>),
    Bzip2(bzip2::bufread::BzDecoder<&'a [u8]>),
    None(&'a [u8]),
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8], compression: Compression) -> Decoder<'a> {
        match compression {
            Compression::Zlib if !bytes.is_empty() => {
                Decoder::Zlib(flate2::bufread::ZlibDecoder::new(bytes))
            }
            Compression::Bzip2 if !bytes.is_empty() => {
                Decoder::Bzip2(bzip2::bufread::BzDecoder::new(bytes))
            }
            _ => Decoder::None(bytes),
        }
    }

    /// At the end of one stream, the next one. Tells whether there is one.
    fn next(&mut self) -> bool {
        let (rest, compression) = match self {
            Decoder::Zlib(decoder) if decoder.total_in() > 0 => {
                (*decoder.get_ref(), Compression::Zlib)
            }
            Decoder::Bzip2(decoder) if decoder.total_in() > 0 => {
                (*decoder.get_ref(), Compression::Bzip2)
            }
            _ => return false,
        };
        *self = Decoder::new(rest, compression);
        !rest.is_empty()
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Decoder::Zlib(decoder) => decoder.read(into),
            Decoder::Bzip2(decoder) => decoder.read(into),
            Decoder::None(bytes) => bytes.read(into),
        }
    }
}

impl<'a> Stream<'a> {
    fn new(
        bytes: &'a [u8],
        compression: Compression,
        is_big: bool,
        name: &'static str,
    ) -> Stream<'a> {
        Stream { decoder: Decoder::new(bytes, compression), is_big, name, record: Vec::new() }
    }

    /// The next so many bytes; none at the end.
    pub(super) fn take(&mut self, bytes: usize) -> Result<Option<Fields<'_>>, DarshanError> {
        self.record.resize(bytes, 0);
        let mut filled = 0;
        while filled < bytes {
            let read = self.decoder.read(&mut self.record[filled..]);
            match read.map_err(|error| damaged(format!("{}: {error}", self.name)))? {
                0 if self.decoder.next() => {}
                0 if filled == 0 => return Ok(None),
                0 => return Err(damaged(format!("the last record of {} is cut", self.name))),
                more => filled += more,
            }
        }
        Ok(Some(Fields { bytes: &self.record, is_big: self.is_big }))
    }

    /// The same in the middle of a record.
    pub(super) fn need(&mut self, bytes: usize) -> Result<Fields<'_>, DarshanError> {
        let name = self.name;
        let cut = || damaged(format!("the last record of {name} is cut"));
        self.take(bytes)?.ok_or_else(cut)
    }

    fn all(&mut self, most: usize) -> Result<Vec<u8>, DarshanError> {
        let mut all = Vec::new();
        let mut piece = [0; 1 << 14];
        loop {
            let read = self.decoder.read(&mut piece);
            match read.map_err(|error| damaged(format!("{}: {error}", self.name)))? {
                0 if self.decoder.next() => {}
                0 => return Ok(all),
                more => all.extend_from_slice(&piece[..more]),
            }
            if all.len() > most {
                return Err(damaged(format!("{} is longer than {most} bytes", self.name)));
            }
        }
    }
}

/// A log that contradicts itself.
pub(super) fn damaged(what: impl Into<String>) -> DarshanError {
    DarshanError::Damaged(what.into())
}
