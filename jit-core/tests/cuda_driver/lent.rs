//! Memory and contexts of other code in the process, which here is a second [`CudaContext`]: it shares the device's
//! primary context, and knows nothing of what the first has allocated or which streams that has.

use std::ffi::c_void;
use std::sync::Arc;

use expect_test::expect;
use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::lent::{DeviceMemory, DeviceStream, Lent, LentMut, RawFunction, RawStream};
use kiln_jit_core::runtime::cuda::{CudaContext, CudaFunction, CudaStream};
use kiln_jit_core::runtime::{Buffer, Device, DeviceId};
use kiln_jit_core::value::bytes_of;

use super::fake::Fake;
use super::hooked::{jit, put};

/// A buffer of the other code's.
struct Theirs {
    context: Arc<CudaContext>,
    address: u64,
    len: usize,
}

impl Theirs {
    fn new(fake: &Fake, values: &[u32]) -> Theirs {
        let context =
            CudaContext::with_driver(fake.open().expect("a driver"), 0).expect("a context");
        let address = context.alloc(4 * values.len() as u64).expect("memory");
        context
            .copy_to_device(address, bytes_of(values))
            .expect("it is theirs");
        let len = values.len();
        Theirs {
            context,
            address,
            len,
        }
    }

    fn values(&self) -> Vec<u32> {
        let mut bytes = vec![0; 4 * self.len];
        self.context
            .copy_to_host(&mut bytes, self.address)
            .expect("it is still there");
        let words = bytes
            .chunks_exact(4)
            .map(|word| word.try_into().expect("four bytes"));
        words.map(u32::from_ne_bytes).collect()
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // Were it freed by Kiln, too, this would be an error.
        self.context.free(self.address).expect("it is freed once");
    }
}

// SAFETY: it is freed where it is dropped, and read and written by nobody else.
unsafe impl DeviceMemory for Theirs {
    type Element = u32;

    fn address(&self) -> u64 {
        self.address
    }

    fn len(&self) -> usize {
        self.len
    }
}

#[test]
fn memory_is_lent_and_given_back() {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let mut theirs = Theirs::new(&fake, &[1, 2, 3]);
    let before = fake.ledger().memory;
    {
        // SAFETY: nobody else uses it, here and below; what is returned is dropped.
        let lent = unsafe { Lent::new(jit.device(), &theirs) }.expect("it is lent");
        assert_eq!((lent.address(), lent.len()), (theirs.address, 3));
        assert_eq!(lent.to_vec().expect("it is read"), [1, 2, 3]);
    }
    {
        // SAFETY: as above.
        let mut lent =
            unsafe { LentMut::new(jit.device(), &mut theirs) }.expect("it is lent again");
        lent.write(&[7, 8]).expect("it is written");
        jit.launch(&put(), 1, 1, args!(&mut *lent, 5u32))
            .expect("it is launched");
    }
    assert_eq!(theirs.values(), [7, 8, 3]);
    assert_eq!(fake.ledger().memory, before);
}

#[test]
fn ownership_goes_both_ways() {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let before = fake.ledger().memory;
    let mut theirs = Theirs::new(&fake, &[4, 5]);
    let ours = jit.upload(&[9u32, 10, 11]).expect("a buffer");
    // Ours becomes theirs, and theirs ours.
    let address = std::mem::replace(
        &mut theirs.address,
        ours.into_raw().expect("it is left to them"),
    );
    theirs
        .context
        .give_up_memory(address)
        .expect("they leave it to us");
    theirs
        .context
        .adopt_memory(theirs.address, 12)
        .expect("they take it over");
    theirs.len = 3;
    // SAFETY: they have given it up.
    let ours: Buffer<u32> =
        unsafe { Buffer::from_raw(jit.device(), address, 2) }.expect("it is ours");
    assert_eq!(ours.to_vec().expect("it is read"), [4, 5]);
    assert_eq!(theirs.values(), [9, 10, 11]);
    drop((ours, theirs));
    let empty = jit.upload::<u32>(&[]).expect("a buffer");
    assert_eq!(empty.into_raw().expect("there is nothing to leave"), 0);
    assert_eq!(fake.ledger().memory, before);
}

