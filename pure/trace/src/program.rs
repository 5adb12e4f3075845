//! What the file of a program says about how it can be started with a preloaded library.
//!
//! A library built for glibc ends a program of another C library before `main` (musl: exit code 127),
//! and a dynamic sanitizer refuses to be second. Both are read off the file: its loader and the
//! libraries it asks for. No allocation: the preloaded library asks before an exec, in whatever
//! process that is.

/// A short text in the value itself; a longer one is cut, and then equals nothing it is compared to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    bytes: [u8; Short::ROOM],
    length: usize,
}

impl Short {
    const ROOM: usize = 128;

    fn of(text: &[u8]) -> Short {
        let mut bytes = [0; Short::ROOM];
        let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        let length = length.min(Short::ROOM);
        for (to, from) in bytes.iter_mut().zip(&text[..length]) {
            *to = *from;
        }
        Short { bytes, length }
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// How a program can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// With the library in front, like most.
    Plain,
    /// With this library (a sanitizer's runtime) in front of ours.
    After(Short),
    /// Not with ours: its C library is another one.
    Foreign,
    /// Not with ours: it is of 32 bits, or for another processor than this one.
    OtherMachine,
    /// It has no loader that would look for libraries.
    Static,
    /// A script; this program is started.
    Script(Short),
    /// No program this module knows.
    Unknown,
}

/// Why a program had no library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// It has no loader that would look for libraries.
    Static,
    /// It runs with other rights than who started it.
    SetUser,
    /// It was started with an environment that does not name the library.
    Environment,
    /// Its C library is another one.
    ForeignLibc,
    /// It is of 32 bits, or for another processor.
    OtherMachine,
}

impl Missed {
    /// All of them; their places in it are how they are written down.
    pub const ALL: [Missed; 5] = [
        Missed::Static,
        Missed::SetUser,
        Missed::Environment,
        Missed::ForeignLibc,
        Missed::OtherMachine,
    ];

    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            Missed::Static => "statically linked",
            Missed::SetUser => "set-uid or set-gid",
            Missed::Environment => "started without the variables of the run",
            Missed::ForeignLibc => "of another C library than glibc",
            Missed::OtherMachine => "of 32 bits or for another processor",
        }
    }
}

/// What was seen of a program before it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// It has what it needs to load the library.
    Loads,
    /// It will not.
    Misses(Missed),
    /// Nobody looked, or nothing was to be seen.
    Unknown,
}

impl Foreseen {
    /// As the offset of a record that starts a program.
    pub fn code(self) -> i64 {
        match self {
            Foreseen::Unknown => -1,
            Foreseen::Loads => 0,
            Foreseen::Misses(why) => why as i64 + 1,
        }
    }

    /// From the offset of such a record.
    pub fn of_code(code: i64) -> Foreseen {
        match usize::try_from(code) {
            Err(_) => Foreseen::Unknown,
            Ok(0) => Foreseen::Loads,
            Ok(place) => {
                Missed::ALL.get(place - 1).map_or(Foreseen::Unknown, |&why| Foreseen::Misses(why))
            }
        }
    }
}

/// Runtimes that must be first.
const FIRST: [&[u8]; 6] = [
    b"libasan.so",
    b"libtsan.so",
    b"liblsan.so",
    b"libhwasan.so",
    b"libclang_rt.asan",
    b"libclang_rt.tsan",
];

/// Whether a library's file name is that of a runtime that must be first.
pub fn must_be_first(library: &[u8]) -> bool {
    let name = library.rsplit(|&byte| byte == b'/').next().unwrap_or(library);
    FIRST.iter().any(|first| name.starts_with(first))
}

/// How files of programs name the processor this is built for; none where that is not known here.
const MACHINE: Option<u64> = if cfg!(target_arch = "x86_64") {
    Some(62)
} else if cfg!(target_arch = "aarch64") {
    Some(183)
} else {
    None
};

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;
const NEEDED: u64 = 1;
const STRING_TABLE: u64 = 5;
const PROGRAM_HEADER: usize = 56;

fn u16_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 2).map_or(0, |two| u64::from(two[0]) | u64::from(two[1]) << 8)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    crate::spool::read_u32(bytes, at)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    crate::spool::read_u64(bytes, at)
}

