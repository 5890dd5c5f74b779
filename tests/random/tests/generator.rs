//! The generator, the harness and the reducer, tested on themselves.

#[path = "../../../jit-core/tests/fake-cuda/loading.rs"]
mod fake;
mod lost_device;

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Effects, Entity, InstData, Ordering, Region, Scalar, UnaryOp, verify,
};
use kiln_random::random::Random;
use kiln_random::run::{CheckedRunner, Difference, ReversedRunner, ShuffledRunner};
use kiln_random::{
    Budget, Case, Coverage, InterpreterRunner, Runner, Talk, compare, coverage, generate,
    operations, reduce, sound,
};

/// Forms of operations, and what surrounds them, that 2,000 cases have all of.
const CONSTRUCTS: &[&str] = &[
    "select.address",
    "bitcast.vector",
    "bitcast.address",
    "bitcast.address_as_number",
    "construct.addresses",
    "insert.address",
    "var.set.address",
    "load.global",
    "load.generic",
    "load.constant",
    "load.param",
    "load.shared",
    "load.local",
    "store.global",
    "store.generic",
    "store.shared",
    "store.local",
    "element_ptr.checked",
    "element_ptr.unchecked",
    "slice_index.checked",
    "slice_index.unchecked",
    "assume.checked",
    "assume.unchecked",
    "assert.plain",
    "assert.values",
    "atomic.add.shared",
    "atomic.load.global",
    "atomic.load.generic",
    "atomic.load.shared",
    "atomic.store.global",
    "atomic.store.shared",
    "launch.waits",
    "param.named.tile",
    "param.named.lanes",
    "param.named.mail",
    "param.named.parts",
    "param.named.chain",
    "intrinsic.warp.sync",
    "call.plain",
    "call.barriers",
    "if.plain",
    "if.else",
    "break.inner",
    "break.outer",
    "continue.inner",
    "continue.outer",
    "return.plain",
    "return.in_loop",
    "function_return.plain",
    "function_return.in_loop",
    "barrier.plain",
    "barrier.in_if",
    "barrier.in_loop",
    "barrier.in_loops",
    "barrier_after_exit",
    "shared.static",
    "launch.dynamic_shared",
    "launch.block.1d",
    "launch.block.2d",
    "launch.block.3d",
    "launch.grid.1d",
    "launch.grid.2d",
    "launch.grid.3d",
    "param.alias",
    "launch.partial_warp",
    "intrinsic.thread_idx.x",
    "intrinsic.block_idx.x",
    "intrinsic.block_dim.x",
    "intrinsic.grid_dim.x",
    "intrinsic.math.sqrt",
    "intrinsic.math.abs",
    "intrinsic.math.floor",
    "intrinsic.math.ceil",
    "intrinsic.math.trunc",
    "intrinsic.math.rint",
    "intrinsic.math.fma",
];

/// What cases have nothing of: they are specialized, and hidden values are given by hooks and by a `Jit`, of which they have
/// none; what prints needs one (`tests/suite/rust_print.rs`).
const OF_OTHERS: &[&str] = &["ConstParam", "Hidden", "Print"];

/// Constructs that occur where threads diverge, and where they do not.
const BOTH: &[&str] = &[
    "if",
    "for",
    "loop",
    "break",
    "continue",
    "var.set",
    "var.get",
    "load",
    "store",
    "atomic",
    "call",
    "return",
    "select",
    "binary",
    "local_alloc",
];

fn covered(seeds: std::ops::Range<u64>, budget: &Budget) -> Coverage {
    let mut total = Coverage::default();
    for seed in seeds {
        total.merge(&coverage(&generate(seed, budget)));
    }
    total
}

#[test]
fn cases_are_sound() {
    let budget = Budget::default();
    for seed in 0..2000 {
        let case = generate(seed, &budget);
        sound(&case).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", case.to_text()));
    }
}

