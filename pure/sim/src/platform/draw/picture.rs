//! The picture: client groups above, switches in the middle, servers below, lines with figures.

use super::{NodeGroup, Platform, rate, time, wire};
use maud::{Markup, PreEscaped, html};

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

pub(super) fn draw(platform: &Platform) -> Markup {
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
    let mut boxes: Vec<Placed> = Vec::new();
    for (groups, y, is_above) in [(above, top, true), (below, below_y, false)] {
        for (index, &group) in groups.iter().enumerate() {
            let height = height(platform, group);
            let y = if is_above { y + above_height - height } else { y };
            boxes.push(Placed { group, x: center(index, groups.len(), width), y, height });
        }
    }
    let switch_x = |index| center(index, platform.switches.len(), width);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (total) }
            width=(width) height=(total) role="img" {
            style { (PreEscaped(STYLE)) }
            "\n"
            (label(MARGIN, MARGIN + 12.0, "b", platform.title()))
            (label(MARGIN, MARGIN + 30.0, "f", &platform.cutting()))
            (cables(platform, switch_y + SWITCH_HEIGHT / 2.0, switch_x))
            @for placed in &boxes { (nic(platform, placed, switch_y, switch_x)) }
            @for (index, switch) in platform.switches.iter().enumerate() {
                @let x = switch_x(index) - BOX_WIDTH / 2.0;
                (rectangle(x, switch_y, SWITCH_HEIGHT, "w"))
                (label(x + 10.0, switch_y + 18.0, "b", &format!("switch {}", switch.name)))
                @let figures = format!("{}, {}", rate(switch.rate), time(switch.latency));
                (label(x + 10.0, switch_y + 36.0, "f", &figures))
            }
            @for placed in &boxes { (node_box(platform, placed)) }
        }
        "\n"
    }
}

/// The line from a box to its switch, with the figures of the NIC.
fn nic(platform: &Platform, placed: &Placed, switch_y: f64, x: impl Fn(usize) -> f64) -> Markup {
    let switch = x(platform.switch_of(placed.group).unwrap_or(0));
    let is_above = placed.y < switch_y;
    let ends = match is_above {
        true => (placed.y + placed.height, switch_y),
        false => (placed.y, switch_y + SWITCH_HEIGHT),
    };
    let figures = format!("NIC {}", wire(&placed.group.nic));
    html! {
        line x1=(placed.x) y1=(ends.0) x2=(switch) y2=(ends.1) {}
        "\n"
        (label((placed.x + switch) / 2.0 + 6.0, (ends.0 + ends.1) / 2.0, "f", &figures))
    }
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

fn node_box(platform: &Platform, placed: &Placed) -> Markup {
    let group = placed.group;
    let (class, square) = if group.server.is_some() { ("s", "d") } else { ("g", "n") };
    let x = placed.x - BOX_WIDTH / 2.0;
    html! {
        (rectangle(x, placed.y, placed.height, class))
        (label(x + 10.0, placed.y + 18.0, "b", &group.range()))
        @for at in 0..group.count.min(SQUARES_MAX) {
            rect class=(square) x=(x + 10.0 + f64::from(at) * 16.0) y=(placed.y + 26.0)
                width="12" height="12" rx="2" {}
            "\n"
        }
        @for (index, text) in lines_of(platform, group).iter().enumerate() {
            (label(x + 10.0, placed.y + 56.0 + LINE * index as f64, "", text))
        }
    }
}

fn cables(platform: &Platform, y: f64, x: impl Fn(usize) -> f64) -> Markup {
    let index = |name: &str| platform.switches.iter().position(|switch| switch.name == name);
    html! {
        @for (number, link) in platform.links.iter().enumerate() {
            @if let (Some(from), Some(to)) = (index(&link.from), index(&link.to)) {
                @let bend = y - 30.0 - 6.0 * (number % 3) as f64;
                @let middle = (x(from) + x(to)) / 2.0;
                path d={ "M" (x(from)) " " (y) " Q" (middle) " " (bend) " " (x(to)) " " (y) }
                    fill="none" stroke="#666" {}
                "\n"
                (label(middle - 60.0, bend + 10.0, "f", &wire(&link.wire)))
            }
        }
    }
}

fn rectangle(x: f64, y: f64, height: f64, class: &str) -> Markup {
    html! {
        rect class=(class) x=(x) y=(y) width=(BOX_WIDTH) height=(height) rx="6" {}
        "\n"
    }
}

fn label(x: f64, y: f64, class: &str, text: &str) -> Markup {
    html! {
        text class=(class) x=(x) y=(y) { (text) }
        "\n"
    }
}