/// Whether a program lists a library that `is_wanted` by its name; `read` as for [`look`].
pub fn needs(
    mut read: impl FnMut(u64, &mut [u8]) -> usize,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> bool {
    let mut head = [0; 1024];
    let length = read(0, &mut head);
    let Some(headers) = Headers::of(&head[..length]) else { return false };
    headers.needed(&is_wanted, &mut read).is_some()
}

/// Looks at a file through `read`, which fills a buffer from an offset and says how far it came.
pub fn look(mut read: impl FnMut(u64, &mut [u8]) -> usize) -> Program {
    let mut head = [0; 1024];
    let length = read(0, &mut head);
    let head = &head[..length];
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or(line);
        // The system's own reading ends at a NUL, too.
        let line = line.split(|&byte| byte == 0).next().unwrap_or(line);
        let words = line.split(|byte| matches!(byte, b' ' | b'\t'));
        return words
            .map(Short::of)
            .find(|word| !word.bytes().is_empty())
            .map_or(Program::Unknown, Program::Script);
    }
    if is_of_other_machine(head) {
        return Program::OtherMachine;
    }
    let Some(headers) = Headers::of(head) else { return Program::Unknown };
    let Some(interpreter) = headers.find(INTERPRETER) else {
        return Program::Static;
    };
    let mut path = [0; 128];
    let room = (u64_at(interpreter, 32) as usize).min(path.len());
    let got = read(u64_at(interpreter, 8), &mut path[..room]);
    let path = Short::of(&path[..got]);
    let loader = path.bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if !loader.starts_with(b"ld-linux") && !loader.starts_with(b"ld-2") {
        return Program::Foreign;
    }
    headers.needed(&must_be_first, &mut read).map_or(Program::Plain, Program::After)
}

/// Whether a file is a program, but not one of 64 bits, little-endian, for this processor.
fn is_of_other_machine(head: &[u8]) -> bool {
    // What kind of program it is stands before the twentieth byte, in either form.
    const HEAD: usize = 20;
    let is_program = head.starts_with(b"\x7fELF") && head.len() >= HEAD;
    let is_wide = head.starts_with(b"\x7fELF\x02\x01");
    is_program && (!is_wide || MACHINE.is_some_and(|machine| u16_at(head, 18) != machine))
}

/// What the head of a file says of its segments.
struct Headers<'a>(&'a [u8]);

impl<'a> Headers<'a> {
    /// None of a file that is not one of 64 bits, little-endian.
    fn of(head: &'a [u8]) -> Option<Headers<'a>> {
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (start, count) = (u64_at(head, 32) as usize, u16_at(head, 56) as usize);
        let rest = head.get(start..).unwrap_or_default();
        let length = (rest.len() / PROGRAM_HEADER).min(count) * PROGRAM_HEADER;
        Some(Headers(&rest[..length]))
    }

    fn all(&self) -> impl Iterator<Item = &'a [u8]> {
        self.0.chunks_exact(PROGRAM_HEADER)
    }

