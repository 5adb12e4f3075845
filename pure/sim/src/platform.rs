//! Platforms: what a cluster (or one machine) is made of, as a TOML file anyone can write.
//!
//! A platform has groups of equal nodes, switches, and links between switches. Every node hangs
//! on one switch by its NIC; a node may run client processes, one storage server, or both. What a
//! file leaves out has the value of the classic cluster. Reading rejects unknown keys; a cluster
//! simulation calls [`Platform::check`] first, which names whatever cannot work.
//!
//! A platform for local storage has none of these groups, but its own part beside them.

mod check;
mod draw;
mod names;

pub use iolab_device::{Rate, Size, Time};

use crate::workload::in_words;
use iolab_device::DeviceModel;
use iolab_device::local::LocalStorage;
use iolab_vocab::{Refusal, format_bytes};
use serde::Deserialize;

/// A platform as written down.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// What to call it in results.
    #[serde(default)]
    pub name: String,
    /// How messages and requests are cut.
    #[serde(default)]
    pub transport: Transport,
    /// How files are laid over servers.
    #[serde(default)]
    pub files: Files,
    /// Groups of equal nodes.
    #[serde(default)]
    pub nodes: Vec<NodeGroup>,
    /// The switches.
    #[serde(default)]
    pub switches: Vec<Switch>,
    /// Links between switches.
    #[serde(default)]
    pub links: Vec<Link>,
    /// Storage of the machine the programs themselves run on, as `iolab calibrate` writes it.
    pub local: Option<LocalStorage>,
}

/// How messages and requests are cut.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// Largest packet; a message is cut into these.
    pub packet_bytes: Size,
    /// Messages up to this size are sent without asking the receiver.
    pub eager_bytes: Size,
    /// Largest single access to a device.
    pub access_bytes: Size,
}

impl Default for Transport {
    fn default() -> Transport {
        Transport {
            packet_bytes: Size(100 << 10),
            eager_bytes: Size(100 << 10),
            access_bytes: Size(10 << 20),
        }
    }
}

/// How files are laid over servers: round robin from server 0.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// Bytes on one server before the next one's turn.
    pub stripe_bytes: Size,
}

impl Default for Files {
    fn default() -> Files {
        Files { stripe_bytes: Size(64 << 10) }
    }
}

/// `count` equal nodes.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    /// Name of the group; nodes are `name0`, `name1`, ….
    pub name: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// Processors of each.
    #[serde(default = "one")]
    pub cpus: u32,
    /// Speed of each processor.
    #[serde(default = "million")]
    pub instructions_per_second: f64,
    /// Main memory of each.
    #[serde(default = "classic_memory")]
    pub memory_bytes: Size,
    /// Bytes per second between processes of one node.
    #[serde(default = "classic_internal")]
    pub internal_rate: Rate,
    /// How each hangs on its switch.
    #[serde(default)]
    pub nic: Wire,
    /// Which switch; may be left out when there is only one.
    pub switch: Option<String>,
    /// Client processes on each.
    #[serde(default)]
    pub clients: u32,
    /// The storage server on each, if any.
    pub server: Option<Server>,
}

/// One direction of a cable: how fast, how long.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Wire {
    /// Bytes per second.
    pub rate: Rate,
    /// From leaving one end to arriving at the other.
    pub latency: Time,
}

impl Default for Wire {
    fn default() -> Wire {
        Wire { rate: Rate(100.0 * 1048576.0), latency: Time(0.0002) }
    }
}

/// A storage server.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Cache layer, a name of the catalogue of `policy::cache`; a run may choose another.
    #[serde(default = "no_cache")]
    pub cache: String,
    /// What it stores on.
    pub device: DeviceModel,
}

/// A store-and-forward switch.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Bytes per second through its backplane.
    #[serde(default = "classic_internal")]
    pub rate: Rate,
    /// Time to decide where a packet goes.
    #[serde(default)]
    pub latency: Time,
}

/// A cable between two switches, used in both directions.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// One end.
    pub from: String,
    /// The other end.
    pub to: String,
    /// How fast and how long, each way.
    #[serde(default)]
    pub wire: Wire,
}

fn one() -> u32 {
    1
}

fn million() -> f64 {
    1e6
}

fn classic_memory() -> Size {
    Size(1000 << 20)
}

fn classic_internal() -> Rate {
    Rate(1000.0 * 1048576.0)
}

fn no_cache() -> String {
    "none".to_owned()
}

/// Presets of local storage: calibrations of the machine of `docs/models/local.md`.
pub const LOCAL_PRESETS: &[(&str, &str)] = &[
    ("local-ext4", include_str!("platform/presets/local-ext4.toml")),
    ("local-tmpfs", include_str!("platform/presets/local-tmpfs.toml")),
];

/// The presets of clusters, by name, as TOML.
pub const PRESETS: &[(&str, &str)] = &[
    ("classic-hdd", include_str!("platform/presets/classic-hdd.toml")),
    ("classic-ssd", include_str!("platform/presets/classic-ssd.toml")),
    ("nvme", include_str!("platform/presets/nvme.toml")),
    ("burst-buffer", include_str!("platform/presets/burst-buffer.toml")),
];

