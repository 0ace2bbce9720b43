"""Archives of arrays with inconsistent or damaged contents."""
import struct
import zipfile
import zlib

from made.case import case, hlo, write

TAKES = "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n"
NUMBERS = bytes(range(16))


def npy(dtype="<f4", shape="(4,)", data=b"\0" * 16, order="False", version=1):
    header = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header.encode() + data


def npz(folder, arrays, method=zipfile.ZIP_STORED, level=None):
    path = folder / "io.npz"
    with zipfile.ZipFile(path, "w", method, compresslevel=level) as archive:
        for name, data in arrays.items():
            archive.writestr(name + ".npy", data)
    return path


def with_inputs(folder, path, *options):
    return ["run", hlo(folder, TAKES, name="p.hlo"), "--inputs", str(path), *options]


@case
def npz_fine(d):
    return with_inputs(d, npz(d, {"in_0": npy()})), None, None


@case
def npz_missing_array(d):
    return with_inputs(d, npz(d, {"in_1": npy()})), "TK6005", None


@case
def npz_another_type(d):
    return with_inputs(d, npz(d, {"in_0": npy("<f8", data=b"\0" * 32)})), "TK6006", None


@case
def npz_another_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(2, 2)")})), "TK6006", None


@case
def npz_strings(d):
    return with_inputs(d, npz(d, {"in_0": npy("<U1")})), "TK6009", None


@case
def npz_objects(d):
    return with_inputs(d, npz(d, {"in_0": npy("|O", data=b"cos\nsystem\n(S'true'\ntR.")})), "TK6009", None


@case
def npz_big_endian(d):
    return with_inputs(d, npz(d, {"in_0": npy(">f4")})), None, None


@case
def npz_lying_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(1152921504606846976,)")})), "TK6008", None


@case
def npz_overflowing_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(4294967296, 4294967296, 4294967296)")})), "TK6008", None


@case
def npz_negative_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(-4,)")})), "TK6008", None


@case
def npz_deep_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(" * 100_000, version=2)})), "TK6008", None


@case
def npz_short_data(d):
    return with_inputs(d, npz(d, {"in_0": npy(data=b"\0" * 15)})), "TK6008", None


@case
def npz_header_past_the_end(d):
    return with_inputs(d, npz(d, {"in_0": b"\x93NUMPY\x02\0\xff\xff\xff\xff{}"})), "TK6008", None


@case
def npz_cut(d):
    data = npz(d, {"in_0": npy()}).read_bytes()
    return with_inputs(d, write(d, "cut.npz", data[:-10])), "TK6008", None


def flipped(folder, mark, after, method=zipfile.ZIP_STORED):
    """An archive of 4 numbers with one bit flipped in the byte `after` bytes after the last `mark`."""
    data = bytearray(npz(folder, {"in_0": npy(data=NUMBERS)}, method, level=0).read_bytes())
    data[data.rindex(mark) + after] ^= 1
    return with_inputs(folder, write(folder, "bad.npz", bytes(data)))


@case
def npz_flipped_bit_of_stored_data(d):
    return flipped(d, NUMBERS, 5), "TK6008", None


@case
def npz_flipped_bit_of_stored_header(d):
    return flipped(d, b"fortran_order", -4), "TK6008", None


@case
def npz_flipped_bit_of_deflated_data(d):
    """Level 0 has stored blocks: the stream inflates, but to another number."""
    return flipped(d, NUMBERS, 5, zipfile.ZIP_DEFLATED), "TK6008", None


@case
def npz_flipped_bit_of_the_crc(d):
    return flipped(d, b"PK\1\2", 16), "TK6008", None


@case
def npz_entries_that_overlap(d):
    """Each of many entries inflates the same bytes."""
    one = npz(d, {"in_0": npy(data=bytes(1 << 20))}, zipfile.ZIP_DEFLATED).read_bytes()
    begin, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
    directory = one[begin:end] * 20_000
    record = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 20_000, 20_000, len(directory), begin, 0)
    return with_inputs(d, write(d, "bad.npz", one[:begin] + directory + record)), "TK6008", None


@case
def npz_lying_size(d):
    """The central directory claims that 16 EiB follow."""
    data = bytearray(npz(d, {"in_0": npy()}).read_bytes())
    at = data.index(b"PK\1\2")
    data[at + 20:at + 28] = struct.pack("<II", 0xFFFFFFFE, 0xFFFFFFFE)
    return with_inputs(d, write(d, "bad.npz", bytes(data))), "TK6008", None


@case
def npz_lying_offset(d):
    data = bytearray(npz(d, {"in_0": npy()}).read_bytes())
    at = data.index(b"PK\1\2")
    data[at + 42:at + 46] = struct.pack("<I", 0xFFFFFFF0)
    return with_inputs(d, write(d, "bad.npz", bytes(data))), "TK6008", None


@case
def npz_bomb(d):
    """A kilobyte of zip that inflates to a megabyte of zeros for an array of four."""
    return with_inputs(d, npz(d, {"in_0": npy(data=bytes(1 << 20))}, zipfile.ZIP_DEFLATED)), "TK6008", None


@case
def npz_lying_deflate(d):
    """Deflated data that is longer than the archive claims."""
    data = bytearray(npz(d, {"in_0": npy(data=bytes(1 << 20))}, zipfile.ZIP_DEFLATED).read_bytes())
    at = data.index(b"PK\1\2")
    for location in (at + 24, 22):
        data[location:location + 4] = struct.pack("<I", 200)
    return with_inputs(d, write(d, "bad.npz", bytes(data))), "TK6008", None


@case
def npz_not_deflate(d):
    path = npz(d, {"in_0": npy()}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    compressed = zlib.compress(npy())[2:-4]
    at = data.index(compressed[:8]) if compressed[:8] in data else 38
    data[at:at + 8] = b"\xff" * 8
    return with_inputs(d, write(d, "bad.npz", bytes(data))), "TK6008", None


@case
def npz_bytes_flipped(d):
    """Every byte of an archive inverted, one at a time: an error or an array, never a signal."""
    data = npz(d, {"in_0": npy()}).read_bytes()
    program = hlo(d, TAKES, name="p.hlo")
    words = []
    for n in range(len(data)):
        words.append(["run", program, "--inputs", write(d, f"{n}.npz", data[:n] + bytes([data[n] ^ 255]) + data[n + 1:])])
    return words[::7], "any", None


@case
def npz_expected_differs(d):
    path = npz(d, {"in_0": npy(), "out_0": npy(data=struct.pack("<4f", 1, 2, 3, 4))})
    return with_inputs(d, path, "--expect", str(path)), "TK6011", None


@case
def npz_expected_missing(d):
    path = npz(d, {"in_0": npy()})
    return with_inputs(d, path, "--expect", str(path)), "TK6005", None