    fn find(&self, kind: u32) -> Option<&'a [u8]> {
        self.all().find(|it| u32_at(it, 0) == kind)
    }

    /// Where in the file what lies at an address comes from.
    fn load(&self, address: u64) -> Option<u64> {
        let segment = self.all().filter(|it| u32_at(it, 0) == LOAD).find(|it| {
            let begin = u64_at(it, 16);
            address >= begin && address - begin < u64_at(it, 32)
        })?;
        (address - u64_at(segment, 16)).checked_add(u64_at(segment, 8))
    }

    /// The first needed library that is wanted.
    fn needed(
        &self,
        is_wanted: &dyn Fn(&[u8]) -> bool,
        read: &mut impl FnMut(u64, &mut [u8]) -> usize,
    ) -> Option<Short> {
        let dynamic = self.find(DYNAMIC)?;
        let mut table = [0; 1024];
        let room = (u64_at(dynamic, 32) as usize).min(table.len());
        let got = read(u64_at(dynamic, 8), &mut table[..room]);
        let entries = table[..got].chunks_exact(16).map(|it| (u64_at(it, 0), u64_at(it, 8)));
        let strings = entries.clone().find(|(tag, _)| *tag == STRING_TABLE)?.1;
        let strings = self.load(strings)?;
        entries.filter(|(tag, _)| *tag == NEEDED).find_map(|(_, at)| {
            let mut name = [0; 64];
            let got = read(strings.checked_add(at)?, &mut name);
            let name = Short::of(&name[..got]);
            is_wanted(name.bytes()).then_some(name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> impl FnMut(u64, &mut [u8]) -> usize {
        |offset, to| {
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let count = rest.len().min(to.len());
            to[..count].copy_from_slice(&rest[..count]);
            count
        }
    }

    fn of(bytes: &[u8]) -> Program {
        look(reader(bytes))
    }

    /// A file with a loader and one needed library.
    fn elf(loader: &str, needed: &str) -> Vec<u8> {
        let mut file = vec![0; 1024];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put =
            |at: usize, value: u64| file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(16, MACHINE.unwrap_or(0) << 16 | 2);
        put(32, 64);
        put(56, 3);
        // kind, offset, address, size of: interpreter, dynamic section, a segment with everything.
        let headers = [(3, 512, 512, 64), (2, 600, 600, 48), (1, 0, 0x1000, 1024)];
        for (index, (kind, offset, address, size)) in headers.into_iter().enumerate() {
            let at = 64 + index * 56;
            put(at, kind);
            put(at + 8, offset);
            put(at + 16, address);
            put(at + 32, size);
        }
        put(600, 1);
        put(608, 10);
        put(616, 5);
        put(624, 0x1000 + 700);
        file[512..512 + loader.len()].copy_from_slice(loader.as_bytes());
        file[710..710 + needed.len()].copy_from_slice(needed.as_bytes());
        file
    }

    #[test]
    fn the_loader_and_the_libraries_tell_how_a_program_is_started() {
        let glibc = "/lib64/ld-linux-x86-64.so.2";
        assert_eq!(of(&elf(glibc, "libc.so.6")), Program::Plain);
        assert_eq!(of(&elf("/lib/ld-musl-x86_64.so.1", "libc.so")), Program::Foreign);
        let Program::After(first) = of(&elf(glibc, "libasan.so.8")) else { panic!() };
        assert_eq!(first.bytes(), b"libasan.so.8");
    }

    #[test]
    fn programs_of_32_bits_and_of_other_processors_are_told() {
        let whole = elf("/lib64/ld-linux-x86-64.so.2", "libc.so.6");
        for (at, byte) in [(4, 1), (5, 2), (18, 3)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert_eq!(of(&other), Program::OtherMachine, "byte {at}");
        }
    }

    #[test]
    fn a_library_that_a_program_lists_is_found() {
        let file = elf("/lib64/ld-linux-x86-64.so.2", "libhdf5_serial.so.103");
        assert!(needs(reader(&file), |name| name == b"libhdf5_serial.so.103"));
        assert!(!needs(reader(&file), |name| name.starts_with(b"libnetcdf")));
        for length in 0..file.len() {
            needs(reader(&file[..length]), |_| false);
        }
        assert!(!needs(reader(b"#!/bin/sh"), |_| true));
    }

    #[test]
    fn names_of_libraries_are_found_by_the_segment_that_holds_their_address() {
        // The strings lie in a second segment: bytes 700 and following, at address 0x2000.
        let mut file = elf("/lib64/ld-linux-x86-64.so.2", "libtsan.so.2");
        let mut put =
            |at: usize, value: u64| file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(56, 4);
        // The first one ends where nothing is, just below.
        put(64 + 2 * 56 + 32, 0x1000);
        for (at, value) in [(0, 1), (8, 700), (16, 0x2000), (32, 100)] {
            put(64 + 3 * 56 + at, value);
        }
        put(624, 0x2000);
        let Program::After(first) = of(&file) else { panic!("{:?}", of(&file)) };
        assert_eq!(first.bytes(), b"libtsan.so.2");
        file[624..632].copy_from_slice(&0x2064_u64.to_le_bytes());
        assert_eq!(of(&file), Program::Plain, "nothing lies behind the last segment");
    }

    #[test]
    fn scripts_static_programs_and_cut_files_are_told() {
        let Program::Script(shell) = of(b"#! /bin/sh -e\necho") else { panic!() };
        assert_eq!(shell.bytes(), b"/bin/sh");
        assert_eq!(of(b"#! \0/bin/sh"), Program::Unknown, "the name is empty");
        // Addresses at the end of the range.
        for (at, value) in [(176 + 8, u64::MAX), (608, u64::MAX - 5)] {
            let mut far = elf("/lib64/ld-linux-x86-64.so.2", "libasan.so.8");
            far[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert_eq!(of(&far), Program::Plain, "{at}");
        }
        let mut still = elf("", "");
        still[56] = 0;
        assert_eq!(of(&still), Program::Static);
        assert_eq!(of(b""), Program::Unknown);
        let whole = elf("/lib64/ld-linux-x86-64.so.2", "libasan.so.8");
        for length in 0..whole.len() {
            of(&whole[..length]);
        }
    }
}
