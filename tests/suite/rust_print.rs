//! What kernels print: the texts that `std::fmt` makes of the same values, in each thread's order.

use std::sync::{Arc, Mutex};

use half::{bf16, f16};
use kiln::core::ir::Type;
use kiln::prelude::*;
use kiln::{Printed, device_fn, kernel};

use super::{Outcome, chapter};

chapter![
    formats_are_those_of_the_host,
    numbers_of_all_types,
    values_made_of_several,
    options_are_what_they_are,
    debugging_prints_and_is_the_value,
    a_thread_prints_in_its_order,
    device_functions_and_loops_print,
    what_finds_no_room_is_counted,
    what_was_printed_before_a_fault_is_seen,
    graphs_print_at_each_replay,
    streams_print,
    builders_print,
    what_is_left_is_printed_at_the_end,
];

/// What a `Jit` was told, in order.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Line>>>);

#[derive(Clone, PartialEq, Debug)]
enum Line {
    Out(String),
    Err(String),
    Lost(u64),
}

impl Told {
    /// A `Jit` as this one, and what its kernels print.
    fn of(jit: &Jit) -> (Jit, Told) {
        let told = Told::default();
        let to = told.clone();
        let settings = jit.options().clone().on_print(move |printed| {
            to.0.lock().expect("nobody panicked").push(match printed {
                Printed::Text {
                    text,
                    to_stderr: false,
                    ..
                } => Line::Out(text.to_owned()),
                Printed::Text { text, .. } => Line::Err(text.to_owned()),
                Printed::Lost { texts } => Line::Lost(texts),
                _ => unreachable!("there are no others"),
            });
        });
        let jit = Jit::with(jit.device().clone(), jit.hooks().clone(), settings);
        (jit, told)
    }

    fn take(&self) -> Vec<Line> {
        std::mem::take(&mut *self.0.lock().expect("nobody panicked"))
    }

    /// The texts, of which each has to be for the standard output.
    fn text(&self) -> String {
        let line = |line| match line {
            Line::Out(text) => text,
            other => panic!("{other:?}"),
        };
        self.take().into_iter().map(line).collect()
    }
}

#[kernel]
fn formats(n: u32, x: f32, y: i64, yes: bool) {
    println!();
    println!("plain");
    print!("a part, ");
    print!("{n}");
    println!(", {{braces}} \"quoted\" \\ é");
    println!("{} {:?} {n} {0} {named:>6}|", n, x, named = n + 1);
    println!("{:5}|{:<5}|{:^5}|{:*>5}|{:+}|{:05}", n, n, n, n, n, n);
    println!("{:x} {:#X} {:o} {:#b} {:e}", n, n, n, n, n);
    println!("{x:8.3}|{x:+.1e}|{:?}|{}", 2.0f32, 1.0f64 / 3.0);
    println!("{y:>12}|{:#018x}", y);
    println!("{yes:?} {yes:>7}|{}", !yes);
    println!("{} {}", n as u64 + (1 << 40), -1i8);
}

fn formats_are_those_of_the_host(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    formats.launch(&jit, (1, 1), 17u32, 0.1f32, -5i64, true)?;
    jit.synchronize()?;
    let (n, x, y, yes) = (17u32, 0.1f32, -5i64, true);
    let mut expected = String::from("\nplain\na part, 17, {braces} \"quoted\" \\ é\n");
    expected += &format!("{} {:?} {n} {0} {named:>6}|\n", n, x, named = n + 1);
    expected += &format!("{:5}|{:<5}|{:^5}|{:*>5}|{:+}|{:05}\n", n, n, n, n, n, n);
    expected += &format!("{:x} {:#X} {:o} {:#b} {:e}\n", n, n, n, n, n);
    expected += &format!("{x:8.3}|{x:+.1e}|{:?}|{}\n", 2.0f32, 1.0f64 / 3.0);
    expected += &format!("{y:>12}|{:#018x}\n", y);
    expected += &format!("{yes:?} {yes:>7}|{}\n", !yes);
    expected += &format!("{} {}\n", u64::from(n) + (1 << 40), -1i8);
    assert_eq!(told.text(), expected);
    Ok(())
}

