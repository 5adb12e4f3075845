//! A hard disk with a seek curve, zones and a command queue.
//!
//! Seeks grow with the square root of the distance, scaled so that uniformly random ones take the
//! average seek (Ruemmler and Wilkes 1994); tracks further in hold less, so the rate falls from zone
//! to zone. With several commands queued the drive takes the one it reaches first: of n random ones
//! the best is, in the mean, 2 / (n + 1) of the way and 1 / (n + 1) of a rotation off (what shortest
//! access time first gains, Worthington, Ganger and Patt 1994). That is charged as a mean; the order
//! itself is not simulated. See `docs/models/hdd-zoned.md`.

use crate::{Access, Figures, Rate, Seek, Service, Size, Time, nanos};
use iolab_vocab::{FileId, Nanos};
use serde::Deserialize;
use std::collections::VecDeque;

/// A disk as a platform file describes it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ZonedHddModel {
    /// All of it.
    pub capacity_bytes: Size,
    /// Where files begin: each so far behind the one before, around the end.
    pub file_bytes: Size,
    /// Rotations per minute.
    pub rpm: f64,
    /// Seek to a neighbouring track.
    pub track_seek: Time,
    /// Mean of seeks between random places.
    pub average_seek: Time,
    /// Bytes per second in the outermost zone, where the first file begins.
    pub outer_rate: Rate,
    /// Bytes per second in the innermost zone.
    pub inner_rate: Rate,
    /// Zones, all of one size.
    pub zones: u32,
    /// Commands the drive chooses from.
    pub queue_depth: u32,
    /// Distances below this count as near.
    pub near_bytes: Size,
}

impl Default for ZonedHddModel {
    /// A desktop drive of 2009 by its class: 500 GB, 7200 RPM, 130 to 65 MB/s, native queue of 32.
    fn default() -> ZonedHddModel {
        ZonedHddModel {
            capacity_bytes: Size(500_000_000_000),
            file_bytes: Size(10 << 30),
            rpm: 7200.0,
            track_seek: Time(0.001),
            average_seek: Time(0.0085),
            outer_rate: Rate(130e6),
            inner_rate: Rate(65e6),
            zones: 16,
            queue_depth: 32,
            near_bytes: Size(5 << 20),
        }
    }
}

impl ZonedHddModel {
    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !(self.rpm.is_finite() && self.rpm > 0.0) {
            return Err(format!("rpm = {} must be above 0", self.rpm));
        }
        if self.average_seek < self.track_seek {
            return Err("average_seek is shorter than track_seek".to_owned());
        }
        let counts = [
            ("capacity_bytes", self.capacity_bytes.0, u64::MAX),
            ("zones", u64::from(self.zones), 65_536),
            ("queue_depth", u64::from(self.queue_depth), 65_536),
        ];
        match counts.into_iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
            None => Ok(()),
            Some((key, value, most)) => Err(format!("{key} = {value} must be 1 to {most}")),
        }
    }

    /// What policies may know of it.
    pub(crate) fn figures(&self) -> Figures {
        let half_rotation = 30.0 / self.rpm;
        Figures {
            near: Time(half_rotation + self.track_seek.0),
            far: Time(half_rotation + self.average_seek.0),
            rate: Rate(f64::midpoint(self.outer_rate.0, self.inner_rate.0)),
        }
    }

    /// Bytes per second at a place, as a part of the capacity.
    fn rate(&self, place: f64) -> f64 {
        let zone = (place * f64::from(self.zones)).floor().min(f64::from(self.zones - 1));
        let inward = if self.zones > 1 { zone / f64::from(self.zones - 1) } else { 0.0 };
        self.outer_rate.0 + (self.inner_rate.0 - self.outer_rate.0) * inward
    }

    /// Seconds to get from one place to another as far away, as a part of the capacity. The root
    /// of the distance of two random places is 8/15 in the mean.
    fn seek_seconds(&self, distance: f64) -> f64 {
        let further = self.average_seek.0 - self.track_seek.0;
        self.track_seek.0 + further * distance.sqrt() * 15.0 / 8.0
    }
}

/// A disk at work.
#[derive(Clone, Debug)]
pub struct ZonedHdd {
    model: ZonedHddModel,
    last_file: FileId,
    last_end: u64,
    last_address: u64,
    /// When each command under way ends.
    ends: VecDeque<Nanos>,
}

impl ZonedHdd {
    /// A disk whose head is outermost.
    pub fn new(model: ZonedHddModel) -> ZonedHdd {
        let (last_file, ends) = (FileId::NONE, VecDeque::new());
        ZonedHdd { model, last_file, last_end: 0, last_address: 0, ends }
    }

