//! Arrays as texts: elements, shape, type, device.

use std::fmt::{self, Debug, Display};

use crate::{Array, Element, Result};

/// An array of more elements is shortened.
const THRESHOLD: usize = 1000;
/// How many elements are shown at either end of a dimension that is shortened.
const EDGE: usize = 3;

/// The texts of an array's elements, or of some of them, in brackets for each dimension.
enum Text {
    Element(String),
    Row(Vec<Text>),
    Gap,
}

impl Text {
    fn of<T: Element + Debug>(array: &Array<T>, shortened: bool) -> Result<Text> {
        let Some(dim) = array.dims().first().copied() else {
            return Ok(Text::Element(format!("{:?}", array.item()?)));
        };
        let parts: &[(usize, usize)] = match shortened && dim > 2 * EDGE {
            true => &[(0, EDGE), (dim - EDGE, dim)],
            false => &[(0, dim)],
        };
        let mut row = Vec::new();
        for (at, (start, end)) in parts.iter().enumerate() {
            if at > 0 {
                row.push(Text::Gap);
            }
            if array.rank() == 1 {
                let part = array.slice([(*start..*end).into()])?;
                let elements = part.to_vec()?;
                row.extend(
                    elements
                        .iter()
                        .map(|element| Text::Element(format!("{element:?}"))),
                );
                continue;
            }
            for index in *start..*end {
                row.push(Text::of(&array.index_axis(0, index as isize)?, shortened)?);
            }
        }
        Ok(Text::Row(row))
    }

    fn width(&self) -> usize {
        match self {
            Text::Element(text) => text.chars().count(),
            Text::Row(row) => row.iter().map(Text::width).max().unwrap_or(0),
            Text::Gap => 0,
        }
    }

    /// Whether there are rows in it, which are written one below the other.
    fn is_deep(&self) -> bool {
        matches!(self, Text::Row(row) if row.iter().any(|text| matches!(text, Text::Row(_))))
    }

    fn height(&self) -> usize {
        match self {
            Text::Row(row) => 1 + row.iter().map(Text::height).max().unwrap_or(0),
            Text::Element(_) | Text::Gap => 0,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, width: usize, depth: usize) -> fmt::Result {
        match self {
            Text::Element(text) => write!(f, "{text:>width$}"),
            Text::Gap => f.write_str("..."),
            Text::Row(row) => {
                f.write_str("[")?;
                for (at, text) in row.iter().enumerate() {
                    if at > 0 && self.is_deep() {
                        let lines = "\n".repeat(self.height() - 1);
                        write!(f, ",{lines}{:depth$}", "")?;
                    } else if at > 0 {
                        f.write_str(", ")?;
                    }
                    text.write(f, width, depth + 1)?;
                }
                f.write_str("]")
            }
        }
    }
}

/// The elements, and behind them shape, type and device. Of more than 1000 elements each dimension shows the first and the
/// last three.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::on(Device::cpu()));
/// let x = arrays.array(vec![1.0f32, -2.5, 300.0, 4.0], (2, 2))?;
/// assert!(x.to_string().starts_with("[[  1.0,  -2.5],\n [300.0,   4.0]]\n2x2 f32 on CPU device"));
/// let long = arrays.arange(0, 5000, 1)?.to_string();
/// assert!(long.starts_with("[   0,    1,    2, ..., 4997, 4998, 4999]\n5000 i32 on"));
/// # Ok(())
/// # }
/// ```
impl<T: Element + Debug> Display for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Text::of(self, self.len() > THRESHOLD) {
            Ok(text) => text.write(f, text.width(), 1)?,
            Err(error) => write!(f, "<{error}>")?,
        }
        let name = std::any::type_name::<T>();
        let name = name.rsplit("::").next().unwrap_or(name);
        write!(
            f,
            "\n{} {name} on {}",
            self.shape(),
            self.buffer.device_id()
        )
    }
}

impl<T: Element + Debug> Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}
