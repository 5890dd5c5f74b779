//! Tensors of other libraries (DLPack). The structs are written here anew, as dlpack.h has them.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use expect_test::expect;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::lent::DeviceStream as _;
use kiln_jit_core::lent::dlpack::{Foreign, ManagedTensor, Shared};
use kiln_jit_core::runtime::Device;
use kiln_jit_core::{args, error};

use super::fake::{Fake, Ledger};
use super::hooked::jit;
use super::lent::TheirStream;

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct DLManagedTensorVersioned {
    major: u32,
    minor: u32,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    dl_tensor: DLTensor,
}

#[repr(C)]
struct DLManagedTensor {
    dl_tensor: DLTensor,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A library's tensor of `f32` on the host, whose deleter counts.
struct Theirs {
    values: Vec<f32>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    deleted: AtomicU32,
}

impl Theirs {
    fn new(shape: &[i64], strides: &[i64]) -> Theirs {
        Theirs {
            values: (0..16).map(|i| i as f32).collect(),
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            deleted: AtomicU32::new(0),
        }
    }

    /// The tensor, from the second value on.
    fn tensor(&mut self) -> DLManagedTensorVersioned {
        unsafe extern "C" fn deleter(tensor: *mut DLManagedTensorVersioned) {
            // SAFETY: it points to a `Theirs` that lives to the end of the test.
            unsafe {
                (*(*tensor).manager_ctx.cast::<Theirs>())
                    .deleted
                    .fetch_add(1, Relaxed)
            };
        }
        DLManagedTensorVersioned {
            major: 1,
            minor: 1,
            manager_ctx: (&raw mut *self).cast(),
            deleter: Some(deleter),
            flags: 0,
            dl_tensor: DLTensor {
                data: self.values.as_mut_ptr().cast(),
                device_type: 1,
                device_id: 0,
                ndim: self.shape.len() as i32,
                code: 2,
                bits: 32,
                lanes: 1,
                shape: self.shape.as_mut_ptr(),
                strides: match self.strides.is_empty() {
                    true => std::ptr::null_mut(),
                    false => self.strides.as_mut_ptr(),
                },
                byte_offset: 4,
            },
        }
    }
}

fn taken(jit: &Jit, tensor: &mut DLManagedTensorVersioned) -> error::Result<Foreign<f32>> {
    // SAFETY: it lives to the end of the test, and nobody else uses it meanwhile.
    unsafe { jit.take_tensor(NonNull::from(tensor).cast()) }
}

#[test]
fn a_tensor_is_a_buffer_until_it_ends() {
    let jit = Jit::on(Device::cpu());
    for strides in [&[] as &[i64], &[7, 3, 1]] {
        let mut theirs = Theirs::new(&[1, 2, 3], strides);
        let mut tensor = theirs.tensor();
        let mut foreign = taken(&jit, &mut tensor).expect("it is taken");
        assert_eq!((foreign.shape(), foreign.len()), (&[1, 2, 3][..], 6));
        let again = taken(&jit, &mut tensor).unwrap_err().to_string();
        assert!(
            again.ends_with("is a buffer already, or a part of one; use that, or end it first"),
            "{again}"
        );
        assert_eq!(
            foreign.to_vec().expect("it is read"),
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        );
        let buffer = foreign.as_mut().expect("it may be written");
        buffer.write_at(2, &[9.0]).expect("it is written");
        assert_eq!(theirs.deleted.load(Relaxed), 0);
        drop(foreign);
        assert_eq!((theirs.deleted.load(Relaxed), theirs.values[3]), (1, 9.0));
        // Its memory is nobody's here any more.
        drop(taken(&jit, &mut tensor).expect("it is taken anew"));
        assert_eq!(theirs.deleted.load(Relaxed), 2);
    }
    let mut nothing = Theirs::new(&[0, 4], &[]);
    let mut tensor = nothing.tensor();
    tensor.dl_tensor.data = std::ptr::null_mut();
    assert!(taken(&jit, &mut tensor).expect("it is taken").is_empty());
}

#[test]
fn tensors_that_are_refused() {
    let jit = Jit::on(Device::cpu());
    let mut theirs = Theirs::new(&[2, 3], &[1, 2]);
    let mut refused = |change: &dyn Fn(&mut DLManagedTensorVersioned)| {
        let mut tensor = theirs.tensor();
        change(&mut tensor);
        let error = taken(&jit, &mut tensor).unwrap_err().to_string();
        // It is still theirs.
        assert_eq!(theirs.deleted.load(Relaxed), 0);
        error
    };
    let row_major =
        |tensor: &mut DLManagedTensorVersioned| tensor.dl_tensor.strides = std::ptr::null_mut();
    let all = [
        refused(&|_| ()),
        refused(&|tensor| tensor.major = 2),
        refused(&|tensor| tensor.dl_tensor.bits = 64),
        refused(&|tensor| (tensor.dl_tensor.device_type, tensor.dl_tensor.device_id) = (2, 3)),
        refused(&|tensor| {
            row_major(tensor);
            // SAFETY: there are two sizes.
            unsafe { *tensor.dl_tensor.shape = -1 };
        }),
    ];
    expect![[r#"
        the tensor of shape [2, 3] has the strides [1, 2], and a buffer's elements lie one after the other, the last index the fastest; make it contiguous
        the tensor is of DLPack 2.1, and Kiln reads 1; ask for `max_version=(1, 0)`
        the tensor's elements are float64, and float32 was asked for; convert it, or take it as what it is
        the tensor is on device 3 of DLPack's kind 2, which this machine's CPU does not reach; move it there
        the tensor has the shape [-1, 3], which is none"#]].assert_eq(&all.join("\n"));
    let mut theirs = Theirs::new(&[2, 3], &[]);
    let mut tensor = theirs.tensor();
    tensor.dl_tensor.byte_offset = 2;
    let error = taken(&jit, &mut tensor).unwrap_err().to_string();
    assert!(
        error.ends_with("its elements lie at multiples of 4 bytes; copy it"),
        "{error}"
    );
    let mut tensor = theirs.tensor();
    tensor.flags = 1;
    let mut read_only = taken(&jit, &mut tensor).expect("it is taken");
    assert_eq!(read_only.len(), 6);
    expect!["the tensor is read-only; give one that may be written, a copy for instance"]
        .assert_eq(&read_only.as_mut().unwrap_err().to_string());
    drop(read_only);
    assert_eq!(theirs.deleted.load(Relaxed), 1);
    let buffer = jit.upload(&[1u32, 2]).expect("a buffer");
    expect!["a buffer of 2 values is no tensor of shape [3]; give a shape of as many elements"]
        .assert_eq(&buffer.into_tensor(&[3]).map(drop).unwrap_err().to_string());
}

/// What the library sees of a tensor.
fn seen(tensor: NonNull<ManagedTensor>) -> &'static DLManagedTensorVersioned {
    // SAFETY: it is one, and is not used after its deleter was called.
    unsafe { tensor.cast::<DLManagedTensorVersioned>().as_ref() }
}

#[test]
fn a_buffer_lives_until_the_library_drops_it() {
    let fake = Fake::new();
    fake.set_lazy(true);
    let jit = jit(&fake, HookSet::new());
    let uses = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32));
    let uses = uses.expect("a kernel");
    let theirs = TheirStream::new(&fake);
    let raw = theirs.as_raw();
    let beside = jit.stream().expect("a stream");
    for stream in [None, Some(1), Some(2), Some(raw.addr() as i64)] {
        let mut x = jit.zeros::<u32>(6).expect("a buffer");
        let launched = beside.launch(&uses, 1, 1, args!(&mut x));
        launched.expect("it is launched");
        let address = x.address();
        let shared = x.into_tensor(&[2, 3]).expect("it has the shape");
        assert_eq!(shared.place().expect("it is on a GPU"), (2, 0));
        let tensor = seen(shared.hand_over(stream).expect("it is handed over"));
        let dl = &tensor.dl_tensor;
        assert_eq!(
            (tensor.major, tensor.flags, dl.data.addr() as u64),
            (1, 0, address)
        );
        assert_eq!((dl.device_type, dl.device_id, dl.ndim), (2, 0, 2));
        assert_eq!((dl.code, dl.bits, dl.lanes, dl.byte_offset), (1, 32, 1, 0));
        // SAFETY: there are two of each.
        let numbers = unsafe { [*dl.shape, *dl.shape.add(1), *dl.strides, *dl.strides.add(1)] };
        assert_eq!(numbers, [2, 3, 3, 1]);
        let used = || jit.device().memory_stats().used;
        let held = used();
        // Work of the library's, in the stream that it has named.
        let user = match stream {
            Some(stream) if stream > 2 => raw,
            _ => std::ptr::null_mut(),
        };
        fake.use_memory(user.addr(), address);
        // SAFETY: the library calls it once.
        unsafe { tensor.deleter.expect("there is one")(std::ptr::from_ref(tensor).cast_mut()) };
        assert_eq!((used(), fake.race()), (held - 24, None));
    }
    drop((beside, jit, theirs));
    assert_eq!(fake.ledger(), Ledger::default());
}

#[test]
fn shared_buffers_are_read_only_and_stay() {
    let jit = Jit::on(Device::cpu());
    let buffer = Arc::new(jit.upload(&[half::bf16::ONE; 4]).expect("a buffer"));
    let shared = || Shared::new(buffer.clone(), &[4, 1]).expect("it has the shape");
    let tensor = seen(shared().hand_over(None).expect("it is handed over"));
    let dl = &tensor.dl_tensor;
    assert_eq!(
        (tensor.flags, dl.code, dl.bits, dl.device_type),
        (1, 4, 16, 1)
    );
    let legacy = shared().hand_over_legacy(None).expect("it is handed over");
    // SAFETY: it is one.
    let legacy = unsafe { legacy.cast::<DLManagedTensor>().as_mut() };
    assert_eq!(legacy.dl_tensor.data, dl.data);
    assert_eq!(Arc::strong_count(&buffer), 3);
    // SAFETY: each is called once.
    unsafe {
        tensor.deleter.expect("there is one")(std::ptr::from_ref(tensor).cast_mut());
        legacy.deleter.expect("there is one")(legacy);
    }
    assert_eq!(Arc::strong_count(&buffer), 1);
    assert_eq!(buffer.len(), 4);
}
