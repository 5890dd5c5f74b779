//! Hidden arguments: what a hook has kernels take besides their arguments, and gives at each launch.

use std::sync::Arc;

use smallvec::SmallVec;

use super::HookResult;
use crate::abi::{LaunchArgs, ParamKind};
use crate::args::{Arg, IntoArg, Payload, shared_arg};
use crate::buffer::Buffer;
use crate::code::{HiddenInfo, KernelInfo};
use crate::error::Error;
use crate::ir::{HiddenSource, debug_as_text, error_text};
use crate::runtime::{Device, Uses};
use crate::value::KernelType;

/// The value of a hidden argument; [`IntoHidden`].
pub struct HiddenArgument {
    arg: Arg<'static>,
    /// The buffer, which has to live until the launch was handed to the device.
    held: Option<Arc<dyn Held>>,
}

/// A buffer of any type that a launch shares.
trait Held {
    fn uses(&self) -> &Uses;
}

impl<T: KernelType> Held for Buffer<T> {
    fn uses(&self) -> &Uses {
        (**self).uses()
    }
}

/// What can be given as a hidden argument: a [`KernelType`] by value, and a buffer that
/// [`Buffer::into_shared`] has made, for a slice or for the address of its first element.
///
/// The launch shares the buffer until it was handed to the device, from when on the buffer's own drop waits for
/// it. So nobody has to keep it. Its threads may write what others read, so that they need atomics. It may be an
/// argument of the launch, too: a kernel that takes such an address does not take its arguments to be apart.
pub trait IntoHidden {
    /// The value.
    fn into_hidden(self) -> HiddenArgument;
}

impl<T: KernelType> IntoHidden for T {
    fn into_hidden(self) -> HiddenArgument {
        HiddenArgument {
            arg: self.into_arg(),
            held: None,
        }
    }
}

impl<T: KernelType> IntoHidden for &Arc<Buffer<T>> {
    fn into_hidden(self) -> HiddenArgument {
        self.uses().share();
        HiddenArgument {
            arg: shared_arg(self),
            held: Some(self.clone()),
        }
    }
}

/// Why a hidden argument is not passed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HiddenError {
    /// The hook has declared none of this name.
    #[error("{}", error_text!(
        "it has declared no `{name}` in this kernel; declare it by `Module::add_hidden` where it rewrites the IR"
    ))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The value is of another type than was declared.
    #[error("{}", error_text!(
        "`{name}` was declared as `{declared}`, and a `{given}` was given; give what was declared: a value of that \
         type, or an `Arc<Buffer<T>>` for a slice or pointer"
    ))]
    Type {
        /// The name.
        name: String,
        /// The type that was declared.
        declared: String,
        /// The type of what was given.
        given: String,
    },
    /// The buffer is of another device.
    #[error("{}", error_text!("`{name}` is a buffer of {owner}, and the launch is on {device}; make it there"))]
    ForeignBuffer {
        /// The name.
        name: String,
        /// The buffer's device.
        owner: String,
        /// The launch's.
        device: String,
    },
    /// The buffer has more elements than the slice can.
    #[error("{}", error_text!(
        "`{name}` has {length} elements, and the slice was declared with a length of 32 bits; declare it wide"
    ))]
    TooLong {
        /// The name.
        name: String,
        /// How many elements the buffer has.
        length: u64,
    },
    /// No value was given.
    #[error("{}", error_text!(
        "`{name}`, declared as `{declared}`, was given no value; call `HiddenArguments::set` at every launch"
    ))]
    Missing {
        /// The name.
        name: String,
        /// The type that was declared.
        declared: String,
    },
    /// The `Jit` has no hook of the name that the kernel's module says.
    #[error("{}", error_text!(
        "`{name}` is for it to give, and this `Jit` has no such hook; add it to the hooks of the `Jit`"
    ))]
    NoHook {
        /// The name.
        name: String,
    },
    /// The launch is one of those that hooks make where they give hidden arguments.
    #[error("{}", error_text!(
        "`{name}` is wanted by a launch from `hidden_arguments`; launch before, or kernels without hidden arguments"
    ))]
    Nested {
        /// The name.
        name: String,
    },
}

