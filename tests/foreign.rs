//! Types of other crates in kernels: each function has in a kernel the bits that it has on the host, on the compiled
//! CPU and in the interpreter; and operators of a struct of one's own.

use std::ops::{Add, AddAssign, BitXor, Mul, Neg, Not, ShlAssign};

use glam::{DMat3, DMat4, DVec2, DVec3, DVec4, Mat2, Mat3, Mat4, Vec2, Vec3, Vec4};
use kiln::core::prelude::*;
use kiln::prelude::*;
use nalgebra::{SMatrix, SVector};
use num_complex::Complex;

/// The CPU and the interpreter, which round products before sums as the host does.
fn machines() -> [Jit; 2] {
    let interpreted = JitOptions::default().target(Target::Interpreter);
    [JitOptions::default(), interpreted].map(|mut options| {
        options.compile.contract = false;
        Jit::with(Device::cpu(), kiln::hooks::standard(), options)
    })
}

/// Numbers of all sizes and signs, zeros among them.
fn number(i: usize) -> f64 {
    let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    match bits % 13 {
        0 => 0.0,
        1 => -0.0,
        2 => 1e18,
        _ => (bits % 2_000_003) as f64 / 4096.0 - 200.0,
    }
}

/// Compares what a function makes of 8 numbers and 8 more on the host and in a kernel, for 96 of both.
macro_rules! same {
    ($($scalar:ident $name:ident: |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[test]
        fn $name() -> kiln::Result<()> {
            #[device_fn]
            fn f($a: [$scalar; 8], $b: [$scalar; 8]) -> [$scalar; 16] {
                let mut out = [0.0; 16];
                let all = $body;
                for i in 0..all.len() {
                    out[i] = all[i];
                }
                out
            }

            #[kernel]
            fn each(a: &[[$scalar; 8]], b: &[[$scalar; 8]], out: &mut [[$scalar; 16]]) {
                let i = global_id().x;
                if i < out.len() {
                    out[i] = f(a[i], b[i]);
                }
            }

            let numbers = |from: usize| -> Vec<[$scalar; 8]> {
                (0..96).map(|i| std::array::from_fn(|j| number(from + 8 * i + j) as $scalar)).collect()
            };
            let (a, b) = (numbers(0), numbers(5000));
            // Any bits are a NaN.
            let bits = |x: &[[$scalar; 16]]| -> Vec<Option<_>> {
                x.iter().flatten().map(|x| (!x.is_nan()).then(|| x.to_bits())).collect()
            };
            let expected: Vec<_> = a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect();
            for jit in machines() {
                let mut out = jit.zeros(a.len())?;
                let (a, b) = (jit.upload(&a)?, jit.upload(&b)?);
                each.launch(&jit, (3, 32), &a, &b, &mut out)?;
                assert_eq!(bits(&out.to_vec()?), bits(&expected));
            }
            Ok(())
        }
    )*};
}

#[device_fn]
fn two(z: Complex<f32>, w: Complex<f32>) -> [f32; 4] {
    [z.re, z.im, w.re, w.im]
}

#[device_fn]
fn four(v: Vec4) -> [f32; 4] {
    [v.x, v.y, v.z, v.w]
}