impl Platform {
    /// Reads a platform; the error shows the place.
    pub fn parse(text: &str) -> Result<Platform, Refusal> {
        let platform: Platform = toml::from_str(text).map_err(|error| Refusal {
            message: format!("this platform cannot be read: {}", in_words(&error)),
            hint: "docs/models/platform.md lists every key; presets show examples".to_owned(),
        })?;
        match platform.local.as_ref().map_or(Ok(()), LocalStorage::check) {
            Ok(()) => Ok(platform),
            Err(message) => Err(Refusal {
                message: format!("[local]: {message}"),
                hint: "measure it anew with `iolab calibrate DIR`".to_owned(),
            }),
        }
    }

    /// The preset of that name.
    pub fn preset(name: &str) -> Result<Platform, Refusal> {
        let presets = || PRESETS.iter().chain(LOCAL_PRESETS);
        match presets().find(|preset| preset.0 == name) {
            Some((_, text)) => Platform::parse(text),
            None => {
                let names: Vec<_> = presets().map(|preset| preset.0).collect();
                Err(Refusal {
                    message: format!("there is no platform preset `{name}`"),
                    hint: format!("choose from {}, or give a TOML file", names.join(", ")),
                })
            }
        }
    }

    /// Number of client processes.
    pub fn client_count(&self) -> u64 {
        self.nodes.iter().map(|group| u64::from(group.count) * u64::from(group.clients)).sum()
    }

    /// Number of storage servers.
    pub fn server_count(&self) -> u64 {
        self.nodes.iter().filter(|group| group.server.is_some()).map(|g| u64::from(g.count)).sum()
    }
}

/// A server's memory holds so many accesses at least; a larger one would wait for ever.
const ACCESSES_IN_MEMORY: u64 = 4;

impl Platform {
    /// Largest single access to the device of a server of this group: what the transport says, but
    /// at most a quarter of the memory.
    pub fn access_bytes_of(&self, group: &NodeGroup) -> u64 {
        let most = group.memory_bytes.0 / ACCESSES_IN_MEMORY;
        self.transport.access_bytes.0.min(most).max(1)
    }

    /// What is simulated other than one may read in the platform file, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let is_cut = |group: &&NodeGroup| {
            group.server.is_some() && self.access_bytes_of(group) < self.transport.access_bytes.0
        };
        let note = |group: &NodeGroup| {
            format!(
                "servers `{}` access at most {} at once, a quarter of their memory, not \
                 access_bytes = {}",
                group.name,
                format_bytes(self.access_bytes_of(group)),
                format_bytes(self.transport.access_bytes.0)
            )
        };
        self.nodes.iter().filter(is_cut).map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_that_memory_cuts_is_told_wherever_the_platform_is_shown() {
        let text = "transport = { access_bytes = '10m' }\nswitches = [{ name = 's' }]
            nodes = [{ name = 'small', clients = 1, memory_bytes = '8m',
                       server = { device = { model = 'hdd' } } }]";
        let platform = Platform::parse(text).unwrap();
        let [note] = &platform.notes()[..] else { panic!("one note") };
        assert!(note.contains("`small` access at most 2 MiB"), "{note}");
        assert!(platform.draw_text().contains("access at most 2 MiB"), "{}", platform.draw_text());
        assert!(platform.draw_svg().into_string().contains("access at most 2 MiB"));
        let roomy = Platform::parse(&text.replace("'8m'", "'40m'")).unwrap();
        assert!(roomy.notes().is_empty() && !roomy.draw_text().contains("at most 2 MiB"));
    }

    #[test]
    fn every_preset_is_a_sound_platform() {
        for (name, _) in PRESETS {
            let platform = Platform::preset(name).unwrap();
            platform.check().unwrap();
            assert_eq!(platform.name, *name);
        }
    }

    #[test]
    fn the_documented_platform_is_sound() {
        let page = include_str!("../../../docs/models/platform.md");
        let text = page.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let platform = Platform::parse(text).unwrap();
        platform.check().unwrap();
        assert_eq!((platform.client_count(), platform.server_count()), (4, 2));
        // Everything but the name of a switch and the counts is the default it is said to be.
        let least = "switches = [{ name = 'rack' }, { name = 'storage' }]
            links = [{ from = 'rack', to = 'storage' }]
            nodes = [{ name = 'client', count = 4, switch = 'rack', clients = 1 },
                { name = 'server', count = 2, switch = 'storage',
                  server = { device = { model = 'hdd' } } }]";
        let least = Platform { name: platform.name.clone(), ..Platform::parse(least).unwrap() };
        assert_eq!(platform, least);
    }

    #[test]
    fn every_local_preset_has_storage() {
        for (name, _) in LOCAL_PRESETS {
            let platform = Platform::preset(name).unwrap();
            assert!(platform.local.is_some() && platform.name == *name);
        }
    }

    #[test]
    fn the_classic_preset_has_ten_clients_then_ten_servers() {
        let platform = Platform::preset("classic-hdd").unwrap();
        assert_eq!((platform.client_count(), platform.server_count()), (10, 10));
        assert_eq!(platform.nodes[0].clients, 1);
    }

    #[test]
    fn an_unknown_key_is_named() {
        let error = Platform::parse("[transport]\npaket_bytes = 3").unwrap_err();
        assert!(error.message.contains("paket_bytes"), "{error}");
    }

    #[test]
    fn a_negative_size_is_named() {
        let error = Platform::parse("[files]\nstripe_bytes = -1").unwrap_err();
        assert!(error.message.contains("-1"), "{error}");
    }
}
