//! Launch arguments: host values on their way to a kernel.
//!
//! [`crate::args!`] turns values, `&buffer` and `&mut buffer` into [`Arg`]s. Borrowing does the
//! aliasing check: rustc does not let one buffer be passed as `&mut` twice, or as `&` and `&mut`.
//! Making an argument allocates nothing unless a by-value struct has more than 16 bytes, or it is a
//! [view](crate::view), which is a list of arguments.

pub mod packed;
mod signature;
mod slots;
#[doc(hidden)]
pub mod words;

use std::any::Any;
use std::ops::RangeInclusive;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::buffer::Memory;
use crate::error::Error;
use crate::runtime::{Buffer, DeviceId, Part, Uses};
use crate::specialize::{ArgumentKind, ArgumentType};
use crate::value::{KernelType, KernelValue, value_bytes, value_words};
use crate::view::{KernelView, ToKernel};
use packed::{Packing, Parameters, pack_slice, pack_value};
use signature::Passed;
pub use signature::{ArgFacts, ArgSignature, Unfit};
pub use slots::{
    GraphSample, GraphSamples, ReadSlot, RecordedStruct, RecordedValue, Slot, SlotId, SlotMut,
    ValueSlot,
};
#[doc(hidden)]
pub use slots::{Place, Sample, Tag, bytes_of_value};

/// One argument of a launch. What is made of `&mut Buffer` is that borrow, and as little as a borrow can
/// there be two of it: two parameters would write one buffer, each as if it were alone.
///
/// ```compile_fail,E0277
/// fn copied<T: Clone>() {}
/// copied::<kiln_compiler::args::Arg<'static>>();
/// ```
///
/// ```compile_fail,E0508
/// # use kiln_compiler::args::{Arg, Converted};
/// fn twice<'a>(args: &'a [Arg<'a>]) -> [Arg<'a>; 2] {
///     let list = || Converted::of::<()>(args, |_, _| unreachable!()).unwrap().unwrap();
///     let (first, second) = (list(), list());
///     [first.args()[0], second.args()[0]]
/// }
/// ```
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::args::{Arg, IntoArg};
///
/// #[kernel]
/// fn axpy(a: f32, x: &[f32], y: &mut [f32]) {
///     y[0] += a * x[0];
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let (x, mut y) = (jit.upload(&[2.0f32])?, jit.upload(&[1.0f32])?);
/// let a = 3.0f32.into_arg();
/// assert_eq!(a.type_name(), "f32");
/// assert!(a.duplicate().is_some() && (&mut y).into_arg().duplicate().is_none());
/// let list: [Arg<'_>; 3] = [a, (&x).into_arg(), (&mut y).into_arg()];
/// assert!(list[1].type_form().contains("f32"));
/// jit.launch(&axpy, 1, 1, &list)?; // as `args!(3.0f32, &x, &mut y)` does
/// assert_eq!(y.to_vec()?, [7.0]);
/// # Ok(())
/// # }
/// ```
pub struct Arg<'a> {
    /// What rustc knows of it, and what is known of an address, but not of a value; [`Passed::APART`] of what is not
    /// passed by its words.
    passed: &'static Passed,
    /// A value of at most 16 bytes, as it lies in memory, or the address of a slice's first element and their number;
    /// what follows is zeros.
    words: [u64; 2],
    rest: Rest<'a>,
}

