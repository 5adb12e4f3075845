//! The catalogue of collective algorithms: one row each. It feeds the command line, the
//! documentation and the conformance suite. For each command the first row is the default.

use super::{
    Allgather, Alltoall, Broadcast, Chain, Collective, Cruel, DirectAccess, DisseminationBarrier,
    DoubleBuffered, FileCall, Gather, PairwiseAlltoall, RecursiveDoubling, Reduce, RingAllgather,
    Scatter, Shape, TwoPhase, checked, checked_file, informed,
};
use iolab_vocab::Refusal;
use std::fmt;

/// What a collective algorithm carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveKind {
    /// One rank's data to all.
    Broadcast,
    /// All ranks' data combined at one.
    Reduce,
    /// All ranks' data combined everywhere.
    Allreduce,
    /// All ranks' blocks to one.
    Gather,
    /// One rank's blocks, one to each.
    Scatter,
    /// All ranks' blocks to all.
    Allgather,
    /// Every rank's own block for every other.
    Alltoall,
    /// Nobody goes on before everybody has come.
    Barrier,
    /// A collective read or write of a file whose parts interleave.
    File,
}

/// How a machine is made.
#[derive(Clone, Copy)]
pub enum Build {
    /// The driver wakes everyone when the last has come; no messages.
    Meeting,
    /// A machine that only exchanges messages.
    Messages(fn(Shape) -> Box<dyn Collective>),
    /// A machine that also accesses a file.
    File(fn(FileCall) -> Box<dyn Collective>),
}

/// One collective algorithm.
pub struct Row {
    /// What it carries out.
    pub kind: CollectiveKind,
    /// Its name among those that do the same.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Makes one rank's machine for one call.
    pub build: Build,
}

impl CollectiveKind {
    /// Every command, in the order of documentation.
    pub const ALL: [CollectiveKind; 9] = [
        CollectiveKind::Broadcast,
        CollectiveKind::Reduce,
        CollectiveKind::Allreduce,
        CollectiveKind::Gather,
        CollectiveKind::Scatter,
        CollectiveKind::Allgather,
        CollectiveKind::Alltoall,
        CollectiveKind::Barrier,
        CollectiveKind::File,
    ];

    /// As the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::Allreduce => "allreduce",
            CollectiveKind::Gather => "gather",
            CollectiveKind::Scatter => "scatter",
            CollectiveKind::Allgather => "allgather",
            CollectiveKind::Alltoall => "alltoall",
            CollectiveKind::Barrier => "barrier",
            CollectiveKind::File => "file",
        }
    }

    /// Whether one of the ranks is its root.
    pub const fn has_root(self) -> bool {
        use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
        matches!(self, Broadcast | Reduce | Gather | Scatter)
    }

    fn index(self) -> usize {
        CollectiveKind::ALL.iter().position(|one| *one == self).expect("all of them are in ALL")
    }

    /// The algorithms that carry it out, the default first.
    pub fn rows(self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(move |row| row.kind == self)
    }
}

const fn messages(
    kind: CollectiveKind,
    name: &'static str,
    summary: &'static str,
    build: fn(Shape) -> Box<dyn Collective>,
) -> Row {
    Row { kind, name, summary, build: Build::Messages(build) }
}

const fn file(
    name: &'static str,
    summary: &'static str,
    build: fn(FileCall) -> Box<dyn Collective>,
) -> Row {
    Row { kind: CollectiveKind::File, name, summary, build: Build::File(build) }
}

/// Every row; for each command the default first.
pub const ROWS: &[Row] = &[
    messages(CollectiveKind::Broadcast, "binomial", "passed on along a binomial tree", |shape| {
        Box::new(Broadcast::new(shape))
    }),
    messages(CollectiveKind::Broadcast, "flat", "the root sends to everyone", |shape| {
        Box::new(Scatter::broadcast(shape))
    }),
    messages(CollectiveKind::Reduce, "binomial", "combined along a binomial tree", |shape| {
        Box::new(Reduce::new(shape))
    }),
    messages(CollectiveKind::Reduce, "flat", "everyone sends to the root", |shape| {
        Box::new(Gather::new(shape))
    }),
    messages(
        CollectiveKind::Allreduce,
        "reduce-broadcast",
        "reduced to rank 0, then broadcast",
        |shape| {
            let shape = Shape { root: 0, ..shape };
            Box::new(Chain::new(vec![
                Box::new(Reduce::new(shape)),
                Box::new(Broadcast::new(shape)),
            ]))
        },
    ),
    messages(
        CollectiveKind::Allreduce,
        "exchange",
        "everyone sends to everyone and combines",
        |shape| Box::new(Allgather::new(shape)),
    ),
    messages(
        CollectiveKind::Allreduce,
        "recursive-doubling",
        "partners 2^k apart exchange",
        |shape| Box::new(RecursiveDoubling::new(shape)),
    ),
    messages(CollectiveKind::Gather, "direct", "everyone sends to the root", |shape| {
        Box::new(Gather::new(shape))
    }),
    messages(CollectiveKind::Scatter, "direct", "the root sends to everyone", |shape| {
        Box::new(Scatter::new(shape))
    }),
    messages(CollectiveKind::Allgather, "direct", "everyone sends to everyone", |shape| {
        Box::new(Allgather::new(shape))
    }),
    messages(
        CollectiveKind::Allgather,
        "ring",
        "blocks travel from neighbour to neighbour",
        |shape| Box::new(RingAllgather::new(shape)),
    ),
    messages(CollectiveKind::Alltoall, "direct", "everyone sends to everyone at once", |shape| {
        Box::new(Alltoall::new(shape))
    }),
    messages(CollectiveKind::Alltoall, "pairwise", "one partner after the other", |shape| {
        Box::new(PairwiseAlltoall::new(shape))
    }),
    messages(
        CollectiveKind::Alltoall,
        "cruel",
        "pairwise, one transfer at a time, shuffled",
        |shape| Box::new(Cruel::new(Box::new(PairwiseAlltoall::new(shape)), shape.rank)),
    ),
    Row {
        kind: CollectiveKind::Barrier,
        name: "virtual",
        summary: "no messages; the last to come wakes the others",
        build: Build::Meeting,
    },
    messages(
        CollectiveKind::Barrier,
        "dissemination",
        "log2 n rounds of short messages",
        |shape| Box::new(DisseminationBarrier::new(shape)),
    ),
    file("two-phase", "each rank accesses one contiguous domain", |call| {
        Box::new(TwoPhase::domains(call))
    }),
    file("interleaved-two-phase", "all ranks move through the file together", |call| {
        Box::new(TwoPhase::interleaved(call))
    }),
    file("double-buffered-two-phase", "exchanges one iteration while accessing another", |call| {
        Box::new(DoubleBuffered::new(call))
    }),
    file("informed", "two-phase or direct, by what the devices make cheaper", informed),
    file("direct", "each rank accesses its own list, alone", |call| {
        Box::new(DirectAccess::new(call))
    }),
    file("cruel", "two-phase, one transfer at a time, shuffled", |call| {
        let rank = call.rank;
        Box::new(Cruel::new(Box::new(TwoPhase::domains(call)), rank))
    }),
];

