//! Whatever a back end gets wrong without saying so is found, in every cell of pattern × temporal pattern
//! × method: a benchmark that verifies cannot be told "verified" by a liar.

use iolab_backend::{Arena, Backend, Catalog, Cruel, Fault, IoError, Lies, Method};
use iolab_bench::{Abilities, Outcome, Plan, Progress, Temporal, TestFiles, run};
use iolab_comm::{Comm, LocalKind, run_local};
use iolab_pattern::Catalog as Patterns;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the back ends made on this thread are to do; the other ranks have threads of their own and
/// are honest.
struct Orders {
    method: &'static str,
    fault: Fault,
    lies: Lies,
    told: Arc<AtomicU64>,
}

thread_local! {
    static ORDERS: RefCell<Option<Orders>> = const { RefCell::new(None) };
}

fn make(arena: Arena, depth: usize) -> Result<Box<dyn Backend>, IoError> {
    ORDERS.with_borrow(|orders| {
        let name = orders.as_ref().map_or("posix", |orders| orders.method);
        let inner = (Catalog::find(name).expect("a method").make)(arena, depth)?;
        Ok(match orders {
            None => inner,
            Some(Orders { fault, lies, told, .. }) => {
                Box::new(Cruel::new(inner, *fault, *lies, Arc::clone(told)))
            }
        })
    })
}

/// The method of that name, made by `make`.
fn lying(name: &'static str) -> &'static Method {
    let Method { name, summary, needs, keeps_data, collective, queues, direct, .. } =
        *Catalog::find(name).expect("a method");
    Box::leak(Box::new(Method {
        name,
        summary,
        needs,
        keeps_data,
        collective,
        queues,
        direct,
        make,
    }))
}

const TEMPORALS: [Temporal; 7] = [
    Temporal::Write,
    Temporal::Read,
    Temporal::ReadModifyWrite,
    Temporal::ReadThenWrite,
    Temporal::ReRead,
    Temporal::ReWrite,
    Temporal::Mixed,
];

fn plan(folder: &Path, method: &'static str, ranks: u32, repetitions: u32) -> Plan {
    let patterns: Vec<String> = (Patterns::ROWS.iter())
        .map(|row| format!("\"{}:{}\"", row.name, row.small))
        .filter(|spec| ranks != 1 || !spec.contains("grid="))
        .collect();
    let temporals: Vec<String> =
        TEMPORALS.iter().map(|temporal| format!("\"{}\"", temporal.name())).collect();
    let text = format!(
        "[global]\ntarget = '{}'\nrepetitions = {repetitions}\nverify = true\nsync = false\n\
         [[test]]\nspatial = [{}]\ntemporal = [{}]\nmethod = '{method}'\n",
        folder.join("data").display(),
        patterns.join(", "),
        temporals.join(", ")
    );
    let mut plan = Plan::parse(&text).expect("a plan");
    let method = lying(method);
    plan.cases.iter_mut().for_each(|case| case.method = method);
    plan
}

/// Runs every cell with a liar on rank 0; gives for each how many lies were told and what came of it.
fn told(
    method: &'static str,
    fault: Fault,
    lies: Lies,
    ranks: u32,
    repetitions: u32,
) -> (Outcome, BTreeMap<String, (u64, bool)>) {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(folder.path(), method, ranks, repetitions);
    let count = Arc::new(AtomicU64::new(0));
    let cells = RefCell::new(BTreeMap::new());
    let before = RefCell::new(0);
    ORDERS.set(Some(Orders { method, fault, lies, told: Arc::clone(&count) }));
    let abilities = Abilities { uring: true, ..Abilities::default() };
    let cells = std::sync::Mutex::new((cells, before));
    let files = TestFiles::of(&plan.target, ranks, plan.files).expect("memory");
    let outcome = run_local(LocalKind::Threads, ranks, |comm| {
        let observe = |progress: Progress| {
            let Progress::Measured(m) = progress else { return };
            let mut held = cells.lock().expect("one at a time");
            let (cells, before) = &mut *held;
            // All phases of a case are observed together, after it.
            let (now, before) = (count.load(Relaxed), before.get_mut());
            let cell = format!("{} {} #{}", m.temporal, m.spatial, m.repetition);
            let entry = cells.get_mut().entry(cell).or_insert((0, false));
            entry.0 += now - *before;
            entry.1 |= m.invalid.is_some();
            *before = now;
        };
        run(&plan, comm, &abilities, &files, &observe)
    });
    ORDERS.set(None);
    let outcome = outcome.expect("threads").expect("an outcome");
    let (cells, _) = cells.into_inner().expect("over");
    (outcome, cells.into_inner())
}

/// A write that is done elsewhere as well may be written over by its rightful owner: no harm done.
/// Among several ranks that is a matter of who is later, for every single one of them. A write of a pattern that writes places twice may be left out once.
fn may_be_harmless(fault: Fault, lies: Lies, ranks: u32, cell: &str) -> bool {
    match fault {
        Fault::DuplicateWrite => lies != Lies::Always || ranks > 1,
        fault if fault.way() == iolab_backend::Direction::Write => {
            lies == Lies::Once && (cell.contains("database") || cell.contains("tiled"))
        }
        _ => false,
    }
}

fn every_lie_is_found(method: &'static str, ranks: u32) {
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        for lies in [Lies::Once, Lies::FirstTime, Lies::Always] {
            let (_, cells) = told(method, fault, lies, ranks, 1);
            assert!(cells.len() >= 7 * 10, "{} cells", cells.len());
            let lied = cells.values().filter(|(told, _)| *told > 0).count();
            assert!(lied >= 20, "{fault:?} {lies:?}: only {lied} cells were lied to");
            for (cell, (told, found)) in cells {
                if told > 0 && !found && !may_be_harmless(fault, lies, ranks, &cell) {
                    missed.push(format!("{method} {fault:?} {lies:?}: {cell}"));
                }
                assert!(told > 0 || !found, "{method} {fault:?} {lies:?}: {cell} is honest");
            }
        }
    }
    assert!(missed.is_empty(), "{} lies were believed: {missed:#?}", missed.len());
}

