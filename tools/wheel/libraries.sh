#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles the libraries of packages-wheel.txt as static ones that run on systems of glibc 2.28 or newer, by the compiler
# zig, which comes from PyPI. usage: tools/wheel/libraries.sh x86_64|aarch64
# Prints the folder that holds them: bin/ (the compiler's commands), include/, lib/, licences/. It lies in the cache, named
# for what it was made of, so the second call only prints.
set -euo pipefail
cd "$(dirname "$0")/../.."
machine=${1:?usage: tools/wheel/libraries.sh x86_64|aarch64}
case $machine in
  x86_64) debian=amd64 ;;
  aarch64) debian=arm64 ;;
  *) echo "$machine: expected x86_64 or aarch64" >&2; exit 2 ;;
esac
zig_version=0.17.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tradewind/wheel
list=$PWD/packages-wheel.txt
made_of=$(cat "$list" tools/wheel/libraries.sh | sha256sum | cut -c1-12)
prefix=$cache/$machine-$made_of
if [ -f "$prefix/complete" ]; then echo "$prefix"; exit; fi
for tool in cmake ninja dpkg-source apt-get nasm; do
  command -v $tool >/dev/null || { echo "wheel: $tool is missing (packages.txt)" >&2; exit 1; }
done
exec 3>&1 1>&2 # everything but the answer goes to standard error
rm -rf "$prefix"
mkdir -p "$prefix"/{bin,include,lib,licences,fetched,work}

# The compiler
zig=$cache/zig-$zig_version
[ -f "$zig/complete" ] || { python3 -m venv "$zig" && "$zig/bin/pip" install -q "ziglang==$zig_version" && touch "$zig/complete"; }
zig=$(echo "$zig"/lib/python3*/site-packages/ziglang)
write_command() { # NAME COMMAND...
  printf '#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR=%q ZIG_LOCAL_CACHE_DIR=%q\nexec %q %s "$@"\n' \
    "$cache/zig-cache" "$cache/zig-cache" "$zig/zig" "${*:2}" >"$prefix/bin/$1"
  chmod +x "$prefix/bin/$1"
}
for language in cc c++; do # without -O zig would turn its undefined-behaviour sanitizer on, and debug information always
  write_command $language $language -target "$machine-linux-gnu.2.28" -fno-sanitize=undefined -g0
done
write_command ar ar
write_command ranlib ranlib

# The packages, with lists of our own: sources are seldom among the system's.
cd "$prefix/fetched"
mkdir -p lists/partial archives/partial
cat >sources.list <<END
deb http://deb.debian.org/debian bookworm main
deb-src http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian-security bookworm-security main
deb-src http://deb.debian.org/debian-security bookworm-security main
END
cat >apt.conf <<END
APT::Architecture "$debian";
APT::Architectures "$debian";
APT::Sandbox::User "";
Acquire::Retries "3";
Dir::State::lists "$PWD/lists";
Dir::Cache "$PWD";
Dir::Etc::sourcelist "$PWD/sources.list";
Dir::Etc::sourceparts "-";
END
export APT_CONFIG=$PWD/apt.conf
apt-get -qq update

# All at once: apt reads its lists again for each call.
sources=() headers=()
while read -r name version _; do
  case $name in
    *:all | *:"$debian") headers+=("${name%:*}=$version") ;;
    *:*) ;;
    *) sources+=("$name=$version") ;;
  esac
done < <(grep -v '^#\|^$' "$list")
apt-get -qq --only-source --download-only source "${sources[@]}"
apt-get -qq download "${headers[@]}"

while read -r name version digest; do
  case $name in
    *:all | *:"$debian") file=$(echo "${name%:*}"_*.deb) ;;
    *:*) continue ;;
    *) file=${name}_${version#*:}.dsc ;; # names of files lack the epoch
  esac
  echo "$digest  $file" | sha256sum --check --quiet || { echo "$file is not the file of packages-wheel.txt"; exit 1; }
  case $file in
    *.deb)
      name=${name%:*}
      dpkg-deb --extract "$file" "unpacked-$name"
      cp "unpacked-$name/usr/share/doc/$name/copyright" "$prefix/licences/$name.txt" ;;
    *)
      dpkg-source --no-check --extract "$file" "$prefix/work/$name" >"$name.log"
      cp "$prefix/work/$name/debian/copyright" "$prefix/licences/$name.txt" ;;
  esac
