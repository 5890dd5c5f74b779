//! Launches: the cache, redefinition, prepared kernels, facts, and everything that can be wrong.

use kiln::Error;
use kiln::core::front::AsKernel;
use kiln::core::launch::LaunchError;
use kiln::prelude::*;

use super::{Outcome, chapter, kernels, run_over};

chapter![
    the_second_launch_is_a_hit,
    other_types_are_another_specialization,
    types_of_one_name_are_specializations,
    redefinition_is_seen,
    redefined_callees_are_seen,
    prepared_kernels_launch,
    lengths_of_the_host_are_arguments,
    facts_specialize,
    many_threads_compile_once,
    wrong_launches_are_errors,
    empty_buffers,
    blocks_that_the_device_chooses,
    blocks_that_are_there_at_once,
    typed_launches_pass_what_they_are_given,
    typed_launches_tell_what_is_wrong,
];

fn fill(value: u32) -> impl Fn(&KernelBuilder) {
    move |k: &KernelBuilder| {
        let out = k.slice_mut("out", Type::U32);
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || out.at(i).set(value));
    }
}

fn the_second_launch_is_a_hit(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("hit", fill(1))?;
    let before = jit.cache_stats();
    let mut out = jit.zeros::<u32>(10)?;
    for _ in 0..3 {
        jit.launch(&kernel, 1, 32, args!(&mut out))?;
    }
    let after = jit.cache_stats();
    assert_eq!(after.compiles - before.compiles, 1);
    assert_eq!(after.hits - before.hits, 2);
    Ok(())
}

fn other_types_are_another_specialization(jit: &Jit) -> Outcome {
    let saxpy = kernels::saxpy()?;
    let before = jit.cache_stats();
    let (x, mut y) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
    jit.launch(&saxpy, 1, 4, args!(1.0f32, &x, &mut y))?;
    let (x, mut y) = (jit.zeros::<f64>(4)?, jit.zeros::<f64>(4)?);
    jit.launch(&saxpy, 1, 4, args!(1.0f64, &x, &mut y))?;
    assert_eq!(jit.cache_stats().compiles - before.compiles, 2);
    let why = jit
        .explain_recompile(&saxpy)
        .expect("it was compiled")
        .to_string();
    assert!(
        why.contains("argument types: f32, &[f32], &mut [f32] -> f64"),
        "{why}"
    );
    Ok(())
}

#[kernel]
fn copy<T: KernelType>(from: &[T], to: &mut [T]) {
    let i = global_id().x;
    if i < to.len() {
        to[i] = from[i];
    }
}

/// Copies values of a struct `P` of these fields, and gives back what was compiled for them.
macro_rules! copy_of_p {
    ($jit:ident, $number:ty, $first:ident $second:ident) => {{
        #[derive(KernelType, Copy, Clone, Debug, PartialEq)]
        #[repr(C)]
        struct P {
            $first: $number,
            $second: $number,
        }
        let p = |i: u8| P {
            $first: i.into(),
            $second: (i + 100).into(),
        };
        let host: Vec<P> = (0..50).map(p).collect();
        let (x, mut y) = ($jit.upload(&host)?, $jit.zeros::<P>(50)?);
        $jit.launch(&copy, 1, 64, args!(&x, &mut y))?;
        assert_eq!(y.to_vec()?, host);
        let prepared = $jit.compile(&copy, args!(&x, &mut y))?;
        move |other: &kiln::core::jit::Prepared| match other.launch(1, 64, args!(&x, &mut y)) {
            Ok(()) => (prepared, String::new()),
            Err(error) => (prepared, error.to_string()),
        }
    }};
}

