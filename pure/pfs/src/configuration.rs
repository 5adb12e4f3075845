//! What an instance is to be, as a file says it: its name, its durability, its servers and
//! cache managers, its layout.
//!
//! The same file is for a real instance and for a simulated one. Reading refuses keys that it does not
//! know; what a file leaves out has the value of [`Configuration::default`].
//!
//! ```
//! use iolab_pfs::configuration::{Configuration, Durability};
//! let text = r#"
//! [instance]
//! name = "scratch"
//! durability = "device"
//!
//! [[servers]]
//! hosts = ["n0", "n1"]
//!
//! [layout]
//! default = "stripe:unit=64k"
//! "#;
//! let configuration = Configuration::parse(text)?;
//! assert_eq!(configuration.instance.durability, Durability::Device);
//! assert_eq!(configuration.server_count(), Some(2));
//! assert_eq!(configuration.layout(2)?.unit_bytes(), 65536);
//! # Ok::<(), iolab_vocab::Refusal>(())
//! ```

use crate::Layout;
use crate::cache_manager::MEMORY_MIN;
use iolab_policy::placement::catalog as placement;
use iolab_policy::replacement::catalog as replacement;
use iolab_policy::schedule::catalog as schedule;
use iolab_policy::write_policy::catalog as write_policy;
use iolab_vocab::{Refusal, format_bytes, parse_bytes};
use serde::Deserialize;
use std::fmt;

/// An instance as written down.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The instance as a whole.
    #[serde(default)]
    pub instance: Instance,
    /// The metadata manager.
    #[serde(default)]
    pub metadata: Metadata,
    /// The I/O servers, in their order. None: whoever reads the file decides.
    #[serde(default)]
    pub servers: Vec<Servers>,
    /// The cache managers, in their order. None: servers are asked for data themselves.
    #[serde(default)]
    pub caches: Vec<Caches>,
    /// Partition of files, and how accesses come to its parts.
    #[serde(default)]
    pub layout: LayoutChoice,
}

/// The instance as a whole.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Instance {
    /// What to call it in messages and results.
    pub name: String,
    /// What a sync makes of what was written.
    pub durability: Durability,
}

impl Default for Instance {
    fn default() -> Instance {
        Instance { name: "iolab".to_owned(), durability: Durability::Process }
    }
}

/// What survives once a sync, or a close, has returned.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// It is in the kernels of the servers' hosts: survives the end of every server process.
    #[default]
    Process,
    /// It is on the devices: survives a power cut.
    Device,
    /// Nothing is promised, so a sync is over at once. No configuration asks for that.
    #[serde(skip_deserializing)]
    None,
}

impl Durability {
    /// As files name it.
    pub const fn name(self) -> &'static str {
        match self {
            Durability::Process => "process",
            Durability::Device => "device",
            Durability::None => "none",
        }
    }

    /// The class of that name.
    pub fn find(name: &str) -> Option<Durability> {
        [Durability::Device, Durability::Process, Durability::None]
            .into_iter()
            .find(|class| class.name() == name)
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The metadata manager.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// Where it runs; by itself where the first server does.
    pub host: Option<String>,
}

/// One or several I/O servers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Servers {
    /// Where they run, one on each; by itself one server, wherever there is room.
    pub hosts: Option<Vec<String>>,
}

/// One or several cache managers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// Where they run, one on each; by itself beside I/O servers, in their order.
    pub hosts: Option<Vec<String>>,
    /// How many, where no hosts are named: one by itself.
    pub count: Option<u32>,
    /// Memory for blocks of each, as `256m`; by itself half of its node's.
    pub memory: Option<String>,
    /// Which block leaves when that is full: a row of [`iolab_policy::replacement::catalog`].
    pub replacement: Option<String>,
    /// When servers get what was written: a row of [`iolab_policy::write_policy::catalog`], the same for all.
    pub write_policy: Option<String>,
}

