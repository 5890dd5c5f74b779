//! What a launch is, as far as its code goes: as it is looked up, borrowed from the launch, and as it is
//! kept, with what it needs of its own. Looking up copies nothing and allocates nothing, however many
//! arguments and const arguments there are.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

use kiln_compiler::args::words::{Known, Places, are_words};
use kiln_compiler::args::{Arg, ArgSignature};
use kiln_compiler::code::KernelInfo;
use kiln_compiler::definition::Fingerprint;

/// A launch to be looked up.
#[derive(Copy, Clone)]
pub(crate) struct Launched<'a> {
    /// The kernel's content.
    pub(crate) kernel: Fingerprint,
    pub(crate) consts: Consts<'a>,
    pub(crate) args: Signatures<'a>,
}

/// Const arguments by name, in any order; no name comes twice.
#[derive(Copy, Clone)]
pub(crate) enum Consts<'a> {
    /// The const arguments of a kernel.
    Bound(&'a [(String, i128)]),
    /// The const arguments that a launch gives.
    Given(&'a [(&'a str, i128)]),
}

impl<'a> Consts<'a> {
    #[inline(always)]
    fn len(self) -> usize {
        match self {
            Consts::Bound(list) => list.len(),
            Consts::Given(list) => list.len(),
        }
    }

    /// None, which is what most kernels have.
    #[inline(always)]
    fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = (&'a str, i128)> {
        let (bound, given) = match self {
            Consts::Bound(list) => (list, &[][..]),
            Consts::Given(list) => (&[][..], list),
        };
        let bound = bound.iter().map(|(name, value)| (name.as_str(), *value));
        bound.chain(given.iter().copied())
    }

    /// A hash that is the same for the same values, in any order.
    fn hash(self) -> u64 {
        let spread = |value: i128| (value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self.len() {
            // Most kernels have none.
            0 => 0,
            _ => self.iter().fold(0u64, |sum, (_, value)| {
                sum.wrapping_add(spread(value).rotate_left(32))
            }),
        }
    }

    /// Whether these are the const arguments.
    #[inline(always)]
    pub(super) fn are(self, kept: &[(String, i128)]) -> bool {
        kept.is_empty() && self.is_empty() || self.same(Consts::Bound(kept))
    }

    #[inline(never)]
    fn same(self, other: Consts<'_>) -> bool {
        let known = |(name, value)| other.iter().any(|o| o == (name, value));
        self.len() == other.len() && self.iter().all(known)
    }
}

/// What of the arguments selects the specialization.
#[derive(Copy, Clone)]
pub(crate) enum Signatures<'a> {
    Kept(&'a [ArgSignature]),
    /// Of these arguments. Unless `facts` are compiled in, launches that differ only in them are the
    /// same.
    Of {
        args: &'a [Arg<'a>],
        facts: bool,
    },
}

impl<'a> Signatures<'a> {
    fn iter(self) -> impl Iterator<Item = ArgSignature> + 'a {
        let (kept, args, facts) = match self {
            Signatures::Kept(kept) => (kept, &[][..], false),
            Signatures::Of { args, facts } => (&[][..], args, facts),
        };
        let of = move |arg: &Arg<'_>| arg.signature_keeping(facts);
        kept.iter().copied().chain(args.iter().map(of))
    }

    fn hash<H: Hasher>(self, state: &mut H) {
        match self {
            Signatures::Kept(kept) => kept.iter().for_each(|signature| signature.hash(state)),
            Signatures::Of { args, facts } => {
                let mut of = |arg: &Arg<'_>| arg.signature_keeping(facts).hash(state);
                args.iter().for_each(&mut of);
            }
        }
    }

    /// Whether these are the signatures.
    fn are(self, kept: &[ArgSignature]) -> bool {
        match self {
            Signatures::Kept(own) => own == kept,
            Signatures::Of { args, facts } => are_signatures(args, kept, facts),
        }
    }

    fn same(self, other: Signatures<'_>) -> bool {
        match (self, other) {
            // What a look-up compares.
            (Signatures::Kept(kept), of @ Signatures::Of { .. })
            | (of @ Signatures::Of { .. }, Signatures::Kept(kept)) => of.are(kept),
            _ => self.iter().eq(other.iter()),
        }
    }
}

