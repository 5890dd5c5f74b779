//! Views: what a launch says about them, and that nothing of them is left in code.

use expect_test::expect;
use kiln::core::args::{Arg, IntoArg, host};
use kiln::core::front::LazyKernel;
use kiln::core::hook::Hook;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

use super::same_ir::instructions;

#[derive(KernelView)]
struct Tensor<'a> {
    data: &'a [f32],
    rows: u32,
    columns: u32,
}

#[device_fn]
impl Tensor<'_> {
    fn at(&self, row: usize, column: usize) -> f32 {
        self.data[row * self.columns as usize + column]
    }
}

/// The same fields in another order.
#[derive(KernelView)]
#[allow(dead_code, reason = "no kernel takes it")]
struct Turned<'a> {
    data: &'a [f32],
    columns: u32,
    rows: u32,
}

struct HostTensor {
    data: Buffer<f32>,
    columns: u32,
}

impl<'a> ToKernel<'a> for &'a HostTensor {
    type View = Tensor<'a>;
    fn to_kernel(self) -> TensorArgs<'a> {
        TensorArgs {
            data: &self.data,
            rows: self.data.len() as u32 / self.columns,
            columns: self.columns,
        }
    }
}

#[kernel]
fn scale(t: Tensor<'_>, by: f32, y: &mut [f32]) {
    let i = global_id().x;
    if i < y.len() {
        let (row, column) = (i / t.columns as usize, i % t.columns as usize);
        y[i] = t.at(row, column) * by + t.rows as f32;
    }
}

#[device_fn]
fn at(data: &[f32], columns: u32, row: usize, column: usize) -> f32 {
    data[row * columns as usize + column]
}

#[kernel]
fn scale_of_slices(data: &[f32], rows: u32, columns: u32, by: f32, y: &mut [f32]) {
    let i = global_id().x;
    if i < y.len() {
        let (row, column) = (i / columns as usize, i % columns as usize);
        y[i] = at(data, columns, row, column) * by + rows as f32;
    }
}

#[derive(KernelView)]
struct Written<'a> {
    from: Tensor<'a>,
    to: &'a mut [f32],
}

#[kernel]
fn copies(w: Written<'_>) {
    let i = global_id().x;
    if i < w.to.len() {
        w.to[i] += w.from.data[i];
    }
}

#[kernel]
fn copies_slices(data: &[f32], _rows: u32, _columns: u32, to: &mut [f32]) {
    let i = global_id().x;
    if i < to.len() {
        to[i] += data[i];
    }
}

fn tensor(jit: &Jit) -> kiln::Result<HostTensor> {
    Ok(HostTensor {
        data: jit.upload(&[1.0, 2.0, 3.0, 4.0])?,
        columns: 2,
    })
}

