//! Bitcode files in kernels: functions that rows call.

use std::sync::{Arc, Mutex};

use kiln::core::inkwell::memory_buffer::MemoryBuffer;
use kiln::core::ir::Effects;
use kiln::core::prelude::*;

use super::*;

kiln::intrinsic! {
    /// `12345 * x + y`.
    fn mixed(x: u32, y: u32) -> u32 {
        x.wrapping_mul(12_345).wrapping_add(y)
    } = row("test.mixed").with_cells(&[Cell::function(Family::PTX, None, "mixed")]);

    /// The same by the name of another function.
    fn mixed_again(x: u64) -> u64 {
        x
    } = row("test.mixed_again").with_cells(&[Cell::function(Family::PTX, None, "mixed")]);
}

#[device_fn]
fn first(x: u32, place: &mut u32) -> u32 {
    *place = x;
    x
}

kiln::intrinsic! {
    /// Writes what it gives.
    fn noted(x: u32, place: &mut u32) -> u32 = row("test.noted", first)
        .with_cells(&[Cell::function(Family::PTX, None, "noted")])
        .with_effects(Effects::Memory);

    /// The half.
    fn halved(x: f32) -> f32 {
        0.5 * x
    } = row("test.halved").with_cells(&[Cell::function(Family::PTX, None, "halved")]);

    /// The sine.
    fn sine(x: f32) -> f32 {
        x.sin()
    } = row("test.sine").with_cells(&[Cell::function(Family::PTX, None, "__nv_sinf")]);

    /// The square root.
    fn root(x: f32) -> f32 {
        x.sqrt()
    } = row("test.root").with_cells(&[Cell::function(Family::PTX, None, "__nv_sqrtf")]);

    /// The quotient, or nearly so.
    fn quotient(x: f32, y: f32) -> f32 {
        x / y
    } = row("test.quotient").with_cells(&[Cell::function(Family::PTX, None, "__nv_fast_fdividef")]);
}

#[kernel]
fn mix(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = mixed(x[i], 7);
    }
}

#[kernel]
fn note(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += noted(x[i], &mut x[0]);
    }
}

#[kernel]
fn mix_both(x: &mut [u32]) {
    x[0] = mixed(x[0], 7) + mixed_again(x[0] as u64) as u32;
}

#[kernel]
fn plain(x: &mut [u32]) {
    x[0] = 1;
}

const LIBRARY: &str = r#"
target triple = "nvptx64-nvidia-cuda"
define i32 @mixed(i32 %x, i32 %y) #0 {
  %a = call i32 @times(i32 %x)
  %b = add i32 %a, %y
  ret i32 %b
}
define i32 @times(i32 %x) noinline #0 { %a = mul i32 %x, 12345 ret i32 %a }
define i32 @unused(i32 %x) { %a = mul i32 %x, 77777 ret i32 %a }
define i32 @noted(i32 %x, ptr %to) { store i32 %x, ptr %to ret i32 %x }
attributes #0 = { "target-cpu"="sm_52" "target-features"="+ptx80,+sm_52" }
"#;

/// LLVM IR as bitcode, which this process's LLVM writes while it compiles a kernel.
fn bitcode(text: &'static str) -> Vec<u8> {
    let made = Arc::new(Mutex::new(Vec::new()));
    let to = made.clone();
    let writes = Hook::new("writes")
        .key("text", text)
        .finish_module(move |_, module| {
            let text = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "text");
            let parsed = module.get_context().create_module_from_ir(text);
            let parsed = parsed.map_err(|error| error.to_string())?;
            *to.lock().unwrap() = parsed.write_bitcode_to_memory().as_slice().to_vec();
            Ok(())
        });
    ptx_of(&plain, writes).expect("the text parses");
    let bitcode = made.lock().unwrap().clone();
    assert!(!bitcode.is_empty());
    bitcode
}

fn ptx_of(kernel: &impl kiln::core::front::AsKernel, hook: Hook) -> Result<String> {
    let jit = for_gpu(kiln::hooks::standard().with(hook));
    let mut x = jit.zeros::<u32>(4)?;
    let inspection = jit.inspect(kernel, args!(&mut x))?;
    Ok(inspection.ptx()?.to_owned())
}

