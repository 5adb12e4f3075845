//! Parts of the platform, as messages name them.

use crate::platform::Platform;
use std::fmt;

/// A part of the platform, by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A link or switch, as [`Platform::link_names`] has them.
    Link(u32),
    /// A node.
    Node(u32),
    /// A server and its device.
    Server(u32),
    /// A fault of the scenario.
    Fault(u32),
}

impl Part {
    /// What a platform calls it.
    pub fn name_on(self, platform: &Platform) -> String {
        let named = |what: &str, name: Option<String>, number: u32| match name {
            Some(name) => format!("{what} `{name}`"),
            None => format!("{what} {number}"),
        };
        match self {
            Part::Link(at) => named("link", platform.link_names().get(at as usize).cloned(), at),
            Part::Node(at) => named("node", platform.node_names().nth(at as usize), at),
            Part::Server(at) => {
                named("the device of server", platform.server_names().get(at as usize).cloned(), at)
            }
            Part::Fault(at) => format!("fault {}", at + 1),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Link(at) => write!(f, "link {at}"),
            Part::Node(at) => write!(f, "node {at}"),
            Part::Server(at) => write!(f, "the device of server {at}"),
            Part::Fault(at) => write!(f, "fault {}", at + 1),
        }
    }
}
