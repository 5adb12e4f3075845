//! Hints: what programs advise about a file, and what the file system made of it.

use super::numbers::Numbers;
use super::trouble::say;
use crate::profiling;
use iolab_pfs::Layout;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

/// Names of hints that are known: of the standard, of ROMIO and OMPIO, and ours.
const KNOWN: [&str; 48] = [
    "access_style",
    "cb_block_size",
    "cb_buffer_size",
    "cb_config_list",
    "cb_nodes",
    "chunked",
    "chunked_item",
    "chunked_size",
    "collective_buffering",
    "direct_read",
    "direct_write",
    "file_perm",
    "filename",
    "ind_rd_buffer_size",
    "ind_wr_buffer_size",
    "io_node_list",
    "iolab_agree",
    "iolab_cache_map",
    "iolab_collective",
    "iolab_consistency",
    "iolab_durability",
    "iolab_hot",
    "iolab_layout",
    "iolab_report",
    "iolab_schedule",
    "mpi_assert_memory_alloc_kinds",
    "mpi_memory_alloc_kinds",
    "mpi_minimum_memory_alignment",
    "nb_proc",
    "num_io_nodes",
    "pfs_svr_buf",
    "romio_aggregator_list",
    "romio_cb_alltoall",
    "romio_cb_ds_threshold",
    "romio_cb_fr_alignment",
    "romio_cb_fr_types",
    "romio_cb_pfr",
    "romio_cb_read",
    "romio_cb_write",
    "romio_ds_read",
    "romio_ds_write",
    "romio_filesystem_type",
    "romio_min_fdomain_size",
    "romio_no_indep_rw",
    "romio_synchronized_flush",
    "romio_visibility_immediate",
    "start_iodevice",
    "thread_level",
];
/// Further ones: with a meaning for the layout.
const LAYOUT: [&str; 2] = ["striping_factor", "striping_unit"];
/// Those of ours that nobody carries out so far: a program must not take them for granted.
const WITHOUT_EFFECT: [&str; 8] = [
    "iolab_agree",
    "iolab_cache_map",
    "iolab_collective",
    "iolab_consistency",
    "iolab_durability",
    "iolab_hot",
    "iolab_report",
    "iolab_schedule",
];
/// A wish for a new file; what came of it is told by the hints of `LAYOUT`.
const OWN_LAYOUT: &str = "iolab_layout";
/// What names of hints begin with that libraries above MPI take, and pass on: PnetCDF's.
const OF_OTHERS: [&str; 2] = ["nc_", "pnetcdf_"];
/// Names a file of hints for all programs.
const SITE_HINTS: &str = "ROMIO_HINTS";
/// Room for a name and for a value in every family.
const ROOM: usize = 1025;

/// Hints by name.
pub(crate) type Given = BTreeMap<String, String>;

/// The hints of an open file.
pub(super) struct Hints {
    effective: Given,
}

/// The hints in MPI's set.
///
/// # Safety
/// It must be a handle of one, or of none.
pub(crate) unsafe fn of_info(info: usize) -> Given {
    let mut given = Given::new();
    let mut count = 0i32;
    if info == Numbers::here().no_info {
        return given;
    }
    // SAFETY: the caller's promise; there is room for every answer.
    unsafe {
        if profiling::info_get_nkeys(info, &raw mut count as usize) != 0 {
            return given;
        }
        for index in 0..count.max(0) as usize {
            let mut name = [0u8; ROOM];
            if profiling::info_get_nthkey(info, index, name.as_mut_ptr() as usize) == 0
                && let Some(value) = value(info, &name)
                && let Ok(name) = CStr::from_bytes_until_nul(&name)
            {
                given.insert(name.to_string_lossy().into_owned(), value);
            }
        }
    }
    given
}

/// Adds the hints of the site: those of the file that the variable of ROMIO's names, a name and a value in each
/// line. What the program says weighs more. One rank tells if there is no such file.
pub(super) fn add_of_site(given: &mut Given, tells: bool) {
    let Some(path) = std::env::var_os(SITE_HINTS).filter(|path| !path.is_empty()) else { return };
    match std::fs::read_to_string(&path) {
        Ok(text) => add_lines(given, &text),
        Err(error) if tells => {
            say(&format!("{SITE_HINTS} {}: {error}; it is passed over", path.to_string_lossy()));
        }
        Err(_) => {}
    }
}

fn add_lines(given: &mut Given, text: &str) {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    for (name, value) in lines.filter_map(|line| line.split_once(char::is_whitespace)) {
        given.entry(name.to_owned()).or_insert_with(|| value.trim().to_owned());
    }
}

/// # Safety
/// A handle of a set, and a name in it.
unsafe fn value(info: usize, name: &[u8]) -> Option<String> {
    let (mut value, mut is_there, mut length) = ([0u8; ROOM], 0i32, ROOM as i32);
    let (name, to) = (name.as_ptr() as usize, value.as_mut_ptr() as usize);
    let (flag, room) = (&raw mut is_there as usize, &raw mut length as usize);
    // SAFETY: the caller's promise; there is room for the answers.
    unsafe {
        if profiling::info_get_string(info, name, room, to, flag) != 0 {
            profiling::info_get(info, name, ROOM - 1, to, flag);
        }
    }
    let text = CStr::from_bytes_until_nul(&value).ok()?;
    (is_there != 0).then(|| text.to_string_lossy().into_owned())
}