/// What the instructions of a kernel's PTX do, sorted: where nothing depends on it, LLVM puts them in any order.
fn operations(jit: &Jit, kernel: &LazyKernel, args: &[Arg<'_>]) -> kiln::Result<Vec<String>> {
    let inspection = jit.inspect(kernel.get()?, args)?;
    let text = inspection.ptx().unwrap_or_default();
    let words = instructions(text).into_iter().map(|line| {
        let mut words = line.split_whitespace();
        words
            .find(|word| !word.starts_with('@'))
            .unwrap_or_default()
    });
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    words.sort();
    Ok(words)
}

#[test]
fn nothing_of_a_view_is_left_in_code() -> kiln::Result<()> {
    for hooks in [kiln::hooks::standard(), kiln::core::hook::HookSet::new()] {
        let checked = hooks.iter().any(|hook| hook.name() == "bounds-checks");
        let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
        let jit = Jit::with(Device::cpu(), hooks, options);
        let t = tensor(&jit)?;
        let mut y = jit.zeros::<f32>(4)?;
        // Of a method's index LLVM makes other arithmetic; what is loaded and stored is the same. With checks, LLVM may load
        // a parameter in one block or in two: a view leaves no more such loads than slices do.
        let accesses = |kernel: &LazyKernel, args: &[Arg<'_>]| -> kiln::Result<[Vec<String>; 2]> {
            let mut all = operations(&jit, kernel, args)?;
            all.retain(|line| line.starts_with("ld.") || line.starts_with("st."));
            let (params, others) = all.into_iter().partition(|line| line.contains(".param."));
            Ok([params, others])
        };
        let [params, of_view] = accesses(&scale, args!(&t, 2.0f32, &mut y))?;
        let given = args!(&t.data, 2u32, 2u32, 2.0f32, &mut y);
        let [params_of_slices, of_slices] = accesses(&scale_of_slices, given)?;
        assert_eq!(of_view, of_slices);
        match checked {
            true => assert!(params.len() <= params_of_slices.len(), "{params:?}"),
            false => assert_eq!(params, params_of_slices),
        }
        assert!(of_view.iter().any(|line| line.starts_with("ld.global.nc")));
        let written = WrittenArgs {
            from: t.to_kernel(),
            to: &mut y,
        };
        let of_view = operations(&jit, &copies, args!(written))?;
        let given = args!(&t.data, 2u32, 2u32, &mut y);
        assert_eq!(of_view, operations(&jit, &copies_slices, given)?);
    }
    Ok(())
}

#[track_caller]
fn fails(result: kiln::Result<()>, expected: &expect_test::Expect) {
    let text = result.expect_err("it is wrong").to_string();
    expected.assert_eq(&text);
}

#[test]
fn errors_name_the_field() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let (t, wrong) = (tensor(&jit)?, jit.zeros::<f64>(4)?);
    let mut y = jit.zeros::<f32>(4)?;
    let launched = jit.launch(&scale, 1, 4, args!(&t.data, 2.0f32, &mut y));
    fails(
        launched,
        &expect![[
            r#"kernel `scale` (declared at tests/macros/views.rs:52:4) takes 5 arguments (t.data, t.rows, t.columns, by, y), 3 were passed: for `t` pass what becomes the view (`ToKernel`), or its fields one by one"#
        ]],
    );
    let launched = jit.launch(&scale, 1, 4, args!(&wrong, 2u32, 2u32, 2.0f32, &mut y));
    fails(
        launched,
        &expect![[
            r#"argument 1 (`t.data`, declared at tests/macros/views.rs:52:10) of kernel `scale` must be a slice of `f32`, a slice of `f64` was passed: convert it, or change the kernel"#
        ]],
    );
    let turned = TurnedArgs {
        data: &t.data,
        columns: 2,
        rows: 2,
    };
    let launched = jit.launch(&scale, 1, 4, args!(turned, 2.0f32, &mut y));
    fails(
        launched,
        &expect![[
            r#"argument 2 (`t.rows`, declared at tests/macros/views.rs:52:10) of kernel `scale` would be the field `columns` of what was passed: pass what becomes the view that the kernel declares, whose fields have the same names in the same order"#
        ]],
    );
    // Once more, now that it was launched as it should be: what is kept is not found for another view.
    scale.launch(&jit, (1, 4), &t, 2.0, &mut y)?;
    let turned = TurnedArgs {
        data: &t.data,
        columns: 2,
        rows: 2,
    };
    assert!(
        jit.launch(&scale, 1, 4, args!(turned, 2.0f32, &mut y))
            .is_err()
    );
    let elsewhere = tensor(&Jit::on(Device::cpu()))?;
    let text = scale.launch(&jit, (1, 4), &elsewhere, 2.0, &mut y);
    let text = text.expect_err("it is another device's").to_string();
    assert!(text.contains("`t.data`"), "{text}");
    Ok(())
}

#[test]
fn arguments_say_what_they_are_of() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let t = tensor(&jit)?;
    let mut y = jit.zeros::<f32>(4)?;
    let inspection = jit.inspect(&scale, args!(&t, 2.0f32, &mut y))?;
    let mut fields = inspection.key().fields();
    let types = fields.find(|(name, _)| *name == "argument types");
    expect!["data: &[f32], rows: u32, columns: u32, f32, &mut [f32]"]
        .assert_eq(types.map_or("", |(_, types)| types));
    let arg = (&t).into_arg();
    expect!["()"].assert_eq(&arg.type_form());
    assert!(arg.duplicate().is_some());
    let written = WrittenArgs {
        from: t.to_kernel(),
        to: &mut y,
    };
    assert!(written.into_arg().duplicate().is_none());
    Ok(())
}

/// A type of another crate, which a hook turns into a view.
#[test]
fn a_hook_converts_to_a_view() -> kiln::Result<()> {
    struct Shared(std::sync::Arc<HostTensor>);
    let converts = Hook::new("shared-tensors").convert_argument(|value| {
        let shared = value.downcast_ref::<Shared>();
        Ok(shared.map(|Shared(tensor)| (&**tensor).into_arg()))
    });
    let hooks = kiln::hooks::standard().with(converts);
    for device in super::devices() {
        let jit = Jit::with(device, hooks.clone(), JitOptions::default());
        let shared = Shared(std::sync::Arc::new(tensor(&jit)?));
        let mut y = jit.zeros::<f32>(4)?;
        jit.launch(&scale, 1, 4, args!(host(&shared), 2.0f32, &mut y))?;
        assert_eq!(y.to_vec()?, [4.0, 6.0, 8.0, 10.0]);
        let prepared = jit.compile(&scale, args!(host(&shared), 2.0f32, &mut y))?;
        prepared.launch(1, 4, args!(host(&shared), 3.0f32, &mut y))?;
        assert_eq!(y.to_vec()?, [5.0, 8.0, 11.0, 14.0]);
    }
    Ok(())
}
