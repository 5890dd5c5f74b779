//! Elements beside others: what stencils and convolutions read.
//!
//! A neighbour is an expression, so that a stencil is one kernel whatever it is made of. The array is read where the result's
//! index and the distance say; the border says what stands where there is no element.

use std::panic::Location;
use std::sync::Arc;

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::{Type, Unroll};
use smallvec::SmallVec;

use crate::expr::{Node, Unfit};
use crate::function::FunctionName;
use crate::input::{ArrayInput, ScalarInput};
use crate::{Array, Arrays, Element, Expr, NumberElement, Shape};

/// The most elements along a dimension whose neighbours are found: sums of two of their indices have 32 bits.
const LONGEST: usize = 1 << 30;

/// Distances up to this one are part of a kernel, whose threads then know what several of their elements read; larger ones
/// are numbers that it is passed.
const NEAR: usize = 4;

/// What stands beyond the first and the last element of each dimension.
///
/// ```
/// use kiln::array::Border;
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.vector(vec![1, 2, 3, 4])?;
/// let two_before = |border| x.neighbor([-2], border).eval()?.to_vec();
/// assert_eq!(two_before(Border::Value(0))?, [0, 0, 1, 2]);
/// assert_eq!(two_before(Border::Clamp)?, [1, 1, 1, 2]);
/// assert_eq!(two_before(Border::Wrap)?, [3, 4, 1, 2]);
/// assert_eq!(two_before(Border::Reflect)?, [3, 2, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Border<T> {
    /// This value (NumPy's `constant`).
    Value(T),
    /// The first or the last element (NumPy's `edge`, SciPy's `nearest`).
    Clamp,
    /// The elements from the other end (NumPy's `wrap`).
    Wrap,
    /// The elements in reverse, without the first or the last (NumPy's `reflect`, SciPy's `mirror`).
    Reflect,
}

impl<T> Border<T> {
    /// Without the value.
    fn kind(&self) -> Border<()> {
        match self {
            Border::Value(_) => Border::Value(()),
            Border::Clamp => Border::Clamp,
            Border::Wrap => Border::Wrap,
            Border::Reflect => Border::Reflect,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Border::Value(_) => "value",
            Border::Clamp => "clamp",
            Border::Wrap => "wrap",
            Border::Reflect => "reflect",
        }
    }

    /// A distance that finds the same elements, in a dimension of so many, and is less than two of them.
    fn distance(&self, by: isize, dim: usize) -> i32 {
        let dim = dim as isize;
        let by = match self {
            Border::Value(_) | Border::Clamp => by.clamp(-dim, dim),
            Border::Wrap => by.rem_euclid(dim.max(1)),
            Border::Reflect => {
                let period = (2 * (dim - 1)).max(1);
                let by = by.rem_euclid(period);
                if by > dim - 1 { by - period } else { by }
            }
        };
        by as i32
    }

    /// The index that is `by` from `i`, of `n`, and whether it is one of the array's own.
    fn index<'k>(&self, i: Val<'k>, by: Val<'k>, n: Val<'k>) -> (Val<'k>, Option<Val<'k>>) {
        let at = i.cast(Type::I32) + by;
        let last = n.cast(Type::I32) - 1;
        let clamped = at.max(0).min(last);
        match self {
            Border::Value(_) => (clamped, Some(at.eq(clamped))),
            Border::Clamp => (clamped, None),
            Border::Wrap => (at.gt(last).select(at - last - 1, at), None),
            Border::Reflect => {
                let at = at.lt(0).select(-at, at);
                let at = at.gt(last).select(last * 2 - at, at);
                // Of one element all are that.
                (at.max(0), None)
            }
        }
    }

    /// The index that is `by` from `i`, which is less far from the nearest of the `n` than there are, and whether it is
    /// one of the array's own.
    pub(crate) fn beside<'k>(&self, i: Val<'k>, by: i32, n: Val<'k>) -> (Val<'k>, Option<Val<'k>>) {
        let last = n.cast(Type::I32) - 1;
        let at = i.cast(Type::I32) + by;
        let is_before = by < 0;
        let clamped = if is_before { at.max(0) } else { at.min(last) };
        let is_beyond = if is_before { at.lt(0) } else { at.gt(last) };
        let (at, is_own) = match self {
            _ if by == 0 => (at, None),
            Border::Value(_) => (clamped, Some(at.eq(clamped))),
            Border::Clamp => (clamped, None),
            Border::Wrap if is_before => (is_beyond.select(at + last + 1, at), None),
            Border::Wrap => (is_beyond.select(at - last - 1, at), None),
            Border::Reflect if is_before => (is_beyond.select(-at, at), None),
            Border::Reflect => (is_beyond.select(last * 2 - at, at), None),
        };
        (at.cast(Type::U32), is_own)
    }
}

