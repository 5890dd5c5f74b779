//! A front end: texts such as `a * x + sqrt(y)` become kernels that write an expression's value for
//! each index. An expression ends with the text, or at a `;`.

use kiln::core::prelude::*;
use kiln::prelude::*;

/// What reads one text, for the thread `i`.
struct Reader<'t, 'k> {
    k: &'k KernelBuilder,
    text: &'t str,
    at: usize,
    names: &'t [(&'t str, Val<'k>)],
    i: Val<'k>,
}

type Read<T> = Result<T, String>;

impl<'k> Reader<'_, 'k> {
    fn next(&mut self) -> char {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        rest.trim_start().chars().next().unwrap_or(';')
    }

    fn take(&mut self, wanted: char) -> Read<()> {
        let found = self.next();
        self.at += wanted.len_utf8();
        (found == wanted)
            .then_some(())
            .ok_or(format!("`{wanted}` in place of `{found}`"))
    }

    fn here<R>(&self, column: usize, build: impl FnOnce() -> R) -> R {
        self.k.at("expression", 1, column as u32 + 1, build)
    }

    fn sum(&mut self, level: usize) -> Read<Val<'k>> {
        let operators = [['+', '-'], ['*', '/']][level];
        let operand = |reader: &mut Self| match level {
            0 => reader.sum(1),
            _ => reader.factor(),
        };
        let mut value = operand(self)?;
        while operators.contains(&self.next()) {
            let (column, operator) = (self.at, self.next());
            self.at += 1;
            let right = operand(self)?;
            value = self.here(column, || match operator {
                '+' => value + right,
                '-' => value - right,
                '*' => value * right,
                _ => value / right,
            });
        }
        Ok(value)
    }

    fn factor(&mut self) -> Read<Val<'k>> {
        let (first, column) = (self.next(), self.at);
        let rest = &self.text[self.at..];
        let word = rest
            .split(|c: char| !c.is_alphanumeric() && c != '.')
            .next()
            .unwrap_or("");
        self.at += word.len();
        if word.is_empty() {
            self.take('(')?;
            let value = self.sum(0)?;
            return self.take(')').map(|()| value);
        }
        if first.is_numeric() {
            let number: f32 = word.parse().map_err(|_| format!("`{word}` is no number"))?;
            return Ok(self.k.lit(Type::F32, number));
        }
        if word == "sqrt" {
            return self
                .factor()
                .map(|value| self.here(column, || value.sqrt()));
        }
        let named = self.names.iter().find(|(name, _)| *name == word);
        let (_, value) = *named.ok_or(format!("`{word}` is nothing"))?;
        Ok(match self.k.type_data(value.ty()) {
            TypeData::Slice { .. } => self.here(column, || value.at(self.i).get()),
            _ => value,
        })
    }
}

/// The kernel of an expression of numbers and slices, its parameters behind the slice that it writes.
pub fn expression(text: &str, numbers: &[&str], slices: &[&str]) -> Result<Kernel, kiln::Error> {
    Kernel::build("expression", |k| {
        let out = k.slice_mut("out", Type::F32);
        let number = numbers.iter().map(|name| (*name, k.param(name, Type::F32)));
        let slice = slices.iter().map(|name| (*name, k.slice(name, Type::F32)));
        let names: Vec<_> = number.chain(slice).collect();
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            let mut reader = Reader {
                k,
                text,
                at: 0,
                names: &names,
                i,
            };
            match reader
                .sum(0)
                .and_then(|value| reader.take(';').map(|()| value))
            {
                Ok(value) => out.at(i).set(value),
                Err(what) => {
                    let _ = reader.here(reader.at, || k.intrinsic_error(what, Type::F32));
                }
            }
        });
    })
}

#[cfg(test)]
mod tests {
    use kiln::core::prelude::*;
    use kiln::prelude::*;

    use super::expression;
    use crate::machines::{cpu, interpreter, ptx};

    #[test]
    fn an_expression_is_a_kernel() -> kiln::Result<()> {
        let kernel = expression("a * x + sqrt(y) / (1 + 3)", &["a"], &["x", "y"])?;
        for jit in [cpu(Hook::new("none")), interpreter(Hook::new("none"))] {
            let (x, y) = (jit.upload(&[1.0f32, 2.0])?, jit.upload(&[16.0f32, 4.0])?);
            let mut out = jit.zeros::<f32>(2)?;
            jit.launch(&kernel, 1, 32, args!(&mut out, 2.0f32, &x, &y))?;
            assert_eq!(out.to_vec()?, [3.0, 4.5]);
            // `y` is too short, and is named in column 14.
            let y = jit.upload(&[16.0f32])?;
            let launched = jit.launch(&kernel, 1, 32, args!(&mut out, 2.0f32, &x, &y));
            let fault = launched
                .and_then(|()| out.to_vec())
                .unwrap_err()
                .to_string();
            assert!(fault.contains("expression:1:14"), "{fault}");
        }
        let jit = ptx(Hook::new("none"));
        let (x, mut out) = (jit.zeros::<f32>(1)?, jit.zeros::<f32>(1)?);
        let inspected = jit.inspect(&kernel, args!(&mut out, 2.0f32, &x, &x))?;
        assert!(inspected.ptx()?.contains("rsqrt.approx.ftz.f32 r"));
        Ok(())
    }

    #[test]
    fn mistakes_are_at_their_columns() {
        for (text, place, what) in [
            ("a + q", "expression:1:6", "`q` is nothing"),
            ("(a + 1", "expression:1:8", "`)` in place of `;`"),
            ("a * 1x", "expression:1:7", "`1x` is no number"),
            ("a a", "expression:1:4", "`;` in place of `a`"),
        ] {
            let error = expression(text, &["a"], &[]).unwrap_err().to_string();
            assert!(
                error.contains(place) && error.contains(what),
                "{text}: {error}"
            );
        }
    }
}
