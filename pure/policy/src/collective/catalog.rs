//! The catalogue of collective algorithms: one row each. It feeds the command line, the
//! documentation and the conformance suite. For each command the first row is the default.

use super::{
    Allgather, Alltoall, Broadcast, Chain, Collective, Cruel, DirectAccess, DisseminationBarrier,
    DoubleBuffered, FileCall, Gather, PairwiseAlltoall, RecursiveDoubling, Reduce, RingAllgather,
    Scatter, Shape, TwoPhase, informed,
};
use std::fmt;

/// What a collective algorithm carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Serves {
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
    pub serves: Serves,
    /// Its name among those that do the same.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Makes one rank's machine for one call.
    pub build: Build,
}

impl Serves {
    /// Every command, in the order of documentation.
    pub const ALL: [Serves; 9] = [
        Serves::Broadcast,
        Serves::Reduce,
        Serves::Allreduce,
        Serves::Gather,
        Serves::Scatter,
        Serves::Allgather,
        Serves::Alltoall,
        Serves::Barrier,
        Serves::File,
    ];

    /// As the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Serves::Broadcast => "broadcast",
            Serves::Reduce => "reduce",
            Serves::Allreduce => "allreduce",
            Serves::Gather => "gather",
            Serves::Scatter => "scatter",
            Serves::Allgather => "allgather",
            Serves::Alltoall => "alltoall",
            Serves::Barrier => "barrier",
            Serves::File => "file",
        }
    }

    fn index(self) -> usize {
        Serves::ALL.iter().position(|one| *one == self).expect("all of them are in ALL")
    }

    /// The algorithms that carry it out, the default first.
    pub fn rows(self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(move |row| row.serves == self)
    }
}

const fn messages(
    serves: Serves,
    name: &'static str,
    summary: &'static str,
    build: fn(Shape) -> Box<dyn Collective>,
) -> Row {
    Row { serves, name, summary, build: Build::Messages(build) }
}

const fn file(
    name: &'static str,
    summary: &'static str,
    build: fn(FileCall) -> Box<dyn Collective>,
) -> Row {
    Row { serves: Serves::File, name, summary, build: Build::File(build) }
}

/// Every row; for each command the default first.
pub const ROWS: &[Row] = &[
    messages(Serves::Broadcast, "binomial", "passed on along a binomial tree", |shape| {
        Box::new(Broadcast::new(shape))
    }),
    messages(Serves::Broadcast, "flat", "the root sends to everyone", |shape| {
        Box::new(Scatter::broadcast(shape))
    }),
    messages(Serves::Reduce, "binomial", "combined along a binomial tree", |shape| {
        Box::new(Reduce::new(shape))
    }),
    messages(Serves::Reduce, "flat", "everyone sends to the root", |shape| {
        Box::new(Gather::new(shape))
    }),
    messages(Serves::Allreduce, "reduce-broadcast", "reduced to rank 0, then broadcast", |shape| {
        let shape = Shape { root: 0, ..shape };
        Box::new(Chain::new(vec![Box::new(Reduce::new(shape)), Box::new(Broadcast::new(shape))]))
    }),
    messages(Serves::Allreduce, "exchange", "everyone sends to everyone and combines", |shape| {
        Box::new(Allgather::new(shape))
    }),
    messages(Serves::Allreduce, "recursive-doubling", "partners 2^k apart exchange", |shape| {
        Box::new(RecursiveDoubling::new(shape))
    }),
    messages(Serves::Gather, "direct", "everyone sends to the root", |shape| {
        Box::new(Gather::new(shape))
    }),
    messages(Serves::Scatter, "direct", "the root sends to everyone", |shape| {
        Box::new(Scatter::new(shape))
    }),
    messages(Serves::Allgather, "direct", "everyone sends to everyone", |shape| {
        Box::new(Allgather::new(shape))
    }),
    messages(Serves::Allgather, "ring", "blocks travel from neighbour to neighbour", |shape| {
        Box::new(RingAllgather::new(shape))
    }),
    messages(Serves::Alltoall, "direct", "everyone sends to everyone at once", |shape| {
        Box::new(Alltoall::new(shape))
    }),
    messages(Serves::Alltoall, "pairwise", "one partner after the other", |shape| {
        Box::new(PairwiseAlltoall::new(shape))
    }),
    messages(Serves::Alltoall, "cruel", "pairwise, one transfer at a time, shuffled", |shape| {
        Box::new(Cruel::new(Box::new(PairwiseAlltoall::new(shape)), shape.rank))
    }),
    Row {
        serves: Serves::Barrier,
        name: "virtual",
        summary: "no messages; the last to come wakes the others",
        build: Build::Meeting,
    },
    messages(Serves::Barrier, "dissemination", "log2 n rounds of short messages", |shape| {
        Box::new(DisseminationBarrier::new(shape))
    }),
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

/// A wish that no row fulfils.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveError {
    /// What was written.
    pub message: String,
    /// What could have been.
    pub hint: String,
}

