//! Where the time of a call on a simulated cluster went: its parts, which add up to what it took.
//!
//! [`Ways`] follows the causes of a call from its end back to its start and says of each stretch what it was
//! spent with; [`PartSums`] adds that up over a run.

pub(crate) mod cluster;
mod sums;
mod way;

pub use sums::{PartRow, PartSums};
pub use way::{Spent, Ways};

use iolab_vocab::Nanos;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// What a stretch of a call is spent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// In the client, before its request leaves and after the last answer has come.
    Client,
    /// A request or its data leaves the client.
    Sending,
    /// Between a message's last byte at its sender and at its receiver.
    Wire,
    /// The server takes nothing, its memory being full.
    Memory,
    /// The server has the request and does nothing for it.
    ServerWait,
    /// What it needs has not begun on the device.
    DeviceWait,
    /// The device gets to where its first byte is.
    Positioning,
    /// The device moves bytes.
    Transferring,
    /// The server's answer is made and leaves.
    Answering,
    /// Other ranks are waited for, or nobody knows.
    Rest,
}

impl Part {
    /// All, in the order in which a request passes through them.
    pub const ALL: [Part; 10] = [
        Part::Client,
        Part::Sending,
        Part::Wire,
        Part::Memory,
        Part::ServerWait,
        Part::DeviceWait,
        Part::Positioning,
        Part::Transferring,
        Part::Answering,
        Part::Rest,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Client => "in the client",
            Part::Sending => "sending",
            Part::Wire => "on the wire",
            Part::Memory => "waiting for the server's memory",
            Part::ServerWait => "waiting at the server",
            Part::DeviceWait => "waiting for the device",
            Part::Positioning => "positioning",
            Part::Transferring => "transferring",
            Part::Answering => "answering",
            Part::Rest => "rest",
        }
    }

    /// Its key in documents.
    pub const fn key(self) -> &'static str {
        match self {
            Part::Client => "client_ns",
            Part::Sending => "sending_ns",
            Part::Wire => "wire_ns",
            Part::Memory => "memory_ns",
            Part::ServerWait => "server_wait_ns",
            Part::DeviceWait => "device_wait_ns",
            Part::Positioning => "positioning_ns",
            Part::Transferring => "transferring_ns",
            Part::Answering => "answering_ns",
            Part::Rest => "rest_ns",
        }
    }
}

/// How long each part took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([u64; Part::ALL.len()]);

impl Parts {
    /// How long one took.
    pub fn of(&self, part: Part) -> u64 {
        self.0[part as usize]
    }

    /// All of them, which is what the calls took.
    pub fn total(&self) -> u64 {
        self.sum(&Part::ALL)
    }

    /// For devices: until one begins, gets there, and moves bytes, or has freed memory.
    pub(crate) fn for_devices(&self) -> u64 {
        self.sum(&[Part::Memory, Part::DeviceWait, Part::Positioning, Part::Transferring])
    }

    /// Several together.
    pub(crate) fn sum(&self, parts: &[Part]) -> u64 {
        parts.iter().fold(0, |sum, &part| sum.saturating_add(self.of(part)))
    }

    /// Each with its name, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Part, u64)> + '_ {
        Part::ALL.into_iter().map(|part| (part, self.of(part)))
    }

    pub(crate) fn add(&mut self, part: Part, time: Nanos) {
        let sum = &mut self.0[part as usize];
        *sum = sum.saturating_add(time.0);
    }

    pub(crate) fn merge(&mut self, other: &Parts) {
        other.iter().for_each(|(part, ns)| self.add(part, Nanos(ns)));
    }
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Part::ALL.len()))?;
        self.iter().try_for_each(|(part, ns)| map.serialize_entry(part.key(), &ns))?;
        map.end()
    }
}
