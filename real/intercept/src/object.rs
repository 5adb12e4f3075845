//! The loaded files that are libc, and where in them its functions lie, by their own symbol tables.
//!
//! `dlsym` knows one function of a name. Before version 2.34 there are two of many: libpthread has
//! copies of those that are cancellation points, and libc itself calls its own.

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
    pub(crate) fn function(&self, name: &CStr) -> Option<Place> {
        // SAFETY: the tables of a file that stays loaded.
        let place = unsafe { self.symbols.find(name)? };
        let end = place.address.checked_add(place.size)?;
        (self.code.contains(&place.address) && end <= self.code.end).then_some(place)
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
const KIND_FUNCTION: u8 = 2;

/// Addresses of the tables of a file; 0 for one that it does not have.
#[derive(Default)]
struct Symbols {
    base: usize,
    strings: usize,
    symbols: usize,
    hash: usize,
}

impl Symbols {
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
                _ => {}
            }
            at = at.wrapping_add(1);
        }
        found
    }

    /// # Safety
    /// The tables are those of a loaded file.
    unsafe fn find(&self, name: &CStr) -> Option<Place> {
        if self.strings == 0 || self.symbols == 0 || self.hash == 0 {
            return None;
        }
        let wanted = hash(name.to_bytes());
        // SAFETY: the layout of the table: four words (buckets, the first symbol that is in the table,
        // words of the filter, its shift), the filter, the buckets, and a word for each symbol whose lowest bit
        // ends the chain of a bucket.
        unsafe {
            let head = self.hash as *const u32;
            let (buckets, first, filter) = (*head, *head.add(1), *head.add(2));
            let bucket = head.add(4 + 2 * filter as usize);
            let chain = bucket.add(buckets as usize);
            let mut index = *bucket.add(wanted.checked_rem(buckets)? as usize);
            while index >= first {
                let word = *chain.add((index - first) as usize);
                let symbol = &*(self.symbols as *const libc::Elf64_Sym).add(index as usize);
                let is_it = || {
                    let text = (self.strings + symbol.st_name as usize) as *const _;
                    CStr::from_ptr(text) == name
                };
                if word | 1 == wanted | 1 && is_it() {
                    let place = Place {
                        address: self.base + symbol.st_value as usize,
                        size: symbol.st_size as usize,
                    };
                    let is_here = symbol.st_shndx != 0 && symbol.st_info & 0xf == KIND_FUNCTION;
                    return is_here.then_some(place);
                }
                if word & 1 == 1 {
                    return None;
                }
                index += 1;
            }
        }
        None
    }
}

/// The hash of a symbol's name in a GNU hash table.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, &byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
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
        let found = |name| libc.files().iter().find_map(|file| file.function(name));
        for next in [&next::write, &next::close, &next::lseek64, &next::__fxstat64] {
            let place = found(next.name()).unwrap();
            assert_eq!(place.address, crate::next::symbol(next.name()));
            assert!(place.size >= 12 && libc.holds(place.address));
        }
        assert_eq!(found(c"no_such_function"), None);
        assert_eq!(found(c"environ"), None, "a variable");
    }
}