#[test]
fn functions_of_a_file_are_those_of_the_kernel() -> Result<()> {
    let library = || kiln::hooks::link_bitcode("mixing", bitcode(LIBRARY));
    let ptx = ptx_of(&mix, library())?;
    assert!(ptx.contains("12345"), "{ptx}");
    assert!(!ptx.contains("77777"), "{ptx}");
    assert!(!ptx.contains(".visible .func"), "{ptx}");
    let ptx = ptx_of(&note, library())?;
    assert!(!ptx.contains("12345"), "{ptx}");
    assert_eq!(ptx.matches("st.").count(), 2, "{ptx}");
    // Other hooks see the module before or after.
    let looks_on = Hook::new("looks-on").finish_module(|_, _| Ok(()));
    let jit = for_gpu(kiln::hooks::standard().with(looks_on).with(library()));
    let mut x = jit.zeros::<u32>(4)?;
    assert!(jit.inspect(&mix, args!(&mut x))?.ptx()?.contains("12345"));
    // A kernel that calls nothing of it is as it is without.
    let without = ptx_of(&plain, Hook::new("nothing"))?;
    let lines = |ptx: &str| ptx.lines().count();
    assert_eq!(lines(&ptx_of(&plain, library())?), lines(&without));
    assert!(library().is_kept());
    assert_eq!(library().name(), "link-bitcode mixing");
    Ok(())
}

#[test]
fn elsewhere_a_row_is_its_function() -> Result<()> {
    let hook = kiln::hooks::link_bitcode("mixing", bitcode(LIBRARY));
    for (name, jit) in &machines(&kiln::hooks::standard().with(hook))[..2] {
        let mut x = jit.upload(&[1u32, 2, 3])?;
        mix.launch(jit, (1, 32), &mut x)?;
        assert_eq!(x.to_vec()?, [12_352, 24_697, 37_042], "{name}");
    }
    Ok(())
}

#[test]
fn files_differ_in_the_key() -> Result<()> {
    let key = |bytes: Vec<u8>| {
        let hook = kiln::hooks::link_bitcode("mixing", bytes);
        let jit = for_gpu(hook.into());
        let mut x = jit.zeros::<u32>(4)?;
        let inspection = jit.inspect(&plain, args!(&mut x))?;
        Ok::<_, kiln::Error>(inspection.key().digest())
    };
    assert_eq!(key(vec![1, 2])?, key(vec![1, 2])?);
    assert_ne!(key(vec![1, 2])?, key(vec![1, 3])?);
    Ok(())
}

#[test]
fn what_does_not_fit_is_said() {
    let said = |text: &'static str| {
        let hook = kiln::hooks::link_bitcode("mixing", bitcode(text));
        let error = ptx_of(&mix, hook).expect_err("it does not fit");
        error.to_string()
    };
    let missing = ptx_of(&mix, Hook::new("nothing")).expect_err("nothing is linked");
    let missing = missing.to_string();
    assert!(
        missing.contains("`test.mixed` calls the function `mixed`, and no hook has linked it"),
        "{missing}"
    );
    let other = said("define i32 @unmixed(i32 %x) { ret i32 %x }");
    assert!(
        other.contains("`test.mixed` calls the function `mixed`, and no hook has linked it"),
        "{other}"
    );
    let other = said("define i64 @mixed(i64 %x) { ret i64 %x }");
    assert!(
        other.contains("has the function `mixed` as `i64 (i64)`"),
        "{other}"
    );
    assert!(other.contains("calls it as `i32 (i32, i32)`"), "{other}");
    let other =
        said("target triple = \"x86_64-linux\" define i32 @mixed(i32 %x, i32 %y) { ret i32 %x }");
    assert!(
        other.contains("is for `x86_64-linux`, and this code is for `nvptx64"),
        "{other}"
    );
    let noise = kiln::hooks::link_bitcode("noise", *b"no bitcode");
    let noise = ptx_of(&mix, noise).expect_err("that is none").to_string();
    assert!(noise.contains("bitcode `noise`"), "{noise}");
    assert!(noise.contains("link-bitcode noise"), "{noise}");
    let hook = kiln::hooks::link_bitcode("mixing", bitcode(LIBRARY));
    let two = ptx_of(&mix_both, hook)
        .expect_err("of two types")
        .to_string();
    assert!(
        two.contains("calls `mixed`, which another row has with other types"),
        "{two}"
    );
}

