//! The memory of a program's call: one buffer or an `iovec`. A bad address must come to `EFAULT`,
//! as from the kernel, and not to a crash, so pages are asked about before bytes are copied; pages
//! that were good stand in a small cache, since programs use the same buffers again and again. What
//! was good may have been unmapped or protected since: each page is touched once more before it is
//! used, by instructions behind which a fault goes on (`signals`).

use super::kernel::{self, system_call};
use super::watch;
use crate::system;
use libc::iovec;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

const PAGE_BYTES: usize = 4096;
/// The kernel's limit (`UIO_MAXIOV`).
pub(super) const SEGMENTS_MAX: usize = 1024;

/// Where the bytes of the program's call lie.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    segments: &'a [iovec],
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the program's memory into the file.
    Out,
    /// From the file into the program's memory.
    In,
}

impl<'a> Memory<'a> {
    pub(super) const NONE: Memory<'static> = Memory { segments: &[] };

    pub(super) fn new(segments: &'a [iovec]) -> Memory<'a> {
        Memory { segments }
    }

    /// Bytes in all, cut to what one call moves.
    pub(super) fn length(&self) -> u64 {
        let total = self.segments.iter().fold(0usize, |sum, s| sum.saturating_add(s.iov_len));
        total.min(kernel::TRANSFER_BYTES_MAX) as u64
    }

    /// Whether every page can be read (`Out`) or written (`In`).
    #[inline]
    pub(super) fn is_good(&self, direction: Direction, known: &mut KnownPages) -> bool {
        self.segments.iter().all(|segment| known.cover(segment, direction))
    }

    /// Copies `length` bytes from byte `from` of this memory to `to`.
    ///
    /// # Safety
    /// The bytes exist (`is_good`, and within `length()`), `to` has room.
    #[inline]
    pub(super) unsafe fn copy_out(&self, from: u64, to: *mut u8, length: usize) {
        if let [only] = self.segments {
            // SAFETY: by this function's contract.
            return unsafe { copy(only.iov_base.cast::<u8>().add(from as usize), to, length) };
        }
        let mut done = 0;
        self.each_part(from, length, |part, bytes| {
            // SAFETY: parts lie in the program's segments, `to` has room for all of them.
            unsafe { copy(part, to.add(done), bytes) };
            done += bytes;
        });
    }

    /// Copies `length` bytes from `from` to byte `to` of this memory.
    ///
    /// # Safety
    /// As for `copy_out`, the other way round.
    #[inline]
    pub(super) unsafe fn copy_in(&self, to: u64, from: *const u8, length: usize) {
        if let [only] = self.segments {
            // SAFETY: by this function's contract.
            return unsafe { copy(from, only.iov_base.cast::<u8>().add(to as usize), length) };
        }
        let mut done = 0;
        self.each_part(to, length, |part, bytes| {
            // SAFETY: parts lie in the program's segments, `from` has all the bytes.
            unsafe { std::ptr::copy(from.add(done), part, bytes) };
            done += bytes;
        });
    }

    /// Calls `use_part` for the parts of the segments that make up `length` bytes from `start`.
    fn each_part(&self, start: u64, length: usize, mut use_part: impl FnMut(*mut u8, usize)) {
        let (mut skip, mut left) = (start as usize, length);
        for segment in self.segments {
            let bytes = segment.iov_len.saturating_sub(skip).min(left);
            if bytes > 0 {
                use_part(segment.iov_base.cast::<u8>().wrapping_add(skip), bytes);
            }
            skip = skip.saturating_sub(segment.iov_len);
            left -= bytes;
        }
    }

    /// Moves `length` bytes between byte `start` of this memory and the file, by the kernel;
    /// `offset` is `None` for the file position.
    #[inline]
    pub(super) fn transfer(
        &self,
        direction: Direction,
        fd: c_int,
        start: u64,
        length: u64,
        offset: Option<u64>,
    ) -> isize {
        if let [only] = self.segments {
            let buffer = only.iov_base.cast::<u8>().wrapping_add(start as usize);
            return transfer(direction, fd, buffer, length as usize, offset);
        }
        if start == 0 && length == self.length() {
            return transfer_vector(direction, fd, self.segments, offset);
        }
        self.transfer_part(direction, fd, start, length, offset)
    }

    /// The vector has to be cut to the part: out of line, for the room it takes on the stack.
    #[cold]
    #[inline(never)]
    fn transfer_part(
        &self,
        direction: Direction,
        fd: c_int,
        start: u64,
        length: u64,
        offset: Option<u64>,
    ) -> isize {
        let mut parts = [const { MaybeUninit::<iovec>::uninit() }; SEGMENTS_MAX];
        let mut count = 0;
        self.each_part(start, length as usize, |part, bytes| {
            parts[count].write(iovec { iov_base: part.cast(), iov_len: bytes });
            count += 1;
        });
        // SAFETY: the first `count` parts were written just now.
        let parts = unsafe { std::slice::from_raw_parts(parts.as_ptr().cast::<iovec>(), count) };
        transfer_vector(direction, fd, parts, offset)
    }
}

/// Copies bytes into staging memory, which no program's buffer overlaps. Small records, the common
/// case, are copied here in pieces of 16 bytes (the last two may overlap): a call of libc's function
/// through the linkage table takes longer than that.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: no piece leaves the range of `length` bytes.
    unsafe {
        if !(16..=128).contains(&length) {
            return std::ptr::copy_nonoverlapping(from, to, length);
        }
        let mut at = 0;
        while at + 16 < length {
            copy_piece(from.add(at), to.add(at));
            at += 16;
        }
        copy_piece(from.add(length - 16), to.add(length - 16));
    }
}

