//! The TOML form of a workload, as serde reads it: shapes and types, nothing else.
//!
//! Unknown keys are refused with the known ones listed. Tables carry their place in the text, so
//! that what is wrong in their meaning can be told with its line.

use iolab_device::{Size, Time};
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a workload")]
pub(super) struct WorkloadText {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) seed: u64,
    #[serde(default)]
    pub(super) files: Vec<Spanned<FileText>>,
    #[serde(default)]
    pub(super) applications: Vec<Spanned<ApplicationText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a file, as in { name = \"data\", size = \"1g\" }")]
pub(super) struct FileText {
    pub(super) name: String,
    #[serde(default)]
    pub(super) size: Size,
    #[serde(default)]
    pub(super) per_rank: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an application: a table")]
pub(super) struct ApplicationText {
    pub(super) name: Option<String>,
    #[serde(default = "one")]
    pub(super) ranks: u64,
    #[serde(default)]
    pub(super) start: Time,
    #[serde(default = "one")]
    pub(super) repeat: u64,
    #[serde(default)]
    pub(super) communicators: Vec<Spanned<CommunicatorText>>,
    #[serde(default)]
    pub(super) phases: Vec<Spanned<PhaseText>>,
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a communicator, as in { name = \"half\", ranks = \"0-3\" }"
)]
pub(super) struct CommunicatorText {
    pub(super) name: String,
    pub(super) ranks: Choice,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a phase: a table with commands")]
pub(super) struct PhaseText {
    pub(super) name: Option<String>,
    #[serde(default = "one")]
    pub(super) repeat: u64,
    #[serde(default)]
    pub(super) commands: Vec<Spanned<CommandText>>,
}

/// Which ranks: a list, or words like `even`, `first`, `0-3`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a list of ranks, or one of even, odd, first, last, \"0-3\"")]
pub(super) enum Choice {
    List(Vec<u64>),
    Word(String),
}

/// Instructions, or a time at the speed of the node.
#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "a number of instructions, or a time as in \"10ms\"")]
pub(super) enum WorkText {
    Instructions(f64),
    Time(Time),
}

/// A rank, or one relative to one's own.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a rank, \"+1\", \"-1\" or \"any\"")]
pub(super) enum PartnerText {
    Rank(i64),
    Word(String),
}

/// How many operations of a pattern make one call.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of operations, or \"all\"")]
pub(super) enum PerCall {
    Count(u64),
    Word(String),
}

/// One command: exactly one verb, and what belongs to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a command: a table, as in { open = \"data\" }")]
pub(super) struct CommandText {
    pub(super) compute: Option<WorkText>,
    pub(super) open: Option<String>,
    pub(super) close: Option<String>,
    pub(super) read: Option<String>,
    pub(super) write: Option<String>,
    pub(super) read_all: Option<String>,
    pub(super) write_all: Option<String>,
    pub(super) sync: Option<String>,
    pub(super) set_size: Option<String>,
    pub(super) wait: Option<String>,
    pub(super) barrier: Option<bool>,
    pub(super) send_to: Option<PartnerText>,
    pub(super) receive_from: Option<PartnerText>,
    pub(super) broadcast: Option<Size>,
    pub(super) reduce: Option<Size>,
    pub(super) allreduce: Option<Size>,
    pub(super) gather: Option<Size>,
    pub(super) scatter: Option<Size>,
    pub(super) allgather: Option<Size>,
    pub(super) alltoall: Option<Size>,
    pub(super) commands: Option<Vec<Spanned<CommandText>>>,