#[test]
fn every_lie_of_posix_is_found_in_every_cell() {
    every_lie_is_found("posix", 1);
}

#[test]
fn every_lie_of_a_rank_among_honest_ones_is_found_in_every_cell() {
    every_lie_is_found("vectored", 2);
}

#[test]
fn every_lie_of_a_queue_is_found_in_every_cell() {
    every_lie_is_found("aio", 1);
}

/// Runs a plan of the tests given and gives its outcome; the file is kept for a look.
fn run_kept(folder: &Path, global: &str, test: &str) -> Outcome {
    let text = format!(
        "[global]\ntarget = '{}'\nkeep = true\nsync = false\n{global}\n[[test]]\n{test}",
        folder.join("data").display()
    );
    let plan = Plan::parse(&text).expect("a plan");
    let files = TestFiles::of(&plan.target, 1, plan.files).expect("memory");
    let work = |comm: &dyn Comm| run(&plan, comm, &Abilities::default(), &files, &|_| ());
    run_local(LocalKind::Threads, 1, work).expect("threads").expect("an outcome")
}

#[test]
fn a_read_after_a_write_reads_what_the_pattern_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    // The strips of one segment of 1 KiB, with holes: one large write would leave none.
    let test = "spatial = 'nested'\ntemporal = ['write', 'read', 're-read']";
    let outcome = run_kept(folder.path(), "verify = true\nrepetitions = 2", test);
    let data = |temporal: &str| -> Vec<&str> {
        let all = outcome.measurements.iter().filter(|m| m.temporal == temporal);
        all.map(|m| m.settings.get("data").map_or("", String::as_str)).collect()
    };
    assert_eq!(data("read"), ["as the pattern wrote it"; 2]);
    assert_eq!(data("re-read"), ["written in one piece"; 4]);
    for m in &outcome.measurements {
        assert!(m.invalid.is_none() && m.verified > Some(0), "{:?}", m.invalid);
    }
}

#[test]
fn a_file_longer_than_the_table_of_content_is_verified_and_holds_no_two_equal_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = "spatial = 'random-blocks:block=64k,count=600'\ntemporal = 'write'\nmethod = 'aio'\ndepth = 8";
    let outcome = run_kept(folder.path(), "verify = true\nrepetitions = 1", test);
    let m = &outcome.measurements[0];
    assert_eq!((m.invalid.as_deref(), m.verified), (None, Some(600 << 16)));
    let file = std::fs::read(folder.path().join("data")).expect("kept");
    let pages: std::collections::BTreeSet<&[u8]> = file.chunks(4096).collect();
    assert_eq!(pages.len(), file.len() / 4096);
}
