//! What launches pass: each way to launch a list of arguments gives the driver the same block, the one that a C compiler
//! would lay out, and keeps the same order.

use kiln::core::hook::Hook;
use kiln::core::launch::LaunchError;
use kiln::prelude::*;

use crate::fake::Fake;

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct Wide {
    low: f64,
    high: u32,
    last: u16,
}

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct Odd {
    first: u16,
    second: u8,
}

/// Numbers of all sizes, one behind the other of one size and of several, slices that are read and written, structs of
/// two words and of fewer bytes than a power of two.
#[kernel]
#[allow(clippy::too_many_arguments, reason = "it is about them")]
fn of_all_kinds(
    a: u8,
    x: &[f32],
    b: u16,
    c: u32,
    d: f32,
    e: i32,
    y: &mut [u32],
    z: &mut [u32],
    f: f64,
    g: u64,
    wide: Wide,
    odd: Odd,
    h: i8,
    v: &[f32],
    w: &[f32],
    i: u16,
) {
    let _ = (a, b, c, d, e, f, g, h, i);
    let _ = (x, y, z, v, w, wide.low, odd.first);
}

#[kernel]
fn add(x: &mut [u32], n: u32) {
    x[thread_idx().x] += n;
}

/// A block as C lays it out.
#[derive(Default)]
struct Block(Vec<u8>);

impl Block {
    fn put(&mut self, align: usize, bytes: &[u8]) {
        self.0.resize(self.0.len().next_multiple_of(align), 0);
        self.0.extend_from_slice(bytes);
    }

    fn slice<T: KernelType>(&mut self, x: &Buffer<T>) {
        self.put(8, &x.address().to_le_bytes());
        self.put(4, &(x.len() as u32).to_le_bytes());
    }
}

fn device(fake: &Fake) -> Device {
    Device::cuda_of(fake.open().expect("it opens"), 0).expect("a device")
}

#[test]
fn all_ways_pass_the_same_block() {
    let fake = Fake::new();
    let jit = Jit::on(device(&fake));
    let seen = Jit::builder().device(jit.device().clone());
    let seen = seen.hook(Hook::new("sees").before_launch(|_| Ok(())));
    let seen = seen.build().expect("a `Jit`");
    let zeros = |jit: &Jit, n| jit.zeros::<u32>(n).expect("memory");
    let x = jit.zeros::<f32>(3).expect("memory");
    let (mut y, mut z) = (zeros(&jit, 5), zeros(&jit, 7));
    let (wide, odd) = (
        Wide {
            low: -2.5,
            high: 0x8765_4321,
            last: 0xFEDC,
        },
        Odd {
            first: 0xABCD,
            second: 0xEF,
        },
    );
    let mut expected = Block::default();
    expected.put(1, &[0x81]);
    expected.slice(&x);
    expected.put(2, &0x8182u16.to_le_bytes());
    expected.put(4, &0x8182_8384u32.to_le_bytes());
    expected.put(4, &1.5f32.to_le_bytes());
    expected.put(4, &(-2i32).to_le_bytes());
    expected.slice(&y);
    expected.slice(&z);
    expected.put(8, &0.1f64.to_le_bytes());
    expected.put(8, &u64::MAX.to_le_bytes());
    expected.put(8, &wide.low.to_le_bytes());
    expected.put(4, &wide.high.to_le_bytes());
    expected.put(4, &u32::from(wide.last).to_le_bytes());
    expected.put(2, &odd.first.to_le_bytes());
    expected.put(1, &[odd.second, 0]);
    expected.put(1, &[0xFD]);
    expected.slice(&x);
    expected.slice(&x);
    expected.put(2, &0x0102u16.to_le_bytes());
    macro_rules! list {
        () => {
            args!(
                0x81u8,
                &x,
                0x8182u16,
                0x8182_8384u32,
                1.5f32,
                -2i32,
                &mut y,
                &mut z,
                0.1f64,
                u64::MAX,
                wide,
                odd,
                -3i8,
                &x,
                &x,
                0x0102u16
            )
        };
    }
    let ready = jit.compile(&of_all_kinds, list!()).expect("a kernel");
    // The first launch finds its code in another way than those after it.
    for turn in 0..3 {
        let check = |way: &str| assert_eq!(fake.last_params(), expected.0, "{way}, launch {turn}");
        jit.launch(&of_all_kinds, 1, 32, list!()).expect("a launch");
        check("a list");
        ready.launch(1, 32, list!()).expect("a launch");
        check("prepared");
        seen.launch(&of_all_kinds, 1, 32, list!())
            .expect("a launch");
        check("a list that a hook sees");
        let (y, z) = (&mut y, &mut z);
        of_all_kinds
            .launch(
                &jit,
                (1, 32),
                0x81,
                &x,
                0x8182,
                0x8182_8384,
                1.5,
                -2,
                y,
                z,
                0.1,
                u64::MAX,
                wide,
                odd,
                -3,
                &x,
                &x,
                0x0102,
            )
            .expect("a launch");
        check("typed");
    }
}

