//! A recorded program on a cluster: its transfers become requests to striped servers.
//!
//! The strategies decide first, at the recorded times of the calls, so each row of the trace has a
//! list of transfers on files below. Each thread that transfers anything becomes a client process
//! of the platform: it computes what it computed between the calls, and asks the servers for its
//! transfers. The cluster model has no cost for calls without data; they keep what they took. Nor
//! does it know who waits for whom outside of I/O: gaps are kept as they were.

use super::Settings;
use super::kernel::{Kernel, Transfer};
use super::program::{Program, What};
use super::run::{Machine, Run, native};
use super::staging::Staging;
use crate::cluster::{Cluster, Event as ClusterEvent, FileState, Order, Setup};
use crate::platform::Platform;
use crate::program::{Command, FileOperation, Program as ClusterProgram, What as ClusterWork};
use crate::queue::Ordered;
use iolab_policy::collective::CollectiveSelection;
use iolab_trace::Layer;
use iolab_vocab::{Extent, Nanos, Refusal};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A transfer a client makes, after some computation.
#[derive(Clone, Copy, Debug)]
struct Request {
    compute: Nanos,
    transfer: Transfer,
    row: usize,
}

/// What the strategies made of a row.
#[derive(Clone, Debug, Default)]
struct Row {
    transfers: Vec<Transfer>,
    /// Cost beside the transfers: of strategies, and of calls without data.
    work: Nanos,
}

/// Runs the program on the cluster part of `platform`.
pub(super) fn run(machine: &Machine, platform: &Platform) -> Result<Run, Refusal> {
    let mut run = Run::empty(machine);
    let (rows, files) = transform(machine, &mut run)?;
    let clients: Vec<Vec<Request>> =
        (0..machine.program.sequences.len()).map(|s| requests(machine.program, s, &rows)).collect();
    let (times, stored) = serve(platform, machine.settings, files, &clients, rows.len())?;
    place(machine, &rows, &times, &mut run);
    run.stored = Some(stored);
    Ok(run)
}

/// Lets the strategies decide on every row, in the order the calls began.
fn transform(machine: &Machine, run: &mut Run) -> Result<(Vec<Row>, Vec<FileState>), Refusal> {
    let events = &machine.trace.events;
    let header = &machine.trace.header;
    let mut kernel =
        Kernel::new(machine.storage, false, header.files.len(), header.processes.len());
    kernel.keep_transfers();
    let mut staging = Staging::new(machine, header.processes.len());
    let mut rows = vec![Row::default(); events.len()];
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.retain(|&row| events[row].function.layer() == Layer::Posix);
    order.sort_by_key(|&row| (events[row].start, row));
    for row in order {
        let cost = match machine.apply.is_empty() {
            true => native(machine, &mut kernel, row),
            false => {
                let staged = staging.call(events[row].start, row, &mut kernel, run);
                run.events[row].result = staged.result.unwrap_or(events[row].result);
                staged.cost
            }
        };
        rows[row].transfers = kernel.take_transfers();
        // A transfer's cost below is the cluster's business.
        let is_transfer = events[row].function.class().moves_data();
        rows[row].work = match rows[row].transfers.is_empty() && !is_transfer {
            true => cost.total(),
            false => Nanos::ZERO,
        };
    }
    let files = kernel.sizes_at_start().iter().map(|&bytes| FileState { bytes }).collect();
    Ok((rows, files))
}

/// What one thread asks of the servers, in order.
fn requests(program: &Program, sequence: usize, rows: &[Row]) -> Vec<Request> {
    let mut requests = Vec::new();
    let mut compute = Nanos::ZERO;
    for moment in &program.sequences[sequence].moments {
        compute = compute.after(moment.work);
        let What::Call(row) = moment.what else { continue };
        compute = compute.after(rows[row].work);
        for &transfer in &rows[row].transfers {
            requests.push(Request { compute: std::mem::take(&mut compute), transfer, row });
        }
    }
    requests
}

/// The clients of a trace, as the cluster asks for their commands.
struct Clients {
    /// By client: what it asks, and how far it is.
    requests: Vec<(Vec<Request>, usize)>,
    /// By client: work owed, and whether a transfer is under way.
    owed: Vec<(Nanos, bool)>,
    /// By client: nanoseconds that an instruction of its node takes. Gaps are kept as they were, on
    /// processors of any speed; work too short for an instruction is kept until it is enough.
    instruction_ns: Vec<f64>,
    times: Sender<(usize, bool, Nanos)>,
}

