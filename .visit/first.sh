# unpack library
set -u
mkdir -p /tmp/kiln-lib /tmp/k
ls vlib | head
for f in vlib/*.xz; do xz -dc $f > /tmp/kiln-lib/libLLVM.so.22.1-rust-1.95.0-stable; done
ls -la /tmp/kiln-lib; nvidia-smi -L
