//! Control flow: branches, loops, early exits, calls.

use kiln::prelude::*;

use super::{Outcome, chapter, run_over};

chapter![
    nested_loops_with_break_and_continue,
    while_collatz,
    early_return,
    loops_with_steps,
    loops_between_limits,
    device_functions,
    generic_device_function_at_two_types,
    const_parameters,
];

fn nested_loops_with_break_and_continue(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("nested", |k| {
        let out = k.slice_mut("out", k.ty::<i32>());
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            let sum = k.var("sum", 0);
            k.for_range(0, i.cast_to::<i32>(), |a| {
                k.if_((a % 3).eq(0), || k.continue_());
                k.loop_(|| {
                    sum.set(sum + a);
                    k.if_((sum % 7).eq(0), || k.continue_out(1));
                    k.if_(sum.get().gt(200), || k.break_out(1));
                    k.break_();
                });
                sum.set(sum + 1);
            });
            out.at(i).set(sum);
        });
    })?;
    let want = |n: i32| {
        let mut sum = 0;
        'outer: for a in 0..n {
            if a % 3 == 0 {
                continue;
            }
            sum += a;
            if sum % 7 == 0 {
                continue 'outer;
            }
            if sum > 200 {
                break 'outer;
            }
            sum += 1;
        }
        sum
    };
    let got = run_over(jit, &kernel, vec![0i32; 100], &[])?;
    assert_eq!(got, (0..100).map(want).collect::<Vec<_>>());
    Ok(())
}

fn while_collatz(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("collatz", |k| {
        let out = k.slice_mut("out", k.ty::<u32>());
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            let n = k.var("n", i + 1);
            let mut steps = k.var("steps", 0u32);
            k.while_(
                || n.get().ne(1),
                || {
                    k.if_((n % 2).eq(0), || n.set(n / 2))
                        .else_(|| n.set(n * 3 + 1));
                    steps += 1;
                },
            );
            out.at(i).set(steps);
        });
    })?;
    let want = |i: u32| {
        let (mut n, mut steps) = (i + 1, 0);
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { n * 3 + 1 };
            steps += 1;
        }
        steps
    };
    let got = run_over(jit, &kernel, vec![0u32; 200], &[])?;
    assert_eq!(got, (0..200).map(want).collect::<Vec<_>>());
    Ok(())
}

fn early_return(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("early", |k| {
        let out = k.slice_mut("out", k.ty::<u32>());
        let i = k.global_id().x();
        k.if_(i.ge(out.len()), || k.return_());
        k.if_((i % 2).eq(1), || {
            out.at(i).set(7);
            k.return_();
        });
        out.at(i).set(i);
    })?;
    let got = run_over(jit, &kernel, vec![0u32; 100], &[])?;
    assert_eq!(
        got,
        (0..100)
            .map(|i| if i % 2 == 1 { 7 } else { i })
            .collect::<Vec<_>>()
    );
    Ok(())
}

fn loops_with_steps(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("steps", |k| {
        let out = k.slice_mut("out", k.ty::<i32>());
        let (start, end, step) = (
            k.param("start", Type::I32),
            k.param("end", Type::I32),
            k.param("step", Type::I32),
        );
        let sum = k.var("sum", 0);
        k.for_loop(start, end, step, Unroll::Auto, |i| sum.set(sum * 31 + i));
        out.at(0).set(sum);
    })?;
    let want = |start: i32, end: i32, step: i32| {
        let (mut sum, mut i) = (0i32, start);
        while step != 0 && if step > 0 { i < end } else { i > end } {
            sum = sum.wrapping_mul(31).wrapping_add(i);
            let Some(next) = i.checked_add(step) else {
                break;
            };
            i = next;
        }
        sum
    };
    let cases = [
        (0, 10, 1),
        (10, 0, -3),
        (0, 10, 0),
        (5, 5, 1),
        (-7, 9, 4),
        (i32::MAX - 5, i32::MAX, 2),
        (i32::MIN + 5, i32::MIN, -2),
    ];
    for (start, end, step) in cases {
        let mut out = jit.zeros::<i32>(1)?;
        jit.launch(&kernel, 1, 1, args!(&mut out, start, end, step))?;
        assert_eq!(
            out.to_vec()?,
            [want(start, end, step)],
            "for {start}..{end} step {step}"
        );
    }
    Ok(())
}

/// The turns of a loop.
fn turns_of((start, end): (i128, i128), step: i128) -> i128 {
    let way = match step > 0 {
        true => end - start,
        false => start - end,
    };
    (way.max(0) + step.abs() - 1) / step.abs()
}