/// What an argument is besides its words.
enum Rest<'a> {
    /// A value, which is all there.
    Value,
    /// Where the elements of a slice lie that kernels read.
    Read(&'a Memory),
    /// Where the elements of a slice lie that kernels may write.
    Written(&'a Memory),
    /// What is not passed by its words: apart, so that what each argument's end costs is one comparison.
    Apart(Box<Apart<'a>>),
}

/// An argument that is not passed by its words.
struct Apart<'a> {
    /// With the field that it is, if it is a part of a view.
    signature: ArgSignature,
    what: What<'a>,
}

enum What<'a> {
    /// A host value for a hook to convert.
    Host(&'a (dyn Any + Send + Sync)),
    /// A value of more than 16 bytes, as it lies in memory; padding is zeros.
    Bytes(Box<[u8]>),
    /// The arguments that a view is.
    Parts(Box<[Arg<'a>]>),
    /// One of those, which is no view.
    Field(Arg<'a>),
    /// A number that the kernel's type has no room for, which no launch passes.
    OutOfRange(OutOfRange),
    /// What cannot be passed, and why.
    Refused(Arc<Why>),
    /// A slice, whose uses whoever passes it names apart.
    Shared { words: [u64; 2], device: DeviceId },
}

/// Why an argument cannot be passed.
type Why = dyn Fn() -> Error + Send + Sync;

/// The bytes of an argument.
#[doc(hidden)]
pub enum Payload<'p> {
    /// A value of at most 8 bytes, as it lies in memory; padding, and what follows, is zeros.
    Word(u64),
    /// One of at most 16 bytes, in the same way.
    Words([u64; 2]),
    /// A slice of a buffer.
    Slice {
        /// Device address of the first element.
        address: u64,
        /// Number of elements.
        length: u64,
    },
    /// A value of more than 16 bytes, as it lies in memory; padding is zeros.
    Bytes(&'p [u8]),
    /// A host value for a hook to convert.
    Host(&'p (dyn Any + Send + Sync)),
    /// A view, which is several arguments.
    View,
    /// A number that the kernel's type has no room for, which no launch passes.
    OutOfRange(&'p OutOfRange),
    /// What cannot be passed, and why.
    Refused(&'p Why),
}

impl Payload<'_> {
    /// All bytes of a value, with what follows in its last word; `None` if it is none.
    #[doc(hidden)]
    pub fn whole(&self) -> Option<SmallVec<[u8; 16]>> {
        match self {
            Payload::Bytes(bytes) => Some(SmallVec::from_slice(bytes)),
            _ => self.bytes(16),
        }
    }

    /// The first bytes of a value, as it lies in memory. `None` if there are not so many, or it is none.
    #[doc(hidden)]
    pub fn bytes(&self, count: usize) -> Option<SmallVec<[u8; 16]>> {
        let of_words = |words: [u64; 2]| words.into_iter().flat_map(u64::to_le_bytes).collect();
        let mut bytes: SmallVec<[u8; 16]> = match self {
            Payload::Word(word) => of_words([*word, 0]),
            Payload::Words(words) => of_words(*words),
            Payload::Bytes(bytes) => SmallVec::from_slice(bytes),
            Payload::Slice { .. }
            | Payload::Host(_)
            | Payload::View
            | Payload::OutOfRange(_)
            | Payload::Refused(_) => return None,
        };
        (count <= bytes.len()).then(|| {
            bytes.truncate(count);
            bytes
        })
    }
}

/// A number of the host that its type in kernels has no room for.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct OutOfRange {
    /// The number.
    pub value: i128,
    /// The type's name, on the host and in kernels.
    pub ty: &'static str,
    /// The type as kernels have it, as Rust has its least and greatest number.
    pub range: RangeInclusive<i128>,
    /// The type that has room.
    pub wider: &'static str,
}

impl std::fmt::Debug for Arg<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arg({})", self.type_name())
    }
}

impl<'a> Arg<'a> {
    /// What is not passed by its words.
    fn apart(signature: ArgSignature, what: What<'a>) -> Arg<'a> {
        Arg {
            passed: Passed::APART,
            words: [0; 2],
            rest: Rest::Apart(Box::new(Apart { signature, what })),
        }
    }

    /// A value for a hook to convert, or a slot, which is of the type of what it stands for.
    fn host(signature: ArgSignature, value: &'a (dyn Any + Send + Sync)) -> Arg<'a> {
        Arg::apart(signature, What::Host(value))
    }

    /// An argument in the place of a slice that cannot be passed: each launch with it is this error. What a type of a
    /// library gives whose elements lie somewhere else than a slice has them.
    ///
    /// ```
    /// use kiln::core::args::{Arg, IntoArg};
    /// use kiln::core::error::LibraryError;
    /// use kiln::prelude::*;
    ///
    /// struct List(Option<Buffer<f32>>);
    ///
    /// impl<'a> IntoArg<'a> for &'a List {
    ///     fn into_arg(self) -> Arg<'a> {
    ///         match &self.0 {
    ///             Some(buffer) => buffer.into_arg(),
    ///             None => Arg::refused_slice::<f32>(false, || LibraryError::new(std::fmt::Error).into()),
    ///         }
    ///     }
    /// }
    ///
    /// #[kernel]
    /// fn copy(x: &[f32], y: &mut [f32]) {
    ///     y[0] = x[0];
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let (x, mut y) = (List(Some(jit.upload(&[7.0f32])?)), jit.zeros::<f32>(1)?);
    /// jit.launch(&copy, 1, 1, args!(&x, &mut y))?;
    /// assert_eq!(y.to_vec()?, [7.0]);
    /// let refused = jit.launch(&copy, 1, 1, args!(&List(None), &mut y)).unwrap_err();
    /// assert!(refused.library::<std::fmt::Error>().is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn refused_slice<T: KernelType>(
        mutable: bool,
        why: impl Fn() -> Error + Send + Sync + 'static,
    ) -> Arg<'a> {
        let passed = match mutable {
            true => const { &Passed::slices::<T>(true) },
            false => const { &Passed::slices::<T>(false) },
        };
        let passed = Passed::of_slice(passed, 0, 0);
        Arg::apart(ArgSignature::of(passed), What::Refused(Arc::new(why)))
    }

    /// The argument's type as Rust writes it.
    pub fn type_name(&self) -> String {
        self.type_of(&(self.type_signature().passed.rust_name)())
    }

    /// The argument's type as the IR has it, structs with their fields: two types of one name are
    /// told apart.
    pub fn type_form(&self) -> String {
        self.type_of(self.type_signature().passed.host.0)
    }

    fn type_of(&self, element: &dyn std::fmt::Display) -> String {
        let signature = self.type_signature();
        let ty = match signature.passed.kind {
            Some(ArgumentKind::Slice { mutable: true }) => format!("&mut [{element}]"),
            Some(ArgumentKind::Slice { mutable: false }) => format!("&[{element}]"),
            Some(ArgumentKind::Pointer { mutable: true }) => format!("*mut {element}"),
            Some(ArgumentKind::Pointer { mutable: false }) => format!("*const {element}"),
            Some(ArgumentKind::Value) | None => element.to_string(),
        };
        match signature.field {
            Some(field) => format!("{field}: {ty}"),
            None => ty,
        }
    }

    /// The arguments that a struct with slices inside is, a field each in the order of the struct, as one.
    /// What `#[derive(KernelView)]` writes; `V` is the struct.
    #[doc(hidden)]
    pub fn view<V: KernelValue>(fields: impl IntoIterator<Item = (&'static str, Arg<'a>)>) -> Self {
        let part = |(field, arg): (&'static str, Arg<'a>)| arg.of_field(field);
        let parts = fields.into_iter().map(part).collect();
        let signature = ArgSignature::of(const { &Passed::later::<V>() });
        Arg::apart(signature, What::Parts(parts))
    }

    fn of_field(self, field: &'static str) -> Self {
        let signature = ArgSignature {
            field: Some(field),
            ..self.type_signature()
        };
        match self.rest {
            Rest::Apart(apart) => Arg::apart(signature, apart.what),
            _ => Arg::apart(signature, What::Field(self)),
        }
    }

    /// Appends the arguments that this is, one if it is no view.
    fn spread(self, out: &mut Vec<Arg<'a>>) {
        match self.rest {
            Rest::Apart(apart) if matches!(apart.what, What::Parts(_)) => {
                if let What::Parts(parts) = apart.what {
                    parts.into_iter().for_each(|part| part.spread(out));
                }
            }
            rest => out.push(Arg { rest, ..self }),
        }
    }

    fn what(&self) -> Option<&What<'a>> {
        match &self.rest {
            Rest::Apart(apart) => Some(&apart.what),
            _ => None,
        }
    }

    /// Whether the argument is passed to a kernel as it is: neither a host value that a hook converts, nor a view.
    fn is_one(&self) -> bool {
        !matches!(self.what(), Some(What::Host(_) | What::Parts(_)))
    }

    /// Whether an argument's words are all that is passed.
    #[inline]
    fn is_words(&self) -> bool {
        self.what().is_none()
    }

    /// Where the elements of a slice lie that is passed by its words, and whether the kernel may write there.
    #[inline]
    fn memory(&self) -> Option<(&'a Memory, bool)> {
        match self.rest {
            Rest::Read(memory) => Some((memory, false)),
            Rest::Written(memory) => Some((memory, true)),
            Rest::Value | Rest::Apart(_) => None,
        }
    }

    /// The argument itself, of a part of a view without its field.
    #[inline]
    fn inner(&self) -> &Self {
        match self.what() {
            Some(What::Field(arg)) => arg,
            _ => self,
        }
    }

    /// A second argument like this one; `None` if there is a buffer as `&mut` in it.
    pub fn duplicate(&self) -> Option<Arg<'a>> {
        (!self.is_mutable()).then(|| self.copied())
    }

    fn is_mutable(&self) -> bool {
        match self.what() {
            Some(What::Parts(parts)) => parts.iter().any(Arg::is_mutable),
            _ => self.type_signature().is_mutable(),
        }
    }

    /// The signature without facts about values.
    #[inline]
    fn type_signature(&self) -> ArgSignature {
        match &self.rest {
            Rest::Apart(apart) => apart.signature,
            _ => ArgSignature::of(self.passed),
        }
    }

    /// What a launch is looked up by.
    #[doc(hidden)]
    #[inline]
    pub fn signature(&self) -> ArgSignature {
        let signature = self.type_signature();
        let facts = ArgFacts(signature.facts.0 | self.value_facts(signature).0);
        ArgSignature { facts, ..signature }
    }

    /// The signature; without the facts about values, that are only compiled in on demand, unless `with_values`. What is
    /// known of an address stays.
    #[doc(hidden)]
    #[inline]
    pub fn signature_keeping(&self, with_values: bool) -> ArgSignature {
        match with_values {
            true => self.signature(),
            false => self.type_signature(),
        }
    }

    /// Facts about an integer of 32 or 64 bits.
    fn value_facts(&self, signature: ArgSignature) -> ArgFacts {
        // What is beyond an integer of 32 bits is zeros.
        let Payload::Word(n) = self.payload() else {
            return ArgFacts::default();
        };
        if !signature.passed.is_integer {
            return ArgFacts::default();
        }
        let divisible = u8::from(n.is_multiple_of(16)) * ArgFacts::DIVISIBLE_BY_16;
        ArgFacts((u8::from(n == 1) * ArgFacts::EQUAL_ONE) | divisible)
    }

    #[doc(hidden)]
    #[inline]
    pub fn payload(&self) -> Payload<'_> {
        let slice = |[address, length]: [u64; 2]| Payload::Slice { address, length };
        match self.what() {
            None if self.memory().is_some() => slice(self.words),
            None if self.passed.size <= 8 => Payload::Word(self.words[0]),
            None => Payload::Words(self.words),
            Some(What::Host(value)) => Payload::Host(*value),
            Some(What::Bytes(bytes)) => Payload::Bytes(bytes),
            Some(What::Parts(_)) => Payload::View,
            Some(What::Field(arg)) => arg.payload(),
            Some(What::OutOfRange(number)) => Payload::OutOfRange(number),
            Some(What::Refused(why)) => Payload::Refused(&**why),
            Some(What::Shared { words, .. }) => slice(*words),
        }
    }

    /// The device that the memory behind it is of, if there is any.
    #[doc(hidden)]
    #[inline]
    pub fn device(&self) -> Option<DeviceId> {
        match self.what() {
            None => self.memory().map(|(memory, _)| memory.id()),
            Some(What::Field(arg)) => arg.device(),
            Some(What::Shared { device, .. }) => Some(*device),
            _ => None,
        }
    }

    /// The uses of the buffer behind it, which a launch orders itself behind, and whether the kernel may write there.
    #[doc(hidden)]
    #[inline]
    pub fn uses(&self) -> Option<(&'a Uses, bool)> {
        let memory = self.inner().memory();
        memory.map(|(memory, writes)| (memory.uses(), writes))
    }

    fn copied(&self) -> Arg<'a> {
        let what = |what: &What<'a>| match what {
            What::Host(value) => What::Host(*value),
            What::Bytes(bytes) => What::Bytes(bytes.clone()),
            What::Parts(parts) => What::Parts(parts.iter().map(Arg::copied).collect()),
            What::Field(arg) => What::Field(arg.copied()),
            What::OutOfRange(number) => What::OutOfRange(number.clone()),
            What::Refused(why) => What::Refused(why.clone()),
            What::Shared { words, device } => What::Shared {
                words: *words,
                device: *device,
            },
        };
        let rest = match &self.rest {
            Rest::Value => Rest::Value,
            Rest::Read(memory) => Rest::Read(memory),
            Rest::Written(memory) => Rest::Written(memory),
            Rest::Apart(apart) => return Arg::apart(apart.signature, what(&apart.what)),
        };
        Arg { rest, ..*self }
    }

    #[doc(hidden)]
    pub fn argument_type(&self) -> ArgumentType {
        let ArgSignature { passed, field, .. } = self.type_signature();
        ArgumentType {
            host: passed.host,
            rust_name: (passed.rust_name)(),
            kind: passed.kind.unwrap_or(ArgumentKind::Value),
            field,
        }
    }
}

