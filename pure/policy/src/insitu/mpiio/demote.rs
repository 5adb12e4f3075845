//! `demote`: a collective access whose ranks' parts do not interleave goes out as independent calls.
//!
//! Two-phase I/O pays for an exchange in order to make large accesses of interleaved small ones; where each
//! rank has a stretch of the file for itself there is nothing to gain by it (Thakur, Gropp and Lusk 1999,
//! section 4, and ROMIO's automatic mode). The ranks tell each other the span of what they access, and
//! each of them judges by what it has heard from all: so all of them judge alike, whatever one of them
//! found in the way.
//!
//! Members: the null one has the library carry out everything (what the agreement costs), the honest
//! one looks for bytes between others, the cruel one goes by chance, interleaved or not.

use super::super::parameter::{Parameters, unknown};
use iolab_vocab::{Random, Refusal, Seed};

/// What a rank tells the others of its part in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Which function it is in, and the first byte of the file that it accesses and the one behind the
    /// last; nothing is accessed where they are equal.
    Spans {
        /// A number of the function.
        function: u64,
        /// The first byte.
        begin: u64,
        /// The byte behind the last one.
        end: u64,
    },
    /// It does not know, or the call is nothing for this.
    Unknown,
}

impl Part {
    /// As it goes from rank to rank.
    pub fn words(self) -> [u64; 3] {
        match self {
            Part::Spans { function, begin, end } => [function + 1, begin, end],
            Part::Unknown => [0; 3],
        }
    }

    /// Reads what [`Part::words`] wrote; what it cannot have written is unknown.
    pub fn of_words([function, begin, end]: [u64; 3]) -> Part {
        match function.checked_sub(1) {
            Some(function) if begin <= end => Part::Spans { function, begin, end },
            _ => Part::Unknown,
        }
    }
}

/// The parts of all ranks, in their order.
pub type Parts<'a> = &'a [Part];

/// What becomes of a collective access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Each rank makes the independent call of its own.
    Independent,
    /// It stays collective: parts interleave, or lie in another order than the ranks.
    Interleaved,
    /// It stays collective: a rank's part is not known.
    Unknown,
    /// It stays collective: that is what was asked for.
    Unwanted,
}

impl Judgement {
    /// All of them, in the order of counters.
    pub const ALL: [Judgement; 4] =
        [Judgement::Independent, Judgement::Interleaved, Judgement::Unknown, Judgement::Unwanted];

    /// Why a call stays collective, as people read it.
    pub fn word(self) -> &'static str {
        match self {
            Judgement::Independent => "independent",
            Judgement::Interleaved => "interleaved",
            Judgement::Unknown => "not to be judged",
            Judgement::Unwanted => "not to be demoted",
        }
    }
}

/// Which collective accesses go out independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// None.
    Never,
    /// Those whose parts are apart, in the order of ranks.
    Apart,
    /// Any, by chance.
    Random(Seed),
}

/// The stage of one open file: the same on each of its ranks.
#[derive(Clone, Debug)]
pub struct Demote {
    when: When,
    random: Random,
}

impl PartialEq for Demote {
    fn eq(&self, other: &Demote) -> bool {
        self.when == other.when
    }
}

impl Eq for Demote {}

impl Demote {
    /// One that goes by that.
    pub fn new(when: When) -> Demote {
        let seed = if let When::Random(seed) = when { seed } else { Seed(0) };
        Demote { when, random: Random::new(seed) }
    }

    /// Reads `when=apart|never`.
    pub fn parse(parameters: &Parameters) -> Result<Demote, Refusal> {
        let mut when = When::Apart;
        for (key, value) in parameters {
            when = match (key.as_str(), value.as_str()) {
                ("when", "apart") => When::Apart,
                ("when", "never") => When::Never,
                ("when", _) => {
                    return Err(Refusal {
                        message: format!("when: `{value}` is neither `apart` nor `never`"),
                        hint: "for example when=apart".to_owned(),
                    });
                }
                _ => return Err(unknown(key, "when, paths, exclude")),
            };
        }
        Ok(Demote::new(when))
    }

    /// Reads `seed=1`, of the cruel member.
    pub fn parse_cruel(parameters: &Parameters) -> Result<Demote, Refusal> {
        let mut seed = Seed(1);
        for (key, value) in parameters {
            match (key.as_str(), value.parse()) {
                ("seed", Ok(number)) => seed = Seed(number),
                ("seed", Err(_)) => {
                    return Err(Refusal {
                        message: format!("seed: `{value}` is not a number"),
                        hint: "for example seed=1".to_owned(),
                    });
                }
                _ => return Err(unknown(key, "seed, paths, exclude")),
            }
        }
        Ok(Demote::new(When::Random(seed)))
    }

    /// What becomes of a call, from the parts of all ranks.
    pub fn judge(&mut self, parts: Parts<'_>) -> Judgement {
        // Drawn for each call, so that chance does not depend on what parts were.
        let draw = self.random.below(2) == 0;
        if !are_known(parts) {
            return Judgement::Unknown;
        }
        match self.when {
            When::Never => Judgement::Unwanted,
            When::Apart if are_apart(parts) => Judgement::Independent,
            When::Apart => Judgement::Interleaved,
            When::Random(_) if draw => Judgement::Independent,
            When::Random(_) => Judgement::Unwanted,
        }
    }
}