/// # Safety
/// 16 bytes can be read and written.
#[inline(always)]
unsafe fn copy_piece(from: *const u8, to: *mut u8) {
    // SAFETY: by this function's contract.
    unsafe { to.cast::<u128>().write_unaligned(from.cast::<u128>().read_unaligned()) }
}

/// Moves bytes between one buffer and the file; `offset` is `None` for the file position.
#[inline]
pub(super) fn transfer(
    direction: Direction,
    fd: c_int,
    buffer: *mut u8,
    length: usize,
    offset: Option<u64>,
) -> isize {
    let buffer = buffer.cast::<c_void>();
    // SAFETY: the kernel checks descriptor and memory.
    unsafe {
        match (direction, offset) {
            (Direction::Out, None) => kernel::write(fd, buffer, length),
            (Direction::Out, Some(offset)) => kernel::pwrite(fd, buffer, length, offset as i64),
            (Direction::In, None) => kernel::read(fd, buffer, length),
            (Direction::In, Some(offset)) => kernel::pread(fd, buffer, length, offset as i64),
        }
    }
}

fn transfer_vector(
    direction: Direction,
    fd: c_int,
    segments: &[iovec],
    offset: Option<u64>,
) -> isize {
    let (first, count) = (segments.as_ptr(), segments.len());
    // SAFETY: `segments` is a valid vector; the kernel checks what it points to.
    unsafe {
        match (direction, offset) {
            (Direction::Out, None) => system_call!(SYS_writev, fd, first, count),
            (Direction::Out, Some(offset)) => system_call!(SYS_pwritev, fd, first, count, offset),
            (Direction::In, None) => system_call!(SYS_readv, fd, first, count),
            (Direction::In, Some(offset)) => system_call!(SYS_preadv, fd, first, count, offset),
        }
    }
}

/// Pages that were found good, for each direction.
pub(super) struct KnownPages {
    out: Ranges,
    into: Ranges,
}

impl KnownPages {
    pub(super) const fn new() -> KnownPages {
        KnownPages { out: Ranges::NONE, into: Ranges::NONE }
    }

    #[inline]
    fn cover(&mut self, segment: &iovec, direction: Direction) -> bool {
        let known = match direction {
            Direction::Out => &mut self.out,
            Direction::In => &mut self.into,
        };
        let start = segment.iov_base as usize;
        let end = start.wrapping_add(segment.iov_len);
        if segment.iov_len == 0 {
            return true;
        }
        let found = is_within(known.list[known.last % RANGES], start, end)
            || known.cover(start, end, direction);
        if found && !can_touch(start, end, direction) {
            *known = Ranges::NONE;
            return false;
        }
        found
    }
}

