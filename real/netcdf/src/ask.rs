//! What is asked of the library: of identifiers that a call has just succeeded with. The questions are the same in
//! NetCDF-C and PnetCDF but for the beginning of their names.

use crate::calls::PNETCDF;
use iolab_layer::library::{Kind, Library};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

/// `NC_MAX_NAME` and its end.
const NAME_BYTES: usize = 257;
/// `NC_MAX_VAR_DIMS`.
const DIMENSIONS: usize = 1024;
/// Bytes of an element of the types that all files have (`NC_BYTE` to `NC_STRING`), by their numbers.
const TYPE_BYTES: [i64; 13] = [0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8, 8];
/// `NC_FORMAT_CLASSIC`, whose offsets have 32 bits.
const OLDEST: c_int = 1;
/// More than a header has, but for one that somebody fills on purpose.
const HEADER_BYTES: u64 = 16 << 20;
/// `NC_FORMAT_NETCDF4`, `NC_FORMAT_NETCDF4_CLASSIC`.
const NETCDF_4: [c_int; 2] = [3, 4];
/// `NC_CHUNKED`.
const CHUNKED: c_int = 0;

/// A library and which of the two it is.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) library: &'static Library,
    pub(crate) kind: &'static Kind,
}

/// What a variable is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variable {
    pub(crate) name: Vec<u8>,
    /// Numbers of its dimensions, the slowest first.
    pub(crate) dimensions: Vec<c_int>,
    /// Bytes of an element in the file.
    pub(crate) element_bytes: i64,
    /// Elements of a chunk by dimension; none where it is not stored in chunks.
    pub(crate) chunk: Vec<usize>,
}

impl Asked {
    /// Whether it is PnetCDF.
    pub(crate) fn is_parallel(self) -> bool {
        std::ptr::eq(self.kind, &raw const PNETCDF)
    }

