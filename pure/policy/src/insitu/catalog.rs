//! The catalogue of strategies: one row each. It feeds the command line, `iolab strategies`, the
//! documentation and the conformance suite.

use super::parameter::{Parameters, unknown};
use super::write_back::Settings;
use super::{Cruel, Null, SeekElide, Strategy, Throttle, WriteBack};
use iolab_vocab::Refusal;

/// Classes of a strategy, as data: what may stand above what is decided from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// What it changes: `–`, `data`, `metadata` or `data and metadata`.
    pub scope: &'static str,
    /// Which calls influence each other: `none`, `single`, `several`.
    pub interference: &'static str,
    /// What it remembers.
    pub state: &'static str,
    /// Whether a program sees the same file and the same results as without it.
    pub keeps_semantics: bool,
    /// For tests only: it makes trouble on purpose.
    pub cruel: bool,
}

/// One strategy.
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// How to write it.
    pub usage: &'static str,
    /// Its classes.
    pub traits: Traits,
    /// Makes one for one file.
    pub build: fn(&Parameters) -> Result<Box<dyn Strategy>, Refusal>,
}

const NULL: Row = Row {
    name: "null",
    summary: "changes nothing; shows what the machinery itself costs",
    usage: "null[:hear=nothing,paths=GLOB,exclude=GLOB]",
    traits: Traits {
        scope: "–",
        interference: "none",
        state: "–",
        keeps_semantics: true,
        cruel: false,
    },
    build: |parameters| Ok(Box::new(Null::parse(parameters)?)),
};

const SEEK_ELIDE: Row = Row {
    name: "seek-elide",
    summary: "keeps file positions itself: seeks cost nothing, seek + transfer becomes one call",
    usage: "seek-elide[:paths=GLOB,exclude=GLOB]",
    traits: Traits {
        scope: "metadata",
        interference: "single",
        state: "position",
        keeps_semantics: true,
        cruel: false,
    },
    build: |parameters| {
        refuse_all(parameters)?;
        Ok(Box::<SeekElide>::default())
    },
};

const WRITE_BACK: Row = Row {
    name: "write-back",
    summary: "holds small writes back and writes them out sorted, merged and large",
    usage: "write-back[:buffer=1m,largest=16k,age=DURATION,paths=GLOB,exclude=GLOB]",
    traits: Traits {
        scope: "data",
        interference: "several",
        state: "buffer per file",
        keeps_semantics: true,
        cruel: false,
    },
    build: |parameters| Ok(Box::new(WriteBack::new(Settings::parse(parameters)?))),
};

const THROTTLE: Row = Row {
    name: "throttle",
    summary: "makes storage slow: each call takes at least a latency, and its bytes at a rate",
    usage: "throttle[:rate=100m,latency=1ms,paths=GLOB,exclude=GLOB]",
    traits: Traits {
        scope: "–",
        interference: "single",
        state: "how late the last call was",
        keeps_semantics: true,
        cruel: false,
    },
    build: |parameters| Ok(Box::new(Throttle::parse(parameters)?)),
};

const CRUEL: Row = Row {
    name: "cruel",
    summary: "for tests: delays, cuts transfers short and fails them, at random by seed",
    usage: "cruel[:seed=1,short=PERCENT,fail=PERCENT,errno=28,delay=MICROSECONDS,paths=GLOB]",
    traits: Traits {
        scope: "data",
        interference: "single",
        state: "random sequence",
        keeps_semantics: false,
        cruel: true,
    },
    build: |parameters| Ok(Box::new(Cruel::parse(parameters)?)),
};

/// All strategies.
pub struct Catalog;

impl Catalog {
    /// Every row, in the order of documentation.
    pub const ROWS: &[Row] = &[NULL, SEEK_ELIDE, WRITE_BACK, THROTTLE, CRUEL];

    /// The row of that name.
    pub fn find(name: &str) -> Result<&'static Row, Refusal> {
        Self::ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
            let names: Vec<_> = Self::ROWS.iter().map(|row| row.name).collect();
            Refusal {
                message: format!("there is no strategy `{name}`"),
                hint: format!("choose from {}; see `iolab strategies`", names.join(", ")),
            }
        })
    }
}

/// For a strategy without parameters of its own.
fn refuse_all(parameters: &Parameters) -> Result<(), Refusal> {
    match parameters.first() {
        None => Ok(()),
        Some((key, _)) => Err(unknown(key, "paths, exclude")),
    }
}
