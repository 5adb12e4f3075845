//! Which access pattern a sequence of requests follows, found in one pass and constant memory.
//!
//! Requests that follow each other without a gap are first merged into strips; the distances of the
//! strips' starts then tell: one distance is a simple stride, runs of one distance that themselves
//! lie at one distance are a nested stride. Both only where the strips are of one length: where they are
//! not, the gaps differ. The names are those of the benchmark (`docs`:
//! simple strided, nested strided, segmented, …; Nieuwejaar and Kotz, CHARISMA 1996).

use crate::frequent::Frequent;
use iolab_vocab::{Extent, format_bytes};
use serde::Serialize;

/// Share of steps that must agree before a pattern gets a regular name; lets a header or a last
/// short strip be different.
const REGULAR_SHARE: f64 = 0.9;
/// Fewer strips than this say nothing about a stride.
const STRIPS_MIN: u64 = 4;

/// The pattern of one sequence of requests (one thread on one file in one direction).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Pattern {
    /// Too few requests to tell.
    Single,
    /// Each request begins where the one before ended.
    Consecutive,
    /// Always the same place.
    Repeated,
    /// Strips of `strip` bytes, `stride` bytes from start to start.
    SimpleStrided {
        /// Bytes of a strip; requests inside it are consecutive.
        strip: u64,
        /// From the start of a strip to the start of the next.
        stride: i64,
    },
    /// `count` strips `stride` apart, then the same again `outer` bytes further.
    NestedStrided {
        /// Bytes of a strip.
        strip: u64,
        /// Inner stride.
        stride: i64,
        /// Strips of an inner set.
        count: u64,
        /// Outer stride.
        outer: i64,
    },
    /// Forward with gaps that differ.
    Sequential,
    /// Towards the start of the file without gaps.
    Backward,
    /// Back and forth.
    Random,
}

impl Pattern {
    /// The name alone.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Single => "single",
            Pattern::Consecutive => "consecutive",
            Pattern::Repeated => "repeated",
            Pattern::SimpleStrided { .. } => "simple strided",
            Pattern::NestedStrided { .. } => "nested strided",
            Pattern::Sequential => "sequential",
            Pattern::Backward => "backward",
            Pattern::Random => "random",
        }
    }

    /// The name with strip and stride where it has them.
    pub fn describe(self) -> String {
        let size = |bytes: i64| match bytes {
            0.. => format_bytes(bytes as u64),
            _ => format!("-{}", format_bytes(bytes.unsigned_abs())),
        };
        match self {
            Pattern::SimpleStrided { strip, stride } => {
                format!("{}, {} every {}", self.name(), format_bytes(strip), size(stride))
            }
            Pattern::NestedStrided { strip, stride, count, outer } => format!(
                "{}, {count} × {} every {}, again {}",
                self.name(),
                format_bytes(strip),
                size(stride),
                match outer {
                    0 => "at the same place".to_owned(),
                    _ => format!("every {}", size(outer)),
                }
            ),
            _ => self.name().to_owned(),
        }
    }
}

/// Watches a sequence of requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detector {
    steps: u64,
    consecutive: u64,
    repeated: u64,
    backward_adjacent: u64,
    last: Option<Extent>,
    /// From the first byte touched to the last.
    pub(crate) span: Option<Extent>,
    strip: Extent,
    strips: Strips,
}

impl Detector {
    pub(crate) fn add(&mut self, request: Extent) -> bool {
        let span = self.span.unwrap_or(request);
        let start = span.offset.min(request.offset);
        self.span = Some(Extent::new(start, span.end().max(request.end()) - start));
        let Some(last) = self.last.replace(request) else {
            self.strip = request;
            return false;
        };
        self.steps += 1;
        let consecutive = request.offset == last.end();
        if consecutive {
            self.consecutive += 1;
            self.strip.length = request.end() - self.strip.offset;
            return true;
        }
        self.repeated += u64::from(request.offset == last.offset);
        self.backward_adjacent += u64::from(request.end() == last.offset);
        let strip = std::mem::replace(&mut self.strip, request);
        self.strips.add(strip);
        false
    }

    /// What follows is about another file; hands back what was touched of this one.
    pub(crate) fn begin_anew(&mut self) -> Option<Extent> {
        if self.last.take().is_some() {
            self.strips.add(self.strip);
        }
        self.span.take()
    }

    /// Requests seen.
    pub(crate) fn count(&self) -> u64 {
        self.steps + u64::from(self.last.is_some())
    }

    /// Share of steps without a gap.
    pub(crate) fn consecutive_share(&self) -> f64 {
        share(self.consecutive, self.steps)
    }