/// A neighbour whose distances are part of the kernel: of an array, the places of its own elements, a value beyond the
/// border if there is one, and for each dimension along which it lies elsewhere the index, the extent and the distance of
/// two elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Near {
    pub(crate) border: Border<()>,
    by: SmallVec<[i32; 3]>,
}

/// What a neighbour takes of a dimension.
pub(crate) struct Along<A> {
    pub(crate) index: A,
    pub(crate) extent: A,
    stride: A,
    pub(crate) by: i32,
}

impl Near {
    /// The operation as names have it.
    pub(crate) fn name(&self) -> &'static str {
        match self.border {
            Border::Value(()) => "neighbor_value",
            Border::Clamp => "neighbor_clamp",
            Border::Wrap => "neighbor_wrap",
            Border::Reflect => "neighbor_reflect",
        }
    }

    /// What stands beyond the border, if that is passed.
    pub(crate) fn value<A: Copy>(&self, args: &[A]) -> Option<A> {
        (self.border == Border::Value(())).then(|| args[2])
    }

    /// The arguments for each dimension.
    pub(crate) fn along<A: Copy>(&self, args: &[A]) -> impl Iterator<Item = Along<A>> {
        let axes = args[first_of_axes(self.border)..].chunks_exact(3);
        axes.zip(&self.by).map(|(axis, by)| Along {
            index: axis[0],
            extent: axis[1],
            stride: axis[2],
            by: *by,
        })
    }

    fn element<'k>(&self, args: &[Val<'k>]) -> Val<'k> {
        let found = |along: Along<Val<'k>>| {
            let (at, own) = self.border.beside(along.index, along.by, along.extent);
            ((at - along.index) * along.stride, own)
        };
        element(args, self.border, self.along(args).map(found))
    }
}

/// The arguments of a function that reads arrays where it likes.
pub(crate) struct Reads {
    pub(crate) args: Vec<Arc<Node>>,
}

impl Reads {
    /// The whole of an array.
    pub(crate) fn of<T: Element>(x: &Array<T>) -> Reads {
        let whole = Node::Whole(Arc::new(ArrayInput(x.buffer.clone())));
        Reads {
            args: vec![Arc::new(whole)],
        }
    }

    pub(crate) fn with<T: Element>(&mut self, x: &Array<T>) {
        self.args.extend(Reads::of(x).args);
    }

    pub(crate) fn number<T: Element>(&mut self, number: T) {
        self.args
            .push(Arc::new(Node::Scalar(Arc::new(ScalarInput(number)))));
    }

    pub(crate) fn expr<T: Element>(&mut self, expr: &Expr<T>) {
        self.args.push(expr.node.clone());
    }

    /// The index of the result along a dimension.
    pub(crate) fn coordinate(&mut self, arrays: &Arrays, shape: &Shape, axis: usize) {
        self.expr(&arrays.coordinates(shape, axis as isize));
    }

    /// The function of them, for the elements of a result of this shape.
    pub(crate) fn apply<T: Element>(
        self,
        (arrays, shape): (&Arrays, Result<Shape, Unfit>),
        name: Option<FunctionName>,
        f: impl for<'k> Fn(&[Val<'k>]) -> Val<'k> + Send + Sync + 'static,
    ) -> Expr<T> {
        let mut expr = Expr::applied(self.args, name, f);
        expr.arrays = Some(arrays.clone());
        expr.shape = shape;
        expr
    }
}

impl<T: Element> Array<T> {
    /// Refuses an array of more elements than 32 bits tell apart, where an operation needs that.
    pub(crate) fn narrow(&self, operation: &'static str) -> Result<(), Unfit> {
        let most = u32::MAX as usize;
        match self.len() <= most && self.buffer.len() <= most {
            true => Ok(()),
            false => Err(Unfit::Many(operation, self.shape().clone())),
        }
    }

