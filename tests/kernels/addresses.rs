//! Kernels that do with addresses what can be done with them: keep them in arrays and tuples, choose
//! between them, look at their bits, begin with none. What any of them computes does not depend on the
//! hooks.

use kiln::Result;
use kiln::core::front::AsKernel;
use kiln::prelude::*;

/// How many elements `a`, `b` and `out` have, and threads the block.
pub const N: usize = 64;

/// An element of `out`, from `a`, `b` and its index.
pub type Expected = fn(&[u32], &[u32], usize) -> u32;

/// A kernel with parameters `a: &[u32]`, `b: &[u32]`, `out: &mut [u32]`, and what an element of `out`, all
/// zeros before, is afterwards.
pub struct Example {
    /// What it does with addresses.
    pub name: &'static str,
    /// The kernel.
    pub kernel: Kernel,
    /// What it computes.
    pub expected: Expected,
}

/// All of them.
pub fn examples() -> Result<Vec<Example>> {
    let mut list = in_rust()?;
    for (name, build, expected) in BUILT {
        let kernel = build(name)?;
        list.push(Example {
            name,
            kernel,
            expected: *expected,
        });
    }
    Ok(list)
}

/// Runs an example and compares.
pub fn check(jit: &Jit, example: &Example) -> Result<()> {
    let host_a: Vec<u32> = (0..N as u32).map(|i| 3 * i + 1).collect();
    let host_b: Vec<u32> = (0..N as u32).map(|i| 1000 - 7 * i).collect();
    let (a, b) = (jit.upload(&host_a)?, jit.upload(&host_b)?);
    let mut out = jit.zeros::<u32>(N)?;
    jit.launch(&example.kernel, 1, N as u32, args!(&a, &b, &mut out))?;
    let expected = (0..N).map(|i| (example.expected)(&host_a, &host_b, i));
    let expected: Vec<u32> = expected.collect();
    assert_eq!(out.to_vec()?, expected, "{}", example.name);
    Ok(())
}

#[kernel]
fn array_of_slices(a: &[u32], b: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    let two = [a, b];
    if i < out.len() {
        out[i] = two[i % 2][i];
    }
}

#[kernel]
fn replaced_in_an_array(a: &[u32], b: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    let mut two = [a, a];
    two[i % 2] = b;
    if i < out.len() {
        out[i] = two[0][i];
    }
}

#[device_fn]
fn total(parts: &[&[u32]; 2], i: usize) -> u32 {
    parts[0][i] + parts[1][i]
}

#[kernel]
fn array_of_slices_as_an_argument(a: &[u32], b: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    let parts = [a, b];
    if i < out.len() {
        out[i] = total(&parts, i);
    }
}

#[kernel]
fn each_of_an_array(a: &[u32], b: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    for part in [a, b] {
        if i < out.len() {
            out[i] += part[i];
        }
    }
}

#[kernel]
fn tuple_that_is_swapped(a: &[u32], b: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    let mut pair = (a, b);
    for _ in 0..i {
        pair = (pair.1, pair.0);
    }
    if i < out.len() {
        out[i] = pair.0[i];
    }
}

#[device_fn]
fn head(pair: (&[u32], &[u32]), i: usize) -> u32 {
    pair.0[i] + pair.1[i]
}

#[kernel]
fn tuple_as_an_argument(a: &[u32], b: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = head((a, b), i);
    }
}

#[kernel]
fn nested_tuples(a: &[u32], b: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    let nested = ((a, 1u32), b);
    if i < out.len() {
        out[i] = nested.0.0[i] + nested.1[i] + nested.0.1;
    }
}

#[kernel]
fn tuple_by_a_choice(a: &[u32], b: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    let (p, q) = if i % 3 == 0 { (a, b) } else { (b, a) };
    if i < out.len() {
        out[i] = p[i] + 2 * q[i];
    }
}

#[kernel]
fn array_of_tuples(a: &[u32], b: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    let parts = [(a, b), (b, a), (a, a)];
    if i < out.len() {
        out[i] = parts[i % 3].0[i] + 2 * parts[i % 3].1[i];
    }
}