    /// A function that both have.
    ///
    /// # Safety
    /// `F` is the type of a pointer to the functions of these names.
    pub(crate) unsafe fn function<F: Copy>(
        self,
        of_c: &'static CStr,
        parallel: &'static CStr,
    ) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        let name = if self.is_parallel() { parallel } else { of_c };
        // SAFETY: an address as a pointer to the function that lies there.
        self.library.function(name).map(|at| unsafe { std::mem::transmute_copy(&at) })
    }

    /// The identifier of the file that a group is in.
    pub(crate) fn file_of(self, id: c_int) -> c_int {
        if self.is_parallel() { id } else { id & !GROUP_BITS }
    }

    /// Whether an open file is NetCDF-4, which keeps variables in chunks and definitions by themselves.
    pub(crate) fn has_chunks(self, file: c_int) -> bool {
        self.format(file).is_some_and(|format| NETCDF_4.contains(&format))
    }

    /// The format of a file.
    fn format(self, file: c_int) -> Option<c_int> {
        type Inquire = unsafe extern "C-unwind" fn(c_int, *mut c_int) -> c_int;
        let mut format = 0;
        // SAFETY: the function's type, and room for a format.
        let answer = unsafe {
            let inquire: Option<Inquire> = self.function(c"nc_inq_format", c"ncmpi_inq_format");
            inquire.map(|inquire| inquire(file, &mut format))
        };
        (answer == Some(0)).then_some(format)
    }

    /// Whether all data of a file that is being defined may begin so many bytes later: offsets of the oldest format end
    /// at 2 GiB.
    pub(crate) fn has_room(self, file: c_int, bytes: u64) -> bool {
        self.format(file) != Some(OLDEST)
            || self.data_bytes(file).is_some_and(|data| {
                data.saturating_add(bytes).saturating_add(HEADER_BYTES) <= i32::MAX as u64
            })
    }

    /// How many variables a file has.
    pub(crate) fn variables(self, file: c_int) -> Option<c_int> {
        type Inquire = unsafe extern "C-unwind" fn(c_int, *mut c_int) -> c_int;
        let mut count = 0;
        // SAFETY: the function's type, and room for a count.
        let answer = unsafe {
            let inquire: Inquire = self.function(c"nc_inq_nvars", c"ncmpi_inq_nvars")?;
            inquire(file, &mut count)
        };
        (answer == 0).then_some(count)
    }

    /// Bytes of all variables, of one record of those that have them.
    fn data_bytes(self, file: c_int) -> Option<u64> {
        (0..self.variables(file)?).try_fold(0, |all: u64, at| {
            let variable = self.variable(file, at)?;
            let sides = variable.dimensions.iter().map(|it| self.length(file, *it).max(1) as u64);
            let bytes = sides.fold(variable.element_bytes as u64, u64::saturating_mul);
            // Each ends at a multiple of four.
            Some(all.saturating_add(bytes).saturating_add(3))
        })
    }

    /// Name and version of the library.
    pub(crate) fn name(self) -> String {
        type Version = unsafe extern "C-unwind" fn() -> *const c_char;
        // SAFETY: the function's type, and the text that it answers, which is there for good.
        let text = unsafe {
            let version: Option<Version> = self.function(c"nc_inq_libvers", c"ncmpi_inq_libvers");
            version
                .map(|version| version())
                .filter(|text| !text.is_null())
                .map(|it| CStr::from_ptr(it))
        };
        let text = text.map_or(String::new(), |text| text.to_string_lossy().into_owned());
        let name = if self.is_parallel() { "PnetCDF" } else { "NetCDF" };
        // As `4.9.0 of Jan 13 2023 …`.
        format!("{name} {}", text.split_whitespace().next().unwrap_or_default())
            .trim_end()
            .to_owned()
    }

    /// A variable of an open file.
    pub(crate) fn variable(self, file: c_int, variable: c_int) -> Option<Variable> {
        type Inquire = unsafe extern "C-unwind" fn(
            c_int,
            c_int,
            *mut c_char,
            *mut c_int,
            *mut c_int,
            *mut c_int,
            *mut c_int,
        ) -> c_int;
        let mut name = [0u8; NAME_BYTES];
        let (mut kind, mut count) = (0, 0);
        let mut dimensions = vec![0; DIMENSIONS];
        // SAFETY: the function's type, and room for all it fills. How many attributes there are is not asked: NetCDF
        // may have to read to tell.
        let answer = unsafe {
            let inquire: Inquire = self.function(c"nc_inq_var", c"ncmpi_inq_var")?;
            let named = name.as_mut_ptr().cast();
            inquire(
                file,
                variable,
                named,
                &mut kind,
                &mut count,
                dimensions.as_mut_ptr(),
                null_mut(),
            )
        };
        if answer != 0 {
            return None;
        }
        dimensions.truncate(usize::try_from(count).unwrap_or(0));
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
        Some(Variable {
            name: name[..end].to_vec(),
            element_bytes: self.type_bytes(file, kind),
            chunk: self.chunk(file, variable, dimensions.len()),
            dimensions,
        })
    }

    /// Bytes of an element of a type; 0 where that is not known.
    pub(crate) fn type_bytes(self, file: c_int, kind: c_int) -> i64 {
        type Inquire = unsafe extern "C-unwind" fn(c_int, c_int, *mut c_char, *mut usize) -> c_int;
        let known = usize::try_from(kind).ok().and_then(|at| TYPE_BYTES.get(at));
        if let Some(bytes) = known {
            return *bytes;
        }
        let mut bytes = 0;
        // SAFETY: the function's type and room for a size; PnetCDF has no other types.
        let answer = unsafe {
            let inquire: Option<Inquire> = self.function(c"nc_inq_type", c"ncmpi_inq_type");
            inquire.map(|inquire| inquire(file, kind, null_mut(), &mut bytes))
        };
        if answer == Some(0) { bytes as i64 } else { 0 }
    }

    fn chunk(self, file: c_int, variable: c_int, count: usize) -> Vec<usize> {
        type Inquire = unsafe extern "C-unwind" fn(c_int, c_int, *mut c_int, *mut usize) -> c_int;
        let mut sides = vec![0; count.max(1)];
        let mut storage = -1;
        // SAFETY: the function's type, and room for a side of each dimension; PnetCDF's files have no chunks.
        let answer = unsafe {
            let inquire: Option<Inquire> =
                self.function(c"nc_inq_var_chunking", c"ncmpi_inq_var_chunking");
            inquire.map(|inquire| inquire(file, variable, &mut storage, sides.as_mut_ptr()))
        };
        match (answer, storage) {
            (Some(0), CHUNKED) if count > 0 && sides.iter().all(|side| *side > 0) => sides,
            _ => Vec::new(),
        }
    }

    /// How long a dimension is now.
    pub(crate) fn length(self, file: c_int, dimension: c_int) -> i64 {
        type Inquire = unsafe extern "C-unwind" fn(c_int, c_int, *mut usize) -> c_int;
        let mut length = 0;
        // SAFETY: the function's type, and room for a length.
        let answer = unsafe {
            let inquire: Option<Inquire> = self.function(c"nc_inq_dimlen", c"ncmpi_inq_dimlen");
            inquire.map(|inquire| inquire(file, dimension, &mut length))
        };
        if answer == Some(0) { length as i64 } else { 0 }
    }

    /// Bytes of all elements of an attribute in the file, if each has `bytes` (0: as its type has).
    pub(crate) fn attribute_bytes(
        self,
        file: c_int,
        variable: c_int,
        name: usize,
        bytes: i64,
    ) -> i64 {
        type Inquire = unsafe extern "C-unwind" fn(
            c_int,
            c_int,
            *const c_char,
            *mut c_int,
            *mut usize,
        ) -> c_int;
        let (mut kind, mut length) = (0, 0);
        // SAFETY: the function's type, the guest's name that the library has just read, and room for a type and a
        // length.
        let answer = unsafe {
            let inquire: Option<Inquire> = self.function(c"nc_inq_att", c"ncmpi_inq_att");
            let name = name as *const c_char;
            inquire.map(|inquire| inquire(file, variable, name, &mut kind, &mut length))
        };
        let each = if bytes > 0 { bytes } else { self.type_bytes(file, kind) };
        if answer == Some(0) { (length as i64).saturating_mul(each) } else { -1 }
    }

    /// The name of a group with those above it (`/a/b`), empty for the file's first one.
    pub(crate) fn group(self, file: c_int) -> Vec<u8> {
        type Inquire = unsafe extern "C-unwind" fn(c_int, *mut usize, *mut c_void) -> c_int;
        if self.is_parallel() || file & GROUP_BITS == 0 {
            return Vec::new();
        }
        let mut length = 0;
        // SAFETY: the function's type, and no room for the name yet.
        let (inquire, answer) = unsafe {
            let found: Option<Inquire> =
                self.function(c"nc_inq_grpname_full", c"ncmpi_inq_grpname_full");
            let Some(inquire) = found else { return Vec::new() };
            (inquire, inquire(file, &mut length, null_mut()))
        };
        if answer != 0 || length <= 1 {
            return Vec::new();
        }
        let mut name = vec![0u8; length + 1];
        // SAFETY: as above, with the room that it said.
        let answer = unsafe { inquire(file, &mut length, name.as_mut_ptr().cast()) };
        name.truncate(length);
        if answer == 0 { name } else { Vec::new() }
    }
}

/// Where an identifier of NetCDF-C has the group; the file is in the bits above.
const GROUP_BITS: c_int = 0xffff;