#[test]
fn the_same_seed_gives_the_same_case() {
    let budget = Budget::default();
    for seed in 0..2000 {
        let text = generate(seed, &budget).to_text();
        assert_eq!(text, generate(seed, &budget).to_text(), "seed {seed}");
        let back = Case::from_text(&text).expect("the text of a case is one");
        assert_eq!(text, back.to_text(), "seed {seed}");
        verify(&back.module).expect("it still verifies");
    }
}

#[test]
fn everything_is_covered() {
    let total = covered(0..2000, &Budget::default());
    println!("{total}");
    let missing: Vec<_> = CONSTRUCTS.iter().filter(|c| total.total(c) == 0).collect();
    assert!(missing.is_empty(), "never generated: {missing:?}");
    let mut missing = operations::all();
    missing.retain(|name| !total.operations.contains(name));
    assert_eq!(missing, OF_OTHERS, "never generated");
    for construct in BOTH {
        let (all, divergent) = (total.total(construct), total.divergent(construct));
        assert!(
            0 < divergent && divergent < all,
            "{construct}: {divergent} of {all} diverge"
        );
    }
    assert_eq!(total.divergent_barriers, 0);
    assert!(total.deepest("if") >= 3);
}

#[test]
fn every_ordering_and_scope_is_covered() {
    let total = covered(0..4000, &Budget::default());
    let all = [
        "relaxed",
        "acquire",
        "release",
        "acquirerelease",
        "sequentiallyconsistent",
    ];
    let [relaxed, acquire, release, both, sequential] = all;
    let legal: [(&str, &[&str]); 5] = [
        ("load", &[relaxed, acquire, sequential]),
        ("store", &[relaxed, release, sequential]),
        ("change", &all),
        ("swap", &all),
        ("fence", &[acquire, release, both, sequential]),
    ];
    for (what, orderings) in legal {
        for ordering in orderings {
            for scope in ["block", "device", "system"] {
                let kind = format!("order.{what}.{ordering}.{scope}");
                assert!(total.total(&kind) > 0, "{kind} is never generated");
            }
        }
    }
}

#[test]
fn every_operation_is_covered_at_every_type() {
    let total = covered(0..4000, &Budget::default());
    let kinds = |kinds: &[&str], fits: fn(Scalar) -> bool| {
        for kind in kinds {
            for scalar in Scalar::ALL.into_iter().filter(|s| fits(*s)) {
                let n = total.typed(kind, scalar.name());
                assert!(n > 0, "{kind} of {} is never generated", scalar.name());
            }
        }
    };
    let ops = |family: &str, op: &dyn std::fmt::Debug, fits: fn(Scalar) -> bool| {
        kinds(&[&format!("{family}.{op:?}").to_lowercase()], fits);
    };
    let number = |s: Scalar| s != Scalar::Bool;
    for op in BinaryOp::ALL {
        let fits: fn(Scalar) -> bool = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => number,
            BinaryOp::Min | BinaryOp::Max => number,
            BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => Scalar::is_int,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => |s| !s.is_float(),
        };
        ops("binary", &op, fits);
    }
    for op in UnaryOp::ALL {
        let fits: fn(Scalar) -> bool = match op {
            UnaryOp::Neg => number,
            UnaryOp::Not => |s| !s.is_float(),
        };
        ops("unary", &op, fits);
    }
    for op in CompareOp::ALL {
        let fits: fn(Scalar) -> bool = match op {
            CompareOp::Eq | CompareOp::Ne => |_| true,
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => number,
        };
        ops("compare", &op, fits);
    }
    kinds(&["select", "var.get", "var.set"], |_| true);
    kinds(
        &[
            "intrinsic.math.sqrt",
            "intrinsic.math.fma",
            "intrinsic.math.rint",
        ],
        Scalar::is_float,
    );
    kinds(&["for"], Scalar::is_int);
    for from in Scalar::ALL {
        for to in Scalar::ALL
            .into_iter()
            .filter(|s| number(*s) || from == Scalar::Bool)
        {
            let n = total.typed(&format!("cast.{}", from.name()), to.name());
            assert!(n > 0, "a cast from {} to {}", from.name(), to.name());
        }
    }
    for (from, to) in [
        ("f32", "u32"),
        ("i64", "f64"),
        ("f16", "u16"),
        ("u16", "bf16"),
    ] {
        assert!(
            total.typed(&format!("bitcast.{from}"), to) > 0,
            "bits of {from} as {to}"
        );
    }
}

