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

    const TWO_SWITCHES: &str = "
        name = 'two'
        switches = [{ name = 'a' }, { name = 'b' }]
        links = [{ from = 'a', to = 'b' }]
        [[nodes]]
        name = 'client'
        count = 3
        clients = 1
        switch = 'a'
        [[nodes]]
        name = 'server'
        switch = 'b'
        [nodes.server.device]
        model = 'hdd'
        ";

    #[test]
    fn the_tree_hangs_everything_on_its_switch_and_names_a_cable_at_both_ends() {
        let tree = Platform::parse(TWO_SWITCHES).unwrap().draw_text();
        let wanted = "\
two: packets 100 KiB, eager messages up to 100 KiB, device accesses up to 10 MiB, stripes 64 KiB
switch a: 1000 MiB/s, 0 s
├─ client0 … client2 (3 nodes): NIC 100 MiB/s, 200 µs
│     1 CPU of 1 M instructions/s, memory 1000 MiB, inside 1000 MiB/s
│     1 client process
└─ cable to switch b: 100 MiB/s, 200 µs
switch b: 1000 MiB/s, 0 s
├─ server: NIC 100 MiB/s, 200 µs
│     1 CPU of 1 M instructions/s, memory 1000 MiB, inside 1000 MiB/s
│     server, cache none
│     device hdd: 7200 rpm, seeks 1 ms and 10 ms, 50 MiB/s
└─ cable to switch a: 100 MiB/s, 200 µs
";
        assert_eq!(tree, wanted);
    }

    #[test]
    fn lines_join_boxes_and_switches_and_carry_their_figures_in_the_middle() {
        let svg = Platform::parse(TWO_SWITCHES).unwrap().draw_svg().into_string();
        // Two columns of 300 with 40 between fill the least width; each row is centered.
        assert!(svg.contains(r#"viewBox="0 0 680 556""#), "{svg}");
        // From below the clients, in the middle, to the top of switch a; half way are its figures.
        assert!(svg.contains(r#"<line x1="340" y1="173" x2="170" y2="263">"#), "{svg}");
        assert!(svg.contains(r#"<text class="f" x="261" y="218">NIC 100 MiB/s, 200 µs<"#), "{svg}");
        assert!(svg.contains(r#"<line x1="340" y1="399" x2="510" y2="309">"#), "{svg}");
        // A long role takes two lines and a short one stays whole.
        assert!(
            svg.contains(">server, cache none<") && svg.contains(">device hdd: 7200 rpm<"),
            "{svg}"
        );
        let row = "[[nodes]]\nname = 'n'\nclients = 1\n";
        let named = |name: &str| row.replace("'n'", &format!("'{name}'"));
        let three =
            format!("switches = [{{ name = 's' }}]\n{}{}{}", named("x"), named("y"), named("z"));
        let wide = Platform::parse(&three).unwrap().draw_svg().into_string();
        assert!(wide.contains(r#"viewBox="0 0 1020 "#), "three columns, two gaps, two margins");
    }

    #[test]
    fn a_time_is_written_in_the_unit_that_fits() {
        let times = [0.0, 2e-7, 5e-5, 0.0015, 0.25, 2.0];
        let wanted = ["0 s", "200 ns", "50 µs", "1.5 ms", "250 ms", "2 s"];
        assert_eq!(times.map(|seconds| time(Time(seconds))), wanted);
    }
}
