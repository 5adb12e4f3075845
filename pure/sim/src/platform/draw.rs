//! A platform drawn: a tree of text for terminals, a picture for pages.
//!
//! Equal nodes stand as one group with its count. What a platform file leaves out is drawn with
//! the value it then has, so the drawing tells what is simulated.

mod picture;
mod tree;

use super::{NodeGroup, Platform, Rate, Time, Wire};
use iolab_device::DeviceModel;
use iolab_vocab::format_bytes;
use maud::{Markup, PreEscaped, html};

impl Platform {
    /// As a tree of text.
    pub fn draw_text(&self) -> String {
        tree::draw(self)
    }

    /// As an SVG picture.
    pub fn draw_svg(&self) -> Markup {
        picture::draw(self)
    }

    /// As a page with the picture.
    pub fn draw_html(&self) -> Markup {
        html! {
            (PreEscaped("<!doctype html>\n"))
            html lang="en" {
                meta charset="utf-8";
                title { (self.title()) }
                style { "body { font-family: sans-serif; margin: 2em } svg { max-width: 100% }" }
                h1 { (self.title()) }
                (picture::draw(self))
            }
            "\n"
        }
    }

    fn title(&self) -> &str {
        if self.name.is_empty() { "platform" } else { &self.name }
    }

    fn cutting(&self) -> String {
        let transport = &self.transport;
        format!(
            "packets {}, eager messages up to {}, device accesses up to {}, stripes {}",
            format_bytes(transport.packet_bytes.0),
            format_bytes(transport.eager_bytes.0),
            format_bytes(transport.access_bytes.0),
            format_bytes(self.files.stripe_bytes.0)
        )
    }

    /// Groups on the switch of that index. A platform that fails its check has them all on the
    /// first.
    fn groups_on(&self, switch: usize) -> impl Iterator<Item = &NodeGroup> {
        self.nodes.iter().filter(move |group| self.switch_of(group).unwrap_or(0) == switch)
    }
}

impl NodeGroup {
    /// `client0 … client9 (10 nodes)`.
    fn range(&self) -> String {
        match self.count {
            // Of a platform that fails its check.
            0 => format!("{} (0 nodes)", self.name),
            1 => self.name.clone(),
            count => {
                format!("{} … {} ({count} nodes)", self.node_name(0), self.node_name(count - 1))
            }
        }
    }

    fn inside(&self) -> String {
        let cpus = if self.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", self.cpus) };
        format!(
            "{cpus} of {} instructions/s, memory {}, inside {}",
            counted(self.instructions_per_second),
            format_bytes(self.memory_bytes.0),
            rate(self.internal_rate)
        )
    }

    /// What runs on each node, one line each.
    fn roles(&self, platform: &Platform) -> Vec<String> {
        let mut roles = Vec::new();
        match self.clients {
            0 => {}
            1 => roles.push("1 client process".to_owned()),
            count => roles.push(format!("{count} client processes")),
        }
        if let Some(server) = &self.server {
            roles.push(format!("server, cache {}", server.cache));
            roles.push(format!("device {}", device(&server.device)));
            let most = platform.access_bytes_of(self);
            if most < platform.transport.access_bytes.0 {
                let most = format_bytes(most);
                roles.push(format!("access at most {most}, a quarter of the memory"));
            }
        }
        roles
    }
}

fn wire(wire: &Wire) -> String {
    format!("{}, {}", rate(wire.rate), time(wire.latency))
}

fn rate(rate: Rate) -> String {
    format!("{}/s", format_bytes(rate.0 as u64))
}

fn time(time: Time) -> String {
    match time.0 {
        0.0 => "0 s".to_owned(),
        seconds if seconds < 1e-6 => format!("{} ns", short(seconds * 1e9)),
        seconds if seconds < 1e-3 => format!("{} µs", short(seconds * 1e6)),
        seconds if seconds < 1.0 => format!("{} ms", short(seconds * 1e3)),
        seconds => format!("{} s", short(seconds)),
    }
}

/// At most three decimals, no zeros behind.
fn short(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn counted(number: f64) -> String {
    match number {
        number if number >= 1e9 => format!("{} G", short(number / 1e9)),
        number if number >= 1e6 => format!("{} M", short(number / 1e6)),
        number => short(number),
    }
}

fn device(model: &DeviceModel) -> String {
    let name = model.name();
    #[allow(unreachable_patterns, reason = "a model that is new is drawn by its name")]
    match model {
        DeviceModel::Hdd(hdd) => format!(
            "{name}: {} rpm, seeks {} and {}, {}",
            short(hdd.rpm),
            time(hdd.track_seek),
            time(hdd.average_seek),
            rate(hdd.rate)
        ),
        DeviceModel::Nvme(nvme) => format!(
            "{name}: read {} after {}, write {} after {}, depth {}",
            rate(nvme.read_rate),
            time(nvme.read_latency),
            rate(nvme.write_rate),
            time(nvme.write_latency),
            nvme.queue_depth
        ),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_drawn_with_all_its_groups_and_switches() {
        for (name, text) in super::super::PRESETS {
            let platform = Platform::parse(text).unwrap();
            let (tree, svg) = (platform.draw_text(), platform.draw_svg().into_string());
            assert!(tree.starts_with(name), "{tree}");
            let groups = platform.nodes.iter().map(|group| &group.name);
            for part in groups.chain(platform.switches.iter().map(|switch| &switch.name)) {
                assert!(tree.contains(part.as_str()) && svg.contains(part.as_str()), "{part}");
            }
        }
    }

    #[test]
    fn a_name_cannot_break_out_of_the_picture() {
        let text = "name = '<script>'\nswitches = [{ name = '\"<b>' }]\n\
                    nodes = [{ name = '<i>', clients = 1 }]";
        let html = Platform::parse(text).unwrap().draw_html().into_string();
        assert!(!html.contains("<script>") && !html.contains("<b>") && !html.contains("<i>"));
    }
}
