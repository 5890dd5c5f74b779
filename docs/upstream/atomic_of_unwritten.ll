; The code generator of LLVM 22 takes the load for one of the read-only cache, which no atomic load can be, and
; ends the process. See README.md.
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr addrspace(1) noalias readonly %in, ptr addrspace(1) %out) {
  %v = load atomic i32, ptr addrspace(1) %in syncscope("device") acquire, align 4
  store i32 %v, ptr addrspace(1) %out
  ret void
}
