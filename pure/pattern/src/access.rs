//! Compact sets of bytes: nested-strided, in file and memory.
//!
//! `Strided` is the form of Nieuwejaar and Kotz (1996): a block repeated with a stride, that whole
//! repeated with a larger stride, and so on. Building one merges levels that only continue each
//! other, so a contiguous set always has depth 0, however it was described.

use iolab_vocab::Extent;

/// How deep the nesting may be. FLASH needs 5 in memory, an n-D array one per dimension.
pub const DEPTH: usize = 6;

/// One level of repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// How often the level below occurs.
    pub count: u64,
    /// Bytes from the start of one occurrence to the start of the next.
    pub stride: u64,
}

/// A contiguous block, repeated on zero or more levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Where the first block starts.
    pub offset: u64,
    /// Length of one contiguous block.
    pub block: u64,
    levels: [Level; DEPTH],
    depth: u8,
}

impl Strided {
    /// One contiguous range.
    #[inline]
    pub const fn contiguous(offset: u64, length: u64) -> Strided {
        let levels = [Level { count: 0, stride: 0 }; DEPTH];
        Strided { offset, block: length, levels, depth: 0 }
    }

    /// This set `count` times, each `stride` bytes after the one before, as a new outermost level.
    ///
    /// ```
    /// use iolab_pattern::Strided;
    /// let row = Strided::contiguous(0, 8).repeated(4, 8);
    /// assert_eq!(row, Strided::contiguous(0, 32), "neighbours merge");
    /// assert_eq!(row.repeated(2, 100).nth(1).offset, 100);
    /// ```
    ///
    /// # Panics
    /// When the nesting would be deeper than [`DEPTH`].
    pub fn repeated(mut self, count: u64, stride: u64) -> Strided {
        if count == 1 {
            return self;
        }
        match self.levels().last().copied() {
            None if stride == self.block || count == 0 => self.block *= count,
            Some(inner) if stride == inner.count * inner.stride => {
                self.levels[self.depth as usize - 1].count *= count;
            }
            _ => {
                assert!((self.depth as usize) < DEPTH, "more than {DEPTH} levels of nesting");
                self.levels[self.depth as usize] = Level { count, stride };
                self.depth += 1;
            }
        }
        self
    }

    /// The same set, starting elsewhere.
    pub const fn at(mut self, offset: u64) -> Strided {
        self.offset = offset;
        self
    }

    /// The levels, innermost first.
    #[inline]
    pub fn levels(&self) -> &[Level] {
        &self.levels[..self.depth as usize]
    }

    /// How many contiguous blocks.
    pub fn blocks(&self) -> u64 {
        self.levels().iter().map(|level| level.count).product()
    }

    /// How many bytes are touched (holes not counted).
    #[inline]
    pub fn bytes(&self) -> u64 {
        if self.depth == 0 { self.block } else { self.block * self.blocks() }
    }

    /// The byte after the last one touched.
    pub fn end(&self) -> u64 {
        let span: u64 = self.levels().iter().map(|l| l.count.saturating_sub(1) * l.stride).sum();
        self.offset + span + self.block
    }

    /// The block of that index, in order.
    pub fn nth(&self, mut index: u64) -> Extent {
        let mut offset = self.offset;
        for level in self.levels() {
            offset += index % level.count * level.stride;
            index /= level.count;
        }
        Extent::new(offset, self.block)
    }

    /// How many bytes of the set come before a byte of it, given by its place in the file. Only for
    /// sets that never go backwards (an inner span is within the stride around it).
    pub fn position_of(&self, offset: u64) -> u64 {
        let mut rest = offset - self.offset;
        let mut inner = self.bytes();
        let mut position = 0;
        for level in self.levels().iter().rev() {
            inner /= level.count;
            position += rest / level.stride * inner;
            rest %= level.stride;
        }
        position + rest
    }

    /// All blocks in order.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        (0..self.blocks()).map(|index| self.nth(index))
    }
}

/// A piece that is contiguous in the file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where in the file.
    pub file: u64,
    /// Where in the buffer.
    pub memory: u64,
    /// How many bytes.
    pub length: u64,
}

/// Where one operation goes: sets of bytes in the file, and the sets of the buffer they come from
/// or go to, in the same order and of the same total length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    file: Vec<Strided>,
    memory: Vec<Strided>,
}

impl Access {
    /// An operation that touches nothing.
    pub const fn new() -> Access {
        Access { file: Vec::new(), memory: Vec::new() }
    }