debug_as_text!(HiddenError);

/// The hidden arguments of one hook for one launch, to be given.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::hook::Hook;
/// use kiln::core::ir::{AddressSpace, AtomicOp, InstData};
///
/// #[kernel]
/// fn double(x: &mut [f32]) {
///     let i = global_id().x;
///     if i < x.len() {
///         x[i] *= 2.0;
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let device = Device::best()?;
/// let stores = Buffer::<u64>::zeros(&device, 1)?.into_shared();
/// let given = stores.clone();
/// let counter = Hook::new("counter")
///     .rewrite_ir(|_, module| {
///         let ty = module.types.slice(Type::U64, AddressSpace::Global, true);
///         let counts = module.add_hidden("counter", "counts", ty);
///         module.rewrite_each(|at| {
///             if matches!(at.data(), InstData::Store { .. }) {
///                 let (counts, zero) = (at.ins().hidden(counts), at.ins().constant(0u32));
///                 let count = at.ins().slice_index(counts, zero);
///                 let one = at.ins().constant(1u64);
///                 at.ins().atomic_rmw(AtomicOp::Add, count, one);
///             }
///         });
///         Ok(())
///     })
///     .hidden_arguments(move |_, hidden| hidden.set("counts", &given));
/// let jit = Jit::builder().device(device).hook(counter).build()?;
/// let mut x = jit.zeros::<f32>(100)?;
/// jit.launch(&double, 4, 32, args!(&mut x))?;
/// jit.synchronize()?;
/// assert_eq!(stores.to_vec()?, [100]);
/// # Ok(())
/// # }
/// ```
pub struct HiddenArguments<'a> {
    hook: &'a str,
    kernel: &'a KernelInfo,
    device: &'a Device,
    given: &'a mut Given,
}

/// What was given so far, each by its place in [`KernelInfo::hidden`].
#[derive(Default)]
#[doc(hidden)]
pub struct Given(SmallVec<[(usize, HiddenArgument); 4]>);

impl std::fmt::Debug for HiddenArguments<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = self.own().map(|(_, info)| (&info.name, &info.ty));
        f.debug_map().entries(own).finish()
    }
}

impl<'a> HiddenArguments<'a> {
    #[doc(hidden)]
    pub fn new(
        hook: &'a str,
        kernel: &'a KernelInfo,
        device: &'a Device,
        given: &'a mut Given,
    ) -> HiddenArguments<'a> {
        HiddenArguments {
            hook,
            kernel,
            device,
            given,
        }
    }

    /// Gives one that the hook has declared. One that this kernel does not read may be given, too; of two values
    /// the last is passed.
    ///
    /// # Errors
    /// A name that the hook has not declared, a value of another type, a buffer of another device.
    pub fn set(&mut self, name: &str, value: impl IntoHidden) -> HookResult<()> {
        Ok(self.take(name, value.into_hidden())?)
    }

    fn take(&mut self, name: &str, value: HiddenArgument) -> Result<(), HiddenError> {
        let found = self.own().find(|(_, info)| info.name == name);
        let (place, info) = found.ok_or_else(|| HiddenError::Unknown {
            name: name.to_owned(),
        })?;
        fits(info, &value.arg, self.device)?;
        self.given.0.retain(|(other, _)| *other != place);
        self.given.0.push((place, value));
        Ok(())
    }

    /// The hidden arguments that the hook declared.
    fn own(&self) -> impl Iterator<Item = (usize, &'a HiddenInfo)> + use<'a> {
        let hook = self.hook;
        let all = self.kernel.hidden.iter().enumerate();
        all.filter(move |(_, info)| info.source.is_hook(hook))
    }
}

