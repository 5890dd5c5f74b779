//! Functions of rows that are there as PTX: the text is what LLVM makes of the row's body, and kernels have it where they call it.
//!
//! `UPDATE_EXPECT=1` writes the texts anew, once a body has changed.

use expect_test::expect_file;
use kiln::core::compile::{self, NoObserver};
use kiln::core::hook::HookSet;
use kiln::core::ir::{Cell, IntrinsicDef, Lowering, Meaning, PtxFunction, Scalar, parse};
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::core::target::{PtxTarget, Target};

/// The oldest architecture that there is: what it has, all have.
const OLDEST: u32 = 75;

#[test]
fn the_reduction_of_large_angles_is_what_llvm_makes_of_it() {
    let row = kiln::stdlib::find("math.large_angle").expect("a row");
    expect_file!["../device-stdlib/src/math/large_angle_f32.ptx"]
        .assert_eq(&by_llvm(row, Scalar::F32));
    expect_file!["../device-stdlib/src/math/large_angle_f64.ptx"]
        .assert_eq(&by_llvm(row, Scalar::F64));
}

#[test]
fn each_function_in_ptx_is_compared() {
    let cells = kiln::stdlib::registry().flat_map(|row| row.cells);
    let names: Vec<&str> = cells
        .filter_map(|cell| Some(function(cell)?.name))
        .collect();
    assert_eq!(names, ["kiln_large_angle_f32", "kiln_large_angle_f64"]);
}

#[test]
fn a_kernel_has_the_functions_that_it_calls() {
    let row = kiln::stdlib::find("math.large_angle").expect("a row");
    let text = compiled(row, Scalar::F64);
    for once in [
        "\n.func  (.param .align 8 .b8 func_retval0[24]) kiln_large_angle_f64\n(",
        "call.uni (retval0), kiln_large_angle_f64, (param0);",
        ".global .align 8 .b8 kiln_large_angle_f64_words[",
    ] {
        assert!(text.contains(once), "{once}\n{text}");
    }
    assert!(!text.contains(".extern"), "{text}");
    assert!(!text.contains("kiln_large_angle_f32"), "{text}");
}

fn function(cell: &Cell) -> Option<&'static PtxFunction> {
    match cell.lowering {
        Lowering::Ptx(function) => Some(function),
        _ => None,
    }
}

/// The PTX of a kernel that stores all that a row of one float gives: two of them, and an `i32`.
fn compiled(row: &'static IntrinsicDef, of: Scalar) -> String {
    let ty = of.name();
    let text = format!(
        "module large legal\nstruct @tuple {{ \"0\": {ty}, \"1\": {ty}, \"2\": i32 }}\n\
         kernel @large(%0 x: {ty}, %1 high: ptr<global, mut {ty}>, %2 low: ptr<global, mut {ty}>, %3 turns: ptr<global, mut i32>) {{\n\
         %4: @tuple = intrinsic {}(%0)\n%5: {ty} = extract %4, 0\nstore volatile %1, %5\n\
         %6: {ty} = extract %4, 1\nstore volatile %2, %6\n%7: i32 = extract %4, 2\nstore volatile %3, %7\nreturn\n}}\n",
        row.name
    );
    let find = |name: &str| match name == row.name {
        true => Some(row),
        false => kiln::stdlib::find(name),
    };
    let module = parse(&text, &find).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let target = Target::Ptx(PtxTarget::for_sm(OLDEST));
    let job = CompileJob::new(module, target, CompileOptions::default());
    let compiled = compile::compile(job, &HookSet::new(), &NoObserver);
    let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
    compiled.code.ptx().expect("PTX").text.to_string()
}

/// The text of a row's function, as LLVM makes it of the body.
fn by_llvm(row: &'static IntrinsicDef, of: Scalar) -> String {
    assert!(matches!(row.meaning, Meaning::Body(_)), "{}", row.name);
    let cell = row.cells.iter().find(|cell| cell.ty == Some(of));
    let name = cell.and_then(function).expect("a function in PTX").name;
    // Without cells it is its body.
    let body = IntrinsicDef::new(row.name, row.params, row.result, row.meaning);
    let ptx = compiled(Box::leak(Box::new(body)), of);
    let (before, function) = ptx.rsplit_once(".func ").expect("a function of its own");
    let (head, body) = function.split_once("\n{\n").expect("a body");
    let own = head.split_once('(').map_or(head, |(_, after)| after);
    let own = own.split_once(") ").map_or(own, |(_, after)| after);
    let own = own.split(['(', '\n']).next().unwrap_or_default();
    let (body, _) = body.split_once("\n}\n").expect("its end");
    let variables: Vec<&str> = before
        .lines()
        .filter(|line| line.starts_with(".const "))
        .collect();
    let [variable] = variables[..] else {
        panic!("it reads one table\n{ptx}");
    };
    // A result that others see is not aligned for pairs.
    let body: String = body.lines().map(in_single_stores).collect();
    // How much constant memory there is left is the kernel's.
    format!("{variable}\n{{\n{body}\n}}\n")
        .replace(own, name)
        .replace(".const ", ".global ")
        .replace("ld.const.", "ld.global.nc.")
        .replace("constant_0", &format!("{name}_words"))
        .replace("$L__BB1", &format!("$L__{name}"))
}

/// A line of PTX, as two if it stores two numbers of the result at once.
fn in_single_stores(line: &str) -> String {
    let stored = || {
        let (ty, rest) = line
            .strip_prefix("\tst.param.v2.b")?
            .split_once(" \t[func_retval0], {")?;
        let (first, second) = rest.strip_suffix("};")?.split_once(", ")?;
        let bits: u32 = ty.parse().ok()?;
        Some((bits, first, second))
    };
    match stored() {
        Some((bits, first, second)) => format!(
            "\tst.param.b{bits} \t[func_retval0], {first};\n\tst.param.b{bits} \t[func_retval0+{}], {second};\n",
            bits / 8
        ),
        None => format!("{line}\n"),
    }
}
