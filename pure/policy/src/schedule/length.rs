//! How many steps a schedule takes if nothing but partners is scarce.

use super::catalog::Row;
use super::{Action, Event, Place};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Seed};
use std::collections::VecDeque;

/// Steps until `processes` have made `transfers` transfers to each of `partners`, where all go at one pace:
/// in a step each process has one transfer under way, each partner carries out one, in the order in which
/// they came (of those that came at once the lowest process first). The published example, two of each and
/// two transfers of a process: 3 steps in order, 2 rotated.
pub fn steps(row: &Row, processes: u32, partners: u32, transfers: u32) -> u32 {
    let machine = |own| row.make(Place { own, partners, seed: Seed(0) });
    let mut machines: Vec<_> = (0..processes).map(machine).collect();
    let mut left = vec![vec![transfers; partners as usize]; processes as usize];
    let mut queues = vec![VecDeque::new(); partners as usize];
    let mut out = Vec::new();
    if transfers > 0 {
        for machine in &mut machines {
            for partner in 0..partners {
                machine.step(Nanos::ZERO, Event::Offered { partner }, &mut out);
            }
        }
    }
    let mut idle: Vec<usize> = (0..machines.len()).collect();
    let mut count = 0;
    loop {
        for process in std::mem::take(&mut idle) {
            machines[process].step(Nanos::ZERO, Event::Turn, &mut out);
            if let Some(Action::Begin { partner }) = out.pop() {
                queues[partner as usize].push_back(process);
            }
        }
        if queues.iter().all(VecDeque::is_empty) {
            return count;
        }
        count += 1;
        for (partner, queue) in queues.iter_mut().enumerate() {
            let Some(process) = queue.pop_front() else { continue };
            let left = &mut left[process][partner];
            *left -= 1;
            if *left > 0 {
                let partner = partner as u32;
                machines[process].step(Nanos::ZERO, Event::Offered { partner }, &mut out);
            }
            idle.push(process);
        }
        idle.sort_unstable();
    }
}
