//! Sums of pages, by which a server tells what was written from what its device has made of it: beside each
//! subfile a file of [`ENTRY_BYTES`] for each page, `sums/HH/INODE`.
//!
//! An entry is the CRC-32C of a page, zeros taken for what the subfile does not have of it, and the same number
//! crossed with [`MARK`]. Whatever else lies there is no sum: so an entry is struck out by zeros, and one that is
//! torn or damaged itself accuses nobody.
//!
//! Costs: a look at 8 bytes and a pass over each page that is read; [`OPEN_MAX`] descriptors, the least recently
//! used goes.

use crate::device_sync::{Struck, ToSync};
use crate::subfiles::{Result, code, folder, read_row};
use iolab_pfs::io_server::{Operation, PAGE_BYTES, Subfile};
use iolab_pfs::{Code, Inode};
use iolab_vocab::Extent;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a sum on the device.
const ENTRY_BYTES: u64 = 8;
/// Tells a sum from zeros and from most that is none.
const MARK: u32 = u32::from_le_bytes(*b"sum\n");
/// Descriptors of files of sums.
const OPEN_MAX: usize = 64;
/// Pages that are looked at together.
const PAGES_AT_ONCE: u64 = 256;

/// The sums of one server's subfiles.
pub(crate) struct Sums {
    directory: OwnedFd,
    /// Whether what is struck out is to be on the device before anything is written.
    is_for_device: bool,
    open: BTreeMap<Subfile, Open>,
    uses: u64,
}

struct Open {
    file: Arc<File>,
    /// How often something was struck out; up to which of those the device has them. What a life before this one
    /// has struck out is the first.
    struck: u64,
    synced: Arc<AtomicU64>,
    used: u64,
}

/// What pages come to that were held against their sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All that have sums have theirs.
    Intact,
    /// So do they, but among these bytes are pages without.
    Bare { from: u64, to: u64 },
    /// These bytes do not have their sum.
    Damaged { from: u64, to: u64 },
}

/// What becomes of a wish to strike sums out.
pub(crate) enum Strike {
    Done,
    /// The device is to hear of it first.
    ToSync(ToSync),
    /// A page that keeps some of its bytes does not have its sum.
    Damaged {
        from: u64,
        to: u64,
    },
}

/// Pages that are to be summed.
pub(crate) struct ToSum {
    pub(crate) operation: Operation,
    /// What makes them durable before, where that is wanted.
    pub(crate) sync: Option<ToSync>,
    data: Arc<File>,
    /// None where sums cannot be kept.
    sums: Option<Arc<File>>,
    pages: Extent,
}

/// The sum that an entry has, if it is one.
fn sum_in(entry: &[u8]) -> Option<u32> {
    let (sum, crossed) = entry.split_first_chunk()?;
    let (sum, crossed) = (u32::from_le_bytes(*sum), u32::from_le_bytes(crossed.try_into().ok()?));
    (sum ^ crossed == MARK).then_some(sum)
}

fn entry_of(sum: u32) -> [u8; ENTRY_BYTES as usize] {
    (u64::from(sum ^ MARK) << 32 | u64::from(sum)).to_le_bytes()
}

/// Numbers of the pages that an extent touches, a few at a time, up to one of them.
fn batches(extent: Extent, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let to = extent.end().div_ceil(PAGE_BYTES).min(end);
    let mut at = extent.offset / PAGE_BYTES;
    std::iter::from_fn(move || {
        (at < to).then(|| {
            let batch = (at, to.min(at + PAGES_AT_ONCE));
            at = batch.1;
            batch
        })
    })
}

/// The entries of some pages; zeros where there are none.
fn entries(sums: &File, (from, to): (u64, u64)) -> Result<Vec<u8>> {
    let mut entries = vec![0; ((to - from) * ENTRY_BYTES) as usize];
    read_row(sums, from * ENTRY_BYTES, &mut entries)?;
    Ok(entries)
}

