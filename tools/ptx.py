"""Run the PTX that the CUDA compiler makes of the engine's kernels on a CPU: as C++, each thread a fiber.

The emulation of the source (tests/gpu/emulated.py) does not show errors of the compiler: NVVM 13.0 moved a load across
`__syncthreads`, and a correct kernel hung. Needs NVRTC (`pip install nvidia-cuda-nvrtc`) and minutes. Not all of PTX
is supported.

    python tools/ptx.py VARIANT SOURCE PLACEMENT
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from gpu import agree, emulated
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.device import Macros

TYPES = {
    "s16": "int16_t", "u16": "uint16_t", "b16": "uint16_t", "s32": "int32_t", "u32": "uint32_t", "b32": "uint32_t",
    "s64": "int64_t", "u64": "uint64_t", "b64": "uint64_t", "f32": "float", "f64": "double", "u8": "uint8_t",
    "s8": "int8_t", "pred": "bool",
}  # fmt: skip
REGISTERS = {"p": "uint8_t", "rs": "uint16_t", "r": "uint32_t", "rd": "uint64_t", "f": "float", "fd": "double"}
SPECIAL = {
    "%tid.x": "unsigned(threadIdx.x)", "%ctaid.x": "unsigned(blockIdx.x)", "%ntid.x": "unsigned(blockDim.x)",
    "%nctaid.x": "unsigned(gridDim.x)", "%globaltimer": "nds::globaltimer()",
}  # fmt: skip
SHUFFLES = {"bfly": "__shfl_xor_sync", "idx": "__shfl_sync", "up": "__shfl_up_sync", "down": "__shfl_down_sync"}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "and": "&", "or": "|", "xor": "^"}
COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
HEAD = """#include "emulate.hpp"
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
using namespace nds;
static uint32_t reversed(uint32_t x) { uint32_t y = 0; for (int i = 0; i < 32; ++i) y |= (x >> i & 1) << (31 - i); return y; }
template <class T> static T read(uint64_t at) { T v; if (at % sizeof v) std::abort(); std::memcpy(&v, (void*)at, sizeof v); return v; }
template <class T> static void write(uint64_t at, T v) { if (at % sizeof v) std::abort(); std::memcpy((void*)at, &v, sizeof v); }
template <class T, int N> struct Vector { T v[N]; };
"""  # noqa: E501


def register(name: str) -> str | None:
    found = re.fullmatch(r"%(p|rs|rd|r|fd|f)(\d+)", name)
    return f"{found[1]}_[{found[2]}]" if found else None


def value(word: str, kind: str) -> str:
    """Return an operand as a C++ expression."""
    if word.startswith("!"):
        return f"(!{value(word[1:], kind)})"
    if found := register(word):
        return f"(({TYPES[kind]}){found})"
    if word[:2] in ("0f", "0d"):
        whole = "float, uint32_t" if word[1] == "f" else "double, uint64_t"
        to, bits = whole.split(", ")
        return f"__builtin_bit_cast({to}, ({bits})0x{word[2:]}ull)"
    if word in SPECIAL:
        return SPECIAL[word]
    if word.startswith("_Z"):
        return "0"  # shared memory begins at its address 0
    return f"(({TYPES[kind]}){word}ll)"


def address(word: str, shared: bool) -> str:
    found = re.fullmatch(r"\[([^+\]]+)(?:\+(-?\d+))?\]", word)
    assert found, word
    beyond = " + (uint64_t)nds::memory" if shared else ""
    return f"((uint64_t){register(found[1]) or 0} + ({found[2] or 0}ll){beyond})"


def operands(text: str) -> list[str]:
    return [word.strip() for word in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", text)]


def several(word: str) -> list[str]:
    return [part.strip() for part in word.strip("{}").split(",")]


def memory(parts: list[str], words: list[str], kind: str) -> str:
    """Translate ld and st, of one number or several."""
    shared, load = "shared" in parts, parts[0] == "ld"
    if "param" in parts:
        number = words[1].strip("[]").split("_param_")[1]
        return f"{register(words[0])} = read<{TYPES[kind]}>((uint64_t)&param[{number}]);"
    at, what = (address(words[1], shared), words[0]) if load else (address(words[0], shared), words[1])
    if not what.startswith("{"):
        if load:
            return f"{register(what)} = read<{TYPES[kind]}>({at});"
        return f"write<{TYPES[kind]}>({at}, {value(what, kind)});"
    names = several(what)
    vector = f"Vector<{TYPES[kind]}, {len(names)}>"
    if load:
        out = "".join(f"{register(name)} = a.v[{i}];" for i, name in enumerate(names))
        return f"{{ auto a = read<{vector}>({at}); {out} }}"
    return f"write({at}, {vector}{{{{{', '.join(value(name, kind) for name in names)}}}}});"


def move(to: str, words: list[str], kind: str) -> str:
    if words[0].startswith("{"):
        low, high = several(words[0])
        whole = value(words[1], "u64")
        return f"{register(low)} = (uint32_t){whole}; {register(high)} = (uint32_t)({whole} >> 32);"
    if words[1].startswith("{"):
        low, high = several(words[1])
        return f"{to} = (uint64_t){value(low, 'u32')} | (uint64_t){value(high, 'u32')} << 32;"
    source = register(words[1])
    if kind in ("b32", "b64") and source and words[0].startswith("%f") != words[1].startswith("%f"):
        return f"{to} = __builtin_bit_cast(std::remove_reference_t<decltype({to})>, {source});"
    return f"{to} = {value(words[1], kind)};"


def arithmetic(parts: list[str], to: str, words: list[str], kind: str) -> str:
    name, real, kind_of = parts[0], kind[0] == "f", TYPES[kind]
    a, b, *rest = [value(word, kind) for word in words[1:]] + [""]
    if name == "mul" and "wide" in parts:
        return f"{to} = ({'int64_t' if kind == 's32' else 'uint64_t'}){a} * {b};"
    if name == "mul" and "hi" in parts:
        return f"{to} = ({kind_of})(((unsigned __int128){a} * {b}) >> {kind[1:]});"
    if name == "mad":
        return f"{to} = ({kind_of})((uint64_t){a} * (uint64_t){b} + (uint64_t){rest[0]});"
    if name in ("add", "sub", "mul") and not real:  # signed numbers wrap as well
        return f"{to} = ({kind_of})((uint64_t){a} {SIGNS[name]} (uint64_t){b});"
    if name == "bfi":  # insert bits of a into b
        mask = f"((1ull << {rest[1]}) - 1 << {rest[0]})"
        return f"{to} = ({kind_of})((uint64_t){a} << {rest[0]} & {mask} | (uint64_t){b} & ~{mask});"
    if name in SIGNS:
        return f"{to} = {a} {SIGNS[name]} {b};"
    if name in ("min", "max"):
        return f"{to} = {a} {'<' if name == 'min' else '>'} {b} ? {a} : {b};"
    if name in ("shl", "shr"):
        by, width = value(words[2], "u32"), int(kind[1:])
        most = f"({a} < 0 ? -1 : 0)" if name == "shr" and kind[0] == "s" else "0"
        return f"{to} = {by} >= {width} ? {most} : ({kind_of})({a} {'<<' if name == 'shl' else '>>'} {by});"
    one = {
        "not": f"{'!' if kind == 'pred' else '~'}{a}", "neg": f"-{a}", "sqrt": f"std::sqrt({a})",
        "abs": f"std::fabs({a})", "popc": f"__builtin_popcount({a})", "clz": f"__clz({a})", "brev": f"reversed({a})",
        "rcp": f"1.0f / {a}", "bfind": f"{a} ? __builtin_clz({a}) : ~0u",
    }  # fmt: skip
    return f"{to} = {one[name]};"


def instruction(name: str, words: list[str]) -> str:
    parts = name.split(".")
    first, kind = parts[0], parts[-1]
    to = register(words[0].split("|")[0]) or "" if words else ""
    match first:
        case "bra":
            return f"goto {words[0].replace('$', '_')};"
        case "ret":
            return "return;"
        case "bar":
            return "__syncwarp();" if parts[1] == "warp" else "__syncthreads();"
        case "ld" | "st":
            return memory(parts, words, kind)
        case "mov":
            return move(to, words, kind)
        case "cvta":
            base = f" {'-' if 'to' in parts else '+'} (uint64_t)nds::memory" if "shared" in parts else ""
            return f"{to} = {value(words[1], 'u64')}{base};"
        case "shfl":
            given = ", ".join((value(words[4], "u32"), value(words[1], "s32"), value(words[2], "s32")))
            return f"{to} = (uint32_t){SHUFFLES[parts[2]]}({given});"
        case "vote":
            return f"{to} = __ballot_sync({value(words[2], 'u32')}, {value(words[1], 'pred')});"
        case "match":
            return f"{to} = __match_any_sync({value(words[2], 'u32')}, {value(words[1], 's32')});"
        case "redux":
            return f"{to} = __reduce_{parts[2]}_sync({value(words[2], 'u32')}, {value(words[1], 's32')});"
        case "atom":
            at, more = address(words[1], False), value(words[2], "u32")
            call = f"atomicOr((unsigned*){at}, {more})" if "or" in parts else f"atomicAdd((int*){at}, {more})"
            return f"{to} = {call};"
        case "setp":
            sign = COMPARED[parts[1].removesuffix("u") if parts[1] not in COMPARED else parts[1]]
            return f"{to} = {value(words[1], kind)} {sign} {value(words[2], kind)};"
        case "selp":
            return f"{to} = {value(words[3], 'pred')} ? {value(words[1], kind)} : {value(words[2], kind)};"
        case "cvt":
            return f"{to} = ({TYPES[parts[-2]]}){value(words[1], kind)};"
        case _:
            return arithmetic(parts, to, words, kind)


def translate(ptx: str) -> str:
    """A C++ source with the kernels, and `emulate` to call them."""
    out, names = [HEAD], []
    for name, parameters, body in re.findall(
        r"\.visible \.entry (\w+)\((.*?)\)(?:.*?)\n\{(.*?)\n\}", re.sub(r"//.*", "", ptx), re.S
    ):
        body = re.sub(
            r"\{ \.reg \.b64 %tmp;\s*(cvt.*?)%tmp(.*?;)(.*?)(%\w+), %tmp; \}", r"\1\4\2\3\4, \4;", body, flags=re.S
        )
        count = parameters.count(".param")
        words = ", ".join(f"u64 a{i}" for i in range(count))
        out.append(
            f"static void {name}({words}) {{ const u64 param[] = {{{', '.join(f'a{i}' for i in range(count))}}};"
        )
        for register_, number in re.findall(r"\.reg \.\w+\s+%(\w+)<(\d+)>;", body):
            out.append(f"std::vector<{REGISTERS[register_]}> {register_}_({number});")
        for line in re.findall(r"\$\w+:|[^;:]+;", re.sub(r"(?m)^\s*\.(?:reg|local|shared|pragma)[^;]*;", "", body)):
            text = line.strip().rstrip(";").strip()
            if text.endswith(":"):
                out.append(text.replace("$", "_") + ";")
            elif text:
                guard, rest = re.fullmatch(r"(@!?%p\d+\s+)?(.*)", text, re.S).groups()  # type: ignore[union-attr]
                word, given = re.fullmatch(r"([\w.]+)\s*(.*)", rest, re.S).groups()  # type: ignore[union-attr]
                when = f"if ({guard.strip()[1:].replace('%p', 'p_[')}]) " if guard else ""
                out.append(f"{when}{{ {instruction(word, operands(given))} }}")
        out.append("}")
        names.append(name)
    calls = " ".join(f'if (!std::strcmp(n, "{x}")) return launch({x}, grid, threads, shared, words), 0;' for x in names)
    out.append(
        'extern "C" __attribute__((visibility("default"))) int emulate(const char* n, int grid, int threads, '
        f"unsigned shared, const u64* words) {{ {calls} return 1; }}\n"
    )
    return "\n".join(out)


class Nvrtc:
    """The CUDA compiler, as pip installs it."""

    def __init__(self) -> None:
        folders = [Path(folder) for folder in sys.path if (Path(folder) / "nvidia").is_dir()]
        found = sorted(path for folder in folders for path in folder.glob("nvidia/**/libnvrtc.so.*"))
        if not found:
            sys.exit("needs NVRTC: pip install nvidia-cuda-nvrtc")
        for builtins in found[-1].parent.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(str(found[-1]))

    def ptx(self, file: str, macros: Macros) -> str:
        options = ["--gpu-architecture=compute_90", "--std=c++20", "--fmad=false"]
        options += [f"--include-path={emulated.NATIVE / name}" for name in ("include", "cuda")]
        options += [f"--define-macro={name}={value}" for name, value in macros]
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        source = (emulated.NATIVE / f"cuda/{file}.cu").read_bytes()
        self._library.nvrtcCreateProgram(ctypes.byref(program), source, f"{file}.cu".encode(), 0, None, None)
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        assert self._library.nvrtcCompileProgram(program, len(options), given) == 0, file
        self._library.nvrtcGetPTXSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._library.nvrtcGetPTX(program, text)
        return text.value.decode()


class PtxDevice(emulated.EmulatedDevice):
    """An emulated device whose kernels are compiled by NVRTC."""

    def __init__(self) -> None:
        super().__init__()
        self._compiler = Nvrtc()
        self._files: dict[tuple[str, Macros], Macros] = {}

    def kernel(self, file: str, name: str, macros: Macros) -> tuple[str, Macros]:
        if (file, macros) not in self._files:
            key = (("FILE", file), *macros)
            source = translate(self._compiler.ptx(file, macros))
            self._libraries[key] = emulated.compiled(source, ["-w", "-fwrapv", "-fno-strict-aliasing"])
            self._files[file, macros] = key
        return name, self._files[file, macros]


def main() -> None:
    variant, source, placement = sys.argv[1:]
    device: Any = PtxDevice()
    cases = agree.check_kind(variant, source, CudaEngine(placement=placement, device=device), small=True)  # type: ignore[arg-type]
    print(f"{variant} {source} {placement}: {cases} passed")


if __name__ == "__main__":
    main()
