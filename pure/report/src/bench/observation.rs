//! An observation: what the results say, with the numbers it was drawn from.

/// Something the results say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Observation {
    /// What kind of thing.
    pub kind: &'static str,
    /// The sentence with its numbers.
    pub text: String,
}

/// One of that kind, with its sentence.
pub(super) fn observation(kind: &'static str, text: String) -> Observation {
    Observation { kind, text }
}