/// A function that asks NVVM what it is compiled for, as many of libdevice do.
const ASKS: &str = r#"
target triple = "nvptx64-nvidia-cuda"
@arch = private unnamed_addr constant [12 x i8] c"__CUDA_ARCH\00"
@flush = private unnamed_addr addrspace(4) constant [11 x i8] c"__CUDA_FTZ\00"
@root = private unnamed_addr constant [17 x i8] c"__CUDA_PREC_SQRT\00"
@other = private unnamed_addr constant [6 x i8] c"other\00"
declare i32 @__nvvm_reflect(ptr)
define i32 @mixed(i32 %x, i32 %y) noinline {
  %arch = call i32 @__nvvm_reflect(ptr @arch)
  %flush = call i32 @__nvvm_reflect(ptr addrspacecast (ptr addrspace(4) @flush to ptr))
  %other = call i32 @__nvvm_reflect(ptr @other)
  %root = call i32 @__nvvm_reflect(ptr @root)
  %a = mul i32 %flush, 100000
  %b = mul i32 %other, 10000000
  %c = add i32 %a, %b
  %d = add i32 %c, %arch
  %e = mul i32 %root, 1000000
  %f = add i32 %d, %e
  %g = xor i32 %f, %x
  ret i32 %g
}
"#;

#[kernel(fast(flush))]
fn mix_flushed(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = mixed(x[i], 7);
    }
}

#[kernel(fast(approximate))]
fn mix_approximated(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = mixed(x[i], 7);
    }
}

#[test]
fn what_functions_ask_nvvm_is_answered() -> Result<()> {
    let hook = || kiln::hooks::link_bitcode("asking", bitcode(ASKS));
    let jit = for_gpu(kiln::hooks::standard().with(hook()));
    let Target::Ptx(target) = jit.target() else {
        panic!("it is for a GPU");
    };
    let arch = 10 * target.sm;
    for (ptx, answer) in [
        (ptx_of(&mix, hook())?, 1_000_000 + arch),
        (ptx_of(&mix_flushed, hook())?, 1_100_000 + arch),
        (ptx_of(&mix_approximated, hook())?, arch),
    ] {
        let said = ptx.lines().any(|line| {
            line.trim().starts_with("xor.b32") && line.ends_with(&format!(", {answer};"))
        });
        assert!(said, "{answer}: {ptx}");
        assert!(!ptx.contains("nvvm_reflect"), "{ptx}");
    }
    Ok(())
}

#[test]
fn what_is_no_constant_cannot_be_asked_of_nvvm() {
    let any = "declare i32 @__nvvm_reflect(ptr) \
        define i32 @mixed(i32 %x, i32 %y) { \
          %at = inttoptr i32 %x to ptr \
          %a = call i32 @__nvvm_reflect(ptr %at) \
          ret i32 %a \
        }";
    // Within a text whose beginning is a question.
    let within = "@text = private constant [13 x i8] c\"__CUDA_ARCH\\00a\" \
        declare i32 @__nvvm_reflect(ptr) \
        define i32 @mixed(i32 %x, i32 %y) { \
          %a = call i32 @__nvvm_reflect(ptr getelementptr (i8, ptr @text, i64 2)) \
          ret i32 %a \
        }";
    for asks in [any, within] {
        let hook = kiln::hooks::link_bitcode("asking", bitcode(asks));
        let error = ptx_of(&mix, hook).expect_err("nobody knows").to_string();
        let said = "bitcode `asking`: asks `__nvvm_reflect` by something else than a constant text";
        assert!(error.contains(said), "{error}");
    }
}

#[kernel]
fn halve(x: &mut [f32]) {
    x[0] = halved(x[0]);
}

#[kernel(fast(flush))]
fn halve_flushed(x: &mut [f32]) {
    x[0] = halved(x[0]);
}

