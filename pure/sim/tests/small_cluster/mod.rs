//! A small classic cluster for tests: how long things take on it, and runs of listed commands.
//!
//! The classic figures: a NIC and a switch port carry 100 MiB/s with 200 us of latency, the switch
//! 1000 MiB/s with none, a step costs 1 us. So a message of one packet takes
//! `2 * size / 100 MiB/s + size / 1000 MiB/s + 400 us` from NIC to receiver.

#![allow(dead_code, reason = "every test file uses its own part of this")]

use iolab_policy::collective::{CollectiveKind, CollectiveSelection};
use iolab_sim::cluster::{Cluster, Event, FileState, Order, RunError, ServerTotals, Setup};
use iolab_sim::platform::Platform;
use iolab_sim::program::{Command, Program, WORLD, What};
use iolab_sim::queue::Ordered;
use iolab_sim::workload::Script;
use iolab_vocab::{Extent, Nanos, Seed};

/// A step of a command.
pub(crate) const STEP: u64 = 1000;
/// From the end of a link to its other end.
pub(crate) const LATENCY: u64 = 200_000;
/// Bytes of every file at the start.
pub(crate) const FILE_BYTES: u64 = 64 << 20;

/// Time of `bytes` at so many MiB/s, cut off to whole nanoseconds.
fn carried(bytes: u64, mib_per_second: f64) -> u64 {
    (bytes as f64 / (mib_per_second * 1048576.0) * 1e9) as u64
}

/// A NIC or a port is busy so long with a packet.
pub(crate) fn wire(bytes: u64) -> u64 {
    carried(bytes, 100.0)
}

/// The switch is.
pub(crate) fn switch(bytes: u64) -> u64 {
    carried(bytes, 1000.0)
}

/// A message of one packet needs so long from NIC to receiver.
pub(crate) fn reached(bytes: u64) -> u64 {
    2 * (wire(bytes) + LATENCY) + switch(bytes)
}

pub(crate) fn classic() -> Platform {
    Platform::preset("classic-hdd").unwrap()
}

/// Programs on `files` files, nothing chosen.
pub(crate) fn setup(programs: Vec<Box<dyn Program>>, files: usize) -> Setup<'static> {
    Setup {
        order: Order::Documented,
        cache: None,
        collectives: CollectiveSelection::default(),
        files: vec![FileState { bytes: FILE_BYTES }; files],
        programs,
    }
}

pub(crate) fn build(setup: Setup<'_>) -> Cluster<'_, Ordered<Event>> {
    build_on(&classic(), setup)
}

pub(crate) fn build_on<'p>(platform: &Platform, setup: Setup<'p>) -> Cluster<'p, Ordered<Event>> {
    Cluster::build(platform, setup, Ordered::new(Seed(0))).unwrap()
}

pub(crate) fn run_program(program: Script) -> Result<Nanos, RunError> {
    build(setup(vec![Box::new(program)], 1)).run()
}

pub(crate) fn run(ranks: Vec<Vec<Command>>) -> Result<Nanos, RunError> {
    run_program(Script::of_commands(ranks))
}

/// One rank with extents.
pub(crate) fn run_lines(lines: Vec<(Command, Vec<Extent>)>) -> Result<Nanos, RunError> {
    run_program(Script::new(vec![lines]))
}

pub(crate) fn totals(setup: Setup) -> (Nanos, Vec<ServerTotals>) {
    let mut cluster = build(setup);
    let time = cluster.run().unwrap();
    (time, cluster.server_totals().collect())
}

pub(crate) fn send(to: u32, tag: u32, bytes: u64) -> Command {
    What::Send { to, tag, bytes, communicator: WORLD }.awaited()
}

pub(crate) fn receive(from: u32, tag: u32) -> Command {
    What::Receive { from, tag, communicator: WORLD }.awaited()
}

pub(crate) fn barrier() -> Command {
    What::barrier(WORLD).awaited()
}

/// Among all.
pub(crate) fn collective(kind: CollectiveKind, root: u32, bytes: u64) -> Command {
    What::Collective { kind, root, bytes, communicator: WORLD }.awaited()
}

pub(crate) fn compute(microseconds: u64) -> Command {
    What::Compute { instructions: microseconds as f64 }.awaited()
}
