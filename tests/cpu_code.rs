//! What the CPU backend makes of kernels: which it cuts at their barriers and which take coroutines,
//! so that a silent fall-back is seen, and whether the code of the measured ones is vectors.
//!
//! A load or store of consecutive elements is one vector load or store. Beside it lies a gather or
//! a scatter for warps of which some lanes are out of bounds: code that is there and is not run.
//! The branches that lead to it have weights that say so. Here the text of the optimized LLVM IR is
//! walked from the function's start, leaving out branches that are never taken by their weights;
//! what is reached is hot, and there no gather or scatter may be.

#[path = "../benches/cpu/kernels.rs"]
#[allow(dead_code, reason = "benches measure more than is looked at here")]
mod bench;

use std::collections::{HashMap, HashSet};

use kiln::core::args::Arg;
use kiln::core::front::AsKernel;
use kiln::core::inspect::Inspection;
use kiln::core::target::{Barriers, CpuFeatures};
use kiln::prelude::*;
use suite::{kernels, tricky_barriers as tricky};

type Describe = fn(&KernelBuilder);

/// Buffers to inspect kernels with.
struct Buffers {
    x: Buffer<f32>,
    out: Buffer<f32>,
    keys: Buffer<u32>,
    counts: Buffer<u32>,
    more: Buffer<u32>,
}

