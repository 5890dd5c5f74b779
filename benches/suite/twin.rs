//! A twin, compiled by nvcc and launched by the driver.

use std::collections::HashMap;
use std::ffi::c_void;

use kiln::core::args::Payload;
use kiln_suite::{Launch, Launcher};

use crate::driver::{self, Function};

/// The kernels of a twin.
pub struct Twin {
    image: Vec<u8>,
    loaded: HashMap<&'static str, Function>,
}

impl Twin {
    /// Compiles CUDA C++, to machine code or to PTX that the driver compiles; `None` without nvcc.
    pub fn new(source: &str, sm: u32, as_ptx: bool) -> Option<Twin> {
        let image = driver::compiled(source, sm, if as_ptx { "-ptx" } else { "-cubin" })?;
        Some(Twin {
            image,
            loaded: HashMap::new(),
        })
    }
}

impl Launcher for Twin {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        let loaded = self.loaded.entry(launch.twin);
        let function = *loaded.or_insert_with(|| driver::load(&self.image, launch.twin));
        let arg = |payload: &Payload<'_>| match payload {
            Payload::Bytes(bytes) => bytes.to_vec(),
            Payload::Slice { address, .. } => address.to_ne_bytes().to_vec(),
            _ => panic!("`{}` takes numbers, structs and buffers", launch.twin),
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
