//! A world in which every duration is known: the sanity checks without a clock.
//!
//! An operation takes a given time, a sweep of the computation another, each longer by a factor
//! while both run; the clock is a number that only they move. What the benchmark reports about such
//! a world can be said beforehand, to the digit.

use super::plan::{OverlapPlan, SWEEP};
use super::*;
use crate::kernel::Computation;
use iolab_backend::{Backend, IoError, Moved};
use iolab_comm::{LocalKind, run_local};
use iolab_pattern::Access;
use iolab_vocab::Rank;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Durations in nanoseconds.
#[derive(Clone, Copy)]
struct Durations {
    /// An operation that moves something.
    io: u64,
    /// One sweep alone.
    sweep: u64,
    /// Starting an operation.
    start: u64,
    /// By how much either takes longer while both run.
    io_beside: f64,
    sweep_beside: f64,
    /// `start` returns only when the operation is done.
    blocks: bool,
}

const WORLD: Durations = Durations {
    io: 1_000_000,
    sweep: 100,
    start: 0,
    io_beside: 1.0,
    sweep_beside: 1.0,
    blocks: false,
};

/// The clock, and until when an operation is under way.
#[derive(Default)]
struct World {
    now: AtomicU64,
    busy_until: AtomicU64,
    /// How many operations there were.
    operations: AtomicU64,
}

struct Device {
    world: Arc<World>,
    durations: Durations,
    arena: Arena,
    under_way: Option<Moved>,
    /// A helper thread would know this.
    call: Option<(u64, u64)>,
    tells: bool,
}

impl Device {
    fn pass(&self, nanos: u64) -> u64 {
        self.world.now.fetch_add(nanos, Relaxed) + nanos
    }
}

impl Backend for Device {
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    fn open(&mut self, _: &Opening, _: &dyn Comm) -> Result<(), IoError> {
        Ok(())
    }

    fn run(&mut self, _: Direction, access: &Access, _: usize) -> Result<Moved, IoError> {
        self.world.operations.fetch_add(1, Relaxed);
        self.pass(if access.bytes() > 0 { self.durations.io } else { 0 });
        Ok(Moved { bytes: access.bytes(), short: 0 })
    }

    fn start(&mut self, _: Direction, access: &Access, _: usize, _: u64) -> Result<(), IoError> {
        self.world.operations.fetch_add(1, Relaxed);
        let began = self.pass(self.durations.start);
        let nanos = if access.bytes() > 0 { self.durations.io as f64 } else { 0.0 };
        let nanos = (nanos * self.durations.io_beside) as u64;
        let end = if self.durations.blocks { self.pass(nanos) } else { began + nanos };
        self.world.busy_until.store(end, Relaxed);
        self.call = self.tells.then_some((began, end));
        self.under_way = Some(Moved { bytes: access.bytes(), short: 0 });
        Ok(())
    }

    fn poll(&mut self) -> Result<bool, IoError> {
        Ok(self.world.now.load(Relaxed) >= self.world.busy_until.load(Relaxed))
    }

    fn finish(&mut self) -> Result<(u64, Moved), IoError> {
        self.world.now.fetch_max(self.world.busy_until.load(Relaxed), Relaxed);
        let moved = self.under_way.take();
        moved.map(|moved| (0, moved)).ok_or_else(|| IoError::Cannot("nothing".to_owned()))
    }

    fn call(&self) -> Option<(u64, u64)> {
        self.call
    }

    fn sync(&mut self) -> Result<(), IoError> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}

struct Arithmetic {
    world: Arc<World>,
    durations: Durations,
}

impl Computation for Arithmetic {
    fn sweep_ns(&mut self) -> f64 {
        self.durations.sweep as f64
    }

    fn run(&mut self, sweeps: u64, every: u64, look: &mut dyn FnMut()) {
        for sweep in 1..=sweeps {
            let busy = self.world.now.load(Relaxed) < self.world.busy_until.load(Relaxed);
            let factor = if busy { self.durations.sweep_beside } else { 1.0 };
            let nanos = (self.durations.sweep as f64 * factor) as u64;
            self.world.now.fetch_add(nanos, Relaxed);
            if every > 0 && sweep % every == 0 {
                look();
            }
        }
    }
}

