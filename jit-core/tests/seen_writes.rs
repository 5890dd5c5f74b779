//! What code generation takes from who may write memory: an index that a race may have left undetermined is
//! frozen before it is checked, loads differ between warps where warps are ordered, and memory that nobody
//! writes stays read-only however its address was computed.

use std::sync::Mutex;
use std::time::Duration;

use kiln_jit_core::codegen::Isas;
use kiln_jit_core::compile::{Compiler, Stage, StageObserver};
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::{
    Cell, Effects, Family, InstData, IntrinsicDef, Meaning, Module, Scalar, TypePattern,
    Uniformity, WARP_LANES, parse,
};
use kiln_jit_core::job::{CompileJob, CompileOptions};
use kiln_jit_core::target::{CpuTarget, PtxTarget, Target};

use crate::intrinsics;

const U32: TypePattern = TypePattern::Exact(Scalar::U32);

const LOAD: &[Cell] = &[Cell::asm(
    Family::PTX,
    None,
    "ld.global.u32 $0, [$1];",
    "=r,r",
)];

/// A row of one number that gives that number, or on a GPU what is written there.
const fn number(name: &'static str, effects: Effects) -> IntrinsicDef {
    IntrinsicDef::new(name, &[U32], U32, Meaning::Pure(|_, args| args[0]))
        .with_uniformity(Uniformity::Lane)
        .with_effects(effects)
        .with_cells(LOAD)
}

/// A row by which the lanes of a warp meet.
const fn meeting(name: &'static str, effects: Effects) -> IntrinsicDef {
    let meaning = Meaning::Warp(|_, _| [0; WARP_LANES]);
    IntrinsicDef::new(name, &[U32], TypePattern::Unit, meaning).with_effects(effects)
}

static ROWS: [IntrinsicDef; 5] = [
    number("computes", Effects::None),
    number("reads", Effects::Memory),
    meeting("meets", Effects::Convergent),
    meeting("orders", Effects::Synchronizes),
    meeting("touches", Effects::Memory),
];

fn find(name: &str) -> Option<&'static IntrinsicDef> {
    let mut rows = ROWS.iter();
    rows.find(|row| row.name == name)
        .or_else(|| intrinsics::find(name))
}

/// Keeps the module of LLVM before its passes.
#[derive(Default)]
struct KeepsLlvm(Mutex<String>);

impl StageObserver for KeepsLlvm {
    fn stage(&self, _: &str, stage: Stage, _: Duration, text: &dyn Fn() -> String) {
        if stage == Stage::Llvm {
            *self.0.lock().expect("nothing panics here") = text();
        }
    }
}

/// A kernel as LLVM is given it.
fn lowered(kernel: &str, target: Target) -> String {
    let text = format!("module test specialized\n{kernel}");
    let module = parse(&text, &find).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kept = KeepsLlvm::default();
    let compiler = Compiler {
        hooks: &HookSet::new(),
        isas: &Isas::default(),
        observer: &kept,
    };
    let job = CompileJob::new(module, target, CompileOptions::default());
    let compiled = compiler.compile(job);
    assert!(compiled.is_ok(), "{}\n{text}", compiled.unwrap_err());
    kept.0.into_inner().expect("nothing panics here")
}

/// A processor that runs two warps of a block.
fn two_warps() -> Target {
    Target::Cpu(CpuTarget {
        block: Some([64, 1, 1]),
        lanes: Some(32),
        ..CpuTarget::default()
    })
}

fn gpu() -> Target {
    Target::Ptx(PtxTarget::for_sm(90))
}

/// Whether an index that comes of an operation on `%2`, a number that no other thread can change, is frozen
/// before it is checked.
fn freezes(operation: &str, target: Target) -> bool {
    let kernel = format!(
        "kernel @k(%0 x: slice<global, mut u32>, %1 y: slice<global, u32> noalias, %2 n: u32) {{
           {operation}
           %9: ptr<global, mut u32> = slice_index %0, %8
           store %9, %2
         }}\n"
    );
    lowered(&kernel, target).contains(" = freeze ")
}

