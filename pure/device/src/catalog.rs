//! The catalogue of devices: one variant each, from the platform file to the drive at work.

use crate::{
    Access, FlashModel, Hdd, HddModel, Nvme, NvmeModel, RamModel, Rate, Service, Ssd, SsdModel,
    Time, ZonedHdd, ZonedHddModel,
};
use iolab_vocab::Nanos;
use serde::Deserialize;

/// A device as a platform file describes it, by `model = "…"`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum DeviceModel {
    /// A hard disk.
    Hdd(HddModel),
    /// Constant and rate.
    Flash(FlashModel),
    /// Memory.
    Ram(RamModel),
    /// A drive with channels and a queue.
    Nvme(NvmeModel),
    /// A drive with pages, erase blocks and a write cache.
    Ssd(SsdModel),
    /// A hard disk with a seek curve, zones and a command queue.
    HddZoned(ZonedHddModel),
}

impl DeviceModel {
    /// What is wrong with it, if anything.
    pub fn check(&self) -> Result<(), String> {
        match self {
            DeviceModel::Hdd(model) if !(model.rpm.is_finite() && model.rpm > 0.0) => {
                Err(format!("rpm = {} must be above 0", model.rpm))
            }
            DeviceModel::Nvme(model) if !(1..=4096).contains(&model.channels) => {
                Err(format!("channels = {} must be 1 to 4096", model.channels))
            }
            DeviceModel::Nvme(model) if !(1..=65_536).contains(&model.queue_depth) => {
                Err(format!("queue_depth = {} must be 1 to 65536", model.queue_depth))
            }
            DeviceModel::Ssd(model) => model.check(),
            DeviceModel::HddZoned(model) => model.check(),
            _ => Ok(()),
        }
    }

    /// What policies may know of it.
    pub fn figures(&self) -> Figures {
        match *self {
            DeviceModel::Hdd(model) => model.figures(),
            DeviceModel::Flash(FlashModel { constant, rate }) => Figures::flat(constant, rate),
            DeviceModel::Ram(RamModel { latency, rate }) => Figures::flat(latency, rate),
            DeviceModel::Nvme(model) => Figures::flat(model.read_latency, model.read_rate),
            DeviceModel::Ssd(model) => model.figures(),
            DeviceModel::HddZoned(model) => model.figures(),
        }
    }

    /// Its name in platform files.
    pub fn name(&self) -> &'static str {
        match self {
            DeviceModel::Hdd(_) => "hdd",
            DeviceModel::Flash(_) => "flash",
            DeviceModel::Ram(_) => "ram",
            DeviceModel::Nvme(_) => "nvme",
            DeviceModel::Ssd(_) => "ssd",
            DeviceModel::HddZoned(_) => "hdd-zoned",
        }
    }

    /// One drive of this model.
    pub fn build(&self) -> Device {
        match self {
            DeviceModel::Hdd(model) => Device::Hdd(Hdd::new(*model)),
            DeviceModel::Flash(model) => Device::Flash(*model),
            DeviceModel::Ram(model) => Device::Ram(*model),
            DeviceModel::Nvme(model) => Device::Nvme(Nvme::new(*model)),
            DeviceModel::Ssd(model) => Device::Ssd(Box::new(Ssd::new(*model))),
            DeviceModel::HddZoned(model) => Device::HddZoned(Box::new(ZonedHdd::new(*model))),
        }
    }
}

/// A device in the few figures by which policies weigh one way of access against another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Before an access near the last one.
    pub near: Time,
    /// Before an access anywhere.
    pub far: Time,
    /// Bytes per second, one after the other.
    pub rate: Rate,
}

impl Figures {
    /// A device for which near and far are the same.
    pub fn flat(position: Time, rate: Rate) -> Figures {
        Figures { near: position, far: position, rate }
    }

    /// Bytes the device moves in the time of a short positioning: so long a hole between two
    /// reads is cheaper read than skipped.
    pub fn seek_bytes(&self) -> u64 {
        (self.near.0 * self.rate.0) as u64
    }
}

/// A drive at work.
#[derive(Clone, Debug)]
pub enum Device {
    /// A hard disk.
    Hdd(Hdd),
    /// Constant and rate.
    Flash(FlashModel),
    /// Memory.
    Ram(RamModel),
    /// A drive with channels and a queue.
    Nvme(Nvme),
    /// A drive with pages, erase blocks and a write cache.
    Ssd(Box<Ssd>),
    /// A hard disk with a seek curve, zones and a command queue.
    HddZoned(Box<ZonedHdd>),
}

impl Device {
    /// Serves an access that starts `now`.
    #[inline]
    pub fn serve(&mut self, now: Nanos, access: Access) -> Service {
        match self {
            Device::Hdd(disk) => disk.serve(access),
            Device::Flash(flash) => flash.serve(access),
            Device::Ram(ram) => ram.serve(access),
            Device::Nvme(drive) => drive.serve(now, access),
            Device::Ssd(drive) => drive.serve(now, access),
            Device::HddZoned(disk) => disk.serve(now, access),
        }
    }

    /// How many accesses it wants in flight; 1 for a drive that does one at a time.
    pub fn queue_depth(&self) -> u32 {
        match self {
            Device::Nvme(drive) => drive.queue_depth(),
            Device::Ssd(drive) => drive.queue_depth(),
            Device::HddZoned(disk) => disk.queue_depth(),
            _ => 1,
        }
    }
}