/// The list of arguments that a launch passes in place of one with host values or views in it. It gives no
/// argument away: a buffer as `&mut` would be in two lists, and one launch could have it twice.
#[doc(hidden)]
pub struct Converted<'a>(Vec<Arg<'a>>);

impl<'a> Converted<'a> {
    /// The list for `args`, whose host values become what `convert` makes of position and value; `None` if all are
    /// passed as they are.
    ///
    /// # Errors
    /// The first of `convert`.
    #[inline]
    pub fn of<E>(
        args: &'a [Arg<'_>],
        convert: impl FnMut(usize, &'a (dyn Any + Send + Sync)) -> Result<Arg<'a>, E>,
    ) -> Result<Option<Self>, E> {
        if args.iter().all(Arg::is_one) {
            return Ok(None);
        }
        Self::new(args, convert).map(Some)
    }

    fn new<E>(
        args: &'a [Arg<'_>],
        mut convert: impl FnMut(usize, &'a (dyn Any + Send + Sync)) -> Result<Arg<'a>, E>,
    ) -> Result<Self, E> {
        let mut list = Vec::with_capacity(2 * args.len());
        for (position, arg) in args.iter().enumerate() {
            let arg = match arg.what() {
                Some(What::Host(value)) => convert(position, *value)?,
                _ => arg.copied(),
            };
            arg.spread(&mut list);
        }
        Ok(Converted(list))
    }

