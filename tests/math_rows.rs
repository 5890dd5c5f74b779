//! The mathematical functions under test: what each computes, what it is compared with, and how far it may be off. Of these
//! rows is the table in the documentation of `kiln::stdlib::math`, `device-stdlib/src/math/errors.md`.

use std::fmt::Write as _;
use std::path::Path;

use kiln::core::ir::{Family, IntrinsicDef, Meaning, TypePattern};
use kiln::prelude::*;
use kiln::stdlib::math::FloatOps;

use super::math::OfTwo;

/// A function under test. Of one argument, the second one is anything.
pub(super) struct Function {
    pub(super) name: &'static str,
    /// The row of the device library; none of what is built of others.
    row: &'static str,
    pub(super) kiln: OfTwo,
    /// What the host has of it, in `f64`.
    pub(super) host: fn(f64, f64) -> f64,
    /// The largest error in units in the last place, of `f32` and of `f64`.
    pub(super) bounds: [f64; 2],
    pub(super) tried: Tried,
}

impl Function {
    /// Of what the function is tried for a number: of another one where the number is not among those that it is for.
    pub(super) fn argument(&self, x: f64) -> f64 {
        match self.name {
            "ln_gamma" => x.abs(),
            "ln_gamma_of_negative" => off_the_zeros_on_host(x),
            _ => x,
        }
    }
}

/// With what results of `f64` are compared.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Tried {
    /// The host's, within a unit.
    Host,
    /// Points whose results are known to all digits, `math/references.txt`.
    Recorded,
    /// The host's, at pairs that a test of the function makes.
    Apart,
}

const fn function(
    name: &'static str,
    row: &'static str,
    kiln: OfTwo,
    host: fn(f64, f64) -> f64,
    bounds: [f64; 2],
    tried: Tried,
) -> Function {
    Function {
        name,
        row,
        kiln,
        host,
        bounds,
        tried,
    }
}