#[test]
fn an_index_that_a_row_reads_from_memory_is_frozen() {
    for target in [gpu(), two_warps()] {
        for (operation, frozen) in [
            ("%8: u32 = intrinsic reads(%2)", true),
            ("%8: u32 = intrinsic computes(%2)", false),
            (
                "%7: u32 = intrinsic reads(%2)\n%8: u32 = intrinsic computes(%7)",
                true,
            ),
            ("%7: u32 = intrinsic reads(%2)\n%8: u32 = add %7, %2", true),
            ("%8: u32 = add %2, %2", false),
        ] {
            let is_frozen = freezes(operation, target.clone());
            assert_eq!(is_frozen, frozen, "{operation} for {target:?}");
        }
    }
}

/// Whether warps may find different numbers at one address behind an operation: then lanes that wait at a
/// barrier if a number there is not 0 cannot be taken for the whole block, and each warp waits by itself.
fn parts_warps(operation: &str) -> bool {
    let kernel = format!(
        "kernel @k(%0 x: ptr<global, mut u32>, %1 m: u32) {{
           {operation}
           %7: u32 = load %0
           %8: u32 = const 0
           %9: bool = ne %7, %8
           if %9 {{
             barrier
           }}
         }}\n"
    );
    lowered(&kernel, two_warps()).contains("@llvm.coro.suspend")
}

#[test]
fn what_orders_and_does_not_meet_parts_warps() {
    for (operation, parts) in [
        ("", false),
        ("barrier", false),
        ("intrinsic meets(%1)", false),
        ("intrinsic orders(%1)", false),
        ("atomic_store relaxed device %0, %1", false),
        ("fence acquire_release block", true),
        ("fence acquire_release device", true),
        ("atomic_store release device %0, %1", true),
        ("%2: u32 = atomic_load acquire block %0", true),
        ("%2: u32 = atomic add acquire device %0, %1", true),
    ] {
        assert_eq!(parts_warps(operation), parts, "`{operation}`");
    }
}

/// A row that ordered accesses of more than the lanes that meet there would part warps.
#[test]
fn rows_order_only_where_lanes_meet() {
    let mut module = Module::new("rows");
    for row in &ROWS {
        let (reads, orders) = match row.effects {
            Effects::None | Effects::Convergent => (false, false),
            Effects::Synchronizes => (false, true),
            Effects::Memory => (true, false),
        };
        let id = module.intrinsic(row);
        let args = [].into_iter().collect();
        let facts = InstData::Intrinsic { id, args }.facts(&module.intrinsics);
        assert_eq!(facts.reads, reads, "{}", row.name);
        assert_eq!(facts.orders.is_some(), orders, "{}", row.name);
        assert!(facts.meets || facts.orders.is_none(), "{}", row.name);
    }
}

/// How often a load is one of memory that nobody writes.
fn unchanging_loads(parameter: &str, address: &str) -> usize {
    let kernel = format!(
        "kernel @k(%0 y: ptr<global, mut f32>, %1 x: {parameter}, %2 i: u32) {{
           {address}
           %9: f32 = load %8
           store %0, %9
         }}\n"
    );
    let llvm = lowered(&kernel, gpu());
    let is_load = |line: &&str| line.contains("= load float") && line.contains("!invariant.load");
    llvm.lines().filter(is_load).count()
}

#[test]
fn memory_that_nobody_writes_is_followed_through_every_address() {
    const SLICE: &str = "slice<global, f32> noalias";
    const POINTER: &str = "ptr<global, f32> noalias";
    for (parameter, address) in [
        (SLICE, "%8: ptr<global, f32> = slice_index %1, %2"),
        (SLICE, "%8: ptr<global, f32> = slice_ptr %1"),
        (POINTER, "%8: ptr<global, f32> = ptr_offset %1, %2"),
        (
            POINTER,
            "%7: ptr<generic, f32> = space_cast %1\n%8: ptr<generic, f32> = ptr_offset %7, %2",
        ),
        (
            POINTER,
            "%7: slice<global, f32> = slice_new %1, %2\n%8: ptr<global, f32> = slice_index %7, %2",
        ),
        (
            "ptr<global, u32> noalias",
            "%7: ptr<global, f32> = bitcast %1\n%8: ptr<global, f32> = ptr_offset %7, %2",
        ),
        (
            "ptr<global, [f32; 4]> noalias",
            "%8: ptr<global, f32> = element_ptr %1, %2",
        ),
    ] {
        assert_eq!(unchanging_loads(parameter, address), 1, "{address}");
        let shared = parameter.strip_suffix(" noalias").expect("it is there");
        assert_eq!(unchanging_loads(shared, address), 0, "{address}");
    }
}