    pub(crate) fn pattern(&self) -> Pattern {
        if self.steps == 0 {
            return Pattern::Single;
        }
        if self.consecutive_share() >= 0.95 {
            return Pattern::Consecutive;
        }
        if share(self.repeated, self.steps) >= REGULAR_SHARE {
            return Pattern::Repeated;
        }
        if share(self.backward_adjacent, self.steps) >= REGULAR_SHARE {
            return Pattern::Backward;
        }
        let mut strips = self.strips.clone();
        strips.add(self.strip);
        strips.pattern()
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Statistics of strips: lengths, distances, and runs of equal distances.
#[derive(Clone, Debug, Default)]
struct Strips {
    last: Option<u64>,
    forward: u64,
    lengths: Frequent<u64, 4>,
    strides: Frequent<i64, 4>,
    runs: Frequent<(i64, u64), 4>,
    outer: Frequent<i64, 4>,
    run_start: u64,
    run_stride: i64,
    run_count: u64,
}

impl Strips {
    fn add(&mut self, strip: Extent) {
        self.lengths.add(strip.length);
        let Some(last) = self.last.replace(strip.offset) else {
            (self.run_start, self.run_count) = (strip.offset, 1);
            return;
        };
        let stride = strip.offset.wrapping_sub(last) as i64;
        self.strides.add(stride);
        self.forward += u64::from(stride > 0);
        if self.run_count == 1 {
            (self.run_stride, self.run_count) = (stride, 2);
        } else if stride == self.run_stride {
            self.run_count += 1;
        } else {
            self.runs.add((self.run_stride, self.run_count));
            self.outer.add(strip.offset.wrapping_sub(self.run_start) as i64);
            (self.run_start, self.run_count) = (strip.offset, 1);
        }
    }

    fn pattern(&self) -> Pattern {
        let steps = self.strides.total();
        if self.lengths.total() >= STRIPS_MIN
            && let Some(strip) = self.strip()
            && let Some(regular) = self.simple(strip).or_else(|| self.nested(strip))
        {
            return regular;
        }
        if share(self.forward, steps) >= 0.95 { Pattern::Sequential } else { Pattern::Random }
    }

    /// The length of the strips, if they have one.
    fn strip(&self) -> Option<u64> {
        let (strip, _) = self.lengths.top().filter(|top| top.1 >= REGULAR_SHARE)?;
        Some(strip)
    }

    fn simple(&self, strip: u64) -> Option<Pattern> {
        let (stride, _) = self.strides.top().filter(|top| top.1 >= REGULAR_SHARE)?;
        Some(match stride {
            0 => Pattern::Repeated,
            _ => Pattern::SimpleStrided { strip, stride },
        })
    }

    fn nested(&self, strip: u64) -> Option<Pattern> {
        let ((stride, count), _) = self.runs.top().filter(|top| top.1 >= REGULAR_SHARE)?;
        let (outer, _) = self.outer.top().filter(|top| top.1 >= REGULAR_SHARE)?;
        let enough = self.runs.total() >= 2 && stride > 0;
        enough.then_some(Pattern::NestedStrided { strip, stride, count, outer })
    }
}

/// The pattern of all ranks together on one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SharedPattern {
    /// One name: a [`Pattern`]'s, or `segmented` (each rank its own contiguous range), `sequential`
    /// (every rank walks the same bytes) or `mixed`.
    pub name: String,
    /// For people: with ranks, strip and stride.
    pub description: String,
}

/// One rank's part in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) pattern: Pattern,
    pub(crate) span: Extent,
}

/// Combines the patterns of those that touched a file; `noun` says what they are (`ranks`, …).
pub(crate) fn combine(parts: &[Part], noun: &str) -> Option<SharedPattern> {
    let first = parts.first()?;
    let named = |name: &str, description: String| {
        Some(SharedPattern { name: name.to_owned(), description })
    };
    if parts.len() == 1 {
        return named(first.pattern.name(), first.pattern.describe());
    }
    let count = parts.len();
    let all = |test: fn(Pattern) -> bool| parts.iter().all(|part| test(part.pattern));
    if all(|pattern| matches!(pattern, Pattern::Consecutive | Pattern::Single)) {
        if disjoint(parts) {
            return named("segmented", format!("segmented, {count} {noun}, one segment each"));
        }
        if parts.iter().all(|part| part.span == first.span) {
            return named(
                "sequential",
                format!("sequential, {count} {noun} access the same range"),
            );
        }
        return named("consecutive", format!("consecutive, {count} {noun} in overlapping ranges"));
    }
    if parts.iter().all(|part| part.pattern == first.pattern) {
        let name = first.pattern.name();
        let text = first.pattern.describe();
        return named(name, text.replacen(name, &format!("{name}, {count} {noun}"), 1));
    }
    if parts.iter().all(|part| part.pattern.name() == first.pattern.name()) {
        let name = first.pattern.name();
        return named(name, format!("{name}, {count} {noun}"));
    }
    let mut names: Vec<_> = parts.iter().map(|part| part.pattern.name()).collect();
    names.sort_unstable();
    names.dedup();
    named("mixed", format!("mixed: {}", names.join(", ")))
}