unsafe extern "C" {
    fn iolab_touch_read(first: usize, end: usize) -> bool;
    fn iolab_touch_write(first: usize, end: usize) -> bool;
    fn iolab_touch_end();
    fn iolab_touch_fault();
}

/// Where a thread goes on that met a fault at `address`, if it was touching a program's memory here.
pub(super) fn behind_fault(address: usize) -> Option<usize> {
    let begin = iolab_touch_read as *const () as usize;
    let end = iolab_touch_end as *const () as usize;
    (begin..end).contains(&address).then_some(iolab_touch_fault as *const () as usize)
}

/// Touches every page of a range that was good once; `true` where faults are not caught.
#[inline]
fn can_touch(first: usize, end: usize, direction: Direction) -> bool {
    if !watch::catches_faults() {
        return true;
    }
    // SAFETY: changes nothing; a fault goes on behind the loop.
    unsafe {
        match direction {
            Direction::Out => iolab_touch_read(first, end),
            Direction::In => iolab_touch_write(first, end),
        }
    }
}

/// A program's records come from a few places in turn (stack, heap, constants); with one range
/// each of them would be asked for anew at every call.
const RANGES: usize = 8;

/// A few ranges of good pages; the one that was asked for last is found first, and the one that has been there
/// longest makes room for another.
struct Ranges {
    list: [[usize; 2]; RANGES],
    last: usize,
    oldest: usize,
}

impl Ranges {
    const NONE: Ranges = Ranges { list: [[0, 0]; RANGES], last: 0, oldest: 0 };

    fn cover(&mut self, start: usize, end: usize, direction: Direction) -> bool {
        if let Some(index) = self.list.iter().position(|range| is_within(*range, start, end)) {
            self.last = index;
            return true;
        }
        let touches = |range: &[usize; 2]| range[0] <= end && start <= range[1] && range[1] > 0;
        self.last = self.list.iter().position(touches).unwrap_or(self.oldest);
        if self.last == self.oldest {
            self.oldest = (self.oldest + 1) % RANGES;
        }
        look(&mut self.list[self.last], start, end, direction)
    }
}

#[inline]
fn is_within(range: [usize; 2], start: usize, end: usize) -> bool {
    range[0] <= start && start <= end && end <= range[1]
}

/// Asks the kernel about each page not known yet; a good range replaces or extends the known one.
#[cold]
fn look(known: &mut [usize; 2], start: usize, end: usize, direction: Direction) -> bool {
    if start > end || end > isize::MAX as usize {
        return false;
    }
    let (first, last) = (start & !(PAGE_BYTES - 1), end.next_multiple_of(PAGE_BYTES));
    let mut page = first;
    while page < last {
        let part = page.max(start)..(page + PAGE_BYTES).min(end);
        let good = (known[0] <= page && page + PAGE_BYTES <= known[1])
            || match direction {
                // SAFETY: these bytes are part of a buffer the program asked to have filled.
                Direction::In if part.len() >= 8 => unsafe { kernel::is_writable(part.start) },
                _ => system::is_readable(part.start.min(page + PAGE_BYTES - 8)),
            };
        if !good {
            return false;
        }
        page += PAGE_BYTES;
    }
    *known = match first <= known[1] && known[0] <= last && known[0] != known[1] {
        true => [known[0].min(first), known[1].max(last)],
        false => [first, last],
    };
    true
}

/// Whether all of these bytes can be read.
pub(crate) fn is_memory(address: usize, bytes: usize) -> bool {
    let segment = iovec { iov_base: address as *mut c_void, iov_len: bytes };
    bytes == 0 || KnownPages::new().cover(&segment, Direction::Out)
}