impl ClusterProgram for Clients {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let client = rank as usize;
        let (requests, at) = &mut self.requests[client];
        let request = requests.get_mut(*at)?;
        let (owed, _) = &mut self.owed[client];
        *owed = owed.after(std::mem::take(&mut request.compute));
        let instructions = owed.get() as f64 / self.instruction_ns[client];
        if instructions >= 1.0 {
            *owed = Nanos::ZERO;
            return Some(ClusterWork::Compute { instructions }.awaited());
        }
        *at += 1;
        list.push(request.transfer.extent);
        let transfer = request.transfer;
        Some(FileOperation::access(transfer.direction, false).of(transfer.inode as u32))
    }

    /// A command is over: tell when its transfer began or ended.
    fn reached(&mut self, rank: u32, now: Nanos) {
        let client = rank as usize;
        let (requests, at) = &self.requests[client];
        let (_, under_way) = &mut self.owed[client];
        if *under_way {
            let _ = self.times.send((requests[*at - 1].row, false, now));
            *under_way = false;
        }
        let Some(request) = requests.get(*at) else { return };
        let work = request.compute.after(self.owed[client].0);
        if (work.get() as f64) < self.instruction_ns[client] {
            let _ = self.times.send((request.row, true, now));
            self.owed[client].1 = true;
        }
    }

    fn rank_count(&self) -> u32 {
        self.requests.len() as u32
    }
}

/// By row: when its first transfer began and its last one ended.
type Times = Vec<Option<(Nanos, Nanos)>>;

fn serve(
    platform: &Platform,
    settings: &Settings,
    files: Vec<FileState>,
    clients: &[Vec<Request>],
    rows: usize,
) -> Result<(Times, Nanos), Refusal> {
    let requests: Vec<_> =
        clients.iter().filter(|list| !list.is_empty()).map(|list| (list.clone(), 0)).collect();
    let (times, seen) = channel();
    let owed = vec![(Nanos::ZERO, false); requests.len()];
    let speeds = platform.client_speeds().take(requests.len());
    let instruction_ns = speeds.map(|speed| 1e9 / speed).collect();
    let clients = Clients { requests, owed, instruction_ns, times };
    let programs: Vec<Box<dyn ClusterProgram>> = vec![Box::new(clients)];
    let setup = Setup {
        order: Order::Documented,
        cache: settings.cache.clone(),
        // No trace has collective calls of the cluster's own kind; the deal is never asked for.
        collectives: CollectiveSelection::default(),
        files,
        programs,
    };
    let mut cluster: Cluster<Ordered<ClusterEvent>> =
        Cluster::build(platform, setup, Ordered::new(settings.seed))?;
    let stored = cluster.run()?;
    // With the cluster goes the sending end, so that the receiving one comes to its end.
    drop(cluster);
    Ok((by_row(&seen, rows), stored))
}

fn by_row(seen: &Receiver<(usize, bool, Nanos)>, rows: usize) -> Times {
    let mut times: Times = vec![None; rows];
    for (row, begins, now) in seen {
        let time = times[row].get_or_insert((now, now));
        if !begins {
            time.1 = now;
        }
    }
    times
}

/// Lays every row in time: transfers where the cluster had them, the rest in between.
fn place(machine: &Machine, rows: &[Row], times: &Times, run: &mut Run) {
    for sequence in &machine.program.sequences {
        let mut now = Nanos::ZERO;
        for moment in &sequence.moments {
            now = now.after(moment.work);
            match moment.what {
                What::Call(row) => {
                    let (start, end) = times[row].unwrap_or((now, now.after(rows[row].work)));
                    (run.events[row].start, run.events[row].end) = (start.max(now), end.max(now));
                    now = run.events[row].end;
                    run.hash(now, row);
                }
                What::Begin(row) => run.events[row].start = now,
                What::End(row) => run.events[row].end = now,
                What::Start | What::Exit => {}
            }
            run.seen(sequence.process, now);
        }
    }
}
