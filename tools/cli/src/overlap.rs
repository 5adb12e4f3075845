//! `iolab overlap`: what non-blocking I/O gains when there is something to compute.

use crate::bench::launch::on_ranks;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use iolab_backend::{Catalog, Direction};
use iolab_bench::{
    Leftovers, OverlapPlan, OverlapPoint, OverlapSummary, QUALITY_LIMIT, Way, overlap,
    overlap_summary,
};
use iolab_vocab::{Seed, parse_bytes};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DirectionName {
    Read,
    Write,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WayName {
    /// A helper thread around the blocking call.
    Thread,
    /// What the method offers: uring, nonblocking, nonblocking-collective.
    Native,
}

/// Measure what overlapping I/O with computation gains: non-blocking against blocking.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Bytes of one operation (of a strided pattern).
    #[arg(short, long, default_value = "1m", conflicts_with = "pattern")]
    bytes: String,
    /// A pattern instead, as for `iolab bench`.
    #[arg(short, long)]
    pattern: Option<String>,
    /// Read or write.
    #[arg(long, value_enum, default_value = "write")]
    direction: DirectionName,
    /// Access method, as for `iolab bench`.
    #[arg(short = 'a', long, default_value = "posix")]
    method: String,
    /// How it is made non-blocking.
    #[arg(long, value_enum, default_value = "thread")]
    way: WayName,
    /// Compute time over I/O time; 0 is I/O alone.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    ratio: Vec<f64>,
    /// Compute over I/O from 0.1 to 10.
    #[arg(long, conflicts_with = "ratio")]
    sweep: bool,
    /// No I/O at all: the sanity check that computation alone gives 1.
    #[arg(long)]
    compute_only: bool,
    /// Operations per phase.
    #[arg(long, default_value_t = 20)]
    count: u64,
    /// Untimed operations before, to fill caches and servers.
    #[arg(long, default_value_t = 5)]
    fill: u64,
    /// Repetitions of each ratio.
    #[arg(short = 'i', long, default_value_t = 3)]
    repetitions: u32,
    /// Calibration tries at least.
    #[arg(long, default_value_t = 3)]
    min_tries: u32,
    /// Calibration tries at most.
    #[arg(long, default_value_t = 20)]
    max_tries: u32,
    /// Calibration ends when every rank is this near.
    #[arg(long, default_value_t = 0.05)]
    margin: f64,
    /// Ask the library for progress (MPI_Test) while computing.
    #[arg(long)]
    poll: bool,
    /// Around the page cache (O_DIRECT).
    #[arg(long)]
    direct: bool,
    /// Slow the device to this many bytes per second.
    #[arg(long, value_name = "BYTES")]
    throttle: Option<String>,
    /// Local ranks; under mpiexec its number counts.
    #[arg(short = 'N', long, default_value_t = 1)]
    ranks: u32,
    /// The file; it is removed afterwards.
    #[arg(short = 'o', long, default_value = "iolab-overlap.data")]
    target: PathBuf,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
    /// Write the curve against theory to this file, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

impl Arguments {
    fn plan(&self) -> Result<OverlapPlan, Failure> {
        let size = |text: &str| parse_bytes(text).map_err(Failure::new);
        let bytes = size(&self.bytes)?;
        let operations = self.count.saturating_add(self.fill).clamp(1, 256);
        let spatial = match &self.pattern {
            Some(pattern) => pattern.clone(),
            // Zero bytes are no pattern: the smallest one, and nothing is moved.
            None => format!("strided:strip={},stripes={operations}", bytes.max(1)),
        };
        let method = Catalog::find(&self.method).ok_or_else(|| {
            Failure::new(format!("there is no method `{}`", self.method))
                .hint("`iolab bench --list` shows all")
        })?;
        let throttle = self.throttle.as_deref().map(size).transpose()?;
        let sweep = [0.1, 0.2, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0, 10.0];
        let ratios = if self.sweep { sweep.to_vec() } else { self.ratio.clone() };
        let wrong = [
            (self.count == 0, "--count 0"),
            (self.repetitions == 0, "--repetitions 0"),
            (
                self.min_tries > self.max_tries || self.max_tries == 0,
                "--max-tries below --min-tries",
            ),
            (ratios.iter().any(|r| !(0.0..=1000.0).contains(r)), "--ratio outside 0 to 1000"),
            (!(self.margin > 0.0 && self.margin < 1.0), "--margin outside 0 to 1"),
            (throttle == Some(0), "--throttle 0"),
        ];
        if let Some((_, what)) = wrong.iter().find(|(wrong, _)| *wrong) {
            return Err(Failure::new(format!("{what} cannot be measured"))
                .hint("see `iolab overlap --help`"));
        }
        Ok(OverlapPlan {
            target: self.target.clone(),
            spatial,
            direction: match self.direction {
                DirectionName::Read => Direction::Read,
                DirectionName::Write => Direction::Write,
            },
            method,
            way: if self.way == WayName::Thread { Way::Thread } else { Way::Native },
            direct: self.direct,
            throttle: throttle.map(|rate| rate as f64),
            ratios,
            count: self.count,
            fill: self.fill,
            repetitions: self.repetitions,
            tries: (self.min_tries, self.max_tries),
            margin: self.margin,
            poll: self.poll,
            compute_only: self.compute_only || bytes == 0,
            seed: Seed(1),
        })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = arguments.plan()?;
    let leftovers = Some(Leftovers::at(&plan.target, 0));
    let heard = on_ranks(arguments.ranks, false, leftovers, &|comm| {
        let observe = |point: &OverlapPoint| {
            if !arguments.json {
                println!("{}", row(point));
            }
        };
        if comm.rank().0 == 0 && !arguments.json {
            println!("{}", heading());
        }
        Ok(overlap(&plan, comm, &observe)?)
    })?;
    let Some(points) = heard else { return Ok(ExitCode::SUCCESS) };
    let summary = overlap_summary(&points);
    if arguments.json {
        let document = json!({
            "format": "iolab-overlap", "format_version": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "command": std::env::args().collect::<Vec<_>>(),
            "points": points, "summary": summary,
        });
        println!("{document:#}");
    } else {
        summary.iter().for_each(|line| println!("{}", summary_row(line)));
    }
    if let Some(path) = &arguments.plot {
        std::fs::write(path, plot(&points)).map_err(|error| {
            Failure::new(format!("cannot write {}: {error}", path.display()))
                .hint("choose another --plot")
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn heading() -> String {
    format!(
        "{:>7} {:>7} {:>3} {:>8} {:>8} {:>8} {:>10} {:>10} {:>9} {:>9} {:>10} {:>10}",
        "wanted",
        "c/io",
        "rep",
        "ratio",
        "theory",
        "quality",
        "nonblock",
        "blocking",
        "c infl.",
        "io infl.",
        "start",
        "wait"
    )
}

fn milliseconds(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}

fn row(p: &OverlapPoint) -> String {
    let io = p.io_inflation.map_or("-".to_owned(), |spread| format!("{:.2}", spread.mean));
    let mark = if p.usable { "" } else { "  not averaged" };
    let c_over_io =
        if p.compute_over_io < 1e6 { format!("{:.2}", p.compute_over_io) } else { "inf".into() };
    format!(
        "{:>7} {:>7} {:>3} {:>8.3} {:>8.3} {:>8.3} {:>10} {:>10} {:>9.2} {:>9} {:>10} {:>10}{mark}",
        p.wanted,
        c_over_io,
        p.repetition,
        p.ratio,
        p.theory,
        p.quality,
        milliseconds(p.nonblocking_ns as f64),
        milliseconds(p.blocking_ns as f64),
        p.compute_inflation.mean,
        io,
        milliseconds(p.start_ns.mean),
        milliseconds(p.wait_ns.mean),
    )
}

fn summary_row(s: &OverlapSummary) -> String {
    if s.usable == 0 {
        return format!(
            "compute/io {}: no usable repetition (quality above {QUALITY_LIMIT}); raise --count or --max-tries",
            s.wanted
        );
    }
    let verdict = match s.ratio {
        ratio if ratio <= 0.97 => "a gain",
        ratio if ratio < 1.03 => "no gain",
        _ => "a loss",
    };
    format!(
        "compute/io {}: nonblocking/blocking {:.3} ({:.3} to {:.3}, n={}), theory {:.3}: {verdict}",
        s.wanted, s.ratio, s.interval.low, s.interval.high, s.usable, s.theory
    )
}

/// Measured ratios over compute/io on a logarithmic axis, with the theory as a line.
fn plot(points: &[OverlapPoint]) -> String {
    let x = |c_over_io: f64| 60.0 + (c_over_io.clamp(0.05, 20.0).log10() + 1.31) / 2.62 * 560.0;
    let y = |ratio: f64| 340.0 - ratio.clamp(0.0, 1.5) / 1.5 * 300.0;
    let line: Vec<String> = (0..=100)
        .map(|i| 10f64.powf(-1.3 + 2.6 * f64::from(i) / 100.0))
        .map(|c| format!("{:.1},{:.1}", x(c), y(iolab_bench::theory(c, 1.0))))
        .collect();
    let dots: String = points
        .iter()
        .filter(|point| point.compute_over_io < 1e6 && point.compute_over_io > 0.0)
        .map(|p| {
            let (cx, cy) = (x(p.compute_over_io), y(p.ratio));
            let fill = if p.usable { "#1f6feb" } else { "#bbb" };
            format!("<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\" fill=\"{fill}\"/>\n")
        })
        .collect();
    let ticks: String = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
        .iter()
        .map(|c| format!("<text x=\"{:.1}\" y=\"358\" text-anchor=\"middle\">{c}</text>\n", x(*c)))
        .chain([0.0, 0.5, 1.0, 1.5].iter().map(|r| {
            let y = y(*r);
            format!(
                "<line x1=\"60\" x2=\"620\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"52\" y=\"{:.1}\" text-anchor=\"end\">{r}</text>\n",
                y + 4.0
            )
        }))
        .collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 390\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<text x=\"60\" y=\"20\" font-weight=\"bold\">time nonblocking / blocking; \
         line: max(c, io) / (c + io); grey: not averaged</text>\n{ticks}<polyline points=\"{}\" fill=\"none\" \
         stroke=\"#c33\"/>\n{dots}<text x=\"340\" y=\"380\" text-anchor=\"middle\">compute / io</text>\n</svg>\n",
        line.join(" ")
    )
}