/// Loops that are known to begin and to end at the limits of a type, and in the middle of it: those that make a few turns,
/// or none.
fn loops_between(jit: &Jit, ty: Type, (least, last): (i128, i128), step: i128) -> Outcome {
    const MOST: i128 = 8;
    let middle = if least < 0 { -2 } else { 7 };
    let bounds = [least, least + 4, middle, 1, 5, last - 4, last];
    let pairs = bounds.map(|start| bounds.map(|end| (start, end)));
    let turns = |pair| turns_of(pair, step);
    let pairs: Vec<(i128, i128)> = pairs.into_iter().flatten().collect();
    let pairs: Vec<_> = pairs
        .into_iter()
        .filter(|&pair| turns(pair) <= MOST)
        .collect();
    let kernel = Kernel::build("limits", |k| {
        let (x, out) = (k.slice("x", Type::U32), k.slice_mut("out", Type::U32));
        let number = |number: i128| match ty {
            Type::I32 => k.lit(ty, number as i32),
            Type::I64 => k.lit(ty, number as i64),
            Type::U32 => k.lit(ty, number as u32),
            _ => k.lit(ty, number as u64),
        };
        for (n, &(start, end)) in (0u32..).zip(&pairs) {
            let sum = k.var("sum", 0u32);
            let (first, end) = (number(start), number(end));
            k.for_loop(first, end, number(step), Unroll::Auto, |i| {
                let at = if step > 0 { i - first } else { first - i };
                sum.set(sum + x.at(at));
            });
            out.at(n).set(sum);
        }
    })?;
    let x: Vec<u32> = (1..=100).collect();
    let mut out = jit.zeros::<u32>(pairs.len())?;
    jit.launch(&kernel, 1, 1, args!(&jit.upload(&x)?, &mut out))?;
    let sum = |&pair: &(i128, i128)| {
        let numbers = (0..turns(pair)).map(|turn| x[(turn * step.abs()) as usize]);
        numbers.sum()
    };
    let want: Vec<u32> = pairs.iter().map(sum).collect();
    assert_eq!(out.to_vec()?, want, "{ty:?}, by {step}: {pairs:?}");
    Ok(())
}

fn loops_between_limits(jit: &Jit) -> Outcome {
    let types = [
        (Type::I32, i32::MIN.into(), i32::MAX.into()),
        (Type::I64, i64::MIN.into(), i64::MAX.into()),
        (Type::U32, 0, u32::MAX.into()),
        (Type::U64, 0, u64::MAX.into()),
    ];
    for (ty, least, last) in types {
        for step in [1, 3, -1, -3] {
            if step > 0 || least < 0 {
                loops_between(jit, ty, (least, last), step)?;
            }
        }
    }
    Ok(())
}

fn device_functions(jit: &Jit) -> Outcome {
    let square = DeviceFn::build("square", |f| {
        let x = f.param("x", Type::F32);
        f.return_value(x * x);
    })?;
    let hypot = DeviceFn::build("hypot", |f| {
        let (x, y) = (f.param("x", Type::F32), f.param("y", Type::F32));
        f.if_(x.eq(0.0), || f.return_value(y.abs()));
        f.return_value((f.call(&square, &[x]) + f.call(&square, &[y])).sqrt());
    })?;
    let kernel = Kernel::build("hypots", |k| {
        let out = k.slice_mut("out", Type::F32);
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            let x = i.cast(Type::F32);
            out.at(i).set(k.call(&hypot, &[x * 3.0, x * 4.0]));
        });
    })?;
    let got = run_over(jit, &kernel, vec![0f32; 100], &[])?;
    assert!(
        got.iter()
            .enumerate()
            .all(|(i, &v)| (v - 5.0 * i as f32).abs() < 1e-3),
        "{got:?}"
    );
    Ok(())
}

fn generic_device_function_at_two_types(jit: &Jit) -> Outcome {
    let largest = DeviceFn::build("largest", |f| {
        let t = f.type_param("T").num();
        let x = f.slice("x", t);
        let best = f.var("best", x.at(0));
        f.for_range(0, x.len(), |i| best.set(best.get().max(x.at(i))));
        f.return_value(best);
    })?;
    let kernel = Kernel::build("both", |k| {
        let (x, y) = (k.slice("x", Type::F32), k.slice("y", Type::I64));
        let (a, b) = (k.slice_mut("a", Type::F32), k.slice_mut("b", Type::I64));
        a.at(0).set(k.call(&largest, &[x]));
        b.at(0).set(k.call(&largest, &[y]));
    })?;
    let (x, y) = (
        jit.upload(&[1.5f32, 9.0, -3.0])?,
        jit.upload(&[-5i64, -2, -9])?,
    );
    let (mut a, mut b) = (jit.zeros::<f32>(1)?, jit.zeros::<i64>(1)?);
    jit.launch(&kernel, 1, 1, args!(&x, &y, &mut a, &mut b))?;
    assert_eq!((a.to_vec()?[0], b.to_vec()?[0]), (9.0, -2));
    Ok(())
}

fn const_parameters(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("scaled", |k| {
        let out = k.slice_mut("out", Type::U32);
        let factor = k.const_param("FACTOR", Type::U32);
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || out.at(i).set(i * factor));
    })?;
    for factor in [3, 5, 3] {
        let got = run_over(
            jit,
            &kernel.with_const("FACTOR", factor),
            vec![0u32; 70],
            &[],
        )?;
        assert_eq!(got, (0..70).map(|i| i * factor as u32).collect::<Vec<_>>());
    }
    Ok(())
}
