//! Graphs of a CUDA device: the runtime's [`BackendGraph`] over the driver's.
//!
//! A thread reports a fault to the channel of the stream that its kernel runs in, whose address each launch passes. A
//! graph has it in its nodes, of the stream that the graph was launched in last: launched in another, the nodes that
//! have one are set anew. So a fault is told by who waits for that stream, as that of a launch is.

use std::sync::Arc;
use std::time::Duration;

use kiln_ir::abi::ParamLayout;
use kiln_ir::code::KernelInfo;
use kiln_ir::launch::LaunchConfig;

use super::cuda::{CudaContext, CudaFunction, CudaGraph, LaunchNode, Node, StreamHandle};
use super::cuda_device::function_of;
use super::cuda_stream::BesideStream;
use crate::error::Result;
use crate::graph::{BackendGraph, Step};
use crate::stream::BackendStream;

/// A launch, as it is set anew when the stream is another.
struct Launch {
    function: CudaFunction,
    kernel: Arc<KernelInfo>,
    config: LaunchConfig,
    block: Box<[u8]>,
}

impl Launch {
    fn node(&mut self) -> Node<'_> {
        Node::Launch(LaunchNode {
            function: &self.function,
            grid: self.config.grid.to_array(),
            block: self.config.block.to_array(),
            shared_bytes: self.config.shared_bytes,
            cooperative: self.config.cooperative,
            slots: &self.kernel.layout.slots,
            passed: &mut self.block,
        })
    }
}

pub(super) struct DeviceGraph {
    context: Arc<CudaContext>,
    // Before the functions that it names.
    graph: CudaGraph,
    /// One for each step that is a launch.
    launches: Vec<Option<Launch>>,
    /// The fault channel that the nodes have.
    channel: u64,
}

fn put_channel(layout: &ParamLayout, block: &mut [u8], channel: u64) -> bool {
    let slot = layout.fault_channel;
    if let Some(slot) = slot {
        slot.write_number(block, channel);
    }
    slot.is_some()
}

/// The node of a step that is no launch.
fn plain_node<'a>(step: &Step<'a>) -> Option<Node<'a>> {
    match *step {
        Step::Launch { .. } => None,
        Step::Memcpy { to, from, bytes } => Some(Node::Copy { to, from, bytes }),
        Step::Fill { to, value, bytes } => Some(Node::Fill { to, value, bytes }),
    }
}

impl DeviceGraph {
    pub(super) fn create(
        context: &Arc<CudaContext>,
        steps: &[Step<'_>],
        after: &[Vec<usize>],
    ) -> Result<Option<Box<dyn BackendGraph>>> {
        let channel = context.channel_address();
        let mut launches = Vec::with_capacity(steps.len());
        for step in steps {
            let Step::Launch {
                code,
                kernel,
                config,
                block,
            } = *step
            else {
                launches.push(None);
                continue;
            };
            let mut block: Box<[u8]> = block.into();
            put_channel(&kernel.layout, &mut block, channel);
            launches.push(Some(Launch {
                function: function_of(code)?.clone(),
                kernel: kernel.clone(),
                config: *config,
                block,
            }));
        }
        let nodes = launches.iter_mut().zip(steps);
        let nodes = nodes.filter_map(|(launch, step)| match launch {
            Some(launch) => Some(launch.node()),
            None => plain_node(step),
        });
        let Some(graph) = CudaGraph::create(context, nodes, after)? else {
            return Ok(None);
        };
        let context = context.clone();
        Ok(Some(Box::new(DeviceGraph {
            context,
            graph,
            launches,
            channel,
        })))
    }

    /// Has faults told in another channel.
    fn tell_in(&mut self, channel: u64) -> Result<()> {
        if channel == self.channel {
            return Ok(());
        }
        self.graph.enter()?;
        // Should one fail, all are set at the next launch.
        self.channel = 0;
        for (at, launch) in self.launches.iter_mut().enumerate() {
            if let Some(launch) = launch
                && put_channel(&launch.kernel.layout, &mut launch.block, channel)
            {
                self.graph.set(at, &mut launch.node())?;
            }
        }
        self.channel = channel;
        Ok(())
    }
}

impl BackendGraph for DeviceGraph {
    fn begin(&mut self) -> Result<()> {
        Ok(self.graph.enter()?)
    }

    fn set(&mut self, at: usize, step: &Step<'_>) -> Result<()> {
        if let Step::Launch { block, .. } = step
            && let Some(launch) = &mut self.launches[at]
        {
            launch.block.copy_from_slice(block);
            put_channel(&launch.kernel.layout, &mut launch.block, self.channel);
            return Ok(self.graph.set(at, &mut launch.node())?);
        }
        match plain_node(step) {
            Some(mut node) => Ok(self.graph.set(at, &mut node)?),
            None => Ok(()),
        }
    }

    fn launch(
        &mut self,
        stream: Option<&dyn BackendStream>,
        limit: Option<Duration>,
    ) -> Result<()> {
        let (handle, channel) = match stream {
            None => (StreamHandle::DEFAULT, self.context.channel_address()),
            Some(stream) => BesideStream::of(stream)?.where_faults_go(),
        };
        self.tell_in(channel)?;
        self.context.set_wait_limit(limit);
        // SAFETY: whoever replays orders the graph behind the uses of its memory, and the end of that behind the graph.
        unsafe { self.graph.launch(handle)? };
        Ok(())
    }
}