#[test]
fn a_budget_is_kept_to() {
    let narrow = Budget {
        early_exits: false,
        aggregates: false,
        halves: false,
        functions: 0,
        ..Budget::default()
    };
    let total = covered(0..500, &narrow);
    for kind in ["field_ptr", "insert", "call", "cast.f16", "cast.bf16"] {
        assert_eq!(total.total(kind), 0, "{kind}");
    }
    assert!(total.total("return") > 0);
    let wide = Budget {
        uniform_shared: true,
        instructions: 150,
        ..Budget::default()
    };
    for seed in 0..300 {
        for budget in [&narrow, &wide] {
            let case = generate(seed, budget);
            sound(&case).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", case.to_text()));
        }
    }
}

/// Whether a region has a remainder in a loop.
fn rem_in_loop(case: &Case) -> bool {
    fn walk(case: &Case, region: Region, inside: bool) -> bool {
        let function = case.kernel();
        function.regions[region].insts.iter().any(|&inst| {
            let data = &function.insts[inst].data;
            let rem = matches!(
                data,
                InstData::Binary {
                    op: BinaryOp::Rem,
                    ..
                }
            );
            let is_loop = matches!(data, InstData::Loop { .. } | InstData::For { .. });
            let inner = |&region: &Region| walk(case, region, inside || is_loop);
            rem && inside || data.regions().iter().any(inner)
        })
    }
    walk(case, case.kernel().body, false)
}

#[test]
fn a_planted_failure_is_reduced() {
    let cases = (0..).map(|seed| generate(seed, &Budget::default()));
    let failing = cases.filter(|case| rem_in_loop(case) && case.instructions() > 100);
    for case in failing.take(20) {
        let (seed, before) = (case.seed, case.instructions());
        let small = reduce(case, &|c| rem_in_loop(c) && sound(c).is_ok());
        assert!(rem_in_loop(&small) && sound(&small).is_ok());
        let after = small.instructions();
        println!("seed {seed}: {before} instructions, then {after}");
        assert!(
            after <= 10,
            "seed {seed}: {after} instructions\n{}",
            small.to_text()
        );
        assert_eq!(small.threads(), 1);
        let again = Case::from_text(&small.to_text()).expect("the text of a case is one");
        assert!(rem_in_loop(&again));
    }
}

/// A backend with a mistake: it subtracts where it should take the exclusive or of 32 bits.
struct Mistaken;

impl Runner for Mistaken {
    fn name(&self) -> String {
        "mistaken".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let mut case = case.clone();
        for (_, function) in case.module.functions.iter_mut() {
            let values = &function.values;
            for (_, node) in function.insts.iter_mut() {
                let narrow = node
                    .result
                    .is_some_and(|v| values[v].ty == kiln_jit_core::ir::Type::U32);
                if let InstData::Binary {
                    op: op @ BinaryOp::Max,
                    ..
                } = &mut node.data
                    && narrow
                {
                    *op = BinaryOp::Min;
                }
            }
        }
        InterpreterRunner.run(&case)
    }
}

#[test]
fn a_mistaken_backend_is_found_and_the_case_reduced() {
    let others: Vec<Box<dyn Runner>> = vec![Box::new(Mistaken)];
    let differs = |case: &Case| {
        let mismatch = compare(case, &InterpreterRunner, &others);
        mismatch.is_some_and(|m| matches!(m.difference, Difference::Bytes { .. }))
    };
    let cases = (0..2000).map(|seed| generate(seed, &Budget::default()));
    let found: Vec<Case> = cases.filter(differs).take(5).collect();
    assert_eq!(found.len(), 5, "hardly any case notices");
    for case in found {
        let small = reduce(case, &|c| differs(c) && sound(c).is_ok());
        println!("{}", small.to_text());
        assert!(small.instructions() <= 16, "{}", small.to_text());
    }
}

