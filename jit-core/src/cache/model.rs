//! Values that are made once under loom, which has threads take turns in each order that they can: one makes what all get,
//! errors are those of who tried, and letting go comes between at any point.
//!
//! `flight.rs` is compiled once more, with a map and cells of loom's locks as its `sync`. What a model would find is
//! planted in these.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use loom::sync::Arc;
use loom::thread;

use flight::Flights;

#[allow(
    clippy::duplicate_mod,
    reason = "its maps and cells are other ones here"
)]
#[path = "flight.rs"]
mod flight;

/// What `sync` is in this copy.
mod sync {
    use std::borrow::Borrow;
    use std::collections::HashMap;
    use std::hash::Hash;
    use std::sync::OnceLock;

    pub(super) use loom::sync::Arc;
    use loom::sync::{Condvar, Mutex};

    use super::{Planted, planted};

    /// A cell as once_cell promises it to be: one thread makes the value, others wait, and a failure leaves it empty.
    pub(super) struct OnceCell<T> {
        value: OnceLock<T>,
        is_made: Mutex<bool>,
        made: Condvar,
    }

    impl<T> Default for OnceCell<T> {
        fn default() -> OnceCell<T> {
            OnceCell {
                value: OnceLock::new(),
                is_made: Mutex::new(false),
                made: Condvar::new(),
            }
        }
    }

    impl<T> OnceCell<T> {
        pub(super) fn get(&self) -> Option<&T> {
            // Others may come between this and what was before.
            drop(self.is_made.lock());
            self.value.get()
        }

        pub(super) fn get_or_try_init<E>(
            &self,
            make: impl FnOnce() -> Result<T, E>,
        ) -> Result<&T, E> {
            let mut is_made = self.is_made.lock().expect("no thread panicked");
            while *is_made && planted() != Planted::AllMake {
                is_made = self.made.wait(is_made).expect("no thread panicked");
            }
            if self.value.get().is_none() {
                *is_made = true;
                drop(is_made);
                let made = make().map(|made| self.value.set(made));
                *self.is_made.lock().expect("no thread panicked") = false;
                self.made.notify_all();
                let _ = made?;
            }
            Ok(self.value.get().expect("it was made"))
        }
    }

    pub(super) struct Map<K, C>(Mutex<HashMap<K, Arc<C>>>);

    impl<K, C> Default for Map<K, C> {
        fn default() -> Map<K, C> {
            Map(Mutex::new(HashMap::new()))
        }
    }

    impl<K: Eq + Hash, C: Default> Map<K, C> {
        pub(super) fn cell(&self, key: K) -> Arc<C> {
            let mut cells = self.0.lock().expect("no thread panicked");
            cells.entry(key).or_default().clone()
        }

        pub(super) fn with<Q, R>(&self, key: &Q, of: impl FnOnce(&Arc<C>) -> R) -> Option<R>
        where
            K: Borrow<Q>,
            Q: Eq + Hash + ?Sized,
        {
            let cells = self.0.lock().expect("no thread panicked");
            cells.get(key).map(of)
        }

        pub(super) fn remove_if(&self, key: &K, is_so: impl FnOnce(&Arc<C>) -> bool) {
            let mut cells = self.0.lock().expect("no thread panicked");
            if cells.get(key).is_some_and(is_so) {
                cells.remove(key);
            }
        }

        pub(super) fn retain(&self, mut stays: impl FnMut(&Arc<C>) -> bool) {
            let mut cells = self.0.lock().expect("no thread panicked");
            cells.retain(|_, cell| planted() != Planted::AllGo && stays(cell));
        }

        pub(super) fn each(&self, of: impl FnMut(&Arc<C>)) {
            let cells = self.0.lock().expect("no thread panicked");
            cells.values().for_each(of);
        }
    }
}

/// A mistake that a model has to find.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// Who comes while a value is made makes one, too.
    AllMake,
    /// Letting go takes what is being made and what is used along.
    AllGo,
}

thread_local! {
    static PLANTED: std::cell::Cell<Planted> = const { std::cell::Cell::new(Planted::Nothing) };
}

fn planted() -> Planted {
    PLANTED.get()
}

/// What is made: it counts those that are alive.
struct Made(std::sync::Arc<Counts>);

#[derive(Default)]
struct Counts {
    tried: AtomicU32,
    alive: AtomicU32,
}

impl Drop for Made {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, SeqCst);
    }
}

type Values = Arc<Flights<u32, Made>>;

/// Asks for the value under 7, of which so many attempts to make it fail.
fn ask(values: &Values, counts: &std::sync::Arc<Counts>, fail: u32) -> Result<Arc<Made>, ()> {
    values.get_or_make(7, || {
        let tried = counts.tried.fetch_add(1, SeqCst);
        // Others may come while it is made.
        thread::yield_now();
        if tried < fail {
            return Err(());
        }
        let alive = counts.alive.fetch_add(1, SeqCst);
        assert_eq!(alive, 0, "two are alive");
        Ok(Made(counts.clone()))
    })
}