impl fmt::Display for CollectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CollectiveError {}

/// The row of that name among those that carry out `serves`.
pub fn find(serves: Serves, name: &str) -> Result<&'static Row, CollectiveError> {
    serves.rows().find(|row| row.name == name).ok_or_else(|| {
        let names: Vec<_> = serves.rows().map(|row| row.name).collect();
        CollectiveError {
            message: format!("there is no algorithm `{name}` for {}", serves.name()),
            hint: format!("choose from {}", names.join(", ")),
        }
    })
}

/// Which algorithm carries out which command in one run.
#[derive(Clone, Copy)]
pub struct Choices([&'static Row; Serves::ALL.len()]);

impl Default for Choices {
    /// For every command its first row.
    fn default() -> Choices {
        Choices(Serves::ALL.map(|serves| serves.rows().next().expect("every command has a row")))
    }
}

impl Choices {
    /// Chooses by `command=name`, for example `allgather=ring`.
    pub fn choose(&mut self, wish: &str) -> Result<(), CollectiveError> {
        let (command, name) = wish.split_once('=').ok_or_else(|| CollectiveError {
            message: format!("`{wish}` does not say which algorithm for which command"),
            hint: "write for example allgather=ring".to_owned(),
        })?;
        let serves = Serves::ALL.into_iter().find(|serves| serves.name() == command);
        let serves = serves.ok_or_else(|| CollectiveError {
            message: format!("there is no collective command `{command}`"),
            hint: format!("choose from {}", Serves::ALL.map(Serves::name).join(", ")),
        })?;
        self.set(find(serves, name)?);
        Ok(())
    }

    /// Chooses `row` for what it carries out.
    pub fn set(&mut self, row: &'static Row) {
        self.0[row.serves.index()] = row;
    }

    /// What carries out `serves`.
    pub fn of(&self, serves: Serves) -> &'static Row {
        self.0[serves.index()]
    }

    /// One rank's machine for a command of messages; nothing where the driver lets ranks meet.
    pub fn build(&self, serves: Serves, shape: Shape) -> Option<Box<dyn Collective>> {
        match self.of(serves).build {
            Build::Messages(build) => Some(build(shape)),
            Build::Meeting => None,
            Build::File(_) => unreachable!("a command of messages is never served by a file row"),
        }
    }

    /// One rank's machine for a collective access.
    pub fn build_file(&self, call: FileCall) -> Box<dyn Collective> {
        match self.of(Serves::File).build {
            Build::File(build) => build(call),
            _ => unreachable!("an access is only served by a file row"),
        }
    }
}

impl fmt::Debug for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|row| (row.serves.name(), row.name))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_is_chosen_by_command_and_name() {
        let mut choices = Choices::default();
        assert_eq!(choices.of(Serves::Allgather).name, "direct");
        choices.choose("allgather=ring").unwrap();
        assert_eq!(choices.of(Serves::Allgather).name, "ring");
        assert_eq!(choices.of(Serves::Broadcast).name, "binomial");
    }

    #[test]
    fn wrong_wishes_are_named_and_get_a_way_out() {
        let mut choices = Choices::default();
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
        for serves in Serves::ALL {
            let names: Vec<_> = serves.rows().map(|row| row.name).collect();
            let distinct: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(names.len(), distinct.len(), "{names:?}");
        }
    }
}