/// The row of that name among those that carry out `serves`.
pub fn find(kind: CollectiveKind, name: &str) -> Result<&'static Row, Refusal> {
    kind.rows().find(|row| row.name == name).ok_or_else(|| {
        let names: Vec<_> = kind.rows().map(|row| row.name).collect();
        Refusal {
            message: format!("there is no algorithm `{name}` for {}", kind.name()),
            hint: format!("choose from {}", names.join(", ")),
        }
    })
}

/// Which algorithm carries out which command in one run.
#[derive(Clone, Copy)]
pub struct CollectiveSelection([&'static Row; CollectiveKind::ALL.len()]);

impl Default for CollectiveSelection {
    /// For every command its first row.
    fn default() -> CollectiveSelection {
        CollectiveSelection(
            CollectiveKind::ALL.map(|kind| kind.rows().next().expect("every command has a row")),
        )
    }
}

impl CollectiveSelection {
    /// Chooses by `command=name`, for example `allgather=ring`.
    pub fn choose(&mut self, wish: &str) -> Result<(), Refusal> {
        let (command, name) = wish.split_once('=').ok_or_else(|| Refusal {
            message: format!("`{wish}` does not say which algorithm for which command"),
            hint: "write for example allgather=ring".to_owned(),
        })?;
        let kind = CollectiveKind::ALL.into_iter().find(|kind| kind.name() == command);
        let kind = kind.ok_or_else(|| Refusal {
            message: format!("there is no collective command `{command}`"),
            hint: format!(
                "choose from {}",
                CollectiveKind::ALL.map(CollectiveKind::name).join(", ")
            ),
        })?;
        self.set(find(kind, name)?);
        Ok(())
    }

    /// Chooses `row` for what it carries out.
    pub fn set(&mut self, row: &'static Row) {
        self.0[row.kind.index()] = row;
    }

    /// What carries out `serves`.
    pub fn of(&self, kind: CollectiveKind) -> &'static Row {
        self.0[kind.index()]
    }

    /// One rank's machine for a command of messages; nothing where the driver lets ranks meet. In debug
    /// builds it is held to its laws.
    pub fn build(&self, kind: CollectiveKind, shape: Shape) -> Option<Box<dyn Collective>> {
        match self.of(kind).build {
            Build::Messages(build) if cfg!(debug_assertions) => {
                Some(checked(kind, shape, build(shape)))
            }
            Build::Messages(build) => Some(build(shape)),
            Build::Meeting => None,
            Build::File(_) => unreachable!("a command of messages is never served by a file row"),
        }
    }

    /// One rank's machine for a collective access; in debug builds held to its laws.
    pub fn build_file(&self, call: FileCall) -> Box<dyn Collective> {
        match self.of(CollectiveKind::File).build {
            Build::File(build) if cfg!(debug_assertions) => {
                checked_file(&call, build(call.clone()))
            }
            Build::File(build) => build(call),
            _ => unreachable!("an access is only served by a file row"),
        }
    }
}

impl fmt::Debug for CollectiveSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|row| (row.kind.name(), row.name))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_is_chosen_by_command_and_name() {
        let mut choices = CollectiveSelection::default();
        assert_eq!(choices.of(CollectiveKind::Allgather).name, "direct");
        choices.choose("allgather=ring").unwrap();
        assert_eq!(choices.of(CollectiveKind::Allgather).name, "ring");
        assert_eq!(choices.of(CollectiveKind::Broadcast).name, "binomial");
    }

    #[test]
    fn wrong_wishes_are_named_and_get_a_way_out() {
        let mut choices = CollectiveSelection::default();
        for wish in ["allgather", "allgather=tree", "walltime=ring"] {
            let error = choices.choose(wish).unwrap_err();
            assert!(
                error.message.contains(wish.split('=').next_back().unwrap())
                    || error.message.contains("walltime"),
                "{error}"
            );
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn names_are_unique_within_a_command() {
        for kind in CollectiveKind::ALL {
            let names: Vec<_> = kind.rows().map(|row| row.name).collect();
            let distinct: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(names.len(), distinct.len(), "{names:?}");
        }
    }
}
