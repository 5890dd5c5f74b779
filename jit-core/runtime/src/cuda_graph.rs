//! Graphs of a CUDA device: the runtime's [`BackendGraph`] over the driver's.
//!
//! A thread reports a fault to the channel of the stream that its kernel runs in, whose address each launch passes. A
//! graph has it in its nodes, of the stream that the graph was launched in last: launched in another, the nodes that
//! have one are set anew. So a fault is told by who waits for that stream, as that of a launch is.

use std::sync::Arc;
use std::time::Duration;

use kiln_ir::abi::ParamSlot;

use super::cuda::{CudaContext, CudaGraph, LaunchNode, Node, StreamHandle};
use super::cuda_device::function_of;
use super::cuda_stream::BesideStream;
use crate::error::{DeviceError, Result};
use crate::graph::{BackendGraph, Step};
use crate::stream::BackendStream;

/// A launch, as it is set anew when the stream is another.
struct Launch {
    node: LaunchNode,
    /// Where the fault channel goes.
    channel: Option<ParamSlot>,
}

impl Launch {
    /// Has faults told in a channel; whether the kernel tells any.
    #[inline]
    fn tell_in(&mut self, channel: u64) -> bool {
        if let Some(slot) = self.channel {
            slot.write_number(self.node.passed_mut(), channel);
        }
        self.channel.is_some()
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
            let (function, layout) = (function_of(code)?.clone(), &kernel.layout);
            let mut launch = Launch {
                node: LaunchNode::new(function, config, &layout.slots, block.to_vec()),
                channel: layout.fault_channel,
            };
            launch.tell_in(channel);
            launches.push(Some(launch));
        }
        let nodes = launches.iter().zip(steps);
        let nodes = nodes.filter_map(|(launch, step)| match launch {
            Some(launch) => Some(Node::Launch(&launch.node)),
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
                && launch.tell_in(channel)
            {
                self.graph.set_launch(at, &launch.node)?;
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

    fn block_mut(&mut self, at: usize) -> Option<&mut [u8]> {
        let launch = self.launches.get_mut(at)?.as_mut()?;
        Some(launch.node.passed_mut())
    }

    fn write_numbers(&mut self, places: &[(usize, ParamSlot)], number: u64) -> Result<()> {
        for &(at, slot) in places {
            let Some(Some(launch)) = self.launches.get_mut(at) else {
                return Err(DeviceError::Internal("a step of a graph is no launch"));
            };
            slot.write_number(launch.node.passed_mut(), number);
        }
        Ok(())
    }

    fn set_blocks(&mut self, steps: &mut Vec<usize>) -> Result<()> {
        while let Some(&at) = steps.last()
            && let Some(Some(launch)) = self.launches.get(at)
        {
            self.graph.set_launch(at, &launch.node)?;
            steps.pop();
        }
        Ok(())
    }

    fn set(&mut self, at: usize, step: &Step<'_>) -> Result<()> {
        match plain_node(step) {
            Some(node) => Ok(self.graph.set(at, node)?),
            None => Err(DeviceError::Internal("a launch of a graph is set as such")),
        }
    }

    fn launch(
        &mut self,
        stream: Option<&dyn BackendStream>,
        limit: Option<Duration>,
    ) -> Result<()> {
        let (handle, channel) = match stream {
            None => (StreamHandle::DEFAULT, self.context.channel_address()),
            Some(stream) => BesideStream::of(stream)?.where_faults_go()?,
        };
        self.tell_in(channel)?;
        self.context.set_wait_limit(limit);
        // SAFETY: whoever replays orders the graph behind the uses of its memory, and the end of that behind the graph.
        unsafe { self.graph.launch(handle)? };
        Ok(())
    }
}