fn types_of_one_name_are_specializations(jit: &Jit) -> Outcome {
    let before = jit.cache_stats();
    let narrow = copy_of_p!(jit, f32, a b);
    let wide = copy_of_p!(jit, f64, a b);
    let renamed = copy_of_p!(jit, f32, b a);
    assert_eq!(jit.cache_stats().compiles - before.compiles, 3);
    let why = jit
        .explain_recompile(AsKernel::as_kernel(&copy)?)
        .expect("it was compiled");
    let why = why.to_string();
    assert!(
        why.contains("argument types: &[@P {a: f64, b: f64}]"),
        "{why}"
    );
    assert!(why.contains("-> &[@P {b: f32, a: f32}]"), "{why}");
    // The same type again is no other one.
    let same = copy_of_p!(jit, f32, a b);
    assert_eq!(jit.cache_stats().compiles - before.compiles, 3);
    let saxpy = jit.compile(
        &kernels::saxpy()?,
        args!(1.0f32, &jit.zeros::<f32>(1)?, &mut jit.zeros::<f32>(1)?),
    )?;
    let (narrow, _) = narrow(&saxpy);
    let (_, error) = same(&narrow);
    assert_eq!(error, "");
    let (_, error) = renamed(&narrow);
    assert!(
        error.contains("(&[@P {a: f32, b: f32}], &mut [@P {a: f32, b: f32}])"),
        "{error}"
    );
    assert!(
        error.contains("(&[@P {b: f32, a: f32}], &mut [@P {b: f32, a: f32}])"),
        "{error}"
    );
    let (_, error) = wide(&narrow);
    assert!(
        error.contains("(&[@P {a: f64, b: f64}], &mut [@P {a: f64, b: f64}])"),
        "{error}"
    );
    Ok(())
}

fn redefinition_is_seen(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("age", fill(1))?;
    let first = fill(1);
    assert_eq!(run_over(jit, &kernel, vec![0u32; 5], &[])?, [1; 5]);
    kernel.redefine(fill(2))?;
    assert_eq!(run_over(jit, &kernel, vec![0u32; 5], &[])?, [2; 5]);
    let why = jit.explain_recompile(&kernel).expect("it was compiled");
    assert_eq!(
        why.changes.iter().map(|c| c.field).collect::<Vec<_>>(),
        ["content"]
    );
    // Going back to an earlier body finds its code.
    let before = jit.cache_stats();
    kernel.redefine(&first)?;
    assert_eq!(run_over(jit, &kernel, vec![0u32; 5], &[])?, [1; 5]);
    assert_eq!(jit.cache_stats().compiles, before.compiles);
    Ok(())
}

fn redefined_callees_are_seen(jit: &Jit) -> Outcome {
    let add = |n: f32| {
        move |f: &KernelBuilder| {
            let x = f.param("x", Type::F32);
            f.return_value(x + n);
        }
    };
    let inner = DeviceFn::build("inner", add(1.0))?;
    let outer = DeviceFn::build("outer", |f| {
        let x = f.param("x", Type::F32);
        f.return_value(f.call(&inner, &[x]) * 2.0);
    })?;
    let kernel = Kernel::build("calls", |k| {
        let out = k.slice_mut("out", Type::F32);
        k.if_(k.global_id().x().eq(0), || {
            out.at(0).set(k.call(&outer, &[out.at(0).get()]));
        });
    })?;
    assert_eq!(run_over(jit, &kernel, vec![3.0f32], &[])?, [8.0]);
    inner.redefine(add(10.0))?;
    assert_eq!(run_over(jit, &kernel, vec![3.0f32], &[])?, [26.0]);
    let compiles = jit.cache_stats().compiles;
    inner.redefine(add(1.0))?;
    assert_eq!(run_over(jit, &kernel, vec![3.0f32], &[])?, [8.0]);
    assert_eq!(jit.cache_stats().compiles, compiles);
    Ok(())
}

fn prepared_kernels_launch(jit: &Jit) -> Outcome {
    let saxpy = kernels::saxpy()?;
    let x = jit.upload(&[2.0f32; 100])?;
    let mut y = jit.upload(&[1.0f32; 100])?;
    let prepared = jit.compile(&saxpy, args!(3.0f32, &x, &mut y))?;
    prepared.launch(1, 128, args!(3.0f32, &x, &mut y))?;
    assert_eq!(y.to_vec()?, [7.0; 100]);
    let wrong = prepared.launch(1, 128, args!(3.0f64, &x, &mut y));
    assert!(
        matches!(
            wrong,
            Err(Error::Launch(LaunchError::OtherSignature { .. }))
        ),
        "{wrong:?}"
    );
    Ok(())
}

/// Writes which multiple of a step each number is, from a number on.
#[kernel]
fn multiples(step: usize, from: isize, out: &mut [i32]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = (i * step) as i32 + from as i32;
    }
}

