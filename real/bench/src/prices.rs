//! What the smallest things cost on this machine: a system call, a fresh page, a copy.
//!
//! Ratios of small operations are ratios of these prices, which differ by a factor of five between
//! machines; so they stand in every result. Each is the least of some batches, a few milliseconds in all.

use iolab_host::tick::monotonic;
use iolab_report::bench::Prices;
use std::hint::black_box;

const BATCHES: usize = 5;
const PAGE: usize = 4096;

/// Measures all three.
pub(crate) fn prices() -> Prices {
    Prices { call_ns: call(), page_ns: page(), copy_mib_per_second: copy() }
}

fn least(mut batch: impl FnMut() -> f64) -> f64 {
    (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// A system call that does nothing: asking for the parent.
fn call() -> f64 {
    const CALLS: u32 = 2000;
    least(|| {
        let start = monotonic();
        for _ in 0..CALLS {
            black_box(rustix::process::getppid());
        }
        (monotonic() - start) as f64 / f64::from(CALLS)
    })
}

/// The first touch of a page that the kernel has not given out yet: the least of some batches, none of
/// which is given back before the last, as what was given back is not fresh (nor may be the first).
fn page() -> f64 {
    const PAGES: usize = 512;
    let mut held = Vec::new();
    let mut taken: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let mut memory = vec![0u8; PAGES * PAGE];
            let start = monotonic();
            for page in memory.chunks_mut(PAGE) {
                page[0] = black_box(1);
            }
            let taken = monotonic() - start;
            held.push(memory);
            taken as f64 / PAGES as f64
        })
        .collect();
    taken.drain(1..).fold(f64::INFINITY, f64::min)
}

/// Copying within the caches, the fastest there is: nothing that is copied is faster.
fn copy() -> f64 {
    const BYTES: usize = 128 << 10;
    let (from, mut to) = (vec![1u8; BYTES], vec![0u8; BYTES]);
    let each = least(|| {
        let start = monotonic();
        for _ in 0..8 {
            to.copy_from_slice(black_box(&from));
            black_box(&to);
        }
        (monotonic() - start) as f64 / 8.0
    });
    BYTES as f64 / f64::from(1 << 20) / (each.max(1.0) / 1e9)
}
