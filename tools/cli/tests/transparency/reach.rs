//! Processes that cannot reach what another one holds, or the file of one that was killed: they see
//! what a write returned for all the same.

use super::bench::{Way, guest, need, same_everywhere};

const STRATEGIES: &[Way] =
    &[Way::Run(&["write-back"]), Way::Run(&["null", "write-back:buffer=8k", "null"])];

#[test]
fn who_has_no_means_to_write_out_what_another_holds_sees_it_nonetheless() {
    let program = guest("lookers");
    for way in [
        "nothing",
        "descriptors",
        "root",
        "memory",
        "user",
        "filter",
        "sealed",
        "size",
        "numbers",
        "mapping",
        "spawned",
        "thread",
    ] {
        same_everywhere(&format!("\"$GUEST\" {way}"), Some(&program), STRATEGIES);
    }
}

#[test]
fn a_killed_process_has_written_to_its_file_whatever_that_is_called_by_then() {
    let program = guest("lost_names");
    for way in
        ["file", "directory", "link", "removed", "again", "exchanged", "root", "mounts", "moved"]
    {
        same_everywhere(&format!("\"$GUEST\" {way}"), Some(&program), STRATEGIES);
    }
}

#[test]
fn a_process_that_is_killed_while_another_one_renames_has_written_to_its_file() {
    need("strace", "strace");
    let program = guest("lost_names");
    let script = "strace -f -qq -o /dev/null -e trace=rename \
        -e inject=rename:delay_enter=100000:delay_exit=300000 \"$GUEST\" slowly";
    same_everywhere(script, Some(&program), STRATEGIES);
}

#[test]
fn a_file_that_is_opened_past_the_library_is_the_same_file() {
    need("python3", "python3");
    let script = "python3 - <<'E'
import os
def use(other, first):
    open('x', 'w').close(); os.symlink('x', 'y.so'); os.link('x', 'l.so')
    f = os.open('x', os.O_RDWR)
    g = os.open(other % f if '%' in other else other, os.O_RDWR) if first else f
    if first and '%' in other: os.close(f)
    f = os.open('x', os.O_RDWR) if first else f
    g = g if first else os.open(other % f if '%' in other else other, os.O_RDWR)
    os.write(f, b'hello'); a = os.read(g, 99); os.pwrite(g, b'ZZ', 1)
    b = os.pread(f, 99, 0); os.write(f, b'!!')
    print(other, first, a, b, os.fstat(g).st_size, open('x', 'rb').read())
    os.close(f); os.close(g)
    for name in ('x', 'y.so', 'l.so'): os.unlink(name)
for other in ('/dev/fd/%d', '/proc/self/fd/%d', '/proc/self/cwd/x', 'y.so', 'l.so'):
    for first in (False, True): use(other, first)
E";
    same_everywhere(script, None, STRATEGIES);
}
