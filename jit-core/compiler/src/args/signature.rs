//! What of an argument selects the specialization: what rustc knows of its type, and what is known of its value.

use std::hash::{Hash, Hasher};

use crate::ir::{ParamFacts, TypeDigest, TypeForm};
use crate::specialize::{ArgumentKind, HostType};
use crate::value::{DeviceType, KernelType};

/// What is known about an argument's value, from the value itself. Part of the launch signature:
/// other facts are another specialization.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ArgFacts(pub(super) u8);

impl ArgFacts {
    pub(super) const EQUAL_ONE: u8 = 1;
    pub(super) const DIVISIBLE_BY_16: u8 = 2;
    pub(super) const ALIGNED_16: u8 = 4;
    pub(super) const WIDE: u8 = 8;
    pub(super) const LONG: u8 = 16;

    /// An integer equal to 1.
    #[doc(hidden)]
    pub fn equal_one(self) -> bool {
        self.0 & Self::EQUAL_ONE != 0
    }

    /// An integer divisible by 16.
    #[doc(hidden)]
    pub fn divisible_by_16(self) -> bool {
        self.0 & Self::DIVISIBLE_BY_16 != 0
    }

    /// An address divisible by 16.
    #[doc(hidden)]
    pub fn aligned_16(self) -> bool {
        self.0 & Self::ALIGNED_16 != 0
    }

    /// A slice of 2^31 elements or more.
    #[doc(hidden)]
    pub fn long(self) -> bool {
        self.0 & Self::LONG != 0
    }

    /// A slice of 2^32 elements or more.
    #[doc(hidden)]
    pub fn wide(self) -> bool {
        self.0 & Self::WIDE != 0
    }
}

/// What rustc knows of an argument, and what an address tells. There is one for each type, way to pass it and facts,
/// save where several parts of a program have one each.
pub(super) struct Passed {
    /// The type of the value or of the elements, as the IR has it.
    pub(super) ty: TypeDigest,
    /// Value, slice or pointer; `None` of what is still to become arguments.
    pub(super) kind: Option<ArgumentKind>,
    /// An integer of 32 or 64 bits is one of which something is known when it is passed.
    pub(super) is_integer: bool,
    /// Of a value on the host, in bytes.
    pub(super) size: usize,
    pub(super) align: usize,
    pub(super) host: HostType,
    /// A function, as the name is no constant to rustc.
    pub(super) rust_name: fn() -> &'static str,
    /// What is known of each argument that has this one.
    pub(super) facts: ArgFacts,
}

impl Passed {
    /// What an argument has that is not passed by its words: no kernel's parameter is like it.
    pub(super) const APART: &'static Passed = &Passed::later::<()>();

    pub(super) const fn new<T: KernelType>(kind: ArgumentKind) -> Passed {
        Passed {
            ty: T::FORM.digest(),
            kind: Some(kind),
            is_integer: matches!(kind, ArgumentKind::Value) && is_one_of::<T>(INTEGERS),
            size: size_of::<T>(),
            align: align_of::<T>(),
            host: HostType(T::FORM),
            rust_name: std::any::type_name::<T>,
            facts: ArgFacts(0),
        }
    }

    /// Of slices, by the facts about their address and length.
    pub(super) const fn slices<T: KernelType>(mutable: bool) -> [Passed; 6] {
        const fn with<T: KernelType>(mutable: bool, facts: u8) -> Passed {
            let facts = ArgFacts(facts);
            let passed = Passed::new::<T>(ArgumentKind::Slice { mutable });
            Passed { facts, ..passed }
        }
        const ALIGNED: u8 = ArgFacts::ALIGNED_16;
        const LONG: u8 = ArgFacts::LONG;
        const WIDE: u8 = ArgFacts::WIDE | LONG;
        [
            with::<T>(mutable, 0),
            with::<T>(mutable, ALIGNED),
            with::<T>(mutable, LONG),
            with::<T>(mutable, ALIGNED | LONG),
            with::<T>(mutable, WIDE),
            with::<T>(mutable, ALIGNED | WIDE),
        ]
    }

    /// The one of [`Passed::slices`] for a slice.
    #[inline]
    pub(super) fn of_slice(
        slices: &'static [Passed; 6],
        address: u64,
        length: u64,
    ) -> &'static Passed {
        let aligned = usize::from(address.is_multiple_of(16));
        // Shorter than 2^31, shorter than 2^32, or longer.
        let class = (length / ParamFacts::SHORT).min(2) as usize;
        &slices[class << 1 | aligned]
    }

    /// What `T` is a name for, and no argument yet.
    pub(super) const fn later<T: ?Sized>() -> Passed {
        Passed {
            ty: TypeForm::UNIT.digest(),
            kind: None,
            is_integer: false,
            size: 0,
            align: 1,
            host: HostType(&TypeForm::UNIT),
            rust_name: std::any::type_name::<T>,
            facts: ArgFacts(0),
        }
    }

    /// The digest, the way to pass it and its place as two numbers.
    #[inline(always)]
    pub(super) fn words(&self) -> (u64, u64) {
        let kind = self.kind_number() << 48 | (self.align as u64) << 40 | self.size as u64;
        (self.ty.leading_word(), self.ty.second_word() ^ kind)
    }

    #[inline(always)]
    fn kind_number(&self) -> u64 {
        match self.kind {
            Some(ArgumentKind::Value) | None => 0,
            Some(ArgumentKind::Slice { mutable }) => 1 + u64::from(mutable),
            Some(ArgumentKind::Pointer { mutable }) => 3 + u64::from(mutable),
        }
    }

    fn is(&self, other: &Passed) -> bool {
        self.kind.is_some() && (self.ty, self.kind) == (other.ty, other.kind)
    }
}