/// The PTX of a kernel of floats.
fn ptx_of_floats(kernel: &impl kiln::core::front::AsKernel, hook: Hook) -> Result<String> {
    let jit = for_gpu(kiln::hooks::standard().with(hook));
    let inspection = jit.inspect(kernel, args!(&mut jit.zeros::<f32>(4)?))?;
    Ok(inspection.ptx()?.to_owned())
}

/// Functions that say how they flush, and one that does not, flush as the kernel does.
#[test]
fn functions_flush_as_the_kernel_does() -> Result<()> {
    const HALVED: &str = "define float @halved(float %x) noinline { \
        %a = fmul float %x, 5.0e-01 ret float %a }";
    const FLUSHED: &str = "define float @halved(float %x) noinline \
        \"denormal-fp-math-f32\"=\"preserve-sign,preserve-sign\" { \
        %a = fmul float %x, 5.0e-01 ret float %a }";
    const ALL_FLUSHED: &str = "define float @halved(float %x) noinline \
        \"denormal-fp-math\"=\"preserve-sign,preserve-sign\" { \
        %a = fmul float %x, 5.0e-01 ret float %a }";
    const KEPT: &str = "define float @halved(float %x) noinline \
        \"denormal-fp-math-f32\"=\"ieee,ieee\" { \
        %a = fmul float %x, 5.0e-01 ret float %a }";
    for text in [HALVED, FLUSHED, ALL_FLUSHED, KEPT] {
        let hook = || kiln::hooks::link_bitcode("halving", bitcode(text));
        let (kept, flushed) = (
            ptx_of_floats(&halve, hook())?,
            ptx_of_floats(&halve_flushed, hook())?,
        );
        assert!(kept.contains("mul.rn.f32"), "{text}: {kept}");
        assert!(flushed.contains("mul.rn.ftz.f32"), "{text}: {flushed}");
    }
    Ok(())
}

#[kernel]
fn by_libdevice(x: &mut [f32]) {
    x[0] = quotient(sine(x[0]), root(x[1]));
}

#[kernel(fast(flush))]
fn by_libdevice_flushed(x: &mut [f32]) {
    x[0] = quotient(sine(x[0]), root(x[1]));
}

#[kernel(fast)]
fn by_libdevice_fast(x: &mut [f32]) {
    x[0] = quotient(sine(x[0]), root(x[1]));
}

/// The libdevice of the nvcc that is on the path.
fn libdevice() -> Option<Vec<u8>> {
    let path = std::env::var_os("PATH")?;
    let files = std::env::split_paths(&path)
        .filter(|folder| folder.join("nvcc").is_file())
        .map(|folder| folder.join("../nvvm/libdevice/libdevice.10.bc"));
    files.into_iter().find_map(|file| std::fs::read(file).ok())
}

#[test]
fn libdevice_is_linked() -> Result<()> {
    let Some(libdevice) = libdevice() else {
        println!("no libdevice beside an nvcc: nothing is linked");
        return Ok(());
    };
    let hook = || {
        let hook = kiln::hooks::link_bitcode("libdevice", libdevice.clone());
        // The product of 64 bits by which the sine of a large number is reduced.
        hook.vouches_for_assembly(|template, _| template.contains("mad.lo.cc.u32"))
    };
    for (ptx, said) in [
        (
            ptx_of_floats(&by_libdevice, hook())?,
            ["div.approx.f32", "sqrt.rn.f32"],
        ),
        (
            ptx_of_floats(&by_libdevice_flushed, hook())?,
            ["div.approx.ftz.f32", "sqrt.rn.ftz.f32"],
        ),
        (
            ptx_of_floats(&by_libdevice_fast, hook())?,
            ["div.approx.f32", "sqrt.approx.f32"],
        ),
    ] {
        for said in said {
            assert!(ptx.contains(said), "{said}: {ptx}");
        }
        assert!(ptx.contains("mad.lo.cc.u32"), "{ptx}");
        assert!(!ptx.contains("nvvm_reflect"), "{ptx}");
        assert!(!ptx.contains(".extern .func"), "{ptx}");
    }
    Ok(())
}
