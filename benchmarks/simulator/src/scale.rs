//! Many clients, many servers, many requests: time and memory while the run grows.

use crate::memory::resident_bytes;
use crate::requests::Requests;
use clap::Args;
use iolab_report::chart::{Axis, Chart, Mark, Series, Unit};
use iolab_sim::cluster::Progress;
use iolab_sim::platform::Platform;
use iolab_sim::workload::{Job, Settings, simulate};
use iolab_vocab::Direction;
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

#[derive(Args)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 10_000)]
    clients: u32,
    #[arg(long, default_value_t = 1000)]
    servers: u32,
    /// Requests of all clients together
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Size of a request
    #[arg(long, default_value_t = 4096)]
    bytes: u64,
    /// Write instead of reading
    #[arg(long)]
    write: bool,
    /// Cache layer of the servers
    #[arg(long, default_value = "none")]
    cache: String,
    /// Where the growth curves go: PREFIX-time.svg and PREFIX-memory.svg
    #[arg(long, value_name = "PREFIX")]
    plot: Option<String>,
}

/// How far the run was at some moment.
#[derive(Clone, Copy, Default)]
struct Sample {
    requests: u64,
    events: u64,
    seconds: f64,
    resident_bytes: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let platform = Platform::parse(&platform_text(arguments))?;
    let issued = Arc::new(AtomicU64::new(0));
    let job = job(arguments, &issued);
    let settings = Settings { cache: Some(arguments.cache.clone()), ..Settings::default() };
    let mut samples: Vec<Sample> = Vec::new();
    println!("{:>12} {:>14} {:>10} {:>8} {:>9}", "requests", "events", "seconds", "M/s", "MiB");
    let mut watch = |progress: Progress| {
        let requests = issued.load(Ordering::Relaxed);
        let last = samples.last().map_or(0, |sample| sample.requests);
        if requests > last + last / 4 {
            let sample = Sample::of(requests, progress.event_count, started);
            sample.print(samples.last());
            samples.push(sample);
        }
        ControlFlow::Continue(())
    };
    let outcome = simulate(job, &platform, &settings, &mut watch).map_err(|error| error.message)?;
    let end = Sample::of(issued.load(Ordering::Relaxed), outcome.event_count, started);
    end.print(samples.last());
    samples.push(end);
    println!("simulated {:.3} s", outcome.end.seconds());
    match &arguments.plot {
        Some(prefix) => plot(arguments, &samples, prefix),
        None => Ok(()),
    }
}

fn job(arguments: &Arguments, issued: &Arc<AtomicU64>) -> Job {
    let direction = if arguments.write { Direction::Write } else { Direction::Read };
    let per_rank = arguments.requests.div_ceil(u64::from(arguments.clients));
    let file_bytes = per_rank * u64::from(arguments.clients) * arguments.bytes;
    let program = Requests {
        direction,
        block_bytes: arguments.bytes,
        per_rank,
        done: vec![0; arguments.clients as usize],
        issued: Arc::clone(issued),
    };
    Job {
        files: vec![("data".to_owned(), if arguments.write { 0 } else { file_bytes })],
        applications: vec![("requests".to_owned(), Box::new(program))],
    }
}

/// Machines of today around one switch.
fn platform_text(arguments: &Arguments) -> String {
    let node = |name: &str, count: u32| {
        format!(
            "[[nodes]]\nname = \"{name}\"\ncount = {count}\ncpus = 16\n\
             instructions_per_second = 1e9\nmemory_bytes = \"64g\"\n\
             nic = {{ rate = \"2900m\", latency = \"5us\" }}\n"
        )
    };
    format!(
        "name = \"scale\"\n[transport]\npacket_bytes = \"64k\"\naccess_bytes = \"1m\"\n\
         [files]\nstripe_bytes = \"64k\"\n[[switches]]\nname = \"switch\"\nrate = \"4000g\"\n\
         {}clients = 1\n{}[nodes.server]\n[nodes.server.device]\nmodel = \"nvme\"\n\
         read_latency = \"80us\"\nwrite_latency = \"15us\"\nread_rate = \"3000m\"\n\
         write_rate = \"2000m\"\nqueue_depth = 64\nchannels = 8\n",
        node("client", arguments.clients),
        node("server", arguments.servers),
    )
}

impl Sample {
    fn of(requests: u64, events: u64, started: Instant) -> Sample {
        let seconds = started.elapsed().as_secs_f64();
        Sample { requests, events, seconds, resident_bytes: resident_bytes() }
    }

    /// Million events a second since the sample before.
    fn rate(&self, before: Option<&Sample>) -> f64 {
        let before = before.copied().unwrap_or_default();
        (self.events - before.events) as f64 / (self.seconds - before.seconds).max(1e-9) / 1e6
    }

    fn print(&self, before: Option<&Sample>) {
        println!(
            "{:>12} {:>14} {:>10.2} {:>8.2} {:>9.1}",
            self.requests,
            self.events,
            self.seconds,
            self.rate(before),
            self.resident_bytes as f64 / 1048576.0,
        );
    }
}

fn plot(arguments: &Arguments, samples: &[Sample], prefix: &str) -> Result<(), Box<dyn Error>> {
    let chart = |name: &str, unit: Unit, value: fn(&Sample) -> f64| {
        let title = format!("{} clients, {} servers: {name}", arguments.clients, arguments.servers);
        let x = Axis::log10("requests so far", Unit::Plain);
        let points = samples.iter().map(|sample| (sample.requests as f64, value(sample)));
        let line = Series::new(name, Mark::Line, points);
        let chart = Chart::new(title, x, Axis::log10(name, unit)).with(line);
        std::fs::write(format!("{prefix}-{name}.svg"), chart.svg())
    };
    chart("time", Unit::Seconds, |sample| sample.seconds)?;
    chart("memory", Unit::Bytes, |sample| sample.resident_bytes as f64)?;
    Ok(())
}
