//! What is followed and what is left out, and why: by the path of a file and by what kind of thing it
//! is.

use crate::recorder;
use iolab_trace::spool::LeftOut;

/// Why a thing of this type is not followed; `None` for a regular file.
pub(crate) const fn kind_left_out(mode: libc::mode_t) -> Option<LeftOut> {
    match mode & libc::S_IFMT {
        libc::S_IFREG => None,
        libc::S_IFIFO => Some(LeftOut::Pipe),
        libc::S_IFSOCK => Some(LeftOut::Socket),
        libc::S_IFCHR => Some(LeftOut::CharacterDevice),
        libc::S_IFBLK => Some(LeftOut::BlockDevice),
        libc::S_IFDIR => Some(LeftOut::Directory),
        _ => Some(LeftOut::Anonymous),
    }
}

/// Why calls on a file of this (absolute) path are not followed. `/dev/shm` is a file system like
/// any other and is followed.
pub(crate) fn left_out(path: &[u8]) -> Option<LeftOut> {
    let below = |top: &[u8]| path.starts_with(top);
    if below(b"/dev/") && !below(b"/dev/shm/") {
        return Some(LeftOut::Dev);
    }
    if below(b"/proc/") || path == b"/proc" {
        return Some(LeftOut::Proc);
    }
    if below(b"/sys/") {
        return Some(LeftOut::Sys);
    }
    if below(b"/etc/") {
        return Some(LeftOut::Etc);
    }
    if recorder::is_own_file(path) {
        return Some(LeftOut::Own);
    }
    is_library(path).then_some(LeftOut::Library)
}

/// `….so` or `….so.1.2`, or libc's tables of character sets and languages.
fn is_library(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let versioned = name
        .windows(4)
        .position(|four| four == b".so.")
        .is_some_and(|at| name[at + 4..].iter().all(|&byte| byte.is_ascii_digit() || byte == b'.'));
    let locale = path.starts_with(b"/usr/lib/locale/")
        || path.starts_with(b"/usr/share/locale/")
        || path.windows(7).any(|seven| seven == b"/gconv/");
    name.ends_with(b".so") || versioned || locale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_system_trees_are_left_out_and_data_files_are_not() {
        for path in ["/lib/libc.so.6", "/x/m.so", "/dev/null", "/proc/self/maps", "/etc/passwd"] {
            assert!(left_out(path.as_bytes()).is_some(), "{path}");
        }
        for path in ["/dev/shm/x", "/tmp/a.sock", "/home/me/x.so.bak", "/data/so", "/device"] {
            assert!(left_out(path.as_bytes()).is_none(), "{path}");
        }
    }
}
