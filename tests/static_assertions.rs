//! What functions assert of the type and const arguments that they are specialized for.

use expect_test::expect;
use kiln::Result;
use kiln::core::runtime::OnHostOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

fn machines() -> Vec<(&'static str, Jit)> {
    let target = |target| JitOptions::default().target(target);
    let on_host = OnHostOptions::default().device();
    let jit = |device, options| Jit::with(device, kiln::hooks::standard(), options);
    vec![
        ("compiled", jit(Device::cpu(), JitOptions::default())),
        (
            "interpreted",
            jit(Device::cpu(), target(Target::Interpreter)),
        ),
        ("gpu on host", jit(on_host, JitOptions::default())),
    ]
}

/// Stores `N`, which has to be a multiple of 32 and at most 128.
fn tiles() -> Result<Kernel> {
    Kernel::build("tiles", |k| {
        k.defined_at("tiles.expr", 1, 1);
        let n = k.const_param("N", Type::U32);
        let x = k.slice_mut("x", Type::U32);
        // It is asserted of the function, not of the threads that come here.
        k.if_(x.len().eq(0), || {
            k.at("tiles.expr", 3, 5, || {
                k.static_assert((n % 32).eq(0), "`N` has to be a multiple of 32");
            });
        });
        k.at("tiles.expr", 4, 5, || {
            k.static_assert(n.le(128), "`N` has to be at most 128");
        });
        x.at(0).set(n);
    })
}

#[test]
fn a_condition_that_does_not_hold_is_an_error_with_its_message_and_place() -> Result<()> {
    let tiles = tiles()?;
    for (name, jit) in machines() {
        let mut x = jit.zeros::<u32>(1)?;
        let mut said = String::new();
        for n in [64, 33, 256, 32] {
            let launched = jit.launch(&tiles.with_const("N", n), 1, 1, args!(&mut x));
            match launched {
                Ok(()) => said += &format!("{:?}\n", x.to_vec()?),
                Err(error) => said += &format!("{error}\n"),
            }
        }
        assert_eq!(
            said,
            "[64]\n\
             `tiles` (tiles.expr:3:5): `N` has to be a multiple of 32\n  \
             a static assertion that does not hold with N = 33\n\
             `tiles` (tiles.expr:4:5): `N` has to be at most 128\n  \
             a static assertion that does not hold with N = 256\n\
             [32]\n",
            "{name}"
        );
    }
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let mut x = jit.zeros::<u32>(1)?;
    jit.inspect(&tiles.with_const("N", 96), args!(&mut x))?;
    let refused = jit.inspect(&tiles.with_const("N", 97), args!(&mut x));
    assert!(refused.is_err());
    Ok(())
}

#[test]
fn device_functions_assert_of_each_type_that_they_are_called_with() -> Result<()> {
    let counts = DeviceFn::build("counts", |k| {
        let t = k.type_param("T").num();
        let x = k.param("x", t);
        k.at("counts.expr", 2, 3, || {
            let most = k.lit(Type::U32, 65536u32);
            k.static_assert(
                most.cast(t).cast(Type::U32).eq(65536u32),
                "`T` has to hold 65536; take a wider type",
            );
        });
        k.return_value(x + k.lit(t, 1));
    })?;
    let kernel = |narrow: bool| {
        let counts = counts.clone();
        Kernel::build("calls", move |k| {
            let (x, y) = (k.slice_mut("x", Type::U32), k.slice_mut("y", Type::F16));
            x.at(0).set(k.call(&counts, &[x.at(0).get()]));
            if narrow {
                y.at(0).set(k.call(&counts, &[y.at(0).get()]));
            }
        })
    };
    for (name, jit) in machines() {
        let (mut x, mut y) = (jit.zeros::<u32>(1)?, jit.zeros::<half::f16>(1)?);
        jit.launch(&kernel(false)?, 1, 1, args!(&mut x, &mut y))?;
        assert_eq!(x.to_vec()?, [1], "{name}");
        let error = jit.launch(&kernel(true)?, 1, 1, args!(&mut x, &mut y));
        let error = error.expect_err("the largest `f16` is 65504").to_string();
        assert_eq!(
            error,
            "`counts` (counts.expr:2:3): `T` has to hold 65536; take a wider type\n  \
             a static assertion that does not hold with T = f16",
            "{name}"
        );
    }
    Ok(())
}

#[test]
fn what_only_threads_know_cannot_be_asserted() {
    let built = Kernel::build("asks_threads", |k| {
        k.defined_at("asks.expr", 1, 1);
        let n = k.param("n", Type::U32);
        k.at("asks.expr", 2, 3, || {
            k.static_assert(n.eq(1), "`n` has to be 1")
        });
    });
    let error = built
        .expect_err("no argument of a launch is known")
        .to_string();
    let first = error.lines().take(2).collect::<Vec<_>>().join("\n");
    expect![[r#"
        `asks_threads` breaks 1 rule of the IR
          asks.expr:2:3: in `asks_threads`: the static assertion "`n` has to be 1" depends on what only a thread knows; compute it from constants, type and const parameters"#]].assert_eq(&first);
}

#[test]
fn other_assertions_are_other_content() -> Result<()> {
    let describe = |most: u32, message: &'static str| {
        move |k: &KernelBuilder| {
            let n = k.const_param("N", Type::U32);
            k.slice_mut("x", Type::U32).at(0).set(n);
            k.static_assert(n.le(most), message);
        }
    };
    let kernel = Kernel::build("redefined", describe(8, "at most 8"))?;
    let jit = Jit::on(Device::cpu());
    let mut x = jit.zeros::<u32>(1)?;
    let launch = |x: &mut Buffer<u32>| jit.launch(&kernel.with_const("N", 6), 1, 1, args!(x));
    launch(&mut x)?;
    kernel.redefine(describe(4, "at most 4"))?;
    let error = launch(&mut x).expect_err("6 is more than 4").to_string();
    assert!(error.contains("at most 4"), "{error}");
    Ok(())
}