/// Whether every rank knows its part, and all are in the same function.
fn are_known(parts: Parts<'_>) -> bool {
    let function = |part: &Part| match part {
        Part::Spans { function, .. } => Some(*function),
        Part::Unknown => None,
    };
    let first = parts.first().and_then(function);
    first.is_some() && parts.iter().all(|part| function(part) == first)
}

/// Whether the spans ascend with the ranks, without a byte in common; ranks that access nothing are
/// in nobody's way.
fn are_apart(parts: Parts<'_>) -> bool {
    let mut free = 0;
    parts.iter().all(|part| match *part {
        Part::Spans { begin, end, .. } if begin < end => {
            let is_apart = free <= begin;
            free = end;
            is_apart
        }
        Part::Spans { .. } => true,
        Part::Unknown => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(spans: &[(u64, u64)]) -> Vec<Part> {
        spans.iter().map(|&(begin, end)| Part::Spans { function: 3, begin, end }).collect()
    }

    fn judged(parts: Parts<'_>) -> Judgement {
        Demote::new(When::Apart).judge(parts)
    }

    #[test]
    fn parts_that_ascend_with_the_ranks_go_out_independently() {
        for parts in [
            &[(0, 4)][..],
            &[(0, 4), (4, 8)],
            &[(0, 4), (100, 101), (101, 900)],
            &[(7, 7), (0, 4), (2, 2), (4, 5), (0, 0)],
            &[(0, 0), (0, 0)],
            &[(0, 4), (u64::MAX - 1, u64::MAX)],
        ] {
            assert_eq!(judged(&spans(parts)), Judgement::Independent, "{parts:?}");
        }
    }

    #[test]
    fn parts_with_others_between_them_stay_collective() {
        for parts in [
            &[(0, 5), (4, 8)][..],
            &[(4, 8), (0, 4)],
            &[(0, 100), (10, 20)],
            &[(0, 4), (6, 6), (3, 5)],
            &[(0, 4), (0, 4)],
        ] {
            assert_eq!(judged(&spans(parts)), Judgement::Interleaved, "{parts:?}");
        }
    }

    #[test]
    fn one_rank_that_does_not_know_keeps_the_call_collective_for_all() {
        let mut parts = spans(&[(0, 4), (4, 8), (8, 12)]);
        parts[1] = Part::Unknown;
        assert_eq!(judged(&parts), Judgement::Unknown);
        parts[1] = Part::Spans { function: 4, begin: 4, end: 8 };
        assert_eq!(judged(&parts), Judgement::Unknown, "the ranks are in different functions");
        assert_eq!(judged(&[]), Judgement::Unknown);
    }

    #[test]
    fn a_part_is_on_another_rank_what_it_is_here_and_nonsense_is_unknown() {
        for part in [Part::Unknown, Part::Spans { function: 0, begin: 5, end: 5 }]
            .into_iter()
            .chain(spans(&[(0, u64::MAX), (3, 4)]))
        {
            assert_eq!(Part::of_words(part.words()), part);
        }
        assert_eq!(Part::of_words([1, 5, 4]), Part::Unknown);
    }

    /// The law of the family: the same on every rank, never without knowing, and of the honest member
    /// no byte of two ranks and none between another's.
    #[test]
    fn every_member_judges_alike_on_all_ranks_and_only_what_is_known() {
        let mut random = Random::new(Seed(5));
        let mut counts = [0u32; 4];
        for when in [When::Never, When::Apart, When::Random(Seed(7))] {
            let mut ranks = vec![Demote::new(when); 4];
            for _ in 0..5000 {
                let parts: Vec<Part> = (0..ranks.len() as u64)
                    .map(|rank| {
                        let begin = rank * 10 + random.below(12);
                        let (end, function) = (begin + random.below(10), random.below(40) / 39);
                        let known = Part::Spans { function, begin, end };
                        if random.below(40) == 0 { Part::Unknown } else { known }
                    })
                    .collect();
                let judged: Vec<Judgement> =
                    ranks.iter_mut().map(|rank| rank.judge(&parts)).collect();
                assert!(judged.iter().all(|it| *it == judged[0]), "{when:?} {parts:?}");
                assert_eq!(judged[0] == Judgement::Unknown, !are_known(&parts), "{when:?}");
                if judged[0] == Judgement::Independent {
                    assert_ne!(when, When::Never);
                    assert!(when != When::Apart || bytes_are_in_order(&parts), "{parts:?}");
                }
                counts[judged[0] as usize] += 1;
            }
        }
        assert!(counts.iter().all(|&count| count > 500), "{counts:?}");
    }

    /// By looking at every byte: whose it is.
    fn bytes_are_in_order(parts: &[Part]) -> bool {
        let owners = (0..100).flat_map(|byte| {
            parts.iter().enumerate().filter_map(move |(rank, part)| match *part {
                Part::Spans { begin, end, .. } if (begin..end).contains(&byte) => {
                    Some((byte, rank))
                }
                _ => None,
            })
        });
        let owners: Vec<(u64, usize)> = owners.collect();
        owners.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1)
    }

    #[test]
    fn parameters_nobody_knows_are_refused_and_named() {
        for (text, offender) in [
            ("demote:when=always", "`always`"),
            ("demote:seed=1", "`seed`"),
            ("demote-cruel:seed=x", "`x`"),
            ("demote-cruel:when=apart", "`when`"),
        ] {
            let refused = crate::insitu::StrategySpec::parse(text).unwrap_err();
            assert!(refused.message.contains(offender), "{text}: {refused}");
        }
    }
}
