//! The loaded files that are libc, and where in them its functions lie, by their own symbol tables.
//!
//! `dlsym` knows one function of a name. Before version 2.34 there are two of many: libpthread has
//! copies of those that are cancellation points, and libc itself calls its own.
//!
//! The same tables tell what `dlsym(RTLD_NEXT)` would, of all files behind this library: 300 names in
//! some 10 µs, where the loader takes 80 and allocates for each that it does not find.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

/// Libc, and before version 2.34 libpthread.
const FILES: usize = 2;

/// All of libc that is loaded.
#[derive(Default)]
pub(crate) struct Libc {
    files: [Object; FILES],
    count: usize,
}

/// A loaded file.
#[derive(Default)]
pub(crate) struct Object {
    code: Range<usize>,
    symbols: Symbols,
}

/// A function in a loaded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: usize,
    pub(crate) size: usize,
}

impl Libc {
    pub(crate) fn loaded() -> Libc {
        let mut found = Libc::default();
        // SAFETY: the function is called with the loader's own structures while this call lasts.
        unsafe { libc::dl_iterate_phdr(Some(look_at), (&raw mut found).cast()) };
        found
    }

    pub(crate) fn files(&self) -> &[Object] {
        &self.files[..self.count]
    }

    pub(crate) fn holds(&self, address: usize) -> bool {
        self.files().iter().any(|file| file.code.contains(&address))
    }
}

unsafe extern "C" fn look_at(
    object: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the loader's structure, and the place `loaded` gave.
    unsafe {
        let (object, found) = (&*object, &mut *found.cast::<Libc>());
        if object.dlpi_name.is_null() || !is_libc(CStr::from_ptr(object.dlpi_name).to_bytes()) {
            return 0;
        }
        let Some(free) = found.files.get_mut(found.count) else { return 1 };
        *free = Object::at(object);
        found.count += 1;
    }
    0
}

/// Whether a file of that path is libc or its part for threads: `libc.so.6`, `libpthread-2.31.so`.
fn is_libc(path: &[u8]) -> bool {
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    [&b"libc"[..], b"libpthread"].iter().any(|part| {
        file.strip_prefix(*part)
            .is_some_and(|rest| rest.starts_with(b".so") || rest.starts_with(b"-2."))
    })
}

impl Object {
    /// # Safety
    /// The loader's own structure of a file that stays loaded.
    unsafe fn at(object: &libc::dl_phdr_info) -> Object {
        let base = object.dlpi_addr as usize;
        let mut read = Object::default();
        // SAFETY: the loader's array of that length.
        let headers =
            unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum as usize) };
        for header in headers {
            let start = base + header.p_vaddr as usize;
            if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0 {
                read.code = start..start + header.p_memsz as usize;
            }
            if header.p_type == libc::PT_DYNAMIC {
                // SAFETY: the file's dynamic section, in memory.
                read.symbols = unsafe { Symbols::at(base, start) };
            }
        }
        read
    }

    /// The file's function of that name.
    pub(crate) fn function(&self, name: &Name) -> Option<Place> {
        // SAFETY: the tables of a file that stays loaded.
        let found = unsafe { self.symbols.find(name)? };
        let place = found.place;
        let end = place.address.checked_add(place.size)?;
        let is_here = self.code.contains(&place.address) && end <= self.code.end;
        (found.kind == KIND_FUNCTION && is_here).then_some(place)
    }
}

/// The tables of all files that are loaded behind this library, in the order in which the loader looks
/// names up.
pub(crate) struct Behind {
    files: [Symbols; Behind::FILES],
    count: usize,
    /// This library has come by.
    is_behind: bool,
    /// Each of them can be looked into.
    is_complete: bool,
}

impl Behind {
    const FILES: usize = 64;

    pub(crate) fn loaded() -> Behind {
        let mut found = Behind {
            files: [const { Symbols::NONE }; Behind::FILES],
            count: 0,
            is_behind: false,
            is_complete: true,
        };
        // SAFETY: the function is called with the loader's own structures while this call lasts.
        unsafe { libc::dl_iterate_phdr(Some(look_behind), (&raw mut found).cast()) };
        found
    }

    /// The address of a symbol, 0 when no file has it; `None` where the loader has to be asked.
    pub(crate) fn find(&self, name: &Name) -> Option<usize> {
        if !self.is_complete {
            return None;
        }
        // SAFETY: the tables of loaded files.
        let found = self.files[..self.count].iter().find_map(|file| unsafe { file.find(name) });
        match found {
            Some(found) if found.kind == KIND_CHOSEN => None,
            found => Some(found.map_or(0, |found| found.place.address)),
        }
    }
}

