//! Kernels of Kiln for Python: a shared library with a C interface, which `kiln_tensors.py` calls through ctypes. Tensors come
//! and go as DLPack has them, so that those of NumPy, PyTorch, CuPy and JAX all do, and nothing is copied.
//!
//! It is a pattern to start from: put your own kernels in the places of `axpy` and `scale`.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use std::sync::Mutex;

use kiln::core::lent::dlpack::{Foreign, LegacyTensor, Shared, decline, decline_legacy};
use kiln::prelude::*;

#[kernel]
fn axpy(a: f32, x: &[f32], y: &[f32], out: &mut [f32]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = a * x[i] + y[i];
    }
}

#[kernel]
fn scale(a: f32, x: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] *= a;
    }
}

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// DLPack's number for memory of the host.
const CPU: i32 = 1;

/// The device of DLPack's kind and number. There is one `Jit` for each, so that a kernel is compiled once.
fn jit_of(kind: i32, ordinal: i32) -> Result<Jit> {
    static JITS: Mutex<BTreeMap<(i32, i32), Jit>> = Mutex::new(BTreeMap::new());
    let mut jits = JITS.lock().map_err(|_| "an earlier call has panicked")?;
    if let Some(jit) = jits.get(&(kind, ordinal)) {
        return Ok(jit.clone());
    }
    let device = match kind {
        CPU => Device::cpu(),
        _ => Device::cuda(ordinal.try_into()?)?,
    };
    let jit = Jit::on(device);
    jits.insert((kind, ordinal), jit.clone());
    Ok(jit)
}

/// A tensor that is Kiln's, until Python hands it on.
pub struct Output(Option<Shared>);

/// A tensor that a library has handed over, as its capsule has it.
#[repr(C)]
pub struct Given {
    tensor: NonNull<c_void>,
    /// Whether it is of DLPack 1.0, and not of the time before.
    versioned: bool,
}

impl Given {
    /// The tensor as a buffer; after an error the library has it again.
    ///
    /// # Safety
    /// It is a tensor that was handed over, is taken once, and its work is in the stream that [`kiln_stream`] gave.
    unsafe fn take(self, jit: &Jit) -> kiln::Result<Foreign<f32>> {
        // SAFETY: so the caller says; place 0 is that of the stream of which `kiln_stream` gives the number.
        unsafe {
            if self.versioned {
                let tensor = self.tensor.cast();
                jit.take_tensor(tensor).inspect_err(|_| decline(tensor))
            } else {
                let tensor = self.tensor.cast::<LegacyTensor>();
                Foreign::from_legacy(jit.device(), 0, tensor)
                    .inspect_err(|_| decline_legacy(tensor))
            }
        }
    }
}

/// What went wrong, for Python to raise; null where nothing did. [`kiln_text_end`] frees it.
type Text = *mut c_char;

fn text(error: &dyn std::fmt::Display) -> Text {
    let bytes = error.to_string().replace('\0', " ");
    std::ffi::CString::new(bytes).map_or(std::ptr::null_mut(), std::ffi::CString::into_raw)
}

/// Runs this, and gives what went wrong; a panic is caught, as it may not leave a function that C calls.
fn told(run: impl FnOnce() -> Result<()>) -> Text {
    // What a panic has left half done is the call's own, or behind a lock that tells of it.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(error)) => text(&error),
        Err(_) => text(&"Kiln panicked; please report it"),
    }
}

/// Which version of these functions a library has: `FACE` in `kiln_tensors.py`, which says no to another.
#[unsafe(no_mangle)]
pub extern "C" fn kiln_face() -> u32 {
    2
}

/// The number that a tensor's `__dlpack__` is given as `stream`; -2 where there is none.
///
/// # Safety
/// `stream` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kiln_stream(kind: i32, ordinal: i32, stream: *mut i64) -> Text {
    told(|| {
        let number = jit_of(kind, ordinal)?.tensor_stream();
        // SAFETY: so the caller says.
        unsafe { *stream = number.unwrap_or(-2) };
        Ok(())
    })
}

/// `a * x + y` as a new tensor of the shape that `y` has. `x` and `y` are Kiln's from here on, also after an error.
///
/// # Safety
/// Both are tensors of the device that were handed over, and `output` points to where an address fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kiln_axpy(
    kind: i32,
    ordinal: i32,
    a: f32,
    x: Given,
    y: Given,
    output: *mut *mut Output,
) -> Text {
    told(|| {
        let jit = jit_of(kind, ordinal)?;
        // SAFETY: they are tensors, as the caller says. Both are taken, whatever comes of the first.
        let (x, y) = unsafe { (x.take(&jit), y.take(&jit)) };
        let (x, y) = (x?, y?);
        if x.shape() != y.shape() {
            return Err(format!("x has the shape {:?}, and y {:?}", x.shape(), y.shape()).into());
        }
        let mut out = jit.zeros::<f32>(y.len())?;
        if !out.is_empty() {
            axpy.launch(&jit, (grid_for(y.len(), 256), 256), a, &x, &y, &mut out)?;
        }
        let made = Box::new(Output(Some(out.into_tensor(y.shape())?)));
        // SAFETY: so the caller says.
        unsafe { *output = Box::into_raw(made) };
        Ok(())
    })
}

/// `x *= a`, where it lies. `x` is Kiln's from here on, also after an error.
///
/// # Safety
/// It is a tensor of the device that was handed over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kiln_scale(kind: i32, ordinal: i32, a: f32, x: Given) -> Text {
    told(|| {
        let jit = jit_of(kind, ordinal)?;
        // SAFETY: as above.
        let mut x = unsafe { x.take(&jit)? };
        if !x.is_empty() {
            let launch = (grid_for(x.len(), 256), 256);
            scale.launch(&jit, launch, a, x.as_mut()?)?;
        }
        jit.synchronize()?;
        Ok(())
    })
}

/// Hands an output over, once: in the form of DLPack 1.0, or in the one before.
///
/// # Safety
/// `output` is one of [`kiln_axpy`]'s, and `tensor` points to where an address fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kiln_hand_over(
    output: *mut Output,
    stream: i64,
    versioned: bool,
    tensor: *mut *mut c_void,
) -> Text {
    // SAFETY: so the caller says.
    let (output, tensor) = unsafe { (&mut *output, &mut *tensor) };
    let shared = output.0.take();
    told(|| {
        let shared = shared.ok_or("the tensor was handed over before")?;
        let stream = (stream != -2).then_some(stream);
        *tensor = match versioned {
            true => shared.hand_over(stream)?.as_ptr().cast(),
            false => shared
                .hand_over_legacy(stream)?
                .cast::<LegacyTensor>()
                .as_ptr()
                .cast(),
        };
        Ok(())
    })
}

/// The end of an output.
///
/// # Safety
/// It is one of [`kiln_axpy`]'s, and ends once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kiln_output_end(output: *mut Output) {
    // SAFETY: so the caller says.
    drop(unsafe { Box::from_raw(output) });
}

/// The end of a text.
///
/// # Safety
/// It is one of this library's, and ends once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kiln_text_end(text: Text) {
    // SAFETY: so the caller says.
    drop(unsafe { std::ffi::CString::from_raw(text) });
}