/// The bytes of some pages; zeros behind the end.
fn pages(data: &File, (from, to): (u64, u64)) -> Result<Vec<u8>> {
    let mut bytes = vec![0; ((to - from) * PAGE_BYTES) as usize];
    read_row(data, from * PAGE_BYTES, &mut bytes)?;
    Ok(bytes)
}

/// Holds the pages of an extent that `is_meant` against their sums.
fn look(
    data: &File,
    sums: Option<&File>,
    extent: Extent,
    is_meant: impl Fn(u64) -> bool,
) -> Result<Found> {
    let end = data.metadata().map_err(|_| Code::IO)?.len().div_ceil(PAGE_BYTES);
    let mut bare: Option<(u64, u64)> = None;
    for batch in batches(extent, end) {
        let entries = sums.map_or(Ok(Vec::new()), |sums| entries(sums, batch))?;
        let bytes = pages(data, batch)?;
        let of_pages = bytes.chunks_exact(PAGE_BYTES as usize).zip(batch.0..);
        for (at, (content, page)) in of_pages.enumerate().filter(|(_, (_, page))| is_meant(*page)) {
            let entry = entries.get(at * ENTRY_BYTES as usize..).unwrap_or_default();
            let sum = sum_in(entry.get(..ENTRY_BYTES as usize).unwrap_or_default());
            let (from, to) = (page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
            match sum {
                Some(sum) if sum == crc32c::crc32c(content) => {}
                Some(_) => return Ok(Found::Damaged { from, to }),
                // A hole needs no sum.
                None if content.iter().all(|&byte| byte == 0) => {}
                None => bare = Some((bare.map_or(from, |(from, _)| from), to)),
            }
        }
    }
    Ok(bare.map_or(Found::Intact, |(from, to)| Found::Bare { from, to }))
}

impl Sums {
    /// Those in a directory, which is made if it is not there.
    pub(crate) fn at(directory: &Path, is_for_device: bool) -> std::io::Result<Sums> {
        std::fs::create_dir_all(directory)?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(directory, flags, Mode::empty())?;
        Ok(Sums { directory, is_for_device, open: BTreeMap::new(), uses: 0 })
    }

    /// Another descriptor of the directory, for a thread that removes files.
    pub(crate) fn directory(&self) -> std::io::Result<OwnedFd> {
        Ok(rustix::io::fcntl_dupfd_cloexec(&self.directory, 0)?)
    }

    /// Whether sums are to be on the device in the right order.
    pub(crate) fn is_for_device(&self) -> bool {
        self.is_for_device
    }

    /// Forgets a file, whose sums somebody else removes.
    pub(crate) fn forget(&mut self, inode: Inode) {
        self.open.retain(|subfile, _| subfile.inode != inode);
    }

    /// Holds extents of a subfile against its sums.
    pub(crate) fn look(
        &mut self,
        (subfile, name): (Subfile, &str),
        data: &File,
        extents: &[Extent],
    ) -> Result<Found> {
        let sums = self.opened(subfile, name, false)?.map(|open| open.file.clone());
        let mut found = Found::Intact;
        for &extent in extents {
            found = match (look(data, sums.as_deref(), extent, |_| true)?, found) {
                (damaged @ Found::Damaged { .. }, _) => return Ok(damaged),
                (Found::Bare { to, .. }, Found::Bare { from, .. }) => Found::Bare { from, to },
                (Found::Intact, found) => found,
                (found, _) => found,
            };
        }
        Ok(found)
    }

    /// Strikes out the sums of the pages that these extents touch; first, those that keep some of their bytes
    /// are held against theirs. `data` is the subfile, if there is one.
    pub(crate) fn strike(
        &mut self,
        (subfile, name): (Subfile, &str),
        data: Option<&File>,
        (extents, is_whole): (&[Extent], bool),
        operation: Operation,
    ) -> Result<Strike> {
        let is_for_device = self.is_for_device;
        let Some(open) = self.opened(subfile, name, false)? else { return Ok(Strike::Done) };
        let sums = open.file.clone();
        for &extent in extents {
            let keeps = |page: u64| {
                let whole = Extent::new(page * PAGE_BYTES, PAGE_BYTES);
                !is_whole || extent.intersection(whole) != whole
            };
            if let Some(data) = data
                && let Found::Damaged { from, to } = look_at_edges(data, &sums, extent, keeps)?
            {
                return Ok(Strike::Damaged { from, to });
            }
        }
        for &extent in extents {
            if strike_out(&sums, extent)? {
                open.struck += 1;
            }
        }
        if !is_for_device || open.synced.load(Ordering::Acquire) >= open.struck {
            return Ok(Strike::Done);
        }
        let struck = Some(Struck { synced: open.synced.clone(), upto: open.struck });
        Ok(Strike::ToSync(ToSync { operation: Some(operation), file: sums, unnamed: None, struck }))
    }

    /// What it takes to sum pages of a subfile; where sums cannot be kept, what others count on is synced all the same.
    pub(crate) fn begin_sum(
        &mut self,
        (subfile, name): (Subfile, &str),
        (data, sync): (Arc<File>, Option<ToSync>),
        pages: Extent,
        operation: Operation,
    ) -> ToSum {
        let opened = self.opened(subfile, name, true).ok().flatten();
        let sums = opened.map(|open| open.file.clone());
        ToSum { operation, sync, data, sums, pages }
    }

    /// The sums of a subfile, open; made if there are none and there are to be.
    fn opened(&mut self, subfile: Subfile, name: &str, creates: bool) -> Result<Option<&mut Open>> {
        self.uses += 1;
        if !self.open.contains_key(&subfile) {
            let Some(file) = self.open_file(subfile.inode, name, creates)? else { return Ok(None) };
            if self.open.len() >= OPEN_MAX {
                let oldest = self.open.iter().min_by_key(|(_, open)| open.used);
                let oldest = *oldest.expect("there are open ones").0;
                self.open.remove(&oldest);
            }
            let (file, synced) = (Arc::new(file), Arc::default());
            self.open.insert(subfile, Open { file, struck: 1, synced, used: 0 });
        }
        let open = self.open.get_mut(&subfile).expect("it was just opened");
        open.used = self.uses;
        Ok(Some(open))
    }

    fn open_file(&self, inode: Inode, name: &str, creates: bool) -> Result<Option<File>> {
        let folder = folder(inode);
        let path = format!("{folder}/{name}");
        let open = |flags| {
            let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | flags;
            rustix::fs::openat(&self.directory, &*path, flags, Mode::RUSR | Mode::WUSR)
        };
        let opened = match (open(OFlags::empty()), creates) {
            (Err(Errno::NOENT), true) => {
                match rustix::fs::mkdirat(&self.directory, &*folder, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => open(OFlags::CREATE),
                    Err(error) => Err(error),
                }
            }
            (Err(Errno::NOENT), false) => return Ok(None),
            (opened, _) => opened,
        };
        Ok(Some(File::from(opened.map_err(code)?)))
    }
}

/// Holds those pages of an extent against their sums that keep something: all, or its first and its last.
fn look_at_edges(
    data: &File,
    sums: &File,
    extent: Extent,
    keeps: impl Fn(u64) -> bool,
) -> Result<Found> {
    let first = extent.offset / PAGE_BYTES;
    let last = extent.end().saturating_sub(1) / PAGE_BYTES;
    let is_inner = last > first + 1 && !keeps(first + 1);
    if !is_inner {
        return look(data, Some(sums), extent, keeps);
    }
    for page in [first, last] {
        let edge = Extent::new(page.saturating_mul(PAGE_BYTES), 1);
        let found = look(data, Some(sums), edge, &keeps)?;
        if matches!(found, Found::Damaged { .. }) {
            return Ok(found);
        }
    }
    Ok(Found::Intact)
}

/// Strikes out the sums of the pages that an extent touches. Tells whether there were any.
fn strike_out(sums: &File, extent: Extent) -> Result<bool> {
    let wrong = |error: std::io::Error| Code(error.raw_os_error().unwrap_or(5) as u16);
    let length = sums.metadata().map_err(wrong)?.len();
    let first = extent.offset / PAGE_BYTES * ENTRY_BYTES;
    if extent.end() / PAGE_BYTES >= u64::MAX / PAGE_BYTES {
        // Of all behind, however many.
        if length > first {
            sums.set_len(first).map_err(wrong)?;
        }
        return Ok(length > first);
    }
    let mut any = false;
    for batch in batches(extent, length.div_ceil(ENTRY_BYTES)) {
        let mut own = entries(sums, batch)?;
        if own.iter().any(|&byte| byte != 0) {
            own.fill(0);
            sums.write_all_at(&own, batch.0 * ENTRY_BYTES).map_err(wrong)?;
            any = true;
        }
    }
    Ok(any)
}

impl ToSum {
    /// Gives pages sums that have none, after what they hold is durable below this directory of subfiles. Where
    /// sums cannot be written, pages stay without.
    pub(crate) fn carry_out(&self, directory: &File) -> Result<()> {
        if let Some(sync) = &self.sync {
            sync.carry_out(directory)?;
        }
        let (Ok(data), Some(sums)) = (self.data.metadata(), &self.sums) else { return Ok(()) };
        for batch in batches(self.pages, data.len().div_ceil(PAGE_BYTES)) {
            let (Ok(mut own), Ok(bytes)) = (entries(sums, batch), pages(&self.data, batch)) else {
                continue;
            };
            let content = bytes.chunks_exact(PAGE_BYTES as usize);
            for (entry, content) in own.chunks_exact_mut(ENTRY_BYTES as usize).zip(content) {
                if sum_in(entry).is_none() {
                    entry.copy_from_slice(&entry_of(crc32c::crc32c(content)));
                }
            }
            let _ = sums.write_all_at(&own, batch.0 * ENTRY_BYTES);
        }
        Ok(())
    }
}

/// Pages of a subfile that do not have their sums, while nobody serves it.
pub(crate) fn damaged_runs(data: &Path, sums: &Path) -> std::io::Result<Vec<Extent>> {
    let sums = match File::open(sums) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let data = File::open(data)?;
    let length = data.metadata()?.len();
    let mut damaged: Vec<Extent> = Vec::new();
    for (from, to) in batches(Extent::new(0, length), u64::MAX) {
        for page in from..to {
            let at = page * PAGE_BYTES;
            // What cannot be read at all is told by who reads it.
            if let Ok(Found::Damaged { .. }) =
                look(&data, Some(&sums), Extent::new(at, 1), |_| true)
            {
                match damaged.last_mut().filter(|run| run.end() == at) {
                    Some(run) => run.length += PAGE_BYTES,
                    None => damaged.push(Extent::new(at, PAGE_BYTES)),
                }
            }
        }
    }
    Ok(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBFILE: Subfile = Subfile { inode: Inode(0x1234), index: 0 };
    const NAME: (Subfile, &str) = (SUBFILE, "0000000000001234");
    const NOBODYS: Operation = Operation(1);

    /// A subfile of some bytes and its sums.
    fn summed(bytes: &[u8]) -> (tempfile::TempDir, Sums, Arc<File>) {
        let directory = tempfile::tempdir().unwrap();
        let sums = Sums::at(&directory.path().join("sums"), true).unwrap();
        let options = File::options().read(true).write(true).create(true).truncate(true).clone();
        let data = Arc::new(options.open(directory.path().join("data")).unwrap());
        data.write_all_at(bytes, 0).unwrap();
        (directory, sums, data)
    }

    fn sum(sums: &mut Sums, data: &Arc<File>) {
        let all = Extent::new(0, 1 << 30);
        let job = sums.begin_sum(NAME, (data.clone(), None), all, NOBODYS);
        job.carry_out(data).unwrap();
    }

    fn look(sums: &mut Sums, data: &File) -> Found {
        sums.look(NAME, data, &[Extent::new(0, 1 << 20)]).unwrap()
    }

    fn strike(sums: &mut Sums, data: &File, extent: Extent, is_whole: bool) -> Strike {
        sums.strike(NAME, Some(data), (&[extent], is_whole), NOBODYS).unwrap()
    }

    #[test]
    fn a_byte_that_the_device_has_changed_is_found_wherever_it_lies() {
        let (_directory, mut sums, data) = summed(&[7; 10_000]);
        assert_eq!(look(&mut sums, &data), Found::Bare { from: 0, to: 12_288 });
        sum(&mut sums, &data);
        assert_eq!(look(&mut sums, &data), Found::Intact);
        for at in [0, 4095, 4096, 9999] {
            data.write_all_at(b"8", at).unwrap();
            let from = at / PAGE_BYTES * PAGE_BYTES;
            let damaged = Found::Damaged { from, to: from + PAGE_BYTES };
            assert_eq!(look(&mut sums, &data), damaged, "{at}");
            data.write_all_at(b"\x07", at).unwrap();
        }
        assert_eq!(look(&mut sums, &data), Found::Intact);
        data.set_len(9000).unwrap();
        assert_eq!(look(&mut sums, &data), Found::Damaged { from: 8192, to: 12_288 });
    }

    #[test]
    fn what_is_struck_out_goes_to_the_device_once_and_accuses_nobody() {
        let (_directory, mut sums, data) = summed(&[7; 20_000]);
        let first = Extent::new(0, 4096);
        assert!(matches!(strike(&mut sums, &data, first, true), Strike::Done), "no sums yet");
        sum(&mut sums, &data);
        let Strike::ToSync(job) = strike(&mut sums, &data, first, true) else { panic!("durable") };
        // Not before it is there.
        assert!(matches!(strike(&mut sums, &data, first, true), Strike::ToSync(_)));
        job.carry_out(&data).unwrap();
        assert!(matches!(strike(&mut sums, &data, first, true), Strike::Done));
        data.write_all_at(b"new", 17).unwrap();
        assert_eq!(look(&mut sums, &data), Found::Bare { from: 0, to: 4096 });
        // A new life does not know what the one before has brought to the device.
        let mut again = Sums { open: BTreeMap::new(), ..sums };
        assert!(matches!(strike(&mut again, &data, first, true), Strike::ToSync(_)));
        let behind = Extent::new(9000, u64::MAX - 9000);
        assert!(matches!(strike(&mut again, &data, behind, true), Strike::ToSync(_)));
        data.set_len(9000).unwrap();
        assert_eq!(look(&mut again, &data), Found::Bare { from: 0, to: 12_288 });
    }

    #[test]
    fn damage_is_not_summed_anew_with_what_is_written_beside_it() {
        let (_directory, mut sums, data) = summed(&[7; 20_000]);
        sum(&mut sums, &data);
        data.write_all_at(b"8", 4100).unwrap();
        let within = Extent::new(5000, 10);
        let damaged = (PAGE_BYTES, 2 * PAGE_BYTES);
        let told = |strike| match strike {
            Strike::Damaged { from, to } => (from, to),
            _ => (0, 0),
        };
        assert_eq!(told(strike(&mut sums, &data, within, true)), damaged);
        assert_eq!(told(strike(&mut sums, &data, Extent::new(0, 20_000), false)), damaged);
        assert_eq!(told(strike(&mut sums, &data, Extent::new(5000, 15_000), true)), damaged);
        // Who writes it all, mends it.
        let all = Extent::new(0, 20_480);
        assert!(matches!(strike(&mut sums, &data, all, true), Strike::ToSync(_)));
    }

    #[test]
    fn an_entry_that_is_damaged_itself_is_none() {
        assert_eq!(sum_in(&entry_of(0xdead_beef)), Some(0xdead_beef));
        assert_eq!(sum_in(&[0; 8]), None);
        for bit in 0..64 {
            let mut entry = entry_of(77);
            entry[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(sum_in(&entry), None, "{bit}");
        }
    }
}