    /// For each element the one that lies so far from it along each dimension: an expression, which is computed where it is
    /// used. Beyond the ends stands what the border says; [`Border`] has an example of each. A stencil is one kernel:
    ///
    /// ```
    /// use kiln::array::Border;
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let heat = arrays.array(vec![0.0f32, 0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0], (3, 3))?;
    /// let at = |di, dj| heat.neighbor([di, dj], Border::Clamp);
    /// let flow = at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) - 4.0 * &heat;
    /// let next = (&heat + 0.125 * flow).eval()?;
    /// assert_eq!(next.to_vec()?, [0.0, 1.0, 0.0, 1.0, 4.0, 1.0, 0.0, 1.0, 0.0]);
    /// assert_eq!(arrays.launches(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Distances up to 4 are part of the kernel, of which threads of a GPU read once what several of their elements need;
    /// larger ones are numbers, so that one kernel is for all of them.
    ///
    /// It is an error of what is computed if there are more or fewer distances than dimensions, or more than 2^30 elements
    /// along one of them.
    #[track_caller]
    pub fn neighbor(&self, by: impl AsRef<[isize]>, border: Border<T>) -> Expr<T> {
        let (by, dims, place) = (by.as_ref(), self.dims(), Location::caller());
        let shape = match self.narrow("a neighbour") {
            Err(unfit) => Err(unfit),
            Ok(()) if by.len() != dims.len() => Err(Unfit::Items(by.len(), self.shape().clone())),
            Ok(()) if dims.iter().any(|dim| *dim > LONGEST) => {
                Err(Unfit::Many("a neighbour", self.shape().clone()))
            }
            Ok(()) => Ok(self.shape().clone()),
        };
        let shape = shape.map_err(|unfit| unfit.at(place));
        let mut reads = Reads::of(self);
        reads.args.push(Arc::new(Node::Place(self.layout.clone())));
        if let Border::Value(value) = border {
            reads.number(value);
        }
        let is_near = by.iter().zip(dims).all(|(by, dim)| is_near(*by, *dim));
        let along = by.iter().zip(dims).zip(self.strides()).enumerate();
        let moved = along.filter_map(|(axis, ((by, dim), stride))| {
            let by = match is_near {
                true => *by as i32,
                false => border.distance(*by, *dim),
            };
            (by != 0).then_some((axis, *dim, *stride, by))
        });
        let moved: SmallVec<[_; 3]> = moved.filter(|_| shape.is_ok()).collect();
        for (axis, dim, stride, _) in &moved {
            reads.coordinate(&self.arrays, self.shape(), *axis);
            reads.number(*dim as u32);
            // Sums of distances are right modulo 2^32.
            reads.number(*stride as u32);
        }
        let at = (&self.arrays, shape);
        let border = border.kind();
        if is_near {
            let by = moved.iter().map(|(.., by)| *by).collect();
            let near = Near { border, by };
            let name = Some(FunctionName::Neighbor(near.clone()));
            return reads.apply(at, name, move |args| near.element(args));
        }
        let mut name = format!("neighbor_{} of", border.name());
        for (axis, _, _, by) in &moved {
            reads.number(*by);
            name.push_str(&format!(" {axis}"));
        }
        let name = Some(FunctionName::Operation(name.into()));
        reads.apply(at, name, move |args| far_neighbor(args, border))
    }
}

/// Whether a distance is part of a kernel, in a dimension of so many elements.
fn is_near(by: isize, dim: usize) -> bool {
    let far = by.unsigned_abs();
    far <= NEAR && (far < dim || far == 0)
}

/// Where the arguments for dimensions begin.
fn first_of_axes(border: Border<()>) -> usize {
    match border {
        Border::Value(()) => 3,
        Border::Clamp | Border::Wrap | Border::Reflect => 2,
    }
}

/// A neighbour whose distances are passed behind what it takes of dimensions.
fn far_neighbor<'k>(args: &[Val<'k>], border: Border<()>) -> Val<'k> {
    let axes = &args[first_of_axes(border)..];
    let (axes, distances) = axes.split_at(axes.len() / 4 * 3);
    let found = |(axis, by): (&[Val<'k>], &Val<'k>)| {
        let (at, own) = border.index(axis[0], *by, axis[1]);
        ((at.cast(Type::U32) - axis[0]) * axis[2], own)
    };
    element(args, border, axes.chunks_exact(3).zip(distances).map(found))
}

/// The element of an array that lies so far from the one whose place is given, or the value beyond the border.
fn element<'k>(
    args: &[Val<'k>],
    border: Border<()>,
    found: impl Iterator<Item = (Val<'k>, Option<Val<'k>>)>,
) -> Val<'k> {
    let (mut place, mut is_own) = (args[1], None);
    for (distance, own) in found {
        place = place + distance;
        is_own = both(is_own, own);
    }
    let element = args[0].at(place).get();
    match (is_own, border) {
        (Some(is_own), Border::Value(())) => is_own.select(element, args[2].cast(element.ty())),
        _ => element,
    }
}

/// Whether both hold, of which none may be a question.
pub(crate) fn both<'k>(a: Option<Val<'k>>, b: Option<Val<'k>>) -> Option<Val<'k>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a & b),
        (a, b) => a.or(b),
    }
}

/// Which elements of a convolution are given.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Convolved {
    /// All that an element goes into: more than there are elements.
    Full,
    /// As many as there are elements, those in the middle of all (SciPy's `same`).
    Same,
    /// The sums that elements go into alone, and nothing beyond the ends.
    Valid,
}

