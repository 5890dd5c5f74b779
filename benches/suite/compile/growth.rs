//! Kernels of any size, which show how what a compile takes grows.

use kiln::prelude::*;

/// Describes a kernel of a size.
type Describe = fn(u32) -> kiln::Result<Kernel>;

/// The kernels and their sizes.
pub const FAMILIES: [(&str, Describe, &[u32]); 3] = [
    ("statements", statements, &[1000, 4000, 16000]),
    ("loads", loads, &[250, 1000]),
    ("branches", branches, &[250, 1000, 4000]),
];

/// `v = v * c + y[i]`, again and again.
fn statements(count: u32) -> kiln::Result<Kernel> {
    Kernel::build("statements", |k| {
        let c = k.param("c", Type::F32);
        let y = k.slice_mut("y", Type::F32);
        let i = k.global_id().x();
        let v = k.var("v", k.lit(Type::F32, 0.0));
        for _ in 0..count {
            v.set(v.get() * c + y.at(i).get());
        }
        y.at(i).set(v.get());
    })
}

/// The sum of loads at as many places, each of which is checked.
fn loads(count: u32) -> kiln::Result<Kernel> {
    Kernel::build("loads", |k| {
        let c = k.param("c", Type::F32);
        let y = k.slice_mut("y", Type::F32);
        let i = k.global_id().x();
        let v = k.var("v", c);
        for j in 0..count {
            v.set(v.get() + y.at(i * 3u32 + j * 7).get());
        }
        y.at(i).set(v.get());
    })
}

/// As many branches, one after the other, each with a load and a store.
fn branches(count: u32) -> kiln::Result<Kernel> {
    Kernel::build("branches", |k| {
        let c = k.param("c", Type::F32);
        let y = k.slice_mut("y", Type::F32);
        let i = k.global_id().x();
        let v = k.var("v", c);
        for j in 0..count {
            k.if_(v.get().lt(j as f32), || {
                v.set(v.get() + y.at(i + j).get());
            });
        }
        y.at(i).set(v.get());
    })
}