/// What is found in a world, on ranks whose durations are scaled by these factors.
fn found(test: &str, durations: Durations, scales: &[f64]) -> Vec<OverlapPoint> {
    let text = format!("[global]\nrepetitions=2\ncount=7\n[[test]]\n{test}");
    let plan = OverlapPlan::parse(&text).expect("valid");
    let result = run_local(LocalKind::Threads, scales.len() as u32, |comm| {
        let case = &plan.cases[0];
        let scale = scales[comm.rank().0 as usize];
        let durations = Durations { io: (durations.io as f64 * scale) as u64, ..durations };
        let world = Arc::new(World::default());
        let pattern = iolab_pattern::Catalog::make("strided:strip=64", comm.size(), plan.seed);
        let pattern = pattern.expect("a pattern");
        let needs = SourceNeeds { writes: true, data: true, exact: false, depth: 1 };
        let source = Source::plan(pattern.as_ref(), Rank(0), needs).expect("small");
        let device = Device {
            world: Arc::clone(&world),
            durations,
            arena: Arena::new(16),
            under_way: None,
            call: None,
            tells: case.way == AsyncMode::Thread,
        };
        let tools = Tools {
            pattern,
            backend: Box::new(device),
            source,
            computation: Box::new(Arithmetic { world: Arc::clone(&world), durations }),
            clock: Box::new({
                let world = Arc::clone(&world);
                move || world.now.load(Relaxed)
            }),
        };
        let mut actor = Actor::new(&plan, case, comm, tools, false);
        let mut points = Vec::new();
        measured(&mut actor, 0, &mut points, &|_| ()).expect("nothing fails");
        // Whatever a rank sees, others may have to take part in each of its operations.
        let counts = gather_numbers(comm, world.operations.load(Relaxed)).expect("all count");
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?} operations");
        points
    });
    result.expect("threads start")
}

const NATIVE: &str = "method='aio'\nway='native'\n";

#[test]
fn zero_bytes_have_nothing_to_overlap() {
    for way in ["", NATIVE] {
        for point in found(&format!("{way}load='zero-bytes'"), WORLD, &[1.0]) {
            assert_eq!((point.gain(), point.theory, point.bytes), (1.0, 1.0, 0));
            assert_eq!(
                (point.wait_ns.max, point.io_ns.max, point.compute_over_io),
                (0.0, 0.0, None)
            );
            assert!(point.usable && point.compute_ns.mean == 1e6);
        }
    }
}

#[test]
fn computation_alone_is_as_long_in_both_phases() {
    for point in found("load='none'", WORLD, &[1.0, 1.0]) {
        assert_eq!((point.ratio.mean, point.theory, point.io_inflation), (1.0, 1.0, None));
        assert_eq!((point.start_ns.max, point.wait_ns.max, point.bytes), (0.0, 0.0, 0));
        assert_eq!(point.compute_inflation.mean, 1.0);
    }
}

#[test]
fn io_alone_is_as_long_in_both_phases() {
    for point in found(&format!("{NATIVE}ratio=0.0"), WORLD, &[1.0]) {
        assert_eq!((point.ratio.mean, point.theory), (1.0, 1.0));
        assert_eq!((point.compute_over_io, point.wait_ns.mean), (Some(0.0), 1e6));
        assert_eq!(point.io_inflation.map(|io| io.mean), Some(1.0));
        assert_eq!(point.bytes, 7 * 64);
    }
}

