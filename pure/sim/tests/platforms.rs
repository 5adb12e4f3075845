//! Platforms other than the published one: small cases to the nanosecond by hand, and what must
//! hold of any.
//!
//! What a platform file leaves out has the classic figures, so the formulas of the small cluster
//! hold here too.

mod small_cluster;

use iolab_sim::cluster::{Cluster, FileState, LinkKind, Order, Setup};
use iolab_sim::platform::Platform;
use iolab_sim::program::{Command, FileOperation, Program, What};
use iolab_sim::queue::{EventQueue, Ordered, Published};
use iolab_sim::workload::{Individual, Script};
use iolab_vocab::{Direction, Extent, Seed};
use small_cluster::*;

/// A request with one piece.
const REQUEST: u64 = 28;

const CLIENT: &str = "[[nodes]]\nname = 'client'\nclients = 1\n";
const SWITCH: &str = "[[switches]]\nname = 'switch'\n";

fn servers(count: u32) -> String {
    format!("[[nodes]]\nname = 'server'\ncount = {count}\n{DISK}")
}

/// The classic disk as the storage of the node group before it.
const DISK: &str = "[nodes.server.device]\nmodel = 'hdd'\n";

fn platform(parts: &[&str]) -> Platform {
    Platform::parse(&parts.concat()).unwrap()
}

/// The first access of a classic disk: half a rotation, an average seek, the transfer.
fn first_access(bytes: u64) -> u64 {
    ((30.0 / 7200.0 + 0.01 + bytes as f64 / (50.0 * 1048576.0)) * 1e9) as u64
}

/// Nanoseconds of one command of rank 0 on the first bytes of a file; the other ranks do nothing.
fn one(command: Command, bytes: u64, on: &Platform) -> u64 {
    let script = Script::new(vec![vec![(command, vec![Extent::new(0, bytes)])]]);
    build_on(on, setup(vec![Box::new(script)], 1)).run().unwrap().0
}

#[test]
fn one_read_is_a_request_an_access_and_the_data() {
    let on = platform(&[SWITCH, CLIENT, &servers(1)]);
    let expected = STEP + reached(REQUEST) + first_access(50_000) + reached(50_000);
    assert_eq!(one(FileOperation::Read.of(0), 50_000, &on), expected);
}

#[test]
fn one_write_sends_its_data_when_the_request_has_left() {
    let on = platform(&[SWITCH, CLIENT, &servers(1)]);
    let expected = STEP + wire(REQUEST) + STEP + reached(50_000) + first_access(50_000);
    assert_eq!(one(FileOperation::Write.of(0), 50_000, &on), expected);
}

#[test]
fn stripes_of_another_size_spread_a_read_over_all_servers() {
    let on = platform(&["[files]\nstripe_bytes = '1k'\n", SWITCH, CLIENT, &servers(3)]);
    // The three answers come together at the switch and leave its port one behind the other.
    let answers = wire(1024) + LATENCY + switch(1024) + 3 * wire(1024) + LATENCY;
    let expected = STEP + reached(REQUEST) + first_access(1024) + answers;
    assert_eq!(one(FileOperation::Read.of(0), 3072, &on), expected);
}

#[test]
fn small_packets_follow_each_other_through_every_hop() {
    let on = platform(&["[transport]\npacket_bytes = 10000\n", SWITCH, CLIENT, &servers(1)]);
    let whole = one(FileOperation::Read.of(0), 60_000, &on);
    let data = reached(10_000) + 5 * wire(10_000);
    assert_eq!(whole, STEP + reached(REQUEST) + first_access(60_000) + data);
}

#[test]
fn an_access_larger_than_the_largest_is_cut() {
    let on = platform(&["[transport]\naccess_bytes = '16k'\n", SWITCH, CLIENT, &servers(1)]);
    // The second half continues the first, so it costs its transfer only, and its data leaves last.
    let transfer = (16384.0 / (50.0 * 1048576.0) * 1e9) as u64;
    let expected = STEP + reached(REQUEST) + first_access(16384) + transfer + reached(32768);
    assert_eq!(one(FileOperation::Read.of(0), 32768, &on), expected);
}

#[test]
fn a_client_and_a_server_on_one_node_use_the_node_not_the_network() {
    let on = platform(&[SWITCH, "[[nodes]]\nname = 'both'\nclients = 1\n", DISK]);
    let inside = switch(REQUEST) + switch(50_000);
    assert_eq!(one(FileOperation::Read.of(0), 50_000, &on), STEP + inside + first_access(50_000));
}