#[kernel]
fn each_type(
    a: i8,
    b: i16,
    c: i32,
    d: i64,
    e: u8,
    f: u16,
    g: u32,
    h: u64,
    i: f16,
    j: bf16,
    k: f32,
    l: f64,
) {
    println!("{a} {b} {c} {d} {e} {f} {g} {h} {i:?} {j:?} {k:?} {l:?}");
}

fn numbers_of_all_types(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    let (i, j) = (f16::from_f32(-0.3), bf16::from_f32(1e20));
    for far in [false, true] {
        let (a, b, c, d) = match far {
            true => (i8::MIN, i16::MIN, i32::MIN, i64::MIN),
            false => (1, -2, 3, -4),
        };
        let (e, f, g, h) = match far {
            true => (u8::MAX, u16::MAX, u32::MAX, u64::MAX),
            false => (5, 6, 7, 8),
        };
        let (k, l) = match far {
            true => (f32::MIN_POSITIVE, f64::MAX),
            false => (f32::NAN, -0.0),
        };
        each_type.launch(&jit, (1, 1), a, b, c, d, e, f, g, h, i, j, k, l)?;
        jit.synchronize()?;
        let (i, j) = (i.to_f32(), j.to_f32());
        assert_eq!(
            told.text(),
            format!("{a} {b} {c} {d} {e} {f} {g} {h} {i:?} {j:?} {k:?} {l:?}\n")
        );
    }
    Ok(())
}

#[derive(Copy, Clone, Debug, KernelType)]
#[repr(C)]
struct Point {
    x: f32,
    y: i32,
}

#[derive(Copy, Clone, Debug, KernelType)]
#[repr(C)]
struct Pair(Point, [u32; 2]);

#[kernel]
fn nested(n: u32) {
    let point = Point {
        x: 1.5,
        y: -(n as i32),
    };
    let pair = Pair(point, [n, n + 1]);
    let vector = F32x4([1.0, 2.5, n as f32, -0.0]);
    println!("{point:?} {:?} {:?}", pair, (n, 2.5f64, true));
    println!("{:?} {:?} {vector:?}", (n,), [point, point]);
    println!("{:#?}", pair);
    println!("{:#?} {:#?}", (n, vector), [n; 2]);
    println!("{:5.1?}|{:02x?}", [1.0f32, 2.25], n);
}

fn values_made_of_several(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    nested.launch(&jit, (1, 1), 7u32)?;
    jit.synchronize()?;
    let point = Point { x: 1.5, y: -7 };
    let (pair, vector) = (Pair(point, [7, 8]), F32x4([1.0, 2.5, 7.0, -0.0]));
    let mut expected = format!("{point:?} {:?} {:?}\n", pair, (7u32, 2.5f64, true));
    expected += &format!("{:?} {:?} {vector:?}\n", (7u32,), [point, point]);
    expected += &format!("{:#?}\n", pair);
    expected += &format!("{:#?} {:#?}\n", (7u32, vector), [7u32; 2]);
    expected += &format!("{:5.1?}|{:02x?}\n", [1.0f32, 2.25], 7u32);
    assert_eq!(told.text(), expected);
    // What is read of the fields on the host, where `Debug` is derived.
    assert_eq!((pair.0.x, pair.0.y, pair.1[0]), (1.5, -7, 7));
    Ok(())
}

#[kernel]
fn options(x: &[u32]) {
    let i = thread_idx().x;
    println!("{i}: {:?}, {:?}", x.get(i).copied(), (i, i.checked_sub(2)));
}