/// Chooses a kernel's arguments from the buffers.
type Args = fn(&mut Buffers, &dyn Fn(&[Arg<'_>]) -> Inspection) -> Inspection;

/// What runs a kernel for blocks of a shape.
fn listing(describe: Describe, block: impl Into<Dim3>, args: Args) -> Inspection {
    let jit = Jit::on(Device::cpu());
    let kernel = Kernel::build("listed", describe).expect("a kernel without mistakes");
    let numbers = || jit.zeros::<u32>(1).expect("memory");
    let floats = || jit.zeros::<f32>(1).expect("memory");
    let mut buffers = Buffers {
        x: floats(),
        out: floats(),
        keys: numbers(),
        counts: numbers(),
        more: numbers(),
    };
    let block = block.into();
    args(&mut buffers, &|args| {
        let inspection = jit.inspect_block(&kernel, block, args);
        inspection.expect("code for this CPU")
    })
}

use Barriers::{Coroutines, Segments};

/// Kernels with barriers at hard places, and what happens there. Coroutines are for those of which
/// nothing but the data says that all threads decide alike, or which do not.
const TRICKY: &[(&str, Describe, Barriers)] = &[
    ("tree_for", tricky::tree_for, Segments),
    ("tree_while", tricky::tree_while, Segments),
    (
        "tree_with_shared_bound",
        tricky::tree_with_shared_bound,
        Segments,
    ),
    ("loaded_bound", tricky::loaded_bound, Segments),
    ("loaded_range", tricky::loaded_range, Segments),
    ("branch_by_param", tricky::branch_by_param, Segments),
    ("branch_by_loaded", tricky::branch_by_loaded, Segments),
    (
        "branch_by_agreement",
        tricky::branch_by_agreement,
        Coroutines,
    ),
    (
        "branches_in_branches",
        tricky::branches_in_branches,
        Segments,
    ),
    ("ragged_loop", tricky::ragged_loop, Coroutines),
    ("ragged_returns", tricky::ragged_returns, Segments),
    ("uniform_break", tricky::uniform_break, Segments),
    ("break_by_agreement", tricky::break_by_agreement, Coroutines),
    ("break_by_shared", tricky::break_by_shared, Segments),
    (
        "jumps_over_two_loops",
        tricky::jumps_over_two_loops,
        Segments,
    ),
    ("nested_barriers", tricky::nested_barriers, Segments),
    (
        "changed_between_barriers",
        tricky::changed_between_barriers,
        Segments,
    ),
    ("private_array", tricky::private_array, Segments),
    ("parity", tricky::parity, Segments),
    // The parity is part of an address and decides no barrier.
    ("hidden_parity", tricky::hidden_parity, Segments),
    ("parity_of_barriers", tricky::parity_of_barriers, Coroutines),
    (
        "until_nothing_changes",
        tricky::until_nothing_changes,
        Segments,
    ),
    (
        "until_half_are_small",
        tricky::until_half_are_small,
        Segments,
    ),
];

#[test]
fn only_barriers_that_cannot_be_placed_take_coroutines() {
    let mut wrong = Vec::new();
    for &(name, describe, want) in TRICKY {
        // One thread, one warp, a ragged block, whole warps, the most.
        for block in [1, 32, 100, 256, 1024] {
            let args: Args = |b, list| list(args!(&mut b.counts, &mut b.more));
            let listing = listing(describe, block, args);
            let found = listing.host_code().map(|code| code.barriers);
            if !matches!(found, Ok(found) if found == want) {
                wrong.push(format!(
                    "{name}, {block} threads: {found:?} and not {want:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A kernel that is measured.
struct Measured {
    name: &'static str,
    describe: Describe,
    block: [u32; 3],
    /// The type that it mostly handles, as LLVM spells it.
    element: &'static str,
    /// The most gathers and scatters that its code may have in all, one for each checked access of
    /// consecutive elements that has a cold path of its own. Lower it when the backend does with
    /// fewer.
    cold: usize,
    args: Args,
}

const LINE: [u32; 3] = [bench::BLOCK, 1, 1];
const TILE: [u32; 3] = [kernels::TILE, kernels::TILE, 1];
const STENCIL: [u32; 3] = [bench::STENCIL.0, bench::STENCIL.1, 1];
const PIXELS: [u32; 3] = [bench::PIXELS.0, bench::PIXELS.1, 1];

fn measured(
    name: &'static str,
    describe: Describe,
    block: [u32; 3],
    cold: usize,
    args: Args,
) -> Measured {
    let element = if name == "histogram" { "i32" } else { "float" };
    Measured {
        name,
        describe,
        block,
        element,
        cold,
        args,
    }
}

fn all_measured() -> Vec<Measured> {
    let (one, matrices, image): (Args, Args, Args) = (
        |b, list| list(args!(&b.x, &mut b.out)),
        |b, list| list(args!(&b.x, &b.x, &mut b.out, 1u32)),
        |b, list| list(args!(&b.x, &mut b.out, 1u32)),
    );
    vec![
        measured("fused", bench::fused, LINE, 4, |b, list| {
            list(args!(&b.x, &b.x, &b.x, &mut b.out))
        }),
        measured("saxpy", bench::saxpy, LINE, 3, |b, list| {
            list(args!(1f32, &b.x, &mut b.out))
        }),
        measured("sum", bench::grid_sum, LINE, 2, one),
        measured("tree", bench::tree_sum, LINE, 2, one),
        measured("matmul", kernels::describe_tiled_matmul, TILE, 3, matrices),
        measured(
            "matmul-naive",
            kernels::describe_naive_matmul,
            TILE,
            2,
            matrices,
        ),
        measured("stencil", bench::stencil, STENCIL, 6, image),
        measured("stencil-direct", bench::stencil_direct, STENCIL, 6, image),
        measured("scan", bench::scan, LINE, 5, one),
        measured("nbody", bench::nbody, LINE, 6, |b, list| {
            list(args!(&b.x, &b.x, &b.x, &b.x, &mut b.out))
        }),
        measured("mandelbrot", bench::mandelbrot, PIXELS, 1, |b, list| {
            list(args!(&mut b.counts, 1u32))
        }),
        // One in each of two versions.
        measured("histogram", bench::histogram, LINE, 2, |b, list| {
            list(args!(&b.keys, &mut b.counts))
        }),
    ]
}

#[test]
fn measured_kernels_are_vectors() {
    let mut wrong = Vec::new();
    for case in all_measured() {
        let listing = listing(case.describe, case.block, case.args);
        if let Some(why) = listing.interpreted() {
            wrong.push(format!("{}: interpreted, {why}", case.name));
            continue;
        }
        let text = listing.llvm().expect("code");
        let vector = format!(
            "<{} x {}>",
            listing.host_code().expect("code").lanes,
            case.element
        );
        wrong.extend(problems(&case, text, &vector).map(|what| format!("{}: {what}", case.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The walk over the text finds a gather that is hot, or what stands for it on processors without.
#[test]
fn a_gather_that_is_needed_is_found() {
    let permuted: Describe = |k| {
        let (out, keys) = (k.slice_mut("out", Type::F32), k.slice("keys", Type::U32));
        let (x, i) = (k.slice("x", Type::F32), k.global_id().x());
        k.if_(i.lt(out.len()), || out.at(i).set(x.at(keys.at(i))));
    };
    let case = measured("permuted", permuted, LINE, 9, |b, list| {
        list(args!(&mut b.out, &b.keys, &b.x))
    });
    let listing = listing(case.describe, case.block, case.args);
    let vector = format!("<{} x float>", listing.host_code().expect("code").lanes);
    let found: Vec<String> = problems(&case, listing.llvm().expect("code"), &vector).collect();
    let wanted = match CpuFeatures::host().gathers() {
        true => "1 gathers in hot code",
        false => "1 accesses lane after lane in hot code",
    };
    assert_eq!(found[0], wanted, "{found:?}");
}

/// Where a look whether the launch is to end would cost something beside the work, there are few: none where
/// there are no loops, and one for several turns.
#[test]
fn launches_are_looked_at_seldom() {
    let empty = listing(bench::empty, 256, |_, inspect| inspect(args!()));
    let text = empty.llvm().expect("code for this CPU");
    // The word is read anew each time.
    assert!(!text.contains("load volatile"), "it looks:\n{text}");
    let mandelbrot = listing(bench::mandelbrot, (32, 8), |buffers, inspect| {
        inspect(args!(&mut buffers.counts, 32u32))
    });
    let text = mandelbrot.llvm().expect("code for this CPU");
    let turns = text.lines().filter(|line| line.contains("fcmp"));
    assert!(text.contains("load volatile"), "it never looks:\n{text}");
    assert!(turns.count() >= 5, "each turn is counted:\n{text}");
    let tree = listing(bench::tree_sum, 256, |buffers, inspect| {
        inspect(args!(&buffers.x, &mut buffers.out))
    });
    let text = tree.llvm().expect("code for this CPU");
    let looks = text.matches("load volatile i32").count();
    assert_eq!(looks, 1, "it looks between blocks alone:\n{text}");
}

/// The sum of a block, in warps by steps that are constants or that a loop gives.
fn block_sum<'k>(k: &'k KernelBuilder, steps: impl Fn(Var<'k>)) {
    let (x, out) = (k.slice("x", Type::F32), k.slice_mut("out", Type::F32));
    let sums = k.shared_array("sums", Type::F32, 32);
    let sum = k.var("sum", x.at(k.global_id().x()));
    steps(sum);
    k.if_(k.lane_id().eq(0), || sums.at(k.warp_id()).set(sum));
    k.barrier();
    k.if_(k.warp_id().eq(0), || {
        sum.set(sums.at(k.lane_id()));
        steps(sum);
        k.if_(k.lane_id().eq(0), || out.at(k.block_idx().x()).set(sum));
    });
}

#[test]
fn shuffles_by_constants_are_vectors() {
    let down: Describe = |k| {
        block_sum(k, |sum| {
            for step in [16u32, 8, 4, 2, 1] {
                sum.set(sum + k.shuffle_down(FULL_MASK, sum, step, 32));
            }
        });
    };
    let xor: Describe = |k| {
        block_sum(k, |sum| {
            for step in [16u32, 8, 4, 2, 1] {
                sum.set(sum + k.shuffle_xor(FULL_MASK, sum, step, 32));
            }
        });
    };
    let in_a_loop: Describe = |k| {
        block_sum(k, |sum| {
            let step = k.var("step", 16u32);
            k.while_(
                || step.get().gt(0),
                || {
                    sum.set(sum + k.shuffle_down(FULL_MASK, sum, step, 32));
                    step.set(step / 2);
                },
            );
        });
    };
    for (name, describe) in [("down", down), ("xor", xor), ("in a loop", in_a_loop)] {
        let listing = listing(describe, 1024, |b, list| list(args!(&b.x, &mut b.out)));
        let hot = hot_lines(listing.llvm().expect("code"));
        let shuffle = |line: &&&str| line.contains("= shufflevector <32 x float>");
        let shuffles = hot.iter().filter(shuffle).count();
        assert!(shuffles >= 10, "{name}: {shuffles} vector shuffles");
        // What is called by its address is a meaning.
        let call = |line: &&&str| line.contains("call ") && !line.contains('@');
        let calls: Vec<&&str> = hot.iter().filter(call).collect();
        assert!(calls.is_empty(), "{name}: {calls:?}");
        assert!(!hot.iter().any(|line| line.contains(GATHER)), "{name}");
    }
}

/// What is wrong with a kernel's code.
fn problems(case: &Measured, text: &str, vector: &str) -> impl Iterator<Item = String> {
    let hot = hot_lines(text);
    let count = |pattern: &str| hot.iter().filter(|line| line.contains(pattern)).count();
    let with_vector = |what: &[&str]| {
        let mut lines = hot.iter().filter(|line| line.contains(vector));
        lines.any(|line| what.iter().any(|what| line.contains(what)))
    };
    let (gathers, scatters) = (count(GATHER), count(SCATTER));
    let calls = |pattern: &str| {
        let call = |line: &&str| line.contains(pattern) && line.contains("call ");
        text.lines().filter(call).count()
    };
    let all = calls(GATHER) + calls(SCATTER);
    // A Mandelbrot set is read from nowhere, and a histogram is written by atomics.
    let loads =
        case.name == "mandelbrot" || with_vector(&["load "]) || with_vector(&["masked.load"]);
    let stores = ["mandelbrot", "histogram"].contains(&case.name)
        || with_vector(&["  store ", "masked.store"]);
    let arithmetic = with_vector(&[" fadd ", " fmul ", " add ", " and "]);
    // Elements without a gather are read and written lane after lane, from addresses that were chosen for all.
    let is_apart = |line: &&&str| line.contains("= select <") && line.contains("x ptr>");
    let apart = hot.iter().filter(is_apart).count();
    [
        (apart != 0).then(|| format!("{apart} accesses lane after lane in hot code")),
        (gathers != 0).then(|| format!("{gathers} gathers in hot code")),
        (scatters != 0).then(|| format!("{scatters} scatters in hot code")),
        (all > case.cold).then(|| format!("{all} gathers and scatters, {} at most", case.cold)),
        (!loads).then(|| format!("no load of {vector} in hot code")),
        (!stores).then(|| format!("no store of {vector} in hot code")),
        (!arithmetic).then(|| format!("no arithmetic on {vector} in hot code")),
    ]
    .into_iter()
    .flatten()
}

const GATHER: &str = "@llvm.masked.gather";
const SCATTER: &str = "@llvm.masked.scatter";

/// The instructions of the function that runs blocks that are reached without a branch that is
/// never taken by its weights.
fn hot_lines(text: &str) -> Vec<&str> {
    let cold = cold_targets(text);
    let start = text.find("define void @kiln_blocks").expect("the function");
    let mut body = text[start..]
        .lines()
        .skip(1)
        .take_while(|line| *line != "}");
    let mut blocks: HashMap<&str, Vec<&str>> = HashMap::new();
    let (mut first, mut current) = (None, "");
    for line in body.by_ref() {
        if let Some((label, _)) = line.split_once(':')
            && !line.starts_with(' ')
        {
            current = label;
            first.get_or_insert(label);
        }
        blocks.entry(current).or_default().push(line);
    }
    let mut todo = vec![first.expect("a labelled block")];
    let (mut seen, mut lines) = (HashSet::new(), Vec::new());
    while let Some(block) = todo.pop() {
        if !seen.insert(block) {
            continue;
        }
        for &line in &blocks[block] {
            lines.push(line);
            todo.extend(targets(line, &cold));
        }
    }
    lines
}

/// Where a branch or a case of a `switch` leads to, less the target that is cold.
fn targets<'t>(line: &'t str, cold: &HashMap<&str, usize>) -> Vec<&'t str> {
    let mut targets: Vec<&str> = line.split("label %").skip(1).collect();
    for target in &mut targets {
        let end = target.find([',', ' ']).unwrap_or(target.len());
        *target = &target[..end];
    }
    let weights = line.split_once("!prof ");
    let weights = weights.and_then(|(_, name)| name.split(',').next());
    if let (Some(&cold), 2) = (weights.and_then(|name| cold.get(name)), targets.len()) {
        targets.remove(cold);
    }
    targets
}

/// For the name of two weights that are far apart, the number of the lower one.
fn cold_targets(text: &str) -> HashMap<&str, usize> {
    let mut cold = HashMap::new();
    for line in text
        .lines()
        .filter(|line| line.contains("\"branch_weights\""))
    {
        let name = line.split_whitespace().next().unwrap_or_default();
        let weights = line.split("i32 ").skip(1);
        let weights: Vec<u64> = weights
            .filter_map(|w| w.trim_end_matches(['}', ',', ' ']).parse().ok())
            .collect();
        if let [a, b] = weights[..]
            && a.max(b) > 1000 * a.min(b)
        {
            cold.insert(name, usize::from(b < a));
        }
    }
    cold
}

#[kernel]
fn reversed(x: &[f32], y: &mut [f32]) {
    let tile = shared!([f32; 256]);
    let (t, i) = (thread_idx().x, global_id().x);
    tile[t] = x[i];
    barrier();
    y[i] = tile[255 - t];
}

/// A block that stays in bounds has all its threads up to the end, so nothing is stored under a mask: neither a check nor
/// the kernel's end leaves a mask of those that are still there.
#[test]
fn blocks_that_stay_in_bounds_store_without_masks() {
    let jit = Jit::on(Device::cpu());
    let x = jit.zeros::<f32>(256).expect("memory");
    let mut y = jit.zeros::<f32>(256).expect("memory");
    let inspection = jit.inspect_block(&reversed, 256, args!(&x, &mut y));
    let inspection = inspection.expect("code for this CPU");
    let llvm = inspection.llvm().expect("it is compiled");
    // What is put on the stack, lane by lane, has the alignment of a vector.
    let is_store =
        |line: &&str| line.trim_start().starts_with("store <") && line.ends_with("align 4");
    let stores = llvm.lines().filter(is_store);
    assert!(
        stores.filter(|line| line.contains("float>")).count() >= 2,
        "{llvm}"
    );
}

#[kernel]
fn halved_if_positive(x: &[f32], bytes: &mut [u8], y: &mut [f32]) {
    let i = global_id().x;
    if x[i] > 0.0 {
        y[i] = 0.5 * x[i];
        bytes[i] /= 2;
    }
}

/// Before AVX-512 a masked store takes several times as long as a plain one, and elements of a byte have none: there, where
/// all lanes are active behind a condition, nothing is masked.
#[test]
fn where_all_lanes_are_active_nothing_is_masked_before_avx_512() {
    let jit = Jit::on(Device::cpu());
    let x = jit.zeros::<f32>(256).expect("memory");
    let mut bytes = jit.zeros::<u8>(256).expect("memory");
    let mut y = jit.zeros::<f32>(256).expect("memory");
    let args = args!(&x, &mut bytes, &mut y);
    let inspection = jit.inspect_block(&halved_if_positive, 256, args);
    let inspection = inspection.expect("code for this CPU");
    let lanes = inspection.host_code().expect("code").lanes;
    let llvm = inspection.llvm().expect("it is compiled");
    let hot = hot_lines(llvm);
    let has = |what: &str| hot.iter().any(|line| line.contains(what));
    let masked = has("llvm.masked.store") || has(&format!("llvm.masked.load.v{lanes}i8"));
    assert_eq!(masked, CpuFeatures::host().gathers(), "{llvm}");
    let plain = has(&format!("store <{lanes} x float>")) && has(&format!("store <{lanes} x i8>"));
    assert_eq!(plain, !CpuFeatures::host().gathers(), "{llvm}");
}

#[kernel]
fn of_three_points(x: &[f32], y: &mut [f32], n: usize) {
    let i = global_id().x;
    for row in 1..n {
        let at = row * 64 + i;
        y[at] = x[at - 1] - 2.0 * x[at] + x[at + 1];
    }
}

#[kernel]
fn of_seven_points(x: &[f32], y: &mut [f32], n: usize) {
    let i = global_id().x;
    for row in 3..n {
        let at = row * 64 + i;
        let beside = x[at - 1] * x[at + 1] + x[at - 2] * x[at + 2];
        y[at] = beside - x[at - 64] * x[at + 64] + x[at];
    }
}

/// Where a thread loads much at a time, a value takes at most two registers, where there are so many lanes.
#[test]
fn stencils_of_many_points_have_fewer_lanes() {
    let jit = Jit::on(Device::cpu());
    let x = jit.zeros::<f32>(1024).expect("memory");
    let mut y = jit.zeros::<f32>(1024).expect("memory");
    let mut lanes = |kernel: &dyn AsKernel| {
        let inspection = jit.inspect_block(kernel, 64, args!(&x, &mut y, 9u32));
        let inspection = inspection.expect("code for this CPU");
        inspection.host_code().expect("code").lanes
    };
    let (few, many) = (lanes(&of_three_points), lanes(&of_seven_points));
    assert_eq!(few, 2 * many);
}
