//! Inline PTX that hooks write: what of it LLVM's back end can read. It ends the process on the rest.

use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValueEnum;

use crate::hooks::{InlineAssembly, OperationError};

/// What memory a call may change, as LLVM's constraints have it.
const CLOBBER: &str = "~{memory}";

/// What a letter stands for, and LLVM's types that are it (LLVM, `NVPTXTargetLowering::getConstraintType`).
const REGISTERS: &str = "`h` for `i16`, `r` for `i32`, `l` for `i64` and addresses, `f` for `float`, `d` for \
                         `double`";

/// Whether inline PTX has constraints that LLVM knows, for operands of these types, and names no others.
pub(super) fn check(
    assembly: InlineAssembly<'_>,
    result: Option<BasicTypeEnum<'_>>,
    args: &[BasicValueEnum<'_>],
) -> Result<(), OperationError> {
    let results = results(result);
    let inputs = args.iter().map(|arg| arg.get_type()).collect::<Vec<_>>();
    check_constraints(assembly.constraints, &results, &inputs)
        .and_then(|()| check_template(assembly.template, results.len() + inputs.len()))
        .map_err(|why| assembly.refused(why))
}

/// The registers of a result: several are a struct.
fn results(result: Option<BasicTypeEnum<'_>>) -> Vec<BasicTypeEnum<'_>> {
    match result {
        None => Vec::new(),
        Some(BasicTypeEnum::StructType(several)) => several.get_field_types(),
        Some(one) => vec![one],
    }
}

fn check_constraints(
    constraints: &str,
    results: &[BasicTypeEnum<'_>],
    inputs: &[BasicTypeEnum<'_>],
) -> Result<(), String> {
    let (mut outputs, mut read) = (results.iter(), inputs.iter());
    let mut seen_input = false;
    let written = constraints.split(',').filter(|part| !part.is_empty());
    for part in written.filter(|&part| part != CLOBBER) {
        let output = part.strip_prefix('=');
        let letter = output.map_or(part, |letter| letter.trim_start_matches('&'));
        let (ty, what) = match output {
            Some(_) if seen_input => {
                return Err(format!(
                    "`{part}` is a result behind an operand; put results first"
                ));
            }
            Some(_) => (outputs.next(), "results"),
            None => (read.next(), "operands"),
        };
        seen_input |= output.is_none();
        let ty = *ty.ok_or_else(|| format!("there are more constraints than {what}"))?;
        let text = ty.print_to_string();
        if !fits(letter, ty) {
            return Err(format!(
                "`{part}` is no register for a `{}`; write {REGISTERS}, and convert others",
                text.to_string_lossy()
            ));
        }
    }
    for (left, what) in [(outputs.len(), "results"), (read.len(), "operands")] {
        if left > 0 {
            return Err(format!("{left} of the {what} have no constraint"));
        }
    }
    Ok(())
}

fn fits(letter: &str, ty: BasicTypeEnum<'_>) -> bool {
    match (letter, ty) {
        ("h", BasicTypeEnum::IntType(int)) => int.get_bit_width() == 16,
        ("r", BasicTypeEnum::IntType(int)) => int.get_bit_width() == 32,
        ("l", BasicTypeEnum::IntType(int)) => int.get_bit_width() == 64,
        ("l", BasicTypeEnum::PointerType(_)) => true,
        ("f", BasicTypeEnum::FloatType(float)) => float == float.get_context().f32_type(),
        ("d", BasicTypeEnum::FloatType(float)) => float == float.get_context().f64_type(),
        _ => false,
    }
}

/// `$0` to the last operand, and `$$` for a dollar; LLVM has other uses of it, which are of no use in PTX.
fn check_template(template: &str, operands: usize) -> Result<(), String> {
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('$') {
        if let Some(behind) = after.strip_prefix('$') {
            rest = behind;
            continue;
        }
        let braced = after.strip_prefix('{');
        let number = braced.unwrap_or(after);
        let digits = number.len()
            - number
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let (number, behind) = number.split_at(digits);
        let closed = braced.is_none() || behind.starts_with('}');
        let known = number.parse().is_ok_and(|number: usize| number < operands);
        if !closed || !known {
            return Err(format!(
                "there is no operand `${number}`; the {operands} that there are are counted from `$0`, results \
                 first, and `$$` is a dollar"
            ));
        }
        rest = behind;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::*;
    use crate::llvm::session::on_compile_thread;

    fn told() -> Vec<String> {
        let context = Context::create();
        let (f32, i32) = (context.f32_type().into(), context.i32_type().into());
        let pair = context.struct_type(&[f32, i32], false).into();
        let word = BasicTypeEnum::from(context.i8_type());
        let check = |constraints: &str, result: Option<BasicTypeEnum<'_>>, inputs: &[_]| {
            check_constraints(constraints, &results(result), inputs)
        };
        let constraints = [
            check("=f,r", Some(f32), &[i32]),
            check("=f,=r,~{memory}", Some(pair), &[]),
            check("~{memory}", None, &[]),
            check("", None, &[]),
            check("=z,r", Some(f32), &[i32]),
            check("=f,0", Some(f32), &[f32]),
            check("=f", Some(f32), &[i32]),
            check("=f,=r", Some(f32), &[]),
            check("r,=f", Some(f32), &[i32]),
            check("=r", Some(word), &[]),
            check("~{cc}", None, &[]),
        ];
        let templates = [
            "mov.b32 $0, ${1};",
            "mov $$ $1",
            "{ .reg .b32 t; }",
            "mov $2",
            "mov $",
            "mov ${0:w}",
            "mov $(a$|b$)",
        ];
        let templates = templates.map(|template| check_template(template, 2));
        let all = constraints.into_iter().chain(templates);
        all.map(|told| told.err().unwrap_or_else(|| "right".to_owned()))
            .collect()
    }

    #[test]
    fn what_llvm_cannot_read_is_refused() {
        let told = on_compile_thread("asm", told).expect("LLVM is there");
        expect_test::expect![[r#"
            right
            right
            right
            right
            `=z` is no register for a `float`; write `h` for `i16`, `r` for `i32`, `l` for `i64` and addresses, `f` for `float`, `d` for `double`, and convert others
            `0` is no register for a `float`; write `h` for `i16`, `r` for `i32`, `l` for `i64` and addresses, `f` for `float`, `d` for `double`, and convert others
            1 of the operands have no constraint
            there are more constraints than results
            `=f` is a result behind an operand; put results first
            `=r` is no register for a `i8`; write `h` for `i16`, `r` for `i32`, `l` for `i64` and addresses, `f` for `float`, `d` for `double`, and convert others
            there are more constraints than operands
            right
            right
            right
            there is no operand `$2`; the 2 that there are are counted from `$0`, results first, and `$$` is a dollar
            there is no operand `$`; the 2 that there are are counted from `$0`, results first, and `$$` is a dollar
            there is no operand `$0`; the 2 that there are are counted from `$0`, results first, and `$$` is a dollar
            there is no operand `$`; the 2 that there are are counted from `$0`, results first, and `$$` is a dollar"#]].assert_eq(&told.join("\n"));
    }
}
