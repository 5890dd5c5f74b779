//! Segments of a vector, which begin where an array says: each folded, scanned or sorted by itself.
//!
//! The folds of segments have a thread each. Running ones are those of the whole vector by an operator that begins anew
//! where a segment does, and segments are sorted by putting all elements in order first, and then, without a change among
//! those of one segment, in that of their segments: both go through the elements alike, however long segments are.

use std::sync::Arc;

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::{Type, Unroll};
use kiln_kernel_macro::KernelType;

use crate::expr::Node;
use crate::function::{Applied, FunctionName, NodeFn};
use crate::neighbor::Reads;
use crate::search::search;
use crate::sort::{SortElement, in_groups};
use crate::{Array, Element, ElementFn, Expr, Result, Side};

/// An element, and whether a segment begins with it or with one before it.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Segmented<T> {
    value: T,
    begins: u32,
}

/// A function of values of a kernel.
fn function(f: impl for<'k> Fn(&[Val<'k>]) -> Val<'k> + Send + Sync + 'static) -> Arc<NodeFn> {
    Arc::new(f)
}

/// The operator that folds what belongs to one segment, and forgets what belongs to those before.
fn within_segments<T: Element>(op: Applied) -> Applied {
    let name = op.name.as_ref();
    let name = name.map(|name| FunctionName::Operation(format!("within segments {name:?}").into()));
    let describe = op.describe;
    Applied {
        describe: function(move |args| {
            let (a, b) = (args[0], args[1]);
            let k = a.builder();
            let begins = b.field("begins");
            let value = k.var("value", b.field("value"));
            k.if_(begins.eq(0u32), || {
                let both = [a.field("value"), value.get()];
                value.set(describe(&[both.as_slice(), &args[2..]].concat()));
            });
            let parts = [value.get(), a.field("begins") | begins];
            k.construct(k.ty::<Segmented<T>>(), &parts)
        }),
        name,
        captures: op.captures,
    }
}

impl<T: Element> Array<T> {
    /// For each element whether a segment begins with it.
    fn beginnings(&self, starts: &Array<u32>) -> Expr<u32> {
        let mut reads = Reads::of(starts);
        let numbers = [
            starts.len() as u32,
            starts.layout.offset as u32,
            starts.strides()[0] as u32,
        ];
        numbers.into_iter().for_each(|number| reads.number(number));
        reads.coordinate(&self.arrays, self.shape(), 0);
        let name = Some(FunctionName::Operation("begins".into()));
        let at = (&self.arrays, Ok(self.shape().clone()));
        reads.apply(at, name, |args| {
            let (starts, count, first, by, i) = (args[0], args[1], args[2], args[3], args[4]);
            let k = i.builder();
            let (found, begins) = (search(args, Side::Left), k.var("begins", k.zero(Type::U32)));
            k.if_(found.lt(count), || {
                let start = starts.at(first + found * by).get();
                begins.set(start.eq(i).select(1u32, 0u32));
            });
            begins.get()
        })
    }

    /// In each segment of a vector what its elements up to each of them come to, with it, by an associative operation,
    /// which need not be commutative (a segmented scan). Segments are those of [`Array::reduce_segments`], and what is
    /// before the first start is one of its own. Elements may be structs.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1, 2, 3, 4, 5])?;
    /// let starts = arrays.vector(vec![0u32, 2])?;
    /// let sums = x.accumulate_segments(&starts, device!(|a, b| a + b))?;
    /// assert_eq!(sums.to_vec()?, [1, 3, 3, 7, 12]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What is no vector; those of [`Array::accumulate`].
    pub fn accumulate_segments(
        &self,
        starts: &Array<u32>,
        op: ElementFn<(T, T), T>,
    ) -> Result<Array<T>> {
        self.vector("the elements of segments", 0)?;
        starts.vector("the starts of segments", 0)?;
        let beginnings = self.beginnings(starts);
        let pairs =
            self.expr()
                .binary::<u32, Segmented<T>>(beginnings, "segmented", |x, begins| {
                    let k = x.builder();
                    k.construct(k.ty::<Segmented<T>>(), &[x.cast(k.ty::<T>()), begins])
                });
        let op = within_segments::<T>(op.applied);
        let folds = crate::scan::running(&pairs.eval()?, &op)?;
        folds
            .expr()
            .unary("of segment", |x| x.field("value"))
            .eval()
    }

