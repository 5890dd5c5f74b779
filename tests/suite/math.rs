//! The mathematical functions give the same bits on every device: digests of their results over
//! all exponents and both signs. How exact the results are is the business of `tests/math.rs`.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    functions_of_singles,
    functions_of_doubles,
    functions_of_halves,
    angles,
    powers,
    sine_and_cosine_at_once,
    functions_near_one_and_roots,
    functions_of_statistics_and_half_turns,
];

/// A function of one number.
type Function = for<'k> fn(Val<'k>) -> Val<'k>;

const FUNCTIONS: [(&str, Function); 11] = [
    ("exp", |x| x.exp()),
    ("exp2", |x| x.exp2()),
    ("ln", |x| x.ln()),
    ("log2", |x| x.log2()),
    ("log10", |x| x.log10()),
    ("sin", |x| x.sin()),
    ("cos", |x| x.cos()),
    ("atan", |x| x.atan()),
    ("asin", |x| x.asin()),
    ("acos", |x| x.acos()),
    ("tanh", |x| x.tanh()),
];

/// FNV-1a over words.
fn digest(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// `count` numbers for each of `exponents`, of both signs, with `digits` bits of significand.
fn patterns(exponents: u64, digits: u32, count: u64) -> Vec<u64> {
    let of = |exponent: u64| {
        (0..count).map(move |i| {
            let random = (exponent * count + i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (significand, sign) = (random >> (64 - digits), random >> 7 & 1);
            sign << (64 - (exponents - 1).leading_zeros() + digits)
                | exponent << digits
                | significand
        })
    };
    (0..exponents).flat_map(of).collect()
}

/// The results of a function, one thread an argument.
fn apply<T: KernelType>(jit: &Jit, f: Function, values: &[T]) -> kiln::Result<Vec<T>> {
    let kernel = Kernel::build("apply", |k| {
        let t = k.ty::<T>();
        let (x, y) = (k.slice("x", t), k.slice_mut("y", t));
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || y.at(i).set(f(x.at(i).get())));
    })?;
    let x = jit.upload(values)?;
    let mut y = jit.upload(values)?;
    jit.launch(&kernel, grid_for(values.len(), 64), 64, args!(&x, &mut y))?;
    y.to_vec()
}

/// Compares the digests of all functions; NaN counts as NaN whatever its bits.
fn check<T: KernelType>(
    jit: &Jit,
    values: &[T],
    bits: fn(T) -> Option<u64>,
    wanted: [u64; 11],
) -> Outcome {
    let mut found = [0; 11];
    for (slot, (_, f)) in found.iter_mut().zip(FUNCTIONS) {
        let results = apply(jit, f, values)?;
        *slot = digest(results.into_iter().map(|x| bits(x).unwrap_or(u64::MAX)));
    }
    let names = FUNCTIONS.map(|(name, _)| name);
    assert!(
        found == wanted,
        "of {names:?} the digests are {found:#018x?}"
    );
    Ok(())
}

fn functions_of_singles(jit: &Jit) -> Outcome {
    let values: Vec<f32> = (patterns(256, 23, 16).into_iter())
        .map(|bits| f32::from_bits(bits as u32))
        .collect();
    let bits = |x: f32| (!x.is_nan()).then(|| x.to_bits().into());
    check(
        jit,
        &values,
        bits,
        [
            0x3824_74dc_3097_83d8,
            0xf882_0d6c_fed6_403f,
            0x0ceb_b99e_4826_df66,
            0xb7ca_18c8_989c_59a5,
            0x4361_1a4c_e407_6bac,
            0x81ba_59e1_f70f_ff36,
            0x4750_be4f_b7ff_b72d,
            0x47b8_1d34_d019_40a9,
            0x4937_01fe_0205_29f7,
            0x7c02_9427_5c72_40ad,
            0xc2c6_2619_645a_da7c,
        ],
    )
}

fn functions_of_doubles(jit: &Jit) -> Outcome {
    let values: Vec<f64> = (patterns(2048, 52, 2).into_iter())
        .map(f64::from_bits)
        .collect();
    let bits = |x: f64| (!x.is_nan()).then(|| x.to_bits());
    check(
        jit,
        &values,
        bits,
        [
            0x47a3_83f1_eafb_e393,
            0xb012_d484_5fe9_ed0f,
            0xb0db_08a7_bea3_d892,
            0x13c8_b3cd_6a52_b1cb,
            0x03a9_4145_38b7_47e5,
            0x6551_a945_2325_937b,
            0x713c_7872_30e3_aafa,
            0x498f_03a5_110d_ed8e,
            0xb6e0_2f5b_216b_52c1,
            0x1431_7025_0a01_7a5d,
            0xc373_1e1a_d5ec_72b0,
        ],
    )
}

fn functions_of_halves(jit: &Jit) -> Outcome {
    let values: Vec<half::f16> = (patterns(32, 10, 64).into_iter())
        .map(|bits| half::f16::from_bits(bits as u16))
        .collect();
    let bits = |x: half::f16| (!x.is_nan()).then(|| x.to_bits().into());
    check(
        jit,
        &values,
        bits,
        [
            0xbbdd_2b67_61c6_1acd,
            0x85bf_35c6_cf1b_8c13,
            0x18e7_49f1_5086_567b,
            0x2f9d_944e_c1e7_ce9b,
            0x590b_815a_2260_2362,
            0x83b3_754b_6e05_3843,
            0xdcd7_ae13_b2d0_7bef,
            0x4f0d_9e73_08f7_12ef,
            0x1671_094d_2feb_8776,
            0xe772_1f23_cbca_93ea,
            0x479d_051e_bdfa_4d95,
        ],
    )
}

/// Angles of points with coordinates of all exponents.
fn angles(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("angles", |k| {
        let (x, r) = (k.slice("x", Type::F32), k.slice_mut("r", Type::F32));
        let wide = k.slice_mut("wide", Type::F64);
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || {
            let scale = (i % 97u32).cast(Type::F32) - 48.0;
            let (own, other) = (x.at(i).get(), x.at(x.len() - i - 1u32).get());
            let near = own * scale;
            let y = (i & 1u32).eq(0u32).select(near, other);
            r.at(i).set(y.atan2(own));
            let (y, own) = (y.cast(Type::F64), own.cast(Type::F64));
            wide.at(i).set(y.atan2(own));
        });
    })?;
    let values: Vec<f32> = (patterns(256, 23, 16).into_iter())
        .map(|bits| f32::from_bits(bits as u32))
        .collect();
    let x = jit.upload(&values)?;
    let mut r = jit.upload(&values)?;
    let mut wide = jit.zeros::<f64>(values.len())?;
    let grid = grid_for(values.len(), 64);
    jit.launch(&kernel, grid, 64, args!(&x, &mut r, &mut wide))?;
    let single = |x: f32| match x.is_nan() {
        true => u64::MAX,
        false => x.to_bits().into(),
    };
    let double = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    let found = [
        digest(r.to_vec()?.into_iter().map(single)),
        digest(wide.to_vec()?.into_iter().map(double)),
    ];
    assert!(
        found == [0x8c72_cb2a_d2dc_746f, 0xb371_ee20_5488_006e],
        "the digests are {found:#018x?}"
    );
    Ok(())
}

