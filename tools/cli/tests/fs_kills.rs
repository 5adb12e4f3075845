//! The servers are killed again and again under a load that verifies itself: nothing that was answered is
//! lost, nothing is there that nobody wrote, and the directory is without damage at every instant. With cache
//! managers nothing is lost that was synced, and whoever has lost something else is told before a sync succeeds.

use iolab_pfs::client::Call;
use iolab_pfs::client::Failure;
use iolab_pfs::{Code, Kind, OpenWish};
use iolab_pfs_node::files::{OpenFile, look};
use iolab_pfs_node::{Client, NoMemory, launch};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

const TO_WRITE: OpenWish =
    OpenWish { writes: true, creates: true, mode: 0o644, ..OpenWish::TO_READ };
/// As long as a file of the load gets.
const FILE_BYTES: u64 = 1_500_000;

/// Ends the servers whatever happens.
struct Servers<'a>(&'a Path);

impl Drop for Servers<'_> {
    fn drop(&mut self) {
        let _ = launch::stop(self.0);
    }
}

/// Numbers that look random, the same for each seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn iolab(words: &[&str], directory: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    let output = command.arg("fs").args(words).arg("--dir").arg(directory).output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&told).into_owned())
}

/// One writer: its file, and what must be in it.
struct Load<'a> {
    client: &'a Client,
    dice: Dice,
    path: Vec<u8>,
    bytes: Vec<u8>,
    renamed: u64,
}

impl Load<'_> {
    fn step(&mut self, file: &OpenFile<'_>) {
        let at = self.dice.below(FILE_BYTES);
        match self.dice.below(10) {
            0..=4 => {
                let count = 1 + self.dice.below(300_000);
                let first = self.dice.below(250);
                let written: Vec<u8> = (0..count).map(|it| (first + it / 7) as u8 | 1).collect();
                file.write_at(at, &written).unwrap();
                let (at, end) = (at as usize, (at + count) as usize);
                self.bytes.resize(self.bytes.len().max(end), 0);
                self.bytes[at..end].copy_from_slice(&written);
            }
            5..=7 => {
                let mut seen = vec![0xee; 1 + self.dice.below(300_000) as usize];
                let count = file.read_at(at, &mut seen).unwrap();
                let there = self.bytes.get(at as usize..).unwrap_or_default();
                assert!(seen[..count] == there[..count], "{count} bytes from {at} on");
                assert_eq!(count, there.len().min(seen.len()));
            }
            8 => {
                file.resize(at).unwrap();
                self.bytes.resize(at as usize, 0);
            }
            _ => {
                let new = format!("/{:?}-{}", std::thread::current().id(), self.renamed);
                let (from, to) = (self.path.clone(), new.into_bytes());
                let call = Call::Rename { from: from.clone(), to: to.clone() };
                self.client.call(call, &mut NoMemory).unwrap();
                assert!(look(self.client, &from).unwrap().is_none());
                (self.path, self.renamed) = (to, self.renamed + 1);
                let (_, bytes) = look(self.client, &self.path).unwrap().expect("it is there");
                assert_eq!(bytes, self.bytes.len() as u64);
            }
        }
    }

    fn check(&self, file: &OpenFile<'_>) {
        let mut seen = vec![0; self.bytes.len() + 1];
        assert_eq!(file.read_at(0, &mut seen).unwrap(), self.bytes.len());
        assert!(seen[..self.bytes.len()] == self.bytes);
    }
}

/// One writer whose data lies in cache managers for a while: what its file had when it was synced last, what it would
/// have if nothing was lost since, and what was written since then.
struct Cached<'a> {
    file: &'a OpenFile<'a>,
    dice: Dice,
    synced: Vec<u8>,
    bytes: Vec<u8>,
    since: Vec<(usize, Vec<u8>)>,
    losses: u64,
}

impl Cached<'_> {
    fn step(&mut self) {
        let at = self.dice.below(FILE_BYTES);
        match self.dice.below(10) {
            0..=4 => {
                let (count, first) = (1 + self.dice.below(300_000), self.dice.below(250));
                let written: Vec<u8> = (0..count).map(|it| (first + it / 7) as u8 | 1).collect();
                let result = self.file.write_at(at, &written);
                self.since.push((at as usize, written.clone()));
                let (at, end) = (at as usize, (at + count) as usize);
                self.bytes.resize(self.bytes.len().max(end), 0);
                self.bytes[at..end].copy_from_slice(&written);
                self.heard(result.map(|_| ()));
            }
            5..=7 => {
                let mut seen = vec![0xee; 1 + self.dice.below(300_000) as usize];
                match self.file.read_at(at, &mut seen) {
                    Ok(count) => {
                        let there = self.bytes.get(at as usize..).unwrap_or_default();
                        let wanted = there.len().min(seen.len());
                        // Who reads what is not there any more, is told at the latest by this sync.
                        if count != wanted || seen[..count] != there[..count] {
                            let failure = self.file.sync().expect_err("a loss was not told");
                            self.heard(Err(failure));
                        }
                    }
                    Err(failure) => self.heard(Err(failure)),
                }
            }
            _ => {
                let result = self.file.sync();
                if result.is_ok() {
                    self.synced.clone_from(&self.bytes);
                    self.since.clear();
                }
                self.heard(result);
            }
        }
    }

    /// After a loss the file has of each byte what was synced, or something that was written to it since.
    fn heard(&mut self, result: Result<(), Failure>) {
        let Err(failure) = result else { return };
        assert_eq!(failure.code, Code::LOST, "{}", failure.text);
        self.losses += 1;
        loop {
            let mut seen = vec![0; self.bytes.len() + 1];
            // One more may come while this one is looked at.
            let Ok(count) = self.file.read_at(0, &mut seen) else { continue };
            if self.file.sync().is_err() {
                continue;
            }
            seen.truncate(count);
            assert!(self.synced.len() <= count && count <= self.bytes.len());
            for (at, byte) in seen.iter().enumerate() {
                let later = |(from, written): &(usize, Vec<u8>)| {
                    at.checked_sub(*from).and_then(|at| written.get(at)) == Some(byte)
                };
                let before = self.synced.get(at).copied().unwrap_or(0);
                let is_fine = *byte == before || self.since.iter().any(later);
                assert!(is_fine, "byte {at} is {byte}, but {before} was synced");
            }
            (self.synced, self.bytes) = (seen.clone(), seen);
            return self.since.clear();
        }
    }
}