    /// The arguments.
    pub fn args(&self) -> &[Arg<'a>] {
        &self.0
    }
}

/// Something that can be passed to a kernel: any [`KernelType`] by value, `usize` and `isize`, `&Buffer`,
/// `&mut Buffer`, `&x[a..b]` and `&mut x[a..b]` of these, what [becomes a view](ToKernel), and what downstream crates turn into those.
///
/// A `usize` has 32 bits in kernels. A launch with one that does not fit is an error and passes nothing:
///
/// ```
/// use kiln::core::launch::LaunchError;
/// use kiln::prelude::*;
///
/// #[kernel]
/// fn fill(n: usize, x: &mut [f32]) {
///     let i = global_id().x;
///     if i < n {
///         x[i] = 1.0;
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let mut x = jit.zeros::<f32>(4)?;
/// let n = x.len() / 2;
/// fill.launch(&jit, (1, 32), n, &mut x)?; // or `args!(n, &mut x)`
/// assert_eq!(x.to_vec()?, [1.0, 1.0, 0.0, 0.0]);
/// let refused = fill.launch(&jit, (1, 32), 1 << 32, &mut x);
/// assert!(matches!(refused, Err(kiln::Error::Launch(LaunchError::OutOfRange { value: 0x1_0000_0000, .. }))));
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel",
    note = "numbers, `bool`, fixed arrays and `#[derive(KernelType)]` structs are passed by value, buffers as \
            `&buffer` or `&mut buffer`",
    note = "a type of the host is passed as what a `#[derive(KernelView)]` struct sees of it: implement \
            `ToKernel` for it; in a `#[kernel]` the struct is written with its lifetime, `View<'_>`"
)]
pub trait IntoArg<'a> {
    /// The argument.
    fn into_arg(self) -> Arg<'a>;

    /// Writes the argument to the block of a launch, if it is of a kind that is written so.
    #[doc(hidden)]
    #[inline(always)]
    fn pack<'b>(&'b self, packing: Packing, _to: &mut Parameters<'_, 'b>) -> Packing {
        packing.apart()
    }
}

