//! A machine that Kiln does not know, with an [`Isa`] and a [`Backend`] as another crate would bring them:
//! a tape of instructions on numbers of 32 bits, which threads run one after the other.

use std::any::Any;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::core::abi::{LaunchArg, LaunchArgs};
use kiln::core::code::{Code, CompiledKernel, KeptCode, KernelInfo};
use kiln::core::codegen::{
    BackendError, CompileOptions, DirectIsa, Generator, Illegal, IllegalOperations, Isa,
};
use kiln::core::fault::FaultRecord;
use kiln::core::ir::{BinaryOp, Constant, Inst, InstData, Type, Value, ValueDef};
use kiln::core::launch::{LaunchConfig, LaunchLimits};
use kiln::core::legal::Legal;
use kiln::core::runtime::{
    Backend, DeviceError, DeviceId, DeviceInfo, DeviceKind, LoadedCode, Marker,
};
use kiln::core::target::{CustomTarget, Target};

type Result<T, E = DeviceError> = std::result::Result<T, E>;

/// What the machine is called.
pub const FAMILY: &str = "tape";

/// One instruction, 4 words: what to do, the register of the result, and two operands.
type Step = [u32; 4];

const CONST: u32 = 0;
const THREAD: u32 = 1;
const ADD: u32 = 2;
const MUL: u32 = 3;
/// Checks an index against the slice of a parameter, with the number of the fault site in the register
/// after the result's.
const INDEX: u32 = 4;
const LOAD: u32 = 5;
const STORE: u32 = 6;

/// Makes tapes.
pub struct TapeIsa;

impl TapeIsa {
    /// The instruction for one of the IR; `None` if the machine has none.
    fn step(legal: &Legal, inst: Inst) -> Option<Option<Step>> {
        let kernel = legal.kernel();
        let node = &kernel.insts[inst];
        let register =
            |value: Value| kernel.values.keys().position(|v| v == value).unwrap_or(0) as u32;
        let to = node.result.map_or(0, register);
        let is_u32 = |value: Value| kernel.type_of(value) == Type::U32;
        Some(Some(match &node.data {
            InstData::Const(Constant::Int(number)) if node.result.is_some_and(is_u32) => {
                [CONST, to, *number as u32, 0]
            }
            InstData::Intrinsic { id, .. } if legal.intrinsics[*id].name == "thread_idx.x" => {
                [THREAD, to, 0, 0]
            }
            InstData::Binary { op, args: [a, b] } if is_u32(*a) => {
                let code = match op {
                    BinaryOp::Add => ADD,
                    BinaryOp::Mul => MUL,
                    _ => return None,
                };
                [code, to, register(*a), register(*b)]
            }
            InstData::SliceIndex { slice, index, .. } => {
                let ValueDef::Param(param) = kernel.values[*slice].def else {
                    return None;
                };
                [INDEX, to, param, register(*index)]
            }
            InstData::Load { ptr, .. } if node.result.is_some_and(is_u32) => {
                [LOAD, to, register(*ptr), 0]
            }
            InstData::Store { ptr, value, .. } if is_u32(*value) => {
                [STORE, 0, register(*ptr), register(*value)]
            }
            InstData::Return { .. } => return Some(None),
            _ => return None,
        }))
    }

    fn body(legal: &Legal) -> &[Inst] {
        let kernel = legal.kernel();
        &kernel.regions[kernel.body].insts
    }
}

impl Isa for TapeIsa {
    fn fingerprint(&self) -> String {
        "tape 1".to_owned()
    }

    fn check(&self, legal: &Legal) -> std::result::Result<(), IllegalOperations> {
        let kernel = legal.kernel();
        let unknown = Self::body(legal)
            .iter()
            .filter(|&&inst| Self::step(legal, inst).is_none());
        let list: Vec<Illegal> = unknown
            .map(|&inst| Illegal {
                function: kernel.name.clone(),
                location: legal.display_location(kernel.insts[inst].location),
                message: "a tape has no such instruction".to_owned(),
            })
            .collect();
        match list.is_empty() {
            true => Ok(()),
            false => Err(IllegalOperations {
                module: legal.name.clone(),
                target: FAMILY.to_owned(),
                list,
            }),
        }
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Direct(self)
    }

    fn read_kept(&self, kept: &KeptCode) -> Option<Code> {
        let whole = kept.bytes.len().is_multiple_of(size_of::<Step>());
        whole.then(|| Code::Custom(Arc::new(kept.bytes.clone())))
    }
}

impl DirectIsa for TapeIsa {
    fn emit(
        &self,
        legal: &Arc<Legal>,
        _: &CompileOptions,
    ) -> std::result::Result<Code, BackendError> {
        let steps = Self::body(legal)
            .iter()
            .filter_map(|&inst| Self::step(legal, inst)?);
        let bytes = steps.flatten().flat_map(u32::to_le_bytes);
        Ok(Code::Custom(Arc::new(bytes.collect::<Vec<u8>>())))
    }
}

fn failed(message: &str) -> DeviceError {
    DeviceError::Backend {
        device: "a reader of tapes".to_owned(),
        message: message.to_owned(),
    }
}

/// A device that runs tapes as they are launched.
pub struct TapeDevice {
    info: DeviceInfo,
    /// Allocations by address.
    memory: Mutex<HashMap<u64, Vec<u8>>>,
    fault: Mutex<Option<DeviceError>>,
}

