//! Fault scenarios: what goes wrong when, as a TOML file anyone can write.
//!
//! A scenario is a list of timed faults of a platform's parts, by the names that results use. It
//! is read strictly (unknown keys are refused) and then laid on a platform, where every name must
//! exist. `docs/howto/faults.md` says what each fault does to a run.

use crate::platform::Platform;
use iolab_device::{Time, nanos};
use iolab_vocab::{Nanos, Refusal, Seed};
use serde::Deserialize;
use std::fmt;

/// A scenario as written down.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What to call it in results.
    #[serde(default)]
    pub name: String,
    /// Decides which packets of a lossy link are lost.
    #[serde(default)]
    pub seed: u64,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// One fault.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// A server's device takes longer for everything it starts.
    SlowDevice {
        /// The server, by its node.
        server: String,
        /// So many times as long.
        factor: f64,
        /// From then on.
        #[serde(default)]
        from: Time,
        /// Until then, or for good.
        until: Option<Time>,
    },
    /// A server handles nothing.
    StalledServer {
        /// The server, by its node.
        server: String,
        /// From then on.
        #[serde(default)]
        from: Time,
        /// Until then, or for good.
        until: Option<Time>,
    },
    /// A link loses packets; they are sent again.
    LossyLink {
        /// A node's link to its switch, by the node, or a cable as `from - to`.
        link: String,
        /// The part of packets lost, below 1.
        share: f64,
        /// A lost packet is sent again after that long.
        #[serde(default = "retransmission")]
        timeout: Time,
        /// From then on.
        #[serde(default)]
        from: Time,
        /// Until then, or for good.
        until: Option<Time>,
    },
    /// A link carries nothing.
    CutLink {
        /// A node's link to its switch, by the node, or a cable as `from - to`.
        link: String,
        /// A packet is sent again after that long, until it gets through.
        #[serde(default = "retransmission")]
        timeout: Time,
        /// From then on.
        #[serde(default)]
        from: Time,
        /// Until then, or for good.
        until: Option<Time>,
    },
    /// The processes of a node stop.
    CrashedClient {
        /// The node.
        client: String,
        /// When.
        at: Time,
    },
}

/// Least time before Linux' TCP sends a segment again (`TCP_RTO_MIN`).
fn retransmission() -> Time {
    Time(0.2)
}

/// A fault laid on a platform: components by their numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Laid {
    /// As the scenario says it, for diagnosis.
    pub(crate) text: String,
    pub(crate) from: Nanos,
    /// `None`: for good.
    pub(crate) until: Option<Nanos>,
    pub(crate) effect: Effect,
}

/// What a fault does while it lasts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Slow {
        server: u32,
        factor: f64,
    },
    Stall {
        server: u32,
    },
    /// With `share` 1 nothing passes.
    Loss {
        link: Link,
        share: f64,
        timeout: Nanos,
    },
    Crash {
        node: u32,
    },
}

/// A cable with two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Between a node and its switch.
    OfNode(u32),
    /// Between two switches, by its place in the platform.
    Cable(u32),
}

/// A scenario laid on a platform, ready to happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    pub(crate) seed: Seed,
    pub(crate) laid: Vec<Laid>,
}

impl Scenario {
    /// Reads a scenario; the error shows the place.
    ///
    /// # Errors
    /// What cannot be read, with its line.
    pub fn parse(text: &str) -> Result<Scenario, Refusal> {
        toml::from_str(text).map_err(|error| Refusal {
            message: format!("this scenario cannot be read: {}", error.to_string().trim_end()),
            hint: "docs/howto/faults.md lists every kind of fault and its keys".to_owned(),
        })
    }

    /// Finds what the faults are about on a platform.
    ///
    /// # Errors
    /// A name that the platform does not have, a span that ends before it begins, a factor or
    /// share out of range, two faults of one link at the same time.
    pub fn resolve(&self, platform: &Platform) -> Result<Faults, Refusal> {
        let names = Names::of(platform);
        let mut laid: Vec<Laid> = Vec::new();
        for (fault, number) in self.faults.iter().zip(1..) {
            let new = names.lay(fault).map_err(|error| Refusal {
                message: format!("fault {number} ({}): {}", fault.kind(), error.message),
                hint: error.hint,
            })?;
            if let Some(other) = laid.iter().find(|other| other.is_on_the_same_link(&new)) {
                return Refusal::refuse(
                    format!("fault {number} ({}) overlaps with {}", new.text, other.text),
                    "let one fault of a link end before the next begins",
                );
            }
            laid.push(new);
        }
        Ok(Faults { seed: Seed(self.seed), laid })
    }
}