#[test]
fn a_perfect_device_follows_the_theory_over_the_whole_sweep() {
    for way in ["way='thread'\n", NATIVE, "method='aio'\nway='native'\npoll=true\n"] {
        let points = found(&format!("{way}sweep=true"), WORLD, &[1.0]);
        assert_eq!(points.len(), 2 * SWEEP.len());
        for summary in overlap_summaries(&points) {
            let found = summary.found.as_ref().expect("all are usable");
            let c_over_io = found.compute_over_io.expect("there is I/O");
            assert!((c_over_io / summary.wanted - 1.0).abs() < 0.01, "{summary:?}");
            assert!(found.off_theory.abs() < 1e-9, "{way}: {found:?}");
        }
    }
}

#[test]
fn a_native_form_that_blocks_gains_nothing_and_its_start_shows_why() {
    let blocking = Durations { blocks: true, ..WORLD };
    for point in found(NATIVE, blocking, &[1.0]) {
        assert_eq!((point.ratio.mean, point.theory), (1.0, 0.5));
        assert_eq!((point.start_ns.mean, point.wait_ns.mean), (1e6, 0.0));
    }
}

#[test]
fn what_both_cost_each_other_is_found_as_inflation() {
    let shared = Durations { io_beside: 1.5, sweep_beside: 2.0, ..WORLD };
    for point in found("way='thread'\nratio=0.5", shared, &[1.0]) {
        assert!(point.usable, "quality {:?} after {} tries", point.quality, point.tries);
        assert!((point.compute_inflation.mean - 2.0).abs() < 0.01, "{:?}", point.compute_inflation);
        assert_eq!(point.io_inflation.map(|io| io.mean), Some(1.5));
        // 1.5 ms of I/O hide 0.75 ms of computation, which takes half of that alone.
        let expected = 1.5 / (1.0 + 0.375);
        assert!((point.ratio.mean / expected - 1.0).abs() < 0.02, "{:?}", point.ratio);
        assert!(point.ratio.mean > point.theory);
    }
}

#[test]
fn the_cost_of_starting_is_lost_even_when_all_else_overlaps() {
    let dear = Durations { start: 200_000, ..WORLD };
    for point in found(NATIVE, dear, &[1.0]) {
        assert_eq!(point.start_ns.mean, 200_000.0);
        assert!((point.ratio.mean - 1.2e6 / 2e6).abs() < 1e-9, "{:?}", point.ratio);
    }
}

#[test]
fn ranks_fit_their_own_computation_and_stand_with_their_extremes() {
    for point in found("way='thread'", WORLD, &[1.0, 3.0]) {
        assert_eq!((point.io_ns.min, point.io_ns.max, point.io_ns.mean), (1e6, 3e6, 2e6));
        assert!((point.compute_ns.max / point.compute_ns.min - 3.0).abs() < 0.01);
        assert!(point.usable && point.quality.max < 0.01);
        assert_eq!(point.bytes, 2 * 7 * 64);
        // The phase of all ranks is that of the slower one: three times as long as the other's.
        assert!((point.phases_ns().0 / point.nonblocking_ns.min - 3.0).abs() < 0.01);
    }
}

#[test]
fn ranks_do_as_many_operations_whether_they_see_their_ends_or_not() {
    // Rounded to whole sweeps, the computation is 30 ns shorter than one rank's operation, which is
    // then waited for, and 30 ns longer than that of the other.
    let points = found(NATIVE, WORLD, &[1.00003, 1.00007]);
    assert!(points.iter().all(|point| point.bytes == 2 * 7 * 64));
    assert!(points.iter().all(|point| point.wait_ns.min == 0.0 && point.wait_ns.max == 30.0));
}

#[test]
fn the_end_of_a_native_operation_is_known_when_it_is_polled_or_waited_for() {
    let short = "method='aio'\nway='native'\nratio=0.5\n";
    let long = "method='aio'\nway='native'\nratio=3.0\n";
    let io_of = |test: &str| found(test, WORLD, &[1.0])[0].io_beside_ns.map(|io| io.mean);
    assert_eq!(io_of(short), Some(1e6), "waited for");
    assert_eq!(io_of(long), None, "over while computing");
    let polled = io_of(&format!("{long}poll=true")).expect("polled");
    assert!((1e6..1e6 + 20_000.0).contains(&polled), "{polled}");
}
