//! What kernels and options choose: what an index out of bounds does, how exact floats are, how many registers a
//! thread may have. What that computes is in `tests/suite/rust_choices.rs`.

use kiln::Result;
use kiln::core::front::AsKernel;
use kiln::core::inspect::Inspection;
use kiln::core::ir::FastMath;
use kiln::core::job::CompileOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

/// What a kernel of two slices becomes for a GPU, with its checks where they are written.
fn inspect(kernel: &impl AsKernel, options: CompileOptions) -> Result<Inspection> {
    let target = Target::Ptx(PtxTarget::for_sm(90));
    let options = JitOptions::default().target(target).compile(options);
    let hooks = kiln::hooks::standard().without("bounds-checks");
    let jit = Jit::with(Device::cpu(), hooks, options);
    let (x, mut y) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
    jit.inspect(kernel, args!(&x, &mut y))
}

/// How often a text has each of some words.
fn count<const N: usize>(text: &str, words: [&str; N]) -> [usize; N] {
    words.map(|word| text.matches(word).count())
}

/// One kernel, written several times: what stands before it is what is compared.
macro_rules! shifts {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        $(#[$attribute])*
        fn $name(x: &[f32], y: &mut [f32]) {
            let i = global_id().x;
            if i < y.len() {
                y[i] = x[i + 1];
            }
        }
    )*};
}
shifts! {
    #[kernel] plain
    #[kernel(checked)] checked
    #[kernel(clamped)] clamped
    // Nobody launches it.
    // SAFETY: it is compiled and never launched.
    #[kernel(unsafe(unchecked))] unchecked
}

#[test]
fn what_an_index_out_of_bounds_does_is_the_kernels_choice_or_else_that_of_the_options() -> Result<()>
{
    // SAFETY: nothing is launched with them.
    let without = unsafe { CompileOptions::default().unchecked() };
    let all = [
        CompileOptions::default(),
        CompileOptions::default().clamped(),
        without,
    ];
    let kernels: [(&str, &dyn Fn(CompileOptions) -> Result<Inspection>); 4] = [
        ("plain", &|options| inspect(&plain, options)),
        ("checked", &|options| inspect(&checked, options)),
        ("clamped", &|options| inspect(&clamped, options)),
        ("unchecked", &|options| inspect(&unchecked, options)),
    ];
    let mut found = String::new();
    for (name, inspected) in kernels {
        for options in &all {
            let inspection = inspected(options.clone())?;
            let [accesses, without, smaller] = count(
                inspection.ir(),
                ["slice_index", "slice_index unchecked", "min"],
            );
            found += &format!(
                "{name} with {:?}: {} checked, {without} not, {smaller} clamped\n",
                options.bounds(),
                accesses - without
            );
        }
    }
    assert_eq!(
        found,
        "plain with Checked: 2 checked, 0 not, 0 clamped\n\
         plain with Clamped: 2 checked, 2 not, 2 clamped\n\
         plain with Unchecked: 0 checked, 2 not, 0 clamped\n\
         checked with Checked: 2 checked, 0 not, 0 clamped\n\
         checked with Clamped: 2 checked, 0 not, 0 clamped\n\
         checked with Unchecked: 2 checked, 0 not, 0 clamped\n\
         clamped with Checked: 2 checked, 2 not, 2 clamped\n\
         clamped with Clamped: 2 checked, 2 not, 2 clamped\n\
         clamped with Unchecked: 2 checked, 2 not, 2 clamped\n\
         unchecked with Checked: 0 checked, 2 not, 0 clamped\n\
         unchecked with Clamped: 0 checked, 2 not, 0 clamped\n\
         unchecked with Unchecked: 0 checked, 2 not, 0 clamped\n"
    );
    let ptx = inspect(&unchecked, CompileOptions::default())?;
    assert!(!ptx.ptx()?.contains("kiln_fault"), "{}", ptx.ptx()?);
    Ok(())
}

#[kernel]
fn divisions(x: &[f32], y: &mut [f32]) {
    y[0] = x[0] / x[1];
    y[1] = 1.0 / x[2].sqrt();
    y[2] = approximate(|| x[1] / x[0]);
}

