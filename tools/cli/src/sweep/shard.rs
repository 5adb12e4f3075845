//! A part of a sweep: every n-th of its runs, for job arrays.

use std::str::FromStr;

/// The `number`-th of `count` parts; numbers begin at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    number: u64,
    count: u64,
}

impl Shard {
    /// Whether a run is of this part. Neighbouring runs, which take about as long, are of different parts.
    pub(crate) fn has(self, run: u64) -> bool {
        run % self.count == self.number - 1
    }

    /// The name of its journal.
    pub(crate) fn journal(self) -> String {
        format!("journal-{}-of-{}.jsonl", self.number, self.count)
    }

    /// Whose journal a file of that name is.
    pub(crate) fn of_journal(name: &str) -> Option<Shard> {
        let (number, count) =
            name.strip_prefix("journal-")?.strip_suffix(".jsonl")?.split_once("-of-")?;
        let shard = Shard::from_str(&format!("{number}/{count}")).ok()?;
        (shard.journal() == name).then_some(shard)
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} of {}", self.number, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(number, count)| {
            Some((number.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        });
        match numbers {
            Some((number, count)) if (1..=count).contains(&number) => Ok(Shard { number, count }),
            Some((_, 0)) => Err("there are no 0 parts; write I/N, as 2/8".to_owned()),
            Some((_, count)) => Err(format!("parts are numbered from 1 to {count}")),
            None => Err("write I/N, as 2/8 for the second of eight parts".to_owned()),
        }
    }
}