/// The segments of a program's vector; the error the kernel would give for a bad one.
///
/// # Safety
/// `vector` may be any address; good memory stays as it is for the length of the call.
pub(super) unsafe fn segments<'a>(vector: *const iovec, count: c_int) -> Result<&'a [iovec], i32> {
    if count < 0 || count as usize > SEGMENTS_MAX {
        return Err(libc::EINVAL);
    }
    let count = count as usize;
    let own = iovec { iov_base: vector as *mut c_void, iov_len: count * size_of::<iovec>() };
    if count == 0 {
        return Ok(&[]);
    }
    if !vector.is_aligned() || !KnownPages::new().cover(&own, Direction::Out) {
        return Err(libc::EFAULT);
    }
    // SAFETY: readable, aligned and `count` long.
    let segments = unsafe { std::slice::from_raw_parts(vector, count) };
    let total = segments
        .iter()
        .try_fold(0isize, |sum, segment| sum.checked_add(isize::try_from(segment.iov_len).ok()?));
    total.map(|_| segments).ok_or(libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(address: usize, length: usize) -> [iovec; 1] {
        [iovec { iov_base: address as *mut c_void, iov_len: length }]
    }

    #[test]
    fn wild_addresses_are_bad_and_buffers_are_good_both_ways() {
        let mut buffer = vec![7u8; 20_000];
        for direction in [Direction::Out, Direction::In] {
            let mut known = KnownPages::new();
            let mut is_good =
                |address, length| Memory::new(&one(address, length)).is_good(direction, &mut known);
            assert!(is_good(buffer.as_mut_ptr() as usize, buffer.len()));
            assert!(is_good(buffer.as_mut_ptr() as usize + 1, 1));
            assert!(!is_good(0, 1));
            assert!(!is_good(0x10, 64));
            assert!(!is_good(usize::MAX - 10, 64));
            assert!(is_good(0, 0));
        }
        assert!(buffer.iter().all(|&byte| byte == 7), "looking changes nothing");
    }

    #[test]
    fn places_that_take_turns_are_all_known_whatever_the_turns() {
        let places: Vec<Vec<u8>> = (0..RANGES).map(|_| vec![0; 4 * PAGE_BYTES]).collect();
        let one = |place: usize| one(places[place].as_ptr() as usize + 2 * PAGE_BYTES, 64)[0];
        let mut known = KnownPages::new();
        // One of them between each two of the others, as a program's own variables are.
        for place in 1..RANGES {
            assert!(
                known.cover(&one(0), Direction::Out) && known.cover(&one(place), Direction::Out)
            );
        }
        for place in 0..RANGES {
            let start = one(place).iov_base as usize;
            let is_known = known.out.list.iter().any(|range| is_within(*range, start, start + 64));
            assert!(is_known, "place {place}");
        }
    }

    #[test]
    fn a_constant_can_be_written_out_but_not_read_into() {
        let text: &'static [u8] = b"this text lies in memory that cannot be written";
        let segments = one(text.as_ptr() as usize, text.len());
        let memory = Memory::new(&segments);
        assert!(memory.is_good(Direction::Out, &mut KnownPages::new()));
        assert!(!memory.is_good(Direction::In, &mut KnownPages::new()));
    }

    #[test]
    fn a_vector_is_copied_across_its_segments() {
        let (mut a, mut b, mut c) = (*b"abc", *b"", *b"defg");
        let segments =
            [&mut a[..], &mut b[..], &mut c[..]].map(|s| one(s.as_mut_ptr() as usize, s.len())[0]);
        let memory = Memory::new(&segments);
        assert_eq!(memory.length(), 7);
        let mut taken = [0u8; 4];
        // SAFETY: the memory is that of the arrays above.
        unsafe {
            memory.copy_out(2, taken.as_mut_ptr(), 4);
            memory.copy_in(1, b"XYZ".as_ptr(), 3);
        }
        assert_eq!((&taken, &a, &c), (b"cdef", b"aXY", b"Zefg"));
    }

    #[test]
    fn a_bad_vector_gets_the_error_of_the_kernel() {
        // SAFETY: any address may be asked about.
        unsafe {
            assert_eq!(segments(std::ptr::null(), 2).unwrap_err(), libc::EFAULT);
            assert_eq!(segments(std::ptr::null(), -1).unwrap_err(), libc::EINVAL);
            let huge = [one(8, usize::MAX / 2)[0]; 2];
            assert_eq!(segments(huge.as_ptr(), 2).unwrap_err(), libc::EINVAL);
        }
    }
}
