//! A twin, compiled by nvcc and launched by the driver.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::Arc;

use kiln::core::args::Payload;
use kiln_suite::{Launch, Launcher};

use crate::driver::{self, Function};

/// The kernels of a twin.
pub struct Twin {
    image: Arc<[u8]>,
    loaded: HashMap<&'static str, Function>,
}

/// Twins that nvcc has compiled, to machine code and to PTX that the driver compiles.
#[derive(Default)]
pub struct Twins(HashMap<&'static str, [Arc<[u8]>; 2]>);

impl Twins {
    /// Compiles sources of CUDA C++, each once; none without nvcc.
    pub fn compile(sources: impl Iterator<Item = &'static str>, sm: u32) -> Twins {
        let sources: HashSet<&str> = sources.collect();
        let compiled = |source| {
            let code = |to| driver::compiled(source, sm, to).map(Arc::from);
            Some((source, [code("-cubin")?, code("-ptx")?]))
        };
        std::thread::scope(|scope| {
            let threads = sources
                .into_iter()
                .map(|source| scope.spawn(move || compiled(source)));
            let threads: Vec<_> = threads.collect();
            let joined = threads
                .into_iter()
                .filter_map(|thread| thread.join().expect("nvcc takes it"));
            Twins(joined.collect())
        })
    }

    /// The twin of a program, both ways.
    pub fn of(&self, source: &str) -> Option<[Twin; 2]> {
        let images = self.0.get(source)?;
        Some(images.each_ref().map(|image| Twin {
            image: image.clone(),
            loaded: HashMap::new(),
        }))
    }
}

impl Launcher for Twin {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        let loaded = self.loaded.entry(launch.twin);
        let function = *loaded.or_insert_with(|| driver::load(&self.image, launch.twin));
        let arg = |payload: Payload<'_>| match payload {
            Payload::Word(word) => word.to_le_bytes().to_vec(),
            Payload::Words(words) => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            Payload::Slice { address, .. } => address.to_ne_bytes().to_vec(),
            Payload::Bytes(bytes) => bytes.to_vec(),
            Payload::View => panic!("`{}` takes no views", launch.twin),
            Payload::Host(_) | Payload::OutOfRange(_) | Payload::Refused(_) => {
                panic!("`{}` takes what no hook converts", launch.twin)
            }
        };
        let lengths = launch.lengths.iter().map(|n| {
            let n = i32::try_from(*n).expect("a twin has 32-bit indices");
            n.to_ne_bytes().to_vec()
        });
        let args = launch.args.iter().map(|a| arg(a.payload()));
        let mut values: Vec<Vec<u8>> = args.chain(lengths).collect();
        let mut params: Vec<*mut c_void> = values
            .iter_mut()
            .map(|value| value.as_mut_ptr().cast())
            .collect();
        // SAFETY: the twin has the parameters of the `#[kernel]`, then the lengths, by the rule of the suite; the
        // workload holds the buffers until it has synchronized.
        unsafe { driver::launch_with(function, &launch.config, &mut params) };
        Ok(())
    }
}
