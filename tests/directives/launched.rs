//! What a region becomes: the kernel's name, where its threads are, what it reads by, and that its loops' text is the program's.

use expect_test::expect;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

#[kiln::offload]
fn turned(x: &[f32], y: &mut [f32], n: usize) {
    #[kernel(tblock(2, 2), thread(4, 32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            for j in 0..n {
                y[i * n + j] = 2.0 * x[i * n + j];
            }
        }
    }
}

/// The kernel is called like the function, its last dimension of threads is the hardware's x, and a slice that the region only reads
/// is read by the path for memory that does not change.
#[test]
fn a_region_is_a_kernel() -> kiln::Result<()> {
    let n = 64;
    let report = turned.plan(&vec![0.5; n * n], &mut vec![0.0; n * n], n)?;
    let kernel = &report.kernels[0];
    assert_eq!(kernel.block(), (32, 4).into());
    let builder = Jit::builder().device(Device::cpu());
    let jit = builder.target(Target::Ptx(PtxTarget::for_sm(90))).build()?;
    let (x, mut y) = (jit.zeros::<f32>(n * n)?, jit.zeros::<f32>(n * n)?);
    let args = args!(&x, &mut y, n as u32);
    let inspected = jit.inspect(kernel.kernel(), args)?;
    let ptx = inspected.ptx()?;
    assert!(ptx.contains(".entry turned"), "{ptx}");
    // What else is read is where a fault is noted.
    let count = |what: &str| ptx.matches(what).count();
    assert_eq!(
        (count("ld.global.nc.b32"), count("st.global.b32")),
        (1, 1),
        "{ptx}"
    );
    Ok(())
}

/// A program's function without its directives, and without the block that is the region.
fn without_directives(source: &str) -> String {
    let function = source.split("#[kiln::offload]\n").nth(1);
    let function = function.expect("the program has a function with directives");
    let lines = function.lines();
    let kept = lines.filter(|line| !line.trim_start().starts_with("#["));
    kept.collect::<Vec<_>>().join("\n")
}

/// Programs that were changed by hand for hiCUDA (iterations side by side, counts of a block's own, terms computed once) are plain loops
/// here: all of that is said in directives.
#[test]
fn loops_are_those_of_the_sequential_program() {
    let text = |name: &str| {
        let mut programs = kiln_suite::DIRECTED.iter();
        let program = programs.find(|program| program.benchmark == name);
        without_directives(program.expect("it is one of the suite's").source)
    };
    expect![[r#"
        fn potential(charges: &[Charge], to: &mut [f32], side: usize, spacing: f32) {
            {
                for row in 0..side {
                    for column in 0..side {
                        let (x, y) = (spacing * column as f32, spacing * row as f32);
                        let mut sum = 0.0;
                        for i in 0..charges.len() {
                            let charge = charges[i];
                            let (dx, dy) = (x - charge.x, y - charge.y);
                            let rest = dy * dy + charge.height;
                            sum += charge.charge * (1.0 / (dx * dx + rest).sqrt());
                        }
                        to[row * side + column] += sum;
                    }
                }
            }
        }"#]]
    .assert_eq(&text("coulomb"));
    expect![[r#"
        fn count_pairs(points: &[Point], edges: &[f32], counts: &mut [u32]) {
            {
                for i in 0..points.len() {
                    let own = points[i];
                    for j in 0..i {
                        let other = points[j];
                        let cosine = own.x * other.x + own.y * other.y + own.z * other.z;
                        let (mut low, mut high) = (0, edges.len());
                        while low < high {
                            let middle = (low + high) / 2;
                            if cosine >= edges[middle] {
                                high = middle;
                            } else {
                                low = middle + 1;
                            }
                        }
                        counts[low] += 1;
                    }
                }
            }
        }"#]]
    .assert_eq(&text("tpacf"));
}
