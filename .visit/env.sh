export KILN_LIBLLVM=$(ls /tmp/kiln-lib/libLLVM*) KILN_CACHE=off KILN_FILETESTS=/tmp/k/filetests KILN_PEERS=/tmp/k/peers
