//! What compilations give: code, and what launches need to know of it. Plain data, without any handle of
//! a device or of LLVM.

mod kept;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::abi::{ParamKind, ParamLayout};
use crate::fault::FaultSite;
use crate::legal::Legal;
use crate::printed::PrintSite;
use crate::target::{Barriers, Target};
use crate::{
    CacheKey, HiddenData, HiddenParam, HiddenSource, IntrinsicDef, LaunchBounds, TypeDigest,
};

pub use kept::FindRow;

/// What is known of a compiled kernel whatever its code is: what launches and errors need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelInfo {
    /// The kernel's name as its author wrote it.
    pub name: String,
    /// The names of the kernel's parameters, for errors.
    pub param_names: Vec<String>,
    /// How to pass arguments.
    pub layout: ParamLayout,
    /// What a launch passes besides them, but for what the device gives.
    pub hidden: Vec<HiddenInfo>,
    /// Where the code can fault.
    pub fault_sites: Vec<FaultSite>,
    /// Where the code prints.
    pub print_sites: Vec<PrintSite>,
    /// Identifies the code in fault records.
    pub kernel_tag: u64,
    /// What the kernel promises about its launches.
    pub launch_bounds: Option<LaunchBounds>,
    /// Static shared memory in bytes, as the IR declares it.
    pub shared_bytes: u64,
    /// Whether blocks wait for all others of the grid, so that launches have to be cooperative.
    pub waits_for_grid: bool,
}

/// A hidden value of a kernel, as launches see it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HiddenInfo {
    /// The name of the hidden value.
    pub name: String,
    /// Who gives it.
    pub source: HiddenSource,
    /// The type of the hidden value, as text.
    pub ty: String,
    /// The type of the value, or of what is behind the address.
    pub element: Option<TypeDigest>,
    /// Whether the hidden value is the address of memory or a slice of it.
    pub is_address: bool,
    /// The size of that in bytes.
    pub bytes: u64,
    /// The type of the elements, if that is an array.
    pub item: Option<TypeDigest>,
    /// Where the hidden value was declared.
    pub location: String,
    /// How the hidden value is passed; `None` in a kernel that does not read it.
    pub passed: Option<ParamKind>,
}

impl HiddenInfo {
    fn new(legal: &Legal, id: HiddenParam, data: &HiddenData) -> HiddenInfo {
        let address = legal.types.address(data.ty);
        let value = address.map_or(data.ty, |address| address.pointee);
        let item = legal.types.as_array(value);
        let mut params = legal.kernel().params.iter().zip(&legal.layout().params);
        let passed = params.find(|(param, _)| param.hidden == Some(id));
        HiddenInfo {
            name: data.name.clone(),
            source: data.source.clone(),
            ty: legal.types.display(data.ty),
            element: TypeDigest::of(&legal.types, value),
            is_address: address.is_some(),
            bytes: legal.types.layout(value).map_or(0, |layout| layout.size),
            item: item.and_then(|(item, _)| TypeDigest::of(&legal.types, item)),
            location: legal.display_location(data.location),
            passed: passed.map(|(_, kind)| *kind),
        }
    }
}

impl Legal {
    /// Whether blocks wait for all others of the grid.
    fn waits_for_grid(&self) -> bool {
        let mut waits = false;
        for function in self.functions.values() {
            function.for_each_inst(|_, inst| {
                let row = function.insts[inst].data.intrinsic();
                waits |= row.is_some_and(|(id, _)| self.intrinsics[id].waits_for_grid());
            });
        }
        waits
    }

    /// What launches pass besides arguments, but for what the device gives.
    fn hidden_values(&self) -> Vec<HiddenInfo> {
        let given = |(id, data): (HiddenParam, &HiddenData)| match data.source {
            HiddenSource::FaultChannel => None,
            HiddenSource::Hook(_) | HiddenSource::Global(_) => {
                Some(HiddenInfo::new(self, id, data))
            }
        };
        self.hidden.iter().filter_map(given).collect()
    }
}