#[test]
fn memory_that_is_known_is_refused() {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let theirs = Theirs::new(&fake, &[1, 2, 3, 4]);
    // SAFETY: nobody else uses it.
    let lent = unsafe { Lent::new(jit.device(), &theirs) }.expect("it is lent");
    for (address, len, why) in [
        (theirs.address, 4, "is a buffer already"),
        (theirs.address + 8, 1, "is a buffer already"),
        (theirs.address - 4, 2, "is a buffer already"),
        (0, 1, "adopt_memory"),
        (u64::MAX - 2, 1, "adopt_memory"),
    ] {
        // SAFETY: it is refused.
        let refused = unsafe { Buffer::<u32>::from_raw(jit.device(), address, len) };
        let error = refused.expect_err("it is known, or no memory").to_string();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(lent.to_vec().expect("it is still lent"), [1, 2, 3, 4]);
    drop(lent);
    // SAFETY: nobody else uses it.
    drop(unsafe { Lent::new(jit.device(), &theirs) }.expect("it is lent again"));
    let cpu = Jit::on(Device::cpu());
    // SAFETY: it is refused.
    let refused = unsafe { Lent::new(cpu.device(), &theirs) }.map(drop);
    let error = refused.expect_err("a CPU has no such memory").to_string();
    expect!["memory that other code allocates; copy it, by `Jit::upload` and `Buffer::to_vec`"]
        .assert_eq(error.split_once(" has no ").expect("the device").1);
}

#[test]
fn a_context_is_adopted_and_left_alone() {
    let fake = Fake::new();
    let driver = fake.open().expect("a driver");
    // The process has a reference of its own from here on.
    drop(CudaContext::with_driver(driver, 0).expect("a context"));
    let own = CudaContext::with_driver(driver, 0).expect("a context");
    let before = fake.ledger();
    {
        // SAFETY: it lives until the end of the test.
        let device = unsafe { Device::adopt_cuda_of(driver, 0, own.as_raw()) }.expect("a device");
        assert!(matches!(device.info().id, DeviceId::CudaContext(_)));
        let jit = Jit::on(device);
        let mut x = jit.zeros::<u32>(4).expect("a buffer");
        jit.launch(&put(), 2, 32, args!(&mut x, 7u32))
            .expect("it is launched");
        let primary = Jit::on(Device::cuda_of(driver, 0).expect("a device"));
        let refused = primary.launch(&put(), 2, 32, args!(&mut x, 7u32));
        let error = refused.expect_err("it lies in another context").to_string();
        assert!(error.contains("of the program"), "{error}");
    }
    assert_eq!(fake.ledger(), before);
    // SAFETY: it is refused.
    let refused = unsafe { Device::adopt_cuda_of(driver, 64, own.as_raw()) };
    assert!(refused.is_err());
}

/// A stream of the other code's, which is destroyed where it is dropped.
pub(super) struct TheirStream(CudaStream);

impl TheirStream {
    pub(super) fn new(fake: &Fake) -> TheirStream {
        let context = CudaContext::with_driver(fake.open().expect("a driver"), 0);
        let stream = context.and_then(|context| context.create_stream_beside(0));
        TheirStream(stream.expect("a stream"))
    }
}

// SAFETY: it is destroyed where it is dropped.
unsafe impl DeviceStream for TheirStream {
    fn as_raw(&self) -> *mut c_void {
        self.0.handle().as_raw()
    }
}

#[test]
fn a_stream_is_adopted_and_kept() {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let streams = || fake.ledger().streams;
    let theirs = Arc::new(TheirStream::new(&fake));
    let raw = theirs.as_raw();
    assert_eq!(
        (streams(), jit.raw_stream()),
        (1, Some(std::ptr::null_mut()))
    );
    /// The same stream, as somebody else who has it knows it.
    struct Shared(Arc<TheirStream>);
    // SAFETY: it is destroyed where the last is dropped.
    unsafe impl DeviceStream for Shared {
        fn as_raw(&self) -> *mut c_void {
            self.0.as_raw()
        }
    }
    let adopt = || {
        jit.adopt_stream(Shared(theirs.clone()))
            .expect("it is adopted")
    };
    let (one, other) = (adopt(), adopt());
    drop(theirs);
    assert_eq!(
        (one.raw_stream(), other.raw_stream()),
        (Some(raw), Some(raw))
    );
    let mut x = one.zeros::<u32>(4).expect("a buffer");
    drop(one);
    let launched = other.launch(&put(), 1, 1, args!(&mut x, 3u32));
    launched.expect("the stream is there");
    assert_eq!(streams(), 1);
    drop(other);
    assert_eq!(streams(), 0);
    // What the stream has done is ordered all the same.
    assert_eq!(x.to_vec().expect("it is read").len(), 4);
    let own = jit.stream().expect("a stream");
    own.launch(&put(), 1, 1, args!(&mut x, 3u32))
        .expect("it is launched");
    // A call that a stream makes leaves none: the next who asks for one does.
    let left = jit
        .adopt_stream(TheirStream::new(&fake))
        .expect("it is adopted");
    own.then(move || drop(left)).expect("it is called");
    own.synchronize().expect("the work ends");
    assert_eq!(streams(), 2);
    drop(
        jit.adopt_stream(TheirStream::new(&fake))
            .expect("it is adopted"),
    );
    assert_eq!((streams(), fake.race()), (1, None));
    drop((own, x, jit));
    assert_eq!(fake.ledger(), super::fake::Ledger::default());
}

#[test]
fn memory_is_lent_in_a_stream_without_waiting() {
    let fake = Fake::new();
    fake.set_lazy(true);
    let jit = jit(&fake, HookSet::new());
    let uses = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32));
    let uses = uses.expect("a kernel");
    let mut theirs = Theirs::new(&fake, &[1, 2, 3]);
    let other = Theirs::new(&fake, &[4, 5, 6]);
    let stream = theirs.context.create_stream_beside(0).expect("a stream");
    let other_address = other.address;
    // Work of theirs on the memory, in their stream.
    let copy = |theirs: &Theirs| {
        let known = theirs.context.adopt_memory(other_address, 12);
        let copied = known.and_then(|()| stream.copy_on_device(theirs.address, other_address, 12));
        copied.expect("it is copied");
        theirs
            .context
            .give_up_memory(other_address)
            .expect("it was taken");
    };
    // SAFETY: the stream lives to the end of the test.
    let raw = unsafe { RawStream::new(stream.handle().as_raw()) };
    theirs.context.synchronize().expect("both are filled");
    let adopted = jit.adopt_stream(raw).expect("it is adopted");
    for beside in [jit.stream().expect("a stream"), adopted.clone()] {
        copy(&theirs);
        // SAFETY: they use it in the stream alone.
        let mut lent = unsafe { adopted.lend_mut(&mut theirs) }.expect("it is lent");
        let launched = beside.launch(&uses, 1, 1, args!(&mut *lent));
        launched.expect("it is launched");
        drop(lent);
        copy(&theirs);
        // SAFETY: as above.
        let lent = unsafe { adopted.lend(&theirs) }.expect("it is lent");
        assert_eq!(lent.to_vec().expect("it is read").len(), 3);
    }
    assert_eq!(fake.race(), None);
}

