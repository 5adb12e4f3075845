//! `ioctl`: requests on a followed file, by what they mean to strategies.

use super::enter;
use crate::call::{Call, Returns};
use crate::moment::{Moment, moment};
use crate::{next, sight, stage, system};
use iolab_policy::insitu::Request;
use iolab_trace::{Class, Function, Layer};

/// `FICLONE` and `FICLONERANGE`: the source is an argument.
const CLONE: u32 = 0x4004_9409;
const CLONE_RANGE: u32 = 0x4020_940d;
/// `FIONCLEX`: the descriptor is to be handed on.
const KEEP_ON_EXEC: u32 = 0x5450;

/// # Safety
/// As libc's; the third argument is one register whatever its type.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ioctl(fd: usize, request: usize, argument: usize) -> usize {
    let raw = [fd, request, argument, 0, 0, 0];
    let mut call = Call::new(Function::IOCTL, Returns::Int, &next::ioctl, raw);
    // SAFETY: the guest's own arguments.
    unsafe {
        match moment() {
            Moment::Idle => return call.next.call(raw),
            Moment::Borrowed => {
                if request as u32 == KEEP_ON_EXEC {
                    stage::lent(fd as i32);
                }
                return call.next.call(raw);
            }
            Moment::Usual => {}
        }
        let means = Request::of(request as u64);
        if means == Request::Nothing || !sight::look(fd).is_tracked() {
            return call.next.call(raw);
        }
        match request as u32 {
            CLONE => stage::lent(argument as i32),
            CLONE_RANGE if system::is_readable(argument) => {
                stage::lent((argument as *const i64).read_unaligned() as i32);
            }
            _ => {}
        }
        (call.fd, call.flags) = (fd, request as u32 as usize);
        enter(Class::Control, Layer::Posix, call)
    }
}