#[test]
fn mixed_nodes_reach_their_own_server_inside_and_others_over_the_switch() {
    let both = "[[nodes]]\nname = 'both'\ncount = 2\nclients = 1\n";
    let on = platform(&["[files]\nstripe_bytes = '1k'\n", SWITCH, both, DISK]);
    // Rank 0 asks server 0 beside it and server 1 on the other node: the latter takes longer.
    let expected = STEP + reached(REQUEST) + first_access(1024) + reached(1024);
    assert_eq!(one(FileOperation::Read.of(0), 2048, &on), expected);
}

/// So many switches in a row, the client on the first, the server on the last.
fn row_of_switches(count: usize) -> Platform {
    let mut text = String::new();
    for index in 0..count {
        text += &format!("[[switches]]\nname = 's{index}'\n");
    }
    for index in 1..count {
        text += &format!("[[links]]\nfrom = 's{}'\nto = 's{index}'\n", index - 1);
    }
    text += "[[nodes]]\nname = 'client'\nclients = 1\nswitch = 's0'\n";
    text += &format!("[[nodes]]\nname = 'server'\nswitch = 's{}'\n{DISK}", count - 1);
    Platform::parse(&text).unwrap()
}

#[test]
fn every_further_switch_adds_a_cable_and_a_switch() {
    for count in 1..=4 {
        let hops = count as u64;
        let far = |bytes| (hops + 1) * (wire(bytes) + LATENCY) + hops * switch(bytes);
        let expected = STEP + far(REQUEST) + first_access(50_000) + far(50_000);
        assert_eq!(
            one(FileOperation::Read.of(0), 50_000, &row_of_switches(count)),
            expected,
            "{count}"
        );
    }
}

#[test]
fn a_slow_cable_between_switches_bounds_what_crosses_it() {
    let text = "[[switches]]\nname = 'a'\n[[switches]]\nname = 'b'\n\
        [[links]]\nfrom = 'a'\nto = 'b'\nwire = { rate = '10m', latency = '1ms' }\n\
        [[nodes]]\nname = 'client'\ncount = 4\nclients = 1\nswitch = 'a'\n\
        [[nodes]]\nname = 'server'\ncount = 4\nswitch = 'b'\n";
    let on =
        platform(&[text, "[nodes.server.device]\nmodel = 'ram'\nlatency = '1us'\nrate = '8g'\n"]);
    let calls = Individual::new(Direction::Write, 4, 40 << 20, 1 << 20, 1);
    let mut cluster = build_on(&on, setup(vec![Box::new(calls)], 1));
    let seconds = cluster.run().unwrap().seconds();
    assert!((4.0..4.4).contains(&seconds), "40 MiB over 10 MiB/s took {seconds} s");
}

/// When the last of two processes on one node has computed.
fn computed(cpus: u32, instructions: [f64; 2]) -> u64 {
    let node = format!("[[nodes]]\nname = 'client'\nclients = 2\ncpus = {cpus}\n");
    let on = platform(&[SWITCH, &node]);
    let ranks =
        instructions.map(|instructions| vec![What::Compute { instructions }.awaited()]).to_vec();
    let script = Script::of_commands(ranks);
    build_on(&on, setup(vec![Box::new(script)], 0)).run().unwrap().0
}

#[test]
fn processes_of_a_node_share_its_processors_equally() {
    assert_eq!(computed(1, [1000.0, 1000.0]), 2000 * STEP);
    assert_eq!(computed(1, [1000.0, 3000.0]), 4000 * STEP);
    assert_eq!(computed(2, [1000.0, 3000.0]), 3000 * STEP);
    assert_eq!(computed(8, [1000.0, 1000.0]), 1000 * STEP);
}

/// Seven clients and three servers, with these lines first.
fn seven_and_three(first: &str, cpus: u32) -> Platform {
    let clients = format!("[[nodes]]\nname = 'client'\ncount = 7\nclients = 1\ncpus = {cpus}\n");
    platform(&[first, SWITCH, &clients, &servers(3)])
}

/// Seven nodes with a client each; three of them have a server too.
fn seven_of_which_three_serve(first: &str) -> Platform {
    let both = "[[nodes]]\nname = 'both'\ncount = 3\nclients = 1\n";
    let clients = "[[nodes]]\nname = 'client'\ncount = 4\nclients = 1\n";
    platform(&[first, SWITCH, both, DISK, clients])
}

fn platforms() -> Vec<Platform> {
    vec![
        seven_and_three("", 1),
        seven_and_three("[files]\nstripe_bytes = '4k'\n", 2),
        seven_and_three("[files]\nstripe_bytes = 100000\n", 1),
        seven_and_three("[transport]\npacket_bytes = '10k'\naccess_bytes = '1m'\n", 1),
        seven_and_three("[transport]\npacket_bytes = '1m'\n", 4),
        seven_of_which_three_serve(""),
        seven_of_which_three_serve("[files]\nstripe_bytes = '12k'\n"),
    ]
}