#[kernel(fast, max_registers(32))]
fn fast_divisions(x: &[f32], y: &mut [f32]) {
    y[0] = x[0] / x[1];
    y[1] = 1.0 / x[2].sqrt();
}

#[test]
fn what_is_approximated_is_the_expressions_the_kernels_or_the_options_choice() -> Result<()> {
    let words = [
        "div.rn.f32",
        "div.approx.f32",
        "rsqrt.approx.f32",
        "div.approx.ftz.f32",
        ".maxnreg",
    ];
    let exact = inspect(&divisions, CompileOptions::default())?;
    // A reciprocal is a division, too, which `ptxas` has an instruction for.
    assert_eq!(
        count(exact.ptx()?, words),
        [1, 1, 0, 0, 0],
        "{}",
        exact.ptx()?
    );
    let near = inspect(&fast_divisions, CompileOptions::default())?;
    assert_eq!(
        count(near.ptx()?, words),
        [0, 1, 1, 0, 1],
        "{}",
        near.ptx()?
    );
    let options = CompileOptions::default().fast(FastMath::APPROXIMATE | FastMath::FLUSH);
    let near = inspect(&divisions, options)?;
    assert_eq!(
        count(near.ptx()?, words),
        [0, 0, 0, 2, 0],
        "{}",
        near.ptx()?
    );
    Ok(())
}

shifts! {
    #[kernel] redefined
}

shifts! {
    #[kernel(max_registers(24))] with_few
    #[kernel(launch_bounds(128))] in_small_blocks
}

#[test]
fn registers_are_limited_by_the_options_where_the_kernel_does_not_say() -> Result<()> {
    let limits = |kernel: Inspection| -> Result<String> {
        let lines = kernel.ptx()?.lines().map(str::trim);
        let limits: Vec<&str> = lines.filter(|line| line.starts_with(".max")).collect();
        Ok(limits.join(" "))
    };
    let limited = || CompileOptions::default().max_registers(40);
    assert_eq!(limits(inspect(&plain, CompileOptions::default())?)?, "");
    assert_eq!(limits(inspect(&plain, limited())?)?, ".maxnreg 40");
    assert_eq!(limits(inspect(&with_few, limited())?)?, ".maxnreg 24");
    assert_eq!(
        limits(inspect(&in_small_blocks, limited())?)?,
        ".maxntid 128"
    );
    assert!(
        inspect(&plain, limited())?
            .ir()
            .contains("max_registers(40)"),
        "what was chosen is seen in the IR"
    );
    // What gathers is given no more.
    assert!(gather(limited())?.contains("\n.maxnreg 40"));
    // A CPU's code is what it is without, and a number that is none is refused there, too.
    let on_cpu = |options| {
        let jit = Jit::builder()
            .device(Device::cpu())
            .compile(options)
            .build()?;
        let (x, mut y) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
        let inspection = jit.inspect_block(&plain, 32, args!(&x, &mut y))?;
        inspection.llvm().map(str::to_owned)
    };
    assert_eq!(on_cpu(limited())?, on_cpu(CompileOptions::default())?);
    let wrong = on_cpu(CompileOptions::default().max_registers(1000)).unwrap_err();
    assert!(
        wrong.to_string().contains("16 to 255 registers, not 1000"),
        "{wrong}"
    );
    Ok(())
}

#[test]
fn a_kernel_that_chooses_otherwise_is_another_and_says_so() -> Result<()> {
    let jit = Jit::builder().device(Device::cpu()).build()?;
    let (x, mut y) = (jit.upload(&[1.0f32, 2.0])?, jit.zeros::<f32>(2)?);
    redefined.launch(&jit, (1, 32), &x, &mut y)?;
    assert!(y.to_vec().is_err());
    redefined.redefine(&clamped)?;
    redefined.launch(&jit, (1, 32), &x, &mut y)?;
    assert_eq!(y.to_vec()?, [2.0, 2.0]);
    let why = jit.explain_recompile(redefined.as_kernel()?);
    let why = why.expect("it was compiled").to_string();
    assert!(why.contains("\n  content: "), "{why}");
    // The options of a `Jit` are a field of its keys.
    let key = |options| inspect(&plain, options).map(|inspection| inspection.key().to_string());
    let (exact, near) = (
        CompileOptions::default(),
        CompileOptions::default().fast(FastMath::FAST),
    );
    assert_ne!(key(exact)?, key(near)?);
    for other in [
        CompileOptions::default().clamped(),
        CompileOptions::default().unroll(Unroll::Never),
        CompileOptions::default().inline_threshold(7),
        CompileOptions::default().max_registers(64),
    ] {
        assert_ne!(key(CompileOptions::default())?, key(other)?);
    }
    Ok(())
}