#[kernel]
fn shared_or_global(a: &[u32], b: &[u32], out: &mut [u32]) {
    let tile = shared!([u32; 64]);
    let i = thread_idx().x;
    tile[i] = b[i] + 1;
    barrier();
    let part: &[u32] = if i % 2 == 0 { a } else { &tile[..] };
    out[i] = part[i];
}

fn in_rust() -> Result<Vec<Example>> {
    macro_rules! examples {
        ($($kernel:ident: $expected:expr;)*) => {
            vec![$(Example {
                name: stringify!($kernel),
                kernel: AsKernel::as_kernel(&$kernel)?.clone(),
                expected: $expected,
            }),*]
        };
    }
    Ok(examples! {
        array_of_slices: |a, b, i| [a, b][i % 2][i];
        replaced_in_an_array: |a, b, i| if i % 2 == 0 { b[i] } else { a[i] };
        array_of_slices_as_an_argument: |a, b, i| a[i] + b[i];
        each_of_an_array: |a, b, i| a[i] + b[i];
        tuple_that_is_swapped: |a, b, i| if i % 2 == 0 { a[i] } else { b[i] };
        tuple_as_an_argument: |a, b, i| a[i] + b[i];
        nested_tuples: |a, b, i| a[i] + b[i] + 1;
        tuple_by_a_choice: |a, b, i| match i % 3 {
            0 => a[i] + 2 * b[i],
            _ => b[i] + 2 * a[i],
        };
        array_of_tuples: |a, b, i| match i % 3 {
            0 => a[i] + 2 * b[i],
            1 => b[i] + 2 * a[i],
            _ => 3 * a[i],
        };
        shared_or_global: |a, b, i| if i % 2 == 0 { a[i] } else { b[i] + 1 };
    })
}

type Build = fn(&str) -> Result<Kernel>;

/// Kernels that only the builder can say.
const BUILT: &[(&str, Build, Expected)] = &[
    (
        "null_slice",
        null_slice,
        |a, _, i| if i < 16 { a[i] } else { 0 },
    ),
    (
        "null_pointer",
        null_pointer,
        |a, _, i| if i < 16 { a[0] } else { 0 },
    ),
    ("null_everywhere", null_everywhere, |_, _, i| {
        if i < 16 { 5 } else { 0 }
    }),
    ("null_as_a_number", null_as_a_number, |_, _, i| {
        (i < 16).into()
    }),
    ("offset_null", offset_null, |a, _, i| {
        if i < 16 { a[i] } else { 4 * i as u32 }
    }),
    ("walk_from_null", walk_from_null, |a, _, i| {
        if i < 16 { a[i] } else { 4 * i as u32 }
    }),
    ("chosen_numbers", chosen_numbers, |a, _, i| {
        if i < 16 { a[i] } else { 400 }
    }),
    ("seen_as_another_type", seen_as_another_type, |a, _, i| {
        (a[i] as f32).to_bits()
    }),
    (
        "shared_address_as_a_number",
        shared_address_as_a_number,
        |a, _, i| a[63 - i],
    ),
    (
        "offset_in_shared_memory",
        offset_in_shared_memory,
        |_, _, i| 4 * i as u32,
    ),
    ("one_slice_twice", one_slice_twice, |a, b, i| {
        2 * a[i] + b[i] + a[i]
    }),
    (
        "atomic_in_local_memory",
        atomic_in_local_memory,
        |a, _, i| 2 * a[i],
    ),
    ("kept_in_memory", kept_in_memory, |a, b, i| {
        if i % 4 == 0 { b[i] } else { a[i] }
    }),
];

/// The kernel `body` over the index, `a`, `b`, and `out`.
fn over(
    name: &str,
    body: impl for<'k> Fn(&'k KernelBuilder, Val<'k>, [Val<'k>; 3]),
) -> Result<Kernel> {
    Kernel::build(name, |k| {
        let slices = [
            k.slice("a", Type::U32),
            k.slice("b", Type::U32),
            k.slice_mut("out", Type::U32),
        ];
        body(k, k.thread_idx().x(), slices);
    })
}

