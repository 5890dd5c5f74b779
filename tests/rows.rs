//! Every cell of every row of the library, compiled and assembled; and that LLVM leaves operations
//! of a warp where they are.
//!
//! For each row and each type its parameters leave open: code generation refuses it, or LLVM selects it
//! and `ptxas` takes the text. That is on the oldest architecture and on sm_90, on both sides of each one from which on
//! the row has another cell, and on one of the others in turn; with `KILN_ASSEMBLE_ALL`, which `cargo xtask soak` sets, on
//! all. Needs `KILN_PTXAS`, which `cargo xtask test` sets; without it the cells are compiled and not assembled.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use kiln::core::compile::{self, NoObserver};
use kiln::core::hook::HookSet;
use kiln::core::ir::{
    Cell, Family, FastMath, IntrinsicDef, Known, Meaning, Scalar, ThreadPosition, TypePattern,
    Uniformity, parse,
};
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::core::runtime::{CpuOptions, OnHostOptions};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

const ARCHITECTURES: [u32; 5] = [75, 80, 90, 100, 120];

/// Where each row is assembled: where an instruction is lacking if it is anywhere, and where most of the measuring is.
const ALWAYS: [u32; 2] = [75, 90];

/// One of these is added to them.
const IN_TURN: [u32; 3] = [80, 100, 120];

/// The architectures that a row is assembled for, of one type; `turn` of rows and types came before it.
fn architectures(def: &IntrinsicDef, turn: usize) -> BTreeSet<u32> {
    if std::env::var_os("KILN_ASSEMBLE_ALL").is_some() {
        return ARCHITECTURES.into();
    }
    let has = |sm: u32| {
        let processor = PtxTarget::for_sm(sm).processor();
        let cells = def.cells.iter().chain(def.approximations);
        cells.map(move |cell| cell.family.has(processor))
    };
    let changes = ARCHITECTURES
        .windows(2)
        .filter(|pair| has(pair[0]).ne(has(pair[1])));
    let changes = changes.flatten().copied();
    let in_turn = IN_TURN[turn % IN_TURN.len()];
    ALWAYS.into_iter().chain([in_turn]).chain(changes).collect()
}

/// The type of a parameter when the open ones are `open`, as text; none of tuples and of nothing.
fn param_type(def: &IntrinsicDef, pattern: TypePattern, open: Scalar) -> Option<String> {
    let inner = |pattern: &TypePattern| param_type(def, *pattern, open);
    match pattern {
        TypePattern::Exact(scalar) => Some(scalar.name().to_owned()),
        TypePattern::OneOf(_) | TypePattern::Each(_) | TypePattern::Chosen => {
            Some(open.name().to_owned())
        }
        TypePattern::SameAs(i) => inner(&def.params[usize::from(i)]),
        TypePattern::Vector(lane, lanes) => Some(format!("{}x{lanes}", inner(lane)?)),
        TypePattern::Array(element, len) => Some(format!("[{}; {len}]", inner(element)?)),
        TypePattern::Pointer { to, space, mutable } => {
            let mutable = if mutable { "mut " } else { "" };
            Some(format!("ptr<{}, {mutable}{}>", space.name(), inner(to)?))
        }
        // Several results are asked for one by one.
        TypePattern::Tuple(_) | TypePattern::Unit => None,
    }
}

/// The types that a pattern leaves open.
fn open_types(pattern: TypePattern) -> Option<Vec<Scalar>> {
    match pattern {
        TypePattern::OneOf(list) | TypePattern::Each(list) => Some(list.to_vec()),
        TypePattern::Vector(inner, _)
        | TypePattern::Array(inner, _)
        | TypePattern::Pointer { to: inner, .. } => open_types(*inner),
        _ => None,
    }
}

/// The types that the row's parameters leave open; one of no meaning if they leave none.
fn choices(def: &IntrinsicDef) -> Vec<Scalar> {
    let open = def.params.iter().find_map(|&pattern| open_types(pattern));
    open.unwrap_or(vec![Scalar::U32])
}

