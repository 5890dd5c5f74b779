//! Launch arguments: host values on their way to a kernel.
//!
//! [`crate::args!`] turns values, `&buffer` and `&mut buffer` into [`Arg`]s. Borrowing does the
//! aliasing check: rustc does not let one buffer be passed as `&mut` twice, or as `&` and `&mut`.
//! Making an argument allocates nothing unless a by-value struct has more than 16 bytes, or it is a
//! [view](crate::view), which is a list of arguments.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ir::{TypeDigest, TypeForm};
use crate::runtime::{Buffer, DeviceId, Uses};
use crate::specialize::{ArgumentKind, ArgumentType, HostType};
use crate::value::{KernelType, KernelValue, value_bytes};
use crate::view::{KernelView, ToKernel};

/// What is known about an argument's value, from the value itself. Part of the launch signature:
/// other facts are another specialization.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ArgFacts {
    /// An integer equal to 1.
    pub equal_one: bool,
    /// An integer divisible by 16.
    pub divisible_by_16: bool,
    /// An address divisible by 16.
    pub aligned_16: bool,
    /// A slice of 2^32 elements or more.
    pub wide: bool,
}

/// What of an argument selects the specialization.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ArgSignature {
    /// The type of the value or of the elements, as the IR has it; of a part of a view with its field.
    pub ty: TypeDigest,
    /// Value, slice or pointer; read-only or mutable.
    pub kind: ArgumentKind,
    /// Facts.
    pub facts: ArgFacts,
}

impl Hash for ArgSignature {
    /// Two words an argument: this is on the launch's hot path.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ty.hash(state);
        let kind = match self.kind {
            ArgumentKind::Value => 0u8,
            ArgumentKind::Slice { mutable } => 1 + u8::from(mutable),
            ArgumentKind::Pointer { mutable } => 3 + u8::from(mutable),
        };
        let facts = self.facts;
        let bits = [
            facts.equal_one,
            facts.divisible_by_16,
            facts.aligned_16,
            facts.wide,
        ];
        state.write_u8(
            bits.into_iter()
                .fold(kind, |bits, fact| bits << 1 | u8::from(fact)),
        );
    }
}

impl ArgSignature {
    /// The signature of what is still to become arguments.
    const OF_NONE: ArgSignature = ArgSignature {
        ty: TypeForm::UNIT.digest(),
        kind: ArgumentKind::Value,
        facts: ArgFacts {
            equal_one: false,
            divisible_by_16: false,
            aligned_16: false,
            wide: false,
        },
    };

    /// The signature without the facts about values that are only compiled in on demand, unless `keep`. What is
    /// known of an address stays.
    #[doc(hidden)]
    #[inline]
    pub fn keeping_facts(self, keep: bool) -> Self {
        if keep {
            return self;
        }
        let facts = ArgFacts {
            equal_one: false,
            divisible_by_16: false,
            ..self.facts
        };
        Self { facts, ..self }
    }