fn disjoint(parts: &[Part]) -> bool {
    let mut spans: Vec<Extent> = parts.iter().map(|part| part.span).collect();
    spans.sort_unstable();
    spans.windows(2).all(|pair| pair[0].end() <= pair[1].offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

    fn pattern_of(requests: impl IntoIterator<Item = (u64, u64)>) -> Pattern {
        let mut detector = Detector::default();
        for (offset, length) in requests {
            detector.add(Extent::new(offset, length));
        }
        detector.pattern()
    }

    #[test]
    fn each_pattern_of_the_benchmark_is_found() {
        assert_eq!(pattern_of([(7, 3)]), Pattern::Single);
        assert_eq!(pattern_of((0..50).map(|i| (i * 10, 10))), Pattern::Consecutive);
        assert_eq!(pattern_of((0..50).map(|_| (40, 10))), Pattern::Repeated);
        assert_eq!(pattern_of((0..50).rev().map(|i| (i * 10, 10))), Pattern::Backward);
        assert_eq!(
            pattern_of((0..50).map(|i| (5 + i * 40, 10))),
            Pattern::SimpleStrided { strip: 10, stride: 40 }
        );
        assert_eq!(
            pattern_of((0..60).map(|i| (i / 6 * 1000 + i % 6 * 100, 10))),
            Pattern::NestedStrided { strip: 10, stride: 100, count: 6, outer: 1000 }
        );
        assert_eq!(pattern_of((0..50).map(|i| (i * i * 20, 10))), Pattern::Sequential);
        let mut random = Random::new(Seed(3));
        assert_eq!(pattern_of((0..50).map(|_| (random.below(9999), 10))), Pattern::Random);
    }

    #[test]
    fn small_requests_inside_a_strip_do_not_hide_the_stride() {
        let requests = (0..400).map(|i| (i / 8 * 1000 + i % 8 * 10, 10));
        assert_eq!(pattern_of(requests), Pattern::SimpleStrided { strip: 80, stride: 1000 });
    }

    #[test]
    fn a_header_written_anew_in_two_pieces_is_repeated() {
        let requests = (0..100).map(|i| (i % 2 * 4, 4));
        assert_eq!(pattern_of(requests), Pattern::Repeated);
    }

    #[test]
    fn a_header_before_a_regular_pattern_does_not_hide_it() {
        let requests = [(0, 99)].into_iter().chain((0..50).map(|i| (512 + i * 40, 10)));
        assert_eq!(pattern_of(requests), Pattern::SimpleStrided { strip: 10, stride: 40 });
    }

    #[test]
    fn strips_of_many_lengths_are_not_told_as_strips_of_one() {
        let lengths = (0..200).map(|i| (i * 4096, 37 * i % 3000 + 1));
        assert_eq!(pattern_of(lengths), Pattern::Sequential);
        // A linker with several descriptors on one archive: the head of it, then from its second word on.
        let head_and_rest = (0..8).map(|i| [(0, 4096), (8, 16_384)][i % 2]);
        assert_eq!(pattern_of(head_and_rest), Pattern::Random);
    }

    #[test]
    fn the_same_strips_again_are_at_the_same_place() {
        let table = pattern_of((0..40).flat_map(|_| (0..4).map(|i| (i * 100, 10))));
        assert_eq!(
            table.describe(),
            "nested strided, 4 × 10 B every 100 B, again at the same place"
        );
    }

    #[test]
    fn ranks_are_named_together() {
        let part = |pattern, offset| Part { pattern, span: Extent::new(offset, 100) };
        let strided = Pattern::SimpleStrided { strip: 50 << 10, stride: 200 << 10 };
        let interleaved: Vec<_> = (0..4).map(|rank| part(strided, rank * 10)).collect();
        assert_eq!(
            combine(&interleaved, "ranks").unwrap().description,
            "simple strided, 4 ranks, 50 KiB every 200 KiB"
        );
        let apart: Vec<_> = (0..4).map(|rank| part(Pattern::Consecutive, rank * 100)).collect();
        assert_eq!(combine(&apart, "ranks").unwrap().name, "segmented");
        let same: Vec<_> = (0..4).map(|_| part(Pattern::Consecutive, 0)).collect();
        assert_eq!(combine(&same, "ranks").unwrap().name, "sequential");
        let mixed = [part(Pattern::Random, 0), part(Pattern::Consecutive, 0)];
        assert_eq!(combine(&mixed, "ranks").unwrap().description, "mixed: consecutive, random");
    }
}
