//! Access lists that say what permissions say: `cp -a` and `install` give one to every file, and memory has none.

use std::ffi::OsStr;

/// Where the system keeps the list of who may (acl(5)), and the version of its layout.
const NAME: &str = "system.posix_acl_access";
const VERSION: u32 = 2;
/// Entries for the owner, the group and all others. Any other is for somebody in particular, or bounds one that is.
const PLAIN: [(u16, u32); 3] = [(0x01, 6), (0x04, 3), (0x20, 0)];

/// The permissions that an attribute comes to, which is then no more than they are; nothing if it is more, or another one.
pub(crate) fn permissions(name: &OsStr, value: &[u8]) -> Option<u32> {
    let (version, entries) = value.split_first_chunk::<4>()?;
    let (entries, rest) = entries.as_chunks::<8>();
    let is_list = name == NAME && u32::from_le_bytes(*version) == VERSION && rest.is_empty();
    if !is_list || entries.len() != PLAIN.len() {
        return None;
    }
    let part = |(entry, (tag, shift)): (&[u8; 8], (u16, u32))| {
        let [first, second, third, fourth, ..] = *entry;
        let allowed = u16::from_le_bytes([third, fourth]);
        let is_it = u16::from_le_bytes([first, second]) == tag && allowed <= 7;
        is_it.then(|| u32::from(allowed) << shift)
    };
    entries.iter().zip(PLAIN).map(part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16)]) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for (tag, allowed) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(allowed.to_le_bytes());
            bytes.extend([0xff; 4]);
        }
        bytes
    }

    #[test]
    fn a_list_of_owner_group_and_others_is_permissions_and_no_other_is() {
        let plain = [(0x01, 6), (0x04, 4), (0x20, 1)];
        let of = |bytes: &[u8]| permissions(OsStr::new(NAME), bytes);
        assert_eq!(of(&list(&plain)), Some(0o641));
        for other in [
            list(&[]),
            list(&plain[..2]),
            list(&[(0x01, 6), (0x02, 7), (0x04, 4), (0x10, 7), (0x20, 1)]),
            list(&[(0x04, 4), (0x01, 6), (0x20, 1)]),
            list(&[(0x01, 6), (0x04, 8), (0x20, 1)]),
            list(&plain)[..20].to_vec(),
            vec![1, 0, 0, 0],
            Vec::new(),
        ] {
            assert_eq!(of(&other), None, "{other:?}");
        }
        assert_eq!(permissions(OsStr::new("user.note"), &list(&plain)), None);
    }
}
