"""Makes a folder of pictures to work on: JPEG and PNG files of different sizes, and two that nobody should open carelessly."""

import random
import struct
import zlib
from pathlib import Path

from PIL import Image, ImageDraw

SIZES = ((640, 480), (1_200, 1_600), (2_048, 1_536), (3_000, 2_000), (4_000, 3_000))
BOMB_SIDE = 14_000


def make_pictures(folder: Path, count: int) -> list[Path]:
    """`count` ordinary pictures, a broken one, and a small one that unpacks to more than half a gigabyte; those that exist stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        path = folder / f"picture-{number:03}.{'png' if number % 3 == 2 else 'jpg'}"
        if not path.exists():
            draw(random.Random(number), *SIZES[number % len(SIZES)]).save(path)
    whole = folder / "picture-000.jpg"
    (folder / "broken.jpg").write_bytes(whole.read_bytes()[:2_000])
    if not (folder / "bomb.png").exists():
        write_bomb(folder / "bomb.png")
    return sorted(folder.iterdir())


def draw(rng: random.Random, width: int, height: int) -> Image.Image:
    """Something like a landscape: a sky that fades, a sun, hills."""
    sky = Image.linear_gradient("L").resize((width, height))
    picture = Image.merge("RGB", [sky.point(lambda value, tint=tint: value * tint // 255) for tint in rng.sample(range(80, 256), 3)])
    pen = ImageDraw.Draw(picture)
    x, y, radius = rng.randrange(width), rng.randrange(height // 2), height // 12
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(255, 230, 120))
    for hill in range(12):
        left, top, size = rng.randrange(-width // 4, width), height * (14 + hill) // 26, rng.randrange(width // 4, width)
        pen.ellipse((left, top, left + size, top + height), fill=(20 + 6 * hill, 60 + 10 * hill, 30 + 4 * hill))
    return picture


def write_bomb(path: Path) -> None:
    """A valid PNG, all black, written row by row."""
    squeezer, rows = zlib.compressobj(), b""
    for _ in range(BOMB_SIDE):
        rows += squeezer.compress(b"\0" * (1 + 3 * BOMB_SIDE))
    header = struct.pack(">IIBBBBB", BOMB_SIDE, BOMB_SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", rows + squeezer.flush()), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(map(chunk, chunks)))


def chunk(named: tuple[bytes, bytes]) -> bytes:
    """A chunk of a PNG file."""
    name, data = named
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