#[test]
fn what_only_kernels_choose_is_refused_in_functions() {
    let refused = DeviceFn::build("f", |k| {
        k.clamped();
        k.max_registers(32);
        k.unroll(Unroll::Never);
        k.inline_threshold(0);
        k.fast(FastMath::FLUSH, || k.return_value(k.param("x", Type::F32)));
    });
    let error = refused.unwrap_err().to_string();
    for said in [
        "what an index out of bounds does is said by the kernel",
        "registers are limited by the kernel",
        "how loops are unrolled is said by the kernel",
        "what is inlined by its cost is said by the kernel",
        "numbers are flushed to zero in whole kernels",
    ] {
        assert!(error.contains(said), "{error}");
    }
    let many = Kernel::build("k", |k| k.max_registers(1000)).unwrap_err();
    assert!(
        many.to_string().contains("16 to 255 registers, not 1000"),
        "{many}"
    );
}

/// The sum of what is in `x` where `at` says.
fn gather(options: CompileOptions) -> Result<String> {
    #[kernel]
    fn gathered(at: &[u32], x: &[f32], y: &mut [f32]) {
        let row = global_id().x;
        if row < y.len() {
            let mut sum = 0.0;
            for k in 0..at.len() {
                sum += x[at[k] as usize];
            }
            y[row] = sum;
        }
    }
    let target = Target::Ptx(PtxTarget::for_sm(90));
    let options = JitOptions::default().target(target).compile(options);
    let jit = Jit::builder()
        .device(Device::cpu())
        .options(options)
        .build()?;
    let (at, x) = (jit.zeros::<u32>(4)?, jit.zeros::<f32>(4)?);
    let mut y = jit.zeros::<f32>(4)?;
    let inspection = jit.inspect(&gathered, args!(&at, &x, &mut y))?;
    Ok(inspection.ptx()?.to_owned())
}

#[test]
fn a_kernel_that_gathers_has_registers_for_it_unless_the_options_say_no() -> Result<()> {
    let given = gather(CompileOptions::default())?;
    assert!(given.contains("\n.maxnreg 64 // a loop loads"), "{given}");
    let without = gather(CompileOptions::default().gather_registers(false))?;
    assert!(!without.contains(".maxnreg"), "{without}");
    assert_eq!(given.lines().count(), without.lines().count() + 1);
    Ok(())
}

/// One kernel, written several times: what stands first in it is what is compared.
macro_rules! first_sums {
    ($($name:ident($x:ident, $y:ident) { $($first:tt)* })*) => {$(
        #[kernel]
        fn $name($x: &[f32], $y: &mut [f32]) {
            $($first)*
            let mut sum = 0.0;
            for i in 0..$y.len() {
                sum += $x[i];
            }
            if !$y.is_empty() {
                $y[0] = sum;
            }
        }
    )*};
}
first_sums! {
    all_of_x(x, y) {}
    no_more_than_x(x, y) { assume(y.len() <= x.len()); }
}

#[test]
fn what_is_assumed_takes_away_what_it_decides() -> Result<()> {
    let target = Target::Ptx(PtxTarget::for_sm(90));
    let jit = Jit::with(
        Device::cpu(),
        kiln::hooks::standard(),
        JitOptions::default().target(target),
    );
    let (x, mut y) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
    let before = jit.inspect(&all_of_x, args!(&x, &mut y))?;
    let after = jit.inspect(&no_more_than_x, args!(&x, &mut y))?;
    // The slow version of the loop, whose loads are checked, is gone.
    let loads = |inspection: &Inspection| Ok(count(inspection.ptx()?, ["ld.global"]));
    let loads: Result<Vec<_>> = [before, after].iter().map(loads).collect();
    assert_eq!(loads?, [[5], [4]]);
    Ok(())
}