/// A callee that returns early from a branch, which becomes a loop in the place of its call.
const EARLY_RETURN: &str = "\
; seed 1
; grid 1 1 1
; block 1 1 1
; dynamic_shared 0
; buffer 0 4: 00000000
; arg buffer 0
module early legal

device @larger(%0 x: u32) -> u32 {
  %1: u32 = const 5
  %2: bool = lt %0, %1
  if %2 {
    %3: u32 = max %0, %1
    return %3
  }
  return %0
}

kernel @early(%0 out: slice<global, mut u32>) {
  %1: u32 = const zero
  %2: ptr<global, mut u32> = slice_index %0, %1
  %3: u32 = load %2
  %4: u32 = call @larger(%3)
  store %2, %4
}
";

/// Whether there is a maximum in a branch.
fn max_in_branch(case: &Case) -> bool {
    case.module.functions.values().any(|function| {
        let is_max = |inst: &kiln_jit_core::ir::Inst| {
            let data = &function.insts[*inst].data;
            matches!(
                data,
                InstData::Binary {
                    op: BinaryOp::Max,
                    ..
                }
            )
        };
        let mut found = false;
        function.for_each_inst(|_, inst| {
            if let InstData::If { then_region, .. } = function.insts[inst].data {
                found |= function.regions[then_region].insts.iter().any(is_max);
            }
        });
        found
    })
}

#[test]
fn a_call_is_reduced_although_its_callee_returns_early() {
    let others: Vec<Box<dyn Runner>> = vec![Box::new(Mistaken)];
    let differs = |case: &Case| compare(case, &InterpreterRunner, &others).is_some();
    let case = Case::from_text(EARLY_RETURN).expect("it is a case");
    assert!(max_in_branch(&case) && differs(&case));
    let small = reduce(case, &|c| {
        max_in_branch(c) && differs(c) && sound(c).is_ok()
    });
    let text = small.to_text();
    assert!(!text.contains("call"), "{text}");
    assert!(small.instructions() <= 10, "{text}");
}

/// A backend whose blocks wait for no others, and begin in any order.
struct Hasty;

impl Runner for Hasty {
    fn name(&self) -> String {
        "hasty".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let mut case = case.clone();
        for (_, function) in case.module.functions.iter_mut() {
            let insts = &function.insts;
            let is_load = |inst: &kiln_jit_core::ir::Inst| {
                matches!(insts[*inst].data, InstData::AtomicLoad { .. })
            };
            let waits: Vec<_> = insts
                .iter()
                .filter(|(_, node)| match node.data {
                    InstData::Loop { body } => function.regions[body].insts.iter().any(is_load),
                    _ => false,
                })
                .map(|(inst, _)| inst)
                .collect();
            for region in function.regions.keys() {
                let list = &mut function.regions[region].insts;
                list.retain(|inst| !waits.contains(inst));
            }
        }
        ShuffledRunner.run(&case)
    }
}

/// What a block takes over from earlier ones shows whether it has waited for them.
#[test]
fn a_backend_whose_blocks_do_not_wait_is_found() {
    let others: Vec<Box<dyn Runner>> = vec![Box::new(Hasty)];
    let cases: Vec<Case> = talking(WAYS[3]).take(40).collect();
    assert!(cases.iter().all(Case::waits));
    let differs = |case: &&Case| {
        let mismatch = compare(case, &InterpreterRunner, &others);
        mismatch.is_some_and(|m| matches!(m.difference, Difference::Bytes { .. }))
    };
    let found = cases.iter().filter(differs).count();
    println!("{found} of 40 show that blocks did not wait");
    assert!(found >= 10, "{found} of 40");
}