    /// Each segment of a vector folded: from each of the starts up to the next, the last one to the end (NumPy's
    /// `ufunc.reduceat`, of starts that do not fall): an expression. A thread folds a segment, one element after the other,
    /// so `op` need not be commutative. What begins where the next does, or beyond the end, is the neutral element.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1, 2, 3, 4, 5])?;
    /// let starts = arrays.vector(vec![0u32, 2, 2])?;
    /// let sums = x.reduce_segments(&starts, device!(|a, b| a + b), 0)?;
    /// assert_eq!(sums.eval()?.to_vec()?, [3, 0, 12]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What is no vector, or has 2^32 elements or more.
    pub fn reduce_segments(
        &self,
        starts: &Array<u32>,
        op: ElementFn<(T, T), T>,
        identity: T,
    ) -> Result<Expr<T>> {
        self.vector("the elements of segments", 0)?;
        starts.vector("the starts of segments", 0)?;
        let mut reads = Reads::of(self);
        reads.with(starts);
        reads.coordinate(&self.arrays, starts.shape(), 0);
        let numbers = [
            self.len() as u32,
            self.layout.offset as u32,
            self.strides()[0] as u32,
            starts.len() as u32,
            starts.layout.offset as u32,
            starts.strides()[0] as u32,
        ];
        numbers.into_iter().for_each(|number| reads.number(number));
        reads.number(identity);
        let captures = op.applied.captures.iter();
        let captures = captures.map(|number| Arc::new(Node::Scalar(number.clone())));
        reads.args.extend(captures);
        let name = op.applied.name.as_ref();
        let name = name.map(|name| FunctionName::Operation(format!("segment of {name:?}").into()));
        let describe = op.applied.describe.clone();
        let at = (&self.arrays, Ok(starts.shape().clone()));
        Ok(reads.apply(at, name, move |args| {
            segment(args, args[0].builder().ty::<T>(), &*describe)
        }))
    }
}

/// Of a vector and starts of segments, the number of a segment, of both vectors the length, the first and how far it is
/// to the next, and the neutral element, behind which is what `op` captures: the segment folded.
fn segment<'k>(args: &[Val<'k>], ty: Type, op: &NodeFn) -> Val<'k> {
    let [
        x,
        starts,
        number,
        len,
        first,
        by,
        count,
        starts_first,
        starts_by,
        identity,
        captures @ ..,
    ] = args
    else {
        // There are as many as are passed above.
        return args[0];
    };
    let k = x.builder();
    let start = |number: Val<'k>| starts.at(*starts_first + number * *starts_by).get();
    let end = k.var("end", *len);
    let next = *number + 1u32;
    k.if_(next.lt(*count), || end.set(start(next).min(*len)));
    let sum = k.var("folded", identity.cast(ty));
    k.for_loop(start(*number), end.get(), 1u32, Unroll::Auto, |i| {
        let element = x.at(*first + i * *by).get();
        sum.set(op(&[&[sum.get(), element], captures].concat()));
    });
    sum.get()
}

impl<T: Element + SortElement> Array<T> {
    /// The elements of each segment of a vector in order, the smallest first, NaNs last (a segmented sort). Segments are
    /// those of [`Array::accumulate_segments`].
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![5.0f32, 1.0, 9.0, 4.0, 7.0])?;
    /// let starts = arrays.vector(vec![0u32, 2])?;
    /// assert_eq!(x.sort_segments(&starts)?.to_vec()?, [1.0, 5.0, 4.0, 7.0, 9.0]);
    /// assert_eq!(x.argsort_segments(&starts)?.to_vec()?, [1, 0, 3, 4, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What is no vector; starts on another device; those of [`Array::sort`].
    pub fn sort_segments(&self, starts: &Array<u32>) -> Result<Array<T>> {
        self.take(&self.argsort_segments(starts)?, 0)
    }

    /// Where in the vector the elements are that come first, second and so on in the order of each segment; of alike ones
    /// the first comes first. [`Array::sort_segments`] has an example.
    ///
    /// # Errors
    /// As [`Array::sort_segments`].
    pub fn argsort_segments(&self, starts: &Array<u32>) -> Result<Array<u32>> {
        self.vector("the elements of segments", 0)?;
        starts.vector("the starts of segments", 0)?;
        self.with_device_of(starts)?;
        in_groups(self, starts.len(), |places| {
            starts.searchsorted(places, Side::Right)
        })
    }
}