impl KernelInfo {
    /// What is known of a legal module's kernel.
    pub fn new(legal: &Legal, kernel_tag: u64) -> KernelInfo {
        let kernel = legal.kernel();
        let shared = legal.functions.values().flat_map(|f| f.shared.values());
        let shared_bytes = shared.fold(0u64, |total, s| {
            let bytes = legal.types.layout(s.ty).map_or(0, |l| l.size);
            total.next_multiple_of(u64::from(s.align.max(1))) + bytes
        });
        KernelInfo {
            name: kernel.name.clone(),
            param_names: kernel.params.iter().map(|p| p.name.clone()).collect(),
            layout: legal.layout().clone(),
            hidden: legal.hidden_values(),
            fault_sites: legal.fault_sites(),
            print_sites: legal.print_sites.clone(),
            kernel_tag,
            launch_bounds: kernel.launch_bounds,
            shared_bytes,
            waits_for_grid: legal.waits_for_grid(),
        }
    }
}

/// What a compilation gives: plain data, without any handle of a device or of LLVM.
#[derive(Clone, Debug)]
pub struct CompiledKernel {
    /// What launches need to know.
    pub info: Arc<KernelInfo>,
    /// The target of the code.
    pub target: Target,
    /// The code.
    pub code: Code,
    /// The key that the code is kept under; empty if it was compiled under none.
    pub key: CacheKey,
    /// The hook that changed the target last, where that is not the one that was asked for.
    pub retargeted_by: Option<String>,
}

/// Code for one target.
#[derive(Clone, Debug)]
pub enum Code {
    /// PTX.
    Ptx(PtxCode),
    /// Machine code of the host.
    Host(HostCode),
    /// No code: the interpreter runs the legal module.
    Interpreted {
        /// The module.
        legal: Arc<Legal>,
        /// Why there is no code, where the target has some.
        why: Option<String>,
    },
    /// What an `Isa` has made for its own device.
    Custom(Arc<dyn CustomCode>),
}

/// Code that only an `Isa` and the devices it is for know the form of: data alone,
/// no handle of LLVM or of a device.
pub trait CustomCode: Any + fmt::Debug + Send + Sync {
    /// How many bytes of code it is, for those who look on.
    fn size(&self) -> usize;

    /// The form in which it is kept outside the process; its `Isa` reads it.
    fn keep(&self) -> KeptCode;
}

/// Code of an `Isa`'s own form as it is kept outside the process.
#[derive(Clone, Debug, Default)]
pub struct KeptCode {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The rows that the bytes name, by their places here.
    pub rows: Vec<&'static IntrinsicDef>,
}

impl CustomCode for Vec<u8> {
    fn size(&self) -> usize {
        self.len()
    }

    fn keep(&self) -> KeptCode {
        KeptCode {
            bytes: self.clone(),
            rows: Vec::new(),
        }
    }
}

/// PTX.
#[derive(Clone, Debug)]
pub struct PtxCode {
    /// The text.
    pub text: Arc<str>,
    /// The kernel's symbol.
    pub entry: String,
    /// Machine code of the text, if a hook has made some: it is loaded in the text's place.
    pub assembled: Option<Assembled>,
}

/// Machine code of a GPU that a hook has made of PTX.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The file, in the form of ELF (`cubin`).
    pub image: Arc<[u8]>,
    /// The hook's name, for errors.
    pub by: String,
}

/// Code for the host and one shape of block.
#[derive(Clone, Debug)]
pub struct HostCode {
    /// The object file.
    pub object: Arc<[u8]>,
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Lanes of a vector.
    pub lanes: u32,
    /// What happens at barriers.
    pub barriers: Barriers,
    /// The rows of the kernel's module: the code calls their meanings by their numbers.
    pub rows: Vec<&'static IntrinsicDef>,
    /// Bytes of what is kept for a block while it runs, and of its memory without dynamic shared
    /// memory.
    pub arena_bytes: [u64; 2],
    /// How many blocks a call of the code may ask for, so that it ends soon: code without loops does not
    /// look itself whether its launch is to end.
    pub blocks_a_call: u64,
    /// Bytes of stack that the code takes.
    pub stack_bytes: u64,
}

impl Code {
    /// The text, if it is PTX.
    pub fn ptx(&self) -> Option<&PtxCode> {
        match self {
            Code::Ptx(ptx) => Some(ptx),
            _ => None,
        }
    }

    /// The code of an `Isa` in its own form, if it is that.
    pub fn custom<T: CustomCode>(&self) -> Option<&T> {
        match self {
            Code::Custom(code) => (&**code as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// What kind of machine runs it, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Code::Ptx(_) => "a GPU",
            Code::Host(_) => "the CPU",
            Code::Interpreted { .. } => "the interpreter",
            Code::Custom(_) => "a machine of its own",
        }
    }
}