    /// Forgets everything but its allocations.
    #[inline]
    pub fn clear(&mut self) {
        self.file.clear();
        self.memory.clear();
    }

    /// Becomes one contiguous range of the file, contiguous in memory.
    #[inline]
    pub fn set_contiguous(&mut self, offset: u64, length: u64) {
        self.memory.clear();
        match self.file.as_mut_slice() {
            [only] if only.depth == 0 => (only.offset, only.block) = (offset, length),
            _ => self.set(Strided::contiguous(offset, length)),
        }
    }

    /// Becomes one set of the file, contiguous in memory.
    pub fn set(&mut self, file: Strided) {
        self.clear();
        self.file.push(file);
    }

    /// Adds a further set of the file; it continues in memory where the last one ended.
    pub fn push_file(&mut self, file: Strided) {
        if file.bytes() > 0 {
            self.file.push(file);
        }
    }

    /// Adds a set of the buffer. Without any, the buffer is contiguous from its start.
    pub fn push_memory(&mut self, memory: Strided) {
        self.memory.push(memory);
    }

    /// The sets of the file.
    pub fn file(&self) -> &[Strided] {
        &self.file
    }

    /// The sets of the buffer; empty when the buffer is contiguous.
    pub fn memory(&self) -> &[Strided] {
        &self.memory
    }

    /// The one range of the file, when file and memory are contiguous: the fast way.
    #[inline]
    pub fn contiguous(&self) -> Option<Extent> {
        match self.file.as_slice() {
            [one] if one.depth == 0 && self.memory.is_empty() => {
                Some(Extent::new(one.offset, one.block))
            }
            _ => None,
        }
    }

    /// How many bytes are transferred.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.file.iter().map(Strided::bytes).sum()
    }

    /// The byte of the file after the last one touched.
    pub fn file_end(&self) -> u64 {
        self.file.iter().map(Strided::end).max().unwrap_or(0)
    }

    /// How long a buffer must be.
    pub fn memory_end(&self) -> u64 {
        self.memory.iter().map(Strided::end).max().unwrap_or_else(|| self.bytes())
    }

    /// The ranges of the file, in order.
    pub fn file_extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.file.iter().flat_map(Strided::extents)
    }

    /// The ranges of the buffer, in order.
    pub fn memory_extents(&self) -> impl Iterator<Item = Extent> + '_ {
        let contiguous = self.memory.is_empty().then(|| Extent::new(0, self.bytes()));
        contiguous.into_iter().chain(self.memory.iter().flat_map(Strided::extents))
    }

    /// The pieces contiguous on both sides, in order: what a loop of `pread` would do.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let mut file = self.file_extents();
        let mut memory = self.memory_extents();
        let mut from = Extent::default();
        let mut to = Extent::default();
        std::iter::from_fn(move || {
            while from.is_empty() {
                from = file.next()?;
            }
            while to.is_empty() {
                to = memory.next()?;
            }
            let length = from.length.min(to.length);
            let piece = Piece { file: from.offset, memory: to.offset, length };
            from = Extent::new(from.offset + length, from.length - length);
            to = Extent::new(to.offset + length, to.length - length);
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_continue_each_other_merge() {
        let set = Strided::contiguous(5, 2).repeated(3, 10).repeated(4, 30);
        assert_eq!(set.levels(), [Level { count: 12, stride: 10 }]);
        assert_eq!(set.end(), 5 + 11 * 10 + 2);
        assert_eq!(set.bytes(), 24);
    }

    #[test]
    fn pieces_split_where_either_side_has_a_seam() {
        let mut access = Access::new();
        access.push_file(Strided::contiguous(100, 4).repeated(2, 10));
        access.push_memory(Strided::contiguous(0, 3).repeated(3, 5));
        access.file[0].block = 4;
        let pieces: Vec<_> = access.pieces().map(|p| (p.file, p.memory, p.length)).collect();
        assert_eq!(pieces, [(100, 0, 3), (103, 5, 1), (110, 6, 2), (112, 10, 2)]);
    }

    #[test]
    fn the_position_of_a_byte_counts_the_bytes_of_the_set_before_it() {
        let set = Strided::contiguous(7, 3).repeated(4, 5).repeated(3, 40).repeated(2, 200);
        let bytes = set.extents().flat_map(|extent| extent.offset..extent.end());
        for (position, offset) in bytes.enumerate() {
            assert_eq!(set.position_of(offset), position as u64);
        }
    }

    #[test]
    fn a_set_repeated_no_times_is_empty() {
        assert_eq!(Strided::contiguous(3, 7).repeated(0, 9).bytes(), 0);
    }
}
