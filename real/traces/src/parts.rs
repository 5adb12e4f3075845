//! The files of a trace: one, or the parts of a parallel job in a directory.

use std::io;
use std::path::{Path, PathBuf};

/// Where the parts of a job are before they become a trace: beside it.
pub fn beside(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".parts");
    PathBuf::from(name)
}

/// The parts in a directory, by rank.
///
/// # Errors
/// That it cannot be read.
pub fn in_directory(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "iot") && path.is_file() {
            parts.push(path);
        }
    }
    parts.sort_by_key(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let rank = name.rsplit('-').next().and_then(|rank| rank.parse::<u64>().ok());
        (rank, name)
    });
    Ok(parts)
}

/// The files a path stands for: itself, the parts in it, or those beside it when a job was cut off
/// before it made the trace.
///
/// # Errors
/// That there is nothing to read.
pub fn of(trace: &Path) -> io::Result<Vec<PathBuf>> {
    let directory = match trace.metadata() {
        Ok(found) if found.is_dir() => trace.to_owned(),
        Ok(_) => return Ok(vec![trace.to_owned()]),
        Err(error) if error.kind() == io::ErrorKind::NotFound && beside(trace).is_dir() => {
            beside(trace)
        }
        Err(error) => return Err(error),
    };
    let parts = in_directory(&directory)?;
    if parts.is_empty() {
        let problem = "a directory without parts of a trace (rank-N.iot)";
        return Err(io::Error::new(io::ErrorKind::NotFound, problem));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn parts_come_by_rank_and_nothing_else_counts() {
        let place = tempfile::tempdir().unwrap();
        let trace = place.path().join("run.iot");
        assert!(of(&trace).is_err());
        let parts = beside(&trace);
        fs::create_dir(&parts).unwrap();
        assert!(of(&trace).is_err());
        for name in ["rank-10.iot", "rank-9.iot", "job.json", "rank-1.iot.partial"] {
            fs::write(parts.join(name), "").unwrap();
        }
        let names = |found: Vec<PathBuf>| -> Vec<_> {
            found.iter().map(|it| it.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(of(&trace).unwrap()), ["rank-9.iot", "rank-10.iot"]);
        fs::rename(&parts, &trace).unwrap();
        assert_eq!(of(&trace).unwrap().len(), 2);
    }
}
