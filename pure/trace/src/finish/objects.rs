//! Calls of HDF5 and NetCDF: numbers of objects become places in the header's list of them.

use super::gather::Gathered;
use crate::{Header, ObjectEntry};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

/// Puts objects into the header and into the rows. The same object has a number in each process.
pub(super) fn resolve(gathered: &mut Gathered, header: &mut Header) {
    let mut places: BTreeMap<ObjectEntry, i64> = BTreeMap::new();
    let mut by_number: BTreeMap<(i64, FileId), i64> = BTreeMap::new();
    let (texts, files) = (&gathered.texts, &gathered.file_of);
    for event in &mut gathered.events {
        if !event.function.layer().names_objects() {
            continue;
        }
        let number = event.argument;
        let at = event.file.0.wrapping_add(1) as usize;
        let file = files.get(at).copied().unwrap_or(FileId::NONE);
        event.argument = *by_number.entry((number, file)).or_insert_with(|| {
            let text = u32::try_from(number).ok().and_then(|number| texts.get(&number));
            let Some(entry) = text.and_then(|text| entry(text, file)) else { return -1 };
            let next = places.len() as i64;
            *places.entry(entry).or_insert(next)
        });
    }
    let mut listed: Vec<_> = places.into_iter().collect();
    listed.sort_by_key(|(_, place)| *place);
    header.objects = listed.into_iter().map(|(entry, _)| entry).collect();
}

/// What a text `object KIND ELEMENT CHUNK NAME` says.
fn entry(text: &str, file: FileId) -> Option<ObjectEntry> {
    let mut words = text.strip_prefix("object ")?.splitn(4, ' ');
    let (kind, element, chunk, path) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(ObjectEntry {
        file: file.index()? as u32,
        kind: kind.to_owned(),
        path: path.to_owned(),
        element_bytes: element.parse().ok()?,
        chunk: chunk.split('x').map_while(|side| side.parse().ok()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_what_an_object_is_and_a_damaged_one_nothing() {
        let found = entry("object dataset 8 64x128 /a group/d", FileId(3)).unwrap();
        assert_eq!((found.file, found.element_bytes), (3, 8));
        assert_eq!((found.path.as_str(), found.chunk), ("/a group/d", vec![64, 128]));
        assert!(entry("object group 0 - /", FileId(0)).unwrap().chunk.is_empty());
        assert_eq!(entry("object dataset eight - /d", FileId(0)), None);
        assert_eq!(entry("object dataset", FileId(0)), None);
        assert_eq!(entry("object dataset 8 - /d", FileId::NONE), None);
    }
}
