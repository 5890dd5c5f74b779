//! Whether linear constraints have a solution in integers: the Omega test (Pugh, "The Omega Test: a fast and practical
//! integer programming algorithm for dependence analysis", Supercomputing 1991).
//!
//! Equalities are solved for a variable whose coefficient is 1, which a change of variables makes one. Of
//! inequalities a variable is eliminated by pairs of bounds (Fourier and Motzkin), exactly where one of the bounds has
//! the coefficient 1. Where none has, integers between the bounds are certain (the dark shadow), impossible (the real
//! shadow), or next to a lower bound, where they are looked for one by one.

use std::collections::HashMap;

/// A sum of variables with coefficients, and a number. Variables are numbered from 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Linear {
    /// By variable; as many as are needed.
    pub(crate) factors: Vec<i128>,
    pub(crate) number: i128,
}

impl Linear {
    /// A number.
    pub(crate) fn number(number: i128) -> Linear {
        Linear {
            factors: Vec::new(),
            number,
        }
    }

    /// A variable.
    pub(crate) fn variable(variable: usize) -> Linear {
        let mut factors = vec![0; variable + 1];
        factors[variable] = 1;
        Linear { factors, number: 0 }
    }

    /// The coefficient of a variable.
    pub(crate) fn factor(&self, variable: usize) -> i128 {
        self.factors.get(variable).copied().unwrap_or(0)
    }

    /// This sum, and another one `times` over. `None` if a number becomes too large.
    pub(crate) fn plus(&self, other: &Linear, times: i128) -> Option<Linear> {
        let len = self.factors.len().max(other.factors.len());
        let sum = |own: i128, more: i128| own.checked_add(more.checked_mul(times)?);
        let factors = (0..len).map(|variable| sum(self.factor(variable), other.factor(variable)));
        Some(Linear {
            factors: factors.collect::<Option<_>>()?,
            number: sum(self.number, other.number)?,
        })
    }

    /// This sum so many times over.
    pub(crate) fn times(&self, times: i128) -> Option<Linear> {
        Linear::default().plus(self, times)
    }

    /// The number, if there are no variables.
    pub(crate) fn as_number(&self) -> Option<i128> {
        self.factors
            .iter()
            .all(|&factor| factor == 0)
            .then_some(self.number)
    }

    /// The greatest common divisor of the coefficients; 0 if there are none.
    fn divisor(&self) -> i128 {
        self.factors
            .iter()
            .fold(0, |divisor, &factor| gcd(divisor, factor.abs()))
    }

    /// This sum with `by` in place of a variable.
    fn put(&self, variable: usize, by: &Linear) -> Option<Linear> {
        let factor = self.factor(variable);
        if factor == 0 {
            return Some(self.clone());
        }
        let mut rest = self.clone();
        rest.factors[variable] = 0;
        rest.plus(by, factor)
    }
}

/// The greatest common divisor of two numbers that are not below 0.
pub(crate) fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A quotient of numbers that are not below 0, rounded up.
pub(crate) fn ceil(number: i128, by: i128) -> i128 {
    number / by + i128::from(number % by != 0)
}

/// Constraints.
#[derive(Clone, Debug, Default)]
pub(crate) struct System {
    /// Sums that are 0.
    pub(crate) equal: Vec<Linear>,
    /// Sums that are 0 or more.
    pub(crate) at_least: Vec<Linear>,
    /// How many variables there are.
    pub(crate) variables: usize,
}

/// How many systems are looked at for a question before it is given up.
const BUDGET: usize = 20_000;
/// How many inequalities a system may have.
const MAX_CONSTRAINTS: usize = 600;

impl System {
    /// A new variable.
    pub(crate) fn variable(&mut self) -> usize {
        self.variables += 1;
        self.variables - 1
    }

    /// Whether there is a solution in integers; `None` if that takes too long to find out.
    pub(crate) fn has_solution(&self) -> Option<bool> {
        self.clone().solve(&mut { BUDGET })
    }

    /// Divides constraints by what their coefficients have in common. Whether none of them is impossible.
    fn tighten(&mut self) -> bool {
        let mut possible = true;
        self.equal.retain_mut(|sum| {
            let divisor = sum.divisor();
            match divisor {
                0 => possible &= sum.number == 0,
                _ => {
                    possible &= sum.number % divisor == 0;
                    sum.factors.iter_mut().for_each(|factor| *factor /= divisor);
                    sum.number /= divisor;
                }
            }
            divisor != 0
        });
        self.at_least.retain_mut(|sum| {
            let divisor = sum.divisor();
            match divisor {
                0 => possible &= sum.number >= 0,
                _ => {
                    sum.factors.iter_mut().for_each(|factor| *factor /= divisor);
                    sum.number = sum.number.div_euclid(divisor);
                }
            }
            divisor != 0
        });
        possible
    }

