//! A solid-state drive down to its flash: pages of 4 KiB on several channels, erase blocks,
//! garbage collection, and a write cache.
//!
//! After Agrawal et al., "Design Tradeoffs for SSD Performance" (USENIX 2008), whose figures are
//! the default. A read costs whole pages, dealt out over the channels by page number, and the
//! host's bus. A write enters the cache by the bus and is programmed behind it; it waits only as
//! long as the backlog exceeds the cache. Parts of pages are read before they are programmed.
//! Pages are never overwritten: the mapping ([`super::ftl`]) puts them elsewhere, and when free
//! blocks run out the one with fewest valid pages is moved and erased. See `docs/models/ssd.md`.

use crate::ftl::Ftl;
use crate::{Access, Direction, Figures, Rate, Seek, Service, Size, Time, nanos};
use iolab_vocab::Nanos;
use serde::Deserialize;

/// A drive as a platform file describes it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct SsdModel {
    /// What is sold; files beyond it push out what was written first.
    pub capacity_bytes: Size,
    /// Flash beyond the capacity, as a part of it.
    pub spare: f64,
    /// What is read and programmed at once.
    pub page_bytes: Size,
    /// Pages that are erased at once.
    pub block_pages: u32,
    /// Flash that works at the same time.
    pub channels: u32,
    /// One page from flash to the controller.
    pub read_page: Time,
    /// One page from the controller to flash.
    pub program_page: Time,
    /// One block.
    pub erase_block: Time,
    /// Bytes per second between host and drive.
    pub rate: Rate,
    /// Written data that need not wait for flash.
    pub cache_bytes: Size,
    /// Requests the server keeps in flight.
    pub queue_depth: u32,
}

impl Default for SsdModel {
    fn default() -> SsdModel {
        SsdModel {
            capacity_bytes: Size(32 << 30),
            spare: 0.15,
            page_bytes: Size(4096),
            block_pages: 64,
            channels: 10,
            read_page: Time(125e-6),
            program_page: Time(300e-6),
            erase_block: Time(1.5e-3),
            rate: Rate(250.0 * 1048576.0),
            cache_bytes: Size(16 << 20),
            queue_depth: 1,
        }
    }
}

impl SsdModel {
    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let counts = [
            ("page_bytes", self.page_bytes.0, 1, 1 << 20),
            ("block_pages", u64::from(self.block_pages), 2, 1 << 16),
            ("channels", u64::from(self.channels), 1, 4096),
            ("queue_depth", u64::from(self.queue_depth), 1, 65_536),
        ];
        for (key, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                return Err(format!("{key} = {value} must be {least} to {most}"));
            }
        }
        if !(self.spare > 0.0 && self.spare <= 10.0) {
            return Err(format!("spare = {} must be above 0 and at most 10", self.spare));
        }
        let block_bytes = self.page_bytes.0 * u64::from(self.block_pages);
        let blocks = self.capacity_bytes.0 / block_bytes;
        if !(4..=u64::from(u32::MAX) / u64::from(self.block_pages) / 16).contains(&blocks) {
            return Err(format!("capacity_bytes = {} are {blocks} blocks", self.capacity_bytes.0));
        }
        Ok(())
    }

    /// What policies may know of it.
    pub(crate) fn figures(&self) -> Figures {
        let flash = self.page_bytes.0 as f64 * f64::from(self.channels) / self.read_page.0;
        Figures::flat(self.read_page, Rate(flash.min(self.rate.0)))
    }
}

/// A drive at work.
#[derive(Clone, Debug)]
pub struct Ssd {
    model: SsdModel,
    ftl: Ftl,
    channel_free_at: Vec<Nanos>,
    bus_free_at: Nanos,
    /// When everything written so far is in flash.
    programmed_at: Nanos,
}

impl Ssd {
    /// A fresh drive.
    pub fn new(model: SsdModel) -> Ssd {
        let block_bytes = model.page_bytes.0 * u64::from(model.block_pages);
        let flash_bytes = model.capacity_bytes.0 as f64 * (1.0 + model.spare);
        let blocks = (flash_bytes / block_bytes as f64) as u32;
        Ssd {
            model,
            ftl: Ftl::new(blocks, model.block_pages),
            channel_free_at: vec![Nanos::ZERO; model.channels.max(1) as usize],
            bus_free_at: Nanos::ZERO,
            programmed_at: Nanos::ZERO,
        }
    }