/// Whether arguments have these signatures.
fn are_signatures(args: &[Arg<'_>], signatures: &[ArgSignature], facts: bool) -> bool {
    let mut pairs = signatures.iter().zip(args);
    let same =
        |(signature, arg): (&ArgSignature, &Arg<'_>)| *signature == arg.signature_keeping(facts);
    signatures.len() == args.len() && pairs.all(same)
}

/// The signatures that the arguments of launches are compared with, again and again.
#[derive(Clone)]
pub(crate) struct KeptSignatures {
    list: Box<[ArgSignature]>,
    facts: bool,
    /// By which the arguments of most launches are known again.
    known: Option<Known>,
    /// Whether arguments like these, passed by their words, lie in the block as the layout's [`Places`] say.
    have_places: bool,
}

/// How arguments are passed that have the signatures of code.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Passing {
    /// By their words, as the code's [`Places`] say.
    Words,
    /// Each as it is asked to be.
    Other,
}

impl KeptSignatures {
    /// The signatures of arguments of a kernel, with the facts about values or without.
    pub(crate) fn of(args: &[Arg<'_>], facts: bool, kernel: &KernelInfo) -> KeptSignatures {
        let have_places = Places::of(kernel).is_some_and(|places| places.take(args));
        let list = args.iter().map(|arg| arg.signature_keeping(facts));
        KeptSignatures {
            list: list.collect(),
            facts,
            known: Known::of(args).filter(|_| have_places && !facts),
            have_places,
        }
    }

    /// Whether arguments have these signatures and are passed by their words, as far as that is to be seen at once.
    #[inline(always)]
    pub(crate) fn are_at_once(&self, args: &[Arg<'_>]) -> bool {
        self.known.as_ref().is_some_and(|known| known.are_of(args))
    }

    /// How arguments are passed, if they have these signatures.
    #[inline(always)]
    pub(crate) fn passing(&self, args: &[Arg<'_>]) -> Option<Passing> {
        match self.are_at_once(args) {
            true => Some(Passing::Words),
            false => self.passing_of_alike(args),
        }
    }

    /// Of types that several parts of a program have one of each, views, facts about values.
    #[cold]
    fn passing_of_alike(&self, args: &[Arg<'_>]) -> Option<Passing> {
        let by_words = self.have_places && are_words(args);
        are_signatures(args, &self.list, self.facts).then_some(match by_words {
            true => Passing::Words,
            false => Passing::Other,
        })
    }
}

impl Hash for Launched<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The fingerprint is uniform already; its first half spreads kernels over the map, and
        // equality compares all of it. Values of const arguments do, in any order.
        state.write_u64(self.kernel.leading_bytes() ^ self.consts.hash());
        self.args.hash(state);
    }
}

impl PartialEq for Launched<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.kernel == other.kernel && self.args.same(other.args) && self.consts.same(other.consts)
    }
}

impl Eq for Launched<'_> {}

/// A launch as it is kept: the key of the map.
#[derive(Clone)]
pub(crate) struct LaunchKey {
    kernel: Fingerprint,
    consts: Box<[(String, i128)]>,
    args: Box<[ArgSignature]>,
}

impl From<Launched<'_>> for LaunchKey {
    fn from(launched: Launched<'_>) -> LaunchKey {
        let own = |(name, value): (&str, i128)| (name.to_owned(), value);
        LaunchKey {
            kernel: launched.kernel,
            consts: launched.consts.iter().map(own).collect(),
            args: launched.args.iter().collect(),
        }
    }
}

/// What is borrowed, and what borrows: the map looks for either among its keys.
pub(crate) trait AsLaunched {
    fn as_launched(&self) -> Launched<'_>;
}

impl AsLaunched for Launched<'_> {
    fn as_launched(&self) -> Launched<'_> {
        *self
    }
}

impl AsLaunched for LaunchKey {
    fn as_launched(&self) -> Launched<'_> {
        Launched {
            kernel: self.kernel,
            consts: Consts::Bound(&self.consts),
            args: Signatures::Kept(&self.args),
        }
    }
}

impl<'a> Borrow<dyn AsLaunched + 'a> for LaunchKey {
    fn borrow(&self) -> &(dyn AsLaunched + 'a) {
        self
    }
}

impl Hash for dyn AsLaunched + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_launched().hash(state);
    }
}

impl PartialEq for dyn AsLaunched + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.as_launched() == other.as_launched()
    }
}

impl Eq for dyn AsLaunched + '_ {}

impl Hash for LaunchKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_launched().hash(state);
    }
}

impl PartialEq for LaunchKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_launched() == other.as_launched()
    }
}

impl Eq for LaunchKey {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use kiln_compiler::build::Kernel;

    /// A launch without arguments.
    fn launched<'a>(kernel: &Kernel, consts: Consts<'a>) -> Launched<'a> {
        let kernel = kernel.fingerprint().expect("no recursion");
        let args = Signatures::Kept(&[]);
        Launched {
            kernel,
            consts,
            args,
        }
    }

    #[test]
    fn const_arguments_are_compared_by_name_and_value_in_any_order() {
        let mut map: HashSet<LaunchKey> = HashSet::new();
        let kernel = Kernel::build("k", |_| ()).expect("a kernel");
        let bound = [("A".to_owned(), 1), ("B".to_owned(), -2)];
        let key = launched(&kernel, Consts::Bound(&bound)).into();
        map.insert(key);
        let finds = |given: &[(&str, i128)]| {
            let launched = launched(&kernel, Consts::Given(given));
            let launched: &(dyn AsLaunched + '_) = &launched;
            map.contains(launched)
        };
        assert!(finds(&[("A", 1), ("B", -2)]));
        assert!(finds(&[("B", -2), ("A", 1)]));
        // In the first the values have changed places, which the hash does not see.
        let others: [&[(&str, i128)]; 5] = [
            &[("A", -2), ("B", 1)],
            &[("A", 1)],
            &[("A", 1), ("C", -2)],
            &[("A", 1), ("B", -2), ("C", 0)],
            &[],
        ];
        for other in others {
            assert!(!finds(other), "{other:?}");
        }
    }
}