/// Bases over all exponents, with exponents that keep most powers finite.
fn powers(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("powers", |k| {
        let (x, r) = (k.slice("x", Type::F32), k.slice_mut("r", Type::F32));
        let wide = k.slice_mut("wide", Type::F64);
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || {
            let exponent = (i % 97u32).cast(Type::F32) * 0.125 - 6.0;
            r.at(i).set(x.at(i).get().powf(exponent));
            let base = x.at(i).get().cast(Type::F64);
            wide.at(i).set(base.powf(exponent.cast(Type::F64)));
        });
    })?;
    let values: Vec<f32> = (patterns(256, 23, 16).into_iter())
        .map(|bits| f32::from_bits(bits as u32))
        .collect();
    let x = jit.upload(&values)?;
    let mut r = jit.upload(&values)?;
    let mut wide = jit.zeros::<f64>(values.len())?;
    let grid = grid_for(values.len(), 64);
    jit.launch(&kernel, grid, 64, args!(&x, &mut r, &mut wide))?;
    let single = |x: f32| {
        if x.is_nan() {
            u64::MAX
        } else {
            x.to_bits().into()
        }
    };
    let double = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    let found = [
        digest(r.to_vec()?.into_iter().map(single)),
        digest(wide.to_vec()?.into_iter().map(double)),
    ];
    assert!(
        found == [0x5220_63b3_03ab_4d4b, 0xc914_6720_fc7d_78d1],
        "the digests are {found:#018x?}"
    );
    Ok(())
}