same! {
    f32 complex_sums: |a, b| {
        let (z, w) = (Complex::new(a[0], a[1]), Complex::new(b[0], b[1]));
        let (mut s, mut t) = (z + w, w);
        s -= z * b[2];
        t += a[2] - w;
        two(s + a[3] + 2.0 * z, -t - w)
    };
    f32 complex_products: |a, b| {
        let (z, w) = (Complex::new(a[0], a[1]), Complex::new(b[0], b[1]));
        let mut p = z;
        p *= w;
        let mut q = w;
        q *= a[2];
        let (r, s) = (p * z, a[3] * q);
        [p.re, p.im, r.re, r.im, s.re, s.im]
    };
    f64 complex_quotients: |a, b| {
        let (z, w) = (Complex::new(a[0], a[1]), Complex::new(b[0], b[1]));
        let mut p = z;
        p /= w;
        let mut q = w;
        q /= a[2];
        let (r, s, t) = (z / w, a[3] / w, w.inv());
        [p.re, p.im, q.re, q.im, r.re, r.im, s.re, s.im, t.re, t.im]
    };
    f64 complex_functions: |a, b| {
        let z = Complex::new(a[0], a[1]);
        let (c, s, u) = (z.conj(), z.scale(b[0]), z.unscale(b[1]));
        let i = Complex::<f64>::i() * z;
        [c.re, c.im, s.re, s.im, u.re, u.im, z.norm_sqr(), i.re, i.im]
    };
    f32 vectors_of_two: |a, b| {
        let (v, w) = (Vec2::new(a[0], a[1]), Vec2::new(b[0], b[1]));
        let (s, n) = (v + w * a[2], (v - w).normalize());
        [s.x, s.y, n.x, n.y, v.dot(w), v.length(), v.perp_dot(w)]
    };
    f32 vectors_of_three: |a, b| {
        let (v, w) = (Vec3::new(a[0], a[1], a[2]), Vec3::new(b[0], b[1], b[2]));
        let (c, n, l) = (v.cross(w), v.normalize(), v.lerp(w, 0.3));
        [c.x, c.y, c.z, n.x, n.y, n.z, l.x, l.y, l.z, v.dot(w), v.distance(w), w.length_recip()]
    };
    f32 vectors_of_four: |a, b| {
        let (v, w) = (Vec4::new(a[0], a[1], a[2], a[3]), Vec4::new(b[0], b[1], b[2], b[3]));
        let mut s = v;
        s += w;
        s *= 0.5;
        let (n, q) = (four(w.normalize()), four(-s / w + Vec4::splat(a[4])));
        [n[0], n[1], n[2], n[3], q[0], q[1], q[2], q[3], v.dot(w), v.length(), v.distance_squared(w)]
    };
    f32 operators_that_assign: |a, b| {
        let mut v = Vec3::new(a[0], a[1], a[2]);
        let w = Vec3::new(b[0], b[1], b[2]);
        v += w;
        v -= 0.25;
        v *= w;
        v /= Vec3::new(3.0, 5.0, 7.0);
        let u = 1.0 / v - 2.0 * w;
        [v.x, v.y, v.z, u.x, u.y, u.z]
    };
    f64 wide_vectors: |a, b| {
        let v = DVec4::new(a[0], a[1], a[2], a[3]);
        let w = DVec4::new(b[0], b[1], b[2], b[3]);
        let (n, c) = (v.normalize(), DVec3::new(a[0], a[1], a[2]).cross(DVec3::splat(b[0])));
        let p = DVec2::new(a[5], a[6]).normalize();
        [n.x, n.y, n.z, n.w, c.x, c.y, c.z, p.x, p.y, v.dot(w), w.length()]
    };
    f32 matrices_of_two: |a, b| {
        let m = Mat2::from_cols(Vec2::new(a[0], a[1]), Vec2::new(a[2], a[3]));
        let n = Mat2::from_cols(Vec2::new(b[0], b[1]), Vec2::new(b[2], b[3]));
        let (v, p, t) = (m * Vec2::new(a[4], a[5]), m * n + n, (m - n).transpose());
        [v.x, v.y, p.x_axis.x, p.x_axis.y, p.y_axis.x, p.y_axis.y, t.x_axis.x, t.x_axis.y, t.y_axis.x]
    };
    f32 matrices_of_three: |a, b| {
        let (v, w) = (Vec3::new(a[0], a[1], a[2]), Vec3::new(b[0], b[1], b[2]));
        let m = Mat3::from_cols(v, w, v.cross(w));
        let (u, p) = (m * w, m * m.transpose() - m);
        [u.x, u.y, u.z, p.x_axis.x, p.x_axis.y, p.y_axis.z, p.z_axis.x, p.z_axis.z]
    };
    f32 matrices_of_four: |a, b| {
        let (v, w) = (Vec4::new(a[0], a[1], a[2], a[3]), Vec4::new(b[0], b[1], b[2], b[3]));
        let m = Mat4::from_cols(v, w, v * w, v - w);
        let (u, p) = (four(m * w), four((m * m.transpose() + m).z_axis));
        [u[0], u[1], u[2], u[3], p[0], p[1], p[2], p[3]]
    };
    f64 wide_matrices: |a, b| {
        let v = DVec4::new(a[0], a[1], a[2], a[3]);
        let w = DVec4::new(b[0], b[1], b[2], b[3]);
        let u = DMat4::from_cols(v, w, v * w, v - w) * w;
        let m = DMat3::from_cols(DVec3::new(a[0], a[1], a[2]), DVec3::X, DVec3::new(b[0], b[1], b[2]));
        let t = (m * m).transpose();
        [u.x, u.y, u.z, u.w, t.x_axis.x, t.x_axis.z, t.z_axis.y]
    };
}