unsafe extern "C" fn look_behind(
    object: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the loader's structure, and the place `loaded` gave.
    unsafe {
        let (object, found) = (&*object, &mut *found.cast::<Behind>());
        if !found.is_behind {
            found.is_behind = holds(object, look_behind as *const () as usize);
            return 0;
        }
        let symbols = Object::at(object).symbols;
        match found.files.get_mut(found.count) {
            Some(free) if symbols.are_known() => *free = symbols,
            _ => {
                found.is_complete = false;
                return 1;
            }
        }
        found.count += 1;
    }
    0
}

/// The address of a file's function, if a file of that name is loaded.
pub(crate) fn in_file(file: &[u8], name: &Name) -> Option<usize> {
    let mut asked = Asked { file, name, found: None };
    // SAFETY: the function is called with the loader's own structures while this call lasts.
    unsafe { libc::dl_iterate_phdr(Some(look_in_file), (&raw mut asked).cast()) };
    asked.found
}

struct Asked<'a> {
    file: &'a [u8],
    name: &'a Name,
    found: Option<usize>,
}

unsafe extern "C" fn look_in_file(
    object: *mut libc::dl_phdr_info,
    _: usize,
    asked: *mut c_void,
) -> c_int {
    // SAFETY: the loader's structure, and the place `in_file` gave.
    unsafe {
        let (object, asked) = (&*object, &mut *asked.cast::<Asked>());
        if object.dlpi_name.is_null()
            || !CStr::from_ptr(object.dlpi_name).to_bytes().ends_with(asked.file)
        {
            return 0;
        }
        asked.found = Object::at(object).function(asked.name).map(|place| place.address);
        c_int::from(asked.found.is_some())
    }
}

/// Whether an address lies in a loaded file.
///
/// # Safety
/// The loader's own structure.
unsafe fn holds(object: &libc::dl_phdr_info, address: usize) -> bool {
    // SAFETY: the loader's array of that length.
    let headers =
        unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum as usize) };
    headers.iter().filter(|header| header.p_type == libc::PT_LOAD).any(|header| {
        let start = object.dlpi_addr as usize + header.p_vaddr as usize;
        (start..start + header.p_memsz as usize).contains(&address)
    })
}

/// The name of a symbol with its hash.
pub(crate) struct Name {
    text: &'static CStr,
    hash: u32,
}

impl Name {
    pub(crate) const fn new(text: &'static CStr) -> Name {
        Name { text, hash: hash(text.to_bytes()) }
    }

    pub(crate) fn text(&self) -> &'static CStr {
        self.text
    }
}

/// An entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

const NO_MORE: i64 = 0;
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const GNU_HASH: i64 = 0x6fff_fef5;
const VERSIONS: i64 = 0x6fff_fff0;
const KIND_FUNCTION: u8 = 2;
/// A function that chooses one (`STT_GNU_IFUNC`).
const KIND_CHOSEN: u8 = 10;
/// From this one on, versions of symbols are a file's own.
const FIRST_VERSION: u16 = 2;
/// With a version: another one is the default.
const HIDDEN: u16 = 0x8000;

/// What a file has by a name.
struct Found {
    place: Place,
    kind: u8,
}

/// Addresses of the tables of a file; 0 for one that it does not have.
#[derive(Default)]
struct Symbols {
    base: usize,
    strings: usize,
    symbols: usize,
    hash: usize,
    versions: usize,
}

impl Symbols {
    const NONE: Symbols = Symbols { base: 0, strings: 0, symbols: 0, hash: 0, versions: 0 };

    fn are_known(&self) -> bool {
        self.strings != 0 && self.symbols != 0 && self.hash != 0
    }

    /// # Safety
    /// `section` is the dynamic section of a file loaded at `base`.
    unsafe fn at(base: usize, section: usize) -> Symbols {
        let mut found = Symbols { base, ..Symbols::default() };
        let mut at = section as *const Dynamic;
        // SAFETY: the section ends with an entry that says so.
        while let Some(entry) = unsafe { at.as_ref() }.filter(|it| it.tag != NO_MORE) {
            // The loader makes addresses of most offsets, in place.
            let value = entry.value as usize;
            let address = if value < base { base + value } else { value };
            match entry.tag {
                STRINGS => found.strings = address,
                SYMBOLS => found.symbols = address,
                GNU_HASH => found.hash = address,
                VERSIONS => found.versions = address,
                _ => {}
            }
            at = at.wrapping_add(1);
        }
        found
    }

