//! The paths of a trace in order, to find what is below one.

use iolab_trace::Trace;

/// Paths with their files, sorted.
pub(crate) struct Paths<'a>(Vec<(&'a str, usize)>);

impl<'a> Paths<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Paths<'a> {
        let entries = trace.header.files.iter().enumerate();
        let mut paths: Vec<_> = entries.map(|(file, entry)| (entry.path.as_str(), file)).collect();
        paths.sort_unstable();
        Paths(paths)
    }

    /// The files below a path.
    pub(crate) fn below(&self, path: &str) -> impl Iterator<Item = usize> + '_ {
        // What begins with the path and a slash is before what begins with the path and the character behind it.
        let (first, behind) = (format!("{path}/"), format!("{path}0"));
        let at = |bound: &str| self.0.partition_point(|&(path, _)| path < bound);
        self.0[at(&first)..at(&behind)].iter().map(|&(_, file)| file)
    }

    /// The file of that path.
    pub(crate) fn file(&self, path: &str) -> Option<usize> {
        let at = self.0.binary_search_by_key(&path, |&(path, _)| path).ok()?;
        Some(self.0[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::FileEntry;

    #[test]
    fn what_is_below_a_path_is_found_and_what_only_begins_like_it_is_not() {
        let mut trace = Trace::default();
        let paths = ["/d.txt", "/d/a", "/d", "/d0", "/d/b/c", "/e/d/a"];
        trace.header.files =
            paths.map(|path| FileEntry { path: path.into(), ..FileEntry::default() }).to_vec();
        let paths = Paths::new(&trace);
        assert_eq!(paths.below("/d").collect::<Vec<_>>(), [1, 4]);
        assert_eq!((paths.file("/d"), paths.file("/d/b")), (Some(2), None));
    }
}
