//! The rows of intrinsics that hooks put in: they are in the key of the code, and run wherever they were put in.

use std::sync::{Arc, Mutex};

use kiln::Result;
use kiln::core::cache::CacheKey;
use kiln::core::ir::TypePattern;
use kiln::core::prelude::*;
use kiln::core::runtime::{CpuOptions, OnHostOptions};
use kiln::prelude::*;

/// A row by what it gives for `x`, and how it is called on GPUs.
const fn row(
    meaning: fn(Scalar, &[u64]) -> u64,
    ptx: &'static [Cell],
    version: u32,
) -> IntrinsicDef {
    const U32: TypePattern = TypePattern::Exact(Scalar::U32);
    IntrinsicDef::new("rows.more", &[U32], U32, Meaning::Pure(meaning))
        .with_cells(ptx)
        .with_version(version)
}

const CELLS: &[Cell] = &[Cell::asm(Family::PTX, None, "add.u32 $0, $1, 1;", "=r,r")];

static FIRST: IntrinsicDef = row(|_, args| args[0] + 1, CELLS, 1);
/// The next version of the program has it in the same place, and it means something else on CPUs.
static SECOND: IntrinsicDef = row(|_, args| args[0] + 2, CELLS, 2);

/// Has stores of numbers store more. That is all that its key says.
fn more(row: &'static IntrinsicDef, loaded: &Arc<Mutex<Vec<CacheKey>>>) -> Hook {
    let loaded = loaded.clone();
    Hook::new("more")
        .key("row", "rows.more")
        .rewrite_ir(move |_, module| {
            module.rewrite_each(|at| {
                if let &InstData::Store { value, .. } = at.data()
                    && at.type_of(value) == Type::U32
                    && let Some(value) = at.ins().intrinsic(row, &[value])
                {
                    at.set_operand(1, value);
                }
            });
            Ok(())
        })
        .after_load(move |cx, _| {
            loaded.lock().unwrap().push(cx.key.clone());
            Ok(())
        })
}

#[kernel]
fn ones(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = 1;
    }
}

/// What a launch gives with a hook, and the keys that the code is kept under: as inspected and as loaded.
fn compiled(device: Device, row: &'static IntrinsicDef) -> Result<(u32, CacheKey, CacheKey)> {
    let loaded = Arc::default();
    let jit = Jit::with(device, more(row, &loaded).into(), JitOptions::default());
    let mut x = jit.zeros::<u32>(4)?;
    ones.launch(&jit, (1, 32), &mut x)?;
    let found = x.to_vec()?[3];
    let inspection = jit.inspect_block(&ones, 32, args!(&mut x))?;
    let loaded = loaded.lock().unwrap().pop().expect("it was loaded");
    Ok((found, inspection.key().clone(), loaded))
}

fn hooks(key: &CacheKey) -> &str {
    let field = key.fields().find(|(name, _)| *name == "hooks");
    field.map_or("", |(_, text)| text)
}

#[test]
fn two_versions_of_a_row_never_share_code() -> Result<()> {
    for device in [Device::cpu(), OnHostOptions::default().device()] {
        let (first, key, loaded) = compiled(device.clone(), &FIRST)?;
        assert_eq!(key.digest(), loaded.digest());
        let line = hooks(&key).lines().nth(1).unwrap_or_default();
        assert!(line.starts_with("  puts in rows.more v1 "), "{key}");
        assert_eq!(first, 2);

        let (_, again, _) = compiled(device.clone(), &FIRST)?;
        assert_eq!(key.digest(), again.digest());

        let (_, next, loaded) = compiled(device, &SECOND)?;
        assert_ne!(key.digest(), next.digest());
        assert_eq!(next.digest(), loaded.digest());
        let differ = key.fields().zip(next.fields()).filter(|(a, b)| a != b);
        assert!(differ.map(|((name, _), _)| name).eq(["hooks"]));
    }
    Ok(())
}

/// Rows of the kernel's own, and those that the compiler puts in for what is written in the IR, are in its content.
#[test]
fn rows_of_kernels_are_not_of_hooks() -> Result<()> {
    #[kernel]
    fn sines(x: &mut [f32]) {
        let i = global_id().x;
        if i < x.len() {
            x[i] = x[i].sin();
        }
    }
    let jit = Jit::on(Device::cpu());
    let mut x = jit.zeros::<f32>(4)?;
    let inspection = jit.inspect_block(&sines, 32, args!(&mut x))?;
    assert_eq!(hooks(inspection.key()), jit.hooks().fingerprint());
    Ok(())
}

/// Stores the sine of what is stored. Rows whose meaning is a function of the IR have become calls of theirs before.
fn sines_of_stores() -> Hook {
    Hook::new("sines-of-stores").lower_abi(|_, module| {
        let sin = kiln::stdlib::find("math.sin").ok_or("there is no such row")?;
        module.rewrite_each(|at| {
            if let &InstData::Store { value, .. } = at.data()
                && at.type_of(value) == Type::F32
                && let Some(value) = at.ins().intrinsic(sin, &[value])
            {
                at.set_operand(1, value);
            }
        });
        Ok(())
    })
}

#[test]
fn rows_with_bodies_may_be_put_in_with_the_parameters() -> Result<()> {
    #[kernel]
    fn one(x: &mut [f32]) {
        x[global_id().x] = 1.0;
    }
    let interpreted = CpuOptions::default().interpret(true);
    for device in [
        Device::cpu(),
        Device::cpu_with(interpreted),
        OnHostOptions::default().device(),
    ] {
        let jit = Jit::with(device, sines_of_stores().into(), JitOptions::default());
        let mut x = jit.zeros::<f32>(1)?;
        one.launch(&jit, (1, 1), &mut x)?;
        let found = x.to_vec()?[0];
        assert!((found - 1.0f32.sin()).abs() < 1e-6, "{found}");
    }
    Ok(())
}