fn lengths_of_the_host_are_arguments(jit: &Jit) -> Outcome {
    let host = [0u64; 3];
    let mut out = jit.zeros::<i32>(3)?;
    let largest = u32::MAX as usize;
    let least = i32::MIN as isize;
    multiples.launch(jit, (1, 32), host.len(), -1, &mut out)?;
    assert_eq!(out.to_vec()?, [-1, 2, 5]);
    jit.launch(&multiples, 1, 32, args!(host.len(), 4isize, &mut out))?;
    assert_eq!(out.to_vec()?, [4, 7, 10]);
    // They are the `u32` and `i32` that the kernel has, and find its code.
    let compiles = jit.cache_stats().compiles;
    jit.launch(&multiples, 1, 32, args!(largest, least, &mut out))?;
    assert_eq!(out.to_vec()?, [i32::MIN, i32::MAX, i32::MAX - 1]);
    jit.launch(&multiples, 1, 32, args!(1u32, 0i32, &mut out))?;
    assert_eq!(jit.cache_stats().compiles, compiles);
    let too_large = |error: kiln::Result<()>| match error {
        Err(Error::Launch(LaunchError::OutOfRange {
            argument, value, ..
        })) => (argument, value),
        other => panic!("{other:?}"),
    };
    let prepared = jit.compile(&multiples, args!(largest + 1, 0isize, &mut out))?;
    prepared.launch(1, 32, args!(2usize, 0isize, &mut out))?;
    assert_eq!(out.to_vec()?, [0, 2, 4]);
    for refused in [
        multiples.launch(jit, (1, 32), largest + 1, 0, &mut out),
        jit.launch(&multiples, 1, 32, args!(largest + 1, 0isize, &mut out)),
        prepared.launch(1, 32, args!(largest + 1, 0isize, &mut out)),
    ] {
        assert_eq!(too_large(refused), ("step".to_owned(), 1 << 32));
    }
    let refused = multiples.launch(jit, (1, 32), 0, least - 1, &mut out);
    assert_eq!(
        too_large(refused),
        ("from".to_owned(), i32::MIN as i128 - 1)
    );
    assert_eq!(out.to_vec()?, [0, 2, 4], "nothing was launched");
    Ok(())
}

fn facts_specialize(jit: &Jit) -> Outcome {
    let options = JitOptions::default().specialize_facts(true);
    let jit = Jit::with(jit.device().clone(), jit.hooks().clone(), options);
    let kernel = Kernel::build("strided", |k| {
        let (x, out) = (k.slice("x", Type::F32), k.slice_mut("out", Type::F32));
        let stride = k.param("stride", Type::U32);
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || out.at(i).set(x.at(i * stride)));
    })?;
    let x = jit.upload(&(0..1024).map(|i| i as f32).collect::<Vec<_>>())?;
    for (stride, compiles) in [(1u32, 1), (1, 1), (3, 2), (16, 3), (32, 3)] {
        let mut out = jit.zeros::<f32>(10)?;
        jit.launch(&kernel, 1, 32, args!(&x, &mut out, stride))?;
        let want: Vec<f32> = (0..10).map(|i| (i * stride) as f32).collect();
        assert_eq!(out.to_vec()?, want);
        assert_eq!(jit.cache_stats().compiles, compiles, "stride {stride}");
    }
    Ok(())
}

fn many_threads_compile_once(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("stampede", fill(9))?;
    let before = jit.cache_stats().compiles;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut out = jit.zeros::<u32>(10).expect("memory");
                jit.launch(&kernel, 1, 32, args!(&mut out))
                    .expect("a launch");
                assert_eq!(out.to_vec().expect("results"), [9; 10]);
            });
        }
    });
    assert_eq!(jit.cache_stats().compiles - before, 1);
    Ok(())
}