const BLOCK: u64 = 77_000;
const BYTES: u64 = 7 * 12 * BLOCK;

fn calls(direction: Direction, blocks_per_call: u64) -> Individual {
    Individual::new(direction, 7, BYTES, BLOCK, blocks_per_call)
}

/// Runs it and holds the outcome against what no platform of these can beat.
fn hold<Q: EventQueue<iolab_sim::cluster::Event>>(
    mut cluster: Cluster<'_, Q>,
    direction: Direction,
    case: &str,
) {
    let seconds = cluster.run().unwrap_or_else(|error| panic!("{case}: {error}")).seconds();
    let moved: Vec<[u64; 2]> = cluster
        .server_totals()
        .map(|server| [server.device.read_bytes, server.device.written_bytes])
        .collect();
    let sum = |way: usize| moved.iter().map(|server| server[way]).sum::<u64>();
    let expected = match direction {
        Direction::Read => [BYTES, 0],
        Direction::Write => [0, BYTES],
    };
    assert_eq!([sum(0), sum(1)], expected, "{case}");
    let busiest = moved.iter().map(|server| server[0] + server[1]).max().unwrap_or(0);
    let fastest = busiest as f64 / (50.0 * 1048576.0);
    assert!(seconds > fastest, "{case}: {seconds} s, though a disk alone needs {fastest} s");
    for (kind, link) in cluster.link_totals() {
        let busy = link.busy_nanos as f64 / 1e9;
        assert!(busy <= seconds, "{case}: {kind:?} busy for {busy} of {seconds} s");
    }
    let carried = cluster.link_totals().filter(|(kind, _)| *kind == LinkKind::Switch);
    assert!(carried.map(|(_, link)| link.bytes).sum::<u64>() > BYTES / 2, "{case}");
}

fn setup_of(
    direction: Direction,
    order: Order,
    cache: &str,
    blocks_per_call: u64,
) -> Setup<'static> {
    let program: Box<dyn Program> = Box::new(calls(direction, blocks_per_call));
    let bytes = if direction == Direction::Read { BYTES } else { 0 };
    Setup {
        order,
        cache: Some(cache.to_owned()),
        files: vec![FileState { bytes }],
        ..setup(vec![program], 1)
    }
}

/// One run in the published order and three in the documented one.
fn hold_in_all_orders(
    on: &Platform,
    of: impl Fn(Order) -> Setup<'static>,
    way: Direction,
    case: &str,
) {
    let published = Cluster::build(on, of(Order::Published), Published::new()).unwrap();
    hold(published, way, case);
    for tie in 0..3 {
        let queue = Ordered::new(Seed(tie));
        let documented = Cluster::build(on, of(Order::Documented), queue).unwrap();
        hold(documented, way, &format!("{case}, tie {tie}"));
    }
}

#[test]
fn on_any_platform_every_byte_arrives_and_nothing_is_faster_than_its_parts() {
    for (index, on) in platforms().iter().enumerate() {
        for cache in ["none", "write-behind", "aggregation", "server-directed"] {
            for (way, blocks) in [Direction::Read, Direction::Write]
                .into_iter()
                .flat_map(|way| [1, 4, u64::MAX].map(|blocks| (way, blocks)))
            {
                let case = format!("platform {index}, {cache}, {way:?}, {blocks} per call");
                let of = |order| setup_of(way, order, cache, blocks);
                hold_in_all_orders(on, of, way, &case);
            }
        }
    }
}

#[test]
fn a_platform_that_fails_its_check_can_be_drawn_all_the_same() {
    let nobody = "[[nodes]]\nname = 'client'\nclients = 1\ncount = 0\n";
    let platform = platform(&[SWITCH, nobody, &servers(2)]);
    assert!(platform.check().is_err());
    assert!(platform.draw_text().contains("client (0 nodes)"));
    assert!(platform.draw_svg().into_string().contains("client (0 nodes)"));
}

#[test]
fn a_run_that_is_stopped_has_handled_as_many_events_as_it_was_allowed() {
    let on = platform(&[SWITCH, CLIENT, &servers(1)]);
    let script = Script::new(vec![vec![(FileOperation::Read.of(0), vec![Extent::new(0, 1000)])]]);
    let mut cluster = build_on(&on, setup(vec![Box::new(script)], 1));
    assert_eq!(cluster.event_count(), 0);
    cluster.start();
    assert!(cluster.advance(3), "there is more to do");
    assert_eq!(cluster.event_count(), 3);
    while cluster.advance(10) {}
    assert!(cluster.verdict().is_ok());
    assert!(cluster.event_count() > 3);
}