/// The case without what orders memory besides barriers: fences and synchronization of warps are gone, and
/// atomics are relaxed.
fn unordered(case: &Case) -> Case {
    let mut case = case.clone();
    let syncs: Vec<bool> = case
        .module
        .intrinsics
        .values()
        .map(|row| row.effects == Effects::Synchronizes)
        .collect();
    for (_, function) in case.module.functions.iter_mut() {
        let gone = |data: &InstData| match data {
            InstData::Fence { .. } => true,
            InstData::Intrinsic { id, .. } => syncs[id.index()],
            _ => false,
        };
        let insts = &function.insts;
        for region in function.regions.keys() {
            function.regions[region]
                .insts
                .retain(|i| !gone(&insts[*i].data));
        }
        for (_, node) in function.insts.iter_mut() {
            if let InstData::AtomicLoad { ordering, .. }
            | InstData::AtomicStore { ordering, .. }
            | InstData::AtomicRmw { ordering, .. }
            | InstData::AtomicCas { ordering, .. } = &mut node.data
            {
                *ordering = Ordering::Relaxed;
            }
        }
    }
    case
}

/// The ways in which threads talk by more than barriers, by a parameter that each of them has.
const WAYS: [(&str, Talk); 4] = [
    (
        "lanes",
        Talk {
            lanes: 100,
            ..Talk::NONE
        },
    ),
    (
        "mail",
        Talk {
            mail: 100,
            ..Talk::NONE
        },
    ),
    (
        "parts",
        Talk {
            arrivals: 100,
            ..Talk::NONE
        },
    ),
    (
        "chain",
        Talk {
            chains: 100,
            ..Talk::NONE
        },
    ),
];

/// Kernels that talk in one way only.
fn talking((name, talk): (&str, Talk)) -> impl Iterator<Item = Case> {
    let budget = Budget {
        talk,
        warps: if talk.lanes > 0 { 100 } else { 0 },
        ..Budget::default()
    };
    let kind = format!("param.named.{name}");
    let cases = (0..).map(move |seed| generate(seed, &budget));
    cases.filter(move |case| coverage(case).total(&kind) > 0 && case.threads() > 4)
}

/// Whether a case is sound, and races without what orders its accesses.
fn needs_its_order(case: &Case) -> bool {
    let races = |why: String| why.contains("a race");
    sound(case).is_ok() && sound(&unordered(case)).is_err_and(races)
}

/// What orders the accesses of threads that talk is needed: without it their kernels race, which is seen.
#[test]
fn kernels_that_lose_their_order_are_not_sound() {
    for way in WAYS {
        let cases: Vec<Case> = talking(way).take(40).collect();
        let found = cases.iter().filter(|case| needs_its_order(case)).count();
        println!("{}: {found} of 40 race without what orders them", way.0);
        assert!(found >= 10, "{}: {found} of 40", way.0);
    }
}

#[test]
fn kernels_that_need_their_order_are_reduced() {
    for way in WAYS {
        let case = talking(way).find(needs_its_order).expect("there are many");
        let before = case.instructions();
        let small = reduce(case, &needs_its_order);
        let after = small.instructions();
        println!(
            "{}: {before} instructions, then {after}\n{}",
            way.0,
            small.to_text()
        );
        assert!(after <= 40, "{}: {after} instructions", way.0);
        let again = Case::from_text(&small.to_text()).expect("the text of a case is one");
        assert!(needs_its_order(&again));
    }
}

/// How many of 100 changes of one operation change the result: what a case computes can be seen.
#[test]
fn most_changes_show() {
    let mut random = Random::new(7);
    let (mut changed, mut shown) = (0, 0);
    for seed in 0..600 {
        let case = generate(seed, &Budget::default());
        let mut wrong = case.clone();
        let id = wrong.module.kernel().expect("there is a kernel");
        let function = &mut wrong.module.functions[id];
        let mut places = Vec::new();
        function.for_each_inst(|_, inst| {
            if matches!(
                function.insts[inst].data,
                InstData::Binary {
                    op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Div,
                    ..
                } | InstData::Select { .. }
                    | InstData::If { .. }
            ) {
                places.push(inst);
            }
        });
        let Some(&inst) = places.get(random.below(places.len())) else {
            continue;
        };
        match &mut function.insts[inst].data {
            InstData::Binary { op, .. } => *op = BinaryOp::Mul,
            InstData::Select {
                if_true, if_false, ..
            } => std::mem::swap(if_true, if_false),
            InstData::If { then_region, .. } => function.regions[*then_region].insts.clear(),
            _ => {}
        }
        changed += 1;
        let expected = InterpreterRunner.run(&case);
        shown += usize::from(InterpreterRunner.run(&wrong) != expected);
    }
    let percent = 100 * shown / changed;
    println!("{shown} of {changed} changes show: {percent} %");
    assert!(percent >= 40, "{percent} %");
}

