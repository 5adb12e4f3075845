//! The picture: client groups above, switches in the middle, servers below, lines with figures.

use super::{NodeGroup, Platform, escaped, rate, time, wire};
use std::fmt::Write;

const BOX_WIDTH: f64 = 300.0;
const GAP: f64 = 40.0;
const LINE: f64 = 17.0;
const MARGIN: f64 = 20.0;
const SWITCH_HEIGHT: f64 = 46.0;
/// The lines above the drawing want this much.
const WIDTH_MIN: f64 = 680.0;
/// Room for the figures on the lines between rows.
const BETWEEN: f64 = 90.0;
/// Nodes drawn as squares; more are told by number only.
const SQUARES_MAX: u32 = 16;

const STYLE: &str = "text{font:12px sans-serif;fill:#222}.b{font-weight:bold}.g{fill:#eef3fa;stroke:#5a7fb0}\
.s{fill:#fbf1e3;stroke:#b98530}.w{fill:#e9f5ea;stroke:#4d8f55}.n{fill:#5a7fb0}.d{fill:#b98530}\
line{stroke:#666;stroke-width:1.5}.f{fill:#555;font-size:11px}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.g{fill:#1e2a3a}.s{fill:#33291a}.w{fill:#1b2e1e}.f{fill:#aaa}line{stroke:#999}}";

/// A box and where the lines to it end.
struct Placed<'a> {
    group: &'a NodeGroup,
    x: f64,
    y: f64,
    height: f64,
}

pub(super) fn draw(platform: &Platform) -> String {
    let (above, below): (Vec<_>, Vec<_>) =
        platform.nodes.iter().partition(|group| group.server.is_none());
    let columns = above.len().max(below.len()).max(platform.switches.len()).max(1) as f64;
    let width = (columns * (BOX_WIDTH + GAP) - GAP + 2.0 * MARGIN).max(WIDTH_MIN);
    let top = MARGIN + 50.0;
    let above_height = above.iter().map(|group| height(platform, group)).fold(0.0, f64::max);
    let switch_y = top + above_height + if above.is_empty() { 0.0 } else { BETWEEN };
    let below_y = switch_y + SWITCH_HEIGHT + BETWEEN;
    let below_height = below.iter().map(|group| height(platform, group)).fold(0.0, f64::max);
    let total = below_y + below_height + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {total}\" width=\"{width}\" \
         height=\"{total}\" role=\"img\">\n<style>{STYLE}</style>\n"
    );
    label(&mut svg, MARGIN, MARGIN + 12.0, "b", platform.title());
    label(&mut svg, MARGIN, MARGIN + 30.0, "f", &platform.cutting());
    let place = |groups: Vec<&'_ NodeGroup>, y: f64, is_above: bool| -> Vec<(f64, f64, f64)> {
        let count = groups.len();
        let row = groups.iter().enumerate().map(|(index, group)| {
            let height = height(platform, group);
            let y = if is_above { y + above_height - height } else { y };
            (center(index, count, width), y, height)
        });
        row.collect()
    };
    let mut boxes: Vec<Placed> = Vec::new();
    for (groups, y, is_above) in [(above, top, true), (below, below_y, false)] {
        for (group, (x, y, height)) in groups.iter().zip(place(groups.clone(), y, is_above)) {
            boxes.push(Placed { group, x, y, height });
        }
    }
    let switch_x = |index| center(index, platform.switches.len(), width);
    cables(&mut svg, platform, switch_y + SWITCH_HEIGHT / 2.0, switch_x);
    for placed in &boxes {
        let switch = platform.switch_of(placed.group).unwrap_or(0);
        let is_above = placed.y < switch_y;
        let ends = match is_above {
            true => (placed.y + placed.height, switch_y),
            false => (placed.y, switch_y + SWITCH_HEIGHT),
        };
        line(&mut svg, (placed.x, ends.0), (switch_x(switch), ends.1));
        let middle = (placed.x + switch_x(switch)) / 2.0 + 6.0;
        let figures = format!("NIC {}", wire(&placed.group.nic));
        label(&mut svg, middle, (ends.0 + ends.1) / 2.0, "f", &figures);
    }
    for (index, switch) in platform.switches.iter().enumerate() {
        let x = switch_x(index) - BOX_WIDTH / 2.0;
        rectangle(&mut svg, x, switch_y, SWITCH_HEIGHT, "w");
        label(&mut svg, x + 10.0, switch_y + 18.0, "b", &format!("switch {}", switch.name));
        let figures = format!("{}, {}", rate(switch.rate), time(switch.latency));
        label(&mut svg, x + 10.0, switch_y + 36.0, "f", &figures);
    }
    boxes.iter().for_each(|placed| node_box(&mut svg, platform, placed));
    svg + "</svg>\n"
}

/// Center of the box at `index` of a row of `count`.
fn center(index: usize, count: usize, width: f64) -> f64 {
    let row = count as f64 * (BOX_WIDTH + GAP) - GAP;
    (width - row) / 2.0 + index as f64 * (BOX_WIDTH + GAP) + BOX_WIDTH / 2.0
}

fn lines_of(platform: &Platform, group: &NodeGroup) -> Vec<String> {
    let inside = group.inside();
    let (left, right) = inside.split_once(", ").unwrap_or((&inside, ""));
    let mut lines = vec![left.to_owned(), right.to_owned()];
    for role in group.roles(platform) {
        match role.split_once(", ") {
            Some((left, right)) if role.len() > 44 => {
                lines.extend([left.to_owned(), format!("  {right}")])
            }
            _ => lines.push(role),
        }
    }
    lines
}

fn height(platform: &Platform, group: &NodeGroup) -> f64 {
    52.0 + LINE * lines_of(platform, group).len() as f64
}

fn node_box(svg: &mut String, platform: &Platform, placed: &Placed) {
    let group = placed.group;
    let has_server = group.server.is_some();
    let x = placed.x - BOX_WIDTH / 2.0;
    rectangle(svg, x, placed.y, placed.height, if has_server { "s" } else { "g" });
    label(svg, x + 10.0, placed.y + 18.0, "b", &group.range());
    for square in 0..group.count.min(SQUARES_MAX) {
        let class = if has_server { "d" } else { "n" };
        let at = x + 10.0 + f64::from(square) * 16.0;
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{at}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\"/>",
            placed.y + 26.0
        );
    }
    for (index, text) in lines_of(platform, group).iter().enumerate() {
        label(svg, x + 10.0, placed.y + 56.0 + LINE * index as f64, "", text);
    }
}

fn cables(svg: &mut String, platform: &Platform, y: f64, x: impl Fn(usize) -> f64) {
    let index = |name: &str| platform.switches.iter().position(|switch| switch.name == name);
    for (number, link) in platform.links.iter().enumerate() {
        let (Some(from), Some(to)) = (index(&link.from), index(&link.to)) else { continue };
        let bend = y - 30.0 - 6.0 * (number % 3) as f64;
        let middle = (x(from) + x(to)) / 2.0;
        let _ = writeln!(
            svg,
            "<path d=\"M{} {y} Q{middle} {bend} {} {y}\" fill=\"none\" stroke=\"#666\"/>",
            x(from),
            x(to)
        );
        label(svg, middle - 60.0, bend + 10.0, "f", &wire(&link.wire));
    }
}

fn rectangle(svg: &mut String, x: f64, y: f64, height: f64, class: &str) {
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{height}\" rx=\"6\"/>"
    );
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn label(svg: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(text));
}
