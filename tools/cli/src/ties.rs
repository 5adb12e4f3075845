//! What decides among simultaneous events, and on how many orders of them an answer rests: the flags,
//! one meaning everywhere.

use clap::{Args, ValueEnum};
use iolab_sim::band::{TIE_SEEDS, tie_seeds};
use iolab_sim::cluster::Order;
use iolab_vocab::Seed;

/// What decides among simultaneous events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    /// As the published evaluation's heap happened to have it
    Published,
    /// Time, source, sequence
    Documented,
}

impl From<OrderName> for Order {
    fn from(name: OrderName) -> Order {
        match name {
            OrderName::Published => Order::Published,
            OrderName::Documented => Order::Documented,
        }
    }
}

/// Which orders of simultaneous events are run.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Ties {
    /// Orders of simultaneous events the answer rests on: it is their median, its range beside it.
    /// 1 is a single run [default: 9, in the published order 1]
    #[arg(long, value_name = "N", alias = "bands", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) seeds: Option<u64>,
    /// A single run, whose simultaneous events this seed shuffles; 0 leaves them as the order has them
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    pub(crate) tie_seed: Option<u64>,
}

impl Ties {
    /// The tie seeds of the runs to make.
    pub(crate) fn of(self, order: Order) -> Vec<Seed> {
        tie_seeds(order, self.seeds, self.tie_seed.map(Seed))
    }

    /// The tie seeds of a band, whatever the order.
    pub(crate) fn of_band(self) -> Vec<Seed> {
        tie_seeds(Order::Documented, self.seeds, self.tie_seed.map(Seed))
    }
}

/// The usual number, as the help has it.
const _: () = assert!(TIE_SEEDS == 9);