#[test]
fn streams_that_are_refused() {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    // SAFETY: the driver knows what these are, or Kiln does.
    let raw = |handle: usize| unsafe { RawStream::new(handle as *mut c_void) };
    for handle in [0, 1] {
        let own = jit.adopt_stream(raw(handle)).expect("the legacy stream");
        assert_eq!(own.raw_stream(), jit.raw_stream());
    }
    let refused =
        |result: kiln_jit_core::error::Result<_>| result.map(drop).unwrap_err().to_string();
    expect!["the handle of the per-thread default stream (`CU_STREAM_PER_THREAD`) is another stream on each thread, so that work in it has no order that Kiln could keep; give a stream that was created, or the legacy default stream"]
        .assert_eq(&refused(jit.adopt_stream(raw(2))));
    expect!["the stream belongs to another CUDA context than the one it is used with. Create both from the same context"].assert_eq(&refused(jit.adopt_stream(raw(0xE000))));
    let cpu = Jit::on(Device::cpu());
    expect!["this machine's CPU has no streams of other code; use `Jit::stream`"]
        .assert_eq(&refused(cpu.adopt_stream(raw(0))));
    assert_eq!(cpu.raw_stream(), None);
    let adopt = || jit.adopt_stream(TheirStream::new(&fake));
    let mut all: Vec<_> = (0..62)
        .map(|_| adopt().expect("there is a place"))
        .collect();
    expect!["the device has 62 streams beside its own, of which none can be given back for a stream of other code; drop some that are not used"]
        .assert_eq(&refused(adopt()));
    // Kiln's own shares the device's own then.
    assert_eq!(
        jit.stream().expect("a stream").raw_stream(),
        jit.raw_stream()
    );
    drop(all.pop());
    all.push(adopt().expect("there is a place again"));
    assert_eq!(fake.ledger().streams, 62);
}

