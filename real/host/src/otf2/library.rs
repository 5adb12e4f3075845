//! The functions of libotf2 that write an archive, by the signatures of OTF2 3.0 and 3.1 (`otf2/OTF2_*.h` there).
//!
//! The number behind the library's name changes with signatures: only the one that these are of is loaded.

use super::Otf2Error;
use super::line::{Event, Line};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

/// OTF2's own name, and that of Debian's package.
const NAMES: [&str; 2] = ["libotf2.so.10", "libopen-trace-format2.so.10"];

/// Bytes kept of a location before they are written; the least that is allowed is 256 KiB.
const CHUNK_BYTES: u64 = 1 << 20;
const DEFINITION_CHUNK_BYTES: u64 = 4 << 20;

const MODE_WRITE: u8 = 0;
const SUBSTRATE_POSIX: u8 = 1;
const NO_COMPRESSION: u8 = 1;
const FLUSH: u8 = 1;
const GROUP_PROCESS: u8 = 1;
const LOCATION_CPU_THREAD: u8 = 1;
/// Of groups of ranks: of all with their locations, of a communicator.
const RANK_GROUPS: [u8; 2] = [4, 5];
const PARADIGM_MPI: u8 = 4;
const TYPE_UINT64: u8 = 4;
const UNDEFINED: u32 = u32::MAX;
const TICKS_PER_SECOND: u64 = 1_000_000_000;
/// Of the one attribute there is: where in the file an access begins, as Score-P names it.
const OFFSET: u32 = 0;

/// What the library hands out, and takes again.
type Handle = *mut c_void;
type Status = c_int;

/// Whether what is kept is to be written when there is much of it, and when that was.
#[repr(C)]
struct FlushCallbacks {
    before: unsafe extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8,
    after: unsafe extern "C" fn(*mut c_void, u8, u64) -> u64,
}

unsafe extern "C" fn flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    FLUSH
}

/// Flushes take no time of the run.
unsafe extern "C" fn flushed(_: *mut c_void, _: u8, _: u64) -> u64 {
    0
}

static CALLBACKS: FlushCallbacks = FlushCallbacks { before: flush, after: flushed };