/// `1 / sqrt(x)` with the digits that two rounded operations lose.
fn rsqrt(x: f64) -> f64 {
    let near = 1.0 / x.sqrt();
    let product = x * near;
    let lost = x.mul_add(near, -product);
    let rest = (-lost).mul_add(near, (-product).mul_add(near, 1.0));
    match rest.is_finite() {
        true => (0.5 * near).mul_add(rest, near),
        false => near,
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    function(
        "sqrt",
        "math.sqrt",
        |x, _| x.sqrt(),
        |x, _| x.sqrt(),
        [0.5, 0.5],
        Tried::Host,
    ),
    function(
        "recip",
        "",
        |x, _| x.recip(),
        |x, _| x.recip(),
        [0.5, 0.5],
        Tried::Host,
    ),
    function(
        "rsqrt",
        "math.rsqrt",
        |x, _| x.rsqrt(),
        |x, _| rsqrt(x),
        [1.5, 1.5],
        Tried::Host,
    ),
    function(
        "floor",
        "math.floor",
        |x, _| x.floor(),
        |x, _| x.floor(),
        [0.0, 0.0],
        Tried::Host,
    ),
    function(
        "ceil",
        "math.ceil",
        |x, _| x.ceil(),
        |x, _| x.ceil(),
        [0.0, 0.0],
        Tried::Host,
    ),
    function(
        "trunc",
        "math.trunc",
        |x, _| x.trunc(),
        |x, _| x.trunc(),
        [0.0, 0.0],
        Tried::Host,
    ),
    function(
        "round",
        "math.round",
        |x, _| x.round(),
        |x, _| x.round(),
        [0.0, 0.0],
        Tried::Host,
    ),
    function(
        "round_ties_even",
        "math.rint",
        |x, _| x.round_ties_even(),
        |x, _| x.round_ties_even(),
        [0.0, 0.0],
        Tried::Host,
    ),
    function(
        "fract",
        "math.fract",
        |x, _| x.fract(),
        |x, _| x.fract(),
        [0.0, 0.0],
        Tried::Host,
    ),
    function(
        "logb",
        "math.logb",
        |x, _| x.logb(),
        |x, _| FloatOps::logb(x),
        [0.0, 0.0],
        Tried::Host,
    ),
    function(
        "copysign",
        "math.copysign",
        |x, y| x.copysign(y),
        |x, y| x.copysign(y),
        [0.0, 0.0],
        Tried::Host,
    ),
    function(
        "fdim",
        "math.fdim",
        |x, y| x.fdim(y),
        FloatOps::fdim,
        [0.5, 0.5],
        Tried::Host,
    ),
    function(
        "remainder",
        "math.remainder",
        |x, y| x.remainder(y),
        FloatOps::remainder,
        [0.0, 0.0],
        Tried::Recorded,
    ),
    function(
        "exp",
        "math.exp",
        |x, _| x.exp(),
        |x, _| x.exp(),
        [1.0, 2.0],
        Tried::Host,
    ),
    function(
        "exp2",
        "math.exp2",
        |x, _| x.exp2(),
        |x, _| x.exp2(),
        [1.0, 2.0],
        Tried::Host,
    ),
    function(
        "ln",
        "math.log",
        |x, _| x.ln(),
        |x, _| x.ln(),
        [1.5, 2.0],
        Tried::Host,
    ),
    function(
        "log2",
        "math.log2",
        |x, _| x.log2(),
        |x, _| x.log2(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "log10",
        "math.log10",
        |x, _| x.log10(),
        |x, _| x.log10(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "exp10",
        "math.exp10",
        |x, _| x.exp10(),
        |x, _| 10f64.powf(x),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "exp_m1",
        "math.exp_m1",
        |x, _| x.exp_m1(),
        |x, _| x.exp_m1(),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "ln_1p",
        "math.ln_1p",
        |x, _| x.ln_1p(),
        |x, _| x.ln_1p(),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "log",
        "math.log_of_base",
        |x, y| x.log(y),
        |x, y| x.ln() / y.ln(),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "powf",
        "math.pow",
        |x, y| x.powf(y),
        |x, y| x.powf(y),
        [1.5, 2.0],
        Tried::Apart,
    ),
    function(
        "sin",
        "math.sin",
        |x, _| x.sin(),
        |x, _| x.sin(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "cos",
        "math.cos",
        |x, _| x.cos(),
        |x, _| x.cos(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "sin_cos",
        "math.sin_cos",
        |x, _| x.sin_cos().field("0"),
        |x, _| x.sin(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "tan",
        "math.tan",
        |x, _| x.tan(),
        |x, _| x.tan(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "atan",
        "math.atan",
        |x, _| x.atan(),
        |x, _| x.atan(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "asin",
        "math.asin",
        |x, _| x.asin(),
        |x, _| x.asin(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "acos",
        "math.acos",
        |x, _| x.acos(),
        |x, _| x.acos(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "atan2",
        "math.atan2",
        |x, y| x.atan2(y),
        |x, y| x.atan2(y),
        [2.0, 2.0],
        Tried::Apart,
    ),
    function(
        "sin_pi",
        "math.sin_pi",
        |x, _| x.sin_pi(),
        |x, _| FloatOps::sin_pi(x),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "cos_pi",
        "math.cos_pi",
        |x, _| x.cos_pi(),
        |x, _| FloatOps::cos_pi(x),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "sinh",
        "math.sinh",
        |x, _| x.sinh(),
        |x, _| x.sinh(),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "cosh",
        "math.cosh",
        |x, _| x.cosh(),
        |x, _| x.cosh(),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "tanh",
        "math.tanh",
        |x, _| x.tanh(),
        |x, _| x.tanh(),
        [2.0, 2.0],
        Tried::Host,
    ),
    function(
        "asinh",
        "math.asinh",
        |x, _| x.asinh(),
        |x, _| x.asinh(),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "acosh",
        "math.acosh",
        |x, _| x.acosh(),
        |x, _| x.acosh(),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "atanh",
        "math.atanh",
        |x, _| x.atanh(),
        |x, _| x.abs().atanh().copysign(x),
        [1.5, 1.5],
        Tried::Recorded,
    ),
    function(
        "cbrt",
        "math.cbrt",
        |x, _| x.cbrt(),
        |x, _| x.cbrt(),
        [1.0, 1.0],
        Tried::Recorded,
    ),
    function(
        "rcbrt",
        "",
        |x, _| x.rcbrt(),
        |x, _| 1.0 / x.cbrt(),
        [2.0, 2.0],
        Tried::Recorded,
    ),
    function(
        "hypot",
        "math.hypot",
        |x, y| x.hypot(y),
        |x, y| x.hypot(y),
        [1.0, 1.0],
        Tried::Recorded,
    ),
    function(
        "rhypot",
        "math.rhypot",
        |x, y| x.rhypot(y),
        FloatOps::rhypot,
        [2.0, 2.0],
        Tried::Recorded,
    ),
    function(
        "erf",
        "math.erf",
        |x, _| x.erf(),
        |x, _| FloatOps::erf(x),
        [1.0, 1.5],
        Tried::Recorded,
    ),
    function(
        "erfc",
        "math.erfc",
        |x, _| x.erfc(),
        |x, _| FloatOps::erfc(x),
        [4.0, 4.0],
        Tried::Recorded,
    ),
    function(
        "erfcx",
        "math.erfcx",
        |x, _| x.erfcx(),
        |x, _| FloatOps::erfcx(x),
        [4.0, 4.0],
        Tried::Recorded,
    ),
    function(
        "erf_inv",
        "math.erf_inv",
        |x, _| x.erf_inv(),
        |x, _| FloatOps::erf_inv(x),
        [2.0, 3.0],
        Tried::Recorded,
    ),
    function(
        "erfc_inv",
        "math.erfc_inv",
        |x, _| x.erfc_inv(),
        |x, _| FloatOps::erfc_inv(x),
        [4.0, 4.0],
        Tried::Recorded,
    ),
    function(
        "normcdf",
        "math.normcdf",
        |x, _| x.normcdf(),
        |x, _| FloatOps::normcdf(x),
        [5.0, 5.0],
        Tried::Recorded,
    ),
    function(
        "normcdf_inv",
        "math.normcdf_inv",
        |x, _| x.normcdf_inv(),
        |x, _| FloatOps::normcdf_inv(x),
        [5.0, 5.0],
        Tried::Recorded,
    ),
    function(
        "gamma",
        "math.gamma",
        |x, _| x.gamma(),
        |x, _| FloatOps::gamma(x),
        [5.0, 6.0],
        Tried::Recorded,
    ),
    function(
        "ln_gamma",
        "math.ln_gamma",
        |x, _| x.abs().ln_gamma().field("0"),
        |x, _| FloatOps::ln_gamma(x.abs()).0,
        [5.0, 4.0],
        Tried::Recorded,
    ),
    function(
        "ln_gamma_of_negative",
        "math.ln_gamma",
        |x, _| off_the_zeros(x).ln_gamma().field("0"),
        |x, _| FloatOps::ln_gamma(off_the_zeros_on_host(x)).0,
        [5.0, 4.0],
        Tried::Host,
    ),
];

/// Rows that are not tried here, as their results are no single float, exact, rounded in a direction or a product, or as
/// they are called by others: the suite compares them with the host's.
const OF_OTHER_SHAPES: [&str; 34] = [
    "math.abs",
    "math.add_down",
    "math.add_toward_zero",
    "math.add_up",
    "math.div_down",
    "math.div_toward_zero",
    "math.div_up",
    "math.f64_to_f32_down",
    "math.f64_to_f32_toward_zero",
    "math.f64_to_f32_up",
    "math.fma",
    "math.frexp",
    "math.ilogb",
    "math.int_to_f32_down",
    "math.int_to_f32_toward_zero",
    "math.int_to_f32_up",
    "math.int_to_f64_down",
    "math.int_to_f64_toward_zero",
    "math.int_to_f64_up",
    "math.large_angle",
    "math.ldexp",
    "math.modf",
    "math.mul_add_down",
    "math.mul_add_toward_zero",
    "math.mul_add_up",
    "math.mul_down",
    "math.mul_toward_zero",
    "math.mul_up",
    "math.remquo",
    "math.sqrt_down",
    "math.sqrt_toward_zero",
    "math.sqrt_up",
    "math.to_degrees",
    "math.to_radians",
];

/// A function by its name.
pub(super) fn find(name: &str) -> &'static Function {
    let found = FUNCTIONS.iter().find(|f| f.name == name);
    found.expect("it is listed")
}

/// Between these the logarithm of a negative number's gamma function may be next to 0: as CUDA's guide says it of `lgammaf`.
const ZEROS: [f64; 2] = [-10.001, -2.264];

/// A negative number with the digits of another one, and not where zeros are.
fn off_the_zeros(x: Val<'_>) -> Val<'_> {
    let negative = -x.abs();
    let is_near = negative.gt(ZEROS[0]) & negative.lt(ZEROS[1]);
    is_near.select(negative * 8.0, negative)
}

/// What [`off_the_zeros`] is on the host.
fn off_the_zeros_on_host(x: f64) -> f64 {
    let negative = -x.abs();
    let is_near = negative > ZEROS[0] && negative < ZEROS[1];
    if is_near { negative * 8.0 } else { negative }
}

/// Which types a row takes, as text.
fn types(def: Option<&IntrinsicDef>) -> String {
    let names = |scalars: &[kiln::core::ir::Scalar]| {
        let names = scalars.iter().map(|scalar| format!("`{}`", scalar.name()));
        names.collect::<Vec<_>>().join(", ")
    };
    match def
        .or_else(|| kiln::stdlib::find("math.sqrt"))
        .map(|def| def.params[0])
    {
        Some(TypePattern::OneOf(scalars)) => names(scalars),
        other => panic!("a function of {other:?}"),
    }
}

/// Which devices have a row, as text.
fn devices(def: Option<&IntrinsicDef>) -> &'static str {
    let Some(def) = def else { return "all" };
    let is_body = matches!(def.meaning, Meaning::Body(_));
    let anywhere = def.cells.iter().any(|cell| cell.family == Family::Any);
    assert!(is_body || anywhere, "{} is not everywhere", def.name);
    match def.approximations {
        [] => "all",
        _ => "all; NVIDIA's GPUs can approximate it",
    }
}

/// The table of the documentation.
fn table() -> String {
    let mut text =
        "| function | types | devices | error in `f32` | in `f64` |\n|---|---|---|---|---|\n"
            .to_owned();
    for f in FUNCTIONS {
        let def = (!f.row.is_empty()).then(|| kiln::stdlib::find(f.row).expect("a row"));
        let name = match f.name {
            "ln_gamma" => "`ln_gamma` of positive numbers".to_owned(),
            "ln_gamma_of_negative" => format!(
                "`ln_gamma` of negative numbers that are not from {} to {}",
                ZEROS[0], ZEROS[1]
            ),
            name => format!("`{name}`"),
        };
        let [single, double] = f.bounds.map(|bound| match bound {
            0.0 => "exact".to_owned(),
            0.5 => "rounded once".to_owned(),
            bound => bound.to_string(),
        });
        let (types, devices) = (types(def), devices(def));
        let _ = writeln!(
            text,
            "| {name} | {types} | {devices} | {single} | {double} |"
        );
    }
    text
}

/// The documentation has what the tests try, and `UPDATE_EXPECT=1` writes it anew.
#[test]
fn table_is_that_of_the_tests() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device-stdlib/src/math/errors.md");
    let table = table();
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
        std::fs::write(&path, table).expect("the file is written");
        return;
    }
    let written = std::fs::read_to_string(&path).expect("the file is there");
    assert_eq!(written, table, "UPDATE_EXPECT=1 writes {}", path.display());
}

#[test]
fn no_row_of_the_library_is_left_out() {
    for def in kiln::stdlib::registry().filter(|def| def.name.starts_with("math.")) {
        let is_listed = FUNCTIONS.iter().any(|f| f.row == def.name);
        let is_of_other_shape = OF_OTHER_SHAPES.contains(&def.name);
        assert!(is_listed != is_of_other_shape, "{}", def.name);
    }
}
