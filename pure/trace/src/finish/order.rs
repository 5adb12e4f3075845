//! The order of rows: by thread and time, outer calls first.
//!
//! Rows come in the order their calls ended. Where several of a thread began at one tick of a coarse clock (25 MHz on
//! some AArch64 processors), times do not tell which contains which: a call of a higher layer then contains
//! those of lower layers that ended right before it, and all others follow each other as they ended.

use super::height;
use crate::Event;

/// Puts rows into their order.
pub(crate) fn outer_first(events: &mut [Event]) {
    events.sort_by_key(|it| (it.rank, it.process, it.thread, it.start));
    let together =
        |a: &Event, b: &Event| (a.process, a.thread, a.start) == (b.process, b.thread, b.start);
    events.chunk_by_mut(together).filter(|tied| tied.len() > 1).for_each(untie);
}

/// Rows of one thread that began at the same time, in the order they ended.
fn untie(tied: &mut [Event]) {
    // Where the calls begin that none of those seen contains, each with all inside of it behind it.
    let mut outermost: Vec<usize> = Vec::new();
    for at in 0..tied.len() {
        let own = tied[at];
        let contains =
            |it: &Event| !own.is_counted() && height(it) < height(&own) && it.end <= own.end;
        let mut first = at;
        while let Some(inside) = outermost.pop_if(|start| contains(&tied[*start])) {
            first = inside;
        }
        tied[first..=at].rotate_right(1);
        outermost.push(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Function;
    use iolab_vocab::Nanos;

    fn row(function: Function, end: u64) -> Event {
        Event { start: Nanos(10), end: Nanos(end), ..Event::of(function) }
    }

    fn ordered(rows: &[(Function, u64)]) -> Vec<(Function, u64)> {
        let mut events: Vec<Event> = rows.iter().map(|&(what, end)| row(what, end)).collect();
        outer_first(&mut events);
        events.iter().map(|event| (event.function, event.end.0)).collect()
    }

    #[test]
    fn calls_of_one_layer_that_began_together_stay_as_they_ended() {
        let rows = [(Function::LSEEK, 10), (Function::WRITE, 11), (Function::READ, 11)];
        assert_eq!(ordered(&rows), rows);
    }

    #[test]
    fn a_call_of_a_higher_layer_takes_what_ended_right_before_it() {
        let rows = [
            (Function::LSEEK, 10),
            (Function::FSEEK, 10),
            (Function::WRITE, 10),
            (Function::WRITE, 11),
            (Function::FFLUSH, 11),
            (Function::CLOSE, 12),
        ];
        let [lseek, fseek, one, other, fflush, close] = rows;
        assert_eq!(ordered(&rows), [fseek, lseek, fflush, one, other, close]);
    }

    #[test]
    fn copies_that_began_together_each_take_the_row_of_their_own_target() {
        let (to, copy) = ((Function::COPY_TARGET, 10), (Function::SENDFILE, 10));
        let write = (Function::WRITE, 10);
        assert_eq!(ordered(&[to, copy, write, to, copy]), [copy, to, write, copy, to]);
    }

    #[test]
    fn three_layers_nest_and_a_longer_inner_call_is_none() {
        let (write, fwrite) = ((Function::WRITE, 10), (Function::FWRITE, 10));
        let all = (Function::MPI_FILE_WRITE, 12);
        assert_eq!(ordered(&[write, fwrite, all]), [all, fwrite, write]);
        let late = (Function::WRITE, 13);
        assert_eq!(ordered(&[late, all]), [late, all]);
    }
}
