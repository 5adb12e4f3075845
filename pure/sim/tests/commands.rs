//! Every MPI command on a small cluster: its time to the nanosecond, or the error it deserves.
//!
//! The classic figures: a NIC and a switch port carry 100 MiB/s with 200 us of latency, the switch
//! 1000 MiB/s with none, a step costs 1 us. So a message of one packet takes
//! `2 * size / 100 MiB/s + size / 1000 MiB/s + 400 us` from NIC to receiver.

use iolab_policy::collective::Choices;
use iolab_sim::cluster::{Cluster, FileState, Order, RunError, Setup};
use iolab_sim::platform::Platform;
use iolab_sim::program::{Command, Program, WORLD};
use iolab_sim::queue::Ordered;
use iolab_sim::workload::Script;
use iolab_vocab::{Nanos, Seed};

const STEP: u64 = 1000;

/// Time of `bytes` at so many MiB/s, cut off to whole nanoseconds.
fn carried(bytes: u64, mib_per_second: f64) -> u64 {
    (bytes as f64 / (mib_per_second * 1048576.0) * 1e9) as u64
}

/// Until a packet has left its sender.
fn left(bytes: u64) -> u64 {
    carried(bytes, 100.0)
}

/// Until a message of one packet has reached its receiver.
fn reached(bytes: u64) -> u64 {
    2 * (carried(bytes, 100.0) + 200_000) + carried(bytes, 1000.0)
}

fn run_programs(programs: Vec<Box<dyn Program>>, files: usize) -> Result<Nanos, RunError> {
    let platform = Platform::preset("classic-hdd").unwrap();
    let setup = Setup {
        order: Order::Documented,
        cache: None,
        collectives: Choices::default(),
        files: vec![FileState { bytes: 10 << 20 }; files],
        programs,
    };
    Cluster::build(&platform, setup, Ordered::new(Seed(0)))?.run()
}

fn run(ranks: Vec<Vec<Command>>) -> Result<Nanos, RunError> {
    run_programs(vec![Box::new(Script::of_commands(ranks))], 1)
}

fn send(to: u32, tag: u32, bytes: u64) -> Command {
    Command::Send { to, tag, bytes, communicator: WORLD }
}

fn receive(from: u32, tag: u32) -> Command {
    Command::Receive { from, tag, communicator: WORLD }
}

#[test]
fn an_eager_message_travels_at_once() {
    let bytes = 50_000;
    let time = run(vec![vec![send(1, 7, bytes)], vec![receive(0, 7)]]).unwrap();
    assert_eq!(time.0, STEP + reached(bytes));
}

#[test]
fn a_message_above_the_eager_limit_is_offered_first() {
    let bytes = 102_401;
    let time = run(vec![vec![send(1, 7, bytes)], vec![receive(0, 7)]]).unwrap();
    // Offer, reply, then a full packet and one of a byte that follows it through every station.
    let data = reached(102_400) + left(1);
    assert_eq!(time.0, 3 * STEP + 2 * reached(100) + data);
}

#[test]
fn a_cycle_of_receives_is_named() {
    let error = run(vec![vec![receive(1, 7), send(1, 8, 10)], vec![receive(0, 8), send(0, 7, 10)]])
        .unwrap_err();
    assert_eq!(
        error.message(),
        "standstill at 0.000001000 s: 2 processes wait\n  \
         rank 0 waits for a message of rank 1 (tag 7) [receive from rank 1 (tag 7)]\n  \
         rank 1 waits for a message of rank 0 (tag 8) [receive from rank 0 (tag 8)]\n\
         cycle: rank 0 -> rank 1 -> rank 0"
    );
}