impl Caches {
    /// Memory for blocks of each, in bytes, if it is said.
    pub fn memory_bytes(&self) -> Result<Option<u64>, Refusal> {
        let Some(text) = &self.memory else { return Ok(None) };
        let refused = |why: String| {
            let hint =
                format!("give at least {}, as in memory = \"256m\"", format_bytes(MEMORY_MIN));
            Refusal::new(format!("[[caches]] memory = \"{text}\": {why}"), hint)
        };
        match parse_bytes(text) {
            Ok(bytes) if bytes < MEMORY_MIN => Err(refused("too little for a manager".to_owned())),
            Ok(bytes) => Ok(Some(bytes)),
            Err(why) => Err(refused(why.to_string())),
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.hosts.as_ref().is_some_and(Vec::is_empty) {
            return Refusal::refuse(
                "[[caches]] with no hosts",
                "name a host, or leave `hosts` out for managers beside the I/O servers",
            );
        }
        if self.hosts.is_some() && self.count.is_some() {
            return Refusal::refuse(
                "[[caches]] with hosts and a count",
                "leave one of them out: there is one manager on each host",
            );
        }
        if self.count == Some(0) {
            return Refusal::refuse(
                "[[caches]] with count = 0",
                "leave [[caches]] out for an instance without cache managers",
            );
        }
        self.replacement()?;
        self.write_policy()?;
        self.memory_bytes().map(|_| ())
    }

    /// Which block leaves when memory is full.
    pub fn replacement(&self) -> Result<&'static replacement::Row, Refusal> {
        self.replacement.as_deref().map_or(Ok(replacement::USUAL), replacement::find)
    }

    /// When servers get what was written.
    fn write_policy(&self) -> Result<&'static write_policy::Row, Refusal> {
        self.write_policy.as_deref().map_or(Ok(write_policy::USUAL), write_policy::find)
    }
}

/// Partition of files, and how accesses come to its parts.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct LayoutChoice {
    /// Of those that ask for none; as [`Layout::parse`] reads it.
    pub default: String,
    /// Which cache manager has which stripes: a row of [`iolab_policy::placement::catalog`].
    pub placement: String,
    /// In which order an access comes to the servers: a row of [`iolab_policy::schedule::catalog`].
    pub schedule: String,
}

impl Default for LayoutChoice {
    fn default() -> LayoutChoice {
        LayoutChoice {
            default: "stripe:unit=256k".to_owned(),
            placement: placement::USUAL.name.to_owned(),
            schedule: schedule::USUAL.name.to_owned(),
        }
    }
}

/// The most servers of an instance.
pub const SERVERS_MAX: usize = 4096;
/// The most cache managers of an instance.
pub const CACHES_MAX: usize = 4096;

impl Configuration {
    /// Reads a configuration; the error shows the place.
    pub fn parse(text: &str) -> Result<Configuration, Refusal> {
        let configuration: Configuration = toml::from_str(text).map_err(|error| {
            Refusal::new(
                format!("this file system cannot be read: {}", error.to_string().trim_end()),
                "it has [instance] name, durability; [metadata] host; [[servers]] hosts; [[caches]] hosts, count, \
                 memory, replacement, write_policy; [layout] default, placement, schedule",
            )
        })?;
        configuration.check()?;
        Ok(configuration)
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.servers.iter().any(|one| one.hosts.as_ref().is_some_and(Vec::is_empty)) {
            return Refusal::refuse(
                "[[servers]] with no hosts",
                "name a host, or leave `hosts` out for one server",
            );
        }
        self.caches.iter().try_for_each(Caches::check)?;
        if self.cache_count() > CACHES_MAX {
            return Refusal::refuse(
                format!("{} cache managers", self.cache_count()),
                format!("give at most {CACHES_MAX}"),
            );
        }
        self.schedule()?;
        self.placement()?;
        self.write_policy()?;
        match self.server_count() {
            Some(count) if count > SERVERS_MAX => Refusal::refuse(
                format!("{count} I/O servers"),
                format!("give at most {SERVERS_MAX}"),
            ),
            count => self.layout(count.unwrap_or(1) as u32).map(|_| ()),
        }
    }

