//! Slabs with places of their own type: memory is reused, and what was removed is never read.
//!
//! A place taken from one slab does not fit another. Reading a removed place is a broken promise of
//! ours and stops the program; a place that was given out again belongs to whoever has it now.

use std::marker::PhantomData;

/// A place in a slab or a table.
pub(crate) trait Id: Copy {
    fn of(index: usize) -> Self;
    fn index(self) -> usize;
}

/// Declares numbers that do not mix.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) u32);

        impl $crate::slab::Id for $name {
            #[inline]
            fn of(index: usize) -> Self {
                $name(index as u32)
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )* };
}
pub(crate) use ids;

/// Values by place.
#[derive(Debug)]
pub(crate) struct Slab<I, T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    places: PhantomData<I>,
}

#[derive(Debug)]
struct Slot<T> {
    value: T,
    is_live: bool,
}

impl<I: Id, T> Slab<I, T> {
    pub(crate) fn new() -> Slab<I, T> {
        Slab { slots: Vec::new(), free: Vec::new(), places: PhantomData }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: T) -> I {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Slot { value, is_live: true };
                I::of(slot as usize)
            }
            None => self.grow(value),
        }
    }

    fn grow(&mut self, value: T) -> I {
        self.slots.push(Slot { value, is_live: true });
        I::of(self.slots.len() - 1)
    }

    /// A place with whatever its last user left in it, so that buffers are used again; whoever takes
    /// it sets everything else.
    pub(crate) fn take_used(&mut self, fresh: impl FnOnce() -> T) -> I {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize].is_live = true;
                I::of(slot as usize)
            }
            None => self.grow(fresh()),
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, place: I) {
        let slot = &mut self.slots[place.index()];
        assert!(slot.is_live, "slot {} is removed twice", place.index());
        slot.is_live = false;
        self.free.push(place.index() as u32);
    }

    #[inline]
    pub(crate) fn get(&self, place: I) -> &T {
        let slot = &self.slots[place.index()];
        assert!(slot.is_live, "slot {} was removed", place.index());
        &slot.value
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: I) -> &mut T {
        let slot = &mut self.slots[place.index()];
        assert!(slot.is_live, "slot {} was removed", place.index());
        &mut slot.value
    }

    /// What is in use, with its places in order.
    pub(crate) fn live(&self) -> impl Iterator<Item = (I, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter(|(_, slot)| slot.is_live).map(|(index, slot)| (I::of(index), &slot.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ids! {
        /// A place of the tests.
        Place;
    }

    #[test]
    fn a_freed_place_is_given_out_again_and_keeps_its_buffers() {
        let mut slab: Slab<Place, Vec<u8>> = Slab::new();
        let first = slab.add(vec![1, 2, 3]);
        slab.remove(first);
        assert_eq!(slab.live().count(), 0);
        let again = slab.take_used(|| unreachable!("there is a free place"));
        assert_eq!((again, slab.get(again).as_slice()), (first, &[1, 2, 3][..]));
        let other = slab.add(vec![4]);
        assert_eq!(slab.live().map(|(place, _)| place).collect::<Vec<_>>(), [first, other]);
    }

    #[test]
    #[should_panic(expected = "slot 0 was removed")]
    fn what_was_removed_is_not_read() {
        let mut slab: Slab<Place, u8> = Slab::new();
        let place = slab.add(1);
        slab.remove(place);
        slab.get(place);
    }

    #[test]
    #[should_panic(expected = "slot 0 is removed twice")]
    fn nothing_is_removed_twice() {
        let mut slab: Slab<Place, u8> = Slab::new();
        let place = slab.add(1);
        slab.remove(place);
        slab.remove(place);
    }
}
