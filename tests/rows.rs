//! Every cell of every row of the library, compiled and assembled.
//!
//! For each row, each type its parameters leave open and each architecture: code generation refuses
//! it, or LLVM selects it and `ptxas` takes the text. Needs `KILN_PTXAS`, which `cargo xtask test`
//! sets; without it the cells are compiled and not assembled.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use kiln::core::codegen::{CodegenOptions, LoweringHooks, NoHooks, emit_ptx};
use kiln::core::ir::{IntrinsicDef, Scalar, TypePattern, parse, verify};
use kiln::core::target::PtxTarget;

const ARCHITECTURES: [u32; 4] = [75, 80, 90, 120];

/// The type of a parameter when the open ones are `open`.
fn param_type(def: &IntrinsicDef, pattern: TypePattern, open: Scalar) -> Option<Scalar> {
    match pattern {
        TypePattern::Exact(scalar) => Some(scalar),
        TypePattern::OneOf(_) => Some(open),
        TypePattern::SameAs(i) => param_type(def, def.params[usize::from(i)], open),
        TypePattern::Unit => None,
    }
}

/// The types that the row's parameters leave open; one of no meaning if they leave none.
fn choices(def: &IntrinsicDef) -> Vec<Scalar> {
    let open = def.params.iter().find_map(|pattern| match pattern {
        TypePattern::OneOf(list) => Some(list.to_vec()),
        _ => None,
    });
    open.unwrap_or(vec![Scalar::U32])
}

/// A kernel that applies a row to values from memory and stores the result.
fn kernel(def: &IntrinsicDef, open: Scalar) -> String {
    let mut text = "module cell legal\nkernel @cell(%0 memory: ptr<global, mut u8>) {\n".to_owned();
    let mut args = Vec::new();
    let mut next = 1;
    for &param in def.params {
        let ty = param_type(def, param, open)
            .expect("parameters have values")
            .name();
        let (at, value) = (next, next + 1);
        text +=
            &format!("%{at}: ptr<global, mut {ty}> = bitcast %0\n%{value}: {ty} = load %{at}\n");
        args.push(format!("%{value}"));
        next += 2;
    }
    let call = format!("intrinsic {}({})", def.name, args.join(", "));
    match param_type(def, def.result, open) {
        None => text += &format!("{call}\n"),
        Some(result) => {
            let ty = result.name();
            let at = next + 1;
            text += &format!("%{next}: {ty} = {call}\n");
            text += &format!("%{at}: ptr<global, mut {ty}> = bitcast %0\nstore %{at}, %{next}\n");
        }
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

/// Compiles a row for an open type and assembles it.
fn check(def: &IntrinsicDef, open: Scalar, sm: u32) -> Result<(), String> {
    let module = parse(&kernel(def, open), &kiln::stdlib::find).map_err(|e| e.to_string())?;
    verify(&module).map_err(|e| e.to_string())?;
    let hooks: Arc<dyn LoweringHooks + Send + Sync> = Arc::new(NoHooks);
    let (target, options) = (PtxTarget::for_sm(sm), CodegenOptions::default());
    let ptx = emit_ptx(&Arc::new(module), target, &options, &hooks).map_err(|e| e.to_string())?;
    assemble(&ptx, sm)
}

#[test]
fn every_row_assembles() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for def in kiln::stdlib::registry() {
        for open in choices(def) {
            for sm in ARCHITECTURES {
                count += 1;
                if let Err(error) = check(def, open, sm) {
                    wrong.push(format!(
                        "{} of {} for sm_{sm}: {error}",
                        def.name,
                        open.name()
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