fn wrong_launches_are_errors(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("limits", |k| {
        k.launch_bounds(64, 1);
        fill(1)(k);
    })?;
    let mut out = jit.zeros::<u32>(10)?;
    let mut launch = |grid: Dim3, block: Dim3, shared: u32| {
        let config = LaunchConfig::new(grid, block).shared_bytes(shared);
        match jit.launch_with(&kernel, config, args!(&mut out)) {
            Err(Error::Launch(error)) => error,
            other => panic!("expected a launch error, got {other:?}"),
        }
    };
    assert!(matches!(
        launch(0.into(), 32.into(), 0),
        LaunchError::Zero { what: "grid", .. }
    ));
    assert!(matches!(
        launch(1.into(), 0.into(), 0),
        LaunchError::Zero { what: "block", .. }
    ));
    assert!(matches!(
        launch(1.into(), 2048.into(), 0),
        LaunchError::OverLimit { given: 2048, .. }
    ));
    assert!(matches!(
        launch((1, 70_000).into(), 32.into(), 0),
        LaunchError::OverLimit {
            what: "grid's y",
            ..
        }
    ));
    // Lengths of the host: what is no number of blocks is more than there can be, and never another number.
    for beyond in [Dim3::from(1usize << 32), (-1).into(), (1u64 << 63).into()] {
        assert!(matches!(
            launch(beyond, 32.into(), 0),
            LaunchError::OverLimit {
                what: "grid's x",
                ..
            }
        ));
    }
    let n: usize = 1 << 10;
    assert_eq!(Dim3::from((n, 2, 3u64)), Dim3::from([1024u32, 2, 3]));
    assert!(matches!(
        launch(1.into(), 32.into(), 1 << 30),
        LaunchError::OverLimit { .. }
    ));
    assert!(matches!(
        launch(1.into(), 65.into(), 0),
        LaunchError::OverLaunchBounds { .. }
    ));
    let elsewhere = Jit::on(Device::cpu());
    let mut foreign = elsewhere.zeros::<u32>(10)?;
    let error = jit.launch(&kernel, 1, 32, args!(&mut foreign));
    assert!(
        matches!(error, Err(Error::Launch(LaunchError::ForeignBuffer { .. }))),
        "{error:?}"
    );
    let read_only = jit.zeros::<u32>(10)?;
    let error = jit.launch(&kernel, 1, 32, args!(&read_only));
    assert!(matches!(error, Err(Error::Bind(_))), "{error:?}");
    let error = jit.launch(&kernel, 1, 32, args!());
    assert!(matches!(error, Err(Error::Bind(_))), "{error:?}");
    Ok(())
}

fn empty_buffers(jit: &Jit) -> Outcome {
    let saxpy = kernels::saxpy()?;
    let x = jit.upload::<f32>(&[])?;
    let mut y = jit.upload::<f32>(&[])?;
    jit.launch(&saxpy, 1, 32, args!(1.0f32, &x, &mut y))?;
    assert_eq!(y.to_vec()?, []);
    Ok(())
}

#[kernel]
fn count_up(x: &mut [u32], by: u32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += by;
    }
}

#[kernel(launch_bounds(96))]
fn count_up_in_small_blocks(x: &mut [u32], by: u32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += by;
    }
}

fn blocks_that_the_device_chooses(jit: &Jit) -> Outcome {
    for elements in [1, 31, 1000, 70_001] {
        let mut x = jit.zeros::<u32>(elements + 1)?;
        for _ in 0..2 {
            jit.launch_auto(&count_up, elements + 1, args!(&mut x, 2u32))?;
        }
        jit.launch_auto(&count_up_in_small_blocks, elements, args!(&mut x, 3u32))?;
        let x = x.to_vec()?;
        assert!(x[..elements].iter().all(|n| *n == 7), "{elements}");
    }
    let mut x = jit.zeros::<u32>(1)?;
    let ready = jit.compile(&count_up_in_small_blocks, args!(&mut x, 1u32))?;
    let block = ready.best_block()?;
    assert!((1..=96).contains(&block), "{block}");
    Ok(())
}

fn blocks_that_are_there_at_once(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(64)?;
    let ready = jit.compile(&count_up, args!(&mut x, 1u32))?;
    let occupancy = ready.occupancy(32, 0)?;
    assert!(occupancy.all_blocks() > 0, "{occupancy:?}");
    let most = occupancy.all_blocks();
    ready.launch_with(
        LaunchConfig::new(most, 32).cooperative(),
        args!(&mut x, 1u32),
    )?;
    assert_eq!(x.to_vec()?[..32], [1; 32]);
    let more = LaunchConfig::new(most + 1, 32).cooperative();
    match ready.launch_with(more, args!(&mut x, 1u32)) {
        Err(Error::Launch(LaunchError::NotAllAtOnce { fitting, .. })) => assert_eq!(fitting, most),
        other => panic!("expected a launch error, got {other:?}"),
    }
    Ok(())
}

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct Padded {
    small: u8,
    large: u32,
    last: u16,
}