/// A kernel that applies a row to values from memory and stores the result.
fn kernel(def: &IntrinsicDef, open: Scalar) -> String {
    let results: Vec<String> = match def.result {
        TypePattern::Tuple(parts) => parts,
        ref one => std::slice::from_ref(one),
    }
    .iter()
    .filter_map(|&part| param_type(def, part, open))
    .collect();
    let fields: Vec<String> = (0..)
        .zip(&results)
        .map(|(i, part): (usize, _)| format!("\"{i}\": {part}"))
        .collect();
    let tuple = match def.result {
        TypePattern::Tuple(_) => format!("struct @tuple {{ {} }}\n", fields.join(", ")),
        _ => String::new(),
    };
    let mut text =
        format!("module cell legal\n{tuple}kernel @cell(%0 memory: ptr<global, mut u8>) {{\n");
    let mut args = Vec::new();
    let mut next = 1;
    for &param in def.params {
        let ty = param_type(def, param, open).expect("parameters have values");
        let (at, value) = (next, next + 1);
        text +=
            &format!("%{at}: ptr<global, mut {ty}> = bitcast %0\n%{value}: {ty} = load %{at}\n");
        args.push(format!("%{value}"));
        next += 2;
    }
    let call = format!("intrinsic {}({})", def.name, args.join(", "));
    match (def.result, results.as_slice()) {
        (TypePattern::Tuple(_), parts) => {
            text += &format!("%{next}: @tuple = {call}\n");
            for (i, ty) in parts.iter().enumerate() {
                let (value, at) = (next + 1 + 2 * i, next + 2 + 2 * i);
                text += &format!("%{value}: {ty} = extract %{next}, {i}\n");
                text += &format!("%{at}: ptr<global, mut {ty}> = bitcast %0\n");
                text += &format!("store %{at}, %{value}\n");
            }
        }
        (_, [result]) => {
            let (ty, at) = (result, next + 1);
            text += &format!("%{next}: {ty} = {call}\n");
            text += &format!("%{at}: ptr<global, mut {ty}> = bitcast %0\nstore %{at}, %{next}\n");
        }
        _ => text += &format!("{call}\n"),
    }
    text + "return\n}\n"
}