    /// Serves one access that arrives at `now`, beside those still under way.
    pub fn serve(&mut self, now: Nanos, access: Access) -> Service {
        let done = match access.direction {
            Direction::Read => self.read(now, access),
            Direction::Write => self.write(now, access),
        };
        let transfer_seconds = access.extent.length as f64 / self.model.rate.0;
        Service::with_transfer(done.since(now), transfer_seconds, Seek::None)
    }

    /// Pages programmed for each page the host wrote, so far.
    pub fn write_amplification(&self) -> f64 {
        self.ftl.write_amplification()
    }

    /// Requests it wants in flight.
    pub fn queue_depth(&self) -> u32 {
        self.model.queue_depth
    }

    /// First page and number of pages.
    fn pages(&self, access: Access) -> (u64, u64) {
        let (page, extent) = (self.model.page_bytes.0, access.extent);
        let first = extent.offset / page;
        (first, if extent.is_empty() { 0 } else { extent.end().div_ceil(page) - first })
    }

    fn transfer(&self, bytes: u64) -> Nanos {
        nanos(bytes as f64 / self.model.rate.0)
    }

    /// Channels work side by side; the bus starts with the first page and cannot end before the
    /// last one is there.
    fn read(&mut self, now: Nanos, access: Access) -> Nanos {
        let (first, count) = self.pages(access);
        let channels = self.channel_free_at.len() as u64;
        let page_time = nanos(self.model.read_page.0);
        let (mut first_there, mut last_there) = (None::<Nanos>, now);
        for place in 0..count.min(channels) {
            let channel = &mut self.channel_free_at[((first + place) % channels) as usize];
            let pages = (count - place).div_ceil(channels);
            let start = (*channel).max(now);
            *channel = start.after(Nanos(page_time.0 * pages));
            last_there = last_there.max(*channel);
            let there = start.after(page_time);
            first_there = Some(first_there.map_or(there, |first| first.min(there)));
        }
        let start = self.bus_free_at.max(first_there.unwrap_or(now));
        let all_sent = start.after(self.transfer(access.extent.length));
        let last_page = self.model.page_bytes.0.min(access.extent.length);
        self.bus_free_at = all_sent.max(last_there.after(self.transfer(last_page)));
        self.bus_free_at
    }

    /// By the bus into the cache, and from there into flash.
    fn write(&mut self, now: Nanos, access: Access) -> Nanos {
        let (first, count) = self.pages(access);
        self.bus_free_at = self.bus_free_at.max(now).after(self.transfer(access.extent.length));
        let work = self.partial_pages(access) * self.model.read_page.0
            + self.program(access, first, count);
        let work = nanos(work / self.channel_free_at.len() as f64);
        self.programmed_at = self.programmed_at.max(now).after(work);
        let cached = self.model.cache_bytes.0 as f64 / self.model.page_bytes.0 as f64
            * self.model.program_page.0
            / self.channel_free_at.len() as f64;
        self.bus_free_at.max(Nanos(self.programmed_at.0.saturating_sub(nanos(cached).0)))
    }

    /// Pages at either end of which only a part is written, and that hold something already.
    fn partial_pages(&self, access: Access) -> f64 {
        let page = self.model.page_bytes.0;
        let ends = [access.extent.offset, access.extent.end()];
        let mut cut = ends.into_iter().filter(|at| at % page != 0).map(|at| at / page);
        let pages = [cut.next(), cut.next()];
        let is_one = pages[0] == pages[1];
        let pages = pages.into_iter().take(if is_one { 1 } else { 2 }).flatten();
        pages.filter(|page| self.ftl.holds((access.file, *page))).count() as f64
    }

    /// Seconds of one channel that programming these pages takes, moves and erasures included.
    fn program(&mut self, access: Access, first: u64, count: u64) -> f64 {
        let before = self.ftl.totals();
        (first..first + count).for_each(|page| self.ftl.write((access.file, page)));
        let after = self.ftl.totals();
        let (moved, erased) = (after.moved - before.moved, after.erased - before.erased);
        (count + moved) as f64 * self.model.program_page.0
            + moved as f64 * self.model.read_page.0
            + erased as f64 * self.model.erase_block.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Extent, FileId};

    fn access(direction: Direction, offset: u64, length: u64) -> Access {
        Access { direction, file: FileId(0), extent: Extent::new(offset, length) }
    }

    /// Ten channels, round figures: a page read in 100 us, programmed in 300 us; 4096 B take 40 us.
    fn model() -> SsdModel {
        SsdModel {
            capacity_bytes: Size(64 * 16 * 4096),
            spare: 0.25,
            block_pages: 16,
            read_page: Time(100e-6),
            program_page: Time(300e-6),
            rate: Rate(4096.0 / 40e-6),
            cache_bytes: Size(0),
            ..SsdModel::default()
        }
    }

