//! A hard disk: position, then transfer. After Kuhn 2009 (PIOsimHD's refined disk model).
//!
//! Positioning costs nothing when an access continues the last one, half a rotation and a
//! track-to-track seek when it stays near, half a rotation and an average seek otherwise. Where a
//! file lies on the platter is not modelled: another file is always far. See
//! `docs/models/classic-hdd.md`.

use crate::{Access, Figures, Rate, Seek, Service, Size, Time, nanos};
use iolab_vocab::FileId;
use serde::Deserialize;

/// A disk as a platform file describes it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct HddModel {
    /// Rotations per minute.
    pub rpm: f64,
    /// Seek to a neighbouring track.
    pub track_seek: Time,
    /// Seek to anywhere.
    pub average_seek: Time,
    /// Distances below this are near.
    pub near_bytes: Size,
    /// Sequential transfer, bytes per second.
    pub rate: Rate,
}

impl Default for HddModel {
    /// The disk of the published evaluation.
    fn default() -> HddModel {
        HddModel {
            rpm: 7200.0,
            track_seek: Time(0.001),
            average_seek: Time(0.01),
            near_bytes: Size(5 << 20),
            rate: Rate(50.0 * 1048576.0),
        }
    }
}

impl HddModel {
    /// What policies may know of it.
    pub fn figures(&self) -> Figures {
        let half_rotation = 30.0 / self.rpm;
        Figures {
            near: Time(half_rotation + self.track_seek.0),
            far: Time(half_rotation + self.average_seek.0),
            rate: self.rate,
        }
    }
}

/// A disk at work: it remembers where its head is.
#[derive(Clone, Debug)]
pub struct Hdd {
    model: HddModel,
    last_file: FileId,
    last_end: u64,
}

impl Hdd {
    /// A disk whose head is anywhere.
    pub fn new(model: HddModel) -> Hdd {
        Hdd { model, last_file: FileId::NONE, last_end: 0 }
    }

    /// Serves one access, which starts when the one before has ended.
    pub fn serve(&mut self, access: Access) -> Service {
        let seek = self.seek_to(access);
        self.last_file = access.file;
        self.last_end = access.extent.end();
        let transfer_seconds = access.extent.length as f64 / self.model.rate.0;
        let duration = nanos(self.position_seconds(seek) + transfer_seconds);
        Service::with_transfer(duration, transfer_seconds, seek)
    }

    fn seek_to(&self, access: Access) -> Seek {
        let offset = access.extent.offset;
        match access.file == self.last_file {
            true if offset == self.last_end => Seek::None,
            true if offset.abs_diff(self.last_end) < self.model.near_bytes.0 => Seek::Near,
            _ => Seek::Far,
        }
    }

    fn position_seconds(&self, seek: Seek) -> f64 {
        let figures = self.model.figures();
        match seek {
            Seek::None => 0.0,
            Seek::Near => figures.near.0,
            Seek::Far => figures.far.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use iolab_vocab::{Extent, Nanos};

    fn read(file: u32, offset: u64, length: u64) -> Access {
        Access {
            direction: Direction::Read,
            file: FileId(file),
            extent: Extent::new(offset, length),
        }
    }

    #[test]
    fn the_first_access_and_another_file_are_far_a_continuation_is_free() {
        let mut disk = Hdd::new(HddModel::default());
        let megabyte = 1 << 20;
        assert_eq!(disk.serve(read(0, 0, megabyte)).duration, Nanos(34_166_666));
        assert_eq!(disk.serve(read(0, megabyte, megabyte)).duration, Nanos(20_000_000));
        assert_eq!(disk.serve(read(0, megabyte, 0)).duration, Nanos(5_166_666));
        assert_eq!(disk.serve(read(1, megabyte, 0)).seek, Seek::Far);
    }

    #[test]
    fn near_ends_exactly_at_its_distance_in_both_directions() {
        let mut disk = Hdd::new(HddModel::default());
        let near = 5 << 20;
        disk.serve(read(0, near, 0));
        assert_eq!(disk.clone().serve(read(0, 2 * near - 1, 1)).seek, Seek::Near);
        assert_eq!(disk.clone().serve(read(0, 2 * near, 1)).seek, Seek::Far);
        assert_eq!(disk.clone().serve(read(0, 1, 1)).seek, Seek::Near);
        assert_eq!(disk.serve(read(0, 0, 1)).seek, Seek::Far);
    }
}
