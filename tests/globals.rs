//! Memory of a device that kernels of one `Jit` share by name.

use expect_test::expect;
use kiln::Result;
use kiln::core::ir::Type;
use kiln::core::runtime::OnHostOptions;
use kiln::core::target::Target;
use kiln::prelude::*;

/// A `Jit` for each machine of this process, by its name.
fn machines() -> Vec<(&'static str, Jit)> {
    let interpreted = JitOptions::default().target(Target::Interpreter);
    let on_host = OnHostOptions::default().device();
    let jit = |device, options| Jit::with(device, kiln::hooks::standard(), options);
    vec![
        ("compiled", jit(Device::cpu(), JitOptions::default())),
        ("interpreted", jit(Device::cpu(), interpreted)),
        ("gpu on host", jit(on_host, JitOptions::default())),
    ]
}

/// Adds a number to each of four totals that begin with 10, 20, 30 and 40, once a thread.
fn counts(name: &str, number: u32) -> Result<Kernel> {
    Kernel::build(name, |k| adds(k, number))
}

fn adds(k: &KernelBuilder, number: u32) {
    let totals = k.global("totals", &[10u32, 20, 30, 40]);
    totals.at(k.global_id().x() % 4).atomic_add(number);
}

#[test]
fn kernels_and_the_host_share_what_is_there() -> Result<()> {
    for (name, jit) in machines() {
        let (one, two) = (counts("one", 1)?, counts("two", 2)?);
        jit.launch(&one, 1, 32, args!())?;
        let totals = jit.global::<u32>("totals")?;
        assert_eq!(totals.to_vec()?, [18, 28, 38, 48], "{name}");
        jit.launch(&two, 1, 32, args!())?;
        assert_eq!(totals.to_vec()?, [34, 44, 54, 64], "{name}");
        totals.write(&[0, 0])?;
        one.redefine(|k| adds(k, 100))?;
        jit.launch(&one, 1, 4, args!())?;
        assert_eq!(totals.to_vec()?, [100, 100, 154, 164], "{name}");
    }
    Ok(())
}

#[test]
fn specializations_share_and_jits_do_not() -> Result<()> {
    let kernel = Kernel::build("typed", |k| {
        let t = k.type_param("T").any();
        k.slice("x", t);
        let calls = k.global_zeros::<u64>("calls", 1);
        calls.at(0).atomic_add(1);
    })?;
    for (name, jit) in machines() {
        let (x, y) = (jit.zeros::<f32>(4)?, jit.zeros::<i64>(4)?);
        jit.launch(&kernel, 1, 8, args!(&x))?;
        jit.launch(&kernel, 1, 8, args!(&y))?;
        let prepared = jit.compile(&kernel, args!(&y))?;
        prepared.launch(1, 8, args!(&y))?;
        assert_eq!(jit.global::<u64>("calls")?.to_vec()?, [24], "{name}");
    }
    Ok(())
}

#[test]
fn a_name_stands_for_one_type() -> Result<()> {
    let jit = Jit::with(
        Device::cpu(),
        kiln::hooks::standard(),
        JitOptions::default(),
    );
    let launch = |kernel: Result<Kernel>| jit.launch(&kernel?, 1, 1, args!());
    let mut errors = vec![jit.global::<u32>("totals").map(drop)];
    launch(counts("first", 1))?;
    errors.push(jit.global::<f32>("totals").map(drop));
    errors.push(launch(Kernel::build("longer", |k| {
        k.global_zeros::<u32>("totals", 5)
            .at(0)
            .set(k.lit(Type::U32, 1));
    })));
    let errors = errors
        .into_iter()
        .map(|e| e.expect_err("it is wrong").to_string());
    expect![[r#"
        no kernel with a global `totals` was launched by this `Jit`; its memory is made by the first launch of one that reads or writes it

        global `totals` is a `ptr<global, mut [u32; 4]>`, declared at tests/globals.rs:28:20, and no array of `f32`

        global `totals` is a `ptr<global, mut [u32; 4]>` at tests/globals.rs:28:20, and a `ptr<global, mut [u32; 5]>` at tests/globals.rs:80:11; it is the same memory, so give one of them another name"#]].assert_eq(&errors.collect::<Vec<_>>().join("\n\n"));
    Ok(())
}