impl<'a> IntoArg<'a> for Arg<'a> {
    fn into_arg(self) -> Arg<'a> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: ToKernel<'a>> IntoArg<'a> for T {
    fn into_arg(self) -> Arg<'a> {
        T::View::arg(self.to_kernel())
    }

    #[inline(always)]
    fn pack<'b>(&'b self, packing: Packing, to: &mut Parameters<'_, 'b>) -> Packing {
        ToKernel::pack(self, packing, to)
    }
}

/// A value as an argument.
#[inline]
pub(crate) fn value_arg<'a, T: KernelType>(value: &T) -> Arg<'a> {
    value_arg_of(const { &Passed::new::<T>(ArgumentKind::Value) }, value)
}

#[inline]
fn value_arg_of<'a, T: KernelType>(passed: &'static Passed, value: &T) -> Arg<'a> {
    if size_of::<T>() > 16 {
        let bytes = value_bytes(value).into_boxed_slice();
        return Arg::apart(ArgSignature::of(passed), What::Bytes(bytes));
    }
    Arg {
        passed,
        words: value_words(value),
        rest: Rest::Value,
    }
}

macro_rules! narrowed {
    ($($host:ident => $kernel:ident, or $wider:ident;)*) => {$(
        /// Kernels have 32 bits of it. A number that needs more is an error of the launch.
        #[diagnostic::do_not_recommend]
        impl<'a> KernelView<'a> for $host {
            type Args = $host;

            fn arg(value: $host) -> Arg<'a> {
                let passed = const {
                    &Passed {
                        rust_name: || stringify!($host),
                        ..Passed::new::<$kernel>(ArgumentKind::Value)
                    }
                };
                match $kernel::try_from(value) {
                    Ok(value) => value_arg_of(passed, &value),
                    Err(_) => {
                        let number = OutOfRange {
                            value: value as i128,
                            ty: stringify!($host),
                            range: i128::from($kernel::MIN)..=i128::from($kernel::MAX),
                            wider: stringify!($wider),
                        };
                        Arg::apart(ArgSignature::of(passed), What::OutOfRange(number))
                    }
                }
            }

            #[inline(always)]
            fn pack<'b>(
                value: &'b $host,
                packing: Packing,
                to: &mut Parameters<'_, 'b>,
            ) -> Packing {
                match $kernel::try_from(*value) {
                    Ok(value) => pack_value(&value, packing, to),
                    Err(_) => packing.apart(),
                }
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'a> ToKernel<'a> for $host {
            type View = $host;

            fn to_kernel(self) -> $host {
                self
            }

            #[inline(always)]
            fn pack<'b>(&'b self, packing: Packing, to: &mut Parameters<'_, 'b>) -> Packing {
                <$host as KernelView<'a>>::pack(self, packing, to)
            }
        }
    )*};
}

