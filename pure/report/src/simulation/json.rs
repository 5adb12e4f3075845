//! A simulation as one document, for programs. Times are in seconds.

use super::{Banded, Compared, Simulation, order_name, seconds, share};
use iolab_policy::collective::CollectiveKind;
use iolab_sim::cluster::ServerTotals;
use iolab_sim::program::PhaseTotals;
use iolab_sim::workload::{CacheOutcome, FileSystemOutcome, TrafficOutcome};
use iolab_vocab::Nanos;
use serde_json::{Value, json};

impl Simulation<'_> {
    /// Everything, as one document.
    pub fn json(&self) -> Value {
        let Simulation { subject, platform, settings, outcome: banded, faulted, chosen, compared } =
            self;
        let Banded { outcome, band, tie_seed } = banded;
        let collectives: serde_json::Map<String, Value> = CollectiveKind::ALL
            .iter()
            .map(|&serves| (serves.name().to_owned(), json!(settings.collectives.of(serves).name)))
            .collect();
        json!({
            "workload": subject.name,
            "platform": platform.name,
            "order": order_name(settings.order),
            "seed": subject.seed.map(|seed| seed.0),
            "compared": compared.map(Compared::json),
            "recorded_seconds": subject.recorded.map(Nanos::seconds),
            "tie_seed": tie_seed.0,
            "cache": settings.cache,
            "collectives": collectives,
            "seconds": outcome.end.seconds(),
            "end_ns": outcome.end.0,
            "event_count": outcome.event_count,
            "event_hash": format!("{:016x}", outcome.event_hash),
            "band": (band.count > 1).then(|| json!({
                "tie_seeds": band.count, "low": band.low, "median": band.median, "high": band.high,
            })),
            "notes": platform.notes(),
            "choices": chosen.as_ref().map(|chosen| chosen.json(banded)),
            "faults": faulted.as_ref().map(|faulted| faulted.json(banded)),
            "applications": outcome.applications.iter().map(|one| json!({
                "name": one.name,
                "ranks": one.rank_count,
                "end_seconds": one.end.seconds(),
                "phases": one.phases.iter().map(phase_json).collect::<Vec<_>>(),
                "notes": one.notes,
            })).collect::<Vec<_>>(),
            "servers": outcome.servers.iter().map(|server| {
                server_json(&server.name, &server.totals, share(server.totals.device.busy_nanos, outcome))
            }).collect::<Vec<_>>(),
            "file_system": outcome.file_system.as_ref().map(file_system_json),
            "links": outcome.links.iter().map(|link| json!({
                "name": link.name,
                "kind": link.kind.name(),
                "packets": link.totals.packets,
                "bytes": link.totals.bytes,
                "busy_seconds": seconds(link.totals.busy_nanos),
                "busy_share": share(link.totals.busy_nanos, outcome),
            })).collect::<Vec<_>>(),
        })
    }
}

fn phase_json(phase: &PhaseTotals) -> Value {
    json!({
        "name": phase.name,
        "start_seconds": phase.start.map(Nanos::seconds),
        "end_seconds": phase.end.seconds(),
        "rank_seconds": seconds(phase.rank_nanos),
        "calls": phase.calls,
        "read_bytes": phase.read_bytes,
        "written_bytes": phase.written_bytes,
    })
}

fn file_system_json(file_system: &FileSystemOutcome) -> Value {
    json!({
        "name": file_system.name,
        "durability": file_system.durability.name(),
        "layout": file_system.layout,
        "servers": file_system.servers.iter().map(|TrafficOutcome { name, totals }| json!({
            "name": name,
            "requests": totals.request_count,
            "received_bytes": totals.received_bytes,
            "sent_bytes": totals.sent_bytes,
            "queue_max": totals.queue_max,
        })).collect::<Vec<_>>(),
        "caches": file_system.caches.iter().map(cache_json).collect::<Vec<_>>(),
    })
}

fn cache_json(CacheOutcome { name, totals }: &CacheOutcome) -> Value {
    json!({
        "name": name,
        "requests": totals.traffic.request_count,
        "received_bytes": totals.traffic.received_bytes,
        "sent_bytes": totals.traffic.sent_bytes,
        "queue_max": totals.traffic.queue_max,
        "hits": totals.hit_count,
        "misses": totals.miss_count,
        "fetches": totals.fetch_count,
        "fetched_bytes": totals.fetched_bytes,
        "flushes": totals.flush_count,
        "flushed_bytes": totals.flushed_bytes,
        "dirty_bytes_max": totals.unsaved_bytes_max,
    })
}

fn server_json(name: &str, totals: &ServerTotals, share: f64) -> Value {
    json!({
        "name": name,
        "no_seek": totals.device.no_seek_count,
        "near": totals.device.near_count,
        "far": totals.device.far_count,
        "read_bytes": totals.device.read_bytes,
        "written_bytes": totals.device.written_bytes,
        "busy_seconds": seconds(totals.device.busy_nanos),
        "busy_share": share,
        "queue_max": totals.queue_max,
        "found_bytes": totals.memory.found_bytes,
        "kept_bytes_max": totals.memory.kept_bytes_max,
    })
}