    /// How many I/O servers there are, if it says so.
    pub fn server_count(&self) -> Option<usize> {
        let counts = self.servers.iter().map(|one| one.hosts.as_ref().map_or(1, Vec::len));
        (!self.servers.is_empty()).then(|| counts.sum())
    }

    /// How many cache managers there are, as far as hosts are no groups of nodes.
    fn cache_count(&self) -> usize {
        let count = |one: &Caches| match &one.hosts {
            Some(hosts) => hosts.len(),
            None => one.count.unwrap_or(1) as usize,
        };
        self.caches.iter().map(count).sum()
    }

    /// How files are partitioned that ask for nothing else, with so many servers.
    pub fn layout(&self, servers: u32) -> Result<Layout, Refusal> {
        Layout::parse(&self.layout.default, servers)
    }

    /// Which cache manager has which stripes.
    pub fn placement(&self) -> Result<&'static placement::Row, Refusal> {
        placement::find(&self.layout.placement)
    }

    /// When cache managers bring to servers what was written. Clients have to know what a write's answer says, whichever
    /// manager gives it, so there is one for all.
    pub fn write_policy(&self) -> Result<&'static write_policy::Row, Refusal> {
        let Some(first) = self.caches.first() else { return Ok(write_policy::USUAL) };
        let first = first.write_policy()?;
        for other in &self.caches[1..] {
            let other = other.write_policy()?;
            if other != first {
                return Refusal::refuse(
                    format!("[[caches]] with write_policy {} and {}", first.name, other.name),
                    "give all [[caches]] the same write_policy",
                );
            }
        }
        Ok(first)
    }

    /// In which order accesses come to servers.
    pub fn schedule(&self) -> Result<&'static schedule::Row, Refusal> {
        schedule::find(&self.layout.schedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_usual_instance() {
        let configuration = Configuration::parse("").unwrap();
        assert_eq!(configuration, Configuration::default());
        assert_eq!(configuration.server_count(), None);
        assert_eq!(configuration.layout(4), Ok(Layout::usual(4)));
    }

    #[test]
    fn servers_are_counted_by_their_hosts() {
        let text = "[[servers]]\nhosts = ['a', 'b']\n[[servers]]\n";
        assert_eq!(Configuration::parse(text).unwrap().server_count(), Some(3));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (text, offender) in [
            ("[instance]\nnam = 'x'", "nam"),
            ("[instance]\ndurability = 'none'", "none"),
            ("[caches]\nmemory = '1g'", "caches"),
            ("[[caches]]\nreplacement = 'arc'", "arc"),
            ("[[caches]]\nwrite_policy = 'never'", "never"),
            ("[[caches]]\nwrite_policy = 'through'\n[[caches]]", "through and delayed"),
            ("[[caches]]\nhosts = []", "no hosts"),
            ("[[caches]]\nhosts = ['a']\ncount = 2", "hosts and a count"),
            ("[[caches]]\ncount = 0", "count = 0"),
            ("[[caches]]\ncount = 9999", "9999 cache managers"),
            ("[[caches]]\nmemory = '1m'", "too little"),
            ("[[caches]]\nmemory = 'much'", "much"),
            ("[[servers]]\ndir = '/x'", "dir"),
            ("[[servers]]\nhosts = []", "no hosts"),
            ("[layout]\ndefault = 'stripes'", "stripes"),
            ("[layout]\nplacement = 'nearby'", "nearby"),
            ("[layout]\nschedule = 'diagonal'", "diagonal"),
        ] {
            let refusal = Configuration::parse(text).unwrap_err();
            assert!(refusal.message.contains(offender), "{text}: {refusal}");
        }
    }
}