impl Fault {
    /// As a scenario calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::SlowDevice { .. } => "slow-device",
            Fault::StalledServer { .. } => "stalled-server",
            Fault::LossyLink { .. } => "lossy-link",
            Fault::CutLink { .. } => "cut-link",
            Fault::CrashedClient { .. } => "crashed-client",
        }
    }
}

impl Laid {
    fn is_on_the_same_link(&self, other: &Laid) -> bool {
        let (Effect::Loss { link: one, .. }, Effect::Loss { link: two, .. }) =
            (&self.effect, &other.effect)
        else {
            return false;
        };
        let begins_before_end =
            |one: &Laid, two: &Laid| two.until.is_none_or(|until| one.from < until);
        one == two && begins_before_end(self, other) && begins_before_end(other, self)
    }
}

/// What a platform's parts are called.
struct Names {
    nodes: Vec<String>,
    servers: Vec<String>,
    clients: Vec<String>,
    cables: Vec<String>,
}

impl Names {
    fn of(platform: &Platform) -> Names {
        let cable = |link: &crate::platform::Link| format!("{} - {}", link.from, link.to);
        Names {
            nodes: platform.node_names().collect(),
            servers: platform.server_names(),
            clients: platform.client_names(),
            cables: platform.links.iter().map(cable).collect(),
        }
    }

    fn lay(&self, fault: &Fault) -> Result<Laid, Refusal> {
        let (effect, from, until) = match fault {
            Fault::SlowDevice { server, factor, from, until } => {
                if !(*factor > 0.0 && *factor <= 1e6) {
                    return Refusal::refuse(
                        format!("factor = {factor}"),
                        "give a factor from above 0 to 1e6",
                    );
                }
                (Effect::Slow { server: self.server(server)?, factor: *factor }, from, *until)
            }
            Fault::StalledServer { server, from, until } => {
                (Effect::Stall { server: self.server(server)? }, from, *until)
            }
            Fault::LossyLink { link, share, timeout, from, until } => {
                if !(*share > 0.0 && *share <= 0.99) {
                    return Refusal::refuse(
                        format!("share = {share}"),
                        "give a share from above 0 to 0.99; a cut-link loses everything",
                    );
                }
                (self.loss(link, *share, *timeout)?, from, *until)
            }
            Fault::CutLink { link, timeout, from, until } => {
                (self.loss(link, 1.0, *timeout)?, from, *until)
            }
            Fault::CrashedClient { client, at } => {
                (Effect::Crash { node: self.client(client)? }, at, None)
            }
        };
        let (from, until) = (nanos(from.0), until.map(|until| nanos(until.0)));
        if until.is_some_and(|until| until <= from) {
            return Refusal::refuse(
                format!(
                    "it ends at {} s, but begins at {} s",
                    until.map_or(0.0, Nanos::seconds),
                    from.seconds()
                ),
                "let `until` be after `from`, or leave it out: then it lasts for good",
            );
        }
        Ok(Laid { text: fault.to_string(), from, until, effect })
    }

    fn loss(&self, link: &str, share: f64, timeout: Time) -> Result<Effect, Refusal> {
        let timeout = nanos(timeout.0);
        if timeout < Nanos(1000) {
            return Refusal::refuse(
                format!("timeout = {} s", timeout.seconds()),
                "give 1us or more",
            );
        }
        Ok(Effect::Loss { link: self.link(link)?, share, timeout })
    }

    fn server(&self, name: &str) -> Result<u32, Refusal> {
        find("server", name, &self.servers)
    }

    /// The node of that name, if it runs clients.
    fn client(&self, name: &str) -> Result<u32, Refusal> {
        find("client", name, &self.clients)?;
        find("node", name, &self.nodes)
    }

    fn link(&self, name: &str) -> Result<Link, Refusal> {
        if let Some(place) = self.cables.iter().position(|cable| cable == name) {
            return Ok(Link::Cable(place as u32));
        }
        let both = [&self.nodes[..], &self.cables].concat();
        find("link", name, &both).map(Link::OfNode)
    }
}