impl<T: NumberElement> Array<T> {
    /// The convolution with weights of as many dimensions (`scipy.signal.convolve`, `numpy.convolve`), zeros standing beyond
    /// the ends: an expression, which is computed where it is used. Each element goes through all weights, so this is for
    /// few of them.
    ///
    /// ```
    /// use kiln::array::Convolved;
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1, 2, 3])?;
    /// let weights = arrays.vector(vec![0, 1, 10])?;
    /// let by = |which| x.convolve(&weights, which).eval()?.to_vec();
    /// assert_eq!(by(Convolved::Full)?, [0, 1, 12, 23, 30]);
    /// assert_eq!(by(Convolved::Same)?, [1, 12, 23]);
    /// assert_eq!(by(Convolved::Valid)?, [12]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It is an error of what is computed if there are other dimensions, no weights, or more than elements with
    /// [`Convolved::Valid`].
    #[track_caller]
    pub fn convolve(&self, weights: &Array<T>, which: Convolved) -> Expr<T> {
        let place = Location::caller();
        let shape = self.convolved(weights, which);
        let shape = shape.map_err(|unfit| unfit.at(place));
        let mut reads = Reads::of(self);
        reads.with(weights);
        reads.number(self.layout.offset as u32);
        reads.number(weights.layout.offset as u32);
        let rank = self.rank();
        if let Ok(shape) = &shape {
            for axis in 0..rank {
                let count = weights.dims()[axis];
                let first = match which {
                    Convolved::Full => 0,
                    Convolved::Same => (count - 1) / 2,
                    Convolved::Valid => count - 1,
                };
                reads.coordinate(&self.arrays, shape, axis);
                let numbers = [
                    self.dims()[axis] as u32,
                    self.strides()[axis] as u32,
                    count as u32,
                    weights.strides()[axis] as u32,
                    first as u32,
                ];
                numbers.into_iter().for_each(|number| reads.number(number));
            }
        }
        let name = Some(FunctionName::Operation(format!("convolve {rank}").into()));
        reads.apply((&self.arrays, shape), name, convolved::<T>)
    }

    fn convolved(&self, weights: &Array<T>, which: Convolved) -> Result<Shape, Unfit> {
        self.narrow("a convolution")?;
        weights.narrow("a convolution")?;
        if self.rank() != weights.rank() || weights.is_empty() || self.rank() == 0 {
            return Err(Unfit::Shape(crate::ShapeMismatch {
                left: self.shape().clone(),
                right: weights.shape().clone(),
                at: None,
            }));
        }
        let dims = self.dims().iter().zip(weights.dims()).enumerate();
        let dims = dims.map(|(axis, (dim, count))| match which {
            Convolved::Full => Ok(dim + count - 1),
            Convolved::Same => Ok(*dim),
            Convolved::Valid => match (dim + 1).checked_sub(*count) {
                Some(left) => Ok(left),
                None => Err(Unfit::Window(*count, axis, self.shape().clone())),
            },
        });
        let shape = Shape::of(dims.collect::<Result<Vec<_>, _>>()?);
        match shape.len() <= u32::MAX as usize {
            true => Ok(shape),
            false => Err(Unfit::Many("a convolution", shape)),
        }
    }
}

/// Of arrays, where they begin, and for each dimension the index of the result, extents, distances and which weight is the
/// first: the sum of the products.
fn convolved<'k, T: NumberElement>(args: &[Val<'k>]) -> Val<'k> {
    let k = args[0].builder();
    let ty = k.ty::<T::Accumulator>();
    let ty = if T::IS_FLOAT { ty } else { k.ty::<T>() };
    let sum = k.var("convolved", k.zero(ty));
    let add = |x: Val<'k>, w: Val<'k>| {
        let product = args[0].at(x).get().cast(ty) * args[1].at(w).get().cast(ty);
        sum.set(sum.get() + product);
    };
    along(&args[4..], (args[2], args[3]), &add);
    sum.get()
}

/// Goes along the first of the dimensions that are left, from these places of elements and weights.
fn along<'k>(axes: &[Val<'k>], (x, w): (Val<'k>, Val<'k>), add: &dyn Fn(Val<'k>, Val<'k>)) {
    let [i, n, by, count, weights_by, first, rest @ ..] = axes else {
        add(x, w);
        return;
    };
    let k = x.builder();
    k.for_loop(0u32, *count, 1u32, Unroll::Auto, |weight| {
        // Before the first element it is a large number.
        let at = *i + *first - weight;
        k.if_(at.lt(*n), || {
            along(rest, (x + at * *by, w + weight * *weights_by), add)
        });
    });
}