    /// Whether code for arguments of the signature `made_for` takes one of this signature, of which more may be known.
    ///
    /// # Errors
    /// Why not.
    #[doc(hidden)]
    pub fn fits(self, made_for: Self) -> Result<(), Unfit> {
        let (given, known) = (self.facts, made_for.facts);
        if (self.ty, self.kind) != (made_for.ty, made_for.kind) {
            return Err(Unfit::Type);
        }
        let lacking = [
            (
                given.aligned_16,
                known.aligned_16,
                "at an address that is a multiple of 16",
            ),
            (given.equal_one, known.equal_one, "equal to 1"),
            (
                given.divisible_by_16,
                known.divisible_by_16,
                "a multiple of 16",
            ),
            // The number of bits of a length decides types, so code for longer slices takes no shorter ones.
            (given.wide, known.wide, "a slice of 2^32 elements or more"),
            (
                !given.wide,
                !known.wide,
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
    signature: ArgSignature,
    pub(crate) host: HostType,
    pub(crate) rust_name: &'static str,
    /// The field that it is, if it is a part of a view.
    pub(crate) field: Option<&'static str>,
    payload: Payload<'a>,
    /// Where the memory behind it lies.
    device: Option<DeviceId>,
    /// The uses of the buffer behind it; none where whoever passes the argument names them apart.
    uses: Option<&'a Uses>,
}

/// The bytes of an argument.
#[doc(hidden)]
pub enum Payload<'a> {
    /// A value, as it lies in memory; padding is zeros.
    Bytes(SmallVec<[u8; 16]>),
    /// A slice of a buffer.
    Slice {
        /// Device address of the first element.
        address: u64,
        /// Number of elements.
        length: u64,
    },
    /// A host value for a hook to convert.
    Host(&'a (dyn Any + Send + Sync)),
    /// The arguments that a view is.
    Parts(Box<[Arg<'a>]>),
    /// A number that the kernel's type has no room for, which no launch passes.
    OutOfRange(OutOfRange),
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
    /// The argument's type as Rust writes it.
    pub fn type_name(&self) -> String {
        self.type_of(&self.rust_name)
    }

    /// The argument's type as the IR has it, structs with their fields: two types of one name are
    /// told apart.
    pub fn type_form(&self) -> String {
        self.type_of(self.host.0)
    }

    fn type_of(&self, element: &dyn std::fmt::Display) -> String {
        let ty = self.type_without_field(element);
        match self.field {
            Some(field) => format!("{field}: {ty}"),
            None => ty,
        }
    }

    fn type_without_field(&self, element: &dyn std::fmt::Display) -> String {
        match self.signature.kind {
            ArgumentKind::Slice { mutable: true } => format!("&mut [{element}]"),
            ArgumentKind::Slice { mutable: false } => format!("&[{element}]"),
            ArgumentKind::Pointer { mutable: true } => format!("*mut {element}"),
            ArgumentKind::Pointer { mutable: false } => format!("*const {element}"),
            ArgumentKind::Value => element.to_string(),
        }
    }

    /// The arguments that a struct with slices inside is, a field each in the order of the struct, as one.
    /// What `#[derive(KernelView)]` writes; `V` is the struct.
    #[doc(hidden)]
    pub fn view<V: KernelValue>(fields: impl IntoIterator<Item = (&'static str, Arg<'a>)>) -> Self {
        let part = |(field, arg): (&'static str, Arg<'a>)| arg.of_field(field);
        Arg {
            signature: ArgSignature::OF_NONE,
            host: HostType(&TypeForm::UNIT),
            rust_name: std::any::type_name::<V>(),
            field: None,
            payload: Payload::Parts(fields.into_iter().map(part).collect()),
            device: None,
            uses: None,
        }
    }

    fn of_field(mut self, field: &'static str) -> Self {
        self.signature.ty = self.signature.ty.of_field(field);
        self.field = Some(field);
        self
    }

    /// Appends the arguments that this is, one if it is no view.
    fn spread(self, out: &mut Vec<Arg<'a>>) {
        match self.payload {
            Payload::Parts(parts) => parts.into_iter().for_each(|part| part.spread(out)),
            _ => out.push(self),
        }
    }

    /// Whether the argument is passed to a kernel as it is: neither a host value that a hook converts, nor a view.
    fn is_one(&self) -> bool {
        !matches!(self.payload, Payload::Host(_) | Payload::Parts(_))
    }

    /// A second argument like this one; `None` if there is a buffer as `&mut` in it.
    pub fn duplicate(&self) -> Option<Arg<'a>> {
        (!self.is_mutable()).then(|| self.copied())
    }

    fn is_mutable(&self) -> bool {
        match (&self.payload, self.signature.kind) {
            (Payload::Parts(parts), _) => parts.iter().any(Arg::is_mutable),
            (_, ArgumentKind::Slice { mutable } | ArgumentKind::Pointer { mutable }) => mutable,
            (_, ArgumentKind::Value) => false,
        }
    }

    /// What a launch is looked up by.
    #[doc(hidden)]
    #[inline]
    pub fn signature(&self) -> ArgSignature {
        self.signature
    }

    #[doc(hidden)]
    #[inline]
    pub fn payload(&self) -> &Payload<'a> {
        &self.payload
    }

    /// The device that the memory behind it is of, if there is any.
    #[doc(hidden)]
    #[inline]
    pub fn device(&self) -> Option<DeviceId> {
        self.device
    }

    /// The uses of the buffer behind it, which a launch orders itself behind, and whether the kernel may write there.
    #[doc(hidden)]
    #[inline]
    pub fn uses(&self) -> Option<(&'a Uses, bool)> {
        let writes = matches!(
            self.signature.kind,
            ArgumentKind::Slice { mutable: true } | ArgumentKind::Pointer { mutable: true }
        );
        self.uses.map(|uses| (uses, writes))
    }

    fn copied(&self) -> Arg<'a> {
        let payload = match &self.payload {
            Payload::Bytes(bytes) => Payload::Bytes(bytes.clone()),
            Payload::Slice { address, length } => Payload::Slice {
                address: *address,
                length: *length,
            },
            Payload::Host(value) => Payload::Host(*value),
            Payload::Parts(parts) => Payload::Parts(parts.iter().map(Arg::copied).collect()),
            Payload::OutOfRange(number) => Payload::OutOfRange(number.clone()),
        };
        Arg { payload, ..*self }
    }

    #[doc(hidden)]
    pub fn argument_type(&self) -> ArgumentType {
        ArgumentType {
            host: self.host,
            rust_name: self.rust_name,
            kind: self.signature.kind,
            field: self.field,
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
            let arg = match arg.payload {
                Payload::Host(value) => convert(position, value)?,
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
/// `&mut Buffer`, what [becomes a view](ToKernel), and what downstream crates turn into those.
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
}

/// A value as an argument.
pub(crate) fn value_arg<'a, T: KernelType>(value: &T) -> Arg<'a> {
    Arg {
        signature: ArgSignature {
            ty: T::FORM.digest(),
            kind: ArgumentKind::Value,
            facts: value_facts(value),
        },
        host: HostType::of::<T>(),
        rust_name: std::any::type_name::<T>(),
        field: None,
        payload: Payload::Bytes(value_bytes(value)),
        device: None,
        uses: None,
    }
}

macro_rules! narrowed {
    ($($host:ident => $kernel:ident, or $wider:ident;)*) => {$(
        /// Kernels have 32 bits of it. A number that needs more is an error of the launch.
        #[diagnostic::do_not_recommend]
        impl<'a> KernelView<'a> for $host {
            type Args = $host;

            fn arg(value: $host) -> Arg<'a> {
                let rust_name = stringify!($host);
                match $kernel::try_from(value) {
                    Ok(value) => Arg { rust_name, ..value_arg(&value) },
                    Err(_) => Arg {
                        rust_name,
                        payload: Payload::OutOfRange(OutOfRange {
                            value: value as i128,
                            ty: rust_name,
                            range: i128::from($kernel::MIN)..=i128::from($kernel::MAX),
                            wider: stringify!($wider),
                        }),
                        ..value_arg(&$kernel::default())
                    },
                }
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'a> ToKernel<'a> for $host {
            type View = $host;

            fn to_kernel(self) -> $host {
                self
            }
        }
    )*};
}

narrowed! {
    usize => u32, or u64;
    isize => i32, or i64;
}

/// Facts about an integer of 32 or 64 bits.
fn value_facts<T: Any>(value: &T) -> ArgFacts {
    let value: &dyn Any = value;
    let n = match value.downcast_ref::<u32>() {
        Some(&n) => u64::from(n),
        None if let Some(&n) = value.downcast_ref::<i32>() => i64::from(n) as u64,
        None if let Some(&n) = value.downcast_ref::<u64>() => n,
        None if let Some(&n) = value.downcast_ref::<i64>() => n as u64,
        None => return ArgFacts::default(),
    };
    ArgFacts {
        equal_one: n == 1,
        divisible_by_16: n.is_multiple_of(16),
        ..ArgFacts::default()
    }
}

impl<'a, T: KernelType> IntoArg<'a> for &'a Buffer<T> {
    fn into_arg(self) -> Arg<'a> {
        slice_arg(self, false, Some(self.uses()))
    }
}

impl<'a, T: KernelType> IntoArg<'a> for &'a mut Buffer<T> {
    fn into_arg(self) -> Arg<'a> {
        let buffer: &'a Buffer<T> = self;
        slice_arg(buffer, true, Some(buffer.uses()))
    }
}

/// A buffer that a launch shares, to be written; whoever passes it holds it until the launch was made, and names its
/// uses.
pub(crate) fn shared_arg<T: KernelType>(buffer: &Arc<Buffer<T>>) -> Arg<'static> {
    slice_arg(buffer, true, None)
}

/// The argument; whoever makes it says how long it borrows the buffer.
fn slice_arg<'a, T: KernelType>(
    buffer: &Buffer<T>,
    mutable: bool,
    uses: Option<&'a Uses>,
) -> Arg<'a> {
    let (address, length) = (buffer.address(), buffer.len() as u64);
    let facts = ArgFacts {
        aligned_16: address.is_multiple_of(16),
        wide: length > u64::from(u32::MAX),
        ..ArgFacts::default()
    };
    Arg {
        signature: ArgSignature {
            ty: T::FORM.digest(),
            kind: ArgumentKind::Slice { mutable },
            facts,
        },
        host: HostType::of::<T>(),
        rust_name: std::any::type_name::<T>(),
        field: None,
        payload: Payload::Slice { address, length },
        device: Some(buffer.device_id()),
        uses,
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
    Arg {
        signature: ArgSignature::OF_NONE,
        host: HostType(&TypeForm::UNIT),
        rust_name: std::any::type_name::<T>(),
        field: None,
        payload: Payload::Host(value),
        device: None,
        uses: None,
    }
}

/// The arguments of a launch: `args!(3.0f32, &x, &mut y)`.
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => {
        &[$($crate::args::IntoArg::into_arg($arg)),*] as &[$crate::args::Arg<'_>]
    };
}