/// What rustc knows of an argument tells most lists apart; where it is of another type of the host, the kernel's decides.
#[test]
fn lists_of_other_host_types_are_alike_where_the_kernels_are() {
    let fake = Fake::new();
    let jit = Jit::on(device(&fake));
    let mut x = jit.zeros::<u32>(32).expect("memory");
    let ready = jit.compile(&add, args!(&mut x, 3u32)).expect("a kernel");
    let passed = |fake: &Fake| fake.last_params()[12..16].to_vec();
    for n in [1usize, 70_000] {
        ready.launch(1, 32, args!(&mut x, n)).expect("a launch");
        assert_eq!(passed(&fake), (n as u32).to_le_bytes());
        jit.launch(&add, 1, 32, args!(&mut x, n)).expect("a launch");
        assert_eq!(passed(&fake), (n as u32).to_le_bytes());
        jit.launch(&add, 1, 32, args!(&mut x, 5u32))
            .expect("a launch");
        assert_eq!(passed(&fake), 5u32.to_le_bytes());
    }
    assert_eq!(jit.cache_stats().compiles, 1);
    // What has no room is no launch, whatever was found before.
    let large = 1usize << 32;
    for refused in [
        ready.launch(1, 32, args!(&mut x, large)),
        jit.launch(&add, 1, 32, args!(&mut x, large)),
    ] {
        let is_out_of_range = |error: &kiln::Error| {
            matches!(
                error,
                kiln::Error::Launch(LaunchError::OutOfRange {
                    value: 0x1_0000_0000,
                    ..
                })
            )
        };
        assert!(refused.as_ref().is_err_and(is_out_of_range), "{refused:?}");
    }
    assert_eq!(passed(&fake), 5u32.to_le_bytes());
}

/// A slot stands for an argument of the same type, and has no words of its own.
#[test]
fn a_slot_is_not_launched() {
    let fake = Fake::new();
    let jit = Jit::on(device(&fake));
    let mut x = jit.zeros::<u32>(32).expect("memory");
    let ready = jit.compile(&add, args!(&mut x, 3u32)).expect("a kernel");
    for _ in 0..2 {
        jit.launch(&add, 1, 32, args!(&mut x, 3u32))
            .expect("a launch");
    }
    let before = fake.calls();
    let mut y = jit.zeros::<u32>(32).expect("memory");
    let recorded = jit.graph((&mut x, 3u32), |_, (mut x, n)| {
        let refused = [
            jit.launch(&add, 1, 32, args!(&mut x, &n)),
            ready.launch(1, 32, args!(&mut x, 3u32)),
            ready.launch(1, 32, args!(&mut y, &n)),
        ];
        for refused in refused {
            let error = refused.expect_err("a slot has no value");
            assert!(matches!(error, kiln::Error::Graph(_)), "{error}");
        }
        Ok(())
    });
    drop(recorded);
    assert_eq!(fake.last_params()[12..16], 3u32.to_le_bytes());
    assert!(fake.calls() > before);
}

macro_rules! seventy {
    ($then:ident $($first:tt)*) => {
        $then! { $($first)*
            a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 a27 a28
            a29 a30 a31 a32 a33 a34 a35 a36 a37 a38 a39 a40 a41 a42 a43 a44 a45 a46 a47 a48 a49 a50 a51 a52 a53 a54
            a55 a56 a57 a58 a59 a60 a61 a62 a63 a64 a65 a66 a67 a68 a69
        }
    };
}

