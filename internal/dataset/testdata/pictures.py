#!/usr/bin/env python3
"""Writes the pictures of pictures/ in every form of PNG, JPEG and WebP that decoders differ on, and what Pillow makes of them: NAME.rgb of
convert("RGB"), NAME.grey of convert("L") and NAME.half of convert("RGB").resize(BILINEAR) in expected.npz. Needs pillow and numpy."""
import io
import pathlib
import struct
import zlib

import numpy
from PIL import Image

FOLDER = pathlib.Path(__file__).resolve().parent / "pictures"
HEIGHT, WIDTH = 16, 24
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by the colour type of PNG
random = numpy.random.default_rng(0)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def scanlines(pixels, depth):
    """The filtered lines of pixels, height by width by channels."""
    out = b""
    for row in pixels:
        flat = row.reshape(-1).astype(numpy.uint16)
        if depth == 16:
            data = flat.astype(">u2").tobytes()
        elif depth == 8:
            data = flat.astype(numpy.uint8).tobytes()
        else:
            bits = (flat[:, None] >> numpy.arange(depth - 1, -1, -1)) & 1
            data = numpy.packbits(bits.astype(numpy.uint8).reshape(-1)).tobytes()
        out += b"\0" + data
    return out


def png(name, pixels, depth, kind, palette=None, transparent=None, interlaced=False):
    passes = [(0, 0, 1, 1)]
    if interlaced:  # Adam7: x, y, step of x, step of y
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    data = b"".join(scanlines(pixels[y::dy, x::dx], depth) for x, y, dx, dy in passes)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, kind, 0, 0, int(interlaced)))
    if palette is not None:
        out += chunk(b"PLTE", palette.astype(numpy.uint8).tobytes())
    if transparent is not None:
        out += chunk(b"tRNS", transparent)
    (FOLDER / name).write_bytes(out + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def smooth():
    """A picture without sharp edges, which lossy formats keep and all upsampling of chroma gives alike."""
    y, x = numpy.mgrid[:HEIGHT, :WIDTH]
    return numpy.stack([60 + 4 * x, 200 - 6 * y, 90 + 2 * x + 3 * y], -1).astype(numpy.uint8)


def main():
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for kind, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            pixels = random.integers(0, 1 << depth, (HEIGHT, WIDTH, CHANNELS[kind]))
            word = {0: "grey", 2: "rgb", 4: "grey-alpha", 6: "rgba"}[kind]
            for interlaced in (False, True):
                png(f"{word}{depth}{'-interlaced' * interlaced}.png", pixels, depth, kind, interlaced=interlaced)
            if kind in (0, 2):  # the first pixel's colour is transparent
                png(f"{word}{depth}-key.png", pixels, depth, kind, transparent=pixels[0, 0].astype(">u2").tobytes())
    for depth in (1, 2, 4, 8):
        pixels = random.integers(0, 1 << depth, (HEIGHT, WIDTH, 1))
        palette = random.integers(0, 256, (1 << depth, 3))
        png(f"palette{depth}.png", pixels, depth, 3, palette)
        png(f"palette{depth}-interlaced.png", pixels, depth, 3, palette, interlaced=True)
        png(f"palette{depth}-alpha.png", pixels, depth, 3, palette, transparent=bytes(range(0, 1 << depth, 2)))
    picture = Image.fromarray(smooth())
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        picture.save(FOLDER / f"orientation{orientation}.jpg", quality=95, subsampling=0, exif=exif)
    picture.save(FOLDER / "orientation6.webp", lossless=True, exif=exif)
    for word, options in {"444": {"subsampling": 0}, "422": {"subsampling": 1}, "420": {"subsampling": 2}, "progressive": {"progressive": True}}.items():
        picture.save(FOLDER / f"{word}.jpg", quality=95, **options)
    picture.convert("L").save(FOLDER / "grey.jpg", quality=95)
    picture.convert("CMYK").save(FOLDER / "cmyk.jpg", quality=95)
    noise = random.integers(0, 256, (HEIGHT, WIDTH, 4), dtype=numpy.uint8)
    Image.fromarray(noise).save(FOLDER / "alpha.webp", lossless=True, exact=True)
    Image.fromarray(noise[..., :3].copy()).save(FOLDER / "lossless.webp", lossless=True)
    alpha = numpy.concatenate([smooth(), noise[..., 3:]], -1)
    Image.fromarray(alpha).save(FOLDER / "lossy-alpha.webp", quality=95, exact=True)
    picture.save(FOLDER / "lossy.webp", quality=95)
    for name, file in {"png-named.jpg": "rgb8.png", "jpeg-named.png": "444.jpg", "webp-named.jpeg": "lossless.webp", "png-without-extension": "rgba8.png"}.items():
        (FOLDER / name).write_bytes((FOLDER / file).read_bytes())
    expected = {}
    for path in sorted(FOLDER.iterdir()):
        opened = Image.open(io.BytesIO(path.read_bytes()))
        if opened.mode == "I;16":  # convert would clip to 255, where 16 bits of colour are scaled to 8
            opened = Image.fromarray((numpy.asarray(opened) >> 8).astype(numpy.uint8))
        rgb = opened.convert("RGB")
        expected[path.name + ".rgb"] = numpy.asarray(rgb)
        expected[path.name + ".grey"] = numpy.asarray(rgb.convert("L"))
        expected[path.name + ".half"] = numpy.asarray(rgb.resize((WIDTH // 2, HEIGHT // 2), Image.Resampling.BILINEAR))
        expected[path.name + ".double"] = numpy.asarray(rgb.resize((WIDTH * 2, HEIGHT * 2), Image.Resampling.BILINEAR))
    numpy.savez_compressed(FOLDER.parent / "pictures.npz", **expected)


if __name__ == "__main__":
    main()
