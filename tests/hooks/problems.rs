//! Several errors of one hook at once.

use expect_test::expect;
use kiln::Result;
use kiln::core::hook::{Hook, Problems};
use kiln::core::ir::InstData;
use kiln::prelude::*;

/// Refuses kernels that wait or that store, and functions named `odd`.
fn refuses() -> Hook {
    Hook::new("refuses").rewrite_ir(|_, module| {
        let mut problems = Problems::default();
        for (id, function) in module.functions.iter() {
            if function.name == "odd" {
                problems.of(module, id, "nothing may be odd");
            }
        }
        module.rewrite_each(|at| match at.data() {
            InstData::Barrier => problems.here(at, "nothing waits here; split the kernel"),
            InstData::Store { .. } => problems.here(at, "nothing is stored here"),
            _ => {}
        });
        problems.into_result()
    })
}

#[test]
fn each_is_told_with_its_place() -> Result<()> {
    let odd = DeviceFn::build("odd", |k| {
        let x = k.at("odd.expr", 1, 1, || k.slice_mut("x", Type::F32));
        k.at("odd.expr", 2, 7, || x.at(0).set(2.0f32));
    })?;
    let describe = |name: &'static str, stores: bool| {
        let odd = odd.clone();
        Kernel::build(name, move |k| {
            k.defined_at("main.expr", 3, 1);
            let x = k.slice_mut("x", Type::F32);
            if stores {
                k.at("main.expr", 4, 5, || x.at(1).set(1.0f32));
                k.at("main.expr", 5, 5, || k.barrier());
                k.call(&odd, &[x]);
            }
        })
    };
    // Before the standard hooks, which put the bodies of functions in place of their calls.
    let jit = Jit::builder()
        .device(Device::cpu())
        .hooks(kiln::hooks::standard().first(refuses()))
        .build()?;
    let mut x = jit.zeros::<f32>(2)?;
    jit.launch(&describe("quiet", false)?, 1, 1, args!(&mut x))?;
    let error = jit.launch(&describe("loud", true)?, 1, 1, args!(&mut x));
    let error = error.expect_err("it stores and waits").to_string();
    expect![[r#"
        hook `refuses` failed: 4 problems
          tests/hooks/problems.rs:29:15 (`odd`): nothing may be odd
          main.expr:4:5 (`loud`): nothing is stored here
          main.expr:5:5 (`loud`): nothing waits here; split the kernel
          odd.expr:2:7 (`odd`): nothing is stored here
          kernel: loud, extension point: rewrite_ir"#]]
    .assert_eq(&error);
    Ok(())
}
