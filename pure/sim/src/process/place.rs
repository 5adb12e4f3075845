//! Programs come to their clients: processes, their tasks and communicators.

use super::group::groups_of;
use super::{Application, Files, Process, ProcessId, Processes, Task};
use crate::cluster::PolicyOverrides;

use crate::platform::Platform;
use crate::program::Program;
use crate::queue::EventQueue;
use crate::slab::{Id, Slab};
use crate::world::{Event, Order, World};
use iolab_policy::collective::{CollectiveSelection, Costs};
use iolab_vocab::{Nanos, Refusal};
use std::collections::VecDeque;

/// What processes are made with.
pub(crate) struct Parts<F> {
    pub(crate) order: Order,
    pub(crate) clients: F,
    pub(crate) collectives: CollectiveSelection,
    pub(crate) own: Box<dyn PolicyOverrides>,
    pub(crate) costs: Option<Costs>,
}

impl<'p, F: Files> Processes<'p, F> {
    /// Places programs on the platform's clients, in order.
    pub(crate) fn place<Q: EventQueue<Event>>(
        world: &World<Q, F::Content>,
        platform: &Platform,
        programs: Vec<Box<dyn Program + 'p>>,
        parts: Parts<F>,
    ) -> Result<Processes<'p, F>, Refusal> {
        let wanted: u64 = programs.iter().map(|program| u64::from(program.rank_count())).sum();
        if wanted > platform.client_count() {
            return Err(Refusal {
                message: format!("{wanted} processes, but {} clients", platform.client_count()),
                hint: "give the platform more client nodes, or `clients` per node".to_owned(),
            });
        }
        let Parts { order, clients, collectives, own, costs } = parts;
        let mut placed = Processes {
            order,
            processes: Vec::new(),
            tasks: Slab::new(),
            applications: Vec::new(),
            groups: Vec::new(),
            offers: Slab::new(),
            clients,
            collectives,
            own,
            eager_bytes: platform.transport.eager_bytes.0,
            costs,
            running_count: wanted as u32,
            crashed: Vec::new(),
            refused: None,
            notes: None,
            moves: Vec::new(),
        };
        for program in programs {
            placed.add(world, program)?;
        }
        Ok(placed)
    }

    fn add<Q: EventQueue<Event>>(
        &mut self,
        world: &World<Q, F::Content>,
        program: Box<dyn Program + 'p>,
    ) -> Result<(), Refusal> {
        let application = self.applications.len();
        let first = ProcessId::of(self.processes.len());
        for rank in 0..program.rank_count() {
            let id = ProcessId::of(self.processes.len());
            self.processes.push(Process {
                node: world.node_of(id.target()),
                rank,
                application: application as u32,
                receives: VecDeque::new(),
                early: VecDeque::new(),
                tickets: Vec::new(),
            });
            let task = self.tasks.add(Task::of(id));
            debug_assert_eq!(task, id.task(), "processes have their tasks before all others");
        }
        let groups = groups_of(program.as_ref(), application, first)?;
        let (first_group, group_count) = (self.groups.len() as u32, groups.len() as u32);
        self.groups.extend(groups);
        let end = Nanos::ZERO;
        self.applications.push(Application { program, first_group, group_count, end });
        Ok(())
    }
}