fn options_are_what_they_are(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    let x = jit.upload(&[5u32, 6, 7])?;
    options.launch(&jit, (1, 4), &x)?;
    jit.synchronize()?;
    let mut lines: Vec<String> = told.text().lines().map(str::to_owned).collect();
    lines.sort();
    let expected: Vec<String> = (0..4u32)
        .map(|i| {
            format!(
                "{i}: {:?}, {:?}",
                [5, 6, 7].get(i as usize),
                (i, i.checked_sub(2))
            )
        })
        .collect();
    assert_eq!(lines, expected);
    Ok(())
}

#[kernel]
fn debugged(x: &mut [u32]) {
    let n = dbg!(x[0] * 2) + 1;
    x[1] = dbg!(n);
    let (a, b) = dbg!(n, x.len());
    dbg!();
    eprintln!("{a} {b}");
    eprint!("end");
}

fn debugging_prints_and_is_the_value(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    let mut x = jit.upload(&[21u32, 0])?;
    debugged.launch(&jit, (1, 1), &mut x)?;
    assert_eq!(x.to_vec()?, [21, 43]);
    let text: Vec<String> = told
        .take()
        .into_iter()
        .map(|line| match line {
            Line::Err(text) => text,
            other => panic!("{other:?}"),
        })
        .collect();
    let (place, rest): (Vec<_>, Vec<_>) = text
        .iter()
        .filter_map(|text| text.trim_start_matches('[').split_once(']'))
        .unzip();
    assert_eq!(
        rest,
        [
            " x[0] * 2 = 42\n",
            " n = 43\n",
            " n = 43\n",
            " x.len() = 2\n",
            "\n"
        ]
    );
    assert!(place[0].starts_with(&format!("{}:", file!())), "{place:?}");
    assert_eq!(text[5..], ["43 2\n", "end"]);
    Ok(())
}

#[kernel]
fn in_order(rounds: u32) {
    let i = global_id().x;
    for round in 0..rounds {
        if (i as u32 + round) % 3 != 0 {
            println!("{i} {round}");
        }
    }
}

fn a_thread_prints_in_its_order(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    let mut x = jit.zeros::<u32>(1)?;
    in_order.launch(&jit, (4, 40), 4u32)?;
    // Nothing is waited for.
    x.write(&[1])?;
    jit.synchronize()?;
    let mut rounds = vec![Vec::new(); 160];
    for line in told.text().lines() {
        let (i, round) = line.split_once(' ').expect("there are two");
        let (i, round): (usize, u32) = (
            i.parse().expect("an index"),
            round.parse().expect("a round"),
        );
        rounds[i].push(round);
    }
    for (i, printed) in rounds.iter().enumerate() {
        let expected: Vec<u32> = (0..4)
            .filter(|round| !(i as u32 + round).is_multiple_of(3))
            .collect();
        assert_eq!(*printed, expected, "thread {i}");
    }
    Ok(())
}

#[device_fn]
fn told_of(n: u32) -> u32 {
    println!("told of {n}");
    n + 1
}

#[device_fn]
fn generic<T: Float, F: Fn(T) -> T>(x: T, f: F) -> T {
    println!("generic {x}");
    f(x)
}

#[kernel]
fn through_functions(n: u32) {
    let mut sum = 0;
    for i in 0..n {
        sum += told_of(i);
        if i == 1 {
            continue;
        }
        print!("{sum};");
    }
    let twice = generic(2.5f32, |x| {
        println!("in a closure");
        x * 2.0
    });
    println!("{twice}");
    match sum {
        6 => println!("six"),
        _ => println!("other"),
    }
}

fn device_functions_and_loops_print(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    through_functions.launch(&jit, (1, 1), 3u32)?;
    jit.synchronize()?;
    let expected = "told of 0\n1;told of 1\ntold of 2\n6;generic 2.5\nin a closure\n5\nsix\n";
    assert_eq!(told.text(), expected);
    Ok(())
}

