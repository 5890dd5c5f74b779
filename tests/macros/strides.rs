//! `for i in grid_stride(n)`: the loop that it stands for, and what it is not.

use expect_test::expect;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

mod short {
    use super::*;

    #[kernel]
    pub fn scale(x: &mut [f32], by: f32) {
        for i in grid_stride(x.len()) {
            x[i] *= by;
        }
    }
}

mod long {
    use super::*;

    #[kernel]
    pub fn scale(x: &mut [f32], by: f32) {
        for i in (global_id().x..x.len()).step_by(global_size().x) {
            x[i] *= by;
        }
    }
}

/// The instructions of a kernel `scale`, without the digest behind its name.
fn code(kernel: &Kernel) -> kiln::Result<Vec<String>> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let mut x = jit.zeros::<f32>(8)?;
    let inspection = jit.inspect(kernel, args!(&mut x, 2.0f32))?;
    let instructions = super::same_ir::instructions(inspection.ptx()?);
    let without_digest = |line: &str| match line.split_once("scale_") {
        Some((before, after)) => format!(
            "{before}scale{}",
            after.trim_start_matches(|c: char| c.is_ascii_hexdigit())
        ),
        None => line.to_owned(),
    };
    Ok(instructions.into_iter().map(without_digest).collect())
}

#[test]
fn are_the_loop_that_they_stand_for() -> kiln::Result<()> {
    let short = code(short::scale.get()?)?;
    assert_eq!(short, code(long::scale.get()?)?);
    // Bounds checks fall away: nothing reports a fault.
    assert!(
        !short
            .iter()
            .any(|line| line.contains("trap") || line.contains("atom")),
        "{short:?}"
    );
    Ok(())
}

#[kernel]
fn zipped(x: &mut [u32]) {
    for (x, i) in x.iter_mut().zip(grid_stride(5)) {
        *x = i as u32;
    }
}

#[kernel]
fn numbered(x: &mut [u32]) {
    for (n, i) in grid_stride(x.len()).into_iter().enumerate() {
        x[i] = n as u32;
    }
}

#[kernel]
fn chosen(x: &mut [u32]) {
    let first = global_id().x == 0;
    let mine = if first {
        grid_stride(1)
    } else {
        grid_stride(2)
    };
    for i in mine {
        x[i] = 1;
    }
}

#[test]
fn are_no_other_iterators() {
    let text = |kernel: kiln::Result<&Kernel>| {
        let error = kernel.expect_err("it is no loop over indices").to_string();
        error.replace('\\', "/")
    };
    expect![[r#"
        `zipped` cannot be built: 1 error
          tests/macros/strides.rs:62:32: a range in steps has no `zip`; write `for i in grid_stride(n)`, and `x[i]` in the body"#]].assert_eq(&text(zipped.get()));
    expect![[r#"
        `numbered` cannot be built: 1 error
          tests/macros/strides.rs:69:19: a range in steps is what a `for` goes over as it is: `for i in grid_stride(n)`"#]].assert_eq(&text(numbered.get()));
    expect![[r#"
        `chosen` cannot be built: 1 error
          tests/macros/strides.rs:82:14: a `for` of a kernel goes over ranges, slices and arrays"#]]
    .assert_eq(&text(chosen.get()));
}
