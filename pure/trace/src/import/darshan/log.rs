//! The frame of a Darshan log: a header with places and versions of regions, each of them streams of
//! zlib or bzip2 behind each other, one for each rank that wrote.
//!
//! Source: `darshan-log-format.h` of the formats 3.00 to 3.41.

use super::DarshanError;
use super::module::Module;
use super::stream::{Compression, Fields, Stream};
use std::collections::BTreeMap;
use std::io::Read;

/// What stands at byte 8, in the byte order of the machine that wrote.
const MAGIC: u64 = 6_567_223;

/// A larger run than any there was: a damaged log may say anything.
const MOST_PROCESSES: u64 = 1 << 21;

/// Bytes of names and of the command that are read at most.
const MOST_TEXT_BYTES: usize = 1 << 27;

/// Version 3.`minor` of the log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Both digits behind the point.
    pub(super) minor: u32,
}

/// Where things stand in the header.
pub(super) struct Layout {
    bytes: usize,
    partial: usize,
    names: usize,
    maps: usize,
    versions: usize,
    /// Places for modules.
    pub(super) modules: usize,
}

impl Format {
    pub(super) fn layout(self) -> Layout {
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

/// The version of a log of Darshan 1 or 2, which is packed as a whole and begins with it.
pub fn packed_version(bytes: &[u8]) -> Option<String> {
    let mut head = [0; 16];
    match bytes {
        [0x1f, 0x8b, ..] => flate2::bufread::GzDecoder::new(bytes).read_exact(&mut head).ok()?,
        [b'B', b'Z', b'h', ..] => {
            bzip2::bufread::BzDecoder::new(bytes).read_exact(&mut head).ok()?
        }
        _ => return None,
    }
    let magic =
        head.last_chunk().map(|word| (u64::from_le_bytes(*word), u64::from_be_bytes(*word)));
    let version = Fields { bytes: &head, is_big: false }.text(0, 8);
    let is_old = matches!(version.as_bytes(), [b'1' | b'2', b'.', digits @ ..]
        if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
    (is_old && magic.is_some_and(|(little, big)| little == MAGIC || big == MAGIC))
        .then_some(version)
}

impl<'a> Log<'a> {
    /// Reads header, job and names.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Log<'a>, DarshanError> {
        if !is_log_head(bytes) {
            return Err(match (packed_version(bytes), bytes) {
                (Some(version), _) => DarshanError::Old(version),
                (None, [0x1f, 0x8b, ..] | [b'B', b'Z', b'h', ..]) => DarshanError::Packed,
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

    /// Version of the format.
    pub(super) fn format(&self) -> String {
        format!("3.{:02}", self.format.minor)
    }

    /// The version of a module's records; none if the log has nothing of it.
    pub(super) fn version(&self, module: Module) -> Option<u32> {
        let (number, layout) = (module.number(self.format)?, self.format.layout());
        let header = Fields { bytes: self.bytes, is_big: self.is_big };
        let length = header.u64(layout.maps + 16 * number + 8);
        (length > 0).then(|| header.u32(layout.versions + 4 * number))
    }

    /// Whether Darshan's memory did not suffice for all that the module saw.
    pub(super) fn is_partial(&self, module: Module) -> bool {
        module.number(self.format).is_some_and(|number| self.partial >> number & 1 == 1)
    }

    /// Numbers of modules that the log has something of and nobody here knows.
    pub(super) fn unknown(&self) -> Vec<usize> {
        let layout = self.format.layout();
        let header = Fields { bytes: self.bytes, is_big: self.is_big };
        let known = |number| Module::ALL.iter().any(|it| it.number(self.format) == Some(number));
        let is_there = |number: usize| header.u64(layout.maps + 16 * number + 8) > 0;
        (0..layout.modules).filter(|number| is_there(*number) && !known(*number)).collect()
    }

    /// The records of a module, from the first one on.
    pub(super) fn records(&self, module: Module) -> Result<Stream<'a>, DarshanError> {
        let region = self.region(module)?;
        Ok(Stream::new(region, self.compression, self.is_big, module.name()))
    }

    fn region(&self, module: Module) -> Result<&'a [u8], DarshanError> {
        match module.number(self.format) {
            Some(number) => self.at(self.format.layout().maps + 16 * number, module.name()),
            None => Ok(&[]),
        }
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

/// A log that contradicts itself.
pub(super) fn damaged(what: impl Into<String>) -> DarshanError {
    DarshanError::Damaged(what.into())
}