/// Sine and cosine of one function are those of two, for small and large arguments of all kinds.
fn sine_and_cosine_at_once(jit: &Jit) -> Outcome {
    fn check<T: KernelType>(jit: &Jit, values: &[T], bits: fn(T) -> Option<u64>) -> Outcome {
        let parts: [Function; 2] = [|x| x.sin_cos().field("0"), |x| x.sin_cos().field("1")];
        let alone: [Function; 2] = [|x| x.sin(), |x| x.cos()];
        for (part, alone) in parts.into_iter().zip(alone) {
            let found = apply(jit, part, values)?.into_iter().map(bits);
            let wanted = apply(jit, alone, values)?.into_iter().map(bits);
            assert!(found.eq(wanted));
        }
        Ok(())
    }
    let singles: Vec<f32> = (patterns(256, 23, 4).into_iter())
        .map(|bits| f32::from_bits(bits as u32))
        .collect();
    check(jit, &singles, |x| (!x.is_nan()).then(|| x.to_bits().into()))?;
    let doubles: Vec<f64> = (patterns(2048, 52, 1).into_iter())
        .map(f64::from_bits)
        .collect();
    check(jit, &doubles, |x| (!x.is_nan()).then(|| x.to_bits()))
}

/// Functions of singles, doubles and halves: the digests of all three.
fn functions_near_one_and_roots(jit: &Jit) -> Outcome {
    const FUNCTIONS: [(&str, Function, [u64; 3]); 14] = [
        (
            "erf",
            |x| x.erf(),
            [
                0x0070_9c03_183c_2037,
                0x851c_94b2_b324_c5d4,
                0x8fc0_8427_e749_9f54,
            ],
        ),
        (
            "erfc",
            |x| x.erfc(),
            [
                0x60a6_fed1_e007_3b08,
                0x672e_d07a_7d8a_38bc,
                0xc5eb_bc25_8aa0_6c76,
            ],
        ),
        (
            "exp_m1",
            |x| x.exp_m1(),
            [
                0xbaf5_5518_b314_fe04,
                0x7ccd_623e_7274_391e,
                0xd106_12bb_8b3d_45bb,
            ],
        ),
        (
            "ln_1p",
            |x| x.ln_1p(),
            [
                0x26e8_0712_8c1a_c36d,
                0x0d57_b9c0_b90c_357e,
                0xb0fc_53d9_dc68_dbe7,
            ],
        ),
        (
            "exp10",
            |x| x.exp10(),
            [
                0x6fdd_f51c_bd92_0853,
                0x804d_569b_30a2_b2c7,
                0xe960_ffc3_4763_cc0b,
            ],
        ),
        (
            "sinh",
            |x| x.sinh(),
            [
                0x5224_b31f_84eb_dd4e,
                0x93b5_c8d4_27ef_6f04,
                0xca0e_8aca_8e26_b59b,
            ],
        ),
        (
            "cosh",
            |x| x.cosh(),
            [
                0x712b_7106_9bbe_f540,
                0x982e_c667_fa1c_44fc,
                0xffdc_e5a7_499c_253f,
            ],
        ),
        (
            "asinh",
            |x| x.asinh(),
            [
                0xf3ad_e268_7d54_a174,
                0x8d2b_fa09_8673_b13f,
                0x8211_7b8e_25ae_85a7,
            ],
        ),
        (
            "acosh",
            |x| x.acosh(),
            [
                0xc005_5c87_299f_42d4,
                0x0209_7e36_e84c_0418,
                0xbf44_61a8_d926_6355,
            ],
        ),
        (
            "atanh",
            |x| x.atanh(),
            [
                0xed7b_afcb_f22a_5305,
                0x73dc_4c15_02e4_bd2b,
                0xc156_98b2_40d8_0b50,
            ],
        ),
        (
            "cbrt",
            |x| x.cbrt(),
            [
                0xcefb_f6ff_880d_c1d9,
                0xe07d_9891_fd42_608b,
                0x7e6a_c5a5_8546_0f4f,
            ],
        ),
        (
            "hypot",
            |x| x.hypot(x.fract()),
            [
                0x2cf1_5a09_6f11_3cce,
                0xe280_f24b_91fd_a708,
                0x6902_2519_0719_9244,
            ],
        ),
        (
            "log",
            |x| x.log(10.0),
            [
                0x22c8_a81c_760e_0759,
                0x1b23_24b1_0a98_8ae2,
                0x590b_815a_2260_2362,
            ],
        ),
        (
            "log of roots",
            |x| x.log(x.abs().sqrt()),
            [
                0x8b7d_d13e_3a36_eeae,
                0x7090_bae8_aac0_d741,
                0xd4dc_7a11_fe22_a2e8,
            ],
        ),
    ];
    check_bits(jit, &FUNCTIONS)
}

