//! A line of a DFTracer trace: one JSON object, its numbers as numbers or as text.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// What stands in a line that is an event.
#[derive(Deserialize)]
pub(super) struct Line {
    pub name: String,
    #[serde(default)]
    pub cat: String,
    ph: Scalar,
    id: Option<Scalar>,
    pub pid: Scalar,
    pub tid: Scalar,
    ts: Option<Scalar>,
    dur: Option<Scalar>,
    #[serde(default)]
    pub args: Arguments,
}

/// The arguments that mean something to us.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Arguments {
    pub hhash: Option<Scalar>,
    pub hostname: Option<String>,
    pub fhash: Option<Scalar>,
    pub fname: Option<String>,
    pub cmd_hash: Option<Scalar>,
    pub ppid: Option<Scalar>,
    pub name: Option<Scalar>,
    pub value: Option<Scalar>,
    pub ret: Option<Scalar>,
    pub fd: Option<Scalar>,
    pub count: Option<Scalar>,
    pub size: Option<Scalar>,
    pub offset: Option<Scalar>,
    pub length: Option<Scalar>,
    pub whence: Option<Scalar>,
    pub flags: Option<Scalar>,
    pub mode: Option<Scalar>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Scalar {
    Integer(i64),
    Text(String),
    Other(IgnoredAny),
}

impl Scalar {
    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Scalar::Integer(number) => Some(*number),
            Scalar::Text(text) => text.trim().parse().ok(),
            Scalar::Other(_) => None,
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        match self {
            Scalar::Integer(number) => Some(number.to_string()),
            Scalar::Text(text) => Some(text.clone()),
            Scalar::Other(_) => None,
        }
    }
}

/// The number that an argument is, if it is there and is one.
pub(super) fn number(scalar: Option<&Scalar>) -> Option<i64> {
    scalar.and_then(Scalar::number)
}

/// The text that an argument is, if it is there and says anything.
pub(super) fn text(scalar: Option<&Scalar>) -> Option<String> {
    scalar.and_then(Scalar::text).filter(|text| !text.is_empty())
}

/// What kind of event a line is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It took time: `X`, and 1 since DFTracer 2.
    Complete,
    /// It says something about the run: `M`, and 4 since DFTracer 2; `H` in between.
    Fact,
}

impl Line {
    pub(super) fn phase(&self) -> Phase {
        match &self.ph {
            Scalar::Integer(1) => Phase::Complete,
            Scalar::Text(phase) if phase == "X" => Phase::Complete,
            _ => Phase::Fact,
        }
    }

    /// Whether DFTracer wrote it, and not another tool that writes the same kind of events: it numbers
    /// events, and begins with facts of its own.
    pub(super) fn is_dftracers(&self) -> bool {
        self.cat == "dftracer" || self.id.as_ref().and_then(Scalar::number).is_some()
    }

    /// The event in a line of a file; none in a line that is damaged or cut.
    pub(super) fn parse(text: &str) -> Option<Line> {
        serde_json::from_str(text).ok()
    }

    /// When it began and how long it took, in microseconds; none for what took no time.
    pub(super) fn time_us(&self) -> Option<(u64, u64)> {
        let start = u64::try_from(self.ts.as_ref()?.number()?).ok()?;
        let took = u64::try_from(number(self.dur.as_ref()).unwrap_or(0)).ok()?;
        Some((start, took))
    }
}