/// Two threads that ask, a third that does something besides, and what the two got.
fn asked_by_two(
    fail: u32,
    besides: fn(&Values),
    then: impl FnOnce(&Values, &Counts, [Result<Arc<Made>, ()>; 2]),
) {
    let (values, counts) = (Values::default(), std::sync::Arc::new(Counts::default()));
    let other = {
        let (values, counts) = (values.clone(), counts.clone());
        thread::spawn(move || ask(&values, &counts, fail))
    };
    let third = {
        let values = values.clone();
        thread::spawn(move || besides(&values))
    };
    let mine = ask(&values, &counts, fail);
    let both = [mine, other.join().expect("it ends")];
    third.join().expect("it ends");
    then(&values, &counts, both);
}

/// Both get the one that was made; who looks finds it or nothing.
fn made_once() {
    let looks = |values: &Values| {
        values.find(&7);
        values.each(|_| ());
        values.retain(|_| true);
    };
    asked_by_two(0, looks, |values, counts, both| {
        let [Ok(mine), Ok(other)] = both else {
            panic!("it is made");
        };
        assert!(Arc::ptr_eq(&mine, &other));
        assert_eq!(counts.tried.load(SeqCst), 1);
        assert!(values.find(&7).is_some());
    });
}

/// One attempt fails: its error is that of one of them, and the other has a value. Two fail: nothing is left.
fn failed() {
    for fail in [1, 2] {
        asked_by_two(
            fail,
            |_| (),
            |values, counts, both| {
                let errors = both.iter().filter(|got| got.is_err()).count();
                assert_eq!((errors as u32, counts.tried.load(SeqCst)), (fail, 2));
                assert_eq!(values.count(), (2 - fail) as usize);
            },
        );
    }
}

/// What is used or about to be is not let go, so that there is one of it; what nobody uses is.
fn let_go() {
    asked_by_two(
        0,
        |values| values.retain_used(),
        |values, counts, both| {
            assert_eq!(counts.alive.load(SeqCst), 1);
            drop(both);
            values.retain_used();
            assert_eq!((values.count(), counts.alive.load(SeqCst)), (0, 0));
        },
    );
}

/// What is being made stays where all that is there goes; who has it keeps it.
fn let_go_of_all() {
    let (values, counts) = (Values::default(), std::sync::Arc::new(Counts::default()));
    let other = {
        let values = values.clone();
        thread::spawn(move || values.retain(|_| false))
    };
    let mine = ask(&values, &counts, 0);
    other.join().expect("it ends");
    assert_eq!(counts.alive.load(SeqCst), 1);
    let is_there = values.find(&7).is_some();
    drop(mine);
    assert_eq!(counts.alive.load(SeqCst), u32::from(is_there));
}

/// Goes through all orders with at most so many changes of threads that had to go on.
fn explore(model: fn()) {
    let mut builder = loom::model::Builder::new();
    let deep = std::env::var("KILN_MODEL_CHANGES").ok();
    let deep = deep.map(|deep| deep.parse().expect("a number"));
    builder.preemption_bound = Some(deep.unwrap_or(2));
    builder.check(model);
}

#[test]
fn a_value_is_made_once() {
    explore(made_once);
}

#[test]
fn an_error_is_that_of_who_tried() {
    explore(failed);
}

#[test]
fn what_is_used_stays() {
    explore(let_go);
    explore(let_go_of_all);
}

/// The map and the cells that programs have, by one thread.
#[test]
fn errors_leave_nothing() {
    let values: super::flight::Flights<u32, u32> = super::flight::Flights::default();
    assert_eq!(values.get_or_make(1, || Err::<u32, _>("no")), Err("no"));
    assert_eq!(values.count(), 0);
    let made = values.get_or_make(1, || Ok::<_, ()>(5));
    values.retain_used();
    assert_eq!((values.find(&1), values.count()), (made.ok(), 1));
    values.retain_used();
    assert_eq!(values.count(), 0);
}

#[test]
fn planted_mistakes_are_found() {
    for (mistake, model) in [
        (Planted::AllMake, made_once as fn()),
        (Planted::AllGo, let_go),
    ] {
        PLANTED.set(mistake);
        let explored = std::panic::catch_unwind(|| explore(model));
        PLANTED.set(Planted::Nothing);
        let panic = explored.expect_err("a model that finds it");
        let text = panic.downcast_ref::<String>().map_or("", String::as_str);
        assert!(text.contains("two are alive"), "{text}");
    }
}
