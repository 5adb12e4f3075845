//! Rules about datasets of HDF5 and variables of NetCDF: what an access comes to below.

use super::finding::{Evidence, Finding};
use crate::facts::Facts;
use crate::objects::{Accesses, Between};
use crate::text::datasets::library;
use crate::thousands::grouped;
use iolab_trace::Layer;
use iolab_vocab::{Direction, format_bytes};

pub(super) const NAMES: &[&str] =
    &["partial-chunk-access", "small-dataset-accesses", "metadata-between-data"];

/// Fewer accesses are no habit.
const HABIT_CALLS: u64 = 20;
/// Fewer bytes below are what a file costs anyway.
const MOVED_BYTES: u64 = 1 << 20;
/// Whole chunks move about what was asked for; more is for nothing.
const AMPLIFICATION: f64 = 2.0;
/// An access takes microseconds in the library, whatever it moves.
const TINY_BYTES: u64 = 1024;
const TINY_CALLS: u64 = 1000;
/// Metadata goes out together unless something has it go out.
const BETWEEN_WRITES: u64 = 100;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let rules = [partial_chunks, tiny_accesses, between_data];
    rules.iter().filter_map(|rule| rule(facts)).collect()
}

/// The worst of the datasets and directions that `applies` to, by the time of its accesses.
fn worst<'a>(
    facts: &'a Facts,
    applies: impl Fn(&Accesses, bool) -> bool,
) -> Option<(usize, Direction, &'a Accesses)> {
    let objects = &facts.analysis.header.objects;
    let hits = facts
        .analysis
        .objects
        .datasets()
        .flat_map(|(at, both)| both.map(|(direction, accesses)| (at, direction, accesses)));
    hits.filter(|(at, _, accesses)| {
        applies(accesses, objects.get(*at).is_some_and(|object| !object.chunk.is_empty()))
    })
    .max_by_key(|(at, _, accesses)| (accesses.ns, std::cmp::Reverse(*at)))
}

fn partial_chunks(facts: &Facts) -> Option<Finding> {
    let (at, direction, accesses) = worst(facts, |accesses, is_chunked| {
        is_chunked
            && accesses.count >= HABIT_CALLS
            && accesses.moved_bytes >= MOVED_BYTES
            && accesses.amplification().is_some_and(|ratio| ratio >= AMPLIFICATION)
    })?;
    let object = &facts.analysis.header.objects[at];
    let elements =
        object.chunk.iter().fold(object.element_bytes, |all, side| all.saturating_mul(*side));
    let sides: Vec<String> = object.chunk.iter().map(u64::to_string).collect();
    let message = format!(
        "{} {} of {} in all move {} through chunks of {} ({})",
        grouped(accesses.count),
        many(direction),
        format_bytes(accesses.asked_bytes),
        format_bytes(accesses.moved_bytes),
        sides.join(" × "),
        format_bytes(elements),
    );
    let remedy = match object.kind.as_str() {
        "variable" => {
            "choose chunks that an access covers whole (nc_def_var_chunking), or a cache that holds those of a \
             whole row of accesses (nc_set_var_chunk_cache)"
        }
        _ => {
            "choose chunks that an access covers whole (H5Pset_chunk), or a cache that holds those of a whole row \
             of accesses (H5Pset_chunk_cache)"
        }
    };
    Some(on_dataset(NAMES[0], facts, at, accesses, message, remedy))
}

fn tiny_accesses(facts: &Facts) -> Option<Finding> {
    let (at, direction, accesses) = worst(facts, |accesses, _| {
        accesses.count >= TINY_CALLS && accesses.asked_bytes / accesses.count < TINY_BYTES
    })?;
    let message = format!(
        "{} {} of {} on average",
        grouped(accesses.count),
        many(direction),
        format_bytes(accesses.asked_bytes / accesses.count),
    );
    let remedy = "collect elements and move many with one call (one selection, one buffer)";
    Some(on_dataset(NAMES[1], facts, at, accesses, message, remedy))
}

fn many(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}

fn on_dataset(
    rule: &'static str,
    facts: &Facts,
    at: usize,
    accesses: &Accesses,
    message: String,
    remedy: &str,
) -> Finding {
    let object = &facts.analysis.header.objects[at];
    let evidence = Evidence {
        calls: accesses.count,
        bytes: accesses.moved_bytes,
        time_ns: accesses.ns,
        rows: accesses.row.into_iter().collect(),
        ..Evidence::default()
    };
    let message = format!("{}: {message}", object.path);
    let finding = Finding::of_run(rule, facts, &accesses.by_process, evidence, message, remedy);
    about_file(facts, object.file as usize, finding)
}

fn between_data(facts: &Facts) -> Option<Finding> {
    let many = |between: &Between| {
        between.count >= BETWEEN_WRITES && between.count >= between.data_writes.div_ceil(2)
    };
    let hits = facts.analysis.objects.files().filter(|(_, it)| many(&it.between));
    let (file, of_file) =
        hits.max_by_key(|(file, it)| (it.between.count, std::cmp::Reverse(*file)))?;
    let between = &of_file.between;
    let remedy = match of_file.layer {
        Layer::Netcdf => {
            "define everything before the first data, and call nc_sync, nc_redef and nc_enddef seldom: each writes \
             the header, the number of records or NetCDF-4's metadata"
        }
        _ => {
            "flush and close seldom, write attributes together, and keep metadata in one place \
             (H5Pset_meta_block_size, H5Pset_libver_bounds with the latest format)"
        }
    };
    let message = format!(
        "{} small writes of {}'s own metadata ({}) between {} writes of data",
        grouped(between.count),
        library(of_file.layer.name()),
        format_bytes(between.bytes),
        grouped(between.data_writes),
    );
    let evidence = Evidence {
        calls: between.count,
        bytes: between.bytes,
        time_ns: between.by_process.values().sum(),
        rows: between.row.into_iter().collect(),
        ..Evidence::default()
    };
    let finding = Finding::of_run(NAMES[2], facts, &between.by_process, evidence, message, remedy);
    Some(about_file(facts, file, finding))
}

/// The same about a file.
fn about_file(facts: &Facts, file: usize, finding: Finding) -> Finding {
    let path = facts.analysis.header.files.get(file).map(|entry| entry.path.clone());
    Finding { file: Some(file), files: path.into_iter().collect(), ..finding }
}