fn null_slice(name: &str) -> Result<Kernel> {
    over(name, |k, i, [a, _, out]| {
        let slice = i.lt(16).select(a, k.zero(a.ty()));
        k.if_(i.lt(slice.len()), || out.at(i).set(slice.at(i)));
    })
}

fn null_pointer(name: &str) -> Result<Kernel> {
    over(name, |k, i, [a, _, out]| {
        let p = k.var("p", k.zero(a.as_ptr().ty()));
        k.if_(i.lt(16), || p.set(a.as_ptr()));
        // SAFETY: it was set to the address of an element.
        k.if_(i.lt(16), || out.at(i).set(unsafe { p.get().deref() }));
    })
}

/// Null from a variable that is not assigned, by a loop, by a function, each met by a real address.
fn null_everywhere(name: &str) -> Result<Kernel> {
    let nothing = DeviceFn::build("nothing", |f| {
        let p = f.pointer_mut("p", Type::U32);
        f.return_value(f.zero(p.ty()));
    })?;
    over(name, move |k, i, [_, _, out]| {
        let tile = k.shared_array("tile", Type::U32, N as u32);
        tile.at(i).set(5u32);
        k.barrier();
        let real = k.var("real", tile.as_ptr().to_generic());
        let real = real.get();
        let unset = k.uninit_var("unset", real.ty());
        let moved = k.var("moved", unset.get());
        let returned = k.call(&nothing, &[unset.get()]);
        let few = i.lt(16);
        let p = k.var("p", moved.get());
        k.if_(few, || p.set(real));
        let q = k.var("q", returned);
        k.if_(few, || q.set(p.get()));
        let r = few.select(q.get(), unset.get());
        // SAFETY: it is the address of the array.
        k.if_(few, || out.at(i).set(unsafe { r.offset(i).deref() }));
    })
}

/// Whether an address is null, one into shared memory or none.
fn null_as_a_number(name: &str) -> Result<Kernel> {
    over(name, |k, i, [_, _, out]| {
        let tile = k.shared_array("tile", Type::U32, N as u32);
        tile.at(i).set(0u32);
        let p = k.var("p", k.zero(tile.as_ptr().to_generic().ty()));
        k.if_(i.lt(16), || p.set(tile.as_ptr().to_generic().offset(i)));
        let number = p.get().bitcast(Type::U64);
        let is_some = number.ne(k.lit(Type::U64, 0));
        out.at(i)
            .set(is_some.select(k.lit(Type::U32, 1), k.lit(Type::U32, 0)));
    })
}

/// Threads from the 16th on have an address that `nowhere` gives, the others that of their element in
/// shared memory; those write the element, these the number that the address is.
fn somewhere_or_nowhere(
    name: &str,
    nowhere: impl for<'k> Fn(&'k KernelBuilder, Val<'k>, Val<'k>) -> Val<'k>,
) -> Result<Kernel> {
    over(name, |k, i, [a, _, out]| {
        let tile = k.shared_array("tile", Type::U32, N as u32);
        tile.at(i).set(a.at(i));
        k.barrier();
        let first = tile.as_ptr().to_generic();
        let p = k.var("p", k.zero(first.ty()));
        let few = i.lt(16);
        k.if_(few, || p.set(first.offset(i)))
            .else_(|| p.set(nowhere(k, i, k.zero(first.ty()))));
        let address = p.get();
        // SAFETY: the address of this thread's element.
        k.if_(few, || out.at(i).set(unsafe { address.deref() }))
            .else_(|| out.at(i).set(address.bitcast(Type::U64).cast(Type::U32)));
    })
}

fn offset_null(name: &str) -> Result<Kernel> {
    somewhere_or_nowhere(name, |_, i, null| null.offset(i))
}

fn walk_from_null(name: &str) -> Result<Kernel> {
    somewhere_or_nowhere(name, |k, i, null| {
        let p = k.var("walking", null);
        k.for_range(0u32, i, |_| p.set(p.get().offset(1u32)));
        p.get()
    })
}