/// Buffers and scalars of complex numbers; a generic function knows their parts, as num-complex's operators are not
/// those of every [`Float`].
#[test]
fn buffers_of_complex_numbers() -> kiln::Result<()> {
    #[device_fn]
    fn next<T: Float>(z: Complex<T>) -> Complex<T> {
        Complex {
            re: z.re + T::ONE,
            im: z.im,
        }
    }

    #[kernel]
    fn rotate(z: &mut [Complex<f64>], by: Complex<f64>) {
        let i = global_id().x;
        if i < z.len() {
            z[i] = next(z[i] * by);
        }
    }

    let z: Vec<Complex<f64>> = (0..70)
        .map(|i| Complex::new(number(i), number(i + 1)))
        .collect();
    let by = Complex::new(0.0, 1.0);
    for jit in machines() {
        let mut buffer = jit.upload(&z)?;
        rotate.launch(&jit, (3, 32), &mut buffer, by)?;
        let expected: Vec<_> = z.iter().map(|z| z * by + Complex::new(1.0, 0.0)).collect();
        assert_eq!(buffer.to_vec()?, expected);
        jit.launch(&rotate, 3, 32, args!(&mut buffer, Complex::new(0.0, -1.0)))?;
    }
    Ok(())
}

#[kernel]
fn products(m: &[SMatrix<f32, 3, 2>], v: &[SVector<f32, 2>], out: &mut [SVector<f32, 3>]) {
    let i = global_id().x;
    if i < out.len() {
        for row in 0..3 {
            out[i][row] = 0.0;
            for column in 0..2 {
                out[i][row] += m[i][(row, column)] * v[i][column];
            }
        }
    }
}

#[kernel]
fn transpose(m: SMatrix<f64, 2, 3>, out: &mut [SMatrix<f64, 3, 2>]) {
    let mut t = out[0];
    for row in 0..2 {
        for column in 0..3 {
            t[(column, row)] = m[(row, column)];
        }
    }
    out[0] = t;
}

