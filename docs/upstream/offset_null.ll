; `infer-address-spaces` of LLVM 22 leaves `%p` with an operand that is not there; what looks at it next
; ends the process. See README.md.
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [64 x i32] undef

define ptx_kernel void @k(ptr addrspace(1) %out, i1 %c, i64 %i) {
entry:
  br i1 %c, label %somewhere, label %nowhere
somewhere:
  br label %both
nowhere:
  %g = getelementptr i32, ptr null, i64 %i
  br label %both
both:
  %p = phi ptr [ addrspacecast (ptr addrspace(3) @tile to ptr), %somewhere ], [ %g, %nowhere ]
  %v = load i32, ptr %p
  store i32 %v, ptr addrspace(1) %out
  ret void
}