/// The layout that hints ask for, of so many servers.
pub(super) fn layout(given: &Given, servers: u32) -> Option<Layout> {
    if let Some(text) = given.get("iolab_layout") {
        let layout = Layout::parse(text.trim(), servers);
        return layout.inspect_err(|why| say(&format!("hint iolab_layout: {why}"))).ok();
    }
    let number = |name: &str| given.get(name)?.trim().parse::<u64>().ok().filter(|&it| it > 0);
    let (unit, factor) = (number("striping_unit"), number("striping_factor"));
    if unit.is_none() && factor.is_none() {
        return None;
    }
    let usual = Layout::usual(servers);
    let factor = factor.map_or(usual.subfiles(), |factor| factor.min(servers.into()) as u32);
    let layout = Layout::striped(unit.unwrap_or(usual.unit_bytes()), factor, 0);
    layout.inspect_err(|why| say(&format!("hints of the layout: {why}"))).ok()
}

fn is_known(name: &str) -> bool {
    KNOWN.contains(&name) || LAYOUT.contains(&name)
}

fn is_of_others(name: &str) -> bool {
    OF_OTHERS.iter().any(|start| name.starts_with(start))
}

/// Tells which hints nobody knows, and what may have been meant, and which of ours have no effect.
pub(super) fn tell_unheeded(given: &Given) {
    for name in given.keys().filter(|name| WITHOUT_EFFECT.contains(&name.as_str())) {
        say(&format!("hint {name} has no effect so far; the options of `iolab fs up` hold"));
    }
    for name in given.keys().filter(|name| !is_known(name) && !is_of_others(name)) {
        let known = KNOWN.iter().chain(&LAYOUT);
        let nearest = known.max_by(|one, other| {
            let like = |known: &str| strsim::jaro_winkler(known, name);
            like(one).total_cmp(&like(other))
        });
        say(&format!("hint {name} is not known; the nearest one is {}", nearest.unwrap_or(&"")));
    }
}

impl Hints {
    /// Of a file with that layout.
    pub(super) fn new(given: Given, layout: Layout) -> Hints {
        let mut hints = Hints { effective: Given::new() };
        hints.take(given);
        let own = [
            ("striping_unit", layout.unit_bytes().to_string()),
            ("striping_factor", layout.subfiles().to_string()),
            ("romio_visibility_immediate", "true".to_owned()),
        ];
        hints.effective.extend(own.map(|(name, value)| (name.to_owned(), value)));
        hints
    }

    /// Takes up what is known and may change while a file is open.
    pub(super) fn take(&mut self, given: Given) {
        let fixed = |name: &str| {
            LAYOUT.contains(&name) || [OWN_LAYOUT, "romio_visibility_immediate"].contains(&name)
        };
        let holds = |name: &str| is_known(name) && !WITHOUT_EFFECT.contains(&name);
        let taken = given.into_iter().filter(|(name, _)| holds(name) && !fixed(name));
        self.effective.extend(taken);
    }

    /// Writes a handle of a set with them to an address.
    ///
    /// # Safety
    /// There must be room for a handle.
    pub(super) unsafe fn give(&self, address: usize) -> i32 {
        // SAFETY: the caller's promise, and texts that have an end.
        unsafe {
            let answer = profiling::info_create(address);
            if answer != 0 {
                return answer;
            }
            let info = crate::family::Family::here().handle_at(address);
            for (name, value) in &self.effective {
                let (Ok(name), Ok(value)) = (CString::new(&**name), CString::new(&**value)) else {
                    continue;
                };
                profiling::info_set(info, name.as_ptr() as usize, value.as_ptr() as usize);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(hints: &[(&str, &str)]) -> Given {
        hints.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn hints_shape_a_new_file() {
        let of = |hints: &[_]| layout(&given(hints), 4).map(|layout| layout.to_string());
        assert_eq!(of(&[("cb_nodes", "3")]), None);
        assert_eq!(of(&[("striping_unit", "65536")]).unwrap(), "stripe:unit=64 KiB,count=4");
        assert_eq!(of(&[("striping_factor", "2")]).unwrap(), "stripe:unit=256 KiB,count=2");
        assert_eq!(of(&[("striping_factor", "9")]).unwrap(), "stripe:unit=256 KiB,count=4");
        assert_eq!(of(&[("iolab_layout", "one")]).unwrap(), "stripe:unit=256 KiB,count=1");
        assert_eq!(of(&[("striping_unit", "many")]), None);
    }

    #[test]
    fn hints_of_the_site_weigh_less_than_those_of_the_program() {
        let mut hints = given(&[("striping_unit", "65536")]);
        add_lines(&mut hints, "# site\nstriping_unit 1024\n\n  cb_nodes\t 4 \nalone\n");
        assert_eq!(hints, given(&[("striping_unit", "65536"), ("cb_nodes", "4")]));
    }

    #[test]
    fn hints_for_libraries_above_mpi_are_theirs() {
        assert!(is_of_others("nc_var_align_size") && !is_known("nc_var_align_size"));
        assert!(is_known("romio_synchronized_flush") && !is_of_others("ncx"));
    }

    #[test]
    fn hints_that_are_told_are_those_that_hold() {
        let layout = Layout::usual(2);
        let mut hints = Hints::new(given(&[("cb_nodes", "3"), ("strange", "1")]), layout);
        hints.take(given(&[("striping_unit", "1"), ("romio_cb_read", "enable")]));
        hints.take(given(&[("iolab_layout", "one"), ("iolab_durability", "device")]));
        let known = ["cb_nodes", "romio_cb_read", "romio_visibility_immediate"];
        let names: Vec<_> = hints.effective.keys().map(String::as_str).collect();
        assert_eq!(names, [&known[..], &LAYOUT].concat());
        assert_eq!(hints.effective["striping_unit"], "262144");
        assert!(WITHOUT_EFFECT.iter().all(|name| KNOWN.contains(name)));
    }
}