/// Elements of nalgebra's matrices and vectors.
#[test]
fn matrices_of_any_size() -> kiln::Result<()> {
    let m: Vec<SMatrix<f32, 3, 2>> = (0..40)
        .map(|i| SMatrix::from_fn(|r, c| number(6 * i + 2 * r + c) as f32))
        .collect();
    let v: Vec<SVector<f32, 2>> = (0..40)
        .map(|i| SVector::from_fn(|r, _| number(900 + 2 * i + r) as f32))
        .collect();
    let wide = SMatrix::<f64, 2, 3>::new(1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    for jit in machines() {
        let mut out = jit.upload(&vec![SVector::<f32, 3>::zeros(); 40])?;
        let (m_, v_) = (jit.upload(&m)?, jit.upload(&v)?);
        products.launch(&jit, (2, 32), &m_, &v_, &mut out)?;
        let expected: Vec<_> = m.iter().zip(&v).map(|(m, v)| m * v).collect();
        assert_eq!(out.to_vec()?, expected);
        let mut out = jit.upload(&[SMatrix::<f64, 3, 2>::zeros()])?;
        transpose.launch(&jit, (1, 1), wide, &mut out)?;
        assert_eq!(out.to_vec()?, [wide.transpose()]);
    }
    Ok(())
}

#[derive(Copy, Clone, bytemuck::Pod, bytemuck::Zeroable, KernelType)]
#[repr(C)]
struct Particle {
    at: kiln::core::value::F32x4,
    charge: f32,
    number: u32,
    pair: [u16; 4],
}

/// Structs that are `Pod` go to the device and back with bytes that came from elsewhere.
#[test]
fn plain_structs_from_bytes() -> kiln::Result<()> {
    #[kernel]
    fn count(particles: &mut [Particle]) {
        let i = global_id().x;
        if i < particles.len() {
            particles[i].number += 1;
        }
    }

    let words: Vec<u32> = (0..32).collect();
    let particles: Vec<Particle> = bytemuck::pod_collect_to_vec(&words);
    for jit in machines() {
        let mut buffer = jit.upload(&particles)?;
        count.launch(&jit, (1, 32), &mut buffer)?;
        let back: Vec<u32> = bytemuck::pod_collect_to_vec(&buffer.to_vec()?);
        let expected = words.iter().map(|&word| word + u32::from(word % 8 == 5));
        assert!(back.iter().copied().eq(expected), "{back:?}");
    }
    Ok(())
}

/// Arrays go as their indices go, whatever way they lie.
#[test]
fn arrays_and_parts_of_them() -> kiln::Result<()> {
    use ndarray::{Array1, Array2, Array3, Axis, ShapeBuilder as _, Slice};

    let cube = Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (i * 100 + j * 10 + k) as u32);
    for jit in machines() {
        let device = jit.device();
        let whole = Buffer::from_array(device, &cube)?;
        assert_eq!(whole.to_array((3, 4, 5))?, cube);
        let part = cube.slice_axis(Axis(1), Slice::from(1..).step_by(2));
        let part = part.slice_axis(Axis(2), Slice::from(..).step_by(-1));
        assert_eq!(
            Buffer::from_array(device, &part)?.to_array(part.raw_dim())?,
            part
        );
        let turned = cube.view().permuted_axes((2, 0, 1));
        assert_eq!(
            Buffer::from_array(device, &turned)?.to_array((5, 3, 4))?,
            turned
        );
        let column: Array1<u32> = cube.index_axis(Axis(0), 2).column(3).to_owned();
        assert_eq!(
            Buffer::from_array(device, &column)?.to_vec()?,
            [203, 213, 223, 233]
        );
        let fortran: Array2<u32> = whole.to_array((20, 3).f())?;
        assert_eq!(fortran.t().as_slice(), cube.as_slice());
        let none = Array2::<f32>::zeros((0, 7));
        assert_eq!(Buffer::from_array(device, &none)?.to_array((0, 7))?, none);
        let error = whole
            .to_array((7, 9))
            .expect_err("it has 60 values")
            .to_string();
        assert_eq!(
            error,
            "a buffer of 60 values is no array of shape [7, 9]; give a shape of as many elements"
        );
        assert!(whole.to_array((usize::MAX, 3)).is_err());
    }
    Ok(())
}

/// Reports as JSON.
#[test]
fn reports_are_serialized() -> kiln::Result<()> {
    use kiln::core::front::AsKernel as _;

    #[kernel]
    fn race(x: &mut [u32]) {
        x[0] = global_id().x as u32;
    }

    let options = JitOptions::default().checks(Checks::none().races());
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let mut x = jit.zeros(4)?;
    let launched = race
        .launch(&jit, (1, 2), &mut x)
        .and_then(|()| jit.synchronize());
    let error = launched.expect_err("there is a race");
    let finding = error.finding().expect("it was looked for");
    let finding = serde_json::to_value(finding).expect("it is data");
    assert_eq!(finding["Race"]["kernel"], "race");
    assert_eq!(finding["Race"]["place"]["space"], "Global");
    assert_eq!(finding["Race"]["second"]["thread"]["x"], 1);
    let stats = serde_json::to_value(jit.cache_stats()).expect("it is data");
    assert_eq!(stats["misses"], 1);
    let report =
        serde_json::to_value(jit.explain_recompile(race.as_kernel()?)).expect("it is data");
    assert_eq!(report["changes"], serde_json::json!([]));
    let inspection = jit.inspect(&race, args!(&mut x))?;
    let times: Vec<_> = inspection.timings().collect();
    let times = serde_json::to_value(times).expect("it is data");
    assert!(times[0][1]["nanos"].is_u64(), "{times}");
    Ok(())
}