    fn micros(drive: &mut Ssd, now: u64, access: Access) -> u64 {
        drive.serve(Nanos(now * 1000), access).duration.get() / 1000
    }

    #[test]
    fn a_byte_costs_a_page_and_ten_pages_cost_one_page_and_the_bus() {
        let mut drive = Ssd::new(model());
        assert_eq!(drive.serve(Nanos(0), access(Direction::Read, 0, 1)).duration, Nanos(100_009));
        let mut drive = Ssd::new(model());
        assert_eq!(micros(&mut drive, 0, access(Direction::Read, 0, 4096)), 140);
        let mut drive = Ssd::new(model());
        // One page on each channel at 100 us, then ten pages by the bus.
        assert_eq!(micros(&mut drive, 0, access(Direction::Read, 0, 40_960)), 500);
        // A read across a page boundary costs two pages, on two channels.
        assert_eq!(micros(&mut drive, 1000, access(Direction::Read, 4095, 2)), 100);
    }

    #[test]
    fn pages_of_one_channel_wait_for_each_other() {
        let slow = SsdModel { read_page: Time(1e-3), ..model() };
        let mut drive = Ssd::new(slow);
        // 20 pages on ten channels: two rounds of 1 ms, then the last page's 40 us.
        assert_eq!(micros(&mut drive, 0, access(Direction::Read, 0, 81_920)), 2040);
        let mut drive = Ssd::new(slow);
        let first = micros(&mut drive, 0, access(Direction::Read, 0, 4096));
        let same_channel = micros(&mut drive, 0, access(Direction::Read, 40_960, 4096));
        let other_channel = micros(&mut drive, 0, access(Direction::Read, 4096, 4096));
        assert_eq!((first, same_channel, other_channel), (1040, 2040, 2080));
    }

    #[test]
    fn a_write_waits_for_flash_only_beyond_the_cache() {
        let mut drive = Ssd::new(model());
        // Ten pages in 300 us / 10 each; the bus needs 40 us for each.
        assert_eq!(micros(&mut drive, 0, access(Direction::Write, 0, 40_960)), 400);
        let slow = SsdModel { program_page: Time(3e-3), ..model() };
        let mut drive = Ssd::new(slow);
        assert_eq!(micros(&mut drive, 0, access(Direction::Write, 0, 40_960)), 3000);
        let cached = SsdModel { cache_bytes: Size(40_960), ..slow };
        let mut drive = Ssd::new(cached);
        assert_eq!(micros(&mut drive, 0, access(Direction::Write, 0, 40_960)), 400);
        // The backlog is 2.6 ms when the next ten come; one cache full of 3 ms is free.
        assert_eq!(micros(&mut drive, 400, access(Direction::Write, 40_960, 40_960)), 2600);
    }

    #[test]
    fn overwriting_a_part_of_a_page_reads_the_rest_first() {
        let mut drive = Ssd::new(model());
        assert_eq!(drive.partial_pages(access(Direction::Write, 10, 20)), 0.0);
        micros(&mut drive, 0, access(Direction::Write, 0, 3 * 4096));
        assert_eq!(drive.partial_pages(access(Direction::Write, 10, 20)), 1.0);
        assert_eq!(drive.partial_pages(access(Direction::Write, 10, 8192)), 2.0);
        assert_eq!(drive.partial_pages(access(Direction::Write, 0, 8192)), 0.0);
    }

    #[test]
    fn random_overwriting_of_a_full_drive_amplifies_and_sequential_does_not() {
        let pages = 64 * 16;
        let fill = |drive: &mut Ssd| {
            for page in 0..pages {
                drive.serve(Nanos(0), access(Direction::Write, page * 4096, 4096));
            }
        };
        let mut drive = Ssd::new(model());
        (0..4).for_each(|_| fill(&mut drive));
        assert_eq!(drive.write_amplification(), 1.0);
        let mut random = iolab_vocab::Random::new(iolab_vocab::Seed(1));
        for _ in 0..20 * pages {
            let page = random.below(pages);
            drive.serve(Nanos(0), access(Direction::Write, page * 4096, 4096));
        }
        let amplification = drive.write_amplification();
        // Uniform random writes with greedy cleaning and 20 % of all flash spare: (1 + s) / 2 s = 3
        // for a first-in-first-out cleaner; greedy is somewhat better.
        assert!((1.8..3.0).contains(&amplification), "{amplification}");
    }
}
