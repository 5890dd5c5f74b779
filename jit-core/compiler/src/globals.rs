//! Globals: memory of a device that the kernels of one `Jit` share by name.
//!
//! A module is one kernel with what it calls, so a global cannot be a part of its code: two kernels, and two
//! specializations of one, would each have their own. It is memory of the `Jit`, made at the first launch that
//! needs it, and its address is a hidden parameter.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::code::HiddenInfo;
use crate::error::{MemoryError, Result};
use crate::front::macros::{Front, Operand};
use crate::ir::TypeDigest;
use crate::runtime::{Buffer, Device};
use crate::value::{DeviceType, KernelType, defined_bytes};

/// The globals of a `Jit`, by name.
#[doc(hidden)]
#[derive(Default)]
pub struct Globals(Mutex<HashMap<String, Entry>>);

/// A global, as it was declared first.
struct Entry {
    declared: Declared,
    memory: Arc<Buffer<u8>>,
}

/// What is said of a global where it is declared.
#[derive(Clone)]
struct Declared {
    /// The type of all of it, and that of its elements.
    element: Option<TypeDigest>,
    item: Option<TypeDigest>,
    /// The type as text.
    ty: String,
    location: String,
}

/// An array that kernels of a `Jit` share, declared by `kiln::global!`: by its name, and with what is there at first.
#[doc(hidden)]
#[derive(Debug)]
pub struct GlobalArray<T: KernelType, const N: usize> {
    name: &'static str,
    initial: Option<[T; N]>,
    at: &'static Location<'static>,
}

impl<T: KernelType, const N: usize> GlobalArray<T, N> {
    /// The array of a name, where this is called. Without values they are zeros.
    #[track_caller]
    pub const fn new(name: &'static str, initial: Option<[T; N]>) -> GlobalArray<T, N> {
        GlobalArray {
            name,
            initial,
            at: Location::caller(),
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        self.initial.as_ref().map(|values| defined_bytes(values))
    }

    /// A reference to it in a kernel.
    pub fn in_kernel<'k>(&self, front: Front<'k>) -> Operand<'k> {
        let array = front.builder().ty::<[T; N]>();
        front.global(self.name, array, self.bytes().map(Arc::from))
    }
}

impl Globals {
    /// The memory of a global, made with what is there at first if no kernel has had it.
    ///
    /// # Errors
    /// Another type under the same name; no memory.
    pub fn enter(
        &self,
        device: &Device,
        info: &HiddenInfo,
        initial: Option<&[u8]>,
    ) -> Result<Arc<Buffer<u8>>> {
        let declared = || Declared {
            element: info.element,
            item: info.item,
            ty: info.ty.clone(),
            location: info.location.clone(),
        };
        let memory = || match initial {
            Some(bytes) => Buffer::from_slice(device, bytes),
            None => Buffer::zeros(device, info.bytes as usize),
        };
        self.entered(&info.name, info.element, declared, memory)
    }

    /// The memory of a global that `kiln::global!` declares, as an array, made if no kernel has had it.
    ///
    /// # Errors
    /// Another type under the same name; no memory.
    pub fn declared<T: KernelType, const N: usize>(
        &self,
        device: &Device,
        array: &GlobalArray<T, N>,
    ) -> Result<Global<T>> {
        let form = <[T; N]>::FORM;
        let declared = || Declared {
            element: Some(form.digest()),
            item: Some(T::FORM.digest()),
            ty: format!("ptr<global, mut {form}>"),
            location: format!(
                "{}:{}:{}",
                array.at.file(),
                array.at.line(),
                array.at.column()
            ),
        };
        let memory = || match array.bytes() {
            Some(bytes) => Buffer::from_slice(device, &bytes),
            None => Buffer::zeros(device, size_of::<[T; N]>()),
        };
        Ok(Global {
            memory: self.entered(array.name, Some(form.digest()), declared, memory)?,
            element: PhantomData,
        })
    }

    fn entered(
        &self,
        name: &str,
        element: Option<TypeDigest>,
        new: impl FnOnce() -> Declared,
        memory: impl FnOnce() -> Result<Buffer<u8>, crate::error::Error>,
    ) -> Result<Arc<Buffer<u8>>> {
        let mut globals = self.0.lock();
        if let Some(Entry { declared, memory }) = globals.get(name) {
            if declared.element == element {
                return Ok(memory.clone());
            }
            let new = new();
            return Err(MemoryError::TwoGlobals {
                name: name.to_owned(),
                first: (declared.ty.clone(), declared.location.clone()),
                second: (new.ty, new.location),
            }
            .into());
        }
        let memory = Arc::new(memory()?);
        memory.uses().share();
        let entry = Entry {
            declared: new(),
            memory: memory.clone(),
        };
        globals.insert(name.to_owned(), entry);
        Ok(memory)
    }

    /// The global of a name, as an array of `T`.
    ///
    /// # Errors
    /// None of the name, or of another type.
    pub fn find<T: KernelType>(&self, name: &str) -> Result<Global<T>> {
        let globals = self.0.lock();
        let Some(Entry { declared, memory }) = globals.get(name) else {
            let name = name.to_owned();
            return Err(MemoryError::NoGlobal { name }.into());
        };
        let digest = Some(T::FORM.digest());
        if digest != declared.item && digest != declared.element {
            return Err(MemoryError::OtherGlobal {
                name: name.to_owned(),
                ty: declared.ty.clone(),
                location: declared.location.clone(),
                wanted: T::FORM.to_string(),
            }
            .into());
        }
        Ok(Global {
            memory: memory.clone(),
            element: PhantomData,
        })
    }
}

/// An array that kernels of a `Jit` share by a name, and the host with them. It lives as long as
/// this or the `Jit`.
#[derive(Debug)]
pub struct Global<T: KernelType> {
    memory: Arc<Buffer<u8>>,
    element: PhantomData<T>,
}

impl<T: KernelType> Global<T> {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.memory.len() / size_of::<T>().max(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the values to the host, after all work launched before.
    ///
    /// # Errors
    /// As [`Part::to_vec`](crate::runtime::Part::to_vec).
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.memory.read_as(self.len())
    }

    /// Overwrites the first values with a copy of `values`, after all work launched before.
    ///
    /// # Errors
    /// As [`Part::write`](crate::runtime::Part::write).
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.memory.write_as(values)
    }
}