/// Names that a hint lists.
const LISTED_MAX: usize = 24;

fn find(what: &str, name: &str, known: &[String]) -> Result<u32, Refusal> {
    if let Some(place) = known.iter().position(|one| one == name) {
        return Ok(place as u32);
    }
    let mut listed: Vec<&str> = known.iter().map(String::as_str).collect();
    listed.dedup();
    let more = listed.len().saturating_sub(LISTED_MAX);
    listed.truncate(LISTED_MAX);
    let hint = match (listed.is_empty(), more) {
        (true, _) => format!("this platform has no {what}s"),
        (_, 0) => format!("choose from {}", listed.join(", ")),
        _ => format!("choose from {} and {more} more", listed.join(", ")),
    };
    Refusal::refuse(format!("there is no {what} `{name}`"), hint)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = match self {
            Fault::SlowDevice { server, factor, from, until } => {
                write!(f, "device of `{server}` slow by {factor}")?;
                (from, until)
            }
            Fault::StalledServer { server, from, until } => {
                write!(f, "server `{server}` stalled")?;
                (from, until)
            }
            Fault::LossyLink { link, share, from, until, .. } => {
                write!(f, "link `{link}` losing {} %", share * 100.0)?;
                (from, until)
            }
            Fault::CutLink { link, from, until, .. } => {
                write!(f, "link `{link}` cut")?;
                (from, until)
            }
            Fault::CrashedClient { client, at } => {
                return write!(f, "client `{client}` crashed at {} s", at.0);
            }
        };
        match until {
            Some(until) => write!(f, " from {} s until {} s", from.0, until.0),
            None => write!(f, " from {} s on", from.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(text: &str) -> Result<Faults, Refusal> {
        Scenario::parse(text)?.resolve(&Platform::preset("classic-hdd").unwrap())
    }

    fn wrong_by(fault: &str, expected: &str) {
        let error = laid(&format!("[[faults]]\n{fault}")).unwrap_err();
        assert!(error.message.contains(expected), "{error}");
        assert!(!error.hint.is_empty());
    }

    #[test]
    fn unknown_names_are_told_with_the_known_ones() {
        let error = laid("[[faults]]\nkind = 'stalled-server'\nserver = 'serber1'").unwrap_err();
        assert_eq!(
            error.to_string(),
            "fault 1 (stalled-server): there is no server `serber1`\nhint: choose from server0, \
             server1, server2, server3, server4, server5, server6, server7, server8, server9"
        );
        wrong_by("kind = 'crashed-client'\nclient = 'server1'\nat = '1s'", "no client `server1`");
        wrong_by("kind = 'cut-link'\nlink = 'client10'", "there is no link `client10`");
    }

    #[test]
    fn unknown_kinds_and_keys_are_named() {
        wrong_by("kind = 'slow-disk'\nserver = 'server1'", "slow-disk");
        wrong_by("kind = 'stalled-server'\nserver = 'server1'\nuntill = '1s'", "untill");
        wrong_by("kind = 'slow-device'\nserver = 'server1'", "factor");
    }

    #[test]
    fn figures_out_of_range_are_named() {
        wrong_by("kind = 'slow-device'\nserver = 'server1'\nfactor = -2", "factor = -2");
        wrong_by("kind = 'lossy-link'\nlink = 'client1'\nshare = 1.0", "share = 1");
        wrong_by("kind = 'cut-link'\nlink = 'client1'\ntimeout = '1ns'", "timeout");
        let span = "kind = 'cut-link'\nlink = 'client1'\nfrom = '2s'\nuntil = '1s'";
        wrong_by(span, "it ends at 1 s, but begins at 2 s");
        wrong_by("kind = 'cut-link'\nlink = 'client1'\nfrom = '-2s'", "-2");
    }

    #[test]
    fn two_faults_of_one_link_may_follow_but_not_overlap() {
        let two = |from: &str| {
            laid(&format!(
                "[[faults]]\nkind = 'cut-link'\nlink = 'client1'\nuntil = '1s'\n\
                 [[faults]]\nkind = 'lossy-link'\nlink = 'client1'\nshare = 0.1\nfrom = '{from}'"
            ))
        };
        two("1s").unwrap();
        let error = two("0.5s").unwrap_err();
        assert!(error.message.contains("overlaps with link `client1` cut"), "{error}");
    }
}