macro_rules! with_a_slice {
    ($kernel:ident $($arg:ident)*) => {
        #[kernel]
        #[allow(clippy::too_many_arguments, reason = "it is about them")]
        fn $kernel($($arg: u32,)* x: &mut [u32]) {
            $(let _ = $arg;)*
            x[0] = 1;
        }
    };
}

seventy!(with_a_slice behind_seventy);

macro_rules! seventy_and {
    ($x:expr; $($arg:ident)*) => {
        args!($({ let _ = stringify!($arg); 7u32 },)* $x)
    };
}

macro_rules! list_behind {
    ($x:expr) => {
        seventy!(seventy_and $x;)
    };
}

/// A slice behind more arguments than there are bits for: it is ordered as any other.
#[test]
fn a_slice_behind_many_numbers_is_ordered() {
    let fake = Fake::new();
    let jit = Jit::on(device(&fake));
    let stream = jit.stream().expect("a stream");
    let mut x = jit.zeros::<u32>(32).expect("memory");
    let launch =
        |jit: &Jit, x: &mut Buffer<u32>| jit.launch(&behind_seventy, 1, 1, list_behind!(x));
    for turn in 0..3 {
        launch(&jit, &mut x).expect("a launch");
        let waits = fake.waits();
        launch(&jit, &mut x).expect("a launch");
        assert_eq!(
            fake.waits(),
            waits,
            "it is behind its own stream's, turn {turn}"
        );
        launch(&stream, &mut x).expect("a launch");
        assert_eq!(
            fake.waits(),
            waits + 1,
            "it waits for the other stream, turn {turn}"
        );
        add.launch(&jit, (1, 1), &mut x, 1).expect("a launch");
        assert_eq!(
            fake.waits(),
            waits + 2,
            "it waits for the list's, turn {turn}"
        );
    }
}

#[kernel]
fn four_slices(a: &[u32], b: &[u32], c: &mut [u32], d: &[u32]) {
    c[0] = a[0] + b[0] + d[0];
}

#[kernel]
fn first_of(x: &[u32], y: &mut [u32]) {
    y[0] = x[0];
}

/// Slices are looked at together: each of them, read or written by another stream, is seen all the same.
#[test]
fn each_of_several_slices_is_ordered() {
    let fake = Fake::new();
    let jit = Jit::on(device(&fake));
    let other = jit.stream().expect("a stream");
    let mut buffers: Vec<Buffer<u32>> = (0..4).map(|_| jit.zeros(32).expect("memory")).collect();
    let mut apart = jit.zeros::<u32>(32).expect("memory");
    let ready = {
        let [a, b, c, d] = &mut buffers[..] else {
            unreachable!()
        };
        jit.compile(&four_slices, args!(&*a, &*b, c, &*d))
            .expect("a kernel")
    };
    // Waits of a launch, by a list or prepared.
    let waits = |buffers: &mut [Buffer<u32>], is_ready: bool| {
        let before = fake.waits();
        let [a, b, c, d] = buffers else {
            unreachable!()
        };
        let args = args!(&*a, &*b, c, &*d);
        let launched = match is_ready {
            true => ready.launch(1, 1, args),
            false => jit.launch(&four_slices, 1, 1, args),
        };
        launched.expect("a launch");
        fake.waits() - before
    };
    for is_ready in [false, true, false, true] {
        waits(&mut buffers, is_ready);
        assert_eq!(waits(&mut buffers, is_ready), 0);
        for at in 0..4 {
            other
                .launch(&add, 1, 1, args!(&mut buffers[at], 1u32))
                .expect("a launch");
            assert_eq!(waits(&mut buffers, is_ready), 1, "{at} was written");
            assert_eq!(waits(&mut buffers, is_ready), 0, "{at} is known");
            other
                .launch(&first_of, 1, 1, args!(&buffers[at], &mut apart))
                .expect("a launch");
            assert_eq!(
                waits(&mut buffers, is_ready),
                u64::from(at == 2),
                "{at} was read"
            );
        }
        // What the list has read and written others wait for.
        for (at, buffer) in buffers.iter_mut().enumerate() {
            let before = fake.waits();
            other
                .launch(&add, 1, 1, args!(&mut *buffer, 1u32))
                .expect("a launch");
            let waited = fake.waits() - before;
            // One event stands for all that the stream was given before.
            assert_eq!(waited, u64::from(at == 0), "{at} is used by a list");
        }
    }
}
