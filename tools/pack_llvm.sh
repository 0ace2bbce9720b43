#!/bin/bash
# tools/pack_llvm.sh OUT.tar.xz: LLVM 19 for x86_64 from Debian's packages (headers, CMake files, libLLVM and its dependencies), for a
# machine without installation rights. As root, with apt-get; about 37 MB and two minutes.
#
# There: mkdir sys && tar xJf OUT.tar.xz -C sys, then configure with
#   -DLLVM_DIR=$PWD/sys/usr/lib/llvm-19/lib/cmake/llvm -DTOK_LLVM_SHARED=ON
# and run with LD_LIBRARY_PATH=$PWD/sys/usr/lib/x86_64-linux-gnu.
set -euo pipefail
out=$(realpath -m "${1:?usage: tools/pack_llvm.sh OUT.tar.xz}")
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/packages" "$folder/system"

added=0
if [ "$(dpkg --print-architecture)" != amd64 ] && ! dpkg --print-foreign-architectures | grep -qx amd64; then
  dpkg --add-architecture amd64
  apt-get update -qq
  added=1
fi
for package in libllvm19 llvm-19-dev libz3-4 libedit2 libbsd0 libmd0; do
  (cd "$folder/packages" && apt-get download -qq "$package:amd64") || { echo "error: $package:amd64 cannot be had" >&2; exit 1; }
done
if [ $added = 1 ]; then
  dpkg --remove-architecture amd64
  apt-get update -qq
fi
for package in "$folder"/packages/*.deb; do dpkg-deb -x "$package" "$folder/system"; done

cd "$folder/system"
llvm=usr/lib/llvm-19
rm -rf usr/share "$llvm/share" "$llvm/build"
# libLLVM has every component. LLVM's CMake files only check that archives and tools exist: empty files suffice.
for file in "$llvm"/lib/*.a "$llvm"/lib/LLVM*.so "$llvm"/lib/libRemarks.so*; do
  [ -L "$file" ] || : > "$file"
done
grep -ohE '\$\{_IMPORT_PREFIX\}/[^" ;]+' "$llvm"/lib/cmake/llvm/LLVMExports*.cmake | cut -d/ -f2- | sort -u | while read -r file; do
  if [ ! -e "$llvm/$file" ]; then
    mkdir -p "$(dirname "$llvm/$file")"
    : > "$llvm/$file"
  fi
done
tar cJf "$out" .
ls -l "$out"
