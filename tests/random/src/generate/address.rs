//! Addresses that go a way round before they are used: through arrays and tuples, variables and memory,
//! choices beside none, other types and numbers. They come out as they went in.

use kiln_jit_core::ir::{
    AddressSpace, Constant, InstData, Scalar, StructData, Type, TypeData, Value, VarData,
};

use super::Generator;

impl Generator {
    /// The address space of a pointer or slice type.
    fn space_of(&self, ty: Type) -> Option<AddressSpace> {
        match *self.module.types.data(ty) {
            TypeData::Pointer { space, .. } | TypeData::Slice { space, .. } => Some(space),
            _ => None,
        }
    }

    /// A pointer or slice as a generic one.
    fn generic(&mut self, address: Value) -> Value {
        let ty = self.frame.ty(address);
        let generic = self.module.types.in_space(ty, AddressSpace::Generic);
        match generic.filter(|generic| *generic != ty) {
            Some(generic) => self.raw(InstData::SpaceCast { arg: address }, generic),
            None => address,
        }
    }

    /// A pointer or slice, sometimes by a way round. The result is another in each thread as far as
    /// backends know, so it must not be needed uniform.
    pub(super) fn way_round(&mut self, address: Value) -> Value {
        if !self.random.chance(9) {
            return address;
        }
        let space = self.space_of(self.frame.ty(address));
        if space == Some(AddressSpace::Param) {
            return address;
        }
        let address = match self.random.chance(50) {
            true => self.generic(address),
            false => address,
        };
        let pointer = self.module.types.as_pointer(self.frame.ty(address));
        let aggregates = usize::from(self.budget.aggregates);
        let pointers = usize::from(pointer.is_some());
        type Way = fn(&mut Generator, Value) -> Value;
        let ways: [(usize, Way); 7] = [
            (aggregates, Self::through_array),
            (aggregates, Self::through_tuple),
            (aggregates, Self::through_memory),
            (1, Self::beside_null),
            (1, Self::through_variable),
            (pointers, Self::as_another_type),
            (pointers, Self::as_number),
        ];
        let way = self.random.weighted(&ways);
        way(self, address)
    }

    fn null(&mut self, ty: Type) -> Value {
        self.raw(InstData::Const(Constant::Zero), ty)
    }

    fn through_array(&mut self, address: Value) -> Value {
        let ty = self.frame.ty(address);
        let other = self.null(ty);
        let index = self.random.below(2) as u32;
        let mut parts = [other; 2];
        parts[index as usize] = address;
        let array = self.module.types.array(ty, 2);
        let parts = parts.into_iter().collect();
        let aggregate = self.raw(InstData::Construct { parts }, array);
        self.raw(InstData::Extract { aggregate, index }, ty)
    }

    fn through_tuple(&mut self, address: Value) -> Value {
        let ty = self.frame.ty(address);
        let fields = [("0", Type::U32), ("1", ty)].map(|(name, ty)| (name.to_owned(), ty));
        let tuple = self
            .module
            .types
            .intern_struct(StructData::new("tuple".to_owned(), fields.to_vec()));
        let aggregate = self.null(tuple);
        let aggregate = self.raw(
            InstData::Insert {
                aggregate,
                index: 1,
                value: address,
            },
            tuple,
        );
        self.raw(
            InstData::Extract {
                aggregate,
                index: 1,
            },
            ty,
        )
    }

    /// Two addresses in local memory, of which one is read by an index.
    fn through_memory(&mut self, address: Value) -> Value {
        let ty = self.frame.ty(address);
        let array = self.module.types.array(ty, 2);
        let pointer = self.module.types.pointer(array, AddressSpace::Local, true);
        let ptr = self.raw(InstData::LocalAlloc, pointer);
        self.frame.set_uniform(ptr, false);
        let parts = [address; 2].into_iter().collect();
        let value = self.raw(InstData::Construct { parts }, array);
        let volatile = false;
        self.act(InstData::Store {
            ptr,
            value,
            volatile,
        });
        let index = self.index_below(2, false);
        let place = self.module.types.pointer(ty, AddressSpace::Local, true);
        let checked = true;
        let ptr = self.raw(
            InstData::ElementPtr {
                ptr,
                index,
                checked,
            },
            place,
        );
        self.raw(InstData::Load { ptr, volatile }, ty)
    }

    /// A choice between the address and none, and another that takes it where there is none.
    fn beside_null(&mut self, address: Value) -> Value {
        let ty = self.frame.ty(address);
        let cond = self.expr(Type::BOOL, 1, false);
        let if_false = self.null(ty);
        let some = self.raw(
            InstData::Select {
                cond,
                if_true: address,
                if_false,
            },
            ty,
        );
        self.raw(
            InstData::Select {
                cond,
                if_true: some,
                if_false: address,
            },
            ty,
        )
    }

    /// A variable that is none at first.
    fn through_variable(&mut self, address: Value) -> Value {
        let ty = self.frame.ty(address);
        let name = "address".to_owned();
        let var = self.frame.function.vars.push(VarData { name, ty });
        if self.random.chance(50) {
            let null = self.null(ty);
            self.act(InstData::VarSet(var, null));
        }
        self.act(InstData::VarSet(var, address));
        let value = self.raw(InstData::VarGet(var), ty);
        self.frame.set_uniform(value, false);
        value
    }

    /// A pointer to something else, and back.
    fn as_another_type(&mut self, address: Value) -> Value {
        let ty = self.frame.ty(address);
        let Some((_, space, mutable)) = self.module.types.as_pointer(ty) else {
            return address;
        };
        let other = Type::scalar(self.random.of(&[Scalar::U8, Scalar::F32, Scalar::I64]));
        let other = self.module.types.pointer(other, space, mutable);
        let arg = self.raw(InstData::Bitcast { arg: address }, other);
        self.raw(InstData::Bitcast { arg }, ty)
    }

    /// The number of a generic address, and back.
    fn as_number(&mut self, address: Value) -> Value {
        let arg = self.generic(address);
        let ty = self.frame.ty(arg);
        let arg = self.raw(InstData::Bitcast { arg }, Type::U64);
        self.raw(InstData::Bitcast { arg }, ty)
    }
}
