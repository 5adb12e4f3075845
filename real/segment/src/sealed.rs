//! Bytes that a launcher hands to all processes of its run, each of which maps them as they are: sealed, so
//! that nobody changes or cuts them off below a reader.

use crate::system::{self, Descriptor, system_call};
use std::ffi::{CStr, c_int};

/// The variable that says where plans of reads are, in the order of the strategies that go by one, as paths
/// with a `:` between them.
pub const PLANS_VARIABLE: &str = "IOLAB_PLANS";

const SEALS: c_int =
    libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Shares these bytes. The path to find them by holds as long as this process lives.
///
/// # Errors
/// The error number, where the system has no room.
pub fn share(bytes: &[u8]) -> Result<String, c_int> {
    let file = Descriptor::in_memory(c"iolab-sealed", libc::MFD_ALLOW_SEALING)?;
    // SAFETY: the bytes live through the call.
    unsafe { file.write_all(bytes.as_ptr(), bytes.len() as u64, 0)? };
    // SAFETY: no memory is involved.
    unsafe { system_call!(SYS_fcntl, file.number(), libc::F_ADD_SEALS, SEALS) };
    Ok(file.kept())
}

/// Bytes that the launcher of this run shares, mapped for good; `None` where there are none, or they could
/// change.
pub fn shared(path: &CStr) -> Option<&'static [u8]> {
    let file = Descriptor::open(path, libc::O_RDONLY).ok()?;
    let bytes = file.status()?.st_size as usize;
    // SAFETY: no memory is involved.
    let seals = unsafe { system_call!(SYS_fcntl, file.number(), libc::F_GET_SEALS) };
    if seals < 0 || seals as c_int & SEALS != SEALS || bytes == 0 {
        return None;
    }
    let place = system::map_read_only(file.number(), bytes as u64)?;
    // SAFETY: mapped with that many bytes, which nobody can change or take away, for good.
    Some(unsafe { std::slice::from_raw_parts(place, bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn what_is_shared_is_there_for_others_and_stays_as_it_is() {
        let bytes: Vec<u8> = (0..300_000).map(|i| i as u8).collect();
        let path = share(&bytes).unwrap();
        assert_eq!(shared(&CString::new(path.clone()).unwrap()).unwrap(), bytes);
        assert!(std::fs::write(&path, "x").is_err());
    }

    #[test]
    fn what_could_change_is_not_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "iolabpl1").unwrap();
        assert!(shared(&CString::new(file.path().to_str().unwrap()).unwrap()).is_none());
        assert!(shared(c"/proc/1/fd/999999").is_none());
    }
}
