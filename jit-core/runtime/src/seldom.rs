//! What is seldom there and often looked for: who finds nothing takes no lock.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use parking_lot::Mutex;

/// A value that is mostly its default. Who looks sees all that was put before something that it knows to be past.
#[derive(Default, Debug)]
pub(crate) struct Seldom<T> {
    /// Whether something may be there. Is changed under the lock.
    is_there: AtomicBool,
    value: Mutex<T>,
}

impl<T: Default> Seldom<T> {
    /// Puts something there.
    pub(crate) fn put<R>(&self, put: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.value.lock();
        self.is_there.store(true, Release);
        put(&mut value)
    }

    /// Looks at what is there; `None` if that is nothing.
    #[inline]
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        match self.is_there.load(Acquire) {
            true => Some(look(&mut self.value.lock())),
            false => None,
        }
    }

    /// Takes what is there; `None` if that is nothing.
    #[inline]
    pub(crate) fn take(&self) -> Option<T> {
        self.look(|value| {
            self.is_there.store(false, Relaxed);
            std::mem::take(value)
        })
    }

    /// What is there, of whoever has it alone.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_found_until_it_is_taken() {
        let mut seldom = Seldom::<Vec<u32>>::default();
        assert_eq!(
            (seldom.look(|list| list.len()), seldom.take()),
            (None, None)
        );
        seldom.put(|list| list.push(1));
        assert_eq!(seldom.look(|list| list.len()), Some(1));
        seldom.put(|list| list.push(2));
        assert_eq!(seldom.take(), Some(vec![1, 2]));
        assert_eq!(
            (seldom.look(|list| list.len()), seldom.take()),
            (None, None)
        );
        seldom.put(|list| list.push(3));
        assert_eq!(seldom.get_mut(), &[3]);
    }

    /// Nothing is lost between those who put and those who take at the same time.
    #[test]
    fn threads_that_put_and_take() {
        let seldom = Seldom::<Vec<u32>>::default();
        let mut taken = std::thread::scope(|scope| {
            let put = |thread: u32| {
                let seldom = &seldom;
                move || (0..1000).for_each(|n| seldom.put(|list| list.push(1000 * thread + n)))
            };
            let puts = [0, 1].map(|thread| scope.spawn(put(thread)));
            let mut taken = Vec::new();
            while !puts.iter().all(|put| put.is_finished()) {
                taken.extend(seldom.take().unwrap_or_default());
            }
            taken
        });
        taken.extend(seldom.take().unwrap_or_default());
        taken.sort_unstable();
        assert_eq!(taken, (0..2000).collect::<Vec<_>>());
    }
}