fn functions_of_statistics_and_half_turns(jit: &Jit) -> Outcome {
    const FUNCTIONS: [(&str, Function, [u64; 3]); 15] = [
        (
            "sin_pi",
            |x| x.sin_pi(),
            [
                0xc628_f509_72e6_0378,
                0x12bb_70a2_3b1c_c0bd,
                0xb7fb_67bd_d74b_fccd,
            ],
        ),
        (
            "cos_pi",
            |x| x.cos_pi(),
            [
                0xa36c_e879_9419_93a8,
                0x3216_6197_ff21_bb22,
                0xc6e3_01d4_f813_7905,
            ],
        ),
        (
            "erfcx",
            |x| x.erfcx(),
            [
                0x241c_344f_e1fc_676e,
                0xb96f_ec73_14e2_50d8,
                0xe717_c19e_c905_9a1b,
            ],
        ),
        (
            "erf_inv",
            |x| x.erf_inv(),
            [
                0xbd0a_7c1b_a26d_c851,
                0x88dc_6169_0a20_f202,
                0xa35b_35e5_5234_9f36,
            ],
        ),
        (
            "normcdf",
            |x| x.normcdf(),
            [
                0x6eba_b01a_82a9_899d,
                0x17e4_8f2a_6bae_c8b1,
                0x57c5_2ac9_33c0_5f6b,
            ],
        ),
        (
            "erfc_inv",
            |x| x.erfc_inv(),
            [
                0xc53a_8aae_6e01_bc0a,
                0x76eb_0c14_f6ff_b286,
                0xfe2b_61ed_b234_9247,
            ],
        ),
        (
            "normcdf_inv",
            |x| x.normcdf_inv(),
            [
                0x9752_318c_e20d_e4d8,
                0x8e5c_91a5_023f_43d3,
                0x8445_5dc6_0be0_dca5,
            ],
        ),
        (
            "remainder",
            |x| x.remainder(x.fract()),
            [
                0x3b9f_d577_cc93_7e6d,
                0x73b4_7251_49d8_4793,
                0x15b7_eacf_6b17_546a,
            ],
        ),
        (
            "remquo",
            |x| x.remquo(0.3).field("1").cast(x.ty()),
            [
                0xd6bb_eac1_9ffb_6325,
                0x63ba_0c83_ce3b_6325,
                0xa5b1_ee4b_1025_1025,
            ],
        ),
        (
            "gamma",
            |x| x.gamma(),
            [
                0xba0b_b745_f21b_d055,
                0x096f_5d71_91a7_83dc,
                0x25d3_99a9_069a_0bab,
            ],
        ),
        (
            "ln_gamma",
            |x| x.ln_gamma().field("0"),
            [
                0xa8b7_1b40_6b42_fcdf,
                0x31e8_6b95_96a3_0b44,
                0xafbc_8d48_de15_919d,
            ],
        ),
        (
            "rcbrt",
            |x| x.rcbrt(),
            [
                0xef3f_7ae4_504b_48b9,
                0xef30_e3cb_5930_e720,
                0xad06_f571_bbed_6c48,
            ],
        ),
        (
            "rhypot",
            |x| x.rhypot(x.fract()),
            [
                0x285b_3383_5d39_9a96,
                0x15ab_c3a0_88f8_d00b,
                0xbab9_1858_8e53_c4a6,
            ],
        ),
        (
            "modf",
            |x| x.modf().field("0"),
            [
                0xf1a5_0ee2_3e09_b57c,
                0x1a17_818d_6da0_5720,
                0x2221_0059_3d23_1b31,
            ],
        ),
        (
            "fdim",
            |x| x.fdim(0.3),
            [
                0xadbe_0a61_e808_2288,
                0xff5c_206e_e411_4819,
                0x0ea1_9c11_bccf_0804,
            ],
        ),
    ];
    check_bits(jit, &FUNCTIONS)
}

/// Whether functions have these digests of their results of `f32`, `f64` and `f16`.
fn check_bits(jit: &Jit, functions: &[(&str, Function, [u64; 3])]) -> Outcome {
    let singles = patterns(256, 23, 16).into_iter();
    let singles: Vec<f32> = singles.map(|bits| f32::from_bits(bits as u32)).collect();
    let doubles = patterns(2048, 52, 2).into_iter();
    let doubles: Vec<f64> = doubles.map(f64::from_bits).collect();
    let halves = patterns(32, 10, 64).into_iter();
    let halves: Vec<half::f16> = halves
        .map(|bits| half::f16::from_bits(bits as u16))
        .collect();
    let mut wrong = Vec::new();
    for &(name, f, wanted) in functions {
        let single = |x: f32| {
            if x.is_nan() {
                u64::MAX
            } else {
                x.to_bits().into()
            }
        };
        let double = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
        let half = |x: half::f16| {
            if x.is_nan() {
                u64::MAX
            } else {
                x.to_bits().into()
            }
        };
        let found = [
            digest(apply(jit, f, &singles)?.into_iter().map(single)),
            digest(apply(jit, f, &doubles)?.into_iter().map(double)),
            digest(apply(jit, f, &halves)?.into_iter().map(half)),
        ];
        if found != wanted {
            wrong.push(format!("{name}: {found:#018x?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
