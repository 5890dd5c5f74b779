//! Memory and contexts of other code in the process, which here is a second [`CudaContext`]: it shares the device's
//! primary context, and knows nothing of what the first has allocated.

use std::sync::Arc;

use expect_test::expect;
use kiln_jit_core::args;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::lent::{DeviceMemory, Lent, LentMut};
use kiln_jit_core::runtime::cuda::CudaContext;
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
    for (address, len) in [
        (theirs.address, 4),
        (theirs.address + 8, 1),
        (theirs.address - 4, 2),
        (0, 1),
        (u64::MAX - 2, 1),
    ] {
        // SAFETY: it is refused.
        let refused = unsafe { Buffer::<u32>::from_raw(jit.device(), address, len) };
        let error = refused.expect_err("it is known, or no memory").to_string();
        assert!(error.contains("adopt_memory"), "{error}");
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
