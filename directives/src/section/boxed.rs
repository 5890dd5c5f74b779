//! The smallest box of elements that holds some reads: dimensions by the strides of what ranges.

use super::{Dimension, Place, Read, Sum, Term};
use crate::integer::{Linear, gcd};

/// The smallest box that holds reads whose origins differ by numbers from one; `None` if its numbers become too large.
pub(super) fn boxed(sums: Vec<Sum>, origin: &Linear) -> Option<(Vec<Dimension>, Vec<Read>)> {
    // Products of two of these, and sums of many, are numbers of 128 bits.
    let far = 1i128 << 50;
    let mut strides: Vec<i128> = Vec::new();
    for term in sums.iter().flat_map(|sum| &sum.terms) {
        if term.factor.abs() >= far || term.count >= far {
            return None;
        }
        strides.push(term.factor.abs());
    }
    strides.sort_unstable();
    strides.dedup();
    strides.reverse();
    let ahead: Vec<i128> = sums
        .iter()
        .map(|sum| sum.origin.number - origin.number)
        .collect();
    if ahead.iter().any(|ahead| ahead.abs() >= far) {
        return None;
    }
    let split = loop {
        let split: Vec<_> = ahead.iter().map(|&ahead| split(ahead, &strides)).collect();
        let rest = split.iter().fold(0, |all, &(_, rest)| gcd(all, rest.abs()));
        match rest {
            0 => break split,
            // Less than half of each stride that is there.
            rest => strides.push(rest),
        }
    };
    let reads = sums.into_iter().zip(split);
    let reads = reads.map(|(sum, (numbers, _))| read(sum, numbers, &strides));
    let mut reads: Vec<Read> = reads.collect();
    merge(&mut strides, &mut reads);
    let dims = strides.iter().enumerate().map(|(dim, &stride)| {
        let (first, extent) = spanned(&reads, dim);
        Dimension {
            first,
            extent,
            stride,
        }
    });
    Some((dims.collect(), reads))
}

/// A read at a place that is these numbers along the strides, and what ranges.
fn read(sum: Sum, numbers: Vec<i128>, strides: &[i128]) -> Read {
    let place = |number| Place {
        number,
        terms: Vec::new(),
    };
    let mut places: Vec<Place> = numbers.into_iter().map(place).collect();
    for term in sum.terms {
        let mut along = strides.iter();
        let dim = along.position(|&stride| stride == term.factor.abs());
        let factor = term.factor.signum();
        let place = &mut places[dim.expect("each is a stride")];
        place.terms.push(Term { factor, ..term });
    }
    Read {
        load: sum.load,
        places,
        whole: None,
    }
}

/// A number as numbers of strides, of the largest first, each to the nearest; and the rest.
fn split(ahead: i128, strides: &[i128]) -> (Vec<i128>, i128) {
    let mut rest = ahead;
    let mut along = |&stride: &i128| {
        let number = (2 * rest + stride).div_euclid(2 * stride);
        rest -= number * stride;
        number
    };
    (strides.iter().map(&mut along).collect(), rest)
}

/// The first place of reads along a dimension, and how many there are up to the last.
fn spanned(reads: &[Read], dim: usize) -> (i128, i128) {
    let ranges = reads.iter().map(|read| read.places[dim].range());
    let (low, high) = ranges.fold((i128::MAX, i128::MIN), |all, range| {
        (all.0.min(range.0), all.1.max(range.1))
    });
    (low, high - low + 1)
}

/// Makes one of two dimensions where steps along the longer stride lead to what the shorter one reaches, or next to it:
/// the elements are those of one run then, and each is there once.
fn merge(strides: &mut Vec<i128>, reads: &mut [Read]) {
    let mut dim = strides.len();
    while dim > 1 {
        dim -= 1;
        let (long, short) = (strides[dim - 1], strides[dim]);
        let steps = long / short;
        if long % short != 0 || spanned(reads, dim).1 < steps {
            continue;
        }
        for read in &mut *reads {
            let longer = read.places.remove(dim - 1);
            let place = &mut read.places[dim - 1];
            place.number += longer.number * steps;
            let further = |term: Term| Term {
                factor: term.factor * steps,
                ..term
            };
            place.terms.extend(longer.terms.into_iter().map(further));
        }
        strides.remove(dim - 1);
        // The dimension before may reach this one now.
        dim = strides.len();
    }
}