    fn solve(mut self, budget: &mut usize) -> Option<bool> {
        loop {
            *budget = budget.checked_sub(1)?;
            if !self.tighten() {
                return Some(false);
            }
            if let Some(sum) = self.equal.pop() {
                self.solve_for(sum)?;
                continue;
            }
            if !self.merge()? {
                return Some(false);
            }
            if !self.equal.is_empty() {
                continue;
            }
            let Some((variable, is_exact)) = self.cheapest() else {
                return Some(true);
            };
            if is_exact {
                self = self.shadow(variable, false)?;
                continue;
            }
            return self.look_between(variable, budget);
        }
    }

    /// Solves an equality for a variable, and puts that in place of it.
    fn solve_for(&mut self, sum: Linear) -> Option<()> {
        let mut used = sum
            .factors
            .iter()
            .enumerate()
            .filter(|(_, factor)| **factor != 0);
        let first = used.next()?;
        let least = used.fold(first, |least, next| match next.1.abs() < least.1.abs() {
            true => next,
            false => least,
        });
        let (variable, factor) = (least.0, *least.1);
        if factor.abs() == 1 {
            let mut rest = sum.clone();
            rest.factors[variable] = 0;
            return self.put(variable, &rest.times(-factor)?);
        }
        // A change of variables, with which the coefficients become smaller.
        let modulus = factor.abs() + 1;
        let rest_of =
            |number: i128| number - modulus * (2 * number + modulus).div_euclid(2 * modulus);
        let sign = factor.signum();
        let fresh = self.variable();
        let mut by = Linear {
            factors: sum
                .factors
                .iter()
                .map(|&other| sign * rest_of(other))
                .collect(),
            number: sign * rest_of(sum.number),
        };
        by.factors[variable] = 0;
        let by = by.plus(&Linear::variable(fresh), -sign * modulus)?;
        self.equal.push(sum);
        self.put(variable, &by)
    }

    /// Puts a sum in the place of a variable everywhere.
    fn put(&mut self, variable: usize, by: &Linear) -> Option<()> {
        for sum in self.equal.iter_mut().chain(&mut self.at_least) {
            *sum = sum.put(variable, by)?;
        }
        Some(())
    }

    /// Leaves of inequalities with the same coefficients the narrowest, and makes two that leave one number an
    /// equality. Whether none contradict each other.
    fn merge(&mut self) -> Option<bool> {
        let mut narrowest: HashMap<Vec<i128>, i128> = HashMap::new();
        for mut sum in self.at_least.drain(..) {
            while sum.factors.last() == Some(&0) {
                sum.factors.pop();
            }
            let number = narrowest.entry(sum.factors).or_insert(sum.number);
            *number = sum.number.min(*number);
        }
        if narrowest.len() > MAX_CONSTRAINTS {
            return None;
        }
        let mut sums: Vec<_> = narrowest.iter().collect();
        sums.sort();
        for (factors, &number) in sums {
            let negated: Vec<i128> = factors.iter().map(|factor| -factor).collect();
            let sum = Linear {
                factors: factors.clone(),
                number,
            };
            match narrowest
                .get(&negated)
                .map(|other| number.saturating_add(*other))
            {
                Some(..0) => return Some(false),
                Some(0) if *factors < negated => self.equal.push(sum),
                Some(0) => {}
                Some(_) | None => self.at_least.push(sum),
            }
        }
        Some(true)
    }

    /// The variable whose elimination leaves the fewest inequalities, of those that are eliminated exactly if there
    /// are some, and whether it is.
    fn cheapest(&self) -> Option<(usize, bool)> {
        let cost = |variable: usize| {
            let factors = self.at_least.iter().map(|sum| sum.factor(variable));
            let (mut low, mut high, mut low_is_one, mut high_is_one) = (0i64, 0i64, true, true);
            for factor in factors {
                match factor {
                    0 => {}
                    1.. => (low, low_is_one) = (low + 1, low_is_one && factor == 1),
                    ..0 => (high, high_is_one) = (high + 1, high_is_one && factor == -1),
                }
            }
            let is_exact = low == 0 || high == 0 || low_is_one || high_is_one;
            (low + high > 0).then_some((!is_exact, low * high - low - high, variable))
        };
        let (inexact, _, variable) = (0..self.variables).filter_map(cost).min()?;
        Some((variable, !inexact))
    }

    /// Pairs of a lower and an upper bound of a variable, and the rest.
    fn bounds(&self, variable: usize) -> [Vec<&Linear>; 3] {
        let mut bounds = [Vec::new(), Vec::new(), Vec::new()];
        for sum in &self.at_least {
            let kind = match sum.factor(variable) {
                1.. => 0,
                ..0 => 1,
                0 => 2,
            };
            bounds[kind].push(sum);
        }
        bounds
    }

