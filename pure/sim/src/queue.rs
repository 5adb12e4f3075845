//! The event queue: what happens next, and in which order things happen that happen at once.
//!
//! Simultaneous events are the rule in a symmetric cluster, and their order decides results, so
//! the order is total and documented: **time, then source, then sequence**. The source is the
//! component that posted the event; the sequence counts all pushes. A tie seed other than 0
//! shuffles all events of an instant instead, so a result can carry the band it has over seeds.
//!
//! [`Ordered`] is a 4-ary heap over the packed key (time, source, sequence): about 20 M push-pop
//! pairs a second with 1,000 events pending, 3.5 M with a million. [`Published`] is the plain
//! array heap ordered by time alone, whose sift rules decided ties in the published evaluation of
//! PIOsimHD (Kuhn 2009); it exists to reproduce that evaluation and for nothing else.
//!
//! What may still be moved, the end of a job on a shared processor, is posted as a timer.

mod timers;

use iolab_vocab::{Nanos, Seed};
use timers::Timers;

/// The component that posts an event; below 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(pub u32);

/// What a simulation needs of its queue.
pub trait EventQueue<E> {
    /// Posts `event` for `time`.
    fn push(&mut self, time: Nanos, source: Source, event: E);

    /// Takes the next event.
    fn pop(&mut self) -> Option<(Nanos, E)>;

    /// Posts an event that may be moved. A slot has one at most.
    fn set_timer(&mut self, slot: u32, time: Nanos, source: Source, event: E);

    /// Moves the event of a slot, which is pending.
    fn move_timer(&mut self, slot: u32, time: Nanos, source: Source, event: E);

    /// How many events are pending.
    fn len(&self) -> usize;

    /// Whether none is.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

const SEQUENCE_BITS: u32 = 40;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;
const ARITY: usize = 4;

#[derive(Clone, Copy)]
struct Entry<E> {
    time: u64,
    tie: u64,
    event: E,
}

impl<E> Entry<E> {
    #[inline(always)]
    fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.tie)
    }
}

/// The documented order: time, then source, then sequence; a tie seed shuffles what is simultaneous.
///
/// ```
/// use iolab_sim::queue::{EventQueue, Ordered, Source};
/// use iolab_vocab::{Nanos, Seed};
/// let mut queue = Ordered::new(Seed(0));
/// queue.push(Nanos(7), Source(2), "second");
/// queue.push(Nanos(7), Source(1), "first");
/// assert_eq!(queue.pop(), Some((Nanos(7), "first")));
/// ```
pub struct Ordered<E> {
    heap: Vec<Entry<E>>,
    timers: Timers<E>,
    sequence: u64,
    tie_seed: Seed,
}

impl<E: Copy> Ordered<E> {
    /// An empty queue. Seed 0 is the plain documented order.
    pub fn new(tie_seed: Seed) -> Ordered<E> {
        Ordered { heap: Vec::new(), timers: Timers::new(), sequence: 0, tie_seed }
    }

    #[inline]
    fn tie(&mut self, time: Nanos, source: Source) -> u64 {
        debug_assert!(source.0 < 1 << 24, "source {source:?} needs more than 24 bits");
        self.sequence += 1;
        let rank = match self.tie_seed {
            Seed(0) => u64::from(source.0),
            Seed(seed) => shuffled(seed, time.0, self.sequence),
        };
        rank << SEQUENCE_BITS | self.sequence & SEQUENCE_MASK
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, entry: Entry<E>) {
        let key = entry.key();
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].key() <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    #[inline]
    fn sift_down(&mut self, mut at: usize, entry: Entry<E>) {
        let key = entry.key();
        loop {
            let first = at * ARITY + 1;
            if first >= self.heap.len() {
                break;
            }
            let last = (first + ARITY).min(self.heap.len());
            let (mut child, mut child_key) = (first, self.heap[first].key());
            for other in first + 1..last {
                let other_key = self.heap[other].key();
                if other_key < child_key {
                    (child, child_key) = (other, other_key);
                }
            }
            if child_key >= key {
                break;
            }
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = entry;
    }
}

/// The place of an event among those of one instant, 24 bits: SplitMix64's finalizer. Sources are
/// shuffled too: a client that addresses eight servers at once posts eight events, and in which
/// order these leave is as accidental as which client is first.
#[inline]
fn shuffled(seed: u64, time: u64, sequence: u64) -> u64 {
    let mut z = seed ^ time.rotate_left(24) ^ sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) >> SEQUENCE_BITS
}