narrowed! {
    usize => u32, or u64;
    isize => i32, or i64;
}

impl<'a, T: KernelType> IntoArg<'a> for &'a Part<T> {
    #[inline]
    fn into_arg(self) -> Arg<'a> {
        slice_arg(self, false)
    }

    #[inline(always)]
    fn pack<'b>(&'b self, packing: Packing, to: &mut Parameters<'_, 'b>) -> Packing {
        pack_slice(self, false, packing, to)
    }
}

impl<'a, T: KernelType> IntoArg<'a> for &'a mut Part<T> {
    #[inline]
    fn into_arg(self) -> Arg<'a> {
        let part: &'a Part<T> = self;
        slice_arg(part, true)
    }

    #[inline(always)]
    fn pack<'b>(&'b self, packing: Packing, to: &mut Parameters<'_, 'b>) -> Packing {
        pack_slice(self, true, packing, to)
    }
}

impl<'a, T: KernelType> IntoArg<'a> for &'a Buffer<T> {
    #[inline]
    fn into_arg(self) -> Arg<'a> {
        let part: &'a Part<T> = self;
        part.into_arg()
    }

    #[inline(always)]
    fn pack<'b>(&'b self, packing: Packing, to: &mut Parameters<'_, 'b>) -> Packing {
        pack_slice(self, false, packing, to)
    }
}