    /// The system without a variable: of all numbers, or where it certainly has an integer between its bounds.
    fn shadow(&self, variable: usize, dark: bool) -> Option<System> {
        let [low, high, rest] = self.bounds(variable);
        let mut at_least: Vec<Linear> = rest.into_iter().cloned().collect();
        if low.len() * high.len() > MAX_CONSTRAINTS * 4 {
            return None;
        }
        for low in &low {
            for high in &high {
                let (a, b) = (low.factor(variable), -high.factor(variable));
                let mut sum = low.times(b)?.plus(high, a)?;
                if dark {
                    sum.number = sum.number.checked_sub((a - 1).checked_mul(b - 1)?)?;
                }
                at_least.push(sum);
            }
        }
        Some(System {
            equal: Vec::new(),
            at_least,
            variables: self.variables,
        })
    }

    /// Eliminates a variable none of whose sides has coefficients of 1 only.
    fn look_between(&self, variable: usize, budget: &mut usize) -> Option<bool> {
        if !self.shadow(variable, false)?.solve(budget)? {
            return Some(false);
        }
        if self.shadow(variable, true)?.solve(budget)? {
            return Some(true);
        }
        let [low, high, _] = self.bounds(variable);
        let most = high.iter().map(|sum| -sum.factor(variable)).max()?;
        for bound in low {
            let factor = bound.factor(variable);
            let last = (most.checked_mul(factor)? - most - factor).div_euclid(most);
            for above in 0..=last {
                let mut system = self.clone();
                let mut sum = bound.clone();
                sum.number = sum.number.checked_sub(above)?;
                system.equal.push(sum);
                if system.solve(budget)? {
                    return Some(true);
                }
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from a seed (xorshift64).
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }

        fn within(&mut self, size: i128) -> i128 {
            i128::from(self.below(2 * size as u64 + 1)) - size
        }
    }

    /// How far variables go from 0 in random systems.
    const SIZE: i128 = 4;

    fn random(numbers: &mut Numbers, variables: usize) -> System {
        let mut system = System {
            variables,
            ..System::default()
        };
        for variable in 0..variables {
            for sign in [1, -1] {
                let bound = Linear::variable(variable).times(sign).expect("it is small");
                system
                    .at_least
                    .push(bound.plus(&Linear::number(SIZE), 1).expect("it is small"));
            }
        }
        for _ in 0..1 + numbers.below(3) {
            let sum = Linear {
                factors: (0..variables).map(|_| numbers.within(7)).collect(),
                number: numbers.within(20),
            };
            match numbers.below(3) {
                0 => system.equal.push(sum),
                _ => {
                    let width = numbers.below(4).into();
                    system.at_least.push(sum.clone());
                    let other = sum.times(-1).expect("it is small");
                    system
                        .at_least
                        .push(other.plus(&Linear::number(width), 1).expect("it is small"));
                }
            }
        }
        system
    }

    /// Whether one of all points within the bounds is a solution.
    fn by_trial(system: &System) -> bool {
        let count = (2 * SIZE + 1).pow(system.variables as u32);
        (0..count).any(|mut number| {
            let point: Vec<i128> = (0..system.variables)
                .map(|_| {
                    let place = number % (2 * SIZE + 1) - SIZE;
                    number /= 2 * SIZE + 1;
                    place
                })
                .collect();
            let value = |sum: &Linear| {
                let terms = sum
                    .factors
                    .iter()
                    .zip(&point)
                    .map(|(factor, place)| factor * place);
                sum.number + terms.sum::<i128>()
            };
            system.equal.iter().all(|sum| value(sum) == 0)
                && system.at_least.iter().all(|sum| value(sum) >= 0)
        })
    }

    #[test]
    fn random_systems_are_solved_as_by_trial() {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        let (mut with, mut without, mut given_up) = (0, 0, 0);
        for number in 0..6000 {
            let system = random(&mut numbers, 1 + number % 4);
            let wanted = by_trial(&system);
            match system.has_solution() {
                Some(found) => assert_eq!(found, wanted, "{number}: {system:?}"),
                None => given_up += 1,
            }
            *(if wanted { &mut with } else { &mut without }) += 1;
        }
        assert!(
            with > 1000 && without > 1000,
            "{with} with, {without} without"
        );
        assert!(given_up < 30, "{given_up} given up");
    }

    #[test]
    fn large_numbers_are_given_up_and_do_not_overflow() {
        let large = Linear {
            factors: vec![i128::MAX / 2, 3],
            number: i128::MAX / 2,
        };
        let system = System {
            equal: Vec::new(),
            at_least: vec![
                large.clone(),
                large.times(-1).expect("it fits"),
                Linear {
                    factors: vec![7, -5],
                    number: 0,
                },
            ],
            variables: 2,
        };
        assert!(matches!(system.has_solution(), None | Some(true)));
    }
}