fn load(directory: &Path, seed: u64, (is_over, steps): (&AtomicBool, &AtomicU64)) {
    let client = Client::of(directory).unwrap();
    let path = format!("/load {seed}").into_bytes();
    let file = OpenFile::open(&client, &path, TO_WRITE).unwrap();
    let dice = Dice(seed << 40 | 0x9e37_79b9);
    let mut load = Load { client: &client, dice, path, bytes: Vec::new(), renamed: 0 };
    while !is_over.load(Ordering::SeqCst) {
        load.step(&file);
        steps.fetch_add(1, Ordering::SeqCst);
    }
    load.check(&file);
    file.close().unwrap();
    let call = Call::Remove { path: load.path, kind: Kind::File };
    client.call(call, &mut NoMemory).unwrap();
}

fn cached_load(directory: &Path, seed: u64, (is_over, steps): (&AtomicBool, &AtomicU64)) {
    let client = Client::of(directory).unwrap();
    let file = OpenFile::open(&client, format!("/load {seed}").as_bytes(), TO_WRITE).unwrap();
    let (dice, none) = (Dice(seed << 40 | 0x9e37_79b9), Vec::new);
    let (synced, bytes, since) = (none(), none(), Vec::new());
    let mut load = Cached { file: &file, dice, synced, bytes, since, losses: 0 };
    while !is_over.load(Ordering::SeqCst) {
        load.step();
        steps.fetch_add(1, Ordering::SeqCst);
    }
    let result = file.sync();
    load.heard(result);
    let mut seen = vec![0; load.bytes.len() + 1];
    assert_eq!(file.read_at(0, &mut seen).unwrap(), load.bytes.len());
    assert!(seen[..load.bytes.len()] == load.bytes);
    println!("load {seed} was told of {} losses", load.losses);
    assert!(load.losses > 0, "nothing was lost: the test proves little");
    file.close().unwrap();
}

/// What a writer does until it is over, counting its steps.
type Loaded = fn(&Path, u64, (&AtomicBool, &AtomicU64));

fn killed_under_load(kills: u64, caches: &str, load: Loaded) {
    let home = tempfile::tempdir().unwrap();
    let directory = &home.path().join("fs");
    let layout = ["--layout", "stripe:unit=64k"];
    let wish = [&["up", "--servers", "3", "--caches", caches, "--journal", "4k"], &layout[..]];
    let (code, told) = iolab(&wish.concat(), directory);
    assert_eq!(code, Some(0), "{told}");
    let _servers = Servers(directory);
    let (is_over, steps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let loads: Vec<_> = (1..=2u64)
            .map(|seed| {
                let (is_over, steps) = (&is_over, &steps);
                scope.spawn(move || load(directory, seed, (is_over, steps)))
            })
            .collect();
        let mut dice = Dice(kills | 1 << 40);
        for kill in 0..kills {
            // Every other one comes when more has been done than killed; recovery alone proves little.
            while kill % 2 == 0
                && steps.load(Ordering::SeqCst) <= kill + 2
                && !loads.iter().any(|load| load.is_finished())
            {
                sleep(Duration::from_millis(1));
            }
            // Some while it recovers, most in the middle of something.
            sleep(Duration::from_micros(dice.below(30_000)));
            let lock = std::fs::read_to_string(directory.join("lock")).unwrap();
            let killed = Command::new("kill").args(["-KILL", lock.trim()]).status().unwrap();
            assert!(killed.success(), "kill {kill}: the servers have ended by themselves");
            while iolab(&["status"], directory).0 != Some(3) {
                sleep(Duration::from_millis(1));
            }
            if kill % 10 == 0 {
                let (code, told) = iolab(&["check"], directory);
                assert_eq!(code, Some(0), "kill {kill}: {told}");
            }
            let (code, told) = iolab(&["up"], directory);
            assert_eq!(code, Some(0), "kill {kill}: {told}");
            if loads.iter().any(|load| load.is_finished()) {
                break;
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
    println!("{steps:?} steps under {kills} kills");
    let journal = std::fs::read(directory.join("metadata/journal-1")).unwrap();
    // Who writes through caches changes no names.
    let has_begun_anew = journal[8] == 2;
    assert!(has_begun_anew || caches != "0", "the journal has never begun anew");
    assert!(journal.len() < 1 << 20, "{} bytes", journal.len());
    assert!(steps.load(Ordering::SeqCst) > kills);
}

#[test]
fn servers_that_are_killed_at_two_hundred_instants_lose_nothing() {
    killed_under_load(200, "0", load);
}

#[test]
fn cache_managers_that_are_killed_lose_nothing_that_was_synced_and_what_else_they_lose_is_told() {
    killed_under_load(60, "2", cached_load);
}