/// A struct of one's own with operators, also ones of bits, on parts of others.
#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Bits {
    low: u32,
    high: u32,
}

#[device_fn]
impl BitXor for Bits {
    type Output = Bits;
    fn bitxor(self, other: Self) -> Self::Output {
        Bits {
            low: self.low ^ other.low,
            high: self.high ^ other.high,
        }
    }
}

#[device_fn]
impl Not for Bits {
    type Output = Self;
    fn not(self) -> Self {
        Bits {
            low: !self.low,
            high: !self.high,
        }
    }
}

#[device_fn]
impl ShlAssign<u32> for Bits {
    fn shl_assign(&mut self, by: u32) {
        self.high = (self.high << by) | (self.low >> (32 - by));
        self.low <<= by;
    }
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Pair<T> {
    a: T,
    b: T,
}

#[device_fn]
impl<T: Num> Add for Pair<T> {
    type Output = Pair<T>;
    fn add(self, other: Self) -> Self {
        Pair {
            a: self.a + other.a,
            b: self.b + other.b,
        }
    }
}

#[device_fn]
impl<T: Num> Mul<T> for Pair<T> {
    type Output = Self;
    fn mul(self, by: T) -> Self {
        Pair {
            a: self.a * by,
            b: self.b * by,
        }
    }
}

#[device_fn]
impl<T: Num> AddAssign for Pair<T> {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[device_fn]
impl Neg for Pair<i32> {
    type Output = Self;
    fn neg(self) -> Self {
        self * -1
    }
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct State {
    bits: Bits,
    pair: Pair<i32>,
}

#[device_fn]
fn step(mut state: State, n: u32) -> State {
    let mut sum = state.pair;
    for i in 0..n {
        // The right side changes what the left side was.
        sum = sum + {
            sum += Pair { a: i as i32, b: 2 };
            sum
        };
        state.bits <<= 1 + i % 3;
        state.bits = !(state.bits ^ Bits { low: i, high: n });
    }
    state.pair += -sum * 3;
    state
}

#[kernel]
fn steps(states: &mut [State]) {
    let i = global_id().x;
    if i < states.len() {
        states[i] = step(states[i], i as u32);
        states[i].pair += Pair { a: 1, b: 1 };
    }
}

const SIDE: usize = 3;

/// Parentheses that operands need are no warning, be the operands numbers or not.
#[deny(warnings)]
#[kernel]
fn parentheses(x: &mut [State]) {
    let (row, tx) = (global_id().y, thread_idx().x);
    let at = (SIDE + 1) * row + tx + 1;
    let half = (tx + SIDE) / (SIDE - 1) + -(SIDE as i32) as usize;
    let sum = (x[at].pair + x[half].pair) * (SIDE as i32 + 1);
    x[at].pair += -(sum + sum);
    x[at].pair.a += (SIDE as i32 - 1) * (sum.a + 1);
}

#[test]
fn what_is_in_parentheses_is_understood() {
    assert!(parentheses.get().is_ok());
}

#[test]
fn operators_of_a_struct() -> kiln::Result<()> {
    let state = |i: u32| State {
        bits: Bits {
            low: i.wrapping_mul(0x9e37_79b9),
            high: !i,
        },
        pair: Pair { a: i as i32, b: -7 },
    };
    let states: Vec<State> = (0..20).map(state).collect();
    let expected: Vec<State> = (0..)
        .zip(&states)
        .map(|(i, &state)| {
            let mut state = step(state, i);
            state.pair += Pair { a: 1, b: 1 };
            state
        })
        .collect();
    for jit in machines() {
        let mut buffer = jit.upload(&states)?;
        steps.launch(&jit, (1, 32), &mut buffer)?;
        assert_eq!(buffer.to_vec()?, expected);
    }
    Ok(())
}

/// Arrays of ndarray on a device and back, and what has other dimensions.
#[test]
fn arrays_on_devices_and_back() -> kiln::Result<()> {
    use ndarray::{Array1, Array2, Array3, ArrayD, Axis};

    let cube = Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (i * 100 + j * 10 + k) as i32);
    for jit in machines() {
        let arrays = Arrays::new(&jit);
        let x = arrays.from_ndarray(&cube)?;
        let back: ArrayD<i32> = (x.permute([2, 0, 1])? + 1).eval()?.to_ndarray()?;
        assert_eq!(back, (cube.clone() + 1).permuted_axes([2, 0, 1]).into_dyn());
        let layer = cube.index_axis(Axis(1), 2);
        let layer = arrays
            .from_ndarray(&layer.t())?
            .to_ndarray::<ndarray::Ix2>()?;
        assert_eq!(layer, cube.index_axis(Axis(1), 2).t());
        let none: Array2<f32> = arrays.zeros((0, 7))?.to_ndarray()?;
        assert_eq!(none.shape(), [0, 7]);
        let other: Result<Array1<i32>, _> = x.to_ndarray();
        assert_eq!(
            other.expect_err("it has three").to_string(),
            "an array of shape 3x4x5 has 3 dimensions, and 1 are asked for"
        );
    }
    Ok(())
}

/// Files as NumPy writes them, and files that are none.
#[test]
fn arrays_in_files_of_numpy() -> Outcome {
    // `np.save` of `np.array([[1.5, -2.0]], dtype="<f4")`.
    let mut bytes =
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }"
            .to_vec();
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    bytes.extend([1.5f32, -2.0].map(f32::to_le_bytes).concat());
    let folder = std::env::temp_dir().join(format!("kiln-npy-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (file, several) = (folder.join("x.npy"), folder.join("all.npz"));
    std::fs::write(&file, &bytes)?;
    let arrays = Arrays::new(&Jit::on(Device::cpu()));
    let x = arrays.read_npy::<f32>(&file)?;
    assert_eq!((x.dims(), x.to_vec()?), (&[1, 2][..], vec![1.5, -2.0]));
    x.write_npy(&file)?;
    // The header may be spelled otherwise; it ends where NumPy has elements begin.
    let written = std::fs::read(&file)?;
    assert_eq!(
        (&written[..8], &written[127..]),
        (&bytes[..8], &bytes[127..])
    );
    assert_eq!(arrays.read_npy::<f32>(&file)?.to_vec()?, [1.5, -2.0]);
    arrays.write_npz(&several, &[("a", &x), ("b", &x.t())])?;
    assert_eq!(arrays.read_npz::<f32>(&several, "b")?.dims(), [2, 1]);

    let text = |refused: Option<kiln::array::ArrayError>| {
        let text = refused.expect("it is refused").to_string();
        text.replace(&folder.display().to_string(), "FOLDER")
    };
    assert_eq!(
        text(arrays.read_npy::<i64>(&file).err()),
        "`FOLDER/x.npy`: incorrect descriptor ('<f4') for this type"
    );
    let missing = text(arrays.read_npy::<f32>(folder.join("y.npy")).err());
    assert!(missing.starts_with("`FOLDER/y.npy`: "), "{missing}");
    let unknown = text(arrays.read_npz::<f32>(&several, "c").err());
    assert!(
        unknown.starts_with("`FOLDER/all.npz`: the array `c`: "),
        "{unknown}"
    );
    assert!(arrays.read_npz::<f32>(&file, "x").is_err());
    assert!(x.write_npy(folder.join("none/x.npy")).is_err());
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// What a test gives that meets errors of several kinds.
type Outcome = Result<(), Box<dyn std::error::Error>>;