    /// What the loader would find by a name without a version.
    ///
    /// # Safety
    /// The tables are those of a loaded file.
    unsafe fn find(&self, name: &Name) -> Option<Found> {
        if !self.are_known() {
            return None;
        }
        let wanted = name.hash;
        // SAFETY: the layout of the table: four words (buckets, the first symbol that is in the table,
        // words of the filter, its shift), the filter, the buckets, and a word for each symbol whose lowest bit
        // ends the chain of a bucket.
        unsafe {
            let head = self.hash as *const u32;
            let (buckets, first, words, shift) = (*head, *head.add(1), *head.add(2), *head.add(3));
            let word = (head.add(4) as *const u64).add((wanted / 64).checked_rem(words)? as usize);
            let bits = 1 << (wanted % 64) | 1 << (wanted.wrapping_shr(shift) % 64);
            if *word & bits != bits {
                return None;
            }
            let bucket = head.add(4 + 2 * words as usize);
            let chain = bucket.add(buckets as usize);
            let mut index = *bucket.add(wanted.checked_rem(buckets)? as usize);
            while index >= first {
                let word = *chain.add((index - first) as usize);
                if word | 1 == wanted | 1
                    && let Some(found) = self.symbol(index as usize, name)
                {
                    return Some(found);
                }
                if word & 1 == 1 {
                    return None;
                }
                index += 1;
            }
        }
        None
    }

    /// A symbol of the file, if it has that name, is the file's own, and its version is the default one.
    ///
    /// # Safety
    /// There is such a symbol.
    unsafe fn symbol(&self, index: usize, name: &Name) -> Option<Found> {
        // SAFETY: the caller's promise; a table of versions has an entry for each symbol.
        unsafe {
            let symbol = &*(self.symbols as *const libc::Elf64_Sym).add(index);
            let text = (self.strings + symbol.st_name as usize) as *const _;
            let version = match self.versions {
                0 => 0,
                versions => *(versions as *const u16).add(index),
            };
            let is_default = version & HIDDEN == 0 || version & !HIDDEN < FIRST_VERSION;
            let is_here = symbol.st_shndx != 0 && is_default && CStr::from_ptr(text) == name.text;
            is_here.then(|| Found {
                place: Place {
                    address: self.base + symbol.st_value as usize,
                    size: symbol.st_size as usize,
                },
                kind: symbol.st_info & 0xf,
            })
        }
    }
}

/// The hash of a symbol's name in a GNU hash table.
const fn hash(name: &[u8]) -> u32 {
    let mut hash = 5381_u32;
    let mut at = 0;
    while at < name.len() {
        hash = hash.wrapping_mul(33).wrapping_add(name[at] as u32);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::next;

    #[test]
    fn libc_goes_by_its_names_and_others_do_not() {
        for name in [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/libc-2.28.so",
            "/lib64/libpthread.so.0",
            "/lib/x86_64-linux-gnu/libpthread-2.31.so",
        ] {
            assert!(is_libc(name.as_bytes()), "{name}");
        }
        for name in
            ["", "linux-vdso.so.1", "/lib64/libcap.so.2", "/opt/libc/libz.so.1", "libc++.so.1"]
        {
            assert!(!is_libc(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn names_hash_as_the_linker_hashes_them() {
        assert_eq!(hash(b""), 5381);
        assert_eq!(hash(b"printf"), 0x156b_2bb8);
    }

    #[test]
    fn functions_are_found_where_the_loader_finds_them() {
        let libc = Libc::loaded();
        let found = |name: &Name| libc.files().iter().find_map(|file| file.function(name));
        for next in [&next::write, &next::close, &next::lseek64, &next::__fxstat64] {
            let place = found(next.name()).unwrap();
            assert_eq!(place.address, crate::next::symbol(next.name().text()));
            assert!(place.size >= 12 && libc.holds(place.address));
        }
        assert_eq!(found(&Name::new(c"no_such_function")), None);
        assert_eq!(found(&Name::new(c"environ")), None, "a variable");
    }

    #[test]
    fn every_symbol_is_found_as_the_loader_finds_it() {
        let behind = Behind::loaded();
        let versions = [c"posix_spawn", c"memcpy", c"pthread_cond_wait", c"environ", c"no_such"];
        let more = versions.map(Name::new);
        for name in next::all().map(|next| next.name()).chain(&more) {
            let found = behind.find(name);
            let expected = next::symbol(name.text());
            let is_right = found.is_none_or(|found| found == expected);
            assert!(is_right, "{:?}: {found:x?}, not {expected:x}", name.text());
        }
        assert!(behind.find(&more[1]).is_none(), "memcpy is chosen by the processor");
        assert_eq!(behind.find(&more[4]), Some(0));
        assert!(behind.find(next::write.name()).is_some_and(|found| found != 0));
    }
}