impl TapeDevice {
    pub fn new() -> TapeDevice {
        TapeDevice {
            info: DeviceInfo {
                id: DeviceId::Custom(0),
                kind: DeviceKind::Custom,
                name: "a reader of tapes".to_owned(),
                multiprocessors: 1,
                memory_bytes: 0,
                target: Target::Custom(CustomTarget {
                    family: FAMILY,
                    settings: String::new(),
                }),
                limits: LaunchLimits {
                    block_threads: 1024,
                    block: [1024, 1, 1],
                    grid: [1, 1, 1],
                    shared_bytes: 0,
                    param_bytes: 4096,
                },
            },
            memory: Mutex::default(),
            fault: Mutex::default(),
        }
    }

    fn with<R>(&self, address: u64, f: impl FnOnce(&mut [u8]) -> R) -> Result<R> {
        let mut memory = self.memory.lock().expect("nothing panics here");
        let bytes = memory.get_mut(&address);
        Ok(f(bytes.ok_or(DeviceError::ForeignAddress { address })?))
    }

    /// Runs a thread. A fault ends it.
    fn thread(
        &self,
        tape: &Tape,
        kernel: &KernelInfo,
        args: &LaunchArgs<'_>,
        x: u32,
    ) -> Result<()> {
        let mut registers: HashMap<u32, u64> = HashMap::new();
        let mut base = 0;
        let mut site = 0;
        for &[code, to, a, b] in &tape.0 {
            let get = |register| registers.get(&register).copied().unwrap_or(0);
            let result = match code {
                CONST => a.into(),
                THREAD => x.into(),
                ADD => u64::from((get(a) as u32).wrapping_add(get(b) as u32)),
                MUL => u64::from((get(a) as u32).wrapping_mul(get(b) as u32)),
                INDEX => {
                    let arg = args.get(a as usize);
                    let Some(LaunchArg::Slice { address, length }) = arg else {
                        return Err(failed("an index into what is no slice"));
                    };
                    let index = get(b);
                    if index >= length {
                        let record = FaultRecord {
                            state: 1,
                            site,
                            index,
                            length,
                            thread: [x, 0, 0],
                            ..FaultRecord::default()
                        };
                        let mut fault = self.fault.lock().expect("nothing panics here");
                        fault.get_or_insert(kernel.fault(&record).into());
                        return Ok(());
                    }
                    site += 1;
                    base = address.0;
                    base + 4 * index
                }
                LOAD => self.with(base, |bytes| {
                    let at = (get(a) - base) as usize;
                    let word = bytes[at..].first_chunk().copied();
                    u64::from(u32::from_le_bytes(word.unwrap_or_default()))
                })?,
                STORE => self.with(base, |bytes| {
                    let at = (get(a) - base) as usize;
                    bytes[at..at + 4].copy_from_slice(&(get(b) as u32).to_le_bytes());
                    0
                })?,
                _ => return Err(failed("a tape with an unknown instruction")),
            };
            registers.insert(to, result);
        }
        Ok(())
    }
}

struct Tape(Vec<Step>);

impl LoadedCode for Tape {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Now;

impl Marker for Now {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Backend for TapeDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        let mut memory = self.memory.lock().expect("nothing panics here");
        let address = (memory.len() as u64 + 1) << 32;
        memory.insert(address, vec![0; bytes]);
        Ok(address)
    }

    fn free(&self, address: u64, _: usize) {
        // Its address is not given out again.
        let _ = self.with(address, |bytes| bytes.fill(0));
    }

    fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>]) -> Result<()> {
        let _ = (address, bytes);
        Err(failed("the tests upload nothing"))
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.with(address, |from| bytes.copy_from_slice(&from[..bytes.len()]))
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        self.with(address, |to| to[..bytes].fill(0))
    }

    fn load(&self, kernel: &CompiledKernel) -> Result<Box<dyn LoadedCode>> {
        let Some(bytes) = kernel.code.custom::<Vec<u8>>() else {
            return Err(DeviceError::WrongTarget {
                kernel: kernel.info.name.clone(),
                target: kernel.target.to_string(),
                device: self.info.name.clone(),
            });
        };
        let word = |at: &[u8]| u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
        let steps = bytes.chunks_exact(16);
        let steps = steps.map(|step| [0, 4, 8, 12].map(|at| word(&step[at..])));
        Ok(Box::new(Tape(steps.collect())))
    }

    fn launch(
        &self,
        code: &dyn LoadedCode,
        kernel: &Arc<KernelInfo>,
        config: &LaunchConfig,
        args: &mut LaunchArgs<'_>,
        _: Option<Duration>,
    ) -> Result<()> {
        let Some(tape) = code.as_any().downcast_ref::<Tape>() else {
            return Err(failed("code of another device"));
        };
        for x in 0..config.block.to_array()[0] {
            self.thread(tape, kernel, args, x)?;
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        let fault = self.fault.lock().expect("nothing panics here").take();
        fault.map_or(Ok(()), Err)
    }

    fn mark(&self) -> Result<Box<dyn Marker>> {
        Ok(Box::new(Now))
    }

    fn elapsed_ms(&self, _: &dyn Marker, _: &dyn Marker) -> Result<f64> {
        Ok(0.0)
    }
}
