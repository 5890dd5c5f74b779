//! Arithmetic of `f64` in `f32`, for machines that are slow at the former. Memory and what functions take and
//! give stay as they are.

use kiln::core::prelude::*;

/// Computes with fewer digits.
pub fn narrow() -> Hook {
    Hook::new("narrow").rewrite_ir(|_, module| {
        module.rewrite_each(|at| {
            let data = at.data().clone();
            let mut wide = true;
            data.for_each_operand(|operand| wide &= at.type_of(operand) == Type::F64);
            if wide {
                rewrite(at, data);
            }
        });
        Ok(())
    })
}

/// Rewrites one operation that has operands of `f64` alone.
fn rewrite(at: &mut Cursor<'_>, data: InstData) {
    let short = |at: &mut Cursor<'_>, value: Value| at.ins().cast(value, Type::F32);
    let result = match data {
        InstData::Unary { op, arg } => {
            let x = short(at, arg);
            at.ins().unary(op, x)
        }
        InstData::Binary { op, args } => {
            let [x, y] = args.map(|arg| short(at, arg));
            at.ins().binary(op, x, y)
        }
        InstData::Compare { op, args } => {
            let [x, y] = args.map(|arg| short(at, arg));
            at.replace().compare(op, x, y);
            return;
        }
        InstData::Intrinsic { id, args }
            if at.result().is_some_and(|r| at.type_of(r) == Type::F64) =>
        {
            let row = at.module().intrinsics[id];
            let args: Vec<Value> = args.iter().map(|&arg| short(at, arg)).collect();
            let Some(result) = at.ins().intrinsic(row, &args) else {
                return;
            };
            result
        }
        _ => return,
    };
    at.replace().cast(result, Type::F64);
}

#[cfg(test)]
mod tests {
    use kiln::core::prelude::*;
    use kiln::prelude::*;

    use super::narrow;
    use crate::machines::{cpu, interpreter, ptx};

    #[derive(Copy, Clone, KernelType)]
    #[repr(C)]
    struct Line {
        slope: f64,
        start: f64,
    }

    #[device_fn]
    fn height(line: Line, x: f64) -> f64 {
        if x < 0.0 {
            return line.start;
        }
        line.slope * x + line.start
    }

    #[kernel]
    fn heights(x: &mut [f64], line: Line) {
        let i = global_id().x;
        if i < x.len() {
            x[i] = height(line, x[i]).sqrt() / 3.0;
        }
    }

    /// The operations of `f64` in the code, conversions left out.
    fn arithmetic(hooks: HookSet) -> kiln::Result<Vec<String>> {
        let jit = ptx(hooks);
        let mut x = jit.zeros::<f64>(4)?;
        let line = Line {
            slope: 1.0,
            start: 2.0,
        };
        let inspection = jit.inspect(&heights, args!(&mut x, line))?;
        let lines = inspection.ptx()?.lines().map(str::trim);
        let of_f64 =
            lines.filter(|line| line.split(' ').next().is_some_and(|op| op.contains(".f64")));
        let computing =
            of_f64.filter(|line| !line.starts_with("cvt.") && !line.starts_with("setp."));
        Ok(computing.map(str::to_owned).collect())
    }

    #[test]
    fn no_arithmetic_of_f64_is_left() -> kiln::Result<()> {
        assert!(!arithmetic(HookSet::new())?.is_empty());
        assert_eq!(arithmetic(narrow().into())?, [""; 0]);
        Ok(())
    }

    #[test]
    fn results_are_those_of_f32() -> kiln::Result<()> {
        let line = Line {
            slope: 0.1,
            start: 2.0,
        };
        for jit in [cpu(narrow()), interpreter(narrow())] {
            let mut x = jit.upload(&[0.7f64, -1.0])?;
            heights.launch(&jit, (1, 32), &mut x, line)?;
            let want = [0.1f64 * 0.7 + 2.0, 2.0].map(|y| y.sqrt() / 3.0);
            for (got, want) in x.to_vec()?.into_iter().zip(want) {
                assert!((got - want).abs() < 1e-6 && got != want, "{got} {want}");
            }
        }
        Ok(())
    }
}