/// A function that LLVM inlines by itself, whose calls are told from its bodies by the division.
#[device_fn]
fn spread(x: f32, y: f32) -> f32 {
    let mut sum = x;
    for _ in 0..y as u32 {
        sum = sum / y + x;
    }
    sum
}

/// One kernel, written several times: what stands before it is what is compared.
macro_rules! spreads {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        $(#[$attribute])*
        fn $name(x: &[f32], y: &mut [f32]) {
            let mut sum = 0.0;
            for i in 0..x.len() {
                sum += x[i];
            }
            y[0] = spread(sum, x[0]);
            y[1] = spread(x[1], sum);
        }
    )*};
}
spreads! {
    #[kernel] as_judged
    #[kernel(unroll(never))] never_unrolled
    #[kernel(unroll(3))] by_three
    #[kernel(inline_threshold(0))] called
}

/// How many loads a kernel's PTX has, and how many calls of the function.
fn loads_and_calls(kernel: &impl AsKernel, options: CompileOptions) -> Result<[usize; 2]> {
    let inspection = inspect(kernel, options)?;
    let ptx = inspection.ptx()?;
    let calls = (ptx.lines()).filter(|line| line.contains("call.uni") && line.contains("spread"));
    Ok([count(ptx, ["ld.global"])[0], calls.count()])
}

#[test]
fn what_is_unrolled_and_inlined_is_the_kernels_choice_or_else_that_of_the_options() -> Result<()> {
    let default = CompileOptions::default;
    let found = [
        loads_and_calls(&as_judged, default())?,
        loads_and_calls(&never_unrolled, default())?,
        loads_and_calls(&as_judged, default().unroll(Unroll::Never))?,
        loads_and_calls(&by_three, default())?,
        loads_and_calls(&by_three, default().unroll(Unroll::Never))?,
        loads_and_calls(&called, default())?,
        loads_and_calls(&as_judged, default().inline_threshold(0))?,
        loads_and_calls(&called, default().inline_threshold(1000))?,
    ];
    let (never, three, calls) = ([4, 0], [7, 0], [6, 2]);
    assert_eq!(
        found,
        [[6, 0], never, never, three, three, calls, calls, calls]
    );
    Ok(())
}

#[kernel]
fn unrolled_too_far(x: &[f32], y: &mut [f32]) {
    let mut sum = x[0];
    #[unroll]
    for _ in 0..300_000 {
        sum += x[1];
    }
    y[0] = sum;
}

#[test]
fn a_loop_that_would_be_too_long_stays_one_and_inspect_says_so() -> Result<()> {
    let of_gpu = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    for options in [of_gpu, JitOptions::default()] {
        let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
        let (x, mut y) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
        let inspection = jit.inspect_block(&unrolled_too_far, 32, args!(&x, &mut y))?;
        let why = inspection.reduced().unwrap_or_default();
        assert!(why.contains("choices.rs"), "{why}");
        assert!(why.contains("is not unrolled, as it would have"), "{why}");
    }
    Ok(())
}

#[kernel]
fn scattered_unrolled(order: &[u32], x: &[f32], y: &mut [f32]) {
    let t = thread_idx().x as usize;
    #[unroll]
    for k in 0..64 {
        y[order[32 * k + t] as usize] = x[t];
    }
}

/// For the CPU each access that is scattered is one of each lane: what is short for a GPU is long there.
#[test]
fn a_loop_stays_one_where_its_lanes_would_make_it_too_long() -> Result<()> {
    let of_gpu = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let reduced = |options: JitOptions| -> Result<Option<String>> {
        let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
        let order = jit.zeros::<u32>(2048)?;
        let (x, mut y) = (jit.zeros::<f32>(32)?, jit.zeros::<f32>(4)?);
        let arguments = args!(&order, &x, &mut y);
        let inspection = jit.inspect_block(&scattered_unrolled, 32, arguments)?;
        Ok(inspection.reduced().map(str::to_owned))
    };
    assert_eq!(reduced(of_gpu)?, None);
    let why = reduced(JitOptions::default())?.unwrap_or_default();
    assert!(why.contains("choices.rs"), "{why}");
    assert!(why.contains("instructions of LLVM, more than"), "{why}");
    Ok(())
}
