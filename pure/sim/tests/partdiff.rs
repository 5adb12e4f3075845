//! The published simulation of partdiff (2009), a real parallel program, beside ours.

use iolab_sim::cluster::Order;
use iolab_sim::evaluation::partdiff::{self, CACHES, published};
use iolab_sim::evaluation::{Conduct, Run};
use iolab_sim::workload::recorded::Recording;
use iolab_sim::workload::{Settings, simulate};
use iolab_vocab::Seed;
use std::ops::ControlFlow;

const CONDUCTS: [Conduct; 3] = [
    Conduct { order: Order::Published, tie_seed: Seed(0) },
    Conduct { order: Order::Documented, tie_seed: Seed(0) },
    Conduct { order: Order::Documented, tie_seed: Seed(7) },
];

fn runs(conduct: Conduct) -> Vec<Run> {
    let recording = Recording::of(&partdiff::trace()).unwrap();
    let platform = partdiff::platform();
    let run = |cache: &&str| partdiff::run(&recording, &platform, cache, conduct).unwrap();
    CACHES.iter().map(run).collect()
}

#[test]
fn run_times_are_within_five_percent_of_the_published_ones() {
    for conduct in CONDUCTS {
        for (cache, run) in CACHES.iter().zip(runs(conduct)) {
            let wanted = published(cache)[0].seconds;
            let differs = run.seconds / wanted - 1.0;
            assert!(differs.abs() < 0.05, "{cache}, {conduct:?}: {} for {wanted}", run.seconds);
        }
    }
}

#[test]
fn no_cache_is_slowest_then_write_behind_and_the_others_are_level() {
    for conduct in CONDUCTS {
        let seconds: Vec<f64> = runs(conduct).iter().map(|run| run.seconds).collect();
        assert!(seconds[0] > 1.5 * seconds[1] && seconds[1] > 1.5 * seconds[2], "{seconds:?}");
        let level = &seconds[2..];
        assert!(level.iter().all(|one| (one / level[0] - 1.0).abs() < 0.01), "{seconds:?}");
    }
}

#[test]
fn the_servers_store_the_published_bytes_in_sum() {
    for (cache, run) in CACHES.iter().zip(runs(CONDUCTS[0])) {
        let ours: u64 = run.servers.iter().map(|server| server.device.written_bytes).sum();
        let wanted: u64 = published(cache).iter().map(|row| row.bytes).sum();
        // Server-directed I/O drops what is overwritten while it waits, in the table too.
        assert_eq!(ours, wanted, "{cache}");
    }
}

#[test]
fn without_cache_every_server_but_the_last_makes_the_published_accesses() {
    let run = &runs(CONDUCTS[0])[0];
    let ours: Vec<u64> = run.servers.iter().map(|server| server.device.access_count()).collect();
    let wanted: Vec<u64> = published("none").iter().map(|row| row.accesses).collect();
    assert_eq!(ours[..4], wanted[..4]);
    let far: Vec<u64> = run.servers.iter().map(|server| server.device.far_count).collect();
    let wanted: Vec<u64> = published("none").iter().map(|row| row.far).collect();
    assert_eq!(far, wanted);
}

#[test]
fn a_faster_processor_runs_the_recorded_program_faster() {
    let recording = Recording::of(&partdiff::trace()).unwrap();
    let mut platform = partdiff::platform();
    platform.nodes[0].instructions_per_second *= 10.0;
    let run = partdiff::run(&recording, &platform, "aggregation", CONDUCTS[1]).unwrap();
    assert!(run.seconds < 2.5, "{}", run.seconds);
}

#[test]
fn a_trace_without_one_of_its_ranks_is_refused() {
    let mut trace = partdiff::trace();
    trace.header.processes.remove(3);
    let error = Recording::of(&trace).unwrap_err();
    assert_eq!(error.message, "there is no rank 3");
}

#[test]
fn the_shell_that_started_a_rank_is_not_taken_for_it_and_two_programs_are() {
    let mut trace = partdiff::trace();
    let shell = trace.header.processes[3].clone();
    trace.header.processes.push(shell);
    assert_eq!(Recording::of(&trace).unwrap().rank_count(), 5);
    let other = trace.header.processes.len() as u32 - 1;
    let row = trace.events.iter().rposition(|event| event.rank == 3 && event.parent < 0).unwrap();
    trace.events[row].process = other;
    assert_eq!(Recording::of(&trace).unwrap_err().message, "rank 3 is there twice");
    trace.events[row].rank = 9;
    let error = Recording::of(&trace).unwrap_err();
    assert_eq!(error.message, "rank 9 calls MPI and is no process of the trace");
}

#[test]
fn the_simulated_trace_of_it_is_a_program_and_runs_as_it_did() {
    let platform = partdiff::platform();
    let settings = Settings { record: true, ..Settings::default() };
    let run = |recording: &Recording| {
        let job = recording.job();
        simulate(job, &platform, &settings, &mut |_| ControlFlow::Continue(())).unwrap()
    };
    let first = run(&Recording::of(&partdiff::trace()).unwrap());
    let again = run(&Recording::of(&first.trace.unwrap()).unwrap());
    assert_eq!((again.end, again.event_hash), (first.end, first.event_hash));
}

#[test]
fn a_call_in_an_unknown_communicator_is_refused_by_rank_and_name() {
    let mut trace = partdiff::trace();
    let row = trace.events.iter().position(|event| event.rank == 2 && event.parent < 0).unwrap();
    trace.events[row].fd = -1;
    let error = Recording::of(&trace).unwrap_err();
    assert!(error.message.starts_with("rank 2: MPI_Allgather at 0."), "{error}");
}