    pub(super) pattern: Option<String>,
    pub(super) per_call: Option<PerCall>,
    pub(super) view: Option<String>,
    pub(super) offset: Option<Size>,
    pub(super) bytes: Option<Size>,
    pub(super) calls: Option<u64>,
    pub(super) rank_step: Option<Size>,
    pub(super) step: Option<Size>,
    pub(super) think: Option<WorkText>,
    pub(super) start: Option<String>,
    pub(super) root: Option<u64>,
    pub(super) tag: Option<u64>,
    pub(super) within: Option<String>,
    pub(super) only: Option<Choice>,
    pub(super) repeat: Option<u64>,
}

fn one() -> u64 {
    1
}

/// What a verb may be told.
pub(super) struct Verb {
    /// The verb's key.
    pub(super) name: &'static str,
    /// Keys that may stand beside it, besides `only`.
    pub(super) beside: &'static [&'static str],
}

const DATA: &[&str] = &[
    "pattern",
    "per_call",
    "view",
    "offset",
    "bytes",
    "calls",
    "rank_step",
    "step",
    "think",
    "start",
];
const TOGETHER: &[&str] = &["within"];
const ROOTED: &[&str] = &["root", "within"];

const fn verb(name: &'static str, beside: &'static [&'static str]) -> Verb {
    Verb { name, beside }
}

/// All verbs, in the order of documentation.
pub(super) const VERBS: &[Verb] = &[
    verb("compute", &[]),
    verb("open", TOGETHER),
    verb("close", TOGETHER),
    verb("read", DATA),
    verb("write", DATA),
    verb("read_all", DATA),
    verb("write_all", DATA),
    verb("sync", &[]),
    verb("set_size", &["bytes"]),
    verb("wait", &[]),
    verb("barrier", TOGETHER),
    verb("send_to", &["receive_from", "bytes", "tag", "start", "within"]),
    verb("receive_from", &["send_to", "bytes", "tag", "start", "within"]),
    verb("broadcast", ROOTED),
    verb("reduce", ROOTED),
    verb("allreduce", TOGETHER),
    verb("gather", ROOTED),
    verb("scatter", ROOTED),
    verb("allgather", TOGETHER),
    verb("alltoall", TOGETHER),
    verb("commands", &["repeat"]),
];

impl CommandText {
    /// The keys that are given.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let keys = [
            ("compute", self.compute.is_some()),
            ("open", self.open.is_some()),
            ("close", self.close.is_some()),
            ("read", self.read.is_some()),
            ("write", self.write.is_some()),
            ("read_all", self.read_all.is_some()),
            ("write_all", self.write_all.is_some()),
            ("sync", self.sync.is_some()),
            ("set_size", self.set_size.is_some()),
            ("wait", self.wait.is_some()),
            ("barrier", self.barrier.is_some()),
            ("send_to", self.send_to.is_some()),
            ("receive_from", self.receive_from.is_some()),
            ("broadcast", self.broadcast.is_some()),
            ("reduce", self.reduce.is_some()),
            ("allreduce", self.allreduce.is_some()),
            ("gather", self.gather.is_some()),
            ("scatter", self.scatter.is_some()),
            ("allgather", self.allgather.is_some()),
            ("alltoall", self.alltoall.is_some()),
            ("commands", self.commands.is_some()),
            ("pattern", self.pattern.is_some()),
            ("per_call", self.per_call.is_some()),
            ("view", self.view.is_some()),
            ("offset", self.offset.is_some()),
            ("bytes", self.bytes.is_some()),
            ("calls", self.calls.is_some()),
            ("rank_step", self.rank_step.is_some()),
            ("step", self.step.is_some()),
            ("think", self.think.is_some()),
            ("start", self.start.is_some()),
            ("root", self.root.is_some()),
            ("tag", self.tag.is_some()),
            ("within", self.within.is_some()),
            ("only", self.only.is_some()),
            ("repeat", self.repeat.is_some()),
        ];
        keys.into_iter().filter(|key| key.1).map(|key| key.0).collect()
    }
}

/// What a parser of TOML says, in words of the field instead of those of the language.
pub(crate) fn in_words(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let text = text.replace("expected u64", "expected a whole number, 0 or more");
    text.replace("expected u32", "expected a whole number from 0 to 4294967295")
        .trim_end()
        .to_owned()
}
