//! What is said of kernels and device functions for hooks to read.

use std::sync::{Arc, Mutex};

use kiln::Result;
use kiln::core::hook::Hook;
use kiln::core::ir::AttributeValue;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

#[device_fn(attribute(pure, weight = 3))]
fn third(x: f32) -> f32 {
    x / 3.0
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Half(f32);

#[device_fn]
impl Half {
    #[device_fn(attribute(exact))]
    fn new(x: f32) -> Self {
        Half(x * 0.5)
    }

    #[device_fn]
    fn value(self) -> f32 {
        self.0
    }
}

#[kernel]
fn halves(x: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = Half::new(x[i]).value();
    }
}

#[kernel(launch_bounds(64), attribute(fast_math, unroll = -4, by = "hand", slow = false))]
fn said(x: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = third(x[i]);
    }
}

#[kernel]
fn unsaid(x: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += 1.0;
    }
}

/// What the hook reads at each point, in order.
fn reader(read: &Arc<Mutex<Vec<String>>>) -> Hook {
    let note = |point: &'static str| {
        let read = read.clone();
        move |attributes: String| read.lock().unwrap().push(format!("{point}: {attributes}"))
    };
    let (of_ir, of_llvm, of_operation) = (note("ir"), note("llvm"), note("operation"));
    Hook::new("reader")
        .key("reads", "attributes")
        .rewrite_ir(move |cx, module| {
            of_ir(cx.attributes.to_string());
            let functions = module.functions.values();
            functions
                .skip(1)
                .for_each(|f| of_ir(format!("{}({})", f.name, f.attributes)));
            Ok(())
        })
        .lower_inst(move |cx, _, _| {
            of_operation(cx.hook().attributes.to_string());
            Ok(None)
        })
        .finish_module(move |cx, _| {
            let value = |name| cx.attribute(name).map(|value| format!("{value:?}"));
            of_llvm(format!("{:?} {:?}", value("by"), value("none")));
            of_llvm(
                [cx.has_attribute("fast_math"), cx.has_attribute("slow")]
                    .map(|b| b.to_string())
                    .join(" "),
            );
            Ok(())
        })
}

fn for_gpu(hook: Hook) -> Jit {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    Jit::with(Device::cpu(), hook.into(), options)
}

#[test]
fn functions_of_a_block_have_their_own() -> Result<()> {
    let read: Arc<Mutex<Vec<String>>> = Arc::default();
    let jit = for_gpu(reader(&read));
    jit.inspect(&halves, args!(&mut jit.zeros::<f32>(4)?))?;
    let read = read.lock().unwrap();
    let of_functions: Vec<&str> = read
        .iter()
        .filter_map(|line| line.strip_prefix("ir: Half"))
        .collect();
    assert_eq!(of_functions, ["::new(exact)", "::value()"]);
    Ok(())
}

#[test]
fn hooks_read_them_at_each_point() -> Result<()> {
    let read = Arc::default();
    let jit = for_gpu(reader(&read));
    let mut x = jit.zeros::<f32>(4)?;
    jit.inspect(&said, args!(&mut x))?;
    let mut read = read.lock().unwrap();
    read.dedup();
    let all = "fast_math, unroll = -4, by = \"hand\", slow = false";
    let wanted = [
        format!("ir: {all}"),
        "ir: third(pure, weight = 3)".to_owned(),
        format!("operation: {all}"),
        "llvm: Some(\"Text(\\\"hand\\\")\") None".to_owned(),
        "llvm: true false".to_owned(),
    ];
    assert_eq!(*read, wanted);
    Ok(())
}

/// An attribute that no hook reads is no error, and is there to be seen.
#[test]
fn what_nobody_reads_is_seen() -> Result<()> {
    let jit = Jit::on(Device::cpu());
    let mut x = jit.upload(&[3.0f32])?;
    let inspected = jit.inspect(&said, args!(&mut x))?;
    assert!(
        inspected
            .ir()
            .contains(" attribute(fast_math, unroll = -4,"),
        "{}",
        inspected.ir()
    );
    said.launch(&jit, (1, 1), &mut x)?;
    assert_eq!(x.to_vec()?, [1.0]);
    let inspected = jit.inspect(&unsaid, args!(&mut x))?;
    assert!(
        !inspected.ir().contains(" attribute("),
        "{}",
        inspected.ir()
    );
    Ok(())
}

#[test]
fn they_are_part_of_what_a_kernel_is() -> Result<()> {
    let describe = |unroll: Option<AttributeValue>| {
        move |k: &KernelBuilder| {
            if let Some(value) = unroll {
                k.attribute("unroll", 1);
                k.attribute("unroll", value);
            }
            k.slice_mut("x", Type::F32).at(0).set(1.0);
        }
    };
    let jit = Jit::on(Device::cpu());
    let mut x = jit.zeros::<f32>(1)?;
    let kernel = Kernel::build("k", describe(None))?;
    let values = [
        None,
        Some(4.into()),
        Some(2.into()),
        Some("2".into()),
        Some(true.into()),
    ];
    for value in values.clone() {
        kernel.redefine(describe(value))?;
        jit.launch(&kernel, 1, 1, args!(&mut x))?;
    }
    assert_eq!(jit.cache_stats().compiles, values.len() as u64);
    kernel.redefine(describe(Some(4.into())))?;
    jit.launch(&kernel, 1, 1, args!(&mut x))?;
    assert_eq!(jit.cache_stats().compiles, values.len() as u64);
    Ok(())
}