/// What the other code launches, as a compiler of C has made it.
const THEIRS: &str = "//\n.version 8.0\n.target sm_90\n.visible .entry uses_rw_axpy(\n.param .u64 x,\n.param .u32 xs,\n\
                      .param .u64 y,\n.param .u32 ys,\n.param .f32 a\n)\n{ ret; }\n";

/// The function of the other code's, which keeps its module.
fn their_axpy(fake: &Fake) -> CudaFunction {
    let theirs = CudaContext::with_driver(fake.open().expect("a driver"), 0).expect("a context");
    let module = theirs.load_module(THEIRS.as_bytes(), "axpy");
    let function = module.expect("theirs").function("uses_rw_axpy");
    function.expect("a function")
}

#[test]
fn functions_of_other_code_are_launched_in_order() {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let function = their_axpy(&fake);
    // SAFETY: the function keeps its module, and lives until the end of the test.
    let raw = || unsafe { RawFunction::new(function.as_raw()) };
    let axpy = jit.adopt_function("axpy", raw()).expect("it is adopted");
    let writes = Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32));
    let writes = writes.expect("a kernel");
    let streams = [0, 1].map(|_| jit.stream().expect("a stream"));
    let (mut x, mut y) = (
        jit.zeros::<u32>(8).expect("memory"),
        jit.zeros::<u32>(8).expect("memory"),
    );
    for round in 0..4 {
        let launched = streams[0].launch(&writes, 1, 1, args!(&mut x));
        launched.expect("it is launched");
        let there = axpy.on(&streams[round % 2]).expect("of this device");
        // SAFETY: nothing runs.
        let launched = unsafe { there.launch(3, 32, args!(&x, 8u32, &mut y, 8u32, 2.5f32)) };
        launched.expect("it is launched");
        let [mut want, there] = [&x, &y].map(|buffer| buffer.address().to_ne_bytes().to_vec());
        want.extend(8u64.to_ne_bytes());
        want.extend(there);
        want.extend(8u32.to_ne_bytes());
        want.extend(2.5f32.to_ne_bytes());
        assert_eq!(fake.last_params(), want);
        assert_eq!(fake.last_launch()[..6], [3, 1, 1, 32, 1, 1]);
        let launched = streams[1].launch(&writes, 1, 1, args!(&mut x));
        launched.expect("it is launched");
        let launched = streams[0].launch(&writes, 1, 1, args!(&mut y));
        launched.expect("it is launched");
    }
    assert_eq!(fake.race(), None);
    let before = fake.ledger().modules;
    drop(axpy);
    assert_eq!(fake.ledger().modules, before, "it is theirs");
}