#[kernel]
fn many(times: u32) {
    for _ in 0..times {
        println!("{} {}", global_id().x, 1u64 << 40);
    }
}

fn what_finds_no_room_is_counted(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    let seen = || {
        let count = |(printed, lost), line| match line {
            Line::Out(text) => {
                assert!(text.ends_with(" 1099511627776\n"), "{text}");
                (printed + 1, lost)
            }
            Line::Lost(texts) => (printed, lost + texts),
            Line::Err(text) => panic!("{text}"),
        };
        told.take().into_iter().fold((0u64, 0u64), count)
    };
    // A text takes four words of the 2^17, of which two count.
    many.launch(&jit, (8, 64), 80u32)?;
    jit.synchronize()?;
    assert_eq!(seen(), (32767, 8 * 64 * 80 - 32767));
    many.launch(&jit, (2, 32), 3u32)?;
    jit.synchronize()?;
    assert_eq!(seen(), (192, 0));
    Ok(())
}

#[kernel]
fn printed_before(x: &mut [u32]) {
    let i = thread_idx().x;
    if i == 3 {
        println!("before");
    }
    x[i * 2] = i as u32;
    if i == 3 {
        println!("behind");
    }
}

fn what_was_printed_before_a_fault_is_seen(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    let mut x = jit.zeros::<u32>(6)?;
    printed_before.launch(&jit, (1, 4), &mut x)?;
    assert!(x.to_vec().is_err());
    assert_eq!(told.text(), "before\n");
    Ok(())
}

#[kernel]
fn counted(x: &mut [u32]) {
    x[0] += 1;
    println!("{}", x[0]);
}

fn graphs_print_at_each_replay(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    let mut x = jit.zeros::<u32>(1)?;
    let mut graph = jit.graph((&mut x,), |g, (mut x,)| {
        g.launch(&counted, 1, 1, args!(&mut x))?;
        g.launch(&counted, 1, 1, args!(&mut x))
    })?;
    for _ in 0..2 {
        graph.replay(args!(&mut x))?;
    }
    assert_eq!(x.to_vec()?, [4]);
    assert_eq!(told.text(), "1\n2\n3\n4\n");
    graph.replay(args!(&mut x))?;
    jit.synchronize()?;
    assert_eq!(told.text(), "5\n6\n");
    Ok(())
}

fn streams_print(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    let streams = [jit.stream()?, jit.stream()?];
    for (i, stream) in streams.iter().enumerate() {
        in_order.launch(stream, (1, 1), 2 + i as u32)?;
    }
    streams[0].synchronize()?;
    streams[1].synchronize()?;
    jit.synchronize()?;
    let mut lines: Vec<String> = told.text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["0 1", "0 1", "0 2"]);
    Ok(())
}

fn builders_print(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    let kernel = Kernel::build("show", |k| {
        let (x, n) = (k.slice("x", Type::F32), k.param("n", Type::I64));
        k.print("{:.2} {:+}\n", &[x.at(0).get(), n]);
        k.eprint("{{}}", &[]);
    })?;
    let x = jit.upload(&[0.125f32])?;
    jit.launch(&kernel, 1, 1, args!(&x, 9i64))?;
    jit.synchronize()?;
    let expected = [
        Line::Out("0.12 +9\n".to_owned()),
        Line::Err("{}".to_owned()),
    ];
    assert_eq!(told.take(), expected);
    let wrong = Kernel::build("wrong", |k| k.print("{} {:x}", &[k.lit(Type::F32, 1.0)]));
    let error = wrong.expect_err("there is one value").to_string();
    assert!(
        error.contains("2 places for values, and 1 are given"),
        "{error}"
    );
    Ok(())
}

fn what_is_left_is_printed_at_the_end(jit: &Jit) -> Outcome {
    let (jit, told) = Told::of(jit);
    many.launch(&jit, (1, 2), 1u32)?;
    drop(jit);
    let lines = told.text();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    Ok(())
}