impl<'a, T: KernelType> IntoArg<'a> for &'a mut Buffer<T> {
    #[inline]
    fn into_arg(self) -> Arg<'a> {
        let part: &'a mut Part<T> = self;
        part.into_arg()
    }

    #[inline(always)]
    fn pack<'b>(&'b self, packing: Packing, to: &mut Parameters<'_, 'b>) -> Packing {
        pack_slice(self, true, packing, to)
    }
}

/// A buffer that a launch shares, to be written; whoever passes it holds it until the launch was made, and names its
/// uses.
pub(crate) fn shared_arg<T: KernelType>(buffer: &Arc<Buffer<T>>) -> Arg<'static> {
    shared_slice_arg(buffer)
}

/// The argument for a slice that is borrowed in another way than by it.
fn shared_slice_arg<T: KernelType>(part: &Part<T>) -> Arg<'static> {
    let arg = slice_arg(part, true);
    let (words, device) = (arg.words, part.device_id());
    Arg::apart(arg.type_signature(), What::Shared { words, device })
}

/// The argument. What is known of its address is read off that: a part may begin anywhere.
#[inline]
fn slice_arg<T: KernelType>(part: &Part<T>, mutable: bool) -> Arg<'_> {
    let passed = match mutable {
        true => const { &Passed::slices::<T>(true) },
        false => const { &Passed::slices::<T>(false) },
    };
    let (address, length) = (part.address(), part.len() as u64);
    Arg {
        passed: Passed::of_slice(passed, address, length),
        words: [address, length],
        rest: match mutable {
            true => Rest::Written(part.memory()),
            false => Rest::Read(part.memory()),
        },
    }
}

/// A host value that a hook's [`crate::hook::Hook::convert_argument`] turns into an argument.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::args::{IntoArg, host};
/// use kiln::core::hook::Hook;
///
/// struct Celsius(f64);
///
/// #[kernel]
/// fn warm(x: &mut [f32], kelvin: f32) {
///     x[0] += kelvin;
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let kelvin = Hook::new("kelvin").convert_argument(|value| {
///     let celsius = value.downcast_ref::<Celsius>();
///     Ok(celsius.map(|celsius| ((celsius.0 + 273.15) as f32).into_arg()))
/// });
/// let jit = Jit::builder().hook(kelvin).build()?;
/// let mut x = jit.zeros::<f32>(1)?;
/// jit.launch(&warm, 1, 1, &[(&mut x).into_arg(), host(&Celsius(0.0))])?;
/// assert_eq!(x.to_vec()?, [273.15]);
/// # Ok(())
/// # }
/// ```
pub fn host<T: Any + Send + Sync>(value: &T) -> Arg<'_> {
    Arg::host(ArgSignature::of(const { &Passed::later::<T>() }), value)
}

/// The arguments of a launch: `args!(3.0f32, &x, &mut y)`.
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => {
        &[$($crate::args::IntoArg::into_arg($arg)),*] as &[$crate::args::Arg<'_>]
    };
}