impl<E: Copy> EventQueue<E> for Ordered<E> {
    #[inline]
    fn push(&mut self, time: Nanos, source: Source, event: E) {
        let entry = Entry { time: time.0, tie: self.tie(time, source), event };
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1, entry);
    }

    #[inline]
    fn pop(&mut self) -> Option<(Nanos, E)> {
        let root_key = self.heap.first().map_or(u128::MAX, Entry::key);
        if self.timers.first_key() < root_key {
            return self.timers.pop().map(|entry| (Nanos(entry.time), entry.event));
        }
        let last = self.heap.pop()?;
        let Some(&root) = self.heap.first() else {
            return Some((Nanos(last.time), last.event));
        };
        self.sift_down(0, last);
        Some((Nanos(root.time), root.event))
    }

    fn set_timer(&mut self, slot: u32, time: Nanos, source: Source, event: E) {
        let entry = Entry { time: time.0, tie: self.tie(time, source), event };
        self.timers.set(slot, entry);
    }

    fn move_timer(&mut self, slot: u32, time: Nanos, source: Source, event: E) {
        self.set_timer(slot, time, source, event);
    }

    fn len(&self) -> usize {
        self.heap.len() + self.timers.len()
    }
}

/// The order of the published evaluation: a binary array heap by time, ties as they fall.
///
/// Insert: move up while strictly earlier than the parent. Take the root: put the last element at
/// the root and move down, choosing the right child only if strictly earlier than the left,
/// stopping when not later than the child. Withdraw: last element into the hole, move down, and
/// if it did not move, up.
#[derive(Default)]
pub struct Published<E> {
    heap: Vec<(u64, E)>,
}

impl<E: Copy + PartialEq> Published<E> {
    /// An empty queue.
    pub fn new() -> Published<E> {
        Published { heap: Vec::new() }
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, entry: (u64, E)) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if entry.0 >= self.heap[parent].0 {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Takes back a pending event, if it is there. Linear: the original searched its array too. What
    /// is taken back was posted lately and stands near the end.
    fn withdraw(&mut self, event: &E) -> bool {
        let Some(at) = self.heap.iter().rposition(|entry| entry.1 == *event) else {
            return false;
        };
        let last = self.heap.pop().expect("an event was found, so the heap is not empty");
        if at < self.heap.len() && self.sift_down(at, last) == at {
            self.sift_up(at, last);
        }
        true
    }

    /// Returns where the entry came to rest.
    #[inline]
    fn sift_down(&mut self, mut at: usize, entry: (u64, E)) -> usize {
        let count = self.heap.len();
        loop {
            let mut child = 2 * at + 1;
            if child >= count {
                break;
            }
            let right = child + 1;
            if right < count && self.heap[right].0 < self.heap[child].0 {
                child = right;
            }
            if entry.0 <= self.heap[child].0 {
                break;
            }
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = entry;
        at
    }
}

impl<E: Copy + PartialEq> EventQueue<E> for Published<E> {
    #[inline]
    fn push(&mut self, time: Nanos, _source: Source, event: E) {
        self.heap.push((time.0, event));
        self.sift_up(self.heap.len() - 1, (time.0, event));
    }

    #[inline]
    fn pop(&mut self) -> Option<(Nanos, E)> {
        let last = self.heap.pop()?;
        let Some(&root) = self.heap.first() else {
            return Some((Nanos(last.0), last.1));
        };
        self.sift_down(0, last);
        Some((Nanos(root.0), root.1))
    }

    fn set_timer(&mut self, _slot: u32, time: Nanos, source: Source, event: E) {
        self.push(time, source, event);
    }

    fn move_timer(&mut self, _slot: u32, time: Nanos, source: Source, event: E) {
        self.withdraw(&event);
        self.push(time, source, event);
    }

    fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::Random;

    fn drain(queue: &mut impl EventQueue<u32>) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| queue.pop()).map(|(time, event)| (time.0, event)).collect()
    }