/// Whether a value is of the type that was declared, and the launch can reach it.
fn fits(info: &HiddenInfo, arg: &Arg<'_>, device: &Device) -> Result<(), HiddenError> {
    let name = || info.name.clone();
    let is_address = matches!(arg.payload(), Payload::Slice { .. });
    if info.element != Some(arg.signature().ty()) || info.is_address != is_address {
        return Err(HiddenError::Type {
            name: name(),
            declared: info.ty.clone(),
            given: arg.type_form(),
        });
    }
    let device = device.info().id;
    if let Some(owner) = arg.device().filter(|owner| *owner != device) {
        return Err(HiddenError::ForeignBuffer {
            name: name(),
            owner: owner.to_string(),
            device: device.to_string(),
        });
    }
    match (&info.passed, arg.payload()) {
        (Some(ParamKind::Slice { length: slot, .. }), Payload::Slice { length, .. })
            if slot.size == 4 && u32::try_from(length).is_err() =>
        {
            Err(HiddenError::TooLong {
                name: name(),
                length,
            })
        }
        _ => Ok(()),
    }
}

impl Given {
    /// The uses of the buffers that were given, each of which the kernel may write.
    #[doc(hidden)]
    pub fn uses(&self) -> impl Iterator<Item = &Uses> {
        self.0
            .iter()
            .filter_map(|(_, value)| Some(value.held.as_ref()?.uses()))
    }

    /// The first that a kernel reads and no hook has given.
    #[doc(hidden)]
    pub fn nobodys<'k>(&self, kernel: &'k KernelInfo) -> Option<(&'k str, &'k HiddenInfo)> {
        kernel.hidden.iter().find_map(|info| match &info.source {
            HiddenSource::Hook(hook) => self.missing(hook, kernel).map(|info| (&**hook, info)),
            HiddenSource::Global(_) | HiddenSource::FaultChannel => None,
        })
    }

    /// The first that a kernel reads of a hook, and that was not given.
    #[doc(hidden)]
    pub fn missing<'k>(&self, hook: &str, kernel: &'k KernelInfo) -> Option<&'k HiddenInfo> {
        let is_given = |place| self.0.iter().any(|(given, _)| *given == place);
        let missing = |(place, info): &(usize, &HiddenInfo)| {
            info.passed.is_some() && info.source.is_hook(hook) && !is_given(*place)
        };
        let all = kernel.hidden.iter().enumerate();
        all.into_iter().find(missing).map(|(_, info)| info)
    }

    /// Writes what was given to the parameter block. `copy` gives the address of bytes in device memory.
    #[doc(hidden)]
    pub fn put(
        &self,
        kernel: &KernelInfo,
        block: &mut LaunchArgs<'_>,
        mut copy: impl FnMut(&[u8]) -> Result<u64, Error>,
    ) -> Result<(), Error> {
        for (place, value) in &self.0 {
            let info = &kernel.hidden[*place];
            match (&info.passed, value.arg.payload()) {
                (Some(ParamKind::Value(slot)), Payload::Slice { address, .. }) => {
                    block.put_number(*slot, address);
                }
                (
                    Some(ParamKind::Slice { address, length }),
                    Payload::Slice {
                        address: at,
                        length: len,
                    },
                ) => {
                    block.put_number(*address, at);
                    block.put_number(*length, len);
                }
                (Some(ParamKind::Value(slot)), value) => {
                    if let Some(bytes) = value.bytes(slot.size as usize) {
                        block.put(*slot, &bytes);
                    }
                }
                (Some(ParamKind::Reference { address, bytes }), value) => {
                    if let Some(bytes) = value.bytes(*bytes as usize) {
                        block.put_number(*address, copy(&bytes)?);
                    }
                }
                // One that the kernel does not read; the types were compared when it was given.
                _ => {}
            }
        }
        Ok(())
    }
}