/// The integers that facts are known about.
const INTEGERS: [&TypeForm; 4] = [u32::FORM, i32::FORM, u64::FORM, i64::FORM];

const fn is_one_of<T: KernelType>(forms: [&TypeForm; 4]) -> bool {
    let own = T::FORM.digest().leading_word();
    let mut at = 0;
    while at < forms.len() {
        if forms[at].digest().leading_word() == own {
            return true;
        }
        at += 1;
    }
    false
}

/// What of an argument selects the specialization: type, value or slice or pointer, read-only or mutable, facts; of a
/// part of a view its field.
#[derive(Copy, Clone)]
pub struct ArgSignature {
    pub(super) passed: &'static Passed,
    pub(super) field: Option<&'static str>,
    pub(super) facts: ArgFacts,
}

impl PartialEq for ArgSignature {
    /// Two loads and their comparison for most arguments: this is on the launch's hot path.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.facts == other.facts && self.is_of_type(other)
    }
}

impl Eq for ArgSignature {}

impl Hash for ArgSignature {
    /// One word an argument: this is on the launch's hot path. Equality compares everything.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let kind = self.passed.kind_number();
        state.write_u64(self.passed.ty.leading_word() ^ ((kind << 8) | u64::from(self.facts.0)));
        if let Some(field) = self.field {
            field.hash(state);
        }
    }
}

impl std::fmt::Debug for ArgSignature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Passed { ty, kind, .. } = self.passed;
        write!(f, "{ty:?} {kind:?} {:?} {:?}", self.field, self.facts)
    }
}

impl ArgSignature {
    /// The type of the value or of the elements, as the IR has it.
    #[doc(hidden)]
    pub fn ty(&self) -> TypeDigest {
        self.passed.ty
    }

    /// The facts.
    #[doc(hidden)]
    pub fn facts(&self) -> ArgFacts {
        self.facts
    }

    pub(super) const fn of(passed: &'static Passed) -> ArgSignature {
        ArgSignature {
            passed,
            field: None,
            facts: passed.facts,
        }
    }

    /// Whether the argument is a slice.
    #[doc(hidden)]
    pub fn is_slice(&self) -> bool {
        matches!(self.passed.kind, Some(ArgumentKind::Slice { .. }))
    }

    /// Whether the kernel may write there.
    #[doc(hidden)]
    pub fn writes(&self) -> bool {
        self.is_mutable()
    }

    #[inline]
    pub(super) fn is_mutable(&self) -> bool {
        matches!(
            self.passed.kind,
            Some(ArgumentKind::Slice { mutable: true } | ArgumentKind::Pointer { mutable: true })
        )
    }

    #[inline]
    fn is_of_type(&self, other: &Self) -> bool {
        let is_one = std::ptr::eq(self.passed, other.passed);
        is_one && self.passed.kind.is_some() && self.field.is_none() && other.field.is_none()
            || self.is_alike(other)
    }

    /// [`ArgSignature::is_of_type`] where that is not to be seen at once.
    #[cold]
    fn is_alike(&self, other: &Self) -> bool {
        self.passed.is(other.passed) && self.field == other.field
    }

    /// The signature without the facts about values that are only compiled in on demand, unless `keep`. What is
    /// known of an address stays.
    #[doc(hidden)]
    pub fn keeping_facts(self, keep: bool) -> Self {
        const OF_VALUES: u8 = ArgFacts::EQUAL_ONE | ArgFacts::DIVISIBLE_BY_16;
        let left_out = if keep { 0 } else { OF_VALUES };
        let facts = ArgFacts(self.facts.0 & !left_out);
        Self { facts, ..self }
    }

    /// Whether code for arguments of the signature `made_for` takes one of this signature, of which more may be known.
    ///
    /// # Errors
    /// Why not.
    #[doc(hidden)]
    pub fn fits(self, made_for: Self) -> Result<(), Unfit> {
        let (given, known) = (self.facts, made_for.facts);
        if !self.is_of_type(&made_for) {
            return Err(Unfit::Type);
        }
        let lacking = [
            (
                given.aligned_16(),
                known.aligned_16(),
                "at an address that is a multiple of 16",
            ),
            (given.equal_one(), known.equal_one(), "equal to 1"),
            (
                given.divisible_by_16(),
                known.divisible_by_16(),
                "a multiple of 16",
            ),
            (
                !given.long(),
                !known.long(),
                "a slice of fewer than 2^31 elements",
            ),
            // The number of bits of a length decides types, so code for longer slices takes no shorter ones.
            (
                given.wide(),
                known.wide(),
                "a slice of 2^32 elements or more",
            ),
            (
                !given.wide(),
                !known.wide(),
                "a slice of fewer than 2^32 elements",
            ),
        ];
        let mut lacking = lacking.into_iter();
        match lacking.find(|(given, known, _)| *known && !given) {
            Some((.., fact)) => Err(Unfit::Fact(fact)),
            None => Ok(()),
        }
    }
}

/// Why code for arguments of other signatures does not take an argument.
#[doc(hidden)]
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The argument has another type.
    Type,
    /// The argument is not what the code was made for.
    Fact(&'static str),
}
