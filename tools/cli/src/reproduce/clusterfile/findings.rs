//! The page of findings: text with every figure from the run that writes it.

use super::Reproduction;
use super::claims::Verdict;
use iolab_sim::evaluation::clusterfile::{DEFECTS, FIT};
use std::fmt::Write;

/// What was assumed, and what was not.
fn assumptions() -> String {
    format!(
        "\
- *Ours* is the file system's own collective access: every rank sends its bytes to their servers, which scatter them. *The rival* is
  ROMIO's two-phase over the same servers: 16 aggregators with contiguous domains and buffers of 4 MiB, the exchange round by round, 16
  bytes for each run that ranks tell each other first, then independent contiguous accesses. Both run on the same machines, network and
  disks; so what is compared are the two ways, not Clusterfile's code with PVFS's, nor two-phase over
  the one with two-phase over the other, which differ by the cache.
- What is published is with as many cache managers as servers, cold. Ours is tried without any (the servers serve clients themselves,
  from their memory) and, for claims 1, 2, 6, 7, so too: the write ends when the servers have it, call by call; the read
  begins with nothing in managers and everything in the servers' memory. A manager is on the node of the server whose blocks it has, and
  takes half of its memory; between both bytes are copied, where Clusterfile's share them. Claims 9 and 11 read twice: what the
  first read has left is warm. The rival has no cache managers, as its buffers are cold.
- Published and used: 16 nodes with a process each, 120 MB/s per node and direction, packets of 64 KiB, 1 GiB of memory. Stripes are 64 KiB.
- Not published: the disks' rate (15, 25 and 45 MB/s are tried) and what handling bytes in memory costs. That is tried twice: as on a machine
  of today (*today*: 0.04 ns a byte and 0.12 ns a run to gather or scatter, copies at 10 GB/s), and a multiple of it, fitted so that
  ours writes class A in the published 7.7 s (*fitted*: {FIT} times as much). Nothing else was fitted. A verdict holds only if it is the same under both.
- A time is the median over orders of simultaneous events; one way is ahead where the ranges do not meet.
- No byte is looked at: the simulator has sizes, not payload. Counted are the bytes that each rank, server, NIC and device moves (claim
  4), and what each rank accesses is held to cover every call once; that the same machines deliver the right bytes is the explorer's and
  the real runs' to check.
"
    )
}

/// The whole page.
pub(super) fn page(reproduction: &Reproduction) -> String {
    let mut page = String::new();
    let _ = writeln!(
        page,
        "# Clusterfile's evaluation, computed again\n\n\
         Written by `iolab reproduce clusterfile --seeds {} --findings`; every figure comes from that run.\n\n\
         Isaila, Malpohl, Olaru, Szeder and Tichy, *Integrating collective I/O and cooperative caching into the Clusterfile \
         parallel file system* (ICS 2004), measured their file system against ROMIO over PVFS. Here are their claims, on a model \
         of their cluster (`samples/clusterfile/platform.toml`). {}\n\n## What is assumed\n\n{}\n## Verdicts\n\n\
         | claim | of the paper | verdict |\n|---|---|---|",
        reproduction.seeds,
        reproduction.basis(),
        assumptions(),
    );
    for one in &reproduction.judged {
        let (number, text, word) = (one.claim.number, one.claim.text, one.verdict.word());
        let _ = writeln!(page, "| {number} | {text} | {word} |");
    }
    for one in &reproduction.judged {
        let _ = writeln!(page, "\n## Claim {}: {}\n", one.claim.number, one.verdict.word());
        for figure in &one.figures {
            let deeper = if figure.starts_with("  ") { "  " } else { "" };
            let _ = writeln!(page, "{deeper}- {}", figure.trim_start());
        }
        let decides = match one.verdict {
            Verdict::CannotBeTold => "What decides",
            _ => "Why",
        };
        let _ = writeln!(page, "\n{decides}: {}.", one.because);
    }
    let _ = writeln!(page, "\n## Defects of the paper\n");
    for defect in DEFECTS {
        let _ = writeln!(page, "- {defect}");
    }
    page
}
