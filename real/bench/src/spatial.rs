//! Which bytes a case touches: a pattern of the catalogue, or the accesses of a recorded run.

use crate::recording::Recording;
use iolab_pattern::{Catalog, Pattern, Row, parse_spec};
use iolab_vocab::{Refusal, Seed};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// A pattern as a plan has it: text, or a table that names a trace.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[serde(untagged)]
pub(crate) enum SpatialText {
    Spec(String),
    Trace(TraceText),
}

impl<'de> Deserialize<'de> for SpatialText {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<SpatialText, D::Error> {
        let read = match toml::Value::deserialize(source)? {
            toml::Value::Table(table) => table.try_into().map(SpatialText::Trace),
            text => text.try_into().map(SpatialText::Spec),
        };
        read.map_err(|error| D::Error::custom(error.message()))
    }
}

/// `{ trace = "run.iot", file = "checkpoint", calls = "writes" }`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceText {
    trace: String,
    file: Option<String>,
    calls: Option<String>,
}

impl SpatialText {
    pub(crate) fn resolve(&self) -> Result<Spatial, Refusal> {
        match self {
            SpatialText::Spec(spec) => Spatial::parse(spec),
            SpatialText::Trace(TraceText { trace, file, calls }) => {
                let file = file.iter().map(|file| format!(",file={file}"));
                let calls = calls.iter().map(|calls| format!(",calls={calls}"));
                let spec: String =
                    std::iter::once(trace.clone()).chain(file).chain(calls).collect();
                Ok(Spatial::Recorded(Recording::load(&spec)?))
            }
        }
    }
}

/// A pattern that can be made for a number of ranks.
#[derive(Clone)]
pub enum Spatial {
    /// One of the catalogue, with its parameters as written.
    Catalogue {
        /// Which one.
        row: &'static Row,
        /// Key and value, as written.
        pairs: Vec<(String, String)>,
    },
    /// The accesses of a recorded run.
    Recorded(Recording),
}

impl Spatial {
    /// From `name:key=value,…` or `trace:RUN.iot`.
    ///
    /// # Errors
    /// When there is no such pattern, or the trace cannot be read.
    pub fn parse(text: &str) -> Result<Spatial, Refusal> {
        if let Some(spec) = text.strip_prefix("trace:") {
            return Ok(Spatial::Recorded(Recording::load(spec)?));
        }
        let (name, pairs) = parse_spec(text)?;
        Ok(Spatial::Catalogue { row: Catalog::find(&name)?, pairs })
    }

    /// The same with its size parameter set.
    ///
    /// # Errors
    /// When the sizes of a pattern are what they were.
    pub(crate) fn with_size(&self, size: Option<u64>) -> Result<Spatial, Refusal> {
        let Some(size) = size else { return Ok(self.clone()) };
        match self {
            Spatial::Catalogue { row, pairs } => {
                let mut pairs = pairs.clone();
                pairs.retain(|(key, _)| key != row.size);
                pairs.push((row.size.to_owned(), size.to_string()));
                Ok(Spatial::Catalogue { row, pairs })
            }
            Spatial::Recorded(recording) => Err(Refusal::new(
                format!("{} has the sizes that were recorded", recording.text),
                "leave sizes away, or take a pattern of the catalogue",
            )),
        }
    }

    /// The pattern for that many ranks.
    ///
    /// # Errors
    /// When it cannot be made for so many, or of these parameters at all.
    pub fn make(&self, ranks: u32, seed: Seed) -> Result<Box<dyn Pattern>, Refusal> {
        match self {
            Spatial::Catalogue { row, pairs } => row.make(pairs, ranks, seed),
            Spatial::Recorded(recording) => recording.make(ranks),
        }
    }

    /// Tells patterns apart that are written alike; 0 for those that cannot differ then.
    pub(crate) fn fingerprint(&self) -> u64 {
        match self {
            Spatial::Catalogue { .. } => 0,
            Spatial::Recorded(recording) => recording.fingerprint(),
        }
    }

    /// As it would be written.
    pub fn text(&self) -> String {
        match self {
            Spatial::Recorded(recording) => recording.text.clone(),
            Spatial::Catalogue { row, pairs } if pairs.is_empty() => row.name.to_owned(),
            Spatial::Catalogue { row, pairs } => {
                let pairs: Vec<_> =
                    pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("{}:{}", row.name, pairs.join(","))
            }
        }
    }

    /// Whether the pattern can be made at all: some want a certain number of ranks, which is known
    /// only when the run starts.
    pub(crate) fn makeable(&self) -> Result<(), Refusal> {
        let Spatial::Catalogue { row, pairs } = self else { return Ok(()) };
        let mut made = (1..=64).map(|ranks| row.make(pairs, ranks, Seed(1)));
        let first = made.next().expect("64 tries");
        match first {
            Err(error) if !made.any(|made| made.is_ok()) => Err(error),
            _ => Ok(()),
        }
    }
}