#[derive(KernelView)]
struct Columns<'a> {
    left: &'a [u16],
    scale: f32,
    right: &'a mut [i32],
}

#[kernel]
fn of_every_size(
    a: u8,
    b: f64,
    flag: bool,
    c: [f32; 3],
    d: u16,
    from: &[u8],
    e: Padded,
    columns: Columns<'_>,
    f: i64,
    n: usize,
    to: &mut [f64],
) {
    to[0] = a as f64 + b + d as f64;
    to[1] = if flag { 1.0 } else { -1.0 };
    to[2] = (c[0] + 10.0 * c[1] + 100.0 * c[2]) as f64;
    to[3] = from[from.len() - 1] as f64;
    to[4] = e.small as f64 + e.large as f64 + e.last as f64;
    to[5] = columns.left[1] as f64 * columns.scale as f64;
    to[6] = (f + n as i64) as f64;
    columns.right[0] += columns.left[0] as i32;
}

/// Again and again, since the first launches are made of lists of arguments.
fn typed_launches_pass_what_they_are_given(jit: &Jit) -> Outcome {
    let from = jit.upload(&[1u8, 2, 250])?;
    let left = jit.upload(&[500u16, 600])?;
    let (mut right, mut to) = (jit.upload(&[-1i32])?, jit.zeros::<f64>(7)?);
    for turn in 0..5u8 {
        let (small, odd) = (f32::from(turn), turn % 2 == 1);
        let padded = Padded {
            small: turn,
            large: 1 << 20,
            last: 7,
        };
        let columns = ColumnsArgs {
            left: &left,
            scale: 0.5 + small,
            right: &mut right,
        };
        let (c, f, n) = ([small, 1.0, 2.0], i64::from(turn) - (1 << 40), 12);
        let config = (1, 1);
        of_every_size.launch(
            jit, config, turn, 0.25, odd, c, 300, &from, padded, columns, f, n, &mut to,
        )?;
        let of_turn = f64::from(turn);
        let expected = [
            of_turn + 300.25,
            if odd { 1.0 } else { -1.0 },
            of_turn + 210.0,
            250.0,
            of_turn + 1_048_583.0,
            600.0 * (0.5 + of_turn),
            of_turn - (1i64 << 40) as f64 + 12.0,
        ];
        assert_eq!(to.to_vec()?, expected, "turn {turn}");
    }
    assert_eq!(right.to_vec()?, [-1 + 5 * 500]);
    Ok(())
}

#[kernel]
fn count_to(n: usize, x: &mut [u32]) {
    x[0] += n as u32;
}

/// Of a kernel whose launches have become usual.
fn typed_launches_tell_what_is_wrong(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(1)?;
    for _ in 0..3 {
        count_to.launch(jit, (1, 1), 5, &mut x)?;
    }
    let refused = count_to.launch(jit, (1, 1), 1 << 32, &mut x);
    let refused = refused.expect_err("it has 33 bits");
    assert!(matches!(
        refused,
        Error::Launch(LaunchError::OutOfRange { .. })
    ));
    let refused = count_to
        .launch(jit, (0, 1), 5, &mut x)
        .expect_err("no blocks");
    assert!(matches!(refused, Error::Launch(LaunchError::Zero { .. })));
    let refused = count_to.launch(jit, (1, 1 << 20), 5, &mut x);
    let refused = refused.expect_err("too many threads");
    assert!(matches!(
        refused,
        Error::Launch(LaunchError::OverLimit { .. })
    ));
    let other = Jit::on(Device::cpu());
    let mut foreign = other.zeros::<u32>(1)?;
    let refused = count_to.launch(jit, (1, 1), 5, &mut foreign);
    let refused = refused.expect_err("it is another device's");
    assert!(matches!(
        refused,
        Error::Launch(LaunchError::ForeignBuffer { .. })
    ));
    assert_eq!((x.to_vec()?, foreign.to_vec()?), (vec![15], vec![0]));
    let stream = jit.stream()?;
    count_to.launch(&stream, (1, 1), 1, &mut x)?;
    assert_eq!(x.to_vec()?, [16]);
    Ok(())
}