macro_rules! library {
    ($($name:ident: $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// Libotf2, which stays loaded.
        pub(super) struct Library {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
            _library: std::mem::ManuallyDrop<libloading::Library>,
        }

        impl Library {
            fn of(library: libloading::Library) -> Result<Library, libloading::Error> {
                Ok(Library {
                    // SAFETY: the library has the number that stands for these signatures.
                    $($name: unsafe { *library.get(concat!($symbol, "\0").as_bytes())? },)*
                    _library: std::mem::ManuallyDrop::new(library),
                })
            }
        }
    };
}

library! {
    archive_open: "OTF2_Archive_Open" (*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Handle;
    archive_close: "OTF2_Archive_Close" (Handle) -> Status;
    set_flush: "OTF2_Archive_SetFlushCallbacks" (Handle, *const FlushCallbacks, *mut c_void) -> Status;
    set_serial: "OTF2_Archive_SetSerialCollectiveCallbacks" (Handle) -> Status;
    set_creator: "OTF2_Archive_SetCreator" (Handle, *const c_char) -> Status;
    open_events: "OTF2_Archive_OpenEvtFiles" (Handle) -> Status;
    close_events: "OTF2_Archive_CloseEvtFiles" (Handle) -> Status;
    events_of: "OTF2_Archive_GetEvtWriter" (Handle, u64) -> Handle;
    event_count: "OTF2_EvtWriter_GetNumberOfEvents" (Handle, *mut u64) -> Status;
    close_events_of: "OTF2_Archive_CloseEvtWriter" (Handle, Handle) -> Status;
    open_definitions: "OTF2_Archive_OpenDefFiles" (Handle) -> Status;
    close_definitions: "OTF2_Archive_CloseDefFiles" (Handle) -> Status;
    definitions_of: "OTF2_Archive_GetDefWriter" (Handle, u64) -> Handle;
    close_definitions_of: "OTF2_Archive_CloseDefWriter" (Handle, Handle) -> Status;
    global_definitions: "OTF2_Archive_GetGlobalDefWriter" (Handle) -> Handle;
    close_global: "OTF2_Archive_CloseGlobalDefWriter" (Handle, Handle) -> Status;
    attributes_new: "OTF2_AttributeList_New" () -> Handle;
    attributes_delete: "OTF2_AttributeList_Delete" (Handle) -> Status;
    attributes_add: "OTF2_AttributeList_AddUint64" (Handle, u32, u64) -> Status;
    error_text: "OTF2_Error_GetDescription" (Status) -> *const c_char;
    enter: "OTF2_EvtWriter_Enter" (Handle, Handle, u64, u32) -> Status;
    leave: "OTF2_EvtWriter_Leave" (Handle, Handle, u64, u32) -> Status;
    create: "OTF2_EvtWriter_IoCreateHandle" (Handle, Handle, u64, u32, u8, u32, u32) -> Status;
    destroy: "OTF2_EvtWriter_IoDestroyHandle" (Handle, Handle, u64, u32) -> Status;
    begin: "OTF2_EvtWriter_IoOperationBegin" (Handle, Handle, u64, u32, u8, u32, u64, u64) -> Status;
    complete: "OTF2_EvtWriter_IoOperationComplete" (Handle, Handle, u64, u32, u64, u64) -> Status;
    cancel: "OTF2_EvtWriter_IoOperationCancelled" (Handle, Handle, u64, u32, u64) -> Status;
    seek: "OTF2_EvtWriter_IoSeek" (Handle, Handle, u64, u32, i64, u8, u64) -> Status;
    delete: "OTF2_EvtWriter_IoDeleteFile" (Handle, Handle, u64, u8, u32) -> Status;
    send: "OTF2_EvtWriter_MpiSend" (Handle, Handle, u64, u32, u32, u32, u64) -> Status;
    begin_send: "OTF2_EvtWriter_MpiIsend" (Handle, Handle, u64, u32, u32, u32, u64, u64) -> Status;
    end_send: "OTF2_EvtWriter_MpiIsendComplete" (Handle, Handle, u64, u64) -> Status;
    begin_receive: "OTF2_EvtWriter_MpiIrecvRequest" (Handle, Handle, u64, u64) -> Status;
    receive: "OTF2_EvtWriter_MpiRecv" (Handle, Handle, u64, u32, u32, u32, u64) -> Status;
    end_receive: "OTF2_EvtWriter_MpiIrecv" (Handle, Handle, u64, u32, u32, u32, u64, u64) -> Status;
    gather: "OTF2_EvtWriter_MpiCollectiveBegin" (Handle, Handle, u64) -> Status;
    gathered: "OTF2_EvtWriter_MpiCollectiveEnd" (Handle, Handle, u64, u8, u32, u32, u64, u64) -> Status;
    define_clock: "OTF2_GlobalDefWriter_WriteClockProperties" (Handle, u64, u64, u64, u64) -> Status;
    define_string: "OTF2_GlobalDefWriter_WriteString" (Handle, u32, *const c_char) -> Status;
    define_attribute: "OTF2_GlobalDefWriter_WriteAttribute" (Handle, u32, u32, u32, u8) -> Status;
    define_node: "OTF2_GlobalDefWriter_WriteSystemTreeNode" (Handle, u32, u32, u32, u32) -> Status;
    define_group: "OTF2_GlobalDefWriter_WriteLocationGroup" (Handle, u32, u32, u8, u32, u32) -> Status;
    define_location: "OTF2_GlobalDefWriter_WriteLocation" (Handle, u64, u32, u8, u64, u32) -> Status;
    define_region: "OTF2_GlobalDefWriter_WriteRegion"
        (Handle, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> Status;
    define_paradigm: "OTF2_GlobalDefWriter_WriteIoParadigm"
        (Handle, u8, u32, u32, u8, u32, u8, *const u8, *const u8, *const u64) -> Status;
    define_file: "OTF2_GlobalDefWriter_WriteIoRegularFile" (Handle, u32, u32, u32) -> Status;
    define_ranks: "OTF2_GlobalDefWriter_WriteGroup" (Handle, u32, u32, u8, u8, u32, u32, *const u64) -> Status;
    define_communicator: "OTF2_GlobalDefWriter_WriteComm" (Handle, u32, u32, u32, u32, u32) -> Status;
    define_handle: "OTF2_GlobalDefWriter_WriteIoHandle" (Handle, u32, u32, u32, u8, u32, u32, u32) -> Status;
}

impl Library {
    pub(super) fn load() -> Result<Library, Otf2Error> {
        let mut problem = String::new();
        for name in NAMES {
            // SAFETY: what is loaded is a library of C without initialisers that matter to who loads it.
            let loaded = unsafe { libloading::Library::new(name) }.and_then(Library::of);
            match loaded {
                Ok(library) => return Ok(library),
                // Of several reasons the first one names the library as OTF2 does.
                Err(error) if problem.is_empty() => problem = error.to_string(),
                Err(_) => {}
            }
        }
        Err(Otf2Error::NoLibrary(problem))
    }

    fn check(&self, status: Status) -> Result<(), Otf2Error> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: a text that is there as long as the library.
        let text = unsafe {
            let text = (self.error_text)(status);
            if text.is_null() { c"unknown error" } else { CStr::from_ptr(text) }
        };
        Err(Otf2Error::Refused(text.to_string_lossy().into_owned()))
    }
}

/// An archive that is written.
pub(super) struct Archive<'a> {
    library: &'a Library,
    archive: Handle,
    writers: BTreeMap<u64, Handle>,
    closed: Vec<u64>,
}

impl Archive<'_> {
    pub(super) fn create<'a>(
        library: &'a Library,
        directory: &Path,
    ) -> Result<Archive<'a>, Otf2Error> {
        let path = CString::new(directory.as_os_str().as_bytes())
            .map_err(|_| Otf2Error::Refused("a path with a zero byte".to_owned()))?;
        let creator = concat!("iolab ", env!("CARGO_PKG_VERSION"), "\0");
        // SAFETY: texts end with zero bytes and are copied; the callbacks are static.
        unsafe {
            let archive = (library.archive_open)(
                path.as_ptr(),
                c"traces".as_ptr(),
                MODE_WRITE,
                CHUNK_BYTES,
                DEFINITION_CHUNK_BYTES,
                SUBSTRATE_POSIX,
                NO_COMPRESSION,
            );
            if archive.is_null() {
                let problem = format!("it does not begin an archive in {}", directory.display());
                return Err(Otf2Error::Refused(problem));
            }
            library.check((library.set_flush)(archive, &raw const CALLBACKS, null_mut()))?;
            library.check((library.set_serial)(archive))?;
            library.check((library.set_creator)(archive, creator.as_ptr().cast()))?;
            library.check((library.open_events)(archive))?;
            Ok(Archive { library, archive, writers: BTreeMap::new(), closed: Vec::new() })
        }
    }

    /// Begins the events of a location.
    pub(super) fn open(&mut self, location: u64) -> Result<(), Otf2Error> {
        // SAFETY: the archive is open.
        let writer = unsafe { (self.library.events_of)(self.archive, location) };
        if writer.is_null() {
            return Err(Otf2Error::Refused(format!("it does not begin location {location}")));
        }
        self.writers.insert(location, writer);
        Ok(())
    }

    /// Ends them; answers how many there were.
    pub(super) fn close(&mut self, location: u64) -> Result<u64, Otf2Error> {
        let writer = self.writers.remove(&location).ok_or_else(|| not_open(location))?;
        let mut events = 0;
        // SAFETY: archive and writer are open, and the writer is not used afterwards.
        unsafe {
            self.library.check((self.library.event_count)(writer, &raw mut events))?;
            self.library.check((self.library.close_events_of)(self.archive, writer))?;
        }
        self.closed.push(location);
        Ok(events)
    }

    pub(super) fn event(
        &mut self,
        location: u64,
        time: u64,
        event: &Event,
    ) -> Result<(), Otf2Error> {
        let writer = *self.writers.get(&location).ok_or_else(|| not_open(location))?;
        let library = self.library;
        let none = null_mut();
        // SAFETY: the writer is open; there are no attributes, or a list that is deleted behind the event.
        let status = unsafe {
            match *event {
                Event::Enter { region } => (library.enter)(writer, none, time, region),
                Event::Leave { region } => (library.leave)(writer, none, time, region),
                Event::Create { handle, access, creation, status } => {
                    (library.create)(writer, none, time, handle, access, creation, status)
                }
                Event::Destroy { handle } => (library.destroy)(writer, none, time, handle),
                Event::Begin { handle, mode, flags, bytes, id, offset } => {
                    let attributes = offset.map_or(none, |_| (library.attributes_new)());
                    if let (Some(offset), false) = (offset, attributes.is_null()) {
                        library.check((library.attributes_add)(attributes, OFFSET, offset))?;
                    }
                    let status =
                        (library.begin)(writer, attributes, time, handle, mode, flags, bytes, id);
                    if !attributes.is_null() {
                        library.check((library.attributes_delete)(attributes))?;
                    }
                    status
                }
                Event::Complete { handle, bytes, id } => {
                    (library.complete)(writer, none, time, handle, bytes, id)
                }
                Event::Cancel { handle, id } => (library.cancel)(writer, none, time, handle, id),
                Event::Seek { handle, offset, whence, result } => {
                    (library.seek)(writer, none, time, handle, offset, whence, result)
                }
                Event::Delete { paradigm, file } => {
                    (library.delete)(writer, none, time, paradigm, file)
                }
                Event::Send { to, communicator, tag, bytes, request: None } => {
                    (library.send)(writer, none, time, to, communicator, tag, bytes)
                }
                Event::Send { to, communicator, tag, bytes, request: Some(id) } => {
                    (library.begin_send)(writer, none, time, to, communicator, tag, bytes, id)
                }
                Event::Sent { request } => (library.end_send)(writer, none, time, request),
                Event::Expect { request } => (library.begin_receive)(writer, none, time, request),
                Event::Receive { from, communicator, tag, bytes, request: None } => {
                    (library.receive)(writer, none, time, from, communicator, tag, bytes)
                }
                Event::Receive { from, communicator, tag, bytes, request: Some(id) } => {
                    (library.end_receive)(writer, none, time, from, communicator, tag, bytes, id)
                }
                Event::Gather => (library.gather)(writer, none, time),
                Event::Gathered { operation, communicator, root, sent, received } => (library
                    .gathered)(
                    writer,
                    none,
                    time,
                    operation,
                    communicator,
                    root,
                    sent,
                    received,
                ),
            }
        };
        library.check(status)
    }

    /// Writes what events refer to, and closes the archive.
    pub(super) fn finish(self, definitions: &[Line]) -> Result<(), Otf2Error> {
        let library = self.library;
        // SAFETY: as above; each handle is closed once and not used afterwards.
        unsafe {
            library.check((library.close_events)(self.archive))?;
            library.check((library.open_definitions)(self.archive))?;
            for &location in &self.closed {
                let own = (library.definitions_of)(self.archive, location);
                if own.is_null() {
                    return Err(not_open(location));
                }
                library.check((library.close_definitions_of)(self.archive, own))?;
            }
            library.check((library.close_definitions)(self.archive))?;
            let global = (library.global_definitions)(self.archive);
            if global.is_null() {
                return Err(Otf2Error::Refused("it takes no definitions".to_owned()));
            }
            define_offset(library, global, definitions)?;
            for definition in definitions {
                library.check(define(library, global, definition))?;
            }
            library.check((library.close_global)(self.archive, global))?;
            library.check((library.archive_close)(self.archive))
        }
    }
}

