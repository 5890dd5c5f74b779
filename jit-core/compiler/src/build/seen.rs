//! Memory seen as elements of another type: parts of dynamic shared memory, and slices that are cast.

use crate::ir::{AddressSpace, BinaryOp, CompareOp, InstData, Layout, Type};

use super::{BuildErrorKind, IntoVal, KernelBuilder, Val};

/// Parts of dynamic shared memory.
impl KernelBuilder {
    /// A part of the dynamic shared memory of the launch, as a slice of `len` elements that begins `offset` bytes after
    /// the start (CUDA guide, "Shared Memory", on several arrays in one `extern __shared__`). Where the launch has less
    /// memory, or the elements would not be aligned, the thread ends and the launch is an error, in kernels without
    /// checks, too. Parts may overlap; what threads write to one and read from the other is ordered as any.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let halves = Kernel::build("halves", |k| {
    ///     let (x, i) = (k.slice_mut("x", k.ty::<f64>()), k.thread_idx().x());
    ///     let numbers = k.dynamic_shared_at(k.ty::<f64>(), 0, 4);
    ///     let order = k.dynamic_shared_at(k.ty::<u32>(), 32, 4);
    ///     numbers.at(i).set(x.at(i) * 0.5);
    ///     order.at(i).set(3 - i);
    ///     k.barrier();
    ///     x.at(i).set(numbers.at(order.at(i)));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[2.0f64, 4.0, 6.0, 8.0])?;
    /// jit.launch_with(&halves, LaunchConfig::new(1, 4).shared_bytes(48), args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [4.0, 3.0, 2.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn dynamic_shared_at<'k>(
        &'k self,
        element: Type,
        offset: impl IntoVal<'k>,
        len: impl IntoVal<'k>,
    ) -> Val<'k> {
        let bytes = self.dynamic_shared(Type::U8);
        let slice = self.slice_type(element, AddressSpace::Shared, true);
        let Some(layout) = self.known_layout(element) else {
            return self.error(open_layout("dynamic_shared_at"), slice);
        };
        let wide = |value: Val<'k>| value.cast(Type::U64);
        let offset = wide(offset.into_val(self, Some(Type::U32)));
        let len = len.into_val(self, Some(Type::U32)).cast(Type::U32);
        let end = offset + wide(len) * self.lit(Type::U64, layout.size);
        let message = "a part of dynamic shared memory ends after that of the launch, in bytes";
        self.assert_compared(CompareOp::Le, end, bytes.len64(), message);
        self.assert_aligned(offset, layout.align);
        let first = self.emit(
            InstData::SlicePtr { slice: bytes.id },
            self.pointer_type(Type::U8, AddressSpace::Shared, true),
        );
        let pointer = self.pointer_type(element, AddressSpace::Shared, true);
        let (ptr, len) = (first.offset(offset).bitcast(pointer).id, len.id);
        self.emit(InstData::SliceNew { ptr, len }, slice)
    }

    /// The layout of a type that is known before the launch.
    fn known_layout(&self, ty: Type) -> Option<Layout> {
        let layout = |types: &mut crate::ir::TypeTable| match types.is_generic(ty) {
            true => None,
            false => types.layout(ty),
        };
        self.with_types(layout).filter(|layout| layout.size > 0)
    }

    #[track_caller]
    fn assert_aligned<'k>(&'k self, address: Val<'k>, align: u64) {
        if align > 1 {
            let rest = address & self.lit(Type::U64, align - 1);
            let message =
                format!("elements that begin at a multiple of {align} bytes do not begin here");
            self.assert_compared(CompareOp::Eq, rest, self.lit(Type::U64, 0), &message);
        }
    }
}

fn open_layout(operation: &str) -> BuildErrorKind {
    let message = format!(
        "`{operation}` takes types whose size is known before the launch; write them instead of type parameters"
    );
    BuildErrorKind::Unsupported(message)
}

/// Slices of other elements.
impl<'k> Val<'k> {
    /// The slice as one of another element type in the same memory, of as many elements as it has bytes for. Where
    /// it does not begin where such elements may, or its bytes are no whole number of them, the thread ends and the
    /// launch is an error, in kernels without checks, too.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let double = Kernel::build("double", |k| {
    ///     let quads = k.slice_mut("x", k.ty::<f32>()).cast_slice(k.ty::<F32x4>());
    ///     let quad = quads.at(k.thread_idx().x());
    ///     let v = quad.get();
    ///     let lanes = [0, 1, 2, 3].map(|lane| v.element(lane) * 2);
    ///     quad.set(k.construct(quad.ty(), &lanes));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
    /// jit.launch(&double, 1, 2, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn cast_slice(self, element: Type) -> Val<'k> {
        let b = self.builder();
        let this = b.adopt(self);
        let Some((at, _)) = b.as_slice(this.ty) else {
            return b.wrong_type("`cast_slice`", "a slice", this, this.ty);
        };
        let slice = b.slice_type(element, at.space, at.mutable);
        let (Some(from), Some(to)) = (b.known_layout(at.pointee), b.known_layout(element)) else {
            return b.error(open_layout("cast_slice"), slice);
        };
        let pointer = |ty| b.pointer_type(ty, at.space, at.mutable);
        let first = b.emit(InstData::SlicePtr { slice: this.id }, pointer(at.pointee));
        if to.align > from.align {
            b.assert_aligned(first.bitcast(Type::U64), to.align);
        }
        let len = this.cast_len(from.size, to.size);
        let (ptr, len) = (first.bitcast(pointer(element)).id, len.id);
        b.emit(InstData::SliceNew { ptr, len }, slice)
    }

    /// How many bytes an element of the slice has, padding included, a `u32`.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let bytes = Kernel::build("bytes", |k| {
    ///     let (x, out) = (k.slice("x", k.type_param("T").num()), k.slice_mut("out", Type::U32));
    ///     out.at(0).set(x.element_bytes() * x.len());
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut out = jit.zeros::<u32>(1)?;
    /// jit.launch(&bytes, 1, 1, args!(&jit.upload(&[1.0f64, 2.0])?, &mut out))?;
    /// assert_eq!(out.to_vec()?, [16]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn element_bytes(self) -> Val<'k> {
        let b = self.builder();
        let this = b.adopt(self);
        let Some((at, _)) = b.as_slice(this.ty) else {
            return b.wrong_type("`element_bytes`", "a slice", this, this.ty);
        };
        if let Some(layout) = b.known_layout(at.pointee) {
            return b.lit(Type::U32, layout.size);
        }
        // What a type parameter stands for is known later.
        let first = this.as_ptr();
        let address = |at: Val<'k>| at.bitcast(Type::U64);
        (address(first.offset(1)) - address(first)).cast(Type::U32)
    }

    /// How many elements of `to` bytes a slice has room for whose elements have `from` bytes.
    #[track_caller]
    fn cast_len(self, from: u64, to: u64) -> Val<'k> {
        if from == to {
            return self.len();
        }
        let b = self.builder();
        let number = |n: u64| b.lit(Type::U64, n);
        let bytes = self.len64() * number(from);
        if !from.is_multiple_of(to) {
            let rest = b.binary(BinaryOp::Rem, bytes, number(to));
            let message =
                format!("the bytes of a slice are no whole number of elements of {to} bytes");
            b.assert_compared(CompareOp::Eq, rest, number(0), &message);
        }
        let len = bytes / number(to);
        if from > to {
            let message = "a slice has more elements than kernels count, when it is cast";
            b.assert_compared(CompareOp::Le, len, number(u32::MAX.into()), message);
        }
        len.cast(Type::U32)
    }
}