#[test]
fn functions_that_are_refused() {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let function = their_axpy(&fake);
    // SAFETY: the function keeps its module, and lives until the end of the test.
    let raw = || unsafe { RawFunction::new(function.as_raw()) };
    let axpy = jit.adopt_function("axpy", raw()).expect("it is adopted");
    let mut x = jit.zeros::<u32>(8).expect("memory");
    let mut y = jit.zeros::<u32>(8).expect("memory");
    let cpu = Jit::on(Device::cpu());
    let z = cpu.zeros::<u32>(8).expect("memory");
    let mut texts = Vec::new();
    // SAFETY: nothing runs.
    let mut refused = |result: kiln_jit_core::error::Result<()>| {
        texts.push(result.expect_err("it is refused").to_string());
    };
    // SAFETY: nothing runs, here and below.
    unsafe {
        refused(axpy.launch(1, 32, args!(&x, &mut y, 2.5f32)));
        refused(axpy.launch(1, 32, args!(&x, 8u32, &mut y, 8u32, 2.5f64)));
        refused(axpy.launch(1, 32, args!(2u32, 8u32, &mut y, 8u32, 2.5f32)));
        refused(axpy.launch(1, 32, args!(&z, 8u32, &mut y, 8u32, 2.5f32)));
        refused(axpy.launch(1, 2000, args!(&x, 8u32, &mut y, 8u32, 2.5f32)));
    }
    // SAFETY: it is refused.
    let none = unsafe { RawFunction::new(std::ptr::without_provenance_mut(8)) };
    refused(jit.adopt_function("none", none).map(drop));
    refused(cpu.adopt_function("axpy", raw()).map(drop));
    x.write(&[1]).expect("the device works");
    // Other tests have devices, too.
    let id = cpu.device().info().id.to_string();
    let texts = texts.join("\n").replace(&id, "CPU device N");
    expect![[r#"
        function `axpy` has parameters of [8, 4, 8, 4, 4] bytes, and was given arguments of [8, 8, 4]; a buffer is an address of 8 bytes, and its length an argument of its own
        function `axpy` has parameters of [8, 4, 8, 4, 4] bytes, and was given arguments of [8, 4, 8, 4, 8]; a buffer is an address of 8 bytes, and its length an argument of its own
        function `axpy` has parameters of [8, 4, 8, 4, 4] bytes, and was given arguments of [4, 4, 8, 4, 4]; a buffer is an address of 8 bytes, and its length an argument of its own
        kernel `axpy`: argument 1 (`parameter 1`) lies on CPU device N, and the launch is on CUDA device 0; copy it with `to_vec` and `upload`
        kernel `axpy`: the number of threads of a block is 2000, the device's limit is 1024; use a smaller block and a larger grid
        cuFuncGetAttribute failed: CUDA_ERROR_INVALID_HANDLE (400: invalid resource handle). See this code in the CUDA Driver API reference; run with CUDA_LAUNCH_BLOCKING=1 to find the call that caused it
        this machine's CPU has no functions of other code; launch them on a GPU of NVIDIA's, or write them as kernels"#]].assert_eq(&texts);
}

/// A driver that does not say what parameters functions have is not asked to launch any.
#[test]
fn functions_of_an_older_driver() {
    let fake = Fake::without(&["cuFuncGetParamInfo"]);
    let jit = jit(&fake, HookSet::new());
    let function = their_axpy(&fake);
    // SAFETY: the function keeps its module, and lives until the end of the test.
    let raw = unsafe { RawFunction::new(function.as_raw()) };
    let refused = jit.adopt_function("axpy", raw).expect_err("it is refused");
    expect!["CUDA device 0: the driver does not say what parameters `axpy` has (cuFuncGetParamInfo, CUDA 12.4). Update the NVIDIA driver, or launch it by the library that has loaded it"].assert_eq(&refused.to_string());
}

/// And the other way round: other code launches what Kiln has compiled.
#[test]
fn kernels_are_functions_of_other_code() {
    let fake = Fake::new();
    let jit = jit(&fake, HookSet::new());
    let kernel = Kernel::build("plain", |k| {
        let x = k.slice_mut("x", Type::U32);
        k.if_(x.len().gt(0), || x.at(0).set(1u32));
    });
    let mut x = jit.zeros::<u32>(8).expect("memory");
    let ready = jit.compile(&kernel.expect("a kernel"), args!(&mut x));
    let ready = ready.expect("it compiles");
    let layout = &ready.info().layout;
    let function = ready
        .raw_function(32)
        .expect("it is loaded")
        .expect("on a GPU");
    let theirs = CudaContext::with_driver(fake.open().expect("a driver"), 0).expect("a context");
    // SAFETY: `ready` keeps it.
    let function = unsafe { theirs.adopt_function(function, "plain") }.expect("a function");
    let params = function
        .parameters()
        .expect("it is asked")
        .expect("it says so");
    assert_eq!(params, layout.slots);
    let cpu = Jit::on(Device::cpu());
    let mut x = cpu.zeros::<u32>(8).expect("memory");
    let ready = cpu
        .compile(&put(), args!(&mut x, 1u32))
        .expect("it compiles");
    assert_eq!(ready.raw_function(32).expect("it compiles"), None);
}