/// The attribute of accesses, named behind all texts of the lines.
fn define_offset(library: &Library, global: Handle, definitions: &[Line]) -> Result<(), Otf2Error> {
    let strings = definitions.iter().filter_map(|line| match line {
        Line::String { id, .. } => Some(*id),
        _ => None,
    });
    let name = strings.max().unwrap_or(0) + 1;
    let about = c"Absolute read/write offset within a file.";
    // SAFETY: texts end with zero bytes and are copied.
    unsafe {
        library.check((library.define_string)(global, name, c"Offset".as_ptr()))?;
        library.check((library.define_string)(global, name + 1, about.as_ptr()))?;
        library.check((library.define_attribute)(global, OFFSET, name, name + 1, TYPE_UINT64))
    }
}

/// # Safety
/// The writer must be open.
unsafe fn define(library: &Library, global: Handle, definition: &Line) -> Status {
    // SAFETY: texts end with zero bytes and are copied; there are no properties to point to.
    unsafe {
        match *definition {
            Line::String { id, ref text } => (library.define_string)(global, id, text.as_ptr()),
            Line::Node { id, name, class, parent } => {
                (library.define_node)(global, id, name, class, parent)
            }
            Line::Region { id, name, paradigm, role } => {
                (library.define_region)(global, id, name, name, 0, role, paradigm, 0, 0, 0, 0)
            }
            Line::Paradigm { id, identification, name, class, flags } => (library.define_paradigm)(
                global,
                id,
                identification,
                name,
                class,
                flags,
                0,
                null(),
                null(),
                null(),
            ),
            Line::File { id, name, node } => (library.define_file)(global, id, name, node),
            Line::Group { id, name, node } => {
                (library.define_group)(global, id, name, GROUP_PROCESS, node, UNDEFINED)
            }
            Line::Handle { id, file, paradigm } => {
                (library.define_handle)(global, id, 0, file, paradigm, 0, UNDEFINED, UNDEFINED)
            }
            Line::Counted { id, name, group, events } => {
                (library.define_location)(global, id, name, LOCATION_CPU_THREAD, events, group)
            }
            Line::Ranks { id, name, ref members } => (library.define_ranks)(
                global,
                id,
                name,
                RANK_GROUPS[usize::from(id > 0)],
                PARADIGM_MPI,
                0,
                members.len() as u32,
                members.as_ptr(),
            ),
            Line::Communicator { id, name, group } => {
                (library.define_communicator)(global, id, name, group, UNDEFINED, 0)
            }
            Line::Clock { length, unix_ns } => {
                (library.define_clock)(global, TICKS_PER_SECOND, 0, length, unix_ns)
            }
            // What is no definition was taken when it came.
            Line::Location { .. } | Line::Close { .. } | Line::Event { .. } | Line::End => 0,
        }
    }
}

fn not_open(location: u64) -> Otf2Error {
    Otf2Error::Lines(format!("location {location} is not open"))
}