/// What `ptxas` has against a text, if anything.
fn assemble(ptx: &str, sm: u32) -> Result<(), String> {
    let Some(ptxas) = std::env::var_os("KILN_PTXAS") else {
        return Ok(());
    };
    let mut child = Command::new(ptxas)
        .args([&format!("-arch=sm_{sm}"), "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("ptxas cannot be started: {e}"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(ptx.as_bytes()).map_err(|e| e.to_string())?;
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{ptx}\n{}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// The PTX of a module.
fn compile(text: &str, sm: u32, fast: FastMath) -> Result<String, String> {
    let module = parse(text, &kiln::stdlib::find).map_err(|e| e.to_string())?;
    let target = Target::Ptx(PtxTarget::for_sm(sm));
    let job = CompileJob::new(module, target, CompileOptions::default().fast(fast));
    let compiled = compile::compile(job, &HookSet::new(), &NoObserver);
    let compiled = compiled.map_err(|e| e.to_string())?;
    Ok(compiled.code.ptx().expect("PTX").text.to_string())
}

/// The PTX of a row for an open type, which is to be assembled. A row that has nothing for GPUs is refused.
fn texts(def: &IntrinsicDef, open: Scalar, sm: u32) -> Result<Vec<String>, String> {
    let processor = PtxTarget::for_sm(sm).processor();
    let has_cell = def.cells.iter().any(|cell| cell.family.has(processor));
    let mut texts = Vec::new();
    if !def.approximations.is_empty() {
        texts.push(compile(&kernel(def, open), sm, FastMath::FAST)?);
    }
    let compiled = compile(&kernel(def, open), sm, FastMath::NONE);
    // What is asked about the target needs no code.
    let is_answered = matches!(def.known, Some(Known::TargetIsGpu | Known::TargetSm));
    match (
        has_cell || is_answered || matches!(def.meaning, Meaning::Body(_)),
        compiled,
    ) {
        (true, compiled) => texts.push(compiled?),
        (false, Ok(ptx)) => {
            return Err(format!("it has no cell, and yet it was compiled:\n{ptx}"));
        }
        (false, Err(error)) if error.contains("on NVIDIA GPUs") => {}
        (false, Err(error)) => return Err(error),
    }
    Ok(texts)
}

/// Kernels to assemble, each with what it is of. Those with the same text before their entry, and architecture, are assembled at
/// once: a start of `ptxas` takes longer than most of them.
#[derive(Default)]
struct Cells(BTreeMap<(u32, String), Vec<(String, String)>>);

impl Cells {
    fn add(&mut self, what: String, sm: u32, ptx: &str) {
        let (head, entry) = ptx.split_once(".entry ").expect("a kernel has an entry");
        let (_, body) = entry.split_once('(').expect("a kernel has parameters");
        let alike = self.0.entry((sm, head.to_owned())).or_default();
        alike.push((what, body.to_owned()));
    }

    /// What `ptxas` has against which of them.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for ((sm, head), cells) in &self.0 {
            let all = |(n, (_, body)): (usize, &(String, String))| format!(".entry cell{n}({body}");
            // The head ends with what an entry begins with, `.visible`.
            let linkage = head.lines().next_back().unwrap_or_default();
            let kernels: Vec<String> = cells.iter().enumerate().map(all).collect();
            if assemble(&(head.clone() + &kernels.join(linkage)), *sm).is_ok() {
                continue;
            }
            wrong.extend(cells.iter().filter_map(|(what, body)| {
                let error = assemble(&format!("{head}.entry cell({body}"), *sm).err()?;
                Some(format!("{what}: {error}"))
            }));
        }
        wrong
    }
}

const U32: TypePattern = TypePattern::Exact(Scalar::U32);

const fn position(name: &'static str, meaning: fn(&ThreadPosition) -> u64) -> IntrinsicDef {
    IntrinsicDef::new(name, &[], U32, Meaning::Position(meaning))
}

const fn inline_ptx(template: &'static str, constraints: &'static str) -> Cell {
    Cell::asm(Family::PTX, None, template, constraints)
}

static SEVEN: IntrinsicDef = position("block_dim.x", |_| 7)
    .with_uniformity(Uniformity::Block)
    .with_cells(&[inline_ptx("mov.u32 $0, 7;", "=r")]);

static TRIPLE: IntrinsicDef = position("thread_idx.y", |at| 3 * u64::from(at.thread[0]))
    .with_uniformity(Uniformity::Lane)
    .with_cells(&[inline_ptx(
        "{ .reg .b32 x; mov.u32 x, %tid.x; mul.lo.u32 $0, x, 3; }",
        "=r",
    )]);

static SUM: IntrinsicDef = IntrinsicDef::new(
    "warp.match_any",
    &[U32, U32],
    U32,
    Meaning::Pure(|_, args| (args[0] + args[1]) & 0xffff_ffff),
)
.with_cells(&[inline_ptx("add.u32 $0, $1, $2;", "=r,r,r")]);

static NEXT: IntrinsicDef = IntrinsicDef::new(
    "math.sqrt",
    &[U32],
    U32,
    Meaning::Pure(|_, args| (args[0] + 1) & 0xffff_ffff),
)
.with_cells(&[inline_ptx("add.u32 $0, $1, 1;", "=r,r")]);

/// A `Jit` on every device of this machine but a GPU.
fn devices() -> Vec<(String, Jit)> {
    let mut jits = Vec::new();
    let interpret = CpuOptions::default().interpret(true);
    jits.push((
        "interpreted".to_owned(),
        Jit::on(Device::cpu_with(interpret)),
    ));
    for lanes in [1, 8, 32, 64] {
        let options = CpuOptions::default().lanes(lanes);
        let jit = Jit::on(Device::cpu_with(options));
        jits.push((format!("{lanes} lanes"), jit));
    }
    let on_host = OnHostOptions::default().device();
    let jit = Jit::with(on_host, kiln::hooks::standard(), JitOptions::default());
    jits.push(("code for GPUs".to_owned(), jit));
    jits
}

/// Rows that are called as the library's are, and mean something else.
#[test]
fn names_of_the_library_say_nothing() -> kiln::Result<()> {
    let kernel = Kernel::build("names", |k| {
        let out = k.slice_mut("out", Type::U32);
        let i = k.intrinsic(&TRIPLE, &[]) / 3;
        out.at(i * 3).set(k.intrinsic(&SEVEN, &[]));
        out.at(i * 3 + 1).set(k.intrinsic(&SUM, &[i, i]));
        out.at(i * 3 + 2).set(k.intrinsic(&NEXT, &[i]));
    })?;
    for (device, jit) in devices() {
        for block in [1u32, 32, 48] {
            let mut out = jit.zeros::<u32>(3 * block as usize)?;
            jit.launch(&kernel, 1, block, args!(&mut out))?;
            let want: Vec<u32> = (0..block).flat_map(|i| [7, 2 * i, i + 1]).collect();
            assert_eq!(out.to_vec()?, want, "{device}, blocks of {block}");
        }
    }
    Ok(())
}

/// What backends understand of a row it says itself, so no name of one is in the core. (Text of the IR is, in
/// tests, but no literal begins and ends as a name does.)
#[test]
fn the_core_knows_no_row_by_its_name() {
    let mut names: Vec<String> = Vec::new();
    for def in kiln::stdlib::registry() {
        let group = def.name.split('.').next().unwrap_or_default();
        names.push(format!("\"{}\"", def.name));
        names.push(format!("\"{group}.\""));
        // A word like `warp` names other things, too.
        if group.contains('_') {
            names.push(format!("\"{group}\""));
        }
    }
    names.sort_unstable();
    names.dedup();
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jit-core");
    let (mut folders, mut files, mut found) = (vec![core], 0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the core") {
            let path = entry.expect("an entry").path();
            let skipped = ["target", "tests"].map(|name| path.ends_with(name));
            if path.is_dir() && !skipped.contains(&true) {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                // The names there save rustc's time, and decide nothing.
                && !path.ends_with("kernel-macro/src/numbers.rs")
            {
                files += 1;
                let text = std::fs::read_to_string(&path).expect("a source file");
                let lines = (1..).zip(text.lines());
                let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
                for (number, line) in code {
                    let named = names.iter().filter(|name| line.contains(name.as_str()));
                    found.extend(named.map(|name| format!("{}:{number}: {name}", path.display())));
                }
            }
        }
    }
    assert!(files > 100, "{files} files");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_row_assembles() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let cases = kiln::stdlib::registry().flat_map(|def| {
        let types = choices(def).into_iter();
        types.map(move |open| (def, open))
    });
    let mut cells = Cells::default();
    for (turn, (def, open)) in cases.enumerate() {
        for sm in architectures(def, turn) {
            count += 1;
            let what = format!("{} of {} for sm_{sm}", def.name, open.name());
            match texts(def, open, sm) {
                Ok(texts) => texts
                    .iter()
                    .for_each(|ptx| cells.add(what.clone(), sm, ptx)),
                Err(error) => wrong.push(format!("{what}: {error}")),
            }
        }
    }
    wrong.extend(cells.wrong());
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The PTX of a kernel with this body. `%0` is a pointer to `u32`, `%1` a `u32` and `%2` a `bool`,
/// both from memory, `%90` is a constant.
fn ptx(body: &str) -> String {
    let text = format!(
        "module moves legal
        kernel @moves(%0 memory: ptr<global, mut u32>) {{
          %1: u32 = load %0
          %90: u32 = const 7
          %2: bool = lt %1, %90
          {body}
          return
        }}"
    );
    let ptx = compile(&text, 90, FastMath::NONE).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assemble(&ptx, 90).unwrap_or_else(|error| panic!("{error}"));
    ptx
}

/// How often `what` is in the PTX of a body.
fn count(body: &str, what: &str) -> usize {
    ptx(body).matches(what).count()
}

#[test]
fn what_does_not_assemble_is_named_and_nothing_else() {
    if std::env::var_os("KILN_PTXAS").is_none() {
        println!("no ptxas: nothing is assembled");
        return;
    }
    let right = ptx("store %0, %1");
    let mut cells = Cells::default();
    for (what, text) in [
        ("one", &right),
        ("two", &right.replace("ret;", "retired;")),
        ("three", &right),
    ] {
        cells.add(what.to_owned(), 90, text);
    }
    let [wrong] = &cells.wrong()[..] else {
        panic!("one is wrong: {:?}", cells.wrong());
    };
    assert!(
        wrong.starts_with("two: ") && wrong.contains("retired"),
        "{wrong}"
    );
}

#[test]
fn operations_of_two_branches_are_not_merged() {
    // Each branch has its own lanes, so one operation for both means something else.
    let active = "if %2 { %3: u32 = intrinsic warp.active_mask() store %0, %3 }
        else { %4: u32 = intrinsic warp.active_mask() store %0, %4 }";
    assert_eq!(count(active, "activemask"), 2);
    let ballots = "if %2 { %3: u32 = intrinsic warp.ballot(%1, %2) store %0, %3 }
        else { %4: u32 = intrinsic warp.ballot(%1, %2) store %0, %4 }";
    assert_eq!(count(ballots, "vote.sync"), 2);
}

#[test]
fn operations_are_not_moved_into_branches() {
    // The result is needed in one branch only, and still all lanes have to come.
    let ptx = ptx("%3: u32 = intrinsic warp.reduce_add(%1, %1)
        if %2 { %4: u32 = atomic add relaxed device %0, %3 }");
    let (redux, branch) = (ptx.find("redux.sync"), ptx.find("bra"));
    assert!(
        redux.is_some() && branch.is_none_or(|b| redux < Some(b)),
        "{ptx}"
    );
}

#[test]
fn operations_in_a_row_are_not_merged() {
    let twice = "%3: u32 = intrinsic warp.active_mask()
        %4: u32 = intrinsic warp.active_mask()
        %5: u32 = xor %3, %4
        store %0, %5";
    assert_eq!(count(twice, "activemask"), 2);
}

#[test]
fn only_sync_orders_memory() {
    let between = |operation: &str| {
        let body = format!(
            "{operation}
            %4: u32 = load %0
            %5: u32 = add %1, %4
            %6: u64 = const 4
            %7: ptr<global, mut u32> = ptr_offset %0, %6
            store %7, %5"
        );
        count(&body, "ld.global")
    };
    assert_eq!(between("intrinsic warp.sync(%90)"), 2);
    assert_eq!(
        between("%3: u32 = intrinsic warp.shuffle_xor(%90, %90, %90, %90)"),
        1
    );
}

/// Rows with the names that operations, LLVM's intrinsics, a C library and what Kiln writes have, and with
/// names that no function of a language has: a factor for each, which tells them apart.
macro_rules! named {
    ($list:ident: $meaning:ident; $($name:literal $factor:literal;)*) => {
        static $list: &[(IntrinsicDef, f32)] = &[$((
            IntrinsicDef::new($name, &[F32, F32], F32, named!(@$meaning $name, $factor))
                .with_cells(named!(@cells $meaning $factor)),
            $factor,
        )),*];
    };
    (@body $name:literal, $factor:literal) => {
        Meaning::Body(|scalar| {
            let ty = Type::scalar(scalar);
            let function = DeviceFn::build($name, |k| {
                let (x, y) = (k.param("x", ty), k.param("y", ty));
                k.return_value(x * k.lit(ty, $factor) + y);
            });
            function.ok().map(|function| function.module())
        })
    };
    (@cells body $factor:literal) => { &[] };
    (@pure $name:literal, $factor:literal) => {
        Meaning::Pure(|_, args| {
            let [x, y] = [0, 1].map(|i: usize| f32::from_bits(args[i] as u32));
            (x * $factor + y).to_bits().into()
        })
    };
    (@cells pure $factor:literal) => {
        &[Cell::asm(
            Family::PTX,
            None,
            concat!("fma.rn.f32 $0, $1, ", stringify!($factor), ", $2;"),
            "=f,f,f",
        )]
    };
}

const F32: TypePattern = TypePattern::Exact(Scalar::F32);

macro_rules! taken_names {
    ($($list:ident: $meaning:ident;)*) => {$(
        named! {
            $list: $meaning;
            "rem" 2.0; "fma" 3.0; "neg" 4.0; "call" 5.0;
            "llvm.fma" 6.0; "llvm.fma.f32" 7.0; "llvm.sqrt.f32" 8.0; "llvm.nvvm.barrier0" 9.0;
            "llvm.memcpy.p0.p0.i64" 10.0; "llvm.used" 11.0;
            "main" 12.0; "malloc" 13.0; "memcpy" 14.0; "fmodf" 15.0; "abort" 16.0;
            "kiln_blocks" 17.0; "kiln_call" 18.0; "entry" 19.0; "names" 20.0;
            "two words" 21.0; "a name.with dots and\nlines" 22.0; "x\"y" 23.0; "@%0" 24.0; "\u{e9}" 25.0;
            "math.rint" 26.0; "warp.sync" 27.0; ".visible" 28.0; "ret" 29.0; "$L__BB0_1" 30.0;
        }
    )*};
}
taken_names! { WITH_BODIES: body; WITH_FUNCTIONS: pure; }

/// Rows mean what they say whatever they are called, beside the operations that have those names.
fn named_rows_beside_operations(rows: &'static [(IntrinsicDef, f32)]) -> kiln::Result<Kernel> {
    Kernel::build("names", |k| {
        let (out, x) = (k.slice_mut("out", Type::F32), k.slice("x", Type::F32));
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || {
            let value = x.at(i).get();
            let first = i * (rows.len() as u32 + 1);
            for (n, (row, _)) in (0u32..).zip(rows) {
                out.at(first + n)
                    .set(k.intrinsic(row, &[value, value + 1.0f32]));
            }
            let operations = value % 3.0f32 + value.mul_add(value, value).sqrt();
            out.at(first + rows.len() as u32).set(operations);
        });
    })
}

#[test]
fn any_name_is_a_row_s_own() -> kiln::Result<()> {
    let hx: Vec<f32> = (0..48u8).map(f32::from).collect();
    for rows in [WITH_BODIES, WITH_FUNCTIONS] {
        let kernel = named_rows_beside_operations(rows)?;
        for (device, jit) in devices() {
            let mut out = jit.zeros::<f32>(hx.len() * (rows.len() + 1))?;
            let x = jit.upload(&hx)?;
            jit.launch(&kernel, 2, 32, args!(&mut out, &x))?;
            for (got, &x) in out.to_vec()?.chunks(rows.len() + 1).zip(&hx) {
                for ((row, factor), &got) in rows.iter().zip(got) {
                    assert_eq!(
                        got,
                        x * factor + (x + 1.0),
                        "`{}` of {x}, {device}",
                        row.name
                    );
                }
                let operations = x % 3.0 + x.mul_add(x, x).sqrt();
                assert_eq!(got[rows.len()], operations, "{x}, {device}");
            }
        }
        for sm in ARCHITECTURES {
            let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(sm)));
            let jit = Jit::with(Device::cpu(), HookSet::new(), options);
            let (mut out, x) = (jit.zeros::<f32>(1)?, jit.upload(&hx)?);
            let inspection = jit.inspect(&kernel, args!(&mut out, &x))?;
            assemble(inspection.ptx()?, sm).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    Ok(())
}
