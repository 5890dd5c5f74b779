//! What is known of code once a device has loaded it.

/// What a device says of code that it has loaded. What it does not have, or does not tell, is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CodeFacts {
    /// 32-bit registers of a thread.
    pub registers: Option<u32>,
    /// Memory of a thread in bytes: spilled registers, and arrays that are in none.
    pub local_bytes: Option<u32>,
    /// Shared memory of a block in bytes, without what a launch adds.
    pub shared_bytes: Option<u64>,
    /// Constant memory in bytes.
    pub const_bytes: Option<u32>,
    /// Most threads that a block can have.
    pub block_threads: Option<u32>,
    /// Bytes of code, as it was handed to the device.
    pub code_bytes: Option<u64>,
    /// Lanes of a vector.
    pub lanes: Option<u32>,
    /// Bytes of the stack that a thread of the host needs for it.
    pub stack_bytes: Option<u64>,
    /// What the driver reported when it compiled the code: registers, spills. Empty when it took the code
    /// from its own cache, and on other devices.
    pub log: String,
}