/// No null, but numbers that are addresses all the same.
fn chosen_numbers(name: &str) -> Result<Kernel> {
    somewhere_or_nowhere(name, |k, i, null| {
        let address = |number: u64| k.lit(Type::U64, number).bitcast(null.ty());
        i.lt(100).select(address(400), address(800))
    })
}

fn seen_as_another_type(name: &str) -> Result<Kernel> {
    over(name, |k, i, [a, _, out]| {
        let floats = k.local_array(Type::F32, 4);
        floats.at(i % 4u32).set(a.at(i).get().cast(Type::F32));
        let address = floats.at(i % 4u32).address().to_generic();
        let wanted = k.local(Type::U32).address().to_generic().ty();
        // SAFETY: a number of 32 bits is there.
        out.at(i).set(unsafe { address.bitcast(wanted).deref() });
    })
}

fn shared_address_as_a_number(name: &str) -> Result<Kernel> {
    over(name, |k, i, [a, _, out]| {
        let first = k.shared_array("first", Type::U32, 16);
        let tile = k.shared_array("tile", Type::U32, N as u32);
        k.if_(i.lt(16u32), || first.at(i).set(1u32));
        k.barrier();
        tile.at(i).set(a.at(i));
        k.barrier();
        let p = tile.as_ptr().to_generic();
        let number = p.bitcast(Type::U64) + (k.lit(Type::U64, 63) - i.cast(Type::U64)) * 4u64;
        // SAFETY: it is the address of an element.
        out.at(i).set(unsafe { number.bitcast(p.ty()).deref() });
    })
}

/// The number of an address in shared memory is what it was before: no generic address.
fn offset_in_shared_memory(name: &str) -> Result<Kernel> {
    over(name, |k, i, [_, _, out]| {
        let tile = k.shared_array("tile", Type::U32, N as u32);
        let first = tile.as_ptr().bitcast(Type::U64);
        let this = tile.as_ptr().offset(i).bitcast(Type::U64);
        out.at(i).set((this - first).cast(Type::U32));
    })
}

/// A function whose two parameters are given one slice, and elsewhere two that lie in two memories.
fn one_slice_twice(name: &str) -> Result<Kernel> {
    let add = DeviceFn::build("add", |f| {
        let (x, y) = (f.slice_mut("x", Type::U32), f.slice_mut("y", Type::U32));
        let i = f.param("i", Type::U32);
        f.return_value(x.at(i) + y.at(i));
    })?;
    over(name, move |k, i, [a, b, out]| {
        let tile = k.shared_array("tile", Type::U32, N as u32);
        tile.at(i).set(b.at(i));
        out.at(i).set(a.at(i));
        let once = k.call(&add, &[out, out, i]);
        out.at(i)
            .set(once + k.call(&add, &[out, tile.to_generic(), i]));
    })
}

/// Shared and generic memory have atomics, local memory has none by that name.
fn atomic_in_local_memory(name: &str) -> Result<Kernel> {
    over(name, |k, i, [a, _, out]| {
        let cell = k.local(Type::U32);
        cell.set(a.at(i));
        let p = k.var("p", cell.address().to_generic());
        // SAFETY: the address of this thread's cell.
        let place = unsafe { p.get().deref() };
        let before = place.atomic_add(a.at(i));
        // SAFETY: the same.
        let after = unsafe { p.get().deref() };
        out.at(i).set(before + after.get() - a.at(i));
    })
}

fn kept_in_memory(name: &str) -> Result<Kernel> {
    over(name, |k, i, [a, b, out]| {
        let slots = k.local_array(a.as_ptr().ty(), 4);
        k.for_range(0u32, 4, |j| slots.at(j).set(a.as_ptr()));
        slots.at(0).set(b.as_ptr());
        let p = slots.at(i % 4u32).get();
        // SAFETY: both have as many elements as there are threads.
        out.at(i).set(unsafe { p.offset(i).deref() });
    })
}
