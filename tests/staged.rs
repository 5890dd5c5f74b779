//! Kernels that stage slices: what is left out of them for the numbers of a launch, and rows in shared memory.

use kiln::core::job::CompileOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::directives::{Known, Program, Schedule, marks};
use kiln::prelude::*;

fn smooth_program() -> kiln::Result<Program> {
    #[device_fn]
    fn smooth(x: &[f32], y: &mut [f32], n: usize) {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 1..n - 1 {
            y[i] = x[i - 1] + x[i] + x[i + 1];
        }
    }
    Program::of(&DeviceFn::of::<smooth>()?)
}

/// The text of the kernel for slices of a length and a number of elements.
fn text(program: &Program, schedule: &Schedule, len: u64, n: i128) -> kiln::Result<String> {
    let known = [Known::Length(len), Known::Length(len), Known::Number(n)];
    Ok(program.apply_for(schedule, &known)?.module().to_string())
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

/// `if` for who asks whether the launch is the one, and for parts that are not there for all.
#[test]
fn full_shares_have_no_guards() -> kiln::Result<()> {
    let program = smooth_program()?;
    let schedule = program.schedule(&[4], &[32]);
    let full = text(&program, &schedule, 130, 130)?;
    // The second round of copies, and the launch.
    assert_eq!(count(&full, " if "), 2, "{full}");
    let rest = text(&program, &schedule, 129, 129)?;
    // And an iteration, the end of the slice, and whether the block has iterations at all, for which there is no loop: the
    // rounds of copies alone are one.
    assert_eq!(count(&rest, " if "), 5, "{rest}");
    assert_eq!(count(&rest, "for %"), 1, "{rest}");
    // Nobody used shared memory before, unless a block has two batches.
    let twice = text(&program, &schedule, 300, 300)?;
    let barriers = [full, rest, twice].map(|text| count(&text, "barrier"));
    assert_eq!(barriers, [1, 1, 2]);
    Ok(())
}

#[test]
fn proved_indices_are_not_checked() -> kiln::Result<()> {
    let program = smooth_program()?;
    let schedule = program.schedule(&[4], &[32]);
    let checked = |text: &str| count(text, "slice_index ") - count(text, "slice_index unchecked ");
    for n in [130, 129, 3] {
        let proved = text(&program, &schedule, n as u64, n)?;
        assert_eq!(checked(&proved), 0, "{proved}");
    }
    // `x[i + 1]` is there up to the last but one.
    let one_less = text(&program, &schedule, 129, 130)?;
    assert_eq!(checked(&one_less), 1, "{one_less}");
    Ok(())
}

#[test]
fn rows_are_padded_where_a_warp_reads_a_column() -> kiln::Result<()> {
    #[device_fn]
    fn transpose(x: &[f32], y: &mut [f32], n: usize) {
        marks::partition(1, 1);
        for i in 0..n {
            marks::partition(1, 1);
            marks::shared(x.len() as u32);
            for j in 0..n {
                y[i * n + j] = x[j * n + i];
            }
        }
    }
    #[device_fn]
    fn copy(x: &[f32], y: &mut [f32], n: usize) {
        marks::partition(1, 1);
        for i in 0..n {
            marks::partition(1, 1);
            marks::shared(x.len() as u32);
            for j in 0..n {
                y[i * n + j] = x[i * n + j];
            }
        }
    }
    let known = [Known::Length(4096), Known::Length(4096), Known::Number(64)];
    let section = |program: &Program| -> kiln::Result<_> {
        let schedule = program.schedule(&[2, 2], &[32, 32]);
        Ok(program.sections(&schedule, &known)?.remove(0))
    };
    let program = Program::of(&DeviceFn::of::<transpose>()?)?;
    let schedule = program.schedule(&[2, 2], &[32, 32]);
    let mut unpadded: Schedule = schedule.to_string().replace("(0)", "(0) nopad").parse()?;
    assert_eq!(
        unpadded.to_string().replace(" nopad", ""),
        schedule.to_string()
    );
    assert_eq!(program.sections(&unpadded, &known)?[0].padding(), 0);
    unpadded.loops[1].unpadded = false;
    assert_eq!(unpadded, schedule);
    let column = section(&program)?;
    assert_eq!(
        column.to_string(),
        "`x` in loop 1: 32 x 32 elements, strides 64 x 1, rows padded by 1"
    );
    assert_eq!((column.padding(), column.bytes()), (1, 4 * 32 * 33));
    let row = section(&Program::of(&DeviceFn::of::<copy>()?)?)?;
    assert_eq!((row.padding(), row.bytes()), (0, 4 * 32 * 32));
    Ok(())
}

/// Lanes beyond the end of a loop read zeros where the slice has no elements, not what was there.
#[test]
fn elements_beyond_the_end_are_zero() -> kiln::Result<()> {
    #[device_fn]
    fn copy(x: &[u32], y: &mut [u32], n: usize) {
        marks::partition(0, 1);
        marks::jam(2);
        for i in 0..n {
            let mut sum = 0;
            marks::shared(x.len() as u32);
            for j in 0..4usize {
                sum += x[i + j];
            }
            y[i] = sum;
        }
    }
    let program = Program::of(&DeviceFn::of::<copy>()?)?;
    let schedule = program.schedule(&[1], &[8]);
    let stores = |n: u64| -> kiln::Result<usize> {
        let known = [
            Known::Length(n + 3),
            Known::Length(n),
            Known::Number(n.into()),
        ];
        let text = program.apply_for(&schedule, &known)?.module().to_string();
        Ok(count(&text, "store "))
    };
    // An element that is copied, a zero in its place, and two iterations side by side; without remainder no zero.
    assert_eq!((stores(13)?, stores(16)?), (4, 3));
    Ok(())
}

#[test]
fn every_program_with_directives_is_a_case_of_the_suite() {
    let programs: Vec<&str> = kiln_suite::DIRECTED
        .iter()
        .map(|program| program.benchmark)
        .collect();
    assert_eq!(suite::directives_programs::NAMES, programs);
}

/// Checks of what is for the arguments of a launch compare with numbers, so that ranges of variables prove what a search in a table reads
/// and the element that it finds, which no loop's counter is.
#[test]
fn searches_in_tables_are_not_checked() -> kiln::Result<()> {
    #[device_fn]
    fn find(x: &[f32], edges: &[f32], counts: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::whole(edges.len() as u32);
        marks::reduction(counts.len() as u32);
        for i in 0..n {
            let (mut low, mut high) = (0, edges.len());
            while low < high {
                let middle = (low + high) / 2;
                if x[i] >= edges[middle] {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            counts[low] += 1;
        }
    }
    let program = Program::of(&DeviceFn::of::<find>()?)?;
    let schedule = program.schedule(&[2], &[32]);
    let device = Jit::on(Device::cpu());
    let checks = |counted: u64| -> kiln::Result<usize> {
        let known = [100, 20, counted].map(Known::Length);
        let known: Vec<Known> = known.into_iter().chain([Known::Number(100)]).collect();
        let scheduled = program.apply_for(&schedule, &known)?;
        let x = device.zeros::<f32>(100)?;
        let edges = device.zeros::<f32>(20)?;
        let mut counts = device.zeros::<u32>(counted as usize)?;
        let mut calls = |compile: CompileOptions| -> kiln::Result<usize> {
            let target = Target::Ptx(PtxTarget::for_sm(90));
            let builder = Jit::builder().device(Device::cpu()).compile(compile);
            let jit = builder.target(target).build()?;
            let args = args!(&x, &edges, &mut counts, 100u32);
            let inspection = jit.inspect(scheduled.kernel(), args)?;
            Ok(count(inspection.ptx()?, "call.uni kiln_fault"))
        };
        // SAFETY: nothing is launched.
        let unchecked = unsafe { CompileOptions::default().unchecked() };
        Ok(calls(CompileOptions::default())? - calls(unchecked)?)
    };
    assert_eq!(checks(21)?, 0);
    // What is counted last has no element.
    assert_eq!(checks(20)?, 1);
    Ok(())
}

/// A kernel with the numbers of a launch in it ends others, also where the slice that it reduces has no room in shared memory.
#[test]
fn reductions_are_for_their_arguments() -> kiln::Result<()> {
    #[device_fn]
    fn count(x: &[u32], counts: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::reduction(counts.len() as u32);
        for i in 0..n {
            counts[x[i] as usize] += 1;
        }
    }
    let program = Program::of(&DeviceFn::of::<count>()?)?;
    let schedule = program.schedule(&[2], &[32]);
    let jit = Jit::on(Device::cpu());
    for bins in [10, 20_000] {
        let known = [Known::Length(100), Known::Length(bins), Known::Number(100)];
        let scheduled = program.apply_for(&schedule, &known)?;
        let x = jit.upload(&[3u32; 100])?;
        let mut counts = jit.zeros::<u32>(bins as usize)?;
        let mut launch = |n: u32| {
            let args = args!(&x, &mut counts, n);
            jit.launch(
                scheduled.kernel(),
                scheduled.grid(),
                scheduled.block(),
                args,
            )?;
            jit.synchronize()
        };
        launch(100)?;
        launch(50).expect_err("it is for 100");
        assert_eq!(counts.to_vec()?[3], 100, "{bins}");
    }
    Ok(())
}
