//! Typed indices and the maps they index.
//!
//! An entity is a `u32` with a type of its own: `Value`, `Inst`, `Region` ... It is `Copy`, half
//! the size of a pointer, and cannot be confused with an entity of another kind. Payloads live in
//! a [`PrimaryMap`]; the entity says which one, the map says what it is. The `entity!` macro also
//! fixes how an entity prints, so the text form, dumps and errors agree.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A typed index into a [`PrimaryMap`].
pub trait Entity: Copy + Eq + std::hash::Hash {
    /// The entity with this index.
    fn from_index(index: usize) -> Self;
    /// The index of this entity.
    fn index(self) -> usize;
}

/// Declares entity types: `entity! { /// doc  Value = "%", ... }`.
macro_rules! entity {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $crate::entity::Entity for $name {
            fn from_index(index: usize) -> Self {
                debug_assert!(index < u32::MAX as usize);
                Self(index as u32)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}
pub(crate) use entity;

/// A growable table of payloads, indexed by the entity it hands out on `push`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PrimaryMap<K, V> {
    items: Vec<V>,
    key: PhantomData<K>,
}

impl<K: Entity, V> PrimaryMap<K, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self {
            items: Vec::new(),
            key: PhantomData,
        }
    }

    /// Adds `item` and returns the entity that now names it.
    pub fn push(&mut self, item: V) -> K {
        let key = self.next_key();
        self.items.push(item);
        key
    }

    /// The entity that the next `push` will return.
    pub(crate) fn next_key(&self) -> K {
        K::from_index(self.items.len())
    }

    /// The payload of `key`, or `None` when `key` is of another map.
    pub fn get(&self, key: K) -> Option<&V> {
        self.items.get(key.index())
    }

    /// The number of entities.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no entity.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All entities, in the order of creation.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + use<K, V> {
        (0..self.items.len()).map(K::from_index)
    }

    /// All payloads, in the order of creation.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.items.iter()
    }

    /// All entities with their payloads, in the order of creation.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> {
        self.items
            .iter()
            .enumerate()
            .map(|(i, v)| (K::from_index(i), v))
    }

    /// All entities with their payloads, mutable.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (K, &mut V)> {
        self.items
            .iter_mut()
            .enumerate()
            .map(|(i, v)| (K::from_index(i), v))
    }
}

impl<K: Entity, V> Default for PrimaryMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Entity, V> Index<K> for PrimaryMap<K, V> {
    type Output = V;
    fn index(&self, key: K) -> &V {
        &self.items[key.index()]
    }
}

impl<K: Entity, V> IndexMut<K> for PrimaryMap<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.items[key.index()]
    }
}

impl<K: Entity, V> FromIterator<V> for PrimaryMap<K, V> {
    fn from_iter<I: IntoIterator<Item = V>>(items: I) -> Self {
        Self {
            items: items.into_iter().collect(),
            key: PhantomData,
        }
    }
}

impl<K: Entity + std::fmt::Debug, V: std::fmt::Debug> std::fmt::Debug for PrimaryMap<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