const HEADER: &str = "; seed 5
; grid 1 1 1
; block 4 1 1
; buffer 0 16: 01
; arg buffer 0
";

fn case(body: &str) -> Case {
    case_with("", body)
}

fn case_with(declarations: &str, body: &str) -> Case {
    let text = format!(
        "{HEADER}module small legal
        kernel @small(%0 out: slice<global, mut u32>) {{
          {declarations}
          %1: u32 = intrinsic thread_idx.x()
          {body}
        }}"
    );
    Case::from_text(&text).expect("the text is a case")
}

#[test]
fn a_race_is_found() {
    // Each thread reads what its neighbour writes.
    let racy = case(
        "%2: u32 = const 3
         %3: u32 = xor %1, %2
         %4: ptr<global, mut u32> = slice_index %0, %3
         %5: u32 = load %4
         %6: u32 = add %5, %1
         %7: ptr<global, mut u32> = slice_index %0, %1
         store %7, %6
         return",
    );
    let why = sound(&racy).expect_err("it has a race");
    assert!(why.starts_with("the order of threads"), "{why}");
    let mismatch = compare(&racy, &InterpreterRunner, &[Box::new(ReversedRunner)]);
    assert!(mismatch.is_some());
    let found = CheckedRunner.run(&racy).expect_err("it has a race");
    assert!(found.contains("a race on"), "{found}");
}

#[test]
fn an_uninitialized_read_is_found() {
    let wild = case_with(
        "shared shared0 t: u32 align 4",
        "%2: ptr<shared, mut u32> = shared_addr shared0
         %3: u32 = load %2
         %4: ptr<global, mut u32> = slice_index %0, %1
         store %4, %3
         return",
    );
    let why = sound(&wild).expect_err("it reads what nobody wrote");
    assert!(why.starts_with("what uninitialized"), "{why}");
    let found = CheckedRunner
        .run(&wild)
        .expect_err("it reads what nobody wrote");
    assert!(
        found.contains("in shared memory is read and was not written"),
        "{found}"
    );
}

#[test]
fn a_look_at_a_nan_is_found() {
    for body in [
        "%2: f32 = const 0.0
         %3: f32 = div %2, %2",
        "%2: f32 = const -0.0
         %4: f32 = const 0.0
         %3: f32 = min %2, %4",
    ] {
        let body = format!(
            "{body}
             %5: u32 = bitcast %3
             %6: ptr<global, mut u32> = slice_index %0, %1
             store %6, %5
             return"
        );
        let why = sound(&case(&body)).expect_err("it looks at bits");
        assert!(why.starts_with("the bits of NaNs"), "{why}");
    }
}

#[test]
fn a_fault_is_found() {
    let faulty = case(
        "%2: u32 = const 9
         %3: ptr<global, mut u32> = slice_index %0, %2
         store %3, %2
         return",
    );
    let why = sound(&faulty).expect_err("its index is out of bounds");
    assert!(why.starts_with("fault: index 9 of 4"), "{why}");
}

#[test]
fn wrong_texts_are_refused() {
    let good = case("return").to_text();
    for (from, to) in [
        ("; grid 1", "; grid x"),
        ("16: 01", "0: 01"),
        ("16: 01", "16: 0"),
        ("16: 01", "16: 0q"),
        ("; arg buffer 0\n", ""),
        ("module", "modul"),
    ] {
        assert!(
            Case::from_text(&good.replace(from, to)).is_err(),
            "{from} -> {to}"
        );
    }
}
