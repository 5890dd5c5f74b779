//! Globals: memory of a device that the kernels of one `Jit` share by name.
//!
//! A module is one kernel with what it calls, so a global cannot be a part of its code: two kernels, and two
//! specializations of one, would each have their own. It is memory of the `Jit`, made at the first launch that
//! needs it, and its address is a hidden parameter.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::code::HiddenInfo;
use crate::error::{MemoryError, Result};
use crate::runtime::{Buffer, Device};
use crate::value::KernelType;

/// The globals of a `Jit`, by name.
#[doc(hidden)]
#[derive(Default)]
pub struct Globals(Mutex<HashMap<String, Entry>>);

/// A global, as the kernel has declared it that was launched first.
struct Entry {
    declared: HiddenInfo,
    memory: Arc<Buffer<u8>>,
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
        let mut globals = self.0.lock();
        if let Some(Entry { declared, memory }) = globals.get(&info.name) {
            if declared.element == info.element {
                return Ok(memory.clone());
            }
            return Err(MemoryError::TwoGlobals {
                name: info.name.clone(),
                first: (declared.ty.clone(), declared.location.clone()),
                second: (info.ty.clone(), info.location.clone()),
            }
            .into());
        }
        let memory = Arc::new(match initial {
            Some(bytes) => Buffer::from_slice(device, bytes)?,
            None => Buffer::zeros(device, info.bytes as usize)?,
        });
        memory.uses().share();
        let entry = Entry {
            declared: info.clone(),
            memory: memory.clone(),
        };
        globals.insert(info.name.clone(), entry);
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