    /// Serves one access that arrives at `now`, after those under way.
    pub fn serve(&mut self, now: Nanos, access: Access) -> Service {
        while self.ends.front().is_some_and(|end| *end <= now) {
            self.ends.pop_front();
        }
        let queued = self.ends.len() + 1;
        let address = self.address(access);
        let seek = self.seek_to(access);
        let capacity = self.model.capacity_bytes.0 as f64;
        let distance = address.abs_diff(self.last_address) as f64 / capacity;
        let position = match seek {
            Seek::None => 0.0,
            _ => self.position_seconds(distance, queued as f64),
        };
        let transfer = access.extent.length as f64 / self.model.rate(address as f64 / capacity);
        let start = self.ends.back().map_or(now, |end| (*end).max(now));
        let end = start.after(nanos(position + transfer));
        self.ends.push_back(end);
        self.last_file = access.file;
        self.last_end = access.extent.end();
        self.last_address = (address + access.extent.length) % self.model.capacity_bytes.0;
        Service::with_transfer(end.since(now), transfer, seek)
    }

    /// Commands it wants in flight.
    pub fn queue_depth(&self) -> u32 {
        self.model.queue_depth
    }

    fn address(&self, access: Access) -> u64 {
        let start = u64::from(access.file.0).wrapping_mul(self.model.file_bytes.0);
        start.wrapping_add(access.extent.offset) % self.model.capacity_bytes.0
    }

    fn seek_to(&self, access: Access) -> Seek {
        let offset = access.extent.offset;
        match access.file == self.last_file {
            true if offset == self.last_end => Seek::None,
            true if offset.abs_diff(self.last_end) < self.model.near_bytes.0 => Seek::Near,
            _ => Seek::Far,
        }
    }

    /// The best of so many: a part of the way, and of a rotation.
    fn position_seconds(&self, distance: f64, queued: f64) -> f64 {
        let rotation = 60.0 / self.model.rpm;
        self.model.seek_seconds(distance * 2.0 / (queued + 1.0)) + rotation / (queued + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use iolab_vocab::{Extent, Random, Seed};

    fn read(file: u32, offset: u64, length: u64) -> Access {
        let extent = Extent::new(offset, length);
        Access { direction: Direction::Read, file: FileId(file), extent }
    }

    /// A round disk: 100 rotations/s, 1000 bytes in ten zones from 1000 down to 100 B/s.
    fn model() -> ZonedHddModel {
        ZonedHddModel {
            capacity_bytes: Size(1000),
            file_bytes: Size(0),
            rpm: 6000.0,
            track_seek: Time(0.001),
            average_seek: Time(0.009),
            outer_rate: Rate(1000.0),
            inner_rate: Rate(100.0),
            zones: 10,
            queue_depth: 4,
            near_bytes: Size(50),
        }
    }

    fn micros(disk: &mut ZonedHdd, now: u64, access: Access) -> u64 {
        disk.serve(Nanos(now), access).duration.get() / 1000
    }

    #[test]
    fn the_rate_falls_from_zone_to_zone() {
        let mut disk = ZonedHdd::new(model());
        micros(&mut disk, 0, read(0, 0, 0));
        assert_eq!(micros(&mut disk, 1 << 40, read(0, 0, 50)), 50_000);
        micros(&mut disk, 2 << 40, read(0, 950, 0));
        assert_eq!(micros(&mut disk, 3 << 40, read(0, 950, 50)), 500_000);
    }

    #[test]
    fn a_seek_takes_the_root_of_its_distance_and_half_a_rotation() {
        let mut disk = ZonedHdd::new(model());
        // A quarter of the way: 1 ms + 8 ms * 0.5 * 15/8 = 8.5 ms, and 5 ms of rotation.
        assert_eq!(micros(&mut disk, 0, read(0, 250, 0)), 13_500);
        assert_eq!(micros(&mut disk, 1 << 40, read(0, 250, 0)), 0);
    }

    #[test]
    fn random_seeks_take_the_average_seek_in_the_mean() {
        let (model, mut random) = (model(), Random::new(Seed(5)));
        let mut place = || random.below(1_000_000) as f64 / 1e6;
        let count = 100_000;
        let sum: f64 = (0..count).map(|_| model.seek_seconds((place() - place()).abs())).sum();
        assert!((sum / f64::from(count) - 0.009).abs() < 1e-4, "{}", sum / f64::from(count));
    }

    #[test]
    fn queued_commands_wait_for_each_other_and_make_each_other_cheaper() {
        let mut disk = ZonedHdd::new(model());
        let first = micros(&mut disk, 0, read(0, 250, 0));
        // Second of two: from 250 to 500, but 2/3 of the way and a third of a rotation:
        // 1 + 8 * sqrt(1/6) * 15/8 = 7.1237 ms, and 3.3333 ms, after the first one's 13.5 ms.
        let second = micros(&mut disk, 0, read(0, 500, 0));
        assert_eq!((first, second), (13_500, 23_957));
        // Alone again.
        assert_eq!(micros(&mut disk, 1 << 40, read(0, 250, 0)), 13_500);
    }
}
