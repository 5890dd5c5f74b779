"""Compares results of mathematical functions with those of MPFR, by gmpy2.

Each line of the input has a function, `single` or `double`, and the bits of f64: two arguments, of which functions of
one have no use for the second, and results; with `pair` two numbers, whose sum is one result of `double`. The output is, for each function and format, how far each of the results
is off at most in units in the last place of the format, and the arguments where.
"""

import struct
import sys

import gmpy2
from gmpy2 import mpfr

# Far more digits than f64 has, as some functions are sums that cancel.
gmpy2.set_context(gmpy2.context(precision=256))

PI = gmpy2.const_pi()
ROOT_PI = gmpy2.sqrt(PI)
ROOT_2 = gmpy2.sqrt(mpfr(2))
# Digits of the significand, the exponent of the least number, and from where on results are infinite.
FORMATS = {
    "single": (24, -149, mpfr(2) ** 128 - mpfr(2) ** 103),
    "double": (53, -1074, mpfr(2) ** 1024 - mpfr(2) ** 970),
}
FORMATS["pair"] = FORMATS["double"]


def of_half_turns(quarters):
    """The sine of half turns with so many quarters of a turn added."""

    def value(x, y, guess):
        turned = gmpy2.fmod(x, 2) + mpfr(quarters) / 2
        if gmpy2.is_integer(2 * turned):
            return mpfr([0, 1, 0, -1][int(2 * turned) % 4])
        return gmpy2.sin(turned * PI)

    return value


def scaled_complement(x, y, guess):
    if x < 10000:
        return gmpy2.exp(x * x) * gmpy2.erfc(x)
    # There the exponents are too large; by the series (DLMF, 7.12.1).
    z = 1 / (2 * x * x)
    return (1 - z + 3 * z * z - 15 * z * z * z) / (x * ROOT_PI)


def slope_of_erf(x):
    return 2 / ROOT_PI * gmpy2.exp(-x * x)


def normcdf(x):
    return gmpy2.erfc(-x / ROOT_2) / 2


def inverse(function, slope, ends):
    """The inverse of a function, by steps of Newton's method from a guess that has half of the digits or more."""

    def value(x, y, guess):
        if x in ends:
            return ends[x]
        if not gmpy2.is_finite(x) or not min(ends) < x < max(ends):
            return mpfr("nan")
        if not gmpy2.is_finite(guess):
            return x if x == 0 else mpfr("nan")
        for _ in range(2):
            guess -= (function(guess) - x) / slope(guess)
        return guess

    return value


def of_one(function):
    return lambda x, y, guess: function(x)


def of_two(function):
    return lambda x, y, guess: function(x, y)


INFINITY = gmpy2.inf()
FUNCTIONS = {
    name: of_one(getattr(gmpy2, there))
    for name, there in [
        ("exp", "exp"), ("exp2", "exp2"), ("exp10", "exp10"), ("exp_m1", "expm1"),
        ("ln", "log"), ("log2", "log2"), ("log10", "log10"), ("ln_1p", "log1p"),
        ("sin", "sin"), ("cos", "cos"), ("sin_cos", "sin"), ("tan", "tan"),
        ("asin", "asin"), ("acos", "acos"), ("atan", "atan"),
        ("sinh", "sinh"), ("cosh", "cosh"), ("tanh", "tanh"),
        ("asinh", "asinh"), ("acosh", "acosh"), ("atanh", "atanh"),
        ("sqrt", "sqrt"), ("erf", "erf"), ("erfc", "erfc"), ("gamma", "gamma"), ("cbrt", "cbrt"),
    ]
} | {
    "atan2": of_two(gmpy2.atan2),
    "hypot": of_two(gmpy2.hypot),
    "remainder": of_two(gmpy2.remainder),
    "rhypot": of_two(lambda x, y: 1 / gmpy2.hypot(x, y)),
    "powf": of_two(lambda x, y: x**y),
    "log": of_two(lambda x, y: gmpy2.log(x) / gmpy2.log(y)),
    "recip": of_one(lambda x: 1 / x),
    "rsqrt": of_one(lambda x: 1 / gmpy2.sqrt(x)),
    "rcbrt": of_one(lambda x: 1 / gmpy2.cbrt(x)),
    "sin_pi": of_half_turns(0),
    "cos_pi": of_half_turns(1),
    "erfcx": scaled_complement,
    "normcdf": of_one(normcdf),
    "ln_gamma": of_one(lambda x: gmpy2.lgamma(abs(x))[0]),
    "ln_gamma_of_negative": of_one(lambda x: gmpy2.lgamma(-abs(x))[0]),
    "erf_inv": inverse(gmpy2.erf, slope_of_erf, {-1: -INFINITY, 1: INFINITY}),
    "erfc_inv": inverse(gmpy2.erfc, lambda x: -slope_of_erf(x), {0: INFINITY, 2: -INFINITY}),
    "normcdf_inv": inverse(normcdf, lambda x: slope_of_erf(x / ROOT_2) / 2 / ROOT_2, {0: -INFINITY, 1: INFINITY}),
}


for name in "sin", "cos", "tan":
    FUNCTIONS[name + "_of_large"] = FUNCTIONS[name]

# Functions with zeros that are no numbers: results below 1 / 2 have the unit of that.
LEAST_EXPONENTS = {("ln_gamma_of_negative", "pair"): 0}


def number(bits):
    return mpfr(struct.unpack(">d", bytes.fromhex(bits))[0])


def units(result, exact, function, format):
    """How far a result is off, in units of the nearest number of the format."""
    digits, least, infinite = FORMATS[format]
    least = LEAST_EXPONENTS.get((function, format), least + digits) - digits
    if gmpy2.is_nan(result) or gmpy2.is_nan(exact):
        return 0 if gmpy2.is_nan(result) and gmpy2.is_nan(exact) else INFINITY
    if abs(exact) >= infinite:
        return 0 if abs(result) >= infinite and (result > 0) == (exact > 0) else INFINITY
    if not gmpy2.is_finite(result):
        return INFINITY
    exponent = least if exact == 0 else max(gmpy2.get_exp(exact) - digits, least)
    return gmpy2.mul_2exp(abs(result - exact), -exponent) if exponent < 0 else gmpy2.div_2exp(abs(result - exact), exponent)


def main():
    worst = {}
    for line in sys.stdin:
        function, format, x, y, *results = line.split()
        x, y, *results = map(number, [x, y, *results])
        if format == "pair":
            results = [results[0] + results[1]]
        exact = FUNCTIONS[function](x, y, results[0])
        off = [float(units(result, exact, function, format)) for result in results]
        known = worst.setdefault((function, format), [(-1.0, x, y)] * len(off))
        worst[function, format] = [max(k, (o, x, y)) for k, o in zip(known, off)]
    for (function, format), found in worst.items():
        for column, (off, x, y) in enumerate(found):
            print(function, format, column, off, float(x), float(y))


main()