done < <(grep -v '^#\|^$' "$list")
cp "$zig/lib/libcxx/LICENSE.TXT" "$prefix/licences/libcxx.txt" 2>/dev/null || cp "$zig"/LICENSE* "$prefix/licences/libcxx.txt"
for unpacked in unpacked-*/usr; do
  cp -r "$unpacked"/include/* "$prefix/include/"
  if [ -d "$unpacked/share/cmake" ]; then mkdir -p "$prefix/share" && cp -r "$unpacked/share/cmake" "$prefix/share/"; fi
done
# Debian keeps the configuration of OpenSSL in a folder of the machine.
cp -r "$prefix/include/$machine-linux-gnu/openssl/." "$prefix/include/openssl/"
cp unpacked-libssl-dev/usr/lib/*/lib{ssl,crypto}.a unpacked-libarchive-dev/usr/lib/*/libarchive.a "$prefix/lib/"

cd "$prefix/work"
flags="-O2 -w -fPIC -fvisibility=hidden -ffile-prefix-map=$prefix/work=."
compile() { # ARCHIVE FOLDER [FLAG...] -- FILE...: sources that need no configuration
  local archive=$1 folder=$2 extra=() objects=() file
  shift 2
  while [ "$1" != -- ]; do extra+=("$1"); shift; done
  shift
  for file; do
    objects+=("$archive-${file//\//_}.o")
    # shellcheck disable=SC2086
    "$prefix/bin/cc" $flags "${extra[@]}" -I"$folder" -I"$prefix/include" -c "$folder/$file.c" -o "${objects[-1]}"
  done
  "$prefix/bin/ar" rcsD "$prefix/lib/$archive" "${objects[@]}"
}
configured() { # FOLDER [OPTION...]: sources with a CMakeLists.txt
  cmake -S "$1" -B "$1-build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$prefix/lib" \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$machine" \
    -DCMAKE_C_COMPILER="$prefix/bin/cc" -DCMAKE_CXX_COMPILER="$prefix/bin/c++" \
    -DCMAKE_AR="$prefix/bin/ar" -DCMAKE_RANLIB="$prefix/bin/ranlib" \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_C_FLAGS_RELEASE=-DNDEBUG -DCMAKE_CXX_FLAGS_RELEASE=-DNDEBUG \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_FIND_ROOT_PATH="$prefix" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
    -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY "${@:2}" >"$1.log" 2>&1 || { tail -n 20 "$1.log"; exit 1; }
  { cmake --build "$1-build" -j2 && cmake --install "$1-build"; } >>"$1.log" 2>&1 || { tail -n 20 "$1.log"; exit 1; }
}

compile libhttp_parser.a http-parser -- http_parser
cp http-parser/http_parser.h "$prefix/include/"
compile libz.a zlib -D_LARGEFILE64_SOURCE=1 -DHAVE_UNISTD_H -- adler32 compress crc32 deflate gzclose gzlib gzread gzwrite \
  infback inffast inflate inftrees trees uncompr zutil
cp zlib/z{lib,conf}.h "$prefix/include/"
xxhash=(xxhash)
[ $machine = x86_64 ] && xxhash+=(xxh_x86dispatch) # picks a kernel at run time
compile libxxhash.a xxhash -O3 -- "${xxhash[@]}"
cp xxhash/*.h "$prefix/include/"
cp libpng1.6/scripts/pnglibconf.h.prebuilt "$prefix/include/pnglibconf.h"
compile libpng16.a libpng1.6 -DPNG_INTEL_SSE_OPT=0 -DPNG_ARM_NEON_OPT=0 -- png pngerror pngget pngmem pngpread pngread pngrio \
  pngrtran pngrutil pngset pngtrans pngwio pngwrite pngwtran pngwutil
cp libpng1.6/png{,conf}.h "$prefix/include/"
configured libjpeg-turbo -DENABLE_SHARED=OFF -DWITH_JAVA=OFF -DREQUIRE_SIMD=ON -DWITH_ARITH_ENC=OFF
configured curl -DHTTP_ONLY=ON -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DCURL_USE_OPENSSL=ON -DOPENSSL_USE_STATIC_LIBS=ON \
  -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBPSL=OFF -DUSE_LIBIDN2=OFF -DUSE_NGHTTP2=OFF -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF \
  -DCURL_USE_GSSAPI=OFF -DCURL_ZLIB=ON -DENABLE_MANUAL=OFF -DCURL_DISABLE_NTLM=ON -DENABLE_UNIX_SOCKETS=OFF \
  -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none # src/host/http.cc names the file
configured fmtlib -DFMT_TEST=OFF -DFMT_DOC=OFF
configured yaml-cpp -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF
configured googletest
configured benchmark -DGIT_VERSION=1.7.1 -DBENCHMARK_ENABLE_TESTING=OFF -DBENCHMARK_ENABLE_WERROR=OFF
rm -f "$prefix"/lib/*.so*
rm -rf "$prefix/work" "$prefix/fetched"
touch "$prefix/complete"
echo "$prefix" >&3