    fn fill(queue: &mut impl EventQueue<u32>, count: u32) -> Vec<(u64, u32, u32)> {
        let mut random = Random::new(Seed(9));
        let mut pushed = Vec::new();
        for event in 0..count {
            let (time, source) = (random.below(50), random.below(8) as u32);
            queue.push(Nanos(time), Source(source), event);
            pushed.push((time, source, event));
        }
        pushed
    }

    #[test]
    fn events_come_by_time_then_source_then_sequence() {
        let mut queue = Ordered::new(Seed(0));
        let mut expected = fill(&mut queue, 1000);
        expected.sort();
        let expected: Vec<_> = expected.into_iter().map(|(time, _, event)| (time, event)).collect();
        assert_eq!(drain(&mut queue), expected);
    }

    #[test]
    fn a_tie_seed_moves_simultaneous_events_and_no_others() {
        let (mut plain, mut shuffled) = (Ordered::new(Seed(0)), Ordered::new(Seed(5)));
        let pushed = fill(&mut plain, 1000);
        fill(&mut shuffled, 1000);
        let (mut plain, mut shuffled) = (drain(&mut plain), drain(&mut shuffled));
        assert_ne!(plain, shuffled);
        assert!(shuffled.is_sorted_by_key(|event| event.0));
        let source = |event: &(u64, u32)| pushed[event.1 as usize].1;
        let moves = shuffled.windows(2).any(|pair| {
            pair[0].0 == pair[1].0 && source(&pair[0]) == source(&pair[1]) && pair[0].1 > pair[1].1
        });
        assert!(moves, "events of one source are shuffled too");
        plain.sort_unstable();
        shuffled.sort_unstable();
        assert_eq!(plain, shuffled);
    }

    #[test]
    fn a_timer_comes_where_it_was_last_moved_to_among_the_other_events() {
        let mut random = Random::new(Seed(4));
        let mut queue = Ordered::new(Seed(0));
        let mut expected = fill(&mut queue, 300);
        let mut timers: Vec<Option<(u64, u32, u32)>> = vec![None; 20];
        for event in 1000..1200 {
            let (slot, time, source) =
                (random.below(20) as u32, random.below(50), 8 + random.below(8) as u32);
            match timers[slot as usize] {
                None => queue.set_timer(slot, Nanos(time), Source(source), event),
                Some(_) => queue.move_timer(slot, Nanos(time), Source(source), event),
            }
            timers[slot as usize] = Some((time, source, event));
        }
        expected.extend(timers.into_iter().flatten());
        assert_eq!(queue.len(), expected.len());
        let mut whole = Ordered::new(Seed(0));
        expected.sort_by_key(|event| event.2);
        for &(time, source, event) in &expected {
            whole.push(Nanos(time), Source(source), event);
        }
        assert_eq!(drain(&mut queue), drain(&mut whole));
    }

    #[test]
    fn equal_times_leave_the_published_heap_as_its_array_happens_to_lie() {
        let mut queue = Published::new();
        for event in 0..10 {
            queue.push(Nanos(1), Source(0), event);
        }
        let order: Vec<_> = drain(&mut queue).into_iter().map(|(_, event)| event).collect();
        assert_eq!(order, [0, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn the_published_heap_comes_by_time_even_after_withdrawals() {
        let mut queue = Published::new();
        fill(&mut queue, 500);
        for event in (0..500).step_by(3) {
            assert!(queue.withdraw(&event));
        }
        let events = drain(&mut queue);
        assert!(events.is_sorted_by_key(|event| event.0));
        assert_eq!(events.len(), 333);
    }
}
