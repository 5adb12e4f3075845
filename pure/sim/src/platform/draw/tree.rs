//! The tree: switches, what hangs on each, cables between them.

use super::{Platform, rate, time, wire};
use std::fmt::Write;

pub(super) fn draw(platform: &Platform) -> String {
    let mut text = format!("{}: {}\n", platform.title(), platform.cutting());
    for (index, switch) in platform.switches.iter().enumerate() {
        let (rate, latency) = (rate(switch.rate), time(switch.latency));
        let _ = writeln!(text, "switch {}: {rate}, {latency}", switch.name);
        branches(&mut text, &entries(platform, index));
    }
    if platform.switches.is_empty() {
        branches(&mut text, &entries(platform, 0));
    }
    if let Some(local) = &platform.local {
        let _ = writeln!(text, "local storage: {} cores", local.cores);
    }
    text
}

/// What hangs on a switch: its groups, then cables, each with lines of detail.
fn entries(platform: &Platform, switch: usize) -> Vec<Vec<String>> {
    let groups = platform.groups_on(switch).map(|group| {
        let mut lines =
            vec![format!("{}: NIC {}", group.range(), wire(&group.nic)), group.inside()];
        lines.extend(group.roles(platform));
        lines
    });
    let name = platform.switches.get(switch).map_or("", |switch| &switch.name);
    let cables = platform.links.iter().filter_map(|link| {
        let other = match (link.from == name, link.to == name) {
            (true, _) => &link.to,
            (_, true) => &link.from,
            _ => return None,
        };
        Some(vec![format!("cable to switch {other}: {}", wire(&link.wire))])
    });
    groups.chain(cables).collect()
}

fn branches(text: &mut String, entries: &[Vec<String>]) {
    for (index, lines) in entries.iter().enumerate() {
        let is_last = index + 1 == entries.len();
        let (branch, below) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
        for (line, content) in lines.iter().enumerate() {
            let lead = if line == 0 { branch } else { below };
            let indent = if line == 0 { " " } else { "    " };
            let _ = writeln!(text, "{lead}{indent}{content}");
        }
    }
}
